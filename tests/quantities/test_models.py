"""Quantities of models of other libraries, with scalers, categories and several outputs."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.models import MixedSingleTaskGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from sklearn.compose import make_column_transformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import gpattr
from gpattr import Explainer, MultiOutputExplanation
from gpattr import quantities as q
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import SquaredExponential

RNG = np.random.default_rng(4)
X = np.column_stack([RNG.uniform(size=(20, 2)), RNG.integers(0, 3, 20)])
Y = np.sin(3 * X[:, 0]) + X[:, 1] * (X[:, 2] == 1)
BOTH = ("integrated_gradients", "shapley")


def complete(ex):
    size = np.abs([ex.predictions, ex.base_values]).max()
    assert np.abs(ex.delta).max() <= 1e-10 * size
    assert (ex.error <= 1e-8 * size).all()


@pytest.mark.parametrize("attribution", BOTH)
def test_scikit_learn_predicts_the_same_standard_deviation(attribution):
    kernel = 2.0 * Matern([0.5, 0.7, 1.5], nu=2.5)
    model = GaussianProcessRegressor(kernel, alpha=0.05, optimizer=None, normalize_y=True)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, 5.0 + 3.0 * Y)
    ex = Explainer(pipeline, quantity=q.StandardDeviation(), attribution=attribution)(X[:4])
    np.testing.assert_allclose(
        ex.predictions, pipeline.predict(X[:4], return_std=True)[1], rtol=1e-9
    )
    complete(ex)


@pytest.mark.parametrize("attribution", BOTH)
def test_botorch_in_its_own_units(attribution):
    model = SingleTaskGP(
        torch.tensor(X),
        10 * torch.tensor(Y)[:, None],
        input_transform=Normalize(3),
        outcome_transform=Standardize(1),
    ).eval()
    ex = Explainer(model, quantity=q.UpperConfidenceBound(2.0), attribution=attribution)(X[:4])
    with torch.no_grad():
        found = model.posterior(torch.tensor(X[:4]))
    expected = found.mean[:, 0] + 2.0 * found.variance[:, 0].sqrt()
    np.testing.assert_allclose(ex.predictions, expected.numpy(), rtol=1e-8)
    complete(ex)


@pytest.mark.parametrize("attribution", BOTH)
def test_categories_of_botorch(attribution):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BoTorch's advice on the scale of its training data
        model = MixedSingleTaskGP(torch.tensor(X), torch.tensor(Y)[:, None], cat_dims=[2])
    for quantity in (q.StandardDeviation(), q.ExpectedImprovement(1.0)):
        ex = Explainer(model, X[0], quantity=quantity, attribution=attribution)(X[1:4])
        complete(ex)
        assert ex.shape == (3, 3)


@pytest.mark.parametrize("attribution", BOTH)
def test_categories_of_a_frame(attribution):
    frame = pd.DataFrame({"area": RNG.normal(90, 25, 40), "kind": RNG.choice(["a", "b", "c"], 40)})
    price = 3.0 * frame["area"] + frame["kind"].map({"a": 0, "b": 60, "c": 30})
    columns = make_column_transformer((StandardScaler(), ["area"]), (OneHotEncoder(), ["kind"]))
    regressor = GaussianProcessRegressor(RBF([1.0] * 4), alpha=0.1, optimizer=None)
    model = make_pipeline(columns, regressor).fit(frame, price)
    ex = Explainer(
        model,
        frame.iloc[[0]],
        quantity=q.UpperConfidenceBound(1.0),
        attribution=attribution,
        target_name="price",
    )(frame[1:5])
    complete(ex)
    assert ex.feature_names == ("area", "kind")
    assert ex.quantity == "upper confidence bound (κ = 1) of the predicted price"
    assert ex.parts["explore"].shape == (4, 2)


@pytest.mark.parametrize("attribution", BOTH)
def test_several_outputs(attribution):
    model = gpattr.MultiOutputGPRegressor(kernel=SquaredExponential([0.5, 0.7, 1.0]))
    model.set_params(optimize=False).fit(X, np.column_stack([Y, X[:, 0] * X[:, 1]]))
    ex = Explainer(model, quantity=q.StandardDeviation(), attribution=attribution)(X[:3])
    assert isinstance(ex, MultiOutputExplanation)
    for part in ex.outputs.values():
        complete(part)


@pytest.mark.parametrize(
    "estimator",
    [
        gpattr.SparseGPRegressor(n_inducing=10),
        gpattr.RandomFeatureGPRegressor(n_frequencies=30),
        gpattr.HilbertGPRegressor(),
        gpattr.BayesianLinearRegressor(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_estimator(estimator):
    model = estimator.fit(X[:, :2], Y)
    for quantity in (
        q.StandardDeviation(),
        q.UpperConfidenceBound(2.0),
        q.ExpectedImprovement(1.0),
    ):
        for attribution in BOTH:
            complete(Explainer(model, quantity=quantity, attribution=attribution)(X[:3, :2]))


def test_tensors():
    data = torch.tensor(X), torch.tensor(Y)
    posterior = gpattr.posteriors.ExactPosterior(SquaredExponential(0.6), *data, noise=0.1)
    same = gpattr.posteriors.ExactPosterior(SquaredExponential(0.6), X, Y, noise=0.1)
    for attribution in BOTH:
        options = {"quantity": q.ExpectedImprovement(1.0), "attribution": attribution}
        there, here = (Explainer(each, X[0], **options)(X[:3]) for each in (posterior, same))
        np.testing.assert_allclose(there.values, here.values, rtol=1e-9, atol=1e-13)


def test_what_concerns_the_function_is_refused():
    explainer = Explainer(
        gpattr.posteriors.ExactPosterior(SquaredExponential(0.6), X, Y, noise=0.1),
        quantity=q.StandardDeviation(),
    )
    for ask in (
        lambda: explainer.joint(X[:2]),
        lambda: explainer.importance(X[:2]),
        lambda: explainer.interactions(X[:2]),
        lambda: explainer.dependence("x0"),
        lambda: explainer.training_contributions(X[0], 0),
    ):
        with pytest.raises(UnsupportedModelError, match="quantity: .* standard deviation"):
            ask()


def test_bad_input():
    model = gpattr.posteriors.ExactPosterior(SquaredExponential(0.6), X, Y, noise=0.1)
    for bad in (float("nan"), float("inf"), "1", None, [1.0]):
        for kind in (q.ExpectedImprovement, q.LogExpectedImprovement, q.ProbabilityOfImprovement):
            with pytest.raises(InvalidInputError, match="best: "):
                kind(bad)
    for bad in (-1.0, float("nan"), "2", 1e308):
        with pytest.raises(InvalidInputError, match="kappa: "):
            q.UpperConfidenceBound(bad)
    with pytest.raises(InvalidInputError, match="maximize: "):
        q.ExpectedImprovement(1.0, maximize="yes")  # pyright: ignore
    with pytest.raises(InvalidInputError, match="quantity: expected one of gpattr.quantities"):
        Explainer(model, quantity="std")  # pyright: ignore
    with pytest.raises(InvalidInputError, match="quantity: expected one of gpattr.quantities"):
        Explainer(model, quantity=q.StandardDeviation)  # pyright: ignore
    with pytest.raises(InvalidInputError, match="method: "):
        Explainer(model, quantity=q.Variance(), method="exact")
    with pytest.raises(InvalidInputError, match="attribution: "):
        Explainer(model, quantity=q.Variance(), attribution=gpattr.operators.Gradient())
    with pytest.raises(UnsupportedModelError, match="Marginals"):
        Explainer(model, gpattr.Marginals(X), quantity=q.Variance(), attribution="shapley")(X[:1])
    wide = gpattr.posteriors.ExactPosterior(
        SquaredExponential(5.0), RNG.normal(size=(9, 13)), RNG.normal(size=9), noise=0.1
    )
    with pytest.raises(UnsupportedModelError, match="at most 12 players, and there are 13"):
        Explainer(wide, quantity=q.Variance(), attribution="shapley")(np.ones((1, 13)))
    far = Explainer(model, quantity=q.StandardDeviation())
    with pytest.raises(gpattr.exceptions.ToleranceError, match="length-scales long"):
        far(1e5 * X[:1])
