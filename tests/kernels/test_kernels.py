from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from gpattr.adapters.kernels import rescaled
from gpattr.estimators import hyperparameters
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Kernel,
    Matern52,
    Scale,
    Select,
    SquaredExponential,
    Sum,
    White,
)
from gpattr.kernels.white import fold_white, has_white

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))


def by_definition(x, z, lengthscale, variance):
    return variance * np.exp(
        -0.5 * sum(((a - b) / s) ** 2 for a, b, s in zip(x, z, lengthscale, strict=True))
    )


@pytest.mark.parametrize("lengthscale", [1.3, [0.5, 1.0, 2.0]])
def test_squared_exponential_is_its_definition(lengthscale):
    kernel = SquaredExponential(lengthscale=lengthscale, variance=2.0)
    scales = np.broadcast_to(lengthscale, 3)
    expected = [[by_definition(x, z, scales, 2.0) for z in Z] for x in X]
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-14)
    np.testing.assert_array_equal(kernel.diagonal(X), np.diagonal(kernel(X, X)))


def test_distances_survive_an_offset():
    near, far = (
        SquaredExponential(lengthscale=1e-3)(X, Z),
        SquaredExponential(lengthscale=1e-3)(X, Z + 0.0),
    )
    np.testing.assert_array_equal(near, far)
    grid = np.round(X * 2**20) / 2**20
    kernel = SquaredExponential(lengthscale=0.7)
    np.testing.assert_array_equal(kernel(grid + 2.0**20, grid + 2.0**20), kernel(grid, grid))


def test_algebra_on_nested_expressions():
    a, b = (
        SquaredExponential(lengthscale=0.7),
        SquaredExponential(lengthscale=[1.0, 2.0], variance=3.0),
    )
    nested = 2.0 * (a + Select(b, [2, 0])) * 0.25 + (1.5 + a) * Constant(variance=4.0)
    expected = 0.5 * (a(X, Z) + b(X[:, [2, 0]], Z[:, [2, 0]])) + 4.0 * (1.5 + a(X, Z))
    np.testing.assert_allclose(nested(X, Z), expected, rtol=1e-15)
    np.testing.assert_allclose(nested.diagonal(X), np.diagonal(nested(X, X)), rtol=1e-15)
    assert isinstance(nested, Sum)
    assert np.float64(2.0) * a == Scale(a, variance=2.0) == a * 2
    assert Constant(variance=2.0) * a == Scale(a, variance=2.0)
    assert len((a + b + a).kernels) == 3


def test_span_counts_lengthscales():
    step = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 12.0]])
    kernel = SquaredExponential(lengthscale=[1.0, 1.0, 2.0])
    np.testing.assert_allclose(kernel.n_lengthscales(step), [5.0, 6.0])
    assert (Constant() + 3.0 * Select(kernel, [0, 1, 2])).n_lengthscales(step).tolist() == [
        5.0,
        6.0,
    ]


def test_kernels_are_frozen_values():
    scales = np.array([1.0, 2.0])
    kernel = SquaredExponential(lengthscale=scales)
    scales[0] = 9.0
    assert kernel.lengthscale[0] == 1.0
    with pytest.raises(AttributeError):
        kernel.variance = 3.0
    with pytest.raises(ValueError, match="read-only"):
        kernel.lengthscale[0] = 3.0
    assert kernel == SquaredExponential(lengthscale=[1.0, 2.0])
    assert hash(kernel) == hash(SquaredExponential(lengthscale=[1.0, 2.0]))
    assert kernel != SquaredExponential(lengthscale=[1.0, 2.5])
    assert kernel != Constant()
    assert hash(kernel + 1) == hash(kernel + 1)
    assert (
        repr(Constant(variance=2.0) + Constant())
        == "Constant(variance=2.0) + Constant(variance=1.0)"
    )


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, [1.0, 0.0], [[1.0]], [], "one", None, 1j])
def test_bad_hyperparameters(bad):
    with pytest.raises(InvalidInputError, match="^lengthscale: expected .* got"):
        SquaredExponential(lengthscale=bad)
    with pytest.raises(InvalidInputError, match="^variance: expected .* got"):
        Constant(variance=bad)


def test_labelled_hyperparameters_are_refused():
    """Nothing could put their labels into the order of the features."""
    with pytest.raises(
        InvalidInputError,
        match=r"lengthscale: expected plain numbers .* got a labelled Series; .*to_numpy",
    ):
        SquaredExponential(lengthscale=pd.Series([1.0, 2.0], index=["b", "a"]))


def test_bad_combinations():
    kernel = SquaredExponential()
    with pytest.raises(
        InvalidInputError, match="variance: expected finite numbers larger than 0, got -2"
    ):
        kernel * -2.0
    with pytest.raises(
        InvalidInputError, match=r"variance: expected one number, got an array of shape \(2,\)"
    ):
        Scale(kernel, variance=[1.0, 2.0])
    for wrong in (lambda: kernel + "a", lambda: kernel * "a"):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(InvalidInputError, match="kernels: expected a gpattr kernel, got str"):
        Sum(kernel, "a")
    with pytest.raises(InvalidInputError, match="at least one"):
        Sum()
    with pytest.raises(InvalidInputError, match="kernel: expected a gpattr kernel, got float"):
        Scale(1.0)


