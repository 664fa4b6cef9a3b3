"""BoTorch's model of preferences, `PairwiseGP`: the latent utility behind comparisons.

Laplace's approximation of f(X) is N(f̂, K − K A K), with A = (I + CK)⁻¹C and C the negative Hessian
of the log-likelihood at the mode f̂; elsewhere f follows from the prior.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from gpattr.adapters.botorch_inputs import inputs_of
from gpattr.adapters.devices import on_host
from gpattr.adapters.gpytorch_kernels import called, mean_of
from gpattr.adapters.gpytorch_models import in_double
from gpattr.adapters.gpytorch_predictions import DoubleByDefault, dense, evaluated
from gpattr.adapters.notes import with_note
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.posteriors import SparsePosterior

NOTE = "of the utility behind comparisons"


def pairwise(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the utility of a `PairwiseGP`."""
    import torch

    if model._has_no_data() or model.utility is None:
        raise InvalidInputError("model: expected a PairwiseGP with comparisons, got one without")
    if len(model.batch_shape):
        raise UnsupportedModelError(
            f"model: batch shape {tuple(model.batch_shape)} is not supported"
        )
    copy = _parts(model)
    raw, mode, C = (
        on_host(part).astype(np.float64)
        for part in (model.datapoints, model.utility, model.likelihood_hess)
    )
    with torch.no_grad(), DoubleByDefault():
        seen = on_host(copy.transform(torch.tensor(raw, device=model.datapoints.device)))
    inputs = inputs_of(copy, seen, raw=raw)
    d = seen.shape[1]
    kernel, mean = called(copy.covar_module, d), mean_of(copy.mean_module, d)
    K = np.asarray(kernel(seen, seen))
    # As the library stabilises it: what was added to K is part of the model.
    jitter = max(float((on_host(model.covar_chol) ** 2).sum(axis=1)[0] - K[0, 0]), 0.0)
    jitter = 0.0 if jitter < 1e-12 * K[0, 0] else jitter
    own = on_host(model.covar).astype(np.float64)
    A = np.linalg.solve(np.eye(len(K)) + C @ own, C)
    A = 0.5 * (A + A.T)
    stable = K + jitter * np.eye(len(K))
    S = stable - stable @ A @ stable
    posterior = SparsePosterior(
        inputs.kernel(kernel),
        inputs.inside(seen),
        mode,
        0.5 * (S + S.T),
        mean=inputs.mean(mean),
        jitter=jitter,
        reference_points=_reference(inputs.inside(seen)),
    )
    result = with_note(inputs.around(posterior), NOTE)

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with torch.no_grad(), DoubleByDefault():
            rows = copy.transform(inputs.tensor(points, copy))
            centre = torch.tensor(seen, device=rows.device)
            k = on_host(dense(copy.covar_module(rows, centre)))
            prior = on_host(dense(copy.covar_module(rows, rows)).diagonal())
            at, over = (on_host(copy.mean_module(part)) for part in (centre, rows))
        weights = np.linalg.solve(stable, mode - at)
        return over + k @ weights, prior - ((k @ A) * k).sum(axis=1)

    return Adapted(in_double(result, model), predict, inputs.points, mixable=inputs.mixable)


def _parts(model: Any) -> Any:
    """Return copies of what a model is made of.

    A copy of all of it would take away, for a moment, what the model has computed from its data.
    """
    import torch

    held: Any = torch.nn.Module()
    for name in ("covar_module", "mean_module", "input_transform"):
        part = getattr(model, name, None)
        setattr(held, name, None if part is None else deepcopy(part).double().eval())
    held.transform = lambda rows: (
        rows if held.input_transform is None else held.input_transform(rows)
    )
    return evaluated(held)


def _reference(rows: np.ndarray) -> dict[str, np.ndarray]:
    return {"mean": rows.mean(axis=0), "median": np.median(rows, axis=0)}
