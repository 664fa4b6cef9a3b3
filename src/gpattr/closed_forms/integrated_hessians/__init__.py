"""Integrated Hessians of kernels and bases: Γᵢⱼ of pairs of features."""

from gpattr.closed_forms.integrated_hessians import algebra, bases, polynomials, radial

__all__ = ["algebra", "bases", "polynomials", "radial"]
