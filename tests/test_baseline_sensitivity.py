"""Sensitivity to the baseline: against a loop over baselines, laws, memory and refusals."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpattr
from gpattr import Baselines, Explainer, kernels, memory_budget
from gpattr.encoders import Encoder
from gpattr.exceptions import GpattrError, InvalidInputError, UnsupportedModelError
from gpattr.posteriors import EncodedPosterior, ExactPosterior, MultiOutputPosterior

mpl.use("Agg")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
MODEL = ExactPosterior(kernels.SquaredExponential(lengthscale=[1.0, 2.0, 1.5]), X, Y, noise=0.1)
ROWS, SET = X[:5], X[10:17]
OWN = np.array([0.1, 0.2, -0.3])


@pytest.mark.parametrize("attribution", ["integrated_gradients", "shapley"])
def test_against_a_loop(attribution):
    explainer = Explainer(MODEL, OWN, attribution=attribution)
    result = explainer.baseline_sensitivity(ROWS, SET)
    each = np.stack([Explainer(MODEL, b, attribution=attribution)(ROWS).values for b in SET])
    own = explainer(ROWS).values
    np.testing.assert_allclose(result.values, own, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(result.lowest, each.min(axis=0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(result.highest, each.max(axis=0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(result.std, each.std(axis=0), rtol=1e-8, atol=1e-10)
    share = (np.sign(each) == np.sign(own)).mean(axis=0)
    np.testing.assert_allclose(result.same_sign, share, rtol=1e-12)
    np.testing.assert_array_equal(result.sign_holds, share == 1.0)
    averaged = Explainer(MODEL, Baselines(SET), attribution=attribution)(ROWS).values
    np.testing.assert_allclose(result.mean, averaged, rtol=1e-10, atol=1e-12)


@given(weights=st.lists(st.floats(0.0, 1.0), min_size=7, max_size=7), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_mean_is_the_attribution_of_the_whole_set(weights, seed):
    shares = np.array(weights) + 1e-3
    shares /= shares.sum()
    rows = np.random.default_rng(seed).normal(size=(3, 3))
    chosen = Baselines(SET, shares)
    result = Explainer(MODEL, OWN).baseline_sensitivity(rows, chosen)
    expected = Explainer(MODEL, chosen)(rows, uncertainty="none").values
    np.testing.assert_allclose(result.mean, expected, rtol=0, atol=1e-10)
    assert (result.lowest <= result.mean + 1e-12).all()
    assert (result.mean <= result.highest + 1e-12).all()
    assert (result.std <= 0.5 * (result.highest - result.lowest) + 1e-9).all()


def test_blocks_do_not_matter():
    whole = Explainer(MODEL, OWN).baseline_sensitivity(ROWS, SET)
    with memory_budget(working=5000.0):
        parts = Explainer(MODEL, OWN).baseline_sensitivity(ROWS, SET)
    for name in ("values", "lowest", "highest", "mean", "std", "same_sign"):
        np.testing.assert_allclose(
            getattr(parts, name), getattr(whole, name), rtol=1e-10, atol=1e-12
        )


def test_zeros_have_no_sign():
    points = SET.copy()
    points[:3, 0] = ROWS[0, 0]  # three of seven have the row's own value
    result = Explainer(MODEL, OWN).baseline_sensitivity(ROWS[:1], points)
    signs = np.sign([Explainer(MODEL, b)(ROWS[:1]).values[0, 0] for b in points])
    assert (signs[:3] == 0).all()
    expected = (signs[3:] == np.sign(result.values[0, 0])).mean()
    np.testing.assert_allclose(result.same_sign[0, 0], expected, rtol=1e-12)
    own = Explainer(MODEL, ROWS[0]).baseline_sensitivity(ROWS[:1], SET)
    assert (own.values == 0).all()
    assert (own.same_sign == 0).all()
    all_zero = Explainer(MODEL, ROWS[0]).baseline_sensitivity(ROWS[:1], ROWS[:1])
    assert all_zero.sign_holds.all()


def test_default_set_is_a_sample_that_stays():
    rows = RNG.normal(size=(150, 2))
    model = ExactPosterior(kernels.SquaredExponential(), rows, rows[:, 0], noise=0.1)
    one, two = (Explainer(model).baseline_sensitivity(rows[:2]) for _ in range(2))
    assert one.n_baselines == 100
    np.testing.assert_array_equal(one.mean, two.mean)


def test_categories_probabilities_and_tensors():
    frame = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 0, "u", "v")})
    encoder = Encoder(("a", "kind"), {"kind": ("u", "v")})
    inner = ExactPosterior(kernels.SquaredExponential(), encoder.encode("X", frame), Y, noise=0.1)
    model = EncodedPosterior(inner, encoder)
    result = Explainer(model).baseline_sensitivity(frame[:4], frame[5:9])
    expected = Explainer(model, Baselines(frame[5:9]))(frame[:4]).values
    np.testing.assert_allclose(result.mean, expected, rtol=0, atol=1e-10)
    assert result.feature_names == ("a", "kind")
    labels = (X[:, 0] > 0).astype(int)
    classifier = gpattr.GPClassifier(kernel=kernels.SquaredExponential(), optimize=False)
    classifier.fit(X, labels)
    chances = Explainer(classifier, OWN, output="probability")
    averaged = Explainer(classifier, Baselines(SET), output="probability")
    np.testing.assert_allclose(
        chances.baseline_sensitivity(ROWS, SET).mean,
        averaged(ROWS, uncertainty="none").values,
        rtol=0,
        atol=1e-7,  # of quadrature
    )
    torch = pytest.importorskip("torch")
    tensors = ExactPosterior(MODEL.kernel, torch.as_tensor(X), torch.as_tensor(Y), noise=0.1)
    moved = Explainer(tensors, OWN).baseline_sensitivity(torch.as_tensor(ROWS), SET)
    reference = Explainer(MODEL, OWN).baseline_sensitivity(ROWS, SET)
    np.testing.assert_allclose(moved.mean, reference.mean, rtol=1e-9, atol=1e-11)


def test_text_frames_and_pictures():
    result = Explainer(MODEL, OWN).baseline_sensitivity(
        pd.DataFrame(ROWS, index=list("pqrst")), SET
    )
    frame = result.to_frame()
    assert len(frame) == 15
    assert set(frame["row"]) == set("pqrst")
    flipped = result.to_frame(flipped=True)
    assert len(flipped) == (~result.sign_holds).sum()
    assert "7 baselines" in repr(result)
    assert "same sign" in repr(Explainer(MODEL, OWN).baseline_sensitivity(ROWS[:1], SET))
    assert "<table>" in result._repr_html_()
    result.plot(2)
    for row in (None, 9, -1, "p"):
        with pytest.raises(InvalidInputError, match="row: expected"):
            result.plot(row)
    with pytest.raises(ValueError, match="read-only"):
        result.mean[0, 0] = 1.0


def test_refusals():
    explainer = Explainer(MODEL, OWN)
    for baselines, words in (
        (np.zeros((2, 2)), "baselines: expected 3 columns"),
        (np.full((2, 3), np.nan), "baselines: expected finite numbers"),
        (np.empty((0, 3)), "baselines: expected at least one row"),
        ("mean", "baselines: expected"),
        (gpattr.Marginals(X), "baselines: expected rows or gpattr.Baselines"),
        (Baselines(np.zeros((2, 2))), "baselines: expected points with 3 features"),
    ):
        with pytest.raises(GpattrError, match=words):
            explainer.baseline_sensitivity(ROWS, baselines)
    gradient = Explainer(MODEL, attribution=gpattr.operators.Gradient())
    with pytest.raises(GpattrError, match="baselines: Gradient has its own baseline"):
        gradient.baseline_sensitivity(ROWS, SET)
    several = Explainer(MultiOutputPosterior({"p": MODEL, "q": MODEL}))
    with pytest.raises(UnsupportedModelError, match="single output"):
        several.baseline_sensitivity(ROWS)
