"""The function `explain`: one call for rows that are explained once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from gpattr._core.deprecation import renamed_argument
from gpattr._core.randomness import RandomLike
from gpattr.explainer.attributions import Groups
from gpattr.explainer.explainer import Explainer
from gpattr.operators import Operator
from gpattr.posteriors import TOLERANCE

if TYPE_CHECKING:
    from gpattr.quantities import Quantity


@renamed_argument("scale", "output", since="0.1", removal="0.2")
def explain(
    model: Any,
    X: ArrayLike,
    baseline: Any = "mean",
    *,
    attribution: str | Operator = "integrated_gradients",
    method: str = "auto",
    n_steps: int | None = None,
    tolerance: float = TOLERANCE,
    covariance_tolerance: float | None = None,
    feature_names: Sequence[str] | None = None,
    output: str = "latent",
    n_draws: int = 1000,
    random_state: RandomLike = 0,
    target_name: str | None = None,
    baseline_name: str | None = None,
    players: Groups | None = None,
    quantity: Quantity | None = None,
    errors: str = "raise",
    uncertainty: str = "cov",
) -> Any:
    """Explain the rows of X in one call: ``Explainer(model, baseline, …)(X, uncertainty=…)``.

    Parameters
    ----------
    model, baseline, attribution, method, n_steps, tolerance, covariance_tolerance, feature_names
        As for `Explainer`.
    output, n_draws, random_state, target_name, baseline_name, players, quantity, errors
        As for `Explainer`.
    X, uncertainty
        As for `Explainer.__call__`.

    Returns
    -------
    Explanation or MultiOutputExplanation
        The latter for a model with several outputs.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> gpattr.explain(model, [[1.0, -1.0]], baseline="zeros").values.round(2)
    array([[ 1., -1.]])
    """
    explainer = Explainer(
        model,
        baseline,
        attribution=attribution,
        method=method,
        n_steps=n_steps,
        tolerance=tolerance,
        covariance_tolerance=covariance_tolerance,
        feature_names=feature_names,
        output=output,
        n_draws=n_draws,
        random_state=random_state,
        target_name=target_name,
        baseline_name=baseline_name,
        players=players,
        quantity=quantity,
        errors=errors,
    )
    return explainer(X, uncertainty=uncertainty)
