"""Every picture: what it shows is what the explanation says, it looks as it did, and odd explanations do not break it.

``GPATTR_UPDATE_PICTURES=1 pytest tests/plots`` writes the pictures anew, to be looked at.
"""

import os
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images

import gpattr
from gpattr import Explainer, GPRegressor, plots
from gpattr.exceptions import InvalidIndexError, InvalidInputError, MissingUncertaintyError, UnsupportedModelError
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior, MixturePosterior

PICTURES = Path(__file__).parent / "pictures"
TOLERANCE = 6.0  # root mean square of the difference, of 255: other versions of fonts pass, another picture does not
NAMES = ["alcohol", "acidity", "sugar ($/kg)", "pH", "sulphates", "chlorides"]
ONE_ROW = ("waterfall", "bar", "covariance", "density", "ranks")
MANY_ROWS = ("beeswarm", "heatmap", "bar")


@pytest.fixture(scope="module")
def explainer():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 6)) * [1, 2, 0.5, 1, 3, 1] + [10, 3, 1, 3, 0, 0], columns=NAMES)
    y = X["alcohol"] - 0.5 * X["acidity"] + np.sin(X["pH"]) * X["sugar ($/kg)"] + 0.2 * rng.normal(size=60)
    scales = X.std().to_numpy() * [2, 2, 1.5, 2, 6, 8]
    return Explainer(ExactPosterior(SquaredExponential(scales, 4.0), X, y, noise=0.1))


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    return pd.DataFrame(rng.normal(size=(40, 6)) * [1, 2, 0.5, 1, 3, 1] + [10, 3, 1, 3, 0, 0], columns=NAMES)


@pytest.fixture(scope="module")
def ex(explainer, rows):
    return explainer(rows)


def canvas(width=7.0, height=4.5):
    return Figure(figsize=(width, height), layout="constrained").subplots()


DRAWN = {
    "waterfall": lambda explainer, ex, ax: plots.waterfall(ex, 2, max_display=5, ax=ax),
    "bar": lambda explainer, ex, ax: plots.bar(ex, 2, ax=ax),
    "importance": lambda explainer, ex, ax: plots.bar(explainer.importance(ex.data[:20], n_samples=500), ax=ax),
    "beeswarm": lambda explainer, ex, ax: plots.beeswarm(ex, ax=ax),
    "scatter": lambda explainer, ex, ax: plots.scatter(ex, "sugar ($/kg)", color="pH", ax=ax),
    "heatmap": lambda explainer, ex, ax: plots.heatmap(ex, ax=ax),
    "covariance": lambda explainer, ex, ax: plots.covariance(ex, 2, ax=ax),
    "path": lambda explainer, ex, ax: plots.path(explainer.along(ex.data[2]), ax=ax),
    "density": lambda explainer, ex, ax: plots.density(ex, 2, features=["alcohol", "pH", "acidity"], ax=ax),
    "ranks": lambda explainer, ex, ax: plots.ranks(ex, 2, ax=ax),
    "training": lambda explainer, ex, ax: plots.training(explainer.training_contributions(ex.data[2], "alcohol"), ax=ax),
}


@pytest.mark.parametrize("name", DRAWN)
def test_it_looks_as_it_did(name, explainer, ex, tmp_path):
    with mpl.rc_context(mpl.rcParamsDefault):
        ax = DRAWN[name](explainer, ex, canvas())
        ax.figure.savefig(tmp_path / f"{name}.png", dpi=60)
    if os.environ.get("GPATTR_UPDATE_PICTURES"):
        (PICTURES / f"{name}.png").write_bytes((tmp_path / f"{name}.png").read_bytes())
    difference = compare_images(str(PICTURES / f"{name}.png"), str(tmp_path / f"{name}.png"), TOLERANCE)
    assert difference is None, difference


def widths(ax):
    return np.array([patch.get_width() for patch in ax.patches])


