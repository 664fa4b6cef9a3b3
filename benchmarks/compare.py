"""One fitted GP explained by gpattr, SHAP, Captum, shapiq and GP-SHAP: values, uncertainty, errors
and times from one run.

    python benchmarks/compare.py [--rounds 15] [--write docs/compare_results.md]

Prints Markdown. Needs shap, shapiq, captum, gpytorch and mpmath. Every tool gets the same GP, rows
and baseline; every answer is held against a truth computed here in plain NumPy, by no code of
gpattr's nor of the tool's."""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gpytorch
import mpmath
import numpy as np
import shap
import shapiq
import torch
from captum.attr import IntegratedGradients
from games import coalitions, mixtures
from pages import digits, paragraph, power, processor, table
from scipy.linalg import cho_factor, cho_solve
from shapiq.explainer.product_kernel import ProductKernelExplainer
from shapiq.game_theory.exact import ExactComputer
from shapiq.imputer import BaselineImputer
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

import gpattr

N_TRAIN, N_ROWS = 350, 20
LEFT_OUT = ("s2", "s4")
ROW_BY_ROW = ("shap", "GP-SHAP")  # tools that take one row at a time, shapiq among them
SAMPLED = 100  # the budget of the sampling explainers, of 2⁸ = 256 coalitions
N_NODES, N_STEPS, N_DRAWS = 200, 32, 2000
IG, SHAPLEY, OTHER_GAME = "integrated gradients", "Shapley values", "Shapley values of another game"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15, help="how often every tool is timed")
    parser.add_argument("--write", type=Path, help="a file to write the Markdown to")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # other libraries' advice
    threadpool_limits(
        limits=1
    )  # so that ratios compare work, and not how threads wait for each other
    torch.set_num_threads(1)
    page = compare(options.rounds)
    print(page)
    if options.write:
        options.write.write_text(page + "\n", encoding="utf-8")


def compare(rounds: int) -> str:
    """The whole page."""
    problem = fit()
    truths = {
        IG: true_integrated_gradients(problem.gp, problem.X, problem.b),
        SHAPLEY: true_shapley(problem.gp, problem.X, problem.b),
        OTHER_GAME: true_product_kernel_shapley(problem.gp, problem.X),
    }
    tools = every_tool(problem)
    answers = [Answer.of(tool, problem, truths[tool.computes]) for tool in tools]
    times = side_by_side(tools, rounds)
    parts = [
        machine(),
        *set_up(problem, truths),
        *questions(problem, tools, answers),
        *speed(problem, tools, times, rounds),
        *errors(problem, tools, answers, truths),
        *one_row(problem, tools, answers),
        *difference(problem, truths),
        *uncertainty(problem),
    ]
    return "\n\n".join(parts)


# The model: one GP, four times.


@dataclass(frozen=True)
class PlainGP:
    """The GP in plain NumPy: f ~ GP(constant, σ² exp(−r²/2)), r in length-scales, given y = f(Z) +
    noise.
    """

    Z: np.ndarray
    y: np.ndarray
    lengthscale: np.ndarray
    variance: float
    noise: float
    constant: float

    def kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        U, V = (A - self.Z[0]) / self.lengthscale, (B - self.Z[0]) / self.lengthscale
        squares = (U**2).sum(axis=1)[:, None] + (V**2).sum(axis=1) - 2 * U @ V.T
        return self.variance * np.exp(-np.maximum(squares, 0) / 2)

    @cached_property
    def factor(self) -> tuple[np.ndarray, bool]:
        return cho_factor(
            self.kernel(self.Z, self.Z) + self.noise * np.eye(len(self.Z)), lower=True
        )

    @cached_property
    def alpha(self) -> np.ndarray:
        return cho_solve(self.factor, self.y - self.constant)

    def predict(self, points: np.ndarray) -> np.ndarray:
        return self.constant + self.kernel(points, self.Z) @ self.alpha

    def covariance(self, points: np.ndarray) -> np.ndarray:
        cross = self.kernel(self.Z, points)
        return self.kernel(points, points) - cross.T @ cho_solve(self.factor, cross)

    def gradient(self, points: np.ndarray) -> np.ndarray:
        """Of the posterior mean, (n, d)."""
        weights = self.kernel(points, self.Z) * self.alpha
        steps = (self.Z - points[:, None]) / self.lengthscale**2
        return np.einsum("nm,nmd->nd", weights, steps)


