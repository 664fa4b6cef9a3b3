"""Partial dependence where numbers are large, tiny, equal or many: finite and within bounds.

Warnings are errors in this suite, so "silent" needs no check of its own.
"""

import threading
import tracemalloc
from time import perf_counter

import numpy as np
import pandas as pd
import pytest
import torch
from tests.dependence.reference import Case, compare

from gpattr import Explainer, kernels, memory_budget
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(3)
X = RNG.normal(size=(25, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
KERNELS = {
    "squared exponential": SquaredExponential([1.0, 1.5, 2.0], 1.5),
    "Matérn 5/2": Matern52([1.0, 1.5, 2.0]),
    "rational quadratic": kernels.RationalQuadratic([1.0, 1.5, 2.0], alpha=0.6),
    "Matérn 1/2": kernels.Matern12(1.5),
    "periodic": kernels.Periodic(1.0, 3.0),
    "polynomial": kernels.Polynomial(0.5, degree=3, offset=1.0),
    "additive": kernels.FullAdditive([SquaredExponential(1.2)] * 3, [1.0, 0.5, 0.2]),
    "product of both": Matern52(1.5) * kernels.Linear(0.5),
}
ASKED = ({}, {"centred": True}, {"kind": "individual"}, {"derivative": True})


def explainer_of(kernel, inputs=X, y=Y, noise=0.1):
    return Explainer(ExactPosterior(kernel, inputs, y, noise=noise))


def check(explainer, name, **given):
    """All that can be asked for is finite, and no variance is negative."""
    for options in ASKED:
        if "derivative" in options and name == "Matérn 1/2":
            continue
        found = explainer.dependence(0, **given, **options)
        for numbers in (found.values, found.std, found.cov, found.error, found.cov_error):
            assert np.isfinite(numbers).all()
        assert (found.std >= 0).all()
        eigenvalues = np.linalg.eigvalsh(found.cov)
        assert (eigenvalues >= -1e-9 * max(eigenvalues.max(), 1e-300) - found.cov_error.max()).all()


@pytest.mark.parametrize("name", KERNELS)
def test_far_away(name):
    """10⁸ length-scales from the data."""
    far = 1e8 * np.array([-1.0, -0.5, 1.0])
    explainer = explainer_of(KERNELS[name])
    check(explainer, name, grid=far)
    check(explainer, name, background=X[:4] + 1e8, grid=[0.0, 1.0])
    stationary = {"squared exponential", "Matérn 5/2", "Matérn 1/2"}
    if name in stationary:  # there is only the prior
        found = explainer.dependence(0, far, X[:3])
        np.testing.assert_array_equal(found.values, 0.0)
        prior = KERNELS[name](X[:3] * [0, 1, 1], X[:3] * [0, 1, 1]).mean()
        np.testing.assert_allclose(found.std**2, prior, rtol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_equal_rows(name):
    same = np.tile(X[:1], (5, 1))
    check(explainer_of(KERNELS[name]), name, background=same, grid=[-1.0, 0.0, 1.0])
    one = explainer_of(KERNELS[name]).dependence(0, [-1.0, 0.0], same)
    two = explainer_of(KERNELS[name]).dependence(0, [-1.0, 0.0], same[:1])
    np.testing.assert_allclose(one.values, two.values, rtol=0, atol=1e-13)
    np.testing.assert_allclose(one.cov, two.cov, rtol=0, atol=1e-12 * max(1.0, two.cov.max()))
    twice = np.concatenate([X, X])
    check(explainer_of(KERNELS[name], twice, np.tile(Y, 2)), name, grid=5)


@pytest.mark.parametrize("name", KERNELS)
def test_tiny_noise(name):
    """Where the data determine the curve, to what rounding leaves of it."""
    explainer = explainer_of(KERNELS[name], noise=1e-10)
    check(explainer, name, grid=5)
    posterior = ExactPosterior(KERNELS[name], X, Y, noise=1e-10)
    grid = np.array([[-1.0], [0.3], [1.0]])
    case = Case((0,), grid, X[:6], np.full(6, 1 / 6))
    size = float(np.sqrt(KERNELS[name].diagonal(case.points).max()))
    result = posterior.apply(case.operator, X[:1])
    mean, cov = posterior.predict(case.points, return_cov=True)
    sums = case.sums[0]
    assert np.abs(result.mean[0] - sums @ mean).max() <= 2.0 * result.error[0] + 1e-12 * size
    assert np.abs(result.cov[0] - sums @ cov @ sums.T).max() <= 2.0 * result.cov_error[0]


@pytest.mark.parametrize("size", [1e-150, 1e-8, 1e8, 1e150])
def test_units_of_all_sizes(size):
    """Inputs and outputs in units that make their numbers tiny or huge."""
    for kind in (SquaredExponential, Matern52):
        inputs = explainer_of(kind(size * np.array([1.0, 1.5, 2.0])), size * X)
        plain = explainer_of(kind([1.0, 1.5, 2.0]))
        grid = np.array([-1.0, 0.0, 1.0])
        found, known = inputs.dependence(0, size * grid), plain.dependence(0, grid)
        np.testing.assert_allclose(found.values, known.values, rtol=1e-10)
        np.testing.assert_allclose(found.std, known.std, rtol=1e-10)
    if 1e-100 < size < 1e100:
        outputs = explainer_of(SquaredExponential(1.0, size**2), X, size * Y, 0.1 * size**2)
        known = explainer_of(SquaredExponential(1.0)).dependence(0, grid)
        found = outputs.dependence(0, grid)
        np.testing.assert_allclose(found.values, size * known.values, rtol=1e-10)
        np.testing.assert_allclose(found.std, size * known.std, rtol=1e-10)


@pytest.mark.parametrize("kind", [SquaredExponential, Matern52])
def test_sixty_columns(kind):
    wide = RNG.normal(size=(40, 60))
    posterior = ExactPosterior(kind(np.full(60, 8.0)), wide, wide[:, 0] - wide[:, 59], noise=0.1)
    case = Case((59,), np.array([[-1.0], [0.0], [2.0]]), wide[:10], np.full(10, 0.1))
    compare(posterior, case, 1.0)
    both = Explainer(posterior).dependence((3, 59), 4)
    assert both.values.shape == (4, 4)
    each = [Explainer(posterior).dependence(j, 5, uncertainty="std") for j in range(60)]
    assert all(np.isfinite(found.std).all() for found in each)


def test_many_background_rows():
    """20 000 rows with 50 values are a million points: one pass over rows and data instead."""
    rows = RNG.normal(size=(20_000, 3))
    explainer = explainer_of(KERNELS["squared exponential"])
    explainer.dependence(0, 5)
    tracemalloc.start()
    with memory_budget(working=2.0**24):
        start = perf_counter()
        found = explainer.dependence(0, background=rows)
        taken = perf_counter() - start
        _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 30.0  # 4e8 values of the kernel, on a machine that does other things too
    assert peak < 2.0**27  # 1.6e9 values of joint covariances would take 3 GB and more
    # A function of the averages alone: the means against predictions in parts.
    points = np.repeat(rows[:2000], 3, axis=0)
    points[:, 0] = np.tile(found.grid[[0, 20, 49]], 2000)
    some = explainer.dependence(0, found.grid[[0, 20, 49]], rows[:2000])
    mean = explainer.posterior.predict(points).reshape(2000, 3).mean(axis=0)
    np.testing.assert_allclose(some.values, mean, rtol=0, atol=1e-12)
    quick = explainer.dependence(0, background=rows, uncertainty="none")
    np.testing.assert_allclose(quick.values, found.values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_threads_that_share_an_explainer(name):
    """Bitwise what one thread finds alone."""
    explainer = explainer_of(KERNELS[name])
    grids = [np.linspace(-1 - k, 1 + k, 3 + k % 3) for k in range(8)]

    def numbers(k):
        found = [explainer.dependence(k % 3, grids[k])]
        found += [explainer.dependence(k % 3, grids[k], centred=True)]
        found += [explainer.dependence(k % 3, grids[k], X[: 2 + k % 2], kind="individual")]
        arrays = [part for one in found for part in (one.values, one.cov, one.error)]
        return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)

    alone = [numbers(k) for k in range(8)]
    together, results = threading.Barrier(8), [b""] * 8

    def work(k):
        together.wait()
        results[k] = numbers(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == alone


def test_numbers_of_other_types():
    """Rows of float32 or whole numbers are the numbers that they are."""
    explainer = explainer_of(KERNELS["Matérn 5/2"])
    short = X[:5].astype(np.float32)
    one = explainer.dependence(0, np.array([-1, 1], dtype=np.int8), short)
    two = explainer.dependence(0, [-1.0, 1.0], short.astype(np.float64))
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.cov, two.cov)
    frame = pd.DataFrame(np.round(X[:5]).astype(int), columns=["a", "b", "c"])
    three = explainer.dependence(0, [-1.0, 1.0], frame)
    four = explainer.dependence(0, [-1.0, 1.0], np.round(X[:5]))
    np.testing.assert_array_equal(three.values, four.values)


@pytest.mark.parametrize("name", KERNELS)
def test_tensors(name):
    """A posterior of tensors gives the same numbers, as NumPy arrays."""
    arrays = explainer_of(KERNELS[name])
    tensors = explainer_of(KERNELS[name], torch.tensor(X), torch.tensor(Y))
    size = float(KERNELS[name].diagonal(3.0 * X).max())
    for options in ASKED:
        if "derivative" in options and name == "Matérn 1/2":
            continue
        for rows in (None, X[:4], torch.tensor(X[:4])):
            known = arrays.dependence(0, 5, None if rows is None else X[:4], **options)
            found = tensors.dependence(0, 5, rows, **options)
            assert type(found.values) is np.ndarray
            np.testing.assert_allclose(found.values, known.values, rtol=0, atol=1e-11 * size)
            np.testing.assert_allclose(found.cov, known.cov, rtol=0, atol=1e-11 * size)
    both = tensors.dependence((0, 1), 3)
    np.testing.assert_allclose(
        both.values, arrays.dependence((0, 1), 3).values, rtol=0, atol=1e-11 * size
    )
