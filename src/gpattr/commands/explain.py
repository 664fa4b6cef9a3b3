"""``gpattr explain``: a table in; explanation, tables, pictures and a report out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpattr import plots
from gpattr.commands.classes import thinned
from gpattr.commands.letters import save_picture
from gpattr.explainer import Explainer
from gpattr.explanation import Explanation
from gpattr.importance import Importance
from gpattr.posteriors.base import require_covariance_room

WATERFALLS = 3
MOST_COVARIANCES = 1_000_000  # that are written to a file, where each takes 20 bytes
BATCH = 250  # rows explained between two steps of the progress bar


def explained(explainer: Explainer, X: Any, track: Callable[[Iterator[Any], int], Iterable[Any]]) -> Explanation:
    """Explain the rows of X in batches that ``track(batches, how many)`` hands through."""
    require_covariance_room(*X.shape)
    return Explanation.concatenate(track(explainer.batches(X, batch_size=BATCH), math.ceil(len(X) / BATCH)))


def importance_of(explainer: Explainer, X: Any, ex: Explanation) -> Importance:
    """Return the importance of features over all rows of X, whose explanation is ``ex``."""
    return explainer._importance(X, None, ex)


def write_tables(folder: Path, ex: Explanation, importance: Importance, level: float) -> list[str]:
    """Write the explanation and its tables; return what is left out of them."""
    saved, note = thinned(ex)
    left_out = [note] if note else []
    if saved.cov is not None and saved.cov.size > MOST_COVARIANCES:
        size = f"{saved.cov.size:,}"
        saved = replace(saved, cov=None, component_cov=None)
        left_out.append(f"explanation.json is without the {size} covariances between features, which the report has used.")
    saved.save(folder / "explanation.json")
    table = ex.to_frame(level)
    table.to_csv(folder / "attributions.csv", index=False)
    importance.to_frame(level).to_csv(folder / "importance.csv")
    try:
        import pyarrow  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError:
        return left_out
    table.to_parquet(folder / "attributions.parquet", index=False)
    return left_out


def draw_pictures(folder: Path, ex: Explanation, importance: Importance, level: float) -> list[str]:
    """Draw importance, all rows, and the rows farthest from the baseline one by one; return what is wrong with the pictures."""
    from matplotlib.figure import Figure

    lacking = False

    def saved(name: str, draw: Any, *args: Any, height: float) -> None:
        figure = Figure(figsize=(7.5, height), layout="constrained")
        draw(*args, ax=figure.subplots(), level=level)
        nonlocal lacking
        lacking = save_picture(figure, folder / f"{name}.png") or lacking

    tall = 1.4 + 0.42 * min(ex.shape[1], 10)
    saved("importance", plots.bar, importance, height=tall)
    if len(ex) > 1:
        saved("beeswarm", plots.beeswarm, ex, height=tall)
        saved("heatmap", plots.heatmap, ex, height=tall)
    for row in np.argsort(-np.abs(ex.predictions - ex.base_values), kind="stable")[:WATERFALLS]:
        saved(f"row_{ex.row_names[row]}", plots.waterfall, ex, int(row), height=tall)
    return lacking_letters(lacking)


def lacking_letters(lacking: bool) -> list[str]:
    """Return what is wrong with pictures that lack letters."""
    return ["The pictures lack letters of the names, which no font at hand has; the report has them."] if lacking else []


def summary(ex: Explanation, importance: Importance) -> dict[str, Any]:
    """Return what a program would ask first."""
    order = np.argsort(-importance.values, kind="stable")
    return {
        "rows": len(ex),
        "features": list(ex.feature_names),
        "baseline": ex.baseline_name,
        "method": ex.method,
        "largest_error": float(ex.error.max(initial=0.0)),
        "largest_gap": float(np.abs(ex.delta).max(initial=0.0)),
        "importance": {importance.feature_names[i]: float(importance.values[i]) for i in order},
        "importance_drawn_from_rows": importance.n_joint_rows,
    }
