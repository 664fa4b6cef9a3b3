"""Deep posteriors: means against quadrature, covariances against plain draws of all layers."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.integrate import quad
from scipy.stats import norm

import gpattr
from gpattr import Explainer, kernels
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.means import Constant, Linear
from gpattr.operators import Baselines, Gradient, IntegratedGradients, Shapley
from gpattr.posteriors import DeepPosterior, ExactPosterior, SparsePosterior
from gpattr.posteriors.deep_bound import clenshaw_curtis
from gpattr.posteriors.expected_layers import averages, expected, has_closed_form


def unit(kernel, d, seed, *, mean=None, m=7, spread=0.1):
    generator = np.random.default_rng(seed)
    Z, centre = generator.normal(size=(m, d)), generator.normal(size=m)
    root = spread * np.tril(generator.normal(size=(m, m)))
    return SparsePosterior(kernel, Z, centre, root @ root.T, whitened=True, mean=mean, jitter=1e-6)


def deep(last=None, *, d=3, below=None, **options):
    last = last or kernels.SquaredExponential([0.9, 1.4], 0.8)
    hidden = below or [
        unit(
            kernels.SquaredExponential(np.linspace(1.0, 2.0, d)), d, 1, mean=Linear(np.ones(d) / d)
        ),
        unit(kernels.Matern52(1.5, 0.5), d, 2, mean=Constant(0.2)),
    ]
    return DeepPosterior([hidden, unit(last, 2, 3, mean=Linear([0.3, -0.2]))], **options)


KERNELS = {
    "squared exponential": kernels.SquaredExponential([0.9, 1.4], 0.8),
    "Matérn 5/2": kernels.Matern52([0.9, 1.4], 0.8),
    "Matérn 3/2": kernels.Matern32(1.2),
    "rational quadratic": kernels.RationalQuadratic(1.1, 0.7, alpha=1.5),
    "sum": 0.5 * kernels.Select(kernels.SquaredExponential(0.8), [1]) + kernels.Linear(0.3) + 0.2,
}


@pytest.mark.parametrize("name", KERNELS)
def test_expectations_in_closed_form(name):
    """Against products of Gauss–Hermite rules, which Matérn kernels with their kinks strain."""
    last = unit(KERNELS[name], 2, 3, mean=Linear([0.3, -0.2]))
    assert has_closed_form(last.kernel)
    m, v = np.array([[0.3, -0.6], [1.0, 0.2]]), np.array([[0.2, 0.4], [0.6, 0.1]])
    found = expected(last, m, v)
    z, w = hermegauss(120)
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1).reshape(-1, 2)
    weights = np.outer(w, w).ravel() / w.sum() ** 2
    accuracy = {"rtol": 0.0, "atol": 1e-4 if "Matérn" in name else 1e-11}
    for i in range(2):
        h = m[i] + np.sqrt(v[i]) * grid
        gradient = last.apply(Gradient(), h, uncertainty="none").mean
        np.testing.assert_allclose(found.value[i], weights @ last.predict(h), **accuracy)
        np.testing.assert_allclose(found.slope[i], weights @ gradient, **accuracy)
        curvature = (weights[:, None] * grid / np.sqrt(v[i]) * gradient).sum(axis=0)
        np.testing.assert_allclose(found.curvature[i], curvature, **accuracy)


@pytest.mark.parametrize("kernel", [kernels.Matern32(1.2), kernels.Matern52(0.9, 0.8)])
def test_expectations_of_kernels_with_kinks(kernel):
    """Of one unit, against adaptive integrals between the kinks."""
    last, m, v = unit(kernel, 1, 3), 0.3, 0.4

    def integral(function):
        ends = [m - 9.0, *np.sort(last.inputs[:, 0]), m + 9.0]
        parts = zip(ends[:-1], ends[1:], strict=True)
        return sum(quad(function, low, high, epsabs=1e-13)[0] for low, high in parts)

    def slope(h):
        return last.apply(Gradient(), np.array([[h]]), uncertainty="none").mean[0, 0]

    density = norm(m, v**0.5).pdf
    truth = (
        integral(lambda h: last.predict(np.array([[h]]))[0] * density(h)),
        integral(lambda h: slope(h) * density(h)),
        integral(lambda h: slope(h) * (h - m) / v * density(h)),
    )
    found = expected(last, np.array([[m]]), np.array([[v]]))
    np.testing.assert_allclose([each.item() for each in found], truth, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("layers", [2, 3])
def test_gradient_of_the_mean(layers):
    below = [unit(kernels.SquaredExponential(1.5), 3, seed) for seed in (5, 6)]
    posterior = deep()
    if layers == 3:
        middle = [unit(kernels.SquaredExponential(1.5), 2, seed) for seed in (1, 2)]
        posterior = DeepPosterior([below, middle, posterior.layers[-1]])
    x, step = np.array([[0.3, -0.2, 0.9]]), 1e-5
    gradient = averages(posterior.layers, x).gradient[0]
    moved = x + step * np.concatenate([np.eye(3), -np.eye(3)])
    values = posterior.predict(moved)
    np.testing.assert_allclose(
        gradient, (values[:3] - values[3:]) / (2 * step), rtol=1e-7, atol=1e-9
    )


def test_kernels_without_a_closed_form_are_averaged():
    """A product has none: normals of a Sobol sequence, whose spread is the error."""
    factors = [
        kernels.Select(kernels.SquaredExponential(length), [i])
        for i, length in enumerate((0.9, 1.4))
    ]
    averaged, exact = deep(0.8 * factors[0] * factors[1]), deep()
    assert not has_closed_form(averaged.layers[-1][0].kernel)
    x = np.array([[0.8, -0.5, 0.4], [0.1, 1.0, -0.7]])
    found, known = (each.apply(IntegratedGradients(np.zeros(3)), x) for each in (averaged, exact))
    assert (found.error > known.error).all()
    assert (np.abs(found.mean - known.mean).max(axis=1) < found.error).all()
    ex = Explainer(averaged, np.zeros(3))(x)
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-9)


@pytest.fixture(scope="module")
def drawn():
    """Plain draws of values and gradients of both layers along a path."""
    posterior = deep(draws=600)
    b, x = np.array([-0.4, 0.2, 0.1]), np.array([0.9, -0.6, 0.1])
    generator, S = np.random.default_rng(11), 6000
    t, w = clenshaw_curtis(16)
    points = b + t[:, None] * (x - b)
    jets = []
    for hidden in posterior.layers[0]:
        mean, cov = hidden.jets(points[None])
        values, vectors = np.linalg.eigh(cov[0])
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        normals = generator.standard_normal((S, len(values)))
        jets.append((mean.ravel() + normals @ root.T).reshape(S, len(t), 4))
    h, J = (
        np.stack(parts, axis=2) for parts in ([j[..., 0] for j in jets], [j[..., 1:] for j in jets])
    )
    A, last = np.empty((S, 3)), posterior.layers[-1][0]
    for some in np.split(np.arange(S), 20):
        mean, cov = last.jets(h[some])
        size = cov.shape[1]
        root = np.linalg.cholesky(cov + 1e-9 * np.eye(size))
        f = mean + (root @ generator.standard_normal((len(some), size, 1))).reshape(mean.shape)
        A[some] = (x - b) * np.einsum("t,stj,stji->si", w, f[..., 1:], J[some])
    return posterior, x, b, A


def test_against_plain_draws_of_all_layers(drawn):
    posterior, x, b, A = drawn
    found = posterior.apply(IntegratedGradients(b), x[None])
    mean, cov = found.mean[0], found.cov[0]
    error = A.std(axis=0) / len(A) ** 0.5
    assert (np.abs(mean - A.mean(axis=0)) <= 3.5 * error + 1e-12).all()
    spread = np.cov(A.T)
    allowed = found.cov_error[0] + 4.0 * np.abs(spread).max() * (2.0 / len(A)) ** 0.5
    assert (np.abs(cov - spread) <= allowed).all()
    low, high = found.distribution.interval(0.9)
    for end, q, mine in zip(
        (low, high), (0.05, 0.95), found.distribution.interval_error(0.9), strict=True
    ):
        assert (np.abs(end[0] - np.quantile(A, q, axis=0))[:2] <= 4.0 * mine[0][:2]).all()
    assert mean[2] == 0.0 == cov[2].any()  # feature 2 does not move


def test_laws(drawn):
    posterior, x, b, _ = drawn
    X = np.stack([x, b + 0.3, x - 0.5])
    ex = Explainer(posterior, b)(X)
    assert np.abs(ex.delta).max() < 1e-10
    assert (ex.error < 1e-9).all()
    again = Explainer(posterior, b)(X[[1]])
    np.testing.assert_array_equal(again.draws, ex.draws[:, [1]])  # rows do not depend on others
    np.testing.assert_allclose(again.cov, ex.cov[[1]], rtol=1e-12)
    only = Explainer(posterior, b)(X, uncertainty="std")
    np.testing.assert_allclose(only.var, ex.var, rtol=1e-12)
    assert only.cov is None
    assert Explainer(posterior, b)(X, uncertainty="none").var is None
    assert "spread from 600 draws" in str(ex)
    assert "three standard errors" in str(ex)
    total = ex.cov.sum(axis=(1, 2))
    whole = posterior.predict(np.vstack([X, b]), return_cov=True)[1]
    gain = whole.diagonal()[:3] - 2 * whole[:3, 3] + whole[3, 3]
    np.testing.assert_allclose(total, gain, rtol=0.2)
    joint = posterior.joint(IntegratedGradients(b), X)
    np.testing.assert_allclose(joint[0, :, 0], ex.cov[0], atol=2 * ex.cov_error[0])
    draws = posterior.sample(IntegratedGradients(b), X, 2000, random_state=1)
    assert draws.shape == (2000, 3, 3)
    np.testing.assert_allclose(draws.mean(axis=0), ex.values, atol=5 * ex.std.max() / 2000**0.5)


def test_shapley_gradient_and_several_baselines(drawn):
    posterior, x, b, _ = drawn
    X = np.stack([x, b + 0.3])
    shapley = Explainer(posterior, b, attribution="shapley")(X)
    np.testing.assert_allclose(shapley.delta, 0.0, atol=1e-12)
    corners = np.stack([np.where([i & 1, i & 2, False], x, b) for i in range(4)])
    f = posterior.predict(corners)
    np.testing.assert_allclose(shapley.values[0, 0], 0.5 * (f[1] - f[0] + f[3] - f[2]), rtol=1e-10)
    ig = Explainer(posterior, b)(X)
    np.testing.assert_allclose(shapley.std, ig.std, rtol=0.5)
    slope = posterior.apply(Gradient(), X)
    np.testing.assert_allclose(slope.mean, averages(posterior.layers, X).gradient, rtol=1e-12)
    assert slope.var.shape == (2, 3)
    several = Explainer(posterior, Baselines([b, x], [0.5, 0.5]))(X[:1])
    np.testing.assert_allclose(several.values, 0.5 * ig.values[:1], atol=1e-9)
    with pytest.raises(UnsupportedModelError, match="Marginals"):
        posterior.bind(Shapley(gpattr.Marginals(X)), gpattr.posteriors.Evaluation())


def test_three_layers_against_plain_draws():
    below = [unit(kernels.SquaredExponential(1.5), 2, seed, spread=0.05) for seed in (5, 6)]
    middle = [unit(kernels.SquaredExponential(1.5), 2, seed, spread=0.05) for seed in (1, 2)]
    last = unit(kernels.SquaredExponential(1.2), 2, 3)
    posterior = DeepPosterior([below, middle, last], draws=400)
    x, b = np.array([[0.8, -0.5]]), np.array([-0.2, 0.3])
    found = posterior.apply(IntegratedGradients(b), x)
    draws = found.distribution.draws[:, 0]
    error = draws.std(axis=0) / len(draws) ** 0.5
    assert (np.abs(found.mean[0] - draws.mean(axis=0)) <= 3.0 * error).all()
    mean, std = posterior.predict(x, return_std=True)
    generator, h = np.random.default_rng(0), np.broadcast_to(x, (40000, 2))
    for layer in posterior.layers:
        moments = [each.predict(h, return_std=True) for each in layer]
        h = np.stack([m + s * generator.standard_normal(len(m)) for m, s in moments], axis=1)
    assert abs(mean[0] - h.mean()) <= 4 * h.std() / 200
    np.testing.assert_allclose(std[0], h.std(), rtol=0.02)


def test_one_feature_and_many_features():
    for d in (1, 25):
        below = [unit(kernels.SquaredExponential(3.0), d, seed) for seed in (1, 2)]
        posterior = deep(d=d, below=below, draws=20)
        ex = Explainer(posterior, np.zeros(d))(np.linspace(-1.0, 1.0, 2 * d).reshape(2, d))
        assert np.abs(ex.delta).max() < 1e-9
        assert np.isfinite(ex.std).all()


def test_reproducible():
    b, x = np.zeros(3), np.ones((1, 3))
    one, two, other = (Explainer(deep(draws=30, random_state=seed), b)(x) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one.draws, two.draws)
    assert (one.draws != other.draws).any()
    np.testing.assert_array_equal(one.values, other.values)  # means do not depend on draws


def test_bad_input():
    hidden, last = deep().layers
    X = np.random.default_rng(0).normal(size=(5, 2))
    trend = ExactPosterior(
        kernels.SquaredExponential(),
        X,
        X[:, 0],
        noise=0.1,
        mean=Linear(np.zeros(2), covariance="flat"),
    )
    for layers, words in (
        ([last], "at least two layers"),
        ("text", "at least two layers"),
        ([hidden, []], "at least one unit"),
        ([hidden, [object()]], "function-space posteriors"),
        ([hidden, [trend]], "with a known mean"),
        ([hidden[:1], last], "units of 1 inputs in layer 1"),
        ([hidden, [last[0], last[0]]], "one output in the last layer"),
        ([hidden, *[[*last, *last]] * 4, last], "at most 5 layers"),
    ):
        with pytest.raises((InvalidInputError, UnsupportedModelError), match=words):
            DeepPosterior(layers)
    with pytest.raises(InvalidInputError, match="draws: expected at least 10"):
        DeepPosterior([hidden, last], draws=4)
    with pytest.raises(InvalidInputError, match="random_state"):
        DeepPosterior([hidden, last], random_state="text")
    with pytest.raises(UnsupportedModelError, match="deep Gaussian processes support only"):
        deep().apply(IntegratedGradients(np.zeros(3)), np.ones((1, 3)), method="quadrature")
    with pytest.raises(UnsupportedModelError, match="drawn together"):
        deep(draws=10).joint(IntegratedGradients(np.zeros(3)), np.ones((200, 3)))
