"""GPs to explain by Shapley values, and their true values from scikit-learn's model alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from games import coalitions, mixtures
from scipy.linalg import solve_triangular
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

N_TRAIN, VARIANCE, NOISE = 1000, 1.5, 0.01


@dataclass(frozen=True)
class Case:
    """A GP of d features in scikit-learn, rows X to explain, and the background they start from."""

    d: int
    X: np.ndarray
    background: np.ndarray
    gp: GaussianProcessRegressor

    @classmethod
    def of(cls, d: int, n_rows: int, n_background: int) -> Case:
        """Simulate data whose target has a mean far from 0; hyperparameters are given, not learned.

        A background of one row is the mean of the training inputs, otherwise some of them.
        """
        rng = np.random.default_rng(d)
        Z = rng.normal(size=(N_TRAIN, d))
        signal = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + 0.3 * Z[:, 3:].sum(axis=1)
        y = 50 + 7 * (signal + 0.1 * rng.normal(size=N_TRAIN))
        scales = np.geomspace(1, 5, d) * np.sqrt(d / 10)
        kernel = ConstantKernel(VARIANCE) * RBF(scales)
        gp = GaussianProcessRegressor(kernel, alpha=NOISE, optimizer=None, normalize_y=True)
        X = rng.normal(size=(n_rows, d))
        background = Z[:n_background] if n_background > 1 else Z.mean(axis=0, keepdims=True)
        return cls(d, X, background, gp.fit(Z, y))

    @property
    def lengthscale(self) -> np.ndarray:
        return self.gp.kernel_.k2.length_scale

    @property
    def unit(self) -> float:
        """The standard deviation of the target, in which the GP is fitted."""
        return float(self.gp._y_train_std)

    @cached_property
    def values(self) -> np.ndarray:
        """True Shapley values, (n, d)."""
        if self.d > 12:
            return np.array([by_size(self, x)[0] for x in self.X])
        return np.array([enumerated_values(self, x) for x in self.X])

    @cached_property
    def deviations(self) -> np.ndarray:
        """True standard deviations, (c, d), of all rows, or of the first with many coalitions."""
        if self.d > 12:
            return np.array([by_size(self, x)[1] for x in self.X])
        rows = self.X[: 1 if len(self.background) > 1 else None]
        return np.array([enumerated_deviations(self, x) for x in rows])


def enumerated_values(case: Case, x: np.ndarray) -> np.ndarray:
    """Shapley values of one row from scikit-learn's predictions at all 2ᵈ coalitions.

    The worth of a coalition is the mean of f over the background with the features of the coalition
    set to the row's.
    """
    sets, shapley = coalitions(case.d)
    worths = [case.gp.predict(mixtures(x, b, sets)) for b in case.background]
    return shapley @ np.mean(worths, axis=0)


def enumerated_deviations(case: Case, x: np.ndarray) -> np.ndarray:
    """Their standard deviations: the joint covariance of all worths, by scikit-learn's kernel and
    factor, mapped block by block.
    """
    gp, (sets, shapley) = case.gp, coalitions(case.d)
    parts = [mixtures(x, b, sets) for b in case.background]
    mapped = shapley / len(parts)
    cross = np.sum([mapped @ gp.kernel_(part, gp.X_train_) for part in parts], axis=0)
    prior = np.zeros((case.d, case.d))
    for i, part in enumerate(parts):
        for j in range(i + 1):
            block = mapped @ gp.kernel_(part, parts[j]) @ mapped.T
            prior += block if i == j else block + block.T
    explained = solve_triangular(gp.L_, cross.T, lower=True)
    return case.unit * np.sqrt(np.diag(prior) - (explained**2).sum(axis=0))


def by_size(case: Case, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and deviations for one baseline and many features: coalitions of one size at once.

    The kernel is a product, so the sum of k over the coalitions of size s is the coefficient of yˢ
    in ∏ⱼ (k(bⱼ, zⱼ) + k(xⱼ, zⱼ) y). All terms are positive, and nothing is integrated or divided.
    """
    (b,), Z, d = case.background, case.gp.X_train_, case.d
    u, v = (np.exp(-0.5 * ((point - Z) / case.lengthscale) ** 2).T for point in (x, b))  # (d, m)
    chance = np.array([1 / (d * comb(d - 1, s)) for s in range(d)])
    fall = np.exp(-0.5 * ((x - b) / case.lengthscale) ** 2)
    cross, prior = np.empty((d, len(Z))), np.empty(d)
    for i in range(d):
        sums = np.zeros((d, len(Z)))
        table = np.zeros((d, d))  # of pairs of coalitions: their sizes
        sums[0], table[0, 0] = 1.0, 1.0
        for j in range(d):
            if j != i:
                sums[1:], sums[0] = v[j] * sums[1:] + u[j] * sums[:-1], v[j] * sums[0]
                table = _with_a_feature(table, fall[j])
        cross[i] = (u[i] - v[i]) * (chance @ sums)
        prior[i] = 2 * (1 - fall[i]) * (chance @ table @ chance)
    cross *= VARIANCE
    explained = solve_triangular(case.gp.L_, cross.T, lower=True)
    variances = VARIANCE * prior - (explained**2).sum(axis=0)
    return case.unit * (cross @ case.gp.alpha_), case.unit * np.sqrt(variances)


def _with_a_feature(table: np.ndarray, fall: float) -> np.ndarray:
    """Multiply by 1 + κy + κy' + yy', κ = k(xⱼ, bⱼ)."""
    result = table.copy()
    result[1:] += fall * table[:-1]
    result[:, 1:] += fall * table[:, :-1]
    result[1:, 1:] += table[:-1, :-1]
    return result


def true_values_of_other_game(case: Case) -> np.ndarray:
    """Shapley values of the game of shapiq's ProductKernelExplainer: the factor of a missing
    feature is 1.
    """
    Z, d = case.gp.X_train_, case.d
    chance = np.array([1 / (d * comb(d - 1, s)) for s in range(d)])
    result = np.empty_like(case.X)
    for k, x in enumerate(case.X):
        u = np.exp(-0.5 * ((x - Z) / case.lengthscale) ** 2).T
        for i in range(d):
            sums = np.zeros((d, len(Z)))
            sums[0] = 1.0
            for j in range(d):
                if j != i:
                    sums[1:] = sums[1:] + u[j] * sums[:-1]
            result[k, i] = ((u[i] - 1) * (chance @ sums)) @ case.gp.alpha_
    return case.unit * VARIANCE * result
