"""Measures of importance over rows: mean |attribution|, or the variance of the attributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from gpattr._core.array import Array
from gpattr.explainer.calibration import calibrated, calibrated_size
from gpattr.explainer.quadratic_form import Quadratic, expected_variance

LEAST = 0.01  # what the variance over all rows is at least, of that over a sample's

DOUBT = 0.5  # of what calibration changes: a sample without the largest rows knows slopes badly


@dataclass(frozen=True)
class Sample:
    """Some rows, drawn together: means (s, d), covariances between rows (d, s, s) and ``draws``.

    ``draws`` (r, d) are those of the importance over these rows alone, less its expectation.
    ``shares`` (s, d) are the covariances of what each row adds to the importance with all of it.
    """

    mean: Array
    covariances: Array
    draws: Array
    shares: Array


@dataclass(frozen=True)
class Spread:
    """Expectation and variance (d,) of an importance over all n rows, from a sample of them.

    Each changes with a row of the sample by its influence, (s, d), over s. ``others`` (2, d) are
    squared errors of both besides: from pairs of rows, from draws and from calibration.
    """

    expected: Array
    variance: Array
    expected_influence: Array
    influence: Array
    others: Array


class Measure(ABC):
    """The importance as a mean over rows of `terms`, whose moments are known for Gaussian rows."""

    # The expectation is exact without a sample of rows, and the spread is that of draws.
    exact: bool

    @abstractmethod
    def terms(self, A: Array) -> Array:
        """Return what each row adds to the importance, (r, s, d), for attributions (r, s, d)."""

    @abstractmethod
    def over_all(self, moments: Iterable[tuple[Array, Array]]) -> tuple[Array, ...]:
        """Return means over all rows, (d,) each, from blocks of their means and variances."""

    @abstractmethod
    def expected(self, mean: Array, covariances: Array) -> Array:
        """Return the expectation over these rows alone, (d,)."""

    @abstractmethod
    def spread(self, over_all: tuple[Array, ...], sample: Sample, n: int) -> Spread:
        """Return the moments of the importance over all n rows."""


class Absolute(Measure):
    """Mean |A| over rows: a mean of folded normal variables."""

    exact = True

    def terms(self, A: Array) -> Array:
        return np.abs(A)

    def over_all(self, moments: Iterable[tuple[Array, Array]]) -> tuple[Array, ...]:
        """Return the means over all rows of E|A| and of Var|A|."""
        return _row_means((folded_mean(mean, var), folded_var(mean, var)) for mean, var in moments)

    def expected(self, mean: Array, covariances: Array) -> Array:
        return folded_mean(mean, _variances(covariances)).mean(axis=0)

    def spread(self, over_all: tuple[Array, ...], sample: Sample, n: int) -> Spread:
        expected, own = over_all
        var = _variances(sample.covariances)
        known = np.stack([folded_mean(sample.mean, var), folded_var(sample.mean, var)])
        drawn = sample.draws.var(axis=0, ddof=1)
        variance = over_all_rows(drawn, known[1].mean(axis=0), own, len(var), n)
        influence = 2.0 * (sample.shares - sample.shares.mean(axis=0))
        before = variance
        variance, rest = calibrated_size(before, influence, known, np.stack([expected, own]))
        noise = draw_error(sample.draws) * scale_of(variance, drawn) ** 4
        others = np.stack([np.zeros_like(own), noise + (DOUBT * (variance - before)) ** 2])
        return Spread(expected, variance, np.zeros_like(rest), rest, others)


class Variance(Measure):
    """The variance of A over rows: a quadratic form of a Gaussian vector (`Quadratic`)."""

    exact = False

    def terms(self, A: Array) -> Array:
        return (A - A.mean(axis=1, keepdims=True)) ** 2

    def over_all(self, moments: Iterable[tuple[Array, Array]]) -> tuple[Array, ...]:
        """Return the variance of E A over all rows, the mean of Var A, and that of E A."""
        return moments_over_rows(moments)

    def expected(self, mean: Array, covariances: Array) -> Array:
        return expected_variance(mean, covariances)

    def spread(self, over_all: tuple[Array, ...], sample: Sample, n: int) -> Spread:
        (between_means, own), share = over_all[:2], 1.0 - 1.0 / n
        found = Quadratic.of(sample.mean, sample.covariances, n)
        average, least = found.shares.mean(axis=0), LEAST * found.shares.mean(axis=0)
        if len(sample.mean) == n:
            expected, none = self.expected(sample.mean, sample.covariances), np.zeros((n, len(own)))
            return Spread(expected, found.variance, none, none, np.zeros((2, len(own))))
        known = np.stack([(sample.mean - over_all[2]) ** 2, _variances(sample.covariances)])
        means = np.stack([between_means, own])
        before = np.maximum(found.variance, least)
        variance, rest = calibrated_size(before, 2.0 * (found.shares - average), known, means)
        between, apart = calibrated(
            found.between, 2.0 * (found.between_shares - found.between), known, means
        )
        # Rounding, and the sample's error, may leave a variance below zero.
        expected = between_means + share * np.maximum(own - between, 0.0)
        others = np.stack([found.between_pairs, found.pairs])
        others += (DOUBT * np.stack([between - found.between, variance - before])) ** 2
        return Spread(expected, variance, -share * apart, rest, others)


MEASURES: dict[str, Measure] = {"absolute": Absolute(), "variance": Variance()}


def over_all_rows(drawn: Array, scatter: Array, own: Array, s: int, n: int) -> Array:
    """Return the variance of a mean over n rows from that, ``drawn``, of a mean over s of them.

    ``scatter`` and ``own`` are the mean variances of what one row adds, in the sample and in all
    rows. One row says nothing of what rows share: then it is ``own``, which a mean cannot exceed.
    """
    if s == n:
        return drawn
    if s < 2:
        return own
    shared = np.maximum((drawn - scatter / s) / (1.0 - 1.0 / s), LEAST * drawn)
    return shared * (1.0 - 1.0 / n) + own / n


def scale_of(variance: Array, drawn: Array) -> Array:
    """Return the factors that turn deviations of one variance into those of another."""
    return np.sqrt(np.divide(variance, drawn, out=np.zeros_like(drawn), where=drawn > 0))


def row_error(influence: Array, n: int) -> Array:
    """Return the squared standard error, (d,), of an estimate from s of n rows, chosen at random.

    ``influence`` (s, d) has a mean of zero: s times what one row of the sample changes it by.
    """
    s = len(influence)
    if s == n:
        return np.zeros(influence.shape[1])
    if s < 2:
        return np.full(influence.shape[1], np.inf)
    return influence.var(axis=0, ddof=1) / s * (1.0 - s / n)


def draw_error(samples: Array) -> Array:
    """Return the squared standard error, (d,), of the variance of draws (r, d)."""
    deviation = samples - samples.mean(axis=0)
    square = (deviation**2).mean(axis=0)
    return np.maximum((deviation**4).mean(axis=0) - square**2, 0.0) / len(samples)


def variance_of(samples: Array) -> Array:
    """Return the variance of draws (r, d); NaN of a single one, which has none."""
    if len(samples) < 2:
        return np.full(samples.shape[1], np.nan)
    return samples.var(axis=0, ddof=1)


def std_error_of(variance: Array, squared_error: Array) -> Array:
    """Return the standard error of √v, where that of v is √``squared_error``."""
    error, std = np.sqrt(squared_error), np.sqrt(variance)
    return np.divide(error, 2.0 * std, out=np.zeros_like(error), where=std > 0)


def moments_over_rows(moments: Iterable[tuple[Array, Array]]) -> tuple[Array, Array, Array]:
    """Return the variance of the means over rows, the mean variance, and the mean, (d,) each.

    Means and variances come in blocks of rows; digits are kept where means are far from zero.
    """
    count, centre, squares, total = 0, np.zeros(()), np.zeros(()), np.zeros(())
    for mean, var in moments:
        k, own = len(mean), mean.mean(axis=0)
        step = own - centre
        squares = squares + ((mean - own) ** 2).sum(axis=0) + step**2 * (count * k / (count + k))
        centre = centre + step * (k / (count + k))
        total = total + var.sum(axis=0)
        count += k
    return squares / count, total / count, centre


def folded_mean(mean: Array, var: Array) -> Array:
    """Return E|A| for A ~ N(μ, s²): s√(2/π) exp(−μ²/2s²) + μ erf(μ/(√2 s)), and |μ| at s = 0."""
    s = np.sqrt(var)
    z = np.divide(mean, s, out=np.full_like(mean, np.inf), where=s > np.abs(mean) * 1e-150)
    folded = s * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z * z) + mean * erf(z / np.sqrt(2.0))
    return np.where(np.isinf(z), np.abs(mean), folded)


def folded_var(mean: Array, var: Array) -> Array:
    """Return Var|A| = μ² + s² − (E|A|)² for A ~ N(μ, s²)."""
    folded = folded_mean(mean, var)
    # In this order digits are lost only where the variance is far below what it is added to.
    return np.maximum(var - (folded - np.abs(mean)) * (folded + np.abs(mean)), 0.0)


def _row_means(pairs: Iterable[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the means over all rows of two quantities that come in blocks of rows."""
    count, first, second = 0, np.zeros(()), np.zeros(())
    for one, other in pairs:
        count += len(one)
        first, second = first + one.sum(axis=0), second + other.sum(axis=0)
    return first / count, second / count


def _variances(covariances: Array) -> Array:
    """Return the variances, (s, d), of covariances (d, s, s)."""
    return np.einsum("dss->sd", covariances)
