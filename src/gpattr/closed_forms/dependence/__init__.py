"""Formulas of partial dependence: products of kernels, radial kernels, values at points."""

from gpattr.closed_forms.dependence import bases, means, resolution

__all__ = ["bases", "means", "resolution"]
