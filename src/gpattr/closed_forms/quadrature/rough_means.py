"""Gradients of a prior mean along paths on which they may jump, as those of a ReLU network do.

A panel is halved until its two halves agree with the whole, and with the values of the mean at its
ends: a rule is blind to a jump beyond its outermost nodes, the values are not. So panels gather
around the jumps, down to the resolution of float64, and nowhere else.
"""

from __future__ import annotations

import numpy as np

from gpattr._core.array import EPS, Array, namespace, to_numpy
from gpattr._core.memory import blocks
from gpattr.means import Mean
from gpattr.operators import Paths
from gpattr.special.quadrature import gauss_legendre

ORDER = 10  # nodes of a panel
WANTED = 1e-13  # of the size of the attributions, where a panel is accepted
SHORTEST = 2.0**-48
MOST = 4096  # panels of a path that are halved at a time; a function rough everywhere has more


def integrated_rough_mean(mean: Mean, paths: Paths) -> tuple[np.ndarray, np.ndarray]:
    """Return (xᵢ − bᵢ)∫∂ᵢm dt along each path, (n, d), and estimates of its error, (n,)."""
    n, d = paths.shape
    total, error = np.zeros((n, d)), np.zeros(n)
    for rows in blocks(n, 8.0 * ORDER * 64 * (d + 4)):
        total[rows], error[rows] = _halved(mean, paths[rows])
    return total, error


def _halved(mean: Mean, paths: Paths) -> tuple[np.ndarray, np.ndarray]:
    n, d = paths.shape
    total, error = np.zeros((n, d)), np.zeros(n)
    owner, low, high = np.arange(n), np.zeros(n), np.ones(n)
    coarse = _rule(mean, paths, owner, low, high)
    size = np.abs(coarse).max(axis=1)
    while len(owner):
        middle = 0.5 * (low + high)
        both = np.concatenate([owner, owner])
        ends = np.concatenate([low, middle]), np.concatenate([middle, high])
        halves, k = _rule(mean, paths, both, *ends), len(owner)
        fine = halves[:k] + halves[k:]
        np.maximum.at(size, owner, np.abs(fine).max(axis=1))
        start, stop = (_values(mean, paths, owner, t) for t in (low, high))
        rounding = 64.0 * EPS * (np.abs(start) + np.abs(stop))
        gap = np.maximum(np.abs(fine.sum(axis=1) - (stop - start)) - rounding, 0.0)
        change = np.maximum(np.abs(fine - coarse).max(axis=1), gap)
        good = change <= WANTED * size[owner]
        good |= (high - low < SHORTEST) | (np.bincount(owner, minlength=n) > MOST)[owner]
        np.add.at(total, owner[good], fine[good])
        np.add.at(error, owner[good], change[good])
        left = np.concatenate([~good, ~good])
        owner, coarse = both[left], halves[left]
        low, high = (end[left] for end in ends)
    return total, error


def _rule(
    mean: Mean, paths: Paths, owner: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Return the attributions of panels, (panels, d)."""
    t, w = gauss_legendre(ORDER)
    width = high - low
    points = _points(paths, owner, low[:, None] + width[:, None] * t)
    gradient = to_numpy(mean.gradient(points.reshape(-1, points.shape[-1])))
    slopes = np.einsum("ptd,t->pd", gradient.reshape(points.shape), w)
    return slopes * width[:, None] * to_numpy(paths.step)[owner]


def _values(mean: Mean, paths: Paths, owner: np.ndarray, t: np.ndarray) -> np.ndarray:
    return to_numpy(mean(_points(paths, owner, t[:, None])[:, 0]))


def _points(paths: Paths, owner: np.ndarray, t: np.ndarray) -> Array:
    """Return points of the paths ``owner``, (panels, T, d), at t, (panels, T)."""
    return paths[owner].along(namespace(paths.stop).asarray(t))
