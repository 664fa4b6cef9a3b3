"""The laws of integrated gradients, as properties of random models."""

from dataclasses import dataclass

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from gpattr import Baselines, Explainer, closed_forms
from gpattr.kernels import Constant, Kernel, Select, SquaredExponential
from gpattr.means import Linear
from gpattr.operators import Gradient, IntegratedGradients
from gpattr.posteriors import ExactPosterior


@dataclass
class Problem:
    rng: np.random.Generator
    kernel: Kernel
    Z: np.ndarray
    y: np.ndarray
    noise: np.ndarray
    mean: Linear
    X: np.ndarray
    b: np.ndarray

    @property
    def posterior(self) -> ExactPosterior:
        return ExactPosterior(self.kernel, self.Z, self.y, noise=self.noise, mean=self.mean)

    @property
    def scale(self) -> float:
        """The size of what is added up: σ² Σ|α|."""
        return float(
            self.kernel.diagonal(self.Z).max() * max(1.0, np.abs(self.posterior.alpha).sum())
        )

    def explain(self, **changes):
        baseline = changes.pop("b", self.b)
        X = changes.pop("X", self.X)
        model = Problem(**{**self.__dict__, **changes}).posterior
        return Explainer(model, baseline)(X)


@st.composite
def problems(draw, max_features=6):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, m, n = draw(st.integers(1, max_features)), draw(st.integers(1, 12)), draw(st.integers(1, 4))
    reach = 10.0 ** draw(st.integers(-6, 2))  # rows from 1e-6 to 100 length-scales away
    scales = np.exp(rng.normal(size=d))
    kernel: Kernel = SquaredExponential(lengthscale=scales, variance=float(np.exp(rng.normal())))
    if draw(st.booleans()):
        kernel = (
            0.5 * kernel
            + Select(SquaredExponential(lengthscale=2.0), [d - 1])
            + Constant(variance=2.0)
        )
    b = scales * rng.normal(size=d)
    X = b + reach * scales * rng.normal(size=(n, d))
    Z = scales * rng.normal(size=(m, d))
    Z[0] = draw(st.sampled_from([Z[0], b, X[0], (b + X[0]) / 2]))
    y, noise = rng.normal(size=m), np.exp(rng.normal(-3, 1, size=m))
    return Problem(rng, kernel, Z, y, noise, Linear(rng.normal(size=d)), X, b)


@given(problems())
def test_completeness_in_mean_and_variance(problem):
    ex = problem.explain()
    posterior = problem.posterior
    assert np.abs(ex.delta).max() <= 1e-11 * (
        problem.scale + np.abs(ex.predictions).max() + np.abs(ex.base_values).max()
    )
    for n, x in enumerate(problem.X):
        _, cov = posterior.predict(np.array([x, problem.b]), return_cov=True)
        variance = cov[0, 0] - 2 * cov[0, 1] + cov[1, 1]
        prior = closed_forms.prior_cov(IntegratedGradients(problem.b), problem.kernel, x[None])[0]
        # 1e-10 of the prior, and the rounding of the three variances on the other side, which
        # cancel near the baseline.
        tolerance = 1e-10 * np.diagonal(prior).sum() + 1e-14 * problem.kernel.diagonal(problem.Z)[0]
        assert abs(ex.cov[n].sum() - variance) <= tolerance


@given(problems(), st.data())
def test_dummy(problem, data):
    """A feature that does not move gets nothing, exactly."""
    i = data.draw(st.integers(0, len(problem.b) - 1))
    X = problem.X.copy()
    X[:, i] = problem.b[i]
    ex = problem.explain(X=X)
    assert not ex.values[:, i].any()
    assert not ex.cov[:, i].any()
    assert not ex.cov[:, :, i].any()


@given(problems())
def test_nothing_happens_at_the_baseline(problem):
    ex = problem.explain(X=problem.b[None])
    assert not ex.values.any()
    assert not ex.cov.any()


@given(problems(), st.floats(0.01, 100))
def test_linearity_over_sums_and_scales(problem, factor):
    """Independent priors add, and so do what operators make of them."""
    other = SquaredExponential(lengthscale=1.7, variance=0.3)
    op = IntegratedGradients(problem.b)
    w = problem.rng.normal(size=len(problem.Z))
    for verb, args in (
        ("cross_dot", (problem.X, problem.Z, w)),
        ("prior_cov", (problem.X,)),
        ("between", (problem.X, problem.X[::-1])),
    ):
        function = getattr(closed_forms, verb)
        expected = factor * function(op, problem.kernel, *args) + function(op, other, *args)
        np.testing.assert_allclose(
            function(op, factor * problem.kernel + other, *args),
            expected,
            rtol=1e-12,
            atol=1e-13 * np.abs(expected).max(),
        )


