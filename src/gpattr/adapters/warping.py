"""Posteriors of warped inputs: f(x) = g(u) with some uⱼ = φⱼ(xⱼ), such as a logarithm.

A straight path in x is curved in u, so the operator cannot be moved behind φ as it is behind a
scaler. The kernel can: k(φ(x), φ(x')) has gradients along the path in x.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import Warped
from gpattr.means import Constant, Mean, Zero
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    ExactPosterior,
    MixturePosterior,
    MultiOutputPosterior,
    Posterior,
)


@dataclass(frozen=True)
class Warp:
    """φ(x) = (ln x − shift)/scale for x > 0; with ``kind`` "logit", ln(x/(1 − x)) for 0 < x < 1.

    ``name`` is that of the parameter x.
    """

    name: str
    shift: float = 0.0
    scale: float = 1.0
    kind: str = "log"

    def __call__(self, x: Array) -> Array:
        xp, x = namespace(x), self._inside(x)
        raw = xp.log(x) if self.kind == "log" else xp.log(x) - xp.log(1.0 - x)
        return (raw - self.shift) / self.scale

    def slope(self, x: Array) -> Array:
        """Return φ'(x)."""
        x = self._inside(x)
        return 1.0 / (self.scale * (x if self.kind == "log" else x * (1.0 - x)))

    def _inside(self, x: Array) -> Array:
        outside = (x <= 0) if self.kind == "log" else (x <= 0) | (x >= 1)
        if bool(outside.any()):
            bounds = "larger than 0" if self.kind == "log" else "between 0 and 1"
            raise InvalidInputError(
                f"X: expected values of {self.name!r} {bounds}, as it is searched on a {self.kind}"
                f" axis, got {float(to_numpy(x[outside])[0]):.3g}"
            )
        return x

    def inverse(self, u: Array) -> Array:
        """Return the x of φ(x) = u."""
        xp = namespace(u)
        raw = self.shift + self.scale * u
        return xp.exp(raw) if self.kind == "log" else 1.0 / (1.0 + xp.exp(-raw))

    def then(self, shift: Any, scale: Any) -> Warp:
        """Return (φ(x) − shift)/scale."""
        return replace(
            self, shift=self.shift + self.scale * float(shift), scale=self.scale * float(scale)
        )


@dataclass(frozen=True)
class _Columns:
    """The map of rows whose columns are warped, its Jacobian and its inverse."""

    warps: Mapping[int, Warp]

    exact = True  # its jacobian needs no comparison with differences

    def __call__(self, X: Array) -> Array:
        return self._each(X, lambda warp, x: warp(x))

    def inverse(self, U: Array) -> Array:
        return self._each(U, lambda warp, u: warp.inverse(u))

    def jacobian(self, X: Array) -> Array:
        """Return ∂φⱼ/∂xᵢ, (n, d, d): diagonal."""
        xp, d = namespace(X), X.shape[1]
        slopes = self._each(xp.ones(tuple(X.shape)), lambda warp, x: x)
        for j, warp in self.warps.items():
            slopes[:, j] = warp.slope(X[:, j])
        return slopes[:, :, None] * xp.asarray(np.eye(d))

    def _each(self, X: Array, change: Any) -> Array:
        result = X + 0.0
        for j, warp in self.warps.items():
            result[:, j] = change(warp, X[:, j])
        return result


def with_warped_inputs(posterior: Posterior, warps: Mapping[int, Warp]) -> Posterior:
    """Return f(x) = g(φ(x)) for the ``posterior`` of g, whose columns j in ``warps`` are φⱼ(xⱼ)."""
    if not warps:
        return posterior
    result = _warped(posterior, warps)
    for name in ("label", "note"):
        object.__setattr__(result, name, getattr(posterior, name))
    return result


def _warped(posterior: Posterior, warps: Mapping[int, Warp]) -> Posterior:
    if isinstance(posterior, MultiOutputPosterior) and posterior.independent:
        return MultiOutputPosterior(
            {name: with_warped_inputs(part, warps) for name, part in posterior.outputs.items()}
        )
    if isinstance(posterior, MixturePosterior):
        parts = [with_warped_inputs(part, warps) for part in posterior.posteriors]
        return MixturePosterior(parts, posterior.weights)
    if isinstance(posterior, CombinationPosterior):
        parts = [with_warped_inputs(part, warps) for part in posterior.posteriors]
        mean = _constant(posterior.mean)
        return CombinationPosterior(parts, posterior.coefficients, mean=mean)
    if isinstance(posterior, AffinePosterior):
        return _behind_scaler(posterior, warps)
    if isinstance(posterior, ExactPosterior):
        columns = _Columns(warps)
        return ExactPosterior(
            Warped(posterior.kernel, columns, columns.jacobian),
            columns.inverse(posterior.inputs),
            posterior.y,
            noise=posterior.noise,
            mean=_constant(posterior.prior_mean),
        )
    raise UnsupportedModelError(
        f"model: logarithms of the inputs of a {type(posterior).__name__} are not supported"
    )


def _behind_scaler(posterior: AffinePosterior, warps: Mapping[int, Warp]) -> Posterior:
    """Return g((φ(x) − shift)/scale): where φ is no identity, the scaler becomes part of it."""
    shift, scale = to_numpy(posterior.shift).copy(), to_numpy(posterior.scale).copy()
    inner = {}
    for j, source in enumerate(posterior.source):
        if source in warps:
            inner[j] = warps[source].then(shift[j], scale[j])
            shift[j], scale[j] = 0.0, 1.0
    return AffinePosterior(
        with_warped_inputs(posterior.posterior, inner),
        shift,
        scale,
        source=posterior.source,
        n_features=posterior.width,
        feature_names=posterior.feature_names,
    )


def _constant(mean: Mean) -> Mean:
    if not isinstance(mean, (Zero, Constant)):
        raise UnsupportedModelError(
            f"mean: a {type(mean).__name__} mean of logarithms of inputs is not supported"
        )
    return mean
