"""BoTorch's input transforms: attributions in the user's units against the model's own joint
posterior along the path.
"""

import copy
from functools import partial

import numpy as np
import pytest
import torch
from botorch.models import MixedSingleTaskGP, SingleTaskGP, SingleTaskVariationalGP
from botorch.models.transforms.input import (
    AffineInputTransform,
    AppendFeatures,
    ChainedInputTransform,
    FilterFeatures,
    InputStandardize,
    Log10,
    Normalize,
    NumericToCategoricalEncoding,
    OneHotToNumeric,
    Round,
    Warp,
)
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import LinearMean
from tests.reference.brute_force import assert_same_attributions
from tests.reference.gpytorch_settings import exact_settings
from torch.nn.functional import one_hot

import gpattr
from gpattr import Explainer
from gpattr.adapters import columns
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import Matern52, Select, SquaredExponential
from gpattr.means import Linear
from gpattr.posteriors import ExactPosterior

IGNORED = ("botorch.exceptions.warnings.BotorchWarning", "UserWarning", "DeprecationWarning")
pytestmark = [pytest.mark.filterwarnings(f"ignore::{warning}") for warning in IGNORED]
GENERATOR = torch.Generator().manual_seed(0)
X = torch.rand(14, 3, dtype=torch.float64, generator=GENERATOR)
Y = torch.sin(3.0 * X[:, :1]) + X[:, 1:2] ** 2 + X[:, 2:]
BOX = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
WIDE = torch.tensor([[0.0, 1.0, 2.0], [4.0, 5.0, 6.0]], dtype=torch.float64)


def warp(d, indices, a, b, **options):
    """A warping with concentrations a and b, as if it had been learned."""
    made = Warp(d, indices=indices, **options)
    made.concentration1.data = torch.tensor(a, dtype=torch.float64)
    made.concentration0.data = torch.tensor(b, dtype=torch.float64)
    return made


def joint_of(model):
    held = copy.deepcopy(model).eval()

    def joint(points):
        with exact_settings(), torch.no_grad():
            result = held.posterior(torch.tensor(points))
            return result.mean.numpy()[:, 0], result.distribution.covariance_matrix.numpy()

    return joint


def predicted(model, rows):
    with torch.no_grad():
        return copy.deepcopy(model).eval().posterior(rows).mean[:, 0].numpy()


