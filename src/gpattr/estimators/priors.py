"""Priors of hyperparameters: normal distributions of their logarithms.

In standardised inputs and targets, for a kernel of d features,

    log ℓᵢ ~ N(½ log d + 0.7, 2²)    with a correlation of 0.72 between the features,
    log σ² ~ N(0, 3²),               log noise ~ N(−2.5, 1.75²),

and of log odds log σ² ~ N(log 4, 1.5²), where a kernel is in the units of the data, with medians in
these units. The correlation says that features are about equally important unless the data say
otherwise: with few rows, length-scales of their own for all features are otherwise over-fitted.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from gpattr._core.array import Array, to_numpy
from gpattr._core.validation import numbers
from gpattr.estimators.evidence.marginal_likelihood import NOISE, Values
from gpattr.estimators.search_space import std_of
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import (
    FullAdditive,
    Kernel,
    Linear,
    Polynomial,
    Product,
    Radial,
    Scale,
    Select,
    Warped,
    White,
)

SPREAD = 2.0  # standard deviation of a logarithm: a factor of 7.4
VARIANCE_SPREAD = 3.0  # of a kernel's: polynomials are long length-scales with large variances
# Of log odds: classes that separate well say nothing against any variance, however large, and with
# very large ones Laplace's approximation makes all probabilities nearly ½.
LOG_ODDS_SPREAD = 1.5
COMMON = 1.7  # of which the length-scales of all features share this much
LONGER = 0.7  # logarithm of a typical length-scale over √d standard deviations
NOISE_LEVEL = -2.5  # logarithm of a typical noise variance over the targets' variance
NOISE_SPREAD = 1.75  # data may be free of noise, or nothing else
PERIOD_SPREAD = 0.3  # a period far from the one that is given is another model


@dataclass(frozen=True)
class Term:
    """The prior of one hyperparameter: log θ ~ N(``mean``, ``std``²), (size,) each.

    ``common`` is the standard deviation that all of its values share. With ``gamma``, (shape,
    rate), θ has a gamma distribution instead, and mean and std describe its logarithm.
    """

    mean: np.ndarray
    std: np.ndarray
    common: float = 0.0
    gamma: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of_gamma(cls, shape: np.ndarray, rate: np.ndarray) -> Term:
        """Return gamma distributions with these shapes and rates, (size,) each."""
        return cls(digamma(shape) - np.log(rate), polygamma(1, shape) ** 0.5, gamma=(shape, rate))

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of the logarithms, (size, size)."""
        return np.diag(self.std**2 - self.common**2) + self.common**2


class Prior:
    """The prior of all hyperparameters together, as a function of θ, their logarithms.

    ``mean`` (k,) and ``covariance`` (k, k) are the prior moments of θ.
    """

    def __init__(self, terms: Mapping[str, Term]) -> None:
        self.terms = dict(terms)
        self.mean = np.concatenate([term.mean for term in self.terms.values()])
        k = len(self.mean)
        self.covariance, self._normal = np.zeros((k, k)), np.ones(k, dtype=bool)
        self._shape, self._rate = np.zeros(k), np.zeros(k)
        first = 0
        for term in self.terms.values():
            block = slice(first, first + len(term.mean))
            self.covariance[block, block] = term.covariance
            if term.gamma is not None:
                self._normal[block] = False
                self._shape[block], self._rate[block] = term.gamma
            first = block.stop
        some = self.covariance[np.ix_(self._normal, self._normal)]
        self._precision = np.zeros((k, k))
        self._precision[np.ix_(self._normal, self._normal)] = np.linalg.inv(some)
        a, b = self._shape[~self._normal], self._rate[~self._normal]
        self._constant = (
            float((a * np.log(b) - gammaln(a)).sum())
            - 0.5 * float(np.linalg.slogdet(some)[1])
            - 0.5 * len(some) * math.log(2.0 * math.pi)
        )

    @property
    def std(self) -> np.ndarray:
        """The standard deviation of each logarithm, (k,)."""
        return np.sqrt(self.covariance.diagonal())

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the logarithm of the density of θ, and its gradient."""
        away = theta - self.mean
        pull = self._precision @ away
        levels = self._rate * np.exp(np.minimum(theta, 700.0))
        value = float((self._shape * theta - levels).sum()) - 0.5 * float(away @ pull)
        return value + self._constant, self._shape - levels - pull


def prior_terms(
    kernel: Kernel, X: Array, variance: float, spread: float = VARIANCE_SPREAD
) -> dict[str, Term]:
    """Return the default prior of each hyperparameter of a kernel and of the noise, by name.

    X are the rows and ``variance`` the targets' variance, in the units of the kernel; ``spread`` is
    how far the logarithm of a variance may be from the targets'.
    """
    terms = {
        f"{prefix}{name}": _term(part, name, rows, variance, spread)
        for prefix, part, rows in _seen(kernel, to_numpy(X))
        for name in part.trainable
    }
    return terms | {NOISE: _noise(variance)}


def given_terms(given: Any, start: Values) -> dict[str, Term]:
    """Return the priors that a user gives, ``{name: (median, spread)}``.

    Both are one number or one for each value of the hyperparameter; the spread is the standard
    deviation of its logarithm.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f"priors: expected a dictionary {{name: (median, spread)}}, got {given!r}"
        )
    return {name: _given_term(name, pair, start) for name, pair in given.items()}


