"""Kriging results of OpenTURNS, with the uncertainty of their trend's coefficients."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from gpattr.adapters.kernels import product_of
from gpattr.adapters.registry import Adapted
from gpattr.adapters.translation import Here, KernelTable, rule, value
from gpattr.bases import Monomials
from gpattr.exceptions import NotFittedError, UnsupportedModelError
from gpattr.kernels import (
    Kernel,
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Select,
    SquaredExponential,
)
from gpattr.means import Mean, Polynomial, Zero
from gpattr.posteriors import ExactPosterior

MATERN = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52}


def regression(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `GaussianProcessRegressionResult`."""
    import openturns as ot  # pyright: ignore[reportMissingImports]

    covariance = ot.GaussianProcessConditionalCovariance(model)
    fitted = model.getGaussianProcessFitterResult()
    return _adapted(
        model, covariance, _variances(fitted.getNoise()), np.array(fitted.getCholeskyFactor())
    )


def kriging(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `KrigingResult`."""
    return _adapted(model, model, 0.0)


def algorithm(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the result of a `GaussianProcessRegression` or `KrigingAlgorithm`."""
    try:
        result = model.getResult()
    except (RuntimeError, TypeError) as error:
        raise NotFittedError(
            f"model: this {type(model).__name__} has no result yet; call run first"
        ) from error
    return (kriging if type(result).__name__ == "KrigingResult" else regression)(result)


def _variances(noise: Any) -> Any:
    """Return the noise variances of the targets, 0 where there are none."""
    return np.array([np.array(part)[0, 0] for part in noise]) if noise.getSize() else 0.0


def _adapted(model: Any, predictions: Any, noise: Any, factor: np.ndarray | None = None) -> Adapted:
    """Return a posterior; with the library's own ``factor``, where it is kept, as exact as it."""
    X, Y = (np.array(part) for part in (model.getInputSample(), model.getOutputSample()))
    if not len(X):
        raise NotFittedError(
            f"model: this {type(model).__name__} has no data; call run of its algorithm first"
        )
    if Y.shape[1] > 1:
        raise UnsupportedModelError(
            f"model: {Y.shape[1]} correlated outputs of OpenTURNS are not supported; make a model"
            " for each"
        )
    d, names = X.shape[1], list(model.getInputSample().getDescription())
    model_of = model.getCovarianceModel()
    kernel = _covariance(model_of, lambda inner: KERNELS.translate(inner, d))
    nugget = float(model_of.getNuggetFactor()) * float(kernel.diagonal(X[:1])[0])
    rows, mean = _named(X, names), _trend(model.getBasis(), X)
    posterior = (
        ExactPosterior(kernel, rows, Y[:, 0], noise=noise + nugget, mean=mean)
        if factor is None or factor.shape != (len(X), len(X))
        else ExactPosterior.from_state(
            kernel, rows, Y[:, 0], noise=noise + nugget, mean=mean, factor=np.tril(factor)
        )
    )

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = np.array(predictions.getConditionalMean(points)).reshape(-1)
        variance = np.array(predictions.getConditionalMarginalVariance(points)).reshape(-1)
        return mean, variance - nugget  # which OpenTURNS adds to variances

    # At a training row itself OpenTURNS counts the nugget as part of the function.
    beside = X + 1e-3 * np.maximum(X.std(axis=0), 1e-3 * np.abs(X).max(axis=0))
    return Adapted(posterior, predict, beside)


def _named(X: np.ndarray, names: list[str]) -> Any:
    """Return rows with the names of their columns, unless OpenTURNS has made these up."""
    if names in ([f"v{i}" for i in range(len(names))], [f"X{i}" for i in range(len(names))]):
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=names) if len(set(names)) == len(names) else X


