"""Shapley values of the linear kernel, in closed form.

φᵢk(·, z) = σᵢ²(xᵢ − bᵢ)zᵢ, added up by player, and the prior covariance of φᵢ at two rows is
σᵢ²(xᵢ − bᵢ)(x'ᵢ − b'ᵢ); different players are independent. Under marginals b is their mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpattr._core.array import EPS, Array, namespace, product
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.kernels import Linear
from gpattr.operators import Coalitions, Players


def steps_of(sites: Coalitions) -> tuple[Array, Array]:
    """Return x − b, (n, D), and at least the size of what it was found from."""
    if sites.weights is None:
        return sites.step, abs(sites.step)
    middle, size = (product(sites.weights, part) for part in (sites.start, abs(sites.start)))
    return sites.stop - middle, abs(sites.stop) + size


def members_of(owner: Sequence[int], count: int) -> np.ndarray:
    """Return which columns belong to which player, (D, players) of 0 and 1."""
    return (np.array(owner)[:, None] == np.arange(count)).astype(np.float64)


def linear_formulas(
    variance: float, kernel: Linear, columns: tuple[int, ...], players: Players
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
