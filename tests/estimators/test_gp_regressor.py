from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpattr import Explainer, GPRegressor
from gpattr.estimators.evidence import marginal_likelihood
from gpattr.estimators.evidence.marginal_likelihood import ConvergenceWarning, Objective
from gpattr.estimators.hyperparameters import trainable
from gpattr.exceptions import (
    FileFormatError,
    InvalidInputError,
    NotFittedError,
    UnsupportedModelError,
)
from gpattr.kernels import Constant, Kernel, Scale, Select, SquaredExponential
from gpattr.means import Constant as ConstantMean
from gpattr.means import Function, Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) * [1.0, 20.0, 0.01] + [5.0, -300.0, 0.0]
Y = 40 * np.sin(X[:, 0]) + 3 * X[:, 1] + RNG.normal(size=60)
NESTED = (
    0.5 * SquaredExponential([1.0, 2.0, 0.5]) + 3.0 * Select(SquaredExponential(2.0), [2, 0]) + 1.5
)


@parametrize_with_checks([GPRegressor()], expected_failed_checks=lambda estimator: {})
def test_scikit_learn_checks(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip(
            "needs SCIPY_ARRAY_API=1 set before SciPy is imported; tensors have tests of their own"
            " in test_arrays.py"
        )
    check(estimator)


@pytest.mark.parametrize(
    "kernel",
    [
        NESTED,
        SquaredExponential(0.7),
        2.0 * SquaredExponential([1.0, 2.0, 0.5]),
        Constant(2.0) + NESTED,
    ],
)
@pytest.mark.parametrize("free_mean", [True, False])
def test_likelihood_and_its_gradient(kernel, free_mean):
    rows, y, noise = RNG.normal(size=(40, 3)), RNG.normal(size=40), 0.1
    rows -= rows.mean(axis=0)
    objective = Objective(rows, y, free_mean=free_mean)
    value, gradient = objective(kernel, noise)
    covariance = kernel(rows, rows) + noise * np.eye(40)
    ones = np.linalg.solve(covariance, np.ones(40))
    best = ones @ y / ones.sum() if free_mean else 0.0
    assert value == pytest.approx(
        multivariate_normal(np.full(40, best), covariance).logpdf(y), rel=1e-10
    )

    def moved(name, i, by):
        if name == "noise_variance":
            return objective(kernel, noise * np.exp(by))[0]
        changed = trainable(kernel)[name].copy()
        changed[i] *= np.exp(by)
        scalar = np.ndim(kernel.get_params()[name]) == 0
        return objective(
            kernel.with_params(**{name: float(changed[0]) if scalar else changed}), noise
        )[0]

    assert set(gradient) == {*trainable(kernel), "noise_variance"}
    for name, slopes in gradient.items():
        for i, slope in enumerate(np.atleast_1d(slopes)):
            assert slope == pytest.approx(
                (moved(name, i, 1e-5) - moved(name, i, -1e-5)) / 2e-5, abs=1e-6
            )


def test_known_noise_of_each_row_enters_the_likelihood():
    noise = np.linspace(0.1, 2.0, 60)
    model = GPRegressor(hyperparameters="optimal").fit(X, Y, noise=noise)
    np.testing.assert_array_equal(model.noise_variance_, noise)
    covariance = model.kernel_(X, X) + np.diag(noise)
    expected = multivariate_normal(
        np.full(60, model.mean_.value), covariance, allow_singular=True
    ).logpdf(Y)
    assert model.log_marginal_likelihood_ == pytest.approx(expected, rel=1e-8)
    np.testing.assert_array_equal(model.posterior_.noise, noise)


def test_it_finds_what_scikit_learn_finds():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(120, 3))
    y = np.sin(2 * rows[:, 0]) + rows[:, 1] ** 2 + 0.1 * rng.normal(size=120)
    ours = GPRegressor(mean="zero", hyperparameters="optimal").fit(rows, y)
    theirs = GaussianProcessRegressor(
        ConstantKernel() * RBF(np.ones(3), (1e-2, 1e4)) + WhiteKernel(), n_restarts_optimizer=0
    )
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # its length-scale of the irrelevant feature runs into the bound
        theirs.fit(rows, y)
    assert ours.log_marginal_likelihood_ >= theirs.log_marginal_likelihood_value_ - 0.5


