"""Pictures of next measurements: bars and intervals are those of the numbers, best first."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection

from gpattr import Explainer, plots
from gpattr.exceptions import InvalidInputError
from gpattr.plots.style import BLUE
from measurements.models import CANDIDATES, ROWS, exact

mpl.use("Agg")
Z95 = 1.959963984540054


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def found(rows=ROWS, feature=0, names=None):
    candidates = CANDIDATES if names is None else pd.DataFrame(CANDIDATES, index=names)
    return Explainer(exact(), np.zeros(3)).measure_next(candidates, rows, feature)


def widths(ax, color=BLUE):
    """The lengths of the horizontal lines of a colour, from top to bottom."""
    for lines in ax.findobj(LineCollection):
        if np.allclose(lines.get_color()[0], mpl.colors.to_rgba(color)):
            return [float(np.ptp(segment[:, 0])) for segment in lines.get_segments()]
    return None


def test_one_attribution_after_each_candidate():
    told = found(ROWS[:1])
    left, right = told.plot(max_display=4)
    order = np.argsort(-told.total_reduction)[:4]
    shares = [bar.get_width() for bar in left.patches]
    np.testing.assert_allclose(
        shares, told.total_reduction[order] / told.variance.sum(), rtol=1e-12
    )
    assert [text.get_text() for text in left.get_yticklabels()] == [str(i) for i in order]
    np.testing.assert_allclose(widths(right), 2 * Z95 * told.std_after[order, 0], rtol=1e-12)
    texts = [text.get_text() for text in right.texts]
    chances = told.prob_settled()[order, 0]
    assert texts[:4] == [f"{c:.1%}" if c > 5e-4 else "< 0.1%" for c in chances]
    assert right.get_title(loc="left") == "Attribution of x0 at row 0"


@pytest.mark.parametrize("feature", [None, 0])
def test_several_attributions_after_the_best_candidate(feature):
    told = found(feature=feature)
    _, right = told.plot(max_display=5, level=0.95)
    best = told.best().positions[0]
    falls = told.reduction_by_feature[best].ravel()
    order = np.argsort(-falls, kind="stable")[:5]
    after = np.sqrt(told.variances.ravel() - falls)[order]
    np.testing.assert_allclose(widths(right), 2 * Z95 * after, rtol=1e-12)
    names = [text.get_text() for text in right.get_yticklabels()]
    d = 3 if feature is None else 1
    expected = [f"x{i % d}, row {i // d}" if d == 3 else f"row {i}" for i in order]
    assert names == expected


def test_odd_pictures():
    long = [f"a place {'far ' * 20}away, number {i} for $5 and $6" for i in range(6)]
    for told in (
        found(names=long),
        found(ROWS[:1]),
        found(np.zeros((1, 3))),
        found(np.zeros((2, 3))),
    ):
        axes = plots.measure_next(told)
        axes[0].figure.canvas.draw()
        assert axes.shape == (2,)


def test_garbage():
    told = found()
    with pytest.raises(InvalidInputError, match="^measurement: expected a gpattr.NextMeasurement"):
        plots.measure_next(told.best())
    with pytest.raises(InvalidInputError, match="^max_display: "):
        told.plot(max_display=0)
    with pytest.raises(InvalidInputError, match="^level: "):
        told.plot(level=1.5)
