"""What goes wrong without a word when a GP is read out of another library, one test for each trap that has none elsewhere."""

import copy
import pickle

import gpjax as gpx
import gpytorch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shap
import tinygp
import torch
from botorch.models import MultiTaskGP, SingleTaskGP
from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import AdditiveStructureKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.means import ConstantMean
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from tests.reference.brute_force import assert_same_attributions

import gpattr
from gpattr import Explainer
from gpattr.adapters.gpytorch_models import exact_settings
from gpattr.exceptions import InvalidInputError, UnsupportedModelError

jax.config.update("jax_enable_x64", True)
NUMERICAL = "linear_operator.utils.warnings.NumericalWarning"  # the library says that it raises small noise
IGNORED = (NUMERICAL, "botorch.exceptions.warnings.BotorchWarning", "UserWarning", "DeprecationWarning")
pytestmark = [pytest.mark.filterwarnings(f"ignore::{warning}") for warning in IGNORED]
RNG = np.random.default_rng(0)
ROWS = RNG.uniform(size=(20, 3))
TARGETS = np.sin(3 * ROWS[:, 0]) + ROWS[:, 1] * ROWS[:, 2]
X, Y = torch.tensor(ROWS), torch.tensor(TARGETS)
x, b = ROWS[1], ROWS[0]


class Exact(gpytorch.models.ExactGP):
    def __init__(self, kernel, likelihood=None, inputs=X, targets=Y):
        super().__init__(inputs, targets, likelihood or GaussianLikelihood())
        self.mean_module, self.covar_module = ConstantMean(), kernel
        self.double()

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def test_a_fully_bayesian_fit_survives():
    """`.train()` would destroy it: covariance, mean and likelihood become None."""
    model = SaasFullyBayesianSingleTaskGP(X, Y[:, None])
    samples = {
        "lengthscale": torch.rand(4, 1, 3, dtype=torch.double) + 0.5,
        "outputscale": torch.rand(4, dtype=torch.double) + 0.5,
        "mean": torch.rand(4, dtype=torch.double),
        "noise": 0.01 + torch.rand(4, 1, dtype=torch.double),
    }
    model.load_mcmc_samples(samples)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    Explainer(model, b)(x[None])
    after = model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert model.covar_module is not None


def test_tasks_that_are_not_numbered_from_zero():
    """The library then gives rows of one task the noise of another, or none; the model is explained as it is."""
    ids = torch.tensor([1.0, 3.0] * 10, dtype=torch.double)[:, None]
    model = MultiTaskGP(torch.cat([X, ids], 1), Y[:, None] + ids, task_feature=-1)
    with torch.no_grad():
        model.likelihood.noise = torch.tensor([0.1, 0.5])
    held = copy.deepcopy(model).eval()
    ex = Explainer(model, b)(x[None])
    for task, name in enumerate(("y1", "y3")):

        def joint(points, task=task):
            full = torch.cat([torch.tensor(points), torch.full((len(points), 1), (1.0, 3.0)[task], dtype=torch.double)], 1)
            with exact_settings(), torch.no_grad():
                result = held.posterior(full)
                return result.mean.numpy()[:, 0], result.distribution.covariance_matrix.numpy()

        assert_same_attributions(ex[name], joint, b)


def test_fixed_noise_that_the_library_raises():
    """Less than 1e-6 becomes 1e-6."""
    model = Exact(ScaleKernel(RBFKernel()), FixedNoiseGaussianLikelihood(torch.full((20,), 1e-9, dtype=torch.double)))
    posterior = gpattr.as_posterior(model)
    np.testing.assert_allclose(posterior.noise, 1e-6, rtol=1e-12)


def test_models_that_are_hard_to_condition_are_not_refused():
    """Near-duplicates, a large amplitude, little noise: two exact answers differ by more than a flat tolerance."""
    twins = np.concatenate([ROWS, ROWS + 1e-6])
    targets = 50 * np.concatenate([TARGETS, TARGETS])
    ours = gpattr.as_posterior(
        GaussianProcessRegressor(ConstantKernel(2500.0) * RBF(2.0), alpha=1e-6, optimizer=None).fit(twins, targets)
    )
    noise = torch.full((40,), 1e-6, dtype=torch.double)
    torch_model = Exact(
        ScaleKernel(RBFKernel()),
        FixedNoiseGaussianLikelihood(noise),
        torch.tensor(twins),
        torch.tensor(targets),
    )
    torch_model.covar_module.outputscale, torch_model.covar_module.base_kernel.lengthscale = 2500.0, 2.0
    for posterior in (ours, gpattr.as_posterior(torch_model)):
        ex = Explainer(posterior, b)(x[None])
        np.testing.assert_allclose(ex.delta, 0.0, atol=1e-3)


