"""Fitted Gaussian processes of scikit-learn."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from gpattr.adapters.foreign import FLOAT32, with_columns, with_note
from gpattr.adapters.registry import Adapted
from gpattr.adapters.scikit_learn.kernels import translate
from gpattr.bases import Monomials
from gpattr.exceptions import NotFittedError, UnsupportedModelError
from gpattr.kernels.white import fold_white
from gpattr.means import Constant
from gpattr.posteriors import (
    CombinationPosterior,
    ExactPosterior,
    LaplacePosterior,
    MultiOutputPosterior,
    WeightSpacePosterior,
)


def regressor(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `GaussianProcessRegressor`, in the units of its targets.

    ``y_train_`` is normalised where ``normalize_y`` was set; ``alpha`` is noise, and so is every
    `WhiteKernel`, which its predicted standard deviations contain.
    """
    require_fitted(model, "X_train_")
    X = with_columns(np.asarray(model.X_train_, dtype=np.float64), model)
    rows = np.asarray(X, dtype=np.float64)
    kernel = translate(model.kernel_, rows.shape[1])
    targets = np.asarray(model.y_train_, dtype=np.float64)
    targets = targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets
    P = targets.shape[1] if targets.ndim == 2 else 1
    shift, scale = (
        np.broadcast_to(np.ravel(part), (P,)) for part in (model._y_train_mean, model._y_train_std)
    )

    if targets.ndim == 1:
        centre, unit = float(shift[0]), float(scale[0])
        result = ExactPosterior(
            unit**2 * kernel if unit != 1.0 else kernel,
            X,
            centre + unit * targets,
            noise=unit**2 * np.asarray(model.alpha),
            mean=Constant(centre) if centre else None,
        )
    else:  # all share one kernel and one noise: one factorisation
        first = ExactPosterior(kernel, X, targets[:, 0], noise=np.asarray(model.alpha))
        normalised = [first, *(first.given(y) for y in targets.T[1:])]
        result = MultiOutputPosterior(
            [
                CombinationPosterior([posterior], [unit], mean=Constant(centre))
                for posterior, centre, unit in zip(
                    normalised, shift.tolist(), scale.tolist(), strict=True
                )
            ]
        )

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, var = _moments(model, points)
        var = var - fold_white(kernel, points)[1]
        return shift + scale * mean.reshape(len(points), P), scale**2 * var[:, None]

    single = "float32" in (str(model.X_train_.dtype), str(model.y_train_.dtype))
    return Adapted(
        with_note(result, FLOAT32) if single else result, predict, rows, accuracy=_accuracy(single)
    )


