"""
Shapley values that know how certain they are
=============================================

Shapley values divide a prediction among the features, compared with a background set. For a
Gaussian process they are exact, and so is their uncertainty."""

import matplotlib.pyplot as plt
import numpy as np

import gpattr

# %%
# 400 red wines train the model; 50 of them are the background that the values are compared with.

wines = gpattr.datasets.load_wine_quality("red")
frame = wines.frame.drop_duplicates().rename(index="Wine {}".format)
train = frame.sample(400, random_state=0)
unseen = frame.drop(train.index)
X, y = train.drop(columns="quality"), train["quality"]
model = gpattr.GPRegressor().fit(X, y)
best = unseen[unseen["quality"] == 8].drop(columns="quality")
best = best.iloc[[model.predict(best).argmax()]]

background = gpattr.Baselines(X[:50])
explainer = gpattr.Explainer(model, background, attribution="shapley", target_name="score")
shapley = explainer(best)
fig, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
_ = shapley.plot.waterfall(max_display=9, ax=ax)

# %%
# Integrated gradients ask the model along straight lines from the background wines to this one;
# Shapley values ask it at mixtures of their measurements, such as the alcohol of one and the
# density of another. Where both agree within their intervals, the choice does not matter.

gradients = gpattr.Explainer(model, background)(best)
order = np.argsort(np.abs(shapley.values[0]))
fig, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
for ex, name, shift in ((gradients, "integrated gradients", 0.15), (shapley, "Shapley", -0.15)):
    low, high = ex.interval(0.95)
    error = np.stack([ex.values[0] - low[0], high[0] - ex.values[0]])[:, order]
    place = np.arange(len(order)) + shift
    ax.errorbar(ex.values[0, order], place, xerr=error, fmt="o", capsize=3, label=name)
ax.axvline(0.0, color="0.6", linewidth=1, zorder=0)
ax.set_yticks(np.arange(len(order)), np.array(shapley.feature_names)[order])
ax.set_xlabel("points of the predicted score, with 95 % intervals")
_ = ax.legend(loc="lower right", frameon=False)

# %%
# What do features do together? The matrix divides each Shapley value into a main effect and halves
# of interactions. 400 wines tell much about main effects, but not the sign of a single interaction.
# A matrix without uncertainty would hide that.

pairs = gpattr.Explainer(model, "mean", attribution="shapley").interactions(best)
certain = np.maximum(pairs.prob_positive(), 1 - pairs.prob_positive())[0]
off = np.triu_indices(len(pairs.feature_names), 1)
print(f"{(certain[off] > 0.95).sum()} of {len(off[0])} interactions have a certain sign")
fig, ax = plt.subplots(figsize=(8.5, 7.0), layout="constrained")
_ = pairs.plot.matrix(ax=ax)

# %%
# The players of a Shapley value can be groups: acids join together, and so does sulfur.

players = {
    "acids": ["fixed acidity", "volatile acidity", "citric acid", "pH"],
    "sulfur": ["free sulfur dioxide", "total sulfur dioxide", "sulphates"],
}
grouped = gpattr.Explainer(model, background, attribution="shapley", players=players)(best)
print(grouped)
