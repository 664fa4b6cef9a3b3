"""Random kernels of GPyTorch and scikit-learn, and a verdict on how a model with one is explained.

`benchmarks/kernel_sweep.py` makes hundreds of them, the tests a few.
"""

import time
from dataclasses import dataclass

import gpytorch
import numpy as np
import torch
from botorch.models import kernels as bk
from gpytorch import kernels as gk
from scipy.linalg import solve_triangular
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from tests.reference.brute_force import brute_force
from tests.reference.gpytorch_settings import exact_settings

from gpattr import Explainer
from gpattr.exceptions import GpattrError

ROWS = 60
LOW, HIGH = 0.02, 0.68  # inside the unit square, and two columns inside the unit disc


@dataclass
class Verdict:
    """Whether an explanation is exact, refused or wrong, why, and after how many seconds."""

    kind: str
    reason: str
    seconds: float
    method: str = ""


def judged(model, joint, rng, d, rough, slack=0.0):
    """Explain one row of a model and compare it with its own joint predictions, ``joint``."""
    x, b = rng.uniform(LOW + 0.03, HIGH - 0.03, size=(2, d))
    start = time.perf_counter()
    try:
        explainer = Explainer(model, b)
        ex = explainer(x[None])
        seconds = time.perf_counter() - start
        singles = [explainer(np.where(np.arange(d) == i, x, b)[None]) for i in range(d)]
    except GpattrError as error:
        return Verdict("refused", str(error), time.perf_counter() - start)
    wrong = differences(ex, singles, joint, x, b, rough, slack)
    return Verdict("wrong" if wrong else "exact", wrong, seconds, ex.method)


def differences(ex, singles, joint, x, b, rough, slack):
    """Return what differs from the library's joint predictions, "" if nothing does.

    Sums over features, and the attributions of rows that differ from the baseline in one column,
    are differences of predictions: 1e-6, and 1e-5 for variances, or the bounds that explanations
    give, which are below 1e-6 of the prior. All others are known by finite differences. ``slack``
    is by how much variances of the library itself are wrong.
    """
    d = len(x)
    ends = np.concatenate([b[None], x[None], np.where(np.eye(d, dtype=bool), x, b)])
    mean, cov = joint(ends)
    size = np.sqrt(max(cov.diagonal().max(), mean.std() ** 2, 1e-12))

    def gain(k):
        return mean[k] - mean[0], cov[k, k] - 2.0 * cov[0, k] + cov[0, 0]

    for k, one in enumerate([ex, *singles], start=1):
        value, variance = gain(k)
        bound, bound2 = d * one.error[0], d * d * one.cov_error[0] + slack
        if not abs(one.values[0].sum() - value) <= max(1e-6 * max(size, abs(value)), bound):
            return f"sum of row {k}: {one.values[0].sum()} for {value}"
        if not abs(one.cov[0].sum() - variance) <= max(1e-5 * size**2, bound2):
            return f"variance of row {k}: {one.cov[0].sum()} for {variance}"
    # One column is known already, and errors of the library must not be divided by small steps.
    if d == 1 or slack:
        return ""
    panels, step = (4, 2e-3) if rough else (2, 3e-3)
    coarse = gaps(ex, *brute_force(joint, x, b, panels=panels, step=step), size)
    if max(coarse) <= 1.0:
        return ""
    # Kinks, and what oscillates, need more of both; what is wrong stays wrong.
    fine = gaps(ex, *brute_force(joint, x, b, panels=2 * panels, step=0.5 * step), size)
    if all(new <= max(5.0, 0.6 * old) for new, old in zip(fine, coarse, strict=True)):
        return "" if max(fine) <= 1e3 else f"finite differences that do not converge: {fine}"
    return f"values or covariances, by finite differences: {coarse}, then {fine} times 1e-5"


