"""A progress bar for downloads, with the interface that pooch expects."""

from __future__ import annotations

from typing import Any

from gpattr._core.progress_line import ProgressLine


class Bar:
    """Progress on the error stream if it is a terminal, for use in a ``with`` block.

    ``total`` is the number of bytes that are expected, None while it is unknown; ``done`` is how
    many came.
    """

    def __init__(self, title: str) -> None:
        self.total: float | None = None
        self.done = 0.0
        self._title = title
        self._line = ProgressLine(title, terminal_only=True)

    def update(self, size: float) -> None:
        """Add this many bytes."""
        self.done += size
        of = f" of {self.total / 1e6:.1f}" if self.total else ""
        self._line.update(f"{self._title}: {self.done / 1e6:.1f}{of} MB")

    def reset(self) -> None:
        """Count from zero again; pooch then adds the true total."""
        self.done = 0.0

    def close(self) -> None:
        """Do nothing: the ``with`` block ends the line, even if a download fails."""

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: Any) -> None:
        self._line.__exit__()
