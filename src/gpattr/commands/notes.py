"""What to know before believing an explanation: what was filled in and decided, how good the model
is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpattr._core.readable_numbers import readable
from gpattr.report.facts import left_out
from gpattr.tables import Columns, TableModel
from gpattr.tables.held_out import LEVELS, HeldOut
from gpattr.tables.held_out_classes import EDGES, HeldOutClasses
from gpattr.tables.missing import missing
from gpattr.tables.model import MOST_CLASSIFIED, MOST_LEARNED

POOR = 0.3  # R² of rows left out, below which reasons are those of a model that knows little
FEW_ROWS = 20  # below which a warning is given
MOST_NAMED = 6  # columns that a note names
ROWS_PER_COLUMN = (
    10  # below which held-out figures of a model that has seen all rows in training are too good
)


def of_table(frame: Any, X: Any, columns: Columns) -> list[str]:
    """Return what was made of a table on the way to its features X."""
    notes = [*frame.attrs.get("notes", ()), *columns.notes]
    filled = {name: holes for name in columns.names if (holes := missing(frame[name])).any()}
    if filled:
        notes.append(
            _filled(
                {
                    name: (int(holes.sum()), _shown(X[name][holes].iloc[0]))
                    for name, holes in filled.items()
                }
            )
        )
    if columns.categories:
        notes.append(
            "Taken as categories:"
            f" {_listed(f'{name} ({len(found)})' for name, found in columns.categories.items())}."
        )
    if columns.dates:
        ranges = (
            f"{name} ({_shown(X[name].min())} to {_shown(X[name].max())})" for name in columns.dates
        )
        notes.append(f"Taken as dates: {_listed(ranges)}.")
    if columns.units:
        notes.append(
            "Taken as numbers:"
            f" {_listed(f'{name} ({unit})' for name, unit in columns.units.items())}."
        )
    return notes


def _filled(columns: dict[str, tuple[int, str]]) -> str:
    """Return what was filled in, {column: (number of values, what they became)}, in one sentence."""
    if len(columns) == 1:
        ((name, (count, value)),) = columns.items()
        values = (
            "1 missing value of {} was" if count == 1 else f"{count:,} missing values of {{}} were"
        )
        return f"{values.format(name)} filled in with {value}."
    total = sum(count for count, _ in columns.values())
    shown = _listed(f"{name} ({count:,} with {value})" for name, (count, value) in columns.items())
    return (
        f"{total:,} missing values were filled in with medians and the most frequent categories:"
        f" {shown}."
    )


def _listed(parts: Iterable[str]) -> str:
    """Return parts with commas between them, and how many more there are where they are many."""
    parts = list(parts)
    more = len(parts) - MOST_NAMED
    return ", ".join(parts if more < 2 else [*parts[:MOST_NAMED], f"and {more} others"])


def _shown(value: Any) -> str:
    """Return a number as people write it, a date without a time at midnight, or a category as it
    is.
    """
    if hasattr(value, "strftime"):
        return str(value.date()) if value == value.normalize() else str(value)[:16]
    return value if isinstance(value, str) else readable(value)


def of_few_rows(X: Any) -> list[str]:
    """Return a warning where a model is to learn from very few rows, or from fewer than it has
    features.
    """
    n, d = X.shape
    if n >= FEW_ROWS and n >= d:
        return []
    what = f"Only {n} rows" if n < FEW_ROWS else f"Only {n} rows for {d} features"
    return [
        f"{what}: too few to tell effects from chance; take the model and its intervals as a rough"
        " guess."
    ]


def judged_by(model: TableModel) -> HeldOut | None:
    """Return how well a model predicts held-out rows; an exact one knows what it would say of each
    training row without it.
    """
    return model.held_out if isinstance(model.held_out, HeldOut) else left_out(model.posterior)


def of_model(model: TableModel) -> list[str]:
    """Return how well a model predicts rows it has not seen, where that is known, and whether its
    approximation is too coarse.
    """
    if isinstance(model.held_out, HeldOutClasses):
        return _of_classes(model, model.held_out)
    judged = judged_by(model)
    notes = []
    if judged is not None:
        inside = f"{judged.inside[-1]:.0%} of targets in their {LEVELS[-1]:.0%} intervals"
        score = "" if judged.score is None else f"R² {judged.score:.2f}; "
        notes.append(f"Held-out rows ({judged.rows:,}): {score}{inside}.")
        if judged.score is not None and judged.score < POOR:
            notes.append(
                "The model predicts unseen rows poorly: its explanations are no more reliable than"
                " its predictions."
            )
        notes += _of_many_columns(model, judged.rows) if model.held_out is None else []
    advice = getattr(model.regressor, "advice_", "")
    return [*notes, advice] if advice else notes


def _of_many_columns(model: TableModel, rows: int) -> list[str]:
    """Return a caution where hyperparameters, which held-out rows helped to learn, are many for so
    few rows.
    """
    columns = next(iter(model.posteriors.values())).n_features
    if rows >= ROWS_PER_COLUMN * columns:
        return []
    return [
        f"With {rows:,} rows and {columns:,} columns these figures flatter the model, whose"
        " length-scales were learned from the same rows: test it on new ones."
    ]


def _of_classes(model: TableModel, held_out: HeldOutClasses) -> list[str]:
    """Return how often a classifier is right about rows it has not seen, and how far its
    probabilities can be believed.
    """
    notes = []
    trained = len(model.regressor._posteriors[0].inputs)
    if trained >= MOST_CLASSIFIED - len(model.classes):
        notes.append(
            f"The classifier is given {trained:,} rows at most, chosen at random in proportion to"
            " the classes."
        )
    if trained > MOST_LEARNED:
        notes.append(
            f"Its hyperparameters are learned from {MOST_LEARNED} of {trained:,} rows, chosen at"
            " random."
        )
    most = max(model.classes, key=model.class_counts.__getitem__)
    gain = held_out.accuracy - held_out.most_frequent
    doubt = (held_out.accuracy * (1.0 - held_out.accuracy) / held_out.rows) ** 0.5
    words = f"{held_out.accuracy:.0%} right (always saying {most}: {held_out.most_frequent:.0%})"
    if gain <= doubt:
        notes.append(
            f"Held-out rows: {words}. The model is no better than always naming the most frequent"
            " class: do not rely on its explanations."
        )
        return notes
    probability, share, rows = max(held_out.calibration, key=lambda each: each[2])
    place = max(k for k, edge in enumerate(EDGES[:-1]) if probability >= edge)
    sure = (
        f"where it says {EDGES[place]:.0%} to {EDGES[place + 1]:.0%}, {share:.0%} are right ({rows}"
        " rows)"
    )
    notes.append(f"Held-out rows: {words}; {sure}.")
    return [*notes, *_of_many_columns(model, sum(model.class_counts.values()))]
