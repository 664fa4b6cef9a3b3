"""Integration over hyperparameters: against sums over grids, models' own posteriors, and laws."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import gamma, norm
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpattr
from gpattr.estimators import gp_regressor, integration
from gpattr.estimators.priors import Prior, Term, redundant
from gpattr.exceptions import InvalidInputError, NotFittedError, UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Scale,
    SquaredExponential,
    White,
)
from gpattr.posteriors import (
    ExactPosterior,
    ExpectationPropagationPosterior,
    LaplacePosterior,
    MixturePosterior,
)
from gpattr.posteriors import stack as stacks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=25)
MODEL = gpattr.GPRegressor().fit(X, Y)


def test_a_mixture_is_the_integral_over_a_grid(monkeypatch):
    """One length-scale and the noise are free: a sum over a grid of them has the truth.

    Many points, spread widely and with the weights they have, come to it; thirty come near.
    """
    rng = np.random.default_rng(0)  # a single mode: points around one do not find another
    rows = np.sort(rng.uniform(-2, 2, 12))[:, None]
    y = np.sin(2 * rows[:, 0]) + 0.2 * rng.normal(size=12)
    points = np.linspace(-2.5, 2.5, 9)[:, None]
    terms = gpattr.estimators.priors.prior_terms(SquaredExponential(), rows, y.var())
    weights, means, variances = [], [], []
    for log_scale in np.linspace(-5.0, 8.0, 53):
        for log_noise in np.linspace(-14.0, 5.0, 53):
            part = ExactPosterior(
                SquaredExponential(np.exp(log_scale)), rows, y, noise=np.exp(log_noise)
            )
            prior = sum(
                norm(terms[name].mean[0], terms[name].std[0]).logpdf(value)
                for name, value in (("lengthscale", log_scale), ("noise_variance", log_noise))
            )
            mean, std = part.predict(points, return_std=True)
            weights.append(part.log_marginal_likelihood + prior)
            means.append(mean)
            variances.append(std**2)
    weights = np.exp(np.array(weights) - max(weights))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    std = np.sqrt(weights @ (np.array(variances) + (np.array(means) - mean) ** 2))

    def off(**options):
        model = gpattr.GPRegressor(
            SquaredExponential(1.0, 1.0), mean="zero", bounds={"variance": "fixed"}, **options
        ).fit(rows, y)
        found = model.predict(points, return_std=True)
        return np.abs(found[0] - mean) / std, np.abs(found[1] / std - 1.0)

    few, optimal = off(), off(hyperparameters="optimal")
    assert few[0].max() < optimal[0].max()
    assert few[1].mean() < optimal[1].mean()
    monkeypatch.setattr(gp_regressor, "affordable_points", lambda n: 4096)
    monkeypatch.setattr(integration, "WIDER", 2.0)
    monkeypatch.setattr(integration, "HEAVIEST", np.inf)
    many = off()
    assert many[0].max() < 0.01
    assert many[1].max() < 0.02


def test_priors_are_densities():
    terms = {
        "a": Term(np.array([0.3, -0.2]), np.array([1.0, 1.0]), common=0.8),
        "b": Term.of_gamma(np.array([3.0]), np.array([6.0])),
    }
    prior, theta = Prior(terms), np.array([0.1, 0.5, -0.7])
    normal = norm(0.3, 1.0), norm(-0.2, 1.0)
    assert prior.covariance[0, 1] == pytest.approx(0.64)
    from scipy.stats import multivariate_normal

    pair = multivariate_normal([0.3, -0.2], [[1.0, 0.64], [0.64, 1.0]])
    # The density of log θ has the factor θ.
    expected = pair.logpdf(theta[:2]) + gamma(3.0, scale=1 / 6).logpdf(np.exp(-0.7)) - 0.7
    value, slope = prior(theta)
    assert value == pytest.approx(expected, rel=1e-12)
    assert all(part.std() == 1.0 for part in normal)
    steps = 1e-6 * np.eye(3)
    numeric = [(prior(theta + h)[0] - prior(theta - h)[0]) / 2e-6 for h in steps]
    np.testing.assert_allclose(slope, numeric, rtol=1e-6)
    draws = np.log(gamma(3.0, scale=1 / 6).rvs(200_000, random_state=0))
    assert prior.mean[2] == pytest.approx(draws.mean(), abs=0.01)
    assert prior.std[2] == pytest.approx(draws.std(), abs=0.01)


def test_one_variance_of_a_product_is_enough():
    product = SquaredExponential() * Periodic() * 2.0

    def superfluous(kernel, fixed=()):
        return redundant(kernel, {name for name in kernel.get_params() if name not in fixed})

    assert len(superfluous(product)) == 2
    assert superfluous(SquaredExponential() + Periodic()) == set()
    assert superfluous(3.0 * (SquaredExponential() + Periodic())) == {"variance"}
    assert superfluous(Linear() * SquaredExponential()) == {"1__variance"}
    # Of one that is fixed nothing is learned, and the other stays free.
    assert superfluous(Scale(SquaredExponential(), 2.0), ("variance",)) == set()


def test_what_a_model_says_of_itself():
    frame = MODEL.hyperparameters_
    assert frame["weight"].sum() == pytest.approx(1.0)
    assert set(frame["family"]) <= {"SquaredExponential", "Matern52"}
    heaviest = frame.loc[frame["weight"].idxmax()]
    assert heaviest["family"] == type(MODEL.kernel_).__name__
    assert heaviest["noise_variance"] == MODEL.noise_variance_
    np.testing.assert_array_equal(
        heaviest[[f"lengthscale[{i}]" for i in range(3)]].to_numpy(float), MODEL.kernel_.lengthscale
    )
    assert len(frame) == len(MODEL.posterior_.components) > 10
    again = gpattr.GPRegressor().fit(X, Y)
    assert again.hyperparameters_.equals(frame)  # no random numbers
    one = gpattr.GPRegressor(hyperparameters="optimal").fit(X, Y)
    assert one.hyperparameters_["weight"].tolist() == [1.0]
    assert isinstance(one.posterior_, ExactPosterior)


def test_units_do_not_matter():
    units, shift = np.array([1e3, 1e-3, 7.0]), np.array([5e3, 2.0, -30.0])
    other = gpattr.GPRegressor().fit(X * units + shift, 1e4 * Y + 500.0)
    mean, std = MODEL.predict(X[:5], return_std=True)
    far = other.predict(X[:5] * units + shift, return_std=True)
    np.testing.assert_allclose(far[0], 1e4 * mean + 500.0, rtol=1e-5, atol=1e-2)
    np.testing.assert_allclose(far[1], 1e4 * std, rtol=1e-4)


def test_a_mixture_learns_the_level_of_its_targets():
    model = gpattr.GPRegressor().fit(X, Y + 100.0)
    assert model.mean_.value == pytest.approx(100.0, abs=1.0)
    far = model.predict([[1e6, 1e6, 1e6]], return_std=True)
    assert far[0] == pytest.approx(100.0, abs=1.5)


def test_nothing_known_of_a_lengthscale_leaves_its_prior():
    rows = np.column_stack([X[:, 0], np.full(25, 3.0)])  # the second column is constant
    model = gpattr.GPRegressor().fit(rows, np.sin(2 * rows[:, 0]))
    logs = np.log(model.hyperparameters_["lengthscale[1]"])
    assert np.isfinite(logs).all()
    assert 0.5 < logs.std() < 4.0
    ex = gpattr.Explainer(model)(rows[:2] + [[0.0, 1.0]])
    assert np.isfinite(ex.std).all()
    assert ex.std[:, 1].min() > 0.0


@pytest.mark.parametrize("rows", [2, 3, 5], ids=lambda n: f"{n} rows")
def test_few_rows(rows):
    model = gpattr.GPRegressor().fit(X[:rows], Y[:rows])
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def test_more_features_than_rows_duplicates_and_no_noise():
    wide = RNG.normal(size=(12, 40))
    assert np.isfinite(
        gpattr.Explainer(gpattr.GPRegressor().fit(wide, wide[:, 0]))(wide[:2]).std
    ).all()
    twice = gpattr.GPRegressor().fit(np.repeat(X[:8], 3, axis=0), np.repeat(Y[:8], 3))
    assert len(twice.posterior_.components) > 5
    clean = gpattr.GPRegressor().fit(X, X[:, 0] + np.sin(X[:, 1]))
    assert len(clean.posterior_.components) > 5
    assert clean.noise_variance_ < 1e-4


def test_points_that_cannot_be_factorised_are_dropped_and_counted(monkeypatch):
    calls = []

    def sometimes(kernel, X, y, noise, mean):
        calls.append(kernel)
        if len(calls) % 5 == 3:
            raise gpattr.exceptions.NotPositiveDefiniteError("noise: singular")
        return ExactPosterior(kernel, X, y, noise=noise)

    monkeypatch.setattr(gpattr.estimators.gp_regressor, "conditioned", sometimes)
    model = gpattr.GPRegressor().fit(X, Y)
    assert model.hyperparameters_.attrs["dropped"] == sum(
        1 for i in range(1, len(calls) + 1) if i % 5 == 3
    )
    assert model.hyperparameters_["weight"].sum() == pytest.approx(1.0)

    def never(*arguments):
        raise gpattr.exceptions.NotPositiveDefiniteError("noise: singular")

    monkeypatch.setattr(gpattr.estimators.gp_regressor, "conditioned", never)
    with pytest.raises(gpattr.exceptions.NotPositiveDefiniteError, match="at every point tried"):
        gpattr.GPRegressor().fit(X, Y)


def test_one_point_cannot_decide():
    """Points that the normal approximation misses have at most five times the mode's weight."""
    likelihoods = iter([0.0, 100.0, -100.0])
    peak = SimpleNamespace(
        family="own", evidence=0.0, points=lambda n: [(0.0, Y, 0.1), (0.0, Y, 0.2), (0.0, Y, 0.3)]
    )
    found = integration.integrate_over(
        [peak],
        lambda kernel, noise: (kernel, noise),
        lambda kernel, noise: SimpleNamespace(log_marginal_likelihood=next(likelihoods)),
        3,
    )
    assert [part.noise for part in found.components] == [0.1, 0.2]  # the third is negligible
    assert [part.weight for part in found.components] == pytest.approx([1.0 / 6.0, 5.0 / 6.0])


