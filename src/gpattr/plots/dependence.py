"""Partial dependence: a curve with its band, categories with intervals, or a surface."""

from __future__ import annotations

from matplotlib.axes import Axes

from gpattr._core.array import Array
from gpattr._core.normal import check_level
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import check_count
from gpattr.exceptions import InvalidInputError
from gpattr.explanation.dependence import INDIVIDUAL, Dependence
from gpattr.explanation.feature_grid import CATEGORY
from gpattr.plots.dependence_curves import dependence_pair, draw_panel, paired
from gpattr.plots.dependence_surface import dependence_matrix, dependence_surface
from gpattr.plots.dependence_words import FEW_ROWS, titled
from gpattr.plots.feature_axis import WIDEST, make_room, width_for
from gpattr.plots.legends import legend_across
from gpattr.plots.style import axes_for, check_kind

MOST_DRAWS = 1000


def dependence(
    dependence: Dependence,
    *,
    ax: Axes | None = None,
    level: float = 0.95,
    draws: int = 0,
    random_state: RandomLike = 0,
) -> Axes:
    """Draw ``explainer.dependence(...)`` with its uncertainty, and where the data are.

    A curve has a credible band, categories have intervals; ``draws`` adds thin curves drawn from
    the posterior. The grey strip under them is the distribution of the feature in the background.
    Lines are dashed and the ground is hatched outside the data. Individual curves are thin, with
    their mean; up to five rows have bands.

    Two numbers or dates make a surface, with its standard deviation beside it: the axes are divided
    in two, and the surface's are returned. If one of the two features has up to six categories,
    each has a curve; categories of both make a matrix with numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ax = gpattr.plots.dependence(explainer.dependence("x1", grid=20), draws=3)
    """
    check_kind("dependence", dependence, Dependence, "gpattr.Dependence")
    check_level(level)
    sample = _drawn(dependence, draws, random_state)
    if dependence.surface:
        return _of_two(dependence, ax, level, sample)
    axis = dependence.axes[0]
    ax = axes_for(ax, width_for(axis, 7.0), 4.4)
    handles = draw_panel(ax, dependence, level, sample)
    make_room(ax)
    titled(ax, dependence, axis, level)
    legend_across(ax, handles)
    return ax


def _drawn(dependence: Dependence, draws: int, random_state: RandomLike) -> Array | None:
    """Return the draws of curves, where these have draws; None for none."""
    check_count("draws", draws, least=0, most=MOST_DRAWS)
    if not draws:
        return None
    if dependence.surface and not paired(dependence):
        raise InvalidInputError(f"draws: expected 0 for a surface, got {draws}")
    if dependence.kind == INDIVIDUAL and dependence.n_background > FEW_ROWS:
        raise InvalidInputError(
            f"draws: expected 0 for more than {FEW_ROWS} individual curves, got {draws}"
        )
    return dependence.sample(draws, random_state)


def _of_two(dependence: Dependence, ax: Axes | None, level: float, sample: Array | None) -> Axes:
    if paired(dependence):
        return dependence_pair(dependence, ax, level, sample)
    if all(axis.kind == CATEGORY and len(axis) <= WIDEST for axis in dependence.axes):
        return dependence_matrix(dependence, ax)
    return dependence_surface(dependence, ax)
