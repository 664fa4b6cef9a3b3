"""Kernels alone and in nested sums and products, drawn by hypothesis, against the definition with
50 digits.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.reference import definition

from gpattr import closed_forms
from gpattr.kernels import (
    Constant,
    Cosine,
    FullAdditive,
    Function,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Rescaled,
    Select,
    SquaredExponential,
    Warped,
    separable,
)
from gpattr.operators import IntegratedGradients

OPERATOR = IntegratedGradients(np.zeros(1))

positive = st.floats(0.6, 2.5).map(lambda v: round(v, 2))
pairs = st.lists(positive, min_size=2, max_size=2)
scales = positive | pairs
RADIAL = (SquaredExponential, Matern32, Matern52)

leaves = st.one_of(
    *(st.builds(kind, lengthscale=scales, variance=positive) for kind in RADIAL),
    st.builds(RationalQuadratic, lengthscale=scales, variance=positive, alpha=positive),
    st.builds(
        Periodic,
        lengthscale=positive.map(lambda v: v + 0.4),
        period=pairs.map(lambda p: [4 * v for v in p]),
        variance=positive,
    ),
    st.builds(Cosine, period=pairs.map(lambda p: [3 * v for v in p]), variance=positive),
    st.builds(Linear, variance=scales),
    st.builds(Polynomial, variance=scales, degree=st.integers(1, 3), offset=positive),
    st.builds(Constant, variance=positive),
    st.builds(lambda kind, ls: separable(kind, ls), st.sampled_from(RADIAL), pairs),
    st.builds(
        lambda kind, i, ls: Select(kind(ls), [i]),
        st.sampled_from(RADIAL),
        st.integers(0, 1),
        positive,
    ),
    st.builds(
        lambda one, two, ls, orders: FullAdditive([one(ls[0]), two(ls[1])], orders),
        st.sampled_from(RADIAL),
        st.sampled_from(RADIAL),
        pairs,
        pairs,
    ),
    st.builds(
        lambda ls: Warped(SquaredExponential(ls), definition.bend, definition.bend_jacobian), scales
    ),
    st.just(
        Function(
            definition.exponential, definition.exponential_gradient, definition.exponential_mixed
        )
    ),
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, v: v * a, inner, positive),
        st.builds(lambda a: Rescaled(a, definition.bump, definition.bump_gradient), inner),
    ),
    max_leaves=3,
)
B, X = np.array([0.25, -0.5]), np.array([1.0, 0.75])
ACROSS = np.array([1.25, -0.75]) / np.hypot(1.25, 0.75)
# On the path, 1e-8 beside it, at its end, and elsewhere.
Z = np.array([B + 0.375 * (X - B), B + 0.625 * (X - B) + 1e-8 * ACROSS, X, [-0.4, 1.1]])


def tolerance(kernel):
    rule = closed_forms.formulas_for(OPERATOR, kernel)
    return 1e-12 if rule.methods == {"closed form"} else 1e-9


def examples(count):
    """Settings for examples that take a second each: no shrinking."""
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        phases=[Phase.generate],
    )


@pytest.mark.slow
@given(expressions)
@examples(8)
def test_mean_and_covariance(kernel):
    compare(kernel)


@pytest.mark.slow
@given(expressions)
@examples(22)
def test_mean_and_covariance_of_more_kernels(kernel):
    compare(kernel)


def compare(kernel):
    panels = 1 + int(kernel.n_lengthscales(X - B) / 2)
    op, size = (
        IntegratedGradients(B),
        float(np.abs(kernel(np.vstack([B, X, Z]), np.vstack([B, X, Z]))).max()),
    )
    got = closed_forms.cross(op, kernel, X[None], Z)[0]
    expected = np.stack([definition.cross(kernel, B, X, z, panels) for z in Z], axis=1)
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance(kernel) * size)
    weights = np.array([[1.0], [-2.0], [0.5], [3.0]])
    value, bound = closed_forms.contract(op, kernel, X[None], Z, weights)
    assert np.abs(value[0] - expected @ weights).max() <= bound[0]
    np.testing.assert_allclose(
        closed_forms.prior_cov(op, kernel, X[None])[0],
        definition.auto(kernel, B, X, panels),
        rtol=0,
        atol=tolerance(kernel) * size,
    )
