"""
Why is this flower in doubt?
============================

A classifier of three kinds of iris is sure of most flowers, and torn about a few. Probabilities are
attributed like any prediction, one explanation for each class and with intervals: here for the
flower whose two likeliest kinds are closest."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

import gpattr

data = load_iris(as_frame=True)
X = data.data.set_axis(["sepal length", "sepal width", "petal length", "petal width"], axis=1)
X = X[["petal length", "petal width", "sepal length"]]
kind = data.target_names[data.target]
order = np.random.default_rng(1).permutation(len(X))
train, new = order[:100], order[100:]
model = gpattr.GPClassifier().fit(X.iloc[train], kind[train])
print(f"correct for {model.score(X.iloc[new], kind[new]):.0%} of {len(new)} new flowers")

# %%
# The average flower is the baseline. Each kind has an explanation of its own.

chance = np.sort(model.predict_proba(X.iloc[new]), axis=1)
torn = new[np.argmin(chance[:, -1] - chance[:, -2])]
flower = X.iloc[[torn]]
ex = gpattr.Explainer(model, output="probability")(flower)
fig, (map_, *axes) = plt.subplots(
    1, 4, figsize=(11.0, 3.2), layout="constrained", width_ratios=[1.5, 1, 1, 1]
)
axes[1].sharex(axes[0])
axes[2].sharex(axes[0])
for name, color in zip(model.classes_, ("#009E73", "#E69F00", "#0072B2"), strict=True):
    rows = kind == name
    map_.scatter(X["petal length"][rows], X["petal width"][rows], s=14, color=color, label=name)
map_.plot(*flower.to_numpy()[0, :2], "*", ms=16, color="#D55E00", mec="black", label="in doubt")
map_.set(xlabel="petal length (cm)", ylabel="petal width (cm)")
map_.legend(frameon=False, fontsize=8)
places = np.arange(3)
for ax, name in zip(axes, model.classes_, strict=True):
    one = ex[name]
    lower, upper = (end[0] for end in one.interval(0.9))
    color = np.where(one.values[0] < 0, "#0072B2", "#D55E00")
    ax.barh(places, one.values[0], color=color, alpha=0.85)
    ax.hlines(places, lower, upper, color="0.2", lw=1.4)
    ax.axvline(0.0, color="0.6", lw=0.8)
    ax.set_title(f"P({name}) = {one.predictions[0]:.2f}", loc="left", fontsize=10)
    ax.set_yticks(places, X.columns if ax is axes[0] else [])
    ax.set_xlabel("attribution")
    ax.invert_yaxis()
for ax in (map_, *axes):
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Its long petals speak for *virginica* and against *versicolor*; the 90 % intervals say how far
# each reason could be otherwise. (Each kind is modelled against the rest, so the three
# probabilities need not add up to one.) The observed kind:

print(f"observed: {kind[torn]}")
