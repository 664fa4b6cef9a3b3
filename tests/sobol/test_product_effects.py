"""Variances of conditional expectations against the model's own joint predictions."""

from __future__ import annotations

from functools import reduce
from itertools import product

import mpmath
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import gpattr
from gpattr.kernels import (
    Constant,
    Cosine,
    Linear,
    Matern32,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Select,
    SquaredExponential,
    separable,
)
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear as LinearMean
from gpattr.means import Polynomial as PolynomialMean
from gpattr.posteriors import (
    AffinePosterior,
    ExactPosterior,
    LaplacePosterior,
    MixturePosterior,
    SparsePosterior,
)
from gpattr.sobol import quadratic_forms
from gpattr.sobol.inputs import Empirical, Inputs, Normal, Uniform
from gpattr.sobol.node_forms import mean_squares, node_forms
from gpattr.sobol.product_effects import conditioned, product_effects
from gpattr.sobol.terms import terms_of

PAIRS = ((0,), (1,), (0, 1))
MIXED = (Uniform(-1.0, 2.0), Normal(0.2, 0.7))


def rule(distribution, count):
    """A rule that the code under test does not use: Gauss rules of NumPy."""
    if isinstance(distribution, Uniform):
        t, w = np.polynomial.legendre.leggauss(count)
        return distribution.low + (distribution.high - distribution.low) * (t + 1) / 2, w / 2
    if isinstance(distribution, Normal):
        t, w = np.polynomial.hermite_e.hermegauss(count)
        return distribution.mean + distribution.std * t, w / w.sum()
    return distribution.values[:, 0], distribution.weights


def brute_force(posterior, distributions, subsets, count=40, n_draws=0, seed=0):
    """Plug-in, expected and drawn V_S on a tensor grid, from means and covariances there."""
    rules = [rule(distribution, count) for distribution in distributions]
    X = np.array(list(product(*(x for x, _ in rules))))
    mean, cov = posterior.predict(X, return_cov=True)
    whole = reduce(np.kron, (w for _, w in rules))
    draws = np.empty((n_draws, len(subsets)))
    if n_draws:
        values, vectors = np.linalg.eigh(cov)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        f = mean + np.random.default_rng(seed).normal(size=(n_draws, len(X))) @ root.T
    found = []
    for i, subset in enumerate(subsets):
        parts = [np.eye(len(w)) if j in subset else w[None] for j, (_, w) in enumerate(rules)]
        A = reduce(np.kron, parts)
        weights = reduce(np.kron, [rules[j][1] for j in subset], np.ones(1))
        plug_in = weights @ (A @ mean) ** 2 - (whole @ mean) ** 2
        unknown = weights @ (A @ cov @ A.T).diagonal() - whole @ cov @ whole
        found.append((plug_in, plug_in + unknown))
        if n_draws:
            g = f @ A.T
            draws[:, i] = g**2 @ weights - (g @ weights) ** 2
    return (*np.array(found).T, draws)


def data(m=12, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 2, size=(m, d))
    return X, np.sin(2 * X[:, 0]) + X[:, -1] ** 2 + 0.1 * rng.normal(size=m)


def effects(posterior, distributions, subsets=PAIRS, n_draws=10, seed=0):
    inputs = distributions if isinstance(distributions, Inputs) else Inputs.single(distributions)
    found = product_effects(posterior, inputs, subsets, n_draws, np.random.default_rng(seed))
    assert found is not None
    assert found.draws.shape == (n_draws, len(subsets))
    assert np.isfinite(found.draws).all()
    return found


