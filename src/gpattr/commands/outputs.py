"""Outputs of ``gpattr explain``: the list of files that it writes to its folder.

Another output is another entry of `OUTPUTS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

from gpattr import plots
from gpattr._core.optional import is_usable
from gpattr.distributions import Draws, Gaussian
from gpattr.explanation.dependence import Dependence
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.feature_grid import DATE, days
from gpattr.explanation.multi_output import MultiOutputExplanation
from gpattr.report import write_report

if TYPE_CHECKING:
    from gpattr.commands.explain import Request, Result

WHOLE = 100_000  # attributions, rows × features, up to which everything is written: some 30 MB
MOST_COVARIANCES = 1_000_000  # written to a file, at 20 bytes each
MOST_SAVED, FEWEST_SAVED = 500_000, 20  # draws written to explanation.json in total, and per row
SHOWN_ROWS, FEWEST_SHOWN = 5000, 500  # of many rows, on the page; fewer with many features
EXTREME_ROWS = 100  # shown rows with the highest predictions, and as many with the lowest
DIGITS = 6  # of attributions of many rows
WATERFALLS = 3
BOX = "□"
LONGEST = 45  # letters at a tick: longer names would leave no space for the axes
MISSING_LETTERS = (
    "Some characters of the names are missing from the installed fonts, and are boxes in the"
    " pictures; the report shows them."
)


def write_outputs(folder: Path, request: Request, result: Result) -> list[str]:
    """Write all outputs; return notes on omissions."""
    notes: list[str] = []
    for output in OUTPUTS:
        if output.when(result):
            so_far = replace(result, notes=[*result.notes, *notes])
            notes += output.write(folder, request, so_far) or []
            notes = list(dict.fromkeys(notes))  # several pictures may lack letters
    return notes


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


def _shown(request: Request, result: Result) -> np.ndarray:
    """Return the positions of the rows on the page, none of which is marked."""
    if result.several:
        return result.good
    return result.good[shown_rows(result.unmarked[""], request.full)]


# Files and tables


def _save_explanation(folder: Path, request: Request, result: Result) -> list[str]:
    path = folder / "explanation.json"
    if result.several:
        found = result.explanations
        saved = {label: thinned(ex, len(found)) for label, ex in found.items()}
        MultiOutputExplanation({label: ex for label, (ex, _) in saved.items()}).save(path)
        return [note for _, note in saved.values() if note]
    return _save(path, result.first, _shown(request, result), request.full)


def _save(path: Path, ex: Explanation, shown: np.ndarray, full: bool) -> list[str]:
    """Save the explanation of the ``shown`` rows; return notes on omissions."""
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


def thinned(ex: Explanation, classes: int = 1) -> tuple[Explanation, str]:
    """Return an explanation small enough for a file, and a note on its omissions."""
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


def _write_importance(folder: Path, request: Request, result: Result) -> None:
    tables = {
        label: [each.to_frame(request.level).reset_index()]
        for label, each in result.importances.items()
    }
    _of_classes(tables).to_csv(folder / "importance.csv", index=False)


def _write_all_attributions(folder: Path, request: Request, result: Result) -> list[str]:
    if not result.several and result.first.values.size > WHOLE and not request.full:
        _write_compact(folder / "attributions.csv.gz", result.first)
        return [
            f"attributions.csv.gz has every row, to {DIGITS} digits and without intervals; --full"
            " writes everything."
        ]
    tables = {label: [ex.to_frame(request.level)] for label, ex in result.explanations.items()}
    write_attributions(folder, _of_classes(tables))
    return []


def write_attributions(folder: Path, table: Any) -> None:
    """Write a table of attributions as CSV, and as Parquet if pyarrow can be used."""
    table.to_csv(folder / "attributions.csv", index=False)
    if is_usable("pyarrow"):
        table.to_parquet(folder / "attributions.parquet", index=False)


def _write_compact(path: Path, ex: Explanation) -> None:
    """Write one compressed line per row and feature: rounded attribution and standard deviation."""
    table: Any = ex.to_frame()
    names = ("row", "feature", "data", "label", "attribution", "std")
    table = table[[name for name in names if name in table]]
    for name in ("attribution", "std"):
        if name in table:
            table[name] = rounded(table[name].to_numpy())
    table.to_csv(path, index=False, compression={"method": "gzip", "compresslevel": 3, "mtime": 0})


def rounded(values: np.ndarray) -> np.ndarray:
    """Return numbers with `DIGITS` significant digits; extremely small or large ones unchanged."""
    size = np.floor(np.log10(np.abs(values), out=np.zeros_like(values), where=values != 0))
    unit = 10.0 ** (DIGITS - 1 - np.clip(size, -200, 200))
    return np.where(np.abs(size) < 200, np.round(values * unit) / unit, values)


def _write_curves(folder: Path, request: Request, result: Result) -> None:
    curves = {
        label: [_tidy(curve, request.level) for curve in found]
        for label, found in result.whole.curves.items()
    }
    _of_classes(curves).to_csv(folder / "dependence.csv", index=False)


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


def _write_indices(folder: Path, request: Request, result: Result) -> None:
    indices = {
        label: [found.to_frame(request.level).reset_index()]
        for label, found in result.whole.indices.items()
    }
    _of_classes(indices).to_csv(folder / "sobol.csv", index=False)


def _of_classes(tables: Mapping[str, list[Any]]) -> Any:
    """Return tables by class as one; a single class has no column for it."""
    import pandas as pd

    joined = []
    for label, parts in tables.items():
        table = pd.concat(parts, ignore_index=True)
        if len(tables) > 1:
            table.insert(0, "class", label)
        joined.append(table)
    return pd.concat(joined, ignore_index=True)


# Pictures


def _draw_importance(folder: Path, request: Request, result: Result) -> list[str]:
    ends = endings(result.unmarked)
    return _notes_on(
        _draw(
            folder / f"importance{ends[label]}.png",
            request,
            ex,
            plots.bar,
            result.importances[label],
        )
        for label, ex in result.unmarked.items()
    )


def _draw_beeswarm(folder: Path, request: Request, result: Result) -> list[str]:
    ends = endings(result.unmarked)
    return _notes_on(
        _draw(folder / f"beeswarm{ends[label]}.png", request, ex, plots.beeswarm, ex)
        for label, ex in result.unmarked.items()
    )


def _draw_heatmap(folder: Path, request: Request, result: Result) -> list[str]:
    ex = result.unmarked[""]
    return _notes_on([_draw(folder / "heatmap.png", request, ex, plots.heatmap, ex)])


def _draw_rows(folder: Path, request: Request, result: Result) -> list[str]:
    """Draw the rows farthest from the baseline."""
    ex = result.unmarked[""]
    rows = np.argsort(-np.abs(ex.predictions - ex.base_values), kind="stable")[:WATERFALLS]
    return _notes_on(
        _draw(folder / f"row_{ex.row_names[k]}.png", request, ex, plots.waterfall, ex, int(k))
        for k in rows
    )


def _draw_curves(folder: Path, request: Request, result: Result) -> list[str]:
    """Draw all curves of a class in one picture."""
    import matplotlib.pyplot as plt

    curves, lacking = result.whole.curves, []
    for label, end in endings(curves).items():
        if curves[label]:
            figure = plots.dependence_grid(curves[label], level=request.level)[0].figure
            lacking.append(_save_picture(figure, folder / f"dependence{end}.png"))
            plt.close(figure)  # pyplot would keep it
    return _notes_on(lacking)


def _draw_indices(folder: Path, request: Request, result: Result) -> list[str]:
    lacking = []
    for label, end in endings(result.whole.indices).items():
        found = result.whole.indices[label]
        figure = Figure(figsize=(7.5, 1.9 + 0.5 * min(len(found), 10)), layout="constrained")
        plots.sobol_bar(found, ax=figure.subplots(), level=request.level)
        lacking.append(_save_picture(figure, folder / f"sobol{end}.png"))
    return _notes_on(lacking)


def _draw(path: Path, request: Request, ex: Explanation, draw: Any, *args: Any) -> bool:
    """Draw one picture; return whether characters are missing from its fonts."""
    height = 1.4 + 0.42 * min(ex.shape[1], 10)
    figure = Figure(figsize=(7.5, height), layout="constrained")
    draw(*args, ax=figure.subplots(), level=request.level)
    return _save_picture(figure, path)


def _notes_on(lacking: Iterable[bool]) -> list[str]:
    """Return a note if characters are missing from any picture; all of them are drawn."""
    return [MISSING_LETTERS] if any(list(lacking)) else []


def _save_picture(figure: Any, path: Path) -> bool:
    """Write a figure, with boxes for letters its fonts lack; return whether there are any.

    Matplotlib would draw boxes, or give up its layout, with a warning each; here they are replaced
    before the picture is drawn. Texts that are too long are shortened.
    """
    families = FontProperties().get_family()
    known = {
        code
        for name in families
        for code in get_font(findfont(FontProperties(family=[name]))).get_charmap()
    } | {ord("\n")}
    box = BOX if ord(BOX) in known else "?"
    lacking = False

    def drawn(text: str) -> str:
        nonlocal lacking
        result = "".join(letter if ord(letter) in known else box for letter in text)
        lacking = lacking or result != text
        return result

    axes: list[Any] = figure.findobj(Axis)
    for axis in axes:
        formatter = axis.get_major_formatter()
        if isinstance(formatter, FuncFormatter):  # called again whenever the figure is drawn
            formatter.func = lambda value, place, write=formatter.func: _shortened(
                drawn(write(value, place))
            )
    texts: list[Any] = figure.findobj(Text)
    for text in texts:
        text.set_text(drawn(text.get_text()))
    figure.savefig(path, dpi=150)
    return lacking


def _shortened(text: str) -> str:
    """Return a text, without its middle if it is too long: the end may be a value."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 21]}…{text[-20:]}"


