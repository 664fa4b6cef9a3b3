"""Gaussian-process classification, one against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gpattr._core import documents
from gpattr._core.array import to_numpy
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import (
    Names,
    as_matrix,
    check_choice,
    check_flag,
    is_frame,
    refuse_lazy,
)
from gpattr.estimators import storage
from gpattr.estimators.base import (
    KernelOptions,
    PosteriorEstimator,
    refuse_dask,
    require_numbers,
)
from gpattr.estimators.evidence.laplace import LaplaceEvidence
from gpattr.estimators.evidence.marginal_likelihood import maximise
from gpattr.estimators.gp_regressor import check_hyperparameters, check_prior, integrates
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.integration import Integrated
from gpattr.estimators.one_hot import label_columns
from gpattr.estimators.plain_data import check_classes, checked_training_data
from gpattr.estimators.priors import LOG_ODDS_SPREAD
from gpattr.estimators.progress import family_progress, training_progress
from gpattr.estimators.search_space import (
    Units,
    bounds_for,
    default_kernel,
    scaled,
    starts_from,
    std_of,
)
from gpattr.estimators.training import DEFAULT_FAMILIES, Training, has_family
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel, Radial
from gpattr.means import Mean, Zero
from gpattr.posteriors import (
    ExpectationPropagationPosterior,
    LaplacePosterior,
    MultiOutputPosterior,
)
from gpattr.posteriors.classification import ClassificationPosterior
from gpattr.special.logistic import expected_probability

MOST_INTEGRATED = 400  # rows up to which "auto" integrates
POINTS = 12  # models of a mixture: probabilities take longer to explain than predictions
APPROXIMATIONS: dict[str, type[ClassificationPosterior]] = {
    "expectation-propagation": ExpectationPropagationPosterior,
    "laplace": LaplacePosterior,
}
LOG_ODDS = 4.0  # a typical variance of log odds


class GPClassifier(KernelOptions, ClassifierMixin, PosteriorEstimator):
    """Gaussian-process classification by expectation propagation.

    The log odds of the second of two classes are a Gaussian process; of more classes, the log odds
    of each against all others are, each with hyperparameters of its own. `Explainer` explains these
    latent functions, on the scale of log odds, or with ``output="probability"`` the probabilities
    that follow from them. Hyperparameters are learned by Laplace's marginal likelihood.

    Parameters
    ----------
    kernel, optimize, n_restarts, bounds, categories, random_state, verbose
        As for `GPRegressor`; variances are on the scale of log odds.
    hyperparameters : "auto", "integrated" or "optimal"
        As for `GPRegressor`; ``"auto"`` integrates up to 400 rows. A mixture has about 12 models.
    mean : "zero" or Mean
        The prior mean of the log odds.
    approximation : "expectation-propagation" or "laplace"
        How the log odds given the labels are approximated by a Gaussian process. Laplace's
        approximation, of scikit-learn's classifier too, calls classes that separate well too
        uncertain.

    Attributes
    ----------
    posterior_ : ExpectationPropagationPosterior, LaplacePosterior or MixturePosterior, or
    MultiOutputPosterior with one output for each of more than two classes
        The posterior, which `Explainer` explains.
    hyperparameters_ : frame
        Family, weight and hyperparameters of each model, in data units, with a column ``class`` for
        more than two classes.
    classes_ : array (K,)
        The labels; of two, the latent function is positive where the second is the more likely.
    kernel_, mean_, log_marginal_likelihood_
        The learned values, in data units, of the heaviest model; for more than two classes a tuple
        of kernels and the sum of the log evidences.

    Examples
    --------
    >>> import gpattr
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(40, random_state=0)
    >>> model = gpattr.GPClassifier().fit(X, y)
    >>> model.score(X, y)
    1.0
    >>> ex = gpattr.Explainer(model, output="probability", n_draws=200)(X[:2])
    >>> ex.quantity
    'probability of 1 against 0'
    """

    def __init__(
        self,
        kernel: Kernel | type[Radial] | None = None,
        *,
        mean: str | Mean = "zero",
        approximation: str = "expectation-propagation",
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
        self.approximation = approximation
        self.optimize = optimize
        self.hyperparameters = hyperparameters
        self.n_restarts = n_restarts
        self.bounds = bounds
        self.categories = categories
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the hyperparameters from labelled rows, and condition on them."""
        check_prior(self, ("zero",))
        check_hyperparameters(self)
        check_choice("approximation", self.approximation, tuple(APPROXIMATIONS))
        with self._unchanged_on_error():
            refuse_dask(X=X, y=y)
            require_numbers(X=X)
            refuse_lazy("y", y)
            if isinstance(y, np.ma.MaskedArray):
                raise InvalidInputError(
                    "y: expected plain labels, got a masked array; remove or fill masked values"
                )
            rows, labels = checked_training_data(self, X, y, labels=True)
            try:
                check_classes(labels)
                classes, codes = np.unique(labels, return_inverse=True)
            except TypeError:
                raise InvalidInputError(
                    "y: expected labels of one kind, got labels that cannot be compared (None?)"
                ) from None
            if len(classes) < 2:
                raise InvalidInputError(
                    f"y: expected labels of at least two classes, got {len(classes)} class:"
                    f" {classes.tolist()[0]!r} everywhere"
                )
            mean = self.mean if isinstance(self.mean, Mean) else Zero()
            for part in (self._given_kernel, mean):
                if part is not None:
                    part.check_features(rows.shape[1])
            inputs = X if is_frame(X) else rows
            targets = self._targets(codes, len(classes))
            kind = APPROXIMATIONS[self.approximation]
            found = [
                self._learn(
                    rows, target, mean, _Labels(kind, inputs, target, mean, _label(classes, k))
                )
                for k, target in enumerate(targets)
            ]
        return self._become(found, classes)

    def predict_latent(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Return the mean of the latent log odds, with their standard deviation if asked.

        The log odds are of the second of two classes, (n,), or of each class against all others,
        (n, K).
        """
        return self._latent(X, return_std=check_flag("return_std", return_std))

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the most likely label of each row, (n,)."""
        check_is_fitted(self)
        if len(self.classes_) == 2 and len(self.posterior_.components) == 1:
            return self.classes_[(to_numpy(self._latent(X)) > 0).astype(int)]
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the probabilities of the classes, (n, K), averaged over the latent function.

        Its uncertainty moves them towards ½. Those of more than two classes, each against all
        others, are divided by their sum.
        """
        self._latent(X)  # for what may be wrong with X
        found = [mean_probabilities(posterior, X) for posterior in self._posteriors]
        if len(found) == 1:
            return np.column_stack(found[0])
        against = np.stack([second for _, second in found], axis=1)
        total = against.sum(axis=1, keepdims=True)
        return np.divide(
            against, total, out=np.full_like(against, 1.0 / against.shape[1]), where=total > 0
        )

    @staticmethod
    def _targets(codes: np.ndarray, n_classes: int) -> list[np.ndarray]:
        """Return labels 0 and 1 for each latent function: one for two classes, else one each."""
        return [
            (codes == k).astype(np.float64) for k in ([1] if n_classes == 2 else range(n_classes))
        ]

    def _learn(
        self,
        X: np.ndarray,
        y: np.ndarray,
        mean: Mean,
        labels: _Labels,
        near: Kernel | None = None,
    ) -> Integrated:
        """Return the most likely model, or the mixture over hyperparameters.

        Given a kernel to start ``near``, only the most likely model of its family.
        """
        given, groups = self._given_kernel, label_columns(self, X)
        units = Units.of_std(std_of(X), 1.0, groups) if given is None else Units(np.ones(()), 1.0)
        kernel = _start(units, self._kernel_class) if given is None else given
        if not self.optimize:
            return labels.only(kernel)
        kernel = scaled(kernel, units, inwards=True)
        start = trainable(kernel)
        bounds = bounds_for(start, units, self.bounds, 1.0, own_start=given is None)
        if not bounds:
            return labels.only(scaled(kernel, units, inwards=False))
        centred = kernel.stationary or units.labels
        rows = units.inside(X) if centred else X / units.std
        starts = starts_from(
            {name: start[name] for name in bounds}, self.n_restarts, self.random_state
        )
        evidence = LaplaceEvidence(rows, y, mean(X))
        training = Training(
            units, evidence, kernel, None, None, bounds, starts, LOG_ODDS, LOG_ODDS_SPREAD
        )
        integrated = integrates(self.hyperparameters, len(X), MOST_INTEGRATED)
        if near is not None:
            return labels.only(training.near(near, prior=integrated)[0])
        if integrated:
            average = self.kernel is None and has_family(kernel)
            families = DEFAULT_FAMILIES if average else {type(kernel).__name__: None}
            with family_progress(self.verbose) as report:
                return training.integrated(families, labels, POINTS, report=report)
        with training_progress(self.verbose, len(starts), 0.0) as report:
            kernel, _ = maximise(evidence, kernel, None, bounds, starts, report=report)
        return labels.only(scaled(kernel, units, inwards=False))

    def _become(self, found: list[Integrated], classes: np.ndarray) -> Self:
        self._integrated, heaviest = found, [part.heaviest.posterior for part in found]
        self.classes_, self.mean_ = classes, heaviest[0].mean
        self.log_marginal_likelihood_ = sum(part.log_marginal_likelihood for part in heaviest)
        if len(classes) == 2:
            self.posterior_, self.kernel_ = found[0].posterior, heaviest[0].kernel
        else:
            outputs = (part.posterior for part in found)
            self.posterior_ = MultiOutputPosterior(
                dict(zip(map(str, classes.tolist()), outputs, strict=True))
            )
            self.kernel_: Any = tuple(part.kernel for part in heaviest)
        return self

    @property
    def hyperparameters_(self) -> Any:
        """The frame of all models, in the user's units; one row a class without integration."""
        import pandas as pd

        check_is_fitted(self)
        names = self.posterior_.feature_names or range(self.posterior_.n_features)
        frames = [part.frame(names) for part in self._integrated]
        if len(frames) == 1:
            return frames[0]
        parts = zip(self.classes_.tolist(), frames, strict=True)
        return pd.concat([frame.assign(**{"class": label}) for label, frame in parts])

    def conditioned(self, X: Any, labels: np.ndarray) -> Self:
        """Become the same model, hyperparameters and all, conditioned on other rows and labels.

        The weights of a mixture stay as they are.
        """
        check_is_fitted(self)
        codes = np.searchsorted(self.classes_, labels)
        targets = self._targets(codes, len(self.classes_))
        return self._become(
            [
                _Labels.like(part.heaviest.posterior, X, target).again(part)
                for part, target in zip(self._integrated, targets, strict=True)
            ],
            self.classes_,
        )

    def relearned(self, X: Any, labels: np.ndarray) -> Self:
        """Return a copy whose hyperparameters are the most likely ones given other rows and labels.

        The search starts at the heaviest model's hyperparameters and keeps its family; nothing is
        integrated over.
        """
        check_is_fitted(self)
        codes, mean = np.searchsorted(self.classes_, labels), self.mean_
        rows = to_numpy(as_matrix("X", X))
        found = []
        for part, y in zip(self._integrated, self._targets(codes, len(self.classes_)), strict=True):
            new = _Labels.like(part.heaviest.posterior, X, y)
            found.append(self._learn(rows, y, mean, new, near=part.heaviest.kernel))
        return copy(self)._become(found, self.classes_)

    @property
    def _posteriors(self) -> tuple[Any, ...]:
        """The posteriors of the latent functions."""
        return tuple(part.posterior for part in self._integrated)

    def _content(self) -> dict[str, Any]:
        heaviest = [part.heaviest.posterior for part in self._integrated]
        codes = [to_numpy(posterior.y) for posterior in heaviest]
        content: dict[str, Any] = {
            "kernels": [storage.encode("kernel", posterior.kernel) for posterior in heaviest],
            "mean": storage.encode("mean", self.mean_),
            "approximation": _name_of(heaviest[0]),
            "classes": self.classes_.tolist(),
            "label_type": self.classes_.dtype.str,
            "arrays": {
                "X": documents.encode(to_numpy(heaviest[0].inputs), ("row", "feature")),
                "y": documents.encode(
                    codes[0] if len(codes) == 1 else np.argmax(codes, axis=0).astype(float),
                    ("row",),
                ),
            },
        }
        if any(len(part.components) > 1 for part in self._integrated):
            content["components"] = [storage.components(part) for part in self._integrated]
        return content

    def _restore(self, content: Any, names: Names | None) -> None:
        X, y = (documents.decode(content["arrays"][name]) for name in ("X", "y"))
        self.n_features_in_ = X.shape[1]
        if names is not None:
            import pandas as pd

            X = pd.DataFrame(X, columns=list(names))
        mean, classes = (
            storage.decode(content["mean"]),
            np.array(content["classes"], dtype=content["label_type"]),
        )
        targets = self._targets(y.astype(int), len(classes))
        self.approximation = content.get("approximation", "laplace")  # older files have none
        kind = APPROXIMATIONS[self.approximation]
        labels = [
            _Labels(kind, X, target, mean, _label(classes, k)) for k, target in enumerate(targets)
        ]
        if "components" in content:  # older files, and files of one model, have none
            parts = zip(labels, content["components"], strict=True)
            found = [storage.integrated(part, one) for one, part in parts]
        else:
            kernels = [storage.decode(kernel) for kernel in content["kernels"]]
            found = [one.only(kernel) for one, kernel in zip(labels, kernels, strict=True)]
        self._become(found, classes)


@dataclass(frozen=True)
class _Labels:
    """The labels 0 and 1 of one latent function, on which kernels are conditioned."""

    kind: type[ClassificationPosterior]
    X: Any
    y: np.ndarray
    mean: Mean
    label: str

    @classmethod
    def like(cls, posterior: ClassificationPosterior, X: Any, y: np.ndarray) -> _Labels:
        """Return other rows and labels for the same approximation."""
        return cls(type(posterior), X, y, posterior.mean, posterior.label)

    def __call__(self, kernel: Kernel, noise: Any = None) -> ClassificationPosterior:
        return self.kind(kernel, self.X, self.y, mean=self.mean, label=self.label)

    def only(self, kernel: Kernel) -> Integrated:
        """Return one model."""
        return Integrated.of_one(kernel, None, self(kernel))

    def again(self, found: Integrated) -> Integrated:
        """Return the same models conditioned on these labels."""
        return found.map(self)


def mean_probabilities(posterior: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return P(0) and P(1) of labels with these log odds at rows X, (n,) each."""
    none, one = np.zeros(()), np.zeros(())
    for weight, part in posterior.components:
        mean, std = map(to_numpy, part.predict(X, return_std=True))
        none = none + weight * expected_probability(-mean, std)
        one = one + weight * expected_probability(mean, std)
    return none, one


def _name_of(posterior: ClassificationPosterior) -> str:
    """Return the name of an approximation."""
    return next(name for name, kind in APPROXIMATIONS.items() if type(posterior) is kind)


def _start(units: Units, kind: type[Radial] | None) -> Kernel:
    """Return the kernel where training starts: a smooth kernel for some log odds.

    Labels carry little information about a function.
    """
    kernel, values = default_kernel(units, kind), {}
    for name, value in trainable(kernel).items():
        if name.endswith("variance"):
            values[name] = LOG_ODDS
        elif not units.labels or name.startswith("0__"):
            values[name] = value / 0.6
    return kernel.with_params(**values)


def _label(classes: np.ndarray, k: int) -> str:
    """Return the label of the k-th latent function: the classes whose log odds it is."""
    names = classes.tolist()
    return (
        f"{names[1]!r} against {names[0]!r}"
        if len(names) == 2
        else f"{names[k]!r} against the rest"
    )
