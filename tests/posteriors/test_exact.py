"""The exact posterior: predictions and attributions against 50 digits and against the model's own
joint predictions.
"""

import mpmath as mp
import numpy as np
import pandas as pd
import pytest

from gpattr import Baselines, means, memory_budget
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError, TooLargeError
from gpattr.kernels import Constant, Select, SquaredExponential
from gpattr.means import Linear
from gpattr.operators import Gradient, IntegratedGradients
from gpattr.posteriors import ExactPosterior
from gpattr.special import gauss_legendre
from reference import generate

RNG = np.random.default_rng(11)
Z, Y = RNG.normal(size=(7, 3)), RNG.normal(size=7)
KERNEL = SquaredExponential(lengthscale=[0.7, 1.5, 3.0], variance=1.8)
NOISE = np.linspace(0.01, 0.3, 7)
X, B = RNG.normal(size=(4, 3)), RNG.normal(size=3)


def fifty_digits(x, b):
    """Posterior mean (d,) and covariance (d, d) of the attributions at x, every step with 50
    digits.
    """
    scale, variance = generate.exact(KERNEL.lengthscale), mp.mpf(KERNEL.variance)
    squares = [
        [
            mp.fsum(
                ((u - v) / s) ** 2 for u, v, s in zip(generate.exact(z), generate.exact(w), scale)
            )
            for w in Z
        ]
        for z in Z
    ]
    K = mp.matrix([[variance * mp.exp(-r / 2) for r in row] for row in squares]) + mp.diag(
        generate.exact(NOISE)
    )
    p = generate.whitened(x, b, KERNEL.lengthscale)
    a = generate.dot(p, p)
    A = mp.matrix(3, 7)
    for m, z in enumerate(Z):
        e = generate.whitened(b, z, KERNEL.lengthscale)
        J0, J1 = generate.moments(a, generate.dot(p, e), generate.dot(e, e), (0, 1))
        for i in range(3):
            A[i, m] = -variance * p[i] * (p[i] * J1 + e[i] * J0)
    edges = generate.path_edges(a, mp.mpf(0))
    G0, G2 = (
        generate.integral(lambda u, j=j: 2 * (1 - u) * u**j * mp.exp(-a * u * u / 2), edges)
        for j in (0, 2)
    )
    prior = mp.matrix(3, 3)
    for i in range(3):
        for j in range(3):
            prior[i, j] = variance * p[i] * p[j] * ((G0 if i == j else 0) - p[i] * p[j] * G2)
    inverse = K**-1
    mean = A * inverse * mp.matrix(generate.exact(Y))
    cov = prior - A * inverse * A.T
    as_floats = lambda M: np.array(M.tolist(), dtype=float)  # noqa: E731
    return as_floats(mean)[:, 0], as_floats(cov), as_floats(prior)


@pytest.mark.parametrize("length", [1e-8, 1e-3, 0.5, 3.0, 30.0, 300.0])
def test_mean_and_covariance_to_the_last_digits(length):
    direction = np.array([1.0, -2.0, 0.5]) / np.linalg.norm(np.array([1.0, -2.0, 0.5]))
    x = B + length * KERNEL.lengthscale * direction
    posterior = ExactPosterior(KERNEL, Z, Y, noise=NOISE)
    got = posterior.apply(IntegratedGradients(B), x[None])
    mean, cov, prior = fifty_digits(x, B)
    growth = max(1.0, length / 30) ** 2
    scale = (
        KERNEL.variance * np.abs(posterior.alpha).sum() * min(1.0, length * np.abs(direction).max())
    )
    assert np.abs(got.mean[0] - mean).max() <= 2e-12 * growth * scale
    assert np.abs(got.mean[0] - mean).max() <= got.error[0]
    assert np.abs(got.cov[0] - cov).max() <= 2e-12 * growth * np.abs(prior).max()


def brute_force(posterior, x, b, h=1e-4, order=10):
    """Attributions from central differences of the model's own joint predictive distribution along
    the path.
    """
    t, w = gauss_legendre(order, 2)
    d = len(x)
    points = b + t[:, None] * (x - b)
    shifted = np.concatenate(
        [points + sign * h * np.eye(d)[i] for i in range(d) for sign in (1, -1)]
    )  # (d · 2 · T, d)
    mean, cov = posterior.predict(shifted, return_cov=True)
    D = np.zeros((d, d, 2, len(t)))
    for i in range(d):
        D[i, i] = np.stack([w, -w]) * (x[i] - b[i]) / (2 * h)
    D = D.reshape(d, -1)
    return D @ mean, D @ cov @ D.T


