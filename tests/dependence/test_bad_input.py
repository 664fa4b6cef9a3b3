"""Partial dependence of what has none: each mistake is refused by the argument that made it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.dependence.test_result import ENCODER, EXPLAINER, FRAME

import gpattr
from gpattr import Baselines, Explainer
from gpattr.exceptions import GpattrError, InvalidInputError, TooLargeError, UnsupportedModelError
from gpattr.kernels import Matern12, SquaredExponential, Warped
from gpattr.operators import PartialDependence
from gpattr.posteriors import ExactPosterior, MultiOutputPosterior, WeightSpacePosterior

RNG = np.random.default_rng(1)
NAMES = ["acid", "sugar", "salt"]
X = RNG.normal(size=(15, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
DATA = pd.DataFrame(X, columns=NAMES)
POSTERIOR = ExactPosterior(SquaredExponential([1.0, 1.5, 2.0]), DATA, Y, noise=0.1)
MODEL = Explainer(POSTERIOR)
HOLE = DATA.copy()
HOLE.iloc[2, 1] = np.nan


def texts():
    return DATA.assign(salt="much")


REFUSED = {
    "an unknown feature": ({"feature": "fat"}, "feature.*fat"),
    "a feature by position": ({"feature": 7}, "feature.*7"),
    "no feature": ({"feature": ()}, "feature: expected one feature or two, got 0"),
    "three features": (
        {"feature": ("acid", "sugar", "salt")},
        "feature: expected one feature or two, got 3",
    ),
    "a pair with itself": (
        {"feature": ("acid", "acid")},
        "feature: expected two different features, got 'acid' twice",
    ),
    "a pair with itself by position": (
        {"feature": ("acid", 0)},
        "feature: expected two different features, got 'acid' twice",
    ),
    "a fraction as a feature": ({"feature": 0.5}, "feature"),
    "none as a feature": ({"feature": None}, "feature"),
    "an unknown kind": ({"kind": "both"}, "kind: expected .*average.*individual.*'both'"),
    "a kind that is no text": ({"kind": 3}, "kind"),
    "individual surfaces": (
        {"feature": ("acid", "sugar"), "kind": "individual"},
        "kind: individual curves are of one feature",
    ),
    "an unsorted grid": ({"grid": [1.0, 0.0]}, "grid: expected increasing values of 'acid'"),
    "a grid with repetitions": ({"grid": [1.0, 1.0]}, "grid: expected increasing values"),
    "a number that is no grid": ({"grid": 1.5}, "grid: expected values of 'acid', or how many"),
    "more values than fit": ({"grid": 10**9}, "grid: expected an integer of 1 to 100000"),
    "a background of marginals": (
        {"background": gpattr.Marginals(DATA)},
        "background: partial dependence averages over rows.* got Marginals",
    ),
    "an empty grid": ({"grid": []}, "grid: expected values of 'acid', got none"),
    "a missing value in the grid": ({"grid": [0.0, np.nan]}, "grid"),
    "an infinite grid": ({"grid": [0.0, np.inf]}, "grid"),
    "texts as a grid": ({"grid": ["low", "high"]}, "grid"),
    "one text as a grid": ({"grid": "acid"}, "grid"),
    "a table as a grid": ({"grid": [[0.0, 1.0]]}, "grid"),
    "no values at all": ({"grid": 0}, "grid"),
    "a negative number of values": ({"grid": -3}, "grid"),
    "a flag as a grid": ({"grid": True}, "grid"),
    "one grid for a pair": (
        {"feature": ("acid", "sugar"), "grid": np.array([0.0, 1.0])},
        "grid: expected a pair of grids",
    ),
    "three grids for a pair": (
        {"feature": ("acid", "sugar"), "grid": ([0.0], [1.0], [2.0])},
        "grid: expected a pair of grids",
    ),
    "an empty background": ({"background": DATA[:0]}, "background"),
    "a missing value in the background": ({"background": HOLE}, "background"),
    "texts in the background": ({"background": texts()}, "background.*salt"),
    "a background without a column": ({"background": DATA[["acid", "salt"]]}, "background.*sugar"),
    "a narrow background": ({"background": X[:, :2]}, "background"),
    "a background of one dimension": ({"background": X[0]}, "background"),
    "a background that is a word": ({"background": "mean"}, "background"),
    "narrow baselines": ({"background": Baselines(X[:, :2])}, "background"),
    "centred as a word": ({"centred": "yes"}, "centred"),
    "derivative as a number": ({"derivative": 2}, "derivative"),
    "a centred slope": (
        {"derivative": True, "centred": True},
        "centred: centring does not",
    ),
    "the slope of a surface": (
        {"feature": ("acid", "sugar"), "derivative": True},
        "derivative: expected one feature, got two",
    ),
    "an unknown uncertainty": ({"uncertainty": "some"}, "uncertainty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    options, words = REFUSED[name]
    with pytest.raises(InvalidInputError, match=words):
        MODEL.dependence(**({"feature": "acid"} | options))


ENCODED = {
    "an unknown category": ({"feature": "kind", "grid": ["u", "w"]}, "grid.*'kind'.*'w'"),
    "a category twice": ({"feature": "kind", "grid": ["u", "u"]}, "grid: expected different"),
    "no category": ({"feature": "kind", "grid": []}, "grid: expected different"),
    "a word for categories": (
        {"feature": "kind", "grid": "u v"},
        "grid: expected a list of categories",
    ),
    "numbers for dates": ({"feature": "when", "grid": [1.0, 2.0]}, "grid: expected dates"),
    "words for dates": ({"feature": "when", "grid": ["soon"]}, "grid: expected dates"),
    "a missing date": ({"feature": "when", "grid": [None, "2024-01-02"]}, "grid: expected dates"),
    "dates backwards": (
        {"feature": "when", "grid": ["2024-01-05", "2024-01-02"]},
        "grid: expected increasing dates",
    ),
    "a number of categories": ({"feature": "kind", "grid": 0}, "grid"),
    "an unknown category in the background": (
        {"feature": "a", "background": FRAME[:3].assign(kind="w")},
        "background: expected one of .* in column 'kind', got 'w'",
    ),
    "an array in place of a frame": (
        {"feature": "a", "background": np.zeros((3, 3))},
        "background: expected a frame",
    ),
}


@pytest.mark.parametrize("name", ENCODED)
def test_what_is_refused_of_categories_and_dates(name):
    options, words = ENCODED[name]
    with pytest.raises(InvalidInputError, match=words):
        EXPLAINER.dependence(**options)


@pytest.mark.parametrize("feature", ["kind", "when"])
def test_categories_and_dates_have_no_slope(feature):
    with pytest.raises(UnsupportedModelError, match=f"derivative: .*'{feature}' .* no slope"):
        EXPLAINER.dependence(feature, derivative=True)


def test_kernels_without_derivatives_have_no_slope():
    explainer = Explainer(ExactPosterior(Matern12(1.0), X, Y, noise=0.1))
    with pytest.raises(UnsupportedModelError, match="Matern12"):
        explainer.dependence(0, derivative=True)
    assert np.isfinite(explainer.dependence(0).values).all()


def test_models_that_forget_their_rows():
    basis = gpattr.bases.Monomials.up_to(1, 2, constant=True)
    explainer = Explainer(WeightSpacePosterior(basis, np.ones(3), np.eye(3)), np.zeros(2))
    with pytest.raises(InvalidInputError, match="background: this model does not keep"):
        explainer.dependence(0)
    found = explainer.dependence(0, [0.0, 2.0], np.array([[5.0, 1.0], [7.0, 3.0]]))
    np.testing.assert_allclose(found.values, [3.0, 5.0], rtol=1e-14)  # 1 + x₀ + x₁
    assert found.outside.tolist() == [True, True]


def test_several_outputs_are_asked_one_by_one():
    several = MultiOutputPosterior.coregionalised(
        SquaredExponential(), X, np.column_stack([Y, X[:, 0]]), covariance=np.eye(2), noise=0.1
    )
    with pytest.raises(GpattrError, match="output"):
        Explainer(several).dependence(0)
    one = next(iter(several.outputs))
    assert np.isfinite(Explainer(several)[one].dependence(0).std).all()


def test_probabilities_have_no_curve_here():
    model = gpattr.GPClassifier(SquaredExponential(), optimize=False).fit(X, (Y > 0).astype(int))
    with pytest.raises(GpattrError, match="dependence"):
        Explainer(model, output="probability").dependence(0)
    assert np.isfinite(Explainer(model).dependence(0).std).all()


def test_covariances_that_would_take_hours_are_refused_before():
    kernel = Warped(
        SquaredExponential(),
        np.tanh,
        lambda X: (1.0 - np.tanh(X) ** 2)[..., None] * np.eye(X.shape[-1]),
    )
    explainer = Explainer(ExactPosterior(kernel, X, Y, noise=0.1))
    rows = RNG.normal(size=(4000, 3))
    with pytest.raises(TooLargeError, match='background: 4000 rows with 50 values.*"none"'):
        explainer.dependence(0, background=rows)
    curve = explainer.dependence(0, 5, rows[:200], uncertainty="none")
    assert np.isfinite(curve.values).all()


def test_joint_covariances_that_do_not_fit():
    with gpattr.memory_budget(result=1e6), pytest.raises(TooLargeError, match="grid: the cov"):
        MODEL.dependence("acid", 500)
    with gpattr.memory_budget(result=1e6):
        assert MODEL.dependence("acid", 500, uncertainty="std").std.shape == (500,)


OPERATOR = {
    "a feature twice": (([0, 0], [[1.0, 1.0]], X), {}, "features: expected different ones"),
    "a feature beyond": (([3], [[1.0]], X), {}, "features: expected positions below 3"),
    "a wide grid": (([0], [[1.0, 2.0]], X), {}, "grid"),
    "no width": (([0], [[1.0]]), {}, "n_features"),
    "a wide centre": (([0], [[1.0]], X), {"centre": X}, "centre"),
    "a direction": (([0], [[1.0]], X), {"derivative": [1.0, 2.0]}, "derivative"),
    "two slopes": (([0, 1], [[1.0, 1.0]], X), {"derivative": True}, "derivative: expected one"),
}


@pytest.mark.parametrize("name", OPERATOR)
def test_operators_that_make_no_sense(name):
    arguments, options, words = OPERATOR[name]
    with pytest.raises(InvalidInputError, match=words):
        PartialDependence(*arguments, **options)


def test_rows_of_another_width():
    with pytest.raises(InvalidInputError, match="X: expected 2 columns, got 3"):
        POSTERIOR.apply(PartialDependence([0], [[1.0]], X[:, :2]), X[:1])


# What is unusual and allowed.


def test_a_grid_outside_the_data_is_marked():
    low, high = X[:, 0].min(), X[:, 0].max()
    found = MODEL.dependence("acid", [low - 1.0, low, 0.0, high, high + 0.1])
    assert found.outside.tolist() == [True, False, False, False, True]
    assert found.to_frame()["outside"].tolist() == found.outside.tolist()
    assert repr(found).count("(outside the data)") == 2
    wider = DATA.assign(acid=DATA["acid"] * 3.0)  # rows that are given are data too
    assert not MODEL.dependence("acid", [low - 0.1, high + 0.1], wider).outside.any()
    both = MODEL.dependence(("acid", "salt"), ([low - 1.0, 0.0], [0.0, 99.0]))
    assert [marks.tolist() for marks in both.outside] == [[True, False], [False, True]]
    assert both.to_frame()["outside"].tolist() == [True, True, False, True]
    kinds = EXPLAINER.dependence("kind", background=FRAME[FRAME["kind"] == "u"])
    assert not kinds.outside.any()  # the model has seen both
    dates = EXPLAINER.dependence("when", ["2023-12-01", "2024-01-05", "2024-02-01"])
    assert dates.outside.tolist() == [True, False, True]


def test_the_ends_of_the_data_are_inside_behind_a_scaler():
    """Scaled and back they are not the same floats."""
    rows = RNG.normal(size=(30, 3)) * [1.0, 1e3, 1e-3] + [0.1, 1e5, 7.0]
    gp = GaussianProcessRegressor(sk.RBF(1.0), alpha=0.1, optimizer=None)
    model = make_pipeline(StandardScaler(), gp).fit(rows, RNG.normal(size=30))
    for j in range(3):
        assert not Explainer(model).dependence(j, np.sort(rows[:, j])).outside.any()
    few = np.array([0.1, 0.2, 0.7])[RNG.integers(3, size=(30, 3))]
    found = Explainer(model.fit(few, rows[:, 0])).dependence(1, background=few)
    np.testing.assert_allclose(found.grid, [0.1, 0.2, 0.7], rtol=1e-12)


def test_a_constant_feature():
    """Its default grid is its one value; others are extrapolation."""
    flat = DATA.assign(salt=2.5)
    explainer = Explainer(ExactPosterior(SquaredExponential(1.0), flat, Y, noise=0.1))
    found = explainer.dependence("salt")
    assert found.grid.tolist() == [2.5]
    assert found.outside.tolist() == [False]
    expected = explainer.dependence("acid", background=flat)
    mean = POSTERIOR.__class__(SquaredExponential(1.0), flat, Y, noise=0.1).predict(flat).mean()
    assert found.values[0] == pytest.approx(mean, rel=1e-12)
    assert expected.values.shape == (50,)
    centred = explainer.dependence("salt", [1.0, 2.5], centred=True)
    assert centred.values[1] == 0.0
    assert centred.std[1] == 0.0
    assert centred.outside.tolist() == [True, False]


def test_a_background_of_one_row():
    """It is an individual curve: the model along a line."""
    row = DATA.iloc[[4]]
    one = MODEL.dependence("acid", [-1.0, 0.0, 1.0], row)
    each = MODEL.dependence("acid", [-1.0, 0.0, 1.0], row, kind="individual")
    points = np.repeat(row.to_numpy(), 3, axis=0)
    points[:, 0] = [-1.0, 0.0, 1.0]
    mean, cov = POSTERIOR.predict(points, return_cov=True)
    for values, spread in ((one.values, one.cov), (each.values[0], each.cov[0])):
        np.testing.assert_allclose(values, mean, rtol=0, atol=1e-13)
        np.testing.assert_allclose(spread, cov, rtol=0, atol=1e-13)
    assert "average over 1 row" in repr(one)


def test_a_grid_of_one_value():
    for options in ({}, {"centred": True}, {"kind": "individual"}, {"derivative": True}):
        found = MODEL.dependence("acid", [0.5], **options)
        assert found.values.shape[-1] == 1
        assert np.isfinite(found.std).all()
    assert MODEL.dependence("acid", [0.5]).prob_increasing() in (0.0, 0.5, 1.0)
    assert MODEL.dependence("acid", 1).values.shape == (1,)


def test_numpy_names_and_lists_are_features_too():
    same = MODEL.dependence("sugar", 5)
    for feature in (1, np.int64(1), np.str_("sugar"), ["sugar"], ("sugar",)):
        assert MODEL.dependence(feature, 5) == same
    pair = MODEL.dependence(("sugar", 0), 3)
    assert MODEL.dependence(np.array(["sugar", "acid"]), 3) == pair


def test_encoders_are_what_names_come_from():
    assert EXPLAINER.dependence(0, 3).features == (ENCODER.names[0],)
