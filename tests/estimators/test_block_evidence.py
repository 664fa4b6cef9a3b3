"""The evidence of blocks of rows: exact in each block, and what default models learn by it."""

import numpy as np
import pytest
import torch

from gpattr import GPRegressor, RandomFeatureGPRegressor, SparseGPRegressor
from gpattr.estimators.evidence import block as block_evidence
from gpattr.estimators.evidence.block import BlockEvidence
from gpattr.estimators.evidence.marginal_likelihood import NOISE, most_likely_constant
from gpattr.estimators.inducing import default_number, placed
from gpattr.kernels import Linear, SquaredExponential
from gpattr.means import Constant, Zero
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(3)
N, D = 90, 2
X = RNG.normal(size=(N, D))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 3.0 + 0.1 * RNG.normal(size=N)
KERNEL = SquaredExponential([0.8, 1.5], 2.0)


@pytest.mark.parametrize("free_mean", [False, True])
@pytest.mark.parametrize("noise", [None, np.linspace(0.01, 0.1, N)], ids=["learned", "known"])
def test_it_is_the_sum_of_the_evidences_of_its_blocks(monkeypatch, free_mean, noise):
    monkeypatch.setattr(block_evidence, "BLOCK_ROWS", 30)
    monkeypatch.setattr(block_evidence, "MOST_BLOCKS", 2)
    evidence = BlockEvidence.of_rows(X, Y, noise, free_mean, np.random.default_rng(0))
    level = 0.05 if noise is None else None
    value, gradient = evidence(KERNEL, level)
    assert [len(block.y) for block in evidence.blocks] == [30, 30]
    rows = np.concatenate([block.X for block in evidence.blocks])
    assert len(np.unique(rows, axis=0)) == 60  # no row is drawn twice
    expected = 0.0
    for block in evidence.blocks:
        known = 0.05 if noise is None else noise[[int(np.flatnonzero(y == Y)[0]) for y in block.y]]
        mean = (
            Constant(most_likely_constant(KERNEL, block.X, block.y, known)) if free_mean else Zero()
        )
        expected += ExactPosterior(
            KERNEL, block.X, block.y, noise=known, mean=mean
        ).log_marginal_likelihood
    assert value == pytest.approx(expected, rel=1e-10)
    h = 1e-5
    by_variance = [
        evidence(SquaredExponential([0.8, 1.5], 2.0 * np.exp(e)), level)[0] for e in (h, -h)
    ]
    assert gradient["variance"] == pytest.approx(
        (by_variance[0] - by_variance[1]) / (2 * h), rel=1e-6
    )
    if noise is None:
        by_noise = [evidence(KERNEL, 0.05 * np.exp(e))[0] for e in (h, -h)]
        assert gradient[NOISE] == pytest.approx((by_noise[0] - by_noise[1]) / (2 * h), rel=1e-6)


def test_one_block_has_all_rows_and_their_constant():
    evidence = BlockEvidence.of_rows(X, Y, None, True, np.random.default_rng(0))
    np.testing.assert_array_equal(evidence.blocks[0].X, X)
    assert evidence.constant(KERNEL, 0.05) == pytest.approx(
        most_likely_constant(KERNEL, X, Y, 0.05), rel=1e-12
    )
    assert (
        BlockEvidence.of_rows(X, Y, None, False, np.random.default_rng(0)).constant(KERNEL, 0.05)
        == 0.0
    )


@pytest.mark.slow
def test_default_models_learn_as_exact_ones_and_given_numbers_are_kept():
    exact = GPRegressor(hyperparameters="optimal").fit(X, Y)
    sparse = SparseGPRegressor(random_state=0).fit(X, Y)
    assert sparse.kernel_.lengthscale == pytest.approx(exact.kernel_.lengthscale, rel=1e-2)
    assert sparse.noise_variance_ == pytest.approx(exact.noise_variance_, rel=1e-2)
    assert len(sparse.inducing_) == N
    np.testing.assert_allclose(sparse.predict(X[:5]), exact.predict(X[:5]), rtol=1e-3)
    waves = RandomFeatureGPRegressor(random_state=0).fit(X, Y)
    assert waves.kernel_.lengthscale == pytest.approx(exact.kernel_.lengthscale, rel=1e-2)
    assert waves.n_frequencies_ == 200
    assert len(SparseGPRegressor(7, random_state=0).fit(X, Y).inducing_) == 7
    assert RandomFeatureGPRegressor(11, random_state=0).fit(X, Y).n_frequencies_ == 11
    assert (
        RandomFeatureGPRegressor(kernel=KERNEL, random_state=0).fit_chunks([(X, Y)]).n_frequencies_
        == 500
    )


def test_tensors_noise_per_row_and_several_blocks(monkeypatch):
    monkeypatch.setattr(block_evidence, "BLOCK_ROWS", 40)
    for kind in (SparseGPRegressor, RandomFeatureGPRegressor):
        here, there = (
            kind(random_state=0).fit(*data) for data in ((X, Y), map(torch.tensor, (X, Y)))
        )
        np.testing.assert_allclose(
            there.predict(torch.tensor(X[:5])), here.predict(X[:5]), rtol=1e-4
        )
    noise = np.where(X[:, 0] > 0, 0.01, 1.0)
    known = SparseGPRegressor(random_state=0).fit(X, Y, noise=noise)
    exact = GPRegressor(known.kernel_, mean=known.mean_, optimize=False).fit(X, Y, noise=noise)
    np.testing.assert_allclose(known.predict(X[:5]), exact.predict(X[:5]), rtol=1e-3)


def test_more_rows_have_more_of_them_up_to_a_limit():
    assert [default_number(n) for n in (10, 400, 2500, 10_000, 10**6)] == [
        200,
        200,
        500,
        1000,
        1000,
    ]
    rows = RNG.normal(size=(450, D))
    model = SparseGPRegressor(
        kernel=KERNEL, optimize=False, noise_variance=0.1, random_state=0
    ).fit(rows, rows[:, 0])
    assert len(model.inducing_) == 200  # they miss nothing
    short = SquaredExponential(0.1)
    model = SparseGPRegressor(kernel=short, optimize=False, noise_variance=0.1, random_state=0).fit(
        rows, rows[:, 0]
    )
    assert len(model.inducing_) == 212
    waves = RandomFeatureGPRegressor(kernel=KERNEL, optimize=False, noise_variance=0.1).fit(
        rows, rows[:, 0]
    )
    assert waves.n_frequencies_ == 212


def test_inducing_inputs_lie_where_the_kernel_changes():
    """A feature with a long length-scale is of no use to tell clusters apart."""
    generator = np.random.default_rng(0)
    wide = X * [1.0, 5.0]
    Z = placed("k-means", SquaredExponential([0.3, 300.0]), wide, 12, np.ones(D), generator)
    assert Z[:, 0].std() > 0.8 * wide[:, 0].std()
    assert Z[:, 1].std() < 0.7 * wide[:, 1].std()
    assert len(placed("greedy", KERNEL, X, 12, np.ones(D), generator)) == 12
    assert len(placed("k-means", Linear(), X, 12, np.ones(D), generator)) == 12
