"""A download's progress bar: what pooch asks of one, drawn by rich."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn


class Bar:
    """A bar on the terminal's error stream; silent where that is a file. To be used in a ``with``
    block.
    """

    def __init__(self, title: str) -> None:
        console = Console(stderr=True)
        columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self._task = self._progress.add_task(title, total=None)

    @property
    def total(self) -> float | None:
        """The number of bytes to come; None while it is not known."""
        return self._progress.tasks[self._task].total

    @total.setter
    def total(self, size: int) -> None:
        self._progress.update(self._task, total=size or None)

    def update(self, size: int) -> None:
        """Count this many bytes more."""
        self._progress.update(self._task, advance=size)

    def reset(self) -> None:
        """Count from zero again; pooch then adds the true total."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Do nothing: the ``with`` block ends the bar, also where a download fails."""

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._progress.stop()
