"""Certainty of the sign of a Gaussian number, now and after a measurement that is still to come.

A ~ N(m, s²). A measurement will leave A ~ N(m', s₁²), where s₁² = s² − Δ² is known beforehand and
m' ~ N(m, Δ²) is not. The certainty of the sign is max(P(A > 0), P(A < 0)).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri, owens_t

from gpattr._core.array import Array

FAR = 40.0  # standard deviations, beyond which a normal tail is zero


def sign_certainty(mean: Array, std: Array) -> Array:
    """Return Φ(|m|/s); 1 where s is zero, but ½ where m is too."""
    return ndtr(_ratio(np.abs(mean), std, known=np.where(mean == 0, 0.0, FAR)))


def expected_sign_certainty(mean: Array, std: Array, moved: Array) -> Array:
    """Return the expected certainty of the sign, 1 − 2T(m/s, s₁/Δ) with Owen's function T.

    ``moved`` is Δ, at most s. Where it is zero nothing changes.
    """
    h = _ratio(np.abs(mean), std, known=np.where(mean == 0, 0.0, FAR))
    left = np.sqrt((std - moved) * (std + moved))
    return 1.0 - 2.0 * owens_t(np.minimum(h, FAR), _ratio(left, moved, known=np.inf))


def prob_settled(mean: Array, std: Array, moved: Array, level: float) -> Array:
    """Return the probability that the sign will be more certain than ``level``.

    It is P(|m'| > zs₁) with z = Φ⁻¹(level), as m' alone is uncertain; 0 or 1 where Δ is zero.
    """
    needed = max(float(ndtri(level)), 0.0) * np.sqrt((std - moved) * (std + moved))
    already = np.where(np.abs(mean) > needed, FAR, -FAR)
    above = ndtr(_ratio(mean - needed, moved, known=np.where(mean > 0, already, -FAR)))
    return above + ndtr(_ratio(-mean - needed, moved, known=np.where(mean < 0, already, -FAR)))


def _ratio(a: Array, b: Array, *, known: Array | float) -> Array:
    """Return a/b, and ``known`` where b is zero."""
    a, b, known = np.broadcast_arrays(a, b, known)
    with np.errstate(over="ignore"):
        return np.divide(a, b, out=np.array(known, dtype=np.float64), where=b > 0)
