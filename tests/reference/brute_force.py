"""Attributions from a library's own joint predictive distribution alone: four-point differences
along the path, integrated.
"""

import numpy as np

from gpattr.special.quadrature import gauss_legendre

OFFSETS, WEIGHTS = np.array([1.0, -1.0, 2.0, -2.0]), np.array([8.0, -8.0, -1.0, 1.0]) / 12.0


def brute_force(joint, x, b, panels=1, step=4e-3):
    """Return mean (d,) and covariance (d, d) of the attributions from ``joint(points)``: mean (N,),
    covariance (N, N) of f.
    """
    d = len(x)
    t, w = gauss_legendre(16, panels)
    size = step * np.maximum(np.abs(x - b), 1e-3)
    path = b + t[:, None] * (x - b)
    points = (
        path[:, None, None, :] + OFFSETS[:, None] * (size * np.eye(d))[:, None, :]
    )  # (T, d, 4, d)
    sums = np.zeros((d, len(t), d, 4))
    for i in range(d):
        sums[i, :, i] = w[:, None] * WEIGHTS * (x - b)[i] / size[i]
    mean, cov = joint(points.reshape(-1, d))
    sums = sums.reshape(d, -1)
    return sums @ mean, sums @ cov @ sums.T


def assert_same_attributions(ex, joint, b, kinks=None, panels=1):
    """Compare the first row with brute force: 1e-6 of the means, 1e-4 of the covariance.

    ``kinks`` is 5/2 or 3/2 for a Matérn kernel, whose differences converge slowly: 1e-3 for the
    covariance of the latter."""
    options = (
        {"panels": panels} if kinks is None else {"panels": 16 if kinks == 1.5 else 8, "step": 1e-3}
    )
    mean, cov = brute_force(joint, ex.data[0], b, **options)
    scale = max(np.abs(mean).max(), np.sqrt(np.diagonal(cov).max()))
    np.testing.assert_allclose(ex.values[0], mean, atol=1e-6 * scale)
    np.testing.assert_allclose(
        ex.cov[0], cov, atol=(1e-3 if kinks == 1.5 else 1e-4) * np.abs(cov).max()
    )


def brute_force_features(joint, x, b, groups, panels=32, step=4e-3):
    """Return means and standard deviations (k,) of the attributions of groups of columns.

    One direction for each group, so that the path can have many points: kernels with kinks are
    integrated to 1e-6.
    """
    t, w = gauss_legendre(16, panels)
    means, stds = [], []
    for group in groups:
        direction = np.zeros(len(x))
        direction[group] = (x - b)[group]
        points = b + t[:, None, None] * (x - b) + step * OFFSETS[:, None] * direction  # (T, 4, d)
        sums = (w[:, None] * WEIGHTS / step).reshape(-1)
        mean, cov = joint(points.reshape(-1, len(x)))
        means.append(sums @ mean)
        stds.append(np.sqrt(max(sums @ cov @ sums, 0.0)))
    return np.array(means), np.array(stds)
