"""Explanations of classes: probabilities, one explanation for each class of several, their tables,
pictures and words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpattr import plots
from gpattr.commands.letters import save_picture
from gpattr.distributions import Draws, Gaussian
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.importance import Importance
from gpattr.explanation.multi_output import MultiOutputExplanation
from gpattr.report import write_report
from gpattr.tables import TableModel
from gpattr.tables.model import stratified
from gpattr.tables.target import said_class

# times classes, that are explained unless rows are named: half a minute for every thousand
MOST_ROWS = 2000
DRAWS, FEWEST_DRAWS, MOST_DRAWN = (
    500,
    100,
    10_000_000,
)  # of each row, and attributions that are drawn in all: 80 MB
MOST_SAVED, FEWEST_SAVED = (
    500_000,
    20,
)  # attributions, and of each row, that are written to explanation.json
SAID = 3  # rows that are named in the terminal

Explained = Mapping[str, Explanation]  # by class; "" where there is one explanation alone


def explainers(
    model: TableModel, baseline: Any, baseline_name: str | None, n: int
) -> dict[str, Explainer]:
    """Return the explainers of n rows by class; that of a regressor, or of two classes, has the
    name "".
    """
    posteriors = model.posteriors
    options: dict[str, Any] = {}
    if model.task == "classification":
        drawn = MOST_DRAWN // (max(n, 1) * len(model.columns.names) * len(posteriors))
        options = {"output": "probability", "n_draws": int(np.clip(drawn, FEWEST_DRAWS, DRAWS))}
    found = {}
    for label, posterior in posteriors.items():
        explainer = Explainer(posterior, baseline, target_name=said(model, label), **options)
        explainer.baseline_name = baseline_name or explainer.baseline_name
        found[label if len(posteriors) > 1 else ""] = explainer
    return found


def said(model: TableModel, label: str) -> str:
    """Return what an explanation is of, in words: the target with its unit, or the class."""
    target = model.columns.target
    if model.task == "regression":
        unit = model.columns.units.get(target)
        return f"{target} ({unit})" if unit else target
    return said_class(target, label) + (" against the rest" if len(model.classes) > 2 else "")


def chosen_by_default(model: TableModel, y: Any, n: int) -> np.ndarray:
    """Return the rows that are explained unless others are named: all, or a random sample where a
    classifier has many.
    """
    if model.task == "regression":
        return np.arange(n)
    most = MOST_ROWS // len(model.posteriors)
    return stratified(np.full(n, "") if y is None else np.asarray(y, dtype=str), most)


def write_tables(
    folder: Path, found: Explained, importance: Mapping[str, Importance], level: float
) -> list[str]:
    """Write the explanations of several classes and their tables, with a column ``class``; return
    what is left out of them.
    """
    import pandas as pd

    saved = {label: thinned(ex, len(found)) for label, ex in found.items()}
    MultiOutputExplanation({label: ex for label, (ex, _) in saved.items()}).save(
        folder / "explanation.json"
    )
    parts = []
    for label, ex in found.items():
        table = ex.to_frame(level)
        table.insert(0, "class", label)
        parts.append(table)
    tables = pd.concat(parts, ignore_index=True)
    tables.to_csv(folder / "attributions.csv", index=False)
    ranked = {label: each.to_frame(level).reset_index() for label, each in importance.items()}
    pd.concat([table.assign(**{"class": label}) for label, table in ranked.items()])[
        ["class", *next(iter(ranked.values())).columns]
    ].to_csv(folder / "importance.csv", index=False)
    try:
        import pyarrow  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError:
        pass
    else:
        tables.to_parquet(folder / "attributions.parquet", index=False)
    return list(dict.fromkeys(note for _, note in saved.values() if note))


def thinned(ex: Explanation, classes: int = 1) -> tuple[Explanation, str]:
    """Return an explanation small enough for a file, without covariances and with fewer draws, and
    what was left out of it.
    """
    known = ex.distribution
    if not isinstance(known, Draws):
        return ex, ""
    most = MOST_SAVED // max(1, ex.values.size * classes)
    if len(known.draws) <= most:
        return replace(ex, distribution=known.without_cov()), ""
    if most < FEWEST_SAVED:
        means = replace(ex, distribution=Gaussian(known.mean), draw_error=None)
        return means, (
            "explanation.json has means alone; the intervals are in attributions.csv and the"
            " report."
        )
    note = (
        f"explanation.json has {most} of the {len(known.draws)} draws of each row; tables, pictures"
        " and the report are of all."
    )
    fewer = Draws(known.draws[:most], known.mean, var=known.var)
    return replace(ex, distribution=fewer), note


def draw_pictures(
    folder: Path, found: Explained, importance: Mapping[str, Importance], level: float
) -> bool:
    """Draw the importance and all rows of each class, importance_setosa.png and so on; return
    whether letters are lacking.
    """
    from matplotlib.figure import Figure

    lacking = False
    for label, name in file_names(found).items():
        ex = found[label]
        tall = 1.4 + 0.42 * min(ex.shape[1], 10)
        pictures: list[tuple[str, Any, Any]] = [("importance", plots.bar, importance[label])]
        if len(ex) > 1:
            pictures.append(("beeswarm", plots.beeswarm, ex))
        for kind, draw, what in pictures:
            figure = Figure(figsize=(7.5, tall), layout="constrained")
            draw(what, ax=figure.subplots(), level=level)
            lacking = save_picture(figure, folder / f"{kind}_{name}.png") or lacking
    return lacking


def write_page(
    path: Path,
    found: Explained,
    importance: Mapping[str, Importance],
    explainers: Mapping[str, Explainer],
    *,
    held_out: Any,
    measured: Any,
    notes: list[str],
    **options: Any,
) -> None:
    """Write the report, of one explanation or of those of several classes."""
    label = next(iter(found))
    several: Any = (found, importance) if len(found) > 1 else (found[label], importance[label])
    options |= {
        "importance": several[1],
        "held_out": held_out,
        "measured": measured,
        "notes": notes,
    }
    write_report(path, several[0], explainer=explainers[label], **options)


def file_names(labels: Any) -> dict[str, str]:
    """Return names for files by class: letters and digits of the label, and a number where two
    would be the same.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for k, label in enumerate(labels, 1):
        name = re.sub(r"\W+", "_", label).strip("_")[:40] or f"class_{k}"
        while name.lower() in taken:
            name = f"{name}_{k}"
        taken.add(name.lower())
        names[label] = name
    return names