class Quadratic:
    """A search whose objective is ½ θᵀ diag(4, 9) θ + g θ₂, and singular beyond θ₁ = 0."""

    prior = SimpleNamespace(covariance=np.diag([0.5, 0.25]))

    def __init__(self, limits, slope=0.0, singular=False):
        self.limits, self.slope, self.singular = np.array(limits), slope, singular
        self.walls = 0

    def __call__(self, theta):
        if self.singular and theta[0] > 0.0:
            self.walls += 1
            return 10.0, np.array([1e6, 0.0])
        return 0.0, np.array([4.0, 9.0]) * theta + [0.0, self.slope]


def test_curvature_at_walls_and_bounds():
    free = [[-1.0, 1.0], [-1.0, 1.0]]
    curvature = integration._curvature
    np.testing.assert_allclose(curvature(Quadratic(free), np.zeros(2)), np.diag([4.0, 9.0]))
    # Where the covariance is singular beside the mode, the prior has its precision.
    at_wall = curvature(Quadratic(free, singular=True), np.zeros(2))
    np.testing.assert_allclose(at_wall, np.diag([2.0, 9.0]))
    # At a bound the density falls off as exp(−3t), whose integral is ⅓.
    at_bound = curvature(Quadratic([[-1.0, 1.0], [0.0, 1.0]], slope=3.0), np.zeros(2))
    assert np.sqrt(2.0 * np.pi / at_bound[1, 1]) == pytest.approx(1.0 / 3.0)


