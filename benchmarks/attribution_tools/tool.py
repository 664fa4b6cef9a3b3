"""What a tool is, and which quantities there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

IG, SHAPLEY, OTHER_GAME = "integrated gradients", "Shapley values", "Shapley values of another game"
SAMPLED = 100  # the budget of the sampling explainers, of 2⁸ = 256 coalitions


@dataclass(frozen=True)
class Tool:
    """A method to explain all rows; ``explain`` takes a seed, which only ``random`` tools use."""

    name: str
    computes: str
    explain: Callable[[int], np.ndarray]
    uncertainty: str = "none"
    random: bool = False
    points: str = ""  # per row, where they are not counted
    column: str = ""  # its column in the table of one row
    one_row_a_call: bool = False  # for its time only
