"""Pictures of partial dependence: they show what the dependence says, where the data are and where
they end, and they look as before.

``GPATTR_UPDATE_PICTURES=1 pytest tests/plots`` writes the pictures anew, to be looked at.
"""

import os
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import (
    LineCollection,
    PatchCollection,
    PathCollection,
    PolyCollection,
    QuadMesh,
)
from matplotlib.colors import to_rgba
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.testing.compare import compare_images
from matplotlib.text import Text

from gpattr import Explainer, plots
from gpattr.distributions import Point
from gpattr.encoders import Dates, Encoder
from gpattr.exceptions import GpattrError, InvalidInputError, MissingUncertaintyError
from gpattr.explanation.feature_grid import days
from gpattr.kernels import SquaredExponential
from gpattr.plots.feature_axis import STRIP
from gpattr.plots.style import BLUE, INK, SERIES
from gpattr.plots.words import short
from gpattr.posteriors import EncodedPosterior, ExactPosterior

PICTURES = Path(__file__).parent / "pictures"
TOLERANCE = 6.0  # as in test_plots
COST = "cost_{a} in $ (€/$)"
LONG = "a name of sixty letters that goes on and on until it ends..."
MAKERS = tuple(f"maker of things number {i}" for i in range(12))


def made():
    rng = np.random.default_rng(1)
    n = 80
    frame = pd.DataFrame(
        {
            COST: rng.normal(size=n),
            "material": rng.choice(["wood", "stone", "brick ($)"], n, p=[0.6, 0.3, 0.1]),
            "built": np.datetime64("2021-01-01")
            + rng.integers(0, 1200, n).astype("timedelta64[D]"),
            "maker": rng.choice(MAKERS, n),
            "rooms": rng.integers(1, 6, n).astype(float),
            LONG: rng.uniform(size=n),
        }
    )
    y = np.sin(2 * frame[COST]) * (1 + (frame["material"] == "wood")) + 0.3 * frame["rooms"]
    categories = {"material": ("wood", "stone", "brick ($)", "straw"), "maker": MAKERS}
    dates = {"built": Dates.of(frame["built"].to_numpy())}
    encoder = Encoder(tuple(frame), categories, dates=dates)
    codes = encoder.encode("X", frame)
    scales = 2.0 * codes.std(axis=0) + 0.5
    exact = ExactPosterior(SquaredExponential(scales), codes, y - y.mean(), noise=0.05)
    return frame, Explainer(EncodedPosterior(exact, encoder), target_name="price ($)")


FRAME, EXPLAINER = made()
WIDE = np.linspace(-5.0, 5.0, 41)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def canvas(width=7.0, height=4.5):
    return Figure(figsize=(width, height), layout="constrained").subplots()


def drawn(*args, draws=0, level=0.95, width=7.0, height=4.5, **options):
    found = EXPLAINER.dependence(*args, **options)
    return found, found.plot(ax=canvas(width, height), draws=draws, level=level)


def words(ax):
    texts = [text.get_text() for text in ax.figure.findobj(Text)]
    for axes in ax.figure.axes:
        texts += [label.get_text() for label in axes.get_xticklabels() + axes.get_yticklabels()]
    return " ".join(texts).replace("\n", " ")


def entries(ax):
    legends = [part for part in ax.get_children() if isinstance(part, Legend)]
    return [text.get_text() for part in legends for text in part.get_texts()]


def bands(ax):
    """Return the lower and upper ends of each band."""
    found = []
    for part in ax.collections:
        if isinstance(part, PolyCollection):
            vertices = part.get_paths()[0].vertices
            inside = {}
            for x, y in vertices:
                low, high = inside.get(x, (y, y))
                inside[x] = min(low, y), max(high, y)
            found.append(np.array([inside[x] for x in sorted(inside)]).T)
    return found


def thin_lines(ax):
    """Return the thin lines, (n, G), apart from the ticks of the data."""
    data = ax.transData
    parts = [
        part
        for part in ax.collections
        if isinstance(part, LineCollection) and part.get_transform() == data
    ]
    return [np.array(part.get_segments())[:, :, 1] for part in parts]