def test_a_family_that_does_not_fit_is_left_out():
    rows = np.linspace(-1, 1, 60)[:, None]
    model = gpattr.GPRegressor().fit(rows, np.abs(rows[:, 0]))
    assert set(model.hyperparameters_["family"]) == {"Matern52"}
    assert model.hyperparameters_["weight"].min() > 1e-4 * model.hyperparameters_["weight"].max()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hyperparameters": "best"}, "hyperparameters: expected one of"),
        (
            {"hyperparameters": "integrated", "optimize": False},
            "hyperparameters: expected 'auto' or 'optimal' with optimize=False",
        ),
        (
            {
                "hyperparameters": "integrated",
                "kernel": SquaredExponential(),
                "noise_variance": 0.1,
                "bounds": {"lengthscale": "fixed", "variance": "fixed"},
            },
            "hyperparameters: expected some that are not fixed",
        ),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(InvalidInputError, match=words):
        gpattr.GPRegressor(**options).fit(X, Y)


def test_fixed_hyperparameters_and_known_noise_stay():
    model = gpattr.GPRegressor(
        Matern52([1.0, 2.0, 3.0], 1.5), bounds={"lengthscale": "fixed"}, noise_variance=0.04
    ).fit(X, Y)
    frame = model.hyperparameters_
    assert (frame[[f"lengthscale[{i}]" for i in range(3)]].to_numpy() == [1.0, 2.0, 3.0]).all()
    assert set(frame["noise_variance"]) == {0.04}
    assert frame["variance"].std() > 0.1
    assert set(frame["family"]) == {"Matern52"}
    still = {"lengthscale": "fixed", "variance": "fixed", "noise_variance": "fixed"}
    alone = gpattr.GPRegressor(Matern52([1.0, 2.0, 3.0], 1.5), bounds=still).fit(X, Y)
    assert isinstance(alone.posterior_, ExactPosterior)
    each = gpattr.GPRegressor().fit(X, Y, noise=np.full(25, 0.01))
    assert "noise_variance" not in each.hyperparameters_
    assert each.noise_variance_.shape == (25,)


