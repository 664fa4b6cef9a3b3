"""Several outputs of the same features: independent ones, or linear mixtures of independent latent
functions.

    f_o = m_o + Σ_q M_oq g_q,       Cov[𝒜f_o, 𝒜f_p] = Σ_q M_oq M_pq Cov[𝒜g_q]

Coregionalised outputs, Cov[f_o(x), f_p(x')] = B_op k(x, x') with noise d_o, are of this kind where
every row has all targets: with D^−½ B D^−½ = UΛUᵀ the functions g = Uᵀ D^−½ f are independent, each
with the kernel λ_q k and unit noise, and M = D^½ U. That takes P factorisations of m rows, not one
of mP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpattr._core.arguments import Checked
from gpattr._core.array import Array, namespace, product, to_numpy
from gpattr._core.cards import card
from gpattr._core.frozen import Frozen
from gpattr._core.memory import check_memory
from gpattr._core.validation import (
    Names,
    as_matrix,
    as_vector,
    check_names,
    column_names,
    is_frame,
    numbers,
    read_only,
)
from gpattr.exceptions import InvalidIndexError, InvalidInputError
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.operators import Operator
from gpattr.posteriors.base import CHECKS, Attributions, Posterior, shared_reference_points
from gpattr.posteriors.combination import CombinationPosterior, known_mean
from gpattr.posteriors.exact import ExactPosterior
from gpattr.posteriors.matrices import matrix, root_of


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MultiOutputPosterior(Checked, Frozen):
    """Posteriors of several outputs over the same features.

    ``outputs`` are independent posteriors by name, {name: posterior}, or a list of them;
    `coregionalised` makes dependent ones. What is predicted has the outputs last."""

    checks: ClassVar[Any] = CHECKS

    outputs: Mapping[str, Posterior]
    latents: tuple[Posterior, ...]
    mixing: Array

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
            if not isinstance(posterior, Posterior):
                raise InvalidInputError(
                    f"outputs: expected a gpattr posterior for {name!r}, got a"
                    f" {type(posterior).__name__}"
                )
            for what in ("n_features", "feature_names"):
                if getattr(posterior, what) != getattr(first, what):
                    raise InvalidInputError(
                        f"outputs: expected the same {what}, got {getattr(first, what)} and"
                        f" {getattr(posterior, what)} ({name!r})"
                    )
        names = check_names("outputs", tuple(outputs), len(outputs))
        self._become(dict(outputs), tuple(outputs[name] for name in names), np.eye(len(names)))

    def _become(
        self, outputs: Mapping[str, Posterior], latents: tuple[Posterior, ...], mixing: Array
    ) -> None:
        for name, value in {
            "outputs": outputs,
            "latents": latents,
            "mixing": read_only(mixing),
        }.items():
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
        """Return the posterior of outputs with Cov[f_o(x), f_p(x')] = B_op k(x, x') given targets Y
        = f(X) + noise, (m, P).

        ``covariance`` B (P, P) says how the outputs belong together (intrinsic coregionalisation);
        ``noise`` is a variance, one number or one per output; ``means`` are the prior means, one
        per output. Columns of a frame Y name the outputs."""
        if not isinstance(kernel, Kernel):
            raise InvalidInputError(
                f"kernel: expected a gpattr kernel, got {type(kernel).__name__}"
            )
        Z = as_matrix("X", X)
        if not is_frame(Y) and numbers("Y", Y).ndim == 1:
            raise InvalidInputError(
                "Y: expected targets (m, P), got one dimension; ExactPosterior takes one output"
            )
        targets = as_matrix("Y", Y, like=Z)
        m, P = targets.shape
        if m != len(Z):
            raise InvalidInputError(
                f"Y: expected one row of targets per row of X ({len(Z)}), got {m}"
            )
        default = tuple(f"y{i}" for i in range(P))
        names = check_names(
            "output_names", column_names(Y) or default if output_names is None else output_names, P
        )
        root = root_of("covariance", to_numpy(matrix("covariance", covariance, P, P)))
        levels = to_numpy(as_vector("noise", np.atleast_1d(to_numpy(numbers("noise", noise)))))
        if len(levels) not in (1, P):
            raise InvalidInputError(
                f"noise: expected one variance or one per output ({P}), got {len(levels)}"
            )
        levels = np.broadcast_to(levels, (P,))
        if (levels < 0).any() or ((levels == 0).any() and (levels > 0).any()):
            raise InvalidInputError(
                "noise: expected variances larger than 0, or 0 for all outputs, got"
                f" {levels.tolist()}"
            )
        if means is not None and (not isinstance(means, Sequence) or len(means) != P):
            raise InvalidInputError(
                f"means: expected {P} gpattr means, one per output, got {means!r}"
            )
        means = None if means is None else [known_mean(mean) for mean in means]
        scale = np.sqrt(levels) if (levels > 0).all() else np.ones(P)
        vectors, values, _ = np.linalg.svd(root / scale[:, None])
        shares = values**2
        if not shares.any():
            raise InvalidInputError("covariance: expected a matrix that is not zero")
        # What adds to no output's variance more than rounding is zero.
        variances = (root**2).sum(axis=1)[:, None]
        kept = ((scale[:, None] * vectors) ** 2 * shares > 1e-14 * variances).any(axis=0)
        if not kept.all() and levels[0] == 0:
            raise InvalidInputError(
                "noise: expected variances larger than 0, because the covariance of the outputs is"
                " singular"
            )
        xp = namespace(Z)
        if means is not None:
            targets = targets - xp.stack([mean(Z) for mean in means], axis=1)
        rotated = product(targets, xp.asarray(vectors / scale[:, None]))
        latents = tuple(
            ExactPosterior(share * kernel, X, rotated[:, q], noise=0.0 if levels[0] == 0 else 1.0)
            for q, share in enumerate(shares.tolist())
            if kept[q]
        )
        mixing = (scale[:, None] * vectors)[:, kept]
        prior = [None] * P if means is None else means
        outputs = {
            name: CombinationPosterior(latents, mixing[o], mean=prior[o])
            for o, name in enumerate(names)
        }
        result = cls.__new__(cls)
        result._become(outputs, latents, mixing)
        return result

    def _repr_html_(self) -> str:
        return card(f"{type(self).__name__}: {len(self.outputs)} outputs", self.outputs.items())

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
    def n_features(self) -> int:
        """The number of features d."""
        return self.latents[0].n_features

    @property
    def feature_names(self) -> Names | None:
        """The columns of the frame the models were trained on."""
        return self.latents[0].feature_names

    @property
    def like(self) -> Array:
        """An array of the library and on the device that this posterior lives on."""
        return self.latents[0].like

    @property
    def reference_points(self) -> Mapping[str, Array]:
        """The mean and the median of the training inputs, where all outputs agree on them."""
        return shared_reference_points(self.latents)

    def predict(self, X: Any, *, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the means of the latent functions at X, (n, P), with standard deviations (n, P) or
        covariances (n, n, P).
        """
        parts = [
            p.predict(X, return_std=return_std, return_cov=return_cov)
            for p in self.outputs.values()
        ]
        if not (return_std or return_cov):
            return namespace(parts[0]).stack(parts, axis=-1)
        return tuple(
            namespace(parts[0][i]).stack([part[i] for part in parts], axis=-1) for i in (0, 1)
        )

    def apply(self, operator: Operator, X: Any, **options: Any) -> dict[str, Attributions]:
        """Return the attributions of every output by name, with the options of `Posterior.apply`."""
        X = as_matrix("X", X, names=self.feature_names, n_features=self.n_features, like=self.like)
        parts = [latent.apply(operator, X, **options) for latent in self.latents]
        if not self._mixed:
            return dict(zip(self.outputs, parts, strict=True))
        mixed: Any = self.outputs
        return {name: output.combine(parts, operator, X) for name, output in mixed.items()}

    def across(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        """Return the covariance of each row's attributions between features and outputs, (n, d, P,
        d, P).
        """
        X = as_matrix("X", X, names=self.feature_names, n_features=self.n_features, like=self.like)
        (n, d), P = X.shape, len(self.outputs)
        check_memory("The covariance across outputs", (n, d, P, d, P), "use fewer rows")
        xp = namespace(X)
        covs = xp.stack(
            [
                latent.apply(operator, X, method=method, n_steps=n_steps).cov
                for latent in self.latents
            ]
        )
        M = xp.asarray(self.mixing)
        return xp.einsum("oq,pq,qnij->niojp", M, M, covs)

    @property
    def _mixed(self) -> bool:
        return all(
            isinstance(output, CombinationPosterior) and output.posteriors is self.latents
            for output in self.outputs.values()
        )

    def __repr__(self) -> str:
        kinds = " + ".join(dict.fromkeys(type(latent).__name__ for latent in self.latents))
        coupled = ", coregionalised" if self._mixed else ""
        return (
            f"MultiOutputPosterior({', '.join(self.outputs)}: {kinds}, {self.n_features}"
            f" features{coupled})"
        )
