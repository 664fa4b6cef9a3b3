"""Marked rows: explanations of many rows that go on where one row cannot be explained.

A row whose attributions do not reach the tolerance has NaN in their place, and ``error`` inf; one
whose means do but whose spread does not has its means, and NaN in place of their spread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import Array
from gpattr._core.validation import Names
from gpattr.distributions import Distribution
from gpattr.exceptions import ToleranceError
from gpattr.explainer.rows import RowNames
from gpattr.explanation.multi_output import MultiOutputExplanation

if TYPE_CHECKING:
    from gpattr.explainer.task import Task


def explain_and_mark(
    task: Task,
    rows: Array,
    baselines: Array | None,
    uncertainty: str,
    names: Names,
    labels: RowNames,
    part: slice,
) -> Any:
    """The explanation of rows as by `Task.explain`; rows that raise `ToleranceError` are marked.

    Where no row can be explained, the explanation of a baseline itself has what the others have.
    """
    strict, first = replace(task, errors="raise"), part.start or 0

    def of(some: np.ndarray) -> tuple[Array, Array | None, RowNames, Any]:
        own = None if baselines is None else baselines[some]
        return rows[some], own, tuple(labels[row] for row in some.tolist()), first + some

    def explain(some: np.ndarray, uncertainty: str) -> Any:
        X, own, texts, places = of(some)
        return strict.explain(X, own, uncertainty, names, texts, places)

    def describe(some: np.ndarray) -> dict[str, Any]:
        X, own, texts, places = of(some)
        return strict.about(X, strict.start(X, own, places), names, texts).shared

    def of_baseline() -> Any:
        one, own = slice(first, first + 1), None if baselines is None else baselines[:1]
        reference = strict.start(rows[:1], own, one).operator.reference
        point = rows[:1] if reference is None else reference.points[:1]
        return strict.explain(point, own, uncertainty, names, (labels[0],), one)

    whole, failed = _tried(lambda some: explain(some, uncertainty), np.arange(len(rows)))
    if not failed:
        return _joined(whole)
    if uncertainty == "none":
        means, lost = [], failed
    else:
        means, lost = _tried(lambda rows: explain(rows, "none"), np.array(list(failed)))
    template = whole[0][1] if whole else of_baseline()
    parts = whole + [(rows, _like(template, known)) for rows, known in means]
    parts += [(np.array([row]), _blank(template, describe(np.array([row])))) for row in lost]
    return _joined(parts)


def _tried(
    explain: Callable[[np.ndarray], Any], rows: np.ndarray
) -> tuple[list[tuple[np.ndarray, Any]], dict[int, ToleranceError]]:
    """Return explanations of the rows that have one, and why each of the others has none."""
    try:
        return [(rows, explain(rows))], {}
    except ToleranceError as error:
        if len(rows) == 1:
            return [], {int(rows[0]): error}
    found, failed = [], {}
    for half in np.array_split(rows, 2):
        some, others = _tried(explain, half)
        found, failed = found + some, failed | others
    return found, failed


def _joined(parts: list[tuple[np.ndarray, Any]]) -> Any:
    """Return explanations of parts of the rows as one, in the order of the rows."""
    if len(parts) == 1:
        return parts[0][1]
    order = np.argsort(np.concatenate([rows for rows, _ in parts]))
    explanations = [ex for _, ex in parts]
    return type(explanations[0]).concatenate(explanations)[order]


def _like(template: Any, known: Any) -> Any:
    """Return means alone with NaN for a spread such as the template has."""
    if isinstance(template, MultiOutputExplanation):
        pairs = zip(template.outputs, template, known, strict=True)
        return MultiOutputExplanation({name: _like(*both) for name, *both in pairs})
    if template.distribution.held().keys() == known.distribution.held().keys():
        return known
    unknown = np.full(len(known), np.inf)
    return replace(
        known,
        distribution=_unknown(template.distribution, known.distribution.mean),
        cov_error=None if template.cov_error is None else unknown,
        draw_error=None if template.draw_error is None else unknown,
    )


def _blank(template: Any, shared: dict[str, Any]) -> Any:
    """Return the explanation of a row of which nothing is known."""
    if isinstance(template, MultiOutputExplanation):
        return MultiOutputExplanation(
            {name: _blank(part, shared) for name, part in template.outputs.items()}
        )
    known, inf = template[:1], np.full(1, np.inf)
    return replace(
        known,
        distribution=_unknown(known.distribution, np.full_like(known.distribution.mean, np.nan)),
        predictions=np.full(1, np.nan),
        error=inf,
        delta=np.full(1, np.nan),
        cov_error=None if known.cov_error is None else inf,
        draw_error=None if known.draw_error is None else inf,
        parts={name: _blank(part, shared) for name, part in known.parts.items()},
        **shared,
    )


def _unknown(known: Distribution, values: np.ndarray) -> Distribution:
    """Return a distribution of the same kind with these means, (n, q), and NaN for their spread."""
    arrays = {}
    for name, array in known.held().items():
        dimensions = known.arrays[name]
        if "row" in dimensions:
            shape = list(array.shape)
            shape[dimensions.index("row")] = len(values)
            array = np.full(shape, np.nan)
        arrays[name] = array
    return type(known)(**{**arrays, "mean": values})
