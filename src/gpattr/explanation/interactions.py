"""InteractionExplanation: symmetric matrices of interactions between features, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import Array, FloatArray
from gpattr._core.normal import check_count
from gpattr._core.validation import Names, check_choice
from gpattr.distributions import Distribution, Gaussian
from gpattr.distributions.base import as_array
from gpattr.distributions.positions import position, positions
from gpattr.exceptions import InvalidIndexError, InvalidInputError
from gpattr.explanation import exports, storage, text
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.pairs import PAIR, Pairs, all_pairs, as_matrices, check_pairs, pair_labels
from gpattr.explanation.result import (
    SHOWN,
    Forwarded,
    JointResult,
    RowNames,
    StoredResult,
    Table,
    counted,
)

if TYPE_CHECKING:
    import pandas as pd

    from gpattr.plots.accessor import InteractionPlots

INDEX_NAMES = {
    "shapley": "Shapley interaction values",
    "taylor": "Shapley–Taylor interaction values",
    "integrated_hessians": "integrated Hessians",
}
ROUNDING = 1e-9  # of the largest entry: by how much the two halves of given matrices may differ


@dataclass(frozen=True, eq=False, repr=False)
class InteractionExplanation(JointResult, StoredResult):
    """Interactions between d features in n predictions: ``values`` (n, d, d), symmetric.

    Every row of a matrix adds up to the attribution of its feature, and the whole matrix to the
    prediction less the base value. An entry off the diagonal is half of what two features do
    together, so that Φᵢⱼ + Φⱼᵢ is all of it; the diagonal is the rest of each feature: its main
    effect. ``index`` is ``"shapley"`` (the Shapley interaction index, in the matrix form of
    TreeSHAP), ``"taylor"`` (Shapley–Taylor; its diagonal is the effect of one feature alone) or
    ``"integrated_hessians"``.

    ``by_pair`` is an `Explanation` with one number for each of ``pairs`` (positions i ≤ j): the
    joint distribution of these, the explained quantity, and the evidence. Where only some pairs
    were asked for, the other entries of all matrices are NaN, and so are ``attributions`` and
    ``delta``.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] * X[:, 1] + X[:, 0] + 2.0 * X[:, 1])
    >>> explainer = gpattr.Explainer(model, baseline="zeros", attribution="shapley")
    >>> ex = explainer.interactions([[1.0, 1.0]])
    >>> ex.values.shape, ex.feature_names
    ((1, 2, 2), ('x0', 'x1'))
    """

    FORMATS = ("gpattr.InteractionExplanation",)

    by_pair: Explanation
    pairs: Pairs
    index: str = "shapley"

    distribution = Forwarded[Distribution](
        "by_pair.distribution", "The joint distribution of the numbers of the ``pairs``, by row."
    )
    cov = Forwarded[FloatArray | None](
        "by_pair.cov", "The covariance between the ``pairs``, (n, k, k); None where not requested."
    )
    predictions = Forwarded[FloatArray]("by_pair.predictions", "The predictions F(x), (n,).")
    base_values = Forwarded[FloatArray](
        "by_pair.base_values", "The predictions at the baseline, F(b), (n,)."
    )
    data = Forwarded[FloatArray]("by_pair.data", "The rows explained, (n, d).")
    baselines = Forwarded[FloatArray](
        "by_pair.baselines", "The baselines, (n, d), or (k, d) where averaged over a set."
    )
    baseline_name = Forwarded[str]("by_pair.baseline_name", "What the baseline is.")
    feature_names = Forwarded[Names]("by_pair.feature_names", "The names of the features.")
    row_names = Forwarded[RowNames]("by_pair.row_names", "The labels of the rows.")
    labels = Forwarded[Mapping[str, tuple[str, ...]]](
        "by_pair.labels", "The categories of the rows, {feature: n texts}."
    )
    quantity = Forwarded[str]("by_pair.quantity", "What is explained.")
    method = Forwarded[str]("by_pair.method", "How the values were computed.")
    error = Forwarded[FloatArray](
        "by_pair.error", "A bound of the error that the method made in each value of a row, (n,)."
    )
    cov_error = Forwarded[FloatArray | None](
        "by_pair.cov_error", "A bound of the error of each variance and covariance, (n,)."
    )
    delta = Forwarded[FloatArray](
        "by_pair.delta",
        "The completeness gap Σᵢⱼ values − (F(x) − F(b)), (n,); NaN for chosen pairs.",
    )

    def __post_init__(self) -> None:
        check_choice("index", self.index, tuple(INDEX_NAMES))
        ex = self.by_pair
        if not isinstance(ex, Explanation) or ex.axes != (PAIR,):
            got = ex.axes if isinstance(ex, Explanation) else f"a {type(ex).__name__}"
            raise InvalidInputError(
                f"by_pair: expected an Explanation with the axes ('{PAIR}',), got {got}"
            )
        pairs = check_pairs(self.pairs, ex.feature_names)
        if len(pairs) != ex.shape[1]:
            raise InvalidInputError(
                f"pairs: expected one for each of {ex.shape[1]} numbers of a row, got {len(pairs)}"
            )
        named = replace(
            ex,
            attribution=INDEX_NAMES[self.index],
            coordinates={PAIR: pair_labels(pairs, ex.feature_names)},
        )
        self._set("pairs", pairs)
        self._set("by_pair", named)

    @classmethod
    def of_pairs(cls, by_pair: Explanation, pairs: Any, index: str) -> InteractionExplanation:
        """Return interactions pair by pair, with the gap by which they miss completeness."""
        made = cls(by_pair, pairs, index)
        gap = made.values.sum(axis=(1, 2)) - (made.predictions - made.base_values)
        return cls(replace(made.by_pair, delta=gap), pairs, index)

    @classmethod
    def from_matrices(
        cls, values: Any, std: Any = None, *, index: str = "shapley", **about: Any
    ) -> InteractionExplanation:
        """Return the explanation with these matrices, such as another library's.

        ``values`` and ``std`` are (n, d, d), symmetric; entries that are not known are NaN in all
        rows. ``about`` are arguments of `Explanation`: feature_names, predictions, base_values,
        data and baselines, which are NaN if left out, and any others.
        """
        values = _symmetric("values", values)
        n, d = values.shape[:2]
        unknown = np.isnan(values)
        if (unknown != unknown[:1]).any():
            raise InvalidInputError("values: expected the same entries to be NaN in all rows")
        pairs = [pair for pair in all_pairs(d) if not n or not unknown[0][pair]]
        chosen = tuple(np.array(pairs, dtype=int).reshape(-1, 2).T)
        var = None
        if std is not None:
            std = _symmetric("std", std)
            if std.shape != values.shape or not (std[:, *chosen] >= 0).all():
                raise InvalidInputError(
                    f"std: expected numbers of 0 or more in the shape {values.shape} of values, got"
                    f" the shape {std.shape}"
                )
            var = std[:, *chosen] ** 2
        blank, missing = np.full((n, d), np.nan), np.full(n, np.nan)
        known: dict[str, Any] = {
            "feature_names": tuple(f"x{i}" for i in range(d)),
            "predictions": missing,
            "base_values": missing,
            "data": blank,
            "baselines": blank,
            "error": np.zeros(n),
            "delta": missing,
            "method": "given matrices",
        } | about
        ex = Explanation(Gaussian(values[:, *chosen], var), axes=(PAIR,), **known)
        return cls.of_pairs(ex, pairs, index)

    def __len__(self) -> int:
        return len(self.by_pair)

    def __iter__(self) -> Iterator[InteractionExplanation]:
        """Go through the rows, each an explanation of one row."""
        return (self[i] for i in range(len(self)))

    def __getitem__(self, rows: Any) -> InteractionExplanation:
        """Select rows by position; matrices stay whole."""
        if isinstance(rows, (str, tuple)):
            raise InvalidIndexError(
                f"rows: expected positions, got {rows!r}; the pairs are chosen when explaining:"
                " explainer.interactions(X, pairs=[…])"
            )
        chosen = positions("rows", rows, len(self))
        return InteractionExplanation(self.by_pair[chosen], self.pairs, self.index)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The number of rows and, twice, of features, (n, d, d)."""
        d = len(self.feature_names)
        return len(self), d, d

    @property
    def attributions(self) -> FloatArray:
        """The sums of the rows of each matrix, (n, d): the attributions of the features.

        These are the Shapley values, or the integrated gradients of integrated Hessians.
        """
        return self.values.sum(axis=2)

    @property
    def complete(self) -> bool:
        """Whether all pairs are there."""
        return len(self.pairs) == len(all_pairs(len(self.feature_names)))

    @property
    def index_name(self) -> str:
        """The name of the interactions in tables and pictures."""
        return INDEX_NAMES[self.index]

    def strongest(self, row: int | None = None, n: int = 10) -> pd.DataFrame:
        """Return the n strongest interactions of a row, or of all rows by their mean |value|.

        Main effects, the diagonal, are not among them.
        """
        import pandas as pd

        check_count("n", n)
        pairs = np.array(self.pairs)
        between = np.flatnonzero(pairs[:, 0] != pairs[:, 1])
        about = self if row is None else self[[position("row", row, len(self))]]
        values, var = about.distribution.mean[:, between], about.distribution.var
        size = np.abs(values).mean(axis=0) if len(about) else np.zeros(len(between))
        order = np.argsort(-size, kind="stable")[:n]
        one, other = self._members(pairs[between[order]])
        columns: dict[str, Any] = {"feature": one, "with": other}
        if len(about) == 1:
            columns["value"] = values[0, order]
            if var is not None:
                columns["std"] = np.sqrt(var[0, between[order]])
                columns["prob_positive"] = about.distribution.prob_positive()[0, between[order]]
        else:
            columns["mean_abs"] = size[order]
            columns["mean"] = values.mean(axis=0)[order] if len(about) else size[order]
            if var is not None and len(about):
                columns["rms_std"] = np.sqrt(var[:, between[order]].mean(axis=0))
        return pd.DataFrame(columns)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return a tidy frame: one line for each row and pair, main effects included.

        Its columns are row, feature, with, value and, if known, std, lower, upper and
        prob_positive.
        """
        frame = self.by_pair.to_frame(level)
        one, other = (np.tile(names, len(self)) for names in self._members(np.array(self.pairs)))
        frame.insert(1, "feature", one)
        frame.insert(2, "with", other)
        return frame.drop(columns="pair").rename(columns={"attribution": "value"})

    def to_shap(self, level: float = 0.95) -> Any:
        """Return a ``shap.Explanation`` whose values are (n, d, d).

        ``shap.summary_plot`` and ``shap.dependence_plot`` read such values as interactions.
        """
        return exports.to_shap(self, self.by_pair, level)

    def _content(self) -> dict[str, Any]:
        pairs = [list(pair) for pair in self.pairs]
        return storage.content_of(self.by_pair) | {"pairs": pairs, "index": self.index}

    @classmethod
    def _of_content(cls, content: Any) -> InteractionExplanation:
        pairs = tuple(tuple(pair) for pair in content["pairs"])
        return cls(storage.build(content), pairs, content["index"])

    @property
    def plot(self) -> InteractionPlots:
        """The pictures of this explanation: ``ex.plot.matrix()`` and ``ex.plot.network()``."""
        from gpattr.plots.accessor import InteractionPlots

        return InteractionPlots(self)

    def _heading(self) -> list[str]:
        n, d = self.shape[:2]
        what = "" if self.quantity == "prediction" else f" in the {self.quantity}"
        size = f"{counted(n, 'row')} × {counted(d, 'feature')}"
        chosen = "" if self.complete else f", {len(self.pairs)} of {len(all_pairs(d))} pairs"
        return [f"Interactions{what}: {size}{chosen}", *text.heading(self.by_pair)[1:]]

    def _table(self) -> Table:
        """Return the pairs of different features: main effects would hide the interactions."""
        kept = [k for k, (i, j) in enumerate(self.pairs) if i != j]
        labels = self.by_pair.coordinates[PAIR]
        between = replace(
            self.by_pair,
            distribution=self.distribution.select(slice(None), np.array(kept, dtype=int)),
            coordinates={PAIR: tuple(labels[k] for k in kept)},
        )
        return text.table(between)

    def _notes(self) -> list[str]:
        hidden = sum(i != j for i, j in self.pairs) - SHOWN
        return [f"… and {hidden} smaller"] if hidden > 0 else []

    def _members(self, pairs: Array) -> tuple[Array, Array]:
        """Return the names of the first and of the second feature of each pair."""
        names = np.array(self.feature_names, dtype=object)
        return names[pairs[:, 0]], names[pairs[:, 1]]

    def _shaped(self, numbers: Array) -> Array:
        found = as_matrices(numbers, self.pairs, len(self.feature_names))
        found.flags.writeable = False
        return found


def _symmetric(name: str, matrices: Any) -> np.ndarray:
    """Return matrices (n, d, d) made exactly symmetric."""
    found = np.asarray(as_array(name, matrices))
    if found.ndim != 3 or found.shape[1] != found.shape[2]:
        raise InvalidInputError(
            f"{name}: expected symmetric matrices (rows, features, features), got the shape"
            f" {found.shape}"
        )
    turned = found.transpose(0, 2, 1)
    scale = np.abs(found).max(initial=0.0, where=np.isfinite(found))
    same = np.abs(found - turned) <= ROUNDING * scale
    wrong = ~(same | (np.isnan(found) & np.isnan(turned))).all(axis=(1, 2))
    if wrong.any():
        raise InvalidInputError(
            f"{name}: expected symmetric matrices, but that of row {int(wrong.argmax())} is not"
        )
    return 0.5 * (found + turned)
