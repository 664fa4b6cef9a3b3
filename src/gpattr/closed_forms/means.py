"""What operators make of a prior mean."""

from __future__ import annotations

from gpattr._array import EPS, Array, namespace
from gpattr.means import Constant, Function, Linear, Mean, Zero
from gpattr.operators import Operator, Paths
from gpattr.special.quadrature import integrate


def attribute_mean(op: Operator, mean: Mean, X: Array) -> tuple[Array, Array]:
    """Return 𝒜ᵢm at the rows of X, (n, d), and a bound on its error, (n,).

    A constant has no attributions, a linear mean has coefficientᵢ(xᵢ − bᵢ); any other is integrated along the path.
    """
    xp = namespace(X)
    values, errors = xp.zeros_like(X), xp.zeros(X.shape[0])
    if isinstance(mean, (Zero, Constant)):
        return values, errors
    for weight, sites in op.terms(X):
        value, error = _on_sites(mean, sites)
        values += weight * value
        errors += weight * (error.max(axis=1) + EPS * xp.abs(value).max(axis=1))
    return values, errors


def method_of(mean: Mean) -> frozenset[str]:
    """Return how attributions of this mean are computed."""
    return frozenset({"quadrature"}) if isinstance(mean, Function) else frozenset()


def _on_sites(mean: Mean, sites: object) -> tuple[Array, Array]:
    if not isinstance(sites, Paths):
        gradient = mean.gradient(sites.X)  # pyright: ignore[reportAttributeAccessIssue]  (points)
        return gradient, 0.0 * gradient
    if isinstance(mean, Linear):
        value = mean.coefficients * sites.step
        return value, 2 * EPS * abs(value)
    step = sites.step
    value, error = integrate(lambda t: mean.gradient(sites.at(t).reshape(-1, step.shape[1])).reshape(len(t), *step.shape))
    return value * step, error * abs(step)
