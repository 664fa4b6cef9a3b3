"""What goes wrong without a word when a GP is read out of another library, one test for each trap
that has none elsewhere.
"""

import copy
import pickle
import subprocess
import sys

import pytest

pytest.importorskip("gpjax")
pytest.importorskip("shap")
pytest.importorskip("tinygp")

import gpjax as gpx
import gpytorch
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import shap
import tinygp
import torch
from botorch.models import (
    MixedSingleTaskGP,
    ModelListGP,
    MultiTaskGP,
    SingleTaskGP,
    SingleTaskVariationalGP,
)
from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
from botorch.models.transforms.outcome import Log
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import AdditiveStructureKernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.means import ConstantMean
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import ARDRegression, BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.reference.brute_force import assert_same_attributions
from tests.reference.gpytorch_settings import exact_settings

import gpattr
from gpattr import Explainer
from gpattr.exceptions import InvalidInputError, NotFittedError, UnsupportedModelError

jax.config.update("jax_enable_x64", True)
NUMERICAL = (  # the library says that it raises small noise
    "linear_operator.utils.warnings.NumericalWarning"
)
IGNORED = (
    NUMERICAL,
    "botorch.exceptions.warnings.BotorchWarning",
    "UserWarning",
    "DeprecationWarning",
)
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
    """The library then gives rows of one task the noise of another, or none; the model is explained
    as it is.
    """
    ids = torch.tensor([1.0, 3.0] * 10, dtype=torch.double)[:, None]
    model = MultiTaskGP(torch.cat([X, ids], 1), Y[:, None] + ids, task_feature=-1)
    with torch.no_grad():
        model.likelihood.noise = torch.tensor([0.1, 0.5])
    held = copy.deepcopy(model).eval()
    ex = Explainer(model, b)(x[None])
    for task, name in enumerate(("y1", "y3")):

        def joint(points, task=task):
            full = torch.cat(
                [
                    torch.tensor(points),
                    torch.full((len(points), 1), (1.0, 3.0)[task], dtype=torch.double),
                ],
                1,
            )
            with exact_settings(), torch.no_grad():
                result = held.posterior(full)
                return result.mean.numpy()[:, 0], result.distribution.covariance_matrix.numpy()

        assert_same_attributions(ex[name], joint, b)


def test_fixed_noise_that_the_library_raises():
    """Less than 1e-6 becomes 1e-6."""
    model = Exact(
        ScaleKernel(RBFKernel()),
        FixedNoiseGaussianLikelihood(torch.full((20,), 1e-9, dtype=torch.double)),
    )
    posterior = gpattr.as_posterior(model)
    np.testing.assert_allclose(posterior.noise, 1e-6, rtol=1e-12)


def test_models_that_are_hard_to_condition_are_not_refused():
    """Near-duplicates, a large amplitude, little noise: two exact answers differ by more than a
    flat tolerance.
    """
    twins = np.concatenate([ROWS, ROWS + 1e-6])
    targets = 50 * np.concatenate([TARGETS, TARGETS])
    ours = gpattr.as_posterior(
        GaussianProcessRegressor(ConstantKernel(2500.0) * RBF(2.0), alpha=1e-6, optimizer=None).fit(
            twins, targets
        )
    )
    noise = torch.full((40,), 1e-6, dtype=torch.double)
    torch_model = Exact(
        ScaleKernel(RBFKernel()),
        FixedNoiseGaussianLikelihood(noise),
        torch.tensor(twins),
        torch.tensor(targets),
    )
    torch_model.covar_module.outputscale, torch_model.covar_module.base_kernel.lengthscale = (
        2500.0,
        2.0,
    )
    for posterior in (ours, gpattr.as_posterior(torch_model)):
        ex = Explainer(posterior, b)(x[None])
        np.testing.assert_allclose(ex.delta, 0.0, atol=1e-3)


class Hidden(Exact):
    """One kernel for each feature, summed in forward: the modules do not show it."""

    def __init__(self):
        super().__init__(
            ScaleKernel(RBFKernel(batch_shape=torch.Size([3])), batch_shape=torch.Size([3]))
        )

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x.T[:, :, None]).sum(-3))


def test_structure_that_only_forward_knows():
    with pytest.raises(UnsupportedModelError):
        gpattr.as_posterior(Hidden())


def test_kernels_that_share_a_name_with_their_base():
    """PositiveIndexKernel is an IndexKernel, and scikit-learn's Matern an RBF: names decide, not
    bases.
    """
    assert isinstance(
        gpattr.as_posterior(GaussianProcessRegressor().fit(ROWS, TARGETS)).kernel,
        gpattr.kernels.Kernel,
    )
    with pytest.raises(UnsupportedModelError, match="IndexKernel is not supported"):
        gpattr.as_posterior(Exact(gpytorch.kernels.IndexKernel(num_tasks=3)))


