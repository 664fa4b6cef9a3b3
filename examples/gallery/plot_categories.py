"""
A pipeline with categories
==========================

A fitted scikit-learn pipeline, one-hot encoder and scaler included, is explained as it is. The
dummy columns of a category are one feature again, in the labels of the table."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import gpattr

data = load_wine(as_frame=True)
numbers = ["alcohol", "flavanoids", "hue"]
X = data.data[numbers].assign(cultivar=np.array(["Barolo", "Grignolino", "Barbera"])[data.target])
y = data.data["color_intensity"]

# %%
# How intense is the colour of a wine, and how much of it is the grape?

encoder = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), ["cultivar"]))
kernel = ConstantKernel(1.0) * RBF(2.0) + WhiteKernel(0.3)
model = make_pipeline(encoder, GaussianProcessRegressor(kernel, normalize_y=True)).fit(X, y)
ex = gpattr.Explainer(model, baseline="median", target_name="colour intensity")(X)
print(ex[0])

# %%
# The attribution of the cultivar over all wines, next to that of the flavanoids:

i, j = list(ex.feature_names).index("cultivar"), list(ex.feature_names).index("flavanoids")
fig, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), sharey=True, layout="constrained")
colors = {"Barolo": "#0072B2", "Grignolino": "#E69F00", "Barbera": "#D55E00"}
rng = np.random.default_rng(0)
for place, (name, color) in enumerate(colors.items()):
    rows = (X["cultivar"] == name).to_numpy()
    at = place + rng.uniform(-0.25, 0.25, rows.sum())
    style = {"fmt": "o", "ms": 4, "color": color, "elinewidth": 0.6, "alpha": 0.7}
    left.errorbar(at, ex.values[rows, i], 1.96 * ex.std[rows, i], **style)
    right.errorbar(
        X["flavanoids"][rows], ex.values[rows, j], 1.96 * ex.std[rows, j], label=name, **style
    )
left.set_xticks(range(3), colors)
left.set_ylabel("attribution to the colour intensity\nwith 95 % intervals")
left.set_title("cultivar", loc="left", fontsize=11)
right.set_title("flavanoids", loc="left", fontsize=11)
right.set_xlabel("flavanoids")
right.legend(frameon=False, fontsize=9, loc="upper left")
for ax in (left, right):
    ax.axhline(0.0, color="0.6", lw=0.8, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)

# %%
# The baseline has the most frequent cultivar, so that wines of this one are credited with nothing
# for it, exactly. Both panels have one scale: the grape matters about as much as its flavanoids.
