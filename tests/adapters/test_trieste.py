"""Models, results and optimisers of Trieste as they are, in their query points.

Trieste needs GPflow, and so the environment with NumPy 1.
"""

import numpy as np
import pandas as pd
import pytest
from tests.reference.brute_force import brute_force_features

trieste = pytest.importorskip(
    "trieste", reason="Trieste needs NumPy 1: its tests run in an environment of their own"
)

import gpflow  # noqa: E402
import tensorflow as tf  # noqa: E402
from trieste.acquisition.optimizer import generate_random_search_optimizer  # noqa: E402
from trieste.acquisition.rule import EfficientGlobalOptimization, RandomSampling  # noqa: E402
from trieste.ask_tell_optimization import AskTellOptimizer  # noqa: E402
from trieste.bayesian_optimizer import BayesianOptimizer  # noqa: E402
from trieste.models import gpflow as models  # noqa: E402
from trieste.objectives.utils import mk_observer  # noqa: E402
from trieste.space import (  # noqa: E402
    Box,
    CategoricalSearchSpace,
    DiscreteSearchSpace,
    TaggedProductSearchSpace,
    one_hot_encoded_space,
    one_hot_encoder,
)

import gpattr  # noqa: E402
from gpattr import Explainer  # noqa: E402
from gpattr.exceptions import (  # noqa: E402
    InvalidInputError,
    NotFittedError,
    UnsupportedModelError,
)

RNG = np.random.default_rng(0)
NAMES = ["temperature", "n", "kind"]
LEVELS = np.array([0.0, 4.0, 9.0])


def cost(points):
    """Of a temperature, a whole number and one of three kinds."""
    points = np.asarray(points)
    level = ((points[:, 0] - 85.0) / 20.0) ** 2 - points[:, 1] + LEVELS[points[:, 2].astype(int)]
    return tf.constant((level + 0.3 * np.sin(1e4 * points[:, 0]))[:, None])


@pytest.fixture(scope="module")
def space():
    return TaggedProductSearchSpace(
        [
            Box([40.0], [120.0]),
            DiscreteSearchSpace(tf.constant(np.arange(1.0, 6.0)[:, None])),
            CategoricalSearchSpace(["water", "ethanol", "toluene"]),
        ]
    )


def model_of(space, data):
    encoder = one_hot_encoder(space)
    columns = trieste.data.Dataset(encoder(data.query_points), data.observations)
    model = models.build_gpr(columns, one_hot_encoded_space(space), likelihood_variance=0.1)
    return models.GaussianProcessRegression(model, encoder=encoder, num_kernel_samples=1)


@pytest.fixture(scope="module")
def optimised(space):
    """A result, and the optimiser of its space that goes on from there."""
    tf.random.set_seed(0)
    observer = mk_observer(cost)
    data = observer(space.sample(14))
    rule = EfficientGlobalOptimization(optimizer=generate_random_search_optimizer(100))
    result = BayesianOptimizer(observer, space).optimize(1, data, model_of(space, data), rule)
    assert result.is_ok
    record = result.final_result.unwrap()
    return result, AskTellOptimizer(space, record.dataset, record.model, fit_model=False)


ROWS = np.array([[95.0, 4.0, 2.0], [61.5, 2.0, 0.0]])
BASELINE = np.array([[52.0, 3.0, 1.0]])


def test_completeness_and_labels(optimised):
    result, asking = optimised
    model = result.try_get_final_model()
    expected, base = (np.asarray(model.predict(rows)[0])[:, 0] for rows in (ROWS, BASELINE))
    for client in (result, asking):
        rows, baseline = (pd.DataFrame(part, columns=NAMES) for part in (ROWS, BASELINE))
        ex = Explainer(client, baseline, feature_names=NAMES)(rows)
        assert ex.labels == {"kind": ("2", "0")}
        np.testing.assert_allclose(ex.predictions, expected, rtol=1e-8)
        np.testing.assert_allclose(ex.values.sum(axis=1), expected - base, rtol=0, atol=1e-8)


