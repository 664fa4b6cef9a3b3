"""Twenty-seven unusual models of GPyTorch and BoTorch: explained exactly, or refused with a reason.

Attributions and their variances are compared with brute force through the model's own joint
posterior along the path.
"""

import copy
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from botorch.models import (
    KroneckerMultiTaskGP,
    MultiTaskGP,
    PairwiseGP,
    SingleTaskGP,
    SingleTaskMultiFidelityGP,
)
from botorch.models.additive_gp import OrthogonalAdditiveGP
from botorch.models.contextual import LCEAGP, SACGP
from botorch.models.contextual_multioutput import LCEMGP
from botorch.models.fully_bayesian_multitask import SaasFullyBayesianMultiTaskGP
from botorch.models.heterogeneous_mtgp import HeterogeneousMTGP
from botorch.models.higher_order_gp import HigherOrderGP
from botorch.models.robust_relevance_pursuit_model import RobustRelevancePursuitSingleTaskGP
from botorch.models.transforms.input import ChainedInputTransform, Log10, Normalize, Warp
from botorch.models.transforms.outcome import Standardize
from gpytorch import kernels as k
from gpytorch import variational as v
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood, MultitaskGaussianLikelihood
from gpytorch.likelihoods.gaussian_likelihood import _GaussianLikelihoodBase
from gpytorch.likelihoods.noise_models import HeteroskedasticNoise
from gpytorch.means import ConstantMean, ConstantMeanGrad, MultitaskMean
from tests.reference.brute_force import brute_force
from tests.reference.gpytorch_settings import exact_settings

import gpattr
from gpattr import Explainer
from gpattr.exceptions import InvalidInputError, NotFittedError, UnsupportedModelError

IGNORED = (
    "botorch.exceptions.warnings.BotorchWarning",
    "UserWarning",
    "DeprecationWarning",
    "FutureWarning",
    "ImportWarning",
)
pytestmark = [pytest.mark.filterwarnings(f"ignore::{warning}") for warning in IGNORED]
GENERATOR = torch.Generator().manual_seed(0)
X = torch.rand(10, 3, dtype=torch.float64, generator=GENERATOR)
Y = torch.sin(3.0 * X[:, :1]) + X[:, 1:2] ** 2 + X[:, 2:]
SEVERAL = torch.cat([Y, X[:, :1] * X[:, 1:2], torch.cos(2.0 * X[:, 2:])], 1)


class Exact(gpytorch.models.ExactGP):
    """What a user writes."""

    def __init__(self, kernel, likelihood=None, mean=None, inputs=X, targets=Y[:, 0]):
        super().__init__(inputs, targets, likelihood or GaussianLikelihood())
        self.mean_module, self.covar_module = mean or ConstantMean(), kernel

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Several(Exact):
    """A model of several outputs."""

    def forward(self, x):
        return MultitaskMultivariateNormal(self.mean_module(x), self.covar_module(x))


class Variational(gpytorch.models.ApproximateGP):
    """A model with inducing points."""

    def __init__(self, make, batch=()):
        shape = torch.Size(batch)
        super().__init__(make(self))
        self.mean_module = ConstantMean(batch_shape=shape)
        self.covar_module = k.ScaleKernel(
            k.RBFKernel(ard_num_dims=3, batch_shape=shape), batch_shape=shape
        )

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def shaken(model, size=0.3):
    """The model in float64 with parameters that are not its defaults."""
    generator = torch.Generator().manual_seed(1)
    model = model.double()
    for parameter in model.parameters():
        parameter.data += size * torch.randn(
            parameter.shape, generator=generator, dtype=torch.float64
        )
    return model


def called_once(model):
    """A variational model whose q(u) is initialised, and then changed as if it had been trained."""
    model.double().train()
    model(X)
    return shaken(model).eval()


