"""Cost of quadrature rules relative to the closed form, at equal accuracy."""

from __future__ import annotations

import numpy as np
from timing import best_time

from gpattr import Explainer
from gpattr.closed_forms.quadrature.fixed_rules import nodes_and_weights
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior

# What marginal likelihood finds for normalised features and zero mean (`gpattr paper --figure 6`).
LENGTHSCALE = [1e4, 16.3, 65.3, 243.0, 96.8, 33.4, 7.5, 50.3, 15.7, 4.3, 3.0]
DOUBLED = [2**k for k in range(13)]
STEPS = {"right": DOUBLED, "trapezoid": DOUBLED, "simpson": DOUBLED, "gauss_legendre": range(1, 25)}
LARGEST = 512  # steps for which the standard deviation is timed, too: it takes their square


def rules(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    if quick:
        X, y = X[:400], y[:400]
    posterior = ExactPosterior(
        SquaredExponential(lengthscale=LENGTHSCALE, variance=11.25), X, y, noise=0.375
    )
    average, chosen = X[y == 5].mean(axis=0), X[y > 6][:10]
    exact = Explainer(posterior, average)
    truth = exact(chosen, uncertainty="none").values
    closed = {
        what: best_time(lambda what=what: exact(chosen, uncertainty=what))
        for what in ("none", "std")
    }
    lines = []
    for accuracy in (1e-2, 1e-4, 1e-8):
        for rule, steps in STEPS.items():
            explainers = (Explainer(posterior, average, method=rule, n_steps=n) for n in steps)
            reached = (
                e
                for e in explainers
                if np.abs(e(chosen, uncertainty="none").values - truth).max()
                <= accuracy * np.abs(truth).max()
            )
            lines.append(
                {
                    "what": rule,
                    "accuracy": f"{accuracy:.0e}",
                    **timed(next(reached, None), chosen, closed),
                }
            )
    return (
        (
            f"Closed form = 1: {len(chosen)} red wines × 11 features, {len(X)} training points, by"
            " the accuracy of the means"
        ),
        lines,
    )


def timed(
    explainer: Explainer | None, rows: np.ndarray, closed: dict[str, float]
) -> dict[str, str]:
    """The rule's times over those of the closed form."""
    if explainer is None:
        return {"evaluations": f"more than {DOUBLED[-1]}", "means": "", "mean and sd": ""}
    assert explainer.n_steps is not None
    means = best_time(lambda: explainer(rows, uncertainty="none"), repeat=3) / closed["none"]
    small = explainer.n_steps <= LARGEST
    both = (
        best_time(lambda: explainer(rows, uncertainty="std"), repeat=1) / closed["std"]
        if small
        else None
    )
    evaluations = len(nodes_and_weights(explainer.method, explainer.n_steps)[0])
    return {
        "evaluations": str(evaluations),
        "means": f"{means:.2g}",
        "mean and sd": "not timed" if both is None else f"{both:.2g}",
    }
