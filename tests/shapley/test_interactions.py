"""Shapley interactions against the enumeration of all coalitions, from their definition."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

from gpattr import kernels, means
from gpattr.bases import Monomials
from gpattr.closed_forms import (
    apply_to_basis,
    apply_to_mean,
    between,
    bounded_cross,
    bounded_prior_cov,
    contract,
    cross,
    formulas_for,
    prior_cov,
)
from gpattr.exceptions import InvalidInputError, NoClosedFormError, UnsupportedModelError
from gpattr.operators import Baselines, Marginals, Shapley, ShapleyInteractions
from gpattr.posteriors import Evaluation, ExactPosterior

INDICES = ["shapley", "taylor"]
rng = np.random.default_rng(5)


def coalitions(p):
    return list(itertools.product([0, 1], repeat=p))


def definition(p, index):
    """Return the matrix (pairs i ≤ j, coalitions) of Φ by its definition, set by set."""
    sets = coalitions(p)
    at = {members: k for k, members in enumerate(sets)}

    def joined(members, *players):
        return at[tuple(1 if i in players else m for i, m in enumerate(members))]

    phi = np.zeros((p, p, len(sets)))
    for i in range(p):
        for S in sets:
            if S[i]:
                continue
            s = sum(S)
            value = math.factorial(s) * math.factorial(p - s - 1) / math.factorial(p)
            phi[i, i, joined(S, i)] += value
            phi[i, i, at[S]] -= value
    for i, j in itertools.permutations(range(p), 2):
        for S in sets:
            if S[i] or S[j]:
                continue
            s = sum(S)
            if index == "shapley":
                value = math.factorial(s) * math.factorial(p - s - 2) / math.factorial(p - 1)
            else:
                value = 2.0 / p / math.comb(p - 1, s)
            change = np.zeros(len(sets))
            change[joined(S, i, j)] += 1.0
            change[joined(S, i)] -= 1.0
            change[joined(S, j)] -= 1.0
            change[at[S]] += 1.0
            phi[i, j] += 0.5 * value * change
    for i in range(p):
        if index == "shapley":
            phi[i, i] -= sum(phi[i, j] for j in range(p) if j != i)
        else:
            phi[i, i] = 0.0
            phi[i, i, joined(sets[0], i)] += 1.0
            phi[i, i, at[sets[0]]] -= 1.0
    return phi[np.triu_indices(p)]


def corners(x, b, owner):
    """Return the points of all coalitions, (2^p, d)."""
    inside = np.array(coalitions(max(owner) + 1))[:, list(owner)]
    return np.where(inside == 1, x, b)


def averaged(x, baseline, owner, index):
    """Return points and the matrix on values there, for a baseline of any kind of one row."""
    A = definition(max(owner) + 1, index)
    if not isinstance(baseline, Baselines):
        return corners(x, baseline, owner), A
    points, weights = [], []
    p, K = max(owner) + 1, len(baseline.points)
    draws = (
        itertools.product(range(K), repeat=p)
        if isinstance(baseline, Marginals)
        else [(k,) * p for k in range(K)]
    )
    for draw in draws:
        b = np.array([baseline.points[draw[player], i] for i, player in enumerate(owner)])
        share = (
            np.prod([baseline.weights[k] for k in draw])
            if isinstance(baseline, Marginals)
            else baseline.weights[draw[0]]
        )
        points.append(corners(x, b, owner))
        weights.append(share * A)
    return np.concatenate(points), np.concatenate(weights, axis=1)


def check(operator, kernel, X, Z, baselines, owner, tolerance=1e-13):
    """Compare cross, contract, prior_cov and between with the definition."""
    index = operator.index
    w = rng.standard_normal((len(Z), 2))
    scale = float(kernel.diagonal(X[:1])[0])
    values, error = bounded_cross(operator, kernel, X, Z)
    sums, sum_error = contract(operator, kernel, X, Z, w)
    prior, prior_error = bounded_prior_cov(operator, kernel, X)
    joint = between(operator, kernel, X)
    sites = [averaged(x, b, owner, index) for x, b in zip(X, baselines, strict=True)]
    for n, (points, A) in enumerate(sites):
        truth = A @ kernel(points, Z)
        assert abs(values[n] - truth).max() < tolerance * scale
        assert np.linalg.norm(abs(values[n] - truth).max(axis=0)) <= error[n] + 1e-15 * scale
        assert abs(sums[n] - truth @ w).max() < tolerance * scale * abs(w).sum()
        assert abs(sums[n] - truth @ w).max() <= sum_error[n] + 1e-15 * scale
        truth = A @ kernel(points, points) @ A.T
        assert abs(prior[n] - truth).max() < tolerance * scale
        assert abs(prior[n] - truth).max() <= prior_error[n] + 1e-15 * scale
        for k, (others, C) in enumerate(sites):
            truth = A @ kernel(points, others) @ C.T
            assert abs(joint[n, :, k] - truth).max() < tolerance * scale


def separable(d):
    """Return a product of one-dimensional kernels of different kinds."""
    kinds = [
        kernels.Matern12(0.9),
        kernels.Matern52(1.3),
        kernels.Periodic(1.1, 2.0),
        kernels.RationalQuadratic(0.8, 1.7),
        kernels.SquaredExponential(0.6),
    ]
    product = kernels.Constant(1.7)
    for i in range(d):
        product = product * kernels.Select(kinds[i % len(kinds)], [i])
    return product


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 7])
def test_of_a_product(index, d):
    X, Z, b = rng.standard_normal((3, d)), rng.standard_normal((9, d)), rng.standard_normal(d)
    lengths = rng.uniform(0.5, 2.0, d)
    for kernel in (kernels.SquaredExponential(lengths, 2.5), separable(d)):
        operator = ShapleyInteractions(b, index=index)
        check(operator, kernel, X, Z, [b] * 3, range(d))
        assert formulas_for(operator, kernel).methods == {"closed form"}


@pytest.mark.parametrize("index", INDICES)
def test_of_players_that_are_groups(index):
    owner = [0, 1, 0, 2, 1]
    X, Z, b = rng.standard_normal((3, 5)), rng.standard_normal((8, 5)), rng.standard_normal((3, 5))
    operator = ShapleyInteractions(b, owner, index=index)
    check(operator, kernels.SquaredExponential([0.5, 1.0, 2.0, 0.7, 1.2], 1.4), X, Z, b, owner)
    check(operator, kernels.Matern32(1.1), X, Z, b, owner)


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("kind", [Baselines, Marginals])
def test_of_several_baselines(index, kind):
    X, Z = rng.standard_normal((2, 3)), rng.standard_normal((6, 3))
    baseline = kind(rng.standard_normal((3, 3)), [0.5, 0.2, 0.3])
    operator = ShapleyInteractions(baseline, index=index)
    check(operator, kernels.SquaredExponential([0.5, 1.0, 2.0]), X, Z, [baseline] * 2, range(3))
    check(operator, separable(3), X, Z, [baseline] * 2, range(3))


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize(
    "kernel",
    [
        kernels.Matern52([0.8, 1.2, 0.6, 2.0]),
        kernels.Linear(0.7) * kernels.SquaredExponential(1.3),
        kernels.Linear([0.5, 0.2, 1.0, 0.4]),
        kernels.Polynomial(degree=2, offset=0.5),
        kernels.Polynomial(degree=3, offset=0.5),
        0.3 * kernels.SquaredExponential(1.0) + kernels.Select(kernels.Matern12(0.5), [2, 0]),
        kernels.Constant(2.0) + kernels.Select(kernels.SquaredExponential([1.0, 2.0]), [3, 1]),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_of_other_kernels(index, kernel):
    X, Z, b = rng.standard_normal((3, 4)), rng.standard_normal((6, 4)), rng.standard_normal(4)
    scale = max(1.0, float(kernel(Z, Z).max()) / float(kernel.diagonal(X[:1])[0]))
    operator = ShapleyInteractions(b, index=index)
    check(operator, kernel, X, Z, [b] * 3, range(4), tolerance=2e-13 * scale)
