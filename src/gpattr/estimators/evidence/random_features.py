"""The evidence of a random-feature model and its derivatives.

Standard draws ε are fixed; the frequencies are ε/ℓ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import add
from typing import Any

from gpattr._core.array import Array, namespace, product, symmetric_product
from gpattr._core.memory import blocks
from gpattr.bases import Fourier
from gpattr.estimators.evidence.marginal_likelihood import NOISE
from gpattr.estimators.evidence.weights import fit_weights
from gpattr.estimators.sums import Sums, joined, segments
from gpattr.kernels import Kernel, Radial


def amplitudes(kernel: Radial, M: int, like: Array) -> Array:
    """Return the prior variances σ²/M of the 2M weights."""
    return namespace(like).zeros(2 * M) + kernel.variance / M


@dataclass(frozen=True)
class Linear:
    """The constant c and weights w of a fitted model, its noise σ², and ``inverse``, A⁻¹."""

    constant: float
    weights: Array
    noise: float
    inverse: Array


class WaveEvidence:
    """log p(y) for draws ε (M, d), given kernel and noise, from two sums over rows.

    With A⁻¹ = S^½B⁻¹S^½/σ² the derivative by the features is G = αwᵀ − ΦA⁻¹, α = (y − c − Φw)/σ².
    By log ℓᵢ it is then −Σₙₘ Qₙₘ (xₙᵢ/ℓᵢ) εₘᵢ, where Q = G_sin∘cos − G_cos∘sin.
    """

    draws: Array
    noise: float | None
    free_mean: bool

    def sums(self, kernel: Radial) -> Sums:
        """Return the sums over rows that the weights follow from."""
        raise NotImplementedError

    def pulls(self, kernel: Radial, fit: Linear) -> Array:
        """Return Σₙ (xₙᵢ/ℓᵢ) Qₙₘ, (d, M)."""
        raise NotImplementedError

    def __call__(self, kernel: Kernel, noise: float | None) -> tuple[float, dict[str, Any]]:
        """Return log p(y) and its derivatives by log θ, including the noise if it is free."""
        assert isinstance(kernel, Radial)
        M = len(self.draws)
        level = self.noise if noise is None else noise
        assert level is not None
        sums = self.sums(kernel)
        fit = fit_weights(sums, amplitudes(kernel, M, sums.ones), level, free_mean=self.free_mean)
        inverse = fit.inverse()
        by_variance, by_noise = fit.gradient(inverse)
        total = self.pulls(
            kernel,
            Linear(fit.constant, fit.weights, level, inverse * (kernel.variance / (M * level))),
        )
        slope = -(total * namespace(total).asarray(self.draws).T).sum(axis=1)
        gradient: dict[str, Any] = {"variance": float(by_variance.sum())}
        gradient["lengthscale"] = (
            slope if getattr(kernel.lengthscale, "ndim", 0) else float(slope.sum())
        )
        if noise is not None:
            gradient[NOISE] = by_noise
        return fit.log_marginal_likelihood, gradient


@dataclass(frozen=True)
class FrequencyEvidence(WaveEvidence):
    """log p(y) for rows X (n, d) and targets y: two passes over them, in blocks."""

    X: Array
    y: Array
    draws: Array
    noise: float | None
    free_mean: bool

    def sums(self, kernel: Radial) -> Sums:
        return joined(Sums.joined, (self._sums(W, y) for W, y in self._parts(kernel)))

    def pulls(self, kernel: Radial, fit: Linear) -> Array:
        return joined(add, (self._pulls(W, y, fit) for W, y in self._parts(kernel)))

    def _parts(self, kernel: Radial) -> Iterator[tuple[Array, Array]]:
        """Yield the rows of a segment in length-scales, and their targets."""
        ell = namespace(self.X).asarray(kernel.lengthscale)
        for some in segments(len(self.X)):
            yield self.X[some] / ell, self.y[some]

    def _sums(self, W: Array, y: Array) -> Sums:
        basis, sums = Fourier(self.draws), Sums.empty(2 * len(self.draws), W)
        for rows in self._blocks(W):
            sums = sums.plus(basis(W[rows]), y[rows], in_place=True)
        return sums

    def _pulls(self, W: Array, y: Array, fit: Linear) -> Array:
        basis, (M, d) = Fourier(self.draws), self.draws.shape
        total = namespace(W).zeros((d, M))
        for rows in self._blocks(W):
            F = basis(W[rows])
            alpha = (y[rows] - fit.constant - product(F, fit.weights)) / fit.noise
            G = alpha[:, None] * fit.weights - symmetric_product(fit.inverse, F.T).T
            Q = G[:, :M] * F[:, M:]
            Q -= G[:, M:] * F[:, :M]
            total += product(W[rows].T, Q)
        return total

    def _blocks(self, W: Array) -> Iterator[slice]:
        return blocks(len(W), 8.0 * 8 * len(self.draws), W)


@dataclass(frozen=True)
class AmplitudeEvidence:
    """log p(y) from sums over rows, given the kernel's variance and the noise.

    The length-scales are already in the sums.
    """

    sums: Sums
    n_frequencies: int
    noise: float | None
    free_mean: bool

    def __call__(self, kernel: Kernel, noise: float | None) -> tuple[float, dict[str, Any]]:
        """Return log p(y) and its derivatives by log σ², and by the log noise if it is free."""
        assert isinstance(kernel, Radial)
        level = self.noise if noise is None else noise
        assert level is not None
        fit = fit_weights(
            self.sums,
            amplitudes(kernel, self.n_frequencies, self.sums.ones),
            level,
            free_mean=self.free_mean,
        )
        by_variance, by_noise = fit.gradient(fit.inverse())
        gradient: dict[str, Any] = {"variance": float(by_variance.sum())}
        if noise is not None:
            gradient[NOISE] = by_noise
        return fit.log_marginal_likelihood, gradient
