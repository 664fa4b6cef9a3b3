"""Partial dependence of models of other libraries, in their users' units.

The truth is the average of each library's own joint predictions, and for scikit-learn its own
`partial_dependence` too.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.inspection import partial_dependence
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.dependence.reference import Case, truth
from tests.fuzz import foreign
from tests.reference.gpytorch_settings import exact_settings

from gpattr import Baselines, Explainer

# The libraries warn of their own deprecations, of data that are not scaled, and of added jitter.
IGNORED = (
    "botorch.exceptions.warnings.BotorchWarning",
    "gpytorch.utils.warnings.GPInputWarning",
    "gpytorch.utils.warnings.NumericalWarning",
    "UserWarning",
    "DeprecationWarning",
)
pytestmark = [pytest.mark.filterwarnings(f"ignore::{warning}") for warning in IGNORED]
MAKERS = {
    "scikit-learn": foreign.sklearn_model,
    "GPyTorch": foreign.gpytorch_model,
    "BoTorch": foreign.botorch_model,
}


def compare(model, X, joint, rng):
    """A curve, centred or not, and a surface, against averages of the library's predictions."""
    d = X.shape[1]
    explainer, rows = Explainer(model), X[: min(8, len(X))]
    weights = rng.uniform(0.5, 1.5, size=len(rows))
    weights /= weights.sum()
    feature = int(rng.integers(d))
    grid = np.sort(rng.normal(size=6))
    for centred in (False, True):
        found = explainer.dependence(feature, grid, Baselines(rows, weights), centred=centred)
        centre = (rows[:, [feature]], weights) if centred else None
        check(found, Case((feature,), grid[:, None], rows, weights, centre), joint)
    if d > 1:
        pair = tuple(int(j) for j in rng.permutation(d)[:2])
        sides = grid[:2], grid[2:5]
        found = explainer.dependence(pair, sides, rows)
        assert found.values.shape == (2, 3)
        mesh = np.array([[a, b] for a in sides[0] for b in sides[1]])
        check(found, Case(pair, mesh, rows, np.full(len(rows), 1 / len(rows))), joint)
    one = explainer.dependence(feature, grid, rows[:3], kind="individual")
    case = Case((feature,), grid[:, None], rows[:3], np.full(3, 1 / 3), individual=True)
    check(one, case, joint)


def check(found, case, joint):
    """At 1e-12 and 1e-10, unless rounding alone, of solutions both share, is larger."""
    mean, cov = truth(joint, case)
    own = np.einsum("ninj->nij", cov)
    mean_there, cov_there = joint(case.points)
    scale = max(np.abs(mean_there).max(), np.sqrt(np.diagonal(cov_there).max()))
    known = max(1e-12 * scale, found.error.max() if found.method == "closed form" else 0.0)
    np.testing.assert_allclose(found.values.ravel(), mean.ravel(), rtol=0, atol=known)
    np.testing.assert_allclose(found.cov.ravel(), own.ravel(), rtol=0, atol=1e-10 * scale**2)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("library", MAKERS)
def test_random_models(library, seed):
    rng = np.random.default_rng(100 + seed)
    with exact_settings():
        model, X, joint = MAKERS[library](rng)
        compare(model, X, joint, rng)


def tinygp_model(rng):
    tinygp = pytest.importorskip("tinygp")
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    X, y = foreign.table(rng)
    kernel = 1.5 * tinygp.kernels.ExpSquared(1.4) + 0.2 * tinygp.kernels.DotProduct()
    prior = tinygp.GaussianProcess(kernel, jnp.asarray(X), diag=0.1, mean=0.5)

    @jax.jit
    def moments(points):
        found = prior.condition(y, points).gp
        return found.loc, found.covariance - jnp.diag(found.noise.diagonal())

    return (
        prior.condition(y, jnp.asarray(X)).gp,
        X,
        lambda points: tuple(np.asarray(part) for part in moments(jnp.asarray(points))),
    )


def test_tinygp():
    rng = np.random.default_rng(9)
    compare(*tinygp_model(rng), rng)


# scikit-learn's own curves.

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    RNG.normal(size=(40, 4)) * [1.0, 10.0, 0.1, 2.0] + [5.0, 100.0, 0.0, -3.0],
    columns=["acid", "sugar", "salt", "pH"],
)
Y = 40.0 + np.sin(FRAME["acid"]) * FRAME["sugar"] + 20.0 * FRAME["salt"] - FRAME["pH"] ** 2


def gp(kernel):
    return GaussianProcessRegressor(kernel, alpha=0.05, normalize_y=True, optimizer=None)


SCIKIT_LEARN = {
    "regressor": lambda: gp(2.0 * sk.RBF([1.0, 15.0, 0.2, 3.0])),
    "pipeline": lambda: make_pipeline(StandardScaler(), gp(2.0 * sk.RBF([1.0, 1.5, 2.0, 1.5]))),
    "Matérn pipeline": lambda: make_pipeline(StandardScaler(), gp(sk.Matern(1.5, nu=2.5))),
    "rational quadratic": lambda: make_pipeline(
        StandardScaler(), gp(sk.RationalQuadratic(1.5, 0.6) + sk.WhiteKernel(0.1))
    ),
    "scaled target": lambda: TransformedTargetRegressor(
        make_pipeline(StandardScaler(), gp(sk.DotProduct() + sk.RBF(2.0))),
        transformer=StandardScaler(),
    ),
}


@pytest.mark.parametrize("name", SCIKIT_LEARN)
def test_the_curves_of_scikit_learn(name):
    """`partial_dependence(method="brute")` at 1e-10, with frames and the default grid of ours."""
    model = SCIKIT_LEARN[name]().fit(FRAME, Y)
    explainer = Explainer(model)
    some = FRAME[["pH", "salt", "acid", "sugar"]].iloc[::2]  # columns are found by name
    tight = {"rtol": 0, "atol": 1e-10 * np.abs(Y).max()}
    for feature in FRAME.columns:
        ours = explainer.dependence(feature, background=some, centred=False)
        brute = partial_dependence(
            model,
            FRAME.iloc[::2],
            [feature],
            method="brute",
            kind="both",
            custom_values={feature: ours.grid},
        )
        np.testing.assert_array_equal(brute["grid_values"][0], ours.grid)
        np.testing.assert_allclose(ours.values, brute["average"][0], **tight)
        each = explainer.dependence(feature, 7, some, kind="individual")
        assert each.row_names == tuple(FRAME.index[::2])
        brute = partial_dependence(
            model,
            FRAME.iloc[::2],
            [feature],
            method="brute",
            kind="individual",
            custom_values={feature: each.grid},
        )
        np.testing.assert_allclose(each.values, brute["individual"][0], **tight)
    both = explainer.dependence(("salt", "acid"), 4)
    brute = partial_dependence(
        model,
        FRAME,
        ["salt", "acid"],
        method="brute",
        custom_values=dict(zip(("salt", "acid"), both.grid)),
    )
    np.testing.assert_allclose(both.values, brute["average"][0], **tight)
