"""The table of adapters, by names of classes so that no library is imported needlessly."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from threading import RLock
from typing import Any

import numpy as np

from gpattr._core.arguments import a_function, instance, some_rows
from gpattr._core.validation import check_flag, positive_scalar
from gpattr.adapters.foreign import reading
from gpattr.exceptions import InvalidInputError
from gpattr.posteriors import Posterior

ENTRY_POINTS = "gpattr.adapters"


@dataclass(frozen=True)
class Adapted:
    """A posterior, with the foreign library's own predictions for comparison.

    ``predict(X)`` returns mean and variance of f, (n,) or (n, outputs) each. ``points`` (n, d) are
    rows where the two are compared. ``accuracy`` is the relative accuracy of the library's own
    arithmetic on a perfectly conditioned model. Points that are ``mixable`` are also compared
    between and beyond each other. ``joint(X)`` returns the covariance of f, (n, n), where the
    library has it for one output; it is compared too.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.adapters import Adapted
    >>> from gpattr.kernels import SquaredExponential
    >>> from gpattr.posteriors import ExactPosterior
    >>> X = np.random.default_rng(0).normal(size=(10, 2))
    >>> posterior = ExactPosterior(SquaredExponential(), X, X[:, 0], noise=0.1)
    >>> def predict(rows):
    ...     mean, std = posterior.predict(rows, return_std=True)
    ...     return mean, std**2
    >>> adapted = Adapted(posterior, predict, X)
    >>> adapted.mixable
    True
    """

    posterior: Posterior
    predict: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    points: np.ndarray
    accuracy: float = float(np.finfo(np.float64).eps)
    mixable: bool = True
    joint: Callable[[np.ndarray], np.ndarray] | None = None

    def __post_init__(self) -> None:
        instance(Posterior, "a gpattr posterior")("posterior", self.posterior)
        a_function("predict", self.predict)
        some_rows("points", self.points)
        positive_scalar("accuracy", self.accuracy)
        check_flag("mixable", self.mixable)
        if self.joint is not None:
            a_function("joint", self.joint)


Adapter = Callable[..., Adapted]

# "package.Class" -> module of this folder and its function. Subclasses are found by their bases.
BUILT_IN: dict[str, tuple[str, str]] = {
    "sklearn.GaussianProcessRegressor": ("scikit_learn.models", "regressor"),
    "sklearn.GaussianProcessClassifier": ("scikit_learn.models", "classifier"),
    "sklearn.BayesianRidge": ("scikit_learn.models", "linear"),
    "sklearn.ARDRegression": ("scikit_learn.models", "linear"),
    "botorch.SingleTaskGP": ("pytorch.botorch_models", "single_task"),
    "botorch.MixedSingleTaskGP": ("pytorch.botorch_models", "single_task"),
    "botorch.AdditiveMapSaasSingleTaskGP": ("pytorch.botorch_models", "single_task"),
    "botorch.MultiTaskGP": ("pytorch.botorch_tasks", "multi_task"),
    "botorch.SaasFullyBayesianMultiTaskGP": ("pytorch.botorch_tasks", "fully_bayesian_multi_task"),
    "botorch.KroneckerMultiTaskGP": ("pytorch.botorch_tasks", "kronecker"),
    "botorch.HeterogeneousMTGP": ("pytorch.botorch_tasks", "heterogeneous"),
    "botorch.HigherOrderGP": ("pytorch.botorch_tasks", "refused"),
    "botorch.LatentKroneckerGP": ("pytorch.botorch_tasks", "refused"),
    "botorch.PairwiseGP": ("pytorch.botorch_models", "pairwise"),
    "botorch.ModelListGP": ("pytorch.botorch_models", "model_list"),
    "botorch.SaasFullyBayesianSingleTaskGP": ("pytorch.botorch_models", "fully_bayesian"),
    "botorch.FullyBayesianSingleTaskGP": ("pytorch.botorch_models", "fully_bayesian"),
    "botorch.EnsembleMapSaasSingleTaskGP": ("pytorch.botorch_models", "fully_bayesian"),
    "botorch.SingleTaskVariationalGP": ("pytorch.botorch_models", "single_task_variational"),
    "gpytorch.ExactGP": ("pytorch.gpytorch_models", "exact"),
    "gpytorch.ApproximateGP": ("pytorch.gpytorch_variational", "variational"),
    "gpytorch.DeepGP": ("pytorch.gpytorch_deep", "deep"),
    "tinygp.GaussianProcess": ("jax_models.tinygp_models", "gaussian_process"),
    "tinygp.ConditionResult": ("jax_models.tinygp_models", "condition_result"),
    "gpjax.AbstractVariationalFamily": ("jax_models.gpjax_models", "unconditioned"),
    "gpjax.ConjugateModel": ("jax_models.gpjax_models", "model"),
    "gpjax.ExactPosterior": ("jax_models.gpjax_models", "exact"),
    "gpjax.SparsePosterior": ("jax_models.gpjax_models", "sparse"),
    "gpjax.CollapsedPosterior": ("jax_models.gpjax_models", "collapsed"),
    "gpflow.GPR": ("kriging.gpflow_models", "exact"),
    "gpflow.SGPR": ("kriging.gpflow_models", "collapsed"),
    "gpflow.SVGP": ("kriging.gpflow_models", "variational"),
    "gpflow.VGP": ("kriging.gpflow_models", "variational"),
    "baybe.Campaign": ("optimisers.baybe_models", "campaign"),
    "baybe.GaussianProcessSurrogate": ("optimisers.baybe_models", "surrogate"),
    "baybe.CompositeSurrogate": ("optimisers.baybe_models", "surrogate"),
    "bofire.BotorchStrategy": ("optimisers.bofire_models", "strategy"),
    "bofire.BotorchSurrogates": ("optimisers.bofire_models", "surrogates"),
    "bofire.BotorchSurrogate": ("optimisers.bofire_models", "surrogate"),
    "skopt.GaussianProcessRegressor": ("optimisers.skopt_models", "regressor"),
    "skopt.Optimizer": ("optimisers.skopt_models", "optimizer"),
    "scipy.OptimizeResult": ("optimisers.skopt_models", "result"),
    "ax.Client": ("optimisers.ax_models", "client"),
    "ax.AxClient": ("optimisers.ax_models", "client"),
    "ax.TorchAdapter": ("optimisers.ax_models", "adapter"),
    "ax.Adapter": ("optimisers.ax_models", "adapter"),
    "trieste.GPflowPredictor": ("optimisers.trieste_models", "wrapper"),
    "trieste.OptimizationResult": ("optimisers.trieste_models", "result"),
    "trieste.Record": ("optimisers.trieste_models", "record"),
    "trieste.AskTellOptimizer": ("optimisers.trieste_models", "ask_tell"),
    "trieste.AskTellOptimizerNoTraining": ("optimisers.trieste_models", "ask_tell"),
    "smt.KRG": ("kriging.smt_models", "kriging"),
    "smt.KPLS": ("kriging.smt_models", "kriging"),
    "smt.KPLSK": ("kriging.smt_models", "kriging"),
    "smt.GEKPLS": ("kriging.smt_models", "kriging"),
    "smt.SGP": ("kriging.smt_models", "sparse"),
    "openturns.GaussianProcessRegression": ("kriging.openturns_models", "algorithm"),
    "openturns.GaussianProcessRegressionResult": ("kriging.openturns_models", "regression"),
    "openturns.KrigingAlgorithm": ("kriging.openturns_models", "algorithm"),
    "openturns.KrigingResult": ("kriging.openturns_models", "kriging"),
    "pymc.Marginal": ("kriging.pymc_models", "marginal"),
    "pymc.MarginalApprox": ("kriging.pymc_models", "approximate"),
    "pymc.Latent": ("kriging.pymc_models", "latent"),
    "pymc.TP": ("kriging.pymc_models", "student"),
    "GPy.GPRegression": ("kriging.gpy_models", "exact"),
    "GPy.GPHeteroscedasticRegression": ("kriging.gpy_models", "exact"),
    "GPy.SparseGPRegression": ("kriging.gpy_models", "sparse"),
    "emukit.GPyModelWrapper": ("kriging.gpy_models", "wrapper"),
    "emukit.SimpleGaussianProcessModel": ("kriging.gpy_models", "simple"),
    "george.GP": ("kriging.george_models", "gaussian_process"),
    "sklearn.Pipeline": ("scikit_learn.pipelines", "pipeline"),
    "sklearn.TransformedTargetRegressor": ("scikit_learn.pipelines", "target"),
    "sklearn.BaseSearchCV": ("scikit_learn.pipelines", "search"),
}
# Packages whose models are read from attributes that are not all public: distribution and version.
TESTED = {
    "ax": ("ax-platform", "1.3"),
    "baybe": ("baybe", "0.15"),
    "bofire": ("bofire", "0.5"),
    "george": ("george", "0.4.4"),
    "GPy": ("GPy", "1.13"),
    "openturns": ("openturns", "1.27"),
    "pymc": ("pymc", "5.28"),
    "scipy": ("scikit-optimize", "0.10"),  # results of scikit-optimize are SciPy's
    "skopt": ("scikit-optimize", "0.10"),
    "smt": ("smt", "2.15"),
    "trieste": ("trieste", "4.6"),
}
REGISTERED: dict[str, Adapter] = {}


def register_adapter(name: str, adapter: Adapter) -> None:
    """Let `as_posterior`, and so `Explainer`, take the models of a class.

    A package announces its adapters by an entry point in the group ``gpattr.adapters``: a function
    without arguments that calls `register_adapter`.

    Parameters
    ----------
    name : str
        ``"package.Class"``, the class found in the package or any of its modules.
    adapter : function
        ``adapter(model, data=…)`` returns `gpattr.adapters.Adapted`.

    Examples
    --------
    >>> import gpattr
    >>> from gpattr.adapters import Adapted
    >>> def adapt(model, data=None):
    ...     return Adapted(model.posterior, model.predict, model.inputs)
    >>> gpattr.register_adapter("my_package.MyModel", adapt)
    """
    if not isinstance(name, str) or name.count(".") != 1:
        raise InvalidInputError(f'name: expected "package.Class", got {name!r}')
    if not callable(adapter):
        raise InvalidInputError(f"adapter: expected a function, got a {type(adapter).__name__}")
    REGISTERED[name] = adapter


def find_adapter(model: Any) -> Adapter | None:
    """Return the adapter for a model's class or the nearest of its bases; None if there is none."""
    names = [f"{base.__module__.split('.')[0]}.{base.__name__}" for base in type(model).__mro__]
    for name in names:
        if name in REGISTERED:
            return REGISTERED[name]
        if name in BUILT_IN:
            module, function = BUILT_IN[name]
            adapter = getattr(import_module(f"gpattr.adapters.{module}"), function)
            tested = TESTED.get(name.partition(".")[0])
            return adapter if tested is None else reading(*tested)(adapter)
    announced = _announced()
    return next((announced[name] for name in names if name in announced), None)


def _announced() -> dict[str, Adapter]:
    """Return the adapters of installed packages, after loading their entry points."""
    with _LOADING:  # otherwise another thread could miss adapters that are being registered
        for point in entry_points(group=ENTRY_POINTS):
            if point.value not in _LOADED:
                _LOADED.add(point.value)
                _load(point)
    return REGISTERED


def _load(point: EntryPoint) -> None:
    """Let a package register its adapters; one that fails to is named, and left out."""
    try:
        point.load()()
    except Exception as error:  # whatever another package raises
        package = point.dist.name if point.dist is not None else point.value
        warnings.warn(
            f"the adapters that {package} announces ({point.name}) cannot be used:"
            f" {type(error).__name__}: {error}; update or uninstall it",
            RuntimeWarning,
            stacklevel=2,
        )


_LOADED: set[str] = set()
_LOADING = RLock()  # a package's function may itself look for adapters
