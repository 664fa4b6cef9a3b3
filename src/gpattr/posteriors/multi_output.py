"""Several outputs of the same features: independent ones, or linear mixtures of latent functions.

    f_o = m_o + Σ_q M_oq g_q,       Cov[𝒜f_o, 𝒜f_p] = Σ_q M_oq M_pq Cov[𝒜g_q]

Coregionalised outputs, Cov[f_o(x), f_p(x')] = B_op k(x, x') with noise d_o, are of this kind where
every row has all targets: with D^−½ B D^−½ = UΛUᵀ the functions g = Uᵀ D^−½ f are independent, each
with the kernel λ_q k and unit noise, and M = D^½ U. That takes P factorisations of m rows, not one
of mP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn

import numpy as np

from gpattr._core.array import Array, namespace, product
from gpattr._core.cards import card
from gpattr._core.memory import check_memory
from gpattr._core.validation import Names, as_matrix, check_names, read_only
from gpattr.exceptions import InvalidIndexError, InvalidInputError, UnsupportedModelError
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.operators import Operator
from gpattr.posteriors.base import (
    Posterior,
    check_same,
    check_single,
    shared_reference_points,
)
from gpattr.posteriors.bound import TOLERANCE, Attributions, Bound, Evaluation
from gpattr.posteriors.combination import CombinationPosterior, known_mean
from gpattr.posteriors.exact import ExactPosterior
from gpattr.posteriors.given import matrix
from gpattr.posteriors.rotation import Rotation, checked_targets


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MultiOutputPosterior(Posterior):
    """Posteriors of several outputs over the same features.

    ``outputs`` are independent posteriors by name, {name: posterior}, or a list of them;
    `coregionalised` makes dependent ones. Predictions have the outputs last; operators give one
    answer for each output, by name.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> other = gpattr.GPRegressor().fit(X, 3.0 * X[:, 0])
    >>> both = gpattr.posteriors.MultiOutputPosterior(
    ...     {"a": model.posterior_, "b": other.posterior_}
    ... )
    >>> both.predict([[1.0, 0.0]]).round(2)
    array([[1., 3.]])
    """

    several_outputs: ClassVar[bool] = True

    latents: tuple[Posterior, ...]
    mixing: Array
    mixed: bool
    _outputs: Mapping[str, Posterior]

    def __init__(self, outputs: Mapping[str, Posterior] | Sequence[Posterior]) -> None:
        if isinstance(outputs, Posterior) or not isinstance(outputs, (Mapping, Sequence)):
            raise InvalidInputError(
                "outputs: expected posteriors by name, {name: posterior}, got a"
                f" {type(outputs).__name__}"
            )
        if not isinstance(outputs, Mapping):
            outputs = {f"y{i}": posterior for i, posterior in enumerate(outputs)}
        if not outputs:
            raise InvalidInputError("outputs: expected at least one, got none")
        first = next(iter(outputs.values()))
        for name, posterior in outputs.items():
            check_single(f"outputs[{name!r}]", posterior)
            check_same(f"outputs[{name!r}]", first, posterior)
        names = check_names("outputs", tuple(outputs), len(outputs))
        self._become(outputs, tuple(outputs[name] for name in names), np.eye(len(names)))

    def _become(
        self,
        outputs: Mapping[str, Posterior],
        latents: tuple[Posterior, ...],
        mixing: Array,
        mixed: bool = False,
    ) -> None:
        first = next(iter(outputs.values()))
        values = {
            "_outputs": dict(outputs),
            "latents": latents,
            "mixing": read_only(mixing),
            "mixed": mixed,
            "feature_names": first.feature_names,
            "encoder": first.encoder,
            "note": first.note,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def coregionalised(
        cls,
        kernel: Kernel,
        X: Any,
        Y: Any,
        *,
        covariance: Any,
        noise: Any,
        means: Sequence[Mean] | None = None,
        output_names: Sequence[str] | None = None,
    ) -> MultiOutputPosterior:
        """Return the posterior of correlated outputs given targets Y = f(X) + noise, (m, P).

        Cov[f_o(x), f_p(x')] = B_op k(x, x') with ``covariance`` B (P, P), the covariance between
        outputs (intrinsic coregionalisation); ``noise`` is a variance, one number or one per
        output; ``means`` are the prior means, one per output. Columns of a frame Y name the
        outputs.
        """
        if not isinstance(kernel, Kernel):
            raise InvalidInputError(
                f"kernel: expected a gpattr kernel, got {type(kernel).__name__}"
            )
        Z = as_matrix("X", X)
        targets, names = checked_targets(Y, Z, output_names)
        P = targets.shape[1]
        if means is not None and (not isinstance(means, Sequence) or len(means) != P):
            raise InvalidInputError(
                f"means: expected {P} gpattr means, one per output, got {means!r}"
            )
        rotation = Rotation.of(covariance, noise, P)
        prior = None if means is None else [known_mean(mean) for mean in means]
        xp = namespace(Z)
        if prior is not None:
            targets = targets - xp.stack([mean(Z) for mean in prior], axis=1)
        rotated = product(targets, xp.asarray(rotation.vectors / rotation.scale[:, None]))
        latents = tuple(
            ExactPosterior(share * kernel, X, rotated[:, q], noise=rotation.noise)
            for q, share in enumerate(rotation.shares.tolist())
            if rotation.kept[q]
        )
        mixing = (rotation.scale[:, None] * rotation.vectors)[:, rotation.kept]
        return cls.of_latents(latents, mixing, means=prior, output_names=names)

    @classmethod
    def of_latents(
        cls,
        latents: Sequence[Posterior],
        mixing: Any,
        *,
        means: Sequence[Mean] | None = None,
        output_names: Sequence[str] | None = None,
    ) -> MultiOutputPosterior:
        """Return the outputs f_o = m_o + Σ_q M_oq g_q of independent ``latents`` g.

        ``mixing`` is M (P, Q); ``means`` are known, one per output.
        """
        if (
            not isinstance(latents, Sequence)
            or not latents
            or not all(isinstance(part, Posterior) for part in latents)
        ):
            raise InvalidInputError(
                f"latents: expected a list of gpattr posteriors, got {latents!r}"
            )
        M = matrix("mixing", mixing, len(np.atleast_1d(mixing)), len(latents))
        P = len(M)
        if means is not None and (not isinstance(means, Sequence) or len(means) != P):
            raise InvalidInputError(
                f"means: expected {P} gpattr means, one per output, got {means!r}"
            )
        default = tuple(f"y{o}" for o in range(P))
        names = check_names("output_names", default if output_names is None else output_names, P)
        outputs = {
            name: CombinationPosterior(latents, M[o], mean=None if means is None else means[o])
            for o, name in enumerate(names)
        }
        result = cls.__new__(cls)
        result._become(outputs, tuple(latents), M, mixed=True)
        return result

    def with_outputs(self, outputs: Mapping[str, Posterior]) -> MultiOutputPosterior:
        """Return the same posterior with its outputs renamed or noted, in the same order."""
        result = copy(self)
        object.__setattr__(result, "_outputs", dict(outputs))
        return result

    def _repr_html_(self) -> str:
        return card(f"{type(self).__name__}: {len(self.outputs)} outputs", self.outputs.items())

    @property
    def outputs(self) -> Mapping[str, Posterior]:
        return MappingProxyType(self._outputs)

    @property
    def output_names(self) -> Names:
        """The names of the outputs."""
        return tuple(self.outputs)

    def __getitem__(self, output: str) -> Posterior:
        """Return the posterior of one output."""
        if not isinstance(output, str) or output not in self.outputs:
            raise InvalidIndexError(
                f"output: expected the name of one, of {list(self.outputs)}, got {output!r}"
            )
        return self.outputs[output]

    def __len__(self) -> int:
        return len(self.outputs)

    @property
    def independent(self) -> bool:
        """Whether no two outputs covary."""
        return not self.mixed and type(self) is MultiOutputPosterior

    @property
    def n_features(self) -> int:
        return self._first.n_features

    @property
    def n_columns(self) -> int:
        return self._first.n_columns

    @property
    def in_columns(self) -> Posterior:
        if self.encoder is None:
            return self
        outputs = {name: output.in_columns for name, output in self.outputs.items()}
        return MultiOutputPosterior(outputs)

    @property
    def inner(self) -> tuple[Posterior, ...]:
        return self.latents

    @property
    def like(self) -> Array:
        return self._first.like

    @property
    def training_inputs(self) -> Array | None:
        return self._first.training_inputs

    @property
    def reference_points(self) -> Mapping[str, Array]:
        """The mean and the median of the training inputs, if all outputs agree on them."""
        return shared_reference_points(self.latents)

    @property
    def _first(self) -> Posterior:
        return next(iter(self.outputs.values()))

    def rows(self, name: str, X: Any) -> Array:
        return self._first.rows(name, X)

    def moments(self, X: Array, *, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return means at X, (n, P), with standard deviations (n, P) or covariances (n, n, P)."""
        options = {"return_std": return_std, "return_cov": return_cov}
        parts = [output.moments(X, **options) for output in self.outputs.values()]
        if not (return_std or return_cov):
            return namespace(parts[0]).stack(parts, axis=-1)
        stack = namespace(parts[0][0]).stack
        return tuple(stack([part[i] for part in parts], axis=-1) for i in (0, 1))

    def bind(self, operator: Operator, evaluation: Evaluation) -> MultiOutputBound:
        latents = tuple(latent.bind(operator, evaluation) for latent in self.latents)
        return MultiOutputBound(self, latents, operator, evaluation)

    def apply(  # pyright: ignore[reportIncompatibleMethodOverride]  (one answer for each output)
        self,
        operator: Operator,
        X: Any,
        *,
        uncertainty: str = "cov",
        method: str = "auto",
        n_steps: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> dict[str, Attributions]:
        """Return the attributions of every output by name, with the options of `Evaluation`."""
        evaluation = Evaluation(uncertainty, method, n_steps, tolerance)
        return self.bind(operator, evaluation).by_output(self.rows("X", X))

    def conditioned(self, X: Array, y: Array, noise: Any) -> MultiOutputPosterior:
        raise UnsupportedModelError(
            f"{type(self).__name__}: a measurement is of one output; condition that one, of"
            f" {list(self.outputs)}, by its name"
        )

    def across_at(self, bound: MultiOutputBound, X: Array) -> Array:
        """Return each row's covariance between outputs, (n, q, P, q, P), for a bound operator."""
        xp, n, P = namespace(X), len(X), len(self.outputs)
        q = bound.operator.size(self.n_features)
        check_memory("The covariance across outputs", (n, q, P, q, P), "use fewer rows")
        whole = replace(bound.evaluation, uncertainty="cov")
        covs = [latent.bind(bound.operator, whole).apply(X).cov for latent in self.latents]
        M = xp.asarray(self.mixing)
        return xp.einsum("oq,pq,qnij->niojp", M, M, xp.stack(covs))

    def __repr__(self) -> str:
        kinds = " + ".join(dict.fromkeys(type(latent).__name__ for latent in self.latents))
        coupled = ", coregionalised" if self.mixed else ""
        return (
            f"MultiOutputPosterior({', '.join(self.outputs)}: {kinds}, {self.n_features}"
            f" features{coupled})"
        )


@dataclass(frozen=True, eq=False)
class MultiOutputBound(Bound):
    """An operator bound to every output, through the latent functions they share."""

    posterior: MultiOutputPosterior
    latents: tuple[Bound, ...]
    operator: Operator
    evaluation: Evaluation

    def rows(self, rows: Any) -> MultiOutputBound:
        latents = tuple(latent.rows(rows) for latent in self.latents)
        return replace(self, latents=latents, operator=self.operator.rows(rows))

    def by_output(self, X: Array) -> dict[str, Attributions]:
        """Return the attributions of every output by name."""
        parts = [latent.apply(X) for latent in self.latents]
        outputs = self.posterior.outputs
        if not self.posterior.mixed:
            return dict(zip(outputs, parts, strict=True))
        combined = {}
        for name, output in outputs.items():
            assert isinstance(output, CombinationPosterior)
            combined[name] = output.bind_to(self.latents).combine(parts, X)
        return combined

    def apply(self, X: Array) -> Attributions:
        self._refuse()

    def joint(self, X: Array) -> Array:
        self._refuse()

    def across(self, X: Array) -> Array:
        return self.posterior.across_at(self, X)

    def _refuse(self) -> NoReturn:
        names = list(self.posterior.outputs)
        raise UnsupportedModelError(
            f"model: this is defined for a single output; select one of {names} by its name"
        )
