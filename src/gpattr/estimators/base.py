"""The base of all estimators: data checks, predictions, draws and files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from gpattr._core.array import Array, is_tensor, to_numpy
from gpattr._core.lazy_tables import is_dask
from gpattr._core.normal import standard_draws
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import (
    as_matrix,
    as_vector,
    check_count,
    check_flag,
    is_frame,
    refuse_lazy,
)
from gpattr.estimators import storage
from gpattr.estimators.plain_data import checked_pair, checked_rows, checked_training_data
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel, Radial, SquaredExponential

MOST_RESTARTS = 10**6


class PosteriorEstimator(BaseEstimator):
    """An estimator that learns a ``posterior_``."""

    posterior_: Any

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a JSON file."""
        check_is_fitted(self)
        storage.save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a model that `save` wrote: it predicts and explains as the one that was saved."""
        return storage.load(cls, path)

    def _content(self) -> dict[str, Any]:
        """Return the fitted state for a file, without the options, as JSON values."""
        raise NotImplementedError

    def _restore(self, content: Any, names: tuple[str, ...] | None) -> None:
        """Become the model whose `_content` this is."""
        raise NotImplementedError

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Restore scikit-learn's notes about the data, if the block fails."""
        noted = ("n_features_in_", "feature_names_in_")
        before = {name: value for name, value in vars(self).items() if name in noted}
        try:
            yield
        except BaseException:
            for name in noted:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    def _latent(self, X: Any, **options: Any) -> Any:
        """Return the posterior's prediction of the latent function at X."""
        check_is_fitted(self)
        if not (is_frame(X) or is_tensor(X) or is_tensor(self.posterior_.like)):
            require_numbers(X=X)
            X = checked_rows(X)
            self._check_width(X, self.posterior_.n_features)
        return self.posterior_.predict(X, **options)

    def _check_width(self, X: Array, d: int) -> None:
        if X.shape[1] != d:  # in the words of scikit-learn
            name = type(self).__name__
            raise InvalidInputError(
                f"X has {X.shape[1]} features, but {name} is expecting {d} features as input"
            )