@given(problems())
def test_symmetry_under_permutation_of_features(problem):
    order = problem.rng.permutation(len(problem.b))
    kernel = SquaredExponential(lengthscale=np.exp(problem.rng.normal(size=len(order))))
    ex = problem.explain(kernel=kernel)
    permuted = problem.explain(
        kernel=SquaredExponential(lengthscale=kernel.lengthscale[order]),
        Z=problem.Z[:, order],
        X=problem.X[:, order],
        b=problem.b[order],
        mean=Linear(problem.mean.coefficients[order]),
    )
    size = np.abs(ex.values).max()
    np.testing.assert_allclose(
        permuted.values, ex.values[:, order], atol=1e-11 * size + 1e-12 * np.abs(ex.error).max()
    )
    np.testing.assert_allclose(
        permuted.cov, ex.cov[:, order][:, :, order], atol=1e-10 * np.abs(ex.cov).max()
    )


@given(problems())
def test_path_reversal(problem):
    """From x to b the mean changes sign and the covariance stays."""
    explainer = Explainer(problem.posterior, problem.b)
    there = explainer(problem.X)
    back = explainer(np.tile(problem.b, (len(problem.X), 1)), baselines=problem.X)
    tolerance = there.error.max() + back.error.max()
    np.testing.assert_allclose(back.values, -there.values, atol=tolerance)
    np.testing.assert_allclose(back.cov, there.cov, atol=1e-10 * np.abs(there.cov).max())


@given(problems())
def test_affine_scale_invariance(problem):
    """Other units and another origin, the same attributions."""
    d = len(problem.b)
    factor, shift = (
        np.exp2(problem.rng.integers(-8, 9, size=d)),
        np.round(problem.rng.normal(size=d)),
    )
    kernel = SquaredExponential(lengthscale=np.exp(problem.rng.normal(size=d)))
    move = lambda X: factor * (X + shift)  # noqa: E731
    ex = problem.explain(kernel=kernel)
    moved = problem.explain(
        kernel=SquaredExponential(lengthscale=factor * kernel.lengthscale),
        Z=move(problem.Z),
        X=move(problem.X),
        b=move(problem.b),
        mean=Linear(problem.mean.coefficients / factor, -problem.mean.coefficients @ shift),
    )
    # Shifting rounds the inputs themselves, by ε of their size: attributions may move by as much of
    # their slope.
    slope = problem.scale / kernel.lengthscale.min() + np.abs(problem.mean.coefficients).max()
    rounding = 1e-14 * slope * (1 + np.abs(problem.X).max() + np.abs(shift).max())
    np.testing.assert_allclose(moved.values, ex.values, atol=rounding)
    size = np.abs(ex.cov).max()
    relative = 1e-10 + 1e-14 * (1 + np.abs(shift).max()) / np.abs(problem.X - problem.b).max()
    np.testing.assert_allclose(moved.cov, ex.cov, atol=relative * size)


@given(problems())
def test_covariance_is_symmetric_and_positive_semidefinite(problem):
    explainer = Explainer(problem.posterior, problem.b)
    cov, joint = explainer(problem.X).cov, explainer.joint(problem.X)
    nd = joint.shape[0] * joint.shape[1]
    for C in (*cov, joint.reshape(nd, nd)):
        np.testing.assert_array_equal(C, C.T)
        assert (
            np.linalg.eigvalsh(C).min()
            >= -1e-12
            * np.abs(
                closed_forms.prior_cov(IntegratedGradients(problem.b), problem.kernel, problem.X)
            ).max()
        )


@given(problems())
def test_batch_equals_loop(problem):
    explainer = Explainer(problem.posterior, problem.b)
    together = explainer(problem.X)
    for n in range(len(problem.X)):
        alone = explainer(problem.X[n : n + 1])
        np.testing.assert_allclose(together.values[n], alone.values[0], atol=1e-2 * alone.error[0])
        np.testing.assert_allclose(
            together.cov[n], alone.cov[0], atol=1e-13 * np.abs(together.cov[n]).max()
        )


@given(problems())
def test_one_baseline_per_row_equals_one_explainer_per_row(problem):
    n = len(problem.X)
    own = problem.b + 0.3 * problem.rng.normal(size=(n, len(problem.b)))
    together = Explainer(problem.posterior, problem.b)(problem.X, baselines=own)
    for i in range(n):
        alone = Explainer(problem.posterior, own[i])(problem.X[i : i + 1])
        np.testing.assert_allclose(together.values[i], alone.values[0], atol=together.error[i])
        np.testing.assert_allclose(
            together.cov[i], alone.cov[0], atol=1e-11 * np.abs(alone.cov).max()
        )
        np.testing.assert_allclose(
            together.base_values[i], alone.base_values[0], rtol=1e-12, atol=1e-12
        )


