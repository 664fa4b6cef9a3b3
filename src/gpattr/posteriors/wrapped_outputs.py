"""Several outputs behind the same scalers or encoder: covariances across them come from inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpattr._core.array import Array
from gpattr.posteriors.base import Posterior
from gpattr.posteriors.multi_output import MultiOutputBound, MultiOutputPosterior
from gpattr.posteriors.wrapper import LinearBound, WrapperPosterior


class WrappedOutputs(MultiOutputPosterior):
    """The ``outputs`` of ``wrapped``, each behind the same ``wrapper``, multiplied by ``factor``.

    ``wrapper`` is what one of the outputs wears: an `AffinePosterior` or an `EncodedPosterior`.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> pipeline = make_pipeline(StandardScaler(), gpattr.MultiOutputGPRegressor()).fit(X, X)
    >>> type(gpattr.as_posterior(pipeline)).__name__
    'WrappedOutputs'
    """

    wrapped: MultiOutputPosterior
    wrapper: WrapperPosterior
    factor: float

    def __init__(
        self,
        wrapped: MultiOutputPosterior,
        outputs: Mapping[str, Posterior],
        wrapper: WrapperPosterior,
        factor: float = 1.0,
    ) -> None:
        super().__init__(outputs)
        for name, value in {"wrapped": wrapped, "wrapper": wrapper, "factor": factor}.items():
            object.__setattr__(self, name, value)

    @property
    def independent(self) -> bool:
        return self.wrapped.independent

    def across_at(self, bound: MultiOutputBound, X: Array) -> Array:
        outer = self.wrapper.bind(bound.operator, bound.evaluation)
        assert isinstance(outer, LinearBound)
        inner = self.wrapped.bind(outer.inner.operator, outer.inner.evaluation)
        return self.factor**2 * replace(outer, inner=inner).across(X)

    def __repr__(self) -> str:
        return f"WrappedOutputs({self.wrapped!r})"