def test_waterfall_goes_from_the_baseline_to_the_prediction(ex):
    ax = plots.waterfall(ex, 2, ax=canvas())
    order = np.argsort(-np.abs(ex.values[2]))
    np.testing.assert_allclose(widths(ax), ex.values[2, order])
    bars = sorted((patch.get_y(), patch.get_x(), patch.get_width()) for patch in ax.patches)
    position = ex.base_values[2]
    for _, left, width in bars:
        assert left == pytest.approx(position, abs=1e-9)
        position += width
    assert position == pytest.approx(ex.predictions[2], abs=1e-9)
    low, high = ex[2].interval(0.8)
    ax = plots.waterfall(ex, 2, level=0.8, ax=canvas())
    segments = np.array([line.get_segments()[i] for line in ax.collections for i in range(6)])[:, :, 0]
    np.testing.assert_allclose(np.ptp(segments, axis=1), (high - low)[0, order], rtol=1e-9)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels[0] == f"{ex.feature_names[order[0]]} = {ex.data[2, order[0]]:.4g}"


def test_the_rest_is_added_up_with_its_covariance(ex):
    ax = plots.waterfall(ex, 2, max_display=3, ax=canvas())
    order = np.argsort(-np.abs(ex.values[2]))
    rest = ex[2].group({"rest": order[2:].tolist()})
    np.testing.assert_allclose(widths(ax)[2], rest.values[0, rest.feature_names.index("rest")])
    assert [text.get_text() for text in ax.get_yticklabels()][2] == "4 other features"
    short = replace(ex, cov=None)
    np.testing.assert_allclose(widths(plots.waterfall(short, 2, max_display=3, ax=canvas())), widths(ax))


def test_bars(explainer, ex):
    assert len(widths(plots.bar(ex, 0, max_display=4, ax=canvas()))) == 4
    sizes = np.abs(ex.values).mean(axis=0)
    np.testing.assert_allclose(widths(plots.bar(ex, ax=canvas())), -np.sort(-sizes))
    importance = explainer.importance(ex.data[:5], n_samples=200)
    np.testing.assert_allclose(widths(plots.bar(importance, max_display=2, ax=canvas())), -np.sort(-importance.values)[:2])
    assert plots.bar(importance, ax=canvas()).get_xlabel() == "expected mean |attribution|, with 95% intervals"
    many = replace(importance, n_rows=20_000)
    label = plots.bar(many, ax=canvas()).get_xlabel()
    assert label == "expected mean |attribution|, with 95% intervals\n(spread from 5 of 20,000 rows)"


def test_sure_points_are_drawn_in_full_and_others_faint(ex):
    ax = plots.beeswarm(ex, ax=canvas())
    order = np.argsort(-np.abs(ex.values).mean(axis=0))
    for points, i in zip(ax.collections, order):
        opacity, sure = points.get_facecolors()[:, 3], np.abs(2 * ex.prob_positive()[:, i] - 1)
        np.testing.assert_allclose(np.asarray(points.get_offsets())[:, 0], ex.values[:, i])
        assert (opacity[sure > 0.95] == 1.0).all()
        assert (opacity[sure < 0.5] < 0.7).all()


def test_pictures_are_reached_from_the_explanation(ex):
    assert dir(ex.plot) == list(ex.plot.__dir__())
    assert "waterfall" in repr(ex.plot)
    ax = canvas()
    assert ex.plot.waterfall(0, ax=ax) is ax
    assert ex.plot.waterfall.__doc__ == plots.waterfall.__doc__
    with pytest.raises(AttributeError, match="no picture is called 'force'; there are bar, "):
        ex.plot.force  # noqa: B018


def test_new_axes_are_made_where_none_are_given(ex):
    import matplotlib.pyplot as plt

    ax = ex[0].plot.waterfall()
    assert ax.figure.number in plt.get_fignums()
    plt.close(ax.figure)


@pytest.mark.parametrize("name", ONE_ROW)
def test_odd_explanations_of_one_row(name, ex):
    draw = getattr(plots, name)
    single = ex[0]
    still = replace(single, values=np.zeros((1, 6)), var=np.zeros((1, 6)), cov=np.zeros((1, 6, 6)))
    huge = replace(single, values=1e9 * single.values, var=1e18 * single.var, cov=1e18 * single.cov)
    for odd in (single[:, [0]], still, huge, single.group({"all": list(range(6))}), replace(single, row_names=("Château <b>",))):
        ax = draw(odd, ax=canvas())
        ax.figure.canvas.draw()
    with pytest.raises(InvalidInputError, match="row: expected the position of one of 40 rows, got none"):
        (plots.waterfall if name == "bar" else draw)(ex)
    with pytest.raises(InvalidIndexError, match="row: expected the position of one of 40 rows"):
        draw(ex, 40)
    with pytest.raises(InvalidInputError, match="max_display: expected an integer of 1 or more, got 0"):
        draw(single, max_display=0)


