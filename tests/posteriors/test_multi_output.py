"""Several outputs: independent and coregionalised, against the joint posterior of all of them by
plain linear algebra.
"""

import numpy as np
import pandas as pd
import pytest
import torch

import gpattr
from gpattr import Explainer
from gpattr.exceptions import InvalidIndexError, InvalidInputError, UnsupportedModelError
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.means import Constant, Linear
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import (
    CombinationPosterior,
    ExactPosterior,
    LaplacePosterior,
    MixturePosterior,
    MultiOutputPosterior,
    SparsePosterior,
)
from gpattr.special.quadrature import gauss_legendre
from gpattr.testing import check_posterior

RNG = np.random.default_rng(11)
Z, Y = RNG.normal(size=(15, 3)), RNG.normal(size=(15, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
X, b = RNG.normal(size=(4, 3)), RNG.normal(size=3)
KERNEL = SquaredExponential([1.0, 2.0, 0.7])
ROOT = RNG.normal(size=(3, 3)) * np.array([1.0, 8.0, 0.1])[:, None]
B = ROOT @ ROOT.T
NOISE = np.array([0.1, 2.0, 0.001])
MEANS = [Constant(0.3), Constant(5.0), Linear([0.1, 0.0, -0.2])]
NAMES = ("speed", "price", "mass")


def coregionalised(covariance=B, noise=NOISE, means=MEANS, kernel=KERNEL, **options):
    return MultiOutputPosterior.coregionalised(
        kernel, Z, Y, covariance=covariance, noise=noise, means=means, **options
    )


def dense(points, covariance=B, noise=NOISE, means=MEANS):
    """Mean (N, P) and covariance (P, N, P, N) of all outputs at all points, from one matrix of all
    rows and outputs.
    """
    P, m, N = len(covariance), len(Z), len(points)
    A = np.kron(covariance, KERNEL(Z, Z)) + np.kron(
        np.diag(np.broadcast_to(noise, (P,))), np.eye(m)
    )
    cross = np.kron(covariance, KERNEL(points, Z))
    known, prior = (np.concatenate([mean(at) for mean in means]) for at in (Z, points))
    mean = prior + cross @ np.linalg.solve(A, Y[:, :P].T.ravel() - known)
    cov = np.kron(covariance, KERNEL(points, points)) - cross @ np.linalg.solve(A, cross.T)
    return mean.reshape(P, N).T, cov.reshape(P, N, P, N)


def test_predictions_are_those_of_one_matrix():
    posterior = coregionalised(output_names=NAMES)
    mean, cov = dense(X)
    got, spread = posterior.predict(X, return_cov=True)
    np.testing.assert_allclose(got, mean, rtol=1e-11)
    for o in range(3):
        np.testing.assert_allclose(spread[..., o], cov[o, :, o], atol=1e-11 * B[o, o])
    np.testing.assert_allclose(
        posterior.predict(X, return_std=True)[1] ** 2,
        [[cov[o, n, o, n] for o in range(3)] for n in range(4)],
    )
    np.testing.assert_array_equal(posterior.predict(X), got)


def test_attributions_are_finite_differences_of_one_matrix():
    """Brute force: integrate differences of the joint predictive distribution of all outputs, which
    knows no attributions.
    """
    x = X[:1]
    nodes, weights = gauss_legendre(12)
    step = 1e-4
    moves = step * np.concatenate([np.eye(3), -np.eye(3)])
    points = (b + nodes[:, None] * (x[0] - b))[:, None, :] + moves  # (T, 2d, d)
    mean, cov = dense(points.reshape(-1, 3))
    functional = np.zeros((3, len(nodes), 6))
    for i in range(3):
        functional[i, :, i], functional[i, :, i + 3] = (
            weights * (x[0] - b)[i] / (2 * step),
            -weights * (x[0] - b)[i] / (2 * step),
        )
    F = functional.reshape(3, -1)
    explainer = Explainer(coregionalised(output_names=NAMES), b)
    np.testing.assert_allclose(
        explainer(x).values[0], F @ mean, rtol=1e-6, atol=1e-6 * np.abs(F @ mean).max()
    )
    across = explainer.across_outputs(x)[0]  # (d, P, d, P)
    expected = np.einsum("in,onpm,jm->iojp", F, cov, F)
    size = np.sqrt(np.einsum("ioio->io", expected))
    np.testing.assert_allclose(
        across / size[:, :, None, None] / size, expected / size[:, :, None, None] / size, atol=2e-5
    )


def test_identity_is_independent_outputs():
    together = coregionalised(np.eye(3), NOISE)
    apart = MultiOutputPosterior(
        [ExactPosterior(KERNEL, Z, Y[:, o], noise=NOISE[o], mean=MEANS[o]) for o in range(3)]
    )
    one, two = (Explainer(posterior, b)(X) for posterior in (together, apart))
    for name in ("values", "var", "cov", "predictions", "base_values"):
        got, expected = getattr(one, name), getattr(two, name)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    across = Explainer(together, b).across_outputs(X)
    np.testing.assert_allclose(across, Explainer(apart, b).across_outputs(X), rtol=0, atol=1e-10)
    for o in range(3):
        np.testing.assert_allclose(across[:, :, o, :, o], two.cov[..., o], atol=1e-10)
        np.testing.assert_allclose(across[:, :, o, :, (o + 1) % 3], 0.0, atol=1e-10)


def test_completeness_for_every_output():
    posterior = coregionalised()
    ex = Explainer(posterior, b)(X)
    size = np.abs(ex.predictions).max(axis=0)
    assert (np.abs(ex.values.sum(axis=1) - (ex.predictions - ex.base_values)) <= 1e-12 * size).all()
    _, cov = dense(np.vstack([X, b]))
    for o in range(3):
        C = cov[o, :, o]
        gain = np.diagonal(C)[:-1] - 2 * C[:-1, -1] + C[-1, -1]
        np.testing.assert_allclose(ex.cov[..., o].sum(axis=(1, 2)), gain, atol=1e-10 * B[o, o])
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-11)


@pytest.mark.parametrize("o", range(3))
@pytest.mark.parametrize("kernel", [KERNEL, Matern52(2.0)])
def test_every_output_conforms(o, kernel):
    posterior = coregionalised(kernel=kernel)
    check_posterior(posterior[f"y{o}"], np.vstack([X, Z])[:8])


def test_singular_covariances_and_no_noise():
    """Outputs that are multiples of one another, with or without noise: the one matrix is then
    singular or nearly so.
    """
    line = np.outer([1.0, 8.0, 0.1], [1.0, 8.0, 0.1])
    posterior = coregionalised(line)
    assert len(posterior.latents) == 1
    np.testing.assert_allclose(posterior.predict(X), dense(X, line)[0], rtol=1e-9)
    near = line * (1.0 + 1e-4 * np.eye(3))
    assert len(coregionalised(near).latents) == 3
    (mean, cov), (ours, std) = dense(X, near), coregionalised(near).predict(X, return_std=True)
    np.testing.assert_allclose(ours, mean, rtol=1e-8)
    np.testing.assert_allclose(
        std**2, [[cov[o, n, o, n] for o in range(3)] for n in range(4)], rtol=1e-8
    )
    exact = coregionalised(B, 0.0)
    apart = [
        ExactPosterior(KERNEL, Z, Y[:, o], noise=0.0, mean=MEANS[o]).predict(X) for o in range(3)
    ]  # autokrigeability
    np.testing.assert_allclose(exact.predict(X), np.stack(apart, axis=1), rtol=1e-8)


def test_outputs_of_very_different_noise():
    """What a noisy output says is little; that it varies is known all the same."""
    far = X + 50.0
    _, std = coregionalised(np.eye(3), [1e-8, 1e7, 1.0]).predict(far, return_std=True)
    np.testing.assert_allclose(std, 1.0, rtol=1e-9)


def test_outputs_of_any_kind():
    exact = ExactPosterior(KERNEL, Z, Y[:, 0], noise=0.1)
    kinds = {
        "exact": exact,
        "sparse": SparsePosterior.fit(KERNEL, Z[:5], Z, Y[:, 1], noise=0.1),
        "labels": LaplacePosterior(KERNEL, Z, Y[:, 2] > 1),
        "mixture": MixturePosterior([exact, ExactPosterior(2.0 * KERNEL, Z, Y[:, 0], noise=0.2)]),
    }
    ex = Explainer(MultiOutputPosterior(kinds), b)(X)
    for name, posterior in kinds.items():
        assert ex[name] == Explainer(posterior, b)(X)
    assert Explainer(MultiOutputPosterior(kinds), "zeros")["sparse"](X) == Explainer(
        kinds["sparse"], "zeros"
    )(X)
    assert set(MultiOutputPosterior(kinds).reference_points) == {"mean", "median"}


def test_shares_of_training_rows():
    explainer = Explainer(coregionalised(means=None), b)
    shares = explainer["y1"].training_contributions(X[0], 2)
    assert shares.shape == (15,)
    assert shares.sum() == pytest.approx(explainer(X[:1])["y1"].values[0, 2], rel=1e-12)


def test_frames_name_outputs_and_align_features():
    frame = pd.DataFrame(Z, columns=["a", "b", "c"])
    posterior = MultiOutputPosterior.coregionalised(
        KERNEL, frame, pd.DataFrame(Y, columns=NAMES), covariance=B, noise=NOISE
    )
    assert posterior.output_names == NAMES
    rows = pd.DataFrame(X, columns=["a", "b", "c"], index=["p", "q", "r", "s"])
    ex = Explainer(posterior)(rows[["c", "a", "b"]])
    plain = Explainer(coregionalised(means=None))(X)
    np.testing.assert_allclose(ex.values, plain.values, rtol=1e-12)
    assert (ex.feature_names, ex.row_names) == (("a", "b", "c"), ("p", "q", "r", "s"))
    assert "price" in repr(ex)
    assert "price" in ex._repr_html_()
    assert "price" in repr(posterior)


def test_tensors_stay_tensors():
    posterior = MultiOutputPosterior.coregionalised(
        KERNEL, torch.tensor(Z), torch.tensor(Y), covariance=B, noise=NOISE
    )
    here = coregionalised(means=None)
    mean, std = posterior.predict(torch.tensor(X), return_std=True)
    assert isinstance(mean, torch.Tensor)
    np.testing.assert_allclose(mean, here.predict(X), rtol=1e-11)
    np.testing.assert_allclose(std, here.predict(X, return_std=True)[1], rtol=1e-11)
    np.testing.assert_allclose(
        Explainer(posterior, b)(X).cov, Explainer(here, b)(X).cov, rtol=0, atol=1e-11 * B.max()
    )
    op = IntegratedGradients(torch.tensor(b))
    np.testing.assert_allclose(
        posterior.across(op, torch.tensor(X)),
        here.across(IntegratedGradients(b), X),
        rtol=0,
        atol=1e-11 * B.max(),
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kernel": 3}, "kernel: expected a gpattr kernel, got int"),
        (
            {"covariance": np.eye(2)},
            r"covariance: expected an array of shape \(3, 3\), got \(2, 2\)",
        ),
        (
            {"covariance": np.triu(np.ones((3, 3)))},
            "covariance: expected a symmetric positive semi-definite",
        ),
        ({"covariance": -np.eye(3)}, "covariance: expected a symmetric positive semi-definite"),
        ({"covariance": np.zeros((3, 3))}, "covariance: expected a matrix that is not zero"),
        ({"noise": [0.1, 0.2]}, r"noise: expected one variance or one per output \(3\), got 2"),
        ({"noise": -0.1}, "noise: expected variances larger than 0"),
        (
            {"noise": [0.1, 0.0, 0.1]},
            "noise: expected variances larger than 0, or 0 for all outputs",
        ),
        ({"noise": np.nan}, "noise: expected finite numbers"),
        ({"means": [Constant(1.0)]}, "means: expected 3 gpattr means"),
        ({"means": Constant(1.0)}, "means: expected 3 gpattr means"),
        ({"means": [1.0, 2.0, 3.0]}, "mean: expected a gpattr mean or None, got float"),
        (
            {"means": [Linear(np.zeros(3), covariance="flat")] * 3},
            "mean: expected one with known coefficients",
        ),
        (
            {"covariance": np.ones((3, 3)), "noise": 0.0},
            "noise: expected variances larger than 0, because the covariance",
        ),
        ({"output_names": ["a", "b"]}, "output_names: expected 3 names, got 2"),
        ({"output_names": ["a", "a", "b"]}, "output_names: expected different names"),
    ],
)
def test_bad_coregionalisation_is_named(change, words):
    with pytest.raises(InvalidInputError, match=words):
        coregionalised(**change)


