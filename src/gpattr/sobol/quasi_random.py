"""Variances of conditional expectations by quasi-random integration, for any posterior.

With f = m + Σⱼ ξⱼgⱼ + r (`DrawnFunctions`) each V_S is a quadratic form in (1, ξ), whose matrix is
one integral over the inputs (`Slice`), plus what r adds to it (`Plan.traces`). The integrals are
averages over the rows of independently scrambled Sobol' sequences, and the scatter between these is
the error. Draws of ξ give those of V_S; of r only the expectation is added, and so the spread is
too small by the share of r, at most `drawn_functions.LEFT` unless that takes too many functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from gpattr._core.array import EPS, Array, product
from gpattr._core.memory import check_memory
from gpattr.posteriors import Posterior
from gpattr.sobol.drawn_functions import CANDIDATES, DrawnFunctions
from gpattr.sobol.effects import Effects
from gpattr.sobol.inputs import Inputs
from gpattr.sobol.pick_freeze import Plan, Subset
from gpattr.sobol.slices import Slice, whole_form

REPLICATES, FEWEST_REPLICATES = 8, 2  # of a model alone, and of a model with little weight
CONFIDENCE = 0.99  # that the error of a mean over replicates is below the one reported
# Entries of covariance matrices that are evaluated, for the mean and for all functions: seconds.
# The mean of a mixture has as many matrices as models, of which few rows would be left.
MEAN_WORK, WORK, MIXTURE_WORK = 2e8, 1.5e8, 8e8
FEWEST, MOST = 8, 1024  # rows of each half of a replicate, which slices go through
LEFT_POINTS = 2048  # points of a replicate at which the covariance of r is evaluated


def quasi_random_effects(
    posterior: Posterior,
    inputs: Inputs,
    subsets: tuple[Subset, ...],
    n_draws: int,
    generator: np.random.Generator,
    share: float = 1.0,
) -> Effects:
    """Return V_S for subsets S of the players, with a numerical error that is estimated.

    ``share`` is that of the work which one model of a mixture gets: its weight. A model with little
    weight has few replicates, whose scatter tells its error only together with other models'
    (`pooled_scatter`).
    """
    plan = Plan.of(subsets, inputs.n_players)
    functions = DrawnFunctions.of(posterior, inputs.points(CANDIDATES, generator))
    alone, q = mean_function(posterior, inputs.n_columns), len(functions)
    check_memory("subsets: the quadratic forms", (len(subsets), q, q), "ask for fewer pairs")
    forms = np.zeros((len(subsets), q, q))
    replicates = max(FEWEST_REPLICATES, round(share * REPLICATES))
    plug_in, expected = np.empty((2, replicates, len(subsets)))
    points = 0
    for replicate in range(replicates):
        slices = [Slice.of(inputs, own, replicate, generator) for own in plan.evaluated]
        own, _ = integrated(plan, slices, inputs, functions, share * WORK, generator)
        # Most of V_S is that of the mean, which is quicker to evaluate: it gets more rows.
        mean, count = integrated(plan, slices, inputs, alone, share * MEAN_WORK, generator)
        own[:, 0, 0] = mean[:, 0, 0]
        plug_in[replicate] = mean[:, 0, 0]
        expected[replicate] = np.einsum("kii->k", own)
        expected[replicate] += rest(plan, inputs, functions, generator, share)
        forms += own / replicates
        points += count
    centre = expected.mean(axis=0)
    weights = np.column_stack([np.ones(n_draws), generator.standard_normal((n_draws, q - 1))])
    draws = quadratic(weights, forms)
    rounding = rounding_of(posterior, inputs, float(centre.max()), generator)
    return Effects(
        subsets,
        plug_in.mean(axis=0),
        centre,
        # The forms have the expectation of what is drawn; the remainder is that of r.
        draws + (centre - np.einsum("kii->k", forms)),
        np.maximum(scatter(plug_in), scatter(expected)) + rounding,
        f"quasi-random integration ({points:,} points)",
        expected,
        plug_in,
    )


def plug_in_effects(
    posterior: Posterior,
    inputs: Inputs,
    subsets: tuple[Subset, ...],
    generator: np.random.Generator,
) -> tuple[Array, Array]:
    """Return V_S of the posterior mean function alone, and its error, (k,) each."""
    plan = Plan.of(subsets, inputs.n_players)
    mean, found = mean_function(posterior, inputs.n_columns), np.empty((REPLICATES, len(subsets)))
    for replicate in range(REPLICATES):
        slices = [Slice.of(inputs, own, replicate, generator) for own in plan.evaluated]
        forms, _ = integrated(plan, slices, inputs, mean, MIXTURE_WORK, generator)
        found[replicate] = forms[:, 0, 0]
    return found.mean(axis=0), scatter(found)


def integrated(
    plan: Plan,
    slices: list[Slice],
    inputs: Inputs,
    functions: DrawnFunctions,
    work: float,
    generator: np.random.Generator,
) -> tuple[Array, int]:
    """Return the quadratic forms of V_S, (k, q, q), and how many points they took."""
    q, nodes, most = len(functions), sum(map(len, slices)), max(map(len, slices), default=32)
    affordable = work / REPLICATES / (2 * functions.cost * (nodes + most))
    n = 2 ** int(np.log2(min(max(affordable, FEWEST), MOST)))
    one, two = inputs.points(n, generator), inputs.points(n, generator)
    found = [part.forms(one, two, functions, q) for part in slices]
    many = n * 2 ** int(np.log2(most))
    pair = inputs.points(many, generator), inputs.points(many, generator)
    whole = whole_form(*pair, functions, q)
    forms = plan.read(whole, [part for part, _ in found], [end for _, end in found])
    return forms, 2 * n * nodes + 2 * many


def rest(
    plan: Plan,
    inputs: Inputs,
    functions: DrawnFunctions,
    generator: np.random.Generator,
    share: float = 1.0,
) -> Array:
    """Return what r adds to the expectation of V_S, (k,)."""
    n = 2 ** int(np.log2(max(share * LEFT_POINTS // (2 + 2 * len(plan.evaluated)), 8)))
    return plan.traces(functions.left(plan.points(inputs, n, generator)))


def mean_function(posterior: Posterior, d: int) -> DrawnFunctions:
    """Return the posterior mean as the only function."""
    return DrawnFunctions(posterior, np.empty((0, d)), np.empty((0, 0)))


def quadratic(weights: Array, forms: Array) -> Array:
    """Return wᵀHw for each row w of weights (R, q) and each form H (k, q, q), (R, k)."""
    return np.stack([(product(weights, H) * weights).sum(axis=1) for H in forms], axis=1)


def scatter(replicates: Array) -> Array:
    """Return the error of a mean over independent replicates (c, …), by Student's t."""
    return pooled_scatter([(1.0, replicates)])


def pooled_scatter(parts: Sequence[tuple[float, Array]]) -> Array:
    """Return the error of Σ weight × (mean over independent replicates (c, …)), by Student's t.

    All parts tell the scatter together: their degrees of freedom add up.
    """
    variance = sum(w**2 * own.var(axis=0, ddof=1) / len(own) for w, own in parts)
    width = stdtrit(sum(len(own) - 1 for _, own in parts), 0.5 * (1.0 + CONFIDENCE))
    return width * np.sqrt(variance)


def rounding_of(
    posterior: Posterior, inputs: Inputs, V: float, generator: np.random.Generator
) -> float:
    """Return what rounding makes of V, the variance of a function that may be far from zero."""
    mean = mean_function(posterior, inputs.n_columns)(inputs.points(256, generator))
    return 64 * EPS * float((mean**2).mean() * max(V, 0.0)) ** 0.5
