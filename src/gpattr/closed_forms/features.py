"""What operators make of a basis: one mean gradient for each kind, ∫₀¹ ∂φⱼ/∂xᵢ(b + t(x − b)) dt.

Attributions of φⱼ are that times xᵢ − bᵢ; a gradient at a point is that along a path of no length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product as all_combinations
from typing import Any

from gpattr._core.arguments import a_function, subclass
from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.validation import check_choice
from gpattr.bases import Basis, Combined, Fourier, Hilbert, Monomials
from gpattr.closed_forms.quadrature.fixed_rules import METHODS, check_steps, nodes_and_weights
from gpattr.exceptions import UnsupportedModelError
from gpattr.operators import Operator, Paths, Points, Sites
from gpattr.special.quadrature import gauss_legendre
from gpattr.special.trigonometric import mean_slopes

MeanGradient = Callable[[Any, Paths], Array]  # (basis, paths) -> (n, d, p)
FEATURES: dict[type[Basis], MeanGradient] = {}


def register_features(basis: type[Basis], mean_gradient: MeanGradient) -> None:
    """Enter the formula of a basis: it returns ∫₀¹ ∂φⱼ/∂xᵢ dt along paths, (n, d, p), with no
    trouble where x = b.
    """
    subclass(Basis, "a class of bases")("basis", basis)
    a_function("mean_gradient", mean_gradient)
    FEATURES[basis] = mean_gradient


def features(
    op: Operator, basis: Basis, X: Array, *, method: str = "auto", n_steps: int | None = None
) -> Array:
    """Return 𝒜ᵢφⱼ at the rows of X, (n, d, p)."""
    check_choice("method", method, METHODS)
    average = _averaging(basis, method, check_steps(method, n_steps))
    total = None
    for weight, sites in op.terms(X):
        paths = _path(sites, basis)
        value = average(paths)
        if isinstance(sites, Paths):
            value *= paths.step[:, :, None]
        if weight != 1.0:
            value *= weight
        total = value if total is None else total + value
    assert total is not None
    return total


def weighted_features(op: Operator, basis: Basis, X: Array, w: Array) -> tuple[Array, Array]:
    """Return Σⱼ wⱼ 𝒜ᵢφⱼ, (n, d), for w (p,), by closed forms, and a bound on its error, (n,).

    Waves take two matrix products for all features together, and the array (n, d, p) is never
    formed."""
    xp = namespace(X)
    value, size = xp.zeros_like(X), xp.zeros_like(X)
    for weight, sites in op.terms(X):
        paths = _path(sites, basis)
        if isinstance(basis, Fourier):
            V = xp.asarray(basis.frequencies)
            weighted = _wave_slopes(V, _origin(basis, X), paths) * w
            largest = (
                w[: len(V)] ** 2 + w[len(V) :] ** 2
            ) ** 0.5  # sine and cosine of one wave together
            both = [
                product(weighted[:, : len(V)] + weighted[:, len(V) :], V),
                product(largest, abs(V)),
            ]
        else:
            part = _closed_form(basis)(basis, paths)
            sizes = (
                _monomials(basis, paths, abs) if isinstance(basis, Monomials) else abs(part)
            )  # what a sum may cancel
            both = [product(part, w), product(sizes, abs(w))]
        step = paths.step if isinstance(sites, Paths) else 1.0
        value = value + weight * step * both[0]
        size = size + weight * abs(step) * both[1]
    return value, (32.0 + 2.0 * basis.phase(X)) * EPS * xp.max(size, axis=1)


def method_name(method: str, n_steps: int | None) -> str:
    """Return how the features were evaluated, in words."""
    if n_steps is not None:
        return f"{method} rule, {n_steps} steps"
    return "quadrature" if method == "quadrature" else "closed form"


def _path(sites: Sites, basis: Basis) -> Paths:
    if isinstance(sites, Points):
        return Paths(sites.X, sites.X)
    if not isinstance(sites, Paths):
        raise UnsupportedModelError(
            f"{type(sites).__name__}: bases know points and straight paths only"
        )
    basis.check_rows("baseline", sites.start)
    return sites


def _closed_form(basis: Basis) -> MeanGradient:
    if type(basis) not in FEATURES:
        raise UnsupportedModelError(
            f"{type(basis).__name__}: no formula is known; gpattr.closed_forms.register_features"
            " enters one"
        )
    return FEATURES[type(basis)]


def _averaging(basis: Basis, method: str, n_steps: int | None) -> Callable[[Paths], Array]:
    exact = _closed_form(basis)
    if method in ("auto", "exact"):
        return lambda paths: exact(basis, paths)

    def by_rule(paths: Paths, nodes: Array, weights: Array) -> Array:
        total = 0.0
        for t, w in zip(nodes.tolist(), weights.tolist(), strict=True):
            point = paths.at([t])[0]
            total = total + w * exact(basis, Paths(point, point))
        return total  # pyright: ignore[reportReturnType]

    if n_steps is not None:
        return lambda paths: by_rule(paths, *nodes_and_weights(method, n_steps))

    def converged(paths: Paths) -> Array:
        # 16 nodes integrate a wave exactly over ten radians and more.
        span = basis.phase(paths.stop) + basis.phase(paths.start)
        degree = basis.degree if isinstance(basis, Monomials) else 0
        return by_rule(paths, *gauss_legendre(max(16, degree), max(1, math.ceil(span / 10.0))))

    return converged


def _monomials(
    basis: Monomials, paths: Paths, part: Callable[[Array], Array] = lambda gradient: gradient
) -> Array:
    """A polynomial is integrated exactly by Gauss–Legendre with as many nodes as half its degree
    asks for.

    Points of the path are found in the basis's own coordinates: far from the origin they would lose
    their digits."""
    total, local = 0.0, Paths(basis.local(paths.start), basis.local(paths.stop))
    for t, w in zip(
        *(rule.tolist() for rule in gauss_legendre(basis.degree // 2 + 1)), strict=True
    ):
        total = total + w * part(basis.local_gradient(local.at([t])[0]))
    return total  # pyright: ignore[reportReturnType]


def _origin(basis: Fourier, X: Array) -> Any:
    return 0.0 if basis.origin is None else namespace(X).asarray(basis.origin)


def _wave_slopes(V: Array, origin: Any, paths: Paths) -> Array:
    """Return the mean derivatives of [sin(v·(x − o)), cos(v·(x − o))] by their phase, (n, 2M).

    With θ = v·(x − b) and the phase in the middle of the path, mid: cos(mid) sinc(θ/2) and
    −sin(mid) sinc(θ/2). Nothing is divided by θ, so a frequency orthogonal to the path is no
    special case."""
    middle = 0.5 * ((paths.start - origin) + (paths.stop - origin))
    return mean_slopes(product(middle, V.T), product(0.5 * paths.step, V.T))


def _fourier(basis: Fourier, paths: Paths) -> Array:
    xp = namespace(paths.stop)
    V = xp.asarray(basis.frequencies)
    slopes = _wave_slopes(V, _origin(basis, V), paths)
    waves = xp.empty((V.shape[1], 2 * len(V)))  # in the order in which the result is wanted
    waves[:, : len(V)] = waves[:, len(V) :] = V.T
    return slopes[:, None, :] * waves


def _hilbert(basis: Hilbert, paths: Paths) -> Array:
    """A product of sines is a sum of waves: Πᵢ sin aᵢ = 2^(1−d) Σₛ cos(Σᵢ sᵢaᵢ − (π/2)Σᵢ sᵢ), over
    signs with s₁ = +1.
    """
    xp = namespace(paths.stop)
    omega, d = xp.asarray(basis.frequencies), basis.n_features
    lower = xp.asarray(basis.lower)
    total = 0.0
    for tail in all_combinations((1.0, -1.0), repeat=d - 1):
        signs = (1.0, *tail)
        V = omega * xp.asarray(signs)
        slopes = _wave_slopes(V, lower, paths)
        sines, cosines = slopes[:, : len(V)], slopes[:, len(V) :]
        quarter = int(sum(signs)) % 4
        slope = (cosines, sines, -cosines, -sines)[quarter]
        total = total + slope[:, None, :] * V.T
    return total * 2.0 ** (1 - d)  # pyright: ignore[reportReturnType]


def _combined(basis: Combined, paths: Paths) -> Array:
    xp = namespace(paths.stop)
    n, d = paths.shape
    result, at = xp.zeros((n, d, len(basis))), 0
    for part, some in zip(basis.parts, basis.columns, strict=True):
        columns = list(some)
        result[:, columns, at : at + len(part)] = _closed_form(part)(part, paths.select(columns))
        at += len(part)
    return result


register_features(Monomials, _monomials)
register_features(Fourier, _fourier)
register_features(Hilbert, _hilbert)
register_features(Combined, _combined)
