"""A counterfactual: the changes in standard units, and the prediction before and after."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from gpattr._core.readable_numbers import readable
from gpattr.explanation.counterfactual import AT_LEAST, Counterfactual, order, shown
from gpattr.plots.style import BLUE, GREEN, GREY, INK, ORANGE, check_kind, largest, tidy
from gpattr.plots.words import not_shown, share, short


def counterfactual(counterfactual: Counterfactual, *, max_display: int = 10) -> np.ndarray:
    """Draw the changes of features, and the prediction before and after against the target.

    The intervals leave 1 − level on either side, so that after the change of least length one end
    touches the target; of a level of ½ or below they are 95 % intervals. Returns the axes of both
    panels, (2,), in a new figure.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> changes, prediction = gpattr.plots.counterfactual(explainer.counterfactual([0.0, 0.0], 1.0))
    """
    check_kind("counterfactual", counterfactual, Counterfactual, "a gpattr Counterfactual")
    names = order(counterfactual)
    chosen = largest(np.abs([counterfactual.steps[name] for name in names]), max_display)
    names = [names[i] for i in chosen]
    size = (9.0, 1.9 + 0.4 * max(len(names), 2))
    axes = plt.subplots(1, 2, figsize=size, layout="constrained")[1]
    _changes(axes[0], counterfactual, names)
    _prediction(axes[1], counterfactual)
    return axes


def _changes(ax: Axes, result: Counterfactual, names: list[str]) -> None:
    places = np.arange(len(names))[::-1] + 0.5 * max(2 - len(names), 0)
    steps = np.array([result.steps[name] for name in names])
    ax.barh(places, steps, height=0.6, color=np.where(steps < 0, BLUE, ORANGE))
    ax.set_yticks(places, [_moved(result, name) for name in names])
    ax.set_ylim(-0.6, max(len(names), 2) - 0.4)
    ends = np.array([steps.min(initial=0.0), steps.max(initial=0.0)])
    ax.set_xlim(*(ends + 0.06 * max(float(np.ptp(ends)), 0.1) * np.array([-1.0, 1.0])))
    ax.axvline(0.0, color=INK, lw=0.8)
    note = not_shown(len(names), result.n_changed)
    title = "Changes" if result.found else "Changes of the highest probability"
    tidy(ax, title, "standard units", subtitle=note)


def _moved(result: Counterfactual, name: str) -> str:
    old, new = (short(shown(value), 14) for value in result.changes[name])
    return f"{short(name, 24)}\n{old} → {new}"


def _prediction(ax: Axes, result: Counterfactual) -> None:
    level = result.interval_level
    ends = result.intervals(level)
    centres = np.array(result.predictions)
    places = np.array([1.0, 0.0])
    for i, color in enumerate((GREY, GREEN if result.found else ORANGE)):
        ax.plot(ends[i], [places[i]] * 2, color=color, lw=2.5, solid_capstyle="butt")
        ax.plot(centres[i], places[i], "o", color=color, ms=7)
    ax.axvline(result.target, color=INK, lw=1.2, ls="--")
    low, high = min(ends.min(), result.target), max(ends.max(), result.target)
    margin = 0.08 * (high - low or 1.0)
    ax.set_xlim(low - margin, high + margin)
    wanted = (result.target, high + margin) if result.direction == AT_LEAST else None
    ax.axvspan(*(wanted or (low - margin, result.target)), color=GREEN, alpha=0.08, lw=0)
    chances = [result.probability_before, result.probability]
    words = ("before", "after")
    ax.set_yticks(places, [f"{w}\nP {_chance(p)}" for w, p in zip(words, chances, strict=True)])
    ax.set_ylim(-0.6, 1.6)
    side = "at least" if result.direction == AT_LEAST else "at most"
    aim = f"target: {side} {readable(result.target)} with probability {result.level:g}"
    title = "Prediction" if result.found else "The target is not reached"
    tidy(ax, title, f"{result.quantity}, with {share(level)} intervals", subtitle=aim)


def _chance(probability: float) -> str:
    return "< 0.001" if probability < 1e-3 else f"= {probability:.3f}"
