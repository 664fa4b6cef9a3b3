"""Explanations as JSON files: readable, versioned, checked, exact to the last bit.

A file is ``{"format": "gpattr.Explanation", "schema": 1, "sha256": …, "content": …}``, the digest being of the content. Every
array carries the names of its dimensions, so that an output axis or mixture components can be added without a new schema.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr.exceptions import FileFormatError, InvalidInputError

if TYPE_CHECKING:
    from gpattr.explanation import Explanation

FORMAT, SCHEMA = "gpattr.Explanation", 1


def save(ex: Explanation, path: str | PathLike[str]) -> None:
    """Write ``ex`` to ``path``, whole or not at all."""
    content = {
        "feature_names": list(ex.feature_names),
        "row_names": list(ex.row_names),
        "output_names": None,
        "component_weights": None,
        "method": ex.method,
        "baseline_name": ex.baseline_name,
        "arrays": {name: _encode(getattr(ex, name), dims) for name, dims in ex.dimensions().items()},
    }
    text = _canonical(content)
    head = json.dumps({"format": FORMAT, "schema": SCHEMA, "sha256": _digest(text)})
    _write_whole(f'{head[:-1]}, "content": {text}}}\n', path)


def load(cls: type[Explanation], path: str | PathLike[str]) -> Explanation:
    """Read an explanation from ``path``."""
    with open(path, encoding="utf-8") as file:
        try:
            document = json.load(file)
        except (ValueError, RecursionError) as error:  # not JSON, or not text, or nested without end
            raise FileFormatError(f"{os.fspath(path)}: expected a complete JSON file, but it cannot be read: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileFormatError(f"{os.fspath(path)}: expected a file of format {FORMAT!r}; this is something else")
    if document.get("schema") is not SCHEMA:  # not even 1.0 or true
        raise FileFormatError(
            f"{os.fspath(path)}: expected schema {SCHEMA}, got {document.get('schema')!r}; a newer gpattr may read it"
        )
    content: Any = document.get("content")
    if document.get("sha256") != _digest(_canonical(content)):
        raise FileFormatError(f"{os.fspath(path)}: the content was altered after it was saved (its checksum does not match)")
    try:
        return cls(
            feature_names=tuple(content["feature_names"]),
            row_names=tuple(content["row_names"]),
            method=content["method"],
            baseline_name=content["baseline_name"],
            **{name: _decode(array) for name, array in content["arrays"].items()},
        )
    except (InvalidInputError, ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{os.fspath(path)}: the content is not an explanation: {error}") from None


def _encode(array: np.ndarray, dimensions: tuple[str, ...]) -> dict[str, Any]:
    data = [None if value != value else value for value in array.ravel().tolist()]  # JSON has no NaN
    return {"dims": list(dimensions), "shape": list(array.shape), "data": data}


def _decode(array: dict[str, Any]) -> np.ndarray:
    return np.array(array["data"], dtype=np.float64).reshape(array["shape"])


def _canonical(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _write_whole(text: str, path: str | PathLike[str]) -> None:
    target = os.path.abspath(path)
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(f"{os.fspath(path)}: the folder {os.path.dirname(target)} does not exist")
    temporary = f"{target}.{secrets.token_hex(4)}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # the umask applies, as to any file
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
