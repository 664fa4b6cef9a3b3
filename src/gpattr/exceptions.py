"""Every error gpattr raises on purpose; each is also the built-in error a caller would expect."""

import numpy as np


class GpattrError(Exception):
    """Base of all errors raised by gpattr."""


class InvalidInputError(GpattrError, ValueError):
    """An argument is not what was expected; the message names it, the expectation and what came."""


class InvalidIndexError(InvalidInputError, IndexError):
    """A row or feature that an explanation does not have."""


class InvalidTypeError(InvalidInputError, TypeError):
    """An argument is of a type of which no numbers can be made."""


class SeveralOutputsError(InvalidInputError, AttributeError):
    """A question that one output answers was asked of several; the message names them."""


class NotFittedError(GpattrError, ValueError, AttributeError):
    """The model has not been fitted."""


class UnsupportedModelError(GpattrError, TypeError):
    """The model, or a part of it, is not one gpattr can explain."""


class NoClosedFormError(GpattrError, NotImplementedError):
    """``method="exact"`` was asked for a kernel that has no closed form."""


class NotPositiveDefiniteError(GpattrError, np.linalg.LinAlgError):
    """The covariance of the training targets cannot be factorised."""


class ToleranceError(GpattrError, ArithmeticError):
    """Quadrature could not be made sure of its result to the tolerance."""


class MissingUncertaintyError(GpattrError, ValueError):
    """The explanation was computed without the uncertainty this question needs."""


class TooLargeError(GpattrError, MemoryError):
    """The result would not fit in memory; the message says how large it is and what to do instead."""


class FileFormatError(GpattrError, ValueError):
    """A file is not a complete, unaltered file that gpattr wrote."""


class DatasetError(GpattrError, OSError):
    """A published data set cannot be read: not found, not downloaded, not whole, or altered."""
