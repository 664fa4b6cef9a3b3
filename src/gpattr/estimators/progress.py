"""Progress of training on the terminal: functions that update one line on the error stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count

from gpattr._core.progress_line import ProgressLine


@contextmanager
def _progress(verbose: int, title: str, words: Callable[..., str]) -> Iterator[Callable[..., None]]:
    """A function that shows the words for its arguments; it does nothing unless ``verbose``."""
    if not verbose:
        yield lambda *_: None
        return
    with ProgressLine(title) as line:
        yield lambda *arguments: line.update(f"{title}: {words(*arguments)}")


def training_progress(
    verbose: int, n_starts: int, offset: float, what: str = "log marginal likelihood"
) -> AbstractContextManager[Callable[[int, int, float], None]]:
    """A function of start, iteration and value.

    ``offset`` takes log p(y), or ``what`` is maximised in its place, from the units of training to
    the user's.
    """

    def words(start: int, iteration: int, value: float) -> str:
        where = f"start {start + 1} of {n_starts}, " if n_starts > 1 else ""
        return f"{where}iteration {iteration}, {what} {value + offset:.2f}"

    return _progress(verbose, "training", words)


def family_progress(verbose: int) -> AbstractContextManager[Callable[[str], None]]:
    """A function of a family of kernels."""
    return _progress(verbose, "training", lambda family: f"hyperparameters of {family}")


def stream_progress(verbose: int) -> AbstractContextManager[Callable[[int, int], None]]:
    """A function of chunks and rows."""
    return _progress(verbose, "learning", lambda chunks, rows: f"{chunks} chunks, {rows:,} rows")


def pass_progress(
    verbose: int, what: str, total: int
) -> AbstractContextManager[Callable[[], None]]:
    """A function that counts parts, ``total`` in all, of a pass over rows."""
    done = count(1)
    return _progress(verbose, what, lambda: f"{next(done)} of {total}")
