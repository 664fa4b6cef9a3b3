"""What a tool answers: values, errors against the truth, evaluations of the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .problem import Problem
from .tool import OTHER_GAME, Tool


@dataclass(frozen=True)
class Answer:
    """The result of a tool, its error, and its cost."""

    values: np.ndarray
    error: float
    between_seeds: float
    gap: float
    evaluations: float

    @classmethod
    def of(cls, tool: Tool, problem: Problem, truth: np.ndarray) -> Answer:
        problem.evaluations[0] = 0
        values = tool.explain(0)
        evaluations = problem.evaluations[0] / len(values)
        again = tool.explain(1) if tool.random else values
        start = (
            problem.worth_of_nothing
            if tool.computes == OTHER_GAME
            else problem.gp.predict(problem.b[None])
        )
        gap = values.sum(axis=1) - (problem.gp.predict(problem.X) - start)
        differences = np.stack([values, again]) - truth, values - again, gap
        error, between_seeds, gap = (
            float(np.abs(part).max() / np.abs(truth).max()) for part in differences
        )
        return cls(values, error, between_seeds, gap, evaluations)
