"""First and mixed second derivatives of kernels, for gradients and for quadrature along a path.

Inputs x and y have shapes (..., d) that broadcast, so one formula serves paired rows and, with
``x[:, None, :]``, all pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from gpattr._core import autodiff
from gpattr._core.arguments import a_function, subclass
from gpattr._core.array import Array, chunk_rows, namespace
from gpattr._core.validation import returned
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import (
    Categorical,
    Constant,
    Cosine,
    FullAdditive,
    Function,
    Kernel,
    Linear,
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Rescaled,
    Scale,
    Select,
    SquaredExponential,
    Sum,
    Warped,
    White,
)
from gpattr.kernels.matern import ROUGH

TWO_PI = 6.283185307179586477


class Jet(NamedTuple):
    """k, ∂k/∂xᵢ, ∂k/∂yⱼ and ∂²k/∂xᵢ∂yⱼ: (...), (..., d), (..., d) and (..., d, d).

    The last two are there if they were asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import Jet
    >>> Jet(np.array(1.0), np.array([0.0, 2.0])).left
    array([0., 2.])
    """

    value: Array
    left: Array
    right: Any = None
    mixed: Any = None


DERIVATIVES: dict[type[Kernel], Callable[[Any, Array, Array, bool], Jet]] = {}
REFUSED: dict[type[Kernel], str] = {
    Matern12: ROUGH,
    White: "White is noise, which has no gradients; a posterior folds it into its noise",
}


def register_derivatives(
    kernel: type[Kernel], function: Callable[[Any, Array, Array, bool], Jet]
) -> None:
    """Enter the derivatives of a kernel: a function of (kernel, x, y, second) that returns a `Jet`.

    From then on the kernel can be explained, by quadrature, alone and inside sums, products, scales
    and selections.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import Jet, differentiate, register_derivatives
    >>> from gpattr.kernels import Linear
    >>> class Dot(Linear):  # k(x, y) = x·y
    ...     pass
    >>> def derivatives(kernel, x, y, second):
    ...     eye = np.eye(x.shape[-1])
    ...     return Jet((x * y).sum(-1), y, x, eye) if second else Jet((x * y).sum(-1), y)
    >>> register_derivatives(Dot, derivatives)
    >>> differentiate(Dot(), np.array([1.0]), np.array([2.0])).left
    array([2.])
    """
    subclass(Kernel, "a class of kernels")("kernel", kernel)
    a_function("function", function)
    DERIVATIVES[kernel] = function


def differentiate(kernel: Kernel, x: Array, y: Array, second: bool = False) -> Jet:
    """Return k and its first, with ``second`` also mixed, derivatives; x and y broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import differentiate
    >>> from gpattr.kernels import Linear
    >>> jet = differentiate(Linear(), np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    >>> float(jet.value), jet.left
    (11.0, array([3., 4.]))
    """
    return DERIVATIVES[type(kernel)](kernel, x, y, second)


def require_derivatives(kernel: Kernel) -> None:
    """Raise `UnsupportedModelError` for a kernel of which some part has no derivatives."""
    for _, part in kernel.walk():
        if type(part) in REFUSED:
            raise UnsupportedModelError(f"kernel: {REFUSED[type(part)]}")
        if type(part) not in DERIVATIVES:
            raise UnsupportedModelError(
                f"kernel: {type(part).__name__} has no registered derivatives;"
                " gpattr.closed_forms.register_derivatives adds them"
            )


def _outer(u: Array, v: Array) -> Array:
    return u[..., :, None] * v[..., None, :]


def _radial(kernel: Any, x: Array, y: Array, second: bool) -> Jet:
    """∂k/∂xᵢ = σ² h uᵢ/ℓᵢ and ∂²k/∂xᵢ∂yⱼ = −σ² (h δᵢⱼ + (h'/r) uᵢuⱼ)/(ℓᵢℓⱼ).

    Here u = (x − y)/ℓ and h = g'(r)/r.
    """
    xp = namespace(x, y)
    inverse = xp.broadcast_to(1.0 / xp.asarray(kernel.lengthscale), x.shape[-1:])
    u = (x - y) * inverse
    r2 = (u * u).sum(axis=-1)
    g, h, b = kernel.profiles(r2, second)
    h = kernel.variance * h
    value, left = kernel.variance * g, h[..., None] * u * inverse
    if not second:
        return Jet(value, left)
    v = u * inverse
    # Of the table of pairs, one pass: along the paths of classes it takes most of the time.
    mixed = _outer((-kernel.variance * b)[..., None] * v, v)
    i = xp.arange(v.shape[-1])
    mixed[..., i, i] -= h[..., None] * inverse**2
    return Jet(value, left, -left, mixed)


def _periodic(kernel: Periodic, x: Array, y: Array, second: bool) -> Jet:
    """∂k/∂xᵢ = k Dᵢ and ∂²k/∂xᵢ∂yⱼ = k (δᵢⱼ (2π/pᵢℓᵢ)² cos(2π(xᵢ − yᵢ)/pᵢ) − DᵢDⱼ).

    Here Dᵢ = ∂ log k/∂xᵢ.
    """
    xp = namespace(x, y)
    rate = xp.broadcast_to(TWO_PI / xp.asarray(kernel.period), x.shape[-1:])
    scale = xp.broadcast_to(xp.asarray(kernel.lengthscale), x.shape[-1:])
    phase = (x - y) * rate
    value = kernel.variance * xp.exp(-2.0 * ((xp.sin(0.5 * phase) / scale) ** 2).sum(axis=-1))
    D = -rate / scale**2 * xp.sin(phase)
    left = value[..., None] * D
    if not second:
        return Jet(value, left)
    curvature = ((rate / scale) ** 2 * xp.cos(phase))[..., None] * xp.eye(x.shape[-1])
    return Jet(value, left, -left, value[..., None, None] * (curvature - _outer(D, D)))


def _cosine(kernel: Cosine, x: Array, y: Array, second: bool) -> Jet:
    """∂k/∂xᵢ = −σ² vᵢ sin(v·(x − y)) and ∂²k/∂xᵢ∂yⱼ = vᵢvⱼ k, with v = 2π/p."""
    xp = namespace(x, y)
    v = xp.broadcast_to(TWO_PI / xp.asarray(kernel.period), x.shape[-1:])
    phase = ((x - y) * v).sum(axis=-1)
    value, left = kernel.variance * xp.cos(phase), -kernel.variance * xp.sin(phase)[..., None] * v
    return (
        Jet(value, left, -left, value[..., None, None] * _outer(v, v))
        if second
        else Jet(value, left)
    )


def _polynomial(kernel: Any, x: Array, y: Array, second: bool) -> Jet:
    """Powers of q = c + Σ σᵢ²xᵢyᵢ.

    ∂k/∂xᵢ     = D q^(D−1) σᵢ²yᵢ
    ∂²k/∂xᵢ∂yⱼ = D q^(D−1) σᵢ² δᵢⱼ + D(D − 1) q^(D−2) σᵢ²yᵢ σⱼ²xⱼ
    """
    xp = namespace(x, y)
    D, offset = (1, 0.0) if isinstance(kernel, Linear) else (kernel.degree, kernel.offset)
    variance = xp.broadcast_to(xp.asarray(kernel.variance), x.shape[-1:])
    vx, vy = variance * x, variance * y
    q = (x * vy).sum(axis=-1) + offset
    outer = (D * q ** (D - 1))[..., None]
    left = outer * vy
    if not second:
        return Jet(q**D, left)
    mixed = outer[..., None] * (variance * xp.eye(x.shape[-1]))
    if D > 1:
        mixed = mixed + (D * (D - 1) * q ** (D - 2))[..., None, None] * _outer(
            vy + 0.0 * vx, vx + 0.0 * vy
        )
    return Jet(q**D, left, outer * vx, mixed)


def _constant(kernel: Constant, x: Array, y: Array, second: bool) -> Jet:
    zero = 0.0 * (x - y)
    value = zero.sum(axis=-1) + kernel.variance
    return Jet(value, zero, zero, _outer(zero, zero)) if second else Jet(value, zero)


def _scale(kernel: Scale, x: Array, y: Array, second: bool) -> Jet:
    return Jet(
        *(
            None if part is None else kernel.variance * part
            for part in differentiate(kernel.kernel, x, y, second)
        )
    )


def _sum(kernel: Sum, x: Array, y: Array, second: bool) -> Jet:
    jets = [differentiate(part, x, y, second) for part in kernel.kernels]
    return Jet(*(sum(parts) if parts[0] is not None else None for parts in zip(*jets, strict=True)))


def _product(kernel: Product, x: Array, y: Array, second: bool) -> Jet:
    seen = [part.features for part in kernel.kernels if isinstance(part, Select)]
    if len(seen) == len(kernel.kernels) and len(set().union(*seen)) == sum(map(len, seen)):
        return _separate(kernel, x, y, second)
    first, *others = (differentiate(part, x, y, second) for part in kernel.kernels)
    for jet in others:
        first = multiply(first, jet)
    return first


def _separate(kernel: Product, x: Array, y: Array, second: bool) -> Jet:
    """Derivatives of a product of parts that see different columns: each entry is written once."""
    xp, d = namespace(x, y), x.shape[-1]
    parts: list[Any] = list(kernel.kernels)
    jets = [differentiate(part.kernel, part.columns(x), part.columns(y), second) for part in parts]
    places = [list(part.features) for part in parts]
    value: Any = prod((jet.value for jet in jets[1:]), start=jets[0].value)

    def rest(*without: int) -> Array:
        """Return the product of the values of all parts but these."""
        kept = [jet.value for k, jet in enumerate(jets) if k not in without]
        whole: Any = prod(kept, start=0.0 * value + 1.0)
        return whole[..., None]

    left = xp.zeros((*value.shape, d))
    for i, jet in enumerate(jets):
        left[..., places[i]] = jet.left * rest(i)
    if not second:
        return Jet(value, left)
    right, mixed = xp.zeros((*value.shape, d)), xp.zeros((*value.shape, d, d))
    for i, jet in enumerate(jets):
        right[..., places[i]] = jet.right * rest(i)
        rows = [[place] for place in places[i]]
        mixed[..., rows, places[i]] = jet.mixed * rest(i)[..., None]
        for j, other in enumerate(jets):
            if j != i:
                mixed[..., rows, places[j]] = _outer(jet.left * rest(i, j), other.right)
    return Jet(value, left, right, mixed)


def multiply(a: Jet, b: Jet) -> Jet:
    """∂(ab) = ∂a b + a ∂b, and ∂∂'(ab) = ∂∂'a b + ∂a ∂'b + ∂b ∂'a + a ∂∂'b."""
    va, vb = a.value[..., None], b.value[..., None]
    value, left = a.value * b.value, a.left * vb + va * b.left
    if a.mixed is None or b.mixed is None or a.right is None or b.right is None:
        return Jet(value, left)
    mixed = (
        a.mixed * vb[..., None]
        + _outer(a.left, b.right)
        + _outer(b.left, a.right)
        + va[..., None] * b.mixed
    )
    return Jet(value, left, a.right * vb + va * b.right, mixed)


def _select(kernel: Select, x: Array, y: Array, second: bool) -> Jet:
    jet = differentiate(kernel.kernel, kernel.columns(x), kernel.columns(y), second)
    xp, d, features = namespace(x, y), x.shape[-1], list(kernel.features)

    def spread(values: Array) -> Array:
        result = xp.zeros((*values.shape[:-1], d))
        result[..., features] = values
        return result

    if jet.right is None or jet.mixed is None:
        return Jet(jet.value, spread(jet.left))
    mixed = xp.swapaxes(spread(xp.swapaxes(spread(jet.mixed), -1, -2)), -1, -2)
    return Jet(jet.value, spread(jet.left), spread(jet.right), mixed)


def _full_additive(kernel: FullAdditive, x: Array, y: Array, second: bool) -> Jet:
    """∂k/∂xᵢ = zᵢ' Σₙ σₙ² eₙ₋₁ without i; ∂²k/∂xᵢ∂yⱼ has eₙ₋₂ without i and j.

    They are products of a prefix and a suffix: nothing is subtracted.
    """
    xp = namespace(x, y)
    d = len(kernel.bases)
    jets = [
        differentiate(base, x[..., i : i + 1], y[..., i : i + 1], second)
        for i, base in enumerate(kernel.bases)
    ]
    z = [jet.value for jet in jets]
    variances = kernel.order_variances.tolist()
    value = kernel.combine(z)
    without = leave_one_out(z, variances)
    left = xp.stack(
        [jet.left[..., 0] * rest for jet, rest in zip(jets, without, strict=True)], axis=-1
    )
    if not second:
        return Jet(value, left)
    right = xp.stack(
        [jet.right[..., 0] * rest for jet, rest in zip(jets, without, strict=True)], axis=-1
    )
    mixed = xp.zeros((*left.shape, d))
    for i in range(d):
        mixed[..., i, i] = jets[i].mixed[..., 0, 0] * without[i]
        others = [j for j in range(d) if j != i]
        for j, rest in zip(
            others, leave_one_out([z[j] for j in others], variances[1:]), strict=True
        ):
            mixed[..., i, j] = jets[i].left[..., 0] * jets[j].right[..., 0] * rest
    return Jet(value, left, right, mixed)


def leave_one_out(z: list[Array], variances: list[float]) -> list[Array]:
    """Return ∂/∂zᵢ of Σₙ σₙ² eₙ(z) for every i: Σₙ σₙ² eₙ₋₁ of the others.

    Reverse mode through the recurrence eₙ ← eₙ + zᵢeₙ₋₁: 2dD additions and products for all i
    together, of positive terms where z is positive, so nothing cancels. In chunks that stay in the
    cache, for the recurrence passes over them 2d times.
    """
    if not z or not variances:
        return [namespace(part).zeros_like(part) for part in z]
    xp = namespace(z[0])
    flat, orders = xp.stack([part.reshape(-1) for part in z]), len(variances)  # (d, N)
    result, weights = xp.empty_like(flat), xp.asarray(variances)[:, None]
    chunk = max(64, chunk_rows(flat, 4 * orders))
    for start in range(0, flat.shape[1], chunk):
        part = flat[:, start : start + chunk]
        e = xp.zeros((len(z), orders, part.shape[1]))  # e[i, n] = eₙ of the first i
        e[:, 0] = 1.0
        for i in range(1, len(z)):
            e[i, 1:] = e[i - 1, 1:] + part[i - 1] * e[i - 1, :-1]
        adjoint = weights + 0.0 * part[:1]  # of e₁ … e_D
        for i in range(len(z) - 1, -1, -1):
            result[i, start : start + chunk] = (adjoint * e[i]).sum(axis=0)
            adjoint[:-1] += part[i] * adjoint[1:]
    return [row.reshape(z[0].shape) for row in result]


def _warped(kernel: Warped, x: Array, y: Array, second: bool) -> Jet:
    """The chain rule: ∂k/∂xᵢ = Σⱼ Jⱼᵢ ∂ⱼk₁(φ(x), φ(y))."""
    jet = differentiate(kernel.kernel, kernel.features(x), kernel.features(y), second)
    by_columns: Any = kernel.map
    if getattr(by_columns, "columnwise", False):
        rates = (by_columns.rates(p.reshape(-1, p.shape[-1])).reshape(p.shape) for p in (x, y))
        return _columnwise(jet, *rates)
    xp, Jx = namespace(x, y), kernel.slopes(x)
    left = (jet.left[..., None, :] @ Jx)[..., 0, :]
    if jet.right is None or jet.mixed is None:
        return Jet(jet.value, left)
    Jy = kernel.slopes(y)
    return Jet(
        jet.value,
        left,
        (jet.right[..., None, :] @ Jy)[..., 0, :],
        xp.swapaxes(Jx, -1, -2) @ jet.mixed @ Jy,
    )


def _columnwise(jet: Jet, rate: Array, other: Array) -> Jet:
    """The chain rule where φⱼ depends on xⱼ alone."""
    if jet.right is None or jet.mixed is None:
        return Jet(jet.value, jet.left * rate)
    mixed = rate[..., :, None] * jet.mixed * other[..., None, :]
    return Jet(jet.value, jet.left * rate, jet.right * other, mixed)


def _rescaled(kernel: Rescaled, x: Array, y: Array, second: bool) -> Jet:
    """The product rule with the rank-one kernel s(x)s(y)."""
    sx, sy, slope = kernel.scales(x), kernel.scales(y), kernel.slopes(x)
    value, left = sx * sy, slope * sy[..., None]
    if second:
        other = kernel.slopes(y)
        scales = Jet(value, left, sx[..., None] * other, _outer(slope, other))
    else:
        scales = Jet(value, left)
    return multiply(scales, differentiate(kernel.kernel, x, y, second))


def _function(kernel: Function, x: Array, y: Array, second: bool) -> Jet:
    """Given derivatives, or automatic ones; ∂k/∂y follows from the symmetry of k."""
    xp = namespace(x, y)
    shape = (x + 0.0 * y).shape
    if kernel.gradient is None or kernel.mixed is None:
        pairs = (xp.broadcast_to(part, shape).reshape(-1, shape[-1]) for part in (x, y))
        parts = autodiff.kernel_derivatives(kernel.value, next(pairs), next(pairs), second)
        ends = (), shape[-1:], shape[-1:], (shape[-1], shape[-1])
        jet = Jet(
            *(part.reshape(*shape[:-1], *end) for part, end in zip(parts, ends, strict=False))
        )
        if not all(xp.isfinite(part).all() for part in jet if part is not None):
            raise InvalidInputError(
                "value: automatic differentiation gave derivatives that are not finite; a square"
                " root has none at x = x'"
            )
        return jet
    value, left = kernel.values(x, y), returned("gradient", kernel.gradient(x, y), tuple(shape))
    if not second:
        return Jet(value, left)
    right = returned("gradient", kernel.gradient(y, x), tuple(shape))
    return Jet(value, left, right, returned("mixed", kernel.mixed(x, y), (*shape, shape[-1])))


for _type in (SquaredExponential, Matern, Matern32, Matern52, RationalQuadratic):
    register_derivatives(_type, _radial)
for _type in (Linear, Polynomial):
    register_derivatives(_type, _polynomial)
register_derivatives(Periodic, _periodic)
register_derivatives(Cosine, _cosine)
register_derivatives(Constant, _constant)
register_derivatives(Categorical, lambda kernel, *at: _polynomial(kernel.polynomial(), *at))
register_derivatives(Scale, _scale)
register_derivatives(Sum, _sum)
register_derivatives(Product, _product)
register_derivatives(Select, _select)
register_derivatives(FullAdditive, _full_additive)
register_derivatives(Warped, _warped)
register_derivatives(Rescaled, _rescaled)
register_derivatives(Function, _function)
