"""Laws of partial dependence, for random models."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpattr import Baselines, Explainer, kernels
from gpattr.kernels import Matern52, Select, SquaredExponential
from gpattr.means import Function
from gpattr.operators import PartialDependence
from gpattr.posteriors import AffinePosterior, CombinationPosterior, ExactPosterior

SEEDS = st.integers(0, 10**6)
FEW = settings(max_examples=25)
TIGHT = 1e-12


def kernel_of(rng, d):
    scale = np.exp(rng.uniform(-0.3, 1.0, size=d))
    return (
        SquaredExponential(scale, 1.5),
        Matern52(scale),
        kernels.RationalQuadratic(scale, alpha=0.7),
        SquaredExponential(scale) * kernels.Linear(0.5) + 0.3 * Matern52(1.5),
        kernels.FullAdditive([SquaredExponential(s) for s in scale], [1.0, 0.5]),
    )[rng.integers(5)]


def model_of(rng, d=3, kernel=None, m=12):
    X = rng.normal(size=(m, d))
    y = np.sin(X[:, 0]) + X[:, -1] ** 2 + 0.1 * rng.normal(size=m)
    return ExactPosterior(kernel or kernel_of(rng, d), X, y, noise=0.1), X, y


def weights_of(rng, K):
    weights = rng.uniform(0.1, 1.0, size=K)
    return weights / weights.sum()


def close(one, two, accuracy=TIGHT):
    np.testing.assert_allclose(one, two, rtol=0, atol=accuracy * max(1.0, np.abs(two).max()))


@FEW
@given(SEEDS)
def test_a_curve_is_linear_in_the_function(seed):
    """The curve of a f + b g is that of f and of g; covariances of independent ones add up."""
    rng = np.random.default_rng(seed)
    (f, X, _), (g, _, _) = model_of(rng), model_of(rng)
    a, b = rng.normal(size=2)
    operator = PartialDependence([1], np.linspace(-1, 1, 4)[:, None], X)
    one, two = f.apply(operator, X[:1]), g.apply(operator, X[:1])
    both = CombinationPosterior([f, g], [a, b]).apply(operator, X[:1])
    close(both.mean, a * one.mean + b * two.mean)
    close(both.cov, a * a * one.cov + b * b * two.cov)


@FEW
@given(SEEDS)
def test_the_centred_curve_of_an_additive_function_is_its_component(seed):
    """f = Σ fⱼ(xⱼ): the centred curve is fⱼ less its average, in mean and covariance."""
    rng = np.random.default_rng(seed)
    parts = [Select(SquaredExponential(1.0 + s), [j]) for j, s in enumerate(rng.random(3))]
    whole = kernels.Sum(*parts)
    posterior, X, y = model_of(rng, kernel=whole)
    weights, grid = weights_of(rng, len(X)), np.linspace(-2, 2, 5)
    found = Explainer(posterior).dependence(1, grid, Baselines(X, weights), centred=True)
    # The component by Gaussian conditioning, at grid and background alone.
    at = np.zeros((5 + len(X), 3))
    at[:5, 1], at[5:, 1] = grid, X[:, 1]
    A = whole(X, X) + 0.1 * np.eye(len(X))
    C, K = parts[1](at, X), parts[1](at, at)
    M = np.hstack([np.eye(5), -np.tile(weights, (5, 1))])
    close(found.values, M @ C @ np.linalg.solve(A, y))
    close(found.cov, M @ (K - C @ np.linalg.solve(A, C.T)) @ M.T)


@FEW
@given(SEEDS)
def test_a_feature_that_the_kernel_ignores(seed):
    """It has a constant curve, no slope, and nothing once it is centred."""
    rng = np.random.default_rng(seed)
    kernel = Select(Matern52([1.0, 2.0]), [2, 0]) * Select(SquaredExponential(), [0])
    posterior, _, _ = model_of(rng, kernel=kernel)
    explainer, grid = Explainer(posterior), np.linspace(-2, 2, 5)
    curve = explainer.dependence(1, grid)
    assert np.ptp(curve.values) <= curve.error.max()
    assert np.ptp(curve.cov) <= curve.cov_error.max()
    slope = explainer.dependence(1, grid, derivative=True)
    np.testing.assert_array_equal(slope.values, 0.0)
    np.testing.assert_array_equal(slope.cov, 0.0)
    centred = explainer.dependence(1, grid, centred=True)
    np.testing.assert_array_equal(centred.values, 0.0)
    np.testing.assert_array_equal(centred.cov, 0.0)


@FEW
@given(SEEDS)
def test_the_average_of_individual_curves_is_the_curve(seed):
    """In mean, and in covariance with that between rows."""
    rng = np.random.default_rng(seed)
    posterior, X, _ = model_of(rng)
    weights, grid = weights_of(rng, 4), np.linspace(-1, 1, 3)[:, None]
    for centre in (None, Baselines(X[:5, [2]])):
        each = PartialDependence([2], grid, n_features=3, centre=centre)
        both = PartialDependence([2], grid, Baselines(X[:4], weights), centre=centre)
        average = posterior.apply(both, X[:1])
        curves, joint = posterior.apply(each, X[:4]), posterior.joint(each, X[:4])
        close(weights @ curves.mean, average.mean[0])
        between = np.einsum("n,nimj,m->ij", weights, joint, weights)
        close(between, average.cov[0])


@FEW
@given(SEEDS)
def test_the_order_of_columns_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    scale, order = rng.uniform(0.7, 2.0, size=4), rng.permutation(4)
    kind = (SquaredExponential, Matern52)[rng.integers(2)]
    X = rng.normal(size=(10, 4))
    y = np.sin(X).sum(axis=1)
    one = Explainer(ExactPosterior(kind(scale), X, y, noise=0.1))
    two = Explainer(ExactPosterior(kind(scale[order]), X[:, order], y, noise=0.1))
    place = [int(np.flatnonzero(order == j)[0]) for j in (1, 3)]
    for options in ({}, {"centred": True}, {"kind": "individual"}, {"derivative": True}):
        a, b = one.dependence(1, 6, **options), two.dependence(place[0], 6, **options)
        close(a.values, b.values)
        close(a.cov, b.cov)
    a, b = one.dependence((1, 3), 3), two.dependence(tuple(place), 3)
    close(a.values, b.values)
    close(a.cov, b.cov)
    swapped = one.dependence((3, 1), 3)
    close(swapped.values.T, a.values)
    close(swapped.cov.transpose(1, 0, 3, 2), a.cov)


@FEW
@given(SEEDS)
def test_units_do_not_matter(seed):
    """In units of x the grid has these units, and a slope those of 1/x."""
    rng = np.random.default_rng(seed)
    inner, X, _ = model_of(rng)
    shift, scale = rng.normal(size=3) * 10, np.exp(rng.normal(size=3)) * rng.choice([-1, 1], size=3)
    outer = Explainer(AffinePosterior(inner, shift, scale))
    inside, rows = Explainer(inner), X * scale + shift
    grid = np.sort(rng.normal(size=5) * scale[1] + shift[1])
    own, places = (grid - shift[1]) / scale[1], np.arange(5)
    if scale[1] < 0:
        own, places = own[::-1], places[::-1]
    for options in ({}, {"centred": True}, {"kind": "individual"}):
        a = outer.dependence(1, grid, rows, **options)
        b = inside.dependence(1, own, X, **options)
        close(a.values, b.values[..., places], 1e-11)
        close(a.cov, b.cov[..., places, :][..., places], 1e-11)
    a = outer.dependence(1, grid, rows, derivative=True)
    b = inside.dependence(1, own, X, derivative=True)
    close(a.values * scale[1], b.values[places], 1e-11)
    close(a.cov * scale[1] ** 2, b.cov[np.ix_(places, places)], 1e-11)


@FEW
@given(SEEDS)
def test_a_slope_is_the_derivative_of_the_curve(seed):
    """By central differences of the curve, of its joint distribution."""
    rng = np.random.default_rng(seed)
    posterior, X, _ = model_of(rng)
    h, at = 1e-4, np.array([-0.8, 0.1, 1.0])
    grid = np.sort(np.concatenate([at - h, at + h]))
    explainer = Explainer(posterior)
    curve = explainer.dependence(0, grid, X)
    slope = explainer.dependence(0, at, X, derivative=True)
    M = (np.eye(6)[1::2] - np.eye(6)[::2]) / (2 * h)
    size = np.abs(slope.values).max() + np.sqrt(slope.cov.max()) + 1.0
    close(M @ curve.values, slope.values, 1e-5 * size)
    close(M @ curve.cov @ M.T, slope.cov, 1e-4 * size**2)


@pytest.mark.parametrize("centred", [False, True])
def test_a_prior_mean_is_averaged_as_it_is(centred):
    """Where the data say nothing, the curve is that of the prior mean."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    mean = Function(
        lambda x: x[:, 0] * x[:, 1] ** 2,
        lambda x: np.column_stack([x[:, 1] ** 2, 2 * x[:, 0] * x[:, 1]]),
    )
    posterior = ExactPosterior(
        SquaredExponential(0.1), X + 100.0, np.zeros(6), noise=0.1, mean=mean
    )
    grid = np.array([-1.0, 0.5, 2.0])
    found = Explainer(posterior).dependence(1, grid, X, centred=centred)
    expected = X[:, 0].mean() * (grid**2 - centred * (X[:, 1] ** 2).mean())
    np.testing.assert_allclose(found.values, expected, rtol=1e-13)
