"""Explanations: immutable results with their distribution, summaries and exports."""

from gpattr.explanation.baseline_sensitivity import BaselineSensitivity
from gpattr.explanation.comparison import Comparison
from gpattr.explanation.contributions import Contributions
from gpattr.explanation.counterfactual import Counterfactual
from gpattr.explanation.dependence import Dependence
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.importance import Importance
from gpattr.explanation.interactions import InteractionExplanation
from gpattr.explanation.multi_output import MultiOutputExplanation
from gpattr.explanation.next_measurement import MeasurementBatch, NextMeasurement

__all__ = [
    "BaselineSensitivity",
    "Comparison",
    "Contributions",
    "Counterfactual",
    "Dependence",
    "Explanation",
    "Importance",
    "InteractionExplanation",
    "MeasurementBatch",
    "MultiOutputExplanation",
    "NextMeasurement",
]
