"""What every loader returns: a table with the words that belong to it, as scikit-learn's loaders
do.
"""

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
    """Return frame, data, target and what is known about them: names, units, description, source
    (with its DOI) and licence.
    """
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
