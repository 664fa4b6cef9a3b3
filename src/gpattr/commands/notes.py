"""Notes on a table and its model: what was decided, what was filled in, how good the model is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from gpattr._core.readable_numbers import readable
from gpattr.estimators import RandomFeatureGPRegressor, SparseGPRegressor
from gpattr.tables import Columns, TableModel
from gpattr.tables.held_out import LEVELS
from gpattr.tables.held_out_classes import EDGES, HeldOutClasses
from gpattr.tables.missing import missing
from gpattr.tables.model import MOST_CLASSIFIED, MOST_LEARNED

POOR = 0.3  # R² of held-out rows below which explanations should not be trusted
FEW_ROWS = 20  # fewer give a warning
MOST_NAMED = 6  # columns, or rows, that a note names
ROWS_PER_COLUMN = 10  # with fewer, held-out figures of a model trained on all rows are optimistic


def of_table(frame: Any, X: Any, columns: Columns) -> list[str]:
    """Return how a table became the features X: values filled in, categories, dates, units."""
    notes = [*frame.attrs.get("notes", ()), *columns.notes]
    filled = {name: gaps for name in columns.names if (gaps := missing(frame[name])).any()}
    if filled:
        notes.append(
            _filled(
                {
                    name: (int(gaps.sum()), _shown(X[name][gaps].iloc[0]))
                    for name, gaps in filled.items()
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
    """Return one sentence on what was filled in, {column: (number of values, new value)}."""
    if len(columns) == 1:
        ((name, (count, value)),) = columns.items()
        values = (
            "1 missing value in {} was" if count == 1 else f"{count:,} missing values in {{}} were"
        )
        return f"{values.format(name)} filled with {value}."
    total = sum(count for count, _ in columns.values())
    shown = _listed(f"{name} ({count:,} with {value})" for name, (count, value) in columns.items())
    return (
        f"{total:,} missing values were filled with medians and the most frequent categories:"
        f" {shown}."
    )


def _listed(parts: Iterable[str]) -> str:
    """Return parts separated by commas; of many, the first and the number of others."""
    parts = list(parts)
    more = len(parts) - MOST_NAMED
    return ", ".join(parts if more < 2 else [*parts[:MOST_NAMED], f"and {more} others"])


def _shown(value: Any) -> str:
    """Return a readable number, a date (without the time at midnight), or a category as it is."""
    if isinstance(value, pd.Timestamp):
        return str(value.date()) if value == value.normalize() else str(value)[:16]
    return value if isinstance(value, str) else readable(value)


def of_few_rows(X: Any) -> list[str]:
    """Return a warning if there are very few rows, or fewer rows than features."""
    n, d = X.shape
    if n >= FEW_ROWS and n >= d:
        return []
    what = f"Only {n} rows" if n < FEW_ROWS else f"Only {n} rows for {d} features"
    return [
        f"{what}: too few to tell effects from chance; treat the model and its intervals as a"
        " rough guess."
    ]


def of_model(model: TableModel) -> list[str]:
    """Return how well a model predicts held-out rows, and whether its approximation is coarse."""
    if isinstance(model.held_out, HeldOutClasses):
        return [*_of_classes(model, model.held_out), of_intervals(model)]
    judged, notes = model.held_out, []
    if judged is not None:
        inside = f"{judged.inside[-1]:.0%} of targets inside their {LEVELS[-1]:.0%} intervals"
        score = "" if judged.score is None else f"R² {judged.score:.2f}; "
        notes.append(f"Held-out rows ({judged.rows:,}): {score}{inside}.")
        if judged.score is not None and judged.score <= 0.0:
            notes.append(
                "The model predicts unseen rows no better than the mean of the targets does: do"
                " not rely on its explanations."
            )
        elif judged.score is not None and judged.score < POOR:
            notes.append(
                "The model predicts unseen rows poorly: its explanations are no more reliable than"
                " its predictions."
            )
    if isinstance(model.regressor, (SparseGPRegressor, RandomFeatureGPRegressor)):
        notes.append(model.regressor.advice_)
    return [*(note for note in notes if note), of_intervals(model)]


def of_marked(rows: Sequence[Any]) -> str:
    """Return which rows are marked in the tables, and left out of everything else."""
    named = ", ".join(map(str, rows[:MOST_NAMED]))
    more = f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else ""
    return (
        f"{len(rows):,} row{'s' * (len(rows) > 1)} ({named}{more}) cannot be explained accurately:"
        " the path from the baseline is too many length-scales long. What is not known is missing"
        " in attributions.csv, and left out of the pictures and the report."
    )


def of_intervals(model: TableModel) -> str:
    """Return what intervals include: whether hyperparameters are integrated over."""
    most = max(len(part.components) for part in model.posteriors.values())
    if most > 1:
        return (
            "Intervals include that the hyperparameters are not known: they are those of a mixture"
            f" of {most} models."
        )
    return "Intervals take the hyperparameters for granted, as they were learned."


def _of_many_columns(model: TableModel, rows: int) -> list[str]:
    """Return a caution if hyperparameters, also learned from held-out rows, are many."""
    columns = next(iter(model.posteriors.values())).n_features
    if rows >= ROWS_PER_COLUMN * columns:
        return []
    return [
        f"With {rows:,} rows and {columns:,} columns these figures are optimistic: the"
        " length-scales were learned from the same rows. Test the model on new ones."
    ]


def _of_classes(model: TableModel, held_out: HeldOutClasses) -> list[str]:
    """Return how often a classifier is right on held-out rows, and how well calibrated it is."""
    notes = []
    trained = len(model.regressor._posteriors[0].training_inputs)
    if trained >= MOST_CLASSIFIED - len(model.classes):
        notes.append(
            f"The classifier uses at most {trained:,} rows, chosen at random in proportion to the"
            " classes."
        )
    if trained > MOST_LEARNED:
        notes.append(
            f"Its hyperparameters are learned from {MOST_LEARNED} of {trained:,} rows, chosen at"
            " random."
        )
    most = max(model.classes, key=model.class_counts.__getitem__)
    gain = held_out.accuracy - held_out.most_frequent
    doubt = (held_out.accuracy * (1.0 - held_out.accuracy) / held_out.rows) ** 0.5
    words = (
        f"{held_out.accuracy:.0%} correct (always predicting {most}: {held_out.most_frequent:.0%})"
    )
    if gain <= doubt:
        notes.append(
            f"Held-out rows: {words}. The model is no better than always predicting the most"
            " frequent class: do not rely on its explanations."
        )
        return notes
    probability, share, rows = max(held_out.calibration, key=lambda each: each[2])
    place = max(k for k, edge in enumerate(EDGES[:-1]) if probability >= edge)
    calibration = (
        f"of predictions with a probability of {EDGES[place]:.0%} to {EDGES[place + 1]:.0%},"
        f" {share:.0%} are correct ({rows} rows)"
    )
    notes.append(f"Held-out rows: {words}; {calibration}.")
    return [*notes, *_of_many_columns(model, sum(model.class_counts.values()))]
