"""Gaussian-process regression of several outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gpattr._core import documents
from gpattr._core.array import is_tensor, to_numpy
from gpattr._core.memory import check_memory
from gpattr._core.normal import check_count
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import (
    Names,
    as_matrix,
    check_choice,
    check_names,
    column_names,
    is_frame,
    positive,
)
from gpattr.estimators import storage
from gpattr.estimators.base import KernelRegressor, function_draws, refuse_dask, require_numbers
from gpattr.estimators.evidence.coregionalised import CoregionalisedEvidence
from gpattr.estimators.evidence.marginal_likelihood import NOISE, maximise
from gpattr.estimators.gp_regressor import GPRegressor, check_hyperparameters, check_prior
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.plain_data import checked_training_data
from gpattr.estimators.progress import training_progress
from gpattr.estimators.search_space import (
    DEFAULT_BOUNDS,
    NOISE_SHARE,
    Units,
    bounds_for,
    default_kernel,
    is_fixed,
    scaled,
    starts_from,
    std_of,
)
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel, Radial
from gpattr.means import Constant, Mean, Zero
from gpattr.posteriors import ExactPosterior, MultiOutputPosterior

OUTPUTS = ("separate", "shared", "coregionalised")


class MultiOutputGPRegressor(KernelRegressor):
    """Gaussian-process regression of several outputs Y, (n, P).

    Parameters
    ----------
    kernel
        As for `GPRegressor`. If outputs share it, its variance has no unit: ``covariance_`` has.
    outputs : "separate", "shared" or "coregionalised"
        ``"separate"`` learns kernel and noise for each output alone. ``"shared"`` learns one
        kernel, and a variance and a noise for each output. ``"coregionalised"`` learns one kernel,
        the noise of each output, and how the outputs vary together: Cov[f_o(x), f_p(x')] = B_op
        k(x, x'), so that each output is learned from the targets of all. The noise of different
        outputs is taken to be independent: where it is not, noise that the targets share is learned
        as if it were signal.
    mean : "constant", "zero" or, with separate outputs, what `GPRegressor` takes
        The prior mean of every output; constants are learned, one for each.
    noise_variance : float or array (P,), optional
        The noise variance of every output if it is known; learned by default.
    optimize, n_restarts, bounds, random_state, verbose
        As for `GPRegressor`; bounds of the noise hold for every output.
    hyperparameters : "auto", "integrated" or "optimal"
        As for `GPRegressor`, with separate outputs; outputs that are learned together have optimal
        hyperparameters.

    Attributes
    ----------
    posterior_ : MultiOutputPosterior
        The posterior, which `Explainer` explains.
    output_names_ : tuple
        The columns of the frame Y, or y0, y1, …
    noise_variance_ : array (P,), or (n, P) where it was given for each row
    kernel_ : Kernel, or a tuple with the kernel of each separate output
    covariance_ : array (P, P)
        B, where the outputs share a kernel; diagonal unless they are coregionalised.
    log_marginal_likelihood_ : float
        Of all outputs together.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.MultiOutputGPRegressor().fit(X, np.column_stack([X[:, 0], X[:, 1] ** 2]))
    >>> model.predict([[1.0, 2.0]]).round(2)
    array([[1., 4.]])
    """

    def __init__(
        self,
        kernel: Kernel | type[Radial] | None = None,
        *,
        outputs: str = "separate",
        mean: str | Mean = "constant",
        noise_variance: Any = None,
        optimize: bool = True,
        hyperparameters: str = "auto",
        n_restarts: int = 0,
        bounds: dict[str, tuple[Any, Any]] | None = None,
        random_state: RandomLike = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.outputs = outputs
        self.mean = mean
        self.noise_variance = noise_variance
        self.optimize = optimize
        self.hyperparameters = hyperparameters
        self.n_restarts = n_restarts
        self.bounds = bounds
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, Y: ArrayLike, noise: Any = None) -> Self:
        """Learn the hyperparameters and condition on the data.

        ``Y`` is (n, P), a frame, or {name: targets}, rows in the order of X; ``noise`` (n, P) are
        known variances of the noise, for separate outputs.
        """
        check_choice("outputs", self.outputs, OUTPUTS)
        together = self.outputs != "separate"
        check_hyperparameters(self)
        if together and self.hyperparameters == "integrated":
            raise InvalidInputError(
                f"hyperparameters: expected 'auto' or 'optimal' with {self.outputs} outputs, whose"
                " hyperparameters are not integrated over, got 'integrated'"
            )
        check_prior(self, ("constant", "zero") if together else ("constant", "zero", "linear"))
        if together and isinstance(self.mean, Mean):
            raise InvalidInputError(
                f'mean: expected "constant" or "zero" with {self.outputs} outputs, got'
                f" {self.mean!r}"
            )
        with self._unchanged_on_error():
            refuse_dask(X=X, Y=Y)
            rows, targets, names = self._check_outputs(X, Y)
            inputs = X if is_frame(X) else rows
            if together:
                if noise is not None:
                    raise InvalidInputError(
                        'noise: variances of each row are taken with outputs="separate" only'
                    )
                return self._fit_together(inputs, rows, targets, names)
            return self._fit_separately(inputs, targets, names, noise)

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: RandomLike = 0
    ) -> np.ndarray:
        """Return draws of the latent functions at X, (n, P, n_samples)."""
        mean, generator = to_numpy(self.predict(X)), random_generator(random_state)
        check_memory(
            "n_samples: the draws",
            (*mean.shape, check_count("n_samples", n_samples)),
            "use fewer draws or rows",
        )
        draws = np.repeat(mean[:, :, None], n_samples, axis=2)
        for latent, weights in zip(self.posterior_.latents, self.posterior_.mixing.T, strict=True):
            own = function_draws(latent, X, n_samples, generator)
            # Draws of a mixture come model by model.
            if len(latent.components) > 1:
                own = own[:, generator.permutation(n_samples)]
            own -= to_numpy(latent.predict(X))[:, None]
            draws += weights[:, None] * own[:, None, :]
        return draws

    def _check_outputs(self, X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray, Names]:
        if is_tensor(X) or is_tensor(Y):
            raise InvalidInputError(
                "X: expected arrays or frames, got tensors; posteriors take them"
            )
        names = column_names(Y) if is_frame(Y) else None
        if isinstance(Y, Mapping):
            names, columns = tuple(map(str, Y)), [np.asarray(column) for column in Y.values()]
            if not columns:
                raise InvalidInputError("Y: expected at least one output, got none")
            require_numbers(**{f"Y[{name!r}]": column for name, column in Y.items()})
            for name, column in zip(names, columns, strict=True):
                if column.shape != (np.shape(X) or (0,))[:1]:
                    raise InvalidInputError(
                        f"Y: expected {len(X)} targets (one per row of X) in {name!r}, got"
                        f" {column.shape}"
                    )
            Y = np.stack(columns, axis=1)
        require_numbers(X=X, Y=Y)
        rows, targets = checked_training_data(self, X, Y, multi_output=True, target="Y")
        targets = np.ascontiguousarray(targets, dtype=np.float64)
        if targets.ndim == 1:
            raise InvalidInputError(
                "Y: expected targets (n, P), got one dimension. Reshape them; GPRegressor takes one"
                " output"
            )
        as_matrix("Y", targets)
        names = names or tuple(f"y{i}" for i in range(targets.shape[1]))
        return rows, targets, check_names("Y", names, targets.shape[1])

    def _fit_separately(self, X: Any, Y: np.ndarray, names: Names, noise: Any) -> Self:
        m, P = Y.shape
        if noise is not None and np.shape(noise) != (m, P):
            raise InvalidInputError(
                f"noise: expected variances of the shape {(m, P)} of Y, got {np.shape(noise)}"
            )
        known = self._known_noise(P)
        options = {
            name: value for name, value in self.get_params(deep=False).items() if name != "outputs"
        }
        models = []
        for o in range(P):
            options["noise_variance"] = None if known is None else float(known[o])
            model: Any = clone(GPRegressor(**options))
            try:
                models.append(
                    model.fit(X, Y[:, o], None if noise is None else np.asarray(noise)[:, o])
                )
            except InvalidInputError as error:
                raise InvalidInputError(f"output {names[o]!r}: {error}") from None
        self._kind = self.outputs
        return self._become_separate(models, names)

    def _fit_together(self, X: Any, rows: np.ndarray, Y: np.ndarray, names: Names) -> Self:
        m, P = Y.shape
        if (given := self._given_kernel) is not None:
            given.check_features(rows.shape[1])
        std, unit = std_of(rows), self._target_units(Y, names)
        units = Units(np.where(std > 0, std, 1.0) if given is None else np.ones(()), 1.0)
        kernel = scaled(
            default_kernel(units, self._kernel_class) if given is None else given,
            units,
            inwards=True,
        )
        centre = Y.mean(axis=0) if self.mean == "constant" else np.zeros(P)
        targets, known = (Y - centre) / unit, self._known_noise(P)
        level = None if known is None else known / unit**2
        if level is None and is_fixed(
            NOISE, self.bounds if isinstance(self.bounds, Mapping) else None
        ):
            level = np.full(P, NOISE_SHARE)
        inner = units.inside(rows) if kernel.stationary else rows / units.std
        evidence = CoregionalisedEvidence(
            inner, targets, level, self.outputs == "shared", self.mean == "constant"
        )
        start = np.eye(P)
        if self.outputs == "coregionalised":  # training starts from half the targets' correlation
            centred = (Y - Y.mean(axis=0)) / unit
            common = 0.5 * centred.T @ centred / m
            start = np.linalg.cholesky(np.where(np.eye(P) > 0, 1.0, common))
        noise, entries = (
            (np.full(P, NOISE_SHARE) if level is None else level),
            start[evidence.places],
        )
        if self.optimize:
            kernel, noise, entries = self._train(evidence, kernel, units, unit, noise, entries)
        R = unit[:, None] * evidence.root(entries)
        constants = centre + unit * evidence.constants(kernel, noise, entries)
        means: list[Mean] = (
            [Constant(float(c)) for c in constants] if self.mean == "constant" else [Zero()] * P
        )
        self._kind = self.outputs
        return self._become_shared(
            scaled(kernel, units, inwards=False), R @ R.T, noise * unit**2, means, X, Y, names
        )

    def _target_units(self, Y: np.ndarray, names: Names) -> np.ndarray:
        """Return the standard deviations of the targets, (P,), 1 for a constant one."""
        unit = std_of(Y)
        if self.optimize and len(Y) < 2:
            raise InvalidInputError(
                "X: expected at least 2 rows to learn hyperparameters, got n_samples=1; use"
                " optimize=False"
            )
        if self.optimize and not unit.all():
            constant = names[int((unit > 0).argmin())]
            raise InvalidInputError(
                f"Y: expected targets that differ, got the same everywhere in {constant!r}; use"
                " optimize=False"
            )
        unit = np.where(unit > 0, unit, 1.0)
        if not ((unit > 1e-140) & (unit < 1e140)).all():
            raise InvalidInputError(
                "Y: expected targets whose square float64 can hold; rescale them"
            )
        return unit

    def _train(
        self,
        evidence: CoregionalisedEvidence,
        kernel: Kernel,
        units: Units,
        unit: np.ndarray,
        noise: np.ndarray,
        entries: Any,
    ) -> tuple[Kernel, np.ndarray, np.ndarray]:
        start = trainable(kernel)
        if isinstance(kernel, Radial):
            start.pop("variance")  # the covariance of the outputs carries it
        given, for_noise = self.bounds, None
        if isinstance(given, Mapping):
            for_noise = given.get(NOISE)
            given = {name: value for name, value in given.items() if name != NOISE}
        bounds = bounds_for(start, units, given, 1.0, own_start=self._given_kernel is None)
        start = {name: start[name] for name in bounds}
        if evidence.noise is None:
            start[NOISE] = noise
            bounds[NOISE] = np.outer(DEFAULT_BOUNDS[NOISE], np.ones(len(noise)))
            if for_noise is not None:
                own = bounds_for(
                    {NOISE: noise},
                    Units(units.std, 1.0),
                    {NOISE: for_noise},
                    1.0,
                    own_start=True,
                )
                bounds[NOISE] = own[NOISE] / unit**2
        starts = starts_from(start, self.n_restarts, self.random_state)
        m, P = evidence.Y.shape
        progress = training_progress(self.verbose, len(starts), -m * float(np.log(unit).sum()))
        with progress as report:
            kernel, level, entries = maximise(
                evidence,
                kernel,
                None,
                bounds,
                starts,
                report=report,
                free=np.asarray(entries, dtype=np.float64),
            )
        return kernel, np.broadcast_to(noise if level is None else level, (P,)), entries

    def _known_noise(self, P: int) -> np.ndarray | None:
        if self.noise_variance is None:
            return None
        known = np.asarray(positive(NOISE, self.noise_variance))
        if known.ndim and len(known) != P:
            raise InvalidInputError(
                f"{NOISE}: expected one number or one per output ({P}), got {len(known)}"
            )
        return np.broadcast_to(known, (P,))

    def _become_separate(self, models: list[GPRegressor], names: Names) -> Self:
        self._models, self.output_names_ = models, names
        self.posterior_ = MultiOutputPosterior(
            {name: model.posterior_ for name, model in zip(names, models, strict=True)}
        )
        heaviest = [model._integrated.heaviest.posterior for model in models]
        self.kernel_: Any = tuple(posterior.kernel for posterior in heaviest)
        self._targets = np.stack([to_numpy(part.y) for part in heaviest], axis=1)
        noise = np.stack([to_numpy(posterior.noise) for posterior in heaviest], axis=1)
        self.noise_variance_ = noise[0] if (noise == noise[0]).all() else noise
        self.log_marginal_likelihood_ = sum(
            posterior.log_marginal_likelihood for posterior in heaviest
        )
        self.__dict__.pop("covariance_", None)  # of an earlier fit
        return self

    @property
    def hyperparameters_(self) -> Any:
        """The frame of all models of separate outputs, with a column ``output``."""
        import pandas as pd

        check_is_fitted(self)
        if self._kind != "separate":
            raise InvalidInputError(
                "hyperparameters_: expected separate outputs, got outputs learned together, which"
                " have kernel_, covariance_ and noise_variance_"
            )
        parts = zip(self.output_names_, self._models, strict=True)
        return pd.concat([model.hyperparameters_.assign(output=name) for name, model in parts])

    def _become_shared(
        self,
        kernel: Kernel,
        B: np.ndarray,
        noise: np.ndarray,
        means: list[Mean],
        X: Any,
        Y: np.ndarray,
        names: Names,
    ) -> Self:
        if self._kind == "shared":
            parts = {
                name: ExactPosterior(
                    float(B[o, o]) * kernel, X, Y[:, o], noise=float(noise[o]), mean=means[o]
                )
                for o, name in enumerate(names)
            }
            posterior = MultiOutputPosterior(parts)
            evidence = sum(part.log_marginal_likelihood for part in parts.values())
        else:
            options: dict[str, Any] = {
                "covariance": B,
                "noise": noise,
                "means": means,
                "output_names": names,
            }
            posterior = MultiOutputPosterior.coregionalised(kernel, X, Y, **options)
            latents: Any = posterior.latents
            evidence = sum(part.log_marginal_likelihood for part in latents) - 0.5 * len(Y) * float(
                np.log(noise).sum()
            )
        self.posterior_, self.output_names_, self._prior_means = posterior, names, means
        self.kernel_, self.covariance_, self.noise_variance_ = kernel, B, np.array(noise)
        self.log_marginal_likelihood_, self._targets = evidence, Y
        return self

    def _content(self) -> dict[str, Any]:
        apart = self._kind == "separate"
        first: Any = self.posterior_.latents[0].components[0][1]
        means = [model._prior_mean for model in self._models] if apart else self._prior_means
        arrays = {
            "X": (first.inputs, ("row", "feature")),
            "Y": (self._targets, ("row", "output")),
            "noise": (np.atleast_2d(self.noise_variance_), ("row", "output")),
        }
        if not apart:
            arrays["covariance"] = (self.covariance_, ("output", "output"))
        integrated = {}
        if apart and any(len(part.components) > 1 for part in self.posterior_.latents):
            integrated["components"] = [
                storage.components(model._integrated) for model in self._models
            ]
        return {
            **integrated,
            "outputs": self._kind,
            "output_names": list(self.output_names_),
            "kernels": [
                storage.encode("kernel", part)
                for part in (self.kernel_ if apart else [self.kernel_])
            ],
            "means": [storage.encode("mean", mean) for mean in means],
            "arrays": {
                name: documents.encode(to_numpy(array), dims)
                for name, (array, dims) in arrays.items()
            },
        }

    def _restore(self, content: Any, names: Names | None) -> None:
        arrays = {name: documents.decode(array) for name, array in content["arrays"].items()}
        X, Y, noise = arrays["X"], arrays["Y"], arrays["noise"]
        self.n_features_in_ = X.shape[1]
        if names is not None:
            import pandas as pd

            X = pd.DataFrame(X, columns=list(names))
        kernels, means = (
            [storage.decode(part) for part in content[name]] for name in ("kernels", "means")
        )
        outputs, self._kind = tuple(content["output_names"]), content["outputs"]
        if self._kind != "separate":
            self._become_shared(kernels[0], arrays["covariance"], noise[0], means, X, Y, outputs)
            return
        models = []
        for o in range(len(outputs)):
            model = GPRegressor()
            part = content.get("components", [None] * len(outputs))[o]
            model._restore_parts(kernels[o], means[o], X, Y[:, o], noise[:, o], part)
            models.append(model)
        self._become_separate(models, outputs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags
