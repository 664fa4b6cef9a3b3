"""Mixtures of posteriors: models that differ in their hyperparameters or random features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from gpattr._core.array import Array, is_tensor, namespace, product, to_numpy
from gpattr._core.memory import check_memory
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import as_vector, check_count, read_only
from gpattr.distributions import Mixture
from gpattr.distributions.marginals import Marginals
from gpattr.exceptions import InvalidInputError
from gpattr.operators import Operator
from gpattr.posteriors.base import (
    Posterior,
    check_same,
    check_single,
    shared_reference_points,
)
from gpattr.posteriors.bound import (
    Attributions,
    Bound,
    Evaluation,
    check_covariance_memory,
    check_joint_memory,
    covariance,
    gathering,
)
from gpattr.posteriors.given import noise_at
from gpattr.posteriors.stack import Stack


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MixturePosterior(Posterior):
    """Σₖ weightₖ p(f | modelₖ): one of the ``posteriors`` is right; ``weights`` are probabilities.

    They are equal by default. Fitted estimators stand for their posteriors.

    Means are averaged; covariances are averaged, and the covariance of the means is added (total
    variance). Attributions are not Gaussian: `apply` returns their components too.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> other = gpattr.GPRegressor().fit(X, 3.0 * X[:, 0])
    >>> mixture = gpattr.posteriors.MixturePosterior([model, other], weights=[0.5, 0.5])
    >>> mixture.predict([[1.0, 0.0]]).round(2)
    array([2.])
    """

    posteriors: tuple[Posterior, ...]
    weights: Array

    def __init__(self, posteriors: Sequence[Posterior], weights: Any = None) -> None:
        if not isinstance(posteriors, Sequence):
            raise InvalidInputError(
                "posteriors: expected a list of gpattr posteriors, got a"
                f" {type(posteriors).__name__}"
            )
        posteriors = tuple(getattr(model, "posterior_", model) for model in posteriors)
        for posterior in posteriors:
            check_single("posteriors", posterior)
        if not posteriors:
            raise InvalidInputError("posteriors: expected at least one, got none")
        k = len(posteriors)
        weights = np.full(k, 1.0 / k) if weights is None else weights
        weights = to_numpy(
            as_vector("weights", weights, length=k, unit="weights (one per posterior)")
        )
        if (weights < 0).any() or abs(weights.sum() - 1.0) > 1e-8:
            raise InvalidInputError(
                "weights: expected weights, 0 or larger, that sum to 1, got a sum of"
                f" {weights.sum()}"
            )
        flat = [
            (w * inner, part)
            for w, posterior in zip(weights / weights.sum(), posteriors, strict=True)
            for inner, part in posterior.components
            if w * inner > 0
        ]
        first = flat[0][1]
        for _, part in flat:
            check_same("posteriors", first, part)
            if part.link != first.link:
                raise InvalidInputError(
                    f"posteriors: expected the same link, got {first.link} and {part.link}"
                )
        values = {
            "posteriors": tuple(part for _, part in flat),
            "weights": read_only(np.array([w for w, _ in flat])),
            "feature_names": first.feature_names,
            "encoder": first.encoder,
            "label": first.label,
            "note": first.note,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def like(self) -> Array:
        return self.posteriors[0].like

    @property
    def n_features(self) -> int:
        return self.posteriors[0].n_features

    @property
    def n_columns(self) -> int:
        return self.posteriors[0].n_columns

    @property
    def in_columns(self) -> Posterior:
        if self.encoder is None:
            return self
        return MixturePosterior([part.in_columns for part in self.posteriors], self.weights)

    @property
    def inner(self) -> tuple[Posterior, ...]:
        return self.posteriors

    @property
    def reference_points(self) -> Mapping[str, Array]:
        """The mean and the median of the training inputs, if all components agree on them."""
        return shared_reference_points(self.posteriors)

    @property
    def link(self) -> str | None:
        return self.posteriors[0].link

    @property
    def training_inputs(self) -> Array | None:
        """The inputs the models were trained on, if all were trained on the same."""
        first, *others = (posterior.training_inputs for posterior in self.posteriors)
        same = first is not None and all(
            other is not None and np.array_equal(to_numpy(first), to_numpy(other))
            for other in others
        )
        return first if same else None

    @property
    def components(self) -> tuple[tuple[float, Posterior], ...]:
        return tuple(zip(self.weights.tolist(), self.posteriors, strict=True))

    def rows(self, name: str, X: Any) -> Array:
        return self.posteriors[0].rows(name, X)

    @cached_property
    def stack(self) -> Stack | None:
        """The posteriors as one stack, if they differ in their hyperparameters only."""
        return Stack.of(self.posteriors)

    def moments(self, X: Array, *, return_std: bool = False, return_cov: bool = False) -> Any:
        if not return_cov:
            mixture = self.marginals_at(X, return_std)
            std = namespace(mixture.means).sqrt(mixture.var) if return_std else None
            return (mixture.mean, std) if return_std else mixture.mean
        parts = [posterior.moments(X, return_cov=True) for posterior in self.posteriors]
        means = namespace(parts[0][0]).stack([part[0] for part in parts])
        weights = self.weights_like(means)
        mean = product(weights, means)
        deviation = means - mean
        total = product((weights[:, None] * deviation).T, deviation)
        for weight, (_, cov) in zip(self.weights.tolist(), parts, strict=True):
            total = total + weight * cov
        return mean, covariance(total)

    def marginals(self, X: Any, *, with_variances: bool = True) -> Marginals:
        """Return the mixture of f at each row of X by itself, with its density and quantiles."""
        return self.marginals_at(self.rows("X", X), with_variances)

    def marginals_at(self, X: Array, with_variances: bool = True) -> Marginals:
        """Return the result of `marginals` for checked rows."""
        if self.stack is not None and self.stack.holds(len(X)):
            means, variances = self.stack.moments(to_numpy(X), with_variances)
            return Marginals(self.weights, means, 0.0 * means if variances is None else variances)
        if not with_variances:
            means = [posterior.moments(X) for posterior in self.posteriors]
            stack = namespace(means[0]).stack(means)
            return Marginals(self.weights_like(stack), stack, stack * 0.0)
        parts = [posterior.moments(X, return_std=True) for posterior in self.posteriors]
        means, stds = (namespace(parts[0][0]).stack([part[i] for part in parts]) for i in (0, 1))
        return Marginals(self.weights_like(means), means, stds**2)

    def component_slopes(self, X: Array) -> tuple[np.ndarray, ...]:
        """Return `slopes` of each component, (K, n) and (K, n, d)."""
        if self.stack is not None and self.stack.holds(len(X)):
            return self.stack.slopes(to_numpy(X))
        parts = [tuple(map(to_numpy, part.slopes(X))) for part in self.posteriors]
        return tuple(np.stack(each) for each in zip(*parts, strict=True))

    def require_jets(self) -> None:
        for part in self.posteriors:
            part.require_jets()

    def path_lengths(self, start: Array, stop: Array) -> Array:
        """Return the longest of the components' lengths."""
        lengths = [part.path_lengths(start, stop) for part in self.posteriors]
        return reduce(namespace(lengths[0]).maximum, lengths)

    @property
    def noise_variance(self) -> float | None:
        """The noise variance on which all components agree."""
        found = {part.noise_variance for part in self.posteriors}
        return found.pop() if len(found) == 1 else None

    def conditioned(self, X: Array, y: Array, noise: Any) -> MixturePosterior:
        """Return the mixture given more measurements, each component with its own noise.

        A component's weight is multiplied by the density that it gave the measurements.
        """
        parts = [part.conditioned(X, y, noise) for part in self.posteriors]
        logs = np.log(self.weights)
        for k, part in enumerate(self.posteriors):
            mean, cov = (to_numpy(value) for value in part.moments(X, return_cov=True))
            L = np.linalg.cholesky(cov + np.diag(to_numpy(noise_at(part, noise, X))))
            z = np.linalg.solve(L, to_numpy(y) - mean)
            logs[k] -= 0.5 * float(z @ z) + float(np.log(L.diagonal()).sum())
        weights = np.exp(logs - logs.max())
        return MixturePosterior(parts, weights / weights.sum())

    def bind(self, operator: Operator, evaluation: Evaluation) -> Bound:
        # An error of one model counts by its weight.
        parts = tuple(
            part.bind(operator, replace(evaluation, tolerance=evaluation.tolerance / weight))
            for weight, part in self.components
        )
        return MixtureBound(self, parts, operator, evaluation)

    def weights_like(self, like: Array) -> Array:
        """Return the weights as an array beside ``like``."""
        return namespace(like).asarray(self.weights) if is_tensor(like) else self.weights

    def __repr__(self) -> str:
        names = [type(posterior).__name__ for posterior in self.posteriors]
        kinds = " + ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))
        return f"MixturePosterior({kinds}, {self.n_features} features)"


