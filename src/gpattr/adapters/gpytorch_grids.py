"""GPyTorch's `GridInterpolationKernel` (KISS-GP): a kernel between the points of a grid.

Weights and covariances are products over columns, and so is the kernel:

    k(x, x') = Πᵢ wᵢ(xᵢ)ᵀ kᵢ(Gᵢ, Gᵢ) wᵢ(x'ᵢ)

with the weights of cubic interpolation (Keys 1981), which have continuous derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr.adapters.devices import on_host
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel, Linear, Select, Warped
from gpattr.posteriors.given import root_of


def interpolated(kernel: Any, bases: Sequence[Kernel]) -> Kernel:
    """Return the kernel, given those of single columns between the points of the grid."""
    if not bool(kernel.has_initialized_grid):
        raise InvalidInputError(
            "model: expected a trained model, got one that was never called: the grid of its"
            " GridInterpolationKernel is not known"
        )
    factors = []
    for i, (base, points) in enumerate(zip(bases, kernel.grid, strict=True)):
        grid = on_host(points).astype(np.float64)
        root = root_of("covar_module", to_numpy(base(grid[:, None], grid[:, None])))
        phi = GridMap(i, float(grid[0]), float(grid[1] - grid[0]), root[:, (root != 0).any(axis=0)])
        factors.append(Select(Warped(Linear(), phi, phi.jacobian), [i]))
    return reduce(mul, factors)


@dataclass(frozen=True, eq=False)
class GridMap:
    """Rᵀw(x) for column ``i``: weights w between grid points, ``root`` R of their kernel."""

    i: int
    first: float
    step: float
    root: np.ndarray

    exact = True  # its derivatives need no comparison with differences

    def __call__(self, X: Array) -> Array:
        """Return features (n, r) of rows (n, 1)."""
        s = self._distances(X)
        U = abs(s)
        near = (1.5 * U - 2.5) * U**2 + 1.0
        far = ((-0.5 * U + 2.5) * U - 4.0) * U + 2.0
        return self._where(U, near, far) @ namespace(X).asarray(self.root)

    def jacobian(self, X: Array) -> Array:
        """Return their slopes, (n, r, 1)."""
        s = self._distances(X)
        U = abs(s)
        xp = namespace(X)
        sign = xp.where(s > 0, 1.0, -1.0)
        near, far = (4.5 * U - 5.0) * U, (-1.5 * U + 5.0) * U - 4.0
        slopes = sign * self._where(U, near, far) / self.step
        return (slopes @ xp.asarray(self.root))[:, :, None]

    def _where(self, U: Array, near: Array, far: Array) -> Array:
        xp = namespace(U)
        return xp.where(U < 1.0, near, xp.where(U < 2.0, far, 0.0))

    def _distances(self, X: Array) -> Array:
        """Return the distances to all points, in steps of the grid, (n, g)."""
        at, size = (X[:, 0] - self.first) / self.step, len(self.root)
        if not bool(((at >= 1.0) & (at < size - 2.0)).all()):
            low, high = self.first + self.step, self.first + (size - 2.0) * self.step
            raise InvalidInputError(
                f"X: the model interpolates column {self.i} between {low:.3g} and {high:.3g};"
                " expected rows and baselines within, with all points between them"
            )
        return at[:, None] - namespace(X).asarray(np.arange(float(size)))
