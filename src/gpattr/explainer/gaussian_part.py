"""One Gaussian of a posterior, as importance asks it about the features of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.memory import blocks
from gpattr.explainer.rows import Rows
from gpattr.explanation.explanation import Explanation
from gpattr.operators import Operator
from gpattr.posteriors import Posterior


@dataclass(frozen=True, eq=False)
class GaussianPart:
    """The ``component``-th Gaussian of a mixture, with its ``weight``: the attributions of ``X``
    that ``operator`` asks for.

    ``columns`` says how columns add up to features. ``known`` is the explanation of the same rows,
    where there is one: its means and variances are not computed again."""

    component: int
    weight: float
    posterior: Posterior
    operator: Operator
    X: Array
    columns: Rows
    options: dict[str, Any]
    tolerance: float
    known: Explanation | None = None

    def moments(self) -> Iterator[tuple[Array, Array]]:
        if self.known is not None:
            yield self._known("values"), self._known("var")
            return
        n, d = self.X.shape
        # Columns of one feature are added up with what lies between them.
        together = self.columns.encoder is not None
        for rows in blocks(n, 64.0 * d * (d if together else 1), self.X):
            result = self._apply(rows, "cov" if together else "std")
            var = to_numpy(result.var)
            if together:
                G = self.columns.gathering
                var = np.maximum(np.einsum("nik,ik->nk", to_numpy(result.cov) @ G, G), 0.0)
            yield to_numpy(result.mean) @ self.columns.gathering, var

    def mean(self, chosen: Array) -> Array:
        if self.known is not None:
            return self._known("values")[chosen]
        return to_numpy(self._apply(chosen, "none").mean) @ self.columns.gathering

    def joint(self, chosen: Array) -> Array:
        joint = self.posterior.joint(self.operator.rows(chosen), self.X[chosen], **self.options)
        return self.columns.gathered(to_numpy(joint))

    def alone(self, chosen: Array) -> Array:
        gather = None if self.columns.encoder is None else self.columns.gathering
        return to_numpy(
            self.posterior.rows_covariance(
                self.operator.rows(chosen), self.X[chosen], gather, **self.options
            )
        )

    def _apply(self, rows: Any, uncertainty: str) -> Any:
        options = {"uncertainty": uncertainty, "tolerance": self.tolerance, **self.options}
        return self.posterior.apply(self.operator.rows(rows), self.X[rows], **options)

    def _known(self, name: str) -> Array:
        ex: Any = self.known
        return (
            getattr(ex, name)
            if ex.component_weights is None
            else getattr(ex, f"component_{name}")[self.component]
        )