class PosteriorRegressor(RegressorMixin, PosteriorEstimator):
    """A regressor that learns a ``posterior_``."""

    def predict(self, X: ArrayLike, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the mean of the latent function at X, with its std or covariance on request.

        Neither contains the noise.
        """
        check_is_fitted(self)
        if check_flag("return_std", return_std) and check_flag("return_cov", return_cov):
            raise InvalidInputError(
                "return_std: expected at most one of return_std and return_cov, got both"
            )
        return self._latent(X, return_std=return_std, return_cov=return_cov)

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: RandomLike = 0
    ) -> np.ndarray:
        """Return draws of the latent function at X, (n, n_samples)."""
        self.predict(X)  # for what may be wrong with X
        check_count("n_samples", n_samples)
        return function_draws(self.posterior_, X, n_samples, random_generator(random_state))

    def _check_data(self, X: Any, y: Any, *, width: int | None = None) -> tuple[Array, Array]:
        """Return rows and targets as float64; ``width`` is the number of features, if fixed."""
        refuse_dask(X=X, y=y)
        if is_tensor(X):
            X = as_matrix("X", X)
            if width is None:
                self.n_features_in_ = X.shape[1]
                self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
            else:
                self._check_width(X, width)
            return X, as_vector("y", y, length=len(X), unit="targets (one per row of X)", like=X)
        y = to_numpy(y)
        require_numbers(X=X, y=y)
        if (shape := np.asarray(y).shape)[1:] > (1,):
            raise InvalidInputError(
                f"y: expected targets (n,), got {shape}; MultiOutputGPRegressor takes several"
                " outputs"
            )
        if width is not None:
            X, y = checked_pair(X, y)
            self._check_width(X, width)
            return X, y.astype(np.float64)
        X, y = checked_training_data(self, X, y)
        return X, y.astype(np.float64)


def function_draws(
    posterior: Any, X: Any, n_samples: int, generator: np.random.Generator
) -> np.ndarray:
    """Return draws of the latent function at X, (n, n_samples): of a model, then of its values."""
    parts = posterior.components
    counts = (
        generator.multinomial(n_samples, [weight for weight, _ in parts])
        if len(parts) > 1
        else [n_samples]
    )
    draws = []
    for count, (_, part) in zip(counts, parts, strict=True):
        if count:
            mean, cov = (to_numpy(moment) for moment in part.predict(X, return_cov=True))
            values, vectors = np.linalg.eigh(cov)
            normal = standard_draws("n_samples", int(count), len(mean), generator)
            draws.append(mean[:, None] + (vectors * np.sqrt(np.maximum(values, 0.0))) @ normal.T)
    return np.concatenate(draws, axis=1)


def check_training(model: Any) -> None:
    """Raise `InvalidInputError` for invalid options of training."""
    check_count("n_restarts", model.n_restarts, least=0, most=MOST_RESTARTS)
    random_generator(model.random_state)
    if not isinstance(model.verbose, (bool, np.bool_)):
        check_count("verbose", model.verbose, least=0)


def require_numbers(**arrays: Any) -> None:
    """Refuse values that scikit-learn would take for numbers: text, dates, and masked entries."""
    for name, value in arrays.items():
        refuse_lazy(name, value)
        if isinstance(value, np.ma.MaskedArray):
            raise InvalidInputError(
                f"{name}: expected plain numbers, got a masked array; remove or fill masked values"
            )
        if issparse(value):
            raise InvalidInputError(
                f"{name}: expected a dense array, got a sparse {type(value).__name__};"
                f" {name}.toarray() makes one"
            )
        if is_frame(value):
            as_matrix(name, value)  # our words for what is wrong with a frame
            continue
        try:
            kind = np.asarray(value).dtype.kind
        except ValueError:  # NumPy's words for lists of different lengths do not say where
            raise InvalidInputError(
                f"{name}: expected numbers, got lists of different lengths"
            ) from None
        if kind in "USmM":
            raise InvalidInputError(
                f"{name}: expected numbers, got {'text' if kind in 'US' else 'dates'}"
            )


def refuse_dask(**tables: Any) -> None:
    """Refuse Dask collections, and name the estimators that train on them."""
    for name, value in tables.items():
        if is_dask(value):
            raise InvalidInputError(
                f"{name}: expected rows in memory, got a Dask {type(value).__name__};"
                " RandomFeatureGPRegressor.fit and SparseGPRegressor.fit train on Dask"
                f" collections, and {name}.compute() brings all rows into memory"
            )


class KernelOptions(BaseEstimator):
    """An estimator with a ``kernel``, whose hyperparameters can be set by name."""

    kernel: Any

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``kernel__name=value`` replaces a parameter of the kernel."""
        inner = {
            name.partition("__")[2]: value
            for name, value in params.items()
            if name.startswith("kernel__")
        }
        super().set_params(
            **{name: value for name, value in params.items() if not name.startswith("kernel__")}
        )
        if inner:
            if not isinstance(self.kernel, Kernel):
                raise InvalidInputError(
                    f"kernel__{next(iter(inner))}: expected a kernel to set it in; pass one first"
                )
            self.kernel = self.kernel.with_params(**inner)
        return self

    @property
    def _given_kernel(self) -> Kernel | None:
        """The kernel the user gave, None if it is a class or left out."""
        return self.kernel if isinstance(self.kernel, Kernel) else None

    @property
    def _kernel_class(self) -> type[Radial]:
        """The class of the kernel to train, where no kernel is given."""
        return self.kernel if isinstance(self.kernel, type) else SquaredExponential


class KernelRegressor(KernelOptions, PosteriorRegressor):
    """A regressor with a ``kernel``."""
