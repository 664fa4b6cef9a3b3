"""Variances of conditional expectations: what engines compute and indices are made of."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gpattr._core.array import Array
from gpattr._core.validation import read_only


@dataclass(frozen=True, eq=False)
class Effects:
    """Variances of conditional expectations, V_S = Var E[f | x_S], for subsets S of the players.

    ``subsets`` contain the set of all players, whose V_S is the variance V of f. ``plug_in`` (k,)
    is V_S of the posterior mean function, ``expected`` (k,) the posterior mean of V_S, ``draws``
    (R, k) are joint draws from its posterior. ``error`` (k,) bounds or estimates the numerical
    error of ``expected`` and ``plug_in``; ``method`` names the way they were found in words.
    ``replicates`` (c, k) are independent estimates whose mean is ``expected``, where there are any,
    and ``plug_in_replicates`` (c, k) those whose mean is ``plug_in``.
    """

    subsets: tuple[tuple[int, ...], ...]
    plug_in: Array
    expected: Array
    draws: Array
    error: Array
    method: str
    replicates: Array | None = None
    plug_in_replicates: Array | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = vars(self)[field.name]
            if isinstance(value, np.ndarray):
                object.__setattr__(self, field.name, read_only(value))
