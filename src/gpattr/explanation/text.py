"""Headings, tables and notes of an explanation, short enough to read."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from gpattr._core.readable_numbers import readable, readable_all
from gpattr.distributions import Draws, Gaussian, Mixture, Point
from gpattr.explanation.axes import FEATURE, FEATURES
from gpattr.explanation.result import SHOWN, Table, counted, remark

if TYPE_CHECKING:
    from gpattr.explanation.explanation import Explanation

FEW = 4  # categories of a baseline in a heading
DOUBTFUL = 0.01  # the share of a variance by which it may be wrong before that is reported


def heading(ex: Explanation) -> list[str]:
    """Return the title, and where the numbers come from."""
    n = len(ex)
    what = "" if ex.quantity == "prediction" else f" of the {ex.quantity}"
    sizes = [counted(n, "row")]
    for axis, size in zip(ex.axes, ex.shape[1:], strict=True):
        sizes.append(f"{size} feature{'s' * (size != 1)}" if axis == FEATURE else f"{size} {axis}")
    baseline = f"baseline: {ex.baseline_name}{_categories(ex)}; " if has_baseline(ex) else ""
    kind = f"{remark(ex.attribution)}; " if remark(ex.attribution) else ""
    lines = [
        f"Explanation{what}: {' × '.join(sizes)}",
        f"{kind}{baseline}{_spread(ex)}{ex.method}, error at most {ex.error.max(initial=0.0):.0e}",
    ]
    if n and isinstance(ex.distribution, Mixture):
        lines.append(f"mixture of {len(ex.distribution.weights)} models{_between(ex)}")
    if note := variance_note(ex):
        lines.append(note)
    if n == 1:
        lines.append(_row(ex))
    return lines


def _categories(ex: Explanation) -> str:
    """Return a baseline's categories that several rows share; the table shows a single row's."""
    shared = {name: texts[0] for name, texts in ex.baseline_labels.items() if len(set(texts)) == 1}
    if len(ex) < 2 or not shared:
        return ""
    shown = [f"{name} {text}" for name, text in shared.items()][:FEW]
    more = f" and {len(shared) - FEW} more" if len(shared) > FEW else ""
    return f" ({', '.join(shown)}{more})"


def _row(ex: Explanation) -> str:
    """Return the prediction of the only row, and the baseline's."""
    name = ex.quantity if ex.quantity.startswith("predicted ") else ex.quantity.split(" of ")[0]
    if not has_baseline(ex):
        return f"row {ex.row_names[0]}: {name} {_aligned([ex.predictions[0]])[0]}"
    change = ex.predictions[0] - ex.base_values[0]
    prediction, base, size = _aligned([ex.predictions[0], ex.base_values[0], abs(change)])
    sign = "−" if change < 0 else "+"
    return f"row {ex.row_names[0]}: {name} {prediction} = baseline {base} {sign} {size}"


def _spread(ex: Explanation) -> str:
    """Return where the uncertainty comes from, before the method."""
    match ex.distribution:
        case Draws():
            errors = np.zeros(0) if ex.draw_error is None else ex.draw_error[~ex.marked]
            error = 0.0 if ex.draw_error is None else errors.max(initial=1e-5)
            accuracy = f", good to {error:.0e}" if error else ""
            return f"spread from {len(ex.distribution.draws)} draws{accuracy}; means by "
        case Point():
            return "known without uncertainty; "
        case _:
            return ""


def _between(ex: Explanation) -> str:
    """Return how much of the variance is that the models of a mixture differ, in words."""
    if ex.var is None or not len(ex):
        return ""
    apart, total = float((ex.share_between() * ex.var).sum()), float(ex.var.sum())
    return f", whose differences are {apart / total:.0%} of the variance" if total > 0 else ""


def has_baseline(ex: Explanation) -> bool:
    """Return whether anything is compared with a baseline."""
    return not len(ex) or not np.isnan(ex.base_values).all()


def known_note(ex: Explanation) -> str:
    """Return a sentence about numbers without uncertainty; none for others."""
    if not isinstance(ex.distribution, Point):
        return ""
    what = ex.quantity[:1].upper() + ex.quantity[1:]
    return f"{what}: a property of the model, whose attributions are known without uncertainty."


def variance_note(ex: Explanation) -> str:
    """Return a sentence about variances of few correct digits; mostly none."""
    if ex.var is None or ex.cov_error is None or not len(ex):
        return ""
    if isinstance(ex.distribution, Draws):
        return _drawn_note(ex)
    largest = ex.distribution.need("var").max(axis=1, initial=0.0)
    share = np.divide(ex.cov_error, largest, out=np.zeros_like(largest), where=largest > 0)
    doubtful = int((share > DOUBTFUL).sum())
    if not doubtful:
        return ""
    rows = "its row" if len(ex) == 1 else f"{doubtful:,} of {len(ex):,} rows"
    return (
        f"Variances of {rows} are small differences of large numbers, and may be off by up to"
        f" {share.max():.0%} (cov_error); more noise, or targets without an exact trend, would"
        " leave more digits."
    )


