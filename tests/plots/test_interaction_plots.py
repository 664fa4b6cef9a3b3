"""Pictures of interactions: what they show is what the explanation says, and they look as before.

``GPATTR_UPDATE_PICTURES=1 pytest tests/plots`` writes the pictures anew, to be looked at.
"""

import os
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.testing.compare import compare_images
from matplotlib.text import Text
from scipy.special import ndtr

from gpattr import InteractionExplanation, plots
from gpattr.distributions import Gaussian, Mixture, Point
from gpattr.exceptions import InvalidIndexError, InvalidInputError
from gpattr.plots.interaction_matrix import FULL, LEAST
from gpattr.plots.interaction_summary import summary_of
from gpattr.plots.style import BLUE, ORANGE

PICTURES = Path(__file__).parent / "pictures"
TOLERANCE = 6.0  # as in test_plots
NAMES = ["alcohol", "acidity", "sugar ($/kg)", "pH", "sulphates", "chlorides"]
DRAWN = {
    "interaction_matrix": lambda ex, ax: plots.interaction_matrix(ex, 2, ax=ax),
    "interaction_matrix_of_many": lambda ex, ax: plots.interaction_matrix(ex, ax=ax),
    "interaction_network": lambda ex, ax: plots.interaction_network(ex, 2, ax=ax),
}


def made(n=8, d=6, names=None, seed=0, spread=0.15):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(d, d)) * np.exp(rng.normal(size=(d, d))) * 0.2
    values = shared * (1 + 0.3 * rng.normal(size=(n, d, d))) + np.diag(rng.normal(size=d))
    std = spread * np.abs(rng.normal(size=(n, d, d)))
    values, std = (0.5 * (part + part.transpose(0, 2, 1)) for part in (values, std))
    return InteractionExplanation.from_matrices(
        values,
        std,
        feature_names=tuple(names or NAMES[:d]),
        predictions=values.sum(axis=(1, 2)) + 5.0,
        base_values=np.full(n, 5.0),
        quantity="predicted quality",
    )


@pytest.fixture(scope="module")
def ex():
    return made()


def canvas(width=7.0, height=5.0):
    return Figure(figsize=(width, height), layout="constrained").subplots()


def words(ax):
    return " ".join(text.get_text() for text in ax.figure.findobj(Text)).replace("\n", " ")


def squares(ax):
    """Return {(line, column): (side, colour)} of a matrix."""
    (collection,) = (part for part in ax.collections if isinstance(part, PatchCollection))
    found = {}
    for path, color in zip(collection.get_paths(), collection.get_facecolors(), strict=True):
        low, high = path.vertices.min(axis=0), path.vertices.max(axis=0)
        x, y = 0.5 * (low + high)
        found[round(y), round(x)] = (high - low)[0], color
    return found


def edges(ax):
    return [patch for patch in ax.patches if isinstance(patch, PathPatch)]


@pytest.mark.parametrize("name", DRAWN)
def test_it_looks_as_it_did(name, ex, tmp_path):
    with mpl.rc_context(mpl.rcParamsDefault):
        ax = DRAWN[name](ex, canvas())
        ax.figure.savefig(tmp_path / f"{name}.png", dpi=60)
    if os.environ.get("GPATTR_UPDATE_PICTURES"):
        (PICTURES / f"{name}.png").write_bytes((tmp_path / f"{name}.png").read_bytes())
    difference = compare_images(
        str(PICTURES / f"{name}.png"), str(tmp_path / f"{name}.png"), TOLERANCE
    )
    assert difference is None, difference


