"""Distributions of attributions: laws that hold for each kind, against draws and plain NumPy."""

import copy
import pickle

import numpy as np
import pytest
import torch
from scipy.stats import norm

import gpattr
from gpattr import memory_budget
from gpattr.distributions import Distribution, Draws, Gaussian, Marginals, Mixture, Point
from gpattr.exceptions import (
    InvalidIndexError,
    InvalidInputError,
    MissingUncertaintyError,
    TooLargeError,
    UnsupportedModelError,
)

RNG = np.random.default_rng(3)
N, Q, K = 4, 3, 2
MEAN = RNG.normal(size=(N, Q))
ROOT = RNG.normal(size=(K, N, Q, Q))
COVS = ROOT @ ROOT.transpose(0, 1, 3, 2)
SAMPLE = MEAN + np.einsum("nij,snj->sni", ROOT[0], RNG.standard_normal((500, N, Q)))
CENTRED = SAMPLE - SAMPLE.mean(axis=0)
KINDS = {
    "gaussian": Gaussian(MEAN, cov=COVS[0]),
    "mixture": Mixture([0.3, 0.7], np.stack([MEAN, 1.0 - MEAN]), covs=COVS),
    "draws": Draws(SAMPLE, cov=np.einsum("sni,snj->nij", CENTRED, CENTRED) / 499),
    "point": Point(MEAN),
}
G = RNG.normal(size=(Q, 2))
kinds = pytest.mark.parametrize("d", KINDS.values(), ids=KINDS)
uncertain = pytest.mark.parametrize(
    "d", [KINDS[name] for name in ("gaussian", "mixture")], ids=["gaussian", "mixture"]
)


def close(one, two, rtol=1e-12):
    """Tell whether two distributions have the same arrays, to rounding."""
    assert type(one) is type(two)
    assert one.held().keys() == two.held().keys()
    for name, array in one.held().items():
        np.testing.assert_allclose(array, two.held()[name], rtol=rtol, atol=1e-13)


def as_tensors(d):
    return type(d)(**{name: torch.tensor(np.array(a)) for name, a in d.held().items()})


@kinds
def test_linear_images_are_those_of_the_draws(d):
    draws = d.sample(200_000, random_state=0)
    image = d.linear(G)
    moved = draws @ G
    assert image.shape == (N, 2)
    np.testing.assert_allclose(image.mean, moved.mean(axis=0), atol=0.03)
    for n in range(N):
        np.testing.assert_allclose(image.cov[n], np.cov(moved[:, n].T), atol=0.15, rtol=0.02)
    np.testing.assert_allclose(image.var, np.einsum("nii->ni", image.cov), rtol=1e-12)
    for x in (-1.0, 0.0, 2.0):
        np.testing.assert_allclose(image.cdf(x), (moved <= x).mean(axis=0), atol=0.006)
    np.testing.assert_allclose(image.prob_positive(), (moved > 0).mean(axis=0), atol=0.006)
    greater = (moved[:, :, 0] > moved[:, :, 1]).mean(axis=0)
    np.testing.assert_allclose(image.prob_greater(0, 1), greater, atol=0.006)


@kinds
def test_moments_of_linear_images_are_exact(d):
    image = d.linear(G)
    np.testing.assert_allclose(image.mean, d.mean @ G, rtol=1e-13)
    expected = np.einsum("ia,nij,jb->nab", G, d.cov, G)
    np.testing.assert_allclose(image.cov, expected, rtol=1e-10, atol=1e-12)
    close(d.linear(np.eye(Q)), d)
    close(d.linear(G).linear(G.T), d.linear(G @ G.T), rtol=1e-9)
    assert (d.linear(np.zeros((Q, 1))).var == 0).all()
    assert d.linear(np.empty((Q, 0))).shape == (N, 0)


@kinds
def test_selections_commute_with_linear_images(d):
    rows, entries = [2, 0], [2, 1]
    close(d.select(rows, [0, 1, 2]).linear(G), d.linear(G).select(rows, slice(None)))
    chosen = np.eye(Q)[:, entries]
    close(d.linear(chosen).select(rows, [0, 1]), d.select(rows, entries))
    np.testing.assert_array_equal(d.select(rows, entries).mean, d.mean[np.ix_(rows, entries)])
    np.testing.assert_array_equal(
        d.select(rows, entries).cov, d.cov[np.ix_(rows, entries, entries)]
    )


