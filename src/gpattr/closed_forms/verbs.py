"""Verbs: an operator applied to kernels, bases and means, summed over its terms.

Each has a form that takes resolved formulas, which posteriors bind once, and a public form that
resolves them for one call.
"""

from __future__ import annotations

from typing import Any

from gpattr._core.array import Array, namespace
from gpattr._core.memory import blocks
from gpattr.bases import Basis
from gpattr.closed_forms.resolution import (
    basis_formulas_for,
    formulas_for,
    mean_formulas_for,
    rounding_of_sums,
)
from gpattr.closed_forms.table import BasisFormulas, Bounded, Formulas, MeanFormulas
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.operators import Operator, Sites

Terms = list[tuple[float, Sites]]


def terms_of(op: Operator, X: Array) -> Terms:
    """Return the terms of an operator; refuse anything but a list of pairs."""
    terms = op.terms(X)
    match terms:
        case [(float() | int(), Sites()), *_]:
            return terms
        case _:
            raise InvalidInputError(
                f"{type(op).__name__}: expected a list of (weight, sites) from `terms`, got"
                f" {terms!r}"
            )


def weighted_cross(formulas: Formulas, op: Operator, X: Array, Z: Array) -> Bounded:
    """Return the covariance of 𝒜f at X with f at Z, (n, q, m), and its error, (n,).

    The error is the Euclidean length over Z of the bounds on each covariance's error.
    """
    (weight, sites), *others = terms_of(op, X)
    result, error = formulas.cross(sites, Z)
    _check_shape(op, "cross", result, (len(X), op.size(X.shape[1]), len(Z)))
    if weight != 1.0:
        result *= weight
        error = abs(weight) * error
    for weight, sites in others:
        value, bound = formulas.cross(sites, Z)
        result += weight * value
        error = error + abs(weight) * bound
    return Bounded(result, error)


def weighted_contract(formulas: Formulas, op: Operator, X: Array, Z: Array, w: Array) -> Bounded:
    """Return Σₘ cross[:, :, m] wₘ, (n, q, k) for w (m, k), and a bound on the error, (n,).

    It works in bounded memory and never forms (n, q, m).
    """
    xp, q = namespace(X), op.size(X.shape[1])
    result, error = xp.zeros((len(X), q, w.shape[1])), xp.zeros(len(X))
    for rows in blocks(len(X), 64.0 * len(Z), X):
        for weight, sites in terms_of(op.rows(rows), X[rows]):
            value, bound = formulas.contract(sites, Z, w)
            _check_shape(op, "cross", value, (len(value), q, w.shape[1]))
            result[rows] += weight * value
            error[rows] += abs(weight) * bound
    return Bounded(result, error)


def weighted_error(formulas: Formulas, op: Operator, X: Array, Z: Array, w: Array) -> Array:
    """Return the error of `weighted_contract` alone, (n,)."""
    if formulas.bound is None:
        return weighted_contract(formulas, op, X, Z, w).error
    error = namespace(X).zeros(len(X))
    for weight, sites in terms_of(op, X):
        error = error + abs(weight) * formulas.bound(sites, Z, w)
    return error


def weighted_prior_cov(formulas: Formulas, op: Operator, X: Array) -> Bounded:
    """Return the prior covariance of 𝒜f at each row, (n, q, q), and its error, (n,).

    With several terms this is Σᵤᵥ wᵤwᵥ Cov[𝒜ᵤ, 𝒜ᵥ]: those between different terms are part of it.
    """
    xp, q = namespace(X), op.size(X.shape[1])
    terms = terms_of(op, X)
    weights = xp.asarray([weight for weight, _ in terms])
    result, error = xp.zeros((len(X), q, q)), xp.zeros(len(X))
    for weight, sites in terms:
        value, bound = formulas.prior_cov(sites)
        _check_shape(op, "prior_cov", value, (len(X), q, q))
        result += weight * weight * value
        error += weight * weight * bound
    u, v = xp.triu_indices(len(terms), 1)
    if len(u):
        rows = xp.arange(len(X))
        pairs = _Pairs(formulas, terms, terms, q)
        mixed, bound = pairs.between(rows, rows, u, v, weights[u] * weights[v])
        result += mixed + xp.swapaxes(mixed, 1, 2)
        error += 2.0 * bound
    return Bounded(result, error)


