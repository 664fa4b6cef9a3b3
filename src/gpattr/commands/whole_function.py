"""Curves and Sobol indices of a table's model, as ``gpattr explain`` computes them by default.

What they cost is bounded: by the number of curves, of rows that they average over, and of features
that have an index by themselves. What would take too long is left out, and a sentence says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpattr.exceptions import GpattrError, InvalidInputError
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.dependence import Dependence
from gpattr.explanation.importance import Importance
from gpattr.kernels import Constant, Polynomial, SquaredExponential
from gpattr.posteriors import Posterior
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.report.facts import innermost
from gpattr.sobol import SobolIndices, sobol_indices

NONE = "none"  # instead of features that have curves
MOST_CURVES, FEWEST_CURVES = 12, 2  # of a class
ALL_CURVES = 24  # of all classes together
MOST_OF_ALL = 15_000  # training rows of all models of a mixture together
MOST_AVERAGED, MOST_SLOW = 2000, 500  # rows of the background; for kernels that have no products
INDEX_WORK = 1200  # classes × features with an index × columns: half a minute
FEWEST_INDICES = 3


@dataclass(frozen=True)
class WholeFunction:
    """Curves and indices by class, under "" if there is only one; notes on omissions."""

    curves: Mapping[str, tuple[Dependence, ...]] = field(default_factory=dict)
    indices: Mapping[str, SobolIndices] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def chosen_features(texts: Sequence[str], names: Sequence[str]) -> tuple[str, ...] | None:
    """Return the features named by --dependence, () for ``none``, None if it is not given.

    A text is the name of a feature, which may have commas, or several names separated by commas.
    """
    if not texts:
        return None
    chosen: list[str] = []
    for text in texts:
        parts = [text] if text in names else [part.strip() for part in text.split(",")]
        chosen += [part for part in parts if part]
    unknown = [name for name in chosen if name not in names]
    if unknown == [NONE] == chosen:
        return ()
    if unknown or not chosen:
        found = repr(unknown[0]) if unknown else "no name"
        raise InvalidInputError(
            f"--dependence: expected features among {list(names)}, or {NONE}, got {found}"
        )
    return tuple(dict.fromkeys(chosen))


def whole_function(
    explainers: Mapping[str, Explainer],
    importances: Mapping[str, Importance],
    X: Any,
    chosen: tuple[str, ...] | None,
) -> WholeFunction:
    """Return curves of the ``chosen`` features, or of the strongest, and indices of all features.

    They are of the latent function, and average over the training rows; where the model has none,
    or many, over rows of the table X.
    """
    first = next(iter(explainers.values())).posterior
    rows, sampled = _background(first, X)
    curves: dict[str, tuple[Dependence, ...]] = {}
    indices: dict[str, SobolIndices] = {}
    notes = []
    try:
        for label, explainer in explainers.items():
            names = _strongest(importances[label], len(explainers)) if chosen is None else chosen
            latent = _latent(explainer)
            curves[label] = tuple(latent.dependence(name, background=rows) for name in names)
    except GpattrError as error:
        curves = {}
        notes.append(f"Partial dependence is left out: {_reason(error)}.")
    try:
        too_slow = _too_slow(first, len(explainers))
        if too_slow:
            notes.append(too_slow)
        else:
            for label, explainer in explainers.items():
                indices[label] = _indices(explainer, importances[label], rows, len(explainers))
    except GpattrError as error:
        indices = {}
        notes.append(f"Sobol indices are left out: {_reason(error)}.")
    if sampled and (any(curves.values()) or indices):
        notes.insert(0, sampled)
    return WholeFunction(curves, indices, tuple(notes))


def _quick(posterior: Posterior) -> bool:
    """Return whether averages are quick: over products of columns, or in a small mixture."""
    parts = [innermost(part) for _, part in posterior.components]
    if len(parts) > 1:
        return sum(part.size for part in parts) <= MOST_OF_ALL
    return isinstance(parts[0], FunctionSpacePosterior) and all(
        isinstance(leaf, (Constant, Polynomial, SquaredExponential))
        for leaf in parts[0].kernel.leaves()
    )


def _background(posterior: Posterior, X: Any) -> tuple[Any, str]:
    """Return rows to average over, None for the training rows, and a note on a sample."""
    most = MOST_AVERAGED if _quick(posterior) else MOST_SLOW
    known = posterior.training_inputs
    if known is not None and len(known) <= most:
        return None, ""
    if len(X) <= most:
        return X, ""
    some = np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))
    note = f"Partial dependence is averaged over {most:,} of {len(X):,} rows, chosen at random."
    return X.iloc[some], note


def _strongest(importance: Importance, classes: int) -> list[str]:
    most = int(np.clip(ALL_CURVES // classes, FEWEST_CURVES, MOST_CURVES))
    order = np.argsort(-importance.values, kind="stable")[:most]
    return [importance.feature_names[i] for i in order]


def _latent(explainer: Explainer) -> Explainer:
    """Return the explainer of log odds instead of probabilities."""
    if explainer.output == "latent":
        return explainer
    return Explainer(explainer.posterior, target_name=explainer.target_name)


def _too_slow(posterior: Posterior, classes: int) -> str:
    """Return a sentence if indices would take minutes."""
    if not _quick(posterior):
        why = "for this kind of model"
    elif INDEX_WORK // (classes * posterior.n_columns) < min(FEWEST_INDICES, posterior.n_features):
        why = f"for {posterior.n_columns} columns" + (f" and {classes} classes" * (classes > 1))
    else:
        return ""
    return f"Sobol indices are left out: {why} they take too long; gpattr.sobol_indices has them."


def _indices(explainer: Explainer, importance: Importance, rows: Any, classes: int) -> SobolIndices:
    """Return the indices of all features, or of the strongest and of the others together."""
    posterior, names = explainer.posterior, importance.feature_names
    most = INDEX_WORK // (classes * posterior.n_columns)
    groups = None
    if len(names) > most:
        order = np.argsort(-importance.values, kind="stable")
        weak = [names[i] for i in np.sort(order[most - 1 :])]
        groups = {_new(f"the {len(weak)} other features", names): weak}
    return sobol_indices(posterior, rows, groups=groups, target_name=explainer.target_name)


def _new(name: str, names: Sequence[str]) -> str:
    """Return a name that no feature has."""
    while name in names:
        name += "*"
    return name


def _reason(error: GpattrError) -> str:
    """Return an error without the argument it names, which nobody gave here."""
    text = str(error)
    return (text.partition(": ")[2] or text).rstrip(".")
