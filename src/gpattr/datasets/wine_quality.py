"""Wine Quality: eleven measurements of Portuguese Vinho Verde wines, and the scores of experts."""

from __future__ import annotations

import io
from os import PathLike
from typing import TYPE_CHECKING

import pandas as pd

from gpattr._core.validation import check_choice
from gpattr.datasets.archive import Source, as_bunch

if TYPE_CHECKING:
    from sklearn.utils import Bunch

URL = "https://archive.ics.uci.edu/static/public/186/wine+quality.zip"
COLOURS = {
    "red": (1599, "6cbce7c460f9718dc220333992d81e68478d12c73f052055ab1a97ae99fb1a72"),
    "white": (4898, "9c895f87a52f23be9154043b1e774f6594fc153acdf9410d8d5bff92b07b3a2b"),
}
UNITS = {
    "fixed acidity": "g/l",
    "volatile acidity": "g/l",
    "citric acid": "g/l",
    "residual sugar": "g/l",
    "chlorides": "g/l",
    "free sulfur dioxide": "mg/l",
    "total sulfur dioxide": "mg/l",
    "density": "g/ml",
    "pH": "",
    "sulphates": "g/l",
    "alcohol": "% vol",
    "quality": "score, 0 to 10",
}
ABOUT = (
    "{} wines of the Portuguese Vinho Verde region: eleven physicochemical measurements and the"
    " median score of at least three experts. The file contains repeated rows."
)
SOURCE = (
    "P. Cortez, A. Cerdeira, F. Almeida, T. Matos and J. Reis (2009), Wine Quality, UCI Machine"
    " Learning Repository, doi:10.24432/C56S3T"
)


def load_wine_quality(
    colour: str = "red", *, data_home: str | PathLike[str] | None = None
) -> Bunch:
    """Return the red (1599) or white (4898) wines: eleven features, and the target ``quality``.

    The data are read from the folder ``data_home`` or ``GPATTR_DATA_DIR``, if given, or else from
    the user's cache, which the first call fills from the official archive.

    Examples
    --------
    >>> from gpattr.datasets import load_wine_quality
    >>> load_wine_quality("white").data.shape  # doctest: +SKIP
    (4898, 11)
    """
    check_choice("colour", colour, tuple(COLOURS))
    rows, values = COLOURS[colour]
    frame = Source(URL, (f"winequality-{colour}.csv",), _read, (rows, 12), values).load(data_home)
    about = ABOUT.format(colour.capitalize())
    return as_bunch(
        frame, list(frame.columns[:-1]), "quality", units=UNITS, about=about, source=SOURCE
    )


def _read(_: str, content: bytes) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(content), sep=";").set_axis(list(UNITS), axis="columns")
