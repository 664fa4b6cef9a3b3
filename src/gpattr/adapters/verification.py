"""The check that a posterior's predictions agree with the foreign library's."""

from __future__ import annotations

import numpy as np

from gpattr._core.array import to_numpy
from gpattr.adapters.differentiated import Differentiated
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import UnsupportedModelError
from gpattr.posteriors import Posterior

POINTS = 8
EXACT = 1e-6  # relative to the compared values, on a well-conditioned model
LOOSEST = 0.02  # for any condition number
MARGIN = 100.0  # times accuracy and condition number: a bound on rounding errors


def verify(adapted: Adapted, name: str, points: np.ndarray | None = None) -> None:
    """Raise `UnsupportedModelError` unless means and variances agree with the library's.

    They are compared at ``points``, or at training rows, between and beyond them; where the
    library does not predict beyond them, as for fidelities above 1, between them. So are
    covariances, of models that give them.
    """
    points, theirs = _compared(adapted) if points is None else (points, _predicted(adapted, points))
    mean, std = (to_numpy(part) for part in adapted.posterior.predict(points, return_std=True))
    tolerance = min(EXACT + MARGIN * adapted.accuracy * adapted.posterior.condition_number, LOOSEST)
    if theirs[0].size != mean.size or theirs[1].size != std.size:
        raise UnsupportedModelError(
            f"model: this {name} predicts arrays of shape {theirs[0].shape}, the posterior rebuilt"
            f" from its parts {mean.shape}"
        )
    for what, part in zip(("mean", "variance"), theirs, strict=True):
        if not np.isfinite(part).all():
            raise UnsupportedModelError(
                f"model: the predictive {what} of this {name} is not finite at rows such as its own"
                " data"
            )
    variance = np.maximum(theirs[1].max(axis=0), 1e-300)
    size = np.maximum(np.abs(theirs[0]).max(axis=0), np.sqrt(np.abs(variance)))
    for what, ours, other, scale in (
        ("mean", mean, theirs[0], size),
        ("variance", std**2, theirs[1], variance),
    ):
        worst = float((np.abs(ours - np.reshape(other, ours.shape)) / scale).max())
        if not worst <= tolerance:
            raise _different(what, name, worst, tolerance)
    if adapted.joint is not None:
        ours = to_numpy(adapted.posterior.predict(points, return_cov=True)[1])
        worst = float(np.abs(ours - adapted.joint(points)).max() / variance.max())
        if not worst <= tolerance:
            raise _different("covariance", name, worst, tolerance)


def _compared(adapted: Adapted) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return points and the library's predictions there, between training rows if need be."""
    mixable = adapted.mixable and not _of_vertices(adapted.posterior)
    points = comparison_points(adapted.points, mixable)
    try:
        theirs = _predicted(adapted, points)
        # A variance is negative where a kernel is not one, as of fidelities below zero.
        if not mixable or (
            np.isfinite(theirs[0]).all() and theirs[1].min() >= -LOOSEST * theirs[1].max()
        ):
            return points, theirs
    except Exception:  # whatever the library raises where its kernel is not defined
        if not mixable:
            raise
    points = comparison_points(adapted.points, mixable, beyond=False)
    return points, _predicted(adapted, points)


def _of_vertices(posterior: Posterior) -> bool:
    """Return whether a kernel is the library's at one-hot rows only."""
    kernels = (getattr(output, "kernel", None) for output in posterior.outputs.values())
    leaves = (leaf for kernel in kernels if kernel is not None for leaf in kernel.leaves())
    return any(isinstance(leaf, Differentiated) and leaf.vertices for leaf in leaves)


def _predicted(adapted: Adapted, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(all="ignore"):  # local to this thread, unlike warning filters
        return adapted.predict(points)


def _different(what: str, name: str, worst: float, tolerance: float) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"model: the predictive {what} of this {name} differs from that of the posterior"
        f" rebuilt from its parts by {worst:.1e} of its size; {tolerance:.0e} is allowed."
        " Possible causes: a custom forward, a stale cache, or other data"
    )


def comparison_points(rows: np.ndarray, mixable: bool, beyond: bool = True) -> np.ndarray:
    """Return a few training rows and, where they can be mixed, points between and beyond them."""
    generator = np.random.default_rng(0)
    chosen = rows[generator.permutation(len(rows))[:POINTS]]
    if not mixable:
        return chosen
    other = rows[generator.permutation(len(rows))[: len(chosen)]]
    share = generator.uniform(-2.0 * beyond, 1.0 + 2.0 * beyond, size=(len(chosen), 1))
    if not beyond:
        return np.concatenate([chosen, chosen + share * (other - chosen)])
    # Also off the span of the rows: a constant column would hide how it is transformed.
    std = rows.std(axis=0)
    std = np.where(
        std > 1e-9 * np.abs(rows).max(axis=0), std, np.maximum(np.abs(rows).max(axis=0), 1.0)
    )
    aside = chosen + std * generator.normal(size=chosen.shape)
    return np.concatenate([chosen, chosen + share * (other - chosen), aside])
