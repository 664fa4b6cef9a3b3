"""Partial dependence in the user's terms: frames, categories and dates, names, default grids."""

import numpy as np
import pandas as pd
import pytest

from gpattr import Baselines, Explainer
from gpattr.encoders import Dates, Encoder
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.posteriors import AffinePosterior, EncodedPosterior, ExactPosterior

RNG = np.random.default_rng(4)
N = 30
FRAME = pd.DataFrame(
    {
        "size": RNG.uniform(20.0, 120.0, size=N),
        "kind": np.array(["flat", "house", "room"])[np.arange(N) % 3],
        "built": pd.date_range("2021-03-01", periods=N, freq="17D"),
        "floors": np.arange(N) % 4,
    }
)
PRICE = (
    3.0 * FRAME["size"]
    + 50.0 * (FRAME["kind"] == "house")
    + 20.0 * np.sin(np.arange(N) / 5.0)
    + 5.0 * FRAME["floors"]
)


DATES = Dates.of(FRAME["built"].to_numpy())
ENCODER = Encoder(tuple(FRAME), {"kind": ("flat", "house", "room")}, dates={"built": DATES})
CODES = ENCODER.encode("X", FRAME)


@pytest.fixture(scope="module", params=["squared exponential", "Matérn, in other units"])
def posterior(request):
    centre, spread = CODES.mean(axis=0), CODES.std(axis=0)
    if request.param == "squared exponential":
        inner = ExactPosterior(SquaredExponential(2.0 * spread, 1e4), CODES, PRICE, noise=10.0)
        return EncodedPosterior(inner, ENCODER)
    scaled = (CODES - centre) / spread
    inner = ExactPosterior(Matern52(2.0, 1e4), scaled, PRICE, noise=10.0)
    return EncodedPosterior(AffinePosterior(inner, centre, spread), ENCODER)


@pytest.fixture(scope="module")
def explainer(posterior):
    return Explainer(posterior)


def brute_force(posterior, rows, weights, feature, values, centre=None):
    """Mean and covariance of the average over frames in which a column has one value."""
    K, frames = len(rows), []
    every = list(values) + ([] if centre is None else list(centre[0]))
    for value in every:
        frames.append(rows.assign(**{feature: [value] * K}))
    whole = pd.concat(frames, ignore_index=True)
    whole["built"] = whole["built"].astype("datetime64[us]")
    mean, cov = posterior.predict(whole, return_cov=True)
    combine = np.eye(len(values), len(every))
    if centre is not None:
        combine[:, len(values) :] -= centre[1]
    sums = np.kron(combine, weights[None])
    return sums @ mean, sums @ cov @ sums.T


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("feature", FRAME.columns)
def test_features_of_a_frame(posterior, explainer, feature, centred):
    rows, weights = FRAME.iloc[3:9], np.array([0.3, 0.2, 0.1, 0.1, 0.1, 0.2])
    found = explainer.dependence(feature, 5, Baselines(rows, weights), centred=centred)
    centre = (rows[feature], weights) if centred else None
    mean, cov = brute_force(posterior, rows, weights, feature, found.grid, centre)
    np.testing.assert_allclose(found.values, mean, rtol=0, atol=1e-12 * 100.0)
    np.testing.assert_allclose(found.cov, cov, rtol=0, atol=1e-10 * 1e4)
    assert found.features == (feature,)
    assert found.axes[0].kind == {"kind": "category", "built": "date"}.get(feature, "number")


def test_default_grids(explainer):
    size = explainer.dependence("size")
    np.testing.assert_allclose(
        size.grid, np.linspace(FRAME["size"].min(), FRAME["size"].max(), 50), rtol=1e-13
    )
    assert explainer.dependence("kind").grid.tolist() == ["flat", "house", "room"]
    np.testing.assert_allclose(
        explainer.dependence("floors").grid, [0.0, 1.0, 2.0, 3.0], atol=1e-12
    )
    built = explainer.dependence("built").grid
    assert (built[0], built[-1]) == (FRAME["built"].iloc[0], FRAME["built"].iloc[-1])
    assert (built == built.astype("datetime64[D]")).all()
    for found in (size, explainer.dependence("kind"), explainer.dependence("built")):
        assert not found.outside.any()
        assert found.n_background == N


def test_pairs_of_different_kinds(posterior, explainer):
    rows = FRAME.iloc[:5]
    dates = np.array(["2021-05-01", "2022-01-01"], dtype="datetime64[us]")
    found = explainer.dependence(("kind", "built"), (["room", "flat"], dates), rows)
    assert found.values.shape == (2, 2)
    assert found.cov.shape == (2, 2, 2, 2)
    for i, kind in enumerate(("room", "flat")):
        for j, date in enumerate(dates):
            mean, cov = brute_force(
                posterior, rows.assign(kind=kind), np.full(5, 0.2), "built", [date]
            )
            assert found.values[i, j] == pytest.approx(mean[0], rel=1e-12)
            assert found.cov[i, j, i, j] == pytest.approx(cov[0, 0], rel=1e-9)


def test_the_order_of_categories_is_the_one_given(explainer):
    some = explainer.dependence("kind", ["room", "flat"])
    every = explainer.dependence("kind")
    np.testing.assert_allclose(some.values, every.values[[2, 0]], rtol=1e-13)
    np.testing.assert_allclose(some.cov, every.cov[np.ix_([2, 0], [2, 0])], rtol=1e-9)


def test_columns_are_found_by_name_and_rows_keep_theirs(explainer):
    rows = FRAME.iloc[[7, 2, 11]].set_axis(["a", "b", "c"])
    one = explainer.dependence("size", 6, rows, kind="individual")
    two = explainer.dependence("size", 6, rows[rows.columns[::-1]], kind="individual")
    assert one.row_names == ("a", "b", "c")
    np.testing.assert_array_equal(one.values, two.values)
    frame = one.to_frame()
    assert frame["row"].tolist() == sorted(["a", "b", "c"] * 6)


def test_a_grid_does_not_shrink_with_the_background(explainer):
    """Few rows have few different values, but only a feature with few has no others."""
    low, high = FRAME["size"].min(), FRAME["size"].max()
    one = explainer.dependence("size", background=FRAME.iloc[:1])
    np.testing.assert_allclose(one.grid[[0, -1]], [low, high], rtol=1e-13)
    assert len(one.grid) == 50
    three = explainer.dependence("size", background=FRAME.iloc[:3])
    ends = [FRAME["size"].iloc[:3].min(), FRAME["size"].iloc[:3].max()]
    np.testing.assert_allclose(three.grid[[0, -1]], ends, rtol=1e-13)
    assert len(three.grid) == 50
    floors = explainer.dependence("floors", background=FRAME.iloc[:2])
    np.testing.assert_allclose(floors.grid, [0.0, 1.0, 2.0, 3.0], atol=1e-12)
