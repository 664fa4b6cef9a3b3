"""Posteriors of a classifier's log odds: common to Laplace's approximation and others.

Given labels y the latent function is no Gaussian process, and approximated by one, with

    E[f(x)]          = m(x) + k(x, X) α
    Cov[f(x), f(x')] = k(x, x') − T(x)ᵀT(x'),      T(x) = L⁻¹ w k(X, x),  L = chol(I + wKw)

for m weights w and α, in which approximations differ.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from gpattr._core.array import Array, LinAlgError, cholesky, namespace
from gpattr._core.memory import check_memory
from gpattr._core.validation import as_vector, check_text, read_only
from gpattr.exceptions import (
    InvalidInputError,
    NotPositiveDefiniteError,
    UnsupportedModelError,
)
from gpattr.kernels import Kernel
from gpattr.means import Expansion, Mean
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.posteriors.given import smooth_prior


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ClassificationPosterior(FunctionSpacePosterior):
    """The latent function f ~ GP(mean, kernel) given labels y, 0 or 1, with p(y = 1) = σ(f).

    ``X`` (m, d) may be a frame, whose column names are kept. ``log_marginal_likelihood`` is an
    approximation; ``label`` names the classes whose log odds f is, for explanations to print.
    """

    y: Array = field(kw_only=True)
    log_marginal_likelihood: float = field(kw_only=True)
    label: str = field(kw_only=True)

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        y: Any,
        *,
        mean: Mean | None = None,
        label: str = "1 against 0",
    ) -> None:
        kernel, mean, Z, names = smooth_prior(kernel, mean, "X", X)
        if isinstance(mean, Expansion) and mean.covariance is not None:
            raise InvalidInputError("mean: expected one with known coefficients")
        m, xp = len(Z), namespace(Z)
        if np.asarray(y).dtype.kind in "US":
            raise InvalidInputError(
                "y: expected labels 0 and 1, got text; gpattr.GPClassifier takes labels of any kind"
            )
        y = read_only(as_vector("y", y, length=m, unit="labels (one per row of X)", like=Z))
        if not ((y == 0) | (y == 1)).all():
            raise InvalidInputError(
                f"y: expected labels 0 and 1, got {float(y[(y != 0) & (y != 1)][0]):g}"
            )
        check_memory("The covariance of the latent values", (m, m), "use fewer rows", copies=2)
        K = kernel(Z, Z)
        if not xp.isfinite(K).all():
            raise InvalidInputError(
                "variance: expected finite prior variances, got one too large for float64"
            )
        alpha, scale, L, evidence = self._approximated(K, y, mean(Z))
        super().__init__(
            kernel,
            Z,
            read_only(alpha),
            L,
            None,
            read_only(scale),
            mean=mean,
            feature_names=names,
        )
        self._note(y=y, log_marginal_likelihood=evidence, label=check_text("label", label))

    @staticmethod
    @abstractmethod
    def _approximated(K: Array, y: Array, mean: Array) -> tuple[Array, Array, Array, float]:
        """Return α, w, L and log p(y), given the covariance and the prior mean at X."""

    def _note(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def training_inputs(self) -> Array:
        """The inputs the model was trained on, (m, d)."""
        return self.inputs

    @property
    def link(self) -> str:
        return "logistic"

    def given(self, kernel: Kernel) -> Self:
        """Return the same approximation with another kernel."""
        return type(self)(kernel, self.inputs, self.y, mean=self.mean, label=self.label)

    def conditioned(self, X: Array, y: Array, noise: Any) -> Self:
        raise UnsupportedModelError(
            f"{type(self).__name__}: a label is not a value with Gaussian noise; fit it again with"
            " the new rows"
        )

    def __repr__(self) -> str:
        m, d = self.inputs.shape
        return f"{type(self).__name__}({m} rows × {d} features, kernel={self.kernel!r})"


def factor_at(K: Array, scale: Array) -> Array:
    """Return chol(I + wKw), whose eigenvalues are 1 or larger."""
    B = scale[:, None] * K * scale
    i = namespace(K).arange(len(K))
    B[i, i] += 1.0
    try:
        return cholesky(B)
    except LinAlgError:  # only where rounding makes K indefinite by far more than 1
        raise NotPositiveDefiniteError(
            "kernel: its matrix on these rows is not positive definite"
        ) from None
