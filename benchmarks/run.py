"""Benchmarks: times of gpattr relative to bare linear algebra and other libraries, from one run.

    python benchmarks/run.py [--quick] [--only explain,kernels,...]

Parts are explain, kernels, shapley, dependence, quantities, measurements, counterfactuals,
training, peers, growth, weights, rules, sparse, held-out, busy, tables, dask and big-files. The
red-wine data are used if GPATTR_DATA_DIR is set to a folder with them, simulated data of the same
shape otherwise.
Libraries that are not installed are skipped: pip install -e ".[bench]" installs them all."""

from __future__ import annotations

import argparse
import os
import platform
import warnings
from pathlib import Path

import numpy as np
from big_files import big_files
from busy import busy
from counterfactuals import counterfactuals, sensitivity
from dask_training import dask_training
from explain import explain_many_rows, explain_wine
from growth import growth
from held_out import held_out
from peers import peers
from rich.console import Console
from rich.table import Table
from rules import rules
from sparse_models import approximations, sparse_peers
from training import training
from weight_space import convergence, explain_rows, stream

from dependence import dependence, sobol
from kernels import additive, kernels
from measurements import measurements
from quantities import quantities
from shapley import shapley, shapley_of_many_features
from tables import tables

SECTIONS = {
    "explain": (explain_wine, explain_many_rows),
    "kernels": (kernels, additive),
    "shapley": (shapley, shapley_of_many_features),
    "dependence": (dependence, sobol),
    "quantities": (quantities,),
    "measurements": (measurements,),
    "counterfactuals": (counterfactuals, sensitivity),
    "training": (training,),
    "peers": (peers,),
    "growth": (growth,),
    "weights": (stream, explain_rows, convergence),
    "rules": (rules,),
    "sparse": (approximations, sparse_peers),
    "held-out": (held_out,),
    "busy": (busy,),
    "tables": (tables,),
    "dask": (dask_training,),
    "big-files": (big_files,),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller problems: about a minute")
    parser.add_argument(
        "--only", default=",".join(SECTIONS), help="sections to run, separated by commas"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # other libraries' advice on convergence
    console = Console(width=130)
    console.print(
        f"machine: {platform.processor() or platform.machine()}, {os.cpu_count()} cores,"
        f" {versions()}",
        highlight=False,
    )
    X, y = wine()
    for section in options.only.split(","):
        for measure in SECTIONS[section]:
            title, rows = measure(X, y, options.quick)
            console.print(as_table(title, rows))


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


def versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in (
        "gpattr",
        "numpy",
        "scipy",
        "scikit-learn",
        "torch",
        "gpytorch",
        "botorch",
        "tinygp",
        "shap",
        "captum",
    ):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


if __name__ == "__main__":
    main()