@dataclass(frozen=True)
class Problem:
    """The fitted GP in each library, the rows X to explain and the baseline b."""

    names: list[str]
    X: np.ndarray
    b: np.ndarray
    model: gpattr.GPRegressor
    gp: PlainGP
    sklearn_gp: GaussianProcessRegressor
    torch_gp: TorchGP
    disagreement: float
    evaluations: list[int] = field(default_factory=lambda: [0])

    def predict(self, points: np.ndarray) -> np.ndarray:
        """What SHAP and shapiq are given: scikit-learn's model, as their users have it."""
        self.evaluations[0] += len(points)
        return self.sklearn_gp.predict(points) + self.gp.constant

    def predict_tensor(self, points: torch.Tensor) -> torch.Tensor:
        """What Captum is given."""
        self.evaluations[0] += len(points)
        return self.torch_gp(points).mean

    @property
    def d(self) -> int:
        return len(self.b)

    @cached_property
    def explanation(self) -> gpattr.Explanation:
        return gpattr.Explainer(self.model)(self.X)

    @property
    def worth_of_nothing(self) -> float:
        """The worth of no feature in the game of shapiq's ProductKernelExplainer: every kernel
        factor is 1.
        """
        return self.gp.constant + self.gp.variance * self.gp.alpha.sum()


def fit() -> Problem:
    """Train gpattr's model, and give its hyperparameters to scikit-learn, GPyTorch and NumPy; all
    must predict the same.
    """
    data = load_diabetes(scaled=False)
    kept = [i for i, name in enumerate(data.feature_names) if name not in LEFT_OUT]
    order = np.random.default_rng(0).permutation(len(data.target))
    train, rows = order[:N_TRAIN], order[N_TRAIN : N_TRAIN + N_ROWS]
    Z, y, X = data.data[train][:, kept], data.target[train], data.data[rows][:, kept]
    model = gpattr.GPRegressor().fit(Z, y)
    posterior = model.posterior_
    kernel = posterior.kernel
    gp = PlainGP(
        Z,
        y,
        kernel.lengthscale,
        float(kernel.variance),
        float(posterior.noise[0]),
        float(posterior.mean(Z[:1])[0]),
    )
    sklearn_gp = GaussianProcessRegressor(
        ConstantKernel(gp.variance) * RBF(gp.lengthscale), alpha=gp.noise, optimizer=None
    )
    sklearn_gp.fit(Z, y - gp.constant)
    torch_gp = in_gpytorch(gp)
    points = np.vstack([X, Z])
    with torch.no_grad():
        others = [
            sklearn_gp.predict(points) + gp.constant,
            torch_gp(torch.tensor(points)).mean.numpy(),
            gp.predict(points),
        ]
    disagreement = max(float(np.abs(other - model.predict(points)).max()) for other in others)
    assert disagreement < 1e-6, f"the models differ by {disagreement}"
    names = [data.feature_names[i] for i in kept]
    return Problem(names, X, Z.mean(axis=0), model, gp, sklearn_gp, torch_gp, disagreement)


