"""One fitted GP in gpattr, scikit-learn and NumPy, the rows to explain, and their baseline."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import gpattr
from gpattr.posteriors import ExactPosterior

from .plain_gp import PlainGP

N_TRAIN, N_ROWS = 350, 20
LEFT_OUT = ("s2", "s4")


@dataclass(frozen=True)
class Problem:
    """The GP in each library, the rows X to explain and the baseline b."""

    names: list[str]
    X: np.ndarray
    b: np.ndarray
    posterior: ExactPosterior
    gp: PlainGP
    sklearn_gp: GaussianProcessRegressor
    evaluations: list[int] = field(default_factory=lambda: [0])

    @classmethod
    def of(cls, posterior: ExactPosterior, X: np.ndarray, names: list[str]) -> Problem:
        """Give the hyperparameters of a posterior (squared exponential, constant mean) to the
        others; the baseline is the mean of its inputs.
        """
        Z, kernel = posterior.inputs, posterior.kernel
        gp = PlainGP(
            Z,
            posterior.y,
            np.broadcast_to(kernel.lengthscale, Z.shape[1:]),
            float(kernel.variance),
            float(posterior.noise[0]),
            float(posterior.mean(Z[:1])[0]),
        )
        sklearn_gp = GaussianProcessRegressor(
            ConstantKernel(gp.variance) * RBF(gp.lengthscale), alpha=gp.noise, optimizer=None
        )
        sklearn_gp.fit(Z, gp.y - gp.constant)
        return cls(names, X, Z.mean(axis=0), posterior, gp, sklearn_gp)

    def predict(self, points: np.ndarray) -> np.ndarray:
        """What SHAP and shapiq are given: scikit-learn's model, as their users have it."""
        self.evaluations[0] += len(points)
        return self.sklearn_gp.predict(points) + self.gp.constant

    @property
    def d(self) -> int:
        return len(self.b)

    @cached_property
    def explanation(self) -> gpattr.Explanation:
        return gpattr.Explainer(self.posterior)(self.X)

    @property
    def worth_of_nothing(self) -> float:
        """The worth of no feature in the game of shapiq's ProductKernelExplainer: every kernel
        factor is 1.
        """
        return self.gp.constant + self.gp.variance * self.gp.alpha.sum()


def diabetes() -> Problem:
    """A GP that gpattr has trained on patients, and other patients to explain."""
    data = load_diabetes(scaled=False)
    kept = [i for i, name in enumerate(data.feature_names) if name not in LEFT_OUT]
    order = np.random.default_rng(0).permutation(len(data.target))
    train, rows = order[:N_TRAIN], order[N_TRAIN : N_TRAIN + N_ROWS]
    model = gpattr.GPRegressor(hyperparameters="optimal").fit(
        data.data[train][:, kept], data.target[train]
    )
    names = [data.feature_names[i] for i in kept]
    return Problem.of(model.posterior_, data.data[rows][:, kept], names)
