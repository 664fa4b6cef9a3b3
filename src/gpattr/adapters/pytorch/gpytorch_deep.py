"""Deep Gaussian processes of GPyTorch: `DeepGP`, whose forward stacks `DeepGPLayer`s.

The forward of a `DeepGP` is the user's code. A copy of the model runs it with layers that record
what they are given, so that the order of layers is the one in which forward calls them, and inputs
other than what the layer below returned (skip connections) are noticed.

A copy's own predictions come from the same run: its layers give means and variances by their own
forward, and hidden layers h = m + √v z with chosen standard normals z in the place of random ones.
Ours with the same normals are a control variate, so that the comparison does not depend on how many
they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gpytorch import Module
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.models import ApproximateGP
from gpytorch.models.deep_gps import DeepGP, DeepGPLayer
from linear_operator.operators import DiagLinearOperator
from torch import Tensor

from gpattr._core.randomness import RandomLike
from gpattr.adapters.foreign import on_host
from gpattr.adapters.pytorch.gpytorch_models import copy_of, in_double
from gpattr.adapters.pytorch.gpytorch_variational import check_layer, units_of
from gpattr.adapters.pytorch.predictions import (
    DoubleByDefault,
    require_library_method,
    strategy_moments,
)
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.posteriors import DeepPosterior
from gpattr.posteriors.expected_layers import propagated

PAIRS = 8  # of standard normals with which predictions are compared


def deep(model: Any, data: Any = None, draws: int = 1000, random_state: RandomLike = 0) -> Adapted:
    """Return the posterior of a `DeepGP`.

    ``draws`` and ``random_state`` are as for `DeepPosterior`; the mean and the median of the inputs
    in ``data`` can then serve as baselines.
    """
    _check_kind(model)
    named = _layers(model)
    for name, layer in named.items():
        check_layer(layer.variational_strategy, f"layer {name!r}")
    _refuse_untrained(named)
    copy = copy_of(model).cpu()  # draws of hidden layers are computed on the host
    copies = _layers(copy)
    for name, layer in copies.items():
        layer.variational_strategy._jitter_val = float(named[name].variational_strategy.jitter_val)
        _recording(layer)
    first = next(iter(copies.values())).variational_strategy.inducing_points
    points = on_host(first).reshape(-1, first.shape[-1])
    order = _order(copy, copies, points)
    layers = [
        units_of(copies[name], copies[name].variational_strategy, f"layer {name!r}")
        for name in order
    ]
    if data is not None and not isinstance(data, tuple) and not hasattr(data, "X"):
        raise InvalidInputError("data: expected (X, y), or a data set with X and y, got one array")
    if data is not None:
        points = np.asarray(data[0] if isinstance(data, tuple) else data.X, dtype=np.float64)
    known = (
        {} if data is None else {"mean": points.mean(axis=0), "median": np.median(points, axis=0)}
    )
    posterior = DeepPosterior(
        layers, draws=draws, random_state=random_state, reference_points=known
    )
    predict = _predictor(copy, copies, posterior)
    return Adapted(in_double(posterior, model), predict, points)


def _check_kind(model: Any) -> None:
    kinds = [f"{base.__module__.split('.')[0]}.{base.__name__}" for base in type(model).__mro__]
    if "gpytorch.DSPP" in kinds:
        raise UnsupportedModelError(
            "model: a deep sigma point process (DSPP) is a fixed mixture, not a deep Gaussian"
            " process, and is not supported"
        )
    require_library_method(model, DeepGP, "__call__")


def _layers(model: Any) -> dict[str, Any]:
    """Return the Gaussian processes inside a model by name."""
    found = {
        name: module for name, module in model.named_modules() if isinstance(module, ApproximateGP)
    }
    if not found:
        raise UnsupportedModelError(
            f"model: expected a DeepGP with layers, got a {type(model).__name__} without"
            " DeepGPLayers"
        )
    for name, layer in found.items():
        if not isinstance(layer, DeepGPLayer) or "DSPPLayer" in [
            base.__name__ for base in type(layer).__mro__
        ]:
            raise UnsupportedModelError(
                f"layer {name!r}: expected a DeepGPLayer, got a {type(layer).__name__}"
            )
    return found


def _refuse_untrained(layers: dict[str, Any]) -> None:
    """Refuse a model whose every whitened q(u) still is the prior, N(·, I)."""
    for layer in layers.values():
        strategy = layer.variational_strategy
        if type(strategy).__name__ != "VariationalStrategy":
            return
        S = strategy._variational_distribution().covariance_matrix
        if not torch.equal(S, torch.eye(S.shape[-1], dtype=S.dtype, device=S.device).expand_as(S)):
            return
    raise InvalidInputError(
        "model: expected a trained DeepGP, got an untrained one: q(u) of every layer is still its"
        " prior"
    )


class RecordingLayer(DeepGPLayer):
    """A layer that answers with moments in float64 and records its inputs."""

    def __call__(self, inputs: Any, are_samples: bool = False, **kwargs: Any) -> Any:
        return vars(self)["_run"].answer(self, inputs)


def _recording(layer: Any) -> None:
    """Make a layer of our own copy a recording one, also where its class has its own __call__."""
    kind: Any = type(layer)
    about = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    layer.__class__ = type(kind)(kind.__name__, (kind, RecordingLayer), about)


class Run:
    """One run of a model's forward at rows x (n, d), with standard normals by layer, (N, units)."""

    def __init__(self, names: dict[int, str], x: Tensor, normals: Callable[[int, int], Tensor]):
        self.names, self.x, self.normals = names, x, normals
        self.order: list[str] = []
        self.returned: Any = None
        self.hidden: Tensor | None = None  # samples (N, n, D)
        self.mean: Tensor | None = None
        self.variance: Tensor | None = None

    def answer(self, layer: Any, inputs: Any) -> Any:
        """Return a layer's output for its inputs, if these are x or the last layer's output."""
        name = self.names[id(layer)]
        if name in self.order:
            raise UnsupportedModelError(
                f"layer {name!r}: it is called twice, which is not supported"
            )
        if self.returned is None:
            if not isinstance(inputs, Tensor) or not (
                inputs.shape == self.x.shape and torch.equal(inputs, self.x)
            ):
                raise UnsupportedModelError(
                    f"layer {name!r}: expected the inputs of the model in its first layer; inputs"
                    " that were changed before are not supported"
                )
            rows = self.x[None]  # (1, n, d)
        elif inputs is not self.returned:
            raise UnsupportedModelError(
                f"layer {name!r}: expected the outputs of layer {self.order[-1]!r} and nothing"
                " else; skip connections and changed outputs are not supported"
            )
        else:
            assert self.hidden is not None
            rows = self.hidden
        mean, variance = strategy_moments(
            layer.variational_strategy, rows.reshape(-1, rows.shape[-1])
        )
        self.order.append(name)
        single = mean.ndim == 1
        shape = (-1, *rows.shape[:2])
        mean, variance = (part.reshape(shape).permute(1, 2, 0) for part in (mean, variance))
        z = self.normals(len(self.order) - 1, mean.shape[2])  # (N, D)
        self.mean, self.variance = mean, variance
        self.hidden = mean + variance.clamp_min(0.0).sqrt() * z[:, None, :]
        spread = variance.clamp_min(1e-30)
        if single:
            self.returned = MultivariateNormal(mean[..., 0], DiagLinearOperator(spread[..., 0]))
        else:
            flat = spread.reshape(*spread.shape[:-2], -1)
            self.returned = MultitaskMultivariateNormal(mean, DiagLinearOperator(flat))
        return self.returned


