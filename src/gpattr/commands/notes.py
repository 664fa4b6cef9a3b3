"""What to know before believing an explanation: what was filled in, what became a category, how good the model is."""

from __future__ import annotations

from typing import Any

from gpattr.report.facts import left_out_score
from gpattr.tables import Columns, TableModel
from gpattr.tables.columns import missing
from gpattr.tables.held_out import LEVELS
from gpattr.tables.held_out_classes import EDGES, HeldOutClasses
from gpattr.tables.model import MOST_CLASSIFIED, MOST_LEARNED

POOR = 0.3  # R² of rows left out, below which reasons are those of a model that knows little
MANY_ROWS = 2000  # from which on training an exact model takes minutes


def of_table(frame: Any, X: Any, columns: Columns) -> list[str]:
    """Return what was made of a table on the way to its features X."""
    notes = list(frame.attrs.get("notes", ()))
    for name in columns.names:
        holes = missing(frame[name])
        if holes.any():
            value = X[name][holes].iloc[0]
            shown = value if name in columns.categories else f"{value:.4g}"
            notes.append(f"{int(holes.sum())} missing values of {name} were filled in by {shown}.")
    if columns.categories:
        texts = ", ".join(f"{name} ({len(labels)})" for name, labels in columns.categories.items())
        notes.append(f"Taken as categories: {texts}.")
    return notes


def of_model(model: TableModel) -> list[str]:
    """Return how well a model predicts rows it has not seen, where that is known, and whether its approximation is too coarse."""
    held_out = model.held_out
    if isinstance(held_out, HeldOutClasses):
        return _of_classes(model, held_out)
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


def _of_classes(model: TableModel, held_out: HeldOutClasses) -> list[str]:
    """Return how often a classifier is right about rows it has not seen, and how far its probabilities can be believed."""
    notes = []
    trained = len(model.regressor._posteriors[0].inputs)
    if trained >= MOST_CLASSIFIED - len(model.classes):
        notes.append(f"The classifier is given {trained:,} rows at most, chosen at random, of each class its share.")
    if trained > MOST_LEARNED:
        notes.append(f"Its hyperparameters are learned from {MOST_LEARNED} of {trained:,} rows, chosen at random.")
    most = max(model.classes, key=model.class_counts.__getitem__)
    gain = held_out.accuracy - held_out.most_frequent
    doubt = (held_out.accuracy * (1.0 - held_out.accuracy) / held_out.rows) ** 0.5
    words = f"{held_out.accuracy:.0%} right (always saying {most}: {held_out.most_frequent:.0%})"
    if gain <= doubt:
        notes.append(
            f"Held-out rows: {words}. The model is hardly better than always naming the most frequent class: treat its "
            "explanations with equal caution."
        )
        return notes
    probability, share, rows = max(held_out.calibration, key=lambda each: each[2])
    place = max(k for k, edge in enumerate(EDGES[:-1]) if probability >= edge)
    sure = f"where it says {EDGES[place]:.0%} to {EDGES[place + 1]:.0%}, {share:.0%} are right ({rows} rows)"
    notes.append(f"Held-out rows: {words}; {sure}.".replace("%", " %"))
    return notes