@dataclass
class Case:
    """A model, and how its own joint posterior is asked: of one output, at points (n, d)."""

    model: Any
    outputs: tuple = ("",)
    ask: Any = None  # model, points -> distribution
    start: Any = None
    stop: Any = None
    panels: int = 2
    step: float = 1e-3
    jitter: Any = 0.0  # that the library adds to variances, as if it were noise; by output
    kept: bool = False  # a copy forgets what it has computed from its data

    def joint(self, o):
        held = self.model if self.kept else copy.deepcopy(self.model).eval()
        ask = self.ask or (lambda model, points: model.posterior(points).distribution)

        def joint(points):
            with exact_settings(), torch.no_grad():
                result = ask(held, torch.tensor(points))
                mean, cov, n = result.mean.numpy(), result.covariance_matrix.numpy(), len(points)
            P = len(self.outputs)
            if P > 1:
                shape = (n, P, n, P) if result._interleaved else (P, n, P, n)
                cov = cov.reshape(shape).transpose(
                    *((0, 1, 2, 3) if shape[0] == n else (1, 0, 3, 2))
                )
                mean, cov = mean[:, o], cov[:, o, :, o]
            jitter = self.jitter
            if jitter is None:  # none is needed for a single point
                with exact_settings(), torch.no_grad():
                    alone = ask(held, torch.tensor(points[:1])).covariance_matrix.item()
                jitter = cov[0, 0] - alone
            return mean.reshape(n), cov - np.broadcast_to(jitter, (P,))[o] * np.eye(n)

        return joint


def called(model, points):
    return model(points)


def warped():
    transform = Warp(3, indices=[0, 1], bounds=torch.tensor([[0.0] * 3, [1.0] * 3]).double())
    transform.concentration0.data = torch.tensor([0.7, 2.0], dtype=torch.float64)
    transform.concentration1.data = torch.tensor([1.5, 0.6], dtype=torch.float64)
    return Case(SingleTaskGP(X, Y, input_transform=transform))


def logarithmic():
    transform = ChainedInputTransform(a=Log10([0, 2]), b=Normalize(3))
    model = SingleTaskGP(X + 0.1, Y, input_transform=transform)
    return Case(model, start=X[0].numpy() + 0.1, stop=X[1].numpy() + 0.1)


def truncated_fidelity():
    model = SingleTaskMultiFidelityGP(X, Y, data_fidelities=[2])
    return Case(model, panels=8)


def two_fidelities():
    return Case(
        SingleTaskMultiFidelityGP(X, Y, iteration_fidelity=1, data_fidelities=[2]), panels=8
    )


def downsampled():
    model = SingleTaskMultiFidelityGP(
        X, Y, iteration_fidelity=1, data_fidelities=[2], linear_truncated=False
    )
    return Case(model)


def robust():
    model = RobustRelevancePursuitSingleTaskGP(X, Y, input_transform=Normalize(3))
    noise = model.likelihood.noise_covar
    noise.to_sparse()
    noise.expand_support([2, 5])
    noise.set_sparse_parameter(torch.tensor([0.6, 0.9], dtype=torch.float64))
    return Case(model)


def inducing():
    likelihood = GaussianLikelihood()
    kernel = k.InducingPointKernel(k.ScaleKernel(k.RBFKernel()), X[:5].clone(), likelihood)
    return Case(shaken(Exact(kernel, likelihood), 0.1), ask=_with_base_kernel)


def _with_base_kernel(model, points):
    """The library's prediction from covariances that it has not evaluated: the base kernel's."""
    model(points[:2])
    cross = model.covar_module(points, X).evaluate_kernel()
    mean, cov = model.prediction_strategy.exact_prediction(
        model.mean_module(points), model.covar_module(points), cross
    )
    return SimpleNamespace(mean=mean, covariance_matrix=cov.to_dense())


def grid():
    kernel = k.GridInterpolationKernel(
        k.RBFKernel(), grid_size=12, grid_bounds=[(-0.3, 1.3), (-0.3, 1.3)]
    )
    model = shaken(Exact(k.ScaleKernel(kernel), inputs=X[:, :2].clone()), 0.1)
    return Case(model, ask=called, start=X[0, :2].numpy(), stop=X[1, :2].numpy(), panels=12)


def kronecker():
    model = KroneckerMultiTaskGP(
        X, SEVERAL, input_transform=Normalize(3), outcome_transform=Standardize(3)
    )
    return Case(shaken(model, 0.1), outputs=("y0", "y1", "y2"), ask=_kronecker)


def _kronecker(model, points):
    """Its own `posterior` has no joint covariance: the model is called, in its own units."""
    inner = model(model.transform_inputs(points))
    scale, shift = model.outcome_transform.stdvs[0], model.outcome_transform.means[0]
    n = len(points)
    whole = scale.repeat(n)
    assert inner._interleaved
    return SimpleNamespace(
        mean=shift + scale * inner.mean,
        covariance_matrix=whole[:, None] * inner.covariance_matrix * whole,
        _interleaved=True,
    )


