"""What the pictures have in common: colours that colour-blind readers and printers keep apart, light axes, words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.text import Text

from gpattr._array import Array
from gpattr._normal import check_level
from gpattr.exceptions import InvalidIndexError, InvalidInputError

if TYPE_CHECKING:
    from gpattr.explanation import Explanation

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "0.35"  # Okabe and Ito
SERIES = (BLUE, ORANGE, GREEN, PURPLE, "#E69F00", "#56B4E9", "#000000", "#F0E442")
INK = "0.2"
DIVERGING = LinearSegmentedColormap.from_list("gpattr", [BLUE, "#f7f7f7", ORANGE])
SEQUENTIAL = "cividis"  # even in lightness, and the same for colour-blind readers


def axes_for(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes to draw on: those given, or new ones of this size in inches."""
    if ax is not None:
        if not isinstance(ax, Axes):
            raise InvalidInputError(f"ax: expected matplotlib's axes, or None, got a {type(ax).__name__}")
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def tidy(ax: Axes, title: str = "", x: str = "", y: str = "") -> Axes:
    """Name the axes and take away what carries no information."""
    ax.set_title(title, loc="left", fontsize=11)
    ax.set_xlabel(x, fontsize=10)
    ax.set_ylabel(y, fontsize=10)
    ax.tick_params(labelsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    if not 1e-3 < max(map(abs, ax.get_xlim())) < 1e6:  # a power of ten at the axis' end would stand in the way of its name
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
    for text in ax.findobj(Text):
        text.set_parse_math(False)  # pyright: ignore[reportAttributeAccessIssue]  (a name may have $ in it)
    return ax


def color_scale(ax: Axes, colors: Any, name: str, **options: Any) -> Any:
    """Return a colour bar beside the axes, named."""
    kind: dict[str, Any] = {"aspect": 40, "pad": 0.01} | options
    scale = ax.figure.colorbar(colors, ax=ax, **kind)
    scale.set_label(name, fontsize=9)
    scale.ax.yaxis.label.set_parse_math(False)
    scale.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    return scale


def one_row(ex: Explanation, row: int | None) -> Explanation:
    """Return the explanation of one row; it need not be said which where there is only one."""
    some_rows(ex)
    if row is None and len(ex) != 1:
        raise InvalidInputError(f"row: expected the position of one of {len(ex)} rows, got none")
    if row is None:
        return ex
    if not isinstance(row, (int, np.integer)) or isinstance(row, bool) or not -len(ex) <= row < len(ex):
        raise InvalidIndexError(f"row: expected the position of one of {len(ex)} rows, got {row!r}")
    return ex[[int(row)]]


def one_feature(ex: Explanation, name: str, feature: Any) -> int:
    """Return the position of a feature, the argument called ``name``, given by its name or its position."""
    d, names = ex.shape[1], ex.feature_names
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if not isinstance(feature, (int, np.integer)) or isinstance(feature, bool) or not -d <= feature < d:
        raise InvalidIndexError(f"{name}: expected one of the features {list(names)}, or its position, got {feature!r}")
    return int(feature) % d


def some_rows(ex: Explanation) -> Explanation:
    """Return an explanation that has rows; one of several outputs is asked for one of them."""
    if not all(hasattr(ex, part) for part in ("values", "feature_names", "group")):
        raise InvalidInputError(
            f"explanation: expected a gpattr Explanation (of several outputs, one: ex[name]), got a {type(ex).__name__}"
        )
    for count, what in zip(ex.shape, ("row", "feature"), strict=True):
        if not count:
            raise InvalidInputError(f"explanation: expected at least one {what}, got none")
    return ex


def largest(size: Array, max_display: int) -> Array:
    """Return the positions of the largest entries, in falling order, at most ``max_display``."""
    if isinstance(max_display, bool) or not isinstance(max_display, (int, np.integer)) or max_display < 1:
        raise InvalidInputError(f"max_display: expected an integer of 1 or more, got {max_display!r}")
    return np.argsort(-size, kind="stable")[:max_display]


def leading(ex: Explanation, size: Array, max_display: int) -> Explanation:
    """Return the features of the largest ``size`` (d,), in falling order, and the rest added up as the last one.

    Without the covariance between features nothing is known of the uncertainty of that sum: its variance is NaN then.
    """
    order = largest(size, max_display)
    if len(order) == len(size):
        return ex[:, order]
    kept = [ex.feature_names[i] for i in order[:-1]]
    rest = [name for name in ex.feature_names if name not in kept]
    name = f"{len(rest)} other features"
    if ex.var is None or ex.cov is not None or hasattr(ex, "draws"):
        return ex.group({name: rest})[:, [*kept, name]]
    known = None if ex.component_weights is not None else np.column_stack([ex.var[:, order[:-1]], np.full(len(ex), np.nan)])
    bare = replace(ex, var=None, component_var=None, component_weights=None, component_values=None)
    return replace(bare.group({name: rest})[:, [*kept, name]], var=known)


def row_title(ex: Explanation) -> str:
    """Return what the only row is called: its number, or its name."""
    name = ex.row_names[0]
    return f"Row {name}" if isinstance(name, int) else str(name)


def named(ex: Explanation) -> list[str]:
    """Return the features of the only row with their values or categories; a group has none."""
    texts = {name: f"{x:.4g}" for name, x in zip(ex.feature_names, ex.data[0], strict=True) if not np.isnan(x)}
    texts |= {name: labels[0] for name, labels in ex.labels.items()}
    return [f"{name} = {texts[name]}" if name in texts else name for name in ex.feature_names]


def certainty(ex: Explanation, level: float) -> Array:
    """Return how sure each sign is, (n, d): from 0, of ½, to 1, of ``level`` and above; 1 where nothing is known of it."""
    full = max(2.0 * check_level(level) - 1.0, 1e-9)
    return np.ones(ex.shape) if ex.var is None else np.clip(np.abs(2.0 * ex.prob_positive() - 1.0) / full, 0.0, 1.0)


def percent(share: float) -> str:
    """Return a share as per cent, never rounded up to certainty."""
    return "" if np.isnan(share) else "> 99.9 %" if share > 0.999 else f"{100 * share:.3g} %"


def number(values: Any) -> Callable[[float], str]:
    """Return a function that writes numbers of the size of these: three digits for the largest, with their sign."""
    top = float(np.max(np.abs(values), initial=0.0))
    decimals = int(np.clip(2 - np.floor(np.log10(top)), 0, 6)) if top > 0 else 2
    style = f"+.{decimals}f" if 1e-4 < top < 1e6 else "+.2e"
    return lambda value: signed(format(value, style))


def signed(text: str) -> str:
    """Return a number with a proper minus; what is zero as shown has no sign."""
    return text.replace("-", "−") if any(digit in text for digit in "123456789") else text.lstrip("+-")
