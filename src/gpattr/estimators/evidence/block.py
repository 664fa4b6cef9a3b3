"""Exact log evidences of blocks of rows, summed: hyperparameters from many rows.

    F(θ) = Σ_b log p(y_b | θ),      rows of different blocks taken as independent

A model with few inducing inputs or frequencies that learns its own hyperparameters takes
length-scales that are too long, and its intervals become too narrow. F has neither fault: its
blocks are exact Gaussian processes, drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, solve_cholesky
from gpattr.estimators.evidence.marginal_likelihood import Objective
from gpattr.estimators.training_rows import drawn
from gpattr.kernels import Kernel
from gpattr.posteriors.exact import factorise

# With blocks of 500, small effects of some of eight features were learned as noise.
BLOCK_ROWS = 1000
MOST_BLOCKS = 8


@dataclass(frozen=True)
class BlockEvidence:
    """F as a function of kernel and noise; ``blocks`` hold rows and targets in training units."""

    blocks: tuple[Objective, ...]

    @classmethod
    def of_rows(
        cls, X: Array, y: Array, noise: Any, free_mean: bool, generator: np.random.Generator
    ) -> BlockEvidence:
        """Draw blocks of these rows; ``noise`` is given, (n,) or a number, or None."""
        return cls.drawn(lambda i: (X[i], y[i]), len(y), noise, free_mean, generator)

    @classmethod
    def drawn(
        cls,
        take: Callable[[np.ndarray], tuple[Array, Array]],
        n: int,
        noise: Any,
        free_mean: bool,
        generator: np.random.Generator,
    ) -> BlockEvidence:
        """Draw up to `MOST_BLOCKS` blocks of at most `BLOCK_ROWS` of n rows each.

        ``take`` returns the rows and targets of the numbers that are drawn.
        """
        number = min(MOST_BLOCKS, -(-n // BLOCK_ROWS))
        chosen = np.arange(n) if number == 1 else drawn(n, number * BLOCK_ROWS, generator)
        parts = [np.sort(part) for part in np.array_split(chosen, number)]
        X, y = take(np.concatenate(parts))
        ends = np.cumsum([0, *map(len, parts)])
        return cls(
            tuple(
                Objective(X[a:b], y[a:b], noise[i] if np.ndim(noise) else noise, free_mean)
                for i, a, b in zip(parts, ends[:-1], ends[1:], strict=True)
            )
        )

    def __call__(self, kernel: Kernel, noise: float | None) -> tuple[float, dict[str, Any]]:
        """Return F and its derivatives by the logarithms of the hyperparameters."""
        values, gradients = zip(*(block(kernel, noise) for block in self.blocks), strict=True)
        return sum(values), {
            name: sum(gradient[name] for gradient in gradients) for name in gradients[0]
        }

    def constant(self, kernel: Kernel, noise: float | None) -> float:
        """Return the most likely constant, c = Σ_b 1ᵀA⁻¹y / Σ_b 1ᵀA⁻¹1; 0 if not free."""
        above, below = 0.0, 0.0
        for block in self.blocks:
            if not block.free_mean:
                return 0.0
            ones = namespace(block.y).zeros(len(block.y)) + 1.0
            solved = solve_cholesky(
                factorise(kernel, block.X, block.noise if noise is None else noise), ones
            )
            above, below = above + float(solved @ block.y), below + float(solved.sum())
        return above / below
