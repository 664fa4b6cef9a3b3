"""Answers of about fifty models to every question, to be compared between two versions.

    python benchmarks/answers.py --save FILE      # with one version
    python benchmarks/answers.py --compare FILE   # with another: the largest relative differences

A redesign changes no number: what differs by more than 1e-12 of the largest entry of an answer is
printed, with its model and question. Answers that cannot be given are their sentences.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gpattr
from gpattr import kernels as k
from gpattr import posteriors as p
from gpattr import quantities as q

RNG = np.random.default_rng(0)
N, D = 24, 3
X = RNG.normal(size=(N, D))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * X[:, 1]
ROWS = RNG.normal(size=(3, D))
LENGTHS = np.array([0.9, 1.4, 2.2])
FRAME = pd.DataFrame(X, columns=["dose", "age", "rate"]).assign(
    kind=np.array(["a", "b", "c"])[RNG.integers(0, 3, N)]
)
LIMIT = 1e-12


def kernels() -> dict[str, k.Kernel]:
    """Kernels of every class, and compositions."""
    se = k.SquaredExponential
    return {
        "squared exponential": se(LENGTHS, 1.7),
        "isotropic": se(1.2),
        "Matérn 3/2": k.Matern32(LENGTHS, 1.5),
        "Matérn 5/2": k.Matern52(LENGTHS, 1.5),
        "Matérn 1.3": k.Matern(LENGTHS, 1.5, nu=1.3),
        "Matérn 4": k.Matern(1.1, 1.5, nu=4.0),
        "rational quadratic": k.RationalQuadratic(LENGTHS, 1.5, alpha=0.6),
        "periodic": k.Periodic(LENGTHS, 2.0 * LENGTHS, 0.7),
        "cosine": k.Cosine(3.0 * LENGTHS, 0.7),
        "linear": k.Linear(LENGTHS) + 0.1 * se(1.0),
        "polynomial": k.Polynomial(LENGTHS, degree=3, offset=0.4),
        "sum": se(LENGTHS, 1.1) + k.Matern52(0.8, 0.4) + k.Linear(2.0) + 0.3,
        "product": se(LENGTHS) * k.Periodic(1.5, 3.0),
        "Matérn times linear": k.Matern52(LENGTHS) * k.Linear(1.5) * 0.5,
        "selection": k.Select(se([0.9, 1.3]), [0, 2]) * k.Select(k.Linear(1.0), [1])
        + k.Select(k.Matern52(0.7), [1]),
        "separable": k.separable(k.Matern32, list(LENGTHS)),
        "additive": k.FullAdditive(
            [se(0.8), k.Periodic(1.0, 3.0), k.Matern52(1.0)], [0.5, 1.0, 0.3]
        ),
        "labels": k.Select(k.Matern52([0.7, 1.1]), [0, 1]) * k.Select(k.Categorical(0.8), [2]),
        "white": se(LENGTHS) + k.White(0.02),
    }


def posteriors() -> Iterator[tuple[str, Callable[[], Any], Any]]:
    """Models by name, each made when it is asked for, and rows to explain."""
    for name, kernel in kernels().items():
        yield name, lambda kernel=kernel: p.ExactPosterior(kernel, X, Y, noise=0.05), ROWS
    se = k.SquaredExponential(LENGTHS, 1.7)
    plugged: dict[str, Any] = {"hyperparameters": "optimal", "optimize": False}
    yield "nearly no noise", lambda: p.ExactPosterior(se, X, Y, noise=1e-8), ROWS
    yield "linear mean", lambda: gpattr.GPRegressor(se, mean="linear", **plugged).fit(X, Y), ROWS
    yield "GPRegressor", lambda: gpattr.GPRegressor(se, **plugged).fit(X, Y), ROWS
    yield (
        "GPRegressor, Matérn",
        lambda: gpattr.GPRegressor(k.Matern52(1.2), **plugged).fit(X, Y),
        ROWS,
    )
    yield "integrated", lambda: gpattr.integrate(gpattr.GPRegressor(se, **plugged).fit(X, Y)), ROWS
    yield "classifier", lambda: gpattr.GPClassifier(se, **plugged).fit(X, Y > 0), ROWS
    yield (
        "Laplace",
        lambda: gpattr.GPClassifier(se, approximation="laplace", **plugged).fit(X, Y > 0),
        ROWS,
    )
    three = np.digitize(Y, [-0.5, 0.5])
    yield (
        "three classes",
        lambda: gpattr.GPClassifier(se, **plugged).fit(X, three),
        ROWS,
    )
    two = np.column_stack([Y, np.cos(X[:, 0])])
    yield "separate outputs", lambda: gpattr.MultiOutputGPRegressor(se, **plugged).fit(X, two), ROWS
    yield (
        "coregionalised",
        lambda: gpattr.MultiOutputGPRegressor(se, outputs="coregionalised", optimize=False).fit(
            X, two
        ),
        ROWS,
    )
    yield (
        "sparse",
        lambda: gpattr.SparseGPRegressor(8, se, optimize=False, random_state=0).fit(X, Y),
        ROWS,
    )
    yield (
        "random features",
        lambda: gpattr.RandomFeatureGPRegressor(20, kernel=se, optimize=False, random_state=0).fit(
            X, Y
        ),
        ROWS,
    )
    yield (
        "Hilbert space",
        lambda: gpattr.HilbertGPRegressor(8, kernel=k.Matern52(1.2), optimize=False).fit(
            X[:, :2], Y
        ),
        ROWS[:, :2],
    )
    yield "Bayesian linear", lambda: gpattr.BayesianLinearRegressor(degree=2).fit(X, Y), ROWS
    table = FRAME.assign(kind=pd.Categorical(FRAME["kind"]))
    yield "sklearn pipeline", lambda: _pipeline(table), table[:3]
    yield "sklearn", _sklearn, ROWS
    yield "GPyTorch", _gpytorch, ROWS
    yield "BoTorch", _botorch, ROWS
    many = np.random.default_rng(1).normal(size=(60, 12))
    yield (
        "twelve features",
        lambda: p.ExactPosterior(
            k.Matern52(np.linspace(2, 5, 12)), many, np.sin(many.sum(axis=1)), noise=0.1
        ),
        many[:2] + 0.3,
    )
    yield (
        "thirty features",
        lambda: p.ExactPosterior(
            k.SquaredExponential(np.linspace(3, 9, 30)),
            np.tile(many, (1, 3))[:, :30],
            many[:, 0],
            noise=0.1,
        ),
        np.tile(many, (1, 3))[:2, :30] * 0.9,
    )
    yield (
        "one feature",
        lambda: p.ExactPosterior(k.Matern32(0.7), X[:, :1], Y, noise=0.05),
        ROWS[:, :1],
    )


def _pipeline(table: pd.DataFrame) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    columns = make_column_transformer(
        (StandardScaler(), ["dose", "age", "rate"]), (OneHotEncoder(sparse_output=False), ["kind"])
    )
    model = GaussianProcessRegressor(RBF(1.5), alpha=0.05, optimizer=None, normalize_y=True)
    return make_pipeline(columns, model).fit(table, Y)


def _sklearn() -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

    kernel = 1.3 * RBF(LENGTHS) + 0.4 * Matern(1.0, nu=1.5) + WhiteKernel(0.05)
    return GaussianProcessRegressor(kernel, optimizer=None).fit(X, Y)


def _gpytorch() -> Any:
    import gpytorch
    import torch

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            likelihood = gpytorch.likelihoods.GaussianLikelihood()
            super().__init__(torch.tensor(X), torch.tensor(Y), likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=D)
            )

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    model = Model().double().eval()
    model.likelihood.eval()
    return model


def _botorch() -> Any:
    import torch
    from botorch.models import SingleTaskGP

    return SingleTaskGP(torch.tensor(X), torch.tensor(Y)[:, None]).eval()


def questions(model: Any, rows: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Questions by name, each answered when it is asked."""

    def e(model: Any, *given: Any, **options: Any) -> Any:
        whole = gpattr.Explainer(model, *given, **options)
        names = list(whole.posterior.outputs)
        return whole[names[-1]] if len(names) > 1 else whole

    framed = isinstance(rows, pd.DataFrame)
    table = FRAME.assign(kind=pd.Categorical(FRAME["kind"])) if framed else _like(rows)
    first = rows[:1] if framed else rows[0]
    zeros = "mean" if framed else "zeros"
    yield "predictions", lambda: gpattr.as_posterior(model).predict(rows, return_std=True)
    yield "gradients", lambda: _parts(e(model, zeros)(rows))
    yield "mean baseline", lambda: _parts(e(model)(rows))
    yield "gradient", lambda: _parts(e(model, attribution=gpattr.operators.Gradient())(rows))
    yield "Shapley", lambda: _parts(e(model, zeros, attribution="shapley")(rows))
    some = gpattr.Marginals(table[:6])
    yield "Marginals", lambda: _parts(e(model, some, attribution="shapley")(rows))
    yield "joint", lambda: e(model, zeros).joint(rows)
    yield (
        "Shapley interactions",
        lambda: _parts(e(model, zeros, attribution="shapley").interactions(rows)),
    )
    yield "integrated Hessians", lambda: _parts(e(model, zeros).interactions(rows))
    yield "curve", lambda: _parts(e(model).dependence(0, grid=5))
    yield (
        "centred",
        lambda: _parts(e(model).dependence(1 % np.shape(rows)[1], grid=4, centred=True)),
    )
    yield "slope", lambda: _parts(e(model).dependence(0, grid=4, derivative=True))
    yield "surface", lambda: _parts(e(model).dependence((0, 1), grid=(3, 3)))
    yield "importance", lambda: e(model).importance(rows, n_samples=50).values
    yield (
        "importance of variance",
        lambda: e(model).importance(rows, by="variance", n_samples=50).values,
    )
    yield "Sobol", lambda: _sobol(model, table)
    yield (
        "standard deviation",
        lambda: _parts(e(model, zeros, quantity=q.StandardDeviation())(rows)),
    )
    best = q.ExpectedImprovement(best=0.5)
    yield "expected improvement", lambda: _parts(e(model, zeros, quantity=best)(rows))
    yield "next", lambda: e(model, zeros).measure_next(table[:5], rows).to_frame().to_numpy()
    yield "counterfactual", lambda: _change(e(model, zeros).counterfactual(first, 0.4))
    yield "contributions", lambda: np.asarray(e(model, zeros).training_contributions(first, 0))
    yield "sensitivity", lambda: e(model).baseline_sensitivity(rows, table[:7]).std
    yield (
        "probability",
        lambda: _parts(e(model, zeros, output="probability", n_draws=60)(rows)),
    )


