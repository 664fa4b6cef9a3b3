"""One conformance suite for every posterior; and each kind of fault is found and named."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import gpattr
from gpattr.bases import Combined, Fourier, Hilbert, Monomials
from gpattr.distributions import Gaussian
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.means import Constant, Function, Linear, Polynomial
from gpattr.posteriors import (
    AffinePosterior,
    ExactPosterior,
    LaplacePosterior,
    MixturePosterior,
    MultiOutputPosterior,
    SparsePosterior,
    WeightSpacePosterior,
)
from gpattr.testing import check_posterior

RNG = np.random.default_rng(3)
Z, Y = RNG.normal(size=(20, 3)), RNG.normal(size=20)
X = RNG.normal(size=(8, 3))
BASES = {
    "waves": Fourier(RNG.normal(size=(9, 3)), RNG.normal(size=3)),
    "linear": Monomials.up_to(1, 3, constant=False),
    "polynomial": Monomials.up_to(
        3, 3, constant=True, origin=[0.5, 0.0, -1.0], scale=[1.0, 2.0, 0.5]
    ),
    "box": Hilbert(np.zeros(3), np.full(3, 5.0), (3, 4, 5)),
    "additive": Combined(
        (Hilbert([0.0, 1.0], [6.0, 7.0], (4, 3)), Fourier(RNG.normal(size=(5, 1)))),
        ((2, 0), (1,)),
        3,
    ),
}


def weight_space(basis, **options):
    p = len(basis)
    root = RNG.normal(size=(p, p)) / p**0.5
    return WeightSpacePosterior(basis, RNG.normal(size=p), root @ root.T, **options)


def posteriors():
    exact = ExactPosterior(SquaredExponential([1.0, 2.0, 0.7]), Z, Y, noise=0.1)
    yield "exact", exact
    yield "matern", ExactPosterior(Matern52(2.0), Z, Y, noise=0.1, mean=Constant(3.0))
    yield (
        "trend",
        ExactPosterior(
            SquaredExponential(), Z, Y, noise=0.1, mean=Linear(np.zeros(3), covariance="flat")
        ),
    )
    yield (
        "sparse",
        SparsePosterior.fit(
            SquaredExponential([1.0, 2.0, 0.7]), Z[:7], Z, Y, noise=0.1, mean=Constant(0.3)
        ),
    )
    yield (
        "variational",
        SparsePosterior(Matern52(1.5), Z[:7], Y[:7], np.diag(np.linspace(0.0, 2.0, 7))),
    )
    rows = np.column_stack([Y, Z[:, 0]])
    several = MultiOutputPosterior.coregionalised(
        Matern52(1.5), Z, rows, covariance=[[1.0, 0.5], [0.5, 2.0]], noise=[0.1, 0.3]
    )
    yield "coregionalised", several
    units = {"shift": [1.0, -2.0, 0.5], "scale": [2.0, 0.5, -1.5]}
    yield "other units", AffinePosterior(exact, **units)
    yield "fed twice", AffinePosterior(exact, **units, source=[0, 3, 0], n_features=4)
    yield (
        "mixture in other units",
        AffinePosterior(MixturePosterior([exact, weight_space(BASES["waves"])]), **units),
    )
    yield (
        "labels",
        LaplacePosterior(SquaredExponential([1.0, 2.0, 0.7], 4.0), Z, Y > 0, mean=Constant(0.3)),
    )
    for name, basis in BASES.items():
        yield name, weight_space(basis)
    yield (
        "with a mean",
        weight_space(BASES["waves"], mean=Polynomial([1.0, 0.5], [[1, 0, 2], [0, 1, 0]])),
    )
    yield (
        "mean by quadrature",
        weight_space(BASES["box"], mean=Function(lambda x: np.sin(x).sum(1), np.cos)),
    )
    factor = np.tril(RNG.normal(size=(18, 18))) + 5.0 * np.eye(18)
    yield (
        "by precision",
        WeightSpacePosterior(BASES["waves"], RNG.normal(size=18), precision_factor=factor),
    )
    yield (
        "low rank",
        WeightSpacePosterior(BASES["waves"], RNG.normal(size=18), root=RNG.normal(size=(18, 2))),
    )
    yield (
        "mixture",
        MixturePosterior(
            [exact, weight_space(BASES["waves"]), weight_space(BASES["box"])], [0.5, 0.2, 0.3]
        ),
    )
    yield (
        "mixture of mixtures",
        MixturePosterior([exact, MixturePosterior([exact, weight_space(BASES["linear"])])]),
    )
    data = torch.tensor(Z), torch.tensor(Y)
    yield "tensors", gpattr.RandomFeatureGPRegressor(20, random_state=0).fit(*data).posterior_
    for model in (
        gpattr.GPRegressor(),
        gpattr.GPRegressor(gpattr.kernels.SquaredExponential),
        gpattr.BayesianLinearRegressor(),
        gpattr.BayesianLinearRegressor(degree=2, fit_intercept=False),
        gpattr.RandomFeatureGPRegressor(20, random_state=0),
        gpattr.RandomFeatureGPRegressor(20, ensemble=3, random_state=0, kernel=Matern52),
        gpattr.HilbertGPRegressor(8, 2.0, optimize=False),
    ):
        yield repr(model), model.fit(Z, Y).posterior_


POSTERIORS = dict(posteriors())


@pytest.mark.parametrize("name", POSTERIORS)
def test_posterior_conforms(name):
    rows = X.clip(-2, 2)
    d = POSTERIORS[name].n_features
    check_posterior(
        POSTERIORS[name], rows if d == 3 else np.column_stack([rows, rows[:, 0]])[:, :d]
    )


HIDDEN = np.array([0.0, 1.0, -1.0])  # adds up to zero, so that completeness does not see it


def changed(result, **moments):
    """The same answer with another mean, variance or covariance."""
    kept = {name: getattr(result, name) for name in ("mean", "var", "cov")}
    return replace(result, distribution=Gaussian(**(kept | moments)))


class Faulty(WeightSpacePosterior):
    """A posterior with one fault."""

    fault = ""

    def predict(self, X, *, return_std=False, return_cov=False):
        result = super().predict(X, return_std=return_std, return_cov=return_cov)
        if self.fault == "mean" and return_std:
            return result[0] + 1e-6, result[1]
        if self.fault == "std" and return_std:
            return result[0], 1.001 * result[1]
        if self.fault == "batch" and return_cov is return_std:
            return result + 1e-3 * (len(X) == 1)
        if self.fault == "asymmetric" and return_cov:
            result[1][0, 1] *= 1.1
        if self.fault == "indefinite" and return_cov:
            result[1][...] = (
                np.diag(np.diagonal(result[1]))
                + 3.0 * (1 - np.eye(len(result[1]))) * result[1].max()
            )
        return result

    def apply(self, operator, X, *, uncertainty="cov", method="auto", n_steps=None, tolerance=1e-6):
        result = super().apply(operator, X, uncertainty=uncertainty, method=method, n_steps=n_steps)
        weighted = getattr(operator, "weights", None) is not None
        gradient = type(operator).__name__ == "Gradient"
        d = X.shape[1]
        turn = np.eye(d)[[1, 0, *range(2, d)]]
        if self.fault == "incomplete" and not gradient:
            return changed(result, mean=result.mean * 1.001)
        if self.fault == "covariance" and result.cov is not None:
            return changed(result, cov=result.cov * 1.001, var=result.var * 1.001)
        if self.fault == "only std" and uncertainty == "std":
            return changed(result, var=result.var * 1.001)
        if self.fault == "dummy" and not gradient:
            return changed(result, mean=result.mean @ turn)
        if self.fault == "hidden" and not gradient and result.var is not None:
            extra = 0.05 * np.outer(HIDDEN, HIDDEN)
            cov = None if result.cov is None else result.cov + extra
            return changed(result, var=result.var + np.diag(extra), cov=cov)
        if self.fault == "error" and not gradient:  # a little more than is stated
            return changed(result, mean=result.mean + 2e-10 * np.abs(result.mean).max() * HIDDEN)
        if self.fault == "weights" and weighted:
            return changed(result, mean=result.mean * 1.001)
        if self.fault == "weights' covariance" and weighted:
            return changed(result, cov=result.cov * 1.001)
        if self.fault == "gradient" and gradient:
            return changed(result, mean=result.mean @ turn)
        return result

    def joint(self, operator, X, *, method="auto", n_steps=None):
        result = super().joint(operator, X)
        if self.fault == "joint":
            result[0, :, 1] = result[1, :, 0] = 0.0
        if self.fault == "hidden":
            result[range(len(X)), :, range(len(X))] += 0.05 * np.outer(HIDDEN, HIDDEN)
        return result

    def rows_covariance(self, operator, X, gather=None, *, method="auto", n_steps=None):
        result = super().rows_covariance(operator, X, gather)
        wrong = (self.fault == "rows" and gather is None) or (
            self.fault == "sums" and gather is not None
        )
        return result * 1.001 if wrong else result

    def sample(self, operator, X, n=1, *, random_state=None):
        draws = super().sample(operator, X, n, random_state=random_state)
        return {
            "draws": draws + 0.5 * draws.std(),
            "spread": draws * 1.5 - 0.5 * draws.mean(axis=0),
        }.get(self.fault, draws)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("", None),
        ("mean", "the mean does not depend"),
        ("std", "standard deviations"),
        ("batch", "predictions do not depend on the other rows"),
        ("asymmetric", "symmetry"),
        ("indefinite", "eigenvalue"),
        ("incomplete", "completeness of the mean"),
        ("covariance", "completeness of the covariance"),
        ("only std", "variances with"),
        ("dummy", "dummy"),
        ("joint", "completeness of the covariance between rows"),
        ("weights", "means over weighted baselines"),
        ("weights' covariance", "completeness over weighted baselines"),
        ("gradient", "integral of gradients"),
        ("error", "error: .* is reported for means that are off by"),
        ("hidden", "their covariance against that of differences"),
        ("draws", "draws: their mean"),
        ("spread", "draws: their covariance"),
        ("rows", "covariance between rows of each feature"),
        ("sums", "covariance between rows of sums"),
    ],
)
def test_faults_are_named(fault, words):
    p = len(BASES["waves"])
    posterior = Faulty(BASES["waves"], RNG.normal(size=p), np.eye(p))
    object.__setattr__(posterior, "fault", fault)
    if words is None:
        check_posterior(posterior, X)
        return
    with pytest.raises(AssertionError, match=words):
        check_posterior(posterior, X)


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match=r"posterior: expected a gpattr posterior, got int"):
        check_posterior(3, X)
    with pytest.raises(InvalidInputError, match=r"X: expected at least 5 rows, got 4"):
        check_posterior(POSTERIORS["waves"], X[:4])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"), [("scaled", "between an output and itself"), ("indefinite", "eigenvalue")]
)
def test_faults_across_outputs_are_named(fault, words, monkeypatch):
    right = MultiOutputPosterior.across

    def wrong(self, operator, X, **options):
        result = right(self, operator, X, **options)
        if fault == "scaled":
            return 1.001 * result
        result[:, :, 0, :, 1] *= 30.0
        result[:, :, 1, :, 0] *= 30.0
        return result

    monkeypatch.setattr(MultiOutputPosterior, "across", wrong)
    with pytest.raises(AssertionError, match=words):
        check_posterior(POSTERIORS["coregionalised"], X)


def test_bad_units_are_named():
    exact = POSTERIORS["exact"]
    for options, words in (
        ({"shift": [0.0], "scale": [1.0] * 3}, "shift: expected 3 numbers"),
        ({"shift": [0.0] * 3, "scale": [1.0, 0.0, 1.0]}, "scale: expected numbers other than 0"),
        (
            {"shift": [0.0] * 3, "scale": [1.0] * 3, "source": [0, 1]},
            "source: expected 3 positions below 3",
        ),
        (
            {"shift": [0.0] * 3, "scale": [1.0] * 3, "source": [0, 1, 5], "n_features": 4},
            "source: expected 3 positions below 4",
        ),
    ):
        with pytest.raises(InvalidInputError, match=words):
            AffinePosterior(exact, **options)
    with pytest.raises(
        InvalidInputError, match="posterior: expected a gpattr posterior with one output, got a int"
    ):
        AffinePosterior(3, [0.0], [1.0])
