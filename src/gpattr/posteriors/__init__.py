"""What the data taught: frozen posteriors that predict and that operators apply to."""

from gpattr.posteriors.affine import AffinePosterior
from gpattr.posteriors.base import TOLERANCE, UNCERTAINTY, Attributions, Components, Posterior
from gpattr.posteriors.combination import CombinationPosterior
from gpattr.posteriors.exact import ExactPosterior
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.posteriors.laplace import LaplacePosterior
from gpattr.posteriors.mixture import MixturePosterior
from gpattr.posteriors.multi_output import MultiOutputPosterior
from gpattr.posteriors.multi_task import MultiTaskPosterior
from gpattr.posteriors.sparse import SparsePosterior
from gpattr.posteriors.weight_space import WeightSpacePosterior

__all__ = [
    "TOLERANCE",
    "UNCERTAINTY",
    "AffinePosterior",
    "Attributions",
    "CombinationPosterior",
    "Components",
    "ExactPosterior",
    "FunctionSpacePosterior",
    "LaplacePosterior",
    "MixturePosterior",
    "MultiOutputPosterior",
    "MultiTaskPosterior",
    "Posterior",
    "SparsePosterior",
    "WeightSpacePosterior",
]
