"""Interactions of two players in Sobol indices: Sᵢⱼ = (Vᵢⱼ − Vᵢ − Vⱼ)/V."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpattr._core.array import Array
from gpattr._core.frozen import Frozen
from gpattr._core.normal import check_level
from gpattr._core.validation import Names
from gpattr.explanation.pairs import Pairs

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class SobolPairs(Frozen):
    """The share of the variance that two features have only together, for k ``pairs`` (i, j).

    ``draws`` (R, k) are from the posterior of the indices, ``means`` (k,) their posterior means,
    ``plug_ins`` (k,) the indices of the posterior mean function, and ``errors`` (k,) the numerical
    errors. Matrices are symmetric, (P, P), with NaN on the diagonal and for pairs that were not
    asked for.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] * X[:, 1])
    >>> indices = gpattr.sobol_indices(model, gpattr.Uniform(-1.0, 1.0), pairs=True)
    >>> indices.pairs.values.round(2)
    array([[nan,  1.],
           [ 1., nan]])
    """

    pairs: Pairs
    feature_names: Names
    means: Array
    plug_ins: Array
    draws: Array
    errors: Array

    @property
    def values(self) -> Array:
        """The posterior mean of each index, (P, P)."""
        return self._matrix(self.means)

    @property
    def std(self) -> Array:
        """The posterior standard deviation of each index, (P, P)."""
        return self._matrix(self.draws.std(axis=0, ddof=1))

    @property
    def plug_in(self) -> Array:
        """The indices of the posterior mean function, (P, P)."""
        return self._matrix(self.plug_ins)

    @property
    def error(self) -> Array:
        """The numerical error of each index, (P, P)."""
        return self._matrix(self.errors)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the lower and upper ends, each (P, P), of the central credible intervals."""
        lower, upper = central(self.draws, level)
        return self._matrix(lower), self._matrix(upper)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return one line per pair, the largest first."""
        import pandas as pd

        lower, upper = central(self.draws, level)
        names = np.array(self.feature_names, dtype=object)[self._places]
        columns = {
            "feature": names[:, 0],
            "with": names[:, 1],
            "value": self.means,
            "std": self.draws.std(axis=0, ddof=1),
            "lower": lower,
            "upper": upper,
            "plug_in": self.plug_ins,
            "error": self.errors,
        }
        frame = pd.DataFrame(columns).sort_values("value", ascending=False, kind="stable")
        return frame.reset_index(drop=True)

    def __repr__(self) -> str:
        return f"Sobol indices of {len(self.pairs)} pairs\n{self.to_frame().to_string()}"

    @property
    def _places(self) -> Array:
        return np.array(self.pairs, dtype=int).reshape(-1, 2)

    def _matrix(self, numbers: Array) -> Array:
        P = len(self.feature_names)
        matrix = np.full((P, P), np.nan)
        i, j = self._places.T
        matrix[i, j] = matrix[j, i] = numbers
        matrix.flags.writeable = False
        return matrix


def central(draws: Array, level: float) -> tuple[Array, Array]:
    """Return the ends of the central credible intervals of draws (R, k), each (k,)."""
    tail = 0.5 * (1.0 - check_level(level))
    lower, upper = np.quantile(draws, [tail, 1.0 - tail], axis=0)
    return lower, upper
