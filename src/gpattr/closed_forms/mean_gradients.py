"""Mean gradients of bases along paths, ∫₀¹ ∂φⱼ/∂xᵢ(b + t(x − b)) dt: one formula for each kind.

Integrated gradients of φⱼ are that times xᵢ − bᵢ; the gradient at a point is that along a path of
no length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product as all_combinations
from typing import Any

from gpattr._core.arguments import a_function, subclass
from gpattr._core.array import Array, namespace, product
from gpattr.bases import Basis, Combined, Fourier, Hilbert, Monomials
from gpattr.closed_forms.quadrature.fixed_rules import nodes_and_weights
from gpattr.closed_forms.table import BASES, BASIS_SCHEMES, BasisFormulas
from gpattr.exceptions import UnsupportedModelError
from gpattr.operators import Gradient, IntegratedGradients, Paths
from gpattr.special.quadrature import gauss_legendre
from gpattr.special.trigonometric import mean_slopes

Pair = tuple[Array, Array]


@dataclass(frozen=True)
class MeanGradient:
    """The mean gradient of a basis along paths, (n, d, p), and its sum over functions.

    ``contract(basis, paths, w)`` returns Σⱼ wⱼ · and the same of absolute values, (n, d) each, as
    far as these broadcast; it need not form (n, d, p).
    """

    values: Callable[[Any, Paths], Array]
    contract: Callable[[Any, Paths, Array], Pair]


MEAN_GRADIENTS: dict[type[Basis], MeanGradient] = {}


def register_mean_gradient(
    basis: type[Basis],
    mean_gradient: Callable[[Any, Paths], Array],
    *,
    contract: Callable[[Any, Paths, Array], Pair] | None = None,
) -> None:
    """Enter the formula of a basis: ``mean_gradient(basis, paths)`` returns ∫₀¹ ∂φⱼ/∂xᵢ dt.

    It is (n, d, p), and finite where x = b.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.bases import Basis
    >>> from gpattr.closed_forms import apply_to_basis, register_mean_gradient
    >>> from gpattr.operators import IntegratedGradients
    >>> class Identity(Basis):
    ...     n_features = 1
    ...
    ...     def __len__(self):
    ...         return 1
    ...
    ...     def __call__(self, X):
    ...         return X
    >>> register_mean_gradient(Identity, lambda basis, paths: np.ones((len(paths.stop), 1, 1)))
    >>> apply_to_basis(IntegratedGradients(np.zeros(1)), Identity(), np.array([[3.0]]))
    array([[[3.]]])
    """
    subclass(Basis, "a class of bases")("basis", basis)
    a_function("mean_gradient", mean_gradient)
    if contract is not None:
        a_function("contract", contract)

    def contracted(b: Basis, paths: Paths, w: Array) -> Pair:
        values = mean_gradient(b, paths)
        return product(values, w), product(abs(values), abs(w))

    MEAN_GRADIENTS[basis] = MeanGradient(
        mean_gradient, contracted if contract is None else contract
    )


def mean_gradient_of(basis: Basis) -> MeanGradient:
    """Return the formula of a basis; refuse by name one that has none."""
    if type(basis) not in MEAN_GRADIENTS:
        raise UnsupportedModelError(
            f"{type(basis).__name__}: there is no formula for its mean gradient;"
            " gpattr.closed_forms.register_mean_gradient adds one"
        )
    return MEAN_GRADIENTS[type(basis)]


def gradient_of_basis(operator: Gradient, basis: Basis) -> BasisFormulas:
    """Return ∂φⱼ/∂xᵢ at points."""
    formula = mean_gradient_of(basis)
    return BasisFormulas(
        images=lambda points: formula.values(basis, Paths(points.X, points.X)),
        contract=lambda points, w: formula.contract(basis, Paths(points.X, points.X), w),
    )


def attributions_of_basis(
    basis: Basis, average: Callable[[Paths], Array] | None = None, method: str = "closed form"
) -> BasisFormulas:
    """Return (xᵢ − bᵢ)∫∂ᵢφⱼ dt along paths, with ``average`` for the integral if it is given."""
    formula = mean_gradient_of(basis)

    def images(paths: Paths) -> Array:
        basis.check_rows("baseline", paths.start)
        value = formula.values(basis, paths) if average is None else average(paths)
        value *= paths.step[:, :, None]
        return value

    def contract(paths: Paths, w: Array) -> Pair:
        basis.check_rows("baseline", paths.start)
        value, size = formula.contract(basis, paths, w)
        return paths.step * value, abs(paths.step) * size

    return BasisFormulas(images, contract, method)


def attributions_by_scheme(
    operator: IntegratedGradients, basis: Basis, method: str, n_steps: int | None
) -> BasisFormulas:
    """Return the same with a quadrature rule; sums over functions stay exact, for comparison."""
    values = mean_gradient_of(basis).values

    def average(paths: Paths) -> Array:
        if n_steps is None:
            # 16 nodes integrate a wave exactly over ten radians and more.
            phases = basis.phase(paths.stop) + basis.phase(paths.start)
            order = max(16, basis.degree if isinstance(basis, Monomials) else 0)
            rule = gauss_legendre(order, max(1, math.ceil(phases / 10.0)))
        else:
            rule = nodes_and_weights(method, n_steps)
        total = 0.0 * paths.stop[:, :, None]
        for t, w in zip(*(part.tolist() for part in rule), strict=True):
            point = paths.at([t])[0]
            total = total + w * values(basis, Paths(point, point))
        return total

    name = "quadrature" if n_steps is None else f"{method} rule, {n_steps} steps"
    return attributions_of_basis(basis, average, name)


def _monomials(
    basis: Monomials, paths: Paths, part: Callable[[Array], Array] = lambda gradient: gradient
) -> Array:
    """Polynomials of degree D are integrated exactly by Gauss–Legendre with ⌊D/2⌋ + 1 nodes.

    Points of the path are found in the basis's own coordinates: far from the origin they would lose
    their digits.
    """
    local = Paths(basis.local(paths.start), basis.local(paths.stop))
    total = 0.0 * local.stop[:, :, None]
    for t, w in zip(
        *(rule.tolist() for rule in gauss_legendre(basis.degree // 2 + 1)), strict=True
    ):
        total = total + w * part(basis.local_gradient(local.at([t])[0]))
    return total


def _absolute_monomials(basis: Monomials, paths: Paths, w: Array) -> Pair:
    sizes = _monomials(basis, paths, abs)  # before anything cancels
    return product(_monomials(basis, paths), w), product(sizes, abs(w))


def _origin(basis: Fourier, X: Array) -> Any:
    return 0.0 if basis.origin is None else namespace(X).asarray(basis.origin)


def _wave_slopes(V: Array, origin: Any, paths: Paths) -> Array:
    """Return the mean derivatives of [sin(v·(x − o)), cos(v·(x − o))] by their phase, (n, 2M).

    With θ = v·(x − b) and the phase in the middle of the path, mid: cos(mid) sinc(θ/2) and
    −sin(mid) sinc(θ/2). Nothing is divided by θ, so a frequency orthogonal to the path is no
    special case.
    """
    middle = 0.5 * ((paths.start - origin) + (paths.stop - origin))
    return mean_slopes(product(middle, V.T), product(0.5 * paths.step, V.T))


def _fourier(basis: Fourier, paths: Paths) -> Array:
    xp = namespace(paths.stop)
    V = xp.asarray(basis.frequencies)
    slopes = _wave_slopes(V, _origin(basis, V), paths)
    waves = xp.empty((V.shape[1], 2 * len(V)))  # in the order in which the result is wanted
    waves[:, : len(V)] = waves[:, len(V) :] = V.T
    return slopes[:, None, :] * waves


def _contracted_waves(basis: Fourier, paths: Paths, w: Array) -> Pair:
    """Return two matrix products for all features together; (n, d, p) is never formed."""
    V = namespace(paths.stop).asarray(basis.frequencies)
    weighted = _wave_slopes(V, _origin(basis, paths.stop), paths) * w
    # Sine and cosine of one wave together.
    largest = (w[: len(V)] ** 2 + w[len(V) :] ** 2) ** 0.5
    value = product(weighted[:, : len(V)] + weighted[:, len(V) :], V)
    return value, product(largest, abs(V))


def _hilbert(basis: Hilbert, paths: Paths) -> Array:
    """Πᵢ sin aᵢ = 2^(1−d) Σₛ cos(Σᵢ sᵢaᵢ − (π/2)Σᵢ sᵢ), waves over signs s with s₁ = +1."""
    xp = namespace(paths.stop)
    omega, d = xp.asarray(basis.frequencies), basis.n_features
    lower = xp.asarray(basis.lower)
    total = 0.0 * paths.stop[:, :, None]
    for tail in all_combinations((1.0, -1.0), repeat=d - 1):
        signs = (1.0, *tail)
        V = omega * xp.asarray(signs)
        slopes = _wave_slopes(V, lower, paths)
        sines, cosines = slopes[:, : len(V)], slopes[:, len(V) :]
        quarter = int(sum(signs)) % 4
        slope = (cosines, sines, -cosines, -sines)[quarter]
        total = total + slope[:, None, :] * V.T
    return total * 2.0 ** (1 - d)


def _combined(basis: Combined, paths: Paths) -> Array:
    xp = namespace(paths.stop)
    n, d = paths.shape
    result, at = xp.zeros((n, d, len(basis))), 0
    for part, some in zip(basis.parts, basis.columns, strict=True):
        columns = list(some)
        result[:, columns, at : at + len(part)] = mean_gradient_of(part).values(
            part, paths.select(columns)
        )
        at += len(part)
    return result


register_mean_gradient(Monomials, _monomials, contract=_absolute_monomials)
register_mean_gradient(Fourier, _fourier, contract=_contracted_waves)
register_mean_gradient(Hilbert, _hilbert)
register_mean_gradient(Combined, _combined)
BASES[Gradient, Basis] = gradient_of_basis
BASES[IntegratedGradients, Basis] = lambda operator, basis: attributions_of_basis(basis)
BASIS_SCHEMES[IntegratedGradients] = attributions_by_scheme
