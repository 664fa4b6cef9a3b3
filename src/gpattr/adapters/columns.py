"""Columns as a model sees them, and its kernel, mean and posterior in its user's columns.

An input u of a model is a column w, maps h(w) of one, such as a logarithm, or Σₖ tₖwₖ of columns w
of 0 and 1 that say which category a row has. Between categories that is a straight line. A straight
path in w is curved in h(w), so that operators cannot be moved behind h as they are behind a scaler.
The kernel can: k(h(w), h(w')) has gradients along the path in w.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr.adapters.kernels import (
    Hamming,
    Index,
    becomes_squared_exponential,
    hamming_as_lines,
    hamming_as_squares,
    mapped,
)
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import Constant, Kernel, Linear, Product, Select, Warped
from gpattr.means import Constant as ConstantMean
from gpattr.means import Function, Mean, Zero
from gpattr.means import Linear as LinearMean
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    EncodedPosterior,
    ExactPosterior,
    MixturePosterior,
    MultiOutputPosterior,
    Posterior,
    WrappedOutputs,
)

LOG_10 = math.log(10.0)


class ScalarMap(ABC):
    """A monotone map of one column."""

    @abstractmethod
    def value(self, x: Array) -> Array:
        """Return h(x), (n,)."""

    @abstractmethod
    def slope(self, x: Array) -> Array:
        """Return h'(x), (n,)."""

    @abstractmethod
    def inverse(self, u: Array) -> Array:
        """Return x with h(x) = u, (n,)."""


@dataclass(frozen=True)
class Affine(ScalarMap):
    """u = (x − ``shift``)/``scale``."""

    shift: float
    scale: float

    def value(self, x: Array) -> Array:
        return (x - self.shift) / self.scale

    def slope(self, x: Array) -> Array:
        return 0.0 * x + 1.0 / self.scale

    def inverse(self, u: Array) -> Array:
        return self.shift + self.scale * u


@dataclass(frozen=True)
class Log(ScalarMap):
    """u = ln x of the column called ``name``, larger than 0; of an axis that is ``searched``."""

    name: str
    searched: bool = False

    def value(self, x: Array) -> Array:
        return namespace(x).log(self._inside(x))

    def slope(self, x: Array) -> Array:
        return 1.0 / self._inside(x)

    def inverse(self, u: Array) -> Array:
        return namespace(u).exp(u)

    def _inside(self, x: Array) -> Array:
        if self.searched:
            return _searched(x, x > 0, self.name, "larger than 0", "log")
        if not bool((x > 0).all()):
            raise InvalidInputError(
                f"X: the model takes the logarithm of column {self.name}; expected values larger"
                f" than 0 on the whole path, got {float(to_numpy(x).min()):.3g}"
            )
        return x


@dataclass(frozen=True)
class Logit(ScalarMap):
    """u = ln(x/(1 − x)) of the column called ``name``, between 0 and 1, of a searched axis."""

    name: str

    def value(self, x: Array) -> Array:
        xp, x = namespace(x), self._inside(x)
        return xp.log(x) - xp.log(1.0 - x)

    def slope(self, x: Array) -> Array:
        x = self._inside(x)
        return 1.0 / (x * (1.0 - x))

    def inverse(self, u: Array) -> Array:
        return 1.0 / (1.0 + namespace(u).exp(-u))

    def _inside(self, x: Array) -> Array:
        return _searched(x, (x > 0) & (x < 1), self.name, "between 0 and 1", "logit")


def _searched(x: Array, inside: Array, name: str, bounds: str, kind: str) -> Array:
    if not bool(inside.all()):
        raise InvalidInputError(
            f"X: expected values of {name!r} {bounds}, as it is searched on a {kind} axis, got"
            f" {float(to_numpy(x[~inside])[0]):.3g}"
        )
    return x


