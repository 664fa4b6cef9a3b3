"""Sobol indices: shares of the variance of a function, with their posterior distribution."""

from gpattr.sobol.entry import sobol_indices
from gpattr.sobol.indices import SobolIndices, SobolPairs
from gpattr.sobol.inputs import Normal, Uniform

__all__ = ["Normal", "SobolIndices", "SobolPairs", "Uniform", "sobol_indices"]
