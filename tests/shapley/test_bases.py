"""Shapley values of basis functions and prior means, against the definition with factorials."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from math import factorial

import numpy as np
import pytest

from gpattr._core.array import EPS, to_numpy
from gpattr.bases import Basis, Combined, Fourier, Hilbert, Monomials
from gpattr.closed_forms import apply_to_basis, apply_to_mean, basis_formulas_for, contract_basis
from gpattr.closed_forms.resolution import mean_formulas_for
from gpattr.exceptions import NoClosedFormError, UnsupportedModelError
from gpattr.means import Function, Linear, Polynomial
from gpattr.operators import Coalitions, Expectation, Marginals, Players, Shapley

SINGLE = Players.single(5)
GROUPED = Players((0, 1, 0, 2, 1), 3)


class Ridges(Basis):
    """tanh(vⱼ·x): no product over features."""

    def __init__(self, V):
        object.__setattr__(self, "V", V)

    @property
    def n_features(self):
        return self.V.shape[1]

    def __len__(self):
        return len(self.V)

    def __call__(self, X):
        return np.tanh(X @ self.V.T)


random = np.random.default_rng(0)
BASES = {
    "monomials": Monomials.up_to(
        3, 5, constant=True, origin=np.full(5, 0.3), scale=np.full(5, 2.0)
    ),
    "high powers": Monomials(random.integers(0, 6, size=(7, 5))),
    "waves": Fourier(random.normal(size=(9, 5)), np.full(5, 0.2)),
    "sines": Hilbert(np.zeros(5), np.full(5, 6.0), (2, 1, 3, 2, 1)),
    "ridges": Ridges(random.normal(size=(4, 5))),
    "combined": Combined(
        (
            Monomials.up_to(2, 2, constant=False),
            Fourier(random.normal(size=(3, 3))),
            Hilbert(np.zeros(1), np.full(1, 6.0), (4,)),
            Ridges(random.normal(size=(2, 2))),
        ),
        ((3, 0), (1, 2, 4), (2,), (4, 0)),
        5,
    ),
}
PRODUCTS = ["monomials", "high powers", "waves", "sines"]
MEANS = {
    "linear": Linear([0.5, -1.0, 2.0, 0.3, 1.1], 0.7, origin=np.full(5, 0.4)),
    "polynomial": Polynomial(random.normal(size=4), random.integers(0, 3, size=(4, 5))),
    "function": Function(lambda X: np.sin(X).prod(axis=1) + X[:, 0], lambda X: np.cos(X)),
}


def shapley(f, x, b, players):
    """Return the Shapley values of f: rows -> (n, p) by the definition, (P, p)."""
    seen = players.seen
    owner = np.array(players.owner)

    @cache
    def value(some):
        return f(np.where(np.isin(owner, list(some)), x, b)[None, :])[0]

    total = []
    for player in range(players.count):
        others = [other for other in seen if other != player]
        result = 0.0 * value(frozenset())
        for size in range(len(others) + 1 if player in seen else 0):
            weight = factorial(size) * factorial(len(seen) - size - 1) / factorial(len(seen))
            for some in combinations(others, size):
                result = result + weight * (
                    value(frozenset({*some, player})) - value(frozenset(some))
                )
        total.append(result)
    return np.array(total)


def data(n=3):
    generator = np.random.default_rng(7)
    X, B = generator.normal(size=(n, 5)), generator.normal(size=(n, 5))
    X[0, [1, 4]] = B[0, [1, 4]]
    X[1, 0], B[2, 2] = 0.0, 0.0
    return X, B


@pytest.mark.parametrize("players", [SINGLE, GROUPED], ids=["single", "grouped"])
@pytest.mark.parametrize("name", BASES)
def test_images_and_sums(name, players):
    basis, (X, B) = BASES[name], data()
    operator = Shapley(B, players.owner)
    truth = np.array([shapley(basis, x, b, players) for x, b in zip(X, B, strict=True)])
    value = apply_to_basis(operator, basis, X)
    scale = abs(basis(X)).max() + abs(basis(B)).max()
    assert abs(value - truth).max() <= 1e-13 * scale
    if players is SINGLE:
        assert not value[0, [1, 4]].any()
    w = np.random.default_rng(1).normal(size=len(basis))
    formulas = basis_formulas_for(operator, basis)
    sums, size = formulas.contract(Coalitions(B, X, players), w)
    assert abs(sums - truth @ w).max() <= 1e-13 * scale * abs(w).sum()
    assert (abs(sums - truth @ w) <= 32.0 * EPS * size.max(axis=1, keepdims=True)).all()
    assert (size >= abs(truth @ w) - 1e-12 * scale).all()
    assert abs(contract_basis(operator, basis, X, w)[0] - truth @ w).max() <= 1e-12 * scale


def every_draw(rows, weights, players):
    """Return all combinations of rows, one for each player, and their probabilities."""
    choices = np.array(list(product(range(len(rows)), repeat=players.count)))
    points = np.stack([rows[choices[:, g], c] for c, g in enumerate(players.owner)], axis=1)
    return points, weights[choices].prod(axis=1)


@pytest.mark.parametrize("players", [SINGLE, GROUPED], ids=["single", "grouped"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_marginals_of_bases(name, players):
    basis, (X, B) = BASES[name], data()
    rows, weights = B[:2], np.array([0.3, 0.7])
    points, mass = every_draw(rows, weights, players)
    marginals = Marginals(rows, weights)
    truth = sum(
        m * np.array([shapley(basis, x, b, players) for x in X])
        for b, m in zip(points, mass, strict=True)
    )
    scale = abs(basis(X)).max() + abs(basis(points)).max()
    value = apply_to_basis(Shapley(marginals, players.owner), basis, X)
    assert abs(value - truth).max() <= 1e-13 * scale
    mean = apply_to_basis(Expectation(marginals, players.owner), basis, X)
    assert mean.shape == (len(X), 1, len(basis))
    assert abs(mean[:, 0] - mass @ basis(points)).max() <= 1e-13 * scale
    at = apply_to_basis(Expectation(B, players.owner), basis, X)
    assert abs(at[:, 0] - basis(B)).max() <= 1e-13 * scale


@pytest.mark.parametrize("name", [*PRODUCTS])
def test_tiny_steps_of_bases(name):
    basis, (X, _) = BASES[name], data()
    step = 2.0**-40 * np.sign(np.random.default_rng(2).normal(size=X.shape))
    value = apply_to_basis(Shapley(X, SINGLE.owner), basis, X + step)
    h, middle = 1e-3, X + 0.5 * step

    def slope(e):
        ends = [basis(middle + k * h * e) - basis(middle - k * h * e) for k in (1, 2, 3)]
        return (45 * ends[0] - 9 * ends[1] + ends[2]) / (60 * h)

    truth = np.stack([step[:, [i]] * slope(e) for i, e in enumerate(np.eye(5))], axis=1)
    assert abs(value - truth).max() <= 1e-10 * abs(truth).max()


def test_many_waves_of_many_players():
    """More players than nodes need be: efficiency, and the sum without images."""
    d, generator = 40, np.random.default_rng(5)
    basis = Fourier(generator.normal(size=(30, d)))
    X, b = generator.normal(size=(4, d)), generator.normal(size=d)
    value = apply_to_basis(Shapley(b), basis, X)
    assert abs(value.sum(axis=1) - (basis(X) - basis(b[None]))).max() <= 2e-13
    w = generator.normal(size=len(basis))
    sums = contract_basis(Shapley(b), basis, X, w)[0]
    assert abs(sums - value @ w).max() <= 1e-12


@pytest.mark.parametrize("players", [SINGLE, GROUPED], ids=["single", "grouped"])
@pytest.mark.parametrize("name", MEANS)
def test_means(name, players):
    mean, (X, B) = MEANS[name], data()

    def f(rows):
        return mean(rows)[:, None]

    truth = np.array([shapley(f, x, b, players) for x, b in zip(X, B, strict=True)])[:, :, 0]
    value = apply_to_mean(Shapley(B, players.owner), mean, X).value
    scale = abs(mean(X)).max() + abs(mean(B)).max()
    assert abs(value - truth).max() <= 1e-13 * scale
    formulas = mean_formulas_for(Shapley(B, players.owner), mean)
    assert formulas is not None
    bounded = formulas.apply(Coalitions(B, X, players))
    assert (abs(bounded.value - truth).max(axis=1) <= bounded.error + 1e-15 * scale).all()
    at = apply_to_mean(Expectation(B, players.owner), mean, X).value
    assert abs(at.reshape(-1) - mean(B)).max() <= 1e-13 * scale
    marginals = Marginals(B[:2], [0.3, 0.7])
    if name == "function":
        for operator in (Shapley(marginals), Expectation(marginals)):
            with pytest.raises(UnsupportedModelError, match="Marginals are not supported"):
                apply_to_mean(operator, mean, X)
        return
    points, mass = every_draw(B[:2], np.array([0.3, 0.7]), players)
    truth = sum(
        m * np.array([shapley(f, x, b, players) for x in X])
        for b, m in zip(points, mass, strict=True)
    )[:, :, 0]
    value = apply_to_mean(Shapley(marginals, players.owner), mean, X).value
    assert abs(value - truth).max() <= 1e-13 * scale
    at = apply_to_mean(Expectation(marginals, players.owner), mean, X).value
    assert abs(at.reshape(-1) - mass @ mean(points)).max() <= 1e-13 * scale


def test_many_players_are_sampled():
    """Beyond twelve players values are estimates; the error says by how much."""
    d, generator = 15, np.random.default_rng(3)
    basis = Ridges(0.4 * generator.normal(size=(6, d)))
    X, b, w = generator.normal(size=(3, d)), generator.normal(size=d), generator.normal(size=6)
    operator = Shapley(b)
    formulas = basis_formulas_for(operator, basis)
    assert "permutations" in formulas.method
    value, error = contract_basis(operator, basis, X, w)
    difference = (basis(X) - basis(b[None])) @ w
    assert abs(value.sum(axis=1) - difference).max() <= 1e-13 * abs(w).sum()
    members = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    sizes = members.sum(axis=1)
    share = np.array([factorial(s) * factorial(d - s - 1) / factorial(d) for s in range(d)])
    corners = basis(np.where(members == 1, X[0], b)) @ w
    truth = np.array(
        [
            (share[sizes[members[:, i] == 1] - 1] * corners[members[:, i] == 1]).sum()
            - (share[sizes[members[:, i] == 0]] * corners[members[:, i] == 0]).sum()
            for i in range(d)
        ]
    )
    gap = abs(value[0] - truth).max()
    assert 1e-8 < gap <= error[0]
    mean = Function(lambda X: basis(X) @ w, lambda X: X)
    again = mean_formulas_for(operator, mean)
    assert again is not None
    bounded = again.apply(operator.terms(X)[0][1])
    assert np.allclose(bounded.value, value, atol=1e-13)
    assert abs(bounded.value[0] - truth).max() <= bounded.error[0]
    with pytest.raises(NoClosedFormError):
        mean_formulas_for(operator, mean, "exact")


def test_permutations_of_a_basis():
    X, B = data()
    basis = BASES["waves"]
    formulas = basis_formulas_for(Shapley(B[0]), basis, "permutations", 40)
    exact = apply_to_basis(Shapley(B[0]), basis, X)
    sites = Shapley(B[0]).terms(X)[0][1]
    assert formulas.method == "permutations (40 antithetic pairs)"
    assert 1e-4 < abs(formulas.images(sites) - exact).max() < 0.3
    with pytest.raises(UnsupportedModelError, match="permutations"):
        basis_formulas_for(Shapley(Marginals(B)), basis, "permutations")


def test_marginals_of_unknown_functions_are_refused():
    X, B = data()
    for kind in (Shapley, Expectation):
        for name in ("ridges", "combined"):
            with pytest.raises(UnsupportedModelError, match="Ridges"):
                apply_to_basis(kind(Marginals(B)), BASES[name], X)


@pytest.mark.parametrize("name", PRODUCTS)
def test_tensors_of_bases(name):
    torch = pytest.importorskip("torch")
    basis, (X, B) = BASES[name], data()
    T, w = torch.from_numpy, np.linspace(-1.0, 1.0, len(basis))
    for weights in (None, np.array([0.2, 0.3, 0.5])):
        for kind in (Shapley, Expectation):
            baseline = B if weights is None else Marginals(B, weights)
            formulas = basis_formulas_for(kind(baseline, GROUPED.owner), basis)
            sites = Coalitions(B, X, GROUPED, weights)
            mine = None if weights is None else T(weights)
            same = Coalitions(T(B), T(X), GROUPED, mine)
            one, two = formulas.images(sites), formulas.images(same)
            assert isinstance(two, torch.Tensor)
            assert abs(one - to_numpy(two)).max() <= 1e-13 * abs(one).max()
            for one, two in zip(
                formulas.contract(sites, w), formulas.contract(same, T(w)), strict=True
            ):
                assert np.allclose(one, to_numpy(two), rtol=1e-10, atol=1e-12 * abs(one).max())
