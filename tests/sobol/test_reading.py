"""What `sobol_indices` takes: models, inputs, groups and pairs, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from tests.sobol.brute_force import moments_of_effects

import gpattr
from gpattr import Normal, Uniform, kernels
from gpattr.encoders import Encoder
from gpattr.encoders.dates import Dates
from gpattr.exceptions import InvalidIndexError, InvalidInputError, SeveralOutputsError
from gpattr.means import Constant
from gpattr.posteriors import (
    AffinePosterior,
    EncodedPosterior,
    ExactPosterior,
    MultiOutputPosterior,
    WeightSpacePosterior,
)
from gpattr.sobol import quasi_random
from gpattr.sobol.entry import pairs_of, subsets_of
from gpattr.sobol.inputs import Empirical, read_inputs

RNG = np.random.default_rng(0)
NAMES = ["size", "age", "rooms"]
ENCODER = Encoder(
    ("area", "kind", "sold"), {"kind": ("flat", "house")}, dates={"sold": Dates(("weekday",))}
)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(quasi_random, "WORK", 5e6)
    monkeypatch.setattr(quasi_random, "MEAN_WORK", 5e6)


def named(m=20):
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.uniform(size=(m, 3)), columns=NAMES)
    y = np.sin(4 * X["size"]) + X["age"] * X["rooms"]
    return ExactPosterior(kernels.SquaredExponential([0.5, 0.8, 1.0]), X, y, noise=0.01)


def table(n=30):
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "area": rng.normal(size=n),
            "kind": rng.choice(["flat", "house"], n),
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 60, n), "D"),
        }
    )


def encoded():
    frame = table()
    y = frame["area"] * (frame["kind"] == "flat")
    Z = ENCODER.encode("X", frame)
    scales = [1.0, 1.0, 1.0, 30.0] + [1.0] * (Z.shape[1] - 4)
    inner = ExactPosterior(kernels.SquaredExponential(scales), Z, y, noise=0.01)
    return EncodedPosterior(inner, ENCODER)


def read(posterior, inputs=None, groups=None):
    return read_inputs(posterior, inputs, groups, None)


def test_frames_are_aligned_by_name():
    rows = pd.DataFrame(RNG.normal(size=(5, 3)), columns=["rooms", "size", "age"])
    found = read(named(), rows)
    assert found.players == tuple(NAMES)
    for name, law in zip(NAMES, found.inputs.distributions, strict=True):
        assert (law.values[:, 0] == np.sort(rows[name])).all()
    assert found.words == "independent draws from 5 rows"


def test_training_rows_by_default():
    posterior = named()
    found = read(posterior)
    for law, column in zip(found.inputs.distributions, posterior.inputs.T, strict=True):
        assert (law.values[:, 0] == np.sort(column)).all()
    assert "20 training rows" in found.words


def test_training_rows_are_in_the_units_of_the_user():
    inner = named()
    posterior = AffinePosterior(inner, [1.0, 2.0, 3.0], [10.0, 5.0, 2.0])
    one, two = gpattr.sobol_indices(posterior), gpattr.sobol_indices(inner)
    np.testing.assert_allclose(one.plug_in_first, two.plug_in_first, atol=1e-9)


def test_distributions_for_all_features():
    laws = read(named(), Uniform([0.0, 1.0, 2.0], 5.0)).inputs.distributions
    assert [(law.low, law.high) for law in laws] == [(0.0, 5.0), (1.0, 5.0), (2.0, 5.0)]
    laws = read(named(), Normal(0.0, 2.0)).inputs.distributions
    assert [(law.mean, law.std) for law in laws] == [(0.0, 2.0)] * 3


def test_dictionaries_by_name_or_position():
    posterior = named()
    laws = read(posterior, {"age": Uniform(0, 1), 2: [1.0, 2.0, 2.0]}).inputs.distributions
    assert (laws[0].values[:, 0] == np.sort(posterior.inputs[:, 0])).all()
    assert isinstance(laws[1], Uniform)
    np.testing.assert_allclose(laws[2].weights, [1 / 3, 2 / 3])


def test_categories_and_dates_are_drawn_whole():
    posterior = encoded()
    found = read(posterior)
    area, kind, sold = found.inputs.distributions
    assert found.players == ("area", "kind", "sold")
    assert area.width == 1
    assert {tuple(row) for row in kind.values} == {(1.0, 0.0), (0.0, 1.0)}
    assert sold.width == len(ENCODER.places("sold"))
    given = {"kind": ["flat", "flat", "house"], "sold": ["2024-01-03", "2024-02-01"]}
    area, kind, sold = read(posterior, given).inputs.distributions
    np.testing.assert_allclose(kind.weights[kind.values[:, 0] == 1.0], 2 / 3)
    expected = ENCODER.dates["sold"].encode(np.array(given["sold"], dtype="datetime64[us]"))
    np.testing.assert_allclose(sold.values, expected[np.lexsort(expected.T[::-1])])
    rows = read(posterior, table()[["sold", "area", "kind"]])
    assert rows.inputs.distributions[2].width == sold.width


def test_indices_of_categories_are_those_of_joint_predictions():
    posterior = encoded()
    given = {"sold": ["2024-01-03", "2024-02-01", "2024-02-20"], "area": Uniform(-1.0, 1.0)}
    found = gpattr.sobol_indices(posterior, given)
    inputs = read(posterior, given).inputs
    subsets = found.effects.subsets
    plug_in, expected, _ = moments_of_effects(posterior.posterior, inputs, subsets, 20)
    assert (np.abs(found.effects.plug_in - plug_in) <= found.effects.error + 1e-9).all()
    assert (np.abs(found.effects.expected - expected) <= found.effects.error + 1e-9).all()
    assert found.first[list(found.feature_names).index("kind")] > 0.05


def test_groups_are_players():
    found = gpattr.sobol_indices(named(), Uniform(0, 1), groups={"rest": ["age", "rooms"]})
    assert found.feature_names == ("size", "rest")
    alone = gpattr.sobol_indices(named(), Uniform(0, 1))
    np.testing.assert_allclose(found.plug_in_first[0], alone.plug_in_first[0], atol=1e-6)
    np.testing.assert_allclose(found.plug_in_total[1], 1 - alone.plug_in_first[0], atol=1e-6)


def test_one_feature_has_all_of_the_variance():
    X = RNG.uniform(size=(10, 1))
    posterior = ExactPosterior(kernels.Matern52(0.5), X, np.sin(5 * X[:, 0]), noise=0.01)
    found = gpattr.sobol_indices(posterior, Uniform(0, 1), feature_names=["dose"])
    assert found.feature_names == ("dose",)
    np.testing.assert_allclose([found.first, found.total], 1.0, rtol=1e-12)


def test_pairs_on_request():
    assert (0, 1) not in subsets_of(4)
    assert {(0, 1), (2, 3)} <= set(subsets_of(4, pairs_of(tuple("abcd"), True)))
    found = subsets_of(4, pairs_of(tuple("abcd"), [("d", "a")]))
    assert (0, 3) in found
    assert (0, 1) not in found
    X = RNG.uniform(size=(12, 4))
    posterior = ExactPosterior(kernels.SquaredExponential(0.7), X, X[:, 0] * X[:, 1], noise=0.01)
    with pytest.raises(InvalidInputError, match="pairs=True"):
        _ = gpattr.sobol_indices(posterior).pairs
    values = gpattr.sobol_indices(posterior, pairs=[(0, 1)]).pairs.values
    assert values[0, 1] == values[1, 0] > 0
    assert np.isnan(values[2, 3])


def test_a_constant_column_has_index_zero():
    rows = RNG.uniform(size=(8, 3))
    rows[:, 1] = 0.5
    for posterior in (named(), WEIGHTS_OF_THREE):
        found = gpattr.sobol_indices(posterior, rows, pairs=True)
        assert found.first[1] == found.total[1] == 0.0
        assert (found.first_draws[:, 1] == 0.0).all()
        assert (found.total_draws[:, 1] == 0.0).all()
        assert found.pairs.values[0, 1] == 0.0
        assert found.first[0] > 0
        expected = moments_of_effects(
            posterior, read(posterior, rows).inputs, found.effects.subsets, 8
        )
        assert (np.abs(found.effects.plug_in - expected[0]) <= found.effects.error + 1e-12).all()


def test_one_output_is_chosen_by_name():
    one, two = named(), named(15)
    both = MultiOutputPosterior({"price": one, "rent": two})
    with pytest.raises(SeveralOutputsError, match=r"output: .*price.*rent"):
        gpattr.sobol_indices(both)
    found = gpattr.sobol_indices(both, output="rent")
    assert found.quantity == "predicted rent"
    np.testing.assert_allclose(found.plug_in_first, gpattr.sobol_indices(two).plug_in_first)
    with pytest.raises(InvalidIndexError, match=r"output: expected one of .*got 'cost'"):
        gpattr.sobol_indices(both, output="cost")
    with pytest.raises(InvalidIndexError, match="output: the model has one output"):
        gpattr.sobol_indices(one, output="price")


def test_classifiers_have_indices_of_the_log_odds():
    X = RNG.normal(size=(40, 2))
    model = gpattr.GPClassifier(kernels.SquaredExponential([1.0, 3.0]), optimize=False)
    model.fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    found = gpattr.sobol_indices(model, Normal(0, 1))
    assert found.quantity.startswith("log odds of")
    assert found.first[0] > 0.5


def test_models_of_other_libraries():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    X = pd.DataFrame(RNG.uniform(size=(25, 3)), columns=NAMES)
    kernel = RBF([1.0, 1.0, 1.0]) + WhiteKernel(1e-3)
    model = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True)
    model.fit(X, np.sin(3 * X["size"]) + X["age"])
    found = gpattr.sobol_indices(model)
    assert found.feature_names == tuple(NAMES)
    assert found.first[:2].sum() > 0.9


WEIGHTS_OF_THREE = WeightSpacePosterior(
    gpattr.bases.Monomials(np.array([[1, 0, 1], [0, 1, 1], [1, 0, 0]])),
    weights=[1.0, 2.0, 1.0],
    covariance=0.01 * np.eye(3),
)
WEIGHTS = WeightSpacePosterior(
    gpattr.bases.Monomials(np.eye(2)), weights=[1.0, 2.0], covariance=0.01 * np.eye(2)
)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (None, "inputs: this model does not keep its training rows"),
        ({0: Uniform(0, 1)}, "for the feature 'x1'"),
    ],
)
def test_models_without_rows_need_distributions(inputs, message):
    with pytest.raises(InvalidInputError, match=message):
        gpattr.sobol_indices(WEIGHTS, inputs)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Uniform(1, 1), "high: expected a number larger than low = 1.0, got 1.0"),
        (lambda: Uniform(2, 1), "high: expected a number larger"),
        (lambda: Uniform(0, np.inf), "high: expected a finite number"),
        (lambda: Uniform(np.nan, 1), "low: expected a finite number"),
        (lambda: Uniform(-1e308, 1e308), "high: expected a finite distance"),
        (lambda: Uniform("a", 1), "low: expected"),
        (lambda: Normal(0, 0), "std: expected numbers larger than 0, got 0.0"),
        (lambda: Normal(0, -1), "std: expected numbers larger than 0"),
        (lambda: Normal(np.inf, 1), "mean: expected a finite number"),
        (lambda: Normal([0, 1], [1, 2, 3]), "std: expected as many entries"),
    ],
)
def test_distributions_that_do_not_exist_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (Uniform([0.0, 0.0], 1.0), r"low: expected one number or 3 \(one per feature\), got 2"),
        ({"colour": [1.0]}, r"inputs: .*expected one of \['size', 'age', 'rooms'\], got 'colour'"),
        ({7: [1.0]}, "inputs: .*7"),
        ({"age": [1.0], 1: [2.0]}, "inputs: expected each feature once, got 'age' twice"),
        ({"age": []}, r"inputs\['age'\]: expected at least one value"),
        ({"age": [1.0, np.nan]}, r"inputs\['age'\]: expected finite numbers, got nan"),
        ({"age": ["old"]}, r"inputs\['age'\]: expected (real )?numbers"),
        ({"age": 3.0}, r"inputs\['age'\]: expected gpattr.Uniform.*got 3.0"),
        ({"age": Uniform([0.0, 1.0], 2.0)}, r"inputs\['age'\]: low"),
        (np.ones((1, 3)), "inputs: expected at least two rows, got one"),
        (np.ones((4, 2)), "inputs: expected 3 columns, got 2"),
        (np.full((4, 3), np.inf), "inputs: expected finite numbers"),
        ("training", "inputs: expected rows, gpattr.Uniform"),
        (2.0, "inputs: expected rows, gpattr.Uniform"),
        (Empirical([1.0, 2.0]), "inputs: expected rows, gpattr.Uniform"),
        (np.ones((4, 3)), "inputs: expected at least one feature that varies"),
    ],
)
def test_bad_inputs_are_refused_by_name(inputs, message):
    with pytest.raises(InvalidInputError, match=message):
        gpattr.sobol_indices(named(), inputs)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (Uniform(0, 1), r"inputs: .*'kind', which has categories"),
        ({"sold": Normal(0, 1)}, r"inputs\['sold'\]: .*'sold', which has dates"),
        ({"kind": ["castle"]}, r"inputs\['kind'\]: expected one of .*got 'castle'"),
        ({"sold": ["someday"]}, r"inputs\['sold'\]: expected dates"),
    ],
)
def test_categories_and_dates_have_no_distribution_of_numbers(inputs, message):
    with pytest.raises(InvalidInputError, match=message):
        gpattr.sobol_indices(encoded(), inputs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": {"g": []}}, "groups: expected a list of at least one feature for 'g'"),
        ({"groups": {"g": ["age"], "h": ["age"]}}, "groups: 'age' is in 'g' and in 'h'"),
        ({"groups": {"g": ["colour"]}}, "groups: .*'colour'"),
        ({"groups": [["age"]]}, "groups: expected a dictionary"),
        ({"pairs": [("age", "age")]}, "pairs: expected pairs of two different features"),
        ({"pairs": [("age", "colour")]}, "colour"),
        ({"n_draws": 5}, "n_draws: expected an integer of 100 or more, got 5"),
        ({"random_state": "x"}, "random_state: expected"),
        ({"feature_names": ["a", "b", "c"]}, "feature_names: the model was trained on"),
        ({"target_name": " "}, "target_name: expected a name"),
    ],
)
def test_bad_options_are_refused_by_name(options, message):
    with pytest.raises(InvalidInputError, match=message):
        gpattr.sobol_indices(named(), Uniform(0, 1), **options)


def test_a_function_that_does_not_vary_is_refused():
    """A model far from its data, whose function is its prior mean and known to be so."""
    X = RNG.uniform(size=(5, 1))
    kernel = kernels.SquaredExponential(1.0, variance=1e-30)
    posterior = ExactPosterior(kernel, X, np.full(5, 7.0), noise=1.0, mean=Constant(7.0))
    with pytest.raises(InvalidInputError, match="cannot be split among the features"):
        gpattr.sobol_indices(posterior, Uniform(0, 1))