def test_data_that_are_not_those_of_the_model():
    others = ROWS[::-1].copy()
    gp = tinygp.GaussianProcess(tinygp.kernels.ExpSquared(), ROWS, diag=0.1)
    prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF())
    conditioned = (prior * gpx.likelihoods.Gaussian(0.3)).condition(
        gpx.Dataset(X=jnp.asarray(ROWS), y=jnp.asarray(TARGETS)[:, None])
    )
    sklearn = GaussianProcessRegressor(alpha=0.1).fit(ROWS, TARGETS)
    for model in (
        gp,
        conditioned,
        sklearn,
        SingleTaskGP(X, Y[:, None]),
        gpattr.GPRegressor(optimize=False).fit(ROWS, TARGETS),
    ):
        with pytest.raises(
            InvalidInputError, match="data: expected the rows that the model was trained on"
        ):
            gpattr.as_posterior(model, data=(others, TARGETS))
        assert gpattr.as_posterior(model, data=(ROWS, TARGETS)).n_features == 3
    with pytest.raises(InvalidInputError, match=r"data: expected 20 targets, got 19"):
        gpattr.as_posterior(gp, data=TARGETS[1:])
    with pytest.raises(InvalidInputError, match=r"data: expected 20 targets"):
        gpattr.as_posterior(prior * gpx.likelihoods.Gaussian(0.3), data=(ROWS, TARGETS[1:]))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, inducing):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
        super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, distribution))
        self.mean_module, self.covar_module = ConstantMean(), ScaleKernel(RBFKernel())

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def test_a_variational_model_in_float32_keeps_its_own_jitter():
    """Which is a hundred times that of float64, and changes what the model predicts."""
    torch.manual_seed(0)
    model = Variational(X.float())
    with torch.no_grad():
        model(X.float())
        model.variational_strategy._variational_distribution.variational_mean.data = torch.randn(20)
        theirs = model.eval()(X.float()).mean.numpy()
    ex = Explainer(model, b)(ROWS)
    np.testing.assert_allclose(ex.predictions, theirs, atol=2e-3 * np.abs(theirs).max())
    assert ex.method == "closed form (model in float32, computed in float64)"


@pytest.mark.slow
def test_everything_that_must_be_said_is_said():
    """A second note does not replace the first; likelihoods other than the Gaussian are named."""
    log = SingleTaskGP(X.float(), Y.float()[:, None] + 3, outcome_transform=Log())
    said = Explainer(log, b)(ROWS[:1]).method
    assert (
        "of the latent function: the outcome transform is not affine; model in float32, computed in"
        " float64" in said
    )
    labels = (Y > 0.7).double()[:, None]
    bernoulli = SingleTaskVariationalGP(
        X, labels, likelihood=gpytorch.likelihoods.BernoulliLikelihood(), inducing_points=X[:5]
    )
    with torch.no_grad():
        bernoulli.model(X[:2])
    assert "the likelihood is BernoulliLikelihood" in Explainer(bernoulli, b)(ROWS[:1]).method
    prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF())
    model = prior * gpx.likelihoods.Bernoulli()
    family = gpx.variational_families.WhitenedVariationalGaussian(
        model=model, inducing_inputs=jnp.asarray(ROWS[:5])
    )
    data = gpx.Dataset(X=jnp.asarray(ROWS), y=jnp.asarray(labels.numpy()))
    assert "the likelihood is Bernoulli" in Explainer(family.condition(data), b)(ROWS[:1]).method
    with pytest.raises(InvalidInputError, match="expected a conditioned family"):
        Explainer(family)


def test_what_condition_returns_is_explained():
    gp = tinygp.GaussianProcess(tinygp.kernels.ExpSquared(), ROWS, diag=0.1)
    whole, part = (
        Explainer(gp.condition(TARGETS, ROWS))(ROWS[:2]),
        Explainer(gp.condition(TARGETS, ROWS).gp)(ROWS[:2]),
    )
    np.testing.assert_array_equal(whole.values, part.values)


def test_outputs_are_named_on_request():
    model = SingleTaskGP(X, torch.stack([Y, Y**2], 1))
    ex = Explainer(gpattr.as_posterior(model, output_names=["yield", "cost"]), b)(ROWS[:2])
    assert set(ex.outputs) == {"yield", "cost"}
    assert ex["cost"].predictions[0] == pytest.approx(
        Explainer(model, b)(ROWS[:2])["y1"].predictions[0]
    )
    with pytest.raises(InvalidInputError, match="output_names: the model has one output"):
        gpattr.as_posterior(SingleTaskGP(X, Y[:, None]), output_names=["yield"])


