"""Binary Gaussian-process classification by Laplace's approximation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from gpattr import _documents
from gpattr._array import to_numpy
from gpattr._threads import threads_for
from gpattr._validation import Names, is_frame
from gpattr.estimators import storage
from gpattr.estimators.base import KernelOptions, PosteriorEstimator, require_numbers
from gpattr.estimators.gp_regressor import check_prior
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.laplace_evidence import LaplaceEvidence
from gpattr.estimators.marginal_likelihood import maximise
from gpattr.estimators.progress import training_progress
from gpattr.estimators.search_space import Units, bounds_for, default_kernel, scaled, spread_of, starts_from
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel, Radial
from gpattr.means import Mean, Zero
from gpattr.posteriors import LaplacePosterior
from gpattr.special.logistic import expected_probability


class GPClassifier(KernelOptions, ClassifierMixin, PosteriorEstimator):
    """Gaussian-process classification of two classes, with hyperparameters learned by Laplace's marginal likelihood.

    The log odds of the second class are a Gaussian process. `Explainer` explains that latent function, on the scale of log odds.

    Parameters
    ----------
    kernel, optimize, n_restarts, bounds, random_state, verbose
        As for `GPRegressor`; variances are those of log odds.
    mean : "zero" or Mean
        The prior mean of the log odds.

    Attributes
    ----------
    posterior_ : LaplacePosterior
        What `Explainer` explains.
    classes_ : array (2,)
        The labels; the latent function is positive where the second is the more likely.
    kernel_, mean_, log_marginal_likelihood_
        What was learned, in the units of the data.
    """

    def __init__(
        self,
        kernel: Kernel | type[Radial] | None = None,
        *,
        mean: str | Mean = "zero",
        optimize: bool = True,
        n_restarts: int = 0,
        bounds: dict[str, tuple[Any, Any]] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.optimize = optimize
        self.n_restarts = n_restarts
        self.bounds = bounds
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the hyperparameters from labelled rows, and condition on them."""
        check_prior(self, ("zero",))
        with self._unchanged_on_error():
            require_numbers(X=X)
            data: Any = validate_data(self, X, y, dtype=np.float64, order="C")
            rows, labels = data
            check_classification_targets(labels)
            classes, codes = np.unique(labels, return_inverse=True)
            if len(classes) != 2:
                raise InvalidInputError(
                    f"y: expected labels of two classes, got {len(classes)} class(es). Only binary classification is supported. "
                    f"The type of the target is {type_of_target(labels)}. sklearn.multiclass.OneVsRestClassifier takes more"
                )
            mean = self.mean if isinstance(self.mean, Mean) else Zero()
            for part in (self._given_kernel, mean):
                if part is not None:
                    part.check_features(rows.shape[1])
            kernel = self._learn(rows, codes.astype(np.float64), mean)
            posterior = LaplacePosterior(kernel, X if is_frame(X) else rows, codes, mean=mean)
        return self._become(posterior, classes)

    def predict_latent(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean of the latent log odds of the second class, (n,), with their standard deviation if asked."""
        return self._latent(X, return_std=return_std)

    def predict(self, X: Any) -> np.ndarray:
        """Return the more likely label of each row, (n,)."""
        check_is_fitted(self)
        return self.classes_[(to_numpy(self._latent(X)) > 0).astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of both classes, (n, 2): means over the latent function, whose uncertainty moves them to ½."""
        mean, std = (to_numpy(part) for part in self._latent(X, return_std=True))
        second = expected_probability(mean, std)
        return np.column_stack([expected_probability(-mean, std), second])

    def _learn(self, X: np.ndarray, y: np.ndarray, mean: Mean) -> Kernel:
        """Return the most likely kernel, in the user's units."""
        given, spread = self._given_kernel, spread_of(X)
        units = Units(np.where(spread > 0, spread, 1.0), 1.0) if given is None else Units(np.ones(()), 1.0)
        kernel = default_kernel(units, self.kernel) if given is None else given  # pyright: ignore[reportArgumentType]
        if not self.optimize:
            return kernel
        kernel = scaled(kernel, units, inwards=True)
        start = trainable(kernel)
        bounds = bounds_for(start, units, self.bounds, 1.0, own_start=given is None)
        if not bounds:
            return scaled(kernel, units, inwards=False)
        rows = units.inside(X) if kernel.stationary else X / units.spread
        starts = starts_from({name: start[name] for name in bounds}, self.n_restarts, self.random_state)
        with threads_for(len(y)), training_progress(self.verbose, len(starts), 0.0) as report:
            kernel, _ = maximise(LaplaceEvidence(rows, y, mean(X)), kernel, None, bounds, starts, report=report)
        return scaled(kernel, units, inwards=False)

    def _become(self, posterior: LaplacePosterior, classes: np.ndarray) -> Self:
        self.posterior_, self.classes_ = posterior, classes
        self.kernel_, self.mean_ = posterior.kernel, posterior.mean
        self.log_marginal_likelihood_ = posterior.log_marginal_likelihood
        return self

    def _content(self) -> dict[str, Any]:
        return {
            "kernel": storage.encode("kernel", self.kernel_),
            "mean": storage.encode("mean", self.mean_),
            "classes": self.classes_.tolist(),
            "arrays": {
                "X": _documents.encode(to_numpy(self.posterior_.inputs), ("row", "feature")),
                "y": _documents.encode(to_numpy(self.posterior_.y), ("row",)),
            },
        }

    def _restore(self, content: Any, names: Names | None) -> None:
        X, y = (_documents.decode(content["arrays"][name]) for name in ("X", "y"))
        self.n_features_in_ = X.shape[1]
        if names is not None:
            import pandas as pd

            X = pd.DataFrame(X, columns=list(names))
        mean = storage.decode(content["mean"])
        self._become(LaplacePosterior(storage.decode(content["kernel"]), X, y, mean=mean), np.array(content["classes"]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
