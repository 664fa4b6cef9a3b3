"""Operators bound to deep posteriors.

An operator is a weighted sum of values and gradients of f at points: of gradients at the nodes of a
path, or of values at coalitions. Given the values h and the Jacobians J of the hidden layers at
these points, 𝒜f is Gaussian, because f is and 𝒜 is linear in it:

    E[𝒜f | h] = M ∇μ(h),    Cov[𝒜f | h] = M (∂∂'C)(h, h) Mᵀ,    M = step · J

So the mean is 𝒜F for F = E f(h) (`expected_layers`), and the covariance is the average of
conditional covariances plus the covariance of conditional means around the mean, over draws of the
hidden layers in antithetic pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from gpattr._core.array import Array, to_numpy
from gpattr._core.memory import blocks, check_memory
from gpattr._core.normal import roots
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import check_count
from gpattr.closed_forms.derivatives import differentiate
from gpattr.closed_forms.shapley.corners import all_coalitions
from gpattr.distributions import Draws, Gaussian
from gpattr.exceptions import ToleranceError, UnsupportedModelError
from gpattr.operators import Coalitions, Gradient, IntegratedGradients, Operator, Paths, Shapley
from gpattr.operators.players import MOST_PLAYERS
from gpattr.posteriors.bound import (
    Attributions,
    Bound,
    Evaluation,
    check_covariance_memory,
    check_joint_memory,
    covariance,
)
from gpattr.posteriors.expected_layers import Hidden, averages, drawn_layers, mirrored
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.special.quadrature import gauss_legendre

if TYPE_CHECKING:
    from gpattr.posteriors.deep import DeepPosterior

ORDER, MOST_PANELS = 8, 64  # nodes of a panel of the mean's path, and panels of a path at most
PIECES, MOST_PIECES = 8, 128  # between the nodes of a drawn path: at first, and at most
LENGTH = 2.0  # length-scales that the first pieces cover
LARGEST = 4000  # values and gradients that are drawn together
NEGLIGIBLE, ACCEPTABLE = 0.003, 0.1  # completeness gaps of draws, of their standard deviation
SMALL = 1e-4  # of the prior's standard deviation: rounding of draws exceeds smaller attributions
DEVIATIONS = 3.0  # standard errors that bound an error of draws
WANTED = 1e-12  # of the size of attributions, where panels of the mean stop doubling


class Sites(NamedTuple):
    """Points (T, d) where one row needs f, and the weights of their values and gradients.

    Output i is Σₜ steps[t, i] ∂ᵢf(pₜ), for ``steps`` (T, d), or Σₜ weights[i, t] f(pₜ), for
    ``weights`` (q, T). ``ends`` are (weight, first, last) of paths: positions of their ends.
    """

    points: np.ndarray
    steps: np.ndarray | None = None
    weights: np.ndarray | None = None
    ends: tuple[tuple[float, int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class DeepBound(Bound):
    """An operator bound to a `DeepPosterior`."""

    posterior: DeepPosterior
    operator: Operator
    evaluation: Evaluation

    def __post_init__(self) -> None:
        name = type(self.operator).__name__
        if type(self.operator) not in (IntegratedGradients, Gradient, Shapley):
            raise UnsupportedModelError(
                f"attribution: {name} is not available for deep Gaussian processes; integrated"
                " gradients, Shapley values and the gradient are"
            )
        if self.evaluation.method not in ("auto",):
            raise UnsupportedModelError(
                f'method: deep Gaussian processes support only "auto", got'
                f" {self.evaluation.method!r}: the covariance of attributions comes from draws"
            )
        if isinstance(self.operator, Shapley):
            if self.operator.independent:
                raise UnsupportedModelError(
                    "baseline: Shapley values of deep Gaussian processes are those of a point or of"
                    " Baselines(rows), not of Marginals"
                )
            if len(self.operator.players.seen) > MOST_PLAYERS:
                raise UnsupportedModelError(
                    "attribution: Shapley values of a deep Gaussian process go through all"
                    f" coalitions of at most {MOST_PLAYERS} players, and there are"
                    f" {len(self.operator.players.seen)}; group features with players=, or use"
                    ' "integrated_gradients"'
                )

    def rows(self, rows: Any) -> DeepBound:
        return replace(self, operator=self.operator.rows(rows))

    @property
    def method(self) -> str:
        """The method of the means, in words."""
        how = {Gradient: "gradient", Shapley: "enumeration"}
        return f"{how.get(type(self.operator), 'quadrature')} through the hidden layers"

    def apply(self, X: Array) -> Attributions:
        X, uncertainty = to_numpy(X), self.evaluation.uncertainty
        mean, error = self._means(X)
        if uncertainty == "none":
            return Attributions(Gaussian(mean), error, self.method)
        (n, q), S = mean.shape, 2 * self.posterior.pairs
        remedy = "use fewer draws, or go through the rows in parts (explainer.batches)"
        check_memory("The draws", (S, n, q), remedy, copies=2)
        whole = uncertainty == "cov"
        if whole:
            check_covariance_memory(n, q)
        draws, var, cov_error = np.empty((S, n, q)), np.empty((n, q)), np.empty(n)
        cov = np.empty((n, q, q)) if whole else None
        for row in range(n):
            given = self._given(X[row : row + 1], self.operator.rows(slice(row, row + 1)), row)
            total, cov_error[row] = given.total(mean[row])
            draws[:, row], var[row] = given.draws(self.posterior.seed), total.diagonal()
            if cov is not None:
                cov[row] = total
        return Attributions(Draws(draws, mean, cov, var), error, self.method, cov_error)

    def mean(self, X: Array) -> Array:
        return self._means(to_numpy(X))[0]

    def joint(self, X: Array) -> Array:
        """Return the covariance between all outputs of all rows, by draws that rows share."""
        X = to_numpy(X)
        n, q = len(X), self.operator.size(X.shape[1])
        check_joint_memory(n, q)
        given = self._together(X, self.posterior.pairs, self.posterior.seed)
        total, _ = given.total(self._means(X)[0].reshape(-1))
        return total.reshape(n, q, n, q)

    def sample(self, X: Array, n: int, random_state: RandomLike) -> np.ndarray:
        """Return n draws at all rows together: of the hidden layers, then of the last."""
        X, n = to_numpy(X), check_count("n", n)
        seed = (int(random_generator(random_state).integers(2**62)),)
        draws = self._together(X, (n + 1) // 2, seed).draws(seed)
        return draws[:n].reshape(n, len(X), -1)

    def _means(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return 𝒜F, (n, q), and a bound on its error, (n,)."""
        layers = self.posterior.layers
        if isinstance(self.operator, Gradient):
            found = averages(layers, X)
            return found.gradient, DEVIATIONS * found.gradient_error.max(axis=1)
        if isinstance(self.operator, Shapley):
            return self._shapley(X)
        result, error = np.zeros(X.shape), np.zeros(len(X))
        for weight, paths in self.operator.terms(X):
            assert isinstance(paths, Paths)
            for rows in blocks(len(X), 64.0 * ORDER * MOST_PANELS * (X.shape[1] + 8)):
                value, bound = self._along(paths[rows], rows.start)
                result[rows] += weight * value
                error[rows] += abs(weight) * bound
        return result, error

    def _along(self, paths: Paths, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the integrated gradients of F along paths, (n, d), by doubling panels.

        Their errors, (n,), are the change by the last doubling, which must not exceed the
        tolerance, and the scatter of replicates of F. The first row is called so in messages.
        """
        layers, n = self.posterior.layers, len(paths.stop)
        value, change, spread = np.zeros(paths.shape), np.full(n, np.inf), np.zeros(n)
        panels, rows, coarse = 1, np.arange(n), None
        while len(rows) and panels <= MOST_PANELS:
            t, w = gauss_legendre(ORDER, panels)
            some = paths[rows]
            points = np.swapaxes(some.at(t), 0, 1)  # (r, T, d)
            found = averages(layers, points.reshape(-1, points.shape[2]))
            slopes, errors = (
                np.einsum("rti,t->ri", each.reshape(points.shape), w)
                for each in (found.gradient, found.gradient_error)
            )
            fine = slopes * some.step
            if coarse is not None:
                value[rows], change[rows] = fine, np.abs(fine - coarse).max(axis=1)
                spread[rows] = DEVIATIONS * np.abs(errors * some.step).max(axis=1)
                still = change[rows] > WANTED * np.abs(fine).max(axis=1)
                rows, fine = rows[still], fine[still]
            coarse, panels = fine, 2 * panels
        self._require_accuracy(value, change, first)
        return value, change + spread

    def _require_accuracy(self, value: np.ndarray, error: np.ndarray, first: int) -> None:
        size = np.maximum(np.abs(value).max(axis=1), self.posterior.prior_std)
        bad = ~(error <= self.evaluation.tolerance * size)
        if bad.any():
            row = int(bad.argmax())
            raise ToleranceError(
                f"tolerance: attributions of row {first + row} are accurate only to"
                f" {error[row]:.1e}; the layers change too fast along the path. Choose a baseline"
                " nearer to the row, or pass a larger tolerance="
            )

    def _shapley(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result, error = np.zeros((len(X), self.operator.size(X.shape[1]))), np.zeros(len(X))
        for row in range(len(X)):
            sites = self._sites(X[row : row + 1], self.operator.rows(slice(row, row + 1)), 0)
            assert sites.weights is not None
            found = averages(self.posterior.layers, sites.points)
            result[row] = sites.weights @ found.value
            error[row] = Shapley.absolute_weight * DEVIATIONS * found.value_error.max()
        return result, error

    def _sites(self, x: np.ndarray, operator: Operator, pieces: int) -> Sites:
        """Return where the operator asks for f at one row x, (1, d)."""
        if isinstance(operator, Gradient):
            return Sites(x, steps=np.ones(x.shape))
        points, steps, ends, weights = [], [], [], []
        for weight, sites in operator.terms(x):
            if isinstance(sites, Coalitions):
                design = all_coalitions(sites.players)
                points.append(sites.corners(design.members)[0])
                weights.append(weight * design.weights * sites.moving[0][:, None])
                continue
            assert isinstance(sites, Paths)
            t, w = clenshaw_curtis(pieces)
            first = sum(map(len, points))
            points.append(sites.at(t)[:, 0])
            steps.append(weight * w[:, None] * sites.step)
            ends.append((weight, first, first + len(t) - 1))
        joined = np.concatenate(points)
        if weights:
            return Sites(joined, weights=np.concatenate(weights, axis=1))
        return Sites(joined, steps=np.concatenate(steps), ends=tuple(ends))

    def _pieces(self, X: np.ndarray) -> int:
        """Return the first number of pieces of paths to rows: a power of two, by their length."""
        if not isinstance(self.operator, IntegratedGradients):
            return 0
        lengths = [
            to_numpy(unit.path_lengths(np.broadcast_to(paths.start, paths.shape), paths.stop)).max()
            for _, paths in self.operator.terms(X)
            if isinstance(paths, Paths)
            for unit in self.posterior.layers[0]
        ]
        wanted = np.clip(max(lengths) / LENGTH, 1.0, MOST_PIECES / PIECES)
        return int(PIECES * 2 ** np.ceil(np.log2(wanted)))

    def _given(self, x: np.ndarray, operator: Operator, row: int) -> Given:
        """Return the attributions of one row given draws; nodes double until their gaps are small.

        A draw's conditional mean must add up to the difference of μ(h) at the ends of its paths.
        """
        one = replace(self, operator=operator)
        pieces = one._pieces(x)
        while True:
            sites = self._sites(x, operator, pieces)
            self._check_size(sites)
            given = self._conditional([sites], self.posterior.pairs, self.posterior.seed)
            if not sites.ends or given.gap <= NEGLIGIBLE or pieces >= MOST_PIECES:
                break
            if (2 * len(sites.points)) * (1 + x.shape[1]) > LARGEST:
                break
            pieces *= 2
        if given.gap > ACCEPTABLE:
            raise ToleranceError(
                f"tolerance: draws of the attributions of row {row} violate completeness by"
                f" {given.gap:.0%} of their standard deviation; the layers change too fast along"
                " the path. Choose a baseline nearer to the row"
            )
        return given

    def _together(self, X: np.ndarray, pairs: int, seed: tuple[int, ...]) -> Given:
        """Return the attributions of all rows given draws that they share."""
        pieces = self._pieces(X)
        rows = [slice(row, row + 1) for row in range(len(X))]
        sites = [self._sites(X[row], self.operator.rows(row), pieces) for row in rows]
        self._check_size(*sites)
        return self._conditional(sites, pairs, seed)

    def _check_size(self, *sites: Sites) -> None:
        T = sum(len(each.points) for each in sites)
        d = sites[0].points.shape[1]
        if T * (1 + d) > LARGEST:
            raise UnsupportedModelError(
                f"X: {T} points with {d} features are drawn together, {T * (1 + d)} numbers, more"
                f" than the {LARGEST} allowed; use fewer rows, baselines or features"
            )

    def _conditional(self, sites: list[Sites], pairs: int, seed: tuple[int, ...]) -> Given:
        """Return means (S, q) and covariances (S, q, q) of the outputs at all sites given draws."""
        *below, (last,) = self.posterior.layers
        points = np.concatenate([each.points for each in sites])
        hidden = drawn_layers(below, points, pairs, seed)
        if sites[0].steps is None:
            return Given(*_from_values(last, hidden.values, _block_diagonal(sites)))
        mean, cov = _from_gradients(last, hidden, sites)
        gap = 0.0
        if sites[0].ends:
            gain = _gain(last, hidden.values, sites)
            q = mean.shape[1] // len(sites)
            off = mean.reshape(len(mean), len(sites), q).sum(axis=2) - gain
            spread = np.sqrt(mean.sum(axis=1).var() + np.einsum("sij->s", cov).mean().clip(0.0))
            spread = max(spread, SMALL * self.posterior.prior_std)
            gap = float(np.sqrt((off**2).mean(axis=0)).max() / spread)
        return Given(mean, cov, gap)


@dataclass(frozen=True, eq=False)
class Given:
    """Means (S, q) and covariances (S, q, q) given draws of the hidden layers, in pairs.

    ``gap`` is how far the means are from adding up, of the standard deviation of their sum.
    """

    mean: np.ndarray
    cov: np.ndarray
    gap: float = 0.0

    def total(self, centre: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the covariance around a known mean, (q, q), and a bound on its error.

        The bound is three standard errors of the largest variance, and the gaps.
        """
        apart, pairs = self.mean - centre, len(self.mean) // 2
        total = covariance(self.cov.mean(axis=0) + apart.T @ apart / len(apart))
        variances = np.diagonal(self.cov, axis1=1, axis2=2) + apart**2  # (S, q)
        paired = 0.5 * (variances[:pairs] + variances[pairs:])
        error = DEVIATIONS * paired.std(axis=0, ddof=1).max(initial=0.0) / pairs**0.5
        return total, float(error + self.gap**2 * total.diagonal().max(initial=0.0))

    def draws(self, seed: tuple[int, ...]) -> np.ndarray:
        """Return one draw of the outputs for each draw of the hidden layers, (S, q)."""
        generator = np.random.default_rng([*seed, 2**31])
        normals = mirrored(generator.standard_normal((len(self.mean) // 2, self.mean.shape[1])))
        return self.mean + (roots(self.cov) @ normals[:, :, None])[:, :, 0]


def _from_gradients(
    last: FunctionSpacePosterior, hidden: Hidden, sites: list[Sites]
) -> tuple[np.ndarray, np.ndarray]:
    """Return moments of Σₜ stepsₜᵢ Σⱼ Jₜⱼᵢ ∂ⱼf(hₜ), given draws of h and J."""
    S, T, D = hidden.values.shape
    d = hidden.jacobians.shape[3]
    q, m = d * len(sites), len(last.inputs)
    mean, cov = np.empty((S, q)), np.empty((S, q, q))
    ends = np.cumsum([0, *(len(each.points) for each in sites)])
    for some in blocks(S, 8.0 * (T * D * (3 * T * D + 3 * m + q) + 4 * q * (m + q))):
        h, J = hidden.values[some], hidden.jacobians[some]
        s = len(h)
        M = np.zeros((s, q, T, D))
        for k, each in enumerate(sites):
            here = slice(ends[k], ends[k + 1])
            assert each.steps is not None
            M[:, k * d : (k + 1) * d, here] = np.einsum("ti,stji->sitj", each.steps, J[:, here])
        M = M.reshape(s, q, T * D)
        flat = h.reshape(-1, D)
        left = differentiate(last.kernel, flat[:, None, :], last.inputs).left  # (sT, m, D)
        left = left.reshape(s, T, m, D).transpose(0, 1, 3, 2).reshape(s, T * D, m)
        cross = M @ left  # (s, q, m)
        slope = last.mean.gradient(flat).reshape(s, T * D)
        mean[some] = cross @ last.alpha + (M @ slope[:, :, None])[:, :, 0]
        mixed = differentiate(last.kernel, h[:, :, None, :], h[:, None, :, :], True).mixed
        mixed = mixed.transpose(0, 1, 3, 2, 4).reshape(s, T * D, T * D)
        prior = M @ mixed @ M.transpose(0, 2, 1)
        V = last.solve(cross.reshape(-1, m)).reshape(s, q, m)
        cov[some] = covariance(prior - last.explained(V))
    return mean, cov


def _from_values(
    last: FunctionSpacePosterior, h: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return moments of Σₜ weightsᵢₜ f(hₜ), given draws of h, (S, T, D)."""
    S, T, D = h.shape
    q, m = len(weights), len(last.inputs)
    mean, cov = np.empty((S, q)), np.empty((S, q, q))
    for some in blocks(S, 8.0 * (T * (3 * T + 3 * m) + 4 * q * (m + q))):
        s = len(h[some])
        flat = h[some].reshape(-1, D)
        k = last.kernel(flat, last.inputs).reshape(s, T, m)
        cross = weights @ k
        mean[some] = cross @ last.alpha + last.mean(flat).reshape(s, T) @ weights.T
        prior = differentiate(last.kernel, h[some][:, :, None, :], h[some][:, None, :, :]).value
        V = last.solve(cross.reshape(-1, m)).reshape(s, q, m)
        cov[some] = covariance(weights @ prior @ weights.T - last.explained(V))
    return mean, cov


def _block_diagonal(sites: list[Sites]) -> np.ndarray:
    """Return the weights of all sites, (rows · q, points of all rows)."""
    return np.asarray(block_diag(*(each.weights for each in sites)))


def _gain(last: FunctionSpacePosterior, h: np.ndarray, sites: list[Sites]) -> np.ndarray:
    """Return Σ weight (μ(h(x)) − μ(h(b))) of each row in each draw, (S, rows)."""
    gain, offset = np.zeros((len(h), len(sites))), 0
    for k, each in enumerate(sites):
        for weight, first, stop in each.ends:
            start, end = (to_numpy(last.moments(h[:, offset + t])) for t in (first, stop))
            gain[:, k] += weight * (end - start)
        offset += len(each.points)
    return gain


@lru_cache(maxsize=32)
def clenshaw_curtis(pieces: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Chebyshev nodes on [0, 1], both ends among them, and their weights, for even N.

    wₖ = (cₖ/2N)(1 − Σⱼ bⱼ cos(2πjk/N)/(4j² − 1)), j = 1 … N/2, with b = 2, and 1 for the last j;
    c = 2, and 1 for both ends.
    """
    k, j = np.arange(pieces + 1), np.arange(1, pieces // 2 + 1)
    b = np.where(j == pieces // 2, 1.0, 2.0) / (4.0 * j**2 - 1.0)
    c = np.where((k == 0) | (k == pieces), 1.0, 2.0)
    weights = 0.5 * c / pieces * (1.0 - np.cos(2.0 * np.pi * np.outer(k, j) / pieces) @ b)
    nodes = 0.5 - 0.5 * np.cos(np.pi * k / pieces)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
