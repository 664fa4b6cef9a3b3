"""The marginal likelihood with its gradient, maximised by L-BFGS over log θ."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce
from itertools import count
from operator import add
from typing import Any

import numpy as np
from scipy.optimize import minimize

from gpattr._core.array import (
    Array,
    LinAlgError,
    cholesky,
    cholesky_inverse,
    namespace,
    outer_products,
    product,
    solve_cholesky,
    to_numpy,
)
from gpattr._core.blas import one_blas_thread
from gpattr.estimators.evidence.squared_exponentials import gradient_of_leaves, leaves
from gpattr.estimators.hyperparameters import likelihood_gradient
from gpattr.exceptions import NotPositiveDefiniteError
from gpattr.kernels import Kernel
from gpattr.posteriors.exact import coefficients_given, factorise

NOISE = "noise_variance"
FREE = ""  # key of the gradient by free parameters, which need not be positive
# A squared pivot below this share of the prior variance is a rounding error.
SINGULAR = 1e-13
OPTIONS: dict[str, Any] = {
    "ftol": 5e-8,
    "gtol": 1e-3,
    "maxcor": 20,
    "maxiter": 1000,
    "maxfun": 10000,
}
LIMIT, ABNORMAL = 1, 2  # how SciPy's search can end, besides 0
Values = dict[str, np.ndarray]


class ConvergenceWarning(UserWarning):
    """The optimiser stopped before it converged; the best point so far was kept."""


_SILENT: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def without_warning() -> Iterator[None]:
    """Suppress warnings about non-convergence in this thread.

    Warning filters would affect all threads.
    """
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)


@dataclass(frozen=True)
class Objective:
    """log p(y | θ) of y = m + f + noise, for rows X (centred) and targets y.

    ``noise`` is the known noise variance, (n,) or a number, or None where it is one of the
    hyperparameters. With ``free_mean`` an unknown constant mean takes its best value for each θ,
    c = 1ᵀA⁻¹y / 1ᵀA⁻¹1, which leaves the gradient by θ as it is. ``trend`` is (Φ, B⁻¹) of a prior
    mean with uncertain coefficients, which are integrated out: A⁻¹ becomes P = A⁻¹ − WCWᵀ with
    W = A⁻¹Φ.
    """

    X: Array
    y: Array
    noise: Any = None
    free_mean: bool = False
    trend: tuple[Array, Array] | None = None

    def __call__(self, kernel: Kernel, noise: float | None) -> tuple[float, dict[str, Any]]:
        """Return log p(y) and its derivatives by log θ, including the noise if it is free."""
        xp = namespace(self.X)
        terms = leaves(kernel)
        K = (
            reduce(add, (leaf.values(self.X) for leaf in terms))
            if terms
            else kernel(self.X, self.X)
        )
        A = K.clone() if hasattr(K, "clone") else K.copy()
        i = xp.arange(len(A))
        A[i, i] += self.noise if noise is None else noise
        L = cholesky(A)
        if float(L.diagonal().min()) ** 2 <= SINGULAR * float(K.diagonal().max()):
            raise LinAlgError("singular to rounding")
        logs = float(xp.log(L.diagonal()).sum())
        residual = self.y - self.best_mean(L)
        alpha = solve_cholesky(L, residual)
        evidence = 0.5 * len(residual) * math.log(2.0 * math.pi)
        W = None
        if self.trend is not None:
            basis, precision = self.trend
            W = solve_cholesky(L, basis)
            root, shift, evidence = coefficients_given(basis, W, precision, residual)
            alpha = alpha - product(W, shift)
            W = product(W, root)
        inverse = cholesky_inverse(L)  # of which the upper triangle is meant
        if W is not None:
            inverse = inverse - outer_products(W)
        value = -0.5 * float(residual @ alpha) - logs - evidence
        if terms:
            gradient = gradient_of_leaves(
                terms, self.X, alpha, inverse, K if len(terms) == 1 else None
            )
        else:
            whole = xp.triu(inverse) + xp.triu(inverse, 1).T
            gradient = likelihood_gradient(kernel, self.X, 0.5 * (alpha[:, None] * alpha - whole))
        if noise is not None:
            gradient[NOISE] = 0.5 * noise * (float(alpha @ alpha) - float(inverse.diagonal().sum()))
        return value, gradient

    def best_mean(self, L: Array) -> float:
        """Return the most likely constant mean, or 0 where it is not free."""
        if not self.free_mean:
            return 0.0
        ones = namespace(self.y).zeros(len(self.y)) + 1.0
        solved = solve_cholesky(L, ones)
        return float(solved @ self.y) / float(solved.sum())


def most_likely_constant(kernel: Kernel, X: Array, y: Array, noise: Any) -> float:
    """Return the constant mean that maximises p(y) for these hyperparameters."""
    return Objective(X, y, free_mean=True).best_mean(factorise(kernel, X, noise))


def maximise(
    objective: Callable[..., tuple[float, dict[str, Any]]],
    kernel: Kernel,
    noise: Any,
    bounds: Mapping[str, np.ndarray],
    starts: list[Values],
    *,
    report: Callable[[int, int, float], None] | None = None,
    ftol: float = OPTIONS["ftol"],
    free: np.ndarray | None = None,
) -> tuple[Any, ...]:
    """Return kernel and noise at the best optimum from the given starts (not logarithms).

    ``bounds`` gives lower and upper ends, (2, size), of every hyperparameter; starts outside are
    moved inside. Where no start converges, the best point so far is kept with a warning. A search
    ends where a step gains less than ``ftol``, relatively. ``free`` are further parameters, any
    numbers, which the objective takes last and whose derivatives it gives under `FREE`; they are
    then returned last, too.
    """
    search = Search(objective, kernel, noise, starts[0], bounds, free)
    options: dict[str, Any] = OPTIONS | {"ftol": ftol}
    converged, message = False, ""
    for number, start in enumerate(starts):
        iterations = count(1)

        def step(
            _: np.ndarray, number: int = number, iterations: Iterator[int] = iterations
        ) -> None:
            if report is not None:
                report(number, next(iterations), search.best_value)

        ended, message = search.climb(search.pack(start), step, options)
        converged = converged or ended
    if search.best is None:
        raise NotPositiveDefiniteError(
            "noise: the covariance of the targets is singular at every point tried; increase"
            " noise_variance or its lower bound"
        )
    if not converged and not _SILENT.get():
        warnings.warn(
            f"training did not converge ({message}); the best point so far is kept. "
            "Try n_restarts, narrower bounds, or inputs and targets of order one",
            ConvergenceWarning,
            stacklevel=4,
        )
    return search.unpack(search.best)


class Search:
    """The objective as a function of one vector: log hyperparameters, then free parameters.

    ``best`` is the best point so far, None before any; ``walls`` counts singular points. With a
    ``prior`` of the logarithms, its log density is part of the objective.
    """

    def __init__(
        self,
        objective: Callable[..., tuple[float, dict[str, Any]]],
        kernel: Kernel,
        noise: Any,
        start: Values,
        bounds: Mapping[str, np.ndarray],
        free: np.ndarray | None = None,
        prior: Callable[[np.ndarray], tuple[float, np.ndarray]] | None = None,
    ) -> None:
        self.objective, self.kernel, self.noise, self.free = objective, kernel, noise, free
        self.prior = prior
        self.names = names = list(start)
        limits = (
            np.log(np.concatenate([bounds[name] for name in names], axis=1)).T
            if names
            else np.empty((0, 2))
        )
        self.size = len(limits)
        unbounded = np.tile([-np.inf, np.inf], (0 if free is None else len(free), 1))
        self.limits = np.concatenate([limits, unbounded])
        self.ends = np.cumsum([len(start[name]) for name in names])[:-1]
        self.scalar = {name for name, value in kernel.get_params().items() if np.ndim(value) == 0}
        self.best_value, self.walls = -math.inf, 0
        self.best: np.ndarray | None = None

    def pack(self, start: Values) -> np.ndarray:
        """Return a start as one vector, moved inside the bounds."""
        logs = [np.log(np.concatenate([start[name] for name in self.names]))] if self.names else []
        others = np.empty(0) if self.free is None else self.free
        return np.concatenate([*logs, others]).clip(*self.limits.T)

    def unpack(self, theta: np.ndarray) -> tuple[Any, ...]:
        """Return kernel, noise and, where there are any, the free parameters."""
        values: dict[str, Any] = {}
        if self.names:
            parts = np.split(np.exp(theta[: self.size]), self.ends)
            values = dict(zip(self.names, parts, strict=True))
        level = values.pop(NOISE, self.noise)
        level = float(level[0]) if np.size(level) == 1 and np.ndim(level) else level
        prior = self.kernel.with_params(
            **{name: float(v[0]) if name in self.scalar else v for name, v in values.items()}
        )
        return (prior, level) if self.free is None else (prior, level, theta[self.size :])

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the negative objective and its gradient."""
        try:
            value, gradient = self.objective(*self.unpack(theta))
        except LinAlgError:  # singular to rounding
            self.walls += 1
            return self._wall(theta)
        parts = [*self.names, FREE] if self.free is not None else self.names
        slope = np.concatenate([np.atleast_1d(to_numpy(gradient[name])) for name in parts])
        if self.prior is not None:
            known, pull = self.prior(theta)
            value, slope = value + known, slope + pull
        if value > self.best_value:
            self.best_value, self.best = value, theta.copy()
        return -value, -slope

    def _wall(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return a value and a slope that lead the line search back to the best point."""
        away = theta - (theta if self.best is None else self.best)
        slope = 20.0 * away / max(float(away @ away), 1e-12)
        level = 0.0 if self.best is None else -self.best_value
        return level + 10.0 + 0.5 * float(slope @ away), slope

    def climb(
        self, theta: np.ndarray, step: Callable[[np.ndarray], None], options: dict[str, Any]
    ) -> tuple[bool, str]:
        """Search from a point; return whether it converged, and the optimiser's message.

        A search that met a singular point, or rounding, stops where it is: it goes on from the best
        point while that helps.
        """
        before, converged, message = -math.inf, False, ""
        for _ in range(20):
            self.walls = 0
            with one_blas_thread:
                result = minimize(
                    self,
                    theta,
                    jac=True,
                    method="L-BFGS-B",
                    bounds=self.limits,
                    callback=step,
                    options=options,
                )
            status = result.get("status", 0)  # none where the bounds leave nothing to search
            message = str(result.message)
            if status == LIMIT:
                counted = "iterations" if result.nit >= options["maxiter"] else "evaluations"
                most = options["maxiter" if counted == "iterations" else "maxfun"]
                message = f"the limit of {most} {counted} was reached"
            disturbed = self.walls > 0 or status == ABNORMAL
            settled = self.best_value < before + 1e-3
            if self.best is None or status == LIMIT or settled or not disturbed:
                converged = status == 0 or (settled and status != LIMIT)
                break
            theta, before = self.best, self.best_value
        return converged, message
