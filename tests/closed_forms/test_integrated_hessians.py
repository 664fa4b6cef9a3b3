"""Integrated Hessians against high precision, integrated gradients, and predictions.

The reference of covariances is a posterior's own joint predictive distribution: Γ is a weighted sum
of values of f, by differences of high order at the nodes of a rule along the path.
"""

import mpmath
import numpy as np
import pytest

from gpattr import closed_forms
from gpattr.bases import Combined, Fourier, Hilbert, Monomials
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import (
    Constant,
    FullAdditive,
    Linear,
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Select,
    SquaredExponential,
)
from gpattr.means import Function
from gpattr.means import Linear as LinearMean
from gpattr.means import Polynomial as PolynomialMean
from gpattr.operators import Baselines, IntegratedGradients, IntegratedHessians
from gpattr.operators.pairs import all_pairs
from gpattr.posteriors import (
    AffinePosterior,
    EncodedPosterior,
    ExactPosterior,
    MixturePosterior,
    SparsePosterior,
    WeightSpacePosterior,
)
from gpattr.special.log_paths import log_rule

RNG = np.random.default_rng(7)
SCALE = np.array([1.0, 0.7])
START, TOWARDS, POINT = np.array([0.3, -0.2]), np.array([0.8, 0.6]), np.array([0.5, 0.45])


def profile(kernel, rho):
    """The kernel of variance 1 as a function of ρ = r²/2, in mpmath."""
    if isinstance(kernel, SquaredExponential):
        return mpmath.exp(-rho)
    if isinstance(kernel, RationalQuadratic):
        return (1 + rho / kernel.alpha) ** -kernel.alpha
    nu = mpmath.mpf(kernel.nu)
    s = mpmath.sqrt(4 * nu * rho)
    return 2 ** (1 - nu) / mpmath.gamma(nu) * s**nu * mpmath.besselk(nu, s)


def psi(kernel, rho, order):
    """Derivatives by ρ, each from its own formula."""
    if isinstance(kernel, SquaredExponential):
        return (-1) ** order * mpmath.exp(-rho)
    if isinstance(kernel, RationalQuadratic):
        a = mpmath.mpf(kernel.alpha)
        return (-1) ** order * mpmath.rf(a, order) / a**order * (1 + rho / a) ** (-a - order)
    nu = mpmath.mpf(kernel.nu)
    s = mpmath.sqrt(4 * nu * rho)
    if isinstance(kernel, Matern52):
        return (-1) ** order * (1 + s if order == 1 else 5) * mpmath.exp(-s) * 5 / 3
    front = 2 ** (1 - nu) / mpmath.gamma(nu) * (-2 * nu) ** order
    return front * s ** (nu - order) * mpmath.besselk(nu - order, s)


def test_derivatives_of_the_reference():
    for kernel in (RationalQuadratic(1.0, alpha=0.7), Matern(1.0, nu=3.2)):
        for order in (1, 2, 3):
            with mpmath.workdps(40):
                truth = mpmath.diff(lambda r, k=kernel: profile(k, r), mpmath.mpf(0.4), order)
                assert abs(psi(kernel, mpmath.mpf(0.4), order) / truth - 1) < 1e-15


def true_cross(kernel, b, x, z):
    """Γ₀₀, Γ₀₁ and Γ₁₁ of k(·, z), in mpmath."""
    with mpmath.workdps(25):
        ell = [mpmath.mpf(v) for v in np.broadcast_to(kernel.lengthscale, 2)]
        p = [(mpmath.mpf(x[i]) - mpmath.mpf(b[i])) / ell[i] for i in (0, 1)]
        e = [(mpmath.mpf(b[i]) - mpmath.mpf(z[i])) / ell[i] for i in (0, 1)]
        length = mpmath.sqrt(sum(v * v for v in p))
        nearest = -sum(p[i] * e[i] for i in (0, 1)) / length**2
        marks = {0, 1} | {
            min(max(nearest + k / length, mpmath.mpf(0)), mpmath.mpf(1))
            for k in (-16, -6, -2, -0.2, 0, 0.2, 2, 6, 16)
        }
        marks |= {mpmath.mpf(10) ** -k for k in (1, 4)}

        def entry(i, j):
            def f(s):
                u = [e[k] + s * p[k] for k in (0, 1)]
                rho = (u[0] ** 2 + u[1] ** 2) / 2
                log = -mpmath.log(s)
                value = s * log * p[i] * p[j] * psi(kernel, rho, 2) * u[i] * u[j]
                if i == j:
                    value += (s * p[i] ** 2 + p[i] * u[i]) * log * psi(kernel, rho, 1)
                return value

            return mpmath.quad(f, sorted(marks))

        return kernel.variance * np.array([float(entry(i, j)) for i, j in ((0, 0), (0, 1), (1, 1))])


