"""Deep Gaussian processes: layers of posteriors, each a function of the outputs of the layer below.

    f(x) = f_L(h_{L−1}(… h₁(x))),    units of a layer independent given the one below

as in doubly stochastic variational inference (Salimbeni and Deisenroth, 2017). f is not Gaussian.
The mean of any linear operator is its value for F(x) = E f(x), which is known (`expected_layers`);
its covariance comes from draws of the hidden layers (`deep_bound`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, is_tensor, to_numpy
from gpattr._core.memory import check_memory
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import check_count
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.means import Constant, Linear, Zero
from gpattr.operators import Operator
from gpattr.posteriors.base import Posterior, checked_points
from gpattr.posteriors.bound import Bound, Evaluation, covariance
from gpattr.posteriors.deep_bound import LARGEST, DeepBound
from gpattr.posteriors.expected_layers import Layer, averages, drawn_layers, value_moments
from gpattr.posteriors.function_space import FunctionSpacePosterior

MOST_LAYERS = 5
LEAST_DRAWS = 10


@dataclass(frozen=True, eq=False, init=False, repr=False)
class DeepPosterior(Posterior):
    """A deep Gaussian process of ``layers``: lists of posteriors, from the inputs up.

    Each hidden layer is a list of independent units, function-space posteriors such as
    `SparsePosterior` of as many inputs as the layer below has units; the last layer is one
    posterior. Their means are zero, constant or linear.

    Covariances of attributions come from ``draws`` of the hidden layers, in antithetic pairs, which
    ``random_state`` fixes: the same rows are always explained alike. ``reference_points`` can serve
    as baselines, such as ``{"mean": …}`` of the training inputs.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> Z = np.linspace(-2.0, 2.0, 5)[:, None]
    >>> def layer(values):
    ...     kernel = gpattr.kernels.SquaredExponential()
    ...     return gpattr.posteriors.SparsePosterior(kernel, Z, values, 0.01 * np.eye(5))
    >>> deep = gpattr.posteriors.DeepPosterior([[layer(np.sin(Z[:, 0]))], layer(Z[:, 0] ** 2)])
    >>> deep.n_features
    1
    """

    layers: tuple[Layer, ...]
    pairs: int
    seed: tuple[int, ...]
    points: Mapping[str, Array]

    def __init__(
        self,
        layers: Sequence[Any],
        *,
        draws: int = 1000,
        random_state: RandomLike = 0,
        reference_points: Mapping[str, Any] | None = None,
    ) -> None:
        checked = _checked_layers(layers)
        if check_count("draws", draws) < LEAST_DRAWS:
            raise InvalidInputError(f"draws: expected at least {LEAST_DRAWS}, got {draws}")
        seed = int(random_generator(random_state).integers(2**62))
        first = checked[0][0]
        values = {
            "layers": checked,
            "pairs": (int(draws) + 1) // 2,
            "seed": (seed,),
            "points": checked_points(reference_points, first.n_features),
            "feature_names": first.feature_names,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def draws(self) -> int:
        """The number of draws of the hidden layers, twice the number of pairs."""
        return 2 * self.pairs

    @property
    def like(self) -> Array:
        return self.layers[0][0].like

    @property
    def n_features(self) -> int:
        return self.layers[0][0].n_features

    @property
    def inner(self) -> tuple[Posterior, ...]:
        return tuple(unit for layer in self.layers for unit in layer)

    @property
    def reference_points(self) -> Mapping[str, Array]:
        """Points that can serve as baselines, by name."""
        return self.points

    @property
    def prior_std(self) -> float:
        """The prior standard deviation of the last layer, the size of its function."""
        last = self.layers[-1][0]
        return float(np.sqrt(last.kernel.diagonal(last.inputs).max()))

    def moments(self, X: Array, *, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return F at rows; standard deviations average over hidden layers, covariances draw them.

        Variances of a covariance agree with the standard deviations.
        """
        X = to_numpy(X)
        if not (return_std or return_cov):
            return averages(self.layers, X).value
        mean, variance = value_moments(self.layers, X)
        std = np.sqrt(np.maximum(variance, 0.0))
        return (mean, std) if not return_cov else (mean, self._covariance(X, mean, std))

    def _covariance(self, X: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Return the covariance of f between rows, (n, n), by draws of the hidden layers there."""
        n = len(X)
        check_memory("The covariance of the predictions", (n, n), "use return_std=True")
        if n * (1 + X.shape[1]) > LARGEST:
            raise UnsupportedModelError(
                f"X: {n} rows with {X.shape[1]} features are drawn together, more than"
                f" {LARGEST // (1 + X.shape[1])}; use return_std=True, or fewer rows"
            )
        *hidden, (last,) = self.layers
        total = np.zeros((n, n))
        for h in drawn_layers(hidden, X, self.pairs, self.seed).values:
            centre, cov = last.moments(h, return_cov=True)
            total += cov + np.outer(centre - mean, centre - mean)
        total /= self.draws
        drawn = np.sqrt(np.maximum(total.diagonal(), 1e-300))
        return covariance(total * (std / drawn)[:, None] * (std / drawn))

    def bind(self, operator: Operator, evaluation: Evaluation) -> Bound:
        return DeepBound(self, operator, evaluation)

    def path_lengths(self, start: Array, stop: Array) -> Array:
        return np.max([unit.path_lengths(start, stop) for unit in self.layers[0]], axis=0)

    def __repr__(self) -> str:
        widths = " → ".join(str(len(layer)) for layer in self.layers)
        return f"DeepPosterior({self.n_features} features → {widths}, {self.draws} draws)"


def _checked_layers(layers: Any) -> tuple[Layer, ...]:
    """Return layers as tuples of posteriors that fit on each other."""
    if not isinstance(layers, Sequence) or isinstance(layers, str) or len(layers) < 2:
        raise InvalidInputError(
            "layers: expected a list of at least two layers, each a list of posteriors, got"
            f" {layers!r}"
        )
    if len(layers) > MOST_LAYERS:
        raise UnsupportedModelError(
            f"layers: expected at most {MOST_LAYERS} layers, got {len(layers)}"
        )
    found, below = [], None
    for k, layer in enumerate(layers):
        units = tuple(layer) if isinstance(layer, (list, tuple)) else (layer,)
        if not units:
            raise InvalidInputError(f"layers: expected at least one unit in layer {k}, got none")
        for unit in units:
            _check_unit(k, unit)
        widths = {unit.n_features for unit in units}
        expected = units[0].n_features if below is None else len(below)
        if widths != {expected}:
            raise InvalidInputError(
                f"layers: expected units of {expected} inputs in layer {k}, got {sorted(widths)}"
            )
        found.append(units)
        below = units
    if len(found[-1]) != 1:
        raise UnsupportedModelError(
            f"layers: expected one output in the last layer, got {len(found[-1])}"
        )
    return tuple(found)


def _check_unit(k: int, unit: Any) -> None:
    if not isinstance(unit, FunctionSpacePosterior) or unit.trend is not None:
        raise InvalidInputError(
            f"layers: expected function-space posteriors with a known mean, such as"
            f" SparsePosterior, in layer {k}, got a {type(unit).__name__}"
        )
    if is_tensor(unit.like):
        raise UnsupportedModelError(f"layers: expected NumPy arrays, got tensors in layer {k}")
    if not isinstance(unit.mean, (Zero, Constant, Linear)):
        raise UnsupportedModelError(
            f"layers: expected a zero, constant or linear mean in layer {k}, got a"
            f" {type(unit.mean).__name__}"
        )
    unit.require_jets()
