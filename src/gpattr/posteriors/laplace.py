"""Binary classification by Laplace's approximation: a Gaussian around the mode.

p(y = 1 | f) = σ(f), the logistic function. At the mode f̂ of the latent values at X, with
W = σ(f̂)(1 − σ(f̂)):

    E[f(x)]          = m(x) + k(x, X) (y − σ(f̂))
    Cov[f(x), f(x')] = k(x, x') − T(x)ᵀT(x'),      T(x) = L⁻¹ W^½ k(X, x),  L = chol(I + W^½ K W^½)

The mode is found by Newton's method (Rasmussen and Williams, algorithm 3.1), which needs no inverse
of K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, product, solve_cholesky, to_numpy
from gpattr._core.validation import as_vector, check_text, read_only
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.posteriors.classification import ClassificationPosterior, factor_at
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.posteriors.given import matrix, smooth_prior

STEPS, HALVINGS = 100, 30
CONVERGED = (
    1e-12  # of the latent values: Newton's last step, after which rounding is all that changes
)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class LaplacePosterior(ClassificationPosterior):
    """The latent function f ~ GP(mean, kernel) given labels y, 0 or 1, with p(y = 1) = σ(f).

    ``X`` (m, d) may be a frame, whose column names are kept. ``log_marginal_likelihood`` is
    Laplace's approximation of it; ``mode`` (m,) are the most likely latent values at X. Predictions
    and attributions are of f, on the scale of log odds; ``label`` names the classes, for
    explanations to print.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import SquaredExponential
    >>> from gpattr.posteriors import LaplacePosterior
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> posterior = LaplacePosterior(SquaredExponential(), X, [0, 0, 1, 1])
    >>> posterior.predict([[-1.0], [1.0]]).round(1)  # log odds
    array([-0.5,  0.5])
    """

    @property
    def mode(self) -> Array:
        """The most likely latent values at X, (m,)."""
        K = self.kernel(self.inputs, self.inputs)
        return read_only(self.mean(self.inputs) + product(K, self.alpha))

    @staticmethod
    def _approximated(K: Array, y: Array, mean: Array) -> tuple[Array, Array, Array, float]:
        f = mode(K, y, mean)
        scale, alpha = sqrt_weights(f), score(f, y)
        L = factor_at(K, scale)
        return alpha, scale, L, evidence_at(f, y, mean, L)

    @classmethod
    def from_state(
        cls,
        kernel: Kernel,
        X: Any,
        y: Any,
        *,
        alpha: Any,
        column_scale: Any,
        factor: Any,
        mean: Mean | None = None,
        label: str = "1 against 0",
    ) -> LaplacePosterior:
        """Return the posterior of a mode found elsewhere.

        There, α = y − σ(f̂), w = W^½ and L = chol(I + W^½ K W^½).
        """
        kernel, mean, Z, names = smooth_prior(kernel, mean, "X", X)
        self = cls.__new__(cls)
        parts = (
            read_only(as_vector(name, part, length=len(Z)))
            for name, part in (("alpha", alpha), ("column_scale", column_scale))
        )
        weights, scale = parts
        L = np.asfortranarray(to_numpy(matrix("factor", factor, len(Z), len(Z))))
        FunctionSpacePosterior.__init__(
            self, kernel, Z, weights, L, None, scale, mean=mean, feature_names=names
        )
        y = read_only(as_vector("y", y, length=len(Z)))
        evidence = evidence_at(self.mode, y, mean(Z), L)
        self._note(y=y, log_marginal_likelihood=evidence, label=check_text("label", label))
        return self


def evidence_at(f: Array, y: Array, mean: Array, L: Array) -> float:
    """Return Laplace's log p(y) at the mode f, with L = chol(I + W^½ K W^½)."""
    return (
        log_likelihood(f, y)
        - 0.5 * float(score(f, y) @ (f - mean))
        - float(namespace(f).log(L.diagonal()).sum())
    )


def mode(K: Array, y: Array, mean: Array, start: Array | None = None) -> Array:
    """Return the mode of the latent values by Newton's method; steps that overshoot are halved.

    The search starts at m + K ``start`` if that is likelier than m.
    """
    a, f = 0.0 * y, mean + 0.0 * y
    new, value = f, log_likelihood(f, y)
    if start is not None:
        near = mean + product(K, start)
        known = log_likelihood(near, y) - 0.5 * float(start @ (near - mean))
        a, f, value = (start, near, known) if known > value else (a, f, value)
    for _ in range(STEPS):
        scale = sqrt_weights(f)
        b = scale**2 * (f - mean) + score(f, y)
        step = b - scale * solve_cholesky(factor_at(K, scale), scale * product(K, b)) - a
        best = value
        for _ in range(HALVINGS):
            new = mean + product(K, a + step)
            value = log_likelihood(new, y) - 0.5 * float((a + step) @ (new - mean))
            if value >= best - 1e-10 * (1.0 + abs(best)):
                break
            step = 0.5 * step
        moved, size = float(abs(new - f).max()), float(abs(new).max())
        a, f = a + step, new
        if moved <= CONVERGED * (1.0 + size):
            break
    return f


def score(f: Array, y: Array) -> Array:
    """Return y − σ(f), the gradient of log p(y | f), exact where σ(f) is nearly 0 or 1."""
    xp, sign = namespace(f), 2.0 * y - 1.0
    e = xp.exp(-abs(f))
    return sign * xp.where(sign * f >= 0, e, 1.0) / (1.0 + e)


def sqrt_weights(f: Array) -> Array:
    """Return √(σ(f)(1 − σ(f))) = 1/(2 cosh(f/2)), without overflow."""
    xp = namespace(f)
    e = xp.exp(-0.5 * abs(f))
    return e / (1.0 + e * e)


def log_likelihood(f: Array, y: Array) -> float:
    """Return Σ log p(y | f) = −Σ log(1 + e^−z), z = ±f."""
    xp = namespace(f)
    z = (2.0 * y - 1.0) * f
    return -float((xp.maximum(-z, 0.0) + xp.log1p(xp.exp(-abs(z)))).sum())
