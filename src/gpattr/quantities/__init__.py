"""Quantities: what else can be explained of a model than its prediction."""

from gpattr.quantities.acquisition import Acquisition
from gpattr.quantities.base import Quantity
from gpattr.quantities.confidence_bounds import LowerConfidenceBound, UpperConfidenceBound
from gpattr.quantities.improvement import (
    ExpectedImprovement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
)
from gpattr.quantities.moments import MomentQuantity
from gpattr.quantities.spread import StandardDeviation, Variance

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
