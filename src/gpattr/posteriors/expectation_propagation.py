"""Binary classification by expectation propagation: a Gaussian with the right marginal moments.

Each label's probability σ(±f) is replaced by a site exp(νf − ½τf²), such that with it and with the
probability itself the Gaussian of all other sites has the same mean and variance. With
L = chol(I + τ^½ K τ^½) and α = (I − τ^½(LLᵀ)⁻¹τ^½K)(ν − τm):

    E[f(x)]          = m(x) + k(x, X) α
    Cov[f(x), f(x')] = k(x, x') − T(x)ᵀT(x'),      T(x) = L⁻¹ τ^½ k(X, x)

(Rasmussen and Williams, section 3.6). Where classes separate well, the mode lies far from the mean
and Laplace's approximation calls every probability too uncertain; this one does not.

All sites are renewed together, by half a step. That map contracts slowly, and is accelerated by
Anderson's method: by the combination of the last steps whose residuals cancel best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpattr._core.array import EPS, Array, product, solve_cholesky, solve_lower_rows, to_numpy
from gpattr._core.validation import beside
from gpattr.posteriors.classification import ClassificationPosterior, factor_at
from gpattr.posteriors.laplace import LaplacePosterior
from gpattr.special.logistic import log_slopes

STEPS, CONVERGED = 300, 1e-9  # relative change of the sites
DAMPING, MEMORY = 0.5, 10  # steps that are combined
WORSE = 1.5  # times the least residual, where the memory is cleared
NO_VARIANCE = 1e-100
SMALL = 1e-2  # of a site: its changes count as absolute


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ExpectationPropagationPosterior(ClassificationPosterior):
    """The latent function f ~ GP(mean, kernel) given labels y, 0 or 1, with p(y = 1) = σ(f).

    ``X`` (m, d) may be a frame, whose column names are kept. ``log_marginal_likelihood`` is an
    approximation of it by the same sites. Where none are found, at prior standard deviations of
    hundreds of log odds, Laplace's approximation serves. Predictions and attributions are of f, on
    the scale of log odds; ``label`` names the classes, for explanations to print.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import SquaredExponential
    >>> from gpattr.posteriors import ExpectationPropagationPosterior
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> posterior = ExpectationPropagationPosterior(SquaredExponential(), X, [0, 0, 1, 1])
    >>> posterior.predict([[-1.0], [1.0]]).round(1)  # log odds
    array([-0.6,  0.6])
    """

    @staticmethod
    def _approximated(K: Array, y: Array, mean: Array) -> tuple[Array, Array, Array, float]:
        found = sites(*map(to_numpy, (K, y, mean)))
        if found is None:
            return LaplacePosterior._approximated(K, y, mean)
        tau, nu, evidence = found
        scale, pull = (beside("y", each, K) for each in (np.sqrt(tau), nu - tau * to_numpy(mean)))
        L = factor_at(K, scale)
        return pull - scale * solve_cholesky(L, scale * product(K, pull)), scale, L, evidence


def sites(
    K: np.ndarray, y: np.ndarray, mean: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Return τ and ν, (n,), and log p(y), or None if no sites were found.

    That happens at prior standard deviations of hundreds of log odds.
    """
    sign, now, least = 2.0 * y - 1.0, np.zeros((2, len(y))), np.inf
    enough = CONVERGED + EPS * float(K.diagonal().max())  # which rounding allows
    places: list[np.ndarray] = []
    residuals: list[np.ndarray] = []
    for _ in range(STEPS):
        new, evidence = _renewed(K, sign, mean, now)
        residual = new - now
        size = float((np.abs(residual) / (SMALL + np.abs(now) + np.abs(new))).max())
        if size <= enough:
            return now[0], now[1], evidence
        if size > WORSE * least:
            places, residuals, least = [], [], size
        least = min(least, size)
        places = [*places[-MEMORY:], now + DAMPING * residual]
        residuals = [*residuals[-MEMORY:], residual]
        now = _combined(places, residuals)
        now[0] = np.where(now[0] > 0.0, now[0], places[-1][0])
    return None


def _renewed(
    K: np.ndarray, sign: np.ndarray, mean: np.ndarray, now: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return sites updated by the Gaussian of all others, (2, n), and log p(y) with the old ones.

    That Gaussian, of mean m and variance v at a row, takes a site (τ, ν) by log E[σ(±f)]:

        τ = −h/(1 + vh),   ν = (g − mh)/(1 + vh),      g, h its first two derivatives by m
    """
    tau, nu = now
    scale, pull = np.sqrt(tau), nu - tau * mean
    L = factor_at(K, scale)
    T = solve_lower_rows(L, K * scale)  # rows k(xₙ, X)τ^½L⁻ᵀ
    prior = np.maximum(K.diagonal(), NO_VARIANCE)
    var = np.maximum(prior - (T**2).sum(axis=1), EPS * prior)
    shift = product(K, pull) - product(T, product(T.T, pull))
    # Without its own site a row has more variance, and at most the prior's.
    v = 1.0 / np.maximum(1.0 / var - tau, 1.0 / prior)
    m = v * ((mean + shift) / var - nu)
    log_p, g, h = log_slopes(sign * m, np.sqrt(v))
    share = np.maximum(1.0 + v * h, EPS)
    new = np.stack([-h / share, (sign * g - m * h) / share])
    kept = 1.0 + v * tau
    evidence = (
        (log_p + 0.5 * np.log(kept) - 0.5 * (v * nu**2 + 2.0 * m * nu - tau * m**2) / kept).sum()
        + (nu * mean - 0.5 * tau * mean**2 + 0.5 * pull * shift).sum()
        - np.log(L.diagonal()).sum()
    )
    return new, float(evidence)


def _combined(places: list[np.ndarray], residuals: list[np.ndarray]) -> np.ndarray:
    """Return the affine combination of places whose combined residual is least."""
    last, newest = residuals[-1].ravel(), places[-1]
    if len(places) == 1:
        return newest
    changes = np.diff([each.ravel() for each in residuals], axis=0).T
    share = np.linalg.lstsq(changes, last, rcond=1e-10)[0]
    return newest - np.tensordot(share, np.diff(places, axis=0), axes=1)
