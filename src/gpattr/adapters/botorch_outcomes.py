"""BoTorch's outcome transforms: predictions and posteriors in the user's units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpattr.adapters.devices import on_host
from gpattr.adapters.gpytorch_predictions import Moments, own_method
from gpattr.adapters.notes import with_note
from gpattr.exceptions import UnsupportedModelError
from gpattr.means import Constant
from gpattr.posteriors import CombinationPosterior, Posterior


def outcome_units(model: Any, outputs: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return shift and scale, (outputs,) each, of outcomes y = shift + scale·f, or None.

    None means that the outcomes are not affine in f.
    """
    import torch

    transform = getattr(model, "outcome_transform", None)
    if transform is None:
        return np.zeros(outputs), np.ones(outputs)
    if not getattr(transform, "_is_linear", False):
        return None
    like: Any = {"dtype": torch.float64, "device": next(model.parameters()).device}
    try:
        with torch.no_grad():
            zero, one = (
                transform.untransform(value * torch.ones(1, 1, **like))[0] for value in (0.0, 1.0)
            )
    except ValueError:  # it depends on the row
        raise UnsupportedModelError(
            f"outcome_transform: {type(transform).__name__} is not supported"
        ) from None
    shift, scale = (np.broadcast_to(on_host(part).reshape(-1), (outputs,)) for part in (zero, one))
    return shift, scale - shift


def in_units(
    posterior: Posterior, outcomes: tuple[np.ndarray, np.ndarray] | None, i: int
) -> Posterior:
    """Return the posterior in the units of the i-th outcome.

    Where these are not affine in f, it is on the latent scale, with a note.
    """
    if outcomes is None:
        return with_note(posterior, "of the latent function: the outcome transform is not affine")
    shift, scale = float(outcomes[0][i]), float(outcomes[1][i])
    return (
        posterior
        if (shift, scale) == (0.0, 1.0)
        else CombinationPosterior([posterior], [scale], mean=Constant(shift))
    )


def untransformed(
    copy: Any, rows: Any, moments: Callable[[Any, Any], Moments]
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances of the outcomes, (..., n, outputs), at transformed rows.

    They are those of ``copy.posterior``. ``moments`` are of the latent function, (n,), (outputs,
    n), or (members, n) of a mixture whose members share one output.
    """
    import torch
    from botorch.posteriors import GPyTorchPosterior
    from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
    from linear_operator.operators import DiagLinearOperator

    if type(copy).posterior.__module__.split(".")[0] != "botorch":
        raise own_method(copy, "posterior")
    mean, var = moments(copy, rows)
    several = mean.ndim == 2 and rows.ndim == 2
    with torch.no_grad():
        # Only variances are compared: the result at one point does not depend on the others.
        if several:
            latent: Any = MultitaskMultivariateNormal(
                mean.T, DiagLinearOperator(var.reshape(-1)), interleaved=False
            )
        else:
            latent = MultivariateNormal(mean, DiagLinearOperator(var))
        result = GPyTorchPosterior(latent)
        if hasattr(copy, "outcome_transform"):
            result = copy.outcome_transform.untransform_posterior(result, X=rows)
        mean = result.mean
        if not isinstance(result, GPyTorchPosterior):
            return on_host(mean), on_host(result.variance)
        # The library's own `variance` warns about small ones and rounds them up.
        var = result.distribution.lazy_covariance_matrix.diagonal(dim1=-1, dim2=-2)
        var = (
            var.reshape(mean.mT.shape).mT
            if several and not result.distribution._interleaved
            else var.reshape(mean.shape)
        )
    return on_host(mean), on_host(var)
