"""Ax: clients and adapters, in the user's parameters and in the units of the outcomes.

An adapter transforms parameters and outcomes before its BoTorch model sees them: standardised
outcomes, logarithms, one column for each category. What it does to a parameter is read off values
that its own transforms return, and so is what it does to an outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpattr.adapters.adapt import adapt
from gpattr.adapters.foreign import on_host, side_by_side, with_note
from gpattr.adapters.optimisers.search_spaces import (
    PROBES,
    Parameter,
    Surrogate,
    by_columns,
    explained,
)
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import NotFittedError, UnsupportedModelError
from gpattr.means import Constant
from gpattr.posteriors import (
    CombinationPosterior,
    MixturePosterior,
    MultiOutputPosterior,
    Posterior,
)

TRIED = np.array([0.0, 1.0, -3.0, 7.0])  # of outcomes; the first two say what a straight line is


def client(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the model by which a `Client`, or an `AxClient`, predicts."""
    strategy = (
        model._maybe_generation_strategy
        if hasattr(model, "_maybe_generation_strategy")
        else model._generation_strategy
    )
    found = None if strategy is None else strategy.adapter
    if found is None:
        raise NotFittedError(
            f"model: this {type(model).__name__} has no model yet; complete some trials, and ask"
            " for the next ones (get_next_trials), which fits it"
        )
    return adapter(found)


