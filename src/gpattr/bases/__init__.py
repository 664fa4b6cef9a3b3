"""Finite sets of functions, of which a model in weight space is a weighted sum; values only."""

from gpattr.bases.base import Basis
from gpattr.bases.combined import Combined
from gpattr.bases.fourier import Fourier
from gpattr.bases.hilbert import Hilbert
from gpattr.bases.monomials import Monomials

__all__ = ["Basis", "Combined", "Fourier", "Hilbert", "Monomials"]
