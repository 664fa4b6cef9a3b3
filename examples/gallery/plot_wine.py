"""
Why is this wine good?
======================

A red wine that the model has not seen got 8 of 10 points from the experts. Which measurements make
the model predict a higher score than for the average wine, and how certain is each attribution?"""

import matplotlib.pyplot as plt

import gpattr

# %%
# The file repeats some wines; each is kept once. 400 of them are used for training, the others are
# unseen.

wines = gpattr.datasets.load_wine_quality("red")
labels = {name: f"{name} ({unit})" if unit else name for name, unit in wines.units.items()}
frame = wines.frame.drop_duplicates().rename(columns=labels, index="Wine {}".format)
score = labels["quality"]
train = frame.sample(400, random_state=0)
unseen = frame.drop(train.index)
model = gpattr.GPRegressor().fit(train.drop(columns=score), train[score])
r2 = model.score(unseen.drop(columns=score), unseen[score])
print(
    f"R² on {len(unseen)} unseen wines: {r2:.2f}; single scores vary by ±"
    f" {model.noise_variance_**0.5:.1f} points"
)

# %%
# Of the unseen wines with 8 points, we take the one with the highest prediction. The baseline is
# the mean of the 400 training wines.

best = unseen[unseen[score] == 8].drop(columns=score)
best = best.iloc[[model.predict(best).argmax()]]
ex = gpattr.Explainer(model, baseline="mean")(best)

fig, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
ex.plot.waterfall(max_display=9, ax=ax)
ax.set_xlabel("predicted score (points), with the 95 % interval of each step")
title = (
    f"{best.index[0]}: {ex.predictions[0]:.2f} points predicted, average wine"
    f" {ex.base_values[0]:.2f}"
)
_ = ax.set_title(title, loc="left", fontsize=11, pad=18)

# %%
# Read the plot from the bottom. Only two intervals do not contain zero: those of a low total sulfur
# dioxide and of a high alcohol content. Sulphates probably help. For the others, the data do not
# tell whether they help or harm *this* wine.
#
# Free sulfur dioxide is part of the total, and the two have opposite effects. Together they give:

both = ex.group({"both": [labels["free sulfur dioxide"], labels["total sulfur dioxide"]]})[
    :, "both"
]
print(
    f"sulfur dioxide: {both.values[0, 0]:+.2f} ± {both.std[0, 0]:.2f} points, P(> 0) ="
    f" {both.prob_positive()[0, 0]:.2f}"
)

# %%
# The intervals refer to the mean score of such wines; single scores vary far more, and this wine
# got more than predicted. They assume the learned length-scales, so a measurement with a small bar
# may merely be correlated with another one. And no attribution says that adding alcohol makes a
# wine better.
