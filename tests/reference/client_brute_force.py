"""Attributions from an optimiser's own joint posterior alone: differences along the straight path
between two rows of its columns, one parameter at a time, integrated.
"""

import numpy as np
from tests.reference.brute_force import OFFSETS, WEIGHTS

from gpattr.special.quadrature import gauss_legendre


def by_parameter(joint, x, b, groups, panels=6, step=2e-3):
    """Return mean (p,) and covariance (p, p) of the attributions of ``groups`` of columns.

    ``joint(points)`` is the mean (N,) and the covariance (N, N) of f at rows of columns.
    """
    t, w = gauss_legendre(16, panels)
    path = b + t[:, None] * (x - b)
    moved = np.zeros((len(groups), len(x)))
    for g, columns in enumerate(groups):
        moved[g, columns] = (x - b)[columns]
    # (T, p, 4, columns)
    points = path[:, None, None, :] + step * OFFSETS[:, None] * moved[:, None, :]
    sums = np.zeros((len(groups), len(t), len(groups), 4))
    for g in range(len(groups)):
        sums[g, :, g] = w[:, None] * WEIGHTS / step
    mean, cov = joint(points.reshape(-1, len(x)))
    sums = sums.reshape(len(groups), -1)
    return sums @ mean, sums @ cov @ sums.T