def test_everything_is_in_the_users_units():
    """Other units and another origin: the same model, its hyperparameters in the new units."""
    model = GPRegressor().fit(X, Y)
    factor, unit = np.array([1e3, 0.5, 100.0]), 7.0
    moved = GPRegressor().fit(X * factor + 11.0, unit * Y - 3.0)
    np.testing.assert_allclose(
        moved.kernel_.lengthscale[:2], model.kernel_.lengthscale[:2] * factor[:2], rtol=1e-2
    )
    np.testing.assert_allclose(
        moved.predict(X * factor + 11.0), unit * model.predict(X) - 3.0, rtol=1e-4, atol=1e-3
    )
    assert moved.noise_variance_ == pytest.approx(unit**2 * model.noise_variance_, rel=1e-2)
    assert moved.log_marginal_likelihood_ == pytest.approx(
        model.log_marginal_likelihood_ - 60 * np.log(unit), abs=0.05
    )
    np.testing.assert_allclose(moved.relevance_, model.relevance_, rtol=1e-2, atol=1e-3)
    assert model.relevance_[2] < 0.1 * model.relevance_[0]


def test_a_users_kernel_is_left_in_the_users_units():
    start = SquaredExponential([1.0, 20.0, 0.01], variance=1000.0)
    fixed = GPRegressor(start, noise_variance=1.0, optimize=False, mean="zero").fit(X, Y)
    assert fixed.kernel_ is start
    assert fixed.noise_variance_ == 1.0
    trained = GPRegressor(start).fit(X, Y)
    assert trained.log_marginal_likelihood_ > fixed.log_marginal_likelihood_
    composed = GPRegressor(100.0 * start + Constant(10.0)).fit(X, Y)
    assert trainable(composed.kernel_).keys() == trainable(100.0 * start + Constant(10.0)).keys()
    assert composed.log_marginal_likelihood_ > fixed.log_marginal_likelihood_
    assert not hasattr(composed, "relevance_")


def test_means():
    zero, constant = (
        GPRegressor(mean="zero", hyperparameters="optimal").fit(X, Y),
        GPRegressor(hyperparameters="optimal").fit(X, Y),
    )
    linear = GPRegressor(mean=Linear([0.0, 3.0, 0.0]), hyperparameters="optimal").fit(X, Y)
    assert zero.mean_(X).tolist() == [0.0] * 60
    assert isinstance(constant.mean_, ConstantMean)
    assert linear.mean_.coefficients.tolist() == [0.0, 3.0, 0.0]
    # The learned constant is the most likely one.
    at = [
        Objective(X - X.mean(axis=0), Y - constant.mean_.value - by)(
            constant.kernel_, constant.noise_variance_
        )[0]
        for by in (-1, 0, 1)
    ]
    assert at[1] == max(at)


def test_predictions_and_draws():
    model = GPRegressor(hyperparameters="optimal").fit(X, Y)
    mean, std = model.predict(X[:5], return_std=True)
    _, cov = model.predict(X[:5], return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.diagonal(cov)), std, rtol=1e-6)
    draws = model.sample_y(X[:5], 4000, random_state=1)
    assert draws.shape == (5, 4000)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=5 * std.max() / 60)
    assert model.score(X, Y) > 0.95
    np.testing.assert_array_equal(model.sample_y(X[:5], random_state=1), draws[:, :1])


@pytest.mark.parametrize("kind", ["optimal", "integrated"])
def test_restarts_never_lose_and_obey_the_random_state(kind):
    """What is maximised is the evidence; of a mixture it is the evidence times the prior."""

    def evidence(**options):
        model = GPRegressor(hyperparameters=kind, **options).fit(X, Y)
        return model.log_marginal_likelihood_

    several = [evidence(n_restarts=3, random_state=s) for s in (1, 1, 2)]
    assert several[0] == several[1]
    assert kind == "integrated" or min(several) >= evidence()