@pytest.mark.parametrize("name", MANY_ROWS)
def test_odd_explanations_of_many_rows(name, ex):
    draw = getattr(plots, name)
    bare = replace(ex, var=None, cov=None)
    constant = replace(ex, data=np.ones_like(ex.data))
    for odd in (ex[:1], bare, constant, ex.group({"two": ["pH", "alcohol"]}), ex[:, ["pH"]], replace(ex, values=0 * ex.values)):
        ax = draw(odd, ax=canvas())
        ax.figure.canvas.draw()
    with pytest.raises(InvalidInputError, match="explanation: expected at least one row, got none"):
        draw(ex[[]])
    with pytest.raises(InvalidInputError, match=r"explanation: expected a gpattr Explanation .*, got a ndarray"):
        draw(ex.values)


def test_mixtures_and_draws(rows):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    parts = [ExactPosterior(SquaredExponential(scale), X, y, noise=0.1) for scale in (0.5, 2.0)]
    mixture = Explainer(MixturePosterior(parts))(X[:3])
    labels = np.where(y > 0, "yes", "no")
    sampled = Explainer(gpattr.GPClassifier(optimize=False).fit(X, labels), scale="probability", n_draws=200)(X[:3])
    for each in (mixture, sampled):
        for name in ONE_ROW:
            getattr(plots, name)(each, 0, ax=canvas()).figure.canvas.draw()
        for name in MANY_ROWS:
            getattr(plots, name)(each, ax=canvas()).figure.canvas.draw()
    short = Explainer(MixturePosterior(parts))(X[:3], uncertainty="std")
    plots.waterfall(short, 0, max_display=2, ax=canvas()).figure.canvas.draw()


def test_what_cannot_be_drawn_says_why(explainer, ex):
    with pytest.raises(InvalidInputError, match="feature: 'both' is a group"):
        plots.scatter(ex.group({"both": ["pH", "alcohol"]}), "both")
    with pytest.raises(InvalidInputError, match="expected rows that lie on one line"):
        plots.path(ex)
    with pytest.raises(InvalidInputError, match="rows that are all the same"):
        plots.path(ex[[0, 0]])
    with pytest.raises(MissingUncertaintyError, match="explain with uncertainty='cov'"):
        plots.covariance(replace(ex, cov=None), 0)
    with pytest.raises(
        InvalidInputError, match=r"contributions: expected one number for each training row, got the shape \(2, 2\)"
    ):
        plots.training(np.ones((2, 2)))
    with pytest.raises(InvalidInputError, match="names: expected 3, one for each training row, got 2"):
        plots.training(np.ones(3), names=["a", "b"])
    with pytest.raises(UnsupportedModelError, match="a way leads from one point to another"):
        Explainer(explainer.posterior, gpattr.Baselines(ex.data[:3])).along(ex.data[0])
    with pytest.raises(InvalidInputError, match="n_points: expected an integer of 2 or more, got 1"):
        explainer.along(ex.data[0], n_points=1)


def test_along_leads_from_the_baseline_to_the_row(explainer, ex):
    way = explainer.along(ex.data[0], n_points=5)
    np.testing.assert_array_equal(way.values[0], 0.0)
    np.testing.assert_allclose(way.values[-1], ex.values[0], atol=1e-12)
    np.testing.assert_allclose(way.std[-1], ex.std[0], atol=1e-9)
    ax = plots.path(explainer.along(explainer.baseline + [1.0, 0, 0, 0, 0, 0]), ax=canvas())
    assert ax.get_xlabel() == "alcohol"


def test_shap_draws_what_we_explain(ex):
    import shap

    theirs = ex.to_shap()
    assert isinstance(theirs, shap.Explanation)
    for draw in (shap.plots.bar, shap.plots.beeswarm, shap.plots.heatmap):
        draw(theirs, show=False)
        mpl.pyplot.close("all")
    shap.plots.waterfall(theirs[0], show=False)
    mpl.pyplot.close("all")


def test_estimators_reach_pictures_in_two_lines(rows):
    model = GPRegressor(optimize=False).fit(rows, rows["alcohol"])
    assert Explainer(model)(rows[:3]).plot.heatmap(ax=canvas()).get_title(loc="left").startswith("3 rows")
