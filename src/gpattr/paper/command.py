"""``gpattr paper``: progress while experiments run, then a table of checks."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from gpattr.paper.reproduce import Report, reproduce


def run(
    names: list[str],
    out: Path,
    console: Console,
    *,
    data_home: str | PathLike[str] | None,
    reduced: bool,
    quiet: bool,
) -> bool:
    """Run experiments, print checks (failed ones if ``quiet``), and return whether all passed."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    reports = []
    with Progress(
        *columns, console=console, transient=True, disable=quiet or not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=len(names))
        for name in names:

            def show(what: str, name: str = name) -> None:
                progress.update(task, description=f"{_kind(name)}: {what}")
                if progress.disable and not quiet:  # lines instead of a bar in a file or pipe
                    console.print(f"{_kind(name)}: {what}", soft_wrap=True, highlight=False)

            progress.update(task, description=_kind(name))
            (report,) = reproduce([name], out, data_home=data_home, reduced=reduced, progress=show)
            reports.append(report)
            progress.advance(task)
            if not quiet:
                console.print(
                    f"{_mark(report.passed)} {report.title} ({report.seconds:.0f} s):"
                    f" {escape(str(report.picture))}",
                    soft_wrap=True,
                )
    checks = [check for report in reports for check in report.checks]
    failed = sum(not check.passed for check in checks)
    if failed or not quiet:
        console.print(table(reports, only_failed=quiet))
    console.print(
        f"{len(checks) - failed} of {len(checks)} numbers are as expected; figures and numbers:"
        f" {escape(str(out))}",
        soft_wrap=True,
    )
    return not failed


def table(reports: list[Report], *, only_failed: bool) -> Table:
    """Return a table of numbers, the published ones, the accepted ranges, and the results."""
    result = Table(title="Numbers behind the figures", title_justify="left")
    result.add_column("number", overflow="fold")
    for name in ("value", "published", "accepted"):
        result.add_column(name, justify="right", overflow="fold")
    result.add_column("")
    for report in reports:
        shown = [check for check in report.checks if not (only_failed and check.passed)]
        if shown:
            result.add_row(f"[bold]{report.title}[/bold]")
        for check in shown:
            result.add_row(
                f"  {check.name}",
                f"{check.value:.4g}",
                check.published,
                check.accepted,
                _mark(check.passed),
            )
        result.add_section()
    return result


def _kind(name: str) -> str:
    return f"Figure {name}" if name.isdigit() else name.capitalize()


def _mark(passed: bool) -> str:
    return "[green]pass[/green]" if passed else "[bold red]FAIL[/bold red]"
