"""Expectations through hidden layers: F(x) = E f(h(x)) and its gradient.

The units of a layer are independent, N(mⱼ, vⱼ) at a point. With f | h of mean μ(h)

    F = E μ(h),    ∇F = Σⱼ E[∂ⱼμ] ∇mⱼ + E[∂ⱼ²μ] ∇vⱼ/2

For a squared exponential above, all of these are sums of Gaussians with the variances ℓⱼ² + vⱼ:

    E k(h, z) = σ² ∏ⱼ ℓⱼ/√(ℓⱼ² + vⱼ) exp(−(mⱼ − zⱼ)²/2(ℓⱼ² + vⱼ))

Matérn and rational quadratic kernels are mixtures of squared exponentials, and linear ones need the
means only. Layers below the last hidden one, and kernels without a closed form, are averaged over
standard normals of a randomised Sobol sequence, h = m(x) + √v(x) z: that is a function of x too, of
which the gradient is exact, and how far replicates of it differ is its error.

Draws of hidden layers hold values and gradients of their units at T points, which are jointly
Gaussian. A second hidden layer is drawn given the first, at the points where a draw of that one
leads, and so on; gradients follow by the chain rule. Draws come in antithetic pairs: one with the
standard normals z, one with −z.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from gpattr._core.array import product, to_numpy
from gpattr._core.memory import blocks
from gpattr._core.normal import jittered_root
from gpattr.closed_forms.gradient import gradient_sums
from gpattr.kernels import (
    Constant,
    Kernel,
    Linear,
    Matern,
    Matern32,
    Matern52,
    RationalQuadratic,
    Scale,
    Select,
    SquaredExponential,
    Sum,
)
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.special.scale_mixtures import (
    ScaleMixture,
    matern_mixture,
    rational_quadratic_mixture,
)

Layer = tuple[FunctionSpacePosterior, ...]

REPLICATES, POINTS = 8, 256  # Sobol sequences, and points of each: a power of two
ACCURACY = 1e-12  # of a kernel, of its mixture of squared exponentials
SMALLEST = 1e-300  # a variance: below, the slope of a standard deviation would overflow
JITTER = 1e-10  # added to correlations, as in `jittered_root`


class Expected(NamedTuple):
    """E μ, (n,), E ∂ⱼμ and E ∂ⱼ²μ, (n, D)."""

    value: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray

    def __add__(self, other: Any) -> Expected:
        return Expected(*(one + two for one, two in zip(self, other, strict=True)))

    def times(self, factor: float) -> Expected:
        """Return all of them times a number."""
        return Expected(*(factor * each for each in self))


class Averages(NamedTuple):
    """F, (n,), its gradient, (n, d), and the standard errors of both over replicates."""

    value: np.ndarray
    gradient: np.ndarray
    value_error: np.ndarray
    gradient_error: np.ndarray


def averages(layers: Sequence[Layer], X: np.ndarray) -> Averages:
    """Return F and its gradient at rows X, (n, d)."""
    *hidden, (last,) = layers
    closed = has_closed_form(last.kernel)
    drawn = hidden[:-1] if closed else hidden
    normals = normals_of(sum(map(len, drawn)))
    (n, d), N = X.shape, len(normals)
    result = Averages(np.empty(n), np.empty((n, d)), np.zeros(n), np.zeros((n, d)))
    widest = max(len(unit.inputs) for layer in layers for unit in layer)
    for rows in blocks(n, 64.0 * N * (widest + d * max(map(len, layers)))):
        h, J = propagated(drawn, X[rows], normals)
        flat = h.reshape(-1, h.shape[-1])
        if closed:
            m, v, G, C = layer_slopes(hidden[-1], flat)
            above = expected(last, m, v)
            slope = np.einsum("nj,nji->ni", above.slope, G)
            slope += np.einsum("nj,nji->ni", above.curvature, C)
            value = above.value
        else:
            value, slope = mean_and_gradient(last, flat)
        gradient = np.einsum("rnk,rnki->rni", slope.reshape(h.shape), J)
        for part, at in enumerate((value.reshape(-1, N), gradient)):
            result[part][rows] = at.mean(axis=1)
            if N > 1:
                replicates = at.reshape(len(at), REPLICATES, -1, *at.shape[2:]).mean(axis=2)
                result[2 + part][rows] = replicates.std(axis=1, ddof=1) / REPLICATES**0.5
    return result


def value_moments(layers: Sequence[Layer], X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return F and Var f(h(x)), (n,), the latter averaged over all hidden layers."""
    *hidden, (last,) = layers
    mean = averages(layers, X).value
    normals, variance = normals_of(sum(map(len, hidden))), np.empty(len(X))
    for rows in blocks(len(X), 64.0 * len(normals) * len(last.inputs)):
        h, _ = propagated(hidden, X[rows], normals)
        at, std = last.moments(h.reshape(-1, h.shape[-1]), return_std=True)
        at, var = at.reshape(h.shape[:2]) - mean[rows, None], (std**2).reshape(h.shape[:2])
        variance[rows] = (var + at**2).mean(axis=1)
    return mean, variance


