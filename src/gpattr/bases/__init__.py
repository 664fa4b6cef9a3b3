"""Bases of weight-space models, which are weighted sums of their functions; values only."""

from gpattr.bases.base import Basis
from gpattr.bases.combined import Combined
from gpattr.bases.fourier import Fourier
from gpattr.bases.hilbert import Hilbert
from gpattr.bases.monomials import Monomials

__all__ = ["Basis", "Combined", "Fourier", "Hilbert", "Monomials"]
