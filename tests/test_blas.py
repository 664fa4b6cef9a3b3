"""Linear algebra: NumPy's numbers with any number of threads, and limits that leave no trace."""

import multiprocessing
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from gpattr import GPRegressor
from gpattr._core import array as _array
from gpattr._core import blas, workers

SIZES = [1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257, 401, 700, 1100]
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "strided": lambda A: np.repeat(np.repeat(A, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda A: np.ascontiguousarray(A[::-1, ::-1])[::-1, ::-1],
    "part": lambda A: np.pad(A, 2)[2:-2, 2:-2],
    "read-only": lambda A: np.frombuffer(A.tobytes()).reshape(A.shape),
    "unaligned": lambda A: np.frombuffer(b"." + A.tobytes(), offset=1).reshape(A.shape),
    "single": lambda A: A.astype(np.float32),
}


def matrix(rows, columns, seed=0):
    return np.random.default_rng([seed, rows, columns]).normal(size=(rows, columns))


def definite(m):
    A = matrix(m, m + 3)
    return A @ A.T + m * np.eye(m)


def close(got, expected, scale=1.0):
    assert got.shape == expected.shape
    np.testing.assert_allclose(
        got, expected, rtol=0, atol=1e-12 * scale * max(1.0, np.abs(expected).max(initial=0.0))
    )


def results(m, columns=70):
    """Every function once on matrices of size m."""
    A, B, x, V = definite(m), matrix(m, columns), matrix(m, 1)[:, 0], matrix(columns, m)
    L = blas.cholesky(A.copy(order="F"))
    return {
        "cholesky": L,
        "cholesky_inverse": np.tril(blas.cholesky_inverse(L.copy(order="F"))),
        "multiply": blas.multiply(A, B),
        "multiply_vector": blas.multiply(A, x),
        "symmetric_exponential": np.triu(blas.symmetric_exponential(B / m, B.T)),
        "add_gram": np.tril(blas.add_gram(np.eye(m, order="F"), V)),
        "symmetric_product": blas.symmetric_product(np.triu(A), B),
        "outer_products": blas.outer_products(V.reshape(5, -1, m)),
        "outer_product": blas.outer_products(B),
        "solve_lower_rows": blas.solve_lower_rows(L, V.copy()),
        "solve_upper": blas.solve_upper(L, B),
        "solve_cholesky": blas.solve_cholesky(L, x),
    }


def expected(m, columns=70):
    A, B, x, V = definite(m), matrix(m, columns), matrix(m, 1)[:, 0], matrix(columns, m)
    L = np.linalg.cholesky(A)
    stack = V.reshape(5, -1, m)
    return {
        "cholesky": L,
        "cholesky_inverse": np.tril(np.linalg.inv(A)),
        "multiply": A @ B,
        "multiply_vector": A @ x,
        "symmetric_exponential": np.triu(np.exp(B @ B.T / m)),
        "add_gram": np.tril(np.eye(m) + V.T @ V),
        "symmetric_product": A @ B,
        "outer_products": stack @ stack.transpose(0, 2, 1),
        "outer_product": B @ B.T,
        "solve_lower_rows": np.linalg.solve(L, V.T).T,
        "solve_upper": np.linalg.solve(L.T, B),
        "solve_cholesky": np.linalg.solve(A, x),
    }


class Library:
    """A BLAS that may use four threads; those of a real one would spin for minutes."""

    def __init__(self):
        self.number = 4

    def get_num_threads(self):
        return self.number

    def set_num_threads(self, number):
        self.number = number


@pytest.fixture
def four_threads(monkeypatch):
    """Every BLAS of the process may use four threads."""
    libraries = [Library(), Library()]
    with threadpool_limits(limits=1, user_api="blas"):
        monkeypatch.setattr(blas, "_libraries", lambda: libraries)
        yield


@pytest.fixture(params=[1, 2, 5])
def threads(request, four_threads, monkeypatch):
    """As many threads as this; every call with more than one piece is shared, whatever its size."""
    monkeypatch.setattr(blas, "ALONE", 0)
    monkeypatch.setattr(workers, "_pool", workers.Pool(request.param - 1))
    return request.param


@pytest.mark.parametrize("m", [*SIZES[:-1], pytest.param(SIZES[-1], marks=pytest.mark.slow)])
def test_numbers_are_numpys(m, threads):
    got, wanted = results(m), expected(m)
    for name, value in got.items():
        close(value, wanted[name])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("m", [1, 2, 65, 300])
def test_any_layout_is_read(layout, m, threads):
    laid = LAYOUTS[layout]
    tolerance = 1e6 if layout == "single" else 1.0
    A, B, V = definite(m), matrix(m, 7), matrix(9, m)
    L = np.linalg.cholesky(A)
    before = [part.copy() for part in (A, B, V, L)]
    close(blas.cholesky(laid(A.copy())), L, tolerance)
    close(np.tril(blas.cholesky_inverse(laid(L.copy()))), np.tril(np.linalg.inv(A)), tolerance)
    close(blas.multiply(laid(A), laid(B)), A @ B, tolerance)
    close(blas.multiply(laid(V), laid(A.T)), V @ A.T, tolerance)
    close(
        np.triu(blas.symmetric_exponential(laid(B / 9), laid(B.T))),
        np.triu(np.exp(B @ B.T / 9)),
        tolerance,
    )
    close(blas.multiply(laid(V), laid(B)[:, 2]), V @ B[:, 2], tolerance)
    close(np.tril(blas.add_gram(laid(np.eye(m)), laid(V))), np.tril(np.eye(m) + V.T @ V), tolerance)
    close(blas.symmetric_product(laid(np.triu(A)), laid(B)), A @ B, tolerance)
    close(blas.outer_products(laid(V)), V @ V.T, tolerance)
    close(blas.solve_lower_rows(laid(L), laid(V.copy())), np.linalg.solve(L, V.T).T, tolerance)
    close(blas.solve_upper(laid(L), laid(B)), np.linalg.solve(L.T, B), tolerance)
    close(blas.solve_cholesky(laid(L), laid(B)), np.linalg.solve(A, B), tolerance)
    for part, kept in zip((A, B, V, L), before):
        np.testing.assert_array_equal(part, kept)


def test_nothing_to_do(threads):
    none, square = np.empty((0, 0)), np.eye(3)
    assert blas.cholesky(none.copy()).shape == blas.cholesky_inverse(none.copy()).shape == (0, 0)
    assert blas.multiply(np.empty((3, 0)), np.empty((0, 2))).tolist() == [[0.0, 0.0]] * 3
    assert blas.multiply(np.empty((0, 3)), square).shape == (0, 3)
    assert blas.symmetric_exponential(np.empty((0, 3)), np.empty((3, 0))).shape == (0, 0)
    assert blas.multiply(np.empty((3, 0)), np.empty(0)).tolist() == [0.0] * 3
    np.testing.assert_array_equal(blas.add_gram(np.eye(3, order="F"), np.empty((0, 3))), square)
    assert blas.symmetric_product(square, np.empty((3, 0))).shape == (3, 0)
    assert blas.outer_products(np.empty((0, 2, 3))).shape == (0, 2, 2)
    assert blas.outer_products(np.empty((2, 3, 0))).tolist() == np.zeros((2, 3, 3)).tolist()
    assert blas.solve_lower_rows(square, np.empty((0, 3))).shape == (0, 3)
    assert blas.solve_upper(square, np.empty((3, 0))).shape == (3, 0)
    assert blas.solve_cholesky(none, np.empty(0)).shape == (0,)


def test_results_take_the_place_of_what_was_given():
    A = np.asfortranarray(definite(300))
    L = blas.cholesky(A)
    assert L is A
    assert blas.cholesky_inverse(L) is A
    G, V = np.eye(300, order="F"), matrix(5, 300)
    assert blas.add_gram(G, V) is G
    assert blas.solve_lower_rows(np.eye(300), V) is V


@pytest.mark.parametrize("m", [3, 200, 300, 700])
@pytest.mark.parametrize("place", [0, -1])
def test_not_positive_definite(m, place, threads):
    A = np.asfortranarray(definite(m))
    A[place, place] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        blas.cholesky(A)


def test_products_of_stacks_and_vectors():
    A, B, x = matrix(30, 8).reshape(2, 3, 5, 8), matrix(8, 4), matrix(8, 1)[:, 0]
    close(_array.product(A, B), A @ B)
    close(_array.product(A, x), A @ x)
    close(_array.product(x, B), x @ B)
    stack = matrix(8, 12).reshape(8, 3, 4)
    close(_array.product(x, stack), np.tensordot(x, stack, axes=1))
    assert _array.product(np.empty(0), np.empty((0, 2))).tolist() == [0.0, 0.0]


def test_many_callers_at_once(four_threads, monkeypatch):
    monkeypatch.setattr(blas, "ALONE", 0)
    monkeypatch.setattr(workers, "_pool", workers.Pool(3))
    wanted, before = expected(300), numbers()
    with ThreadPoolExecutor(16) as callers:
        for got in callers.map(lambda _: results(300), range(32)):
            for name, value in wanted.items():
                close(got[name], value)
    assert numbers() == before


def test_pieces_may_share_again():
    pool, done = workers.Pool(2), []
    pool.share(lambda i: pool.share(lambda j: done.append((i, j)), range(4)), range(5))
    assert sorted(done) == [(i, j) for i in range(5) for j in range(4)]


@pytest.mark.parametrize("inside", [True, False])
def test_errors_reach_the_caller(inside):
    pool, caller, failed = workers.Pool(2), threading.current_thread(), threading.Event()

    def work(piece):
        if (threading.current_thread() is caller) == inside:
            failed.set()
            raise ValueError(f"piece {piece}")
        failed.wait(30)

    with pytest.raises(ValueError, match="piece"):
        pool.share(work, range(50))
    pool.share(lambda piece: None, range(5))  # goes on working


def test_a_call_waits_for_all_its_pieces():
    pool, done = workers.Pool(3), []

    def work(piece):
        time.sleep(0.002 * (piece % 3))
        done.append(piece)

    for _ in range(20):
        done.clear()
        pool.share(work, range(7))
        assert sorted(done) == list(range(7))


def test_helpers_sleep_and_keep_nothing():
    import weakref

    pool = workers.Pool(2)

    def share():
        A = np.zeros(10)
        pool.share(lambda piece: A.sum() or time.sleep(0.01), range(6))
        return weakref.ref(A)

    kept = share()
    before = time.process_time()
    time.sleep(0.2)
    assert kept() is None
    assert time.process_time() - before < 0.1


@pytest.mark.parametrize(
    ("files", "environment", "limit"),
    [
        ({}, {}, None),
        ({"cpu.max": "150000 100000\n"}, {}, 1),
        ({"cpu.max": "max 100000\n"}, {}, None),
        ({"cpu.max": "20000 100000\n"}, {}, 1),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, {}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, {}, None),
        ({"cpu.max": "what"}, {}, None),
        ({}, {"OPENBLAS_NUM_THREADS": "1"}, 1),
        ({}, {"OMP_NUM_THREADS": "1,2"}, 1),
        ({}, {"OMP_NUM_THREADS": "zero"}, None),
        ({}, {"OMP_NUM_THREADS": "0"}, None),
    ],
)
def test_usable_cores(files, environment, limit, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 3, 5}, raising=False)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert workers.usable_cores(tmp_path, environment) == (limit or 3)


