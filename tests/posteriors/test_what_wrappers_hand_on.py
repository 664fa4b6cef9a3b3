"""Bounds, notes and memory of posteriors that are made of others: scaled, added up, said and split
as they must be.
"""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import gpattr
from gpattr._core.memory import blocks, memory_budget
from gpattr.adapters.registry import Adapted
from gpattr.adapters.verification import verify
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import SquaredExponential
from gpattr.operators import Gradient, IntegratedGradients
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    ExactPosterior,
    MixturePosterior,
)
from gpattr.posteriors.function_space_bound import FunctionSpaceBound

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 2))
ERROR, COV_ERROR = 3.0, 5.0


class DoubtfulBound(FunctionSpaceBound):
    def apply(self, X):
        result = super().apply(X)
        ones = np.ones(len(result.mean))
        cov_error = None if result.var is None else COV_ERROR * ones
        return replace(result, error=ERROR * ones, cov_error=cov_error)


class Doubtful(ExactPosterior):
    """An exact posterior that says its errors are large, which wrappers must hand on."""

    def bind(self, operator, evaluation):
        return DoubtfulBound.of(self, operator, evaluation)


def doubtful(scale=1.0, columns=2):
    return Doubtful(SquaredExponential(scale), RNG.normal(size=(20, columns)), X[:, 0], noise=0.1)


@pytest.mark.parametrize("uncertainty", ["cov", "std"])
def test_a_column_used_three_times_has_three_errors(uncertainty):
    posterior = AffinePosterior(
        doubtful(columns=4), np.zeros(4), np.ones(4), source=(0, 1, 1, 1), n_features=2
    )
    result = posterior.apply(IntegratedGradients(X[0]), X[1:3], uncertainty=uncertainty)
    np.testing.assert_allclose(result.error, 3 * ERROR)
    np.testing.assert_allclose(result.cov_error, 9 * COV_ERROR)


def test_errors_of_gradients_go_with_the_units():
    posterior = AffinePosterior(doubtful(), np.zeros(2), np.array([0.1, 4.0]))
    result = posterior.apply(Gradient(), X[1:3])
    np.testing.assert_allclose(result.error, 10 * ERROR)
    np.testing.assert_allclose(result.cov_error, 100 * COV_ERROR)


def test_errors_of_a_group_add_up():
    posterior = doubtful(columns=5)
    ex = gpattr.Explainer(posterior, np.zeros(5))(RNG.normal(size=(2, 5)))
    np.testing.assert_allclose(ex.error, ERROR)
    grouped = ex.group({"three": [0, 2, 4]})
    np.testing.assert_allclose(grouped.error, 3 * ERROR)
    np.testing.assert_allclose(grouped.cov_error, 9 * COV_ERROR)


def test_errors_of_a_difference_do_not_cancel():
    parts = [doubtful(0.5), doubtful(2.0)]
    result = CombinationPosterior(parts, [2.0, -2.0]).apply(IntegratedGradients(X[0]), X[1:3])
    np.testing.assert_allclose(result.error, 4 * ERROR)
    np.testing.assert_allclose(result.cov_error, 8 * COV_ERROR)


def test_notes_of_parts_are_said():
    part, other = doubtful(), doubtful(2.0)
    assert AffinePosterior(part, np.zeros(2), np.ones(2)).note == ""
    object.__setattr__(part, "note", "the data are synthetic")
    wrapped = AffinePosterior(part, np.zeros(2), np.ones(2))
    for whole in (
        part,
        wrapped,
        MixturePosterior([part, other]),
        CombinationPosterior([wrapped, wrapped], [1.0, 1.0]),
    ):
        assert whole.note == "the data are synthetic"
        assert gpattr.Explainer(whole, X[0])(X[1:2]).method.endswith("(the data are synthetic)")


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 0.1])
@pytest.mark.parametrize("what", [0, 1])
def test_a_model_that_predicts_something_else_or_nothing_is_refused(wrong, what):
    posterior = doubtful()

    def predict(points):
        mean, std = posterior.predict(points, return_std=True)
        result = [mean, std**2]
        result[what] = result[what] + wrong
        return tuple(result)

    adapted = Adapted(posterior, predict, posterior.inputs)
    with pytest.raises(
        UnsupportedModelError, match=["predictive mean", "predictive variance"][what]
    ):
        verify(adapted, "Model")


@pytest.mark.slow
def test_blocks_keep_to_the_budget():
    """A call takes its result and a few times the working memory, not the (rows, features, data)
    covariances at once.
    """
    with memory_budget(working=1000.0):
        assert list(blocks(25, 100.0)) == [slice(0, 10), slice(10, 20), slice(20, 25)]
        assert list(blocks(2, 5000.0)) == [slice(0, 1), slice(1, 2)]
    n, d, m, budget = 1500, 8, 400, 2.0**20
    posterior = ExactPosterior(
        SquaredExponential(3.0), RNG.normal(size=(m, d)), RNG.normal(size=m), noise=0.1
    )
    explainer, rows = gpattr.Explainer(posterior, np.zeros(d)), RNG.normal(size=(n, d))
    explainer(rows[:3])
    with memory_budget(working=budget):
        tracemalloc.start()
        explainer(rows)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    result, at_once = 8.0 * n * (d * d + 6 * d), 8.0 * n * d * m
    assert peak < 3 * result + 8 * budget < 0.5 * at_once