def test_many_rows_are_not_integrated_by_default():
    rows = RNG.normal(size=(1001, 1))
    model = gpattr.GPRegressor().fit(rows, np.sin(rows[:, 0]) + 0.1 * RNG.normal(size=1001))
    assert isinstance(model.posterior_, ExactPosterior)
    assert integration.affordable_points(60) == 32
    assert integration.affordable_points(1000) == 16
    assert integration.affordable_points(10**6) == 8


@pytest.mark.parametrize(
    "model",
    [
        gpattr.GPRegressor(),
        gpattr.GPRegressor(Matern52([1.0, 1.0, 1.0]) + White(0.1), mean="linear"),
        gpattr.MultiOutputGPRegressor(),
        gpattr.GPClassifier(),
    ],
    ids=["default", "composed", "several outputs", "classes"],
)
def test_files_keep_mixtures(model, tmp_path):
    targets = {"MultiOutputGPRegressor": np.column_stack([Y, X[:, 0]])}
    y = targets.get(type(model).__name__, (Y > 0) if isinstance(model, gpattr.GPClassifier) else Y)
    model.fit(X, y).save(tmp_path / "model.json")
    again = type(model).load(tmp_path / "model.json")
    assert again.hyperparameters_.equals(model.hyperparameters_)
    for one, two in zip(
        model.posterior_.predict(X, return_std=True), again.posterior_.predict(X, return_std=True)
    ):
        np.testing.assert_array_equal(one, two)


def test_a_stack_is_the_loop_over_its_models(monkeypatch):
    kernels = [
        SquaredExponential([1.0, 2.0, 3.0], 2.0) + Constant(4.0),
        2.0 * SquaredExponential(0.3),
        Matern52([0.5, 20.0, 3.0], 0.5) + Constant(1.0),
        Matern32([5.0, 2.0, 0.7]),
    ]
    rows = 10.0 * X + 100.0
    scaled = [kernel.map_parts(lambda part: part) for kernel in kernels]
    parts = [ExactPosterior(kernel, rows, Y, noise=0.01) for kernel in scaled]
    mixture = MixturePosterior(parts, [0.4, 0.3, 0.2, 0.1])
    assert mixture.stack is not None
    middle = rows.mean(axis=0)
    points = np.concatenate([rows[:3], 3.0 * rows[:2], middle[None], middle[None] + 1e-9])
    explainer = gpattr.Explainer(mixture)
    together, moments = explainer(points), mixture.predict(points, return_std=True)
    slopes = mixture.component_slopes(points)
    monkeypatch.setattr(stacks, "MOST", 0.0)
    one_by_one, expected = explainer(points), mixture.predict(points, return_std=True)
    for name in ("values", "std", "cov"):
        scale = np.abs(getattr(one_by_one, name)).max()
        np.testing.assert_allclose(
            getattr(together, name), getattr(one_by_one, name), rtol=0, atol=1e-12 * scale
        )
    for name in ("error", "cov_error"):
        np.testing.assert_allclose(getattr(together, name), getattr(one_by_one, name), rtol=0.5)
    for one, two in zip(moments, expected):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)
    for one, two in zip(slopes, mixture.component_slopes(points)):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-10 * np.abs(two).max())
    assert together.method == one_by_one.method


