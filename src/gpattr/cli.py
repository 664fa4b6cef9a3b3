"""The command line: ``gpattr demo``, ``fit``, ``explain``, ``report``, ``paper`` and ``info``."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from gpattr import __version__

if TYPE_CHECKING:
    from gpattr.commands.explain import Result
    from gpattr.commands.streaming import Streamed

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Explain Gaussian processes, with the uncertainty of the explanation.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpattr {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Handle the options before the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # ω is a question mark where it is not available


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Output folder for the table, the picture and the report.")
    ] = Path("gpattr-demo"),
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the output paths.")] = False,
) -> None:
    """Train on scikit-learn's diabetes data and explain held-out patients."""
    from gpattr.demo import run

    console = Console()
    try:
        out.mkdir(parents=True, exist_ok=True)
        run(out, console, quiet=quiet)
    except OSError as error:
        raise _cannot(out, error) from None


Data = Annotated[
    Path,
    typer.Argument(
        help="CSV file with column names in the first line, or Excel or Parquet file; or a folder"
        " of CSV or Parquet files.",
        show_default=False,
    ),
]
Target = Annotated[str, typer.Option(help="The column to predict.", show_default=False)]
Kernel = Annotated[
    str | None,
    typer.Option(
        help="squared-exponential, matern52, matern32 or rational-quadratic; by default the"
        " first two are averaged.",
        show_default=False,
    ),
]
Estimator = Annotated[
    str, typer.Option(help="auto (chosen by the number of rows), exact, sparse or random-features.")
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="Column to leave out; may be repeated.", show_default=False),
]
Task = Annotated[
    str | None,
    typer.Option(
        help="regression or classification; by default decided from the target.",
        show_default=False,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Do not fill missing values, drop columns or group rare categories; fail instead.",
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(help="Sheet of an Excel workbook that has several.", show_default=False),
]
Impute = Annotated[
    bool,
    typer.Option(
        "--impute", hidden=True, help="No longer needed: missing values are filled by default."
    ),
]
InParts = Annotated[
    bool | None,
    typer.Option(
        "--stream/--no-stream",
        help="Read the table in parts, or at once; by default by its size, and folders in parts.",
        show_default=False,
    ),
]
OnErrors = Annotated[
    str,
    typer.Option(
        help="Of a table in parts, rows that contradict the model's columns stop (raise), or have"
        " no explanation (missing)."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only errors and output paths.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]


ExplainTarget = Annotated[
    str | None,
    typer.Option(help="The column to predict; not needed with --model.", show_default=False),
]
Model = Annotated[
    Path | None,
    typer.Option(
        help="Model file from gpattr fit; trained from the data if omitted.", show_default=False
    ),
]
Rows = Annotated[
    str | None,
    typer.Option(
        help="Rows to explain, counted from 1: 1-10,17. All by default.", show_default=False
    ),
]
Baseline = Annotated[
    str, typer.Option(help="mean, median, row:N, or a file with one or more rows.")
]
Attribution = Annotated[str, typer.Option(help="integrated-gradients or shapley.")]
Curves = Annotated[
    list[str] | None,
    typer.Option(
        "--dependence",
        help="Features with a curve of partial dependence, separated by commas, or none; may be"
        " repeated. The strongest by default.",
        show_default=False,
    ),
]
Level = Annotated[float, typer.Option(help="Level of the credible intervals.")]
Folder = Annotated[Path, typer.Option(help="Output folder.")]
Full = Annotated[
    bool,
    typer.Option("--full", help="Write everything about every row, however large the files are."),
]
Identifier = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        help="Of a table in parts: column that is written beside the row number; may be repeated.",
        show_default=False,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler, such as tcp://127.0.0.1:8786, whose workers explain the"
        " parts.",
        show_default=False,
    ),
]
Figure = Annotated[
    list[str] | None,
    typer.Option(
        help="1 to 7 (6 and 7 are in the appendix), linear or axioms; may be repeated. All by"
        " default."
    ),
]
DataHome = Annotated[
    Path | None,
    typer.Option(help="Folder with the data; by default GPATTR_DATA_DIR, or a cached download."),
]


