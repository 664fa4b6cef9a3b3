"""The laws of Shapley values, as properties of random models."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpattr import Baselines, kernels
from gpattr.bases import Combined, Fourier, Monomials
from gpattr.kernels import Kernel, Select
from gpattr.operators import IntegratedGradients, Marginals, Shapley
from gpattr.posteriors import CombinationPosterior, ExactPosterior, WeightSpacePosterior

KINDS = (
    "squared exponential",
    "separable",
    "periodic",
    "Matérn",
    "rational quadratic",
    "linear",
    "polynomial",
    "full additive",
    "product with linear",
    "sum",
)


def kernel_of(kind, scale, variance):
    """A kernel of len(scale) features in which features of one length-scale are alike."""
    d = len(scale)
    smooth = kernels.SquaredExponential(scale, variance)
    return {
        "squared exponential": smooth,
        "separable": variance * kernels.separable(kernels.Matern32, scale),
        "periodic": kernels.Periodic(scale, 3.0, variance),
        "Matérn": kernels.Matern52(scale, variance),
        "rational quadratic": kernels.RationalQuadratic(scale, variance, alpha=0.8),
        "linear": kernels.Linear(1.0 / scale**2),
        "polynomial": kernels.Polynomial(1.0 / scale**2, degree=3),
        "full additive": kernels.FullAdditive(
            [kernels.SquaredExponential(s) for s in scale], np.full(min(d, 2), variance)
        ),
        "product with linear": smooth * (kernels.Linear(1.0 / scale**2) + 1.0),
        "sum": smooth + 0.3 * kernels.Linear(1.0 / scale**2) + kernels.Constant(2.0),
    }[kind]


@dataclass
class Problem:
    kernel: Kernel
    Z: np.ndarray
    y: np.ndarray
    noise: float
    X: np.ndarray
    baseline: object

    @property
    def posterior(self) -> ExactPosterior:
        return ExactPosterior(self.kernel, self.Z, self.y, noise=self.noise)

    @property
    def points(self) -> np.ndarray:
        """Baselines, (k, d)."""
        drawn = isinstance(self.baseline, Baselines)
        return self.baseline.points if drawn else np.atleast_2d(self.baseline)

    @property
    def scale(self) -> float:
        """The size of what is added up: σ² Σ|α|, at rows, baselines and what lies between them."""
        everything = np.concatenate([abs(self.X), abs(self.points), abs(self.Z)]).max(axis=0)
        variance = float(self.kernel.diagonal(everything[None])[0])
        return variance * max(1.0, float(np.abs(self.posterior.alpha).sum()))

    def values(self, **changes):
        problem = replace(self, **changes)
        return problem.posterior.apply(Shapley(problem.baseline), problem.X)


@st.composite
def problems(draw, most=5, kinds=KINDS, alike=False):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(2 if alike else 1, most))
    m, n = draw(st.integers(1, 10)), draw(st.integers(1, 3))
    scale = np.exp(rng.normal(size=d))
    if alike:
        scale[1] = scale[0]
    reach = draw(st.sampled_from([1e-6, 0.01, 1.0, 5.0]))  # length-scales from the baseline
    Z, points = (scale * rng.normal(size=(k, d)) for k in (m, 3))
    X = points[0] + reach * scale * rng.normal(size=(n, d))
    kind = draw(st.sampled_from(["point", "per row", "set", "marginals"]))
    baseline = {
        "point": points[0],
        "per row": np.resize(points, (n, d)),
        "set": Baselines(points, [0.5, 0.2, 0.3]),
        "marginals": Marginals(points[:2], [0.4, 0.6]),
    }[kind]
    kernel = kernel_of(draw(st.sampled_from(kinds)), scale, float(np.exp(rng.normal())))
    return Problem(kernel, Z, rng.normal(size=m), float(np.exp(rng.normal(-2, 1))), X, baseline)


def swapped(rows):
    """Rows with the first two columns exchanged."""
    return np.concatenate([rows[..., 1::-1], rows[..., 2:]], axis=-1)


@given(problems())
def test_efficiency(problem):
    if isinstance(problem.baseline, Marginals):
        d = problem.X.shape[1]
        grids = np.stack(np.meshgrid(*[range(2)] * d, indexing="ij"), axis=-1).reshape(-1, d)
        points = problem.points[grids, np.arange(d)]
        weights = problem.baseline.weights[grids].prod(axis=1)
    else:
        points = problem.points
        drawn = isinstance(problem.baseline, Baselines)
        weights = problem.baseline.weights if drawn else np.ones(len(points))
    posterior, result = problem.posterior, problem.values()
    for n, x in enumerate(problem.X):
        own = np.ndim(problem.baseline) == 2
        starts, shares = (points[[n]], np.ones(1)) if own else (points, weights)
        w = np.concatenate([[1.0], -shares])
        mean, cov = posterior.predict(np.concatenate([x[None], starts]), return_cov=True)
        assert abs(result.mean[n].sum() - w @ mean) <= 1e-12 * problem.scale + result.error[n]
        assert abs(result.cov[n].sum() - w @ cov @ w) <= 1e-11 * problem.scale


@given(problems(alike=True))
def test_symmetry(problem):
    """Features that a function does not tell apart get the same value; others change places."""
    d = problem.X.shape[1]
    owners, values = np.arange(d), problem.values()
    owners[:2] = 1, 0
    baseline = problem.baseline
    drawn = isinstance(baseline, Baselines)
    moved = (
        type(baseline)(swapped(baseline.points), baseline.weights) if drawn else swapped(baseline)
    )
    other = problem.values(X=swapped(problem.X), Z=swapped(problem.Z), baseline=moved)
    size = problem.scale
    np.testing.assert_allclose(other.mean, values.mean[:, owners], rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(
        other.cov, values.cov[:, owners][:, :, owners], rtol=0, atol=1e-11 * size
    )
    if not drawn:
        same = [np.array(part) for part in (problem.X, problem.Z, baseline)]
        for part in same:
            part[..., 1] = part[..., 0]
        equal = problem.values(X=same[0], Z=same[1], baseline=same[2])
        np.testing.assert_allclose(equal.mean[:, 0], equal.mean[:, 1], rtol=0, atol=1e-12 * size)


@given(problems(most=4), st.integers(0, 3))
def test_dummy(problem, place):
    """A feature that the kernel does not see gets exactly 0, and changes nothing."""
    d = problem.X.shape[1]
    place = min(place, d)
    columns = [i + (i >= place) for i in range(d)]

    def widened(rows, value):
        return np.insert(rows, place, value, axis=-1)

    baseline = problem.baseline
    drawn = isinstance(baseline, Baselines)
    wide = type(baseline)(widened(baseline.points, 3.0), baseline.weights) if drawn else None
    other = problem.values(
        kernel=Select(problem.kernel, columns),
        X=widened(problem.X, -1.0),
        Z=widened(problem.Z, 0.5),
        baseline=wide if drawn else widened(baseline, 3.0),
    )
    assert (other.mean[:, place] == 0).all()
    assert (other.cov[:, place] == 0).all()
    values, size = problem.values(), problem.scale
    np.testing.assert_allclose(other.mean[:, columns], values.mean, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(
        other.cov[:, columns][:, :, columns], values.cov, rtol=0, atol=1e-11 * size
    )


@given(problems(), problems(), st.floats(-3, 3))
def test_linearity(one, two, factor):
    """Of sums of posteriors, of targets, and of functions of two bases."""
    d = min(one.X.shape[1], two.X.shape[1])
    first, second = (
        ExactPosterior(
            Select(kernels.SquaredExponential(1.3), range(d)), p.Z[:, :d], p.y, noise=0.1
        )
        for p in (one, two)
    )
    operator, X = Shapley(one.X[0, :d]), two.X[:, :d]
    total = CombinationPosterior([first, second], [1.0, factor]).apply(operator, X)
    a, b = first.apply(operator, X), second.apply(operator, X)
    size = 1.0 + abs(first.alpha).sum() + abs(factor * second.alpha).sum()
    np.testing.assert_allclose(total.mean, a.mean + factor * b.mean, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(total.cov, a.cov + factor**2 * b.cov, rtol=0, atol=1e-11)
    targets = one.values(y=one.y + factor * one.y[::-1]).mean
    parts = one.values().mean + factor * one.values(y=one.y[::-1]).mean
    np.testing.assert_allclose(targets, parts, rtol=0, atol=4e-12 * (1 + abs(factor)) * one.scale)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_linearity_of_bases(seed, d):
    rng = np.random.default_rng(seed)
    waves, powers = Fourier(rng.normal(size=(4, d))), Monomials.up_to(2, d, constant=True)
    weights = [rng.normal(size=len(basis)) for basis in (waves, powers)]
    every = tuple(range(d))
    both = Combined((waves, powers), (every, every), d)
    operator, X = Shapley(rng.normal(size=d)), rng.normal(size=(3, d))

    def mean(basis, w):
        return WeightSpacePosterior(basis, w, np.eye(len(w))).apply(operator, X).mean

    parts = mean(waves, weights[0]) + mean(powers, weights[1])
    np.testing.assert_allclose(
        mean(both, np.concatenate(weights)), parts, rtol=0, atol=1e-12 * (1 + abs(parts).max())
    )


@given(problems(kinds=("squared exponential",)), st.sampled_from(["select", "orders", "linear"]))
def test_additive_kernels_have_integrated_gradients(problem, kind):
    """f = Σᵢ fᵢ(xᵢ): both are fᵢ(xᵢ) − fᵢ(bᵢ)."""
    scale = problem.kernel.lengthscale
    d = len(scale)
    parts = [kernels.SquaredExponential(s) for s in scale]
    kernel = {
        "select": kernels.Sum(*(Select(part, [i]) for i, part in enumerate(parts)))
        if d > 1
        else parts[0],
        "orders": kernels.FullAdditive(parts, [1.0]),
        "linear": kernels.Linear(1.0 / scale**2),
    }[kind]
    problem = replace(problem, kernel=kernel)
    baseline = problem.baseline
    if isinstance(baseline, Marginals):  # no feature sees another, so a set is the same
        baseline = Baselines(baseline.points, baseline.weights)
    gradients = problem.posterior.apply(IntegratedGradients(baseline), problem.X)
    values, size = problem.values(), problem.scale
    np.testing.assert_allclose(values.mean, gradients.mean, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(values.cov, gradients.cov, rtol=0, atol=1e-11 * size)


@given(problems())
def test_row_and_baseline_change_places(problem):
    """φ(x, b) = −φ(b, x)."""
    X = problem.X
    start = np.resize(problem.points, X.shape)
    there, back = problem.values(baseline=start), problem.values(X=start, baseline=X)
    np.testing.assert_allclose(there.mean, -back.mean, rtol=0, atol=1e-12 * problem.scale)
    np.testing.assert_allclose(there.cov, back.cov, rtol=0, atol=1e-11 * problem.scale)


@given(problems(), st.data())
def test_equal_values_have_exact_zeros(problem, data):
    """xᵢ = bᵢ gives φᵢ = 0 to the last bit, with variance 0; x = b gives it for all."""
    X = np.array(problem.X)
    start = np.resize(problem.points, X.shape)
    equal = np.array(data.draw(st.lists(st.booleans(), min_size=X.shape[1], max_size=X.shape[1])))
    X[:, equal] = start[:, equal]
    result = problem.values(X=X, baseline=start)
    assert (result.mean[:, equal] == 0).all()
    assert (result.cov[:, equal] == 0).all()
    result = problem.values(X=start, baseline=start)
    assert (result.mean == 0).all()
    assert (result.cov == 0).all()


@given(problems())
def test_one_row_of_a_background_is_a_point(problem):
    """As a set, and as marginals."""
    point = problem.points[0]
    one, size = problem.values(baseline=point), problem.scale
    for kind in (Baselines, Marginals):
        other = problem.values(baseline=kind(point[None]))
        slack = one.error.max() + other.error.max()
        np.testing.assert_allclose(other.mean, one.mean, rtol=0, atol=1e-12 * size + slack)
        np.testing.assert_allclose(
            other.cov, one.cov, rtol=0, atol=1e-11 * size + (other.cov_error + one.cov_error).max()
        )


@given(problems(), st.data())
def test_players_by_another_name(problem, data):
    """All columns as one player get f(x) − f(b); players may be counted in any order."""
    d, point = problem.X.shape[1], problem.points[0]
    posterior, size = problem.posterior, problem.scale
    whole = posterior.apply(Shapley(point, [0] * d), problem.X)
    mean = posterior.predict(np.concatenate([problem.X, point[None]]))
    gain = mean[:-1] - mean[-1]
    np.testing.assert_allclose(whole.mean[:, 0], gain, rtol=0, atol=1e-12 * size)
    order = data.draw(st.permutations(range(d)))
    one, other = (posterior.apply(Shapley(point, who), problem.X) for who in (None, order))
    np.testing.assert_allclose(other.mean[:, order], one.mean, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(other.cov[:, order][:, :, order], one.cov, rtol=0, atol=1e-11 * size)
