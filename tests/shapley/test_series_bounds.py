"""The bounds that come with Shapley values of series, against extended precision."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

from gpattr.closed_forms.shapley.series import series_formulas
from gpattr.kernels import Cosine, FullAdditive, Linear, Polynomial, SquaredExponential
from gpattr.operators import Coalitions, Players

Long = np.longdouble
pytestmark = pytest.mark.skipif(
    np.finfo(Long).eps > 1e-18, reason="this platform has no extended precision"
)
PI = Long(4) * np.arctan(Long(1))


def gaussian(x, z, length):
    return np.exp(-(((x - z) / Long(length)) ** 2) / 2)


def squared_exponential(x, z, length):
    return gaussian(x[:, None], z, length).prod(axis=-1)


def inner(x, z, variance):
    return (x[:, None] * z * Long(variance)).sum(axis=-1)


def wave(x, z, period):
    return np.cos((2 * PI * (x[:, None] - z) / Long(period)).sum(axis=-1))


def additive(x, z, length, variances):
    e = [Long(1)] + [Long(0)] * len(variances)
    for i in range(x.shape[1]):
        for n in range(len(variances), 0, -1):
            e[n] = e[n] + gaussian(x[:, None, i], z[:, i], length) * e[n - 1]
    return sum(Long(v) * value for v, value in zip(variances, e[1:], strict=True))


def kernels(d, random):
    """Return leaves and the same kernel in extended precision, by name."""
    columns = tuple(range(d))
    length, variance, period = 10.0 ** random.uniform([-0.5, -2.0, 0.0], [1.0, 2.0, 1.0])
    p, c = int(random.integers(1, 6)), 10.0 ** random.uniform(-1, 1)
    orders = random.uniform(0.1, 1.0, size=int(random.integers(1, d + 1)))
    smooth = (SquaredExponential(length), columns)
    return {
        "linear": (
            [(Linear(variance), columns), smooth],
            lambda x, z: inner(x, z, variance) * squared_exponential(x, z, length),
        ),
        "polynomial": (
            [(Polynomial(variance, degree=p, offset=c), columns)],
            lambda x, z: (Long(c) + inner(x, z, variance)) ** p,
        ),
        "additive": (
            [(FullAdditive([SquaredExponential(length)] * d, orders), columns)],
            lambda x, z: additive(x, z, length, orders),
        ),
        "spectral": (
            [(Cosine(period), columns), smooth],
            lambda x, z: wave(x, z, period) * squared_exponential(x, z, length),
        ),
        "wave": ([(Cosine(period), columns)], lambda x, z: wave(x, z, period)),
        "linear wave": (
            [(Cosine(period), columns), (Linear(variance), columns)],
            lambda x, z: wave(x, z, period) * inner(x, z, variance),
        ),
    }


def enumerated(d):
    """Return all coalitions (c, d) and the matrix of Shapley values (d, c)."""
    members = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    sizes = members.sum(axis=1)
    share = [Long(factorial(s) * factorial(d - s - 1)) / Long(factorial(d)) for s in range(d)]
    share = np.array([*share, Long(0)])
    return members, np.where(members.T == 1, share[sizes - 1], -share[np.minimum(sizes, d)])


@pytest.mark.parametrize("name", kernels(2, np.random.default_rng(0)))
@pytest.mark.parametrize("seed", range(40))
def test_bounds_hold(name, seed):
    random = np.random.default_rng(seed)
    d, m = int(random.integers(1, 7)), 3
    step, width, far = 10.0 ** random.uniform([-9.0, -1.0, -3.0], [2.0, 1.0, 3.0])
    far = far * random.choice([0.0, 1.0])
    B = random.normal(size=(1, d)) + far
    X = B + step * random.normal(size=(1, d))
    Z = width * random.normal(size=(m, d)) + far
    if seed % 4 == 0 and "wave" in name:
        Z = Z + 1e7 * random.normal(size=(m, d))  # phases lose digits
    leaves, k = kernels(d, random)[name]
    players = Players.single(d)
    formulas = series_formulas(1.0, leaves, players)
    assert formulas is not None
    members, A = enumerated(d)
    points = np.where(members == 1, X.astype(Long), B.astype(Long))
    sites = Coalitions(B, X, players)

    K = k(points, Z.astype(Long))
    slack = 1e-17 * float(abs(K).max())  # rounding of the reference
    value, error = formulas.cross(sites, Z)
    gap = np.sqrt(((value[0] - A @ K) ** 2).sum(axis=1)).max()
    assert gap <= error[0] + slack
    w = random.normal(size=(m, 2))
    value, error = formulas.contract(sites, Z, w)
    assert abs(value[0] - A @ K @ w).max() <= error[0] + m * 10 * slack
    K = k(points, points)
    value, error = formulas.prior_cov(sites)
    assert abs(value[0] - A @ K @ A.T).max() <= error[0] + 1e-17 * float(abs(K).max())
    assert error[0] <= 1e-11 * (1.0 + step / 1e-1) * float(abs(K).max())
