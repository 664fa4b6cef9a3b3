"""JSON files that are readable, versioned, checked, and exact to the last bit.

A file is ``{"format": …, "schema": 1, "sha256": …, "content": …}``, the digest being of the
content. Nothing is ever unpickled.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable
from os import PathLike
from typing import Any, TypeVar

import numpy as np

from gpattr._core.files import write_whole
from gpattr._core.validation import check_path
from gpattr.exceptions import FileFormatError, InvalidInputError

SCHEMA = 1
READABLE = 10_000  # numbers, beyond which a matrix is stored as base64
LOADERS = {
    "gpattr.Dependence": "gpattr.Dependence.load",
    "gpattr.Explanation": "gpattr.Explanation.load",
    "gpattr.InteractionExplanation": "gpattr.InteractionExplanation.load",
    "gpattr.MultiOutputExplanation": "gpattr.Explanation.load",
    "gpattr.SobolIndices": "gpattr.SobolIndices.load",
    "gpattr.table_model": "gpattr.tables.TableModel.load",
}
T = TypeVar("T")


def write(
    kind: str, content: dict[str, Any], path: str | PathLike[str], *, durable: bool = False
) -> None:
    """Write content to a file of this format, whole or not at all; see `write_whole`."""
    check_path("path", path)
    text = _canonical(content)
    head = json.dumps({"format": kind, "schema": SCHEMA, "sha256": _digest(text)})
    write_whole(f'{head[:-1]}, "content": {text}}}\n'.encode(), path, durable=durable)


def read(kinds: str | tuple[str, ...], path: str | PathLike[str], build: Callable[[Any], T]) -> T:
    """Return ``build(content)`` for a file of one of these formats; raise for any other file."""
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    name = check_path("path", path)
    if os.path.isdir(name):
        raise FileFormatError(f"{name}: expected a file, got a folder")
    with open(path, encoding="utf-8") as file:
        try:
            document = json.load(file)
        except (
            ValueError,
            RecursionError,
        ) as error:  # not JSON, or not text, or nested too deeply
            raise FileFormatError(
                f"{name}: expected a complete JSON file, but it cannot be read: {error}"
            ) from None
    kind = document.get("format") if isinstance(document, dict) else None
    if kind not in kinds:
        found = (
            f"a {kind}, which {LOADERS.get(kind, 'another load')} reads"
            if isinstance(kind, str) and kind.startswith("gpattr.")
            else "something else"
        )
        raise FileFormatError(f"{name}: expected a file of format {kinds[0]!r}; this is {found}")
    if document.get("schema") is not SCHEMA:  # not even 1.0 or true
        raise FileFormatError(
            f"{name}: expected schema {SCHEMA}, got {document.get('schema')!r}; a newer gpattr may"
            " read it"
        )
    content = document.get("content")
    if document.get("sha256") != _digest(_canonical(content)):
        raise FileFormatError(
            f"{name}: the content was altered after it was saved (its checksum does not match)"
        )
    try:
        return build(content)
    except (
        InvalidInputError,
        ArithmeticError,
        AttributeError,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:
        raise FileFormatError(f"{name}: the content is not that of a {kind}: {error}") from None


def encode(
    array: np.ndarray, dimensions: tuple[str, ...], *, compact: bool = False
) -> dict[str, Any]:
    """Return an array with named dimensions as JSON values; NaN becomes null.

    With ``compact`` an array of more than `READABLE` numbers is base64 of float64, little endian,
    at half the size.
    """
    if compact and array.size > READABLE:
        text = base64.b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode("ascii")
        return {"dims": list(dimensions), "shape": list(array.shape), "base64": text}
    data = [None if value != value else value for value in array.ravel().tolist()]
    return {"dims": list(dimensions), "shape": list(array.shape), "data": data}


def decode(array: dict[str, Any]) -> np.ndarray:
    """Return the array that `encode` wrote."""
    if "base64" in array:
        data = np.frombuffer(base64.b64decode(array["base64"], validate=True), dtype="<f8")
        return data.astype(np.float64).reshape(array["shape"])
    return np.array(array["data"], dtype=np.float64).reshape(array["shape"])


def _canonical(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
