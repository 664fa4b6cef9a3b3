"""What to know before believing an explanation: what was filled in and decided, how good the model is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpattr.report.facts import left_out_score
from gpattr.tables import Columns, TableModel
from gpattr.tables.held_out import LEVELS
from gpattr.tables.missing import missing

POOR = 0.3  # R² of rows left out, below which reasons are those of a model that knows little
MOST_NAMED = 6  # columns that a note names
MANY_ROWS = 2000  # from which on training an exact model takes minutes


def of_table(frame: Any, X: Any, columns: Columns) -> list[str]:
    """Return what was made of a table on the way to its features X."""
    notes = [*frame.attrs.get("notes", ()), *columns.notes]
    filled = {name: holes for name in columns.names if (holes := missing(frame[name])).any()}
    if filled:
        notes.append(_filled({name: (int(holes.sum()), _shown(X[name][holes].iloc[0])) for name, holes in filled.items()}))
    if columns.categories:
        notes.append(f"Taken as categories: {_listed(f'{name} ({len(found)})' for name, found in columns.categories.items())}.")
    if columns.dates:
        ranges = (f"{name} ({_shown(X[name].min())} to {_shown(X[name].max())})" for name in columns.dates)
        notes.append(f"Taken as dates: {_listed(ranges)}.")
    if columns.units:
        notes.append(f"Taken as numbers: {_listed(f'{name} ({unit})' for name, unit in columns.units.items())}.")
    return notes


def _filled(columns: dict[str, tuple[int, str]]) -> str:
    """Return what was filled in, {column: (number of values, what they became)}, in one sentence."""
    if len(columns) == 1:
        ((name, (count, value)),) = columns.items()
        values = "1 missing value of {} was" if count == 1 else f"{count:,} missing values of {{}} were"
        return f"{values.format(name)} filled in by {value}."
    total = sum(count for count, _ in columns.values())
    shown = _listed(f"{name} ({count:,} by {value})" for name, (count, value) in columns.items())
    return f"{total:,} missing values were filled in by medians and the most frequent categories: {shown}."


def _listed(parts: Iterable[str]) -> str:
    """Return parts with commas between them, and how many more there are where they are many."""
    parts = list(parts)
    more = len(parts) - MOST_NAMED
    return ", ".join(parts if more < 2 else [*parts[:MOST_NAMED], f"and {more} others"])


def _shown(value: Any) -> str:
    """Return a number with few digits, a date without a time at midnight, or a category as it is."""
    if hasattr(value, "strftime"):
        return str(value.date()) if value == value.normalize() else str(value)[:16]
    return value if isinstance(value, str) else f"{value:.4g}"


def of_model(model: TableModel) -> list[str]:
    """Return how well a model predicts rows it has not seen, where that is known, and whether its approximation is too coarse."""
    held_out = model.held_out
    score = left_out_score(model.posterior) if held_out is None else held_out.score
    notes = []
    if score is not None and score < POOR:
        notes.append(f"The model predicts rows it has not seen poorly (R² {score:.2f}): trust its reasons as little.")
    elif score is not None:
        what = "left out" if held_out is None else "held out"
        notes.append(f"Rows that are {what} are predicted with R² {score:.2f}.")
    if held_out is not None:
        parts = (f"{share:.0%} in {level:.0%} intervals" for level, share in zip(LEVELS, held_out.inside, strict=True))
        notes.append(
            f"Of {held_out.rows} targets that are held out lie {', '.join(parts)} (the posterior is formed without them; "
            "hyperparameters are learned from all rows)."
        )
    advice = getattr(model.regressor, "advice_", "")
    return [*notes, advice] if advice else notes
