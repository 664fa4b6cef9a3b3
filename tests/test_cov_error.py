"""Covariances are within ``cov_error`` of the truth: against dense quadrature and many digits
(tests/fuzz/dense.py).
"""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from tests.fuzz import dense, models

import gpattr
from gpattr import kernels as k
from gpattr.exceptions import ToleranceError
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(5)
X = RNG.normal(size=(12, 2))
Y = np.sin(X[:, 0]) + X[:, 1]
ROWS = np.array([[1.3, -0.4], [0.2, 0.9], X[3]])


def compare(kernel, rows=ROWS, baseline=(0.1, -0.2), noise=1e-3, inputs=X):
    posterior = ExactPosterior(kernel, inputs, Y[: len(inputs)], noise=noise)
    ex = gpattr.Explainer(posterior, np.asarray(baseline))(rows)
    mean, cov = dense.posterior(posterior, IntegratedGradients(np.asarray(baseline)), rows)
    size = float(kernel.diagonal(rows).max())
    assert (np.abs(ex.values - mean).max(axis=1) <= ex.error).all()
    assert (np.abs(ex.cov - cov).max(axis=(1, 2)) <= ex.cov_error + 1e-13 * size).all()
    return ex, size


@pytest.mark.slow
@pytest.mark.parametrize("nu", [1.05, 1.2, 1.4, 1.7, 2.2, 3.3, 6.4, 6.6])
@pytest.mark.parametrize(
    "other",
    [
        k.SquaredExponential(0.8),
        pytest.param(k.Linear(), marks=pytest.mark.slow),
        pytest.param(k.Matern32(1.5), marks=pytest.mark.slow),
    ],
)
def test_products_with_a_singular_kernel_of_one_feature(nu, other):
    ex, size = compare(k.Select(k.Matern(0.7, nu=nu), [0]) * other)
    assert ex.cov_error.max() <= 1e-9 * size


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [
        k.Matern(0.7, nu=1.2) * k.Linear(),
        k.Rescaled(k.Matern(nu=1.2), models.bump, models.bump_gradient),
    ],
)
def test_rough_kernels_that_are_not_stationary(kernel):
    ex, size = compare(kernel)
    assert ex.cov_error.max() <= 1e-9 * size


@pytest.mark.parametrize("frequency", [3.0, 12.0, 40.0])
def test_kernels_that_are_constant_along_the_path(frequency):
    """φ does not change where both columns are equal, though its partial derivatives do."""
    inputs = np.column_stack([X[:, 0], X[:, 0]])
    rows = np.array([[1.3, 1.3], [-0.7, -0.7]])
    kernel = k.Warped(k.SquaredExponential(0.8), *models.waves(frequency))
    try:
        compare(kernel, rows, (0.0, 0.0), inputs=inputs)
    except ToleranceError:
        assert frequency > 12


def test_a_huge_alpha_is_a_squared_exponential():
    posteriors = [
        ExactPosterior(kernel, X, Y, noise=1e-3)
        for kernel in (k.RationalQuadratic(alpha=1e308), k.SquaredExponential())
    ]
    one, two = (gpattr.Explainer(posterior, "zeros")(ROWS) for posterior in posteriors)
    np.testing.assert_allclose(
        one.values, two.values, rtol=0, atol=one.error.max() + two.error.max()
    )
    assert (np.abs(one.cov - two.cov).max(axis=(1, 2)) <= one.cov_error + two.cov_error).all()


@pytest.mark.parametrize(
    "kernel",
    [
        k.Matern52() * k.SquaredExponential(2.0),
        k.Matern(nu=1.3),
        k.Matern32() * k.Periodic(period=3.0),
    ],
)
@pytest.mark.parametrize("offset", [1e6, 1e14])
def test_inputs_far_from_the_origin(kernel, offset):
    """Differences are what a stationary kernel sees: multiples of 1/32 are exact at 1e14."""
    inputs, rows = np.round(X * 32) / 32, np.round(ROWS * 32) / 32
    near, far = (
        gpattr.Explainer(
            ExactPosterior(kernel, inputs + shift, Y, noise=1e-3), np.zeros(2) + shift
        )(rows + shift)
        for shift in (0.0, offset)
    )
    np.testing.assert_allclose(near.cov, far.cov, rtol=0, atol=1e-11)
    np.testing.assert_allclose(near.values, far.values, rtol=0, atol=1e-10)


