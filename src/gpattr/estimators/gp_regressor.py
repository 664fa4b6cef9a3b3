"""Gaussian-process regression, trained by marginal likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from gpattr._core import documents
from gpattr._core.array import Array, namespace, to_numpy
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import (
    Names,
    as_vector,
    check_choice,
    check_flag,
    is_frame,
    numbers,
    positive_scalar,
)
from gpattr.estimators import storage
from gpattr.estimators.base import KernelRegressor, check_training
from gpattr.estimators.evidence.marginal_likelihood import (
    NOISE,
    Objective,
    maximise,
    most_likely_constant,
)
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.integration import Integrated, affordable_points
from gpattr.estimators.one_hot import label_columns
from gpattr.estimators.progress import family_progress, training_progress
from gpattr.estimators.search_space import (
    NOISE_SHARE,
    Units,
    bounds_for,
    default_kernel,
    scaled,
    starts_from,
    std_of,
)
from gpattr.estimators.training import (
    DEFAULT_FAMILIES,
    Training,
    conditioned,
    has_family,
    learned_mean,
    uncertain_constant,
)
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel, Radial
from gpattr.kernels.white import has_white
from gpattr.means import Constant, Expansion, Linear, Mean, Zero
from gpattr.posteriors import ExactPosterior

HYPERPARAMETERS = ("auto", "integrated", "optimal")
MOST_INTEGRATED = 1000  # rows up to which "auto" integrates: a dozen seconds


class GPRegressor(KernelRegressor):
    """Gaussian-process regression with hyperparameters learned by marginal likelihood.

    Parameters
    ----------
    kernel : Kernel, or a radial kernel class, optional
        A class, such as ``Matern52``, is trained with one length-scale per feature from a start
        that suits the data, in standardised inputs and targets. A kernel is in the units of the
        data, and its hyperparameters are where training starts: choose length-scales near the
        standard deviations of the inputs, and a variance near the targets'. By default
        `SquaredExponential`, or an average of it and `Matern52` where hyperparameters are
        integrated.
    mean : "constant", "zero", "linear" or Mean
        The prior mean; ``"constant"`` is learned, ``"linear"`` is a linear trend about which
        nothing is known beforehand (universal kriging), whose uncertainty is part of the
        predictions and attributions.
    noise_variance : float, optional
        The noise variance if it is known; learned by default. A kernel with a `White` part has its
        noise there: it is learned as the variance of that part, and none is added unless it is
        given.
    optimize : bool
        Whether to learn hyperparameters. Without it kernel and ``noise_variance`` are taken as they
        are; one that is not given takes the value where training would start (noise: a fifth of the
        targets' variance).
    hyperparameters : "auto", "integrated" or "optimal"
        ``"integrated"`` averages over the hyperparameters that the data allow, weighted by their
        evidence: a mixture of about 30 models, of two families (squared exponential and Matérn 5/2)
        where no kernel is given. Its intervals hold as often as they say with few rows too.
        ``"optimal"`` takes the best hyperparameters for granted. ``"auto"``
        integrates up to 1000 rows.
    n_restarts : int
        Further starts of the optimiser, drawn around the first; the best optimum is kept.
    bounds : dict, optional
        ``{name: (lower, upper)}`` in the units of the data, for ``"lengthscale"``, ``"variance"``,
        ``"noise_variance"``; the hyperparameters of a composed kernel are named as in
        ``kernel.get_params()``, and ``{name: "fixed"}`` keeps one as it is. By default
        length-scales stay within 1e-2 and 1e4 of their start, variances within 1e-4 and 1e4, the
        noise within 1e-6 and 10 of the targets' variance.
    categories : list, optional
        The one-hot columns of each category, as lists of positions or names. Such a category has
        one hyperparameter, and enters by the kernel `Categorical`, a factor beside the kernel of
        the other columns; ``kernel`` is then None or a class.
    random_state : int or Generator, optional
        For the restarts.
    verbose : int
        Show the progress of training.

    Attributes
    ----------
    posterior_ : MixturePosterior or ExactPosterior
        The posterior, which `Explainer` explains.
    hyperparameters_ : frame
        Family, weight and hyperparameters of each model of the mixture, in data units;
        ``.attrs["dropped"]`` counts points whose covariance is singular.
    kernel_, noise_variance_, mean_, log_marginal_likelihood_
        The learned values, in data units, of the heaviest model; the noise of a `White` part is in
        the kernel.
    relevance_ : array (d,)
        1/ℓ per standard deviation of each feature, 0 for a constant column; only for a single
        radial kernel, from the heaviest model.

    Tensors are taken as they are: training and predictions stay on their device.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> mean, std = model.predict([[1.0, 0.0]], return_std=True)
    >>> mean.round(2)
    array([1.])
    >>> model.score(X, X[:, 0] - X[:, 1] ** 2) > 0.99
    True
    """

    def __init__(
        self,
        kernel: Kernel | type[Radial] | None = None,
        *,
        mean: str | Mean = "constant",
        noise_variance: float | None = None,
        optimize: bool = True,
        hyperparameters: str = "auto",
        n_restarts: int = 0,
        bounds: dict[str, tuple[Any, Any]] | None = None,
        categories: Sequence[Any] | None = None,
        random_state: RandomLike = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.noise_variance = noise_variance
        self.optimize = optimize
        self.hyperparameters = hyperparameters
        self.n_restarts = n_restarts
        self.bounds = bounds
        self.categories = categories
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, noise: Any = None) -> Self:
        """Learn the hyperparameters and condition on the data.

        ``noise`` is the known noise variance of each row.
        """
        check_prior(self, ("constant", "zero", "linear"))
        check_hyperparameters(self)
        with self._unchanged_on_error():
            return self._fit(X, y, noise)

    def _fit(self, X: Any, y: Any, noise: Any) -> Self:
        rows, y = self._check_data(X, y)
        mean = self.mean if isinstance(self.mean, Mean) else Zero()
        if self.mean == "linear":
            mean = Linear(np.zeros(rows.shape[1]), covariance="flat")
        for part in (self._given_kernel, mean):
            if part is not None:
                part.check_features(rows.shape[1])
        known = known_noise(self, noise, rows)
        inputs = X if is_frame(X) else rows
        if not self.optimize:
            kernel, level = self._start(rows, y, known)
        elif integrates(self.hyperparameters, len(rows), MOST_INTEGRATED) and self._integrate(
            inputs, rows, y, known, mean
        ):
            return self
        else:
            kernel, level = self._train(rows, y - mean(rows), known, mean)
        if self.mean == "constant":
            mean = Constant(most_likely_constant(kernel, rows, y, level))
        return self.condition(kernel, mean, inputs, y, level)

    def condition(self, kernel: Kernel, mean: Mean, X: ArrayLike, y: ArrayLike, noise: Any) -> Self:
        """Become the posterior of this prior given the data, without learning anything."""
        posterior = ExactPosterior(kernel, X, y, noise=noise, mean=mean)
        return self._become(Integrated.of_one(kernel, noise, posterior), mean)

    def _become(self, found: Integrated, mean: Mean) -> Self:
        """Become a mixture of models with one prior mean."""
        self._integrated, self._prior_mean, heaviest = found, mean, found.heaviest
        self.posterior_, self.kernel_ = found.posterior, heaviest.kernel
        self.mean_, noise = learned_mean(heaviest), heaviest.noise
        self.noise_variance_ = (
            float(noise) if np.ndim(to_numpy(noise)) == 0 else to_numpy(numbers("noise", noise))
        )
        self.log_marginal_likelihood_ = heaviest.posterior.log_marginal_likelihood
        self.__dict__.pop("relevance_", None)  # of an earlier fit
        if isinstance(self.kernel_, Radial):
            rows = heaviest.posterior.inputs
            self.relevance_ = std_of(rows) / np.asarray(self.kernel_.lengthscale)
        return self

    @property
    def hyperparameters_(self) -> Any:
        """The frame of all components, in the user's units; one row without integration."""
        check_is_fitted(self)
        names = self.posterior_.feature_names
        return self._integrated.frame(names or range(self.posterior_.n_features))

    def _train(self, X: Array, y: Array, known: Array | None, mean: Mean) -> tuple[Kernel, Any]:
        """Return the most likely kernel and noise, in the user's units."""
        training = self._training(X, y, known, mean, free_mean=self.mean == "constant")
        kernel, noise, units = training.kernel, training.noise, training.units
        if training.bounds:
            offset = -len(y) * float(np.log(units.unit))
            with training_progress(self.verbose, len(training.starts), offset) as report:
                kernel, noise = maximise(
                    training.objective,
                    kernel,
                    noise,
                    training.bounds,
                    training.starts,
                    report=report,
                )
        return training.outside(kernel, noise)

    def _training(
        self, X: Array, y: Array, known: Array | None, mean: Mean, *, free_mean: bool
    ) -> Training:
        """Return the training problem; y are targets without their prior mean."""
        _check_targets(y)
        given, own = self._given_kernel, Units.of_data(X, y, label_columns(self, X))
        units = own if given is None else Units(np.ones(()), 1.0)
        kernel = scaled(
            default_kernel(units, self._kernel_class) if given is None else given,
            units,
            inwards=True,
        )
        targets = y / units.unit
        variance = float(std_of(targets[:, None])[0]) ** 2
        noise = None if known is not None else NOISE_SHARE * variance
        start = trainable(kernel) | ({} if noise is None else {NOISE: np.array([noise])})
        # A stationary kernel does not see where the origin is; centred rows keep more digits.
        centred = kernel.stationary or units.labels
        rows = units.inside(X) if centred else X / namespace(X).asarray(units.std)
        level = None if known is None else known / units.unit**2
        trend = None
        if isinstance(mean, Expansion) and mean.covariance is not None:
            trend = mean.centred(X).basis(X), namespace(X).asarray(mean.precision() * units.unit**2)
        objective = Objective(rows, targets, level, free_mean, trend)
        bounds = bounds_for(start, units, self.bounds, variance, own_start=given is None)
        starts = starts_from(
            {name: start[name] for name in bounds}, self.n_restarts, self.random_state
        )
        return Training(units, objective, kernel, noise, known, bounds, starts, variance)

    def _integrate(self, inputs: Any, X: Array, y: Array, known: Array | None, mean: Mean) -> bool:
        """Become the mixture over hyperparameters and, where no kernel is given, over families.

        Return False where there is nothing to integrate over.
        """
        if self.mean == "constant":
            _check_targets(y)
            mean = uncertain_constant(y, X.shape[1])
        training = self._training(X, y - mean(X), known, mean, free_mean=False)
        if not training.bounds:
            if self.hyperparameters == "integrated":
                raise InvalidInputError(
                    "hyperparameters: expected some that are not fixed to integrate over, got none;"
                    " use 'optimal'"
                )
            return False
        own = {type(training.kernel).__name__: None}
        average = self.kernel is None and has_family(training.kernel)
        families = DEFAULT_FAMILIES if average else own
        with family_progress(self.verbose) as report:
            found = training.integrated(
                families,
                lambda kernel, noise: conditioned(kernel, inputs, y, noise, mean),
                affordable_points(len(X)),
                report=report,
            )
        self._become(found, mean)
        return True

    def _content(self) -> dict[str, Any]:
        first = self._integrated.components[0].posterior
        content: dict[str, Any] = {
            "kernel": storage.encode("kernel", self.kernel_),
            "mean": storage.encode("mean", self._prior_mean),
            "arrays": {
                "X": documents.encode(to_numpy(first.inputs), ("row", "feature")),
                "y": documents.encode(to_numpy(first.y), ("row",)),
                "noise": documents.encode(np.atleast_1d(self.noise_variance_), ("row",)),
            },
        }
        if len(self._integrated.components) > 1:
            content["components"] = storage.components(self._integrated)
        return content

    def _restore(self, content: Any, names: Names | None) -> None:
        X, y, noise = (documents.decode(content["arrays"][name]) for name in ("X", "y", "noise"))
        self.n_features_in_ = X.shape[1]
        if names is not None:
            import pandas as pd

            X = pd.DataFrame(X, columns=list(names))
        parts = content.get("components")  # as older files, files of one model have none
        kernel, mean = (storage.decode(content[name]) for name in ("kernel", "mean"))
        self._restore_parts(kernel, mean, X, y, noise, parts)

    def _restore_parts(
        self, kernel: Kernel, mean: Mean, X: Any, y: Any, noise: np.ndarray, parts: Any
    ) -> None:
        """Become the model of a file: one kernel, or the ``parts`` of a mixture."""
        level = noise if len(noise) > 1 else float(noise[0])
        if parts is None:
            self.condition(kernel, mean, X, y, level)
            return
        found = storage.integrated(
            parts, lambda kernel, noise: conditioned(kernel, X, y, noise, mean), level
        )
        self._become(found, mean)

    def _start(self, X: Array, y: Array, known: Array | None) -> tuple[Kernel, Any]:
        units = Units.of_data(X, y, label_columns(self, X))
        given = self._given_kernel
        kernel = default_kernel(units, self._kernel_class) if given is None else given
        return kernel, NOISE_SHARE * units.unit**2 if known is None else known


def check_prior(model: Any, means: tuple[str, ...]) -> None:
    """Raise `InvalidInputError` for invalid options; ``means`` are the means with a name."""
    radial = isinstance(model.kernel, type) and issubclass(model.kernel, Radial)
    if model.kernel is not None and not (radial or isinstance(model.kernel, Kernel)):
        got = (
            f"the class {model.kernel.__name__}"
            if isinstance(model.kernel, type)
            else type(model.kernel).__name__
        )
        raise InvalidInputError(
            "kernel: expected a gpattr kernel, a radial kernel class such as Matern52, or None,"
            f" got {got}"
        )
    if not isinstance(model.mean, Mean) and not (
        isinstance(model.mean, str) and model.mean in means
    ):
        advice = {
            "linear": "; add a Linear() kernel for a trend",
            "constant": "; add a Constant() kernel for a level",
        }
        hint = advice.get(model.mean, "") if isinstance(model.mean, str) else ""
        raise InvalidInputError(
            f"mean: expected {', '.join(map(repr, means))} or a gpattr mean, got"
            f" {model.mean!r}{hint}"
        )
    check_flag("optimize", model.optimize)
    check_training(model)


def _check_targets(y: Array) -> None:
    """Refuse targets that nothing can be learned from."""
    if len(y) < 2:
        raise InvalidInputError(
            "X: expected at least 2 rows to learn hyperparameters, got n_samples=1; use"
            " optimize=False"
        )
    if float(y.max()) == float(y.min()):
        raise InvalidInputError(
            f"y: expected targets that differ, got {float(y[0])} everywhere; use optimize=False"
        )
    Units.of_data(y[:, None], y)  # raises for targets that float64 cannot square


def check_hyperparameters(model: Any) -> None:
    """Raise `InvalidInputError` unless the hyperparameters are treated in a known way."""
    check_choice("hyperparameters", model.hyperparameters, HYPERPARAMETERS)
    if model.hyperparameters == "integrated" and not model.optimize:
        raise InvalidInputError(
            "hyperparameters: expected 'auto' or 'optimal' with optimize=False, which keeps them as"
            " they are, got 'integrated'"
        )


def integrates(hyperparameters: str, n: int, most: int) -> bool:
    """Return whether hyperparameters are integrated over, for n training rows."""
    return hyperparameters == "integrated" or (hyperparameters == "auto" and n <= most)


def known_noise(model: Any, noise: Any, X: Array) -> Array | None:
    """Return the noise variance if it is known, one for all rows or one for each."""
    if noise is None:
        if model.noise_variance is None:
            kernel = model._given_kernel
            return namespace(X).asarray(0.0) if kernel is not None and has_white(kernel) else None
        level = to_numpy(numbers(NOISE, model.noise_variance))
        exact = level.size == 1 and float(level.ravel()[0]) == 0.0
        return namespace(X).asarray(0.0 if exact else positive_scalar(NOISE, model.noise_variance))
    if model.noise_variance is not None:
        raise InvalidInputError(
            f"noise: expected None, because noise_variance={model.noise_variance} is given; give"
            " one of them"
        )
    noise = numbers("noise", noise)
    if noise.ndim == 0:
        raise InvalidInputError(
            "noise: expected one variance per row of X, got one number; that is noise_variance="
        )
    noise = as_vector("noise", noise, length=len(X), unit="variances (one per row of X)", like=X)
    if (noise < 0).any():
        raise InvalidInputError(f"noise: expected variances, 0 or larger, got {float(noise.min())}")
    return noise
