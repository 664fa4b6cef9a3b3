"""Notes on a table and its model: decisions, imputed values, and the model's quality."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpattr._core.array import to_numpy
from gpattr._core.readable_numbers import readable
from gpattr.estimators import RandomFeatureGPRegressor, SparseGPRegressor
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.explanation import Explanation
from gpattr.operators import Baselines
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.report.facts import innermost
from gpattr.tables import Columns, TableModel
from gpattr.tables.held_out import EDGES, LEVELS, HeldOutClasses
from gpattr.tables.missing import missing
from gpattr.tables.model import MOST_CLASSIFIED, MOST_LEARNED

POOR = 0.3  # R² of held-out rows below which explanations should not be trusted
FEW_ROWS = 20  # fewer give a warning
MOST_NAMED = 6  # columns, or rows, that a note names
SMALL = 50  # with fewer rows, a report opens with what can be said at all
UNKNOWN = 0.5  # share of the prior's standard deviation from which a baseline is unknown
COPIES = 0.1  # share of rows that repeat others from which a note says so
TARGET = "\0target"  # no column is called so
WORSE = 0.05  # accuracy by which a peer must be better to be named


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
    """Return one sentence on imputed values, {column: (number of values, new value)}."""
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


def of_training_rows(X: Any, y: Any) -> list[str]:
    """Return warnings of very few rows, and of rows that are there twice."""
    return [*_of_few_rows(X), *_of_copies(X, y)]


def _of_copies(X: Any, y: Any) -> list[str]:
    """Return how many rows are copies of others, which a model trained on these has seen."""
    copies = int(X.assign(**{TARGET: y}).duplicated().sum())
    if copies < COPIES * len(X):
        return []
    return [
        f"{copies:,} of {len(X):,} rows repeat others, with their target: if they are copies rather"
        " than measurements of their own, figures of held-out rows are too good."
    ]


def _of_few_rows(X: Any) -> list[str]:
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
    doubts = of_doubts(model)
    if isinstance(model.held_out, HeldOutClasses):
        return [*doubts, *_of_classes(model, model.held_out), of_intervals(model)]
    judged, notes = model.held_out, doubts
    if judged is not None:
        inside = f"{judged.inside[-1]:.0%} of targets inside their {LEVELS[-1]:.0%} intervals"
        score = "" if judged.score is None else f"R² {judged.score:.2f}; "
        notes.append(f"Held-out rows ({judged.rows:,}): {score}{inside}.")
        if judged.score is not None and 0.0 < judged.score < POOR:
            notes.append(
                "The model predicts unseen rows poorly: its explanations are no more reliable than"
                " its predictions."
            )
    if isinstance(model.regressor, (SparseGPRegressor, RandomFeatureGPRegressor)):
        notes.append(model.regressor.advice_)
    return [*(note for note in notes if note), of_intervals(model)]


def of_doubts(model: TableModel) -> list[str]:
    """Return reasons not to rely on a model, with which a report opens."""
    judged = model.held_out
    if isinstance(judged, HeldOutClasses):
        return [*_no_better(model, judged), *_of_peers(judged)]
    if judged is None or judged.score is None or judged.score > 0.0:
        return []
    return [
        "The model predicts unseen rows no better than the mean of the targets does: do not rely on"
        " its explanations."
    ]


def _no_better(model: TableModel, judged: HeldOutClasses) -> list[str]:
    """Return that a classifier is no better than a constant, to one standard error."""
    if judged.accuracy - judged.most_frequent > _doubt(judged):
        return []
    most = max(model.classes, key=model.class_counts.__getitem__)
    return [
        f"The model predicts unseen rows no better than always predicting {most} does: do not rely"
        " on its explanations."
    ]


def _doubt(judged: HeldOutClasses) -> float:
    """Return the standard error of the accuracy."""
    return (judged.accuracy * (1.0 - judged.accuracy) / judged.rows) ** 0.5


def _of_peers(judged: HeldOutClasses) -> list[str]:
    """Return which peer is clearly more often right on the same held-out rows."""
    name, accuracy = judged.best_peer or ("", 0.0)
    if accuracy - judged.accuracy <= WORSE or accuracy <= judged.most_frequent:
        return []
    return [
        f"On the same held-out rows {name} is correct in {accuracy:.0%}, this model in"
        f" {judged.accuracy:.0%}: there is more in the features than its explanations show."
    ]


def of_unknown_baseline(asked: Mapping[str, Explainer]) -> list[str]:
    """Return that models know little of the baseline with which all rows are compared."""
    for explainer in asked.values():
        if isinstance(explainer.baseline, Baselines):
            continue
        b = to_numpy(explainer.baseline)[None]
        moments = []
        for weight, part in explainer.posterior.components:
            inner = innermost(part)
            if not isinstance(inner, FunctionSpacePosterior):
                return []
            mean, std = (float(to_numpy(each)[0]) for each in part.predict(b, return_std=True))
            moments.append((weight, mean, std**2, float(to_numpy(inner.kernel.diagonal(b))[0])))
        weights, mean, var, prior = np.array(moments).T
        std = (weights @ (var + mean**2) - (weights @ mean) ** 2) ** 0.5
        if std > UNKNOWN * (weights @ prior) ** 0.5:
            median = explainer.baseline_name.startswith("median")
            return [
                "The model knows little of the baseline, with which all rows are compared: its"
                f" standard deviation there is {std / (weights @ prior) ** 0.5:.0%} of what it is"
                " without any data. Choose one nearer to the rows"
                + ("." if median else ", such as --baseline median.")
            ]
    return []


def of_small_table(model: TableModel, found: Mapping[str, Explanation], level: float) -> list[str]:
    """Return notes on a model of very few rows: on unseen rows, and on the signs of effects.

    ``found`` are the explanations of the rows by class.
    """
    inputs = next(iter(model.posteriors.values())).components[0][1].training_inputs
    if inputs is None or len(inputs) >= SMALL or not len(next(iter(found.values()))):
        return []
    sure = np.concatenate([_sure(each, level) for each in found.values()])
    names = next(iter(found.values())).feature_names
    typical, shares = int(np.median(sure.sum(axis=1))), sure.mean(axis=0)
    best = int(shares.argmax())
    signs = (
        f"the signs of {typical} of {len(names)} attributions are"
        if typical
        else "the sign of no attribution is"
    )
    which = f"; most often {names[best]}, in {shares[best]:.0%} of the rows" if shares[best] else ""
    return [
        f"What {len(inputs)} rows can say: {_of_unseen(model)}. In a typical row {signs} at least"
        f" {level:.0%} certain{which}."
    ]


def _sure(ex: Explanation, level: float) -> np.ndarray:
    """Return which attributions have a certain sign, (n, d)."""
    above = ex.prob_positive()
    return np.maximum(above, 1.0 - above) >= level


def _of_unseen(model: TableModel) -> str:
    """Return how much is known of a row that the model has not seen, in words."""
    judged = model.held_out
    if judged is None:
        return "there are too few to test the model on some of them"
    if isinstance(judged, HeldOutClasses):
        share = f"{judged.accuracy:.0%} ± {_doubt(judged):.0%}"
        return f"the class of an unseen row is found in {share}"
    if judged.width is None or judged.alone is None:
        return f"predictions of unseen rows are off by {readable(judged.error, 2)}"
    return (
        f"for an unseen row the {LEVELS[-1]:.0%} interval of {model.columns.target} is typically"
        f" {readable(judged.width, 2)} wide; without any feature it would be"
        f" {readable(judged.alone, 2)}"
    )


def of_marked(rows: Sequence[Any]) -> str:
    """Return which rows are marked in the tables, and left out of everything else."""
    named = ", ".join(map(str, rows[:MOST_NAMED]))
    more = f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else ""
    return (
        f"{len(rows):,} row{'s' * (len(rows) > 1)} ({named}{more}) cannot be explained accurately:"
        " the path from the baseline is too many length-scales long. What is not known is missing"
        " in attributions.csv, and left out of explanation.json, the pictures and the report."
    )


def of_intervals(model: TableModel) -> str:
    """Return a note on the contents of intervals: whether hyperparameters are integrated over."""
    most = max(len(part.components) for part in model.posteriors.values())
    if most > 1:
        return (
            "Intervals include that the hyperparameters are not known: they are those of a mixture"
            f" of {most} models."
        )
    return "Intervals take the hyperparameters for granted, as they were learned."


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
    words = (
        f"{held_out.accuracy:.0%} correct (always predicting {most}: {held_out.most_frequent:.0%})"
    )
    probability, share, rows = max(held_out.calibration, key=lambda each: each[2])
    place = max(k for k, edge in enumerate(EDGES[:-1]) if probability >= edge)
    calibration = (
        f"of predictions with a probability of {EDGES[place]:.0%} to {EDGES[place + 1]:.0%},"
        f" {share:.0%} are correct ({rows} row{'s' * (rows > 1)})"
    )
    notes.append(f"Held-out rows: {words}; {calibration}.")
    return notes
