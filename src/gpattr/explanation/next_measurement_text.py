"""Next measurements as columns, as text and as HTML, short enough to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpattr._core.array import Array
from gpattr._core.readable_numbers import readable, readable_all
from gpattr.explanation.attribution_names import remark
from gpattr.explanation.text import SHOWN, Table, as_html, as_lines

if TYPE_CHECKING:
    from gpattr.explanation.next_measurement import NextMeasurement

LEVEL = 0.95


def plain(found: NextMeasurement) -> str:
    """Return next measurements as lines of text."""
    return as_lines(_heading(found), _table(found), _notes(found))


def html(found: NextMeasurement) -> str:
    """Return next measurements as an HTML table for notebooks."""
    return as_html(_heading(found), _table(found), _notes(found))


def columns(found: NextMeasurement, level: float) -> dict[str, Array]:
    """Return what is said about each candidate, (c,) each."""
    reduction, total = found.total_reduction, found.variances.sum()

    def average(numbers: Array) -> Array:
        return numbers.reshape(len(found), -1).mean(axis=1)

    return {
        "variance_reduction": reduction,
        "share": reduction / total if total > 0 else 0.0 * reduction,
        "expected_sign_certainty": average(found.expected_sign_certainty),
        "prob_settled": average(found.prob_settled(level)),
    }


def subject(found: NextMeasurement) -> str:
    """Return whose variance it is: "the attribution of bmi at 3 rows"."""
    n, d = len(found.row_names), len(found.feature_names)
    what = f"of {found.feature}" if found.feature is not None else f"of {d} features"
    plural = "s" * (n * (1 if found.feature is not None else d) != 1)
    name = found.row_names[0]
    rows = f"{n:,} rows" if n > 1 else f"row {name}" if isinstance(name, int) else name
    return f"the attribution{plural} {what} at {rows}"


def _heading(found: NextMeasurement) -> list[str]:
    c = len(found)
    baseline = f"baseline: {found.baseline_name}" if found.baseline_name else ""
    kind = "; ".join(filter(None, (remark(found.attribution), baseline)))
    low, high = (readable(level) for level in (found.noise.min(), found.noise.max()))
    noise = f"noise variance {low}" + ("" if low == high else f" to {high}")
    certain = float(np.mean(found.sign_certainty))
    return [
        f"Next measurement of the {found.quantity}: {c:,} candidate{'s' * (c != 1)} for"
        f" {subject(found)}",
        "; ".join(filter(None, (kind, noise))),
        f"variance now {readable(float(found.variances.sum()))}, sign certain to {certain:.3f}"
        + (" on average" if found.means.size != 1 else ""),
    ]


def _table(found: NextMeasurement) -> Table:
    of = columns(found, LEVEL)
    order = np.argsort(-of["variance_reduction"], kind="stable")[:SHOWN]
    header = ["candidate", "reduction", "share", "sign then", f"P(sign > {LEVEL:g})"]
    sizes = readable_all(of["variance_reduction"][order])
    return header, [
        [
            str(found.candidate_names[i]),
            size,
            f"{of['share'][i]:.1%}",
            f"{of['expected_sign_certainty'][i]:.3f}",
            f"{of['prob_settled'][i]:.3f}",
        ]
        for i, size in zip(order, sizes, strict=True)
    ]


def _notes(found: NextMeasurement) -> list[str]:
    hidden = len(found) - SHOWN
    return [f"… and {hidden:,} smaller"] if hidden > 0 else []
