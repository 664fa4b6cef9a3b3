"""Comparison of two explanations, or of two explainers: the changes, and their certainty.

The attributions of one function f at two baselines are both linear in f, so their difference is
Gaussian. Its covariance needs that between the two, which no single explanation has. It follows
from a third: with the average M = ½(A + B), which is the attribution whose baseline is both,

    Cov[A, B] + Cov[B, A] = 4 Cov[M] − Cov[A] − Cov[B],
    Cov[B − A] = 2 Cov[A] + 2 Cov[B] − 4 Cov[M].
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpattr._core.array import to_numpy
from gpattr._core.validation import check_choice
from gpattr.distributions import Gaussian, Point
from gpattr.exceptions import InvalidInputError, SeveralOutputsError
from gpattr.explainer.explainer import Explainer
from gpattr.explainer.task import Task
from gpattr.explanation.comparison import EXACT, INDEPENDENT, KNOWN, UNKNOWN, Comparison
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.multi_output import MultiOutputExplanation
from gpattr.operators import Baselines, Marginals, Operator

AUTO = "auto"
ROUNDING = 1e-14  # of the variances that are subtracted


def compare(
    ex_a: Explanation | Explainer,
    ex_b: Explanation | Explainer,
    X: ArrayLike | None = None,
    *,
    uncertainty: str = "std",
    dependence: str = AUTO,
) -> Comparison:
    """Return the differences, ``ex_b`` less ``ex_a``, between two explanations of the same rows.

    They are of two models, or of one at two baselines. Explanations do not contain the covariance
    between each other. Those of separate models are taken as independent; those that predict the
    same in every row are taken as being of one model, and get bounds in place of the covariance.
    Two explainers and rows are compared exactly where both have the same model and attribution and
    differ in their baseline.

    Features are matched by their names. Explanations of other rows, features, quantities or kinds
    of attributions are refused.

    Parameters
    ----------
    ex_a, ex_b : Explanation or Explainer
        The explanations or explainers to compare.
    X : array or frame (n, d), optional
        The rows, for two explainers.
    uncertainty : "std", "cov" or "none"
        The uncertainty that two explainers compute.
    dependence : "auto", "independent" or "unknown"
        The relation between the two; see `Comparison`.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> other = gpattr.GPRegressor().fit(X, 2.0 * X[:, 0] - 2.0 * X[:, 1] ** 2)
    >>> a, b = (gpattr.Explainer(m, baseline="zeros")([[1.0, 1.0]]) for m in (model, other))
    >>> gpattr.compare(a, b).values.round(2)
    array([[ 1., -1.]])
    """
    check_choice("dependence", dependence, (AUTO, INDEPENDENT, UNKNOWN))
    if isinstance(ex_a, Explainer):
        return _of_explainers(ex_a, ex_b, X, uncertainty, dependence)
    if X is not None:
        raise InvalidInputError(
            "X: expected rows only with two explainers; explanations have their own rows"
        )
    first, second = _matched(_single("ex_a", ex_a), _single("ex_b", ex_b))
    if dependence == AUTO and _known(first, second):
        dependence = KNOWN
    if dependence == AUTO:
        same = np.array_equal(first.predictions, second.predictions)
        dependence = UNKNOWN if same else INDEPENDENT
    return _compared(first, second, dependence)


def _of_explainers(a: Explainer, b: Any, X: Any, uncertainty: str, dependence: str) -> Comparison:
    if not isinstance(b, Explainer):
        raise InvalidInputError(
            f"ex_b: expected an Explainer, as ex_a is one, got a {type(b).__name__}"
        )
    if X is None:
        raise InvalidInputError("X: two explainers are compared on rows; give X")
    first, second = (
        _single(name, explainer(X, uncertainty=uncertainty))
        for name, explainer in (("ex_a", a), ("ex_b", b))
    )
    first, second = _matched(first, second)
    if dependence == AUTO and _known(first, second):
        dependence = KNOWN
    if dependence != AUTO:
        return _compared(first, second, dependence)
    if not _same_function(a, b, X):
        return _compared(first, second, INDEPENDENT)
    both = _both(a, b)
    if both is None:
        return _compared(first, second, UNKNOWN)
    return _exact(first, second, both.explain_table(X, None, uncertainty))


def _known(first: Explanation, second: Explanation) -> bool:
    """Return whether both are numbers without uncertainty."""
    return isinstance(first.distribution, Point) and isinstance(second.distribution, Point)


def _same_function(a: Explainer, b: Explainer, X: Any) -> bool:
    """Return whether two explainers have the same model: the object, or the same predictions."""
    if a.posterior is b.posterior:
        return True
    one, two = (
        [to_numpy(part) for part in e.posterior.moments(rows, return_std=True)]
        for e, rows in ((e, e.task.reader.matrix("X", X)) for e in (a, b))
    )
    return all(np.array_equal(x, y) for x, y in zip(one, two, strict=True))


def _both(a: Explainer, b: Explainer) -> Task | None:
    """Return the task whose baseline is the baselines of both; None if there is none."""
    parts = []
    for explainer in (a, b):
        baseline = explainer.baseline
        plain = explainer.output == "latent" and not isinstance(explainer.attribution, Operator)
        if not plain or baseline is None or isinstance(baseline, Marginals):
            return None
        if not isinstance(baseline, Baselines):
            baseline = Baselines(to_numpy(baseline)[None, :])
        parts.append(baseline)
    points = np.concatenate([to_numpy(part.points) for part in parts])
    weights = 0.5 * np.concatenate([to_numpy(part.weights) for part in parts])
    return replace(a.task, baseline=Baselines(points, weights))


def _single(name: str, ex: Any) -> Explanation:
    if isinstance(ex, MultiOutputExplanation):
        outputs = ex.output_names
        raise SeveralOutputsError(
            f"{name}: a comparison is of one output, ex[{outputs[0]!r}]; the outputs are"
            f" {list(outputs)}"
        )
    if not isinstance(ex, Explanation):
        raise InvalidInputError(
            f"{name}: expected a gpattr Explanation, or an Explainer, got a {type(ex).__name__}"
        )
    ex.require_features(name)
    return ex


def _matched(first: Explanation, second: Explanation) -> tuple[Explanation, Explanation]:
    """Return two explanations with their features in one order; refuse incomparable ones."""
    for what in ("quantity", "attribution"):
        one, two = getattr(first, what), getattr(second, what)
        if one != two:
            raise InvalidInputError(f"ex_b: expected the {what} {one!r}, as in ex_a, got {two!r}")
    names = first.feature_names
    if set(names) != set(second.feature_names):
        raise InvalidInputError(
            f"ex_b: expected the features {list(names)}, as in ex_a, got"
            f" {list(second.feature_names)}"
        )
    if names != second.feature_names:
        second = second[:, list(names)]
    if len(first) != len(second):
        raise InvalidInputError(
            f"ex_b: expected the same {len(first)} rows, as in ex_a, got {len(second)}"
        )
    if not np.array_equal(first.data, second.data, equal_nan=True) or first.labels != second.labels:
        differs = (first.data != second.data) & ~(np.isnan(first.data) & np.isnan(second.data))
        where = f"; row {int(differs.any(axis=1).argmax())} differs" if differs.any() else ""
        raise InvalidInputError(f"ex_b: expected the same rows as in ex_a{where}")
    return first, second


def _compared(first: Explanation, second: Explanation, dependence: str) -> Comparison:
    values = second.values - first.values
    var = cov = None
    if first.var is not None and second.var is not None:
        if dependence == UNKNOWN:
            var = (np.sqrt(first.var) + np.sqrt(second.var)) ** 2
        else:
            var = first.var + second.var
            if first.cov is not None and second.cov is not None:
                cov = first.cov + second.cov
    return Comparison(first, second, Gaussian(values, var, cov), dependence)


def _exact(first: Explanation, second: Explanation, both: Explanation) -> Comparison:
    """Return the comparison of attributions at two baselines, and at ``both`` at once."""
    values = second.values - first.values
    if first.var is None or second.var is None or both.var is None:
        return Comparison(first, second, Gaussian(values), EXACT)
    size = first.var + second.var
    var = 2.0 * size - 4.0 * both.var
    var = np.where(var > ROUNDING * size, var, 0.0)
    cov = None
    if first.cov is not None and second.cov is not None and both.cov is not None:
        cov = 2.0 * (first.cov + second.cov) - 4.0 * both.cov
        diagonal = np.arange(cov.shape[1])
        cov[:, diagonal, diagonal] = var
    return Comparison(first, second, Gaussian(values, var, cov), EXACT, 0.5 * (size - var))
