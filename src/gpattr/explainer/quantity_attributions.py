"""Attributions of a quantity of the model, such as its standard deviation: numbers, not random.

Integrated gradients are path integrals of the gradient; Shapley values are weighted sums of the
quantity at all coalitions. Both add up to q(x) − q(b).

    Aᵢ = (xᵢ − bᵢ) ∫₀¹ ∂ᵢq(b + t(x − b)) dt

A panel of a path has a rule of ten nodes; it is accepted where two halves agree with it to what is
wanted, or to rounding, and is halved where they do not. The error is the sum of these differences.
All panels of all paths are halved together, so that the gradient is asked for many points at a
time. Panels begin where a path meets training points: without noise a standard deviation is 0
there, and has a kink.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import EPS, Array, to_numpy
from gpattr._core.memory import blocks
from gpattr.closed_forms.shapley.corners import all_coalitions
from gpattr.distributions import Point
from gpattr.exceptions import InvalidInputError, ToleranceError, UnsupportedModelError
from gpattr.explainer.landscapes import Landscape, MomentLandscape, landscape
from gpattr.explainer.results import ExplainedRows
from gpattr.explanation.explanation import Explanation
from gpattr.operators import Coalitions, IntegratedGradients, Operator, Paths, Shapley
from gpattr.operators.players import MOST_PLAYERS
from gpattr.posteriors import Evaluation, Posterior
from gpattr.quantities import Acquisition, MomentQuantity, Quantity
from gpattr.special.quadrature import gauss_legendre

ATTRIBUTIONS = ("integrated_gradients", "shapley")
LARGEST_ROUNDING = 1e-2  # of the size of a quantity: what is known less well is refused
REASONS = {
    "path": "It changes too fast on the path, as beside a training row without noise; choose"
    " another baseline",
    "rounding": "It is not known better, being made of a variance that is the small difference of"
    " large numbers; use more noise",
}
PART_NAMES = {"exploit": "through the mean", "explore": "through the uncertainty"}
ORDER = 10  # nodes of a panel
WANTED = 1e-13  # of the size of the quantity, where a panel is accepted
LENGTH = 2.0  # length-scales that a panel covers at first
MOST_AT_FIRST, MOST_MORE = 512, 512  # panels of a path
SHORTEST = 2.0**-48
NEAR = 1e-7  # of a path: a training point that lies on it


@dataclass(frozen=True, eq=False)
class Found:
    """Attributions in parts, (parts, n, columns or players), and the method.

    ``error`` (n,) bounds their error; ``rounding`` (n,) is its part by rounding.
    """

    values: np.ndarray
    error: np.ndarray
    rounding: np.ndarray
    method: str


def check_quantity(
    quantity: Any, posterior: Posterior, attribution: Any, method: str, output: str
) -> None:
    """Refuse anything but a quantity, and options that it cannot be combined with."""
    if quantity is None:
        return
    if not isinstance(quantity, (MomentQuantity, Acquisition)):
        raise InvalidInputError(
            "quantity: expected one of gpattr.quantities, such as StandardDeviation(), or None, got"
            f" {quantity!r}"
        )
    if attribution not in ATTRIBUTIONS:
        raise InvalidInputError(
            'attribution: a quantity supports "integrated_gradients" and "shapley", got'
            f" {attribution!r}"
        )
    if method != "auto":
        raise InvalidInputError(f'method: a quantity supports only "auto", got {method!r}')
    if output != "latent":
        raise InvalidInputError(
            'output: a quantity is that of the latent function; leave output at "latent"'
        )
    if isinstance(quantity, Acquisition) and posterior.several_outputs:
        raise InvalidInputError(
            "quantity: an acquisition function is one number a row, and the model has several"
            f" outputs; select one for the baseline, model[{next(iter(posterior.outputs))!r}]"
        )
    if attribution == "integrated_gradients" and isinstance(quantity, MomentQuantity):
        for part in posterior.outputs.values():
            for _, component in part.in_columns.components:
                component.require_jets()


def of_quantity(
    posterior: Posterior,
    quantity: Quantity,
    asked: ExplainedRows,
    what: str,
    evaluation: Evaluation,
) -> Explanation:
    """Return a quantity's explanation, for a posterior that predicts ``what``."""
    surface, operator = landscape(posterior, quantity), asked.operator
    name = quantity.words(what)
    predictions = surface.value(asked.rows)
    base_values = asked.base_values(
        lambda points: surface.value(posterior.rows("baseline", points)), posterior
    )
    _require_finite(predictions, base_values, name, asked.shared["row_names"])
    size = _at_ends(lambda X: np.abs(surface.value(X)), operator, asked.rows)
    if isinstance(operator, Shapley):
        if asked.gathering is not None:
            operator = operator.encoded(asked.gathering)
        found = _by_coalitions(surface, operator, asked.rows, name)
    else:
        assert isinstance(operator, IntegratedGradients)
        found = _by_paths(posterior, surface, operator, asked.rows, size)
        if asked.gathering is not None:
            columns = int(asked.gathering.sum(axis=0).max())
            found = replace(
                found,
                values=found.values @ asked.gathering,
                error=found.error * columns,
                rounding=found.rounding * columns,
            )
    total = found.values.sum(axis=0)
    delta = total.sum(axis=1) - (predictions - base_values)
    error = found.error + np.abs(delta) + 4.0 * EPS * np.abs(found.values).sum(axis=(0, 2))
    largest = np.maximum(size, np.abs(found.values).max(axis=(0, 2), initial=0.0))
    # The quantity itself is rounded at both ends.
    rounding = found.rounding + 2.0 * _at_ends(surface.value_error, operator, asked.rows)
    _require_good(error, rounding, largest, evaluation.tolerance, name, asked.shared["row_names"])
    whole = Explanation(
        distribution=Point(total),
        predictions=predictions,
        base_values=base_values,
        method=found.method + (f" ({posterior.note})" if posterior.note else ""),
        error=error,
        delta=delta,
        quantity=name,
        **asked.shared,
    )
    return replace(whole, parts=_parts(whole, surface, asked, posterior, found.values))


