"""Global importance: the mean absolute attribution of each feature, with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import erf

from gpattr._array import Array, LinAlgError, cholesky
from gpattr._normal import check_count, check_level, random_generator, standard_draws
from gpattr._validation import Names, read_only

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Importance:
    """Mean |attribution| over rows: ``values`` (d,) its expectation, ``std`` (d,) and ``samples`` (s, d) from joint draws.

    The expectation of |attribution| contains its uncertainty: a feature of no effect that the model is unsure about is not near
    zero. The mean of |``Explanation.values``| does not contain it, and is smaller.
    """

    values: Array
    samples: Array
    feature_names: Names

    @property
    def std(self) -> Array:
        """The posterior standard deviation of each importance, (d,)."""
        return self.samples.std(axis=0, ddof=1)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the lower and upper ends, each (d,), of the central credible interval."""
        tail = 0.5 * (1.0 - check_level(level))
        lower, upper = np.quantile(self.samples, [tail, 1.0 - tail], axis=0)
        return lower, upper

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return one line per feature, most important first."""
        import pandas as pd

        lower, upper = self.interval(level)
        columns = {"importance": self.values, "std": self.std, "lower": lower, "upper": upper}
        frame = pd.DataFrame(columns, index=pd.Index(self.feature_names, name="feature"))
        return frame.sort_values("importance", ascending=False)

    def __repr__(self) -> str:
        order = np.argsort(-self.values, kind="stable")
        width = max(map(len, self.feature_names))
        lines = [f"  {self.feature_names[i]:<{width}}  {self.values[i]:.4g} ± {self.std[i]:.2g}" for i in order]
        return "\n".join(["Importance: expected mean |attribution| ± one standard deviation", *lines])


def draw_importance(parts: Iterable[tuple[float, Array, Array]], names: Names, n_samples: int, random_state: Any) -> Importance:
    """Return the importance for a mixture of Gaussians: weight, mean attributions (n, d), joint covariance (n, d, n, d) of each.

    The expectation of each |attribution| is that of a folded normal; what the rows share enters through the draws. Each part
    has its share of the draws.
    """
    n_samples, generator = check_count("n_samples", n_samples), random_generator(random_state)
    expected, draws, reached, taken = 0.0, [], 0.0, 0
    for weight, mean, joint in parts:
        n, d = mean.shape
        flat, C = mean.ravel(), joint.reshape(n * d, n * d)
        expected = expected + weight * folded_mean(mean, C.diagonal().reshape(n, d)).mean(axis=0)
        reached += weight
        share = int(reached * n_samples + 1e-6) - taken
        if share > 0:
            root = _root(C)
            normal = standard_draws("n_samples", share, root.shape[1], generator)
            draws.append(np.abs(flat + normal @ root.T).reshape(share, n, d).mean(axis=1))
            taken += share
    return Importance(read_only(expected), read_only(np.concatenate(draws)), names)


def folded_mean(mean: Array, var: Array) -> Array:
    """Return E|A| for A ~ N(μ, s²): s√(2/π) exp(−μ²/2s²) + μ erf(μ/(√2 s)), and |μ| at s = 0."""
    s = np.sqrt(var)
    z = np.divide(mean, s, out=np.full_like(mean, np.inf), where=s > np.abs(mean) * 1e-150)
    folded = s * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z * z) + mean * erf(z / np.sqrt(2.0))
    return np.where(np.isinf(z), np.abs(mean), folded)


def _root(C: Array) -> Array:
    """Return A (k, r) with AAᵀ = C, to far below the Monte-Carlo error.

    C is singular where rows repeat or features tie. A jitter relative to each entry's own variance lets Cholesky through; where
    variances are themselves rounding it does not, and the slower eigenvectors serve.
    """
    free = np.flatnonzero(C.diagonal() > 0)
    root = np.zeros((len(C), len(free)))
    core = C[np.ix_(free, free)]
    std = np.sqrt(core.diagonal())
    try:
        root[free] = std[:, None] * cholesky(core / std[:, None] / std + 1e-12 * np.eye(len(free)))
    except LinAlgError:
        values, vectors = np.linalg.eigh(core)
        root[free] = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
