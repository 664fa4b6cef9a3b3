"""Models on a GPU are explained there, with the numbers of the same model on the host."""

import copy

import gpytorch
import numpy as np
import pytest
import torch
from botorch.models import MixedSingleTaskGP, ModelListGP, MultiTaskGP, SingleTaskGP
from botorch.models.transforms import Normalize
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

from gpattr import Explainer

IGNORED = ("botorch.exceptions.warnings.BotorchWarning", "UserWarning", "DeprecationWarning")
pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    *(pytest.mark.filterwarnings(f"ignore::{warning}") for warning in IGNORED),
]
ROWS = np.random.default_rng(0).uniform(size=(40, 3))
X, Y = torch.tensor(ROWS), torch.tensor(np.sin(3 * ROWS[:, 0]) + ROWS[:, 1] * ROWS[:, 2])


class Exact(gpytorch.models.ExactGP):
    def __init__(self, likelihood):
        super().__init__(X, Y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=3)) + MaternKernel(nu=2.5)

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self):
        distribution = CholeskyVariationalDistribution(8)
        super().__init__(VariationalStrategy(self, X[:8].clone(), distribution))
        self.mean_module, self.covar_module = (
            gpytorch.means.ConstantMean(),
            ScaleKernel(RBFKernel()),
        )

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def called_once(model):
    model.double()
    with torch.no_grad():
        model(X[:2])
    return model


MODELS = {
    "exact": lambda: Exact(GaussianLikelihood()).double(),
    "fixed noise": lambda: Exact(
        FixedNoiseGaussianLikelihood(torch.full((40,), 0.1, dtype=torch.double))
    ).double(),
    "float32": lambda: Exact(GaussianLikelihood()).float(),
    "variational": lambda: called_once(Variational()),
    "BoTorch": lambda: SingleTaskGP(X, torch.stack([Y, Y**2], 1), input_transform=Normalize(3)),
    "known variances": lambda: SingleTaskGP(
        X, Y[:, None], train_Yvar=torch.full((40, 1), 0.1, dtype=torch.double)
    ),
    "list": lambda: ModelListGP(SingleTaskGP(X, Y[:, None]), SingleTaskGP(X, -Y[:, None])),
    "tasks": lambda: MultiTaskGP(
        torch.cat([X, torch.arange(40)[:, None] % 2], 1), Y[:, None], task_feature=3
    ),
    "mixed": lambda: MixedSingleTaskGP(
        torch.cat([X[:, :2], torch.arange(40)[:, None] % 3], 1), Y[:, None], cat_dims=[2]
    ),
}


def _inner(posterior):
    """Return a posterior that is made of data, behind wrappers and outputs."""
    parts = tuple(posterior.outputs.values()) if posterior.several_outputs else posterior.inner
    return _inner(parts[0]) if parts else posterior


@pytest.mark.parametrize("name", MODELS)
def test_the_same_on_the_host(name):
    host = MODELS[name]()
    there = copy.deepcopy(host).cuda()
    start, stop = ROWS[0].copy(), ROWS[1:4].copy()
    if name == "mixed":
        start[2], stop[:, 2] = 0.0, [1.0, 2.0, 0.0]
    expected, got = (
        Explainer(model, start)(rows)
        for model, rows in ((host, stop), (there, torch.tensor(stop).cuda()))
    )
    assert _inner(Explainer(there, start).posterior).like.device.type == "cuda"
    assert {str(parameter.device) for parameter in there.parameters()} == {"cuda:0"}
    outputs = ["y0", "y1"] if name in ("BoTorch", "list", "tasks") else [None]
    for output in outputs:
        ours, theirs = (ex if output is None else ex[output] for ex in (expected, got))
        tolerance = 1e-4 if name == "float32" else 1e-9
        np.testing.assert_allclose(theirs.values, ours.values, rtol=0, atol=tolerance)
        np.testing.assert_allclose(theirs.cov, ours.cov, rtol=0, atol=tolerance)
