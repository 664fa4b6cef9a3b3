"""Partial dependence and Sobol indices of one fitted GP by gpattr, scikit-learn, Ax and SALib:
times and errors, from one run.

    python benchmarks/compare_dependence.py [--rounds 5]
        [--write docs/compare_dependence_results.md]

Prints Markdown. Needs ax-platform and SALib. Every tool gets the same model; every index is held
against integrals computed here, by no code of gpattr's nor of the tool's."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from pages import digits, machine, paragraph, power, table, write_page
from sobol_truths import ISHIGAMI, Case, borehole_case, ishigami, ishigami_case, posterior_truth
from timing import processor_seconds_of

PACKAGES = "numpy torch gpattr scikit-learn botorch ax-platform SALib"
SEEDS = 8  # of tools that sample
MANY_ROWS = 2**16
GRID, N_BACKGROUND, N_TRAIN, N_FEATURES = 50, 500, 1000, 10


def compare(rounds: int) -> str:
    """The whole page."""
    before = os.getloadavg()[0]
    three, eight = ishigami_case(), borehole_case()
    sections = [
        *dependence_section(rounds),
        *sobol_section(three, rounds, "Sobol indices, 3 features"),
        *spread_section(three, rounds),
        *sobol_section(eight, rounds, "Sobol indices, 8 features"),
        quasi_random_note(),
    ]
    top = machine(PACKAGES, (before, os.getloadavg()[0]))
    return "\n\n".join([top, *set_up(rounds), *sections])


# What is measured.


def best_times(actions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The best processor time of each, timed in turn after a call of each that is not timed."""
    for action in actions.values():
        action()
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            times[name].append(processor_seconds_of(action))
    return {name: min(some) for name, some in times.items()}


@dataclass(frozen=True)
class Sampler:
    """A tool that estimates indices (d, 2) from ``n`` rows of a design and a seed."""

    name: str
    indices: Callable[[int, int], np.ndarray]
    most: int = MANY_ROWS

    def error(self, n: int, truth: np.ndarray) -> float:
        """The root mean square over seeds of the largest error of all indices."""
        off = [np.abs(self.indices(n, seed) - truth).max() for seed in range(SEEDS)]
        return float(np.sqrt(np.mean(np.square(off))))


def samplers(case: Case) -> list[Sampler]:
    """Ax and SALib on the posterior mean of the model."""
    import torch
    from ax.utils.sensitivity.sobol_measures import SobolSensitivity, SobolSensitivityGPMean
    from SALib.analyze import sobol as analyze
    from SALib.sample import sobol as sample

    bounds = torch.tensor(np.stack([case.low, case.high]))
    names = [f"x{j}" for j in range(case.d)]
    ends = np.stack([case.low, case.high], axis=1).tolist()
    problem = {"num_vars": case.d, "names": names, "bounds": ends}

    def both(found: Any) -> np.ndarray:
        parts = [found.first_order_indices(), found.total_order_indices()]
        return torch.stack(parts, dim=1).detach().numpy()

    def of_model(n: int, seed: int) -> np.ndarray:
        torch.manual_seed(seed)
        return both(SobolSensitivityGPMean(case.model, bounds, num_mc_samples=n))

    def of_function(n: int, seed: int) -> np.ndarray:
        torch.manual_seed(seed)
        found = SobolSensitivity(
            bounds, lambda X: torch.tensor(case.predict(X.numpy())), num_mc_samples=n
        )
        found.evalute_function()
        return both(found)

    def salib(n: int, seed: int) -> np.ndarray:
        X = sample.sample(problem, n, calc_second_order=False, seed=seed)
        found = analyze.analyze(
            problem, case.predict(X), calc_second_order=False, num_resamples=2, seed=seed
        )
        return np.stack([found["S1"], found["ST"]], axis=1)

    return [
        Sampler("Ax SobolSensitivityGPMean", of_model, 2**13),
        Sampler("Ax SobolSensitivity, quick mean", of_function),
        Sampler("SALib, Sobol' sequence, quick mean", salib),
    ]


def rows_in(tool: Sampler, seconds: float) -> int:
    """The least number of rows, a power of two, with which a tool takes at least this time."""
    n = 8
    while n < 2**20 and best_times({"": lambda k=n: tool.indices(k, 0)}, 2)[""] < seconds:
        n *= 2
    return n


