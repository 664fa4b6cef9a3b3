"""Explainers: from a model and rows to explanations."""

from gpattr.explainer.explainer import Explainer, explain

__all__ = ["Explainer", "explain"]
