"""What a model predicts is computed from its own forward: the library's numbers, with all that a
user wrote.
"""

import copy
import warnings

import gpytorch
import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import LinearKernel, MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    UnwhitenedVariationalStrategy,
    VariationalStrategy,
)
from tests.reference.gpytorch_settings import exact_settings

import gpattr
from gpattr.adapters.pytorch.gpytorch_models import copy_of
from gpattr.adapters.pytorch.predictions import (
    DoubleByDefault,
    exact_moments,
    factor,
    variational_moments,
)
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError, UnsupportedModelError

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.BotorchWarning")
ROWS = np.random.default_rng(0).normal(size=(25, 3))
X, Y = torch.tensor(ROWS), torch.tensor(np.sin(ROWS[:, 0]) + ROWS[:, 1] ** 2)
NEW = torch.tensor(np.random.default_rng(1).normal(size=(7, 3)))


class Exact(gpytorch.models.ExactGP):
    def __init__(self, kernel, inputs=X, targets=Y):
        super().__init__(inputs, targets, GaussianLikelihood())
        self.mean_module, self.covar_module = ConstantMean(), kernel
        self.double()

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class OwnKernel(RBFKernel):
    """With a call of its own."""

    def __call__(self, x1, x2=None, **options):
        return super().__call__(2.0 * x1, x2 if x2 is None else 2.0 * x2, **options)


class Standardising(Exact):
    """Whose forward depends on all the rows it is given."""

    def forward(self, x):
        return super().forward((x - x.mean(dim=0)) / x.std(dim=0))


class Creating(Exact):
    """Which creates tensors of the default dtype on the way."""

    def forward(self, x):
        turn = torch.eye(3) + torch.full((3, 3), 0.1) + torch.tensor(0.3)
        return super().forward(x @ turn)


OUTSIDE = ScaleKernel(RBFKernel(active_dims=[2, 0]))
OUTSIDE.double()


class Closure(Exact):
    """With kernels that are none of its modules, alone and inside of an operator."""

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x) + 2.0 * OUTSIDE(x))


MODELS = {
    "plain": lambda: Exact(ScaleKernel(RBFKernel(ard_num_dims=3))),
    "products": lambda: Exact(
        ScaleKernel(RBFKernel(active_dims=[1]) * LinearKernel())
        + PeriodicKernel() * MaternKernel(nu=1.5)
    ),
    "own call": lambda: Exact(OwnKernel() + LinearKernel()),
    "all rows": lambda: Standardising(RBFKernel()),
    "created tensors": lambda: Creating(RBFKernel()),
    "closure": lambda: Closure(RBFKernel()),
}


@pytest.mark.parametrize("name", MODELS)
def test_exact_models_predict_as_the_library(name):
    model = MODELS[name]()
    with exact_settings(), torch.no_grad():
        theirs = copy.deepcopy(model).eval()(NEW)
        expected = theirs.mean.numpy(), theirs.variance.numpy()
    mean, variance = exact_moments(copy_of(model), NEW)
    np.testing.assert_allclose(mean, expected[0], atol=1e-8)
    np.testing.assert_allclose(variance, expected[1], atol=1e-8)


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, strategy):
        super().__init__(strategy(self, X[:8].clone(), CholeskyVariationalDistribution(8)))
        self.mean_module, self.covar_module = ConstantMean(), ScaleKernel(RBFKernel())

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def trained(strategy):
    torch.manual_seed(0)
    model = Sparse(strategy).double()
    model(X)
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, dtype=torch.double)
    return model


@pytest.mark.parametrize("strategy", [VariationalStrategy, UnwhitenedVariationalStrategy])
def test_variational_models_predict_as_the_library(strategy):
    model = trained(strategy)
    with exact_settings(), torch.no_grad():
        theirs = model.eval()(NEW)
        expected = theirs.mean.numpy(), theirs.variance.numpy()
    mean, variance = variational_moments(copy_of(model), NEW)
    noise = model.variational_strategy.jitter_val if strategy is VariationalStrategy else 0.0
    np.testing.assert_allclose(mean, expected[0], atol=1e-10)
    np.testing.assert_allclose(variance, expected[1] - noise, atol=1e-10)


