"""The bound of sparse regression (Titsias 2009) and its derivatives, by blocks of rows.

With A = L⁻¹k(Z, X)Λ^−½, B = I + AAᵀ, residuals r, and μ = L⁻ᵀB⁻¹AΛ^−½r:

    F = log N(r; 0, Q + Λ) − ½ tr Λ⁻¹(k(X, X) − Q),      Q = k(X, Z)K⁻¹k(Z, X)
    ∂F/∂K       = ½ L⁻ᵀ(2I − B − B⁻¹)L⁻¹ − ½ μμᵀ
    ∂F/∂k(X, Z) = Λ^−½Aᵀ(I − B⁻¹)L⁻¹ + Λ⁻¹(r − k(X, Z)μ) μᵀ
    ∂F/∂ log Λₙ = −½ + ½ Λₙ⁻¹(k(xₙ, xₙ) − qₙ + sₙ + (rₙ − k(xₙ, Z)μ)²),
                  qₙ = Λₙ‖Aₙ‖²,  sₙ = Λₙ AₙᵀB⁻¹Aₙ

A radial kernel σ²g(r) with h = g'/r turns these into those by length-scales and inducing inputs:
with E = −(∂F/∂k)∘σ²h, ∂F/∂ log ℓᵢ = Σ E (xᵢ − zᵢ)²/ℓᵢ² and ∂F/∂zᵢ = Σ E (xᵢ − zᵢ)/ℓᵢ². Other
kernels use a general form, which is several times slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, cast

import numpy as np

from gpattr._core.array import (
    LinAlgError,
    add_gram,
    cholesky,
    outer_products,
    product,
    solve_lower_rows,
    squared_distances,
)
from gpattr._core.memory import blocks
from gpattr.closed_forms import differentiate
from gpattr.estimators.evidence.marginal_likelihood import FREE, NOISE
from gpattr.estimators.evidence.squared_exponentials import Leaf, summands
from gpattr.estimators.hyperparameters import likelihood_gradient
from gpattr.estimators.sums import joined, segments
from gpattr.kernels import Constant, Kernel, Matern32, Matern52, Radial, SquaredExponential


@dataclass(frozen=True)
class BoundSums:
    """Sums over n rows: AAᵀ (lower triangle), AΛ^−½[y, 1], [y, 1]ᵀΛ⁻¹[y, 1], and numbers.

    ``missing`` is tr Λ⁻¹(k(X, X) − Q), ``logs`` Σ log Λₙ.
    """

    n: int
    gram: np.ndarray
    cross: np.ndarray
    energy: np.ndarray
    missing: float
    logs: float

    def joined(self, other: BoundSums) -> BoundSums:
        """Return the sums over the rows of both."""
        return BoundSums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Bound:
    """F, the constant mean, and the matrices of the module's formulas.

    ``half`` is LB⁻¹AΛ^−½r with B = LB LBᵀ, R is LB⁻ᵀ.
    """

    value: float
    centre: float
    Z: np.ndarray
    L: np.ndarray
    B: np.ndarray
    R: np.ndarray
    half: np.ndarray


@dataclass(frozen=True)
class Pull:
    """Arrays for the derivatives by k(X, Z), besides the rows.

    ``lost`` is I − B⁻¹ and ``into`` is (I − B⁻¹)L⁻¹.
    """

    centre: float
    Z: np.ndarray
    L: np.ndarray
    mu: np.ndarray
    lost: np.ndarray
    into: np.ndarray


class CollapsedBound:
    """F as a function of kernel, noise and inducing inputs, from two sums over rows.

    With ``free_mean`` a constant mean takes its best value for each of them, which leaves the
    gradient as it is. ``jitter`` is added to the diagonal of K. Inducing inputs are one vector.
    """

    free_mean: bool
    jitter: float

    @property
    def d(self) -> int:
        """The number of features."""
        raise NotImplementedError

    def sums(self, kernel: Kernel, noise: float | None, Z: np.ndarray, L: np.ndarray) -> BoundSums:
        """Return the sums of F over all rows."""
        raise NotImplementedError

    def slopes(self, kernel: Kernel, noise: float | None, pull: Pull) -> dict[str, Any]:
        """Return the part of the derivatives that is a sum over all rows, by name."""
        raise NotImplementedError

    def at(self, kernel: Kernel, noise: float | None, inducing: np.ndarray) -> Bound:
        """Return F and the arrays for its derivatives, after one pass over the rows."""
        Z = inducing.reshape(-1, self.d)
        m = len(Z)
        K = kernel(Z, Z)
        K[np.arange(m), np.arange(m)] += self.jitter
        L = cholesky(K)
        sums = self.sums(kernel, noise, Z, L)
        whole = np.tril(sums.gram) + np.tril(sums.gram, -1).T
        whole[np.arange(m), np.arange(m)] += 1.0
        LB = cholesky(whole.copy(order="F"))
        R = solve_lower_rows(LB, np.eye(m))  # LB⁻ᵀ: B⁻¹ = RRᵀ
        half = product(R.T, sums.cross)
        quadratic = sums.energy - half.T @ half  # of targets and ones in (Q + Λ)⁻¹
        centre = float(quadratic[0, 1] / quadratic[1, 1]) if self.free_mean else 0.0
        fit = float(quadratic[0, 0] - 2 * centre * quadratic[0, 1] + centre**2 * quadratic[1, 1])
        logs = (
            sums.logs + 2.0 * float(np.log(LB.diagonal()).sum()) + sums.n * math.log(2.0 * math.pi)
        )
        if not np.isfinite(fit):
            raise LinAlgError("not finite")
        value = -0.5 * (logs + fit + sums.missing)
        return Bound(value, centre, Z, L, whole, R, half[:, 0] - centre * half[:, 1])

    def __call__(
        self, kernel: Kernel, noise: float | None, inducing: np.ndarray
    ) -> tuple[float, dict[str, Any]]:
        """Return F and its derivatives by log θ and by the inducing inputs."""
        state = self.at(kernel, noise, inducing)
        Z, L, R, m = state.Z, state.L, state.R, len(state.Z)
        inverse = solve_lower_rows(L, np.eye(m)).T  # L⁻¹
        mu = product(inverse.T, product(R, state.half))
        square = outer_products(R)  # B⁻¹
        lost = np.eye(m) - square
        G = 0.5 * (
            product(inverse.T, product(2.0 * np.eye(m) - state.B - square, inverse))
            - np.outer(mu, mu)
        )
        gradient = gradient_for(kernel, Z)
        gradient.add(Z, G, symmetric=True)
        pull = Pull(state.centre, Z, L, mu, lost, product(lost, inverse))
        return state.value, added(gradient.named(), self.slopes(kernel, noise, pull))


@dataclass(frozen=True)
class SparseObjective(CollapsedBound):
    """F for rows X, centred and of order one, in memory.

    ``noise`` (n,) is known, or None where it is a hyperparameter.
    """

    X: np.ndarray
    y: np.ndarray
    noise: np.ndarray | float | None
    free_mean: bool
    jitter: float

    @property
    def d(self) -> int:
        return self.X.shape[1]

    def sums(self, kernel: Kernel, noise: float | None, Z: np.ndarray, L: np.ndarray) -> BoundSums:
        return joined(BoundSums.joined, (part.sums(kernel, Z, L) for part in self._parts(noise)))

    def slopes(self, kernel: Kernel, noise: float | None, pull: Pull) -> dict[str, Any]:
        slopes = joined(added, (part.slopes(kernel, pull) for part in self._parts(noise)))
        if noise is None:
            del slopes[NOISE]
        return slopes

    def _parts(self, noise: float | None) -> Iterator[_Part]:
        given = self.noise if noise is None else noise
        assert given is not None
        level = np.broadcast_to(given, (len(self.y),))
        for some in segments(len(self.y)):
            yield _Part(self.X[some], self.y[some], level[some])


class _Part(NamedTuple):
    """Rows, targets and noise of a segment."""

    X: np.ndarray
    y: np.ndarray
    level: np.ndarray

    def sums(self, kernel: Kernel, Z: np.ndarray, L: np.ndarray) -> BoundSums:
        """Return the sums of F over these rows."""
        m, n = len(Z), len(self.y)
        gram, cross, one = np.zeros((m, m), order="F"), np.zeros((m, 2)), np.ones(n)
        energy, missing = np.zeros((2, 2)), 0.0
        for rows in blocks(n, 48.0 * m, self.X):
            scale = self.level[rows] ** -0.5
            A = solve_lower_rows(L, kernel(self.X[rows], Z)) * scale[:, None]  # (r, m)
            # Targets and ones, for a constant mean.
            sides = np.column_stack([self.y[rows], one[rows]]) * scale[:, None]
            gram = add_gram(gram, A)
            cross, energy = cross + product(A.T, sides), energy + product(sides.T, sides)
            missing += float((kernel.diagonal(self.X[rows]) * scale**2).sum()) - float((A**2).sum())
        return BoundSums(n, gram, cross, energy, missing, float(np.log(self.level).sum()))

    def slopes(self, kernel: Kernel, pull: Pull) -> dict[str, Any]:
        """Return the part of these rows in the derivatives, also by the noise."""
        Z, mu = pull.Z, pull.mu
        gradient, by_noise = gradient_for(kernel, Z), 0.0
        for rows in blocks(len(self.y), 96.0 * len(Z), self.X):
            here, scale = self.X[rows], self.level[rows] ** -0.5
            k = kernel(here, Z)
            rest = self.y[rows] - pull.centre - product(k, mu)
            A = solve_lower_rows(pull.L, k) * scale[:, None]
            gradient.add(
                here, product(A * scale[:, None], pull.into) + (scale**2 * rest)[:, None] * mu
            )
            gradient.add_diagonal(here, -0.5 * scale**2)
            gain = (product(A, pull.lost) * A).sum(axis=1)  # (qₙ − sₙ)/Λₙ
            by_noise += float(
                (0.5 * (scale**2 * (kernel.diagonal(here) + rest**2) - gain - 1.0)).sum()
            )
        return gradient.named() | {NOISE: by_noise}


def added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the sums of values by name."""
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in one | other}


