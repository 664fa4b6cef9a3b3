"""What an experiment is given and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Setting:
    """Where the data are, whether a reduced version will do, and where to say what is being done."""

    data_home: str | PathLike[str] | None = None
    reduced: bool = False
    say: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Outcome:
    """A picture and the numbers behind it, which ``expected/`` holds expectations of."""

    figure: Figure
    numbers: dict[str, float]
