"""The conformance suite: every kernel passes, and each kind of fault is found and named."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from gpattr import as_posterior, closed_forms
from gpattr.closed_forms import squared_exponential as se
from gpattr.exceptions import InvalidInputError, ToleranceError, UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Cosine,
    FullAdditive,
    Function,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Rescaled,
    Select,
    SquaredExponential,
    Warped,
    separable,
)
from gpattr.operators import IntegratedGradients
from gpattr.testing import check_adapter, check_kernel

torch.manual_seed(1)


def net(activation):
    return torch.nn.Sequential(torch.nn.Linear(3, 5), activation, torch.nn.Linear(5, 2))


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential([1.0, 0.5, 2.0]),
        Matern32([1.0, 0.5, 2.0]),
        Matern52(0.7, 2.0),
        RationalQuadratic([1.0, 0.5, 2.0], alpha=0.7),
        Periodic(1.1, [2.0, 3.0, 4.0]),
        Cosine([2.0, 3.0, 4.0]),
        Linear([1.0, 2.0, 3.0]),
        Polynomial(0.5, degree=3),
        Constant(2.0),
        SquaredExponential()
        * Select(SquaredExponential(0.5), [1])
        * (SquaredExponential([1.0, 2.0, 3.0]) + 1.0),
        SquaredExponential() * Select(SquaredExponential(0.5), [1]) * (Linear() + 1.0),
        Matern52() * Linear() + Select(Matern32() * Periodic(), [0]),
        separable(Matern32, [1.0, 2.0, 0.5]),
        FullAdditive([SquaredExponential(), Matern52(), Linear()], [1.0, 0.5, 0.2]),
        Rescaled(Matern32(), lambda x: torch.exp(-(x**2).sum(1) / 10)),
        Warped(Matern52(), net(torch.nn.Tanh())),
        Warped(SquaredExponential(), net(torch.nn.ReLU())),
        Function(lambda x, y: torch.exp(-((x - y) ** 2).sum(-1) / 2) * (1 + (x * y).sum(-1))),
    ],
    ids=lambda k: type(k).__name__,
)
def test_kernels_pass(kernel):
    check_kernel(kernel)


@dataclass(frozen=True, eq=False)
class Faulty(Kernel):
    """k(x, x') = exp(−‖x − x'‖²/2), with one fault."""

    fault: str = ""

    def __call__(self, X, Z):
        square = ((X[:, None, :] - Z) ** 2).sum(axis=2)
        if self.fault == "symmetry":
            square = square + 0.1 * (X[:, None, 0] - Z[:, 0])
        return np.exp(square / 2 if self.fault == "definite" else -square / 2)

    def diagonal(self, X):
        return np.full(len(X), 2.0 if self.fault == "diagonal" else 1.0)

    def n_lengthscales(self, step):
        return np.full(step.shape[:-1], 0.0 if self.fault == "span" else 1.0) * np.sqrt(
            (step**2).sum(axis=-1)
        )

    def check_features(self, d):
        pass


def faulty_jet(kernel, x, y, second):
    u = x - y
    k = np.exp(-(u * u).sum(axis=-1) / 2)
    left = -k[..., None] * u * (1.01 if kernel.fault == "gradient" else 1.0)
    right = k[..., None] * u * (1.01 if kernel.fault == "right" else 1.0)
    scale = 1.01 if kernel.fault == "mixed" else 1.0
    mixed = k[..., None, None] * (np.eye(u.shape[-1]) - u[..., :, None] * u[..., None, :]) * scale
    value = k * (1.01 if kernel.fault == "value" else 1.0)
    return closed_forms.Jet(value, left, right if second else None, mixed if second else None)


@pytest.fixture
def registered():
    closed_forms.register_derivatives(Faulty, faulty_jet)
    yield
    closed_forms.DERIVATIVES.pop(Faulty)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("symmetry", "symmetry"),
        ("diagonal", "diagonal"),
        ("definite", "positive definiteness"),
        ("gradient", "∂k/∂x0 against finite differences"),
        ("right", "∂k/∂x'0 against finite differences"),
        ("mixed", "∂²k/∂x∂x'0 against finite differences"),
        ("value", "value of the derivatives"),
    ],
)
def test_faults_are_named(registered, fault, message):
    check_kernel(Faulty())
    with pytest.raises(AssertionError, match=message):
        check_kernel(Faulty(fault))


def test_a_covariance_that_does_not_add_up_is_refused(registered):
    rows, op = np.array([[1.0, -0.5], [0.3, 0.2]]), IntegratedGradients(np.zeros(2))
    closed_forms.prior_cov(op, Faulty(), rows)
    for verb in (closed_forms.prior_cov, closed_forms.between):
        with pytest.raises(
            ToleranceError,
            match=(
                r"prior covariance of the attributions is accurate only to .* uncertainty=\"none\""
            ),
        ):
            verb(op, Faulty("mixed"), rows)


def test_a_wrong_closed_form_is_found(registered):
    right = SquaredExponential()
    for verb in ("cross", "prior_cov", "between"):
        formulas = {
            name: lambda k, *args, name=name, scale=1.001 if name == verb else 1.0: (
                scale * getattr(se, name)(right, *args)
            )
            for name in ("cross", "prior_cov", "between")
        }
        closed_forms.register(IntegratedGradients, Faulty, **formulas)
        try:
            with pytest.raises(AssertionError, match=f"closed form against quadrature, {verb}"):
                check_kernel(Faulty())
        finally:
            closed_forms.KERNELS.pop((IntegratedGradients, Faulty))


def test_what_cannot_be_checked():
    with pytest.raises(UnsupportedModelError, match="nowhere differentiable"):
        check_kernel(Matern12())
    with pytest.raises(InvalidInputError, match="kernel: expected a gpattr kernel, got str"):
        check_kernel("Matern52")
    with pytest.raises(InvalidInputError, match="X: expected at least 4 rows, got 2"):
        check_kernel(Matern52(), np.zeros((2, 2)))
    with pytest.raises(InvalidInputError, match="at most 100 features"):
        check_kernel(Matern52(np.ones(200)))
    check_kernel(Select(Matern52(np.ones(3)), [7, 2, 3]))


def test_adapters_of_models_with_categories():
    """Rows with labels, with codes, or as the columns that the posterior sees."""
    models = pytest.importorskip("botorch.models", reason="BoTorch is not installed")
    generator = np.random.default_rng(0)
    X = generator.uniform(size=(20, 3))
    X[:, 1] = generator.integers(3, size=20)
    y = X[:, 0] * (1.0 + X[:, 1]) + X[:, 2]
    model = models.MixedSingleTaskGP(torch.tensor(X), torch.tensor(y)[:, None], cat_dims=[1])
    check_adapter(model, X)
    posterior = as_posterior(model)
    check_adapter(model, posterior.encoder.encode("X", X))
    with pytest.raises(InvalidInputError, match=r"X: expected one of .* in column"):
        check_adapter(model, X + 0.5)
