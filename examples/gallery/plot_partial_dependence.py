"""
What does each measurement do?
==============================

Partial dependence shows how the predicted score of a red wine changes with one of its
measurements, averaged over wines. For a Gaussian process the curve has an exact credible band."""

import matplotlib.pyplot as plt
import numpy as np

import gpattr

# %%
# The model is trained on 400 wines; the curves are averages over these wines.

wines = gpattr.datasets.load_wine_quality("red")
labels = {name: f"{name} ({unit})" if unit else name for name, unit in wines.units.items()}
frame = wines.frame.drop_duplicates().rename(columns=labels)
score, alcohol = labels["quality"], labels["alcohol"]
train = frame.sample(400, random_state=0)
X, y = train.drop(columns=score), train[score]
model = gpattr.GPRegressor().fit(X, y)
explainer = gpattr.Explainer(model, target_name="score")

# %%
# One curve
# ---------
# Every wine is given each alcohol content in turn, and the predictions are averaged. Thin lines are
# draws from the posterior: each is a curve that the data allow. The grid goes a little beyond the
# data, where the line is dashed.

curve = explainer.dependence(alcohol, np.linspace(8.0, 15.5, 60))
fig, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
_ = curve.plot(draws=10, ax=ax)

# %%
# The values of a curve are correlated. A comparison of two of them takes that into account:

rise = curve.prob_increasing(10.0, 12.0)
print(f"P(score at 12 % alcohol > score at 10 %) = {rise:.4f}")
slope = explainer.dependence(alcohol, [9.0, 10.0, 11.0, 12.0, 13.0], derivative=True)
print(slope.to_frame().round(3).to_string(index=False))

# %%
# All features
# ------------
# Centred curves on a common scale, with the largest effects first.

_ = gpattr.plots.dependence_grid(explainer, max_display=9)

# %%
# Bands are narrow where the wines are, and wide where there are few: the dip of chlorides rests on
# a handful of wines. In the last row all bands contain zero nearly everywhere: the data do not show
# that these measurements matter on average. An average can hide curves that rise for some wines and
# fall for others. Those of single wines show how far they differ in alcohol:

few = explainer.dependence(alcohol, background=X[:40], kind="individual", uncertainty="std")
fig, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
_ = few.plot(ax=ax)

# %%
# A pair
# ------
# The surface of two features, beside its standard deviation. Where few wines are, the standard
# deviation is large: in the corners the model combines values that hardly occur together.

pair = explainer.dependence((alcohol, labels["sulphates"]), 25)
fig, ax = plt.subplots(figsize=(9.0, 4.2), layout="constrained")
_ = pair.plot(ax=ax)

# %%
# The curves describe the model: they do not say that adding alcohol makes a wine better. The bands
# take the learned length-scales as known.
