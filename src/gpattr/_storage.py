"""Explanations as files. Every array names its dimensions, which leaves room for outputs and mixture components."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from gpattr import _documents

if TYPE_CHECKING:
    from gpattr.explanation import Explanation

FORMAT = "gpattr.Explanation"


def save(ex: Explanation, path: str | PathLike[str]) -> None:
    """Write ``ex`` to ``path``."""
    content = {
        "feature_names": list(ex.feature_names),
        "row_names": list(ex.row_names),
        "output_names": None,
        "method": ex.method,
        "baseline_name": ex.baseline_name,
        "arrays": {name: _documents.encode(getattr(ex, name), dims) for name, dims in ex.dimensions().items()},
    }
    _documents.write(FORMAT, content, path)


def load(cls: type[Explanation], path: str | PathLike[str]) -> Explanation:
    """Read an explanation from ``path``."""

    def build(content: Any) -> Explanation:
        return cls(
            feature_names=tuple(content["feature_names"]),
            row_names=tuple(content["row_names"]),
            method=content["method"],
            baseline_name=content["baseline_name"],
            **{name: _documents.decode(array) for name, array in content["arrays"].items()},
        )

    return _documents.read(FORMAT, path, build)
