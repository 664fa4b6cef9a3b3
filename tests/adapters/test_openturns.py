"""Kriging results of OpenTURNS as they are, against their own conditional covariances."""

import numpy as np
import pytest
from tests.reference.library_models import assert_explained

ot = pytest.importorskip(
    "openturns", reason="OpenTURNS is tested in the environment of the extra test-clients"
)

import gpattr  # noqa: E402
from gpattr.adapters.adapt import adapt  # noqa: E402
from gpattr.exceptions import NotFittedError, UnsupportedModelError  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.uniform([0.0, 1.0, -3.0], [1.0, 3.0, 3.0], size=(30, 3))
Y = 4.0 + np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * X[:, 2]
x, b = np.array([0.7, 1.4, 1.2]), np.array([0.2, 2.5, -0.5])
BASES = {
    "constant": ot.ConstantBasisFactory(3).build,
    "linear": ot.LinearBasisFactory(3).build,
    "quadratic": ot.QuadraticBasisFactory(3).build,
    "none": ot.Basis,
}


def fitted(covariance, basis=None, X=X, Y=Y, optimise=False, nugget=1e-6):
    """A result; the covariance's parameters are taken as they are unless they are optimised."""
    covariance.setNuggetFactor(nugget)
    basis = ot.ConstantBasisFactory(X.shape[1]).build() if basis is None else basis
    fitter = ot.GaussianProcessFitter(ot.Sample(X), ot.Sample(Y[:, None]), covariance, basis)
    fitter.setOptimizeParameters(optimise)
    fitter.run()
    algorithm = ot.GaussianProcessRegression(fitter.getResult())
    algorithm.run()
    return algorithm


def joint_of(result, nugget=0.0):
    """The library's joint predictions; it adds its nugget to variances."""
    covariance = ot.GaussianProcessConditionalCovariance(result)

    def joint(points):
        cov = np.array(covariance.getConditionalCovariance(points))
        mean = np.array(covariance.getConditionalMean(points))[:, 0]
        return mean, cov - nugget * np.eye(len(points))

    return joint


def explained(algorithm, x=x, b=b, **options):
    result = algorithm.getResult()
    model = result.getCovarianceModel()
    zero = ot.Point(model.getInputDimension())
    nugget = float(model.getNuggetFactor() / (1 + model.getNuggetFactor()))
    nugget *= float(model.computeAsScalar(zero))
    return assert_explained(
        gpattr.as_posterior(algorithm), joint_of(result, nugget), x, b, **options
    )


@pytest.mark.parametrize("name", BASES)
def test_trends_and_their_uncertainty(name):
    algorithm = fitted(ot.SquaredExponential([0.5, 1.0, 3.0], [1.5]), BASES[name]())
    explained(algorithm)
    far = np.array([[30.0, 70.0, -90.0]])
    std = gpattr.as_posterior(algorithm).predict(far, return_std=True)[1]
    covariance = ot.GaussianProcessConditionalCovariance(algorithm.getResult())
    np.testing.assert_allclose(std**2, covariance.getConditionalMarginalVariance(far[0]), rtol=1e-5)
    assert (std[0] > 10) == (name in ("linear", "quadratic"))


COVARIANCES = {
    "Matern 5/2": lambda: ot.MaternModel([0.5, 1.0, 3.0], [1.5], 2.5),
    "Matern 3/2": lambda: ot.MaternModel([0.5, 1.0, 3.0], [1.5], 1.5),
    "Matern 3.2": lambda: ot.MaternModel([0.5, 1.0, 3.0], [1.5], 3.2),
    "generalised": lambda: ot.GeneralizedExponential([0.5, 1.0, 3.0], [1.5], 2.0),
    "product": lambda: ot.ProductCovarianceModel(
        [ot.SquaredExponential([0.7], [1.2]), ot.MaternModel([1.0, 2.0], [0.8], 2.5)]
    ),
    "isotropic": lambda: ot.IsotropicCovarianceModel(ot.MaternModel([0.9], [1.3], 2.5), 3),
}


SMOOTHNESS = dict.fromkeys(["Matern 5/2", "Matern 3.2", "product", "isotropic"], 2.5) | {
    "Matern 3/2": 1.5
}


@pytest.mark.parametrize("name", COVARIANCES)
def test_covariance_models(name):
    features = [0] if name in ("Matern 3/2", "Matern 3.2") else None
    explained(fitted(COVARIANCES[name]()), nu=SMOOTHNESS.get(name), features=features)


@pytest.mark.parametrize("nugget", [1e-8, 1e-12])
def test_optimised(nugget):
    """Also with OpenTURNS' default nugget, 1e-12."""
    model = ot.SquaredExponential([1.0] * 3, [1.0])
    explained(fitted(model, optimise=True, nugget=nugget), exact=1e-8 if nugget > 1e-10 else 1e-6)


