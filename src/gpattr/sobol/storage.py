"""Sobol indices as files."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from gpattr._core import documents
from gpattr._core.validation import read_only
from gpattr.sobol.effects import Effects

if TYPE_CHECKING:
    from gpattr.sobol.indices import SobolIndices

FORMAT = "gpattr.SobolIndices"
ARRAYS = {
    "plug_in": ("subset",),
    "expected": ("subset",),
    "draws": ("draw", "subset"),
    "error": ("subset",),
    "replicates": ("replicate", "subset"),
    "plug_in_replicates": ("replicate", "subset"),
}


def to_dict(indices: SobolIndices) -> dict[str, Any]:
    """Return indices as JSON values."""
    effects = indices.effects
    arrays = {
        "plug_in": effects.plug_in,
        "expected": effects.expected,
        "draws": effects.draws,
        "error": effects.error,
        "replicates": effects.replicates,
        "plug_in_replicates": effects.plug_in_replicates,
    }
    return {
        "feature_names": list(indices.feature_names),
        "quantity": indices.quantity,
        "inputs": indices.inputs,
        "method": effects.method,
        "subsets": [list(subset) for subset in effects.subsets],
        "pairs": [list(pair) for pair in indices.pairs_known],
        "arrays": {
            name: documents.encode(array, ARRAYS[name], compact=name == "draws")
            for name, array in arrays.items()
            if array is not None
        },
    }


def save(indices: SobolIndices, path: str | PathLike[str]) -> None:
    """Write ``indices`` to ``path``."""
    documents.write(FORMAT, to_dict(indices), path)


def load(path: str | PathLike[str]) -> SobolIndices:
    """Read indices from ``path``."""
    return documents.read(FORMAT, path, _build)


def _build(content: Any) -> SobolIndices:
    from gpattr.sobol.indices import SobolIndices

    known = content["arrays"]
    arrays = {name: read_only(documents.decode(known[name])) for name in ARRAYS if name in known}
    subsets = tuple(tuple(int(i) for i in subset) for subset in content["subsets"])
    effects = Effects(subsets, **arrays, method=content["method"])
    names = tuple(content["feature_names"])
    pairs = tuple((int(i), int(j)) for i, j in content["pairs"])
    return SobolIndices(effects, names, content["quantity"], content["inputs"], pairs)
