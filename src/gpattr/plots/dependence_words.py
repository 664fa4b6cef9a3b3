"""Words of the pictures of partial dependence: titles, averaged rows, drawn uncertainty."""

from __future__ import annotations

from matplotlib.axes import Axes

from gpattr.distributions import Point
from gpattr.explanation.dependence import INDIVIDUAL, Dependence
from gpattr.explanation.feature_grid import CATEGORY, FeatureGrid
from gpattr.plots.style import KNOWN, tidy
from gpattr.plots.words import LONGEST, comma, count_of, share, short

FEW_ROWS = 5  # individual curves that have a colour and a band each
MOST_ROWS = 1000  # individual curves that are drawn


def uncertain(dependence: Dependence) -> bool:
    """Return whether there are bands or intervals to draw."""
    return dependence.std is not None and not isinstance(dependence.distribution, Point)


def value_words(dependence: Dependence) -> str:
    """Return the name of the values: "predicted quality", "slope of the predicted quality"."""
    if dependence.derivative:
        return f"slope of the {dependence.quantity}"
    return f"centred {dependence.quantity}" if dependence.centred else dependence.quantity


def title_words(dependence: Dependence) -> str:
    """Return the title of a picture."""
    longest = LONGEST if dependence.surface else 60
    names = " and ".join(short(name, longest) for name in dependence.features)
    if dependence.kind == INDIVIDUAL:
        return f"Individual {'slopes along' if dependence.derivative else 'dependence on'} {names}"
    slope = "Slope of the partial" if dependence.derivative else "Partial"
    return f"{slope} dependence on {names}"


def rows_words(dependence: Dependence) -> str:
    """Return the rows that are averaged, or whose curves are drawn, in words."""
    rows = dependence.n_background
    if dependence.kind == INDIVIDUAL:
        return count_of(min(rows, MOST_ROWS), rows) + (" and their mean" if rows > 1 else "")
    return "for a single row" if rows == 1 else f"average over {rows:,} rows"


def doubt_words(dependence: Dependence, level: float) -> str:
    """Return the drawn uncertainty in words: "with a 95% band"; "" for nothing."""
    if isinstance(dependence.distribution, Point):
        return KNOWN
    individual = dependence.kind == INDIVIDUAL
    if dependence.std is None or (individual and dependence.n_background > FEW_ROWS):
        return ""
    separate = all(axis.kind == CATEGORY or len(axis) == 1 for axis in dependence.axes)
    what = "interval" if separate else "band"
    several = dependence.surface or (individual and dependence.n_background > 1)
    number = share(level)
    if several or (separate and len(dependence.axes[0]) > 1):
        return f"with {number} {what}s"
    article = "an" if number.startswith(("8", "11", "18")) else "a"  # eighty, eleven, eighteen
    return f"with {article} {number} {what}"


def titled(ax: Axes, dependence: Dependence, axis: FeatureGrid, level: float) -> None:
    """Write the title of curves, and the names of the axes."""
    what = comma(rows_words(dependence), doubt_words(dependence, level))
    tidy(ax, title_words(dependence), short(axis.name, 60), value_words(dependence), subtitle=what)