@dataclass(frozen=True)
class Kumaraswamy(ScalarMap):
    """u = 1 − (1 − z^a)^b, z = (1 − 2ε)x + ε within [ε, 1 − ε], the distribution function.

    Beyond the interval it is constant. With a or b below 1 the slope at its ends is as large as
    ε^(a − 1).
    """

    a: float
    b: float
    eps: float

    def value(self, x: Array) -> Array:
        return 1.0 - (1.0 - self._inside(x) ** self.a) ** self.b

    def slope(self, x: Array) -> Array:
        z, width = self._inside(x), 1.0 - 2.0 * self.eps
        rate = self.a * self.b * z ** (self.a - 1.0) * (1.0 - z**self.a) ** (self.b - 1.0)
        return namespace(x).where((x >= 0.0) & (x <= 1.0), width * rate, 0.0)

    def inverse(self, u: Array) -> Array:
        z = (1.0 - (1.0 - u) ** (1.0 / self.b)) ** (1.0 / self.a)
        return namespace(u).clip((z - self.eps) / (1.0 - 2.0 * self.eps), 0.0, 1.0)

    def _inside(self, x: Array) -> Array:
        z = (1.0 - 2.0 * self.eps) * x + self.eps
        return namespace(x).clip(z, self.eps, 1.0 - self.eps)


@dataclass(frozen=True)
class Inverse(ScalarMap):
    """The inverse of another map."""

    inner: ScalarMap

    def value(self, x: Array) -> Array:
        return self.inner.inverse(x)

    def slope(self, x: Array) -> Array:
        rate = self.inner.slope(self.inner.inverse(x))
        return namespace(x).where(rate > 0, 1.0 / namespace(x).where(rate > 0, rate, 1.0), 0.0)

    def inverse(self, u: Array) -> Array:
        return self.inner.value(u)


Maps = tuple[ScalarMap, ...]  # h₁, …, hₖ, the first applied first


def value(maps: Maps, x: Array) -> Array:
    """Return hₖ(…h₁(x)), (n,)."""
    for part in maps:
        x = part.value(x)
    return x


def slope(maps: Maps, x: Array) -> Array:
    """Return the slope of hₖ(…h₁(x)), (n,)."""
    rate = 0.0 * x + 1.0
    for part in maps:
        rate, x = rate * part.slope(x), part.value(x)
    return rate


def inverse(maps: Maps, u: Array) -> Array:
    """Return x with hₖ(…h₁(x)) = u, (n,)."""
    for part in reversed(maps):
        u = part.inverse(u)
    return u


def as_affine(maps: Maps) -> Affine | None:
    """Return one affine map in place of several; None if one of them is not affine."""
    shift, scale = 0.0, 1.0
    for part in maps:
        affine = part.inner if isinstance(part, Inverse) else part
        if not isinstance(affine, Affine):
            return None
        if part is affine:
            shift, scale = shift + scale * affine.shift, scale * affine.scale
        else:
            # (x − shift)/scale is multiplied and then moved.
            scale = scale / affine.scale
            shift = shift - scale * affine.shift
    return Affine(shift, scale) if np.isfinite(shift) and scale != 0 else None


