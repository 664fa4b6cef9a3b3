"""Dependences as frames, as text and as files."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core import documents
from gpattr._core.array import Array
from gpattr._core.readable_numbers import readable_all
from gpattr.explanation.feature_grid import DATE, FeatureGrid
from gpattr.explanation.storage import KINDS

if TYPE_CHECKING:
    import pandas as pd

    from gpattr.explanation.dependence import Dependence

FORMAT = "gpattr.Dependence"
FEW = 8  # values of a grid that are printed


def to_frame(dependence: Dependence, level: float) -> pd.DataFrame:
    """Return one line for each value of the grid, and for each row of individual curves."""
    import pandas as pd

    places = np.indices([len(axis) for axis in dependence.axes]).reshape(len(dependence.axes), -1)
    rows, entries = dependence.distribution.shape
    columns: dict[str, Any] = {}
    if dependence.kind == "individual":
        columns["row"] = np.repeat(np.array(dependence.row_names, dtype=object), entries)
    outside = np.zeros(entries, dtype=bool)
    for axis, place in zip(dependence.axes, places, strict=True):
        columns[axis.name] = np.tile(axis.values[place], rows)
        outside |= axis.outside[place]
    columns["slope" if dependence.derivative else "value"] = dependence.values.ravel()
    if dependence.std is not None:
        lower, upper = dependence.interval(level)
        columns |= {"std": dependence.std.ravel(), "lower": lower.ravel(), "upper": upper.ravel()}
    columns["outside"] = np.tile(outside, rows)
    return pd.DataFrame(columns)


def facts(dependence: Dependence) -> dict[str, Any]:
    """Return everything but the distribution as JSON values."""
    return {
        "axes": [axis.to_content() for axis in dependence.axes],
        "kind": dependence.kind,
        "centred": dependence.centred,
        "derivative": dependence.derivative,
        "n_background": dependence.n_background,
        "quantity": dependence.quantity,
        "method": dependence.method,
        "row_names": list(dependence.row_names),
        "error": documents.encode(dependence.error, ("row",)),
        "cov_error": _encoded(dependence.cov_error),
    }


def _encoded(array: Array | None) -> Any:
    return None if array is None else documents.encode(array, ("row",))


def to_dict(dependence: Dependence) -> dict[str, Any]:
    """Return the dependence as JSON values."""
    distribution = dependence.distribution
    return facts(dependence) | {
        "distribution": type(distribution).__name__,
        "arrays": {
            name: documents.encode(array, distribution.arrays[name], compact=True)
            for name, array in distribution.held().items()
        },
    }


def save(dependence: Dependence, path: str | PathLike[str]) -> None:
    """Write ``dependence`` to ``path``."""
    documents.write(FORMAT, to_dict(dependence), path)


def load(path: str | PathLike[str]) -> Dependence:
    """Read a dependence from ``path``."""
    return documents.read(FORMAT, path, _build)


def _build(content: Any) -> Dependence:
    from gpattr.explanation.dependence import Dependence

    arrays = {name: documents.decode(array) for name, array in content["arrays"].items()}
    plain = ("kind", "centred", "derivative", "n_background", "quantity", "method")
    cov_error = content["cov_error"]
    return Dependence(
        KINDS[content["distribution"]](**arrays).numpy(),
        tuple(FeatureGrid.of_content(axis) for axis in content["axes"]),
        error=documents.decode(content["error"]),
        cov_error=None if cov_error is None else documents.decode(cov_error),
        row_names=tuple(content["row_names"]),
        **{name: content[name] for name in plain},
    )


def title(dependence: Dependence) -> str:
    """Return what it is, in words: "predicted quality, average over 1,599 rows"."""
    rows = f"{dependence.n_background:,} row" + "s" * (dependence.n_background != 1)
    what = dependence.quantity
    if dependence.derivative:
        what = f"slope of the {what}"
    elif dependence.centred:
        what = f"centred {what}"
    over = "average over" if dependence.kind == "average" else "curves of"
    return f"{what}, {over} {rows}"


def plain(dependence: Dependence) -> str:
    """Return a short table of the curve."""
    head = f"Dependence on {' and '.join(dependence.features)}: {title(dependence)}"
    if dependence.surface or dependence.kind == "individual":
        shape = " × ".join(str(len(axis)) for axis in dependence.axes)
        return f"{head}\n  {shape} values of {', '.join(dependence.features)}"
    axis, values = dependence.axes[0], dependence.values
    places = np.unique(np.linspace(0, len(axis) - 1, min(FEW, len(axis))).round().astype(int))
    sizes = readable_all(values[places])
    spreads = None if dependence.std is None else readable_all(dependence.std[places])
    labels = _labels(axis, places)
    width, wide = max(map(len, labels)), max(map(len, sizes))
    lines = []
    for k in range(len(places)):
        spread = "" if spreads is None else f" ± {spreads[k]}"
        mark = "  (outside the data)" if axis.outside[places[k]] else ""
        lines.append(f"  {labels[k]:>{width}}  {sizes[k]:>{wide}}{spread}{mark}")
    if len(places) < len(axis):
        lines.append(f"  ({len(places)} of {len(axis)} values of the grid)")
    return "\n".join([head, *lines])


def _labels(axis: FeatureGrid, places: Array) -> list[str]:
    if axis.kind == "number":
        return readable_all(axis.values[places])
    if axis.kind == DATE:
        return np.datetime_as_string(axis.values[places], unit="D").tolist()
    return [str(label) for label in axis.values[places]]
