"""Section 2.1: Bayesian linear regression, where attributions are weights times distances.

attrᵢ ~ N(μ′ᵢ (xᵢ − bᵢ), Σ′ᵢᵢ (xᵢ − bᵢ)²) with the posterior N(μ′, Σ′) of the weights, here of
houses in New Taipei, normalised and with centred prices, prior N(0, σ_w² I). The same as Theorem 1
with a linear kernel.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from gpattr.datasets import load_taipei_housing
from gpattr.estimators import BayesianLinearRegressor
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.explanation import Explanation
from gpattr.kernels import Linear
from gpattr.paper.drawing import bars, canvas, tidy
from gpattr.paper.experiment import Outcome, Setting
from gpattr.paper.figure_3 import HOUSE
from gpattr.paper.models import normalised, std_of
from gpattr.plots.style import BLUE, GREEN, ORANGE
from gpattr.posteriors import ExactPosterior

TITLE = "Section 2.1: Bayesian linear regression"
LINEAR = "a GP with a linear kernel"
NOISE, PRIOR = 75.0, 25.0  # variances of the noise and of a weight, (10 000 TWD per ping)²


def run(setting: Setting) -> Outcome:
    """Explain all houses by a linear model, the paper's formula, and a GP with a linear kernel."""
    data = load_taipei_housing(data_home=setting.data_home)
    X, y = normalised(data.data), data.target - data.target.mean()
    setting.progress("Bayesian linear regression on 413 houses")
    rest, d = X.index != HOUSE, X.shape[1]
    model = BayesianLinearRegressor(
        prior_mean=np.zeros(d),
        prior_cov=PRIOR * np.eye(d),
        noise_variance=NOISE,
        fit_intercept=False,
    ).fit(X[rest], y[rest])
    ex = Explainer(model, "zeros")(X)
    process = ExactPosterior(Linear(variance=PRIOR), X[rest], y[rest], noise=NOISE)
    same = Explainer(process, "zeros")(X)
    return Outcome(draw(ex), measure(ex, same, X.loc[rest], y[rest], X))


def measure(
    ex: Explanation, same: Explanation, X: pd.DataFrame, y: pd.Series, explained: pd.DataFrame
) -> dict[str, float]:
    """Return the distances from the paper's formula and from the GP, and one house's numbers."""
    Z, x = X.to_numpy(), explained.to_numpy()
    cov = np.linalg.inv(np.eye(Z.shape[1]) / PRIOR + Z.T @ Z / NOISE)
    mean = cov @ (Z.T @ y.to_numpy()) / NOISE
    house, scale = HOUSE - 1, float(np.abs(ex.values).max())
    metro = list(ex.feature_names).index("distance to MRT")
    formula, process = (
        (mean * x, np.sqrt(np.diag(cov)) * np.abs(x)),
        (same.values, std_of(same)),
    )
    apart = {
        f"largest distance from {what}, {name}": float(np.abs(own - other).max()) / scale
        for what, others in (("the paper's formula", formula), (LINEAR, process))
        for name, own, other in zip(("mean", "sd"), (ex.values, std_of(ex)), others, strict=True)
    }
    return apart | {
        "house 262, distance to MRT: mean": float(ex.values[house, metro]),
        "house 262, distance to MRT: sd": float(std_of(ex)[house, metro]),
    }


def draw(ex: Explanation) -> Figure:
    """Draw the attributions of one house, and the uncertainty of all against the distance."""
    std, figure = std_of(ex), canvas(10.5, 3.8)
    one, all_houses = figure.subplots(1, 2)
    house = HOUSE - 1  # houses are numbered from 1
    bars(one, ex.values[house], std[house], list(ex.feature_names))
    tidy(one, f"house {HOUSE}: attributions ±1 sd", "attribution (10 000 TWD per ping)")
    for name, color in (("distance to MRT", ORANGE), ("latitude", BLUE), ("longitude", GREEN)):
        i = list(ex.feature_names).index(name)
        all_houses.plot(ex.data[:, i], std[:, i], "o", color=color, ms=3, alpha=0.6, label=name)
    all_houses.legend(fontsize=8)
    tidy(
        all_houses,
        "414 houses: uncertainty grows with |x − b|",
        "x − b (standard deviations of the feature)",
        "sd (10 000 TWD per ping)",
    )
    return figure
