"""Gaussian-process classification by Laplace's approximation, one against the rest."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gpattr._core import documents
from gpattr._core.array import to_numpy
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import Names, check_flag, is_frame, refuse_lazy
from gpattr.estimators import storage
from gpattr.estimators.base import (
    KernelOptions,
    PosteriorEstimator,
    refuse_dask,
    require_numbers,
)
from gpattr.estimators.evidence.laplace import LaplaceEvidence
from gpattr.estimators.evidence.marginal_likelihood import maximise
from gpattr.estimators.gp_regressor import check_prior
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.plain_data import check_classes, checked_training_data
from gpattr.estimators.progress import training_progress
from gpattr.estimators.search_space import (
    Units,
    bounds_for,
    default_kernel,
    scaled,
    starts_from,
    std_of,
)
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel, Radial
from gpattr.means import Mean, Zero
from gpattr.posteriors import LaplacePosterior, MultiOutputPosterior
from gpattr.special.logistic import expected_probability


class GPClassifier(KernelOptions, ClassifierMixin, PosteriorEstimator):
    """Gaussian-process classification, trained by Laplace's marginal likelihood.

    The log odds of the second of two classes are a Gaussian process; of more classes, the log odds
    of each against all others are, each with hyperparameters of its own. `Explainer` explains these
    latent functions, on the scale of log odds, or with ``output="probability"`` the probabilities
    that follow from them.

    Parameters
    ----------
    kernel, optimize, n_restarts, bounds, random_state, verbose
        As for `GPRegressor`; variances are those of log odds.
    mean : "zero" or Mean
        The prior mean of the log odds.

    Attributes
    ----------
    posterior_ : LaplacePosterior, or MultiOutputPosterior with one output for each of more than two
    classes
        What `Explainer` explains.
    classes_ : array (K,)
        The labels; of two, the latent function is positive where the second is the more likely.
    kernel_, mean_, log_marginal_likelihood_
        The learned values, in data units; for more than two classes a tuple of kernels and the sum
        of the log evidences.

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
        optimize: bool = True,
        n_restarts: int = 0,
        bounds: dict[str, tuple[Any, Any]] | None = None,
        random_state: RandomLike = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.optimize = optimize
        self.n_restarts = n_restarts
        self.bounds = bounds
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the hyperparameters from labelled rows, and condition on them."""
        check_prior(self, ("zero",))
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
            inputs, posteriors = X if is_frame(X) else rows, []
            for target in self._targets(codes, len(classes)):
                kernel = self._learn(rows, target, mean)
                posteriors.append(
                    LaplacePosterior(
                        kernel, inputs, target, mean=mean, label=_label(classes, len(posteriors))
                    )
                )
        return self._become(posteriors, classes)

    def predict_latent(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Return the mean of the latent log odds, with their standard deviation if asked.

        They are those of the second of two classes, (n,), or of each class against all others, (n,
        K).
        """
        return self._latent(X, return_std=check_flag("return_std", return_std))

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the most likely label of each row, (n,)."""
        check_is_fitted(self)
        if len(self.classes_) == 2:
            return self.classes_[(to_numpy(self._latent(X)) > 0).astype(int)]
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the probabilities of the classes, (n, K), averaged over the latent function.

        Its uncertainty moves them towards ½. Those of more than two classes, each against all
        others, are divided by their sum.
        """
        mean, std = (to_numpy(part) for part in self._latent(X, return_std=True))
        if mean.ndim == 1:
            return np.column_stack([expected_probability(sign * mean, std) for sign in (-1.0, 1.0)])
        against = np.stack(
            [expected_probability(*column) for column in zip(mean.T, std.T, strict=True)], axis=1
        )
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

    def _learn(self, X: np.ndarray, y: np.ndarray, mean: Mean) -> Kernel:
        """Return the most likely kernel, in the user's units."""
        given, std = self._given_kernel, std_of(X)
        units = (
            Units(np.where(std > 0, std, 1.0), 1.0) if given is None else Units(np.ones(()), 1.0)
        )
        kernel = _start(units, self._kernel_class) if given is None else given
        if not self.optimize:
            return kernel
        kernel = scaled(kernel, units, inwards=True)
        start = trainable(kernel)
        bounds = bounds_for(start, units, self.bounds, 1.0, own_start=given is None)
        if not bounds:
            return scaled(kernel, units, inwards=False)
        rows = units.inside(X) if kernel.stationary else X / units.std
        starts = starts_from(
            {name: start[name] for name in bounds}, self.n_restarts, self.random_state
        )
        with training_progress(self.verbose, len(starts), 0.0) as report:
            kernel, _ = maximise(
                LaplaceEvidence(rows, y, mean(X)), kernel, None, bounds, starts, report=report
            )
        return scaled(kernel, units, inwards=False)

    def _become(self, posteriors: list[LaplacePosterior], classes: np.ndarray) -> Self:
        self.classes_, self.mean_ = classes, posteriors[0].mean
        self.log_marginal_likelihood_ = sum(
            posterior.log_marginal_likelihood for posterior in posteriors
        )
        if len(classes) == 2:
            self.posterior_, self.kernel_ = posteriors[0], posteriors[0].kernel
        else:
            self.posterior_ = MultiOutputPosterior(
                dict(zip(map(str, classes.tolist()), posteriors, strict=True))
            )
            self.kernel_: Any = tuple(posterior.kernel for posterior in posteriors)
        return self

    @property
    def _posteriors(self) -> tuple[LaplacePosterior, ...]:
        return (self.posterior_,) if len(self.classes_) == 2 else self.posterior_.latents

    def _content(self) -> dict[str, Any]:
        codes = [to_numpy(posterior.y) for posterior in self._posteriors]
        return {
            "kernels": [
                storage.encode("kernel", posterior.kernel) for posterior in self._posteriors
            ],
            "mean": storage.encode("mean", self.mean_),
            "classes": self.classes_.tolist(),
            "label_type": self.classes_.dtype.str,
            "arrays": {
                "X": documents.encode(to_numpy(self._posteriors[0].inputs), ("row", "feature")),
                "y": documents.encode(
                    codes[0] if len(codes) == 1 else np.argmax(codes, axis=0).astype(float),
                    ("row",),
                ),
            },
        }

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
        kernels = [storage.decode(kernel) for kernel in content["kernels"]]
        posteriors = [
            LaplacePosterior(kernel, X, target, mean=mean, label=_label(classes, k))
            for k, (kernel, target) in enumerate(zip(kernels, targets, strict=True))
        ]
        self._become(posteriors, classes)


def _start(units: Units, kind: type[Radial] | None) -> Radial:
    """Return the kernel where training starts: a smooth one of some log odds.

    Labels carry little information about a function.
    """
    kernel = default_kernel(units, kind)
    return kernel.with_params(lengthscale=kernel.lengthscale / 0.6, variance=4.0)


def _label(classes: np.ndarray, k: int) -> str:
    """Return what the k-th latent function is the log odds of."""
    names = classes.tolist()
    return (
        f"{names[1]!r} against {names[0]!r}"
        if len(names) == 2
        else f"{names[k]!r} against the rest"
    )
