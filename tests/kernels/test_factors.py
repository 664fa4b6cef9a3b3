"""Kernels as sums of products over groups of columns."""

from dataclasses import dataclass

import numpy as np
import pytest

import gpattr
from gpattr.closed_forms import formulas_for
from gpattr.kernels import (
    Constant,
    FullAdditive,
    Kernel,
    Linear,
    Matern32,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Select,
    SquaredExponential,
)
from gpattr.kernels.factors import factors
from gpattr.operators import Shapley

RNG = np.random.default_rng(0)
SE = SquaredExponential([0.7, 1.1, 1.6, 0.9], 1.3)
KERNELS = {
    "squared exponential": SE,
    "nearly squared exponential": RationalQuadratic(1.2, 0.8, alpha=1e17),
    "periodic": Periodic(1.3, [2.0, 3.0, 1.0, 4.0], 0.7),
    "linear": Linear([1.0, 0.5, 2.0, 0.3]),
    "polynomial": Polynomial(0.5, degree=3, offset=0.4),
    "additive": FullAdditive([SquaredExponential(), Linear(), Matern32(), Periodic()], [1, 0, 0.5]),
    "sum": SE + 0.3 * Linear() + Constant(0.2),
    "product": SE * (Linear() + Constant(0.5)),
    "selected": Select(Polynomial(degree=2) * SquaredExponential(0.8), [2, 0]),
    "sums of one column": Select(Matern32() + Linear(), [1]) * (Select(Linear(), [3]) + SE),
    "columns without effect": Select(Matern32(), [1])
    * (Select(Constant(0.5), [0, 2]) + Select(Select(Linear(), [1]), [0, 3]) * Constant(2.0)),
}
GROUPS = {"single": ((0,), (1,), (2,), (3,)), "two": ((3, 1), (0, 2)), "one": ((0, 1, 2, 3),)}


def value(terms, X, Z):
    """Return Σₜ scaleₜ ∏ᵢ kₜᵢ."""
    total = 0.0
    for term in terms:
        product = term.scale
        for kernel, columns, _ in term.factors:
            product = product * kernel(X[:, list(columns)], Z[:, list(columns)])
        total = total + product
    return total


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_terms_add_up_to_the_kernel(kernel, groups):
    X, Z = RNG.normal(size=(6, 4)), RNG.normal(size=(5, 4))
    terms = kernel.factors(groups)
    np.testing.assert_allclose(value(terms, X, Z), kernel(X, Z), rtol=1e-13, atol=1e-14)
    for term in terms:
        for factor in term.factors:
            assert set(factor.columns) <= set(groups[factor.group])


def test_no_sum_of_products():
    assert Matern32().factors([(0,), (1,)]) is None
    assert (SE + Matern32()).factors(GROUPS["two"]) is None
    assert Matern32().factors(GROUPS["one"]) is not None


def test_too_many_terms():
    groups = [(i,) for i in range(20)]
    kernel = FullAdditive([SquaredExponential()] * 20, [1.0] * 10)
    assert kernel.factors(groups) is None
    assert factors(FullAdditive([SquaredExponential()] * 20, [1.0]), groups, 19) is None
    assert len(factors(FullAdditive([SquaredExponential()] * 20, [1.0]), groups, 20)) == 20


def test_a_derived_kernel_does_not_split_as_its_base_does():
    @dataclass(frozen=True, eq=False)
    class Squared(SquaredExponential):
        def __call__(self, X, Z):
            return super().__call__(X, Z) + super().__call__(X, Z) ** 2

    assert Squared().factors([(0,), (1,)]) is None


@dataclass(frozen=True, eq=False)
class Decay(Kernel):
    """k(x, x') = exp(−Σ|xᵢ − xᵢ'|/ℓ), a product over columns."""

    lengthscale: float = 1.0

    @property
    def stationary(self):
        return True

    def __call__(self, X, Z):
        return np.exp(-abs(X[:, None] - Z).sum(axis=2) / self.lengthscale)

    def diagonal(self, X):
        return np.ones(len(X))

    def n_lengthscales(self, step):
        return abs(step).sum(axis=-1) / self.lengthscale

    def check_features(self, d):
        pass

    def split(self, inside, outside):
        return [(1.0, [(self, inside), (self, outside)])]


def test_a_kernel_that_says_how_it_splits_has_closed_forms():
    X = RNG.uniform(size=(15, 3))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    posterior = gpattr.posteriors.ExactPosterior(Decay(3.0), X, y, noise=1e-2)
    indices = gpattr.sobol_indices(posterior, gpattr.Uniform(0, 1), n_draws=100)
    assert indices.method.startswith("closed")
    many = Shapley(np.zeros(14))  # players that are too many to enumerate
    assert formulas_for(many, Decay()).methods == {"closed form"}
    assert formulas_for(many, Decay() * Linear()).methods == {"closed form"}
    sites = many.terms(RNG.uniform(size=(2, 14)))[0][1]
    Z = RNG.uniform(size=(4, 14))
    values = formulas_for(many, Decay()).cross(sites, Z).value
    difference = Decay()(sites.stop, Z) - Decay()(sites.start, Z)
    np.testing.assert_allclose(values.sum(axis=1), difference, rtol=1e-12, atol=1e-15)
    curve = gpattr.Explainer(posterior).dependence(0, background=X)
    rows = np.repeat(X, len(curve.grid), axis=0)
    rows[:, 0] = np.tile(np.asarray(curve.grid, dtype=float).ravel(), len(X))
    mean = posterior.predict(rows).reshape(len(X), -1).mean(axis=0)
    np.testing.assert_allclose(np.asarray(curve.values).ravel(), mean, rtol=1e-10)
