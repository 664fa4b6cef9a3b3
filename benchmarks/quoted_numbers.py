"""The numbers that README and documentation quote, small and quick enough to follow from version
to version: about two minutes on one thread.

Every number is gpattr's time over that of a yardstick, for the same model and the same rows unless
its size says otherwise. Both are called in turn, and the ratio is the median of the pairs'. Times
are processor time on one thread, which is the clock's on a quiet machine, and disturbed less by
others on a busy one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from attribution_tools.answers import Answer
from attribution_tools.problem import Problem
from attribution_tools.tool import Tool
from attribution_tools.truths import every_truth
from attribution_tools.with_gpattr import gpattr_tools
from changes import shown
from explain import wine_posterior
from pages import digits
from record import Number, Record
from rules import LENGTHSCALE
from scipy.linalg.blas import dsyrk, dtrsm
from timing import one_thread, processor_seconds_of
from training import simulated as simulated_to_train
from training import with_gpattr, with_sklearn
from weight_space import KERNEL, M, simulated

from gpattr import Explainer, GPRegressor, RandomFeatureGPRegressor
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.posteriors import ExactPosterior

REPEATS = 7
MEANS, COVARIANCE = "means", "means and covariance"
EXACT_MEANS = "exact attributions, no uncertainty"
EXACT_COVARIANCE = "exact attributions with their joint covariance"


@dataclass(frozen=True)
class Contender:
    """What gpattr does, by whatever way: a call, what it gives, and the error of attributions."""

    name: str
    call: Callable[[], Any]
    yields: str
    error: float | None = None


@dataclass(frozen=True)
class Yardstick(Contender):
    """What it is held against: a call, and what of gpattr's is timed next to it."""

    size: str = ""
    contenders: list[Contender] = field(default_factory=list)


def measure(X: np.ndarray, y: np.ndarray, data: str, quick: bool) -> Record:
    """Measure all numbers whose libraries are installed; ``data`` says what X and y are."""
    one_thread()
    if quick:
        X, y = X[:300], y[:300]
    before, numbers, skipped = os.getloadavg()[0], [], {}
    for part, packages in PARTS.items():
        absent = [name for name in packages if find_spec(name) is None]
        if absent:
            skipped[part.__name__] = f"{' and '.join(absent)} not installed"
            continue
        for yardstick in part(X, y, data, quick):
            numbers += timed(yardstick, REPEATS)
    return Record.of(numbers, skipped, [before, os.getloadavg()[0]])


def timed(yardstick: Yardstick, repeats: int) -> list[Number]:
    """In each repeat the yardstick and its contenders are timed in turn, after a call of each that
    is not timed.
    """
    everyone = [yardstick, *yardstick.contenders]
    for each in everyone:
        each.call()
    seconds = [[processor_seconds_of(each.call) for each in everyone] for _ in range(repeats)]
    theirs, *ours = (list(column) for column in zip(*seconds, strict=True))
    return [
        Number.of(
            own,
            theirs,
            name=f"{contender.name} / {yardstick.name}",
            size=yardstick.size,
            yields=contender.yields,
            yardstick_yields=yardstick.yields,
            error=contender.error,
            yardstick_error=yardstick.error,
        )
        for own, contender in zip(ours, yardstick.contenders, strict=True)
    ]


# What is measured. Every function yields yardsticks, with what is timed next to them.


def linear_algebra(X: np.ndarray, y: np.ndarray, data: str, quick: bool) -> Iterator[Yardstick]:
    """The bare operations that no method can do without, and other kernels."""
    posterior, rows = wine_posterior(X, y), X[:500]
    (n, d), size = rows.shape, f"{data}, {len(X)} points, {len(rows)} rows × {X.shape[1]} features"
    right = np.asfortranarray(np.random.default_rng(0).normal(size=(len(X), n * d)))
    smooth = of_rows(posterior, rows)
    yield Yardstick(
        "bare triangular solve",
        lambda: dtrsm(1.0, posterior.factor, right, lower=1, overwrite_b=1),
        "d right-hand sides a row",
        size=size,
        contenders=[smooth[1]],
    )
    yield Yardstick(
        "kernel matrix times α",
        lambda: posterior.kernel(rows, X) @ posterior.alpha,
        "bare predictions",
        size=size,
        contenders=[smooth[0]],
    )
    kernel = Matern52(posterior.kernel.lengthscale, posterior.kernel.variance)
    rough = of_rows(ExactPosterior(kernel, X, y, noise=0.3, mean=posterior.mean), rows)
    for other, own in zip(smooth, rough, strict=True):
        yield Yardstick(
            "the same, squared exponential",
            other.call,
            other.yields,
            size=size,
            contenders=[Contender(f"Matérn-5/2, {own.name}", own.call, own.yields)],
        )


