"""One more measurement: the posterior after it is that of a model fitted to all rows at the same
hyperparameters, in the user's units, for every kind of posterior that takes one.
"""

import time

import numpy as np
import pandas as pd
import pytest

import gpattr
from gpattr import means
from gpattr.bases import Monomials
from gpattr.encoders import Encoder
from gpattr.exceptions import (
    InvalidInputError,
    NotPositiveDefiniteError,
    UnsupportedModelError,
)
from gpattr.kernels import Matern52, SquaredExponential, White
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    EncodedPosterior,
    ExactPosterior,
    LaplacePosterior,
    MixturePosterior,
    MultiOutputPosterior,
    MultiTaskPosterior,
    SparsePosterior,
    WeightSpacePosterior,
)

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=40)
MORE, VALUES = RNG.normal(size=(3, 3)), np.array([0.4, -1.0, 2.0])
AT = RNG.normal(size=(5, 3))
KERNEL = 1.7 * SquaredExponential([0.8, 1.1, 1.5])
OPERATOR = IntegratedGradients(np.zeros(3))
MEANS = {
    "zero": None,
    "known": means.Linear([0.3, -0.2, 0.1], 0.5),
    "uncertain": means.Linear([0.3, -0.2, 0.1], 0.5, covariance=np.diag([4.0, 1.0, 2.0, 3.0])),
    "flat": means.Linear(np.zeros(3), covariance="flat"),
    "polynomial": means.Polynomial([0.5, 0.2], [[0, 0, 0], [2, 0, 0]], covariance=np.eye(2)),
}


def frame_of(rows):
    return pd.DataFrame(rows, columns=["a", "b", "c"])


def agree(one, two, *, at=AT, rtol=1e-10):
    """Two posteriors have the same predictions, attributions, and joint covariances of both."""
    for (mean, cov), (other_mean, other_cov) in [
        (one.predict(at, return_cov=True), two.predict(at, return_cov=True)),
        [(r.mean, r.cov) for r in (p.apply(OPERATOR, at) for p in (one, two))],
    ]:
        np.testing.assert_allclose(mean, other_mean, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(cov, other_cov, rtol=rtol, atol=rtol * np.abs(other_cov).max())


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize(
    "noise", [None, 0.3, np.array([0.1, 0.2, 0.3])], ids=["own", "one", "each"]
)
def test_it_is_the_posterior_of_all_rows(mean, noise):
    before = ExactPosterior(KERNEL, X, Y, noise=0.05, mean=MEANS[mean])
    after = before.condition_on(MORE, VALUES, noise)
    levels = np.append(np.full(40, 0.05), np.broadcast_to(0.05 if noise is None else noise, 3))
    rows, targets = np.vstack([X, MORE]), np.append(Y, VALUES)
    refitted = ExactPosterior(KERNEL, rows, targets, noise=levels, mean=MEANS[mean])
    agree(after, refitted)
    np.testing.assert_allclose(
        after.log_marginal_likelihood, refitted.log_marginal_likelihood, rtol=1e-10
    )
    np.testing.assert_array_equal(after.training_inputs, rows)
    np.testing.assert_array_equal(after.noise, levels)


@pytest.mark.parametrize("mean", MEANS)
def test_one_by_one_is_all_at_once(mean):
    step = before = ExactPosterior(KERNEL, X, Y, noise=0.05, mean=MEANS[mean])
    for row, value in zip(MORE, VALUES):
        step = step.condition_on(row, value)
    at_once = before.condition_on(MORE, VALUES)
    agree(step, at_once)
    np.testing.assert_allclose(
        step.log_marginal_likelihood, at_once.log_marginal_likelihood, rtol=1e-12
    )


def test_white_noise_of_the_kernel_is_the_noise_of_the_measurement():
    before = ExactPosterior(KERNEL + White(0.2), X, Y, noise=0.05)
    assert before.noise_variance == pytest.approx(0.25, rel=1e-15)
    refitted = ExactPosterior(
        KERNEL + White(0.2), np.vstack([X, MORE]), np.append(Y, VALUES), noise=0.05
    )
    agree(before.condition_on(MORE, VALUES), refitted)


def test_scaled_inputs_and_outputs_take_measurements_in_the_users_units():
    shift, scale, unit, centre = np.array([1.0, 2.0, -1.0]), np.array([2.0, 0.5, 3.0]), -2.5, 40.0
    noise = 0.7

    def posterior(rows, targets, levels):
        inner = ExactPosterior(
            KERNEL, (rows - shift) / scale, (targets - centre) / unit, noise=levels / unit**2
        )
        inside = AffinePosterior(inner, shift, scale, feature_names=("a", "b", "c"))
        return CombinationPosterior([inside], [unit], mean=means.Constant(centre))

    before = posterior(X, Y, np.full(40, 0.3))
    assert before.noise_variance == pytest.approx(0.3, rel=1e-14)
    levels = np.append(np.full(40, 0.3), np.full(3, noise))
    refitted = posterior(np.vstack([X, MORE]), np.append(Y, VALUES), levels)
    frame = pd.DataFrame(MORE, columns=["a", "b", "c"])
    for rows in (MORE, frame, frame[["c", "a", "b"]]):
        agree(before.condition_on(rows, VALUES, noise), refitted)
    one = before.condition_on(frame.iloc[0], VALUES[0], noise)
    agree(one, before.condition_on(MORE[:1], VALUES[:1], noise))
    assert one.feature_names == ("a", "b", "c")


def test_categories():
    encoder = Encoder(("a", "kind"), {"kind": ("u", "v")})
    frame = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 0, "u", "v")})
    new = pd.DataFrame({"a": [0.3, 0.4], "kind": ["v", "u"]})

    def posterior(rows, targets):
        inner = ExactPosterior(SquaredExponential(), encoder.encode("X", rows), targets, noise=0.1)
        return EncodedPosterior(inner, encoder)

    before = posterior(frame, Y)
    after = before.condition_on(new, VALUES[:2])
    refitted = posterior(pd.concat([frame, new], ignore_index=True), np.append(Y, VALUES[:2]))
    for one, two in zip(
        after.predict(frame, return_cov=True), refitted.predict(frame, return_cov=True)
    ):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)
    agreeing = before.condition_on(new.iloc[0], 0.4).predict(frame)
    np.testing.assert_allclose(
        agreeing, before.condition_on(new[:1], [0.4]).predict(frame), rtol=1e-14
    )
    with pytest.raises(InvalidInputError, match=r"^x: "):
        before.condition_on(pd.DataFrame({"a": [0.3], "kind": ["w"]}), 1.0)


