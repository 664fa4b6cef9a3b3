"""One explainer in many threads and processes: bitwise the same Shapley values and interactions."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from gpattr import Baselines, Explainer, Marginals
from gpattr.kernels import FullAdditive, Matern52, SquaredExponential
from gpattr.posteriors import ExactPosterior

THREADS = 8
RNG = np.random.default_rng(8)
X = RNG.normal(size=(30, 5))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
ROWS = RNG.normal(size=(4, 5))
LENGTHS = np.array([0.8, 1.0, 1.3, 0.9, 2.0])
KERNELS = {
    "product": SquaredExponential(LENGTHS),
    "mixture": Matern52(LENGTHS),
    "sum": SquaredExponential(LENGTHS) + 0.5 * Matern52(1.3),
    "additive": FullAdditive([SquaredExponential() for _ in LENGTHS], [0.5, 1.0, 0.3]),
}
BACKGROUNDS = {"point": X[0], "rows": Baselines(X[:3]), "marginals": Marginals(X[:3])}
# Interactions with marginals need a kernel that is made of products.
CASES = [
    (kernel, background)
    for kernel in KERNELS
    for background in BACKGROUNDS
    if (kernel, background) != ("additive", "marginals")
]


def made(kernel, background, **options):
    posterior = ExactPosterior(KERNELS[kernel], X, Y, noise=0.1)
    return Explainer(posterior, BACKGROUNDS[background], attribution="shapley", **options)


def numbers(explainer):
    """All numbers of an explanation and of its interactions, as bytes."""
    ex, found = explainer(ROWS), []
    if explainer.method != "permutations":
        pairs = explainer.interactions(ROWS, uncertainty="cov")
        taylor = explainer.interactions(ROWS, index="taylor", pairs=[(0, 1), (2, 2)])
        found = [pairs.values, pairs.cov, pairs.error, taylor.values, taylor.std]
    arrays = [ex.values, ex.cov, ex.error, ex.cov_error, ex.base_values, *found]
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


def in_threads(functions):
    """Return what functions return that start at once, each in a thread of its own."""
    together, results = threading.Barrier(len(functions)), [b""] * len(functions)

    def work(place):
        together.wait()
        results[place] = functions[place]()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "background"), CASES)
def test_threads_that_share_an_explainer(kernel, background):
    explainer = made(kernel, background)
    fresh = in_threads([lambda: numbers(explainer)] * THREADS)  # no thread finds anything cached
    alone = numbers(made(kernel, background))
    assert alone
    assert set(fresh) == {alone}


def test_threads_of_different_explainers():
    explainers = [made(*case) for case in CASES]
    explainers.append(made("mixture", "rows", method="permutations", n_steps=8))
    alone = [numbers(explainer) for explainer in explainers]
    calls = [lambda explainer=explainer: numbers(explainer) for explainer in explainers]
    assert in_threads(calls) == alone


CONTEXTS = [
    "spawn",
    pytest.param("fork", marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")),
]


@pytest.mark.filterwarnings(
    "ignore:.*use of fork.*:DeprecationWarning", r"ignore:os\.fork\(\) was called:RuntimeWarning"
)
@pytest.mark.parametrize("way", CONTEXTS)
def test_processes(way):
    explainers = [made(kernel, "rows") for kernel in KERNELS]
    alone = [numbers(explainer) for explainer in explainers]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(way)) as pool:
        there = list(pool.map(numbers, explainers, timeout=120))
    assert there == alone