def redundant(kernel: Kernel, free: Container[str]) -> set[str]:
    """Return the names of ``free`` variances that only multiply others, and need not be learned.

    Of the factors of a product one free variance is enough. A sum among them keeps its summands'
    variances, in place of all others.
    """
    return _multiplied(kernel, "", free)[1]


def _multiplied(
    kernel: Kernel, prefix: str, free: Container[str]
) -> tuple[list[str] | None, set[str]]:
    """Return the free variances that multiply a whole kernel, None for a sum; and the redundant."""
    found = [_multiplied(part, f"{prefix}{name}__", free) for name, part in kernel.parts().items()]
    inner: set[str] = set().union(*(names for _, names in found))
    own = [f"{prefix}variance"] if "variance" in kernel.trainable else []
    own = [name for name in own if name in free]
    multiplies = isinstance(kernel, (Scale, Product, Select, Warped)) or not kernel.parts()
    if not multiplies or not _scales(kernel):
        return None, inner
    names = [*own, *(name for names, _ in found for name in names or ())]
    if any(names is None for names, _ in found):
        return None, inner | set(names)
    return names[:1], inner | set(names[1:])


def _scales(kernel: Kernel) -> bool:
    """Return whether the variance of a kernel multiplies all of it."""
    return not isinstance(kernel, (Linear, Polynomial, White))


def _seen(kernel: Kernel, X: np.ndarray, prefix: str = "") -> Iterator[tuple[str, Kernel, Any]]:
    """Yield every part of a kernel, with its prefix and the rows as it sees them."""
    yield prefix, kernel, X
    for i, (name, part) in enumerate(kernel.parts().items()):
        rows = X
        if isinstance(kernel, Select):
            rows = kernel.columns(X)
        elif isinstance(kernel, Warped):
            rows = to_numpy(kernel.features(X))
        elif isinstance(kernel, FullAdditive):
            rows = X[:, i : i + 1]
        yield from _seen(part, rows, f"{prefix}{name}__")


def _term(part: Kernel, name: str, X: np.ndarray, variance: float, spread: float) -> Term:
    start = np.atleast_1d(np.asarray(part.get_params(deep=False)[name], dtype=np.float64))
    size = len(start)

    def around(median: Any, spread: float, common: float = 0.0) -> Term:
        logs = np.broadcast_to(np.log(median), (size,)).copy()
        return Term(logs, np.full(size, spread), common if size > 1 else 0.0)

    if isinstance(part, White):
        return _noise(variance)
    if name == "lengthscale" and isinstance(part, Radial):
        std = std_of(X)
        std = np.where(std > 0, std, 1.0)
        median = std if size > 1 else float(np.exp(np.log(std).mean()))
        return around(math.exp(LONGER) * math.sqrt(X.shape[1]) * median, SPREAD, COMMON)
    if name == "variance" and isinstance(part, Linear):
        squares = (X * X).mean(axis=0)
        squares = np.where(squares > 0, squares, 1.0)
        return around(variance / (squares if size > 1 else squares.sum()), spread)
    if name == "variance" and _scales(part):
        return around(variance, spread)
    return around(start, PERIOD_SPREAD if name == "period" else SPREAD)


def _noise(variance: float) -> Term:
    return Term(np.array([math.log(variance) + NOISE_LEVEL]), np.array([NOISE_SPREAD]))


def _given_term(name: str, pair: Any, start: Values) -> Term:
    if name not in start:
        raise InvalidInputError(
            f"priors: expected hyperparameters among {list(start)}, got {name!r}"
        )
    size = len(start[name])
    try:
        median, spread = (np.atleast_1d(to_numpy(numbers("priors", part))) for part in pair)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"priors: expected (median, spread) for {name!r}, got {pair!r}"
        ) from None
    for what, value in (("median", median), ("spread", spread)):
        if value.shape not in ((1,), (size,)):
            raise InvalidInputError(
                f"priors: expected one {what}, or {size}, for {name!r}, got the shape {value.shape}"
            )
        if not (np.isfinite(value).all() and (value > 0).all()):
            raise InvalidInputError(
                f"priors: expected a {what} larger than 0 for {name!r}, got {pair!r}"
            )
    return Term(
        np.broadcast_to(np.log(median), (size,)).copy(), np.broadcast_to(spread, (size,)).copy()
    )