def _parts(
    whole: Explanation,
    surface: Landscape,
    asked: ExplainedRows,
    posterior: Posterior,
    values: np.ndarray,
) -> dict[str, Explanation]:
    """Return the parts by the mean and by the uncertainty, where there are both.

    The parts of a confidence bound are μ and ±κσ. Of other quantities they are not functions of the
    row: their attributions are the path's gains by each, from 0.
    """
    if len(values) < 2 or not isinstance(surface, MomentLandscape) or not surface.quantity.of_mean:
        return {}
    n = len(whole)
    ends = {name: (part.sum(axis=1), np.zeros(n)) for name, part in _named(surface, values)}
    if surface.quantity.separable:

        def mean_at(points: Array) -> np.ndarray:
            return surface.posterior_mean(posterior.rows("baseline", points))

        mean, base = surface.posterior_mean(asked.rows), asked.base_values(mean_at, posterior)
        ends["exploit"] = mean, base
        ends["explore"] = whole.predictions - mean, whole.base_values - base
    return {
        name: replace(
            whole,
            distribution=Point(part),
            predictions=ends[name][0],
            base_values=ends[name][1],
            delta=part.sum(axis=1) - (ends[name][0] - ends[name][1]),
            quantity=f"{whole.quantity}, {PART_NAMES[name]}",
        )
        for name, part in _named(surface, values)
    }


def _named(surface: Any, values: np.ndarray) -> list[tuple[str, np.ndarray]]:
    return list(zip(surface.parts, values, strict=True))


def _by_paths(
    posterior: Posterior,
    surface: Landscape,
    operator: IntegratedGradients,
    rows: Array,
    size: np.ndarray,
) -> Found:
    """Return integrated gradients, (parts, n, columns)."""
    X, inner = to_numpy(rows), posterior.in_columns
    inputs = inner.training_inputs
    points = None if inputs is None else np.unique(to_numpy(inputs), axis=0)
    values, error = np.zeros((len(surface.parts), *X.shape)), np.zeros(len(X))
    rounding = np.zeros(len(X))
    for weight, paths in operator.terms(X):
        assert isinstance(paths, Paths)
        start, stop = (np.broadcast_to(end, X.shape) for end in (paths.start, paths.stop))
        lengths = np.max(
            [to_numpy(part.path_lengths(start, stop)) for _, part in inner.components], axis=0
        )
        _require_short(lengths)
        part, bound, noise = path_integrals(surface, start, stop, lengths, size, points)
        values += weight * part
        error += abs(weight) * bound
        rounding += abs(weight) * noise
    return Found(values, error, rounding, "adaptive quadrature")


