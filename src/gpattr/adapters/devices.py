"""Devices of PyTorch models: what is read of them lies on the host, their data stay where they are.

Hyperparameters are a few numbers and are read on the host. Training rows and targets stay on the
GPU that a model is on, where its posterior is then computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr.exceptions import UnsupportedModelError


def on_host(tensor: Any) -> np.ndarray:
    """Return the values of a tensor as a NumPy array."""
    return tensor.detach().cpu().numpy()


def beside(array: np.ndarray, tensor: Any) -> Array:
    """Return the array where a model's tensor is: itself on the host, a tensor on a GPU."""
    import torch

    return array if tensor.device.type == "cpu" else torch.tensor(array, device=tensor.device)


@contextmanager
def one_device(name: str) -> Iterator[None]:
    """Refuse a model whose own code mixes devices.

    Some models of BoTorch leave tensors behind when they are moved, and then fail by themselves.
    """
    try:
        yield
    except RuntimeError as error:  # PyTorch has no class of its own for it
        if "on the same device" not in str(error):
            raise
        raise UnsupportedModelError(
            f"model: parts of this {name} are on different devices, where its own predictions fail"
            " too; build it on one device, or explain model.cpu()"
        ) from error
