"""Shapley values where numbers are large, tiny, equal or many: finite, silent, and within bounds.

Warnings are errors in this suite, so "silent" needs no check of its own.
"""

import numpy as np
import pytest
from tests.reference import coalitions, long_double

from gpattr import Baselines, closed_forms, kernels
from gpattr.kernels import Select
from gpattr.operators import Marginals, Shapley
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(7)


def some_kernels(d):
    """One of each kind, of d features, with different length-scales."""
    scale = np.linspace(0.5, 2.0, d)
    return {
        "squared exponential": kernels.SquaredExponential(scale, 1.5),
        "separable Matérn 1/2": kernels.separable(kernels.Matern12, scale),
        "separable Matérn 3/2": kernels.separable(kernels.Matern32, scale),
        "separable Matérn 5/2": kernels.separable(kernels.Matern52, scale),
        "Matérn 1/2": kernels.Matern12(scale),
        "Matérn 3/2": kernels.Matern32(scale),
        "Matérn 5/2": kernels.Matern52(scale),
        "rational quadratic": kernels.RationalQuadratic(scale, alpha=0.6),
        "periodic": kernels.Periodic(scale, 3.0),
        "squared exponential × linear": kernels.SquaredExponential(scale)
        * Select(kernels.Linear(), [0]),
        "linear": kernels.Linear(scale),
        "polynomial": kernels.Polynomial(scale, degree=3),
        "full additive": kernels.FullAdditive(
            [kernels.SquaredExponential(s) for s in scale], np.ones(min(d, 3))
        ),
        "cosine": kernels.Cosine(3.0 * scale),
    }


KINDS = tuple(some_kernels(2))
RADIAL = ("Matérn 1/2", "Matérn 3/2", "Matérn 5/2", "rational quadratic")


def finite(result):
    return all(np.isfinite(part).all() for part in (result.mean, result.cov, result.error))


def model(kernel, d, m=12):
    Z = RNG.normal(size=(m, d))
    return ExactPosterior(kernel, Z, np.sin(Z[:, 0]) + Z[:, -1], noise=0.1)


def assert_efficient(posterior, result, X, b, slack=0.0):
    """Σφ = f(x) − f(b); ``slack`` (n,) is what a prediction itself may be off by."""
    mean, cov = posterior.predict(np.concatenate([X, b[None]]), return_cov=True)
    size = max(1.0, float(posterior.kernel.diagonal(np.concatenate([X, b[None]])).max()))
    off = np.abs(result.mean.sum(axis=1) - (mean[:-1] - mean[-1]))
    total = np.abs(posterior.alpha).sum()
    assert (off <= (1e-11 + slack) * total * size + result.error * result.mean.shape[1]).all()
    gain = np.diagonal(cov)[:-1] - 2 * cov[:-1, -1] + cov[-1, -1]
    assert (np.abs(result.cov.sum(axis=(1, 2)) - gain) <= (1e-7 + slack) * size).all()


@pytest.mark.parametrize("reach", [1e3, 1e5, 1e8])
@pytest.mark.parametrize("name", KINDS)
def test_far_points(name, reach):
    """Rows, baselines and training rows up to 1e8 length-scales from each other."""
    posterior = model(some_kernels(3)[name], 3)
    X, b = reach * RNG.normal(size=(4, 3)), RNG.normal(size=3)
    X[1] = RNG.normal(size=3)
    X[2, :2] = b[:2]
    for baseline in (b, -X[0], X[::-1], Baselines(X[:2]), Marginals(X[:2])):
        result = posterior.apply(Shapley(baseline), X)
        assert finite(result)
        assert (np.diagonal(result.cov, axis1=1, axis2=2) >= 0).all()
    # The phase of a wave far away is rounded with the row itself.
    slack = 1e-15 * np.abs(X).max(axis=1) if name in ("periodic", "cosine") else 0.0
    assert_efficient(posterior, posterior.apply(Shapley(b), X), X, b, slack)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("step", [1e-300, 1e-160, 1e-30, 1e-12])
def test_tiny_steps(name, step):
    """Values of steps that are too small for their squares stay proportional to them."""
    posterior = model(some_kernels(3)[name], 3)
    direction = np.array([[1.0, -0.5, 2.0], [0.0, 1.0, 0.0]])
    result = posterior.apply(Shapley(np.zeros(3)), step * direction)
    assert finite(result)
    if name in RADIAL or name == "separable Matérn 1/2":
        return  # they have kinks, or errors of a mixture
    reference = posterior.apply(Shapley(np.zeros(3)), 1e-7 * direction)
    np.testing.assert_allclose(
        result.mean / step, reference.mean / 1e-7, rtol=0, atol=1e-5 * np.abs(posterior.alpha).sum()
    )


