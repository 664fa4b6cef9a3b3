"""Kernels and means without a formula, by automatic derivatives: exact, or refused by name."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from botorch.models import kernels as bk
from botorch.models.kernels.orthogonal_additive_kernel import OrthogonalAdditiveKernel
from gpytorch import kernels as gk
from gpytorch.means import Mean
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from tests.reference.brute_force import assert_same_attributions
from tests.reference.random_kernels import (
    Exact,
    Own,
    Rounded,
    gpytorch_verdict,
    random_data,
    sklearn_verdict,
)

import gpattr
from gpattr import Explainer
from gpattr.adapters.adapt import adapt
from gpattr.adapters.verification import verify
from gpattr.exceptions import UnsupportedModelError

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
RNG = np.random.default_rng(0)
ROWS, Y = random_data(RNG, 3)
x, b = np.array([0.6, 0.1, 0.3]), np.array([0.15, 0.4, 0.62])


class Rooted(gk.Kernel):
    """Matérn kernels as they are often written: a square root has no derivative at zero."""

    has_lengthscale = True

    def __init__(self, nu):
        super().__init__()
        self.nu = nu

    def forward(self, x1, x2, diag=False, **params):
        difference = (x1[..., :, None, :] - x2[..., None, :, :]) / self.lengthscale[..., None]
        r = math.sqrt(2 * self.nu) * difference.square().sum(-1).sqrt()
        polynomial = {0.5: 1.0, 1.5: 1.0 + r, 2.5: 1.0 + r + r**2 / 3.0}[self.nu]
        result = polynomial * torch.exp(-r)
        return result.diagonal(dim1=-1, dim2=-2) if diag else result


class Detached(Own):
    """A kernel whose automatic derivatives are not those of its values."""

    def forward(self, x1, x2, diag=False, **params):
        return super().forward(x1.detach() * 0.5 + x1 * 0.5, x2, diag=diag)


class Random(Own):
    """A kernel that is another one at every call."""

    def forward(self, x1, x2, diag=False, **params):
        return super().forward(x1, x2, diag=diag) * (1.0 + 0.1 * torch.rand(()).double())


class Centred(Own):
    """A kernel that depends on all the rows it is given."""

    def forward(self, x1, x2, diag=False, **params):
        return super().forward(x1 - x1.mean(-2, keepdim=True), x2, diag=diag)


class Noise(Own):
    """A kernel with white noise inside."""

    def forward(self, x1, x2, diag=False, **params):
        same = (x1[..., :, None, :] == x2[..., None, :, :]).all(-1)
        result = super().forward(x1, x2) + 0.1 * same
        return result.diagonal(dim1=-1, dim2=-2) if diag else result


EXPLAINED = {
    "piecewise polynomial": lambda: gk.ScaleKernel(gk.PiecewisePolynomialKernel(q=2)),
    "arc": lambda: gk.ArcKernel(gk.MaternKernel(nu=2.5), ard_num_dims=3),
    "spectral delta": lambda: gk.SpectralDeltaKernel(3, 8) + gk.LinearKernel(),
    "random features": lambda: gk.ScaleKernel(gk.RFFKernel(8, 3)),
    "cylinder": lambda: (
        gk.CylindricalKernel(2, gk.RBFKernel(), active_dims=[0, 2]) + gk.RBFKernel()
    ),
    "one fidelity": lambda: bk.LinearTruncatedFidelityKernel([1], dimension=3, nu=2.5),
    "two fidelities": lambda: bk.LinearTruncatedFidelityKernel(
        [0, 2], dimension=3, covar_module_unbiased=gk.RBFKernel(), covar_module_biased=gk.RQKernel()
    ),
    "downsampling and decay": lambda: (
        gk.RBFKernel(active_dims=[0])
        * bk.DownsamplingKernel(active_dims=[1])
        * bk.ExponentialDecayKernel(active_dims=[2])
    ),
    "orthogonal additive": lambda: OrthogonalAdditiveKernel(
        3, second_order=True, dtype=torch.double
    ),
    "network of infinite width": lambda: bk.InfiniteWidthBNNKernel(depth=2),
    "a user's own": lambda: gk.ScaleKernel(Own(active_dims=[2, 0])) + gk.PeriodicKernel(),
    "in a product": lambda: Own(active_dims=[0, 1]) * gk.MaternKernel(nu=2.5, active_dims=[2]),
    "Matern52 with a square root": lambda: Rooted(2.5),
}


SLOW = {"orthogonal additive", "network of infinite width", "downsampling and decay"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in EXPLAINED],
)
def test_explained(name):
    _, verdict = gpytorch_verdict(3, EXPLAINED[name](), 3)
    assert verdict.kind == "exact", verdict
    assert "quadrature" in verdict.method
    assert verdict.seconds < 30.0


def test_methods_name_the_kernel():
    model = Exact(torch.tensor(ROWS), torch.tensor(Y), Own() * gk.RBFKernel()).double()
    ex = Explainer(model, b)(x[None])
    assert ex.method == "quadrature of Own by automatic differentiation"
    assert 0.0 < ex.error[0] < 1e-7


def test_square_roots_like_formulas():
    """Also at equal points, where the square root has no derivative and the kernel has."""
    rows, targets = torch.tensor(ROWS), torch.tensor(Y)
    ours, theirs = (
        Explainer(Exact(rows, targets, kernel).double(), b)
        for kernel in (Rooted(2.5), gk.MaternKernel(nu=2.5))
    )
    one, two = (explainer(ROWS[:2]) for explainer in (ours, theirs))
    np.testing.assert_allclose(one.values, two.values, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(one.cov, two.cov, rtol=1e-8, atol=1e-10)
    slopes = [
        gpattr.as_posterior(Exact(rows, targets, kernel).double()).apply(
            gpattr.operators.Gradient(), ROWS[:2]
        )
        for kernel in (Rooted(2.5), gk.MaternKernel(nu=2.5))
    ]
    np.testing.assert_allclose(slopes[0].cov, slopes[1].cov, rtol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda: Rooted(0.5), "Rooted is not supported: its functions have no gradients"),
        (lambda: gk.PiecewisePolynomialKernel(q=0), "PiecewisePolynomialKernel is not supported"),
        (lambda: Rounded(), "Rounded is not supported: its values change by"),
        (lambda: Detached(), "Detached is not supported: its values change by"),
        (lambda: Random(), "Random is not supported: its values are random"),
        (lambda: Centred(), "Centred is not supported: (it is not symmetric|its values depend)"),
        (lambda: Noise(), "Noise is not supported: its values jump where x = x'"),
        (
            lambda: gk.IndexKernel(3),
            "IndexKernel is not supported: its inputs are numbers of tasks",
        ),
        (lambda: gk.RBFKernelGrad(), "RBFKernelGrad is not supported: it is of several outputs"),
    ],
)
def test_refused_by_name(kernel, words):
    model = Exact(torch.tensor(ROWS), torch.tensor(Y), gk.ScaleKernel(kernel()) + gk.RBFKernel())
    with pytest.raises(UnsupportedModelError, match=words):
        Explainer(model.double(), b)


def test_hamming_kernels_of_sequences():
    """Between one-hot sequences attributions add up to differences of the model's predictions."""
    letters = RNG.integers(3, size=(30, 4))
    rows = np.eye(3)[letters].reshape(30, 12)
    targets = torch.tensor(letters[:, 0] + (letters[:, 1] == 2) * 2.0)
    model = Exact(torch.tensor(rows), targets, gk.ScaleKernel(gk.HammingIMQKernel(3))).double()
    ex = Explainer(model, rows[0])(rows[1:3])
    with torch.no_grad():
        theirs = model.eval()(torch.tensor(rows[:3]))
    gains = torch.tensor([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]).double()
    covariance = (gains @ theirs.covariance_matrix @ gains.mT).numpy()
    np.testing.assert_allclose(ex.values.sum(axis=1), (gains @ theirs.mean).numpy(), rtol=1e-8)
    np.testing.assert_allclose(ex.cov.sum(axis=(1, 2)), covariance.diagonal(), rtol=1e-7)


