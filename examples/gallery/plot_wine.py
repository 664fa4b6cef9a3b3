"""
Why is this wine good?
======================

A red wine that the model never saw got 8 points of 10 from the experts. What in its chemistry makes
the model expect more of it than of the average wine, and how sure is it of each reason?"""

import matplotlib.pyplot as plt

import gpattr

# %%
# The file repeats some wines; each is kept once. 400 of them train the model, the others are new to
# it.

wines = gpattr.datasets.load_wine_quality("red")
labels = {name: f"{name} ({unit})" if unit else name for name, unit in wines.units.items()}
frame = wines.frame.drop_duplicates().rename(columns=labels, index="Wine {}".format)
score = labels["quality"]
train = frame.sample(400, random_state=0)
unseen = frame.drop(train.index)
model = gpattr.GPRegressor().fit(train.drop(columns=score), train[score])
r2 = model.score(unseen.drop(columns=score), unseen[score])
print(
    f"R² on {len(unseen)} unseen wines: {r2:.2f}; single scores scatter by ±"
    f" {model.noise_variance_**0.5:.1f} points"
)

# %%
# Of the unseen wines with 8 points, take the one of which the model expects most. The baseline is
# the mean of the 400.

best = unseen[unseen[score] == 8].drop(columns=score)
best = best.iloc[[model.predict(best).argmax()]]
ex = gpattr.Explainer(model, baseline="mean")(best)

fig, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
ex.plot.waterfall(max_display=9, ax=ax)
ax.set_xlabel("expected score (points), with the 95 % interval of each step")
title = (
    f"{best.index[0]}: {ex.predictions[0]:.2f} points expected, average wine"
    f" {ex.base_values[0]:.2f}"
)
_ = ax.set_title(title, loc="left", fontsize=11)

# %%
# Read it from below. Only two reasons have an interval without zero: little sulfur dioxide in
# total, and more alcohol than usual. Sulphates probably help. Of the others the data do not say
# whether they help or harm *this* wine.
#
# Free sulfur dioxide is part of the total, and the two pull against each other. As one reason they
# are:

both = ex.group({"both": [labels["free sulfur dioxide"], labels["total sulfur dioxide"]]})[
    :, "both"
]
print(
    f"sulfur dioxide: {both.values[0, 0]:+.2f} ± {both.std[0, 0]:.2f} points, P(> 0) ="
    f" {both.prob_positive()[0, 0]:.2f}"
)

# %%
# The intervals are about the mean score of such wines; single scores scatter far more, and the wine
# got more than was expected. They hold for the length-scales that were learned, so a measurement
# with a small bar may only stand behind a correlated one. And no attribution says that a wine gets
# better by adding alcohol.
