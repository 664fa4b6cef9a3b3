"""Prior means with uncertain coefficients: universal kriging, against generalised least squares and
a wide kernel.
"""

import numpy as np
import pytest
import torch

from gpattr import Baselines, Explainer, GPRegressor
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Constant, Linear, Matern52, SquaredExponential
from gpattr.means import Linear as LinearMean
from gpattr.means import Polynomial
from gpattr.operators import Gradient, IntegratedGradients
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(8)
Z = RNG.normal(size=(25, 2))
Y = 2.0 - Z[:, 0] + 3.0 * Z[:, 1] + np.sin(2 * Z[:, 0]) + 0.1 * RNG.normal(size=25)
X, B = RNG.normal(size=(4, 2)) * 2, np.array([0.25, -0.5])
KERNEL = Matern52([1.0, 2.0], 0.7)
BASES = [B, Baselines(RNG.normal(size=(3, 2)), [0.2, 0.3, 0.5])]


@pytest.mark.parametrize("baseline", BASES)
def test_a_gaussian_prior_on_the_coefficients_is_a_linear_kernel(baseline):
    mean = LinearMean([0.5, -0.25], 1.0, covariance=np.diag([4.0, 0.5, 2.0]))
    one = ExactPosterior(KERNEL, Z, Y, noise=0.05, mean=mean)
    two = ExactPosterior(
        KERNEL + Constant(4.0) + Linear([0.5, 2.0]),
        Z,
        Y,
        noise=0.05,
        mean=LinearMean([0.5, -0.25], 1.0),
    )
    assert abs(one.log_marginal_likelihood - two.log_marginal_likelihood) < 1e-10
    for here, there in zip(
        one.predict(X, return_cov=True), two.predict(X, return_cov=True), strict=True
    ):
        np.testing.assert_allclose(here, there, atol=1e-11)
    np.testing.assert_allclose(
        one.predict(X, return_std=True)[1], two.predict(X, return_std=True)[1], atol=1e-11
    )
    ex, other = Explainer(one, baseline)(X), Explainer(two, baseline)(X)
    np.testing.assert_allclose(ex.values, other.values, atol=1e-11)
    np.testing.assert_allclose(ex.cov, other.cov, atol=1e-11)
    np.testing.assert_allclose(
        Explainer(one, baseline).joint(X), Explainer(two, baseline).joint(X), atol=1e-11
    )
    np.testing.assert_allclose(
        one.apply(Gradient(), X).cov, two.apply(Gradient(), X).cov, atol=1e-11
    )


def test_a_flat_prior_is_generalised_least_squares():
    posterior = ExactPosterior(
        KERNEL, Z, Y, noise=0.05, mean=LinearMean([0.0, 0.0], covariance="flat")
    )
    H, A = np.column_stack([np.ones(25), Z]), KERNEL(Z, Z) + 0.05 * np.eye(25)
    C = np.linalg.inv(H.T @ np.linalg.solve(A, H))
    beta = C @ H.T @ np.linalg.solve(A, Y)
    np.testing.assert_allclose(posterior.mean.coefficients, beta[1:], rtol=1e-10)
    np.testing.assert_allclose(posterior.mean(np.zeros((1, 2))), beta[:1], rtol=1e-10)
    np.testing.assert_allclose(posterior.trend.covariance[1:, 1:], C[1:, 1:], rtol=1e-9)
    h = np.column_stack([np.ones(4), X])
    R = h - KERNEL(X, Z) @ np.linalg.solve(A, H)
    cov = KERNEL(X, X) - KERNEL(X, Z) @ np.linalg.solve(A, KERNEL(Z, X)) + R @ C @ R.T
    np.testing.assert_allclose(posterior.predict(X, return_cov=True)[1], cov, atol=1e-11)
    # Equation 2.45 of Rasmussen and Williams.
    P = np.linalg.solve(A, H)
    fit = Y @ np.linalg.solve(A, Y) - Y @ P @ C @ P.T @ Y
    logs = np.linalg.slogdet(A)[1] + np.linalg.slogdet(H.T @ P)[1] + 22 * np.log(2 * np.pi)
    np.testing.assert_allclose(posterior.log_marginal_likelihood, -0.5 * (fit + logs), rtol=1e-12)
    wide = ExactPosterior(
        KERNEL, Z, Y, noise=0.05, mean=LinearMean([0.0, 0.0], covariance=1e8 * np.eye(3))
    )
    ex, other = Explainer(posterior, B)(X), Explainer(wide, B)(X)
    np.testing.assert_allclose(ex.values, other.values, atol=1e-6)
    np.testing.assert_allclose(ex.cov, other.cov, atol=1e-6)


@pytest.mark.parametrize("offset", [2.0**20, 2.0**26])
def test_a_flat_trend_far_from_the_origin(offset):
    """Coordinates and times far from zero: rows on a grid, so that moving them is exact."""
    rows, points = np.round(Z * 2**10) / 2**10, np.round(X * 2**10) / 2**10
    near, far = (
        ExactPosterior(
            KERNEL, rows + shift, Y, noise=0.1, mean=LinearMean([0.0, 0.0], covariance="flat")
        )
        for shift in (0, offset)
    )
    here, there = (
        Explainer(near, points[0])(points),
        Explainer(far, points[0] + offset)(points + offset),
    )
    np.testing.assert_allclose(here.values, there.values, atol=1e-7)
    np.testing.assert_allclose(here.cov, there.cov, atol=1e-7)
    assert abs(near.log_marginal_likelihood - far.log_marginal_likelihood) < 1e-6
    model = GPRegressor(mean="linear").fit(rows + offset, Y)
    np.testing.assert_allclose(model.mean_.coefficients, [-1.0, 3.0], atol=0.7)