class Network(Mean):
    """A mean that a network computes."""

    def __init__(self, activation):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 8), activation, torch.nn.Linear(8, 1))

    def forward(self, rows):
        return self.layers(rows).squeeze(-1)


@pytest.mark.parametrize(
    "activation", [torch.nn.Tanh(), torch.nn.Softplus()], ids=["tanh", "softplus"]
)
def test_networks_as_means(activation):
    model = Exact(torch.tensor(ROWS), torch.tensor(Y), gk.RBFKernel())
    model.mean_module = Network(activation)
    model = model.double().eval()

    def joint(points):
        with torch.no_grad():
            result = model(torch.tensor(points))
            return result.mean.numpy(), result.covariance_matrix.numpy()

    assert_same_attributions(Explainer(model, b)(x[None]), joint, b)


def test_networks_of_relus_as_means():
    """Finite differences cannot see where a gradient jumps; test_prior_means.py has the truth."""
    model = Exact(torch.tensor(ROWS), torch.tensor(Y), gk.RBFKernel())
    model.mean_module = Network(torch.nn.ReLU())
    ex = Explainer(model.double().eval(), b)(x[None])
    assert ex.error.max() < 1e-10
    np.testing.assert_allclose(ex.values.sum(axis=1), ex.predictions - ex.base_values, atol=1e-11)


