"""The kernels beyond the squared exponential: definitions, composition, white noise, bad input."""

import copy
import pickle

import numpy as np
import pytest
import torch
from tests.reference import definition

from gpattr import Explainer, GPRegressor, closed_forms
from gpattr.exceptions import (
    InvalidInputError,
    NoClosedFormError,
    ToleranceError,
    UnsupportedModelError,
)
from gpattr.kernels import (
    Categorical,
    Constant,
    Cosine,
    FullAdditive,
    Function,
    Linear,
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Rescaled,
    Scale,
    Select,
    SquaredExponential,
    Sum,
    Warped,
    White,
    separable,
)
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(4, 2)), RNG.normal(size=(5, 2))
KERNELS = [
    Matern32([0.5, 2.0], 1.5),
    Matern52(0.7, 0.3),
    Matern([0.5, 2.0], 1.5, nu=1.3),
    Matern(0.7, 0.3, nu=4.0),
    RationalQuadratic([0.5, 2.0], 1.5, alpha=0.4),
    Periodic([0.5, 2.0], [1.5, 2.5], 0.7),
    Cosine([1.5, 2.5], 0.7),
    Linear([0.5, 2.0]),
    Categorical(0.8),
    Matern52() * Categorical(0.8),
    Polynomial([0.5, 2.0], degree=3, offset=0.2),
    Matern52() * Linear() * 0.5,
    separable(Matern32, [0.5, 2.0]),
    FullAdditive([Matern52(0.5), Periodic(1.0, 3.0)], [0.5, 2.0]),
    Rescaled(Matern52(), definition.bump, definition.bump_gradient),
    Warped(Matern52(), definition.bend, definition.bend_jacobian),
    Function(definition.exponential, definition.exponential_gradient, definition.exponential_mixed),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_values_are_the_definition(kernel):
    expected = [
        [float(definition.value(kernel, definition.mpf(x), definition.mpf(z))) for z in Z]
        for x in X
    ]
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(kernel(X, X)), rtol=1e-14)
    tensor = (
        kernel(torch.tensor(X), torch.tensor(Z))
        if type(kernel) not in (Rescaled, Warped, Function)
        else kernel(X, Z)
    )
    np.testing.assert_allclose(np.asarray(tensor), expected, rtol=1e-13)


def test_matern12_predicts_but_is_not_explained():
    np.testing.assert_allclose(
        Matern12(2.0, 3.0)(np.zeros((1, 1)), np.ones((1, 1))), 3.0 * np.exp(-0.5)
    )
    posterior = ExactPosterior(0.5 * Matern12(), X, X[:, 0], noise=0.1)
    assert posterior.predict(Z, return_std=True)[1].shape == (5,)
    with pytest.raises(
        UnsupportedModelError, match="the variance of their attributions does not exist"
    ):
        Explainer(posterior)(Z)
    with pytest.raises(UnsupportedModelError, match="nowhere differentiable"):
        Explainer(ExactPosterior(Matern12() * SquaredExponential(), X, X[:, 0], noise=0.1))(Z)


def test_full_additive_has_no_powerset():
    bases = [SquaredExponential(0.5 + 0.1 * i) for i in range(30)]
    kernel = FullAdditive(bases, np.ones(30))
    x, y = RNG.normal(size=(1, 30)), RNG.normal(size=(1, 30))
    z = np.array([base(x[:, [i]], y[:, [i]])[0, 0] for i, base in enumerate(bases)])
    np.testing.assert_allclose(kernel(x, y)[0, 0], np.prod(1 + z) - 1, rtol=1e-13)


def test_products_are_flattened_and_named():
    kernel = 2.0 * (Matern52() + White()) * (Linear() * (SquaredExponential() * 3.0))
    assert isinstance(kernel, Product)
    assert len((Matern52() * Linear() * SquaredExponential()).kernels) == 3
    assert (Constant(2.0) * Matern52()) == Scale(Matern52(), 2.0)
    changed = (Matern52() * Linear()).with_params(**{"0__lengthscale": 3.0, "1__variance": 2.0})
    assert changed == Matern52(3.0) * Linear(2.0)
    additive = FullAdditive([Matern52(), Matern52()], [1.0, 2.0]).with_params(
        **{"1__lengthscale": 5.0}
    )
    assert additive.bases[1].lengthscale == 5.0
    for each in (kernel, additive):
        assert copy.deepcopy(each) == each
        assert pickle.loads(pickle.dumps(each)) == each
        assert hash(pickle.loads(pickle.dumps(each))) == hash(each)
    assert repr(Matern52() * (Linear() + 1.0)).endswith(
        "* (Linear(variance=1.0) + Constant(variance=1.0))"
    )


