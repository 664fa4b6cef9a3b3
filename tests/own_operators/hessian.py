"""An operator of one's own with two axes: the Hessian at a point, of squared exponentials."""

import numpy as np

from gpattr import closed_forms
from gpattr.bases import Fourier
from gpattr.kernels import SquaredExponential
from gpattr.means import Linear
from gpattr.operators import Operator, Points, over_axes


class Hessian(Operator):
    """𝒜ᵢⱼf(x) = ∂²f/∂xᵢ∂xⱼ(x)."""

    axes = ("feature", "feature")
    vanishes_on_constants = True
    dummy = True

    def terms(self, X):
        return [(1.0, Points(X))]

    def in_units(self, units):
        return self

    def pull_back(self, units, like):
        return over_axes(self, units.jacobian(like))


def cross(kernel, points, Z):
    """∂ᵢ∂ⱼk(x, z) = k (rᵢrⱼ − δᵢⱼ/ℓᵢ²), r = (x − z)/ℓ²."""
    inverse = np.broadcast_to(np.asarray(kernel.lengthscale) ** -2.0, Z.shape[1:])
    r = (points.X[:, None, :] - Z) * inverse
    second = r[..., :, None] * r[..., None, :] - np.eye(len(inverse)) * inverse
    values = kernel(points.X, Z)[..., None, None] * second  # (n, m, d, d)
    return np.swapaxes(values.reshape(*values.shape[:2], -1), 1, 2)


def between(kernel, points, other):
    """Fourth derivatives of a Gaussian: Hermite polynomials of r, summed over pairings."""
    d = points.X.shape[1]
    inverse = np.broadcast_to(np.asarray(kernel.lengthscale) ** -2.0, (d,))
    step = points.X - other.X
    r, S = step * inverse, np.eye(d) * inverse
    value = kernel.variance * np.exp(-0.5 * (step * r).sum(axis=1))
    four = np.einsum("ni,nj,nk,nl->nijkl", r, r, r, r)
    for pair in ("ij,nk,nl", "ik,nj,nl", "il,nj,nk", "jk,ni,nl", "jl,ni,nk", "kl,ni,nj"):
        four = four - np.einsum(f"{pair}->nijkl", S, r, r)
    for pair in ("ij,kl", "ik,jl", "il,jk"):
        four = four + np.einsum(f"{pair}->ijkl", S, S)
    return (value[:, None, None, None, None] * four).reshape(len(value), d * d, d * d)


def waves(basis, points):
    """∂ᵢ∂ⱼ of sin(v·x) and cos(v·x): −vᵢvⱼ times the same."""
    V = np.concatenate([basis.frequencies, basis.frequencies])  # (p, d)
    outer = -(V[:, :, None] * V[:, None, :]).reshape(len(V), -1)  # (p, d²)
    return basis(points.X)[:, None, :] * outer.T


closed_forms.register(Hessian, SquaredExponential, cross=cross, between=between)
closed_forms.register_basis(Hessian, Fourier, waves)
closed_forms.register_mean(
    Hessian, Linear, lambda mean, points: np.zeros((len(points.X), points.X.shape[1] ** 2))
)
