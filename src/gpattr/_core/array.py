"""Array functions for NumPy and PyTorch; no other module depends on the array library.

`namespace(x)` gives the functions for x under NumPy's names; created arrays (`zeros`, `eye`, …) are
float64 on x's device.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.spatial.distance import cdist
from scipy.special import erf as _erf
from scipy.special import erfcx as _erfcx

from gpattr._core import blas, tensors

Array = Any  # a NumPy array or a PyTorch tensor, float64 unless said otherwise
FloatArray: TypeAlias = NDArray[np.float64]  # what results hold, wherever they were computed

EPS = float(np.finfo(np.float64).eps)
NEAR = 10.0  # length-scales: squared distances by products are then accurate to 1e-13


def is_tensor(x: Any) -> bool:
    """Return whether x is a PyTorch tensor, without importing PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def namespace(*arrays: Array) -> Any:
    """Return the functions that act on these arrays."""
    for x in arrays:
        if type(x) is not np.ndarray and is_tensor(x):
            return _torch_namespace(x.device)
    return np


def to_numpy(x: Array) -> np.ndarray:
    """Return x as a NumPy array on the host."""
    if type(x) is np.ndarray or not is_tensor(x):
        return x
    return x.detach().cpu().numpy()


def chunk_rows(x: Array, width: int) -> int:
    """Return how many rows of this width to treat at a time.

    On a CPU temporaries of 256 KiB stay in the cache (larger ones are mapped and page-faulted anew
    each time); a GPU wants work.
    """
    return max(1, (2**27 if on_gpu(x) else 2**15) // max(width, 1))


def on_gpu(x: Array) -> bool:
    """Return whether x is a tensor that is not on the host."""
    return type(x) is not np.ndarray and is_tensor(x) and x.device.type != "cpu"


def share(work: Callable[[Any], None], pieces: Sequence[Any], like: Array) -> None:
    """Do the work for every piece, in several threads where ``like`` is a NumPy array."""
    if type(like) is np.ndarray:
        blas.share(work, pieces)
        return
    for piece in pieces:
        work(piece)


def free_device_memory(x: Array) -> float:
    """Return the bytes free on the GPU that x is on; 0 if it is on the host.

    What PyTorch keeps for reuse counts as free.
    """
    if not on_gpu(x) or x.device.type != "cuda":
        return 0.0
    cuda = sys.modules["torch"].cuda
    kept = cuda.memory_reserved(x.device) - cuda.memory_allocated(x.device)
    return float(cuda.mem_get_info(x.device)[0] + kept)


def erf(x: Array) -> Array:
    """Return the error function."""
    return sys.modules["torch"].special.erf(x) if is_tensor(x) else _erf(x)


def erfcx(x: Array) -> Array:
    """Return exp(x²) erfc(x)."""
    if type(x) is np.ndarray or not is_tensor(x):
        return _erfcx(x)
    return sys.modules["torch"].special.erfcx(x)


def squared_distances(X: Array, Z: Array, lengthscale: Any, *, smooth: bool = False) -> Array:
    """Return Σᵢ ((xᵢ − zᵢ)/ℓᵢ)² for every pair, (n, m), from differences.

    The expansion ‖x‖² + ‖z‖² − 2x·z loses as many digits as the data lie away from the origin. On a
    GPU it takes a tenth of the time: there it is used, about the middle of Z, where all rows lie
    within `NEAR` length-scales of that and what is made of the distances is ``smooth`` in r².
    """
    xp = namespace(X, Z)
    inverse = xp.broadcast_to(1.0 / xp.asarray(lengthscale), X.shape[1:])
    # Squares would over- or underflow.
    extreme = bool(inverse.max() > 1e150 or inverse.min() < 1e-150)
    if xp is not np or extreme:
        origin = Z.mean(axis=0) if smooth else Z[0]
        X, Z = (X - origin) * inverse, (Z - origin) * inverse
        if smooth and not extreme and on_gpu(X):
            x2, z2 = (X * X).sum(axis=1), (Z * Z).sum(axis=1)
            if max(float(x2.max()), float(z2.max())) <= NEAR**2:
                return (x2[:, None] + z2).addmm_(X, Z.mT, alpha=-2.0).clamp_(min=0.0)
        if xp is not np:
            return (
                sys.modules["torch"].cdist(X, Z, compute_mode="donot_use_mm_for_euclid_dist") ** 2
            )
        return cdist(X, Z, "sqeuclidean")
    return cdist(X, Z, "sqeuclidean", w=inverse * inverse)


def cholesky(A: Array) -> Array:
    """Return the lower Cholesky factor of A, (m, m), overwriting A if possible.

    Raises ``LinAlgError`` if there is none.
    """
    if is_tensor(A):
        if tensors.by_blocks(A):
            return tensors.cholesky(A)
        L, failed = sys.modules["torch"].linalg.cholesky_ex(A)
        if failed:
            raise LinAlgError("the matrix is not positive definite")
        return L
    return blas.cholesky(A.T)  # Aᵀ = A, in the order LAPACK writes into


def cholesky_inverse(L: Array) -> Array:
    """Return (LLᵀ)⁻¹, (m, m), in its upper triangle only, overwriting L if possible."""
    # The lower triangle of columns is the upper one of our rows.
    return sys.modules["torch"].cholesky_inverse(L) if is_tensor(L) else blas.cholesky_inverse(L).T


def product(A: Array, B: Array) -> Array:
    """Return AB, summed over the last axis of A and the first of B, like ``@``.

    It does not start threads that spin (`_core.blas`). A is (..., k) and B (k,) or (k, c); a vector
    A takes B (k, ...).
    """
    if type(A) is not np.ndarray and is_tensor(A):
        return sys.modules["torch"].tensordot(A, B, dims=1)
    if A.ndim == 1:
        columns = B.reshape(len(B), math.prod(B.shape[1:]))
        return blas.multiply(A, columns).reshape(B.shape[1:])
    rows = A.reshape(math.prod(A.shape[:-1]), A.shape[-1])
    return blas.multiply(rows, B).reshape(A.shape[:-1] + B.shape[1:])


def symmetric_exponential(A: Array, B: Array) -> Array:
    """Return exp(AB), (m, m), where AB is symmetric, in the upper triangle only."""
    return (A @ B).exp_() if is_tensor(A) else blas.symmetric_exponential(A, B)


def outer_products(V: Array) -> Array:
    """Return VVᵀ, (..., k, k), for every V (k, m) of (..., k, m)."""
    return V @ V.mT if is_tensor(V) else blas.outer_products(V)


def add_gram(G: Array, F: Array) -> Array:
    """Return G + FᵀF for rows F (r, p), in place of G (p, p), in the lower triangle only."""
    return G + F.mT @ F if is_tensor(F) else blas.add_gram(G, F)


def symmetric_product(S: Array, B: Array) -> Array:
    """Return SB for symmetric S, (m, m), of which only the upper triangle is read."""
    return (S.triu() + S.triu(1).mT) @ B if is_tensor(S) else blas.symmetric_product(S, B)


def corners_of(L: Array) -> Sequence[Array] | None:
    """Return inverses of a large L's blocks for `solve_lower_rows`: None but on a GPU."""
    return tensors.corners_of(L) if is_tensor(L) and tensors.by_blocks(L) else None


def solve_lower_rows(L: Array, A: Array, corners: Sequence[Array] | None = None) -> Array:
    """Return V with V Lᵀ = A for rows A (r, m), in place of A if possible.

    The rows of V are L⁻¹ times the rows of A; ``corners`` are `corners_of` L, if they are known.
    """
    if is_tensor(A):
        if tensors.by_blocks(L):
            return tensors.solve_lower_rows(L, A, corners or tensors.corners_of(L))
        return sys.modules["torch"].linalg.solve_triangular(L.mT, A, upper=True, left=False)
    return blas.solve_lower_rows(L, A)


def solve_upper(L: Array, b: Array) -> Array:
    """Return L⁻ᵀb for a lower triangular L and a vector b, (m,), or the columns of a matrix."""
    if is_tensor(b):
        columns = b[:, None] if b.ndim == 1 else b
        if tensors.by_blocks(L):
            solved = tensors.solve_upper(L, columns)
        else:
            solved = sys.modules["torch"].linalg.solve_triangular(L.mT, columns, upper=True)
        return solved[:, 0] if b.ndim == 1 else solved
    return blas.solve_upper(L, b)


def solve_cholesky(L: Array, b: Array) -> Array:
    """Return (LLᵀ)⁻¹b for a vector b, (m,), or the columns of a matrix."""
    if is_tensor(b):
        if tensors.by_blocks(L):
            rows = namespace(b).empty((1 if b.ndim == 1 else b.shape[1], len(b)))
            rows[:] = b.mT if b.ndim == 2 else b
            return solve_upper(L, solve_lower_rows(L, rows).mT.reshape(b.shape))
        solved = sys.modules["torch"].cholesky_solve(b[:, None] if b.ndim == 1 else b, L)
        return solved[:, 0] if b.ndim == 1 else solved
    return blas.solve_cholesky(L, b)


class TorchNamespace:
    """PyTorch under NumPy's names, creating float64 on one device."""

    inf = float("inf")

    def __init__(self, device: Any) -> None:
        self.torch, self.device = sys.modules["torch"], device
        self.real = {"dtype": self.torch.float64, "device": device}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.torch, name)

    def asarray(self, x: Any) -> Any:
        return self.torch.as_tensor(
            x if not isinstance(x, np.ndarray) else np.array(x), **self.real
        )

    def zeros(self, shape: Any) -> Any:
        return self.torch.zeros(shape, **self.real)

    def empty(self, shape: Any) -> Any:
        return self.torch.empty(shape, **self.real)

    def full(self, shape: Any, value: float) -> Any:
        return self.torch.full(shape if isinstance(shape, tuple) else (shape,), value, **self.real)

    def eye(self, n: int) -> Any:
        return self.torch.eye(n, **self.real)

    def arange(self, n: int) -> Any:
        return self.torch.arange(n, device=self.device)

    def maximum(self, x: Any, y: Any) -> Any:
        return (
            self.torch.maximum(self.asarray(x), self.asarray(y))
            if is_tensor(y)
            else self.torch.clamp(x, min=y)
        )

    def minimum(self, x: Any, y: Any) -> Any:
        return (
            self.torch.minimum(self.asarray(x), self.asarray(y))
            if is_tensor(y)
            else self.torch.clamp(x, max=y)
        )

    def max(self, x: Any, axis: Any) -> Any:
        return self.torch.amax(x, axis)

    def min(self, x: Any, axis: Any) -> Any:
        return self.torch.amin(x, axis)

    def nonzero(self, x: Any) -> Any:
        return x.nonzero(as_tuple=True)

    def concatenate(self, parts: Any, axis: int = 0) -> Any:
        return self.torch.cat(list(parts), dim=axis)

    def sort(self, x: Any) -> Any:
        return self.torch.sort(x).values

    def stack(self, parts: Any, axis: int = 0) -> Any:
        return self.torch.stack(list(parts), dim=axis)

    def repeat(self, x: Any, n: int) -> Any:
        return self.torch.repeat_interleave(x, n)

    def tile(self, x: Any, n: int) -> Any:
        return x.repeat(n)

    def tensordot(self, x: Any, y: Any, axes: int) -> Any:
        return self.torch.tensordot(x, y, dims=axes)

    def diagonal(self, x: Any, axis1: int, axis2: int) -> Any:
        return self.torch.diagonal(x, dim1=axis1, dim2=axis2)

    def triu_indices(self, n: int, k: int = 0) -> Any:
        return tuple(self.torch.triu_indices(n, n, k, device=self.device))

    def indices(self, shape: tuple[int, int]) -> Any:
        return self.torch.meshgrid(
            *(self.torch.arange(n, device=self.device) for n in shape), indexing="ij"
        )


_torch_namespace = lru_cache(maxsize=8)(TorchNamespace)
