"""Comparison of quadrature rules: their convergence to the exact attributions, as in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from gpattr._core.validation import check_choice
from gpattr.closed_forms.quadrature.fixed_rules import FIXED_RULES, check_steps, nodes_and_weights
from gpattr.exceptions import InvalidInputError
from gpattr.explainer.explainer import Explainer


def compare_rules(
    model: Any,
    x: ArrayLike,
    baseline: Any = "mean",
    *,
    rules: str | Sequence[str] = FIXED_RULES,
    n_steps: int | Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128),
) -> pd.DataFrame:
    """Return the error of each rule for one row x by the number of evaluations.

    Parameters
    ----------
    model, baseline
        As for `Explainer`.
    x : array (d,) or (1, d)
        The row.
    rules : str or sequence of str
        Among ``"right"``, ``"trapezoid"``, ``"simpson"`` and ``"gauss_legendre"``.
    n_steps : int or sequence of int
        The numbers of steps.

    Returns
    -------
    DataFrame
        One line per rule and number of steps: ``rule``, ``n_steps``, ``evaluations``;
        ``mean_error`` is the largest error of a mean attribution and ``std_error`` of a standard
        deviation, ``mse`` the mean square of the former over the features. The reference is
        ``method="auto"``.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> errors = gpattr.compare_rules(model, [1.0, 1.0], rules="trapezoid", n_steps=[2, 8])
    >>> errors[["rule", "n_steps", "evaluations"]]
            rule  n_steps  evaluations
    0  trapezoid        2            3
    1  trapezoid        8            9
    """
    rules, n_steps = (
        _listed(name, value) for name, value in (("rules", rules), ("n_steps", n_steps))
    )
    reference = Explainer(model, baseline)
    row = reference.task.reader.point("x", x)[None]
    exact = reference(row, uncertainty="std")
    assert exact.std is not None
    lines = []
    for rule in rules:
        check_choice("rules", rule, FIXED_RULES)
        for steps in n_steps:
            check_steps(rule, steps)
            ex = Explainer(model, reference.baseline, method=rule, n_steps=steps)(
                row, uncertainty="std"
            )
            assert ex.std is not None
            lines.append(
                {
                    "rule": rule,
                    "n_steps": int(steps),
                    "evaluations": len(nodes_and_weights(rule, steps)[0]),
                    "mean_error": float(np.abs(ex.values - exact.values).max()),
                    "std_error": float(np.abs(ex.std - exact.std).max()),
                    "mse": float(((ex.values - exact.values) ** 2).mean()),
                }
            )
    return pd.DataFrame(lines)


def _listed(name: str, value: Any) -> list[Any]:
    """Return one value or several as a non-empty list."""
    try:
        values = [value] if isinstance(value, (str, int, np.integer)) else list(value)
    except TypeError:
        values = []
    if not values:
        raise InvalidInputError(f"{name}: expected at least one, got {value!r}")
    return values