def _run(
    copy: Any, copies: dict[str, Any], x: np.ndarray, normals: Callable[[int, int], Tensor]
) -> Run:
    """Run the forward of a copy with recording layers."""
    device = next(copy.parameters()).device
    rows = torch.tensor(x, device=device)
    run = Run({id(layer): name for name, layer in copies.items()}, rows, normals)
    for layer in copies.values():
        vars(layer)["_run"] = run
    with torch.no_grad(), DoubleByDefault():
        output = Module.__call__(copy, rows)
    if output is not run.returned:
        raise UnsupportedModelError(
            "model: expected a forward that returns what its last layer gives, got a"
            f" {type(output).__name__} of its own"
        )
    return run


def _order(copy: Any, copies: dict[str, Any], points: np.ndarray) -> list[str]:
    """Return the names of the layers in the order in which forward calls them."""
    order = _run(copy, copies, points[:2], lambda layer, units: torch.zeros(1, units)).order
    unused = [name for name in copies if name not in order]
    if unused:
        raise UnsupportedModelError(f"layer {unused[0]!r}: the model's forward does not call it")
    return order


def _predictor(
    copy: Any, copies: dict[str, Any], posterior: DeepPosterior
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return a function that gives the predictive mean and variance of a copy at points, (n,)."""
    *hidden, (last,) = posterior.layers
    widths = np.cumsum([0, *map(len, hidden)])
    half = np.random.default_rng(0).standard_normal((PAIRS, int(widths[-1])))
    z = np.concatenate([half, -half])

    def normals(layer: int, units: int) -> Tensor:
        if layer == len(hidden):
            return torch.zeros(1, units)
        return torch.tensor(z[:, widths[layer] : widths[layer + 1]])

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        run = _run(copy, copies, points, normals)
        assert run.mean is not None
        assert run.variance is not None
        mean, variance = (on_host(part)[..., 0].T for part in (run.mean, run.variance))  # (n, N)
        h, _ = propagated(hidden, points, z)
        own, std = last.moments(h.reshape(-1, h.shape[2]), return_std=True)
        own, own_variance = own.reshape(mean.shape), (std**2).reshape(mean.shape)
        whole, whole_std = posterior.moments(points, return_std=True)
        centre = whole + (mean - own).mean(axis=1)
        squares = (variance + mean**2 - own_variance - own**2).mean(axis=1)
        return centre, whole_std**2 + squares - (centre**2 - whole**2)

    return predict
