"""Tables of any size: rows a second, memory of every process, equality with the serial result.

    python benchmarks/tables.py [--rows 10000000] [--workers 1,2] [--folder DIRECTORY]

makes Parquet files of simulated rows, explains them on Dask clusters of one machine, whose workers
have one thread and 1.5 GB each, and a tenth of them with one worker, with Polars and with DuckDB,
and writes the numbers to benchmarks/tables.json, from which docs/_ext/throughput.py draws its
picture."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

ROWS, FEATURES, POINTS, FILES = 10**7, 10, 2000, 250
LIMIT = 1.5e9  # bytes of memory that a process may take
RESULTS = Path(__file__).parent / "tables.json"
NAMES = [f"x{i}" for i in range(FEATURES)]


def tables(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    rows = ROWS // 50 if quick else ROWS
    return title(rows), as_rows(measured(rows, (1, 2), None))


def title(rows: int) -> str:
    return (
        f"Tables of any size: {rows:,} rows × {FEATURES} features against {POINTS} training points"
        f" ({os.cpu_count()} cores)"
    )


def measured(rows: int, workers: tuple[int, ...], folder: str | None) -> list[dict[str, Any]]:
    """Return what every case gives; each runs in a process of its own."""
    home = Path(tempfile.mkdtemp(dir=folder))
    tenth, few = max(rows // 10, 4000), max(rows // 200, 2000)
    cases = [
        *[("dask", rows if k > 1 else tenth, {"workers": k}) for k in workers],
        ("dask", tenth, {"workers": 2, "killed": True}),
        ("dask", few, {"workers": 2, "uncertainty": "std"}),
        ("polars", tenth, {}),
        ("duckdb", tenth, {}),
    ]
    try:
        for size in {size for _, size, _ in cases}:
            make_files(home / str(size), size)
        return [_in_a_process(kind, home / str(size), more) for kind, size, more in cases]
    finally:
        shutil.rmtree(home)


def as_rows(results: list[dict[str, Any]]) -> list[dict[str, str]]:
    first = results[0]["rows_per_second"]
    return [
        {
            "what": case["what"],
            "rows": f"{case['rows']:,}",
            "time": f"{case['seconds']:.1f} s",
            "rows/s": f"{case['rows_per_second']:,.0f}",
            "of one worker": f"{case['rows_per_second'] / first:.2f}",
            "peak memory of each process": ", ".join(f"{gb:.2f}" for gb in case["memory"]) + " GB",
            "difference to serial": f"{case['difference']:.0e}",
        }
        for case in results
    ]


def make_files(folder: Path, rows: int) -> None:
    """Write simulated rows as Parquet files, the same for every run."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    files = max(4, min(FILES, rows // 2000))
    ends = np.linspace(0, rows, files + 1).astype(int)
    for i in range(files):
        values = np.random.default_rng([7, i]).normal(size=(FEATURES, ends[i + 1] - ends[i]))
        table = pa.table(dict(zip(NAMES, values, strict=True)))
        pq.write_table(table, folder / f"part-{i:05d}.parquet")


def explainer() -> Any:
    import pandas as pd

    import gpattr

    rng = np.random.default_rng(0)
    X = rng.normal(size=(POINTS, FEATURES))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=POINTS)
    kernel = gpattr.kernels.SquaredExponential(np.full(FEATURES, FEATURES**0.5))
    frame = pd.DataFrame(X, columns=NAMES)
    return gpattr.Explainer(gpattr.posteriors.ExactPosterior(kernel, frame, y, noise=0.1))


def _in_a_process(kind: str, folder: Path, more: dict[str, Any]) -> dict[str, Any]:
    # Not from this folder: Dask would take its sparse.py for a package of that name.
    code = (
        "from importlib.util import module_from_spec, spec_from_file_location\n"
        f"spec = spec_from_file_location('tables', {__file__!r})\n"
        "tables = module_from_spec(spec)\n"
        "spec.loader.exec_module(tables)\n"
        f"tables.measure({kind!r}, {str(folder)!r}, **{more!r})\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    output = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, cwd=folder.parent
    )
    return json.loads(output.stdout.splitlines()[-1])


def peak_memory(process: Any = "self") -> float:
    """The peak memory of a process in GB."""
    status = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1e6 for line in status if line.startswith("VmHWM"))


