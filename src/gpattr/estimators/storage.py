"""Fitted regressors as files: options and data; factorisations are recomputed on loading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gpattr import kernels, means
from gpattr._core import documents
from gpattr._core.array import to_numpy
from gpattr._core.validation import numbers
from gpattr.estimators.integration import Component, Integrated
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel
from gpattr.means import Mean

if TYPE_CHECKING:
    from gpattr.estimators.base import PosteriorEstimator

MODULES = {"kernels": kernels, "means": means}
Model = TypeVar("Model", bound="PosteriorEstimator")


def save(model: PosteriorEstimator, path: str | PathLike[str]) -> None:
    """Write a fitted model to ``path``."""
    documents.write(f"gpattr.{type(model).__name__}", content_of(model), path)


def load(cls: type[Model], path: str | PathLike[str]) -> Model:
    """Read a fitted model from ``path``."""
    return documents.read(f"gpattr.{cls.__name__}", path, lambda content: model_of(cls, content))


def content_of(model: PosteriorEstimator) -> dict[str, Any]:
    """Return a fitted model as JSON values."""
    names = model.posterior_.feature_names
    return {
        "options": {
            name: encode(name, value) for name, value in model.get_params(deep=False).items()
        },
        "feature_names": None if names is None else list(names),
        "text_labels": "feature_names_in_" in vars(model),
        **model._content(),
    }


def model_of(cls: type[Model], content: Any) -> Model:
    """Return the fitted model that `content_of` wrote."""
    model = cls(**{name: decode(value) for name, value in content["options"].items()})
    names = content["feature_names"]
    if names is not None and content["text_labels"]:
        # What scikit-learn's fit sets.
        setattr(model, "feature_names_in_", np.array(names, dtype=object))  # noqa: B010
    model._restore(content, None if names is None else tuple(names))
    return model


def encode(name: str, value: Any) -> Any:
    """Return an option, a kernel or a mean as JSON values."""
    if isinstance(value, (Kernel, Mean)):
        module = "kernels" if isinstance(value, Kernel) else "means"
        names = [field.name for field in fields(value)]  # pyright: ignore[reportArgumentType]
        content = {name: getattr(value, name) for name in names}
        known = getattr(MODULES[module], type(value).__name__, None) is type(value)
        if not known or any(
            callable(part) and not isinstance(part, Kernel) for part in content.values()
        ):
            raise InvalidInputError(
                f"{name}: user-defined {type(value).__name__} objects cannot be saved; recreate"
                " them in code"
            )
        return {
            "module": module,
            "type": type(value).__name__,
            "fields": {field: encode(name, part) for field, part in content.items()},
        }
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "iub":
        return value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, type):
        return {"class": value.__name__}
    if isinstance(value, dict):
        return {"dictionary": {key: encode(name, inner) for key, inner in value.items()}}
    if isinstance(value, (list, tuple)):
        return [encode(name, inner) for inner in value]
    if name == "random_state":
        return None  # a generator has no place in a file
    return to_numpy(numbers(name, value)).tolist()


def decode(value: Any) -> Any:
    """Return the value that `encode` wrote; files of earlier versions have "room" for "module"."""
    if isinstance(value, dict) and ("module" in value or "room" in value):
        module = value["module"] if "module" in value else value["room"]
        kind = getattr(MODULES[module], value["type"])
        if not (isinstance(kind, type) and issubclass(kind, (Kernel, Mean))):
            raise TypeError(f"{value['type']} is neither a kernel nor a mean")
        content = {name: decode(inner) for name, inner in value["fields"].items()}
        return kind._from_fields(content) if issubclass(kind, Kernel) else kind(**content)
    if isinstance(value, dict) and "class" in value:
        kind = getattr(kernels, value["class"])
        if not (isinstance(kind, type) and issubclass(kind, kernels.Radial)):
            raise TypeError(f"{value['class']} is not a radial kernel")
        return kind
    if isinstance(value, dict):
        return {key: decode(inner) for key, inner in value["dictionary"].items()}
    return [decode(inner) for inner in value] if isinstance(value, list) else value


def components(found: Integrated) -> list[dict[str, Any]]:
    """Return the models of a mixture as JSON values, without data and posteriors."""
    return [
        {
            "weight": part.weight,
            "family": part.family,
            "kernel": encode("kernel", part.kernel),
            # One noise for each row is known, the same for all models, and kept with the rows.
            "noise": None if part.noise is None or np.ndim(part.noise) else float(part.noise),
        }
        for part in found.components
    ]


def integrated(
    content: Any, condition: Callable[[Kernel, Any], Any], noise: Any = None
) -> Integrated:
    """Return the mixture that `components` wrote; ``noise`` is for models without their own."""
    parts = []
    for part in content:
        kernel, own = decode(part["kernel"]), noise if part["noise"] is None else part["noise"]
        posterior = condition(kernel, own)
        parts.append(Component(part["weight"], part["family"], kernel, own, posterior))
    return Integrated(tuple(parts))
