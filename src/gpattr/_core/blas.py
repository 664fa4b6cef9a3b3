"""Linear algebra of NumPy arrays with a private single-threaded BLAS and our own threads.

The BLAS in the wheels of NumPy and SciPy has threads that spin while they wait for each other:
where another process uses the cores too, a second thread makes the same work up to sixty times
slower. Their number belongs to the whole process, so it is not ours to change. Therefore a second
copy of SciPy's library is loaded, with a state of its own, and set to use one thread. Large
matrices are cut into tiles, by their shape only, which `workers` shares among threads that sleep
when they wait: a result is the same, to the last bit, however many threads there are and whatever
else the machine does.

Where there is no such library (another BLAS, or no folder to load one from), SciPy's own functions
are used as they are.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from scipy.linalg import LinAlgError, get_blas_funcs, get_lapack_funcs

from gpattr._core import workers

_DOUBLE = np.empty(0)
_gemm, _symm, _syrk, _trsm = get_blas_funcs(("gemm", "symm", "syrk", "trsm"), (_DOUBLE,))
_potrf, _potri = get_lapack_funcs(("potrf", "potri"), (_DOUBLE,))

# The constants of CBLAS.
BY_ROWS, BY_COLUMNS, PLAIN, TRANSPOSED, UPPER, LOWER, NOT_UNIT, LEFT = (
    101,
    102,
    111,
    112,
    121,
    122,
    131,
    141,
)
# Multiplications up to which a call stays in the calling thread: sharing costs what it gains.
ALONE = 2**24
PIECE = 2**22  # multiplications of a piece of a larger call, about a tenth of a millisecond
TILE = 128  # rows, or columns, of a tile of a factor
# Size from which a matrix is factorised by wider tiles, and their width.
LARGE, LARGE_TILE = 1024, 192
WHOLE = 256  # size up to which a matrix is factorised by LAPACK in one piece

_ABOVE = np.triu(np.ones((WHOLE, WHOLE), dtype=bool), 1)


class Library:
    """The functions of a BLAS that is set to use one thread."""

    def __init__(self, copy: str, original: str) -> None:
        self.handle = ctypes.CDLL(copy)
        flag = number = ctypes.c_int
        real, array = ctypes.c_double, ctypes.c_void_p
        matrix = (array, number)
        self._named("openblas_set_num_threads", number)(1)
        # The number of threads that users set for SciPy's own library, by a variable or a tool for
        # thread pools, is respected.
        self.allowed = _function(ctypes.CDLL(original), "openblas_get_num_threads")
        self.allowed.restype = number
        self.gemm = self._named(
            "cblas_dgemm", *[flag] * 3, *[number] * 3, real, *matrix, *matrix, real, *matrix
        )
        self.gemv = self._named(
            "cblas_dgemv", *[flag] * 2, *[number] * 2, real, *matrix, *matrix, real, *matrix
        )
        self.symm = self._named(
            "cblas_dsymm", *[flag] * 3, *[number] * 2, real, *matrix, *matrix, real, *matrix
        )
        self.syrk = self._named(
            "cblas_dsyrk", *[flag] * 3, *[number] * 2, real, *matrix, real, *matrix
        )
        self.trsm = self._named("cblas_dtrsm", *[flag] * 5, *[number] * 2, real, *matrix, *matrix)
        self.potrf = self._named("dpotrf_", ctypes.c_char_p, *[array] * 4)
        self.trtri = self._named("dtrtri_", *[ctypes.c_char_p] * 2, *[array] * 4)

    def _named(self, name: str, *types: Any) -> Callable[..., None]:
        found = _function(self.handle, name)
        found.argtypes, found.restype = types, None
        return found


def _function(handle: ctypes.CDLL, name: str) -> Any:
    """Return a function of a library, whose names have SciPy's prefix or none."""
    return getattr(handle, f"scipy_{name}", None) or getattr(handle, name)


