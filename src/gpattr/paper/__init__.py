"""Every experiment of K. Butler, G. Feng and P. M. Djurić, *Explainable Learning with Gaussian
Processes*, with its numbers.

One module for each figure (6 and 7 are those of the appendix) and for sections 2.1 and 2.2;
``gpattr paper`` runs them."""

from gpattr.paper.checks import Check
from gpattr.paper.reproduce import EXPERIMENTS, Report, reproduce

__all__ = ["EXPERIMENTS", "Check", "Report", "reproduce"]