def weighted_between(
    formulas: Formulas, op: Operator, X: Array, X2: Array | None = None, op2: Operator | None = None
) -> Array:
    """Return the prior covariance between 𝒜f at the rows of X and of X2, (n, q, n2, q).

    ``op2`` is the operator at X2 where it differs (one baseline per row). Without X2: between the
    rows of X, symmetric.
    """
    xp, n, q = namespace(X), len(X), op.size(X.shape[1])
    terms = terms_of(op, X)
    others = terms if X2 is None else terms_of(op2 or op, X2)
    u, v = (index.ravel() for index in xp.indices((len(terms), len(others))))
    weights = xp.asarray([terms[i][0] * others[j][0] for i, j in zip(u, v, strict=True)])
    pairs = _Pairs(formulas, terms, others, q)
    if X2 is None:
        i, j = xp.triu_indices(n)
        values, _ = pairs.between(i, j, u, v, weights)
        result = xp.empty((n, q, n, q))
        result[i, :, j, :] = values
        result[j, :, i, :] = xp.swapaxes(values, 1, 2)
        return result
    i, j = (index.ravel() for index in xp.indices((n, len(X2))))
    values, _ = pairs.between(i, j, u, v, weights)
    return xp.swapaxes(values.reshape(n, len(X2), q, q), 1, 2)


class _Pairs:
    """The terms of two batches of rows, in pairs."""

    def __init__(self, formulas: Formulas, terms: Terms, others: Terms, q: int) -> None:
        self.formulas, self.q = formulas, q
        self.n, self.n2 = terms[0][1].shape[0], others[0][1].shape[0]
        self.left, self.right = (
            type(batch[0][1]).stack([sites for _, sites in batch]) for batch in (terms, others)
        )

    def between(self, i: Array, j: Array, u: Array, v: Array, weights: Array) -> Bounded:
        """Return Σ weights · Cov[term u at row i, term v at row j] over (u, v), (len(i), q, q)."""
        xp, q = namespace(i), self.q
        result, error = xp.zeros((len(i), q, q)), xp.zeros(len(i))
        for rows in blocks(len(i), 64.0 * q * q):
            width = len(i[rows])
            for some in blocks(len(u), 64.0 * q * q * width):
                left = self.left[(u[some, None] * self.n + i[rows]).ravel()]
                right = self.right[(v[some, None] * self.n2 + j[rows]).ravel()]
                values, bounds = self.formulas.between(left, right)
                values = values.reshape(-1, width, q, q)
                result[rows] += xp.tensordot(weights[some], values, axes=1)
                error[rows] += xp.tensordot(abs(weights[some]), bounds.reshape(-1, width), axes=1)
        return Bounded(result, error)


def weighted_images(formulas: BasisFormulas, op: Operator, X: Array, p: int) -> Array:
    """Return 𝒜φⱼ at the rows of X, (n, q, p)."""
    (weight, sites), *others = terms_of(op, X)
    total = formulas.images(sites)
    _check_shape(op, "images", total, (len(X), op.size(X.shape[1]), p))
    if weight != 1.0:
        total = weight * total
    for weight, sites in others:
        total = total + weight * formulas.images(sites)
    return total


def weighted_basis(
    formulas: BasisFormulas, op: Operator, basis: Basis, X: Array, w: Array
) -> Bounded:
    """Return Σⱼ wⱼ 𝒜φⱼ, (n, q), for w (p,), by closed forms, and a bound on its error, (n,)."""
    xp = namespace(X)
    shape = (len(X), op.size(X.shape[1]))
    value, size, error = xp.zeros(shape), xp.zeros(shape), xp.zeros(len(X))
    for weight, sites in terms_of(op, X):
        part, absolute = formulas.contract(sites, w)
        value = value + weight * part
        size = size + abs(weight) * absolute
        if formulas.error is not None:
            error = error + abs(weight) * formulas.error(sites, w)
    return Bounded(value, error + rounding_of_sums(basis, X) * xp.max(size, axis=1))