def test_scikit_learn_in_float32_and_targets_of_one_column():
    column = GaussianProcessRegressor(RBF(), alpha=0.1).fit(ROWS, TARGETS[:, None])
    assert Explainer(column, b)(ROWS[:2]).predictions.shape == (2,)
    single = GaussianProcessRegressor(RBF(), alpha=0.1, normalize_y=True).fit(
        ROWS, TARGETS.astype("float32")
    )
    assert "float32" in Explainer(single, b)(ROWS[:2]).method
    for kind in (BayesianRidge, ARDRegression):
        linear = kind().fit(ROWS.astype("float32"), TARGETS)
        ex = Explainer(linear, b)(ROWS[:2])
        np.testing.assert_allclose(
            ex.predictions, linear.predict(ROWS[:2].astype("float32")), rtol=1e-4
        )
        assert "float32" in ex.method


def test_realistic_pipelines():
    """Texts imputed before they are encoded, columns that nothing reads, several targets in other
    units.
    """
    kind = np.where(TARGETS > 0.5, "flat", "house")
    frame = pd.DataFrame({"area": ROWS[:, 0], "kind": kind, "id": [f"n{i}" for i in range(20)]})
    kinds = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["area"]), ("kinds", kinds, ["kind"])]
    )
    model = make_pipeline(columns, GaussianProcessRegressor(RBF(), alpha=0.1)).fit(frame, TARGETS)
    ex = Explainer(model)(frame[:3])
    assert ex.feature_names == ("area", "kind", "id")
    np.testing.assert_array_equal(ex.values[:, 2], 0.0)
    np.testing.assert_allclose(ex.predictions, model.predict(frame[:3]), rtol=1e-9)
    with pytest.raises(InvalidInputError, match='baseline: "zeros" has no categories'):
        Explainer(model, "zeros")
    both = np.column_stack([100 * TARGETS + 500, TARGETS**2])
    units = TransformedTargetRegressor(
        GaussianProcessRegressor(RBF(), alpha=0.1), transformer=StandardScaler()
    ).fit(ROWS, both)
    explanations = Explainer(units, b)(ROWS[:2])
    np.testing.assert_allclose(explanations.predictions, units.predict(ROWS[:2]), rtol=1e-9)
    assert explanations["y0"].method == "closed form"


class Narrow(Exact):
    """Looks at two columns only, whatever its modules say."""

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x[..., :2]))


def test_a_constant_column_does_not_hide_what_is_done_with_it():
    rows = X.clone()
    rows[:, 2] = 1.0
    with pytest.raises(UnsupportedModelError, match="differs from that of the posterior"):
        gpattr.as_posterior(Narrow(ScaleKernel(RBFKernel()), inputs=rows))


def test_lists_of_mixed_models_know_the_categories_of_all():
    def coded(codes):
        return torch.cat([X[:, :2], torch.as_tensor(codes, dtype=torch.double)[:, None]], 1)

    zeros, fives = coded([0.0] * 20), coded([5.0, 2.0] * 10)
    model = ModelListGP(
        MixedSingleTaskGP(zeros, Y[:, None], cat_dims=[2]),
        MixedSingleTaskGP(fives, torch.cos(5 * Y)[:, None], cat_dims=[2]),
    )
    with torch.no_grad():
        ex = Explainer(model, zeros[0].numpy())(zeros[:3])
        np.testing.assert_allclose(
            ex.predictions, model.posterior(zeros[:3]).mean.numpy(), rtol=1e-8
        )
    with pytest.raises(
        UnsupportedModelError, match="models: expected categories in the same columns of all models"
    ):
        Explainer(ModelListGP(model.models[0], SingleTaskGP(zeros, Y[:, None])))


