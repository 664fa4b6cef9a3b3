"""What operators make of a prior mean."""

from __future__ import annotations

from gpattr._core.array import EPS, Array, namespace
from gpattr._core.memory import blocks
from gpattr.closed_forms.features import weighted_features
from gpattr.means import Constant, Expansion, Linear, Mean, Zero
from gpattr.operators import Operator, Paths, Points, Sites
from gpattr.special.quadrature import integrate


def attribute_mean(op: Operator, mean: Mean, X: Array) -> tuple[Array, Array]:
    """Return 𝒜ᵢm at the rows of X, (n, d), and a bound on its error, (n,).

    A constant has no attributions, a linear mean has coefficientᵢ(xᵢ − bᵢ), a polynomial is
    integrated exactly by Gauss–Legendre; any other is integrated along the path, to the last
    digits."""
    xp = namespace(X)
    values, errors = xp.zeros_like(X), xp.zeros(X.shape[0])
    if isinstance(mean, (Zero, Constant)):
        return values, errors
    for rows in blocks(len(X), 8.0 * 256 * X.shape[1]):
        part = op.rows(rows)
        if isinstance(mean, Expansion) and not isinstance(mean, Linear):
            values[rows], errors[rows] = weighted_features(
                part, mean.basis, X[rows], xp.asarray(mean.beta)
            )
            continue
        for weight, sites in part.terms(X[rows]):
            value, error = _on_sites(mean, sites)
            values[rows] += weight * value
            errors[rows] += weight * (error + EPS * xp.max(xp.abs(value), axis=1))
    return values, errors


def method_of(mean: Mean) -> frozenset[str]:
    """Return how attributions of this mean are computed."""
    return (
        frozenset() if isinstance(mean, (Zero, Constant, Expansion)) else frozenset({"quadrature"})
    )


def _on_sites(mean: Mean, sites: Sites) -> tuple[Array, Array]:
    """Return 𝒜m, (n, d), and a bound on its error, (n,)."""
    if isinstance(sites, Points):
        return mean.gradient(sites.X), namespace(sites.X).zeros(sites.shape[0])
    assert isinstance(sites, Paths)
    xp, step = namespace(sites.stop), sites.step
    if isinstance(mean, Linear):
        value = xp.asarray(mean.coefficients) * step
        return value, 2 * EPS * xp.max(xp.abs(value), axis=1)
    value, error = integrate(
        lambda t: mean.gradient(sites.at(t).reshape(-1, step.shape[1])).reshape(len(t), *step.shape)
    )
    value, error = value * step, xp.max(error * xp.abs(step), axis=1)
    # What a rule has missed altogether shows here: the attributions must add up to m(x) − m(b).
    gap = xp.abs(
        value.sum(axis=1) - (mean(sites.stop) - mean(xp.broadcast_to(sites.start, step.shape)))
    )
    return value, error + gap
