"""Random models of other libraries, each with its own joint predictive distribution of f."""

from __future__ import annotations

import numpy as np
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch import kernels as gk
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean, LinearMean
from gpytorch.models import ExactGP
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler


def table(rng):
    d = int(rng.integers(1, 5))
    X = rng.normal(size=(int(rng.integers(5, 25)), d))
    return X, np.sin(X[:, 0]) + 0.3 * X.sum(axis=1) ** 2 + 0.1 * rng.normal(size=len(X))


def sklearn_kernel(rng, d, depth=2):
    scale = 10.0 ** rng.uniform(-0.2, 0.5, size=d if rng.random() < 0.5 else None)
    if depth == 0 or rng.random() < 0.3:
        return (
            sk.RBF(scale),
            sk.Matern(scale, nu=float(rng.choice([1.5, 2.5, 2.2, 3.5, np.inf]))),
            sk.RationalQuadratic(float(np.mean(scale)), float(10.0 ** rng.uniform(-0.5, 1))),
            sk.ExpSineSquared(1.0, float(rng.uniform(3.0, 8.0)))
            if d == 1
            else sk.RBF(2.0),  # it is a kernel in one feature only
            sk.DotProduct(float(rng.uniform(0.2, 1.0))),
            sk.ConstantKernel(float(rng.uniform(0.2, 2.0))),
        )[rng.integers(6)]
    one, two = sklearn_kernel(rng, d, depth - 1), sklearn_kernel(rng, d, depth - 1)
    return (one + two, one * two, 0.7 * one, one**2)[rng.integers(4)]


def in_parts(points, size=32):
    """Points of which the covariances of all pairs are too many."""
    return (points[start : start + size] for start in range(0, len(points), size))


def sklearn_model(rng):
    """A fitted model and joint(points), with scalers and columns used twice around it."""
    X, y = table(rng)
    columns = list(range(X.shape[1]))
    steps = []
    if rng.random() < 0.3:
        columns = columns + [0]
        steps.append(
            ColumnTransformer(
                [("all", "passthrough", list(range(X.shape[1]))), ("again", "passthrough", [0])]
            )
        )
    if rng.random() < 0.6:
        steps.append((StandardScaler(), MinMaxScaler((-1, 1)), RobustScaler())[rng.integers(3)])
    kernel = sklearn_kernel(rng, len(columns)) + sk.WhiteKernel(float(10.0 ** rng.uniform(-3, 0)))
    inner = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=bool(rng.random() < 0.5))
    model = make_pipeline(*steps, inner)
    scaled = rng.random() < 0.3
    if scaled:
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
    model.fit(X, y)
    fitted = model.regressor_ if scaled else model
    factor = model.transformer_.scale_[0] if scaled else 1.0
    shift = model.transformer_.mean_[0] if scaled else 0.0

    def joint(points):
        inside = fitted[:-1].transform(points) if len(fitted) > 1 else points
        gp = fitted[-1]
        mean, cov = gp.predict(inside, return_cov=True)
        white = gp.kernel_.diag(inside) - np.concatenate(
            [np.diagonal(gp.kernel_(some, some.copy())) for some in in_parts(inside)]
        )
        return factor * mean + shift, factor**2 * (cov - np.diag(white) * gp._y_train_std**2)

    return model, X, joint


def torch_kernel(rng, d, depth=1):
    ard = d if rng.random() < 0.5 else None
    if depth == 0 or rng.random() < 0.4:
        dims = None
        if d > 1 and rng.random() < 0.3:
            dims, ard = (
                tuple(sorted(rng.choice(d, size=rng.integers(1, d), replace=False).tolist())),
                None,
            )
        options = {"active_dims": dims, "ard_num_dims": ard}
        kernel = (
            gk.RBFKernel(**options),
            gk.MaternKernel(nu=2.5, **options),
            gk.MaternKernel(nu=1.5, **options),
            gk.RQKernel(**options),
            gk.PeriodicKernel(active_dims=dims),
            gk.LinearKernel(active_dims=dims),
        )[rng.integers(6)]
        for name, value in (
            ("lengthscale", rng.uniform(0.8, 3.0)),
            ("period_length", rng.uniform(4.0, 8.0)),
        ):
            if hasattr(kernel, name) and getattr(kernel, "has_lengthscale", True):
                setattr(kernel, name, torch.tensor(value))
        return gk.ScaleKernel(kernel) if rng.random() < 0.5 else kernel
    one, two = torch_kernel(rng, d, depth - 1), torch_kernel(rng, d, depth - 1)
    return (one + two, one * two)[rng.integers(2)]


class Exact(ExactGP):
    def __init__(self, X, y, likelihood, mean, kernel):
        super().__init__(X, y, likelihood)
        self.mean_module, self.covar_module = mean, kernel

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def gpytorch_model(rng):
    X, y = table(rng)
    likelihood = GaussianLikelihood()
    mean = ConstantMean() if rng.random() < 0.5 else LinearMean(X.shape[1])
    model = Exact(
        torch.tensor(X), torch.tensor(y), likelihood, mean, torch_kernel(rng, X.shape[1])
    ).double()
    likelihood.noise = float(10.0 ** rng.uniform(-3, 0))
    return model.eval(), X, _torch_joint(model)


def botorch_model(rng):
    X, y = table(rng)
    transforms = {
        "input_transform": Normalize(X.shape[1]) if rng.random() < 0.7 else None,
        "outcome_transform": Standardize(1) if rng.random() < 0.7 else None,
    }
    covar = torch_kernel(rng, X.shape[1]) if rng.random() < 0.6 else None
    model = SingleTaskGP(
        torch.tensor(X), torch.tensor(y)[:, None], covar_module=covar, **transforms
    ).eval()
    model.likelihood.noise = float(10.0 ** rng.uniform(-3, 0))
    return model, X, _torch_joint(model, lambda points: model.posterior(points).distribution)


def _torch_joint(model, call=None):
    def joint(points):
        with torch.no_grad():
            result = (call or model)(torch.tensor(points))
            return result.mean.numpy(), result.covariance_matrix.numpy()

    return joint
