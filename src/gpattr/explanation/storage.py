"""Explanations as files. Every array names its dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from gpattr._core import documents

if TYPE_CHECKING:
    from gpattr.explanation.explanation import Explanation

FORMAT, OUTPUTS = "gpattr.Explanation", "gpattr.MultiOutputExplanation"


def save(ex: Explanation, path: str | PathLike[str]) -> None:
    """Write ``ex`` to ``path``."""
    documents.write(FORMAT, _content(ex), path)


def load(path: str | PathLike[str]) -> Any:
    """Read an explanation, or those of several outputs, from ``path``."""
    return documents.read((FORMAT, OUTPUTS), path, _build)


def save_outputs(outputs: Mapping[str, Explanation], path: str | PathLike[str]) -> None:
    """Write the explanations of several outputs to ``path``."""
    documents.write(
        OUTPUTS, {"outputs": [{"name": name, **_content(ex)} for name, ex in outputs.items()]}, path
    )


def _content(ex: Explanation) -> dict[str, Any]:
    return {
        "feature_names": list(ex.feature_names),
        "row_names": list(ex.row_names),
        "method": ex.method,
        "baseline_name": ex.baseline_name,
        "quantity": ex.quantity,
        "labels": {name: list(texts) for name, texts in ex.labels.items()},
        "arrays": {
            name: documents.encode(getattr(ex, name), dims)
            for name, dims in ex.dimensions().items()
        },
    }


def _build(content: Any) -> Any:
    from gpattr.explanation.explanation import Explanation
    from gpattr.explanation.multi_output import MultiOutputExplanation
    from gpattr.explanation.sampled import SampledExplanation

    if "outputs" in content:
        return MultiOutputExplanation({part["name"]: _build(part) for part in content["outputs"]})
    kind = SampledExplanation if "draws" in content["arrays"] else Explanation
    return kind(
        feature_names=tuple(content["feature_names"]),
        row_names=tuple(content["row_names"]),
        method=content["method"],
        baseline_name=content["baseline_name"],
        quantity=content["quantity"],
        labels={name: tuple(texts) for name, texts in content.get("labels", {}).items()},
        **{name: documents.decode(array) for name, array in content["arrays"].items()},
    )
