"""Sobol indices as results: shares of the variance of a function, with their posterior.

`Effects` are the variances of conditional expectations that engines compute; `SobolIndices` makes
ratios of them, `SobolPairs` ratios of two players together, Sᵢⱼ = (Vᵢⱼ − Vᵢ − Vⱼ)/V.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from gpattr._core import documents
from gpattr._core.array import Array
from gpattr._core.frozen import Frozen
from gpattr._core.normal import check_level
from gpattr._core.readable_numbers import readable
from gpattr._core.validation import Names, check_names, check_text, read_only
from gpattr.exceptions import InvalidInputError
from gpattr.explanation.pairs import Pairs
from gpattr.explanation.result import SHOWN, Forwarded, StoredResult, Table, counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

CONFIDENCE = 0.99  # that the error of a mean over replicates is below the one reported
NEGLIGIBLE = 1e-12  # of the expected variance
Subset = tuple[int, ...]
ARRAYS = {  # in files, with their dimensions
    "plug_in": ("subset",),
    "expected": ("subset",),
    "draws": ("draw", "subset"),
    "error": ("subset",),
    "replicates": ("replicate", "subset"),
    "plug_in_replicates": ("replicate", "subset"),
}


@dataclass(frozen=True, eq=False, repr=False)
class SobolIndices(StoredResult):
    """Shares of the variance of f over random inputs, feature by feature, with their posterior.

    With V = Var f(x) and V_S = Var E[f(x) | x_S], for independent inputs x,

        ``first``  Sᵢ = Vᵢ/V         the variance that feature i explains by itself,
        ``total``  Tᵢ = 1 − V₋ᵢ/V    what it explains alone and together with others,
        ``pairs``  Sᵢⱼ = (Vᵢⱼ − Vᵢ − Vⱼ)/V.

    f is not known, and so V_S is a random variable: ``effects`` holds its posterior. Indices come
    with posterior mean, standard deviation and interval, and as ``plug_in_first`` and
    ``plug_in_total``: the indices of the posterior mean function. These ignore that f is uncertain.
    The intervals do not contain the uncertainty of hyperparameters, unless the model is a mixture.

    ``quantity`` names the varying function, ``inputs`` the features' distributions, ``pairs_known``
    the requested pairs, as positions. A feature is a player by itself; a group of features is one
    player, under the name of the group.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> indices = gpattr.sobol_indices(model, gpattr.Uniform(-1.0, 1.0))
    >>> indices.total.round(2), indices.feature_names
    (array([0.79, 0.21]), ('x0', 'x1'))
    """

    FORMATS = ("gpattr.SobolIndices",)

    effects: Effects
    feature_names: Names
    quantity: str = "prediction"
    inputs: str = ""
    pairs_known: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.effects, Effects):
            raise InvalidInputError(
                f"effects: expected gpattr's Effects, got a {type(self.effects).__name__}"
            )
        for name, text_given in (("quantity", self.quantity), ("inputs", self.inputs)):
            check_text(name, text_given)
        P = max(map(len, self.effects.subsets), default=0)
        check_names("feature_names", self.feature_names, P)
        needed = [self._all, *((i,) for i in range(P)), *(self._others(i) for i in range(P))]
        known = self.effects.subsets
        missing = [subset for subset in needed if subset and subset not in known]
        if missing:
            raise InvalidInputError(f"effects: expected the subset {missing[0]}, which is missing")
        pairs = self.pairs_known
        if not isinstance(pairs, tuple) or not set(map(repr, pairs)) <= set(map(repr, known)):
            raise InvalidInputError(
                f"pairs_known: expected a tuple of subsets of two players, got {pairs!r}"
            )

    def __len__(self) -> int:
        return len(self.feature_names)

    @property
    def _all(self) -> Subset:
        return tuple(range(len(self.feature_names)))

    def _others(self, *players: int) -> Subset:
        return tuple(i for i in self._all if i not in players)

    @cached_property
    def _first(self) -> Ratios:
        return Ratios.of(self.effects, self._all, [{(i,): 1.0} for i in self._all])

    @cached_property
    def _total(self) -> Ratios:
        rows = [{self._all: 1.0, self._others(i): -1.0} for i in self._all]
        return Ratios.of(self.effects, self._all, rows)

    first = Forwarded[Array]("_first.mean", "The posterior mean of each first-order index, (P,).")
    first_std = Forwarded[Array](
        "_first.std", "The posterior standard deviation of each first-order index, (P,)."
    )
    first_draws = Forwarded[Array](
        "_first.draws", "Draws from the joint posterior of the first-order indices, (R, P)."
    )
    plug_in_first = Forwarded[Array](
        "_first.plug_in", "The first-order indices of the posterior mean function, (P,)."
    )
    total = Forwarded[Array]("_total.mean", "The posterior mean of each total index, (P,).")
    total_std = Forwarded[Array](
        "_total.std", "The posterior standard deviation of each total index, (P,)."
    )
    total_draws = Forwarded[Array](
        "_total.draws", "Draws from the joint posterior of the total indices, (R, P)."
    )
    plug_in_total = Forwarded[Array](
        "_total.plug_in", "The total indices of the posterior mean function, (P,)."
    )
    method = Forwarded[str]("effects.method", "How the variances were computed.")

    @property
    def error(self) -> Array:
        """The numerical error of each posterior mean, (P,), of first order or total.

        It is the larger one of both, an error of ``method``, and not the posterior spread.
        """
        return np.maximum(self._first.error, self._total.error)

    @property
    def plug_in_error(self) -> Array:
        """The numerical error of each plug-in index, (P,); large where the mean hardly varies."""
        return np.maximum(self._first.plug_in_error, self._total.plug_in_error)

    def first_interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of the central credible intervals of first-order indices, each (P,)."""
        return central(self.first_draws, level)

    def total_interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of the central credible intervals of total indices, each (P,)."""
        return central(self.total_draws, level)

    @property
    def pairs(self) -> SobolPairs:
        """The indices of the pairs that were asked for, ``sobol_indices(…, pairs=True)``."""
        pairs = self.pairs_known
        if not pairs and len(self) > 1:
            raise InvalidInputError(
                "pairs: these indices were computed without pairs; call"
                " gpattr.sobol_indices(…, pairs=True), or pairs=[(feature, feature), …]"
            )
        rows = [{(i, j): 1.0, (i,): -1.0, (j,): -1.0} for i, j in pairs]
        found = Ratios.of(self.effects, self._all, rows)
        return SobolPairs(
            pairs, self.feature_names, found.mean, found.plug_in, found.draws, found.error
        )

    @property
    def variance(self) -> float:
        """The posterior mean of the total variance V."""
        return float(self.effects.expected[self._whole])

    @property
    def variance_std(self) -> float:
        """The posterior standard deviation of the total variance."""
        return float(self.effects.draws[:, self._whole].std(ddof=1))

    def variance_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the ends of the central credible interval of the total variance."""
        lower, upper = central(self.effects.draws[:, [self._whole]], level)
        return float(lower[0]), float(upper[0])

    @property
    def unknown_variance(self) -> float:
        """The part of the expected variance that the posterior mean function does not have.

        E V − V(E f): the variance that is expected of f, but not yet located by the data.
        """
        gap = self.effects.expected[self._whole] - self.effects.plug_in[self._whole]
        return max(float(gap), 0.0)

    @property
    def unknown_share(self) -> float:
        """The share of the expected variance that is unknown, between 0 and 1."""
        return self.unknown_variance / self.variance

    @property
    def _whole(self) -> int:
        return self.effects.subsets.index(self._all)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return one line per feature, the largest total index first.

        Its columns are first, first_std, first_lower, first_upper, first_plug_in, the same for
        total, and error.
        """
        import pandas as pd

        columns: dict[str, Array] = {}
        for name, found in (("first", self._first), ("total", self._total)):
            lower, upper = central(found.draws, level)
            parts = {"": found.mean, "_std": found.std, "_lower": lower, "_upper": upper}
            parts["_plug_in"] = found.plug_in
            columns |= {name + part: values for part, values in parts.items()}
        columns["error"] = self.error
        frame = pd.DataFrame(columns, index=pd.Index(self.feature_names, name="feature"))
        return frame.sort_values("total", ascending=False, kind="stable")

    def _content(self) -> dict[str, Any]:
        held = {name: vars(self.effects)[name] for name in ARRAYS}
        return {
            "feature_names": list(self.feature_names),
            "quantity": self.quantity,
            "inputs": self.inputs,
            "method": self.effects.method,
            "subsets": [list(subset) for subset in self.effects.subsets],
            "pairs": [list(pair) for pair in self.pairs_known],
            "arrays": {
                name: documents.encode(array, ARRAYS[name], compact=name == "draws")
                for name, array in held.items()
                if array is not None
            },
        }

    @classmethod
    def _of_content(cls, content: Any) -> SobolIndices:
        known = content["arrays"]
        arrays = {
            name: read_only(documents.decode(known[name])) for name in ARRAYS if name in known
        }
        subsets = tuple(tuple(int(i) for i in subset) for subset in content["subsets"])
        effects = Effects(subsets, **arrays, method=content["method"])
        names = tuple(content["feature_names"])
        pairs = tuple((int(i), int(j)) for i, j in content["pairs"])
        return cls(effects, names, content["quantity"], content["inputs"], pairs)

    def plot(self, *, max_display: int = 10, level: float = 0.95, ax: Axes | None = None) -> Axes:
        """Draw bars of both indices with credible intervals: `gpattr.plots.sobol_bar`."""
        from gpattr.plots import sobol_bar

        return sobol_bar(self, max_display=max_display, level=level, ax=ax)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SobolIndices) and self.to_dict() == other.to_dict()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def _heading(self) -> list[str]:
        inputs = f", {self.inputs}" if self.inputs else ""
        error = self.error.max(initial=0.0)
        spread = np.minimum(self.first_std, self.total_std)
        more = ", more than some spreads" if (self.error > spread).any() else ""
        drawn = len(self.first_draws)
        return [
            f"Sobol indices of the {self.quantity}: {counted(len(self), 'feature')}{inputs}",
            variance_words(self),
            f"{self.method}, error about {error:.0e}{more}; spread from {drawn} draws",
        ]

    def _table(self) -> Table:
        header = ["feature", "first", "± std", "plug-in", "total", "± std", "plug-in"]
        columns = [
            self.first,
            self.first_std,
            self.plug_in_first,
            self.total,
            self.total_std,
            self.plug_in_total,
        ]
        order = np.argsort(-self.total, kind="stable")[:SHOWN]
        names = self.feature_names
        return header, [[names[i], *(_share(column[i]) for column in columns)] for i in order]

    def _notes(self) -> list[str]:
        hidden = len(self) - SHOWN
        return [f"… and {hidden} smaller"] if hidden > 0 else []


def variance_words(indices: SobolIndices) -> str:
    """Return the total variance, and how much of it is unknown, in words."""
    spread = readable(indices.variance_std, 2)
    share = indices.unknown_share
    unknown = "< 0.1%" if share < 1e-3 else f"{share:.1%}" if share < 0.1 else f"{share:.0%}"
    return f"variance {readable(indices.variance)} ± {spread}, of which {unknown} is not yet known"


def _share(value: float) -> str:
    """Return an index with four decimals, "–" for none; one that rounds to zero has no sign."""
    if value != value:
        return "–"
    return f"{value if abs(value) >= 5e-5 else 0.0:.4f}"


@dataclass(frozen=True, eq=False)
class Ratios:
    """Ratios q = Σ_S c_S V_S / V with their posterior: ``mean`` (k,), ``draws`` (R, k) and so on.

    E[q] comes from the draws, with a control variate. To first order in V_S − E V_S

        q ≈ (Σ_S c_S V_S)/E V − (Σ_S c_S E V_S)(V − E V)/(E V)²,

    whose mean is known, since the mean of V_S is; the rest of the draws is of second order.
    """

    mean: Array
    plug_in: Array
    draws: Array
    error: Array
    plug_in_error: Array

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, read_only(value))

    @classmethod
    def of(cls, effects: Effects, whole: Subset, rows: list[dict[Subset, float]]) -> Ratios:
        """Return the ratios of sums, each {subset: coefficient}; the empty subset has no variance.

        Errors are those of the replicates' ratios, where there are any, and otherwise bounds.
        """
        place = {subset: k for k, subset in enumerate(effects.subsets)}
        W = np.zeros((len(place), len(rows)))
        for column, row in enumerate(rows):
            for subset, coefficient in row.items():
                if subset:
                    W[place[subset], column] += coefficient
        k = place[whole]
        V, centre = effects.expected[k], effects.expected @ W / effects.expected[k]
        tops, draws = effects.draws @ W, effects.draws[:, [k]]
        drawn = tops / draws
        linear = (tops - centre * V) / V - centre * (draws - V) / V
        mean = centre + (drawn - centre - linear).mean(axis=0)
        # A posterior mean that is constant, up to rounding, has no indices.
        own = effects.plug_in[k] if effects.plug_in[k] > NEGLIGIBLE * V else np.nan
        plug_in = effects.plug_in @ W / own
        errors = [
            _error(effects.error, W, k, centre, V, effects.replicates),
            _error(effects.error, W, k, plug_in, own, effects.plug_in_replicates),
        ]
        return cls(mean, plug_in, drawn, *errors)

    @property
    def std(self) -> Array:
        """The standard deviation of each ratio, (k,)."""
        return self.draws.std(axis=0, ddof=1)


def _error(
    error: Array, W: Array, k: int, ratio: Array, V: float, replicates: Array | None
) -> Array:
    """Return the error of ratios of sums by V, whose own errors are given."""
    bound = (error @ np.abs(W) + np.abs(ratio) * error[k]) / V
    if replicates is None:
        return bound
    # Errors of V_S and V go together: their ratio is known better than either.
    return np.minimum(scatter(replicates @ W / replicates[:, [k]]), bound)


def scatter(replicates: Array) -> Array:
    """Return the error of a mean over independent replicates (c, …), by Student's t."""
    return pooled_scatter([(1.0, replicates)])


