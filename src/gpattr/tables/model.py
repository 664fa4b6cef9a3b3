"""A model of a table: a regressor, and what its columns are; a file holds both."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr import _documents, kernels
from gpattr._array import to_numpy
from gpattr._validation import as_vector
from gpattr.adapters.encoder import Encoder
from gpattr.estimators import GPRegressor, RandomFeatureGPRegressor, SparseGPRegressor, storage
from gpattr.exceptions import InvalidInputError
from gpattr.posteriors import AffinePosterior, Posterior
from gpattr.tables.columns import Columns, require_frame
from gpattr.tables.held_out import HeldOut

if TYPE_CHECKING:
    import pandas as pd

ESTIMATORS = {"exact": GPRegressor, "sparse": SparseGPRegressor, "random-features": RandomFeatureGPRegressor}
KERNELS = {
    "squared-exponential": kernels.SquaredExponential,
    "matern52": kernels.Matern52,
    "matern32": kernels.Matern32,
    "rational-quadratic": kernels.RationalQuadratic,
}
MOST_ROWS = 5000  # for an exact model, which takes minutes and 0.6 GB there
FORMAT = "gpattr.table_model"


@dataclass(frozen=True)
class TableModel:
    """A fitted ``regressor`` of the ``columns`` of a table; categories are encoded as columns of 0 and 1.

    ``held_out`` says how well an approximate model predicts rows it has not seen; an exact one knows it by itself.
    """

    regressor: Any
    columns: Columns
    held_out: HeldOut | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.regressor, "posterior_"):
            raise InvalidInputError(f"regressor: expected a fitted regressor, got a {type(self.regressor).__name__}")
        if not isinstance(self.columns, Columns):
            raise InvalidInputError(f"columns: expected the Columns of a table, got a {type(self.columns).__name__}")
        if not isinstance(self.held_out, HeldOut | None):
            raise InvalidInputError(f"held_out: expected what HeldOut knows of a model, or None, got {self.held_out!r}")

    @classmethod
    def fit(
        cls, X: Any, y: Any, columns: Columns, *, estimator: str = "exact", kernel: str | None = None, verbose: int = 0
    ) -> TableModel:
        """Train on features as `Columns.features` returns them."""
        for name, value, known in (("estimator", estimator, ESTIMATORS), ("kernel", kernel, {None: None, **KERNELS})):
            if not (value is None or isinstance(value, str)) or value not in known:
                choices = ", ".join(str(choice) for choice in known if choice is not None)
                raise InvalidInputError(f"{name}: expected one of {choices}, got {value!r}")
        if not isinstance(columns, Columns):
            raise InvalidInputError(f"columns: expected the Columns of a table, got a {type(columns).__name__}")
        absent = [name for name in columns.names if name not in require_frame("X", X).columns]
        if absent:
            raise InvalidInputError(f"X: expected the columns {list(columns.names)}; missing {absent}")
        y = to_numpy(as_vector("y", y, length=len(X), unit="targets (one per row of X)"))
        if estimator == "exact" and len(X) > MOST_ROWS:
            raise InvalidInputError(
                f"rows: {len(X)} are more than an exact model can take in reasonable time ({MOST_ROWS}); use --estimator sparse "
                "or --estimator random-features"
            )
        constant = [name for name in columns.names if X[name].nunique() < 2]
        if len(constant) == len(columns.names):
            raise InvalidInputError("columns: expected features that differ between rows, got constant ones only")
        options: dict[str, Any] = {"verbose": verbose, "random_state": 0}
        if kernel is not None:
            options["kernel"] = KERNELS[kernel]
        rows = _encoded(columns, X)
        regressor = ESTIMATORS[estimator](**options).fit(rows, y)
        return cls(regressor, columns, None if estimator == "exact" else HeldOut.of_model(regressor, rows, y))

    @property
    def posterior(self) -> Posterior:
        """The posterior, as a function of the table's features."""
        encoder, inner = _encoder(self.columns), self.regressor.posterior_
        if encoder is None:
            return inner
        zeros = np.zeros(inner.n_features)
        return AffinePosterior(inner, zeros, zeros + 1.0, feature_names=encoder.encoded_names, encoder=encoder)

    @property
    def typical(self) -> dict[str, Any]:
        """The medians and the commonest categories of the rows it was trained on, by column."""
        encoder, points = _encoder(self.columns), self.regressor.posterior_.landmarks
        if encoder is None:
            return dict(zip(self.columns.names, np.asarray(points["median"]).tolist(), strict=True))
        return encoder.decode(encoder.landmarks(points)["median"][None]).iloc[0].to_dict()

    def predict(self, X: Any, **options: Any) -> Any:
        """Return what the regressor predicts for features as `Columns.features` returns them."""
        return self.regressor.predict(_encoded(self.columns, X), **options)

    def score(self, X: Any, y: Any) -> float:
        """Return R² of the predictions."""
        rows = _encoded(self.columns, X)
        return float(self.regressor.score(rows, to_numpy(as_vector("y", y, length=len(rows), unit="targets (one per row of X)"))))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a JSON file."""
        columns: Any = self.columns.to_content()
        content = {"columns": columns, "kind": type(self.regressor).__name__, "regressor": storage.content_of(self.regressor)}
        content["held_out"] = None if self.held_out is None else self.held_out.to_content()
        _documents.write(FORMAT, content, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> TableModel:
        """Read a model that `save` wrote."""

        def build(content: Any) -> TableModel:
            kinds = {kind.__name__: kind for kind in ESTIMATORS.values()}
            regressor = storage.model_of(kinds[content["kind"]], content["regressor"])
            held_out = HeldOut.of_content(content.get("held_out"))  # files of earlier versions have none
            return cls(regressor, Columns.of_content(content["columns"]), held_out)

        return _documents.read(FORMAT, path, build)


def _encoder(columns: Columns) -> Encoder | None:
    return columns.encoder


def _encoded(columns: Columns, X: Any) -> pd.DataFrame:
    import pandas as pd

    require_frame("X", X)
    encoder = _encoder(columns)
    if encoder is None:
        return X[list(columns.names)]
    return pd.DataFrame(encoder.encode("X", X), columns=list(encoder.encoded_names), index=X.index)