TRANSFORMS = {
    "warped": lambda: warp(3, [0, 2], [1.5, 0.6], [0.7, 2.0], bounds=BOX),
    "logarithms": lambda: ChainedInputTransform(a=Log10([0, 2]), b=Normalize(3)),
    "reversed": lambda: ChainedInputTransform(
        a=Normalize(3, bounds=WIDE, reverse=True), b=InputStandardize(3)
    ),
    "powers of ten": lambda: ChainedInputTransform(a=Log10([1], reverse=True), b=Normalize(3)),
    "unwarped": lambda: warp(3, [1], [1.2], [1.4], bounds=BOX, reverse=True),
    "filtered": lambda: ChainedInputTransform(
        a=FilterFeatures(torch.tensor([2, 0])), b=Normalize(2)
    ),
    "everything": lambda: ChainedInputTransform(
        a=Log10([1]),
        b=AffineInputTransform(3, torch.tensor([2.0, 3.0, 0.5]).double(), torch.ones(3).double()),
        c=FilterFeatures(torch.tensor([1, 2])),
        d=warp(
            2, [1], [2.0], [1.3], bounds=2.0 * torch.tensor([[-1.0, -1.0], [1.0, 1.0]]).double()
        ),
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_paths_are_straight_in_the_users_units(name):
    rows = X + 0.1 * (name in ("logarithms", "everything"))
    model = SingleTaskGP(rows, Y, input_transform=TRANSFORMS[name]())
    start = rows[0].numpy()
    explainer = Explainer(model, start)
    ex = explainer(rows[1:2].numpy())
    assert ex.method == ("closed form" if name in ("reversed", "filtered") else "quadrature")
    assert_same_attributions(ex, joint_of(model), start, panels=2)
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-8)
    np.testing.assert_allclose(ex.predictions, predicted(model, rows[1:2]), rtol=1e-9)
    np.testing.assert_allclose(Explainer(model).baseline, rows.mean(dim=0).numpy(), rtol=1e-8)
    if name in ("filtered", "everything"):  # a column that the model does not see
        unseen = 1 if name == "filtered" else 0
        assert ex.values[0, unseen] == 0.0
        assert ex.std[0, unseen] == 0.0


def test_only_parts_that_see_a_warped_column_are_integrated():
    kernel = ScaleKernel(RBFKernel(active_dims=[0])) + RBFKernel(active_dims=[1, 2])
    transform = warp(3, [0], [1.5], [0.7], bounds=BOX)
    model = SingleTaskGP(X, Y, covar_module=kernel, input_transform=transform)
    ex = Explainer(model, X[0].numpy())(X[1:2].numpy())
    assert ex.method == "closed form + quadrature"
    assert_same_attributions(ex, joint_of(model), X[0].numpy(), panels=2)


def test_means_of_warped_columns():
    model = SingleTaskGP(
        X, Y, mean_module=LinearMean(3), input_transform=warp(3, [1], [1.5], [0.7], bounds=BOX)
    )
    model.mean_module.weights.data = torch.tensor([[1.0], [-2.0], [0.5]], dtype=torch.float64)
    ex = Explainer(model, X[0].numpy())(X[1:2].numpy())
    assert_same_attributions(ex, joint_of(model), X[0].numpy(), panels=2)


def test_rows_on_the_border_where_slopes_are_steep():
    """Bounds learned from the data put rows on them; concentrations below 1 are steep there."""
    model = SingleTaskGP(X, Y, input_transform=warp(3, [0], [0.6], [0.7]))
    ends = np.stack([X.min(dim=0).values.numpy(), X.max(dim=0).values.numpy()])
    ex = Explainer(model, ends[0])(ends[1:])
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-8)
    # The same function of the warped column, along the same path as a function of 10^(8t − 8).
    inner = SingleTaskGP(X, Y, input_transform=warp(3, [0], [0.6], [0.7]))
    t = np.concatenate([[0.0], np.geomspace(1e-9, 0.5, 4000)])
    t = np.concatenate([t, (1.0 - t)[::-1][1:]])
    path = torch.tensor(ends[0] + t[:, None] * (ends[1] - ends[0]), requires_grad=True)
    mean = inner.eval().posterior(path).mean.sum()
    (slopes,) = torch.autograd.grad(mean, path)
    brute = np.trapezoid(slopes.numpy(), t, axis=0) * (ends[1] - ends[0])
    np.testing.assert_allclose(ex.values[0], brute, rtol=0.0, atol=1e-5 * np.abs(brute).max())


def test_whole_numbers_are_relaxed_and_said_to_be():
    """The usual chain: rows between 0 and 1 are brought to their units, rounded, and scaled."""
    counts = torch.round(4.0 * X[:, :1] + 0.1)
    rows = torch.cat([counts, 10.0 * X[:, 1:]], 1)
    ranges = torch.tensor([[0.0, 0.0, 0.0], [5.0, 10.0, 10.0]], dtype=torch.float64)
    whole = {"transform_on_train": False}
    transform = ChainedInputTransform(
        a=Normalize(3, bounds=ranges, reverse=True, **whole),
        b=Round(integer_indices=[0], **whole),
        c=Normalize(3, bounds=ranges),
    )
    model = SingleTaskGP(rows, Y, input_transform=transform)
    scaled = rows / ranges[1]  # which is what the model takes
    ex = Explainer(model, scaled[0].numpy())(scaled[:4].numpy())
    assert "exact at whole numbers" in ex.method
    np.testing.assert_allclose(ex.predictions, predicted(model, scaled[:4]), rtol=1e-8)
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-9)
    relaxed = SingleTaskGP(scaled, Y, input_transform=Normalize(3, bounds=BOX))
    relaxed.load_state_dict(model.state_dict(), strict=False)
    np.testing.assert_allclose(
        ex.values, Explainer(relaxed, scaled[0].numpy())(scaled[:4].numpy()).values, atol=1e-7
    )
    for approximate in (False, True):
        rounded = Round(integer_indices=[0], approximate=approximate)
        model = SingleTaskGP(
            rows, Y, input_transform=ChainedInputTransform(a=rounded, b=Normalize(3))
        )
        ex = Explainer(model, rows[0].numpy())(rows[:4].numpy())
        np.testing.assert_allclose(ex.predictions, predicted(model, rows[:4]), rtol=1e-8)
    choices = torch.cat([one_hot(torch.arange(14) % 3).double(), X[:, :1]], 1)
    model = SingleTaskGP(choices, Y, input_transform=Round(categorical_features={0: 3}))
    ex = Explainer(model, choices[0].numpy())(choices[:4].numpy())
    np.testing.assert_allclose(ex.predictions, predicted(model, choices[:4]), rtol=1e-8)


