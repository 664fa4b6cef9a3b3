"""Shapley interactions: how pairs of players act together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from gpattr._core.array import Array, namespace
from gpattr._core.validation import check_choice, check_count
from gpattr.operators.affine_map import AffineMap
from gpattr.operators.pairs import all_pairs, check_pairs, labels_of
from gpattr.operators.players import Players
from gpattr.operators.shapley import Shapley

INDICES = ("shapley", "taylor")


class ShapleyInteractions(Shapley):
    """Φᵢⱼf(x): Shapley values as a symmetric matrix of main effects and interactions of pairs.

    With the multilinear extension f^M, in which players are at the row x with probability t and at
    the baseline b otherwise, and its derivatives on the diagonal (t, …, t),

        index="shapley"    Φᵢⱼ = ½ ∫₀¹ ∂ᵢ∂ⱼf^M dt,         Φᵢᵢ = φᵢ − Σⱼ≠ᵢ Φᵢⱼ
        index="taylor"     Φᵢⱼ = ∫₀¹ (1 − t) ∂ᵢ∂ⱼf^M dt,   Φᵢᵢ = f(xᵢ, b_−i) − f(b)

    Off the diagonal the first is half the Shapley interaction index, in the form of TreeSHAP; the
    second is half the Shapley–Taylor index of order two, as `shap.ExactExplainer` has it. The rows
    of both add up to the Shapley values φᵢ, and all of it to f(x) − f(b).

    ``baseline`` and ``players`` are as for `Shapley`. There is one output for each pair i ≤ j of
    players, in the order of the upper triangle, or for each of ``pairs``.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> operator = gpattr.operators.ShapleyInteractions([0.0, 0.0], index="taylor")
    >>> mean = model.posterior_.apply(operator, X[:1]).distribution.mean
    >>> mean.shape  # of the pairs (0, 0), (0, 1) and (1, 1)
    (1, 3)
    """

    axes = ("pair",)
    checks: ClassVar[Any] = Shapley.checks | {"d": check_count}
    methods = ("auto", "exact")
    absolute_weight = 4.0

    def __init__(
        self, baseline: Any, players: Any = None, *, index: str = "shapley", pairs: Any = None
    ) -> None:
        super().__init__(baseline, players)
        self.index = check_choice("index", index, INDICES)
        self.pairs = check_pairs("pairs", pairs, self.players.count)

    def _with_players(self, baseline: Any, players: Players) -> Self:
        return type(self)(baseline, players, index=self.index, pairs=self.pairs)

    def pairs_for(self, d: int) -> list[tuple[int, int]]:
        """Return the pairs of players, in the order of the outputs, whatever the columns d."""
        return list(all_pairs(self.players.count) if self.pairs is None else self.pairs)

    def sizes(self, d: int) -> tuple[int, ...]:
        count = self.players.count
        return (count * (count + 1) // 2 if self.pairs is None else len(self.pairs),)

    @property
    def coordinates(self) -> Mapping[str, Sequence[str | float]]:
        """The labels "i,j" of the pairs."""
        return {"pair": labels_of(tuple(self.pairs_for(len(self.players.owner))))}

    def gather(self, encoding: Array) -> Array:
        return namespace(encoding).eye(self.size(encoding.shape[1]))

    def pull_back(self, units: AffineMap, like: Array) -> Array:
        """Return the identity: players and pairs of players do not depend on units."""
        return namespace(like).eye(self.size(len(self.players.owner)))