def gaps(ex, mean, cov, size):
    """Return by how much values and covariances differ, relative to what is allowed, 1e-5."""
    scale = max(np.abs(mean).max(), size)
    return (
        float(np.abs(ex.values[0] - mean).max() / max(1e-5 * scale, ex.error[0])),
        float(np.abs(ex.cov[0] - cov).max() / max(1e-5 * size**2, ex.cov_error[0])),
    )


class Own(gk.Kernel):
    """A kernel that a user wrote: (1 + x·x') exp(−|x − x'|²)."""

    def forward(self, x1, x2, diag=False, **params):
        squares = (x1[..., :, None, :] - x2[..., None, :, :]).square().sum(-1)
        result = (1.0 + x1 @ x2.mT) * torch.exp(-squares)
        return result.diagonal(dim1=-1, dim2=-2) if diag else result


class Rounded(gk.RBFKernel):
    """A kernel whose derivatives are zero wherever they exist."""

    def forward(self, x1, x2, **params):
        return super().forward((x1 * 5.0).round() / 5.0, (x2 * 5.0).round() / 5.0, **params)


ROUGH = (gk.MaternKernel, gk.PiecewisePolynomialKernel)
LEAVES = {
    "RBFKernel": lambda a, rng: gk.RBFKernel(ard_num_dims=_ard(a, rng), active_dims=a),
    "MaternKernel": lambda a, rng: gk.MaternKernel(
        nu=rng.choice([0.5, 1.5, 2.5, 2.5]), ard_num_dims=_ard(a, rng), active_dims=a
    ),
    "RQKernel": lambda a, rng: gk.RQKernel(ard_num_dims=_ard(a, rng), active_dims=a),
    "PeriodicKernel": lambda a, rng: gk.PeriodicKernel(active_dims=a),
    "CosineKernel": lambda a, rng: gk.CosineKernel(active_dims=a),
    "LinearKernel": lambda a, rng: gk.LinearKernel(ard_num_dims=_ard(a, rng), active_dims=a),
    "PolynomialKernel": lambda a, rng: gk.PolynomialKernel(
        power=int(rng.integers(1, 4)), active_dims=a
    ),
    "ConstantKernel": lambda a, rng: gk.ConstantKernel(active_dims=a),
    "SpectralMixtureKernel": lambda a, rng: gk.SpectralMixtureKernel(
        num_mixtures=2, ard_num_dims=len(a), active_dims=a
    ),
    "PiecewisePolynomialKernel": lambda a, rng: gk.PiecewisePolynomialKernel(
        q=int(rng.integers(0, 4)), ard_num_dims=_ard(a, rng), active_dims=a
    ),
    "ArcKernel": lambda a, rng: gk.ArcKernel(
        gk.MaternKernel(nu=2.5) if rng.random() < 0.5 else gk.RBFKernel(),
        ard_num_dims=len(a),
        active_dims=a,
    ),
    "CylindricalKernel": lambda a, rng: gk.CylindricalKernel(
        2, gk.RBFKernel(), active_dims=a[: 2 if len(a) > 1 else 1]
    ),
    "SpectralDeltaKernel": lambda a, rng: gk.SpectralDeltaKernel(len(a), 8, active_dims=a),
    "RFFKernel": lambda a, rng: gk.RFFKernel(8, len(a), active_dims=a),
    "GaussianSymmetrizedKLKernel": lambda a, rng: gk.GaussianSymmetrizedKLKernel(
        active_dims=(a * 2)[:2]
    ),
    "IndexKernel": lambda a, rng: gk.IndexKernel(3, active_dims=a[:1]),
    "RBFKernelGrad": lambda a, rng: gk.RBFKernelGrad(active_dims=a),
    "NewtonGirardAdditiveKernel": lambda a, rng: gk.NewtonGirardAdditiveKernel(
        gk.RBFKernel(ard_num_dims=len(a)), len(a), min(2, len(a)), active_dims=a
    ),
    "AdditiveStructureKernel": lambda a, rng: gk.AdditiveStructureKernel(
        gk.RBFKernel(), len(a), active_dims=a
    ),
    "ProductStructureKernel": lambda a, rng: gk.ProductStructureKernel(
        gk.RQKernel(), len(a), active_dims=a
    ),
    "LinearTruncatedFidelityKernel": lambda a, rng: (
        bk.LinearTruncatedFidelityKernel([0], active_dims=a, nu=rng.choice([1.5, 2.5]))
        if len(a) > 1
        else gk.RBFKernel(active_dims=a)
    ),
    "DownsamplingKernel": lambda a, rng: bk.DownsamplingKernel(active_dims=a[:1]),
    "ExponentialDecayKernel": lambda a, rng: bk.ExponentialDecayKernel(active_dims=a[:1]),
    "InfiniteWidthBNNKernel": lambda a, rng: bk.InfiniteWidthBNNKernel(
        depth=int(rng.integers(1, 4)), active_dims=tuple(a)
    ),
    "CategoricalKernel": lambda a, rng: bk.CategoricalKernel(active_dims=a),
    "Own": lambda a, rng: Own(active_dims=a),
    "Rounded": lambda a, rng: Rounded(active_dims=a),
}