def gradient_for(kernel: Kernel, Z: np.ndarray) -> RadialGradient | KernelGradient:
    """Return an empty sum of derivatives, the faster one where the kernel allows it."""
    leaves = radial_leaves(kernel)
    return RadialGradient(leaves, Z) if leaves else KernelGradient(kernel, Z)


class RadialGradient:
    """Derivatives by hyperparameters of radial leaves and by Z, summed over covariances."""

    def __init__(self, leaves: list[Leaf[Radial | Constant]], Z: np.ndarray) -> None:
        self.leaves, self.Z, self.inducing = leaves, Z, np.zeros_like(Z)
        self.amplitude = np.zeros(len(leaves))
        self.slopes = [np.zeros(leaf.inputs(Z).shape[1]) for leaf in leaves]

    def add(self, X: np.ndarray, G: np.ndarray, *, symmetric: bool = False) -> None:
        """Add the part of G (r, m), the derivatives by k(X, Z).

        ``symmetric`` means that X is Z itself and moves with it.
        """
        for i, leaf in enumerate(self.leaves):
            x, z = leaf.inputs(X), leaf.inputs(self.Z)
            if not isinstance(leaf.kernel, Radial):
                self.amplitude[i] += leaf.factor * leaf.kernel.variance * float(G.sum())
                continue
            ell = np.broadcast_to(leaf.kernel.lengthscale, z.shape[1:])
            r2 = squared_distances(x, z, leaf.kernel.lengthscale)
            scale = leaf.factor * leaf.kernel.variance
            self.amplitude[i] += scale * float((G * leaf.kernel.profile(r2)).sum())
            E = G * leaf.kernel.slope(r2) * -scale
            # (r,), (m,), (m, d)
            by_row, by_column, pulled = E.sum(axis=1), E.sum(axis=0), product(E.T, x)
            self.slopes[i] += (
                product(by_row, x**2) - 2.0 * (pulled * z).sum(axis=0) + product(by_column, z**2)
            ) / ell**2
            columns = slice(None) if leaf.columns is None else list(leaf.columns)
            self.inducing[:, columns] += (
                (2.0 if symmetric else 1.0) * (pulled - by_column[:, None] * z) / ell**2
            )

    def add_diagonal(self, X: np.ndarray, weights: np.ndarray) -> None:
        """Add the part of derivatives (r,) by the prior variance at each row, a constant here."""
        for i, leaf in enumerate(self.leaves):
            self.amplitude[i] += float(weights.sum()) * leaf.factor * leaf.kernel.variance

    def named(self) -> dict[str, Any]:
        """Return the derivatives by the logarithms of the hyperparameters and by Z, by name."""
        result: dict[str, Any] = {FREE: self.inducing.ravel()}
        for leaf, amplitude, slope in zip(self.leaves, self.amplitude, self.slopes, strict=True):
            for name in (f"{leaf.prefix}variance", *leaf.scales):
                result[name] = result.get(name, 0.0) + amplitude
            if isinstance(leaf.kernel, Radial):
                ard = np.ndim(leaf.kernel.lengthscale)
                result[f"{leaf.prefix}lengthscale"] = slope if ard else slope.sum()
        return result


