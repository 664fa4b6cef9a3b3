"""Bayesian linear regression against the paper's formula, an exact GP, and scikit-learn."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.linear_model import BayesianRidge
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpattr import BayesianLinearRegressor, Explainer
from gpattr.exceptions import (
    FileFormatError,
    InvalidInputError,
    NotPositiveDefiniteError,
    TooLargeError,
)
from gpattr.kernels import Linear
from gpattr.means import Polynomial
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(4)
X = RNG.normal(size=(40, 3)) * [1.0, 5.0, 0.2] + [0.0, 3.0, -1.0]
Y = X @ [1.0, -0.3, 4.0] + 2.0 + 0.3 * RNG.normal(size=40)
ROWS, B = X[:6] * 1.5, X[7]
_half = RNG.normal(size=(3, 3))
COV = _half @ _half.T + 0.1 * np.eye(3)


@parametrize_with_checks(
    [BayesianLinearRegressor(), BayesianLinearRegressor(degree=2, fit_intercept=False)]
)
def test_scikit_learn_checks(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("needs SCIPY_ARRAY_API=1 set before SciPy is imported")
    check(estimator)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_formula_of_the_paper(intercept):
    """C = (Σ⁻¹ + XᵀX/σ²)⁻¹, w̄ = C(Σ⁻¹μ + Xᵀy/σ²): attributions w̄ᵢ(xᵢ − bᵢ), covariance (xᵢ −
    bᵢ)Cᵢⱼ(xⱼ − bⱼ).
    """
    mu, noise = np.array([0.5, 0.0, 1.0]), 0.09
    model = BayesianLinearRegressor(
        prior_mean=mu, prior_cov=COV, noise_variance=noise, fit_intercept=intercept
    ).fit(X, Y)
    rows, y = (X - X.mean(axis=0), Y - Y.mean()) if intercept else (X, Y)
    C = np.linalg.inv(np.linalg.inv(COV) + rows.T @ rows / noise)
    w = C @ (np.linalg.solve(COV, mu) + rows.T @ y / noise)
    ex = Explainer(model, B)(ROWS)
    step = ROWS - B
    assert ex.values == pytest.approx(step * w, rel=1e-10)
    assert ex.cov == pytest.approx(step[:, :, None] * C * step[:, None, :], rel=1e-10)
    assert model.coef_ == pytest.approx(w, rel=1e-10)
    assert model.predict(ROWS) == pytest.approx(ROWS @ model.coef_ + model.intercept_, rel=1e-10)
    assert ex.method == "closed form"
    assert ex.error.max() < 1e-11  # rounding of the weights included, ten times the true error


@pytest.mark.parametrize("intercept", [False, True])
def test_an_exact_process_with_a_linear_kernel(intercept):
    variances, noise = np.array([2.0, 0.5, 1.0]), 0.09
    mean = Polynomial([0.0], [[0, 0, 0]], covariance="flat") if intercept else None
    exact = ExactPosterior(Linear(variances), X, Y, noise=noise, mean=mean)
    model = BayesianLinearRegressor(
        prior_cov=np.diag(variances), noise_variance=noise, fit_intercept=intercept
    ).fit(X, Y)
    one, two = Explainer(model, B)(ROWS), Explainer(exact, B)(ROWS)
    assert one.values == pytest.approx(two.values, abs=1e-10 * np.abs(two.values).max())
    assert one.cov == pytest.approx(two.cov, abs=1e-10)
    for here, there in zip(
        model.predict(ROWS, return_cov=True), exact.predict(ROWS, return_cov=True)
    ):
        assert here == pytest.approx(there, abs=1e-9)
    assert model.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood, rel=1e-9)


def test_polynomial_against_an_exact_process():
    """k = x·x' + (x·x')² is the prior of all monomials of degree 1 and 2, x₁x₂ counted twice."""
    exact = ExactPosterior(Linear() + Linear() * Linear(), X, Y, noise=0.09)
    powers = PolynomialFeatures(2, include_bias=False).fit(X).powers_
    prior = np.where((powers == 1).sum(axis=1) == 2, 2.0, 1.0)
    model = BayesianLinearRegressor(
        prior_cov=np.diag(prior), noise_variance=0.09, fit_intercept=False, degree=2
    ).fit(X, Y)
    one, two = Explainer(model, B)(ROWS), Explainer(exact, B)(ROWS)
    assert one.values == pytest.approx(two.values, abs=1e-8 * np.abs(two.values).max())
    assert one.cov == pytest.approx(two.cov, abs=1e-8)
    assert one.method == "closed form"


def test_evidence_is_that_of_the_targets():
    model = BayesianLinearRegressor(
        prior_cov=COV, prior_mean=[1.0, 2.0, 3.0], noise_variance=0.5, fit_intercept=False
    ).fit(X, Y)
    direct = multivariate_normal(X @ [1.0, 2.0, 3.0], X @ COV @ X.T + 0.5 * np.eye(40)).logpdf(Y)
    assert model.log_marginal_likelihood_ == pytest.approx(direct, rel=1e-9)


def test_variances_learned_are_those_of_scikit_learn():
    rows, y = (X - X.mean(axis=0)) / np.sqrt(((X - X.mean(axis=0)) ** 2).mean(axis=0)), Y - Y.mean()
    reference = BayesianRidge(
        alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, fit_intercept=False, max_iter=10000, tol=1e-13
    )
    reference.fit(rows, y)
    model = BayesianLinearRegressor(fit_intercept=False).fit(rows, y)
    assert model.noise_variance_ == pytest.approx(1 / reference.alpha_, rel=1e-4)
    assert model.prior_variance_ == pytest.approx(1 / reference.lambda_, rel=1e-4)
    assert model.coef_ == pytest.approx(reference.coef_, rel=1e-5)
    assert model.posterior_.covariance == pytest.approx(reference.sigma_, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("known", ["nothing", "noise", "prior"])
def test_variances_learned_are_the_most_likely(known):
    options = {"nothing": {}, "noise": {"noise_variance": 0.2}, "prior": {"prior_cov": np.eye(3)}}[
        known
    ]
    best = BayesianLinearRegressor(**options).fit(X, Y)
    for factor in (0.99, 1.01):
        for moved in ("noise", "prior"):
            if moved == known:
                continue
            tau2, noise = best.prior_variance_, best.noise_variance_
            tau2, noise = (tau2 * factor, noise) if moved == "prior" else (tau2, noise * factor)
            scale = np.eye(3) if known == "prior" else np.diag(1.0 / X.var(axis=0))
            other = BayesianLinearRegressor(prior_cov=tau2 * scale, noise_variance=noise).fit(X, Y)
            assert other.log_marginal_likelihood_ < best.log_marginal_likelihood_


def test_units_change_nothing():
    scale, shift = np.array([1e-3, 1e6, 7.0]), np.array([5.0, 1e6, -1e3])
    for degree in (1, 3):
        one = Explainer(BayesianLinearRegressor(degree=degree).fit(X, Y), B)(ROWS)
        two = Explainer(
            BayesianLinearRegressor(degree=degree).fit(X * scale + shift, Y), B * scale + shift
        )(ROWS * scale + shift)
        assert two.values == pytest.approx(one.values, abs=1e-7 * np.abs(one.values).max())
        assert two.std == pytest.approx(one.std, rel=1e-5)


@pytest.mark.parametrize(
    "data",
    [
        (X[:, [0, 1, 0]], Y),  # a repeated column
        (np.column_stack([X, np.full(40, 3.0)]), Y),  # a constant one
        (RNG.normal(size=(6, 20)), Y[:6]),  # more features than rows
        (X[:, :1], Y),
        (X, X @ [1.0, 2.0, 3.0]),  # no noise at all
        (X * 1e-12, Y * 1e9),
        (X + 1e9, Y),
        (np.repeat(X, 2, axis=0), np.repeat(Y, 2)),
    ],
    ids=["repeated", "constant", "wide", "one feature", "no noise", "tiny", "far", "duplicates"],
)
@pytest.mark.parametrize("degree", [1, 2])
def test_awkward_data(data, degree):
    rows, y = data
    model = BayesianLinearRegressor(degree=degree).fit(rows, y)
    ex = Explainer(model)(rows[:5])
    assert np.isfinite(ex.values).all()
    assert np.isfinite(ex.cov).all()
    assert np.abs(ex.delta).max() <= 1e-9 * np.abs(ex.predictions).max()
    assert model.score(rows, y) > (
        0.5 if len(rows) > 6 else -1e-9
    )  # six targets that have nothing to do with the features


def test_a_repeated_column_shares_the_credit():
    model = BayesianLinearRegressor().fit(X[:, [0, 1, 0]], Y)
    assert model.coef_[0] == pytest.approx(model.coef_[2], rel=1e-6)


def test_far_away_targets_keep_their_digits():
    near, far = (BayesianLinearRegressor().fit(X + shift, Y + shift) for shift in (0.0, 2.0**20))
    assert far.coef_ == pytest.approx(near.coef_, rel=1e-8)


def test_file(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    given = {"prior_cov": COV, "prior_mean": [1.0, 2.0, 3.0], "noise_variance": 0.1}
    for options in ({}, {"degree": 2}, given, {"fit_intercept": False}):
        model = BayesianLinearRegressor(**options).fit(frame, Y)
        model.save(tmp_path / "m.json")
        loaded = BayesianLinearRegressor.load(tmp_path / "m.json")
        one, two = (Explainer(m)(frame.head()) for m in (model, loaded))
        assert one == two
        assert loaded.log_marginal_likelihood_ == model.log_marginal_likelihood_
        assert ("coef_" in vars(loaded)) == (loaded.degree == 1)
        assert list(loaded.feature_names_in_) == ["a", "b", "c"]
    (tmp_path / "m.json").write_text((tmp_path / "m.json").read_text().replace("0", "1", 1))
    with pytest.raises(FileFormatError):
        BayesianLinearRegressor.load(tmp_path / "m.json")


def test_frames_are_aligned_by_name():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = BayesianLinearRegressor().fit(frame, Y)
    assert np.array_equal(model.predict(frame[["c", "a", "b"]]), model.predict(frame))
    assert Explainer(model)(frame.head(2)).feature_names == ("a", "b", "c")
    with pytest.raises(InvalidInputError, match="X: expected"):
        model.predict(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"prior_cov": np.diag([1.0, -1.0, 1.0])},
            NotPositiveDefiniteError,
            "prior_cov: .*, got the eigenvalue -1",
        ),
        (
            {"prior_cov": np.diag([1.0, 0.0, 1.0])},
            NotPositiveDefiniteError,
            "prior_cov: .* eigenvalue 0",
        ),
        (
            {"prior_cov": [[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]]},
            NotPositiveDefiniteError,
            "prior_cov: expected a symmetric",
        ),
        ({"prior_cov": np.full((3, 3), np.nan)}, NotPositiveDefiniteError, "prior_cov"),
        (
            {"prior_cov": np.eye(4)},
            InvalidInputError,
            r"prior_cov: expected an array of shape \(3, 3\) .*, got \(4, 4\)",
        ),
        ({"prior_mean": [1.0]}, InvalidInputError, "prior_mean: expected 3 numbers"),
        (
            {"noise_variance": 0.0},
            InvalidInputError,
            "noise_variance: expected finite numbers larger than 0",
        ),
        ({"noise_variance": -1}, InvalidInputError, "noise_variance"),
        ({"degree": 0}, InvalidInputError, "degree: expected an integer of 1 or more, got 0"),
        ({"degree": 1.5}, InvalidInputError, "degree: expected an integer of 1 or more, got 1.5"),
        ({"degree": True}, InvalidInputError, "degree"),
        (
            {"degree": 300},
            TooLargeError,
            "The covariance of 4590551 monomials .*: use a lower degree",
        ),
        (
            {"fit_intercept": "no"},
            InvalidInputError,
            "fit_intercept: expected True or False, got 'no'",
        ),
        (
            {"prior_cov": pd.DataFrame(np.eye(3))},
            InvalidInputError,
            "prior_cov: expected a plain matrix .* labelled frame",
        ),
    ],
)
def test_bad_options(options, error, words):
    with pytest.raises(error, match=words):
        BayesianLinearRegressor(**options).fit(X, Y)


def test_features_that_do_not_vary():
    model = BayesianLinearRegressor().fit(np.ones((40, 2)), Y)
    assert model.predict(np.ones((1, 2))) == pytest.approx([Y.mean()])
    assert model.noise_variance_ == pytest.approx(Y.var() * 40 / 39)


def test_options_changed_later_do_not_leak(tmp_path):
    model = BayesianLinearRegressor(fit_intercept=False).fit(X, Y)
    before = model.predict(X)
    model.set_params(fit_intercept=True, degree=2).save(tmp_path / "m.json")
    assert np.array_equal(BayesianLinearRegressor.load(tmp_path / "m.json").predict(X), before)
    with pytest.raises(InvalidInputError):
        model.fit(np.ones((5, 4)), np.ones(5))
    assert model.n_features_in_ == 3
    assert np.array_equal(model.predict(X), before)


def test_whole_numbers_of_numpy_survive_a_file(tmp_path):
    model = BayesianLinearRegressor(degree=np.int64(2), noise_variance=np.float64(0.1)).fit(X, Y)
    model.save(tmp_path / "m.json")
    again = clone(BayesianLinearRegressor.load(tmp_path / "m.json")).fit(X, Y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("offset", [0.0, 1e5, 1e9])
def test_polynomials_far_from_the_origin_keep_their_digits(offset):
    """Against exact fractions of the very numbers that went in."""
    x = np.random.default_rng(1).normal(size=(50, 1)) + offset
    model = BayesianLinearRegressor(degree=4, noise_variance=1e-3).fit(
        x, np.sin(2 * (x[:, 0] - offset))
    )
    basis, w = model.posterior_.basis, [Fraction(v) for v in model.posterior_.weights.tolist()]

    def exactly(point):
        u = (Fraction(float(point)) - Fraction(float(basis.origin[0]))) / Fraction(
            float(basis.scale[0])
        )
        return sum(wj * u ** int(k) for wj, k in zip(w, basis.powers[:, 0]))

    b = x[7]
    ex = Explainer(model, b)(x[:6])
    for value, error, row in zip(ex.values[:, 0], ex.error, x[:6, 0]):
        off = abs(float(Fraction(float(value)) - (exactly(row) - exactly(b[0]))))
        assert off <= error
        assert off <= 1e-13


def test_bad_data():
    for name, data in {
        "X": (np.ma.masked_array(X, X > 1), Y),
        "y": (X, np.ma.masked_array(Y, Y > 1)),
    }.items():
        with pytest.raises(
            InvalidInputError, match=f"{name}: expected plain numbers, got a masked array"
        ):
            BayesianLinearRegressor().fit(*data)
    with pytest.raises(InvalidInputError, match="X: expected numbers, got dates"):
        BayesianLinearRegressor().fit(np.full((40, 2), np.datetime64("2026-01-01")), Y)
    with pytest.raises(
        InvalidInputError, match="y: expected targets whose square float64 can hold"
    ):
        BayesianLinearRegressor().fit(X, Y * 1e170)
    assert (
        BayesianLinearRegressor(fit_intercept=False).fit(X, np.ones(40)).score(X, Y) < 1
    )  # a constant is not one value of w·x
    with pytest.raises(InvalidInputError, match="n_samples=1"):
        BayesianLinearRegressor().fit(X[:1], Y[:1])
    with pytest.raises(InvalidInputError, match="y: expected targets that differ"):
        BayesianLinearRegressor().fit(X, np.ones(40))
    known = BayesianLinearRegressor(prior_cov=np.eye(3), noise_variance=1.0).fit(
        X[:1], Y[:1]
    )  # nothing to learn
    assert known.predict(X[:1]) == pytest.approx(Y[:1])
    with pytest.raises(ValueError, match="NaN"):
        BayesianLinearRegressor().fit(np.where(X > 5, np.nan, X), Y)
