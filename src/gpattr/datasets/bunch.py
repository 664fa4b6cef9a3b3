"""Bunches: tables with their description, as scikit-learn's loaders return them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from sklearn.utils import Bunch

LICENCE = "CC BY 4.0"


def as_bunch(
    frame: pd.DataFrame,
    features: list[str],
    target: str,
    *,
    units: dict[str, str],
    about: str,
    source: str,
) -> Bunch:
    """Return frame, data and target with names, units, description, source and licence."""
    from sklearn.utils import Bunch

    words: dict[str, Any] = {
        "units": dict(units),
        "description": about,
        "DESCR": about,
        "source": source,
        "licence": LICENCE,
    }
    names = list(features)
    return Bunch(
        frame=frame,
        data=frame[names],
        target=frame[target],
        feature_names=names,
        target_name=target,
        **words,
    )