CASES = [
    (kernel, accuracy, length, side)
    for kernel, accuracy, lengths in (
        (SquaredExponential(SCALE, 1.3), 3e-14, (1e-7, 0.4, 1.5, 3.5, 25.0, 60.0, 1e3)),
        (RationalQuadratic(SCALE, 1.3, alpha=0.3), 1e-12, (0.4, 25.0, 60.0)),
        (Matern52(SCALE, 1.3), 1e-12, (1e-7, 0.4, 3.5, 60.0)),
        (Matern(SCALE, 1.3, nu=2.2), 1e-12, (1.0,)),
    )
    for length in lengths
    for side in (0.0, 0.01, 0.8)
]


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "accuracy", "length", "side"), CASES)
def test_cross_against_high_precision(kernel, accuracy, length, side):
    """Points on the path and beside it; relative to the largest entry."""
    x = START + length * TOWARDS
    z = START + (0.02 if side else 0.3) * length * TOWARDS + side * np.array([-0.6, 0.8])
    value = closed_forms.bounded_cross(IntegratedHessians(START), kernel, x[None], z[None])
    truth = true_cross(kernel, START, x, z)
    wrong = np.abs(value.value[0, :, 0] - truth).max()
    # A position on the path is known to ε times its length.
    assert wrong <= (accuracy + 2e-16 * length) * np.abs(truth).max()
    assert wrong <= value.error[0]


def double_exponential():
    """Nodes and weights on [0, 1] of the tanh-sinh rule, which integrates logarithms."""
    y = np.arange(-52, 53) / 16.0
    nodes = 1.0 / (1.0 + np.exp(np.pi * np.sinh(-y)))
    return nodes, (np.pi / 16.0) * np.cosh(y) * nodes / (1.0 + np.exp(np.pi * np.sinh(y)))


def true_covariance(kernel, p, q, e, entries):
    """Cov[Γᵢⱼ, Γ'ₖₗ] by a rule of its own, from derivatives by u, index by index."""
    nodes, weights = double_exponential()
    s, t = nodes[:, None], nodes
    u = [e[n] + s * p[n] - t * q[n] for n in (0, 1)]
    rho = (u[0] ** 2 + u[1] ** 2) / 2
    alpha = getattr(kernel, "alpha", None)

    def psi(order):
        if alpha is None:
            return (-1) ** order * np.exp(-rho)
        rising = np.prod([(alpha + k) / alpha for k in range(order)])
        return (-1) ** order * rising * (1 + rho / alpha) ** (-alpha - order)

    def derivative(*indices):
        return sum(
            psi(len(indices) - count) * product for count, product in pairings(u, list(indices))
        )

    def covariance(i, j, k, m):
        value = s * t * p[i] * p[j] * q[k] * q[m] * derivative(i, j, k, m)
        value = value - (k == m) * s * p[i] * p[j] * q[k] * derivative(i, j, k)
        value = value + (i == j) * t * p[i] * q[k] * q[m] * derivative(i, k, m)
        value = value - (i == j) * (k == m) * p[i] * q[k] * derivative(i, k)
        return (weights * np.log(nodes)) @ value @ (weights * np.log(nodes))

    return [covariance(*at) for at in entries]


def pairings(u, indices):
    """Yield how many pairs of equal indices are taken out, and the product of u for the rest."""
    if not indices:
        yield 0, 1.0
        return
    first, *rest = indices
    for count, product in pairings(u, rest):
        yield count, u[first] * product
    for k, other in enumerate(rest):
        if first == other:
            for count, product in pairings(u, rest[:k] + rest[k + 1 :]):
                yield count + 1, product


