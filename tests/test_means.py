import numpy as np
import pytest

from gpattr import closed_forms
from gpattr.exceptions import InvalidInputError
from gpattr.means import Constant, Function, Linear, Zero
from gpattr.operators import Baselines, Gradient, IntegratedGradients

RNG = np.random.default_rng(2)
X, B = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))

CUBIC = Function(
    lambda X: X[:, 0] ** 2 * X[:, 1] + np.sin(3 * X[:, 2]),
    lambda X: np.stack([2 * X[:, 0] * X[:, 1], X[:, 0] ** 2, 3 * np.cos(3 * X[:, 2])], axis=1),
)


@pytest.mark.parametrize("mean", [Zero(), Constant(2.0), Linear([1.0, -2.0, 0.5], 3.0), CUBIC])
def test_gradient_is_the_derivative(mean):
    steps = 1e-6 * np.eye(3)
    differences = np.stack([(mean(X + step) - mean(X - step)) / 2e-6 for step in steps], axis=1)
    np.testing.assert_allclose(mean.gradient(X), differences, atol=1e-8)
    np.testing.assert_array_equal(
        closed_forms.apply_to_mean(Gradient(), mean, X)[0], mean.gradient(X)
    )


def test_linear_mean_is_attributed_exactly():
    values, error = closed_forms.apply_to_mean(
        IntegratedGradients(B), Linear([1.0, -2.0, 0.5], 3.0), X
    )
    np.testing.assert_array_equal(values, np.array([1.0, -2.0, 0.5]) * (X - B))
    assert np.all(error < 1e-14)
    assert not closed_forms.apply_to_mean(IntegratedGradients(B), Constant(4.0), X)[0].any()


def test_any_mean_is_integrated_with_its_error():
    """Against the antiderivative: ∫ 2 x₀x₁, ∫ x₀² and a separable sine along the straight path."""
    values, error = closed_forms.apply_to_mean(IntegratedGradients(B), CUBIC, X)
    D = X - B
    first = (
        D[:, 0]
        * 2
        * (B[:, 0] * B[:, 1] + (B[:, 0] * D[:, 1] + B[:, 1] * D[:, 0]) / 2 + D[:, 0] * D[:, 1] / 3)
    )
    second = D[:, 1] * (B[:, 0] ** 2 + B[:, 0] * D[:, 0] + D[:, 0] ** 2 / 3)
    third = np.sin(3 * X[:, 2]) - np.sin(3 * B[:, 2])
    wrong = np.abs(values - np.stack([first, second, third], axis=1)).max(axis=1)
    assert np.all(wrong <= error)
    assert np.all(error < 1e-12)


def test_weighted_baselines_average():
    points = B[:2]
    values, _ = closed_forms.apply_to_mean(
        IntegratedGradients(Baselines(points, [0.25, 0.75])), CUBIC, X
    )
    single = [closed_forms.apply_to_mean(IntegratedGradients(b), CUBIC, X)[0] for b in points]
    np.testing.assert_allclose(values, 0.25 * single[0] + 0.75 * single[1], rtol=1e-13)


def test_bad_means():
    with pytest.raises(InvalidInputError, match="value: expected one finite number, got nan"):
        Constant(np.nan)
    with pytest.raises(
        InvalidInputError, match=r"intercept: expected one finite number, got \(2,\)"
    ):
        Linear([1.0], [1.0, 2.0])
    with pytest.raises(InvalidInputError, match="coefficients: expected 3 .* got 2"):
        Linear([1.0, 2.0]).check_features(3)
    with pytest.raises(InvalidInputError, match="derivative: expected a callable, got NoneType"):
        Function(lambda X: X, None)
    with pytest.raises(
        InvalidInputError, match=r"function: expected an array of shape \(5,\) .* got \(5, 3\)"
    ):
        Function(lambda X: X, lambda X: X)(X)
    with pytest.raises(InvalidInputError, match="derivative: expected finite numbers"):
        Function(lambda X: X[:, 0], lambda X: np.full(X.shape, np.nan)).gradient(X)


def test_functions_that_make_tensors_of_rows():
    torch = pytest.importorskip("torch")
    network = torch.nn.Linear(2, 1).double()
    mean = Function(
        lambda X: network(torch.tensor(X))[:, 0],
        lambda X: network.weight.expand(len(X), 2),
    )
    found = closed_forms.apply_to_mean(IntegratedGradients(np.zeros(2)), mean, np.ones((1, 2)))
    assert isinstance(found.value, np.ndarray)
    np.testing.assert_allclose(found.value, network.weight.detach().numpy(), rtol=1e-14)
