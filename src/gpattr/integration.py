"""Integration over the hyperparameters of any fitted exact Gaussian process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpattr._core.array import namespace, to_numpy
from gpattr.adapters.adapt import adapt, as_posterior
from gpattr.adapters.learned import MEAN, Learned, Values, learned
from gpattr.estimators.evidence.laplace import LaplaceEvidence
from gpattr.estimators.evidence.marginal_likelihood import NOISE, Objective
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.integration import affordable_points
from gpattr.estimators.priors import LOG_ODDS_SPREAD, Term, given_terms, prior_terms, redundant
from gpattr.estimators.search_space import Units, is_fixed, std_of
from gpattr.estimators.training import (
    FAMILIES,
    Training,
    conditioned,
    in_family,
)
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import Kernel, Matern12, Radial
from gpattr.means import Constant, Expansion, Mean, Polynomial
from gpattr.posteriors import (
    CombinationPosterior,
    ExactPosterior,
    MixturePosterior,
    MultiOutputPosterior,
    Posterior,
)
from gpattr.posteriors.classification import ClassificationPosterior
from gpattr.posteriors.wrapper import WrapperPosterior

LOG_ODDS = 4.0  # a typical variance of log odds
REACH = 6.0  # prior standard deviations to the bounds of a search
FARTHEST = 60.0  # logarithms to these bounds where a prior says nothing


def integrate(
    model: Any,
    families: Sequence[str | type[Radial]] | str | None = None,
    priors: Mapping[str, Any] | None = None,
    *,
    data: Any = None,
) -> Posterior:
    """Return the posterior of a fitted model with its hyperparameters integrated out.

    It is a mixture of about 30 models with the kernel structure of this one, weighted by their
    evidence, in the units of the data; `Explainer` takes it. Intervals then include that length-
    scales, variances and noise are not known, which with few rows is most of the uncertainty.

    Parameters
    ----------
    model : fitted model
        An exact Gaussian process that `Explainer` takes, of gpattr or another library, also inside
        of pipelines and scalers; a classifier by Laplace's approximation; several independent
        outputs.
    families : list of names or classes, or "all", optional
        Kernels to average over in place of kernels of these families in the model's kernel:
        "SquaredExponential", "Matern52", "Matern32", or "all" of them.
    priors : dict, optional
        ``{name: (median, spread)}`` in the units of the model's kernel, where the spread is the
        standard deviation of the logarithm; names as in ``kernel.get_params()``, and
        ``"noise_variance"``. By default the log-normal, gamma and normal ones that a model of
        GPyTorch or BoTorch carries, and otherwise the priors of `GPRegressor`.
    data : (X, y), optional
        The training data, for libraries that do not keep them.

    Hyperparameters that are fixed in gpattr, scikit-learn, GPyTorch or BoTorch stay as they are.
    Bounds and constraints of their searches are not priors, and are not kept.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> y = X[:, 0] + np.sin(X[:, 1]) + 0.1 * np.random.default_rng(1).normal(size=20)
    >>> model = GaussianProcessRegressor(1.0 * RBF([1.0, 1.0]) + WhiteKernel(0.1)).fit(X, y)
    >>> type(gpattr.integrate(model)).__name__
    'MixturePosterior'
    """
    posterior = as_posterior(model, data=data)
    read = partial(_values_of, data=data)
    own = model is posterior or getattr(model, "posterior_", None) is posterior
    facts = _own(model, posterior, read) if own else learned(model, read)
    return _integrated(posterior, _families(families), priors, facts)


def _own(model: Any, posterior: Posterior, values: Callable[[Any], Values]) -> Learned:
    """Return the learned values of a model of gpattr: all that its user has not given or fixed."""
    bounds, noise = getattr(model, "bounds", None), getattr(model, "noise_variance", None)
    known = {NOISE} if model is not posterior and noise is not None else set()
    free = {name for name in values(model) if not is_fixed(name, bounds)}
    return Learned(frozenset(free - known))


def _integrated(
    posterior: Posterior, families: dict[str, Any] | None, priors: Any, facts: Learned
) -> Posterior:
    """Return the integrated posterior, with all that stands around it."""
    again = partial(_integrated, families=families, priors=priors, facts=facts)
    if isinstance(posterior, MultiOutputPosterior):
        if not posterior.independent or posterior.mixed:
            raise UnsupportedModelError(
                "model: hyperparameters of outputs that depend on each other are not integrated;"
                " only those of independent outputs are"
            )
        return MultiOutputPosterior(
            {name: again(output) for name, output in posterior.outputs.items()}
        )
    if len(posterior.components) > 1:
        raise UnsupportedModelError(
            f"model: it is a mixture of {len(posterior.components)} models already"
        )
    if isinstance(posterior, WrapperPosterior):
        result: Posterior = posterior.around(again(posterior.posterior))
    elif isinstance(posterior, CombinationPosterior) and len(posterior.posteriors) == 1:
        scaled = [
            (weight, CombinationPosterior([part], posterior.coefficients, mean=posterior.mean))
            for weight, part in again(posterior.posteriors[0]).components
        ]
        weights, parts = zip(*scaled, strict=True)
        result = MixturePosterior(parts, weights)
    elif type(posterior) is ExactPosterior:
        result = _mixture(*_of_targets(posterior, facts), families, priors, facts)
    elif isinstance(posterior, ClassificationPosterior):
        result = _mixture(*_of_labels(posterior, facts), families, priors, facts)
    else:
        raise UnsupportedModelError(
            f"model: hyperparameters of a {type(posterior).__name__} are not integrated; only those"
            " of exact regression and of classification are"
        )
    return posterior.described(result)


def _mixture(
    training: Training,
    condition: Any,
    families: dict[str, Any] | None,
    priors: Any,
    facts: Learned,
) -> Posterior:
    kernel, X = training.kernel, training.objective.X
    start = training.starts[0]
    terms = prior_terms(kernel, X, training.variance, training.spread)
    terms |= {name: _foreign(*prior) for name, prior in facts.priors.items() if name in terms}
    terms |= given_terms(priors, start)
    if not start:
        raise InvalidInputError(
            "model: expected some hyperparameters that are not fixed, to integrate over, got none"
        )
    if families is not None and in_family(kernel, Matern12) == kernel:
        raise InvalidInputError(
            f"families: expected None for a kernel without any of {', '.join(FAMILIES)}, got"
            f" {list(families)}"
        )
    ends = {name: np.minimum(REACH * terms[name].std, FARTHEST) for name in start}
    bounds = {
        name: np.stack(
            [
                np.minimum(np.exp(terms[name].mean - ends[name]), value),
                np.maximum(np.exp(terms[name].mean + ends[name]), value),
            ]
        )
        for name, value in start.items()
    }
    training = replace(training, bounds=bounds)
    chosen = {type(kernel).__name__: None} if families is None else families
    found = training.integrated(chosen, condition, affordable_points(len(X)), priors=terms)
    return found.posterior


def _of_targets(posterior: ExactPosterior, facts: Learned) -> tuple[Training, Any]:
    """Return the training problem of a regression, and the function that conditions it."""
    kernel, X, y = posterior.kernel, posterior.inputs, posterior.y
    mean: Mean = posterior.prior_mean
    if isinstance(mean, Constant) and not facts.fixed_mean:
        spread = float(np.sqrt(((to_numpy(y) - mean.value) ** 2).mean())) or 1.0
        mean = Polynomial([mean.value], np.zeros((1, X.shape[1])), covariance=[[spread**2]])
    values = hyperparameters(posterior)
    start = _free(kernel, values, facts)
    noise, known = None, posterior.noise
    if NOISE in start:
        noise, known = float(values[NOISE][0]), None
    targets = y - mean(X)
    trend = None
    if isinstance(mean, Expansion) and mean.covariance is not None:
        trend = mean.centred(X).basis(X), namespace(X).asarray(mean.precision())
    objective = Objective(X, targets, known, False, trend)
    variance = float(std_of(targets[:, None])[0]) ** 2 or 1.0
    units = Units(np.ones(()), 1.0)
    training = Training(units, objective, kernel, noise, known, {}, [start], variance)
    return training, lambda kernel, noise: conditioned(kernel, X, y, noise, mean)


def _of_labels(posterior: ClassificationPosterior, facts: Learned) -> tuple[Training, Any]:
    """Return the training problem of a classification, and the function that conditions it."""
    kernel, X, y, mean = posterior.kernel, posterior.inputs, posterior.y, posterior.mean
    start = _free(kernel, hyperparameters(posterior), facts)
    objective = LaplaceEvidence(X, y, mean(X))
    units = Units(np.ones(()), 1.0)
    training = Training(
        units, objective, kernel, None, None, {}, [start], LOG_ODDS, LOG_ODDS_SPREAD
    )
    return training, lambda kernel, _: posterior.given(kernel)


def _free(kernel: Kernel, values: Values, facts: Learned) -> Values:
    """Return the hyperparameters that are integrated over."""
    free = {name: value for name, value in values.items() if facts.is_free(name, value)}
    superfluous = redundant(kernel, free)
    return {name: value for name, value in free.items() if name not in superfluous}


def hyperparameters(posterior: Any) -> Values:
    """Return the hyperparameters of a posterior by name, with the noise if all rows share one."""
    values = trainable(posterior.kernel)
    noise = posterior.noise_variance if isinstance(posterior, ExactPosterior) else None
    return values | ({NOISE: np.array([noise])} if noise else {})


def _values_of(model: Any, data: Any) -> Values:
    """Return the hyperparameters of the posteriors inside of a fitted model, by name."""
    found: Values = {}

    def visit(posterior: Posterior) -> None:
        if isinstance(posterior, (ExactPosterior, ClassificationPosterior)):
            for name, value in hyperparameters(posterior).items():
                found.setdefault(name, value)
            if isinstance(posterior, ExactPosterior) and isinstance(posterior.mean, Constant):
                found.setdefault(MEAN, np.array([posterior.mean.value]))
        for part in posterior.inner or (
            tuple(posterior.outputs.values()) if posterior.several_outputs else ()
        ):
            visit(part)

    visit(adapt(model, data=data).posterior)
    return {name: to_numpy(value) for name, value in found.items()}


def _foreign(kind: str, first: Any, second: Any) -> Term:
    """Return a prior that a model of another library carries."""
    if kind == "gamma":
        return Term.of_gamma(np.asarray(first), np.asarray(second))
    return Term(np.asarray(first), np.asarray(second))


def _families(families: Any) -> dict[str, Any] | None:
    if families is None:
        return None
    if isinstance(families, str) and families == "all":
        return dict(FAMILIES)
    listed = [families] if isinstance(families, (str, type)) else families
    try:
        names = [part if isinstance(part, str) else part.__name__ for part in listed]
    except (TypeError, AttributeError):
        names = [repr(families)]
    unknown = [name for name in names if name not in FAMILIES]
    if unknown or not names:
        raise InvalidInputError(
            f"families: expected some of {', '.join(FAMILIES)}, or 'all', got {families!r}"
        )
    return {name: FAMILIES[name] for name in dict.fromkeys(names)}
