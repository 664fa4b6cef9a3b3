"""Campaigns and surrogates of BayBE as they are: after a real loop, in the user's parameters."""

import numpy as np
import pandas as pd
import pytest
from tests.reference.brute_force import OFFSETS, WEIGHTS
from tests.reference.client_brute_force import by_parameter

baybe = pytest.importorskip(
    "baybe", reason="BayBE is not installed: its tests run in the environment of optimisers"
)

import torch  # noqa: E402
from baybe import Campaign  # noqa: E402
from baybe.objectives import DesirabilityObjective, ParetoObjective  # noqa: E402
from baybe.parameters import (  # noqa: E402
    CategoricalParameter,
    CustomDiscreteParameter,
    NumericalContinuousParameter,
    NumericalDiscreteParameter,
    TaskParameter,
)
from baybe.recommenders import BotorchRecommender, RandomRecommender  # noqa: E402
from baybe.searchspace import SearchSpace  # noqa: E402
from baybe.settings import Settings  # noqa: E402
from baybe.surrogates import GaussianProcessSurrogate, RandomForestSurrogate  # noqa: E402
from baybe.targets import NumericalTarget  # noqa: E402

import gpattr  # noqa: E402
from gpattr import Explainer  # noqa: E402
from gpattr.exceptions import (  # noqa: E402
    InvalidInputError,
    NotFittedError,
    UnsupportedModelError,
)
from gpattr.special.quadrature import gauss_legendre  # noqa: E402

# By linear_operator, of the kernel of tasks, whenever BayBE trains or predicts.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")

NAMES = ("equivalents", "grade", "ligand", "solvent", "temperature")  # in BayBE's order
LIGANDS = pd.DataFrame(
    {"bite": [92.0, 101.0, 110.0, 97.0], "mass": [0.6, 0.4, 0.9, 0.7]},
    index=["dppf", "xantphos", "binap", "dppe"],
)
PARAMETERS = [
    NumericalDiscreteParameter("equivalents", values=[1, 2, 3, 4]),
    CategoricalParameter("solvent", values=["water", "ethanol", "toluene"], encoding="OHE"),
    CategoricalParameter("grade", values=["low", "medium", "high"], encoding="INT"),
    CustomDiscreteParameter("ligand", data=LIGANDS, decorrelate=False),
    NumericalContinuousParameter("temperature", bounds=(40.0, 120.0)),
]
SPACE = SearchSpace.from_product(PARAMETERS)
YIELD = NumericalTarget("yield", metadata={"unit": "%"})
COST = NumericalTarget("cost", minimize=True)


def measured(frame):
    """A yield and a cost of every row."""
    heat = (frame["temperature"] - 85.0) / 30.0
    solvent = frame["solvent"].map({"water": 0.0, "ethanol": 12.0, "toluene": 5.0})
    ligand = frame["ligand"].map(LIGANDS["bite"]) / 10.0
    grade = frame["grade"].map({"low": 0.0, "medium": 3.0, "high": 4.0})
    amount = frame["equivalents"].astype(float)
    worth = 60.0 * np.exp(-(heat**2)) + solvent + ligand + grade + 2.0 * amount
    return frame.assign(**{"yield": worth, "cost": 3.0 * amount + grade + 0.1 * solvent})


@pytest.fixture(scope="module")
def campaign():
    """A campaign of two targets after a few rounds."""
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    quick = BotorchRecommender(
        hybrid_sampler="Random", sampling_percentage=0.03, n_restarts=1, n_raw_samples=8
    )
    campaign = Campaign(SPACE, ParetoObjective([YIELD, COST]), quick)
    first = RandomRecommender().recommend(10, SPACE)
    campaign.add_measurements(measured(first))
    for _ in range(2):
        campaign.add_measurements(measured(campaign.recommend(1)))
    return campaign


def columns_of(frame):
    return SPACE.transform(frame, allow_extra=True).to_numpy(dtype=float)


GROUPS = [list(SPACE.get_comp_rep_parameter_indices(name)) for name in NAMES]


def joint_of(surrogate):
    def joint(points):
        with torch.no_grad():
            found = surrogate._posterior_comp(torch.tensor(points))
            return found.mean[:, 0].numpy(), found.distribution.covariance_matrix.numpy()

    return joint