def test_sums_and_products_do_not_commute_with_each_other():
    """(a + b)·c is not a·b·c, and not a + b·c."""
    a, b, c = SquaredExponential(0.5), Matern52(1.0), Linear(2.0)
    np.testing.assert_allclose(((a + b) * c)(X, Z), (a(X, Z) + b(X, Z)) * c(X, Z), rtol=1e-14)
    np.testing.assert_allclose((a + b * c)(X, Z), a(X, Z) + b(X, Z) * c(X, Z), rtol=1e-14)


def test_white_noise_is_folded_into_the_noise():
    y = RNG.normal(size=4)
    smooth = Matern52(0.8)
    expected = ExactPosterior(2.0 * smooth, X, y, noise=0.35)
    for kernel in (
        2.0 * (smooth + White(0.05)) + Select(White(0.1), [1]) + 0.1 * White(0.5),
        Sum(2.0 * smooth, White(0.25)),
    ):
        posterior = ExactPosterior(kernel, X, y, noise=0.1)
        np.testing.assert_allclose(posterior.noise, 0.35, rtol=1e-15)
        np.testing.assert_allclose(posterior.alpha, expected.alpha, rtol=1e-12)
        ex, other = Explainer(posterior)(Z), Explainer(expected)(Z)
        np.testing.assert_allclose(ex.values, other.values, atol=1e-13)
        np.testing.assert_allclose(ex.cov, other.cov, atol=1e-13)
    inside = ExactPosterior((smooth + White(0.5)) * (Linear() + White(0.1)), X, y, noise=0.1)
    line = (X * X).sum(axis=1)
    np.testing.assert_allclose(inside.noise, 0.1 + 0.5 * (line + 0.1) + 1.0 * 0.1, rtol=1e-14)
    assert inside.kernel == smooth * Linear()
    for kernel, error, message in [
        (White(), InvalidInputError, "kernel: White alone is noise"),
        (White() * Matern52(), InvalidInputError, "kernel: White alone is noise"),
        (
            FullAdditive([White(), Matern52()], [1.0]),
            UnsupportedModelError,
            "White inside FullAdditive is not supported",
        ),
    ]:
        with pytest.raises(error, match=message):
            ExactPosterior(kernel, X, y, noise=0.1)
    np.testing.assert_array_equal(White(2.0)(X, X), 2.0 * np.eye(4))
    np.testing.assert_array_equal(White(2.0)(X, X.copy()), np.zeros((4, 4)))


def test_white_noise_is_learned():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(80, 2))
    y = np.sin(rows[:, 0]) + 0.3 * rng.normal(size=80)
    model = GPRegressor(SquaredExponential([1.0, 1.0]) + White(0.5)).fit(rows, y)
    plain = GPRegressor(SquaredExponential([1.0, 1.0])).fit(rows, y)
    assert model.noise_variance_ == 0.0
    np.testing.assert_allclose(model.kernel_.kernels[1].variance, plain.noise_variance_, rtol=1e-2)
    np.testing.assert_allclose(
        model.log_marginal_likelihood_, plain.log_marginal_likelihood_, atol=1e-3
    )


def test_exact_refuses_by_name():
    y = RNG.normal(size=4)
    for kernel, name in [
        (Matern52(), "Matern52"),
        (Matern52() * Linear(), r"Matern52\(.*\) \* Linear"),
        (Constant() + 0.5 * Periodic(), "Periodic"),
    ]:
        with pytest.raises(
            NoClosedFormError, match=f"IntegratedGradients of {name}.* has no closed form"
        ):
            Explainer(ExactPosterior(kernel, X, y, noise=0.1), method="exact")(Z)
    for kernel in (
        SquaredExponential()
        * SquaredExponential([1.0, 2.0])
        * (Constant() + Select(SquaredExponential(), [1])),
        Linear() * Polynomial(degree=2) + Cosine(2.0),
        (Linear() + 1.0) * (Linear() + 2.0),
    ):
        ex = Explainer(ExactPosterior(kernel, X, y, noise=0.1), method="exact")(Z)
        assert ex.method == "closed form"
        assert np.abs(ex.delta).max() < 1e-11


