"""
Why this experiment next?
=========================

An optimiser suggests how to fire the next ceramic (simulated here). Before spending a day at the
furnace, one would like to know why. With the best firing so far as the baseline, attributions show
the expected effect of each change, and how uncertain it is."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gpattr

names = ["temperature (°C)", "time (h)", "pressure (MPa)", "additive (wt%)"]
low, high = np.array([1200.0, 0.5, 10.0, 0.0]), np.array([1600.0, 8.0, 60.0, 4.0])
rng = np.random.default_rng(0)


def fire(X):
    """Return strengths in MPa, measured to ± 8."""
    temperature, time, pressure, additive = X.to_numpy().T
    dense = 220 * np.exp(-(((temperature - 1450) / 100) ** 2)) * (1 - np.exp(-time / 2))
    return (
        200
        + dense
        + 90 * (1 - np.exp(-pressure / 25))
        + 80 * additive * np.exp(1 - additive)
        + rng.normal(0, 8, len(X))
    )


# %%
# After ten firings close to the current recipe, there are ten suggestions: each is the one of 3000
# random recipes with the largest upper confidence bound. Length-scales are at most twice the range
# of a setting, so that a handful of firings cannot make a setting appear irrelevant.

X = pd.DataFrame(rng.uniform(low, (low + high) / 2, size=(10, 4)), columns=names)
y, reasons = fire(X), []
for step in range(1, 11):
    model = gpattr.GPRegressor(
        noise_variance=64.0, bounds={"lengthscale": (0.1 * (high - low), 2 * (high - low))}
    ).fit(X, y)
    recipes = pd.DataFrame(rng.uniform(low, high, size=(3000, 4)), columns=names)
    mean, std = model.predict(recipes, return_std=True)
    new = recipes.iloc[[np.argmax(mean + 2 * std)]].set_axis([f"Suggestion {step}"])
    ex = gpattr.Explainer(model)(new, baselines=X.iloc[[np.argmax(y)]])
    X, y, reasons = pd.concat([X, new]), np.append(y, fire(new)), [*reasons, ex]
    gain = f"{ex.values.sum():+4.0f} ± {ex.cov.sum() ** 0.5:2.0f}"
    print(
        f"{ex.row_names[0]:13}: expected {gain} MPa compared with the best so far,"
        f" {y[:-1].max():.0f}; measured {y[-1]:.0f}"
    )

# %%
# The first and the ninth suggestion, each compared with the best firing before it:

fig, axes = plt.subplots(2, figsize=(7.5, 5.0), layout="constrained")
for ex, ax in zip((reasons[0], reasons[8]), axes, strict=True):
    print(ex)
    ex.plot.waterfall(ax=ax)
    title = (
        f"{ex.row_names[0]}: {ex.predictions[0]:.0f} MPa expected, {ex.base_values[0]:.0f} at the"
        " best so far"
    )
    ax.set_title(title, loc="left", fontsize=11, pad=18)
    ax.set_xlabel("")
_ = axes[1].set_xlabel("expected strength (MPa), with the 95 % interval of each step")

# %%
# The first suggestion explores. The expected gain is close to zero and all signs are uncertain; but
# the temperature may add 70 MPa, or cost as much. The ninth mostly exploits what was learned in the
# meantime: a little less additive, with about 90 % probability of a gain, and intervals several
# times narrower. Means alone would not explain the first. (With so few firings the length-scales
# are uncertain too, which the intervals do not include.)
