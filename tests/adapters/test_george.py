"""Gaussian processes of george as they are, against their own joint predictions."""

import numpy as np
import pytest
from tests.reference.library_models import assert_explained

george = pytest.importorskip(
    "george", reason="george is tested in the environment of the extra test-clients"
)

import gpattr  # noqa: E402
from gpattr.exceptions import (  # noqa: E402
    InvalidInputError,
    NotFittedError,
    UnsupportedModelError,
)

K = george.kernels
RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 3.0
x, b = np.array([0.7, -0.4, 0.2]), np.array([-0.5, 0.3, 0.6])
METRIC = np.array([[1.5, 0.3, 0.1], [0.3, 0.8, -0.2], [0.1, -0.2, 2.0]])
KERNELS = {
    "squared exponential": lambda: 2.0 * K.ExpSquaredKernel([1.0, 2.0, 0.5], ndim=3),
    "one scale": lambda: K.ExpSquaredKernel(1.3, ndim=3),
    "general metric": lambda: K.ExpSquaredKernel(METRIC, ndim=3),
    "Matern 3/2": lambda: K.Matern32Kernel([1.0, 2.0, 1.5], ndim=3),
    "Matern 5/2": lambda: (
        K.Matern52Kernel(METRIC[:2, :2], ndim=3, axes=[0, 2])
        + K.ExpSquaredKernel(1.0, ndim=3, axes=1)
    ),
    "rational quadratic": lambda: K.RationalQuadraticKernel(np.log(0.7), 1.2, ndim=3),
    "constant": lambda: K.ConstantKernel(np.log(0.4), ndim=3) + K.ExpSquaredKernel(1.0, ndim=3),
    "cosine": lambda: (
        K.CosineKernel(np.log(3.0), ndim=3, axes=[0, 1]) * K.ExpSquaredKernel(1.0, ndim=3)
    ),
    "periodic": lambda: (
        K.ExpSine2Kernel(0.6, np.log(4.0), ndim=3, axes=1) + K.ExpSquaredKernel(1.0, ndim=3)
    ),
    "dot product": lambda: K.DotProductKernel(ndim=3) + K.ExpSquaredKernel(1.0, ndim=3),
    "linear": lambda: (
        K.LinearKernel(order=2, log_gamma2=0.5, ndim=3, axes=[0, 2])
        + K.ExpSquaredKernel(1.0, ndim=3)
    ),
    "polynomial": lambda: (
        K.PolynomialKernel(order=2, log_sigma2=0.3, ndim=3) + 0.5 * K.ExpSquaredKernel(1.0, ndim=3)
    ),
}


def computed(kernel, X=X, yerr=0.2, **options):
    gp = george.GP(kernel, **options)
    gp.compute(X, yerr)
    return gp


def explained(gp, y=Y, x=x, b=b, **options):
    posterior = gpattr.as_posterior(gp, data=y)
    return assert_explained(posterior, lambda points: gp.predict(y, points), x, b, **options)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    explained(computed(KERNELS[name]()), nu={"Matern 3/2": 1.5, "Matern 5/2": 2.5}.get(name))


def test_mean_noise_and_errors_of_each_row():
    gp = computed(
        KERNELS["squared exponential"](),
        yerr=RNG.uniform(0.1, 0.4, size=25),
        mean=3.0,
        white_noise=np.log(0.05),
    )
    explained(gp)


@pytest.mark.filterwarnings("ignore:Conversion of an array with ndim > 0")  # inside of george
@pytest.mark.parametrize("d", [1, 20])
def test_narrow_and_wide(d):
    rows = RNG.normal(size=(30, d))
    gp = computed(1.5 * K.ExpSquaredKernel(np.full(d, 4.0), ndim=d), rows)
    explained(gp, np.sin(rows[:, 0]) + rows[:, -1], rows[0], rows[1])


def test_parameters_that_have_changed():
    """A kernel whose parameters were set after `compute`: the library computes again."""
    gp = computed(KERNELS["squared exponential"]())
    gp.set_parameter_vector(gp.get_parameter_vector() + 0.3)
    explained(gp)


def test_what_is_missing_or_not_supported():
    gp = computed(KERNELS["one scale"]())
    with pytest.raises(InvalidInputError, match=r"pass as_posterior\(gp, data=y\)"):
        gpattr.as_posterior(gp)
    with pytest.raises(InvalidInputError, match="data: expected 25 targets, got 3"):
        gpattr.as_posterior(gp, data=Y[:3])
    with pytest.raises(NotFittedError, match=r"call compute\(X, yerr\) first"):
        gpattr.as_posterior(george.GP(K.ExpSquaredKernel(1.0)), data=Y)
    for kernel, words in (
        (K.LocalGaussianKernel(0.1, 0.2, ndim=3), "george's LocalGaussianKernel is not supported"),
        (K.ExpSquaredKernel(1.0, ndim=3, block=[(-1, 1)] * 3), "with a block"),
        (K.LinearKernel(order=1.5, log_gamma2=0.1, ndim=3), "LinearKernel of order 1.5"),
    ):
        gp = george.GP(kernel + K.ExpSquaredKernel(1.0, ndim=3))
        gp._x, gp._yerr2 = X, np.full(25, 0.04)  # without computing, which NaN may stop
        with pytest.raises(UnsupportedModelError, match=words):
            gpattr.as_posterior(gp, data=Y)

    class Line(george.modeling.Model):
        parameter_names = ("slope",)

        def get_value(self, t):
            return self.slope * t[:, 0]

    gp = computed(KERNELS["one scale"](), mean=Line(slope=0.5))
    with pytest.raises(UnsupportedModelError, match="mean: george's Line is not supported"):
        gpattr.as_posterior(gp, data=Y)
