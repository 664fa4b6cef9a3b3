"""Shapley interactions against the enumeration of all coalitions, from their definition."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

from gpattr import kernels, means
from gpattr.bases import Fourier, Monomials
from gpattr.closed_forms import (
    apply_to_basis,
    apply_to_mean,
    between,
    bounded_cross,
    bounded_prior_cov,
    contract,
    contract_basis,
    cross,
    formulas_for,
    prior_cov,
)
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.operators import Baselines, Marginals, Shapley, ShapleyInteractions
from gpattr.posteriors import Evaluation, ExactPosterior

INDICES = ["shapley", "taylor"]
rng = np.random.default_rng(5)


def coalitions(p):
    return list(itertools.product([0, 1], repeat=p))


def definition(p, index):
    """Return the matrix (pairs i ≤ j, coalitions) of Φ by its definition, set by set."""
    sets = coalitions(p)
    at = {members: k for k, members in enumerate(sets)}

    def joined(members, *players):
        return at[tuple(1 if i in players else m for i, m in enumerate(members))]

    phi = np.zeros((p, p, len(sets)))
    for i in range(p):
        for S in sets:
            if S[i]:
                continue
            s = sum(S)
            value = math.factorial(s) * math.factorial(p - s - 1) / math.factorial(p)
            phi[i, i, joined(S, i)] += value
            phi[i, i, at[S]] -= value
    for i, j in itertools.permutations(range(p), 2):
        for S in sets:
            if S[i] or S[j]:
                continue
            s = sum(S)
            if index == "shapley":
                value = math.factorial(s) * math.factorial(p - s - 2) / math.factorial(p - 1)
            else:
                value = 2.0 / p / math.comb(p - 1, s)
            change = np.zeros(len(sets))
            change[joined(S, i, j)] += 1.0
            change[joined(S, i)] -= 1.0
            change[joined(S, j)] -= 1.0
            change[at[S]] += 1.0
            phi[i, j] += 0.5 * value * change
    for i in range(p):
        if index == "shapley":
            phi[i, i] -= sum(phi[i, j] for j in range(p) if j != i)
        else:
            phi[i, i] = 0.0
            phi[i, i, joined(sets[0], i)] += 1.0
            phi[i, i, at[sets[0]]] -= 1.0
    return phi[np.triu_indices(p)]


def corners(x, b, owner):
    """Return the points of all coalitions, (2^p, d)."""
    inside = np.array(coalitions(max(owner) + 1))[:, list(owner)]
    return np.where(inside == 1, x, b)


def averaged(x, baseline, owner, index):
    """Return points and the matrix on values there, for a baseline of any kind of one row."""
    A = definition(max(owner) + 1, index)
    if not isinstance(baseline, Baselines):
        return corners(x, baseline, owner), A
    points, weights = [], []
    p, K = max(owner) + 1, len(baseline.points)
    draws = (
        itertools.product(range(K), repeat=p)
        if isinstance(baseline, Marginals)
        else [(k,) * p for k in range(K)]
    )
    for draw in draws:
        b = np.array([baseline.points[draw[player], i] for i, player in enumerate(owner)])
        share = (
            np.prod([baseline.weights[k] for k in draw])
            if isinstance(baseline, Marginals)
            else baseline.weights[draw[0]]
        )
        points.append(corners(x, b, owner))
        weights.append(share * A)
    return np.concatenate(points), np.concatenate(weights, axis=1)


def check(operator, kernel, X, Z, baselines, owner, tolerance=1e-13):
    """Compare cross, contract, prior_cov and between with the definition."""
    index = operator.index
    w = rng.standard_normal((len(Z), 2))
    scale = float(kernel.diagonal(X[:1])[0])
    values, error = bounded_cross(operator, kernel, X, Z)
    sums, sum_error = contract(operator, kernel, X, Z, w)
    prior, prior_error = bounded_prior_cov(operator, kernel, X)
    joint = between(operator, kernel, X)
    sites = [averaged(x, b, owner, index) for x, b in zip(X, baselines, strict=True)]
    for n, (points, A) in enumerate(sites):
        truth = A @ kernel(points, Z)
        assert abs(values[n] - truth).max() < tolerance * scale
        assert np.linalg.norm(abs(values[n] - truth).max(axis=0)) <= error[n] + 1e-15 * scale
        assert abs(sums[n] - truth @ w).max() < tolerance * scale * abs(w).sum()
        assert abs(sums[n] - truth @ w).max() <= sum_error[n] + 1e-15 * scale
        truth = A @ kernel(points, points) @ A.T
        assert abs(prior[n] - truth).max() < tolerance * scale
        assert abs(prior[n] - truth).max() <= prior_error[n] + 1e-15 * scale
        for k, (others, C) in enumerate(sites):
            truth = A @ kernel(points, others) @ C.T
            assert abs(joint[n, :, k] - truth).max() < tolerance * scale


def separable(d):
    """Return a product of one-dimensional kernels of different kinds."""
    kinds = [
        kernels.Matern12(0.9),
        kernels.Matern52(1.3),
        kernels.Periodic(1.1, 2.0),
        kernels.RationalQuadratic(0.8, 1.7),
        kernels.SquaredExponential(0.6),
    ]
    product = kernels.Constant(1.7)
    for i in range(d):
        product = product * kernels.Select(kinds[i % len(kinds)], [i])
    return product


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 7])
def test_of_a_product(index, d):
    X, Z, b = rng.standard_normal((3, d)), rng.standard_normal((9, d)), rng.standard_normal(d)
    lengths = rng.uniform(0.5, 2.0, d)
    for kernel in (kernels.SquaredExponential(lengths, 2.5), separable(d)):
        operator = ShapleyInteractions(b, index=index)
        check(operator, kernel, X, Z, [b] * 3, range(d))
        assert formulas_for(operator, kernel).methods == {"closed form"}


@pytest.mark.parametrize("index", INDICES)
def test_of_players_that_are_groups(index):
    owner = [0, 1, 0, 2, 1]
    X, Z, b = rng.standard_normal((3, 5)), rng.standard_normal((8, 5)), rng.standard_normal((3, 5))
    operator = ShapleyInteractions(b, owner, index=index)
    check(operator, kernels.SquaredExponential([0.5, 1.0, 2.0, 0.7, 1.2], 1.4), X, Z, b, owner)
    check(operator, kernels.Matern32(1.1), X, Z, b, owner)


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("kind", [Baselines, Marginals])
def test_of_several_baselines(index, kind):
    X, Z = rng.standard_normal((2, 3)), rng.standard_normal((6, 3))
    baseline = kind(rng.standard_normal((3, 3)), [0.5, 0.2, 0.3])
    operator = ShapleyInteractions(baseline, index=index)
    check(operator, kernels.SquaredExponential([0.5, 1.0, 2.0]), X, Z, [baseline] * 2, range(3))
    check(operator, separable(3), X, Z, [baseline] * 2, range(3))


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize(
    "kernel",
    [
        kernels.Matern52([0.8, 1.2, 0.6, 2.0]),
        kernels.Linear(0.7) * kernels.SquaredExponential(1.3),
        kernels.Linear([0.5, 0.2, 1.0, 0.4]),
        kernels.Polynomial(degree=2, offset=0.5),
        kernels.Polynomial(degree=3, offset=0.5),
        0.3 * kernels.SquaredExponential(1.0) + kernels.Select(kernels.Matern12(0.5), [2, 0]),
        kernels.Constant(2.0) + kernels.Select(kernels.SquaredExponential([1.0, 2.0]), [3, 1]),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_of_other_kernels(index, kernel):
    X, Z, b = rng.standard_normal((3, 4)), rng.standard_normal((6, 4)), rng.standard_normal(4)
    scale = max(1.0, float(kernel(Z, Z).max()) / float(kernel.diagonal(X[:1])[0]))
    operator = ShapleyInteractions(b, index=index)
    check(operator, kernel, X, Z, [b] * 3, range(4), tolerance=2e-13 * scale)


@pytest.mark.slow
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("kernel", [kernels.Matern52(2.0), kernels.RationalQuadratic(1.5, 3.0)])
def test_of_scale_mixtures(index, kernel):
    few = ShapleyInteractions(np.zeros(9), index=index)
    assert formulas_for(few, kernel).methods == {"enumeration"}
    d = 10
    X, Z, b = rng.standard_normal((2, d)), rng.standard_normal((5, d)), rng.standard_normal(d)
    operator = ShapleyInteractions(b, index=index)
    assert formulas_for(operator, kernel).methods == {"scale mixture"}
    check(operator, kernel, X, Z, [b] * 2, range(d), tolerance=2e-10)


@pytest.mark.parametrize("index", INDICES)
def test_linear_functions_and_marginals(index):
    X, Z = rng.standard_normal((2, 3)), rng.standard_normal((6, 3))
    baseline = Marginals(rng.standard_normal((3, 3)), [0.5, 0.2, 0.3])
    operator = ShapleyInteractions(baseline, index=index)
    check(operator, kernels.Linear([0.3, 0.5, 1.5]), X, Z, [baseline] * 2, range(3))
    mean = means.Linear([1.0, -2.0, 0.5], 3.0)
    step = X - baseline.weights @ baseline.points
    values = apply_to_mean(operator, mean, X).value
    truth = np.zeros((2, 6))
    truth[:, [0, 3, 5]] = step * np.array([1.0, -2.0, 0.5])
    assert abs(values - truth).max() < 1e-14


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("players", [None, [0, 1, 1, 2]])
def test_of_bases_and_means(index, players):
    X, b = rng.standard_normal((3, 4)), rng.standard_normal(4)
    owner = players or range(4)
    operator = ShapleyInteractions(b, players, index=index)
    A = definition(max(owner) + 1, index)

    def polynomial(X):
        return X[:, 0] * X[:, 1] * X[:, 3] + X[:, 2] ** 3

    mean = means.Function(polynomial, lambda X: X)
    bases = [
        Monomials.up_to(3, 4, constant=True),
        Monomials.up_to(2, 4, constant=True, origin=b + 1.0),
        Fourier(rng.standard_normal((5, 4))),
    ]
    values, error = apply_to_mean(operator, mean, X)
    for n, x in enumerate(X):
        points = corners(x, b, owner)
        assert abs(values[n] - A @ polynomial(points)).max() < 1e-13
        assert abs(values[n] - A @ polynomial(points)).max() <= error[n]
        for basis in bases:
            images = apply_to_basis(operator, basis, X)[n]
            assert abs(images - A @ basis(points)).max() < 1e-13
    w = rng.standard_normal(len(bases[0]))
    sums = contract_basis(operator, bases[0], X, w).value
    assert abs(sums - apply_to_basis(operator, bases[0], X) @ w).max() < 1e-13


def test_polynomials_of_degree_two_have_any_number_of_players():
    d = 30
    X, Z, b = rng.standard_normal((2, d)), rng.standard_normal((4, d)), rng.standard_normal(d)
    kernel = kernels.Polynomial(0.3, degree=2)
    for index in INDICES:
        operator = ShapleyInteractions(b, index=index)
        values = cross(operator, kernel, X, Z)
        i, j = np.triu_indices(d)
        steps = 0.3 * (X - b)[:, :, None] * Z.T
        base = 1.0 + 0.3 * (b @ Z.T)
        truth = np.where((i == j)[:, None], 2.0 * steps[:, i] * base, 0.0)
        truth += np.where((i == j)[:, None], steps[:, i] ** 2, steps[:, i] * steps[:, j])
        assert abs(values - truth).max() < 1e-12 * abs(kernel(X, Z)).max()


def matrix(values, p):
    """Return the symmetric matrices, (n, p, p), of outputs (n, pairs)."""
    result = np.zeros((len(values), p, p))
    i, j = np.triu_indices(p)
    result[:, i, j] = result[:, j, i] = values
    return result


def row_sums(p):
    """Return the matrix (p, pairs) that adds up the rows of the matrix of interactions."""
    i, j = np.triu_indices(p)
    players = np.arange(p)[:, None]
    return ((i == players) | (j == players)) * 1.0


BASELINES = [
    lambda d: rng.standard_normal(d),
    lambda d: rng.standard_normal((4, d)),
    lambda d: Baselines(rng.standard_normal((3, d))),
    lambda d: Marginals(rng.standard_normal((3, d)), [0.2, 0.3, 0.5]),
]


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("baseline", BASELINES, ids=["point", "rows", "background", "marginals"])
def test_rows_add_up_to_shapley_values(index, baseline):
    d = 6
    X, Z = rng.standard_normal((4, d)), rng.standard_normal((30, d))
    b = baseline(d)
    posterior = ExactPosterior(
        kernels.SquaredExponential(np.full(d, 1.8), 3.0), Z, np.sin(Z).sum(axis=1), noise=0.01
    )
    evaluation = Evaluation("cov")
    pairs = posterior.bind(ShapleyInteractions(b, index=index), evaluation)
    single = posterior.bind(Shapley(b), evaluation)
    interactions, values = pairs.apply(X), single.apply(X)
    G = row_sums(d)
    assert abs(interactions.mean @ G.T - values.mean).max() < 1e-11
    assert abs(G @ interactions.cov @ G.T - values.cov).max() < 1e-11
    joint = np.einsum("ai,nimj,bj->namb", G, pairs.joint(X), G)
    assert abs(joint - single.joint(X)).max() < 1e-11


@pytest.mark.parametrize("kernel", [kernels.SquaredExponential(1.5), kernels.Matern32(1.5)])
def test_chosen_pairs_are_entries_of_all(kernel):
    d = 5
    X, Z, b = rng.standard_normal((3, d)), rng.standard_normal((7, d)), rng.standard_normal(d)
    w = rng.standard_normal((7, 2))
    i, j = np.triu_indices(d)
    everything = list(zip(i.tolist(), j.tolist(), strict=True))
    for index in INDICES:
        whole = ShapleyInteractions(b, index=index)
        assert whole.pairs_for(d) == everything
        for chosen in ([(3, 1), (2, 2)], [(0, 0)], [(4, 0), (0, 1), (4, 4), (1, 4)]):
            some = ShapleyInteractions(b, index=index, pairs=chosen)
            assert some.pairs_for(d) == [tuple(sorted(pair)) for pair in chosen]
            at = [everything.index(pair) for pair in some.pairs_for(d)]
            for verb, *more in ((cross, Z), (contract, Z, w), (prior_cov,)):
                one, two = (verb(op, kernel, X, *more) for op in (some, whole))
                one, two = (v.value if verb is contract else v for v in (one, two))
                two = two[:, at][:, :, at] if verb is prior_cov else two[:, at]
                assert abs(one - two).max() < 1e-14
            one, two = (between(op, kernel, X) for op in (some, whole))
            assert abs(one - two[:, at][:, :, :, at]).max() < 1e-14


def test_as_shap_does():
    shap = pytest.importorskip("shap")
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from gpattr.adapters import as_posterior

    d = 5
    Z = rng.standard_normal((40, d))
    y = np.sin(Z[:, 0]) * Z[:, 1] + Z[:, 2] * Z[:, 3] + 5.0
    kernel = RBF(np.array([1.0, 1.5, 2.0, 2.0, 3.0])) + WhiteKernel(0.01)
    model = make_pipeline(
        StandardScaler(),
        gaussian_process.GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True),
    ).fit(Z, y)
    X, background = rng.standard_normal((3, d)), rng.standard_normal((4, d))
    masker = shap.maskers.Independent(background)
    truth = shap.explainers.ExactExplainer(model.predict, masker)(X, interactions=True).values
    operator = ShapleyInteractions(Baselines(background), index="taylor")
    values = as_posterior(model).bind(operator, Evaluation("none")).mean(X)
    assert abs(matrix(values, d) - truth).max() < 1e-9


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("baseline", BASELINES, ids=["point", "rows", "background", "marginals"])
def test_tensors_equal_arrays(index, baseline):
    torch = pytest.importorskip("torch")
    d = 4
    X, Z, b = rng.standard_normal((4, d)), rng.standard_normal((8, d)), baseline(d)
    w = rng.standard_normal((8, 2))
    some = [kernels.SquaredExponential(np.full(d, 0.8))]
    some += [] if isinstance(b, Marginals) else [kernels.Matern32(1.2), kernels.Linear(1.0)]
    for kernel in some:
        operator = ShapleyInteractions(b, index=index)
        tX, tZ, tw = map(torch.as_tensor, (X, Z, w))
        same = [
            (cross(operator, kernel, X, Z), cross(operator, kernel, tX, tZ)),
            (contract(operator, kernel, X, Z, w)[0], contract(operator, kernel, tX, tZ, tw)[0]),
            (prior_cov(operator, kernel, X), prior_cov(operator, kernel, tX)),
            (between(operator, kernel, X), between(operator, kernel, tX)),
        ]
        for one, two in same:
            assert torch.is_tensor(two)
            assert abs(one - two.numpy()).max() < 1e-13


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("step", [1e-8, 1e-3, 30.0])
def test_of_short_and_long_steps(index, d, step):
    mp = pytest.importorskip("mpmath")
    b, z = rng.standard_normal(d), rng.standard_normal(d)
    x = b + step * rng.choice([-1.0, 1.0], d)
    operator, kernel = ShapleyInteractions(b, index=index), kernels.SquaredExponential(1.0)
    with mp.workdps(60):
        points = [[mp.mpf(v) for v in row] for row in corners(x, b, range(d))]
        A = mp.matrix(definition(d, index).tolist())
        for k in range(A.rows):  # what rounding left: weights of a row add up to zero
            A[k, 0] -= sum(A[k, c] for c in range(A.cols))
        size = A.rows

        def covariance(point, other):
            gaps = zip(point, map(mp.mpf, other), strict=True)
            return mp.exp(-sum((a - c) ** 2 for a, c in gaps) / 2)

        K = mp.matrix([[covariance(p, r) for r in points] for p in points])
        truth = np.array((A * mp.matrix([covariance(p, z) for p in points])).tolist(), dtype=float)
        cov = np.array((A * K * A.T).tolist(), dtype=float)
    i, j = np.triu_indices(d)
    scale = np.minimum(step, 1.0) ** np.where(i == j, 1, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = cross(operator, kernel, x[None], z[None])[0]
        prior = prior_cov(operator, kernel, x[None])[0]
        again = between(operator, kernel, x[None], x[None])[0, :, 0]
    assert size == len(values)
    assert (abs(values - truth)[:, 0] <= 1e-13 * scale).all()
    assert (abs(prior - cov) <= 1e-13 * scale * scale[:, None]).all()
    assert (abs(again - cov) <= 1e-13 * scale * scale[:, None]).all()


def test_where_row_and_baseline_are_the_same():
    d = 4
    b, Z = rng.standard_normal(d), rng.standard_normal((6, d))
    X = np.stack([b, b + [0.0, 1.0, 0.0, -2.0]])
    i, j = np.triu_indices(d)
    moved = np.isin(i, [1, 3]) & np.isin(j, [1, 3])
    for index in INDICES:
        operator, kernel = ShapleyInteractions(b, index=index), kernels.SquaredExponential(1.0)
        for values in (
            cross(operator, kernel, X, Z),
            contract(operator, kernel, X, Z, np.ones((6, 1))).value,
            prior_cov(operator, kernel, X),
        ):
            assert (values[0] == 0).all()
            assert (values[1, ~moved] == 0).all()
            assert (values[1, moved] != 0).any()


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("lengthscale", [0.02, 1.0, 8.0])
def test_of_many_players(index, lengthscale):
    d = 60
    X, Z = rng.standard_normal((2, d)), rng.standard_normal((20, d))
    kernel = kernels.SquaredExponential(lengthscale)
    G = row_sums(d)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        operator, single = ShapleyInteractions(np.zeros(d), index=index), Shapley(np.zeros(d))
        for verb, *more in ((cross, Z), (prior_cov,)):
            values, sums = (verb(op, kernel, X, *more) for op in (operator, single))
            assert np.isfinite(values).all()
            left = G @ values if verb is cross else G @ values @ G.T
            assert abs(left - sums).max() < 1e-12
        some = ShapleyInteractions(np.zeros(d), index=index, pairs=[(0, 0), (3, 50), (7, 7)])
        assert np.isfinite(between(some, kernel, X)).all()


def test_what_is_refused():
    b = np.zeros(20)
    X, Z = rng.standard_normal((2, 20)), rng.standard_normal((3, 20))
    kernel = kernels.Linear() * kernels.SquaredExponential(1.0)
    with pytest.raises(UnsupportedModelError, match=r"at most 12 players; there are 20"):
        cross(ShapleyInteractions(b), kernel, X, Z)
    for other in (kernel, kernels.Polynomial(degree=2)):
        with pytest.raises(UnsupportedModelError, match=r"Use Baselines\(rows\)"):
            cross(ShapleyInteractions(Marginals(X)), other, X, Z)
    with pytest.raises(InvalidInputError, match="index: expected"):
        ShapleyInteractions(b, index="banzhaf")
    with pytest.raises(InvalidInputError, match="below 20"):
        ShapleyInteractions(b, pairs=[(3, 20)])
    with pytest.raises(InvalidInputError, match="below 2"):
        ShapleyInteractions(b, [0, 1] * 10, pairs=[(3, 1)])
    with pytest.raises(InvalidInputError, match='supports "auto", "exact"'):
        formulas_for(ShapleyInteractions(b), kernel, "permutations", 10)


def test_of_the_operator():
    b = rng.standard_normal(4)
    operator = ShapleyInteractions(b, [0, 1, 1, 2], index="taylor", pairs=[(2, 1), (0, 0)])
    assert operator.axes == ("pair",)
    assert operator.sizes(4) == (2,)
    assert operator.coordinates == {"pair": ("1,2", "0,0")}
    part = operator.select([3, 1])
    assert (part.index, part.pairs, part.players.owner) == ("taylor", ((1, 2), (0, 0)), (2, 1))
    per_row = ShapleyInteractions(rng.standard_normal((3, 4)), index="taylor").rows([2, 0])
    assert (per_row.index, per_row.points.shape, per_row.sizes(4)) == ("taylor", (2, 4), (10,))
    encoding = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    encoded = ShapleyInteractions(b).encoded(encoding)
    assert encoded.sizes(2) == (3,)
    assert (encoded.gather(encoding) == np.eye(3)).all()
