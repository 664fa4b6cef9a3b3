"""Bands of functions drawn from the prior: they cover the true curve as often as promised.

f is drawn jointly at the training points and at all points of grid and background, so that its
partial dependence is known. Whatever the data, 90 % bands must hold it in 90 % of all cases, point
by point, and the whole curve must lie inside the 90 % ellipsoid of its joint posterior as often.
"""

import numpy as np
import pytest
from scipy.stats import binomtest, chi2

from gpattr import Explainer
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.posteriors import ExactPosterior

SETS, LEVEL, NOISE = 400, 0.9, 0.05
GRID = np.array([-1.5, -0.5, 0.6, 1.4])
KERNELS = {
    "squared exponential": SquaredExponential([1.0, 0.8], 1.3),
    "Matérn": Matern52([1.2, 0.9]),
}


def drawn(kernel, seed, options):
    """Whether a band holds the true value at one point, and the ellipsoid the true curve."""
    rng = np.random.default_rng(seed)
    X, rows = rng.normal(size=(8, 2)), rng.normal(size=(6, 2))
    nodes = np.concatenate([GRID, rows[:, 0]]) if "centred" in options else GRID
    points = np.repeat(rows, len(nodes), axis=0)
    points[:, 0] = np.tile(nodes, len(rows))
    every = np.concatenate([X, points])
    root = np.linalg.cholesky(kernel(every, every) + 1e-10 * np.eye(len(every)))
    f = root @ rng.normal(size=len(every))
    y = f[:8] + np.sqrt(NOISE) * rng.normal(size=8)
    each = f[8:].reshape(6, len(nodes))
    if "centred" in options:
        each = each[:, :4] - each[:, 4:].mean(axis=1, keepdims=True)
    curve = each if options.get("kind") == "individual" else each.mean(axis=0)
    explainer = Explainer(ExactPosterior(kernel, X, y, noise=NOISE))
    found = explainer.dependence(0, GRID, rows, **options)
    lower, upper = found.interval(LEVEL)
    inside = (lower <= curve) & (curve <= upper)
    mean, cov = found.values, found.cov
    if options.get("kind") == "individual":  # the curve of one row
        mean, cov, curve, inside = mean[2], cov[2], curve[2], inside[2]
    off = curve - mean
    return inside[2], off @ np.linalg.solve(cov, off) <= chi2.ppf(LEVEL, len(GRID))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("squared exponential", {}),
        ("squared exponential", {"centred": True}),
        ("squared exponential", {"kind": "individual"}),
        ("Matérn", {}),
    ],
)
def test_coverage(name, options):
    held = np.array([drawn(KERNELS[name], 1000 + seed, options) for seed in range(SETS)])
    for what, count in zip(("point", "curve"), held.sum(axis=0)):
        result = binomtest(int(count), SETS, LEVEL)
        assert result.pvalue > 0.01, f"{what}: {count} of {SETS} covered"
