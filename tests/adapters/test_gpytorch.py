"""GPyTorch's models as they are: predictions at 1e-8, attributions against its own joint predictive
distribution.
"""

import copy

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch import kernels as k
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.means import ConstantMean, LinearMean, ZeroMean
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    IndependentMultitaskVariationalStrategy,
    MeanFieldVariationalDistribution,
    NaturalVariationalDistribution,
    UnwhitenedVariationalStrategy,
    VariationalStrategy,
)
from tests.reference.brute_force import assert_same_attributions
from tests.reference.gpytorch_settings import exact_settings

import gpattr
from gpattr import Explainer
from gpattr.exceptions import InvalidInputError, UnsupportedModelError

# GPyTorch warns of its own deprecations, and of jitter it adds.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(25, 3))
X, Y = torch.tensor(ROWS), torch.tensor(np.sin(ROWS[:, 0]) + ROWS[:, 1] ** 2 + 3.0)
x, b = np.array([0.7, -0.4, 0.2]), np.array([-0.5, 0.3, 0.6])


class Exact(gpytorch.models.ExactGP):
    """What a user writes."""

    def __init__(self, kernel, mean=None, likelihood=None, inputs=X, targets=Y):
        super().__init__(inputs, targets, likelihood or GaussianLikelihood())
        self.mean_module, self.covar_module = mean or ConstantMean(), kernel

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def shaken(model, seed=0):
    """The model in float64 with hyperparameters that are not its defaults."""
    generator = torch.Generator().manual_seed(seed)
    model = model.double()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn(
            parameter.shape, generator=generator, dtype=torch.float64
        )
    return model


def joint_of(model, call=None):
    def joint(points):
        with exact_settings(), torch.no_grad():
            result = (call or model.eval())(torch.tensor(points))
            return result.mean.numpy(), result.covariance_matrix.numpy()

    return joint


