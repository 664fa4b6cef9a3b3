"""The pick-freeze design: rows that share the features of a subset and no others.

Rows a and b are independent; AB = (b_S, a_−S) and BA = (a_S, b_−S) exchange the features of S. For
any function u

    V_S      = ½ E[(u(b) − u(BA)) (u(AB) − u(a))]
    V − V_−S = ¼ E[(u(a) − u(AB))² + (u(b) − u(BA))²],     V = ½ E[(u(a) − u(b))²]

Only covariances between the points of one row are needed for a random function. Both differences
vanish where u does not depend on x_S.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpattr._core.array import Array
from gpattr.sobol.inputs import Inputs, sobol_points

Subset = tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """Which subsets are evaluated: each of ``evaluated`` serves itself and its complement.

    ``readings`` are (place among ``evaluated``, whether it is the complement) for each of
    ``subsets``; a place of −1 is the set of all players.
    """

    subsets: tuple[Subset, ...]
    evaluated: tuple[Subset, ...]
    readings: tuple[tuple[int, bool], ...]

    @classmethod
    def of(cls, subsets: Iterable[Subset], P: int) -> Plan:
        """Return the plan for subsets of P players; the smaller of a subset and the rest counts."""
        found, evaluated, readings = tuple(subsets), dict[Subset, int](), []
        for subset in found:
            rest = tuple(i for i in range(P) if i not in subset)
            if not rest:
                readings.append((-1, False))
                continue
            own = subset if len(subset) <= len(rest) else rest
            readings.append((evaluated.setdefault(own, len(evaluated)), own != subset))
        return cls(found, tuple(evaluated), tuple(readings))

    def read(self, whole: Array, parts: list[Array], ends: list[Array]) -> Array:
        """Return V_S of all subsets from V, and V_S and V − V_−S of those that were evaluated."""
        found = [
            whole if place < 0 else whole - ends[place] if complement else parts[place]
            for place, complement in self.readings
        ]
        return np.stack(found)

    def traces(self, C: Array) -> Array:
        """Return E V_S, (k,), of a random function with mean zero.

        C (n, 2 + 2s, 2 + 2s) is its covariance between the points of each row of `points`.
        """
        C = C.mean(axis=0)

        def form(one: tuple[int, int], two: tuple[int, int], scale: float) -> Array:
            """Return scale · E[(u(one₀) − u(one₁)) (u(two₀) − u(two₁))]."""
            (i, j), (k, m) = one, two
            return scale * (C[i, k] - C[i, m] - C[j, k] + C[j, m])

        wholes, parts, ends = [form((0, 1), (0, 1), 0.5)], [], []
        for place in range(len(self.evaluated)):
            AB, BA = 2 + 2 * place, 3 + 2 * place
            wholes.append(form((AB, BA), (AB, BA), 0.5))
            parts.append(form((1, BA), (AB, 0), 0.5))
            ends.append(form((0, AB), (0, AB), 0.25) + form((1, BA), (1, BA), 0.25))
        return self.read(np.mean(wholes, axis=0), parts, ends)

    def points(self, inputs: Inputs, n: int, generator: np.random.Generator) -> Array:
        """Return a, b and all pairs AB, BA beside each other, (n, 2 + 2s, columns).

        a and b are halves of one sequence: rows of two sequences would go together.
        """
        D = len(inputs.distributions)
        levels = sobol_points(n, 2 * D, generator)
        a, b = inputs.rows(levels[:, :D]), inputs.rows(levels[:, D:])
        found = [a, b]
        for subset in self.evaluated:
            places = [column for player in subset for column in inputs.columns_of(player)]
            AB, BA = a.copy(), b.copy()
            AB[:, places], BA[:, places] = b[:, places], a[:, places]
            found += [AB, BA]
        return np.stack(found, axis=1)
