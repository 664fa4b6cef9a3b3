"""Held-out performance of a classifier: accuracy, log loss and calibration, beside its peers.

Of up to 1000 rows each fifth is held out once; of more, one fifth is. Folds have their share of
each class. Hyperparameters of a fold are the most likely ones given the other rows, without
integration, searched from those of the whole model: nothing else is known of the rows that are held
out. A model trained on a sample is judged by at most 2000 of the other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpattr.tables.peers import predictions

MOST, MOST_UNSEEN = 1000, 2000
FOLDS = 5
EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of the probabilities of the predicted class


@dataclass(frozen=True)
class HeldOutClasses:
    """Predictions for ``rows`` held-out rows.

    ``accuracy`` is the share of correct predictions, ``most_frequent`` that of always predicting
    the most frequent class, ``log_loss`` the mean of −log p(true class). ``calibration`` are bins
    by the probability of the predicted class: (mean probability, share of correct rows, number of
    rows). ``peers`` are the accuracies of other classifiers, trained on the same rows and judged by
    the same rows: (name, accuracy).
    """

    rows: int
    accuracy: float
    most_frequent: float
    log_loss: float
    calibration: tuple[tuple[float, float, int], ...]
    peers: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(
        cls,
        codes: np.ndarray,
        probabilities: np.ndarray,
        peers: tuple[tuple[str, float], ...] = (),
    ) -> HeldOutClasses:
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
            peers=peers,
        )

    @classmethod
    def of_folds(
        cls, classifier: Any, X: Any, y: np.ndarray, learned: int
    ) -> HeldOutClasses | None:
        """Judge a `GPClassifier` that was fitted to the frame X and the labels y.

        Hyperparameters of a fold are learned from at most ``learned`` of the other rows. None if
        there are fewer than ten rows, or a class has a single one.
        """
        codes, n = np.searchsorted(classifier.classes_, y), len(X)
        if n < 2 * FOLDS or np.bincount(codes).min() < 2:
            return None
        parts = folds(codes)[: FOLDS if n <= MOST else 1]
        found, guesses = [], []
        for part in parts:
            others = np.setdiff1d(np.arange(n), part)
            few = others[stratified(y[others], learned)]
            model = classifier.relearned(X.iloc[few], y[few])
            if len(few) < len(others):
                model = model.conditioned(X.iloc[others], y[others])
            found.append(model.predict_proba(X.iloc[part]))
            guesses.append(predictions(X.iloc[others], codes[others], X.iloc[part]))
        rows = np.concatenate(parts)
        return cls.of(codes[rows], np.concatenate(found), _shares(codes[rows], guesses))

    @classmethod
    def of_unseen(
        cls, classifier: Any, X: Any, y: np.ndarray, seen: tuple[Any, np.ndarray]
    ) -> HeldOutClasses:
        """Judge a classifier by rows of the frame X, with labels y, that it was not trained on.

        ``seen`` are those it was trained on, for its peers.
        """
        some = np.random.default_rng(0).permutation(len(X))[:MOST_UNSEEN]
        codes, known = (np.searchsorted(classifier.classes_, each) for each in (y[some], seen[1]))
        guesses = [predictions(seen[0], known, X.iloc[some])]
        return cls.of(codes, classifier.predict_proba(X.iloc[some]), _shares(codes, guesses))

    @property
    def best_peer(self) -> tuple[str, float] | None:
        """The most accurate peer; None for those of older files."""
        return max(self.peers, key=lambda each: each[1], default=None)

    def to_content(self) -> dict[str, Any]:
        """Return it as JSON values."""
        pairs = {name: [list(each) for each in getattr(self, name)] for name in LISTS}
        return asdict(self) | pairs

    @classmethod
    def of_content(cls, content: Any) -> HeldOutClasses | None:
        """Return what `to_content` wrote, or None."""
        if content is None:
            return None
        bins = tuple(
            (float(p), float(share), int(rows)) for p, share, rows in content["calibration"]
        )
        peers = tuple((str(name), float(share)) for name, share in content.get("peers", ()))
        return cls(**content | {"calibration": bins, "peers": peers})


LISTS = ("calibration", "peers")


def folds(codes: np.ndarray) -> list[np.ndarray]:
    """Return the sorted positions of five folds, each with its share of every class."""
    order = np.random.default_rng(0).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    return [np.sort(order[k::FOLDS]) for k in range(FOLDS)]


def stratified(labels: np.ndarray, most: int) -> np.ndarray:
    """Return the sorted positions of a stratified random sample of about ``most`` rows.

    Each class has at least two.
    """
    n = len(labels)
    if n <= most:
        return np.arange(n)
    generator, chosen = np.random.default_rng(0), []
    for label in np.unique(labels):
        rows = generator.permutation(np.flatnonzero(labels == label))
        chosen.append(rows[: max(2, len(rows) * most // n)])
    return np.sort(np.concatenate(chosen))


def _shares(
    codes: np.ndarray, guesses: Sequence[dict[str, np.ndarray]]
) -> tuple[tuple[str, float], ...]:
    """Return how often each peer is right, of its guesses by fold."""
    return tuple(
        (name, float(np.mean(np.concatenate([each[name] for each in guesses]) == codes)))
        for name in guesses[0]
    )
