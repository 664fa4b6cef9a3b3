"""Integrals of products without one factor, by pairs of players, against 50 digits."""

import mpmath
import numpy as np
import pytest

from gpattr.closed_forms.shapley.integrals import FEW, leave_one_out

RNG = np.random.default_rng(5)
COUNTS = [1, 2, 3, 10, 11, FEW, FEW + 1, FEW + 2]
SCALES = {"small": 1e-8, "moderate": 0.5, "saturated": 30.0}


def exact(c):
    """Return cᵢ/(1 + |cᵢ|) ∫₋₁¹ ∏_{j≠i} (1 + s cⱼ)/(1 + |cⱼ|) ds from coefficients of sᵏ."""
    with mpmath.workdps(50):
        numbers = [mpmath.mpf(float(v)) for v in c]
        size = mpmath.fprod(1 + abs(v) for v in numbers)
        result = []
        for i, own in enumerate(numbers):
            series = [mpmath.mpf(1)]
            for v in numbers[:i] + numbers[i + 1 :]:
                series = [a + v * b for a, b in zip([*series, 0], [0, *series], strict=True)]
            integral = sum(2 * a / (k + 1) for k, a in enumerate(series) if k % 2 == 0)
            result.append(float(own * integral / size))
        return np.array(result)


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("count", COUNTS)
def test_against_many_digits(count, scale):
    c = np.tanh(scale * RNG.normal(size=(count, 2, 3)))
    c[:, 0, 0] = -abs(c[:, 0, 0])  # one player against all others
    c[0, 0, 0] *= -1.0
    top = RNG.random((2, 3))
    values = leave_one_out(c, top)
    for place in np.ndindex(2, 3):
        truth = top[place] * exact(c[(slice(None), *place)])
        found = values[(slice(None), *place)]
        assert abs(found - truth).max() <= 5e-15 * abs(truth).max()


@pytest.mark.parametrize("count", COUNTS)
def test_tensors(count):
    torch = pytest.importorskip("torch")
    c, top = np.tanh(RNG.normal(size=(count, 2, 3))), RNG.random((2, 3))
    tensors = leave_one_out(torch.tensor(c), torch.tensor(top)).numpy()
    np.testing.assert_allclose(tensors, leave_one_out(c, top), rtol=1e-14)


def test_many_players_do_not_overflow():
    c = np.full((1500, 1, 1), 0.9)
    values = leave_one_out(c, np.ones((1, 1)))
    # All are ∫ 0.9 (1 + 0.9s)¹⁴⁹⁹ ds/1.9¹⁵⁰⁰, of which nothing is left at s = −1.
    np.testing.assert_allclose(values, 1 / 1500, rtol=1e-12)
