"""Explanations of several batches of rows as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr.distributions import Distribution
from gpattr.distributions.positions import listed
from gpattr.exceptions import InvalidInputError

if TYPE_CHECKING:
    from gpattr.explanation.explanation import Explanation
    from gpattr.explanation.multi_output import MultiOutputExplanation

EXPECTED = "parts: expected explanations by one explainer"


def concatenate(parts: Iterable[Explanation]) -> Explanation:
    """Return explanations by one explainer, of any rows, as one."""
    found = _checked(parts)
    first = found[0]
    arrays: dict[str, Any] = {}
    for name, (dimensions, _) in first.arrays().items():
        if name not in vars(first):  # the distribution has it
            continue
        pieces = [vars(part)[name] for part in found]
        if "row" in dimensions:
            arrays[name] = np.concatenate(pieces)
        elif not all(np.array_equal(piece, pieces[0], equal_nan=True) for piece in pieces):
            raise InvalidInputError(f"{EXPECTED}, but their {name} differ")
    try:
        distribution = Distribution.concatenate([part.distribution for part in found])
    except InvalidInputError as error:
        raise InvalidInputError(f"{EXPECTED}: {str(error).removeprefix('parts: ')}") from None
    return replace(
        first,
        **arrays,
        distribution=distribution,
        row_names=tuple(name for part in found for name in part.row_names),
        method=" + ".join(dict.fromkeys(part.method for part in found)),
        **{
            field: {
                name: tuple(text for part in found for text in vars(part)[field][name])
                for name in vars(first)[field]
            }
            for field in ("labels", "baseline_labels")
        },
        parts={name: concatenate([part.parts[name] for part in found]) for name in first.parts},
    )


def concatenate_outputs(parts: Iterable[MultiOutputExplanation]) -> dict[str, Explanation]:
    """Return explanations of several outputs by one explainer, of any rows, as one for each."""
    from gpattr.explanation.multi_output import MultiOutputExplanation

    found = _of_one_kind(parts, MultiOutputExplanation, "of several outputs")
    for k, part in enumerate(found):
        if part.output_names != found[0].output_names:
            raise InvalidInputError(f"{EXPECTED}, but the set of outputs of part {k} is another")
    return {name: concatenate([part[name] for part in found]) for name in found[0].outputs}


def _of_one_kind(parts: Any, kind: type, what: str) -> list[Any]:
    """Return the parts, at least one of them, all of this kind."""
    expected, found = f"parts: expected explanations {what}, got a", listed(parts)
    if found is None:
        raise InvalidInputError(f"{expected} {type(parts).__name__}")
    for k, part in enumerate(found):
        if not isinstance(part, kind):
            raise InvalidInputError(f"{expected} {type(part).__name__} as part {k}")
    if not found:
        raise InvalidInputError("parts: expected at least one explanation, got none")
    return found


def _checked(parts: Any) -> list[Explanation]:
    """Return explanations of the same quantity, features, axes and arrays."""
    from gpattr.explanation.explanation import Explanation

    found = _of_one_kind(parts, Explanation, "of one output each")
    for k, part in enumerate(found):
        different = _difference(part, found[0])
        if different:
            raise InvalidInputError(f"{EXPECTED}, but the {different} of part {k} is another")
    return found


def _difference(one: Explanation, two: Explanation) -> str:
    """Return the name of a property that keeps two explanations from being joined, if any."""
    shared = {
        "feature_names": one.feature_names == two.feature_names,
        "baseline_name": one.baseline_name == two.baseline_name,
        "quantity": one.quantity == two.quantity,
        "attribution": one.attribution == two.attribution,
        "axes": one.axes == two.axes,
        "coordinates": one.coordinates == two.coordinates,
        f"set of arrays ({', '.join(one.dimensions())})": one.dimensions() == two.dimensions(),
        "set of labels": set(one.labels) == set(two.labels),
        "set of baseline_labels": set(one.baseline_labels) == set(two.baseline_labels),
        "set of parts": set(one.parts) == set(two.parts),
    }
    return next((name for name, same in shared.items() if not same), "")