def points(ax):
    return [part for part in ax.collections if isinstance(part, PathCollection)]


def strip(ax):
    (found,) = (part for part in ax.collections if isinstance(part, PatchCollection))
    return [path.get_extents() for path in found.get_paths()]


DRAWN = {
    "dependence": lambda ax: EXPLAINER.dependence(COST, WIDE).plot(ax=ax, draws=5),
    "dependence_individual": lambda ax: EXPLAINER.dependence(
        COST, 20, FRAME[:40], kind="individual"
    ).plot(ax=ax),
    "dependence_categories": lambda ax: EXPLAINER.dependence("material", centred=True).plot(ax=ax),
    "dependence_pair": lambda ax: EXPLAINER.dependence((COST, "material")).plot(ax=ax),
    "dependence_surface": lambda ax: EXPLAINER.dependence(
        (COST, "built"), (np.linspace(-4.0, 3.0, 15), 12)
    ).plot(ax=ax),
    "dependence_matrix": lambda ax: EXPLAINER.dependence(
        ("maker", "material"), (MAKERS[:6], None)
    ).plot(ax=ax),
    "dependence_grid": lambda ax: plots.dependence_grid(EXPLAINER, grid=15, max_display=5)[0],
}


@pytest.mark.parametrize("name", DRAWN)
def test_it_looks_as_it_did(name, tmp_path):
    with mpl.rc_context(mpl.rcParamsDefault):
        ax = DRAWN[name](canvas())
        ax.figure.savefig(tmp_path / f"{name}.png", dpi=60)
    if os.environ.get("GPATTR_UPDATE_PICTURES"):
        (PICTURES / f"{name}.png").write_bytes((tmp_path / f"{name}.png").read_bytes())
    difference = compare_images(
        str(PICTURES / f"{name}.png"), str(tmp_path / f"{name}.png"), TOLERANCE
    )
    assert difference is None, difference


@pytest.mark.parametrize("options", [{}, {"centred": True}, {"derivative": True}])
def test_a_curve_is_its_values_with_its_band(options):
    found, ax = drawn(COST, 30, level=0.8, **options)
    line = ax.lines[0]
    np.testing.assert_array_equal(line.get_xdata(), found.grid)
    np.testing.assert_array_equal(line.get_ydata(), found.values)
    assert line.get_linestyle() == "-"
    (band,) = bands(ax)
    np.testing.assert_allclose(band, found.interval(0.8), rtol=1e-12)
    assert "average over 80 rows, with an 80% band" in words(ax)
    named = {"centred": "centred predicted price ($)", "derivative": "slope of the predicted"}
    expected = named[next(iter(options))] if options else "predicted price ($)"
    assert ax.get_ylabel().startswith(expected)
    zero = [line for line in ax.lines if np.ptp(line.get_ydata()) == 0]
    assert len(zero) == bool(options)
    assert entries(ax) == ["distribution of the data"]


def test_without_uncertainty_there_is_only_the_line():
    found, ax = drawn(COST, 30, uncertainty="none")
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), found.values)
    assert not bands(ax)
    assert "%" not in words(ax)
    sure = replace(found, distribution=Point(found.distribution.mean))
    ax = sure.plot(ax=canvas())
    assert not bands(ax)
    assert "known without uncertainty" in words(ax)
    _, ax = drawn(COST, 30, uncertainty="std")
    assert len(bands(ax)) == 1


def test_draws_are_those_of_the_posterior():
    found, ax = drawn(COST, 30, draws=7)
    (lines,) = thin_lines(ax)
    np.testing.assert_array_equal(lines, found.sample(7, random_state=0))
    assert "7 draws" in entries(ax)
    other = found.plot(ax=canvas(), draws=7, random_state=3)
    np.testing.assert_array_equal(thin_lines(other)[0], found.sample(7, random_state=3))
    assert "1 draw" in entries(found.plot(ax=canvas(), draws=1))


