"""The verbs: covariance of attributions with data, their means, and their prior covariance."""

from __future__ import annotations

from functools import cache
from typing import Any

from gpattr._core.array import Array, namespace
from gpattr._core.memory import blocks
from gpattr._core.validation import check_choice
from gpattr.closed_forms.algebra import ALGEBRA
from gpattr.closed_forms.gradient import gradient_rule
from gpattr.closed_forms.products import closed_terms, merged
from gpattr.closed_forms.quadrature.fixed_rules import METHODS, check_steps, fixed_rule
from gpattr.closed_forms.quadrature.numeric import quadrature
from gpattr.closed_forms.table import CLOSED_FORMS, Bounded, Rule
from gpattr.exceptions import NoClosedFormError, UnsupportedModelError
from gpattr.kernels import Constant, Kernel, Product, Scale, Sum
from gpattr.operators import Gradient, IntegratedGradients, Operator, Sites

Terms = list[tuple[float, Sites]]


def rule_for(
    operator: type[Operator], kernel: Kernel, method: str = "auto", n_steps: int | None = None
) -> Rule:
    """Return the formulas of this operator for this kernel.

    ``"auto"`` takes the closed form where one exists and quadrature elsewhere, part by part of a
    sum; ``"exact"`` refuses quadrature by name; ``"quadrature"`` integrates gradients throughout,
    for comparison; the rules of the paper, ``"right"``, ``"trapezoid"``, ``"simpson"`` and
    ``"gauss_legendre"``, take ``n_steps``."""
    check_choice("method", method, METHODS)
    steps = check_steps(method, n_steps)
    if steps is not None and operator is IntegratedGradients:
        return fixed_rule(kernel, method, steps, rule_for(operator, kernel))
    if type(kernel) in ALGEBRA:
        return ALGEBRA[type(kernel)](kernel, lambda part: rule_for(operator, part, method, n_steps))
    entry = CLOSED_FORMS.get((operator, type(kernel)))
    rule = entry(kernel) if entry else None
    if (
        isinstance(kernel, Product)
        and kernel.polynomial_degree is None
        and operator is IntegratedGradients
    ):
        terms = closed_terms(kernel)
        rule = _sum_of_products(terms) if terms else None
    if rule and not (method == "quadrature" and operator is IntegratedGradients):
        if method == "exact" and "quadrature" in rule.methods:
            _refuse(operator, kernel)
        return rule
    if operator is Gradient:
        return gradient_rule(kernel)
    if operator is not IntegratedGradients:
        raise UnsupportedModelError(
            f"{operator.__name__} of {type(kernel).__name__}: no formula is known;"
            " gpattr.closed_forms.register enters one"
        )
    rule = quadrature(kernel)
    if method == "exact" and "quadrature" in rule.methods:
        _refuse(operator, kernel)
    return rule


def _refuse(operator: type[Operator], kernel: Kernel) -> None:
    name = repr(kernel) if isinstance(kernel, Product) else type(kernel).__name__
    raise NoClosedFormError(
        f'method: "exact" was asked for, but {operator.__name__} of {name} has no closed form; use'
        ' method="auto"'
    )


def _sum_of_products(terms: list[tuple[float, list[Kernel]]]) -> Rule:
    """The rule of a product that was multiplied out; which squared exponentials meet depends on the
    number of features.
    """

    @cache
    def rule_on(d: int) -> Rule:
        parts = [
            Scale(merged(leaves, d), scale) if leaves else Constant(scale)
            for scale, leaves in terms
        ]
        return rule_for(IntegratedGradients, Sum(*parts))

    def verb(name: str) -> Any:
        return lambda sites, *args: getattr(rule_on(sites.shape[1]), name)(sites, *args)

    methods = {
        rule
        for _, leaves in terms
        for leaf in leaves
        if len(leaves) == 1
        for rule in rule_for(IntegratedGradients, leaf).methods
    }
    return Rule(
        verb("cross"),
        verb("estimate"),
        verb("auto"),
        verb("between"),
        frozenset(methods | {"closed form"}),
    )


def cross(
    op: Operator,
    kernel: Kernel,
    X: Array,
    Z: Array,
    *,
    method: str = "auto",
    n_steps: int | None = None,
) -> Array:
    """Return the covariance of the attributions at X with f at Z, (n, d, m)."""
    return bounded_cross(op, kernel, X, Z, method=method, n_steps=n_steps).value


def bounded_cross(
    op: Operator,
    kernel: Kernel,
    X: Array,
    Z: Array,
    *,
    method: str = "auto",
    n_steps: int | None = None,
) -> Bounded:
    """Return `cross` with its error, (n,): the Euclidean length over Z of what bounds the error of
    each covariance.
    """
    rule = rule_for(type(op), kernel, method, n_steps)
    (weight, sites), *others = op.terms(X)
    result, error = rule.cross(sites, Z)
    if weight != 1.0:
        result *= weight
        error = weight * error
    for weight, sites in others:
        value, bound = rule.cross(sites, Z)
        result += weight * value
        error = error + weight * bound
    return Bounded(result, error)


