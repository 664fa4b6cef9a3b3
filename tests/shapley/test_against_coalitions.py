"""Shapley values against enumeration of all coalitions, from the model's own predictions alone."""

import numpy as np
import pytest
from tests.reference import coalitions
from tests.shapley import models
from tests.shapley.models import BASELINES, MIXTURES, POSTERIORS, PRODUCTS

from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.operators import Expectation, Marginals, Shapley
from gpattr.posteriors import ExactPosterior, MultiOutputPosterior, MultiTaskPosterior

# Errors of means in standard deviations of the prior, and of covariances in its variances.
CLOSED, MIXED = (1e-12, 1e-10), (1e-8, 1e-7)


def prior_scale(posterior, points):
    """The largest prior standard deviation at the points."""
    return float(np.sqrt(posterior.kernel.diagonal(points).max()))


def compare(problem, accuracy, scale=None, joint=True):
    """Compare mean, covariances of players, and between rows, with enumeration."""
    posterior, rows = problem.posterior, problem.rows
    operator = Shapley(problem.baseline, problem.owner)
    sums = coalitions.functional(rows, problem.baseline, problem.owner)
    mean, cov = posterior.predict(sums.points, return_cov=True)
    scale = prior_scale(posterior, sums.points) if scale is None else scale
    result, between = posterior.apply(operator, rows), sums.joint(cov)
    own = np.einsum("ninj->nij", between)
    np.testing.assert_allclose(result.mean, sums.mean(mean), rtol=0, atol=accuracy[0] * scale)
    np.testing.assert_allclose(result.cov, own, rtol=0, atol=accuracy[1] * scale**2)
    if joint:
        computed = posterior.joint(operator, rows)
        np.testing.assert_allclose(computed, between, rtol=0, atol=accuracy[1] * scale**2)
    plain = posterior.apply(operator, rows, uncertainty="none")
    np.testing.assert_allclose(plain.mean, result.mean, rtol=0, atol=accuracy[0] * scale)
    std = posterior.apply(operator, rows, uncertainty="std")
    np.testing.assert_allclose(
        std.var, np.diagonal(result.cov, axis1=1, axis2=2), rtol=0, atol=accuracy[1] * scale**2
    )
    return result, scale


def check_efficiency(problem, result, scale, accuracy=1e-12):
    """Σᵢφᵢ = f(x) − E f(b), in mean and in variance."""
    sums = coalitions.differences(problem.rows, problem.baseline, problem.owner)
    mean, cov = problem.posterior.predict(sums.points, return_cov=True)
    np.testing.assert_allclose(
        result.mean.sum(axis=1), sums.mean(mean)[:, 0], rtol=0, atol=accuracy * scale
    )
    gain = np.einsum("nini->n", sums.joint(cov))
    total = result.cov.sum(axis=(1, 2))
    np.testing.assert_allclose(total, gain, rtol=0, atol=accuracy * scale**2)


# Marginals need a structure that these kernels, and a function as prior mean, do not have.
ANY = ("warped", "rescaled", "function", "mean: function")


def cases(names):
    """Every kernel with every baseline that it can be explained with."""
    return [
        (name, baseline)
        for name in names
        for baseline in BASELINES
        if baseline != "marginals" or name not in ANY
    ]


@pytest.mark.parametrize(("name", "baseline"), cases(PRODUCTS))
def test_products_and_their_kin(name, baseline):
    problem = models.problem(models.exact(name), baseline)
    result, scale = compare(problem, CLOSED)
    check_efficiency(problem, result, scale)


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("name", MIXTURES)
def test_radial_kernels(name, baseline):
    problem = models.problem(models.exact(name), baseline)
    result, scale = compare(problem, MIXED)
    check_efficiency(problem, result, scale, accuracy=1e-8)


@pytest.mark.parametrize(
    ("name", "baseline"), cases(name for name, (d, _) in models.KERNELS.items() if d > 2)
)
def test_columns_that_move_together(name, baseline):
    problem = models.problem(models.exact(name), baseline, grouped=True)
    compare(problem, MIXED if name in MIXTURES else CLOSED)


@pytest.mark.parametrize("name", ANY)
def test_marginals_of_any_kernel_are_refused(name):
    posterior = POSTERIORS[name] if name in POSTERIORS else models.exact(name)
    problem = models.problem(posterior, "marginals")
    with pytest.raises(UnsupportedModelError, match="Marginals"):
        problem.posterior.apply(Shapley(problem.baseline), problem.rows)


@pytest.mark.parametrize(("name", "baseline"), cases(POSTERIORS))
def test_posteriors(name, baseline):
    """Of every kind; the scale is that of the predictions, since not all have a kernel."""
    problem = models.problem(POSTERIORS[name], baseline)
    sums = coalitions.functional(problem.rows, problem.baseline)
    mean, cov = problem.posterior.predict(sums.points, return_cov=True)
    scale = max(np.abs(mean).max(), np.sqrt(np.diagonal(cov).max()))
    result, _ = compare(problem, CLOSED, scale)
    check_efficiency(problem, result, scale)


