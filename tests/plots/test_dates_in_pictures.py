"""Dates are drawn by their day: along an axis, and by a colour scale, not separate colours."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import gpattr
from gpattr import plots
from gpattr.kernels import SquaredExponential
from gpattr.plots.dates import days_of
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
DAYS = RNG.integers(18_000, 19_000, size=30)
DATES = tuple(str(np.datetime64(int(day), "D")) for day in DAYS)


@pytest.fixture
def ex():
    posterior = ExactPosterior(SquaredExponential(), X, X[:, 0], noise=0.1)
    found = gpattr.Explainer(posterior, np.zeros(2), feature_names=("sold", "area"))(X)
    data = found.data.copy()
    data[:, 0] = np.nan
    return replace(found, data=data, labels={"sold": DATES})


def canvas():
    return Figure(figsize=(7, 5), layout="constrained").subplots()


def test_days_of_texts():
    np.testing.assert_array_equal(days_of(DATES), DAYS)
    np.testing.assert_allclose(days_of(("1970-01-02 06:00", "1970-01-03")), [1.25, 2.0])
    assert days_of(()) is None
    assert days_of(("2024-01-01", "unknown")) is None
    assert days_of(("2024-02-31",)) is None


def test_points_stand_at_their_day(ex):
    ax = plots.scatter(ex, "sold", ax=canvas())
    np.testing.assert_allclose(ax.collections[1].get_offsets()[:, 0], DAYS)
    ax.figure.canvas.draw()
    ticks = [text.get_text() for text in ax.get_xticklabels()]
    assert "2020" in ticks
    assert len(ticks) < 10


def test_dates_have_a_colour_scale_and_no_legend(ex):
    ax = plots.scatter(ex, "area", color="sold", ax=canvas())
    ax.figure.canvas.draw()
    ticks = [text.get_text() for text in ax.figure.axes[1].get_yticklabels()]
    assert all(days_of([tick]) is not None for tick in ticks)
    swarm = plots.beeswarm(ex, ax=canvas())
    swarm.figure.canvas.draw()
    texts = " ".join(
        text.get_text() for legend in swarm.figure.legends for text in legend.get_texts()
    )
    assert DATES[0] not in texts