@pytest.mark.parametrize("d", [1, 20])
def test_narrow_and_wide(d):
    rows = RNG.uniform(size=(30, d))
    targets = np.sin(3 * rows[:, 0]) + rows[:, -1] ** 2
    basis = ot.LinearBasisFactory(d).build()
    algorithm = fitted(ot.SquaredExponential([1.0] * d, [1.0]), basis, rows, targets)
    explained(algorithm, rows[0] + 0.01, rows[1] + 0.01)  # not at data, where the nugget counts


def test_names_and_the_result_itself():
    sample = ot.Sample(X)
    sample.setDescription(["temperature", "pressure", "load"])
    fitter = ot.GaussianProcessFitter(
        sample, ot.Sample(Y[:, None]), ot.SquaredExponential([0.5, 1.0, 3.0], [1.5])
    )
    fitter.setOptimizeParameters(False)
    fitter.run()
    algorithm = ot.GaussianProcessRegression(fitter.getResult())
    algorithm.run()
    ex = gpattr.Explainer(algorithm.getResult(), b)(x[None])
    assert ex.feature_names == ("temperature", "pressure", "load")
    np.testing.assert_array_equal(ex.values, gpattr.Explainer(algorithm, b)(x[None]).values)


def test_noise():
    if not hasattr(ot.GaussianProcessFitter, "setNoise"):
        pytest.skip("this version of OpenTURNS has no noise of its fitter")
    noise = RNG.uniform(0.01, 0.1, size=30)
    fitter = ot.GaussianProcessFitter(
        ot.Sample(X), ot.Sample(Y[:, None]), ot.SquaredExponential([0.5, 1.0, 3.0], [1.5])
    )
    fitter.setNoise(ot.Point(noise))
    fitter.setOptimizeParameters(False)
    fitter.run()
    algorithm = ot.GaussianProcessRegression(fitter.getResult())
    algorithm.run()
    explained(algorithm)


@pytest.mark.filterwarnings("ignore")
def test_kriging_of_earlier_versions():
    if not hasattr(ot, "KrigingAlgorithm"):
        pytest.skip("this version of OpenTURNS has no KrigingAlgorithm any more")
    basis = ot.LinearBasisFactory(3).build()
    covariance = ot.SquaredExponential([0.5, 1.0, 3.0], [1.5])
    covariance.setNuggetFactor(1e-6)
    algorithm = ot.KrigingAlgorithm(ot.Sample(X), ot.Sample(Y[:, None]), covariance, basis)
    algorithm.setOptimizeParameters(False)
    algorithm.run()
    result = algorithm.getResult()

    def joint(points):
        cov = np.array(result.getConditionalCovariance(points))
        variance = 1e-6 * float(result.getCovarianceModel().getAmplitude()[0]) ** 2
        return np.array(result.getConditionalMean(points)).reshape(-1), cov - variance * np.eye(
            len(points)
        )

    assert_explained(gpattr.as_posterior(algorithm), joint, x, b)


@pytest.mark.parametrize(
    ("covariance", "words"),
    [
        (lambda: ot.SphericalModel([1.0] * 3, [1.0], 5.0), "OpenTURNS' SphericalModel is not"),
        (
            lambda: ot.GeneralizedExponential([1.0] * 3, [1.0], 1.5),
            r"functions of a GeneralizedExponential with p=1\.5 have no gradients",
        ),
        (
            lambda: ot.MaternModel([1.0] * 3, [1.0], 0.8),
            r"functions of a MaternModel with nu=0\.8 have no gradients",
        ),
    ],
)
def test_covariances_that_are_not_supported(covariance, words):
    with pytest.raises(UnsupportedModelError, match=words):
        gpattr.as_posterior(fitted(covariance()))


def test_other_trends_and_models_without_data():
    basis = ot.Basis([ot.SymbolicFunction(["a", "b", "c"], ["sin(a)"])])
    with pytest.raises(UnsupportedModelError, match="basis: its 1 functions are not the monomials"):
        gpattr.as_posterior(fitted(ot.SquaredExponential([1.0] * 3, [1.0]), basis))
    with pytest.raises(NotFittedError, match="has no data"):
        gpattr.as_posterior(ot.GaussianProcessRegressionResult())


def test_columns_in_very_different_units_are_compared_near_the_data():
    units = np.array([1e6, 1.0, 1e-3])
    rows = X * units
    points = adapt(fitted(ot.SquaredExponential(list(units), [1.0]), X=rows)).points
    assert (np.abs(points - rows) < 0.01 * rows.std(axis=0)).all()
