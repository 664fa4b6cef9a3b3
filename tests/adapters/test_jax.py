"""Models of tinygp and GPJax as they are: predictions at 1e-8, attributions against their own joint
predictive distributions.
"""

import subprocess
import sys

import pytest

pytest.importorskip("gpjax")
pytest.importorskip("tinygp")

import gpjax as gpx
import jax
import jax.numpy as jnp
import numpy as np
from gpjax import kernels as gk
from tests.reference.brute_force import assert_same_attributions
from tinygp import GaussianProcess
from tinygp import kernels as tk
from tinygp import transforms as tt
from tinygp.kernels.distance import L2Distance

import gpattr
from gpattr import Explainer
from gpattr.exceptions import InvalidInputError, UnsupportedModelError

jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 3.0
x, b = np.array([0.7, -0.4, 0.2]), np.array([-0.5, 0.3, 0.6])
TINY = {
    "squared exponential": (
        1.5 * tt.Linear(jnp.array([1.0, 2.0, 0.5]), tk.ExpSquared(0.9)) + tk.Constant(0.3)
    ),
    "Matern52": tk.Matern52(1.2, distance=L2Distance()),
    "Matern32": tt.Cholesky(jnp.array([1.0, 2.0, 0.7]), tk.Matern32(distance=L2Distance())),
    "rational quadratic": tk.RationalQuadratic(1.1, alpha=0.7, distance=L2Distance()),
    "polynomial": tk.Polynomial(order=2, scale=1.5, sigma=0.7) + tk.ExpSquared(),
    "polynomial without a constant": tk.Polynomial(order=2, scale=1.5) + tk.ExpSquared(),
    "dot product": tk.DotProduct() + 0.3 * tk.ExpSquared(),
    "a factor": tt.Cholesky(
        jnp.array([[1.0, 0, 0], [0.3, 1.2, 0], [0.1, 0.2, 0.8]]), tk.ExpSquared()
    ),
    "a matrix": tt.Linear(jnp.array([[1.0, 0.2, 0.3], [0.0, 1.0, 0.4]]), tk.ExpSquared()),
    "one axis": (
        tt.Subspace(1, tk.ExpSineSquared(2.0, gamma=1.3)) * tk.ExpSquared(2.0)
        + tt.Subspace(0, tk.ExpSquared(1.0))
    ),
    "cosine": tt.Subspace(2, tk.Cosine(3.0)) * tk.ExpSquared(),
    "scaled sum": tt.Linear(
        2.0, tk.DotProduct() * tk.ExpSquared() + tt.Subspace(1, tk.ExpSineSquared(3.0, gamma=0.5))
    ),
}