def test_parameters_by_name():
    model = GPRegressor(2.0 * SquaredExponential([1.0, 2.0]) + Constant())
    assert model.get_params()["kernel__0__kernel__lengthscale"].tolist() == [1.0, 2.0]
    before = model.kernel
    model.set_params(
        kernel__0__kernel__lengthscale=[3.0, 4.0], kernel__1__variance=5.0, n_restarts=2
    )
    assert model.kernel == 2.0 * SquaredExponential([3.0, 4.0]) + Constant(5.0)
    assert before == 2.0 * SquaredExponential([1.0, 2.0]) + Constant()
    assert model.n_restarts == 2
    assert clone(model).kernel == model.kernel
    with pytest.raises(InvalidInputError, match=r"alpha: expected one of \['0'?.*lengthscale"):
        model.set_params(kernel__alpha=1.0)
    with pytest.raises(
        InvalidInputError, match="kernel__lengthscale: expected a kernel to set it in"
    ):
        GPRegressor().set_params(kernel__lengthscale=1.0)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(alpha=1.0)


def test_inside_scikit_learn():
    pipeline = make_pipeline(StandardScaler(), GPRegressor(optimize=False)).fit(X, Y)
    assert pipeline.predict(X).shape == (60,)
    kernel = SquaredExponential(1.0, variance=1000.0)
    search = GridSearchCV(
        GPRegressor(kernel, optimize=False, noise_variance=1.0),
        {"kernel__lengthscale": [0.1, 5.0]},
        cv=3,
    ).fit(StandardScaler().fit_transform(X), Y)
    assert search.best_params_ == {"kernel__lengthscale": 5.0}


def test_frames():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = GPRegressor().fit(frame, pd.Series(Y, index=range(100, 160)))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.posterior_.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(model.predict(frame[["c", "a", "b"]]), model.predict(frame))
    np.testing.assert_array_equal(model.predict(X), model.predict(frame))
    assert Explainer(model)(frame[["b", "a", "c"]].head(2)).feature_names == ("a", "b", "c")
    with pytest.raises(InvalidInputError, match=r"missing \['c'\]"):
        model.predict(frame[["a", "b"]])


@pytest.mark.parametrize(
    "model",
    [
        GPRegressor(),
        GPRegressor(
            mean="zero",
            noise_variance=2.0,
            bounds={"lengthscale": (0.01, 1e6)},
            n_restarts=1,
            random_state=3,
        ),
        GPRegressor(
            100.0 * SquaredExponential([1.0, 20.0, 0.01]) + Select(SquaredExponential(2.0), [0]),
            mean=Linear([1, 2, 3], 4),
        ),
    ],
)
@pytest.mark.parametrize("frame", [True, False])
def test_saved_models_come_back_whole(model, frame, tmp_path):
    rows = pd.DataFrame(X, columns=["a", "b", "c"]) if frame else X
    model = clone(model).fit(rows, Y)
    model.save(tmp_path / "model.json")
    back = GPRegressor.load(tmp_path / "model.json")
    np.testing.assert_array_equal(back.predict(rows), model.predict(rows))
    assert back.kernel_ == model.kernel_
    assert back.noise_variance_ == model.noise_variance_
    assert back.log_marginal_likelihood_ == model.log_marginal_likelihood_
    assert {k: str(v) for k, v in back.get_params().items()}.keys() == model.get_params().keys()
    assert back.get_params()["kernel"] == model.get_params()["kernel"]
    assert Explainer(back)(rows[:3]) == Explainer(model)(rows[:3])
    refitted = clone(back).fit(rows, Y)
    assert refitted.log_marginal_likelihood_ == pytest.approx(
        model.log_marginal_likelihood_, rel=1e-12
    )


def test_models_of_one_noise_per_row_are_saved_too(tmp_path):
    model = GPRegressor().fit(X, Y, noise=np.linspace(0.1, 2, 60))
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(
        GPRegressor.load(tmp_path / "model.json").predict(X), model.predict(X)
    )