class Matrix:
    """A matrix as BLAS sees it: an address, a leading dimension, and whether it is column-major."""

    __slots__ = ("address", "by_columns", "columns", "owner", "rows", "step")

    def __init__(
        self, owner: np.ndarray, address: int, step: int, by_columns: bool, rows: int, columns: int
    ) -> None:
        self.owner, self.address, self.step, self.by_columns = owner, address, step, by_columns
        self.rows, self.columns = rows, columns

    @classmethod
    def of(cls, A: np.ndarray) -> Matrix:
        """Return A (r, c) as it lies in memory, or a copy where BLAS cannot read that."""
        r, c = A.shape
        if A.dtype == np.float64 and A.flags.aligned:
            across, along = A.strides[0] // 8, A.strides[1] // 8
            if (along == 1 or c == 1) and (across >= c or r == 1):
                return cls(A, A.ctypes.data, across if r > 1 else c, False, r, c)
            if (across == 1 or r == 1) and (along >= r or c == 1):
                return cls(A, A.ctypes.data, along if c > 1 else r, True, r, c)
        return cls.of(np.array(A, dtype=np.float64, order="C"))

    @property
    def T(self) -> Matrix:  # noqa: N802  (NumPy's name)
        return Matrix(
            self.owner, self.address, self.step, not self.by_columns, self.columns, self.rows
        )

    @property
    def order(self) -> int:
        return BY_COLUMNS if self.by_columns else BY_ROWS

    def block(self, rows: slice, columns: slice) -> Matrix:
        """Return a part of it."""
        major, minor = (
            (columns.start, rows.start) if self.by_columns else (rows.start, columns.start)
        )
        address = self.address + 8 * (major * self.step + minor)
        return Matrix(
            self.owner,
            address,
            self.step,
            self.by_columns,
            rows.stop - rows.start,
            columns.stop - columns.start,
        )


def _add_product(
    blas: Library, factor: float, A: Matrix, B: Matrix, share: float, C: Matrix
) -> None:
    """Write factor·AB + share·C over C."""
    by_columns = C.by_columns
    blas.gemm(
        BY_COLUMNS if by_columns else BY_ROWS,
        PLAIN if A.by_columns == by_columns else TRANSPOSED,
        PLAIN if B.by_columns == by_columns else TRANSPOSED,
        C.rows,
        C.columns,
        A.columns,
        factor,
        A.address,
        A.step,
        B.address,
        B.step,
        share,
        C.address,
        C.step,
    )


def _solve(blas: Library, L: Matrix, B: Matrix, *, transposed: bool = False) -> None:
    """Write L⁻¹B, or L⁻ᵀB, over B for a lower triangular L."""
    same = L.by_columns == B.by_columns
    flags = (LEFT, LOWER if same else UPPER, PLAIN if same != transposed else TRANSPOSED, NOT_UNIT)
    blas.trsm(B.order, *flags, B.rows, B.columns, 1.0, L.address, L.step, B.address, B.step)


def _factorise(blas: Library, A: Matrix) -> None:
    """Write the lower Cholesky factor of A over its lower triangle."""
    size, step, failed = ctypes.c_int(A.rows), ctypes.c_int(A.step), ctypes.c_int(0)
    triangle = b"L" if A.by_columns else b"U"
    blas.potrf(
        triangle,
        ctypes.addressof(size),
        A.address,
        ctypes.addressof(step),
        ctypes.addressof(failed),
    )
    if failed.value:
        raise LinAlgError("the matrix is not positive definite")


def _invert(blas: Library, L: Matrix) -> None:
    """Write L⁻¹ over a lower triangular L."""
    size, step, failed = ctypes.c_int(L.rows), ctypes.c_int(L.step), ctypes.c_int(0)
    triangle = b"L" if L.by_columns else b"U"
    blas.trtri(
        triangle,
        b"N",
        ctypes.addressof(size),
        L.address,
        ctypes.addressof(step),
        ctypes.addressof(failed),
    )


def _square(blas: Library, factor: float, A: Matrix, share: float, C: Matrix) -> None:
    """Write factor·AAᵀ + share·C over the lower triangle of C."""
    triangle = LOWER if C.by_columns else UPPER
    turned = PLAIN if A.by_columns == C.by_columns else TRANSPOSED
    blas.syrk(
        C.order,
        triangle,
        turned,
        C.rows,
        A.columns,
        factor,
        A.address,
        A.step,
        share,
        C.address,
        C.step,
    )


_lock = threading.Lock()
_loaded: list[Library | None] = []  # empty until it has been tried


def library() -> Library | None:
    """Return the private BLAS of this process, loaded on first use; None if there is none."""
    if not _loaded:
        with _lock:
            if not _loaded:
                _loaded.append(_load(_candidates()))
    return _loaded[0]


def _free() -> None:
    """Reset the lock in a forked child, where a thread that no longer exists may hold it."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)


def _candidates() -> Iterator[Path]:
    """Yield the OpenBLAS that SciPy's wheel brings, where it is on Linux, Windows and macOS."""
    package = Path(scipy.__file__).parent
    for folder in (package.parent / "scipy.libs", package / ".dylibs"):
        yield from sorted(folder.glob("*openblas*"))


