"""Acquisition functions of BoTorch, and functions of PyTorch, against gpattr's own quantities."""

import numpy as np
import pytest
import torch
from botorch.acquisition import (
    ExpectedImprovement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
    UpperConfidenceBound,
    qExpectedImprovement,
)
from botorch.models import MixedSingleTaskGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.sampling import SobolQMCNormalSampler

from gpattr import Explainer
from gpattr import quantities as q
from gpattr.distributions import Point
from gpattr.exceptions import InvalidInputError, UnsupportedModelError

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 10, size=(15, 3))
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
ROWS = RNG.uniform(0, 10, size=(3, 3))
BEST = float(Y.max())
# BoTorch advises against its plain EI and against float32, which people hold all the same.
pytestmark = [
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.NumericsWarning"),
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning"),
]


@pytest.fixture(scope="module")
def model():
    return SingleTaskGP(
        torch.tensor(X),
        torch.tensor(Y)[:, None],
        input_transform=Normalize(3),
        outcome_transform=Standardize(1),
    ).eval()


PAIRS = {
    "EI": (lambda m: ExpectedImprovement(m, BEST), q.ExpectedImprovement(BEST)),
    "minimising": (
        lambda m: ExpectedImprovement(m, 0.1, maximize=False),
        q.ExpectedImprovement(0.1, maximize=False),
    ),
    "log EI": (lambda m: LogExpectedImprovement(m, BEST), q.LogExpectedImprovement(BEST)),
    "PI": (lambda m: ProbabilityOfImprovement(m, BEST), q.ProbabilityOfImprovement(BEST)),
    "UCB": (lambda m: UpperConfidenceBound(m, beta=4.0), q.UpperConfidenceBound(2.0)),
}


@pytest.mark.parametrize("attribution", ["integrated_gradients", "shapley"])
@pytest.mark.parametrize("name", PAIRS)
def test_botorch_and_gpattr_agree(model, name, attribution):
    make, own = PAIRS[name]
    function = make(model)
    theirs = Explainer(model, quantity=q.Acquisition(function), attribution=attribution)(ROWS)
    ours = Explainer(model, quantity=own, attribution=attribution)(ROWS)
    size = np.abs(ours.values).max()
    # BoTorch bounds variances from below, and adds a jitter, of about 1e-8.
    np.testing.assert_allclose(theirs.values, ours.values, rtol=0.0, atol=1e-6 * size)
    assert np.abs(theirs.delta).max() <= 1e-10 * max(size, np.abs(theirs.predictions).max())
    assert isinstance(theirs.distribution, Point)
    assert theirs.quantity == f"acquisition function {type(function).__name__}"


def test_a_batch_acquisition_function(model):
    sampler = SobolQMCNormalSampler(torch.Size([64]), seed=0)
    function = qExpectedImprovement(model, BEST, sampler=sampler)
    explainer = Explainer(model, quantity=q.Acquisition(function, name="gain"), tolerance=1e-4)
    ex = explainer(X[:2])
    assert ex.quantity == "gain"
    assert np.abs(ex.delta).max() <= ex.error.max() <= 1e-4 * np.abs(ex.predictions).max() + 1e-12


def test_functions_of_pytorch(model):
    def bowl(x):
        return (x**2 * torch.tensor([1.0, 2.0, 0.0], dtype=x.dtype)).sum(dim=1)

    ex = Explainer(model, np.zeros(3), quantity=q.Acquisition(bowl))(X[:4])
    np.testing.assert_allclose(ex.values, X[:4] ** 2 * [1.0, 2.0, 0.0], rtol=1e-12, atol=1e-12)
    assert ex.quantity == "acquisition function bowl"


def test_kinks_of_a_function():
    """Each |xᵢ − 0.3| has a kink that no rule knows of."""
    from gpattr.kernels import SquaredExponential
    from gpattr.posteriors import ExactPosterior

    posterior = ExactPosterior(SquaredExponential(3.0), X, Y, noise=0.1)

    def kinked(x):
        return (x - 0.3).abs().sum(dim=1)

    row = np.array([[1.0, 2.0, -1.0]])
    ex = Explainer(posterior, np.zeros(3), quantity=q.Acquisition(kinked))(row)
    np.testing.assert_allclose(ex.values, np.abs(row - 0.3) - 0.3, rtol=0.0, atol=1e-9)


def test_float32_is_good_to_its_own_precision():
    model = SingleTaskGP(torch.tensor(X / 10).float(), torch.tensor(Y)[:, None].float()).eval()
    function = UpperConfidenceBound(model, beta=4.0)
    ex = Explainer(model, quantity=q.Acquisition(function))(X[:2] / 10)
    assert np.abs(ex.delta).max() <= 1e-4 * np.abs(ex.predictions).max()
    assert np.abs(ex.delta).max() <= ex.error.max()


def no_gradient(x):
    return x.detach()[:, 0]


def steps(x):
    return torch.floor(x[:, 0]).detach() + 0.0


def roots(x):
    return torch.sqrt(x[:, 0] - 5.0)


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (
            no_gradient,
            UnsupportedModelError,
            "quantity: the .* no_gradient has no",
        ),
        (steps, UnsupportedModelError, "steps has no gradient"),
        (roots, InvalidInputError, "acquisition function roots .* nan"),
        (lambda x: x, InvalidInputError, "one for each row"),
        (lambda x: 1.0, InvalidInputError, "one for each row"),
        (lambda x: x[:, 0] * 1j, InvalidInputError, "real numbers, .* got torch.complex128"),
        (lambda x: x[:, 0].sum(), InvalidInputError, "one for each row"),
    ],
)
def test_bad_functions(model, function, error, words):
    with pytest.raises(error, match=words):
        Explainer(model, quantity=q.Acquisition(function))(X[:2])


def test_what_is_no_function():
    with pytest.raises(InvalidInputError, match="function: "):
        q.Acquisition("EI")


def test_codes_of_categories():
    """An acquisition function gets the codes that its model was trained on."""
    rows = np.column_stack([X[:, 0], np.arange(15) % 3])
    mixed = MixedSingleTaskGP(torch.tensor(rows / [10, 1]), torch.tensor(Y)[:, None], cat_dims=[1])
    at, start = rows[1:4] / [10, 1], rows[0] / [10, 1]
    theirs = q.Acquisition(UpperConfidenceBound(mixed, beta=4.0))
    options = {"attribution": "shapley"}
    ex = Explainer(mixed, start, quantity=theirs, **options)(at)
    own = Explainer(mixed, start, quantity=q.UpperConfidenceBound(2.0), **options)(at)
    np.testing.assert_allclose(ex.values, own.values, rtol=1e-6, atol=1e-8)
    with pytest.raises(UnsupportedModelError, match="no gradient between categories"):
        Explainer(mixed, start, quantity=theirs)(at)
