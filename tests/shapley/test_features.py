"""Features as players in whole explanations: categories, several outputs, files, importance."""

import warnings
from math import erf

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.models import MixedSingleTaskGP
from sklearn.compose import make_column_transformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.reference.coalitions import joint_of, truth

import gpattr
from gpattr import (
    Baselines,
    Explainer,
    Explanation,
    InteractionExplanation,
    Marginals,
    MultiOutputExplanation,
)
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import SquaredExponential

RNG = np.random.default_rng(4)
X = np.column_stack([RNG.uniform(size=(20, 2)), RNG.integers(0, 3, 20)])
Y = np.sin(3 * X[:, 0]) + X[:, 1] * (X[:, 2] == 1)
ROWS, START = X[1:4], X[0]
BACKGROUNDS = {"point": START, "rows": Baselines(X[4:7]), "marginals": Marginals(X[4:7])}
SHAPLEY = {"attribution": "shapley"}


@pytest.fixture(scope="module")
def mixed():
    """A model of BoTorch with two numbers and a category of three codes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BoTorch's advice on the scale of its training data
        return MixedSingleTaskGP(torch.tensor(X), torch.tensor(Y)[:, None], cat_dims=[2])


@pytest.fixture(scope="module")
def several():
    model = gpattr.MultiOutputGPRegressor(kernel=SquaredExponential([0.5, 0.7, 1.0]))
    return model.set_params(optimize=False).fit(X, np.column_stack([Y, X[:, 0] * X[:, 1]]))


def of_botorch(model):
    """The joint distribution of the library's own posterior."""

    def joint(points):
        with torch.no_grad():
            found = model.posterior(torch.tensor(points))
            return found.mean.numpy()[:, 0], found.mvn.covariance_matrix.numpy()

    return joint


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_a_category_of_botorch_is_a_player(mixed, background):
    explainer = Explainer(mixed, BACKGROUNDS[background], **SHAPLEY)
    ex = explainer(ROWS)
    known = truth(of_botorch(mixed), ROWS, BACKGROUNDS[background])
    np.testing.assert_allclose(ex.values, known.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ex.cov, known.cov, rtol=0, atol=1e-12)
    assert ex.error.max() < 1e-10
    joint = explainer.joint(ROWS)
    np.testing.assert_allclose(joint, known.joint, rtol=0, atol=1e-12)


def test_players_of_a_category_and_a_number(mixed):
    explainer = Explainer(mixed, START, players={"place": [1, 2]}, **SHAPLEY)
    ex, known = explainer(ROWS), truth(of_botorch(mixed), ROWS, START, [0, 1, 1])
    assert ex.feature_names == ("x0", "place")
    np.testing.assert_allclose(ex.values, known.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ex.cov, known.cov, rtol=0, atol=1e-12)
    grouped = Explainer(mixed, START, **SHAPLEY)(ROWS).group({"place": [1, 2]})
    assert np.abs(grouped.values - ex.values).max() > 1e-4  # sums of values are something else


def test_each_of_several_outputs(several, tmp_path):
    explainer = Explainer(several, Marginals(X[4:7]), **SHAPLEY)
    both = explainer(ROWS)
    assert list(both.outputs) == ["y0", "y1"]
    across = explainer.across_outputs(ROWS)
    for place, (name, ex) in enumerate(both.outputs.items()):
        assert ex.attribution == "Shapley values"
        known = truth(joint_of(several.posterior_[name]), ROWS, Marginals(X[4:7]))
        np.testing.assert_allclose(ex.values, known.mean, rtol=0, atol=1e-11)
        np.testing.assert_allclose(ex.cov, known.cov, rtol=0, atol=1e-11)
        np.testing.assert_allclose(across[:, :, place, :, place], known.cov, rtol=0, atol=1e-11)
        assert explainer[name](ROWS) == ex
        matrices = explainer[name].interactions(ROWS)
        np.testing.assert_allclose(matrices.attributions, ex.values, rtol=0, atol=1e-11)
    both.save(tmp_path / "both.json")
    assert MultiOutputExplanation.load(tmp_path / "both.json") == both
    with pytest.raises(UnsupportedModelError, match=r"single output; .*explainer\['y0'\]"):
        explainer.interactions(ROWS)


def test_files_keep_what_attributions_are(mixed, tmp_path):
    explainer = Explainer(mixed, START, **SHAPLEY)
    ex, pairs = explainer(ROWS), explainer.interactions(ROWS, uncertainty="cov")
    ex.save(tmp_path / "values.json")
    again = Explanation.load(tmp_path / "values.json")
    assert again == ex
    assert again.attribution == "Shapley values"
    pairs.save(tmp_path / "pairs.json")
    again = InteractionExplanation.load(tmp_path / "pairs.json")
    assert again == pairs
    assert again.by_pair.attribution == "Shapley interaction values"


