"""Real estate valuation: prices of houses in New Taipei in 2012 and 2013."""

from __future__ import annotations

import io
from os import PathLike
from typing import TYPE_CHECKING

import pandas as pd

from gpattr._core.optional import optional
from gpattr.datasets.archive import Source, as_bunch

if TYPE_CHECKING:
    from sklearn.utils import Bunch

URL = "https://archive.ics.uci.edu/static/public/477/real+estate+valuation+data+set.zip"
NAMES = ("Real estate valuation data set.xlsx", "real_estate_valuation.csv")
DIGEST = "63bf25b1ada9e0c6f7a9e4da24c78c66c640cbe47b674c161ece1291c94ac1bb"
UNITS = {
    "transaction date": "year",
    "house age": "years",
    "distance to MRT": "m",
    "convenience stores": "number",
    "latitude": "degrees north",
    "longitude": "degrees east",
    "price per area": "10 000 TWD per ping",
}
ABOUT = (
    "414 house sales in the Sindian district of New Taipei, Taiwan: date of the sale, age of the"
    " house, distance to the nearest MRT (metro) station, number of convenience stores within"
    " walking distance, position, and the price per unit area (a ping is 3.3 m²). Rows are labelled"
    " by their number in the file, from 1."
)
SOURCE = (
    "I-C. Yeh (2018), Real Estate Valuation, UCI Machine Learning Repository, doi:10.24432/C5J30W"
)


def load_taipei_housing(*, data_home: str | PathLike[str] | None = None) -> Bunch:
    """Return 414 houses: six features, and the target ``price per area``.

    The index is the number of the house in the file.

    The data are read from the folder ``data_home`` or ``GPATTR_DATA_DIR``, if given, or else from
    the user's cache, which the first call fills from the official archive.

    Examples
    --------
    >>> from gpattr.datasets import load_taipei_housing
    >>> load_taipei_housing().data.shape  # doctest: +SKIP
    (414, 6)
    """
    frame = Source(URL, NAMES, _read, (414, 8), DIGEST).load(data_home).set_index("No")
    return as_bunch(
        frame, list(UNITS)[:-1], "price per area", units=UNITS, about=ABOUT, source=SOURCE
    )


def _read(name: str, content: bytes) -> pd.DataFrame:
    if name.endswith(".csv"):
        table = pd.read_csv(io.BytesIO(content))
    else:
        optional("openpyxl", "The published workbook")
        table = pd.read_excel(io.BytesIO(content))
    table = (
        table.dropna(how="all")
        .set_axis(["No", *UNITS], axis="columns")
        .astype(float)
        .astype({"No": int})
    )
    # The spreadsheet holds months as twelfths of a year, its CSV exports three decimals of them:
    # three decimals for both.
    return table.assign(**{"transaction date": table["transaction date"].round(3)})
