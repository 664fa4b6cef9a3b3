"""Surrogates and strategies of BoFire as they are: after a real loop, in the domain's features."""

import warnings
from copy import deepcopy
from itertools import product

import numpy as np
import pandas as pd
import pytest
from tests.reference.brute_force import OFFSETS, WEIGHTS
from tests.reference.client_brute_force import by_parameter

bofire = pytest.importorskip(
    "bofire", reason="BoFire is not installed: its tests run in the environment of optimisers"
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that it has no chemistry; deprecations of what it imports
    import bofire.strategies.api as strategies
    import bofire.surrogates.api as surrogates
import torch  # noqa: E402
from bofire.data_models.domain.api import (  # noqa: E402
    Domain,
    EngineeredFeatures,
    Inputs,
    Outputs,
)
from bofire.data_models.enum import CategoricalEncodingEnum  # noqa: E402
from bofire.data_models.features.api import (  # noqa: E402
    CategoricalDescriptorInput,
    CategoricalInput,
    CategoricalTaskInput,
    ContinuousInput,
    ContinuousOutput,
    DiscreteInput,
    SumFeature,
)
from bofire.data_models.objectives.api import MaximizeObjective, MinimizeObjective  # noqa: E402
from bofire.data_models.strategies.api import (  # noqa: E402
    BotorchOptimizer,
    MoboStrategy,
    RandomStrategy,
    SoboStrategy,
)
from bofire.data_models.surrogates.api import (  # noqa: E402
    BotorchSurrogates,
    MixedSingleTaskGPSurrogate,
    MultiTaskGPSurrogate,
    RandomForestSurrogate,
    SingleTaskGPSurrogate,
)

from gpattr import Explainer, as_posterior  # noqa: E402
from gpattr.exceptions import (  # noqa: E402
    InvalidInputError,
    NotFittedError,
    UnsupportedModelError,
)
from gpattr.special.quadrature import gauss_legendre  # noqa: E402

pytestmark = [  # what BoFire says, or what it uses, whenever it trains or asks
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
    pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning"),
]

TEMPERATURE = ContinuousInput(key="temperature", bounds=(40.0, 120.0), unit="°C")
EQUIVALENTS = DiscreteInput(key="equivalents", values=[1.0, 2.0, 3.0, 4.0])
SOLVENT = CategoricalInput(key="solvent", categories=["water", "ethanol", "toluene"])
ADDITIVE = CategoricalInput(key="additive", categories=["none", "salt", "acid"])
LIGAND = CategoricalDescriptorInput(
    key="ligand",
    categories=["dppf", "xantphos", "binap"],
    descriptors=["bite", "mass"],
    values=[[92.0, 0.6], [101.0, 0.4], [110.0, 0.9]],
)
YIELD = ContinuousOutput(key="yield", objective=MaximizeObjective(), unit="%")
COST = ContinuousOutput(key="cost", objective=MinimizeObjective())
INPUTS = Inputs(features=[TEMPERATURE, SOLVENT, EQUIVALENTS, ADDITIVE])
NAMES = ("temperature", "solvent", "equivalents", "additive")  # the user's order


def only(*outputs):
    return Outputs(features=list(outputs))


def measured(frame):
    """A yield and a cost of every row."""
    heat = (frame["temperature"].astype(float) - 85.0) / 30.0
    solvent = frame["solvent"].map({"water": 0.0, "ethanol": 12.0, "toluene": 5.0}).astype(float)
    additive = frame["additive"].map({"none": 0.0, "salt": 3.0, "acid": -2.0}).astype(float)
    amount = frame["equivalents"].astype(float)
    return frame.assign(
        **{
            "yield": 60.0 * np.exp(-(heat**2)) + solvent + additive + 2.0 * amount,
            "cost": 3.0 * amount + 0.1 * solvent + additive,
            "valid_yield": 1,
            "valid_cost": 1,
        }
    )


@pytest.fixture(scope="module")
def strategy():
    """A strategy of two outputs after a few rounds: one-hot columns, and codes."""
    torch.manual_seed(0)
    specs = BotorchSurrogates(
        surrogates=[
            MixedSingleTaskGPSurrogate(inputs=INPUTS, outputs=only(COST)),
            SingleTaskGPSurrogate(inputs=INPUTS, outputs=only(YIELD)),
        ]
    )
    domain = Domain(inputs=INPUTS, outputs=only(YIELD, COST))
    quick = BotorchOptimizer(n_restarts=1, n_raw_samples=8, maxiter=20)
    made = strategies.map(
        MoboStrategy(domain=domain, surrogate_specs=specs, seed=1, acquisition_optimizer=quick)
    )
    made.tell(measured(INPUTS.sample(12, seed=1)))
    for _ in range(2):
        made.tell(measured(made.ask(1)[list(NAMES)]))
    return made


def rows_of(strategy, *positions):
    return strategy.experiments[list(NAMES)].iloc[list(positions)]


def assert_same(one, mean, cov):
    """Compare the first row: means and standard deviations at 1e-5 of the largest."""
    scale = max(np.abs(mean).max(), np.sqrt(cov.diagonal().max()))
    np.testing.assert_allclose(one.values[0], mean, rtol=0, atol=1e-5 * scale)
    std = np.sqrt(np.maximum(cov.diagonal(), 0.0))
    np.testing.assert_allclose(one.std[0], std, rtol=0, atol=1e-5 * scale)
    np.testing.assert_allclose(one.cov[0], cov, rtol=0, atol=1e-5 * scale**2)


def test_a_strategy_is_explained_in_its_own_inputs_and_outputs(strategy):
    rows, baseline = rows_of(strategy, 0, 5, 13), rows_of(strategy, 3)
    ex = Explainer(strategy, baseline)(rows)
    assert ex.output_names == ("yield", "cost")  # not in the order of the alphabet
    assert ex["yield"].feature_names == NAMES
    assert ex["yield"].quantity == "predicted yield (%)"
    assert ex["cost"].quantity == "predicted cost"
    assert ex["cost"].labels["solvent"] == tuple(rows["solvent"])
    assert ex["cost"].labels["additive"] == tuple(rows["additive"])
    stats, start = strategy.predict(rows), strategy.predict(baseline)
    for name in ("yield", "cost"):
        one = ex[name]
        np.testing.assert_allclose(one.predictions, stats[f"{name}_pred"], rtol=1e-8)
        whole = one.values.sum(axis=1) + start[f"{name}_pred"].iloc[0]
        np.testing.assert_allclose(whole, stats[f"{name}_pred"], rtol=1e-8)


START = pd.DataFrame([[101.7, "water", 2.0, "none"]], columns=list(NAMES))
STOP = pd.DataFrame([[71.3, "toluene", 4.0, "acid"]], columns=list(NAMES))


def test_one_hot_columns_against_differences_of_the_model_s_joint_posterior(strategy):
    surrogate = next(one for one in strategy.surrogates.surrogates if one.outputs[0].key == "yield")
    model = deepcopy(surrogate.model).eval()
    transform = model.input_transform
    del model.input_transform  # what the kernel sees, NumericToCategoricalEncoding included

    def columns(frame):
        codes = surrogate.inputs.transform(frame, surrogate.input_preprocessing_specs)
        return transform(torch.tensor(codes.to_numpy(dtype=float))).numpy()[0]

    def joint(points):
        with torch.no_grad():
            found = model.posterior(torch.tensor(points))
            return found.mean[:, 0].numpy(), found.distribution.covariance_matrix.numpy()

    b, x = columns(START), columns(STOP)
    alone = {name: columns(START.assign(**{name: STOP[name]})) for name in NAMES}
    groups = [np.flatnonzero(alone[name] != b).tolist() for name in NAMES]
    ex = Explainer(strategy, START)["yield"](STOP)
    assert_same(ex, *by_parameter(joint, x, b, groups))


def test_codes_against_differences_of_the_strategy_s_joint_posterior(strategy):
    """Between two labels the function is between its values at both."""
    ex = Explainer(strategy, START)["cost"](STOP)
    t, w = gauss_legendre(16, 3)
    numbers, h = ["temperature", "equivalents"], 2e-3
    b, x = (frame[numbers].to_numpy(dtype=float)[0] for frame in (START, STOP))
    path = b + t[:, None] * (x - b)
    frames, weights = [], []
    for solvent, additive in product((0, 1), (0, 1)):
        labels = {
            "solvent": (START, STOP)[solvent]["solvent"].iloc[0],
            "additive": (START, STOP)[additive]["additive"].iloc[0],
        }
        first, second = (t if on else 1.0 - t for on in (solvent, additive))
        frames.append(pd.DataFrame(path, columns=numbers).assign(**labels))
        weights.append(
            [0.0 * w, (2 * solvent - 1) * second * w, 0.0 * w, (2 * additive - 1) * first * w]
        )
        for i, place in enumerate((0, 2)):
            for offset, factor in zip(OFFSETS, WEIGHTS, strict=True):
                moved = path + h * offset * np.eye(2)[i] * (x - b)
                frames.append(pd.DataFrame(moved, columns=numbers).assign(**labels))
                own = [0.0 * w] * 4
                own[place] = w * first * second * factor / h
                weights.append(own)
    rows = pd.concat(frames, ignore_index=True)
    columns = strategy.domain.inputs.transform(rows, strategy.input_preprocessing_specs)
    with torch.no_grad():
        model = strategy.model.models[strategy.domain.outputs.get_keys().index("cost")]
        found = model.posterior(torch.tensor(columns.to_numpy(dtype=float)))
        mean, cov = found.mean[:, 0].numpy(), found.distribution.covariance_matrix.numpy()
    sums = np.concatenate(weights, axis=1)
    assert_same(ex, sums @ mean, sums @ cov @ sums.T)


def test_surrogates_and_several_of_them(strategy):
    rows = rows_of(strategy, 0, 1, 2)
    whole = Explainer(strategy, rows.iloc[[0]])(rows)
    several = Explainer(strategy.surrogates, rows.iloc[[0]])(rows)
    assert several.output_names == ("cost", "yield")
    for part in strategy.surrogates.surrogates:
        name = part.outputs[0].key
        single = Explainer(part, rows.iloc[[0]])(rows)
        assert single.feature_names == NAMES
        for other in (several[name], single):
            np.testing.assert_allclose(other.values, whole[name].values, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(other.std, whole[name].std, rtol=1e-6, atol=1e-9)


@pytest.fixture(scope="module")
def subsets():
    """A strategy with one objective, one of whose models sees some of the inputs only."""
    torch.manual_seed(0)
    inputs = Inputs(features=[TEMPERATURE, LIGAND, EQUIVALENTS])
    some = Inputs(features=[EQUIVALENTS, LIGAND])
    plain = ContinuousOutput(key="cost", objective=None)
    specs = BotorchSurrogates(
        surrogates=[
            SingleTaskGPSurrogate(
                inputs=inputs,
                outputs=only(YIELD),
                categorical_encodings={"ligand": CategoricalEncodingEnum.ONE_HOT},
            ),
            SingleTaskGPSurrogate(
                inputs=some,
                outputs=only(plain),
                categorical_encodings={"ligand": CategoricalEncodingEnum.DESCRIPTOR},
            ),
        ]
    )
    domain = Domain(inputs=inputs, outputs=only(YIELD, plain))
    made = strategies.map(SoboStrategy(domain=domain, surrogate_specs=specs))
    frame = inputs.sample(10, seed=3)
    bite = frame["ligand"].map({"dppf": 92.0, "xantphos": 101.0, "binap": 110.0}).astype(float)
    amount = frame["equivalents"].astype(float)
    frame = frame.assign(**{"yield": 0.4 * frame["temperature"] + bite, "cost": amount + bite / 9})
    made.tell(frame.assign(valid_yield=1, valid_cost=1))
    return made


def test_models_of_some_inputs_and_of_descriptors(subsets):
    names = ["temperature", "ligand", "equivalents"]
    rows = subsets.experiments[names].iloc[:4]
    ex = Explainer(subsets, "best")(rows)
    best = subsets.experiments["yield"].to_numpy().argmax()
    stats, start = subsets.predict(rows), subsets.predict(subsets.experiments[names].iloc[[best]])
    for name in ("yield", "cost"):
        whole = ex[name].values.sum(axis=1) + start[f"{name}_pred"].iloc[0]
        np.testing.assert_allclose(whole, stats[f"{name}_pred"], rtol=1e-8)
    assert (ex["cost"].values[:, 0] == 0).all()  # the model of costs does not see temperatures
    assert (ex["cost"].values[:, 1:] != 0).any()
    assert ex["cost"].labels["ligand"] == tuple(rows["ligand"])
    alone = Explainer(subsets.surrogates.surrogates[1])
    assert alone(rows[["equivalents", "ligand"]]).feature_names == ("equivalents", "ligand")


def test_tasks():
    torch.manual_seed(0)
    task = CategoricalTaskInput(
        key="site", categories=["Basel", "Lyon"], allowed=[False, True], fidelities=[0, 0]
    )
    inputs = Inputs(features=[TEMPERATURE, task])
    made = surrogates.map(MultiTaskGPSurrogate(inputs=inputs, outputs=only(YIELD)))
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"temperature": rng.uniform(40, 120, 12), "site": ["Basel", "Lyon"] * 6})
    shift = 5.0 * (frame["site"] == "Lyon")
    frame["yield"] = np.sin(frame["temperature"] / 20.0) + shift
    made.fit(frame.assign(valid_yield=1))
    rows, start = frame[["temperature", "site"]].iloc[:3], frame[["temperature", "site"]].iloc[[7]]
    one = Explainer(made, start)(rows)
    assert one.feature_names == ("temperature", "site")
    stats, other = made.predict(rows), made.predict(start)
    whole = one.values.sum(axis=1) + other["yield_pred"].iloc[0]
    np.testing.assert_allclose(whole, stats["yield_pred"], rtol=1e-8)
    third = CategoricalTaskInput(key="site", categories=["Basel", "Lyon", "Nice"])
    unknown = surrogates.map(
        MultiTaskGPSurrogate(inputs=Inputs(features=[TEMPERATURE, third]), outputs=only(YIELD))
    )
    unknown.model = made.model
    with pytest.raises(UnsupportedModelError, match="it knows 2 tasks, and the parameter 'site'"):
        Explainer(unknown)


