"""How well an approximate model predicts rows it has not seen, and how often its intervals hold them.

Hyperparameters, inducing inputs and frequencies stay as learned from all rows; the posterior is formed again without the rows
that are held out. Up to 1000 rows each is held out once, a tenth of them at a time; of more, a random tenth, 1000 at most.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone

from gpattr.estimators import SparseGPRegressor

LEVELS = (0.5, 0.8, 0.95)
MOST = 1000  # rows that are held out
PARTS = 10


@dataclass(frozen=True)
class HeldOut:
    """``rows`` rows predicted by a model without them: R² (``score``, None where all targets are the same), root mean square
    ``error``, and the shares of targets ``inside`` of their intervals at `LEVELS`."""

    rows: int
    score: float | None
    error: float
    inside: tuple[float, ...]

    @classmethod
    def of(cls, y: np.ndarray, mean: np.ndarray, var: np.ndarray) -> HeldOut:
        """Judge the predictive ``mean`` and ``var`` of targets y, the noise included, (n,) each."""
        off = y - mean
        score = None if np.ptp(y) == 0 else 1.0 - float((off**2).sum() / ((y - y.mean()) ** 2).sum())
        inside = (float(np.mean(np.abs(off) <= -ndtri(0.5 * (1.0 - level)) * np.sqrt(var))) for level in LEVELS)
        return cls(len(y), score, float(np.sqrt((off**2).mean())), tuple(inside))

    @classmethod
    def of_model(cls, regressor: Any, X: Any, y: Any) -> HeldOut | None:
        """Judge a sparse or random-feature regressor that was fitted to the frame X and y; None where there are too few rows."""
        n, y = len(X), np.asarray(y, dtype=np.float64)
        if n < 2 * PARTS:
            return None
        order = np.random.default_rng(0).permutation(n)
        parts = np.array_split(order, PARTS) if n <= MOST else [order[: min(MOST, n // PARTS)]]
        means, variances = [], []
        for part in parts:
            others = np.delete(np.arange(n), part)
            mean, std = _same_prior(regressor).fit(X.iloc[others], y[others]).predict(X.iloc[part], return_std=True)
            means.append(mean)
            variances.append(std**2 + regressor.noise_variance_)
        return cls.of(y[np.concatenate(parts)], np.concatenate(means), np.concatenate(variances))

    def to_content(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self) | {"inside": list(self.inside)}

    @classmethod
    def of_content(cls, content: Any) -> HeldOut | None:
        """Return what `to_content` made; None where there was nothing."""
        return None if content is None else cls(**content | {"inside": tuple(content["inside"])})


def _same_prior(regressor: Any) -> Any:
    """Return an unfitted regressor with all that was learned, but the posterior."""
    known = {"kernel": regressor.kernel_, "noise_variance": regressor.noise_variance_, "optimize": False, "verbose": 0}
    if isinstance(regressor, SparseGPRegressor):
        known |= {"inducing": regressor.inducing_, "n_inducing": None}
    else:
        known |= {"n_frequencies": regressor.n_frequencies_}
    unfitted: Any = clone(regressor)
    return unfitted.set_params(**known)
