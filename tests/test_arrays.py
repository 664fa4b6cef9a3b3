"""PyTorch tensors on the CPU give NumPy's numbers, and stay tensors."""

import numpy as np
import pytest
import torch

from gpattr import Baselines, Explainer, GPRegressor, memory_budget
from gpattr._core import array as _array
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError
from gpattr.kernels import (
    Constant,
    Cosine,
    FullAdditive,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Rescaled,
    Select,
    SquaredExponential,
    Warped,
    White,
    separable,
)
from gpattr.means import Function
from gpattr.means import Linear as LinearMean
from gpattr.operators import Gradient, IntegratedGradients
from gpattr.posteriors import ExactPosterior, FunctionSpacePosterior

RNG = np.random.default_rng(0)
Z, Y = RNG.normal(size=(40, 3)), RNG.normal(size=40)
X = RNG.normal(size=(9, 3)) * np.array([0, 1e-8, 1e-3, 0.1, 0.5, 1, 2, 10, 100])[:, None]
KERNEL = (
    0.5 * SquaredExponential([1.0, 2.0, 0.5])
    + Select(SquaredExponential(2.0), [0, 2])
    + Constant(1.0)
)
MEANS = {
    "none": None,
    "linear": LinearMean([1.0, 2.0, 3.0], 4.0),
    "function": Function(lambda X: (X**2).sum(axis=1), lambda X: 2 * X),
}
BASELINES = {
    "point": np.zeros(3),
    "per row": X / 3 + 0.1,
    "weighted": Baselines(Z[:3], [0.5, 0.3, 0.2]),
}


def both(mean=None, kernel=KERNEL):
    here = ExactPosterior(kernel, Z, Y, noise=0.1, mean=mean)
    there = ExactPosterior(
        kernel,
        torch.tensor(Z),
        torch.tensor(Y),
        noise=torch.tensor(0.1, dtype=torch.float64),
        mean=mean,
    )
    return here, there


def assert_same(one, two, scale=1.0):
    assert isinstance(two, torch.Tensor)
    assert two.dtype == torch.float64
    assert np.abs(one - two.numpy()).max() <= 1e-12 * scale


@pytest.mark.slow
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("method", ["auto", "quadrature"])
def test_attributions(mean, baseline, method):
    here, there = both(MEANS[mean])
    op = IntegratedGradients(BASELINES[baseline])
    rows = X[:-1] if method == "quadrature" else X
    if baseline == "per row":
        op = op.rows(slice(len(rows)))
    one, two = (
        here.apply(op, rows, method=method),
        there.apply(op, torch.tensor(rows), method=method),
    )
    scale = max(1.0, float(np.abs(one.mean).max()))
    assert_same(one.mean, two.mean, scale)
    assert_same(one.var, two.var)
    assert_same(one.cov, two.cov)
    assert_same(one.error, two.error, scale)
    assert one.method == two.method
    assert_same(
        here.joint(op, rows, method=method), there.joint(op, torch.tensor(rows), method=method)
    )
    assert_same(
        here.contributions(op, rows, method=method),
        there.contributions(op, torch.tensor(rows), method=method),
    )
    means_only = there.apply(op, torch.tensor(rows), uncertainty="none", method=method)
    assert_same(one.mean, means_only.mean, scale)


def test_predictions_and_gradients():
    here, there = both(MEANS["linear"])
    for options in ({}, {"return_std": True}, {"return_cov": True}):
        one, two = here.predict(X[:6], **options), there.predict(torch.tensor(X[:6]), **options)
        for a, b in zip(
            *((part if isinstance(part, tuple) else (part,)) for part in (one, two)), strict=True
        ):
            assert_same(a, b, 10.0)
    assert_same(
        here.apply(Gradient(), X[:6]).cov, there.apply(Gradient(), torch.tensor(X[:6])).cov, 10.0
    )
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, rel=1e-13)


def test_the_general_state():
    here, there = both()
    R, w = 0.1 * RNG.normal(size=(40, 5)), RNG.uniform(0.5, 1, size=40)
    states = [
        FunctionSpacePosterior(
            KERNEL, p.inputs, p.alpha, p.factor, root=convert(R), column_scale=convert(w)
        )
        for p, convert in ((here, np.array), (there, torch.tensor))
    ]
    op = IntegratedGradients(np.zeros(3))
    assert_same(states[0].joint(op, X), states[1].joint(op, torch.tensor(X)))


def test_explanations_are_numpy():
    here, there = both(MEANS["linear"])
    for baseline in ("mean", "median", "zeros", Baselines(Z[:3]), torch.zeros(3)):
        plain = baseline.numpy() if isinstance(baseline, torch.Tensor) else baseline
        one, two = Explainer(here, plain)(X[:6]), Explainer(there, baseline)(torch.tensor(X[:6]))
        assert all(isinstance(getattr(two, name), np.ndarray) for name in two.dimensions())
        np.testing.assert_allclose(two.values, one.values, atol=1e-12)
        np.testing.assert_allclose(two.cov, one.cov, atol=1e-12)
    explainers = Explainer(here), Explainer(there)
    np.testing.assert_allclose(*(e.importance(X[:6]).values for e in explainers), atol=1e-12)
    np.testing.assert_allclose(*(e.training_contributions(X[5], 1) for e in explainers), atol=1e-12)
    # Rows may come from either library, in any precision.
    np.testing.assert_allclose(
        Explainer(there)(X[:6]).values, Explainer(here)(torch.tensor(X[:6])).values, atol=1e-12
    )
    assert Explainer(there)(torch.tensor(X[:6]).float()).values.dtype == np.float64


