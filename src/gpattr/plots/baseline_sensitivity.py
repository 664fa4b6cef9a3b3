"""Attributions of one row over a set of baselines."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpattr._core.validation import check_count
from gpattr.exceptions import InvalidInputError
from gpattr.explanation.baseline_sensitivity import BaselineSensitivity
from gpattr.plots.legends import legend
from gpattr.plots.style import BLUE, INK, ORANGE, axes_for, check_kind, largest, lines_of, tidy
from gpattr.plots.words import baseline_text, not_shown, short


def baseline_sensitivity(
    sensitivity: BaselineSensitivity,
    row: int | None = None,
    *,
    max_display: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw the range of each attribution of one row over the baselines, the largest value first.

    Thin lines reach from the lowest to the highest, thick ones are one standard deviation about
    the mean over baselines; points are the values at the own baseline.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ax = gpattr.plots.baseline_sensitivity(explainer.baseline_sensitivity(X[:1]), row=0)
    """
    check_kind("sensitivity", sensitivity, BaselineSensitivity, "a gpattr BaselineSensitivity")
    at = _position(row, len(sensitivity.values))
    order = largest(np.abs(sensitivity.values[at]), max_display)
    ax = axes_for(ax, 7.0, 1.9 + 0.4 * len(order))
    share = sensitivity.same_sign[at, order]
    names = [short(sensitivity.feature_names[i], 26) for i in order]
    places = lines_of(ax, [f"{n}  {s:.0%}" for n, s in zip(names, share, strict=True)])
    colors = [BLUE if holds else ORANGE for holds in sensitivity.sign_holds[at, order]]
    mean, std = sensitivity.mean[at, order], sensitivity.std[at, order]
    ax.hlines(places, sensitivity.lowest[at, order], sensitivity.highest[at, order], colors, lw=1.2)
    ax.hlines(places, mean - std, mean + std, colors, lw=6, alpha=0.5)
    ax.scatter(sensitivity.values[at, order], places, c=INK, s=30, zorder=3)
    ax.axvline(0.0, color=INK, lw=0.8)
    own = baseline_text(sensitivity.baseline_name, sensitivity.attribution)
    title = f"{sensitivity.n_baselines} baselines, row {sensitivity.row_names[at]}"
    notes = [own, not_shown(len(order), sensitivity.shape[1])]
    tidy(
        ax,
        title,
        f"attribution to the {sensitivity.quantity}; beside names: share with the same sign",
        subtitle="; ".join(filter(None, notes)),
    )
    point = Line2D([], [], ls="", marker="o", color=INK, label="own baseline")
    held = Patch(color=BLUE, label="sign holds")
    lost = Patch(color=ORANGE, label="sign does not hold")
    legend(ax, [point, held, lost], 3)
    return ax


def _position(row: int | None, n: int) -> int:
    if row is None and n != 1:
        raise InvalidInputError(f"row: expected the position of one of {n} rows, got none")
    return 0 if row is None else check_count("row", row, least=0, most=n - 1)
