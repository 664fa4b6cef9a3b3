"""Calibration: an estimate from a sample of rows, corrected by what is known of all rows.

A row's influence on an estimate often goes with its own mean or variance, and these are known for
all rows. Regressed on them, the influences tell how much the estimate changes with the sample's
means of these numbers, and so what it would be if they were those of all rows. What remains of the
influences is what the choice of rows leaves unknown (Deville and Särndal, 1992).
"""

from __future__ import annotations

import numpy as np

from gpattr._core.array import Array

DISTINCT = 0.3  # known numbers with a correlation above 0.83 count as one
MOST = 2.0


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
    """Return the slopes (k, d) of influences (s, d) on known numbers (k, s, d), and what remains.

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
