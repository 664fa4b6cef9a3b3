"""Derivatives of products whose parts see different columns."""

import numpy as np
import pytest

from gpattr.closed_forms.derivatives import differentiate, multiply
from gpattr.kernels import Categorical, Linear, Matern52, Periodic, Select, SquaredExponential

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("shapes", [((7, 6), (7, 6)), ((4, 1, 6), (5, 6))])
def test_as_by_the_product_rule(second, shapes):
    parts = [
        Select(SquaredExponential([0.7, 1.3], 2.0), [0, 3]),
        Select(Categorical(0.8), [1, 4]),
        Select(Matern52(1.1), [5]),
    ]
    x, y = (RNG.normal(size=shape) for shape in shapes)
    got = differentiate(parts[0] * parts[1] * parts[2], x, y, second)
    expected = differentiate(parts[0], x, y, second)
    for part in parts[1:]:
        expected = multiply(expected, differentiate(part, x, y, second))
    for one, two in zip(got, expected):
        if two is None:
            assert one is None
        else:
            np.testing.assert_allclose(one, two, rtol=1e-13, atol=1e-15)


def test_parts_that_share_columns():
    x, y = RNG.normal(size=(2, 5, 2))
    kernel = Select(Periodic(), [0]) * Select(Linear(), [0, 1])
    step = 1e-6 * np.eye(2)[0]
    slope = (kernel(x + step, y) - kernel(x - step, y)).diagonal() / 2e-6
    np.testing.assert_allclose(differentiate(kernel, x, y).left[:, 0], slope, atol=1e-8)
