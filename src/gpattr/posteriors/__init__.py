"""What the data taught: frozen posteriors that predict and that operators apply to."""

from gpattr.posteriors.exact import ExactPosterior
from gpattr.posteriors.function_space import UNCERTAINTY, Attributions, FunctionSpacePosterior

__all__ = ["UNCERTAINTY", "Attributions", "ExactPosterior", "FunctionSpacePosterior"]
