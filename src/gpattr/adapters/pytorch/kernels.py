"""Translation of GPyTorch's and BoTorch's kernels and means.

``active_dims`` select columns where a kernel is *called*; a `ScaleKernel` copies its base's and
calls the base's forward, so that the base does not select again. A kernel or mean without a
translation, of the library or of a user, is differentiated automatically (`automatic`).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpattr._core.array import Array, namespace, to_numpy
from gpattr.adapters.foreign import on_host
from gpattr.adapters.kernels import Hamming, Index
from gpattr.adapters.pytorch import automatic
from gpattr.adapters.pytorch.predictions import evaluated
from gpattr.adapters.translation import (
    Here,
    KernelTable,
    Rule,
    combined,
    polynomial,
    rule,
    value,
)
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Cosine,
    FullAdditive,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    Rescaled,
    Select,
    SquaredExponential,
    Warped,
)
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear as LinearMean
from gpattr.means import Mean, Zero
from gpattr.posteriors.given import root_of

MATERN = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52}
# Of parameters: the dimensions behind the batch's.
DIMENSIONS = {"lengthscale": 2, "period_length": 2, "variance": 2, "outputscale": 0}


def number(parameter: Any, trailing: int, batch: int | None) -> np.ndarray:
    """Return a parameter, of one member of a batch, in float64.

    Its last ``trailing`` dimensions are kept.
    """
    array = parameter.detach().double().cpu().numpy()
    leading = array.ndim - trailing
    if leading > 1:
        raise UnsupportedModelError(
            f"model: batch shape {array.shape[:leading]} is not supported; a batch has one"
            " dimension"
        )
    if leading == 1:
        array = array[0 if len(array) == 1 or batch is None else batch]
    return array


def called(kernel: Any, d: int, batch: int | None = None) -> Kernel:
    """Return the kernel of ``kernel(x1, x2)`` on d columns: active columns, then forward."""
    return KERNELS.translate(kernel, d, batch)


def forward(kernel: Any, d: int, batch: int | None = None) -> Kernel:
    """Return the kernel of ``kernel.forward`` on d columns; raise for an unsupported one."""
    return KERNELS.translate(kernel, d, batch, select=False)


def lengthscale(kernel: Any, d: int, batch: int | None) -> Any:
    """Return length-scales: one number, or one for each of d columns."""
    return KERNELS.read(kernel, "lengthscale", Here(KERNELS, range(d), d, batch))


def _read(kernel: Any, name: str, here: Here) -> Any:
    found = number(getattr(kernel, name), DIMENSIONS.get(name, 1), here.state).reshape(-1)
    if name == "lengthscale" and len(found) not in (1, here.d):
        raise UnsupportedModelError(
            f"kernel: {len(found)} length-scales for {here.d} columns; for a deep kernel, pass"
            " feature_extractor= to as_posterior"
        )
    return value(found)


def _active(kernel: Any, d: int) -> list[int]:
    active = getattr(kernel, "active_dims", None)
    return list(range(d)) if active is None else [int(i) % d for i in active.reshape(-1).tolist()]


def _other(kernel: Any, here: Here) -> Kernel:
    """A kernel without a translation, as long as it is a function of two rows."""
    name, module = type(kernel).__name__, type(kernel).__module__
    if name in OF_SEVERAL_OUTPUTS and module.startswith(MODULES):
        raise here.refusal(
            f"{module}.{name} is not supported: it is of several outputs, or of derivatives, for"
            " each row"
        )
    return automatic.kernel_of(kernel, here.state)


def _scale(kernel: Any, here: Here) -> Kernel:
    return here.value(kernel, "outputscale") * here.part(kernel.base_kernel, select=False)


def _matern(kernel: Any, here: Here) -> Kernel:
    return MATERN[float(kernel.nu)](here.value(kernel, "lengthscale"))


def _cosine(kernel: Any, here: Here) -> Kernel:
    if here.d > 1:
        raise here.refusal(f"CosineKernel of {here.d} features is not positive definite")
    return Cosine(2.0 * here.value(kernel, "period_length"))


def _by_column(kernel: Any, here: Here) -> list[Kernel]:
    """Return the base kernel on each single column, with that column's length-scale."""
    base = kernel.base_kernel
    scaled = getattr(base, "has_lengthscale", False)
    widths = np.asarray(here.value(base, "lengthscale") if scaled else 0.0)
    if widths.ndim == 0:
        return [here.part(base, 1)] * here.d
    whole = here.part(base, select=False)
    return [whole.with_params(lengthscale=float(width)) for width in widths]


