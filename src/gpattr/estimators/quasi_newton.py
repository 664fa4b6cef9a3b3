"""Minimisation within bounds by L-BFGS-B (Byrd et al. 1995; Morales and Nocedal 2011).

The algorithm is SciPy's, step by step. SciPy solves its small systems with a BLAS whose threads
wake for each of them and then spin, which takes a core for as long as training lasts, and doubles
its time on a busy machine; here no threads are woken.

With steps S and changes of the gradient Y, B = θI − W M Wᵀ, W = [Y, θS], M⁻¹ = [[−D, Lᵀ], [L,
θSᵀS]], D the diagonal of SᵀY and L what is below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpattr._core.array import EPS, product

DECREASE, CURVATURE, NARROW, TRIALS = 1e-3, 0.9, 0.1, 20  # of the line search
CONVERGED, LIMIT, ABNORMAL = 0, 1, 2
Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
_End = tuple[float, float, float]  # a step with value and slope there


@dataclass(frozen=True)
class Result:
    """The end of a search: the point, the value there, ``status`` (0: converged), ``message``."""

    x: np.ndarray
    value: float
    status: int
    message: str


class Memory:
    """The last ``size`` steps and changes of the gradient, and the matrix B they make."""

    def __init__(self, size: int, n: int) -> None:
        self.size = size
        self.S, self.Y = np.empty((0, n)), np.empty((0, n))
        self.update()

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Add a step and the change of the gradient; the oldest pair is dropped."""
        first = max(0, len(self.S) + 1 - self.size)
        self.S, self.Y = np.vstack([self.S[first:], step]), np.vstack([self.Y[first:], change])
        self.update(float((change * change).sum()) / float((step * change).sum()))

    def update(self, theta: float = 1.0) -> None:
        """Form θ, W and M; raise ``LinAlgError`` where M does not exist."""
        self.theta, k = theta, len(self.S)
        self.W = np.concatenate([self.Y, theta * self.S])  # rows: Wᵀ
        products = product(self.S, self.Y.T)
        middle = np.zeros((2 * k, 2 * k))
        middle[:k, :k] = -np.diag(products.diagonal())
        middle[k:, :k] = np.tril(products, -1)
        middle[:k, k:] = middle[k:, :k].T
        middle[k:, k:] = theta * product(self.S, self.S.T)
        self.M = np.linalg.inv(middle)
        if not np.isfinite(self.M).all():
            raise np.linalg.LinAlgError("not finite")


def minimise(
    function: Function,
    start: np.ndarray,
    limits: np.ndarray,
    *,
    maxcor: int,
    ftol: float,
    gtol: float,
    maxiter: int,
    maxfun: int,
    callback: Callable[[np.ndarray], None] | None = None,
) -> Result:
    """Return the minimum found from ``start`` within ``limits`` (n, 2); names are SciPy's.

    It ends by ``gtol`` (projected gradient), ``ftol`` (relative gain), ``maxiter`` or ``maxfun``.
    """
    box = _Box.of(limits)
    x = np.clip(start, box.lower, box.upper)
    here = _Point(x, *function(x))
    evaluations, iterations = 1, 0
    memory = Memory(maxcor, len(x))
    if box.projected(here) <= gtol:
        return Result(x, here.value, CONVERGED, "the projected gradient is small")
    while True:
        try:
            target = _target(memory, here, box)
        except np.linalg.LinAlgError:
            memory = Memory(maxcor, len(x))
            continue
        search, found, trials = _line_search(function, here, target, box, first=iterations == 0)
        evaluations += trials
        if search is None or found is None:
            if not len(memory.S):
                status = LIMIT if evaluations > maxfun else ABNORMAL
                return Result(here.x, here.value, status, "the line search found nothing better")
            memory = Memory(maxcor, len(x))
            continue
        direction, old, here = target - here.x, here, found
        iterations += 1
        if callback is not None:
            callback(here.x)
        if iterations >= maxiter:
            return here.result(LIMIT, f"the limit of {maxiter} iterations was reached")
        if evaluations > maxfun:
            return here.result(LIMIT, f"the limit of {maxfun} evaluations was reached")
        if box.projected(here) <= gtol:
            return here.result(CONVERGED, "the projected gradient is small")
        if old.value - here.value <= ftol * max(abs(old.value), abs(here.value), 1.0):
            return here.result(CONVERGED, "the value hardly changes")
        memory = _updated(memory, search, direction, here.gradient - old.gradient)


