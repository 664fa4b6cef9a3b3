"""Importance of probabilities, and intervals of their attributions, against brute force: draws of
the function itself.
"""

import numpy as np
import pytest
from scipy.special import expit

from gpattr import Baselines, Explainer, GPClassifier
from gpattr.exceptions import UnsupportedModelError
from gpattr.explainer import probability_importance as module
from gpattr.explainer.importance import importance_of
from gpattr.kernels import SquaredExponential
from gpattr.posteriors.jets import jets

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(40, 2))
LABELS = 2.0 * Z[:, 0] + Z[:, 1] ** 2 + RNG.normal(size=40) > 0.5
MODEL = GPClassifier(SquaredExponential([1.5, 2.5], 6.0), optimize=False).fit(Z, LABELS)
X = RNG.normal(size=(12, 2))
B = np.array([0.2, -0.1])


def brute_force(rows, S, T=33):
    """Draws (S, n, d) of the attributions of all rows together: f and its gradient at fine
    midpoints of all their paths.
    """
    t = (np.arange(T) + 0.5) / T
    points = (B + t[:, None, None] * (rows - B)).swapaxes(0, 1).reshape(-1, 2)
    mean, cov = jets(MODEL.posterior_, points[None])
    values, vectors = np.linalg.eigh(cov[0])
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    jet = mean[0].ravel() + np.random.default_rng(7).standard_normal((S, len(root))) @ root.T
    jet = jet.reshape(S, len(rows), T, 3)
    slope = expit(jet[..., 0]) * expit(-jet[..., 0])
    return (slope[..., None] * jet[..., 1:]).mean(axis=2) * (rows - B)


@pytest.fixture(scope="module")
def draws():
    return brute_force(X, 6000)


def test_importance_is_that_of_many_joint_draws(draws):
    got = Explainer(MODEL, B, output="probability", n_draws=4000).importance(X, n_samples=4000)
    sizes = np.abs(draws).mean(axis=1)
    assert (got.n_rows, got.n_joint_rows) == (12, 12)
    np.testing.assert_allclose(got.values, sizes.mean(axis=0), rtol=0.03)
    np.testing.assert_allclose(got.std, sizes.std(axis=0), rtol=0.08)
    np.testing.assert_allclose(
        got.interval(0.9), np.quantile(sizes, [0.05, 0.95], axis=0), rtol=0.1
    )


@pytest.mark.slow
def test_a_sample_of_rows_tells_the_spread(monkeypatch):
    rows = np.random.default_rng(2).normal(size=(60, 2))
    sizes = np.abs(brute_force(rows, 1500, 9)).mean(axis=1)
    monkeypatch.setattr(module, "TOGETHER", 200)
    got = Explainer(MODEL, B, output="probability", n_draws=500).importance(rows)
    assert 10 < got.n_joint_rows < 30
    assert got.note.startswith("spread from ")
    np.testing.assert_allclose(got.values, sizes.mean(axis=0), rtol=0.06)
    np.testing.assert_allclose(got.std, sizes.std(axis=0), rtol=0.4)


def test_rows_too_long_to_be_drawn_together(monkeypatch, draws):
    """Two rows are drawn on fewer panels than they want, or one whose spread is a bound."""
    sizes = np.abs(draws).mean(axis=1)
    explainer = Explainer(MODEL, B, output="probability", n_draws=1000)
    monkeypatch.setattr(module, "TOGETHER", 20)
    two = explainer.importance(X, n_samples=4000)
    assert two.n_joint_rows == 2
    np.testing.assert_allclose(two.values, sizes.mean(axis=0), rtol=0.05)
    np.testing.assert_allclose(two.std, sizes.std(axis=0), rtol=0.6)
    monkeypatch.setattr(module, "TOGETHER", 2)
    one = explainer.importance(X)
    assert one.n_joint_rows == 1
    np.testing.assert_allclose(one.values, sizes.mean(axis=0), rtol=0.05)
    # The standard deviation of a mean is at most the root mean square of those of its terms.
    bound = np.sqrt(np.abs(draws).var(axis=0).mean(axis=0))
    np.testing.assert_allclose(one.std, bound, rtol=0.1)
    assert (one.std > sizes.std(axis=0)).all()
    assert np.isinf(one.std_error).all()
    by_variance = explainer.importance(X, by="variance")
    assert np.isfinite(by_variance.std).all()


@pytest.mark.slow
def test_intervals_hold_what_they_say(draws):
    ex = Explainer(MODEL, B, output="probability", n_draws=500, random_state=3)(X)
    for level in (0.5, 0.8, 0.95):
        low, high = ex.interval(level)
        inside = ((draws >= low) & (draws <= high)).mean(axis=0)
        # Both ends are quantiles of 500 draws: the share between them varies by about √(level (1 −
        # level)/500).
        assert abs(inside.mean() - level) < 0.02
        assert np.abs(inside - level).max() < 5 * np.sqrt(level * (1 - level) / 500)


def test_parts_of_the_importance():
    explainer = Explainer(MODEL, B, output="probability", n_draws=200)
    ex = explainer(X)
    known, alone = importance_of(explainer.task, X, known=ex), explainer.importance(X)
    np.testing.assert_allclose(known.values, alone.values, rtol=1e-9)
    np.testing.assert_array_equal(
        explainer.importance(X, random_state=1).samples,
        explainer.importance(X, random_state=1).samples,
    )
    averaged = Explainer(MODEL, Baselines(Z[:3]), output="probability", n_draws=200).importance(X)
    assert (averaged.values > 0).all()
    several = GPClassifier(SquaredExponential(2.0, 4.0), optimize=False).fit(Z, np.arange(40) % 3)
    explainer = Explainer(several, output="probability", n_draws=50)
    with pytest.raises(UnsupportedModelError, match="single output"):
        explainer.importance(X)
    assert explainer["1"].importance(X).n_rows == 12
