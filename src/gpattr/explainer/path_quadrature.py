"""Path integrals of gradients, by panels that are halved where they need it.

    Aᵢ = (xᵢ − bᵢ) ∫₀¹ ∂ᵢq(b + t(x − b)) dt

A panel has a rule of ten nodes; it is accepted where two halves agree with it to what is wanted, or
to rounding, and is halved where they do not. The error is the sum of these differences. All panels
of all paths are halved together, so that the gradient is asked for many points at a time.

Panels begin where a path meets training points: without noise a standard deviation is 0 there, and
has a kink.
"""

from __future__ import annotations

import numpy as np

from gpattr._core.memory import blocks
from gpattr.explainer.landscapes import Landscape
from gpattr.special.quadrature import gauss_legendre

ORDER = 10  # nodes of a panel
WANTED = 1e-13  # of the size of the quantity, where a panel is accepted
LENGTH = 2.0  # length-scales that a panel covers at first
MOST_AT_FIRST, MOST_MORE = 512, 512  # panels of a path
SHORTEST = 2.0**-48
NEAR = 1e-7  # of a path: a training point that lies on it


def path_integrals(
    landscape: Landscape,
    start: np.ndarray,
    stop: np.ndarray,
    lengths: np.ndarray,
    size: np.ndarray,
    points: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return integrals along straight paths from ``start`` to ``stop``, (n, d) each, in parts.

    They are (parts, n, d), and come with a bound on their error, (n,), and how much of it is due to
    rounding, (n,).

    ``lengths`` (n,) are those of the paths in length-scales, ``size`` (n,) that of the quantity;
    ``points`` (m, d) are where it may have kinks.
    """
    n, d = stop.shape
    values = np.zeros((len(landscape.parts), n, d))
    error, rounding = np.zeros(n), np.zeros(n)
    panels = np.clip(np.ceil(np.nan_to_num(lengths) / LENGTH), 1, MOST_AT_FIRST)
    for rows in blocks(n, 64.0 * ORDER * float(panels.max(initial=1.0)) * (d + 8)):
        work = _Paths(landscape, start[rows], stop[rows] - start[rows], size[rows])
        work.run(*_first_panels(start[rows], work.step, panels[rows].astype(int), points))
        values[:, rows], error[rows] = np.swapaxes(work.total, 0, 1), work.error
        rounding[rows] = work.rounding
    return values, error, rounding


class _Paths:
    """The panels of some paths, while they are halved."""

    def __init__(
        self, landscape: Landscape, start: np.ndarray, step: np.ndarray, size: np.ndarray
    ) -> None:
        n = len(start)
        self.landscape, self.start, self.step, self.size = landscape, start, step, size
        self.total = np.zeros((n, len(landscape.parts), step.shape[1]))
        self.error, self.rounding, self.panels = np.zeros(n), np.zeros(n), np.zeros(n, int)

    def run(self, path: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Halve panels, given by their path and their ends, until they are good enough."""
        np.add.at(self.panels, path, 1)
        most = self.panels + MOST_MORE
        coarse, _ = self._rule(path, low, high)
        while len(path):
            middle = 0.5 * (low + high)
            both = np.concatenate([path, path])
            ends = np.concatenate([low, middle]), np.concatenate([middle, high])
            halves, noise = self._rule(both, *ends)
            k = len(path)
            fine, noise = halves[:k] + halves[k:], noise[:k] + noise[k:]
            change = np.abs(fine - coarse).max(axis=(1, 2))
            # Attributions that cancel are larger than what they add up to.
            reached = self.size.copy()
            np.maximum.at(reached, path, np.abs(fine).max(axis=(1, 2)))
            good = change <= np.maximum(WANTED * reached[path], noise)
            good |= (high - low < SHORTEST) | (self.panels >= most)[path]
            np.add.at(self.total, path[good], fine[good])
            np.add.at(self.error, path[good], (change + noise)[good])
            np.add.at(self.rounding, path[good], noise[good])
            open_halves = np.concatenate([~good, ~good])
            path, coarse = both[open_halves], halves[open_halves]
            low, high = (end[open_halves] for end in ends)
            np.add.at(self.panels, path[: len(path) // 2], 1)

    def _rule(
        self, path: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return integrals over panels, (k, parts, d), and what rounding makes of them, (k,)."""
        t, w = gauss_legendre(ORDER, 1)
        width, step = high - low, self.step[path]
        at = low[:, None] + width[:, None] * t
        points = self.start[path][:, None, :] + at[:, :, None] * step[:, None, :]
        slopes = self.landscape.slopes(points.reshape(-1, step.shape[1]))
        gradient = slopes.gradient.reshape(-1, len(path), len(t), step.shape[1])
        values = np.einsum("pkti,t->kpi", gradient, w) * (width[:, None] * step)[:, None]
        rate = np.abs(gradient * step[:, None, :]).sum(axis=3)  # (parts, k, t)
        relative = (slopes.relative_error.reshape(rate.shape) * rate).sum(axis=0)
        value_error = slopes.value_error.reshape(relative.shape)
        return values, ((value_error + relative) @ w) * width


def _first_panels(
    start: np.ndarray, step: np.ndarray, counts: np.ndarray, points: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the path and the ends of each panel: even ones, and those that training points cut."""
    path = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(path)) - np.repeat(np.cumsum(counts) - counts, counts)
    cuts, cut_path = within / counts[path], path
    if points is not None:
        own, at = _met(start, step, points)
        cuts, cut_path = np.concatenate([cuts, at]), np.concatenate([cut_path, own])
    order = np.lexsort((cuts, cut_path))
    low, path = cuts[order], cut_path[order]
    last = np.append(path[1:] != path[:-1], True)
    high = np.where(last, 1.0, np.append(low[1:], 1.0))
    wide = high - low > SHORTEST
    return path[wide], low[wide], high[wide]


def _met(start: np.ndarray, step: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the paths that meet points between their ends, and where, in (0, 1)."""
    paths, places = [], []
    squares = (step * step).sum(axis=1)
    for rows in blocks(len(start), 24.0 * points.size):
        away = points - start[rows, None, :]  # (r, m, d)
        along = np.einsum("rmi,ri->rm", away, step[rows])
        t = along / np.where(squares[rows] > 0, squares[rows], 1.0)[:, None]
        away -= t[:, :, None] * step[rows, None, :]
        met = (t > 0) & (t < 1) & ((away * away).sum(axis=2) <= NEAR**2 * squares[rows, None])
        path, point = np.nonzero(met)
        paths.append(path + rows.start)
        places.append(t[path, point])
    return np.concatenate(paths), np.concatenate(places)
