"""Integrated gradients by Captum, on GPyTorch's mean."""

from __future__ import annotations

import numpy as np
import torch
from captum.attr import IntegratedGradients

from .problem import Problem
from .tool import IG, Tool
from .torch_gp import in_gpytorch


def captum_tools(problem: Problem) -> list[Tool]:
    """Captum's default rule, Gauss–Legendre, without the variances, which it does not need."""
    X, b = torch.tensor(problem.X), torch.tensor(problem.b)[None]
    model = in_gpytorch(problem.gp)

    def predict(points: torch.Tensor) -> torch.Tensor:
        problem.evaluations[0] += len(points)
        return model.posterior_mean(points)

    method = IntegratedGradients(predict)

    def attribute(n_steps: int, batch: int | None = None) -> np.ndarray:
        values = method.attribute(X, baselines=b, n_steps=n_steps, internal_batch_size=batch)
        return values.detach().numpy()

    return [
        Tool(
            "Captum IntegratedGradients, 50 steps (default)",
            IG,
            lambda seed: attribute(50),
            column="Captum, 50",
        ),
        Tool("Captum IntegratedGradients, 500 steps", IG, lambda seed: attribute(500, 1000)),
    ]
