"""Linear operators on functions; they are independent of any kernel."""

from gpattr.operators.affine_map import AffineMap
from gpattr.operators.base import Operator, Reference, Sites, over_axes
from gpattr.operators.baselines import Baselines
from gpattr.operators.dependence import Curves, PartialDependence
from gpattr.operators.gradient import Gradient, Points
from gpattr.operators.integrated_gradients import IntegratedGradients, Paths
from gpattr.operators.integrated_hessians import IntegratedHessians
from gpattr.operators.interactions import ShapleyInteractions
from gpattr.operators.marginals import Marginals
from gpattr.operators.players import Players
from gpattr.operators.shapley import Coalitions, Expectation, Shapley

__all__ = [
    "AffineMap",
    "Baselines",
    "Coalitions",
    "Curves",
    "Expectation",
    "Gradient",
    "IntegratedGradients",
    "IntegratedHessians",
    "Marginals",
    "Operator",
    "PartialDependence",
    "Paths",
    "Players",
    "Points",
    "Reference",
    "Shapley",
    "ShapleyInteractions",
    "Sites",
    "over_axes",
]
