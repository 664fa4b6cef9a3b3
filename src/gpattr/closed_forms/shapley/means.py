"""Shapley values of prior means: linear ones in closed form, any other from values at corners.

Means that are linear in their coefficients go through their basis. E m(b) under marginals is known
for those and for linear ones.
"""

from __future__ import annotations

from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.closed_forms.shapley.bases import design_of, refuse_marginals
from gpattr.closed_forms.shapley.corners import sampling_error
from gpattr.closed_forms.shapley.linear import members_of, steps_of
from gpattr.closed_forms.table import MEANS, Bounded, MeanFormulas, register_mean
from gpattr.means import Linear, Mean
from gpattr.operators import Coalitions, Expectation, Shapley


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
    design = design_of(operator.players)

    def apply(sites: Coalitions) -> Bounded:
        xp, (n, d) = namespace(sites.stop), sites.shape
        weights = xp.asarray(design.weights)
        result, error = xp.empty((n, len(weights))), xp.empty(n)
        for rows in blocks(n, 24.0 * design.members.size, sites.stop):
            corners = sites[rows].corners(design.members)
            values = mean(corners.reshape(-1, d)).reshape(corners.shape[:2])  # (r, c)
            result[rows] = product(values, weights.T + 0.0)
            # The weights of a player have absolute values that add up to 2.
            error[rows] = 32.0 * EPS * xp.max(abs(values), axis=1)
            error[rows] += sampling_error(design, values.T[:, :, None])
        return Bounded(result * sites.moving, error)

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