def test_what_lies_outside_the_data_is_marked():
    found, ax = drawn(COST, WIDE)
    low, high = FRAME[COST].min(), FRAME[COST].max()
    solid, left, right = ax.lines
    assert solid.get_linestyle() == "-"
    assert {left.get_linestyle(), right.get_linestyle()} == {"--"}
    np.testing.assert_allclose(solid.get_xdata()[[0, -1]], [low, high])
    assert left.get_xdata()[-1] == solid.get_xdata()[0]
    assert right.get_xdata()[0] == solid.get_xdata()[-1]
    for line in ax.lines:
        np.testing.assert_allclose(
            line.get_ydata(), np.interp(line.get_xdata(), found.grid, found.values)
        )
    x = np.unique(np.concatenate([line.get_xdata() for line in ax.lines]))
    assert set(found.grid) <= set(x)
    boxes = [patch.get_path().get_extents(patch.get_patch_transform()) for patch in ax.patches]
    left, right = sorted(boxes, key=lambda box: box.x0)
    assert [left.x1, right.x0] == pytest.approx([low, high])
    assert all(patch.get_hatch() for patch in ax.patches)
    assert "outside the data" in entries(ax)
    assert ax.get_xlim()[0] <= -5.0 < 5.0 <= ax.get_xlim()[1]
    # On one side only, and nowhere.
    _, ax = drawn(COST, np.linspace(low, 5.0, 20))
    assert len([patch for patch in ax.patches if patch.get_hatch()]) == 1
    _, ax = drawn(COST, 20)
    assert not ax.patches
    assert "outside the data" not in entries(ax)


def test_a_grid_beyond_all_data_is_dashed_throughout():
    _, ax = drawn(COST, [10.0, 11.0, 12.0])
    (line,) = ax.lines
    assert line.get_linestyle() == "--"
    np.testing.assert_array_equal(points(ax)[0].get_facecolors(), [to_rgba("white")] * 3)
    _, ax = drawn(COST, [-10.0, 10.0])
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--", "--"]


def test_the_strip_is_the_distribution_of_the_data():
    _, ax = drawn(COST, 30)
    counts, edges = np.histogram(FRAME[COST], 40)
    bars = strip(ax)
    np.testing.assert_allclose([bar.x0 for bar in bars], edges[:-1][counts > 0])
    np.testing.assert_allclose(
        [bar.height for bar in bars], STRIP * counts[counts > 0] / counts.max()
    )
    # Nothing else reaches down to it.
    low, high = ax.get_ylim()
    (band,) = bands(ax)
    assert (band.min() - low) / (high - low) > STRIP
    # Few different values have a bar each, few rows a tick each.
    _, ax = drawn("rooms")
    counts = FRAME["rooms"].value_counts().sort_index()
    np.testing.assert_allclose([0.5 * (bar.x0 + bar.x1) for bar in strip(ax)], counts.index)
    np.testing.assert_allclose([bar.height for bar in strip(ax)], STRIP * counts / counts.max())
    _, ax = drawn(COST, 30, FRAME[:6])
    ticks = [part for part in ax.collections if isinstance(part, LineCollection)]
    np.testing.assert_allclose(
        np.sort([segment[0, 0] for segment in ticks[0].get_segments()]), np.sort(FRAME[COST][:6])
    )


def test_few_values_are_marked():
    found, ax = drawn("rooms")
    np.testing.assert_array_equal(points(ax)[0].get_offsets()[:, 1], found.values)
    assert [label.get_text() for label in ax.get_xticklabels()] == list("12345")


def test_one_value_has_an_interval():
    found, ax = drawn(COST, [0.3])
    (bar,) = thin_lines(ax)
    np.testing.assert_allclose(bar[0], np.array(found.interval())[:, 0])
    assert "with a 95% interval" in words(ax)


