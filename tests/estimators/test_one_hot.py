"""Estimators that are told which of their columns are one-hot columns of a category."""

import numpy as np
import pandas as pd
import pytest

import gpattr
from gpattr.estimators.hyperparameters import likelihood_gradient
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Categorical, Matern52, Product, Select, SquaredExponential
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(0)


def table(n=60):
    numbers = RNG.normal(size=(n, 2)) * [1.0, 100.0] + [0.0, 2000.0]
    kind, place = RNG.integers(0, 3, n), RNG.integers(0, 2, n)
    X = np.hstack([numbers, np.eye(3)[kind], np.eye(2)[place]])
    y = np.sin(X[:, 0]) + 0.01 * (X[:, 1] - 2000.0) * (kind == 1) + 0.5 * place
    return X, y + 0.1 * RNG.normal(size=n)


GROUPS = [[2, 3, 4], [5, 6]]


def test_half_way_between_labels_a_function_is_the_mean_of_both():
    X, y = table()
    model = gpattr.GPRegressor(categories=GROUPS).fit(X, y)
    row = np.array([[0.3, 2050.0, 1.0, 0.0, 0.0, 1.0, 0.0], [0.3, 2050.0, 0.0, 1.0, 0.0, 1.0, 0.0]])
    middle = row.mean(axis=0, keepdims=True)
    ends, half = model.predict(row), model.predict(middle)
    assert half[0] == pytest.approx(ends.mean(), abs=1e-9)
    # The squared exponential of columns knows less there than at either end.
    std = model.predict(np.vstack([row, middle]), return_std=True)[1]
    assert std[2] < std[:2].max()


@pytest.mark.parametrize("hyperparameters", ["optimal", "integrated"])
def test_units_do_not_matter(hyperparameters):
    X, y = table()
    scale = np.array([3.0, 1e-4, 1, 1, 1, 1, 1])
    one, two = (
        gpattr.GPRegressor(categories=GROUPS, hyperparameters=hyperparameters).fit(rows, y)
        for rows in (X, X * scale)
    )
    np.testing.assert_allclose(one.predict(X), two.predict(X * scale), rtol=0, atol=1e-5)


def test_one_hyperparameter_for_each_category():
    X, y = table()
    frame = pd.DataFrame(X, columns=["age", "dose", "k=a", "k=b", "k=c", "p=u", "p=v"])
    names = [["k=a", "k=b", "k=c"], ["p=u", "p=v"]]
    model = gpattr.GPRegressor(Matern52, categories=names, hyperparameters="optimal").fit(frame, y)
    assert isinstance(model.kernel_, Product)
    assert [type(leaf) for leaf in model.kernel_.leaves()] == [Matern52, Categorical, Categorical]
    assert list(model.hyperparameters_.columns[2:]) == [
        "0__kernel__lengthscale[age]",
        "0__kernel__lengthscale[dose]",
        "0__kernel__variance",
        "1__kernel__lengthscale",
        "2__kernel__lengthscale",
        "noise_variance",
    ]


def test_categories_only():
    X, y = table()
    rows = X[:, 2:]
    model = gpattr.GPRegressor(categories=[[0, 1, 2], [3, 4]]).fit(rows, y)
    assert model.hyperparameters_["family"].nunique() == 1
    ex = gpattr.Explainer(model)(rows[:4])
    np.testing.assert_allclose(ex.values.sum(axis=1), ex.predictions - ex.base_values, atol=1e-9)


def test_gradient_of_the_evidence():
    X, _ = table(12)
    kernel = Select(SquaredExponential([1.0, 90.0]), [0, 1]) * Select(Categorical(0.9), [2, 3, 4])
    G = RNG.normal(size=(12, 12))
    G = G + G.T
    got = likelihood_gradient(kernel, X, G)["1__kernel__lengthscale"]
    high, low = (
        kernel.with_params(**{"1__kernel__lengthscale": 0.9 * np.exp(step)})(X, X)
        for step in (1e-6, -1e-6)
    )
    assert got == pytest.approx((G * (high - low)).sum() / 2e-6, rel=1e-7)


def test_posteriors_have_the_same_kernel_as_a_polynomial():
    X, y = table(20)
    kernel = Select(SquaredExponential([1.0, 90.0]), [0, 1]) * Select(Categorical(0.9), [2, 3, 4])
    posterior = ExactPosterior(kernel, X, y, noise=0.1)
    np.testing.assert_allclose(posterior.kernel(X, X), kernel(X, X), rtol=1e-14)
    assert not any(isinstance(leaf, Categorical) for leaf in posterior.kernel.leaves())
    shapley = gpattr.Explainer(posterior, attribution="shapley")(X[:3])
    np.testing.assert_allclose(
        shapley.values.sum(axis=1), shapley.predictions - shapley.base_values, atol=1e-9
    )


@pytest.mark.parametrize("lengthscale", [1e-3, 1e6])
def test_labels_that_share_nothing_or_everything(lengthscale):
    X = np.eye(3)
    posterior = ExactPosterior(Categorical(lengthscale), X, [1.0, 2.0, 4.0], noise=0.1)
    mean, std = posterior.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert np.isfinite(gpattr.Explainer(posterior)(X).std).all()


def test_classifiers_and_sparse_models(tmp_path):
    X, y = table()
    labels = np.where(y > np.median(y), "high", "low")
    classifier = gpattr.GPClassifier(categories=GROUPS).fit(X, labels)
    assert classifier.score(X, labels) > 0.8
    sparse = gpattr.SparseGPRegressor(30, categories=GROUPS, random_state=0).fit(X, y)
    assert sparse.score(X, y) > 0.8
    for model in (classifier, sparse, gpattr.GPRegressor(categories=GROUPS).fit(X, y)):
        model.save(tmp_path / "model.json")
        again = type(model).load(tmp_path / "model.json")
        assert again.categories == GROUPS
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        ("kind", "categories: expected the one-hot columns of each category"),
        ([2, 3], "categories: expected the one-hot columns of each category"),
        ([[]], "categories: expected the one-hot columns of each category"),
        ([[2, 3.5]], "categories: expected the one-hot columns of each category"),
        ([[2, 9]], "categories: expected column positions from 0 to 6, got 9"),
        ([[2, True]], "categories: expected column positions from 0 to 6, got True"),
        ([["a", "b"]], "categories: expected columns among positions 0 to 6, got 'a'"),
        ([[2, 3, 4], [4, 5]], "categories: expected each column at most once"),
        ([[0, 1]], "categories: expected one-hot columns, of which one is 1"),
        ([[2, 3]], r"columns \[2, 3\] are \[0.0, 0.0\] in row"),
    ],
)
def test_bad_categories(categories, message):
    X, y = table()
    with pytest.raises(InvalidInputError, match=message):
        gpattr.GPRegressor(categories=categories).fit(X, y)


def test_a_kernel_of_ones_own_says_itself_what_is_a_category():
    X, y = table()
    with pytest.raises(InvalidInputError, match="categories: expected None with a kernel of your"):
        gpattr.GPRegressor(SquaredExponential(), categories=GROUPS).fit(X, y)
