"""Resolution of formulas: an operator's formulas for a kernel, a basis or a prior mean.

Nothing is guessed: a pair without an entry in the tables, for itself or for its parts, is refused
by name.
"""

from __future__ import annotations

from typing import Any, NoReturn

from gpattr._core.array import EPS, Array, namespace
from gpattr._core.validation import check_choice
from gpattr.bases import Basis
from gpattr.closed_forms.algebra import ALGEBRA
from gpattr.closed_forms.quadrature.fixed_rules import METHODS, check_steps
from gpattr.closed_forms.table import (
    BASES,
    BASIS_SCHEMES,
    KERNEL_SCHEMES,
    KERNELS,
    MEANS,
    BasisFormulas,
    Bounded,
    Formulas,
    MeanFormulas,
)
from gpattr.exceptions import InvalidInputError, NoClosedFormError, UnsupportedModelError
from gpattr.kernels import Kernel, Product
from gpattr.means import Constant, Expansion, Mean, Zero
from gpattr.operators import Operator


def check_method(operator: Operator, method: str, n_steps: int | None) -> int | None:
    """Return the number of steps of a method; refuse a method that the operator does not have."""
    check_choice("method", method, METHODS)
    if method not in operator.methods:
        names = ", ".join(f'"{name}"' for name in operator.methods)
        raise InvalidInputError(
            f'method: {type(operator).__name__} supports {names}, got "{method}"'
        )
    return check_steps(method, n_steps)


def formulas_for(
    operator: Operator, kernel: Kernel, method: str = "auto", n_steps: int | None = None
) -> Formulas:
    """Return the formulas of this operator for this kernel.

    ``"auto"`` takes the closed form where one exists and quadrature elsewhere, part by part of a
    sum; ``"exact"`` refuses quadrature by name; ``"quadrature"`` integrates gradients throughout,
    for comparison; the rules of the paper, ``"right"``, ``"trapezoid"``, ``"simpson"`` and
    ``"gauss_legendre"``, take ``n_steps``.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import formulas_for
    >>> from gpattr.kernels import Matern52, SquaredExponential
    >>> from gpattr.operators import IntegratedGradients
    >>> operator = IntegratedGradients(np.zeros(2))
    >>> formulas_for(operator, SquaredExponential()).methods
    frozenset({'closed form'})
    >>> formulas_for(operator, Matern52(), "trapezoid", n_steps=8).methods
    frozenset({'trapezoid rule, 8 steps'})
    """
    steps = check_method(operator, method, n_steps)
    if steps is None:
        return _resolved(operator, kernel, method)
    exact = _resolved(operator, kernel, "auto")
    return KERNEL_SCHEMES[type(operator)](operator, kernel, method, steps, exact)


def _resolved(operator: Operator, kernel: Kernel, method: str) -> Formulas:
    kind, formulas = type(operator), None
    entry = KERNELS.get((kind, type(kernel)))
    if entry is not None and method != "quadrature":
        formulas = entry(operator, kernel)
    algebra = ALGEBRA.get(type(kernel))
    if formulas is None and algebra is not None:
        formulas = algebra(operator, kernel, lambda part: _resolved(operator, part, method))
    if formulas is None:
        fallback = KERNELS.get((kind, Kernel))
        formulas = None if fallback is None else fallback(operator, kernel)
    if formulas is None:
        _refuse(operator, kernel, "register")
    if method == "exact" and any(map(inexact, formulas.methods)):
        name = repr(kernel) if isinstance(kernel, Product) else type(kernel).__name__
        raise NoClosedFormError(
            f'method: "exact" was asked for, but {kind.__name__} of {name} has no closed form'
            f'{operator.why_inexact()}; use method="auto"'
        )
    return formulas


def inexact(method: str) -> bool:
    """Return whether a method leaves an error other than rounding."""
    return method.startswith(("quadrature", "permutations"))


def basis_formulas_for(
    operator: Operator, basis: Basis, method: str = "auto", n_steps: int | None = None
) -> BasisFormulas:
    """Return the formulas of this operator for the functions of this basis.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.bases import Monomials
    >>> from gpattr.closed_forms import basis_formulas_for
    >>> from gpattr.operators import IntegratedGradients
    >>> basis_formulas_for(IntegratedGradients(np.zeros(1)), Monomials([[2]])).method
    'closed form'
    """
    steps = check_method(operator, method, n_steps)
    kind = type(operator)
    if method not in ("auto", "exact"):
        return BASIS_SCHEMES[kind](operator, basis, method, steps)
    entry = BASES.get((kind, type(basis))) or BASES.get((kind, Basis))
    if entry is None:
        _refuse(operator, basis, "register_basis")
    formulas = entry(operator, basis)
    if method == "exact" and inexact(formulas.method):
        raise NoClosedFormError(
            f'method: "exact" was asked for, but {kind.__name__} of {type(basis).__name__} has no'
            f" closed form{operator.why_inexact()}"
        )
    return formulas


def mean_formulas_for(operator: Operator, mean: Mean, method: str = "auto") -> MeanFormulas | None:
    """Return the formulas of this operator for this prior mean; None where 𝒜m = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import mean_formulas_for
    >>> from gpattr.means import Constant
    >>> from gpattr.operators import IntegratedGradients
    >>> mean_formulas_for(IntegratedGradients(np.zeros(2)), Constant(1.0)) is None
    True
    """
    if isinstance(mean, Zero) or (isinstance(mean, Constant) and operator.vanishes_on_constants):
        return None
    kind = type(operator)
    entry = MEANS.get((kind, type(mean)))
    if entry is None and isinstance(mean, Expansion):
        return _expansion(operator, mean)
    entry = entry or MEANS.get((kind, Mean))
    if entry is None:
        _refuse(operator, mean, "register_mean")
    formulas = entry(operator, mean)
    if method == "exact" and any(map(inexact, formulas.methods)):
        raise NoClosedFormError(
            f'method: "exact" was asked for, but the prior mean {type(mean).__name__} has no closed'
            " form"
        )
    return formulas


def _expansion(operator: Operator, mean: Expansion) -> MeanFormulas:
    """Return 𝒜Σⱼ βⱼφⱼ = Σⱼ βⱼ𝒜φⱼ."""
    formulas, basis, beta = basis_formulas_for(operator, mean.basis), mean.basis, mean.beta

    def apply(sites: Any) -> Bounded:
        xp = namespace(sites.like)
        w = xp.asarray(beta)
        value, size = formulas.contract(sites, w)
        error = rounding_of_sums(basis, sites.like) * xp.max(size, axis=1)
        return Bounded(value, error if formulas.error is None else error + formulas.error(sites, w))

    return MeanFormulas(apply)


def rounding_of_sums(basis: Basis, X: Array) -> float:
    """Return the rounding of a sum of basis functions at X, relative to the size of its terms."""
    return (32.0 + 2.0 * basis.phase(X)) * EPS


def _refuse(operator: Operator, what: Kernel | Basis | Mean, entry: str) -> NoReturn:
    raise UnsupportedModelError(
        f"{type(operator).__name__} of {type(what).__name__}: there is no formula;"
        f" gpattr.closed_forms.{entry} adds one"
    )
