"""Cost of explaining quantities: standard deviations, confidence bounds, improvements."""

from __future__ import annotations

import numpy as np
from timing import best_time, row

from gpattr import Explainer
from gpattr import quantities as q
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior


def quantities(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    """Simulated data, 200 points × 20 features: attributions of one candidate at a time."""
    m, d, n = 200, 20, (3 if quick else 20)
    rng = np.random.default_rng(0)
    Z, lines = rng.normal(size=(m, d)), []
    f = np.sin(Z[:, 0]) + Z[:, 1] * Z[:, 2]
    candidates = rng.normal(size=(n, d))
    for noise in (1e-1, 1e-8):
        posterior = ExactPosterior(SquaredExponential(3.0), Z, f, noise=noise)
        best = float(f.max())
        for quantity in (
            q.StandardDeviation(),
            q.UpperConfidenceBound(2.0),
            q.LogExpectedImprovement(best),
        ):
            explainer = Explainer(posterior, Z[int(f.argmax())], quantity=quantity)
            seconds = best_time(lambda e=explainer: [e(x) for x in candidates[:, None]], 2) / n
            function = Explainer(posterior, Z[int(f.argmax())])
            other = best_time(lambda e=function: [e(x) for x in candidates[:, None]], 2) / n
            name = f"{type(quantity).__name__}, noise {noise:.0e}, each candidate"
            lines.append(row(name, seconds, "attributions of the prediction with cov", other))
    return f"Quantities, {m} training points × {d} features, baseline a training row", lines