def weighted_mean(formulas: MeanFormulas | None, op: Operator, X: Array) -> Bounded:
    """Return 𝒜m at the rows of X, (n, q), and a bound on its error, (n,)."""
    xp, q = namespace(X), op.size(X.shape[1])
    values, errors = xp.zeros((len(X), q)), xp.zeros(len(X))
    if formulas is None:
        return Bounded(values, errors)
    for rows in blocks(len(X), 8.0 * 256 * X.shape[1]):
        for weight, sites in terms_of(op.rows(rows), X[rows]):
            value, error = formulas.apply(sites)
            _check_shape(op, "apply", value, (len(value), q))
            values[rows] += weight * value
            errors[rows] += abs(weight) * error
    return Bounded(values, errors)


def _check_shape(op: Operator, verb: str, value: Array, expected: tuple[int, ...]) -> None:
    if tuple(value.shape) != expected:
        raise InvalidInputError(
            f"{type(op).__name__}: expected an array of shape {expected} from its formula"
            f" `{verb}`, for the axes {op.axes}, got {tuple(value.shape)}"
        )


def cross(op: Operator, kernel: Kernel, X: Array, Z: Array, **options: Any) -> Array:
    """Return the covariance of the attributions at X with f at Z, (n, q, m).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import cross
    >>> from gpattr.kernels import Linear
    >>> from gpattr.operators import IntegratedGradients
    >>> operator = IntegratedGradients(np.zeros(2))
    >>> cross(operator, Linear(), np.array([[1.0, 2.0]]), np.ones((1, 2)))
    array([[[1.],
            [2.]]])
    """
    return weighted_cross(formulas_for(op, kernel, **options), op, X, Z).value


def bounded_cross(op: Operator, kernel: Kernel, X: Array, Z: Array, **options: Any) -> Bounded:
    """Return `cross` with its error, (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import bounded_cross
    >>> from gpattr.kernels import SquaredExponential
    >>> from gpattr.operators import IntegratedGradients
    >>> operator = IntegratedGradients(np.zeros(2))
    >>> found = bounded_cross(operator, SquaredExponential(), np.ones((3, 2)), np.zeros((5, 2)))
    >>> found.value.shape, found.error.shape
    ((3, 2, 5), (3,))
    """
    return weighted_cross(formulas_for(op, kernel, **options), op, X, Z)


def contract(op: Operator, kernel: Kernel, X: Array, Z: Array, w: Array, **options: Any) -> Bounded:
    """Return Σₘ cross[:, :, m] wₘ, (n, q) for w (m,) and (n, q, k) for w (m, k), and its error.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import contract
    >>> from gpattr.kernels import Linear
    >>> from gpattr.operators import IntegratedGradients
    >>> operator, rows = IntegratedGradients(np.zeros(2)), np.array([[1.0, 2.0]])
    >>> contract(operator, Linear(), rows, np.ones((3, 2)), np.ones(3)).value
    array([[3., 6.]])
    """
    formulas = formulas_for(op, kernel, **options)
    if w.ndim == 2:
        return weighted_contract(formulas, op, X, Z, w)
    value, error = weighted_contract(formulas, op, X, Z, w[:, None])
    return Bounded(value[:, :, 0], error)


def cross_dot(op: Operator, kernel: Kernel, X: Array, Z: Array, w: Array, **options: Any) -> Array:
    """Return the value of `contract` alone.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import cross_dot
    >>> from gpattr.kernels import Linear
    >>> from gpattr.operators import IntegratedGradients
    >>> operator, rows = IntegratedGradients(np.zeros(2)), np.array([[1.0, 2.0]])
    >>> cross_dot(operator, Linear(), rows, np.ones((3, 2)), np.ones(3))
    array([[3., 6.]])
    """
    return contract(op, kernel, X, Z, w, **options).value


