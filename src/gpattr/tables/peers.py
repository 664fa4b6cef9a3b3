"""Peers of a classifier: models of scikit-learn that are trained on the same rows in no time.

The explanations of a model that is clearly worse are those of the wrong model. A random forest
rather than boosting: scikit-learn's boosting in threads takes minutes where others use the cores.
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


def _random_forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=0)


PEERS: dict[str, Callable[[], Any]] = {
    "logistic regression": _logistic_regression,
    "a random forest": _random_forest,
}


def predictions(X: Any, codes: np.ndarray, new: Any) -> dict[str, np.ndarray]:
    """Return the classes that peers trained on rows X predict for ``new`` rows, (r,) each."""
    rows, others = X.to_numpy(dtype=np.float64), new.to_numpy(dtype=np.float64)
    size = np.maximum(np.abs(rows).max(axis=0), np.finfo(np.float64).tiny)
    rows, others = rows / size, others / size  # a forest computes in single precision
    return {name: peer().fit(rows, codes).predict(others) for name, peer in PEERS.items()}