def test_sharp_categories_beside_a_rough_kernel_take_no_time():
    rows = torch.cat([X[:, :2], torch.arange(20)[:, None] % 3], 1)
    model = MixedSingleTaskGP(
        rows,
        Y[:, None],
        cat_dims=[2],
        cont_kernel_factory=lambda **options: MaternKernel(nu=2.5, **options),
    )
    for module in model.modules():
        if type(module).__name__ == "CategoricalKernel":
            module.initialize(lengthscale=1e-5)
    ex = Explainer(model, rows[0].numpy())(rows[1:2])
    with torch.no_grad():
        assert ex.predictions[0] == pytest.approx(model.posterior(rows[1:2]).mean.item(), rel=1e-8)
    assert ex.delta[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_noise_that_is_correlated_is_refused_in_float32_too():
    code = (
        "import numpy as np, tinygp, gpattr, jax.numpy as jnp\nx ="
        " np.sort(np.random.default_rng(0).random(20)).astype('f4'); t = np.sin(3 *"
        " x).astype('f4')\nN = np.diag(np.r_[[1e-5] * 10, [.5] * 10]).astype('f4'); N[10:, 10:] +="
        " .5\nnoise = tinygp.noise.Dense(jnp.asarray(N))\ngp ="
        " tinygp.GaussianProcess(tinygp.kernels.ExpSquared(scale=.1), x, noise=noise)\ntry:\n   "
        " gpattr.as_posterior(gp, data=t)\nexcept gpattr.exceptions.UnsupportedModelError as"
        " error:\n    print(error)"
    )
    output = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "differs from that of the posterior" in output


def test_imputers_of_other_values_are_refused():
    model = make_pipeline(
        SimpleImputer(missing_values=0), GaussianProcessRegressor(RBF(), alpha=0.1)
    ).fit(ROWS, TARGETS)
    with pytest.raises(
        UnsupportedModelError, match=r"SimpleImputer\(missing_values=0\) is not supported"
    ):
        Explainer(model)


def test_tensors_that_were_computed():
    model = SingleTaskGP(2 * X.clone().requires_grad_(), Y[:, None])
    assert Explainer(model, b)(ROWS[:1]).delta[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("data", [(), (3.0, 2.0), "rows", {"X": 1}, ([], [])], ids=str)
def test_data_that_are_none(data):
    for model in (
        GaussianProcessRegressor(alpha=0.1).fit(ROWS, TARGETS),
        tinygp.GaussianProcess(tinygp.kernels.ExpSquared(), ROWS, diag=0.1),
    ):
        with pytest.raises(InvalidInputError, match="data: "):
            gpattr.as_posterior(model, data=data)


def test_data_of_models_that_drop_columns_are_right():
    chosen = make_pipeline(
        SelectKBest(f_regression, k=2), GaussianProcessRegressor(RBF(), alpha=0.1)
    ).fit(ROWS, TARGETS)
    assert gpattr.as_posterior(chosen, data=(ROWS, TARGETS)).n_features == 3
    ids = torch.tensor([0.0, 1.0] * 10, dtype=torch.double)[:, None]
    tasks = MultiTaskGP(torch.cat([X, ids], 1), Y[:, None], task_feature=-1)
    assert gpattr.as_posterior(tasks, data=[torch.cat([X, ids], 1), Y]).n_features == 3
    with pytest.raises(
        InvalidInputError, match="data: expected the rows that the model was trained on"
    ):
        gpattr.as_posterior(chosen, data=[ROWS + 1, TARGETS])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"categories": [2]}, r"categories: expected \{column: codes\}"),
        ({"categories": {2: [np.nan]}}, "categories\\[2\\]: expected finite numbers"),
        ({"categories": {2: ["a"]}}, "categories\\[2\\]: expected real numbers"),
        ({"categories": {5: [1]}}, "categories: expected columns with categories"),
        ({"categories": {2: [1], -1: [3]}}, "each once"),
        (
            {"kind": 3},
            "kind: unknown option for a MixedSingleTaskGP; the options are \\['categories'\\]",
        ),
    ],
)
def test_options_that_are_wrong(options, words):
    rows = torch.cat([X[:, :2], torch.arange(20)[:, None] % 3], 1)
    with pytest.raises(InvalidInputError, match=words):
        gpattr.as_posterior(MixedSingleTaskGP(rows, Y[:, None], cat_dims=[2]), **options)


def test_networks_that_are_none():
    for network, words in (
        ("net", "expected a torch module, got a str"),
        (torch.nn.Linear(7, 2), "cannot be applied to rows of 3 columns"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            gpattr.as_posterior(Exact(RBFKernel()), feature_extractor=network)


def test_fits_that_have_not_been_made():
    with pytest.raises(
        NotFittedError, match="this SaasFullyBayesianSingleTaskGP is not fitted yet"
    ):
        Explainer(SaasFullyBayesianSingleTaskGP(X, Y[:, None]))


def test_models_are_read_again_after_pickling():
    model = pickle.loads(pickle.dumps(GaussianProcessRegressor(alpha=0.1).fit(ROWS, TARGETS)))
    assert Explainer(model, b)(x[None]).delta[0] == pytest.approx(0.0, abs=1e-10)


def test_shap_agrees_where_it_computes_the_same():
    """Of a sum of functions of one feature each, Shapley values against one row are integrated
    gradients from there.
    """
    model = Exact(AdditiveStructureKernel(ScaleKernel(RBFKernel()), num_dims=3)).eval()

    def predict(rows):
        with exact_settings(), torch.no_grad():
            return model(torch.tensor(rows)).mean.numpy()

    theirs = shap.explainers.Exact(predict, shap.maskers.Independent(b[None]))(ROWS[1:4])
    np.testing.assert_allclose(Explainer(model, b)(ROWS[1:4]).values, theirs.values, atol=1e-6)
