"""Results of scikit-optimize as they are: in the user's dimensions, against their own models."""

import pickle

import numpy as np
import pandas as pd
import pytest
from tests.reference.brute_force import brute_force_features

skopt = pytest.importorskip(
    "skopt", reason="scikit-optimize is tested in the environment of the optimisers"
)

from scipy.optimize import minimize  # noqa: E402
from skopt.learning import GaussianProcessRegressor  # noqa: E402
from skopt.learning.gaussian_process.kernels import (  # noqa: E402
    RBF,
    HammingKernel,
    Matern,
    WhiteKernel,
)
from skopt.space import Categorical, Integer, Real  # noqa: E402

import gpattr  # noqa: E402
from gpattr import Explainer  # noqa: E402
from gpattr.exceptions import (  # noqa: E402
    InvalidInputError,
    NotFittedError,
    UnsupportedModelError,
)

RNG = np.random.default_rng(0)
NAMES = ["temperature", "rate", "stirring", "solvent", "open"]
SOLVENTS = ["water", "ethanol", "toluene"]
ROWS = pd.DataFrame(
    {
        "open": [True, False],
        "solvent": ["toluene", "water"],
        "temperature": [95.0, 61.5],
        "rate": [0.4, 0.02],
        "stirring": [7, 2],
    }
)
BASELINE = {
    "temperature": 52.0,
    "rate": 0.01,
    "stirring": 3,
    "solvent": "ethanol",
    "open": False,
}
GROUPS = [[0], [1], [2], [3, 4, 5], [6]]


def dimensions():
    return [
        Real(40.0, 120.0, name="temperature"),
        Real(1e-3, 1.0, prior="log-uniform", name="rate"),
        Integer(1, 9, name="stirring"),
        Categorical(SOLVENTS, name="solvent"),
        Categorical([False, True], name="open"),
    ]


def cost(point):
    temperature, rate, stirring, solvent, is_open = point
    level = 50 + ((temperature - 85) / 10) ** 2 + 2 * np.log10(rate) ** 2 - 1.5 * stirring
    level += {"water": 0.0, "ethanol": 4.0, "toluene": 9.0}[solvent] + 3.0 * is_open
    return float(level + np.sin(1e4 * temperature))  # as good as noise


@pytest.fixture(scope="module")
def result():
    return skopt.gp_minimize(
        cost,
        dimensions(),
        n_calls=22,
        n_initial_points=18,
        acq_optimizer="sampling",
        n_points=200,
        random_state=0,
    )


def columns(z):
    """Temperature, rate and stirring, one column for each solvent, and open, as the model's."""
    log = (np.log10(z[:, 1]) + 3.0) / 3.0
    return np.column_stack([(z[:, 0] - 40.0) / 80.0, log, (z[:, 2] - 1.0) / 8.0, z[:, 3:]])


def encoded(row):
    return np.array(
        [
            *(float(row[name]) for name in NAMES[:3]),
            *(float(row["solvent"] == label) for label in SOLVENTS),
            float(row["open"]),
        ]
    )


def own(result, rows):
    return result.models[-1].predict(result.space.transform(rows[NAMES].values.tolist()))


def test_completeness_in_the_units_of_the_objective(result):
    ex = Explainer(result, BASELINE)(ROWS)
    assert list(ex.feature_names) == NAMES
    assert ex.labels["solvent"] == ("toluene", "water")
    expected, base = own(result, ROWS), own(result, pd.DataFrame([BASELINE]))
    scale = 1e-8 * np.abs(expected).max()
    np.testing.assert_allclose(ex.predictions, expected, rtol=0, atol=scale)
    np.testing.assert_allclose(ex.base_values, base.repeat(2), rtol=0, atol=scale)
    np.testing.assert_allclose(ex.values.sum(axis=1), expected - base, rtol=0, atol=scale)
    assert "stirring relaxed to all numbers" in ex.method
    sent = pickle.loads(pickle.dumps(Explainer(result, BASELINE)))  # as to the workers of a cluster
    np.testing.assert_array_equal(sent(ROWS).values, ex.values)


def test_attributions_by_brute_force(result):
    """The model's own joint predictions along the path, which is straight in the user's units."""
    ex = Explainer(result, BASELINE)(ROWS[:1])
    model = result.models[-1]
    assert model.noise_ > 1e-4  # otherwise rounding of the covariance would hide everything

    def joint(z):
        return model.predict(columns(z), return_cov=True)

    mean, std = brute_force_features(
        joint, encoded(ROWS.iloc[0]), encoded(BASELINE), GROUPS, step=1e-3
    )
    scale = max(np.abs(mean).max(), std.max())
    np.testing.assert_allclose(ex.values[0], mean, rtol=0, atol=1e-5 * scale)
    np.testing.assert_allclose(ex.std[0], std, rtol=0, atol=1e-5 * scale)


def test_points_of_the_optimiser_are_baselines(result):
    best = Explainer(result, "best")(ROWS)
    np.testing.assert_allclose(
        best.base_values, own(result, pd.DataFrame([result.x], columns=NAMES)).repeat(2), rtol=1e-9
    )
    same = Explainer(result, result.x)([list(row) for row in ROWS[NAMES].values])
    np.testing.assert_array_equal(best.values, same.values)
    centre = Explainer(result, "centre")(ROWS)
    explainer = Explainer(result, "centre", attribution="shapley")
    assert centre.baseline_name == "centre of the search space"
    np.testing.assert_allclose(centre.baselines[0, :3], [80.0, 10**-1.5, 5.0], rtol=1e-12)
    shapley = explainer(ROWS)
    np.testing.assert_allclose(
        shapley.values.sum(axis=1), shapley.predictions - shapley.base_values, rtol=0, atol=1e-8
    )