MODELS = {
    "se": ExactPosterior(KERNEL, Z, Y, noise=0.05),
    "nested": ExactPosterior(
        0.5 * KERNEL + Select(SquaredExponential(lengthscale=2.0), [0, 2]) + 1.5, Z, Y, noise=NOISE
    ),
    "linear mean": ExactPosterior(KERNEL, Z, Y, noise=0.05, mean=Linear([1.0, -1.0, 2.0], 0.5)),
}


@pytest.mark.parametrize("name", MODELS)
def test_attributions_are_those_of_the_models_own_predictions(name):
    posterior = MODELS[name]
    got = posterior.apply(IntegratedGradients(B), X)
    for n, x in enumerate(X):
        mean, cov = brute_force(posterior, x, B)
        np.testing.assert_allclose(got.mean[n], mean, atol=1e-7)
        np.testing.assert_allclose(got.cov[n], cov, atol=2e-7)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_the_models_own_predictions(name):
    posterior = MODELS[name]
    got = posterior.apply(Gradient(), X)
    h, d = 1e-4, 3
    for n, x in enumerate(X):
        mean, cov = posterior.predict(
            np.concatenate([x + h * np.eye(d), x - h * np.eye(d)]), return_cov=True
        )
        D = np.hstack([np.eye(d), -np.eye(d)]) / (2 * h)
        np.testing.assert_allclose(got.mean[n], D @ mean, atol=1e-6)
        np.testing.assert_allclose(got.cov[n], D @ cov @ D.T, atol=1e-6)


def test_predictions_are_the_textbook_ones():
    posterior = ExactPosterior(KERNEL, Z, Y, noise=NOISE)
    K = KERNEL(Z, Z) + np.diag(NOISE)
    k = KERNEL(X, Z)
    mean, cov = posterior.predict(X, return_cov=True)
    np.testing.assert_allclose(mean, k @ np.linalg.solve(K, Y), rtol=1e-12)
    np.testing.assert_allclose(cov, KERNEL(X, X) - k @ np.linalg.solve(K, k.T), atol=1e-14)
    np.testing.assert_allclose(
        posterior.predict(X, return_std=True)[1], np.sqrt(np.diagonal(cov)), rtol=1e-13
    )
    np.testing.assert_array_equal(posterior.predict(X), mean)
    _, logdet = np.linalg.slogdet(K)
    expected = -0.5 * Y @ np.linalg.solve(K, Y) - 0.5 * logdet - 3.5 * np.log(2 * np.pi)
    assert posterior.log_marginal_likelihood == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("uncertainty", ["cov", "std", "none"])
@pytest.mark.parametrize(
    "baseline", [B, np.tile(B, (4, 1)) + X / 3, Baselines(Z[:3], [0.5, 0.25, 0.25])]
)
def test_blocks_do_not_change_the_numbers(baseline, uncertainty):
    posterior = MODELS["nested"]
    op = IntegratedGradients(baseline)
    plenty = posterior.apply(op, X, uncertainty=uncertainty)
    with memory_budget(working=1):
        scarce = posterior.apply(op, X, uncertainty=uncertainty)
        joint = posterior.joint(op, X)
        predicted = posterior.predict(X, return_cov=True)[1]
    for name in ("mean", "var", "cov"):
        one, two = getattr(plenty, name), getattr(scarce, name)
        assert (one is None) == (two is None)
        if one is not None:
            np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(joint, posterior.joint(op, X), atol=1e-13)
    np.testing.assert_allclose(predicted, posterior.predict(X, return_cov=True)[1], atol=1e-14)
    assert (plenty.cov is None) == (uncertainty != "cov")
    assert (plenty.var is None) == (uncertainty == "none")


