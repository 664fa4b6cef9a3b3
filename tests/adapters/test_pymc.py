"""Gaussian processes of PyMC at a point and over a trace, against their own joint predictions."""

import os

import numpy as np
import pytest
from tests.reference.library_models import assert_explained

os.environ.setdefault("PYTENSOR_FLAGS", "mode=FAST_COMPILE")  # compiling takes longer than running
pm = pytest.importorskip(
    "pymc", reason="PyMC is tested in the environment of the extra test-clients"
)

import pytensor  # noqa: E402
import pytensor.tensor as pt  # noqa: E402
import xarray as xr  # noqa: E402

import gpattr  # noqa: E402
from gpattr.exceptions import (  # noqa: E402
    InvalidInputError,
    NotFittedError,
    UnsupportedModelError,
)

C = pm.gp.cov
RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 3.0
x, b = np.array([0.7, -0.4, 0.2]), np.array([-0.5, 0.3, 0.6])
POINT = {"ls": np.array([1.0, 2.0, 0.7]), "eta": 1.3, "sigma": 0.3}
# Compiling a model takes seconds, so each has several kernels.
KERNELS = {
    "smooth": lambda ls, eta: (
        eta**2 * C.ExpQuad(3, ls=ls)
        + C.Linear(3, c=eta, active_dims=[0, 2])
        + C.Constant(eta)
        + C.WhiteNoise(0.5)
        + 0.4
    ),
    "waves": lambda ls, eta: (
        C.Cosine(3, ls=6.0, active_dims=[0]) * C.ExpQuad(3, ls=ls)
        + C.Periodic(3, period=4.0, ls=eta, active_dims=[1])
        + C.WrappedPeriodic(C.ExpQuad(3, ls=eta, active_dims=[2]), period=5.0)
    ),
    "powers": lambda ls, eta: (
        C.RatQuad(3, alpha=0.5 * eta, ls=ls) ** 2
        + 0.1 * C.Polynomial(3, c=np.zeros(3), d=2, offset=eta)
        + C.ExpQuad(3, ls=ls[:2], active_dims=[2, 0]) * C.Linear(3, c=0.0)
    ),
    "Matern52": lambda ls, eta: C.Matern52(3, ls=ls) * eta,
    "Matern32": lambda ls, eta: C.Matern32(3, ls=2.0),
}


def built(
    kernel=lambda ls, eta: eta**2 * C.ExpQuad(3, ls=ls),
    kind=pm.gp.Marginal,
    X=X,
    Y=Y,
    mean=None,
    **given,
):
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2, 1, shape=X.shape[1])
        eta, sigma = pm.HalfNormal("eta", 1.0), pm.HalfNormal("sigma", 0.5)
        options = {} if mean is None else {"mean_func": mean(eta)}
        gp = kind(cov_func=kernel(ls, eta), **options)
        gp.marginal_likelihood("y", X=X, y=Y, sigma=sigma, **given)
    return gp, model


def joint_of(gp, model, point=POINT, white=0.0):
    """The library's joint predictions; it adds a jitter of 1e-6 to covariances."""
    rows = pt.matrix("rows")
    moments = gp._predict_at(rows)  # as gp.predict, which compiles every time
    inputs = [variable for name, variable in model.named_vars.items() if name in point]
    function = pytensor.function([rows, *inputs], list(moments), on_unused_input="ignore")

    def joint(points):
        mean, cov = function(points, *(point[variable.name] for variable in inputs))
        return mean, cov - (1e-6 + white) * np.eye(len(points))

    return joint


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    gp, model = built(KERNELS[name])
    posterior = gpattr.as_posterior(gp, point=POINT)
    joint = joint_of(gp, model, white=0.25 if name == "smooth" else 0.0)
    nu, panels = {"Matern32": 1.5, "Matern52": 2.5}.get(name), 4 if name == "waves" else 1
    assert_explained(posterior, joint, x, b, nu=nu, panels=panels, features=[0] if nu else None)


def test_means_and_the_library_itself():
    gp, model = built(
        mean=lambda eta: pm.gp.mean.Linear([0.5, -1.0, 2.0]) + pm.gp.mean.Constant(eta)
    )
    posterior = gpattr.as_posterior(gp, point=POINT)
    assert_explained(posterior, joint_of(gp, model), x, b)
    mean, cov = gp.predict(X[:3] + 0.1, point=POINT, model=model)
    np.testing.assert_allclose(posterior.predict(X[:3] + 0.1), mean, rtol=1e-9)
    ours = posterior.predict(X[:3] + 0.1, return_cov=True)[1]
    np.testing.assert_allclose(ours + 1e-6 * np.eye(3), cov, rtol=0, atol=1e-9)


@pytest.mark.parametrize("approx", ["FITC", "VFE"])
def test_approximations(approx):
    def kind(**options):
        return pm.gp.MarginalApprox(approx=approx, **options)

    gp, model = built(kind=kind, Xu=X[::3] + 0.1)
    assert_explained(gpattr.as_posterior(gp, point=POINT), joint_of(gp, model), x, b)


@pytest.mark.parametrize("d", [1, 20])
def test_narrow_and_wide(d):
    rows = RNG.normal(size=(30, d))
    gp, model = built(lambda ls, eta: C.ExpQuad(d, ls=ls), X=rows, Y=np.sin(rows[:, 0]))
    point = POINT | {"ls": np.full(d, 3.0)}
    posterior = gpattr.as_posterior(gp, point=point)
    assert_explained(posterior, joint_of(gp, model, point), rows[0], rows[1])