@dataclass(frozen=True, eq=False)
class MixtureBound(Bound):
    """An operator bound to each model of a mixture."""

    posterior: MixturePosterior
    parts: tuple[Bound, ...]
    operator: Operator
    evaluation: Evaluation

    def rows(self, rows: Any) -> MixtureBound:
        parts = tuple(part.rows(rows) for part in self.parts)
        return replace(self, parts=parts, operator=self.operator.rows(rows))

    def apply(self, X: Array) -> Attributions:
        uncertainty = self.evaluation.uncertainty
        if uncertainty == "cov":
            q = self.operator.size(self.posterior.n_features)
            check_covariance_memory(len(X), q, copies=len(self.parts) + 1)
        parts = self._each(X)
        xp = namespace(parts[0].mean)
        means = xp.stack([part.mean for part in parts])
        weights = self.posterior.weights_like(means)
        names = " + ".join(sorted({name for part in parts for name in part.method.split(" + ")}))
        error = product(weights, xp.stack([part.error for part in parts]))
        mean = product(weights, means)
        distribution = _mixture(parts, weights, means, mean, uncertainty)
        cov_error = None
        if uncertainty != "none":
            distance = xp.max(xp.abs(means - mean), axis=2)  # (K, n)
            bounds = xp.stack(
                [
                    part.cov_error + 2.0 * d * part.error
                    for part, d in zip(parts, distance, strict=True)
                ]
            )
            cov_error = xp.tensordot(weights, bounds, axes=1)
        return Attributions(distribution, error, names, cov_error)

    def _each(self, X: Array) -> list[Attributions]:
        """Return the attributions of each model."""
        stack = self.posterior.stack
        if (
            stack is not None
            and stack.serves(self.operator, self.evaluation)
            and stack.holds(*X.shape)
        ):
            return stack.attributions(self.parts, X)
        return [part.apply(X) for part in self.parts]

    def joint(self, X: Array) -> Array:
        """Return the covariance between all outputs of all rows by total variance."""
        n, q = len(X), self.operator.size(self.posterior.n_features)
        check_joint_memory(n, q, copies=3)
        stack, weights = self._means(X)
        stack = stack.reshape(len(stack), -1)
        total = namespace(stack).zeros((stack.shape[1], stack.shape[1]))
        for weight, part in zip(self.posterior.weights.tolist(), self.parts, strict=True):
            total = total + weight * part.joint(X).reshape(total.shape)
        deviation = stack - product(weights, stack)
        total = covariance(total + product((weights[:, None] * deviation).T, deviation))
        return total.reshape(n, -1, n, total.shape[0] // n)

    def rows_covariance(self, X: Array, gather: Any = None) -> Array:
        """Return the covariance between rows of each output, or column of ``gather``."""
        stack, weights = self._means(X)
        G = gathering(gather, stack.shape[2], X)
        stack = stack if G is None else stack @ G
        xp = namespace(stack)
        total = xp.zeros((stack.shape[2], len(X), len(X)))
        for weight, part in zip(self.posterior.weights.tolist(), self.parts, strict=True):
            total = total + weight * part.rows_covariance(X, gather)
        deviation = stack - xp.tensordot(weights, stack, axes=1)
        return covariance(total + xp.einsum("k,kni,kmi->inm", weights, deviation, deviation))

    def contributions(self, X: Array) -> Array:
        """Return the share of each training row in each mean, averaged over the models."""
        if self.posterior.training_inputs is None:
            return super().contributions(X)
        parts = zip(self.posterior.weights.tolist(), self.parts, strict=True)
        return reduce(add, (weight * part.contributions(X) for weight, part in parts))

    def sample(self, X: Array, n: int, random_state: RandomLike) -> np.ndarray:
        """Return n draws at all rows together: of a model, then of its function."""
        generator, n = random_generator(random_state), check_count("n", n)
        q = self.operator.size(self.posterior.n_features)
        check_memory("n: the draws", (n, len(X), q), "use fewer draws or rows")
        weights = self.posterior.weights
        counts = generator.multinomial(n, weights)
        chosen = generator.permutation(np.repeat(np.arange(len(weights)), counts))
        drawn = {
            int(k): self.parts[k].sample(X, int((chosen == k).sum()), generator)
            for k in np.unique(chosen)
        }
        draws = np.empty((n, *next(iter(drawn.values())).shape[1:]))
        for k, part in drawn.items():
            draws[chosen == k] = part
        return draws

    def _means(self, X: Array) -> tuple[Array, Array]:
        """Return the means of the models, (K, n, q), and their weights."""
        means = [part.mean(X) for part in self.parts]
        stack = namespace(means[0]).stack(means)
        return stack, self.posterior.weights_like(stack)


def _mixture(
    parts: list[Attributions], weights: Array, means: Array, mean: Array, uncertainty: str
) -> Mixture:
    """Return the mixture of Gaussian attributions, with its totals as far as requested."""
    xp = namespace(means)
    if uncertainty == "none":
        return Mixture(weights, means, mean=mean)
    var = xp.stack([part.var for part in parts])
    if uncertainty == "std":
        return Mixture(weights, means, var, mean=mean, var=Marginals(weights, means, var).var)
    cov = xp.stack([part.cov for part in parts])
    deviation = means - mean
    total = product(weights, cov) + xp.einsum("k,kni,knj->nij", weights, deviation, deviation)
    total = covariance(total)
    return Mixture(
        weights, means, var, cov, mean=mean, var=xp.diagonal(total, axis1=1, axis2=2), cov=total
    )
