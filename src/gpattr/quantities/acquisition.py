"""Acquisition functions of BoTorch, and differentiable PyTorch functions of rows."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.arguments import a_function
from gpattr._core.array import to_numpy
from gpattr._core.validation import as_matrix, check_text
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.quantities.base import Quantity


@dataclass(frozen=True)
class Acquisition(Quantity):
    """q = ``function`` of the rows: an acquisition function of BoTorch, or any function of PyTorch.

    A function of PyTorch takes the rows (n, d), float64, and returns one number for each, (n,),
    which does not depend on the other rows. Rows have the columns that the model was trained on, in
    their units. An acquisition function is asked about one candidate at a time (q = 1).
    ``name`` is its name in tables and pictures.

    Examples
    --------
    >>> from gpattr.quantities import Acquisition
    >>> def score(rows):
    ...     return rows[:, 0] * rows[:, 1]
    >>> Acquisition(score, name="score").words("prediction")
    'score'
    """

    function: Any
    name: str = ""

    def __post_init__(self) -> None:
        a_function("function", self.function)
        check_text("name", self.name)

    def words(self, what: str) -> str:
        if self.name:
            return self.name
        kind = getattr(self.function, "__name__", type(self.function).__name__)
        return f"acquisition function {kind}"

    def value(self, X: np.ndarray) -> np.ndarray:
        """Return the function at the rows of X, (n,)."""
        import torch

        with torch.no_grad():
            rows = self._rows(X)
            return self._checked(self._ask(rows), len(rows))

    def gradient(self, X: np.ndarray) -> np.ndarray:
        """Return the function's gradient at the rows of X, (n, d), by automatic differentiation."""
        import torch

        rows = self._rows(X).requires_grad_(True)
        with torch.enable_grad():
            values = self._ask(rows)
            self._checked(values, len(rows))
            if not values.requires_grad:
                raise UnsupportedModelError(
                    f"quantity: the {self.words('')} has no gradient with respect to the rows;"
                    ' attribution="shapley" needs none'
                )
            (gradient,) = torch.autograd.grad(values.sum(), rows, allow_unused=True)
        if gradient is None:
            raise UnsupportedModelError(
                f"quantity: the {self.words('')} does not depend on the rows differentiably;"
                ' attribution="shapley" needs no gradient'
            )
        found = to_numpy(gradient.detach()).astype(np.float64)
        if not np.isfinite(found).all():
            raise UnsupportedModelError(
                f"quantity: the gradient of the {self.words('')} is not finite at every row"
            )
        return found

    @property
    def precision(self) -> float:
        """The relative precision of the numbers it computes with."""
        import torch

        return float(torch.finfo(self._like.dtype).eps)

    @property
    def _like(self) -> Any:
        """A tensor of the kind that the function computes with."""
        import torch

        if isinstance(self.function, torch.nn.Module):
            for tensor in (*self.function.parameters(), *self.function.buffers()):
                if tensor.is_floating_point():
                    return tensor
        return torch.empty(0, dtype=torch.float64)

    def _rows(self, X: np.ndarray) -> Any:
        import torch

        like = self._like
        rows = to_numpy(as_matrix("X", X))
        return torch.tensor(rows, dtype=like.dtype, device=like.device)

    def _ask(self, rows: Any) -> Any:
        botorch = sys.modules.get("botorch.acquisition")
        if botorch is not None and isinstance(self.function, botorch.AcquisitionFunction):
            return self.function(rows[:, None, :])
        return self.function(rows)

    def _checked(self, values: Any, n: int) -> np.ndarray:
        import torch

        real = isinstance(values, torch.Tensor) and values.is_floating_point()
        if not real or tuple(values.shape) != (n,):
            tensor = isinstance(values, torch.Tensor)
            got = (
                f"{values.dtype} of shape {tuple(values.shape)}"
                if tensor
                else type(values).__name__
            )
            raise InvalidInputError(
                f"quantity: expected a tensor of {n} real numbers, one for each row, from the"
                f" {self.words('')}, got {got}"
            )
        return to_numpy(values.detach()).astype(np.float64)