def test_training_on_tensors():
    one, two = (
        GPRegressor().fit(Z, Y + Z[:, 0]),
        GPRegressor().fit(torch.tensor(Z), torch.tensor(Y + Z[:, 0])),
    )
    assert two.log_marginal_likelihood_ == pytest.approx(one.log_marginal_likelihood_, abs=1e-3)
    assert isinstance(two.predict(torch.tensor(X[:5])), torch.Tensor)
    assert isinstance(two.relevance_, np.ndarray)
    np.testing.assert_allclose(
        Explainer(two)(X[:5]).values, Explainer(one)(X[:5]).values, atol=1e-2
    )


def test_scarce_memory_changes_nothing():
    _, there = both()
    op = IntegratedGradients(np.zeros(3))
    plenty = there.apply(op, torch.tensor(X))
    with memory_budget(working=1):
        assert_same(plenty.cov.numpy(), there.apply(op, torch.tensor(X)).cov)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            torch.full((1, 3), float("nan")),
            "X: expected finite numbers, got nan in row 0, column 0",
        ),
        (torch.zeros(3), "X: expected rows"),
        (torch.zeros(2, 2), "X: expected 3 columns, got 2"),
        (
            torch.zeros(2, 3, dtype=torch.complex64),
            "X: expected real numbers, got a tensor of type torch.complex64",
        ),
        (torch.zeros(2, 3, device="meta"), "X: expected"),
    ],
)
def test_bad_tensors(X, message):
    _, there = both()
    if X.device.type == "meta":
        with pytest.raises(
            InvalidInputError,
            match="x: expected a tensor on the model's device cpu, got one on meta",
        ):
            _array_beside(X, there.inputs)
        with pytest.raises(
            InvalidInputError,
            match="x: expected an array on the host, as the model's, got a tensor on meta",
        ):
            _array_beside(X, Z)
        return
    with pytest.raises(InvalidInputError, match=message):
        there.predict(X)


def _array_beside(x, like):
    from gpattr._core.validation import beside

    return beside("x", x, like)


def test_bad_training_tensors():
    with pytest.raises(NotPositiveDefiniteError, match="rows 0 and 1 of X are equal"):
        ExactPosterior(SquaredExponential(), torch.zeros(2, 3), torch.zeros(2), noise=0.0)
    with pytest.raises(InvalidInputError, match="noise: expected variances, 0 or larger, got -1.0"):
        ExactPosterior(
            SquaredExponential(), torch.zeros(2, 3), torch.zeros(2), noise=torch.tensor([-1.0, 1.0])
        )


def test_users_tensors_are_left_alone():
    inputs, targets = torch.tensor(Z), torch.tensor(Y)
    posterior = ExactPosterior(KERNEL, inputs, targets, noise=0.1)
    before = posterior.predict(torch.tensor(X[:5])).clone()
    inputs += 1.0
    targets += 1.0
    torch.testing.assert_close(posterior.predict(torch.tensor(X[:5])), before, rtol=0, atol=0)


torch.manual_seed(0)
OTHERS = [
    Matern32([1.0, 2.0, 0.5]),
    Matern52(1.5),
    RationalQuadratic(1.0, alpha=0.5),
    Periodic(1.0, 3.0),
    Cosine(3.0),
    Linear() * Polynomial(degree=2),
    SquaredExponential(1.5) * Select(SquaredExponential(), [1]),
    Matern32(1.0) * Linear() + separable(Matern52, [1.0, 2.0, 0.5]),
    FullAdditive([SquaredExponential(), Matern52(), Linear()], [1.0, 0.5, 0.2]),
    Warped(Matern52(), torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())),
    Rescaled(Matern52(), lambda x: torch.exp(-(x**2).sum(1) / 10)),
]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", OTHERS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("baseline", ["point", "weighted"])
def test_other_kernels(kernel, baseline):
    here, there = both(kernel=kernel + White(0.05))
    op, rows = IntegratedGradients(BASELINES[baseline]), X[[0, 1, 3, 5, 6]]
    one, two = here.apply(op, rows), there.apply(op, torch.tensor(rows))
    scale = max(1.0, float(np.abs(one.mean).max()), float(here.kernel.diagonal(rows).max()))
    assert_same(one.mean, two.mean, 10 * scale)
    assert_same(one.cov, two.cov, 10 * scale)
    assert_same(here.joint(op, rows[2:4]), there.joint(op, torch.tensor(rows[2:4])), 10 * scale)


def test_array_helpers_agree():
    A = RNG.normal(size=(6, 6))
    A = A @ A.T + np.eye(6)
    B = RNG.normal(size=(6, 4))
    T = torch.tensor
    L = _array.cholesky(A.copy())
    np.testing.assert_allclose(L @ L.T, A, rtol=1e-12)
    np.testing.assert_allclose(
        _array.solve_lower_rows(L, B.T.copy()), np.linalg.solve(L, B).T, rtol=1e-10
    )
    np.testing.assert_allclose(_array.product(A, B), A @ B, rtol=1e-12)
    upper = np.triu(A)
    np.testing.assert_allclose(_array.symmetric_product(upper, B), A @ B, rtol=1e-12)
    np.testing.assert_allclose(_array.symmetric_product(T(upper), T(B)), A @ B, rtol=1e-12)
    for got in (
        _array.symmetric_exponential(B / 9, B.T),
        _array.symmetric_exponential(T(B / 9), T(B).mT).numpy(),
    ):
        np.testing.assert_allclose(np.triu(got), np.triu(np.exp(B @ B.T / 9)), rtol=1e-12)
    inverse = np.linalg.inv(A)
    for got in (_array.cholesky_inverse(L.copy(order="F")), _array.cholesky_inverse(T(L)).numpy()):
        np.testing.assert_allclose(np.triu(got), np.triu(inverse), rtol=1e-9)
