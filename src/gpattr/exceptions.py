"""Errors that gpattr raises; each is also the built-in error a caller would expect."""

import numpy as np

__all__ = [
    "ClusterError",
    "DatasetError",
    "FileFormatError",
    "GpattrError",
    "InvalidIndexError",
    "InvalidInputError",
    "InvalidTypeError",
    "MissingUncertaintyError",
    "NoClosedFormError",
    "NotFittedError",
    "NotPositiveDefiniteError",
    "SeveralOutputsError",
    "ToleranceError",
    "TooLargeError",
    "UnsupportedModelError",
]


class GpattrError(Exception):
    """Base of all errors raised by gpattr.

    Examples
    --------
    >>> from gpattr.exceptions import GpattrError, InvalidInputError
    >>> issubclass(InvalidInputError, GpattrError), issubclass(InvalidInputError, ValueError)
    (True, True)
    """


class InvalidInputError(GpattrError, ValueError):
    """An invalid argument; the message names it, what was expected and what was given.

    Examples
    --------
    >>> from gpattr.kernels import SquaredExponential
    >>> SquaredExponential(lengthscale=-1.0)
    Traceback (most recent call last):
        ...
    gpattr.exceptions.InvalidInputError: lengthscale: expected finite numbers larger than 0, ...
    """


class InvalidIndexError(InvalidInputError, IndexError):
    """An index of a row or feature that does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ex = explainer([[1.0, 0.0], [1.0, -2.0]])
    >>> ex[5]
    Traceback (most recent call last):
        ...
    gpattr.exceptions.InvalidIndexError: rows: expected positions below 2, a slice or a mask, got 5
    """


class InvalidTypeError(InvalidInputError, TypeError):
    """An argument of a type that cannot be converted to numbers.

    Examples
    --------
    >>> import gpattr
    >>> gpattr.GPRegressor().fit([[{}], [{}]], [0.0, 1.0])
    Traceback (most recent call last):
        ...
    gpattr.exceptions.InvalidTypeError: X: float() argument must be a string or a real number, ...
    """


class SeveralOutputsError(InvalidInputError, AttributeError):
    """An attribute of a single output was requested from several; the message names them.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.MultiOutputGPRegressor().fit(X, X)
    >>> gpattr.sobol_indices(model)
    Traceback (most recent call last):
        ...
    gpattr.exceptions.SeveralOutputsError: output: the model has several outputs; choose one of ...
    """


class NotFittedError(GpattrError, ValueError, AttributeError):
    """The model has not been fitted.

    Examples
    --------
    >>> import gpattr
    >>> gpattr.Explainer(gpattr.GPRegressor())
    Traceback (most recent call last):
        ...
    gpattr.exceptions.NotFittedError: model: this GPRegressor is not fitted yet; call fit(X, y) ...
    """


class UnsupportedModelError(GpattrError, TypeError):
    """The model, or a part of it, is not supported.

    Examples
    --------
    >>> import gpattr
    >>> gpattr.Explainer("my model")
    Traceback (most recent call last):
        ...
    gpattr.exceptions.UnsupportedModelError: model: expected a fitted Gaussian process of ...
    """


class NoClosedFormError(GpattrError, NotImplementedError):
    """``method="exact"`` was requested for a kernel without a closed form.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.array([[0.0], [1.0]])
    >>> posterior = gpattr.posteriors.ExactPosterior(gpattr.kernels.Matern(), X, X[:, 0], noise=0.1)
    >>> gpattr.Explainer(posterior, method="exact")(X)
    Traceback (most recent call last):
        ...
    gpattr.exceptions.NoClosedFormError: method: "exact" was asked for, but IntegratedGradients ...
    """


class NotPositiveDefiniteError(GpattrError, np.linalg.LinAlgError):
    """The covariance of the training targets cannot be factorised.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import SquaredExponential
    >>> from gpattr.posteriors import ExactPosterior
    >>> ExactPosterior(SquaredExponential(), np.zeros((2, 1)), [0.0, 1.0], noise=0.0)
    Traceback (most recent call last):
        ...
    gpattr.exceptions.NotPositiveDefiniteError: noise: the covariance of the 2 training targets ...
    """


class ToleranceError(GpattrError, ArithmeticError):
    """Quadrature did not reach the requested tolerance.

    Examples
    --------
    >>> from gpattr.exceptions import ToleranceError
    >>> issubclass(ToleranceError, ArithmeticError)
    True
    """


class MissingUncertaintyError(GpattrError, ValueError):
    """The explanation was computed without the required uncertainty.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> explainer(X, uncertainty="none").interval()
    Traceback (most recent call last):
        ...
    gpattr.exceptions.MissingUncertaintyError: This needs variances, which the explanation does ...
    """


class TooLargeError(GpattrError, MemoryError):
    """The result would not fit in memory; the message states its size and what to do instead.

    Examples
    --------
    >>> from gpattr.exceptions import TooLargeError
    >>> issubclass(TooLargeError, MemoryError)
    True
    """


class FileFormatError(GpattrError, ValueError):
    """A file is not a complete, unaltered file written by gpattr.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gpattr
    >>> written = Path("explanation.json").write_text("{}")
    >>> gpattr.Explanation.load("explanation.json")
    Traceback (most recent call last):
        ...
    gpattr.exceptions.FileFormatError: explanation.json: expected a file of format ...
    """


class DatasetError(GpattrError, OSError):
    """A published data set is missing, incomplete or altered, or cannot be downloaded.

    Examples
    --------
    >>> from gpattr.datasets import load_wine_quality
    >>> load_wine_quality(data_home="nowhere")
    Traceback (most recent call last):
        ...
    gpattr.exceptions.DatasetError: data_home: expected a folder with 'winequality-red.csv', ...
    """


class OptionalPackageError(GpattrError, ImportError):
    """An optional package is missing, too old or broken; the message says how to install it."""


class ClusterError(GpattrError, RuntimeError):
    """The cluster was lost, or gave up, before the result was there.

    Examples
    --------
    >>> from gpattr.exceptions import ClusterError
    >>> issubclass(ClusterError, RuntimeError)
    True
    """
