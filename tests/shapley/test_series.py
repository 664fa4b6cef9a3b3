"""Shapley values of kernels with factors of any sign, against the definition with factorials."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pytest

from gpattr._core.array import to_numpy
from gpattr.closed_forms.shapley.series import series_expectation, series_formulas
from gpattr.kernels import (
    Cosine,
    FullAdditive,
    Function,
    Linear,
    Matern32,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    SquaredExponential,
    Sum,
    Warped,
)
from gpattr.operators import Coalitions, Players


def marginal_matrix(players):
    """Return coalitions (c, P) and the matrix of Shapley values (P, c), from the definition."""
    P = players.count
    seen = list(players.seen)
    coalitions, place = [], {}
    for size in range(len(seen) + 1):
        for some in combinations(seen, size):
            place[frozenset(some)] = len(coalitions)
            coalitions.append([float(player in some) for player in range(P)])
    matrix, p = np.zeros((P, len(coalitions))), len(seen)
    for some, column in place.items():
        for player in set(seen) - some:
            weight = factorial(len(some)) * factorial(p - len(some) - 1) / factorial(p)
            matrix[player, place[some | {player}]] += weight
            matrix[player, column] -= weight
    return np.array(coalitions), matrix


def corners(coalitions, players, x, b):
    """Return the points of all coalitions, (c, D)."""
    return np.where(coalitions[:, list(players.owner)] > 0.5, x, b)


def total_kernel(variance, leaves):
    def value(X, Z):
        result = variance
        for kernel, columns in leaves:
            result = result * kernel(X[:, list(columns)] + 0.0, Z[:, list(columns)] + 0.0)
        return result

    return value


def expected(k, players, x, b, Z):
    coalitions, matrix = marginal_matrix(players)
    return matrix @ k(corners(coalitions, players, x, b), Z)


def expected_between(k, players, x, b, y, c):
    coalitions, matrix = marginal_matrix(players)
    K = k(corners(coalitions, players, x, b), corners(coalitions, players, y, c))
    return matrix @ K @ matrix.T


def warped(columns):
    def jacobian(X):
        return (2.0 + np.cos(X))[:, :, None] * np.eye(X.shape[1])

    return Warped(SquaredExponential(0.9), lambda X: 2.0 * X + np.sin(X), jacobian), columns


def own(columns):
    def value(x, y):
        return np.sin(x).sum(-1) * np.sin(y).sum(-1) + 0.3 * (x * y).sum(-1)

    def gradient(x, y):
        return np.cos(x) * np.sin(y).sum(-1)[..., None] + 0.3 * y

    def mixed(x, y):
        d = x.shape[-1]
        return np.cos(x)[..., :, None] * np.cos(y)[..., None, :] + 0.3 * np.eye(d)

    return Function(value, gradient, mixed), columns


ALL = tuple(range(6))
BASES = [
    SquaredExponential(0.8, 1.3),
    Matern32(1.1, 0.7),
    Linear(0.6),
    Cosine(2.3, 0.9),
    Sum(SquaredExponential(0.5), Linear(0.4)),
    Polynomial(0.7, degree=2, offset=0.4),
]
SINGLE = Players.single(6)
GROUPED = Players((0, 1, 0, 3, 4, 1), 6)  # player 2 and 5 have no columns
LEAVES = {
    "linear": [(Linear([0.5, 1.0, 2.0, 0.1, 0.7, 1.4]), ALL)],
    "one linear column": [(Linear(0.7), (2,))],
    "square": [(Polynomial(0.8, degree=2, offset=0.5), ALL)],
    "quintic": [(Polynomial([0.5, 1.0, 0.2, 0.1, 0.7, 0.4], degree=5, offset=0.7), ALL)],
    "additive": [(FullAdditive(BASES, [0.5, 0.0, 0.3, 0.2]), ALL)],
    "additive, all orders": [(FullAdditive(BASES, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), ALL)],
    "wave": [(Cosine([1.5, 2.0, 3.0, 2.2, 1.7, 2.9], 1.2), ALL)],
    "spectral": [(Cosine(1.9), ALL), (SquaredExponential([0.7] * 6, 1.4), ALL)],
    "linear times positive": [(Linear(0.8), ALL), (SquaredExponential(1.2), ALL)],
    "linear times linear": [(Linear(0.8), (0, 1, 2, 3)), (Linear([0.3, 0.5, 0.9]), (3, 4, 5))],
    "additive times polynomial": [
        (FullAdditive(BASES[:3], [0.4, 0.6]), (0, 1, 3)),
        (Polynomial(0.6, degree=3, offset=0.2), (2, 3, 4, 5)),
    ],
    "factors of one column": [
        (Linear(0.9), (0,)),
        warped((1,)),
        own((2,)),
        (Cosine(1.4), (3,)),
        (Product(Linear(0.5), Periodic(1.2, 2.0)), (4,)),
        (RationalQuadratic(0.9, alpha=0.7), (5,)),
        (Matern32(1.3), (0,)),
    ],
    "positive": [(SquaredExponential(0.9), ALL), (Periodic(1.3, 2.2), (1, 4))],
}


def data(seed=0, n=4, m=7):
    random = np.random.default_rng(seed)
    X, B, Z = (random.normal(size=(k, 6)) for k in (n, n, m))
    X[1, [0, 3]] = B[1, [0, 3]]  # nothing moves there
    X[2, 2], B[3, 4], Z[0, :2] = 0.0, 0.0, 0.0  # zero factors
    X[3, 0], B[3, 0] = 0.0, 0.0
    return X, B, Z


def formulas_of(name, players):
    formulas = series_formulas(1.3, LEAVES[name], players)
    assert formulas is not None
    return formulas, total_kernel(1.3, LEAVES[name])


def close(value, truth, scale):
    assert np.isfinite(value).all()
    assert abs(value - truth).max() <= 1e-13 * scale


@pytest.mark.parametrize("players", [SINGLE, GROUPED], ids=["single", "grouped"])
@pytest.mark.parametrize("name", LEAVES)
def test_cross_and_contract(name, players):
    formulas, k = formulas_of(name, players)
    X, B, Z = data()
    w = np.random.default_rng(3).normal(size=(len(Z), 2))
    truth = np.array([expected(k, players, x, b, Z) for x, b in zip(X, B, strict=True)])
    scale = abs(truth).max() + abs(k(X, Z)).max()
    value, error = formulas.cross(Coalitions(B, X, players), Z)
    close(value, truth, scale)
    assert (np.sqrt(((value - truth) ** 2).sum(axis=2)).max(axis=1) <= error + 1e-15 * scale).all()
    assert (error <= 1e-11 * scale).all()
    sums, error = formulas.contract(Coalitions(B, X, players), Z, w)
    close(sums, truth @ w, scale * abs(w).sum())
    assert (error <= 1e-11 * scale * abs(w).sum()).all()
    shared = formulas.cross(Coalitions(B[:1], X, players), Z).value
    close(shared[2], expected(k, players, X[2], B[0], Z), scale)


@pytest.mark.parametrize("players", [SINGLE, GROUPED], ids=["single", "grouped"])
@pytest.mark.parametrize("name", LEAVES)
def test_what_does_not_move_is_zero(name, players):
    formulas, _ = formulas_of(name, players)
    X, B, Z = data()
    X[0] = B[0]
    sites = Coalitions(B, X, players)
    value = formulas.cross(sites, Z).value
    assert not value[0].any()
    if players is SINGLE:
        assert not value[1][[0, 3]].any()
        assert not formulas.prior_cov(sites).value[1][[0, 3]].any()
    else:
        assert not value[:, [2, 5]].any()
    assert not formulas.prior_cov(sites).value[0].any()


@pytest.mark.parametrize("players", [SINGLE, GROUPED], ids=["single", "grouped"])
@pytest.mark.parametrize("name", LEAVES)
def test_prior_covariances(name, players):
    formulas, k = formulas_of(name, players)
    X, B, _ = data()
    Y, C, _ = data(5)
    sites, other = Coalitions(B, X, players), Coalitions(C, Y, players)
    own_truth = np.array([expected_between(k, players, *xb, *xb) for xb in zip(X, B, strict=True)])
    truth = np.array([expected_between(k, players, *all4) for all4 in zip(X, B, Y, C, strict=True)])
    for got, wanted, ends in (
        (formulas.prior_cov(sites), own_truth, (X, B)),
        (formulas.between(sites, other), truth, (X, B, Y, C)),
    ):
        rows = np.concatenate(ends)
        scale = abs(wanted).max() + abs(k(rows, rows)).max()
        close(got.value, wanted, scale)
        assert (abs(got.value - wanted).max(axis=(1, 2)) <= got.error).all()
        assert (got.error <= 1e-10 * scale).all()


@pytest.mark.parametrize("players", [SINGLE, GROUPED], ids=["single", "grouped"])
@pytest.mark.parametrize("name", LEAVES)
def test_marginals(name, players):
    formulas, k = formulas_of(name, players)
    X, B, Z = data(2, m=4)
    few = players is SINGLE
    X, rows, w = X[:3], B[2 if few else 1 :], np.array([0.4, 0.6] if few else [0.2, 0.5, 0.3])
    # Every combination of rows, one for each player, with the product of their weights.
    seen = players.seen
    choices = np.stack(np.meshgrid(*[range(len(rows))] * len(seen), indexing="ij"), -1).reshape(
        -1, len(seen)
    )
    place = {player: i for i, player in enumerate(seen)}
    points = np.stack([rows[choices[:, place[g]], c] for c, g in enumerate(players.owner)], axis=1)
    mass = w[choices].prod(axis=1)
    sites = Coalitions(rows, X, players, w)
    coalitions, matrix = marginal_matrix(players)
    scale = abs(k(X, Z)).max() + abs(k(points, Z)).max()

    def row_functional(x):
        """Return points and weights of E over baselines of the corners, (P, c·K)."""
        every = np.concatenate([corners(coalitions, players, x, b) for b in points])
        return every, np.concatenate([m * matrix for m in mass], axis=1)

    every = [row_functional(x) for x in X]
    truth = np.array([A @ k(P, Z) for P, A in every])
    close(formulas.cross(sites, Z).value, truth, scale)
    # Corners of different baselines coincide: what they weigh is added up.
    every = [merged(*some) for some in every]
    for got, pairs in (
        (formulas.prior_cov(sites), [(0, 0), (1, 1), (2, 2)]),
        (formulas.between(sites, sites[[1, 2, 0]]), [(0, 1), (1, 2), (2, 0)]),
    ):
        truth = np.array(
            [every[i][1] @ k(every[i][0], every[j][0]) @ every[j][1].T for i, j in pairs]
        )
        top = abs(k(points, points)).max() + abs(k(X, X)).max()
        close(got.value, truth, top)
        assert (abs(got.value - truth).max(axis=(1, 2)) <= got.error + 1e-15 * top).all()
    check_expectation(name, players, k, X, Z, points, mass, sites)


def merged(points, A):
    """Return different points only, and the weights of each added up."""
    some, place = np.unique(points, axis=0, return_inverse=True)
    result = np.zeros((len(A), len(some)))
    np.add.at(result.T, place.ravel(), A.T)
    return some, result


def check_expectation(name, players, k, X, Z, points, mass, sites):
    mean = series_expectation(1.3, LEAVES[name], players)
    assert mean is not None
    rows, scale = sites.start, abs(k(X, Z)).max() + abs(k(points, Z)).max()
    close(mean.cross(sites, Z).value[1, 0], mass @ k(points, Z), scale)
    W = np.ones((len(Z), 1))
    close(mean.contract(sites, Z, W).value[2, 0], mass @ k(points, Z) @ W, len(Z) * scale)
    top = abs(k(points, points)).max()
    close(mean.prior_cov(sites).value[0, 0, 0], mass @ k(points, points) @ mass, top)
    X = np.broadcast_to(X[:1], rows.shape)
    at = mean.cross(Coalitions(rows, X, players), Z).value
    close(at[:, 0], k(rows, Z), scale)
    cov = mean.prior_cov(Coalitions(rows, X, players)).value
    close(cov[:, 0, 0], np.diag(k(rows, rows)), top)


EXACT = [name for name in LEAVES if name != "factors of one column"]  # two are given by values


@pytest.mark.parametrize("name", EXACT)
def test_tiny_steps_keep_their_digits(name):
    """With steps of 1e-9 values are those of integrated gradients to first order, digits kept."""
    formulas, k = formulas_of(name, SINGLE)
    random = np.random.default_rng(1)
    B = random.normal(size=(1, 6))
    step = 2.0**-30 * np.sign(random.normal(size=(1, 6)))
    X, Z = B + step, random.normal(size=(5, 6))
    value = formulas.cross(Coalitions(B, X, SINGLE), Z).value[0]
    h = 1e-4
    slopes = np.array(
        [
            (8 * (k(M + h * e, Z) - k(M - h * e, Z)) - (k(M + 2 * h * e, Z) - k(M - 2 * h * e, Z)))
            / (12 * h)
            for M in [0.5 * (X + B)]
            for e in np.eye(6)
        ]
    )[:, 0]
    truth = (X - B)[0][:, None] * slopes
    assert abs(value - truth).max() <= 1e-9 * abs(truth).max()
    cov = formulas.prior_cov(Coalitions(B, X, SINGLE)).value[0]
    assert abs(cov).max() <= 1e-15
    assert np.linalg.eigvalsh(cov).min() >= -1e-11 * np.linalg.eigvalsh(cov).max()


def test_large_numbers_of_players():
    """Fewer nodes than half the players; against the efficiency axiom, and symmetry."""
    d, random = 60, np.random.default_rng(4)
    players = Players.single(d)
    leaves = [
        (SquaredExponential(3.0), tuple(range(d))),
        *[(Cosine(9.0), (i,)) for i in range(d)],
        (Linear(0.9), (3,)),
    ]
    X, B, Z = (random.normal(size=(n, d)) for n in (3, 1, 4))
    X[:, 8], B[:, 8], Z[:, 8] = X[:, 7], B[:, 7], Z[:, 7]  # two alike
    k = total_kernel(1.0, leaves)
    formulas = series_formulas(1.0, leaves, players)
    assert formulas is not None
    value, _ = formulas.cross(Coalitions(B, X, players), Z)
    difference = k(X, Z) - k(B, Z)
    scale = abs(k(X, Z)).max() + abs(k(B, Z)).max()
    assert abs(value.sum(axis=1) - difference).max() <= 1e-12 * scale
    assert abs(value[:, 7] - value[:, 8]).max() <= 1e-13 * scale
    cov, _ = formulas.prior_cov(Coalitions(B, X, players))
    total = np.diag(k(X, X)) - 2.0 * k(X, B)[:, 0] + k(B, B)[0, 0]
    assert abs(cov.sum(axis=(1, 2)) - total).max() <= 1e-11 * abs(total).max()


def test_extremes_are_finite():
    players = Players.single(6)
    X, B, Z = data()
    for name in ("spectral", "linear times positive"):
        formulas, _ = formulas_of(name, players)
        far = Coalitions(B, 1e4 * X, players)
        with np.errstate(all="raise", under="ignore"):
            assert np.isfinite(formulas.cross(far, Z).value).all()
            assert np.isfinite(formulas.prior_cov(far).value).all()


@pytest.mark.parametrize("name", LEAVES)
def test_tensors(name):
    torch = pytest.importorskip("torch")
    if name == "factors of one column":
        pytest.skip("its functions take NumPy arrays")
    formulas, _ = formulas_of(name, GROUPED)
    mean = series_expectation(1.3, LEAVES[name], GROUPED)
    assert mean is not None
    X, B, Z = data()
    w = np.linspace(-1.0, 1.0, len(Z))[:, None]
    share = np.full(4, 0.25)
    T = torch.from_numpy
    for weights in (None, share):
        own_weights = None if weights is None else T(weights)
        sites = Coalitions(B, X, GROUPED, weights)
        same = Coalitions(T(B), T(X), GROUPED, own_weights)
        for some in (formulas, mean):
            for one, two in (
                (some.cross(sites, Z), some.cross(same, T(Z))),
                (some.contract(sites, Z, w), some.contract(same, T(Z), T(w))),
                (some.prior_cov(sites), some.prior_cov(same)),
                (some.between(sites, sites), some.between(same, same)),
            ):
                assert isinstance(two.value, torch.Tensor)
                scale = abs(one.value).max() + 1.0
                assert abs(one.value - to_numpy(two.value)).max() <= 1e-13 * scale
                assert np.allclose(one.error, to_numpy(two.error), rtol=1e-8)


def test_what_has_no_such_structure():
    assert series_formulas(1.0, [(Matern32(1.0), ALL)], SINGLE) is None
    assert series_formulas(1.0, [(Cosine(1.0), ALL), (Cosine(2.0), ALL)], SINGLE) is None
    assert series_formulas(1.0, [(Matern32(1.0), (0, 2))], GROUPED) is not None