def _ard(columns, rng):
    return len(columns) if rng.random() < 0.5 else None


def gpytorch_kernel(rng, d, depth=2):
    """A random kernel of d columns: leaves, scales, sums and products of up to three."""
    kind = rng.choice(["leaf", "scale", "sum", "product"], p=[0.4, 0.2, 0.2, 0.2])
    if depth == 0 or kind == "leaf":
        columns = sorted(rng.choice(d, size=rng.integers(1, d + 1), replace=False).tolist())
        return LEAVES[rng.choice(list(LEAVES))](columns, rng)
    if kind == "scale":
        return gk.ScaleKernel(gpytorch_kernel(rng, d, depth - 1))
    parts = [gpytorch_kernel(rng, d, depth - 1) for _ in range(rng.integers(2, 4))]
    return (gk.AdditiveKernel if kind == "sum" else gk.ProductKernel)(*parts)


class Exact(gpytorch.models.ExactGP):
    """What a user writes."""

    def __init__(self, X, y, kernel):
        super().__init__(X, y, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def random_data(rng, d):
    X = rng.uniform(LOW, HIGH, size=(ROWS, d))
    return X, np.sin(5.0 * X[:, 0]) + X.sum(axis=1) + 0.1 * rng.normal(size=ROWS)


def gpytorch_verdict(seed, kernel=None, d=None):
    """The kernel of a seed, or this one, and what becomes of it."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    d = int(rng.integers(1, 7)) if d is None else d
    kernel = gpytorch_kernel(rng, d) if kernel is None else kernel
    X, y = random_data(rng, d)
    model = Exact(torch.tensor(X), torch.tensor(y), kernel).double()
    for name, parameter in model.named_parameters():
        if "lengthscale" not in name or "base_kernel.raw" not in name:
            parameter.data += 0.4 * torch.randn_like(parameter)
    model.likelihood.noise = float(10.0 ** rng.uniform(-2.5, -0.5))
    model.eval()

    def joint(points):
        rows = torch.cat([model.train_inputs[0], torch.tensor(points)])
        with exact_settings(), torch.no_grad():
            mean = model.mean_module(rows).numpy()
            # In another order: to the covariance of rows with themselves the library may add
            # jitter, which shows in differences that are divided by small steps.
            K = kernel(rows, rows.flip(0)).to_dense().flip(1).numpy()
            noise = model.likelihood.noise.item()
        L = np.linalg.cholesky(K[:ROWS, :ROWS] + noise * np.eye(ROWS))
        V = solve_triangular(L, K[:ROWS, ROWS:], lower=True)
        residual = solve_triangular(L, y - mean[:ROWS], lower=True)
        return mean[ROWS:] + V.T @ residual, K[ROWS:, ROWS:] - V.T @ V

    rough, guarded = (
        any(isinstance(part, kinds) for part in kernel.modules())
        for kinds in (ROUGH, bk.InfiniteWidthBNNKernel)
    )
    slack = 1e-6 * float(y.var() + 10.0) if guarded else 0.0  # cosines are kept 1e-7 from 1
    return kernel, judged(model, joint, rng, d, rough, slack)


class Quadratic(sk.RBF):
    """A kernel that a user wrote."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return (
            super().__call__(X, Y, eval_gradient) if eval_gradient else super().__call__(X, Y) ** 2
        )


