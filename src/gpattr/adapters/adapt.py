"""Conversion of any supported fitted model to a posterior."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any

import numpy as np

from gpattr._core.array import to_numpy
from gpattr._core.validation import check_flag, check_names, numbers
from gpattr.adapters.foreign import one_device
from gpattr.adapters.registry import Adapted, find_adapter
from gpattr.adapters.verification import verify
from gpattr.exceptions import (
    GpattrError,
    InvalidInputError,
    NotFittedError,
    UnsupportedModelError,
)
from gpattr.posteriors import AffinePosterior, MultiOutputPosterior, Posterior


def as_posterior(
    model: Any,
    *,
    data: Any = None,
    check: bool = True,
    output_names: Sequence[str] | None = None,
    **options: Any,
) -> Posterior:
    """Return the posterior of a fitted model, of ours or of another library.

    The model is read, never changed.

    Parameters
    ----------
    model : estimator, posterior or model of another library
        The fitted model.
    data : (X, y), optional
        The training data, for libraries that do not keep them.
    check : bool
        Whether to compare the model's own predictive mean and variance with the posterior's; where
        they differ, `UnsupportedModelError` is raised.
    output_names : sequence of str, optional
        The names of several outputs, in their order.
    **options
        Further options of the library's adapter.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> posterior = gpattr.as_posterior(GaussianProcessRegressor(alpha=0.01).fit(X, X[:, 0]))
    >>> type(posterior).__name__, posterior.n_features
    ('ExactPosterior', 2)
    """
    check_flag("check", check)
    name = type(model).__name__
    with one_device(name):
        adapted = adapt(model, data=data, **options)
        _check_data(adapted.posterior, data)
        if check and _own(model) is None:
            verify(adapted, name)
    return adapted.posterior if output_names is None else _renamed(adapted.posterior, output_names)


def adapt(model: Any, *, data: Any = None, **options: Any) -> Adapted:
    """Return a fitted model as a posterior that has not been compared with it yet."""
    posterior = _own(model)
    if posterior is not None:
        return Adapted(posterior, *_predictions(posterior))
    if isinstance(model, type):
        raise UnsupportedModelError(
            f"model: expected a fitted model, got the class {model.__name__}"
        )
    if hasattr(model, "fit") and type(model).__module__.split(".")[0] == "gpattr":
        raise NotFittedError(
            f"model: this {type(model).__name__} is not fitted yet; call fit(X, y) first"
        )
    with _library_of(model):
        adapter = find_adapter(model)
    if adapter is None:
        raise UnsupportedModelError(
            "model: expected a fitted Gaussian process of gpattr or of a supported library, got"
            f" {type(model).__module__}.{type(model).__name__}; gpattr.posteriors builds posteriors"
            " from kernel, data and noise; gpattr.register_adapter adds support for other models"
        )
    known = [
        name
        for name in signature(adapter).parameters
        if name not in ("model", "data", "posterior", "family")
    ]
    for name in options:
        if name not in known and not any(
            part.kind is part.VAR_KEYWORD for part in signature(adapter).parameters.values()
        ):
            raise InvalidInputError(
                f"{name}: unknown option for a {type(model).__name__}; the options are {known}"
            )
    data = _checked(data)
    with _library_of(model):
        return adapter(model, data=data, **options)


@contextmanager
def _library_of(model: Any) -> Iterator[None]:
    """Name the library of a model, and what to do, if it lacks what the adapter imports."""
    try:
        yield
    except GpattrError:
        raise
    except ImportError as error:
        library = type(model).__module__.partition(".")[0]
        raise UnsupportedModelError(
            f"model: the installed {library} lacks what gpattr reads of a {type(model).__name__}"
            f" ({error}); update both: pip install --upgrade gpattr {library}"
        ) from error


def _checked(data: Any) -> Any:
    """Return data as a pair (X, y), a data set with X and y, or targets alone."""
    if data is None or (hasattr(data, "X") and hasattr(data, "y")):
        return data
    pair = isinstance(data, tuple) or (
        isinstance(data, list) and len(data) == 2 and np.ndim(data[0]) > 0
    )
    try:
        parts = [numbers("data", part) for part in data] if pair else [numbers("data", data)]
    except ValueError:
        parts = []
    if (
        not parts
        or (pair and len(parts) != 2)
        or any(part.ndim == 0 or not len(part) for part in parts)
    ):
        raise InvalidInputError(
            f"data: expected (X, y), a data set with X and y, or targets, got {_shown(data)}"
        )
    return tuple(parts) if pair else parts[0]


def _shown(data: Any) -> str:
    text = repr(data)
    return text if len(text) < 60 else f"a {type(data).__name__}"


def _renamed(posterior: Posterior, names: Sequence[str]) -> Posterior:
    if not isinstance(posterior, MultiOutputPosterior):
        raise InvalidInputError(
            f"output_names: the model has one output, which is unnamed, got {names!r}"
        )
    labels = check_names("output_names", names, len(posterior.outputs))
    return posterior.with_outputs(dict(zip(labels, posterior.outputs.values(), strict=True)))


def _check_data(posterior: Posterior, data: Any) -> None:
    """Refuse data with other rows than a model has kept."""
    data = _checked(data)
    given = data[0] if isinstance(data, tuple) else getattr(data, "X", None)
    first = next(iter(posterior.outputs.values()))
    kept = first.training_inputs
    if given is None or kept is None or posterior.encoder is not None:
        return
    given, kept = np.asarray(to_numpy(given), dtype=np.float64), to_numpy(kept)
    given = given.reshape(len(given), -1)
    if given.shape[1] != kept.shape[1] and len(given) == len(kept):
        return  # a column that says the task, or that a pipeline drops
    used = first.source if isinstance(first, AffinePosterior) else range(kept.shape[1])
    used = list(used)
    same = given.shape == kept.shape
    if same:
        near = np.isclose(given[:, used], kept[:, used], rtol=1e-4, atol=1e-6 * np.abs(kept).max())
        same = bool((near | np.isnan(given[:, used])).all())
    if not same:
        raise InvalidInputError(
            f"data: expected the rows that the model was trained on, {kept.shape}, got other rows,"
            f" {given.shape}"
        )


def _own(model: Any) -> Posterior | None:
    for candidate in (model, getattr(model, "posterior_", None)):
        if isinstance(candidate, Posterior):
            return candidate
    return None


def _predictions(posterior: Posterior) -> tuple[Any, np.ndarray]:
    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, std = posterior.predict(X, return_std=True)
        return to_numpy(mean), to_numpy(std) ** 2

    rows = posterior.training_inputs
    return predict, np.zeros((2, posterior.n_columns)) if rows is None else to_numpy(rows)
