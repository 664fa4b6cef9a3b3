"""Numbers in text: decimal commas, thousands separators, currency and percent signs, units."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from gpattr.exceptions import InvalidInputError
from gpattr.tables.missing import first_row, missing

SIGNS = "$€£¥₹₽₩₺₫₴₪₦฿₱₡₵₸₼₾"
CODES = (
    "USD|EUR|GBP|JPY|CHF|CAD|AUD|NZD|SEK|NOK|DKK|CNY|INR|BRL|PLN|CZK|HUF|MXN|ZAR"
    "|kr|Kr|Rs|Fr|zł|Kč|Ft"
)
CURRENCY = re.compile(rf"[A-Za-z]{{0,3}}[{SIGNS}]|{CODES}")
UNIT = (
    rf"[%‰°][^\s\d]*|[A-Za-z]{{0,3}}[{SIGNS}]\S*|[^\W\d_][^\s,;:()]*(?: [^\W\d_][^\s,;:()]*){{0,2}}"
)
NUMBER = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[-+])?\s*(?P<before>{CURRENCY.pattern})?\s*(?P<inner>[-+])?\s*"
    r"(?P<digits>[0-9][0-9.,'’"
    rf" ]*|[.,][0-9]+)(?P<power>[eE][-+]?[0-9]+)?\s*(?P<after>{UNIT})?\s*(?P<close>\))?"
)
ONE_GROUP = r"[1-9][0-9]{{0,2}}\{0}[0-9]{{3}}"  # 1,234 is ambiguous
WRITTEN = str.maketrans(
    dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f", " ") | dict.fromkeys("−–", "-")
)


@dataclass(frozen=True)
class Numbers:
    """A column read as numbers: ``values``, NaN where there is none, and their ``units`` or "".

    ``thousands`` is an example of a number with one comma or point, before three digits, that was
    read as a thousands separator; ``separator`` is the thousands separator of the column, "" if
    there is none that could be mistaken for a decimal point.
    """

    values: Any
    units: Any
    thousands: str = ""
    separator: str = ""

    @property
    def unit(self) -> str:
        """The only unit there is, or ""."""
        found = self.units[self.values.notna()].unique()
        return str(found[0]) if len(found) == 1 else ""


def read_numbers(
    column: Any, name: str = "", source: str = "table", separator: str = "", point: str = ""
) -> Numbers:
    """Return a column as numbers with their units; refuse ambiguous points and commas.

    ``separator`` is the thousands separator, if it is known from an earlier table, and ``point``
    the decimal point of other columns. Where every comma stands before three digits, the comma of
    amounts with a currency or unit separates thousands unless it is the decimal point elsewhere.
    """
    import pandas as pd

    if column.dtype.kind == "m":
        return Numbers(
            column.dt.total_seconds() / 86_400.0,
            pd.Series("days", index=column.index, dtype=object),
        )
    none = pd.Series("", index=column.index, dtype=object)
    if column.dtype.kind in "iufb":
        return Numbers(column.astype(np.float64), none)
    untold = point != "," and separator != "."
    plain = _floats(column) if column.dtype == object and untold else None
    if plain is not None and not plain.isna().any():  # as a rule, and without looking at texts
        return Numbers(plain, none)
    gaps = missing(column)
    if plain is not None and not (plain.isna() & ~gaps).any():
        return Numbers(plain, none)
    text = column.astype(str).str.translate(WRITTEN).str.strip().astype(object).where(~gaps)
    values = _floats(text)
    parts = text.str.extract(rf"^{NUMBER.pattern}$").fillna("")
    parts = parts.where(parts["open"].ne("") == parts["close"].ne(""), "")
    units = (parts["before"] + " " + parts["after"]).str.strip().astype(object)
    currency = bool(units[~gaps].map(lambda unit: CURRENCY.fullmatch(unit) is not None).all())
    signs = parts["sign"] + parts["inner"]
    amounts = bool(units[~gaps].str.fullmatch(r"[^%‰]+").all())
    known = (column, currency, amounts, name, source)
    digits, thousands, separator = _with_points(
        parts["digits"].str.strip(), *known, separator=separator, point=point
    )
    magnitudes = _floats(digits + parts["power"])
    negative = signs.eq("-") ^ parts["open"].ne("")
    # Infinity has no digits, and is refused later.
    infinite = values.where(np.isinf(values))
    read = magnitudes.where(~negative, -magnitudes).where(signs.str.len() < 2).fillna(infinite)
    return Numbers(read, units.where(read.notna(), ""), thousands, separator)


def _with_points(
    digits: Any,
    column: Any,
    currency: bool,
    amounts: bool,
    name: str,
    source: str,
    *,
    separator: str,
    point: str,
) -> tuple[Any, str, str]:
    """Return digits with decimal points, an example of a chosen reading, and the separator.

    All numbers have a ``currency``, or they are ``amounts`` with some unit.
    """
    elsewhere = point
    spaced = digits.str.contains(r"[ '’]", regex=True)
    grouped = digits.str.fullmatch(r"[0-9]{1,3}(?:[ '’][0-9]{3})+(?:[.,][0-9]+)?")
    digits = digits.str.replace(r"[ '’]", "", regex=True).where(~spaced | grouped, "")
    chosen, found = "", separator
    # Thousands separators are recognised by one number that has both signs, or two groups.
    for between, point in ((".", ","), (",", ".")):
        groups = rf"(?:\{between}[0-9]{{2,3}})*\{between}[0-9]{{3}}"
        told = rf"[0-9]{{1,3}}(?:{groups}\{point}[0-9]+|\{between}[0-9]{{2,3}}{groups})"
        where = digits.str.contains(between, regex=False)
        having = digits[where]
        both_ways = len(having) > 0 and having.str.fullmatch(ONE_GROUP.format(between)).all()
        alone = not digits.str.contains(point, regex=False).any()
        if both_ways and alone and between == elsewhere and not separator:
            return digits.str.replace(",", ".", regex=False), "", point
        if both_ways and alone and between != separator:
            example = str(column[where].iloc[0]).strip()
            if elsewhere or (amounts and between == ","):
                chosen = example
            elif currency:
                raise InvalidInputError(
                    f"{source}: numbers such as {example!r} in column {name!r} are ambiguous; write"
                    " them without thousands separators, or with two decimals"
                )
        if chosen or separator == between or digits.str.fullmatch(told).any():
            whole = digits.str.fullmatch(
                rf"[0-9]{{1,3}}{groups}(?:\{point}[0-9]+)?|[0-9]*(?:\{point}[0-9]+)?"
            )
            digits, found = digits.where(whole, "").str.replace(between, "", regex=False), between
            break
    return digits.str.replace(",", ".", regex=False), chosen, found


def refuse_mixed_units(numbers: Numbers, column: Any, name: str, source: str) -> None:
    """Refuse numbers with different units, which cannot be compared."""
    units = numbers.units
    found = list(dict.fromkeys(units))
    signs = [unit for unit in found if CURRENCY.fullmatch(unit) or unit[:1] in ("%", "‰")]
    if len(found) > 1 and (signs or (len(found) == 2 and "" in found)):
        other = units != found[0]
        raise InvalidInputError(
            f"{source}: expected the same sign or unit in every row of column {name!r}, got"
            f" {str(column.iloc[0])!r} in row {column.index[0]} and {str(column[other].iloc[0])!r}"
            f" in row {first_row(other)}"
        )


def refuse_text(wrong: Any, column: Any, name: str, source: str) -> NoReturn:
    """Refuse the first value that is not a number."""
    text, row = str(column[wrong].iloc[0]), first_row(wrong)
    raise InvalidInputError(
        f"{source}: expected a number in column {name!r}, got {text!r} in row {row}"
    )


def _floats(texts: Any) -> Any:
    import pandas as pd

    values: Any = pd.to_numeric(texts, errors="coerce")
    return values.astype(np.float64)
