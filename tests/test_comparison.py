"""Comparisons of explanations: exact differences against joint covariances, bounds, refusals."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import erfc, mp, quad, sqrt

import gpattr
from gpattr import Baselines, Explainer, compare, kernels
from gpattr._core.normal import prob_opposite
from gpattr.exceptions import (
    GpattrError,
    InvalidInputError,
    MissingUncertaintyError,
    SeveralOutputsError,
)
from gpattr.posteriors import ExactPosterior, MultiOutputPosterior

mpl.use("Agg")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
MODEL = ExactPosterior(kernels.SquaredExponential(lengthscale=[1.0, 2.0, 1.5]), X, Y, noise=0.1)
OTHER = ExactPosterior(kernels.Matern52(lengthscale=1.5), X, Y + 0.5 * X[:, 0], noise=0.2)
ROWS = X[:6]
A, B = np.array([0.2, -0.1, 0.3]), np.array([-0.8, 0.5, 0.1])


def together(attribution, first, second, weights):
    """Cov[A], Cov[B] and Cov[A, B], (n, d, d), from the joint covariance of all rows and points."""
    points = np.concatenate([first, second])
    n, d, k = len(ROWS), 3, len(points)
    rows, starts = np.repeat(ROWS, k, axis=0), np.tile(points, (n, 1))
    joint = Explainer(MODEL, A, attribution=attribution).joint(rows, baselines=starts)
    joint = joint.reshape(n, k, d, n, k, d)
    each = np.stack([joint[i, :, :, i] for i in range(n)])  # (n, k, d, k, d)
    return [
        np.einsum("a,naibj,b->nij", v, each, w)
        for v, w in ((weights[0], weights[0]), (weights[1], weights[1]), (weights[0], weights[1]))
    ]


@pytest.mark.parametrize("attribution", ["integrated_gradients", "shapley"])
@pytest.mark.parametrize("averaged", [False, True])
def test_one_function_at_two_baselines(attribution, averaged):
    first, second = (X[:2], X[5:8]) if averaged else (A[None], B[None])
    shares = np.array([0.25, 0.75]) if averaged else np.ones(1)
    weights = np.zeros((2, len(first) + len(second)))
    weights[0, : len(first)] = shares
    weights[1, len(first) :] = 1.0 / len(second)
    one, two = (
        Explainer(MODEL, baseline, attribution=attribution)
        for baseline in (Baselines(first, shares), Baselines(second))
    )
    if not averaged:
        one, two = (Explainer(MODEL, b, attribution=attribution) for b in (A, B))
    result = compare(one, two, ROWS, uncertainty="cov")
    C, D, between = together(attribution, first, second, weights)
    expected = C + D - between - between.transpose(0, 2, 1)
    assert result.dependence == "exact"
    np.testing.assert_allclose(result.distribution.cov, expected, rtol=1e-8, atol=1e-11)
    diagonal = np.diagonal(between, axis1=1, axis2=2)
    np.testing.assert_allclose(result.covariance, diagonal, rtol=1e-8, atol=1e-11)
    np.testing.assert_array_equal(result.values, two(ROWS).values - one(ROWS).values)
    exact = result.prob_sign_changed()
    moments = (one(ROWS).values, one(ROWS).var, two(ROWS).values, two(ROWS).var)
    np.testing.assert_allclose(exact, prob_opposite(*moments, diagonal), rtol=0, atol=1e-6)
    bounds = compare(one(ROWS), two(ROWS))
    assert bounds.dependence == "unknown"
    assert (bounds.std >= result.std - 1e-12).all()
    assert (bounds.prob_sign_changed() <= exact + 1e-9).all()


def test_opposite_signs_against_50_digits():
    def truth(m, v, m2, v2, c):
        """∫ φ(z) P(B has the other sign | A = m + √v z) dz."""
        mp.dps = 50
        m, v, m2, v2, c = map(mp.mpf, (m, v, m2, v2, c))
        rest = sqrt(v2 - c**2 / v)

        def density(z):
            mean = m2 + c / sqrt(v) * z
            above = erfc(-mean / rest / sqrt(2)) / 2
            wrong = 1 - above if m + sqrt(v) * z > 0 else above
            return mp.npdf(z) * wrong

        edge = -m / sqrt(v)
        turn = -m2 * sqrt(v) / c if c else edge
        return quad(density, sorted({-12, edge, turn, -edge, 0, 12}))

    rng = np.random.default_rng(1)
    for _ in range(12):
        s, s2, rho = rng.uniform(0.3, 2.0), rng.uniform(0.3, 2.0), rng.uniform(-0.99, 0.99)
        m, m2 = rng.normal(size=2)
        moments = (m, s**2, m2, s2**2, rho * s * s2)
        given_ = prob_opposite(*(np.array([value]) for value in moments))[0]
        np.testing.assert_allclose(given_, float(truth(*moments)), rtol=1e-12, atol=1e-14)


@given(
    m=st.floats(-3, 3),
    m2=st.floats(-3, 3),
    s=st.floats(0, 3),
    s2=st.floats(0, 3),
    r=st.floats(-1, 1),
)
@settings(max_examples=200, deadline=None)
def test_laws_of_opposite_signs(m, m2, s, s2, r):
    def chance(m, s, m2, s2, r):
        return prob_opposite(*(np.array([v]) for v in (m, s**2, m2, s2**2, r * s * s2)))[0]

    p = chance(m, s, m2, s2, r)
    assert 0.0 <= p <= 1.0
    np.testing.assert_allclose(p, chance(m2, s2, m, s, r), rtol=0, atol=1e-12)  # either first
    np.testing.assert_allclose(p, chance(-m, s, -m2, s2, r), rtol=0, atol=1e-12)
    np.testing.assert_allclose(p, 1.0 - chance(-m, s, m2, s2, -r), rtol=0, atol=1e-12)


def test_separate_models_are_independent():
    one, two = (Explainer(model, A)(ROWS) for model in (MODEL, OTHER))
    result = compare(one, two)
    assert result.dependence == "independent"
    np.testing.assert_allclose(result.distribution.cov, one.cov + two.cov, rtol=1e-15)
    draws = np.random.default_rng(0).standard_normal((2, 200_000, *one.shape))
    signs = (one.values + one.std * draws[0]) * (two.values + two.std * draws[1]) < 0
    np.testing.assert_allclose(result.prob_sign_changed(), signs.mean(axis=0), rtol=0, atol=0.006)
    both = compare(*(Explainer(model, A) for model in (MODEL, OTHER)), ROWS)
    np.testing.assert_array_equal(both.values, result.values)
    assert both.dependence == "independent"
    assert compare(one, two, dependence="unknown").dependence == "unknown"


def test_the_same_model_made_twice_is_one_function():
    again = ExactPosterior(MODEL.kernel, X, Y, noise=0.1)
    result = compare(Explainer(MODEL, A), Explainer(again, B), ROWS)
    assert result.dependence == "exact"
    same = compare(Explainer(MODEL, A), Explainer(MODEL, A), ROWS)
    assert (same.values == 0).all()
    assert (same.std < 1e-6).all()


def test_features_are_matched_by_name():
    names = ["a", "b", "c"]
    frame = pd.DataFrame(ROWS, columns=names)
    one = Explainer(MODEL, A, feature_names=names)(frame)
    two = one[:, ["c", "a", "b"]]
    np.testing.assert_array_equal(compare(one, two).values, np.zeros(one.shape))


def test_text_frames_and_pictures():
    one, two = Explainer(MODEL, A), Explainer(MODEL, B, baseline_name="the other")
    result = compare(one, two, ROWS)
    frame = result.to_frame(0.8)
    assert len(frame) == 18
    assert (frame["difference"] == frame["second"] - frame["first"]).all()
    assert (frame["sign_changed"] == (frame["prob_sign_changed"] >= 0.8)).all()
    assert "exact, with the covariance" in repr(result)
    assert "then the other" in result._repr_html_()
    assert "are upper bounds" in repr(compare(one(ROWS[:1]), two(ROWS[:1])))
    ax = result.plot(2)
    assert [text.get_text() for text in ax.get_yticklabels()] != []
    with pytest.raises(InvalidInputError, match="row: expected the position of one of 6 rows"):
        result.plot()
    bare = compare(one(ROWS, uncertainty="none"), two(ROWS, uncertainty="none"))
    assert "sign_changed" in bare.to_frame()
    assert "std" not in bare.to_frame()
    bare.plot(0)
    with pytest.raises(MissingUncertaintyError, match="prob_sign_changed"):
        bare.prob_sign_changed()
    with pytest.raises(ValueError, match="read-only"):
        result.values[0, 0] = 1.0


def test_probabilities_and_draws():
    labels = (X[:, 0] > 0).astype(int)
    model = gpattr.GPClassifier(kernel=kernels.SquaredExponential(), optimize=False).fit(X, labels)
    one, two = (Explainer(model, b, output="probability", n_draws=50) for b in (A, B))
    result = compare(one, two, ROWS)
    assert result.dependence == "unknown"
    assert np.isfinite(result.prob_sign_changed()).all()


def test_what_is_exactly_zero_has_no_sign():
    rows = ROWS.copy()
    rows[:, 1] = A[1]
    result = compare(Explainer(MODEL, A), Explainer(OTHER, A), rows)
    assert (result.prob_sign_changed()[:, 1] == 0).all()
    assert (
        compare(Explainer(MODEL, A), Explainer(MODEL, B), rows).prob_sign_changed()[:, 1] == 0
    ).all()


def test_refusals():
    ex = Explainer(MODEL, A)(ROWS)
    several = Explainer(MultiOutputPosterior({"p": MODEL, "q": OTHER}), A)
    wrong = [
        ((ex, ex[:3]), {}, "ex_b: expected the same 6 rows"),
        (
            (ex, Explainer(MODEL, A)(ROWS + 1.0)),
            {},
            "ex_b: expected the same rows as in ex_a; row 0",
        ),
        ((ex, ex[:, :2]), {}, "ex_b: expected the features"),
        ((ex, replace(ex, quantity="price")), {}, "ex_b: expected the quantity 'prediction'"),
        (
            (ex, Explainer(MODEL, A, attribution="shapley")(ROWS)),
            {},
            "ex_b: expected the attribution",
        ),
        ((ex, 3), {}, "ex_b: expected a gpattr Explanation"),
        ((None, ex), {}, "ex_a: expected a gpattr Explanation"),
        ((ex, ex, ROWS), {}, "X: expected rows only with two explainers"),
        ((Explainer(MODEL, A), ex), {}, "ex_b: expected an Explainer"),
        ((Explainer(MODEL, A), Explainer(MODEL, B)), {}, "X: two explainers"),
        ((ex, ex), {"dependence": "some"}, "dependence: expected one of"),
    ]
    for arguments, options, words in wrong:
        with pytest.raises(GpattrError, match=words):
            compare(*arguments, **options)
    with pytest.raises(SeveralOutputsError, match="ex_a: a comparison is of one output"):
        compare(several(ROWS), several(ROWS))