ENTRIES = ((0, 0, 0, 0), (0, 0, 0, 1), (0, 1, 0, 1), (0, 1, 1, 1), (0, 0, 1, 1))
PLACE = {(0, 0): 0, (0, 1): 1, (1, 1): 2}


@pytest.mark.parametrize("kernel", [SquaredExponential(SCALE), RationalQuadratic(SCALE, alpha=1.5)])
def test_covariance_between_paths_against_another_rule(kernel):
    x, b2, x2 = START + [0.9, -0.7], START + [0.2, 0.4], START + [-0.5, 0.6]
    scaled = ((x - START) / SCALE, (x2 - b2) / SCALE, (START - b2) / SCALE)
    truth = true_covariance(kernel, *scaled, ENTRIES)
    operators = IntegratedHessians(START[None]), IntegratedHessians(b2[None])
    value = closed_forms.between(operators[0], kernel, x[None], x2[None], op2=operators[1])
    own = [value[0, PLACE[i, j], 0, PLACE[k, m]] for i, j, k, m in ENTRIES]
    np.testing.assert_allclose(own, truth, atol=2e-14 * np.abs(truth).max())


@pytest.mark.parametrize("size", [1e-3, 0.5, 2.0])
def test_covariance_along_a_path_against_another_rule(size):
    kernel, x = SquaredExponential(SCALE), START + size * TOWARDS
    p = (x - START) / SCALE
    truth = true_covariance(kernel, p, p, 0.0 * p, ENTRIES)
    value, error = closed_forms.bounded_prior_cov(IntegratedHessians(START), kernel, x[None])
    own = [value[0, PLACE[i, j], PLACE[k, m]] for i, j, k, m in ENTRIES]
    np.testing.assert_allclose(own, truth, atol=1e-14 * np.abs(truth).max())
    assert np.abs(np.subtract(own, truth)).max() <= error[0]