def _widths(rng, d):
    return 10.0 ** rng.uniform(-0.7, 0.7, size=d) if rng.random() < 0.5 else rng.uniform(0.2, 3.0)


SKLEARN = {
    "RBF": lambda rng, d: sk.RBF(_widths(rng, d)),
    "Matern": lambda rng, d: sk.Matern(
        _widths(rng, d), nu=rng.choice([0.5, 0.8, 1.5, 2.5, 1.7, 3.3, np.inf])
    ),
    "RationalQuadratic": lambda rng, d: sk.RationalQuadratic(
        rng.uniform(0.2, 3.0), rng.uniform(0.3, 4.0)
    ),
    "ExpSineSquared": lambda rng, d: sk.ExpSineSquared(
        rng.uniform(0.5, 3.0), rng.uniform(0.5, 3.0)
    ),
    "DotProduct": lambda rng, d: sk.DotProduct(rng.choice([0.0, rng.uniform(0.1, 2.0)])),
    "ConstantKernel": lambda rng, d: sk.ConstantKernel(rng.choice([0.0, 0.5, 2.0])),
    "WhiteKernel": lambda rng, d: sk.WhiteKernel(rng.choice([0.0, 0.1])),
    "PairwiseKernel": lambda rng, d: sk.PairwiseKernel(
        gamma=rng.uniform(0.2, 3.0),
        metric=rng.choice(["linear", "rbf", "poly", "laplacian", "cosine", "sigmoid", "chi2"]),
    ),
    "Quadratic": lambda rng, d: Quadratic(_widths(rng, d)),
    "CompoundKernel": lambda rng, d: sk.CompoundKernel([sk.RBF(), sk.RBF(2.0)]),
}


def sklearn_kernel(rng, d, depth=3):
    """A random kernel of d columns: leaves, sums, products and powers."""
    kind = rng.choice(["leaf", "sum", "product", "power"], p=[0.35, 0.3, 0.25, 0.1])
    if depth == 0 or kind == "leaf":
        weights = np.array([4, 4, 3, 2, 3, 2, 2, 2, 0.5, 0.3])
        return SKLEARN[rng.choice(list(SKLEARN), p=weights / weights.sum())](rng, d)
    if kind == "power":
        return sk.Exponentiation(sklearn_kernel(rng, d, depth - 1), rng.choice([2, 3, 0.5, 1.5]))
    parts = [sklearn_kernel(rng, d, depth - 1) for _ in range(2)]
    return (sk.Sum if kind == "sum" else sk.Product)(*parts)


def sklearn_verdict(seed):
    """The kernel of a seed and what becomes of it; None where scikit-learn cannot fit it."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    kernel = sklearn_kernel(rng, d)
    X, y = random_data(rng, d)
    alpha = float(10.0 ** rng.uniform(-2.5, -0.5))
    try:
        model = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None).fit(X, y)
    except Exception:  # no positive definite kernel, or one that gives no matrix
        return kernel, None

    def joint(points):
        K = model.kernel_(X, points)
        V = solve_triangular(model.L_, K, lower=True)
        # Two arrays are different observations, so white noise is left out.
        return K.T @ model.alpha_, model.kernel_(points, points.copy()) - V.T @ V

    rough = "Matern" in repr(kernel)
    return kernel, judged(model, joint, rng, d, rough)
