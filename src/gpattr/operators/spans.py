"""Spans: sites that lead from a baseline to a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpattr._core.arguments import some_rows
from gpattr._core.array import Array
from gpattr.operators.base import Sites


@dataclass(frozen=True, eq=False)
class Spans(Sites):
    """Baselines ``start``, (n, d) or one for all (1, d), and rows ``stop``, (n, d)."""

    start: Array
    stop: Array

    def __post_init__(self) -> None:
        for name, value in (("start", self.start), ("stop", self.stop)):
            if type(value) is not np.ndarray or value.ndim != 2:
                some_rows(name, value)

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.stop.shape
        return n, d

    @property
    def like(self) -> Array:
        return self.stop

    @property
    def step(self) -> Array:
        """The vectors x − b, (n, d)."""
        return self.stop - self.start

    @property
    def shared_start(self) -> bool:
        """Whether all rows are compared with the same baseline."""
        return self.start.shape[0] == 1
