"""Models of every kind that can say what a measurement would tell, and what it did tell."""

import numpy as np
import pandas as pd

from gpattr import means
from gpattr.bases import Monomials
from gpattr.encoders import Encoder
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    EncodedPosterior,
    ExactPosterior,
    MultiOutputPosterior,
    MultiTaskPosterior,
    SparsePosterior,
    WeightSpacePosterior,
)

RNG = np.random.default_rng(5)
X = RNG.normal(size=(30, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=30)
ROWS, CANDIDATES = RNG.normal(size=(4, 3)), RNG.normal(size=(6, 3))
KERNEL = 1.7 * SquaredExponential([0.8, 1.1, 1.5])
NOISE = 0.05
BASIS = Monomials.up_to(2, 3, constant=True)
ENCODER = Encoder(("a", "kind"), {"kind": ("u", "v")})


def exact(kernel=KERNEL, mean=None, rows=X, y=Y, noise=NOISE):
    return ExactPosterior(kernel, rows, y, noise=noise, mean=mean)


def scaled():
    inner = AffinePosterior(exact(), [1.0, 2.0, -1.0], [2.0, 0.5, 3.0])
    return CombinationPosterior([inner], [-2.5], mean=means.Constant(40.0))


def selected():
    """Feature 1 feeds two inputs of the model, feature 2 none."""
    return AffinePosterior(exact(), np.zeros(3), np.ones(3), source=(0, 1, 1), n_features=3)


def sparse():
    return SparsePosterior.fit(KERNEL, X[:8], X, Y, noise=0.1, mean=means.Constant(0.3))


def weights():
    S = np.diag(np.linspace(0.5, 2.0, len(BASIS)))
    return WeightSpacePosterior(BASIS, np.linspace(-1.0, 1.0, len(BASIS)), S)


def coregionalised():
    both, B = np.column_stack([Y, X[:, 0]]), [[1.0, 0.3], [0.3, 1.0]]
    return MultiOutputPosterior.coregionalised(KERNEL, X, both, covariance=B, noise=0.1)


def tasks():
    of_row = (X[:, 0] > 0).astype(int)
    B = np.eye(2) + 0.2
    return MultiTaskPosterior(KERNEL, X, Y, of_row, covariance=B, noise=0.1)


def encoded():
    frame = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 0, "u", "v")})
    inner = exact(SquaredExponential(), rows=ENCODER.encode("X", frame))
    return EncodedPosterior(inner, ENCODER)


def frame(rows):
    return pd.DataFrame({"a": rows[:, 0], "kind": np.where(rows[:, 1] > 0, "u", "v")})


# Those that can be conditioned, and those that can only say what a measurement would tell.
CONDITIONED = {
    "exact": exact,
    "matern": lambda: exact(Matern52([0.8, 1.1, 1.5])),
    "uncertain mean": lambda: exact(mean=means.Linear([0.3, -0.2, 0.1], covariance=np.eye(4))),
    "flat mean": lambda: exact(mean=means.Linear(np.zeros(3), covariance="flat")),
    "uneven noise": lambda: exact(noise=np.linspace(0.05, 0.5, 30)),
    "scaled": scaled,
    "selected": selected,
    "sparse": sparse,
    "weights": weights,
}
TOLD = CONDITIONED | {
    "coregionalised": lambda: coregionalised()["y0"],
    "task": lambda: tasks()["y1"],
}