KERNELS = {
    "ARD RBF": lambda: k.ScaleKernel(k.RBFKernel(ard_num_dims=3)),
    "Matern52": lambda: k.ScaleKernel(k.MaternKernel(nu=2.5, ard_num_dims=3)),
    "Matern32": lambda: k.MaternKernel(nu=1.5),
    "RQ": lambda: k.ScaleKernel(k.RQKernel(ard_num_dims=3)),
    "Periodic": lambda: k.ScaleKernel(k.PeriodicKernel()) + k.RBFKernel(),
    "Linear": lambda: k.LinearKernel() + k.ScaleKernel(k.RBFKernel(active_dims=[2, 0])),
    "Linear ARD": lambda: k.LinearKernel(ard_num_dims=3) + k.RBFKernel(),
    "Polynomial": lambda: k.PolynomialKernel(power=2) + k.ScaleKernel(k.RBFKernel()),
    "degree one": lambda: k.PolynomialKernel(power=1) + k.RBFKernel(),
    "Cosine": lambda: k.CosineKernel(active_dims=[1]) * k.RBFKernel() + k.ConstantKernel(),
    "selected": lambda: (
        k.RBFKernel(active_dims=[0]) * k.MaternKernel(nu=2.5, active_dims=[1, 2])
        + k.ConstantKernel()
    ),
    "scaled selections": lambda: k.ScaleKernel(
        k.ScaleKernel(k.RBFKernel(ard_num_dims=2, active_dims=[1, 2])) + k.RQKernel(active_dims=[0])
    ),
    "scaled product": lambda: (
        k.ScaleKernel(k.ProductKernel(k.RBFKernel(active_dims=[1]), k.LinearKernel()))
        + k.RBFKernel(active_dims=[2, 0])
    ),
    "additive structure": lambda: k.AdditiveStructureKernel(k.RBFKernel(), num_dims=3),
    "product structure": lambda: k.ProductStructureKernel(k.ScaleKernel(k.RBFKernel()), num_dims=3),
    "Newton-Girard": lambda: k.ScaleKernel(
        k.NewtonGirardAdditiveKernel(k.RBFKernel(ard_num_dims=3), 3, 2)
    ),
    "spectral mixture": lambda: k.SpectralMixtureKernel(num_mixtures=2, ard_num_dims=3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    model = shaken(Exact(KERNELS[name](), likelihood=GaussianLikelihood()))
    posterior = gpattr.as_posterior(model)
    points = RNG.normal(size=(10, 3))
    mean, cov = joint_of(model)(points)
    ours, C = posterior.predict(points, return_cov=True)
    np.testing.assert_allclose(ours, mean, atol=1e-8 * np.abs(mean).max())
    np.testing.assert_allclose(C, cov, atol=1e-8 * np.abs(cov).max())
    kinks = {"Matern32": 1.5, "Matern52": 2.5, "selected": 2.5}.get(name)
    panels = 6 if name in ("Periodic", "spectral mixture", "Cosine") else 1  # for what oscillates
    assert_same_attributions(
        Explainer(model, b)(x[None]), joint_of(model), b, kinks=kinks, panels=panels
    )


@pytest.mark.parametrize(
    ("mean", "likelihood"),
    [
        (ZeroMean(), GaussianLikelihood()),
        (LinearMean(3), GaussianLikelihood()),
        (LinearMean(3, bias=False), GaussianLikelihood()),
        (ConstantMean(), FixedNoiseGaussianLikelihood(torch.linspace(0.01, 0.5, 25).double())),
        (
            ConstantMean(),
            FixedNoiseGaussianLikelihood(
                torch.linspace(0.01, 0.5, 25).double(), learn_additional_noise=True
            ),
        ),
    ],
    ids=lambda part: type(part).__name__,
)
def test_means_and_noise(mean, likelihood):
    model = shaken(Exact(k.ScaleKernel(k.RBFKernel()), mean, likelihood))
    assert_same_attributions(Explainer(model, b)(x[None]), joint_of(model), b)


def test_batches_are_outputs():
    shape = torch.Size([2])
    kernel = k.ScaleKernel(k.RBFKernel(ard_num_dims=3, batch_shape=shape), batch_shape=shape)
    likelihood = GaussianLikelihood(batch_shape=shape)
    model = shaken(
        Exact(kernel, ConstantMean(batch_shape=shape), likelihood, X, torch.stack([Y, Y**2]))
    )
    ex = Explainer(model, b)(x[None])
    with exact_settings(), torch.no_grad():
        both = model.eval()(torch.tensor(x[None]))
    np.testing.assert_allclose(ex.predictions[0], both.mean.numpy()[:, 0], rtol=1e-10)
    for o in range(2):

        def joint(points, o=o):
            mean, cov = joint_of(model)(points)
            return mean[o], cov[o]

        assert_same_attributions(ex[f"y{o}"], joint, b)


def test_deep_kernels():
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)
    ).double()

    class Deep(Exact):
        def forward(self, x):
            h = network(x)
            return MultivariateNormal(self.mean_module(h), self.covar_module(h))

    model = shaken(Deep(k.ScaleKernel(k.RBFKernel(ard_num_dims=2))))
    posterior = gpattr.as_posterior(model, feature_extractor=network)
    assert_same_attributions(Explainer(posterior, b)(x[None]), joint_of(model), b)
    with pytest.raises(
        UnsupportedModelError, match="kernel: 2 length-scales for 3 columns; for a deep kernel"
    ):
        gpattr.as_posterior(model)


@pytest.mark.parametrize("strategy", [VariationalStrategy, UnwhitenedVariationalStrategy])
@pytest.mark.parametrize(
    "distribution",
    [
        CholeskyVariationalDistribution,
        MeanFieldVariationalDistribution,
        NaturalVariationalDistribution,
    ],
)
def test_variational_models(strategy, distribution):
    class Sparse(gpytorch.models.ApproximateGP):
        def __init__(self):
            super().__init__(strategy(self, X[:8].clone(), distribution(8)))
            self.mean_module, self.covar_module = ConstantMean(), k.ScaleKernel(k.RBFKernel())

        def forward(self, x):
            return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    torch.manual_seed(1)
    model = Sparse().double()
    with pytest.raises(InvalidInputError, match="got one that was never called"):
        gpattr.as_posterior(model)
    model.train()
    model(X)
    if distribution is not NaturalVariationalDistribution:
        model = shaken(model)
    else:
        model.variational_strategy._variational_distribution.natural_vec.data += 0.5
    state = copy.deepcopy(model.state_dict())
    ex = Explainer(model, b)(x[None])
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in state.items())
    assert model.training

    def joint(points):
        mean, cov = joint_of(model)(
            points
        )  # to which the whitened strategy has added its jitter, as if it were noise
        return mean, cov - (
            model.variational_strategy.jitter_val * np.eye(len(cov))
            if strategy is VariationalStrategy
            else 0.0
        )

    assert_same_attributions(ex, joint, b)
    with pytest.raises(InvalidInputError, match='"mean" needs the training inputs'):
        Explainer(model, "mean")


