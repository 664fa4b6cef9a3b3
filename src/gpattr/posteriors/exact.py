"""The exact posterior of Gaussian-process regression with Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpattr._core.array import (
    EPS,
    Array,
    LinAlgError,
    cholesky,
    is_tensor,
    namespace,
    outer_products,
    product,
    solve_cholesky,
    to_numpy,
)
from gpattr._core.memory import blocks, check_memory, device_memory, result_limit
from gpattr._core.validation import (
    Names,
    as_matrix,
    as_vector,
    beside,
    column_names,
    read_only,
)
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError
from gpattr.kernels import Kernel
from gpattr.kernels.categorical import in_polynomials
from gpattr.kernels.white import fold_white
from gpattr.means import Expansion, Mean
from gpattr.posteriors.function_space import FunctionSpacePosterior, Trend
from gpattr.posteriors.given import check_noise, checked_mean, matrix, noise_at, smooth_prior
from gpattr.posteriors.spectrum import Spectrum


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ExactPosterior(FunctionSpacePosterior):
    """The posterior of f ~ GP(mean, kernel) given yₙ = f(xₙ) + noise.

    L = chol(k(X, X) + diag(noise)), α = L⁻ᵀL⁻¹(y − m(X)).

    Where the coefficients β of the mean are uncertain, N(β₀, B) or flat (B⁻¹ = 0), with Φ their
    basis at X and A = k(X, X) + noise: C = (B⁻¹ + ΦᵀA⁻¹Φ)⁻¹, β̄ = β₀ + C ΦᵀA⁻¹(y − Φβ₀),
    α = A⁻¹(y − Φβ̄), ``mean`` has the coefficients β̄, and ``trend`` holds C. ``prior_mean`` is the
    mean before any data.

    Parameters
    ----------
    kernel : Kernel
        The prior covariance. A `White` part is added to the noise, and is no longer part of
        ``kernel``.
    X : array or frame (m, d)
        The training inputs; the column names of a frame are kept.
    y : array (m,)
        The training targets.
    noise : float or array (m,)
        The noise variance, one number or one per row.
    mean : Mean, optional
        The prior mean, zero by default.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import SquaredExponential
    >>> from gpattr.posteriors import ExactPosterior
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> posterior = ExactPosterior(SquaredExponential(), X, [0.0, 1.0, 0.0], noise=0.01)
    >>> mean, std = posterior.predict([[1.0]], return_std=True)
    >>> mean.round(2), std.round(2)
    (array([0.97]), array([0.1]))
    """

    prior_mean: Mean = field(kw_only=True)
    y: Array = field(kw_only=True)
    noise: Array = field(kw_only=True)
    log_marginal_likelihood: float = field(kw_only=True)

    def __init__(
        self,
        kernel: Kernel,
        X: ArrayLike,
        y: ArrayLike,
        *,
        noise: ArrayLike,
        mean: Mean | None = None,
    ) -> None:
        if not isinstance(kernel, Kernel):
            raise InvalidInputError(
                f"kernel: expected a gpattr kernel, got {type(kernel).__name__}"
            )
        names = column_names(X)
        Z = read_only(as_matrix("X", X))
        m, d = Z.shape
        kernel.check_features(d)
        mean = checked_mean(mean, d)
        y = read_only(as_vector("y", y, length=m, unit="targets (one per row of X)", like=Z))
        noise = check_noise(noise, Z)
        kernel.check_derivatives(Z)
        smooth, white = fold_white(kernel, Z)
        if smooth is None:
            raise InvalidInputError(
                "kernel: White alone is noise without a function; add the kernel of one"
            )
        kernel, noise = in_polynomials(smooth), read_only(noise + white)
        check_training_memory(Z)
        with device_memory("The covariance of the training targets", Z):
            self._condition(kernel, Z, y, noise, mean, factorise(kernel, Z, noise), names)

    @classmethod
    def from_state(
        cls,
        kernel: Kernel,
        X: ArrayLike,
        y: ArrayLike,
        *,
        noise: ArrayLike,
        factor: Any,
        mean: Mean | None = None,
    ) -> ExactPosterior:
        """Return the posterior with the ``factor`` L (m, m) that was found elsewhere.

        Where the covariance of the targets is singular up to rounding, so is its factor: only with
        the same one do two libraries predict the same.
        """
        kernel, mean, Z, names = smooth_prior(kernel, mean, "X", X)
        m = len(Z)
        y = read_only(as_vector("y", y, length=m, unit="targets (one per row of X)", like=Z))
        noise = check_noise(noise, Z)
        L = np.asfortranarray(to_numpy(matrix("factor", factor, m, m)))
        if not (L.diagonal() > 0).all() or np.triu(L, 1).any():
            raise InvalidInputError(
                "factor: expected a lower triangular matrix with a positive diagonal"
            )
        result = object.__new__(cls)
        result._condition(kernel, Z, y, noise, mean, beside("factor", L, Z), names)
        return result

    def given(self, y: ArrayLike, *, mean: Mean | None = None) -> ExactPosterior:
        """Return the posterior of the same prior, with this ``mean``, for other targets.

        Nothing is factorised again: several outputs with one kernel and one noise cost one
        factorisation.
        """
        Z = self.inputs
        mean = checked_mean(mean, Z.shape[1])
        y = read_only(as_vector("y", y, length=len(Z), unit="targets (one per row of X)", like=Z))
        result = object.__new__(type(self))
        result._condition(self.kernel, Z, y, self.noise, mean, self.factor, self.feature_names)
        return result

    def _condition(
        self,
        kernel: Kernel,
        Z: Array,
        y: Array,
        noise: Array,
        mean: Mean,
        factor: Array,
        names: Names | None,
    ) -> None:
        """Become the posterior given targets whose covariance has been factorised."""
        prior_mean = mean
        if isinstance(mean, Expansion):
            mean = mean.centred(Z)
        residual, shift, trend = y - mean(Z), 0.0, None
        evidence = 0.5 * len(Z) * math.log(2.0 * math.pi)
        if isinstance(mean, Expansion) and mean.covariance is not None:
            trend, beta, evidence = _trend(mean, Z, factor, residual)
            shift = product(mean.basis(Z), beta)
            mean = mean.with_beta(mean.beta + to_numpy(beta))
        alpha = solve_cholesky(factor, residual - shift)
        if not namespace(alpha).isfinite(alpha).all():
            raise InvalidInputError(
                "y: the targets are too large, or variance and noise too small, for float64;"
                " rescale y"
            )
        super().__init__(
            kernel, Z, read_only(alpha), factor, mean=mean, feature_names=names, trend=trend
        )
        logs = float(namespace(y).log(factor.diagonal()).sum())
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # targets of 1e160 have no evidence, but an explanation
            evidence = -0.5 * float(residual @ alpha) - logs - evidence
        for name, value in {
            "prior_mean": prior_mean,
            "y": y,
            "noise": noise,
            "log_marginal_likelihood": evidence,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def noise_variance(self) -> float | None:
        first = self.noise[0]
        return float(first) if bool((self.noise == first).all()) else None

    @cached_property
    def spectra(self) -> dict[int, Spectrum]:
        """The eigenvectors that `leading` has computed, by their number."""
        return {}

    def conditioned(self, X: Array, y: Array, noise: ArrayLike) -> ExactPosterior:
        """Return the posterior given k more targets: rows are appended to L, in O(k m²)."""
        self.check_range(X, "x")
        xp, more = namespace(X), noise_at(self, noise, X)
        Z = read_only(xp.concatenate([self.inputs, X]))
        check_training_memory(Z)
        V = self.solve(self.kernel(X, self.inputs))
        factor = _extended(self.kernel, self.factor, Z, V, more)
        targets, noise = (
            read_only(xp.concatenate(pair)) for pair in ((self.y, y), (self.noise, more))
        )
        result = object.__new__(type(self))
        names = self.feature_names
        result._condition(self.kernel, Z, targets, noise, self.prior_mean, factor, names)
        return result

    @property
    def training_inputs(self) -> Array:
        """The inputs the model was trained on, (m, d)."""
        return self.inputs

    def __repr__(self) -> str:
        m, d = self.inputs.shape
        return f"ExactPosterior({m} rows × {d} features, kernel={self.kernel!r})"


def _trend(mean: Expansion, Z: Array, factor: Array, residual: Array) -> tuple[Trend, Array, float]:
    """Return the uncertain trend, β̄ − β₀ (p,), and its reduction of the log evidence.

    p(y) has ½ log|B⁻¹| − ½ log|B⁻¹ + ΦᵀA⁻¹Φ| more than with known coefficients; a flat prior has no
    first term and p factors of √2π less (Rasmussen and Williams, section 2.7).
    """
    xp = namespace(Z)
    basis = mean.basis(Z)
    W = solve_cholesky(factor, basis)
    root, shift, evidence = coefficients_given(basis, W, xp.asarray(mean.precision()), residual)
    return Trend(mean.basis, W, root), shift, evidence


def coefficients_given(
    basis: Array, W: Array, precision: Array, residual: Array
) -> tuple[Array, Array, float]:
    """Return G with C = GGᵀ, C Wᵀ residual, and −log of the coefficients' factor of the evidence.

    Here W = A⁻¹Φ.
    """
    xp = namespace(basis)
    M = product(basis.T, W) + precision
    size = xp.sqrt(M.diagonal())
    size = xp.where(size > 0, size, 1.0)  # a column of zeros is refused below
    scaled = M / size[:, None] / size
    values = to_numpy(scaled)
    if not np.isfinite(values).all() or np.linalg.eigvalsh(values)[0] < 1e-13:
        raise InvalidInputError(
            "mean: its basis functions are not independent on these rows (constant or repeated"
            " columns, or fewer rows than coefficients); give a covariance instead of 'flat', or"
            " leave some out"
        )
    L = cholesky(scaled)
    root = xp.asarray(np.linalg.inv(to_numpy(L)).T) / size[:, None]
    logs = float(xp.log(L.diagonal()).sum() + xp.log(size).sum())
    p, m = len(M), len(basis)
    flat = not bool((precision != 0).any())
    prior = 0.0 if flat else 0.5 * float(np.linalg.slogdet(to_numpy(precision))[1])
    evidence = logs - prior + 0.5 * (m - (p if flat else 0)) * math.log(2.0 * math.pi)
    return root, root @ (root.T @ product(W.T, residual)), evidence


def check_training_memory(Z: Array) -> None:
    """Raise `TooLargeError` if the covariance of the targets at Z (m, d) does not fit."""
    most, m = int((result_limit(Z) / 8.0) ** 0.5), len(Z)
    remedy = f"{most:,} rows would fit; use fewer, or a sparse model"
    check_memory("The covariance of the training targets", (m, m), remedy, like=Z)


def factorise(kernel: Kernel, Z: Array, noise: Array) -> Array:
    """Return chol(k(Z, Z) + diag(noise)), (m, m); refuse a matrix that is singular to rounding."""
    xp, m, scale = namespace(Z), len(Z), kernel.diagonal(Z)
    K = kernel(Z, Z) if type(Z) is np.ndarray else _lower_triangle(kernel, Z)
    i = xp.arange(m)
    with np.errstate(over="ignore"):
        K[i, i] += noise
    if not all(bool(xp.isfinite(K[rows]).all()) for rows in blocks(m, 8.0 * m, Z)):
        raise InvalidInputError(
            "variance: expected variances whose sum with the noise is finite, got one too large for"
            " float64"
        )
    try:
        L = cholesky(K)
    except LinAlgError:
        L = None
    return _regular(L, Z, scale)


def _lower_triangle(kernel: Kernel, Z: Array) -> Array:
    """Return k(Z, Z), (m, m), in the lower triangle and beyond, block by block of rows."""
    m = len(Z)
    K = namespace(Z).zeros((m, m))
    for rows in blocks(m, 32.0 * m, Z):
        K[rows, : rows.stop] = kernel(Z[rows], Z[: rows.stop])
    return K


def _regular(L: Array | None, Z: Array, scale: Array) -> Array:
    """Return a Cholesky factor that cannot be written to; refuse one that is only rounding.

    ``scale`` are the prior variances of its last rows.
    """
    # A pivot at the level of rounding means the factor is noise, even where LAPACK went through.
    if L is None or not (L.diagonal()[-len(scale) :] ** 2 > 4 * EPS * scale).all():
        raise NotPositiveDefiniteError(
            f"noise: the covariance of the {len(Z)} training targets is singular to"
            f" rounding{_duplicates(to_numpy(Z))}; give a larger noise variance (say"
            f" noise={1e-6 * float(abs(scale).max()):.0e}), or remove rows that say the same"
        )
    if not is_tensor(L):
        L.flags.writeable = False
    return L


def _extended(kernel: Kernel, L: Array, Z: Array, V: Array, noise: Array) -> Array:
    """Return the factor of all rows Z, given the first m rows' and the rows V = k(X, Z)L⁻ᵀ."""
    xp, (k, m) = namespace(V), V.shape
    X = Z[m:]
    i, scale = xp.arange(k), kernel.diagonal(X)
    C = kernel(X, X) - outer_products(V)
    C[i, i] += noise
    try:
        corner = cholesky(C)
    except LinAlgError:
        corner = None
    if corner is None:
        return _regular(None, Z, scale)
    return _regular(bordered(L, V, corner), Z, scale)


def bordered(L: Array, V: Array, corner: Array) -> Array:
    """Return [[L, 0], [V, corner]], in the order in which BLAS reads it."""
    (m, r), k = L.shape, len(V)
    shape = (m + k, r + corner.shape[1])
    result = namespace(L).zeros(shape) if is_tensor(L) else np.zeros(shape, order="F")
    result[:m, :r], result[m:, :r], result[m:, r:] = L, V, corner
    return result


def _duplicates(Z: Array) -> str:
    _, first, inverse = np.unique(Z, axis=0, return_index=True, return_inverse=True)
    repeated = np.flatnonzero(first[inverse.ravel()] != np.arange(len(Z)))
    if not len(repeated):
        return ""
    row = int(repeated[0])
    return (
        f": rows {int(first[inverse.ravel()[row]])} and {row} of X are equal and their noise is too"
        " small"
    )