@pytest.mark.parametrize("n", [1, 5, 6, 80])
def test_individual_curves(n):
    found, ax = drawn(COST, 12, FRAME[:n], kind="individual")
    if n > 5:
        (lines,) = thin_lines(ax)
        np.testing.assert_array_equal(lines, found.values)
        assert not bands(ax)
        mean = ax.lines[0]
        assert entries(ax)[:2] == [f"{n} rows", "their mean"]
    else:
        for k in range(n):
            np.testing.assert_array_equal(ax.lines[k].get_ydata(), found.values[k])
            assert ax.lines[k].get_color() == SERIES[k]
        lower, upper = found.interval()
        for k, band in enumerate(bands(ax)):
            np.testing.assert_allclose(band, [lower[k], upper[k]], rtol=1e-12)
        assert len(bands(ax)) == n
        mean = ax.lines[-1]
        assert [text for text in entries(ax) if text.startswith("row")] == (
            [f"row {k}" for k in range(n)] if n > 1 else []
        )
    if n > 1:
        np.testing.assert_allclose(mean.get_ydata(), found.values.mean(axis=0))
        assert mean.get_color() == INK
    assert f"{n} row" in words(ax)


def test_of_very_many_individual_curves_a_sample_is_drawn():
    rows = pd.concat([FRAME] * 14, ignore_index=True)
    found, ax = drawn(COST, 3, rows, kind="individual", uncertainty="none")
    (lines,) = thin_lines(ax)
    assert len(lines) == 1000
    assert "1,000 of 1,120 rows and their mean" in words(ax)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), found.values.mean(axis=0))


def test_categories_have_intervals_and_frequencies():
    found, ax = drawn("material", level=0.9)
    assert [label.get_text() for label in ax.get_xticklabels()] == list(found.grid)
    np.testing.assert_allclose(thin_lines(ax)[0].T, found.interval(0.9))
    (drawn_points,) = points(ax)
    np.testing.assert_array_equal(drawn_points.get_offsets()[:, 1], found.values)
    counts = FRAME["material"].value_counts()
    assert {text.get_text() for text in ax.texts} >= {str(count) for count in counts}
    np.testing.assert_allclose(
        [bar.height for bar in strip(ax)],
        STRIP * counts[["wood", "stone", "brick ($)"]] / counts.max(),
    )
    # Straw is no material of the data.
    faces = drawn_points.get_facecolors()
    np.testing.assert_array_equal(faces[:3], [to_rgba(BLUE)] * 3)
    np.testing.assert_array_equal(faces[3], to_rgba("white"))
    (hatched,) = ax.patches
    assert hatched.get_hatch()
    assert "outside the data" in entries(ax)


def test_draws_of_categories_are_dots():
    found, ax = drawn("material", ["wood", "stone"], draws=30)
    small, large = sorted(points(ax), key=lambda part: part.get_sizes()[0])
    np.testing.assert_array_equal(
        small.get_offsets()[:, 1], found.sample(30, random_state=0).ravel()
    )
    assert len(large.get_offsets()) == 2
    assert "30 draws" in entries(ax)


def test_many_long_categories_fit():
    _, ax = drawn("maker")
    ax.figure.draw_without_rendering()
    labels = ax.get_xticklabels()
    assert len(labels) == 12
    assert all(len(label.get_text()) <= 20 for label in labels)
    assert all(label.get_window_extent().y0 >= 0 for label in labels)


def test_individual_rows_of_categories_stand_side_by_side():
    found, ax = drawn("material", None, FRAME[:3], kind="individual")
    at = np.array([part.get_offsets() for part in points(ax)])
    assert at.shape == (4, 4, 2)
    np.testing.assert_array_equal(at[:3, :, 1], found.values)
    np.testing.assert_allclose(at[3, :, 1], found.values.mean(axis=0))
    assert len(np.unique(at[:, 0, 0])) == 4
    assert (np.abs(at[:, :, 0] - np.arange(4)) < 0.5).all()
    found, ax = drawn("material", None, FRAME[:20], kind="individual")
    small, _ = sorted(points(ax), key=lambda part: part.get_sizes()[0])
    np.testing.assert_array_equal(small.get_offsets()[:, 1], found.values.ravel())


