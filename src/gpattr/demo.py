"""The demonstration: why does a Gaussian process expect this patient's diabetes to progress?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from gpattr.estimators import GPRegressor
from gpattr.explainer import Explainer
from gpattr.explanation import Explanation
from gpattr.report import write_report

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
HELD_OUT, SHOWN, LEVEL = 42, 4, 0.95


def run(folder: Path, console: Console, *, quiet: bool = False) -> Explanation:
    """Train, explain, print the strongest attributions; write a table, a picture and a report to the folder."""
    X, y = load_patients()
    order = np.random.default_rng(0).permutation(len(X))
    train, held_out = order[HELD_OUT:], order[:HELD_OUT]
    if not quiet:
        console.print(f"[bold]Diabetes progression[/bold], {len(train)} patients × {X.shape[1]} features, {HELD_OUT} held out")
    model = GPRegressor(verbose=not quiet).fit(X.iloc[train], y.iloc[train])
    explainer = Explainer(model, baseline="mean")
    ex = explainer(X.iloc[held_out])
    if not quiet:
        console.print(f"score on the held-out patients: R² = {model.score(X.iloc[held_out], y.iloc[held_out]):.2f}")
        console.print(strongest(ex))
    table, picture, page = (folder / name for name in ("attributions.csv", "attributions.png", "report.html"))
    ex.to_frame(LEVEL).to_csv(table, index=False)
    draw(ex[most_certain(ex)], picture)
    importance, measured = explainer.importance(X.iloc[held_out]), y.iloc[held_out]
    write_report(page, ex, importance=importance, explainer=explainer, measured=measured, title="Why the model expects this")
    console.print(f"All {len(ex)} patients: {table}", soft_wrap=True, highlight=False)
    console.print(f"One of them as a picture: {picture}", soft_wrap=True, highlight=False)
    console.print(f"A page to look at, in any browser: {page}", soft_wrap=True, highlight=False)
    return ex


def load_patients() -> tuple[pd.DataFrame, pd.Series]:
    """Return scikit-learn's bundled diabetes data in their own units, with readable names."""
    from sklearn.datasets import load_diabetes

    data: Any = load_diabetes(as_frame=True, scaled=False)
    return data.data.rename(columns=LABELS), data.target


def strongest(ex: Explanation) -> Table:
    """Return a table of the strongest attributions of a few patients."""
    table = Table(title="What moves the prediction away from that of the average patient", title_justify="left")
    for name, side in (
        ("patient", "right"),
        ("prediction", "right"),
        ("feature", "left"),
        ("value", "right"),
        ("attribution", "right"),
        ("P(sign)", "right"),
    ):
        table.add_column(name, justify=side)  # pyright: ignore[reportArgumentType]
    assert ex.std is not None
    positive = ex.prob_positive()
    rows = np.argsort(-np.abs(ex.predictions - ex.base_values))[:SHOWN]
    for row in rows:
        for place, i in enumerate(np.argsort(-np.abs(ex.values[row]))[:3]):
            first = (str(ex.row_names[row]), f"{ex.predictions[row]:.0f}") if place == 0 else ("", "")
            sure = max(positive[row, i], 1 - positive[row, i])
            change = f"{ex.values[row, i]:+.1f} ± {ex.std[row, i]:.1f}"
            table.add_row(*first, ex.feature_names[i], f"{ex.data[row, i]:.4g}", change, f"{sure:.3f}", end_section=place == 2)
    table.caption = f"± is one standard deviation; the average patient is predicted at {ex.base_values[0]:.0f}"
    table.caption_justify = "left"
    return table


def most_certain(ex: Explanation) -> int:
    """Return the patient whose strongest attribution stands out most clearly from its uncertainty."""
    assert ex.std is not None
    return int((np.abs(ex.values) / ex.std).max(axis=1).argmax())


def draw(ex: Explanation, path: Path) -> None:
    """Draw the attributions of one patient with their credible intervals."""
    from matplotlib.figure import Figure

    from gpattr import plots

    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = plots.waterfall(ex, ax=figure.subplots(), level=LEVEL)
    predicted, average = ex.predictions[0], ex.base_values[0]
    axes.set_title(
        f"Patient {ex.row_names[0]}: predicted {predicted:.0f}, average patient {average:.0f}", loc="left", fontsize=11
    )
    axes.set_xlabel(f"predicted progression, with {LEVEL:.0%} credible intervals")
    figure.savefig(path, dpi=160)
