"""Figure 5: random-feature GPs and the exact GP: the attribution of alcohol for one wine.

Single models with M frequencies vary around the exact density and are overconfident; the mixture of
500 models approaches it as M grows. Baseline: the mean of all wines. All models
share the exact GP's hyperparameters; frequencies are plain independent draws. The code of the
published figure used standard deviations in place of variances; these are the variances.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import norm

from gpattr.estimators import RandomFeatureGPRegressor
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.explanation import Explanation
from gpattr.paper.drawing import canvas, tidy
from gpattr.paper.experiment import Outcome, Setting
from gpattr.paper.models import WINE, Wines, std_of, wines
from gpattr.plots.style import BLUE, GREY, ORANGE

TITLE = "Figure 5: random-feature GPs and the exact GP"
FREQUENCIES = (10, 50, 100)
QUALITY_8 = (267, 390, WINE)  # the wines of quality 8 with 12.8 to 13.2 % alcohol
DRAWN = 12  # single models in each panel


def run(setting: Setting) -> Outcome:
    """Explain one wine by the exact GP and by many random-feature GPs of each size."""
    data = wines(setting)
    exact = alcohol(data, data.model)
    numbers = {}
    for wine in QUALITY_8:
        mean, std = moments(alcohol(data, data.without(wine), wine))
        numbers |= {f"exact, wine {wine}: mean": mean, f"exact, wine {wine}: sd": std}
    models = 100 if setting.reduced else 500
    mixtures = {}
    for M in FREQUENCIES:
        setting.progress(f"{models} random-feature GPs with {M} frequencies")
        ensemble = RandomFeatureGPRegressor.from_exact(
            data.model, M, ensemble=models, sampling="plain", random_state=0
        )
        rest = data.X.index != WINE
        mixtures[M] = alcohol(data, ensemble.fit(data.X[rest], data.y[rest]))
        numbers |= {
            f"M = {M}: {what}": value for what, value in measure(mixtures[M], exact).items()
        }
    few, some, many = (
        numbers[f"M = {M}: total-variation distance of the mixture"] for M in FREQUENCIES
    )
    numbers |= {
        "distance of the mixture, M = 50 over M = 10": some / few,
        "distance of the mixture, M = 100 over M = 50": many / some,
    }
    return Outcome(draw(mixtures, exact), numbers)


def alcohol(data: Wines, model: object, wine: int = WINE) -> Explanation:
    """Return the attribution of alcohol for one wine against the mean of all wines."""
    return Explainer(model, "zeros")(data.X.loc[[wine]])[:, ["alcohol"]]


def moments(ex: Explanation) -> tuple[float, float]:
    """Return the mean and the standard deviation of the one attribution."""
    return float(ex.values[0, 0]), float(std_of(ex)[0, 0])


def measure(mixture: Explanation, exact: Explanation) -> dict[str, float]:
    """Return the distance of the mixture from the exact density, and errors of single models."""
    mean, std = moments(exact)
    grid = np.linspace(mean - 12 * std, mean + 12 * std, 4001)
    difference = density(mixture, grid) - norm.pdf(grid, mean, std)
    assert mixture.component_values is not None
    assert mixture.component_var is not None
    return {
        "total-variation distance of the mixture": float(
            0.5 * np.abs(difference).sum() * (grid[1] - grid[0])
        ),
        "mean of the mixture": float(mixture.values[0, 0]),
        "scatter of single models over the exact sd": float(mixture.component_values.std()) / std,
        "mean sd of single models over the exact sd": float(np.sqrt(mixture.component_var).mean())
        / std,
    }


def density(ex: Explanation, grid: np.ndarray) -> np.ndarray:
    """Return the density of a mixture on a grid."""
    return ex.mixture().density(grid[:, None, None])[:, 0, 0]


def draw(mixtures: dict[int, Explanation], exact: Explanation) -> Figure:
    """Draw the densities of the exact GP, the mixture and some models, a panel per size."""
    mean, std = moments(exact)
    grid = np.linspace(mean - 6 * std, mean + 6 * std, 601)
    figure = canvas(11.0, 3.6)
    panels = figure.subplots(1, len(mixtures), sharex=True, sharey=True)
    for axes, (M, ex) in zip(panels, mixtures.items(), strict=True):
        assert ex.component_values is not None
        assert ex.component_var is not None
        axes.fill_between(
            grid,
            density(ex, grid),
            color=ORANGE,
            alpha=0.35,
            lw=0,
            label=f"mixture of {len(ex.component_values)}",
        )
        single = norm.pdf(
            grid[:, None],
            ex.component_values[:DRAWN, 0, 0],
            np.sqrt(ex.component_var[:DRAWN, 0, 0]),
        )
        axes.plot(
            grid,
            single,
            color=BLUE,
            lw=0.7,
            alpha=0.6,
            label=["single models", *[None] * (DRAWN - 1)],
        )
        axes.plot(grid, norm.pdf(grid, mean, std), color="k", lw=2.0, label="exact GP")
        tidy(
            axes,
            f"M = {M} frequencies",
            "attribution of alcohol to quality",
            "density" if axes is panels[0] else "",
        )
    panels[0].set_ylim(0.0, 2.1 * norm.pdf(0.0, 0.0, std))
    panels[0].legend(fontsize=8, loc="upper left")
    panels[-1].annotate(
        f"exact: {mean:.2f} ± {std:.2f}",
        (0.03, 0.93),
        xycoords="axes fraction",
        fontsize=8,
        color=GREY,
    )
    return figure
