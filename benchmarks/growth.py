"""Growth of the cost with rows, training points and features: doubling each in turn."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from timing import best_time

from gpattr.kernels import SquaredExponential
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import ExactPosterior


def growth(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    base = (
        {"rows": 200, "points": 400, "features": 8}
        if quick
        else {"rows": 500, "points": 1000, "features": 10}
    )
    table = []
    for what in base:
        for uncertainty in ("none", "cov"):
            times = [
                _time(uncertainty, **{**base, what: base[what] * factor}) for factor in (1, 2, 4)
            ]
            ratios = [f"{later / earlier:.1f}" for earlier, later in pairwise(times)]
            table.append(
                {
                    "what": (
                        f"{'mean' if uncertainty == 'none' else 'mean and covariance'}, {what}"
                        f" {base[what]} → × 2 → × 4"
                    ),
                    "time": f"{times[0]:.3g} s",
                    "first doubling": ratios[0],
                    "second doubling": ratios[1],
                }
            )
    return "Growth of the cost with rows, training points and features", table


def _time(uncertainty: str, *, rows: int, points: int, features: int) -> float:
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(points, features)), rng.normal(size=(rows, features))
    posterior = ExactPosterior(
        SquaredExponential(lengthscale=2.0 * features**0.5), Z, Z[:, 0], noise=0.1
    )
    op = IntegratedGradients(np.zeros(features))
    return best_time(lambda: posterior.apply(op, X, uncertainty=uncertainty), repeat=3)