def _load(candidates: Iterator[Path]) -> Library | None:
    """Return the first library that loads and works, under a name thread-pool tools do not find."""
    for path in candidates:
        folder = None
        try:
            folder = Path(tempfile.mkdtemp(prefix="gpattr_"))
            copy = folder / f"gpattr_serial_blas{path.suffix}"
            shutil.copyfile(path, copy)
            # The libraries it depends on are searched for beside it.
            for other in path.parent.iterdir() if os.name == "posix" else ():
                if other != path:
                    (folder / other.name).symlink_to(other)
            blas = Library(str(copy), str(path))
            A = np.array([[4.0, 2.0], [2.0, 5.0]])
            _factorise(blas, Matrix.of(A))
            if np.array_equal(A[1], [1.0, 2.0]):
                return blas
        except (OSError, AttributeError, ValueError, LinAlgError):
            continue
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)  # Windows does not remove what is loaded
    return None


def tiles(size: int, tile: int) -> list[slice]:
    """Return slices of this many rows or columns; the last may be shorter."""
    return [slice(start, min(start + tile, size)) for start in range(0, size, tile)]


def _share(
    blas: Library, work: Callable[[Any], None], pieces: Sequence[Any], multiplications: float
) -> None:
    """Run the work for every piece, with other threads if it is large enough."""
    if (
        multiplications > ALONE
        and len(pieces) > 1
        and blas.allowed() > 1
        and workers.pool().helpers
    ):
        workers.pool().share(work, pieces)
    else:
        for piece in pieces:
            work(piece)


def _in_place(A: np.ndarray, order: Any) -> np.ndarray:
    """Return A itself where BLAS can write a result of this order over it, or a copy."""
    fits = A.flags.f_contiguous if order == "F" else A.flags.c_contiguous
    usable = fits and A.flags.writeable and A.flags.aligned and A.dtype == np.float64
    return A if usable else np.array(A, dtype=np.float64, order=order)


