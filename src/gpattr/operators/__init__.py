"""What is asked of a function: linear operators that know no kernel."""

from gpattr.operators.base import Operator, Sites
from gpattr.operators.baselines import Baselines
from gpattr.operators.gradient import Gradient, Points
from gpattr.operators.integrated_gradients import IntegratedGradients, Paths

__all__ = ["Baselines", "Gradient", "IntegratedGradients", "Operator", "Paths", "Points", "Sites"]
