"""Held-out performance of a classifier: accuracy, log loss and calibration.

Hyperparameters stay as learned from all rows; the posterior is computed again without the held-out
rows. Of up to 1000 rows each is held out once, a tenth at a time; of more, a random tenth is. A
model trained on a sample is judged by at most 2000 of the other rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpattr.estimators.gp_classifier import mean_probabilities
from gpattr.posteriors import LaplacePosterior

MOST, MOST_UNSEEN = 1000, 2000
PARTS = 10
EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of the probabilities of the predicted class


@dataclass(frozen=True)
class HeldOutClasses:
    """Predictions for ``rows`` held-out rows.

    ``accuracy`` is the share of correct predictions, ``most_frequent`` that of always predicting
    the most frequent class, ``log_loss`` the mean of −log p(true class). ``calibration`` are bins
    by the probability of the predicted class: (mean probability, share of correct rows, number of
    rows).
    """

    rows: int
    accuracy: float
    most_frequent: float
    log_loss: float
    calibration: tuple[tuple[float, float, int], ...]

    @classmethod
    def of(cls, codes: np.ndarray, probabilities: np.ndarray) -> HeldOutClasses:
        """Judge the probabilities (n, K) of rows whose classes are ``codes`` (n,)."""
        n, K = probabilities.shape
        named, sure = probabilities.argmax(axis=1), probabilities.max(axis=1)
        right = named == codes
        true = np.maximum(probabilities[np.arange(n), codes], 1e-300)
        place = np.clip(np.digitize(sure, EDGES[1:-1]), 0, len(EDGES) - 2)
        bins = [place == k for k in range(len(EDGES) - 1)]
        return cls(
            rows=n,
            accuracy=float(right.mean()),
            most_frequent=float(np.bincount(codes, minlength=K).max() / n),
            log_loss=float(-np.log(true).mean()),
            calibration=tuple(
                (float(sure[b].mean()), float(right[b].mean()), int(b.sum()))
                for b in bins
                if b.any()
            ),
        )

    @classmethod
    def of_model(cls, classifier: Any, X: Any, y: np.ndarray) -> HeldOutClasses:
        """Judge a `GPClassifier` that was fitted to the frame X and the labels y."""
        codes, n = np.searchsorted(classifier.classes_, y), len(X)
        order = np.random.default_rng(0).permutation(n)
        # Sorted by class, so that every part has its share of each.
        order = order[np.argsort(codes[order], kind="stable")]
        parts = [np.sort(order[k::PARTS]) for k in range(PARTS if n <= MOST else 1)]
        parts = [part for part in parts if len(part)]
        rows = X.to_numpy(dtype=np.float64)
        found = [_without(classifier, rows, codes, part) for part in parts]
        return cls.of(codes[np.concatenate(parts)], np.concatenate(found))

    @classmethod
    def of_unseen(cls, classifier: Any, X: Any, y: np.ndarray) -> HeldOutClasses:
        """Judge a classifier by rows of the frame X, with labels y, that it was not trained on."""
        some = np.random.default_rng(0).permutation(len(X))[:MOST_UNSEEN]
        return cls.of(
            np.searchsorted(classifier.classes_, y[some]), classifier.predict_proba(X.iloc[some])
        )

    def to_content(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self) | {"calibration": [list(each) for each in self.calibration]}

    @classmethod
    def of_content(cls, content: Any) -> HeldOutClasses | None:
        """Return what `to_content` wrote, or None."""
        if content is None:
            return None
        bins = tuple(
            (float(p), float(share), int(rows)) for p, share, rows in content["calibration"]
        )
        return cls(**content | {"calibration": bins})


def _without(classifier: Any, X: np.ndarray, codes: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return the probabilities, (r, K), of the rows ``part`` by the classifier without them."""
    others = np.delete(np.arange(len(X)), part)
    found = []
    targets = classifier._targets(codes, len(classifier.classes_))
    for models, target in zip(classifier._integrated, targets, strict=True):
        rest = models.map(
            lambda kernel, _, target=target: LaplacePosterior(
                kernel, X[others], target[others], mean=classifier.mean_
            )
        )
        found.append(mean_probabilities(rest.posterior, X[part])[1])
    if len(found) == 1:
        return np.column_stack([1.0 - found[0], found[0]])
    against = np.stack(found, axis=1)
    return against / np.maximum(against.sum(axis=1, keepdims=True), 1e-300)