def _by_columns(A: np.ndarray) -> Matrix:
    """Return A (r, c), whose columns are stored, as such even where it has one row or column."""
    return Matrix(A, A.ctypes.data, max(A.strides[1] // 8, A.shape[0]), True, *A.shape)


def _clear_above(A: np.ndarray) -> None:
    """Write zeros above the diagonal of a tile."""
    np.copyto(A, 0.0, where=_ABOVE[: len(A), : len(A)])


def multiply(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return AB, (r, c) by rows, for A (r, k) and B (k, c)."""
    (r, k), c = A.shape, B.shape[1]
    if not (r and k and c):
        return np.zeros((r, c))
    blas = _loaded[0] if _loaded else library()
    if blas is None:
        return _gemm(1.0, B.T, A.T).T
    C = np.empty((r, c))
    down, longer = r >= c, max(r, c)  # the longer side is cut
    # Every piece reads the other factor anew, so there are no more of them than cores can use.
    tile = max(-64 * (-PIECE // (64 * k * min(r, c))), min(-64 * (-longer // (64 * 8)), 384))
    if tile >= longer and _multiplied(blas, A, B, C):
        return C
    left, right = Matrix.of(A), Matrix.of(B)
    result = Matrix(C, C.ctypes.data, c, False, r, c)
    every_row, every_column, inner = slice(0, r), slice(0, c), slice(0, k)

    def work(some: slice) -> None:
        rows, columns = (some, every_column) if down else (every_row, some)
        _add_product(
            blas,
            1.0,
            left.block(rows, inner),
            right.block(inner, columns),
            0.0,
            result.block(rows, columns),
        )

    _share(blas, work, tiles(longer, tile), r * c * k)
    return C


def _multiplied(blas: Library, A: np.ndarray, B: np.ndarray, C: np.ndarray) -> bool:
    """Write AB over C, (r, c) by rows, in one call; return whether A and B lie so that it can."""
    a, b = A.flags, B.flags
    contiguous = (a.c_contiguous or a.f_contiguous) and (b.c_contiguous or b.f_contiguous)
    if not contiguous or A.dtype != np.float64 or B.dtype != np.float64:
        return False
    if not (a.aligned and b.aligned):
        return False
    (r, k), c = A.shape, B.shape[1]
    blas.gemm(
        BY_ROWS,
        PLAIN if a.c_contiguous else TRANSPOSED,
        PLAIN if b.c_contiguous else TRANSPOSED,
        r,
        c,
        k,
        1.0,
        A.ctypes.data,
        k if a.c_contiguous else r,
        B.ctypes.data,
        c if b.c_contiguous else k,
        0.0,
        C.ctypes.data,
        c,
    )
    return True


def symmetric_exponential(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return exp(AB), (m, m), for A (m, k) and B (k, m) with symmetric AB.

    It is row-major; only the upper triangle is set. By tiles of rows from the diagonal on, each
    taken to its exponential while it is in the cache.
    """
    m, k = A.shape
    C = np.zeros((m, m))
    blas = _loaded[0] if _loaded else library()
    if blas is None or not m:
        return np.exp(_gemm(1.0, B.T, A.T).T) if m else C
    left, right, result = Matrix.of(A), Matrix.of(B), Matrix.of(C)
    inner = slice(0, k)

    def work(rows: slice) -> None:
        columns = slice(rows.start, m)
        _add_product(
            blas,
            1.0,
            left.block(rows, inner),
            right.block(inner, columns),
            0.0,
            result.block(rows, columns),
        )
        part = C[rows, columns]
        np.exp(part, out=part)

    # An exponential takes as long as some thirty multiplications.
    _share(blas, work, tiles(m, 64), 0.5 * m * m * (k + 32.0))
    return C


def multiply_vector(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return Ax, (r,), for A (r, k) and x (k,)."""
    r, k = A.shape
    if not A.size:
        return np.zeros(r)
    blas = _loaded[0] if _loaded else library()
    if blas is None:
        return _gemm(1.0, x[None], A.T)[0]
    y = np.empty(r)
    matrix, x = Matrix.of(A), np.ascontiguousarray(x, dtype=np.float64)
    start, end, inner = x.ctypes.data, y.ctypes.data, slice(0, k)
    tile = max(64, -64 * (-(PIECE // 16) // (64 * k)))

    def work(rows: slice) -> None:
        part = matrix if r <= tile else matrix.block(rows, inner)
        blas.gemv(
            BY_COLUMNS if part.by_columns else BY_ROWS,
            PLAIN,
            part.rows,
            k,
            1.0,
            part.address,
            part.step,
            start,
            1,
            0.0,
            end + 8 * rows.start,
            1,
        )

    if r <= tile:
        work(slice(0, r))
        return y
    # The time is that of reading memory.
    _share(blas, work, tiles(r, tile), 16.0 * r * k)
    return y


def add_gram(G: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Return G + FᵀF for F (r, p), in the lower triangle only.

    It is in place of G (p, p) if that is column-major.
    """
    G = _in_place(G, "F")
    r, p = F.shape
    if not F.size:
        return G
    blas = _loaded[0] if _loaded else library()
    if blas is None:
        return _syrk(1.0, F.T, beta=1.0, c=G, lower=1, overwrite_c=1)
    sums, left = _by_columns(G), Matrix.of(F).T
    inner = slice(0, r)

    def work(some: slice) -> None:
        part = left.block(some, inner)
        _square(blas, 1.0, part, 1.0, sums.block(some, some))
        if some.stop < p:
            below = slice(some.stop, p)
            _add_product(blas, 1.0, left.block(below, inner), part.T, 1.0, sums.block(below, some))

    _share(blas, work, tiles(p, 64 if p <= 512 else TILE), 0.5 * r * p * p)
    return G


def symmetric_product(S: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return SB, (m, q), for symmetric S (m, m), of which only the upper triangle is read."""
    m, q = B.shape
    C = np.empty((m, q))
    if not C.size:
        return C
    blas = _loaded[0] if _loaded else library()
    if blas is None:
        return _symm(1.0, S.T, B, lower=1)
    matrix, right, result = (
        Matrix.of(S),
        Matrix.of(B if B.flags.c_contiguous else np.ascontiguousarray(B)),
        Matrix.of(C),
    )
    whole = slice(0, q)

    def work(rows: slice) -> None:
        corner, part, here = (
            matrix.block(rows, rows),
            right.block(rows, whole),
            result.block(rows, whole),
        )
        triangle = LOWER if corner.by_columns else UPPER
        sizes = (
            here.rows,
            q,
            1.0,
            corner.address,
            corner.step,
            part.address,
            part.step,
            0.0,
            here.address,
            here.step,
        )
        blas.symm(BY_ROWS, LEFT, triangle, *sizes)
        if rows.start:
            above = slice(0, rows.start)
            _add_product(
                blas, 1.0, matrix.block(above, rows).T, right.block(above, whole), 1.0, here
            )
        if rows.stop < m:
            below = slice(rows.stop, m)
            _add_product(blas, 1.0, matrix.block(rows, below), right.block(below, whole), 1.0, here)

    _share(blas, work, tiles(m, TILE if m > WHOLE else m), m * m * q)
    return C


def outer_products(V: np.ndarray) -> np.ndarray:
    """Return VVᵀ, (..., k, k), for every V (k, m) of (..., k, m)."""
    k, m = V.shape[-2:]
    blas = _loaded[0] if _loaded else library()
    if blas is None:
        return V @ np.swapaxes(V, -1, -2)
    if k == 1:
        return np.einsum("...km,...km->...k", V, V)[..., None]
    if V.ndim == 2:
        return _outer_product(blas, V)
    C = np.zeros((*V.shape[:-1], k))
    if not V.size:
        return C
    V = np.ascontiguousarray(V, dtype=np.float64)
    start, end, count = V.ctypes.data, C.ctypes.data, V.size // (k * m)

    def work(some: slice) -> None:
        for i in range(some.start, some.stop):
            part, to = start + 8 * i * k * m, end + 8 * i * k * k
            blas.gemm(BY_ROWS, PLAIN, TRANSPOSED, k, k, m, 1.0, part, m, part, m, 0.0, to, k)

    _share(blas, work, tiles(count, max(1, -(-PIECE // (k * k * m)))), float(count) * k * k * m)
    return C


def _outer_product(blas: Library, V: np.ndarray) -> np.ndarray:
    """Return VVᵀ, (k, k), for V (k, m): tiles of rows up to the diagonal, and their transposes."""
    k, m = V.shape
    C = np.zeros((k, k))
    if not V.size:
        return C
    matrix, result, inner = Matrix.of(V), Matrix.of(C), slice(0, m)

    def work(some: slice) -> None:
        until = slice(0, some.stop)
        _add_product(
            blas,
            1.0,
            matrix.block(some, inner),
            matrix.block(until, inner).T,
            0.0,
            result.block(some, until),
        )
        C[: some.start, some] = C[some, : some.start].T

    _share(blas, work, tiles(k, TILE)[::-1], 0.5 * k * k * m)  # the longest first
    return C


def cholesky(A: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky factor of A (m, m), column-major, in place of A if A is too.

    The lower triangle of A is read. By tiles of columns, each from those before it:
    L_ik = (A_ik − Σ_j<k L_ij L_kjᵀ) L_kk⁻ᵀ; the tile next on the diagonal follows at once, so that
    threads meet once a tile.
    """
    A = _in_place(A, "F")
    blas, m = library(), len(A)
    if not m:
        return A
    if blas is None:
        L, failed = _potrf(A, lower=1, clean=1, overwrite_a=1)
        if failed:
            raise LinAlgError("the matrix is not positive definite")
        return L
    L = _by_columns(A)
    width = LARGE_TILE if m >= LARGE else TILE
    steps = tiles(m, width if m > WHOLE else m)
    _factorise(blas, L.block(steps[0], steps[0]))
    for k, column in enumerate(steps[:-1]):
        before, pivot, after = slice(0, column.start), L.block(column, column), steps[k + 1]

        def work(
            rows: slice,
            column: slice = column,
            before: slice = before,
            pivot: Matrix = pivot,
            after: slice = after,
        ) -> None:
            here = L.block(rows, column)
            if before.stop:
                _add_product(
                    blas, -1.0, L.block(rows, before), L.block(column, before).T, 1.0, here
                )
            _solve(blas, pivot, here.T)
            if rows is after:
                corner = L.block(rows, rows)
                _square(blas, -1.0, L.block(rows, slice(0, column.stop)), 1.0, corner)
                _factorise(blas, corner)

        below = m - column.stop
        _share(blas, work, steps[k + 1 :], below * width * (column.stop + width))
    for some in steps:
        A[: some.start, some] = 0.0
        _clear_above(A[some, some])
    return A


_kept = threading.local()


def _workspace(m: int) -> np.ndarray:
    """Return a column-major (m, m) buffer; up to 8 MiB per thread are kept for reuse.

    Fresh memory costs a tenth of an inverse.
    """
    if m * m > 2**20:
        return np.empty((m, m), order="F")
    if getattr(_kept, "space", np.empty(0)).size < m * m:
        _kept.space = np.empty(m * m)
    return _kept.space[: m * m].reshape((m, m), order="F")


def cholesky_inverse(L: np.ndarray) -> np.ndarray:
    """Return (LLᵀ)⁻¹, (m, m), in the lower triangle only.

    It is in place of L if that is column-major. W = L⁻¹ by tiles of columns, W_ij = −L_ii⁻¹ Σ_j≤k<i
    L_ik W_kj, then WᵀW by tiles of rows.
    """
    L = _in_place(L, "F")
    blas, m = library(), len(L)
    if not m:
        return L
    if blas is None:
        return _potri(L, lower=1, overwrite_c=1)[0]
    steps = tiles(m, 64 if m <= 400 else TILE)
    W = _workspace(m)  # of which the lower triangle, and the tiles on the diagonal, are used
    result, inverse = _by_columns(L), _by_columns(W)

    def invert_corner(some: slice) -> None:
        W[some, some] = L[some, some]
        _clear_above(W[some, some])
        _invert(blas, inverse.block(some, some))

    def invert_columns(k: int) -> None:
        some = steps[k]
        space = np.empty((steps[0].stop, some.stop - some.start), order="F")
        for rows in steps[k + 1 :]:
            between, part = (
                slice(some.start, rows.start),
                _by_columns(space[: rows.stop - rows.start]),
            )
            _add_product(
                blas, -1.0, result.block(rows, between), inverse.block(between, some), 0.0, part
            )
            _add_product(blas, 1.0, inverse.block(rows, rows), part, 0.0, inverse.block(rows, some))

    def multiply_rows(some: slice) -> None:
        rest, before = slice(some.start, m), slice(0, some.start)
        part = inverse.block(rest, some).T
        _square(blas, 1.0, part, 0.0, result.block(some, some))
        if some.start:
            _add_product(
                blas, 1.0, part, inverse.block(rest, before), 0.0, result.block(some, before)
            )

    longest_first = sorted(steps, key=lambda some: -some.stop * (m - some.start))
    _share(blas, invert_corner, steps, m * steps[0].stop ** 2 / 6)
    _share(blas, invert_columns, range(len(steps)), m**3 / 6)
    _share(blas, multiply_rows, longest_first, m**3 / 6)
    return L


def solve_lower_rows(L: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return V with VLᵀ = A for rows A (r, m), in place of A if A is row-major."""
    A = _in_place(A, "C")
    r, m = A.shape
    if not A.size:
        return A
    blas = _loaded[0] if _loaded else library()
    if blas is None:
        return _trsm(1.0, L, A.T, lower=1, overwrite_b=1).T
    factor, right, whole = Matrix.of(L), Matrix.of(A), slice(0, m)
    # Every piece reads L anew: in fewer and longer ones it takes a fifth less. Two threads share an
    # even number of them.
    tile = max(-64 * (-PIECE // (64 * m * m)), -8 * (-r // (8 * 4 * max(1, round(r / 1400)))))
    _share(
        blas,
        lambda rows: _solve(blas, factor, right.block(rows, whole).T),
        tiles(r, tile),
        0.5 * r * m * m,
    )
    return A


def solve_upper(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return L⁻ᵀb for b (m,) or the columns of b (m, q)."""
    return _solve_columns(L, b, (True,))


def solve_cholesky(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return (LLᵀ)⁻¹b for b (m,) or the columns of b (m, q)."""
    return _solve_columns(L, b, (False, True))


def _solve_columns(L: np.ndarray, b: np.ndarray, turns: tuple[bool, ...]) -> np.ndarray:
    solved = np.array(b if b.ndim == 2 else b[:, None], dtype=np.float64, order="F")
    blas = _loaded[0] if _loaded else library()
    if blas is None and solved.size:
        for transposed in turns:
            solved = _trsm(1.0, L, solved, lower=1, trans_a=int(transposed), overwrite_b=1)
    elif blas is not None and solved.size:
        m, q = solved.shape
        factor, right, whole = Matrix.of(L), _by_columns(solved), slice(0, m)

        def work(columns: slice) -> None:
            for transposed in turns:
                _solve(blas, factor, right.block(whole, columns), transposed=transposed)

        _share(
            blas,
            work,
            tiles(q, max(64, -64 * (-PIECE // (64 * m * m)))),
            0.5 * q * m * m * len(turns),
        )
    return solved if b.ndim == 2 else solved[:, 0]