class KernelGradient:
    """The same for any kernel: G goes through the kernel's tree, in blocks of as many rows as Z."""

    def __init__(self, kernel: Kernel, Z: np.ndarray) -> None:
        self.kernel, self.Z, self.inducing = kernel, Z, np.zeros_like(Z)
        self.sums: dict[str, Any] = {}

    def add(self, X: np.ndarray, G: np.ndarray, *, symmetric: bool = False) -> None:
        """Add the part of G (r, m), the derivatives by k(X, Z).

        ``symmetric`` means that X is Z itself and moves with it.
        """
        m = len(self.Z)
        if symmetric:
            self._take(likelihood_gradient(self.kernel, X, G))
            self.inducing += 2.0 * np.einsum(
                "ij,ijd->id", G, differentiate(self.kernel, X[:, None, :], X).left
            )
            return
        for first in range(0, len(X), m):
            x, part = X[first : first + m], G[first : first + m]
            # k(X, Z) is a corner of the kernel matrix of both.
            both = np.zeros((len(x) + m, len(x) + m))
            both[: len(x), len(x) :], both[len(x) :, : len(x)] = 0.5 * part, 0.5 * part.T
            self._take(likelihood_gradient(self.kernel, np.vstack([x, self.Z]), both))
            self.inducing += np.einsum(
                "rm,mrd->md", part, differentiate(self.kernel, self.Z[:, None, :], x).left
            )

    def add_diagonal(self, X: np.ndarray, weights: np.ndarray) -> None:
        """Add the part of derivatives (r,) by the prior variance at each row."""
        for first in range(0, len(X), len(self.Z)):
            some = slice(first, first + len(self.Z))
            self._take(likelihood_gradient(self.kernel, X[some], np.diag(weights[some])))

    def named(self) -> dict[str, Any]:
        """Return the derivatives by the logarithms of the hyperparameters and by Z, by name."""
        return self.sums | {FREE: self.inducing.ravel()}

    def _take(self, gradient: dict[str, Any]) -> None:
        for name, value in gradient.items():
            self.sums[name] = self.sums.get(name, 0.0) + value


def radial_leaves(kernel: Kernel) -> list[Leaf[Radial | Constant]] | None:
    """Return the terms of a sum of scaled, selected radial kernels and constants, or None."""
    leaves = summands(kernel)
    simple = all(
        type(leaf.kernel) in (SquaredExponential, Matern32, Matern52, Constant) for leaf in leaves
    )
    return cast("list[Leaf[Radial | Constant]]", leaves) if simple else None
