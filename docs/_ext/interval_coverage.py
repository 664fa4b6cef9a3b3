"""Tables and picture of "Do the intervals hold?", from benchmarks/interval_coverage.py.

``python docs/_ext/interval_coverage.py`` writes docs/pictures/coverage.png.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib.figure import Figure

from gpattr.plots.style import BLUE, GREY, INK

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "coverage.json"
MODELS = ROOT / "benchmarks" / "integrated_models.json"
OTHERS = ROOT / "benchmarks" / "coverage_others.json"
TABLES = ROOT / "benchmarks" / "coverage_tables.json"
PICTURE = ROOT / "docs" / "pictures" / "coverage.png"
ATTRIBUTIONS = "integrated gradients"
QUANTITIES = (ATTRIBUTIONS, "Shapley values", "partial dependence", "predictions")


def cases(path: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the results by function and number of rows."""
    return json.loads(path.read_text(encoding="utf-8"))


def sizes() -> list[int]:
    """Return the numbers of rows."""
    return sorted({case["n"] for case in cases()})


def average(n: int, kind: str, what: str, number: str) -> float:
    """Return the mean of a number over functions."""
    return mean(case[kind][what][number] for case in cases() if case["n"] == n)


def coverage_table() -> str:
    """Return how often 95 % intervals hold, by quantity and number of rows."""
    header = "| 95 % intervals of … hold | " + " | ".join(f"{n} rows" for n in sizes()) + " |"
    lines = [header, "|---|" + "---|" * len(sizes())]
    for kind, words in (("integrated", ""), ("optimal", ", optimal hyperparameters")):
        for what in QUANTITIES:
            cells = [f"{average(n, kind, what, 'in 95 %'):.1%}" for n in sizes()]
            lines.append(f"| {what}{words} | " + " | ".join(cells) + " |")
    for number, words in (("score", "interval score"), ("error", "error of the means")):
        cells = [
            f"{average(n, 'optimal', ATTRIBUTIONS, number):.2f} →"
            f" {average(n, 'integrated', ATTRIBUTIONS, number):.2f}"
            for n in sizes()
        ]
        lines.append(f"| {words} of {ATTRIBUTIONS} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _held(case: dict[str, Any], kind: str = "integrated") -> float:
    return case[kind][ATTRIBUTIONS]["in 95 %"]


def failures_table(path: Path = RESULTS) -> str:
    """Return the functions whose intervals hold less than 85 % somewhere."""
    found = cases(path)
    numbers = sorted({case["n"] for case in found})
    doubtful = sorted({case["function"] for case in found if _held(case) < 0.85})
    header = "| function | inputs | " + " | ".join(f"{n} rows" for n in numbers) + " |"
    lines = [header, "|---|---|" + "---|" * len(numbers)]
    for name in doubtful:
        own = {case["n"]: case for case in found if case["function"] == name}
        cells = [f"{_held(own[n]):.0%}" for n in numbers]
        words = name.partition(":")[2].split(":")[0] if ":" in name else name
        lines.append(f"| {words} | {next(iter(own.values()))['d']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def others_table() -> str:
    """Return how often 95 % intervals hold for functions on which nothing was chosen."""
    found = cases(OTHERS)
    numbers = sorted({case["n"] for case in found})
    header = "| integrated gradients of … hold | " + " | ".join(f"{n} rows" for n in numbers) + " |"
    lines = [header, "|---|" + "---|" * len(numbers)]
    for words, libraries in (
        ("engineering problems of SMT and OpenTURNS", ("smt", "openturns")),
        ("BoTorch's functions for testing optimisers", ("botorch",)),
    ):
        own = [case for case in found if case["function"].partition(":")[0] in libraries]
        count = len({case["function"] for case in own})
        cells = [
            f"{mean(_held(case) for case in own if case['n'] == n):.1%}"
            f" ({mean(_held(case, 'optimal') for case in own if case['n'] == n):.0%})"
            for n in numbers
        ]
        lines.append(f"| {count} {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def real_tables() -> str:
    """Return what held-out targets of published tables say."""
    tables = json.loads(TABLES.read_text(encoding="utf-8"))
    header = "| | 95 % intervals of new targets hold | lowest | R² | log score |"
    lines = [header, "|---|---|---|---|---|"]
    for kind in ("integrated", "optimal"):
        held = [(table[kind]["in 95 %"], table["table"]) for table in tables]
        score = mean(table[kind]["log score"] for table in tables)
        lines.append(
            f"| {kind} | {mean(share for share, _ in held):.1%} | {min(held)[0]:.0%}"
            f" ({min(held)[1]}) | {mean(table[kind]['R²'] for table in tables):.3f} |"
            f" {score:.2f} |"
        )
    for kind in ("scikit-learn, one length-scale", "scikit-learn, several"):
        lines.append(f"| {kind} | | | {mean(table[kind]['R²'] for table in tables):.3f} | |")
    return "\n".join(lines)


def models() -> str:
    """Coverage of models of other libraries, as they were fitted and integrated."""
    found = json.loads(MODELS.read_text(encoding="utf-8"))["regression"]
    lines = ["| | as fitted | integrated |", "|---|---|---|"]
    for name in dict.fromkeys(key.rpartition(", ")[0] for key in found if ", " in key):
        cells = (f"{found[f'{name}, {how}']:.1%}" for how in ("fitted", "integrated"))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


GENERATED: dict[str, Callable[[], str]] = {
    "coverage_table": coverage_table,
    "failures_table": failures_table,
    "other_failures": lambda: failures_table(OTHERS),
    "others_table": others_table,
    "real_tables": real_tables,
    "models": models,
}


def picture() -> Figure:
    """Return coverage against rows: the mean over functions, and each of them."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for kind, color, words in (
        ("optimal", GREY, "optimal hyperparameters"),
        ("integrated", BLUE, "integrated"),
    ):
        for name in sorted({case["function"] for case in cases()}):
            own = [
                (case["n"], case[kind][ATTRIBUTIONS]["in 95 %"])
                for case in cases()
                if case["function"] == name
            ]
            axes.plot(*zip(*own, strict=True), color=color, linewidth=0.6, alpha=0.35)
        means = [average(n, kind, ATTRIBUTIONS, "in 95 %") for n in sizes()]
        axes.plot(sizes(), means, "o-", color=color, linewidth=2.2, label=words)
    axes.axhline(0.95, color=INK, linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    axes.set_xticks(sizes(), [str(n) for n in sizes()])
    axes.minorticks_off()
    axes.set_ylim(0.2, 1.01)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_xlabel("training rows", color=INK)
    axes.set_title("True attributions inside of their 95 % intervals", loc="left", fontsize=10)
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    picture().savefig(PICTURE, dpi=120)
    for name, make in GENERATED.items():
        print(f"<!-- {name} -->\n{make()}\n")
