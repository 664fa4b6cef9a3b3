"""The model inside the report, with which the page explains rows that the reader makes up.

Kernels are sums of terms, each a variance, a product of leaves: squared exponentials, Matérn 3/2
and 5/2, rational quadratics, with inverse length-scales, 0 for features they do not depend on, and
a product of factors offset + Σ slope · x · z over some places: categories, polynomials. The script
`what_if.js` computes in the page what posteriors compute here. The factor of the training
covariance, 16 MB for 2000 rows, is computed there as well.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.explanation import Explanation
from gpattr.kernels import (
    Kernel,
    Matern,
    Matern32,
    Matern52,
    Polynomial,
    Radial,
    RationalQuadratic,
    SquaredExponential,
)
from gpattr.kernels import Linear as LinearKernel
from gpattr.kernels.factors import Factor, KernelProduct, multiplied_out
from gpattr.kernels.rational_quadratic import GAUSSIAN
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear, Mean, Zero
from gpattr.operators import Baselines
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    ExactPosterior,
    Posterior,
)
from gpattr.posteriors.classification import ClassificationPosterior
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.report.packing import packed

MOST_POINTS = 2000  # terms in the sum that is the posterior mean
MOST_OF_ALL = 16e6  # numbers in the factors of all models of a mixture: 64 MB, as triangles
MOST_NUMBERS = 800 * 801 // 2  # in a factor that the page cannot compute: 3.4 MB
ARRAYS = ("inputs", "alpha", "noise", "factor", "root", "column_scale")
KINDS = {
    SquaredExponential: "squared_exponential",
    Matern32: "matern32",
    Matern52: "matern52",
    RationalQuadratic: "rational_quadratic",
}
KERNELS = (
    "sliders support sums and products of squared exponential, Matérn 3/2, Matérn 5/2, rational"
    " quadratic and polynomial kernels, with constant or linear means"
)


def what_if(explainer: Explainer, ex: Explanation) -> dict[str, Any] | str:
    """Return the model of an explainer as JSON values, or why the page cannot have sliders.

    ``ex`` must have the features and the baseline of the explainer.
    """
    parts = [(weight, part) for weight, part in explainer.posterior.components]
    if len(parts) > 1:
        return _mixture(explainer, ex, parts)
    model = slider_model(explainer, ex)
    return model if isinstance(model, str) else _packed(model)


def _packed(model: dict[str, Any]) -> dict[str, Any]:
    """Return a model with its arrays as text."""
    return {
        name: packed(value, "<f8") if name in ARRAYS and value is not None else value
        for name, value in model.items()
    }


def _mixture(
    explainer: Explainer, ex: Explanation, parts: list[tuple[float, Posterior]]
) -> dict[str, Any] | str:
    """Return a mixture: its models' shared arrays, and under "models" each one's own."""
    models: list[dict[str, Any]] = []
    for _, posterior in parts:
        model = _model(explainer, ex, posterior)
        if isinstance(model, str):
            return model
        models.append(model)
    shared = dict(models[0])
    if len(models) * shared["m"] ** 2 > MOST_OF_ALL:
        return (
            f"a mixture of {len(models)} models with {shared['m']:,} training rows would take too"
            " much memory in a page; explainer.widget asks Python"
        )
    if any(not np.array_equal(model["inputs"], shared["inputs"]) for model in models):
        return "sliders need models of the same training rows"
    own = ("alpha", "terms", "mean", "output", "noise", "factor", "root", "column_scale")
    return _packed({name: value for name, value in shared.items() if name not in own}) | {
        "weights": [weight for weight, _ in parts],
        "models": [_packed({name: model[name] for name in own}) for model in models],
    }


def slider_model(explainer: Explainer, ex: Explanation) -> dict[str, Any] | str:
    """Return the model with the arrays called `ARRAYS` as numbers instead of text.

    Mixtures are not among them.
    """
    if len(explainer.posterior.components) > 1:
        return "sliders support function-space Gaussian processes without uncertain trends"
    return _model(explainer, ex, explainer.posterior)


def _model(explainer: Explainer, ex: Explanation, part: Posterior) -> dict[str, Any] | str:
    """Return the model of the posterior, or of the ``part`` that is one of its components."""
    posterior = explainer.posterior
    if explainer.quantity is not None:
        return "sliders are for predictions, not for other quantities of a model"
    if explainer.output != "latent" or posterior.several_outputs:
        return "sliders need a single latent output, not a probability"
    if explainer.attribution != "integrated_gradients":
        return "sliders are available for integrated gradients only"
    if isinstance(explainer.baseline, Baselines) or ex.baseline_name != explainer.baseline_name:
        return "sliders need one baseline for all rows"
    base = float(to_numpy(posterior.predict(to_numpy(explainer.baseline)[None]))[0])
    size = np.abs(ex.predictions).max() + abs(base)
    # Different baselines may have the same name, "given point".
    if np.abs(ex.base_values - base).max() > 1e-9 * size:
        return "the baselines of the explanation and the explainer differ"
    inner, units, output = _inside(part)
    if not isinstance(inner, FunctionSpacePosterior) or inner.trend is not None:
        return "sliders support function-space Gaussian processes without uncertain trends"
    if len(inner.inputs) > MOST_POINTS:
        return (
            f"the model has more than {MOST_POINTS} training rows, so the page would be too large"
        )
    terms, mean = _terms(inner.kernel, inner.n_features), _mean(inner.mean, inner.n_features)
    if terms is None or mean is None:
        return KERNELS
    encoder = posterior.encoder
    names = encoder.names if encoder is not None else explainer.feature_names or ex.feature_names
    same = names == ex.feature_names and len(names) == (
        posterior.n_columns if encoder is None else len(encoder.names)
    )
    if not same or (encoder is not None and encoder.jumps):
        return "sliders need the original features of the model"
    return {
        **_function(inner, units, posterior.n_columns),
        "output": {"factor": output[0], "offset": output[1]},
        "terms": terms,
        "mean": mean,
        "baseline": to_numpy(explainer.baseline).tolist(),
        "columns": _columns(posterior.n_columns, encoder),
        **_variances(inner),
    }


def _function(
    inner: FunctionSpacePosterior, units: tuple[Array, Array, Array], d: int
) -> dict[str, Any]:
    """Return the points and weights of the posterior mean, and the range of the points."""
    shift, scale, source = units
    Z = to_numpy(inner.inputs)
    points = np.zeros((len(Z), d))
    points[:, source] = shift + scale * Z
    return {
        "m": len(Z),
        "shift": shift.tolist(),
        "scale": scale.tolist(),
        "source": source.tolist(),
        "inputs": Z,
        "alpha": to_numpy(inner.alpha),
        "low": points.min(axis=0).tolist(),
        "high": points.max(axis=0).tolist(),
    }


def _inside(
    posterior: Posterior,
) -> tuple[Posterior, tuple[Array, Array, Array], tuple[float, float]]:
    """Return g, and the rest, of f(x) = factor · g((x[source] − shift)/scale) + offset."""
    posterior = posterior.in_columns
    d = posterior.n_features
    shift, scale, source, factor, offset = np.zeros(d), np.ones(d), np.arange(d), 1.0, 0.0
    while True:
        if isinstance(posterior, AffinePosterior):
            here = list(posterior.source)
            shift = shift[here] + scale[here] * np.asarray(posterior.shift)
            scale, source = scale[here] * np.asarray(posterior.scale), source[here]
            posterior = posterior.posterior
        elif _only_scaled(posterior):
            offset += factor * _constant(posterior.mean)
            factor *= float(posterior.coefficients[0])
            (posterior,) = posterior.posteriors
        else:
            return posterior, (shift, scale, source), (factor, offset)


def _only_scaled(posterior: Posterior) -> TypeGuard[CombinationPosterior]:
    if not isinstance(posterior, CombinationPosterior):
        return False
    return len(posterior.posteriors) == 1 and isinstance(posterior.mean, (Zero, ConstantMean))


def _terms(kernel: Kernel, d: int) -> list[dict[str, Any]] | None:
    """Return the terms of a kernel, or None; the squared exponentials of a term are one leaf."""
    terms = []
    for term in multiplied_out(kernel) or [KernelProduct(1.0, (Factor(kernel, None),))]:
        precision, variance, leaves, linear = np.zeros(d), term.scale, [], []
        for inner, columns, _ in term.factors:
            features = slice(None) if columns is None else list(columns)
            if type(inner) is LinearKernel or type(inner) is Polynomial:
                linear += _factors(inner, np.arange(d)[features])
                continue
            kind = _kind(inner)
            if kind is None or not isinstance(inner, Radial):
                return None
            variance *= inner.variance
            inverse = np.zeros(d)
            with np.errstate(over="ignore"):
                inverse[features] = 1.0 / np.asarray(inner.lengthscale)
                square = inverse**2
            if not np.isfinite(square).all():
                return None
            if kind == "squared_exponential":
                precision += square
            else:
                shape = {"alpha": inner.alpha} if isinstance(inner, RationalQuadratic) else {}
                leaves.append({"kind": kind, "inverse": inverse.tolist()} | shape)
        if precision.any() or (linear and not leaves):  # a path of factors alone has g = 1
            gaussian = {"kind": "squared_exponential", "inverse": np.sqrt(precision).tolist()}
            leaves.insert(0, gaussian)
        terms.append({"variance": variance, "leaves": leaves, "factors": linear})
    return terms


def _factors(kernel: LinearKernel | Polynomial, places: Array) -> list[dict[str, Any]]:
    """Return a polynomial kernel of some inputs as factors that are linear in each argument."""
    offset, degree = (kernel.offset, kernel.degree) if isinstance(kernel, Polynomial) else (0.0, 1)
    slopes = np.broadcast_to(np.asarray(kernel.variance, dtype=float), len(places))
    return [{"offset": offset, "places": places.tolist(), "slopes": slopes.tolist()}] * degree


def _kind(kernel: Kernel) -> str | None:
    """Return the name that the script has for a radial kernel of exactly this type, or None."""
    if type(kernel) is Matern:
        return {1.5: "matern32", 2.5: "matern52"}.get(kernel.nu)
    if type(kernel) is RationalQuadratic and kernel.alpha > GAUSSIAN:
        return "squared_exponential"
    return KINDS.get(type(kernel))


def _constant(mean: Mean) -> float:
    """Return the value of a constant or zero mean."""
    return mean.value if isinstance(mean, ConstantMean) else 0.0


def _mean(mean: Mean, d: int) -> dict[str, Any] | None:
    """Return a prior mean intercept + Σ coefficientᵢ (xᵢ − originᵢ), or None."""
    zeros = [0.0] * d
    if isinstance(mean, (Zero, ConstantMean)):
        return {"intercept": _constant(mean), "coefficients": zeros, "origin": zeros}
    if isinstance(mean, Linear):
        origin = zeros if mean.origin is None else np.asarray(mean.origin).tolist()
        return {
            "intercept": mean.intercept,
            "coefficients": np.asarray(mean.coefficients).tolist(),
            "origin": origin,
        }
    return None


def _columns(d: int, encoder: Any) -> list[dict[str, Any]]:
    """Return the columns of each feature, its labels if categorical, its cycles if a date.

    Labels that have codes are not columns of 0 and 1.
    """
    if encoder is None:
        return [{"places": [i], "labels": None} for i in range(d)]
    categories = {
        name: [str(label) for label in labels] for name, labels in encoder.categories.items()
    }
    dates = {
        name: {"cycles": list(found.cycles), "timed": found.timed}
        for name, found in encoder.dates.items()
    }
    parts = {
        name: {"labels": categories.get(name), "dates": dates.get(name)} for name in encoder.names
    }
    for name, codes in encoder.codes.items():
        parts[name]["codes"] = codes
    return [{"places": encoder.places(name), **parts[name]} for name in encoder.names]


def _variances(posterior: FunctionSpacePosterior) -> dict[str, Any]:
    """Return the arrays for variances: w, and the noise from which L follows; or L and R.

    Too large an L is left out, and so are variances.
    """
    m = len(posterior.inputs)
    root, scale, noise = posterior.root, posterior.column_scale, _noise(posterior)
    width = 0 if root is None else root.shape[1]
    fits = m * (m + 1) // 2 + m * width <= MOST_NUMBERS
    factor = to_numpy(posterior.factor)[np.tril_indices(m)] if noise is None and fits else None
    return {
        "noise": noise,
        "factor": factor,
        "root": None if root is None or factor is None else to_numpy(root),
        "column_scale": None if scale is None else to_numpy(scale),
    }


def _noise(posterior: FunctionSpacePosterior) -> Array | None:
    """Return the noise of L = chol(diag(w) K diag(w) + diag(noise)), or None if L is another."""
    if posterior.root is not None:
        return None
    m = len(posterior.inputs)
    scale = np.ones(m) if posterior.column_scale is None else to_numpy(posterior.column_scale)
    if isinstance(posterior, ExactPosterior):
        noise = to_numpy(posterior.noise)
    elif isinstance(posterior, ClassificationPosterior):
        noise = np.ones(m)
    else:
        return None
    K = to_numpy(posterior.kernel(posterior.inputs, posterior.inputs))
    L = to_numpy(posterior.factor)
    signs = np.where(np.arange(m) % 3 == 0, -1.0, 1.0)
    expected = scale * (K @ (scale * signs)) + noise * signs
    same = np.abs(L @ (L.T @ signs) - expected).max() <= 1e-11 * np.abs(expected).max()
    return noise if same else None
