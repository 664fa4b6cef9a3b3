"""From a posterior to an Explanation: of the latent function, or of the probability it makes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.validation import check_choice
from gpattr.distributions import Distribution, Draws, Gaussian, Mixture
from gpattr.explainer.probability import drawn_attributions, mean_attributions, probability
from gpattr.explanation.explanation import Explanation
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import UNCERTAINTY, Attributions, Posterior
from gpattr.posteriors.base import note_of, require_covariance_room


def quantity(posterior: Posterior, scale: str, target_name: str | None, several: bool) -> str:
    """Return what is explained, in words; of one output among ``several`` classes the label says
    more than the target's name.
    """
    if not posterior.link:
        return "prediction" if target_name is None else f"predicted {target_name}"
    label = getattr(posterior, "label", "") if target_name is None or several else target_name
    return f"{'probability' if scale == 'probability' else 'log odds'} of {label}"


def of_function(
    posterior: Posterior,
    operator: IntegratedGradients,
    rows: Array,
    shared: dict[str, Any],
    result: Attributions,
) -> Explanation:
    """Return the explanation of f whose attributions are ``result``; ``shared`` are rows,
    baselines, names and the quantity.
    """
    predictions, base_values = (
        to_numpy(posterior.predict(points)) for points in (rows, operator.points)
    )
    base_values = _averaged(operator, base_values, len(rows))
    return Explanation(
        distribution=_distribution(result),
        predictions=predictions,
        base_values=base_values,
        method=result.method + (", categories jump" if operator.jumps else "") + _noted(posterior),
        error=to_numpy(result.error),
        cov_error=_handed_over(result.cov_error),
        delta=to_numpy(result.mean).sum(axis=1) - (predictions - base_values),
        **shared,
    )


def of_probability(
    posterior: Posterior,
    operator: IntegratedGradients,
    rows: Array,
    shared: dict[str, Any],
    *,
    uncertainty: str,
    tolerance: float,
    n_draws: int,
    random_state: Any,
) -> Explanation:
    """Return the explanation of E[σ(f)]: means by quadrature, and with ``uncertainty`` also draws."""
    check_choice("uncertainty", uncertainty, UNCERTAINTY)
    if uncertainty == "cov":
        require_covariance_room(*rows.shape)
    values, error = mean_attributions(posterior, operator, rows, tolerance)
    predictions, base_values = (
        probability(posterior, points) for points in (rows, operator.points)
    )
    base_values = _averaged(operator, base_values, len(rows))
    known: dict[str, Any] = {
        "predictions": predictions,
        "base_values": base_values,
        "method": f"quadrature through the {posterior.link} link{_noted(posterior)}",
        "error": error,
        "delta": values.sum(axis=1) - (predictions - base_values),
        **shared,
    }
    if uncertainty == "none":
        return Explanation(Gaussian(_handed_over(values)), **known)
    draws, draw_error = drawn_attributions(posterior, operator, rows, n_draws, random_state)
    cov = None
    if uncertainty == "cov":
        deviation = (draws - draws.mean(axis=0)).transpose(1, 2, 0)
        cov = _handed_over(deviation @ deviation.transpose(0, 2, 1) / (n_draws - 1))
    var = draws.var(axis=0, ddof=1) if cov is None else np.diagonal(cov, axis1=1, axis2=2)
    distribution = Draws(_handed_over(draws), _handed_over(values), cov, var)
    return Explanation(distribution, **known, draw_error=draw_error)


def _distribution(result: Attributions) -> Distribution:
    """Return the distribution of the attributions, with arrays that nobody else holds."""
    mean, var, cov = map(_handed_over, (result.mean, result.var, result.cov))
    parts = result.components
    if parts is None:
        return Gaussian(mean, var, cov)
    components = map(_handed_over, (parts.weights, parts.mean, parts.var, parts.cov))
    return Mixture(*components, mean=mean, var=var, cov=cov)


def _noted(posterior: Posterior) -> str:
    note = note_of(posterior)
    return f" ({note})" if note else ""


def _averaged(operator: IntegratedGradients, base_values: np.ndarray, n: int) -> np.ndarray:
    """Return F(b), (n,), from its values at the points of the baseline."""
    if operator.per_row:
        return base_values
    weights = np.ones(1) if operator.weights is None else operator.weights
    return np.full(n, weights @ base_values)


def _handed_over(array: Any) -> Any:
    """Return an array that nobody else holds as one the explanation can take without a copy."""
    if array is not None:
        array = to_numpy(array)
        array.flags.writeable = False
    return array