def _like(rows: np.ndarray) -> np.ndarray:
    return (
        X
        if np.shape(rows)[1] == D
        else np.random.default_rng(2).normal(size=(24, np.shape(rows)[1]))
    )


def _change(found: Any) -> np.ndarray:
    return np.concatenate(
        [
            [found.found, found.distance, found.probability],
            *map(np.ravel, _parts(found.explanation)),
        ]
    )


def _sobol(model: Any, table: Any) -> Any:
    names = list(gpattr.as_posterior(model).outputs)
    output = names[-1] if len(names) > 1 else None
    found = gpattr.sobol_indices(model, table, output=output, n_draws=100)
    return np.concatenate([np.ravel(found.first), np.ravel(found.total)])


def _parts(found: Any) -> list[np.ndarray]:
    """Means, standard deviations and covariances, as far as an answer has them."""
    parts = [found.values]
    for name in ("std", "cov"):
        with suppress(AttributeError, gpattr.exceptions.GpattrError):
            parts.append(getattr(found, name))
    return [np.asarray(part, dtype=float) for part in parts if part is not None]


def answers(only: str) -> dict[str, np.ndarray]:
    """The answers of all models to all questions, by "model: question"."""
    found: dict[str, np.ndarray] = {}
    for name, make, rows in posteriors():
        if only and only not in name:
            continue
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make()
            for question, ask in questions(model, rows):
                try:
                    answer = ask()
                    parts = answer if isinstance(answer, list | tuple) else [answer]
                    for i, part in enumerate(parts):
                        found[f"{name}: {question} {i}"] = np.ravel(np.asarray(part, dtype=float))
                except Exception as error:
                    text = f"{type(error).__name__}: {error}".partition("\n")[0]
                    found[f"{name}: {question} 0"] = np.array(re.sub(r"\d[\d.e+-]*", "#", text))
        print(f"{name}: {time.process_time() - start:.1f} s", flush=True)
    return found