def endings(labels: Iterable[str]) -> dict[str, str]:
    """Return how file names end by class, such as ``_setosa``; "" for a single one.

    They are distinct: letters and digits of the label, and a number where these are not enough.
    """
    labels = list(labels)
    if len(labels) == 1:
        return {labels[0]: ""}
    names: dict[str, str] = {}
    taken: set[str] = set()
    for k, label in enumerate(labels, 1):
        name = re.sub(r"\W+", "_", label).strip("_")[:40] or f"class_{k}"
        while name.lower() in taken:
            name = f"{name}_{k}"
        taken.add(name.lower())
        names[label] = f"_{name}"
    return names


def _write_page(folder: Path, request: Request, result: Result) -> None:
    shown = _shown(request, result)
    page = {
        label: each if len(shown) == len(each) else each[shown]
        for label, each in result.explanations.items()
    }
    label = next(iter(page))
    write_report(
        folder / "report.html",
        page if result.several else page[label],
        importance=result.importances if result.several else result.importances[label],
        dependence=dict(result.whole.curves),
        indices=dict(result.whole.indices),
        explainer=result.explainers[label],
        held_out=result.model.held_out,
        measured=None if result.observed is None else result.observed[shown],
        opening=result.opening,
        notes=[note for note in result.notes if note not in result.opening],
        title=f"Predictions of {result.model.columns.target}, explained",
        level=request.level,
        data_name=request.data.name,
    )


@dataclass(frozen=True)
class Output:
    """Files called ``name``, which ``write(folder, request, result)`` writes if ``when(result)``.

    It returns notes on what is left out, or None.
    """

    name: str
    write: Callable[[Path, Request, Result], list[str] | None]
    when: Callable[[Result], bool] = lambda result: True


# The page comes last: it shows the notes of all others.
OUTPUTS = (
    Output("explanation.json", _save_explanation),
    Output("importance.csv", _write_importance),
    Output("attributions.csv (.parquet, .csv.gz)", _write_all_attributions),
    Output("importance.png", _draw_importance),
    Output("beeswarm.png", _draw_beeswarm, lambda result: len(result.good) > 1),
    Output(
        "heatmap.png", _draw_heatmap, lambda result: len(result.good) > 1 and not result.several
    ),
    Output("row_….png", _draw_rows, lambda result: not result.several),
    Output("dependence.csv", _write_curves, lambda result: any(result.whole.curves.values())),
    Output("dependence.png", _draw_curves, lambda result: any(result.whole.curves.values())),
    Output("sobol.csv", _write_indices, lambda result: bool(result.whole.indices)),
    Output("sobol.png", _draw_indices, lambda result: bool(result.whole.indices)),
    Output("report.html", _write_page),
)
