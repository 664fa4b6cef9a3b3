"""Posterior distributions: frozen objects that predict and that operators can be applied to.

Each is imported when it is first needed (PEP 562): one model needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpattr.posteriors.affine import AffinePosterior
    from gpattr.posteriors.base import Posterior
    from gpattr.posteriors.bound import TOLERANCE, UNCERTAINTY, Attributions, Bound, Evaluation
    from gpattr.posteriors.combination import CombinationPosterior
    from gpattr.posteriors.deep import DeepPosterior
    from gpattr.posteriors.encoded import EncodedPosterior
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

_MODULES = {
    "AffinePosterior": "affine",
    "Attributions": "bound",
    "Bound": "bound",
    "CombinationPosterior": "combination",
    "DeepPosterior": "deep",
    "EncodedPosterior": "encoded",
    "Evaluation": "bound",
    "ExactPosterior": "exact",
    "ExpectationPropagationPosterior": "expectation_propagation",
    "FunctionSpacePosterior": "function_space",
    "LaplacePosterior": "laplace",
    "MixturePosterior": "mixture",
    "MultiOutputPosterior": "multi_output",
    "MultiTaskPosterior": "multi_task",
    "Posterior": "base",
    "SparsePosterior": "sparse",
    "TOLERANCE": "bound",
    "UNCERTAINTY": "bound",
    "WeightSpacePosterior": "weight_space",
    "WrappedOutputs": "wrapped_outputs",
}

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


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'gpattr.posteriors' has no attribute {name!r}")
    found = getattr(import_module(f"gpattr.posteriors.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
