"""
Which measurements matter, and how certain is their order?
==========================================================

Ten measurements of diabetes patients, and their disease progression after one year. If only a few
can be taken, which ones? Importances have an order; here it comes with the probability of every
rank."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import gpattr

lipids = {
    "s1": "total cholesterol",
    "s2": "LDL",
    "s3": "HDL",
    "s4": "cholesterol ratio",
    "s5": "log triglycerides",
}
names = lipids | {"bmi": "body mass index", "bp": "blood pressure", "s6": "blood sugar"}
patients = load_diabetes(as_frame=True, scaled=False)
X, y = patients.data.rename(columns=names), patients.target
train = X.sample(350, random_state=0).index
new = X.index.difference(train)
model = gpattr.GPRegressor().fit(X.loc[train], y[train])
print(f"R² on {len(new)} new patients: {model.score(X.loc[new], y[new]):.2f}")

# %%
# Importance is the mean absolute attribution of a measurement over the new patients, with the
# average patient as baseline. Its draws take into account that all patients share one unknown
# function. Each draw has an order, which gives the probability of every rank.

importance = gpattr.Explainer(model).importance(X.loc[new])
order = np.argsort(-importance.values)[:7]
ranks = np.argsort(np.argsort(-importance.samples, axis=1), axis=1)
chance = np.array([(ranks[:, order] == rank).mean(axis=0) for rank in range(7)]).T

fig, (left, right) = plt.subplots(
    1, 2, figsize=(8.0, 4.3), layout="constrained", width_ratios=[3, 2]
)
gpattr.plots.bar(importance, max_display=7, ax=left)
left.set_xlabel("mean |attribution| to the progression score\nwith 95 % intervals")
right.imshow(chance, cmap="Blues", vmin=0, vmax=1, aspect="auto")
for (i, j), share in np.ndenumerate(chance):
    if share >= 0.005:
        right.text(
            j,
            i,
            f"{100 * share:.0f}",
            ha="center",
            va="center",
            fontsize=9,
            color="white" if share > 0.6 else "black",
        )
right.set_title("Probability of each rank (%)", loc="left", fontsize=11)
right.set(xticks=range(7), xticklabels=range(1, 8), yticks=[], xlabel="rank")
right.spines[:].set_visible(False)

# %%
# Triglycerides come first and body mass index second, each with a high probability, but not with
# certainty. From the third place on the order is open: blood pressure is third in about half of the
# draws.
#
# Features that are not shown have almost no importance *in this model*. That does not prove that
# they are useless: total cholesterol and LDL are so strongly correlated that one can replace the
# other, and the learned length-scales selected one of them.

rest = importance.to_frame().index[7:]
print(
    f"not shown: {', '.join(rest)}; correlation of total cholesterol and LDL:"
    f" {X['total cholesterol'].corr(X['LDL']):.2f}"
)