def test_joint_contains_the_rows_and_is_a_covariance():
    posterior = MODELS["nested"]
    for baseline in (B, X / 3, Baselines(Z[:3])):
        op = IntegratedGradients(baseline)
        joint = posterior.joint(op, X)
        np.testing.assert_allclose(
            np.einsum("ninj->nij", joint), posterior.apply(op, X).cov, atol=1e-13
        )
        flat = joint.reshape(12, 12)
        np.testing.assert_array_equal(flat, flat.T)
        assert np.linalg.eigvalsh(flat).min() > -1e-13


def test_frames_are_aligned_by_name():
    frame = pd.DataFrame(Z, columns=["a", "b", "c"])
    posterior = ExactPosterior(KERNEL, frame, pd.Series(Y, index=range(100, 107)), noise=0.05)
    assert posterior.feature_names == ("a", "b", "c")
    shuffled = pd.DataFrame(X, columns=["a", "b", "c"])[["c", "a", "b"]]
    np.testing.assert_array_equal(posterior.predict(shuffled), MODELS["se"].predict(X))


def test_posteriors_are_frozen():
    posterior = MODELS["se"]
    with pytest.raises(AttributeError):
        posterior.alpha = 1.0
    for array in (
        posterior.inputs,
        posterior.alpha,
        posterior.factor,
        posterior.y,
        posterior.noise,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    assert repr(posterior).startswith(
        "ExactPosterior(7 rows × 3 features, kernel=SquaredExponential("
    )


def test_a_users_mean_keeps_its_own_array():
    """A mean that hands out one array twice must not be written into."""
    from gpattr.means import Function

    kept = np.ones(4)
    posterior = ExactPosterior(
        KERNEL, Z[:4], Y[:4], noise=0.1, mean=Function(lambda X: kept[: len(X)], np.zeros_like)
    )
    posterior.predict(X)
    np.testing.assert_array_equal(kept, np.ones(4))


def test_tiny_noise_and_near_duplicates_stay_finite():
    doubled = np.vstack([Z, Z + 1e-7, Z])
    posterior = ExactPosterior(KERNEL, doubled, np.tile(Y, 3), noise=1e-9)
    got = posterior.apply(IntegratedGradients(B), X)
    assert np.isfinite(got.mean).all()
    assert (got.var >= 0).all()
    reference = ExactPosterior(KERNEL, Z, Y, noise=1e-9 / 3).apply(IntegratedGradients(B), X)
    np.testing.assert_allclose(got.mean, reference.mean, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "rbf"}, "kernel: expected a gpattr kernel, got str"),
        (
            {"kernel": SquaredExponential(lengthscale=[1.0, 2.0])},
            "lengthscale: expected one number or 3",
        ),
        ({"mean": 3.0}, "mean: expected a gpattr mean or None, got float"),
        ({"mean": Linear([1.0])}, "coefficients: expected 3"),
        ({"X": Z[0]}, r"X: expected rows \(n, d\), got one dimension of length 3; .*reshape"),
        (
            {"X": np.where(Z[2, 1] == Z, np.nan, Z)},
            "X: expected finite numbers, got nan in row 2, column 1",
        ),
        ({"y": Y[:5]}, "y: expected 7 targets .* got 5"),
        (
            {"y": np.where(Y[3] == Y, np.inf, Y)},
            "y: expected finite numbers, got inf at position 3",
        ),
        ({"y": Y[:, None]}, r"y: expected one dimension, got an array of shape \(7, 1\)"),
        ({"noise": -0.1}, "noise: expected variances, 0 or larger, got -0.1"),
        ({"noise": [0.1, 0.2]}, r"noise: expected one variance or one per row \(7\), got 2"),
        ({"noise": np.nan}, "noise: expected finite"),
        ({"noise": None}, "noise: expected numbers"),
    ],
)
def test_bad_input(changes, message):
    arguments = {"kernel": KERNEL, "X": Z, "y": Y, "noise": 0.1, "mean": None} | changes
    with pytest.raises(InvalidInputError, match=message):
        ExactPosterior(arguments.pop("kernel"), arguments.pop("X"), arguments.pop("y"), **arguments)