def test_options_of_numpy_types_are_saved(tmp_path):
    bounds = {"lengthscale": (np.full(3, 1e-3), np.full(3, 1e6))}
    model = GPRegressor(
        n_restarts=np.int64(1), bounds=bounds, random_state=np.random.default_rng(0)
    ).fit(X, Y)
    model.save(tmp_path / "model.json")
    options = GPRegressor.load(tmp_path / "model.json").get_params(deep=False)
    assert options["n_restarts"] == 1
    assert options["random_state"] is None  # a generator has no place in a file
    assert options["bounds"]["lengthscale"][1] == [1e6] * 3


def test_a_file_can_name_kernels_and_means_only(tmp_path):
    """Even one whose digest is right: nothing else is ever called."""
    import json

    from gpattr._core import documents

    path = tmp_path / "model.json"
    GPRegressor().fit(X, Y).save(path)
    for kind in ("np", "Kernel", "abc"):
        document = json.loads(path.read_text())
        document["content"]["kernel"]["type"] = kind
        document["sha256"] = documents._digest(documents._canonical(document["content"]))
        (tmp_path / "other.json").write_text(json.dumps(document))
        with pytest.raises(
            FileFormatError, match="the content is not that of a gpattr.GPRegressor"
        ):
            GPRegressor.load(tmp_path / "other.json")


def test_singular_everywhere(monkeypatch):
    from gpattr.exceptions import NotPositiveDefiniteError

    def singular(*args):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(Objective, "__call__", singular)
    with pytest.raises(NotPositiveDefiniteError, match="singular at every point tried"):
        GPRegressor().fit(X, Y)


def test_what_cannot_be_saved_or_loaded(tmp_path):
    path = tmp_path / "model.json"
    with pytest.raises(NotFittedError):
        Explainer(GPRegressor())
    from sklearn.exceptions import NotFittedError as SklearnNotFittedError

    for use in (lambda: GPRegressor().save(path), lambda: GPRegressor().predict(X)):
        with pytest.raises(SklearnNotFittedError, match="not fitted yet"):
            use()
    own = GPRegressor(
        mean=Function(lambda X: X[:, 0], lambda X: np.eye(3)[:1].repeat(len(X), 0))
    ).fit(X, Y)
    with pytest.raises(
        InvalidInputError, match="mean: user-defined Function objects cannot be saved"
    ):
        own.save(path)
    assert not path.exists()
    Explainer(GPRegressor().fit(X, Y))(X[:1]).save(path)
    with pytest.raises(FileFormatError, match="expected a file of format 'gpattr.GPRegressor'"):
        GPRegressor.load(path)


def test_progress_is_shown_on_request(capsys):
    GPRegressor(verbose=1, n_restarts=1, hyperparameters="optimal").fit(X, Y)
    shown = capsys.readouterr()
    assert "start 2 of 2" in shown.err
    assert "log marginal likelihood" in shown.err
    assert shown.out == ""
    GPRegressor(hyperparameters="optimal").fit(X, Y)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        (
            {},
            (X, np.full(60, 3.0)),
            "y: expected targets that differ, got 3.0 everywhere; use optimize=False",
        ),
        (
            {},
            (X[:1], Y[:1]),
            (
                "X: expected at least 2 rows to learn hyperparameters, got n_samples=1; use"
                " optimize=False"
            ),
        ),
        ({}, (X, np.where(Y[2] == Y, np.nan, Y)), "Input y contains NaN"),
        ({}, (X, Y, np.ones(5)), r"noise: expected 60 variances \(one per row of X\), got 5"),
        ({}, (X, Y, -np.ones(60)), "noise: expected variances, 0 or larger, got -1.0"),
        (
            {"noise_variance": -1.0},
            (X, Y),
            "noise_variance: expected finite numbers larger than 0, got -1.0",
        ),
        (
            {"noise_variance": 1.0},
            (X, Y, np.ones(60)),
            "noise: expected None, because noise_variance=1.0 is given",
        ),
        ({"kernel": "rbf"}, (X, Y), "kernel: expected a gpattr kernel, .* or None, got str"),
        (
            {"mean": "cubic"},
            (X, Y),
            "mean: expected 'constant', 'zero', 'linear' or a gpattr mean, got 'cubic'",
        ),
        ({"n_restarts": -1}, (X, Y), "n_restarts: expected an integer of 0 to 1000000, got -1"),
        (
            {"bounds": {"length": (1, 2)}},
            (X, Y),
            r"bounds: expected hyperparameters among \['lengthscale', .* got 'length'",
        ),
        (
            {"bounds": {"lengthscale": (2, 1)}},
            (X, Y),
            "bounds: expected 0 < lower <= upper for 'lengthscale', got",
        ),
        (
            {"bounds": {"variance": 3}},
            (X, Y),
            r"bounds: expected \(lower, upper\) or 'fixed' for 'variance', got 3",
        ),
        ({"bounds": {"variance": (0, 1)}}, (X, Y), "bounds: expected 0 < lower"),
        (
            {"kernel": SquaredExponential(5.0), "bounds": {"lengthscale": (10.0, 20.0)}},
            (X, Y),
            r"bounds: 'lengthscale' starts at 5, outside of \(10, 20\); move the start inside",
        ),
        (
            {"kernel": SquaredExponential([1.0, 2.0])},
            (X, Y),
            "lengthscale: expected one number or 3",
        ),
    ],
)
def test_bad_input(options, data, message):
    with pytest.raises(ValueError, match=message):
        GPRegressor(**options).fit(*data)