@kinds
def test_slices_join_to_the_whole(d):
    parts = [
        d.select([0], slice(None)),
        d.select(slice(1, 1), slice(None)),
        d.select([1, 2, 3], slice(None)),
    ]
    assert Distribution.concatenate(parts) == d
    assert Distribution.concatenate(part for part in parts) == d
    assert Distribution.concatenate(parts[:2]) != d


@kinds
def test_draws_have_the_distribution(d):
    draws = d.sample(100_000, random_state=1)
    lower, upper = d.interval(0.8)
    for end, level in ((lower, 0.1), (upper, 0.9)):
        np.testing.assert_allclose(np.quantile(draws, level, axis=0), end, atol=0.06)
    size = np.abs(draws)
    first = (size.argmax(axis=2)[:, :, None] == np.arange(Q)).mean(axis=0)
    ranks = d.rank_probabilities(20_000)
    np.testing.assert_allclose(ranks[:, :, 0], first, atol=0.02)
    np.testing.assert_allclose(ranks.sum(axis=1), 1.0)
    signed = (draws.argmin(axis=2)[:, :, None] == np.arange(Q)).mean(axis=0)
    ranks = d.rank_probabilities(20_000, absolute=False)
    np.testing.assert_allclose(ranks[:, :, -1], signed, atol=0.02)
    with memory_budget(working=1):
        np.testing.assert_allclose(d.rank_probabilities(100), d.rank_probabilities(100))
    with pytest.raises(TooLargeError, match="n: the draws"):
        d.sample(10**12)


def test_gaussian_against_scipy():
    d = KINDS["gaussian"]
    std = np.sqrt(d.var)
    np.testing.assert_allclose(d.interval(0.9)[0], norm.ppf(0.05, MEAN, std), rtol=1e-12)
    np.testing.assert_allclose(d.cdf(0.3), norm.cdf(0.3, MEAN, std), rtol=1e-12)
    np.testing.assert_allclose(d.prob_positive(), norm.sf(0, MEAN, std), rtol=1e-12)


def test_totals_of_a_mixture():
    d, weights = KINDS["mixture"], np.array([0.3, 0.7])
    mean = 0.3 * MEAN + 0.7 * (1.0 - MEAN)
    apart = d.means - mean
    between = np.einsum("k,kni,knj->nij", weights, apart, apart)
    np.testing.assert_allclose(d.mean, mean, rtol=1e-13)
    np.testing.assert_allclose(d.cov, np.tensordot(weights, COVS, axes=1) + between, rtol=1e-12)
    np.testing.assert_allclose(d.var, np.einsum("nii->ni", d.cov), rtol=1e-12)
    shares = np.einsum("nii->ni", between) / d.var
    np.testing.assert_allclose(d.shares_between(), shares, rtol=1e-12)
    given = Mixture(weights, d.means, covs=COVS, mean=mean + 1e-9, var=d.var * 2, cov=d.cov * 2)
    np.testing.assert_array_equal(given.mean, mean + 1e-9)
    np.testing.assert_array_equal(given.var, d.var * 2)
    assert not KINDS["gaussian"].shares_between().any()
    alone = Mixture([1.0], MEAN[None], covs=COVS[:1])
    np.testing.assert_array_equal(alone.sample(3, 0), KINDS["gaussian"].sample(3, 0))