def test_importance_is_the_mean_size_under_the_joint_distribution(mixed):
    """E|φ| of a normal value, in closed form, averaged over the rows; draws have a mean near it."""
    rows = X[X[:, 2] != START[2]][:3]
    importance = Explainer(mixed, START, **SHAPLEY).importance(rows, n_samples=4000)
    known = truth(of_botorch(mixed), rows, START)
    std = np.sqrt(np.einsum("nii->ni", known.cov))
    ratio = known.mean / std
    density = np.exp(-0.5 * ratio**2) * np.sqrt(2.0 / np.pi)
    signed = np.vectorize(erf)
    expected = (std * density + known.mean * signed(ratio / np.sqrt(2.0))).mean(axis=0)
    assert importance.attribution == "Shapley values"
    np.testing.assert_allclose(importance.values, expected, rtol=1e-9)
    spread = importance.samples.std(axis=0) / np.sqrt(4000)
    assert (np.abs(importance.samples.mean(axis=0) - expected) < 5 * spread).all()


def test_class_probabilities_are_refused():
    model = gpattr.GPClassifier(SquaredExponential(), optimize=False).fit(X, X[:, 2] > 0)
    with pytest.raises(InvalidInputError, match='output="probability" supports only'):
        Explainer(model, START, output="probability", **SHAPLEY)
    ex = Explainer(model, START, **SHAPLEY)(ROWS)
    known = truth(joint_of(model.posterior_), ROWS, START)
    np.testing.assert_allclose(ex.values, known.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ex.cov, known.cov, rtol=0, atol=1e-11)


def pipeline():
    """A model of scikit-learn with a scaled number and a one-hot category."""
    frame = pd.DataFrame({"area": RNG.normal(90, 25, 40), "kind": RNG.choice(["a", "b", "c"], 40)})
    price = 3.0 * frame["area"] + frame["kind"].map({"a": 0, "b": 60, "c": 30})
    columns = make_column_transformer((StandardScaler(), ["area"]), (OneHotEncoder(), ["kind"]))
    regressor = GaussianProcessRegressor(RBF([1.0] * 4), alpha=0.1, optimizer=None)
    return make_pipeline(columns, regressor).fit(frame, price), frame


@pytest.mark.parametrize("attribution", ["shapley", "integrated_gradients"])
def test_a_background_of_categories(attribution):
    """A frame with texts is encoded as rows are, and averaged over."""
    model, frame = pipeline()
    rows, background, weights = frame[:3], frame[5:8], [0.2, 0.5, 0.3]
    together = Explainer(model, Baselines(background, weights), attribution=attribution)(rows)
    apart = [
        Explainer(model, background.iloc[[i]], attribution=attribution)(rows).values
        for i in range(3)
    ]
    average = sum(w * part for w, part in zip(weights, apart, strict=True))
    np.testing.assert_allclose(together.values, average, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        together.values.sum(axis=1), together.predictions - together.base_values, atol=1e-8
    )
    assert together.feature_names == ("area", "kind")


def test_marginals_of_categories():
    """Every combination of an area and a category, which stays whole."""
    model, frame = pipeline()
    rows, drawn = frame[:2], frame[5:8]
    ex = Explainer(model, Marginals(drawn), **SHAPLEY)(rows)
    parts = [
        Explainer(model, pd.DataFrame({"area": [area], "kind": [kind]}), **SHAPLEY)(rows).values
        for area in drawn["area"]
        for kind in drawn["kind"]
    ]
    np.testing.assert_allclose(ex.values, np.mean(parts, axis=0), rtol=0, atol=1e-9)
    with pytest.raises(InvalidInputError, match="kind"):
        Explainer(model, Baselines(drawn.assign(kind="unknown")), **SHAPLEY)
    with pytest.raises(InvalidInputError, match="rows: expected at least one row"):
        Marginals(drawn[:0])
    plain = gpattr.GPRegressor(optimize=False).fit(frame[["area"]], np.arange(40.0))
    with pytest.raises(InvalidInputError, match="expected numeric columns, got column 'kind'"):
        Explainer(plain, Baselines(drawn), **SHAPLEY)


def test_the_mean_has_one_category():
    """Coalitions mix rows that could be; a mean of categories could not."""
    model, frame = pipeline()
    ex = Explainer(model, "mean", **SHAPLEY)(frame[:2])
    assert "with the most frequent categories" in ex.baseline_name
    usual = pd.DataFrame({"area": [frame["area"].mean()], "kind": [frame["kind"].mode()[0]]})
    given = Explainer(model, usual, **SHAPLEY)(frame[:2])
    np.testing.assert_allclose(ex.values, given.values, rtol=0, atol=1e-9)
