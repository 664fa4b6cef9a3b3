"""InteractionExplanation: symmetric matrices of interactions between features, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import Array, FloatArray
from gpattr._core.frozen import Frozen
from gpattr._core.validation import Names, check_choice
from gpattr.distributions import Distribution, Gaussian
from gpattr.distributions.base import as_array
from gpattr.distributions.positions import position, positions
from gpattr.exceptions import InvalidIndexError, InvalidInputError
from gpattr.explanation import interaction_export, interaction_text
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.pairs import PAIR, Pairs, all_pairs, as_matrices, check_pairs, pair_labels

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
class InteractionExplanation(Frozen):
    """Interactions between d features in n predictions: ``values`` (n, d, d), symmetric.

    Every row of a matrix adds up to the attribution of its feature, and the whole matrix to the
    prediction less the base value. An entry off the diagonal is half of what two features do
    together, so that Φᵢⱼ + Φⱼᵢ is all of it; the diagonal is what is left to each feature: its
    main effect. ``index`` is ``"shapley"`` (the Shapley interaction index, in the matrix form of
    TreeSHAP), ``"taylor"`` (Shapley–Taylor; its diagonal is the effect of one feature alone) or
    ``"integrated_hessians"``.

    ``by_pair`` is an `Explanation` with one number for each of ``pairs`` (positions i ≤ j): the
    joint distribution of these, what was explained, and the evidence. Where only some pairs were
    asked for, the other entries of all matrices are NaN, and so are ``attributions`` and
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

    by_pair: Explanation
    pairs: Pairs
    index: str = "shapley"

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
        object.__setattr__(self, "pairs", pairs)
        object.__setattr__(self, "by_pair", named)

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
        """Return the explanation that has these matrices, such as those of another library.

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
    def distribution(self) -> Distribution:
        """The joint distribution of the numbers of the ``pairs``, row by row."""
        return self.by_pair.distribution

    @property
    def values(self) -> FloatArray:
        """The mean interactions, (n, d, d)."""
        return self._matrices(self.distribution.mean)

    @property
    def std(self) -> FloatArray | None:
        """The standard deviation of each interaction, (n, d, d); None where not requested."""
        var = self.distribution.var
        return None if var is None else self._matrices(np.sqrt(var))

    @property
    def cov(self) -> FloatArray | None:
        """The covariance between the ``pairs`` of each row, (n, k, k); None where not requested."""
        return self.distribution.cov

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
        """What the interactions are called in tables and pictures."""
        return INDEX_NAMES[self.index]

    @property
    def predictions(self) -> FloatArray:
        """The predictions F(x), (n,)."""
        return self.by_pair.predictions

    @property
    def base_values(self) -> FloatArray:
        """The predictions at the baseline, F(b), (n,)."""
        return self.by_pair.base_values

    @property
    def data(self) -> FloatArray:
        """The rows explained, (n, d)."""
        return self.by_pair.data

    @property
    def baselines(self) -> FloatArray:
        """The baselines, (n, d), or (k, d) where interactions are averaged over a set."""
        return self.by_pair.baselines

    @property
    def baseline_name(self) -> str:
        """What the baseline is."""
        return self.by_pair.baseline_name

    @property
    def feature_names(self) -> Names:
        """The names of the features."""
        return self.by_pair.feature_names

    @property
    def row_names(self) -> tuple[str | int, ...]:
        """The labels of the rows."""
        return self.by_pair.row_names

    @property
    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """The categories of the rows, {feature: n texts}."""
        return self.by_pair.labels

    @property
    def quantity(self) -> str:
        """What is explained."""
        return self.by_pair.quantity

    @property
    def method(self) -> str:
        """How the values were computed."""
        return self.by_pair.method

    @property
    def error(self) -> FloatArray:
        """A bound of the error that the method made in each value of a row, (n,)."""
        return self.by_pair.error

    @property
    def cov_error(self) -> FloatArray | None:
        """A bound of the error of each variance and covariance of a row, (n,)."""
        return self.by_pair.cov_error

    @property
    def delta(self) -> FloatArray:
        """The completeness gap Σᵢⱼ values − (F(x) − F(b)), (n,); NaN for chosen pairs."""
        return self.by_pair.delta

    def prob_positive(self) -> FloatArray:
        """Return P(interaction > 0), (n, d, d); ½ for one that is exactly zero."""
        return self._matrices(self.distribution.prob_positive())

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends, each (n, d, d), of the central credible intervals."""
        lower, upper = self.distribution.interval(level)
        return self._matrices(lower), self._matrices(upper)

    def strongest(self, row: int | None = None, n: int = 10) -> pd.DataFrame:
        """Return the n strongest interactions of a row, or of all rows by their mean |value|.

        Main effects, the diagonal, are not among them.
        """
        if row is not None:
            row = position("row", row, len(self))
        return interaction_export.strongest(self, row, n)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return a tidy frame: one line for each row and pair, main effects included.

        Its columns are row, feature, with, value and, if known, std, lower, upper and
        prob_positive.
        """
        return interaction_export.to_frame(self, level)

    def to_shap(self, level: float = 0.95) -> Any:
        """Return a ``shap.Explanation`` whose values are (n, d, d).

        ``shap.summary_plot`` and ``shap.dependence_plot`` read such values as interactions.
        """
        return interaction_export.to_shap(self, level)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file that `save` writes, as JSON values."""
        return interaction_export.to_dict(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON file; `InteractionExplanation.load` restores it to the last bit."""
        interaction_export.save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> InteractionExplanation:
        """Read what `save` wrote; a truncated or foreign file is refused."""
        return interaction_export.load(path)

    @property
    def plot(self) -> InteractionPlots:
        """The pictures of this explanation: ``ex.plot.matrix()`` and ``ex.plot.network()``."""
        from gpattr.plots.accessor import InteractionPlots

        return InteractionPlots(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InteractionExplanation):
            return NotImplemented
        one, two = vars(self), vars(other)
        return all(one[field.name] == two[field.name] for field in fields(self))

    def __repr__(self) -> str:
        return interaction_text.plain(self)

    def _repr_html_(self) -> str:
        return interaction_text.html(self)

    def _matrices(self, numbers: Array) -> Array:
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
