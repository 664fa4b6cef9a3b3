"""The target of a table: a number for regression, or classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.validation import check_choice, check_text
from gpattr.exceptions import InvalidInputError
from gpattr.tables.columns import Columns, require_frame
from gpattr.tables.missing import missing
from gpattr.tables.numbers import Numbers, read_numbers, refuse_mixed_units

TASKS = ("regression", "classification")
MOST_CLASSES = 20
FEWEST_ROWS = 5
FEW_NUMBERS = 10  # distinct integers that may as well be classes


@dataclass(frozen=True)
class Target:
    """The ``task`` of a target, with a ``sentence`` on it, and the ``labels`` of its classes."""

    task: str
    labels: tuple[str, ...]
    sentence: str

    @classmethod
    def of(
        cls, frame: Any, columns: Columns, task: str | None = None, *, source: str = "table"
    ) -> Target:
        """Decide the task from the target's known values; ``task`` overrides the decision.

        Texts, booleans and two distinct values are classes; numbers, also as text, are not.
        """
        if task is not None:
            check_choice("task", task, TASKS)
        name = columns.target
        if name not in require_frame("frame", frame).columns:
            raise InvalidInputError(
                f"{source}: expected a column {name!r}; the columns are {list(frame.columns)}"
            )
        column = frame[name]
        known = column[~missing(column)]
        texts = label_texts(known)
        counts = texts.value_counts()
        found = read_numbers(known, name, source)
        numbers = found.values
        boolean = bool(counts.index.str.lower().isin(["true", "false"]).all())
        # "2A" and "2B" are not numbers with units: numbers have one unit, or none.
        numeric = (
            len(known) > 0
            and not numbers.isna().any()
            and not boolean
            and found.units.nunique() == 1
        )
        if not numeric and task != "classification":
            _require_not_mostly_numbers(found, known, name, source)
        if task == "regression" and not numeric:
            raise InvalidInputError(
                f"--task regression: expected numbers in the target {name!r}, got {texts.iloc[0]!r}"
            )
        if len(known) < FEWEST_ROWS:
            raise InvalidInputError(
                f"{source}: expected at least {FEWEST_ROWS} rows to learn from, got {len(known)}"
            )
        distinct = numbers.nunique() if numeric else len(counts)
        chosen = task or ("classification" if not numeric or distinct == 2 else "regression")
        if chosen == "regression":
            few = numeric and distinct <= FEW_NUMBERS and bool((numbers % 1 == 0).all())
            why = (
                f"The target has {distinct} distinct integers, taken as a quantity; --task"
                " classification treats them as classes."
            )
            return cls("regression", (), why if few and distinct > 2 and task is None else "")
        _require_classes(counts, name, source)
        return cls("classification", tuple(sorted(counts.index)), _sentence(counts, numeric, task))


def label_texts(column: Any) -> Any:
    """Return the labels of a column as text; equal numbers, and equal booleans, are one label."""
    texts = column.astype(str).str.strip()
    lower = texts.str.lower()
    if lower.isin(["true", "false"]).all():
        return lower.str.capitalize()
    found = read_numbers(column)
    if found.values.isna().any() or np.isinf(found.values).any() or (found.units != "").any():
        return texts
    return found.values.map(lambda number: f"{number:.15g}")  # 1.5 and 1.50 are one class


def known_labels(frame: Any, columns: Columns) -> np.ndarray | None:
    """Return the target's labels, "" where one is missing; None if the table has no target."""
    if columns.target not in require_frame("frame", frame).columns:
        return None
    column = frame[columns.target]
    there = ~missing(column)
    labels = column.astype(str).where(there, "")
    labels[there] = label_texts(column[there])
    return labels.to_numpy().astype(object)


def class_words(target: str, label: str) -> str:
    """Return a class in words: "malignant", but "churn = yes" if the label is not descriptive."""
    check_text("target", target)
    plain = check_text("label", label).lower() in (
        "yes",
        "no",
        "true",
        "false",
        "y",
        "n",
        "t",
        "f",
        "ja",
        "nein",
    )
    return f"{target} = {label}" if plain or _is_number(label) or len(label) < 2 else label


def _require_not_mostly_numbers(found: Numbers, known: Any, name: str, source: str) -> None:
    """Refuse a column of numbers with a few texts, or several units: errors rather than classes."""
    wrong = found.values.isna()
    if found.values.nunique() <= MOST_CLASSES:
        return
    if not wrong.any():
        refuse_mixed_units(found, known, name, source)
    elif wrong.mean() < 0.5:
        row, text = wrong.index[wrong.to_numpy().argmax()], known[wrong].iloc[0]
        raise InvalidInputError(
            f"{source}: expected a number in column {name!r}, got {str(text)!r} in row {row}"
        )


def _require_classes(counts: Any, name: str, source: str) -> None:
    """Refuse targets with too few or too many classes, or classes with a single row."""
    n, total = len(counts), int(counts.sum())
    if n < 2:
        raise InvalidInputError(
            f"{source}: expected at least two classes in the target {name!r}, got"
            f" {counts.index[0]!r} in every row"
        )
    if n == total:
        raise InvalidInputError(
            f"{source}: all {n} values of the target {name!r} are distinct; is it an identifier?"
        )
    if n > MOST_CLASSES:
        raise InvalidInputError(
            f"{source}: the target {name!r} has {n} classes; at most {MOST_CLASSES} are supported"
        )
    if counts.min() < 2:
        single = counts.index[counts.to_numpy().argmin()]
        raise InvalidInputError(
            f"{source}: the class {single!r} of the target {name!r} has a single row; at"
            " least two are needed"
        )


def _sentence(counts: Any, numeric: bool, task: str | None) -> str:
    shown = ", ".join(f"{label} {count:,}" for label, count in counts.items())
    override = "; --task regression treats it as a number" if numeric and task is None else ""
    return f"The target has {len(counts)} classes ({shown}): a classifier is trained{override}."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
