"""Models of GPy and Emukit as they are, against their own joint predictions."""

import numpy as np
import pytest
from tests.reference.library_models import assert_explained

GPy = pytest.importorskip("GPy", reason="GPy is tested in the environment of the extra test-gpflow")

import gpattr  # noqa: E402
from gpattr.adapters.kriging.gpy_models import KERNELS as TABLE  # noqa: E402
from gpattr.exceptions import UnsupportedModelError  # noqa: E402

K = GPy.kern
RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 3))
Y = (np.sin(X[:, 0]) + X[:, 1] ** 2 + 3.0)[:, None]
Z = X[::4] + 0.1
x, b = np.array([0.7, -0.4, 0.2]), np.array([-0.5, 0.3, 0.6])
KERNELS = {
    "RBF": lambda: K.RBF(3, variance=1.3, lengthscale=[1.0, 2.0, 0.5], ARD=True),
    "ExpQuad": lambda: K.ExpQuad(3, lengthscale=1.2),
    "Matern52": lambda: K.Matern52(3, lengthscale=1.1),
    "Matern32": lambda: K.Matern32(3, variance=2.0, lengthscale=[1.4, 1.0, 2.0], ARD=True),
    "RatQuad": lambda: K.RatQuad(3, power=0.7, lengthscale=1.2),
    "Linear": lambda: K.RBF(3) + K.Linear(2, variances=[0.4, 0.2], ARD=True, active_dims=[0, 2]),
    "Poly": lambda: K.Poly(3, variance=0.7, scale=0.5, bias=0.4, order=2) + K.RBF(3),
    "Poly of order 1": lambda: K.Poly(3, variance=0.7, scale=0.5, order=1) + K.RBF(3),
    "StdPeriodic": lambda: (
        K.StdPeriodic(1, period=4.0, lengthscale=0.8, active_dims=[1]) + K.RBF(3)
    ),
    "Cosine": lambda: K.Cosine(1, lengthscale=0.9, active_dims=[0]) * K.RBF(3),
    "ExpQuadCosine": lambda: (
        K.ExpQuadCosine(1, lengthscale=9.0, period=0.4, active_dims=[2]) + K.RBF(3)
    ),
    "Bias": lambda: K.Bias(3, 0.4) + K.RBF(2, active_dims=[2, 0]),
    "White": lambda: K.RBF(3) + K.White(3, 0.2),
    "nested": lambda: (
        (K.RBF(3) + K.Linear(1, active_dims=[2])) * (K.RBF(3, lengthscale=2.0) + K.Bias(3, 0.3))
    ),
}


def joint_of(model, white=0.0, output=0):
    def joint(points):
        mean, cov = model.predict_noiseless(points, full_cov=True)
        cov = cov[:, :, output] if cov.ndim == 3 else cov
        return mean[:, output], cov - white * np.eye(len(points))

    return joint


def explained(model, white=0.0, x=x, b=b, **options):
    return assert_explained(gpattr.as_posterior(model), joint_of(model, white), x, b, **options)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    model = GPy.models.GPRegression(X, Y, KERNELS[name](), noise_var=0.1)
    panels = 4 if name in ("StdPeriodic", "ExpQuadCosine") else 1
    explained(
        model,
        0.2 if name == "White" else 0.0,
        nu={"Matern32": 1.5, "Matern52": 2.5}.get(name),
        panels=panels,
    )


@pytest.mark.parametrize("normalizer", [False, True])
def test_units_means_and_optimised(normalizer):
    mean = GPy.mappings.Additive(GPy.mappings.Linear(3, 1), GPy.mappings.Constant(3, 1, 0.5))
    model = GPy.models.GPRegression(
        X, 1000 * Y, K.RBF(3, ARD=True), normalizer=normalizer, mean_function=mean
    )
    model.likelihood.variance.fix(0.05)
    model.optimize(max_iters=30)
    explained(model)