@app.command()
def fit(
    data: Data,
    target: Target,
    out: Annotated[Path, typer.Option(help="Output file for the model.")] = Path("model.json"),
    estimator: Estimator = "auto",
    kernel: Kernel = None,
    drop: Drop = None,
    strict: Strict = False,
    sheet: Sheet = None,
    impute: Impute = False,
    task: Task = None,
    stream: InParts = None,
    errors: OnErrors = "raise",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Train a Gaussian process on a table and write it to a file."""
    from gpattr.commands import notes
    from gpattr.commands.fit import read_training, train
    from gpattr.commands.output import require_new, require_not
    from gpattr.commands.streaming import fit_stream, is_streamed
    from gpattr.commands.terminal import Terminal
    from gpattr.tables.choice import resolved_estimator

    terminal = Terminal(quiet)
    with _one_sentence_errors(out):
        require_new(out, force)
        require_not(out, data)
        out.parent.mkdir(parents=True, exist_ok=True)
        in_parts, why = is_streamed(data, stream, errors=errors)
        if in_parts:
            terminal.print([why])
            chosen = {"target": target, "drop": drop or (), "strict": strict, "task": task}
            fit_stream(data, out, estimator, kernel, errors, terminal, sheet=sheet, **chosen)
            typer.echo(f"Model: {out}")
            return
        table = read_training(data, target, drop=drop or (), strict=strict, sheet=sheet, task=task)
        table.notes.extend(notes.of_training_rows(table.X, table.y))
        estimator, chosen = resolved_estimator(estimator, len(table.X), table.task)
        terminal.print([*table.notes, chosen])
        model = train(table, estimator=estimator, kernel=kernel, verbose=not quiet)
        model.save(out)
        if not quiet:
            n, d = table.X.shape
            name = "R²" if model.task == "regression" else "accuracy"
            score = model.score(table.X, table.y)
            typer.echo(f"{n} rows × {d} features; {name} on these rows {score:.3f}")
        terminal.print(notes.of_model(model))
        typer.echo(f"Model: {out}")


@app.command()
def explain(
    data: Data,
    target: ExplainTarget = None,
    model: Model = None,
    rows: Rows = None,
    baseline: Baseline = "mean",
    attribution: Attribution = "integrated-gradients",
    estimator: Estimator = "auto",
    kernel: Kernel = None,
    drop: Drop = None,
    strict: Strict = False,
    sheet: Sheet = None,
    impute: Impute = False,
    task: Task = None,
    dependence: Curves = None,
    level: Level = 0.95,
    out: Folder = Path("gpattr-explanation"),
    full: Full = False,
    stream: InParts = None,
    identifier: Identifier = None,
    errors: OnErrors = "raise",
    dask: Dask = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Explain the predictions for the rows of a table, with the uncertainty of each attribution."""
    from gpattr.commands import explain as command
    from gpattr.commands import streaming
    from gpattr.commands.result_words import summary, whole_summary
    from gpattr.commands.terminal import Terminal

    request = command.Request(
        data=data,
        target=target,
        model=model,
        rows=rows,
        baseline=baseline,
        attribution=attribution,
        estimator=estimator,
        kernel=kernel,
        drop=drop or (),
        strict=strict,
        sheet=sheet,
        task=task,
        dependence=dependence or (),
        level=level,
        out=out,
        full=full,
        force=force,
        stream=stream,
        dask=dask,
        errors=errors,
        identifiers=identifier or (),
    )
    with _one_sentence_errors(out):
        terminal = Terminal(quiet or as_json)
        asked = {"dask": dask, "errors": errors, "identifiers": identifier or ()}
        in_parts, why = streaming.is_streamed(data, stream, **asked)
        if in_parts:
            terminal.print([why])
            _print_parts(streaming.run(request, terminal), out, quiet, as_json)
            return
        result = command.run(request, terminal)
        if as_json:
            known = summary(result.model, result.explanations, result.importances)
            known |= whole_summary(result.whole)
            known |= {"notes": result.notes, "folder": str(out)}
            typer.echo(json.dumps(known, ensure_ascii=False))
        else:
            _print_result(result, out, quiet)


def _print_result(result: Result, out: Path, quiet: bool) -> None:
    """Print importance, where the variance comes from, rows of a classifier, and the folder."""
    from gpattr.commands.result_words import sentences, variance_sentence

    if not quiet:
        for label, each in result.importances.items():
            name = f"{result.explanations[label].quantity}\n" if label else ""
            typer.echo(f"{name}{each!r}")
            if label in result.whole.indices:
                typer.echo(variance_sentence(result.whole.indices[label]))
        for sentence in sentences(result.model, result.explanations, result.observed):
            typer.echo(sentence)
    n = len(result.first)
    rows = "1 row" if n == 1 else f"{n:,} rows"
    typer.echo(f"{rows} explained: {out}; open {out / 'report.html'} in a browser")


def _print_parts(found: Streamed, out: Path, quiet: bool, as_json: bool) -> None:
    """Print the importance over all rows of a table in parts, and the folder."""
    if as_json:
        several = len(found.importance) > 1
        first = next(iter(found.importance.values()), None)
        known = {
            "rows": found.rows,
            "missing": found.missing,
            "parts": found.parts,
            "mean_absolute_attribution": found.importance if several else first,
            "notes": found.notes,
            "folder": str(out),
        }
        typer.echo(json.dumps(known, ensure_ascii=False))
        return
    if found.result is not None and not quiet:
        for label, each in found.result.importances.items():
            name = f"{found.result.explanations[label].quantity}\n" if label else ""
            typer.echo(f"{name}{each!r}")
    typer.echo(
        f"{found.rows - found.missing:,} rows explained in {found.parts:,} parts: {out / 'parts'};"
        f" open {out / 'report.html'} in a browser"
    )


@app.command()
def report(
    explanation: Annotated[
        Path, typer.Argument(help="File written by Explanation.save.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Output file.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Predictions, explained",
    level: Level = 0.95,
    force: Force = False,
) -> None:
    """Write a self-contained HTML report from a saved explanation."""
    from gpattr.commands.output import require_new, require_not
    from gpattr.explanation.explanation import Explanation
    from gpattr.report import write_report

    with _one_sentence_errors(out):
        require_new(out, force)
        require_not(out, explanation)
        ex = Explanation.load(explanation)
        write_report(out, ex, title=title, level=level)
        typer.echo(f"{len(ex)} rows: {out}")


@app.command()
def info(as_json: AsJson = False) -> None:
    """Show versions, installed libraries, and the supported models of each."""
    from rich.table import Table

    from gpattr.commands.info import information

    known = information()
    if as_json:
        typer.echo(json.dumps(known))
        return
    console = Console()
    console.print(f"gpattr {known['gpattr']}, Python {known['python']}", highlight=False)
    console.print(
        ", ".join(f"{name} {found or '–'}" for name, found in known["parts"].items()),
        highlight=False,
    )
    table = Table("library", "installed", "supported models")
    for library, each in known["models"].items():
        table.add_row(library, each["installed"] or "–", ", ".join(each["models"]))
    console.print(table)


@app.command()
def paper(
    figure: Figure = None,
    out: Annotated[Path, typer.Option(help="Output folder.")] = Path("gpattr-paper"),
    data_home: DataHome = None,
    reduced: Annotated[
        bool, typer.Option("--reduced", help="Use fewer restarts, models and repetitions.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce all figures of the paper, and check their numbers."""
    from gpattr.commands.terminal import print_error
    from gpattr.exceptions import DatasetError, OptionalPackageError
    from gpattr.paper import EXPERIMENTS
    from gpattr.paper.command import run

    names = list(dict.fromkeys(figure or EXPERIMENTS))
    for name in names:
        if name not in EXPERIMENTS:
            raise typer.BadParameter(
                f"expected one of {', '.join(EXPERIMENTS)}, got {name!r}", param_hint="--figure"
            )
    try:
        out.mkdir(parents=True, exist_ok=True)
        passed = run(names, out, Console(), data_home=data_home, reduced=reduced, quiet=quiet)
    except (DatasetError, OptionalPackageError) as error:
        print_error(str(error))
        raise typer.Exit(1) from None
    except OSError as error:
        raise _cannot(out, error) from None
    if not passed:
        raise typer.Exit(1)


@contextmanager
def _one_sentence_errors(out: Path) -> Iterator[None]:
    """Print an error as one sentence, without a traceback, and exit with code 1."""
    from gpattr.commands.terminal import print_error
    from gpattr.exceptions import GpattrError

    try:
        yield
    except GpattrError as error:
        print_error(str(error))
        raise typer.Exit(1) from None
    except FileNotFoundError as error:
        print_error(f"{error.filename or error}: no such file")
        raise typer.Exit(1) from None
    except OSError as error:
        raise _cannot(out, error) from None


def _cannot(out: Path, error: OSError) -> typer.Exit:
    """Print what could not be read or written; return the exit."""
    from gpattr.commands.terminal import print_error

    print_error(f"{error.filename or out}: {error.strerror or error}")
    return typer.Exit(1)