@pytest.mark.parametrize("features", [[0, 0], [-1], [], ["a"], [0.5], 3])
def test_bad_selection(features):
    with pytest.raises(InvalidInputError, match="^features: expected"):
        Select(SquaredExponential(), features)


def test_features_are_counted():
    with pytest.raises(InvalidInputError, match="lengthscale: expected one number or 3 .* got 2"):
        (Constant() + SquaredExponential(lengthscale=[1.0, 2.0])).check_features(3)
    with pytest.raises(InvalidInputError, match="column 3 is selected, but the inputs have 3"):
        Scale(Select(SquaredExponential(), [3])).check_features(3)
    with pytest.raises(InvalidInputError, match="lengthscale: expected one number or 1"):
        Select(SquaredExponential(lengthscale=[1.0, 2.0]), [3]).check_features(4)


@dataclass(frozen=True, eq=False)
class Mixed(Kernel):
    """A composite of the user's own: w k₁ + k₂ + k₃, its parts in a field and in a tuple."""

    main: Kernel
    others: tuple[Kernel, ...]
    weight: float = 2.0

    pointwise = True

    def __call__(self, X, Z):
        return self.weight * self.main(X, Z) + sum(part(X, Z) for part in self.others)

    def diagonal(self, X):
        return self.weight * self.main.diagonal(X) + sum(part.diagonal(X) for part in self.others)

    def n_lengthscales(self, step):
        return self.main.n_lengthscales(step)

    def check_features(self, d):
        for part in self.parts().values():
            part.check_features(d)


MIXED = Mixed(Matern52([1.0, 2.0]), (Select(2.0 * SquaredExponential(3.0), [1]), Constant(0.5)))


def test_the_tree_of_a_composite():
    assert list(MIXED.parts()) == ["main", "0", "1"]
    assert [prefix for prefix, _ in MIXED.walk()] == [
        "",
        "main__",
        "0__",
        "0__kernel__",
        "0__kernel__kernel__",
        "1__",
    ]
    assert [type(leaf) for leaf in MIXED.leaves()] == [Matern52, SquaredExponential, Constant]
    assert list(MIXED.main.leaves()) == [MIXED.main]
    assert MIXED.main.map_parts(lambda part: Constant()) is MIXED.main
    doubled = MIXED.map_parts(lambda part: 2.0 * part)
    assert doubled == Mixed(2.0 * MIXED.main, tuple(2.0 * part for part in MIXED.others))
    changed = MIXED.with_params(**{"0__kernel__kernel__lengthscale": 4.0, "weight": 1.0})
    assert changed == Mixed(
        MIXED.main, (Select(2.0 * SquaredExponential(4.0), [1]), Constant(0.5)), 1.0
    )
    nested = Constant() + MIXED.main * Constant()
    assert nested.map_parts(lambda part: part + 1.0) == Sum(
        Constant(), Constant(), MIXED.main * Constant(), Constant()
    )


def test_a_composite_of_the_users_own_goes_through_every_walk():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(5, 2)), rng.normal(size=(4, 2))
    a = np.array([2.0, 0.5])
    np.testing.assert_allclose(
        rescaled(3.0 * MIXED, a, 2)(X, Z), 3.0 * MIXED(a * X, a * Z), rtol=1e-14
    )
    assert not has_white(MIXED)
    assert has_white(Mixed(White(), (Constant(),)))
    with pytest.raises(UnsupportedModelError, match="White inside Mixed"):
        fold_white(Mixed(White(), (Constant(),)) + Constant(), X)
    with pytest.raises(UnsupportedModelError, match="Mixed cannot be trained"):
        hyperparameters.likelihood_gradient(MIXED, X, np.eye(5))
    untrained = Mixed(Select(Blank(), [0]), (Blank(),))
    assert hyperparameters.likelihood_gradient(untrained, X, np.eye(5)) == {}
    assert list(hyperparameters.trainable(MIXED)) == [
        "main__lengthscale",
        "main__variance",
        "0__kernel__variance",
        "0__kernel__kernel__lengthscale",
        "0__kernel__kernel__variance",
        "1__variance",
    ]


class Blank(Constant):
    """A leaf with nothing to train."""

    trainable = ()


def test_a_composite_of_the_users_own_is_trained():
    def gradient(kernel, X, G):
        seen = [(X, kernel.weight * G), *((X, G) for _ in kernel.others)]
        return hyperparameters.gradient_of_parts(kernel, seen)

    rng = np.random.default_rng(1)
    X, G = rng.normal(size=(5, 2)), rng.normal(size=(5, 5))
    G = G + G.T
    same = Sum(2.0 * MIXED.main, *MIXED.others)
    hyperparameters.register_gradient(Mixed, gradient)
    try:
        found = hyperparameters.likelihood_gradient(MIXED, X, G)
    finally:
        hyperparameters.GRADIENTS.pop(Mixed)
    expected = hyperparameters.likelihood_gradient(same, X, G)
    expected.pop("0__variance")  # the weight, which Mixed does not train
    for one, two in zip(found.values(), expected.values(), strict=True):
        np.testing.assert_array_equal(one, two)
