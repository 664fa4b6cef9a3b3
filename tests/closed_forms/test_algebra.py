"""Rules for composed kernels, on nested expressions; look-up; methods."""

import numpy as np
import pytest

from gpattr import Baselines, closed_forms, memory_budget
from gpattr.exceptions import NoClosedFormError, UnsupportedModelError
from gpattr.kernels import Constant, Kernel, Scale, Select, SquaredExponential
from gpattr.operators import Gradient, IntegratedGradients

RNG = np.random.default_rng(4)
X, X2, Z, W = (
    RNG.normal(size=(3, 4)),
    RNG.normal(size=(2, 4)),
    RNG.normal(size=(6, 4)),
    RNG.normal(size=(6, 2)),
)
ONE, TWO = (
    SquaredExponential(lengthscale=0.8),
    SquaredExponential(lengthscale=[1.0, 3.0], variance=2.0),
)
NESTED = 0.5 * (ONE + 3.0 * Select(TWO + Constant(), [3, 1])) + Constant(variance=4.0)

OPERATOR = IntegratedGradients(np.zeros(1))
OPERATORS = [
    IntegratedGradients(RNG.normal(size=4)),
    IntegratedGradients(Baselines(RNG.normal(size=(3, 4)), [0.2, 0.5, 0.3])),
    Gradient(),
]


def embedded(values, axes):
    """Scatter the inner kernel's two features (3 and 1 of 4) into all four, along given axes."""
    for axis in axes:
        wide = np.zeros((*values.shape[:axis], 4, *values.shape[axis + 1 :]))
        np.moveaxis(wide, axis, 0)[[3, 1]] = np.moveaxis(values, axis, 0)
        values = wide
    return values


def narrow(op):
    if isinstance(op, Gradient):
        return op
    points = op.points[:, [3, 1]]
    return IntegratedGradients(points[0] if op.weights is None else Baselines(points, op.weights))


@pytest.mark.parametrize("op", OPERATORS)
def test_nested_kernels(op):
    inner = narrow(op)
    S, S2, T = X[:, [3, 1]], X2[:, [3, 1]], Z[:, [3, 1]]
    for verb, args, small, axes in [
        ("cross", (X, Z), (S, T), [1]),
        ("cross_dot", (X, Z, W), (S, T, W), [1]),
        ("cross_dot", (X, Z, W[:, 0]), (S, T, W[:, 0]), [1]),
        ("prior_cov", (X,), (S,), [1, 2]),
        ("between", (X, X2), (S, S2), [1, 3]),
    ]:
        function = getattr(closed_forms, verb)
        expected = 0.5 * function(op, ONE, *args) + 1.5 * embedded(
            function(inner, TWO, *small), axes
        )
        np.testing.assert_allclose(function(op, NESTED, *args), expected, rtol=1e-13, atol=1e-15)
    bound = closed_forms.error(op, NESTED, X, Z, W)
    parts = 0.5 * closed_forms.error(op, ONE, X, Z, W) + 1.5 * closed_forms.error(
        inner, TWO, S, T, W
    )
    np.testing.assert_allclose(bound, parts, rtol=1e-13)


@pytest.mark.parametrize("op", OPERATORS)
def test_contraction_and_pairs_agree_with_the_full_arrays(op):
    np.testing.assert_allclose(
        closed_forms.cross_dot(op, NESTED, X, Z, W),
        closed_forms.cross(op, NESTED, X, Z) @ W,
        rtol=1e-12,
        atol=1e-14,
    )
    between = closed_forms.between(op, NESTED, X)
    np.testing.assert_allclose(
        between, closed_forms.between(op, NESTED, X, X), rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(
        np.einsum("ninj->nij", between),
        closed_forms.prior_cov(op, NESTED, X),
        rtol=1e-12,
        atol=1e-14,
    )


@pytest.mark.parametrize("op", OPERATORS[:2])
def test_quadrature_agrees_with_closed_forms(op):
    for verb, args in [
        ("cross", (X, Z)),
        ("cross_dot", (X, Z, W)),
        ("prior_cov", (X,)),
        ("between", (X, X2)),
    ]:
        function = getattr(closed_forms, verb)
        np.testing.assert_allclose(
            function(op, NESTED, *args, method="quadrature"),
            function(op, NESTED, *args),
            atol=1e-13,
        )


@pytest.mark.parametrize(
    ("method", "op"),
    [(method, op) for op in OPERATORS for method in ("auto", "quadrature") if method in op.methods],
)
def test_the_memory_budget_does_not_change_the_numbers(op, method):
    def everything():
        between = closed_forms.between(op, NESTED, X, X2, method=method)
        return (
            closed_forms.cross_dot(op, NESTED, X, Z, W, method=method),
            closed_forms.prior_cov(op, NESTED, X, method=method),
            between,
        )

    plenty = everything()
    with memory_budget(working=1):
        scarce = everything()
    for one, two in zip(plenty, scarce, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-13, atol=1e-15)


class Rough(Kernel):
    """A kernel nobody has written formulas for."""

    def __call__(self, X, Z):
        return np.exp(-np.abs(X[:, None] - Z).sum(axis=2))

    def diagonal(self, X):
        return np.ones(len(X))

    def n_lengthscales(self, step):
        return np.abs(step).sum(axis=1)

    def check_features(self, d):
        pass


def test_unknown_kernels_are_refused_by_name():
    with pytest.raises(UnsupportedModelError, match="kernel: Rough has no registered derivatives"):
        closed_forms.cross(OPERATORS[0], 2.0 * Rough(), X, Z)
    with pytest.raises(UnsupportedModelError, match="kernel: Rough has no registered derivatives"):
        closed_forms.cross(Gradient(), Rough(), X, Z)


def test_methods():
    with pytest.raises(
        ValueError, match="method: expected one of 'auto', 'exact', 'quadrature', .*, got 'magic'"
    ):
        closed_forms.formulas_for(OPERATOR, ONE, "magic")
    assert closed_forms.formulas_for(OPERATOR, NESTED).methods == {"closed form"}
    assert closed_forms.formulas_for(OPERATOR, Scale(ONE), "quadrature").methods == {"quadrature"}


def test_exact_refuses_quadrature_by_name(monkeypatch):
    monkeypatch.delitem(closed_forms.KERNELS, (IntegratedGradients, SquaredExponential))
    assert closed_forms.formulas_for(OPERATOR, NESTED).methods == {
        "closed form",
        "quadrature",
    }
    with pytest.raises(
        NoClosedFormError,
        match='"exact" was asked for, but IntegratedGradients of SquaredExponential',
    ):
        closed_forms.cross(OPERATORS[0], NESTED, X, Z, method="exact")
