"""Expectation propagation: its sites against quadrature, its posterior and evidence against those
of few labels by brute force, convergence at the edges.
"""

import mpmath
import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import expit, log_expit
from scipy.stats import norm

from gpattr import Explainer, integrate
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Linear as LinearKernel
from gpattr.kernels import Matern32, Matern52, SquaredExponential
from gpattr.means import Constant, Linear
from gpattr.posteriors import ExpectationPropagationPosterior, LaplacePosterior
from gpattr.posteriors.expectation_propagation import sites
from gpattr.special.logistic import log_slopes

RNG = np.random.default_rng(4)
N, D = 60, 3
X = RNG.normal(size=(N, D))
Y = (X[:, 0] + X[:, 1] ** 2 + 0.5 * RNG.normal(size=N) > 0.8).astype(float)
ROWS, B = RNG.normal(size=(6, D)), RNG.normal(size=D)
KERNEL = SquaredExponential(lengthscale=[1.0, 2.0, 0.7], variance=25.0)


@pytest.mark.slow
def test_slopes_of_the_log_probability():
    with mpmath.workdps(40):
        for m in (-60.0, -8.0, 0.0, 0.7, 12.0):
            for s in (1e-3, 0.5, 1.0, 3.0, 20.0):

                def log_p(x, s=s):
                    middle = -x / s
                    knots = sorted({-30, -12, -3, 0, 3, 12, 30} | {min(max(middle, -29), 29)})
                    return mpmath.log(
                        mpmath.quad(
                            lambda z: mpmath.npdf(z) / (1 + mpmath.exp(-(x + s * z))), knots
                        )
                    )

                truth = [float(mpmath.diff(log_p, m, k)) for k in (0, 1, 2)]
                found = np.ravel(log_slopes(np.array([m]), np.array([s])))
                np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-12)
    _, slope, bend = log_slopes(np.array([-1e4, -1e9, -1e5]), np.array([3.0, 1e3, 1e4]))
    assert slope[0] == 1.0
    assert ((slope > 0) & (slope <= 1) & (bend <= 0)).all()


@pytest.mark.parametrize("mean", [Constant(0.0), Linear([1.0, 0.0, -1.0], 0.5)])
def test_sites_match_the_moments_of_their_labels(mean):
    """With each site replaced by the label's own probability, mean and variance stay."""
    posterior = ExpectationPropagationPosterior(KERNEL, X, Y, mean=mean)
    tau = posterior.column_scale**2
    mu, std = posterior.predict(X, return_std=True)
    tau_, nu, _ = sites(KERNEL(X, X), Y, mean(X))
    np.testing.assert_allclose(tau_, tau, rtol=1e-14)
    for row in range(0, N, 7):
        v = 1.0 / (std[row] ** -2 - tau[row])
        m, sign = v * (mu[row] / std[row] ** 2 - nu[row]), 2 * Y[row] - 1

        def weight(f, k, m=m, v=v, sign=sign):
            return f**k * norm.pdf(f, m, v**0.5) * expit(sign * f)

        ends = m - 12 * v**0.5, m + 12 * v**0.5
        zero, one, two = (
            quad(weight, *ends, args=(k,), epsabs=0, epsrel=1e-11, limit=200, points=[0.0])[0]
            for k in (0, 1, 2)
        )
        assert mu[row] == pytest.approx(one / zero, rel=1e-6, abs=1e-7)
        assert std[row] ** 2 == pytest.approx(two / zero - (one / zero) ** 2, rel=1e-6)


def test_one_label_is_exact():
    rows, mean = np.array([[0.3]]), Constant(-1.0)
    posterior = ExpectationPropagationPosterior(SquaredExponential(1.0, 9.0), rows, [1], mean=mean)

    def weight(f, k):
        return f**k * norm.pdf(f, -1.0, 3.0) * expit(f)

    zero, one, two = (quad(weight, -40, 40, args=(k,), epsrel=1e-11)[0] for k in (0, 1, 2))
    mu, std = posterior.predict(rows, return_std=True)
    assert mu[0] == pytest.approx(one / zero, rel=1e-7)
    assert std[0] ** 2 == pytest.approx(two / zero - (one / zero) ** 2, rel=1e-7)
    assert posterior.log_marginal_likelihood == pytest.approx(np.log(zero), rel=1e-9)


