"""Baseline sensitivity: how far attributions move as their baseline moves within a set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import FloatArray
from gpattr._core.frozen import FrozenMapping
from gpattr._core.readable_numbers import readable_all
from gpattr._core.validation import Names, check_flag
from gpattr.explanation.result import (
    INTEGRATED_GRADIENTS,
    SHOWN,
    Result,
    RowNames,
    Table,
    counted,
    long_frame,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

OVER_BASELINES = ("lowest", "highest", "mean", "std", "same_sign")


@dataclass(frozen=True, eq=False, repr=False)
class BaselineSensitivity(Result):
    """Mean attributions (n, d) of rows at the explainer's own baseline, and at each of a set.

    ``values`` are those at the own baseline, called ``baseline_name``. ``lowest``, ``highest``,
    ``mean`` and ``std`` (n, d) are over the ``n_baselines`` of the set, with their weights;
    ``mean`` is the attribution whose baseline is the whole set, `gpattr.Baselines`. ``std`` is how
    far the choice of the baseline moves an attribution; it is not the uncertainty of the model.

    ``same_sign`` (n, d) is the share of the baselines that give an attribution the sign it has at
    the own baseline, ignoring baselines where it is zero: it is exactly zero where a row has the
    baseline's value of a feature. An attribution that is zero at the own baseline keeps its sign
    only if it is zero at all of them, and its share is then 1.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> sensitivity = explainer.baseline_sensitivity([[2.0, 0.5]])
    >>> sensitivity.values.round(2), sensitivity.std.round(1)
    (array([[ 2.  , -0.25]]), array([[0.9, 0.9]]))
    """

    values: FloatArray
    lowest: FloatArray
    highest: FloatArray
    mean: FloatArray
    std: FloatArray
    same_sign: FloatArray
    n_baselines: int
    feature_names: Names
    row_names: RowNames
    quantity: str = "prediction"
    baseline_name: str = ""
    attribution: str = INTEGRATED_GRADIENTS

    DIMENSIONS = FrozenMapping(dict.fromkeys(("values", *OVER_BASELINES), ("row", "feature")))

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of features, (n, d)."""
        n, d = self.values.shape
        return n, d

    @property
    def sign_holds(self) -> FloatArray:
        """Whether no baseline of the set gives an attribution the opposite sign, (n, d)."""
        return self.same_sign == 1.0

    def to_frame(self, flipped: bool = False) -> pd.DataFrame:
        """Return one line per row and feature, or with ``flipped`` those whose sign does not hold.

        Its columns are row, feature, value, lowest, highest, mean, std, same_sign and sign_holds.
        """
        check_flag("flipped", flipped)
        columns = {name: getattr(self, name) for name in (*OVER_BASELINES, "sign_holds")}
        labels = {"row": self.row_names, "feature": self.feature_names}
        frame = long_frame(labels, {"value": self.values} | columns)
        return frame.query("not sign_holds").reset_index(drop=True) if flipped else frame

    def plot(self, row: int | None = None, **options: Any) -> Axes:
        """Draw one row, as `gpattr.plots.baseline_sensitivity` does."""
        from gpattr import plots

        return plots.baseline_sensitivity(self, row, **options)

    def _heading(self) -> list[str]:
        n, d = self.shape
        what = "" if self.quantity == "prediction" else f" of the {self.quantity}"
        size = f"{counted(n, 'row')} × {counted(d, 'feature')}"
        return [
            f"BaselineSensitivity{what}: {size}, {self.n_baselines:,} baselines",
            f"signs at the own baseline, {self.baseline_name or 'given point'}, are kept by all"
            f" baselines in {self.sign_holds.mean():.0%} of the attributions",
        ]

    def _table(self) -> Table:
        """Return the only row feature by feature, or summaries over rows."""
        order = np.argsort(-np.abs(self.values).mean(axis=0), kind="stable")[:SHOWN]
        names = [self.feature_names[i] for i in order]
        if len(self.values) == 1:
            header = ["feature", "value", "lowest", "highest", "std", "same sign"]
            parts = [getattr(self, name)[0, order] for name in ("values", "lowest", "highest")]
            parts.append(self.std[0, order])
            shares = [self.same_sign[0, order]]
        else:
            header = ["feature", "mean |value|", "mean std", "mean range", "same sign", "holds in"]
            spread = (self.highest - self.lowest)[:, order].mean(axis=0)
            size = np.abs(self.values)[:, order].mean(axis=0)
            parts = [size, self.std[:, order].mean(axis=0), spread]
            shares = [each[:, order].mean(axis=0) for each in (self.same_sign, self.sign_holds)]
        largest = max(float(np.abs(part).max(initial=0.0)) for part in parts)
        cells = [readable_all(part, largest=largest) for part in parts]
        cells += [[f"{each:.0%}" for each in share] for share in shares]
        return header, [list(line) for line in zip(names, *cells, strict=True)]

    def _notes(self) -> list[str]:
        hidden = self.shape[1] - SHOWN
        return [f"and {hidden} more features"] if hidden > 0 else []