def noise_of_rank_one():
    model = Several(
        k.ScaleKernel(k.MultitaskKernel(k.RBFKernel(), 3, rank=2)),
        MultitaskGaussianLikelihood(3, rank=1),
        MultitaskMean(ConstantMean(), 3),
        targets=SEVERAL,
    )
    return Case(shaken(model), outputs=("y0", "y1", "y2"), ask=called)


def coregionalised():
    kernel = k.LCMKernel([k.RBFKernel(), k.RBFKernel()], 3, rank=1)
    mean = MultitaskMean(ConstantMean(), 3)
    model = Several(kernel, MultitaskGaussianLikelihood(3), mean, targets=SEVERAL)
    return Case(shaken(model), outputs=("y0", "y1", "y2"), ask=called)


def gradients():
    rows = X[:7]
    values = torch.sin(3.0 * rows[:, 0]) + rows[:, 1] ** 2 + rows[:, 2]
    slopes = [3.0 * torch.cos(3.0 * rows[:, 0]), 2.0 * rows[:, 1], torch.ones(7)]
    model = Several(
        k.ScaleKernel(k.RBFKernelGrad(ard_num_dims=3)),
        MultitaskGaussianLikelihood(4),
        ConstantMeanGrad(),
        inputs=rows,
        targets=torch.stack([values, *slopes], -1),
    )
    return Case(shaken(model), outputs=("y0", "y1", "y2", "y3"), ask=called)


def orthogonal():
    return Case(OrthogonalAdditiveGP(X, Y))


def heterogeneous():
    model = HeterogeneousMTGP(
        train_Xs=[X[:6, :2].clone(), X[4:].clone()],
        train_Ys=[Y[:6], Y[4:] + 0.3],
        train_Yvars=None,
        feature_indices=[[0, 2], [2, 1, 0]],
        full_feature_dim=3,
    )

    def ask(model, points):
        task = torch.zeros(len(points), 1, dtype=torch.float64)
        return model.posterior(torch.cat([points, task], 1)).distribution

    return Case(model, ask=ask, start=X[0, :2].numpy(), stop=X[1, :2].numpy(), panels=8)


CONTEXTS = {"a": [0, 1], "b": [2, 3]}
WIDE = torch.cat([X, X[:, :1] ** 2], 1)


def contexts():
    return Case(
        shaken(SACGP(WIDE, Y, None, CONTEXTS), 0.1), start=WIDE[0].numpy(), stop=WIDE[1].numpy()
    )


def embedded_contexts():
    torch.manual_seed(0)
    model = LCEAGP(WIDE, Y, None, CONTEXTS)
    return Case(model, start=WIDE[0].numpy(), stop=WIDE[1].numpy())


def tasks_in_contexts():
    torch.manual_seed(0)
    tasks = torch.arange(10)[:, None] % 2.0
    model = LCEMGP(torch.cat([X, tasks], 1), Y + tasks, task_feature=-1)
    return Case(model, outputs=("y0", "y1"))


def hamming():
    words = torch.nn.functional.one_hot(
        torch.randint(0, 3, (10, 2), generator=torch.Generator().manual_seed(2)), 3
    ).double()
    rows = words.reshape(10, 6)
    model = shaken(Exact(k.ScaleKernel(k.HammingIMQKernel(3)), inputs=rows), 0.1)

    def called(model, points):
        # Only in this mode the library does not overwrite k(x, x) by that of whole words.
        with torch.enable_grad():
            result = model(points.requires_grad_(True))
        return SimpleNamespace(
            mean=result.mean.detach(), covariance_matrix=result.covariance_matrix.detach()
        )

    return Case(model, ask=called, start=rows[0].numpy(), stop=rows[1].numpy())


def preferences():
    pairs = torch.tensor([[i, j] for i in range(10) for j in range(10) if Y[i, 0] > Y[j, 0] + 0.2])
    return Case(PairwiseGP(X, pairs, input_transform=Normalize(3)), kept=True, jitter=None)


