"""Cost of counterfactuals, and of attributions at many baselines."""

from __future__ import annotations

import numpy as np
from timing import best_time, processor, row

from gpattr import Explainer
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior


def _model(m: int, d: int) -> ExactPosterior:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(m, d))
    f = np.sin(Z[:, 0]) + 0.3 * Z[:, 1] ** 2 + 0.5 * Z[:, 2]
    kernel = SquaredExponential(lengthscale=np.full(d, 2.5))
    return ExactPosterior(kernel, Z, f + 0.1 * rng.normal(size=m), noise=0.01)


def counterfactuals(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    """Simulated data: all features free, with all alternatives; processor time."""
    m, d = (300 if quick else 1000), 10
    posterior = _model(m, d)
    explainer, rows = Explainer(posterior), posterior.training_inputs[: 4 if quick else 10]
    explainer.counterfactual(rows[0], 1.0)
    lines = []
    other = best_time(lambda: explainer(rows[:1]), repeat=3)
    for name, target in (("near, most rows reach it", 1.5), ("far, at the edge", 3.0)):
        runs = [processor(lambda x=x, t=target: explainer.counterfactual(x, t)) for x in rows]
        found = f"{sum(result.found for _, result in runs)} of {len(rows)}"
        middle = float(np.median([seconds for seconds, _ in runs]))
        longest = f"{max(seconds for seconds, _ in runs):.3g} s"
        lines.append(
            row(f"target {name}", middle, "one explanation", other, longest=longest, found=found)
        )
    return f"Counterfactuals, {m} training points × {d} features, median of {len(rows)} rows", lines


def sensitivity(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    """Simulated data: every row from 100 baselines, next to one."""
    m, d, n = (300 if quick else 1000), 10, 100
    explainer = Explainer(_model(m, d))
    rows = np.random.default_rng(1).normal(size=(n, d))
    seconds = best_time(lambda: explainer.baseline_sensitivity(rows), repeat=1)
    other = best_time(lambda: explainer(rows, uncertainty="none"))
    lines = [row(f"{n} rows from 100 baselines", seconds, "from one baseline, means", other)]
    return f"Sensitivity to the baseline, {m} training points × {d} features", lines