def compare(old: Any, new: dict[str, np.ndarray], only: str) -> None:
    """Print what differs."""
    n, bad = 0, 0
    for key in sorted(set(old.files) | set(new)):
        if only and only not in key.partition(":")[0]:
            continue
        n += 1
        if key not in new or key not in old.files:
            words = f"only {'before' if key not in new else 'now'}"
        elif old[key].dtype.kind == "U" or new[key].dtype.kind == "U":
            same = str(old[key]) == str(new[key])
            words = "" if same else f"{str(old[key])[:110]!r} → {str(new[key])[:110]!r}"
        elif old[key].shape != new[key].shape:
            words = f"shape {old[key].shape} → {new[key].shape}"
        else:
            size = np.nanmax(np.abs(old[key]), initial=1e-300)
            off = np.nanmax(np.abs(old[key] - new[key]), initial=0.0) / size
            words = f"differs by {off:.1e}" if not off <= LIMIT else ""
        if words:
            bad += 1
            print(f"{key}: {words}")
    print(f"{n - bad} of {n} answers are the same to {LIMIT}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--save", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--only", default="", help="a part of the name of a model")
    options = parser.parse_args()
    found = answers(options.only)
    if options.save:
        np.savez_compressed(options.save, **found)
    if options.compare:
        compare(np.load(options.compare), found, options.only)


if __name__ == "__main__":
    main()
