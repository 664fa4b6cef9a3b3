"""Words of the pictures: names short enough for the axes, titles, numbers beside bars."""

from __future__ import annotations

import textwrap

import numpy as np

from gpattr._core.array import Array
from gpattr._core.readable_numbers import readable, readable_all
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.result import remark
from gpattr.explanation.text import has_baseline

LETTER = 0.54 / 72  # inches that a letter is wide, about, for each point of its size
LONGEST = 34  # letters of a name at a tick


def wrapped(text: str, width: float, size: float) -> str:
    """Return a text broken into lines of ``width`` inches, about, at a font of ``size`` points."""
    letters = max(int(width / (LETTER * size)), 12)
    return "\n".join(
        line
        for part in text.split("\n")
        for line in textwrap.wrap(part, letters, break_on_hyphens=False)
    )


def short(name: str, longest: int = LONGEST) -> str:
    """Return a name in one line, without its middle where it is too long for the axes."""
    name = " ".join(name.split())
    return name if len(name) <= longest else f"{name[: longest - 11]}…{name[-10:]}"


def count_of(shown: int, rows: int) -> str:
    """Return how many rows a picture has: "30 rows", or "5,000 of 100,000 rows" of a sample."""
    plural = "s" * (rows != 1)
    return f"{rows:,} row{plural}" if shown == rows else f"{shown:,} of {rows:,} rows"


def baseline_text(name: str, attribution: str) -> str:
    """Return the attribution, where it must be named, and the baseline; "" where there is none."""
    baseline = f"baseline: {short(name, 80)}" if name else ""
    return "; ".join(text for text in (remark(attribution), baseline) if text)


def baseline_of(ex: Explanation, before: str = "") -> str:
    """Return the attributions' baseline in words, after another remark."""
    baseline = baseline_text(ex.baseline_name if has_baseline(ex) else "", ex.attribution)
    return "; ".join(text for text in (before, baseline) if text)


def comma(text: str, more: str) -> str:
    """Return a text, with more of it after a comma if there is more."""
    return f"{text}, {more}" if more else text


def not_shown(shown: int, total: int, what: str = "smaller") -> str:
    """Return how many of all are left out: "3 smaller not shown"; "" if none is."""
    return f"{total - shown:,} {what} not shown" if total > shown else ""


def row_title(ex: Explanation) -> str:
    """Return the title of the only row: its number, or its name."""
    name = ex.row_names[0]
    return f"Row {name}" if isinstance(name, int) else short(name)


def prediction_title(ex: Explanation) -> str:
    """Return the only row with its prediction and the baseline's."""
    if not has_baseline(ex):
        return f"{row_title(ex)}: {ex.quantity} {readable(float(ex.predictions[0]), minus=True)}"
    end, start = (
        readable(float(value[0]), minus=True) for value in (ex.predictions, ex.base_values)
    )
    return f"{row_title(ex)}: {ex.quantity} {end}, at the baseline {start}"


def names_of(ex: Explanation) -> list[str]:
    """Return the names of the features as they stand at ticks and in legends."""
    return [short(name) for name in ex.feature_names]


def named(ex: Explanation) -> list[str]:
    """Return the features of the only row with their values or categories; a group has none."""
    texts = {
        name: readable(x, minus=True)
        for name, x in zip(ex.feature_names, ex.data[0], strict=True)
        if not np.isnan(x)
    }
    texts |= {name: short(labels[0], 20) for name, labels in ex.labels.items()}
    return [
        f"{short(name, LONGEST + 4 - len(texts[name]))} = {texts[name]}"
        if name in texts
        else short(name)
        for name in ex.feature_names
    ]


def steps(values: Array) -> list[str]:
    """Return signed numbers for bars: three digits for the largest, four from 1000 on."""
    return readable_all(
        values, 3 if np.abs(values).max(initial=0.0) < 1000 else 4, sign="+", minus=True
    )


def share(level: float) -> str:
    """Return a credible level as per cent: "95%"."""
    return f"{100 * level:.4g}%"


def percent(probability: float) -> str:
    """Return a probability as per cent, rounded down: numbers below 95% must not read 95%."""
    return (
        ""
        if np.isnan(probability)
        else "> 99.9%"
        if probability > 0.999
        else f"{np.floor(1000 * probability + 1e-9) / 10:g}%"
    )
