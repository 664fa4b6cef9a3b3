"""Attributions of one row, or the importance of features over many."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from gpattr.explanation.explanation import Explanation
from gpattr.explanation.importance import Importance
from gpattr.plots.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    axes_for,
    error_bars,
    largest,
    leading,
    one_row,
    some_rows,
    tidy,
    uncertain,
    uncertainty_words,
)
from gpattr.plots.words import (
    baseline_of,
    baseline_text,
    comma,
    count_of,
    named,
    prediction_title,
    share,
    short,
)


def bar(
    explanation: Explanation | Importance,
    row: int | None = None,
    *,
    max_display: int = 10,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw bars with credible intervals: of one row, or of ``explainer.importance(X)``.

    Of an explanation with several rows the bars are mean |attribution|, without an interval: rows
    share one unknown function, and only the explainer knows their joint distribution.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ex = explainer([[1.0, 0.0], [1.0, -2.0]])
    >>> ax = gpattr.plots.bar(ex, row=1)
    >>> gpattr.plots.bar(explainer.importance(X), ax=ax).figure.savefig("bars.png")
    """
    if isinstance(explanation, Importance):
        return _importance(explanation, max_display, ax, level)
    if row is None and len(some_rows(explanation)) > 1:
        ex = explanation
        size = np.abs(ex.values).mean(axis=0)
        order = largest(size, max_display)
        ax = _bars(ax, size[order], None, None, [short(ex.feature_names[i]) for i in order], GREY)
        title = f"Mean |attribution| of {count_of(len(ex), len(ex))}"
        return tidy(ax, title, f"mean |attribution| to the {ex.quantity}", subtitle=baseline_of(ex))
    ex = one_row(explanation, row)
    ex = leading(ex, np.abs(ex.values[0]), max_display)
    values = ex.values[0]
    low, high = (end[0] for end in ex.interval(level)) if uncertain(ex) else (None, None)
    ax = _bars(ax, values, low, high, named(ex), np.where(values < 0, BLUE, ORANGE))
    ax.axvline(0.0, color=INK, lw=0.8)
    interval = uncertainty_words(ex, f"with {share(level)} intervals")
    label = comma(f"attribution to the {ex.quantity}", interval)
    return tidy(ax, prediction_title(ex), label, subtitle=baseline_of(ex))


def _importance(importance: Importance, max_display: int, ax: Axes | None, level: float) -> Axes:
    order = largest(importance.values, max_display)
    low, high = (end[order] for end in importance.interval(level))
    names = [short(importance.feature_names[i]) for i in order]
    ax = _bars(ax, importance.values[order], low, high, names, BLUE)
    notes = [note for note in (importance.note, importance.groups_note) if note]
    note = "".join(f"\n({short(text, 80)})" for text in notes)
    title = f"Importance over {count_of(importance.n_rows, importance.n_rows)}"
    label = (
        f"expected {importance.measure} to the {importance.quantity}, with {share(level)}"
        f" intervals{note}"
    )
    compared = baseline_text(importance.baseline_name, importance.attribution)
    return tidy(ax, title, label, subtitle=compared)


def _bars(ax: Axes | None, values, low, high, names: list[str], color) -> Axes:
    places = np.arange(len(values))[::-1]
    ax = axes_for(ax, 7.0, 1.4 + 0.38 * len(values))
    ax.barh(places, values, height=0.62, color=color, alpha=0.85)
    if low is not None:
        error_bars(ax, values, places, low, high)
    ax.set_yticks(places, names)
    return ax
