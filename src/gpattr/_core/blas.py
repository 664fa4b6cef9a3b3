"""Linear algebra of NumPy arrays by NumPy and SciPy, with one thread of the BLAS and our own.

The threads of a BLAS spin while they wait for each other: where other processes use the cores too,
two of them take up to a thousand times as long as one (a Cholesky factorisation of size 600). So
every BLAS of the process is limited to one thread while something is computed, and large matrices
are cut into tiles, which `workers` shares among threads that sleep while they wait.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, get_blas_funcs, get_lapack_funcs
from threadpoolctl import ThreadpoolController

from gpattr._core import workers

_DOUBLE = np.empty(0)
_symm, _syrk, _trsm = get_blas_funcs(("symm", "syrk", "trsm"), (_DOUBLE,))
_potrf, _potri = get_lapack_funcs(("potrf", "potri"), (_DOUBLE,))

# Multiplications up to which a call stays in the calling thread: sharing costs what it gains.
ALONE = 2**24
SMALL = 2**13  # multiplications up to which a BLAS starts no threads
TILE = 128  # rows, or columns, of a tile of a factor
CACHED = 2**15  # numbers that stay in the cache
FEW = 32  # rows up to which a product is as fast as a symmetric one


@cache
def _libraries() -> list[Any]:
    """The BLAS of NumPy and the BLAS of SciPy, found once: both are loaded with this module."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _limit(library: Any, number: int) -> None:
    """Set the number of threads of a BLAS, from any thread.

    `set_num_threads` of threadpoolctl 3.8 does nothing outside of the first thread that called it.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(number)


class OneThread:
    """A limit of one thread on every BLAS of the process, as a context that any number may enter.

    The first to enter sets it and the last to leave restores what was; in between is only counted.
    """

    def __init__(self) -> None:
        self.lock, self.entered = threading.Lock(), 0
        self.limited: list[tuple[Any, int]] = []  # libraries with more threads, and how many

    def __enter__(self) -> None:
        with self.lock:
            self.entered += 1
            if self.entered == 1:
                numbers = [(library, library.get_num_threads()) for library in _libraries()]
                self.limited = [(library, number) for library, number in numbers if number > 1]
                for library, _ in self.limited:
                    _limit(library, 1)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.entered -= self.entered > 0  # it is 0 in a process that was forked in between
            if not self.entered:
                self.restore()

    def restore(self) -> None:
        """Give each library its threads again, unless someone else has set their number since."""
        for library, number in self.limited:
            if library.get_num_threads() == 1:
                _limit(library, number)
        self.limited = []

    def after_fork(self) -> None:
        """Leave, in a forked child, contexts entered by threads that do not exist there."""
        self.lock, self.entered = threading.Lock(), 0
        self.restore()


one_blas_thread = OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=one_blas_thread.after_fork)


def _routine(module: str, name: str) -> Any:
    """A routine of SciPy's own BLAS or LAPACK, which takes addresses.

    Unlike the functions of `scipy.linalg.blas`, it lets other threads of Python run, and works on
    parts of matrices without copies.
    """
    python, capsule = ctypes.pythonapi, import_module(module).__pyx_capi__[name]
    signature_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    signature = signature_of(("PyCapsule_GetName", python))(capsule)
    address = address_of(("PyCapsule_GetPointer", python))(capsule, signature)
    return ctypes.CFUNCTYPE(None)(address)


_dgemm, _dsyrk, _dtrsm = (
    _routine("scipy.linalg.cython_blas", name) for name in ("dgemm", "dsyrk", "dtrsm")
)
_dpotrf, _dtrtri = (_routine("scipy.linalg.cython_lapack", name) for name in ("dpotrf", "dtrtri"))


def _call(routine: Any, *arguments: Any) -> None:
    """Call a routine with letters, numbers and matrices, each followed by its leading dimension."""
    passed: list[Any] = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            across, along = value.strides
            step = max(value.shape[0 if across == 8 else 1], across // 8, along // 8)
            address = value.__array_interface__["data"][0]
            passed += [ctypes.c_void_p(address), ctypes.byref(ctypes.c_int(step))]
        elif isinstance(value, int):
            passed.append(ctypes.byref(ctypes.c_int(value)))
        elif isinstance(value, float):
            passed.append(ctypes.byref(ctypes.c_double(value)))
        else:
            passed.append(value)
    routine(*passed)


def _add_product(factor: float, A: np.ndarray, B: np.ndarray, share: float, C: np.ndarray) -> None:
    """Write factor·AB + share·C over C, stored by columns; A and B may be stored by rows."""
    flags = (b"N" if M.strides[0] == 8 else b"T" for M in (A, B))
    _call(_dgemm, *flags, *C.shape, A.shape[1], factor, A, B, share, C)


def _add_square(factor: float, A: np.ndarray, share: float, C: np.ndarray) -> None:
    """Write factor·AAᵀ + share·C over the lower triangle of C."""
    turned = b"N" if A.strides[0] == 8 else b"T"
    _call(_dsyrk, b"L", turned, *A.shape, factor, A, share, C)


def _factorise(A: np.ndarray) -> None:
    """Write the lower Cholesky factor of A over its lower triangle."""
    failed = ctypes.c_int()
    _call(_dpotrf, b"L", len(A), A, ctypes.byref(failed))
    if failed.value:
        raise LinAlgError("the matrix is not positive definite")


def _in_columns(A: np.ndarray) -> bool:
    """Whether A can be overwritten column by column."""
    flags = A.flags
    return flags.f_contiguous and flags.writeable and flags.aligned and A.dtype == np.float64


def _lying(A: np.ndarray) -> np.ndarray:
    """A itself where its rows or columns follow each other in memory, or a copy."""
    flags = A.flags
    plain = (flags.c_contiguous or flags.f_contiguous) and flags.aligned and A.dtype == np.float64
    return A if plain else np.array(A, dtype=np.float64, order="F")


def share(work: Callable[[Any], None], pieces: Sequence[Any]) -> None:
    """Run the work for every piece, in several threads, each with one thread of the BLAS."""
    with one_blas_thread:
        if len(pieces) > 1 and workers.pool().helpers:
            workers.pool().share(work, pieces)
        else:
            _alone(work, pieces)


def _alone(work: Callable[[Any], None], pieces: Sequence[Any]) -> None:
    for piece in pieces:
        work(piece)


def _divided(multiplications: float) -> bool:
    """Whether a call of this size is shared among threads; asked within `one_blas_thread`.

    Users who allow the BLAS one thread want no others either.
    """
    several = multiplications > ALONE and bool(one_blas_thread.limited)
    return several and workers.pool().helpers > 0


def _tiles(size: int, tile: int) -> list[slice]:
    """Slices of this many rows or columns; the last may be shorter."""
    return [slice(start, min(start + tile, size)) for start in range(0, size, tile)]


def _portions(size: int) -> list[slice]:
    """Slices of rows or columns, a few for each thread."""
    return _tiles(size, max(64, -(-size // (4 * (workers.pool().helpers + 1)))))


def multiply(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """AB, (r, c) or (r,), for A (r, k) and B (k, c) or (k,)."""
    if A.size * B.size <= SMALL * len(B):
        return np.dot(A, B)
    with one_blas_thread:
        shape = A.shape[:-1] + B.shape[1:]
        if A.ndim != 2 or not _divided(A.size * (16.0 if B.ndim == 1 else B.shape[1])):
            return np.dot(A, B)  # a vector's time is the time to read A
        C = np.empty(shape, np.result_type(A, B))

        def rows_of(some: slice) -> None:
            np.dot(A[some], B, out=C[some])

        def columns_of(some: slice) -> None:
            C[:, some] = np.dot(A, B[:, some])

        share(rows_of if B.ndim == 1 or len(A) >= B.shape[1] else columns_of, _portions(max(shape)))
        return C


def symmetric_exponential(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """exp(AB), (m, m), for A (m, k) and B (k, m) with symmetric AB; only its upper triangle is set.

    Each tile of rows from the diagonal on is taken to its exponential while it is in the cache.
    """
    m = len(A)
    C = np.zeros((m, m))

    def work(rows: slice) -> None:
        part = C[rows, rows.start :]
        np.exp(np.matmul(A[rows], B[:, rows.start :], out=part), out=part)

    share(work, _tiles(m, 64 if m > 256 else max(1, m)))
    return C


def add_gram(G: np.ndarray, F: np.ndarray) -> np.ndarray:
    """G + FᵀF for F (r, p), in its lower triangle only, in place of G (p, p) if column-major."""
    if not F.size:
        return G
    with one_blas_thread:
        if not (_divided(0.5 * F.size * len(G)) and _in_columns(G)):
            return _syrk(1.0, F.T, beta=1.0, c=G, lower=1, overwrite_c=1)
        F = _lying(F)

        def work(some: slice) -> None:
            _add_square(1.0, F[:, some].T, 1.0, G[some, some])
            if some.stop < len(G):
                _add_product(1.0, F[:, some.stop :].T, F[:, some], 1.0, G[some.stop :, some])

        share(work, _tiles(len(G), TILE))
        return G


def symmetric_product(S: np.ndarray, B: np.ndarray) -> np.ndarray:
    """SB, (m, q), for symmetric S (m, m), of which only the upper triangle is read."""
    with one_blas_thread:
        return _symm(1.0, S.T, B, lower=1) if B.size else np.zeros(B.shape)


def outer_products(V: np.ndarray) -> np.ndarray:
    """VVᵀ, (..., k, k), for every V (k, m) of (..., k, m)."""
    k, m = V.shape[-2:]
    with one_blas_thread:
        if V.ndim == 2:
            if not _divided(0.5 * V.size * k):
                return np.dot(V, V.T)
            G = add_gram(np.zeros((k, k), order="F"), V.T)
            return np.tril(G) + np.tril(G, -1).T
        stack, C = V.reshape(math.prod(V.shape[:-2]), k, m), np.empty((*V.shape[:-1], k))
        results = C.reshape(len(stack), k, k)

        def work(some: slice) -> None:
            left = stack[some]
            # The symmetric product that NumPy takes for an array and itself is slow for few rows.
            right = left if k > FEW else left.copy()
            np.matmul(left, np.swapaxes(right, 1, 2), out=results[some])

        pieces = _tiles(len(stack), max(1, CACHED // max(1, k * m)))
        share(work, pieces) if _divided(float(V.size) * k) else _alone(work, pieces)
        return C


def cholesky(A: np.ndarray) -> np.ndarray:
    """The lower Cholesky factor of A (m, m), column-major, in place of A if A is too.

    The lower triangle of A is read. By tiles of columns, each from those before it:
    L_ik = (A_ik − Σ_j<k L_ij L_kjᵀ) L_kk⁻ᵀ; the tile next on the diagonal follows at once, so that
    threads meet once a tile.
    """
    m = len(A)
    with one_blas_thread:
        if not (_divided(m**3 / 6) and _in_columns(A)):
            L, failed = _potrf(A, lower=1, clean=1, overwrite_a=1) if m else (A, 0)
            if failed:
                raise LinAlgError("the matrix is not positive definite")
            return L
        steps = _tiles(m, TILE)
        _factorise(A[steps[0], steps[0]])
        for k, column in enumerate(steps[:-1]):
            before, pivot, after = slice(0, column.start), A[column, column], steps[k + 1]

            def work(rows: slice, column=column, before=before, pivot=pivot, after=after) -> None:
                here, corner = A[rows, column], A[rows, rows]
                if before.stop:
                    _add_product(-1.0, A[rows, before], A[column, before].T, 1.0, here)
                _call(_dtrsm, b"R", b"L", b"T", b"N", *here.shape, 1.0, pivot, here)
                if rows is after:
                    _add_square(-1.0, A[rows, : rows.start], 1.0, corner)
                    _factorise(corner)

            share(work, steps[k + 1 :])
        for some in steps:
            A[: some.start, some] = 0.0
            A[some, some] = np.tril(A[some, some])
        return A


def cholesky_inverse(L: np.ndarray) -> np.ndarray:
    """(LLᵀ)⁻¹, (m, m), in its lower triangle only, in place of L if that is column-major.

    W = L⁻¹ by tiles of columns, W_ij = −W_ii Σ_j≤k<i L_ik W_kj, then WᵀW by tiles of rows.
    """
    m = len(L)
    with one_blas_thread:
        if not (_divided(m**3 / 3) and _in_columns(L)):
            return _potri(L, lower=1, overwrite_c=1)[0] if m else L
        steps = _tiles(m, TILE)
        W = np.empty((m, m), order="F")  # of which the lower triangle is used, and its tiles

        def invert_corner(some: slice) -> None:
            W[some, some] = np.tril(L[some, some])
            corner, failed = W[some, some], ctypes.c_int()
            _call(_dtrtri, b"L", b"N", len(corner), corner, ctypes.byref(failed))

        def invert_columns(k: int) -> None:
            some = steps[k]
            space = np.empty((steps[0].stop, some.stop - some.start), order="F")
            for rows in steps[k + 1 :]:
                between, part = slice(some.start, rows.start), space[: rows.stop - rows.start]
                _add_product(-1.0, L[rows, between], W[between, some], 0.0, part)
                _add_product(1.0, W[rows, rows], part, 0.0, W[rows, some])

        def multiply_rows(rows: slice) -> None:
            below, before = W[rows.start :, rows].T, slice(0, rows.start)
            _add_square(1.0, below, 0.0, L[rows, rows])
            if rows.start:
                _add_product(1.0, below, W[rows.start :, before], 0.0, L[rows, before])

        share(invert_corner, steps)
        share(invert_columns, range(len(steps)))
        share(multiply_rows, sorted(steps, key=lambda rows: -rows.stop * (m - rows.start)))
        return L


def solve_lower_rows(L: np.ndarray, A: np.ndarray) -> np.ndarray:
    """V with VLᵀ = A for rows A (r, m), in place of A if A is row-major."""
    L, A = _lying(L), A if _in_columns(A.T) else np.array(A, dtype=np.float64, order="C")
    if not A.size:
        return A
    triangle = (b"L", b"N") if L.strides[0] == 8 else (b"U", b"T")

    def work(rows: slice) -> None:
        part = A[rows].T
        _call(_dtrsm, b"L", *triangle, b"N", *part.shape, 1.0, L, part)

    with one_blas_thread:
        if _divided(0.5 * A.size * len(L)):
            share(work, _portions(len(A)))
        else:
            work(slice(0, len(A)))
    return A


def solve_upper(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """L⁻ᵀb for b (m,) or the columns of b (m, q)."""
    return _solve_columns(L, b, (True,))


def solve_cholesky(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(LLᵀ)⁻¹b for b (m,) or the columns of b (m, q)."""
    return _solve_columns(L, b, (False, True))


def _solve_columns(L: np.ndarray, b: np.ndarray, turns: tuple[bool, ...]) -> np.ndarray:
    solved = np.array(b if b.ndim == 2 else b[:, None], dtype=np.float64, order="F")
    if solved.size:
        lower = not L.flags.c_contiguous  # the transpose of a row-major one is not copied
        triangle = L if lower else L.T
        with one_blas_thread:
            for turned in turns:
                trans = int(turned == lower)
                solved = _trsm(
                    1.0, triangle, solved, lower=int(lower), trans_a=trans, overwrite_b=1
                )
    return solved if b.ndim == 2 else solved[:, 0]
