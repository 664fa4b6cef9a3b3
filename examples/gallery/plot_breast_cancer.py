"""
A clear case and a doubtful one
===============================

A classifier gives one tumour a probability of about one half of being malignant, and another almost
certainty. What are its reasons, and how sure is it of them? (A demonstration on public data, no
medical advice.)"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer

import gpattr

# %%
# Four measurements of the cell nuclei in an image, each the mean of the three largest. 300 samples
# train, 269 are new.

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
print(f"right in {model.score(X.iloc[new], y[new]):.1%} of the new samples")

# %%
# The most doubtful of the new samples and the clearest, with 90 % intervals of the probability
# itself, by way of the log odds:

p = model.predict_proba(X.iloc[new])[:, 1]
chosen = new[[np.abs(p - 0.5).argmin(), p.argmax()]]
mean, std = model.predict_latent(X.iloc[chosen], return_std=True)
for i, low, high in zip(chosen, expit(mean - 1.645 * std), expit(mean + 1.645 * std), strict=True):
    print(f"{X.index[i]}: P(malignant) from {low:.3f} to {high:.3f}; it was {y[i]}")

# %%
# Why are they not like the average benign sample? That one is the baseline, and the probability is
# what is explained.

usual = X.iloc[train][y[train] == "benign"].mean()
ex = gpattr.Explainer(model, baseline=usual, output="probability")(X.iloc[chosen])
fig, axes = plt.subplots(2, figsize=(7.5, 4.5), sharex=True, layout="constrained")
for row, (ax, kind) in enumerate(zip(axes, ("Doubtful", "Clear"), strict=True)):
    ex.plot.bar(row, ax=ax, level=0.9)
    title = (
        f"{kind}, {ex.row_names[row]}: P(malignant) = {ex.predictions[row]:.3f}, at the baseline"
        f" {ex.base_values[row]:.3f}"
    )
    ax.set_title(title, loc="left", fontsize=11)
axes[0].set_xlabel("")
_ = axes[1].set_xlabel("attribution to the probability of a malignant tumour, with 90 % intervals")

# %%
# The area of the nuclei speaks for malignancy in both. In the doubtful sample texture and concave
# points add no less together, but either of them may add nothing. Even the clear sample, of whose
# class the model is sure, has an unsure reason.
#
# Large nuclei often have many concave points, so the data cannot tell their effects fully apart.
# The measurements are not causes, and against another baseline, say the average of all samples, the
# attributions would be others.
