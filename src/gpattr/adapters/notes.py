"""Notes about a model that its explanations carry."""

from __future__ import annotations

from copy import copy
from typing import Any

from gpattr.posteriors.base import note_of

FLOAT32 = "model in float32, computed in float64"


def with_note(posterior: Any, note: str) -> Any:
    """Return a copy of a posterior, with one or several outputs, that carries a note.

    The original may be the user's own."""
    result = copy(posterior)
    outputs = getattr(posterior, "outputs", None)
    if outputs is None:
        object.__setattr__(result, "note", f"{note_of(posterior)}; {note}".removeprefix("; "))
    else:
        object.__setattr__(
            result, "outputs", {name: with_note(output, note) for name, output in outputs.items()}
        )
    return result
