"""Times of tools, each next to gpattr's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from games import coalitions, mixtures
from timing import seconds_of

from .problem import N_ROWS, Problem
from .tool import Tool


@dataclass(frozen=True)
class Times:
    """Seconds per row, and the ratios to gpattr's means and to its means and covariance timed next
    to it.
    """

    seconds: float
    to_means: float
    to_covariance: float

    @classmethod
    def of(cls, samples: list[tuple[float, float, float]]) -> Times:
        """From pairs: seconds of gpattr's means, of its means and covariance, and of the tool, for
        all rows.
        """
        means, covariances, own = np.array(samples).T
        return cls(np.median(own) / N_ROWS, np.median(own / means), np.median(own / covariances))


def side_by_side(tools: list[Tool], rounds: int) -> list[Times]:
    """Medians over the rounds; in each, gpattr's means and covariance are timed immediately before
    every other tool.
    """
    for tool in tools:
        tool.explain(0)  # compilation and caches do not count
    means, covariance, *others = tools
    samples: dict[str, list[tuple[float, float, float]]] = {tool.name: [] for tool in others}
    for _ in range(rounds):
        for tool in others:
            trio = (
                seconds_of(lambda each=each: each.explain(0)) for each in (means, covariance, tool)
            )
            samples[tool.name].append(tuple(trio))
    references = [(m, c) for sample in samples.values() for m, c, _ in sample]
    samples[means.name] = [(m, c, m) for m, c in references]
    samples[covariance.name] = [(m, c, c) for m, c in references]
    return [Times.of(samples[tool.name]) for tool in tools]


def prediction_times(problem: Problem) -> tuple[float, float]:
    """Seconds for all coalitions of a row, by scikit-learn, as SHAP and shapiq have it, and by
    NumPy.
    """
    points = mixtures(problem.X[0], problem.b, coalitions(problem.d)[0])
    pairs = [
        [
            seconds_of(lambda each=each: each(points))
            for each in (problem.predict, problem.gp.predict)
        ]
        for _ in range(15)
    ]
    theirs, bare = np.median(pairs, axis=0)
    return float(theirs), float(bare)
