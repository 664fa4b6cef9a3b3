"""Devices of PyTorch models: what is read of them lies on the host, their data stay where they are.

Hyperparameters are a few numbers and are read on the host. Training rows and targets stay on the
GPU that a model is on, where its posterior is then computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpattr._core.array import Array


def on_host(tensor: Any) -> np.ndarray:
    """Return the values of a tensor as a NumPy array."""
    return tensor.detach().cpu().numpy()


def beside(array: np.ndarray, tensor: Any) -> Array:
    """Return the array where a model's tensor is: itself on the host, a tensor on a GPU."""
    import torch

    return array if tensor.device.type == "cpu" else torch.tensor(array, device=tensor.device)
