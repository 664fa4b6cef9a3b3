import numpy as np
import pytest

from gpattr import Baselines
from gpattr.exceptions import InvalidInputError
from gpattr.operators import Gradient, IntegratedGradients, Paths, Points

X = np.arange(12.0).reshape(4, 3)


def test_paths_are_exact_at_both_ends():
    paths = Paths(np.array([[0.1, 1e9, -3.0]]), np.array([[0.7, 1e-9, 5.0]]))
    ends = paths.at(np.array([0.0, 1.0]))
    np.testing.assert_array_equal(ends[0], paths.start)
    np.testing.assert_array_equal(ends[1], paths.stop)


def test_sites_can_be_cut_and_stacked():
    shared, own = Paths(X[:1], X), Paths(X + 1, X)
    assert shared[1:3].shape == (2, 3)
    np.testing.assert_array_equal(own[np.array([2, 0])].start, X[[2, 0]] + 1)
    both = Paths.stack([shared, own])
    np.testing.assert_array_equal(both.start, np.vstack([np.repeat(X[:1], 4, axis=0), X + 1]))
    np.testing.assert_array_equal(Points.stack([Points(X), Points(X)[1:]]).X, np.vstack([X, X[1:]]))
    assert both.select(np.array([2, 0])).shape == (8, 2)
    assert Points(X).select(np.array([1])).X.ravel().tolist() == [1, 4, 7, 10]


def test_terms():
    assert [w for w, _ in IntegratedGradients(Baselines(X, [0.5, 0.0, 0.25, 0.25])).terms(X)] == [
        0.5,
        0.25,
        0.25,
    ]
    assert IntegratedGradients(X).rows(slice(1, 3)).terms(X[1:3])[0][1].shape == (2, 3)
    assert Gradient().terms(X)[0][1].shape == (4, 3)
    assert Gradient().rows(slice(0, 1)) == Gradient()


def test_baselines():
    assert Baselines(X).weights.tolist() == [0.25] * 4
    assert repr(Baselines(X)) == "Baselines(4 points × 3 features, equal weights)"
    assert (
        repr(Baselines(X[:2], [0.75, 0.25]))
        == "Baselines(2 points × 3 features, weights 0.25 to 0.75)"
    )
    with pytest.raises(
        InvalidInputError, match="weights: expected no negative weight, got -0.5 at position 1"
    ):
        Baselines(X, [0.5, -0.5, 0.5, 0.5])
    with pytest.raises(
        InvalidInputError, match="weights: expected weights that sum to 1, got a sum of 0.9"
    ):
        Baselines(X, [0.3, 0.2, 0.2, 0.2])
    with pytest.raises(InvalidInputError, match="weights: expected 4 weights .* got 3"):
        Baselines(X, [0.5, 0.25, 0.25])
    with pytest.raises(InvalidInputError, match="points: expected rows"):
        Baselines(X[0])


def test_bad_baselines_of_an_operator():
    with pytest.raises(InvalidInputError, match="baseline: expected 3 columns, got 2"):
        IntegratedGradients([1.0, 2.0]).terms(X)
    with pytest.raises(
        InvalidInputError, match=r"baseline: expected one row per row of X \(4\), got 2"
    ):
        IntegratedGradients(X[:2]).terms(X)


@pytest.mark.parametrize("jumps", [None, "2", 2, [2.0], ["a"], [-1], [True, False]], ids=repr)
def test_jumps_that_are_no_positions(jumps):
    with pytest.raises(InvalidInputError, match="jumps: expected positions of features"):
        IntegratedGradients(np.zeros(2), jumps=jumps)


def test_jumps_beyond_the_features():
    with pytest.raises(InvalidInputError, match=r"jumps: expected positions below 2, got \[5\]"):
        IntegratedGradients(np.zeros(2), jumps=[5]).terms(np.ones((1, 2)))
