"""Linear algebra of large PyTorch tensors, by blocks and in place.

The library's factorisation and solves copy the matrix, and fail on a GPU for more than 46 340 rows,
where the number of its entries exceeds an integer of 32 bits. Blocks need no second matrix, and
their products are the fastest operation of a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from scipy.linalg import LinAlgError

LARGE = 8192  # rows from which a GPU's matrices are treated by blocks
BLOCK = 2048  # columns of a block of a factorisation
CORNER = 1024  # columns of a block of a solve


def by_blocks(L: Any) -> bool:
    """Return whether blocks serve a matrix better than the library's own functions."""
    return len(L) > LARGE and L.device.type != "cpu"


def blocks_of(m: int, size: int = BLOCK) -> list[slice]:
    """Return slices of this many rows or columns that cover range(m)."""
    return [slice(start, min(start + size, m)) for start in range(0, m, size)]


def cholesky(A: Any) -> Any:
    """Return the lower Cholesky factor of A, (m, m), in place of A, whose lower triangle is read.

    By blocks of columns, each from those before it: L_ik = (A_ik − Σ_j<k L_ij L_kjᵀ) L_kk⁻ᵀ.
    """
    torch = sys.modules["torch"]
    for some in blocks_of(len(A)):
        before, below = slice(0, some.start), slice(some.stop, len(A))
        corner = A[some, some]
        if some.start:
            corner.addmm_(A[some, before], A[some, before].mT, alpha=-1.0)
            A[below, some].addmm_(A[below, before], A[some, before].mT, alpha=-1.0)
        L, failed = torch.linalg.cholesky_ex(corner)
        if failed:
            raise LinAlgError("the matrix is not positive definite")
        corner.copy_(L)
        A[before, some] = 0.0
        if below.start < len(A):
            A[below, some] = torch.linalg.solve_triangular(
                L.mT, A[below, some], upper=True, left=False
            )
    return A


def corners_of(L: Any) -> list[Any]:
    """Return the inverses W of the diagonal blocks of a lower triangular L, with WL = I.

    Products with them are faster than a triangular solve, and as accurate; with inverses for which
    LW = I instead, three digits would be lost.
    """
    torch = sys.modules["torch"]
    blocks = (L[some, some] for some in blocks_of(len(L), CORNER))
    return [
        torch.linalg.solve_triangular(
            block, torch.eye(len(block), dtype=L.dtype, device=L.device), upper=False, left=False
        )
        for block in blocks
    ]


def solve_lower_rows(L: Any, A: Any, corners: Sequence[Any]) -> Any:
    """Return V with VLᵀ = A for rows A (r, m), in place of A, given the `corners_of` L."""
    for some, corner in zip(blocks_of(len(L), CORNER), corners, strict=True):
        before, part = slice(0, some.start), A[:, some]
        if some.start:
            part.addmm_(A[:, before], L[some, before].mT, alpha=-1.0)
        part.copy_(part @ corner.mT)
    return A


def solve_upper(L: Any, B: Any) -> Any:
    """Return L⁻ᵀB for columns B (m, q)."""
    torch = sys.modules["torch"]
    B = B.clone()
    for some in reversed(blocks_of(len(L))):
        after, part = slice(some.stop, len(L)), B[some]
        if some.stop < len(L):
            part.addmm_(L[after, some].mT, B[after], alpha=-1.0)
        part.copy_(torch.linalg.solve_triangular(L[some, some].mT, part, upper=True))
    return B
