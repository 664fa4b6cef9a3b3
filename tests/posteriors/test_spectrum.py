"""Covariances through a truncated spectrum: the true error never exceeds ``cov_error``."""

import numpy as np
import pytest

import gpattr
from gpattr.datasets import load_taipei_housing
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.means import Constant, Linear
from gpattr.operators import Gradient, IntegratedGradients
from gpattr.posteriors import ExactPosterior, MultiOutputPosterior, spectrum
from gpattr.posteriors.bound import Evaluation


def explained(posterior, operator, X, tolerance):
    return posterior.bind(operator, Evaluation("cov", covariance_tolerance=tolerance)).apply(X)


def compared(posterior, operator, X, tolerance):
    """Return the explanation, after its errors were compared with their bound."""
    exact, found = posterior.apply(operator, X), explained(posterior, operator, X, tolerance)
    error = np.abs(found.cov - exact.cov).max(axis=(1, 2))
    assert (error <= found.cov_error + exact.cov_error).all()
    largest = exact.var.max(axis=1)
    assert (error <= 1.01 * tolerance * largest + exact.cov_error).all()
    np.testing.assert_array_equal(found.mean, exact.mean)
    np.testing.assert_array_equal(found.var, np.einsum("nii->ni", found.cov))
    return found


def smooth(seed, m=400, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * rng.uniform(0.5, 2.0, size=d)
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=m)
    return X, y, rng


@pytest.mark.parametrize("seed", range(10))
def test_ten_synthetic_sets(seed):
    X, y, rng = smooth(seed, d=2 + seed % 4)
    kind = (SquaredExponential, Matern52)[seed % 2]
    kernel = kind(lengthscale=rng.uniform(3, 8, size=X.shape[1]), variance=rng.uniform(0.5, 3))
    noise = 10.0 ** rng.uniform(-3, 0)
    posterior = ExactPosterior(kernel, X, y, noise=noise, mean=Constant(0.2))
    for tolerance in (1e-4, 1e-6, 1e-8):
        compared(posterior, IntegratedGradients(X.mean(axis=0)), X[:80] * 1.2, tolerance)


@pytest.mark.parametrize("data", ["wine", "Taipei"])
def test_real_data(data, wine, data_folder):
    frame = wine if data == "wine" else load_taipei_housing(data_home=data_folder).frame
    X = np.asarray(frame, dtype=float)[:800, :6]
    y = np.random.default_rng(0).normal(size=len(X))  # covariances do not depend on it
    for lengthscale in (2.0, 8.0):
        kernel = SquaredExponential(lengthscale=lengthscale * X.std(axis=0))
        posterior = ExactPosterior(kernel, X, y, noise=0.3)
        compared(posterior, IntegratedGradients(X.mean(axis=0)), X[::8], 1e-8)


@pytest.mark.parametrize("dense", [True, False])
def test_eigenvectors_are_used_and_named(monkeypatch, dense):
    if not dense:
        monkeypatch.setattr(spectrum, "DENSE", 100)
        monkeypatch.setattr(spectrum, "FIRST", 32)
    X, y, _ = smooth(1, m=600, d=3)
    posterior = ExactPosterior(SquaredExponential(lengthscale=6.0), X, y, noise=0.2)
    found = compared(posterior, IntegratedGradients(np.zeros(3)), X[:100], 1e-6)
    assert "eigenvectors" in found.method
    assert (found.cov_error > posterior.apply(Gradient(), X[:1]).cov_error.max()).any()


def test_noise_for_each_row_and_an_uncertain_trend():
    X, y, rng = smooth(2)
    noise, mean = rng.uniform(0.1, 2.0, len(X)), Linear(np.zeros(4), covariance="flat")
    kernel = SquaredExponential(lengthscale=5.0)
    posterior = ExactPosterior(kernel, X, y, noise=noise, mean=mean)
    found = compared(posterior, IntegratedGradients(np.zeros(4)), X[:50], 1e-6)
    assert "eigenvectors" in found.method


def test_rows_that_it_does_not_suffice_for_are_solved():
    """A row far from all data has an attribution that no eigenvector of the others explains."""
    X, y, _ = smooth(3, m=500, d=2)
    X[0] = [60.0, 60.0]
    posterior = ExactPosterior(SquaredExponential(lengthscale=5.0), X, y, noise=0.1)
    rows = np.concatenate([X[1:200], [[60.3, 59.7]]])
    found = compared(posterior, IntegratedGradients(np.zeros(2)), rows, 1e-7)
    assert "eigenvectors" in found.method


@pytest.mark.parametrize(
    ("lengthscale", "noise"), [(0.1, 0.1), (0.5, 1e-9), (0.5, 0.0)], ids=["rough", "tiny", "none"]
)
def test_elsewhere_it_solves_and_says_so(lengthscale, noise):
    X, y, _ = smooth(4, m=120, d=2)
    kernel = Matern52(lengthscale=lengthscale)
    posterior = ExactPosterior(kernel, X, y, noise=noise)
    op = IntegratedGradients(np.zeros(2))
    found, exact = explained(posterior, op, X[:30], 1e-8), posterior.apply(op, X[:30])
    assert found.method == exact.method + ", covariances solved for"
    np.testing.assert_array_equal(found.cov, exact.cov)


def test_explainers():
    X, y, _ = smooth(5, m=400, d=3)
    posterior = ExactPosterior(SquaredExponential(lengthscale=6.0), X, y, noise=0.3)
    models = (posterior, MultiOutputPosterior({"a": posterior, "b": posterior}))
    for attribution in ("integrated_gradients", "shapley"):
        for model in models:
            fast = gpattr.Explainer(model, attribution=attribution, covariance_tolerance=1e-6)
            found, exact = fast(X[:60]), gpattr.Explainer(model, attribution=attribution)(X[:60])
            if model is not posterior:
                found, exact = found["b"], exact["b"]
            assert "eigenvectors" in found.method
            error = np.abs(found.cov - exact.cov).max(axis=(1, 2))
            assert (error <= found.cov_error + exact.cov_error).all()


def test_tensors():
    torch = pytest.importorskip("torch")
    X, y, _ = smooth(6, m=400, d=3)
    kernel, op = SquaredExponential(lengthscale=6.0), IntegratedGradients(np.zeros(3))
    here = ExactPosterior(kernel, X, y, noise=0.3)
    there = ExactPosterior(kernel, torch.tensor(X), torch.tensor(y), noise=0.3)
    found = explained(there, op, torch.tensor(X[:50]), 1e-6)
    assert "eigenvectors" in found.method
    error = np.abs(found.cov.numpy() - here.apply(op, X[:50]).cov).max(axis=(1, 2))
    assert (error <= found.cov_error.numpy()).all()


@pytest.mark.parametrize("bad", [0.0, -1e-8, np.nan, "1e-8", [1e-8]])
def test_bad_tolerances(bad):
    X, y, _ = smooth(7, m=20, d=2)
    posterior = ExactPosterior(SquaredExponential(), X, y, noise=0.1)
    with pytest.raises(gpattr.exceptions.InvalidInputError, match="covariance_tolerance"):
        gpattr.Explainer(posterior, covariance_tolerance=bad)