def rows_of(d):
    """The matrix (d(d+1)/2, d) that adds up the rows of the symmetric matrix."""
    G = np.zeros((d * (d + 1) // 2, d))
    for at, (i, j) in enumerate(all_pairs(d)):
        G[at, i] = G[at, j] = 1.0
    return G


ELL = [1.5, 2.0, 2.5]
KERNELS = {
    "squared exponential": SquaredExponential(ELL, 1.3),
    "rational quadratic": RationalQuadratic(ELL, 1.3, alpha=0.6),
    "Matérn 5/2": Matern52(ELL, 1.3),
    "Matérn 2.1": Matern(ELL, 1.3, nu=2.1),
    "Matérn 8": Matern(ELL, 1.3, nu=8.0),
    "linear": Linear([0.5, 1.0, 2.0]),
    "polynomial": Polynomial([0.5, 1.0, 0.2], degree=4, offset=0.7),
    "selection": Select(SquaredExponential(1.3), [2, 0]) + Select(Linear(1.0), [1]),
    "product": SquaredExponential(ELL) * (Select(SquaredExponential(1.2), [1]) + 0.5),
    "sum": SquaredExponential(ELL, 1.3) + 0.3 * Linear(0.4) + Constant(2.0),
}


@pytest.mark.parametrize("size", [1e-3, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("name", KERNELS)
def test_rows_add_up_to_integrated_gradients(name, size):
    """In the mean and in the covariance, within a row, between rows and with the data."""
    kernel, G = KERNELS[name], rows_of(3)
    X, b = size * RNG.normal(size=(3, 3)), 0.2 * RNG.normal(size=3)
    Z, w = max(size, 1.0) * RNG.normal(size=(9, 3)), RNG.normal(size=(9, 2))
    ours, theirs = IntegratedHessians(b), IntegratedGradients(b)
    cross = closed_forms.cross(ours, kernel, X, Z)
    scale = np.sqrt(kernel.diagonal(X).max() * kernel.diagonal(Z).max())
    gap = np.einsum("nqm,qd->ndm", cross, G) - closed_forms.cross(theirs, kernel, X, Z)
    tolerance = 1e-11 * max(1.0, size if "linear" not in name else 1.0)
    assert np.abs(gap).max() <= tolerance * scale
    contracted = closed_forms.contract(ours, kernel, X, Z, w)
    np.testing.assert_allclose(contracted.value, cross @ w, atol=1e-12 * size * scale)
    prior, error = closed_forms.bounded_prior_cov(ours, kernel, X)
    own = np.einsum("nqr,qd,re->nde", prior, G, G)
    assert np.abs(own - closed_forms.prior_cov(theirs, kernel, X)).max() <= tolerance * (
        kernel.diagonal(X).max() + np.abs(prior).max()
    )
    assert (error <= 1e-11 * np.abs(prior).max()).all()
    joint = closed_forms.between(ours, kernel, X)
    own = np.einsum("nqmr,qd,re->ndme", joint, G, G)
    assert np.abs(own - closed_forms.between(theirs, kernel, X)).max() <= tolerance * (
        kernel.diagonal(X).max() + np.abs(joint).max()
    )
    np.testing.assert_allclose(
        np.einsum("nqnr->nqr", joint), prior, atol=1e-12 * np.abs(prior).max()
    )


@pytest.mark.parametrize("name", KERNELS)
def test_chosen_pairs_are_those_of_all(name):
    kernel, X = KERNELS[name], RNG.normal(size=(3, 3))
    pairs = [(1, 2), (0, 0), (1, 0)]
    here = [all_pairs(3).index((min(p), max(p))) for p in pairs]
    b, Z = np.zeros((3, 3)), RNG.normal(size=(5, 3))
    every, some = IntegratedHessians(b), IntegratedHessians(b, pairs=pairs)
    np.testing.assert_allclose(
        closed_forms.cross(some, kernel, X, Z),
        closed_forms.cross(every, kernel, X, Z)[:, here],
        atol=1e-14,
    )
    prior = closed_forms.prior_cov(every, kernel, X)
    np.testing.assert_allclose(
        closed_forms.prior_cov(some, kernel, X), prior[:, here][:, :, here], atol=1e-13
    )
    joint = closed_forms.between(every, kernel, X)
    np.testing.assert_allclose(
        closed_forms.between(some, kernel, X), joint[:, here][:, :, :, here], atol=1e-13
    )


def test_monomials_exactly():
    """Γᵢⱼ of Πxᵢ^kᵢ from 0 is kᵢkⱼ/D² times it, D = Σkᵢ."""
    powers = np.array(
        [[2.0, 1.0, 0.0], [0.0, 0.0, 3.0], [1.0, 1.0, 1.0], [4.0, 0.0, 2.0], [1, 0, 0]]
    )
    X, beta = RNG.normal(size=(4, 3)), RNG.normal(size=5)
    i, j = np.triu_indices(3)
    share = powers[:, i] * powers[:, j] / powers.sum(axis=1)[:, None] ** 2
    values = np.prod(X[:, None, :] ** powers, axis=2)  # (n, p)
    truth = values[:, None, :] * share.T
    images = closed_forms.apply_to_basis(IntegratedHessians(np.zeros(3)), Monomials(powers), X)
    np.testing.assert_allclose(images, truth, atol=1e-14)
    mean = closed_forms.apply_to_mean(
        IntegratedHessians(np.zeros(3)), PolynomialMean(beta, powers), X
    )
    np.testing.assert_allclose(mean.value, truth @ beta, atol=1e-13)
    assert (np.abs(mean.value - truth @ beta).max(axis=1) <= mean.error).all()


def by_quadrature(f, slopes, curvatures, b, x):
    """Γ of a function with known derivatives by mpmath, upper triangle."""
    return np.array(
        [
            float(
                mpmath.quad(
                    lambda s, i=i, j=j: (
                        -mpmath.log(s)
                        * (
                            s * (x - b)[i] * (x - b)[j] * curvatures(b + float(s) * (x - b))[i, j]
                            + (i == j) * (x - b)[i] * slopes(b + float(s) * (x - b))[i]
                        )
                    ),
                    [0, 1e-3, 0.1, 0.4, 0.7, 1],
                )
            )
            for i, j in zip(*np.triu_indices(len(x)), strict=True)
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-6, 0.5, 4.0])
def test_waves(size):
    basis = Fourier(np.array([[1.0, -2.0], [3.0, 0.5], [0.0, 0.0]]), np.array([0.1, 0.2]))
    b = np.array([0.4, -0.3])
    x = b + size * np.array([1.0, 0.7])
    V = np.concatenate([basis.frequencies, basis.frequencies])

    def shifted(u):
        angle = basis.frequencies @ (u - basis.origin)
        return np.concatenate([np.cos(angle), -np.sin(angle)])

    images = closed_forms.apply_to_basis(IntegratedHessians(b), basis, x[None])[0]
    for k in range(6):
        truth = by_quadrature(
            None,
            lambda u, k=k: V[k] * shifted(u)[k],
            lambda u, k=k: -np.outer(V[k], V[k]) * basis(u[None])[0, k],
            b,
            x,
        )
        np.testing.assert_allclose(images[:, k], truth, atol=3e-14 * max(np.abs(truth).max(), size))
    w = RNG.normal(size=6)
    value, error = closed_forms.contract_basis(IntegratedHessians(b), basis, x[None], w)
    assert np.abs(value[0] - images @ w).max() <= error[0]


HALF = RNG.normal(size=(8, 4))
BASES = {
    "waves": Fourier(RNG.normal(size=(4, 3))),
    "fast waves": Fourier(30.0 * RNG.normal(size=(4, 3))),
    "sines": Hilbert(np.zeros(3), np.full(3, 9.0), (2, 3, 2)),
    "monomials": Monomials.up_to(3, 3, constant=True),
    "combined": Combined(
        (Fourier(RNG.normal(size=(4, 2))), Hilbert(np.zeros(1), np.full(1, 9.0), (4,))),
        ((2, 0), (1,)),
        3,
    ),
}


@pytest.mark.parametrize("name", BASES)
def test_rows_of_bases_add_up(name):
    basis, b, X = BASES[name], np.array([0.2, -0.4, 0.1]), RNG.normal(size=(4, 3))
    ours = closed_forms.apply_to_basis(IntegratedHessians(b), basis, X)
    theirs = closed_forms.apply_to_basis(IntegratedGradients(b), basis, X)
    np.testing.assert_allclose(
        np.einsum("nqp,qd->ndp", ours, rows_of(3)), theirs, atol=1e-12 * np.abs(ours).max()
    )
    w = RNG.normal(size=len(basis))
    value, error = closed_forms.contract_basis(IntegratedHessians(b), basis, X, w)
    assert (np.abs(value - ours @ w).max(axis=1) <= error).all()
    some = IntegratedHessians(b, pairs=[(1, 2), (0, 0)])
    np.testing.assert_allclose(
        closed_forms.apply_to_basis(some, basis, X), ours[:, [4, 0]], atol=1e-14
    )


Z = RNG.normal(size=(25, 3))
Y = np.sin(Z[:, 0]) + Z[:, 1] * Z[:, 2]
X = RNG.normal(size=(3, 3))
KERNEL = SquaredExponential(ELL, 1.3) + 0.5 * Select(SquaredExponential(2.0), [0, 2])
EXACT = ExactPosterior(
    KERNEL + Constant(0.3), Z, Y, noise=0.05, mean=LinearMean([0.3, 0.1, -0.2], 1.0)
)
OTHER = ExactPosterior(RationalQuadratic(3.0, alpha=2.0), Z, Y, noise=0.2)
UNITS = {"shift": [0.5, -1.0, 0.2], "scale": [2.0, 0.5, 3.0]}
POSTERIORS = {
    "exact": EXACT,
    "sparse": SparsePosterior.fit(KERNEL, Z[:12], Z, Y, noise=0.05),
    "uncertain trend": ExactPosterior(
        KERNEL, Z, Y, noise=0.05, mean=LinearMean(np.zeros(3), covariance="flat")
    ),
    "weight space": WeightSpacePosterior(
        Fourier(0.5 * RNG.normal(size=(4, 3))), RNG.normal(size=8), root=HALF
    ),
    "mixture": MixturePosterior([EXACT, OTHER], [0.7, 0.3]),
    "affine": AffinePosterior(EXACT, **UNITS),
    "a column used twice": AffinePosterior(
        EXACT, **UNITS, source=[0, 1, 0], n_features=3, feature_names=("a", "b", "c")
    ),
}
STENCIL = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])
SLOPE = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0.0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
STEP = 0.12


def functional(d, x, b):
    """Points (k, d) and weights (q, k) by which Γ is a sum of values of f, of order 8."""
    nodes, weights = log_rule(9)
    pairs, offsets = all_pairs(d), STEP * np.arange(-4, 5)
    directions = [np.eye(d)[i] if i == j else np.eye(d)[i] + np.eye(d)[j] for i, j in pairs]
    block = np.concatenate([np.outer(offsets, direction) for direction in directions])
    points = np.concatenate([b + s * (x - b) + block for s in nodes])
    table = np.zeros((len(pairs), len(nodes), len(pairs), 9))
    for at, (i, j) in enumerate(pairs):
        for k, (s, w) in enumerate(zip(nodes, weights, strict=True)):
            second = w * s * (x - b)[i] * (x - b)[j] * STENCIL / STEP**2
            if i == j:
                table[at, k, at] += second + w * (x - b)[i] * SLOPE / STEP
            else:  # ∂ᵢ∂ⱼ = (∂²ᵢ₊ⱼ − ∂²ᵢ − ∂²ⱼ)/2
                table[at, k, at] += second / 2
                for own in ((i, i), (j, j)):
                    table[at, k, pairs.index(own)] -= second / 2
    return points, table.reshape(len(pairs), -1)


def brute_force(posterior, X, baselines, weights):
    """Mean (n, q) and joint covariance (n, q, n, q); one set of baselines for each row."""
    points, table = [], []
    for x, some in zip(X, baselines, strict=True):
        parts = [functional(X.shape[1], x, b) for b in some]
        points.append(np.concatenate([part[0] for part in parts]))
        both = zip(weights, parts, strict=True)
        table.append(np.concatenate([w * part[1] for w, part in both], axis=1))
    n, k = len(X), len(points[0])
    mean, cov = posterior.predict(np.concatenate(points), return_cov=True)
    W = np.stack(table)  # (n, q, k)
    joint = np.einsum("nqk,nkml,mrl->nqmr", W, cov.reshape(n, k, n, k), W, optimize=True)
    return np.einsum("nqk,nk->nq", W, mean.reshape(n, k)), joint


def check(posterior, operator, mean, joint, rows=X):
    result = posterior.apply(operator, rows)
    scale = np.einsum("nqnq->nq", joint).max()
    np.testing.assert_allclose(result.mean, mean, atol=1e-7 * (np.abs(mean).max() + 1.0))
    own = np.einsum("nqnr->nqr", joint)
    np.testing.assert_allclose(result.cov, own, atol=1e-7 * max(scale, 1e-2))
    value = posterior.joint(operator, rows)
    np.testing.assert_allclose(value, joint, atol=1e-7 * max(scale, 1e-2))
    for uncertainty in ("std", "none"):
        other = posterior.apply(operator, rows, uncertainty=uncertainty)
        np.testing.assert_allclose(other.mean, result.mean, atol=1e-11 * np.abs(mean).max())
        if uncertainty == "std":
            own = np.diagonal(result.cov, axis1=1, axis2=2)
            np.testing.assert_allclose(other.var, own, atol=1e-12 * scale)
    return result


@pytest.mark.parametrize("kind", POSTERIORS)
def test_one_baseline_against_predictions(kind):
    posterior, b = POSTERIORS[kind], np.array([0.1, -0.2, 0.3])
    mean, joint = brute_force(posterior, X, [[b]] * 3, [1.0])
    result = check(posterior, IntegratedHessians(b), mean, joint)
    G, gradients = rows_of(3), posterior.apply(IntegratedGradients(b), X)
    np.testing.assert_allclose(result.mean @ G, gradients.mean, atol=1e-11)
    np.testing.assert_allclose(
        np.einsum("nqr,qd,re->nde", result.cov, G, G), gradients.cov, atol=1e-11
    )
    pairs = [(0, 2), (1, 1)]
    some = posterior.apply(IntegratedHessians(b, pairs=pairs), X)
    np.testing.assert_allclose(some.mean, result.mean[:, [2, 3]], atol=1e-12)
    np.testing.assert_allclose(some.cov, result.cov[:, [2, 3]][:, :, [2, 3]], atol=1e-12)


@pytest.mark.parametrize("kind", ["exact", "affine", "weight space"])
def test_baselines_and_one_per_row_against_predictions(kind):
    posterior, points = POSTERIORS[kind], RNG.normal(size=(3, 3))
    weights = [0.5, 0.2, 0.3]
    mean, joint = brute_force(posterior, X[:2], [points] * 2, weights)
    check(posterior, IntegratedHessians(Baselines(points, weights)), mean, joint, X[:2])
    mean, joint = brute_force(posterior, X, [[b] for b in points], [1.0])
    check(posterior, IntegratedHessians(points), mean, joint)


def test_encoded_columns_against_predictions():
    """Pairs of features are sums over pairs of their columns."""
    import pandas as pd

    kinds = np.array(["u", "v"])[np.arange(25) % 2]
    frame = pd.DataFrame({"a": Z[:, 0], "kind": kinds, "b": Z[:, 1]})
    encoder = Encoder(("a", "kind", "b"), {"kind": ("u", "v")})
    columns = encoder.encode("X", frame)
    inner = ExactPosterior(SquaredExponential(2.0), columns, Y, noise=0.1)
    posterior, rows, b = EncodedPosterior(inner, encoder), columns[:3], columns[3] + 0.1
    mean, joint = brute_force(inner, rows, [[b]] * 3, [1.0])
    owner = encoder.gathering.argmax(axis=1)
    G = np.zeros((10, 6))
    for at, (i, j) in enumerate(all_pairs(4)):
        pair = tuple(sorted((owner[i], owner[j])))
        G[at, all_pairs(3).index(pair)] = 2.0 if i != j and owner[i] == owner[j] else 1.0
    mean, joint = mean @ G, np.einsum("nqmr,qa,rb->namb", joint, G, G)
    result = check(posterior, IntegratedHessians(b), mean, joint, rows)
    some = posterior.apply(IntegratedHessians(b, pairs=[(0, 1), (1, 1)]), rows)
    np.testing.assert_allclose(some.mean, result.mean[:, [1, 3]], atol=1e-12)
    np.testing.assert_allclose(some.cov, result.cov[:, [1, 3]][:, :, [1, 3]], atol=1e-12)


def test_matern_posterior_against_predictions():
    """Away from the data differences of a Matérn kernel are smooth enough for a check of means."""
    posterior = ExactPosterior(Matern(ELL, nu=6.5), Z, Y, noise=0.05)
    b = np.array([0.1, -0.2, 0.3])
    mean, joint = brute_force(posterior, X, [[b]] * 3, [1.0])
    result = posterior.apply(IntegratedHessians(b), X)
    np.testing.assert_allclose(result.mean, mean, atol=1e-6)
    np.testing.assert_allclose(
        posterior.joint(IntegratedHessians(b), X), joint, atol=1e-5 * np.abs(joint).max()
    )


def test_exact_zeros_where_nothing_changes():
    for kernel in KERNELS.values():
        op = IntegratedHessians(np.ones(3))
        assert not closed_forms.cross(op, kernel, np.ones((2, 3)), Z).any()
        assert not closed_forms.prior_cov(op, kernel, np.ones((2, 3))).any()
        assert not closed_forms.between(op, kernel, np.ones((2, 3))).any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["squared exponential", "rational quadratic", "Matérn 5/2"])
@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e4, 1e8])
def test_extreme_steps(name, size):
    kernel, op = KERNELS[name], IntegratedHessians(np.zeros(3))
    rows, data = size * X, np.concatenate([Z, 0.5 * size * X])
    cross = closed_forms.cross(op, kernel, rows, data)
    prior, error = closed_forms.bounded_prior_cov(op, kernel, rows)
    assert np.isfinite(cross).all()
    assert np.isfinite(prior).all()
    gradients = closed_forms.cross(IntegratedGradients(np.zeros(3)), kernel, rows, data)
    gap = np.einsum("nqm,qd->ndm", cross, rows_of(3)) - gradients
    assert np.abs(gap).max() <= 1e-11 + 1e-15 * size**2 * (size < 1e6) + 1e-14 * size
    assert np.isfinite(error).all()


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Matern12(1.0), "IntegratedHessians of Matern12: its functions are not twice"),
        (Matern32(1.0), "IntegratedHessians of Matern32: .* variance .* does not exist"),
        (Matern(1.0, nu=1.9), r"IntegratedHessians of Matern\(nu=1.9\)"),
        (Periodic(1.0), 'IntegratedHessians of Periodic: .* attribution="shapley" has inter'),
        (
            FullAdditive([SquaredExponential(1.0)] * 3, [1.0, 1.0]),
            "IntegratedHessians of FullAdditive",
        ),
        (Linear(1.0) * SquaredExponential(1.0), "IntegratedHessians of .*Linear.*: there is no"),
        (SquaredExponential(1.0) + Matern32(1.0), "IntegratedHessians of Matern32"),
    ],
)
def test_refused_kernels(kernel, message):
    with pytest.raises(UnsupportedModelError, match=message):
        closed_forms.cross(IntegratedHessians(np.zeros(3)), kernel, X, Z)