class TorchGP(gpytorch.models.ExactGP):
    """An exact GP with a constant mean and a scaled ARD RBF kernel."""

    def __init__(self, Z: torch.Tensor, y: torch.Tensor) -> None:
        super().__init__(Z, y, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel(ard_num_dims=Z.shape[1])
        )

    def forward(self, points: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(
            self.mean_module(points), self.covar_module(points)
        )


def in_gpytorch(gp: PlainGP) -> TorchGP:
    model = TorchGP(torch.tensor(gp.Z), torch.tensor(gp.y)).double()
    values = {  # tensors of doubles: GPyTorch rounds Python's floats to single precision
        "mean_module.constant": gp.constant,
        "covar_module.outputscale": gp.variance,
        "covar_module.base_kernel.lengthscale": gp.lengthscale,
        "likelihood.noise": gp.noise,
    }
    model.initialize(
        **{name: torch.as_tensor(value, dtype=torch.float64) for name, value in values.items()}
    )
    return model.eval()


# The truths.


def true_integrated_gradients(gp: PlainGP, X: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(x − b) ∫₀¹ ∇F(b + t(x − b)) dt by Gauss–Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    t = (nodes[:, None] + 1) / 2
    return np.array([(x - b) * (weights / 2 @ gp.gradient(b + t * (x - b))) for x in X])


def in_30_digits(gp: PlainGP, x: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same integral for one row, by mpmath: adaptive quadrature with 30 digits, kernel and
    gradient included.
    """
    with mpmath.workdps(30):
        scales, start, end, alpha = (
            [mpmath.mpf(float(v)) for v in vector] for vector in (gp.lengthscale, b, x, gp.alpha)
        )
        Z = [[mpmath.mpf(float(v)) for v in z] for z in gp.Z]
        seen: dict[Any, list[Any]] = {}

        def gradient(t: Any) -> list[Any]:
            if t not in seen:
                point = [u + t * (v - u) for u, v in zip(start, end, strict=True)]
                total = [mpmath.mpf(0)] * len(point)
                for z, a in zip(Z, alpha, strict=True):
                    steps = [(u - p) / s for u, p, s in zip(z, point, scales, strict=True)]
                    weight = a * gp.variance * mpmath.exp(-sum(u * u for u in steps) / 2)
                    total = [
                        c + weight * u / s for c, u, s in zip(total, steps, scales, strict=True)
                    ]
                seen[t] = total
            return seen[t]

        integrals = [
            mpmath.quad(lambda t, i=i: gradient(t)[i], [0, 1], method="gauss-legendre")
            for i in range(len(x))
        ]
        return np.array(
            [float((v - u) * value) for u, v, value in zip(start, end, integrals, strict=True)]
        )


def true_shapley(gp: PlainGP, X: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Shapley values of the predictions at all 2ᵈ mixtures of row and baseline."""
    sets, shapley = coalitions(len(b))
    return np.array([shapley @ (gp.predict(mixtures(x, b, sets)) - gp.predict(b[None])) for x in X])


def true_product_kernel_shapley(gp: PlainGP, X: np.ndarray) -> np.ndarray:
    """Shapley values of the game of shapiq's ProductKernelExplainer: features outside a set leave
    the kernel, as factors 1.
    """
    sets, shapley = coalitions(X.shape[1])
    squares = [((gp.Z - x) / gp.lengthscale) ** 2 for x in X]
    return np.array(
        [shapley @ (gp.variance * np.exp(sets @ square.T / -2) @ gp.alpha) for square in squares]
    )


# The tools.


@dataclass(frozen=True)
class Tool:
    """A method to explain all rows; ``explain`` takes a seed, which only ``random`` tools use."""

    name: str
    computes: str
    explain: Callable[[int], np.ndarray]
    uncertainty: str = "none"
    random: bool = False
    points: str = ""  # per row, where they are not counted
    column: str = ""  # its column in the table of one row
    one_row_a_call: bool = False  # for its time only


def every_tool(problem: Problem) -> list[Tool]:
    makers = gpattr_tools, captum_tools, shap_tools, shapiq_tools, gp_shap_tools
    return [tool for make in makers for tool in make(problem)]


def gpattr_tools(problem: Problem) -> list[Tool]:
    X, explainer = problem.X, gpattr.Explainer(problem.model)

    def one_by_one(uncertainty: str) -> np.ndarray:
        return np.concatenate([explainer(x[None], uncertainty=uncertainty).values for x in X])

    joint, none = "exact joint covariance under the posterior", "none: closed form"
    return [
        Tool(
            "gpattr, means",
            IG,
            lambda seed: explainer(X, uncertainty="none").values,
            "not asked for",
            points=none,
        ),
        Tool(
            "gpattr, means and covariance",
            IG,
            lambda seed: explainer(X).values,
            joint,
            points=none,
            column="gpattr",
        ),
        Tool(
            "gpattr, means, one row per call",
            IG,
            lambda seed: one_by_one("none"),
            "not asked for",
            one_row_a_call=True,
        ),
        Tool(
            "gpattr, means and covariance, one row per call",
            IG,
            lambda seed: one_by_one("cov"),
            joint,
            one_row_a_call=True,
        ),
    ]


def captum_tools(problem: Problem) -> list[Tool]:
    """Captum on GPyTorch's mean, by Captum's default rule (Gauss–Legendre), without the variances,
    which it does not need.
    """
    X, b = torch.tensor(problem.X), torch.tensor(problem.b)[None]
    method = IntegratedGradients(problem.predict_tensor)

    def attribute(n_steps: int, batch: int | None = None) -> np.ndarray:
        with gpytorch.settings.skip_posterior_variances(True):
            return (
                method.attribute(X, baselines=b, n_steps=n_steps, internal_batch_size=batch)
                .detach()
                .numpy()
            )

    return [
        Tool(
            "Captum IntegratedGradients, 50 steps (default)",
            IG,
            lambda seed: attribute(50),
            column="Captum, 50",
        ),
        Tool("Captum IntegratedGradients, 500 steps", IG, lambda seed: attribute(500, 1000)),
    ]


def shap_tools(problem: Problem) -> list[Tool]:
    X, background = problem.X, problem.b[None]
    exact = shap.explainers.Exact(problem.predict, shap.maskers.Independent(background))
    kernel = shap.KernelExplainer(problem.predict, background)

    def values(seed: int, **options: Any) -> np.ndarray:
        # KernelExplainer takes no seed: it draws from this global state.
        np.random.seed(seed)  # noqa: NPY002
        return kernel.shap_values(X, silent=True, **options)

    few = f"shap Kernel, nsamples={SAMPLED}"
    return [
        Tool("shap Exact", SHAPLEY, lambda seed: exact(X, silent=True).values, column="shap Exact"),
        Tool("shap Kernel (default)", SHAPLEY, values, random=True, column="shap Kernel"),
        Tool(
            "shap Kernel, l1_reg=False",
            SHAPLEY,
            lambda seed: values(seed, l1_reg=False),
            random=True,
        ),
        Tool(
            few,
            SHAPLEY,
            lambda seed: values(seed, nsamples=SAMPLED),
            random=True,
            column=f"shap Kernel, {SAMPLED}",
        ),
    ]


def shapiq_tools(problem: Problem) -> list[Tool]:
    X, gp, d = problem.X, problem.gp, problem.d
    # The baseline is the mean of Z. (Given b alone, the values are the same but shapiq reports a
    # baseline value of 0.)
    explainer = shapiq.TabularExplainer(
        problem.predict, gp.Z, imputer="baseline", index="SV", max_order=1
    )
    # ProductKernelExplainer takes a kernel of RBF alone, with one length-scale: the same mean, in
    # units of the length-scales.
    scaled = GaussianProcessRegressor(RBF(1.0), alpha=gp.noise / gp.variance, optimizer=None)
    kernel_explainer = ProductKernelExplainer(scaled.fit(gp.Z / gp.lengthscale, gp.y - gp.constant))

    def exact(seed: int) -> np.ndarray:
        games = [BaselineImputer(problem.predict, problem.b[None], x=x) for x in X]
        return first_order([ExactComputer(game, n_players=d)("SV", order=1) for game in games])

    def regression(budget: int) -> Callable[[int], np.ndarray]:
        return lambda seed: first_order(explainer.explain_X(X, budget=budget, random_state=seed))

    def product_kernel(seed: int) -> np.ndarray:
        return first_order(kernel_explainer.explain_X(X / gp.lengthscale))

    few, none = f"shapiq KernelSHAP, budget {SAMPLED}", "none: closed form"
    return [
        Tool("shapiq ExactComputer", SHAPLEY, exact),
        Tool(f"shapiq KernelSHAP, budget {2**d}", SHAPLEY, regression(2**d), random=True),
        Tool(few, SHAPLEY, regression(SAMPLED), random=True, column=f"shapiq, {SAMPLED}"),
        Tool(
            "shapiq ProductKernelExplainer",
            OTHER_GAME,
            product_kernel,
            points=none,
            column="shapiq ProductKernel",
        ),
    ]


def first_order(results: list[shapiq.InteractionValues]) -> np.ndarray:
    return np.array([result.get_n_order_values(1) for result in results])


def gp_shap_tools(problem: Problem) -> list[Tool]:
    X, b, joint, points = (
        problem.X,
        problem.b,
        "exact joint covariance under the posterior",
        f"{2**problem.d}, jointly",
    )

    def by_definition(seed: int) -> np.ndarray:
        return np.array([gp_shap_by_definition(problem.model.posterior_, x, b)[0] for x in X])

    def short(seed: int) -> np.ndarray:
        return np.array([gp_shap(problem.gp, x, b)[0] for x in X])

    return [
        Tool("GP-SHAP (our code)", SHAPLEY, by_definition, joint, points=points),
        Tool(
            "GP-SHAP (our code), shortened", SHAPLEY, short, joint, points=points, column="GP-SHAP"
        ),
    ]


def gp_shap_by_definition(
    posterior: gpattr.posteriors.Posterior, x: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the Shapley values of f ~ the posterior: a linear map of the joint law
    of f at all 2ᵈ mixtures.
    """
    sets, shapley = coalitions(len(b))
    mean, cov = posterior.predict(mixtures(x, b, sets), return_cov=True)
    return shapley @ mean, shapley @ cov @ shapley.T


def gp_shap(gp: PlainGP, x: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, mapped before it is solved: d right-hand sides instead of 2ᵈ."""
    sets, shapley = coalitions(len(b))
    points = mixtures(x, b, sets)
    cross = shapley @ gp.kernel(points, gp.Z)
    return cross @ gp.alpha, shapley @ gp.kernel(points, points) @ shapley.T - cross @ cho_solve(
        gp.factor, cross.T
    )


# What is measured.


@dataclass(frozen=True)
class Answer:
    """The result of a tool, its error, and its cost."""

    values: np.ndarray
    error: float
    between_seeds: float
    gap: float
    evaluations: float

    @classmethod
    def of(cls, tool: Tool, problem: Problem, truth: np.ndarray) -> Answer:
        problem.evaluations[0] = 0
        values = tool.explain(0)
        evaluations = problem.evaluations[0] / len(values)
        again = tool.explain(1) if tool.random else values
        start = (
            problem.worth_of_nothing
            if tool.computes == OTHER_GAME
            else problem.gp.predict(problem.b[None])
        )
        gap = values.sum(axis=1) - (problem.gp.predict(problem.X) - start)
        differences = np.stack([values, again]) - truth, values - again, gap
        error, between_seeds, gap = (
            float(np.abs(part).max() / np.abs(truth).max()) for part in differences
        )
        return cls(values, error, between_seeds, gap, evaluations)


@dataclass(frozen=True)
class Times:
    """Seconds per row, and the ratios to gpattr's means and to its means and covariance timed next
    to it.
    """

    seconds: float
    to_means: float
    to_covariance: float

    @classmethod
    def of(cls, samples: list[tuple[float, float, float]]) -> Times:
        """From pairs: seconds of gpattr's means, of its means and covariance, and of the tool, for
        all rows.
        """
        means, covariances, own = np.array(samples).T
        return cls(np.median(own) / N_ROWS, np.median(own / means), np.median(own / covariances))


def side_by_side(tools: list[Tool], rounds: int) -> list[Times]:
    """Medians over the rounds; in each, gpattr's means and covariance are timed immediately before
    every other tool.
    """
    for tool in tools:
        tool.explain(0)  # compilation and caches do not count
    means, covariance, *others = tools
    samples: dict[str, list[tuple[float, float, float]]] = {tool.name: [] for tool in others}
    for _ in range(rounds):
        for tool in others:
            trio = (
                seconds_of(lambda each=each: each.explain(0)) for each in (means, covariance, tool)
            )
            samples[tool.name].append(tuple(trio))
    references = [(m, c) for sample in samples.values() for m, c, _ in sample]
    samples[means.name] = [(m, c, m) for m, c in references]
    samples[covariance.name] = [(m, c, c) for m, c in references]
    return [Times.of(samples[tool.name]) for tool in tools]


def seconds_of(action: Callable[[], Any], at_least: float = 0.03) -> float:
    """The mean time of a call, over as many as fill 30 ms."""
    calls, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < at_least or not calls:
        action()
        calls += 1
    return elapsed / calls


def prediction_times(problem: Problem) -> tuple[float, float]:
    """Seconds for all coalitions of a row, by scikit-learn, as SHAP and shapiq have it, and by
    NumPy.
    """
    points = mixtures(problem.X[0], problem.b, coalitions(problem.d)[0])
    pairs = [
        [
            seconds_of(lambda each=each: each(points))
            for each in (problem.predict, problem.gp.predict)
        ]
        for _ in range(15)
    ]
    theirs, bare = np.median(pairs, axis=0)
    return float(theirs), float(bare)


def brute_force(gp: PlainGP, x: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Attributions of N_DRAWS functions drawn from the posterior, and their covariance on the same
    grid without drawing.

    f is drawn jointly at ± 1/100 of a length-scale in each feature about the middles of N_STEPS
    steps along the path; differences are its partial derivatives, their mean times x − b the
    attribution."""
    d = len(b)
    path = b + (np.arange(N_STEPS)[:, None] + 0.5) / N_STEPS * (x - b)
    steps = 0.01 * np.diag(gp.lengthscale)
    points = np.concatenate([path + sign * step for step in steps for sign in (1, -1)])
    attribute = np.zeros((d, len(points)))
    for i in range(d):
        part = slice(2 * i * N_STEPS, 2 * (i + 1) * N_STEPS)
        attribute[i, part] = (x - b)[i] / (2 * steps[i, i] * N_STEPS) * np.repeat([1, -1], N_STEPS)
    cov = gp.covariance(points)
    draws = np.random.default_rng(0).multivariate_normal(
        gp.predict(points), cov, size=N_DRAWS, method="eigh", check_valid="ignore"
    )
    return draws @ attribute.T, attribute @ cov @ attribute.T


# The page.


def machine() -> str:
    packages = ("numpy", "gpattr", "shap", "shapiq", "captum", "gpytorch", "torch", "scikit-learn")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"Machine: {processor()}, {os.cpu_count()} cores; Python {platform.python_version()},"
        f" {versions}."
    )


def set_up(problem: Problem, truths: dict[str, np.ndarray]) -> list[str]:
    X, gp = problem.X, problem.gp
    reference = in_30_digits(gp, X[0], problem.b)
    check = np.abs(truths[IG][0] - reference).max() / np.abs(reference).max()
    model = paragraph(f"""
        **One model, one question.** scikit-learn's diabetes data without s2 and s4, which
        mostly follow from s1 and s3: {problem.d} features, {len(gp.Z)} patients to train on,
        {len(X)} others to explain. gpattr trained the GP (squared exponential, one length-scale
        per feature, constant mean). Its hyperparameters were copied to scikit-learn's
        `GaussianProcessRegressor` (for SHAP and shapiq), to GPyTorch in double precision (for
        Captum) and to plain NumPy (for the reference values); the predictions of all four agree
        to {problem.disagreement:.0e} in the units of the target. Rows are explained against one
        baseline b, the mean of the training inputs: the start of the path of integrated
        gradients, and the only background point of Shapley values.""")
    truth = paragraph(f"""
        **Two quantities.** gpattr and Captum compute integrated gradients; SHAP, shapiq and
        GP-SHAP compute Shapley values. Both sum to F(x) − F(b), the change of the prediction
        from b to x. They agree for additive functions, but not in general: for x₁x₂² at (1, 1)
        with the baseline (0, 0), integrated gradients are ⅓ and ⅔, Shapley values ½ and ½.
        Neither is an error of the other, so every tool is compared with the exact values of its
        own quantity. For integrated gradients this is Gauss–Legendre quadrature with {N_NODES}
        nodes of the gradient written out in NumPy (for the first row it agrees with 30-digit
        quadrature by mpmath to {check:.0e} of the largest attribution); for Shapley values,
        enumeration of all 2^{problem.d} = {2**problem.d} coalitions.""")
    return [model, truth]


def questions(problem: Problem, tools: list[Tool], answers: list[Answer]) -> list[str]:
    rows = [
        [tool.name, tool.computes, tool.points or f"{answer.evaluations:.0f}", tool.uncertainty]
        for tool, answer in zip(tools, answers, strict=True)
        if not tool.one_row_a_call
    ]
    notes = paragraph(f"""
        The points are counted, and averaged over rows; Captum takes a gradient at each as well.
        GP-SHAP (S. L. Chau, K. Muandet, D. Sejdinovic, *Explaining the Uncertain: Stochastic
        Shapley Values for Gaussian Process Models*, NeurIPS 2023) has no package on PyPI. Both
        lines are **our implementation of the definition, not the authors' code**, and the worth
        of a coalition is f with the missing features set to the baseline, as for the other
        tools here; the paper uses conditional expectations. Shapley values are a linear map of
        the {2**problem.d} worths, whose joint distribution under the posterior is normal, so
        their mean and covariance are exact; “shortened” applies the map before the linear
        solve. shapiq's ProductKernelExplainer is designed for models like this one, but has no
        baseline: for a missing feature, the factor of the kernel is set to 1. This is a
        different game; its values are compared with the exact values of that game, and are not
        comparable with the others.""")
    head = [
        "tool",
        "computes",
        "points per row at which the model is evaluated",
        "uncertainty of the attributions",
    ]
    return ["### What each tool computes", table(head, rows, right=False), notes]


def speed(problem: Problem, tools: list[Tool], times: list[Times], rounds: int) -> list[str]:
    one_row = {
        tool.uncertainty.startswith("exact"): t.seconds
        for tool, t in zip(tools, times, strict=True)
        if tool.one_row_a_call
    }
    rows = [
        [
            tool.name,
            digits(1e3 * t.seconds),
            digits(t.to_means),
            digits(t.to_covariance) if tool.uncertainty.startswith("exact") else "",
            (
                digits(t.seconds / one_row[tool.uncertainty.startswith("exact")])
                if tool.name.startswith(ROW_BY_ROW)
                else ""
            ),
        ]
        for tool, t in zip(tools, times, strict=True)
    ]
    theirs, bare = prediction_times(problem)
    notes = paragraph(f"""
        Medians of {rounds} rounds over the same {N_ROWS} rows, all on one thread. In every
        round gpattr is timed immediately before each tool, and the ratio is the median of these
        pairs; the ratio to means and covariance is given if the tool computes a covariance.
        Explainers are built beforehand, and a warm-up call is not timed. gpattr and Captum
        explain all rows in one call and share its overhead; SHAP, shapiq and GP-SHAP process
        rows one by one, so gpattr is also listed with one row per call, and the last column
        compares them with that, including its covariance if they have one. SHAP and shapiq
        predict with scikit-learn's model, which takes {1e3 * theirs:.2f} ms for all
        {2**problem.d} coalitions of a row (bare NumPy: {1e3 * bare:.2f} ms); the rest is
        overhead. GPyTorch skips variances, which Captum does not need, and the 500 steps are
        evaluated in batches of 1000 points, which is faster here than all at once. The times of
        enumeration (shap Exact, shapiq at full budget, GP-SHAP, and shap Kernel up to 11
        features) at least double with every additional feature.""")
    return [
        "### Time per explained row",
        table(
            [
                "tool",
                "ms",
                "× gpattr's means",
                "× gpattr's means and covariance",
                "× gpattr, one row per call",
            ],
            rows,
        ),
        notes,
    ]


def errors(
    problem: Problem, tools: list[Tool], answers: list[Answer], truths: dict[str, np.ndarray]
) -> list[str]:
    rows = [
        [
            tool.name,
            power(a.error),
            power(a.between_seeds) if tool.random else "not random",
            power(a.gap),
        ]
        for tool, a in zip(tools, answers, strict=True)
        if not tool.one_row_a_call
    ]
    largest = ", ".join(f"{np.abs(truth).max():.1f} for {name}" for name, truth in truths.items())
    apart, ours, theirs = covariance_errors(problem)
    notes = paragraph(
        f"""
        Largest over all rows and features, relative to the largest attribution ({largest}), and
        the worse of two seeds; values below 1e-13 are rounding. The completeness gap is that of
        Σ attributions = F(x) − F(b); for ProductKernelExplainer, of F(x) minus its worth of the
        empty coalition. Captum rounds the weights of its quadrature to single precision,
        whatever the precision of the model; this causes its error, which more steps do not
        reduce. shap's KernelExplainer uses up to {2 * problem.d + 2048} evaluations by default,
        enough for all coalitions of up to 11 features: here it enumerates them, and is not
        random. Its error comes from selecting features (`l1_reg="num_features(10)"`, by
        least-angle regression), which sets the smallest attributions to zero. shapiq's
        KernelSHAP weights the empty and the full coalition with 10⁸ in place of a constraint,
        hence its error at full budget. With {SAMPLED} evaluations both sample, as shap does by
        default for 12 features or more."""
    )
    more = paragraph(
        f"""
        Covariances: the two implementations of GP-SHAP differ by {apart:.0e} of the largest
        entry. The sum of all entries must be the variance of f(x) − f(b), and agrees with it to
        {ours:.0e} for gpattr and to {theirs:.0e} for GP-SHAP."""
    )
    return [
        "### Errors",
        table(["tool", "error", "difference between two seeds", "completeness gap"], rows),
        notes,
        more,
    ]


def covariance_errors(problem: Problem) -> tuple[float, float, float]:
    """Between the two GP-SHAPs, and of completeness, gpattr's and GP-SHAP's; relative."""
    X, b, gp = problem.X, problem.b, problem.gp
    short = np.array([gp_shap(gp, x, b)[1] for x in X])
    full = np.array([gp_shap_by_definition(problem.model.posterior_, x, b)[1] for x in X])
    pairs = np.array([gp.covariance(np.array([x, b])) for x in X])
    variance = pairs[:, 0, 0] + pairs[:, 1, 1] - 2 * pairs[:, 0, 1]
    gaps = [
        float(np.abs(cov.sum(axis=(1, 2)) / variance - 1).max())
        for cov in (problem.explanation.cov, full)
    ]
    return float(np.abs(short - full).max() / np.abs(full).max()), gaps[0], gaps[1]


def one_row(problem: Problem, tools: list[Tool], answers: list[Answer]) -> list[str]:
    """The first row by every tool that has a column for it."""
    x, b = problem.X[0], problem.b
    deviations = {
        "gpattr": problem.explanation.std[0],
        "GP-SHAP": np.sqrt(np.diag(gp_shap(problem.gp, x, b)[1])),
    }
    columns = {
        tool.column: signed(answer.values[0], deviations.get(tool.column))
        for tool, answer in zip(tools, answers, strict=True)
        if tool.column
    }
    labels = [[name, f"{x[i]:.4g}", f"{b[i]:.4g}"] for i, name in enumerate(problem.names)] + [
        ["sum", "", ""]
    ]
    rows = [[*label, *(column[i] for column in columns.values())] for i, label in enumerate(labels)]
    at_x, at_b = problem.gp.predict(np.array([x, b]))
    notes = paragraph(f"""
        In the units of the target, the progression of the disease (25 to 346); ± is one
        standard deviation. F(x) = {at_x:.3f}, F(b) = {at_b:.3f}, F(x) − F(b) =
        {at_x - at_b:+.3f}. gpattr and Captum show integrated gradients, the others Shapley
        values; ProductKernel's sum to F(x) minus {problem.worth_of_nothing:.1f}, the worth of
        the empty coalition in its game. shapiq's exact values are those of shap Exact.""")
    return ["### The first explained row", table(["feature", "x", "b", *columns], rows), notes]


def signed(values: np.ndarray, std: np.ndarray | None) -> list[str]:
    """A column of the table: values, with their standard deviations where there are any, and the
    sum.
    """
    more = [""] * len(values) if std is None else [f" ± {s:.3f}" for s in std]
    return [
        f"{value:+.3f}{end}"
        for value, end in zip([*values, values.sum()], [*more, ""], strict=True)
    ]


def difference(problem: Problem, truths: dict[str, np.ndarray]) -> list[str]:
    """How far the two exact quantities, and their standard deviations, are apart."""
    ig, shapley, std = truths[IG], truths[SHAPLEY], problem.explanation.std
    gap = np.abs(ig - shapley)
    shapley_std = np.sqrt([np.diag(gp_shap(problem.gp, x, problem.b)[1]) for x in problem.X])
    same = (np.abs(ig).argmax(axis=1) == np.abs(shapley).argmax(axis=1)).sum()
    low, middle, high = np.quantile(shapley_std / std, [0.05, 0.5, 0.95])
    rows = [
        ["RMS of the integrated gradients", f"{rms(ig):.2f}"],
        ["RMS of the difference", f"{rms(gap):.2f}, or {100 * rms(gap) / rms(ig):.1f} %"],
        ["largest difference", f"{gap.max():.2f}"],
        ["correlation", f"{np.corrcoef(ig.ravel(), shapley.ravel())[0, 1]:.4f}"],
        ["same strongest feature", f"{same} of {len(ig)} rows"],
        ["RMS of gpattr's standard deviations", f"{rms(std):.2f}"],
        [
            "difference less than gpattr's standard deviation",
            f"{(gap < std).sum()} of {gap.size} attributions",
        ],
        [
            "std of the Shapley value / std of the integrated gradient: median (5 % to 95 %)",
            f"{middle:.2f} ({low:.2f} to {high:.2f})",
        ],
    ]
    notes = paragraph(
        f"""
        The exact values of the two quantities, over {len(ig)} rows × {problem.d} features, and
        the exact standard deviations of gpattr and GP-SHAP. They are specific to this GP; with
        stronger interactions the two quantities differ more."""
    )
    head = ["integrated gradients and Shapley values", "value"]
    return ["### Differences between the two quantities", table(head, rows), notes]


def rms(values: np.ndarray) -> float:
    return float(np.sqrt((values**2).mean()))


def uncertainty(problem: Problem) -> list[str]:
    """gpattr's standard deviations against functions drawn from the posterior."""
    std, cov = problem.explanation.std[0], problem.explanation.cov[0]
    draws, grid = brute_force(problem.gp, problem.X[0], problem.b)
    drawn, undrawn = draws.std(axis=0, ddof=1), np.sqrt(np.diag(grid))
    rows = [
        [
            name,
            f"{std[i]:.4g}",
            f"{drawn[i]:.4g}",
            f"{100 * (drawn[i] / std[i] - 1):+.1f} %",
            f"{100 * (undrawn[i] / std[i] - 1):+.3f} %",
        ]
        for i, name in enumerate(problem.names)
    ]
    apart = np.abs(np.corrcoef(draws.T) - cov / np.outer(std, std)).max()
    of_std, of_correlation = 100 / np.sqrt(2 * (N_DRAWS - 1)), 1 / np.sqrt(N_DRAWS)
    notes = paragraph(f"""
        For the first row, f was drawn {N_DRAWS} times from the posterior, jointly at
        {2 * problem.d * N_STEPS} points about the path (with the posterior covariance in plain
        NumPy), differentiated by finite differences and integrated over {N_STEPS} steps. The
        standard deviation of {N_DRAWS} draws has itself a standard error of {of_std:.1f} %, a
        correlation one of up to {of_correlation:.3f}. The last column takes the covariance of
        the same sums of differences without drawing, which leaves the error of the differences.
        The correlations between features, of the draws and of gpattr, differ by at most
        {apart:.3f}.""")
    head = [
        "feature",
        "std, gpattr",
        f"std of {N_DRAWS} draws",
        "difference",
        "difference without drawing",
    ]
    return ["### gpattr's uncertainty, by brute force", table(head, rows), notes]


if __name__ == "__main__":
    main()
