"""The model inside the report, with which the page explains rows that the reader makes up.

Kernels are sums of squared exponentials, each a variance and inverse length-scales, 0 for features
it does not depend on; a product of squared exponentials is one. The script `what_if.js` computes in
the page what `gpattr.closed_forms.squared_exponential` computes here.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr.closed_forms.products import multiplied_out
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.explanation import Explanation
from gpattr.kernels import Constant, Kernel, Select, SquaredExponential
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear, Mean, Zero
from gpattr.operators import Baselines
from gpattr.posteriors import AffinePosterior, CombinationPosterior, Posterior
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.report.packing import packed

MOST_POINTS = 2000  # terms in the sum that is the posterior mean
MOST_NUMBERS = 800 * 801 // 2  # in the factor for variances: 3.4 MB in the page


def what_if(explainer: Explainer, ex: Explanation) -> dict[str, Any] | str:
    """Return the model of an explainer as JSON values, or why the page cannot have sliders.

    ``ex`` must have the features and the baseline of the explainer.
    """
    posterior = explainer.posterior
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
    inner, units, output = _inside(posterior)
    if not isinstance(inner, FunctionSpacePosterior) or inner.trend is not None:
        return "sliders support function-space Gaussian processes without uncertain trends"
    if len(inner.inputs) > MOST_POINTS:
        return (
            f"the model has more than {MOST_POINTS} training rows, so the page would be too large"
        )
    terms, mean = _terms(inner.kernel, inner.n_features), _mean(inner.mean, inner.n_features)
    if terms is None or mean is None or not all(np.isfinite(inverse).all() for _, inverse in terms):
        return "sliders support squared-exponential kernels with constant or linear means"
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
        "terms": [
            {"variance": variance, "inverse": inverse.tolist()} for variance, inverse in terms
        ],
        "mean": mean,
        "baseline": to_numpy(explainer.baseline).tolist(),
        "columns": _columns(posterior.n_columns, encoder),
        **_factor(inner),
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
        "inputs": packed(Z, "<f8"),
        "alpha": packed(to_numpy(inner.alpha), "<f8"),
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


def _terms(kernel: Kernel, d: int) -> list[tuple[float, Array]] | None:
    """Return the variances and inverse length-scales (d,) of squared exponentials, or None."""
    terms = []
    for leaves in multiplied_out(kernel) or [[kernel]]:
        precision, variance = np.zeros(d), 1.0
        for leaf in leaves:
            inner, features = (
                (leaf.kernel, list(leaf.features))
                if isinstance(leaf, Select)
                else (leaf, slice(None))
            )
            if not isinstance(inner, (SquaredExponential, Constant)):
                return None
            if isinstance(inner, SquaredExponential):
                with np.errstate(over="ignore"):
                    precision[features] += np.asarray(inner.lengthscale) ** -2.0
            variance *= inner.variance
        terms.append((variance, np.sqrt(precision)))
    return terms


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
    """Return the columns of each feature, its labels if categorical, its cycles if a date."""
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
    return [{"places": encoder.places(name), **parts[name]} for name in encoder.names]


def _factor(posterior: FunctionSpacePosterior) -> dict[str, Any]:
    """Return what variances need, unless too large: the lower triangle of L, R, and w."""
    m = len(posterior.inputs)
    root, scale = posterior.root, posterior.column_scale
    width = 0 if root is None else root.shape[1]
    if m * (m + 1) // 2 + m * width > MOST_NUMBERS:
        return {"factor": None}
    return {
        "factor": packed(to_numpy(posterior.factor)[np.tril_indices(m)], "<f8"),
        "root": None if root is None else packed(to_numpy(root), "<f8"),
        "column_scale": None if scale is None else packed(to_numpy(scale), "<f8"),
    }
