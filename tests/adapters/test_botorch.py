"""BoTorch's models as they are, in the units of their users."""

import copy

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.fit import fit_fully_bayesian_model_nuts
from botorch.models import (
    MixedSingleTaskGP,
    ModelListGP,
    MultiTaskGP,
    SingleTaskGP,
    SingleTaskVariationalGP,
)
from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
from botorch.models.kernels import CategoricalKernel
from botorch.models.map_saas import AdditiveMapSaasSingleTaskGP, EnsembleMapSaasSingleTaskGP
from botorch.models.transforms.input import ChainedInputTransform, InputStandardize, Normalize
from botorch.models.transforms.outcome import ChainedOutcomeTransform, Log, Standardize
from gpytorch.kernels import (
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from tests.reference.brute_force import OFFSETS, WEIGHTS, assert_same_attributions
from tests.reference.gpytorch_settings import exact_settings

import gpattr
from gpattr import Explainer
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.special.quadrature import gauss_legendre

# The library warns of data that are not scaled, which is what the transforms here are for, and of
# its own deprecations.
IGNORED = ("botorch.exceptions.warnings.BotorchWarning", "UserWarning", "DeprecationWarning")
pytestmark = [pytest.mark.filterwarnings(f"ignore::{warning}") for warning in IGNORED]
torch.manual_seed(0)
X = torch.rand(15, 3, dtype=torch.float64) * torch.tensor([1.0, 100.0, 0.1]) + torch.tensor(
    [0.0, -50.0, 3.0]
)
Y = torch.sin(3 * X[:, :1]) + 0.01 * X[:, 1:2] + 7.0
b, x = X[0].numpy(), X[1].numpy()
KERNELS = {
    "default": None,
    "Matern52": ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=3)),
    "Matern32": MaternKernel(nu=1.5),
    "RBF": ScaleKernel(RBFKernel()),
    "RQ": ScaleKernel(RQKernel(ard_num_dims=3)),
    "Periodic": PeriodicKernel() * RBFKernel(),
    "Linear": LinearKernel() + RBFKernel(),
    "Polynomial": PolynomialKernel(power=2) + RBFKernel(active_dims=[0, 2]),
    "selected": ScaleKernel(RBFKernel(active_dims=[1]))
    + RBFKernel(active_dims=[0]) * MaternKernel(nu=2.5, active_dims=[2]),
    "nested": ScaleKernel(ScaleKernel(RBFKernel()) + LinearKernel()) * RBFKernel(),
}


def joint_of(model):
    """What `posterior` says of f in the user's units, all points together."""
    held = copy.deepcopy(model).eval()

    def joint(points):
        with exact_settings(), torch.no_grad():
            result = held.posterior(torch.tensor(points))
            return result.mean.numpy()[:, 0], result.distribution.covariance_matrix.numpy()

    return joint


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    model = SingleTaskGP(
        X, Y, covar_module=copy.deepcopy(KERNELS[name]), input_transform=Normalize(3)
    )
    ex = Explainer(model, b)(x[None])
    kinks = {"Matern32": 1.5, "Matern52": 2.5, "selected": 2.5}.get(name)
    assert_same_attributions(
        ex, joint_of(model), b, kinks=kinks, panels=4 if name == "Periodic" else 1
    )
    with torch.no_grad():
        theirs = copy.deepcopy(model).posterior(X[:4])
    posterior = gpattr.as_posterior(model)
    mean, std = posterior.predict(X[:4].numpy(), return_std=True)
    np.testing.assert_allclose(mean, theirs.mean.numpy()[:, 0], rtol=1e-8)
    np.testing.assert_allclose(std**2, theirs.variance.numpy()[:, 0], atol=1e-8 * float(Y.var()))