def trace_of(n=2):
    """Draws as a sampler returns them: 2 chains."""
    draws = {
        "ls": (("chain", "draw", "ls_dim_0"), RNG.uniform(0.7, 2.0, size=(2, n, 3))),
        "eta": (("chain", "draw"), RNG.uniform(0.8, 1.5, size=(2, n))),
        "sigma": (("chain", "draw"), RNG.uniform(0.2, 0.4, size=(2, n))),
    }
    return xr.Dataset(draws)


def test_a_trace_is_a_mixture():
    gp, model = built()
    trace = trace_of()
    posterior = gpattr.as_posterior(gp, trace=trace)
    assert len(posterior.posteriors) == 4
    assert len(gpattr.as_posterior(gp, trace=trace, draws=3).posteriors) == 3
    points = [
        {name: values.values.reshape(4, *values.shape[2:])[i] for name, values in trace.items()}
        for i in range(4)
    ]
    joints = [joint_of(gp, model, point) for point in points]

    def joint(rows):
        parts = [part(rows) for part in joints]
        means = np.stack([mean for mean, _ in parts])
        deviation = means - means.mean(axis=0)
        cov = np.mean([cov for _, cov in parts], axis=0) + deviation.T @ deviation / 4
        return means.mean(axis=0), cov

    assert_explained(posterior, joint, x, b)


def test_latent_functions():
    with pm.Model() as model:
        ls = pm.Gamma("ls", 2, 1, shape=3)
        gp = pm.gp.Latent(cov_func=C.Matern52(3, ls=ls))
        f = gp.prior("f", X=X)
        pm.Bernoulli("y", logit_p=f, observed=(Y > 4).astype(int))
    point = {"ls": POINT["ls"], "f": Y - 4.0}
    everything = point | {"f_rotated_": np.zeros(25)}  # which f replaces

    def joint(points):
        with model:
            mean, cov = gp._build_conditional(points, *gp._get_given_vals(None), 1e-6)
            return pm.gp.util.replace_with_values([mean, cov], everything, model)

    posterior = gpattr.as_posterior(gp, point=point)
    assert_explained(posterior, joint, x, b, nu=2.5, features=[0])


def test_what_is_missing():
    gp, _ = built()
    with pytest.raises(InvalidInputError, match=r"point: expected values of eta, ls, sigma; give"):
        gpattr.as_posterior(gp)
    with pytest.raises(InvalidInputError, match=r"point: expected values of eta, sigma; give"):
        gpattr.as_posterior(gp, point={"ls": POINT["ls"]})
    with pytest.raises(InvalidInputError, match=r"expected 'ls' of the shape \(\d,\), got .* \(\)"):
        gpattr.as_posterior(gp, point={**POINT, "ls": 1.0})
    with pytest.raises(InvalidInputError, match="point: expected point or trace, not both"):
        gpattr.as_posterior(gp, point=POINT, trace=trace_of())
    with pytest.raises(InvalidInputError, match="point: expected a dictionary"):
        gpattr.as_posterior(gp, point=[1.0])
    with pytest.raises(InvalidInputError, match="trace: expected what pm.sample returns"):
        gpattr.as_posterior(gp, trace=[1.0])
    with pytest.raises(InvalidInputError, match="draws: expected"):
        gpattr.as_posterior(gp, trace=trace_of(), draws=0)
    with pytest.raises(NotFittedError, match="call marginal_likelihood first"):
        gpattr.as_posterior(pm.gp.Marginal(cov_func=C.ExpQuad(3, ls=1.0)))
    with pytest.raises(NotFittedError, match="call prior first"):
        gpattr.as_posterior(pm.gp.Latent(cov_func=C.ExpQuad(3, ls=1.0)))


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (
            lambda ls, eta: C.Gibbs(1, lambda x: 1.0 + x**2),
            "cov_func: PyMC's Gibbs is not supported",
        ),
        (
            lambda ls, eta: C.Cosine(3, ls=ls),
            "Cosine of 3 features is a function of their distance",
        ),
        (lambda ls, eta: C.ExpQuad(3, ls=ls) * np.eye(25), r"an array of shape \(25, 25\)"),
        (
            lambda ls, eta: C.WrappedPeriodic(C.Matern52(3, ls=ls), period=2.0),
            "WrappedPeriodic of Matern52 is not supported",
        ),
    ],
)
def test_kernels_that_are_not_supported(kernel, words):
    gp, _ = built()
    gp.cov_func = kernel(POINT["ls"], 1.0)
    with pytest.raises(UnsupportedModelError, match=words):
        gpattr.as_posterior(gp, point=POINT)


def test_other_processes():
    with pytest.raises(UnsupportedModelError, match="TP is a Student's t process"):
        gpattr.as_posterior(pm.gp.TP(scale_func=C.ExpQuad(3, ls=1.0), nu=5))
    gp, _ = built()
    gp.sigma = C.ExpQuad(3, ls=1.0)
    with pytest.raises(UnsupportedModelError, match="noise with the covariance ExpQuad"):
        gpattr.as_posterior(gp, point=POINT)
