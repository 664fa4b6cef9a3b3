"""``random_state`` in every public function that takes one: what is taken, and what is refused."""

import inspect
from importlib import import_module

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from sklearn.base import clone

import gpattr
from gpattr._core.randomness import random_generator
from gpattr.distributions import Draws, Gaussian, Mixture, Point
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import DeepPosterior, ExactPosterior, LaplacePosterior, SparsePosterior

X = np.random.default_rng(0).normal(size=(24, 2))
Y = X[:, 0] - X[:, 1]
MODEL = ExactPosterior(SquaredExponential(), X, Y, noise=0.1)
CLASSES = LaplacePosterior(SquaredExponential(), X, Y > 0)
OPERATOR = gpattr.operators.IntegratedGradients(np.zeros(2))
MEAN = np.array([[0.3, -0.2]])
COV = np.eye(2)[None]
OUTPUTS = gpattr.posteriors.MultiOutputPosterior([MODEL, MODEL])


def explanation():
    return gpattr.Explainer(MODEL)(X[:2])


def deep(seed):
    Z = np.linspace(-1.0, 1.0, 4)[:, None]
    layer = SparsePosterior(SquaredExponential(), Z, Z[:, 0], 0.1 * np.eye(4))
    posterior = DeepPosterior([[layer], layer], draws=20, random_state=seed)
    return gpattr.Explainer(posterior, baseline="zeros")([[0.5]]).var


def trained(estimator, y=Y):
    """What an estimator predicts after training with a restart, which draws a start."""

    def predict(seed):
        return estimator(n_restarts=1, random_state=seed).fit(X, y).predict(X)

    return predict


def drawn_curves(seed):
    curve = gpattr.Explainer(MODEL).dependence(0, grid=5)
    ax = gpattr.plots.dependence(curve, draws=2, random_state=seed)
    thin = [lines for lines in ax.collections if isinstance(lines, LineCollection)]
    return np.concatenate([segment for lines in thin for segment in lines.get_segments()])


def columns(n):
    return np.column_stack([Y] * n)


ENTRIES = {
    "Explainer": lambda s: (
        gpattr.Explainer(CLASSES, output="probability", n_draws=20, random_state=s)(X[:2]).draws
    ),
    "explain": lambda s: (
        gpattr.explain(CLASSES, X[:2], output="probability", n_draws=20, random_state=s).draws
    ),
    "Explainer.importance": lambda s: (
        gpattr.Explainer(MODEL).importance(X[:3], n_samples=9, random_state=s).samples
    ),
    "Explanation.sample": lambda s: explanation().sample(3, s),
    "Explanation.rank_probabilities": lambda s: explanation().rank_probabilities(50, s),
    "Explanation.to_xarray": lambda s: explanation().to_xarray(5, random_state=s)["attribution"],
    "MultiOutputExplanation.rank_probabilities": lambda s: gpattr.Explainer(OUTPUTS)(
        X[:2]
    ).rank_probabilities(50, s),
    "MultiOutputExplanation.to_xarray": lambda s: gpattr.Explainer(OUTPUTS)(X[:2]).to_xarray(
        5, random_state=s
    )["attribution"],
    "Dependence.sample": lambda s: gpattr.Explainer(MODEL).dependence(0, grid=4).sample(2, s),
    "dependence": drawn_curves,
    "Gaussian.sample": lambda s: Gaussian(MEAN, cov=COV).sample(3, s),
    "Gaussian.rank_probabilities": lambda s: Gaussian(MEAN, cov=COV).rank_probabilities(50, s),
    "Mixture.sample": lambda s: Mixture([0.5, 0.5], [MEAN, -MEAN], covs=[COV, COV]).sample(9, s),
    "Mixture.rank_probabilities": lambda s: Mixture(
        [0.5, 0.5], [MEAN, 2 * MEAN], covs=[COV, COV]
    ).rank_probabilities(50, s),
    "Draws.sample": lambda s: Draws(np.arange(40.0).reshape(20, 1, 2)).sample(9, s),
    "Posterior.sample": lambda s: MODEL.sample(OPERATOR, X[:2], 3, random_state=s),
    "DeepPosterior": deep,
    "sobol_indices": lambda s: gpattr.sobol_indices(MODEL, n_draws=100, random_state=s).first_draws,
    "make_heteroscedastic": lambda s: gpattr.datasets.make_heteroscedastic(9, random_state=s)[0],
    "KnownFunction.sample": lambda s: gpattr.datasets.product_function().sample(
        9, noise=0.1, random_state=s
    )[0],
    "GPRegressor": trained(gpattr.GPRegressor),
    "PosteriorRegressor.sample_y": lambda s: (
        gpattr.GPRegressor(optimize=False).fit(X, Y).sample_y(X[:2], 3, s)
    ),
    "MultiOutputGPRegressor.sample_y": lambda s: (
        gpattr.MultiOutputGPRegressor(optimize=False).fit(X, columns(2)).sample_y(X[:2], 3, s)
    ),
    "GPClassifier": trained(gpattr.GPClassifier, Y > 0),
    "SparseGPRegressor": trained(lambda **options: gpattr.SparseGPRegressor(6, **options)),
    "HilbertGPRegressor": trained(gpattr.HilbertGPRegressor),
    "MultiOutputGPRegressor": trained(gpattr.MultiOutputGPRegressor, columns(2)),
    "RandomFeatureGPRegressor": trained(
        lambda **options: gpattr.RandomFeatureGPRegressor(8, **options)
    ),
    "check_kernel": lambda s: gpattr.testing.check_kernel(SquaredExponential(), random_state=s),
    "check_posterior": lambda s: gpattr.testing.check_posterior(MODEL, X[:6], random_state=s),
    "check_adapter": lambda s: gpattr.testing.check_adapter(
        gpattr.GPRegressor(optimize=False).fit(X, Y), X[:6], random_state=s
    ),
}
UNUSED = {"Draws.rank_probabilities", "Point.rank_probabilities", "Point.sample"}
BEHIND_OTHERS = {"Distribution.sample", "Distribution.rank_probabilities", "Bound.sample"}
# The answer of these hardly, or not at all, depends on the draws.
ALIKE = {
    "GPRegressor",
    "GPClassifier",
    "HilbertGPRegressor",
    "MultiOutputGPRegressor",
    "check_kernel",
    "check_posterior",
    "check_adapter",
}
SEEDS = {
    "Generator": np.random.default_rng,
    "SeedSequence": np.random.SeedSequence,
    "BitGenerator": np.random.PCG64,
    "RandomState": np.random.RandomState,
    "several integers": lambda seed: [seed, 1],
    "NumPy's integer": np.int64,
}


