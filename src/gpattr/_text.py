"""An explanation as text and as HTML, short enough to read."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpattr.explanation import Explanation

SHOWN = 10


def plain(ex: Explanation) -> str:
    """Return the explanation as lines of text."""
    title, subtitle, header, lines = _table(ex)
    cells = [header, *lines]
    widths = [max(len(line[i]) for line in cells) for i in range(len(header))]
    body = [
        "  " + "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True)))
        for line in cells
    ]
    return "\n".join([title, *subtitle, *(line.rstrip() for line in body), *_rest(ex)])


def html(ex: Explanation) -> str:
    """Return the explanation as an HTML table for notebooks."""
    title, subtitle, header, lines = _table(ex)
    head = "".join(f"<th style='text-align:{'left' if i == 0 else 'right'}'>{escape(cell)}</th>" for i, cell in enumerate(header))
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:{'left' if i == 0 else 'right'}'>{escape(cell)}</td>" for i, cell in enumerate(line))
        + "</tr>"
        for line in lines
    )
    notes = "".join(f"<br>{escape(line)}" for line in [*subtitle, *_rest(ex)])
    return f"<div><strong>{escape(title)}</strong>{notes}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _table(ex: Explanation) -> tuple[str, list[str], list[str], list[list[str]]]:
    n, d = ex.shape
    title = f"Explanation: {n} row{'s' * (n != 1)} × {d} feature{'s' * (d != 1)}"
    subtitle = [f"baseline: {ex.baseline_name}; {ex.method}, error at most {ex.error.max(initial=0.0):.0e}"]
    if n == 1:
        change = ex.predictions[0] - ex.base_values[0]
        subtitle.append(
            f"row {ex.row_names[0]}: prediction {ex.predictions[0]:.4g} = baseline's {ex.base_values[0]:.4g} {_signed(change)}"
        )
        return title, subtitle, *_one_row(ex)
    return title, subtitle, *_many_rows(ex)


def _one_row(ex: Explanation) -> tuple[list[str], list[list[str]]]:
    header = ["feature", "value", "attribution"]
    columns = [
        ["–" if value != value else f"{value:.4g}" for value in ex.data[0]],
        [_signed(value) for value in ex.values[0]],
    ]
    if ex.var is not None:
        header += ["± std", "P(> 0)"]
        columns += [[f"{std:.2g}" for std in np.sqrt(ex.var[0])], [f"{p:.3f}" for p in ex.prob_positive()[0]]]
    return header, _lines(ex, np.abs(ex.values[0]), columns)


def _many_rows(ex: Explanation) -> tuple[list[str], list[list[str]]]:
    size = np.abs(ex.values).mean(axis=0)
    header = ["feature", "mean |attribution|", "smallest", "largest"]
    columns = [
        [f"{value:.4g}" for value in size],
        [_signed(value) for value in ex.values.min(axis=0, initial=np.inf)],
        [_signed(value) for value in ex.values.max(axis=0, initial=-np.inf)],
    ]
    if ex.var is not None:
        header.append("typical std")
        columns.append([f"{std:.2g}" for std in np.sqrt(ex.var.mean(axis=0))])
    return header, _lines(ex, size, columns)


def _lines(ex: Explanation, size: np.ndarray, columns: list[list[str]]) -> list[list[str]]:
    order = np.argsort(-size, kind="stable")[:SHOWN]
    return [[ex.feature_names[i], *(column[i] for column in columns)] for i in order]


def _rest(ex: Explanation) -> list[str]:
    hidden = ex.shape[1] - SHOWN
    return [f"  … and {hidden} smaller"] if hidden > 0 else []


def _signed(value: float) -> str:
    return f"{value:+.3g}"
