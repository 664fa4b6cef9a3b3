"""Benchmarks: times of gpattr relative to bare linear algebra and other libraries, from one run.

    python benchmarks/run.py [--quick] [--only explain,kernels,...]
    python benchmarks/run.py [--quick] --json new.json
    python benchmarks/run.py [--quick] --compare old.json [new.json]

The first prints tables of all that is measured, or of some parts. The second measures the numbers
that README and documentation quote, and writes them to a file. The third prints what became slower
or faster since such a file was written, in a run now or in a second file; it ends with exit code 1
if something became slower (benchmarks/changes.py says how noise is judged).

Parts are explain, kernels, shapley, dependence, quantities, measurements, counterfactuals,
training, peers, growth, weights, rules, sparse, held-out, busy, tables, dask and big-files. The
red-wine data are used if GPATTR_DATA_DIR is set to a folder with them, simulated data of the same
shape otherwise.
Libraries that are not installed are skipped: pip install -e ".[bench]" installs them all."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
from changes import as_rows, changes, differences
from record import Record, RecordError, versions
from rich.console import Console
from rich.table import Table

# Functions by module, imported when they are asked for: each needs libraries of its own.
SECTIONS = {
    "explain": ("explain.explain_wine", "explain.explain_many_rows"),
    "kernels": ("kernels.kernels", "kernels.additive"),
    "shapley": ("shapley.shapley", "shapley.shapley_of_many_features"),
    "dependence": ("dependence.dependence", "dependence.sobol"),
    "quantities": ("quantities.quantities",),
    "measurements": ("measurements.measurements",),
    "counterfactuals": ("counterfactuals.counterfactuals", "counterfactuals.sensitivity"),
    "training": ("training.training",),
    "peers": ("peers.peers",),
    "growth": ("growth.growth",),
    "weights": ("weight_space.stream", "weight_space.explain_rows", "weight_space.convergence"),
    "rules": ("rules.rules",),
    "sparse": ("sparse_models.approximations", "sparse_models.sparse_peers"),
    "held-out": ("held_out.held_out",),
    "busy": ("busy.busy",),
    "tables": ("tables.tables",),
    "dask": ("dask_training.dask_training",),
    "big-files": ("big_files.big_files",),
}


def main() -> int:
    """Run, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller problems: about a minute")
    parser.add_argument(
        "--only", default=",".join(SECTIONS), help="sections to run, separated by commas"
    )
    parser.add_argument("--json", type=Path, help="measure what README quotes, and write it here")
    parser.add_argument(
        "--compare", type=Path, nargs="+", metavar="FILE", help="what changed since a file"
    )
    options = parser.parse_args()
    if options.compare and len(options.compare) > (1 if options.json else 2):
        parser.error("--compare takes the old file, and the new one unless --json measures it now")
    warnings.simplefilter("ignore")  # other libraries' advice on convergence
    console = Console(width=130)
    if options.json or options.compare:
        try:
            return follow(options.compare or [], options.json, options.quick, console)
        except RecordError as error:
            parser.error(str(error))
    console.print(
        f"machine: {platform.processor() or platform.machine()}, {os.cpu_count()} cores,"
        f" {', '.join(f'{name} {number}' for name, number in versions().items())}",
        highlight=False,
    )
    X, y = wine()
    for section in options.only.split(","):
        for path in SECTIONS[section]:
            module, _, name = path.partition(".")
            title, rows = getattr(import_module(module), name)(X, y, options.quick)
            console.print(as_table(title, rows))
    return 0


def follow(files: list[Path], target: Path | None, quick: bool, console: Console) -> int:
    """Measure the quoted numbers, unless both files are given, and compare them with the old."""
    records = [Record.read(path) for path in files]  # first, or an error would cost minutes
    if len(records) < 2:
        import quoted_numbers

        data = "red wine" if os.environ.get("GPATTR_DATA_DIR") else "simulated"
        records.append(quoted_numbers.measure(*wine(), data, quick))
        for size, rows in quoted_numbers.as_tables(records[-1]).items():
            console.print(as_table(size, rows))
        for part, reason in records[-1].skipped.items():
            console.print(f"skipped: {part} ({reason})")
    if target:
        records[-1].write(target)
    if not files:
        return 0
    found = changes(*records)
    console.print(as_table(f"{files[0].name}, of {records[0].date}, and now", as_rows(found)))
    for line in differences(*records):
        console.print(line, highlight=False)
    return int(any(change.verdict == "SLOWER" for change in found))


def wine() -> tuple[np.ndarray, np.ndarray]:
    folder = os.environ.get("GPATTR_DATA_DIR")
    if folder:
        data = np.genfromtxt(Path(folder) / "winequality-red.csv", delimiter=";", skip_header=1)
        return data[:, :-1], data[:, -1]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1599, 11))
    return X, np.round(5.6 + 0.5 * X[:, 10] - 0.3 * X[:, 1] + 0.5 * rng.normal(size=1599))


def as_table(title: str, rows: list[dict[str, str]]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in rows[0]:
        table.add_column(name, justify="left" if name in ("what", "comparison") else "right")
    for row in rows:
        table.add_row(*row.values())
    return table


if __name__ == "__main__":
    sys.exit(main())
