"""`gpattr explain` of a file larger than memory: speed, memory, and what SIGKILL does to it.

    python benchmarks/big_files.py [--gigabytes 5] [--folder FOLDER] [--kills 10]

A CSV file of this size (10 columns of numbers to 17 digits, an identifier and a text with commas,
quotation marks and newlines) is explained by a process of its own, from a model of 100 rows. The
same command is then killed at random moments, started again each time, and at last left alone: its
parts must have the same bytes.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np

BLOCK = 100_000  # rows that are made at a time
TEXT = 800  # letters of the text in a row, so that 5 GB have some five million rows
TRAINED = 100  # rows of the model
KILLS = 10


def big_files(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), 0.05 if quick else 5.0, 3 if quick else KILLS)


def measure(folder: Path, gigabytes: float, kills: int) -> tuple[str, list[dict[str, str]]]:
    data, model = folder / "big.csv", folder / "model.json"
    rows = make(data, gigabytes)
    some = folder / "some.csv"
    with open(data, newline="") as file, open(some, "w", newline="") as head:
        csv.writer(head).writerows(islice(csv.reader(file), TRAINED + 1))
    gpattr = [sys.executable, "-c", "from gpattr.cli import app; app()"]
    fit = [*gpattr, "fit", some, "--target", "y", "--drop", "text", "--quiet", "--out", model]
    subprocess.run(fit, check=True, stdout=subprocess.DEVNULL)
    explain = [*gpattr, "explain", data, "--model", model, "--stream", "--drop", "text"]
    explain += ["--id", "id", "--dependence", "none", "--quiet", "--out"]
    seconds, memory, _ = run([*explain, folder / "whole"])
    stops, peak, used = 0, 0.0, 0.0
    rng = random.Random(0)
    while True:
        limit = rng.uniform(0.0, 1.6 * seconds / max(kills, 1)) if stops < kills else None
        took, high, finished = run([*explain, folder / "killed"], limit)
        used, peak = used + took, max(peak, high)
        if finished:
            break
        stops += 1
    same = contents(folder / "whole" / "parts") == contents(folder / "killed" / "parts")
    size = data.stat().st_size / 1e9
    title = f"explain a CSV file of {size:.2f} GB, {rows:,} rows × 10 numbers, in parts"
    return title, [
        {
            "what": "uninterrupted",
            "time": f"{seconds:.0f} s",
            "rows per second": f"{rows / seconds:,.0f}",
            "peak memory": f"{memory:.2f} GB",
            "comparison": "limit: 1.5 GB",
        },
        {
            "what": f"killed {stops} times",
            "time": f"{used:.0f} s",
            "rows per second": f"{rows / used:,.0f}",
            "peak memory": f"{peak:.2f} GB",
            "comparison": "the same bytes" if same else "OTHER BYTES",
        },
    ]


def make(path: Path, gigabytes: float) -> int:
    """Write a table of about this size; return its number of rows."""
    import pyarrow as pa
    from pyarrow import csv

    rng, rows = np.random.default_rng(0), 0
    notes = ["nothing to report; ", 'she said "no", and left. ', "two lines:\nthe second, ", "— "]
    texts = [(note * 60)[:TEXT] for note in notes]
    with open(path, "wb") as file:
        while file.tell() < gigabytes * 1e9:
            X = rng.normal(size=(BLOCK, 10))
            y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=BLOCK)
            columns = {"id": [f"R{rows + i:09d}" for i in range(BLOCK)]}
            columns |= {f"x{i}": X[:, i] for i in range(10)} | {"y": y}
            columns["text"] = [texts[i] for i in rng.integers(0, len(texts), BLOCK)]
            options = csv.WriteOptions(include_header=rows == 0)
            csv.write_csv(pa.table(columns), file, options)
            rows += BLOCK
    return rows


def run(command: list[object], limit: float | None = None) -> tuple[float, float, bool]:
    """Run a command, and kill it after a time; return seconds, GB, and whether it finished."""
    started, peak = time.perf_counter(), 0.0
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    while process.poll() is None:
        peak = max(peak, memory_of(process.pid))
        if limit is not None and time.perf_counter() - started > limit:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            break
        time.sleep(0.05)
    if process.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"{command} failed")
    return time.perf_counter() - started, peak, process.returncode == 0


def memory_of(process: int) -> float:
    """Return the peak memory of a process in GB, 0 if it is gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) / 1e6 for line in lines if line.startswith("VmHWM")), 0.0)


def contents(folder: Path) -> dict[str, bytes]:
    import hashlib

    return {path.name: hashlib.sha256(path.read_bytes()).digest() for path in folder.iterdir()}


def main() -> None:
    from rich.console import Console
    from run import as_table

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--folder", type=Path, default=None, help="where the file is made")
    parser.add_argument("--kills", type=int, default=KILLS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found = measure(Path(folder), options.gigabytes, options.kills)
    Console(width=130).print(as_table(*found))


if __name__ == "__main__":
    main()
