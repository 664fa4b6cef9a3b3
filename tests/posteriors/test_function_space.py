"""The general state (Z, α, L, R, w): whitened variational posteriors and Laplace's form."""

import numpy as np
import pytest

from gpattr import Explainer
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import SquaredExponential
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import FunctionSpacePosterior

RNG = np.random.default_rng(1)
KERNEL = SquaredExponential(lengthscale=[1.0, 2.0])
Z, X, B = RNG.normal(size=(5, 2)), RNG.normal(size=(3, 2)), np.array([0.3, -0.2])
K = KERNEL(Z, Z)


def variational():
    """Whitened q(v) = N(m, SSᵀ), u = Lv."""
    L = np.linalg.cholesky(K + 1e-6 * np.eye(5))
    m, S = RNG.normal(size=5), np.tril(0.3 * RNG.normal(size=(5, 5))) + 0.5 * np.eye(5)
    state = FunctionSpacePosterior(KERNEL, Z, np.linalg.solve(L.T, m), L, root=S)
    A = np.linalg.solve(L, np.eye(5))
    return state, A.T @ m, A.T @ (np.eye(5) - S @ S.T) @ A


def laplace():
    """L = chol(I + √W K √W), w = √W: Cov = k − kᵀ√W B⁻¹ √W k."""
    root_w = np.array([0.5, 0.4, 0.45, 0.3, 0.2])
    Bm = np.eye(5) + root_w[:, None] * K * root_w
    alpha = RNG.normal(size=5)
    state = FunctionSpacePosterior(KERNEL, Z, alpha, np.linalg.cholesky(Bm), column_scale=root_w)
    return state, alpha, root_w[:, None] * np.linalg.inv(Bm) * root_w


@pytest.mark.parametrize("build", [variational, laplace])
def test_state_against_dense_formulas(build):
    state, alpha, P = build()
    k = KERNEL(X, Z)
    mean, cov = state.predict(X, return_cov=True)
    np.testing.assert_allclose(mean, k @ alpha, rtol=1e-9)
    np.testing.assert_allclose(cov, KERNEL(X, X) - k @ P @ k.T, atol=1e-9)
    np.testing.assert_allclose(
        state.predict(X, return_std=True)[1] ** 2, np.diagonal(cov), rtol=1e-12
    )

    from gpattr import closed_forms

    op = IntegratedGradients(B)
    A = closed_forms.cross(op, KERNEL, X, Z).reshape(6, 5)
    dense = closed_forms.between(op, KERNEL, X).reshape(6, 6) - A @ P @ A.T
    np.testing.assert_allclose(state.joint(op, X).reshape(6, 6), dense, atol=1e-9)
    np.testing.assert_allclose(
        state.apply(op, X).cov, np.einsum("ninj->nij", dense.reshape(3, 2, 3, 2)), atol=1e-9
    )


@pytest.mark.parametrize("build", [variational, laplace])
def test_completeness_in_variance(build):
    state, _, _ = build()
    joint = np.vstack([X, B])
    mean, cov = state.predict(joint, return_cov=True)
    got = state.apply(IntegratedGradients(B), X)
    np.testing.assert_allclose(got.mean.sum(axis=1), mean[:3] - mean[3], atol=1e-12)
    difference = np.diagonal(cov)[:3] - 2 * cov[:3, 3] + cov[3, 3]
    np.testing.assert_allclose(got.cov.sum(axis=(1, 2)), difference, atol=1e-12)


@pytest.mark.parametrize("baseline", ["mean", "median"])
def test_a_model_without_training_inputs_has_no_mean(baseline):
    state, _, _ = variational()
    with pytest.raises(
        InvalidInputError,
        match=f'"{baseline}" needs the training inputs, .* give a baseline of 2 numbers',
    ):
        Explainer(state, baseline)
    assert Explainer(state, "zeros")(X).baselines.tolist() == [[0.0, 0.0]] * 3
