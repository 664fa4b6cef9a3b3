"""Formulas of partial dependence: products of kernels, radial kernels, values at points."""
