"""
A clear case and a doubtful one
===============================

A classifier gives one tumour a probability of about one half of being malignant, and another one a
probability of almost one. Which measurements are responsible, and how certain are their
attributions? (A demonstration on public data, not medical advice.)"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer

import gpattr

# %%
# Four measurements of the cell nuclei in an image, each the mean of the three largest. 300 samples
# are used for training, 269 are new.

data = load_breast_cancer(as_frame=True)
names = ["area", "texture", "smoothness", "concave points"]
X = (
    data.data[[f"worst {name}" for name in names]]
    .set_axis(names, axis=1)
    .rename(index="sample {}".format)
)
y = np.array(["malignant", "benign"])[data.target]
order = np.random.default_rng(0).permutation(len(X))
train, new = order[:300], order[300:]
model = gpattr.GPClassifier().fit(X.iloc[train], y[train])
print(f"correct for {model.score(X.iloc[new], y[new]):.1%} of the new samples")

# %%
# The most doubtful and the clearest of the new samples, with 90 % intervals of the probability
# itself, computed from the log odds:

p = model.predict_proba(X.iloc[new])[:, 1]
chosen = new[[np.abs(p - 0.5).argmin(), p.argmax()]]
mean, std = model.predict_latent(X.iloc[chosen], return_std=True)
for i, low, high in zip(chosen, expit(mean - 1.645 * std), expit(mean + 1.645 * std), strict=True):
    print(f"{X.index[i]}: P(malignant) from {low:.3f} to {high:.3f}; observed: {y[i]}")

# %%
# Why do they differ from the average benign sample? That sample is the baseline, and the
# probability is explained.

usual = X.iloc[train][y[train] == "benign"].mean()
ex = gpattr.Explainer(model, baseline=usual, output="probability")(X.iloc[chosen])
fig, axes = plt.subplots(2, figsize=(7.5, 4.5), sharex=True, layout="constrained")
for row, (ax, kind) in enumerate(zip(axes, ("Doubtful", "Clear"), strict=True)):
    ex.plot.bar(row, ax=ax, level=0.9)
    title = (
        f"{kind}, {ex.row_names[row]}: P(malignant) = {ex.predictions[row]:.3f}, at the baseline"
        f" {ex.base_values[row]:.3f}"
    )
    ax.set_title(title, loc="left", fontsize=11, pad=18)
axes[0].set_xlabel("")
_ = axes[1].set_xlabel("attribution to the probability of a malignant tumour, with 90 % intervals")

# %%
# The area of the nuclei indicates malignancy in both. In the doubtful sample texture and concave
# points together add as much, but either of them may add nothing. Even in the clear sample, whose
# class is certain, one attribution is uncertain.
#
# Large nuclei often have many concave points, so the data cannot fully separate their effects. The
# measurements are not causes, and with another baseline, for example the average of all samples,
# the attributions would be different.
