"""Cost of other kernels relative to the squared exponential, and of the additive kernel."""

from __future__ import annotations

from math import comb

import numpy as np
from timing import best_time, once, row

from gpattr.kernels import FullAdditive, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpattr.means import Constant
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import ExactPosterior


def kernels(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    if quick:
        X, y = X[:600], y[:600]
    op, rows, base = IntegratedGradients(X.mean(axis=0)), [], {}
    for kind in (SquaredExponential, Matern52, Matern32, RationalQuadratic):
        kernel = kind(lengthscale=3.0 * X.std(axis=0), variance=0.6)
        posterior = ExactPosterior(kernel, X, y, noise=0.3, mean=Constant(float(y.mean())))
        for what, uncertainty in (("mean", "none"), ("mean and covariance", "cov")):
            seconds = best_time(
                lambda p=posterior, u=uncertainty: p.apply(op, X, uncertainty=u), repeat=3
            )
            base.setdefault(what, seconds)
            if kind is not SquaredExponential:
                rows.append(
                    row(f"{kind.__name__}, {what}", seconds, "squared exponential", base[what])
                )
    return f"Kernels, red wine, {len(X)} rows × {X.shape[1]} features", rows


def additive(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    d, n, m = (10, 50, 200) if quick else (20, 100, 500)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(m, d))
    variances = [0.1 / comb(d, order) for order in range(1, d + 1)]
    kernel = FullAdditive([SquaredExponential(3.0)] * d, variances)
    posterior = ExactPosterior(kernel, Z, np.sin(Z[:, 0]) + Z[:, 1] * Z[:, 2], noise=0.1)
    op, rows = IntegratedGradients(np.zeros(d)), rng.normal(size=(n, d))
    lines = []
    for what, uncertainty in (("mean", "none"), ("mean and covariance", "cov")):
        seconds, _ = once(lambda u=uncertainty: posterior.apply(op, rows, uncertainty=u))
        lines.append(
            {"what": what, "time": f"{seconds:.3g} s", "rows a second": f"{n / seconds:.0f}"}
        )
    return f"FullAdditive, {d} features, all orders, {n} rows, {m} training points", lines
