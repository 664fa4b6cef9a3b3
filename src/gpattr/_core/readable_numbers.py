"""Readable numbers: few digits, thousands separators, powers of ten only where needed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

SMALLEST, LARGEST = 1e-4, 1e12  # between them no power of ten is written
SEPARATED = 10_000  # from here on thousands are separated: 2024 may be a year


def readable(value: float, digits: int = 4, *, sign: str = "", minus: bool = False) -> str:
    """Return a number rounded to ``digits`` significant digits: "690,400", "0.0123", "−3.5".

    Digits of whole numbers are kept. ``sign="+"`` writes a plus too, ``minus=True`` a proper minus,
    "−"; zero has no sign.
    """
    (text,) = readable_all([value], digits, sign=sign, minus=minus)
    if "." not in text:
        return text
    number, power, exponent = text.partition("e")
    return number.rstrip("0").rstrip(".") + power + exponent


def readable_all(
    values: Iterable[float],
    digits: int = 4,
    *,
    sign: str = "",
    minus: bool = False,
    largest: float | None = None,
) -> list[str]:
    """Return numbers rounded to the same decimal place, set by ``digits`` of the largest.

    ``largest`` is the size of the largest where not all of them are given. Where all are whole
    numbers they are kept whole; zeros after rounding have no sign, and what is not a number is "–".
    """
    values = [float(value) for value in values]
    finite = [abs(value) for value in values if math.isfinite(value)]
    top = max(finite, default=0.0) if largest is None else float(largest)
    places = digits - 1 - math.floor(math.log10(top)) if top > 0 else 0
    whole = largest is None and all(size.is_integer() for size in finite)
    if top > 0 and not SMALLEST <= top < LARGEST:
        style, places = f"{sign}.{digits - 1}e", None
    else:
        comma = "," if top >= SEPARATED or round(top, places) >= SEPARATED else ""
        style, places = (
            f"{sign}{comma}.{0 if whole else max(places, 0)}f",
            None if whole else places,
        )
    return [_written(value, style, places, minus) for value in values]


def _written(value: float, style: str, places: int | None, minus: bool) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        text = "∞" if value > 0 else "-∞"
    else:
        text = format(value if places is None else round(value, places), style)
        if not any(digit in text for digit in "123456789"):
            text = text.lstrip("+-")
    return text.replace("-", "−", 1) if minus and text.startswith("-") else text


def readable_ticks(values: Iterable[float]) -> list[str]:
    """Return numbers at the ticks of an axis, with as many decimals as tell them apart."""
    values = [float(value) for value in values]
    top = max(map(abs, values), default=0.0)
    if top and not SMALLEST <= top < LARGEST:
        return [readable(value, minus=True) for value in values]
    steps = [abs(b - a) for a, b in pairwise(sorted(values)) if b > a]
    tolerance = 1e-3 * min(steps, default=1e-3 * top)
    decimals = next(
        (
            p
            for p in range(15)
            if all(abs(round(value, p) - value) <= tolerance for value in values)
        ),
        15,
    )
    style = f"{',' if top >= SEPARATED else ''}.{decimals}f"
    return [_written(value, style, decimals, minus=True) for value in values]