def _updated(memory: Memory, search: _Search, direction: np.ndarray, change: np.ndarray) -> Memory:
    """Return the memory with the last step added, if it curves upwards; empty if it is singular."""
    moved = search.step * direction
    if float((moved * change).sum()) > -EPS * search.slope * search.step:
        try:
            memory.add(moved, change)
        except np.linalg.LinAlgError:
            return Memory(memory.size, len(direction))
    return memory


class _Point(NamedTuple):
    """A point with value and gradient of the function there."""

    x: np.ndarray
    value: float
    gradient: np.ndarray

    def result(self, status: int, message: str) -> Result:
        return Result(self.x, self.value, status, message)


@dataclass(frozen=True)
class _Box:
    """Bounds ``lower`` and ``upper`` (n,): whether any is finite (``bounded``), or all are."""

    lower: np.ndarray
    upper: np.ndarray
    bounded: bool
    boxed: bool

    @classmethod
    def of(cls, limits: np.ndarray) -> _Box:
        lower, upper = limits.T
        finite = np.isfinite(limits)
        return cls(lower, upper, bool(finite.any()), bool(finite.all()))

    def projected(self, point: _Point) -> float:
        """Return the largest entry of the projected gradient."""
        x, g = point.x, point.gradient
        inside = np.where(g < 0, np.maximum(x - self.upper, g), np.minimum(x - self.lower, g))
        return float(np.abs(inside).max(initial=0.0))


def _target(memory: Memory, here: _Point, box: _Box) -> np.ndarray:
    """Return the minimum of the quadratic model within the bounds."""
    x, g = here.x, here.gradient
    if box.bounded or not len(memory.S):
        target, free, c = _cauchy_point(memory, x, g, box.lower, box.upper)
    else:
        target, free, c = x.copy(), np.ones(len(x), dtype=bool), np.zeros(2 * len(memory.S))
    if free.any() and len(memory.S):
        return _within_subspace(memory, x, g, target, free, c, box.lower, box.upper)
    return target


def _line_search(
    function: Function, here: _Point, target: np.ndarray, box: _Box, *, first: bool
) -> tuple[_Search | None, _Point | None, int]:
    """Return the search towards ``target``, the point found, and the number of evaluations.

    There is no search uphill, and no point where it failed. The ``first`` step is cautious.
    """
    direction, longest = target - here.x, 1e10
    if box.bounded:
        longest = 1.0 if first else _longest(here.x, direction, box.lower, box.upper)
    size = math.sqrt(float((direction * direction).sum()))
    begin = min(1.0 / size, longest) if first and not box.boxed and size > 0 else 1.0
    slope = float((here.gradient * direction).sum())
    if not slope < 0:
        return None, None, 0
    search = _Search(here.value, slope, min(begin, longest), longest)
    found, trials = None, 0
    while not search.done and trials < TRIALS:
        step = search.step
        x = (
            target.copy()
            if step == 1.0
            else np.clip(here.x + step * direction, box.lower, box.upper)
        )
        found = _Point(x, *function(x))
        trials += 1
        search.take(found.value, float((found.gradient * direction).sum()))
    return search, found if search.done else None, trials


