"""Explanations built from what posteriors answer, for the latent function or a probability."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.randomness import RandomLike
from gpattr.distributions import Distribution, Draws, Gaussian
from gpattr.explainer.probability import drawn_attributions, mean_attributions, probability
from gpattr.explanation.explanation import Explanation
from gpattr.operators import Expectation, IntegratedGradients, Marginals, Operator, Shapley
from gpattr.posteriors import Attributions, Evaluation, Posterior
from gpattr.posteriors.bound import check_covariance_memory

LATENT, UNIT = "of the latent function", r" \([^()]*\)$"
Coordinates = dict[str, tuple[Any, ...]]


def words(posterior: Posterior, output: str, target_name: str | None, several: bool) -> str:
    """Return what is explained, in words.

    Of one output among ``several`` classes the label says more than the target's name.
    """
    if target_name is None:
        target_name = posterior.target_name
    if not posterior.link:
        if target_name is None:
            return "prediction"
        if LATENT in (posterior.note or ""):  # which is not in the units of the target
            return f"latent function of {re.sub(UNIT, '', target_name)}"
        return f"predicted {target_name}"
    label = posterior.label if target_name is None or several else target_name
    return f"{'probability' if output == 'probability' else 'log odds'} of {label}"


@dataclass(frozen=True, eq=False)
class Setting:
    """What the explanations of one call share: rows, names and the operator.

    ``shared`` are arguments of `Explanation`; ``gathering`` adds columns up to features, if some
    features are encoded.
    """

    operator: Operator
    rows: Array
    shared: dict[str, Any]
    gathering: np.ndarray | None = None

    def base_values(self, at: Any, posterior: Posterior) -> np.ndarray:
        """Return F(b), (n,), for a function ``at`` of points; NaN if there is no baseline."""
        reference = self.operator.reference
        if reference is None:
            return np.full(len(self.rows), np.nan)
        if isinstance(self.operator, Shapley) and reference.independent:
            drawn = Expectation(
                Marginals(reference.points, reference.weights), self.operator.players
            )
            mean = posterior.bind(drawn, Evaluation("none")).mean(self.rows[:1])
            return np.full(len(self.rows), float(to_numpy(mean)[0, 0]))
        values = at(reference.points)
        if reference.per_row:
            return values
        return np.full(len(self.rows), to_numpy(reference.weights) @ values)


def of_function(
    posterior: Posterior,
    result: Attributions,
    setting: Setting,
    quantity: str,
    coordinates: Coordinates | None = None,
) -> Explanation:
    """Return the explanation of f whose attributions are ``result``.

    ``coordinates`` are labels along axes, those of the operator if they are not given.
    """
    predictions = to_numpy(posterior.moments(setting.rows))
    base_values = setting.base_values(
        lambda points: to_numpy(posterior.moments(posterior.rows("baseline", points))), posterior
    )
    distribution = _owned(result.distribution)
    jump = ", categories jump" if setting.operator.jumps else ""
    return Explanation(
        distribution=distribution,
        predictions=predictions,
        base_values=base_values,
        method=result.method + jump + _noted(posterior),
        error=to_numpy(result.error),
        cov_error=None if result.cov_error is None else to_numpy(result.cov_error),
        delta=_gap(distribution.mean, predictions, base_values),
        quantity=quantity,
        axes=setting.operator.axes,
        coordinates=_coordinates(setting.operator, posterior.n_features)
        if coordinates is None
        else coordinates,
        **setting.shared,
    )


def of_probability(
    posterior: Posterior,
    setting: Setting,
    quantity: str,
    evaluation: Evaluation,
    *,
    n_draws: int,
    random_state: RandomLike,
) -> Explanation:
    """Return the explanation of E[σ(f)]: means by quadrature, with ``uncertainty`` also draws."""
    operator, rows, uncertainty = setting.operator, setting.rows, evaluation.uncertainty
    assert isinstance(operator, IntegratedGradients)
    if uncertainty == "cov":
        check_covariance_memory(len(rows), posterior.n_features)
    columns, G = posterior.in_columns, setting.gathering
    values, error = mean_attributions(columns, operator, rows, evaluation.tolerance)
    draws = draw_error = None
    if uncertainty != "none":
        draws, draw_error = drawn_attributions(columns, operator, rows, G, n_draws, random_state)
    if G is not None:
        values, error = values @ G, error * G.sum(axis=0).max()
    distribution = Gaussian(values)
    if draws is not None:
        distribution = _draws(draws, values, uncertainty)
    predictions = probability(columns, rows)
    base_values = setting.base_values(lambda points: probability(columns, points), posterior)
    return Explanation(
        distribution=_owned(distribution),
        predictions=predictions,
        base_values=base_values,
        method=f"quadrature through the {posterior.link} link{_noted(posterior)}",
        error=error,
        draw_error=draw_error,
        delta=_gap(values, predictions, base_values),
        quantity=quantity,
        **setting.shared,
    )


def mean_values(
    posterior: Posterior, operator: Operator, rows: Array, evaluation: Evaluation, output: str
) -> np.ndarray:
    """Return the mean attributions of f, or of the probability it makes, (n, d), and no more."""
    if output != "probability":
        return to_numpy(posterior.bind(operator, evaluation).mean(rows))
    assert isinstance(operator, IntegratedGradients)
    values, _ = mean_attributions(posterior.in_columns, operator, rows, evaluation.tolerance)
    return values if posterior.encoder is None else values @ posterior.encoder.gathering


def _coordinates(operator: Operator, d: int) -> Coordinates:
    """Return labels along the axes of an operator other than "feature"."""
    sizes = zip(operator.axes, operator.sizes(d), strict=True)
    return {
        axis: tuple(operator.coordinates.get(axis, range(size)))
        for axis, size in sizes
        if axis != "feature"
    }


def _owned(distribution: Distribution) -> Distribution:
    """Mark arrays that nobody else holds as read-only, so that they need not be copied."""
    for array in distribution.held().values():
        to_numpy(array).flags.writeable = False
    return distribution.numpy()


def _draws(draws: np.ndarray, values: np.ndarray, uncertainty: str) -> Draws:
    if uncertainty == "std":
        return Draws(draws, mean=values, var=draws.var(axis=0, ddof=1))
    deviation = (draws - draws.mean(axis=0)).transpose(1, 2, 0)
    cov = deviation @ deviation.transpose(0, 2, 1) / (len(draws) - 1)
    return Draws(draws, mean=values, cov=cov, var=np.diagonal(cov, axis1=1, axis2=2))


def _gap(values: np.ndarray, predictions: np.ndarray, base_values: np.ndarray) -> np.ndarray:
    """Return the completeness gap of each row, (n,)."""
    return values.sum(axis=1) - (predictions - base_values)


def _noted(posterior: Posterior) -> str:
    return f" ({posterior.note})" if posterior.note else ""
