"""An explanation as text and as HTML, short enough to read."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.readable_numbers import readable, readable_all

if TYPE_CHECKING:
    from gpattr.explanation.explanation import Explanation

SHOWN = 10
DOUBTFUL = 0.01  # the share of a variance by which it may be wrong before that is said
Table = tuple[list[str], list[list[str]]]  # header, lines


def plain(ex: Explanation) -> str:
    """Return the explanation as lines of text."""
    header, lines = _table(ex)
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    aligned = [
        "  "
        + "  ".join(
            [
                line[0].ljust(widths[0]),
                *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True)),
            ]
        )
        for line in [header, *lines]
    ]
    return "\n".join(
        [*_heading(ex), *(line.rstrip() for line in aligned), *(f"  {note}" for note in _notes(ex))]
    )


def html(ex: Explanation) -> str:
    """Return the explanation as an HTML table for notebooks."""

    def line(cells: list[str], tag: str) -> str:
        sides = ["left"] + ["right"] * (len(cells) - 1)
        return "".join(
            f"<{tag} style='text-align:{s}'>{escape(c)}</{tag}>"
            for c, s in zip(cells, sides, strict=True)
        )

    header, lines = _table(ex)
    title, *subtitle = _heading(ex)
    body = "".join(f"<tr>{line(cells, 'td')}</tr>" for cells in lines)
    above, below = (
        "".join(f"<div>{escape(text)}</div>" for text in texts) for texts in (subtitle, _notes(ex))
    )
    table = f"<table><thead><tr>{line(header, 'th')}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><strong>{escape(title)}</strong>{above}{table}{below}</div>"


def _heading(ex: Explanation) -> list[str]:
    n, d = ex.shape
    what = "" if ex.quantity == "prediction" else f" of the {ex.quantity}"
    lines = [f"Explanation{what}: {n:,} row{'s' * (n != 1)} × {d} feature{'s' * (d != 1)}"]
    mixture = (
        "" if ex.component_weights is None else f"mixture of {len(ex.component_weights)} models; "
    )
    if hasattr(ex, "draws"):
        sampled: Any = ex
        mixture = (
            f"spread from {len(sampled.draws)} draws, good to"
            f" {sampled.draw_error.max(initial=1e-5):.0e}; means by "
        )
    lines.append(
        f"baseline: {ex.baseline_name}; {mixture}{ex.method}, error at most"
        f" {ex.error.max(initial=0.0):.0e}"
    )
    if note := variance_note(ex):
        lines.append(note)
    if n == 1:
        change = ex.predictions[0] - ex.base_values[0]
        prediction, base, change, sign = (
            *_aligned([ex.predictions[0], ex.base_values[0], abs(change)]),
            "−" if change < 0 else "+",
        )
        name = ex.quantity if ex.quantity.startswith("predicted ") else ex.quantity.split(" of ")[0]
        lines.append(
            f"row {ex.row_names[0]}: {name} {prediction} = baseline {base} {sign} {change}"
        )
    return lines


def variance_note(ex: Explanation) -> str:
    """Return a sentence about variances that rounding or integration leaves few digits of; mostly
    none.
    """
    if ex.var is None or ex.cov_error is None or not len(ex):
        return ""
    largest = ex.var.max(axis=1, initial=0.0)
    share = np.divide(ex.cov_error, largest, out=np.zeros_like(largest), where=largest > 0)
    doubtful = int((share > DOUBTFUL).sum())
    if not doubtful:
        return ""
    rows = "its row" if len(ex) == 1 else f"{doubtful:,} of {len(ex):,} rows"
    return (
        f"Variances of {rows} are small differences of large numbers, and may be off by up to"
        f" {share.max():.0%} (cov_error); more noise, or targets without an exact trend, would"
        " leave more digits."
    )


def _table(ex: Explanation) -> Table:
    if len(ex) == 0:
        return ["feature"], [[name] for name in ex.feature_names[:SHOWN]]
    return _one_row(ex) if len(ex) == 1 else _many_rows(ex)


def _one_row(ex: Explanation) -> Table:
    header, columns = (
        ["feature", "data"],
        [_inputs(ex.data[0], [ex.labels.get(name, ("–",))[0] for name in ex.feature_names])],
    )
    if ex.baseline_weights is None:
        header.append("baseline")
        columns.append(_inputs(ex.baselines[0], ["–"] * ex.shape[1]))
    header.append("attribution")
    columns.append(_aligned(ex.values[0], "+"))
    if ex.var is not None:
        header += ["± std", "P(> 0)"]
        columns += [_aligned(np.sqrt(ex.var[0])), [f"{p:.3f}" for p in ex.prob_positive()[0]]]
    return header, _lines(ex, np.abs(ex.values[0]), columns)


def _many_rows(ex: Explanation) -> Table:
    size = np.abs(ex.values).mean(axis=0)
    header = ["feature", "mean |values|", "min", "max"]
    columns = [(size, ""), (ex.values.min(axis=0), "+"), (ex.values.max(axis=0), "+")]
    if ex.var is not None:
        header.append("rms std")
        columns.append((np.sqrt(ex.var.mean(axis=0)), ""))
    largest = max(float(np.abs(values).max(initial=0.0)) for values, _ in columns)
    columns = [_aligned(values, sign, largest) for values, sign in columns]
    return header, _lines(ex, size, columns)


def _lines(ex: Explanation, size: np.ndarray, columns: list[list[str]]) -> list[list[str]]:
    order = np.argsort(-size, kind="stable")[:SHOWN]
    return [[ex.feature_names[i], *(column[i] for column in columns)] for i in order]


def _notes(ex: Explanation) -> list[str]:
    hidden = ex.shape[1] - SHOWN
    notes = [f"… and {hidden} smaller"] if hidden > 0 else []
    if len(ex) == 1:
        elsewhere = ex.predictions[0] - ex.base_values[0] + ex.delta[0] - ex.values[0].sum()
        if abs(elsewhere) > ex.error[0] * (1 + ex.shape[1]):
            notes.append(f"features left out of this selection: {readable(elsewhere, 3, sign='+')}")
    return notes


def _inputs(values: np.ndarray, texts: Iterable[str]) -> list[str]:
    return [
        text if value != value else readable(value, 6)
        for value, text in zip(values, texts, strict=True)
    ]


def _aligned(values: Iterable[float], sign: str = "", largest: float | None = None) -> list[str]:
    """Return numbers rounded at the same place, four digits for the largest."""
    return readable_all(values, sign=sign, largest=largest)