def some(names, *quick):
    """Every case that is compiled anew takes seconds: a few stand for all in the quick run."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


def compiled(joint):
    """Return a function of points to NumPy arrays: one compilation, not one for each operation."""
    fast = jax.jit(joint)
    return lambda points: tuple(np.asarray(part) for part in fast(jnp.asarray(points)))


def tiny(kernel, inputs=X, **options):
    return GaussianProcess(kernel, jnp.asarray(inputs), **({"diag": 0.1, "mean": 0.5} | options))


def joint_of_tiny(gp, y=Y):
    def joint(points):
        conditioned = gp.condition(y, points).gp
        # what the library adds to the covariance it reports
        jitter = jnp.diag(conditioned.noise.diagonal())
        return conditioned.loc, conditioned.covariance - jitter

    return compiled(joint)


@pytest.mark.slow
@pytest.mark.parametrize("name", some(TINY, "squared exponential", "Matern52", "one axis"))
def test_tinygp_kernels(name):
    gp = tiny(TINY[name])
    points = RNG.normal(size=X.shape)  # whose shape has been compiled
    mean, cov = joint_of_tiny(gp)(points)
    conditioned = gp.condition(Y, jnp.asarray(points)).gp
    given = [(conditioned, None)] + ([(gp, Y), (gp, (X, Y))] if name == "dot product" else [])
    for model, data in given:
        ours, C = gpattr.as_posterior(model, data=data).predict(points, return_cov=True)
        np.testing.assert_allclose(ours, mean, atol=1e-8 * np.abs(mean).max())
        np.testing.assert_allclose(C, cov, atol=1e-8 * np.abs(cov).max())
    ex = Explainer(conditioned, b)(x[None])
    kinks = {"Matern32": 1.5, "Matern52": 2.5}.get(name)
    assert_same_attributions(
        ex, joint_of_tiny(gp), b, kinks=kinks, panels=4 if name in ("one axis", "cosine") else 1
    )


@pytest.mark.slow
def test_tinygp_in_one_dimension():
    """Inputs without a second axis, noise of each row; the sum of absolute differences is the usual
    distance.
    """
    gp = tiny(
        tk.Matern52(1.2) + tk.ExpSineSquared(2.0, gamma=1.0),
        X[:, 0],
        diag=np.linspace(0.1, 0.3, 20),
    )
    ex = Explainer(gpattr.as_posterior(gp, data=Y), b[:1])(x[None, :1])
    assert ex.predictions[0] == pytest.approx(float(gp.condition(Y, x[:1]).gp.loc[0]), rel=1e-10)
    assert ex.delta[0] == pytest.approx(0.0, abs=1e-10)


def called_back(x, y):
    """A kernel that is computed outside of JAX, which has no derivatives."""
    k = jnp.exp(-jnp.sum((x - y) ** 2))
    return jax.pure_callback(
        np.asarray, jax.ShapeDtypeStruct((), k.dtype), k, vmap_method="expand_dims"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: tiny(tk.Matern52(1.0)),
            UnsupportedModelError,
            "Matern52 of 3 features with L1Distance is not positive definite",
        ),
        (
            lambda: tiny(tk.RationalQuadratic(alpha=1.0)),
            UnsupportedModelError,
            "RationalQuadratic of 3 features with L1Distance",
        ),
        (
            lambda: tiny(tk.Exp(1.0)),
            UnsupportedModelError,
            "Exp of 3 features with L1Distance has no gradients",
        ),
        (
            lambda: tiny(tk.Cosine(1.0), diag=50.0),
            UnsupportedModelError,
            "Cosine of 3 features with L1Distance is not positive",
        ),
        (
            lambda: tiny(tk.Custom(lambda x, y: jnp.round(x[0]) * jnp.round(y[0]))),
            UnsupportedModelError,
            "kernel: Custom is not supported: its values change by",
        ),
        (
            lambda: tiny(tk.Custom(called_back)),
            UnsupportedModelError,
            "kernel: Custom is not supported: it fails, or has no derivatives",
        ),
    ],
)
def test_what_tinygp_has_that_is_not_known(make, error, words):
    with pytest.raises(error, match=words):
        gpattr.as_posterior(make(), data=Y)


def test_tinygp_keeps_no_targets():
    with pytest.raises(
        InvalidInputError,
        match=r"data: tinygp does not keep the targets; pass as_posterior\(gp, data=y\)",
    ):
        Explainer(tiny(tk.ExpSquared()))


DATA = gpx.Dataset(X=jnp.asarray(X), y=jnp.asarray(Y)[:, None])
GPJAX = {
    "RBF": gk.RBF(lengthscale=jnp.array([1.0, 2.0, 0.5]), variance=1.3),
    "Matern52": gk.Matern52(lengthscale=1.1),
    "Matern32": gk.Matern32(lengthscale=1.4, variance=2.0),
    "RationalQuadratic": gk.RationalQuadratic(alpha=0.7, lengthscale=1.2),
    "Linear": gk.RBF(lengthscale=1.2) + gk.Linear(active_dims=[1], variance=0.4),
    "product": (
        gk.RBF(lengthscale=1.1) * gk.RBF(active_dims=[0, 2], lengthscale=jnp.array([1.0, 0.7]))
    ),
    "Periodic": gk.Periodic(active_dims=[1], period=2.0, lengthscale=0.8) + gk.RBF(),
    "Polynomial": gk.Polynomial(degree=2, shift=0.5, variance=0.7) + gk.RBF(),
    "degree one": gk.Polynomial(degree=1, shift=0.5, variance=0.7) + gk.RBF(),
    "Constant": gk.Constant(constant=jnp.array(0.4)) + gk.RBF(active_dims=slice(0, 2)),
    "nested": (
        (gk.RBF() + gk.Linear()) * (gk.RBF(lengthscale=2.0) + gk.Constant(constant=jnp.array(0.3)))
    ),
}


def gpjax_model(kernel, mean=None):
    prior = gpx.gps.Prior(mean_function=mean or gpx.mean_functions.Constant(0.3), kernel=kernel)
    return prior * gpx.likelihoods.Gaussian(obs_stddev=0.3)


def joint_of_gpjax(posterior):
    prior = posterior.prior if hasattr(posterior, "prior") else posterior.model.prior

    def joint(points):
        result = posterior.predict(points)
        jitter = prior.jitter * jnp.eye(len(points))
        return result.mean.reshape(-1), result.covariance() - jitter

    return compiled(joint)


@pytest.mark.slow
@pytest.mark.parametrize("name", some(GPJAX, "RBF", "Matern32", "Linear"))
def test_gpjax_kernels(name):
    model = gpjax_model(GPJAX[name])
    theirs = model.condition(DATA)
    points = RNG.normal(size=X.shape)  # whose shape has been compiled
    mean, cov = joint_of_gpjax(theirs)(points)
    for posterior in (
        gpattr.as_posterior(theirs),
        gpattr.as_posterior(model, data=DATA),
        gpattr.as_posterior(model, data=(X, Y)),
    ):
        ours, C = posterior.predict(points, return_cov=True)
        np.testing.assert_allclose(ours, mean, atol=1e-8 * np.abs(mean).max())
        np.testing.assert_allclose(C, cov, atol=1e-8 * np.abs(cov).max())
    kinks = {"Matern32": 1.5, "Matern52": 2.5}.get(name)
    assert_same_attributions(
        Explainer(theirs, b)(x[None]),
        joint_of_gpjax(theirs),
        b,
        kinks=kinks,
        panels=4 if name == "Periodic" else 1,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    some(
        ["VariationalGaussian", "WhitenedVariationalGaussian", "CollapsedVariationalGaussian"],
        "WhitenedVariationalGaussian",
    ),
)
def test_gpjax_variational_families(family):
    options = {}
    if "Collapsed" not in family:
        root = np.tril(0.3 * RNG.normal(size=(6, 6))) + np.eye(6)
        options = {
            "variational_mean": jnp.asarray(RNG.normal(size=(6, 1))),
            "variational_root_covariance": jnp.asarray(root),
        }
    q = getattr(gpx.variational_families, family)(
        model=gpjax_model(gk.RBF(lengthscale=1.2)), inducing_inputs=jnp.asarray(X[:6]), **options
    )
    theirs = q.condition(DATA)
    assert_same_attributions(Explainer(theirs, b)(x[None]), joint_of_gpjax(theirs), b)


def test_gpjax_means_and_wrong_data():
    theirs = gpjax_model(gk.RBF(), gpx.mean_functions.Zero()).condition(DATA)
    assert_same_attributions(Explainer(theirs, b)(x[None]), joint_of_gpjax(theirs), b)
    model = gpjax_model(gk.RBF())
    with pytest.raises(
        InvalidInputError, match=r"data: GPJax models do not keep their data; pass the Dataset"
    ):
        Explainer(model)
    for kernel, words in (
        (gk.PoweredExponential(), "PoweredExponential is not supported: its functions have no"),
        (gk.RBF() + gk.White(), "GPJax's White is part"),
    ):
        with pytest.raises(UnsupportedModelError, match=words):
            gpattr.as_posterior(gpjax_model(kernel), data=DATA)


@pytest.mark.slow
def test_models_in_float32():
    code = (
        "import numpy as np, jax.numpy as jnp, gpattr, gpjax as gpx\nfrom tinygp import"
        " GaussianProcess, kernels\nX = np.random.default_rng(0).normal(size=(20,"
        " 2)).astype(np.float32); y = np.sin(X[:, 0])\ngp = GaussianProcess(kernels.ExpSquared(),"
        " jnp.asarray(X), diag=0.1)\nprint(gpattr.Explainer(gpattr.as_posterior(gp,"
        " data=y))(X[:2]).method)\nprior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(),"
        " kernel=gpx.kernels.RBF())\nmodel = prior *"
        " gpx.likelihoods.Gaussian(0.3)\nprint(gpattr.Explainer(gpattr.as_posterior(model, data=(X,"
        " y)))(X[:2]).method)"
    )
    output = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert output.splitlines() == ["closed form (model in float32, computed in float64)"] * 2
