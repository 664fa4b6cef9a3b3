"""Decisions about the columns of a table: the kind of each, with notes."""

from __future__ import annotations

import re
import shlex
from itertools import chain, count
from typing import Any

import numpy as np

from gpattr.encoders.dates import Dates
from gpattr.exceptions import InvalidInputError
from gpattr.tables.dates import PIVOT, DateTexts, chosen_order, wall_clock
from gpattr.tables.missing import missing
from gpattr.tables.numbers import Numbers, read_numbers, refuse_mixed_units, refuse_text

FEW_NUMBERS, FEW_WORDS = 10, 3
MOST_CATEGORIES = 30
FEWEST_ROWS = 5  # of a category that is kept if not all can be
NEARLY_ALL = 0.9  # share of distinct texts among many in an identifier
FEWEST_NAMED = 10  # rows; fewer may all be distinct by chance
NAMED = re.compile(r"(?:.*[_\s.-])?(?i:id|index|idx|nr|no|number|key|uuid)|.*[a-z](?:Id|ID|Nr|No)")
RARE = 0.05  # share of words among numbers that count as missing values, however many they are
ALMOST_ALL = 0.95  # share of missing values from which a column is left out


class Decisions:
    """Decisions about the columns of a ``frame``, one after the other."""

    def __init__(self, frame: Any, source: str, strict: bool) -> None:
        self.frame, self.source, self.strict = frame, source, strict
        self.point = frame.attrs.get("point", "")  # the decimal point of a file
        self.categories: dict[str, tuple[str, ...]] = {}
        self.others: dict[str, str] = {}
        self.units: dict[str, str] = {}
        self.separators: dict[str, str] = {}
        self.words: dict[str, tuple[str, ...]] = {}  # among numbers, that count as missing
        self.dates: dict[str, Dates] = {}
        self.left_out: dict[str, str] = {}  # and why
        self.texts: dict[str, DateTexts] = {}
        self.grouped: list[str] = []
        self.numbered: list[str] = []
        self.readings: list[str] = []  # of ambiguous dates and amounts

    def look_at(self, name: str) -> None:
        """Decide the kind of a column; dates are read later."""
        column = self.frame[name]
        gaps = missing(column)
        known = column[~gaps]
        if not len(known) or (gaps.mean() >= ALMOST_ALL and len(column) > 1):
            self._leave_out(name, f"is {gaps.mean():.0%} missing" if len(known) else "is empty")
            return
        if known.dtype.kind == "M":
            self.dates[name] = Dates.of(wall_clock(known))
        elif (dates := DateTexts.of(known)) is not None:
            self.texts[name] = dates
        else:
            self._take_numbers(
                name, known, read_numbers(known, name, self.source, point=self.point)
            )

    def _take_numbers(self, name: str, known: Any, numbers: Numbers) -> None:
        """Take a column as numbers, or as categories if most of it is text."""
        wrong = numbers.values.isna()
        if 0 < wrong.mean() < 0.5 and self._take_words(name, known, wrong, numbers.values):
            kept = known[~wrong]
            self._take_numbers(name, kept, read_numbers(kept, name, self.source, point=self.point))
            return
        if not wrong.any() and not known.astype(str).str.strip().str.fullmatch(r"0\d+").any():
            refuse_mixed_units(numbers, known, name, self.source)  # 001 is a label, and so is 136A
        if wrong.any() or numbers.units.nunique() > 1:  # 1st, 2nd, 3rd
            self._take_categories(name, known.astype(str).str.strip())
            return
        if numbers.unit:
            self.units[name] = numbers.unit
        if numbers.separator:
            self.separators[name] = numbers.separator
        if numbers.thousands:
            self._decide(
                name,
                f"has ambiguous amounts such as {numbers.thousands}",
                "write them without thousands separators",
            )
            mark = "comma" if numbers.separator == "," else "point"
            self.readings.append(
                f"The {mark} in {numbers.thousands} ({name}) was read as a thousands separator."
            )
        if looks_numbered(numbers.values, name):
            self.numbered.append(name)

    def _take_words(self, name: str, known: Any, wrong: Any, values: Any) -> bool:
        """Decide about words among numbers: return whether they count as missing.

        Words among at most ten different numbers that repeat are categories, and so are the
        numbers. Signs, at most three different words and words in at most 5 % of the rows are
        missing values. If more words are codes such as M10, all values are labels. Digits that are
        no number, and other words, are errors.
        """
        texts = known[wrong].astype(str).str.strip()
        words = tuple(dict.fromkeys(texts))
        signs = not texts.str.contains(r"\w", regex=True).any()
        digits, letters = texts.str.contains(r"\d"), texts.str.contains(r"[^\W\d_]")
        malformed = digits & ~letters
        if not signs and values.nunique() <= min(FEW_NUMBERS, values.count() // 2):
            return False
        many = not signs and len(words) > FEW_WORDS and wrong.mean() > RARE
        if many and not malformed.any() and (digits & letters).mean() > 0.5:
            return False
        if many or malformed.any():
            refuse_text(wrong, known, name, self.source)
        self._decide(name, f"has {words[0]!r} among its numbers", "leave such cells empty")
        self.words[name] = words
        shown = ", ".join(repr(word) for word in words[:FEW_WORDS])
        rows = "1 row" if len(texts) == 1 else f"{len(texts):,} rows"
        more = "" if len(words) <= FEW_WORDS else f" and {len(words) - FEW_WORDS} more"
        self.readings.append(f"{shown}{more} in {name} ({rows}): taken as missing values.")
        return True

    def _take_categories(self, name: str, texts: Any) -> None:
        different = texts.nunique()
        if looks_like_identifier(texts):
            nearly = "" if different == len(texts) else "nearly "
            self._leave_out(name, f"has {different:,} values, {nearly}all distinct")
            return
        labels, other = frequent_labels(texts)
        if other is not None and len(labels) == 1:
            self._leave_out(
                name, f"has {different:,} distinct values, none in {FEWEST_ROWS} rows or more"
            )
            return
        if other is not None:
            self._decide(name, f"has {different:,} distinct values", "group them into at most 30")
            self.others[name] = other
            rows = int((~texts.isin(labels)).sum())
            self.grouped.append(
                f"{name} ({len(labels) - 1} of {different:,}; {rows:,} rows are"
                f" \u201c{other}\u201d)"
            )
        self.categories[name] = labels

    def read_dates(self) -> None:
        """Read the columns of dates; one may settle the order of day and month of another."""
        for name, texts in self.texts.items():
            texts.refuse_contradiction(name, self.source)
            order, chosen = chosen_order(
                texts, {other: found for other, found in self.texts.items() if other != name}
            )
            if chosen:
                example = texts.ambiguous
                self._decide(
                    name,
                    f"has ambiguous dates such as {example!r}",
                    "write them as 2024-12-31",
                )
                self.readings.append(
                    f"Dates such as {example} in {name} were read with the {order}."
                )
            if texts.short_years:
                self._decide(
                    name,
                    f"has two-digit years, such as {texts.short_years!r}",
                    "write them with four digits",
                )
                years = f"{1900 + PIVOT} to {1999 + PIVOT}"
                self.readings.append(f"Two-digit years in {name} were read as {years}.")
            if texts.zones > 1:
                self._decide(
                    name, f"has times in {texts.zones} time zones", "write them in one zone"
                )
                self.readings.append(
                    f"The times in {name} are in {texts.zones} time zones, and were read as local"
                    " times."
                )
            self.dates[name] = Dates.of(texts.dates(order, name, self.source), order)

    def notes(self) -> list[str]:
        """Return sentences on the decisions."""
        notes = list(self.readings)
        if self.left_out:
            notes.append(
                "Columns left out: "
                + ", ".join(f"{name} ({why})" for name, why in self.left_out.items())
                + "."
            )
        if self.grouped:
            notes.append(
                "The most frequent categories were kept and the others grouped:"
                f" {', '.join(self.grouped)}."
            )
        if self.numbered:
            several = len(self.numbered) > 1
            advice = " ".join(f"--drop {shlex.quote(name)}" for name in self.numbered)
            verb, what = ("look", "identifiers") if several else ("looks", "an identifier")
            notes.append(
                f"{' and '.join(self.numbered)} {verb} like {what}; leave"
                f" {'them' if several else 'it'} out with {advice}."
            )
        return notes

    def _leave_out(self, name: str, why: str) -> None:
        self._decide(name, why, "fill it in")
        self.left_out[name] = why

    def _decide(self, name: str, problem: str, advice: str) -> None:
        """Raise an error if ``strict`` asks for it."""
        if self.strict:
            advice = f"{advice} (--drop {shlex.quote(name)} leaves it out), or run without --strict"
            raise InvalidInputError(f"{self.source}: the column {name!r} {problem}; {advice}")


def frequent_labels(texts: Any) -> tuple[tuple[str, ...], str | None]:
    """Return the sorted labels of a column, and the one that stands for all others, or None.

    Of more than 30 texts, the 29 most frequent with at least 5 rows each are kept, and "other" is
    the last label. If no text has 5 rows, "other" is the only one.
    """
    counts = texts.value_counts()
    if len(counts) <= MOST_CATEGORIES:
        return tuple(sorted(counts.index)), None
    # Ties are broken by name, since the order of the rows is arbitrary.
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kept = [label for label, rows in ranked[: MOST_CATEGORIES - 1] if rows >= FEWEST_ROWS]
    taken = {label.casefold() for label in counts.index}
    names = chain(("other", "all others"), (f"all others ({i})" for i in count(2)))
    other = next(name for name in names if name not in taken)
    return (*sorted(kept), other), other


def looks_like_identifier(column: Any) -> bool:
    """Return whether texts are all distinct, or nearly so if there are many."""
    known = column[~missing(column)].astype(str).str.strip()
    different = known.nunique()
    if different == len(known):
        return len(known) >= FEWEST_NAMED
    return different > MOST_CATEGORIES and different >= NEARLY_ALL * len(known)


def looks_numbered(values: Any, name: str) -> bool:
    """Return whether distinct integers count the rows, or are named like an identifier."""
    values = np.asarray(values, dtype=np.float64)
    values = values[~np.isnan(values)]
    if (
        len(values) < FEWEST_NAMED
        or (values != np.floor(values)).any()
        or len(np.unique(values)) < len(values)
    ):
        return False
    return (
        bool(values[0] in (0, 1) and (np.diff(values) == 1).all())
        or NAMED.fullmatch(name.strip()) is not None
    )
