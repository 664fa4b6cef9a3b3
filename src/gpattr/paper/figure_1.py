"""Figure 1: the uncertainty of an attribution grows with the distance from the baseline.

y = sin(x₁) sin(ω x₂) + ½ε, 500 samples on [0, 10]²; attributions along β(t) = t(1, 1) from the
baseline 0. The paper's text says ω = 2, its published figure shows ω = 1.5: the figure uses the
latter, numbers are checked for both.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpattr.datasets import make_heteroscedastic, sine_product
from gpattr.estimators import GPRegressor
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.explanation import Explanation
from gpattr.paper.drawing import band, canvas, tidy
from gpattr.paper.experiment import Outcome, Setting
from gpattr.paper.models import noise_of, train
from gpattr.plots.style import BLUE, GREEN, GREY, ORANGE

TITLE = "Figure 1: uncertainty grows with the distance from the baseline"
PUBLISHED, TEXT = 1.5, 2.0
NAMES = ["$x_1$", "$x_2$"]


def run(setting: Setting) -> Outcome:
    """Train on the simulated data and explain points along the diagonal."""
    numbers, shown = {}, None
    for frequency in (TEXT, PUBLISHED):
        setting.progress(f"training on 500 samples, frequency {frequency:g}")
        model = simulated_model(frequency, restarts=0 if setting.reduced else 4)
        t = np.linspace(0.0, 10.0, 51 if setting.reduced else 401)
        setting.progress(f"explaining {len(t)} points along the diagonal")
        ex = Explainer(model, "zeros")(np.column_stack([t, t]))
        numbers |= {
            f"{name}, ω = {frequency:g}": value
            for name, value in measure(model, ex, t, frequency).items()
        }
        shown = draw(model, ex, t, frequency)
    assert shown is not None
    return Outcome(shown, numbers)


def simulated_model(frequency: float, *, restarts: int) -> GPRegressor:
    """Return the model of the paper's simulated data."""
    X, y = make_heteroscedastic(500, frequency=frequency, random_state=0)
    return train(pd.DataFrame(X, columns=NAMES), pd.Series(y), restarts=restarts)


def measure(
    model: GPRegressor, ex: Explanation, t: np.ndarray, frequency: float
) -> dict[str, float]:
    """Return the numbers behind the figure."""
    truth = sine_product(frequency).attributions(ex.data, np.zeros(2))
    lower, upper = ex.interval(0.95)
    assert ex.var is not None
    return {
        "noise variance": noise_of(model),
        "largest variance at t = 0": float(ex.var[0].max()),
        "largest |mean| at t = 0": float(np.abs(ex.values[0]).max()),
        "share of steps along which the variance grows, smaller of two": float(
            (np.diff(ex.var, axis=0) > 0).mean(axis=0).min()
        ),
        "variance at t = 10 over that at t = 1, smaller of two": float(
            (ex.var[-1] / ex.var[len(t) // 10]).min()
        ),
        "largest gap between F(b) + Σ attr and F": float(np.abs(ex.delta).max()),
        "share of true attributions inside 95 % intervals": float(
            ((lower <= truth) & (truth <= upper)).mean()
        ),
    }


def draw(model: GPRegressor, ex: Explanation, t: np.ndarray, frequency: float) -> Figure:
    """Draw the surface, the prediction along the diagonal, both attributions and variances."""
    figure = canvas(11.0, 5.0)
    axes = figure.subplot_mosaic("ABC;ADE", width_ratios=[1.5, 1.0, 1.0])
    draw_surface(axes["A"], model, t, frequency)
    mean, std = model.predict(ex.data, return_std=True)
    band(axes["B"], t, mean, std, GREY, "$F(\\beta(t))$, ±1 and ±2 sd")
    axes["B"].plot(
        t,
        ex.base_values + ex.values.sum(axis=1),
        color=ORANGE,
        ls="--",
        lw=1.6,
        label="$F(b)$ + sum of attributions",
    )
    axes["B"].set_ylim(-1.5, 2.4)  # leaves space for the legend
    axes["B"].legend(fontsize=8, loc="upper right")
    tidy(axes["B"], "prediction along the diagonal", "t", "prediction")
    draw_attributions(axes, ex, t, frequency)
    return figure


def draw_surface(axes: Axes, model: GPRegressor, t: np.ndarray, frequency: float) -> None:
    """Draw the predictions on a grid, and the diagonal."""
    side = np.linspace(0.0, 10.0, 101)
    surface = model.predict(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)).reshape(
        101, 101
    )
    image = axes.contourf(
        side, side, surface, levels=np.linspace(-1.2, 1.2, 25), cmap="RdBu_r", extend="both"
    )
    axes.plot(t, t, color="k", lw=1.4, ls="--", label=r"$\beta(t) = t\,(1, 1)$")
    axes.plot(0, 0, "ko", clip_on=False, label="baseline")
    axes.set_aspect("equal")
    axes.legend(fontsize=8, loc="upper left", framealpha=0.9)
    axes.figure.colorbar(
        image, ax=axes, ticks=[-1, -0.5, 0, 0.5, 1], shrink=0.62, label="mean prediction"
    )
    tidy(
        axes,
        rf"$y = \sin(x_1)\,\sin({frequency:g}\,x_2) + \varepsilon/2$, 500 samples",
        "$x_1$",
        "$x_2$",
    )


def draw_attributions(
    axes: dict[str, Axes], ex: Explanation, t: np.ndarray, frequency: float
) -> None:
    """Draw both attributions along the diagonal, and their variances."""
    assert ex.std is not None
    assert ex.var is not None
    truth = sine_product(frequency).attributions(ex.data, np.zeros(2))
    for i, (panel, color) in enumerate((("D", BLUE), ("E", GREEN))):
        band(axes[panel], t, ex.values[:, i], ex.std[:, i], color, "mean, ±1 and ±2 sd")
        axes[panel].plot(t, truth[:, i], color="k", ls=":", lw=1.2, label="truth")
        axes[panel].legend(fontsize=8)
        tidy(axes[panel], f"attribution of {NAMES[i]}", "t", "attribution")
        axes["C"].plot(t, ex.var[:, i], color=color, label=f"attribution of {NAMES[i]}")
    axes["C"].legend(fontsize=8)
    axes["C"].set_ylim(bottom=0.0)
    tidy(axes["C"], "variances of the attributions", "t", "variance")
