"""Covariances through the leading eigenvectors of the data's covariance, the rest as noise.

With noise D and K̃ = D^(−½) k(Z, Z) D^(−½), let U (m, r) be orthonormal with UᵀK̃U = Λ and
K̃U = UΛ + F. For b = D^(−½) c, c a covariance with the data, w = Uᵀb and ρ² = ‖b‖² − ‖w‖²,

    cᵀ(K + D)⁻¹c' = wᵀ(1 + Λ)⁻¹w' + ρᵀ(I + K̃)⁻¹ρ',   ρ = b − Uw − F(1 + Λ)⁻¹w

exactly. On the complement of U, (I + K̃)⁻¹ lies between 1/(1 + μ) and 1, where μ bounds K̃ there;
so the second term is taken as h(b·b' − w·w') with h halfway between, and its error is at most

    ½(1 − 1/(1 + μ)) ρ² + h(2ρφv + φ²v²),   φ = ‖F(1 + Λ)^(−½)‖,  v = ‖(1 + Λ)^(−½)w‖

and rounding. Nothing is left out, so few eigenvectors suffice: the rest is mostly noise. μ is the
next eigenvalue, or, if larger, what the trace or the sum of squares of K̃ leaves beyond those that
are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpattr._core.array import EPS, Array, namespace, outer_products, product, to_numpy
from gpattr._core.memory import blocks

if TYPE_CHECKING:
    from gpattr.posteriors.exact import ExactPosterior
    from gpattr.posteriors.function_space import FunctionSpacePosterior

DENSE = 2048  # rows up to which all eigenvectors are computed
FIRST = 128  # eigenvectors that are tried first of more rows; then twice as many, and so on
SHARE = 4  # more than m/4 of them would take as long as a triangular solve
STEP = 16  # ranks are multiples of it
PASSES = 6  # products with K̃ that turn random vectors into eigenvectors
ROUNDING = 64.0 * EPS  # of ‖b‖²: twice what was seen
PILOTS = 16  # rows that choose the rank
SAFETY = 2.0


@dataclass(frozen=True, eq=False)
class Spectrum:
    """``vectors`` U (m, r) and ``values`` Λ (r,), and the remainder.

    ``root`` is D^(−½), (m,); ``rest`` is μ, (r + 1,), after as many eigenvectors, and
    ``residual`` φ², likewise.
    """

    root: Array
    vectors: Array
    values: Array
    rest: np.ndarray
    residual: np.ndarray

    @classmethod
    def of(cls, posterior: ExactPosterior, rank: int) -> Spectrum:
        """Return the leading eigenvectors: exact ones, or by subspace iteration from random ones.

        Half as many again are iterated, and bound what is beyond them.
        """
        Z, xp = posterior.inputs, namespace(posterior.inputs)
        m, root = len(Z), 1.0 / xp.sqrt(posterior.noise)
        if m <= DENSE:
            U = xp.eye(m)
        else:
            start = np.random.default_rng(0).standard_normal((m, rank + rank // 2))
            U = xp.asarray(start)
            for _ in range(PASSES):
                U = xp.linalg.qr(_times(posterior, root, U)[0])[0]
        image, square = _times(posterior, root, U)
        values, turn = xp.linalg.eigh(product(U.T, image))
        order = list(range(U.shape[1]))[::-1]  # the largest first
        values, turn = xp.maximum(values[order], 0.0), turn[:, order]
        vectors, image = product(U, turn), product(image, turn)
        lost = ((image - vectors * values) ** 2).sum(axis=0)
        trace = float((posterior.kernel.diagonal(Z) * root * root).sum())
        known, beyond = (
            to_numpy(values),
            min(
                max(trace - float(values.sum()), 0.0) + ROUNDING * trace,
                (max(square - float((values**2).sum()), 0.0) + ROUNDING * square) ** 0.5,
            ),
        )
        if m <= DENSE:
            beyond = ROUNDING * trace
        rest = np.append(known, 0.0)[: rank + 1]
        return cls(
            root,
            vectors[:, :rank],
            values[:rank],
            np.maximum(rest, beyond) + float(lost.sum()) ** 0.5,
            np.append(0.0, np.cumsum(to_numpy(lost / (1.0 + values))))[: rank + 1],
        )

    def __len__(self) -> int:
        return len(self.values)

    def truncated(self, rank: int) -> Spectrum:
        """Return the spectrum with fewer eigenvectors."""
        return Spectrum(
            self.root,
            self.vectors[:, :rank],
            self.values[:rank],
            self.rest[: rank + 1],
            self.residual[: rank + 1],
        )

    def explained(self, cross: Array) -> tuple[Array, Array]:
        """Return C(K + D)⁻¹Cᵀ, (n, q, q), for C (n, q, m), and a bound on its error, (n,)."""
        xp = namespace(cross)
        B = cross * self.root
        W = product(B, self.vectors)
        gram = outer_products(B)
        half = _halfway(self.rest[-1])
        less = half - 1.0 / (1.0 + self.values)  # falling
        last = int((less > 0).sum())
        value = half * gram - outer_products(W[:, :, :last] * xp.sqrt(less[:last]))
        if last < len(self):
            value = value + outer_products(W[:, :, last:] * xp.sqrt(-less[last:]))
        sizes = xp.diagonal(gram, axis1=1, axis2=2)
        held = (W * W).sum(axis=2)
        seen = (W * W / (1.0 + self.values)).sum(axis=2)
        return value, self._bound(sizes, held, seen, len(self))

    def least_rank(self, cross: Array, prior: Array, tolerance: float) -> int | None:
        """Return the least rank whose bound is small enough at nearly all of these rows.

        ``cross`` is (n, q, m) and ``prior`` their prior variances, (n, q).
        """
        B = cross * self.root
        W, sizes = to_numpy(product(B, self.vectors)), to_numpy((B * B).sum(axis=2))
        values = to_numpy(self.values)
        held = np.cumsum(W * W, axis=2)
        seen = np.cumsum(W * W / (1.0 + values), axis=2)
        half = _halfway(self.rest[-1])
        var = to_numpy(prior) - seen[:, :, -1] - half * np.maximum(sizes - held[:, :, -1], 0.0)
        allowed = tolerance / SAFETY * np.maximum(var.max(axis=1), 0.0)
        for rank in range(STEP, len(self) + 1, STEP):
            bound = self._bound(sizes, held[:, :, rank - 1], seen[:, :, rank - 1], rank)
            if np.mean(bound <= allowed) >= 0.9:
                return rank
        return None

    def _bound(self, sizes: Array, held: Array, seen: Array, rank: int) -> Array:
        """Return the error after ``rank`` eigenvectors, (n,), from ‖b‖², ‖w‖² and v², (n, q)."""
        xp = namespace(sizes)
        rho2 = xp.max(xp.maximum(sizes - held, 0.0) + ROUNDING * sizes, axis=1)
        v2, size = xp.max(seen, axis=1), xp.max(sizes, axis=1)
        half, phi2 = _halfway(self.rest[rank]), float(self.residual[rank])
        lost = 2.0 * xp.sqrt(rho2 * v2) * phi2**0.5 + phi2 * v2
        return (1.0 - half) * rho2 + half * lost + ROUNDING * size


def leading(
    posterior: FunctionSpacePosterior, cross: Array, prior: Array, tolerance: float
) -> Spectrum | None:
    """Return the eigenvectors that explain these covariances with the data, if few do.

    ``cross`` is (n, q, m), and ``prior`` (n, q, q) the prior covariance. Only an exact posterior
    whose noise is not zero has them.
    """
    from gpattr.posteriors.exact import ExactPosterior

    if not isinstance(posterior, ExactPosterior) or not bool((posterior.noise > 0).all()):
        return None
    variances = namespace(prior).diagonal(prior, axis1=1, axis2=2)
    for rank in _ranks(len(posterior.inputs)):
        if rank not in posterior.spectra:
            posterior.spectra[rank] = Spectrum.of(posterior, rank)
        least = posterior.spectra[rank].least_rank(cross, variances, tolerance)
        if least is not None:
            return posterior.spectra[rank].truncated(least)
    return None


def _ranks(m: int) -> list[int]:
    """Return how many eigenvectors to try, one number after the other, for m rows."""
    most = m // SHARE - m // SHARE % STEP
    if m <= DENSE:
        return [most] if most else []
    return [rank for rank in (FIRST << k for k in range(20)) if rank <= most]


def _halfway(mu: float) -> float:
    """Return the middle between 1/(1 + μ) and 1, whose distance from either is 1 − h."""
    return 0.5 * (1.0 + 1.0 / (1.0 + float(mu)))


def _times(posterior: ExactPosterior, root: Array, U: Array) -> tuple[Array, float]:
    """Return K̃U, (m, r), and the sum of the squares of K̃, block by block of rows."""
    Z, result, square = posterior.inputs, namespace(U).empty(U.shape), 0.0
    for rows in blocks(len(Z), 32.0 * len(Z), Z):
        K = posterior.kernel(Z[rows], Z) * root * root[rows][:, None]
        result[rows] = product(K, U)
        square += float((K * K).sum())
    return result, square
