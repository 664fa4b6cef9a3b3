"""Clients of Ax as they are: in the user's parameters, and in the units of the outcomes."""

import logging
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from tests.reference.brute_force import brute_force_features

pytest.importorskip("ax", reason="Ax is tested in the environment of the optimisers")
pytestmark = pytest.mark.filterwarnings("ignore")  # of Ax, BoTorch and SymPy, from all sides

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ax.adapter.registry import (
        Cont_X_trans,
        Generators,
        MBM_X_trans,
        Mixed_transforms,
        Y_trans,
    )
    from ax.api.client import Client
    from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
    from ax.service.ax_client import AxClient, ObjectiveProperties

import gpattr  # noqa: E402
from gpattr import Explainer  # noqa: E402
from gpattr.exceptions import (  # noqa: E402
    InvalidInputError,
    NotFittedError,
    UnsupportedModelError,
)

RNG = np.random.default_rng(0)
NAMES = ("temperature", "rate", "stirring", "solvent", "grade", "batch")
SOLVENTS, GRADES = ["water", "ethanol", "toluene"], ["low", "mid", "high"]
ROWS = pd.DataFrame(
    {
        "grade": ["high", "low"],
        "solvent": ["toluene", "water"],
        "temperature": [95.0, 61.5],
        "rate": [0.4, 0.02],
        "stirring": [7, 2],
        "batch": [8, 2],
    }
)
BASELINE = {
    "temperature": 52.0,
    "rate": 0.01,
    "stirring": 3,
    "solvent": "ethanol",
    "grade": "mid",
    "batch": 2,
}
GROUPS = [[0], [1], [2], [3, 4, 5], [6], [7]]


@pytest.fixture(scope="module", autouse=True)
def quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def new_client(objective="purity", **options):
    client = Client(random_seed=0)
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name="temperature", parameter_type="float", bounds=(40.0, 120.0)),
            RangeParameterConfig(
                name="rate", parameter_type="float", bounds=(1e-3, 1.0), scaling="log"
            ),
            RangeParameterConfig(name="stirring", parameter_type="int", bounds=(1, 9)),
            ChoiceParameterConfig(
                name="solvent", parameter_type="str", values=SOLVENTS, is_ordered=False
            ),
            ChoiceParameterConfig(
                name="grade", parameter_type="str", values=GRADES, is_ordered=True
            ),
            ChoiceParameterConfig(
                name="batch", parameter_type="int", values=[1, 2, 4, 8], is_ordered=True
            ),
        ]
    )
    client.configure_optimization(objective=objective, **options)
    client.configure_tracking_metrics(["cost"])
    client.configure_generation_strategy(initialization_budget=9, initialization_random_seed=0)
    return client


def measured(point):
    purity = 60 * np.exp(-(((point["temperature"] - 85) / 25) ** 2)) + point["stirring"]
    purity += SOLVENTS.index(point["solvent"]) ** 2 - 3 * np.log10(point["rate"]) ** 2
    cost = 1000 + 2 * point["temperature"] + 300 * point["rate"] + 5 * point["batch"]
    cost += 40 * SOLVENTS.index(point["solvent"]) + 30 * GRADES.index(point["grade"])
    return {"purity": float(purity + RNG.normal()), "cost": float(cost + 5 * RNG.normal())}


def advance(client, trials):
    for _ in range(trials):
        for index, point in client.get_next_trials(max_trials=1).items():
            client.complete_trial(trial_index=index, raw_data=measured(point))


@pytest.fixture(scope="module")
def client(quiet):
    """Nine points drawn by Sobol, and one by Bayesian optimisation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = new_client()
        advance(client, 10)
    return client


def adapter(client, transforms):
    """A model of all that a client has measured: not fitted, and without a search."""
    with pytest.MonkeyPatch.context() as patch:
        fitting = "ax.generators.torch.botorch_modular.surrogate.fit_botorch_model"
        patch.setattr(fitting, lambda *args, **options: None)
        return Generators.BOTORCH_MODULAR(
            experiment=client._experiment,
            data=client._experiment.lookup_data(),
            transforms=transforms,
        )


def predicted(client, rows, outcome):
    return np.array([row[outcome][0] for row in client.predict(rows.to_dict("records"))])


def joint_of(adapter, outcome):
    """The adapter's own joint predictions at rows with one column for each solvent."""
    units = adapter.transforms["StandardizeY"]
    shift, scale = float(units.Ymean[outcome]), float(units.Ystd[outcome])
    model = adapter.botorch_model.subset_output([adapter.outcomes.index(outcome)])
    assert adapter.parameters == [
        *NAMES[:3],
        *(f"solvent_OH_PARAM_{i}" for i in range(3)),
        "grade",
        "batch",
    ]

    def joint(z):
        X = np.column_stack([z[:, 0], np.log10(z[:, 1]), z[:, 2:7], np.log10(z[:, 7])])
        with torch.no_grad():
            found = model.posterior(torch.tensor(X)).distribution
            return (
                shift + scale * found.mean.numpy(),
                scale**2 * found.covariance_matrix.numpy(),
            )

    return joint


