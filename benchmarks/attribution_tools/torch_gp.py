"""The GP in GPyTorch, in double precision."""

from __future__ import annotations

import gpytorch
import numpy as np
import torch

from .plain_gp import PlainGP
from .problem import Problem


class TorchGP(gpytorch.models.ExactGP):
    """An exact GP with a constant mean and a scaled ARD RBF kernel."""

    def __init__(self, Z: torch.Tensor, y: torch.Tensor) -> None:
        super().__init__(Z, y, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel(ard_num_dims=Z.shape[1])
        )

    def forward(self, points: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(
            self.mean_module(points), self.covar_module(points)
        )

    def posterior_mean(self, points: torch.Tensor) -> torch.Tensor:
        """The mean by Cholesky factors, which GPyTorch leaves beyond 800 points, and without the
        variances.
        """
        with (
            gpytorch.settings.fast_computations(False, False, False),
            gpytorch.settings.skip_posterior_variances(True),
        ):
            return self(points).mean


def in_gpytorch(gp: PlainGP) -> TorchGP:
    model = TorchGP(torch.tensor(gp.Z), torch.tensor(gp.y)).double()
    values = {  # tensors of doubles: GPyTorch rounds Python's floats to single precision
        "mean_module.constant": gp.constant,
        "covar_module.outputscale": gp.variance,
        "covar_module.base_kernel.lengthscale": gp.lengthscale,
        "likelihood.noise": gp.noise,
    }
    model.initialize(
        **{name: torch.tensor(value, dtype=torch.float64) for name, value in values.items()}
    )
    return model.eval()


def disagreement(problem: Problem) -> float:
    """The largest difference between the predictions of gpattr, scikit-learn, GPyTorch and NumPy,
    which must be the same model.
    """
    gp, points = problem.gp, np.vstack([problem.X, problem.gp.Z])
    with torch.no_grad():
        in_torch = in_gpytorch(gp).posterior_mean(torch.tensor(points)).numpy()
    others = [problem.predict(points), in_torch, gp.predict(points)]
    ours = problem.posterior.predict(points)
    largest = max(float(np.abs(other - ours).max()) for other in others)
    assert largest < 1e-6, f"the models differ by {largest}"
    return largest
