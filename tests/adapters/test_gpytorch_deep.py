"""GPyTorch's deep Gaussian processes: attributions against the model's own jointly drawn functions,
which finite differences turn into integrated gradients.
"""

import copy

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch import kernels as k
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean, LinearMean
from gpytorch.models.deep_gps import DeepGP, DeepGPLayer
from gpytorch.models.deep_gps.dspp import DSPP
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    DeltaVariationalDistribution,
    MeanFieldVariationalDistribution,
    VariationalStrategy,
)
from scipy.stats import norm

import gpattr
from gpattr import Explainer
from gpattr.exceptions import InvalidInputError, UnsupportedModelError

# GPyTorch warns of its own deprecations, and of jitter it adds.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-1.0, 1.0, size=(60, 3))
B = np.array([-0.5, 0.3, 0.2])


def truth(X):
    return np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 - 0.5 * X[:, 0] * X[:, 1]


class Layer(DeepGPLayer):
    """As in GPyTorch's tutorial, which lets layers take further inputs (skip connections)."""

    def __init__(
        self,
        inputs,
        outputs,
        kernel=k.RBFKernel,
        q=CholeskyVariationalDistribution,
        m=12,
        linear=False,
    ):
        batch = torch.Size([] if outputs is None else [outputs])
        points = torch.tensor(RNG.normal(size=(*batch, m, inputs)), dtype=torch.get_default_dtype())
        strategy = VariationalStrategy(
            self, points, q(num_inducing_points=m, batch_shape=batch), learn_inducing_locations=True
        )
        super().__init__(strategy, inputs, outputs)
        self.mean_module = LinearMean(inputs) if linear else ConstantMean(batch_shape=batch)
        self.covar_module = k.ScaleKernel(
            kernel(batch_shape=batch, ard_num_dims=inputs), batch_shape=batch
        )

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def __call__(self, x, *others, **kwargs):
        if others:
            x = x.rsample() if isinstance(x, MultivariateNormal) else x
            processed = [other.unsqueeze(0).expand(len(x), *other.shape) for other in others]
            x = torch.cat([x, *processed], dim=-1)
        return super().__call__(x, are_samples=bool(others))


class Deep(DeepGP):
    """Two hidden units, or layers that are given, last first: order is that of forward."""

    def __init__(self, *layers):
        super().__init__()
        layers = layers or (Layer(3, 2), Layer(2, None))
        self.stack = torch.nn.ModuleList(layers)
        self.likelihood = GaussianLikelihood()

    def forward(self, x):
        for layer in self.stack:
            x = layer(x)
        return x


