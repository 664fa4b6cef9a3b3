"""Functions of SMT, OpenTURNS and BoTorch on which nothing in gpattr was chosen.

`NAMES` are engineering problems of SMT and of OpenTURNS' use cases, and BoTorch's functions for
testing optimisers, with 2 to 10 continuous inputs that `uqtestfuns` does not have. Inputs are
uniform within their bounds, or distributed as OpenTURNS says.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]
Sample = Callable[[int, np.random.Generator], np.ndarray]

NAMES = (
    "smt:CantileverBeam:3",
    "smt:RobotArm:4",
    "smt:WeldedBeam",
    "smt:LpNorm:3",
    "smt:TensorProduct:3:cos",
    "smt:TensorProduct:3:exp",
    "smt:TensorProduct:3:gaussian",
    "smt:TensorProduct:3:tanh",
    "openturns:cantilever_beam:CantileverBeam",
    "openturns:chaboche_model:ChabocheModel",
    "openturns:deflection_tube:DeflectionTube",
    "openturns:fire_satellite:FireSatelliteModel",
    "openturns:oscillator:Oscillator",
    "openturns:stiffened_panel:StiffenedPanel",
    "openturns:stressed_beam:AxialStressedBeam",
    "botorch:Ackley:3",
    "botorch:Beale",
    "botorch:Branin",
    "botorch:Bukin",
    "botorch:Cosine8",
    "botorch:DixonPrice:4",
    "botorch:DropWave",
    "botorch:EggHolder",
    "botorch:Griewank:3",
    "botorch:Hartmann:3",
    "botorch:Hartmann:6",
    "botorch:HolderTable",
    "botorch:Levy:3",
    "botorch:Michalewicz:3",
    "botorch:Powell:4",
    "botorch:Rastrigin:3",
    "botorch:Shekel",
    "botorch:SixHumpCamel",
    "botorch:SpeedReducer",
    "botorch:StyblinskiTang:4",
    "botorch:TensionCompressionString",
    "botorch:ThreeHumpCamel",
)


def other_function(name: str) -> tuple[Function, Sample]:
    """Return one of `NAMES`, and a function that draws n inputs for it."""
    library, *rest = name.split(":")
    return {"smt": _smt, "openturns": _openturns, "botorch": _botorch}[library](*rest)


def _smt(name: str, d: str = "", kind: str = "") -> tuple[Function, Sample]:
    from smt import problems

    options: dict[str, Any] = ({"ndim": int(d)} if d else {}) | ({"func": kind} if kind else {})
    problem = getattr(problems, name)(**options)
    return lambda X: problem(X)[:, 0], _uniform(problem.xlimits.T)


def _openturns(module: str, name: str) -> tuple[Function, Sample]:
    import openturns as ot

    case = getattr(importlib.import_module(f"openturns.usecases.{module}"), name)()
    inputs = getattr(case, "inputDistribution", None) or case.distribution
    means = np.array(inputs.getMean())
    varies = np.array(inputs.getStandardDeviation()) > 0.0

    def f(X: np.ndarray) -> np.ndarray:
        full = np.tile(means, (len(X), 1))
        full[:, varies] = X
        return np.array(case.model(full))[:, 0]

    def sample(n: int, generator: np.random.Generator) -> np.ndarray:
        ot.RandomGenerator.SetSeed(int(generator.integers(1 << 30)))
        return np.array(inputs.getSample(n))[:, varies]

    return f, sample


def _botorch(name: str, d: str = "") -> tuple[Function, Sample]:
    import torch
    from botorch.test_functions import synthetic

    problem = getattr(synthetic, name)(**({"dim": int(d)} if d else {})).double()
    return lambda X: problem._evaluate_true(torch.tensor(X)).numpy(), _uniform(
        problem.bounds.numpy()
    )


def _uniform(bounds: np.ndarray) -> Sample:
    low, high = np.asarray(bounds, dtype=float)
    return lambda n, generator: generator.uniform(low, high, (n, len(low)))