def pooled_scatter(parts: Sequence[tuple[float, Array]]) -> Array:
    """Return the error of Σ weight × (mean over independent replicates (c, …)), by Student's t.

    All parts tell the scatter together: their degrees of freedom add up.
    """
    variance = sum(w**2 * own.var(axis=0, ddof=1) / len(own) for w, own in parts)
    width = stdtrit(sum(len(own) - 1 for _, own in parts), 0.5 * (1.0 + CONFIDENCE))
    return width * np.sqrt(variance)


@dataclass(frozen=True, eq=False)
class Effects:
    """Variances of conditional expectations, V_S = Var E[f | x_S], for subsets S of the players.

    ``subsets`` contain the set of all players, whose V_S is the variance V of f. ``plug_in`` (k,)
    is V_S of the posterior mean function, ``expected`` (k,) the posterior mean of V_S, ``draws``
    (R, k) are joint draws from its posterior. ``error`` (k,) bounds or estimates the numerical
    error of ``expected`` and ``plug_in``; ``method`` names the way they were found in words.
    ``replicates`` (c, k) are independent estimates whose mean is ``expected``, where there are any,
    and ``plug_in_replicates`` (c, k) those whose mean is ``plug_in``.
    """

    subsets: tuple[tuple[int, ...], ...]
    plug_in: Array
    expected: Array
    draws: Array
    error: Array
    method: str
    replicates: Array | None = None
    plug_in_replicates: Array | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = vars(self)[field.name]
            if isinstance(value, np.ndarray):
                object.__setattr__(self, field.name, read_only(value))