def trained(model, steps=120, rate=0.05):
    torch.manual_seed(0)
    X, y = torch.tensor(ROWS).to(model.likelihood.noise), torch.tensor(truth(ROWS))
    y = y.to(X)
    objective = gpytorch.mlls.DeepApproximateMLL(
        gpytorch.mlls.VariationalELBO(model.likelihood, model, len(ROWS))
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    model.train()
    for _ in range(steps):
        optimiser.zero_grad()
        with gpytorch.settings.num_likelihood_samples(5):
            (-objective(model(X), y)).backward()
        optimiser.step()
    return model


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return trained(Deep().double())


def joint_attributions(model, x, b, draws, *, nodes=8, delta=0.005, chunk=500):
    """Integrated gradients of jointly drawn functions of a model of two layers, (draws, d).

    Gradients at Gauss–Legendre nodes by central differences of the functions' values, which the
    model's own layers give with their joint covariance, but for the jitter that they add to it.
    """
    d = len(x)
    t, w = np.polynomial.legendre.leggauss(nodes)
    t, w = 0.5 * (1.0 + t), 0.5 * w
    moves = np.concatenate([np.eye(d), -np.eye(d)])
    points = ((b + t[:, None] * (x - b))[:, None, :] + delta * moves).reshape(-1, d)
    weigh = np.zeros((d, nodes, 2 * d))
    for i in range(d):
        weigh[i, :, i], weigh[i, :, d + i] = w, -w
        weigh[i] *= (x[i] - b[i]) / (2.0 * delta)
    weigh = torch.tensor(weigh.reshape(d, -1))
    generator, result = torch.Generator().manual_seed(3), []
    hidden, last = model.stack
    with torch.no_grad():
        q = hidden.variational_strategy(torch.tensor(points).expand(2, *points.shape))
        noise = hidden.variational_strategy.jitter_val * torch.eye(len(points), dtype=torch.double)
        values, vectors = torch.linalg.eigh(q.covariance_matrix - noise)
        root = vectors * values.clamp_min(0.0).sqrt()[:, None, :]
        for _ in range(draws // chunk):
            z = torch.randn(chunk, 2, len(points), generator=generator, dtype=torch.double)
            h = q.mean + (root @ z[..., None])[..., 0]  # (chunk, 2, points)
            f = last.variational_strategy(h.mT.contiguous())
            mean, cov = f.mean @ weigh.T, weigh @ (f.covariance_matrix - noise) @ weigh.T
            L = torch.linalg.cholesky(cov + 1e-12 * torch.eye(d, dtype=torch.double))
            z = torch.randn(chunk, d, 1, generator=generator, dtype=torch.double)
            result.append((mean + (L @ z)[..., 0]).numpy())
    return np.concatenate(result)


GRID = [(0.7, -0.6, 0.4), (-0.9, 0.9, -0.3), (0.9, 0.9, 0.9)]


@pytest.mark.slow
@pytest.mark.parametrize("x", GRID)
def test_against_jointly_drawn_functions(model, x):
    x = np.array(x)
    ex = Explainer(gpattr.as_posterior(model), B)(x[None])
    drawn = joint_attributions(model.eval(), x, B, 20_000)
    error = drawn.std(axis=0) / len(drawn) ** 0.5
    assert (np.abs(ex.values[0] - drawn.mean(axis=0)) <= 3.0 * error).all()
    difference = np.cov(drawn.T) - ex.cov[0]
    assert (np.abs(difference) <= ex.cov_error[0] + 0.03 * ex.var[0].max()).all()
    for level in (0.5, 0.9):
        tails = 0.5 * (1 - level), 0.5 * (1 + level)
        for q, end in zip(tails, ex.interval(level), strict=True):
            # what a quantile of this many draws of a normal distribution is good to
            own = (q * (1 - q) / len(ex.draws)) ** 0.5 / norm.pdf(norm.ppf(q))
            allowed = 3.5 * np.hypot(own * ex.std[0], 2.0 * error)
            assert (np.abs(end[0] - np.quantile(drawn, q, axis=0)) <= allowed).all()
    assert np.abs(ex.delta).max() < 1e-10


def test_against_sampled_predictions(model):
    rows = ROWS[:5]
    mean, std = gpattr.as_posterior(model).predict(rows, return_std=True)
    with torch.no_grad(), gpytorch.settings.num_likelihood_samples(20_000):
        torch.manual_seed(1)
        f = model.eval()(torch.tensor(rows))
        means, variances = f.mean.numpy(), f.variance.numpy()
    error = means.std(axis=0) / len(means) ** 0.5
    assert (np.abs(mean - means.mean(axis=0)) <= 3.5 * error + 1e-5).all()
    np.testing.assert_allclose(std**2, variances.mean(axis=0) + means.var(axis=0), rtol=0.03)


def test_the_truth_is_found(model):
    """What was learned is the function: attributions are near those of the truth."""
    posterior = gpattr.as_posterior(model, data=(ROWS, truth(ROWS)))
    np.testing.assert_allclose(posterior.reference_points["mean"], ROWS.mean(axis=0), rtol=1e-12)
    x = np.array([0.6, -0.4, 0.5])
    ex = Explainer(posterior, "mean", feature_names=["a", "b", "c"])(x[None])
    b = ROWS.mean(axis=0)
    t = np.linspace(0.0, 1.0, 2001)[:, None]
    path = b + t * (x - b)
    slopes = np.stack(
        [3.0 * np.cos(3.0 * path[:, 0]) - 0.5 * path[:, 1], 2 * path[:, 1] - 0.5 * path[:, 0]]
    )
    expected = (x - b)[:2] * slopes.mean(axis=1)
    np.testing.assert_allclose(ex.values[0, :2], expected, atol=0.25)
    assert "float32" not in ex.method


@pytest.mark.parametrize("q", [CholeskyVariationalDistribution, MeanFieldVariationalDistribution])
def test_other_layers(q):
    """Three layers, Matérn kernels, float32, one unit, an order that is not that of modules."""
    torch.manual_seed(0)
    matern = lambda **options: k.MaternKernel(nu=2.5, **options)  # noqa: E731
    layers = Layer(3, 2, matern, q, m=6, linear=True), Layer(2, 1, m=6), Layer(1, None, m=6)
    model = trained(Deep(*layers), steps=3)
    ex = Explainer(gpattr.as_posterior(model, draws=20), B)(ROWS[:2])
    assert "float32" in ex.method
    assert np.abs(ex.delta).max() < 1e-9
    assert (ex.error < 0.05).all()


def test_at_the_baseline_and_beside_it(model):
    """Where attributions are smaller than the rounding of draws."""
    rows = np.stack([B, B + 1e-9, B + 0.1])
    ex = Explainer(gpattr.as_posterior(model, draws=50), B)(rows)
    np.testing.assert_array_equal(ex.values[0], 0.0)
    np.testing.assert_array_equal(ex.std[0], 0.0)
    assert (ex.std[1] < 1e-7).all()
    assert (ex.std[2] > 1e-4).all()


def test_bad_input(model):
    torch.manual_seed(0)
    with pytest.raises(InvalidInputError, match=r"data: expected \(X, y\)"):
        gpattr.as_posterior(model, data=ROWS)
    with pytest.raises(InvalidInputError, match="never called"):
        gpattr.as_posterior(Deep())
    called = Deep()
    called(torch.zeros(2, 3))
    with pytest.raises(InvalidInputError, match="got an untrained one"):
        gpattr.as_posterior(called)
    with pytest.raises(UnsupportedModelError, match="without DeepGPLayers"):
        gpattr.as_posterior(DeepGP())
    with pytest.raises(UnsupportedModelError, match="sigma point"):
        gpattr.as_posterior(DSPP(3))
    with pytest.raises(InvalidInputError, match="draws: expected at least 10"):
        gpattr.as_posterior(model, draws=3)
    with pytest.raises(InvalidInputError, match="sample: unknown option"):
        gpattr.as_posterior(model, sample=3)
    delta = trained(Deep(Layer(3, 2, q=DeltaVariationalDistribution), Layer(2, None)), steps=1)
    with pytest.raises(UnsupportedModelError, match="DeltaVariationalDistribution"):
        gpattr.as_posterior(delta)
    rough = trained(
        Deep(Layer(3, 2, lambda **o: k.MaternKernel(nu=0.5, **o)), Layer(2, None)), steps=1
    )
    with pytest.raises(UnsupportedModelError, match="[Mm]at"):
        gpattr.as_posterior(rough)
    many = trained(Deep(Layer(3, 1), *(Layer(1, 1) for _ in range(4)), Layer(1, None)), steps=1)
    with pytest.raises(UnsupportedModelError, match="at most 5 layers"):
        gpattr.as_posterior(many)
    several = Deep(Layer(3, 2), Layer(2, 2))
    several(torch.zeros(2, 3))
    several.stack[0].variational_strategy._variational_distribution.chol_variational_covar.data *= 2
    with pytest.raises(UnsupportedModelError, match="one output in the last layer"):
        gpattr.as_posterior(several)


class Skipping(Deep):
    def forward(self, x):
        return self.stack[1](self.stack[0](x), x)


class Scaled(Deep):
    def forward(self, x):
        return super().forward(2.0 * x)


class Twisted(Deep):
    def forward(self, x):
        return self.stack[1](self.stack[0](x) * 2.0)


class Unused(Deep):
    def forward(self, x):
        return self.stack[0](x)


@pytest.mark.parametrize(
    ("kind", "layers", "words"),
    [
        (Skipping, ((3, 2), (5, None)), "skip connections"),
        (Scaled, ((3, 2), (2, None)), "changed before"),
        (Twisted, ((3, 2), (2, None)), "skip connections and changed outputs"),
        (Unused, ((3, None), (2, None)), "does not call it"),
    ],
)
def test_other_forwards_are_refused(kind, layers, words):
    torch.manual_seed(0)
    model = trained(kind(*(Layer(*sizes, m=5) for sizes in layers)), steps=1)
    for layer in model.stack:
        layer.variational_strategy.variational_params_initialized.fill_(1)
    with pytest.raises(UnsupportedModelError, match=words):
        gpattr.as_posterior(model)


def test_the_comparison_notices(model):
    """A layer whose forward is not what its modules say."""

    class Other(Layer):
        def forward(self, x):
            return MultivariateNormal(self.mean_module(x) + 0.1, self.covar_module(x))

    changed = copy.deepcopy(model)
    changed.stack[0].__class__ = Other
    with pytest.raises(UnsupportedModelError, match="differs from that of the posterior"):
        gpattr.as_posterior(changed)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gpattr.as_posterior(model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
