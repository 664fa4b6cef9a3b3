"""The function as a whole in the report: curves of single features, and shares of its variance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpattr.exceptions import InvalidInputError
from gpattr.explanation.dependence import AVERAGE, Dependence
from gpattr.explanation.feature_grid import CATEGORY, DATE, FeatureGrid, days
from gpattr.report.packing import packed
from gpattr.sobol import SobolIndices

MOST_VALUES = 500  # of a curve: more than a screen has room for
BINS = 32  # of the histogram of the data below a curve
WANTED = "a gpattr Dependence, a list of them, or None"


def by_output(argument: str, given: Any, outputs: Sequence[str], one: Callable[[Any], Any]) -> Any:
    """Return the parts ``given`` by output, {name: one(…)}; without names, of a single output."""
    if given is None:
        return {}
    named = isinstance(given, Mapping)
    known = dict(given) if named else {outputs[0]: given}
    if not set(known) <= set(outputs) or (len(outputs) > 1 and not named):
        found = list(known) if named else f"a {type(given).__name__} without a name"
        raise InvalidInputError(
            f"{argument}: expected those of {list(outputs)} by name, got {found}"
        )
    return {name: one(each) for name, each in known.items()}


def curves_of(given: Any, features: Sequence[str]) -> tuple[Dependence, ...]:
    """Return the curves of one output, each of another feature; refuse anything else."""
    if isinstance(given, Dependence):
        curves: tuple[Any, ...] = (given,)
    elif isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        curves = tuple(given)
    else:
        raise InvalidInputError(f"dependence: expected {WANTED}, got a {type(given).__name__}")
    for curve in curves:
        if not isinstance(curve, Dependence):
            raise InvalidInputError(
                f"dependence: expected {WANTED}, got a list with a {type(curve).__name__}"
            )
        if curve.surface or curve.kind != AVERAGE or curve.derivative:
            found = "slopes" if curve.derivative else "individual curves"
            raise InvalidInputError(
                "dependence: expected average curves of one feature, got"
                f" {'a surface of two' if curve.surface else found}"
            )
        if curve.features[0] not in features:
            raise InvalidInputError(
                f"dependence: expected features of the explanation, {list(features)}, got"
                f" {curve.features[0]!r}"
            )
    names = [curve.features[0] for curve in curves]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidInputError(
            f"dependence: expected one curve a feature, got two of {twice[0]!r}"
        )
    kinds = {(curve.quantity, curve.centred) for curve in curves}
    if len(kinds) > 1:
        found = " and ".join(sorted(f"{'centred ' * centred}{what}" for what, centred in kinds))
        raise InvalidInputError(f"dependence: expected curves of one quantity, got {found}")
    return curves


def indices_of(given: Any) -> SobolIndices:
    """Return the indices of one output; refuse anything else."""
    if not isinstance(given, SobolIndices):
        raise InvalidInputError(
            f"indices: expected gpattr SobolIndices, or None, got a {type(given).__name__}"
        )
    return given


def curve_content(curve: Dependence, level: float) -> dict[str, Any]:
    """Return a curve as JSON values; long arrays are base64."""
    axis = curve.axes[0]
    G = len(axis)
    some = np.arange(G)
    if G > MOST_VALUES and axis.kind != CATEGORY:
        some = np.unique(np.linspace(0, G - 1, MOST_VALUES).round().astype(int))
    std, ends = curve.std, (None, None)
    if std is not None:
        ends = curve.interval(level)
    return {
        "feature": axis.name,
        "kind": axis.kind,
        "labels": [str(label) for label in axis.values] if axis.kind == CATEGORY else None,
        "timed": axis.kind == DATE and bool((days(axis.values) % 1.0 > 0).any()),
        "quantity": curve.quantity,
        "centred": curve.centred,
        "rows": curve.n_background,
        "method": curve.method,
        "error": _finite(curve.error.max(initial=0.0)),
        "extremes": _extremes(curve),
        "data": _histogram(axis),
        "arrays": {
            "at": packed(axis.numbers[some], "<f8"),
            "outside": packed(axis.outside[some], "u1"),
            "values": packed(curve.values[some]),
            "std": None if std is None else packed(std[some]),
            "low": None if ends[0] is None else packed(ends[0][some]),
            "high": None if ends[1] is None else packed(ends[1][some]),
        },
    }


def indices_content(indices: SobolIndices, level: float) -> dict[str, Any]:
    """Return indices as JSON values, the largest total first."""
    order = np.argsort(-indices.total, kind="stable")
    arrays: dict[str, str] = {}
    for name, values, ends in (
        ("first", indices.first, indices.first_interval(level)),
        ("total", indices.total, indices.total_interval(level)),
    ):
        arrays |= {name: packed(values[order])}
        arrays |= {
            f"{name}_{end}": packed(each[order])
            for end, each in zip(("low", "high"), ends, strict=True)
        }
    return {
        "features": [indices.feature_names[i] for i in order],
        "quantity": indices.quantity,
        "inputs": indices.inputs,
        "variance": _finite(indices.variance),
        "variance_std": _finite(indices.variance_std),
        "unknown": _finite(indices.unknown_share),
        "method": indices.method,
        "error": _finite(indices.error.max(initial=0.0)),
        "draws": len(indices.first_draws),
        "arrays": arrays,
    }


def extremes(curve: Dependence) -> tuple[int, int, float | None]:
    """Return where a curve is lowest and highest, and P(it is higher there).

    Extrapolation counts only if there is nothing else. The probability is None without variances.
    """
    values = np.where(curve.outside & ~curve.outside.all(), np.nan, curve.values)
    if np.isnan(values).all():
        return 0, 0, None
    low, high = int(np.nanargmin(values)), int(np.nanargmax(values))
    if low == high or curve.cov is None:
        return low, high, None
    rise = np.zeros((len(values), 1))
    rise[[high, low], 0] = 1.0, -1.0
    return low, high, float(curve.distribution.linear(rise).prob_positive()[0, 0])


def _extremes(curve: Dependence) -> dict[str, Any]:
    low, high, certain = extremes(curve)
    at, values = curve.axes[0].numbers, curve.values
    return {
        "low": [_finite(at[low]), _finite(values[low])],
        "high": [_finite(at[high]), _finite(values[high])],
        "certain": None if certain is None else _finite(certain),
    }


def _histogram(axis: FeatureGrid) -> dict[str, Any]:
    """Return how many rows of the data have each category, or lie in bins of equal width."""
    if axis.kind == CATEGORY:
        found = Counter(axis.data.tolist())
        return {"counts": [found[label] for label in axis.values], "low": None, "high": None}
    data = days(axis.data) if axis.kind == DATE else axis.data
    low, high = float(min(data.min(), axis.numbers[0])), float(max(data.max(), axis.numbers[-1]))
    if not high > low or not math.isfinite(high - low):
        return {"counts": [], "low": low, "high": high}
    counts, _ = np.histogram(data, BINS, (low, high))
    return {"counts": counts.tolist(), "low": low, "high": high}


def _finite(value: Any) -> float | None:
    """Return a number that JSON has, None for others."""
    return float(value) if math.isfinite(value) else None
