"""Notes that explanations must print about a model."""

from __future__ import annotations

from copy import copy

from gpattr.posteriors import MultiOutputPosterior, Posterior

FLOAT32 = "model in float32, computed in float64"


def with_note(posterior: Posterior, note: str) -> Posterior:
    """Return a copy of a posterior that carries a note: it may be the user's own."""
    if isinstance(posterior, MultiOutputPosterior):
        outputs = {name: with_note(output, note) for name, output in posterior.outputs.items()}
        return posterior.with_outputs(outputs)
    result = copy(posterior)
    object.__setattr__(result, "note", f"{posterior.note}; {note}".removeprefix("; "))
    return result
