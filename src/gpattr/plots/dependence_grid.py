"""Grid of partial dependences: one panel a feature on a common scale, the largest effect first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.text import Text

from gpattr._core.normal import check_level
from gpattr._core.validation import check_count
from gpattr.exceptions import InvalidInputError
from gpattr.explainer import Explainer
from gpattr.explanation.dependence import INDIVIDUAL, Dependence
from gpattr.explanation.grouping import feature_positions
from gpattr.plots.dependence_curves import draw_panel
from gpattr.plots.dependence_words import doubt_words, rows_words, uncertain, value_words
from gpattr.plots.feature_axis import make_room
from gpattr.plots.legends import columns_within
from gpattr.plots.style import largest, tidy
from gpattr.plots.words import comma, not_shown, share, short, wrapped

MOST_COLUMNS = 10
WIDTH, HEIGHT = 2.7, 2.2  # inches of a panel


def dependence_grid(
    dependences: Explainer | Sequence[Dependence],
    features: Sequence[str | int] | None = None,
    *,
    background: Any = None,
    grid: int | None = None,
    centred: bool = True,
    max_display: int = 12,
    columns: int = 3,
    level: float = 0.95,
) -> np.ndarray:
    """Draw the dependence on each feature in a panel of its own, on a common vertical axis.

    ``dependences`` is an explainer, whose ``dependence(feature, grid, background)`` is computed for
    ``features``, by default all, and centred so that effects can be compared; or a list of what
    that returned. The features with the largest effect come first: those whose mean curve has the
    largest range. At most ``max_display`` are drawn, in a new figure with ``columns`` panels in a
    line. Returns the axes of the panels, (n,); ``axes[0].figure`` is the figure.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> axes = gpattr.plots.dependence_grid(explainer, grid=20)
    >>> axes[0].figure.savefig("curves.png")
    """
    check_level(level)
    check_count("columns", columns, most=MOST_COLUMNS)
    check_count("max_display", max_display)
    if isinstance(dependences, Explainer):
        found = _computed(dependences, features, background, grid, centred)
    else:
        given = {"features": features, "background": background, "grid": grid}
        unused = [name for name, value in given.items() if value is not None]
        if unused or centred is not True:
            raise InvalidInputError(
                f"{(unused or ['centred'])[0]}: it is for an explainer; dependences that are given"
                " have theirs"
            )
        found = _checked(dependences)
    order = largest(np.array([_range(part) for part in found]), max_display)
    shown = [found[i] for i in order]
    axes = _panels(len(shown), columns)
    handles: dict[str, Artist] = {}
    for ax, dependence in zip(axes, shown, strict=True):
        for handle in draw_panel(ax, dependence, level):
            handles.setdefault(str(handle.get_label()), handle)
        tidy(ax, "", short(dependence.features[0], 60))
    make_room(axes[0])
    _words(axes, found, shown, level)
    _legend(axes[0].figure, list(handles.values()))
    return axes


def _computed(
    explainer: Explainer, features: Any, background: Any, grid: Any, centred: bool
) -> list[Dependence]:
    rows = explainer.task.reader
    names = rows.names(background) if rows.encoder is None else rows.encoder.names
    if grid is not None:
        check_count("grid", grid)
    chosen = range(len(names)) if features is None else feature_positions(features, names)
    if not len(chosen):
        raise InvalidInputError("features: expected at least one feature, got none")
    about: dict[str, Any] = {"centred": centred, "uncertainty": "std"}
    return [explainer.dependence(int(i), grid, background, **about) for i in chosen]


def _checked(dependences: Any) -> list[Dependence]:
    """Return dependences whose values can be compared."""
    listed = isinstance(dependences, (Sequence, np.ndarray)) and np.ndim(dependences) == 1
    found = list(dependences) if listed else []
    if not found or not all(isinstance(part, Dependence) for part in found):
        raise InvalidInputError(
            "dependences: expected an explainer, or a list of gpattr.Dependence, got"
            f" {dependences!r}"
        )
    for part in found:
        if part.surface:
            raise InvalidInputError(
                f"dependences: expected one feature each, got the pair {list(part.features)}"
            )
    if len({value_words(part) for part in found}) > 1:
        different = sorted({value_words(part) for part in found})
        raise InvalidInputError(f"dependences: expected one quantity, got {different}")
    return found


def _range(dependence: Dependence) -> float:
    """Return by how much the mean curve changes, inside the data if it lies there at all."""
    values = dependence.values
    values = values.mean(axis=0) if dependence.kind == INDIVIDUAL else values
    inside = ~dependence.axes[0].outside
    return float(np.ptp(values[inside] if inside.any() else values))


def _panels(count: int, columns: int) -> np.ndarray:
    import matplotlib.pyplot as plt

    columns = min(columns, count)
    lines = -(-count // columns)
    size = (max(WIDTH * columns + 0.6, 5.0), HEIGHT * lines + 1.0)
    figure = plt.figure(figsize=size, layout="constrained")
    axes = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    for ax in axes[count:]:
        ax.remove()
    return axes[:count]


def _words(
    axes: np.ndarray, found: list[Dependence], shown: list[Dependence], level: float
) -> None:
    """Write the title of all panels, their common caption below it, and the values' name."""
    figure: Figure = axes[0].figure
    first, width = shown[0], figure.get_figwidth() - 0.2
    whose = "Individual" if first.kind == INDIVIDUAL else "Partial"
    title = wrapped(f"{whose} dependence of the {first.quantity}", width, 12)
    rows = {rows_words(part) for part in shown}
    bands = any(uncertain(part) and doubt_words(part, level) for part in shown)
    notes = comma(
        rows.pop() if len(rows) == 1 else "",
        f"with {share(level)} bands" if bands else "",
    )
    features = f"feature{'s' * (len(found) - len(shown) > 1)} with smaller effects"
    hidden = not_shown(len(shown), len(found), features)
    notes += f"; {hidden}" if hidden else ""
    notes = wrapped(notes, width, 9)
    # The title keeps the lines below it free for the notes.
    below = "\n " * (notes.count("\n") + 1)
    above = figure.suptitle(title + below, x=0.1 / width, ha="left", fontsize=12)
    place: dict[str, Any] = {"xycoords": above, "va": "bottom"}
    axes[0].annotate(notes, (0, 0), fontsize=9, color="0.4", **place).set_in_layout(False)
    figure.supylabel(wrapped(value_words(first), figure.get_figheight() - 1.0, 10), fontsize=10)
    for text in figure.findobj(Text):
        # A name may have $ in it.
        text.set_parse_math(False)  # pyright: ignore[reportAttributeAccessIssue]


def _legend(figure: Figure, handles: list[Artist]) -> None:
    """Add a legend under all panels."""
    columns = columns_within(handles, figure.get_figwidth() - 0.2)
    look: dict[str, Any] = {"frameon": False, "fontsize": 9, "handlelength": 1}
    figure.legend(
        handles=handles,
        loc="outside lower left",
        ncols=columns,
        **look,
    )
