"""Paths through, past and from noise-free data, where the standard deviation has a kink."""

import mpmath as mp
import numpy as np
import pytest

from gpattr import Explainer
from gpattr import quantities as q
from gpattr.exceptions import InvalidInputError, ToleranceError
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.posteriors import ExactPosterior

X = np.array([[0.0, 0.0], [1.0, 0.5], [-1.0, 1.5], [2.0, -1.0], [0.3, -1.7]])
Y = np.array([0.3, -1.0, 0.5, 1.2, 0.1])
PATHS = {
    "through": (X[0] - [1.0, 0.2], X[0] + [0.5, 0.1]),
    "past": (X[0] - [1.0, 0.2], X[0] + [0.5, 0.1 + 1e-3]),
    "barely past": (X[0] - [1.0, 0.2], X[0] + [0.5, 0.1 + 1e-6]),
    "from": (X[1], X[1] + [0.7, -0.4]),
    "to": (X[1] + [0.7, -0.4], X[1]),
    "between two": (X[0], X[1]),
}


def model(kernel=SquaredExponential(lengthscale=1.3)):  # noqa: B008  (a frozen value)
    return ExactPosterior(kernel, X, Y, noise=0.0)


def exact_std_attributions(start, stop):
    """∫ ∂ᵢσ dt (xᵢ − bᵢ) in 40 digits, cut where the path comes nearest to the data."""
    with mp.workdps(40):
        Z = [[mp.mpf(float(v)) for v in row] for row in X]
        scale = mp.mpf(1.3)

        def k(a, b):
            return mp.exp(-sum(((u - v) / scale) ** 2 for u, v in zip(a, b, strict=True)) / 2)

        inverse = mp.matrix([[k(a, b) for b in Z] for a in Z]) ** -1
        b, x = ([mp.mpf(float(v)) for v in end] for end in (start, stop))
        step = [v - u for u, v in zip(b, x, strict=True)]

        def rate(t, i):
            at = [u + t * s for u, s in zip(b, step, strict=True)]
            kz = mp.matrix([k(at, z) for z in Z])
            weights = inverse * kz
            var = 1 - sum(kz[j] * weights[j] for j in range(len(Z)))
            slope = sum(weights[j] * kz[j] * (at[i] - Z[j][i]) / scale**2 for j in range(len(Z)))
            return step[i] * slope / mp.sqrt(abs(var))

        length = sum(s * s for s in step)
        cuts = [sum((z[i] - b[i]) * step[i] for i in range(2)) / length for z in Z]
        inside = sorted({c for c in cuts if mp.mpf("1e-20") < c < 1 - mp.mpf("1e-20")})
        near = [c + sign * mp.mpf(10) ** -p for c in inside for p in (2, 4, 6) for sign in (-1, 1)]
        points = sorted({mp.mpf(0), mp.mpf(1), *inside, *(c for c in near if 0 < c < 1)})
        return np.array([float(mp.quad(lambda t, i=i: rate(t, i), points)) for i in range(2)])


@pytest.mark.slow
@pytest.mark.parametrize("name", PATHS)
def test_standard_deviation_against_40_digits(name):
    start, stop = PATHS[name]
    ex = Explainer(model(), start, quantity=q.StandardDeviation())(stop[None])
    expected = exact_std_attributions(start, stop)
    off = np.abs(ex.values[0] - expected).max()
    assert off <= ex.error[0], (off, ex.error[0])
    # σ = 0 at an end is known to the root of rounding only.
    assert off < (1e-7 if name in ("from", "to", "between two") else 1e-8)
    assert ex.error[0] < 1e-6


@pytest.mark.parametrize("kernel", [SquaredExponential(), Matern52(lengthscale=2.0)])
@pytest.mark.parametrize("name", PATHS)
def test_every_quantity_is_complete_or_refused(name, kernel):
    start, stop = PATHS[name]
    for quantity in (
        q.Variance(),
        q.StandardDeviation(),
        q.UpperConfidenceBound(2.0),
        q.ExpectedImprovement(1.2),
        q.ProbabilityOfImprovement(1.2),
        q.LogExpectedImprovement(1.2),
    ):
        explainer = Explainer(model(kernel), start, quantity=quantity)
        if isinstance(quantity, q.LogExpectedImprovement) and name != "past":
            with pytest.raises((ToleranceError, InvalidInputError), match="log expected improve"):
                explainer(stop[None])  # it is −∞, or nearly, at the data
            continue
        ex = explainer(stop[None])
        size = max(abs(ex.predictions[0]), abs(ex.base_values[0]), *np.abs(ex.values[0]))
        assert np.abs(ex.delta[0]) <= ex.error[0] <= 1e-6 * size


def test_log_improvement_that_is_minus_infinity_is_refused():
    far = ExactPosterior(SquaredExponential(), np.array([[0.0]]), np.array([0.0]), noise=0.0)
    explainer = Explainer(far, [0.0], quantity=q.LogExpectedImprovement(1.0))
    with pytest.raises(InvalidInputError, match="baseline: the log expected .* is -inf"):
        explainer([[1.0]])
    other = Explainer(far, [1.0], quantity=q.LogExpectedImprovement(1.0))
    with pytest.raises(InvalidInputError, match="X: the log expected improvement .* of row 0"):
        other([[0.0]])
