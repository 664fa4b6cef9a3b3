"""Posterior distributions: frozen objects that predict and that operators can be applied to."""

from gpattr.posteriors.affine import AffinePosterior
from gpattr.posteriors.attributions import Attributions
from gpattr.posteriors.base import Posterior
from gpattr.posteriors.bound import Bound
from gpattr.posteriors.combination import CombinationPosterior
from gpattr.posteriors.deep import DeepPosterior
from gpattr.posteriors.encoded import EncodedPosterior
from gpattr.posteriors.evaluation import TOLERANCE, UNCERTAINTY, Evaluation
from gpattr.posteriors.exact import ExactPosterior
from gpattr.posteriors.expectation_propagation import ExpectationPropagationPosterior
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.posteriors.laplace import LaplacePosterior
from gpattr.posteriors.mixture import MixturePosterior
from gpattr.posteriors.multi_output import MultiOutputPosterior
from gpattr.posteriors.multi_task import MultiTaskPosterior
from gpattr.posteriors.sparse import SparsePosterior
from gpattr.posteriors.weight_space import WeightSpacePosterior
from gpattr.posteriors.wrapped_outputs import WrappedOutputs

__all__ = [
    "TOLERANCE",
    "UNCERTAINTY",
    "AffinePosterior",
    "Attributions",
    "Bound",
    "CombinationPosterior",
    "DeepPosterior",
    "EncodedPosterior",
    "Evaluation",
    "ExactPosterior",
    "ExpectationPropagationPosterior",
    "FunctionSpacePosterior",
    "LaplacePosterior",
    "MixturePosterior",
    "MultiOutputPosterior",
    "MultiTaskPosterior",
    "Posterior",
    "SparsePosterior",
    "WeightSpacePosterior",
    "WrappedOutputs",
]
