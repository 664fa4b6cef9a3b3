"""Interactions of pairs against enumeration of all coalitions, from the model's own predictions."""

import numpy as np
import pytest
from tests.reference import coalitions
from tests.shapley import models
from tests.shapley.models import BASELINES, MIXTURES, POSTERIORS, PRODUCTS
from tests.shapley.test_against_coalitions import ANY, CLOSED, MIXED, prior_scale

from gpattr import Baselines
from gpattr.exceptions import UnsupportedModelError
from gpattr.operators import Shapley, ShapleyInteractions
from gpattr.posteriors import ExactPosterior

INDICES = ("shapley", "taylor")
MARGINALS = ("one feature", "isotropic", "periodic", "linear", "separable Matérn 3/2", "Matérn 7/2")
REFUSED = ("cosine", "polynomial of degree 2", "squared exponential × linear", *ANY[:3])


def cases():
    """Every kernel of few features with every baseline; marginals where they are supported."""
    small = [name for name in PRODUCTS | MIXTURES if models.KERNELS[name][0] <= 5]
    points = [(name, baseline) for name in small for baseline in BASELINES[:3]]
    return points + [(name, "marginals") for name in MARGINALS]


def compare(problem, index, accuracy, scale):
    """Mean, covariances and those between rows of the pairs i ≤ j."""
    operator = ShapleyInteractions(problem.baseline, problem.owner, index=index)
    truth = coalitions.truth(
        coalitions.joint_of(problem.posterior), problem.rows, problem.baseline, problem.owner, index
    )
    P = round(truth.mean.shape[1] ** 0.5)
    some = coalitions.upper(P)
    result = problem.posterior.apply(operator, problem.rows)
    assert operator.pairs_for(problem.rows.shape[1]) == list(zip(*np.triu_indices(P)))
    np.testing.assert_allclose(result.mean, truth.mean[:, some], rtol=0, atol=accuracy[0] * scale)
    cov = truth.cov[:, some][:, :, some]
    np.testing.assert_allclose(result.cov, cov, rtol=0, atol=accuracy[1] * scale**2)
    std = problem.posterior.apply(operator, problem.rows, uncertainty="std")
    np.testing.assert_allclose(
        std.var, np.diagonal(cov, axis1=1, axis2=2), rtol=0, atol=accuracy[1] * scale**2
    )
    joint = problem.posterior.joint(operator, problem.rows)
    between = truth.joint[:, some][:, :, :, some]
    np.testing.assert_allclose(joint, between, rtol=0, atol=accuracy[1] * scale**2)
    return result


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize(("name", "baseline"), cases())
def test_kernels(name, baseline, index):
    problem = models.problem(models.exact(name), baseline)
    points = coalitions.functional(problem.rows, problem.baseline).points
    scale = prior_scale(problem.posterior, points)
    compare(problem, index, MIXED if name in MIXTURES else CLOSED, scale)


@pytest.mark.parametrize("name", REFUSED)
def test_marginals_that_are_refused(name):
    problem = models.problem(models.exact(name), "marginals")
    with pytest.raises(UnsupportedModelError, match="Marginals"):
        problem.posterior.apply(ShapleyInteractions(problem.baseline), problem.rows)


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("name", ["isotropic", "nested", "Matérn 3/2", "polynomial of degree 3"])
def test_columns_that_move_together(name, index):
    for baseline in BASELINES if name == "isotropic" else BASELINES[:3]:
        problem = models.problem(models.exact(name), baseline, grouped=True)
        points = coalitions.functional(problem.rows, problem.baseline, problem.owner).points
        scale = prior_scale(problem.posterior, points)
        compare(problem, index, MIXED if name in MIXTURES else CLOSED, scale)


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("name", POSTERIORS)
def test_posteriors(name, index):
    problem = models.problem(POSTERIORS[name], "set")
    sums = coalitions.functional(problem.rows, problem.baseline)
    mean, cov = problem.posterior.predict(sums.points, return_cov=True)
    compare(problem, index, CLOSED, max(np.abs(mean).max(), np.sqrt(np.diagonal(cov).max())))


def matrix_rows(P):
    """The map (P(P + 1)/2, P) that adds pairs i ≤ j up to the rows of their symmetric matrix."""
    total = np.zeros((P * (P + 1) // 2, P))
    for place, (i, j) in enumerate(zip(*np.triu_indices(P))):
        total[place, i] = total[place, j] = 1.0
    return total


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("name", ["squared exponential", "Matérn"])
def test_rows_add_up_to_shapley_values(name, index):
    """In mean and in variance, with more players than can be enumerated in no time."""
    d = 9
    rng = models.numbers(name)
    kernel = models.SE(np.linspace(1.0, 4.0, d)) if name[0] == "s" else models.M52(3.0)
    Z = rng.normal(size=(20, d))
    posterior = ExactPosterior(kernel, Z, np.sin(Z[:, 0] * Z[:, 1]), noise=0.1)
    background = Baselines(Z[:2])
    X = rng.normal(size=(3, d))
    pairs = posterior.apply(ShapleyInteractions(background, index=index), X)
    values = posterior.apply(Shapley(background), X)
    total = matrix_rows(d)
    accuracy = 1e-11 if name[0] == "s" else 1e-9
    np.testing.assert_allclose(pairs.mean @ total, values.mean, rtol=0, atol=accuracy)
    np.testing.assert_allclose(total.T @ pairs.cov @ total, values.cov, rtol=0, atol=accuracy)


@pytest.mark.parametrize("index", INDICES)
def test_chosen_pairs(index):
    problem = models.problem(models.exact("isotropic"), "set")
    chosen = [(0, 1), (2, 2), (1, 3)]
    every = ShapleyInteractions(problem.baseline, index=index)
    some = ShapleyInteractions(problem.baseline, index=index, pairs=chosen)
    all_pairs = every.pairs_for(4)
    places = [all_pairs.index(pair) for pair in chosen]
    whole, part = (problem.posterior.apply(o, problem.rows) for o in (every, some))
    np.testing.assert_allclose(part.mean, whole.mean[:, places], rtol=0, atol=1e-13)
    np.testing.assert_allclose(part.cov, whole.cov[:, places][:, :, places], rtol=0, atol=1e-13)


@pytest.mark.parametrize("index", INDICES)
def test_zeros_and_far_points(index):
    """x = b has exact zeros, one player its whole value, and nothing is ever not a number."""
    posterior = models.exact("isotropic")
    X = models.numbers("rows").normal(size=(3, 4))
    own = posterior.apply(ShapleyInteractions(X, index=index), X)
    assert (own.mean == 0).all()
    assert (own.cov == 0).all()
    partly = X + np.array([1.0, 0.0, 2.0, 0.0])
    result = posterior.apply(ShapleyInteractions(X, index=index), partly)
    pairs = np.array(ShapleyInteractions(X).pairs_for(4))
    still = np.isin(pairs, [1, 3]).any(axis=1)
    assert (result.mean[:, still] == 0).all()
    assert (result.cov[:, still] == 0).all()
    for reach in (1e3, 1e8):
        far = posterior.apply(ShapleyInteractions(X[0], index=index), reach * X)
        assert np.isfinite(far.mean).all()
        assert np.isfinite(far.cov).all()
    one = models.exact("one feature")
    rows = np.array([[0.3], [1.5]])
    single = one.apply(ShapleyInteractions(np.zeros(1), index=index), rows)
    mean = one.predict(np.array([[0.3], [1.5], [0.0]]))
    np.testing.assert_allclose(single.mean[:, 0], mean[:2] - mean[2], rtol=0, atol=1e-12)