def test_noise_of_each_row():
    model = GPy.models.GPHeteroscedasticRegression(X, Y, K.RBF(3))
    model.het_Gauss.variance[:] = RNG.uniform(0.05, 0.2, size=(25, 1))
    posterior = gpattr.as_posterior(model)
    assert_explained(posterior, lambda points: _raw(model, points), x, b)


def _raw(model, points):
    mean, cov = model._raw_predict(points, full_cov=True)
    return mean[:, 0], cov


@pytest.mark.parametrize("normalizer", [False, True])
def test_several_outputs(normalizer):
    targets = np.hstack([Y, np.cos(X[:, :1]), 10 * X[:, 2:]])
    model = GPy.models.GPRegression(X, targets, K.RBF(3), noise_var=0.1, normalizer=normalizer)
    posterior = gpattr.as_posterior(model)
    for output in range(3):
        assert_explained(posterior[f"y{output}"], joint_of(model, output=output), x, b)


@pytest.mark.parametrize("white", [0.0, 0.2])
@pytest.mark.parametrize("method", ["VarDTC", "FITC"])
def test_sparse(white, method):
    kernel = K.RBF(3, lengthscale=[1.0, 2.0, 0.7], ARD=True)
    kernel = kernel + K.White(3, white) if white else kernel
    model = GPy.models.SparseGPRegression(X, Y, kernel, Z=Z)
    model.likelihood.variance = 0.1
    if method == "FITC":
        model.inference_method = GPy.inference.latent_function_inference.FITC()
        model.parameters_changed()
    explained(model, white)


@pytest.mark.parametrize("d", [1, 20])
def test_narrow_and_wide(d):
    rows = RNG.normal(size=(30, d))
    targets = np.sin(rows[:, :1]) + rows[:, -1:]
    model = GPy.models.GPRegression(rows, targets, K.RBF(d, lengthscale=2.0), noise_var=0.1)
    explained(model, x=rows[0], b=rows[1])


def test_the_model_is_left_as_it_was():
    model = GPy.models.GPRegression(X, Y, K.RBF(3), noise_var=0.1)
    before = np.array(model.param_array)
    gpattr.Explainer(model, b)(x[None])
    np.testing.assert_array_equal(before, model.param_array)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda: K.MLP(3), "kern: GPy's MLP is not supported"),
        (lambda: K.Cosine(3), "Cosine of 3 features is a function of their distance"),
        (lambda: K.Poly(3, order=2.5), r"Poly of order 2\.5 is not supported"),
    ],
)
def test_kernels_that_are_not_supported(kernel, words):
    with pytest.raises(UnsupportedModelError, match=words):
        TABLE.translate(kernel() + K.RBF(3), 3)  # models of some of them cannot even be made


def test_models_that_are_not_supported():
    labels = (Y > 4.0).astype(float)
    with pytest.raises(UnsupportedModelError, match="got GPy.models.gp_classification"):
        gpattr.as_posterior(GPy.models.GPClassification(X, labels))
    kernel = GPy.util.multioutput.ICM(3, 2, K.RBF(3))
    model = GPy.models.GPCoregionalizedRegression([X, X], [Y, Y], kernel)
    with pytest.raises(UnsupportedModelError, match="got GPy.models.gp_coregionalized_regression"):
        gpattr.as_posterior(model)


def test_emukit():
    wrappers = pytest.importorskip(
        "emukit.model_wrappers", reason="Emukit is tested in the environment of test-gpflow"
    )
    model = GPy.models.GPRegression(X, Y, K.RBF(3), noise_var=0.1)
    one = gpattr.Explainer(wrappers.GPyModelWrapper(model), b)(x[None])
    assert one == gpattr.Explainer(model, b)(x[None])
    simple = wrappers.SimpleGaussianProcessModel(X, Y)
    simple.optimize()
    ex = gpattr.Explainer(simple, b)(x[None])
    values = simple.predict(np.array([x, b]))[0][:, 0]
    np.testing.assert_allclose(ex.values.sum(), values[0] - values[1], rtol=1e-8)
