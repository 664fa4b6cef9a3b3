"""Explainers of a table's model: one for a regressor or two classes, one per class otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gpattr.explainer import importance
from gpattr.explainer.explainer import Explainer
from gpattr.explainer.probability import draw_work
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.importance import Importance
from gpattr.posteriors.bound import check_covariance_memory
from gpattr.tables import TableModel
from gpattr.tables.model import stratified
from gpattr.tables.target import class_words

MOST_ROWS, FEWEST_ROWS = 2000, 100  # rows × classes explained by default, and rows at least
MOST_WORK = 7e10  # multiplications for all draws: half a minute
DRAWS, FEWEST_DRAWS = 500, 100  # per row
MOST_DRAWN = 10_000_000  # attributions drawn in total: 80 MB
BATCH = 250  # rows explained between two steps of the progress bar
# Covariances, in all models of a mixture, beyond which wide tables have standard deviations alone:
# 0.4 GB, of which there are four copies at a time.
MOST_COVARIANCES = 50_000_000


def explainers(
    model: TableModel,
    baseline: Any,
    baseline_name: str | None,
    n: int,
    attribution: str = "integrated_gradients",
) -> dict[str, Explainer]:
    """Return the explainers of n rows by class, under "" for a regressor or two classes."""
    posteriors = model.posteriors
    options: dict[str, Any] = {"attribution": attribution, "errors": "mark"}
    if model.task == "classification" and attribution == "integrated_gradients":
        drawn = MOST_DRAWN // (max(n, 1) * len(model.columns.names) * len(posteriors))
        options |= {"output": "probability", "n_draws": int(np.clip(drawn, FEWEST_DRAWS, DRAWS))}
    found = {}
    for label, posterior in posteriors.items():
        name = target_words(model, label)
        options |= {"target_name": name, "baseline_name": baseline_name}
        found[label if len(posteriors) > 1 else ""] = Explainer(posterior, baseline, **options)
    return found


def target_words(model: TableModel, label: str) -> str:
    """Return the explained quantity in words: the target with its unit, or the class."""
    target = model.columns.target
    if model.task == "regression":
        unit = model.columns.units.get(target)
        return f"{target} ({unit})" if unit else target
    return class_words(target, label) + (" against the rest" if len(model.classes) > 2 else "")


def default_rows(model: TableModel, asked: Mapping[str, Explainer], X: Any, y: Any) -> np.ndarray:
    """Return the rows explained by default: all, or a random sample for a classifier of many.

    Of probabilities there are as many as `MOST_WORK` is enough for, and at least `FEWEST_ROWS`.
    """
    if model.task == "regression":
        return np.arange(len(X))
    most = MOST_ROWS // len(asked)
    if all(each.output == "probability" for each in asked.values()):
        work = sum(float(draw_work(each.task, X).mean()) for each in asked.values())
        most = min(most, max(FEWEST_ROWS, int(MOST_WORK / work)))
    return stratified(np.full(len(X), "") if y is None else np.asarray(y, dtype=str), most)


def explained(
    explainer: Explainer,
    X: Any,
    track: Callable[[Iterator[Any], int], Iterable[Any]],
    *,
    full: bool = False,
) -> Explanation:
    """Explain the rows of X in batches, which pass through ``track(batches, number of them)``.

    Covariances between very many features are left out, unless ``full``.
    """
    (n, d), models = X.shape, len(explainer.posterior.components)
    wide = not full and n * d * d * models > MOST_COVARIANCES
    if not wide:
        check_covariance_memory(n, d)
    batches = explainer.batches(X, uncertainty="std" if wide else "cov", batch_size=BATCH)
    return Explanation.concatenate(track(batches, math.ceil(n / BATCH)))


def importance_of(explainer: Explainer, X: Any, ex: Explanation) -> Importance:
    """Return the importance of the features over all rows of X, which ``ex`` explains."""
    return importance.importance_of(explainer.task, X, known=ex)
