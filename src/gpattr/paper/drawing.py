"""Common elements of the paper's figures: colours, axes, bands and bars."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from gpattr.plots.style import BLUE, ORANGE


def canvas(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches, with a constrained layout."""
    return Figure(figsize=(width, height), layout="constrained")


def stacked(figure: Figure, *heights: float) -> list[SubFigure]:
    """Return parts of a figure, one above the other, with heights in these proportions."""
    parts = np.asarray(figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights))
    return list(parts[:, 0])


def tidy(axes: Axes, title: str = "", x: str = "", y: str = "") -> Axes:
    """Label the axes and remove unnecessary spines."""
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def band(axes: Axes, x: Any, mean: Any, std: Any, color: str, label: str) -> None:
    """Draw a mean with one and with two standard deviations on both sides."""
    mean, std = np.asarray(mean), np.asarray(std)
    for width in (2.0, 1.0):
        axes.fill_between(x, mean - width * std, mean + width * std, color=color, alpha=0.18, lw=0)
    axes.plot(x, mean, color=color, lw=1.6, label=label)


def converging(axes: Axes, partitions: Any, rule: Any, exact: Any, **look: Any) -> None:
    """Draw the right-hand rule, mean and sd by partitions, over the band of the exact result."""
    mean, std = exact
    axes.axhspan(mean - std, mean + std, color=BLUE, alpha=0.2, lw=0)
    axes.axhline(mean, color=BLUE, lw=look.pop("width"), label="exact, ±1 sd")
    axes.errorbar(partitions, *rule, fmt="o", color=ORANGE, label="right-hand rule, ±1 sd", **look)


def bars(axes: Axes, values: Any, std: Any | None, names: list[str]) -> None:
    """Draw horizontal bars, the first on top, with error bars of one standard deviation."""
    places = np.arange(len(names))[::-1]
    axes.barh(
        places,
        values,
        color=np.where(np.asarray(values) < 0, BLUE, ORANGE),
        height=0.65,
        alpha=0.85,
    )
    if std is not None:
        axes.errorbar(values, places, xerr=std, fmt="none", ecolor="0.2", capsize=3, lw=1.1)
    axes.set_yticks(places, names)
    axes.axvline(0.0, color="0.2", lw=0.8)
