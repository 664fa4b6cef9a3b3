"""Odd training problems that broke something once."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpattr import Explainer, GPRegressor
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError
from gpattr.kernels import Constant, SquaredExponential
from gpattr.means import Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2  # without any noise


def test_noise_free_data_are_trained_up_to_where_the_covariance_turns_singular():
    start = GPRegressor(optimize=False).fit(X, Y, noise=np.full(80, 1e-8)).log_marginal_likelihood_
    for noise in (np.zeros(80), np.full(80, 1e-10)):
        model = GPRegressor(hyperparameters="optimal").fit(X, Y, noise=noise)
        assert model.log_marginal_likelihood_ > start + 200
        assert model.relevance_[2] < 0.1 * model.relevance_[0]
    exact = GPRegressor(noise_variance=0.0, hyperparameters="optimal").fit(X, Y)
    np.testing.assert_allclose(exact.predict(X), Y, atol=1e-6)
    assert (
        GPRegressor(hyperparameters="optimal").fit(X, Y).score(X, Y) > 0.9999
    )  # and without a warning, though the noise ends at its bound


@pytest.mark.parametrize("gap", [1e2, 1e5, 1e8])
def test_data_that_span_many_lengthscales_keep_their_distances(gap):
    u = np.sort(np.random.default_rng(0).random(15) * 3)
    rows, y = np.r_[u, gap + u][:, None], np.sin(2 * np.r_[u, u])
    model = GPRegressor(SquaredExponential(0.5), mean="zero", hyperparameters="optimal").fit(
        rows, y
    )
    assert model.log_marginal_likelihood_ == pytest.approx(99.7504, abs=1e-2)
    assert model.kernel_.lengthscale == pytest.approx(1.2034, rel=1e-2)


@pytest.mark.parametrize("scale", [1e-165, 1e-100, 1e100, 1e160])
def test_extreme_scales(scale):
    assert GPRegressor(hyperparameters="optimal").fit(X * scale, Y).score(X * scale, Y) > 0.999
    if 1e-140 < scale < 1e140:
        assert GPRegressor(hyperparameters="optimal").fit(X, Y * scale).score(X, Y * scale) > 0.999
    else:
        with pytest.raises(
            InvalidInputError, match="y: expected targets whose square float64 can hold"
        ):
            GPRegressor(hyperparameters="optimal").fit(X, Y * scale)


def test_a_constant_that_is_not_exact_is_still_a_constant():
    assert GPRegressor(optimize=False).fit(X, [0.1] * 80).kernel_.variance == 1.0
    assert GPRegressor().fit(np.c_[X, np.full(80, 0.1)], Y).relevance_[3] == 0.0


def test_a_small_start_can_reach_the_targets():
    model = GPRegressor(SquaredExponential([1.0, 1.0, 1.0])).fit(X, 10 * Y)
    assert model.score(X, 10 * Y) > 0.99


def test_everything_fixed_by_bounds():
    model = GPRegressor(
        bounds={"lengthscale": (1, 1), "variance": (1, 1), "noise_variance": (0.1, 0.1)}
    ).fit(X, Y)
    np.testing.assert_allclose(model.kernel_.lengthscale, 1.0)
    assert model.noise_variance_ == pytest.approx(0.1)


def test_a_refit_leaves_nothing_of_the_last_one():
    model = GPRegressor().fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    before = model.predict(X)
    with pytest.raises(InvalidInputError):
        model.fit(np.c_[X, X], np.ones(80))
    np.testing.assert_array_equal(model.predict(X), before)
    model.fit(torch.tensor(X), torch.tensor(Y))
    assert not hasattr(model, "feature_names_in_")
    model.set_params(kernel=SquaredExponential() + Constant()).fit(X, Y)
    assert not hasattr(model, "relevance_")


def test_users_tensors_are_copied():
    noise, b = torch.full((80,), 0.1, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    model = GPRegressor().fit(torch.tensor(X), torch.tensor(Y), noise=noise)
    explainer = Explainer(model, b)
    before = explainer(X[:2])
    noise[0], b[0] = 99.0, 99.0
    assert model.noise_variance_[0] == 0.1
    assert explainer(X[:2]) == before
    assert GPRegressor().fit(X, torch.tensor(Y).requires_grad_()).score(X, Y) > 0.99


def test_hyperparameters_given_as_tensors_are_numbers(tmp_path):
    kernel = SquaredExponential(torch.tensor([1.0, 2.0, 3.0]), variance=torch.tensor(2.0))
    assert kernel == SquaredExponential([1.0, 2.0, 3.0], variance=2.0)
    assert hash(kernel) == hash(SquaredExponential([1.0, 2.0, 3.0], variance=2.0))
    mean, bounds = (
        Linear(torch.tensor([1.0, 2.0, 3.0])),
        {"lengthscale": (torch.tensor(0.1), np.float32(50.0))},
    )
    model = GPRegressor(kernel, mean=mean, noise_variance=torch.tensor(0.5), bounds=bounds).fit(
        X, Y
    )
    model.save(tmp_path / "model.json")
    back = GPRegressor.load(tmp_path / "model.json")
    assert back.noise_variance == 0.5
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


def test_frames_with_numbers_for_names_come_back_as_they_were(tmp_path):
    model = GPRegressor().fit(pd.DataFrame(X), Y)
    model.save(tmp_path / "model.json")
    back = GPRegressor.load(tmp_path / "model.json")
    assert not hasattr(back, "feature_names_in_")
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(back.predict(pd.DataFrame(X)[[2, 0, 1]]), model.predict(X))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: GPRegressor(mean=Linear([1.0])).fit(X, Y), "coefficients: expected 3"),
        (
            lambda: GPRegressor(mean=np.array([1, 2])).fit(X, Y),
            "mean: expected 'constant', 'zero', 'linear' or a gpattr mean",
        ),
        (
            lambda: GPRegressor(bounds=5).fit(X, Y),
            r"bounds: expected a dictionary \{name: \(lower, upper\)\}, got 5",
        ),
        (
            lambda: GPRegressor(bounds={"lengthscale": ([1, 2], 5)}).fit(X, Y),
            "bounds: expected one number or 3 for 'lengthscale', got 2",
        ),
        (
            lambda: GPRegressor(n_restarts=1, random_state="a").fit(X, Y),
            "random_state: expected None, an integer",
        ),
        (
            lambda: GPRegressor(noise_variance=[0.1, 0.2]).fit(X, Y),
            r"noise_variance: expected one number, got an array of shape \(2,\)",
        ),
        (
            lambda: GPRegressor().fit(X, Y, noise=0.1),
            "noise: expected one variance per row of X, got one number; that is noise_variance=",
        ),
        (lambda: GPRegressor().fit(X.astype(str), Y), "X: expected numbers, got text"),
        (lambda: GPRegressor().fit(X, ["a"] * 80), "y: expected numbers, got text"),
        (
            lambda: GPRegressor().fit(pd.DataFrame(X, columns=list("aab")), Y),
            "X: expected different column names, got 'a'",
        ),
        (
            lambda: GPRegressor().fit(pd.DataFrame({"a": ["x"] * 80}), Y),
            "X: expected numeric columns, got column 'a'",
        ),
        (
            lambda: GPRegressor().fit(X, Y).predict(X, return_std=True, return_cov=True),
            "expected at most one of return_std and return_cov",
        ),
    ],
)
def test_bad_input(use, message):
    with pytest.raises(InvalidInputError, match=message):
        use()


def test_singular_data_get_advice():
    with pytest.raises(
        NotPositiveDefiniteError, match="rows 0 and 80 of X are equal.*give a larger noise variance"
    ):
        GPRegressor(optimize=False).fit(np.vstack([X, X]), np.r_[Y, Y], noise=np.zeros(160))


def test_wrappers_are_explained_through():
    pipeline = make_pipeline(StandardScaler(), GPRegressor(optimize=False)).fit(X, Y)
    outside, inside = (
        Explainer(pipeline)(X[:2]),
        Explainer(pipeline[-1])(pipeline[:-1].transform(X[:2])),
    )
    np.testing.assert_allclose(outside.values, inside.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(outside.cov, inside.cov, rtol=1e-9, atol=1e-12)
    search = GridSearchCV(GPRegressor(optimize=False), {"mean": ["zero", "constant"]}, cv=2).fit(
        X, Y
    )
    assert Explainer(search)(X[:2]) == Explainer(search.best_estimator_)(X[:2])


def test_progress_is_in_the_users_units(capsys):
    model = GPRegressor(verbose=1, hyperparameters="optimal").fit(X, 100 * Y + X[:, 0] * 0)
    shown = float(capsys.readouterr().err.split("likelihood ")[-1].split()[0])
    assert shown == pytest.approx(model.log_marginal_likelihood_, abs=0.1)