def test_a_thousand_rows_in_default_settings():
    """Where the library's own predictions are off by per cents, because it solves by conjugate
    gradients.
    """
    rows = RNG.uniform(-2, 2, size=(1000, 3))
    targets = np.sin(3 * rows[:, 0]) + rows[:, 1] + 0.1 * RNG.normal(size=1000)
    model = Exact(
        k.ScaleKernel(k.RBFKernel()), inputs=torch.tensor(rows), targets=torch.tensor(targets)
    ).double()
    model.covar_module.base_kernel.lengthscale, model.likelihood.noise = 0.7, 0.01
    ex = Explainer(model, b)(x[None])
    kernel = model.covar_module.outputscale.item() * gpattr.kernels.SquaredExponential(0.7)
    mean = gpattr.means.Constant(model.mean_module.constant.item())
    ours = gpattr.posteriors.ExactPosterior(
        kernel, rows, targets, noise=model.likelihood.noise.item(), mean=mean
    )
    np.testing.assert_allclose(ex.values, Explainer(ours, b)(x[None]).values, atol=1e-8)
    np.testing.assert_allclose(ex.cov, Explainer(ours, b)(x[None]).cov, atol=1e-9)


def test_models_in_float32_are_computed_in_float64():
    model = Exact(k.ScaleKernel(k.RBFKernel(ard_num_dims=3)), inputs=X.float(), targets=Y.float())
    model.likelihood.noise = 1e-3
    ex = Explainer(model, b)(x[None])
    assert ex.method == "closed form (model in float32, computed in float64)"
    assert_same_attributions(ex, joint_of(copy.deepcopy(model).double()), b)
    assert model.covar_module.outputscale.dtype == torch.float32


def test_the_model_is_not_changed():
    model = shaken(Exact(k.ScaleKernel(k.RBFKernel()))).eval()
    with torch.no_grad():
        model(torch.tensor(x[None]))  # leaves caches behind
    cache, state = model.prediction_strategy, copy.deepcopy(model.state_dict())
    Explainer(model, b)(x[None])
    assert model.prediction_strategy is cache
    assert not model.training
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in state.items())
    model.train()
    Explainer(model, b)(x[None])
    assert model.training


def test_stale_caches_do_not_matter():
    model = shaken(Exact(k.ScaleKernel(k.RBFKernel()))).eval()
    with torch.no_grad():
        model(torch.tensor(x[None]))
    model.covar_module.base_kernel.lengthscale = 0.3
    fresh = Exact(k.ScaleKernel(k.RBFKernel())).double()
    fresh.load_state_dict(model.state_dict())
    np.testing.assert_allclose(
        Explainer(model, b)(x[None]).values, Explainer(fresh, b)(x[None]).values, rtol=1e-12
    )


def test_captum_agrees_on_the_mean():
    attr = pytest.importorskip("captum.attr")
    model = shaken(Exact(k.ScaleKernel(k.RBFKernel(ard_num_dims=3)))).eval()
    ex = Explainer(model, b)(x[None])
    with gpytorch.settings.fast_computations(False, False, False):
        theirs = attr.IntegratedGradients(lambda rows: model(rows).mean).attribute(
            torch.tensor(x[None]), torch.tensor(b[None]), n_steps=60
        )
    np.testing.assert_allclose(ex.values, theirs.detach().numpy(), atol=1e-6)