@given(problems(), st.integers(1, 4))
def test_weighted_baselines_average_the_mean_and_keep_completeness(problem, k):
    points = problem.b + problem.rng.normal(size=(k, len(problem.b)))
    weights = problem.rng.dirichlet(np.ones(k))
    posterior = problem.posterior
    ex = Explainer(posterior, Baselines(points, weights))(problem.X)
    expected = sum(
        w * Explainer(posterior, point)(problem.X).values
        for w, point in zip(weights, points, strict=True)
    )
    np.testing.assert_allclose(ex.values, expected, atol=ex.error.max())
    # The variance of Σ 𝒜ᵢ is that of F(x) − Σ w F(b).
    for n, x in enumerate(problem.X):
        mean, cov = posterior.predict(np.vstack([x, points]), return_cov=True)
        signs = np.concatenate([[1.0], -weights])
        size = problem.kernel.diagonal(problem.X).max()
        assert abs(ex.values[n].sum() - signs @ mean) <= 1e-11 * (
            problem.scale + np.abs(mean).max()
        )
        assert abs(ex.cov[n].sum() - signs @ cov @ signs) <= 1e-10 * size


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_non_decreasing_positivity(seed, d):
    """Where the mean function rises with every feature along the path, every attribution is
    positive.
    """
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1, 1, size=(15, d))
    posterior = ExactPosterior(
        SquaredExponential(lengthscale=3.0), Z, Z @ np.arange(1.0, d + 1), noise=1e-3
    )
    b, x = -0.5 * np.ones(d), rng.uniform(-0.4, 0.8, size=d)
    along = b + np.linspace(0, 1, 200)[:, None] * (x - b)
    assume(posterior.apply(Gradient(), along, uncertainty="none").mean.min() > 0)
    assert Explainer(posterior, b)(x[None]).values.min() > 0


class Cosines(Kernel):
    """A finite basis: k(x, x') = φ(x)·φ(x'), φ = [cos Vx, sin Vx]."""

    V = np.random.default_rng(0).normal(size=(4, 2))

    def basis(self, X):
        return np.concatenate([np.cos(X @ self.V.T), np.sin(X @ self.V.T)], axis=-1)

    def slopes(self, X):
        A = X @ self.V.T
        return np.concatenate(
            [-np.sin(A)[..., None] * self.V, np.cos(A)[..., None] * self.V], axis=-2
        )  # (..., 8, d)

    def __call__(self, X, Z):
        return self.basis(X) @ self.basis(Z).T

    def diagonal(self, X):
        return np.full(len(X), float(len(self.V)))

    def n_lengthscales(self, step):
        return np.abs(step @ self.V.T).max(axis=1)

    def check_features(self, d):
        assert d == 2


def test_implementation_invariance():
    """Weight space and function space are two implementations of one model: the attributions are
    the same.

    The kernel is a user's own: its derivatives in the table, and quadrature does the rest.
    """

    def jet(k, x, y, second):
        bx, by, sx, sy = k.basis(x), k.basis(y), k.slopes(x), k.slopes(y)
        values = (
            (bx * by).sum(axis=-1),
            (sx * by[..., None]).sum(axis=-2),
            (sy * bx[..., None]).sum(axis=-2),
        )
        return closed_forms.Jet(*values, np.swapaxes(sx, -1, -2) @ sy if second else None)

    closed_forms.register_derivatives(Cosines, jet)
    try:
        rng = np.random.default_rng(3)
        Z, y, noise = rng.normal(size=(30, 2)), rng.normal(size=30), 0.2
        X, b, kernel = rng.normal(size=(5, 2)) * 3, rng.normal(size=2), Cosines()
        ex = Explainer(ExactPosterior(kernel, Z, y, noise=noise), b)(X)
        assert ex.method == "quadrature"
        Phi = kernel.basis(Z)
        S = np.linalg.inv(Phi.T @ Phi / noise + np.eye(8))
        mu = S @ Phi.T @ y / noise
        # ∫ slopes along the path, in closed form: differences of sines and cosines over the phase.
        angle, start = (X - b) @ kernel.V.T, b @ kernel.V.T
        cos_mean, sin_mean = (
            (np.sin(start + angle) - np.sin(start)) / angle,
            (np.cos(start) - np.cos(start + angle)) / angle,
        )
        A = (
            np.concatenate(
                [-sin_mean[:, :, None] * kernel.V, cos_mean[:, :, None] * kernel.V], axis=1
            )
            * (X - b)[:, None, :]
        )
        np.testing.assert_allclose(ex.values, np.einsum("nfd,f->nd", A, mu), atol=1e-11)
        np.testing.assert_allclose(ex.cov, np.einsum("nfi,fg,ngj->nij", A, S, A), atol=1e-11)
        assert np.all(np.abs(ex.values - np.einsum("nfd,f->nd", A, mu)).max(axis=1) <= ex.error)
    finally:
        closed_forms.DERIVATIVES.pop(Cosines)
