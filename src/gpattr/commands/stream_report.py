"""The report on a table in parts: a sample of its rows, with importance over all of them."""

from __future__ import annotations

import math
import os
import secrets
import shutil
from dataclasses import replace
from typing import Any

import numpy as np

from gpattr._core.files import sync_folder
from gpattr._core.validation import read_only
from gpattr.commands.explain import Request, Result, explain_rows
from gpattr.commands.manifest import Manifest
from gpattr.commands.output import list_files
from gpattr.commands.outputs import write_outputs
from gpattr.commands.terminal import Terminal
from gpattr.commands.whole_function import chosen_features, whole_function
from gpattr.distributions import Mixture
from gpattr.exceptions import InvalidInputError
from gpattr.explainer.importance_measures import folded_mean
from gpattr.explanation.importance import Importance
from gpattr.tables.part_features import PartReader

REPORT_ROWS = 1000  # from across the table


def write_summary(
    request: Request,
    manifest: Manifest,
    asked: Result,
    reader: PartReader,
    sample: Any,
    terminal: Terminal,
) -> Result:
    """Write tables, pictures and the report of a sample, with importance over all rows."""
    stream, columns = reader.stream, asked.model.columns
    places = np.unique(np.linspace(0, len(sample) - 1, REPORT_ROWS).round().astype(int))
    chosen = sample.iloc[places]
    rows = replace(reader, errors="missing").features(chosen, str(request.data))
    if rows.X is None:
        raise InvalidInputError(f"{request.data}: no row can be explained: {rows.problem}")
    X, chosen = rows.X, chosen[rows.usable]
    observed = columns.measured(chosen) if asked.model.task == "regression" else None
    missing = sum(facts["missing"] for facts in manifest.done.values())
    if len(X) < stream.n_rows:
        asked.notes.append(
            f"The report and its tables show {len(X):,} of {stream.n_rows:,} rows, from across the"
            " table; the parts have every row."
        )
    if missing:
        first = next(facts for _, facts in sorted(manifest.done.items()) if facts["missing"])
        why = f", the first because: {first['problem']}" if first["problem"] else ""
        asked.notes.append(f"{missing:,} rows could not be explained{why}.")
    result = explain_rows(replace(asked, observed=observed), X, terminal, level=request.level)
    result = replace(
        result,
        importances={
            label: _over_all_rows(manifest, label, each, result)
            for label, each in result.importances.items()
        },
    )
    features = chosen_features(request.dependence, columns.names)
    with terminal.working("averaging the function over the rows"):
        whole = whole_function(asked.explainers, result.importances, X, features)
    result = replace(result, whole=whole, notes=[*result.notes, *whole.notes])
    temporary = manifest.folder / f"report.html.{secrets.token_hex(4)}.tmp"
    temporary.mkdir()
    try:
        with terminal.working("drawing"):
            result.notes.extend(write_outputs(temporary, request, result))
        list_files(temporary)
        for path in sorted(temporary.iterdir()):
            os.replace(path, manifest.folder / path.name)
        sync_folder(manifest.folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    terminal.print(result.notes[len(asked.notes) - 1 - bool(missing) :])
    return result


def _over_all_rows(
    manifest: Manifest, label: str, importance: Importance, result: Result
) -> Importance:
    """Return the importance over all rows: its expectation is exact, its spread the sample's.

    Parts have means and standard deviations, of which E|attribution| of a mixture is no function:
    the normal distribution's mean over the sample is taken off, and the sample's own added.
    """
    if result.explainers[label].output == "probability":
        return importance  # E|attribution| does not follow from standard deviations
    found, n = means(manifest, label, "expected")
    values = np.array([found[name] for name in importance.feature_names])
    ex = result.explanations[label]
    if isinstance(ex.distribution, Mixture) and importance.n_rows == len(ex):
        assert ex.var is not None
        values = values + importance.values - folded_mean(ex.values, ex.var).mean(axis=0)
    shift = values - importance.values
    return replace(
        importance,
        values=read_only(values),
        samples=read_only(np.maximum(importance.samples + shift, 0.0)),
        n_rows=n,
        n_joint_rows=min(importance.n_joint_rows, n - 1) if n > importance.n_rows else n,
    )


def means(manifest: Manifest, label: str, kind: str) -> tuple[dict[str, float], int]:
    """Return means over the rows of all parts, by feature, and the number of rows."""
    sums = [manifest.done[number]["sums"][label] for number in sorted(manifest.done)]
    n = sum(each["rows"] for each in sums)
    return {
        name: math.fsum(each[kind][name] for each in sums) / max(n, 1) for name in sums[0][kind]
    }, n
