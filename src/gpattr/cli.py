"""The command line: ``gpattr demo``."""

from __future__ import annotations

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
        Console(stderr=True).print(f"Cannot write to {error.filename or out}: {error.strerror or error}", markup=False)
        raise typer.Exit(1) from None