class Noisy(_GaussianLikelihoodBase):
    """Noise that is itself a model of the inputs."""

    def __init__(self):
        levels = torch.log(0.05 + 0.3 * X[:, 0])
        super().__init__(HeteroskedasticNoise(SingleTaskGP(X, levels[:, None])))


def heteroscedastic():
    return Case(Exact(k.ScaleKernel(k.RBFKernel()), Noisy()).double(), ask=called)


def strategy(kind=v.VariationalStrategy, q=v.CholeskyVariationalDistribution, batch=(), **options):
    def make(model):
        shape = torch.Size(batch)
        return kind(model, X[:5].clone(), q(5, batch_shape=shape), **options)

    return make


def independent_tasks():
    inner = strategy(batch=(2,))
    model = Variational(
        lambda model: v.IndependentMultitaskVariationalStrategy(inner(model), num_tasks=2), (2,)
    )
    return Case(called_once(model), outputs=("y0", "y1"), ask=called, jitter=1e-6)


def mixed_tasks():
    torch.manual_seed(0)
    inner = strategy(batch=(2,))
    model = Variational(
        lambda model: v.LMCVariationalStrategy(inner(model), num_tasks=3, num_latents=2), (2,)
    )
    model = called_once(model)
    weights = model.variational_strategy.lmc_coefficients.detach().numpy()
    jitter = 1e-6 * (1.0 + (weights**2).sum(axis=0))
    return Case(model, outputs=("y0", "y1", "y2"), ask=called, jitter=jitter)


def known_values():
    model = Variational(strategy(q=v.DeltaVariationalDistribution))
    return Case(called_once(model), ask=called, jitter=1e-6)


def decoupled():
    def make(model):
        inner = strategy()(model)
        return v.OrthogonallyDecoupledVariationalStrategy(
            inner, X[5:].clone(), v.DeltaVariationalDistribution(5)
        )

    return Case(called_once(Variational(make)), ask=called, jitter=1e-6)