def _structure(combine: Any) -> Rule:
    """Return the rule for a sum or a product of kernels of one column each."""
    return lambda kernel, here: reduce(
        combine, [Select(base, [i]) for i, base in enumerate(_by_column(kernel, here))]
    )


def _newton_girard(kernel: Any, here: Here) -> Kernel:
    """Σₙ σₙ² eₙ of one-dimensional kernels, by degree."""
    variances = number(kernel.outputscale, 3, here.state).reshape(-1)
    return FullAdditive(_by_column(kernel, here), variances)


def _spectral_mixture(kernel: Any, here: Here) -> Kernel:
    """Πᵢ Σ_q w_q exp(−2π²δᵢ²v_qi) cos(2πδᵢμ_qi), by columns."""
    weights = number(kernel.mixture_weights, 1, here.state)
    means, scales = (
        number(part, 3, here.state)[:, 0, :]
        for part in (kernel.mixture_means, kernel.mixture_scales)
    )
    columns = []
    for i in range(here.d):
        terms: list[Any] = [
            float(w)
            * SquaredExponential(1.0 / (2.0 * np.pi * float(s[i])))
            * Cosine(1.0 / float(m[i]))
            for w, m, s in zip(weights, means, scales, strict=True)
        ]
        columns.append(Select(reduce(add, terms), [i]) if here.d > 1 else reduce(add, terms))
    return reduce(mul, columns)


def _arc(kernel: Any, here: Here) -> Kernel:
    """The base kernel of points on circles, (sin, cos) of an angle for each column."""
    member = _member(kernel, here.state)
    return Warped(called(member.base_kernel, 2 * here.d), member.embedding)


def _random_features(kernel: Any, here: Here) -> Kernel:
    if not hasattr(kernel, "randn_weights"):
        raise here.refusal(
            "this RFFKernel has not drawn its frequencies; give num_dims, or call the model once"
        )
    member = _member(kernel, here.state)
    return Warped(Linear(), lambda x: member._featurize(x, normalize=True))


def _spectral_delta(kernel: Any, here: Here) -> Kernel:
    """Σₛ cos(2π zₛ·(x − x')/ℓ)/S, the product of S sines and cosines of each point."""
    member = _member(kernel, here.state)
    Z, scale = (part.detach().double() for part in (member.Z, member.lengthscale))

    def features(x: Any) -> Any:
        phases = 2.0 * np.pi * (x / scale.to(x.device)) @ Z.to(x.device).mT
        return torch.cat([phases.cos(), phases.sin()], dim=-1) / phases.shape[-1] ** 0.5

    return Warped(Linear(), features)


def _hamming(kernel: Any, here: Here) -> Kernel:
    """((1 + α)/(α + h))ᵝ of one-hot sequences with h differences; between them h = T − x·x'."""
    member = _member(kernel, here.state)
    alpha, beta = (float(number(part, 1, None)[0]) for part in (member.alpha, member.beta))

    def values(x1: Any, x2: Any) -> Any:
        differences = here.d // int(member.vocab_size) - x1 @ x2.mT
        return ((1.0 + alpha) / (alpha + differences)) ** beta

    return automatic.one_hot(type(kernel).__name__, values)


def _member(kernel: Any, batch: int | None) -> Any:
    """Return the kernel of one member of a batch."""
    return kernel if batch is None or not len(kernel.batch_shape) else kernel[batch]


def _index(kernel: Any, here: Here) -> Kernel:
    """The covariance of tasks, B[t, t']."""
    if here.d != 1:
        raise here.refusal(
            f"{type(kernel).__name__} is not supported: its inputs are numbers of tasks, in one"
            f" column, got {here.d}"
        )
    covariance = kernel.covar_matrix
    dense = covariance.to_dense() if hasattr(covariance, "to_dense") else covariance
    return Index(number(dense, 2, here.state))


