"""Legends under the axes, where they cover no points."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from gpattr.plots.style import GREY, UNSURE, names_width, room
from gpattr.plots.words import LETTER, share


def legend(ax: Axes, handles: list[Any], columns: int = 1) -> None:
    """Add a legend under the name of the axis across, and under the legends already there."""
    lines = ax.get_xlabel().count("\n") + 1 if ax.get_xlabel() else 0
    for other in ax.artists:
        if isinstance(other, Legend):
            columns_there: int = other._ncols  # pyright: ignore[reportAttributeAccessIssue]
            lines += math.ceil(len(other.get_texts()) / columns_there)
    aslant = max(
        (len(label.get_text()) for label in ax.get_xticklabels() if label.get_rotation()), default=0
    )
    below = (24.0 + 14.0 * lines) / 72 + 0.65 * 9 * LETTER * aslant
    place = ax.transAxes + ScaledTranslation(-names_width(ax), -below, ax.figure.dpi_scale_trans)
    look: dict[str, Any] = {"frameon": False, "fontsize": 9, "ncols": columns, "loc": "upper left"}
    tight: dict[str, Any] = {
        "borderpad": 0,
        "borderaxespad": 0,
        "handlelength": 1,
        "labelspacing": 0.25,
        "handletextpad": 0.3,
    }
    names = [handle.get_label() for handle in handles]
    added = Legend(
        ax,
        handles,
        names,
        bbox_to_anchor=(0, 0),
        bbox_transform=place,
        columnspacing=1.0,
        **look,
        **tight,
    )
    for text in added.get_texts():
        # A category may have $ in it.
        text.set_parse_math(False)  # pyright: ignore[reportAttributeAccessIssue]
    ax.add_artist(added).set_clip_on(False)  # what is clipped gets no room in the layout


def mark(label: str, face: Any, edge: Any) -> Line2D:
    """Return a point for a legend."""
    return Line2D([], [], ls="", marker="o", ms=5, mfc=face, mec=edge, label=label)


def hollow_legend(ax: Axes, level: float) -> None:
    """Explain full and hollow points under the axes."""
    full, hollow = f"sign is at least {share(level)} sure", "less sure"
    legend(ax, [mark(full, GREY, GREY), mark(hollow, "white", UNSURE)], 2)


def legend_across(ax: Axes, handles: list[Any]) -> None:
    """Add a legend under the axes, in as many columns as fit."""
    if handles:
        legend(ax, handles, columns_within(handles, room(ax)[0] + names_width(ax)))


def columns_within(handles: list[Any], width: float) -> int:
    """Return how many columns of a legend fit into a width in inches."""
    widths = [9 * LETTER * len(handle.get_label()) + 0.35 for handle in handles]
    if sum(widths) <= width:
        return len(handles)
    return min(max(int(width / max(widths)), 1), len(handles))
