"""
What would have to change?
==========================

A prediction is bad news; an attribution says why. The next question is what could be done. The
smallest change with which the predicted progression falls below a target is found with a given
probability, so that it holds for the functions that the data allow, not only for their mean."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

import gpattr

names = {"bmi": "body mass index", "bp": "blood pressure", "s5": "log triglycerides"}
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X[["age", *names]].rename(columns=names)
model = gpattr.GPRegressor().fit(X, y)
explainer = gpattr.Explainer(model, target_name="disease progression")
patient = X.iloc[[3]]

# %%
# Age cannot be changed; the others can, within the range of the data.

able = list(names.values())
found = explainer.counterfactual(patient, 140, direction="at_most", features=able)
print(found)

# %%
# How much further must one go to be more certain? The same question at five levels, for the
# nearest change of any of the three measurements:

levels = [0.5, 0.8, 0.9, 0.95, 0.99]
steps = [
    explainer.counterfactual(
        patient, 140, direction="at_most", features=able, level=level, prefer="nearest"
    )
    for level in levels
]
fig, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
left.plot(levels, [step.distance for step in steps], "o-", color="#0072B2")
left.set(xlabel="probability that the target is met", ylabel="change (standard units)", ylim=0)
left.set_title("Certainty costs distance", loc="left", fontsize=11)
unit = X.std()
for name, color in zip(able, ("#0072B2", "#E69F00", "#D55E00"), strict=True):
    moves = [
        (step.changes[name][1] - step.changes[name][0]) / unit[name] if name in step.changes else 0
        for step in steps
    ]
    right.plot(levels, moves, "o-", color=color, label=name)
right.axhline(0.0, color="0.6", lw=0.8, zorder=0)
right.set(xlabel="probability that the target is met", ylabel="change (standard units)")
right.set_title("What changes", loc="left", fontsize=11)
right.legend(frameon=False, fontsize=9)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)

# %%
# At one half the mean just touches the target, which is what a search on predictions alone returns:
# a coin toss. (A model explains what it learned from observed patients; that changing a measurement
# changes the illness is an assumption that it cannot test.)