@pytest.mark.parametrize("d", [2, 5, 60])
def test_factors_of_1e_300(d):
    """One feature is 37 length-scales away: its factor is 1e-300, and values are relative to it."""
    kernel, b = kernels.SquaredExponential(1.0), np.zeros(d)
    x, z = RNG.uniform(0.1, 1.0, size=d), RNG.uniform(-0.2, 0.2, size=d)
    z[0] = 37.1
    values = closed_forms.cross(Shapley(b), kernel, x[None], z[None])[0, :, 0]
    u, v = -0.5 * (x - z) ** 2, -0.5 * (b - z) ** 2
    scaled = z.copy()
    scaled[0] = 0.0  # the same without the tiny factor: its logarithm is added to all of them
    shift = v[0]
    u[0], v[0] = u[0] - shift, 0.0
    total = np.exp(u.sum()) - np.exp(v.sum())
    assert np.isfinite(values).all()
    assert (values != 0).all()
    assert values.sum() / np.exp(shift) == pytest.approx(total, rel=1e-11)


@pytest.mark.parametrize("d", [1, 2, 4, 13])
@pytest.mark.parametrize("name", KINDS)
def test_rows_that_are_their_baseline(name, d):
    """Exact zeros: means, covariances and errors; and in all background rows."""
    posterior = model(some_kernels(d)[name], d)
    X = RNG.normal(size=(3, d))
    own = posterior.apply(Shapley(X), X)
    assert (own.mean == 0).all()
    assert (own.cov == 0).all()
    one = posterior.apply(Shapley(X[1]), X)
    assert (one.mean[1] == 0).all()
    assert (one.cov[1] == 0).all()
    joint = posterior.joint(Shapley(X[1]), X)
    assert (joint[1] == 0).all()
    assert (joint[:, :, 1] == 0).all()
    same = posterior.apply(Shapley(Baselines(X[[1, 1, 1]])), X)
    assert (same.mean[1] == 0).all()
    np.testing.assert_allclose(same.mean, one.mean, rtol=0, atol=1e-13 * (1 + abs(one.mean).max()))


@pytest.mark.parametrize("name", KINDS)
def test_one_feature(name):
    """φ = f(x) − f(b)."""
    posterior = model(some_kernels(1)[name], 1)
    X, b = RNG.normal(size=(5, 1)), RNG.normal(size=1)
    result = posterior.apply(Shapley(b), X)
    mean, cov = posterior.predict(np.concatenate([X, b[None]]), return_cov=True)
    size = float(posterior.kernel.diagonal(X).max())
    np.testing.assert_allclose(result.mean[:, 0], mean[:-1] - mean[-1], rtol=0, atol=1e-12)
    gain = np.diagonal(cov)[:-1] - 2 * cov[:-1, -1] + cov[-1, -1]
    np.testing.assert_allclose(result.cov[:, 0, 0], gain, rtol=0, atol=1e-12 * max(1.0, size))


