"""Quasi-random integration against joint predictions of the model on product grids."""

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.sobol.brute_force import form, grid, moments_of_effects

from gpattr import kernels
from gpattr.bases import Monomials
from gpattr.means import Constant, Linear
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    ExactPosterior,
    SparsePosterior,
    WeightSpacePosterior,
)
from gpattr.sobol import quasi_random
from gpattr.sobol.drawn_functions import DrawnFunctions, KernelFunctions, joint
from gpattr.sobol.inputs import Empirical, Inputs, Normal, Uniform
from gpattr.sobol.quasi_random import (
    ExchangePlan,
    Slice,
    plug_in_effects,
    quasi_random_effects,
    slice_rule,
)

RNG = np.random.default_rng(0)
SUBSETS = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
THREE = Inputs.single([Uniform(0.0, 1.0), Normal(0.5, 0.2), Empirical([0.1, 0.4, 0.5, 0.9])])


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Tests need the honesty of errors, and not their smallness."""
    monkeypatch.setattr(quasi_random, "WORK", 5e6)
    monkeypatch.setattr(quasi_random, "MEAN_WORK", 5e6)


def data(rng, m=25):
    X = rng.uniform(size=(m, 3))
    return X, np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=m)


def exact(kernel=None, rng=None, mean=None):
    X, y = data(np.random.default_rng(5) if rng is None else rng)
    kernel = kernels.Matern52([0.6, 0.8, 1.0]) if kernel is None else kernel
    return ExactPosterior(kernel, X, y, noise=0.01, mean=mean)


def weight_space():
    basis = Monomials(np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 2, 1]]))
    return WeightSpacePosterior(basis, weights=[1.0, -0.5, 2.0, 0.3], covariance=0.05 * np.eye(4))


def combination():
    one, two = exact(), exact(kernels.SquaredExponential(0.7), np.random.default_rng(6))
    return CombinationPosterior([one, two], [0.5, -1.0])


def sparse():
    X, y = data(np.random.default_rng(5), 60)
    return SparsePosterior.fit(kernels.Matern52(0.8), X[:12], X, y, noise=0.02)


MODELS = {
    "matern": exact,
    "constant mean": lambda: exact(mean=Constant(3.0)),
    "uncertain mean": lambda: exact(mean=Linear([0.0, 0.0, 0.0], covariance="flat")),
    "sum and product": lambda: exact(
        kernels.Matern32(0.7) + kernels.SquaredExponential(0.5) * kernels.Linear()
    ),
    "weight space": weight_space,
    "combination": combination,
    "sparse": sparse,
    "scaled": lambda: AffinePosterior(exact(), [0.1, 0.0, -0.2], [2.0, -1.5, 0.9]),
}


@pytest.mark.parametrize("name", MODELS)
def test_variances_are_those_of_joint_predictions(name):
    posterior = MODELS[name]()
    found = quasi_random_effects(posterior, THREE, SUBSETS, 3000, np.random.default_rng(1))
    plug_in, expected, std = moments_of_effects(posterior, THREE, SUBSETS, 14)
    assert (np.abs(found.plug_in - plug_in) <= found.error).all()
    assert (np.abs(found.expected - expected) <= found.error).all()
    assert (found.error < 0.05 * expected[-1]).all()
    np.testing.assert_allclose(found.draws.std(axis=0, ddof=1), std, rtol=0.12)
    np.testing.assert_allclose(
        found.draws.mean(axis=0), found.expected, atol=4 * std.max() / 3000**0.5
    )


@pytest.mark.slow
def test_the_error_holds_as_often_as_promised(monkeypatch):
    monkeypatch.setattr(quasi_random, "WORK", 2e6)
    monkeypatch.setattr(quasi_random, "MEAN_WORK", 2e6)
    inside, cases = 0, 100
    for seed in range(cases):
        rng = np.random.default_rng(seed)
        d = 2 + seed % 5 // 4
        X = rng.uniform(size=(int(rng.integers(4, 30)), d))
        kind = (kernels.SquaredExponential, kernels.Matern52)[seed % 2]
        y = np.sin(3 * X.sum(axis=1)) + rng.normal(size=len(X)) * 0.1 + 3 * rng.normal()
        posterior = ExactPosterior(kind(rng.uniform(0.4, 2.0, d)), X, y, noise=0.01)
        laws = [Uniform(-0.2, 1.0), Normal(0.5, 0.3), Empirical(rng.uniform(size=6))]
        inputs = Inputs.single([laws[i] for i in rng.permutation(3)[:d]])
        whole = tuple(range(d))
        subsets = ((0,), whole[1:], whole)
        found = quasi_random_effects(posterior, inputs, subsets, 100, rng)
        plug_in, expected, _ = moments_of_effects(posterior, inputs, subsets, 12)
        k = seed % len(subsets)
        inside += (
            abs(found.plug_in[k] - plug_in[k]) <= found.error[k]
            and abs(found.expected[k] - expected[k]) <= found.error[k]
        )
    assert inside >= 95


def test_more_work_makes_errors_smaller(monkeypatch):
    posterior, sizes = exact(), []
    for work in (2e6, 5e7):
        monkeypatch.setattr(quasi_random, "WORK", work)
        monkeypatch.setattr(quasi_random, "MEAN_WORK", work)
        found = quasi_random_effects(posterior, THREE, SUBSETS, 100, np.random.default_rng(0))
        sizes.append(found.error.max())
    assert sizes[1] < 0.3 * sizes[0]


def test_a_constant_feature_has_exactly_no_effect():
    laws = [Uniform(0.0, 1.0), Empirical([0.3, 0.3, 0.3]), Normal(0.5, 0.2)]
    found = quasi_random_effects(
        exact(), Inputs.single(laws), SUBSETS, 200, np.random.default_rng(0)
    )
    one, whole = SUBSETS.index((1,)), SUBSETS.index((0, 1, 2))
    others = SUBSETS.index((0, 2))
    assert found.plug_in[one] == 0.0
    assert found.expected[one] == 0.0
    assert (found.draws[:, one] == 0.0).all()
    np.testing.assert_allclose(found.expected[others], found.expected[whole], rtol=1e-13)


def test_groups_and_columns_that_are_drawn_together():
    posterior = exact()
    together = Empirical(RNG.uniform(size=(7, 2)))
    inputs = Inputs((together, Uniform(0.0, 1.0)), ((0, 2), (1,)), (0, 1), 2, 3)
    subsets = ((0,), (1,), (0, 1))
    found = quasi_random_effects(posterior, inputs, subsets, 200, np.random.default_rng(0))
    plug_in, expected, _ = moments_of_effects(posterior, inputs, subsets, 14)
    assert (np.abs(found.plug_in - plug_in) <= found.error).all()
    assert (np.abs(found.expected - expected) <= found.error).all()
    grouped = Inputs(THREE.distributions, THREE.columns, (0, 0, 1), 2, 3)
    found = quasi_random_effects(posterior, grouped, subsets, 200, np.random.default_rng(0))
    plug_in, expected, _ = moments_of_effects(posterior, grouped, subsets, 14)
    assert (np.abs(found.plug_in - plug_in) <= found.error).all()
    assert (np.abs(found.expected - expected) <= found.error).all()


def test_many_features_of_a_group_have_quasi_random_nodes():
    inputs = Inputs((Uniform(0.0, 1.0),) * 4, ((0,), (1,), (2,), (3,)), (0, 0, 0, 1), 2, 4)
    part = Slice.of(inputs, (0,), 0, np.random.default_rng(0))
    assert part.nodes.shape == (128, 3)
    np.testing.assert_allclose(part.weights.sum(), 1.0)
    np.testing.assert_allclose(part.nodes.mean(axis=0), 0.5, atol=0.01)


def test_rules_of_empirical_distributions_are_exact_for_polynomials():
    values = RNG.normal(size=500)
    nodes, weights = slice_rule(Empirical(values), 9)
    assert nodes.shape == (9, 1)
    for power in range(18):
        np.testing.assert_allclose(
            weights @ nodes[:, 0] ** power, (values**power).mean(), rtol=1e-9, atol=1e-9
        )


def test_drawn_functions_have_the_covariance_of_the_posterior():
    posterior = MODELS["scaled"]()
    X = RNG.uniform(size=(200, 3))
    functions = DrawnFunctions.of(posterior, X)
    assert isinstance(functions, KernelFunctions)
    mean, C = joint(posterior, X)
    values = functions(X)
    np.testing.assert_allclose(values[:, 0], mean, atol=1e-12)
    left = C - values[:, 1:] @ values[:, 1:].T
    assert np.trace(left) < 2e-3 * np.trace(C)
    # By solving triangular systems, as for posteriors that are not in function space.
    slow = DrawnFunctions(posterior, X[_positions(functions, posterior, X)], functions.root)
    np.testing.assert_allclose(slow(X), values, atol=1e-8)
    some = X[:40].reshape(8, 5, 3)
    expected = [left[5 * i : 5 * i + 5, 5 * i : 5 * i + 5] for i in range(8)]
    np.testing.assert_allclose(functions.left(some), expected, atol=1e-10)


def _positions(functions, posterior, X):
    inside = posterior.units.inside(X)
    return [int(np.abs(inside - row).sum(axis=1).argmin()) for row in functions.rows]


def test_pick_freeze_has_the_expectations_of_a_random_function():
    posterior = exact()
    plan = ExchangePlan.of(SUBSETS, 3)
    rows = plan.points(THREE, 512, np.random.default_rng(0))
    C = np.stack([joint(posterior, points)[1] for points in rows])
    X, weights, places = grid(THREE, 14)
    own = joint(posterior, X)[1]
    expected = [np.trace(form(THREE, weights, places, subset) @ own) for subset in SUBSETS]
    np.testing.assert_allclose(plan.traces(C), expected, rtol=0.1, atol=0.03 * expected[-1])


def test_the_plug_in_variances_of_any_posterior():
    posterior = combination()
    plug_in, error = plug_in_effects(posterior, THREE, SUBSETS, np.random.default_rng(0))
    expected, _, _ = moments_of_effects(posterior, THREE, SUBSETS, 14)
    assert (np.abs(plug_in - expected) <= error).all()


def test_intervals_of_functions_drawn_from_the_prior_hold_the_truth():
    """Functions drawn from the prior: V lies in the 90 % interval as often as promised."""
    inside, cases = 0, 40
    inputs = Inputs.single([Empirical(np.linspace(0, 1, 5))] * 2)
    subsets = ((0,), (1,), (0, 1))
    X, weights, places = grid(inputs, 5)
    Q = form(inputs, weights, places, (0,))
    kernel = kernels.Matern52([0.5, 0.8])
    for seed in range(cases):
        rng = np.random.default_rng(seed)
        Z = rng.uniform(size=(8, 2))
        points = np.concatenate([X, Z])
        K = kernel(points, points) + 1e-10 * np.eye(len(points))
        f = np.linalg.cholesky(K) @ rng.normal(size=len(points))
        y = f[len(X) :] + 0.1 * rng.normal(size=len(Z))
        posterior = ExactPosterior(kernel, Z, y, noise=0.01)
        found = quasi_random_effects(posterior, inputs, subsets, 500, rng)
        low, high = np.quantile(found.draws[:, 0], [0.05, 0.95])
        truth = f[: len(X)] @ Q @ f[: len(X)]
        inside += low <= truth <= high
    assert binomtest(inside, cases, 0.9).pvalue > 0.001