TRANSFORMS = {
    "none": {"outcome_transform": None, "input_transform": None},
    "normalised": {"input_transform": Normalize(3)},
    "some columns": {"input_transform": Normalize(3, indices=[0, 2])},
    "standardised": {"input_transform": InputStandardize(3)},
    "chained": {
        "input_transform": ChainedInputTransform(first=Normalize(3), second=InputStandardize(3))
    },
    "outcomes": {"outcome_transform": Standardize(1)},
    "outcomes twice": {
        "outcome_transform": ChainedOutcomeTransform(a=Standardize(1), b=Standardize(1))
    },
    "known noise": {
        "train_Yvar": torch.linspace(0.001, 0.1, 15, dtype=torch.float64)[:, None],
        "input_transform": Normalize(3),
    },
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_transforms(name, mode):
    rows = X / torch.tensor(
        [1.0, 100.0, 0.1]
    )  # so that differences resolve the path where nothing is normalised
    model = SingleTaskGP(rows, Y, **copy.deepcopy(TRANSFORMS[name]))
    model.train() if mode == "train" else model.eval()
    inputs, state = model.train_inputs[0].clone(), copy.deepcopy(model.state_dict())
    ex = Explainer(model)(rows[1:2].numpy())
    assert_same_attributions(ex, joint_of(model), ex.baselines[0])
    np.testing.assert_allclose(ex.baselines[0], rows.mean(dim=0).numpy(), rtol=1e-9)
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-9)
    assert model.training is (mode == "train")
    assert torch.equal(model.train_inputs[0], inputs)
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in state.items())


def test_outcomes_that_are_not_affine_are_explained_on_their_own_scale():
    model = SingleTaskGP(X, Y, outcome_transform=Log(), input_transform=Normalize(3))
    ex = Explainer(model, b)(x[None])
    assert "of the latent function: the outcome transform is not affine" in ex.method
    named = Explainer(model, b, target_name="cost (€)")(x[None])
    assert named.quantity == "latent function of cost"
    held = copy.deepcopy(model).eval()
    with torch.no_grad():
        median = held(held.transform_inputs(torch.tensor(x[None]))).mean
    assert ex.predictions[0] == pytest.approx(median.item(), rel=1e-9)


def test_several_outcomes():
    both = torch.cat([Y, 100.0 * Y**2], dim=1)
    model = SingleTaskGP(X, both, input_transform=Normalize(3))
    ex = Explainer(model, b)(x[None])
    with torch.no_grad():
        theirs = copy.deepcopy(model).posterior(torch.tensor(x[None]))
    np.testing.assert_allclose(ex.predictions, theirs.mean.numpy(), rtol=1e-9)
    for o in range(2):
        single = SingleTaskGP(X, both[:, o : o + 1], input_transform=Normalize(3))
        np.testing.assert_allclose(
            ex.values[..., o], Explainer(single, b)(x[None]).values, rtol=1e-9
        )
        np.testing.assert_allclose(ex.cov[..., o], Explainer(single, b)(x[None]).cov, rtol=1e-8)
    listed = ModelListGP(
        SingleTaskGP(X, Y), SingleTaskGP(X, 100.0 * Y**2, input_transform=Normalize(3))
    )
    ex = Explainer(listed, b)(x[None])
    with torch.no_grad():
        theirs = copy.deepcopy(listed).posterior(torch.tensor(x[None]))
    np.testing.assert_allclose(ex.predictions, theirs.mean.numpy(), rtol=1e-8)


def test_variational_models():
    model = SingleTaskVariationalGP(
        X, Y, inducing_points=6, outcome_transform=Standardize(1), input_transform=Normalize(3)
    )
    model.train()
    model(X)
    model.eval()
    ex = Explainer(model, b)(x[None])
    with exact_settings(), torch.no_grad():
        theirs = copy.deepcopy(model).posterior(torch.tensor(x[None]))
    assert ex.predictions[0] == pytest.approx(theirs.mean.item(), rel=1e-9)
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-9)


@pytest.fixture(scope="module", params=["samples", pytest.param("NUTS", marks=pytest.mark.slow)])
def saas(request):
    pytest.importorskip("numpyro")
    model = SaasFullyBayesianSingleTaskGP(
        X, Y, outcome_transform=Standardize(1), input_transform=Normalize(3)
    )
    if request.param == "NUTS":
        fit_fully_bayesian_model_nuts(
            model,
            max_tree_depth=2,
            warmup_steps=4,
            num_samples=4,
            thinning=1,
            disable_progbar=True,
        )
        return model
    rng = np.random.default_rng(0)
    shapes = {"lengthscale": (4, 1, 3), "outputscale": (4,), "mean": (4,), "noise": (4, 1)}
    samples = {name: 0.1 + torch.tensor(rng.random(shape)) for name, shape in shapes.items()}
    model.load_mcmc_samples(samples)
    return model


