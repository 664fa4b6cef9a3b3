"""Covariance functions: frozen, combined with ``+`` and ``*``."""

from gpattr.kernels.additive import FullAdditive
from gpattr.kernels.algebra import Product, Scale, Select, Sum, separable
from gpattr.kernels.base import Kernel, Kink
from gpattr.kernels.categorical import Categorical
from gpattr.kernels.constant import Constant
from gpattr.kernels.function import Function
from gpattr.kernels.matern import Matern, Matern12, Matern32, Matern52
from gpattr.kernels.periodic import Cosine, Periodic
from gpattr.kernels.polynomial import Linear, Polynomial
from gpattr.kernels.radial import Radial
from gpattr.kernels.rational_quadratic import RationalQuadratic
from gpattr.kernels.squared_exponential import SquaredExponential
from gpattr.kernels.warped import Rescaled, Warped
from gpattr.kernels.white import White

__all__ = [
    "Categorical",
    "Constant",
    "Cosine",
    "FullAdditive",
    "Function",
    "Kernel",
    "Kink",
    "Linear",
    "Matern",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Polynomial",
    "Product",
    "Radial",
    "RationalQuadratic",
    "Rescaled",
    "Scale",
    "Select",
    "SquaredExponential",
    "Sum",
    "Warped",
    "White",
    "separable",
]
