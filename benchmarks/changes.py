"""What became slower or faster between two records.

A number is the median of ratios r of repeats. It counts as changed if log r has changed by more
than 3 standard errors of the difference, and by more than `FLOOR`. The standard error of a median
of n repeats is 1.25 s/√n, with s the spread of log r within its run. The floor is for what differs
from run to run but not within one, such as the layout of memory or another program throughout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from pages import digits
from record import Number, Record

FLOOR = math.log(1.25)
DEVIATIONS = 3.0
OF_MEDIAN = 1.2533  # √(π/2): the standard error of a median over that of a mean


@dataclass(frozen=True)
class Change:
    """One number, in the old record and in the new."""

    name: str
    old: Number | None
    new: Number | None

    @property
    def factor(self) -> float | None:
        """The new ratio over the old, above 1 if gpattr became slower; None if not comparable."""
        if self.old is None or self.new is None or self.old.size != self.new.size:
            return None
        return self.new.ratio / self.old.ratio

    @property
    def noise(self) -> float:
        """By which factor the ratio may change without being flagged."""
        errors = [
            OF_MEDIAN * each.spread / math.sqrt(len(each.ratios))
            for each in (self.old, self.new)
            if each is not None
        ]
        return math.exp(max(FLOOR, DEVIATIONS * math.hypot(*errors)))

    @property
    def verdict(self) -> str:
        if self.old is None:
            return "new"
        if self.new is None:
            return "missing"
        if self.factor is None:
            return "another size"
        if self.factor > self.noise:
            return "SLOWER"
        return "faster" if self.factor < 1 / self.noise else "same"


def changes(old: Record, new: Record) -> list[Change]:
    """Every number of either record, in the order of the new one, then those that are missing."""
    before, after = ({number.name: number for number in each.numbers} for each in (old, new))
    return [Change(name, before.get(name), after.get(name)) for name in {**after, **before}]


def differences(old: Record, new: Record) -> Iterator[str]:
    """What else differs, and may explain a change: yardsticks change too."""
    for what, a, b in (
        ("processor", old.machine.get("processor"), new.machine.get("processor")),
        *((name, old.versions.get(name), new.versions.get(name)) for name in new.versions),
    ):
        if a != b:
            yield f"{what}: {a} → {b}"
    for name, record in (("old", old), ("new", new)):
        load, cores = max(record.machine["load_averages"]), record.machine["cores"]
        if load > cores:
            yield f"{name} run: load average {load} on {cores} cores; measure when it is quiet"


def as_rows(found: list[Change]) -> list[dict[str, str]]:
    """The table to print."""
    return [
        {
            "what": change.name,
            "old ratio": shown(change.old),
            "new ratio": shown(change.new),
            "change": "" if change.factor is None else f"× {change.factor:.2f}",
            "noise up to": "" if change.factor is None else f"× {change.noise:.2f}",
            "verdict": change.verdict,
        }
        for change in found
    ]


def shown(number: Number | None) -> str:
    """A ratio as people say it: 2.4, or 1/28."""
    if number is None:
        return ""
    return digits(number.ratio) if number.ratio > 0.5 else f"1/{digits(1 / number.ratio)}"