@dataclass(frozen=True, eq=False)
class Column:
    """An input u of a model, given columns w at ``places``.

    u is w itself; with ``maps``, a function of it; with ``table`` (k,), Σₖ tₖwₖ. Where ``jumps``,
    each w says that a code has the value in ``labels``, and only kernels of codes make sense.
    """

    places: tuple[int, ...]
    maps: Maps = ()
    table: np.ndarray | None = None
    jumps: bool = False
    labels: tuple[float, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether u = w."""
        return not self.maps and self.table is None and not self.jumps

    def values(self, W: Array) -> Array:
        """Return u, (n,), at rows W (n, d)."""
        if self.table is not None:
            return W[:, list(self.places)] @ namespace(W).asarray(self.table)
        return value(self.maps, W[:, self.places[0]])

    def slopes(self, W: Array) -> Array:
        """Return ∂u/∂w at the places, (n, k)."""
        if self.table is not None:
            return 0.0 * W[:, list(self.places)] + namespace(W).asarray(self.table)
        return slope(self.maps, W[:, self.places[0]])[:, None]


@dataclass(frozen=True, eq=False)
class ColumnMap:
    """u(w) of several ``columns``, with its jacobian."""

    columns: tuple[Column, ...]

    exact = True  # derivatives need no comparison with differences, which fail where maps end

    def __call__(self, W: Array) -> Array:
        """Return u, (n, D), at rows W (n, d)."""
        return namespace(W).stack([column.values(W) for column in self.columns], axis=1)

    @property
    def columnwise(self) -> bool:
        """Whether uⱼ depends on wⱼ alone, so that `rates` are all of the jacobian."""
        return all(column.places == (j,) for j, column in enumerate(self.columns))

    def rates(self, W: Array) -> Array:
        """Return ∂uⱼ/∂wⱼ, (n, D), of a map by columns."""
        return namespace(W).concatenate([column.slopes(W) for column in self.columns], axis=1)

    def jacobian(self, W: Array) -> Array:
        """Return ∂uⱼ/∂wᵢ, (n, D, d)."""
        J = namespace(W).zeros((len(W), len(self.columns), W.shape[1]))
        for j, column in enumerate(self.columns):
            J[:, j, list(column.places)] = column.slopes(W)
        return J


def kernel_behind(kernel: Kernel, columns: Sequence[Column]) -> Kernel:
    """Return a kernel of inputs u as the same kernel of the columns w.

    Only parts that see a function of a column are warped.
    """

    def translated(part: Kernel, seen: Sequence[int], straight: bool = False) -> Kernel:
        if isinstance(part, Select):
            return translated(part.kernel, [seen[i] for i in part.features], straight)
        if isinstance(part, Product):
            straight = straight or not becomes_squared_exponential(part)
        if part.pointwise:
            return part.map_parts(lambda inner: translated(inner, seen, straight))
        if isinstance(part, Constant):
            return part
        chosen = [columns[i] for i in seen]
        if isinstance(part, Index) and all(column.jumps for column in chosen):
            factor = part.factor(chosen[0].labels)
            return Select(mapped(Linear(), factor.T), list(chosen[0].places))
        if isinstance(part, Hamming):
            return _of_codes(part, chosen, straight)
        if any(column.jumps for column in chosen):
            raise UnsupportedModelError(
                f"kernel: {type(part).__name__} of columns with categories is not supported"
            )
        return _of_columns(part, chosen)

    return translated(kernel, range(len(columns)))


def _of_codes(kernel: Hamming, columns: Sequence[Column], straight: bool) -> Kernel:
    """Return a kernel of codes as a kernel of the 0/1 columns of their categories."""
    if any(not column.jumps and column.table is None for column in columns):
        raise UnsupportedModelError(
            "kernel: CategoricalKernel is supported only of columns with categories"
        )
    widths = np.broadcast_to(kernel.lengthscale, (len(columns),)).tolist()
    pairs = [(list(column.places), width) for column, width in zip(columns, widths, strict=True)]
    return hamming_as_lines(pairs) if straight else hamming_as_squares(pairs)


def _of_columns(kernel: Kernel, columns: Sequence[Column]) -> Kernel:
    places = [place for column in columns for place in column.places]
    if all(column.plain for column in columns) and len(set(places)) == len(places):
        return Select(kernel, places)
    used = sorted(set(places))
    inner = [
        replace(column, places=tuple(used.index(place) for place in column.places))
        for column in columns
    ]
    phi = ColumnMap(tuple(inner))
    return Select(Warped(kernel, phi, phi.jacobian), used)


def mean_behind(mean: Mean, columns: Sequence[Column], d: int) -> Mean:
    """Return a mean of inputs u as the same mean of d columns w."""
    if isinstance(mean, (Zero, ConstantMean)):
        return mean
    if any(column.jumps for column in columns):
        raise UnsupportedModelError(
            "mean_module: a mean that depends on columns with categories is not supported"
        )
    places = [column.places[0] for column in columns]
    if all(column.plain for column in columns):
        if isinstance(mean, LinearMean):
            coefficients = np.zeros(d)
            np.add.at(coefficients, places, mean.coefficients)
            return LinearMean(coefficients, mean.intercept)
        if places == list(range(d)):
            return mean
    mapped = MappedMean(mean, ColumnMap(tuple(columns)))
    return Function(mapped.value, mapped.gradient)


@dataclass(frozen=True, eq=False)
class MappedMean:
    """m(u(w)) with its gradient."""

    mean: Mean
    map: ColumnMap

    def value(self, W: Array) -> Array:
        """Return m, (n,), at rows W (n, d)."""
        return self.mean(self.map(W))

    def gradient(self, W: Array) -> Array:
        """Return ∂m/∂wᵢ, (n, d)."""
        inner = self.mean.gradient(self.map(W))
        return (inner[:, None, :] @ self.map.jacobian(W))[:, 0, :]


def posterior_behind(posterior: Posterior, maps: Mapping[int, Maps]) -> Posterior:
    """Return the posterior of a function of inputs, of which those in ``maps`` are hⱼ(wⱼ), of w."""
    if not maps:
        return posterior
    result = _behind(posterior, maps)
    for name in ("label", "note"):
        object.__setattr__(result, name, getattr(posterior, name))
    return result


def _behind(posterior: Posterior, maps: Mapping[int, Maps]) -> Posterior:
    if isinstance(posterior, MultiOutputPosterior) and posterior.independent:
        return MultiOutputPosterior(
            {name: posterior_behind(part, maps) for name, part in posterior.outputs.items()}
        )
    if isinstance(posterior, MixturePosterior):
        parts = [posterior_behind(part, maps) for part in posterior.posteriors]
        return MixturePosterior(parts, posterior.weights)
    if isinstance(posterior, CombinationPosterior) and _level(posterior.mean):
        parts = [posterior_behind(part, maps) for part in posterior.posteriors]
        return CombinationPosterior(parts, posterior.coefficients, mean=posterior.mean)
    if isinstance(posterior, AffinePosterior):
        return _behind_scaler(posterior, maps)
    if isinstance(posterior, ExactPosterior):
        inputs = posterior.inputs + 0.0
        for j, own in maps.items():
            inputs[:, j] = inverse(own, inputs[:, j])
        columns = [Column((j,), maps.get(j, ())) for j in range(inputs.shape[1])]
        return ExactPosterior(
            kernel_behind(posterior.kernel, columns),
            inputs,
            posterior.y,
            noise=posterior.noise,
            mean=mean_behind(posterior.prior_mean, columns, len(columns)),
        )
    raise UnsupportedModelError(
        f"model: logarithms of the inputs of a {type(posterior).__name__} are not supported"
    )


def _level(mean: Mean) -> bool:
    return isinstance(mean, (Zero, ConstantMean))


def _behind_scaler(posterior: AffinePosterior, maps: Mapping[int, Maps]) -> Posterior:
    """Return g((h(w) − shift)/scale): where h is no identity, the scaler becomes part of it."""
    shift, scale = to_numpy(posterior.shift).copy(), to_numpy(posterior.scale).copy()
    inner: dict[int, Maps] = {}
    for j, source in enumerate(posterior.source):
        if source in maps:
            inner[j] = (*maps[source], Affine(float(shift[j]), float(scale[j])))
            shift[j], scale[j] = 0.0, 1.0
    return AffinePosterior(
        posterior_behind(posterior.posterior, inner),
        shift,
        scale,
        source=posterior.source,
        n_features=posterior.width,
        feature_names=posterior.feature_names,
    )


def of_features(
    posterior: Posterior,
    source: Sequence[int],
    shift: Any,
    scale: Any,
    names: Sequence[str],
    encoder: Encoder | None = None,
    *,
    named: bool = True,
) -> Posterior:
    """Return a posterior of columns, of one output or several, as one of features called ``names``.

    The j-th column is (z[source[j]] − shift[j])/scale[j] of features z, or of encoded ones.
    """
    labels = tuple(names) if named else None
    labels = labels if encoder is None else encoder.encoded_names
    width = len(names) if encoder is None else len(encoder.columns)

    def placed(part: Any) -> Posterior:
        return AffinePosterior(
            part, shift, scale, source=source, n_features=width, feature_names=labels
        )

    result = _each_output(posterior, placed)
    if encoder is None:
        return result
    return _each_output(result, lambda part: EncodedPosterior(part, encoder))


def _each_output(posterior: Posterior, wrap: Callable[[Any], Any]) -> Posterior:
    if not isinstance(posterior, MultiOutputPosterior):
        return wrap(posterior)
    outputs = {name: wrap(part) for name, part in posterior.outputs.items()}
    return WrappedOutputs(posterior, outputs, next(iter(outputs.values())))