def test_kernels_that_cannot_be_trained():
    @dataclass(frozen=True, eq=False)
    class Flat(Kernel):
        level: float = 1.0
        trainable = ("level",)

        def __call__(self, X, Z):
            return np.ones((len(X), len(Z)))

        def diagonal(self, X):
            return np.ones(len(X))

        def n_lengthscales(self, step):
            return np.ones(len(step))

        def check_features(self, d):
            pass

    with pytest.raises(
        UnsupportedModelError,
        match=(
            "kernel: Flat cannot be trained; enter its gradient with"
            " gpattr.estimators.register_gradient"
        ),
    ):
        GPRegressor(Scale(Flat())).fit(X, Y)
    assert GPRegressor(Flat(), optimize=False).fit(X, Y).predict(X[:1]).shape == (1,)


def test_bounds_are_in_the_users_units_and_kept():
    model = GPRegressor(
        bounds={"lengthscale": ([0.1, 1.0, 0.05], [0.5, 5.0, 0.06]), "noise_variance": (4.0, 5.0)}
    ).fit(X, Y)
    assert np.all(model.kernel_.lengthscale >= np.array([0.1, 1.0, 0.05]) * (1 - 1e-12))
    assert np.all(model.kernel_.lengthscale <= np.array([0.5, 5.0, 0.06]) * (1 + 1e-12))
    assert 4.0 * (1 - 1e-12) <= model.noise_variance_ <= 5.0 * (1 + 1e-12)


def test_columns_that_say_nothing():
    for constant in (7.0, 0.1, 1e9 / 3):  # the mean of the last two is not exact
        rows = np.column_stack([X[:, 0], np.full(60, constant), X[:, 0]])
        model = GPRegressor().fit(rows, Y)
        assert np.isfinite(model.predict(rows)).all()
        assert model.relevance_[1] < 1e-6
        assert model.kernel_.lengthscale[1] > 0.1
    wide = GPRegressor().fit(X[:2].repeat(5, axis=1), Y[:2])
    assert np.isfinite(wide.predict(X[:2].repeat(5, axis=1))).all()


def test_without_training_anything_goes():
    assert GPRegressor(optimize=False).fit(X[:1], Y[:1]).predict(X[:1])[0] == pytest.approx(Y[0])
    assert GPRegressor(optimize=False).fit(X, np.full(60, 3.0)).predict(X[:1])[0] == pytest.approx(
        3.0
    )


def test_an_optimiser_that_does_not_converge_says_so(monkeypatch):
    monkeypatch.setitem(marginal_likelihood.OPTIONS, "maxiter", 2)
    with pytest.warns(
        ConvergenceWarning, match="training did not converge .the limit of 2 iterations was reached"
    ):
        model = GPRegressor(hyperparameters="optimal").fit(X, Y)
    assert np.isfinite(model.predict(X)).all()


def test_duplicates_with_equal_targets_do_not_break_training():
    rows, y = np.vstack([X, X, X]), np.tile(Y, 3)
    model = GPRegressor().fit(rows, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.noise_variance_ > 0
