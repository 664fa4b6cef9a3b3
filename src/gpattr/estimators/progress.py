"""Progress of training on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=None)

        def report(start: int, iteration: int, value: float) -> None:
            where = f"start {start + 1} of {n_starts}, " if n_starts > 1 else ""
            progress.update(
                task,
                description=f"training: {where}iteration {iteration}, {what} {value + offset:.2f}",
            )

        yield report
        progress.update(task, total=1, completed=1)


@contextmanager
def stream_progress(verbose: int) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of chunks and rows that updates one progress line on stderr."""
    if not verbose:
        yield lambda chunks, rows: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("learning", total=None)
        yield lambda chunks, rows: progress.update(
            task, description=f"learning: {chunks} chunks, {rows:,} rows"
        )
        progress.update(task, total=1, completed=1)


@contextmanager
def pass_progress(verbose: int, what: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function that counts one of ``total`` parts of a pass over rows on stderr."""
    if not verbose:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.update(task, advance=1)
        progress.update(task, completed=total)
