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
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.importance import Importance
from gpattr.posteriors.base import require_covariance_room

WATERFALLS = 3
WHOLE = 100_000  # attributions, rows × features, up to which everything is written: some 30 MB
MOST_COVARIANCES = 1_000_000  # that are written to a file, where each takes 20 bytes
SHOWN_ROWS, FEWEST_SHOWN = (
    5000,
    500,
)  # of many, on the page and in explanation.json; fewer where there are many features
EXTREME_ROWS = 100  # of them with the highest predictions, and as many with the lowest
DIGITS = 6  # of attributions of many rows
BATCH = 250  # rows explained between two steps of the progress bar


def explained(
    explainer: Explainer, X: Any, track: Callable[[Iterator[Any], int], Iterable[Any]]
) -> Explanation:
    """Explain the rows of X in batches that ``track(batches, how many)`` hands through."""
    require_covariance_room(*X.shape)
    return Explanation.concatenate(
        track(explainer.batches(X, batch_size=BATCH), math.ceil(len(X) / BATCH))
    )


def importance_of(explainer: Explainer, X: Any, ex: Explanation) -> Importance:
    """Return the importance of features over all rows of X, whose explanation is ``ex``."""
    return explainer._importance(X, None, ex)


def shown_rows(ex: Explanation, full: bool) -> np.ndarray:
    """Return positions of the rows that the page shows: all of few; of many the most extreme and a
    random sample of others.
    """
    number = max(FEWEST_SHOWN, min(SHOWN_ROWS, WHOLE // ex.shape[1]))
    if full or len(ex) <= number or ex.values.size <= WHOLE:
        return np.arange(len(ex))
    order = np.argsort(ex.predictions, kind="stable")
    extreme, others = (
        np.r_[order[:EXTREME_ROWS], order[-EXTREME_ROWS:]],
        order[EXTREME_ROWS:-EXTREME_ROWS],
    )
    sample = np.random.default_rng(0).choice(others, number - len(extreme), replace=False)
    return np.sort(np.r_[extreme, sample])


def write_tables(
    folder: Path,
    ex: Explanation,
    importance: Importance,
    level: float,
    shown: np.ndarray,
    full: bool,
) -> list[str]:
    """Write the explanation of the ``shown`` rows and the tables of all; return what is left out of
    them.
    """
    left_out = []
    some = len(shown) < len(ex)
    saved = ex[shown] if some else ex
    if some:
        left_out.append(
            f"The report and explanation.json hold {len(shown):,} of {len(ex):,} rows: the"
            f" {EXTREME_ROWS} with the highest and the {EXTREME_ROWS} with the lowest predictions,"
            " and a random sample of the others."
        )
    if not full:
        saved, note = thinned(saved)
        left_out += [note] if note else []
    if not full and saved.cov is not None and saved.cov.size > MOST_COVARIANCES:
        left_out.append(
            f"explanation.json is without the {saved.cov.size:,} covariances between features."
        )
        saved = replace(saved, distribution=saved.distribution.without_cov())
    saved.save(folder / "explanation.json")
    importance.to_frame(level).to_csv(folder / "importance.csv")
    if ex.values.size > WHOLE and not full:
        _write_compact(folder / "attributions.csv.gz", ex)
        left_out.append(
            f"attributions.csv.gz holds every row, to {DIGITS} digits, without intervals;"
            " everything is written with --full."
        )
        return left_out
    table = ex.to_frame(level)
    table.to_csv(folder / "attributions.csv", index=False)
    try:
        import pyarrow  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError:
        return left_out
    table.to_parquet(folder / "attributions.parquet", index=False)
    return left_out


def _write_compact(path: Path, ex: Explanation) -> None:
    """Write one line per row and feature with the attribution and its standard deviation, rounded
    and compressed.
    """
    table: Any = ex.to_frame()
    table = table[
        [
            name
            for name in ("row", "feature", "data", "label", "attribution", "std")
            if name in table
        ]
    ]
    for name in ("attribution", "std"):
        if name in table:
            table[name] = _rounded(table[name].to_numpy())
    table.to_csv(path, index=False, compression={"method": "gzip", "compresslevel": 3, "mtime": 0})


def _rounded(values: np.ndarray) -> np.ndarray:
    """Return numbers with `DIGITS` significant digits; those too small or too large for that as
    they are.
    """
    size = np.floor(np.log10(np.abs(values), out=np.zeros_like(values), where=values != 0))
    unit = 10.0 ** (DIGITS - 1 - np.clip(size, -200, 200))
    return np.where(np.abs(size) < 200, np.round(values * unit) / unit, values)


def draw_pictures(folder: Path, ex: Explanation, importance: Importance, level: float) -> list[str]:
    """Draw importance, all rows, and the rows farthest from the baseline one by one; return what is
    wrong with the pictures.
    """
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
    return (
        ["The pictures lack letters of the names, which no font at hand has; the report has them."]
        if lacking
        else []
    )


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