def test_weights_of_a_basis():
    basis = Monomials.up_to(2, 3, constant=True)
    S, weights = np.diag(np.linspace(0.5, 2.0, len(basis))), np.linspace(-1.0, 1.0, len(basis))
    mean = means.Constant(0.7)
    factor = np.linalg.cholesky(np.linalg.inv(S))
    F = basis(MORE)
    noise = np.array([0.1, 0.2, 0.3])
    gain = S @ F.T @ np.linalg.inv(F @ S @ F.T + np.diag(noise))
    expected = WeightSpacePosterior(
        basis, weights + gain @ (VALUES - 0.7 - F @ weights), S - gain @ F @ S, mean=mean
    )
    for given in ({"covariance": S}, {"precision_factor": factor}):
        before = WeightSpacePosterior(basis, weights, **given, mean=mean)
        agree(before.condition_on(MORE, VALUES, noise), expected)
        with pytest.raises(InvalidInputError, match=r"^noise: WeightSpacePosterior does not have"):
            before.condition_on(MORE, VALUES)
    # Without noise the function goes through the point, which then cannot be measured again.
    sure = before.condition_on(MORE[0], 2.0, 0.0)
    mean, std = sure.predict(MORE[:1], return_std=True)
    np.testing.assert_allclose(mean, 2.0, rtol=1e-12)
    np.testing.assert_allclose(std, 0.0, atol=1e-7)
    flat = WeightSpacePosterior(basis, weights, np.zeros_like(S))
    with pytest.raises(NotPositiveDefiniteError, match=r"^noise: .* known without uncertainty"):
        flat.condition_on(MORE[0], 2.0, 0.0)


@pytest.mark.parametrize("at_inducing", [False, True])
def test_sparse_posteriors_are_updated_exactly(at_inducing):
    """The truth is the joint Gaussian of the measurement and everything asked for."""
    before = SparsePosterior.fit(KERNEL, X[:8], X, Y, noise=0.1, mean=means.Constant(0.3))
    new = X[:2] if at_inducing else MORE[:2]
    noise, values = np.array([0.1, 0.4]), VALUES[:2]
    after = before.condition_on(new, values, noise)
    mean, cov = before.predict(np.vstack([AT, new]), return_cov=True)
    gain = cov[:5, 5:] @ np.linalg.inv(cov[5:, 5:] + np.diag(noise))
    found = after.predict(AT, return_cov=True)
    np.testing.assert_allclose(found[0], mean[:5] + gain @ (values - mean[5:]), rtol=1e-10)
    np.testing.assert_allclose(found[1], cov[:5, :5] - gain @ cov[5:, :5], rtol=0, atol=1e-10)
    assert after.bound is None
    named = SparsePosterior.fit(KERNEL, frame_of(X[:8]), frame_of(X), Y, noise=0.1)
    scaled = CombinationPosterior([named], [2.0]).condition_on(frame_of(new), values, 0.1)
    np.testing.assert_array_equal(
        scaled.predict(frame_of(AT)[["c", "a", "b"]]), scaled.predict(frame_of(AT))
    )
    assert len(after.inputs) == (8 if at_inducing else 10)
    with pytest.raises(InvalidInputError, match=r"^noise: SparsePosterior does not have"):
        before.condition_on(new, values)


