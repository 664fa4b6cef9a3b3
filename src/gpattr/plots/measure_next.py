"""Next measurements: candidates by expected information, and intervals now and after the best."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter
from scipy.special import ndtri

from gpattr._core.array import Array
from gpattr._core.normal import check_level
from gpattr._core.validation import check_count
from gpattr.explanation.next_measurement import NextMeasurement, subject
from gpattr.plots.legends import legend
from gpattr.plots.style import BLUE, INK, check_kind, largest, lines_of, tidy
from gpattr.plots.words import baseline_text, not_shown, share, short

NOW = "0.78"
LONGEST = 22  # letters of a name, of which two panels have one each


def measure_next(
    measurement: NextMeasurement, *, max_display: int = 8, level: float = 0.95
) -> np.ndarray:
    """Draw the most informative candidates, and their effect on the intervals.

    On the left candidates are ranked by the share of the variance that a measurement there would
    remove. On the right are intervals now and after: for one attribution after each of these
    candidates, for several those that the best candidate changes most. The width of an interval is
    known before the measurement, its centre is not: intervals after are drawn around the mean now.
    At most ``max_display`` of each are drawn, in a new figure. Returns the axes of both panels,
    (2,).

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> measurement = explainer.measure_next([[0.0, 0.0], [3.0, 0.0]], [[2.0, 2.0]])
    >>> ranking, intervals = gpattr.plots.measure_next(measurement)
    """
    what = "a gpattr.NextMeasurement, as explainer.measure_next(…) returns"
    check_kind("measurement", measurement, NextMeasurement, what)
    check_level(level)
    check_count("max_display", max_display)
    one = measurement.means.size == 1
    order = largest(measurement.total_reduction, max_display)
    left, right = _panels(max(len(order), 1 if one else min(max_display, measurement.means.size)))
    _ranking(left, measurement, order)
    if one:
        _one_attribution(right, measurement, order, level)
    else:
        _several_attributions(right, measurement, int(order[0]), max_display, level)
    return np.array([left, right])


def _panels(lines: int) -> tuple[Axes, Axes]:
    import matplotlib.pyplot as plt

    size = (9.6, 1.9 + 0.32 * lines)
    _, axes = plt.subplots(1, 2, figsize=size, layout="constrained", width_ratios=(2, 3))
    axes[0].figure.get_layout_engine().set(wspace=0.04)
    return axes[0], axes[1]


def _ranking(ax: Axes, measurement: NextMeasurement, order: Array) -> None:
    """Draw the share of the variance that each candidate removes."""
    total = measurement.variances.sum()
    shares = measurement.total_reduction[order] / (total if total > 0 else 1.0)
    places = lines_of(ax, [_name(measurement.candidate_names[i]) for i in order])
    ax.barh(places, shares, height=0.6, color=BLUE)
    ax.bar_label(
        ax.containers[0],  # pyright: ignore[reportArgumentType]
        [_share(value) for value in shares],
        fontsize=9,
        padding=3,
        color=INK,
    )
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0.0, 1.25 * max(float(shares.max()), 1e-6))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: share(value)))
    smaller = not_shown(len(order), len(measurement))
    title = "What one measurement would tell"
    tidy(ax, title, "share of the variance removed", "candidate", subtitle=smaller)


def _one_attribution(ax: Axes, measurement: NextMeasurement, order: Array, level: float) -> None:
    """Draw the interval of the only attribution after each candidate, in the lines of these."""
    places = np.arange(len(order))[::-1]
    mean, half = float(measurement.means[0, 0]), _quantile(level)
    now = half * float(np.sqrt(measurement.variances[0, 0]))
    after = half * measurement.std_after.reshape(len(measurement))[order]
    ax.axvspan(mean - now, mean + now, color=NOW, alpha=0.6, lw=0)
    ax.hlines(places, mean - after, mean + after, color=BLUE, lw=8)
    ax.axvline(mean, color=INK, lw=0.8)
    chances = measurement.prob_settled(level).reshape(len(measurement))[order]
    beside: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "fontsize": 9}
    for place, chance in zip(places, chances, strict=True):
        ax.text(1.02, place, _share(chance), va="center", color=INK, **beside)
    ax.text(1.02, len(order) - 0.35, f"P(sign > {share(level)})", color="0.4", **beside)
    ax.set_yticks([])
    ax.set_ylim(-0.6, len(order) - 0.4)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    _finish(ax, measurement, level, "after a measurement at the candidate")


def _several_attributions(
    ax: Axes, measurement: NextMeasurement, best: int, max_display: int, level: float
) -> None:
    """Draw the attributions that the best candidate changes most, now and after it."""
    d = len(measurement.feature_names)
    falls = measurement.reduction_by_feature[best].ravel()
    order = largest(falls, max_display)
    places = lines_of(ax, [_entry(measurement, int(i) // d, int(i) % d) for i in order])
    means, now = measurement.means.ravel()[order], np.sqrt(measurement.variances.ravel()[order])
    after = np.sqrt(np.maximum(measurement.variances.ravel() - falls, 0.0))[order]
    half = _quantile(level)
    ax.hlines(places, means - half * now, means + half * now, color=NOW, lw=9)
    ax.hlines(places, means - half * after, means + half * after, color=BLUE, lw=4)
    ax.plot(means, places, "|", color=INK, ms=9)
    ax.tick_params(axis="y", length=0)
    _finish(ax, measurement, level, f"after measuring {_name(measurement.candidate_names[best])}")


def _finish(ax: Axes, measurement: NextMeasurement, level: float, after: str) -> None:
    ax.axvline(0.0, color=INK, lw=0.8, ls=":")
    title = subject(measurement).removeprefix("the ")
    compared = baseline_text(measurement.baseline_name, measurement.attribution)
    label = f"attribution to the {measurement.quantity}"
    tidy(ax, title[0].upper() + title[1:], label, subtitle=compared)
    now = Patch(color=NOW, label=f"{share(level)} interval now")
    legend(ax, [now, Patch(color=BLUE, label=after)], 2)


def _entry(measurement: NextMeasurement, row: int, feature: int) -> str:
    """Return the name of one of several attributions: by feature, row, or both."""
    name = measurement.row_names[row]
    parts = []
    if measurement.feature is None:
        parts.append(measurement.feature_names[feature])
    if len(measurement.row_names) > 1:
        parts.append(f"row {name}" if isinstance(name, int) else name)
    return short(", ".join(parts), LONGEST)


def _share(value: float) -> str:
    return f"{value:.1%}" if value >= 5e-4 else "< 0.1%" if value > 0 else "0%"


def _name(name: str | int) -> str:
    return short(str(name), LONGEST)


def _quantile(level: float) -> float:
    """Return how many standard deviations a central interval reaches to each side."""
    return float(ndtri(0.5 + 0.5 * level))
