"""Pictures of explanations, as ``gpattr explain`` writes them to its folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from gpattr import plots
from gpattr.commands.letters import save_picture
from gpattr.commands.whole_function import WholeFunction
from gpattr.explanation.dependence import Dependence
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.importance import Importance

WATERFALLS = 3
MISSING_LETTERS = (
    "Some characters of the names are missing from the installed fonts, and are boxes in the"
    " pictures; the report shows them."
)


def draw_pictures(folder: Path, ex: Explanation, importance: Importance, level: float) -> list[str]:
    """Draw the importance, all rows, and the rows farthest from the baseline; return notes."""
    jobs: list[tuple[str, Any, tuple[Any, ...]]] = [("importance", plots.bar, (importance,))]
    if len(ex) > 1:
        jobs += [("beeswarm", plots.beeswarm, (ex,)), ("heatmap", plots.heatmap, (ex,))]
    for row in np.argsort(-np.abs(ex.predictions - ex.base_values), kind="stable")[:WATERFALLS]:
        jobs.append((f"row_{ex.row_names[row]}", plots.waterfall, (ex, int(row))))
    lacking = [_draw(folder / f"{name}.png", ex, level, draw, *args) for name, draw, args in jobs]
    return [MISSING_LETTERS] if any(lacking) else []


def draw_pictures_of_classes(
    folder: Path,
    found: Mapping[str, Explanation],
    importance: Mapping[str, Importance],
    level: float,
) -> list[str]:
    """Draw the importance and all rows of each class, importance_setosa.png etc.; return notes."""
    lacking = []
    for label, name in file_names(found).items():
        ex = found[label]
        path = folder / f"importance_{name}.png"
        lacking.append(_draw(path, ex, level, plots.bar, importance[label]))
        if len(ex) > 1:
            path = folder / f"beeswarm_{name}.png"
            lacking.append(_draw(path, ex, level, plots.beeswarm, ex))
    return [MISSING_LETTERS] if any(lacking) else []


def draw_whole_function(folder: Path, whole: WholeFunction, level: float) -> list[str]:
    """Draw curves and indices, of each class if there are several; return notes."""
    lacking = []
    several = len(whole.curves or whole.indices) > 1
    for label, name in file_names(whole.curves).items():
        if whole.curves[label]:
            path = folder / f"dependence{f'_{name}' * several}.png"
            lacking.append(_draw_curves(path, whole.curves[label], level))
    for label, name in file_names(whole.indices).items():
        found = whole.indices[label]
        figure = Figure(figsize=(7.5, 1.9 + 0.5 * min(len(found), 10)), layout="constrained")
        plots.sobol_bar(found, ax=figure.subplots(), level=level)
        lacking.append(save_picture(figure, folder / f"sobol{f'_{name}' * several}.png"))
    return [MISSING_LETTERS] if any(lacking) else []


def _draw_curves(path: Path, curves: Sequence[Dependence], level: float) -> bool:
    """Draw all curves in one picture; return whether characters are missing from its fonts."""
    import matplotlib.pyplot as plt

    figure = plots.dependence_grid(curves, level=level)[0].figure
    try:
        return save_picture(figure, path)
    finally:
        plt.close(figure)  # pyplot would keep it


def _draw(path: Path, ex: Explanation, level: float, draw: Any, *args: Any) -> bool:
    """Draw one picture; return whether characters are missing from its fonts."""
    height = 1.4 + 0.42 * min(ex.shape[1], 10)
    figure = Figure(figsize=(7.5, height), layout="constrained")
    draw(*args, ax=figure.subplots(), level=level)
    return save_picture(figure, path)


def file_names(labels: Iterable[str]) -> dict[str, str]:
    """Return distinct file names by class: letters and digits of the label, and a number."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for k, label in enumerate(labels, 1):
        name = re.sub(r"\W+", "_", label).strip("_")[:40] or f"class_{k}"
        while name.lower() in taken:
            name = f"{name}_{k}"
        taken.add(name.lower())
        names[label] = name
    return names