KERNELS = {
    "squared exponential": SquaredExponential([0.8, 1.1], 2.0),
    "sum": SquaredExponential([0.8, 1.1]) + Select(Linear(1.0), [1]) + Select(Periodic(1, 2), [0]),
    "rational quadratic": Product(
        Select(RationalQuadratic(1.5, alpha=2.0), [0]), Select(SquaredExponential(0.9), [1])
    ),
    "sums of one feature": (Constant(0.5) + Select(SquaredExponential(0.8), [0]))
    * (1.3 * (Constant(1.0) + Select(Periodic(2.0, 4.0), [1])))
    * Select(SquaredExponential(1.5), [1]),
    "polynomial": Polynomial(1.0, degree=2) + Constant(0.5) + SquaredExponential(1.0),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize(
    "distributions",
    [MIXED, (Empirical(np.random.default_rng(3).normal(size=25)), Uniform(0, 1))],
    ids=["uniform and normal", "empirical and uniform"],
)
def test_closed_forms_are_those_of_the_joint_predictions(kernel, distributions):
    X, y = data()
    posterior = ExactPosterior(kernel, X, y, noise=0.05)
    found = effects(posterior, distributions)
    plug_in, expected, _ = brute_force(posterior, distributions, PAIRS)
    assert found.method == "closed form"
    np.testing.assert_allclose(found.plug_in, plug_in, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.expected, expected, rtol=0, atol=1e-10)
    assert (found.error < 1e-9).all()


def test_values_at_nodes_agree_with_closed_forms():
    X, y = data(20, 3)
    posterior = ExactPosterior(SquaredExponential([0.8, 1.1, 2.0], 2.0), X, y, noise=0.05)
    inputs = Inputs.single([*MIXED, Uniform(0, 1)])
    state = conditioned(posterior, inputs, np.random.default_rng(0))
    subsets = [(0,), (2,), (0, 1), (1, 2), (0, 1, 2)]
    closed = quadratic_forms.quadratic_forms(state, subsets)
    nodes = node_forms(state, subsets, np.random.default_rng(0))
    for one, two in zip(closed, nodes, strict=True):
        error = abs(one.matrix[0, 0] - two.matrix[0, 0])
        assert error <= one.error + two.error
        assert error < 1e-4
        np.testing.assert_allclose(one.matrix, two.matrix, rtol=0, atol=2e-4)
        assert abs(one.unknown - two.unknown) < 2e-4


@pytest.mark.parametrize("kind", ["sparse", "laplace", "trend", "scaled"])
def test_other_posteriors(kind):
    X, y = data(25)
    kernel, distributions = SquaredExponential([0.8, 1.1], 2.0), MIXED
    if kind == "sparse":
        posterior = SparsePosterior.fit(kernel, X[:9], X, y, noise=0.05)
    elif kind == "laplace":
        posterior = LaplacePosterior(kernel, X, (y > y.mean()) * 1.0, mean=ConstantMean(0.3))
    elif kind == "trend":
        mean = PolynomialMean([0.0], [[0, 0]], "flat")
        posterior = ExactPosterior(kernel, X, y, noise=0.05, mean=mean)
        assert posterior.trend is not None
    else:
        inner = ExactPosterior(kernel, (X[:, ::-1] - 1.0) / [2.0, -0.5], y, noise=0.05)
        posterior = AffinePosterior(inner, [1.0, 1.0], [2.0, -0.5], source=(1, 0))
    found = effects(posterior, distributions)
    plug_in, expected, _ = brute_force(posterior, distributions, PAIRS)
    np.testing.assert_allclose(found.plug_in, plug_in, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.expected, expected, rtol=0, atol=1e-10)


def test_a_model_of_scikit_learn_with_normalised_targets():
    X, y = data(25)
    model = GaussianProcessRegressor(
        RBF([0.8, 1.1]) + WhiteKernel(0.01), normalize_y=True, optimizer=None
    ).fit(X, 5 + 3 * y)
    posterior = gpattr.as_posterior(model)
    found = effects(posterior, MIXED)
    plug_in, expected, _ = brute_force(posterior, MIXED, PAIRS)
    np.testing.assert_allclose(found.plug_in, plug_in, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.expected, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("noise", [0.05, 1e-6])
def test_draws_have_the_spread_of_drawn_functions(noise):
    """Means and standard deviations of V_S and of indices, within their sampling errors and 4 %."""
    X, y = data(10)
    posterior = ExactPosterior(SquaredExponential([0.8, 1.1], 2.0), X, y, noise=noise)
    found = effects(posterior, MIXED, n_draws=20000)
    _, _, draws = brute_force(posterior, MIXED, PAIRS, 24, n_draws=20000)
    for one, two in ((found.draws, draws), (found.draws[:, :2] / found.draws[:, 2:], None)):
        two = draws[:, :2] / draws[:, 2:] if two is None else two
        np.testing.assert_allclose(one.mean(axis=0), two.mean(axis=0), atol=0.03 * two.std())
        np.testing.assert_allclose(one.std(axis=0), two.std(axis=0), rtol=0.04)
    error = 4 * found.draws.std(axis=0) / 20000**0.5
    assert (np.abs(found.draws.mean(axis=0) - found.expected) < error).all()


def test_sums_of_one_feature_are_not_multiplied_out():
    kernel = KERNELS["sums of one feature"]
    assert len(terms_of(kernel, Inputs.single(MIXED)).terms) == 1
    assert len(terms_of(kernel + SquaredExponential(2.0), Inputs.single(MIXED)).terms) == 2
    both = (Constant(0.5) + SquaredExponential(0.8)) * (Constant(1.0) + Select(Linear(), [1]))
    assert len(terms_of(both, Inputs.single(MIXED)).terms) == 2


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_twice_the_digits_are_the_same_where_one_is_enough(kernel):
    X, y = data(15, 3)
    kernel = Select(kernel, [0, 2]) + Select(SquaredExponential(0.7), [1])
    posterior = ExactPosterior(kernel, X, y, noise=0.05)
    features = (*MIXED, Uniform(0, 1))
    inputs = Inputs(features, ((0,), (1,), (2,)), (0, 1, 0), 2, 3)
    state = conditioned(posterior, inputs, np.random.default_rng(0))
    closed = quadratic_forms.quadratic_forms(state, PAIRS)
    found = mean_squares(state, PAIRS)
    known = np.array([form.matrix[0, 0] for form in closed])
    np.testing.assert_allclose(found.values, known, rtol=1e-11, atol=1e-13 * known.max())
    assert (np.abs(found.values - known) < found.error + [form.error for form in closed]).all()
    assert (found.error < 1e-12).all()


def test_twice_the_digits_where_rounding_leaves_nothing():
    """Squares of large coefficients are lost in float64; with 60 digits they are known."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + X[:, 0] * X[:, 1] + X[:, 2] ** 2
    posterior = ExactPosterior(SquaredExponential([8.0, 8.0, 6.0], 4e4), X, y, noise=4e-7)
    subsets = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
    inputs = Inputs.single([Normal(0, 1)] * 3)
    state = conditioned(posterior, inputs, np.random.default_rng(0))
    closed = quadratic_forms.quadratic_forms(state, subsets)
    known, unknown = in_many_digits(posterior, subsets)
    lost = np.abs([form.matrix[0, 0] for form in closed] - known)
    assert (lost > 1e-4).any()
    assert (lost <= [form.error for form in closed]).all()
    found = effects(posterior, inputs, subsets, 200)
    assert (np.abs(found.plug_in - known) <= found.error).all()
    assert (np.abs(found.plug_in - known) <= 1e-8 * known[-1]).all()
    assert (np.abs(found.expected - known - unknown) <= found.error).all()
    assert (found.error < 1e-3 * known[-1]).all()


def in_many_digits(posterior, subsets):
    """Return V_S of the mean for normal inputs, and what its expectation adds, with 60 digits."""
    with mpmath.workdps(60):
        X = [[mpmath.mpf(x) for x in row] for row in posterior.inputs.tolist()]
        lengths = [mpmath.mpf(x) for x in posterior.kernel.lengthscale.tolist()]
        variance, m, d = mpmath.mpf(posterior.kernel.variance), len(X), len(lengths)
        K = mpmath.matrix(m, m)
        for i in range(m):
            for k in range(m):
                r2 = sum(((X[i][j] - X[k][j]) / lengths[j]) ** 2 for j in range(d))
                K[i, k] = variance * mpmath.exp(-r2 / 2) + (mpmath.mpf(4e-7) if i == k else 0)
        inverse, alpha = K**-1, [mpmath.mpf(a) for a in posterior.alpha.tolist()]

        def one(j, i):
            total = lengths[j] ** 2 + 1
            return lengths[j] / mpmath.sqrt(total) * mpmath.exp(-(X[i][j] ** 2) / 2 / total)

        def two(j, i, k):
            total = lengths[j] ** 2 + 2
            middle = (X[i][j] + X[k][j]) / 2
            apart = (X[i][j] - X[k][j]) ** 2 / 4 / lengths[j] ** 2
            return lengths[j] / mpmath.sqrt(total) * mpmath.exp(-apart - middle**2 / total)

        M = [[[two(j, i, k) for k in range(m)] for i in range(m)] for j in range(d)]
        means = [[one(j, i) for i in range(m)] for j in range(d)]
        double = [lengths[j] / mpmath.sqrt(lengths[j] ** 2 + 2) for j in range(d)]

        def sums(subset):
            square = trace = mpmath.mpf(0)
            for i in range(m):
                for k in range(m):
                    q = variance**2
                    for j in range(d):
                        q *= M[j][i][k] if j in subset else means[j][i] * means[j][k]
                    square += alpha[i] * q * alpha[k]
                    trace += inverse[i, k] * q
            prior = variance * mpmath.fprod(double[j] for j in range(d) if j not in subset)
            return square, prior - trace

        none = sums(())
        found = [sums(subset) for subset in subsets]
        return tuple(np.array([float(part[i] - none[i]) for part in found]) for i in (0, 1))


def test_products_of_matern_kernels():
    X, y = data(25)
    kernel = separable(Matern32, [0.8, 1.1])
    distributions = (Uniform(-1, 2), Empirical(np.linspace(0, 1, 30)))
    posterior = ExactPosterior(kernel, X, y, noise=0.05)
    found = effects(posterior, distributions)
    plug_in, expected, _ = brute_force(posterior, distributions, PAIRS, 90)
    np.testing.assert_allclose(found.plug_in, plug_in, rtol=0, atol=3e-6)  # the grid has kinks
    np.testing.assert_allclose(found.expected, expected, rtol=0, atol=3e-6)


def test_models_of_a_mixture_share_the_points(monkeypatch):
    X, y = data(30, 6)
    part = ExactPosterior(SquaredExponential(10.0 * np.ones(6), 2.0), X, y, noise=1e-9)
    counts, count = [], node_forms.__globals__["_count"]

    def counted(*args):
        counts.append(count(*args))
        return counts[-1]

    monkeypatch.setattr("gpattr.sobol.node_forms._count", counted)
    alone = gpattr.sobol_indices(part)
    (most,) = counts
    counts.clear()
    found = gpattr.sobol_indices(MixturePosterior([part] * 3, [0.2, 0.3, 0.5]))
    assert len(counts) == 3
    assert 0 < sum(counts) <= most
    np.testing.assert_allclose(found.total, alone.total, rtol=0, atol=0.02)


def test_mixtures_of_posteriors():
    X, y = data(15)
    parts = [ExactPosterior(SquaredExponential(s), X, y, noise=0.05) for s in (0.7, 1.5)]
    mixture = MixturePosterior(parts, [0.3, 0.7])
    found = effects(mixture, MIXED, n_draws=1000)
    single = [brute_force(part, MIXED, PAIRS)[1] for part in parts]
    np.testing.assert_allclose(found.expected, 0.3 * single[0] + 0.7 * single[1], atol=1e-9)
    plug_in = brute_force(mixture, MIXED, PAIRS)[0]
    assert (np.abs(found.plug_in - plug_in) < 3 * found.error + 1e-6).all()


def test_groups_and_columns_that_are_drawn_together():
    X, y = data(20, 3)
    posterior = ExactPosterior(SquaredExponential([0.8, 1.1, 2.0], 2.0), X, y, noise=0.05)
    three = (Uniform(-1, 2), Normal(0.2, 0.7), Uniform(0, 1))
    single = effects(posterior, three, ((0, 2), (1,), (0, 1, 2)))
    inputs = Inputs(three, ((0,), (1,), (2,)), (0, 1, 0), 2, 3)
    grouped = effects(posterior, inputs, ((0,), (1,), (0, 1)))
    np.testing.assert_allclose(grouped.expected, single.expected, rtol=1e-10)
    # Codes of a category: two columns, one player.
    codes = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    found = effects(posterior, (Empirical(codes, [0.5, 0.3, 0.2]), Uniform(0, 1)))
    t, w = rule(Uniform(0, 1), 30)
    rows = np.array([[*code, x] for code in codes for x in t])
    mean = posterior.predict(rows).reshape(3, 30)
    p = np.array([0.5, 0.3, 0.2])
    middle = p @ mean @ w
    known = [p @ (mean @ w) ** 2, (p @ mean) ** 2 @ w, p @ mean**2 @ w] - middle**2
    np.testing.assert_allclose(found.plug_in, known, rtol=0, atol=1e-12)


@pytest.mark.parametrize("d", [1, 60])
def test_one_feature_and_many(d):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, d))
    y = np.sin(5 * X[:, 0])
    lengthscale = np.r_[0.4, np.full(d - 1, 30.0)]
    posterior = ExactPosterior(SquaredExponential(lengthscale), X, y, noise=1e-3)
    everything = tuple(range(d))
    subsets = ((0,), everything[1:], everything) if d > 1 else ((0,),)
    found = effects(posterior, [Uniform(0, 1)] * d, subsets, 500)
    x = (np.arange(2000) + 0.5) / 2000
    assert abs(found.expected[0] - np.sin(5 * x).var()) < 0.01
    if d > 1:
        assert found.expected[1] < 0.01
        assert found.expected[2] >= found.expected[0]


def test_inputs_without_width_have_no_variance():
    X, y = data(20)
    posterior = ExactPosterior(SquaredExponential([0.8, 1.1]), X, y, noise=0.05)
    found = effects(posterior, (Empirical([0.5]), Uniform(0, 1)), n_draws=50)
    assert abs(found.expected[0]) < 1e-12
    assert found.expected[1] == pytest.approx(found.expected[2], abs=1e-12)


def test_what_has_no_closed_form_is_left_to_others():
    X, y = data(20)
    inputs, generator = Inputs.single(MIXED), np.random.default_rng(0)
    for kernel, mean in ((Cosine(2.0), None), (SquaredExponential(1.0), LinearMean([1.0, 2.0]))):
        posterior = ExactPosterior(kernel, X, y, noise=0.05, mean=mean)
        assert product_effects(posterior, inputs, PAIRS, 10, generator) is None


def test_draws_repeat_with_their_generator():
    X, y = data(20)
    posterior = ExactPosterior(SquaredExponential([0.8, 1.1]), X, y, noise=0.05)
    one, two, other = (effects(posterior, MIXED, seed=seed).draws for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