@dataclass(frozen=True, eq=False, repr=False)
class SobolPairs(Frozen):
    """The share of the variance that two features have only together, for k ``pairs`` (i, j).

    ``draws`` (R, k) are from the posterior of the indices, ``means`` (k,) their posterior means,
    ``plug_ins`` (k,) the indices of the posterior mean function, and ``errors`` (k,) the numerical
    errors. Matrices are symmetric, (P, P), with NaN on the diagonal and for pairs that were not
    asked for.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] * X[:, 1])
    >>> indices = gpattr.sobol_indices(model, gpattr.Uniform(-1.0, 1.0), pairs=True)
    >>> indices.pairs.values.round(2)
    array([[nan,  1.],
           [ 1., nan]])
    """

    pairs: Pairs
    feature_names: Names
    means: Array
    plug_ins: Array
    draws: Array
    errors: Array

    @property
    def values(self) -> Array:
        """The posterior mean of each index, (P, P)."""
        return self._matrix(self.means)

    @property
    def std(self) -> Array:
        """The posterior standard deviation of each index, (P, P)."""
        return self._matrix(self.draws.std(axis=0, ddof=1))

    @property
    def plug_in(self) -> Array:
        """The indices of the posterior mean function, (P, P)."""
        return self._matrix(self.plug_ins)

    @property
    def error(self) -> Array:
        """The numerical error of each index, (P, P)."""
        return self._matrix(self.errors)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the lower and upper ends, each (P, P), of the central credible intervals."""
        lower, upper = central(self.draws, level)
        return self._matrix(lower), self._matrix(upper)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return one line per pair, the largest first."""
        import pandas as pd

        lower, upper = central(self.draws, level)
        names = np.array(self.feature_names, dtype=object)[self._places]
        columns = {
            "feature": names[:, 0],
            "with": names[:, 1],
            "value": self.means,
            "std": self.draws.std(axis=0, ddof=1),
            "lower": lower,
            "upper": upper,
            "plug_in": self.plug_ins,
            "error": self.errors,
        }
        frame = pd.DataFrame(columns).sort_values("value", ascending=False, kind="stable")
        return frame.reset_index(drop=True)

    def __repr__(self) -> str:
        return f"Sobol indices of {len(self.pairs)} pairs\n{self.to_frame().to_string()}"

    @property
    def _places(self) -> Array:
        return np.array(self.pairs, dtype=int).reshape(-1, 2)

    def _matrix(self, numbers: Array) -> Array:
        P = len(self.feature_names)
        matrix = np.full((P, P), np.nan)
        i, j = self._places.T
        matrix[i, j] = matrix[j, i] = numbers
        matrix.flags.writeable = False
        return matrix


def central(draws: Array, level: float) -> tuple[Array, Array]:
    """Return the ends of the central credible intervals of draws (R, k), each (k,)."""
    tail = 0.5 * (1.0 - check_level(level))
    lower, upper = np.quantile(draws, [tail, 1.0 - tail], axis=0)
    return lower, upper
