"""Models of SMT as they are: predictions at 1e-8, attributions against their own covariances."""

import numpy as np
import pytest
from tests.reference.library_models import assert_explained

pytest.importorskip("smt", reason="SMT is tested in the environment of the extra test-clients")

from scipy.linalg import solve_triangular
from smt import kernels
from smt.applications import MFK
from smt.surrogate_models import GEKPLS, KPLS, KPLSK, KRG, SGP
from smt.surrogate_models.krg_based.distances import differences
from smt.utils.krg_sampling import covariance_matrix

import gpattr
from gpattr.exceptions import NotFittedError, UnsupportedModelError

RNG = np.random.default_rng(0)
X = RNG.uniform([0.0, 10.0, -300.0], [1.0, 30.0, 300.0], size=(30, 3))
Y = 40.0 + 5.0 * np.sin(4 * X[:, 0]) + (X[:, 1] / 10) ** 2 + X[:, 2] / 100
x, b = np.array([0.7, 14.0, 120.0]), np.array([0.2, 25.0, -50.0])
QUIET = {"print_global": False, "n_start": 1}


def trained(kind=KRG, X=X, Y=Y, **options):
    model = kind(**QUIET, **options)
    model.set_training_values(X, Y)
    model.train()
    return model


def joint_of(model):
    """SMT's joint predictions, from its own factors: it takes Gᵀ, below, for upper triangular."""

    def joint(points):
        par, u = model.optimal_par, (points - model.X_offset) / model.X_scale
        cov = covariance_matrix(model, points)
        if model.options["poly"] != "constant":
            r = model.corr(model._componentwise_distance(differences(u, Y=model.X_norma)))
            rho = solve_triangular(par["C"], r.reshape(len(u), -1).T, lower=True)
            phi = model._regression_types[model.options["poly"]](u)
            rest = par["Ft"].T @ rho - phi.T
            theirs, right = (solve_triangular(par["G"].T, rest, lower=low) for low in (False, True))
            cov = cov + par["sigma2"] * (right.T @ right - theirs.T @ theirs)
        return model.predict_values(points)[:, 0], cov

    return joint


def explained(model, **options):
    posterior = gpattr.as_posterior(model)
    rows = np.array(model.training_points[None][0][0])
    start, end = (x, b) if rows.shape[1] == 3 else (rows[0], rows[1])
    return assert_explained(posterior, joint_of(model), start, end, **options)


@pytest.mark.parametrize("poly", ["constant", "linear", "quadratic"])
def test_trends_and_their_uncertainty(poly):
    """Estimated coefficients: far from the data the uncertainty of a slope grows with distance."""
    model = trained(poly=poly, nugget=1e-6)
    explained(model)
    far = np.array([[30.0, 700.0, 9000.0]])
    posterior = gpattr.as_posterior(model)
    std = posterior.predict(far, return_std=True)[1]
    np.testing.assert_allclose(std**2, joint_of(model)(far)[1].diagonal(), rtol=1e-8)
    assert ("universal kriging" in posterior.note) == (poly != "constant")
    sigma2 = float(model.optimal_par["sigma2"][0])
    assert (std[0] ** 2 > 2 * sigma2) == (poly != "constant")


@pytest.mark.parametrize(
    ("corr", "nu"), [("matern52", 2.5), ("matern32", 1.5), ("squar_sin_exp", None)]
)
def test_correlations(corr, nu):
    model = trained(corr=corr, nugget=1e-6, theta0=[0.05], hyper_opt="NoOp")
    explained(model, nu=nu, features=[0])


def test_kernels_of_ones_own():
    theta = [0.4, 0.3, 0.2]
    kernel = kernels.Matern52(theta) + kernels.SquarSinExp([0.5, 0.4, 0.6, 0.3, 0.2, 0.1])
    model = trained(corr=kernel, nugget=1e-6, hyper_opt="NoOp")
    explained(model, nu=2.5, features=[0])


@pytest.mark.parametrize("noise", [{"eval_noise": True}, {"noise0": [0.02]}])
def test_noise(noise):
    noisy = Y + RNG.normal(size=30)
    ex = explained(trained(Y=noisy, hyper_opt="Cobyla", **noise))
    assert (ex.std > 0).all()


def test_noise_of_each_row():
    rows, targets = np.repeat(X, 3, axis=0), np.repeat(Y, 3) + RNG.normal(size=90)
    model = trained(X=rows, Y=targets, eval_noise=True, use_het_noise=True, hyper_opt="Cobyla")
    assert_explained(gpattr.as_posterior(model), joint_of(model), x, b)


@pytest.mark.parametrize("kind", [KPLS, KPLSK])
@pytest.mark.parametrize("d", [3, 20])
def test_partial_least_squares(kind, d):
    rows = RNG.uniform(size=(40, d))
    targets = np.sin(3 * rows[:, 0]) + rows[:, 1] ** 2 + 0.1 * rows.sum(axis=1)
    model = trained(kind, rows, targets, n_comp=2, nugget=1e-8, hyper_opt="Cobyla")
    assert_explained(gpattr.as_posterior(model), joint_of(model), rows[0], rows[1], features=[0, 1])