@pytest.mark.slow
def test_next_measurements_by_brute_force():
    """The mean variance after a measurement, over the outcomes that the models expect."""
    mixture, explainer = MODEL.posterior_, gpattr.Explainer(MODEL, X.mean(axis=0))
    told = explainer.measure_next(2.0 * X[:4], X[:2])
    t, w = np.polynomial.hermite_e.hermegauss(9)
    point, left = 2.0 * X[1], 0.0
    certain = 0.0
    for weight, part in mixture.components:
        mean, std = part.predict(point[None], return_std=True)
        spread = np.hypot(std[0], part.noise_variance**0.5)
        for node, chance in zip(mean[0] + spread * t, w / w.sum()):
            after = gpattr.Explainer(mixture.condition_on(point, node), X.mean(axis=0))(X[:2])
            left = left + weight * chance * after.var
            sure = after.prob_positive()
            certain = certain + weight * chance * np.maximum(sure, 1.0 - sure)
    np.testing.assert_allclose(told.variances - told.reduction_by_feature[1], left, rtol=2e-3)
    np.testing.assert_allclose(told.expected_sign_certainty[1], certain, atol=2e-3)
    positive = explainer(X[:2]).prob_positive()
    np.testing.assert_allclose(told.sign_certainty, np.maximum(positive, 1.0 - positive))
    assert ((told.prob_settled() >= 0.0) & (told.prob_settled() <= 1.0 + 1e-12)).all()
    batch = told.best(3)
    assert len(set(batch.positions)) == 3
    assert (np.diff(batch.variance_reduction) <= 1e-12).all()


def test_equal_models_tell_what_one_tells():
    one = ExactPosterior(SquaredExponential([1.0, 2.0, 1.0]), X, Y, noise=0.01)
    single = gpattr.Explainer(one).measure_next(2.0 * X[:5], X[:2])
    twice = gpattr.Explainer(MixturePosterior([one, one])).measure_next(2.0 * X[:5], X[:2])
    for name in ("variance_reduction", "std_after", "expected_sign_certainty", "sign_certainty"):
        np.testing.assert_allclose(
            getattr(twice, name), getattr(single, name), rtol=5e-3, atol=5e-3, err_msg=name
        )
    assert twice.best(3).positions == single.best(3).positions
    np.testing.assert_allclose(twice.best(3).std_after, single.best(3).std_after, rtol=1e-6)


def test_counterfactuals_have_the_probability_of_the_mixture():
    explainer = gpattr.Explainer(MODEL)
    found = explainer.counterfactual(X[0], target=1.0, level=0.9)
    assert found.found
    parts = [
        part.predict(found.counterfactual[None], return_std=True)
        for part in (posterior for _, posterior in MODEL.posterior_.components)
    ]
    weights = np.array([weight for weight, _ in MODEL.posterior_.components])
    chance = weights @ [ndtr((mean[0] - 1.0) / std[0]) for mean, std in parts]
    assert found.probability == pytest.approx(chance, rel=1e-9)
    assert 0.9 <= chance < 0.905
    lower, upper = found.interval(0.8)
    below = weights @ [ndtr((lower - mean[0]) / std[0]) for mean, std in parts]
    assert below == pytest.approx(0.1, abs=1e-9)
    assert lower < found.prediction < upper


