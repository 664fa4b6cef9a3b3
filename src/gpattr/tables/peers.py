"""Peers of a classifier: models of scikit-learn that are trained on the same rows in no time.

The explanations of a model that is clearly worse are those of the wrong model. Boosting is asked of
at least 300 rows: with fewer it takes longer than a fifth of the training, and learns little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _logistic_regression() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=10_000))


def _gradient_boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)


# The fewest rows of a table, and the model.
PEERS: dict[str, tuple[int, Callable[[], Any]]] = {
    "logistic regression": (0, _logistic_regression),
    "gradient boosting": (300, _gradient_boosting),
}


def predictions(n: int, X: Any, codes: np.ndarray, new: Any) -> dict[str, np.ndarray]:
    """Return the classes that peers trained on rows X of n predict for ``new`` rows, (r,) each."""
    rows, others = X.to_numpy(dtype=np.float64), new.to_numpy(dtype=np.float64)
    return {
        name: peer().fit(rows, codes).predict(others)
        for name, (fewest, peer) in PEERS.items()
        if n >= fewest
    }
