"""Mixtures: their moments, densities and quantiles, and explanations of them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import gpattr
from gpattr import Explainer, Explanation, GPRegressor
from gpattr.bases import Fourier
from gpattr.distributions import Gaussian, Marginals
from gpattr.exceptions import InvalidInputError, MissingUncertaintyError, UnsupportedModelError
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import ExactPosterior, MixturePosterior, WeightSpacePosterior

RNG = np.random.default_rng(9)
Z, Y = RNG.normal(size=(15, 3)), RNG.normal(size=15)
X, B = RNG.normal(size=(4, 3)), np.array([0.1, 0.2, -0.3])
PARTS = [
    ExactPosterior(SquaredExponential([0.5, 1.0, 2.0]), Z, Y, noise=0.1),
    ExactPosterior(Matern52(3.0, 4.0), Z, Y, noise=0.5),
    WeightSpacePosterior(Fourier(RNG.normal(size=(5, 3))), RNG.normal(size=10), 0.1 * np.eye(10)),
]
WEIGHTS = np.array([0.5, 0.3, 0.2])
MIXTURE = MixturePosterior(PARTS, WEIGHTS)
OP = IntegratedGradients(B)


@pytest.fixture(scope="module")
def draws():
    return MIXTURE.sample(OP, X, 1_000_000, random_state=1)


@pytest.fixture(scope="module")
def ex():
    return Explainer(MIXTURE, B)(X)


def test_moments_are_those_of_draws(draws):
    result = MIXTURE.apply(OP, X)
    error = np.sqrt(result.var / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - result.mean) <= 5 * error)
    assert draws.var(axis=0) == pytest.approx(result.var, rel=0.01)
    for row in range(4):
        scale = np.sqrt(np.outer(result.var[row], result.var[row]))
        assert np.abs(np.cov(draws[:, row].T) - result.cov[row]).max() <= 0.01 * scale.max()
    joint = MIXTURE.joint(OP, X).reshape(12, 12)
    assert np.cov(draws.reshape(len(draws), -1).T) == pytest.approx(joint, abs=0.01 * joint.max())


@pytest.mark.slow
def test_quantiles_and_density_are_those_of_draws(draws, ex):
    marginals = MIXTURE.apply(OP, X).components.marginals()
    for level in (0.025, 0.3, 0.5, 0.9, 0.999):
        found = marginals.quantile(level)
        error = np.sqrt(level * (1 - level) / len(draws)) / marginals.density(found)
        assert np.all(np.abs(np.quantile(draws, level, axis=0) - found) <= 5 * error)
        assert marginals.cdf(found) == pytest.approx(level, abs=1e-13)
    lower, upper = ex.interval(0.9)
    assert lower == pytest.approx(marginals.quantile(0.05), rel=1e-12)
    assert upper == pytest.approx(marginals.quantile(0.95), rel=1e-12)
    gaussian = replace(ex, distribution=Gaussian(ex.values, ex.var, ex.cov))
    assert (
        np.abs(gaussian.interval(0.9)[0] - lower).max() > 0.01
    )  # the mixture is not a normal distribution


@pytest.mark.slow
def test_probabilities_are_those_of_draws(draws, ex):
    assert ex.prob_positive() == pytest.approx((draws > 0).mean(axis=0), abs=0.0025)
    assert ex.prob_greater("x0", 2) == pytest.approx(
        (draws[:, :, 0] > draws[:, :, 2]).mean(axis=0), abs=0.0025
    )
    order = np.argsort(-np.abs(draws), axis=2)
    ranks = ex.rank_probabilities(20000)
    for rank in range(3):
        assert ranks[:, :, rank] == pytest.approx(
            (order[:, :, rank, None] == np.arange(3)).mean(axis=0), abs=0.015
        )
    sample = ex.sample(50000, random_state=0)
    assert sample.mean(axis=0) == pytest.approx(ex.values, abs=0.03)
    assert sample.std(axis=0) == pytest.approx(ex.std, rel=0.01)
    assert sample[:25000].mean(axis=0) == pytest.approx(
        ex.values, abs=0.04
    )  # components come in any order
    tails = np.quantile(sample, [0.01, 0.99], axis=0)
    assert tails == pytest.approx(np.stack(ex.interval(0.98)), abs=0.12)


def test_one_component_is_that_component():
    alone = MixturePosterior(PARTS[:1])
    one, two = Explainer(alone, B)(X), Explainer(PARTS[0], B)(X)
    for name in ("values", "var", "cov", "predictions", "base_values", "error"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert np.stack(one.interval()) == pytest.approx(np.stack(two.interval()), rel=1e-12)
    assert np.array_equal(one.prob_positive(), two.prob_positive())
    for options in ({"return_std": True}, {"return_cov": True}):
        for here, there in zip(alone.predict(X, **options), PARTS[0].predict(X, **options)):
            assert here == pytest.approx(there, rel=1e-13)


def test_the_share_of_variance_between_components(ex):
    share = ex.share_between()
    means = np.stack([Explainer(part, B)(X).values for part in PARTS])
    within = np.tensordot(WEIGHTS, np.stack([Explainer(part, B)(X).var for part in PARTS]), axes=1)
    centre = np.tensordot(WEIGHTS, means, axes=1)
    between = np.tensordot(WEIGHTS, (means - centre) ** 2, axes=1)
    assert share == pytest.approx(between / (between + within), rel=1e-10)
    assert share.min() > 0
    assert share.max() < 1
    assert ex[2, [1]].share_between() == pytest.approx(share[2:3, 1:2], rel=1e-13)
    assert not Explainer(PARTS[0], B)(X).share_between().any()
    assert (
        not Explainer(MIXTURE, B)(B[None]).share_between().any()
    )  # nothing is uncertain at the baseline
    certain = Marginals(np.array([0.5, 0.5]), np.array([[1.0], [3.0]]), np.zeros((2, 1)))
    assert certain.between == 1.0
    with pytest.raises(MissingUncertaintyError):
        Explainer(MIXTURE, B)(X, uncertainty="none").share_between()


def test_predictions_have_a_density(draws):
    marginals = MIXTURE.marginals(X)
    mean, std = MIXTURE.predict(X, return_std=True)
    for row in range(2):

        def moment(power, row=row):
            return quad(
                lambda f: f**power * marginals.density(np.full(4, f))[row], -15, 15, limit=200
            )[0]

        assert moment(0) == pytest.approx(1.0, rel=1e-6)
        assert moment(1) == pytest.approx(mean[row], rel=1e-6)
        assert moment(2) - moment(1) ** 2 == pytest.approx(std[row] ** 2, rel=1e-6)


def test_explanation_keeps_its_components(ex, tmp_path):
    assert "mixture of 3 models" in repr(ex)
    assert ex.component_values.shape == (3, 4, 3)
    ex.save(tmp_path / "e.json")
    assert Explanation.load(tmp_path / "e.json") == ex
    part = ex[[2, 0], ["x2"]]
    assert np.array_equal(part.component_values, ex.component_values[:, [2, 0], 2:])
    assert part.interval()[0] == pytest.approx(ex.interval()[0][[2, 0], 2:])
    grouped = ex.group({"pair": [0, 2]})
    assert grouped.component_values[:, :, 0] == pytest.approx(
        ex.component_values[:, :, [0, 2]].sum(axis=2)
    )
    assert grouped.component_var[:, :, 0] == pytest.approx(
        ex.component_cov[:, :, [0, 2]][..., [0, 2]].sum(axis=(2, 3))
    )
    weights = ex.component_weights
    total = np.tensordot(
        weights, grouped.component_var + (grouped.component_values - grouped.values) ** 2, axes=1
    )
    assert grouped.var == pytest.approx(total)
    only_std = Explainer(MIXTURE, B)(X, uncertainty="std")
    assert only_std.component_cov is None
    assert only_std.interval()[0] == pytest.approx(ex.interval()[0], rel=1e-12)
    assert np.array_equal(only_std.group({"one": [1]}).component_var, only_std.component_var)
    with pytest.raises(MissingUncertaintyError):
        Explainer(MIXTURE, B)(X, uncertainty="none").interval()
    dataset = ex.to_xarray()
    assert dataset["component_cov"].dims == ("component", "row", "feature", "feature_2")
    assert list(ex.to_frame()["lower"]) == pytest.approx(ex.interval()[0].ravel())


def test_importance_of_a_mixture(draws):
    importance = Explainer(MIXTURE, B).importance(X, n_samples=40000)
    sizes = np.abs(draws).mean(axis=1)
    assert importance.samples.shape == (40000, 3)
    assert importance.values == pytest.approx(sizes.mean(axis=0), rel=0.01)
    assert importance.std == pytest.approx(sizes.std(axis=0), rel=0.01)
    for bad in (0, -1, 2.5, True):
        with pytest.raises(InvalidInputError, match="n_samples: expected an integer of 1 or more"):
            Explainer(MIXTURE, B).importance(X, n_samples=bad)


def test_quantiles_to_the_last_digits():
    weights, means, stds = (
        np.array([0.2, 0.8]),
        np.array([[-30.0], [1.0]]),
        np.array([[0.1], [1e-3]]),
    )
    mixture = Marginals(weights, means, stds**2)
    assert mixture.quantile(0.1) == pytest.approx([norm.ppf(0.5, -30, 0.1)], rel=1e-14)
    assert mixture.quantile(0.6) == pytest.approx([norm.ppf(0.5, 1.0, 1e-3)], rel=1e-14)
    sure = Marginals(weights, means, np.zeros((2, 1)))
    assert sure.quantile(0.1) == pytest.approx([-30.0])
    assert sure.quantile(0.9) == pytest.approx([1.0])
    assert sure.cdf(np.array([0.0])) == pytest.approx([0.2])
    assert sure.density(np.array([0.0])) == 0.0
    jumps = Marginals(np.array([0.5, 0.5]), np.array([[0.0], [1.0]]), np.zeros((2, 1)))
    assert [float(jumps.quantile(level)[0]) for level in (0.2, 0.5, 0.9)] == [
        0.0,
        0.0,
        1.0,
    ]  # the smallest x with cdf ≥ level
    plateau = Marginals(
        np.array([0.25, 0.25, 0.5]),
        np.array([[0.0], [1.0], [20.0]]),
        np.array([[0.0], [0.0], [1.0]]),
    )
    assert plateau.quantile(0.5) == 1.0
    for shift in (0.0, 1e6, 1e10):
        far = Marginals(
            np.array([0.267, 0.733]),
            np.array([[0.69], [-3.21]]) + shift,
            np.array([[0.0165], [0.011]]),
        )
        assert far.cdf(far.quantile(0.5)) == pytest.approx(0.5, abs=1e-15 * max(shift, 100.0))
    decades = Marginals(np.array([0.5, 0.5]), np.zeros((2, 1)), np.array([[1e-60], [1e60]]))
    assert decades.cdf(decades.quantile(0.6)) == pytest.approx(0.6, abs=1e-12)
    apart = Marginals(
        np.array([0.19715409, 0.02071104, 0.54256999, 0.10224844, 0.13731644]),
        np.array([-45.08171648, -67.49912022, -21.02517652, 21.49878203, -9.57049729])[:, None],
        np.array([0.00489136, 0.03141975, 0.0018125, 0.00689609, 0.00718505])[:, None],
    )
    assert apart.cdf(apart.quantile(0.17183027925376698)) == pytest.approx(
        0.17183027925376698, abs=1e-12
    )
    zero = Marginals(np.array([0.5, 0.5]), np.zeros((2, 1)), np.zeros((2, 1)))
    assert zero.quantile(0.3) == 0.0
    assert zero.quantile(0.7) == 0.0
    for level in (0.0, 1.0, -1, "a", True, np.nan):
        with pytest.raises(InvalidInputError, match="level: expected a number between 0 and 1"):
            zero.quantile(level)


def test_density_broadcasts_over_a_grid():
    mixture = Marginals(WEIGHTS, RNG.normal(size=(3, 4)), np.ones((3, 4)))
    grid = np.linspace(-3, 3, 50)[:, None]
    assert mixture.density(grid).shape == (50, 4)
    assert mixture.density(grid)[7] == pytest.approx(mixture.density(np.full(4, grid[7, 0])))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([],), "posteriors: expected at least one, got none"),
        ((["a"],), "posteriors: expected a gpattr posterior with one output, got a str"),
        ((PARTS, [0.5, 0.5]), "weights: expected 3 weights"),
        ((PARTS, [0.5, 0.6, -0.1]), "weights: expected weights, 0 or larger"),
        ((PARTS, [0.5, 0.6, 0.1]), "weights: expected weights, 0 or larger, that sum to 1"),
        (
            ([PARTS[0], ExactPosterior(SquaredExponential(), Z[:, :2], Y, noise=0.1)],),
            "posteriors: expected the same n_features",
        ),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(InvalidInputError, match=words):
        MixturePosterior(*arguments)


def test_bad_rows():
    for ask in (
        MIXTURE.predict,
        lambda X: MIXTURE.apply(OP, X),
        lambda X: MIXTURE.joint(OP, X),
        lambda X: MIXTURE.sample(OP, X),
    ):
        with pytest.raises(InvalidInputError, match="X: expected 3 columns, got 2"):
            ask(X[:, :2])
    with pytest.raises(InvalidInputError, match="n: expected an integer of 1 or more"):
        MIXTURE.sample(OP, X, 0)
    assert "2 × ExactPosterior + 1 × WeightSpacePosterior" in repr(MIXTURE)
    assert gpattr.Explainer(MixturePosterior(PARTS[:2])).baseline == pytest.approx(Z.mean(axis=0))
    with pytest.raises(InvalidInputError, match='baseline: "mean" needs the training inputs'):
        gpattr.Explainer(MIXTURE)  # of which one component knows none
    with pytest.raises(
        InvalidInputError,
        match="posteriors: expected a list of gpattr posteriors, got a ExactPosterior",
    ):
        MixturePosterior(PARTS[0])


def test_estimators_and_shares_of_training_rows():
    models = [
        GPRegressor(k, optimize=False, noise_variance=0.1).fit(Z, Y)
        for k in (SquaredExponential(), Matern52(2.0))
    ]
    mixture = MixturePosterior(models, [0.3, 0.7])
    explainer = Explainer(mixture)
    shares = explainer.training_contributions(X[0], 1)
    parts = [Explainer(model).training_contributions(X[0], 1) for model in models]
    np.testing.assert_allclose(shares, 0.3 * parts[0] + 0.7 * parts[1], rtol=1e-12)
    other = GPRegressor(optimize=False, noise_variance=0.1).fit(Z[:-1], Y[:-1])
    with pytest.raises(UnsupportedModelError, match="this one does not"):
        Explainer(MixturePosterior([models[0], other]), "zeros").training_contributions(X[0], 1)