def propagated(
    layers: Sequence[Layer], X: np.ndarray, normals: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return h = m + √v z of the last of these layers, (n, N, D), and its Jacobian, (n, N, D, d).

    ``normals`` z are (N, units of all layers).
    """
    (n, d), N = X.shape, len(normals)
    h, J = X[:, None, :], np.broadcast_to(np.eye(d), (n, 1, d, d))
    start = 0
    for layer in layers:
        k = h.shape[1]
        m, v, G, C = layer_slopes(layer, h.reshape(n * k, -1))
        z, start = normals[:, start : start + len(layer)], start + len(layer)
        m, s = m.reshape(n, k, -1), np.sqrt(np.maximum(v, SMALLEST)).reshape(n, k, -1)
        G, C = (each.reshape(n, k, len(layer), -1) for each in (G, C))
        J = (G + (z / s)[..., None] * C) @ J
        h = m + s * z
    return np.broadcast_to(h, (n, N, h.shape[2])), np.broadcast_to(J, (n, N, *J.shape[2:]))


def layer_slopes(layer: Layer, X: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return E[h] and Var[h], (n, D), E[∂ᵢh] and Cov[h, ∂ᵢh], (n, D, d), of the units at rows."""
    found = [unit.slopes(X) for unit in layer]
    return tuple(np.stack([each[i] for each in found], axis=1) for i in range(4))


def mean_and_gradient(
    posterior: FunctionSpacePosterior, X: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return E[f], (n,), and its gradient, (n, D), at rows."""
    gradient = posterior.mean.gradient(X) + 0.0
    for rows in blocks(len(X), 64.0 * len(posterior.inputs)):
        weights = np.broadcast_to(
            posterior.alpha, (1, rows.stop - rows.start, len(posterior.alpha))
        )
        sums = gradient_sums(posterior.kernel, X[rows], posterior.inputs, weights)
        gradient[rows] += to_numpy(sums)[0]
    return to_numpy(posterior.moments(X)), gradient


@lru_cache(maxsize=64)
def normals_of(dimension: int) -> np.ndarray:
    """Return standard normals (N, dimension): replicates of a Sobol sequence; one row of none."""
    if not dimension:
        return np.zeros((1, 0))
    options: list[dict[str, Any]] = [{"seed": seed} for seed in range(REPLICATES)]  # rng= from 1.15
    from scipy.stats import qmc  # which takes long to import

    parts = [qmc.Sobol(dimension, **each).random(POINTS) for each in options]
    normals = ndtri(np.clip(np.concatenate(parts), 1e-12, 1.0 - 1e-12))
    normals.flags.writeable = False
    return normals


def expected(posterior: FunctionSpacePosterior, m: np.ndarray, v: np.ndarray) -> Expected:
    """Return the expectations of μ for h ~ N(m, diag(v)), (n, D) each, in closed form."""
    D, result = m.shape[1], None
    for rows in blocks(len(m), 32.0 * len(posterior.inputs) * (2 + D)):
        inside = _of_kernel(posterior.kernel, m[rows], v[rows], posterior.inputs, posterior.alpha)
        if result is None:
            result = Expected(np.empty(len(m)), np.empty(m.shape), np.empty(m.shape))
        for whole, part in zip(result, inside, strict=True):
            whole[rows] = part
    assert result is not None
    # The means of layers are linear at most, so that they act on m alone.
    return result + Expected(posterior.mean(m), posterior.mean.gradient(m), np.zeros(m.shape))


def has_closed_form(kernel: Kernel) -> bool:
    """Return whether the expectation of a kernel over a Gaussian is known."""
    if not all(type(leaf) in LEAVES for leaf in kernel.leaves()):
        return False
    return all(
        type(part) in LEAVES or type(part) in (Scale, Sum, Select) for _, part in kernel.walk()
    )


def _of_kernel(kernel: Any, m: np.ndarray, v: np.ndarray, Z: np.ndarray, w: np.ndarray) -> Expected:
    """Return Σₙ wₙ E k(h, zₙ) and its derivatives with respect to h."""
    match kernel:
        case Scale():
            return _of_kernel(kernel.kernel, m, v, Z, w).times(kernel.variance)
        case Sum():
            first, *others = (_of_kernel(part, m, v, Z, w) for part in kernel.kernels)
            for other in others:
                first = first + other
            return first
        case Select():
            columns = list(kernel.features)
            inner = _of_kernel(kernel.kernel, m[:, columns], v[:, columns], Z[:, columns], w)
            slope, curvature = np.zeros(m.shape), np.zeros(m.shape)
            slope[:, columns], curvature[:, columns] = inner.slope, inner.curvature
            return Expected(inner.value, slope, curvature)
        case _:
            return LEAVES[type(kernel)](kernel, m, v, Z, w)


def _squared_exponential(
    kernel: Any, m: np.ndarray, v: np.ndarray, Z: np.ndarray, w: np.ndarray, scale: float = 1.0
) -> Expected:
    square = scale * np.broadcast_to(kernel.lengthscale, m.shape[1:]) ** 2
    L = square + v  # (n, D)
    u = (m[:, None, :] - Z) / L[:, None, :]  # (n, m, D)
    log = -0.5 * (
        np.einsum("nmj,nmj->nm", u * L[:, None, :], u) + np.log(L / square).sum(axis=1)[:, None]
    )
    T = kernel.variance * np.exp(log) * w
    value = T.sum(axis=1)
    slope = -np.einsum("nm,nmj->nj", T, u)
    curvature = np.einsum("nm,nmj->nj", T, u * u) - value[:, None] / L
    return Expected(value, slope, curvature)


def _mixture(rule: Callable[[Any], ScaleMixture]) -> Callable[..., Expected]:
    """Return the expectation of a kernel that is a mixture of squared exponentials."""

    def leaf(kernel: Any, m: np.ndarray, v: np.ndarray, Z: np.ndarray, w: np.ndarray) -> Expected:
        mixture = rule(kernel)
        total = Expected(np.zeros(len(m)), np.zeros(m.shape), np.zeros(m.shape))
        for scale, weight in zip(mixture.scales.tolist(), mixture.weights.tolist(), strict=True):
            total = total + _squared_exponential(kernel, m, v, Z, weight * w, scale)
        constant = mixture.constant * kernel.variance * w.sum()
        return total._replace(value=total.value + constant)

    return leaf


def _linear(kernel: Any, m: np.ndarray, v: np.ndarray, Z: np.ndarray, w: np.ndarray) -> Expected:
    slope = np.broadcast_to(kernel.variance, m.shape[1:]) * (w @ Z)
    return Expected(m @ slope, np.broadcast_to(slope, m.shape), np.zeros(m.shape))


def _constant(kernel: Any, m: np.ndarray, v: np.ndarray, Z: np.ndarray, w: np.ndarray) -> Expected:
    flat = np.zeros(m.shape)
    return Expected(np.full(len(m), kernel.variance * w.sum()), flat, flat)


_matern = _mixture(lambda kernel: matern_mixture(kernel.nu, ACCURACY, 1))
LEAVES: dict[type, Callable[..., Expected]] = {
    SquaredExponential: _squared_exponential,
    Matern32: _matern,
    Matern52: _matern,
    Matern: _matern,
    RationalQuadratic: _mixture(
        lambda kernel: rational_quadratic_mixture(kernel.alpha, ACCURACY, 1)
    ),
    Linear: _linear,
    Constant: _constant,
}


class Hidden(NamedTuple):
    """Draws of the last hidden layer: values (S, T, D) and Jacobians (S, T, D, d)."""

    values: np.ndarray
    jacobians: np.ndarray


def drawn_layers(
    layers: Sequence[Layer], points: np.ndarray, pairs: int, seed: Sequence[int]
) -> Hidden:
    """Return ``pairs`` antithetic pairs of draws of the last of these layers at points (T, d)."""
    T, d = points.shape
    values = np.broadcast_to(points, (2 * pairs, T, d))
    jacobians = np.broadcast_to(np.eye(d), (2 * pairs, T, d, d))
    for k, layer in enumerate(layers):
        units = [
            _first(unit, points, _normals(pairs, T * (1 + d), [*seed, k, j]))
            if k == 0
            else _further(unit, values, _normals(pairs, T * (1 + values.shape[2]), [*seed, k, j]))
            for j, unit in enumerate(layer)
        ]
        jets = np.stack(units, axis=2)  # (S, T, D, 1 + inputs)
        values = np.ascontiguousarray(jets[..., 0])
        jacobians = jets[..., 1:] if k == 0 else jets[..., 1:] @ jacobians
    return Hidden(values, jacobians)


def _first(unit: FunctionSpacePosterior, points: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Return draws of a unit of the first layer, (S, T, 1 + d): one factorisation for all."""
    mean, cov = unit.jets(points[None])
    draws = mean.reshape(-1) + product(normals, jittered_root(cov[0]).T)
    return draws.reshape(len(normals), len(points), -1)


def _further(unit: FunctionSpacePosterior, h: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Return a draw of a unit for each draw h (S, T, D) of the layer below, (S, T, 1 + D)."""
    S, T, D = h.shape
    size = T * (1 + D)
    result = np.empty((S, T, 1 + D))
    for some in blocks(S, 8.0 * size * (6 * size + 4 * unit.size)):
        mean, cov = unit.jets(h[some])
        spread = (_roots(cov) @ normals[some, :, None])[:, :, 0]
        result[some] = mean + spread.reshape(mean.shape)
    return result


def _roots(C: np.ndarray) -> np.ndarray:
    """Return lower triangular R with RRᵀ = C, (S, k, k), singular to rounding."""
    size = np.sqrt(np.maximum(np.diagonal(C, axis1=1, axis2=2), 0.0))
    scale = np.where(size > 0, size, 1.0)
    unit = C / scale[:, :, None] / scale[:, None, :]
    try:
        return size[:, :, None] * np.linalg.cholesky(unit + JITTER * np.eye(C.shape[1]))
    except np.linalg.LinAlgError:
        return np.stack([jittered_root(each) for each in C])


def _normals(pairs: int, size: int, seed: Sequence[int]) -> np.ndarray:
    """Return standard normals (2 · pairs, size), each row with its opposite after all pairs."""
    return mirrored(np.random.default_rng(list(seed)).standard_normal((pairs, size)))


def mirrored(normals: np.ndarray) -> np.ndarray:
    """Return draws followed by their opposites."""
    return np.concatenate([normals, -normals])
