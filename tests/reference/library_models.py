"""A model of another library against its own joint predictions."""

import numpy as np
from tests.reference.brute_force import OFFSETS, WEIGHTS

from gpattr import Explainer
from gpattr.special.quadrature import gauss_legendre

TOLERANCE = 1e-5  # of the largest attribution or standard deviation
# Panels of 16 nodes and steps of the differences: what the smoothness of a Matérn kernel needs.
FINER = {None: (1, 4e-3), 2.5: (16, 1e-3), 1.5: (40, 1e-3)}


def assert_explained(posterior, joint, x, b, *, nu=None, panels=1, exact=1e-8, features=None):
    """Compare predictions with ``joint(points)`` (mean (N,), covariance (N, N)), and attributions.

    Predictions and completeness agree to ``exact`` of their size, attributions and standard
    deviations to 1e-5 with differences of the joint predictions along the path, those of
    ``features`` (all by default). ``nu`` is that of a Matérn kernel.
    """
    points = b + np.random.default_rng(5).uniform(-0.5, 1.5, size=(6, len(x))) * (x - b)
    points = np.concatenate([points, [x, b]])
    mean, cov = posterior.predict(points, return_cov=True)
    theirs, C = joint(points)
    np.testing.assert_allclose(mean, theirs, rtol=0, atol=exact * np.abs(theirs).max())
    np.testing.assert_allclose(cov, C, rtol=0, atol=exact * np.abs(C).max())
    ex = Explainer(posterior, b)(x[None])
    change = theirs[-2] - theirs[-1]
    np.testing.assert_allclose(ex.values.sum(), change, rtol=0, atol=exact * np.abs(theirs).max())
    chosen = range(len(x)) if features is None else features
    options = FINER[nu] if nu else (panels, FINER[None][1])
    values, std = np.transpose([_attribution(joint, x, b, i, *options) for i in chosen])
    size = max(np.abs(values).max(), std.max())
    ours = [ex.values[0][list(chosen)], ex.std[0][list(chosen)]]
    np.testing.assert_allclose(ours[0], values, rtol=0, atol=TOLERANCE * size)
    np.testing.assert_allclose(ours[1], std, rtol=0, atol=TOLERANCE * size)
    return ex


def _attribution(joint, x, b, i, panels, step):
    """The mean and the standard deviation of the attribution of feature i."""
    t, w = gauss_legendre(16, panels)
    size = step * max(abs(x[i] - b[i]), 1e-3)
    points = np.repeat(b + t[:, None] * (x - b), 4, axis=0)
    points[:, i] += size * np.tile(OFFSETS, len(t))
    weights = np.outer(w, WEIGHTS).ravel() * (x[i] - b[i]) / size
    mean, cov = joint(points)
    return weights @ mean, max(weights @ cov @ weights, 0.0) ** 0.5
