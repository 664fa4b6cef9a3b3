"""What the prior believes: covariance functions, values only, frozen, built up with ``+`` and ``*``."""

from gpattr.kernels.algebra import Scale, Select, Sum
from gpattr.kernels.base import Kernel
from gpattr.kernels.constant import Constant
from gpattr.kernels.squared_exponential import SquaredExponential

__all__ = ["Constant", "Kernel", "Scale", "Select", "SquaredExponential", "Sum"]
