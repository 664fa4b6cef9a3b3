"""The reference itself: games whose values are known, and values of shap.

Every game is a sum of unanimity games, v(S) = 1 where S contains T and 0 elsewhere. Their Shapley
values are 1/|T| for players in T, their interaction index 1/(|T| − 1) for pairs in T, and their
Shapley–Taylor index of order two 1/C(|T|, 2), or 1 for a single player.
"""

from itertools import combinations
from math import comb

import mpmath as mp
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from tests.reference import coalitions, hessians

from gpattr import Baselines
from gpattr.operators import Marginals

RNG = np.random.default_rng(0)


def unanimity(P):
    for size in range(1, P + 1):
        for T in combinations(range(P), size):
            inside = np.isin(np.arange(P), T)
            values = (coalitions.members(P) | ~inside).all(axis=1) * 1.0
            yield inside * 1.0, values


@pytest.mark.parametrize("P", [1, 2, 3, 4, 6])
def test_unanimity_games(P):
    diagonal = np.eye(P, dtype=bool)
    for inside, values in unanimity(P):
        size, pairs = int(inside.sum()), np.outer(inside, inside)
        np.testing.assert_allclose(
            coalitions.shapley_weights(P) @ values, inside / size, atol=1e-15
        )
        index = coalitions.interaction_weights(P) @ values
        expected = np.where(diagonal, 0.0, pairs / max(size - 1, 1) / 2.0)
        np.testing.assert_allclose(index[~diagonal], expected[~diagonal], atol=1e-15)
        np.testing.assert_allclose(index.sum(axis=1), inside / size, atol=1e-15)
        taylor = coalitions.taylor_weights(P) @ values
        expected = pairs / comb(max(size, 2), 2) / 2.0
        expected[diagonal] = inside if size == 1 else 0.0
        np.testing.assert_allclose(taylor, expected, atol=1e-15)
        assert taylor.sum() == pytest.approx(1.0, abs=1e-14)


def test_two_players_by_hand():
    """φ₁ = ½(f(x₁, b₂) − f(b)) + ½(f(x) − f(b₁, x₂)), and its variance, written out."""
    f = {(0.0, 0.0): 1.0, (2.0, 0.0): 4.0, (0.0, 3.0): -2.0, (2.0, 3.0): 9.0}
    root = RNG.normal(size=(4, 4))
    cov = root @ root.T

    def joint(points):
        place = [list(f).index(tuple(point)) for point in points]
        return np.array([f[tuple(point)] for point in points]), cov[np.ix_(place, place)]

    result = coalitions.truth(joint, [[2.0, 3.0]], np.zeros(2))
    np.testing.assert_allclose(result.mean, [[0.5 * (4 - 1) + 0.5 * (9 + 2), -1.5 + 0.5 * (9 - 4)]])
    w = np.array([-0.5, 0.5, -0.5, 0.5])  # of φ₁, in the order of f
    assert result.cov[0, 0, 0] == pytest.approx(w @ cov @ w)
    pairs = coalitions.truth(joint, [[2.0, 3.0]], np.zeros(2), index="shapley")
    half = 0.5 * (9 - 4 + 2 + 1)
    np.testing.assert_allclose(pairs.mean[0], [3.0, half, half, -3.0])
    together = coalitions.truth(joint, [[2.0, 3.0]], np.zeros(2), owner=[0, 0])
    np.testing.assert_allclose(together.mean, [[8.0]])


def test_backgrounds_by_hand():
    """A product of marginals of two rows is the set of their four combinations."""
    rows, x = np.array([[0.0, 1.0], [2.0, 5.0]]), np.array([[3.0, -1.0]])

    def joint(points):
        return points[:, 0] * points[:, 1], np.eye(len(points))

    weights = np.array([0.25, 0.75])
    independent = coalitions.truth(joint, x, Marginals(rows, weights))
    by_hand = Baselines([[0, 1], [0, 5], [2, 1], [2, 5]], [1 / 16, 3 / 16, 3 / 16, 9 / 16])
    apart = coalitions.truth(joint, x, by_hand)
    np.testing.assert_allclose(independent.mean, apart.mean, atol=1e-14)
    np.testing.assert_allclose(independent.joint, apart.joint, atol=1e-14)
    # E b = (1.5, 4): φ₁ = ½(3 − 1.5)(4 − 1)
    np.testing.assert_allclose(independent.mean, [[2.25, (-1 - 4) * (3 + 1.5) / 2]])
    # Drawn together they have a covariance, and one player takes it all.
    together = coalitions.truth(joint, x, Marginals(rows, weights), owner=[0, 0])
    np.testing.assert_allclose(together.mean, [[-3.0 - 0.75 * 10.0]])


def test_means_of_shap():
    shap = pytest.importorskip("shap")
    X = RNG.normal(size=(30, 4))
    model = GaussianProcessRegressor(RBF([1.0, 2.0, 1.5, 3.0]), alpha=0.1, normalize_y=True)
    model.fit(X, 10.0 + X[:, 0] * X[:, 1] + np.sin(X[:, 2] * X[:, 3]) + X[:, 0] * X[:, 2] * X[:, 3])
    background = X[:7]
    explainer = shap.ExactExplainer(
        model.predict, shap.maskers.Independent(background, max_samples=100)
    )
    joint = coalitions.joint_of(model)
    result = coalitions.truth(joint, X[10:12], Baselines(background))
    np.testing.assert_allclose(result.mean, explainer(X[10:12]).values, atol=1e-11)
    taylor = coalitions.truth(joint, X[10:12], Baselines(background), index="taylor")
    pairs = explainer(X[10:12], interactions=True).values
    np.testing.assert_allclose(taylor.mean.reshape(2, 4, 4), pairs, atol=1e-11)
    index = coalitions.truth(joint, X[10:12], Baselines(background), index="shapley")
    assert np.abs(index.mean.reshape(2, 4, 4) - pairs).max() > 1e-3


def test_hessians_of_a_polynomial_by_mpmath():
    powers, c = [(2, 1, 0), (0, 1, 3), (1, 1, 1), (4, 0, 0), (0, 0, 1)], [1.0, -2.0, 0.5, 0.3, 2.0]
    x, b = np.array([1.2, -0.7, 0.9]), np.array([0.3, 0.5, -0.4])

    def f(*point):
        return mp.fsum(
            v * mp.fprod(mp.mpf(u) ** e for u, e in zip(point, es)) for es, v in zip(powers, c)
        )

    def along(orders, s):
        return mp.diff(f, tuple(b + float(s) * (x - b)), orders)

    exact = hessians.hessian_of_polynomial(powers, c, x, b)
    for i, j in ((0, 1), (1, 1), (2, 0)):
        orders = tuple(int(v) for v in np.eye(3)[i] + np.eye(3)[j])
        first = tuple(int(v) for v in np.eye(3)[i])
        value = mp.quad(
            lambda s: -s * mp.log(s) * along(orders, s) * (x - b)[i] * (x - b)[j], [0, 1]
        )
        if i == j:
            value += mp.quad(lambda s: -mp.log(s) * along(first, s) * (x - b)[i], [0, 1])
        assert exact[i, j] == pytest.approx(float(value), abs=1e-9)
    values = hessians.integrated_hessian(x, b, 0.1)
    at = np.array([float(f(*point)) for point in values.points])
    np.testing.assert_allclose(values.mean(at)[0].reshape(3, 3), exact, atol=1e-8)
    assert exact.sum() == pytest.approx(float(f(*x) - f(*b)), abs=1e-12)