def test_margins_of_mixtures_have_their_gradients():
    from gpattr.explainer.change_margin import ChangeMargin
    from gpattr.explainer.change_space import change_space
    from gpattr.explainer.rows import Rows

    posterior = MODEL.posterior_
    space = change_space(Rows(posterior, None, "mean"), X[0], ("a", "b", "c"), None, None, None)
    for sign, level in ((1.0, 0.95), (-1.0, 0.7)):
        margin = ChangeMargin(posterior, space, 0.5, level, sign)
        u, setting = np.array([[0.2, -0.1, 0.3], [1.0, 0.5, -1.0]]), np.zeros(2, dtype=int)
        for question in (margin.slopes, margin.scores):
            slope = question(u, setting)[1]
            for i, h in enumerate(1e-5 * np.eye(3)):
                up, down = (question(u + move, setting)[0] for move in (h, -h))
                np.testing.assert_allclose(slope[:, i], (up - down) / 2e-5, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(margin.values(u, setting), margin.slopes(u, setting)[0])
        reached = margin.probabilities(space.rows(u, setting)) >= level
        assert (reached == (margin.values(u, setting) >= 0)).all()


def test_intervals_hold_where_the_optimum_is_too_sure():
    """Twelve data sets of 20 rows of a function with known attributions."""
    inside = {"optimal": [], "integrated": []}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows, points = rng.uniform(-1, 1, (20, 5)), rng.uniform(-1, 1, (8, 5))
        y = np.sin(2 * rows[:, 0]) + rows[:, 1] ** 2 + 0.5 * rows[:, 2]
        y, b = y + 0.05 * rng.normal(size=20), rows.mean(axis=0)
        truth = np.zeros((8, 5))
        truth[:, 0] = np.sin(2 * points[:, 0]) - np.sin(2 * b[0])
        truth[:, 1] = points[:, 1] ** 2 - b[1] ** 2
        truth[:, 2] = 0.5 * (points[:, 2] - b[2])
        for kind, found in inside.items():
            model = gpattr.GPRegressor(hyperparameters=kind).fit(rows, y)
            low, high = gpattr.Explainer(model, b)(points).interval(0.95)
            found.append((low <= truth) & (truth <= high))
    assert np.mean(inside["integrated"]) > 0.93
    assert np.mean(inside["optimal"]) < 0.9


def test_probabilities_are_averaged_over_models():
    model = gpattr.GPClassifier().fit(X, Y > 0)
    assert isinstance(model.posterior_, MixturePosterior)
    kinds = {type(part) for _, part in model.posterior_.components}
    assert kinds == {ExpectationPropagationPosterior}
    grid = np.linspace(-9.0, 9.0, 4001)
    w = np.exp(-0.5 * grid**2)
    expected = np.zeros(25)
    for weight, part in model.posterior_.components:
        mean, std = part.predict(X, return_std=True)
        chances = 1.0 / (1.0 + np.exp(-(mean[:, None] + std[:, None] * grid)))
        expected += weight * (chances @ w) / w.sum()
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, atol=1e-6)
    assert (model.predict(X) == (expected > 0.5)).all()
    assert gpattr.Explainer(model, output="probability", n_draws=50)(X[:2]).values.shape == (2, 3)
    three = gpattr.GPClassifier().fit(X, np.digitize(Y, [-0.3, 0.4]))
    assert set(three.hyperparameters_["class"]) == {0, 1, 2}


def test_outputs_that_are_learned_together_are_not_integrated():
    targets = np.column_stack([Y, X[:, 0]])
    with pytest.raises(InvalidInputError, match="with shared outputs"):
        gpattr.MultiOutputGPRegressor(outputs="shared", hyperparameters="integrated").fit(
            X, targets
        )
    shared = gpattr.MultiOutputGPRegressor(outputs="shared").fit(X, targets)
    with pytest.raises(InvalidInputError, match="hyperparameters_: expected separate outputs"):
        _ = shared.hyperparameters_
    draws = gpattr.MultiOutputGPRegressor().fit(X, targets).sample_y(X[:3], 2000)
    mean = gpattr.MultiOutputGPRegressor().fit(X, targets).predict(X[:3])
    np.testing.assert_allclose(draws.mean(axis=2), mean, atol=0.03)


# gpattr.integrate


def sklearn_model(kernel=None, **options):
    kernel = 1.0 * RBF([1.0, 1.0, 1.0]) + WhiteKernel(0.1) if kernel is None else kernel
    return GaussianProcessRegressor(kernel, **options).fit(X, Y)


def components(posterior):
    found = []
    for _, part in posterior.components:
        while part.inner:
            (part,) = part.inner
        found.append(part)
    return found


def test_models_of_scikit_learn():
    model = sklearn_model()
    found = gpattr.integrate(model)
    assert isinstance(found, MixturePosterior)
    parts = components(found)
    scales = np.array([part.kernel.kernel.lengthscale for part in parts])
    assert scales.std(axis=0).min() > 0.05
    assert len({part.noise_variance for part in parts}) == len(parts)
    assert {part.kernel.kernel.variance for part in parts} == {1.0}  # which RBF does not have
    ex = gpattr.Explainer(model, hyperparameters="integrated")(X[:3])
    np.testing.assert_array_equal(ex.values, gpattr.Explainer(found)(X[:3]).values)
    assert ex.std.mean() > gpattr.Explainer(model)(X[:3]).std.mean()


