"""Tasks with rows of their own, against their joint posterior by plain linear algebra."""

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.means import Constant, Linear
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import ExactPosterior, MultiOutputPosterior, MultiTaskPosterior
from gpattr.special.quadrature import gauss_legendre
from gpattr.testing import check_posterior

RNG = np.random.default_rng(7)
Z, TASKS = RNG.normal(size=(18, 3)), RNG.integers(0, 3, size=18)
Y = RNG.normal(size=18) + TASKS
X, b = RNG.normal(size=(4, 3)), RNG.normal(size=3)
KERNEL = SquaredExponential([1.0, 2.0, 0.7])
ROOT = RNG.normal(size=(3, 3))
B = ROOT @ ROOT.T
NOISE = RNG.uniform(0.05, 0.3, size=18)
MEANS = [Constant(0.3), Constant(1.0), Linear([0.1, 0.0, -0.2])]


def tasks(covariance=B, noise=NOISE, means=MEANS, kernel=KERNEL, y=Y, at=TASKS, **options):
    return MultiTaskPosterior(
        kernel, Z, y, at, covariance=covariance, noise=noise, means=means, **options
    )


def dense(points):
    """Mean (P, N) and covariance (P, N, P, N) of all tasks at all points."""
    A = B[np.ix_(TASKS, TASKS)] * KERNEL(Z, Z) + np.diag(NOISE)
    cross = np.concatenate([B[p, TASKS] * KERNEL(points, Z) for p in range(3)])
    known = np.array([MEANS[t](z[None])[0] for t, z in zip(TASKS, Z, strict=True)])
    mean = np.concatenate([mean(points) for mean in MEANS]) + cross @ np.linalg.solve(A, Y - known)
    cov = np.kron(B, KERNEL(points, points)) - cross @ np.linalg.solve(A, cross.T)
    return mean.reshape(3, -1), cov.reshape(3, len(points), 3, len(points))


def test_predictions_are_those_of_one_matrix():
    mean, cov = dense(X)
    ours, std = tasks().predict(X, return_std=True)
    np.testing.assert_allclose(ours, mean.T, rtol=1e-10)
    np.testing.assert_allclose(
        std**2, [[cov[p, n, p, n] for p in range(3)] for n in range(4)], rtol=1e-9
    )


def test_attributions_are_finite_differences_of_one_matrix():
    nodes, weights = gauss_legendre(12)
    step, x = 1e-4, X[0]
    moves = step * np.concatenate([np.eye(3), -np.eye(3)])
    mean, cov = dense(((b + nodes[:, None] * (x - b))[:, None, :] + moves).reshape(-1, 3))
    F = np.zeros((3, len(nodes), 6))
    for i in range(3):
        F[i, :, i], F[i, :, i + 3] = (
            weights * (x - b)[i] / (2 * step),
            -weights * (x - b)[i] / (2 * step),
        )
    F = F.reshape(3, -1)
    explainer = Explainer(tasks(output_names=["a", "b", "c"]), b)
    np.testing.assert_allclose(
        explainer(X[:1]).values[0], F @ mean.T, atol=1e-6 * np.abs(F @ mean.T).max()
    )
    expected = np.einsum("in,onpm,jm->iojp", F, cov, F)
    np.testing.assert_allclose(
        explainer.across_outputs(X[:1])[0], expected, atol=2e-5 * np.abs(expected).max()
    )


def test_all_targets_in_every_row_are_coregionalised_outputs():
    rows, at = np.repeat(Z[:6], 3, axis=0), np.tile(np.arange(3), 6)
    targets = RNG.normal(size=(6, 3))
    options = {"covariance": B, "means": MEANS}
    one = MultiTaskPosterior(KERNEL, rows, targets.ravel(), at, noise=0.1, **options)
    two = MultiOutputPosterior.coregionalised(KERNEL, Z[:6], targets, noise=0.1, **options)
    first, second = (Explainer(posterior, b) for posterior in (one, two))
    np.testing.assert_allclose(first(X).values, second(X).values, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        first.across_outputs(X), second.across_outputs(X), rtol=1e-7, atol=1e-9
    )


def test_unrelated_tasks_learn_from_their_own_rows():
    posterior = tasks(np.eye(3))
    for p in range(3):
        own = p == TASKS
        single = ExactPosterior(KERNEL, Z[own], Y[own], noise=NOISE[own], mean=MEANS[p])
        np.testing.assert_allclose(
            Explainer(posterior, b)(X)[f"y{p}"].cov, Explainer(single, b)(X).cov, atol=1e-10
        )


@pytest.mark.parametrize("kernel", [KERNEL, Matern52(1.5)])
def test_tasks_conform(kernel):
    check_posterior(tasks(kernel=kernel), np.vstack([X, Z])[:8])


def test_frames_shares_and_reference_points():
    frame = pd.DataFrame(Z, columns=["a", "b", "c"])
    posterior = MultiTaskPosterior(KERNEL, frame, Y, TASKS, covariance=B, noise=NOISE)
    explainer = Explainer(posterior)
    ex = explainer(pd.DataFrame(X, columns=["a", "b", "c"])[["c", "a", "b"]])
    np.testing.assert_allclose(ex.baselines[0], Z.mean(axis=0), rtol=1e-12)
    shares = explainer["y1"].training_contributions(
        pd.DataFrame(X[:1], columns=["a", "b", "c"]), "b"
    )
    assert shares.sum() == pytest.approx(ex["y1"].values[0, 1], rel=1e-10)
    across = posterior.across(IntegratedGradients(b), X)
    np.testing.assert_allclose(
        across[:, :, 2, :, 2], Explainer(posterior, b)(X)["y2"].cov, atol=1e-10
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kernel": 3}, "kernel: expected a gpattr kernel, got int"),
        ({"at": TASKS + 1}, "tasks: expected numbers from 0 to 2"),
        ({"at": TASKS[:5]}, r"tasks: expected 18 tasks \(one per row of X\), got 5"),
        ({"y": Y[:5]}, "y: expected 18 targets"),
        ({"noise": -0.1}, "noise: expected variances, 0 or larger"),
        ({"noise": [0.1, 0.2]}, r"noise: expected one variance or one per row \(18\), got 2"),
        ({"means": MEANS[:2]}, "means: expected 3 gpattr means, one per task"),
        (
            {"covariance": np.diag([1.0, 0.0, 1.0])},
            "covariance: expected variances larger than 0 for every task",
        ),
        ({"covariance": np.ones((3, 2))}, "covariance: expected an array of shape"),
        ({"output_names": ["a"]}, "output_names: expected 3 names, got 1"),
    ],
)
def test_bad_input_is_named(change, words):
    with pytest.raises(InvalidInputError, match=words):
        tasks(**change)


def test_singular_covariances_are_refused():
    with pytest.raises(
        NotPositiveDefiniteError, match="noise: the covariance of the training targets is singular"
    ):
        MultiTaskPosterior(
            KERNEL,
            np.zeros((3, 1)) @ np.ones((1, 3)),
            Y[:3],
            [0, 0, 1],
            covariance=np.ones((2, 2)),
            noise=0.0,
        )
