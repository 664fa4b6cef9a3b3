"""Checks of numbers against their expected ranges: ``expected/*.json``, one file per experiment.

An entry is ``{"ours": …, "between": [low, high], "source": …}``: the result of our own verified
run, the accepted range (null is an open end), and where the range comes from; ``"published"`` is
the number in the paper's figure, if it can be read off.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Check:
    """One reproduced number, its accepted range, and whether it lies in it.

    Examples
    --------
    >>> from gpattr.paper import Check
    >>> check = Check("largest error", 0.02, 0.0, 0.05, ours=0.02, published="0.02", source="text")
    >>> check.passed
    True
    """

    name: str
    value: float
    low: float
    high: float
    ours: float
    published: str
    source: str

    @property
    def passed(self) -> bool:
        """Whether the number lies in the accepted range; NaN does not."""
        return self.low <= self.value <= self.high

    @property
    def accepted(self) -> str:
        """The accepted range in words."""
        if self.low == self.high:
            return f"exactly {self.low:g}"
        if math.isinf(self.low):
            return f"at most {self.high:g}"
        return (
            f"at least {self.low:g}" if math.isinf(self.high) else f"{self.low:g} to {self.high:g}"
        )


def expectations(experiment: str) -> dict[str, dict[str, Any]]:
    """Return the expected numbers of one experiment."""
    return json.loads(
        (files("gpattr.paper") / "expected" / f"{experiment}.json").read_text(encoding="utf-8")
    )


def compare(experiment: str, numbers: dict[str, float]) -> list[Check]:
    """Return a check for every number; the names must be the expected ones."""
    expected = expectations(experiment)
    if set(numbers) != set(expected):
        raise RuntimeError(
            f"{experiment}: numbers and expectations differ in"
            f" {sorted(set(numbers) ^ set(expected))}"
        )
    checks = []
    for name, value in numbers.items():
        entry = expected[name]
        low, high = entry["between"]
        checks.append(
            Check(
                name,
                float(value),
                -math.inf if low is None else low,
                math.inf if high is None else high,
                entry["ours"],
                entry.get("published", ""),
                entry["source"],
            )
        )
    return checks


def expected_table(experiment: str) -> str:
    """Return the expectations of one experiment as a Markdown table."""
    lines = ["| number | ours | published | accepted |", "|---|---|---|---|"]
    for check in compare(
        experiment, {name: entry["ours"] for name, entry in expectations(experiment).items()}
    ):
        lines.append(
            f"| {check.name.replace('|', '∣')} | {check.ours:g} | {check.published} |"
            f" {check.accepted} |"
        )
    return "\n".join(lines)
