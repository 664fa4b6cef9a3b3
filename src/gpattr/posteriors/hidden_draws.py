"""Draws of hidden layers: values and gradients of their units at points, jointly.

The value and the gradient of a unit at T points are jointly Gaussian. A second hidden layer is
drawn given the first, at the points where a draw of that one leads, and so on; gradients follow by
the chain rule. Draws come in antithetic pairs: one with the standard normals z, one with −z.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpattr._core.array import product
from gpattr._core.memory import blocks
from gpattr._core.normal import jittered_root
from gpattr.posteriors.expected_layers import Layer
from gpattr.posteriors.function_space import FunctionSpacePosterior

JITTER = 1e-10  # added to correlations, as in `jittered_root`


class Hidden(NamedTuple):
    """Draws of the last hidden layer: values (S, T, D) and Jacobians (S, T, D, d)."""

    values: np.ndarray
    jacobians: np.ndarray


def drawn_layers(
    layers: Sequence[Layer], points: np.ndarray, pairs: int, seed: Sequence[int]
) -> Hidden:
    """Return ``pairs`` antithetic pairs of draws of the last of these layers at points (T, d)."""
    T, d = points.shape
    values = np.broadcast_to(points, (2 * pairs, T, d))
    jacobians = np.broadcast_to(np.eye(d), (2 * pairs, T, d, d))
    for k, layer in enumerate(layers):
        units = [
            _first(unit, points, _normals(pairs, T * (1 + d), [*seed, k, j]))
            if k == 0
            else _further(unit, values, _normals(pairs, T * (1 + values.shape[2]), [*seed, k, j]))
            for j, unit in enumerate(layer)
        ]
        jets = np.stack(units, axis=2)  # (S, T, D, 1 + inputs)
        values = np.ascontiguousarray(jets[..., 0])
        jacobians = jets[..., 1:] if k == 0 else jets[..., 1:] @ jacobians
    return Hidden(values, jacobians)


def _first(unit: FunctionSpacePosterior, points: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Return draws of a unit of the first layer, (S, T, 1 + d): one factorisation for all."""
    mean, cov = unit.jets(points[None])
    draws = mean.reshape(-1) + product(normals, jittered_root(cov[0]).T)
    return draws.reshape(len(normals), len(points), -1)


def _further(unit: FunctionSpacePosterior, h: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Return a draw of a unit for each draw h (S, T, D) of the layer below, (S, T, 1 + D)."""
    S, T, D = h.shape
    size = T * (1 + D)
    result = np.empty((S, T, 1 + D))
    for some in blocks(S, 8.0 * size * (6 * size + 4 * unit.size)):
        mean, cov = unit.jets(h[some])
        spread = (_roots(cov) @ normals[some, :, None])[:, :, 0]
        result[some] = mean + spread.reshape(mean.shape)
    return result


def _roots(C: np.ndarray) -> np.ndarray:
    """Return lower triangular R with RRᵀ = C, (S, k, k), singular to rounding."""
    size = np.sqrt(np.maximum(np.diagonal(C, axis1=1, axis2=2), 0.0))
    scale = np.where(size > 0, size, 1.0)
    unit = C / scale[:, :, None] / scale[:, None, :]
    try:
        return size[:, :, None] * np.linalg.cholesky(unit + JITTER * np.eye(C.shape[1]))
    except np.linalg.LinAlgError:
        return np.stack([jittered_root(each) for each in C])


def _normals(pairs: int, size: int, seed: Sequence[int]) -> np.ndarray:
    """Return standard normals (2 · pairs, size), each row with its opposite after all pairs."""
    return mirrored(np.random.default_rng(list(seed)).standard_normal((pairs, size)))


def mirrored(normals: np.ndarray) -> np.ndarray:
    """Return draws followed by their opposites."""
    return np.concatenate([normals, -normals])
