"""Kernels of other libraries for which no formula is known, differentiated automatically.

Values are the library's own. Quadrature of derivatives, alone and inside sums, products, scales and
selections, bounds its own error, and compares with values what it adds up to. What can be known
beforehand is checked at the training rows: that k(x, x') depends on x and x' alone, that its
derivatives agree with its values, and that functions of the kernel have gradients at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr.closed_forms.derivatives import Jet, register_derivatives
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Kernel
from gpattr.special.quadrature import gauss_legendre

CHUNK = 2**15  # pairs that are differentiated at a time
SAME = 1e-6  # of the largest value: by how much values for pairs may differ from a matrix's
SHIFTS = (1e-4, 1e-5, 1e-6, 1e-7)  # length-scales by which equal points are moved apart
NO_LIMIT = 1e-3  # relative: derivatives that change by more from shift to shift have no limit
ROWS = 6  # training rows at which a kernel is tried
PANELS = (2, 8, 32, 128)  # of paths between them
CONVERGED, JUMPED = 1e-5, 1e-4  # of σ²: change from one number of panels to the next, and the gap


@dataclass(frozen=True, eq=False)
class Differentiated(Kernel):
    """k(x, x') of another library.

    ``matrix(X, Z)`` returns k(xₙ, zₘ), (n, m), and ``variances(X)`` k(xₙ, xₙ), (n,).
    ``derivatives(x, y, second)`` takes paired rows (N, d) to k, ∂k/∂x and, with ``second``, ∂k/∂y
    and ∂²k/∂xᵢ∂yⱼ. ``lengthscale`` is a hint, the distance over which k changes. Derivatives may
    have kinks anywhere, and these are looked for. A kernel of ``vertices`` is the library's at
    one-hot rows, and only there.
    """

    name: str
    matrix: Callable[[Array, Array], Array] = field(repr=False)
    variances: Callable[[Array], Array] = field(repr=False)
    derivatives: Callable[[Array, Array, bool], tuple[Array, ...]] = field(repr=False)
    lengthscale: float | None = None
    vertices: bool = False

    @property
    def smooth(self) -> bool:
        return False

    @property
    def differentiated(self) -> str:
        """The name of a kernel whose derivatives come from automatic differentiation."""
        return self.name

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.matrix(X, Z)

    def diagonal(self, X: Array) -> Array:
        return self.variances(X)

    def n_lengthscales(self, step: Array) -> Array:
        return (step * step).sum(axis=-1) ** 0.5 / (self.lengthscale or np.inf)

    def check_features(self, d: int) -> None:
        pass

    def check_derivatives(self, X: Array) -> None:
        """Raise `UnsupportedModelError` for a kernel that integrated gradients cannot be had of."""
        rows = X[:: max(1, len(X) // ROWS)][:ROWS]
        sigma2 = self._require_pairs(rows)
        limit, own = at_pairs(self, rows, rows, True)[0], self.derivatives(rows, rows, False)[0]
        if not np.abs(to_numpy(limit - own)).max() <= SAME * sigma2:
            raise self.refusal("its values jump where x = x', as those of noise do")
        if sigma2 > 0 and len(rows) > 1:
            self._require_completeness(rows, sigma2)

    def _require_pairs(self, rows: Array) -> float:
        """Refuse a kernel that is random or depends on more than the two rows; return σ²."""
        n = len(rows)
        K, again = (to_numpy(self.matrix(rows, rows)) for _ in range(2))
        if not np.isfinite(K).all():
            raise self.refusal("its values at the training rows are not finite")
        largest = float(np.abs(K).max())
        i, j = np.divmod(np.arange(n * n), n)
        pairs = to_numpy(self.derivatives(rows[i], rows[j], False)[0]).reshape(n, n)
        if not np.abs(K - again).max() <= SAME * largest:
            raise self.refusal("its values are random")
        if not np.abs(K - K.T).max() <= SAME * largest:
            raise self.refusal("it is not symmetric")
        if not np.abs(K - pairs).max() <= SAME * largest:
            raise self.refusal("its values depend on more than the two rows they are of")
        return largest

    def _require_completeness(self, rows: Array, sigma2: float) -> None:
        """Refuse derivatives that disagree with the values: such values jump, or are rounded."""
        start, step = rows[:-1], rows[1:] - rows[:-1]
        for second in (False, True):
            previous = None
            for panels in PANELS:
                t, w = gauss_legendre(8, panels)
                value, change = _integrated(self, start, step, rows, t, w, second)
                unit = sigma2 if not second else max(sigma2, float(np.abs(change).max()))
                gap = float(np.abs(value - change).max())
                if gap <= JUMPED * unit:
                    break
                if previous is not None and np.abs(value - previous).max() <= CONVERGED * unit:
                    what = "gradient changes" if second else "values change"
                    raise self.refusal(
                        f"its {what} by {gap / unit:.1e} of their size where automatic"
                        " derivatives are zero or of something else, as of a rounded input"
                    )
                previous = value

    def refusal(self, reason: str) -> UnsupportedModelError:
        """Return the error for a kernel that cannot be explained."""
        return UnsupportedModelError(f"kernel: {self.name} is not supported: {reason}")


def _integrated(
    kernel: Differentiated, start: Array, step: Array, Z: Array, t: Any, w: Any, second: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return integrals of derivatives along paths, seen from points z, and their true values.

    The integrals are of ∂k/∂x along x, or with ``second`` of ∂²k/∂x∂y along y.
    """
    xp = namespace(start)
    (n, d), m, T = start.shape, len(Z), len(t)
    points = start[:, None, :] + xp.asarray(t)[:, None] * step[:, None, :]  # (n, T, d)
    path = xp.broadcast_to(points[:, :, None, :], (n, T, m, d)).reshape(-1, d)
    others = xp.broadcast_to(Z, (n, T, m, d)).reshape(-1, d)
    ends = [
        xp.broadcast_to(end[:, None, :], (n, m, d)).reshape(-1, d) for end in (start, start + step)
    ]
    seen = xp.broadcast_to(Z, (n, m, d)).reshape(-1, d)
    if second:
        slopes = to_numpy(at_pairs(kernel, others, path, True)[3]).reshape(n, T, m, d, d)
        value = np.einsum("t,ntmij,nj->nmi", w, slopes, to_numpy(step))
        low, high = (to_numpy(at_pairs(kernel, seen, end, False)[1]) for end in ends)
        return value, (high - low).reshape(n, m, d)
    slopes = to_numpy(at_pairs(kernel, path, others, False)[1]).reshape(n, T, m, d)
    value = np.einsum("t,ntmi,ni->nm", w, slopes, to_numpy(step))
    low, high = (to_numpy(at_pairs(kernel, end, seen, False)[0]) for end in ends)
    return value, (high - low).reshape(n, m)


def at_pairs(kernel: Differentiated, x: Array, y: Array, second: bool) -> tuple[Array, ...]:
    """Return k and its derivatives for paired rows (N, d); where x = y, their limits.

    At equal points a square root has no derivative, and a distance that a library keeps from zero
    has one that is zero.
    """
    xp = namespace(x, y)
    chunks = [
        kernel.derivatives(x[at : at + CHUNK], y[at : at + CHUNK], second)
        for at in range(0, len(x), CHUNK)
    ]
    parts = tuple(xp.concatenate(part, axis=0) for part in zip(*chunks, strict=True))
    finite = xp.isfinite(sum(part.reshape(len(x), -1).sum(axis=1) for part in parts))
    equal = (x == y).all(axis=1)
    doubtful = xp.nonzero((equal | ~finite) if second else ~finite)[0]
    if not len(doubtful):
        return parts
    try:
        limits = _limits(kernel, x[doubtful], y[doubtful], second)
    except _OutsideError:
        if finite.all():  # at the edge of where the library evaluates its kernel
            return parts
        raise
    for part, limit in zip(parts, limits, strict=True):
        own = part[doubtful]
        # A finite derivative at equal points stands if it agrees with the points around.
        size = xp.max(xp.abs(limit.reshape(len(limit), -1)), axis=1)
        near = xp.abs(own - limit) <= NO_LIMIT * size.reshape(-1, *[1] * (own.ndim - 1))
        kept = near | (xp.isfinite(own) & ~equal[doubtful].reshape(-1, *[1] * (own.ndim - 1)))
        part[doubtful] = xp.where(kept, own, limit)
    return parts


class _OutsideError(UnsupportedModelError):
    """The library does not evaluate its kernel at points that were moved."""


def _limits(kernel: Differentiated, x: Array, y: Array, second: bool) -> list[Array]:
    """Return derivatives as x + hs and y − hs meet, by the shift h at which they change least."""
    xp, n = namespace(x), len(x)
    tried = [_extrapolated(kernel, x, y, second, shift) for shift in SHIFTS]
    changes = np.stack([_change(coarse, fine) for coarse, fine in pairwise(tried)])
    if not (changes.min(axis=0) <= NO_LIMIT).all():
        apart = (to_numpy(x) != to_numpy(y)).any(axis=1)[~(changes.min(axis=0) <= NO_LIMIT)]
        raise kernel.refusal(
            "its automatic derivatives are not finite"
            if apart.all()
            else "its functions have no gradients: ∂²k/∂x∂x' has no limit where x = x'"
        )
    best = changes.argmin(axis=0) + 1
    rows = np.arange(n)
    return [xp.stack(each, axis=0)[best, rows] for each in zip(*tried, strict=True)]


def _extrapolated(
    kernel: Differentiated, x: Array, y: Array, second: bool, shift: float
) -> list[Array]:
    """Return 2f(h) − f(2h) of derivatives f, each the mean of those to either side.

    That is their limit up to h², also for a kink.
    """
    xp, (n, d) = namespace(x), x.shape
    size = xp.max(xp.abs(x), axis=1)
    unit = kernel.lengthscale or xp.where(size > 0, size, 1.0)[:, None]
    aside = unit * xp.asarray([shift * (-1.0) ** i / (1.0 + 0.1 * i) for i in range(d)]) + 0.0 * x
    factors = (1.0, -1.0, 2.0, -2.0)
    left, right = (
        xp.concatenate([point + sign * h * aside for h in factors], axis=0)
        for sign, point in ((1.0, x), (-1.0, y))
    )
    try:
        parts = kernel.derivatives(left, right, second)
    except UnsupportedModelError as error:
        raise _OutsideError(str(error)) from error
    each = (part.reshape(4, n, *part.shape[1:]) for part in parts)
    return [(f[0] + f[1]) - 0.5 * (f[2] + f[3]) for f in each]


def _change(coarse: list[Array], fine: list[Array]) -> np.ndarray:
    """Return by how much derivatives differ, relative to the largest of their kind, (n,)."""
    n = len(fine[0])
    worst, value = np.zeros(n), np.abs(to_numpy(fine[0]))
    for a, b in zip(coarse, fine, strict=True):
        first, second = (to_numpy(part).reshape(n, -1) for part in (a, b))
        size = np.maximum(np.abs(second).max(axis=1), 1e-6 * value)
        change = np.abs(first - second).max(axis=1) / np.maximum(size, 1e-300)
        worst = np.where(np.isfinite(change), np.maximum(worst, change), np.inf)
    return worst


def _jet(kernel: Differentiated, x: Array, y: Array, second: bool) -> Jet:
    xp = namespace(x, y)
    shape = (x + 0.0 * y).shape
    left, right = (xp.broadcast_to(part, shape).reshape(-1, shape[-1]) for part in (x, y))
    parts = at_pairs(kernel, left, right, second)
    ends = (), shape[-1:], shape[-1:], (shape[-1], shape[-1])
    return Jet(*(part.reshape(*shape[:-1], *end) for part, end in zip(parts, ends, strict=False)))


register_derivatives(Differentiated, _jet)