def _trend(basis: Any, X: np.ndarray) -> Mean:
    """Return the trend over a basis of polynomials up to degree 2, with a flat prior.

    Under a flat prior only what the functions span matters: they are evaluated, and must span as
    many monomials as there are functions.
    """
    p, d = int(basis.getSize()), X.shape[1]
    if p == 0:
        return Zero()
    monomials = Monomials.up_to(2, d, constant=True, origin=None)
    points = np.random.default_rng(0).normal(size=(2 * len(monomials) + 8, d))
    values = np.column_stack([np.array(basis.build(j)(points))[:, 0] for j in range(p)])
    terms = np.asarray(monomials(points))
    coefficients = np.linalg.lstsq(terms, values, rcond=None)[0]  # (monomials, p)
    size = np.abs(values).max(axis=0)
    used = np.flatnonzero((np.abs(coefficients) > 1e-9 * size).any(axis=1))
    fits = (np.abs(terms @ coefficients - values) < 1e-9 * size).all()
    if not fits or len(used) != p or np.linalg.matrix_rank(coefficients[used]) < p:
        raise UnsupportedModelError(
            f"basis: its {p} functions are not the monomials of a polynomial of degree 2 or less;"
            " use ConstantBasisFactory, LinearBasisFactory or QuadraticBasisFactory"
        )
    powers = np.asarray(monomials.powers)[used]
    return Polynomial(np.zeros(p), powers, covariance="flat")


def _covariance(model: Any, translated: Callable[[Any], Kernel]) -> Kernel:
    """Return a covariance model, without its nugget, from its translated correlation."""
    inner = model.getImplementation() if hasattr(model, "getImplementation") else model
    return float(inner.getAmplitude()[0]) ** 2 * translated(inner)


def _matern(model: Any, here: Here) -> Kernel:
    nu = float(model.getNu())
    if nu in MATERN:
        return MATERN[nu](here.value(model, "Scale"))
    if nu <= 1:
        raise here.refusal(
            f"functions of a MaternModel with nu={nu:g} have no gradients; only nu=0.5 is"
            " supported, for prediction"
        )
    return Matern(here.value(model, "Scale"), nu=nu)


def _generalised(model: Any, here: Here) -> Kernel:
    """exp(−r^p)."""
    power = float(model.getP())
    if power == 2.0:
        return SquaredExponential(here.value(model, "Scale") / 2.0**0.5)
    if power == 1.0:
        return Matern12(here.value(model, "Scale"))
    raise here.refusal(
        f"functions of a GeneralizedExponential with p={power:g} have no gradients; use p=2 or"
        " another model"
    )


def _product(model: Any, here: Here) -> Kernel:
    """A product over consecutive groups of features; the parts are correlations."""
    parts: list[Any] = []
    start = 0
    for part in model.getCollection():
        width = int(part.getInputDimension())
        kernel = _covariance(part, lambda inner, width=width: here.part(inner, width))
        parts.append(Select(kernel, list(range(start, start + width))))
        start += width
    return parts[0].kernel if len(parts) == 1 else reduce(mul, parts)


def _isotropic(model: Any, here: Here) -> Kernel:
    """One kernel of the distance of several features; its amplitude is the kernel's."""
    inner = model.getKernel().getImplementation()
    name = str(inner.getClassName())
    if name not in ("SquaredExponential", "MaternModel", "ExponentialModel"):
        raise here.refusal(f"IsotropicCovarianceModel of {name} is not supported")
    return here.part(inner)


KERNELS = KernelTable(
    "OpenTURNS'",
    {
        "SquaredExponential": rule(SquaredExponential, lengthscale="Scale"),
        "MaternModel": _matern,
        "ExponentialModel": rule(Matern12, lengthscale="Scale"),
        # exp(−Σ |δᵢ|/θᵢ)
        "AbsoluteExponential": lambda model, here: product_of(
            Matern12, 1.0 / np.array(model.getScale())
        ),
        "GeneralizedExponential": _generalised,
        "ProductCovarianceModel": _product,
        "IsotropicCovarianceModel": _isotropic,
    },
    argument="covarianceModel",
    read=lambda model, name, here: value(getattr(model, f"get{name}")()),
    name_of=lambda model: str(model.getClassName()),
)