def of_rows(posterior: ExactPosterior, rows: np.ndarray) -> list[Contender]:
    explainer = Explainer(posterior)
    return [
        Contender(MEANS, lambda: explainer(rows, uncertainty="none"), EXACT_MEANS),
        Contender(COVARIANCE, lambda: explainer(rows), EXACT_COVARIANCE),
    ]


def predictions(X: np.ndarray, y: np.ndarray, data: str, quick: bool) -> Iterator[Yardstick]:
    """scikit-learn's predictions of the same rows by the same GP."""
    posterior, rows = wine_posterior(X, y), X[:500]
    problem = Problem.of(posterior, rows, names=[])
    size = f"{data}, {len(X)} points, {len(rows)} rows × {X.shape[1]} features"
    means, covariance = of_rows(posterior, rows)
    predict = problem.sklearn_gp.predict
    yield Yardstick(
        "scikit-learn's predict",
        lambda: predict(rows),
        "predictions",
        size=size,
        contenders=[means],
    )
    yield Yardstick(
        "scikit-learn's predict(return_std=True)",
        lambda: predict(rows, return_std=True),
        "predictions with standard deviations",
        size=size,
        contenders=[covariance],
    )
    yield Yardstick(
        "scikit-learn's predict(return_cov=True)",
        lambda: predict(rows, return_cov=True),
        "predictions with their covariance between rows",
        size=size,
        contenders=[covariance],
    )