def test_more_rows_than_the_library_solves_exactly():
    """Nothing is approximated, neither by conjugate gradients nor in products of kernels."""
    rows = np.random.default_rng(2).uniform(-2, 2, size=(900, 3))
    kernel = (RBFKernel() + LinearKernel()) * (RBFKernel(active_dims=[0]) + MaternKernel(nu=2.5))
    model = Exact(kernel, torch.tensor(rows), torch.tensor(np.sin(rows[:, 0])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gpattr.as_posterior(model).n_features == 3


class Calls(Exact):
    def __call__(self, *args, **options):
        return super().__call__(*args, **options)


class Posterior(SingleTaskGP):
    def posterior(self, X, **options):
        return super().posterior(X, **options)


class Pair(Exact):
    def forward(self, x):
        return gpytorch.distributions.MultitaskMultivariateNormal.from_batch_mvn(
            MultivariateNormal(torch.zeros(2, len(x)), torch.eye(len(x)).expand(2, -1, -1))
        )


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: Calls(RBFKernel()), "model: this Calls has its own __call__"),
        (lambda: Posterior(X, Y[:, None]), "model: this Posterior has its own posterior"),
        (
            lambda: Pair(RBFKernel()),
            "model: expected a forward that returns a MultivariateNormal, got a Multitask",
        ),
    ],
)
def test_what_predicts_in_its_own_way_is_not_compared(model, words):
    with pytest.raises(UnsupportedModelError, match=words):
        gpattr.as_posterior(model())
    assert gpattr.as_posterior(model(), check=False).n_features == 3


def test_strategies_of_other_kinds():
    class VariationalStrategy(gpytorch.variational.VariationalStrategy):
        pass

    with pytest.raises(
        UnsupportedModelError,
        match="variational_strategy: .*_predictions.VariationalStrategy is not",
    ):
        gpattr.as_posterior(trained(VariationalStrategy))
    model = trained(gpytorch.variational.VariationalStrategy)
    model.variational_strategy.updated_strategy.fill_(False)
    with pytest.raises(InvalidInputError, match="model: expected a whitened q"):
        gpattr.as_posterior(model)


def test_jitter_is_added_where_it_is_needed():
    singular = torch.ones(2, 3, 3, dtype=torch.double)
    singular[0] = torch.eye(3)
    L = factor(singular)
    np.testing.assert_array_equal(L[0], np.eye(3))
    np.testing.assert_allclose(L[1] @ L[1].T, np.ones((3, 3)) + 1e-8 * np.eye(3), atol=1e-12)
    with pytest.raises(
        NotPositiveDefiniteError, match="model: the covariance of its training targets"
    ):
        factor(-singular)


def test_tensors_without_a_dtype_are_double():
    with DoubleByDefault():
        for made in (
            torch.zeros(2),
            torch.tensor([0.1]),
            torch.full((2,), 0.5),
            torch.as_tensor(0.1),
            torch.arange(0.5, 2.0),
        ):
            assert made.dtype == torch.float64
        assert torch.tensor([0.1]).item() == 0.1
        for made, dtype in (
            (torch.tensor([1]), torch.int64),
            (torch.arange(3), torch.int64),
            (torch.zeros(2, dtype=torch.float32), torch.float32),
            (torch.as_tensor(np.zeros(2, dtype=np.float32)), torch.float32),
        ):
            assert made.dtype == dtype
    assert torch.zeros(2).dtype == torch.get_default_dtype() == torch.float32


def test_kernels_of_the_user_stay_what_they_are():
    model = Exact(ScaleKernel(RBFKernel()))
    kinds = [type(module) for module in model.modules()]
    gpattr.as_posterior(model)
    assert [type(module) for module in model.modules()] == kinds
