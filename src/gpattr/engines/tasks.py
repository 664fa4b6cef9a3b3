"""Tasks of engines: one part of a table, in one thread, with errors that name the part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpattr._core.workers import one_thread
from gpattr.exceptions import GpattrError


@contextmanager
def task(part: str) -> Iterator[None]:
    """Run a ``with`` block in one thread, as one of many tasks, and name the part in errors."""
    with one_thread(), naming(part):
        yield


@contextmanager
def naming(part: str) -> Iterator[None]:
    """Name the part of a table in the errors of a ``with`` block."""
    try:
        yield
    except GpattrError as error:
        raise type(error)(f"{part}: {error}") from error
