"""Measures of importance over rows: mean |attribution|, or the variance of the attributions.

**Calibration.** A row's influence on an estimate from a sample of rows often goes with its own mean
or variance, and these are known for all rows. Regressed on them, the influences tell how much the
estimate changes with the sample's means of these numbers, and so its value if they were the means
over all rows. The rest of the influences is what the choice of rows leaves unknown (Deville and
Särndal, 1992).

**Variance over rows.** For A ~ N(μ, C) over n rows and H = I − 11ᵀ/n it is Q = AᵀHA/n, with

    E Q = (1 − 1/n)(mean Cᵢᵢ − mean of Cᵢⱼ, i ≠ j) + variance of μ over rows
    Var Q = (2/n²) tr(C H (C + 2μμᵀ) H)

Both are means over pairs, triples and quadruples of different rows, and are estimated without bias
by the same means over the rows of a simple random sample; of all rows they are exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from gpattr._core.array import Array
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import Names, check_choice, check_count
from gpattr.exceptions import InvalidInputError
from gpattr.explainer.attributions import Groups
from gpattr.explanation.grouping import group_matrix, group_names

ROWS = 300  # that are drawn where there are more, as a rule
DISTINCT = 0.3  # known numbers with a correlation above 0.83 count as one
MOST = 2.0  # the factor by which calibration changes an estimate, at most
LEAST = 0.01  # what the variance over all rows is at least, of that over a sample's
DOUBT = 0.5  # of what calibration changes: a sample without the largest rows knows slopes badly


@dataclass(frozen=True)
class FeatureSums:
    """Sums of features: their ``names``, which features each has, and ``matrix`` (features, sums).

    ``members`` names the features of those that are groups; the others are features themselves.
    """

    names: Names
    matrix: Array
    members: dict[str, Names]


@dataclass(frozen=True)
class ImportanceRequest:
    """The measure of importance, ``by``, the ``groups``, and the number of draws."""

    n_samples: int = 2000
    random_state: RandomLike = 0
    by: str = "absolute"
    groups: Groups | None = None

    @property
    def counted(self) -> tuple[int, np.random.Generator]:
        """The number of draws and where they come from, checked."""
        return check_count("n_samples", self.n_samples), random_generator(self.random_state)

    def check(self, n: int, *, players: bool) -> None:
        """Refuse options that n rows, or features that are ``players`` already, do not support."""
        check_choice("by", self.by, tuple(MEASURES))
        if self.by == "variance" and n < 2:
            raise InvalidInputError(
                f'X: expected at least 2 rows with by="variance", since the variance over one row'
                f" is zero, got {n}"
            )
        if players and self.groups is not None:
            raise InvalidInputError(
                "groups: this explainer has players, which are groups of features already; use an"
                " explainer without players, or leave groups out"
            )

    def sums(self, features: Names) -> FeatureSums | None:
        """Return the sums of features that are asked for; None for each by itself."""
        if self.groups is None:
            return None
        labels = group_names(self.groups, features)
        names = tuple(dict.fromkeys(labels))
        members = {
            name: tuple(
                feature for feature, label in zip(features, labels, strict=True) if label == name
            )
            for name in names
            if name in self.groups
        }
        return FeatureSums(names, group_matrix(labels), members)


@dataclass(frozen=True)
class Sample:
    """Some rows, drawn together: means (s, d), covariances between rows (d, s, s) and ``draws``.

    ``draws`` (r, d) are draws of the importance over these rows alone, less its expectation.
    ``shares`` (s, d) are the covariances of each row's term with the whole importance.
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

    # The expectation is exact without a sample of rows, and the spread comes from draws.
    exact: bool

    @abstractmethod
    def terms(self, A: Array) -> Array:
        """Return each row's term of the importance, (r, s, d), for attributions (r, s, d)."""

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


class VarianceOverRows(Measure):
    """The variance of A over rows: a quadratic form of a Gaussian vector (`Quadratic`)."""

    exact = False

    def terms(self, A: Array) -> Array:
        return (A - A.mean(axis=1, keepdims=True)) ** 2

    def over_all(self, moments: Iterable[tuple[Array, Array]]) -> tuple[Array, ...]:
        """Return the variance of E A over all rows, the mean of Var A, and the mean of E A."""
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


MEASURES: dict[str, Measure] = {"absolute": Absolute(), "variance": VarianceOverRows()}


