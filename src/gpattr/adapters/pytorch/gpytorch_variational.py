"""Variational models of GPyTorch: one latent function, several tasks, and decoupled means.

A strategy says how q(u) and the prior give the function: whitened by a Cholesky factor or by the
symmetric root of k(Z, Z), or not at all; tasks are a batch of functions or mixtures of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpattr._core.array import to_numpy
from gpattr.adapters.foreign import beside, on_host
from gpattr.adapters.pytorch.botorch_inputs import ModelInputs
from gpattr.adapters.pytorch.gpytorch_models import copy_of, in_double, predictor
from gpattr.adapters.pytorch.kernels import called, mean_of, number
from gpattr.adapters.pytorch.predictions import variational_moments
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.posteriors import MultiOutputPosterior, Posterior, SparsePosterior
from gpattr.posteriors.function_space import FunctionSpacePosterior

WHITENED = ("VariationalStrategy", "LargeBatchVariationalStrategy")
SINGLE = (*WHITENED, "UnwhitenedVariationalStrategy", "CiqVariationalStrategy")
TASKS = (
    "IndependentMultitaskVariationalStrategy",
    "MultitaskVariationalStrategy",
    "LMCVariationalStrategy",
)
ORTHOGONAL = "OrthogonallyDecoupledVariationalStrategy"
GRID = ": it interpolates between the points of a grid"
REASONS = {
    "NNVariationalStrategy": ": it predicts every row from inducing points of its own, so that its"
    " predictions are not those of one function",
    "BatchDecoupledVariationalStrategy": ": its mean and its variance have kernels of their own",
    "GridInterpolationVariationalStrategy": GRID,
    "AdditiveGridInterpolationVariationalStrategy": GRID,
}


def variational(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the latent function of an `ApproximateGP`; of tasks, one for each."""
    copy = copy_of(model)
    posterior = latent(copy, model)
    points = number(innermost(copy.variational_strategy).inducing_points, 2, None)
    return Adapted(in_double(posterior, model), predictor(copy, variational_moments), points)


def latent(copy: Any, model: Any, inputs: ModelInputs | None = None) -> Posterior:
    """Return the posterior of a copy of a model, in the units of ``inputs`` or in its own."""
    strategy = copy.variational_strategy
    # A hundred times larger in float32, so taken from the original.
    for own, original in zip(
        strategies(strategy), strategies(model.variational_strategy), strict=True
    ):
        if hasattr(own, "_jitter_val"):
            own._jitter_val = float(original.jitter_val)
    for part in strategies(strategy):
        _check(part)
    name = type(strategy).__name__
    if name not in TASKS:
        batch = tuple(_q(strategy)[0].shape[:-1])
        if not batch:
            return _member(copy, strategy, None, inputs)
        return MultiOutputPosterior(_members(copy, strategy, batch, inputs))
    base = strategy.base_variational_strategy
    batch = tuple(_q(base)[0].shape[:-1])
    if not batch:
        batch = (1,)
        parts = [_member(copy, base, None, inputs)]
    else:
        parts = _members(copy, base, batch, inputs)
    if name == "LMCVariationalStrategy":
        return MultiOutputPosterior.of_latents(parts, on_host(strategy.lmc_coefficients).T)
    if len(parts) == 1:
        parts = parts * int(strategy.num_tasks)
    return MultiOutputPosterior(parts)


def strategies(strategy: Any) -> list[Any]:
    """Return a strategy and the strategies inside of it."""
    found = [strategy]
    for name in ("base_variational_strategy", "model"):
        inner = getattr(found[-1], name, None)
        if inner is not None and hasattr(inner, "variational_params_initialized"):
            found.append(inner)
    return found


def innermost(strategy: Any) -> Any:
    """Return the strategy that holds the inducing points of q(u)."""
    return strategies(strategy)[-1]


def _check(strategy: Any) -> None:
    name, library = type(strategy).__name__, type(strategy).__module__.startswith("gpytorch.")
    if not library or name not in (*SINGLE, *TASKS, ORTHOGONAL):
        where = "" if library else f"{type(strategy).__module__}."
        raise UnsupportedModelError(
            f"variational_strategy: {where}{name} is not supported{REASONS.get(name, '')}"
        )
    _require_trained(strategy, "model", "ApproximateGP")


def _require_trained(strategy: Any, name: str, kind: str) -> None:
    if not bool(strategy.variational_params_initialized.item()):
        raise InvalidInputError(
            f"{name}: expected a trained {kind}, got one that was never called: its q(u) is not"
            " initialised"
        )
    if not bool(getattr(strategy, "updated_strategy", True)):
        raise InvalidInputError(
            f"{name}: expected a whitened q(u), got one saved by an older GPyTorch; call the model"
            " once to whiten it"
        )


def _members(
    copy: Any, strategy: Any, batch: Sequence[int], inputs: ModelInputs | None
) -> list[Posterior]:
    if len(batch) > 1:
        raise UnsupportedModelError(
            f"variational_strategy: batch shape {tuple(batch)} is not supported"
        )
    return [_member(copy, strategy, i, inputs) for i in range(batch[0])]


