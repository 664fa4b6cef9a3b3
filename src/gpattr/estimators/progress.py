"""Progress of training on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpattr._core.progress_line import ProgressLine

Report = Callable[[int, int, float], None]  # (start, iteration, log marginal likelihood)


@contextmanager
def training_progress(
    verbose: int, n_starts: int, offset: float, what: str = "log marginal likelihood"
) -> Iterator[Report | None]:
    """Yield a function that updates one progress line on stderr; None if nothing is shown.

    ``offset`` takes log p(y), or ``what`` is maximised in its place, from the units of training to
    the user's.
    """
    if not verbose:
        yield None
        return
    with ProgressLine("training") as line:

        def report(start: int, iteration: int, value: float) -> None:
            where = f"start {start + 1} of {n_starts}, " if n_starts > 1 else ""
            line.update(f"training: {where}iteration {iteration}, {what} {value + offset:.2f}")

        yield report


@contextmanager
def family_progress(verbose: int) -> Iterator[Callable[[str], None]]:
    """Yield a function of a family of kernels that updates one progress line on stderr."""
    if not verbose:
        yield lambda family: None
        return
    with ProgressLine("training") as line:
        yield lambda family: line.update(f"training: hyperparameters of {family}")


@contextmanager
def stream_progress(verbose: int) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of chunks and rows that updates one progress line on stderr."""
    if not verbose:
        yield lambda chunks, rows: None
        return
    with ProgressLine("learning") as line:
        yield lambda chunks, rows: line.update(f"learning: {chunks} chunks, {rows:,} rows")


@contextmanager
def pass_progress(verbose: int, what: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function that counts one of ``total`` parts of a pass over rows on stderr."""
    if not verbose:
        yield lambda: None
        return
    done = 0
    with ProgressLine(what) as line:

        def step() -> None:
            nonlocal done
            done += 1
            line.update(f"{what}: {done} of {total}")

        yield step
