"""Sparse posteriors: against the exact one, against q(u) written out, and against the definition of
the bound.
"""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import multivariate_normal

from gpattr import Explainer
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError, UnsupportedModelError
from gpattr.kernels import Matern52, SquaredExponential, White
from gpattr.means import Constant, Linear
from gpattr.posteriors import ExactPosterior, SparsePosterior

RNG = np.random.default_rng(7)
N, D, M = 60, 3, 12
X, Y = RNG.normal(size=(N, D)), RNG.normal(size=N)
Z = RNG.normal(size=(M, D))
ROWS, B = RNG.normal(size=(5, D)), RNG.normal(size=D)
KERNEL = SquaredExponential(lengthscale=[1.0, 2.0, 0.7], variance=1.7)
NOISE = RNG.uniform(0.05, 0.4, N)
MEAN = Linear([0.3, -0.2, 0.1], 0.5)
ROOT = np.tril(RNG.normal(size=(M, M))) / M**0.5


def same(one, other, tolerance):
    a, b = Explainer(one, B)(ROWS), Explainer(other, B)(ROWS)
    for what in ("values", "cov", "predictions"):
        left, right = getattr(a, what), getattr(b, what)
        np.testing.assert_allclose(left, right, rtol=0, atol=tolerance * np.abs(right).max())
    np.testing.assert_allclose(
        Explainer(one, B).joint(ROWS), Explainer(other, B).joint(ROWS), rtol=0, atol=tolerance
    )


@pytest.mark.parametrize("noise", [0.1, NOISE], ids=["one noise", "noise per row"])
@pytest.mark.parametrize("kernel", [KERNEL, Matern52(1.5)], ids=["SE", "Matern"])
def test_with_all_inputs_it_is_the_exact_posterior(kernel, noise):
    exact = ExactPosterior(kernel, X, Y, noise=noise, mean=MEAN)
    sparse = SparsePosterior.fit(kernel, X, X, Y, noise=noise, mean=MEAN)
    same(sparse, exact, 1e-8)
    assert sparse.bound == pytest.approx(exact.log_marginal_likelihood, rel=1e-9)


@pytest.mark.parametrize("m", [1, 5, M, 40])
def test_the_bound_is_one(m):
    exact = ExactPosterior(KERNEL, X, Y, noise=NOISE, mean=MEAN).log_marginal_likelihood
    bounds = [
        SparsePosterior.fit(KERNEL, X[:k], X, Y, noise=NOISE, mean=MEAN).bound for k in (m, m + 10)
    ]
    assert bounds[0] < bounds[1] < exact  # more inducing inputs can only help


def test_the_best_q_by_its_definition():
    """Titsias's formulas, written out with inverses: q(u), the bound."""
    K, C = KERNEL(Z, Z), KERNEL(Z, X)
    precision = K + C @ np.diag(1 / NOISE) @ C.T
    residual = Y - MEAN(X)
    q_mean = MEAN(Z) + K @ np.linalg.solve(precision, C @ (residual / NOISE))
    q_cov = K @ np.linalg.solve(precision, K)
    sparse = SparsePosterior.fit(KERNEL, Z, X, Y, noise=NOISE, mean=MEAN)
    same(sparse, SparsePosterior(KERNEL, Z, q_mean, q_cov, mean=MEAN), 1e-8)
    Q = C.T @ np.linalg.solve(K, C)
    bound = multivariate_normal(np.zeros(N), Q + np.diag(NOISE)).logpdf(residual)
    bound -= 0.5 * ((KERNEL.diagonal(X) - np.diag(Q)) / NOISE).sum()
    assert sparse.bound == pytest.approx(bound, rel=1e-10)


def test_any_q_whitened_or_not_predicts_by_its_definition():
    L = np.linalg.cholesky(KERNEL(Z, Z))
    v, u = RNG.normal(size=M), None
    u = MEAN(Z) + L @ v
    S = L @ ROOT @ ROOT.T @ L.T
    whitened = SparsePosterior(KERNEL, Z, v, q_root=ROOT, whitened=True, mean=MEAN)
    for other in (
        SparsePosterior(KERNEL, Z, v, ROOT @ ROOT.T, whitened=True, mean=MEAN),
        SparsePosterior(KERNEL, Z, u, S, mean=MEAN),
        SparsePosterior(KERNEL, Z, u, q_root=L @ ROOT, mean=MEAN),
    ):
        same(other, whitened, 1e-9)
    P = KERNEL(ROWS, Z) @ np.linalg.inv(KERNEL(Z, Z))
    mean, cov = whitened.predict(ROWS, return_cov=True)
    np.testing.assert_allclose(mean, MEAN(ROWS) + P @ (u - MEAN(Z)), rtol=1e-9)
    np.testing.assert_allclose(
        cov, KERNEL(ROWS, ROWS) - P @ (KERNEL(Z, Z) - S) @ P.T, rtol=0, atol=1e-10
    )


def test_certain_values_and_the_prior():
    """With S = 0 it is exact regression without noise at Z; with S = K it is the prior."""
    u = RNG.normal(size=M)
    same(
        SparsePosterior(KERNEL, Z, u, np.zeros((M, M))),
        ExactPosterior(KERNEL, Z, u, noise=1e-12),
        1e-6,
    )
    prior = SparsePosterior(KERNEL, Z, np.zeros(M), KERNEL(Z, Z))
    mean, cov = prior.predict(ROWS, return_cov=True)
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(cov, KERNEL(ROWS, ROWS), rtol=0, atol=1e-10)


