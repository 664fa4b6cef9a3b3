"""Partial dependence from a model's joint predictive distribution alone.

Curves are averages of f at points: all rows of a background with all values of a grid in their
columns. ``joint(points)`` returns mean (N,) and covariance (N, N) of f, or of its slopes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpattr import Baselines
from gpattr.operators import Gradient, PartialDependence


@dataclass(frozen=True)
class Case:
    """What a curve is asked for: ``features`` at ``grid`` (G, c) with the rows of a background.

    ``centre`` are values (k, c) with weights. An ``individual`` curve is that of each row.
    """

    features: tuple[int, ...]
    grid: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    centre: tuple[np.ndarray, np.ndarray] | None = None
    derivative: bool = False
    individual: bool = False

    @property
    def operator(self) -> PartialDependence:
        return PartialDependence(
            self.features,
            self.grid,
            None if self.individual else Baselines(self.rows, self.weights),
            n_features=self.rows.shape[1],
            centre=None if self.centre is None else Baselines(*self.centre),
            derivative=self.derivative,
        )

    @property
    def sites(self) -> np.ndarray:
        """The rows that the operator is applied to: any one where all have the same curve."""
        return self.rows if self.individual else self.rows[:1]

    @property
    def nodes(self) -> np.ndarray:
        return self.grid if self.centre is None else np.concatenate([self.grid, self.centre[0]])

    @property
    def points(self) -> np.ndarray:
        """All rows with all nodes, (K L, d), nodes running fastest."""
        points = np.repeat(self.rows, len(self.nodes), axis=0)
        points[:, list(self.features)] = np.tile(self.nodes, (len(self.rows), 1))
        return points

    @property
    def sums(self) -> np.ndarray:
        """The weights (n, G, K L) with which values at the points make curves."""
        G, K = len(self.grid), len(self.rows)
        combine = np.eye(G)
        if self.centre is not None:
            combine = np.hstack([combine, -np.tile(self.centre[1], (G, 1))])
        over = np.eye(K) if self.individual else self.weights[None]
        return np.einsum("nk,gl->ngkl", over, combine).reshape(len(over), G, -1)


def truth(joint, case):
    """Return mean (n, G) and joint covariance (n, G, n, G) of the curves under ``joint``."""
    mean, cov = (np.asarray(part) for part in joint(case.points))
    sums = case.sums
    n, G, N = sums.shape
    flat = sums.reshape(n * G, N)
    return sums @ mean, (flat @ cov @ flat.T).reshape(n, G, n, G)


def joint_of(posterior, case):
    """Return ``joint`` of a posterior, of its slopes in the feature where the case asks for it."""
    if not case.derivative:
        return lambda points: posterior.predict(points, return_cov=True)
    (feature,) = case.features

    def slopes(points):
        mean = posterior.apply(Gradient(), points, uncertainty="none").mean
        cov = posterior.joint(Gradient(), points)
        return mean[:, feature], cov[:, feature, :, feature]

    return slopes


def steepness(posterior, case):
    """The largest standard deviation, or mean, of the slopes that are averaged; 0 if none are."""
    if not case.derivative:
        return 0.0
    found = posterior.apply(Gradient(), case.points, uncertainty="std")
    mean, var = (np.asarray(part)[:, list(case.features)] for part in (found.mean, found.var))
    return float(max(np.abs(mean).max(), np.sqrt(var.max())))


def cases(rng, rows, weights=None):
    """One and two features, centred or not, averages, individual curves and slopes, by name."""
    K, d = rows.shape
    weights = np.full(K, 1.0 / K) if weights is None else weights
    one = int(rng.integers(d))
    grid = np.sort(rng.normal(size=(5, 1)), axis=0)
    grid[2] = rows[0, one]  # distances of zero
    shares = rng.uniform(0.2, 1.0, size=3)
    centre = (np.concatenate([rows[:2, [one]], [[0.3]]]), shares / shares.sum())
    base = Case((one,), grid, rows, weights)
    found = {
        "curve": base,
        "centred": replace(base, centre=centre),
        "individual": replace(base, individual=True),
        "individual, centred": replace(base, individual=True, centre=centre),
        "slope": replace(base, derivative=True),
        "individual slope": replace(base, derivative=True, individual=True),
    }
    if d > 1:
        pair = tuple(int(j) for j in rng.permutation(d)[:2])
        mesh = np.array([[a, b] for a in (-0.7, 0.4) for b in (-1.0, 0.0, 1.2)])
        both = replace(base, features=pair, grid=mesh)
        middle = (np.array([[0.1, -0.2], [0.5, 0.9]]), np.array([0.4, 0.6]))
        found["surface"] = both
        found["surface, centred"] = replace(both, centre=middle)
        found["individual surface"] = replace(both, individual=True)
    return found


def compare(posterior, case, scale, accuracy=(1e-12, 1e-10), joint=None):
    """Compare mean, covariance and what is asked for in other ways; return the result."""
    mean, between = truth(joint or joint_of(posterior, case), case)
    own = np.einsum("ninj->nij", between)
    result = posterior.apply(case.operator, case.sites)
    of_mean = {"rtol": 0, "atol": accuracy[0] * scale}
    of_cov = {"rtol": 0, "atol": accuracy[1] * scale**2}
    np.testing.assert_allclose(np.asarray(result.mean), mean, **of_mean)
    np.testing.assert_allclose(np.asarray(result.cov), own, **of_cov)
    plain = posterior.apply(case.operator, case.sites, uncertainty="none")
    np.testing.assert_allclose(np.asarray(plain.mean), mean, **of_mean)
    std = posterior.apply(case.operator, case.sites, uncertainty="std")
    np.testing.assert_allclose(np.asarray(std.mean), mean, **of_mean)
    np.testing.assert_allclose(np.asarray(std.var), np.diagonal(own, axis1=1, axis2=2), **of_cov)
    computed = posterior.joint(case.operator, case.sites)
    np.testing.assert_allclose(np.asarray(computed), between, **of_cov)
    assert (
        np.abs(np.asarray(result.mean) - mean).max(axis=1)
        <= np.asarray(result.error) + 1e-13 * scale
    ).all()
    return result
