"""A product of marginals as a baseline."""

from __future__ import annotations

from numpy.typing import ArrayLike

from gpattr.operators.baselines import Baselines


class Marginals(Baselines):
    """Features drawn independently of each other, each from its column of ``rows`` (k, d).

    ``weights`` (k,) are not negative and sum to one; equal weights by default. Shapley values
    average over all combinations at the cost of a single baseline. Columns that encode one feature,
    or that are one player, are drawn together.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, gpattr.Marginals(X), attribution="shapley")
    >>> explainer([[1.0, 1.0]]).values.shape
    (1, 2)
    """

    def __init__(self, rows: ArrayLike, weights: ArrayLike | None = None) -> None:
        self._keep("rows", rows, weights)

    def __repr__(self) -> str:
        return f"Marginals{super().__repr__().removeprefix('Baselines')}"