def _longest(x: np.ndarray, direction: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Return the longest step that stays within the bounds."""
    room = np.where(direction < 0, lower - x, np.where(direction > 0, upper - x, np.inf))
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(direction != 0, room / direction, np.inf)
    return float(np.clip(steps, 0.0, None).min(initial=1e10))


def _cauchy_point(
    memory: Memory, x: np.ndarray, g: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the Cauchy point, which variables are free there, and Wᵀ times the step.

    It is the quadratic model's first minimum along the projected gradient.
    """
    theta, W, M = memory.theta, memory.W, memory.M
    held = ((x <= lower) & (g >= 0)) | ((x >= upper) & (g <= 0))
    d = np.where(held, 0.0, -g)
    room = np.where(d < 0, lower - x, upper - x)
    with np.errstate(divide="ignore", invalid="ignore"):
        breaks = np.where(d != 0, room / d, np.inf)
    point, free = x.copy(), ~held & (d != 0)
    p, c = product(W, d), np.zeros(len(W))
    f1 = -float((d * d).sum())
    f2 = start = -theta * f1
    f2 -= float(p @ (M @ p))
    if f1 == 0.0:
        return point, ~held, c
    best, reached = -f1 / f2, 0.0
    for i in np.argsort(breaks, kind="stable"):
        span = breaks[i] - reached
        if not math.isfinite(breaks[i]) or best < span:
            break
        reached = float(breaks[i])
        move, d_i = (float(upper[i] - x[i]) if d[i] > 0 else float(lower[i] - x[i])), float(d[i])
        point[i], d[i], free[i] = (upper[i] if d_i > 0 else lower[i]), 0.0, False
        c = c + span * p
        row = W[:, i]
        by_row = M @ row
        f1 += span * f2 + d_i**2 - theta * d_i * move + d_i * float(c @ by_row)
        f2 += -theta * d_i**2 + 2.0 * d_i * float(p @ by_row) - d_i**2 * float(row @ by_row)
        p = p - d_i * row
        f2 = max(EPS * start, f2)
        if not d.any():
            return point, free | (~held & (g == 0)), c
        best = -f1 / f2
    best = max(best, 0.0)
    moving = d != 0
    point[moving] += (reached + best) * d[moving]
    return point, free | (~held & (g == 0)), c + best * p


def _within_subspace(
    memory: Memory,
    x: np.ndarray,
    g: np.ndarray,
    point: np.ndarray,
    free: np.ndarray,
    c: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> np.ndarray:
    """Return the quadratic model's minimum over the free variables, brought within bounds."""
    theta, W, M = memory.theta, memory.W[:, free], memory.M
    r = -theta * (point - x)[free] - g[free] + product(M @ c, W)
    v = M @ product(W, r)
    v = np.linalg.solve(np.eye(len(M)) - M @ (product(W, W.T) / theta), v)
    d = r / theta + product(v, W) / theta**2
    if not np.isfinite(d).all():
        raise np.linalg.LinAlgError("not finite")
    result = point.copy()
    result[free] = np.clip(point[free] + d, lower[free], upper[free])
    if float(((result - x) * g).sum()) > 0:  # the projection goes uphill: a shorter step instead
        step = np.zeros_like(x)
        step[free] = d
        share = min(1.0, _longest(point, step, lower, upper))
        result = np.clip(point + share * step, lower, upper)
    return result


class _Search:
    """A line search for sufficient decrease and curvature (Moré and Thuente 1994)."""

    def __init__(self, value: float, slope: float, step: float, longest: float) -> None:
        self.value, self.slope, self.step, self.longest = value, slope, step, longest
        self.done, self.bracketed, self.first_stage = False, False, True
        self.width, self.width1 = longest, 2.0 * longest
        self.best = self.other = (0.0, value, slope)
        self.low, self.high = 0.0, step + 4.0 * step

    def take(self, f: float, g: float) -> None:
        """Take in value and slope at ``step``; then it is ``done``, or ``step`` is the next."""
        test = DECREASE * self.slope
        enough = self.value + self.step * test
        if self.first_stage and f <= enough and g >= 0:
            self.first_stage = False
        cornered = self.bracketed and (self.step <= self.low or self.step >= self.high)
        narrow = self.bracketed and self.high - self.low <= NARROW * self.high
        at_end = self.step == self.longest and f <= enough and g <= test
        at_start = self.step == 0.0 and (f > enough or g >= test)
        if (
            cornered
            or narrow
            or at_end
            or at_start
            or (f <= enough and abs(g) <= -CURVATURE * self.slope)
        ):
            self.done = True
            return
        try:
            self._narrow(f, g, test, enough)
        except ZeroDivisionError:  # flat to rounding: nothing to interpolate
            self.step = self.best[0] + 0.5 * (self.step - self.best[0])

    def _narrow(self, f: float, g: float, test: float, enough: float) -> None:
        """Choose the next step from value and slope at this one."""
        if self.first_stage and enough < f <= self.best[1]:
            # Of the function less its required decrease.
            (a, fa, ga), (b, fb, gb) = self.best, self.other
            best, other = (a, fa - a * test, ga - test), (b, fb - b * test, gb - test)
            best, other, self.step = self._next(
                best, other, (self.step, f - self.step * test, g - test)
            )
            self.best = (best[0], best[1] + best[0] * test, best[2] + test)
            self.other = (other[0], other[1] + other[0] * test, other[2] + test)
        else:
            self.best, self.other, self.step = self._next(self.best, self.other, (self.step, f, g))
        a, b = self.best[0], self.other[0]
        if self.bracketed:
            if abs(b - a) >= 0.66 * self.width1:
                self.step = a + 0.5 * (b - a)
            self.width1, self.width = self.width, abs(b - a)
            self.low, self.high = min(a, b), max(a, b)
        else:
            self.low, self.high = (
                self.step + 1.1 * (self.step - a),
                self.step + 4.0 * (self.step - a),
            )
        self.step = min(max(self.step, 0.0), self.longest)
        if self.bracketed and (
            self.step <= self.low
            or self.step >= self.high
            or self.high - self.low <= NARROW * self.high
        ):
            self.step = a

    def _next(self, best: _End, other: _End, here: _End) -> tuple[_End, _End, float]:
        """Return the remaining interval, the better end first, and an interpolated step in it."""
        (a, fa, ga), (t, f, g) = best, here
        opposite = g * math.copysign(1.0, ga) < 0
        if f > fa:
            theta, gamma = _cubic(best, here)
            gamma = -gamma if t < a else gamma
            by_cubic = a + ((gamma - ga) + theta) / (((gamma - ga) + gamma) + g) * (t - a)
            by_square = a + (ga / ((fa - f) / (t - a) + ga)) / 2.0 * (t - a)
            closer = abs(by_cubic - a) <= abs(by_square - a)
            step = by_cubic if closer else by_cubic + (by_square - by_cubic) / 2.0
            self.bracketed = True
        elif opposite:
            theta, gamma = _cubic(best, here)
            gamma = -gamma if t > a else gamma
            by_cubic = t + ((gamma - g) + theta) / (((gamma - g) + gamma) + ga) * (a - t)
            by_square = t + g / (g - ga) * (a - t)
            step = by_cubic if abs(by_cubic - t) > abs(by_square - t) else by_square
            self.bracketed = True
        elif abs(g) < abs(ga):
            step = self._where_slopes_flatten(best, other[0], here)
        elif self.bracketed:
            b, _, gb = other
            theta, gamma = _cubic(other, here)
            gamma = -gamma if t > b else gamma
            step = t + ((gamma - g) + theta) / (((gamma - g) + gamma) + gb) * (b - t)
        else:
            step = self.high if t > a else self.low
        if f > fa:
            return best, here, step
        return here, (best if opposite else other), step

    def _where_slopes_flatten(self, best: _End, b: float, here: _End) -> float:
        """Return the next step where the slope has the same sign as before but is flatter."""
        (a, _, ga), (t, _, g) = best, here
        theta, gamma = _cubic(best, here)
        gamma = -gamma if t > a else gamma
        r = ((gamma - g) + theta) / ((gamma + (ga - g)) + gamma)
        by_cubic = t + r * (a - t) if r < 0 and gamma != 0 else (self.high if t > a else self.low)
        by_square = t + g / (g - ga) * (a - t)
        if self.bracketed:
            step = by_cubic if abs(by_cubic - t) < abs(by_square - t) else by_square
            edge = t + 0.66 * (b - t)
            return min(edge, step) if t > a else max(edge, step)
        step = by_cubic if abs(by_cubic - t) > abs(by_square - t) else by_square
        return min(max(step, self.low), self.high)


def _cubic(end: _End, here: _End) -> tuple[float, float]:
    """Return θ and γ of the cubic through two ends of an interval."""
    (s, fs, gs), (t, f, g) = end, here
    theta = 3.0 * (fs - f) / (t - s) + gs + g
    size = max(abs(theta), abs(gs), abs(g))
    return theta, size * math.sqrt(max(0.0, (theta / size) ** 2 - (gs / size) * (g / size)))