def test_refused_means_and_far_pairs():
    mean = Function(lambda x: x[:, 0], lambda x: 0.0 * x)
    with pytest.raises(UnsupportedModelError, match="IntegratedHessians of Function: there is no"):
        closed_forms.apply_to_mean(IntegratedHessians(np.zeros(3)), mean, X)
    with pytest.raises(InvalidInputError, match="X: the covariance between rows is known where"):
        closed_forms.between(IntegratedHessians(np.zeros(3)), SquaredExponential(1.0), 1e4 * X)


@pytest.mark.parametrize("apart", [1e-8, 1e-3, 0.1])
@pytest.mark.parametrize("kernel", [Matern52(ELL), Matern(ELL, nu=2.1)])
def test_paths_that_nearly_meet(kernel, apart):
    """Kinks along the whole path: what is reported bounds the gap to integrated gradients."""
    rng, G = np.random.default_rng(3), rows_of(3)
    b, x, x2 = rng.normal(size=3), rng.normal(size=(1, 3)), apart * rng.normal(size=(1, 3))
    ours, theirs = IntegratedHessians(b), IntegratedGradients(b)
    left, right = ours.terms(x)[0][1], ours.terms(x + x2)[0][1]
    value, error = closed_forms.formulas_for(ours, kernel).between(left, right)
    truth, other = closed_forms.formulas_for(theirs, kernel).between(left, right)
    gap = np.abs(np.einsum("nqr,qd,re->nde", value, G, G) - truth).max()
    assert gap <= 4.0 * error[0] + other[0]
    assert error[0] <= 1e-8


