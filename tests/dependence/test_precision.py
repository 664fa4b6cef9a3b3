"""Partial dependence from its definition, with mpmath in 50 digits: kernels, solves and sums."""

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from tests.dependence.reference import Case
from tests.reference.definition import value

from gpattr.kernels import Matern52, SquaredExponential
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(0)
Z, Y = RNG.normal(size=(7, 2)), RNG.normal(size=7)
ROWS, WEIGHTS = RNG.normal(size=(4, 2)), np.array([0.125, 0.25, 0.125, 0.5])
GRID = np.array([[-1.0], [0.25], [0.3], [2.0]])
NOISE = 0.0625
BASE = Case((1,), GRID, ROWS, WEIGHTS)
CENTRE = (np.array([[-0.5], [0.75], [1.0]]), np.array([0.25, 0.25, 0.5]))
CASES = {
    "curve": BASE,
    "centred": replace(BASE, centre=CENTRE),
    "individual": replace(BASE, individual=True),
    "slope": replace(BASE, derivative=True),
}
KERNELS = {
    "squared exponential": SquaredExponential([0.75, 1.5], 2.0),
    "Matérn 5/2": Matern52([1.25, 0.75], 1.5),
}
H = mp.mpf(10) ** -12  # of differences, whose error is its square


def points_of(case):
    """The points of a case as numbers of mpmath, and the weights (outputs, points) of values there.

    A slope is a central difference.
    """
    points = [[mp.mpf(float(v)) for v in row] for row in case.points]
    sums = mp.matrix(case.sums.reshape(-1, len(points)).tolist())
    if not case.derivative:
        return points, sums
    (j,) = case.features
    steps = []
    for sign in (1, -1):
        steps += [[v + sign * H * (i == j) for i, v in enumerate(row)] for row in points]
    n, N = sums.rows, sums.cols
    both = mp.matrix(n, 2 * N)
    for i in range(n):
        for k in range(N):
            both[i, k], both[i, N + k] = sums[i, k] / (2 * H), -sums[i, k] / (2 * H)
    return steps, both


def truth(kernel, case):
    """Mean and covariance of all outputs, as matrices of mpmath."""
    mp.mp.dps = 50
    data = [[mp.mpf(float(v)) for v in row] for row in Z]
    gram = lambda A, B: mp.matrix([[value(kernel, a, b) for b in B] for a in A])  # noqa: E731
    points, sums = points_of(case)
    weights = mp.inverse(gram(data, data) + mp.mpf(NOISE) * mp.eye(len(data)))
    cross = sums * gram(points, data)
    prior = sums * gram(points, points) * sums.T
    y = mp.matrix([mp.mpf(float(v)) for v in Y])
    return cross * weights * y, prior - cross * weights * cross.T


def as_floats(matrix):
    return np.array([[float(v) for v in row] for row in matrix.tolist()])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", KERNELS)
def test_values_and_covariances(name, case):
    """To 1e-13 of the largest value and of the largest variance."""
    kernel, case = KERNELS[name], CASES[case]
    mean, cov = (as_floats(part) for part in truth(kernel, case))
    result = ExactPosterior(kernel, Z, Y, noise=NOISE).apply(case.operator, case.sites)
    n, G = result.mean.shape
    own = np.einsum("ninj->nij", cov.reshape(n, G, n, G))
    off = np.abs(result.mean.ravel() - mean[:, 0])
    assert off.max() <= 1e-13 * np.abs(mean).max()
    assert np.abs(result.cov - own).max() <= 1e-13 * own.max()
    assert (off.reshape(n, G).max(axis=1) <= result.error).all()
    assert (np.abs(result.cov - own).max(axis=(1, 2)) <= result.cov_error).all()
