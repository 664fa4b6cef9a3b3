"""The probability of a class whose log odds are normal."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, ndtr

# For functions analytic within π of the real line the trapezoid rule has error exp(−2π²/step).
STEP = 0.25


def expected_probability(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return E[σ(f)], (n,), for f ~ N(mean, std²) and the logistic function σ, to the last digits.

    As ∫ φ(z) σ(mean + std z) dz where f varies less than σ, and else as ∫ σ'(u) Φ((mean − u)/std)
    du: whichever factor is wider is the smooth one.
    """
    mean, std = (
        np.asarray(mean, dtype=np.float64)[:, None],
        np.asarray(std, dtype=np.float64)[:, None],
    )
    z = np.arange(-10.0, 10.0 + STEP, STEP)
    narrow = STEP * (
        np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) * expit(mean + np.minimum(std, 1.0) * z)
    ).sum(axis=1)
    u = np.arange(-40.0, 40.0 + STEP, STEP)
    wide = STEP * (expit(u) * expit(-u) * ndtr((mean - u) / np.maximum(std, 1.0))).sum(axis=1)
    return np.where(std[:, 0] < 1.0, narrow, wide)


def expected_slopes(mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return E[σ'(f)] and E[σ''(f)], (n,), for f ~ N(mean, std²).

    They are the derivatives of E[σ(f)] by the mean, by the same rules.
    """
    mean, std = (
        np.asarray(mean, dtype=np.float64)[:, None],
        np.asarray(std, dtype=np.float64)[:, None],
    )
    z = np.arange(-10.0, 10.0 + STEP, STEP)
    density, f = STEP * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi), mean + np.minimum(std, 1.0) * z
    slope = expit(f) * expit(-f)
    narrow = (density * slope).sum(axis=1), (density * slope * (expit(-f) - expit(f))).sum(axis=1)
    u, wide_std = np.arange(-40.0, 40.0 + STEP, STEP), np.maximum(std, 1.0)
    distance = (mean - u) / wide_std
    weight = (
        STEP * expit(u) * expit(-u) * np.exp(-0.5 * distance**2) / (np.sqrt(2.0 * np.pi) * wide_std)
    )
    wide = weight.sum(axis=1), -(weight * distance / wide_std).sum(axis=1)
    first, second = (np.where(std[:, 0] < 1.0, *both) for both in zip(narrow, wide, strict=True))
    return first, second
