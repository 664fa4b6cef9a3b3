"""``gpattr explain`` of a table that is larger than memory: in parts, which stay if it is killed.

The folder has a manifest (see `gpattr.commands.manifest`), the explained parts, and, when all are
there, tables, pictures and the report, which are on a sample of the rows; importance is over all of
them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpattr import __version__
from gpattr._core.memory import available_memory, readable_bytes
from gpattr._core.normal import check_level
from gpattr._core.validation import check_choice
from gpattr.commands import notes, stream_report
from gpattr.commands.explain import (
    LATENT,
    Request,
    Result,
    check_model,
)
from gpattr.commands.explained_parts import Work, check_cluster, on_cluster
from gpattr.commands.explainers import explainers
from gpattr.commands.manifest import NAME, Manifest, refuse_other
from gpattr.commands.output import (
    OWN,
    PART,
    PARTS,
    UNFINISHED,
    locked,
    require_outside,
    require_own,
)
from gpattr.commands.selection import chosen_attribution, chosen_baseline
from gpattr.commands.stream_training import Training
from gpattr.commands.terminal import Terminal
from gpattr.engines import FrameFunction
from gpattr.exceptions import FileFormatError, InvalidInputError
from gpattr.tables import TableModel, stream
from gpattr.tables.part_features import ERRORS, PartReader, decimal_commas
from gpattr.tables.reading import ENDINGS, OLD_ENDINGS
from gpattr.tables.stream import SAMPLE_ROWS, Stream, stamps_of

MODEL = "model.json"
IN_MEMORY = 16  # bytes of memory for each byte of a file that is read at once: 15 were measured
SHARE = 0.5  # of the memory that is free which a table may take


@dataclass(frozen=True)
class Streamed:
    """Explained rows: the result for a sample of rows, and the numbers of all."""

    result: Result | None
    rows: int
    missing: int
    parts: int
    notes: list[str] = field(default_factory=list)
    importance: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def is_streamed(
    data: Path,
    wanted: bool | None,
    *,
    dask: str | None = None,
    errors: str = "raise",
    identifiers: Sequence[str] = (),
) -> tuple[bool, str]:
    """Return whether a table is explained in parts, and a sentence if that was decided here.

    The other options concern parts alone, and so ask for them.
    """
    check_choice("--errors", errors, ERRORS)
    given = {"--dask": dask is not None, "--errors": errors != "raise", "--id": bool(identifiers)}
    asking = [option for option, is_given in given.items() if is_given]
    if wanted is not None:
        if asking and not wanted:
            raise InvalidInputError(
                f"{asking[0]}: concerns parts of a table, and cannot be combined with --no-stream"
            )
        return wanted, ""
    if asking:
        return True, ""
    if data.is_dir():
        return True, f"{data} is a folder: its files are explained in parts."
    if not data.exists() or data.suffix.lower() in (*ENDINGS, *OLD_ENDINGS):
        return False, ""
    size, free = data.stat().st_size, available_memory()
    if IN_MEMORY * size <= SHARE * free:
        return False, ""
    return True, (
        f"{data} has {readable_bytes(size)}, which is much for {readable_bytes(free)} of free"
        " memory: it is explained in parts (--no-stream reads it at once)."
    )


def run(request: Request, terminal: Terminal) -> Streamed:
    """Explain a table part by part, or go on where an earlier run stopped."""
    _check(request)
    fitted = None if request.model is None else TableModel.load(request.model)
    if fitted is not None:
        check_model(request, fitted)
    elif request.target is None:
        raise InvalidInputError("--target: name the column to predict")
    stamps = stamps_of(str(request.data))
    if request.dask is not None:
        check_cluster(request.dask)
    folder = request.out.resolve()
    with ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        if not stack.enter_context(locked(folder)) and os.name == "posix":
            raise InvalidInputError(f"{request.out}: another run is writing to it")
        _remove_unfinished(folder)
        require_own(folder)
        manifest = None
        try:
            given = "" if request.model is None else _digest(request.model)
            manifest = _earlier(request, folder, stamps, given, terminal)
            if manifest is not None and manifest.finished:
                terminal.print(
                    [f"All {len(manifest.done):,} parts are there: nothing is left to do."]
                )
                return _summary(manifest, None)
            found = _found(request.data, terminal, fewest=2 if fitted is None else 1)
            if found.stamps != stamps:
                raise InvalidInputError(f"{request.data}: changed while it was read; try again")
            if manifest is None:
                manifest = Manifest(folder, stamps, len(found.parts), _options(request), given)
                manifest.save()
            (folder / PARTS).mkdir(exist_ok=True)
            model, known = _model(request, manifest, found, fitted, terminal)
            return _explain(request, manifest, found, model, known, terminal)
        except InvalidInputError:
            _remove_unused(folder, manifest)
            raise


def _check(request: Request) -> None:
    """Refuse requests that cannot be done in parts, and unknown options."""
    if request.rows is not None:
        raise InvalidInputError(
            "--rows: a table in parts is explained whole; leave it out, or use --no-stream"
        )
    if request.sheet is not None:
        raise InvalidInputError("--sheet: only Excel workbooks have sheets, and not in parts")
    if request.full:
        raise InvalidInputError(
            "--full: the parts of a table have every row in full; leave it out, or use --no-stream"
        )
    check_choice("--errors", request.errors, ERRORS)
    check_level(request.level)
    chosen_attribution(request.attribution)
    for used in (request.data, request.model, Path(request.baseline)):
        if used is not None and used.exists():
            require_outside(request.out, used)
    out = request.out.resolve()
    if request.data.resolve() in (out, *out.parents):
        raise InvalidInputError(
            f"{request.out}: is inside of the input; choose another folder with --out"
        )
    if request.out.exists() and not request.out.is_dir():
        raise InvalidInputError(f"{request.out}: expected a folder, got a file")


def _options(request: Request) -> dict[str, Any]:
    """Return the settings of the result, besides the data and the model, as JSON values."""
    baseline: Any = request.baseline
    if Path(baseline).is_file():
        baseline = f"{baseline} {_digest(Path(baseline))[:16]}"
    return {
        "gpattr": __version__,
        "--model": request.model is not None,
        "--target": None if request.model is not None else request.target,
        "--baseline": baseline,
        "--attribution": chosen_attribution(request.attribution),
        "--estimator": request.estimator,
        "--kernel": request.kernel,
        "--drop": sorted(request.drop),
        "--strict": request.strict,
        "--task": None if request.model is not None else request.task,
        "--dependence": list(request.dependence),
        "--level": request.level,
        "--errors": request.errors,
        "--id": list(request.identifiers),
        "size of parts": [stream.PART_ROWS, stream.PART_CELLS],
    }


def _earlier(
    request: Request, folder: Path, stamps: Mapping[str, Any], given: str, terminal: Terminal
) -> Manifest | None:
    """Return the manifest of an earlier run that is gone on with; None in an empty folder.

    With --force one that differs, or cannot be read, is removed with everything else.
    """
    try:
        found = Manifest.load(folder)
    except FileFormatError:
        if not request.force:
            raise
        found = None
    if found is not None:
        differences = found.differences(stamps, _options(request), given)
        if not request.force:
            refuse_other(request.out, differences)
        if not differences and not (found.finished and request.force):
            return _gone_on(found, terminal)
    if any(folder.iterdir()) and not request.force:
        raise InvalidInputError(
            f"{request.out}: already exists; choose another name, or overwrite it with --force"
        )
    for inside in folder.iterdir():
        shutil.rmtree(inside) if inside.is_dir() else inside.unlink()
    return None


def _gone_on(found: Manifest, terminal: Terminal) -> Manifest:
    """Return the manifest of an earlier run without the parts that have changed."""
    damaged = found.forget_damaged()
    if found.finished and not damaged and not _whole(found):
        found.finished = False
        terminal.print(["The report or the model is gone, and is made again."])
    elif damaged:
        found.finished = False
        terminal.print([f"{len(damaged):,} parts are damaged or gone, and are made again."])
    elif found.done and not found.finished:
        terminal.print([f"Going on after {len(found.done):,} of {found.parts:,} parts."])
    return found


def _whole(found: Manifest) -> bool:
    """Return whether the report of a finished run is there, and the model if it was trained."""
    given = found.options["--model"]
    return (found.folder / "report.html").exists() and (given or (found.folder / MODEL).exists())


def _model(
    request: Request,
    manifest: Manifest,
    found: Stream,
    fitted: TableModel | None,
    terminal: Terminal,
) -> tuple[TableModel, list[str]]:
    """Return the model that is given, or was trained before, or is trained now, with notes."""
    if fitted is not None:
        return fitted, found.notes
    path = manifest.folder / MODEL
    if manifest.model and path.exists() and _digest(path) == manifest.model:
        return TableModel.load(path), found.notes
    assert request.target is not None
    training = Training(
        found,
        request.target,
        drop=request.drop,
        strict=request.strict,
        task=request.task,
        errors=request.errors,
    )
    model, known = trained(training, request.estimator, request.kernel, terminal)
    if manifest.done and manifest.model:
        # The parts that there are were made with a model that is gone.
        manifest.done.clear()
    model.save(path, durable=True)
    manifest.model = _digest(path)
    manifest.save()
    return TableModel.load(path), known


def trained(
    training: Training, estimator: str, kernel: str | None, terminal: Terminal
) -> tuple[TableModel, list[str]]:
    """Return a model of a table in parts, and notes on it; print them."""
    known = [*training.table.notes, *notes.of_training_rows(training.table.X, training.table.y)]
    estimator, choice = training.chosen(estimator)
    terminal.print([*known, choice])
    with terminal.progress() as bar:
        model = training.train(
            estimator,
            kernel,
            verbose=False,
            track=lambda parts, n: bar.track(parts, n, description="learning from the parts"),
        )
    told = training.notes()
    terminal.print(told)
    return model, [*known, *told]


def fit_stream(
    data: Path,
    out: Path,
    estimator: str,
    kernel: str | None,
    errors: str,
    terminal: Terminal,
    *,
    sheet: str | None,
    **chosen: Any,
) -> None:
    """Train a model on a table in parts, and write it to ``out``."""
    if sheet is not None:
        raise InvalidInputError("--sheet: only Excel workbooks have sheets, and not in parts")
    check_choice("--errors", errors, ERRORS)
    found = _found(data, terminal, fewest=2)
    training = Training(found, errors=errors, **chosen)
    model, _ = trained(training, estimator, kernel, terminal)
    model.save(out)
    score = "R²" if model.task == "regression" else "accuracy"
    X, y = training.table.X, training.table.y
    terminal.print(
        [
            f"{found.n_rows:,} rows × {X.shape[1]} features; {score} on {len(X):,} of them"
            f" {model.score(X, y):.3f}",
            *notes.of_model(model),
        ]
    )


def _found(data: Path, terminal: Terminal, fewest: int) -> Stream:
    """Find the parts of a table, with a progress bar."""
    total = sum(stamp[0] for stamp in stamps_of(str(data)).values())
    with terminal.progress() as bar:
        task = bar.add_task("finding the parts", total=total)
        return Stream.of(data, fewest=fewest, advance=lambda count: bar.advance(task, count))


def _explain(
    request: Request,
    manifest: Manifest,
    found: Stream,
    model: TableModel,
    known: list[str],
    terminal: Terminal,
) -> Streamed:
    """Explain the parts that are missing, and then a sample of the rows for the report."""
    reader = PartReader(
        found,
        model.columns,
        model.typical,
        beside=tuple(request.identifiers),
        strict=request.strict,
        errors=request.errors,
        drop=tuple(request.drop),
    )
    known += reader.check_files()
    sample = _sample(reader, request)
    reader = replace(reader, decimal=sample.attrs["decimal"])
    attribution = chosen_attribution(request.attribution)
    if attribution == "shapley" and model.task == "classification":
        known.append(LATENT)
    quality = notes.of_model(model)
    terminal.print([*known, *quality])
    baseline, name = _baseline(request, reader)
    asked = explainers(model, baseline, name, found.n_rows, attribution)
    functions = {
        label: FrameFunction(explainer, errors=request.errors) for label, explainer in asked.items()
    }
    work = Work(reader, functions, tuple(request.identifiers))
    _check_names(work.columns, request.identifiers)
    _run(request, manifest, work, terminal)
    known += quality
    result = stream_report.write_summary(
        request, manifest, Result(model, asked, {}, {}, None, known), reader, sample, terminal
    )
    manifest.finished = True
    manifest.save()
    return _summary(manifest, result)


def _run(request: Request, manifest: Manifest, work: Work, terminal: Terminal) -> None:
    """Explain and write the parts that are missing, here or on a cluster."""
    frames = work.reader.frames(manifest.missing())
    with terminal.progress() as bar:
        task = bar.add_task("explaining parts", total=manifest.parts)
        bar.update(task, completed=len(manifest.done))
        found = (
            (work(number, frame) for number, frame in frames)
            if request.dask is None
            else on_cluster(request.dask, work, frames)
        )
        for content, facts in found:
            manifest.add(content, facts)
            bar.advance(task)
    manifest.save()


def _sample(reader: PartReader, request: Request) -> Any:
    """Return a sample of rows as it is in the files; its ``attrs`` tell of decimal commas."""
    names = reader.columns.names
    beside = [name for name in reader.stream.columns if name == reader.columns.target]
    good = [
        part
        for part in reader.stream.parts
        if set(names) <= set(reader.stream.files[part.file].columns)
    ]
    if not good:
        raise InvalidInputError(f"{request.data}: no file has the columns {list(names)}")
    some = reader.stream.only(good)
    sample = some.sample(SAMPLE_ROWS, list(dict.fromkeys((*names, *beside))))
    sample.attrs["decimal"] = decimal_commas(some, sample)
    return sample


def _baseline(request: Request, reader: PartReader) -> tuple[Any, str | None]:
    """Return the baseline of the explanations; a row of the table is looked up in its part."""
    text = request.baseline
    row = re.fullmatch(r"row:\s*([0-9]+)\s*", text)
    if row is None:
        return chosen_baseline(text, None, reader.columns, request.data.name)
    if reader.stream.is_folder:
        raise InvalidInputError(
            "--baseline: a folder has several rows of the same number; give a file with one row"
        )
    number = int(row[1])
    for place, part in enumerate(reader.stream.parts):
        if part.first <= number <= part.last:
            X = replace(reader, errors="raise").read(place).X
            return chosen_baseline(text, X, reader.columns, request.data.name)
    raise InvalidInputError(
        f"--baseline: expected rows from 1 to {reader.stream.n_rows}, got {number}"
    )


def _check_names(columns: list[str], identifiers: Sequence[str]) -> None:
    repeated = [name for name in columns if columns.count(name) > 1]
    if repeated and list(identifiers).count(repeated[0]) > 1:
        raise InvalidInputError(f"--id: {repeated[0]!r} was given twice")
    if repeated:
        raise InvalidInputError(
            f"--id: {repeated[0]!r} is the name of a column of the result; rename it in the table"
        )


def _summary(manifest: Manifest, result: Result | None) -> Streamed:
    done = [manifest.done[number] for number in sorted(manifest.done)]
    return Streamed(
        result,
        sum(facts["rows"] for facts in done),
        sum(facts["missing"] for facts in done),
        len(done),
        [] if result is None else result.notes,
        {label: stream_report.means(manifest, label, "absolute")[0] for label in done[0]["sums"]},
    )


def _remove_unfinished(folder: Path) -> None:
    """Remove the unfinished files of a killed run."""
    for place, own in ((folder, OWN.pattern), (folder / PARTS, PART)):
        for path in place.glob("*.tmp") if place.is_dir() else ():
            if re.fullmatch(f"({own}){UNFINISHED}", path.name):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _remove_unused(folder: Path, manifest: Manifest | None) -> None:
    """Remove a folder in which nothing has been done, so that other options can be tried."""
    if manifest is not None and not manifest.done and not (folder / MODEL).exists():
        (folder / NAME).unlink(missing_ok=True)
        shutil.rmtree(folder / PARTS, ignore_errors=True)
    with contextlib.suppress(OSError):  # it is not empty
        folder.rmdir()


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
