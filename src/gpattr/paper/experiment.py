"""The settings and the outcome of an experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Setting:
    """The folder of the data, whether to run a reduced version, and a progress callback."""

    data_home: str | PathLike[str] | None = None
    reduced: bool = False
    progress: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Outcome:
    """A figure and its numbers, whose expected ranges are in ``expected/``."""

    figure: Figure
    numbers: dict[str, float]
