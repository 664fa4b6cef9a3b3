"""Reproduction of the experiments: figures, numbers, and their comparison with expectations."""

from __future__ import annotations

import io
import json
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from gpattr._core.arguments import a_function
from gpattr._core.files import write_whole
from gpattr._core.validation import check_flag, check_path
from gpattr.exceptions import InvalidInputError
from gpattr.paper.checks import Check, compare
from gpattr.paper.experiment import Outcome, Setting

EXPERIMENTS = {
    "linear": "gpattr.paper.linear",
    "axioms": "gpattr.paper.axioms",
    "1": "gpattr.paper.figure_1",
    "2": "gpattr.paper.figure_2",
    "3": "gpattr.paper.figure_3",
    "4": "gpattr.paper.figure_4",
    "5": "gpattr.paper.figure_5",
    "6": "gpattr.paper.figure_6",
    "7": "gpattr.paper.figure_7",
}


@dataclass(frozen=True)
class Report:
    """The result of one experiment.

    Examples
    --------
    >>> from gpattr.paper import Check, Report
    >>> check = Check("error", 0.02, 0.0, 0.05, ours=0.02, published="0.02", source="text")
    >>> Report("Figure 1", [check], seconds=1.0, picture=None).passed
    True
    """

    title: str
    checks: list[Check]
    seconds: float
    picture: Path | None

    @property
    def passed(self) -> bool:
        """Whether every number is as expected."""
        return all(check.passed for check in self.checks)


def reproduce(
    experiments: Iterable[str] = tuple(EXPERIMENTS),
    out: str | PathLike[str] | None = None,
    *,
    data_home: str | PathLike[str] | None = None,
    reduced: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Report]:
    """Run experiments by name, in order, and return their reports.

    Figures and numbers are written to the folder ``out`` as each experiment ends, ``figure_1.png``
    and ``figure_1.json``; with None nothing is written. ``data_home`` is the folder with the data,
    by default ``GPATTR_DATA_DIR``, the cache or the official archive. ``reduced`` uses fewer
    restarts, models and repetitions. ``progress`` is called with a text at every step.

    Examples
    --------
    >>> from gpattr.paper import reproduce
    >>> [report] = reproduce(["1"], out="figures", reduced=True)  # doctest: +SKIP
    >>> report.passed, report.picture  # doctest: +SKIP
    (True, PosixPath('figures/figure_1.png'))
    """
    several = (
        isinstance(experiments, Iterable)
        and not isinstance(experiments, (str, bytes))
        and getattr(experiments, "ndim", 1)
    )
    names: list[Any] = list(experiments) if several else [experiments]
    for name in names:
        if not isinstance(name, str) or name not in EXPERIMENTS:
            raise InvalidInputError(
                f"experiments: expected names among {list(EXPERIMENTS)}, got {name!r}"
            )
    for argument, folder in (("out", out), ("data_home", data_home)):
        if folder is not None:
            check_path(argument, folder, "folder, or None")
    check_flag("reduced", reduced)
    a_function("progress", progress)
    folder = None if out is None else Path(os.fsdecode(out)).expanduser()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return [_run(name, Setting(data_home, reduced, progress), folder) for name in names]


def _run(name: str, setting: Setting, folder: Path | None) -> Report:
    module = import_module(EXPERIMENTS[name])
    start = time.perf_counter()
    outcome: Outcome = module.run(setting)
    seconds = time.perf_counter() - start
    stem = EXPERIMENTS[name].rsplit(".", 1)[1]
    checks, picture = compare(stem, outcome.numbers), None
    if folder is not None:
        picture = folder / f"{stem}.png"
        image = io.BytesIO()
        outcome.figure.savefig(image, dpi=160)
        write_whole(image.getvalue(), picture)
        content = {
            "title": module.TITLE,
            "reduced": setting.reduced,
            "seconds": round(seconds, 2),
            # JSON has no NaN and no infinity
            "numbers": {
                name: value if math.isfinite(value) else None
                for name, value in outcome.numbers.items()
            },
        }
        write_whole(
            (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode(),
            folder / f"{stem}.json",
        )
    return Report(module.TITLE, checks, seconds, picture)