def test_attributions_by_brute_force(optimised):
    result, _ = optimised
    model = result.try_get_final_model()

    def joint(z):
        mean, cov = model.model.predict_f(z, full_cov=True)
        return np.asarray(mean)[:, 0], np.asarray(cov)[0]

    def encoded(row):
        return np.concatenate([row[:2], np.eye(3)[int(row[2])]])

    ex = Explainer(result, BASELINE)(ROWS[:1])
    mean, std = brute_force_features(
        joint, encoded(ROWS[0]), encoded(BASELINE[0]), [[0], [1], [2, 3, 4]], panels=16
    )
    scale = max(np.abs(mean).max(), std.max())
    np.testing.assert_allclose(ex.values[0], mean, rtol=0, atol=1e-5 * scale)
    np.testing.assert_allclose(ex.std[0], std, rtol=0, atol=1e-5 * scale)


def test_points_of_the_optimiser_are_baselines(optimised):
    result, asking = optimised
    best = np.asarray(result.try_get_optimal_point()[0])
    same = Explainer(result, best[None])(ROWS)
    for client in (result, asking, result.final_result.unwrap()):
        np.testing.assert_array_equal(Explainer(client, "best")(ROWS).values, same.values)
    np.testing.assert_allclose(
        Explainer(asking, "centre")(ROWS).baselines[0, :2], [80.0, 3.0], rtol=1e-12
    )
    with pytest.raises(InvalidInputError, match='"centre" is a point of an optimiser'):
        Explainer(result, "centre")


def test_wrappers():
    X = RNG.uniform(0.0, 3.0, size=(20, 2))
    Y = np.sin(X[:, :1]) + X[:, 1:]
    kernel = gpflow.kernels.RBF(lengthscales=[1.0, 2.0])
    exact = gpflow.models.GPR((X, Y), kernel, noise_variance=0.1)
    sparse = gpflow.models.SGPR((X, Y), kernel, X[::4].copy(), noise_variance=0.1)
    variational = gpflow.models.SVGP(
        kernel, gpflow.likelihoods.Gaussian(0.1), X[::4].copy(), num_data=20
    )
    for wrapper in (
        models.GaussianProcessRegression(exact),
        models.SparseGaussianProcessRegression(sparse),
        models.SparseVariational(variational),
    ):
        mean, var = (np.asarray(part)[:, 0] for part in wrapper.predict(X[:4] + 0.1))
        found = gpattr.as_posterior(wrapper).predict(X[:4] + 0.1, return_std=True)
        np.testing.assert_allclose(found[0], mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found[1] ** 2, var, rtol=1e-6)


def test_several_models_are_outputs():
    X = tf.constant(RNG.uniform(size=(12, 2)))
    observer = mk_observer(lambda x: x[:, :1] ** 2 + x[:, 1:])
    data = {"purity": observer(X), "cost": mk_observer(lambda x: 5.0 - x[:, :1])(X)}
    space = Box([0.0, 0.0], [1.0, 1.0])
    built = {
        tag: models.GaussianProcessRegression(
            gpflow.models.GPR(part.astuple(), gpflow.kernels.RBF(), noise_variance=0.01)
        )
        for tag, part in data.items()
    }
    rule = RandomSampling()
    client = AskTellOptimizer(space, data, built, rule, fit_model=False)
    ex = Explainer(client, "centre")(X[:2])
    assert ex.output_names == ("purity", "cost")
    np.testing.assert_allclose(
        ex["cost"].predictions, np.asarray(built["cost"].predict(X[:2])[0])[:, 0], rtol=1e-8
    )


def test_what_is_not_supported(space, optimised):
    result, _ = optimised
    with pytest.raises(UnsupportedModelError, match="this model sees encoded query points"):
        Explainer(result.try_get_final_model())
    failed = BayesianOptimizer(mk_observer(cost), space).optimize(
        1, mk_observer(lambda x: x[:, :1])(space.sample(3)), object(), track_state=False
    )
    with pytest.raises(NotFittedError, match="the optimisation failed"):
        Explainer(failed)