def _by_coalitions(surface: Landscape, operator: Shapley, rows: Array, name: str) -> Found:
    """Return Shapley values, (parts, n, players), from the quantity at all coalitions."""
    if operator.independent:
        raise UnsupportedModelError(
            "baseline: Shapley values of a quantity are those of a point or of Baselines(rows), not"
            " of Marginals"
        )
    players = operator.players
    if len(players.seen) > MOST_PLAYERS:
        raise UnsupportedModelError(
            f"attribution: Shapley values of the {name} go through all coalitions of at most"
            f" {MOST_PLAYERS} players, and there are {len(players.seen)}; group features with"
            ' players=, or use "integrated_gradients"'
        )
    design, n = all_coalitions(players), len(rows)
    values, error = np.zeros((len(_in_parts(surface, rows[:1])), n, players.count)), np.zeros(n)
    c, d = len(design.members), rows.shape[1]
    for some in blocks(n, 16.0 * c * (d + 8)):
        for weight, sites in operator.rows(some).terms(rows[some]):
            assert isinstance(sites, Coalitions)
            corners = sites.corners(design.members).reshape(-1, d)
            at = _in_parts(surface, corners)
            at = at.reshape(len(at), -1, c)
            if not np.isfinite(at).all():
                raise InvalidInputError(
                    f"baseline: the {name} is not finite at some coalitions of row and baseline"
                )
            values[:, some] += weight * (at @ design.weights.T) * to_numpy(sites.moving)
            bound = 8.0 * EPS * np.abs(at).max(axis=(0, 2))
            bound += surface.value_error(corners).reshape(-1, c).max(axis=1)
            error[some] += abs(weight) * Shapley.absolute_weight * bound
    return Found(values, error, error, "enumeration")


def _in_parts(surface: Landscape, X: Array) -> np.ndarray:
    """Return the quantity at rows, (1, n); a confidence bound as its mean and the rest, (2, n)."""
    value = surface.value(X)
    if isinstance(surface, MomentLandscape) and surface.quantity.separable:
        mean = surface.posterior_mean(X)
        return np.stack([mean, value - mean])
    return value[None]


def _at_ends(function: Any, operator: Operator, rows: Array) -> np.ndarray:
    """Return the larger of a function's values at the ends of each row's paths, (n,)."""
    reference = operator.reference
    assert reference is not None
    start = function(np.asarray(to_numpy(reference.points), dtype=np.float64))
    return np.maximum(function(rows), start if reference.per_row else start.max())


def _require_finite(
    predictions: np.ndarray, base_values: np.ndarray, name: str, labels: tuple[Any, ...]
) -> None:
    if not np.isfinite(base_values).all():
        value = base_values[~np.isfinite(base_values)][0]
        raise InvalidInputError(f"baseline: the {name} is {value} there; choose another baseline")
    if not np.isfinite(predictions).all():
        row = int(np.isfinite(predictions).argmin())
        raise InvalidInputError(f"X: the {name} of row {labels[row]} is {predictions[row]}")


def _require_short(lengths: np.ndarray) -> None:
    longest = LENGTH * MOST_AT_FIRST
    if not (lengths <= longest).all():
        row = int(np.nan_to_num(lengths, nan=np.inf).argmax())
        raise ToleranceError(
            f"X: the path of row {row} is {lengths[row]:.3g} length-scales long, more than the"
            f" {longest:g} on which a quantity is integrated; choose a baseline nearer to the row"
        )


def _require_good(
    error: np.ndarray,
    rounding: np.ndarray,
    size: np.ndarray,
    tolerance: float,
    name: str,
    labels: tuple[Any, ...],
) -> None:
    """Refuse integrals that are not good to the tolerance, and integrals lost to rounding.

    Rounding is not the fault of an integral, and is stated in the error.
    """
    checks = (
        (error - 4.0 * rounding, tolerance, "path"),
        (error, max(tolerance, LARGEST_ROUNDING), "rounding"),
    )
    for off, allowed, reason in checks:
        bad = ~(off <= allowed * size)
        if bad.any():
            row = int(np.where(bad, error, -1.0).argmax())
            raise ToleranceError(
                f"tolerance: the attributions of the {name} of row {labels[row]} are accurate only"
                f" to {error[row]:.0e}, of its size {size[row]:.2g}. {REASONS[reason]}, or pass a"
                f" larger tolerance=, which is {tolerance:.0e}"
            )


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

    ``lengths`` (n,) are the paths' lengths in length-scales, ``size`` (n,) the quantity's size;
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
        """Return integrals over panels, (k, parts, d), and their rounding errors, (k,)."""
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
    """Return the path and the ends of each panel: even ones, and panels cut by training points."""
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