def estimate(
    op: Operator,
    kernel: Kernel,
    X: Array,
    Z: Array,
    w: Array,
    *,
    method: str = "auto",
    n_steps: int | None = None,
) -> tuple[Array, Array]:
    """Return Σₘ cross[:, :, m] wₘ, (n, d) for w (m,) and (n, d, q) for w (m, q), and a bound on the
    error of its entries, (n,).

    It works in bounded memory and never forms (n, d, m).
    """
    rule = rule_for(type(op), kernel, method, n_steps)
    W = w[:, None] if w.ndim == 1 else w
    result, error = namespace(X).zeros((*X.shape, W.shape[1])), namespace(X).zeros(len(X))
    for rows in blocks(len(X), 64.0 * len(Z), X):
        for weight, sites in op.rows(rows).terms(X[rows]):
            value, bound = rule.estimate(sites, Z, W)
            result[rows] += weight * value
            error[rows] += weight * bound
    return result[:, :, 0] if w.ndim == 1 else result, error


def cross_dot(op: Operator, kernel: Kernel, X: Array, Z: Array, w: Array, **options: Any) -> Array:
    """Return the value of `estimate` alone."""
    return estimate(op, kernel, X, Z, w, **options)[0]


def error(op: Operator, kernel: Kernel, X: Array, Z: Array, w: Array, **options: Any) -> Array:
    """Return the error of `estimate` alone."""
    bound = rule_for(type(op), kernel, **options).bound
    if bound is None:
        return estimate(op, kernel, X, Z, w, **options)[1]
    return sum(
        weight * bound(sites, Z, w[:, None] if w.ndim == 1 else w) for weight, sites in op.terms(X)
    )


def auto(
    op: Operator, kernel: Kernel, X: Array, *, method: str = "auto", n_steps: int | None = None
) -> Array:
    """Return the prior covariance of the attributions at each row, (n, d, d).

    With several baselines this is Σᵤᵥ wᵤwᵥ Cov[𝒜ᵤ, 𝒜ᵥ]: the terms between different baselines are
    part of it."""
    return bounded_auto(op, kernel, X, method=method, n_steps=n_steps).value


def bounded_auto(
    op: Operator, kernel: Kernel, X: Array, *, method: str = "auto", n_steps: int | None = None
) -> Bounded:
    """Return `auto` with a bound, (n,), on the error of its entries."""
    xp = namespace(X)
    rule = rule_for(type(op), kernel, method, n_steps)
    terms = op.terms(X)
    weights = xp.asarray([weight for weight, _ in terms])
    result, error = xp.zeros((*X.shape, X.shape[1])), xp.zeros(len(X))
    for weight, sites in terms:
        value, bound = rule.auto(sites)
        result += weight * weight * value
        error += weight * weight * bound
    u, v = xp.triu_indices(len(terms), 1)
    if len(u):
        rows = xp.arange(len(X))
        mixed, bound = _paired(rule, terms, terms, rows, rows, u, v, weights[u] * weights[v])
        result += mixed + xp.swapaxes(mixed, 1, 2)
        error += 2.0 * bound
    return Bounded(result, error)


def between(
    op: Operator,
    kernel: Kernel,
    X: Array,
    X2: Array | None = None,
    *,
    op2: Operator | None = None,
    method: str = "auto",
    n_steps: int | None = None,
) -> Array:
    """Return the prior covariance between the attributions at the rows of X and of X2, (n, d, n2,
    d).

    ``op2`` is the operator at X2 where it differs (one baseline per row). Without X2: between the
    rows of X, symmetric."""
    xp = namespace(X)
    rule = rule_for(type(op), kernel, method, n_steps)
    n, d = X.shape
    terms = op.terms(X)
    others = terms if X2 is None else (op2 or op).terms(X2)
    u, v = (index.ravel() for index in xp.indices((len(terms), len(others))))
    weights = xp.asarray([terms[i][0] * others[j][0] for i, j in zip(u, v, strict=True)])
    if X2 is None:
        i, j = xp.triu_indices(n)
        pairs, _ = _paired(rule, terms, others, i, j, u, v, weights)
        result = xp.empty((n, d, n, d))
        result[i, :, j, :] = pairs
        result[j, :, i, :] = xp.swapaxes(pairs, 1, 2)
        return result
    i, j = (index.ravel() for index in xp.indices((n, len(X2))))
    pairs, _ = _paired(rule, terms, others, i, j, u, v, weights)
    return xp.swapaxes(pairs.reshape(n, len(X2), d, d), 1, 2)


def _paired(
    rule: Rule, terms: Terms, others: Terms, i: Array, j: Array, u: Array, v: Array, weights: Array
) -> Bounded:
    """Return Σ weights · Cov[term u at row i, term v at row j] over the given (u, v), for each
    given (i, j): (len(i), d, d).
    """
    xp = namespace(i)
    n, d = terms[0][1].shape
    n2 = others[0][1].shape[0]
    left, right = (
        type(batch[0][1]).stack([sites for _, sites in batch]) for batch in (terms, others)
    )
    result, error = xp.zeros((len(i), d, d)), xp.zeros(len(i))
    for rows in blocks(len(i), 64.0 * d * d):
        width = len(i[rows])
        for some in blocks(len(u), 64.0 * d * d * width):
            at = (u[some, None] * n + i[rows]).ravel(), (v[some, None] * n2 + j[rows]).ravel()
            values, bounds = rule.between(left[at[0]], right[at[1]])
            result[rows] += xp.tensordot(weights[some], values.reshape(-1, width, d, d), axes=1)
            error[rows] += xp.tensordot(weights[some], bounds.reshape(-1, width), axes=1)
    return Bounded(result, error)
