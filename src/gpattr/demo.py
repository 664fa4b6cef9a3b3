"""The demonstration: explanations of the predicted disease progression of diabetes patients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from gpattr.explainer.explainer import Explainer
from gpattr.explanation.explanation import Explanation
from gpattr.report import write_report
from gpattr.tables import Columns, TableModel

if TYPE_CHECKING:
    import pandas as pd

LABELS = {
    "bmi": "body mass index",
    "bp": "blood pressure",
    "s1": "total cholesterol",
    "s2": "LDL cholesterol",
    "s3": "HDL cholesterol",
    "s4": "cholesterol ratio",
    "s5": "log triglycerides",
    "s6": "blood sugar",
}
TARGET = "disease progression"
SEXES = {1.0: "code 1", 2.0: "code 2"}
NOTE = "Sex is code 1 or code 2: the documentation of the data does not say which is which."
HELD_OUT, SHOWN, LEVEL = 42, 4, 0.95


def run(folder: Path, console: Console, *, quiet: bool = False) -> Explanation:
    """Train, explain, print the largest attributions, and write a table, a picture and a report.

    All three start with the patient whose prediction is farthest from the average patient's.
    """
    patients = load_patients()
    columns = Columns.of(patients, TARGET)
    X, y = columns.features(patients), columns.targets(patients)
    order = np.random.default_rng(0).permutation(len(X))
    train, held_out = order[HELD_OUT:], order[:HELD_OUT]
    if not quiet:
        console.print(
            f"[bold]Diabetes[/bold]: {TARGET} of {len(train)} patients, {X.shape[1]} features,"
            f" {HELD_OUT} held out"
        )
    model = TableModel.fit(X.iloc[train], y[train], columns, verbose=not quiet)
    explainer = Explainer(model.posterior, baseline="mean", baseline_name="average patient")
    ex = replace(explainer(X.iloc[held_out]), quantity=f"predicted {TARGET}")
    first = farthest(ex)
    if not quiet:
        console.print(
            f"R² on the held-out patients: {model.score(X.iloc[held_out], y[held_out]):.2f}"
        )
        console.print(strongest(ex, first[:SHOWN]))
    table, picture, page = (
        folder / name for name in ("attributions.csv", "attributions.png", "report.html")
    )
    ex.to_frame(LEVEL).to_csv(table, index=False)
    draw(ex[int(first[0])], picture)
    write_report(
        page,
        ex,
        importance=explainer.importance(X.iloc[held_out]),
        explainer=explainer,
        measured=y[held_out],
        notes=[f"{HELD_OUT} patients, none of whom the model was trained on.", NOTE],
        title=f"Predictions of {TARGET}, explained",
        level=LEVEL,
        data_name="scikit-learn's diabetes data",
        selected_row=int(first[0]),
    )
    name = ex.row_names[first[0]]
    console.print(f"All {len(ex)} patients: {table}", soft_wrap=True, highlight=False)
    console.print(f"Picture of {name}: {picture}", soft_wrap=True, highlight=False)
    console.print(f"Report, starting with {name}: {page}", soft_wrap=True, highlight=False)
    return ex


def load_patients() -> pd.DataFrame:
    """Return scikit-learn's diabetes data in the original units, with the target last."""
    from sklearn.datasets import load_diabetes

    data: Any = load_diabetes(as_frame=True, scaled=False)
    patients = data.data.rename(columns=LABELS)
    patients["sex"] = patients["sex"].map(SEXES)
    patients.index = [f"Patient {i}" for i in patients.index]
    return patients.assign(**{TARGET: data.target.to_numpy()})


def farthest(ex: Explanation) -> np.ndarray:
    """Return the positions of the patients by decreasing distance from the average patient."""
    return np.argsort(-np.abs(ex.predictions - ex.base_values), kind="stable")


def strongest(ex: Explanation, rows: np.ndarray) -> Table:
    """Return a table of the largest attributions of the patients at these positions."""
    table = Table(
        title="Largest attributions, compared with the average patient",
        title_justify="left",
    )
    for name in ("patient", "prediction", "feature", "value", "attribution", "P(sign)"):
        table.add_column(name, justify="left" if name == "feature" else "right")
    assert ex.std is not None
    positive = ex.prob_positive()
    for row in rows:
        for place, i in enumerate(np.argsort(-np.abs(ex.values[row]))[:3]):
            first = (
                (str(ex.row_names[row]).removeprefix("Patient "), f"{ex.predictions[row]:.1f}")
                if place == 0
                else ("", "")
            )
            sure = max(positive[row, i], 1 - positive[row, i])
            change = f"{ex.values[row, i]:+.1f} ± {ex.std[row, i]:.1f}"
            name = ex.feature_names[i]
            value = ex.labels[name][row] if name in ex.labels else f"{ex.data[row, i]:.4g}"
            table.add_row(
                *first,
                name,
                value,
                change,
                "> 0.999" if sure > 0.999 else f"{sure:.3f}",
                end_section=place == 2,
            )
    average = f"{ex.base_values[0]:.1f}"
    table.caption = f"± is one standard deviation; prediction for the average patient: {average}"
    table.caption_justify = "left"
    return table


def draw(ex: Explanation, path: Path) -> None:
    """Draw the attributions of one patient with their credible intervals."""
    from matplotlib.figure import Figure

    from gpattr import plots

    figure = Figure(figsize=(8.4, 4.8), layout="constrained")
    plots.waterfall(ex, ax=figure.subplots(), level=LEVEL)
    figure.savefig(path, dpi=160)