def numbers():
    """The number of threads of each BLAS."""
    return [library.get_num_threads() for library in blas._libraries()]


def test_a_limit_ends_as_it_began(four_threads):
    before = numbers()
    assert set(before) == {4}
    with blas.one_blas_thread:
        with blas.one_blas_thread:
            assert set(numbers()) == {1}
        assert set(numbers()) == {1}
    assert numbers() == before
    with pytest.raises(ZeroDivisionError), blas.one_blas_thread:
        raise ZeroDivisionError
    assert numbers() == before
    with pytest.raises(np.linalg.LinAlgError):
        blas.cholesky(-np.eye(3))
    assert numbers() == before


def test_limits_of_threads_that_enter_and_leave_in_any_order(four_threads):
    before = numbers()
    first, second, third = (ExitStack() for _ in range(3))
    for stack in (first, second):
        stack.enter_context(blas.one_blas_thread)
    first.close()
    assert set(numbers()) == {1}
    third.enter_context(blas.one_blas_thread)
    second.close()
    assert set(numbers()) == {1}
    third.close()
    assert numbers() == before

    def enter(seed):
        rng = np.random.default_rng(seed)
        for _ in range(100):
            with blas.one_blas_thread:
                time.sleep(1e-4 * rng.uniform())
                assert set(numbers()) == {1}

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(enter, range(8)))
    assert numbers() == before


