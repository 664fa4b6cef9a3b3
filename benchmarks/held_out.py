"""Held-out R² and coverage of every estimator, and the model's own estimates of them."""

from __future__ import annotations

import os
from functools import partial

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from timing import processor

from gpattr.datasets import load_taipei_housing, load_wine_quality
from gpattr.tables import Columns, TableModel
from gpattr.tables.held_out import HeldOut

FOLDS = 5


def held_out(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    lines = []
    for name, frame, targets in tables(quick):
        columns = Columns(tuple(frame.columns), {}, "target")
        for estimator in ("exact", "sparse", "random-features"):
            seconds, judged, said = judge(frame, targets, columns, estimator)
            line = {
                "what": f"{name}, {len(frame)} × {frame.shape[1]}, {estimator}",
                "R²": f"{judged.score:.2f}",
            }
            line |= {"in 95 %": f"{judged.inside[2]:.1%}", "in 50 %": f"{judged.inside[0]:.1%}"}
            assert said is not None
            line |= {
                "R², as said": f"{said.score:.2f}",
                "in 95 %, as said": f"{said.inside[2]:.1%}",
            }
            lines.append(line | {"processor time": f"{seconds:.1f} s"})
    return f"Targets of rows that are held out, in {FOLDS} parts, of training and all", lines


def judge(
    X: pd.DataFrame, y: np.ndarray, columns: Columns, estimator: str
) -> tuple[float, HeldOut, HeldOut | None]:
    """Return the time of one training, held-out performance, and the model's own estimate of it."""
    parts = np.array_split(np.random.default_rng(0).permutation(len(y)), FOLDS)
    means, variances, seconds, model = [], [], [], None
    for part in parts:
        others = np.delete(np.arange(len(y)), part)
        spent, model = processor(
            partial(TableModel.fit, X.iloc[others], y[others], columns, estimator=estimator)
        )
        mean, std = model.predict(X.iloc[part], return_std=True)
        means.append(mean)
        variances.append(std**2 + model.regressor.noise_variance_)
        seconds.append(spent)
    assert model is not None
    judged = HeldOut.of(y[np.concatenate(parts)], np.concatenate(means), np.concatenate(variances))
    return float(np.mean(seconds)), judged, model.held_out


def tables(quick: bool) -> list[tuple[str, pd.DataFrame, np.ndarray]]:
    patients = load_diabetes(as_frame=True, scaled=False)
    found = [("diabetes", patients.data, patients.target.to_numpy(dtype=float))]
    if "GPATTR_DATA_DIR" in os.environ:
        houses = load_taipei_housing()
        found.append(("houses of Taipei", houses.data, np.asarray(houses.target, dtype=float)))
        if not quick:
            wines = load_wine_quality()
            found.append(("red wines", wines.data, np.asarray(wines.target, dtype=float)))
    return found
