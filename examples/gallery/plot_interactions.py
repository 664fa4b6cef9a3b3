"""
Which features act together?
============================

Friedman's function has one interaction, between its first two inputs, and five inputs without any
effect. A table of pairs from 300 noisy runs finds the one, and the standard deviations say that the
others are noise."""

import numpy as np
from sklearn.datasets import make_friedman1

import gpattr

# %%
# f(x) = 10 sin(π x₁x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅, with five more inputs that do nothing.

X, y = make_friedman1(300, n_features=10, noise=0.5, random_state=0)
names = [f"x{i}" for i in range(1, 11)]
model = gpattr.GPRegressor().fit(X, y)
explainer = gpattr.Explainer(model, "mean", attribution="shapley", feature_names=names)

# %%
# Interactions split every Shapley value into what a feature does alone, on the diagonal, and half
# of what each pair does together. Here they are for one run in which the first two inputs are high.

row = np.array([[0.8, 0.8, 0.8, 0.7, 0.3, *([0.5] * 5)]])
pairs = explainer.interactions(row)
ax = pairs.plot.matrix(0, max_display=6)

# %%
# The same as a network: lines are interactions, and circles are main effects.

ax = pairs.plot.network(0, max_display=6)

# %%
# The true interaction is what the four corners of the first two inputs do not explain one by one:

low, high = explainer.baseline[:2], row[0, :2]
corners = {
    (i, j): 10 * np.sin(np.pi * (low, high)[i][0] * (low, high)[j][1])
    for i in (0, 1)
    for j in (0, 1)
}
true = (corners[1, 1] - corners[1, 0] - corners[0, 1] + corners[0, 0]) / 2
print(f"x1 × x2: true {true:+.2f}, found {pairs.values[0, 0, 1]:+.2f} ± {pairs.std[0, 0, 1]:.2f}")
sure = pairs.prob_positive()[0][np.triu_indices(10, 1)]
print(f"{int((np.maximum(sure, 1 - sure) > 0.975).sum())} of 45 pairs have a sign that is certain")
