"""Integrated Hessians of kernels and bases: Γᵢⱼ of pairs of features."""

from gpattr.closed_forms.integrated_hessians import algebra, bases, radial

__all__ = ["algebra", "bases", "radial"]