def test_a_campaign_is_explained_in_its_own_parameters(campaign):
    rows = campaign.measurements[list(NAMES)].iloc[[0, 5, 11]]
    baseline = campaign.measurements[list(NAMES)].iloc[[3]]
    ex = Explainer(campaign, baseline)(rows)
    assert ex.output_names == ("yield", "cost")
    assert ex["yield"].feature_names == NAMES
    assert ex["yield"].quantity == "predicted yield (%)"
    assert "equivalents relaxed to all numbers" in ex["yield"].method
    assert ex["yield"].labels["ligand"] == tuple(rows["ligand"])
    assert ex["cost"].labels["solvent"] == tuple(rows["solvent"])
    stats = campaign.posterior_stats(rows)
    start = campaign.posterior_stats(baseline)
    for name in ("yield", "cost"):
        one = ex[name]
        np.testing.assert_allclose(one.predictions, stats[f"{name}_mean"], rtol=1e-8)
        whole = one.values.sum(axis=1) + start[f"{name}_mean"].iloc[0]
        np.testing.assert_allclose(whole, stats[f"{name}_mean"], rtol=1e-8)


def assert_same(one, mean, cov):
    """Compare the first row: means and standard deviations at 1e-5 of the largest."""
    scale = max(np.abs(mean).max(), np.sqrt(cov.diagonal().max()))
    np.testing.assert_allclose(one.values[0], mean, rtol=0, atol=1e-5 * scale)
    std = np.sqrt(np.maximum(cov.diagonal(), 0.0))
    np.testing.assert_allclose(one.std[0], std, rtol=0, atol=1e-5 * scale)
    np.testing.assert_allclose(one.cov[0], cov, rtol=0, atol=1e-5 * scale**2)


def test_attributions_against_differences_of_the_surrogates_own_posterior(campaign):
    rows = pd.DataFrame([[4.0, "high", "xantphos", "ethanol", 71.3]], columns=NAMES)
    baseline = pd.DataFrame([[2.0, "low", "binap", "water", 101.7]], columns=NAMES)
    ex = Explainer(campaign, baseline)(rows)
    x, b = columns_of(rows)[0], columns_of(baseline)[0]
    for name in ("yield", "cost"):
        assert_same(ex[name], *by_parameter(joint_of(campaign.get_surrogate()[name]), x, b, GROUPS))


def test_numbers_against_differences_of_the_campaign_s_posterior_of_rows(campaign):
    start = campaign.measurements[list(NAMES)].iloc[[4]]
    row = start.assign(temperature=52.0, equivalents=4.0)
    start = start.assign(temperature=101.7, equivalents=1.5)
    ex = Explainer(campaign, start)(row)
    numbers = ["equivalents", "temperature"]

    def joint_of_target(k):
        def joint(points):
            frame = pd.concat([row] * len(points), ignore_index=True)
            with torch.no_grad():
                found = campaign.posterior(
                    frame.assign(**dict(zip(numbers, points.T, strict=True)))
                )
            one = found.posteriors[k]
            return one.mean[:, 0].numpy(), one.distribution.covariance_matrix.numpy()

        return joint

    ends = [frame[numbers].to_numpy(dtype=float)[0] for frame in (row, start)]
    for k, name in enumerate(("yield", "cost")):
        mean, cov = by_parameter(joint_of_target(k), *ends, [[0], [1]])
        assert_same(ex[name], *spread_out(mean, cov))


def spread_out(mean, cov):
    """Categories do not change: they have no attribution."""
    whole = np.zeros((len(NAMES), 2))
    whole[[0, 4], [0, 1]] = 1.0
    return whole @ mean, whole @ cov @ whole.T


def test_shapley_values_and_names_of_baselines(campaign):
    rows = campaign.measurements[list(NAMES)].iloc[:2]
    ex = Explainer(campaign, "centre", attribution="shapley")["yield"](rows)
    stats = campaign.posterior_stats(rows)
    np.testing.assert_allclose(ex.predictions, stats["yield_mean"], rtol=1e-8)
    np.testing.assert_allclose(
        ex.values.sum(axis=1) + ex.base_values, stats["yield_mean"], rtol=1e-8
    )
    centre = Explainer(campaign, "centre")
    assert centre.baseline_name == "centre of the search space"
    encoder = centre.posterior.encoder
    np.testing.assert_allclose(centre.baseline[encoder.places("temperature")], 80.0, rtol=1e-12)
    np.testing.assert_allclose(centre.baseline[encoder.places("solvent")], 1 / 3, rtol=1e-12)
    with pytest.raises(InvalidInputError, match='"best" is a point of an optimiser'):
        Explainer(campaign, "best")  # two targets, neither of which decides


@pytest.fixture(scope="module")
def laboratories():
    """A campaign of one target in two laboratories, of which one is searched."""
    rng = np.random.default_rng(1)
    space = SearchSpace.from_product(
        [
            NumericalContinuousParameter("temperature", bounds=(40.0, 120.0)),
            NumericalContinuousParameter("time", bounds=(0.0, 4.0)),
            TaskParameter(
                "laboratory", values=["Basel", "Darmstadt", "Lyon"], active_values=["Darmstadt"]
            ),
        ]
    )
    frame = pd.DataFrame(
        {
            "temperature": rng.uniform(40.0, 120.0, 14),
            "time": rng.uniform(0.0, 4.0, 14),
            "laboratory": ["Basel"] * 9 + ["Darmstadt"] * 5,
        }
    )
    shift = frame["laboratory"].map({"Basel": 0.0, "Darmstadt": 4.0})
    frame["impurity"] = 0.05 * frame["temperature"] + np.sin(frame["time"]) + shift
    target = NumericalTarget("impurity", minimize=True)
    campaign = Campaign(space, target.to_objective(), BotorchRecommender())
    campaign.add_measurements(frame)
    return campaign


