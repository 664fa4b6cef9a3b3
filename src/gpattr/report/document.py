"""The page itself: data, style, script and Plotly in one file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.special import ndtri

from gpattr import __version__
from gpattr._array import to_numpy
from gpattr._files import write_whole
from gpattr._normal import check_level
from gpattr._text import variance_note
from gpattr._validation import check_path, check_text, numbers
from gpattr.exceptions import InvalidInputError
from gpattr.explanation import Explanation
from gpattr.importance import Importance
from gpattr.posteriors import MultiOutputPosterior, Posterior
from gpattr.report.facts import model_card
from gpattr.report.packing import packed
from gpattr.report.what_if import what_if

if TYPE_CHECKING:
    from gpattr.explainer import Explainer
    from gpattr.tables.held_out import HeldOut

LARGEST = 14_900_000  # bytes: what can still be sent by mail; beyond, sliders go without standard deviations


def write_report(
    path: str | PathLike[str],
    explanation: Explanation,
    *,
    importance: Importance | None = None,
    explainer: Explainer | None = None,
    held_out: HeldOut | None = None,
    measured: Any = None,
    notes: Sequence[str] = (),
    title: str = "Why the model expects this",
    level: float = 0.95,
) -> None:
    """Write one HTML file that needs no network: whole or not at all.

    ``importance`` is that of `Explainer.importance`, with its intervals. ``explainer``, the one that made the explanation, adds
    what is known of the model, and sliders that ask it about rows like these, where a page can hold it (`what_if`).
    ``held_out``, that of a `TableModel`, says how well an approximate model predicts rows it has not seen.
    ``measured`` (n,) are the targets of the rows, NaN where they are not known; ``notes`` are sentences that stand on top.
    """
    check_path("path", path)
    if not isinstance(explanation, Explanation):
        raise InvalidInputError(f"explanation: expected a gpattr Explanation, got a {type(explanation).__name__}")
    if not len(explanation):
        raise InvalidInputError("explanation: expected at least one row, got none")
    check_level(level)
    check_text("title", title)
    if importance is not None and not isinstance(importance, Importance):
        raise InvalidInputError(f"importance: expected a gpattr Importance, or None, got a {type(importance).__name__}")
    if isinstance(notes, str) or not isinstance(notes, (list, tuple)) or not all(isinstance(note, str) for note in notes):
        raise InvalidInputError(f"notes: expected a list of sentences, got {notes!r}")
    if explainer is not None and not hasattr(explainer, "posterior"):
        raise InvalidInputError(f"explainer: expected a gpattr Explainer, or None, got a {type(explainer).__name__}")
    if explainer is not None and isinstance(explainer.posterior, MultiOutputPosterior):
        raise InvalidInputError("explainer: expected that of one output, explainer[name]")
    if measured is not None:
        measured = to_numpy(numbers("measured", measured))
        if measured.shape != (len(explanation),):
            raise InvalidInputError(f"measured: expected {len(explanation)} numbers, one per row, got the shape {measured.shape}")
    facts = content(explanation, importance, explainer, level, held_out)
    doubt = variance_note(explanation)
    facts |= {"title": title, "notes": [*notes, doubt] if doubt else list(notes)}
    facts["arrays"]["measured"] = None if measured is None else packed(measured)
    room = files("gpattr.report")
    page = (room / "page.html").read_text(encoding="utf-8")
    parts = {
        "title": escape(title),
        "style": (room / "page.css").read_text(encoding="utf-8"),
        "plotly": _plotly(),
        "data": _embedded(facts),
        "what_if": (room / "what_if.js").read_text(encoding="utf-8"),
        "filter": (room / "filter.js").read_text(encoding="utf-8"),
        "script": (room / "page.js").read_text(encoding="utf-8"),
    }
    if sum(map(len, parts.values())) > LARGEST and isinstance(facts["what_if"], dict):
        parts["data"] = _embedded(facts | {"what_if": facts["what_if"] | {"factor": None}})
    # In one pass: what is filled in may look like a place to fill in.
    page = re.sub(r"/\*(\w+)\*/|<!--(\w+)-->", lambda place: parts[place[1] or place[2]], page)
    write_whole(page.encode("utf-8", "replace"), path)


def content(
    ex: Explanation,
    importance: Importance | None,
    explainer: Explainer | None,
    level: float,
    held_out: HeldOut | None = None,
) -> dict[str, Any]:
    """Return all that the page shows, as JSON values; long arrays as base64 of float32, row by row."""
    known = ex.var is not None
    gaussian = known and ex.component_weights is None and not hasattr(ex, "draws")  # intervals follow from std
    low, high = ex.interval(level) if known else (ex.values, ex.values)
    sizes = np.abs(ex.values).mean(axis=0) if importance is None else importance.values
    ends = None if importance is None else importance.interval(level)
    total = None if ex.cov is None else np.sqrt(np.maximum(ex.cov.sum(axis=(1, 2)), 0.0))
    return {
        "version": __version__,
        "quantity": ex.quantity,
        "level": level,
        "quantile": -float(ndtri(0.5 * (1.0 - level))),
        "features": list(ex.feature_names),
        "rows": [str(name) for name in ex.row_names],
        "labels": {name: _coded(texts) for name, texts in ex.labels.items()},
        "uncertain": known,
        "baseline": ex.baseline_name,
        "method": ex.method,
        "error": float(ex.error.max()) if np.isfinite(ex.error).all() else None,
        "gap": float(np.abs(ex.delta).max()),
        "card": [] if explainer is None else model_card(cast(Posterior, explainer.posterior), held_out),
        "baseline_values": _shared_baseline(ex),
        "what_if": what_if(explainer, ex)
        if explainer is not None
        else "they need the model, which is not part of an explanation",
        "importance": {
            "values": sizes.tolist(),
            "low": None if ends is None else ends[0].tolist(),
            "high": None if ends is None else ends[1].tolist(),
            "rows": len(ex) if importance is None else importance.n_rows,
            "note": "" if importance is None else importance.note,
        },
        "arrays": {
            "values": packed(ex.values),
            "low": None if gaussian else packed(low),
            "high": None if gaussian else packed(high),
            "std": packed(ex.std if ex.std is not None else np.zeros(ex.shape)),
            "positive": packed(ex.prob_positive() if known else np.full(ex.shape, 0.5)),
            "data": packed(ex.data, "<f8"),  # sliders start there, and filters compare with it
            "predictions": packed(ex.predictions),
            "base": packed(ex.base_values),
            "total": packed(np.zeros(len(ex)) if total is None else total),
        },
    }


def _shared_baseline(ex: Explanation) -> list[float | None] | None:
    """Return the values of the one baseline of all rows, None for features that have no number; None where there are several."""
    point = ex.baselines[0]
    if ex.baseline_weights is not None or not ((ex.baselines == point) | np.isnan(ex.baselines)).all():
        return None
    return [None if np.isnan(value) else value for value in point.tolist()]


def _coded(texts: Sequence[str]) -> dict[str, Any]:
    """Return texts of which many are the same: those there are, and which one each row has."""
    distinct = list(dict.fromkeys(texts))
    place = {text: k for k, text in enumerate(distinct)}
    return {
        "texts": distinct,
        "codes": packed(np.array([place[text] for text in texts]), "<u2" if len(distinct) < 65536 else "<u4"),
    }


def _embedded(facts: dict[str, Any]) -> str:
    """Return JSON in which nothing looks like the end of a script element, whatever the columns are called."""
    return json.dumps(facts, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plotly() -> str:
    text = (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script")