def test_duplicates_without_noise():
    with pytest.raises(
        NotPositiveDefiniteError,
        match=r"rows 0 and 7 of X are equal.*give a larger noise variance \(say noise=2e-06\)",
    ):
        ExactPosterior(KERNEL, np.vstack([Z, Z[:2]]), np.zeros(9), noise=0.0)
    with pytest.raises(np.linalg.LinAlgError, match="singular to rounding; give a larger noise"):
        ExactPosterior(SquaredExponential(lengthscale=1e6), Z, Y, noise=0.0)
    with pytest.raises(NotPositiveDefiniteError):
        ExactPosterior(Constant(), Z, Y, noise=0.0)
    # LAPACK factors this one (its last pivot is rounding, and positive); we do not take it.
    assert np.isfinite(np.linalg.cholesky(np.full((2, 2), 1.05))).all()
    with pytest.raises(NotPositiveDefiniteError, match="rows 0 and 1 of X are equal"):
        ExactPosterior(SquaredExponential(variance=1.05), np.zeros((2, 3)), np.zeros(2), noise=0.0)


def test_what_does_not_fit_is_refused_before_the_work():
    with memory_budget(result=1000):
        with pytest.raises(
            TooLargeError,
            match=(
                r"The covariance of the training targets \(12 × 12\) would take 1.12 KiB, more than"
            ),
        ):
            ExactPosterior(KERNEL, RNG.normal(size=(12, 3)), np.zeros(12), noise=1.0)
        with pytest.raises(
            MemoryError,
            match=(
                r"The covariance of the attributions \(20 × 3 × 3\).*uncertainty=\"std\".*batches"
            ),
        ):
            MODELS["se"].apply(IntegratedGradients(B), np.zeros((20, 3)))
        with pytest.raises(
            TooLargeError, match=r"The joint covariance of the attributions \(4 × 3 × 4 × 3\)"
        ):
            MODELS["se"].joint(IntegratedGradients(B), X)
        with pytest.raises(TooLargeError, match="covariance of the predictions"):
            MODELS["se"].predict(np.zeros((20, 3)), return_cov=True)
        with pytest.raises(TooLargeError, match="The contributions"):
            MODELS["se"].contributions(IntegratedGradients(B), np.zeros((20, 3)))
        MODELS["se"].apply(IntegratedGradients(B), np.zeros((20, 3)), uncertainty="std")
    with (
        pytest.raises(InvalidInputError, match="working: expected finite numbers larger than 0"),
        memory_budget(working=0),
    ):
        pass


def test_other_targets_of_the_same_rows():
    """One factorisation serves several outputs: each is what its own posterior would be, names
    included.
    """
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(12, 2)), columns=["a", "b"])
    first, second = rng.normal(size=(2, 12))
    one = ExactPosterior(SquaredExponential(0.8), X, first, noise=0.1, mean=means.Constant(2.0))
    other = one.given(second, mean=means.Constant(-1.0))
    alone = ExactPosterior(SquaredExponential(0.8), X, second, noise=0.1, mean=means.Constant(-1.0))
    assert other.factor is one.factor
    assert other.feature_names == ("a", "b")
    for ours, theirs in zip(
        other.predict(X[:3], return_cov=True), alone.predict(X[:3], return_cov=True)
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)
    assert other.log_marginal_likelihood == pytest.approx(alone.log_marginal_likelihood, rel=1e-12)
    with pytest.raises(InvalidInputError, match="y: expected 12 targets"):
        one.given(second[1:])
    with pytest.raises(InvalidInputError, match="mean: expected a gpattr mean or None"):
        one.given(second, mean=3.0)


def test_a_factor_found_elsewhere():
    kernel, rows, y = SquaredExponential([0.7, 1.3]), RNG.normal(size=(9, 2)), RNG.normal(size=9)
    mean = means.Polynomial([0.0], [[0, 0]], covariance="flat")
    own = ExactPosterior(kernel, rows, y, noise=0.2, mean=mean)
    state = {"noise": 0.2, "mean": mean, "factor": own.factor}
    other = ExactPosterior.from_state(kernel, rows, y, **state)
    for one, two in zip(
        own.predict(rows + 0.1, return_cov=True), other.predict(rows + 0.1, return_cov=True)
    ):
        np.testing.assert_array_equal(one, two)
    for factor in (own.factor.T, -own.factor):
        with pytest.raises(InvalidInputError, match="factor: expected a lower triangular matrix"):
            ExactPosterior.from_state(kernel, rows, y, noise=0.2, factor=factor)