def test_tasks_against_the_campaign_s_joint_posterior(laboratories):
    names = ["laboratory", "temperature", "time"]
    rows = pd.DataFrame({"laboratory": ["Darmstadt"], "temperature": [63.0], "time": [3.1]})
    start = pd.DataFrame({"laboratory": ["Basel"], "temperature": [101.0], "time": [0.4]})
    one = Explainer(laboratories, start)(rows)
    assert one.feature_names == tuple(names)
    assert one.labels["laboratory"] == ("Darmstadt",)
    assert one.quantity == "predicted impurity"
    # Half-way between two laboratories the function is the mean of theirs.
    t, w = gauss_legendre(16, 4)
    h = 2e-3
    b, x = (frame[names[1:]].to_numpy()[0] for frame in (start, rows))
    path = b + t[:, None] * (x - b)
    points, weights = [], []
    for label, share, change in (("Basel", 1.0 - t, -1.0), ("Darmstadt", t, 1.0)):
        points.append(pd.DataFrame(path, columns=names[1:]).assign(laboratory=label))
        weights.append([change * w, 0.0 * w, 0.0 * w])
        for i in (0, 1):
            for offset, factor in zip(OFFSETS, WEIGHTS, strict=True):
                moved = path + h * offset * np.eye(2)[i] * (x - b)
                points.append(pd.DataFrame(moved, columns=names[1:]).assign(laboratory=label))
                own = [0.0 * w, 0.0 * w, 0.0 * w]
                own[1 + i] = w * share * factor / h
                weights.append(own)
    sums = np.concatenate(weights, axis=1)
    with torch.no_grad():
        found = laboratories.posterior(pd.concat(points, ignore_index=True)).posteriors[0]
        mean, cov = found.mean[:, 0].numpy(), found.distribution.covariance_matrix.numpy()
    assert_same(one, sums @ mean, sums @ cov @ sums.T)
    stats = laboratories.posterior_stats(pd.concat([start, rows], ignore_index=True))
    whole = one.values.sum() + stats["impurity_mean"].iloc[0]
    np.testing.assert_allclose(whole, stats["impurity_mean"].iloc[1], rtol=1e-8)


def test_a_task_without_data_is_explained_as_the_campaign_predicts_it(laboratories):
    rows = pd.DataFrame({"laboratory": ["Lyon"], "temperature": [63.0], "time": [3.1]})
    one = Explainer(laboratories)(rows)
    stats = laboratories.posterior_stats(rows)
    np.testing.assert_allclose(one.predictions, stats["impurity_mean"], rtol=1e-8)
    with pytest.raises(InvalidInputError, match="expected one of .* in column 'laboratory'"):
        Explainer(laboratories)(rows.assign(laboratory="Paris"))


def test_the_best_point_is_that_of_the_objective(laboratories):
    explainer = Explainer(laboratories, "best")
    assert explainer.baseline_name == "best point measured so far"
    measured = laboratories.measurements.query("laboratory == 'Darmstadt'")
    best = measured.loc[measured["impurity"].idxmin()]
    shown = explainer(laboratories.measurements[["laboratory", "temperature", "time"]].iloc[:1])
    np.testing.assert_allclose(shown.baselines[0, 1:], [best["temperature"], best["time"]])
    centre = Explainer(laboratories, "centre").baseline
    codes = explainer.posterior.encoder.code("laboratory")
    np.testing.assert_allclose(centre[: codes.shape[1]], codes[1], rtol=1e-12)  # Darmstadt's


def test_surrogates_and_composites(campaign, laboratories):
    rows = campaign.measurements[list(NAMES)].iloc[:3]
    surrogate = campaign.get_surrogate()
    whole = Explainer(campaign, rows.iloc[[0]])(rows)
    composite = Explainer(surrogate, rows.iloc[[0]])(rows)
    for name in ("yield", "cost"):
        np.testing.assert_array_equal(whole[name].values, composite[name].values)
        single = Explainer(surrogate[name], rows.iloc[[0]])(rows)
        np.testing.assert_allclose(single.values, whole[name].values, rtol=1e-9, atol=1e-12)
        assert single.quantity == whole[name].quantity
    assert Explainer(surrogate["cost"], "best").baseline_name == "best point measured so far"
    assert Explainer(laboratories.get_surrogate()).posterior.target_name == "impurity"