def test_gradient_enhanced():
    model = GEKPLS(
        **QUIET, n_comp=2, xlimits=np.array([[0, 1], [10, 30], [-300, 300]]), nugget=1e-8
    )
    model.set_training_values(X, Y)
    slopes = np.column_stack([20 * np.cos(4 * X[:, 0]), X[:, 1] / 50, np.full(30, 0.01)])
    for i in range(3):
        model.set_training_derivatives(X, slopes[:, i : i + 1], i)
    model.train()
    explained(model)


@pytest.mark.parametrize("corr", ["squar_exp", "matern52"])
@pytest.mark.parametrize("d", [1, 20])
def test_narrow_and_wide(corr, d):
    rows = RNG.uniform(size=(25, d))
    targets = np.sin(3 * rows[:, 0]) + rows[:, -1] ** 2
    options = {"theta0": [0.05], "hyper_opt": "NoOp", "nugget": 1e-6}
    model = trained(X=rows, Y=targets, corr=corr, poly="linear", **options)
    assert_explained(
        gpattr.as_posterior(model),
        joint_of(model),
        rows[0],
        rows[1],
        nu=2.5 if corr == "matern52" else None,
        features=[0],
    )


def test_without_noise_as_most_models_of_smt_are():
    """The default nugget of 2e-14: the covariance is singular up to rounding."""
    model = trained()
    ex = gpattr.Explainer(model, b)(x[None])
    values = model.predict_values(np.array([x, b]))[:, 0]
    np.testing.assert_allclose(ex.values.sum(), values[0] - values[1], rtol=0, atol=1e-8 * 50)


@pytest.mark.filterwarnings("ignore:Kriging-based surrogate is not intended")
def test_several_outputs():
    model = trained(Y=np.column_stack([Y, np.cos(X[:, 0])]), nugget=1e-8)
    mean, std = gpattr.as_posterior(model).predict(X[:5] + 0.01, return_std=True)
    np.testing.assert_allclose(mean, model.predict_values(X[:5] + 0.01), rtol=1e-8)
    np.testing.assert_allclose(std**2, model.predict_variances(X[:5] + 0.01), rtol=1e-5)


@pytest.mark.parametrize("method", ["FITC", "VFE"])
@pytest.mark.parametrize("d", [1, 2])
def test_sparse(method, d):
    rows = RNG.uniform(size=(60, d))
    targets = np.sin(5 * rows[:, 0]) + 0.1 * RNG.normal(size=60)
    model = SGP(**QUIET, method=method)
    model.set_training_values(rows, targets)
    model.set_inducing_inputs(Z=RNG.uniform(size=(5, d)))
    model.train()
    posterior = gpattr.as_posterior(model)
    points = RNG.uniform(size=(7, d))
    mean, std = posterior.predict(points, return_std=True)
    np.testing.assert_allclose(mean, model.predict_values(points)[:, 0], rtol=0, atol=1e-7)
    variances = model.predict_variances(points)[:, 0] - float(np.ravel(model.optimal_noise)[0])
    if posterior.note == "":
        np.testing.assert_allclose(
            std**2, variances, rtol=0, atol=1e-7 * float(model.optimal_sigma2)
        )
    else:
        assert method == "VFE"
        assert (std**2 > variances).all()


def test_the_model_is_left_as_it_was():
    model = trained(nugget=1e-8)
    before = {name: np.copy(value) for name, value in model.optimal_par.items()}
    gpattr.Explainer(model, b)(x[None])
    for name, value in before.items():
        np.testing.assert_array_equal(value, model.optimal_par[name])


@pytest.mark.parametrize("kind", [KRG, KPLS, SGP])
def test_untrained(kind):
    with pytest.raises(NotFittedError, match=rf"this {kind.__name__} is not trained yet"):
        gpattr.as_posterior(kind(**QUIET))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"corr": "pow_exp"}, r"corr: functions of SMT's pow_exp with the power 1\.9"),
        (
            {"is_ri": True, "eval_noise": True, "hyper_opt": "Cobyla"},
            "is_ri: reinterpolation takes the mean from one",
        ),
        ({"corr": kernels.ActExp([0.1] * 6)}, "corr: SMT's ActExp is not supported"),
    ],
)
def test_what_is_not_supported(options, words):
    with pytest.raises(UnsupportedModelError, match=words):
        gpattr.as_posterior(trained(**options))


def test_integers_and_other_models():
    from smt.design_space import DesignSpace, FloatVariable, IntegerVariable

    space = DesignSpace([FloatVariable(0, 1), IntegerVariable(10, 30), FloatVariable(-300, 300)])
    rows = np.column_stack([X[:, 0], X[:, 1].round(), X[:, 2]])
    with pytest.raises(UnsupportedModelError, match="design_space: SMT's integers and categories"):
        gpattr.as_posterior(trained(X=rows, design_space=space, nugget=1e-6))
    with pytest.raises(UnsupportedModelError, match=r"got smt\.applications\.mfk\.MFK"):
        gpattr.as_posterior(MFK(print_global=False))


def test_versions(monkeypatch):
    from gpattr.adapters import foreign

    model = trained(nugget=1e-8)
    monkeypatch.setattr(foreign, "installed_version", lambda package: "2.3.0")
    with pytest.raises(UnsupportedModelError, match=r"too old; version 2\.15 works, 2\.3\.0"):
        gpattr.as_posterior(model)
    monkeypatch.setattr(foreign, "installed_version", lambda package: "9.0")
    del model.X_norma
    with pytest.raises(UnsupportedModelError, match=r"too new.*X_norma.*; version 2\.15 works"):
        gpattr.as_posterior(model)
