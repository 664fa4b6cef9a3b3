"""What operators make of a prior mean."""

from __future__ import annotations

from gpattr._array import EPS, Array, namespace
from gpattr._memory import blocks
from gpattr.means import Basis, Constant, Linear, Mean, Zero
from gpattr.operators import Operator, Paths, Points, Sites
from gpattr.special.quadrature import gauss_legendre, integrate


def attribute_mean(op: Operator, mean: Mean, X: Array) -> tuple[Array, Array]:
    """Return 𝒜ᵢm at the rows of X, (n, d), and a bound on its error, (n,).

    A constant has no attributions, a linear mean has coefficientᵢ(xᵢ − bᵢ), a polynomial is integrated exactly by Gauss–Legendre;
    any other is integrated along the path, to the last digits.
    """
    xp = namespace(X)
    values, errors = xp.zeros_like(X), xp.zeros(X.shape[0])
    if isinstance(mean, (Zero, Constant)):
        return values, errors
    for rows in blocks(len(X), 8.0 * 256 * X.shape[1]):
        for weight, sites in op.rows(rows).terms(X[rows]):
            value, error = _on_sites(mean, sites)
            values[rows] += weight * value
            errors[rows] += weight * (error + EPS * xp.max(xp.abs(value), axis=1))
    return values, errors


def attribute_basis(op: Operator, mean: Basis, X: Array) -> Array:
    """Return 𝒜ᵢφⱼ at the rows of X, (n, d, p), exactly."""
    return sum(weight * _basis_on_sites(mean, sites) for weight, sites in op.terms(X))  # pyright: ignore[reportReturnType]


def _basis_on_sites(mean: Basis, sites: Sites) -> Array:
    if isinstance(sites, Points):
        return namespace(sites.X).swapaxes(mean.basis_gradient(sites.X), 1, 2)
    assert isinstance(sites, Paths)
    xp, (n, d) = namespace(sites.stop), sites.shape
    total = xp.zeros((n, len(mean.beta), d))
    degree = int(mean.powers.sum(axis=1).max())
    for t, w in zip(*(rule.tolist() for rule in gauss_legendre(degree // 2 + 1)), strict=True):
        total += w * mean.basis_gradient(sites.at([t])[0])
    return xp.swapaxes(total * sites.step[:, None, :], 1, 2)


def method_of(mean: Mean) -> frozenset[str]:
    """Return how attributions of this mean are computed."""
    return frozenset() if isinstance(mean, (Zero, Constant, Basis)) else frozenset({"quadrature"})


def _on_sites(mean: Mean, sites: Sites) -> tuple[Array, Array]:
    """Return 𝒜m, (n, d), and a bound on its error, (n,)."""
    if isinstance(sites, Points):
        return mean.gradient(sites.X), namespace(sites.X).zeros(sites.shape[0])
    assert isinstance(sites, Paths)
    xp, step = namespace(sites.stop), sites.step
    if isinstance(mean, Linear):
        value = xp.asarray(mean.coefficients) * step
        return value, 2 * EPS * xp.max(xp.abs(value), axis=1)
    if isinstance(mean, Basis):
        values = _basis_on_sites(mean, sites)
        beta = xp.asarray(mean.beta)
        return values @ beta, 8 * EPS * xp.max(xp.abs(values) @ xp.abs(beta), axis=1)
    value, error = integrate(lambda t: mean.gradient(sites.at(t).reshape(-1, step.shape[1])).reshape(len(t), *step.shape))
    value, error = value * step, xp.max(error * xp.abs(step), axis=1)
    # What a rule has missed altogether shows here: the attributions must add up to m(x) − m(b).
    gap = xp.abs(value.sum(axis=1) - (mean(sites.stop) - mean(xp.broadcast_to(sites.start, step.shape))))
    return value, error + gap
