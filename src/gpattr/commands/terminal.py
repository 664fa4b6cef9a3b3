"""The terminal: sentences, a progress bar and a spinner, all of which ``quiet`` turns off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import typer
from rich.console import Console
from rich.progress import Progress


@dataclass(frozen=True)
class Terminal:
    """A terminal that prints nothing if it is ``quiet``."""

    quiet: bool = False

    def print(self, sentences: Iterable[str]) -> None:
        """Print one sentence per line; empty ones are skipped."""
        if not self.quiet:
            for sentence in filter(None, sentences):
                typer.echo(sentence)

    def progress(self) -> Progress:
        """Return a progress bar."""
        return Progress(console=Console(stderr=True), transient=True, disable=self.quiet)

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show a spinner while something is being done."""
        if self.quiet:
            yield
            return
        with Console(stderr=True).status(what):
            yield


def print_error(text: str) -> None:
    """Print a message to the standard error stream as it is."""
    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)
