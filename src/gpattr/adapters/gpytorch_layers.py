"""Layers of GPyTorch's variational models: each unit of a batch as a sparse posterior."""

from __future__ import annotations

from typing import Any

from gpattr.adapters.devices import on_host
from gpattr.adapters.gpytorch_kernels import called, mean_of, number
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.posteriors import SparsePosterior

STRATEGIES = ("VariationalStrategy", "UnwhitenedVariationalStrategy")


def units_of(layer: Any, strategy: Any, name: str) -> list[SparsePosterior]:
    """Return the posteriors of the functions of a layer, one for each member of its batch.

    ``layer`` is a copy in float64 whose ``strategy`` has the jitter of the original.
    """
    q = strategy._variational_distribution()
    mean, cov = map(on_host, (q.mean, q.covariance_matrix))
    if mean.ndim > 2:
        raise UnsupportedModelError(
            f"{name}: batch shape {mean.shape[:-1]} is not supported; a batch has one dimension"
        )
    for part in ("covar_module", "mean_module"):
        if not hasattr(layer, part):
            raise UnsupportedModelError(
                f"{name}: expected a {part}, which this {type(layer).__name__} does not have"
            )
    batch = [None] if mean.ndim == 1 else list(range(len(mean)))

    def unit(i: int | None) -> SparsePosterior:
        Z = number(strategy.inducing_points, 2, i)
        centre, S = (mean, cov) if i is None else (mean[i], cov[i])
        return SparsePosterior(
            called(layer.covar_module, Z.shape[1], i),
            Z,
            centre,
            0.5 * (S + S.T),
            whitened=type(strategy).__name__ == "VariationalStrategy",
            mean=mean_of(layer.mean_module, Z.shape[1], i),
            jitter=float(strategy.jitter_val),
        )

    try:
        return [unit(i) for i in batch]
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{name}: {error}") from None


def check_strategy(strategy: Any, name: str) -> None:
    """Raise unless a strategy is one of the library's that is supported, and initialised."""
    kind = type(strategy)
    if not kind.__module__.startswith("gpytorch.") or kind.__name__ not in STRATEGIES:
        raise UnsupportedModelError(
            f"{name}: {kind.__module__}.{kind.__name__} is not supported; supported are"
            f" {' and '.join(STRATEGIES)}"
        )
    if not bool(strategy.variational_params_initialized.item()):
        raise InvalidInputError(
            f"{name}: expected a trained model, got one that was never called: its q(u) is not"
            " initialised"
        )
    if not hasattr(strategy._variational_distribution(), "covariance_matrix"):
        raise UnsupportedModelError(
            f"{name}: a {type(strategy._variational_distribution).__name__} is not supported"
        )
    if not bool(getattr(strategy, "updated_strategy", True)):
        raise InvalidInputError(
            f"{name}: expected a whitened q(u), got one saved by an older GPyTorch; call the model"
            " once to whiten it"
        )
