"""Pairs of features, and the operator of integrated Hessians."""

import numpy as np
import pytest

from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.operators import AffineMap, Baselines, IntegratedHessians, Marginals
from gpattr.operators.integrated_gradients import NO_MARGINALS
from gpattr.operators.pairs import (
    all_pairs,
    check_pairs,
    pairs_needed,
    pairs_within,
    sums_of_pairs,
)

FEEDS = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
RNG = np.random.default_rng(0)


def triangle(matrix, pairs):
    return np.array([matrix[i, j] for i, j in pairs])


def test_order_is_that_of_the_upper_triangle():
    assert list(all_pairs(4)) == list(zip(*np.triu_indices(4), strict=True))
    assert check_pairs("pairs", [(2, 0), np.array([1, 1])], 3) == ((0, 2), (1, 1))


def test_pairs_within_features_in_any_order():
    here, inner = pairs_within(all_pairs(4), [3, 1])
    assert [all_pairs(4)[at] for at in here] == [(1, 1), (1, 3), (3, 3)]
    assert inner == ((1, 1), (0, 1), (0, 0))


@pytest.mark.parametrize("chosen", [all_pairs(3), ((0, 2), (2, 2)), ((0, 0),), ((0, 1),)])
def test_sums_over_columns_are_those_of_the_matrix(chosen):
    columns = pairs_needed(FEEDS, chosen)
    G = RNG.normal(size=(4, 4))
    G = G + G.T
    truth = triangle(FEEDS.T @ G @ FEEDS, chosen)
    value = sums_of_pairs(FEEDS, columns, chosen).T @ triangle(G, columns)
    np.testing.assert_allclose(value, truth, atol=1e-14)


def test_what_is_asked_of_inner_functions():
    units = AffineMap(np.zeros(4), np.array([2.0, 3.0, 4.0, 5.0]), (0, 2, 0, 2), 3)
    operator = IntegratedHessians(np.zeros(3), pairs=[(0, 2)])
    inner = operator.in_units(units)
    assert inner.pairs_for(4) == [(0, 1), (0, 3), (1, 2), (2, 3)]
    np.testing.assert_array_equal(operator.pull_back(units, np.zeros(1)), np.ones((4, 1)))
    assert IntegratedHessians(np.zeros(3)).in_units(units).pairs is None
    encoded = IntegratedHessians(np.zeros(4), pairs=[(0, 0)]).encoded(FEEDS)
    assert encoded.pairs_for(4) == [(0, 0), (0, 2), (2, 2)]
    np.testing.assert_array_equal(encoded.gather(FEEDS), [[1.0], [2.0], [1.0]])
    alone = IntegratedHessians(np.zeros(4), pairs=[(0, 0)])
    np.testing.assert_array_equal(alone.gather(FEEDS), encoded.gather(FEEDS))


def test_labels_sizes_and_reference():
    operator = IntegratedHessians(np.zeros(3))
    assert operator.sizes(3) == (6,)
    assert operator.coordinates == {"pair": ("0,0", "0,1", "0,2", "1,1", "1,2", "2,2")}
    chosen = IntegratedHessians(Baselines(np.eye(3)), pairs=[(2, 1)])
    assert chosen.sizes(3) == (1,)
    assert chosen.coordinates == {"pair": ("1,2",)}
    assert len(chosen.reference.points) == 3
    assert chosen.axes == ("pair",)
    assert chosen.vanishes_on_constants


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("ab", "pairs: expected pairs of positions of features"),
        ([], "pairs: expected pairs of positions of features, such as"),
        ([(0, 1, 2)], r"pairs: expected pairs .* got \(0, 1, 2\)"),
        ([(0, -1)], "pairs: expected pairs .* counted from 0"),
        ([(True, 1)], "pairs: expected pairs .* counted from 0"),
        ([(0, 3)], r"pairs: expected positions below 3, got the pair \(0, 3\)"),
        ([(0, 1), (1, 0)], r"pairs: expected each pair once, got \(0, 1\) more than once"),
    ],
)
def test_bad_pairs(pairs, message):
    with pytest.raises(InvalidInputError, match=message):
        IntegratedHessians(np.zeros(3), pairs=pairs)


def test_refused_baselines():
    with pytest.raises(InvalidInputError) as refused:
        IntegratedHessians(Marginals(np.eye(3)))
    assert str(refused.value) == NO_MARGINALS
    with pytest.raises(UnsupportedModelError, match="jumps: integrated Hessians need values in"):
        IntegratedHessians(np.zeros(3), [1])
    with pytest.raises(InvalidInputError, match="baseline: expected 2 columns, got 3"):
        IntegratedHessians(np.zeros(3)).terms(np.zeros((1, 2)))
