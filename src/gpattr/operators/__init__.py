"""Linear operators on functions; they are independent of any kernel."""

from gpattr.operators.affine_map import AffineMap
from gpattr.operators.base import Operator, Reference, Sites, over_axes
from gpattr.operators.baselines import Baselines
from gpattr.operators.gradient import Gradient, Points
from gpattr.operators.integrated_gradients import IntegratedGradients, Paths

__all__ = [
    "AffineMap",
    "Baselines",
    "Gradient",
    "IntegratedGradients",
    "Operator",
    "Paths",
    "Points",
    "Reference",
    "Sites",
    "over_axes",
]
