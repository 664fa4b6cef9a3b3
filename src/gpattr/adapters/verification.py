"""Trust before use: a posterior must predict what the foreign library predicts."""

from __future__ import annotations

import numpy as np

from gpattr._core.array import to_numpy
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import UnsupportedModelError

POINTS = 8
EXACT = 1e-6  # relative to the size of what is compared, on a well-conditioned model
LOOSEST = 0.02  # however badly conditioned
MARGIN = 100.0  # times accuracy and condition number: what rounding may explain


def verify(adapted: Adapted, name: str, points: np.ndarray | None = None) -> None:
    """Raise `UnsupportedModelError` unless means and variances agree: at training rows, between and
    beyond them, or at points.
    """
    points = comparison_points(adapted.points, adapted.mixable) if points is None else points
    with np.errstate(all="ignore"):  # which is of this thread alone; warning filters are not
        theirs = adapted.predict(points)
    mean, std = (to_numpy(part) for part in adapted.posterior.predict(points, return_std=True))
    tolerance = min(EXACT + MARGIN * adapted.accuracy * adapted.posterior.condition_number, LOOSEST)
    if theirs[0].size != mean.size or theirs[1].size != std.size:
        raise UnsupportedModelError(
            f"model: this {name} predicts arrays of the shape {theirs[0].shape}, where its parts"
            f" say {mean.shape}"
        )
    for what, part in zip(("mean", "variance"), theirs, strict=True):
        if not np.isfinite(part).all():
            raise UnsupportedModelError(
                f"model: the predictive {what} of this {name} is not finite at rows such as its own"
                " data"
            )
    spread = np.maximum(theirs[1].max(axis=0), 1e-300)
    size = np.maximum(np.abs(theirs[0]).max(axis=0), np.sqrt(np.abs(spread)))
    for what, ours, other, scale in (
        ("mean", mean, theirs[0], size),
        ("variance", std**2, theirs[1], spread),
    ):
        worst = float((np.abs(ours - np.reshape(other, ours.shape)) / scale).max())
        if not worst <= tolerance:
            raise UnsupportedModelError(
                f"model: the predictive {what} of this {name} differs from what its parts say, by"
                f" {worst:.1e} of its size where {tolerance:.0e} is allowed; something in it (a"
                " forward of its own, a cache, data that are not its own) is not understood"
            )


def comparison_points(rows: np.ndarray, mixable: bool) -> np.ndarray:
    """Return a few training rows and, where they can be mixed, points between and beyond them."""
    generator = np.random.default_rng(0)
    chosen = rows[generator.permutation(len(rows))[:POINTS]]
    if not mixable:
        return chosen
    other = rows[generator.permutation(len(rows))[: len(chosen)]]
    share = generator.uniform(-2.0, 3.0, size=(len(chosen), 1))
    # Off the span of the rows too, where a constant column would hide what is done with it.
    spread = rows.std(axis=0)
    spread = np.where(
        spread > 1e-9 * np.abs(rows).max(axis=0), spread, np.maximum(np.abs(rows).max(axis=0), 1.0)
    )
    aside = chosen + spread * generator.normal(size=chosen.shape)
    return np.concatenate([chosen, chosen + share * (other - chosen), aside])
