"""The rules of the paper, for comparison, with a given number of steps.

They are the right-hand, trapezoid, Simpson and Gauss–Legendre rules. A rule stands on both sides of
the derivative kernel, so mean and covariance belong to the Gaussian Σ_t w_t ∂f(b + t(x − b)), f
being without its prior mean: the prior mean is integrated exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, product
from gpattr._core.memory import blocks
from gpattr._core.validation import check_count
from gpattr.closed_forms.derivatives import differentiate, require_derivatives
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel
from gpattr.operators import Paths
from gpattr.special.quadrature import gauss_legendre

FIXED_RULES = ("right", "trapezoid", "simpson", "gauss_legendre")
MOST_STEPS = 10**6  # more differ from the integral by rounding only, however rough the function
PERMUTATIONS = 64  # antithetic pairs of permutations, unless another number is given
METHODS = ("auto", "exact", "quadrature", *FIXED_RULES, "permutations")


def nodes_and_weights(rule: str, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights on [0, 1] of a rule with L = ``n_steps`` partitions of width 1/L.

    right: l/L, l = 1 … L; trapezoid: both ends of every partition; Simpson: both ends and the
    middle with weights 1/6, 4/6, 1/6. Gauss–Legendre has L nodes.
    """
    L = n_steps
    if rule == "gauss_legendre":
        return gauss_legendre(L)
    if rule == "right":
        return np.arange(1, L + 1) / L, np.full(L, 1.0 / L)
    if rule == "trapezoid":
        weights = np.full(L + 1, 1.0 / L)
        weights[[0, -1]] *= 0.5
        return np.arange(L + 1) / L, weights
    weights = np.where(np.arange(2 * L + 1) % 2, 4.0, 2.0) / (6.0 * L)
    weights[[0, -1]] *= 0.5
    return np.arange(2 * L + 1) / (2 * L), weights


def check_steps(method: str, n_steps: Any) -> int | None:
    """Return the number of steps for a method: an integer for fixed rules, None for the others."""
    if method == "permutations":
        if n_steps is None:
            return PERMUTATIONS
        return check_count("n_steps", n_steps, least=2, most=MOST_STEPS)
    if method not in FIXED_RULES:
        if n_steps is not None:
            raise InvalidInputError(
                f"n_steps: only the rules {', '.join(FIXED_RULES)} and permutations take a number"
                f" of steps, got {n_steps!r}"
            )
        return None
    try:
        steps = 0 if isinstance(n_steps, bool) else index(n_steps)
    except TypeError:
        steps = 0
    if not 1 <= steps <= MOST_STEPS:
        raise InvalidInputError(
            f'n_steps: expected an integer of 1 to {MOST_STEPS} for method="{method}", got'
            f" {n_steps!r}"
        )
    return steps


def fixed_rule(kernel: Kernel, name: str, n_steps: int, exact: Formulas) -> Formulas:
    """Return formulas with these nodes; their error is the difference to ``exact``."""
    require_derivatives(kernel)
    rule = _Rule(kernel, *nodes_and_weights(name, n_steps))

    def cross(paths: Paths, Z: Array) -> Bounded:
        xp, value, reference = namespace(Z), rule.cross(paths, Z), exact.cross(paths, Z)
        wrong = xp.max(xp.abs(value - reference.value), axis=1)
        return Bounded(value, xp.sqrt((wrong * wrong).sum(axis=1)) + reference.error)

    def contract(paths: Paths, Z: Array, w: Array) -> Bounded:
        return _compared(product(rule.cross(paths, Z), w), exact.contract(paths, Z, w))

    def prior_cov(paths: Paths) -> Bounded:
        return _compared(rule.between(paths, paths), exact.prior_cov(paths))

    def between(paths: Paths, other: Paths) -> Bounded:
        return _compared(rule.between(paths, other), exact.between(paths, other))

    return Formulas(
        cross=cross,
        contract=contract,
        prior_cov=prior_cov,
        between=between,
        methods=frozenset({f"{name} rule, {n_steps} steps"}),
    )


def _compared(value: Array, reference: Bounded) -> Bounded:
    """Return a value, (n, q, k), with its difference to an exact one as error, (n,)."""
    xp = namespace(value)
    return Bounded(value, xp.max(xp.abs(value - reference.value), axis=(1, 2)) + reference.error)


@dataclass(frozen=True)
class _Rule:
    """Sums over nodes on [0, 1] in place of the integrals of a kernel's derivatives."""

    kernel: Kernel
    nodes: np.ndarray
    weights: np.ndarray

    def cross(self, paths: Paths, Z: Array) -> Array:
        """Return (xᵢ − bᵢ) Σ w ∂ᵢk(b + t(x − b), z), (n, d, m)."""
        xp = namespace(paths.stop)
        total = xp.zeros((*paths.shape, len(Z)))
        for t, w in zip(self.nodes.tolist(), self.weights.tolist(), strict=True):
            for rows in blocks(len(total), 40.0 * Z.shape[1] * len(Z), Z):
                part = paths[rows]
                left = differentiate(self.kernel, part.at([t])[0][:, None, :], Z).left  # (r, m, d)
                total[rows] += w * xp.swapaxes(left * part.step[:, None, :], 1, 2)
        return total

    def between(self, paths: Paths, other: Paths) -> Array:
        """Return (xᵢ − bᵢ)(x'ⱼ − b'ⱼ) Σ Σ w w' ∂ᵢ∂'ⱼk for the k-th path of each, (n, d, d)."""
        xp = namespace(paths.stop)
        n, d = paths.shape
        result = xp.zeros((n, d, d))
        Y = xp.swapaxes(other.at(self.nodes), 0, 1)  # (n, T, d)
        for s, w in zip(self.nodes.tolist(), self.weights.tolist(), strict=True):
            X = paths.at([s])[0][:, None, :]
            for rows in blocks(n, 80.0 * d * d * len(self.nodes), Y):
                mixed = differentiate(self.kernel, X[rows], Y[rows], True).mixed
                result[rows] += w * xp.einsum("t,rtij->rij", xp.asarray(self.weights), mixed)
        return result * paths.step[:, :, None] * other.step[:, None, :]
