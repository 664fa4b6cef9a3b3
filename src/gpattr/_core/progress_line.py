"""One line on the error stream that says how far a long computation is."""

from __future__ import annotations

import io
import sys
from datetime import timedelta
from shutil import get_terminal_size
from time import monotonic
from typing import Any

EVERY = 0.1  # seconds between two drawings


class ProgressLine:
    """A line that is drawn over and over on a terminal, and written once, at the end, elsewhere.

    With ``terminal_only`` nothing is written elsewhere. For use in a ``with`` block.
    """

    def __init__(self, text: str, *, terminal_only: bool = False) -> None:
        self.text = text
        self._stream = io.StringIO() if sys.stderr is None else sys.stderr  # None: no console
        self._live = self._stream.isatty()
        self._silent = terminal_only and not self._live
        self._began, self._drawn, self._width = monotonic(), -EVERY, 0

    def update(self, text: str) -> None:
        """Say something else."""
        self.text = text
        if self._live and monotonic() - self._drawn >= EVERY:
            self._draw()

    def _draw(self) -> None:
        self._drawn = monotonic()
        line = f"{self.text} ({timedelta(seconds=int(self._drawn - self._began))})"
        if self._live:
            line = line[: get_terminal_size().columns - 1]
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._stream.write(line)
        self._stream.flush()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: Any) -> None:
        if not self._silent:
            self._draw()
            self._stream.write("\n")
            self._stream.flush()