def test_polynomials():
    powers = [[0, 0], [1, 0], [0, 2], [3, 1]]
    mean = Polynomial([1.0, -2.0, 0.5, 0.25], powers)

    def value(x):
        return 1.0 - 2.0 * x[:, 0] + 0.5 * x[:, 1] ** 2 + 0.25 * x[:, 0] ** 3 * x[:, 1]

    np.testing.assert_allclose(mean(X), value(X), rtol=1e-14)
    slopes = np.column_stack([-2.0 + 0.75 * X[:, 0] ** 2 * X[:, 1], X[:, 1] + 0.25 * X[:, 0] ** 3])
    np.testing.assert_allclose(mean.gradient(X), slopes, rtol=1e-14)
    np.testing.assert_allclose(mean.gradient(torch.tensor(X)).numpy(), slopes, rtol=1e-14)
    flat = SquaredExponential(variance=1e-300)
    ex = Explainer(
        ExactPosterior(flat, Z, value(Z), noise=1.0, mean=mean), np.zeros(2), method="exact"
    )(X)
    # By hand from 0: x₁²/2 goes to feature 1 alone; x₀³x₁/4 is shared 3 : 1.
    term = 0.25 * X[:, 0] ** 3 * X[:, 1]
    np.testing.assert_allclose(
        ex.values[:, 0], -2.0 * X[:, 0] + 0.75 * term, rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(
        ex.values[:, 1], 0.5 * X[:, 1] ** 2 + 0.25 * term, rtol=1e-12, atol=1e-13
    )
    assert ex.method == "closed form"


@pytest.mark.parametrize("kernel", [None, SquaredExponential([1.0, 1.0]), Matern52([1.0, 1.0])])
def test_a_linear_trend_is_learned_with_its_uncertainty(kernel, tmp_path):
    model = GPRegressor(kernel, mean="linear", hyperparameters="optimal").fit(Z, Y)
    np.testing.assert_allclose(model.posterior_.mean.coefficients, [-1.0, 3.0], atol=0.7)
    inside, outside = (Explainer(model, B)(rows).std[0] for rows in (X[:1], 50.0 * np.ones((1, 2))))
    assert (
        outside > 10 * inside
    ).all()  # far from the data the slope's uncertainty grows with the distance
    rows = np.array([[50.0, 50.0], [50.0, 0.0]])
    np.testing.assert_allclose(
        model.predict(rows)[0] - model.predict(rows)[1],
        50 * model.posterior_.mean.coefficients[1],
        rtol=1e-6,
    )
    path = tmp_path / "model.json"
    model.save(path)
    again = GPRegressor.load(path)
    np.testing.assert_array_equal(Explainer(again, B)(X).cov, Explainer(model, B)(X).cov)


def test_tensors():
    mean = Polynomial([0.0, 0.0], [[1, 0], [1, 1]], covariance="flat")
    here = ExactPosterior(KERNEL, Z, Y, noise=0.1, mean=mean)
    there = ExactPosterior(KERNEL, torch.tensor(Z), torch.tensor(Y), noise=0.1, mean=mean)
    op = IntegratedGradients(B)
    one, two = here.apply(op, X), there.apply(op, torch.tensor(X))
    np.testing.assert_allclose(one.mean, two.mean.numpy(), atol=1e-12)
    np.testing.assert_allclose(one.cov, two.cov.numpy(), atol=1e-12)
    np.testing.assert_allclose(
        here.joint(op, X), there.joint(op, torch.tensor(X)).numpy(), atol=1e-12
    )
    np.testing.assert_allclose(
        here.predict(X, return_std=True)[1],
        there.predict(torch.tensor(X), return_std=True)[1],
        atol=1e-12,
    )
    assert abs(here.log_marginal_likelihood - there.log_marginal_likelihood) < 1e-11


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: LinearMean([1.0, 2.0], covariance="wide"),
            r"covariance: expected an array of shape \(3, 3\), 'flat' or None, got 'wide'",
        ),
        (
            lambda: LinearMean([1.0, 2.0], covariance=np.eye(2)),
            r"covariance: expected .* got an array of shape \(2, 2\)",
        ),
        (
            lambda: LinearMean([1.0], covariance=[[1.0, 2.0], [2.0, 1.0]]),
            "covariance: expected a symmetric positive definite matrix",
        ),
        (
            lambda: LinearMean([1.0], covariance=[[1.0, 0.5], [0.0, 1.0]]),
            "covariance: expected a symmetric positive definite matrix",
        ),
        (lambda: Polynomial([1.0], [[0.5]]), "powers: expected whole numbers, 0 or larger"),
        (lambda: Polynomial([1.0], [[-1]]), "powers: expected whole numbers, 0 or larger"),
        (
            lambda: Polynomial([1.0, 2.0], [[1]]),
            r"coefficients: expected 1 coefficients \(one per row of powers\), got 2",
        ),
        (lambda: Polynomial([1.0], [[1, 2]]).check_features(3), "powers: expected 3 columns"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_dependent_columns_are_refused():
    rows = np.column_stack([Z[:, 0], np.full(25, 2.0)])
    with pytest.raises(
        InvalidInputError, match="mean: its basis functions are not independent on these rows"
    ):
        ExactPosterior(KERNEL, rows, Y, noise=0.1, mean=LinearMean([0.0, 0.0], covariance="flat"))
    with pytest.raises(InvalidInputError, match="fewer rows than coefficients"):
        ExactPosterior(
            KERNEL, Z[:2], Y[:2], noise=0.1, mean=LinearMean([0.0, 0.0], covariance="flat")
        )
    ExactPosterior(KERNEL, rows, Y, noise=0.1, mean=LinearMean([0.0, 0.0], covariance=np.eye(3)))