def interval_note(ex: Explanation) -> str:
    """Return one sentence on the uncertainty that intervals include; none where it is not known."""
    if ex.var is None or not isinstance(ex.distribution, (Gaussian, Mixture)):
        return ""
    if isinstance(ex.distribution, Gaussian):
        return (
            "Intervals hold for the hyperparameters as they were learned; that these are not known"
            " exactly is not included."
        )
    apart, total = float((ex.share_between() * ex.var).sum()), float(ex.var.sum())
    share = f": {apart / total:.0%} of the variance of the attributions" if total > 0 else ""
    models = f"by a mixture of {len(ex.distribution.weights)} models"
    return f"Intervals include that hyperparameters are not known, {models}{share}."


def _drawn_note(ex: Explanation) -> str:
    """Return how far variances may be off that come from draws."""
    assert ex.cov_error is not None
    var = ex.distribution.need("var").max(axis=1, initial=0.0)
    share = np.divide(ex.cov_error, var, out=np.zeros_like(var), where=var > 0)
    return (
        "Variances come from draws: three standard errors are up to"
        f" {max(share.max(), 0.01):.0%} of them (cov_error)."
    )


def table(ex: Explanation) -> Table:
    """Return the largest entries: of one row, or of many rows together."""
    if len(ex) == 0:
        return [_first(ex)], [[name] for name in _entries(ex)[:SHOWN]]
    return _one_row(ex) if len(ex) == 1 else _many_rows(ex)


def _one_row(ex: Explanation) -> Table:
    header, columns = [_first(ex)], []
    if ex.axes == FEATURES:
        header.append("data")
        texts = [ex.labels.get(name, ("–",))[0] for name in ex.feature_names]
        columns.append(_inputs(ex.data[0], texts))
    if ex.axes == FEATURES and ex.baseline_weights is None and has_baseline(ex):
        header.append("baseline")
        texts = [ex.baseline_labels.get(name, ("–",))[0] for name in ex.feature_names]
        columns.append(_inputs(ex.baselines[0], texts))
    values = ex.distribution.mean[0]
    header.append("attribution" if ex.axes == FEATURES else "value")
    columns.append(_aligned(values, "+"))
    var = _uncertainty(ex)
    if var is not None:
        header += ["± std", "P(> 0)"]
        positive = ex.distribution.prob_positive()[0]
        columns += [_aligned(np.sqrt(var[0])), [f"{p:.3f}" for p in positive]]
    return header, _lines(ex, np.abs(values), columns)


def _many_rows(ex: Explanation) -> Table:
    values, var = ex.distribution.mean, _uncertainty(ex)
    size = np.abs(values).mean(axis=0)
    header = [_first(ex), "mean |values|", "min", "max"]
    columns = [(size, ""), (values.min(axis=0), "+"), (values.max(axis=0), "+")]
    if var is not None:
        header.append("rms std")
        columns.append((np.sqrt(var.mean(axis=0)), ""))
    largest = max(float(np.abs(values).max(initial=0.0)) for values, _ in columns)
    return header, _lines(ex, size, [_aligned(part, sign, largest) for part, sign in columns])


def _uncertainty(ex: Explanation) -> np.ndarray | None:
    """Return the variances (n, q) where there are any to show."""
    return None if isinstance(ex.distribution, Point) else ex.distribution.var


def _first(ex: Explanation) -> str:
    """Return the title of the column that names the entries."""
    return " × ".join(ex.axes) or "value"


def _entries(ex: Explanation) -> list[str]:
    """Return the name of each entry of a row: "alpha", "alpha × beta", or the quantity."""
    names = [" × ".join(map(str, labels)) for labels in product(*ex.axis_labels())]
    return names if ex.axes else [ex.quantity]


def _lines(ex: Explanation, size: np.ndarray, columns: list[list[str]]) -> list[list[str]]:
    order, names = np.argsort(-size, kind="stable")[:SHOWN], _entries(ex)
    return [[names[i], *(column[i] for column in columns)] for i in order]


def notes(ex: Explanation) -> list[str]:
    """Return how many entries are not in the table, and the omissions of a selection."""
    hidden = ex.distribution.shape[1] - SHOWN
    found = [f"… and {hidden} smaller"] if hidden > 0 else []
    if len(ex) == 1 and ex.axes == FEATURES:
        elsewhere = ex.predictions[0] - ex.base_values[0] + ex.delta[0] - ex.values[0].sum()
        if abs(elsewhere) > ex.error[0] * (1 + ex.shape[1]):
            found.append(f"features left out of this selection: {readable(elsewhere, 3, sign='+')}")
    return found


def _inputs(values: np.ndarray, texts: Iterable[str]) -> list[str]:
    return [
        text if value != value else readable(value, 6)
        for value, text in zip(values, texts, strict=True)
    ]


def _aligned(values: Iterable[float], sign: str = "", largest: float | None = None) -> list[str]:
    """Return numbers rounded at the same place, four digits for the largest."""
    return readable_all(values, sign=sign, largest=largest)
