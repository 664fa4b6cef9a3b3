"""What every posterior can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpattr._core.arguments import Checked, an_array, instance
from gpattr._core.array import Array, namespace, product, to_numpy
from gpattr._core.cards import card
from gpattr._core.frozen import Frozen
from gpattr._core.memory import check_memory
from gpattr._core.normal import roots, standard_draws
from gpattr._core.validation import (
    Names,
    as_matrix,
    beside,
    check_choice,
    check_flag,
    positive_scalar,
)
from gpattr.closed_forms import METHODS
from gpattr.distributions.marginals import Mixture
from gpattr.exceptions import UnsupportedModelError
from gpattr.operators import Operator
from gpattr.posteriors.matrices import matrix

UNCERTAINTY = ("cov", "std", "none")
TOLERANCE = 1e-6  # of the size of the function, for attributions by quadrature
TOGETHER = 4000  # attributions of which one joint covariance is formed: 128 MB


@dataclass(frozen=True, eq=False)
class Components:
    """The Gaussians that a mixture makes of the attributions: ``weights`` (K,), ``mean`` (K, n, d),
    ``var``, ``cov``.

    ``var`` (K, n, d) and ``cov`` (K, n, d, d) are there as far as they were asked for.
    """

    weights: Array
    mean: Array
    var: Array | None
    cov: Array | None

    def marginals(self) -> Mixture:
        """Return the mixture of each attribution by itself, with its density and quantiles."""
        assert self.var is not None, "asked for without variances"
        return Mixture(self.weights, self.mean, self.var)


@dataclass(frozen=True, eq=False)
class Attributions:
    """𝒜f at n rows: ``mean`` (n, d), ``var`` (n, d), ``cov`` (n, d, d), as far as they were asked
    for.

    It is Gaussian unless ``components`` are there, which say of what it is a mixture. ``error``
    (n,) bounds the error of ``mean`` that the evaluation makes; ``method`` says how it was
    evaluated. ``cov_error`` (n,) bounds the error of the entries of ``cov``, and so of ``var``,
    rounding included."""

    mean: Array
    var: Array | None
    cov: Array | None
    error: Array
    method: str
    components: Components | None = None
    cov_error: Array | None = None


CHECKS = {
    "operator": instance(Operator, "a gpattr operator, such as IntegratedGradients"),
    "return_std": check_flag,
    "return_cov": check_flag,
    "with_variances": check_flag,
    "uncertainty": lambda name, value: check_choice(name, value, UNCERTAINTY),
    "method": lambda name, value: check_choice(name, value, METHODS),
    "tolerance": positive_scalar,
    "like": an_array,
}


class Posterior(Checked, Frozen, ABC):
    """The distribution of a function given data: it predicts, and operators apply to it.

    ``feature_names`` are the columns of the frame it was trained on. ``reference_points`` are points (d,)
    of the training inputs that can serve as baselines, by name: "mean" and "median", where they are
    known. ``note`` is what explanations must say about it."""

    note: str = ""
    checks: ClassVar[Any] = CHECKS

    feature_names: Names | None
    reference_points: Mapping[str, Array]

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of features d."""

    @property
    @abstractmethod
    def like(self) -> Array:
        """An array of the library and on the device that this posterior lives on."""

    def _repr_html_(self) -> str:
        rows, kernel = self.training_inputs, getattr(self, "kernel", None)
        names = ", ".join(self.feature_names) if self.feature_names else str(self.n_features)
        lines: list[tuple[str, object]] = [
            ("training rows", "not kept" if rows is None else len(rows)),
            ("features", names),
        ]
        return card(type(self).__name__, lines if kernel is None else [*lines, ("kernel", kernel)])

    @property
    def link(self) -> str | None:
        """The function that makes a probability of f, where f is one of a classifier: "logistic"."""
        return None

    @property
    def components(self) -> tuple[tuple[float, Posterior], ...]:
        """The Gaussian posteriors of which this is a mixture, with their weights."""
        return ((1.0, self),)

    @property
    def training_inputs(self) -> Array | None:
        """The inputs the model was trained on, (m, d), where it still has them."""
        return None

    @abstractmethod
    def predict(self, X: Any, *, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the mean of the latent function at X, (n,); with its standard deviation (n,) or
        covariance (n, n) if asked.

        The latent function is free of noise: its variance does not contain the noise of an
        observation."""

    @abstractmethod
    def apply(
        self,
        operator: Operator,
        X: Any,
        *,
        uncertainty: str = "cov",
        method: str = "auto",
        n_steps: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> Attributions:
        """Return the joint distribution of the operator's d values at every row of X.

        ``uncertainty`` is ``"cov"`` (covariance between features), ``"std"`` (variances only) or
        ``"none"`` (means, at a few times the cost of a prediction). ``method`` and ``n_steps`` are
        those of `closed_forms.rule_for`. Where quadrature cannot be sure of the means to
        ``tolerance``, relative to the size of the function, it raises `ToleranceError`."""

    @abstractmethod
    def joint(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        """Return the covariance between all features of all rows, (n, d, n, d)."""

    def rows_covariance(
        self,
        operator: Operator,
        X: Any,
        gather: Any = None,
        *,
        method: str = "auto",
        n_steps: int | None = None,
    ) -> Array:
        """Return the covariance between rows of each feature by itself, (d, n, n).

        With ``gather`` G (d, k) it is that of the sums Σᵢ Gᵢⱼ𝒜ᵢ, (k, n, n). The covariance between
        all features of all rows is never formed: here `joint` is asked of two blocks of rows at a
        time."""
        X = as_matrix("X", X, names=self.feature_names, n_features=self.n_features, like=self.like)
        n, d = X.shape
        G = gathering(gather, X)
        result = rows_covariance_of(n, d, G, X)
        size = max(1, TOGETHER // (2 * d))
        starts = range(0, n, size)
        pairs = [(i, j) for i in starts for j in starts if i < j] or [(0, size)]
        for pair in pairs:
            both = np.concatenate([np.arange(start, min(start + size, n)) for start in pair])
            part = self.joint(operator.rows(both), X[both], method=method, n_steps=n_steps)
            result[:, both[:, None], both] = feature_by_feature(part, G)
        return result

    def contributions(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        """Return the share of each training row in each mean attribution, (n, d, m), for posteriors
        that keep their rows.
        """
        raise UnsupportedModelError(
            "model: the share of each training row is known for posteriors that keep their rows,"
            f" such as ExactPosterior; this {type(self).__name__} does not know them"
        )

    def sample(
        self, operator: Operator, X: Any, n: int = 1, *, random_state: Any = None
    ) -> np.ndarray:
        """Return n draws of the operator's values at all rows of X together, (n, rows, d)."""
        mean = to_numpy(self.apply(operator, X, uncertainty="none").mean)
        C = to_numpy(self.joint(operator, X)).reshape(mean.size, mean.size)
        return mean + product(
            standard_draws("n", n, mean.size, random_state), roots(C[None])[0]
        ).reshape(n, *mean.shape)


def note_of(posterior: Any) -> str:
    """Return what must be said about a posterior, or about what it is made of."""
    if posterior.note:
        return posterior.note
    inner = (getattr(posterior, "posterior", None), *getattr(posterior, "posteriors", ())[:1])
    return next((note for part in inner if part is not None and (note := note_of(part))), "")


def shared_reference_points(posteriors: Sequence[Posterior]) -> dict[str, Array]:
    """Return the reference_points on which all posteriors agree."""
    first, *others = (posterior.reference_points for posterior in posteriors)

    def shared(name: str, point: Array) -> bool:
        return all(
            name in other and np.allclose(other[name], point, rtol=1e-9, atol=0.0)
            for other in others
        )

    return {name: point for name, point in first.items() if shared(name, point)}


def require_covariance_room(n: int, d: int, *, copies: int = 1) -> None:
    """Raise `TooLargeError` if the covariances of n rows do not fit."""
    remedy = 'use uncertainty="std", or go through the rows in parts (explainer.batches)'
    check_memory("The covariance of the attributions", (n, d, d), remedy, copies=copies)


def gathering(gather: Any, X: Array) -> Array | None:
    """Return the matrix (d, k) that adds the d features of X up, beside X; None for each feature by
    itself.
    """
    return (
        None if gather is None else beside("gather", matrix("gather", gather, X.shape[1], None), X)
    )


def rows_covariance_of(n: int, d: int, G: Array | None, like: Array) -> Array:
    """Return room for the covariance between n rows of each feature, (d, n, n), or of each column
    of G.
    """
    shape = (d if G is None else G.shape[1], n, n)
    check_memory(
        "The covariance between rows", shape, "use fewer rows, say a random sample", copies=2
    )
    return namespace(like).empty(shape)


def feature_by_feature(joint: Array, G: Array | None) -> Array:
    """Return of covariances between rows and features, (n, d, m, d), those of each feature by
    itself, (d, n, m), or of Gᵀ𝒜.
    """
    xp = namespace(joint)
    return xp.einsum("nimi->inm", joint) if G is None else xp.einsum("njmi,ji->inm", joint @ G, G)


def covariance(C: Array) -> Array:
    """Return C (..., k, k) made exactly symmetric, its variances not below zero: rounding can leave
    either a little off.
    """
    xp = namespace(C)
    C = 0.5 * (C + xp.swapaxes(C, -1, -2))
    diagonal = xp.arange(C.shape[-1])
    C[..., diagonal, diagonal] = xp.maximum(C[..., diagonal, diagonal], 0.0)
    return C
