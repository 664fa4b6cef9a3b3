"""Scalar integrals to machine precision."""

from gpattr.special.gaussian import centred_moments, g0, g2, path_moments, path_products
from gpattr.special.quadrature import gauss_legendre, integrate

__all__ = [
    "centred_moments",
    "g0",
    "g2",
    "gauss_legendre",
    "integrate",
    "path_moments",
    "path_products",
]