def _fidelity(kernel: Any, here: Here) -> Kernel:
    """k₀ + c k₁: the kernels of all other columns, and c of one or two fidelities (`_Bias`)."""
    fidelities = [int(i) % here.d for i in kernel.fidelity_dims]
    others = [i for i in range(here.d) if i not in fidelities]
    if not others:
        raise here.refusal("LinearTruncatedFidelityKernel needs a column that is not a fidelity")
    first, second = (
        Select(here.part(part, len(others)), others)
        for part in (kernel.covar_module_unbiased, kernel.covar_module_biased)
    )
    bias = automatic.differentiated(type(kernel).__name__, _Bias(here.value(kernel, "power")))
    return first + Select(bias, fidelities) * second


class _Bias(torch.nn.Module):
    """Σᵢ (1 − sᵢ)(1 − sᵢ')(1 + sᵢsᵢ')ᵖ and, for two, Πᵢ (1 − sᵢ)(1 − sᵢ') (1 + s·s')ᵖ."""

    def __init__(self, power: float) -> None:
        super().__init__()
        self.power = power

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        s, t = x1.clamp(0, 1)[..., :, None, :], x2.clamp(0, 1)[..., None, :, :]
        products, lacking = s * t, (1.0 - s) * (1.0 - t)
        value = (lacking * (1.0 + products) ** self.power).sum(dim=-1)
        if x1.shape[-1] > 1:
            value = value + lacking.prod(dim=-1) * (1.0 + products.sum(dim=-1)) ** self.power
        return value


def _downsampling(kernel: Any, here: Here) -> Kernel:
    """c + (1 − s)¹⁺ᵟ(1 − s')¹⁺ᵟ, a constant and a kernel of rank one."""
    if here.d > 1:
        return automatic.kernel_of(kernel, here.state)
    offset, power = (here.value(kernel, name) for name in ("offset", "power"))
    return Constant(offset) + Rescaled(Constant(), lambda x: (1.0 - x[:, 0]) ** (1.0 + power))


def _infinite_width(kernel: Any, here: Here) -> Kernel:
    """The arc-cosine kernel, whose cosines the library keeps 1e-7 from 1.

    Values are the library's; between points so close that it matters, derivatives are those
    without that guard.
    """
    kernel = _member(kernel, here.state)
    unguarded = deepcopy(kernel)
    unguarded.acos_eps = 0.0
    values, pairs = (evaluated(automatic.KernelMatrix(part)) for part in (kernel, unguarded))
    return automatic.differentiated(type(kernel).__name__, values, pairs)


GPYTORCH: dict[str, Rule] = {
    "RBFKernel": rule(SquaredExponential, lengthscale="lengthscale"),
    "MaternKernel": _matern,
    "RQKernel": rule(RationalQuadratic, lengthscale="lengthscale", alpha="alpha"),
    # exp(−2 Σ sin²(π δᵢ/pᵢ)/ℓᵢ): the length-scale is not squared
    "PeriodicKernel": rule(Periodic, lengthscale=("lengthscale", np.sqrt), period="period_length"),
    "CosineKernel": _cosine,
    "LinearKernel": rule(Linear, variance="variance"),
    "PolynomialKernel": lambda kernel, here: polynomial(
        int(kernel.power), here.value(kernel, "offset")
    ),
    "ConstantKernel": rule(Constant, variance="constant"),
    "ScaleKernel": _scale,
    "AdditiveKernel": combined(add, "kernels"),
    "ProductKernel": combined(mul, "kernels"),
    "AdditiveStructureKernel": _structure(add),
    "ProductStructureKernel": _structure(mul),
    "NewtonGirardAdditiveKernel": _newton_girard,
    "GridInterpolationKernel": lambda kernel, here: interpolated(kernel, _by_column(kernel, here)),
    "SpectralMixtureKernel": _spectral_mixture,
    "ArcKernel": _arc,
    "RFFKernel": _random_features,
    "SpectralDeltaKernel": _spectral_delta,
    "IndexKernel": _index,
    "PositiveIndexKernel": _index,
    "HammingIMQKernel": _hamming,
    "MultiDeviceKernel": lambda kernel, here: here.part(kernel.base_kernel, select=False),
}
BOTORCH: dict[str, Rule] = {
    # exp(−mean of [xᵢ ≠ x'ᵢ]/ℓᵢ)
    "CategoricalKernel": lambda kernel, here: Hamming(here.d * here.value(kernel, "lengthscale")),
    "LinearTruncatedFidelityKernel": _fidelity,
    "DownsamplingKernel": _downsampling,
    "InfiniteWidthBNNKernel": _infinite_width,
}
MODULES = ("gpytorch.kernels", "botorch.models.kernels")
OF_SEVERAL_OUTPUTS = (
    "MultitaskKernel",
    "LCMKernel",
    "RBFKernelGrad",
    "RBFKernelGradGrad",
    "Matern52KernelGrad",
    "PolynomialKernelGrad",
)
KERNELS = KernelTable(
    "GPyTorch's",
    {**GPYTORCH, **BOTORCH},
    module=MODULES,
    read=_read,
    columns=_active,
    other=_other,
)


