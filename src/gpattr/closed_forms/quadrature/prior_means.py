"""Integrated gradients of a prior mean, whose gradients may jump, as those of a ReLU network do.

A panel is halved until its two halves agree with the whole, and their sum over features with the
values of the mean at its ends. So panels gather around jumps, down to the resolution of float64,
and nowhere else. Rules are those of Gauss and Lobatto, which see both ends of a panel: a jump
beyond the outermost nodes of another rule would be seen by none of its gradients.
"""

from __future__ import annotations

import numpy as np

from gpattr._core.array import EPS, Array, namespace, to_numpy
from gpattr._core.memory import blocks
from gpattr.means import Mean
from gpattr.operators import Paths
from gpattr.special.quadrature import gauss_lobatto

ORDER, SLIM_ORDER = 10, 4  # nodes of a panel, and of one that is slim
SLIM = 2.0**-10  # of the path: a gradient between its jumps is nearly straight on such a panel
WANTED = 1e-13  # of the size of the attributions, where a panel is accepted
SHORTEST = 2.0**-48
MOST = 2048  # panels of a path that are halved at a time; a function rough everywhere has more


def integrated_mean(mean: Mean, paths: Paths) -> tuple[np.ndarray, np.ndarray]:
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
    coarse = _rule(mean, paths, owner, low, high, ORDER)
    size = np.abs(coarse).max(axis=1)
    width = 1.0  # of all panels that are left
    while len(owner):
        middle = 0.5 * (low + high)
        both = np.concatenate([owner, owner])
        ends = np.concatenate([low, middle]), np.concatenate([middle, high])
        order = ORDER if width > SLIM else SLIM_ORDER
        halves, k = _rule(mean, paths, both, *ends, order), len(owner)
        fine = halves[:k] + halves[k:]
        largest = np.abs(fine).max(axis=1)
        np.maximum.at(size, owner, largest)
        change = np.abs(fine - coarse).max(axis=1)
        start, stop = (_values(mean, paths, owner, t) for t in (low, high))
        gap = np.abs(fine.sum(axis=1) - (stop - start))
        rounding = EPS * (np.abs(start) + np.abs(stop))
        good = np.maximum(change, gap - 64.0 * rounding) <= WANTED * size[owner]
        good |= (width < SHORTEST) | (np.bincount(owner, minlength=n) > MOST)[owner]
        np.add.at(total, owner[good], fine[good])
        # What the rounding of two values explains is no error of the integral.
        missed = (
            change + np.maximum(gap - 4.0 * rounding, 0.0) + 8.0 * EPS * np.abs(fine).max(axis=1)
        )
        np.add.at(error, owner[good], missed[good])
        left = np.concatenate([~good, ~good])
        owner, coarse, width = both[left], halves[left], 0.5 * width
        low, high = (end[left] for end in ends)
    return total, error


def _rule(
    mean: Mean, paths: Paths, owner: np.ndarray, low: np.ndarray, high: np.ndarray, order: int
) -> np.ndarray:
    """Return the attributions of panels, (panels, d)."""
    t, w = gauss_lobatto(order)
    width, step, d = high - low, to_numpy(paths.step), paths.shape[1]
    result = np.empty((len(owner), d))
    for some in blocks(len(owner), 64.0 * order * (d + 64)):  # with room for a network's layers
        points = _points(paths, owner[some], low[some, None] + width[some, None] * t)
        gradient = to_numpy(mean.gradient(points.reshape(-1, d))).reshape(points.shape)
        slopes = np.einsum("ptd,t->pd", gradient, w)
        result[some] = slopes * width[some, None] * step[owner[some]]
    return result


def _values(mean: Mean, paths: Paths, owner: np.ndarray, t: np.ndarray) -> np.ndarray:
    return to_numpy(mean(_points(paths, owner, t[:, None])[:, 0]))


def _points(paths: Paths, owner: np.ndarray, t: np.ndarray) -> Array:
    """Return points of the paths ``owner``, (panels, T, d), at t, (panels, T)."""
    return paths[owner].along(namespace(paths.stop).asarray(t))