def test_a_desirability_that_is_modelled_itself():
    targets = [NumericalTarget.normalized_ramp(n, (0, 100)) for n in ("yield", "cost")]
    objective = DesirabilityObjective(targets, as_pre_transformation=True)
    campaign = Campaign(SPACE, objective, BotorchRecommender())
    rng = np.random.default_rng(5)
    frame = SPACE.discrete.exp_rep.sample(9, random_state=0)
    frame = frame.assign(temperature=rng.uniform(40.0, 120.0, 9))
    campaign.add_measurements(measured(frame))
    rows = frame[list(NAMES)].iloc[:2]
    one = Explainer(campaign, "best")(rows)
    assert one.quantity == "predicted Desirability"
    stats = campaign.posterior_stats(rows)
    np.testing.assert_allclose(one.predictions, stats["Desirability_mean"], rtol=1e-8)


def test_numbers_alone_take_arrays_and_frames():
    space = SearchSpace.from_product(
        [NumericalContinuousParameter(name, bounds=(0.0, 2.0)) for name in ("u", "v")]
    )
    frame = pd.DataFrame(np.random.default_rng(0).uniform(0, 2, (8, 2)), columns=["u", "v"])
    surrogate = GaussianProcessSurrogate()
    surrogate.fit(space, NumericalTarget("y").to_objective(), frame.assign(y=frame["u"] ** 2))
    explainer = Explainer(surrogate, "centre")
    np.testing.assert_allclose(explainer.baseline, [1.0, 1.0], rtol=1e-12)
    one, other = explainer(frame), explainer(frame.to_numpy())
    np.testing.assert_array_equal(one.values, other.values)
    assert one.feature_names == ("u", "v")


def test_bad_input(monkeypatch):
    objective = YIELD.to_objective()
    with pytest.raises(InvalidInputError, match="has no measurements yet"):
        Explainer(Campaign(SPACE, objective))
    with pytest.raises(InvalidInputError, match="has no objective"):
        Explainer(Campaign(SPACE))
    with pytest.raises(NotFittedError, match="GaussianProcessSurrogate is not fitted yet"):
        Explainer(GaussianProcessSurrogate())
    with pytest.raises(NotFittedError, match="CompositeSurrogate is not fitted yet"):
        Explainer(GaussianProcessSurrogate().replicate())
    discrete = SearchSpace.from_product(PARAMETERS[:2])
    frame = discrete.discrete.exp_rep.iloc[:6].assign(**{"yield": np.arange(6.0)})
    forest = BotorchRecommender(surrogate_model=RandomForestSurrogate())
    campaign = Campaign(discrete, objective, forest)
    campaign.add_measurements(frame)
    with pytest.raises(UnsupportedModelError, match="RandomForestSurrogate is not a Gaussian"):
        Explainer(campaign)
    with pytest.raises(UnsupportedModelError, match="RandomForestSurrogate"):
        Explainer(forest.get_surrogate(discrete, objective, frame))
    random = Campaign(discrete, objective, RandomRecommender())
    random.add_measurements(frame)
    with pytest.raises(UnsupportedModelError, match="this Campaign has no model"):
        Explainer(random)


@pytest.mark.parametrize(
    ("installed", "message"),
    [("0.9.1", "too old; version 0.15 works, 0.9.1 is installed"), ("0.99", "too new")],
)
def test_other_versions(monkeypatch, installed, message):
    surrogate = GaussianProcessSurrogate()
    monkeypatch.setattr("gpattr.adapters.foreign.installed_version", lambda package: installed)
    monkeypatch.setattr(
        "gpattr.adapters.optimisers.baybe_models._members", lambda model: model.renamed
    )
    with pytest.raises(UnsupportedModelError, match=message):
        gpattr.as_posterior(surrogate)


@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
def test_single_precision():
    space = SearchSpace.from_product([PARAMETERS[1], PARAMETERS[4]])
    with Settings(use_single_precision_numpy=True, use_single_precision_torch=True):
        frame = pd.DataFrame(
            {
                "solvent": ["water", "ethanol", "toluene"] * 3,
                "temperature": np.linspace(45.0, 115.0, 9),
            }
        )
        surrogate = GaussianProcessSurrogate()
        heat = np.sin(frame["temperature"] / 20.0) + (frame["solvent"] == "water")
        surrogate.fit(space, YIELD.to_objective(), frame.assign(**{"yield": heat}))
        one = Explainer(surrogate)(frame)
        stats = surrogate.posterior_stats(frame)
    assert "float32" in one.method
    np.testing.assert_allclose(one.predictions, stats["yield_mean"], rtol=1e-3, atol=1e-3)
