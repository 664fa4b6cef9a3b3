"""Integrated Hessians of kernels and bases: Γᵢⱼ of pairs of features."""

from gpattr.closed_forms.integrated_hessians import radial

__all__ = ["radial"]
