"""
Trend and season of carbon dioxide
==================================

How much of the monthly CO₂ at Mauna Loa is trend and how much is season, and how certain is either?
The model is trained on fifteen years; four more show how well it extrapolates."""

import matplotlib.pyplot as plt
import pandas as pd
from statsmodels.datasets import co2

import gpattr
from gpattr.kernels import Linear, Periodic, Select, SquaredExponential

months = co2.load_pandas().data["co2"]["1983":"2001"].resample("MS").mean()
time = (months.index.year + (months.index.month - 0.5) / 12).to_numpy()
X, y = pd.DataFrame({"year": time - 1983, "season": time % 1}), months.to_numpy()
past = time < 1998

# %%
# The kernel is a sum: a line and slow variations in "year", and a function of "season" with a fixed
# period of one year.

kernel = (
    Select(Linear(2.0), [0])
    + Select(SquaredExponential(1.0, 1.0), [0])
    + Select(Periodic(period=1.0, variance=10.0), [1])
)
model = gpattr.GPRegressor(
    kernel, bounds={"2__kernel__period": "fixed"}, hyperparameters="optimal"
).fit(X[past], y[past])

# %%
# In a sum the attribution of a feature is the change of its own terms. With six months of 1983 as
# baselines, that of the season is the deviation from the annual mean, and that of the year is the
# rise since 1983.

ex = gpattr.Explainer(model, gpattr.Baselines(X[:12:2]))(X)
lower, upper = ex.interval(0.95)

fig, axes = plt.subplots(
    3, figsize=(7.5, 6.0), sharex=True, layout="constrained", height_ratios=[5, 3, 3]
)
axes[0].plot(
    time,
    y - ex.base_values - ex.values[:, 1],
    ".",
    ms=3,
    color="0.4",
    label="observed, minus the season",
)
for i, (name, color) in enumerate({"trend": "#D55E00", "season": "#0072B2"}.items()):
    axes[i].fill_between(time, lower[:, i], upper[:, i], color=color, alpha=0.3, lw=0)
    axes[i].plot(time, ex.values[:, i], color=color, lw=1, label=name)
    axes[2].plot(time, (upper - lower)[:, i] / 2, color=color, label=name)
titles = (
    "Rise since 1983 (ppm), with a 95 % band",
    "Season (ppm), with a 95 % band",
    "Half the width of the bands (ppm)",
)
for ax, title in zip(axes, titles, strict=True):
    ax.set_title(title, loc="left", fontsize=11)
    ax.axvspan(1998, 2002, color="0.93", lw=0, zorder=0, label="not seen by the model")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, loc="upper left")
axes[2].legend(frameon=False, loc="upper left")
_ = axes[2].set(xlim=(1983, 2002), xticks=range(1984, 2003, 2))

# %%
# In the grey years, which the model has not seen, the trend soon becomes uncertain. The season does
# not: the kernel assumes that it is the same in all years.

mean, std = model.predict(X[~past], return_std=True)
inside = abs(y[~past] - mean) < 1.96 * (std**2 + model.noise_variance_) ** 0.5
print(f"{inside.sum()} of {len(inside)} unseen months within their 95 % interval")

# %%
# Fewer than 95 %: after the El Niño of 1997 CO₂ rose faster than the model expected. The bands
# follow from the data and the kernel; they do not include the possibility that the kernel is wrong.
