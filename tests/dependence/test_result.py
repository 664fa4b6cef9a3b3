"""Dependences as people get them: tables, probabilities, draws, files, and what does not change."""

import json
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

from gpattr import Dependence, Explainer
from gpattr.encoders import Dates, Encoder
from gpattr.exceptions import (
    FileFormatError,
    InvalidInputError,
    MissingUncertaintyError,
    UnsupportedModelError,
)
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import EncodedPosterior, ExactPosterior, MixturePosterior

RNG = np.random.default_rng(6)
FRAME = pd.DataFrame(
    {
        "a": RNG.normal(size=20),
        "kind": np.array(["u", "v"])[np.arange(20) % 2],
        "when": pd.date_range("2024-01-01", periods=20, freq="D"),
    }
)
Y = np.sin(FRAME["a"]) + (FRAME["kind"] == "u")
ENCODER = Encoder(
    tuple(FRAME), {"kind": ("u", "v")}, dates={"when": Dates.of(FRAME["when"].to_numpy())}
)
CODES = ENCODER.encode("X", FRAME)
LENGTHS = 2.0 * CODES.std(axis=0)
ONE = EncodedPosterior(ExactPosterior(SquaredExponential(LENGTHS), CODES, Y, noise=0.1), ENCODER)
TWO = ExactPosterior(SquaredExponential(0.5 * LENGTHS), CODES, Y, noise=0.3)
BOTH = EncodedPosterior(MixturePosterior([ONE.posterior, TWO], [0.7, 0.3]), ENCODER)
EXPLAINER = Explainer(ONE)
FOUND = {
    "curve": EXPLAINER.dependence("a", [-3.0, -1.0, 0.5, 1.0]),
    "centred": EXPLAINER.dependence("a", 5, centred=True),
    "slope": EXPLAINER.dependence("a", 5, derivative=True),
    "individual": EXPLAINER.dependence("a", 5, FRAME.iloc[[3, 1]], kind="individual"),
    "surface": EXPLAINER.dependence(("a", "kind"), (4, ["v", "u"])),
    "categories": EXPLAINER.dependence("kind"),
    "dates": EXPLAINER.dependence("when", 4),
    "dates and categories": EXPLAINER.dependence(("when", "kind"), 3),
    "std": EXPLAINER.dependence("a", 5, uncertainty="std"),
    "none": EXPLAINER.dependence("a", 5, uncertainty="none"),
    "mixture": Explainer(BOTH).dependence("a", 5),
    "mixture, individual": Explainer(BOTH).dependence("a", 3, FRAME[:2], kind="individual"),
}


def every_array(found):
    distribution = found.distribution
    arrays = [found.error, *distribution.held().values()]
    arrays += [part for axis in found.axes for part in (axis.values, axis.data, axis.outside)]
    return arrays + ([] if found.cov_error is None else [found.cov_error])


@pytest.mark.parametrize("name", FOUND)
def test_files_restore_it_to_the_last_bit(name, tmp_path):
    found = FOUND[name]
    found.save(tmp_path / "curve.json")
    again = Dependence.load(tmp_path / "curve.json")
    assert again == found
    assert repr(again) == repr(found)
    assert type(again.distribution) is type(found.distribution)
    for one, two in zip(every_array(again), every_array(found), strict=True):
        assert one.dtype == two.dtype
        assert one.tobytes() == two.tobytes() or one.tolist() == two.tolist()
    json.dumps(found.to_dict())
    pd.testing.assert_frame_equal(again.to_frame(), found.to_frame(), check_exact=True)


