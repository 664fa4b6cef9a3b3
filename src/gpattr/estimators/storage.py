"""Fitted regressors as files: options, hyperparameters and training data; the factor is computed anew on loading."""

from __future__ import annotations

from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr import _documents, kernels, means
from gpattr._array import to_numpy
from gpattr._validation import numbers
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel
from gpattr.means import Mean

if TYPE_CHECKING:
    from gpattr.estimators.gp_regressor import GPRegressor

FORMAT = "gpattr.GPRegressor"
ROOMS = {"kernels": kernels, "means": means}


def save(model: GPRegressor, path: str | PathLike[str]) -> None:
    """Write a fitted model to ``path``."""
    posterior = model.posterior_
    content = {
        "options": {name: _encode(name, value) for name, value in model.get_params(deep=False).items()},
        "kernel": _encode("kernel", model.kernel_),
        "mean": _encode("mean", model._prior_mean),
        "feature_names": None if posterior.feature_names is None else list(posterior.feature_names),
        "text_labels": "feature_names_in_" in vars(model),
        "arrays": {
            "X": _documents.encode(to_numpy(posterior.inputs), ("row", "feature")),
            "y": _documents.encode(to_numpy(posterior.y), ("row",)),
            "noise": _documents.encode(np.atleast_1d(model.noise_variance_), ("row",)),
        },
    }
    _documents.write(FORMAT, content, path)


def load(cls: type[GPRegressor], path: str | PathLike[str]) -> GPRegressor:
    """Read a fitted model from ``path``."""

    def build(content: Any) -> GPRegressor:
        model = cls(**{name: _decode(value) for name, value in content["options"].items()})
        X, y, noise = (_documents.decode(content["arrays"][name]) for name in ("X", "y", "noise"))
        model.n_features_in_ = X.shape[1]
        names = content["feature_names"]
        if names is not None:
            import pandas as pd

            if content["text_labels"]:
                setattr(model, "feature_names_in_", np.array(names, dtype=object))  # noqa: B010  (what scikit-learn's fit sets)
            X = pd.DataFrame(X, columns=names)
        level = noise if len(noise) > 1 else float(noise[0])
        return model.condition(_decode(content["kernel"]), _decode(content["mean"]), X, y, level)

    return _documents.read(FORMAT, path, build)


def _encode(name: str, value: Any) -> Any:
    if isinstance(value, (Kernel, Mean)):
        room = "kernels" if isinstance(value, Kernel) else "means"
        content = {field.name: getattr(value, field.name) for field in fields(value)}  # pyright: ignore[reportArgumentType]
        known = getattr(ROOMS[room], type(value).__name__, None) is type(value)
        if not known or any(callable(part) and not isinstance(part, Kernel) for part in content.values()):
            raise InvalidInputError(
                f"{name}: a {type(value).__name__} of your own cannot be written to a file; keep the code that makes it"
            )
        return {
            "room": room,
            "type": type(value).__name__,
            "fields": {field: _encode(name, part) for field, part in content.items()},
        }
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, type):
        return {"class": value.__name__}
    if isinstance(value, dict):
        return {"dictionary": {key: _encode(name, inner) for key, inner in value.items()}}
    if isinstance(value, (list, tuple)):
        return [_encode(name, inner) for inner in value]
    if name == "random_state":
        return None  # a generator has no place in a file
    return to_numpy(numbers(name, value)).tolist()


def _decode(value: Any) -> Any:
    if isinstance(value, dict) and "room" in value:
        kind = getattr(ROOMS[value["room"]], value["type"])
        if not (isinstance(kind, type) and issubclass(kind, (Kernel, Mean))):
            raise TypeError(f"{value['type']} is neither a kernel nor a mean")
        content = {name: _decode(inner) for name, inner in value["fields"].items()}
        return kind(*content["kernels"]) if kind in (kernels.Sum, kernels.Product) else kind(**content)
    if isinstance(value, dict) and "class" in value:
        kind = getattr(kernels, value["class"])
        if not (isinstance(kind, type) and issubclass(kind, kernels.Radial)):
            raise TypeError(f"{value['class']} is not a radial kernel")
        return kind
    if isinstance(value, dict):
        return {key: _decode(inner) for key, inner in value["dictionary"].items()}
    return [_decode(inner) for inner in value] if isinstance(value, list) else value
