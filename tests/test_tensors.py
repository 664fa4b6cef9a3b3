"""Linear algebra by blocks, which large matrices on a GPU need, on small ones on the host."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gpattr._core import array, tensors  # noqa: E402
from gpattr._core.array import LinAlgError  # noqa: E402
from gpattr.kernels import SquaredExponential  # noqa: E402
from gpattr.operators import IntegratedGradients  # noqa: E402
from gpattr.posteriors import ExactPosterior  # noqa: E402

SIZES = (1, 15, 16, 33, 130)


@pytest.fixture
def by_blocks(monkeypatch):
    monkeypatch.setattr(tensors, "by_blocks", lambda L: True)
    monkeypatch.setattr(tensors, "BLOCK", 32)
    monkeypatch.setattr(tensors, "CORNER", 16)
    monkeypatch.setattr(tensors.blocks_of, "__defaults__", (32,))


def factor(m):
    rng = np.random.default_rng(m)
    G = rng.normal(size=(m, m))
    return G @ G.T + m * np.eye(m)


@pytest.mark.parametrize("m", SIZES)
def test_cholesky_in_place(by_blocks, m):
    A = factor(m)
    given = torch.tensor(np.tril(A) + 7.0 * np.triu(np.ones((m, m)), 1))  # what is above is unread
    L = array.cholesky(given)
    assert L.data_ptr() == given.data_ptr()
    np.testing.assert_allclose(L.numpy(), np.linalg.cholesky(A), rtol=1e-12, atol=1e-12)
    assert (np.triu(L.numpy(), 1) == 0).all()


def test_a_matrix_without_a_factor(by_blocks):
    A = factor(50)
    A[40, 40] = -1.0
    with pytest.raises(LinAlgError):
        array.cholesky(torch.tensor(A))


@pytest.mark.parametrize("m", SIZES)
def test_solves(by_blocks, m):
    L = np.linalg.cholesky(factor(m))
    factor_there, rng = torch.tensor(L), np.random.default_rng(0)
    A, b, B = rng.normal(size=(7, m)), rng.normal(size=m), rng.normal(size=(m, 3))
    rows = torch.tensor(A)
    V = array.solve_lower_rows(factor_there, rows)
    assert V.data_ptr() == rows.data_ptr()
    close = {"rtol": 1e-11, "atol": 1e-13}
    np.testing.assert_allclose(V.numpy() @ L.T, A, **close)
    for right in (b, B):
        given = torch.tensor(right)
        solved = array.solve_cholesky(factor_there, given)
        np.testing.assert_allclose(L @ (L.T @ solved.numpy()), right, **close)
        half = array.solve_upper(factor_there, given)
        np.testing.assert_allclose(L.T @ half.numpy(), right, **close)
        np.testing.assert_array_equal(given.numpy(), right)  # nothing of the caller's is changed


def test_a_posterior_by_blocks(by_blocks):
    rng = np.random.default_rng(1)
    X, kernel = rng.normal(size=(100, 3)), SquaredExponential(lengthscale=[1.0, 2.0, 0.5])
    y, op = np.sin(X[:, 0]), IntegratedGradients(np.zeros(3))
    here = ExactPosterior(kernel, X, y, noise=1e-6).apply(op, X[:20])
    there = ExactPosterior(kernel, torch.tensor(X), torch.tensor(y), noise=1e-6)
    found = there.apply(op, torch.tensor(X[:20]))
    np.testing.assert_allclose(found.mean.numpy(), here.mean, rtol=1e-9, atol=1e-10)
    assert (np.abs(found.cov.numpy() - here.cov).max(axis=(1, 2)) <= here.cov_error).all()