def test_far_out_a_kernel_that_is_not_stationary_is_refused_or_bounded():
    posterior = ExactPosterior(
        k.Matern52() * k.SquaredExponential(2.0) + 1e-20 * k.Linear() * k.Matern52(),
        X + 1e9,
        Y,
        noise=1e-3,
    )
    try:
        ex = gpattr.Explainer(posterior, np.zeros(2) + 1e9)(ROWS + 1e9)
    except ToleranceError:
        return
    assert min(np.linalg.eigvalsh(C)[0] for C in ex.cov) >= -2 * ex.cov_error.max()


def test_paths_that_touch():
    """A joint covariance is one of a Gaussian: no eigenvalue below what cov_error allows."""
    rows = np.concatenate(
        [ROWS, [[0.6, -0.3], [0.1 + 2 * (1.3 - 0.1), -0.2 + 2 * (-0.4 + 0.2)]]]
    )  # the last on the first path
    for kernel in (
        k.Matern32(0.5),
        k.Matern52(0.5),
        k.Matern(0.5, nu=1.2),
        k.Matern32(0.5) * k.Linear(),
    ):
        posterior = ExactPosterior(kernel, X, Y, noise=1e-6)
        explainer = gpattr.Explainer(posterior, [0.1, -0.2])
        joint, ex = explainer.joint(rows).reshape(10, 10), explainer(rows)
        assert np.linalg.eigvalsh(joint)[0] >= -1e-10 * kernel.diagonal(rows).max(), kernel
        blocks = np.stack([joint[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] for i in range(5)])
        assert (
            np.abs(blocks - ex.cov).max(axis=(1, 2))
            <= 2 * ex.cov_error + 1e-12 * kernel.diagonal(rows)
        ).all(), kernel


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [k.Matern52(1.2), k.Matern32(1.2), k.Matern(1.2, nu=1.3), k.RationalQuadratic(alpha=0.4)],
)
def test_averages_over_baselines(kernel):
    """The covariance of an average is the average of covariances between attributions from each
    baseline.
    """
    points, weights = RNG.normal(size=(3, 2)), np.array([0.5, 0.3, 0.2])
    posterior = ExactPosterior(kernel, X, Y, noise=1e-3)
    ex = gpattr.Explainer(posterior, gpattr.Baselines(points, weights))(ROWS[:1])
    repeated = np.repeat(ROWS[:1], 3, axis=0)
    joint = gpattr.Explainer(posterior).joint(repeated, baselines=points)
    np.testing.assert_allclose(
        ex.cov[0], np.einsum("u,v,uivj->ij", weights, weights, joint), rtol=0, atol=1e-12
    )
    for u in range(3):
        _, cov = dense.posterior(posterior, IntegratedGradients(points[u]), ROWS[:1])
        np.testing.assert_allclose(joint[u, :, u, :], cov[0], rtol=0, atol=1e-11)


@pytest.mark.parametrize("outputs", ["separate", "shared", "coregionalised"])
def test_exactly_linear_targets(outputs):
    """Posterior variances are at most 1e-7 of the prior's; the error by rounding is reported."""
    rows = RNG.normal(size=(40, 3))
    targets = rows @ RNG.normal(size=(3, 2))
    explainer = gpattr.Explainer(
        gpattr.MultiOutputGPRegressor(outputs=outputs, hyperparameters="optimal").fit(
            rows, targets
        ),
        "zeros",
    )
    ex = explainer(rows[:4])
    assert ex.cov_error.shape == (4, 2)
    for name in explainer.posterior.outputs:
        one = ex[name]
        points = np.concatenate([rows[:4], np.zeros((1, 3))])
        _, C = explainer.posterior[name].predict(points, return_cov=True)
        expected = C.diagonal()[:4] + C[4, 4] - 2 * C[:4, 4]
        rounding = (
            64
            * np.finfo(float).eps
            * np.abs(explainer.posterior[name].predict(points, return_cov=True)[1]).max()
        )
        prior = max(
            float(np.abs(part.kernel.diagonal(points)).max())
            for part in explainer.posterior.latents
        )
        scale = float((explainer.posterior.mixing**2).sum(axis=1).max())
        assert (
            np.abs(one.cov.sum(axis=(1, 2)) - expected)
            <= 9 * one.cov_error + rounding + 1e-14 * prior * scale
        ).all()
        relative = (one.cov_error / one.var.max(axis=1)).max()
        assert ("small differences of large numbers" in str(one)) == (relative > 0.01)