def explainers(X: np.ndarray, y: np.ndarray, data: str, quick: bool) -> Iterator[Yardstick]:
    """SHAP and Captum on the same GP, rows and baseline."""
    from attribution_tools.with_captum import captum_tools
    from attribution_tools.with_shap import shap_tools

    rows = X[:: len(X) // 20][:20]
    if quick:  # SHAP evaluates 2ᵈ points a row
        X, rows = X[:, :6], rows[:, :6]
    problem = Problem.of(wine_posterior(X, y), rows, names=[])
    truths = every_truth(problem.gp, problem.X, problem.b)
    size = f"{data}, {len(X)} points, {len(rows)} rows × {problem.d} features"

    def error(tool: Tool) -> float:
        return Answer.of(tool, problem, truths[tool.computes]).error

    def contenders(tools: list[Tool]) -> list[Contender]:
        yields = EXACT_MEANS, EXACT_COVARIANCE
        return [
            Contender(name, lambda tool=tool: tool.explain(0), gives, error(tool))
            for name, tool, gives in zip((MEANS, COVARIANCE), tools, yields, strict=True)
        ]

    integrated = contenders(gpattr_tools(problem)[:2])
    shapley = contenders(gpattr_tools(problem, "shapley")[:2])
    shapley = [
        Contender(f"Shapley values, {each.name}", each.call, each.yields, each.error)
        for each in shapley
    ]
    captum, (exact, kernel, *_) = captum_tools(problem)[0], shap_tools(problem)
    for name, tool, ours in (
        ("Captum on GPyTorch, 50 steps", captum, integrated),
        ("SHAP Exact", exact, integrated + shapley),
        ("SHAP Kernel (default)", kernel, integrated + shapley),
    ):
        yield Yardstick(
            name,
            lambda tool=tool: tool.explain(0),
            f"{tool.computes}, no uncertainty",
            error(tool),
            size=size,
            contenders=ours,
        )


def quadrature(X: np.ndarray, y: np.ndarray, data: str, quick: bool) -> Iterator[Yardstick]:
    """The trapezoid rule with 65 gradients, which the red wines need for errors of 1e-4."""
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    kernel = SquaredExponential(lengthscale=LENGTHSCALE, variance=11.25)
    posterior = ExactPosterior(kernel, X, y, noise=0.375)
    average, rows = X[y == 5].mean(axis=0), X[y > 6][:10]
    closed = Explainer(posterior, average)
    rule = Explainer(posterior, average, method="trapezoid", n_steps=64)
    truth = closed(rows, uncertainty="none").values
    off = np.abs(rule(rows, uncertainty="none").values - truth).max() / np.abs(truth).max()
    yield Yardstick(
        "trapezoid rule, 65 gradients",
        lambda: rule(rows, uncertainty="none"),
        "approximate attributions, no uncertainty",
        float(off),
        size=f"{data}, {len(X)} points, {len(rows)} rows × {X.shape[1]} features",
        contenders=[Contender(MEANS, lambda: closed(rows, uncertainty="none"), EXACT_MEANS)],
    )


def weight_space(X: np.ndarray, y: np.ndarray, data: str, quick: bool) -> Iterator[Yardstick]:
    """Random features: a stream of rows, and explaining compared with an exact GP."""
    n, points = (10_000, 300) if quick else (50_000, 2000)
    (chunk,) = simulated(n)
    features = np.random.default_rng(0).normal(size=(4096, 2 * M))
    gram = np.zeros((2 * M, 2 * M), order="F")

    def product() -> None:
        for _ in range(round(n / len(features))):
            dsyrk(1.0, features.T, beta=1.0, c=gram, lower=1, overwrite_c=1)

    stream = RandomFeatureGPRegressor(M, kernel=KERNEL, random_state=0)
    yield Yardstick(
        "bare product ΦᵀΦ",
        product,
        "the matrix of the normal equations",
        size=f"simulated, {n} rows × 10 features, {M} random frequencies",
        contenders=[Contender("a stream", lambda: stream.fit_chunks([chunk]), "a fitted model")],
    )
    Z, targets = chunk[0][:points], chunk[1][:points]
    rows = chunk[0][-500:]
    exact = Explainer(GPRegressor(KERNEL, noise_variance=0.01, optimize=False).fit(Z, targets))
    model = RandomFeatureGPRegressor(
        M, kernel=KERNEL, noise_variance=0.01, optimize=False, random_state=0
    ).fit(Z, targets)
    cheap, gives = Explainer(model), "exact attributions with standard deviations"
    yield Yardstick(
        "an exact GP",
        lambda: exact(rows, uncertainty="std"),
        gives,
        size=f"simulated, {points} points, 500 rows × 10 features, {M} random frequencies",
        contenders=[
            Contender(
                "random features, means and std",
                lambda: cheap(rows, uncertainty="std"),
                f"{gives}, of the approximation",
            )
        ],
    )


def training(X: np.ndarray, y: np.ndarray, data: str, quick: bool) -> Iterator[Yardstick]:
    """Hyperparameters by marginal likelihood, from the same start."""
    n = 100 if quick else 300
    Z, targets = simulated_to_train(n)
    reached = [fit(Z, targets) for fit in (with_gpattr, with_sklearn)]
    yields = [f"log marginal likelihood {value:.2f}" for value in reached]
    yield Yardstick(
        "scikit-learn's fit",
        lambda: with_sklearn(Z, targets),
        yields[1],
        size=f"simulated, {n} points × {Z.shape[1]} features",
        contenders=[Contender("training", lambda: with_gpattr(Z, targets), yields[0])],
    )


PARTS: dict[Callable[..., Iterator[Yardstick]], tuple[str, ...]] = {  # and the packages they need
    linear_algebra: (),
    predictions: (),
    explainers: ("shap", "captum", "gpytorch"),
    quadrature: (),
    weight_space: (),
    training: (),
}


def as_tables(record: Record) -> dict[str, list[dict[str, str]]]:
    """The tables to print, one for each size."""
    tables: dict[str, list[dict[str, str]]] = {}
    for number in record.numbers:
        tables.setdefault(number.size, []).append(
            {
                "what": number.name,
                "ratio": shown(number),
                "± of a repeat": f"{100 * number.spread:.0f} %",
                "time": f"{digits(1e3 * number.median)} ms",
                "its time": f"{digits(1e3 * number.yardstick_median)} ms",
                "error": "" if number.error is None else f"{number.error:.0e}",
                "its error": (
                    "" if number.yardstick_error is None else f"{number.yardstick_error:.0e}"
                ),
            }
        )
    return tables