def test_bad_input(strategy):
    domain = Domain(inputs=INPUTS, outputs=only(YIELD, COST))
    described = MoboStrategy(domain=domain)
    with pytest.raises(InvalidInputError, match="has no experiments yet"):
        Explainer(strategies.map(described))
    with pytest.raises(InvalidInputError, match="is a description of a model"):
        Explainer(SingleTaskGPSurrogate(inputs=INPUTS, outputs=only(YIELD)))
    gp = surrogates.map(SingleTaskGPSurrogate(inputs=INPUTS, outputs=only(YIELD)))
    with pytest.raises(NotFittedError, match="SingleTaskGPSurrogate is not fitted yet"):
        Explainer(gp)
    forest = surrogates.map(RandomForestSurrogate(inputs=INPUTS, outputs=only(YIELD)))
    forest.fit(strategy.experiments)
    with pytest.raises(UnsupportedModelError, match="RandomForestSurrogate is not a Gaussian"):
        Explainer(forest)
    with pytest.raises(UnsupportedModelError, match="RandomStrategy"):
        Explainer(strategies.map(RandomStrategy(domain=domain)))
    with pytest.raises(InvalidInputError, match="expected one of .* in column 'solvent'"):
        Explainer(strategy)(START.assign(solvent="acetone"))
    with pytest.raises(InvalidInputError, match="missing .'additive'."):
        Explainer(strategy)(START.drop(columns="additive"))


def test_engineered_features_are_refused_by_name():
    inputs = Inputs(features=[ContinuousInput(key=key, bounds=(0.0, 1.0)) for key in ("u", "v")])
    features = EngineeredFeatures(features=[SumFeature(key="both", features=["u", "v"])])
    made = surrogates.map(
        SingleTaskGPSurrogate(inputs=inputs, outputs=only(YIELD), engineered_features=features)
    )
    frame = inputs.sample(6, seed=0)
    made.fit(frame.assign(**{"yield": frame["u"] + frame["v"] ** 2, "valid_yield": 1}))
    with pytest.raises(UnsupportedModelError, match="made of 'u' and 'v'"):
        Explainer(made)


@pytest.mark.parametrize(
    ("installed", "message"),
    [("0.0.9", "too old; version 0.5 works, 0.0.9 is installed"), ("0.99", "too new")],
)
def test_other_versions(monkeypatch, strategy, installed, message):
    monkeypatch.setattr("gpattr.adapters.foreign.installed_version", lambda package: installed)
    monkeypatch.setattr(
        "gpattr.adapters.optimisers.bofire_models._best", lambda *given: strategy.renamed
    )
    with pytest.raises(UnsupportedModelError, match=message):
        as_posterior(strategy)
