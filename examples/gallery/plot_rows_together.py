"""
Is the difference between two rows real?
========================================

Blood pressure adds more to the prediction for one patient than for another. Both numbers are
uncertain; but they belong to one unknown function, and much of their error is the same. The joint
covariance between rows says how much of the difference is certain."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_diabetes

import gpattr

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X[["age", "bmi", "bp", "s5"]]
model = gpattr.GPRegressor().fit(X[:400], y[:400])
explainer = gpattr.Explainer(model)
patients = X[400:].sort_values("bp")
ex = explainer(patients)
i = list(X).index("bp")

# %%
# Covariances of the attribution of blood pressure between all 42 patients, as correlations:

cov = explainer.joint(patients)[:, i, :, i]
std = np.sqrt(cov.diagonal())
correlation = cov / np.outer(std, std)
apart = cov.diagonal()[:, None] + cov.diagonal() - 2 * cov  # of the difference of two patients
alone = cov.diagonal()[:, None] + cov.diagonal()  # if the errors had nothing in common

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.0), layout="constrained")
picture = left.imshow(correlation, cmap="RdBu_r", vmin=-1, vmax=1)
fig.colorbar(picture, ax=left, label="correlation")
left.set(xlabel="patient, by blood pressure", ylabel="patient, by blood pressure")
left.set_title("Errors shared between patients", loc="left", fontsize=11)

one, other = 34, 40
difference = ex.values[other, i] - ex.values[one, i]
axis = np.linspace(difference - 30, difference + 30, 400)
for label, variance, color in (
    ("with the covariance", apart[one, other], "#D55E00"),
    ("without", alone[one, other], "#0072B2"),
):
    density = norm(difference, np.sqrt(variance))
    right.plot(axis, density.pdf(axis), color=color, label=f"{label}: P(> 0) = {density.sf(0):.3f}")
right.axvline(0.0, color="0.6", lw=0.8)
top = 1.35 * norm.pdf(0) / np.sqrt(apart[one, other])
right.set(xlabel="difference of the two attributions", yticks=[], ylim=(0, top))
right.set_title(
    f"blood pressure {patients['bp'].iloc[other]:.0f} and {patients['bp'].iloc[one]:.0f}",
    loc="left",
    fontsize=11,
)
right.legend(frameon=False, loc="upper left", fontsize=9)
right.spines[["top", "right", "left"]].set_visible(False)

# %%
# Patients on the same side of the average share most of their error; on opposite sides it has
# opposite signs. Comparing two high blood pressures with the standard deviations alone would
# throw away most of what the model knows.
