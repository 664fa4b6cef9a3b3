"""The model in the page, small enough to be sent along, by which it explains rows that were never
explained.

Kernels are sums of squared exponentials, each a variance and inverse length-scales, 0 for features
it does not see; a product of squared exponentials is one. The script `what_if.js` does with it what
`gpattr.closed_forms.squared_exponential` does here."""

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

MOST_POINTS = 2000  # the points a mean is a sum over
MOST_NUMBERS = 800 * 801 // 2  # of the factor by which variances are computed: 3.4 MB in the page


def what_if(explainer: Explainer, ex: Explanation) -> dict[str, Any] | str:
    """Return the model behind an explainer as JSON values, or why a page cannot hold or compute it.

    ``ex`` are rows that it explained, with its own features and its own baseline.
    """
    posterior = explainer.posterior
    if explainer.output != "latent" or posterior.several_outputs:
        return "sliders need a single latent output, and this is a probability"
    if isinstance(explainer.baseline, Baselines) or ex.baseline_name != explainer.baseline_name:
        return "sliders need one baseline for all rows"
    base = float(to_numpy(posterior.predict(to_numpy(explainer.baseline)[None]))[0])
    size = np.abs(ex.predictions).max() + abs(base)
    if np.abs(ex.base_values - base).max() > 1e-9 * size:  # many baselines are called "given point"
        return "the explanation has another baseline than the explainer"
    inner, (shift, scale, source), (factor, offset) = _inside(posterior)
    if not isinstance(inner, FunctionSpacePosterior) or inner.trend is not None:
        return "sliders support Gaussian processes in function space, without uncertain trends"
    if len(inner.inputs) > MOST_POINTS:
        return (
            f"the model has more than {MOST_POINTS} training rows, and the page would be too large"
        )
    terms, mean = _terms(inner.kernel, inner.n_features), _mean(inner.mean, inner.n_features)
    if terms is None or mean is None or not all(np.isfinite(inverse).all() for _, inverse in terms):
        return "sliders support squared-exponential kernels, with constant or linear means"
    encoder = posterior.encoder
    names = encoder.names if encoder is not None else explainer.feature_names or ex.feature_names
    same = names == ex.feature_names and len(names) == (
        posterior.n_columns if encoder is None else len(encoder.names)
    )
    if not same or (encoder is not None and encoder.jumps):
        return "sliders need the model's own features"
    Z = to_numpy(inner.inputs)
    points = np.zeros((len(Z), posterior.n_columns))
    points[:, source] = shift + scale * Z
    return {
        "m": len(Z),
        "shift": shift.tolist(),
        "scale": scale.tolist(),
        "source": source.tolist(),
        "output": {"factor": factor, "offset": offset},
        "terms": [
            {"variance": variance, "inverse": inverse.tolist()} for variance, inverse in terms
        ],
        "mean": mean,
        "inputs": packed(Z, "<f8"),
        "alpha": packed(to_numpy(inner.alpha), "<f8"),
        "baseline": to_numpy(explainer.baseline).tolist(),
        "columns": _columns(posterior.n_columns, encoder),
        "low": points.min(axis=0).tolist(),
        "high": points.max(axis=0).tolist(),
        **_factor(inner),
    }


def _inside(
    posterior: Posterior,
) -> tuple[Posterior, tuple[Array, Array, Array], tuple[float, float]]:
    """Return g of f(x) = factor · g((x[source] − shift)/scale) + offset: the posterior behind
    scalers and selections.
    """
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
            offset += factor * getattr(posterior.mean, "value", 0.0)
            factor *= float(posterior.coefficients[0])
            (posterior,) = posterior.posteriors
        else:
            return posterior, (shift, scale, source), (factor, offset)


def _only_scaled(posterior: Posterior) -> TypeGuard[CombinationPosterior]:
    if not isinstance(posterior, CombinationPosterior):
        return False
    return len(posterior.posteriors) == 1 and isinstance(posterior.mean, (Zero, ConstantMean))


def _terms(kernel: Kernel, d: int) -> list[tuple[float, Array]] | None:
    """Return a kernel as squared exponentials, each a variance and inverse length-scales (d,); None
    if it is something else.
    """
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


def _mean(mean: Mean, d: int) -> dict[str, Any] | None:
    """Return a prior mean intercept + Σ coefficientᵢ (xᵢ − originᵢ); None where it is something
    else.
    """
    zeros = [0.0] * d
    if isinstance(mean, (Zero, ConstantMean)):
        return {"intercept": getattr(mean, "value", 0.0), "coefficients": zeros, "origin": zeros}
    if isinstance(mean, Linear):
        origin = zeros if mean.origin is None else np.asarray(mean.origin).tolist()
        return {
            "intercept": mean.intercept,
            "coefficients": np.asarray(mean.coefficients).tolist(),
            "origin": origin,
        }
    return None


def _columns(d: int, encoder: Any) -> list[dict[str, Any]]:
    """Return of each feature its columns, the labels of these where it has categories, and its
    cycles where it is a date.
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
    return [{"places": encoder.places(name), **parts[name]} for name in encoder.names]


def _factor(posterior: FunctionSpacePosterior) -> dict[str, Any]:
    """Return what variances need: the lower triangle of L row by row, R, and w; nothing where they
    are too large.
    """
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