class Odd(Exact):
    """A forward that does not do what its modules say."""

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(1.01 * x))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: Odd(k.RBFKernel()), "the predictive (mean|variance) of this Odd differs"),
        (lambda: Exact(k.CosineKernel()), "CosineKernel of 3 features is not positive definite"),
        (lambda: Exact(k.RFFKernel(5)), "this RFFKernel has not drawn its frequencies"),
        (lambda: Exact(k.RBFKernelGrad()), "RBFKernelGrad is not supported"),
        (
            lambda: Exact(k.RBFKernel(), torch.nn.Identity()),
            r"mean_module: Identity is not supported: .*: expected one number for each row",
        ),
        (
            lambda: Exact(k.RBFKernel(), likelihood=gpytorch.likelihoods.StudentTLikelihood()),
            "ExactGP can only handle Gaussian likelihoods",
        ),
    ],
)
def test_what_is_not_understood_is_refused_by_name(model, words):
    with pytest.raises((UnsupportedModelError, RuntimeError), match=words):
        gpattr.as_posterior(model().double())


def test_data_are_needed():
    model = gpytorch.models.ExactGP(None, None, GaussianLikelihood())
    with pytest.raises(InvalidInputError, match="expected an ExactGP with training data"):
        gpattr.as_posterior(model)


def random_kernel(generator, d=3, depth=0):
    def leaf():
        chosen = generator.choice(d, size=generator.integers(1, d + 1), replace=False).tolist()
        active = sorted(chosen) if generator.uniform() < 0.5 else None
        kinds = [
            lambda: k.RBFKernel(
                active_dims=active,
                ard_num_dims=len(active or range(d)) if generator.uniform() < 0.5 else None,
            ),
            lambda: k.MaternKernel(nu=float(generator.choice([0.5, 1.5, 2.5])), active_dims=active),
            lambda: k.RQKernel(active_dims=active),
            lambda: k.LinearKernel(active_dims=active),
            lambda: k.PeriodicKernel(active_dims=active),
            lambda: k.PolynomialKernel(power=int(generator.integers(1, 4)), active_dims=active),
            lambda: k.PiecewisePolynomialKernel(active_dims=active),
            lambda: k.ConstantKernel(),
        ]
        return kinds[generator.integers(len(kinds))]()

    choice = generator.uniform()
    if depth >= 3 or choice < 0.4:
        return leaf()
    if choice < 0.6:
        return k.ScaleKernel(random_kernel(generator, d, depth + 1))
    parts = [random_kernel(generator, d, depth + 1) for _ in range(2)]
    return k.AdditiveKernel(*parts) if choice < 0.8 else k.ProductKernel(*parts)


@pytest.mark.slow
def test_random_kernels_predict_alike():
    for seed in range(100):
        model = shaken(Exact(random_kernel(np.random.default_rng(seed))), seed)
        model.likelihood.noise = 0.5
        posterior = gpattr.as_posterior(model)
        points = RNG.normal(size=(4, 3))
        mean, cov = joint_of(model)(points)
        ours, C = posterior.predict(points, return_cov=True)
        np.testing.assert_allclose(ours, mean, atol=1e-7 * (1 + np.abs(mean).max()))
        np.testing.assert_allclose(C, cov, atol=1e-7 * (1 + np.abs(cov).max()))


def test_several_independent_functions():
    """Tasks of one variational model, such as a mean and the logarithm of its noise."""

    class Tasks(gpytorch.models.ApproximateGP):
        def __init__(self):
            batch = torch.Size([2])
            inner = VariationalStrategy(
                self, X[:8].clone(), CholeskyVariationalDistribution(8, batch_shape=batch)
            )
            super().__init__(IndependentMultitaskVariationalStrategy(inner, num_tasks=2))
            self.mean_module = ConstantMean(batch_shape=batch)
            self.covar_module = k.ScaleKernel(
                k.RBFKernel(batch_shape=batch, ard_num_dims=3), batch_shape=batch
            )

        def forward(self, x):
            return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    torch.manual_seed(1)
    model = Tasks().double()
    with pytest.raises(InvalidInputError, match="never called"):
        gpattr.as_posterior(model)
    model(X)
    model = shaken(model)
    posterior = gpattr.as_posterior(model, output_names=["mean", "log noise"])
    ex = Explainer(posterior, b)(x[None])
    strategy = model.eval().variational_strategy.base_variational_strategy
    for i, name in enumerate(("mean", "log noise")):

        def joint(points, i=i):
            with exact_settings(), torch.no_grad():
                found = strategy(torch.tensor(points).expand(2, *points.shape))
                jitter = strategy.jitter_val * np.eye(len(points))
                return found.mean[i].numpy(), found.covariance_matrix[i].numpy() - jitter

        assert_same_attributions(ex[name], joint, b)
