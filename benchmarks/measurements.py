"""Cost of choosing the next measurement, and of conditioning on it instead of fitting again."""

from __future__ import annotations

import numpy as np
from timing import best_time, row

from gpattr import Explainer
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior


def measurements(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    """Simulated data: 1000 candidates for the attributions of 10 features at 20 rows."""
    m, c, n, d = (200 if quick else 1000), (200 if quick else 1000), 20, 10
    rng = np.random.default_rng(0)
    Z, candidates, rows = (rng.normal(size=(k, d)) for k in (m, c, n))
    kernel, f = SquaredExponential(np.full(d, 2.0)), np.sin(Z[:, 0]) + Z[:, 1] * Z[:, 2]

    def fit() -> ExactPosterior:
        return ExactPosterior(kernel, Z, f, noise=0.01)

    posterior, fitted = fit(), best_time(fit)
    explainer = Explainer(posterior)
    attributions = best_time(lambda: explainer(rows))
    told = explainer.measure_next(candidates, rows)
    everything = best_time(lambda: explainer.measure_next(candidates, rows))
    one = best_time(lambda: explainer.measure_next(candidates, rows, 0))
    batch = best_time(lambda: told.best(5))
    update = best_time(lambda: posterior.condition_on(candidates[0], 0.0))
    lines = [
        row("all features", everything, "explaining the rows", attributions),
        row("one feature", one, "explaining the rows", attributions),
        row("the best 5 of them", batch, "fitting the posterior", fitted),
        row("condition_on", update, "fitting the posterior", fitted),
    ]
    title = f"Next measurement, {m} training points × {d} features, {c} candidates, {n} rows"
    return title, lines