@pytest.mark.parametrize("d", [6, 20])
def test_squares_are_full_where_signs_are_sure(d):
    ex = made(d=d, names=[f"f{i}" for i in range(d)])
    ax = plots.interaction_matrix(ex, 2, max_display=d, ax=canvas())
    order = [ex.feature_names.index(label.get_text()) for label in ax.get_yticklabels()]
    positive = ex.prob_positive()[2][np.ix_(order, order)]
    sure = np.maximum(positive, 1 - positive)
    found = squares(ax)
    # of few features the lower half and the diagonal are numbers
    assert len(found) == (d * (d - 1) // 2 if d == 6 else d * d)
    for (i, j), (side, _) in found.items():
        assert (side > 0.9) == (sure[i, j] >= 0.95)
        assert LEAST - 1e-9 <= side <= FULL + 1e-9
    by_certainty = sorted((sure[place], side) for place, (side, _) in found.items())
    sides = [side for _, side in by_certainty]
    assert (np.diff(sides) > -1e-9).all()


def test_colours_have_the_sign(ex):
    ax = plots.interaction_matrix(ex, 2, ax=canvas())
    order = [ex.feature_names.index(label.get_text()) for label in ax.get_yticklabels()]
    values = ex.values[2][np.ix_(order, order)]
    for place, (_, color) in squares(ax).items():
        assert (color[0] > color[2]) == (values[place] > 0)  # more red than blue


def test_numbers_are_the_values_and_their_spread(ex):
    ax = plots.interaction_matrix(ex, 2, ax=canvas())
    order = [ex.feature_names.index(label.get_text()) for label in ax.get_yticklabels()]
    texts = {text.get_position(): text for text in ax.texts}
    for i in range(6):
        for j in range(i + 1):
            value, std = (part[2, order[i], order[j]] for part in (ex.values, ex.std))
            shown = texts[j, i - 0.13]
            assert float(shown.get_text().replace("−", "-")) == pytest.approx(value, abs=0.006)
            assert float(texts[j, i + 0.2].get_text()[1:]) == pytest.approx(std, abs=0.006)
            bold = ndtr(abs(value) / std) >= 0.95
            assert shown.get_fontweight() == ("bold" if bold else "normal")


def test_features_come_in_the_order_of_how_much_they_interact(ex):
    ax = plots.interaction_matrix(ex, max_display=3, ax=canvas())
    size = np.abs(ex.values * (1 - np.eye(6))).mean(axis=0).sum(axis=1)
    expected = [NAMES[i] for i in np.argsort(-size)[:3]]
    assert [label.get_text() for label in ax.get_yticklabels()] == expected
    assert "3 of 6 features" in words(ax)


def test_edges_are_the_pairs_whose_sign_is_sure(ex):
    ax = plots.interaction_network(ex, 2, ax=canvas())
    i, j = np.triu_indices(6, 1)
    positive, values = ex.prob_positive()[2, i, j], ex.values[2, i, j]
    sure = np.maximum(positive, 1 - positive) >= 0.95
    found = edges(ax)
    assert 0 < len(found) == sure.sum() < len(i)
    assert f"{sure.sum()} of 15 pairs" in words(ax)
    order = np.argsort(np.abs(values[sure]))  # the largest is drawn last
    wide = [edge.get_linewidth() for edge in found]
    np.testing.assert_allclose(
        np.diff(wide) / (wide[-1] - wide[0]),
        np.diff(np.abs(values[sure])[order]) / np.ptp(np.abs(values[sure])),
        atol=1e-9,
    )
    colors = [to_rgba(BLUE if value < 0 else ORANGE)[:3] for value in values[sure][order]]
    assert [edge.get_edgecolor()[:3] for edge in found] == colors


def test_nodes_are_hollow_where_main_effects_are_unsure(ex):
    ax = plots.interaction_network(ex, 2, ax=canvas())
    nodes = [line for line in ax.lines if line.get_marker() == "o"]
    positive = ex.prob_positive()[2].diagonal()
    hollow = [node.get_markerfacecolor() == "white" for node in nodes]
    assert hollow == list(np.maximum(positive, 1 - positive) < 0.95)
    area = np.array([node.get_markersize() for node in nodes])
    assert (np.argsort(area) == np.argsort(np.abs(ex.values[2].diagonal()))).all()


def test_nothing_sure_is_said(ex):
    unsure = InteractionExplanation.from_matrices(ex.values, 1e3 + 0 * ex.values)
    ax = plots.interaction_network(unsure, 0, ax=canvas())
    assert not edges(ax)
    assert "no sign of an interaction is 95% sure" in words(ax)


def test_a_mean_over_rows_is_as_sure_as_its_bound(ex):
    """Whatever the correlation between rows, the std of a mean is at most the mean std."""
    shown = summary_of(ex, None)
    mean, std = ex.values.mean(axis=0), ex.std.mean(axis=0)
    np.testing.assert_allclose(shown.values, mean)
    np.testing.assert_allclose(shown.std, std)
    np.testing.assert_allclose(shown.sure, ndtr(np.abs(mean) / std))
    assert "at most one standard deviation" in words(plots.interaction_matrix(ex, ax=canvas()))


def test_models_of_a_mixture_that_disagree_make_a_mean_unsure(ex):
    flat, var = ex.distribution.mean, ex.distribution.var
    weights = np.array([0.7, 0.3])
    mixed = Mixture(weights, np.stack([flat, -flat]), np.stack([var, var]))
    both = replace(ex, by_pair=replace(ex.by_pair, distribution=mixed))
    # The rows of the model with the other sign may be so correlated that it never agrees.
    agreeing = 0.7 * ndtr(np.abs(ex.values.mean(axis=0)) / ex.std.mean(axis=0))
    np.testing.assert_allclose(summary_of(both, None).sure, np.maximum(agreeing, 0.5))
    positive = 0.7 * ex.prob_positive()[1] + 0.3 * (1.0 - ex.prob_positive()[1])
    np.testing.assert_allclose(summary_of(both, 1).sure, np.maximum(positive, 1 - positive))
    assert not edges(plots.interaction_network(both, ax=canvas()))


@pytest.mark.parametrize("picture", [plots.interaction_matrix, plots.interaction_network])
def test_every_picture_names_what_is_explained_and_the_baseline(picture, ex):
    one, many = words(picture(ex, 2, ax=canvas(9, 7))), words(picture(ex, ax=canvas(9, 7)))
    assert "Row 2: interactions in the predicted quality" in one
    assert "Mean interactions in the predicted quality over 8 rows" in many
    for text in (one, many):
        assert "Shapley interaction values; baseline: given point" in text
        assert "95% sure" in text


@pytest.mark.parametrize("picture", [plots.interaction_matrix, plots.interaction_network])
@pytest.mark.parametrize("d", [1, 3, 13])
def test_odd_explanations(picture, d, tmp_path):
    names = ["$" * 80, "", "one\ntwo", *(f"f{i}" for i in range(10))][:d]
    plain = made(n=2, d=d, names=names)
    partial = np.full((2, d, d), np.nan)
    partial[:, 0, -1] = partial[:, -1, 0] = 1.0
    point = replace(plain.by_pair, distribution=Point(plain.distribution.mean))
    for odd in (
        plain,
        replace(plain, by_pair=point),
        InteractionExplanation.from_matrices(0 * plain.values, 0 * plain.values),
        InteractionExplanation.from_matrices(plain.values * 1e9),
        InteractionExplanation.from_matrices(plain.values * 1e-9, plain.std * 1e-9),
        InteractionExplanation.from_matrices(partial, partial),
    ):
        picture(odd, 0, ax=canvas())
        picture(odd, ax=canvas()).figure.savefig(tmp_path / "odd.png", dpi=40)


def test_many_edges_are_cut_and_that_is_said():
    ex = made(n=1, d=20, names=[f"f{i}" for i in range(20)])
    bare = replace(ex, by_pair=replace(ex.by_pair, distribution=Gaussian(ex.distribution.mean)))
    ax = plots.interaction_network(bare, ax=canvas(9, 7))
    assert len(edges(ax)) == 60
    assert "the 60 largest are drawn" in words(ax)
    assert "sure" not in words(ax)  # nothing is known about it


def test_pictures_are_reached_from_the_explanation(ex):
    assert dir(ex.plot) == ["matrix", "network"]
    assert repr(ex.plot) == "pictures: matrix, network"
    ax = canvas()
    assert ex.plot.matrix(0, ax=ax) is ax
    assert ex.plot.network(0, max_display=3, ax=canvas()) is not ax
    assert ex.plot.matrix.__doc__ == plots.interaction_matrix.__doc__
    with pytest.raises(AttributeError, match="'waterfall'; there are matrix, network"):
        _ = ex.plot.waterfall


@pytest.mark.parametrize("picture", [plots.interaction_matrix, plots.interaction_network])
def test_what_cannot_be_drawn_says_why(picture, ex):
    with pytest.raises(InvalidInputError, match="expected a gpattr InteractionExplanation"):
        picture(ex.by_pair)
    with pytest.raises(InvalidInputError, match="at least one row"):
        picture(ex[[]])
    with pytest.raises(InvalidIndexError, match="row: expected"):
        picture(ex, 20)
    with pytest.raises(InvalidInputError, match="max_display: expected"):
        picture(ex, max_display=0)
    with pytest.raises(InvalidInputError, match="level"):
        picture(ex, level=2.0)
    with pytest.raises(InvalidInputError, match="explanation"):
        plots.bar(ex)


def test_no_figure_is_left_open(ex):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    plots.interaction_matrix(ex, ax=canvas())
    assert plt.get_fignums() == before
    ax = ex.plot.network()
    assert ax.figure.number not in before
    plt.close(ax.figure)
