"""L-BFGS-B visits the points that SciPy's visits, and ends where and for what reasons it does."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from gpattr.estimators.quasi_newton import ABNORMAL, CONVERGED, LIMIT, _Search, minimise

OPTIONS = {"ftol": 1e-8, "gtol": 1e-3, "maxcor": 20, "maxiter": 1000, "maxfun": 10000}
BOUNDS = {
    "none": (-np.inf, np.inf),
    "box": (-0.3, 0.5),
    "below": (0.0, np.inf),
    "above": (-np.inf, 0.2),
}


def rosenbrock(x):
    return rosen(x), rosen_der(x)


def quartic(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    A, b = A @ A.T + np.eye(n), 5.0 * rng.normal(size=n)
    return lambda x: (0.5 * x @ A @ x - b @ x + 0.1 * (x**4).sum(), A @ x - b + 0.4 * x**3)


def visited(function):
    points = []

    def noted(x):
        points.append(x.copy())
        return function(x)

    return points, noted


def compare(function, start, limits, **options):
    options = OPTIONS | options
    start = np.clip(start, *limits.T)
    theirs, noted = visited(function)
    reference = minimize(noted, start, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    ours, noted = visited(function)
    result = minimise(noted, start, limits, **options)
    assert len(ours) == len(theirs)
    np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result.x, reference.x, atol=1e-6)
    assert result.value == function(result.x)[0]
    assert result.status == reference.status
    assert ((result.x >= limits[:, 0]) & (result.x <= limits[:, 1])).all()
    return result


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("n", [1, 2, 5, 13, 30])
@pytest.mark.parametrize("maxcor", [3, 20])
def test_scipys_points_on_quartics(bounds, n, maxcor):
    start = np.random.default_rng(1).normal(size=n)
    result = compare(quartic(n), start, np.tile(BOUNDS[bounds], (n, 1)), maxcor=maxcor)
    assert result.status == CONVERGED


@pytest.mark.parametrize("n", [2, 5, 13])
def test_scipys_points_in_a_curved_valley(n):
    start = np.random.default_rng(0).uniform(-2, 2, n)
    compare(rosenbrock, start, np.tile((-2.0, 0.8), (n, 1)))
    mixed = np.tile((-np.inf, np.inf), (n, 1))
    mixed[::2] = (-2.0, 2.0)
    compare(rosenbrock, start, mixed)


@pytest.mark.parametrize(
    ("option", "said"), [("maxiter", "limit of 3 iterations"), ("maxfun", "limit of 3 evaluations")]
)
def test_limits(option, said):
    result = compare(rosenbrock, np.array([-1.0, 1.5]), np.tile((-2.0, 2.0), (2, 1)), **{option: 3})
    assert result.status == LIMIT
    assert said in result.message


def test_nothing_may_move():
    result = minimise(quartic(3), np.full(3, 9.0), np.tile((9.0, 9.0), (3, 1)), **OPTIONS)
    assert result.status == CONVERGED
    assert result.message == "the projected gradient is small"


def test_a_gradient_that_points_uphill_is_no_success():
    result = minimise(
        lambda x: (float(x @ x), -2.0 * x), np.ones(2), np.tile((-2.0, 2.0), (2, 1)), **OPTIONS
    )
    assert result.status == ABNORMAL
    np.testing.assert_array_equal(result.x, np.ones(2))


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_values_that_say_nothing_end_the_search(value):
    result = minimise(
        lambda x: (value, np.ones(2)), np.ones(2), np.tile((-2.0, 2.0), (2, 1)), **OPTIONS
    )
    assert result.status in (CONVERGED, ABNORMAL)
    assert np.isfinite(result.x).all()


def test_no_parameters():
    assert (
        minimise(lambda x: (1.0, x), np.empty(0), np.empty((0, 2)), **OPTIONS).status == CONVERGED
    )


def test_every_step_is_reported():
    steps = []
    minimise(
        rosenbrock,
        np.array([-1.0, 1.5]),
        np.tile((-2.0, 2.0), (2, 1)),
        callback=lambda x: steps.append(rosen(x)),
        **OPTIONS,
    )
    assert len(steps) > 5
    assert all(later <= earlier for earlier, later in zip(steps, steps[1:]))


def test_where_nothing_can_be_interpolated_the_step_is_halved(monkeypatch):
    search = _Search(0.0, -1.0, 1.0, 1.0)
    monkeypatch.setattr(search, "_next", lambda *ends: 1 // 0)
    search.take(1.0, 1.0)
    assert search.step == 0.5