def mean_of(mean: Any, d: int, batch: int | None = None) -> Mean:
    """Return a mean module as ours."""
    library = type(mean).__module__.startswith("gpytorch.means")
    name = type(mean).__name__ if library else ""
    if name == "ZeroMean":
        return Zero()
    if name == "ConstantMean":
        return ConstantMean(float(number(mean.constant, 0, batch)))
    if name == "LinearMean":
        weights = number(mean.weights, 2, batch).reshape(-1)
        if len(weights) != d:
            raise UnsupportedModelError(
                f"mean_module: a LinearMean of {len(weights)} columns does not fit {d} columns"
            )
        bias = 0.0 if mean.bias is None else float(number(mean.bias, 1, batch)[0])
        return LinearMean(weights, bias)
    return automatic.mean_of_module(mean, batch)


# Interpolation on grids, KISS-GP. Weights and covariances are products over columns, and so is
#
#     k(x, x') = Πᵢ wᵢ(xᵢ)ᵀ kᵢ(Gᵢ, Gᵢ) wᵢ(x'ᵢ)
#
# with the weights of cubic interpolation (Keys 1981), which have continuous derivatives.


def interpolated(kernel: Any, bases: list[Kernel]) -> Kernel:
    """Return the kernel, given kernels of single columns between the points of the grid."""
    if not bool(kernel.has_initialized_grid):
        raise InvalidInputError(
            "model: expected a trained model, got one that was never called: the grid of its"
            " GridInterpolationKernel is not known"
        )
    factors = []
    for i, (base, points) in enumerate(zip(bases, kernel.grid, strict=True)):
        grid = on_host(points).astype(np.float64)
        root = root_of("covar_module", to_numpy(base(grid[:, None], grid[:, None])))
        phi = GridMap(i, float(grid[0]), float(grid[1] - grid[0]), root[:, (root != 0).any(axis=0)])
        factors.append(Select(Warped(Linear(), phi, phi.jacobian), [i]))
    return reduce(mul, factors)


@dataclass(frozen=True, eq=False)
class GridMap:
    """Rᵀw(x) for column ``i``: weights w between grid points, ``root`` R of their kernel."""

    i: int
    first: float
    step: float
    root: np.ndarray

    exact = True  # its derivatives need no comparison with differences

    def __call__(self, X: Array) -> Array:
        """Return features (n, r) of rows (n, 1)."""
        s = self._distances(X)
        U = abs(s)
        near = (1.5 * U - 2.5) * U**2 + 1.0
        far = ((-0.5 * U + 2.5) * U - 4.0) * U + 2.0
        return self._where(U, near, far) @ namespace(X).asarray(self.root)

    def jacobian(self, X: Array) -> Array:
        """Return the slopes of the values, (n, r, 1)."""
        s = self._distances(X)
        U = abs(s)
        xp = namespace(X)
        sign = xp.where(s > 0, 1.0, -1.0)
        near, far = (4.5 * U - 5.0) * U, (-1.5 * U + 5.0) * U - 4.0
        slopes = sign * self._where(U, near, far) / self.step
        return (slopes @ xp.asarray(self.root))[:, :, None]

    def _where(self, U: Array, near: Array, far: Array) -> Array:
        xp = namespace(U)
        return xp.where(U < 1.0, near, xp.where(U < 2.0, far, 0.0))

    def _distances(self, X: Array) -> Array:
        """Return the distances to all points, in steps of the grid, (n, g)."""
        at, size = (X[:, 0] - self.first) / self.step, len(self.root)
        if not bool(((at >= 1.0) & (at < size - 2.0)).all()):
            low, high = self.first + self.step, self.first + (size - 2.0) * self.step
            raise InvalidInputError(
                f"X: the model interpolates column {self.i} between {low:.3g} and {high:.3g};"
                " expected rows and baselines within, with all points between them"
            )
        return at[:, None] - namespace(X).asarray(np.arange(float(size)))
