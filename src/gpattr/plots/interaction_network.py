"""Network of interactions: features on a circle, edges for pairs whose sign is certain."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from gpattr._core.array import Array
from gpattr._core.readable_numbers import readable
from gpattr.explanation.interactions import InteractionExplanation
from gpattr.plots.interaction_summary import InteractionSummary, certainty, summary_of
from gpattr.plots.legends import mark
from gpattr.plots.style import BLUE, GREY, INK, ORANGE, UNSURE, axes_for, largest, room, tidy
from gpattr.plots.words import baseline_of, share, short, wrapped

WIDEST, THINNEST = 8.0, 0.7  # points
LARGEST_NODE, SMALLEST_NODE = 26.0, 5.0  # diameters in points
INWARD = 0.5  # how far the longest edges bend towards the centre
MOST_EDGES = 60  # beyond which nobody can follow them


def interaction_network(
    explanation: InteractionExplanation,
    row: int | None = None,
    *,
    max_display: int = 20,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw the interactions of one row, or their mean over all rows, as a network of features.

    An edge joins two features where the model is sure of the sign of their interaction to
    ``level``: its width is the size, its colour the sign. The area of a node is the size of the
    feature's main effect, and it is hollow where the sign of that is not sure. Of more than 60
    edges the largest are drawn. Without known uncertainty no pair is left out for it.

    The uncertainty of a mean over rows is its upper bound: rows share one unknown function.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros", attribution="shapley")
    >>> ax = gpattr.plots.interaction_network(explainer.interactions(X[:5]), row=0)
    """
    whole = summary_of(explanation, row)
    shown = whole.leading(max_display, keep_order=True)
    d = len(shown.names)
    ax = axes_for(ax, 7.2, 6.4)
    angle = np.pi / 2 - 2 * np.pi * np.arange(d) / d
    places = np.column_stack([np.cos(angle), np.sin(angle)])
    sure = certainty(shown.sure, level) >= 1.0
    drawn, certain, known = _edges(ax, shown, places, sure)
    _nodes(ax, shown, places, sure)
    _names(ax, shown, places)
    if not drawn:
        none = f"no sign of an interaction\nis {share(level)} sure" if known else "no interactions"
        ax.text(0, 0, none, ha="center", va="center", fontsize=10, color=GREY)
    ax.set_xlim(-1.7, 1.7)
    ax.set_ylim(-1.52, 1.2)  # with room for the legend below
    ax.set_aspect("equal", anchor="N")
    words = _words(whole, d, drawn, certain, known, level)
    tidy(ax, shown.title, subtitle=baseline_of(explanation.by_pair, words))
    ax.set_axis_off()
    _legend(ax, shown, level)
    return ax


def _edges(ax: Axes, shown: InteractionSummary, places: Array, sure: Array) -> tuple[int, int, int]:
    """Draw the edges; return how many are drawn, how many are sure, and of how many pairs."""
    i, j = np.triu_indices(len(shown.names), 1)
    values = shown.values[i, j]
    known = ~np.isnan(values)
    chosen = np.flatnonzero(known & sure[i, j] & (values != 0))
    order = chosen[largest(np.abs(values[chosen]), MOST_EDGES)] if len(chosen) else chosen
    top = _largest(values)
    for k in order[::-1]:  # the largest on top
        start, stop = places[i[k]], places[j[k]]
        far = 0.5 * float(np.hypot(*(start - stop)))  # 1 across the circle
        bend = (1.0 - INWARD * far) * (start + stop) / 2
        curve = Path([start, bend, stop], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
        width = THINNEST + (WIDEST - THINNEST) * abs(values[k]) / top
        color = BLUE if values[k] < 0 else ORANGE
        look = {"facecolor": "none", "edgecolor": color, "capstyle": "round", "zorder": 1}
        ax.add_patch(PathPatch(curve, lw=width, alpha=0.8, **look))
    return len(order), len(chosen), int(known.sum())


def _nodes(ax: Axes, shown: InteractionSummary, places: Array, sure: Array) -> None:
    main, certain = shown.values.diagonal(), sure.diagonal()
    top = _largest(main)
    for place, value, clear in zip(places, main, certain, strict=True):
        share_of_top = 0.0 if np.isnan(value) else abs(value) / top
        # area by size: the diameter goes with the root
        diameter = SMALLEST_NODE + (LARGEST_NODE - SMALLEST_NODE) * np.sqrt(share_of_top)
        color = GREY if np.isnan(value) or value == 0 else BLUE if value < 0 else ORANGE
        face = color if clear or np.isnan(value) else "white"
        ax.plot(*place, "o", ms=diameter, mfc=face, mec=color, mew=1.2, zorder=3, clip_on=False)


def _names(ax: Axes, shown: InteractionSummary, places: Array) -> None:
    size = 9 if len(places) <= 14 else 8
    for name, (x, y) in zip(shown.names, places, strict=True):
        side = "center" if abs(x) < 0.1 else "left" if x > 0 else "right"
        high = "bottom" if y > 0.95 else "top" if y < -0.95 else "center"
        ax.annotate(
            wrapped(short(name, 40), 1.5 if abs(x) > 0.5 else 3.0, size),
            (x, y),
            (17 * x, 17 * y),
            textcoords="offset points",
            ha=side,
            va=high,
            fontsize=size,
            color=INK,
            linespacing=0.95,
        )


def _words(
    whole: InteractionSummary, d: int, drawn: int, certain: int, known: int, level: float
) -> str:
    """Return which edges and features are drawn."""
    parts = [] if d == len(whole.names) else [f"{d} of {len(whole.names)} features"]
    if whole.std is not None:
        parts.append(f"{certain} of {known} pairs have a sign that is at least {share(level)} sure")
    if drawn < certain:
        parts.append(f"the {drawn} largest are drawn")
    return "; ".join(parts)


def _legend(ax: Axes, shown: InteractionSummary, level: float) -> None:
    between = shown.values[~np.eye(len(shown.names), dtype=bool)]
    size = readable(_largest(between), 2)
    lines = [
        Line2D([], [], color=ORANGE, lw=3, alpha=0.8, label="positive interaction"),
        Line2D([], [], color=BLUE, lw=3, alpha=0.8, label="negative interaction"),
        Line2D(
            [],
            [],
            color=GREY,
            lw=WIDEST,
            alpha=0.8,
            solid_capstyle="butt",
            label=f"interaction of ±{size}",
        ),
    ]
    main = shown.values.diagonal()
    if not np.isnan(main).all():
        lines.append(mark(f"main effect, up to ±{readable(_largest(main), 2)}", GREY, GREY))
        if shown.std is not None:
            lines.append(mark(f"its sign less than {share(level)} sure", "white", UNSURE))
    # Inside the axes: their place under an equal aspect is not known when a layout is made.
    columns = 3 if room(ax)[0] > 5.0 else 2
    texts = ax.legend(
        handles=lines,
        ncols=columns,
        loc="lower left",
        frameon=False,
        fontsize=9,
        borderpad=0,
        borderaxespad=0,
        labelspacing=0.25,
        columnspacing=1.0,
    ).get_texts()
    for text in texts:
        text.set_color(INK)


def _largest(values: Array) -> float:
    return float(np.nan_to_num(np.abs(values)).max(initial=0.0)) or 1.0