def encoded(row):
    return np.array(
        [
            *(float(row[name]) for name in NAMES[:3]),
            *(float(row["solvent"] == label) for label in SOLVENTS),
            float(GRADES.index(row["grade"])),
            float(row["batch"]),
        ]
    )


@pytest.mark.parametrize("outcome", ["purity", "cost"])
def test_completeness_in_the_units_of_the_outcome(client, outcome):
    ex = Explainer(client, BASELINE)(ROWS)
    assert ex.output_names == ("purity", "cost")
    ex = ex[outcome]
    assert ex.feature_names == NAMES
    assert ex.labels == {"solvent": ("toluene", "water"), "grade": ("high", "low")}
    assert "stirring, batch relaxed to all numbers" in ex.method
    expected = predicted(client, ROWS, outcome)
    base = predicted(client, pd.DataFrame([BASELINE]), outcome)
    scale = 1e-8 * np.abs(expected).max()
    np.testing.assert_allclose(ex.predictions, expected, rtol=0, atol=scale)
    np.testing.assert_allclose(ex.base_values, base.repeat(2), rtol=0, atol=scale)
    np.testing.assert_allclose(ex.values.sum(axis=1), expected - base, rtol=0, atol=scale)


@pytest.mark.parametrize("outcome", ["purity", "cost"])
def test_attributions_by_brute_force(client, outcome):
    """The model's own joint predictions along the path, which is straight in the user's units."""
    ex = Explainer(client, BASELINE)(ROWS[:1])[outcome]
    joint = joint_of(client._generation_strategy.adapter, outcome)
    mean, std = brute_force_features(
        joint, encoded(ROWS.iloc[0]), encoded(BASELINE), GROUPS, panels=8, step=1e-3
    )
    scale = max(np.abs(mean).max(), std.max())
    np.testing.assert_allclose(ex.values[0], mean, rtol=0, atol=1e-5 * scale)
    np.testing.assert_allclose(ex.std[0], std, rtol=0, atol=1e-5 * scale)


def test_points_of_the_client_are_baselines(client):
    best = client.get_best_parameterization(use_model_predictions=False)[0]
    ex = Explainer(client, "best")(ROWS)["purity"]
    same = Explainer(client, best)(ROWS.to_dict("records"))["purity"]
    np.testing.assert_array_equal(ex.values, same.values)
    assert ex.baseline_name == "best point measured so far"
    centre = Explainer(client, "centre")(ROWS)["purity"]
    np.testing.assert_allclose(centre.baselines[0, :3], [80.0, 10**-1.5, 5.0], rtol=1e-9)


def test_adapters_alone(client):
    found = client._generation_strategy.adapter
    ex = Explainer(found, BASELINE)(ROWS)["cost"]
    np.testing.assert_array_equal(ex.values, Explainer(client, BASELINE)(ROWS)["cost"].values)
    assert [round(abs(error), 6) for error in ex.delta] == [0.0, 0.0]


def test_other_transforms(client):
    """Numbers in the unit cube, integers made real, ordered categories as integers."""
    found = adapter(client, Cont_X_trans + Y_trans)
    assert {"UnitX", "IntToFloat", "OrderedChoiceToIntegerRange"} <= set(found.transforms)
    ex = Explainer(found, BASELINE)(ROWS)["cost"]
    from ax.core.observation import ObservationFeatures

    rows = [ObservationFeatures(parameters=row) for row in ROWS.to_dict("records")]
    expected = np.array(found.predict(rows)[0]["cost"])
    np.testing.assert_allclose(ex.predictions, expected, rtol=1e-8)
    np.testing.assert_allclose(
        ex.values.sum(axis=1), ex.predictions - ex.base_values, rtol=0, atol=1e-8 * expected.max()
    )
    with pytest.raises(UnsupportedModelError, match="categories inside a model"):
        Explainer(adapter(client, Mixed_transforms + Y_trans))