@pytest.mark.parametrize("seed", range(7))
def test_random_gpytorch_kernels(seed):
    kernel, verdict = gpytorch_verdict(seed)
    assert verdict.kind != "wrong", (kernel, verdict)


@pytest.mark.parametrize("seed", range(12))
def test_random_sklearn_kernels(seed):
    kernel, verdict = sklearn_verdict(seed)
    assert verdict is None or verdict.kind != "wrong", (kernel, verdict)


@pytest.mark.filterwarnings("ignore:divide by zero")  # logarithms of zero, in scikit-learn
@pytest.mark.parametrize(
    ("kernel", "same"),
    [
        (sk.RBF(0.4) + sk.WhiteKernel(0.0), sk.RBF(0.4)),
        (sk.WhiteKernel(0.0) * sk.RBF() + sk.RBF(0.4), sk.RBF(0.4)),
        (sk.ConstantKernel(0.0) + sk.RBF(0.4) * sk.ConstantKernel(2.0), 2.0 * sk.RBF(0.4)),
        (sk.PairwiseKernel(gamma=3.125, metric="rbf"), sk.RBF(0.4)),
        (sk.PairwiseKernel(metric="linear"), sk.DotProduct(0.0)),
        (sk.PairwiseKernel(gamma=1.0, metric="poly"), sk.DotProduct(1.0) ** 3),
    ],
    ids=str,
)
def test_other_names_of_sklearn_kernels(kernel, same):
    one, two = (
        Explainer(GaussianProcessRegressor(part, alpha=0.1, optimizer=None).fit(ROWS, Y), b)(
            x[None]
        )
        for part in (kernel, same)
    )
    np.testing.assert_allclose(one.values, two.values, rtol=1e-10)
    np.testing.assert_allclose(one.cov, two.cov, rtol=1e-8, atol=1e-12)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_kernels_that_are_zero():
    model = GaussianProcessRegressor(sk.WhiteKernel(0.0), alpha=0.1, optimizer=None).fit(ROWS, Y)
    with pytest.raises(UnsupportedModelError, match="kernel: this WhiteKernel is zero everywhere"):
        gpattr.as_posterior(model)


def test_covariances_are_compared():
    """A library whose means and variances are those of the posterior, but not its covariances."""
    model = Exact(torch.tensor(ROWS), torch.tensor(Y), Own()).double()
    adapted = adapt(model)
    verify(adapted, "Exact")
    wrong = replace(adapted, joint=lambda rows: np.diag(adapted.predict(rows)[1]))
    with pytest.raises(UnsupportedModelError, match="the predictive covariance of this Exact"):
        verify(wrong, "Exact")
