"""Style that the pictures share: colours for colour-blind readers and printers, light axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.gridspec import SubplotSpec
from matplotlib.text import Text
from matplotlib.ticker import AutoLocator, Formatter, FuncFormatter, MaxNLocator, ScalarFormatter

from gpattr._core.array import Array
from gpattr._core.normal import check_level
from gpattr._core.readable_numbers import readable, readable_ticks
from gpattr.distributions import Draws, Gaussian, Point
from gpattr.exceptions import (
    InvalidIndexError,
    InvalidInputError,
    MissingUncertaintyError,
    SeveralOutputsError,
)
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.multi_output import MultiOutputExplanation
from gpattr.plots.words import LETTER, wrapped

BLUE, ORANGE, GREEN, PURPLE, GREY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "0.35",
)  # Okabe and Ito
SERIES = (BLUE, ORANGE, GREEN, PURPLE, "#E69F00", "#56B4E9", "#000000", "#F0E442")
INK, UNSURE = "0.2", "0.62"
DIVERGING = LinearSegmentedColormap.from_list("gpattr", [BLUE, "#f7f7f7", ORANGE])
KNOWN = "known without uncertainty"
SEQUENTIAL = "cividis"  # even in lightness, and the same for colour-blind readers


class ReadableTicks(Formatter):
    """Ticks with numbers as people write them: 150,000 and 2024."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        """Return the text at one tick."""
        return readable_ticks([value])[0]

    def format_ticks(self, values: list[float]) -> list[str]:
        """Return the texts at all ticks."""
        return readable_ticks(values)


def check_kind(name: str, value: Any, kind: type, what: str) -> None:
    """Raise `InvalidInputError` unless the argument ``name`` is of this kind, called ``what``."""
    if not isinstance(value, kind):
        raise InvalidInputError(f"{name}: expected {what}, got a {type(value).__name__}")


def axes_for(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes to draw on: the given ones, or new ones of this size in inches."""
    if ax is not None:
        if not isinstance(ax, Axes):
            raise InvalidInputError(
                f"ax: expected matplotlib's axes, or None, got a {type(ax).__name__}"
            )
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def tidy(ax: Axes, title: str = "", x: str = "", y: str = "", *, subtitle: str = "") -> Axes:
    """Name the axes and remove decoration without information; long texts are broken into lines."""
    width, height = room(ax)
    subtitle = wrapped(subtitle, width, 9)
    title = wrapped(title, width, 11)
    ax.set_title(
        title, loc="left", fontsize=11, pad=6 + 12 * (subtitle.count("\n") + 1 if subtitle else 0)
    )
    if subtitle:
        place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
        below = ax.annotate(subtitle, (0, 1), (0, 5), fontsize=9, color="0.4", **place)
        below.set_in_layout(
            False
        )  # the title keeps its place free, and its width must not make the axes narrow
    ax.set_xlabel(wrapped(x, width, 10), fontsize=10)
    ax.set_ylabel(wrapped(y, height, 10), fontsize=10)
    ax.tick_params(labelsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    for axis in (ax.xaxis, ax.yaxis):
        if isinstance(axis.get_major_formatter(), ScalarFormatter):
            axis.set_major_formatter(ReadableTicks())
    if isinstance(ax.xaxis.get_major_locator(), AutoLocator):
        longest = max(len(readable(end)) for end in ax.get_xlim())
        ax.xaxis.set_major_locator(
            MaxNLocator(
                int(np.clip(width / (0.3 + LETTER * 9 * longest), 2, 8)), steps=[1, 2, 2.5, 5, 10]
            )
        )
    for text in ax.findobj(Text):
        # A name may have $ in it.
        text.set_parse_math(False)  # pyright: ignore[reportAttributeAccessIssue]
    return ax


def room(ax: Axes) -> tuple[float, float]:
    """Return the width and height in inches, about, of axes beside the names at their ticks."""
    box = ax.figure.bbox
    whole = np.array([box.width, box.height]) / ax.figure.dpi
    spec = ax.get_subplotspec()
    if spec is None:
        place = ax.get_position()
        width, height = whole * [place.width, place.height]
    else:
        part = _part(spec)
        outer = spec.get_topmost_subplotspec()
        if outer != spec:
            part = part * _part(outer)
        width, height = whole * part - [0.3, 0.8]
    return max(width - names_width(ax), 1.0), max(height, 1.0)


def _part(spec: SubplotSpec) -> Array:
    """Return which part of the width and the height of its grid a place takes."""
    rows, columns = spec.get_gridspec().get_geometry()
    return np.array([len(spec.colspan) / columns, len(spec.rowspan) / rows])


def names_width(ax: Axes) -> float:
    """Return the width in inches, about, of the names at the left of axes."""
    named = isinstance(ax.yaxis.get_major_formatter(), FuncFormatter)
    return (
        9
        * LETTER
        * (
            max((len(label.get_text()) for label in ax.get_yticklabels()), default=0)
            if named
            else 8
        )
    )


def color_scale(ax: Axes, colors: Any, name: str, **options: Any) -> Any:
    """Return a colour bar beside the axes, named."""
    kind: dict[str, Any] = {"aspect": 40, "pad": 0.01, "format": ReadableTicks()} | options
    scale = ax.figure.colorbar(colors, ax=ax, **kind)
    scale.set_label(wrapped(name, room(ax)[1], 9), fontsize=9)
    scale.ax.tick_params(labelsize=9)
    scale.ax.yaxis.label.set_parse_math(False)
    scale.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    return scale


def lines_of(ax: Axes, names: Sequence[str]) -> Array:
    """Name the lines of a picture, from top to bottom, and return their places."""
    places = np.arange(len(names))[::-1].astype(float)
    ax.set_yticks(places, names)
    ax.set_ylim(-0.6, len(names) - 0.4)
    return places


def error_bars(
    ax: Axes, x: Array, y: Array, low: Array, high: Array, *, upward: bool = False, **look: Any
) -> None:
    """Draw intervals around points, across or upward; an expectation may lie outside its own."""
    values = y if upward else x
    spread = np.maximum([values - low, high - values], 0.0)
    options: dict[str, Any] = {"ecolor": INK, "capsize": 3, "lw": 1.2} | look
    ax.errorbar(x, y, fmt="none", **{"yerr" if upward else "xerr": spread}, **options)


def sampled(ex: Explanation, most: int) -> Explanation:
    """Return a random sample of at most ``most`` rows, always the same."""
    return (
        ex if len(ex) <= most else ex[np.sort(np.random.default_rng(0).permutation(len(ex))[:most])]
    )


def one_row(ex: Explanation, row: int | None) -> Explanation:
    """Return the explanation of one row; ``row`` is not needed where there is only one."""
    some_rows(ex)
    if row is None and len(ex) != 1:
        raise InvalidInputError(f"row: expected the position of one of {len(ex)} rows, got none")
    if row is None:
        return ex
    if (
        not isinstance(row, (int, np.integer))
        or isinstance(row, bool)
        or not -len(ex) <= row < len(ex)
    ):
        raise InvalidIndexError(f"row: expected the position of one of {len(ex)} rows, got {row!r}")
    return ex[[int(row)]]


def one_feature(ex: Explanation, name: str, feature: Any) -> int:
    """Return the position of a feature, the argument ``name``, given by name or position."""
    d, names = ex.shape[1], ex.feature_names
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if (
        not isinstance(feature, (int, np.integer))
        or isinstance(feature, bool)
        or not -d <= feature < d
    ):
        raise InvalidIndexError(
            f"{name}: expected one of the features {list(names)}, or its position, got {feature!r}"
        )
    return int(feature) % d


def some_rows(ex: Any) -> Explanation:
    """Return an explanation that has rows and features; of several outputs one must be chosen."""
    if isinstance(ex, MultiOutputExplanation):
        outputs = ex.output_names
        raise SeveralOutputsError(
            f"explanation: a picture shows one output, ex[{outputs[0]!r}]; the outputs are"
            f" {list(outputs)}"
        )
    if not isinstance(ex, Explanation):
        raise InvalidInputError(
            "explanation: expected a gpattr Explanation (of several outputs, one: ex[name]), got a"
            f" {type(ex).__name__}"
        )
    ex.require_features("explanation")
    for count, what in zip(ex.shape, ("row", "feature"), strict=True):
        if not count:
            raise InvalidInputError(f"explanation: expected at least one {what}, got none")
    return ex


def largest(size: Array, max_display: int) -> Array:
    """Return the positions of the largest entries, in falling order, at most ``max_display``."""
    if (
        isinstance(max_display, bool)
        or not isinstance(max_display, (int, np.integer))
        or max_display < 1
    ):
        raise InvalidInputError(
            f"max_display: expected an integer of 1 or more, got {max_display!r}"
        )
    return np.argsort(-size, kind="stable")[:max_display]


def leading(ex: Explanation, size: Array, max_display: int) -> Explanation:
    """Return the features of the largest ``size`` (d,), in falling order, and the sum of the rest.

    Without the covariance between features the variance of that sum is unknown: it is NaN then.
    """
    order = largest(size, max_display)
    if len(order) == len(size):
        return ex[:, order]
    kept = [ex.feature_names[i] for i in order[:-1]]
    rest = [name for name in ex.feature_names if name not in kept]
    name = f"{len(rest)} other features"
    try:
        return ex.group({name: rest})[:, [*kept, name]]
    except MissingUncertaintyError:
        bare = replace(ex, distribution=Gaussian(ex.distribution.mean))
        bare = bare.group({name: rest})[:, [*kept, name]]
        return replace(bare, distribution=_with_sum(ex, bare.values, order[:-1]))


def _with_sum(ex: Explanation, means: Array, kept: Array) -> Gaussian | Draws:
    """Return the distribution of some features and the others' sum, without covariances."""
    known = ex.distribution
    if isinstance(known, Draws):
        rest = np.delete(known.draws, kept, axis=2).sum(axis=2, keepdims=True)
        return Draws(np.concatenate([known.draws[:, :, kept], rest], axis=2), means)
    if not isinstance(known, Gaussian):
        return Gaussian(means)
    return Gaussian(means, np.column_stack([known.need("var")[:, kept], np.full(len(ex), np.nan)]))


def uncertain(ex: Explanation) -> bool:
    """Return whether there are intervals to draw."""
    return ex.var is not None and not isinstance(ex.distribution, Point)


def uncertainty_words(ex: Explanation, drawn: str) -> str:
    """Return the drawn uncertainty in words, or that there is none; "" where it is not known."""
    if isinstance(ex.distribution, Point):
        return KNOWN
    return "" if ex.var is None else drawn


def sure_of_sign(ex: Explanation, level: float) -> Array:
    """Return whether each sign is certain to ``level`` or more, (n, d).

    All are where nothing is known about it.
    """
    check_level(level)
    if not uncertain(ex):
        return np.ones(ex.shape, dtype=bool)
    positive = ex.prob_positive()
    return np.maximum(positive, 1.0 - positive) >= level


def certainty(ex: Explanation, level: float) -> Array:
    """Return how certain each sign is, (n, d): from 0, of ½, to 1, of ``level`` and above.

    It is 1 where nothing is known about it.
    """
    full = max(2.0 * check_level(level) - 1.0, 1e-9)
    if not uncertain(ex):
        return np.ones(ex.shape)
    return np.clip(np.abs(2.0 * ex.prob_positive() - 1.0) / full, 0.0, 1.0)
