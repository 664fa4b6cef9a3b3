"""Regression of several outputs: separate, sharing a kernel, coregionalised."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpattr import Explainer, GPRegressor, MultiOutputGPRegressor
from gpattr.exceptions import FileFormatError, InvalidInputError
from gpattr.kernels import Linear, Matern52, SquaredExponential
from gpattr.means import Constant
from gpattr.posteriors import MultiOutputPosterior

RNG = np.random.default_rng(4)
X = RNG.normal(size=(40, 2)) * [1.0, 30.0] + [0.0, 100.0]
LATENT = np.sin(1.5 * X[:, 0]) + 0.02 * (X[:, 1] - 100.0)
OTHER = np.cos(X[:, 0]) * (X[:, 1] - 100.0) / 30.0
Y = np.column_stack([LATENT + 3.0, 100.0 * (LATENT + 0.3 * OTHER), 0.01 * OTHER]) + RNG.normal(
    size=(40, 3)
) * [0.1, 10.0, 0.001]
KINDS = ("separate", "shared", "coregionalised")
FITTED = {kind: MultiOutputGPRegressor(outputs=kind).fit(X, Y) for kind in KINDS}
NEW = X[:5] + 0.1


@parametrize_with_checks(
    [MultiOutputGPRegressor(), MultiOutputGPRegressor(outputs="coregionalised")],
    expected_failed_checks=lambda estimator: {},
)
def test_scikit_learn_checks(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip(
            "needs SCIPY_ARRAY_API=1 set before SciPy is imported; this estimator takes arrays and"
            " frames"
        )
    check(estimator)


def test_separate_outputs_are_single_regressors():
    model = FITTED["separate"]
    total = 0.0
    for o in range(3):
        single = GPRegressor().fit(X, Y[:, o])
        np.testing.assert_allclose(model.predict(NEW)[:, o], single.predict(NEW), rtol=1e-12)
        assert Explainer(model)(NEW)[f"y{o}"] == Explainer(single)(NEW)
        total += single.log_marginal_likelihood_
    assert model.log_marginal_likelihood_ == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_and_explanations(kind):
    model = FITTED[kind]
    mean, std = model.predict(NEW, return_std=True)
    assert mean.shape == std.shape == (5, 3)
    assert model.predict(NEW, return_cov=True)[1].shape == (5, 5, 3)
    assert model.score(X, Y) > 0.9
    ex = Explainer(model)(NEW)
    np.testing.assert_allclose(ex.predictions, mean, rtol=1e-12)
    np.testing.assert_allclose(ex.delta / Y.std(axis=0), 0.0, atol=1e-11)
    draws = model.sample_y(NEW, 4000, random_state=1)
    assert draws.shape == (5, 3, 4000)
    np.testing.assert_allclose((draws.mean(axis=2) - mean) / std, 0.0, atol=0.08)
    np.testing.assert_allclose(draws.std(axis=2) / std, 1.0, atol=0.05)
    assert model.noise_variance_.shape == (3,)
    assert model.output_names_ == ("y0", "y1", "y2")


def test_draws_of_coregionalised_outputs_go_together():
    model = FITTED["coregionalised"]
    draws = model.sample_y(NEW[:1], 20000, random_state=2)[0]
    M = model.posterior_.mixing
    variances = [
        float(latent.predict(NEW[:1], return_std=True)[1][0]) ** 2
        for latent in model.posterior_.latents
    ]
    C = M @ np.diag(variances) @ M.T
    size = np.sqrt(np.diag(C))
    np.testing.assert_allclose(np.corrcoef(draws), C / size[:, None] / size, atol=0.04)


def test_more_freedom_has_more_evidence():
    """Shared is coregionalised with a diagonal B, so it cannot be more likely; B finds which
    outputs go together.
    """
    shared, coupled = FITTED["shared"], FITTED["coregionalised"]
    assert coupled.log_marginal_likelihood_ > shared.log_marginal_likelihood_ + 1.0
    np.testing.assert_array_equal(shared.covariance_, np.diag(np.diag(shared.covariance_)))
    size = np.sqrt(np.diag(coupled.covariance_))
    assert (coupled.covariance_ / size[:, None] / size)[0, 1] > 0.7
    np.testing.assert_allclose(np.sqrt(coupled.noise_variance_) / [0.1, 10.0, 0.001], 1.0, atol=0.5)


@pytest.mark.parametrize("kind", ["shared", "coregionalised"])
def test_evidence_is_stationary_where_training_stopped(kind):
    """Moving any hyperparameter changes the evidence only to second order."""
    model = FITTED[kind]
    options = {
        "noise": model.noise_variance_,
        "covariance": model.covariance_,
        "means": model._prior_means,
    }

    def evidence(kernel=model.kernel_, **changes):
        other = clone(model)
        other._kind = kind
        given = options | changes
        return other._become_shared(
            kernel, given["covariance"], given["noise"], given["means"], X, Y, model.output_names_
        ).log_marginal_likelihood_

    best = evidence()
    for o in range(3):
        for shift in (-0.05, 0.05):
            means = list(model._prior_means)
            means[o] = Constant(means[o].value + shift * Y[:, o].std())
            assert evidence(means=means) < best
    assert best == pytest.approx(model.log_marginal_likelihood_, rel=1e-12)
    for factor in (0.97, 1.03):
        for o in range(3):
            noise, scale = model.noise_variance_.copy(), np.eye(3)
            noise[o] *= factor
            scale[o, o] = factor
            assert evidence(noise=noise) < best + 1e-3
            assert evidence(covariance=scale @ model.covariance_ @ scale) < best + 1e-3
        for i in range(2):
            lengthscale = np.array(model.kernel_.lengthscale)
            lengthscale[i] *= factor
            assert evidence(kernel=model.kernel_.with_params(lengthscale=lengthscale)) < best + 1e-3


@pytest.mark.parametrize("kind", ["shared", "coregionalised"])
def test_units_do_not_matter(kind):
    other = MultiOutputGPRegressor(outputs=kind).fit(
        X * [1e3, 1e-3], Y * [1e4, 1e-4, 1.0] + [0.0, 7.0, 0.0]
    )
    mean, std = other.predict(NEW * [1e3, 1e-3], return_std=True)
    expected, spread = FITTED[kind].predict(NEW, return_std=True)
    size = np.abs(expected).max(axis=0)
    np.testing.assert_allclose(
        (mean - [0.0, 7.0, 0.0]) / [1e4, 1e-4, 1.0] / size, expected / size, atol=1e-5
    )
    np.testing.assert_allclose(std / [1e4, 1e-4, 1.0], spread, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_files_frames_and_options(kind, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = MultiOutputGPRegressor(Matern52, outputs=kind, n_restarts=1, random_state=0)
    model.fit(frame, pd.DataFrame(Y, columns=["speed", "price", "mass"]))
    assert model.output_names_ == ("speed", "price", "mass")
    model.save(tmp_path / "m.json")
    back = MultiOutputGPRegressor.load(tmp_path / "m.json")
    ex, again = (Explainer(m)(frame[["b", "a"]][:4]) for m in (model, back))
    assert ex["price"] == again["price"]
    assert back.get_params() == model.get_params()
    assert back.log_marginal_likelihood_ == model.log_marginal_likelihood_
    np.testing.assert_array_equal(back.noise_variance_, model.noise_variance_)
    with pytest.raises(FileFormatError):
        GPRegressor.load(tmp_path / "m.json")
    by_name = MultiOutputGPRegressor(Matern52, outputs=kind, n_restarts=1, random_state=0)
    by_name.fit(frame, dict(zip(["speed", "price", "mass"], Y.T, strict=True)))
    assert Explainer(by_name)(frame[:4]) == Explainer(model)(frame[:4])


@pytest.mark.parametrize("kind", KINDS)
def test_known_noise_and_fixed_kernels(kind):
    kernel = SquaredExponential([1.0, 50.0]) + 0.1 * Linear([0.1, 0.001])
    fixed = MultiOutputGPRegressor(
        kernel, outputs=kind, noise_variance=[0.01, 100.0, 1e-6], mean="zero", optimize=False
    )
    fixed.fit(X, Y)
    np.testing.assert_allclose(fixed.noise_variance_, [0.01, 100.0, 1e-6], rtol=1e-12)
    if kind != "separate":
        assert fixed.kernel_ == kernel
        posterior = MultiOutputPosterior.coregionalised(
            kernel, X, Y, covariance=fixed.covariance_, noise=fixed.noise_variance_
        )
        np.testing.assert_allclose(fixed.predict(NEW), posterior.predict(NEW), rtol=1e-9)
    trained = MultiOutputGPRegressor(kernel, outputs=kind, noise_variance=[0.01, 100.0, 1e-6]).fit(
        X, Y
    )
    np.testing.assert_allclose(trained.noise_variance_, [0.01, 100.0, 1e-6], rtol=1e-12)
    assert trained.log_marginal_likelihood_ > fixed.log_marginal_likelihood_
    within = MultiOutputGPRegressor(
        outputs=kind, bounds={"noise_variance": (1e-3, 2e-3), "lengthscale": (0.5, 500.0)}
    ).fit(X, Y)
    assert ((within.noise_variance_ >= 0.999e-3) & (within.noise_variance_ <= 2.001e-3)).all()


def test_noise_of_each_row():
    noise = RNG.uniform(0.5, 2.0, size=Y.shape) * [0.01, 100.0, 1e-6]
    model = MultiOutputGPRegressor().fit(X, Y, noise=noise)
    for o in range(3):
        np.testing.assert_allclose(
            model.predict(NEW)[:, o],
            GPRegressor().fit(X, Y[:, o], noise=noise[:, o]).predict(NEW),
            rtol=1e-12,
        )
    np.testing.assert_array_equal(model.noise_variance_, noise)


def test_progress_is_shown(capsys):
    MultiOutputGPRegressor(outputs="coregionalised", verbose=1).fit(X, Y)
    assert "training" in capsys.readouterr().err.lower()


@pytest.mark.parametrize(
    ("options", "data", "words"),
    [
        (
            {"outputs": "both"},
            {},
            "outputs: expected one of 'separate', 'shared', 'coregionalised', got 'both'",
        ),
        ({"mean": "linear", "outputs": "shared"}, {}, "mean: expected 'constant', 'zero'"),
        (
            {"mean": Constant(1.0), "outputs": "shared"},
            {},
            'mean: expected "constant" or "zero" with shared outputs',
        ),
        (
            {"noise_variance": [0.1, 0.2]},
            {},
            r"noise_variance: expected one number or one per output \(3\), got 2",
        ),
        ({"noise_variance": -1.0}, {}, "noise_variance: expected finite numbers larger than 0"),
        ({}, {"Y": Y[:, 0]}, r"Y: expected targets \(n, P\), got one dimension"),
        ({}, {"Y": Y[:39]}, "inconsistent numbers of samples"),
        (
            {},
            {"Y": {"a": Y[:, 0], "b": Y[:39, 1]}},
            r"Y: expected 40 targets \(one per row of X\) in 'b', got \(39,\)",
        ),
        ({}, {"Y": {}}, "Y: expected at least one output"),
        (
            {},
            {"Y": {1: Y[:, 0], "1": Y[:, 1]}},
            "Y: expected different names, got '1' more than once",
        ),
        (
            {},
            {"Y": {"a": np.ma.masked_greater(Y[:, 0], 0.0)}},
            r"Y\['a'\]: expected plain numbers, got a masked array",
        ),
        (
            {"outputs": "shared"},
            {"Y": np.where(Y.max() - 1e-9 < Y, None, Y)},
            "Y: expected finite numbers, got nan",
        ),
        (
            {"outputs": "shared"},
            {"Y": Y * 1e200},
            "Y: expected targets whose square float64 can hold",
        ),
        ({"outputs": "shared", "bounds": [1, 2]}, {}, "bounds: expected a dictionary"),
        ({}, {"Y": np.array([["a", "b"]] * 40)}, "Y: expected numbers, got text"),
        ({}, {"Y": [[1.0, 2.0]] * 39 + [[1.0]]}, "Y: expected numbers"),
        (
            {},
            {"noise": np.ones(40)},
            r"noise: expected variances of the shape \(40, 3\) of Y, got \(40,\)",
        ),
        ({}, {"noise": -np.ones((40, 3))}, "output 'y0': noise: expected variances, 0 or larger"),
        (
            {"outputs": "shared"},
            {"noise": np.ones((40, 3))},
            'noise: variances of each row are taken with outputs="separate" only',
        ),
        (
            {"outputs": "coregionalised"},
            {"Y": Y * [1, 0, 1]},
            "Y: expected targets that differ, got the same everywhere in 'y1'",
        ),
        ({}, {"Y": Y * [1, 0, 1]}, "output 'y1': y: expected targets that differ"),
        ({"kernel": SquaredExponential([1.0] * 3), "outputs": "shared"}, {}, "lengthscale"),
        (
            {"bounds": {"lengthscal": (1, 2)}, "outputs": "shared"},
            {},
            "bounds: expected hyperparameters among",
        ),
    ],
)
def test_bad_input_is_named(options, data, words):
    model = MultiOutputGPRegressor(**options)
    with pytest.raises((InvalidInputError, ValueError), match=words):
        model.fit(**({"X": X, "Y": Y} | data))
    assert not hasattr(model, "n_features_in_")


def test_one_regressor_points_to_several():
    with pytest.raises((InvalidInputError, ValueError), match="MultiOutputGPRegressor"):
        GPRegressor().fit(X, Y)


@pytest.mark.parametrize("kind", ["shared", "coregionalised"])
def test_starts_without_training(kind):
    """Every output starts with its own variance, whatever it has in common with others, and one
    that does not vary with 1.
    """
    rows = np.column_stack([Y[:, 0], 2.0 * Y[:, 0], np.ones(40)])
    model = MultiOutputGPRegressor(
        SquaredExponential([1.0, 30.0]), outputs=kind, optimize=False
    ).fit(X, rows)
    np.testing.assert_allclose(
        np.diag(model.covariance_), [Y[:, 0].var(), 4.0 * Y[:, 0].var(), 1.0], rtol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
def test_noise_can_be_kept(kind):
    model = MultiOutputGPRegressor(outputs=kind, bounds={"noise_variance": "fixed"}).fit(X, Y)
    np.testing.assert_allclose(model.noise_variance_, 0.2 * Y.var(axis=0), rtol=1e-9)


def test_files_follow_what_was_fitted(tmp_path):
    model = (
        MultiOutputGPRegressor(outputs="coregionalised").fit(X, Y).set_params(outputs="separate")
    )
    model.save(tmp_path / "m.json")
    assert Explainer(MultiOutputGPRegressor.load(tmp_path / "m.json"))(NEW) == Explainer(model)(NEW)
    with pytest.raises(InvalidInputError, match="n_samples: expected an integer of 1 or more"):
        model.sample_y(NEW, -1)
