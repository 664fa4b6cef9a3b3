"""
Better known together than alone
================================

Total cholesterol, LDL, HDL and their ratio are strongly correlated: the data hardly say which of
them matters. Errors of their attributions cancel in the sum, so the group is known better than its
members suggest. That is in the covariance, which bars without it cannot show."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import gpattr

names = {"s1": "total cholesterol", "s2": "LDL", "s3": "HDL", "s4": "cholesterol ratio"}
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X[["age", "bmi", "bp", "s1", "s2", "s3", "s4"]].rename(columns=names)
scale = X.std().to_numpy()
spread = float(y.var())
kernel = gpattr.kernels.SquaredExponential(3.0 * scale, variance=spread)
posterior = gpattr.posteriors.ExactPosterior(
    kernel, X.to_numpy(), y.to_numpy(), noise=0.5 * spread, mean=gpattr.means.Constant(y.mean())
)
explainer = gpattr.Explainer(posterior, X.mean().to_numpy(), feature_names=list(X))
ex = explainer(X.to_numpy())
lipids = list(names.values())
whole = ex.group({"all four": lipids})

# %%
# All length-scales are three standard deviations of their column: no feature is preferred. Left,
# the patient with the highest LDL of those within two standard deviations; right, everybody.

near = (np.abs(X - X.mean()) < 2 * X.std()).all(axis=1).to_numpy()
patient = int(np.argmax(np.where(near, X["LDL"], 0.0)))
at = [list(X).index(name) for name in lipids]
group = list(whole.feature_names).index("all four")
values = [*ex.values[patient, at], whole.values[patient, group]]
spreads = [*ex.std[patient, at], whole.std[patient, group]]
alone = np.sqrt(ex.var[:, at].sum(axis=1))  # of the sum, if errors were independent
together = whole.std[:, group]

fig, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
for place, (value, spread) in enumerate(zip(values, spreads, strict=True)):
    color = "#D55E00" if place == 4 else "#0072B2"
    left.errorbar(value, place, xerr=1.96 * spread, fmt="o", color=color, capsize=4)
left.axvline(0.0, color="0.6", lw=0.8)
left.set_yticks(range(5), [*lipids, "all four"])
left.invert_yaxis()
left.set_xlabel("attribution, with 95 % intervals")
left.set_title("One patient", loc="left", fontsize=11)
right.scatter(alone, together, s=12, color="#0072B2", alpha=0.6)
right.axline((0, 0), slope=1, color="0.6", lw=0.8)
right.set(xlabel="std of the sum, without covariances", ylabel="std of the sum, exact")
right.set(xlim=0, ylim=0)
right.set_title("All patients", loc="left", fontsize=11)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)

# %%
print(f"exact / without covariances: median {np.median(together / alone):.2f}")