CODES = torch.cat([X[:, :1], torch.arange(14)[:, None] % 3.0, X[:, 1:2]], 1)
VECTORS = torch.tensor([[0.1, 2.0, 0.0], [0.7, 1.0, 0.5], [0.3, 4.0, 1.5]], dtype=torch.float64)


@pytest.mark.parametrize("encoding", ["one-hot", "descriptors"])
def test_codes_that_the_model_encodes(encoding):
    encode = partial(one_hot, num_classes=3) if encoding == "one-hot" else VECTORS.__getitem__
    transform = ChainedInputTransform(
        a=NumericToCategoricalEncoding(3, {1: 3}, {1: encode}), b=Normalize(5)
    )
    targets = Y + CODES[:, 1:2]
    model = SingleTaskGP(CODES, targets, input_transform=transform)
    start, stop = CODES[0].numpy(), CODES[4].numpy()
    ex = Explainer(model, start)(CODES[4:6])
    assert ex.feature_names == ("x0", "x1", "x2")
    assert ex.labels["x1"] == ("1", "2")
    np.testing.assert_allclose(ex.predictions, predicted(model, CODES[4:6]), rtol=1e-8)
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-8)
    # The model without its first step takes vectors; the path is straight between them.
    bare = SingleTaskGP(transform["a"](CODES), targets, input_transform=Normalize(5))
    bare.load_state_dict(
        {
            name.replace("input_transform.b.", "input_transform."): value
            for name, value in model.state_dict().items()
        }
    )
    vectors = transform["a"](CODES).numpy()
    inner = Explainer(bare, vectors[0])(vectors[4:5])
    summed = [inner.values[0, 0], inner.values[0, 1:4].sum(), inner.values[0, 4]]
    np.testing.assert_allclose(ex.values[0], summed, atol=1e-7 * np.abs(summed).max())
    ones = np.zeros((3, 5))
    ones[0, 0] = ones[1, 1] = ones[1, 2] = ones[1, 3] = ones[2, 4] = 1.0
    np.testing.assert_allclose(ex.cov[0], ones @ inner.cov[0] @ ones.T, atol=1e-7)
    with pytest.raises(InvalidInputError, match=r"expected one of \[0, 1, 2\] in column 'x1'"):
        Explainer(model, start)(stop[None] + 2.0)


def test_columns_of_zeros_and_ones_that_the_model_decodes():
    """Rows have one column of codes for each category, and categories jump."""
    raw = torch.cat([X[:, :1], one_hot(torch.arange(14) % 3).double(), X[:, 1:2]], 1)
    # As the library asks for: the model is given codes, and takes columns of 0 and 1.
    decoding = OneHotToNumeric(5, {1: 3}, transform_on_train=False)
    transform = ChainedInputTransform(a=decoding, b=Normalize(3, indices=[0, 2]))
    options = {"cont_kernel_factory": get_covar_module_with_dim_scaled_prior}
    model = MixedSingleTaskGP(
        CODES, Y + CODES[:, 1:2], cat_dims=[1], input_transform=transform, **options
    )
    plain = MixedSingleTaskGP(
        CODES,
        Y + CODES[:, 1:2],
        cat_dims=[1],
        input_transform=Normalize(3, indices=[0, 2]),
        **options,
    )
    ex = Explainer(model, CODES[0].numpy())(CODES[1:4].numpy())
    np.testing.assert_allclose(ex.predictions, predicted(model, raw[1:4]), rtol=1e-8)
    same = Explainer(plain, CODES[0].numpy())(CODES[1:4].numpy())
    np.testing.assert_allclose(ex.values, same.values, rtol=0.0, atol=1e-8)