def test_dates_are_written_as_dates():
    found, ax = drawn("built", 12)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), days(found.grid))
    ax.figure.draw_without_rendering()
    assert "2022" in [label.get_text() for label in ax.get_xticklabels()]
    later = pd.date_range("2020-01-01", "2027-01-01", periods=15).to_numpy()
    _, ax = drawn("built", later)
    assert {line.get_linestyle() for line in ax.lines} == {"-", "--"}
    assert len(ax.patches) == 2


def quadmesh(ax):
    (found,) = (part for part in ax.collections if isinstance(part, QuadMesh))
    return found.get_array()


def test_a_surface_has_its_standard_deviation_beside_it():
    found, ax = drawn((COST, LONG), (7, 6), width=10.0)
    mean, std = ax.figure.axes[:2]
    assert mean is ax
    for axes, values in ((mean, found.values), (std, found.std)):
        (filled,) = (
            part for part in axes.collections if isinstance(part, ContourSet) and part.filled
        )
        assert filled.levels[0] <= values.min() < values.max() <= filled.levels[-1]
        dots = points(axes)[0].get_offsets()
        np.testing.assert_array_equal(dots, FRAME[[COST, LONG]])
    assert std.get_title(loc="left") == "Standard deviation"
    assert std.get_position().x0 > mean.get_position().x0
    assert {"predicted price ($)", "standard deviation"} <= {
        axes.get_ylabel().replace("\n", " ") for axes in ax.figure.axes[2:]
    }
    assert entries(ax) == ["rows of the data"]
    _, ax = drawn((COST, LONG), 6, uncertainty="none")
    assert len(ax.figure.axes) == 2  # one of them is the colour bar


def test_a_surface_has_the_first_feature_across():
    found, ax = drawn((COST, LONG), (3, 4))
    np.testing.assert_array_equal(quadmesh(ax), found.values.T)
    assert (ax.get_xlabel(), ax.get_ylabel().replace("\n", " ")) == (COST, short(LONG))
    np.testing.assert_array_equal(quadmesh(ax.figure.axes[1]), found.std.T)


def test_what_lies_outside_the_data_of_a_surface_is_hatched():
    low, high = FRAME[COST].min(), FRAME[COST].max()
    _, ax = drawn((COST, "built"), (WIDE[::4], 5), width=10.0)
    for axes in ax.figure.axes[:2]:
        boxes = sorted((patch.get_x(), patch.get_width()) for patch in axes.patches)
        assert boxes == [
            (pytest.approx(-5.0), pytest.approx(low + 5.0)),
            (pytest.approx(high), pytest.approx(5.0 - high)),
        ]
    assert "outside the data" in entries(ax)
    _, ax = drawn(("maker", "material"))
    assert len(ax.patches) == 1
    assert ax.patches[0].get_y() == 2.5


@pytest.mark.parametrize("size", [(9.0, 4.0), (4.0, 8.0)])
@pytest.mark.parametrize("placed", [False, True])
def test_given_axes_are_divided(size, placed):
    figure = Figure(figsize=size, layout=None if placed else "constrained")
    ax = figure.add_axes((0.1, 0.2, 0.8, 0.6)) if placed else figure.subplots(1, 1)
    before = ax.get_position()
    assert EXPLAINER.dependence((COST, LONG), 6).plot(ax=ax) is ax
    mean, std = (axes.get_position() for axes in figure.axes[:2])
    assert std.x0 > mean.x1 if size[0] > size[1] else std.y1 < mean.y0
    for box in (mean, std):
        assert before.x0 - 1e-9 <= box.x0 < box.x1 <= before.x1 + 1e-9
        assert before.y0 - 1e-9 <= box.y0 < box.y1 <= before.y1 + 1e-9
    figure.draw_without_rendering()


@pytest.mark.parametrize("order", [(COST, "material"), ("material", COST)])
def test_few_categories_have_a_curve_each(order):
    found, ax = drawn(order, draws=3)
    values = found.values if order[0] == "material" else found.values.T
    lower, upper = (end if order[0] == "material" else end.T for end in found.interval())
    for k in range(4):
        np.testing.assert_array_equal(ax.lines[k].get_ydata(), values[k])
        np.testing.assert_allclose(bands(ax)[k], [lower[k], upper[k]], rtol=1e-12)
        draws = found.sample(3, random_state=0)
        draws = draws[:, k] if order[0] == "material" else draws[:, :, k]
        np.testing.assert_array_equal(thin_lines(ax)[k], draws)
    assert [line.get_linestyle() for line in ax.lines] == ["-", "-", "-", "--"]
    assert entries(ax)[:5] == ["material:", "wood", "stone", "brick ($)", "straw, not in the data"]
    assert ax.get_xlabel() == COST


