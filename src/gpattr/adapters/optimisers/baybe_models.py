"""Campaigns and surrogates of BayBE, in the experimental representation.

A surrogate models the measured values of a target: transformations and directions of targets belong
to the objective, and are applied after the model. Its Gaussian process is a BoTorch model of
the computational representation, whose columns belong to the parameters one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpattr.adapters.optimisers.botorch_surrogates import of_botorch
from gpattr.adapters.optimisers.search_spaces import Parameter, explained, interval
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import InvalidInputError, NotFittedError, UnsupportedModelError


def campaign(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `Campaign`'s surrogate, of one target or several.

    The surrogate is the one that the campaign predicts with; it is trained if it has not been since
    the last measurement.
    """
    if model.objective is None:
        raise InvalidInputError("model: this Campaign has no objective, and so no model")
    if len(model.measurements) == 0:
        raise InvalidInputError(
            "model: this Campaign has no measurements yet; add_measurements comes first"
        )
    try:
        surrogate = model.get_surrogate()
    except Exception as error:
        if type(error).__name__ != "IncompatibilityError":  # BayBE's, not imported for it
            raise
        raise UnsupportedModelError(f"model: this Campaign has no model: {error}") from error
    best = _best(model.objective, model.searchspace, model.measurements)
    return _adapted(_members(surrogate), model.measurements, best)


def surrogate(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `GaussianProcessSurrogate`, or of a `CompositeSurrogate` of such.

    A composite has one output for each target, in the objective's order.
    """
    members = _members(model)
    rows, best = members[0]._measurements, None
    if len(members) == 1:
        best = _best(members[0]._objective, members[0]._searchspace, rows)
    else:
        import pandas as pd

        rows = pd.concat([member._measurements for member in members])
        rows = rows[list(members[0]._searchspace.parameter_names)].drop_duplicates()
    return _adapted(members, rows, best)


def _members(surrogate: Any) -> list[Any]:
    """Return the trained Gaussian processes of a surrogate, one for each target."""
    name = type(surrogate).__name__
    if name == "CompositeSurrogate":
        names = surrogate._modeled_quantity_names
        if names is None:
            raise _untrained(name)
        return [member for name in names for member in _members(surrogate[name])]
    if not any(base.__name__ == "GaussianProcessSurrogate" for base in type(surrogate).__mro__):
        raise UnsupportedModelError(
            f"model: a {name} is not a Gaussian process; GaussianProcessSurrogate is one"
        )
    if surrogate._model is None:
        raise _untrained(name)
    return [surrogate]


def _untrained(name: str) -> NotFittedError:
    return NotFittedError(
        f"model: this {name} is not fitted yet; call fit(searchspace, objective, measurements)"
        " first"
    )


def _adapted(members: Sequence[Any], rows: Any, best: Any) -> Adapted:
    space = members[0]._searchspace
    targets = [target for member in members for target in member._objective._modeled_quantities]
    surrogates = [
        of_botorch(
            member._objective._modeled_quantity_names,
            member.to_botorch(),
            lambda frame: space.transform(frame, allow_extra=True).to_numpy(dtype=np.float64),
        )
        for member in members
    ]
    return explained(
        [_parameter(parameter) for parameter in space.parameters],
        surrogates,
        rows=rows,
        best=best,
        target_names={target.name: _with_unit(target) for target in targets},
        anywhere=True,
    )


def _parameter(parameter: Any) -> Parameter:
    """Return a parameter of a search space."""
    if parameter.is_continuous:
        return interval(parameter.name, parameter.bounds.lower, parameter.bounds.upper)
    if parameter.is_numerical:
        return Parameter(parameter.name, tuple(map(float, parameter.values)), discrete=True)
    labels = tuple(parameter.values)
    return Parameter(parameter.name, labels=labels, active=tuple(parameter.active_values))


def _with_unit(target: Any) -> str:
    unit = getattr(getattr(target, "metadata", None), "unit", None)
    return target.name if unit is None else f"{target.name} ({unit})"


def _best(objective: Any, space: Any, measurements: Any) -> Any:
    """Return the best measured row, (1, columns), if an objective has one number to maximise."""
    names = [target.name for target in objective.targets]
    rows = measurements.dropna(subset=names)
    for parameter in space.parameters:
        if hasattr(parameter, "active_values") and not parameter.is_numerical:
            rows = rows[rows[parameter.name].isin(parameter.active_values)]
    if objective.n_outputs != 1 or not len(rows):
        return None
    values = objective.transform(rows[names], allow_extra=True).iloc[:, 0].to_numpy()
    return rows.iloc[[int(values.argmax())]]
