"""A progress bar for downloads: the interface that pooch expects, drawn by rich."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn


class Bar:
    """A progress bar on the error stream if it is a terminal, for use in a ``with`` block."""

    def __init__(self, title: str) -> None:
        console = Console(stderr=True)
        columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self._task = self._progress.add_task(title, total=None)

    @property
    def total(self) -> float | None:
        """The total number of bytes; None while it is unknown."""
        return self._progress.tasks[self._task].total

    @total.setter
    def total(self, size: int) -> None:
        self._progress.update(self._task, total=size or None)

    def update(self, size: int) -> None:
        """Add this many bytes."""
        self._progress.update(self._task, advance=size)

    def reset(self) -> None:
        """Count from zero again; pooch then adds the true total."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Do nothing: the ``with`` block ends the bar, even if a download fails."""

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._progress.stop()
