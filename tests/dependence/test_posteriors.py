"""Partial dependence of every posterior, against averages of its own joint predictions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.dependence.reference import Case, cases, compare, steepness
from tests.dependence.test_kernels import KINDS
from tests.shapley.models import (
    CODES,
    ENCODED,
    KERNEL,
    POSTERIORS,
    UNITS,
    Y,
    Z,
    numbers,
)

import gpattr
from gpattr import means
from gpattr.kernels import Matern52, Periodic, Select, SquaredExponential
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    ExactPosterior,
    LaplacePosterior,
    MixturePosterior,
    MultiOutputPosterior,
    SparsePosterior,
)

MATERN = ExactPosterior(Matern52([1.0, 2.0, 1.5]), Z, Y, noise=0.05, mean=means.Constant(2.0))
SEVERAL = MultiOutputPosterior.coregionalised(
    Matern52(1.5), Z, np.column_stack([Y, Z[:, 0]]), covariance=[[1.0, 0.5], [0.5, 2.0]], noise=0.1
)
TENSORS = ExactPosterior(KERNEL, torch.tensor(Z), torch.tensor(Y), noise=0.05)
MORE = {
    "Matérn": MATERN,
    "tensors": TENSORS,
    "random features of tensors": gpattr.RandomFeatureGPRegressor(20, random_state=0)
    .fit(torch.tensor(Z), torch.tensor(Y))
    .posterior_,
    "Matérn of tensors": ExactPosterior(
        Matern52([1.0, 2.0, 1.5]), torch.tensor(Z), torch.tensor(Y), noise=0.05
    ),
    "sparse Matérn": SparsePosterior.fit(Matern52(1.5), Z[:9], Z, Y, noise=0.1),
    "labels, Matérn": LaplacePosterior(Matern52(1.5, 4.0), Z, (Y > 0) * 1.0),
    "one of several outputs": list(SEVERAL.outputs.values())[1],
    "affine Matérn, a column used twice": AffinePosterior(
        MATERN, **UNITS, source=[1, 3, 1], n_features=4
    ),
    "combination of kinds": CombinationPosterior([MATERN, POSTERIORS["sparse"]], [0.5, 2.0]),
    "mixture of kinds": MixturePosterior([MATERN, POSTERIORS["weight space: box"]], [0.4, 0.6]),
    "periodic with a trend": ExactPosterior(
        Select(Periodic(1.0, 4.0), [1]) * SquaredExponential(2.0),
        Z,
        Y,
        noise=0.1,
        mean=means.Linear(np.zeros(3), covariance="flat"),
    ),
}
ALL = POSTERIORS | MORE


def predictions_scale(posterior, points):
    """The size of predictions, since not all posteriors have a kernel."""
    mean, cov = (np.asarray(part) for part in posterior.predict(points, return_cov=True))
    return max(np.abs(mean).max(), np.sqrt(np.diagonal(cov).max()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALL)
def test_posteriors(name, kind):
    posterior = ALL[name]
    rng = numbers(name, kind)
    rows, weights = rng.normal(size=(4, posterior.n_features)), np.array([0.1, 0.2, 0.3, 0.4])
    case = cases(rng, rows, weights)[kind]
    scale = max(predictions_scale(posterior, case.points), steepness(posterior, case))
    compare(posterior, case, scale)


@pytest.mark.parametrize("individual", [False, True])
def test_a_category_is_all_of_its_columns(individual):
    """The encoded columns of a feature move together; rows are those of encoded columns."""
    case = Case((1, 2, 3), np.eye(3), CODES[:6], np.full(6, 1 / 6), individual=individual)
    for centre in (None, (np.eye(3), np.array([0.2, 0.5, 0.3]))):
        one = replace(case, centre=centre)
        compare(ENCODED, one, 1.0)


def test_a_feature_of_several_inputs_moves_all_of_them():
    """Column 1 feeds inputs 0 and 2, and columns 0 and 2 none: their curves are flat."""
    posterior = MORE["affine Matérn, a column used twice"]
    rng = numbers("several inputs")
    rows = rng.normal(size=(4, 4))
    case = Case((2,), np.array([[-1.0], [0.0], [3.0]]), rows, np.full(4, 0.25))
    result = compare(posterior, case, 1.0)
    assert np.ptp(result.mean) <= result.error[0]
    slope = posterior.apply(replace(case, derivative=True).operator, rows[:1])
    np.testing.assert_array_equal(slope.mean, 0.0)
    np.testing.assert_array_equal(slope.cov, 0.0)
    shares = np.array([0.3, 0.3, 0.4])
    centred = posterior.apply(replace(case, centre=(case.grid, shares)).operator, rows[:1])
    np.testing.assert_array_equal(centred.mean, 0.0)
    np.testing.assert_array_equal(centred.cov, 0.0)