def test_few_labels_by_brute_force():
    """Against two million draws of the prior, weighted by the labels' probabilities."""
    kernel, rows = SquaredExponential(1.0, 25.0), X[:6]
    labels = Y[:6]
    points = np.vstack([rows, ROWS[:3]])
    root = np.linalg.cholesky(kernel(points, points) + 1e-10 * np.eye(9))
    f = np.random.default_rng(0).standard_normal((2_000_000, 9)) @ root.T
    logs = log_expit((2 * labels - 1) * f[:, :6]).sum(axis=1)
    share = np.exp(logs - logs.max())
    evidence = np.log(share.mean()) + logs.max()
    share /= share.sum()
    mean = share @ f
    std = np.sqrt(share @ (f - mean) ** 2)
    chances = share @ expit(f)
    off = {}
    for kind in (ExpectationPropagationPosterior, LaplacePosterior):
        posterior = kind(kernel, rows, labels)
        mu, sigma = posterior.predict(points, return_std=True)
        grid = np.linspace(-9, 9, 2001)
        w = norm.pdf(grid) / norm.pdf(grid).sum()
        off[kind] = {
            "mean": np.abs(mu - mean).max(),
            "std": np.abs(sigma - std).max(),
            "probability": np.abs(expit(mu[:, None] + sigma[:, None] * grid) @ w - chances).max(),
            "evidence": abs(posterior.log_marginal_likelihood - evidence),
        }
    ours, theirs = off.values()
    assert ours["mean"] < 0.1
    assert ours["std"] < 0.1
    assert ours["probability"] < 0.015
    assert ours["evidence"] < 0.02
    for name, value in ours.items():
        assert value < 0.25 * theirs[name], name


def test_attributions_are_complete_in_mean_and_variance():
    posterior = ExpectationPropagationPosterior(KERNEL, X, Y, mean=Constant(-0.5))
    ex = Explainer(posterior, B)(ROWS)
    mean, cov = posterior.predict(np.vstack([ROWS, B]), return_cov=True)
    np.testing.assert_allclose(ex.values.sum(axis=1), mean[:-1] - mean[-1], rtol=0, atol=1e-9)
    var = np.diagonal(cov)[:-1] + cov[-1, -1] - 2 * cov[:-1, -1]
    np.testing.assert_allclose(ex.cov.sum(axis=(1, 2)), var, rtol=1e-9)


@pytest.mark.parametrize("variance", [1e-8, 1.0, 1e3, 1e6, 1e12])
@pytest.mark.parametrize("kind", ["separable", "ones", "noise"])
def test_extreme_data(variance, kind):
    labels = {
        "separable": X[:, 0] > 0,
        "ones": np.ones(N),
        "noise": np.random.default_rng(1).random(N) > 0.5,
    }[kind]
    posterior = ExpectationPropagationPosterior(SquaredExponential(1.5, variance), X, labels)
    assert np.isfinite(Explainer(posterior)(ROWS).cov).all()
    assert np.isfinite(posterior.log_marginal_likelihood)


def test_rows_that_contradict_each_other():
    rows, labels = np.repeat(X[:5], 4, axis=0), np.tile([0, 1, 1, 1], 5)
    for variance in (1e4, 1e8):
        posterior = ExpectationPropagationPosterior(SquaredExponential(1.0, variance), rows, labels)
        # Three of four: with a flat prior σ(f) has a beta distribution, and E[f] = ψ(3) − ψ(1).
        np.testing.assert_allclose(posterior.predict(X[:5]), 1.5, atol=0.06)


def test_where_no_sites_are_found_laplace_serves():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(90, 1))
    labels, mean = rng.random(90) > 0.5, Constant(-50.0)
    for variance in (3e5, 1e6, 3e6):
        kernel = Matern32(0.9, variance)
        if sites(kernel(rows, rows), labels.astype(float), mean(rows)) is None:
            break
    else:
        pytest.fail("sites were found everywhere")
    ours, laplace = (
        kind(kernel, rows, labels, mean=mean)
        for kind in (ExpectationPropagationPosterior, LaplacePosterior)
    )
    np.testing.assert_array_equal(ours.alpha, laplace.alpha)


def test_a_row_without_prior_variance():
    rows = np.vstack([np.zeros(D), X])
    posterior = ExpectationPropagationPosterior(LinearKernel(4.0), rows, [1, *Y])
    without = ExpectationPropagationPosterior(LinearKernel(4.0), X, Y)
    np.testing.assert_allclose(posterior.predict(ROWS), without.predict(ROWS), atol=1e-7)


def test_tensors_and_integration():
    posterior = ExpectationPropagationPosterior(Matern52(2.0, 9.0), X, Y)
    tensors = ExpectationPropagationPosterior(Matern52(2.0, 9.0), torch.tensor(X), torch.tensor(Y))
    np.testing.assert_allclose(
        Explainer(tensors)(torch.tensor(ROWS)).cov, Explainer(posterior)(ROWS).cov, atol=1e-9
    )
    parts = integrate(posterior).components
    assert len(parts) > 1
    assert {type(part) for _, part in parts} == {ExpectationPropagationPosterior}
    assert repr(posterior).startswith("ExpectationPropagationPosterior(60 rows × 3 features")
    with pytest.raises(UnsupportedModelError, match="a label is not a value"):
        posterior.condition_on(X[:1], [1.0])