def over_all_rows(drawn: Array, scatter: Array, own: Array, s: int, n: int) -> Array:
    """Return the variance of a mean over n rows from ``drawn``, the variance over s of them.

    ``scatter`` and ``own`` are the mean variances of one row's term, in the sample and in all rows.
    One row shows no covariance between rows: then it is ``own``, which a mean cannot exceed.
    """
    if s == n:
        return drawn
    if s < 2:
        return own
    shared = np.maximum((drawn - scatter / s) / (1.0 - 1.0 / s), LEAST * drawn)
    return shared * (1.0 - 1.0 / n) + own / n


def scale_of(variance: Array, drawn: Array) -> Array:
    """Return the factors that rescale deviations of variance ``drawn`` to ``variance``."""
    return np.sqrt(np.divide(variance, drawn, out=np.zeros_like(drawn), where=drawn > 0))


def row_error(influence: Array, n: int) -> Array:
    """Return the squared standard error, (d,), of an estimate from s of n rows, chosen at random.

    ``influence`` (s, d) has a mean of zero: s times the estimate's change by one row of the sample.
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
    """Return the standard error of √v, where the standard error of v is √``squared_error``."""
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


def calibrated(
    estimate: Array, influence: Array, known: Array, over_all: Array
) -> tuple[Array, Array]:
    """Return estimates (d,), and the influences (s, d) that remain, for ``known`` (k, s, d).

    ``over_all`` (k, d) are the means over all rows of what is known of each row. Estimates that may
    have either sign change in proportion to the difference of means.
    """
    means = known.mean(axis=1)
    slopes, rest = _regressed(influence, known - means[:, None])
    return estimate + (slopes * (over_all - means)).sum(axis=0), rest


def calibrated_size(
    estimate: Array, influence: Array, known: Array, over_all: Array
) -> tuple[Array, Array]:
    """Return the same for estimates and known numbers of which none is below zero.

    They change as powers of the ratio of means, by the same amount to first order: the result is
    exact for estimates in proportion to a power of a known mean. More than by the factor `MOST` a
    sample's slopes are not trusted.
    """
    means = known.mean(axis=1)
    slopes, rest = _regressed(influence, known - means[:, None])
    usable = (means > 0) & (over_all > 0) & (estimate > 0)
    ratio = np.divide(over_all, means, out=np.ones_like(means), where=usable)
    power = np.divide(slopes * means, estimate, out=np.zeros_like(means), where=usable)
    change = np.clip(np.prod(ratio**power, axis=0), 1.0 / MOST, MOST)
    return estimate * change, rest


def _regressed(influence: Array, known: Array) -> tuple[Array, Array]:
    """Return the slopes (k, d) of influences (s, d) on known numbers (k, s, d), and the residuals.

    Both have means of zero. What remains of a row is its deviation from the slopes of the others.
    Influences on a feature of which nothing varies have a slope of zero.
    """
    size = np.sqrt((known**2).sum(axis=1))
    units = np.divide(known, size[:, None], out=np.zeros_like(known), where=size[:, None] > 0)
    columns = np.moveaxis(units, 0, 2).swapaxes(0, 1)  # (d, s, k)
    # Of numbers that go together only what they share counts: slopes on the rest are noise.
    inverse = np.linalg.pinv(columns, rcond=DISTINCT)  # (d, k, s)
    scaled = (inverse @ influence.T[:, :, None])[:, :, 0]  # (d, k)
    rest = influence - (columns @ scaled[:, :, None])[:, :, 0].T
    # A row that the slopes follow remains with what it would be off by if it were left out.
    leverage = np.einsum("dsk,dks->sd", columns, inverse)
    rest = rest / np.maximum(1.0 - leverage, 1.0 / len(influence))
    return np.divide(scaled.T, size, out=np.zeros_like(size), where=size > 0), rest


@dataclass(frozen=True)
class Quadratic:
    """Moments of the variances over n rows of d functions, from their covariance between s rows.

    ``between`` (d,) is the mean covariance of two different rows, ``variance`` (d,) the variance of
    Q. ``between_shares`` and ``shares`` (s, d) belong to single rows; their means are ``between``
    and, but for terms of order 1/s, ``variance``. Twice their deviations from the mean are what the
    estimates change by, to first order, with the rows that happen to be in the sample. To second
    order pairs of rows add ``between_pairs`` and ``pairs`` (d,) to the squared errors.
    """

    between: Array
    variance: Array
    between_shares: Array
    shares: Array
    between_pairs: Array
    pairs: Array

    @classmethod
    def of(cls, mean: Array, covariances: Array, n: int) -> Quadratic:
        """Return the moments for means (s, d) and covariances (d, s, s) of s of n rows."""
        s, d = mean.shape
        between_shares, shares, variance = np.empty((s, d)), np.empty((s, d)), np.empty(d)
        between_pairs, pairs = np.empty(d), np.empty(d)
        for i, C in enumerate(covariances):
            between_shares[:, i] = (C.sum(axis=1) - C.diagonal()) / max(s - 1, 1)
            left = centred(C)
            m = mean[:, i] - mean[:, i].mean()
            right = left + 2.0 * m[:, None] * m
            terms = 2.0 * left * right
            shares[:, i] = terms.mean(axis=1)
            variance[i] = 2.0 * _paired(left, right, n)
            between_pairs[i], pairs[i] = _second_order(left, n), _second_order(centred(terms), n)
        between = between_shares.mean(axis=0)
        return cls(between, variance, between_shares, shares, between_pairs, pairs)


def centred(C: Array) -> Array:
    """Return HCH: rows and columns of C (s, s), which is symmetric, then add up to zero."""
    means = C.mean(axis=1)
    return C - means[:, None] - means + means.mean()


def expected_variance(mean: Array, covariances: Array) -> Array:
    """Return E Q over the s rows themselves, (d,)."""
    traces = [C.trace() / len(C) - C.mean() for C in covariances]
    return mean.var(axis=0) + np.array(traces)


def _second_order(K: Array, n: int) -> float:
    """Return the term of pairs of rows in the squared error of a mean over pairs, K `centred`."""
    s = len(K)
    pairs = max(s * (s - 1.0), 1.0)
    return 2.0 * float((K**2).sum() - (K.diagonal() ** 2).sum()) / pairs**2 * (1.0 - s / n)


def _paired(K: Array, L: Array, n: int) -> float:
    """Return the estimate of tr(KHLH)/n² over n rows, for `centred` matrices of s of them.

    With S = Σ KᵢⱼLᵢⱼ, R = Σᵢ (Σⱼ Kᵢⱼ)(Σⱼ Lᵢⱼ) and T = (Σ Kᵢⱼ)(Σ Lᵢⱼ) over all n rows it is
    (S − 2R/n + T/n²)/n². Each sum is one over different rows of products of K's and L's diagonals
    D and other entries, whose means over the sample stand for those over all rows. Since rows of K
    and L add up to zero, all follow from p = Σ KᵢⱼLᵢⱼ, q = Σ KᵢᵢLᵢᵢ and r = (Σ Kᵢᵢ)(Σ Lᵢᵢ).
    Centring by the sample changes none of it: nothing depends on what is added to all entries of
    a row and column.
    """
    s = len(K)
    p, q, r = (K * L).sum(), (K.diagonal() * L.diagonal()).sum(), K.trace() * L.trace()
    if s == n:
        return float(p) / n**2
    pairs, triples = s * (s - 1.0), s * (s - 1.0) * (s - 2.0)
    quadruples = triples * (s - 3.0)
    own = q / s  # DᵢDᵢ
    entries = (p - q) / pairs  # KᵢⱼLᵢⱼ
    mixed = -q / pairs  # DᵢLᵢⱼ, and KᵢⱼDᵢ
    apart = (r - q) / pairs  # DᵢDⱼ
    joined = (2.0 * q - p) / triples  # KᵢⱼLᵢₖ
    beside = (2.0 * q - r) / triples  # DₖLᵢⱼ, and KᵢⱼDₖ
    separate = (r - 6.0 * q + 2.0 * p) / quadruples  # KᵢⱼLₖₗ
    n2, n3 = n * (n - 1.0), n * (n - 1.0) * (n - 2.0)
    n4 = n3 * (n - 3.0)
    S = n * own + n2 * entries
    R = n * own + n2 * (2.0 * mixed + entries) + n3 * joined
    T = n * own + n2 * (apart + 4.0 * mixed + 2.0 * entries)
    T += n3 * (2.0 * beside + 4.0 * joined) + n4 * separate
    return float(S - 2.0 * R / n + T / n**2) / n**2