def test_files_that_are_none_are_refused(tmp_path):
    path = tmp_path / "curve.json"
    FOUND["curve"].save(path)
    text = path.read_text()
    for broken in (text[: len(text) // 2], "[]", "{}", text.replace('"average"', "7")):
        path.write_text(broken)
        with pytest.raises(FileFormatError):
            Dependence.load(path)


@pytest.mark.parametrize("name", FOUND)
def test_it_is_immutable_and_can_be_pickled(name):
    found = FOUND[name]
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(FrozenInstanceError):
        found.kind = "individual"
    for array in every_array(found):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = array
    assert found != FOUND["surface" if name == "curve" else "curve"]
    assert found != 3


@pytest.mark.parametrize("name", FOUND)
def test_frames(name):
    found, frame = FOUND[name], FOUND[name].to_frame(0.9)
    value = "slope" if found.derivative else "value"
    assert len(frame) == found.values.size
    np.testing.assert_array_equal(frame[value], found.values.ravel())
    if found.std is not None:
        lower, upper = found.interval(0.9)
        np.testing.assert_array_equal(frame["std"], found.std.ravel())
        np.testing.assert_array_equal(frame["lower"], lower.ravel())
        np.testing.assert_array_equal(frame["upper"], upper.ravel())
    else:
        assert {"std", "lower", "upper"}.isdisjoint(frame)
    if not found.surface and found.kind == "average":
        assert frame[found.features[0]].tolist() == pd.Series(found.grid).tolist()
        assert frame["outside"].tolist() == found.outside.tolist()


def test_lines_of_frames_belong_to_their_values():
    surface, frame = FOUND["surface"], FOUND["surface"].to_frame()
    for i, a in enumerate(surface.grid[0]):
        for j, kind in enumerate(surface.grid[1]):
            line = frame[(frame["a"] == a) & (frame["kind"] == kind)]
            assert line["value"].tolist() == [surface.values[i, j]]
    each, frame = FOUND["individual"], FOUND["individual"].to_frame()
    assert each.row_names == (3, 1)
    for row in range(2):
        lines = frame[frame["row"] == each.row_names[row]]
        np.testing.assert_array_equal(lines["value"], each.values[row])
        np.testing.assert_array_equal(lines["a"], each.grid)


def test_shapes():
    shapes = {name: found.values.shape for name, found in FOUND.items()}
    assert shapes["curve"] == (4,)
    assert shapes["individual"] == (2, 5)
    assert shapes["surface"] == (4, 2)
    for found in FOUND.values():
        rows = found.values.shape[:1] if found.kind == "individual" else ()
        grid = found.values.shape[len(rows) :]
        if found.cov is not None:
            assert found.cov.shape == rows + grid + grid
            var = np.einsum("...ii->...i", found.cov.reshape(*rows, *2 * (int(np.prod(grid)),)))
            np.testing.assert_allclose(found.std.ravel() ** 2, var.ravel(), rtol=1e-12)


def test_what_is_not_known_is_not_made_up():
    std, none, cov = FOUND["std"], FOUND["none"], EXPLAINER.dependence("a", 5)
    np.testing.assert_allclose(std.std, cov.std, rtol=1e-10)
    np.testing.assert_allclose(none.values, cov.values, rtol=1e-12)
    assert std.cov is None
    assert none.std is None
    assert none.cov_error is None
    for call in (std.sample, std.prob_increasing, none.sample, none.prob_positive, none.interval):
        with pytest.raises(MissingUncertaintyError):
            call()


def test_probability_of_a_rise_by_hand():
    """P(f₂ > f₁) of two values that are jointly normal."""
    found = FOUND["curve"]
    mean, cov = found.values, found.cov

    def rise(weights):
        weights = np.array(weights)
        return norm.cdf(weights @ mean / np.sqrt(weights @ cov @ weights))

    assert found.prob_increasing() == pytest.approx(rise([-1, 0, 0, 1]), rel=1e-12)
    assert found.prob_increasing(-1.0, 0.5) == pytest.approx(rise([0, -1, 1, 0]), rel=1e-12)
    assert found.prob_increasing(0.5, -1.0) == pytest.approx(rise([0, 1, -1, 0]), rel=1e-12)
    between = found.prob_increasing(-2.0, 0.75)
    assert between == pytest.approx(rise([-0.5, -0.5, 0.5, 0.5]), rel=1e-12)
    # The same from the bivariate normal: all of the half-plane f₂ > f₁, turned into a quadrant.
    pair = np.ix_([0, 3], [0, 3])
    turn = np.array([[1.0, -1.0], [0.0, 1.0]])
    joint = multivariate_normal(turn @ mean[[0, 3]], turn @ cov[pair] @ turn.T)
    assert found.prob_increasing() == pytest.approx(joint.cdf([0.0, 50.0]), abs=1e-6)
    each = FOUND["individual"]
    both = each.prob_increasing(each.grid[1], each.grid[2])
    assert both.shape == (2,)
    for row in range(2):
        rise_here = np.eye(5)[2] - np.eye(5)[1]
        z = rise_here @ each.values[row] / np.sqrt(rise_here @ each.cov[row] @ rise_here)
        assert both[row] == pytest.approx(norm.cdf(z), rel=1e-12)


def test_probability_of_a_rise_between_categories_and_dates():
    kinds, dates = FOUND["categories"], FOUND["dates"]
    step = kinds.values[1] - kinds.values[0]
    spread = np.sqrt(np.array([-1, 1]) @ kinds.cov @ np.array([-1, 1]))
    assert kinds.prob_increasing("u", "v") == pytest.approx(norm.cdf(step / spread), rel=1e-12)
    weights = np.array([-1.0, 0, 0, 1.0])
    z = weights @ dates.values / np.sqrt(weights @ dates.cov @ weights)
    for ends in ((), tuple(dates.grid[[0, -1]]), ("2024-01-01", "2024-01-20")):
        assert dates.prob_increasing(*ends) == pytest.approx(norm.cdf(z), rel=1e-12)


def test_a_mixture_has_the_probabilities_of_its_parts():
    found = FOUND["mixture"]
    parts = [Explainer(EncodedPosterior(part, ENCODER)) for part in (ONE.posterior, TWO)]
    curves = [one.dependence("a", 5) for one in parts]
    shares = np.array([0.7, 0.3])
    for ask in ("prob_increasing", "prob_positive"):
        expected = sum(w * getattr(curve, ask)() for w, curve in zip(shares, curves))
        np.testing.assert_allclose(getattr(found, ask)(), expected, rtol=1e-10)
    mean = sum(w * curve.values for w, curve in zip(shares, curves))
    np.testing.assert_allclose(found.values, mean, rtol=1e-12)
    spread = sum(
        w * (curve.cov + np.outer(curve.values - mean, curve.values - mean))
        for w, curve in zip(shares, curves)
    )
    np.testing.assert_allclose(found.cov, spread, rtol=1e-9, atol=1e-12)


def test_probability_that_a_slope_is_positive():
    found = FOUND["slope"]
    np.testing.assert_allclose(
        found.prob_positive(), norm.cdf(found.values / found.std), rtol=1e-12
    )
    with pytest.raises(UnsupportedModelError, match="prob_positive"):
        found.prob_increasing()
    with pytest.raises(UnsupportedModelError, match="curve of one feature"):
        FOUND["surface"].prob_increasing()


@pytest.mark.parametrize(
    ("name", "ends", "words"),
    [
        (
            "curve",
            (-4.0, 0.0),
            "start: expected a value between the ends of the grid, -3.0 and 1.0",
        ),
        ("curve", (0.0, 1.5), "stop: expected a value between"),
        ("curve", (np.nan, 1.0), "start: expected a value between"),
        ("curve", ("low", 1.0), "start: expected a number, got 'low'"),
        ("curve", ([1, 2], 1.0), "start: expected a number"),
        ("categories", ("u", "w"), "stop: expected one of"),
        ("dates", ("soon", None), "start: expected a date, got 'soon'"),
        ("dates", (3.5, None), "start: expected a date, got 3.5"),
        ("dates", ("1999-01-01", None), "start: expected a value between"),
    ],
)
def test_ends_that_are_none(name, ends, words):
    with pytest.raises(InvalidInputError, match=words):
        FOUND[name].prob_increasing(*ends)


@pytest.mark.parametrize("name", ["curve", "individual", "surface", "mixture", "slope"])
def test_draws(name):
    """Their mean and covariance are those of the curve, within five standard errors."""
    found, n = FOUND[name], 4000
    draws = found.sample(n, random_state=1)
    assert draws.shape == (n, *found.values.shape)
    np.testing.assert_array_equal(draws, found.sample(n, random_state=1))
    error = np.abs(draws.mean(axis=0) - found.values)
    assert (error <= 5.0 * found.std / np.sqrt(n) + 1e-12).all()
    rows = len(found.values) if found.kind == "individual" else 1
    flat = draws.reshape(n, rows, -1)
    cov = found.cov.reshape(rows, flat.shape[2], flat.shape[2])
    for row in range(rows):
        own = np.cov(flat[:, row].T)
        sd = np.sqrt(np.diagonal(cov[row]))
        allowed = 6.0 * np.outer(sd, sd) * np.sqrt(2.0 / n) * (2.0 if name == "mixture" else 1.0)
        assert (np.abs(own - cov[row]) <= allowed).all()


def test_texts():
    assert repr(FOUND["curve"]).startswith(
        "Dependence on a: prediction, average over 20 rows\n  -3.0"
    )
    assert "(outside the data)" in repr(FOUND["curve"])
    assert "slope of the prediction" in repr(FOUND["slope"])
    assert "centred prediction" in repr(FOUND["centred"])
    assert "curves of 2 rows" in repr(FOUND["individual"])
    assert "4 × 2 values of a, kind" in repr(FOUND["surface"])
    assert "2024-01-20" in repr(FOUND["dates"])
    assert "±" not in repr(FOUND["none"])
    assert len(repr(EXPLAINER.dependence("a")).splitlines()) == 10
