"""Comparisons as text and as frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.readable_numbers import readable_all
from gpattr.explanation.text import Table, as_html, as_lines

if TYPE_CHECKING:
    import pandas as pd

    from gpattr.explanation.comparison import Comparison

SHOWN, LEVEL = 10, 0.95


def plain(comparison: Comparison) -> str:
    """Return the comparison as lines of text."""
    return as_lines(_heading(comparison), _table(comparison), _notes(comparison))


def html(comparison: Comparison) -> str:
    """Return the comparison as an HTML table for notebooks."""
    return as_html(_heading(comparison), _table(comparison), _notes(comparison))


def to_frame(comparison: Comparison, level: float) -> pd.DataFrame:
    """Return one line per row and feature."""
    import pandas as pd

    n, d = comparison.shape
    columns: dict[str, Any] = {
        "row": np.repeat(np.array(comparison.row_names, dtype=object), d),
        "feature": np.tile(np.array(comparison.feature_names, dtype=object), n),
        "first": comparison.first.values.ravel(),
        "second": comparison.second.values.ravel(),
        "difference": comparison.values.ravel(),
    }
    changed = comparison.sign_changed(level)
    if comparison.std is not None:
        lower, upper = comparison.interval(level)
        columns |= {"std": comparison.std.ravel(), "lower": lower.ravel(), "upper": upper.ravel()}
        columns["prob_sign_changed"] = comparison.prob_sign_changed().ravel()
    columns["sign_changed"] = changed.ravel()
    return pd.DataFrame(columns)


def _heading(comparison: Comparison) -> list[str]:
    n, d = comparison.shape
    first, second = comparison.first, comparison.second
    what = "" if first.quantity == "prediction" else f" of the {first.quantity}"
    rows, features = f"{n:,} row{'s' * (n != 1)}", f"{d} feature{'s' * (d != 1)}"
    lines = [f"Comparison{what}: {rows} × {features}, second less first"]
    if first.baseline_name != second.baseline_name:
        lines.append(f"baselines: {first.baseline_name}, then {second.baseline_name}")
    return [*lines, comparison.assumption]


def _table(comparison: Comparison) -> Table:
    """Return the only row feature by feature, or summaries over rows."""
    values, std = comparison.values, comparison.std
    order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")[:SHOWN]
    names = [comparison.feature_names[i] for i in order]
    changed = comparison.sign_changed(LEVEL)[:, order]
    if len(values) == 1:
        header = ["feature", "first", "second", "difference"]
        parts = [comparison.first.values[0, order], comparison.second.values[0, order]]
        parts.append(values[0, order])
    else:
        header = ["feature", "mean difference", "mean |difference|"]
        parts = [values.mean(axis=0)[order], np.abs(values).mean(axis=0)[order]]
    if std is not None:
        header.append("std" if len(values) == 1 else "mean std")
        parts.append(std.mean(axis=0)[order])
    largest = max(float(np.abs(part).max(initial=0.0)) for part in parts)
    cells = [readable_all(part, largest=largest) for part in parts]
    if len(values) > 1:
        header.append("signs that changed")
        cells.append([f"{count}" for count in changed.sum(axis=0)])
    elif std is None:
        header.append("sign changed")
        cells.append(["yes" if each else "no" for each in changed[0]])
    else:
        header.append("P(sign changed)")
        cells.append([f"{chance:.3f}" for chance in comparison.prob_sign_changed()[0, order]])
    return header, [list(line) for line in zip(names, *cells, strict=True)]


def _notes(comparison: Comparison) -> list[str]:
    hidden = comparison.shape[1] - SHOWN
    notes = [f"and {hidden} more features"] if hidden > 0 else []
    if comparison.dependence == "unknown":
        notes.append("(gpattr.compare(explainer_a, explainer_b, X) knows it)")
    return notes
