"""Stacks of posteriors that differ in their hyperparameters: few rows, all models in one pass.

The models of a mixture over hyperparameters have the same data and radial kernels

    k(x, z) = σ² g(‖(x − z)/ℓ‖) + c

of few families g. Squared distances of all models are products of 1/ℓ² (K, d) with squares of the
same differences, and the moments of paths, on which attributions depend, are functions of them: a
stack asks for them once for all models of a family, where a loop over models would spend its time
in the interpreter. With many rows arithmetic takes longer than that, and the loop is as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import EPS, solve_upper
from gpattr.closed_forms.resolution import formulas_for
from gpattr.distributions import Gaussian
from gpattr.kernels import (
    Constant,
    Kernel,
    Matern32,
    Matern52,
    Radial,
    Scale,
    SquaredExponential,
    Sum,
)
from gpattr.means import Constant as ConstantMean
from gpattr.means import Zero
from gpattr.operators import IntegratedGradients, Paths
from gpattr.posteriors.base import Posterior
from gpattr.posteriors.bound import Attributions, Evaluation, covariance
from gpattr.posteriors.exact import ExactPosterior
from gpattr.posteriors.function_space import FARTHEST
from gpattr.special.gaussian import path_moments, rows_by_length
from gpattr.special.radial import radial_moments

FAMILIES = (SquaredExponential, Matern52, Matern32)
MOST = 1e6  # entries of an array for all models: beyond, a loop over models is as fast


@dataclass(frozen=True, eq=False)
class Stack:
    """K posteriors with the same inputs Z (m, d): σ² and c (K,), 1/ℓ² (K, d), α (K, m).

    ``families`` are the unit kernels g with the positions of their models.
    """

    posteriors: tuple[ExactPosterior, ...]
    families: tuple[tuple[Radial, np.ndarray], ...]
    variance: np.ndarray
    constant: np.ndarray
    inverse: np.ndarray
    alpha: np.ndarray
    level: np.ndarray

    @classmethod
    def of(cls, posteriors: Sequence[Posterior]) -> Stack | None:
        """Return the stack of these posteriors; None if they cannot be stacked."""
        first = posteriors[0]
        if len(posteriors) < 2 or not isinstance(first, ExactPosterior):
            return None
        if not isinstance(first.inputs, np.ndarray):
            return None
        Z, parts = first.inputs, []
        for posterior in posteriors:
            kernel = _parts(posterior, Z)
            if kernel is None:
                return None
            parts.append(kernel)
        radial, variances, constants = zip(*parts, strict=True)
        places = {kind: [type(kernel) is kind for kernel in radial] for kind in FAMILIES}
        models: Any = tuple(posteriors)
        return cls(
            models,
            tuple((kind(), np.flatnonzero(found)) for kind, found in places.items() if any(found)),
            np.array(variances),
            np.array(constants),
            np.stack(
                [
                    np.broadcast_to(np.asarray(kernel.lengthscale) ** -2.0, Z.shape[1:])
                    for kernel in radial
                ]
            ),
            np.stack([posterior.alpha for posterior in models]),
            np.array([getattr(posterior.mean, "value", 0.0) for posterior in models]),
        )

    def holds(self, n: int, q: int = 1) -> bool:
        """Return whether n rows with q outputs are few enough to be worth it."""
        return n * q * self.alpha.size <= MOST

    def moments(self, X: np.ndarray, with_variances: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """Return means and variances of all models at rows X, (K, n) each."""
        k = self._values(self._distances(X))
        means = self._means(k)
        return means, self._variances(self._solved(k)) if with_variances else None

    def slopes(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the result of `Posterior.slopes` for all models, (K, n) and (K, n, d)."""
        Z, r2 = self.posteriors[0].inputs, self._distances(X)
        k, h = self._values(r2), np.empty_like(r2)
        for unit, models in self.families:
            h[models] = unit.slope(r2[models])
        means, T = self._means(k), self._solved(k)
        back = np.stack(
            [
                solve_upper(one.factor, part.T).T
                for one, part in zip(self.posteriors, T, strict=True)
            ]
        )
        middle = Z.mean(axis=0)
        slopes = []
        for weights in (self.alpha[:, None, :], -back):
            w = weights * h
            pull = w.sum(axis=2)[..., None] * (X - middle) - w @ (Z - middle)
            slopes.append(self.variance[:, None, None] * self.inverse[:, None, :] * pull)
        return means, self._variances(T), *slopes

    def _distances(self, X: np.ndarray) -> np.ndarray:
        """Return ‖(x − z)/ℓ‖² of all models, (K, n, m)."""
        Z = self.posteriors[0].inputs
        squares = ((X[:, None, :] - Z) ** 2).reshape(-1, Z.shape[1])
        return (self.inverse @ squares.T).reshape(len(self.alpha), len(X), len(Z))

    def _values(self, r2: np.ndarray) -> np.ndarray:
        """Return k(x, z), (K, n, m)."""
        k = np.empty_like(r2)
        for unit, models in self.families:
            k[models] = unit.profile(r2[models])
        return self.variance[:, None, None] * k + self.constant[:, None, None]

    def _means(self, k: np.ndarray) -> np.ndarray:
        return self.level[:, None] + (k @ self.alpha[:, :, None])[:, :, 0]

    def _solved(self, k: np.ndarray) -> np.ndarray:
        """Return T = k L⁻ᵀ, (K, n, m), in place of k."""
        for part, posterior in zip(k, self.posteriors, strict=True):
            part[:] = posterior.solve(part)
        return k

    def _variances(self, T: np.ndarray) -> np.ndarray:
        prior = (self.variance + self.constant)[:, None]
        return np.maximum(prior - np.einsum("knm,knm->kn", T, T), 0.0)

    def serves(self, operator: Any, evaluation: Evaluation) -> bool:
        """Return whether a stack has formulas of this operator and evaluation."""
        return (
            type(operator) is IntegratedGradients
            and len(operator.points) == 1
            and not operator.jumps
            and evaluation.uncertainty != "none"
            and evaluation.method == "auto"
            and evaluation.covariance_tolerance is None
        )

    def attributions(self, bounds: Sequence[Any], X: np.ndarray) -> list[Attributions]:
        """Return the integrated gradients at rows X that each of ``bounds``, one a model, asks for.

        They are `FunctionSpaceBound`, which says how accurate they must be.
        """
        Z = self.posteriors[0].inputs
        with np.errstate(over="ignore", invalid="ignore"):
            distances = self.inverse @ ((X - Z[0]) ** 2).T
        if not (distances < FARTHEST**2).all():
            for posterior in self.posteriors:
                posterior.check_range(X)
        operator = bounds[0].operator
        (_, sites), *_ = operator.terms(X)
        assert isinstance(sites, Paths)
        K, (n, d) = len(self.alpha), X.shape
        cross = np.empty((K, n, d, self.alpha.shape[1]))
        prior, prior_error, reach = np.empty((K, n, d, d)), np.empty((K, n)), np.empty((K, n))
        for unit, models in self.families:
            cross[models] = self._cross(unit, models, sites)
            whitened = (np.sqrt(self.inverse[models])[:, None, :] * sites.step).reshape(-1, d)
            paths = Paths(np.zeros((1, d)), whitened)
            formulas = formulas_for(operator, unit, "auto", None)
            value, error = formulas.prior_cov(paths)
            scale = self.variance[models]
            prior[models] = scale[:, None, None, None] * value.reshape(len(models), n, d, d)
            prior_error[models] = scale[:, None] * error.reshape(len(models), n)
            bound = formulas.bound
            assert bound is not None
            # For one point of weight 1.
            one = bound(paths, np.zeros((1, d)), np.ones((1, 1))).reshape(len(models), n)
            reach[models] = scale[:, None] * one
        return [
            self._attribution(k, bound, X, cross[k], prior[k], prior_error[k], reach[k])
            for k, bound in enumerate(bounds)
        ]

    def _cross(self, unit: Radial, models: np.ndarray, paths: Paths) -> np.ndarray:
        """Return 𝒜ᵢk(·, zⱼ)(xₙ) of models of one family, (G, n, d, m).

            σ² (Δᵢ/ℓᵢ²) ((b − z)ᵢ M₀ + Δᵢ M₁)

        with the moments M of h = g'/r along the path, which for the squared exponential are −J.
        """
        Z, step, inverse = self.posteriors[0].inputs, paths.step, self.inverse[models]
        (n, d), m, size = step.shape, len(Z), len(models)
        away = paths.start[0] - Z
        a = (inverse @ (step * step).T).reshape(-1)
        slope = inverse[:, None, :] * step  # Δ/ℓ², (G, n, d)
        beta = slope.reshape(-1, d) @ away.T
        c0 = np.repeat(inverse @ (away * away).T, n, axis=0)
        far = ((paths.stop[:, None, :] - Z) ** 2).reshape(-1, d)
        c1 = (inverse @ far.T).reshape(-1, m)
        M0, M1 = np.empty((size * n, m)), np.empty((size * n, m))
        normal = isinstance(unit, SquaredExponential)
        for rows, is_short in rows_by_length(a, max(1, len(a))):
            ends = None if is_short else c1[rows]
            arguments = a[rows], beta[rows], c0[rows], ends
            M0[rows], M1[rows] = (
                path_moments(*arguments) if normal else radial_moments(unit, *arguments)
            )
        M0, M1 = M0.reshape(size, n, 1, m), M1.reshape(size, n, 1, m)
        result = M0 * away.T + M1 * step[:, :, None]
        sign = -1.0 if normal else 1.0
        result *= (sign * self.variance[models])[:, None, None, None] * slope[..., None]
        return result

    def _attribution(
        self,
        k: int,
        bound: Any,
        X: np.ndarray,
        cross: np.ndarray,
        prior: np.ndarray,
        prior_error: np.ndarray,
        reach: np.ndarray,
    ) -> Attributions:
        """Return the attributions of one model, with errors as in `FunctionSpaceBound`."""
        posterior, alpha = self.posteriors[k], self.alpha[k]
        sensitivity, (n, d, m) = posterior.sensitivity, cross.shape
        mean = cross @ alpha + 0.0
        V = posterior.solve(cross.reshape(n * d, m)).reshape(cross.shape)
        lengths = sensitivity.lengths(V)
        cov = covariance(prior - V @ V.transpose(0, 2, 1))
        var = np.diagonal(cov, axis1=1, axis2=2)
        # Sums of m terms round a little more than one does.
        error = (1.0 + m**0.5 / 32.0) * reach * float(np.abs(alpha).sum())
        error += sensitivity.rounding_of_mean(lengths) + EPS * np.abs(mean).max(axis=1)
        size = np.diagonal(prior, axis1=1, axis2=2).max(axis=1)
        integrated = prior_error + 2.0 * reach * m**0.5 * lengths
        bound.require_accuracy(X, mean, error, integrated, size)
        return Attributions(
            Gaussian(mean, var, cov if bound.evaluation.uncertainty == "cov" else None),
            error,
            bound.method,
            integrated + sensitivity.rounding(lengths, size),
        )


def _parts(posterior: Posterior, Z: np.ndarray) -> tuple[Radial, float, float] | None:
    """Return radial kernel, variance and constant of a posterior that can be stacked, else None."""
    if type(posterior) is not ExactPosterior or posterior.trend is not None:
        return None
    same = posterior.inputs is Z or np.array_equal(posterior.inputs, Z)
    if not same or not isinstance(posterior.mean, (Zero, ConstantMean)):
        return None
    kernel: Kernel = posterior.kernel
    constant, variance = 0.0, 1.0
    if isinstance(kernel, Sum) and len(kernel.kernels) == 2:
        kernel, last = kernel.kernels
        if not isinstance(last, Constant):
            return None
        constant = float(last.variance)
    while isinstance(kernel, Scale):
        variance, kernel = variance * kernel.variance, kernel.kernel
    if type(kernel) not in FAMILIES or not isinstance(kernel, Radial):
        return None
    return kernel, variance * kernel.variance, constant