def test_weights_of_a_mixture_follow_the_evidence():
    kernels = [KERNEL, Matern52(0.5)]
    evidence = lambda rows, targets: [  # noqa: E731
        ExactPosterior(k, rows, targets, noise=v) for k, v in zip(kernels, (0.1, 0.3))
    ]
    before = MixturePosterior(evidence(X, Y), [0.3, 0.7])
    after = before.condition_on(MORE, VALUES)
    rows, targets = np.vstack([X, MORE]), np.append(Y, VALUES)
    refitted = evidence(rows, targets)
    logs = [
        new.log_marginal_likelihood - old.log_marginal_likelihood
        for new, old in zip(refitted, before.posteriors)
    ]
    odds = np.log(0.3 / 0.7) + logs[0] - logs[1]
    np.testing.assert_allclose(np.log(after.weights[0] / after.weights[1]), odds, rtol=1e-10)
    agree(after, MixturePosterior(refitted, after.weights))


def test_tensors():
    torch = pytest.importorskip("torch")
    tensor = lambda a: torch.as_tensor(a, dtype=torch.float64)  # noqa: E731
    before = ExactPosterior(KERNEL, tensor(X), tensor(Y), noise=0.05)
    after = before.condition_on(tensor(MORE), tensor(VALUES))
    host = ExactPosterior(KERNEL, X, Y, noise=0.05).condition_on(MORE, VALUES)
    assert isinstance(after.alpha, torch.Tensor)
    mean, cov = after.predict(tensor(AT), return_cov=True)
    np.testing.assert_allclose(mean.numpy(), host.predict(AT), rtol=1e-10)
    np.testing.assert_allclose(
        cov.numpy(), host.predict(AT, return_cov=True)[1], atol=1e-12, rtol=0
    )
    one = before.condition_on(tensor(MORE[0]), tensor(0.4), tensor(0.05))
    np.testing.assert_allclose(
        one.log_marginal_likelihood,
        ExactPosterior(
            KERNEL, np.vstack([X, MORE[:1]]), np.append(Y, 0.4), noise=0.05
        ).log_marginal_likelihood,
        rtol=1e-12,
    )


def test_the_same_row_again():
    before = ExactPosterior(KERNEL, X, Y, noise=1e-17)
    same = r"^noise: .* 41 training targets is singular to rounding: rows 7 and 40 of X are equal"
    with pytest.raises(NotPositiveDefiniteError, match=same):
        before.condition_on(X[7], 1.0)
    with pytest.raises(NotPositiveDefiniteError, match=r"rows 40 and 41 of X are equal"):
        before.condition_on(MORE[[0, 0]], [1.0, 1.0], 0.0)
    agree(
        ExactPosterior(KERNEL, X, Y, noise=0.1).condition_on(X[7], 1.0),
        ExactPosterior(KERNEL, np.vstack([X, X[7]]), np.append(Y, 1.0), noise=0.1),
    )


def test_what_cannot_be_conditioned_is_refused_by_name():
    exact = ExactPosterior(KERNEL, X, Y, noise=0.1)
    several = MultiOutputPosterior.coregionalised(
        KERNEL, X, np.column_stack([Y, X[:, 0]]), covariance=[[1.0, 0.3], [0.3, 1.0]], noise=0.1
    )
    tasks = MultiTaskPosterior(
        KERNEL, X, Y, (X[:, 0] > 0).astype(int), covariance=np.eye(2) + 0.2, noise=0.1
    )
    refused = {
        "LaplacePosterior: a label is not": LaplacePosterior(KERNEL, X, (Y > 0).astype(float)),
        "MultiOutputPosterior: a measurement is of one output": several,
        "CombinationPosterior: a measurement of a sum makes its 2 parts": several["y0"],
        "CombinationPosterior: with the coefficient 0": CombinationPosterior([exact], [0.0]),
        "MultiTaskPosterior: a measurement is of one output": tasks,
        "TaskPosterior: it cannot be conditioned": tasks["y0"],
    }
    for message, posterior in refused.items():
        with pytest.raises(UnsupportedModelError, match=f"^{message}"):
            posterior.condition_on(MORE[0], 1.0, 0.1)
    uneven = ExactPosterior(KERNEL, X, Y, noise=np.linspace(0.1, 0.2, 40))
    with pytest.raises(InvalidInputError, match=r"^noise: ExactPosterior does not have one noise"):
        uneven.condition_on(MORE[0], 1.0)


