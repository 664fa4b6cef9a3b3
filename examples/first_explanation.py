"""Explain one prediction of a Gaussian process, with the uncertainty of the explanation."""

import numpy as np

import gpattr

# A process with four settings and forty measurements; the yield depends on three settings.
rng = np.random.default_rng(0)
names = ["temperature", "pressure", "catalyst", "stirring"]
X = rng.uniform([300, 1, 0.1, 100], [400, 10, 0.9, 900], size=(40, 4))
y = (
    60
    - ((X[:, 0] - 360) / 15) ** 2
    + 4 * np.log(X[:, 1])
    + 10 * X[:, 2]
    + rng.normal(scale=0.5, size=40)
)

kernel = gpattr.kernels.SquaredExponential(lengthscale=[40, 8, 1, 2000], variance=100)
posterior = gpattr.posteriors.ExactPosterior(
    kernel, X, y, noise=0.25, mean=gpattr.means.Constant(y.mean())
)

# Why does the model predict this yield, rather than that of the average settings?
explainer = gpattr.Explainer(posterior, baseline="mean", feature_names=names)
explanation = explainer(np.array([[365.0, 8.0, 0.7, 300.0]]))
print(explanation)

print(
    "\nP(temperature adds more than catalyst) ="
    f" {explanation.prob_greater('temperature', 'catalyst')[0]:.3f}"
)
print("\n" + repr(explainer.importance(X)))