def error_on_function(n: int, qmc: bool) -> float:
    """The largest error of Ax's indices of the Ishigami function itself, which are known."""
    import torch
    from ax.utils.sensitivity.sobol_measures import SobolSensitivity

    bounds = torch.tensor([[-np.pi] * 3, [np.pi] * 3], dtype=torch.double)
    torch.manual_seed(0)
    found = SobolSensitivity(
        bounds, lambda X: torch.tensor(ishigami(X.numpy())), num_mc_samples=n, input_qmc=qmc
    )
    found.evalute_function()
    both = [found.first_order_indices(), found.total_order_indices()]
    return float(np.abs(torch.stack(both, dim=1).numpy() - ISHIGAMI).max())


# The page.


def set_up(rounds: int) -> list[str]:
    return [paragraph(f"""
        **Times** are processor time on one thread; the best of {rounds} rounds after a call that is
        not timed. In every round gpattr is timed next to each tool, and a ratio is that of these
        two best times.""")]  # fmt: skip


def dependence_section(rounds: int) -> list[str]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF
    from sklearn.inspection import partial_dependence

    import gpattr

    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_TRAIN, N_FEATURES))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] ** 2 + 0.1 * rng.normal(size=N_TRAIN)
    kernel = RBF(np.linspace(1.0, 5.0, N_FEATURES))
    gp = GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None, normalize_y=True).fit(X, y)
    background, features = X[:N_BACKGROUND], range(N_FEATURES)
    ends: dict[str, Any] = {"percentiles": (0.0, 1.0), "grid_resolution": GRID}

    def theirs() -> list[Any]:
        return [partial_dependence(gp, background, [i], method="brute", **ends) for i in features]

    found = theirs()
    grids = [each["grid_values"][0] for each in found]
    explainer = gpattr.Explainer(gp)

    def ours(uncertainty: str) -> Callable[[], Any]:
        def curves() -> list[Any]:
            about: dict[str, Any] = {"background": background, "uncertainty": uncertainty}
            return [explainer.dependence(i, grids[i], **about) for i in features]

        return curves

    names = {"none": "gpattr, curves", "cov": "gpattr, curves with joint covariance"}
    values = np.array([each["average"][0] for each in found])
    mine = np.array([each.values for each in ours("none")()])
    apart = np.abs(mine - values).max() / np.ptp(values)
    brute = 'scikit-learn partial_dependence(method="brute")'
    actions = {names[key]: ours(key) for key in names} | {brute: theirs}
    best = best_times(actions, rounds)
    lines = [
        [name, digits(1e3 * seconds), *(digits(seconds / best[each]) for each in names.values())]
        for name, seconds in best.items()
    ]
    bands = ["none", "exact", "none"]
    lines = [[*line, band] for line, band in zip(lines, bands, strict=True)]
    about = paragraph(f"""
        One `GaussianProcessRegressor` of scikit-learn: a squared exponential with a length-scale
        per feature, {N_TRAIN} simulated training points, {N_FEATURES} features. The curves of all
        features, {GRID} values each, are averaged over the same {N_BACKGROUND} rows. The largest
        difference between gpattr's curves and scikit-learn's is {power(apart)} of their range.""")
    head = ["tool", "ms, all curves", "× gpattr's curves", "× gpattr's curves with covariance",
            "uncertainty"]  # fmt: skip
    return ["### Partial dependence", about, table(head, lines)]