def measure(kind: str, folder: str, **more: Any) -> None:
    """Print what one case gives."""
    source, target = Path(folder), Path(folder + "-explained")
    uncertainty, actions = more.get("uncertainty", "none"), {"polars": _polars, "duckdb": _duckdb}
    if kind == "dask":
        what, seconds, memory = _dask(source, target, **more)
    else:
        target.mkdir()
        start = time.perf_counter()
        actions[kind](source, target)
        what, seconds, memory = kind, time.perf_counter() - start, [peak_memory()]
    rows, difference = compared(source, target, uncertainty)
    shutil.rmtree(target)
    print(
        json.dumps(
            {
                "what": what,
                "engine": kind,
                **more,
                "rows": rows,
                "seconds": seconds,
                "rows_per_second": rows / seconds,
                "memory": memory,
                "difference": difference,
            }
        )
    )


def _dask(
    source: Path, target: Path, workers: int, uncertainty: str = "none", killed: bool = False
) -> tuple[str, float, list[float]]:
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    # Else every array of a worker is mapped anew, which takes as long as the arithmetic.
    dask.config.set({"distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**28})
    options = {"n_workers": workers, "threads_per_worker": 1, "memory_limit": LIMIT}
    with (
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}),
        LocalCluster(**options, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        result = explainer().map_table(dd.read_parquet(source), uncertainty)
        client.run(__import__, "gpattr.engines")  # imports do not count
        pids = list(client.run(os.getpid).values())
        if killed:
            threading.Thread(target=_kill_on_the_way, args=(pids[0], target)).start()
        start = time.perf_counter()
        result.to_parquet(target)
        seconds = time.perf_counter() - start
        now = list(client.run(os.getpid).values())
        assert (pids[0] in now) != killed, "no worker was killed, or one that should live"
        memory = [peak_memory(), *map(peak_memory, now)]
    what = f"Dask, {workers} worker{'s' if workers > 1 else ''} of one thread"
    what += ", one killed on the way" if killed else ""
    return what + (", with std" if uncertainty == "std" else ""), seconds, memory


def _kill_on_the_way(pid: int, target: Path) -> None:
    """Kill the worker as soon as the first part is written."""
    while not list(target.glob("part.*.parquet")):
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)


def _polars(source: Path, target: Path) -> None:
    import polars as pl

    table = pl.scan_parquet(source / "*.parquet")
    explainer().map_table(table, "none").sink_parquet(target / "part.0.parquet")


def _duckdb(source: Path, target: Path) -> None:
    import duckdb

    table = duckdb.read_parquet(f"{source}/*.parquet")
    explainer().map_table(table, "none").write_parquet(str(target / "part.0.parquet"))


def compared(source: Path, target: Path, uncertainty: str) -> tuple[int, float]:
    """Return the number of rows explained, and the largest difference to serial ones in a sample.

    The sample is 500 rows each from the beginning, the middle and the end.
    """
    import pyarrow.dataset as ds

    given = ds.dataset(sorted(source.iterdir()))
    parts = sorted(target.glob("part.*.parquet"), key=lambda path: int(path.name.split(".")[1]))
    found = ds.dataset(parts)
    rows = found.count_rows()
    assert rows == given.count_rows(), f"{rows} rows of {given.count_rows()}"
    sample = np.unique(np.linspace(0, rows - 500, 3).astype(int)[:, None] + np.arange(500))
    ex = explainer()(given.take(sample).to_pandas()[NAMES], uncertainty=uncertainty)
    expected = [ex.predictions, ex.base_values, ex.values]
    expected += [ex.std] if uncertainty == "std" else []
    result = found.take(sample).to_pandas()
    result = result.filter(regex="prediction|:").to_numpy()
    return rows, float(np.abs(result - np.column_stack(expected)).max())


def main() -> None:
    from rich.console import Console
    from run import as_table

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--workers", default="1,2", help="numbers of workers, by commas")
    parser.add_argument("--folder", default=None, help="where the files are made, and removed")
    options = parser.parse_args()
    workers = tuple(int(k) for k in options.workers.split(","))
    results = measured(options.rows, workers, options.folder)
    about = {"rows": options.rows, "cores": os.cpu_count(), "cases": results}
    RESULTS.write_text(json.dumps(about, indent=1) + "\n")
    Console(width=150).print(as_table(title(options.rows), as_rows(results)))


if __name__ == "__main__":
    main()