def takers() -> set[str]:
    """The public functions, classes and methods, as they are defined, that take random_state."""
    found = set()
    for module in map(import_module, ("gpattr", *(f"gpattr.{name}" for name in gpattr._MODULES))):
        for value in (getattr(module, name) for name in module.__all__):
            methods = (
                inspect.getmembers(value, inspect.isfunction) if inspect.isclass(value) else []
            )
            for member in [value, *(method for name, method in methods if name[0] != "_")]:
                function = member.__init__ if inspect.isclass(member) else member
                if "random_state" in getattr(inspect.unwrap(function), "__annotations__", {}):
                    found.add(member.__qualname__)
    return found


def test_every_public_function_that_takes_a_random_state_is_listed():
    assert takers() == {*ENTRIES, *UNUSED, *BEHIND_OTHERS}


def same(one, two):
    return one is None or np.array_equal(one, two)


@pytest.mark.parametrize("kind", SEEDS)
def test_what_numpy_takes_is_taken(kind):
    one, two = (random_generator(SEEDS[kind](3)).normal(size=4) for _ in range(2))
    assert same(one, two)


def test_integers_give_the_numbers_of_numpy():
    assert same(random_generator(7).normal(size=4), np.random.default_rng(7).normal(size=4))


@pytest.mark.parametrize("kind", ["Generator", "RandomState"])
@pytest.mark.parametrize("name", ENTRIES)
def test_every_function_takes_generators(name, kind):
    one, two = (ENTRIES[name](SEEDS[kind](3)) for _ in range(2))
    assert same(one, two)


@pytest.mark.parametrize("name", sorted({*ENTRIES} - ALIKE))
def test_generators_are_advanced_and_integers_repeat(name):
    entry, generator = ENTRIES[name], np.random.default_rng(3)
    assert same(entry(3), entry(3))
    assert not same(entry(generator), entry(generator))
    assert not same(entry(3), entry(4))


@pytest.mark.parametrize("wrong", ["x", -1, 1.5, True, {1}, object()])
def test_bad_values_are_refused(wrong):
    with pytest.raises(InvalidInputError, match="^random_state: expected None, an integer of 0"):
        random_generator(wrong)


@pytest.mark.parametrize("name", ENTRIES)
def test_every_function_refuses_bad_values_by_name(name):
    with pytest.raises(InvalidInputError, match="^random_state: expected None, an integer of 0"):
        ENTRIES[name]("x")


def test_a_random_state_shares_its_stream():
    legacy = np.random.RandomState(5)
    explanation().sample(2, legacy)
    assert legacy.randint(1_000_000) != np.random.RandomState(5).randint(1_000_000)


@pytest.mark.parametrize(
    "estimator",
    [
        gpattr.GPRegressor,
        gpattr.GPClassifier,
        gpattr.SparseGPRegressor,
        gpattr.HilbertGPRegressor,
        gpattr.MultiOutputGPRegressor,
        gpattr.RandomFeatureGPRegressor,
    ],
)
def test_estimators_with_a_generator_can_be_cloned(estimator):
    generator = np.random.default_rng(1)
    copy = clone(estimator(random_state=generator))
    assert copy.random_state.bit_generator.state == generator.bit_generator.state


def test_the_point_distribution_checks_what_it_does_not_use():
    with pytest.raises(InvalidInputError, match="^random_state"):
        Point(MEAN).sample(1, "x")