def test_fully_bayesian_models_are_mixtures(saas):
    state = copy.deepcopy(saas.state_dict())
    ex = Explainer(saas, b)(x[None])
    assert len(ex.component_weights) == 4
    with exact_settings(), torch.no_grad():
        theirs = copy.deepcopy(saas).posterior(torch.tensor(np.stack([x, b])))
    assert ex.predictions[0] - ex.base_values[0] == pytest.approx(
        float(theirs.mixture_mean[0] - theirs.mixture_mean[1]), abs=1e-9
    )
    _, std = gpattr.as_posterior(saas).predict(np.stack([x, b]), return_std=True)
    np.testing.assert_allclose(std**2, theirs.mixture_variance.numpy()[:, 0], rtol=1e-7)
    np.testing.assert_allclose(ex.values.sum(axis=1), ex.predictions - ex.base_values, atol=1e-9)
    assert (ex.share_between() > 0).any()
    assert all(torch.equal(value, saas.state_dict()[key]) for key, value in state.items())


def test_ensembles():
    ensemble = EnsembleMapSaasSingleTaskGP(X, Y, num_taus=3, input_transform=Normalize(3))
    ex = Explainer(ensemble, b)(x[None])
    with exact_settings(), torch.no_grad():
        theirs = copy.deepcopy(ensemble).eval().posterior(torch.tensor(x[None]))
    assert ex.predictions[0] == pytest.approx(float(theirs.mixture_mean), rel=1e-8)
    additive = AdditiveMapSaasSingleTaskGP(X, Y, num_taus=3, input_transform=Normalize(3))
    assert_same_attributions(Explainer(additive, b)(x[None]), joint_of(additive), b, kinks=2.5)


@pytest.mark.parametrize("normalise", [False, True])
def test_tasks(normalise):
    rows = X / torch.tensor([1.0, 100.0, 0.1])
    tasks = torch.tensor(np.random.default_rng(3).integers(0, 2, size=(15, 1)), dtype=torch.float64)
    transform = Normalize(4, indices=[0, 1, 2]) if normalise else None
    model = MultiTaskGP(
        torch.cat([rows, tasks], 1), Y + tasks, task_feature=-1, input_transform=transform
    )
    model.covar_module.kernels[1].raw_var.data += torch.tensor([0.5, -0.3], dtype=torch.float64)
    start, end = rows[0].numpy(), rows[1].numpy()
    explainer = Explainer(model, start)
    ex = explainer(end[None])
    held = copy.deepcopy(model).eval()

    def joint(points):
        with exact_settings(), torch.no_grad():
            result = held.posterior(torch.tensor(points))
            cov = result.distribution.covariance_matrix.numpy()
        n = len(points)
        interleaved = result.distribution._interleaved
        cov = (
            cov.reshape(n, 2, n, 2)
            if interleaved
            else cov.reshape(2, n, 2, n).transpose(1, 0, 3, 2)
        )
        return result.mean.numpy(), cov

    for o in range(2):

        def joint_of_task(points, o=o):
            mean, cov = joint(points)
            return mean[:, o], cov[:, o, :, o]

        assert_same_attributions(ex[f"y{o}"], joint_of_task, start)
    across = explainer.across_outputs(end[None])[0]
    np.testing.assert_allclose(across[:, 0, :, 0], ex["y0"].cov[0], rtol=1e-8, atol=1e-12)
    _, cov = joint(np.stack([end, start]))
    change = cov[0, 0, 0, 1] - cov[0, 0, 1, 1] - cov[1, 0, 0, 1] + cov[1, 0, 1, 1]
    assert across[:, 0, :, 1].sum() == pytest.approx(change, rel=1e-6)


CODES = torch.cat([X, torch.arange(15)[:, None] % 3.0, torch.arange(15)[:, None] % 2 * 5.0], 1)


def mixed(cat_dims=(3, -1), rows=CODES, targets=None, **options):
    targets = (
        Y + rows[:, -2:-1] * torch.sin(rows[:, :1]) + 0.1 * rows[:, -1:]
        if targets is None
        else targets
    )
    return MixedSingleTaskGP(
        rows,
        targets,
        cat_dims=list(cat_dims),
        **({"input_transform": Normalize(5, indices=[0, 1, 2])} | options),
    )