def test_limits_hold_in_threads_other_than_the_first():
    """Of a real BLAS, whose number of threads this thread has set before."""
    with threadpool_limits(limits=2, user_api="blas"), ThreadPoolExecutor(1) as other:
        before, outer, inner = numbers(), ExitStack(), ExitStack()
        outer.enter_context(blas.one_blas_thread)
        other.submit(inner.enter_context, blas.one_blas_thread).result()
        outer.close()
        assert set(numbers()) == {1}
        other.submit(inner.close).result()  # the last to leave
        assert numbers() == before == [2] * len(before)
        other.submit(inner.enter_context, blas.one_blas_thread).result()  # the first to enter
        assert set(numbers()) == {1}
        other.submit(inner.close).result()
        assert numbers() == before


def test_users_limits_are_kept(monkeypatch):
    monkeypatch.setattr(blas, "ALONE", 0)
    pool, seen = workers.Pool(2), set()
    monkeypatch.setattr(workers, "_pool", pool)
    monkeypatch.setattr(pool, "share", lambda work, pieces: seen.add(len(pieces)))
    with threadpool_limits(limits=1, user_api="blas"):
        blas.multiply(matrix(300, 300), matrix(300, 300))
        assert set(numbers()) == {1}
    assert not seen


def test_a_number_that_is_set_in_between_stays(four_threads):
    with blas.one_blas_thread:
        for library in blas._libraries():
            library.set_num_threads(3)
    assert set(numbers()) == {3}


