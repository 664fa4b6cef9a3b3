"""A model of a table: a regressor or classifier together with its columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr import kernels
from gpattr._core import documents
from gpattr._core.array import to_numpy
from gpattr._core.validation import as_vector, check_choice, check_flag
from gpattr.estimators import (
    GPClassifier,
    GPRegressor,
    RandomFeatureGPRegressor,
    SparseGPRegressor,
    storage,
)
from gpattr.exceptions import InvalidInputError
from gpattr.posteriors import EncodedPosterior, Posterior
from gpattr.tables.columns import Columns, require_frame
from gpattr.tables.held_out import HeldOut, HeldOutClasses, stratified
from gpattr.tables.target import TASKS

if TYPE_CHECKING:
    import pandas as pd

ESTIMATORS = {
    "exact": GPRegressor,
    "sparse": SparseGPRegressor,
    "random-features": RandomFeatureGPRegressor,
}
KERNELS = {
    "squared-exponential": kernels.SquaredExponential,
    "matern52": kernels.Matern52,
    "matern32": kernels.Matern32,
    "rational-quadratic": kernels.RationalQuadratic,
}
MOST_ROWS = 5000  # of an exact model: minutes and 0.6 GB
MOST_CLASSIFIED = 2000  # rows that a classifier is conditioned on
FEWEST_UNSEEN = 200  # rows left over by which it is judged; of fewer, folds of the others judge it
MOST_LEARNED = 600  # of them that hyperparameters are learned from: half a minute
FORMAT = "gpattr.table_model"


@dataclass(frozen=True)
class TableModel:
    """A fitted ``regressor``, or classifier, of the ``columns`` of a table.

    Categories are one-hot encoded. ``held_out`` is the held-out performance.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from gpattr.tables import Columns, TableModel
    >>> table = pd.DataFrame({"size": np.linspace(1.0, 2.0, 20), "kind": ["a", "b"] * 10})
    >>> columns = Columns(("size", "kind"), {"kind": ("a", "b")}, target="price")
    >>> model = TableModel.fit(table, 3.0 * table["size"] + (table["kind"] == "b"), columns)
    >>> model.predict(table[:2]).round(1)
    array([3. , 4.2])
    """

    regressor: Any
    columns: Columns
    held_out: HeldOut | HeldOutClasses | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.regressor, "posterior_"):
            raise InvalidInputError(
                f"regressor: expected a fitted regressor, got a {type(self.regressor).__name__}"
            )
        if not isinstance(self.columns, Columns):
            raise InvalidInputError(
                f"columns: expected the Columns of a table, got a {type(self.columns).__name__}"
            )
        if not isinstance(self.held_out, HeldOut | HeldOutClasses | None):
            raise InvalidInputError(
                f"held_out: expected a HeldOut, a HeldOutClasses or None, got {self.held_out!r}"
            )

    @classmethod
    def fit(
        cls,
        X: Any,
        y: Any,
        columns: Columns,
        *,
        estimator: str = "exact",
        kernel: str | None = None,
        verbose: int = 0,
        task: str = "regression",
    ) -> TableModel:
        """Train on features as `Columns.features` returns them.

        With ``task="classification"`` y are labels, and the model is an exact `GPClassifier`; of
        more than 2000 rows it is trained on a stratified random sample of 2000, and judged by the
        others if they are 200 or more. Hyperparameters are learned from at most 600 rows.
        """
        check_choice("task", task, TASKS)
        for name, value, known in (
            ("estimator", estimator, ESTIMATORS),
            ("kernel", kernel, {None: None, **KERNELS}),
        ):
            if not (value is None or isinstance(value, str)) or value not in known:
                choices = ", ".join(str(choice) for choice in known if choice is not None)
                raise InvalidInputError(f"{name}: expected one of {choices}, got {value!r}")
        if not isinstance(columns, Columns):
            raise InvalidInputError(
                f"columns: expected the Columns of a table, got a {type(columns).__name__}"
            )
        absent = [name for name in columns.names if name not in require_frame("X", X).columns]
        if absent:
            raise InvalidInputError(
                f"X: expected the columns {list(columns.names)}; missing {absent}"
            )
        if task == "classification":
            return cls._classifier(X, y, columns, estimator, kernel, verbose)
        y = to_numpy(as_vector("y", y, length=len(X), unit="targets (one per row of X)"))
        if estimator == "exact" and len(X) > MOST_ROWS:
            raise InvalidInputError(
                f"rows: {len(X):,} are too many for an exact model (at most {MOST_ROWS:,}); use"
                " --estimator auto, which chooses a sparse one"
            )
        options = _options(X, columns, kernel, verbose)
        if estimator != "random-features":  # which are waves: categories are numbers to them
            options["categories"] = label_columns(columns)
        rows = encoded(columns, X)
        regressor = ESTIMATORS[estimator](**options).fit(rows, y)
        judge = HeldOut.of_folds if estimator == "exact" else HeldOut.of_model
        return cls(regressor, columns, judge(regressor, rows, y))

    @classmethod
    def _classifier(
        cls, X: Any, y: Any, columns: Columns, estimator: str, kernel: str | None, verbose: int
    ) -> TableModel:
        if estimator != "exact":
            raise InvalidInputError(
                f"estimator: expected 'exact' for a classifier, got {estimator!r}; of many rows a"
                " random sample is used"
            )
        labels = np.asarray(y, dtype=object)
        if labels.shape != (len(X),) or not all(
            isinstance(label, str) and label for label in labels
        ):
            raise InvalidInputError(
                f"y: expected {len(X)} labels as text, one per row of X, got {y!r:.60}"
            )
        labels = labels.astype(str)
        options, rows = _options(X, columns, kernel, verbose), encoded(columns, X)
        options["categories"] = label_columns(columns)
        chosen = stratified(labels, MOST_CLASSIFIED)
        few = chosen[stratified(labels[chosen], MOST_LEARNED)]
        classifier = GPClassifier(**options).fit(rows.iloc[few], labels[few])
        if len(few) < len(chosen):
            classifier = classifier.conditioned(rows.iloc[chosen], labels[chosen])
        others = np.delete(np.arange(len(X)), chosen)
        if len(others) >= FEWEST_UNSEEN:
            return cls(
                classifier,
                columns,
                HeldOutClasses.of_unseen(
                    classifier,
                    rows.iloc[others],
                    labels[others],
                    (rows.iloc[chosen], labels[chosen]),
                ),
            )
        judged = HeldOutClasses.of_folds(
            classifier, rows.iloc[chosen], labels[chosen], MOST_LEARNED
        )
        return cls(classifier, columns, judged)

    @property
    def task(self) -> str:
        """The task of the model: "regression" or "classification"."""
        return "classification" if isinstance(self.regressor, GPClassifier) else "regression"

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels of a classifier; none of a regressor."""
        return tuple(map(str, self.regressor.classes_)) if self.task == "classification" else ()

    @property
    def class_counts(self) -> dict[str, int]:
        """The number of training rows in each class of a classifier."""
        models: list[Any] = [part.components[0][1] for part in self._latents]
        labels = [to_numpy(model.y) for model in models]
        targets = [part.sum() for part in labels]
        if len(self.classes) == 2:
            targets = [len(labels[0]) - targets[0], targets[0]]
        return {label: int(count) for label, count in zip(self.classes, targets, strict=True)}

    @property
    def _latents(self) -> tuple[Posterior, ...]:
        """The posteriors of a classifier's latent functions; none of a regressor."""
        return self.regressor._posteriors if self.classes else ()

    @property
    def posterior(self) -> Posterior:
        """The posterior over functions of the table's features; see `posteriors` for classes."""
        if len(self.classes) > 2:
            raise InvalidInputError("posterior: each class has its own; use posteriors")
        return self._of_features(self.regressor.posterior_)

    @property
    def posteriors(self) -> dict[str, Posterior]:
        """The posteriors by class: of the second of two, or of each against the rest.

        The posterior of a regressor has the name "".
        """
        if self.task == "regression":
            return {"": self.posterior}
        latents, labels = self._latents, self.classes
        return {
            label: self._of_features(part)
            for label, part in zip(labels[-len(latents) :], latents, strict=True)
        }

    def _of_features(self, inner: Posterior) -> Posterior:
        encoder = self.columns.encoder
        if encoder is None:
            return inner
        return EncodedPosterior(inner, encoder)

    @property
    def typical(self) -> dict[str, Any]:
        """The medians and the most frequent categories of the training rows, by column."""
        encoder, points = self.columns.encoder, self.regressor.posterior_.reference_points
        if encoder is None:
            return dict(zip(self.columns.names, np.asarray(points["median"]).tolist(), strict=True))
        return encoder.decode(encoder.reference_points(points)["median"][None]).iloc[0].to_dict()

    def predict(self, X: Any, **options: Any) -> Any:
        """Return predictions, or labels, for features as `Columns.features` returns them."""
        return self.regressor.predict(encoded(self.columns, X), **options)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, (n, K), in the order of `classes`."""
        if self.task == "regression":
            raise InvalidInputError("predict_proba: the model is a regressor, not a classifier")
        return self.regressor.predict_proba(encoded(self.columns, X))

    def score(self, X: Any, y: Any) -> float:
        """Return R² of the predictions, or the accuracy of a classifier."""
        rows = encoded(self.columns, X)
        if self.task == "classification":
            return float(
                np.mean(np.asarray(y, dtype=object) == self.regressor.predict(rows).astype(object))
            )
        return float(
            self.regressor.score(
                rows,
                to_numpy(as_vector("y", y, length=len(rows), unit="targets (one per row of X)")),
            )
        )

    def save(self, path: str | PathLike[str], *, durable: bool = False) -> None:
        """Write the model to a JSON file, which is on the disk after a ``durable`` call."""
        check_flag("durable", durable)
        content = {
            "columns": self.columns.to_content(),
            "task": self.task,
            "kind": type(self.regressor).__name__,
            "regressor": storage.content_of(self.regressor),
        }
        content["held_out"] = None if self.held_out is None else self.held_out.to_content()
        documents.write(FORMAT, content, path, durable=durable)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> TableModel:
        """Read a model that `save` wrote."""

        def build(content: Any) -> TableModel:
            kinds = {kind.__name__: kind for kind in (*ESTIMATORS.values(), GPClassifier)}
            judged = HeldOutClasses if content["kind"] == "GPClassifier" else HeldOut
            regressor = storage.model_of(kinds[content["kind"]], content["regressor"])
            held_out = judged.of_content(content.get("held_out"))  # older files have none
            return cls(regressor, Columns.of_content(content["columns"]), held_out)

        return documents.read(FORMAT, path, build)


def fit_chunks(
    chunks: Iterable[tuple[Any, Any]],
    X: Any,
    y: Any,
    columns: Columns,
    *,
    kernel: str | None = None,
    verbose: int = 0,
) -> TableModel:
    """Return a model of random features trained on ``chunks`` of rows (X, y), which are not kept.

    Length-scales are learned from the rows X with targets y, a sample of them all, which also are
    the held-out rows and tell the median; variance and noise from all rows.
    """
    sample = TableModel.fit(X, y, columns, estimator="random-features", kernel=kernel)
    options = {"kernel": sample.regressor.kernel_, "optimize": "amplitude", "random_state": 0}
    regressor = RandomFeatureGPRegressor(**options, verbose=verbose).fit_chunks(
        (encoded(columns, rows), targets) for rows, targets in chunks
    )
    rows = encoded(columns, X)
    # Sums do not tell the median, which missing values are filled with.
    regressor._stream.median, regressor._cache = rows.median().to_numpy(), None
    return TableModel(regressor, columns, HeldOut.of_model(regressor, rows, y))


def _options(X: Any, columns: Columns, kernel: str | None, verbose: int) -> dict[str, Any]:
    """Return the options of an estimator; refuse a table whose features are all constant."""
    if all(X[name].nunique() < 2 for name in columns.names):
        raise InvalidInputError(
            "columns: expected features that vary between rows, got only constant ones"
        )
    options: dict[str, Any] = {"verbose": verbose, "random_state": 0}
    return options if kernel is None else options | {"kernel": KERNELS[kernel]}


def label_columns(columns: Columns) -> list[list[int]] | None:
    """Return the one-hot columns of each category."""
    encoder = columns.encoder
    return [encoder.places(name) for name in columns.categories] or None if encoder else None


def encoded(columns: Columns, X: Any) -> pd.DataFrame:
    """Return features as numbers, with one-hot columns of categories."""
    import pandas as pd

    require_frame("X", X)
    encoder = columns.encoder
    if encoder is None:
        return X[list(columns.names)]
    return pd.DataFrame(encoder.encode("X", X), columns=list(encoder.encoded_names), index=X.index)