def jumped(joint, x, b, codes, kinks=None):
    """Mean and covariance of the attributions, from differences of the library's own predictions
    along both ways.
    """
    numbers = [i for i in range(len(x)) if i not in codes]
    t, w = gauss_legendre(16, 8 if kinks else 1)
    size = 1e-3 if kinks else 4e-3
    early, late = b.copy(), x.copy()
    early[codes], late[codes] = x[codes], b[codes]
    points, weights = (
        [b, early, late, x],
        [[0.0] * len(numbers) + [value] for value in (-0.5, 0.5, -0.5, 0.5)],
    )
    for start, stop in ((early, x), (b, late)):
        for share, weight in zip(t, w):
            for place, i in enumerate(numbers):
                step = size * (stop - start)[i]
                for offset, factor in zip(OFFSETS, WEIGHTS):
                    point = start + share * (stop - start)
                    point[i] += offset * step
                    points.append(point)
                    weights.append(
                        [
                            0.5 * weight * factor * 1e3 * (1 if kinks else 0.25) * (j == place)
                            for j in range(len(numbers) + 1)
                        ]
                    )
    mean, cov = joint(np.array(points))
    A = np.array(weights).T
    return A @ mean, A @ cov @ A.T


@pytest.mark.parametrize("name", ["default", pytest.param("Matern52", marks=pytest.mark.slow)])
def test_categories_jump(name):
    """All columns with categories are one feature: the mean of jumping at the start and at the end
    of the path.
    """
    model = (
        mixed()
        if name == "default"
        else mixed(cont_kernel_factory=lambda **options: MaternKernel(nu=2.5, **options))
    )
    start, stop = CODES[0].numpy(), CODES[4].numpy()
    ex = Explainer(model, start)(stop[None])
    assert ex.feature_names == ("x0", "x1", "x2", "x3 & x4")
    assert ex.method == (
        "closed form, categories jump"
        if name == "default"
        else "closed form + quadrature, categories jump"
    )
    mean, cov = jumped(joint_of(model), stop, start, [3, 4], kinks=name == "Matern52")
    np.testing.assert_allclose(ex.values[0], mean, atol=1e-6 * np.abs(mean).max())
    np.testing.assert_allclose(ex.cov[0], cov, atol=1e-4 * np.abs(cov).max())
    assert ex.delta[0] == pytest.approx(0.0, abs=1e-10)
    back = Explainer(model, stop)(start[None])
    np.testing.assert_allclose(back.values, -ex.values, atol=1e-10)
    np.testing.assert_allclose(back.cov, ex.cov, atol=1e-10)


@pytest.mark.slow
def test_rows_baselines_and_names_of_mixed_models():
    model = mixed()
    explainer = Explainer(model, feature_names=["flow", "temperature", "acid", "solvent", "vessel"])
    ex = explainer(CODES[:6])
    assert ex.feature_names == ("flow", "temperature", "acid", "solvent & vessel")
    assert ex.baseline_name == "mean of the training inputs, with the most frequent categories"
    with torch.no_grad():
        np.testing.assert_allclose(
            ex.predictions, model.posterior(CODES[:6]).mean[:, 0].numpy(), atol=1e-10
        )
        centre = torch.cat([X.mean(dim=0), torch.tensor([0.0, 0.0])])[None]
        np.testing.assert_allclose(
            ex.base_values[0], model.posterior(centre).mean.item(), atol=1e-10
        )
    named = pd.DataFrame(
        CODES[:6].numpy(), columns=["flow", "temperature", "acid", "solvent", "vessel"]
    )
    np.testing.assert_array_equal(explainer(named[named.columns[::-1]]).values, ex.values)
    np.testing.assert_array_equal(
        Explainer(model, named[:1])(named).feature_names, ex.feature_names
    )
    np.testing.assert_allclose(explainer(CODES[:6], uncertainty="std").std, ex.std, atol=1e-12)
    np.testing.assert_allclose(
        explainer.joint(CODES[:3]).diagonal(axis1=0, axis2=2).transpose(2, 0, 1),
        ex.cov[:3],
        atol=1e-10,
    )
    assert explainer.importance(CODES[:6]).feature_names == ex.feature_names
    shares = explainer.training_contributions(CODES[1], "solvent & vessel")
    assert shares.sum() == pytest.approx(ex.values[1, 3], abs=1e-10)
    median = Explainer(model, "median").baseline
    np.testing.assert_allclose(median[3:], [1.0, 0.0, 0.0, 1.0, 0.0])
    seldom = CODES.clone()
    seldom[:, 3] = torch.tensor(
        [0.0, 1.0, 2.0, 2.0, 0.0, 1.0, 2.0, 1.0, 2.0, 0.0, 2.0, 1.0, 2.0, 0.0, 1.0]
    )  # 2 is the most frequent
    np.testing.assert_allclose(
        Explainer(mixed(rows=seldom), "median").baseline[3:6], [0.0, 0.0, 1.0]
    )
    spread = Explainer(model, gpattr.Baselines(CODES[:4].numpy()))(CODES[4:5])
    single = [Explainer(model, CODES[i].numpy())(CODES[4:5]).values for i in range(4)]
    np.testing.assert_allclose(spread.values, np.mean(single, axis=0), atol=1e-10)
    own = explainer(CODES[:4], baselines=CODES[4:8])
    np.testing.assert_allclose(
        own.values[1], Explainer(model, CODES[5].numpy())(CODES[1:2]).values[0], atol=1e-10
    )


