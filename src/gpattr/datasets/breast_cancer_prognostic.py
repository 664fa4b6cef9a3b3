"""Breast Cancer Wisconsin (Prognostic): disease-free times and measurements of cell nuclei."""

from __future__ import annotations

import io
from os import PathLike
from typing import TYPE_CHECKING

import pandas as pd

from gpattr.datasets.archive import Source, as_bunch

if TYPE_CHECKING:
    from sklearn.utils import Bunch

URL = "https://archive.ics.uci.edu/static/public/16/breast+cancer+wisconsin+prognostic.zip"
DIGEST = "146bda18e2a534d32c85f316d5c290782b976767c4cebf01c3a67331ac8c936e"
MEASUREMENTS = (
    "radius",
    "texture",
    "perimeter",
    "area",
    "smoothness",
    "compactness",
    "concavity",
    "concave points",
    "symmetry",
    "fractal dimension",
)
FEATURES = [f"{which} {name}" for which in ("mean", "se of", "worst") for name in MEASUREMENTS]
UNITS = {"time": "months", "tumour size": "cm", "lymph nodes": "positive axillary nodes"}
ABOUT = (
    "198 patients after surgery for invasive breast cancer: ten measurements of the cell nuclei in"
    " a digitised image, each as mean, standard error (se) and mean of the three largest (worst),"
    " tumour size, positive lymph nodes (unknown for four), and the outcome: N, no recurrence, time"
    " is the disease-free time; R, recurrence, time is the time to it. Rows are labelled by the"
    " patient's number."
)
SOURCE = (
    "W. Wolberg, W. Street and O. Mangasarian (1995), Breast Cancer Wisconsin (Prognostic), UCI"
    " Machine Learning Repository, doi:10.24432/C5GK50"
)


def load_breast_cancer_prognostic(*, data_home: str | PathLike[str] | None = None) -> Bunch:
    """Return 198 patients: thirty features of cell nuclei, and the target ``time`` in months.

    ``frame`` also has the outcome: "N" for the 151 patients without recurrence, whose time is the
    disease-free time. Its tumour size and lymph nodes are not part of ``data``.

    The data are read from the folder ``data_home`` or ``GPATTR_DATA_DIR``, if given, or else from
    the user's cache, which the first call fills from the official archive.

    Examples
    --------
    >>> from gpattr.datasets import load_breast_cancer_prognostic
    >>> load_breast_cancer_prognostic().data.shape  # doctest: +SKIP
    (198, 30)
    """
    frame = (
        Source(URL, ("wpbc.data",), _read, (198, 35), DIGEST).load(data_home).set_index("patient")
    )
    return as_bunch(frame, FEATURES, "time", units=UNITS, about=ABOUT, source=SOURCE)


def _read(_: str, content: bytes) -> pd.DataFrame:
    columns = ["patient", "outcome", "time", *FEATURES, "tumour size", "lymph nodes"]
    table = pd.read_csv(io.BytesIO(content), header=None, na_values="?").set_axis(
        columns, axis="columns"
    )
    return table.astype(dict.fromkeys(["time", *FEATURES, "tumour size", "lymph nodes"], float))
