"""Promises about memory, by measured peaks: temporaries keep to the working budget, streams and
importances do not grow with their rows.
"""

import threading
import tracemalloc

import numpy as np
import pytest

from gpattr import (
    Explainer,
    HilbertGPRegressor,
    RandomFeatureGPRegressor,
    memory_budget,
)
from gpattr._core import workers
from gpattr._core.memory import blocks, budget_in_force
from gpattr.explainer import importance
from gpattr.kernels import Matern52, RationalQuadratic, SquaredExponential
from gpattr.posteriors import ExactPosterior, LaplacePosterior, SparsePosterior

N, D, M = 1000, 4, 200
BUDGET = 2.0**18
RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(N, D)), RNG.normal(size=(M, D))
TARGETS = np.sin(Z[:, 0]) + 0.1 * RNG.normal(size=M)


def exact(kernel):
    return Explainer(ExactPosterior(kernel, Z, TARGETS, noise=0.1), np.zeros(D))


def stream(n_chunks):
    """Chunks that exist one at a time."""
    rng = np.random.default_rng(1)
    for _ in range(n_chunks):
        chunk = rng.normal(size=(500, D))
        yield chunk, np.sin(chunk[:, 0])


def waves(n_chunks):
    model = RandomFeatureGPRegressor(100, kernel=SquaredExponential(2.0), random_state=0)
    return model.fit_chunks(stream(n_chunks))


MANY = RNG.normal(size=(20 * N, D))
MANY_TARGETS = np.sin(MANY[:, 0])


def sparse(rows=20 * N):
    return SparsePosterior.fit(
        SquaredExponential(2.0), Z[:40], MANY[:rows], MANY_TARGETS[:rows], noise=0.1
    )


def boxed():
    model = HilbertGPRegressor(
        8, domain=(-6.0, 6.0), kernel=SquaredExponential(2.0), optimize=False
    )
    return model.fit(MANY[:, :2], MANY_TARGETS)


def measured(call, working):
    """Return the bytes that a call takes beyond what it returns, and at its peak."""
    with memory_budget(working=working):
        tracemalloc.start()
        try:
            result = call()
            held, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    del result
    return peak - held, peak


SE, MATERN = exact(SquaredExponential(3.0)), exact(Matern52(2.0))
PRODUCT = exact(SquaredExponential(2.0) * RationalQuadratic(3.0, 1.0))
WAVES = Explainer(waves(2), np.zeros(D))
SPARSE = Explainer(sparse(500), np.zeros(D))
CLASSES = Explainer(
    LaplacePosterior(SquaredExponential(2.0), Z[:60], Z[:60, 0] > 0),
    np.zeros(D),
    output="probability",
    n_draws=50,
)
EXPLANATION = SE(X)
CASES = {  # beyond a few times the budget: what is known to be held besides the result
    "means": (lambda: SE(X, uncertainty="none"), 0),
    "standard deviations": (lambda: SE(X, uncertainty="std"), 0),
    "covariances": (lambda: SE(X), 0),
    "means of a Matérn": (lambda: MATERN(X, uncertainty="none"), 0),
    "covariances of a Matérn": (lambda: MATERN(X), 0),
    "means by quadrature": (lambda: PRODUCT(X[:40], uncertainty="none"), 0),
    "covariances by quadrature": (lambda: PRODUCT(X[:40]), 0),
    "predictions": (lambda: SE.posterior.predict(X), 0),
    "predictions with deviations": (lambda: SE.posterior.predict(X, return_std=True), 0),
    "covariances of all rows": (lambda: SE.joint(X[:100]), 2 * 8 * (100 * D) ** 2),
    "covariances of a sparse model": (lambda: SPARSE(X), 0),
    "training of a sparse model": (sparse, 2 * (MANY.nbytes + MANY_TARGETS.nbytes)),
    "training in a box": (boxed, 2 * (MANY[:, :2].nbytes + MANY_TARGETS.nbytes)),
    "means of random features": (lambda: WAVES(X, uncertainty="none"), 0),
    "covariances of random features": (lambda: WAVES(X), 0),
    "probabilities of classes": (lambda: CLASSES(X[:100]), 2 * 8 * 100 * D * CLASSES.n_draws),
    "probabilities of ranks": (lambda: EXPLANATION.rank_probabilities(n_samples=500), 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_temporaries_keep_to_the_budget(name):
    call, besides = CASES[name]
    call()  # what is made once and kept does not count
    allowed = 4 * BUDGET + besides
    assert measured(call, BUDGET)[0] < allowed
    assert measured(call, 1e15)[0] > 2 * allowed  # else there was nothing to cut into blocks


def test_means_do_not_form_the_covariances_with_the_data():
    """By default too, where the budget is 64 MiB: (rows, features, data) would take 256 MiB."""
    rows = np.resize(X, (40 * N, D))
    taken, _ = measured(lambda: SE(rows, uncertainty="none"), None)
    assert taken < 1.5 * 2**26 < 0.4 * 8 * len(rows) * D * M


def test_the_memory_of_a_stream_does_not_grow_with_its_rows():
    short, long = measured(lambda: waves(4), BUDGET)[1], measured(lambda: waves(40), BUDGET)[1]
    assert long < short + BUDGET
    assert 40 * 500 * D * 8 > 2 * BUDGET  # the rows would not fit into the difference


@pytest.mark.slow
def test_batches_are_held_one_at_a_time():
    def total(rows):
        return sum(float(part.cov.sum()) for part in SE.batches(rows, batch_size=50))

    few, many = (measured(lambda rows=rows: total(rows), BUDGET)[1] for rows in (X[:50], X))
    beyond, peak = measured(lambda: list(SE.batches(X, batch_size=50)), BUDGET)
    assert many < few + 0.4 * (peak - beyond)


@pytest.mark.slow
def test_the_memory_of_an_importance_does_not_grow_with_its_rows(monkeypatch):
    """The joint distribution is that of some rows; of all there are moments, block by block."""
    for limit, value in {"TOGETHER": 200, "GUIDE": 100, "ROWS": 50, "FEWEST": 20}.items():
        monkeypatch.setattr(importance, limit, value)
    few, many = (
        measured(lambda rows=rows: SE.importance(rows, n_samples=200), BUDGET)[1]
        for rows in (X[:200], MANY[: 4 * N])
    )
    assert many < few + 4 * BUDGET


def test_blocks_cover_all_rows_within_the_budget():
    with memory_budget(working=1000.0):
        assert list(blocks(25, 100.0)) == [slice(0, 10), slice(10, 20), slice(20, 25)]
        assert list(blocks(2, 5000.0)) == [slice(0, 1), slice(1, 2)]
        assert list(blocks(0, 1.0)) == []


def test_the_budget_holds_in_the_threads_of_a_call():
    both, seen = threading.Barrier(2), []

    def work(_):
        both.wait(timeout=10)  # so that each thread does one of two pieces
        seen.append((threading.get_ident(), budget_in_force()["working"]))

    with memory_budget(working=1000.0):
        workers.Pool(1).share(work, range(2))
    assert len({thread for thread, _ in seen}) == 2
    assert [budget for _, budget in seen] == [1000.0, 1000.0]
