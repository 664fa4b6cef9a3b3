"""The posterior protocol: declarations and methods of every posterior."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from gpattr._core.arguments import Checked, an_array, instance
from gpattr._core.array import EPS, Array, namespace
from gpattr._core.cards import card
from gpattr._core.frozen import Frozen
from gpattr._core.memory import device_memory
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import Names, as_matrix, as_vector, check_flag, read_only
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.operators import Operator
from gpattr.posteriors.bound import TOLERANCE, Attributions, Bound, Evaluation
from gpattr.posteriors.given import check_noise, measured_rows, measured_values

CHECKS = {
    "operator": instance(Operator, "a gpattr operator, such as IntegratedGradients"),
    "evaluation": instance(Evaluation, "a gpattr Evaluation"),
    "return_std": check_flag,
    "return_cov": check_flag,
    "with_variances": check_flag,
    "like": an_array,
}


class Posterior(Checked, Frozen, ABC):
    """The distribution of a function given data: it predicts, and operators apply to it.

    ``feature_names`` are the columns of the frame it was trained on. ``encoder`` makes numeric
    columns of a frame with categories or dates, if the model was trained on one. ``label`` names
    the class whose log odds f is, if it is; ``note`` is a remark for explanations of the model.
    ``target_name`` names the target, and ``named_points`` (columns,) are further reference points,
    if the model knows them: an optimiser's best point so far and centre of its space.

    A subclass defines `n_features`, `like`, `moments` and `bind`; `require_jets`, `path_lengths`
    and `slopes` for quantities such as its standard deviation, and for counterfactuals;
    `increments` only if its function can be the log odds of a class.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> posterior = model.posterior_
    >>> isinstance(posterior, gpattr.posteriors.Posterior), posterior.n_features
    (True, 2)
    >>> posterior.predict([[1.0, 0.0]]).round(2)
    array([1.])
    """

    checks: ClassVar[Any] = CHECKS
    several_outputs: ClassVar[bool] = False

    feature_names: Names | None = None
    encoder: Encoder | None = None
    label: str = ""
    note: str = ""
    target_name: str | None = None
    named_points: Mapping[str, Array] = MappingProxyType({})

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of features d that are explained."""

    @property
    @abstractmethod
    def like(self) -> Array:
        """An array of the library and on the device that this posterior lives on."""

    @property
    def n_columns(self) -> int:
        """The number of columns of rows; more than features where these are encoded."""
        return self.n_features

    @property
    def in_columns(self) -> Posterior:
        """The same posterior as a function of encoded columns; itself where none are encoded."""
        return self

    @property
    def reference_points(self) -> Mapping[str, Array]:
        """Points (d,) that can serve as baselines, by name: "mean" and "median", if known."""
        return {}

    @property
    def outputs(self) -> Mapping[str, Posterior]:
        """The posteriors of the outputs by name; one, without a name, for a single output."""
        return {"": self}

    @property
    def inner(self) -> tuple[Posterior, ...]:
        """The posteriors of which this one is made; none for one that is made of data."""
        return ()

    @property
    def link(self) -> str | None:
        """The function that maps f to a probability, for a classifier: "logistic"."""
        return None

    @property
    def components(self) -> tuple[tuple[float, Posterior], ...]:
        """The Gaussian posteriors of which this is a mixture, with their weights."""
        return ((1.0, self),)

    @property
    def training_inputs(self) -> Array | None:
        """The inputs the model was trained on, (m, d), if it still has them."""
        return None

    @property
    def condition_number(self) -> float:
        """An estimate of the condition number of the factorised matrix; the largest of several."""
        return max((part.condition_number for part in self.inner), default=1.0)

    def rows(self, name: str, X: Any) -> Array:
        """Return rows as a checked array (n, columns) beside the posterior's own."""
        return as_matrix(
            name, X, names=self.feature_names, n_features=self.n_columns, like=self.like
        )

    @property
    def noise_variance(self) -> float | None:
        """The noise variance of a measurement, if the model has one for all rows."""
        return None

    @abstractmethod
    def moments(self, X: Array, *, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the result of `predict` for rows that have been checked."""

    @abstractmethod
    def bind(self, operator: Operator, evaluation: Evaluation) -> Bound:
        """Return the operator bound to this posterior, its formulas resolved once."""

    def values_variance(self, X: Array) -> Array:
        """Return Var[f(x)], (n,), for checked rows; exactly 0 where rounding is all there is."""
        return self.moments(X, return_std=True)[1] ** 2

    def values_covariance(self, X: Array, points: Array) -> Array:
        """Return Cov[f(x), f(p)], (n, c), for checked rows X and points."""
        both = namespace(X).concatenate([X, points])
        return self.moments(both, return_cov=True)[1][: len(X), len(X) :]

    def condition_on(self, x: Any, y: Any, noise: Any = None) -> Posterior:
        """Return the posterior after one more measurement y of the function at x, or several.

        ``x`` is a row, or rows (k, d), and ``y`` a number for each. ``noise`` is the variance of
        the measurements, one or one each, by default the model's own. Kernel, prior mean, noise of
        earlier rows and units stay as they are, and nothing is factorised again: with m training
        rows a measurement takes O(m²).
        """
        rows = measured_rows(self, x)
        noise = None if noise is None else check_noise(noise, rows)
        result = self.conditioned(rows, measured_values(y, rows), noise)
        return self.described(result)

    def described(self, other: Posterior) -> Posterior:
        """Return another posterior of the same table, with the names and notes of this one."""
        for name in ("feature_names", "label", "note", "target_name", "named_points"):
            if (value := getattr(self, name)) is not getattr(Posterior, name):
                object.__setattr__(other, name, value)
        return other

    def conditioned(self, X: Array, y: Array, noise: Any) -> Posterior:
        """Return `condition_on`'s result for checked rows; ``noise`` None is the model's own."""
        raise UnsupportedModelError(
            f"{type(self).__name__}: it cannot be conditioned on further measurements"
        )

    def predict(self, X: Any, *, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the mean of the latent function at X, (n,).

        If asked, its standard deviation (n,) or covariance (n, n) comes with it. The latent
        function is free of noise: its variance does not contain the noise of an observation.
        """
        rows = self.rows("X", X)
        with device_memory("The prediction", rows):
            return self.moments(rows, return_std=return_std, return_cov=return_cov)

    def apply(
        self,
        operator: Operator,
        X: Any,
        *,
        uncertainty: str = "cov",
        method: str = "auto",
        n_steps: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> Attributions:
        """Return the joint distribution of the operator's q outputs at every row of X.

        The options are documented in `Evaluation`.
        """
        evaluation = Evaluation(uncertainty, method, n_steps, tolerance)
        rows = self.rows("X", X)
        with device_memory("The explanation", rows):
            return self.bind(operator, evaluation).apply(rows)

    def joint(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        """Return the covariance between all outputs of all rows, (n, q, n, q)."""
        bound = self.bind(operator, Evaluation("none", method, n_steps))
        return bound.joint(self.rows("X", X))

    def rows_covariance(
        self,
        operator: Operator,
        X: Any,
        gather: Any = None,
        *,
        method: str = "auto",
        n_steps: int | None = None,
    ) -> Array:
        """Return the covariance between rows of each output by itself, (q, n, n).

        With ``gather`` G (q, k) the outputs are the sums Σᵢ Gᵢⱼ𝒜ᵢ, (k, n, n).
        """
        bound = self.bind(operator, Evaluation("none", method, n_steps))
        return bound.rows_covariance(self.rows("X", X), gather)

    def contributions(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        """Return the share of each training row in each mean, (n, q, m).

        It is available for posteriors that keep their rows.
        """
        bound = self.bind(operator, Evaluation("none", method, n_steps))
        return bound.contributions(self.rows("X", X))

    def across(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        """Return each row's covariance between outputs of operator and model, (n, q, P, q, P)."""
        bound = self.bind(operator, Evaluation("none", method, n_steps))
        return bound.across(self.rows("X", X))

    def sample(
        self, operator: Operator, X: Any, n: int = 1, *, random_state: RandomLike = None
    ) -> np.ndarray:
        """Return n draws of the operator's outputs at all rows of X together, (n, rows, q)."""
        bound = self.bind(operator, Evaluation("none"))
        return bound.sample(self.rows("X", X), n, random_state)

    # What a link or a quantity needs along a path: the function and its gradient together.

    @property
    def size(self) -> int:
        """The number of function values that it is conditioned on."""
        return max((part.size for part in self.inner), default=0)

    def require_jets(self) -> None:
        """Raise `UnsupportedModelError` unless the function and its gradient are available."""
        raise UnsupportedModelError(f"{type(self).__name__}: it has no joint gradients")

    def path_lengths(self, start: Array, stop: Array) -> Array:
        """Return how many length-scales lie between points, (n,)."""
        raise UnsupportedModelError(f"{type(self).__name__}: it has no joint gradients")

    def slopes(self, X: Array) -> tuple[np.ndarray, ...]:
        """Return E[f] and Var[f], (n,), E[∂ᵢf] and Cov[f, ∂ᵢf], (n, d), at rows X."""
        raise UnsupportedModelError(f"{type(self).__name__}: it has no joint gradients")

    def rounding_of_variance(self, X: Array) -> Array:
        """Return the possible rounding of Var[f] at rows X, (n,); posteriors override it."""
        return 64.0 * EPS * self.predict(X, return_std=True)[1] ** 2

    def increments(
        self,
        start: Array,
        stop: Array,
        gathering: Array | None,
        nodes: np.ndarray,
        weights: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and covariance of f(b) and of each feature's increments on panels of paths.

        See `gpattr.posteriors.jets.increments`.
        """
        raise UnsupportedModelError(f"{type(self).__name__}: it has no joint gradients")

    def _facts(self) -> list[tuple[str, object]]:
        """Return the facts about this posterior for its card."""
        rows = self.training_inputs
        names = ", ".join(self.feature_names) if self.feature_names else str(self.n_features)
        return [("training rows", "not kept" if rows is None else len(rows)), ("features", names)]

    def _repr_html_(self) -> str:
        return card(type(self).__name__, self._facts())


def shared_reference_points(posteriors: Sequence[Posterior]) -> dict[str, Array]:
    """Return the reference points on which all posteriors agree."""
    first, *others = (posterior.reference_points for posterior in posteriors)

    def shared(name: str, point: Array) -> bool:
        return all(
            name in other and np.allclose(other[name], point, rtol=1e-9, atol=0.0)
            for other in others
        )

    return {name: point for name, point in first.items() if shared(name, point)}


def checked_points(points: Any, d: int) -> dict[str, Array]:
    """Return reference points that a user gives, {name: point (d,)}; none for None."""
    if points is not None and not isinstance(points, Mapping):
        raise InvalidInputError(
            "reference_points: expected a dictionary {name: point}, got a"
            f" {type(points).__name__}"
        )
    return {
        name: read_only(as_vector(f"reference_points[{name!r}]", point, length=d))
        for name, point in (points or {}).items()
    }


def check_single(name: str, value: Any) -> None:
    """Raise `InvalidInputError` unless ``value`` is a posterior with one output."""
    if not isinstance(value, Posterior) or value.several_outputs:
        raise InvalidInputError(
            f"{name}: expected a gpattr posterior with one output, got a {type(value).__name__}"
        )


def check_same(name: str, first: Posterior, other: Posterior) -> None:
    """Raise `InvalidInputError` unless two posteriors have the same features."""
    facts = (
        ("n_features", first.n_features, other.n_features),
        ("feature_names", first.feature_names, other.feature_names),
        ("encoder", first.encoder, other.encoder),
    )
    for what, one, two in facts:
        if one != two:
            raise InvalidInputError(f"{name}: expected the same {what}, got {one} and {two}")
