"""Sobol indices as results: their definition, known functions, tables, files and pictures."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import qmc
from tests.sobol.brute_force import form, grid, moments_of_effects

import gpattr
from gpattr.exceptions import FileFormatError, InvalidInputError
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.posteriors import ExactPosterior, MixturePosterior
from gpattr.sobol import quasi_random
from gpattr.sobol.entry import subsets_of
from gpattr.sobol.indices import Effects, SobolIndices
from gpattr.sobol.inputs import Empirical, Inputs

WHOLE = (0, 1, 2)
SUBSETS = ((0,), (1,), (2,), (1, 2), (0, 2), (0, 1), WHOLE)


def effects(R=4000, spread=0.05, seed=0):
    """Return draws around V of a function with main effects 1, 2, 0 and one interaction, 0.5."""
    expected = np.array([1.0, 2.0, 0.0, 2.0, 1.5, 3.0, 3.5])
    rng = np.random.default_rng(seed)
    draws = expected * np.exp(spread * rng.normal(size=(R, 7)))
    draws *= expected / np.where(expected > 0, draws.mean(axis=0), 1.0)
    return Effects(SUBSETS, 0.9 * expected, expected, draws, np.full(7, 1e-3), "closed form")


PAIRS = ((0, 1), (0, 2), (1, 2))


def result(**changes):
    return replace(
        SobolIndices(effects(), ("a", "b", "c"), "prediction", "uniform inputs", PAIRS), **changes
    )


def test_indices_are_ratios_of_variances():
    found = result()
    np.testing.assert_allclose(found.plug_in_first, np.array([1, 2, 0]) / 3.5)
    np.testing.assert_allclose(found.plug_in_total, np.array([1.5, 2.0, 0.5]) / 3.5)
    np.testing.assert_allclose(found.first_draws, found.effects.draws[:, :3] / variances(found))
    others = found.effects.draws[:, 3:6]
    np.testing.assert_allclose(found.total_draws, 1.0 - others / variances(found), atol=1e-15)
    np.testing.assert_allclose(found.variance, 3.5)
    np.testing.assert_allclose(found.unknown_variance, 0.35)
    np.testing.assert_allclose(found.unknown_share, 0.1)
    pairs = found.pairs
    np.testing.assert_allclose(pairs.plug_in[0, 2], 0.5 / 3.5)
    np.testing.assert_allclose(pairs.plug_in[0, 1], 0.0, atol=1e-15)
    assert np.isnan(pairs.values.diagonal()).all()
    assert (pairs.values.T[~np.eye(3, dtype=bool)] == pairs.values[~np.eye(3, dtype=bool)]).all()


def variances(found):
    return found.effects.draws[:, 6:]


def test_the_posterior_mean_of_an_index_hardly_depends_on_the_draws():
    """Independent log-normal V_S: the mean of a ratio is known, E[V_S] E[1/V]."""
    spread = 0.2
    found = SobolIndices(effects(2000, spread), ("a", "b", "c"))
    # With draws scaled to their mean E[1/V] = exp(s²)/E[V].
    exact = np.array([1.0, 2.0, 0.0]) / 3.5 * np.exp(spread**2)
    plain = np.abs(found.first_draws.mean(axis=0) - exact)
    assert (np.abs(found.first - exact) <= 0.01 * exact).all()
    assert np.abs(found.first - exact).max() < plain.max()


def test_intervals_are_quantiles():
    found = result()
    lower, upper = found.first_interval(0.8)
    np.testing.assert_allclose((found.first_draws < lower).mean(axis=0)[:2], 0.1, atol=0.002)
    np.testing.assert_allclose((found.first_draws > upper).mean(axis=0)[:2], 0.1, atol=0.002)
    low, high = found.variance_interval(0.8)
    np.testing.assert_allclose(
        ((variances(found) > low) & (variances(found) < high)).mean(), 0.8, atol=0.002
    )
    lower, upper = found.total_interval()
    assert (lower <= found.total).all()
    assert (found.total <= upper).all()
    with pytest.raises(InvalidInputError, match="level"):
        found.total_interval(95)


def test_errors_of_variances_reach_the_indices():
    assert (result().error > 0).all()
    blunt = replace(effects(), error=np.full(7, 0.35))
    assert (result(effects=blunt).error >= 0.1).all()
    alike = np.outer(np.linspace(0.9, 1.1, 8), effects().expected)  # errors that cancel in ratios
    known = replace(effects(), error=np.full(7, 0.35), replicates=alike)
    assert (result(effects=known).error < 1e-12).all()


def test_missing_subsets_and_names_are_refused():
    some = replace(effects(), subsets=((0,), (1,), (2,), (1, 2), (0, 2), (3, 4), WHOLE))
    with pytest.raises(InvalidInputError, match="effects: expected the subset"):
        result(effects=some)
    with pytest.raises(InvalidInputError, match="feature_names: expected 3"):
        result(feature_names=("a", "b"))
    with pytest.raises(InvalidInputError, match="effects: expected"):
        result(effects=3)


def test_a_constant_mean_has_no_plug_in_indices():
    found = result(effects=replace(effects(), plug_in=np.zeros(7)))
    assert np.isnan(found.plug_in_first).all()
    assert np.isfinite(found.first).all()
    assert "–" in repr(found)


def test_table_text_and_html():
    found = result()
    frame = found.to_frame()
    assert list(frame.index) == ["b", "a", "c"]
    assert frame.index.name == "feature"
    for kind in ("first", "total"):
        lower, upper = (end[[1, 0, 2]] for end in getattr(found, f"{kind}_interval")())
        np.testing.assert_allclose(frame[f"{kind}_lower"], lower)
        np.testing.assert_allclose(frame[f"{kind}_upper"], upper)
    text = repr(found)
    assert "uniform inputs" in text
    assert "10% is not yet known" in text
    assert text.splitlines()[4].split()[:2] == ["b", "0.5729"]
    assert found._repr_html_().count("<tr>") == 4
    assert found.pairs.to_frame()["feature"].iloc[0] == "a"
    assert "3 pairs" in repr(found.pairs)


def test_files_keep_every_bit(tmp_path):
    for found in (result(), result(effects=replace(effects(), replicates=np.ones((8, 7)) / 3))):
        found.save(tmp_path / "indices.json")
        again = SobolIndices.load(tmp_path / "indices.json")
        assert again == found
        assert (again.first == found.first).all()
        assert not again.effects.draws.flags.writeable
        assert (again.effects.replicates is None) == (found.effects.replicates is None)
    assert again != result()
    assert json.loads((tmp_path / "indices.json").read_text())["format"] == "gpattr.SobolIndices"
    with pytest.raises(FileFormatError, match=r"gpattr\.SobolIndices\.load"):
        gpattr.Explanation.load(tmp_path / "indices.json")
    text = (tmp_path / "indices.json").read_text()
    (tmp_path / "short.json").write_text(text[: len(text) // 2])
    with pytest.raises(FileFormatError, match="complete"):
        SobolIndices.load(tmp_path / "short.json")


def test_the_picture_has_bars_and_intervals():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = result()
    ax = found.plot(max_display=2)
    widths = sorted(patch.get_width() for patch in ax.patches)
    expected = sorted([*found.total[[1, 0]], *found.first[[1, 0]]])
    np.testing.assert_allclose(widths, expected)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "a"]
    assert "95%" in ax.get_xlabel()
    with pytest.raises(InvalidInputError, match="indices: expected"):
        gpattr.plots.sobol_bar(3)
    with pytest.raises(InvalidInputError, match="max_display"):
        found.plot(max_display=0)
    plt.close("all")


def test_ishigami():
    """f = sin x₁ + 7 sin² x₂ + 0.1 x₃⁴ sin x₁, uniform on [−π, π]³: the known indices."""
    pi = np.pi
    X = -pi + 2 * pi * qmc.Sobol(3, seed=0).random(256)
    y = np.sin(X[:, 0]) + 7 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])
    a, b = 7.0, 0.1
    V1, V2 = 0.5 * (1 + b * pi**4 / 5) ** 2, a**2 / 8
    V13 = b**2 * pi**8 * (1 / 18 - 1 / 50)
    V = V1 + V2 + V13
    kernel = SquaredExponential([2.7, 2.1, 2.7], variance=3000.0)
    posterior = ExactPosterior(kernel, X, y, noise=1e-6)
    found = gpattr.sobol_indices(posterior, gpattr.Uniform(-pi, pi), pairs=True)
    np.testing.assert_allclose(found.first, np.array([V1, V2, 0.0]) / V, atol=0.01)
    np.testing.assert_allclose(found.total, np.array([V1 + V13, V2, V13]) / V, atol=0.01)
    np.testing.assert_allclose(found.variance, V, rtol=0.02)
    np.testing.assert_allclose(found.pairs.values[0, 2], V13 / V, atol=0.01)
    assert found.unknown_share < 0.01


@pytest.mark.slow
def test_sobol_g():
    """g = Π (|4xᵢ − 2| + aᵢ)/(1 + aᵢ), with a kernel as rough as the function."""
    a = np.array([0.0, 1.0, 4.5, 9.0])
    X = qmc.Sobol(4, seed=1).random(512)
    y = np.prod((np.abs(4 * X - 2) + a) / (1 + a), axis=1)
    own = 1.0 / (3 * (1 + a) ** 2)
    V = np.prod(1 + own) - 1
    total = [own[i] * np.prod(1 + np.delete(own, i)) / V for i in range(4)]
    posterior = ExactPosterior(Matern52([0.7, 1.0, 2.0, 3.0], variance=4.0), X, y - 1.0, noise=1e-5)
    inputs = Inputs.single([gpattr.Uniform(0.0, 1.0)] * 4)
    subsets = subsets_of(4)
    drawn = quasi_random.quasi_random_effects(
        posterior, inputs, subsets, 200, np.random.default_rng(0)
    )
    found = SobolIndices(drawn, tuple("abcd"))
    np.testing.assert_allclose(found.first, own / V, atol=0.03)
    np.testing.assert_allclose(found.total, total, atol=0.03)


def small(kernel=None, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(20, 3))
    y = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=20)
    return ExactPosterior(kernel or SquaredExponential([0.5, 0.7, 0.9]), X, y, noise=0.01)


ROWS = np.random.default_rng(8).uniform(size=(6, 3))


@pytest.mark.parametrize("kernel", [SquaredExponential(0.6), Matern52(0.6)])
def test_the_posterior_of_indices_is_that_of_joint_draws(kernel):
    """Draws of f on the whole grid of the inputs: the same indices, by counting."""
    posterior = small(kernel)
    found = gpattr.sobol_indices(posterior, ROWS, n_draws=4000)
    inputs = Inputs.single([Empirical(column) for column in ROWS.T])
    X, weights, places = grid(inputs, 6)
    mean, C = posterior.predict(X, return_cov=True)
    values, vectors = np.linalg.eigh(C)
    root = vectors * np.sqrt(np.maximum(values, 0))
    f = mean + np.random.default_rng(0).normal(size=(20_000, len(X))) @ root.T
    V = _squares(f, form(inputs, weights, places, WHOLE))
    first = [_squares(f, form(inputs, weights, places, (i,))) / V for i in range(3)]
    others = [tuple(j for j in WHOLE if j != i) for i in range(3)]
    total = [1 - _squares(f, form(inputs, weights, places, rest)) / V for rest in others]
    for mine, std, ratios in (
        (found.first, found.first_std, first),
        (found.total, found.total_std, total),
    ):
        own = np.array(ratios)
        np.testing.assert_allclose(mine, own.mean(axis=1), atol=0.002 + found.error.max())
        np.testing.assert_allclose(std, own.std(axis=1), rtol=0.1)
    lower, upper = found.first_interval(0.9)
    np.testing.assert_allclose(
        [lower, upper], np.quantile(np.array(first), [0.05, 0.95], axis=1), atol=0.01
    )


def _squares(f, Q):
    return ((f @ Q) * f).sum(axis=1)


def test_mixtures_average_over_their_models(monkeypatch):
    monkeypatch.setattr(quasi_random, "MEAN_WORK", 2e7)
    one, two = small(), small(Matern52(1.5), seed=4)
    found = gpattr.sobol_indices(MixturePosterior([one, two], [0.3, 0.7]), ROWS)
    inputs = Inputs.single([Empirical(column) for column in ROWS.T])
    subsets = found.effects.subsets
    parts = [moments_of_effects(part, inputs, subsets, 6)[1] for part in (one, two)]
    expected = 0.3 * parts[0] + 0.7 * parts[1]
    assert (np.abs(found.effects.expected - expected) <= found.effects.error + 1e-12).all()
    X, weights, places = grid(inputs, 6)
    mean = 0.3 * one.predict(X) + 0.7 * two.predict(X)
    plug_in = [mean @ form(inputs, weights, places, subset) @ mean for subset in subsets]
    assert (np.abs(found.effects.plug_in - plug_in) <= found.effects.error + 1e-12).all()
    assert len(found.first_draws) == 1000


def test_the_same_seed_gives_the_same_indices():
    one, two, other = (
        gpattr.sobol_indices(small(), ROWS, random_state=seed, n_draws=200) for seed in (1, 1, 2)
    )
    assert one == two
    assert (one.first_draws != other.first_draws).any()
