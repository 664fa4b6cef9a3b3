"""Matérn and rational quadratic kernels as mixtures, of more players than are enumerated."""

import numpy as np
import pytest
from tests.reference import long_double

from gpattr.kernels import Matern12, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpattr.operators import Baselines, Shapley
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(0)
PLAYERS = 10  # one more than are enumerated for covariances with data
KERNELS = {
    "Matérn 1/2": Matern12(2.0, 1.5),
    "Matérn 3/2": Matern32(np.linspace(1.0, 4.0, PLAYERS)),
    "Matérn 5/2": Matern52(3.0),
    "rational quadratic 0.3": RationalQuadratic(2.0, 2.0, 0.3),
    "rational quadratic 5": RationalQuadratic(2.0, 1.0, 5.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_the_certified_error_holds_in_a_thousand_cases(name):
    """Rows from 1e-4 to 100 length-scales from their baselines, against extended precision."""
    kernel, n = KERNELS[name], 1000
    Z = RNG.normal(size=(3, PLAYERS))
    y, noise = np.sin(2 * Z[:, 0]) + Z[:, 1], np.full(3, 0.01)
    posterior = ExactPosterior(kernel, Z, y, noise=noise)
    b = Z[RNG.integers(3, size=n)] + RNG.normal(size=(n, PLAYERS))
    X = b + 10.0 ** RNG.uniform(-4, 2, size=(n, 1)) * RNG.normal(size=(n, PLAYERS))
    result = posterior.apply(Shapley(b), X, uncertainty="none")
    assert result.method == "scale mixture"
    off = np.empty(n)
    for some in (slice(start, start + 100) for start in range(0, n, 100)):
        truth, _ = long_double.means(kernel, Z, y, noise, X[some], b[some])
        off[some] = np.abs(result.mean[some] - truth).max(axis=1)
    assert (off <= result.error).all(), float((off / result.error).max())
    assert result.error.max() <= 1e-10 * np.abs(posterior.alpha).sum()


def test_length_scales_together_and_one_by_one():
    """Background sets and points share the work of length-scales; the sum of terms is the same."""
    d = 11
    Z, X = RNG.normal(size=(12, d)), RNG.normal(size=(3, d))
    posterior = ExactPosterior(Matern52(2.0), Z, np.sin(Z[:, 0]), noise=0.1)
    for baseline in (Z[0], Baselines(Z[:3]), X[::-1]):
        result = posterior.apply(Shapley(baseline), X)
        mean, cov = posterior.predict(X, return_cov=True)
        plain = posterior.apply(Shapley(baseline), X, uncertainty="none")
        np.testing.assert_allclose(plain.mean, result.mean, rtol=0, atol=1e-12)
        joint = posterior.joint(Shapley(baseline), X)
        own = np.einsum("ninj->nij", joint)
        np.testing.assert_allclose(own, result.cov, rtol=0, atol=1e-11)
    one = posterior.apply(Shapley(X[1]), X)
    assert (one.mean[1] == 0).all()
    assert (one.cov[1] == 0).all()
    gain = np.diagonal(cov) - 2 * cov[:, 1] + cov[1, 1]
    np.testing.assert_allclose(one.mean.sum(axis=1), mean - mean[1], rtol=0, atol=1e-11)
    np.testing.assert_allclose(one.cov.sum(axis=(1, 2)), gain, rtol=0, atol=1e-11)


def test_smooth_limit():
    """A rational quadratic kernel of large α is a squared exponential."""
    d = 12
    Z, X = RNG.normal(size=(10, d)), RNG.normal(size=(2, d))
    kernels = RationalQuadratic(3.0, 1.0, 1e7), SquaredExponential(3.0)
    one, two = (
        ExactPosterior(kernel, Z, Z[:, 0], noise=0.1).apply(Shapley(Z[1]), X) for kernel in kernels
    )
    np.testing.assert_allclose(one.mean, two.mean, rtol=0, atol=1e-6)