def test_an_outcome_that_is_transformed_is_explained_as_such():
    """Constraints make Ax take logarithms of an outcome's distance from its bound."""
    client = new_client(outcome_constraints=["cost <= 1200"])
    advance(client, 9)
    found = adapter(client, MBM_X_trans + Y_trans)
    ex = Explainer(found, BASELINE)(ROWS)
    assert "of the latent function: BilogY of cost is not affine" in ex["cost"].method
    assert "latent" not in ex["purity"].method
    from ax.core.observation import ObservationFeatures

    rows = [ObservationFeatures(parameters=row) for row in ROWS.to_dict("records")]
    latent = found._predict_observation_data(rows, untransform=False)
    units = found.transforms["StandardizeY"]
    for outcome in ("purity", "cost"):
        place = found.outcomes.index(outcome)
        mean = np.array([row.means[place] for row in latent])
        expected = units.Ymean[outcome] + units.Ystd[outcome] * mean
        np.testing.assert_allclose(ex[outcome].predictions, expected, rtol=1e-8)


def test_one_outcome_of_the_older_client():
    client = AxClient(random_seed=0, verbose_logging=False)
    client.create_experiment(
        parameters=[
            {"name": "width", "type": "range", "bounds": [0.0, 5.0]},
            {"name": "kind", "type": "fixed", "value": "round"},
            {"name": "depth", "type": "fixed", "value": 4.5},
            {"name": "gap", "type": "range", "bounds": [0.1, 2.0], "digits": 1},
        ],
        objectives={"score": ObjectiveProperties(minimize=True)},
        choose_generation_strategy_kwargs={"num_initialization_trials": 5},
    )
    with pytest.raises(NotFittedError, match="has no model yet"):
        Explainer(client)
    for _ in range(5):
        point, index = client.get_next_trial()
        client.complete_trial(index, raw_data={"score": (point["width"] - 2) ** 2 + point["gap"]})
    client.fit_model()
    row = {"width": 3.1, "kind": "round", "depth": 4.5, "gap": 0.7}
    ex = Explainer(client, "best")([row])
    assert ex.feature_names == ("width", "kind", "depth", "gap")
    assert ex.quantity == "predicted score"
    assert (ex.values[0, 1:3] == 0.0).all()
    assert (ex.std[0, 1:3] == 0.0).all()
    assert Explainer(client, "mean")([row]).baselines[0, 2] == 4.5  # where it is fixed
    expected = client.get_model_predictions_for_parameterizations([row])[0]["score"][0]
    np.testing.assert_allclose(ex.predictions, [expected], rtol=1e-8)


def test_clients_without_a_model():
    with pytest.raises(NotFittedError, match="this Client has no model yet"):
        Explainer(Client())
    client = new_client(objective="purity, -cost")
    with pytest.raises(NotFittedError, match="has no model yet"):
        Explainer(client)
    advance(client, 2)
    with pytest.raises(NotFittedError, match="SobolGenerator, which has no surrogate"):
        Explainer(client)
    advance(client, 6)
    several = adapter(client, MBM_X_trans + Y_trans)
    with pytest.raises(InvalidInputError, match='"best" is a point of an optimiser'):
        Explainer(several, "best")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solvent": "benzene"}, "expected one of .*, got 'benzene'"),
        ({"rate": 0.0}, "'rate' larger than 0"),
        ({"temperature": "hot"}, "X: "),
    ],
)
def test_rows_outside_of_the_space(client, change, message):
    with pytest.raises(InvalidInputError, match=message):
        Explainer(client, BASELINE)([{**BASELINE, **change}])


@pytest.mark.parametrize(
    ("version", "message"),
    [("0.5.0", "too old; version 1.3 works, 0.5.0"), ("9.1", "too new.*version 1.3 works")],
)
def test_versions_that_work_are_named(client, monkeypatch, version, message):
    monkeypatch.setattr("gpattr.adapters.foreign.installed_version", lambda package: version)
    found = client._generation_strategy.adapter
    if version == "9.1":
        assert gpattr.as_posterior(found).outputs  # a newer one is tried
        name = "transform_observation_features"
        owner = next(kind for kind in type(found).__mro__ if name in vars(kind))
        monkeypatch.delattr(owner, name)
    with pytest.raises(UnsupportedModelError, match=message):
        gpattr.as_posterior(found)