def test_what_is_fixed_stays_fixed():
    kernel = ConstantKernel(2.0, "fixed") * RBF([1.0, 1.0, 1.0]) + WhiteKernel(0.1, "fixed")
    parts = components(gpattr.integrate(sklearn_model(kernel)))
    assert {part.kernel.variance for part in parts} == {2.0}
    assert len({part.noise_variance for part in parts}) == 1
    alone = components(gpattr.integrate(sklearn_model(RBF(1.0), alpha=0.01)))
    assert {part.noise_variance for part in alone} == {0.01}
    with pytest.raises(InvalidInputError, match="model: expected some hyperparameters"):
        gpattr.integrate(sklearn_model(RBF(1.0, "fixed"), alpha=0.01))


def test_what_gpattr_has_fixed_stays_fixed():
    kernel = Scale(SquaredExponential([1.0, 1.0, 1.0], 3.0), 2.0)
    model = gpattr.GPRegressor(kernel, bounds={"variance": "fixed"}).fit(X, Y)
    frame = model.hyperparameters_
    assert frame["kernel__variance"].std() > 0.1
    assert frame["variance"].unique() == [2.0]
    given = gpattr.GPRegressor(
        SquaredExponential([1.0, 1.0, 1.0]),
        bounds={"lengthscale": "fixed"},
        noise_variance=0.02,
        hyperparameters="optimal",
    ).fit(X, Y)
    parts = [part for _, part in gpattr.integrate(given).components]
    for part in parts:
        np.testing.assert_array_equal(part.kernel.kernels[0].lengthscale, 1.0)
        assert part.noise_variance == 0.02
    assert np.std([part.kernel.kernels[0].variance for part in parts]) > 0.1


def test_a_variance_of_one_is_free_in_models_of_gpattr():
    one, other = (
        gpattr.integrate(ExactPosterior(SquaredExponential(1.0, variance), X, 9.0 * Y, noise=0.1))
        for variance in (1.0, 1.001)
    )
    far = np.full((1, 3), 50.0)
    np.testing.assert_allclose(
        one.predict(far, return_std=True)[1], other.predict(far, return_std=True)[1], rtol=1e-2
    )


def test_mixtures_are_pickled():
    optimal = gpattr.GPRegressor(hyperparameters="optimal").fit(X, Y)
    for posterior in (gpattr.integrate(optimal), MODEL.posterior_.condition_on(X[:1] + 1.0, [0.0])):
        again = pickle.loads(pickle.dumps(posterior))
        np.testing.assert_array_equal(again.predict(X), posterior.predict(X))


def test_pipelines_and_scaled_targets():
    inner = GaussianProcessRegressor(1.0 * RBF(1.0) + WhiteKernel(0.1), normalize_y=True)
    pipeline = make_pipeline(StandardScaler(), inner).fit(100.0 * X + 7.0, 1e3 * Y)
    found = gpattr.integrate(pipeline)
    assert len(found.components) > 10
    mean, std = found.predict(100.0 * X[:5] + 7.0, return_std=True)
    np.testing.assert_allclose(mean, pipeline.predict(100.0 * X[:5] + 7.0), atol=3.0 * std.max())
    assert gpattr.Explainer(found)(100.0 * X[:2] + 7.0).std.shape == (2, 3)


def test_families():
    own = gpattr.GPRegressor(hyperparameters="optimal").fit(X, Y)
    found = {
        type(part.kernel.kernels[0]).__name__
        for part in components(gpattr.integrate(own, families="all"))
    }
    assert found <= {"SquaredExponential", "Matern52", "Matern32"}
    assert len(found) > 1
    assert gpattr.integrate(sklearn_model(), families=[Matern32]).components
    for families in (["RBF"], [], 3):
        with pytest.raises(InvalidInputError, match="families: expected some of"):
            gpattr.integrate(own, families=families)
    linear = gpattr.GPRegressor(Linear(1.0), hyperparameters="optimal").fit(X, Y)
    with pytest.raises(InvalidInputError, match="families: expected None for a kernel without"):
        gpattr.integrate(linear, families="all")