def adapter(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `TorchAdapter`'s BoTorch model, one output for each outcome."""
    surrogate = _surrogate(model)
    parameters = _parameters(model)
    outcomes = [_Outcome.of(model, i) for i in range(len(model.outcomes))]
    inner = adapt(surrogate)
    latent = list(inner.posterior.outputs.values())
    if len(latent) != len(outcomes) or not _independent(inner.posterior):
        raise UnsupportedModelError(
            f"model: expected one independent function for each of the outcomes {model.outcomes},"
            f" got a {type(surrogate).__name__} of {len(latent)}"
        )
    outcomes = _ordered(outcomes, model._experiment)
    posteriors = {outcome.name: outcome.in_units(latent[outcome.position]) for outcome in outcomes}
    one = next(iter(posteriors.values()))
    posterior = one if len(outcomes) == 1 else MultiOutputPosterior(posteriors)

    def seen(frame: Any) -> np.ndarray:
        return on_host(model.transform_observation_features(_features(frame)))

    def predict(frame: Any) -> tuple[np.ndarray, np.ndarray]:
        return side_by_side(outcome.predicted(model, _features(frame)) for outcome in outcomes)

    return explained(
        parameters,
        [Surrogate(tuple(posteriors), seen, predict, by_columns(posterior))],
        rows=_records(model, [part.name for part in parameters]),
        best=_best(model),
    )


def _ordered(outcomes: list[_Outcome], experiment: Any) -> list[_Outcome]:
    """Return outcomes in the order of the experiment, with the objective first."""
    names = list(experiment.metrics)
    known = [outcome for outcome in outcomes if outcome.name in names]
    others = [outcome for outcome in outcomes if outcome.name not in names]
    return sorted(known, key=lambda outcome: names.index(outcome.name)) + others


def _surrogate(model: Any) -> Any:
    """Return the BoTorch model of an adapter."""
    kind = type(model.generator).__name__
    if not model.can_predict:
        raise NotFittedError(
            f"model: the current generator of candidates is a {kind}, which has no surrogate to"
            " explain; complete more trials, until a Bayesian one takes over"
        )
    surrogate = getattr(model.generator, "surrogate", None)
    if surrogate is None:
        raise UnsupportedModelError(
            f"model: the surrogate of a {kind} is no Gaussian process of BoTorch; supported is that"
            " of a BoTorchGenerator"
        )
    return surrogate.model


def _independent(posterior: Posterior) -> bool:
    return not isinstance(posterior, MultiOutputPosterior) or posterior.independent


def _features(frame: Any) -> list[Any]:
    from ax.core.observation import (  # pyright: ignore[reportMissingImports]
        ObservationFeatures,
    )

    return [ObservationFeatures(parameters=row) for row in frame.to_dict("records")]


def _parameters(model: Any) -> list[Parameter]:
    space = model.model_space
    if space.is_hierarchical:
        raise UnsupportedModelError("search space: hierarchical parameters are not supported")
    return [
        _parameter(part)
        for part in space.parameters.values()
        if type(part).__name__ != "DerivedParameter"  # a function of the others
    ]


def _parameter(part: Any) -> Parameter:
    """Return a parameter; a choice between ordered numbers is one if the model's column is."""
    name, kind = str(part.name), type(part).__name__
    if kind == "RangeParameter":
        values = np.linspace(float(part.lower), float(part.upper), PROBES)
        digits = 0 if part.parameter_type.name == "INT" else part.digits
        if digits is not None:
            values = np.unique(values.round(digits)).astype(float if digits else int)
        return Parameter(name, tuple(values.tolist()), digits=digits)
    if kind not in ("FixedParameter", "ChoiceParameter"):
        raise UnsupportedModelError(f"search space: a {kind} is not supported")
    values = [part.value] if kind == "FixedParameter" else list(part.values)
    numeric = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    if numeric and len(values) == 1:
        return Parameter(name, tuple(values))
    if numeric and part.is_ordered:
        return Parameter(name, tuple(values), labels=tuple(values), discrete=True)
    return Parameter(name, labels=tuple(values))


class _Outcome:
    """An outcome: y = shift + scale·f of the model's f, or a function of that by ``behind``."""

    def __init__(self, position: int, signature: str, name: str) -> None:
        self.position, self.signature, self.name = position, signature, name
        self.shift, self.scale, self.behind = 0.0, 1.0, ""

    @classmethod
    def of(cls, model: Any, position: int) -> _Outcome:
        signature = model.outcomes[position]
        metrics = model._experiment.metrics.values()
        names = {getattr(metric, "signature", metric.name): metric.name for metric in metrics}
        result = cls(position, signature, str(names.get(signature, signature)))
        for name, transform in reversed(list(model.transforms.items())):
            values = result._untransformed(model, transform, result.shift + result.scale * TRIED)
            scale = values[1] - values[0]
            line = values[0] + scale * TRIED
            if not np.abs(line - values).max() <= 1e-9 * np.abs(values).max():
                result.behind = str(name)
                break
            result.shift, result.scale = float(values[0]), float(scale)
        return result

    def _untransformed(self, model: Any, transform: Any, values: np.ndarray) -> np.ndarray:
        """Return possible predictions ``values`` of the model after undoing one transform."""
        from ax.core.observation import (  # pyright: ignore[reportMissingImports]
            Observation,
            ObservationData,
            ObservationFeatures,
        )

        count = len(model.outcomes)
        data = [
            ObservationData(list(model.outcomes), np.full(count, value), np.zeros((count, count)))
            for value in values.tolist()
        ]
        features = [ObservationFeatures({}) for _ in values]
        made = transform.untransform_observations(
            [Observation(*pair) for pair in zip(features, data, strict=True)]
        )
        return np.array([part.data.means[self.position] for part in made])

    def in_units(self, posterior: Posterior) -> Posterior:
        """Return a posterior of the model's function in the units of the outcome."""
        if isinstance(posterior, MixturePosterior):
            parts = [self.in_units(part) for part in posterior.posteriors]
            result: Posterior = MixturePosterior(parts, posterior.weights)
        else:
            result = CombinationPosterior([posterior], [self.scale], mean=Constant(self.shift))
        if self.behind and not isinstance(posterior, MixturePosterior):
            note = f"of the latent function: {self.behind} of {self.name} is not affine"
            result = with_note(result, note)
        return result

    def predicted(self, model: Any, features: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return the adapter's own means and variances, (n,) each."""
        if not self.behind:
            means, covariances = model.predict(features)
            own = means[self.signature], covariances[self.signature][self.signature]
            return np.asarray(own[0]), np.asarray(own[1])
        i = self.position
        data = model._predict_observation_data(features, untransform=False)
        mean = np.array([part.means[i] for part in data])
        var = np.array([part.covariance[i, i] for part in data])
        return self.shift + self.scale * mean, self.scale**2 * var


def _records(model: Any, searched: Sequence[str]) -> Any:
    """Return the frame of the parameters that were measured."""
    rows = model.get_training_data().arm_data
    names = [name for name in searched if name in rows.columns]
    rows = rows[names].dropna()
    if len(names) < len(searched) or rows.empty:
        raise UnsupportedModelError(
            f"model: expected measurements of all of the parameters {list(searched)}, found"
            f" {len(rows)} of {names}"
        )
    return rows


def _best(model: Any) -> Any:
    """Return the parameters measured to be best as a frame; None without a single objective."""
    import pandas as pd
    from ax.service.utils.best_point import (  # pyright: ignore[reportMissingImports]
        get_best_raw_objective_point_with_trial_index as best_point,
    )

    config = model._experiment.optimization_config
    if config is None or config.is_moo_problem:
        return None
    try:
        return pd.DataFrame([dict(best_point(model._experiment, config)[1])])
    except (ValueError, KeyError):  # nothing complete, or nothing that keeps to the constraints
        return None
