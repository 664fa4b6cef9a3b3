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
    """Base of all errors raised by gpattr."""


class InvalidInputError(GpattrError, ValueError):
    """An invalid argument; the message names it, what was expected and what was given."""


class InvalidIndexError(InvalidInputError, IndexError):
    """An index of a row or feature that does not exist."""


class InvalidTypeError(InvalidInputError, TypeError):
    """An argument of a type that cannot be converted to numbers."""


class SeveralOutputsError(InvalidInputError, AttributeError):
    """An attribute of a single output was requested from several; the message names them."""


class NotFittedError(GpattrError, ValueError, AttributeError):
    """The model has not been fitted."""


class UnsupportedModelError(GpattrError, TypeError):
    """The model, or a part of it, is not supported."""


class NoClosedFormError(GpattrError, NotImplementedError):
    """``method="exact"`` was requested for a kernel without a closed form."""


class NotPositiveDefiniteError(GpattrError, np.linalg.LinAlgError):
    """The covariance of the training targets cannot be factorised."""


class ToleranceError(GpattrError, ArithmeticError):
    """Quadrature did not reach the requested tolerance."""


class MissingUncertaintyError(GpattrError, ValueError):
    """The explanation was computed without the required uncertainty."""


class TooLargeError(GpattrError, MemoryError):
    """The result would not fit in memory; the message states its size and what to do instead."""


class FileFormatError(GpattrError, ValueError):
    """A file is not a complete, unaltered file written by gpattr."""


class DatasetError(GpattrError, OSError):
    """A published data set is missing, incomplete or altered, or cannot be downloaded."""


class ClusterError(GpattrError, RuntimeError):
    """The cluster was lost, or gave up, before the result was there."""