def test_modules_are_copied_and_left_alone():
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout(0.5), torch.nn.Tanh())
    before = copy.deepcopy(net.state_dict())
    kernel = Warped(Matern52(), net)
    value = kernel(X, Z)
    assert net.training
    assert next(net.parameters()).dtype == torch.float32
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    with torch.no_grad():
        net[0].weight += 1.0
    np.testing.assert_array_equal(kernel(X, Z), value)
    np.testing.assert_allclose(kernel(torch.tensor(X), torch.tensor(Z)).numpy(), value, rtol=1e-14)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Periodic(period=0.0), "period: expected finite numbers larger than 0, got 0.0"),
        (lambda: Cosine(period=[1.0, -1.0]), "period: expected finite numbers larger than 0"),
        (lambda: Polynomial(degree=0), "degree: expected an integer of 1 or more, got 0"),
        (lambda: Polynomial(degree=2.5), "degree: expected an integer of 1 or more, got 2.5"),
        (lambda: Polynomial(degree=True), "degree: expected an integer of 1 or more, got True"),
        (lambda: RationalQuadratic(alpha=-1.0), "alpha: expected finite numbers larger than 0"),
        (
            lambda: Select(Matern52(), [0, 0]),
            r"features: expected different column positions.* got \[0, 0\]",
        ),
        (
            lambda: Matern52([1.0, 2.0, 3.0]).check_features(2),
            r"lengthscale: expected one number or 2 \(one per feature\), got 3",
        ),
        (lambda: Periodic(1.0, [1.0, 2.0]).check_features(3), "period: expected one number or 3"),
        (
            lambda: (Linear([1.0, 2.0]) * Matern52()).check_features(3),
            "variance: expected one number or 3",
        ),
        (
            lambda: Select(Matern52(), [0, 5]).check_features(3),
            "features: column 5 is selected, but the inputs have 3 columns",
        ),
        (lambda: FullAdditive([], [1.0]), "bases: expected a sequence of kernels"),
        (lambda: FullAdditive(Matern52(), [1.0]), "bases: expected a sequence of kernels"),
        (
            lambda: FullAdditive([Matern52(), "a"], [1.0]),
            "bases: expected a gpattr kernel, got str",
        ),
        (
            lambda: FullAdditive([Matern52([1.0, 2.0])], [1.0]),
            "bases: expected one-dimensional kernels, but that of feature 0",
        ),
        (
            lambda: FullAdditive([Matern52()], [1.0, 2.0]),
            r"order_variances: expected 1 to 1 \(at most one per feature\), got 2",
        ),
        (
            lambda: FullAdditive([Matern52()], [-1.0]),
            "order_variances: expected variances, 0 or larger",
        ),
        (
            lambda: FullAdditive([Matern52()], [1.0]).check_features(2),
            r"bases: expected 2 \(one per feature\), got 1",
        ),
        (lambda: Warped(Matern52(), 3), "map: expected a function, got int"),
        (lambda: Warped(Matern52(), np.sin, 3), "jacobian: expected a function or None, got int"),
        (lambda: Warped("k", np.sin, np.cos), "kernel: expected a gpattr kernel, got str"),
        (
            lambda: Warped(Matern52(), lambda x: x[0], lambda x: x)(X, Z),
            r"map: expected an array of shape \(4, D\), got",
        ),
        (
            lambda: Warped(Matern52(), lambda x: x.numpy())(X, Z),
            "map: without its derivative it must return a PyTorch tensor",
        ),
        (
            lambda: Warped(Matern52(), torch.nn.Linear(3, 2))(X, Z),
            "map: it failed on PyTorch tensors of shape .4, 2.",
        ),
        (
            lambda: Function(lambda x, y: np.exp(x.sum(-1)))(X, Z),
            "value: it failed on PyTorch|value: without its derivative",
        ),
        (
            lambda: separable(Matern52(), [1.0]),
            "kernel: expected a kernel class with a length-scale",
        ),
        (lambda: separable(Linear, [1.0]), "kernel: expected a kernel class with a length-scale"),
        (
            lambda: ExactPosterior(Warped(Matern52(np.ones(3)), abs, abs), X, X[:, 0], noise=0.1),
            "lengthscale: expected one number or 2",
        ),
        (
            lambda: ExactPosterior(Linear(), X, X[:, 0], noise=0.1).predict([[1e200, 0.0]]),
            "X: row 0 lies so far out that its prior",
        ),
        (lambda: Warped(Matern52(), lambda x: None, abs)(X, Z), "map: expected numbers, got"),
        (
            lambda: separable(Matern52, 1.0),
            "lengthscale: expected one for each feature, got one number, 1.0",
        ),
        (
            lambda: Rescaled(Matern52(), lambda x: x, lambda x: x)(X, Z),
            r"factor: expected an array of shape \(4,\) from it, got \(4, 2\)",
        ),
        (lambda: Function(3), "value: expected a function, got int"),
        (
            lambda: Function(definition.exponential, gradient=np.sin),
            "mixed: expected gradient and mixed together",
        ),
        (
            lambda: Function(np.add, np.add, np.add)(X, Z),
            r"value: expected an array of shape \(4, 5\) from it, got \(4, 5, 2\)",
        ),
        (
            lambda: separable(Matern52, [1.0, -1.0]),
            "lengthscale: expected finite numbers larger than 0",
        ),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("gradient", "gradient: expected the derivative of value"),
        ("mixed", "mixed: expected the derivative of gradient"),
    ],
)
def test_a_gradient_that_disagrees_with_the_values_is_named(which, message):
    right = {"gradient": definition.exponential_gradient, "mixed": definition.exponential_mixed}
    wrong = right | {which: lambda x, y: 1.01 * right[which](x, y)}
    ExactPosterior(Function(definition.exponential, **right), Z, Z[:, 0], noise=0.1)
    with pytest.raises(
        InvalidInputError, match=f"{message}, but by feature 0 it differs from finite differences"
    ):
        ExactPosterior(
            2.0 * (Matern52() + Function(definition.exponential, **wrong)), Z, Z[:, 0], noise=0.1
        )


