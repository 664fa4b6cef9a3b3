"""Explanations as files. Every array names its dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core import documents
from gpattr.distributions import Distribution, Draws, Gaussian, Mixture, Point
from gpattr.exceptions import FileFormatError
from gpattr.explanation.result import INTEGRATED_GRADIENTS

if TYPE_CHECKING:
    from gpattr.explanation.explanation import Explanation

KINDS: dict[str, type[Distribution]] = {
    kind.__name__: kind for kind in (Gaussian, Mixture, Draws, Point)
}


def content_of(ex: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON values."""
    return {
        "feature_names": list(ex.feature_names),
        "row_names": list(ex.row_names),
        "method": ex.method,
        "baseline_name": ex.baseline_name,
        "quantity": ex.quantity,
        "attribution": ex.attribution,
        "labels": {name: list(texts) for name, texts in ex.labels.items()},
        "baseline_labels": {name: list(texts) for name, texts in ex.baseline_labels.items()},
        "distribution": type(ex.distribution).__name__,
        "axes": list(ex.axes),
        "coordinates": {axis: list(labels) for axis, labels in ex.coordinates.items()},
        "arrays": {
            name: documents.encode(array, dimensions)
            for name, (dimensions, array) in ex.arrays().items()
        },
        "parts": {name: content_of(part) for name, part in ex.parts.items()},
    }


def build(content: Any) -> Any:
    """Return the explanation, of one or several outputs, that these JSON values describe."""
    from gpattr.explanation.explanation import NAMES, Explanation
    from gpattr.explanation.multi_output import MultiOutputExplanation

    if "outputs" in content:
        return MultiOutputExplanation({part["name"]: build(part) for part in content["outputs"]})
    arrays = {name: documents.decode(array) for name, array in content["arrays"].items()}
    kind = _kind(content)
    parts = {name: arrays.pop(NAMES[name]) for name in kind.arrays if NAMES[name] in arrays}
    return Explanation(
        distribution=kind(**_flat(kind, parts)),
        feature_names=tuple(content["feature_names"]),
        row_names=tuple(content["row_names"]),
        method=content["method"],
        baseline_name=content["baseline_name"],
        quantity=content["quantity"],
        attribution=content.get("attribution", INTEGRATED_GRADIENTS),
        labels=_texts(content, "labels"),
        baseline_labels=_texts(content, "baseline_labels"),
        axes=tuple(content.get("axes", ("feature",))),
        coordinates=content.get("coordinates", {}),
        parts={name: build(part) for name, part in content.get("parts", {}).items()},
        **arrays,
    )


def _texts(content: Any, name: str) -> dict[str, tuple[str, ...]]:
    return {feature: tuple(texts) for feature, texts in content.get(name, {}).items()}


def _kind(content: Any) -> type[Distribution]:
    """Return the kind of the distribution; files without it are known by their arrays."""
    name = content.get("distribution")
    if name is None:
        arrays = content["arrays"]
        return Draws if "draws" in arrays else Mixture if "component_values" in arrays else Gaussian
    if name not in KINDS:
        raise FileFormatError(
            f"expected one of the distributions {', '.join(KINDS)}, got {name!r}; a newer gpattr"
            " may read it"
        )
    return KINDS[name]


def _flat(kind: type[Distribution], parts: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a distribution with all axes of a row in one."""
    q = math.prod(parts["mean"].shape[1:])
    shapes = {}
    for name, array in parts.items():
        leading = [dim for dim in kind.arrays[name] if dim != "entry"]
        entries = len(kind.arrays[name]) - len(leading)
        shapes[name] = array.reshape(*array.shape[: len(leading)], *[q] * entries)
    return shapes
