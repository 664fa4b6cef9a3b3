"""Attributions of the posterior against integrated gradients of 20 000 functions drawn from it."""

import numpy as np

from gpattr import Explainer
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior
from gpattr.special import gauss_legendre

N_DRAWS = 20_000


def test_mean_and_covariance_of_drawn_attributions():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(8, 3))
    y = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2]
    posterior = ExactPosterior(SquaredExponential(lengthscale=[0.8, 1.2, 2.0]), Z, y, noise=0.05)
    b, x = np.array([-0.5, 0.3, 0.1]), np.array([0.9, -0.8, 1.4])
    t, w = gauss_legendre(10)
    h, d = 1e-2, 3
    points = b + t[:, None] * (x - b)
    # A four-point difference of each draw at each node: error h⁴, and h large enough that draws
    # keep their digits.
    stencil = {2 * h: -1 / 12, h: 2 / 3, -h: -2 / 3, -2 * h: 1 / 12}
    shifted = np.concatenate([points + s * np.eye(d)[i] for i in range(d) for s in stencil])
    mean, cov = posterior.predict(shifted, return_cov=True)
    values, vectors = np.linalg.eigh(cov)
    draws = mean + rng.standard_normal((N_DRAWS, len(mean))) @ (vectors * np.sqrt(values.clip(0))).T
    gradients = (
        np.einsum(
            "nisT,s->niT", draws.reshape(N_DRAWS, d, 4, len(t)), np.array(list(stencil.values()))
        )
        / h
    )
    attributions = (gradients @ w) * (x - b)

    ex = Explainer(posterior, b)(x[None])
    standard_error = np.sqrt(np.diagonal(ex.cov[0]) / N_DRAWS)
    assert np.all(np.abs(attributions.mean(axis=0) - ex.values[0]) <= 4 * standard_error + 1e-6)
    v = np.diagonal(ex.cov[0])
    covariance_error = np.sqrt((ex.cov[0] ** 2 + np.outer(v, v)) / N_DRAWS)
    assert np.all(np.abs(np.cov(attributions.T) - ex.cov[0]) <= 4 * covariance_error + 1e-6)
    # And the intervals are not so wide that anything would pass.
    assert standard_error.max() < 0.01