def sobol_section(case: Case, rounds: int, title: str) -> list[str]:
    """Plug-in indices: at each tool's default number of rows, and in the time gpattr takes."""
    import gpattr

    inputs = gpattr.Uniform(case.low, case.high)

    def ours() -> Any:
        return gpattr.sobol_indices(case.model, inputs)

    def indices() -> np.ndarray:
        found = ours()
        return np.stack([found.plug_in_first, found.plug_in_total], axis=1)

    error = float(np.abs(indices() - case.truth).max())
    seconds = best_times({"ours": ours}, rounds)["ours"]
    # The error is divided by no less than what the reference itself is known to.
    least = max(error, case.accuracy)
    lines = [["gpattr, with posterior of the indices", "", digits(1e3 * seconds), "1",
              power(error), "1"]]  # fmt: skip
    equal_time = []
    for tool in samplers(case):
        for n in (rows_in(tool, seconds), tool.most):
            off = tool.error(n, case.truth)
            both = best_times({"ours": ours, "theirs": lambda t=tool, k=n: t.indices(k, 0)}, rounds)
            ratio = both["theirs"] / both["ours"]
            equal_time += [off / least] if n != tool.most else []
            lines.append([tool.name, f"{n:,}", digits(1e3 * both["theirs"]), digits(ratio),
                          power(off), power(off / least)])  # fmt: skip
    about = paragraph(f"""
        {case.words} The error is the largest of all first-order and total indices of the posterior
        mean ("plug-in"); of tools that sample it is the root mean square over {SEEDS} seeds. The
        reference is {case.reference}. Each tool is run with the least number of rows, a power of
        two, that took it as long as gpattr or longer when it was chosen, and with many. gpattr's
        time includes reading and checking the BoTorch model and 1000 draws from the posterior of
        all indices. SobolSensitivityGPMean asks BoTorch for means, with which GPyTorch computes
        covariances; the other two get a quick mean, k(x, Z)α, which is not part of either
        package.""")
    note = paragraph(f"""
        Given about gpattr's time or more, the errors of the others are {span(equal_time)} times as
        large as gpattr's.""")
    head = ["tool", "rows", "ms", "× gpattr", "error of indices", "× gpattr's error"]
    return [f"### {title}", about, table(head, lines), note]


def spread_section(case: Case, rounds: int) -> list[str]:
    """Posterior means and standard deviations of indices: gpattr and Ax."""
    import torch
    from ax.utils.sensitivity.sobol_measures import SobolSensitivityGPSampling

    import gpattr

    mean, std = posterior_truth(case)
    inputs, bounds = (
        gpattr.Uniform(case.low, case.high),
        torch.tensor(np.stack([case.low, case.high])),
    )

    def ours() -> tuple[np.ndarray, np.ndarray]:
        found = gpattr.sobol_indices(case.model, inputs)
        return (
            np.stack([found.first, found.total], axis=1),
            np.stack([found.first_std, found.total_std], axis=1),
        )

    def theirs(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        torch.manual_seed(seed)
        found = SobolSensitivityGPSampling(
            case.model, bounds, num_gp_samples=1000, num_mc_samples=n
        )
        both = [found.first_order_indices(), found.total_order_indices()]
        both = torch.stack(both, dim=1).detach().numpy()
        return both[..., 0], np.sqrt(both[..., 1])

    actions: dict[str, Callable[[], Any]] = {"gpattr": ours}
    for n in (128, 512):
        actions[f"Ax SobolSensitivityGPSampling, {n} rows"] = lambda k=n: theirs(k)
    best, lines = best_times(actions, min(rounds, 2)), []
    for name, action in actions.items():
        found, spread = action()
        off = np.abs(found - mean).max(), np.abs(spread - std).max() / std.max()
        times = best[name] / best["gpattr"]
        lines.append([name, digits(1e3 * best[name]), digits(times), *(power(e) for e in off)])
    about = paragraph("""
        The same model, but the posterior of the indices: its mean and standard deviation, from 1000
        draws each. The reference is 4000 draws of the function on a grid of 14³ Gauss–Legendre
        nodes. Standard deviations from so many draws differ by about 2.5 % by chance (one standard
        error). Errors are the largest of all indices, those of standard deviations relative to the
        largest, for one seed.""")
    head = ["tool", "ms", "× gpattr", "error of means", "error of std"]
    return ["### The posterior of the indices, 3 features", about, table(head, lines)]


def quasi_random_note() -> str:
    few, many = 2**10, MANY_ROWS
    plain, qmc = ([error_on_function(n, each) for n in (few, many)] for each in (False, True))
    return paragraph(f"""
        Ax also has quasi-random designs, `input_qmc=True`, which are left out of the tables. On the
        Ishigami function itself, without a model, the largest error of its indices is {qmc[0]:.2f}
        with {few:,} rows and {qmc[1]:.2f} with {many:,}; with independent rows it is {plain[0]:.3f}
        and {plain[1]:.3f}. Its two designs are scrambles of one sequence, and so not independent of
        each other.""")


def span(values: list[float]) -> str:
    """The smallest and largest of some numbers, rounded down to a power of ten."""
    low, high = (10 ** math.floor(math.log10(end)) for end in (min(values), max(values)))
    words = [f"10{str(round(math.log10(end))).translate(SUPERSCRIPT)}" for end in (low, high)]
    return f"more than {words[0]}" if low == high else f"{words[0]} to {words[1]}"


SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


if __name__ == "__main__":
    write_page(compare, __doc__, rounds=5)
