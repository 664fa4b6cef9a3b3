"""Laplace's evidence: its value is the posterior's, its gradient that of finite differences, for
any tree of kernels.
"""

import numpy as np
import pytest

from gpattr.estimators.evidence.laplace import LaplaceEvidence
from gpattr.estimators.hyperparameters import trainable
from gpattr.kernels import Linear, Matern52, Periodic, SquaredExponential
from gpattr.means import Constant
from gpattr.posteriors import LaplacePosterior
from gpattr.posteriors.laplace import mode

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + X[:, 1] ** 2 + 0.5 * RNG.normal(size=60) > 0.8).astype(float)
KERNELS = [
    SquaredExponential([1.0, 2.0, 0.7], 5.0),
    2.0 * Matern52(1.3) + Linear(1.0),
    SquaredExponential(1.0, 2.0) * Periodic(period=3.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_the_gradient_is_that_of_the_evidence(kernel):
    evidence = LaplaceEvidence(X, Y, np.full(60, 0.3))
    value, gradient = evidence(kernel, None)
    assert value == pytest.approx(
        LaplacePosterior(kernel, X, Y, mean=Constant(0.3)).log_marginal_likelihood, rel=1e-12
    )
    assert set(gradient) == set(trainable(kernel))
    for name, start in trainable(kernel).items():
        for i in range(len(start)):

            def changed(e):
                values = start * np.exp(e * np.eye(len(start))[i])
                new = values if np.ndim(kernel.get_params()[name]) else float(values[0])
                return evidence(kernel.with_params(**{name: new}), None)[0]

            slope = (changed(1e-5) - changed(-1e-5)) / 2e-5
            assert slope == pytest.approx(float(np.atleast_1d(gradient[name])[i]), abs=1e-7)


def test_the_mode_does_not_depend_on_where_its_search_starts():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), (rng.uniform(size=30) < 0.5).astype(float)
    evidence = LaplaceEvidence(X, y, np.zeros(30))
    evidence(SquaredExponential([0.5, 3.0], 40.0), None)  # where the next search starts
    kernel = SquaredExponential([1.0, 2.0], 4.0)
    value, gradient = evidence(kernel, None)
    fresh, slope = LaplaceEvidence(X, y, np.zeros(30))(kernel, None)
    assert value == pytest.approx(fresh, rel=1e-12)
    np.testing.assert_allclose(gradient["lengthscale"], slope["lengthscale"], rtol=1e-8)
    K = kernel(X, X)
    for start in (1e3 * rng.normal(size=30), np.zeros(30)):
        np.testing.assert_allclose(mode(K, y, 0.0 * y, start), mode(K, y, 0.0 * y), atol=1e-10)
