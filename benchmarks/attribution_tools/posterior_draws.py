"""Attributions of functions drawn from the posterior: brute force, to check standard deviations."""

from __future__ import annotations

import numpy as np

from .plain_gp import PlainGP

N_STEPS, N_DRAWS = 32, 2000


def brute_force(gp: PlainGP, x: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Attributions of N_DRAWS functions drawn from the posterior, and their covariance on the same
    grid without drawing.

    f is drawn jointly at ± 1/100 of a length-scale in each feature about the middles of N_STEPS
    steps along the path; differences are its partial derivatives, their mean times x − b the
    attribution."""
    d = len(b)
    path = b + (np.arange(N_STEPS)[:, None] + 0.5) / N_STEPS * (x - b)
    steps = 0.01 * np.diag(gp.lengthscale)
    points = np.concatenate([path + sign * step for step in steps for sign in (1, -1)])
    attribute = np.zeros((d, len(points)))
    for i in range(d):
        part = slice(2 * i * N_STEPS, 2 * (i + 1) * N_STEPS)
        attribute[i, part] = (x - b)[i] / (2 * steps[i, i] * N_STEPS) * np.repeat([1, -1], N_STEPS)
    cov = gp.covariance(points)
    draws = np.random.default_rng(0).multivariate_normal(
        gp.predict(points), cov, size=N_DRAWS, method="eigh", check_valid="ignore"
    )
    return draws @ attribute.T, attribute @ cov @ attribute.T