def test_many_categories_make_a_surface():
    found, ax = drawn((COST, "maker"), (9, None), width=10.0)
    np.testing.assert_array_equal(quadmesh(ax), found.values.T)
    np.testing.assert_array_equal(quadmesh(ax.figure.axes[1]), found.std.T)
    assert ax.get_yticklabels()[0].get_text().startswith("maker of")
    assert ax.get_ylim() == (11.5, -0.5)  # read from the top


def test_categories_of_both_make_a_matrix_with_numbers():
    found, ax = drawn(("material", "maker"), (None, MAKERS[:3]), centred=True)
    np.testing.assert_array_equal(quadmesh(ax), found.values.T)
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    for i in range(4):
        for j in range(3):
            value, std = texts[i, j].replace("−", "-").split("±")
            assert float(value) == pytest.approx(found.values[i, j], abs=0.006)
            assert float(std) == pytest.approx(found.std[i, j], abs=0.006)
    bare, ax = drawn(("material", "maker"), (None, MAKERS[:3]), uncertainty="none")
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert float(texts[1, 2].replace("−", "-")) == pytest.approx(bare.values[1, 2], abs=0.006)
    assert "±" not in words(ax)


def test_a_constant_feature_and_a_flat_surface():
    X = np.column_stack([np.linspace(0, 1, 12), np.ones(12)])
    flat = Explainer(ExactPosterior(SquaredExponential(), X, np.zeros(12), noise=0.1))
    for feature in (1, (0, 1), 0, (1, 0)):
        for options in ({}, {"uncertainty": "none"}, {"centred": True}):
            flat.dependence(feature, **options).plot(ax=canvas()).figure.draw_without_rendering()


def no_mathematics(ax):
    ax.figure.draw_without_rendering()
    texts = [text for text in ax.figure.findobj(Text) if "$" in text.get_text()]
    return bool(texts) and not any(text.get_parse_math() for text in texts)


def test_names_are_no_mathematics_and_may_be_long():
    sizes = {
        COST: (3.0, 2.5),
        LONG: (3.0, 2.5),
        "material": (3.0, 2.5),
        (COST, "material"): (4.0, 3.0),
        (COST, LONG): (6.0, 4.0),
        (LONG, "maker"): (6.0, 4.0),
        ("material", "maker"): (6.0, 4.0),
    }
    for feature, (width, height) in sizes.items():
        assert no_mathematics(drawn(feature, width=width, height=height)[1])
        assert no_mathematics(EXPLAINER.dependence(feature).plot())
    assert no_mathematics(plots.dependence_grid(EXPLAINER, grid=5)[0])


def test_a_grid_has_the_largest_effects_first_on_one_scale():
    axes = plots.dependence_grid(EXPLAINER, grid=11, max_display=4, columns=2, level=0.8)
    names = list(FRAME)
    each = {name: EXPLAINER.dependence(name, 11, centred=True) for name in names}
    size = {name: np.ptp(found.values[~found.outside]) for name, found in each.items()}
    expected = sorted(names, key=lambda name: -size[name])[:4]
    assert [ax.get_xlabel().replace("\n", " ") for ax in axes] == expected
    assert {ax.get_ylim() for ax in axes} == {axes[0].get_ylim()}
    (band,) = bands(axes[expected.index(COST)])
    np.testing.assert_allclose(band, each[COST].interval(0.8), rtol=1e-9)
    text = words(axes[0])
    assert "Partial dependence of the predicted price ($)" in text
    assert "average over 80 rows, with 80% bands; 2 features with smaller effects not shown" in text
    assert "centred predicted price ($)" in text
    assert len(axes[0].figure.axes) == 4
    (below,) = axes[0].figure.legends
    assert below.get_texts()[0].get_text() == "distribution of the data"