def test_optimizers_and_their_models(result):
    optimizer = skopt.Optimizer(
        [(0.0, 2.0), (1, 5)], n_initial_points=4, acq_optimizer="sampling", random_state=1
    )
    with pytest.raises(NotFittedError, match="no surrogate was fitted to these 0 points"):
        Explainer(optimizer)
    for _ in range(6):
        point = optimizer.ask()
        optimizer.tell(point, point[0] ** 2 + point[1])
    ex = Explainer(optimizer)([[0.5, 3], [1.5, 2]])
    assert list(ex.feature_names) == ["X_0", "X_1"]
    rows = optimizer.space.transform([[0.5, 3], [1.5, 2]])
    np.testing.assert_allclose(ex.predictions, optimizer.models[-1].predict(rows), rtol=1e-8)
    alone = Explainer(optimizer.models[-1])(rows)
    np.testing.assert_allclose(alone.predictions, ex.predictions, rtol=1e-12)


@pytest.mark.parametrize(
    "kernel", [1.5 * RBF(0.7), Matern(0.6, nu=1.5) + WhiteKernel(0.3), RBF(0.5) ** 2 + 0.4]
)
@pytest.mark.parametrize("noise", ["gaussian", 0.05, None])
def test_models_alone(kernel, noise):
    X = RNG.uniform(size=(20, 2))
    y = 3.0 + np.sin(4 * X[:, 0]) + 0.1 * RNG.normal(size=20)
    model = GaussianProcessRegressor(
        kernel, noise=noise, normalize_y=True, optimizer=None, alpha=1e-4
    )
    model.fit(X, y)
    points = RNG.uniform(size=(6, 2))
    mean, std = gpattr.as_posterior(model).predict(points, return_std=True)
    theirs, deviation = model.predict(points, return_std=True)
    white = 0.3 * model._y_train_std**2 if noise is None and "White" in str(model.kernel_) else 0.0
    np.testing.assert_allclose(mean, theirs, rtol=1e-9)
    np.testing.assert_allclose(std**2, deviation**2 - white, rtol=1e-6)


def test_categories_alone():
    """All dimensions are categories: a kernel of differences."""
    result = skopt.gp_minimize(
        lambda point: len(point[0]) + 2.0 * (point[1] == "b"),
        [Categorical(SOLVENTS, name="solvent"), Categorical(["a", "b"], name="kind")],
        n_calls=9,
        n_initial_points=7,
        acq_optimizer="sampling",
        n_points=50,
        random_state=3,
    )
    assert isinstance(result.models[-1].kernel.k1.k2, HammingKernel)
    rows = pd.DataFrame({"solvent": ["toluene", "water"], "kind": ["b", "a"]})
    ex = Explainer(result, ["ethanol", "a"])(rows)
    expected = result.models[-1].predict(result.space.transform(rows.values.tolist()))
    np.testing.assert_allclose(ex.predictions, expected, rtol=1e-8)
    assert "squared exponentials" in ex.method
    codes = GaussianProcessRegressor(HammingKernel(), optimizer=None).fit([[0.0], [2.0]], [0, 1])
    with pytest.raises(UnsupportedModelError, match="HammingKernel of columns of 0 and 1"):
        gpattr.as_posterior(codes)


def test_value_and_time():
    def timed(point):
        return point[0] ** 2, 1.0 + point[0]

    result = skopt.gp_minimize(
        timed, [(0.0, 2.0)], acq_func="EIps", n_calls=7, n_initial_points=5, random_state=0
    )
    ex = Explainer(result, "best")([[0.5], [1.2]])
    rows = result.space.transform([[0.5], [1.2]])
    for name, model in zip(("objective", "log time"), result.models[-1].estimators_):
        np.testing.assert_allclose(ex[name].predictions, model.predict(rows), rtol=1e-8)


def test_what_is_no_gaussian_process_is_refused():
    forest = skopt.forest_minimize(lambda x: x[0], [(0.0, 1.0)], n_calls=4, n_initial_points=2)
    with pytest.raises(UnsupportedModelError, match="ExtraTreesRegressor, which is no Gaussian"):
        Explainer(forest)
    drawn = skopt.Optimizer([(0.0, 1.0)], n_initial_points=4)
    drawn.tell([[0.2], [0.4]], [1.0, 2.0])
    with pytest.raises(NotFittedError, match="2 points, which were drawn without one"):
        Explainer(drawn.get_result())
    with pytest.raises(UnsupportedModelError, match="a result of scikit-optimize"):
        Explainer(minimize(lambda x: (x**2).sum(), [1.0]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solvent": "benzene"}, "expected one of .*, got 'benzene'"),
        ({"rate": -0.1}, "'rate' larger than 0"),
        ({"stirring": np.nan}, "X: "),
    ],
)
def test_rows_outside_of_the_space(result, change, message):
    with pytest.raises(InvalidInputError, match=message):
        Explainer(result, BASELINE)([{**BASELINE, **change}])
    with pytest.raises(InvalidInputError, match="X: "):
        Explainer(result, BASELINE)(ROWS.drop(columns="rate"))
