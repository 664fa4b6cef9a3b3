"""The report page: data, style and scripts in one HTML file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np

from gpattr._core.array import to_numpy
from gpattr._core.files import write_whole
from gpattr._core.normal import check_level
from gpattr._core.validation import check_path, check_text, numbers
from gpattr.exceptions import InvalidInputError
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.counterfactual import Counterfactual
from gpattr.explanation.dependence import Dependence
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.importance import Importance
from gpattr.explanation.multi_output import MultiOutputExplanation
from gpattr.explanation.text import interval_note, known_note, variance_note
from gpattr.posteriors import MultiOutputPosterior
from gpattr.report.contents import content
from gpattr.report.counterfactuals import Placed, placed
from gpattr.report.whole_function import by_output, curves_of, indices_of
from gpattr.sobol import SobolIndices
from gpattr.tables.held_out import HeldOut, HeldOutClasses

LARGEST = 14_900_000  # bytes, the e-mail attachment limit; larger pages drop the factor
TITLE = "Predictions, explained"
MODEL_SCRIPTS = ("path_integrals", "cholesky", "what_if")
SHARED_SCRIPTS = ("numbers", "words", "pictures", *MODEL_SCRIPTS, "sliders", "waterfall")
SCRIPTS = (*SHARED_SCRIPTS, "curves", "indices", "counterfactuals", "filter", "page")
STYLES = ("colors", "shared", "page")
Curves = Dependence | Sequence[Dependence]
Changes = Counterfactual | Sequence[Counterfactual]


def write_report(
    path: str | PathLike[str],
    explanation: Explanation | MultiOutputExplanation | Mapping[str, Explanation],
    *,
    importance: Importance | Mapping[str, Importance] | None = None,
    dependence: Curves | Mapping[str, Curves] | None = None,
    indices: SobolIndices | Mapping[str, SobolIndices] | None = None,
    counterfactuals: Changes | Mapping[str, Changes] | None = None,
    explainer: Explainer | None = None,
    held_out: HeldOut | HeldOutClasses | None = None,
    measured: Any = None,
    notes: Sequence[str] = (),
    opening: Sequence[str] = (),
    title: str = TITLE,
    level: float = 0.95,
    data_name: str = "",
    selected_row: int | None = None,
) -> None:
    """Write a self-contained HTML report, completely or not at all.

    ``explanation`` may be of several classes or outputs, {name: explanation}, among which the
    reader can choose; so may ``importance``, the result of `Explainer.importance`, ``dependence``,
    an average curve of `Explainer.dependence` or a list of curves of different features, and
    ``indices``, the result of `gpattr.sobol_indices`. ``counterfactuals``, one of
    `Explainer.counterfactual` or a list of them, are shown with the rows that they are of, and set
    the sliders; several targets for a row are several of them.

    ``explainer``, the one that made the explanation, adds facts about the model and, for models
    that fit in a page (`what_if`), what-if sliders. ``held_out`` of a `TableModel` adds the
    held-out performance. ``measured`` (n,) are the observed targets of the rows, NaN where unknown,
    or the labels of their classes, "" where unknown; ``notes`` are shown at the top of the page,
    ``opening``, the most important notes, above them, and ``data_name``, such as a file's, beside
    the title. ``selected_row`` is the position of the row to show first, by default the first with
    a counterfactual, or else the one farthest from the baseline.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ex = explainer([[1.0, 0.0], [1.0, -2.0]])
    >>> from pathlib import Path
    >>> from gpattr.report import write_report
    >>> write_report("report.html", ex, explainer=explainer, title="Two rows")
    >>> Path("report.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    check_path("path", path)
    outputs = _outputs(explanation)
    first = next(iter(outputs.values()))
    if not len(first):
        raise InvalidInputError("explanation: expected at least one row, got none")
    check_level(level)
    check_text("title", title)
    check_text("data_name", data_name)
    _check_notes("notes", notes)
    _check_notes("opening", opening)
    _check_explainer(explainer, explanation)
    importances = _importances(importance, outputs)
    names = list(outputs)
    curves = by_output(
        "dependence", dependence, names, lambda each: curves_of(each, first.feature_names)
    )
    shares = by_output("indices", indices, names, indices_of)
    changes = placed(counterfactuals, outputs, explainer)
    targets, classes = (None, None) if measured is None else _measured(measured, len(first))
    facts = content(
        outputs, importances, explainer, level, held_out, targets, classes, curves, shares, changes
    )
    remarks = [*map(known_note, outputs.values()), *map(variance_note, outputs.values())]
    intervals = interval_note(first) if len(outputs) == 1 else ""
    remarks.append(intervals)
    if intervals:  # the command says the same, without numbers
        notes = [note for note in notes if not note.startswith("Intervals ")]
    doubts = dict.fromkeys(filter(None, remarks))
    facts |= {"title": title, "data_name": data_name}
    facts |= {"opening": list(opening), "notes": [*notes, *doubts]}
    facts["selected"] = (
        _first_shown(outputs, changes)
        if selected_row is None
        else _position(selected_row, len(first))
    )
    write_whole(_page(facts).encode("utf-8", "replace"), path)


def parts_of(kind: str, names: Sequence[str]) -> str:
    """Return scripts ("js") or styles ("css") of the page as one text."""
    folder = files("gpattr.report")
    return "\n".join((folder / f"{name}.{kind}").read_text(encoding="utf-8") for name in names)


def _page(facts: dict[str, Any]) -> str:
    """Return the HTML page of these facts; too large a model in it goes without its factor."""
    folder = files("gpattr.report")
    title, data_name = facts["title"], facts["data_name"]
    parts = {
        "title": escape(f"{title} · {data_name}" if data_name else title),
        "style": parts_of("css", STYLES),
        "data": _embedded(facts),
        "scripts": parts_of("js", SCRIPTS),
    }
    if sum(map(len, parts.values())) > LARGEST and isinstance(facts["what_if"], dict):
        parts["data"] = _embedded(facts | {"what_if": facts["what_if"] | {"factor": None}})
    page = (folder / "page.html").read_text(encoding="utf-8")
    # In one pass: inserted text may look like a placeholder.
    return re.sub(r"/\*(\w+)\*/|<!--(\w+)-->", lambda place: parts[place[1] or place[2]], page)


def _check_notes(name: str, notes: Any) -> None:
    if not isinstance(notes, (list, tuple)) or not all(isinstance(note, str) for note in notes):
        raise InvalidInputError(f"{name}: expected a list of sentences, got {notes!r}")


def _check_explainer(explainer: Any, explanation: Any) -> None:
    """Refuse other objects, and an explainer of several outputs for a single explanation."""
    if explainer is None:
        return
    if not isinstance(explainer, Explainer):
        raise InvalidInputError(
            f"explainer: expected a gpattr Explainer, or None, got a {type(explainer).__name__}"
        )
    several = isinstance(explainer.posterior, MultiOutputPosterior)
    if several and isinstance(explanation, Explanation):
        raise InvalidInputError("explainer: expected that of one output, explainer[name]")


def _outputs(explanation: Any) -> dict[str, Explanation]:
    """Return explanations by class or output, under "" if there is only one."""
    if isinstance(explanation, Explanation):
        return {"": explanation}
    if isinstance(explanation, MultiOutputExplanation):
        return dict(explanation.outputs)
    if not isinstance(explanation, Mapping):
        raise InvalidInputError(
            "explanation: expected a gpattr Explanation, or several by name, got a"
            f" {type(explanation).__name__}"
        )
    try:
        return dict(MultiOutputExplanation(explanation).outputs)
    except InvalidInputError as error:
        raise InvalidInputError(str(error).replace("outputs:", "explanation:", 1)) from None


def _importances(importance: Any, outputs: Mapping[str, Explanation]) -> dict[str, Importance]:
    """Return importances by class or output."""
    if importance is None:
        return {}
    known = importance if isinstance(importance, Mapping) else dict.fromkeys(outputs, importance)
    for name, each in known.items():
        if not isinstance(each, Importance):
            raise InvalidInputError(
                f"importance: expected a gpattr Importance, or None, got a {type(each).__name__}"
            )
        if name not in outputs or (len(outputs) > 1 and known is not importance):
            raise InvalidInputError(
                f"importance: expected those of {list(outputs)} by name, got {list(known)}"
            )
        if each.feature_names != next(iter(outputs.values())).feature_names:
            raise InvalidInputError(
                "importance: expected the same features as in the explanation; with"
                " importance(X, groups=groups) explain explanation.group(groups)"
            )
    return dict(known)


def _measured(measured: Any, n: int) -> tuple[np.ndarray | None, list[str] | None]:
    """Return the targets of n rows as numbers, or as labels."""
    try:
        labels = np.asarray(measured, dtype=object)
        texts = labels.ndim == 1 and any(isinstance(label, str) for label in labels)
    except ValueError:
        labels, texts = np.empty(0), False
    if texts:
        if len(labels) != n or not all(isinstance(label, str) for label in labels):
            raise InvalidInputError(
                f"measured: expected {n} labels, one per row, '' where unknown, got {len(labels)}"
            )
        return None, [str(label) for label in labels]
    targets = to_numpy(numbers("measured", measured))
    if targets.shape != (n,):
        raise InvalidInputError(
            f"measured: expected {n} numbers, one per row, got shape {targets.shape}"
        )
    return targets, None


def _first_shown(
    outputs: Mapping[str, Explanation], changes: Mapping[str, Sequence[Placed]]
) -> int:
    """Return the row of the first counterfactual of the first output.

    If it has none, the row whose prediction is farthest from the baseline's.
    """
    name, ex = next(iter(outputs.items()))
    for _, rows in changes.get(name, ()):
        return rows[0]
    return int(np.abs(ex.predictions - ex.base_values).argmax())


def _position(row: Any, n: int) -> int:
    if not isinstance(row, (int, np.integer)) or isinstance(row, bool) or not -n <= row < n:
        raise InvalidInputError(
            f"selected_row: expected the position of one of {n} rows, or None, got {row!r}"
        )
    return int(row) % n


def _embedded(facts: dict[str, Any]) -> str:
    """Return JSON in which nothing looks like the end of a script element."""
    return (
        json.dumps(facts, ensure_ascii=True)
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
    )
