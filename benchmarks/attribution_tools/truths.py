"""The true attributions, from the GP in plain NumPy."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
from games import coalitions, mixtures

from .plain_gp import PlainGP
from .tool import IG, OTHER_GAME, SHAPLEY

N_NODES = 200


def every_truth(gp: PlainGP, X: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """The true attributions, (n, d), of each quantity that a tool computes."""
    return {
        IG: true_integrated_gradients(gp, X, b),
        SHAPLEY: true_shapley(gp, X, b),
        OTHER_GAME: true_product_kernel_shapley(gp, X),
    }


def true_integrated_gradients(gp: PlainGP, X: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(x − b) ∫₀¹ ∇F(b + t(x − b)) dt by Gauss–Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    t = (nodes[:, None] + 1) / 2
    return np.array([(x - b) * (weights / 2 @ gp.gradient(b + t * (x - b))) for x in X])


def in_30_digits(gp: PlainGP, x: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same integral for one row, by mpmath: adaptive quadrature with 30 digits, kernel and
    gradient included.
    """
    with mpmath.workdps(30):
        scales, start, end, alpha = (
            [mpmath.mpf(float(v)) for v in vector] for vector in (gp.lengthscale, b, x, gp.alpha)
        )
        Z = [[mpmath.mpf(float(v)) for v in z] for z in gp.Z]
        seen: dict[Any, list[Any]] = {}

        def gradient(t: Any) -> list[Any]:
            if t not in seen:
                point = [u + t * (v - u) for u, v in zip(start, end, strict=True)]
                total = [mpmath.mpf(0)] * len(point)
                for z, a in zip(Z, alpha, strict=True):
                    steps = [(u - p) / s for u, p, s in zip(z, point, scales, strict=True)]
                    weight = a * gp.variance * mpmath.exp(-sum(u * u for u in steps) / 2)
                    total = [
                        c + weight * u / s for c, u, s in zip(total, steps, scales, strict=True)
                    ]
                seen[t] = total
            return seen[t]

        integrals = [
            mpmath.quad(lambda t, i=i: gradient(t)[i], [0, 1], method="gauss-legendre")
            for i in range(len(x))
        ]
        return np.array(
            [float((v - u) * value) for u, v, value in zip(start, end, integrals, strict=True)]
        )


def true_shapley(gp: PlainGP, X: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Shapley values of the predictions at all 2ᵈ mixtures of row and baseline."""
    sets, shapley = coalitions(len(b))
    return np.array([shapley @ (gp.predict(mixtures(x, b, sets)) - gp.predict(b[None])) for x in X])


def true_product_kernel_shapley(gp: PlainGP, X: np.ndarray) -> np.ndarray:
    """Shapley values of the game of shapiq's ProductKernelExplainer: features outside a set leave
    the kernel, as factors 1.
    """
    sets, shapley = coalitions(X.shape[1])
    squares = [((gp.Z - x) / gp.lengthscale) ** 2 for x in X]
    return np.array(
        [shapley @ (gp.variance * np.exp(sets @ square.T / -2) @ gp.alpha) for square in squares]
    )