def test_variational_models_behind_warpings():
    model = SingleTaskVariationalGP(
        X, Y, inducing_points=6, input_transform=warp(3, [0], [1.5], [0.7], bounds=BOX)
    )
    model.train()
    model(X)
    model.eval()
    ex = Explainer(model, X[0].numpy())(X[1:2].numpy())

    def joint(points):
        mean, cov = joint_of(model)(points)  # with a jitter that is no part of the function
        return mean, cov - model.model.variational_strategy.jitter_val * np.eye(len(cov))

    assert_same_attributions(ex, joint, X[0].numpy(), panels=2)


@pytest.mark.parametrize(
    ("transform", "words"),
    [
        (
            lambda: AppendFeatures(torch.rand(2, 1).double()),
            "AppendFeatures is not supported, since it makes several rows of one",
        ),
        (
            lambda: ChainedInputTransform(
                a=Normalize(3), b=NumericToCategoricalEncoding(3, {1: 3}, {1: VECTORS.__getitem__})
            ),
            "NumericToCategoricalEncoding of a column that is transformed before",
        ),
    ],
)
def test_what_is_not_supported_is_refused_with_the_reason(transform, words):
    made = transform()
    rows = torch.cat([X, X[:, :1]], 1) if isinstance(made, AppendFeatures) else CODES
    with pytest.raises(UnsupportedModelError, match=words):
        gpattr.as_posterior(SingleTaskGP(rows, Y, input_transform=made))


def test_logarithms_of_what_is_not_positive():
    model = SingleTaskGP(X + 0.1, Y, input_transform=Log10([2]))
    with pytest.raises(InvalidInputError, match="logarithm of column x2; expected values larger"):
        Explainer(model)(np.array([[0.5, 0.5, 0.0]]))


@pytest.mark.parametrize(
    "part",
    [
        columns.Affine(0.3, -2.0),
        columns.Log("x0"),
        columns.Logit("x0"),
        columns.Kumaraswamy(0.6, 1.7, 1e-7),
        columns.Inverse(columns.Kumaraswamy(0.6, 1.7, 1e-7)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_slopes_and_inverses_of_maps(part):
    x = np.linspace(0.1, 0.9, 9)
    numeric = (part.value(x + 1e-6) - part.value(x - 1e-6)) / 2e-6
    np.testing.assert_allclose(part.slope(x), numeric, rtol=1e-7)
    np.testing.assert_allclose(part.inverse(part.value(x)), x, rtol=1e-12)


def test_a_posterior_behind_maps_predicts_what_it_predicts_of_their_values():
    """Also with a mean that is not constant, and where only some of a kernel's parts see a map."""
    rng = np.random.default_rng(0)
    U = rng.normal(size=(12, 2))
    kernel = Select(Matern52(0.8), [1]) + SquaredExponential([1.2, 0.7])
    inner = ExactPosterior(kernel, U, np.sin(U).sum(axis=1), noise=0.05, mean=Linear([0.5, -1.0]))
    maps = {0: (columns.Log("x0"), columns.Affine(0.2, 0.9))}
    posterior = columns.posterior_behind(inner, maps)
    W = U.copy()
    W[:, 0] = columns.inverse(maps[0], U[:, 0])
    for ours, known in zip(
        posterior.predict(W, return_cov=True), inner.predict(U, return_cov=True), strict=True
    ):
        np.testing.assert_allclose(ours, known, rtol=1e-9, atol=1e-12)
    gpattr.testing.check_posterior(posterior, W)
