"""``gpattr explain``: a table in; explanation, tables, pictures and a report out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from gpattr._core.normal import check_level
from gpattr.commands import notes
from gpattr.commands.explainers import default_rows, explained, explainers, importance_of
from gpattr.commands.fit import Table, read_rows, read_training, train
from gpattr.commands.output import (
    recover,
    require_new,
    require_outside,
    require_own,
    whole_folder,
)
from gpattr.commands.outputs import write_outputs
from gpattr.commands.selection import chosen_attribution, chosen_baseline, chosen_rows
from gpattr.commands.terminal import Terminal
from gpattr.commands.whole_function import WholeFunction, chosen_features, whole_function
from gpattr.exceptions import InvalidInputError
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.importance import Importance
from gpattr.tables import TableModel
from gpattr.tables.choice import resolved_estimator

LATENT = (
    "Shapley values divide the log odds of a class; integrated gradients divide its probability."
)

MIXED = (
    "The baseline averages over the labels of categories by their frequency; --baseline median"
    " compares with the most frequent ones."
)


@dataclass(frozen=True)
class Request:
    """The options of ``gpattr explain``."""

    data: Path
    target: str | None = None
    model: Path | None = None
    rows: str | None = None
    baseline: str = "mean"
    attribution: str = "integrated-gradients"
    estimator: str = "auto"
    kernel: str | None = None
    drop: Sequence[str] = ()
    strict: bool = False
    sheet: str | None = None
    task: str | None = None
    dependence: Sequence[str] = ()
    level: float = 0.95
    out: Path = Path("gpattr-explanation")
    full: bool = False
    force: bool = False
    stream: bool | None = None
    dask: str | None = None
    errors: str = "raise"
    identifiers: Sequence[str] = ()


@dataclass(frozen=True)
class Result:
    """Explanations and importances by class, under "" if there is only one.

    The ``notes`` begin with the ``opening``, the most important notes.
    """

    model: TableModel
    explainers: Mapping[str, Explainer]
    explanations: Mapping[str, Explanation]
    importances: Mapping[str, Importance]
    observed: Any
    notes: list[str] = field(default_factory=list)
    opening: list[str] = field(default_factory=list)
    whole: WholeFunction = field(default_factory=WholeFunction)

    @property
    def first(self) -> Explanation:
        """The explanation of the first class."""
        return next(iter(self.explanations.values()))

    @property
    def several(self) -> bool:
        """Whether there are several classes."""
        return len(self.explanations) > 1

    @cached_property
    def good(self) -> np.ndarray:
        """The positions of the rows that are not marked in any class."""
        marked = np.any([each.marked for each in self.explanations.values()], axis=0)
        return np.flatnonzero(~marked)

    @cached_property
    def unmarked(self) -> dict[str, Explanation]:
        """The explanations of the rows that are not marked."""
        whole = len(self.good) == len(self.first)
        return {
            label: each if whole else each[self.good] for label, each in self.explanations.items()
        }


def run(request: Request, terminal: Terminal) -> Result:
    """Explain the rows of a table and write everything to the output folder."""
    _check(request)
    fitted = None if request.model is None else TableModel.load(request.model)
    table = _read(request, fitted)
    places = chosen_rows(request.rows, table.X.index)
    baseline, name = chosen_baseline(request.baseline, table.X, table.columns, request.data.name)
    features = chosen_features(request.dependence, table.columns.names)
    model = _model(request, table, fitted, terminal)
    known = [*table.notes, *notes.of_model(model)]
    terminal.print(known[len(table.notes) :])
    attribution = chosen_attribution(request.attribution)
    asked = explainers(model, baseline, name, len(places), attribution)
    if request.rows is None:
        places = default_rows(model, asked, table.X, table.y)
        if len(places) < len(table.X):
            known.append(
                f"{len(places):,} of {len(table.X):,} rows, chosen at random, are explained; --rows"
                " all explains every row."
            )
            terminal.print(known[-1:])
            asked = explainers(model, baseline, name, len(places), attribution)
    chosen = table.X.iloc[places]
    observed = None if table.y is None else table.y[places]
    if attribution == "shapley" and model.task == "classification":
        known.append(LATENT)
        terminal.print(known[-1:])
    if request.baseline == "mean" and attribution != "shapley" and table.columns.categories:
        known.append(MIXED)
        terminal.print(known[-1:])
    result = Result(model, asked, {}, {}, observed, known)
    result = explain_rows(result, chosen, terminal, level=request.level, full=request.full)
    with terminal.working("averaging the function over the rows"):
        whole = whole_function(asked, result.importances, table.X, features)
    result = replace(result, whole=whole, notes=[*result.notes, *whole.notes])
    terminal.print(whole.notes)
    with whole_folder(request.out, force=request.force) as folder, terminal.working("drawing"):
        if request.model is None:
            result.model.save(folder / "model.json")
        written = write_outputs(folder, request, result)
    result.notes.extend(written)
    terminal.print(written)
    return result


def _check(request: Request) -> None:
    """Refuse an output folder that would overwrite something, and a level that is none."""
    recover(request.out)
    require_new(request.out, request.force)
    require_own(request.out)
    for used in (request.data, request.model, Path(request.baseline)):
        if used is not None and used.exists():
            require_outside(request.out, used)
    check_level(request.level)
    chosen_attribution(request.attribution)


def _read(request: Request, fitted: TableModel | None) -> Table:
    """Read the table, to train a model on or with the columns of one that is given."""
    if fitted is None:
        if request.target is None:
            raise InvalidInputError("--target: name the column to predict")
        return read_training(
            request.data,
            request.target,
            drop=request.drop,
            strict=request.strict,
            sheet=request.sheet,
            task=request.task,
        )
    check_model(request, fitted)
    return read_rows(
        request.data, fitted, drop=request.drop, strict=request.strict, sheet=request.sheet
    )


def check_model(request: Request, fitted: TableModel) -> None:
    """Refuse options that contradict the model that is given."""
    if request.target not in (None, fitted.columns.target):
        raise InvalidInputError(
            f"--target: the model predicts {fitted.columns.target!r}, got {request.target!r}"
        )
    if request.kernel is not None or request.estimator != "auto":
        raise InvalidInputError("--kernel, --estimator: cannot be combined with --model")
    if request.task not in (None, fitted.task):
        raise InvalidInputError(
            f"--task: the given model is for {fitted.task}, got {request.task!r}"
        )


def _model(
    request: Request, table: Table, fitted: TableModel | None, terminal: Terminal
) -> TableModel:
    """Return the given model, or one trained on the table; print the notes of the table first."""
    if fitted is not None:
        terminal.print(table.notes)
        return fitted
    table.notes.extend(notes.of_training_rows(table.X, table.y))
    estimator, choice = resolved_estimator(request.estimator, len(table.X), table.task)
    terminal.print([*table.notes, choice])
    return train(table, estimator=estimator, kernel=request.kernel, verbose=not terminal.quiet)


def explain_rows(
    asked: Result, X: Any, terminal: Terminal, *, level: float, full: bool = False
) -> Result:
    """Return the result with the explanations of the rows X and their importance."""
    with terminal.progress() as bar:
        found = {
            label: explained(
                explainer,
                X,
                lambda parts, n, label=label: bar.track(
                    parts, n, description=f"explaining rows {escape(label)}"
                ),
                full=full,
            )
            for label, explainer in asked.explainers.items()
        }
    result = replace(asked, explanations=found)
    good = result.good
    small = notes.of_small_table(asked.model, result.unmarked, level)
    terminal.print(small)
    unknown = notes.of_unknown_baseline(asked.explainers)
    terminal.print(unknown)
    opening = [*notes.of_doubts(asked.model), *unknown, *small]
    result.notes[:] = [*opening, *(note for note in result.notes if note not in opening)]
    result = replace(result, opening=opening)
    if len(good) < len(X):
        result.notes.append(notes.of_marked(np.delete(result.first.row_names, good).tolist()))
        terminal.print(result.notes[-1:])
    with terminal.working("estimating the uncertainty of the importance"):
        importances = {
            label: importance_of(asked.explainers[label], X.iloc[good], each)
            for label, each in result.unmarked.items()
        }
    return replace(result, importances=importances)
