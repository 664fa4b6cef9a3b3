"""
Sobol indices as data come in
=============================

How much of the variation of a simulator comes from each of its inputs? With a Gaussian process the
indices have a posterior, which narrows with every run. The Ishigami function has known indices, so
the posterior can be compared with the truth, and its limits can be seen."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import qmc

import gpattr
from gpattr.kernels import Constant, Matern52, Select

# %%
# f(x) = sin x₁ + 7 sin² x₂ + 0.1 x₃⁴ sin x₁, with inputs that are uniform between −π and π. By
# itself x₃ explains nothing: it acts only together with x₁.


def ishigami(X):
    """Return the values of the function in the rows of X."""
    one, two, three = X.T
    return np.sin(one) + 7.0 * np.sin(two) ** 2 + 0.1 * three**4 * np.sin(one)


one, two = 0.5 * (1.0 + 0.1 * np.pi**4 / 5.0) ** 2, 49.0 / 8.0
both = 0.01 * np.pi**8 * (1.0 / 18.0 - 1.0 / 50.0)
first = np.array([one, two, 0.0]) / (one + two + both)
total = np.array([one + both, two, both]) / (one + two + both)

# %%
# The kernel is a product of 1 + kⱼ(xⱼ) over inputs: a sum of main effects and interactions, each
# with a weight that is learned. Products of this kind have indices in closed form. (Squared
# exponentials would serve too, but from 160 runs on such a smooth prior is nearly singular here,
# and the bound on rounding, ``indices.error``, becomes larger than the intervals.)

kernel = Constant(1.0) + Select(Matern52(1.5), [0])
for j in (1, 2):
    kernel = kernel * (Constant(1.0) + Select(Matern52(1.5), [j]))

sizes, found = [20, 40, 80, 160, 300], []
names = ["x₁", "x₂", "x₃"]
points = qmc.scale(qmc.Sobol(3, seed=1).random(512), [-np.pi] * 3, [np.pi] * 3)
for n in sizes:
    X = points[:n]
    model = gpattr.GPRegressor(kernel, n_restarts=2, random_state=0, hyperparameters="optimal").fit(
        X, ishigami(X)
    )
    inputs = gpattr.Uniform(-np.pi, np.pi)
    found.append(gpattr.sobol_indices(model, inputs, feature_names=names))
print(found[-1])

# %%
# Posterior means with 95 % intervals; grey lines are the true indices.

fig, axes = plt.subplots(2, 3, figsize=(9.0, 5.2), sharex=True, sharey=True, layout="constrained")
for line, (kind, truth) in enumerate((("first", first), ("total", total))):
    for j, ax in enumerate(axes[line]):
        values = np.array([getattr(part, kind)[j] for part in found])
        ends = np.array([[end[j] for end in getattr(part, f"{kind}_interval")()] for part in found])
        spread = np.maximum([values - ends[:, 0], ends[:, 1] - values], 0.0)
        ax.axhline(truth[j], color="0.6", lw=1.2, zorder=0, label="true index")
        style = {"fmt": "o", "color": "#0072B2", "capsize": 3, "markersize": 5}
        ax.errorbar(range(len(sizes)), values, spread, label="posterior, 95 %", **style)
        ax.set_xticks(range(len(sizes)), sizes)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_title(f"{names[j]}, {'first order' if kind == 'first' else 'total'}", loc="left")
axes[0, 0].set_ylim(-0.05, 1.0)
axes[0, 2].legend(frameon=False, loc="upper right")
fig.supxlabel("number of runs")
_ = fig.supylabel("share of the variance")

# %%
# What the intervals leave out
# ----------------------------
# With 20 runs the training has taken a long length-scale for x₂, as if it had no effect, and the
# interval is narrow around a wrong value; with 40 runs most intervals still miss. *Intervals take
# the hyperparameters as known*; that the length-scales may be wrong is not part of them. From 80
# runs on, all intervals but one contain the true index:

print("runs  unknown share  largest error  half-width  inside  numerical error")
for n, part in zip(sizes, found, strict=True):
    values, truth = np.stack([part.first, part.total]), np.stack([first, total])
    low, high = np.stack([part.first_interval(), part.total_interval()], axis=1)
    inside = int(((low <= truth) & (truth <= high)).sum())
    print(
        f"{n:4d}  {part.unknown_share:13.1e}  {np.abs(values - truth).max():13.1e}"
        f"  {0.5 * (high - low).max():10.1e}  {inside} of 6  {part.error.max():15.0e}"
    )

# %%
# The one is the first-order index of x₃, which is exactly 0. Every draw of the function varies a
# little with x₃, so its index is approached from above, and no interval contains it:

for n, part in zip(sizes, found, strict=True):
    low, high = (end[2] for end in part.first_interval())
    print(f"{n:4d} runs: first order of x₃ between {low:.1e} and {high:.1e}")

# %%
# With 20 and 40 runs the unknown share does not warn of the errors either, for the same reason.
# Before you trust an interval from few runs, fit again with another design or kernel, or average
# over hyperparameters with `gpattr.posteriors.MixturePosterior`. This is one design; others differ
# most where there are few runs.
