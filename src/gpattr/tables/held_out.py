"""Held-out performance of a regressor (R², error, coverage), or of a classifier beside its peers.

Exact models are trained again, hyperparameters included, without each fifth of the rows; of more
than 1000 rows, without one fifth. Up to 100 rows are divided into fifths two to four times.

Approximate models have thousands of rows, and are not refitted: hyperparameters, the constant mean,
inducing inputs and frequencies stay as learned from all rows, and the posterior excludes the
held-out rows, at most a tenth of all and 200 at a time. Of more than 1000 rows a random 1000 are
held out. With f ~ N(m, S) at some rows given all targets, where S is the part of the
covariance that the targets have changed, and noise σ²,

    m₋ = m + S(σ²I − S)⁻¹(m − y),      S₋ = S + S(σ²I − S)⁻¹S

are the mean and covariance without the targets y of these rows.

Of a classifier and up to 1000 rows each fifth is held out once; of more, one fifth is. Folds have
their share of each class. Hyperparameters of a fold are the most likely ones given the other rows,
without integration, searched from the whole model's: nothing else is known of the rows that are
held out. A classifier trained on a sample is judged by at most 2000 of the other rows.

Its peers are models of scikit-learn that are trained on the same rows in no time: the explanations
of a model that is clearly worse explain the wrong model. A random forest rather than boosting:
scikit-learn's boosting in threads takes minutes where others use the cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit
from sklearn.base import clone

from gpattr._core.array import outer_products, product, solve_lower_rows, to_numpy
from gpattr.distributions.marginals import Marginals
from gpattr.posteriors import SparsePosterior

LEVELS = (0.5, 0.8, 0.95)
TAIL = 0.5 * (1.0 - LEVELS[-1])
MOST, MOST_UNSEEN = 1000, 2000  # held-out rows
FOLDS, PARTS = 5, 10
DIVIDED, MOST_DIVISIONS = 200, 4  # fewer rows are divided into folds as often as gives so many
TOGETHER = 200  # rows held out at a time, at most
EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of the probabilities of the predicted class
LISTS = ("calibration", "peers")
SMALLEST = 1e-9  # fraction of the noise variance left if a target determines its own prediction


@dataclass(frozen=True)
class HeldOut:
    """Predictions for ``rows`` held-out rows.

    R² (``score``, None if all targets are equal), root mean square ``error``, and the shares of
    targets ``inside`` their intervals at `LEVELS`. ``width`` is the median width of the 95 %
    intervals, ``alone`` the width of an interval for the next target without features; older files
    have neither.
    """

    rows: int
    score: float | None
    error: float
    inside: tuple[float, ...]
    width: float | None = None
    alone: float | None = None

    @classmethod
    def of(cls, y: np.ndarray, mean: np.ndarray, var: np.ndarray) -> HeldOut:
        """Judge the predictive ``mean`` and ``var`` of targets y, including noise, (n,) each."""
        std = np.sqrt(var)
        return cls.of_positions(y, mean, ndtr((y - mean) / std), -2.0 * ndtri(TAIL) * std)

    @classmethod
    def of_positions(
        cls, y: np.ndarray, mean: np.ndarray, below: np.ndarray, widths: np.ndarray | None = None
    ) -> HeldOut:
        """Judge predictions by ``below``, the predictive probabilities P(target ≤ y), (n,).

        ``widths`` (n,) are the widths of the 95 % intervals, if known. All but y may be (K, n).
        """
        n, off = len(y), float(((y - mean) ** 2).mean())
        score = None if np.ptp(y) == 0 else 1.0 - off / float(y.var())
        inside = (float(np.mean(np.abs(below - 0.5) <= 0.5 * level)) for level in LEVELS)
        spread = -2.0 * float(stdtrit(n - 1, TAIL)) * float(y.std(ddof=1)) * (1.0 + 1.0 / n) ** 0.5
        return cls(
            n,
            score,
            off**0.5,
            tuple(inside),
            None if widths is None else float(np.median(widths)),
            None if widths is None else spread,
        )

    @classmethod
    def of_folds(cls, regressor: Any, X: Any, y: np.ndarray) -> HeldOut | None:
        """Judge an exact regressor by copies of it, fitted to a part of the frame X and y each.

        Where rows are few, one of them may decide, and they are divided into folds several times.
        None if there are fewer than ten rows, or other targets are all equal.
        """
        n = len(X)
        if n < 2 * FOLDS:
            return None
        generator, times = np.random.default_rng(0), min(max(DIVIDED // n, 1), MOST_DIVISIONS)
        found, judged = np.empty((3, times, n)), []
        for mean, below, width in found.swapaxes(0, 1):
            folds = np.array_split(generator.permutation(n), FOLDS)
            for fold in (judged := folds if n <= MOST else folds[:1]):
                others = np.setdiff1d(np.arange(n), fold)
                if np.ptp(y[others]) == 0:
                    return None
                model: Any = clone(regressor)
                model.set_params(verbose=0).fit(X.iloc[others], y[others])
                predicted = _with_noise(model.posterior_, X.iloc[fold])
                mean[fold], below[fold] = predicted.mean, predicted.cdf(y[fold])
                width[fold] = predicted.quantile(1.0 - TAIL) - predicted.quantile(TAIL)
        rows = np.concatenate(judged)
        return cls.of_positions(y[rows], *found[:, :, rows])

    @classmethod
    def of_model(cls, regressor: Any, X: Any, y: Any) -> HeldOut | None:
        """Judge a sparse or random-feature regressor fitted to the frame X and y.

        None if there are too few rows.
        """
        n, y = len(X), np.asarray(y, dtype=np.float64)
        if n < 2 * PARTS:
            return None
        order = np.random.default_rng(0).permutation(n)[:MOST]
        parts = np.array_split(order, -(-len(order) // min(n // PARTS, TOGETHER)))
        found = (
            _without(regressor.posterior_, X.iloc[part], y[part], regressor.noise_variance_)
            for part in parts
        )
        mean, var = (np.concatenate(each) for each in zip(*found, strict=True))
        return cls.of(y[order], mean, var + regressor.noise_variance_)

    def to_content(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self) | {"inside": list(self.inside)}

    @classmethod
    def of_content(cls, content: Any) -> HeldOut | None:
        """Return the result that `to_content` wrote, or None."""
        return None if content is None else cls(**content | {"inside": tuple(content["inside"])})


def _with_noise(posterior: Any, X: Any) -> Marginals:
    """Return the distributions of new targets at rows X."""
    weights, parts = zip(*posterior.components, strict=True)
    moments = [tuple(map(to_numpy, part.predict(X, return_std=True))) for part in parts]
    return Marginals(
        np.array(weights),
        np.stack([mean for mean, _ in moments]),
        np.stack(
            [std**2 + part.noise_variance for (_, std), part in zip(moments, parts, strict=True)]
        ),
    )


def _without(posterior: Any, X: Any, y: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the function at rows X without their targets y, (r,) each."""
    missed: Any = 0.0
    if isinstance(posterior, SparsePosterior):  # targets change only what inducing inputs capture
        rows = X.to_numpy(dtype=np.float64)
        T = solve_lower_rows(posterior.factor, posterior.kernel(rows, posterior.inputs))  # (r, m)
        mean = posterior.predict(X)
        S = outer_products(product(T, posterior.root))
        missed = np.maximum(posterior.kernel.diagonal(rows) - (T**2).sum(axis=1), 0.0)
    else:
        mean, S = posterior.predict(X, return_cov=True)
    values, vectors = np.linalg.eigh(to_numpy(S))
    values = np.maximum(values, 0.0)
    # Eigenvalues of S(σ²I − S)⁻¹; rounding may leave nothing of σ² − S.
    gain = values / np.maximum(noise - values, SMALLEST * noise)
    off = product(vectors.T, to_numpy(mean) - y)
    return to_numpy(mean) + product(vectors, gain * off), product(
        vectors**2, values * (1.0 + gain)
    ) + missed


