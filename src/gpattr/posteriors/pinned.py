"""A posterior some of whose inputs are held: f(x) = g(x, c), such as one task of several.

Held inputs do not change along a path, so that attributions of f are attributions of g to its other
inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gpattr._core.array import Array, namespace
from gpattr._core.memory import check_memory
from gpattr._core.validation import Names, as_vector, check_names, read_only
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.operators import AffineMap, IntegratedGradients
from gpattr.posteriors.affine import AffinePosterior
from gpattr.posteriors.base import Posterior
from gpattr.posteriors.multi_output import MultiOutputBound, MultiOutputPosterior
from gpattr.posteriors.wrapper import check_wrapped

NOWHERE = -1  # the feature that a held input comes from


@dataclass(frozen=True, eq=False)
class PinnedMap(AffineMap):
    """u(x) = (x, c): ``n_features`` features, and constants ``shift`` after them."""

    def __post_init__(self) -> None:
        pass

    def inside(self, X: Array) -> Array:
        xp, d = namespace(X), self.n_features
        held = xp.zeros((len(X), len(self.shift) - d)) + xp.asarray(self.shift[d:])
        return xp.concatenate([X, held], axis=1)

    def outside(self, U: Array) -> Array:
        return U[:, : self.n_features]

    def jacobian(self, like: Array) -> Array:
        xp, d = namespace(like), self.n_features
        return xp.concatenate([xp.eye(d), xp.zeros((len(self.shift) - d, d))])


@dataclass(frozen=True, eq=False, init=False, repr=False)
class PinnedPosterior(AffinePosterior):
    """f(x) = g(x, ``constants``) for the ``posterior`` of g: its last inputs are held."""

    constants: Array

    def __init__(
        self, posterior: Posterior, constants: Any, *, feature_names: Names | None = None
    ) -> None:
        check_wrapped(posterior)
        held = read_only(as_vector("constants", constants))
        d = posterior.n_features - len(held)
        if d < 1:
            raise InvalidInputError(
                f"constants: expected fewer than the {posterior.n_features} inputs, got {len(held)}"
            )
        xp = namespace(held)
        values = {
            "posterior": posterior,
            "constants": held,
            "shift": read_only(xp.concatenate([xp.zeros(d), held])),
            "scale": read_only(xp.zeros(d + len(held)) + 1.0),
            "source": (*range(d), *[NOWHERE] * len(held)),
            "width": d,
            "feature_names": (
                None if feature_names is None else check_names("feature_names", feature_names, d)
            ),
            "label": posterior.label,
            "note": posterior.note,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def units(self) -> PinnedMap:
        return PinnedMap(self.shift, self.scale, self.source, self.width)

    def around(self, posterior: Posterior) -> PinnedPosterior:
        return PinnedPosterior(posterior, self.constants, feature_names=self.feature_names)

    def __repr__(self) -> str:
        return f"PinnedPosterior({self.posterior!r})"


class PinnedOutputs(MultiOutputPosterior):
    """Outputs that are one function with its last inputs held at the values of each."""

    @property
    def independent(self) -> bool:
        return False

    def across_at(self, bound: MultiOutputBound, X: Array) -> Array:
        operator, P = bound.operator, len(self.outputs)
        if not isinstance(operator, IntegratedGradients) or operator.weights is not None:
            raise UnsupportedModelError(
                "across_outputs: with outputs of this kind it is available for integrated gradients"
                " with one baseline"
            )
        pinned = [_pinned(output) for output in self.outputs.values()]
        n, d, q = len(X), X.shape[1], operator.size(X.shape[1])
        check_memory("The covariance across outputs", (n, q, P, q, P), "use fewer rows")
        xp = namespace(X)
        result = xp.empty((n, q, P, q, P))
        for i in range(n):
            own = operator.rows(slice(i, i + 1))
            starts = xp.concatenate([part.units.inside(xp.asarray(own.points)) for part in pinned])
            rows = xp.concatenate([part.units.inside(X[i : i + 1]) for part in pinned])
            inner = pinned[0].posterior.bind(IntegratedGradients(starts), bound.evaluation)
            joint = inner.joint(rows)[:, :d, :, :d]  # (P, q, P, q)
            result[i] = xp.swapaxes(xp.swapaxes(joint, 0, 1), 2, 3)
        return result


def _pinned(posterior: Posterior) -> PinnedPosterior:
    """Return the function with held inputs inside of an output."""
    while not isinstance(posterior, PinnedPosterior):
        (posterior,) = posterior.inner
    return posterior
