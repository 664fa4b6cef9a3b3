"""Derivatives of a user's PyTorch functions, by automatic differentiation in float64.

Rows go in and results come out in the caller's array library; PyTorch is imported when the first
function is given.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Any

from gpattr._core.array import Array, is_tensor, namespace, to_numpy
from gpattr._core.optional import optional
from gpattr.exceptions import InvalidInputError


def own_copy(name: str, function: Any) -> Callable[..., Any]:
    """Return a function to differentiate: for a module, a frozen float64 copy in evaluation mode.

    The user's module is never changed, and training it further does not change the copy.
    """
    torch = optional("torch", f"{name}: a function without its derivative")
    if not isinstance(function, torch.nn.Module):
        return function
    module = copy.deepcopy(function).double().eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module


def value(name: str, function: Callable[..., Any], *rows: Array) -> Array:
    """Return function(*rows), in the library of the rows."""
    import torch

    with torch.no_grad():
        return _like(rows[0], _call(name, function, [_tensor(x) for x in rows]))


def jacobian(name: str, function: Callable[..., Any], x: Array) -> Array:
    """Return ∂functionⱼ/∂xᵢ, (n, D, d), of rows (n, d) ↦ (n, D) that do not mix.

    It is (n, d) where the function returns one number per row.
    """
    import torch

    with torch.enable_grad():
        rows = _tensor(x).requires_grad_(True)
        result = _call(name, function, [rows])
        columns = [result] if result.ndim == 1 else list(result.unbind(dim=1))
        slopes = [_gradient(name, column, rows, retain=True) for column in columns]
    return _like(x, slopes[0] if result.ndim == 1 else torch.stack(slopes, dim=1))


def kernel_derivatives(
    function: Callable[..., Any], x: Array, y: Array, second: bool
) -> tuple[Array, ...]:
    """Return k, ∂k/∂x, and with ``second`` also ∂k/∂y and ∂²k/∂xᵢ∂yⱼ, for paired rows (N, d)."""
    import torch

    with torch.enable_grad():
        left, right = (_tensor(rows).clone().requires_grad_(True) for rows in (x, y))
        k = _call("value", function, [left, right])
        first = _gradient("value", k, left, create=second, retain=second)
        if not second:
            return _like(x, k), _like(x, first)
        other = _gradient("value", k, right, retain=True)
        columns = [
            _gradient("value", first[:, i], right, retain=True) for i in range(first.shape[1])
        ]
        return tuple(_like(x, part) for part in (k, first, other, torch.stack(columns, dim=1)))


def _tensor(x: Array) -> Any:
    import torch

    return x.detach().double() if is_tensor(x) else torch.as_tensor(x.copy(), dtype=torch.float64)


def _like(x: Array, result: Any) -> Array:
    result = result.detach()
    return namespace(x).asarray(result) if is_tensor(x) else to_numpy(result)


def _call(name: str, function: Any, rows: list[Any]) -> Any:
    import torch

    if isinstance(function, torch.nn.Module):
        function = _on_device(function, rows[0].device)
    try:
        result = function(*rows)
    except Exception as error:  # name the user's function, whatever it raises
        raise InvalidInputError(
            f"{name}: it failed on PyTorch tensors of shape {tuple(rows[0].shape)}: {error}. Write"
            " it in PyTorch, or pass its derivative"
        ) from error
    if not is_tensor(result):
        raise InvalidInputError(
            f"{name}: without its derivative it must return a PyTorch tensor, got"
            f" {type(result).__name__}; pass the derivative"
        )
    return result


def _on_device(module: Any, device: Any) -> Any:
    """Return a frozen module on a device: itself, or a copy, as another thread may be using it."""
    held = chain(module.parameters(), module.buffers(), (part for *_, part in _attributes(module)))
    return module if all(part.device == device for part in held) else _moved(module, device)


@lru_cache(maxsize=2)
def _moved(module: Any, device: Any) -> Any:
    result = copy.deepcopy(module).to(device)
    for owner, name, tensor in list(_attributes(result)):
        setattr(owner, name, tensor.to(device))
    return result


def _attributes(module: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield tensors that modules hold as plain attributes, which ``module.to`` leaves behind."""
    for owner in module.modules():
        for name, part in vars(owner).items():
            if is_tensor(part):
                yield owner, name, part


def _gradient(
    name: str, column: Any, rows: Any, *, create: bool = False, retain: bool = False
) -> Any:
    """Return the gradient of each entry by its own row, from their sum's: rows do not mix."""
    import torch

    if not column.requires_grad:  # constant along these rows
        return torch.zeros_like(rows)
    (slope,) = torch.autograd.grad(
        column.sum(), rows, create_graph=create, retain_graph=retain or create, allow_unused=True
    )
    if slope is None:
        return torch.zeros_like(rows)
    return slope
