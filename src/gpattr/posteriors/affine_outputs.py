"""Several outputs behind the same scalers and selections: what is known across them is what is
known inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpattr._core.array import Array, namespace
from gpattr.operators import Operator
from gpattr.posteriors.affine import AffinePosterior
from gpattr.posteriors.base import Posterior
from gpattr.posteriors.multi_output import MultiOutputPosterior


class AffineOutputs(MultiOutputPosterior):
    """The ``outputs`` of ``inner``, each behind the scalers of ``affine``, and multiplied by
    ``factor``.
    """

    inner: MultiOutputPosterior
    affine: AffinePosterior
    factor: float

    def __init__(
        self,
        inner: MultiOutputPosterior,
        outputs: Mapping[str, Posterior],
        affine: AffinePosterior,
        factor: float = 1.0,
    ) -> None:
        super().__init__(outputs)
        for name, value in {"inner": inner, "affine": affine, "factor": factor}.items():
            object.__setattr__(self, name, value)

    def across(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        """Return the covariance of each row's attributions between features and outputs, (n, d, P,
        d, P).
        """
        inside = self.inner.across(
            self.affine.moved(operator), self.affine.inside(X), method=method, n_steps=n_steps
        )
        G = self.affine.gather(operator, inside)
        return self.factor**2 * namespace(G).einsum("njokp,ji,kl->niolp", inside, G, G)

    def __repr__(self) -> str:
        return f"AffineOutputs({self.inner!r})"