def test_a_grid_of_dependences_is_drawn_as_they_are():
    names = [COST, "rooms", "built"]
    found = [EXPLAINER.dependence(name, 6, derivative=False) for name in names]
    axes = plots.dependence_grid(found)
    assert len(axes) == len(axes[0].figure.axes) == 3
    assert "not shown" not in words(axes[0])
    (one,) = plots.dependence_grid(found[:1])
    np.testing.assert_array_equal(one.lines[0].get_ydata(), found[0].values)
    chosen = plots.dependence_grid(EXPLAINER, ["rooms", 0], background=FRAME[:7], centred=False)
    assert {ax.get_xlabel() for ax in chosen} == {"rooms", COST}
    assert "average over 7 rows" in words(chosen[0])
    individual = [EXPLAINER.dependence(n, 4, FRAME[:9], kind="individual") for n in names]
    axes = plots.dependence_grid(individual)
    assert "Individual dependence of the predicted price ($) " in words(axes[0])
    assert "bands" not in words(axes[0])


def test_bad_input():
    curve, surface = EXPLAINER.dependence(COST, 5), EXPLAINER.dependence((COST, LONG), 5)
    many = EXPLAINER.dependence(COST, 3, FRAME[:6], kind="individual")
    bare = EXPLAINER.dependence(COST, 5, uncertainty="std")
    wrong = [
        (lambda: plots.dependence(3), r"^dependence: expected gpattr.Dependence, got a int"),
        (lambda: curve.plot(ax=3), "^ax: expected matplotlib's axes"),
        (lambda: curve.plot(level=95), "^level: expected a number between 0 and 1, got 95"),
        (lambda: bare.plot(level=2), "^level: "),
        (lambda: curve.plot(draws=-1), "^draws: expected an integer of 0 to 1000, got -1"),
        (lambda: curve.plot(draws=3, random_state="x"), "^random_state: expected"),
        (lambda: surface.plot(draws=3), "^draws: expected 0 for a surface, got 3"),
        (lambda: many.plot(draws=3), "^draws: expected 0 for more than 5 individual curves, got 3"),
        (lambda: plots.dependence_grid([]), "^dependences: expected an explainer, or a list of"),
        (lambda: plots.dependence_grid([curve, 3]), "^dependences: expected an explainer, or a"),
        (lambda: plots.dependence_grid([surface]), "^dependences: expected one feature each, got"),
        (
            lambda: plots.dependence_grid([curve, EXPLAINER.dependence(COST, 5, centred=True)]),
            "^dependences: expected one quantity, got",
        ),
        (lambda: plots.dependence_grid([curve], ["rooms"]), "^features: it is for an explainer"),
        (lambda: plots.dependence_grid([curve], centred=False), "^centred: it is for an explainer"),
        (
            lambda: plots.dependence_grid([curve], columns=0),
            "^columns: expected an integer of 1 to",
        ),
        (
            lambda: plots.dependence_grid([curve], max_display=0),
            "^max_display: expected an integer",
        ),
        (lambda: plots.dependence_grid(EXPLAINER, []), "^features: expected at least one"),
        (lambda: plots.dependence_grid(EXPLAINER, grid=[1.0, 2.0]), "^grid: expected an integer"),
        (lambda: plots.dependence_grid(EXPLAINER, centred=1), "^centred: expected True or False"),
        (lambda: plots.dependence_grid(EXPLAINER, background=FRAME[:0]), "^background: "),
    ]
    for call, message in wrong:
        with pytest.raises(InvalidInputError, match=message):
            call()
    for features in ("nothing", ["nothing"], [17], 3.5, {"rooms"}):
        with pytest.raises(GpattrError, match="^features?: "):
            plots.dependence_grid(EXPLAINER, features)
    with pytest.raises(MissingUncertaintyError, match="covariance"):
        bare.plot(draws=2)
    assert not plt.get_fignums()
