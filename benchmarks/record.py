"""What one run of the quoted numbers found, and on what: a JSON file that later runs are held
against.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from pages import processor

FORMAT = 1
PACKAGES = [
    "gpattr",
    "numpy",
    "scipy",
    "scikit-learn",
    "torch",
    "gpytorch",
    "botorch",
    "tinygp",
    "shap",
    "captum",
]
MOST_SPREAD = 100.0  # of log ratios; more is no measurement
TO_DEVIATION = 1.4826  # of a normal distribution: its standard deviation over the median deviation


class RecordError(ValueError):
    """A file that is no record of a run."""


@dataclass(frozen=True)
class Number:
    """A ratio of times measured side by side: what gpattr takes over what the yardstick takes."""

    name: str
    size: str  # numbers of different sizes are not compared
    ratio: float  # the median of the repeats'
    median: float  # seconds of gpattr
    yardstick_median: float
    spread: float  # of log ratios: their median deviation, in standard deviations of a normal
    ratios: list[float]  # of the repeats
    yields: str
    yardstick_yields: str
    error: float | None  # relative to the largest attribution, where attributions are compared
    yardstick_error: float | None

    @classmethod
    def of(cls, ours: list[float], theirs: list[float], **about: Any) -> Number:
        """From seconds of pairs timed one after the other; ``about`` has the fields in words."""
        ratios = np.array(ours) / np.array(theirs)
        logs = np.log(ratios)
        return cls(
            ratio=float(np.median(ratios)),
            median=float(np.median(ours)),
            yardstick_median=float(np.median(theirs)),
            spread=TO_DEVIATION * float(np.median(np.abs(logs - np.median(logs)))),
            ratios=ratios.tolist(),
            **about,
        )

    def __post_init__(self) -> None:
        times = self.ratio, self.median, self.yardstick_median, *self.ratios
        if not all(isinstance(value, float) for value in (*times, self.spread)):
            raise RecordError(f"{self.name!r}: times, ratios and spread must be numbers")
        if not self.ratios or not all(0 < time < math.inf for time in times):
            raise RecordError(f"{self.name!r}: times and ratios must be positive numbers")
        if not 0 <= self.spread < MOST_SPREAD:
            raise RecordError(f"{self.name!r}: the spread must be from 0 to {MOST_SPREAD}")
        if not isinstance(self.name, str):
            raise RecordError(f"{self.name!r}: the name of a number must be a text")


@dataclass(frozen=True)
class Record:
    """The numbers of one run, with all that they depend on."""

    date: str
    commit: str
    uncommitted_changes: bool
    machine: dict[str, Any]
    versions: dict[str, str]
    numbers: list[Number]
    skipped: dict[str, str]  # what was not measured, and why

    def __post_init__(self) -> None:
        machine, loads = self.machine, None
        if isinstance(machine, dict) and isinstance(machine.get("cores"), int):
            loads = machine.get("load_averages")
        known = isinstance(loads, list) and all(isinstance(load, (int, float)) for load in loads)
        if not known or not loads or not isinstance(self.versions, dict):
            raise RecordError("machine and versions are not as --json writes them")

    @classmethod
    def of(cls, numbers: list[Number], skipped: dict[str, str], loads: list[float]) -> Record:
        """The numbers measured here and now, between these load averages."""
        return cls(
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            commit=_git("rev-parse", "HEAD") or "unknown",
            uncommitted_changes=bool(_git("status", "--porcelain")),
            machine={
                "processor": processor(),
                "cores": os.cpu_count() or 1,
                "threads": 1,
                "system": f"{platform.system()} {platform.machine()}",
                "load_averages": [round(load, 2) for load in loads],
            },
            versions={"python": platform.python_version(), **versions()},
            numbers=numbers,
            skipped=skipped,
        )

    def write(self, path: Path) -> None:
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Record:
        """Read a file that `write` has written, or say what is wrong with it."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise RecordError(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise RecordError(f"{path}: not a JSON file ({error})") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise RecordError(f"{path}: not a record of format {FORMAT}, as --json writes it")
        try:
            numbers = [Number(**_only(Number, number)) for number in content["numbers"]]
            if not numbers:
                raise RecordError("no numbers to compare with")
            return cls(**_only(cls, content) | {"numbers": numbers})
        except (KeyError, TypeError, RecordError) as error:
            raise RecordError(f"{path}: {error}") from error


def _only(kind: type, content: dict[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass, every one of which must be there."""
    missing = [field.name for field in fields(kind) if field.name not in content]
    if missing:
        raise RecordError(f"{kind.__name__.lower()} without {', '.join(missing)}")
    return {field.name: content[field.name] for field in fields(kind)}


def versions() -> dict[str, str]:
    """The packages that are installed, of those whose times are compared."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _git(*arguments: str) -> str:
    """What git says, or nothing outside a repository."""
    here = Path(__file__).parent
    try:
        answer = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True)
    except OSError:
        return ""
    return answer.stdout.strip()
