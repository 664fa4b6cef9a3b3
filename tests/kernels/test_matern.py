"""Matérn kernels of any smoothness: attributions with 30 digits from the values, and the laws of
their covariances.
"""

import mpmath as mp
import numpy as np
import pytest
from tests.reference import definition

from gpattr import GPRegressor, RandomFeatureGPRegressor, closed_forms, testing
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Linear, Matern, Matern32, Matern52
from gpattr.operators import IntegratedGradients

RNG = np.random.default_rng(0)
b, x = np.array([-0.6, 0.4]), np.array([0.9, -0.2])
across = np.array([0.6, 1.5]) / np.hypot(0.6, 1.5)


def truth(kernel, z):
    """(xᵢ − bᵢ) ∫∂ᵢk(b + t(x − b), z) dt: differences of values, and an integral that expects
    singular ends, cut nearest to z.
    """
    start, stop, point = map(definition.mpf, (b, x, z))
    p = [u - v for u, v in zip(stop, start)]
    scale = [mp.mpf(float(s)) for s in np.broadcast_to(kernel.lengthscale, 2)]
    length = mp.fsum((u / s) ** 2 for u, s in zip(p, scale))
    nearest = mp.fsum(u * (w - v) / s**2 for u, v, w, s in zip(p, start, point, scale)) / length
    cuts = [mp.mpf(0), nearest, mp.mpf(1)]

    def along(i):
        return mp.quad(
            lambda t: definition.slope(kernel, [u + t * v for u, v in zip(start, p)], point, i),
            cuts,
            maxdegree=7,
        )

    return np.array([float(p[i] * along(i)) for i in range(2)])


@pytest.mark.slow
@pytest.mark.parametrize("aside", [0.0, 1e-8, 0.3])
@pytest.mark.parametrize(
    "nu",
    [
        pytest.param(1.05, marks=pytest.mark.slow),
        1.25,
        2.0,
        3.5,
        pytest.param(20.0, marks=pytest.mark.slow),
    ],
)
def test_attributions_with_thirty_digits(nu, aside, monkeypatch):
    kernel = Matern([0.8, 1.3], 1.5, nu=nu)
    z = b + 0.4 * (x - b) + aside * across
    with mp.workdps(30):
        monkeypatch.setattr(definition, "H", mp.mpf(10) ** -10)
        expected = truth(kernel, z)
    value, bound = closed_forms.contract(
        IntegratedGradients(b), kernel, x[None], z[None], np.ones((1, 1))
    )
    np.testing.assert_allclose(value[0, :, 0], expected, rtol=0, atol=1e-13)
    assert np.abs(value[0, :, 0] - expected).max() <= bound[0] < 1e-11


@pytest.mark.parametrize("nu", [1.05, 1.25, 2.0, 3.5, 20.0, 50.0])
def test_covariances_add_up(nu):
    """Rows near and far, with one baseline and with one each: sums are what the kernel says, and
    nothing is negative.
    """
    kernel = Matern([0.8, 1.3], 1.5, nu=nu)
    rows = np.vstack(
        [0.3 * RNG.normal(size=(3, 2)), 3.0 * RNG.normal(size=(3, 2)), [[20.0, -30.0]]]
    )
    for starts in (np.zeros((7, 2)), RNG.normal(size=(7, 2))):
        got = closed_forms.between(IntegratedGradients(starts), kernel, rows)
        expected = (
            kernel(rows, rows)
            - kernel(rows, starts)
            - kernel(starts, rows)
            + kernel(starts, starts)
        )
        np.testing.assert_allclose(got.sum(axis=(1, 3)), expected, atol=2e-9)
        assert np.linalg.eigvalsh(got.reshape(14, 14))[0] > -1e-10


@pytest.mark.parametrize(("nu", "kind"), [(1.5, Matern32), (2.5, Matern52)])
def test_half_integers_are_the_usual_kernels(nu, kind):
    general, usual = Matern([0.8, 1.3], 1.5, nu=nu), kind([0.8, 1.3], 1.5)
    rows, operator = RNG.normal(size=(6, 2)), IntegratedGradients(np.zeros(2))
    np.testing.assert_allclose(general(rows, rows), usual(rows, rows), atol=1e-12)
    np.testing.assert_allclose(
        closed_forms.cross(operator, general, rows, rows),
        closed_forms.cross(operator, usual, rows, rows),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        closed_forms.between(operator, general, rows),
        closed_forms.between(operator, usual, rows),
        atol=1e-12,
    )
    for order in (
        40.0,
        50.0,
    ):  # a power series at small distances, where Bessel functions would overflow
        smooth = Matern(nu=order)
        near = np.array([[0.0], [1e-6], [1e-3], [0.009]])
        expected = [
            float(definition.value(smooth, [mp.mpf(0)], [mp.mpf(float(z))])) for z in near[:, 0]
        ]
        np.testing.assert_allclose(smooth(np.zeros((1, 1)), near)[0], expected, rtol=1e-14)
    far = np.array([[1e80, 0.0]])
    np.testing.assert_array_equal(general(far, rows), 0.0)


def test_it_keeps_the_laws_of_kernels():
    testing.check_kernel(Matern([0.8, 1.3], 1.5, nu=1.7))
    testing.check_kernel(Matern(0.8, nu=6.0))
    testing.check_kernel(Matern(1.8, nu=1.2))
    testing.check_kernel(Matern(1.8, nu=1.7) * Linear())


def test_it_is_trained_and_has_random_features():
    rows = RNG.normal(size=(60, 2))
    y = np.sin(rows[:, 0]) + 0.1 * RNG.normal(size=60)
    model, usual = (
        GPRegressor(kernel, hyperparameters="optimal").fit(rows, y)
        for kernel in (Matern([1.0, 1.0], nu=2.5), Matern52([1.0, 1.0]))
    )
    assert model.posterior_.log_marginal_likelihood == pytest.approx(
        usual.posterior_.log_marginal_likelihood, rel=1e-6
    )
    random, same = (
        RandomFeatureGPRegressor(50, kernel=kernel, random_state=0).fit(rows, y).predict(rows)
        for kernel in (Matern([1.0, 1.0], nu=2.5), Matern52([1.0, 1.0]))
    )
    np.testing.assert_allclose(random, same, rtol=1e-6)


def test_what_is_refused():
    for nu in (1.0, 0.5, 51.0):
        with pytest.raises(InvalidInputError, match="nu: expected 1.05 to 50"):
            Matern(nu=nu)
