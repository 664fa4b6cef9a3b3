"""Bayesian linear and polynomial regression."""

from __future__ import annotations

import math
from operator import index
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.optimize import minimize_scalar

from gpattr._core import documents
from gpattr._core.array import EPS, LinAlgError, cholesky, to_numpy
from gpattr._core.memory import check_memory
from gpattr._core.validation import (
    Names,
    as_vector,
    check_flag,
    column_names,
    is_frame,
    numbers,
    positive_scalar,
    unlabelled,
)
from gpattr.bases import Monomials
from gpattr.estimators.base import PosteriorRegressor
from gpattr.estimators.search_space import Units
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError
from gpattr.posteriors import WeightSpacePosterior

RATIOS = np.logspace(-12, 16, 141)  # of prior to noise variance, for features of order one
FLOOR = 1e-12  # of the targets' variance, below which noise is indistinguishable from rounding


class BayesianLinearRegressor(PosteriorRegressor):
    """y = c + φ(x)ᵀw + noise with Gaussian weights w ~ N(μ, Σ).

    φ(x) is x, or all monomials of x up to a degree.

    Parameters
    ----------
    prior_mean : array (p,), optional
        The prior mean μ, 0 by default.
    prior_cov : array (p, p), optional
        The prior covariance Σ, symmetric and positive definite. By default Σ = τ²I with τ² learned
        by evidence, for features in units of their standard deviations, so that a change of units
        has no effect. If you give a prior, features are in your units.
    noise_variance : float, optional
        The noise variance if it is known; learned by evidence by default.
    fit_intercept : bool
        Whether there is a constant c, about which nothing is known beforehand (a flat prior).
    degree : int
        The degree of the polynomial; features are in the order of scikit-learn's
        ``PolynomialFeatures``, without the constant.

    Attributes
    ----------
    posterior_ : WeightSpacePosterior
        The posterior, which `Explainer` explains. In a linear model the attribution of feature i is
        wᵢ(xᵢ − bᵢ). Its ``weights`` belong to the monomials with ``basis.powers``, in the
        coordinates (x − ``basis.origin``)/``basis.scale``.
    coef_, intercept_
        The posterior means of w (d,) and c, in the units of the data; of a linear model only.
    noise_variance_, prior_variance_, log_marginal_likelihood_
        The noise, τ² (1 where Σ is given), and log p(y).

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> model = gpattr.BayesianLinearRegressor().fit(X, 3.0 * X[:, 0] - X[:, 1] + 1.0)
    >>> model.coef_.round(2), round(float(model.intercept_), 2)
    (array([ 3., -1.]), 1.0)
    """

    def __init__(
        self,
        *,
        prior_mean: Any = None,
        prior_cov: Any = None,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        degree: int = 1,
    ) -> None:
        self.prior_mean = prior_mean
        self.prior_cov = prior_cov
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept
        self.degree = degree

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the weights, and the variances that are not given."""
        check_flag("fit_intercept", self.fit_intercept)
        with self._unchanged_on_error():
            rows, targets = (to_numpy(part) for part in self._check_data(X, y))
            self._learn(rows, targets, column_names(X))
        return self

    def _learn(self, rows: np.ndarray, targets: np.ndarray, names: Names | None) -> None:
        n, intercept = len(rows), bool(self.fit_intercept)
        Units.of_data(rows, targets)  # refuses what float64 cannot square
        basis = self._basis(rows)
        p = len(basis)
        known = (
            None
            if self.noise_variance is None
            else positive_scalar("noise_variance", self.noise_variance)
        )
        mu = np.zeros(p) if self.prior_mean is None else self._prior_mean(p)
        root = np.eye(p) if self.prior_cov is None else self._prior_root(p)
        features = basis(rows)
        middle, level = (features.mean(axis=0), targets.mean()) if intercept else (np.zeros(p), 0.0)
        features -= middle
        residual = targets - level - features @ mu
        whitened = features @ root
        model = _Evidence(whitened, residual, n - 1 if intercept else n)
        tau2, noise = self._variances(model, known)
        # QR keeps the digits that forming ΦᵀΦ would square away.
        tau = math.sqrt(tau2)
        _, R = np.linalg.qr(np.concatenate([whitened * (tau / math.sqrt(noise)), np.eye(p)]))
        half = tau * solve_triangular(R, root.T, trans=1).T  # root R⁻¹: Cov[w] = half halfᵀ
        weights = mu + tau * (root @ model.mean(tau2, noise))
        if intercept:
            weights = np.concatenate([[level - middle @ weights], weights])
            half = np.block(
                [
                    [np.full((1, 1), math.sqrt(noise / n)), -middle[None] @ half],
                    [np.zeros((p, 1)), half],
                ]
            )
            basis = Monomials(
                np.concatenate([np.zeros((1, basis.n_features)), basis.powers]),
                basis.origin,
                basis.scale,
            )
        evidence = model.value(tau2, noise) - (0.5 * math.log(n) if intercept else 0.0)
        reference_points = {"mean": rows.mean(axis=0), "median": np.median(rows, axis=0)}
        error = tau * float(np.linalg.norm(root, 2)) * model.error(tau2, noise)
        learned = (noise, tau2, evidence)
        self._set(basis, weights, half, reference_points, names, learned, error)

    def _set(
        self,
        basis: Monomials,
        weights: Any,
        half: Any,
        reference_points: Any,
        names: Names | None,
        learned: Any,
        error: float,
    ) -> None:
        first = 0 if basis.powers[0].any() else 1  # an intercept has a flat prior
        condition = (
            min(float(np.linalg.cond(half[first:, first:])), 1.0 / EPS)
            if len(half) > first
            else 1.0
        )
        options: dict[str, Any] = {
            "feature_names": names,
            "reference_points": reference_points,
            "condition": condition,
            "weights_error": error,
        }
        self.posterior_ = WeightSpacePosterior(basis, weights, root=half, **options)
        self.noise_variance_, self.prior_variance_, self.log_marginal_likelihood_ = map(
            float, learned
        )
        for name in ("coef_", "intercept_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if basis.degree == 1:
            d = basis.n_features
            self.coef_ = weights[-d:] / (1.0 if basis.scale is None else basis.scale)
            origin = np.zeros(d) if basis.origin is None else basis.origin
            self.intercept_ = float((weights[0] if len(weights) > d else 0.0) - origin @ self.coef_)

    def _basis(self, X: np.ndarray) -> Monomials:
        """Return the monomials, in coordinates of order one unless a prior fixes them."""
        try:
            degree = 0 if isinstance(self.degree, bool) else index(self.degree)
        except TypeError:
            degree = 0
        if degree < 1:
            raise InvalidInputError(
                f"degree: expected an integer of 1 or more, got {self.degree!r}"
            )
        d = X.shape[1]
        p = math.comb(d + degree, degree)
        check_memory(
            f"The covariance of {p} monomials",
            (p, p + len(X)),
            "use a lower degree, or fewer features",
            copies=4,
        )
        given = self.prior_mean is not None or self.prior_cov is not None
        origin = scale = None
        if self.fit_intercept and (degree == 1 or not given):
            origin = X.mean(axis=0)
        if not given:
            centred = X if origin is None else X - origin
            size = np.abs(centred).max(axis=0)
            unit = np.where(size > 1e-13 * np.abs(X).max(axis=0), size, 1.0)
            std = unit * np.sqrt(((centred / unit) ** 2).mean(axis=0))
            scale = np.where(std > 0, std, 1.0)
        return Monomials.up_to(degree, d, constant=False, origin=origin, scale=scale)

    def _prior_mean(self, p: int) -> np.ndarray:
        return to_numpy(
            as_vector(
                "prior_mean",
                unlabelled("prior_mean", self.prior_mean),
                length=p,
                unit="numbers (one per feature)",
            )
        )

    def _prior_root(self, p: int) -> np.ndarray:
        if is_frame(self.prior_cov):
            raise InvalidInputError(
                "prior_cov: expected a plain matrix in the order of the features, got a labelled"
                " frame; put it in that order and pass .to_numpy()"
            )
        cov = to_numpy(numbers("prior_cov", self.prior_cov))
        if cov.shape != (p, p):
            raise InvalidInputError(
                f"prior_cov: expected an array of shape {(p, p)} (one row per feature), got"
                f" {cov.shape}"
            )
        symmetric = np.isfinite(cov).all() and np.allclose(cov, cov.T, rtol=1e-10, atol=0.0)
        try:
            if not symmetric:
                raise LinAlgError
            return cholesky(cov.copy())
        except LinAlgError:
            lowest = f", got the eigenvalue {np.linalg.eigvalsh(cov)[0]:.2g}" if symmetric else ""
            raise NotPositiveDefiniteError(
                f"prior_cov: expected a symmetric positive definite matrix{lowest}"
            ) from None

    def _variances(self, model: _Evidence, known: float | None) -> tuple[float, float]:
        """Return τ² and the noise, learned unless given."""
        given = self.prior_cov is not None
        if given and known is not None:
            return 1.0, known
        if model.n < 1 or (model.n < 2 and known is None):
            raise InvalidInputError(
                "X: expected at least 2 rows (3 with an intercept) to learn variances; with"
                " n_samples=1 give prior_cov and noise_variance"
            )
        variance = (float(model.u @ model.u) + model.rest) / model.n
        if variance == 0:
            raise InvalidInputError(
                "y: expected targets that differ, got one value everywhere; give prior_cov and"
                " noise_variance"
            )
        return model.maximise(1.0 if given else None, known, FLOOR * variance)

    def _content(self) -> dict[str, Any]:
        posterior = self.posterior_
        basis = posterior.basis
        arrays = {
            "powers": (basis.powers, ("function", "feature")),
            "weights": (posterior.weights, ("function",)),
            "root": (posterior.root, ("function", "function")),
            "mean": (posterior.reference_points["mean"], ("feature",)),
            "median": (posterior.reference_points["median"], ("feature",)),
        }
        for name in ("origin", "scale"):
            if getattr(basis, name) is not None:
                arrays[name] = (getattr(basis, name), ("feature",))
        return {
            "weights_error": posterior.weights_error,
            "learned": [self.noise_variance_, self.prior_variance_, self.log_marginal_likelihood_],
            "arrays": {
                name: documents.encode(array, dims) for name, (array, dims) in arrays.items()
            },
        }

    def _restore(self, content: Any, names: Names | None) -> None:
        arrays = {name: documents.decode(array) for name, array in content["arrays"].items()}
        basis = Monomials(arrays["powers"], arrays.get("origin"), arrays.get("scale"))
        self.n_features_in_ = basis.n_features
        reference_points = {name: arrays[name] for name in ("mean", "median")}
        learned, error = content["learned"], content.get("weights_error", 0.0)
        weights, root = arrays["weights"], arrays["root"]
        self._set(basis, weights, root, reference_points, names, learned, error)


class _Evidence:
    """log p(y) of y = Ψz + noise, z ~ N(0, τ²I), from singular values; n degrees of freedom."""

    def __init__(self, features: np.ndarray, y: np.ndarray, n: int) -> None:
        U, self.s, self.Vt = np.linalg.svd(features, full_matrices=False)
        self.u = U.T @ y
        self.rest = float(((y - U @ self.u) ** 2).sum())
        self.n = n

    def value(self, tau2: float, noise: float) -> float:
        """Return log p(y)."""
        variances = tau2 * self.s**2 + noise
        rank = min(len(self.s), self.n)
        logs = (
            np.log(variances[:rank]).sum()
            + (self.n - rank) * math.log(noise)
            + self.n * math.log(2.0 * math.pi)
        )
        return float(-0.5 * ((self.u**2 / variances).sum() + self.rest / noise + logs))

    def mean(self, tau2: float, noise: float) -> np.ndarray:
        """Return the posterior mean of z/τ."""
        return self.Vt.T @ (math.sqrt(tau2) * self.s / (tau2 * self.s**2 + noise) * self.u)

    def error(self, tau2: float, noise: float) -> float:
        """Return a bound on the length of the rounding error of `mean`.

        z/τ is the least-squares solution of [Ψτ/σ; I] z/τ = [y/σ; 0]. With singular values σ₁ … σₚ
        of that matrix and its residual r, rounding changes it by ε(κ‖z/τ‖ + σ₁‖r‖/σₚ²), κ = σ₁/σₚ:
        where columns are nearly equal and the data noisy, the second part is κ times the first.
        """
        squares = tau2 * self.s**2 / noise + 1.0
        seen = len(self.s) == self.Vt.shape[1]  # else some weights have no data
        largest = math.sqrt(squares.max(initial=1.0))
        smallest = math.sqrt(squares.min()) if seen and len(squares) else 1.0
        solution = self.mean(tau2, noise)
        length = math.sqrt(float(solution @ solution))
        missed = float(((self.u / squares) ** 2).sum() + self.rest) / noise
        residual = math.sqrt(missed + length**2)
        amplified = largest / smallest * length + largest * residual / smallest**2
        return 2.0 * EPS * amplified

    def maximise(
        self, tau2: float | None, noise: float | None, floor: float
    ) -> tuple[float, float]:
        """Return the most likely τ² and noise, each unless given.

        The search is over one number, on a grid and then by Brent's method. That number is the
        noise where τ² is given, else the ratio ρ = τ²/σ². For a given ratio the best noise is
        known, σ² = (Σ u²/(1 + ρs²) + rest)/n.
        """

        def at(log: float) -> tuple[float, float]:
            number = math.exp(log)
            if tau2 is not None:
                return tau2, max(number, floor)
            best = noise or max(
                (float((self.u**2 / (1.0 + number * self.s**2)).sum()) + self.rest) / self.n, floor
            )
            return number * best, best

        # Constant features carry no information about their weights.
        if tau2 is None and not self.s.any():
            return 1.0, noise or max((float(self.u @ self.u) + self.rest) / self.n, floor)
        size = (
            floor / RATIOS[0]
            if tau2 is not None
            else self.n / max(float(self.s.max(initial=0.0)) ** 2, 1e-300)
        )
        grid = np.log(size * RATIOS)
        values = [self.value(*at(point)) for point in grid]
        k = int(np.argmax(values))
        ends = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
        found = minimize_scalar(
            lambda x: -self.value(*at(x)), bounds=ends, method="bounded", options={"xatol": 1e-10}
        )
        return at(found.x if -found.fun > values[k] else grid[k])