def test_a_mixture_behind_a_column_that_is_used_twice():
    """Variances of the components are those of their covariances, and intervals hold as many draws
    as they say.
    """
    doubled = ColumnTransformer([("both", "passthrough", [0, 1]), ("again", "passthrough", [0])])
    rows = RNG.normal(size=(120, 2))
    inner = gpattr.RandomFeatureGPRegressor(n_frequencies=40, ensemble=3, random_state=0)
    model = make_pipeline(doubled, inner).fit(rows, np.sin(2 * rows[:, 0]) + rows[:, 1])
    for uncertainty in ("cov", "std"):
        ex = gpattr.Explainer(model, "zeros")(rows[:3], uncertainty=uncertainty)
        if uncertainty == "cov":
            diagonal = np.diagonal(ex.component_cov, axis1=2, axis2=3)
            np.testing.assert_allclose(ex.component_var, diagonal, rtol=1e-12)
            draws = ex.sample(4000, random_state=0)
            low, high = ex.interval(0.9)
            inside = ((draws >= low) & (draws <= high)).mean(axis=0)
            assert (np.abs(inside - 0.9) < 0.03).all()
        else:
            assert ex.component_cov is None
            np.testing.assert_allclose(ex.component_var, diagonal, rtol=1e-12)


def test_grouped_and_saved(tmp_path):
    posterior = ExactPosterior(k.Matern52(), X, Y, noise=1e-3)
    ex = gpattr.Explainer(posterior)(ROWS)
    np.testing.assert_array_equal(ex.group({"both": [0, 1]}).cov_error, 4 * ex.cov_error)
    np.testing.assert_array_equal(ex[1:].cov_error, ex.cov_error[1:])
    ex.save(tmp_path / "ex.json")
    np.testing.assert_array_equal(
        gpattr.Explanation.load(tmp_path / "ex.json").cov_error, ex.cov_error
    )
    assert gpattr.Explainer(posterior)(ROWS, uncertainty="none").cov_error is None


def test_rules_with_few_steps_know_how_far_off_they_are():
    posterior = ExactPosterior(k.SquaredExponential(0.5), X, Y, noise=1e-3)
    exact, coarse = (
        gpattr.Explainer(posterior, "zeros", **how)(ROWS)
        for how in ({}, {"method": "trapezoid", "n_steps": 4})
    )
    off = np.abs(exact.cov - coarse.cov).max(axis=(1, 2))
    assert (off <= coarse.cov_error + exact.cov_error).all()
    assert off.max() > 1e-6


@pytest.mark.parametrize("step", [1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize(
    "kernel",
    [
        k.SquaredExponential(),
        k.Matern52() * k.SquaredExponential(2.0),
        k.Select(k.Matern(nu=1.3), [0]) * k.Matern32(),
        k.Rescaled(k.Matern32(), models.bump, models.bump_gradient),
    ],
)
def test_bounds_shrink_with_the_path(kernel, step):
    """Beside the baseline variances are tiny, and known as well as elsewhere."""
    ex = gpattr.Explainer(ExactPosterior(kernel, X, Y, noise=1e-2), np.zeros(2))(
        np.full((1, 2), step)
    )
    assert ex.cov_error[0] <= 1e-6 * ex.var.max()
    assert "small differences" not in str(ex)
