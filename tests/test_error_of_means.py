"""Means are within ``error`` of the truth where rounding is amplified: against the same model
computed with 60 digits.
"""

import mpmath as mp
import numpy as np
import pytest

import gpattr
from gpattr import kernels as k
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, size=(20, 2))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1]


def exactly(values):
    return [mp.mpf(float(v)) for v in values]


def means_of_a_squared_exponential(posterior, x, targets):
    """Means of the attributions from the origin, (d,), by Gauss–Legendre with 60 digits."""
    with mp.workdps(60):
        Z, x, n = [exactly(z) for z in posterior.inputs], exactly(x), len(posterior.inputs)
        squares = [
            mp.mpf(float(s)) ** 2 for s in np.broadcast_to(posterior.kernel.lengthscale, (len(x),))
        ]
        variance, noise = mp.mpf(float(posterior.kernel.variance)), exactly(posterior.noise)

        def value(a, b):
            return variance * mp.exp(-sum((p - q) ** 2 / s for p, q, s in zip(a, b, squares)) / 2)

        A = mp.matrix(n, n)
        for i in range(n):
            for j in range(n):
                A[i, j] = value(Z[i], Z[j]) + (noise[i] if i == j else 0)
        alpha = mp.cholesky_solve(A, mp.matrix(targets))

        def slope(t, i):
            point = [t * p for p in x]
            return sum(
                alpha[j] * -(point[i] - Z[j][i]) / squares[i] * value(point, Z[j]) for j in range(n)
            )

        return [x[i] * mp.quad(lambda t, i=i: slope(t, i), [0, 0.5, 1]) for i in range(len(x))]


@pytest.mark.slow
@pytest.mark.parametrize("uncertainty", ["cov", "std", "none"])
@pytest.mark.parametrize(
    ("scale", "noise", "row"),
    [([3.0, 30.0], 1e-10, [6.0, 4.2]), (2.0, 1e-8, [3.0, -2.0]), (1.0, 1e-2, [0.5, 0.5])],
)
def test_little_noise_far_from_the_data(scale, noise, row, uncertainty):
    posterior = ExactPosterior(k.SquaredExponential(scale), X, Y, noise=noise)
    ex = gpattr.Explainer(posterior, np.zeros(2))(np.array([row]), uncertainty=uncertainty)
    truth = means_of_a_squared_exponential(posterior, row, exactly(Y))
    off = max(abs(float(mp.mpf(float(a)) - b)) for a, b in zip(ex.values[0], truth))
    assert off <= ex.error[0]
    if uncertainty != "none":
        assert ex.error[0] <= 1e4 * off + 1e-11  # a bound that says nothing would hold, too


def test_kernels_without_a_closed_form_know_it_too():
    """The same function by quadrature, whose sensitivity is sketched instead of solved for."""
    kernel = k.Function(
        lambda x, y: np.exp(-0.5 * ((x - y) ** 2).sum(axis=-1) / 4.0),
        lambda x, y: np.exp(-0.5 * ((x - y) ** 2).sum(axis=-1) / 4.0)[..., None] * (y - x) / 4.0,
        lambda x, y: (
            np.exp(-0.5 * ((x - y) ** 2).sum(axis=-1) / 4.0)[..., None, None]
            * (np.eye(2) / 4.0 - (x - y)[..., :, None] * (x - y)[..., None, :] / 16.0)
        ),
    )
    posterior, same = (
        ExactPosterior(kernel, X, Y, noise=1e-8) for kernel in (kernel, k.SquaredExponential(2.0))
    )
    truth = [float(v) for v in means_of_a_squared_exponential(same, [3.0, -2.0], exactly(Y))]
    for uncertainty in ("cov", "none"):
        ex = gpattr.Explainer(posterior, np.zeros(2), tolerance=1e-3)(
            np.array([[3.0, -2.0]]), uncertainty=uncertainty
        )
        assert np.abs(ex.values[0] - truth).max() <= ex.error[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_columns_that_are_nearly_the_same(gap, seed):
    u, apart, noise = np.random.default_rng(seed).normal(size=(3, 30))
    rows = np.stack([u, u + gap * apart], axis=1)
    y = rows.sum(axis=1) + 0.1 * noise
    model = gpattr.BayesianLinearRegressor(
        prior_cov=1e8 * np.eye(2), noise_variance=0.01, fit_intercept=False
    ).fit(rows, y)
    x = np.array([1.0, -1.0])
    with mp.workdps(60):
        M = mp.matrix([exactly(row) for row in rows])
        S = (M.T * M / mp.mpf(0.01) + mp.eye(2) / mp.mpf(1e8)) ** -1
        w = S * (M.T * mp.matrix(exactly(y)) / mp.mpf(0.01))
        for uncertainty in ("cov", "none"):
            ex = gpattr.Explainer(model, np.zeros(2))(x[None], uncertainty=uncertainty)
            assert (
                max(abs(float(w[i] * x[i] - mp.mpf(float(ex.values[0, i])))) for i in range(2))
                <= ex.error[0]
            )
            if uncertainty == "cov":
                pairs = [(i, j) for i in range(2) for j in range(2)]
                off = [
                    abs(float(S[i, j] * x[i] * x[j] - mp.mpf(float(ex.cov[0, i, j]))))
                    for i, j in pairs
                ]
                assert max(off) <= ex.cov_error[0]


def test_rows_at_the_baseline_of_extreme_kernels_do_not_overflow():
    for kernel in (k.RationalQuadratic(1.0, alpha=1e17), k.Matern32(1e-9)):
        posterior = ExactPosterior(kernel, X, Y, noise=0.1)
        ex = gpattr.Explainer(posterior, np.zeros(2), tolerance=1e9)(np.zeros((2, 2)))
        assert not ex.values.any()
        assert not ex.cov.any()
