"""A mixture of posteriors: models that differ in their hyperparameters, or in their random
features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, is_tensor, namespace, product, to_numpy
from gpattr._core.memory import check_memory
from gpattr._core.normal import check_count, random_generator
from gpattr._core.validation import Names, as_matrix, as_vector, check_choice, read_only
from gpattr.distributions.marginals import Mixture
from gpattr.exceptions import InvalidInputError
from gpattr.operators import Operator
from gpattr.posteriors.base import (
    TOLERANCE,
    UNCERTAINTY,
    Attributions,
    Components,
    Posterior,
    covariance,
    gathering,
    require_covariance_room,
    shared_reference_points,
)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MixturePosterior(Posterior):
    """Σₖ weightₖ p(f | modelₖ): one of the ``posteriors`` is right, and ``weights`` say how
    probable each is (equal by default).

    Fitted estimators stand for their posteriors.

    Means are averaged; covariances are averaged, and the covariance of the means is added (total
    variance). Attributions are not Gaussian: `apply` returns their components too."""

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
            if not isinstance(posterior, Posterior):
                raise InvalidInputError(
                    f"posteriors: expected gpattr posteriors, got a {type(posterior).__name__}"
                )
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
            for what in ("n_features", "feature_names", "link"):
                if getattr(part, what) != getattr(first, what):
                    raise InvalidInputError(
                        f"posteriors: expected the same {what}, got {getattr(first, what)} and"
                        f" {getattr(part, what)}"
                    )
        object.__setattr__(self, "posteriors", tuple(part for _, part in flat))
        object.__setattr__(self, "weights", read_only(np.array([w for w, _ in flat])))

    @property
    def like(self) -> Array:
        return self.posteriors[0].like

    @property
    def n_features(self) -> int:
        return self.posteriors[0].n_features

    @property
    def feature_names(self) -> Names | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The columns of the frame the models were trained on."""
        return self.posteriors[0].feature_names

    @property
    def reference_points(
        self,
    ) -> Mapping[str, Array]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The mean and the median of the training inputs, where all components agree on them."""
        return shared_reference_points(self.posteriors)

    @property
    def link(self) -> str | None:
        return self.posteriors[0].link

    @property
    def label(self) -> str:
        """Of what f is the log odds, where it is one."""
        return getattr(self.posteriors[0], "label", "")

    @property
    def encoder(self) -> Any:
        """What makes rows of a frame with categories, where the model was trained on one."""
        return getattr(self.posteriors[0], "encoder", None)

    @property
    def training_inputs(self) -> Array | None:
        """The inputs the models were trained on, where all were trained on the same."""
        first, *others = (posterior.training_inputs for posterior in self.posteriors)
        same = first is not None and all(
            other is not None and np.array_equal(to_numpy(first), to_numpy(other))
            for other in others
        )
        return first if same else None

    def contributions(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        """Return the share of each training row in each mean attribution, averaged over the models,
        (n, d, m).
        """
        if self.training_inputs is None:
            return super().contributions(operator, X)
        options: dict[str, Any] = {"method": method, "n_steps": n_steps}
        return sum(
            weight * part.contributions(operator, X, **options) for weight, part in self.components
        )  # pyright: ignore[reportReturnType]

    @property
    def components(self) -> tuple[tuple[float, Posterior], ...]:
        return tuple(zip(self.weights.tolist(), self.posteriors, strict=True))

    def predict(self, X: Any, *, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the mean of the latent function at X, (n,); with its standard deviation (n,) or
        covariance (n, n) if asked.
        """
        if return_cov:
            parts = [posterior.predict(X, return_cov=True) for posterior in self.posteriors]
            mean, cov = self._total([part[0] for part in parts], [part[1] for part in parts])
            return mean, covariance(cov)
        mixture = self.marginals(X, with_variances=return_std)
        return (
            (mixture.mean, namespace(mixture.means).sqrt(mixture.var))
            if return_std
            else mixture.mean
        )

    def marginals(self, X: Any, *, with_variances: bool = True) -> Mixture:
        """Return the mixture of f at each row of X by itself, with its density and quantiles."""
        if not with_variances:
            means = [posterior.predict(X) for posterior in self.posteriors]
            stack = namespace(means[0]).stack(means)
            return Mixture(self._weights(stack), stack, stack * 0.0)
        parts = [posterior.predict(X, return_std=True) for posterior in self.posteriors]
        means, stds = (namespace(parts[0][0]).stack([part[i] for part in parts]) for i in (0, 1))
        return Mixture(self._weights(means), means, stds**2)

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
        check_choice("uncertainty", uncertainty, UNCERTAINTY)
        X = self._rows(X)
        if uncertainty == "cov":
            require_covariance_room(len(X), self.n_features, copies=len(self.posteriors) + 1)
        options: dict[str, Any] = {
            "uncertainty": uncertainty,
            "method": method,
            "n_steps": n_steps,
            "tolerance": tolerance,
        }
        parts = [posterior.apply(operator, X, **options) for posterior in self.posteriors]
        xp = namespace(parts[0].mean)
        means = xp.stack([part.mean for part in parts])
        weights = self._weights(means)
        names = " + ".join(sorted({part.method for part in parts}))
        error = product(weights, xp.stack([part.error for part in parts]))
        var = cov = total_var = total_cov = None
        mean = product(weights, means)
        if uncertainty != "none":
            var = xp.stack([part.var for part in parts])
            total_var = Mixture(weights, means, var).var
        if uncertainty == "cov":
            cov = xp.stack([part.cov for part in parts])
            deviation = means - mean
            total_cov = product(weights, cov) + xp.einsum(
                "k,kni,knj->nij", weights, deviation, deviation
            )
            total_cov = covariance(total_cov)
            total_var = xp.diagonal(total_cov, axis1=1, axis2=2)
        cov_error = None
        if uncertainty != "none":
            deviation = xp.max(xp.abs(means - mean), axis=2)  # (K, n)
            bounds = xp.stack(
                [
                    part.cov_error + 2.0 * far * part.error
                    for part, far in zip(parts, deviation, strict=True)
                ]
            )
            cov_error = xp.tensordot(weights, bounds, axes=1)
        return Attributions(
            mean,
            total_var,
            total_cov,
            error,
            names,
            Components(weights, means, var, cov),
            cov_error,
        )

    def joint(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        """Return the covariance between all features of all rows, (n, d, n, d), by total variance."""
        X = self._rows(X)
        n, d = len(X), self.n_features
        check_memory(
            "The joint covariance of the attributions",
            (n, d, n, d),
            "use fewer rows, say a random sample",
            copies=3,
        )
        options: dict[str, Any] = {"method": method, "n_steps": n_steps}
        means, total = [], None
        for weight, posterior in self.components:
            means.append(
                posterior.apply(operator, X, uncertainty="none", **options).mean.reshape(-1)
            )
            part = weight * posterior.joint(operator, X, **options).reshape(n * d, n * d)
            total = part if total is None else total + part
        stack = namespace(means[0]).stack(means)
        weights = self._weights(stack)
        deviation = stack - product(weights, stack)
        return covariance(total + product((weights[:, None] * deviation).T, deviation)).reshape(
            n, d, n, d
        )

    def rows_covariance(
        self,
        operator: Operator,
        X: Any,
        gather: Any = None,
        *,
        method: str = "auto",
        n_steps: int | None = None,
    ) -> Array:
        """Return the covariance between rows of each feature, or of each column of ``gather``, by
        total variance.
        """
        X = self._rows(X)
        options: dict[str, Any] = {"method": method, "n_steps": n_steps}
        means, total = [], None
        for weight, posterior in self.components:
            mean = posterior.apply(operator, X, uncertainty="none", **options).mean
            G = gathering(gather, mean)
            means.append(mean if G is None else mean @ G)
            part = weight * posterior.rows_covariance(operator, X, gather, **options)
            total = part if total is None else total + part
        stack = namespace(means[0]).stack(means)
        weights = self._weights(stack)
        deviation = stack - namespace(stack).tensordot(weights, stack, axes=1)
        return covariance(
            total + namespace(stack).einsum("k,kni,kmi->inm", weights, deviation, deviation)
        )

    def sample(
        self, operator: Operator, X: Any, n: int = 1, *, random_state: Any = None
    ) -> np.ndarray:
        """Return n draws of the operator's values at all rows of X together, (n, rows, d): of a
        model, then of its function.
        """
        X, generator = self._rows(X), random_generator(random_state)
        check_memory("n: the draws", (check_count("n", n), *X.shape), "use fewer draws or rows")
        chosen = generator.permutation(
            np.repeat(
                np.arange(len(self.weights)),
                generator.multinomial(check_count("n", n), self.weights),
            )
        )
        draws = np.empty((n, len(X), self.n_features))
        for k in np.unique(chosen):
            here = np.flatnonzero(chosen == k)
            draws[here] = self.posteriors[k].sample(operator, X, len(here), random_state=generator)
        return draws

    def _rows(self, X: Any) -> Array:
        return as_matrix("X", X, names=self.feature_names, n_features=self.n_features)

    def _weights(self, like: Array) -> Array:
        return namespace(like).asarray(self.weights) if is_tensor(like) else self.weights

    def _total(self, means: list[Array], covs: list[Array]) -> tuple[Array, Array]:
        stack = namespace(means[0]).stack(means)
        weights = self._weights(stack)
        mean = product(weights, stack)
        deviation = stack - mean
        total = product((weights[:, None] * deviation).T, deviation)
        for weight, cov in zip(self.weights.tolist(), covs, strict=True):
            total = total + weight * cov
        return mean, total

    def __repr__(self) -> str:
        kinds = " + ".join(
            f"{[type(p) for p in self.posteriors].count(kind)} × {kind.__name__}"
            for kind in self._kinds()
        )
        return f"MixturePosterior({kinds}, {self.n_features} features)"

    def _kinds(self) -> list[type]:
        return list(dict.fromkeys(type(posterior) for posterior in self.posteriors))
