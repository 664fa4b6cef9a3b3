"""The command line: ``gpattr demo`` and ``gpattr paper``."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gpattr import __version__

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Explain Gaussian processes, with the uncertainty of the explanation."
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpattr {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before any command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal or file that has no ω shows a question mark instead


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the table and the picture.")] = Path("gpattr-demo"),
    quiet: Annotated[bool, typer.Option("--quiet", help="Say only where the files are.")] = False,
) -> None:
    """Train on scikit-learn's diabetes data, explain held-out patients, write a table and a picture."""
    from gpattr.demo import run

    console = Console()
    try:
        out.mkdir(parents=True, exist_ok=True)
        run(out, console, quiet=quiet)
    except OSError as error:
        raise _cannot_write(out, error) from None


@app.command()
def paper(
    figure: Annotated[
        list[str] | None,
        typer.Option(help="1 to 7 (6 and 7 are the appendix's), linear or axioms; may be repeated. All by default."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for pictures and numbers.")] = Path("gpattr-paper"),
    data_home: Annotated[
        Path | None, typer.Option(help="Folder with the data; unless given GPATTR_DATA_DIR, or a download kept in the cache.")
    ] = None,
    reduced: Annotated[bool, typer.Option("--reduced", help="Fewer restarts, models and repetitions.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say only what failed and where the files are.")] = False,
) -> None:
    """Reproduce the paper: every figure and its numbers, which are compared with what is expected of them."""
    from gpattr.exceptions import DatasetError
    from gpattr.paper import EXPERIMENTS
    from gpattr.paper.command import run

    names = list(dict.fromkeys(figure or EXPERIMENTS))
    for name in names:
        if name not in EXPERIMENTS:
            raise typer.BadParameter(f"expected one of {', '.join(EXPERIMENTS)}, got {name!r}", param_hint="--figure")
    try:
        out.mkdir(parents=True, exist_ok=True)
        passed = run(names, out, Console(), data_home=data_home, reduced=reduced, quiet=quiet)
    except DatasetError as error:
        Console(stderr=True).print(str(error), markup=False, soft_wrap=True)
        raise typer.Exit(1) from None
    except OSError as error:
        raise _cannot_write(out, error) from None
    if not passed:
        raise typer.Exit(1)


def _cannot_write(out: Path, error: OSError) -> typer.Exit:
    """Say in one sentence what could not be written; return the exit."""
    Console(stderr=True).print(f"Cannot write to {error.filename or out}: {error.strerror or error}", markup=False)
    return typer.Exit(1)
