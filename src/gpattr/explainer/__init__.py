"""Explainers: from a model and rows to explanations."""

from gpattr.explainer.comparison import compare
from gpattr.explainer.explainer import Explainer
from gpattr.explainer.one_call import explain

__all__ = ["Explainer", "compare", "explain"]