def error(op: Operator, kernel: Kernel, X: Array, Z: Array, w: Array, **options: Any) -> Array:
    """Return the error of `contract` alone.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import error
    >>> from gpattr.kernels import SquaredExponential
    >>> from gpattr.operators import IntegratedGradients
    >>> operator, rows = IntegratedGradients(np.zeros(2)), np.array([[1.0, 2.0]])
    >>> bool(
    ...     (error(operator, SquaredExponential(), rows, np.ones((3, 2)), np.ones(3)) < 1e-12).all()
    ... )
    True
    """
    weights = w[:, None] if w.ndim == 1 else w
    return weighted_error(formulas_for(op, kernel, **options), op, X, Z, weights)


def prior_cov(op: Operator, kernel: Kernel, X: Array, **options: Any) -> Array:
    """Return the prior covariance of the attributions at each row, (n, q, q).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import prior_cov
    >>> from gpattr.kernels import Linear
    >>> from gpattr.operators import IntegratedGradients
    >>> prior_cov(IntegratedGradients(np.zeros(2)), Linear(), np.array([[1.0, 2.0]]))
    array([[[1., 0.],
            [0., 4.]]])
    """
    return weighted_prior_cov(formulas_for(op, kernel, **options), op, X).value


def bounded_prior_cov(op: Operator, kernel: Kernel, X: Array, **options: Any) -> Bounded:
    """Return `prior_cov` with a bound, (n,), on the error of its entries.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import bounded_prior_cov
    >>> from gpattr.kernels import SquaredExponential
    >>> from gpattr.operators import IntegratedGradients
    >>> operator = IntegratedGradients(np.zeros(2))
    >>> found = bounded_prior_cov(operator, SquaredExponential(), np.ones((3, 2)))
    >>> found.value.shape, bool((found.error < 1e-12).all())
    ((3, 2, 2), True)
    """
    return weighted_prior_cov(formulas_for(op, kernel, **options), op, X)


def between(
    op: Operator,
    kernel: Kernel,
    X: Array,
    X2: Array | None = None,
    *,
    op2: Operator | None = None,
    **options: Any,
) -> Array:
    """Return the prior covariance between the rows of X and of X2, (n, q, n2, q).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import between
    >>> from gpattr.kernels import SquaredExponential
    >>> from gpattr.operators import Gradient
    >>> between(Gradient(), SquaredExponential(), np.zeros((3, 2))).shape
    (3, 2, 3, 2)
    """
    return weighted_between(formulas_for(op, kernel, **options), op, X, X2, op2)


def apply_to_basis(op: Operator, basis: Basis, X: Array, **options: Any) -> Array:
    """Return 𝒜φⱼ at the rows of X, (n, q, p).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.bases import Monomials
    >>> from gpattr.closed_forms import apply_to_basis
    >>> from gpattr.operators import Gradient
    >>> apply_to_basis(Gradient(), Monomials([[2]]), np.array([[3.0]]))  # of x²
    array([[[6.]]])
    """
    return weighted_images(basis_formulas_for(op, basis, **options), op, X, len(basis))


def contract_basis(op: Operator, basis: Basis, X: Array, w: Array) -> Bounded:
    """Return Σⱼ wⱼ 𝒜φⱼ, (n, q), for w (p,), and a bound on its error, (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.bases import Monomials
    >>> from gpattr.closed_forms import contract_basis
    >>> from gpattr.operators import IntegratedGradients
    >>> operator, basis = IntegratedGradients(np.zeros(2)), Monomials([[1, 0], [0, 2]])
    >>> contract_basis(operator, basis, np.array([[1.0, 2.0]]), np.array([3.0, 1.0])).value
    array([[3., 4.]])
    """
    return weighted_basis(basis_formulas_for(op, basis), op, basis, X, w)


def apply_to_mean(op: Operator, mean: Mean, X: Array) -> Bounded:
    """Return 𝒜m at the rows of X, (n, q), and a bound on its error, (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import apply_to_mean
    >>> from gpattr.means import Linear
    >>> from gpattr.operators import IntegratedGradients
    >>> operator = IntegratedGradients(np.zeros(2))
    >>> apply_to_mean(operator, Linear([1.0, 2.0]), np.ones((1, 2))).value
    array([[1., 2.]])
    """
    return weighted_mean(mean_formulas_for(op, mean), op, X)
