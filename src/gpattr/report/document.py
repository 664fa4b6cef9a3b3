"""The page itself: data, style, script and Plotly in one file."""

from __future__ import annotations

import base64
import json
from html import escape
from importlib.resources import files
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr import __version__
from gpattr._files import write_whole
from gpattr._normal import check_level
from gpattr.exceptions import InvalidInputError
from gpattr.report.facts import model_card

if TYPE_CHECKING:
    from gpattr.explanation import Explanation
    from gpattr.importance import Importance
    from gpattr.posteriors import Posterior


def write_report(
    path: str | PathLike[str],
    explanation: Explanation,
    *,
    importance: Importance | None = None,
    posterior: Posterior | None = None,
    title: str = "Why the model expects this",
    level: float = 0.95,
    labels: dict[str, list[str]] | None = None,
) -> None:
    """Write one HTML file that needs no network: whole or not at all.

    ``importance`` is that of `Explainer.importance`, with its intervals; ``posterior`` adds what is known of the model.
    ``labels`` are the texts of features with categories, one for each row.
    """
    if not len(explanation):
        raise InvalidInputError("explanation: expected at least one row, got none")
    check_level(level)
    facts = content(explanation, importance, posterior, title, level, labels or {})
    room = files("gpattr.report")
    page = (room / "page.html").read_text(encoding="utf-8")
    parts = {
        "title": escape(title),
        "style": (room / "page.css").read_text(encoding="utf-8"),
        "plotly": _plotly(),
        # Inside a script element nothing may look like its end, whatever the columns are called.
        "data": json.dumps(facts, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        "script": (room / "page.js").read_text(encoding="utf-8"),
    }
    for name, text in parts.items():
        page = page.replace(f"/*{name}*/", text) if f"/*{name}*/" in page else page.replace(f"<!--{name}-->", text)
    write_whole(page.encode("utf-8"), path)


def content(
    ex: Explanation,
    importance: Importance | None,
    posterior: Posterior | None,
    title: str,
    level: float,
    labels: dict[str, list[str]],
) -> dict[str, Any]:
    """Return all that the page shows, as JSON values; long arrays as base64 of float32, row by row."""
    known = ex.var is not None
    low, high = ex.interval(level) if known else (ex.values, ex.values)
    sizes = np.abs(ex.values).mean(axis=0) if importance is None else importance.values
    ends = None if importance is None else importance.interval(level)
    total = None if ex.cov is None else np.sqrt(np.maximum(ex.cov.sum(axis=(1, 2)), 0.0))
    return {
        "title": title,
        "version": __version__,
        "quantity": ex.quantity,
        "level": level,
        "features": list(ex.feature_names),
        "rows": [str(name) for name in ex.row_names],
        "labels": labels,
        "uncertain": known,
        "baseline": ex.baseline_name,
        "method": ex.method,
        "error": float(ex.error.max()),
        "gap": float(np.abs(ex.delta).max()),
        "card": [] if posterior is None else model_card(posterior),
        "importance": {
            "values": sizes.tolist(),
            "low": None if ends is None else ends[0].tolist(),
            "high": None if ends is None else ends[1].tolist(),
        },
        "arrays": {
            "values": _packed(ex.values),
            "low": _packed(low),
            "high": _packed(high),
            "std": _packed(ex.std if ex.std is not None else np.zeros(ex.shape)),
            "positive": _packed(ex.prob_positive() if known else np.full(ex.shape, 0.5)),
            "data": _packed(ex.data),
            "predictions": _packed(ex.predictions),
            "base": _packed(ex.base_values),
            "total": _packed(np.zeros(len(ex)) if total is None else total),
        },
    }


def _packed(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode("ascii")


def _plotly() -> str:
    text = (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script")