def test_tensors_give_the_same():
    torch = pytest.importorskip("torch")
    own_rows, start = X[:2], Z[:2] + 0.1
    rows, data, b = (torch.as_tensor(part) for part in (own_rows, Z, start))
    for name in (
        "squared exponential",
        "rational quadratic",
        "Matérn 5/2",
        "polynomial",
        "product",
    ):
        kernel, own, w = KERNELS[name], IntegratedHessians(start), RNG.normal(size=(25, 1))
        tensors = IntegratedHessians(b)
        for verb, theirs, ours in (
            ("cross", (rows, data), (own_rows, Z)),
            ("prior_cov", (rows,), (own_rows,)),
            ("between", (rows,), (own_rows,)),
        ):
            value = getattr(closed_forms, verb)(tensors, kernel, *theirs)
            truth = getattr(closed_forms, verb)(own, kernel, *ours)
            np.testing.assert_allclose(value.numpy(), truth, atol=1e-13 * np.abs(truth).max())
        value = closed_forms.contract(tensors, kernel, rows, data, torch.as_tensor(w)).value
        truth = closed_forms.contract(own, kernel, own_rows, Z, w).value
        np.testing.assert_allclose(value.numpy(), truth, atol=1e-12)
    for basis in BASES.values():
        value = closed_forms.apply_to_basis(IntegratedHessians(b), basis, rows)
        truth = closed_forms.apply_to_basis(IntegratedHessians(start), basis, own_rows)
        np.testing.assert_allclose(value.numpy(), truth, atol=1e-13 * np.abs(truth).max())