@pytest.mark.parametrize(
    ("x", "y", "noise", "message"),
    [
        (MORE, VALUES[:2], None, "y: expected 3 values"),
        (MORE[0], np.nan, None, "y: expected finite numbers"),
        (MORE[0], "1", None, "y: expected real numbers"),
        (MORE[0, :2], 1.0, None, "x: expected 3 columns, got 2"),
        (MORE * np.nan, VALUES, None, "x: expected finite numbers"),
        (MORE[:0], [], None, "x: expected at least one row"),
        (1.0, 1.0, None, "x: expected rows"),
        (1e200 * MORE, VALUES, None, "x: expected rows within"),
        (MORE, VALUES, -0.1, "noise: expected variances, 0 or larger"),
        (MORE, VALUES, [0.1, 0.2], "noise: expected one variance or one per row"),
        (MORE, VALUES, np.inf, "noise: expected finite numbers"),
    ],
)
def test_bad_measurements(x, y, noise, message):
    with pytest.raises(InvalidInputError, match=f"^{message}"):
        ExactPosterior(KERNEL, X, Y, noise=0.1).condition_on(x, y, noise)


def test_notes_and_names_stay():
    from gpattr.adapters.foreign import with_note

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    before = with_note(ExactPosterior(KERNEL, frame, Y, noise=0.1), "as it was")
    after = before.condition_on(MORE[0], 1.0)
    assert (after.note, after.feature_names) == ("as it was", ("a", "b", "c"))
    assert not after.factor.flags.writeable
    assert before.factor.shape == (40, 40)


def test_it_takes_far_less_than_fitting_again():
    rows = np.random.default_rng(0).normal(size=(1500, 3))
    before = ExactPosterior(KERNEL, rows, rows[:, 0], noise=0.1)

    def seconds(call):
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    again = lambda: ExactPosterior(KERNEL, rows, rows[:, 0], noise=0.1)  # noqa: E731
    update = min(seconds(lambda: before.condition_on(MORE[0], 1.0)) for _ in range(3))
    assert update < 0.5 * min(seconds(again) for _ in range(3))


# Models of other libraries, fitted again at the same hyperparameters and in the same units.


def test_scikit_learn():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    y = 40.0 + 7.0 * Y
    kernel = ConstantKernel(1.3) * RBF([0.8, 1.1, 1.5]) + WhiteKernel(0.05)
    model = GaussianProcessRegressor(kernel, alpha=0.01, normalize_y=True, optimizer=None).fit(X, y)
    values = 40.0 + 7.0 * VALUES
    after = gpattr.as_posterior(model).condition_on(MORE, values)
    centre, unit = model._y_train_mean, model._y_train_std
    again = GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None)
    again.fit(np.vstack([X, MORE]), (np.append(y, values) - centre) / unit)
    mean, cov = again.predict(AT, return_cov=True)
    found = after.predict(AT, return_cov=True)
    np.testing.assert_allclose(found[0], centre + unit * mean, rtol=1e-10)
    latent = unit**2 * (cov - 0.05 * np.eye(5))
    np.testing.assert_allclose(found[1], latent, rtol=0, atol=1e-9 * unit**2)


def test_botorch():
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("botorch")
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize, Standardize
    from botorch.settings import validate_input_scaling

    tensor = lambda a: torch.as_tensor(a, dtype=torch.float64)  # noqa: E731
    y = tensor(40.0 + 7.0 * Y)[:, None]
    model = SingleTaskGP(
        tensor(X), y, input_transform=Normalize(3), outcome_transform=Standardize(1)
    )
    model.eval()
    values = 40.0 + 7.0 * VALUES
    after = gpattr.as_posterior(model).condition_on(MORE, values)
    # The same model of all rows, whose transforms are those that were learned before.
    centre, unit = float(model.outcome_transform.means), float(model.outcome_transform.stdvs)
    inside = model.input_transform
    rows = inside(tensor(np.vstack([X, MORE])))
    targets = (tensor(np.append(y[:, 0].numpy(), values))[:, None] - centre) / unit
    with validate_input_scaling(False):
        again = SingleTaskGP(rows, targets, outcome_transform=None)
    state = {k: v for k, v in model.state_dict().items() if "transform" not in k}
    again.load_state_dict(state)
    posterior = again.posterior(inside(tensor(AT)))
    mean, cov = posterior.mean[:, 0].detach(), posterior.distribution.covariance_matrix.detach()
    found = after.predict(AT, return_cov=True)
    np.testing.assert_allclose(np.asarray(found[0]), centre + unit * mean.numpy(), rtol=1e-8)
    np.testing.assert_allclose(
        np.asarray(found[1]), unit**2 * cov.numpy(), rtol=0, atol=1e-8 * unit**2
    )
