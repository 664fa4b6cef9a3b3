"""Kernels and means of GPJax and tinygp without a formula, by automatic derivatives."""

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
from tinygp.kernels import quasisep

import gpattr
from gpattr import Explainer
from gpattr.exceptions import UnsupportedModelError

jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 3.0
x, b = np.array([0.7, -0.4, 0.2]), np.array([-0.5, 0.3, 0.6])


def own(one, two):
    return (1.0 + one @ two) * jnp.exp(-jnp.sum(jnp.square(one - two)))


def rooted(one, two):
    r = jnp.sqrt(5.0 * jnp.sum(jnp.square(one - two)))
    return (1.0 + r + r**2 / 3.0) * jnp.exp(-r)


def bent(point):
    return jnp.tanh(point).sum()


class Bent(gpx.mean_functions.AbstractMeanFunction):
    def __call__(self, rows):
        return jnp.tanh(rows).sum(axis=1, keepdims=True)


TINY = {
    "custom": (tk.Custom(own) + 0.3 * tk.ExpSquared(), {}, None),
    "square root": (2.0 * tk.Custom(rooted), {}, 2.5),
    "scaled, with a mean": (
        tt.Linear(jnp.array([0.5, -1.0, 2.0]), tk.Custom(own)),
        {"mean": bent},
        None,
    ),
    "transform": (tt.Transform(jnp.sinh, tk.ExpSquared(2.0)), {}, None),
}


def some(names, *quick):
    """Every case that is compiled anew takes seconds: a few stand for all in the quick run."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


def tiny(kernel, inputs=X, y=Y, **options):
    gp = GaussianProcess(kernel, jnp.asarray(inputs), **({"diag": 0.1} | options))

    @jax.jit
    def jointly(points):
        conditioned = gp.condition(y, points).gp
        return conditioned.loc, conditioned.covariance - jnp.diag(conditioned.noise.diagonal())

    return gpattr.as_posterior(gp, data=y), lambda points: map(np.asarray, jointly(points))


@pytest.mark.parametrize("name", some(TINY, "scaled, with a mean"))
def test_tinygp(name):
    kernel, options, kinks = TINY[name]
    posterior, joint = tiny(kernel, **options)
    ex = Explainer(posterior, b)(x[None])
    assert_same_attributions(ex, lambda points: tuple(joint(points)), b, kinks=kinks)
    assert "by automatic differentiation" in ex.method


@pytest.mark.slow
def test_tinygp_quasiseparable():
    """Kernels of time with the quasiseparable solver: translated, or differentiated."""
    times = np.sort(X[:, 0])
    for kernel in (quasisep.Matern52(1.2, sigma=0.7), 1.5 * quasisep.SHO(omega=2.0, quality=1.5)):
        gp = GaussianProcess(kernel, times, diag=0.1)
        ex = Explainer(gpattr.as_posterior(gp, data=Y), b[:1])(x[None, :1])
        both = gp.condition(Y, np.array([b[0], x[0]])).gp
        order = np.array([-1.0, 1.0])
        assert ex.values[0, 0] == pytest.approx(float(order @ both.loc), rel=1e-7)
        assert ex.cov[0, 0, 0] == pytest.approx(
            float(order @ (both.covariance - jnp.diag(both.noise.diagonal())) @ order), rel=1e-5
        )


def conditioned(kernel, mean=None):
    mean = gpx.mean_functions.Zero() if mean is None else mean
    data = gpx.Dataset(X=jnp.asarray(X), y=jnp.asarray(Y[:, None]))
    prior = gpx.gps.Prior(mean_function=mean, kernel=kernel)
    return (prior * gpx.likelihoods.Gaussian(0.3)).condition(data)


def joint_of(posterior):
    def joint(points):
        result = posterior.predict(jnp.asarray(points), covariance="dense")
        cov = np.asarray(result.covariance())
        return np.asarray(result.mean).ravel(), cov - float(posterior.prior.jitter) * np.eye(
            len(cov)
        )

    return joint


GPJAX = {
    "arc-cosine": lambda: (gk.ArcCosine(order=1), 1.5),
    "arc-cosine of the second order": lambda: (gk.ArcCosine(order=2, active_dims=[2, 0]), 2.5),
    "powered exponential": lambda: (gk.PoweredExponential(power=2.0, lengthscale=1.5), None),
    "orthogonal additive": lambda: (
        gk.OrthogonalAdditiveKernel([gk.RBF(active_dims=[i]) for i in range(3)], max_order=2),
        None,
    ),
    "random features": lambda: (gk.RFF(gk.RBF(n_dims=3), num_basis_fns=10), None),
}


@pytest.mark.parametrize("name", some(GPJAX, "powered exponential"))
def test_gpjax(name):
    kernel, kinks = GPJAX[name]()
    posterior = conditioned(kernel, Bent() if name == "powered exponential" else None)
    ex = Explainer(posterior, b)(x[None])
    assert_same_attributions(ex, joint_of(posterior), b, kinks=kinks)
    assert "quadrature" in ex.method


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda: gk.ArcCosine(order=0), "ArcCosine is not supported: its functions have no"),
        (lambda: gk.PoweredExponential(power=1.5), "PoweredExponential is not supported: its fun"),
        (lambda: gk.White() + gk.RBF(), "White is part of the function"),
    ],
)
def test_refused_by_name(kernel, words):
    with pytest.raises(UnsupportedModelError, match=words):
        Explainer(conditioned(kernel()), b)
