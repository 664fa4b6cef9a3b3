"""The covariance between rows of each feature: in blocks, for posteriors of one's own, and with bad
input.
"""

import numpy as np
import pytest
import torch

from gpattr import memory_budget
from gpattr.bases import Fourier
from gpattr.exceptions import InvalidInputError, TooLargeError
from gpattr.kernels import SquaredExponential
from gpattr.means import Linear
from gpattr.operators import Baselines, IntegratedGradients
from gpattr.posteriors import (
    Bound,
    CombinationPosterior,
    Evaluation,
    ExactPosterior,
    MixturePosterior,
    WeightSpacePosterior,
    bound,
)

RNG = np.random.default_rng(2)
Z, X, B = RNG.normal(size=(15, 4)), RNG.normal(size=(11, 4)), RNG.normal(size=(11, 4))
G = RNG.normal(size=(4, 3))
KERNEL = SquaredExponential([1.0, 1.5, 2.0, 3.0])
EXACT = ExactPosterior(KERNEL, Z, Z[:, 0], noise=0.1)
POSTERIORS = {
    "exact": EXACT,
    "trend": ExactPosterior(
        KERNEL, Z, Z[:, 0], noise=0.1, mean=Linear(np.zeros(4), covariance="flat")
    ),
    "tensors": ExactPosterior(KERNEL, torch.tensor(Z), torch.tensor(Z[:, 0]), noise=0.1),
    "mixture": MixturePosterior([EXACT, ExactPosterior(KERNEL, Z, Z[:, 1], noise=0.5)]),
    "waves": WeightSpacePosterior(
        Fourier(RNG.normal(size=(6, 4))), RNG.normal(size=12), np.eye(12)
    ),
    "combination": CombinationPosterior([EXACT, EXACT], [2.0, -1.0]),
}
OPERATORS = {
    "point": IntegratedGradients(B[0]),
    "a baseline for each row": IntegratedGradients(B),
    "weighted baselines": IntegratedGradients(Baselines(B[:2], [0.7, 0.3])),
}


def expected(posterior, operator, gather):
    gather = np.eye(4) if gather is None else gather
    return np.einsum("njmk,ji,ki->inm", np.asarray(posterior.joint(operator, X)), gather, gather)


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("gather", [None, G])
def test_blocks_do_not_matter(name, operator, gather):
    posterior, operator = POSTERIORS[name], OPERATORS[operator]
    truth = expected(posterior, operator, gather)
    with memory_budget(working=1500):
        got = np.asarray(posterior.rows_covariance(operator, X, gather))
    np.testing.assert_allclose(got, truth, atol=1e-11)
    np.testing.assert_array_equal(got, np.swapaxes(got, 1, 2))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("together", [1, 40, 1000])
def test_a_posterior_of_ones_own_needs_joint_only(operator, together, monkeypatch):
    """What every posterior inherits asks `joint`, of two blocks of rows at a time."""
    monkeypatch.setattr(bound, "TOGETHER", together)
    for name in ("exact", "tensors"):
        asked = POSTERIORS[name].bind(OPERATORS[operator], Evaluation("none"))
        got = Bound.rows_covariance(asked, POSTERIORS[name].rows("X", X), G)
        np.testing.assert_allclose(
            np.asarray(got), expected(EXACT, OPERATORS[operator], G), atol=1e-11
        )
    asked = EXACT.bind(OPERATORS["point"], Evaluation("none"))
    one = Bound.rows_covariance(asked, X[:1])
    np.testing.assert_allclose(
        one[:, 0, 0], EXACT.apply(OPERATORS["point"], X[:1]).var[0], atol=1e-12
    )


def test_bad_input():
    for gather, got in ((np.eye(3), r"\(3, 3\)"), (np.ones(4), r"\(4,\)")):
        with pytest.raises(
            InvalidInputError, match=rf"gather: expected an array of shape \(4, r\), got {got}"
        ):
            EXACT.rows_covariance(OPERATORS["point"], X, gather)
    with pytest.raises(InvalidInputError, match="gather: expected finite numbers"):
        EXACT.rows_covariance(OPERATORS["point"], X, np.full((4, 1), np.nan))
    with (
        memory_budget(result=1000),
        pytest.raises(TooLargeError, match="covariance between rows .* use fewer rows"),
    ):
        EXACT.rows_covariance(OPERATORS["point"], X)
