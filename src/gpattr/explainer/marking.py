"""Marked rows: explanations of many rows that go on where one row cannot be explained.

A row whose attributions do not reach the tolerance has NaN in their place, and ``error`` inf; one
whose means do but whose spread does not has its means, and NaN in place of their spread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpattr.distributions import Distribution
from gpattr.exceptions import ToleranceError
from gpattr.explanation.multi_output import MultiOutputExplanation

Explain = Callable[[np.ndarray, str], Any]


def explain_and_mark(
    explain: Explain,
    describe: Callable[[np.ndarray], dict[str, Any]],
    of_baseline: Callable[[], Any],
    n: int,
    uncertainty: str,
) -> Any:
    """Return the explanation of n rows, those marked that raise `ToleranceError`.

    ``explain`` is given rows and what uncertainty is asked for; ``describe`` returns the fields of
    an explanation that say which rows they are. ``of_baseline`` is the explanation of a baseline
    itself, which has what the others have, where no row can be explained.
    """
    whole, failed = _tried(lambda rows: explain(rows, uncertainty), np.arange(n))
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
