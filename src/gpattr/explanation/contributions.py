"""Shares of training rows in one attribution: an array with its names and context."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpattr.explanation.result import INTEGRATED_GRADIENTS


class Contributions(np.ndarray):
    """Shares of the training rows, (m,), in the attribution of ``feature`` to the ``quantity``.

    ``row_name`` is the name of the explained row, or None. Arrays computed from this one carry no
    such description.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> shares = explainer.training_contributions([1.0, 0.0], "x0")
    >>> shares.feature, shares.shape
    ('x0', (30,))
    """

    feature: str = ""
    quantity: str = "prediction"
    row_name: str | int | None = None
    baseline_name: str = ""
    attribution: str = INTEGRATED_GRADIENTS

    @classmethod
    def of(
        cls,
        shares: np.ndarray,
        feature: str,
        quantity: str,
        row_name: str | int | None,
        baseline_name: str,
        attribution: str = INTEGRATED_GRADIENTS,
    ) -> Contributions:
        """Return shares that are about this."""
        result = np.array(shares).view(cls)
        result.feature, result.quantity, result.row_name = feature, quantity, row_name
        result.baseline_name, result.attribution = baseline_name, attribution
        return result

    def __array_wrap__(
        self, array: np.ndarray, context: Any = None, return_scalar: bool = False
    ) -> Any:
        return np.asarray(array)[()]
