"""Quantities of a model to explain besides its prediction."""

from gpattr.quantities.acquisition import Acquisition
from gpattr.quantities.base import MomentQuantity, Quantity
from gpattr.quantities.improvement import (
    ExpectedImprovement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
)
from gpattr.quantities.moments import (
    LowerConfidenceBound,
    StandardDeviation,
    UpperConfidenceBound,
    Variance,
)

__all__ = [
    "Acquisition",
    "ExpectedImprovement",
    "LogExpectedImprovement",
    "LowerConfidenceBound",
    "MomentQuantity",
    "ProbabilityOfImprovement",
    "Quantity",
    "StandardDeviation",
    "UpperConfidenceBound",
    "Variance",
]
