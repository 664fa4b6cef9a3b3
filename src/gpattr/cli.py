"""The command line: ``gpattr demo``, ``fit``, ``explain``, ``report``, ``paper`` and ``info``."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from gpattr import __version__

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
    """Take the options that stand before any command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # a terminal or file that has no ω shows a question mark instead


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the table, the picture and the report.")
    ] = Path("gpattr-demo"),
    quiet: Annotated[bool, typer.Option("--quiet", help="Say only where the files are.")] = False,
) -> None:
    """Train on scikit-learn's diabetes data, explain held-out patients, write a table, a picture
    and a report.
    """
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
        help="A CSV file with column names in its first line, or Excel, or Parquet.",
        show_default=False,
    ),
]
Target = Annotated[str, typer.Option(help="The column that is predicted.", show_default=False)]
Kernel = Annotated[
    str | None,
    typer.Option(
        help="squared-exponential (default), matern52, matern32 or rational-quadratic.",
        show_default=False,
    ),
]
Estimator = Annotated[
    str, typer.Option(help="auto (chosen by the number of rows), exact, sparse or random-features.")
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="A column to leave out; may be repeated.", show_default=False),
]
Task = Annotated[
    str | None,
    typer.Option(
        help="regression or classification; decided from the target unless given.",
        show_default=False,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse to fill missing values, leave columns out or group rare categories.",
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(help="The sheet of an Excel workbook that has several.", show_default=False),
]
Impute = Annotated[
    bool, typer.Option("--impute", hidden=True, help="No longer needed: missing values are filled.")
]
Force = Annotated[bool, typer.Option("--force", help="Write over what is there.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Say only what failed and where the files are.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print what was done as JSON, and nothing else.")
]


@app.command()
def fit(
    data: Data,
    target: Target,
    out: Annotated[Path, typer.Option(help="File for the model.")] = Path("model.json"),
    estimator: Estimator = "auto",
    kernel: Kernel = None,
    drop: Drop = None,
    strict: Strict = False,
    sheet: Sheet = None,
    impute: Impute = False,
    task: Task = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Train a Gaussian process on a table and write it to a file."""
    from gpattr.commands import notes
    from gpattr.commands.fit import read_training, train
    from gpattr.commands.output import require_new, require_not
    from gpattr.tables.choice import resolved_estimator

    with _one_sentence(out):
        require_new(out, force)
        require_not(out, data)
        out.parent.mkdir(parents=True, exist_ok=True)
        table = read_training(data, target, drop=drop or (), strict=strict, sheet=sheet, task=task)
        table.notes.extend(notes.of_few_rows(table.X))
        estimator, chosen = resolved_estimator(estimator, len(table.X), table.task)
        _say([*table.notes, chosen], quiet)
        model = train(table, estimator=estimator, kernel=kernel, verbose=not quiet)
        model.save(out)
        if not quiet:
            n, d = table.X.shape
            score = "R²" if model.task == "regression" else "accuracy"
            typer.echo(
                f"{n} rows × {d} features; {score} on these rows"
                f" {model.score(table.X, table.y):.3f}"
            )
        _say(notes.of_model(model), quiet)
        typer.echo(f"Model: {out}")


@app.command()
def explain(
    data: Data,
    target: Annotated[
        str | None,
        typer.Option(
            help="The column that is predicted; a model knows its own.", show_default=False
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A model saved by gpattr fit; by default one is trained.", show_default=False
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            help="Rows to explain, counted from 1: 1-10,17. All by default.", show_default=False
        ),
    ] = None,
    baseline: Annotated[
        str, typer.Option(help="mean, median, row:17, or a file with one row or more.")
    ] = "mean",
    estimator: Estimator = "auto",
    kernel: Kernel = None,
    drop: Drop = None,
    strict: Strict = False,
    sheet: Sheet = None,
    impute: Impute = False,
    task: Task = None,
    level: Annotated[float, typer.Option(help="Level of the credible intervals.")] = 0.95,
    out: Annotated[Path, typer.Option(help="Folder for what is written.")] = Path(
        "gpattr-explanation"
    ),
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Write everything about every row, however large the files are."
        ),
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Explain the rows of a table: why does the model expect this, and how sure is it of each
    reason?
    """
    import numpy as np

    from gpattr._core.normal import check_level
    from gpattr.commands import classes, notes
    from gpattr.commands import explain as work
    from gpattr.commands.fit import read_rows, read_training, train
    from gpattr.commands.output import (
        recover,
        require_new,
        require_outside,
        require_own,
        whole_folder,
    )
    from gpattr.commands.selection import chosen_baseline, chosen_rows
    from gpattr.exceptions import InvalidInputError
    from gpattr.tables import TableModel
    from gpattr.tables.choice import resolved_estimator

    quiet = quiet or as_json
    with _one_sentence(out):
        recover(out)
        require_new(out, force)
        require_own(out)
        for used in (data, model, Path(baseline)):
            if used is not None and used.exists():
                require_outside(out, used)
        check_level(level)
        fitted = None if model is None else TableModel.load(model)
        if fitted is None:
            if target is None:
                raise InvalidInputError("--target: the column that is predicted must be named")
            table = read_training(
                data, target, drop=drop or (), strict=strict, sheet=sheet, task=task
            )
        else:
            if target not in (None, fitted.columns.target):
                raise InvalidInputError(
                    f"--target: the model predicts {fitted.columns.target!r}, got {target!r}"
                )
            if kernel is not None or estimator != "auto":
                raise InvalidInputError(
                    "--kernel, --estimator: the model that is given has its own"
                )
            if task not in (None, fitted.task):
                raise InvalidInputError(
                    f"--task: the model that is given is for {fitted.task}, got {task!r}"
                )
            table = read_rows(data, fitted, drop=drop or (), strict=strict, sheet=sheet)
        places = chosen_rows(rows, table.X.index)
        start, start_name = chosen_baseline(baseline, table.X, table.columns, data.name)
        if fitted is None:
            table.notes.extend(notes.of_few_rows(table.X))
            estimator, how = resolved_estimator(estimator, len(table.X), table.task)
            _say([*table.notes, how], quiet)
            fitted = train(table, estimator=estimator, kernel=kernel, verbose=not quiet)
        else:
            _say(table.notes, quiet)
        said = [*table.notes, *notes.of_model(fitted)]
        _say(said[len(table.notes) :], quiet)
        if rows is None and len(
            places := classes.chosen_by_default(fitted, table.y, len(table.X))
        ) < len(table.X):
            said.append(
                f"{len(places):,} of {len(table.X):,} rows, chosen at random, are explained; --rows"
                " all explains every row."
            )
            _say(said[-1:], quiet)
        chosen, measured = table.X.iloc[places], None if table.y is None else table.y[places]
        explainers = classes.explainers(fitted, start, start_name, len(chosen))
        with _progress(quiet) as bar:
            found = {
                label: work.explained(
                    explainer,
                    chosen,
                    lambda parts, n, label=label: bar.track(
                        parts, n, description=f"explaining rows {escape(label)}"
                    ),
                )
                for label, explainer in explainers.items()
            }
        with _working("finding out how sure the importance is", quiet):
            importances = {
                label: work.importance_of(explainers[label], chosen, each)
                for label, each in found.items()
            }
        (ex, *_), (importance, *_) = found.values(), importances.values()
        told = len(said)
        with whole_folder(out, force=force) as folder, _working("drawing", quiet):
            if model is None:
                fitted.save(folder / "model.json")
            shown = np.arange(len(ex)) if len(found) > 1 else work.shown_rows(ex, full)
            if len(found) == 1:
                said += work.write_tables(folder, ex, importance, level, shown, full)
                said += work.draw_pictures(folder, ex, importance, level)
            else:
                said += classes.write_tables(folder, found, importances, level)
                said += work.lacking_letters(
                    classes.draw_pictures(folder, found, importances, level)
                )
            options = {
                "held_out": fitted.held_out,
                "measured": None if measured is None else measured[shown],
            }
            options |= {"notes": said, "level": level, "data_name": data.name}
            options["title"] = f"Why the model expects this {fitted.columns.target}"
            page = {
                label: each if len(shown) == len(each) else each[shown]
                for label, each in found.items()
            }
            classes.write_page(folder / "report.html", page, importances, explainers, **options)
        if as_json:
            known = (
                work.summary(ex, importance)
                | classes.summary(fitted, importances)
                | {
                    "notes": said,
                    "folder": str(out),
                }
            )
            typer.echo(json.dumps(known, ensure_ascii=False))
            return
        _say(said[told:], quiet)
        if not quiet:
            for label, each in importances.items():
                typer.echo(f"{found[label].quantity}\n{each!r}" if label else repr(each))
            _say(classes.sentences(fitted, found, measured), quiet)
        rows_explained = "1 row" if len(ex) == 1 else f"{len(ex):,} rows"
        typer.echo(f"{rows_explained} explained: {out}; open {out / 'report.html'} in a browser")


@app.command()
def report(
    explanation: Annotated[
        Path, typer.Argument(help="A file that Explanation.save wrote.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="File for the page.")] = Path("report.html"),
    title: Annotated[
        str, typer.Option(help="What stands above it.")
    ] = "Why the model expects this",
    level: Annotated[float, typer.Option(help="Level of the credible intervals.")] = 0.95,
    force: Force = False,
) -> None:
    """Make a page of an explanation that was saved: one file, to be opened in a browser or sent by
    mail.
    """
    from gpattr.commands.output import require_new, require_not
    from gpattr.explanation.explanation import Explanation
    from gpattr.report import write_report

    with _one_sentence(out):
        require_new(out, force)
        require_not(out, explanation)
        ex = Explanation.load(explanation)
        write_report(out, ex, title=title, level=level)
        typer.echo(f"{len(ex)} rows: {out}")


@app.command()
def info(as_json: AsJson = False) -> None:
    """Show versions, what is installed, and which models of other libraries are known."""
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
    table = Table("library", "installed", "models that are explained")
    for library, each in known["models"].items():
        table.add_row(library, each["installed"] or "–", ", ".join(each["models"]))
    console.print(table)


@app.command()
def paper(
    figure: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "1 to 7 (6 and 7 are the appendix's), linear or axioms; may be repeated. All by"
                " default."
            )
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for pictures and numbers.")] = Path(
        "gpattr-paper"
    ),
    data_home: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Folder with the data; unless given GPATTR_DATA_DIR, or a download kept in the"
                " cache."
            )
        ),
    ] = None,
    reduced: Annotated[
        bool, typer.Option("--reduced", help="Fewer restarts, models and repetitions.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Say only what failed and where the files are.")
    ] = False,
) -> None:
    """Reproduce the paper: every figure and its numbers, which are compared with what is expected
    of them.
    """
    from gpattr.exceptions import DatasetError
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
    except DatasetError as error:
        Console(stderr=True).print(str(error), markup=False, soft_wrap=True)
        raise typer.Exit(1) from None
    except OSError as error:
        raise _cannot(out, error) from None
    if not passed:
        raise typer.Exit(1)


@contextmanager
def _one_sentence(out: Path) -> Iterator[None]:
    """Say what went wrong in one sentence, without a traceback, and leave with an exit code."""
    from gpattr.exceptions import GpattrError

    try:
        yield
    except GpattrError as error:
        Console(stderr=True).print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
    except FileNotFoundError as error:
        Console(stderr=True).print(
            f"{error.filename or error}: no such file",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(1) from None
    except OSError as error:
        raise _cannot(out, error) from None


def _say(sentences: list[str], quiet: bool) -> None:
    if not quiet:
        for sentence in filter(None, sentences):
            typer.echo(sentence)


def _progress(quiet: bool) -> Progress:
    """Return a bar that shows how much is done."""
    return Progress(console=Console(stderr=True), transient=True, disable=quiet)


@contextmanager
def _working(what: str, quiet: bool) -> Iterator[None]:
    """Show that something is being done, while it is."""
    if quiet:
        yield
        return
    with Console(stderr=True).status(what):
        yield


def _cannot(out: Path, error: OSError) -> typer.Exit:
    """Say in one sentence what could not be read or written; return the exit."""
    Console(stderr=True).print(
        f"{error.filename or out}: {error.strerror or error}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    return typer.Exit(1)
