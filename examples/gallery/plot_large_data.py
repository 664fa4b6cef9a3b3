"""
Ten thousand rows with a sparse model
=====================================

An exact Gaussian process of ten thousand rows takes minutes and gigabytes; a sparse one summarises
them by inducing inputs, in seconds, and its attributions have the same closed form. Friedman's
function has known attributions for three of its inputs, which show how good they are."""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

import gpattr

X, y = make_friedman1(10_000, n_features=5, noise=1.0, random_state=0)
start = time.perf_counter()
model = gpattr.SparseGPRegressor(150, move=False, random_state=0).fit(X, y)
trained = time.perf_counter()
rows = np.random.default_rng(1).uniform(size=(2000, 5))
ex = gpattr.Explainer(model, baseline=[0.5] * 5)(rows, uncertainty="std")
done = time.perf_counter()
print(f"trained in {trained - start:.1f} s; {len(rows)} rows explained in {done - trained:.2f} s")

# %%
# f(x) = 10 sin(π x₁x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅: against a baseline of ½ the third attribution
# is 20 (x₃ − ½)², and the last two are 10 (x₄ − ½) and 5 (x₅ − ½).

known = {2: lambda x: 20 * (x - 0.5) ** 2, 3: lambda x: 10 * (x - 0.5), 4: lambda x: 5 * (x - 0.5)}
fig, axes = plt.subplots(2, 3, figsize=(9.5, 5.0), sharex=True, layout="constrained")
for (i, truth), (upper, lower) in zip(known.items(), axes.T, strict=True):
    x, values, std = rows[:, i], ex.values[:, i], ex.std[:, i]
    order = np.argsort(x)
    upper.plot(x, values, ".", ms=3, color="#0072B2", label="attribution")
    upper.plot(x[order], truth(x[order]), color="#D55E00", lw=1.2, label="truth")
    upper.set_title(f"x{i + 1}", loc="left")
    lower.vlines(x, -1.96 * std, 1.96 * std, color="#56B4E9", lw=0.5, alpha=0.5)
    lower.plot(x, values - truth(x), ".", ms=3, color="#0072B2")
    lower.set(xlabel=f"x{i + 1}", ylim=(-0.25, 0.25))
    for ax in (upper, lower):
        ax.spines[["top", "right"]].set_visible(False)
axes[0, 0].set_ylabel("attribution")
axes[1, 0].set_ylabel("error, and 95 % interval")
_ = axes[0, 0].legend(frameon=False)

# %%
# Errors are about a hundredth of the attributions. Those of one feature are not independent: they
# belong to one learned function, whose slope in x₄ is a little too large everywhere. Intervals are
# for each row, and not for all at once (``explainer.joint`` has the covariance between rows).
