"""Explanations as files. Every array names its dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from gpattr import _documents

if TYPE_CHECKING:
    from gpattr.explanation import Explanation

FORMAT, OUTPUTS = "gpattr.Explanation", "gpattr.MultiOutputExplanation"


def save(ex: Explanation, path: str | PathLike[str]) -> None:
    """Write ``ex`` to ``path``."""
    _documents.write(FORMAT, _content(ex), path)


def load(path: str | PathLike[str]) -> Explanation:
    """Read an explanation from ``path``."""
    return _documents.read(FORMAT, path, _build)


def save_outputs(outputs: Mapping[str, Explanation], path: str | PathLike[str]) -> None:
    """Write the explanations of several outputs to ``path``."""
    _documents.write(OUTPUTS, {"outputs": [{"name": name, **_content(ex)} for name, ex in outputs.items()]}, path)


def load_outputs(path: str | PathLike[str]) -> dict[str, Explanation]:
    """Read the explanations of several outputs from ``path``."""
    return _documents.read(OUTPUTS, path, lambda content: {part["name"]: _build(part) for part in content["outputs"]})


def _content(ex: Explanation) -> dict[str, Any]:
    return {
        "feature_names": list(ex.feature_names),
        "row_names": list(ex.row_names),
        "method": ex.method,
        "baseline_name": ex.baseline_name,
        "arrays": {name: _documents.encode(getattr(ex, name), dims) for name, dims in ex.dimensions().items()},
    }


def _build(content: Any) -> Explanation:
    from gpattr.explanation import Explanation
    from gpattr.sampled_explanation import SampledExplanation

    kind = SampledExplanation if "draws" in content["arrays"] else Explanation
    return kind(
        feature_names=tuple(content["feature_names"]),
        row_names=tuple(content["row_names"]),
        method=content["method"],
        baseline_name=content["baseline_name"],
        **{name: _documents.decode(array) for name, array in content["arrays"].items()},
    )
