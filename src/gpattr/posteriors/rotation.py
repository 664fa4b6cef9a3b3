"""The rotation that makes coregionalised outputs independent: D^−½ B D^−½ = UΛUᵀ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.validation import (
    Names,
    as_matrix,
    as_vector,
    check_names,
    column_names,
    is_frame,
    numbers,
)
from gpattr.exceptions import InvalidInputError
from gpattr.posteriors.given import matrix, root_of


@dataclass(frozen=True, eq=False)
class Rotation:
    """U, D^½ and Λ for a covariance B of outputs and noise variances D.

    ``vectors`` are U (P, P), ``scale`` D^½ (P,), ``shares`` Λ (P,), of which only those that are
    ``kept`` add to some output's variance; ``noise`` is the rotated functions' noise.
    """

    vectors: np.ndarray
    scale: np.ndarray
    shares: np.ndarray
    kept: np.ndarray
    noise: float

    @classmethod
    def of(cls, covariance: Any, noise: Any, P: int) -> Rotation:
        """Return the rotation of P outputs; refuse arguments that are no (co)variances."""
        root = root_of("covariance", to_numpy(matrix("covariance", covariance, P, P)))
        levels = _levels(noise, P)
        scale = np.sqrt(levels) if (levels > 0).all() else np.ones(P)
        vectors, values, _ = np.linalg.svd(root / scale[:, None])
        shares = values**2
        if not shares.any():
            raise InvalidInputError("covariance: expected a matrix that is not zero")
        # What adds to no output's variance more than rounding is zero.
        variances = (root**2).sum(axis=1)[:, None]
        kept = ((scale[:, None] * vectors) ** 2 * shares > 1e-14 * variances).any(axis=0)
        if not kept.all() and levels[0] == 0:
            raise InvalidInputError(
                "noise: expected variances larger than 0, because the covariance of the outputs is"
                " singular"
            )
        return cls(vectors, scale, shares, kept, 0.0 if levels[0] == 0 else 1.0)


def checked_targets(Y: Any, Z: Array, output_names: Sequence[str] | None) -> tuple[Array, Names]:
    """Return targets (m, P) of the rows Z, and the names of the outputs."""
    if not is_frame(Y) and numbers("Y", Y).ndim == 1:
        raise InvalidInputError(
            "Y: expected targets (m, P), got one dimension; ExactPosterior takes one output"
        )
    targets = as_matrix("Y", Y, like=Z)
    m, P = targets.shape
    if m != len(Z):
        raise InvalidInputError(f"Y: expected one row of targets per row of X ({len(Z)}), got {m}")
    default = column_names(Y) or tuple(f"y{i}" for i in range(P))
    names = check_names("output_names", default if output_names is None else output_names, P)
    return targets, names


def _levels(noise: Any, P: int) -> np.ndarray:
    """Return noise variances of P outputs: all larger than 0, or all 0."""
    levels = to_numpy(as_vector("noise", np.atleast_1d(to_numpy(numbers("noise", noise)))))
    if len(levels) not in (1, P):
        raise InvalidInputError(
            f"noise: expected one variance or one per output ({P}), got {len(levels)}"
        )
    levels = np.broadcast_to(levels, (P,))
    if (levels < 0).any() or ((levels == 0).any() and (levels > 0).any()):
        raise InvalidInputError(
            f"noise: expected variances larger than 0, or 0 for all outputs, got {levels.tolist()}"
        )
    return levels