class Hidden(Exact):
    """One kernel for each feature, summed in forward: the modules do not show it."""

    def __init__(self):
        super().__init__(ScaleKernel(RBFKernel(batch_shape=torch.Size([3])), batch_shape=torch.Size([3])))

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x.T[:, :, None]).sum(-3))


def test_structure_that_only_forward_knows():
    with pytest.raises(UnsupportedModelError):
        gpattr.as_posterior(Hidden())


def test_kernels_that_share_a_name_with_their_base():
    """PositiveIndexKernel is an IndexKernel, and scikit-learn's Matern an RBF: names decide, not bases."""
    assert isinstance(gpattr.as_posterior(GaussianProcessRegressor().fit(ROWS, TARGETS)).kernel, gpattr.kernels.Kernel)
    with pytest.raises(UnsupportedModelError, match="IndexKernel is not known"):
        gpattr.as_posterior(Exact(gpytorch.kernels.IndexKernel(num_tasks=3)))


def test_gpjax_orthogonal_additive_kernel_and_powers_of_data():
    kernel = gpx.kernels.OrthogonalAdditiveKernel([gpx.kernels.RBF() for _ in range(3)], max_order=2)
    prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=kernel)
    with pytest.raises(UnsupportedModelError, match="OrthogonalAdditiveKernel is not known"):
        gpattr.as_posterior(prior * gpx.likelihoods.Gaussian(0.3), data=(ROWS, TARGETS))


def test_data_that_are_not_those_of_the_model():
    others = ROWS[::-1].copy()
    gp = tinygp.GaussianProcess(tinygp.kernels.ExpSquared(), ROWS, diag=0.1)
    prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF())
    conditioned = (prior * gpx.likelihoods.Gaussian(0.3)).condition(
        gpx.Dataset(X=jnp.asarray(ROWS), y=jnp.asarray(TARGETS)[:, None])
    )
    sklearn = GaussianProcessRegressor(alpha=0.1).fit(ROWS, TARGETS)
    for model in (gp, conditioned, sklearn, SingleTaskGP(X, Y[:, None]), gpattr.GPRegressor(optimize=False).fit(ROWS, TARGETS)):
        with pytest.raises(InvalidInputError, match="data: expected the rows that the model was trained on"):
            gpattr.as_posterior(model, data=(others, TARGETS))
        assert gpattr.as_posterior(model, data=(ROWS, TARGETS)).n_features == 3
    with pytest.raises(InvalidInputError, match=r"data: expected 20 targets, got 19"):
        gpattr.as_posterior(gp, data=TARGETS[1:])
    with pytest.raises(InvalidInputError, match=r"data: expected 20 targets"):
        gpattr.as_posterior(prior * gpx.likelihoods.Gaussian(0.3), data=(ROWS, TARGETS[1:]))


def test_models_are_read_again_after_pickling():
    model = pickle.loads(pickle.dumps(GaussianProcessRegressor(alpha=0.1).fit(ROWS, TARGETS)))
    assert Explainer(model, b)(x[None]).delta[0] == pytest.approx(0.0, abs=1e-10)


def test_shap_agrees_where_it_computes_the_same():
    """Of a sum of functions of one feature each, Shapley values against one row are integrated gradients from there."""
    model = Exact(AdditiveStructureKernel(ScaleKernel(RBFKernel()), num_dims=3)).eval()

    def predict(rows):
        with exact_settings(), torch.no_grad():
            return model(torch.tensor(rows)).mean.numpy()

    theirs = shap.explainers.Exact(predict, shap.maskers.Independent(b[None]))(ROWS[1:4])
    np.testing.assert_allclose(Explainer(model, b)(ROWS[1:4]).values, theirs.values, atol=1e-6)
