"""Tables and files of explanations, as ``gpattr explain`` writes them to its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpattr._core.optional import is_usable
from gpattr.commands.whole_function import WholeFunction
from gpattr.distributions import Draws, Gaussian
from gpattr.explanation.dependence import Dependence
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.feature_grid import DATE, days
from gpattr.explanation.importance import Importance
from gpattr.explanation.multi_output import MultiOutputExplanation

WHOLE = 100_000  # attributions, rows × features, up to which everything is written: some 30 MB
MOST_COVARIANCES = 1_000_000  # written to a file, at 20 bytes each
MOST_SAVED, FEWEST_SAVED = 500_000, 20  # draws written to explanation.json in total, and per row
SHOWN_ROWS, FEWEST_SHOWN = 5000, 500  # of many rows, on the page; fewer with many features
EXTREME_ROWS = 100  # shown rows with the highest predictions, and as many with the lowest
DIGITS = 6  # of attributions of many rows


def shown_rows(ex: Explanation, full: bool) -> np.ndarray:
    """Return the positions of the rows on the page: all, or the most extreme and a sample."""
    number = max(FEWEST_SHOWN, min(SHOWN_ROWS, WHOLE // ex.shape[1]))
    if full or len(ex) <= number or ex.values.size <= WHOLE:
        return np.arange(len(ex))
    order = np.argsort(ex.predictions, kind="stable")
    extreme = np.r_[order[:EXTREME_ROWS], order[-EXTREME_ROWS:]]
    others = order[EXTREME_ROWS:-EXTREME_ROWS]
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
    """Write the explanation of the ``shown`` rows and tables of all; return notes on omissions."""
    left_out = _save(folder / "explanation.json", ex, shown, full)
    importance.to_frame(level).to_csv(folder / "importance.csv")
    if ex.values.size > WHOLE and not full:
        _write_compact(folder / "attributions.csv.gz", ex)
        left_out.append(
            f"attributions.csv.gz has every row, to {DIGITS} digits and without intervals; --full"
            " writes everything."
        )
        return left_out
    _write_attributions(folder, ex.to_frame(level))
    return left_out


def write_tables_of_classes(
    folder: Path,
    found: Mapping[str, Explanation],
    importance: Mapping[str, Importance],
    level: float,
) -> list[str]:
    """Write the explanations and tables of several classes; return notes on omissions.

    Tables have a column ``class``.
    """
    import pandas as pd

    saved = {label: thinned(ex, len(found)) for label, ex in found.items()}
    MultiOutputExplanation({label: ex for label, (ex, _) in saved.items()}).save(
        folder / "explanation.json"
    )
    parts = []
    for label, ex in found.items():
        table = ex.to_frame(level)
        table.insert(0, "class", label)
        parts.append(table)
    ranked = {label: each.to_frame(level).reset_index() for label, each in importance.items()}
    pd.concat([table.assign(**{"class": label}) for label, table in ranked.items()])[
        ["class", *next(iter(ranked.values())).columns]
    ].to_csv(folder / "importance.csv", index=False)
    _write_attributions(folder, pd.concat(parts, ignore_index=True))
    return list(dict.fromkeys(note for _, note in saved.values() if note))


def write_whole_function(folder: Path, whole: WholeFunction, level: float) -> None:
    """Write the curves and indices that there are, with a column ``class`` if it is of several."""
    curves = {
        label: [_tidy(curve, level) for curve in found] for label, found in whole.curves.items()
    }
    indices = {
        label: [found.to_frame(level).reset_index()] for label, found in whole.indices.items()
    }
    for name, tables in (("dependence", curves), ("sobol", indices)):
        if any(tables.values()):
            _of_classes(tables).to_csv(folder / f"{name}.csv", index=False)


def _tidy(curve: Dependence, level: float) -> Any:
    """Return one line for each value: feature, value, mean and, if known, std, lower, upper."""
    (name,) = curve.features
    table: Any = curve.to_frame(level)
    table.columns = ["value", "mean", *table.columns[2:]]
    table.insert(0, "feature", name)
    axis = curve.axes[0]
    if axis.kind == DATE:
        unit = "s" if (days(axis.values) % 1.0).any() else "D"
        table["value"] = np.datetime_as_string(axis.values, unit=unit)
    return table.astype({"value": object})  # numbers, categories and dates below each other


def _of_classes(tables: Mapping[str, list[Any]]) -> Any:
    """Return tables by class as one; that of a single class has no column for it."""
    import pandas as pd

    joined = []
    for label, parts in tables.items():
        table = pd.concat(parts, ignore_index=True)
        if len(tables) > 1:
            table.insert(0, "class", label)
        joined.append(table)
    return pd.concat(joined, ignore_index=True)


def _save(path: Path, ex: Explanation, shown: np.ndarray, full: bool) -> list[str]:
    """Save the explanation of the ``shown`` rows; return notes on what is left out of it."""
    left_out = []
    some = len(shown) < len(ex)
    saved = ex[shown] if some else ex
    if len(shown) < len(ex) - ex.marked.sum():
        left_out.append(
            f"The report and explanation.json have {len(shown):,} of {len(ex):,} rows: the"
            f" {EXTREME_ROWS} with the highest and the {EXTREME_ROWS} with the lowest predictions,"
            " and a random sample of the others."
        )
    if not full:
        saved, note = thinned(saved)
        left_out += [note] if note else []
    n, d = saved.values.shape
    if not full and n * d * d > MOST_COVARIANCES and saved.var is not None:
        left_out.append(f"explanation.json omits the {n * d * d:,} covariances between features.")
        if saved.cov is not None:  # wide tables are explained without
            saved = replace(saved, distribution=saved.distribution.without_cov())
    saved.save(path)
    return left_out


def _write_attributions(folder: Path, table: Any) -> None:
    """Write a table of attributions as CSV, and as Parquet if pyarrow can be used."""
    table.to_csv(folder / "attributions.csv", index=False)
    if is_usable("pyarrow"):
        table.to_parquet(folder / "attributions.parquet", index=False)


def thinned(ex: Explanation, classes: int = 1) -> tuple[Explanation, str]:
    """Return an explanation small enough for a file, and a note on what is left out of it."""
    known = ex.distribution
    if not isinstance(known, Draws):
        return ex, ""
    most = MOST_SAVED // max(1, ex.values.size * classes)
    if len(known.draws) <= most:
        return replace(ex, distribution=known.without_cov()), ""
    if most < FEWEST_SAVED:
        means = replace(ex, distribution=Gaussian(known.mean), draw_error=None)
        note = "explanation.json has means only; attributions.csv and the report have intervals."
        return means, note
    note = (
        f"explanation.json has {most} of the {len(known.draws)} draws of each row; tables, pictures"
        " and the report use all of them."
    )
    fewer = Draws(known.draws[:most], mean=known.mean, var=known.var)
    return replace(ex, distribution=fewer), note


def _write_compact(path: Path, ex: Explanation) -> None:
    """Write one compressed line per row and feature: rounded attribution and standard deviation."""
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
    """Return numbers with `DIGITS` significant digits; extremely small or large ones unchanged."""
    size = np.floor(np.log10(np.abs(values), out=np.zeros_like(values), where=values != 0))
    unit = 10.0 ** (DIGITS - 1 - np.clip(size, -200, 200))
    return np.where(np.abs(size) < 200, np.round(values * unit) / unit, values)
