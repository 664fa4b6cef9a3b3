"""Shapley values of prior means and of the linear kernel.

Linear means have a closed form, others are evaluated at corners. Means that are linear in their
coefficients go through their basis. E m(b) under marginals is known for those and for linear ones.

Of the linear kernel, φᵢk(·, z) = σᵢ²(xᵢ − bᵢ)zᵢ, added up by player, and the prior covariance of φᵢ
at two rows is σᵢ²(xᵢ − bᵢ)(x'ᵢ − b'ᵢ); different players are independent. Under marginals b is
their mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.closed_forms.shapley.bases import design_of, refuse_marginals
from gpattr.closed_forms.shapley.corners import CoalitionDesign, averaged, sampling_error
from gpattr.closed_forms.table import MEANS, Bounded, Formulas, MeanFormulas, register_mean
from gpattr.kernels import Linear as LinearKernel
from gpattr.means import Linear, Mean
from gpattr.operators import Coalitions, Expectation, Players, Shapley


def linear_mean(mean: Linear, sites: Coalitions) -> Bounded:
    """φᵢm = coefficientᵢ (xᵢ − bᵢ), added up by player; under marginals b is their mean."""
    xp = namespace(sites.stop)
    beta = xp.asarray(mean.coefficients)
    step, size = steps_of(sites)
    members = xp.asarray(members_of(sites.players.owner, sites.players.count))
    largest = product(abs(beta) * size, members)
    return Bounded(product(beta * step, members), 8.0 * EPS * xp.max(largest, axis=1))


def linear_expectation(mean: Linear, sites: Coalitions) -> Bounded:
    """E m(b) = m(E b)."""
    xp, start = namespace(sites.stop), sites.start
    if sites.weights is not None:
        start = product(sites.weights, start)[None, :]
    zeros = xp.zeros((len(sites.stop), 1))
    local = abs(mean.basis.local(sites.start))
    size = product(local, abs(xp.asarray(mean.coefficients))).max() + abs(mean.intercept)
    return Bounded(zeros + mean(start)[:, None], zeros[:, 0] + 8.0 * EPS * size)


def corner_mean(operator: Shapley, mean: Mean) -> MeanFormulas:
    """Return the formulas of Shapley values for any mean, from its values at coalitions."""
    refuse_marginals(operator, mean)
    return design_mean(mean, design_of(operator.players))


def design_mean(mean: Mean, design: CoalitionDesign) -> MeanFormulas:
    """Return the formulas of a design for any mean, from its values at coalitions."""

    def apply(sites: Coalitions) -> Bounded:
        sites = averaged(sites)
        xp, (n, d) = namespace(sites.stop), sites.shape
        weights = xp.asarray(design.weights)
        result, error = xp.empty((n, len(weights))), xp.empty(n)
        for rows in blocks(n, 24.0 * design.members.size, sites.stop):
            corners = sites[rows].corners(design.members)
            values = mean(corners.reshape(-1, d)).reshape(corners.shape[:2])  # (r, c)
            result[rows] = product(values, weights.T + 0.0)
            error[rows] = 32.0 * EPS * xp.max(abs(values), axis=1)
            error[rows] += sampling_error(design, values.T[:, :, None])
        return Bounded(result * design.moving(sites), error)

    return MeanFormulas(apply, frozenset({design.method} if design.groups else ()))


def mean_at_baselines(operator: Expectation, mean: Mean) -> MeanFormulas:
    """Return m(b) for any mean."""
    refuse_marginals(operator, mean)

    def apply(sites: Coalitions) -> Bounded:
        value: Array = namespace(sites.stop).zeros((len(sites.stop), 1))
        value = value + mean(sites.start)[:, None]
        return Bounded(value, 4.0 * EPS * abs(value)[:, 0])

    return MeanFormulas(apply)


register_mean(Shapley, Linear, linear_mean)
register_mean(Expectation, Linear, linear_expectation)
MEANS[Shapley, Mean] = corner_mean
MEANS[Expectation, Mean] = mean_at_baselines


def steps_of(sites: Coalitions) -> tuple[Array, Array]:
    """Return x − b, (n, D), and at least the size of its terms."""
    if sites.weights is None:
        return sites.step, abs(sites.step)
    middle, size = (product(sites.weights, part) for part in (sites.start, abs(sites.start)))
    return sites.stop - middle, abs(sites.stop) + size


def members_of(owner: Sequence[int], count: int) -> np.ndarray:
    """Return which columns belong to which player, (D, players) of 0 and 1."""
    return (np.array(owner)[:, None] == np.arange(count)).astype(np.float64)


def linear_formulas(
    variance: float, kernel: LinearKernel, columns: tuple[int, ...], players: Players
) -> Formulas:
    """Return the formulas of Shapley values for σ² times a linear kernel of some columns."""
    sigma = variance * np.broadcast_to(np.asarray(kernel.variance), (len(columns),))
    members = members_of([players.owner[column] for column in columns], players.count)
    some = list(columns)

    def steps(sites: Coalitions) -> tuple[Array, Array]:
        return steps_of(sites.select(some))

    def weighed(step: Array) -> Array:
        """Return the steps times σ², by player, (n, P, C)."""
        xp = namespace(step)
        return (step * xp.asarray(sigma))[:, None, :] * xp.asarray(members.T)

    def cross(sites: Coalitions, Z: Array) -> Bounded:
        step, size = steps(sites)
        z = Z[:, some].T + 0.0
        largest = namespace(Z).max(product(weighed(size), abs(z)), axis=1)
        error = 32.0 * EPS * (largest * largest).sum(axis=1) ** 0.5
        return Bounded(product(weighed(step), z), error)

    def contract(sites: Coalitions, Z: Array, w: Array) -> Bounded:
        step, size = steps(sites)
        z, xp = Z[:, some].T + 0.0, namespace(Z)
        error = product(weighed(size), product(abs(z), abs(w)))
        value = product(weighed(step), product(z, w))
        return Bounded(value, (32.0 + len(Z) ** 0.5) * EPS * xp.max(error, axis=(1, 2)))

    def between(sites: Coalitions, other: Coalitions) -> Bounded:
        (one, size), (two, length) = steps(sites), steps(other)
        xp = namespace(one)
        each, sizes = (
            product(x * xp.asarray(sigma) * y, xp.asarray(members))
            for x, y in ((one, two), (size, length))
        )
        return Bounded(each[:, :, None] * xp.eye(players.count), 32.0 * EPS * xp.max(sizes, axis=1))

    return Formulas(cross, contract, lambda sites: between(sites, sites), between)