def test_mixed_models_of_several_outcomes_and_of_categories_alone():
    both = mixed(targets=torch.cat([Y, Y**2 + CODES[:, 3:4]], 1))
    explanations = Explainer(both, CODES[0].numpy())(CODES[4:5])
    for i, name in enumerate(("y0", "y1")):
        with torch.no_grad():
            assert explanations[name].predictions[0] == pytest.approx(
                both.posterior(CODES[4:5]).mean[0, i].item(), rel=1e-9
            )
        assert explanations[name].delta[0] == pytest.approx(0.0, abs=1e-8)
    assert Explainer(both, CODES[0].numpy()).across_outputs(CODES[4:5]).shape == (1, 4, 2, 4, 2)
    alone = mixed(cat_dims=(0, 1), rows=CODES[:, 3:], targets=Y, input_transform=None)
    ex = Explainer(alone, CODES[0, 3:].numpy())(CODES[4:5, 3:])
    assert ex.feature_names == ("x0 & x1",)
    assert ex.values[0, 0] == pytest.approx(ex.predictions[0] - ex.base_values[0], abs=1e-10)


@pytest.mark.slow
def test_categories_that_were_not_seen():
    model = mixed()
    row = CODES[:1].clone()
    row[0, 3] = 7.0
    with pytest.raises(
        InvalidInputError, match=r"X: expected one of \[0, 1, 2\] in column 'x3', got 7.0"
    ):
        Explainer(model)(row)
    known = gpattr.as_posterior(model, categories={3: [7]})
    ex = Explainer(known)(row)
    with torch.no_grad():
        assert ex.predictions[0] == pytest.approx(model.posterior(row).mean.item(), rel=1e-9)
    with pytest.raises(
        InvalidInputError,
        match=r"categories: expected columns with categories, of \[3, 4\], each once, got \[0\]",
    ):
        gpattr.as_posterior(model, categories={0: [7]})
    with pytest.raises(InvalidInputError, match="baseline: expected one of"):
        Explainer(
            gpattr.as_posterior(mixed(rows=CODES + torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0]))),
            "zeros",
        )
    scaled = mixed(input_transform=Normalize(5))  # codes too: only their equality matters
    ex = Explainer(scaled)(CODES[:3])
    with torch.no_grad():
        np.testing.assert_allclose(
            ex.predictions, scaled.posterior(CODES[:3]).mean[:, 0].numpy(), rtol=1e-9
        )
    zeros = Explainer(model, "zeros")
    assert zeros.baseline_name == "zeros"
    with torch.no_grad():
        assert zeros(CODES[:1]).base_values[0] == pytest.approx(
            model.posterior(torch.zeros(1, 5)).mean.item(), rel=1e-9
        )
    both = ModelListGP(mixed(), mixed(targets=-Y))
    assert set(Explainer(both)(CODES[:2]).outputs) == {"y0", "y1"}
    columns = ["a", "b", "c", "d", "e"]
    points = pd.DataFrame(CODES[:4].numpy(), columns=columns)
    straight, turned = (
        Explainer(model, gpattr.Baselines(points[order]), feature_names=columns)(CODES[4:5])
        for order in (columns, columns[::-1])
    )
    np.testing.assert_array_equal(straight.values, turned.values)
    kernel = CategoricalKernel(active_dims=[3]) + RBFKernel()
    with pytest.raises(
        UnsupportedModelError,
        match="SquaredExponential of columns with categories is not supported",
    ):
        gpattr.as_posterior(SingleTaskGP(CODES, Y, covar_module=kernel))