@dataclass(frozen=True)
class HeldOutClasses:
    """Predictions for ``rows`` held-out rows.

    ``accuracy`` is the share of correct predictions, ``most_frequent`` the share for always
    predicting the most frequent class, ``log_loss`` the mean of −log p(true class). ``calibration``
    are bins by the probability of the predicted class: (mean probability, share of correct rows,
    number of rows). ``peers`` are the accuracies of other classifiers, trained on the same rows and
    judged by the same rows: (name, accuracy).
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
            guesses.append(_guesses(X.iloc[others], codes[others], X.iloc[part]))
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
        guesses = [_guesses(seen[0], known, X.iloc[some])]
        return cls.of(codes, classifier.predict_proba(X.iloc[some]), _shares(codes, guesses))

    @property
    def best_peer(self) -> tuple[str, float] | None:
        """The most accurate peer; None for older files."""
        return max(self.peers, key=lambda each: each[1], default=None)

    def to_content(self) -> dict[str, Any]:
        """Return it as JSON values."""
        pairs = {name: [list(each) for each in getattr(self, name)] for name in LISTS}
        return asdict(self) | pairs

    @classmethod
    def of_content(cls, content: Any) -> HeldOutClasses | None:
        """Return the result that `to_content` wrote, or None."""
        if content is None:
            return None
        bins = tuple(
            (float(p), float(share), int(rows)) for p, share, rows in content["calibration"]
        )
        peers = tuple((str(name), float(share)) for name, share in content.get("peers", ()))
        return cls(**content | {"calibration": bins, "peers": peers})


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


def _guesses(X: Any, codes: np.ndarray, new: Any) -> dict[str, np.ndarray]:
    """Return the classes that peers trained on rows X predict for ``new`` rows, (r,) each."""
    rows, others = X.to_numpy(dtype=np.float64), new.to_numpy(dtype=np.float64)
    # A forest computes in single precision; labels that only new rows have are columns of zeros.
    size = np.abs(np.concatenate([rows, others])).max(axis=0)
    size[size == 0] = 1.0
    rows, others = rows / size, others / size
    return {name: peer().fit(rows, codes).predict(others) for name, peer in PEERS.items()}
