"""Hyperparameters that a model of another library has learned, and their priors there.

Adapters translate kernels without keeping the names of their parameters. Which hyperparameters of
the translation are free, and which of them a prior belongs to, is found out: a copy of the model
with a parameter changed is translated again, and what has changed with it is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpattr._core.array import to_numpy

CHANGE = 0.1  # of a logarithm, or of a raw parameter
MEAN = "mean"  # the name of a constant prior mean among the values
UNIT = 1.0  # a variance that a library's kernels do not have is exactly 1
CONTAINERS = ("regressor_", "best_estimator_", "base_estimator_")  # of scikit-learn
Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class Learned:
    """The names of hyperparameters that are ``free``, None if the library does not say.

    ``priors`` are (kind, parameters) by name: ("lognormal", mean, std) of the logarithm,
    ("gamma", shape, rate), arrays in the units of the translation. With ``fixed_mean`` a constant
    prior mean was not learned.
    """

    free: frozenset[str] | None = None
    priors: dict[str, tuple[str, Any, Any]] = field(default_factory=dict)
    fixed_mean: bool = False

    def is_free(self, name: str, value: np.ndarray) -> bool:
        """Return whether a hyperparameter with this value was learned."""
        if self.free is not None:
            return name in self.free
        return not (name.split("__")[-1] == "variance" and bool((value == UNIT).all()))


def learned(model: Any, values: Callable[[Any], Values]) -> Learned:
    """Return the learned hyperparameters of a model; ``values(model)`` has all of them by name."""
    if _is_torch(model):
        return _of_torch(model, values)
    if hasattr(model, "__dict__") and _gaussian_processes(model):
        return _of_sklearn(model, values)
    return Learned()


def _changed(before: Values, after: Values) -> frozenset[str]:
    return frozenset(
        name
        for name, value in before.items()
        if name in after and not np.allclose(value, after[name], rtol=1e-6, atol=0.0)
    )


def _of_sklearn(model: Any, values: Callable[[Any], Values]) -> Learned:
    """scikit-learn's kernels have hyperparameters, ``theta``, without the "fixed" ones."""
    other = _shallow(model)
    for process in _gaussian_processes(other):
        theta = process.kernel_.theta
        if len(theta):
            process.kernel_ = process.kernel_.clone_with_theta(theta + CHANGE)
    return Learned(_changed(values(model), values(other)))


def _gaussian_processes(model: Any) -> list[Any]:
    """Return the Gaussian processes of scikit-learn inside a model and its containers."""
    if hasattr(vars(model).get("kernel_"), "clone_with_theta"):
        return [model]
    return [process for inner in _inside(model) for process in _gaussian_processes(inner)]


def _inside(model: Any) -> Iterator[Any]:
    for name in CONTAINERS:
        if name in vars(model):
            yield getattr(model, name)
    yield from vars(model).get("estimators_", ())
    yield from (step for _, step in vars(model).get("steps", ())[-1:])


def _shallow(model: Any) -> Any:
    """Return a copy whose Gaussian processes are copies; data are shared."""
    result = copy(model)
    for name in CONTAINERS:
        if name in vars(model):
            setattr(result, name, _shallow(getattr(model, name)))
    if "estimators_" in vars(model):
        result.estimators_ = [_shallow(part) for part in model.estimators_]
    if vars(model).get("steps"):
        *first, (name, last) = model.steps
        result.steps = [*first, (name, _shallow(last))]
    return result


def _is_torch(model: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "gpytorch" for base in type(model).__mro__)


def _of_torch(model: Any, values: Callable[[Any], Values]) -> Learned:
    """Parameters of PyTorch are free where they have gradients; modules have named priors."""
    import torch

    before = values(model)
    other = deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            if parameter.requires_grad:
                parameter += CHANGE
    free = _changed(before, values(other))
    priors: dict[str, tuple[str, Any, Any]] = {}
    for position, (_, module, prior, closure, _) in enumerate(model.named_priors()):
        kind = _KINDS.get(type(prior).__name__)
        if kind is None or (kind is _normal and not bool((prior.loc > 0).all())):
            continue
        here = to_numpy(closure(module).detach()).ravel().astype(np.float64)
        other = deepcopy(model)
        _, twin, _, its_closure, setting = list(other.named_priors())[position]
        if setting is None:
            continue
        with torch.no_grad():
            setting(twin, its_closure(twin) * 1.1)
        for name in _changed(before, values(other)):
            value = before[name]
            if here.size in (1, value.size):
                shift = np.log(value) - np.log(np.broadcast_to(here, value.shape))
                priors[name] = kind(prior, shift)
    return Learned(free, priors, MEAN in before and MEAN not in free)


def _numbers(*parts: Any) -> tuple[np.ndarray, ...]:
    return tuple(to_numpy(part.detach()).ravel().astype(np.float64) for part in parts)


def _lognormal(prior: Any, shift: np.ndarray) -> tuple[str, Any, Any]:
    mean, std = _numbers(prior.loc, prior.scale)
    return "lognormal", mean + shift, std + 0.0 * shift


def _normal(prior: Any, shift: np.ndarray) -> tuple[str, Any, Any]:
    """The log-normal distribution with the same median and, to first order, the same spread."""
    mean, std = _numbers(prior.loc, prior.scale)
    return "lognormal", np.log(mean) + shift, std / mean + 0.0 * shift


def _gamma(prior: Any, shift: np.ndarray) -> tuple[str, Any, Any]:
    shape, rate = _numbers(prior.concentration, prior.rate)
    return "gamma", shape + 0.0 * shift, rate * np.exp(-shift)


_KINDS: dict[str, Callable[[Any, np.ndarray], tuple[str, Any, Any]]] = {
    "LogNormalPrior": _lognormal,
    "GammaPrior": _gamma,
    "NormalPrior": _normal,
}
