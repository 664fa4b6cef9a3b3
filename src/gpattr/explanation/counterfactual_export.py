"""Counterfactuals as text, frames and JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.readable_numbers import readable
from gpattr.explanation.text import Table, as_html, as_lines

if TYPE_CHECKING:
    import pandas as pd

    from gpattr.explanation.counterfactual import Counterfactual

SHOWN = 10


def plain(result: Counterfactual) -> str:
    """Return the counterfactual as lines of text."""
    if not result.changes:
        return "\n".join([*heading(result), *(f"  {note}" for note in _notes(result))])
    return as_lines(heading(result), _table(result), _notes(result))


def html(result: Counterfactual) -> str:
    """Return the counterfactual as an HTML table for notebooks."""
    return as_html(heading(result), _table(result), _notes(result))


def condition(result: Counterfactual) -> str:
    """Return the condition in words: "predicted price at least 200 with probability 0.95"."""
    side = "at least" if result.direction == "at_least" else "at most"
    return f"{result.quantity} {side} {readable(result.target)} with probability {result.level:g}"


def heading(result: Counterfactual) -> list[str]:
    """Return what was asked, and what was found."""
    if not result.found:
        return [
            f"No counterfactual found: {condition(result)} is not reached by changing"
            f" {_listed(result.features)} within bounds",
            f"the highest probability found is {_share(result.probability)},"
            + (f" {_length(result.distance)} away" if result.changes else " at x"),
        ]
    if not result.changes:
        return [f"Counterfactual: {condition(result)} holds for the row as it is"]
    count = f"{result.n_changed} of {len(result.feature_names)} features"
    return [
        f"Counterfactual: {condition(result)}",
        f"change of {count}, {_length(result.distance)}",
    ]


def order(result: Counterfactual) -> list[str]:
    """Return the features that change, the largest change first."""
    return sorted(result.changes, key=lambda name: -abs(result.steps[name]))


def shown(value: Any) -> str:
    """Return a value of a feature as text."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    return readable(float(value), 5) if number and not isinstance(value, bool) else str(value)


def attributions(result: Counterfactual) -> dict[str, tuple[float, float | None]]:
    """Return mean and standard deviation of the attributions of the change, by feature."""
    ex = result.explanation
    std = [None] * ex.shape[1] if ex.std is None else ex.std[0].tolist()
    return dict(zip(ex.feature_names, zip(ex.values[0].tolist(), std, strict=True), strict=True))


def to_frame(result: Counterfactual) -> pd.DataFrame:
    """Return one line for each feature that changes."""
    import pandas as pd

    names, known = order(result), attributions(result)
    columns: dict[str, Any] = {
        "old": [result.changes[name][0] for name in names],
        "new": [result.changes[name][1] for name in names],
        "standard_units": [result.steps[name] for name in names],
    }
    if all(name in known for name in names):
        columns["attribution"] = [known[name][0] for name in names]
        if result.explanation.std is not None:
            columns["std"] = [known[name][1] for name in names]
    return pd.DataFrame(columns, index=pd.Index(names, name="feature"))


def to_dict(result: Counterfactual, *, alternatives: bool = True) -> dict[str, Any]:
    """Return the facts as JSON values."""
    known, (before, after) = attributions(result), result.intervals()
    facts = {
        "found": result.found,
        "quantity": result.quantity,
        "output": result.output,
        "direction": result.direction,
        "target": result.target,
        "level": result.level,
        "probability": result.probability,
        "probability_before": result.probability_before,
        "prediction": result.prediction,
        "prediction_before": result.prediction_before,
        "interval": after.tolist(),
        "interval_before": before.tolist(),
        "interval_level": 0.95,
        "distance": result.distance,
        "features": list(result.features),
        "changes": [
            {
                "feature": name,
                "old": _plain(result.changes[name][0]),
                "new": _plain(result.changes[name][1]),
                "standard_units": result.steps[name],
                "attribution": known.get(name, (None, None))[0],
                "std": known.get(name, (None, None))[1],
            }
            for name in order(result)
        ],
    }
    if alternatives:
        facts["alternatives"] = [to_dict(one, alternatives=False) for one in result.alternatives]
    return facts


def _plain(value: Any) -> Any:
    """Return a value of a feature as a JSON value."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def _table(result: Counterfactual) -> Table:
    known, names = attributions(result), order(result)
    explained = all(name in known for name in names)
    header = ["feature", "from", "to", "standard units"] + ["attribution"] * explained
    lines = []
    for name in names[:SHOWN]:
        old, new = result.changes[name]
        line = [name, shown(old), shown(new), readable(result.steps[name], 3, sign="+")]
        if explained:
            value, std = known[name]
            spread = "" if std is None else f" ± {readable(std, 3)}"
            line.append(readable(value, sign="+") + spread)
        lines.append(line)
    return header, lines


def _notes(result: Counterfactual) -> list[str]:
    notes = [f"and {result.n_changed - SHOWN} more"] if result.n_changed > SHOWN else []
    ends = result.intervals(result.interval_level)
    before, after = (
        f"{readable(value)} [{readable(low)}, {readable(high)}]"
        for value, (low, high) in zip(result.predictions, ends, strict=True)
    )
    sign = "≥" if result.direction == "at_least" else "≤"
    chances = f"P({sign} {readable(result.target)})"
    if not result.changes:
        notes.append(f"prediction {before}, {chances} {_share(result.probability_before)}")
        return notes
    level = readable(100.0 * result.interval_level)
    notes.append(f"prediction {before} → {after} ({level} % intervals)")
    notes.append(f"{chances} {_share(result.probability_before)} → {_share(result.probability)}")
    others = [
        f"{one.n_changed} feature{'s' * (one.n_changed != 1)}, {readable(one.distance, 3)}"
        for one in result.alternatives
        if one.n_changed != result.n_changed
    ]
    return [*notes, *([f"alternatives: {'; '.join(others)}"] if others else [])]


def _length(distance: float) -> str:
    text = readable(distance)
    return f"{text} standard unit" + "s" * (text != "1")


def _share(probability: float) -> str:
    """Return a probability; the last digits count near 0 and 1."""
    near = min(probability, 1.0 - probability)
    if near and near < 1e-3:
        return f"{'' if probability < 0.5 else '1 − '}{near:.1e}"
    return f"{probability:.3f}"


def _listed(names: tuple[str, ...]) -> str:
    few = list(names[:5])
    if len(names) > 5:
        return ", ".join(few) + f" and {len(names) - 5} more"
    return " and ".join([", ".join(few[:-1]), few[-1]]) if len(few) > 1 else "".join(few)