def test_jitter_is_part_of_the_covariance_of_the_inducing_values():
    P = KERNEL(ROWS, Z) @ np.linalg.inv(KERNEL(Z, Z) + 0.1 * np.eye(M))
    u = RNG.normal(size=M)
    sparse = SparsePosterior(KERNEL, Z, u, np.eye(M), jitter=0.1)
    np.testing.assert_allclose(sparse.predict(ROWS), P @ u, rtol=1e-10)
    repeated = np.vstack([Z, Z[:1]])
    with pytest.raises(NotPositiveDefiniteError):
        SparsePosterior.fit(KERNEL, repeated, X, Y, noise=0.1)
    SparsePosterior.fit(KERNEL, repeated, X, Y, noise=0.1, jitter=1e-8)


def test_frames_baselines_and_tensors():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    sparse = SparsePosterior.fit(KERNEL, frame[:M], frame[["c", "a", "b"]], Y, noise=0.1)
    ex = Explainer(sparse)(frame[["b", "c", "a"]][:3])
    assert ex.feature_names == ("a", "b", "c")
    np.testing.assert_allclose(ex.baselines[0], X.mean(axis=0))
    plain = SparsePosterior.fit(KERNEL, X[:M], X, Y, noise=0.1)
    np.testing.assert_allclose(ex.values, Explainer(plain)(X[:3]).values, rtol=1e-12)
    tensors = SparsePosterior.fit(KERNEL, *map(torch.tensor, (X[:M], X, Y)), noise=0.1)
    assert isinstance(tensors.alpha, torch.Tensor)
    np.testing.assert_allclose(
        Explainer(tensors)(torch.tensor(X[:3])).cov, Explainer(plain)(X[:3]).cov, rtol=0, atol=1e-12
    )
    with pytest.raises(InvalidInputError, match="baseline"):
        Explainer(SparsePosterior(KERNEL, Z, np.zeros(M), np.eye(M)))(ROWS)
    assert repr(plain).startswith("SparsePosterior(12 inducing inputs × 3 features")


def test_what_is_not_known_of_training_rows():
    with pytest.raises(UnsupportedModelError, match="this one does not"):
        Explainer(SparsePosterior.fit(KERNEL, Z, X, Y, noise=0.1)).training_contributions(X[0], 0)


def test_blocks_do_not_matter():
    from gpattr import memory_budget

    whole = SparsePosterior.fit(KERNEL, Z, X, Y, noise=NOISE)
    with memory_budget(working=8e3):
        parts = SparsePosterior.fit(KERNEL, Z, X, Y, noise=NOISE)
    np.testing.assert_allclose(parts.alpha, whole.alpha, rtol=1e-7)
    assert parts.bound == pytest.approx(whole.bound, rel=1e-12)


def fit(**changes):
    options = {"kernel": KERNEL, "inducing": Z, "X": X, "y": Y, "noise": 0.1} | changes
    return SparsePosterior.fit(**options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: SparsePosterior("SE", Z, np.zeros(M), np.eye(M)),
            "kernel: expected a gpattr kernel, got str",
        ),
        (lambda: SparsePosterior(KERNEL, Z, np.zeros(3), np.eye(M)), "q_mean: expected 12 numbers"),
        (
            lambda: SparsePosterior(KERNEL, Z, np.zeros(M)),
            "q_cov: expected exactly one of q_cov and q_root",
        ),
        (
            lambda: SparsePosterior(KERNEL, Z, np.zeros(M), np.eye(M), q_root=np.eye(M)),
            "q_cov: expected exactly one",
        ),
        (
            lambda: SparsePosterior(KERNEL, Z, np.zeros(M), -np.eye(M)),
            "q_cov: expected a symmetric positive",
        ),
        (
            lambda: SparsePosterior(KERNEL, Z, np.zeros(M), np.eye(3)),
            r"q_cov: expected an array of shape \(12, 12\)",
        ),
        (
            lambda: SparsePosterior(KERNEL, Z, np.zeros(M), q_root=np.eye(3)),
            r"q_root: expected an array of shape \(12, r\)",
        ),
        (
            lambda: SparsePosterior(KERNEL, Z, np.zeros(M), np.eye(M), mean=0.0),
            "mean: expected a gpattr mean or None",
        ),
        (
            lambda: SparsePosterior(KERNEL, Z, np.zeros(M), np.eye(M), jitter=-1.0),
            "jitter: expected a variance, 0 or larger",
        ),
        (
            lambda: SparsePosterior(KERNEL, Z, np.zeros(M), np.eye(M), reference_points=3),
            "reference_points: expected a dictionary",
        ),
        (
            lambda: SparsePosterior(KERNEL + White(0.1), Z, np.zeros(M), np.eye(M)),
            "kernel: White is noise",
        ),
        (lambda: fit(noise=0.0), "noise: expected variances larger than 0"),
        (
            lambda: fit(noise=NOISE[:5]),
            r"noise: expected one variance or one per row \(60\), got 5",
        ),
        (lambda: fit(noise=-0.1), "noise: expected variances"),
        (lambda: fit(y=Y[:5]), "y: expected 60 targets"),
        (lambda: fit(X=X[:, :2]), "X: expected 3 columns, got 2"),
        (lambda: fit(inducing=Z[:, :2]), "lengthscale"),
        (lambda: fit(mean=Constant), "mean: expected a gpattr mean"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
