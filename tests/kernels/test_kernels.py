import numpy as np
import pandas as pd
import pytest

from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Constant, Scale, Select, SquaredExponential, Sum

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
