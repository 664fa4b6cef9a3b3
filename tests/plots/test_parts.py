"""The picture of what comes through the mean and what through the uncertainty."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from gpattr import Explainer, plots
from gpattr import quantities as q
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior
from gpattr.report import write_report

X = np.random.default_rng(0).normal(size=(20, 4))
MODEL = ExactPosterior(SquaredExponential(2.0), X, X[:, 0] * X[:, 1], noise=0.1)


def test_bars_are_the_parts_and_lines_their_sums():
    ex = Explainer(MODEL, quantity=q.UpperConfidenceBound(2.0))(X[:2])
    ax = plots.parts(ex, 1)
    widths = [patch.get_width() for patch in ax.patches]
    order = np.argsort(-sum(np.abs(part.values[1]) for part in ex.parts.values()))
    expected = [ex.parts[name].values[1][order] for name in ("exploit", "explore")]
    np.testing.assert_allclose(widths, np.concatenate(expected), rtol=1e-12)
    lines = [segment[0, 0] for segment in ax.collections[0].get_segments()]
    np.testing.assert_allclose(lines, ex.values[1][order], rtol=1e-12)
    assert "without uncertainty" in ax.get_xlabel()
    assert ex.plot.parts(0, max_display=2).get_title(loc="left")
    plt.close("all")


def test_what_has_no_parts_is_refused():
    ex = Explainer(MODEL)(X[:1])
    with pytest.raises(InvalidInputError, match="parts exploit and explore"):
        plots.parts(ex)


def test_the_report_says_that_numbers_are_known(tmp_path):
    ex = Explainer(MODEL, quantity=q.StandardDeviation(), target_name="yield")(X[:3])
    write_report(tmp_path / "report.html", ex)
    page = (tmp_path / "report.html").read_text()
    assert "Standard deviation of the predicted yield: a property of the model" in page
    assert '"uncertain": false' in page