def test_derivatives_of_maps_and_factors_are_checked_where_they_stand():
    rows = np.column_stack([Z, Z[:, 0]])
    one = Function(
        lambda x, y: (x * y)[..., 0],
        lambda x, y: y + 0.0 * x,
        lambda x, y: np.ones((*np.broadcast_shapes(x.shape, y.shape), 1)),
    )
    ExactPosterior(
        Select(one, [2]) + FullAdditive([one, one, one], [1.0]), rows, Z[:, 0], noise=0.1
    )  # of one feature only
    for kernel, message in [
        (
            Warped(Matern52(), definition.bend, lambda x: 1.01 * definition.bend_jacobian(x)),
            "jacobian: expected the derivative of map",
        ),
        (
            Rescaled(Matern52(), definition.bump, lambda x: 0.0 * x),
            "gradient: expected the derivative of factor",
        ),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            ExactPosterior(0.5 * kernel + Matern52(), Z, Z[:, 0], noise=0.1)


@pytest.mark.parametrize(
    "rows",
    [
        [[0.0], [5.0], [1e6], [1e6 + 7]],
        [[0.0], [0.5], [1e5], [1e5 + 0.7]],
        1e7 + np.arange(5.0)[:, None],
    ],
)
def test_right_derivatives_are_not_refused_on_odd_rows(rows):
    def value(x, y):
        return np.exp(-0.5 * ((x - y) ** 2).sum(axis=-1))

    def mixed(x, y):
        return (value(x, y) * (1 - ((x - y) ** 2).sum(axis=-1)))[..., None, None]

    kernel = Function(value, lambda x, y: value(x, y)[..., None] * (y - x), mixed)
    posterior = ExactPosterior(kernel, rows, np.arange(len(rows)), noise=0.1)
    same = ExactPosterior(SquaredExponential(), rows, np.arange(len(rows)), noise=0.1)
    np.testing.assert_allclose(posterior.predict(rows), same.predict(rows), rtol=1e-9)


def test_zero_derivatives_of_a_narrow_kernel_are_refused():
    def value(x, y):
        return np.exp(-0.5 * ((x - y) ** 2).sum(axis=-1) / 0.01**2)

    kernel = Function(
        value, lambda x, y: 0.0 * (x + y), lambda x, y: 0.0 * (x + y)[..., None] * np.ones(2)
    )
    with pytest.raises(InvalidInputError, match="gradient: expected the derivative of value"):
        ExactPosterior(kernel, Z, Z[:, 0], noise=0.1)


def test_derivatives_that_are_a_little_wrong_show_in_the_error():
    """Too little for a check by differences; completeness sees it, and so does the tolerance."""
    kernel = Rescaled(
        SquaredExponential(), definition.bump, lambda x: definition.bump_gradient(x) * (1 + 3e-5)
    )
    posterior = ExactPosterior(kernel, Z, Z[:, 0], noise=0.1)
    exact = ExactPosterior(
        Rescaled(SquaredExponential(), definition.bump, definition.bump_gradient),
        Z,
        Z[:, 0],
        noise=0.1,
    )
    ex, truth = (
        Explainer(p, [0.5, 0.5], tolerance=1e-3)(X[:1], uncertainty="none")
        for p in (posterior, exact)
    )
    assert truth.error[0] < 1e-12
    assert 1e-8 < np.abs(ex.values - truth.values).max() <= ex.error[0]
    with pytest.raises(ToleranceError, match="attributions of row 0 are accurate only to"):
        Explainer(posterior, [0.5, 0.5], tolerance=1e-9)(X[:1])


def test_operator_refusals_survive_composition():
    with pytest.raises(UnsupportedModelError, match="White is noise, which has no gradients"):
        closed_forms.cross(IntegratedGradients([0.0, 0.0]), Matern52() + White(), X, Z)
