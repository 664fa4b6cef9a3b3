"""Nearest points at which a margin is not negative, many at a time, inside boxes around the origin.

    minimise ½‖u‖²   subject to   g(u) ≥ 0,   l ≤ u ≤ h,   l ≤ 0 ≤ h

Each step replaces g by its tangent at u. What is left has a solution without iteration, the point
clip(λ∇g, l, h) with the smallest λ that is enough; a line search on ½‖u‖² + c max(0, −g(u)) keeps
steps honest. In structural reliability this is the method of Hasofer, Lind, Rackwitz and Fiessler.
All rows move together, one evaluation of g a step; a row is one start in one box, and features that
may not change have a box of no width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize

Margin = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]

STEPS = 25  # at most; the nearest are refined afterwards
CLOSE = 1e-2  # relative change at which a row rests, which changes its length by far less


def approach(
    margin: Margin, start: np.ndarray, low: np.ndarray, high: np.ndarray, setting: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return points (r, p) near the nearest ones, and their margins (r,).

    ``margin(U, setting)`` returns g (r,) and ∇g (r, p) at points in the ``setting`` (r,) of each;
    ``low`` and ``high`` (r, p) are the boxes.
    """
    u = np.clip(start, low, high)
    g, slope = margin(u, setting)
    penalty, length = np.zeros(len(u)), np.ones(len(u))
    active = np.arange(len(u))
    for _ in range(STEPS):
        a, x = active, u[active]
        goal, multiplier = tangent_solution(g[a], slope[a], x, low[a], high[a])
        step = goal - x
        size = np.sqrt((step**2).sum(axis=1))
        rests = size <= CLOSE * (0.01 + np.sqrt((goal**2).sum(axis=1)))
        a, x, step = a[~rests], x[~rests], step[~rests]
        if not len(a):
            break
        penalty[a] = np.maximum(penalty[a], 1.5 * multiplier[~rests])
        trial = np.clip(x + length[a, None] * step, low[a], high[a])
        g_trial, slope_trial = margin(trial, setting[a])
        missing = np.maximum(-g[a], 0.0)
        before = 0.5 * (x**2).sum(axis=1) + penalty[a] * missing
        after = 0.5 * (trial**2).sum(axis=1) + penalty[a] * np.maximum(-g_trial, 0.0)
        taken = after <= before
        kept = a[taken]
        u[kept], g[kept], slope[kept] = trial[taken], g_trial[taken], slope_trial[taken]
        length[kept] = np.minimum(2.0 * length[kept], 1.0)
        length[a[~taken]] *= 0.5
        active = a
    return u, g


def tangent_solution(
    g: np.ndarray, slope: np.ndarray, u: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest points at which the tangents at u are not negative, and multipliers λ.

    Where a tangent is negative in the whole box it is the corner at which it is largest.
    """
    slope = np.where(np.abs(slope) < 1e-100, 0.0, slope)  # far from the data; ratios overflow
    needed = (slope * u).sum(axis=1) - g  # of slope · v
    corner = np.where(slope > 0, high, low)
    with np.errstate(divide="ignore", invalid="ignore"):
        bend = np.where(slope == 0, 0.0, corner / slope)  # λ at which a coordinate is stopped
    order = np.argsort(bend, axis=1)
    bend = np.take_along_axis(bend, order, axis=1)
    a2 = np.take_along_axis(slope, order, axis=1) ** 2
    stopped = np.cumsum(bend * a2, axis=1)  # slope · v of those stopped, at each bend
    free = a2.sum(axis=1, keepdims=True) - np.cumsum(a2, axis=1)
    reached = stopped + free * bend  # slope · v at each bend, which grows along them
    place = (reached < needed[:, None]).sum(axis=1)  # bends that are not enough
    r, last = np.arange(len(u)), slope.shape[1] - 1
    before = np.where(place > 0, stopped[r, np.maximum(place - 1, 0)], 0.0)
    rate = np.where(place > 0, free[r, np.maximum(place - 1, 0)], a2.sum(axis=1))
    short = place > last
    with np.errstate(divide="ignore", invalid="ignore"):
        multiplier = np.where(rate > 0, (needed - before) / rate, bend[:, last])
    multiplier = np.maximum(np.where(short, bend[:, last], multiplier), 0.0)
    goal = np.where(short[:, None], corner, np.clip(multiplier[:, None] * slope, low, high))
    goal = np.where(slope == 0, 0.0, goal)
    return goal, multiplier


def refine(
    margin: Margin, start: np.ndarray, low: np.ndarray, high: np.ndarray, setting: int
) -> np.ndarray:
    """Return the nearest point (p,) of the neighbourhood of ``start``, to rounding, by SLSQP."""
    inside = high > low
    u, which = np.clip(start, low, high), np.array([setting])

    @lru_cache(maxsize=1)  # SLSQP asks for value and gradient one after the other
    def kept(v: bytes) -> tuple[float, np.ndarray]:
        point = u.copy()
        point[inside] = np.frombuffer(v)
        g, slope = margin(point[None], which)
        return float(g[0]), slope[0, inside]

    def at(v: np.ndarray) -> tuple[float, np.ndarray]:
        return kept(np.asarray(v, dtype=np.float64).tobytes())

    constraint: Any = {"type": "ineq", "fun": lambda v: at(v)[0], "jac": lambda v: at(v)[1]}
    found = minimize(
        lambda v: 0.5 * float(v @ v),
        u[inside],
        jac=lambda v: v,
        bounds=list(zip(low[inside], high[inside], strict=True)),
        constraints=[constraint],
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 20},
    )
    result = u.copy()
    if np.isfinite(found.x).all():
        result[inside] = np.clip(found.x, low[inside], high[inside])
    return result


def climb(
    score: Margin, start: np.ndarray, low: np.ndarray, high: np.ndarray, setting: int
) -> np.ndarray:
    """Return the point (p,) near ``start`` at which a score is largest, by L-BFGS-B."""
    inside = high > low
    u, which = np.clip(start, low, high), np.array([setting])

    def loss(v: np.ndarray) -> tuple[float, np.ndarray]:
        point = u.copy()
        point[inside] = v
        value, slope = score(point[None], which)
        return -float(value[0]), -slope[0, inside]

    if inside.any():
        bounds = list(zip(low[inside], high[inside], strict=True))
        found = minimize(
            loss, u[inside], jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": 40}
        )
        u[inside] = np.clip(found.x, low[inside], high[inside])
    return u
