"""
One prediction, four questions
==============================

Every attribution compares. A patient can be compared with the average patient, with the one who
fared best, with all patients at once, or with the same patient at thirty: four questions with four
answers about one prediction."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import gpattr

names = {"bmi": "body mass index", "bp": "blood pressure", "s5": "log triglycerides"}
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X[["age", *names]].rename(columns=names)
model = gpattr.GPRegressor().fit(X[:400], y[:400])
patient = X.iloc[[405]]

# %%
# A baseline is a row, or a set of rows over which attributions are averaged exactly.

young = patient.iloc[0].copy()
young["age"] = 30
questions = {
    "the average patient": "mean",
    "the patient who fared best": X.iloc[int(np.argmin(y[:400]))],
    "all 400 patients": gpattr.Baselines(X[:400]),
    "the same patient at 30": young,
}

fig, axes = plt.subplots(1, 4, figsize=(10.0, 3.2), sharex=True, sharey=True, layout="constrained")
for ax, (question, baseline) in zip(axes, questions.items(), strict=True):
    ex = gpattr.Explainer(model, baseline)(patient)
    lower, upper = (end[0] for end in ex.interval(0.95))
    places = np.arange(len(X.columns))
    color = np.where(ex.values[0] < 0, "#0072B2", "#D55E00")
    ax.barh(places, ex.values[0], color=color, alpha=0.85)
    ax.hlines(places, lower, upper, color="0.2", lw=1.4)
    ax.axvline(0.0, color="0.6", lw=0.8)
    ax.set_yticks(places, X.columns)
    ax.set_title(f"Compared with\n{question}", loc="left", fontsize=10)
    ax.set_xlabel(f"attribution ({ex.base_values[0]:.0f} → {ex.predictions[0]:.0f})")
    ax.spines[["top", "right"]].set_visible(False)
_ = axes[0].invert_yaxis()

# %%
# The prediction is the same in each panel, and the bars of a panel add up to the difference below
# it. Compared with the same patient at thirty only the age differs, so it alone is credited, with
# an interval that contains zero. The average over all patients as baselines differs from the
# average patient as one: the function is curved.
#
# Does a feature keep its sign whatever the comparison? Explain from each of 100 patients:

moved = gpattr.Explainer(model).baseline_sensitivity(patient)
print(moved.to_frame().round(2).to_string())

# %%
# Body mass index has the same sign for 98 of 100 patients, and the opposite one for those whose own
# index is higher still. A sign belongs to a comparison, never to a feature alone.
