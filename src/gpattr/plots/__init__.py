"""Pictures of explanations with their uncertainty, on given axes or new ones."""

from gpattr.plots.bar import bar
from gpattr.plots.baseline_sensitivity import baseline_sensitivity
from gpattr.plots.beeswarm import beeswarm
from gpattr.plots.comparison import comparison
from gpattr.plots.counterfactual import counterfactual
from gpattr.plots.covariance import covariance
from gpattr.plots.density import density
from gpattr.plots.dependence import dependence
from gpattr.plots.dependence_grid import dependence_grid
from gpattr.plots.heatmap import heatmap
from gpattr.plots.interaction_matrix import interaction_matrix
from gpattr.plots.interaction_network import interaction_network
from gpattr.plots.measure_next import measure_next
from gpattr.plots.parts import parts
from gpattr.plots.path import path
from gpattr.plots.ranks import ranks
from gpattr.plots.scatter import scatter
from gpattr.plots.sobol_bar import sobol_bar
from gpattr.plots.training import training
from gpattr.plots.waterfall import waterfall

__all__ = [
    "bar",
    "baseline_sensitivity",
    "beeswarm",
    "comparison",
    "counterfactual",
    "covariance",
    "density",
    "dependence",
    "dependence_grid",
    "heatmap",
    "interaction_matrix",
    "interaction_network",
    "measure_next",
    "parts",
    "path",
    "ranks",
    "scatter",
    "sobol_bar",
    "training",
    "waterfall",
]