def sentences(model: TableModel, found: Explained, y: Any) -> list[str]:
    """Return the rows farthest from the baseline in words: "Row 372: probability of malignant 0.97;
    it was malignant".
    """
    if model.task == "regression":
        return []
    moves = np.max([np.abs(ex.predictions - ex.base_values) for ex in found.values()], axis=0)
    words = []
    for row in np.argsort(-moves, kind="stable")[:SAID]:
        label = max(
            found, key=lambda each: abs(found[each].predictions[row] - found[each].base_values[row])
        )
        ex = found[label]
        was = f"; it was {y[row]}" if y is not None and y[row] else ""
        words.append(
            f"Row {ex.row_names[row]}: {ex.quantity} {_rounded(float(ex.predictions[row]))}{was}"
        )
    return words


def _rounded(probability: float) -> str:
    """Return a probability with two digits, and more where it would read as sure."""
    digits = (
        2
        if not 0 < min(probability, 1 - probability) < 0.005
        else min(6, 1 - math.floor(math.log10(min(probability, 1 - probability))))
    )
    return f"{probability:.{digits}f}"


def summary(model: TableModel, importance: Mapping[str, Importance]) -> dict[str, Any]:
    """Return what a program would ask of a model: task, classes, accuracy; importance by class
    where there are several.
    """
    known: dict[str, Any] = {"task": model.task}
    if model.task == "classification":
        held_out: Any = model.held_out
        known |= {
            "classes": list(model.classes),
            "accuracy": None if held_out is None else held_out.accuracy,
        }
    if len(importance) > 1:
        known["importance"] = {label: _ranked(each) for label, each in importance.items()}
    return known


def _ranked(importance: Importance) -> dict[str, float]:
    order = np.argsort(-importance.values, kind="stable")
    return {importance.feature_names[i]: float(importance.values[i]) for i in order}