def _moments(model: Any, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return k(x, X)α and k(x, x) − k(x, X)A⁻¹k(X, x) with the model's own kernel and factor.

    They are those of the normalised targets. `predict` computes the same, but changes warning
    filters while it checks its rows, and warns where rounding makes a variance negative, as at
    training rows without noise.
    """
    # A subclass that overrides predict.
    if type(model).predict.__module__.split(".")[0] not in ("sklearn", "skopt"):
        shift, scale = (np.ravel(part) for part in (model._y_train_mean, model._y_train_std))
        mean, std = (
            np.asarray(part).reshape(len(points), -1)
            for part in model.predict(with_columns(points, model), return_std=True)
        )
        return (mean - shift) / scale, (std[:, 0] / scale[0]) ** 2
    K = model.kernel_(model.X_train_, points)
    V = solve_triangular(model.L_, K, lower=True)
    return K.T @ model.alpha_, model.kernel_.diag(points) - (V * V).sum(axis=0)


def _accuracy(single: bool) -> float:
    return float(np.finfo(np.float32 if single else np.float64).eps)


def classifier(model: Any, data: Any = None) -> Adapted:
    """Return the latent posterior of a `GaussianProcessClassifier`, one against the rest."""
    require_fitted(model, "base_estimator_")
    several = hasattr(model.base_estimator_, "estimators_")
    if several and model.multi_class != "one_vs_rest":
        raise UnsupportedModelError(
            f'multi_class: expected "one_vs_rest", got "{model.multi_class}", which has no'
            " per-class latent function"
        )
    binaries = list(model.base_estimator_.estimators_) if several else [model.base_estimator_]
    X = with_columns(np.asarray(binaries[0].X_train_, dtype=np.float64), model)
    rows = np.asarray(X, dtype=np.float64)
    posteriors = [
        LaplacePosterior.from_state(
            translate(binary.kernel_, rows.shape[1]),
            X,
            binary.y_train_,
            alpha=binary.y_train_ - binary.pi_,
            column_scale=binary.W_sr_,
            factor=binary.L_,
            label=(
                f"{label!r} against {model.classes_.tolist()[0]!r}"
                if not several
                else f"{label!r} against the rest"
            ),
        )
        for binary, label in zip(
            binaries,
            model.classes_.tolist() if several else model.classes_.tolist()[1:],
            strict=True,
        )
    ]

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = [binary.latent_mean_and_variance(points) for binary in binaries]
        means, variances = (np.stack([part[i] for part in parts], axis=-1) for i in (0, 1))
        return (means, variances) if several else (means[:, 0], variances[:, 0])

    names = [str(label) for label in model.classes_.tolist()]
    result = (
        MultiOutputPosterior(dict(zip(names, posteriors, strict=True)))
        if several
        else posteriors[0]
    )
    return Adapted(result, predict, rows)


def require_fitted(model: Any, attribute: str) -> None:
    """Raise `NotFittedError` for a model that lacks what fitting would have set."""
    if not hasattr(model, attribute):
        raise NotFittedError(
            f"model: this {type(model).__name__} is not fitted yet; call fit first"
        )


def linear(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `BayesianRidge` or an `ARDRegression`.

    It is f = intercept + w·x with w ~ N(coef_, sigma_). Its standard deviations contain the noise
    1/alpha_, and are taken about the mean of the training rows, where the level is known.
    """
    require_fitted(model, "coef_")
    d = len(model.coef_)
    single = str(model.sigma_.dtype) == "float32"
    origin = np.asarray(model.X_offset_ if model.fit_intercept else np.zeros(d), dtype=np.float64)
    level = float(model.intercept_) + float(origin @ model.coef_)
    names = getattr(model, "feature_names_in_", None)
    posterior = WeightSpacePosterior(
        Monomials.up_to(1, d, constant=False, origin=origin),
        model.coef_,
        _weight_covariance(model, single),
        mean=Constant(level),
        feature_names=None if names is None else tuple(map(str, names)),
        reference_points={"mean": origin} if model.fit_intercept else {},
    )
    unchecked = _without_checks(model)

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, std = unchecked.predict(points, return_std=True)
        return mean, std**2 - 1.0 / model.alpha_

    return Adapted(
        with_note(posterior, FLOAT32) if single else posterior,
        predict,
        _points_around(origin, model),
        accuracy=_accuracy(single),
    )


def _weight_covariance(model: Any, single: bool) -> np.ndarray:
    """Return the covariance of all weights, (d, d).

    `ARDRegression` keeps that of the weights it has not pruned; the others are zero.
    """
    d = len(model.coef_)
    pruned = hasattr(model, "threshold_lambda")
    kept = np.flatnonzero(model.lambda_ < model.threshold_lambda) if pruned else np.arange(d)
    covariance = np.zeros((d, d))
    sigma = np.asarray(model.sigma_, dtype=np.float64)
    if single:  # neither symmetric nor positive in float32
        shares, vectors = np.linalg.eigh(0.5 * (sigma + sigma.T))
        sigma = (vectors * np.maximum(shares, 0.0)) @ vectors.T
    covariance[np.ix_(kept, kept)] = sigma
    return covariance


def _without_checks(model: Any) -> Any:
    """Return a copy of a linear model that does not check the rows it predicts for.

    Checking them would change warning filters, which are shared by all threads.
    """
    unchecked, kind = copy(model), type(model)
    unchecked.__class__ = type(
        kind.__name__,
        (kind,),
        {"_decision_function": lambda self, X: X @ self.coef_ + self.intercept_},
    )
    return unchecked


def _points_around(origin: np.ndarray, model: Any) -> np.ndarray:
    """Return rows, (8, d), whose predictions differ by about the noise, to compare the model at."""
    generator = np.random.default_rng(0)
    scale = np.sqrt(1.0 / model.alpha_) / np.maximum(
        np.abs(model.coef_), 1e-8 * np.abs(model.coef_).max() + 1e-300
    )
    return origin + np.minimum(scale, 1e6) * generator.normal(size=(8, len(origin)))
