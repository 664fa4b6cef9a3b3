"""gpattr: exact feature attributions of Gaussian processes, with their joint uncertainty.

Names are imported on first use (PEP 562), so that ``import gpattr`` is quick and pulls in nothing
that is not needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from gpattr import (
        adapters,
        bases,
        closed_forms,
        datasets,
        distributions,
        estimators,
        exceptions,
        kernels,
        means,
        operators,
        paper,
        plots,
        posteriors,
        quantities,
        report,
        sobol,
        special,
        tables,
        testing,
    )
    from gpattr._core.memory import memory_budget
    from gpattr.adapters import as_posterior, register_adapter
    from gpattr.estimators import (
        BayesianLinearRegressor,
        GPClassifier,
        GPRegressor,
        HilbertGPRegressor,
        MultiOutputGPRegressor,
        RandomFeatureGPRegressor,
        SparseGPRegressor,
    )
    from gpattr.explainer import Explainer, compare, explain
    from gpattr.explanation import (
        BaselineSensitivity,
        Comparison,
        Counterfactual,
        Dependence,
        Explanation,
        Importance,
        InteractionExplanation,
        MultiOutputExplanation,
        NextMeasurement,
    )
    from gpattr.integration import integrate
    from gpattr.operators import Baselines, Marginals
    from gpattr.rules import compare_rules
    from gpattr.sobol import Normal, SobolIndices, Uniform, sobol_indices

_MODULES = (
    "adapters",
    "bases",
    "closed_forms",
    "datasets",
    "distributions",
    "estimators",
    "exceptions",
    "kernels",
    "means",
    "operators",
    "paper",
    "plots",
    "posteriors",
    "quantities",
    "report",
    "sobol",
    "special",
    "tables",
    "testing",
)
_NAMES = {
    "BaselineSensitivity": "gpattr.explanation",
    "Baselines": "gpattr.operators",
    "BayesianLinearRegressor": "gpattr.estimators",
    "Comparison": "gpattr.explanation",
    "Counterfactual": "gpattr.explanation",
    "Dependence": "gpattr.explanation",
    "Explainer": "gpattr.explainer",
    "Explanation": "gpattr.explanation",
    "GPClassifier": "gpattr.estimators",
    "GPRegressor": "gpattr.estimators",
    "HilbertGPRegressor": "gpattr.estimators",
    "Importance": "gpattr.explanation",
    "InteractionExplanation": "gpattr.explanation",
    "Marginals": "gpattr.operators",
    "MultiOutputExplanation": "gpattr.explanation",
    "MultiOutputGPRegressor": "gpattr.estimators",
    "NextMeasurement": "gpattr.explanation",
    "Normal": "gpattr.sobol",
    "RandomFeatureGPRegressor": "gpattr.estimators",
    "SobolIndices": "gpattr.sobol",
    "SparseGPRegressor": "gpattr.estimators",
    "Uniform": "gpattr.sobol",
    "as_posterior": "gpattr.adapters",
    "compare": "gpattr.explainer",
    "compare_rules": "gpattr.rules",
    "explain": "gpattr.explainer",
    "integrate": "gpattr.integration",
    "memory_budget": "gpattr._core.memory",
    "register_adapter": "gpattr.adapters",
    "sobol_indices": "gpattr.sobol",
}
# Explanations from draws are Explanation, with a distribution gpattr.distributions.Draws.
_RENAMED = {"SampledExplanation": ("Explanation", {"since": "0.1", "removal": "0.2"})}

__all__ = [
    "BaselineSensitivity",
    "Baselines",
    "BayesianLinearRegressor",
    "Comparison",
    "Counterfactual",
    "Dependence",
    "Explainer",
    "Explanation",
    "GPClassifier",
    "GPRegressor",
    "HilbertGPRegressor",
    "Importance",
    "InteractionExplanation",
    "Marginals",
    "MultiOutputExplanation",
    "MultiOutputGPRegressor",
    "NextMeasurement",
    "Normal",
    "RandomFeatureGPRegressor",
    "SobolIndices",
    "SparseGPRegressor",
    "Uniform",
    "adapters",
    "as_posterior",
    "bases",
    "closed_forms",
    "compare",
    "compare_rules",
    "datasets",
    "distributions",
    "estimators",
    "exceptions",
    "explain",
    "integrate",
    "kernels",
    "means",
    "memory_budget",
    "operators",
    "paper",
    "plots",
    "posteriors",
    "quantities",
    "register_adapter",
    "report",
    "sobol",
    "sobol_indices",
    "special",
    "tables",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"gpattr.{name}")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    if name in _RENAMED:
        from gpattr._core.deprecation import Renamed

        new, versions = _RENAMED[name]
        Renamed(name, new, **versions).warn()
        return __getattr__(new)
    raise AttributeError(f"module 'gpattr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