def test_priors_that_are_given():
    own = gpattr.GPRegressor(hyperparameters="optimal").fit(X, Y)
    narrow = gpattr.integrate(own, priors={"lengthscale": ([1.0, 2.0, 3.0], 0.01)})
    for part in components(narrow):
        np.testing.assert_allclose(part.kernel.kernels[0].lengthscale, [1.0, 2.0, 3.0], rtol=0.1)
    for priors, words in (
        ({"lengthscale": ([1.0, 2.0], 0.1)}, "expected one median, or 3"),
        ({"lengthscale": (-1.0, 0.1)}, "expected a median larger than 0"),
        ({"lengthscale": (1.0, 0.0)}, "expected a spread larger than 0"),
        ({"lengthscale": 1.0}, "expected \\(median, spread\\)"),
        ({"scale": (1.0, 1.0)}, "expected hyperparameters among"),
        ([1.0], "expected a dictionary"),
    ):
        with pytest.raises(InvalidInputError, match=f"priors: {words}"):
            gpattr.integrate(own, priors=priors)


def test_what_cannot_be_integrated_is_a_sentence():
    for model, error, words in (
        (MODEL, UnsupportedModelError, "a mixture of .* models already"),
        (
            gpattr.SparseGPRegressor().fit(X, Y),
            UnsupportedModelError,
            "hyperparameters of a SparsePosterior are not integrated",
        ),
        (
            gpattr.MultiOutputGPRegressor(outputs="coregionalised").fit(
                X, np.column_stack([Y, Y**2])
            ),
            UnsupportedModelError,
            "outputs that depend on each other",
        ),
        (GaussianProcessRegressor(), NotFittedError, "not fitted yet"),
    ):
        with pytest.raises(error, match=words):
            gpattr.integrate(model)
    with pytest.raises(InvalidInputError, match="hyperparameters: expected one of"):
        gpattr.Explainer(MODEL, hyperparameters="optimal")


def test_classifiers_of_scikit_learn():
    model = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, Y > 0)
    found = gpattr.integrate(model)
    assert all(isinstance(part, LaplacePosterior) for part in components(found))
    assert len({float(part.kernel.kernel.lengthscale) for part in components(found)}) > 5
    several = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, np.digitize(Y, [-0.3, 0.4]))
    assert list(gpattr.integrate(several).outputs) == ["0", "1", "2"]


def test_models_of_botorch_keep_their_priors():
    torch = pytest.importorskip("torch")
    from botorch.models import SingleTaskGP
    from gpytorch.priors import NormalPrior

    from gpattr.adapters.learned import learned
    from gpattr.integration import _values_of

    unit = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    x, y = torch.tensor(unit), torch.tensor(((Y - Y.mean()) / Y.std(ddof=1))[:, None])
    model = SingleTaskGP(x, y)
    facts = learned(model, lambda model: _values_of(model, None))
    kind, mean, std = facts.priors["lengthscale"]
    assert kind == "lognormal"
    np.testing.assert_allclose(mean, 2.0**0.5 + 0.5 * np.log(3.0), rtol=1e-6)
    np.testing.assert_allclose(std, 3.0**0.5, rtol=1e-6)
    assert facts.free == {"lengthscale", "noise_variance", "mean"}
    assert not facts.fixed_mean
    assert len(gpattr.integrate(model).components) > 10
    far = np.full((1, 3), 1e4)
    model.mean_module.raw_constant.requires_grad_(False)
    np.testing.assert_allclose(gpattr.integrate(model).predict(far), 0.0, atol=1e-9)
    prior = NormalPrior(torch.tensor(0.5), torch.tensor(0.05))
    model.covar_module.register_prior("lengthscale_prior", prior, "lengthscale")
    scales = [part.kernel.lengthscale for part in components(gpattr.integrate(model))]
    assert np.min(scales) > 0.3
    assert np.max(scales) < 0.8
    known = SingleTaskGP(x, y, train_Yvar=torch.full_like(y, 0.01))
    assert len({part.noise_variance for part in components(gpattr.integrate(known))}) == 1
    both = gpattr.integrate(SingleTaskGP(x, torch.cat([y, -y], dim=1)))
    assert len(both.outputs) == 2
