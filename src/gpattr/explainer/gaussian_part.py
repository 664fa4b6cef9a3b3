"""One Gaussian of a posterior, as importance asks about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpattr._core.array import Array, to_numpy
from gpattr._core.memory import blocks
from gpattr._core.validation import beside
from gpattr.explanation.explanation import Explanation
from gpattr.operators import Operator
from gpattr.posteriors import Bound, Evaluation, Posterior
from gpattr.posteriors.linear_bound import LinearBound


@dataclass(frozen=True, eq=False)
class GaussianPart:
    """The ``component``-th Gaussian of a mixture, with its ``weight``.

    It is asked about the attributions of ``X`` by ``operator``, or about their sums 𝒜G for a matrix
    ``sums`` G (d, k). ``known`` is the explanation of the same rows, if there is one: its means and
    variances, where features are not added up, are not computed again.
    """

    component: int
    weight: float
    posterior: Posterior
    operator: Operator
    X: Array
    evaluation: Evaluation
    known: Explanation | None = None
    sums: Array | None = None

    def moments(self) -> Iterator[tuple[Array, Array]]:
        if self.known is not None and self.sums is None:
            yield self._known("values"), self._known("var")
            return
        n, d = self.X.shape
        whole = (
            self.posterior.encoder is not None or self.sums is not None
        )  # covariances are formed
        bound = self._bound("std")
        for rows in blocks(n, 64.0 * d * (d if whole else 1), self.X):
            result = bound.rows(rows).apply(self.X[rows])
            assert result.var is not None
            yield to_numpy(result.mean), to_numpy(result.var)

    def mean(self, chosen: Array) -> Array:
        if self.known is not None and self.sums is None:
            return self._known("values")[chosen]
        return to_numpy(self._bound("none").rows(chosen).mean(self.X[chosen]))

    def joint(self, chosen: Array) -> Array:
        return to_numpy(self._bound("none").rows(chosen).joint(self.X[chosen]))

    def alone(self, chosen: Array) -> Array:
        return to_numpy(self._bound("none").rows(chosen).rows_covariance(self.X[chosen]))

    def _bound(self, uncertainty: str) -> Bound:
        evaluation = replace(self.evaluation, uncertainty=uncertainty)
        if self.sums is None:
            return self.posterior.bind(self.operator, evaluation)
        needed = replace(evaluation, uncertainty="none" if uncertainty == "none" else "cov")
        G = beside("groups", self.sums, self.X)
        inner = self.posterior.bind(self.operator, needed)
        return LinearBound(inner, self.operator, evaluation, G)

    def _known(self, name: str) -> Array:
        ex = self.known
        assert ex is not None
        own = {"values": ex.values, "var": ex.var}[name]
        parts = {"values": ex.component_values, "var": ex.component_var}[name]
        array = own if parts is None else parts[self.component]
        assert array is not None
        return array
