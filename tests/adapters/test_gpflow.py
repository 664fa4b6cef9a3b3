"""Models of GPflow as they are: predictions at 1e-8, attributions against their own joint
predictive distributions.

GPflow needs NumPy 1, so it has an environment of its own: ``pip install -e ".[test-gpflow]"``.
"""

import subprocess
import sys

import numpy as np
import pytest
from tests.reference.brute_force import assert_same_attributions

gpflow = pytest.importorskip(
    "gpflow", reason="GPflow needs NumPy 1: its tests run in an environment of their own"
)

import gpattr  # noqa: E402
from gpattr import Explainer  # noqa: E402
from gpattr.exceptions import UnsupportedModelError  # noqa: E402

K = gpflow.kernels
RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 3))
Y = (np.sin(X[:, 0]) + X[:, 1] ** 2 + 3.0)[:, None]
Z = X[::4] + 0.1
x, b = np.array([0.7, -0.4, 0.2]), np.array([-0.5, 0.3, 0.6])
KERNELS = {
    "squared exponential": lambda: K.SquaredExponential(variance=1.3, lengthscales=[1.0, 2.0, 0.5]),
    "Matern52": lambda: K.Matern52(lengthscales=1.1),
    "Matern32": lambda: K.Matern32(variance=2.0, lengthscales=[1.4, 1.0, 2.0]),
    "rational quadratic": lambda: K.RationalQuadratic(alpha=0.7, lengthscales=1.2),
    "linear": lambda: K.RBF() + K.Linear(variance=[0.4, 0.2], active_dims=[0, 2]),
    "polynomial": lambda: K.Polynomial(degree=2, variance=0.7, offset=0.5) + K.RBF(),
    "degree one": lambda: K.Polynomial(degree=1, variance=0.7, offset=0.5) + K.RBF(),
    "periodic": lambda: K.Periodic(K.RBF(active_dims=[1], lengthscales=0.8), period=2.0) + K.RBF(),
    "periodic of all": lambda: K.Periodic(
        K.RBF(lengthscales=[0.8, 1.0, 1.3], variance=0.6), period=[4.0, 5.0, 6.0]
    ),
    "cosine": lambda: K.Cosine(lengthscales=[3.0, 4.0, 5.0]) * K.RBF(),
    "constant": lambda: K.Constant(0.4) + K.RBF(active_dims=slice(0, 2)),
    "white": lambda: K.RBF() + K.White(0.2),
    "nested": lambda: (
        (K.RBF() + K.Linear(active_dims=[2])) * (K.RBF(lengthscales=2.0) + K.Constant(0.3))
    ),
    "product on columns": lambda: (
        K.RBF(active_dims=[2, 0], lengthscales=[1.0, 0.7]) * K.Matern52(active_dims=[1])
    ),
}


def joint_of(model, white=0.0, output=0):
    def joint(points):
        mean, cov = model.predict_f(points, full_cov=True)
        return np.asarray(mean)[:, output], np.asarray(cov)[output] - white * np.eye(len(points))

    return joint


def assert_explained(model, white=0.0, output=0, ex=None, **options):
    """Predictions at 1e-8, attributions by brute force."""
    points = RNG.normal(size=(8, 3))
    posterior = gpattr.as_posterior(model)
    posterior = posterior if ex is None else posterior[f"y{output}"]
    mean, cov = posterior.predict(points, return_cov=True)
    theirs, C = joint_of(model, white, output)(points)
    np.testing.assert_allclose(mean, theirs, atol=1e-8 * np.abs(theirs).max())
    np.testing.assert_allclose(cov, C, atol=1e-8 * np.abs(C).max())
    assert_same_attributions(
        ex or Explainer(model, b)(x[None]), joint_of(model, white, output), b, **options
    )


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    model = gpflow.models.GPR(
        (X, Y), KERNELS[name](), mean_function=gpflow.functions.Constant(0.5), noise_variance=0.1
    )
    kinks = {"Matern32": 1.5, "Matern52": 2.5, "product on columns": 2.5}.get(name)
    assert_explained(
        model,
        white=0.2 if name == "white" else 0.0,
        kinks=kinks,
        panels=4 if name == "periodic" else 1,
    )


def test_means_and_noise_of_each_row():
    mean = gpflow.functions.Linear(np.array([[0.5], [-1.0], [2.0]]), np.array([0.3]))
    noise = gpflow.likelihoods.Gaussian(
        scale=gpflow.functions.Linear(np.array([[0.1], [0.0], [0.05]]), np.array([0.7]))
    )
    assert_explained(gpflow.models.GPR((X, Y), K.RBF(), mean_function=mean, likelihood=noise))


