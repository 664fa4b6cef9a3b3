"""Experiments of the paper: K. Butler, G. Feng, P. M. Djurić, *Explainable Learning with GPs*.

One module for each figure (6 and 7 are in the appendix) and for sections 2.1 and 2.2; ``gpattr
paper`` runs them and checks their numbers.
"""

from gpattr.paper.checks import Check
from gpattr.paper.reproduce import EXPERIMENTS, Report, reproduce

__all__ = ["EXPERIMENTS", "Check", "Report", "reproduce"]