EXPLAINED = {
    "Warp": warped,
    "Log10 and Normalize": logarithmic,
    "LinearTruncatedFidelityKernel": truncated_fidelity,
    "LinearTruncatedFidelityKernel of two": two_fidelities,
    "DownsamplingKernel and ExponentialDecayKernel": downsampled,
    "RobustRelevancePursuitSingleTaskGP": robust,
    "InducingPointKernel": inducing,
    "GridInterpolationKernel": grid,
    "KroneckerMultiTaskGP": kronecker,
    "MultitaskKernel with noise of rank one": noise_of_rank_one,
    "LCMKernel": coregionalised,
    "RBFKernelGrad": gradients,
    "OrthogonalAdditiveGP": orthogonal,
    "HeterogeneousMTGP": heterogeneous,
    "SACGP": contexts,
    "LCEAGP": embedded_contexts,
    "LCEMGP": tasks_in_contexts,
    "HammingIMQKernel": hamming,
    "PairwiseGP": preferences,
    "HeteroskedasticNoise": heteroscedastic,
    "IndependentMultitaskVariationalStrategy": independent_tasks,
    "LMCVariationalStrategy": mixed_tasks,
    "DeltaVariationalDistribution": known_values,
    "OrthogonallyDecoupledVariationalStrategy": decoupled,
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_attributions_are_those_of_the_models_own_joint_posterior(name):
    case = EXPLAINED[name]()
    start = X[0].numpy() if case.start is None else case.start
    stop = X[1].numpy() if case.stop is None else case.stop
    ex = Explainer(case.model, start)(stop[None])
    for o, output in enumerate(case.outputs):
        own = ex[output] if output else ex
        mean, cov = brute_force(case.joint(o), stop, start, panels=case.panels, step=case.step)
        scale = max(np.abs(mean).max(), np.sqrt(np.diagonal(cov).max()))
        np.testing.assert_allclose(own.values[0], mean, rtol=0.0, atol=1e-5 * scale)
        np.testing.assert_allclose(own.cov[0], cov, rtol=0.0, atol=1e-5 * np.abs(cov).max())
        np.testing.assert_allclose(own.delta, 0.0, atol=1e-8 * max(scale, 1.0))


def test_fully_bayesian_tasks_are_mixtures():
    """The twenty-fifth: one mixture for each task, of the models of all samples."""
    pytest.importorskip("numpyro")
    tasks = torch.arange(10)[:, None] % 2.0
    model = SaasFullyBayesianMultiTaskGP(torch.cat([X, tasks], 1), Y + tasks, task_feature=-1)
    with pytest.raises(NotFittedError, match="is not fitted yet; call fit_fully_bayesian_model"):
        gpattr.as_posterior(model)
    rng = np.random.default_rng(0)
    like = model.pyro_model.get_dummy_mcmc_samples(3, dtype=torch.float64, device="cpu")
    model.load_mcmc_samples(
        {name: 0.3 + torch.tensor(rng.random(part.shape)) for name, part in like.items()}
    )
    start, stop = X[0].numpy(), X[1].numpy()
    ex = Explainer(model, start)(stop[None])
    held, asked = copy.deepcopy(model).eval(), {}

    def joint(points, s, o):
        key = points.tobytes()
        if key not in asked:
            with exact_settings(), torch.no_grad():
                asked[key] = held.posterior(torch.tensor(points)).distribution
        result, n = asked[key], len(points)
        cov = result.covariance_matrix[s].numpy()
        cov = cov.reshape(2, n, 2, n).transpose(1, 0, 3, 2)
        assert not result._interleaved
        return result.mean[s, :, o].numpy(), cov[:, o, :, o]

    for o in range(2):
        parts = [
            brute_force(partial(joint, s=s, o=o), stop, start, panels=4, step=1e-3)
            for s in range(3)
        ]
        means = np.stack([mean for mean, _ in parts])
        cov = np.mean([cov for _, cov in parts], axis=0) + np.cov(means.T, bias=True)
        own = ex[f"y{o}"]
        np.testing.assert_allclose(own.values[0], means.mean(axis=0), rtol=0.0, atol=1e-5)
        np.testing.assert_allclose(own.cov[0], cov, rtol=0.0, atol=1e-5 * np.abs(cov).max())
        np.testing.assert_allclose(own.delta, 0.0, atol=1e-8)


def neighbours():
    def make(model):
        return v.NNVariationalStrategy(
            model, X.clone(), v.MeanFieldVariationalDistribution(10), k=3, training_batch_size=5
        )

    model = Variational(make).double().train()
    model(X)
    return model


def tensor_valued():
    return HigherOrderGP(X, SEVERAL.reshape(10, 3, 1).expand(10, 3, 2).clone())


REFUSED = {
    "NNVariationalStrategy": (neighbours, "from inducing points of its own, so that its"),
    "HigherOrderGP": (tensor_valued, "HigherOrderGP is not supported: its outputs are a tensor"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_explained_is_refused_with_the_reason(name):
    make, words = REFUSED[name]
    with pytest.raises(UnsupportedModelError, match=words):
        gpattr.as_posterior(make())


def test_there_are_twenty_seven():
    assert len(EXPLAINED) + 1 + len(REFUSED) == 27


def test_a_user_is_left_as_it_was():
    """A copy of an `InducingPointKernel` shares the likelihood, which must not become float64."""
    likelihood = GaussianLikelihood()
    kernel = k.InducingPointKernel(k.RBFKernel(), X[:5].float(), likelihood)
    model = Exact(kernel, likelihood, inputs=X.float(), targets=Y[:, 0].float())
    ex = Explainer(model, X[0].numpy())(X[1:2].numpy())
    assert "model in float32" in ex.method
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_tasks_and_fidelities_that_are_not_in_the_data():
    tasks = torch.arange(10)[:, None] % 2.0
    model = MultiTaskGP(torch.cat([X, tasks], 1), Y + tasks, task_feature=-1)
    explainer = Explainer(model, X[0].numpy())
    with pytest.raises(InvalidInputError, match="expected 3 columns"):  # the task is not a feature
        explainer(torch.cat([X, tasks + 5.0], 1)[:1].numpy())
    with pytest.raises(InvalidInputError, match=r"of \['y0', 'y1'\], got 'y7'"):
        explainer.posterior["y7"]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: Variational(strategy()),
            InvalidInputError,
            "expected a trained ApproximateGP, got one that was never called",
        ),
        (
            lambda: Exact(
                k.GridInterpolationKernel(k.RBFKernel(), grid_size=8, num_dims=3)
            ).double(),
            InvalidInputError,
            "expected a trained model, got one that was never called",
        ),
        (lambda: PairwiseGP(None, None), InvalidInputError, "with comparisons, got one without"),
        (
            lambda: Exact(
                k.ScaleKernel(k.InducingPointKernel(k.RBFKernel(), X[:5], GaussianLikelihood()))
            ).double(),
            UnsupportedModelError,
            "inside of another kernel is not supported",
        ),
    ],
)
def test_untrained_models_and_kernels_at_the_wrong_place(make, error, words):
    with pytest.raises(error, match=words):
        gpattr.as_posterior(make())