@pytest.mark.parametrize("name", KINDS)
def test_repeated_rows(name):
    """The same training row, row and background row several times."""
    Z = np.repeat(RNG.normal(size=(5, 2)), 3, axis=0)
    posterior = ExactPosterior(some_kernels(2)[name], Z, np.arange(15.0) % 4, noise=1e-4)
    X = np.repeat(RNG.normal(size=(2, 2)), 2, axis=0)
    background = Baselines(Z[:6])
    result, joint = (ask(Shapley(background), X) for ask in (posterior.apply, posterior.joint))
    assert finite(result)
    np.testing.assert_array_equal(result.mean[0], result.mean[1])
    truth = coalitions.truth(coalitions.joint_of(posterior), X, background)
    size = max(1.0, float(posterior.kernel.diagonal(X).max()))
    lost = posterior.condition_number * 1e-15 + 1e-9
    np.testing.assert_allclose(result.cov, truth.cov, rtol=0, atol=lost * size)
    np.testing.assert_allclose(joint, truth.joint, rtol=0, atol=lost * size)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("d", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_many_features(name, d):
    """Efficiency and finiteness with many features, half of them equal to the baseline in a row."""
    scale = 3.0 * np.sqrt(d)
    kernel = some_kernels(d)[name]
    Z = RNG.normal(size=(10, d)) / scale
    posterior = ExactPosterior(kernel, Z, np.sin(5 * Z[:, 0]), noise=0.1)
    X, b = RNG.normal(size=(2, d)) / scale, RNG.normal(size=d) / scale
    X[1, : d // 2] = b[: d // 2]
    result = posterior.apply(Shapley(b), X)
    assert finite(result)
    assert_efficient(posterior, result, X, b)
    far = posterior.apply(Shapley(b), 1e3 * X)
    assert finite(far)


@pytest.mark.parametrize("name", KINDS)
def test_errors_bound_a_thousand_cases(name):
    """The stated error holds for rows from 1e-8 to 1000 length-scales, against long doubles."""
    d, n = 4, 1000
    kernel = some_kernels(d)[name]
    Z = RNG.normal(size=(10, d))
    y, noise = np.sin(2 * Z[:, 0]) + Z[:, 1], 10.0 ** RNG.uniform(-4, 0, size=10)
    posterior = ExactPosterior(kernel, Z, y, noise=noise)
    b = Z[RNG.integers(10, size=n)] + 10.0 ** RNG.uniform(-8, 1, size=(n, 1)) * RNG.normal(
        size=(n, d)
    )
    X = b + 10.0 ** RNG.uniform(-8, 3, size=(n, 1)) * RNG.normal(size=(n, d))
    X[::7, 0] = b[::7, 0]
    truth, rounding = long_double.means(kernel, Z, y, noise, X, b)
    for uncertainty in ("cov", "none"):
        result = posterior.apply(Shapley(b), X, uncertainty=uncertainty)
        off = np.abs(result.mean - truth).max(axis=1)
        assert (off <= result.error + rounding).all(), float((off / result.error).max())
    # A bound that says nothing would hold, too.
    close = result.error <= 1e-6 * (1.0 + np.abs(truth).max(axis=1))
    assert close.mean() > 0.9


@pytest.mark.parametrize("name", RADIAL)
def test_certified_errors_of_mixtures(name):
    """Marginals of one row are a point, and radial kernels are mixtures there."""
    d, n = 4, 1000
    kernel = some_kernels(d)[name]
    Z = RNG.normal(size=(10, d))
    y, noise = np.sin(2 * Z[:, 0]) + Z[:, 1], np.full(10, 0.01)
    posterior, b = ExactPosterior(kernel, Z, y, noise=noise), Z[0] + 0.1
    X = b + 10.0 ** RNG.uniform(-8, 4, size=(n, 1)) * RNG.normal(size=(n, d))
    result = posterior.apply(Shapley(Marginals(b[None])), X, uncertainty="none")
    assert result.method == "scale mixture"
    truth, rounding = long_double.means(kernel, Z, y, noise, X, np.broadcast_to(b, X.shape))
    off = np.abs(result.mean - truth).max(axis=1)
    assert (off <= result.error + rounding).all(), float((off / result.error).max())
    assert np.median(result.error) <= 1e-7 * np.abs(posterior.alpha).sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squared exponential", *RADIAL])
def test_fourteen_features_against_all_coalitions(name):
    """More players than are enumerated: 2^14 predictions."""
    d = 14
    kernel = some_kernels(d)[name]
    Z = 0.5 * RNG.normal(size=(20, d))
    posterior = ExactPosterior(kernel, Z, np.sin(3 * Z[:, 0]) + Z[:, 1], noise=0.1)
    X, b = 0.5 * RNG.normal(size=(1, d)), 0.5 * RNG.normal(size=d)
    sums = coalitions.functional(X, b)
    result = posterior.apply(Shapley(b), X, uncertainty="none")
    truth = sums.mean(posterior.predict(sums.points))
    accuracy = 1e-12 if name == "squared exponential" else 1e-8
    np.testing.assert_allclose(result.mean, truth, rtol=0, atol=accuracy)


@pytest.mark.parametrize("name", KINDS)
def test_errors_of_covariances(name):
    """``cov_error`` holds for rows from 1e-6 to 100 length-scales, against long doubles."""
    d, n = 3, 60
    kernel = some_kernels(d)[name]
    Z = RNG.normal(size=(10, d))
    noise = 10.0 ** RNG.uniform(-4, 0, size=10)
    posterior = ExactPosterior(kernel, Z, np.sin(2 * Z[:, 0]) + Z[:, 1], noise=noise)
    b = Z[RNG.integers(10, size=n)] + RNG.normal(size=(n, d))
    X = b + 10.0 ** RNG.uniform(-6, 2, size=(n, 1)) * RNG.normal(size=(n, d))
    truth = long_double.covariances(kernel, Z, noise, X, b)
    result = posterior.apply(Shapley(b), X)
    off = np.abs(result.cov - truth).max(axis=(1, 2))
    # Enumeration cancels: it has the rounding of the largest variance at a coalition.
    rounding = 1e-17 * kernel.diagonal(np.maximum(abs(X), abs(b)))
    assert (off <= result.cov_error + rounding).all(), float((off / result.cov_error).max())
    size = np.abs(truth).max(axis=(1, 2)) + kernel.diagonal(b)
    assert np.median(result.cov_error / size) <= 1e-9
