"""Bound operators: an operator and an evaluation bound to a posterior, and the answer.

Formulas are resolved when an operator is bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, product, to_numpy
from gpattr._core.memory import check_memory
from gpattr._core.normal import roots, standard_draws
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import beside, check_choice, positive_scalar
from gpattr.closed_forms import METHODS
from gpattr.closed_forms.quadrature.fixed_rules import check_steps
from gpattr.closed_forms.table import Formulas
from gpattr.distributions import Distribution, Mixture
from gpattr.exceptions import UnsupportedModelError
from gpattr.operators import Operator
from gpattr.posteriors.given import matrix

UNCERTAINTY = ("cov", "std", "none")
TOLERANCE = 1e-6  # of the size of the function, for attributions by quadrature
TOGETHER = 4000  # outputs of which one joint covariance is formed: 128 MB


@dataclass(frozen=True)
class Evaluation:
    """Options of an evaluation: uncertainty, method and tolerances.

    ``uncertainty`` is ``"cov"`` (covariance between outputs), ``"std"`` (variances only) or
    ``"none"`` (means, at a few times the cost of a prediction). ``method`` and ``n_steps`` are
    arguments of `closed_forms.formulas_for`. Where quadrature does not reach ``tolerance``,
    relative to the size of the function, `ToleranceError` is raised.

    With ``covariance_tolerance`` covariances may have errors of that share of the largest variance
    of a row, where that is faster (`spectrum`).

    Examples
    --------
    >>> from gpattr.posteriors import Evaluation
    >>> Evaluation("std", method="trapezoid", n_steps=16).n_steps
    16
    """

    uncertainty: str = "cov"
    method: str = "auto"
    n_steps: int | None = None
    tolerance: float = TOLERANCE
    covariance_tolerance: float | None = None

    def __post_init__(self) -> None:
        check_choice("uncertainty", self.uncertainty, UNCERTAINTY)
        check_choice("method", self.method, METHODS)
        object.__setattr__(self, "n_steps", check_steps(self.method, self.n_steps))
        object.__setattr__(self, "tolerance", positive_scalar("tolerance", self.tolerance))
        if self.covariance_tolerance is not None:
            allowed = positive_scalar("covariance_tolerance", self.covariance_tolerance)
            object.__setattr__(self, "covariance_tolerance", allowed)

    @property
    def exact(self) -> bool:
        """Whether closed forms are used where there are any."""
        return self.method in ("auto", "exact")


@dataclass(frozen=True, eq=False)
class Attributions:
    """𝒜f at n rows: the joint ``distribution`` of its q outputs in each of them.

    ``error`` (n,) bounds the error of the mean that the evaluation makes; ``method`` says how it
    was evaluated. ``cov_error`` (n,) bounds the error of the entries of ``cov``, and so of ``var``,
    rounding included.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> operator = gpattr.operators.IntegratedGradients([0.0, 0.0])
    >>> attributions = model.posterior_.apply(operator, X)
    >>> attributions.distribution.mean.shape, attributions.error.shape, attributions.method
    ((30, 2), (30,), 'closed form')
    """

    distribution: Distribution
    error: Array
    method: str
    cov_error: Array | None = None

    @property
    def mean(self) -> Array:
        """The mean, (n, q)."""
        return self.distribution.mean

    @property
    def var(self) -> Array | None:
        """The variances, (n, q), if they were asked for."""
        return self.distribution.var

    @property
    def cov(self) -> Array | None:
        """The covariances between outputs, (n, q, q), if they were asked for."""
        return self.distribution.cov

    @property
    def components(self) -> Mixture | None:
        """The mixture that this is; None for a single Gaussian."""
        return self.distribution if isinstance(self.distribution, Mixture) else None

    def linear(self, G: Array, uncertainty: str) -> Attributions:
        """Return the sums Σᵢ Gᵢⱼ𝒜ᵢf for G (q, k), with covariances only on request."""
        distribution = self.distribution.linear(G)
        widest = float(abs(G).sum(axis=0).max())
        return replace(
            self,
            distribution=distribution if uncertainty == "cov" else distribution.without_cov(),
            error=self.error * widest,
            cov_error=None if self.cov_error is None else self.cov_error * widest**2,
        )


class Bound(ABC):
    """An ``operator`` bound to a posterior with an ``evaluation``, to be applied to rows X, (n, d).

    Formulas are resolved when it is made. Rows have been checked: they are those that
    `Posterior.rows` returns, and as many as the operator is for.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> operator = gpattr.operators.IntegratedGradients([0.0, 0.0])
    >>> bound = model.posterior_.bind(operator, gpattr.posteriors.Evaluation("std"))
    >>> bound.apply(X[:3]).distribution.var.shape
    (3, 2)
    """

    operator: Operator
    evaluation: Evaluation

    @property
    def pair_cost(self) -> float:
        """The extra cost of the prior covariance of a pair of rows, in entries."""
        return Formulas.pair_cost

    @abstractmethod
    def rows(self, rows: Any) -> Bound:
        """Return the bound operator for these rows only (a slice or an index array)."""

    @abstractmethod
    def apply(self, X: Array) -> Attributions:
        """Return the joint distribution of the operator's q outputs at every row."""

    @abstractmethod
    def joint(self, X: Array) -> Array:
        """Return the covariance between all outputs of all rows, (n, q, n, q)."""

    def mean(self, X: Array) -> Array:
        """Return the mean alone, (n, q)."""
        return self.apply(X).mean

    def rows_covariance(self, X: Array, gather: Any = None) -> Array:
        """Return the covariance between rows of each output by itself, (q, n, n).

        With ``gather`` G (q, k) the outputs are the sums Σᵢ Gᵢⱼ𝒜ᵢ, (k, n, n). The covariance
        between all outputs of all rows is never formed: here `joint` is asked of two blocks of rows
        at a time.
        """
        n, q = len(X), self.operator.size(X.shape[1])
        G = gathering(gather, q, X)
        result = rows_covariance_of(n, q, G, X)
        size = max(1, TOGETHER // (2 * max(1, q)))
        starts = range(0, n, size)
        pairs = [(i, j) for i in starts for j in starts if i < j] or [(0, size)]
        for pair in pairs:
            both = np.concatenate([np.arange(i, min(i + size, n)) for i in pair])
            part = self.rows(both).joint(X[both])
            result[:, both[:, None], both] = output_by_output(part, G)
        return result

    def covariance_with_values(self, X: Array, candidates: Array, gather: Any = None) -> Array:
        """Return Cov[𝒜f(x), f(p)] for rows X and candidates p, (n, q, c).

        With ``gather`` G (q, k) the outputs are the sums Σᵢ Gᵢⱼ𝒜ᵢ, (n, k, c).
        """
        raise UnsupportedModelError(
            "model: covariances between attributions and values of the function are available for"
            f" a single Gaussian process; {type(self).__name__} does not have them"
        )

    def contributions(self, X: Array) -> Array:
        """Return the share of each training row in each mean, (n, q, m)."""
        raise UnsupportedModelError(
            "model: the share of each training row is available for posteriors that keep their"
            " rows, such as ExactPosterior; this one does not"
        )

    def across(self, X: Array) -> Array:
        """Return each row's covariance between its outputs and the model's, (n, q, P, q, P)."""
        raise UnsupportedModelError(
            "model: this model has one output, and so no covariance between outputs"
        )

    def sample(self, X: Array, n: int, random_state: RandomLike) -> np.ndarray:
        """Return n draws of the outputs at all rows together, (n, rows, q)."""
        mean = to_numpy(self.mean(X))
        C = to_numpy(self.joint(X)).reshape(mean.size, mean.size)
        draws = product(standard_draws("n", n, mean.size, random_state), roots(C[None])[0])
        return mean + draws.reshape(n, *mean.shape)


def check_covariance_memory(n: int, q: int, *, copies: int = 1) -> None:
    """Raise `TooLargeError` if the covariances of n rows do not fit."""
    remedy = 'use uncertainty="std", or go through the rows in parts (explainer.batches)'
    check_memory("The covariance of the attributions", (n, q, q), remedy, copies=copies)


def check_joint_memory(n: int, q: int, *, copies: int = 2) -> None:
    """Raise `TooLargeError` if the joint covariance of n rows does not fit."""
    remedy = "use fewer rows, say a random sample"
    check_memory("The joint covariance of the attributions", (n, q, n, q), remedy, copies=copies)


def gathering(gather: Any, q: int, like: Array) -> Array | None:
    """Return the matrix (q, k) that adds q outputs up, beside ``like``; None for each by itself."""
    return None if gather is None else beside("gather", matrix("gather", gather, q, None), like)


def values_covariance_of(n: int, q: int, c: int, G: Array | None, like: Array) -> Array:
    """Return an empty array for covariances of n rows' outputs, or columns of G, with c values."""
    shape = (n, q if G is None else G.shape[1], c)
    remedy = "use fewer rows or candidates, or one feature at a time"
    check_memory("The covariance with values of the function", shape, remedy, copies=2)
    return namespace(like).empty(shape)


def rows_covariance_of(n: int, q: int, G: Array | None, like: Array) -> Array:
    """Return an empty array for the covariance between n rows of each output, or column of G."""
    shape = (q if G is None else G.shape[1], n, n)
    remedy = "use fewer rows, say a random sample"
    check_memory("The covariance between rows", shape, remedy, copies=2)
    return namespace(like).empty(shape)


def output_by_output(joint: Array, G: Array | None) -> Array:
    """Return the covariances of each output by itself, (q, n, m), or of Gᵀ𝒜, of (n, q, m, q)."""
    xp = namespace(joint)
    if G is None:
        return xp.einsum("nimi->inm", joint)
    return xp.einsum("njmi,ji->inm", joint @ G, G)


def covariance(C: Array) -> Array:
    """Return C (..., k, k) made exactly symmetric, its variances not below zero.

    Rounding can leave either a little off.
    """
    xp = namespace(C)
    C = 0.5 * (C + xp.swapaxes(C, -1, -2))
    diagonal = xp.arange(C.shape[-1])
    C[..., diagonal, diagonal] = xp.maximum(C[..., diagonal, diagonal], 0.0)
    return C