def test_errors_of_draws():
    d = KINDS["draws"]
    np.testing.assert_allclose(d.var, SAMPLE.var(axis=0, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(Draws(SAMPLE).var, SAMPLE.var(axis=0, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(d.standard_error(), np.sqrt(d.var / 500), rtol=1e-12)
    assert all((error > 0).all() for error in d.interval_error(0.9))
    with pytest.raises(UnsupportedModelError, match="known by draws, not as a mixture"):
        d.marginals()
    for name in ("gaussian", "mixture", "point"):
        for question in (KINDS[name].standard_error, KINDS[name].interval_error):
            with pytest.raises(UnsupportedModelError, match="expected attributions known by draws"):
                question()
    small = Draws([[[1.0, -1.0]], [[0.0, 2.0]]])
    assert small.prob_positive().tolist() == [[0.75, 0.5]]
    assert small.cdf([0.5, -1.0]).tolist() == [[0.5, 0.5]]
    assert small.cdf(np.zeros((3, 1, 1))).shape == (3, 1, 2)


def test_a_point_is_certain():
    d = Point([[1.0, -2.0, 0.0], [3.0, 3.0, -3.0]])
    assert (d.var == 0).all()
    assert (d.cov == 0).all()
    assert d.cov.shape == (2, 3, 3)
    assert d.cov.strides == (0, 0, 0)
    assert d.interval()[0].tolist() == d.interval(0.5)[1].tolist() == d.mean.tolist()
    assert d.prob_positive().tolist() == [[1.0, 0.0, 0.5], [1.0, 1.0, 0.0]]
    assert d.prob_greater(0, 1).tolist() == [1.0, 0.5]
    np.testing.assert_array_equal(d.rank_probabilities()[0], np.eye(3)[[1, 0, 2]])
    np.testing.assert_allclose(d.rank_probabilities()[1], 1 / 3)
    assert d.sample(5).tolist() == [d.mean.tolist()] * 5
    assert d.cdf(0.0).tolist() == [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    assert len(pickle.dumps(Point(np.zeros((1, 1000))))) < 20_000


@kinds
def test_tensors_give_the_same(d):
    there = as_tensors(d)
    assert there.numpy() == d
    assert isinstance(there.linear(G).mean, torch.Tensor)
    assert isinstance(there.select([1], [0, 2]).mean, torch.Tensor)
    close(there.linear(torch.tensor(G)).numpy(), d.linear(G))
    assert there.select([1, 0], [2, 0]).numpy() == d.select([1, 0], [2, 0])
    assert Distribution.concatenate([there, there]).numpy() == Distribution.concatenate([d, d])
    assert there.without_cov().numpy() == d.without_cov()
    np.testing.assert_array_equal(there.prob_positive(), d.prob_positive())
    np.testing.assert_array_equal(there.sample(3, 0), d.sample(3, 0))
    np.testing.assert_array_equal(there.rank_probabilities(50), d.rank_probabilities(50))


@kinds
def test_numpy_is_read_only_and_a_copy_of_what_others_may_write(d):
    arrays = {name: np.array(array) for name, array in d.held().items()}
    frozen = type(d)(**arrays).numpy()
    for array in arrays.values():
        array[...] = 0.5
    assert frozen == d.numpy()
    for one in (frozen, copy.deepcopy(frozen), pickle.loads(pickle.dumps(frozen))):
        assert one == frozen
        for array in (*one.held().values(), one.var, one.cov):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 1.0
    read_only = d.numpy()
    assert all(read_only.numpy().held()[name] is a for name, a in read_only.held().items())
    with pytest.raises(TypeError, match="unhashable"):
        hash(d)


@uncertain
def test_variances_alone(d):
    lean = d.without_cov()
    assert lean.cov is None
    np.testing.assert_array_equal(lean.var, d.var)
    np.testing.assert_allclose(lean.interval()[0], d.interval()[0], rtol=1e-12)
    scaled = np.array([[0.0, -2.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(lean.linear(scaled).var, lean.var @ scaled**2, rtol=1e-14)
    close(lean.linear(scaled), d.linear(scaled).without_cov())
    for question in (
        lambda: lean.linear(np.ones((3, 1))),
        lambda: lean.prob_greater(0, 1),
        lambda: lean.sample(),
        lambda: lean.rank_probabilities(10),
    ):
        with pytest.raises(
            MissingUncertaintyError, match="needs the covariance between features.*uncertainty='cov"
        ):
            question()
    bare = type(d)(**{name: d.held()[name] for name in d.required})
    assert bare.var is None
    np.testing.assert_allclose(bare.linear(G).mean, d.linear(G).mean, rtol=1e-13)
    for question in (bare.interval, bare.prob_positive, bare.marginals, lambda: bare.cdf(0.0)):
        with pytest.raises(MissingUncertaintyError, match="needs variances.*uncertainty='std'"):
            question()


def test_draws_without_covariances():
    lean = KINDS["draws"].without_cov()
    close(lean.linear(2.0 * np.eye(Q)[:, [2, 0]]), Draws(2.0 * SAMPLE[:, :, [2, 0]]))
    with pytest.raises(MissingUncertaintyError, match="covariance"):
        lean.linear(G)
    lean.prob_greater(0, 1)
    lean.rank_probabilities()


def test_a_variance_that_is_not_known_stays_where_it_is():
    var = np.array([[1.0, np.nan]])
    image = Gaussian(np.zeros((1, 2)), var).linear([[0.0, 3.0], [2.0, 0.0]])
    np.testing.assert_array_equal(image.var, [[np.nan, 9.0]])


@kinds
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0), (1, 1)])
def test_none_and_one(d, shape):
    small = d.select(slice(shape[0]), slice(shape[1]))
    assert small.shape == shape
    assert small.sample(2, 0).shape == (2, *shape)
    assert small.interval()[1].shape == small.prob_positive().shape == shape
    assert small.rank_probabilities(10).shape == (*shape, shape[1])
    assert small.cdf(0.0).shape == shape
    assert small.linear(np.ones((shape[1], 2))).shape == (shape[0], 2)
    assert Distribution.concatenate([small, small]).shape == (2 * shape[0], shape[1])
    assert (
        small.without_cov().linear(np.ones((shape[1], 2)) if shape[1] < 2 else np.eye(3)).var
        is not None
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Gaussian(np.zeros(3)),
            r"mean: expected an array \(row, entry\), got the shape \(3,\)",
        ),
        (lambda: Gaussian(MEAN, MEAN.T), r"var: expected the shape \(4, 3\), got \(3, 4\)"),
        (lambda: Gaussian(MEAN, MEAN, MEAN), r"cov: expected an array \(row, entry, entry\)"),
        (lambda: Gaussian(MEAN, cov=COVS), r"cov: expected an array \(row, entry, entry\)"),
        (lambda: Gaussian(None), "mean: expected numbers"),
        (
            lambda: Mixture([0.5, 0.6], COVS[..., 0]),
            "weights: expected numbers of 0 or more that sum to 1",
        ),
        (lambda: Mixture([-1.0, 2.0], COVS[..., 0]), "weights: expected numbers of 0 or more"),
        (lambda: Mixture([1.0], COVS[..., 0]), r"weights: expected the shape \(2,\), got \(1,\)"),
        (lambda: Draws(SAMPLE[:1]), "draws: expected at least 2"),
        (lambda: Draws(SAMPLE, MEAN[:1]), r"mean: expected the shape \(4, 3\), got \(1, 3\)"),
        (lambda: Point(MEAN).linear(np.ones(3)), "G: expected a matrix of 3 rows"),
        (lambda: Point(MEAN).linear(np.ones((2, 3))), "G: expected a matrix of 3 rows"),
        (lambda: Point(MEAN).select([4], [0]), "rows: expected positions below 4"),
        (lambda: Point(MEAN).select([0], [[0]]), "entries: expected positions below 3"),
        (lambda: Point(MEAN).prob_greater("a", 0), "i: expected a position below 3, got 'a'"),
        (lambda: Point(MEAN).cdf(np.zeros(2)), r"x: .* broadcast against the shape \(4, 3\)"),
        (lambda: Point(MEAN).cdf(np.nan), "x: expected numbers, got NaN"),
        (lambda: Distribution.concatenate([]), "parts: expected distributions"),
        (lambda: Distribution.concatenate(3), "parts: expected distributions, got 3"),
        (
            lambda: Distribution.concatenate([Point(MEAN), Gaussian(MEAN)]),
            "parts: expected distributions of one kind, got a Point and a Gaussian",
        ),
        (
            lambda: Distribution.concatenate([Gaussian(MEAN), KINDS["gaussian"]]),
            "parts: expected the same arrays in each, got mean and mean, var, cov",
        ),
        (
            lambda: Distribution.concatenate([Point(MEAN), Point(MEAN[:, :2])]),
            "parts: expected distributions of the same numbers, but their mean differ",
        ),
        (
            lambda: Distribution.concatenate(
                [Mixture([w, 1 - w], COVS[..., 0]) for w in (0.5, 0.4)]
            ),
            "parts: expected distributions of the same numbers, but their weights differ",
        ),
    ],
)
def test_what_does_not_fit_is_named(make, message):
    with pytest.raises(InvalidInputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_positions_are_index_errors():
    with pytest.raises(InvalidIndexError):
        KINDS["point"].select(7, 0)


def test_kinds_differ():
    assert Point(MEAN) != Gaussian(MEAN)
    assert Gaussian(MEAN) != Gaussian(MEAN, np.zeros_like(MEAN))
    assert Gaussian(MEAN * np.nan) == Gaussian(MEAN * np.nan)
    assert repr(KINDS["gaussian"]) == "Gaussian: 4 rows of 3 numbers"
    assert repr(Point([[1.0]])) == "Point: 1 row of 1 number"


def test_marginals_have_kept_their_former_name():
    from gpattr.distributions import marginals

    assert marginals.Mixture is Marginals


def test_sampled_explanations_are_explanations():
    with pytest.warns(FutureWarning, match="SampledExplanation is now Explanation"):
        assert gpattr.SampledExplanation is gpattr.Explanation
    assert "SampledExplanation" not in gpattr.__all__