@pytest.mark.parametrize("baseline", BASELINES)
def test_features_of_encoded_columns(baseline):
    """Columns that encode one feature are one player, unless players are given."""
    rows, starts = models.CODES[3:5], models.CODES[:3]
    weights = [0.2, 0.5, 0.3]
    chosen = {
        "point": starts[0],
        "one per row": starts[:2],
        "set": models.Baselines(starts, weights),
        "marginals": Marginals(starts, weights),
    }[baseline]
    posterior, columns = models.ENCODED, models.ENCODED.in_columns
    truth = coalitions.truth(coalitions.joint_of(columns), rows, chosen, models.OWNER)
    result = posterior.apply(Shapley(chosen), rows)
    assert result.mean.shape == (2, 3)
    np.testing.assert_allclose(result.mean, truth.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.cov, truth.cov, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        posterior.joint(Shapley(chosen), rows), truth.joint, rtol=0, atol=1e-10
    )
    two = posterior.apply(Shapley(chosen, [0, 0, 0, 0, 1]), rows)
    truth = coalitions.truth(coalitions.joint_of(columns), rows, chosen, [0, 0, 0, 0, 1])
    np.testing.assert_allclose(two.mean, truth.mean, rtol=0, atol=1e-12)


def test_expectation_under_marginals():
    """E f(b), over combinations of columns or of players."""
    for name, owner in (("isotropic", None), ("isotropic", [0, 1, 0, 1]), ("nested", None)):
        posterior = models.exact(name)
        problem = models.problem(posterior, "marginals")
        rows, weights = coalitions.combinations(
            problem.baseline.points, problem.baseline.weights, owner or list(range(4))
        )
        mean, cov = posterior.predict(rows, return_cov=True)
        result = posterior.apply(Expectation(problem.baseline, owner), problem.rows)
        np.testing.assert_allclose(result.mean, weights @ mean, rtol=0, atol=1e-12)
        np.testing.assert_allclose(result.cov, weights @ cov @ weights, rtol=0, atol=1e-10)


TASKS = np.array([[1.0, 0.4, 0.1], [0.4, 0.8, -0.2], [0.1, -0.2, 0.6]])
TARGETS = np.stack([models.Y, models.Y**2, models.Z[:, 0]], axis=1)
SEVERAL = {
    "independent": MultiOutputPosterior({"one": models.EXACT, "two": models.OTHER}),
    "coregionalised": MultiOutputPosterior.coregionalised(
        SquaredExponential(2.0), models.Z, TARGETS, covariance=TASKS, noise=0.1
    ),
    "tasks": MultiTaskPosterior(
        Matern52(2.0), models.Z, models.Y, np.arange(25) % 3, covariance=TASKS, noise=0.1
    ),
}


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("kind", SEVERAL)
def test_several_outputs(kind, baseline):
    posterior = SEVERAL[kind]
    problem = models.problem(posterior, baseline, d=3)
    mean_accuracy, cov_accuracy = MIXED if kind == "tasks" else CLOSED
    operator = Shapley(problem.baseline)
    results, across = (
        posterior.apply(operator, problem.rows),
        posterior.across(operator, problem.rows),
    )
    for o, (output, result) in enumerate(results.items()):
        joint = coalitions.joint_of(posterior[output])
        truth = coalitions.truth(joint, problem.rows, problem.baseline)
        np.testing.assert_allclose(result.mean, truth.mean, rtol=0, atol=5 * mean_accuracy)
        np.testing.assert_allclose(result.cov, truth.cov, rtol=0, atol=5 * cov_accuracy)
        own = across[:, :, o, :, o]
        np.testing.assert_allclose(own, truth.cov, rtol=0, atol=5 * cov_accuracy)


@pytest.mark.parametrize("kind", [SquaredExponential, Matern52])
def test_contributions_of_training_rows(kind):
    """αₘ times the operator on k(·, zₘ), by enumeration; they add up to the means."""
    posterior = ExactPosterior(kind([1.0, 2.0, 1.5]), models.Z, models.Y, noise=0.1)
    operator, rows = Shapley(models.Z[0]), models.Z[5:8]
    shares = posterior.contributions(operator, rows)
    sums = coalitions.functional(rows, models.Z[0])
    cross = sums.weights @ posterior.kernel(sums.points, models.Z)  # (n, q, m)
    np.testing.assert_allclose(shares, cross * posterior.alpha, rtol=0, atol=1e-8)
    mean = posterior.apply(operator, rows).mean
    np.testing.assert_allclose(shares.sum(axis=2), mean, rtol=0, atol=1e-11)
