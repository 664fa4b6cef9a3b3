"""
Where to measure next?
======================

Twelve measurements of an unknown surface. What does each input add at one point of interest, and
where would one more measurement make that most certain? The answer is known before measuring: the
variance of an attribution does not depend on the outcome."""

import matplotlib.pyplot as plt
import numpy as np

import gpattr

rng = np.random.default_rng(3)
X = rng.uniform(-2, 2, size=(12, 2))
kernel = gpattr.kernels.SquaredExponential([0.9, 1.2], variance=1.0)
truth = np.sin(1.5 * X[:, 0]) * np.cos(X[:, 1])
posterior = gpattr.posteriors.ExactPosterior(kernel, X, truth, noise=0.01)
names = ["x₁", "x₂"]
explainer = gpattr.Explainer(posterior, baseline=[-1.0, -1.0], feature_names=names)
point = np.array([[1.2, 1.0]])
ex = explainer(point)
print(ex)

# %%
# Candidates are a grid. For each, the share of the variance of an attribution that one measurement
# would remove:

axis = np.linspace(-2, 2, 41)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
fig, axes = plt.subplots(1, 2, figsize=(9.0, 4.2), sharey=True, layout="constrained")
for i, (ax, name) in enumerate(zip(axes, names, strict=True)):
    told = explainer.measure_next(grid, point, name)
    share = told.variance_reduction[:, 0] / ex.var[0, i]
    picture = ax.contourf(
        axis, axis, share.reshape(41, 41), levels=np.linspace(0, 0.5, 11), cmap="viridis"
    )
    ax.plot([-1.0, 1.2], [-1.0, 1.0], color="white", lw=1.5, ls="--")
    ax.plot(*X.T, "o", color="white", mec="black", ms=6, label="measured")
    ax.plot(*point[0], "s", color="#D55E00", mec="black", ms=8, label="explained")
    ax.plot(-1.0, -1.0, "D", color="#56B4E9", mec="black", ms=7, label="baseline")
    best = grid[np.argmax(share)]
    ax.plot(*best, "*", color="gold", mec="black", ms=16, label="measure here")
    ax.set(title=f"attribution of {name}: {ex.values[0, i]:+.2f} ± {ex.std[0, i]:.2f}", xlabel="x₁")
axes[0].set_ylabel("x₂")
axes[1].legend(loc="lower right", fontsize=8)
fig.colorbar(picture, ax=axes, label="share of the variance that would be removed")

# %%
# The best place is neither at the point nor where the prediction is least certain: it is where the
# slope along the path is in doubt. ``measure_next`` also tells how likely the sign would be
# settled, and ``best(q)`` chooses several measurements to be made together.

told = explainer.measure_next(grid, point, "x₁")
after = posterior.condition_on(grid[[np.argmax(told.variance_reduction[:, 0])]], [0.0])
sharper = gpattr.Explainer(after, baseline=[-1.0, -1.0])(point)
print(
    f"std of x₁ now {ex.std[0, 0]:.3f}, after a measurement of any outcome {sharper.std[0, 0]:.3f}"
)
