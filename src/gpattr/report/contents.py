"""Contents of the report as JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from gpattr import __version__
from gpattr.distributions import Draws, Mixture, Point
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.dependence import Dependence
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.importance import MEASURES, Importance
from gpattr.report.counterfactuals import Placed, counterfactual_content
from gpattr.report.facts import calibration, model_card
from gpattr.report.packing import packed
from gpattr.report.what_if import what_if
from gpattr.report.whole_function import curve_content, indices_content
from gpattr.sobol import SobolIndices
from gpattr.tables.held_out import HeldOut, HeldOutClasses

NO_MODEL = "sliders need the model, which a saved explanation does not contain"
SEVERAL = "sliders need a single latent output, and there are several classes or outputs"


def content(
    outputs: Mapping[str, Explanation],
    importances: Mapping[str, Importance],
    explainer: Explainer | None,
    level: float,
    held_out: HeldOut | HeldOutClasses | None = None,
    targets: np.ndarray | None = None,
    classes: Sequence[str] | None = None,
    curves: Mapping[str, Sequence[Dependence]] | None = None,
    indices: Mapping[str, SobolIndices] | None = None,
    counterfactuals: Mapping[str, Sequence[Placed]] | None = None,
) -> dict[str, Any]:
    """Return the report's content: shared by all classes or outputs, and of each.

    Long arrays are base64 of float32, row by row.
    """
    ex = next(iter(outputs.values()))
    return {
        "version": __version__,
        "level": level,
        "quantile": -float(ndtri(0.5 * (1.0 - level))),
        "features": list(ex.feature_names),
        "rows": [str(name) for name in ex.row_names],
        "numbered": all(isinstance(name, int) for name in ex.row_names),
        "labels": {name: _coded(texts) for name, texts in ex.labels.items()},
        "baseline": ex.baseline_name,
        "attribution": ex.attribution,
        "baseline_values": _shared_baseline(ex),
        "baseline_labels": {
            name: texts[0] for name, texts in ex.baseline_labels.items() if len(set(texts)) == 1
        },
        "card": []
        if explainer is None
        else model_card(explainer.posterior, held_out, outputs if len(outputs) > 1 else ()),
        "calibration": calibration(held_out),
        "what_if": SEVERAL
        if len(outputs) > 1
        else NO_MODEL
        if explainer is None
        else what_if(explainer, ex),
        "classes": None if classes is None else _coded(classes),
        "arrays": {
            "data": packed(ex.data, "<f8"),  # used by sliders and filters
            "measured": None if targets is None else packed(targets),
        },
        "outputs": [
            _output(name, each, importances.get(name), level)
            | _whole(level, (curves or {}).get(name, ()), (indices or {}).get(name))
            | {
                "counterfactuals": [
                    counterfactual_content(one, rows, level)
                    for one, rows in (counterfactuals or {}).get(name, ())
                ]
            }
            for name, each in outputs.items()
        ],
    }


def _output(
    name: str, ex: Explanation, importance: Importance | None, level: float
) -> dict[str, Any]:
    """Return the contents for one class or output."""
    known = ex.var is not None and not isinstance(ex.distribution, Point)
    # The rest follows from std.
    gaussian = not known or not isinstance(ex.distribution, (Mixture, Draws))
    low, high = (None, None) if gaussian else ex.interval(level)
    sizes = np.abs(ex.values).mean(axis=0) if importance is None else importance.values
    ends = None if importance is None else importance.interval(level)
    total = (
        None if ex.cov is None or not known else np.sqrt(np.maximum(ex.cov.sum(axis=(1, 2)), 0.0))
    )
    return {
        "name": name,
        "quantity": ex.quantity,
        "uncertain": known,
        "method": ex.method,
        "error": float(ex.error.max()) if np.isfinite(ex.error).all() else None,
        "gap": float(np.abs(ex.delta).max()),
        "importance": {
            "values": sizes.tolist(),
            "low": None if ends is None else ends[0].tolist(),
            "high": None if ends is None else ends[1].tolist(),
            "rows": len(ex) if importance is None else importance.n_rows,
            "note": "" if importance is None else importance.note,
            "by": "absolute" if importance is None else importance.by,
            "measure": (MEASURES["absolute"] if importance is None else importance.measure),
            "groups": "" if importance is None else importance.groups_note,
        },
        "arrays": {
            "values": packed(ex.values),
            "std": packed(np.sqrt(ex.var)) if known and ex.var is not None else None,
            "low": None if low is None else packed(low),
            "high": None if high is None else packed(high),
            "positive": None if gaussian else packed(ex.prob_positive()),
            "predictions": packed(ex.predictions),
            "base": packed(ex.base_values),
            "total": None if total is None else packed(total),
        },
    }


def _whole(
    level: float, curves: Sequence[Dependence], indices: SobolIndices | None
) -> dict[str, Any]:
    """Return the content on the function of one class or output as a whole."""
    return {
        "curves": [curve_content(curve, level) for curve in curves],
        "indices": None if indices is None else indices_content(indices, level),
    }


def _shared_baseline(ex: Explanation) -> list[float | None] | None:
    """Return the values of the common baseline, None for features without a number.

    None if rows have different baselines.
    """
    point = ex.baselines[0]
    if (
        ex.baseline_weights is not None
        or not ((ex.baselines == point) | np.isnan(ex.baselines)).all()
    ):
        return None
    return [None if np.isnan(value) else value for value in point.tolist()]


def _coded(texts: Sequence[str]) -> dict[str, Any]:
    """Return repeated texts as the distinct ones, and the index of each row's."""
    distinct = list(dict.fromkeys(texts))
    place = {text: k for k, text in enumerate(distinct)}
    return {
        "texts": distinct,
        "codes": packed(
            np.array([place[text] for text in texts]), "<u2" if len(distinct) < 65536 else "<u4"
        ),
    }