def test_covariances_between_gradients_and_tasks():
    for case in (gradients(), coregionalised()):
        explainer = Explainer(case.model, X[0].numpy())
        across = explainer.across_outputs(X[1:2].numpy())[0]
        ex = explainer(X[1:2].numpy())
        for o, output in enumerate(case.outputs):
            np.testing.assert_allclose(across[:, o, :, o], ex[output].cov[0], rtol=0.0, atol=1e-9)
        held = copy.deepcopy(case.model).eval()
        with exact_settings(), torch.no_grad():
            cov = held(X[:2]).covariance_matrix.numpy()
        P = len(case.outputs)
        cov = cov.reshape(2, P, 2, P)
        change = cov[1, 0, 1, 1] - cov[1, 0, 0, 1] - cov[0, 0, 1, 1] + cov[0, 0, 0, 1]
        assert across[:, 0, :, 1].sum() == pytest.approx(change, rel=1e-6, abs=1e-9)


def test_symmetric_roots_and_latent_inputs():
    model = called_once(Variational(strategy(kind=v.CiqVariationalStrategy)))
    with exact_settings(), torch.no_grad():
        theirs = model(X[5:9])
    mean, cov = gpattr.as_posterior(model).predict(X[5:9].numpy(), return_cov=True)
    np.testing.assert_allclose(mean, theirs.mean.numpy(), rtol=1e-9)
    jitter = 2e-6 * np.eye(4)  # which the library adds twice
    np.testing.assert_allclose(cov + jitter, theirs.covariance_matrix.numpy(), atol=1e-9, rtol=0.0)

    class Latent(gpytorch.models.gplvm.BayesianGPLVM):
        """Two outputs of three latent inputs."""

        def __init__(self):
            shape = torch.Size([2])
            points = torch.stack([X[:5], X[5:]])
            q = v.CholeskyVariationalDistribution(5, batch_shape=shape)
            start = torch.nn.Parameter(X.clone())
            latent = gpytorch.models.gplvm.PointLatentVariable(10, 3, start)
            super().__init__(latent, v.VariationalStrategy(self, points, q))
            self.mean_module = ConstantMean(batch_shape=shape)
            self.covar_module = k.RBFKernel(ard_num_dims=3, batch_shape=shape)

        def forward(self, x):
            return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model = called_once(Latent())
    ex = Explainer(model, X[0].numpy())(X[1:3].numpy())
    with exact_settings(), torch.no_grad():
        theirs = model(X[1:3])
    np.testing.assert_allclose(ex.predictions, theirs.mean.numpy().T, rtol=1e-9)


def test_covariances_of_categories_jump():
    """An index kernel of one column: what changing the category alone does is the model's own."""
    codes = torch.arange(10)[:, None] % 3.0
    index = k.IndexKernel(3, rank=2, active_dims=[3])
    kernel = k.RBFKernel(ard_num_dims=3, active_dims=[0, 1, 2]) * index
    model = SingleTaskGP(torch.cat([X, codes], 1), Y + codes, covar_module=kernel)
    start = torch.cat([X[0], torch.zeros(1)])
    rows = torch.stack([torch.cat([X[0], torch.tensor([c])]) for c in (1.0, 2.0)])
    ex = Explainer(model, start)(rows)
    with torch.no_grad():
        joint = model.posterior(torch.cat([start[None], rows]))
        mean, cov = joint.mean[:, 0].numpy(), joint.distribution.covariance_matrix.numpy()
    np.testing.assert_allclose(
        ex.values, np.eye(4)[[3, 3]] * (mean[1:] - mean[0])[:, None], atol=1e-10, rtol=0.0
    )
    change = cov[[1, 2], [1, 2]] + cov[0, 0] - 2.0 * cov[0, 1:]
    np.testing.assert_allclose(ex.std[:, 3] ** 2, change, rtol=1e-7)