def test_one_call_costs_microseconds(four_threads):
    with blas.one_blas_thread:
        times = []
        for _ in range(1000):
            start = time.perf_counter()
            with blas.one_blas_thread:
                pass
            times.append(time.perf_counter() - start)
    assert np.median(times) < 2e-5


def test_training_gives_threads_back():
    X = matrix(60, 3)
    with threadpool_limits(limits=2, user_api="blas"):
        before = numbers()
        GPRegressor(hyperparameters="optimal").fit(X, X[:, 0] ** 2 + 0.1 * matrix(60, 1)[:, 0])
        assert numbers() == before == [2] * len(before)


def child(connection):
    threads = numbers()
    blas.ALONE = 0
    connection.send((threads, blas.one_blas_thread.entered, results(300)["cholesky"]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings(
    "ignore:.*use of fork.*:DeprecationWarning", r"ignore:os\.fork\(\) was called:RuntimeWarning"
)
def test_forked_processes(four_threads, monkeypatch):
    """A child has no helpers, and locks and limits of another thread of its parent are free."""
    monkeypatch.setattr(workers, "_pool", workers.Pool(3))
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
    held, forked = threading.Event(), threading.Event()

    def enter():
        blas.one_blas_thread.__enter__()
        with workers._lock, blas.one_blas_thread.lock:
            held.set()
            forked.wait(60)
        blas.one_blas_thread.__exit__()

    holder = threading.Thread(target=enter)
    holder.start()
    held.wait(60)
    process.start()
    forked.set()
    holder.join()
    try:
        assert here.poll(30)
        threads, entered, factor = here.recv()
        assert (set(threads), entered) == ({4}, 0)
        close(factor, np.linalg.cholesky(definite(300)))
    finally:
        process.kill()
        process.join()
