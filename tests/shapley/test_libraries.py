"""Models of three libraries, against their own joint predictive distribution."""

import copy

import gpytorch
import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from tests.reference import coalitions
from tests.reference.gpytorch_settings import exact_settings

import gpattr
from gpattr import Baselines
from gpattr.operators import Marginals, Shapley

# The libraries warn of their own deprecations, of data that are not scaled, and of added jitter.
IGNORED = ("botorch.exceptions.warnings.BotorchWarning", "UserWarning", "DeprecationWarning")
pytestmark = [pytest.mark.filterwarnings(f"ignore::{warning}") for warning in IGNORED]
RNG = np.random.default_rng(0)
D = 5
X = RNG.normal(size=(30, D)) * np.array([1.0, 10.0, 0.1, 2.0, 1.0])
Y = 40.0 + 5.0 * np.sin(X[:, 0]) + X[:, 1] * X[:, 3] + 20.0 * X[:, 2] * X[:, 4]
SCALE = X.std(axis=0)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, kernel):
        super().__init__(torch.tensor(X), torch.tensor(Y), GaussianLikelihood())
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), kernel

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def scikit_learn(kernel):
    model = GaussianProcessRegressor(kernel, alpha=0.05, normalize_y=True, optimizer=None)
    model.fit(X, Y)
    return model, coalitions.joint_of(model)


def gpytorch_model(kernel):
    model = Exact(kernel).double()
    for module in model.modules():
        if isinstance(module, RBFKernel | MaternKernel):
            module.lengthscale = torch.tensor(2.0 * SCALE)
    model.likelihood.noise, model.mean_module.constant = 0.1, torch.tensor(40.0)
    model.eval()
    held = copy.deepcopy(model)

    def joint(points):
        with exact_settings(), torch.no_grad():
            result = held(torch.tensor(points))
            return result.mean.numpy(), result.covariance_matrix.numpy()

    return model, joint


def botorch_model(kernel):
    model = SingleTaskGP(
        torch.tensor(X),
        torch.tensor(Y)[:, None],
        covar_module=kernel,
        input_transform=Normalize(D),
        outcome_transform=Standardize(1),
    ).eval()
    held = copy.deepcopy(model)

    def joint(points):
        with exact_settings(), torch.no_grad():
            result = held.posterior(torch.tensor(points))
            return result.mean.numpy()[:, 0], result.distribution.covariance_matrix.numpy()

    return model, joint


MODELS = {
    "scikit-learn": lambda: scikit_learn(sk.ConstantKernel(2.0) * sk.RBF(2.0 * SCALE)),
    "scikit-learn Matérn": lambda: scikit_learn(
        sk.Matern(2.0 * SCALE, nu=2.5) + sk.DotProduct(0.5)
    ),
    "scikit-learn rational quadratic": lambda: scikit_learn(sk.RationalQuadratic(3.0, 0.7)),
    "GPyTorch": lambda: gpytorch_model(ScaleKernel(RBFKernel(ard_num_dims=D))),
    "GPyTorch Matérn": lambda: gpytorch_model(
        ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=D)) + LinearKernel()
    ),
    "BoTorch": lambda: botorch_model(None),
    "BoTorch Matérn": lambda: botorch_model(ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=D))),
}
BACKGROUNDS = {
    "point": X[0],
    "set": Baselines(X[1:4], [0.5, 0.3, 0.2]),
    "marginals": Marginals(X[1:3]),
}


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("name", MODELS)
def test_models(name, background):
    """To rounding; radial kernels with marginals are mixtures, to the accuracy of these."""
    model, joint = MODELS[name]()
    rows, baseline = X[10:12], BACKGROUNDS[background]
    sums = coalitions.functional(rows, baseline)
    mean, cov = joint(sums.points)
    result = gpattr.as_posterior(model).apply(Shapley(baseline), rows)
    size, variance = np.ptp(mean), np.diagonal(cov).max()
    mixed = background == "marginals" and name.split(" ")[-1] in ("Matérn", "quadratic")
    accuracy = 1e-8 if mixed else 1e-11
    np.testing.assert_allclose(result.mean, sums.mean(mean), rtol=0, atol=accuracy * size)
    own = np.einsum("ninj->nij", sums.joint(cov))
    np.testing.assert_allclose(result.cov, own, rtol=0, atol=10 * accuracy * variance)
