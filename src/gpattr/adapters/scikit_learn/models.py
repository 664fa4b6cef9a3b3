"""Fitted Gaussian processes of scikit-learn, and its kernels."""

from __future__ import annotations

from copy import copy
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from gpattr.adapters.foreign import FLOAT32, side_by_side, with_columns, with_note
from gpattr.adapters.registry import Adapted
from gpattr.adapters.translation import Here, KernelTable, combined, rule
from gpattr.bases import Monomials
from gpattr.exceptions import NotFittedError, UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Kernel,
    Linear,
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SquaredExponential,
    White,
)
from gpattr.kernels.white import fold_white
from gpattr.means import Constant as ConstantMean
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
            mean=ConstantMean(centre) if centre else None,
        )
    else:  # all share one kernel and one noise: one factorisation
        first = ExactPosterior(kernel, X, targets[:, 0], noise=np.asarray(model.alpha))
        normalised = [first, *(first.given(y) for y in targets.T[1:])]
        result = MultiOutputPosterior(
            [
                CombinationPosterior([posterior], [unit], mean=ConstantMean(centre))
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

    They refer to the normalised targets. `predict` computes the same, but changes warning filters
    while it checks its rows, and warns where rounding makes a variance negative, as at training
    rows without noise.
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
        return side_by_side(binary.latent_mean_and_variance(points) for binary in binaries)

    names = [str(label) for label in model.classes_.tolist()]
    result = (
        MultiOutputPosterior(dict(zip(names, posteriors, strict=True)))
        if several
        else posteriors[0]
    )
    return Adapted(result, predict, rows)


def require_fitted(model: Any, attribute: str) -> None:
    """Raise `NotFittedError` for a model that lacks the attributes of fitting."""
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
        mean=ConstantMean(level),
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

    `ARDRegression` keeps the covariance of weights it has not pruned; the others are zero.
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


MATERN = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52, np.inf: SquaredExponential}


def translate(kernel: Any, d: int) -> Kernel:
    """Return a fitted scikit-learn kernel on d features; raise for one without an equivalent."""
    if vanishes(kernel):
        raise UnsupportedModelError(f"kernel: this {type(kernel).__name__} is zero everywhere")
    return KERNELS.translate(kernel, d)


def _other(kernel: Any, here: Here) -> Kernel:
    name, module = type(kernel).__name__, type(kernel).__module__
    if module.startswith("sklearn."):
        raise here.refusal(f"scikit-learn's {name} is not supported")
    raise here.refusal(
        f"{module}.{name}, which is not scikit-learn's, is not supported;"
        " gpattr.kernels.Function takes a kernel with its derivatives"
    )


def vanishes(kernel: Any) -> bool:
    """Return whether a kernel is zero everywhere, as noise of the level 0 is."""
    name = type(kernel).__name__
    if name == "WhiteKernel":
        return kernel.noise_level == 0
    if name == "ConstantKernel":
        return kernel.constant_value == 0
    if name == "Exponentiation":
        return kernel.exponent > 0 and vanishes(kernel.kernel)
    if name == "Product":
        return vanishes(kernel.k1) or vanishes(kernel.k2)
    return name == "Sum" and vanishes(kernel.k1) and vanishes(kernel.k2)


def _sum(kernel: Any, here: Here) -> Kernel:
    parts: list[Any] = [here.part(part) for part in (kernel.k1, kernel.k2) if not vanishes(part)]
    return reduce(add, parts)


def _pairwise(kernel: Any, here: Here) -> Kernel:
    """One of `sklearn.metrics.pairwise`: kernels that have γ use it."""
    options = dict(kernel.pairwise_kernels_kwargs or {})
    gamma = float(kernel.gamma)
    if kernel.metric == "linear" and not options:
        return Linear()
    if kernel.metric == "rbf" and not options:
        return SquaredExponential((0.5 / gamma) ** 0.5)
    if kernel.metric in ("poly", "polynomial") and set(options) <= {"degree", "coef0"}:
        degree, offset = float(options.get("degree", 3)), float(options.get("coef0", 1))
        if degree == round(degree) and degree > 1 and offset > 0:
            return Polynomial(gamma, degree=int(degree), offset=offset)
    raise UnsupportedModelError(
        f"kernel: PairwiseKernel with metric='{kernel.metric}'"
        f"{f' and {options}' if options else ''} is not supported; supported are 'linear', 'rbf'"
        " and 'poly' with a positive coef0"
    )


def _matern(kernel: Any, here: Here) -> Kernel:
    if kernel.nu in MATERN:
        return MATERN[kernel.nu](kernel.length_scale)
    if kernel.nu <= 1:
        raise UnsupportedModelError(
            f"kernel: functions of a Matern with nu={kernel.nu:g} have no gradients; only nu=0.5"
            " is supported, for prediction"
        )
    return Matern(kernel.length_scale, nu=kernel.nu)


def _periodic(kernel: Any, here: Here) -> Kernel:
    here.require_one_column("ExpSineSquared")
    return Periodic(kernel.length_scale, kernel.periodicity)


def _dot_product(kernel: Any, here: Here) -> Kernel:
    return Linear() + Constant(kernel.sigma_0**2) if kernel.sigma_0**2 else Linear()


def _power(kernel: Any, here: Here) -> Kernel:
    return _powered(kernel.kernel, float(kernel.exponent), here)


def _powered(kernel: Any, exponent: float, here: Here) -> Kernel:
    """Return kernel**exponent: in closed form where its family allows, else a repeated product."""
    name = type(kernel).__name__
    if name == "Exponentiation":
        return _powered(kernel.kernel, exponent * float(kernel.exponent), here)
    if name == "Product":
        return _powered(kernel.k1, exponent, here) * _powered(kernel.k2, exponent, here)
    if exponent > 0 and name == "ConstantKernel":
        return Constant(kernel.constant_value**exponent)
    if exponent > 0 and name == "RBF":
        return SquaredExponential(np.asarray(kernel.length_scale) / exponent**0.5)
    if exponent > 0 and name == "ExpSineSquared" and here.d == 1:
        return Periodic(kernel.length_scale / exponent**0.5, kernel.periodicity)
    if exponent > 0 and name == "RationalQuadratic":
        return RationalQuadratic(kernel.length_scale / exponent**0.5, alpha=kernel.alpha * exponent)
    power = here.whole_power(f"{name} to the power", exponent, "power")
    # Without an offset it is a product of linear kernels.
    if name == "DotProduct" and power > 1 and kernel.sigma_0**2:
        return Polynomial(degree=power, offset=kernel.sigma_0**2)
    return reduce(mul, [here.part(kernel)] * power)


KERNELS = KernelTable(
    "scikit-learn's",
    {
        "RBF": rule(SquaredExponential, lengthscale="length_scale"),
        "Matern": _matern,
        "RationalQuadratic": rule(RationalQuadratic, lengthscale="length_scale", alpha="alpha"),
        "ExpSineSquared": _periodic,
        "DotProduct": _dot_product,
        "ConstantKernel": rule(Constant, variance="constant_value"),
        "WhiteKernel": rule(White, variance="noise_level"),
        "PairwiseKernel": _pairwise,
        "Sum": _sum,
        "Product": combined(mul, "k1", "k2"),
        # exp(−Σᵢ ℓᵢ[xᵢ ≠ x'ᵢ]) of scikit-optimize: of columns of 0 and 1, a squared exponential
        "HammingKernel": rule(
            SquaredExponential, lengthscale=("length_scale", lambda rates: (2.0 * rates) ** -0.5)
        ),
        "Exponentiation": _power,
    },
    other=_other,
)