def test_bad_outputs_are_named():
    with pytest.raises(InvalidInputError, match=r"Y: expected targets \(m, P\), got one dimension"):
        MultiOutputPosterior.coregionalised(KERNEL, Z, Y[:, 0], covariance=np.eye(1), noise=0.1)
    with pytest.raises(
        InvalidInputError, match=r"Y: expected one row of targets per row of X \(15\), got 14"
    ):
        MultiOutputPosterior.coregionalised(KERNEL, Z, Y[:14], covariance=B, noise=0.1)
    exact = ExactPosterior(KERNEL, Z, Y[:, 0], noise=0.1)
    narrow = ExactPosterior(SquaredExponential(), Z[:, :2], Y[:, 0], noise=0.1)
    for outputs, words in (
        (exact, "outputs: expected posteriors by name"),
        ({}, "outputs: expected at least one"),
        ([exact, 3], r"outputs\['y1'\]: expected a gpattr posterior with one output, got a int"),
        ({"a": exact, "b": narrow}, r"outputs\['b'\]: expected the same n_features, got 3 and 2"),
        ({1: exact}, "outputs: expected a sequence of strings"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            MultiOutputPosterior(outputs)
    mixture = MixturePosterior([exact, exact])
    for parts, weights, words in (
        ([], [], "posteriors: expected at least one Gaussian"),
        ([mixture], [1.0], "posteriors: expected at least one Gaussian"),
        ([exact, narrow], [1.0, 1.0], "posteriors: expected models of the same features"),
        ([exact], [1.0, 2.0], "coefficients: expected 1 numbers"),
        (exact, [1.0], "posteriors: expected at least one Gaussian"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            CombinationPosterior(parts, weights)


def test_questions_of_one_output_ask_for_it():
    explainer = Explainer(coregionalised(output_names=NAMES), b)
    for question in (
        explainer.joint,
        explainer.importance,
        lambda X: explainer.training_contributions(X[0], 1),
    ):
        with pytest.raises(UnsupportedModelError, match=r"by its name, explainer\['speed'\]"):
            question(X)
    assert explainer["price"].joint(X).shape == (4, 3, 4, 3)
    assert explainer["price"].importance(X, n_samples=50).values.shape == (3,)
    with pytest.raises(InvalidIndexError, match="output: expected the name of one"):
        explainer[["price"]]
    with pytest.raises(
        InvalidIndexError,
        match=r"output: expected the name of one, of \['speed', 'price', 'mass'\], got 'prize'",
    ):
        explainer["prize"]
    single = Explainer(ExactPosterior(KERNEL, Z, Y[:, 0], noise=0.1), b)
    with pytest.raises(InvalidIndexError, match="the model has one output"):
        single["price"]
    with pytest.raises(UnsupportedModelError, match="one output"):
        single.across_outputs(X)


def test_batches_are_the_whole():
    explainer = Explainer(coregionalised(), b)
    parts = list(explainer.batches(X, batch_size=3))
    values = explainer(X).values
    np.testing.assert_allclose(
        np.concatenate([part.values for part in parts]),
        values,
        rtol=1e-13,
        atol=4
        * np.finfo(float).eps
        * abs(values).max(),  # small ones are differences of large terms
    )
    assert [part.row_names for part in parts] == [(0, 1, 2), (3,)]
    own = RNG.normal(size=X.shape)
    np.testing.assert_allclose(
        np.concatenate([part.cov for part in explainer.batches(X, own, batch_size=3)]),
        explainer(X, own).cov,
        rtol=1e-12,
        atol=1e-14,
    )
    assert gpattr.explain(coregionalised(), X, b) == explainer(X)
