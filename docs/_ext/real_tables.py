"""Tables of "Real tables", from benchmarks/real_tables.py, classification.py and leaders.py.

``python docs/_ext/real_tables.py`` prints them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
GROUPS = {
    "issue": "tables that once failed or misled",
    "numbers": "further tables with a number to predict",
    "classes": "further tables with classes to predict",
}
CLASSIFIERS = {
    "gpattr": "gpattr",
    "GaussianProcessClassifier": "scikit-learn's Gaussian process",
    "LogisticRegression": "logistic regression",
    "HistGradientBoosting": "gradient boosting",
}
SCALES = ("0.5", "1.0", "2.0")


def results(name: str) -> list[dict[str, Any]]:
    """Read the results of a benchmark."""
    return json.loads((BENCHMARKS / f"{name}.json").read_text(encoding="utf-8"))


def runs() -> str:
    """Count the tables that were explained at the first try."""
    lines = [
        "| | tables | explained | median | longest | most memory |",
        "|---|---|---|---|---|---|",
    ]
    for group, words in GROUPS.items():
        some = [each for each in results("real_tables") if each["group"] == group]
        if not some:
            continue
        seconds = [each["processor"] for each in some if "processor" in each]
        memory = max(each["MB"] for each in some if "MB" in each)
        succeeded = sum(each["ok"] for each in some)
        lines.append(
            f"| {words} | {len(some)} | {succeeded} | {median(seconds):.0f} s"
            f" | {max(seconds):.0f} s | {memory / 1e3:.1f} GB |"
        )
    return "\n".join(lines)


def classifiers() -> str:
    """Compare classifiers in cross-validation, on average over tables."""
    tables = results("classification")
    lines = ["| | accuracy | log loss | calibration error |", "|---|---|---|---|"]
    for kind, words in CLASSIFIERS.items():
        cells = (
            f"{mean(table[kind][number] for table in tables):.3f}"
            for number in ("accuracy", "log loss", "calibration error")
        )
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def leaders() -> str:
    """List the leading features of tables with categories, by model."""
    lines = [
        "| table | leads | P | random forest | one-hot, length-scale 0.5 | 1 | 2 |",
        "|---|---|---|---|---|---|---|",
    ]
    for table in results("leaders"):
        own = table["gpattr"]
        first = [next(iter(table[f"0/1 length-scale {scale}"]["features"])) for scale in SCALES]
        cells = [next(iter(own["features"])), f"{own['leads']:.2f}", table["forest"][0], *first]
        lines.append(f"| {table['table'].rpartition('/')[2]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


GENERATED: dict[str, Callable[[], str]] = {
    "runs": runs,
    "classifiers": classifiers,
    "leaders": leaders,
}

if __name__ == "__main__":
    for name, make in GENERATED.items():
        print(f"<!-- {name} -->\n{make()}\n")