def _q(strategy: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return mean (..., m) and covariance (..., m, m) of q(u); no covariance if u is known."""
    q = strategy._variational_distribution()
    if not hasattr(q, "covariance_matrix"):
        if type(q).__name__ == "Delta":
            return on_host(q.mean), None
        raise UnsupportedModelError(
            f"variational_distribution: {type(strategy._variational_distribution).__name__} is not"
            " supported"
        )
    return on_host(q.mean), on_host(q.covariance_matrix)


def _member(copy: Any, strategy: Any, i: int | None, inputs: ModelInputs | None) -> Posterior:
    """Return the posterior of the i-th function of a batch."""
    if type(strategy).__name__ == ORTHOGONAL:
        inner = _sparse(copy, strategy.model, i, inputs)
        result = _decoupled(inner, strategy, i, inputs)
    else:
        result = _sparse(copy, strategy, i, inputs)
    return result if inputs is None else inputs.around(result)


def _inducing(strategy: Any, i: int | None, inputs: ModelInputs | None) -> Any:
    Z = number(strategy.inducing_points, 2, i)
    return beside(Z if inputs is None else inputs.inside(Z), strategy.inducing_points)


def _sparse(copy: Any, strategy: Any, i: int | None, inputs: ModelInputs | None) -> SparsePosterior:
    Z, like = number(strategy.inducing_points, 2, i), strategy.inducing_points
    kernel, mean = (
        called(copy.covar_module, Z.shape[1], i),
        mean_of(copy.mean_module, Z.shape[1], i),
    )
    jitter, name = float(strategy.jitter_val), type(strategy).__name__
    centre, cov = (part if part is None or i is None else part[i] for part in _q(strategy))
    assert centre is not None
    root = np.zeros((len(Z), 1)) if cov is None else None
    cov = None if cov is None else 0.5 * (cov + cov.T)
    if name == "CiqVariationalStrategy":
        # u is whitened by the symmetric root of k(Z, Z), which goes back to f(Z).
        values, vectors = np.linalg.eigh(np.asarray(kernel(Z, Z)) + jitter * np.eye(len(Z)))
        half = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        centre = np.asarray(mean(Z)) + half @ centre
        cov = None if cov is None else half @ cov @ half
        cov = None if cov is None else 0.5 * (cov + cov.T)
    if inputs is not None:
        kernel, mean = inputs.kernel(kernel), inputs.mean(mean)
    return SparsePosterior(
        kernel,
        _inducing(strategy, i, inputs),
        beside(centre, like),
        None if cov is None else beside(cov, like),
        q_root=None if root is None else beside(root, like),
        whitened=name in WHITENED,
        mean=mean,
        jitter=jitter,
    )


def _decoupled(
    inner: SparsePosterior, strategy: Any, i: int | None, inputs: ModelInputs | None
) -> FunctionSpacePosterior:
    """Return g plus Σⱼ aⱼ Cov[g(x), g(zⱼ)] for the posterior of g: only the mean is changed.

    That is k(x, Z')a − k(x, Z)L⁻ᵀ(I − RRᵀ)T(Z')a, with weights on the points of both.
    """
    centre, cov = _q(strategy)
    if cov is not None:
        raise UnsupportedModelError(
            "variational_distribution: a decoupled mean with a covariance is not supported"
        )
    a = centre if i is None else centre[i]
    points, Z, L = (
        to_numpy(part) for part in (_inducing(strategy, i, inputs), inner.inputs, inner.factor)
    )
    assert inner.root is not None
    R = to_numpy(inner.root)
    T = np.linalg.solve(L, np.asarray(inner.kernel(Z, points)))  # (m, m')
    weights = np.linalg.solve(L.T, (T - R @ (R.T @ T)) @ a)
    m, more = len(Z), len(points)
    factor, root = np.eye(m + more), np.zeros((m + more, R.shape[1]))
    factor[:m, :m], root[:m] = L, R
    return FunctionSpacePosterior(
        inner.kernel,
        np.concatenate([Z, points]),
        np.concatenate([to_numpy(inner.alpha) - weights, a]),
        factor,
        root,
        np.concatenate([np.ones(m), np.zeros(more)]),
        mean=inner.mean,
    )


STRATEGIES = ("VariationalStrategy", "UnwhitenedVariationalStrategy")  # of layers


def units_of(layer: Any, strategy: Any, name: str) -> list[SparsePosterior]:
    """Return the posteriors of the functions of a layer, one for each member of its batch.

    ``layer`` is a copy in float64 whose ``strategy`` has the jitter of the original.
    """
    batch = tuple(_q(strategy)[0].shape[:-1])
    if len(batch) > 1:
        raise UnsupportedModelError(
            f"{name}: batch shape {batch} is not supported; a batch has one dimension"
        )
    for part in ("covar_module", "mean_module"):
        if not hasattr(layer, part):
            raise UnsupportedModelError(
                f"{name}: expected a {part}, which this {type(layer).__name__} does not have"
            )
    try:
        return [_sparse(layer, strategy, i, None) for i in (range(batch[0]) if batch else [None])]
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{name}: {error}") from None


def check_layer(strategy: Any, name: str) -> None:
    """Raise unless a strategy is one of the library's that is supported, and initialised."""
    kind = type(strategy)
    if not kind.__module__.startswith("gpytorch.") or kind.__name__ not in STRATEGIES:
        raise UnsupportedModelError(
            f"{name}: {kind.__module__}.{kind.__name__} is not supported; supported are"
            f" {' and '.join(STRATEGIES)}"
        )
    _require_trained(strategy, name, "model")
    if not hasattr(strategy._variational_distribution(), "covariance_matrix"):
        raise UnsupportedModelError(
            f"{name}: a {type(strategy._variational_distribution).__name__} is not supported"
        )
