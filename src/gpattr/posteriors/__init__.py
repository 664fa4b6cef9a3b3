"""What the data taught: frozen posteriors that predict and that operators apply to."""

from gpattr.posteriors.exact import ExactPosterior
from gpattr.posteriors.function_space import TOLERANCE, UNCERTAINTY, Attributions, FunctionSpacePosterior

__all__ = ["TOLERANCE", "UNCERTAINTY", "Attributions", "ExactPosterior", "FunctionSpacePosterior"]
