"""Sparse posteriors: Gaussian processes known by their values at inducing inputs, f(Z) ~ N(m, S).

    E[f(x)]          = m₀(x) + k(x, Z) α,                     α = K⁻¹(m − m₀(Z))
    Cov[f(x), f(x')] = k(x, x') − T(x)ᵀ (I − RRᵀ) T(x'),      T(x) = L⁻¹k(Z, x),
                                                              L = chol(K),  R = L⁻¹S^½

Whitened, f(Z) = m₀(Z) + Lv with v ~ N(m, S), it is α = L⁻ᵀm and R = S^½. K is k(Z, Z) plus
``jitter``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpattr._core.array import (
    Array,
    add_gram,
    cholesky,
    namespace,
    product,
    solve_lower_rows,
    solve_upper,
    to_numpy,
)
from gpattr._core.memory import blocks
from gpattr._core.validation import (
    as_matrix,
    as_vector,
    beside,
    check_flag,
    finite_scalar,
    read_only,
)
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.posteriors.base import checked_points
from gpattr.posteriors.exact import bordered, factorise
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.posteriors.given import (
    check_noise,
    matrix,
    noise_at,
    root_of,
    smooth_prior,
    updated_root,
)

INDEPENDENT = 1e-12  # of the prior variance at a new input: what f(Z) must leave of it


@dataclass(frozen=True, eq=False, init=False, repr=False)
class SparsePosterior(FunctionSpacePosterior):
    """The posterior of f ~ GP(mean, kernel) with q = N(``q_mean``, ``q_cov``) at inducing inputs.

    ``inducing`` (m, d) may be a frame, whose column names are kept. q describes f(Z), or with
    ``whitened`` v in f(Z) = m₀(Z) + Lv. Its covariance is ``q_cov`` (m, m), or ``q_root`` (m, r)
    with q_cov = q_root q_rootᵀ, which keeps more digits. ``jitter`` is added to the diagonal of
    k(Z, Z); libraries that add one to it must be matched. ``reference_points`` can serve as
    baselines, such as ``{"mean": …}`` of the training inputs, which a sparse posterior does not
    keep.

    `SparsePosterior.fit` finds the best q for given data; ``bound`` is then the lower bound of the
    log marginal likelihood. ``whitened_mean`` is the mean of v.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import SquaredExponential
    >>> from gpattr.posteriors import SparsePosterior
    >>> X = np.linspace(0.0, 3.0, 50)[:, None]
    >>> inducing = np.linspace(0.0, 3.0, 7)[:, None]
    >>> y, kernel = np.sin(X[:, 0]), SquaredExponential()
    >>> posterior = SparsePosterior.fit(kernel, inducing, X, y, noise=0.01)
    >>> posterior.predict([[np.pi / 2]]).round(2)
    array([1.])
    """

    whitened_mean: Array = field(kw_only=True)
    points: Mapping[str, Array] = field(kw_only=True)
    bound: float | None = field(kw_only=True)

    def __init__(
        self,
        kernel: Kernel,
        inducing: Any,
        q_mean: Any,
        q_cov: Any = None,
        *,
        q_root: Any = None,
        whitened: bool = False,
        mean: Mean | None = None,
        jitter: float = 0.0,
        reference_points: Mapping[str, Any] | None = None,
        bound: float | None = None,
    ) -> None:
        check_flag("whitened", whitened)
        bound = None if bound is None else finite_scalar("bound", bound)
        kernel, mean, Z, names = smooth_prior(kernel, mean, "inducing", inducing)
        m, d = Z.shape
        factor = _factor(kernel, Z, jitter)
        centre = as_vector(
            "q_mean", q_mean, length=m, unit="numbers (one per inducing input)", like=Z
        )
        if (q_cov is None) == (q_root is None):
            raise InvalidInputError("q_cov: expected exactly one of q_cov and q_root")
        if q_root is None:
            root = namespace(Z).asarray(root_of("q_cov", to_numpy(matrix("q_cov", q_cov, m, m))))
        else:
            root = beside("q_root", matrix("q_root", q_root, m, None), Z)
        if not whitened:
            centre, root = (
                _whitened(factor, centre - mean(Z)),
                solve_lower_rows(factor, root.T + 0.0).T,
            )
        points = checked_points(reference_points, d)
        super().__init__(
            kernel, Z, solve_upper(factor, centre), factor, root, mean=mean, feature_names=names
        )
        for name, value in {
            "whitened_mean": read_only(centre),
            "points": points,
            "bound": bound,
        }.items():
            object.__setattr__(self, name, value)

    @classmethod
    def fit(
        cls,
        kernel: Kernel,
        inducing: Any,
        X: Any,
        y: Any,
        *,
        noise: Any,
        mean: Mean | None = None,
        jitter: float = 0.0,
    ) -> SparsePosterior:
        """Return the sparse posterior nearest to the exact one for y = f(X) + noise (Titsias 2009).

        ``noise`` is a variance, one number or one per row, Λ its diagonal. With A = L⁻¹k(Z, X)Λ^−½
        and B = I + AAᵀ, v has the covariance B⁻¹ and the mean B⁻¹AΛ^−½(y − m₀(X)). Rows are taken
        by blocks; memory does not grow with them.
        """
        kernel, mean, Z, names = smooth_prior(kernel, mean, "inducing", inducing)
        X = as_matrix("X", X, names=names, n_features=Z.shape[1], like=Z)
        y = as_vector("y", y, length=len(X), unit="targets (one per row of X)", like=Z)
        noise = check_noise(noise, X)
        if not (noise > 0).all():
            raise InvalidInputError(
                f"noise: expected variances larger than 0, got {float(noise.min())}"
            )
        xp, m = namespace(Z), len(Z)
        factor = _factor(kernel, Z, jitter)
        B = xp.asarray(np.eye(m, order="F"))
        c, missing, energy = xp.zeros(m), 0.0, 0.0
        for rows in blocks(len(X), 32.0 * m, X):
            level = noise[rows] ** 0.5
            A = solve_lower_rows(factor, kernel(X[rows], Z)) / level[:, None]  # (r, m)
            residual = (y[rows] - mean(X[rows])) / level
            missing += float((kernel.diagonal(X[rows]) / noise[rows]).sum()) - float((A**2).sum())
            energy += float(residual @ residual)
            B, c = add_gram(B, A), c + product(A.T, residual)
        LB = cholesky(B.T)  # which reads the other triangle
        root = solve_lower_rows(LB, xp.asarray(np.eye(m)))  # LB⁻ᵀ
        scaled = product(root.T, c)
        points = {"mean": to_numpy(X).mean(axis=0), "median": np.median(to_numpy(X), axis=0)}
        logs = (
            float(xp.log(noise).sum())
            + 2.0 * float(xp.log(LB.diagonal()).sum())
            + len(y) * math.log(2.0 * math.pi)
        )
        bound = -0.5 * (logs + energy - float(scaled @ scaled) + missing)
        q: dict[str, Any] = {"q_root": root, "whitened": True, "mean": mean, "jitter": jitter}
        return cls(
            kernel, inducing, product(root, scaled), **q, reference_points=points, bound=bound
        )

    def conditioned(self, X: Array, y: Array, noise: Any) -> SparsePosterior:
        """Return the posterior given more measurements, each an inducing input of its own.

        Given f at inducing inputs the process is the prior's, also at the new ones, so that this is
        exact.
        """
        self.check_range(X, "x")
        result, noise = self, noise_at(self, noise, X)
        for i in range(len(X)):
            result = result._given(X[i : i + 1], float(y[i]), float(noise[i]))
        return result

    def _given(self, x: Array, y: float, noise: float) -> SparsePosterior:
        """Return the posterior given one measurement at x (1, d), in O(m²).

        With l² what the prior at x leaves given f(Z), f(x) = m₀(x) + T(x)ᵀv + lw, w ~ N(0, 1).
        """
        xp, t, own = namespace(x), self.whitened(x)[0], self.kernel.diagonal(x)
        Z, L, v, R = self.inputs, self.factor, self.whitened_mean, self.root
        assert R is not None
        left = own - (t**2).sum(axis=1)
        if bool(left > INDEPENDENT * own):
            pivot = xp.sqrt(left)[:, None]
            Z, v = xp.concatenate([Z, x]), xp.concatenate([v, 0.0 * left])
            L, t = bordered(L, t, pivot), xp.concatenate([t, pivot], axis=1)
            R = bordered(R, xp.zeros((1, R.shape[1])), 0.0 * pivot + 1.0)
        residual = y - float(self.mean(x)[0]) - float(t[0] @ v)
        R, shift = updated_root(R, product(t[0], R), noise, residual)
        v = v + shift
        result = object.__new__(SparsePosterior)
        about: dict[str, Any] = {"mean": self.mean, "feature_names": self.feature_names}
        FunctionSpacePosterior.__init__(result, self.kernel, Z, solve_upper(L, v), L, R, **about)
        for name, value in {
            "whitened_mean": read_only(v),
            "points": self.points,
            "bound": None,
        }.items():
            object.__setattr__(result, name, value)
        return result

    @property
    def reference_points(self) -> Mapping[str, Array]:
        """Points that can serve as baselines, by name."""
        return self.points

    def __repr__(self) -> str:
        m, d = self.inputs.shape
        return f"SparsePosterior({m} inducing inputs × {d} features, kernel={self.kernel!r})"


def _factor(kernel: Kernel, Z: Array, jitter: Any) -> Array:
    """Return chol(k(Z, Z) + jitter)."""
    if finite_scalar("jitter", jitter) < 0:
        raise InvalidInputError(f"jitter: expected a variance, 0 or larger, got {jitter}")
    return factorise(kernel, Z, namespace(Z).zeros(len(Z)) + float(jitter))


def _whitened(L: Array, u: Array) -> Array:
    """Return L⁻¹u."""
    return solve_lower_rows(L, u[None] + 0.0)[0]