def test_several_outputs():
    targets = np.hstack([Y, np.cos(X[:, :1]), X[:, 2:]])
    mean = gpflow.functions.Constant(np.array([0.5, 0.1, -1.0]))
    for model in (
        gpflow.models.GPR((X, targets), K.RBF(), mean_function=mean, noise_variance=0.1),
        gpflow.models.SGPR((X, targets), K.RBF(), Z, mean_function=mean, noise_variance=0.1),
    ):
        explanations = Explainer(model, b)(x[None])
        for output in range(3):
            assert_explained(model, output=output, ex=explanations[f"y{output}"])


@pytest.mark.parametrize("white", [0.0, 0.2])
def test_sparse_regression(white):
    kernel = (
        K.RBF(lengthscales=[1.0, 2.0, 0.7]) + K.White(white)
        if white
        else K.RBF(lengthscales=[1.0, 2.0, 0.7])
    )
    model = gpflow.models.SGPR(
        (X, Y), kernel, Z, mean_function=gpflow.functions.Constant(0.5), noise_variance=0.1
    )
    assert_explained(model, white=white)


@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize("diagonal", [True, False])
def test_variational(whiten, diagonal):
    model = gpflow.models.SVGP(
        K.RBF(),
        gpflow.likelihoods.Gaussian(0.1),
        Z,
        whiten=whiten,
        q_diag=diagonal,
        mean_function=gpflow.functions.Constant(0.5),
    )
    model.q_mu.assign(RNG.normal(size=(len(Z), 1)))
    root = 0.2 * np.tril(RNG.normal(size=(len(Z), len(Z)))) + 0.3 * np.eye(len(Z))
    model.q_sqrt.assign(np.abs(root.diagonal())[:, None] if diagonal else root[None])
    assert_explained(model)
    assert Explainer(model, b)(x[None]).method == "closed form"


def test_classification_is_of_the_latent_function():
    labels = (Y > 4.0).astype(float)
    model = gpflow.models.VGP((X, labels), K.RBF(), gpflow.likelihoods.Bernoulli())
    gpflow.optimizers.Scipy().minimize(
        model.training_loss, model.trainable_variables, options={"maxiter": 20}
    )
    assert_explained(model)
    assert (
        Explainer(model, b)(x[None]).method
        == "closed form (of the latent function: the likelihood is Bernoulli)"
    )


def test_the_model_is_left_as_it_was():
    model = gpflow.models.GPR((X, Y), K.RBF(), noise_variance=0.1)
    gpflow.optimizers.Scipy().minimize(
        model.training_loss, model.trainable_variables, options={"maxiter": 20}
    )
    before = {
        name: np.array(parameter)
        for name, parameter in gpflow.utilities.parameter_dict(model).items()
    }
    Explainer(model, b)(x[None])
    after = {
        name: np.array(parameter)
        for name, parameter in gpflow.utilities.parameter_dict(model).items()
    }
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_array_equal(before[name], after[name])


class Doubled(K.SquaredExponential):
    """A kernel of the user's own."""


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda: K.ArcCosine(), "GPflow's ArcCosine is not supported"),
        (lambda: K.Periodic(K.Matern52()), "GPflow's Periodic of Matern52 is not supported"),
        (lambda: Doubled(), "Doubled is not supported"),
        (lambda: K.Polynomial(degree=2.5), "Polynomial of degree 2.5 is not supported"),
    ],
)
def test_kernels_that_are_not_known(kernel, words):
    with pytest.raises(UnsupportedModelError, match=words):
        gpattr.as_posterior(gpflow.models.GPR((X, Y), kernel(), noise_variance=0.1))


def test_parts_that_are_not_known():
    with pytest.raises(
        UnsupportedModelError, match="mean_function: GPflow's Polynomial is not supported"
    ):
        gpattr.as_posterior(
            gpflow.models.GPR(
                (X, Y), K.RBF(), mean_function=gpflow.functions.Polynomial(2, input_dim=3)
            )
        )
    shared = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(Z)
    )
    kernel = K.SharedIndependent(K.RBF(), output_dim=2)
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.1), shared, num_latent_gps=2)
    with pytest.raises(
        UnsupportedModelError, match="SharedIndependentInducingVariables is not supported"
    ):
        gpattr.as_posterior(model)
    with pytest.raises(UnsupportedModelError, match="White alone has no function to explain"):
        gpattr.as_posterior(gpflow.models.SGPR((X, Y), K.White(), Z))
    with pytest.raises(UnsupportedModelError, match=r"got gpflow\.models\.gpmc\.GPMC"):
        gpattr.as_posterior(gpflow.models.GPMC((X, Y), K.RBF(), gpflow.likelihoods.Gaussian()))


def test_a_model_in_float32():
    code = (
        "import numpy as np, gpflow, gpattr\ngpflow.config.set_default_float(np.float32)\nX ="
        " np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32); y = np.sin(X[:,"
        " :1])\nmodel = gpflow.models.GPR((X, y), gpflow.kernels.RBF(),"
        " noise_variance=0.1)\nprint(gpattr.Explainer(model)(X[:2]).method)"
    )
    output = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert output.splitlines() == ["closed form (model in float32, computed in float64)"]
