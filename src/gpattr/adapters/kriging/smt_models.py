"""Kriging models of SMT: KRG, KPLS, KPLSK and GEKPLS, and the sparse SGP.

SMT standardises inputs and targets and works with correlations. With u = (x − X_offset)/X_scale,

    f(x) = y_mean + y_std (φ(u)ᵀβ + z(u)),      Cov[y_std z] = σ² R,

where β is estimated, and its variances contain the uncertainty of β: the prior on β is flat. σ²
(``sigma2``) is the variance of the process in squared units of y, also estimated, and then taken
as known. ``nugget`` and noise are added to the correlations, and so are shares of σ².
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add, mul
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from gpattr.adapters.foreign import one_or_several, with_note
from gpattr.adapters.kernels import product_of, product_of_squares
from gpattr.adapters.registry import Adapted
from gpattr.adapters.translation import Here, KernelTable, Rule, combined, rule
from gpattr.bases import Monomials
from gpattr.exceptions import NotFittedError, UnsupportedModelError
from gpattr.kernels import Constant, Kernel, Matern12, Matern32, Matern52, Periodic
from gpattr.means import Polynomial
from gpattr.posteriors import (
    AffinePosterior,
    ExactPosterior,
    Posterior,
    SparsePosterior,
)

DEGREES = {"constant": 0, "linear": 1, "quadratic": 2}
SOLVED = "variances of universal kriging; those that SMT predicts neglect a part of the trend's"


def kriging(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `KRG`, `KPLS`, `KPLSK` or `GEKPLS` in the user's units."""
    _require_trained(model)
    if not model.is_continuous:
        raise UnsupportedModelError(
            "design_space: SMT's integers and categories are not supported; use float variables"
        )
    if model.options["is_ri"]:
        raise UnsupportedModelError(
            "is_ri: reinterpolation takes the mean from one process and the variance from another;"
            " train with is_ri=False"
        )
    U = np.asarray(model.X_norma, dtype=np.float64)
    n, d = U.shape
    correlation = KERNELS.translate(model.corr, d, model)
    # SMT takes every correlation of a point with itself as 1; what a kernel lacks of it is noise.
    missing = 1.0 - float(correlation.diagonal(U[:1])[0])
    if missing < -1e-12:
        raise UnsupportedModelError(
            f"corr: expected a correlation, 1 at distance 0, got {1.0 - missing:g} there"
        )
    missing = max(missing, 0.0)
    nugget = 0.0 if model._eval_noise else float(model.options["nugget"])
    noise = nugget + missing + np.ravel(np.asarray(model.optimal_noise, dtype=np.float64))
    powers = Monomials.up_to(DEGREES[model.options["poly"]], d, constant=True).powers
    mean = Polynomial(np.zeros(len(powers)), powers, covariance="flat")
    targets = model.y_mean + model.y_std * np.reshape(model.y_norma, (n, -1))
    sigma2 = np.ravel(model.optimal_par["sigma2"]).tolist()
    C, rows = np.tril(model.optimal_par["C"]), model.X_offset + U * model.X_scale
    posteriors: list[Posterior] = [
        AffinePosterior(
            ExactPosterior.from_state(
                s * correlation, U, y, noise=s * noise, factor=s**0.5 * C, mean=mean
            ),
            model.X_offset,
            model.X_scale,
        )
        for s, y in zip(sigma2, targets.T, strict=True)
    ]

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = np.reshape(model._predict_values(points.copy()), (len(points), -1))
        return values, (_variances(model, points) - missing)[:, None] * np.asarray(sigma2)

    aside = rows[:8] + 0.1 * rows.std(axis=0)
    theirs = np.reshape(model._predict_variances(aside), (len(aside), -1))[:, 0] / sigma2[0]
    if np.abs(theirs - _variances(model, aside)).max() > 1e-6 * theirs.max():
        posteriors = [with_note(posterior, SOLVED) for posterior in posteriors]
    return Adapted(one_or_several(posteriors), predict, rows)


def _variances(model: Any, points: np.ndarray) -> np.ndarray:
    """Return variances as shares of σ², from SMT's factors: 1 − |ρ|² + |G⁻ᵀ(F̃ᵀρ − φ)|², ρ = C⁻¹r.

    SMT itself solves with Gᵀ as if it were upper triangular, so that only its diagonal counts. For
    a constant trend it has nothing else.
    """
    par, n = model.optimal_par, len(points)
    u = (points - model.X_offset) / model.X_scale
    differences = (u[:, None, :] - model.X_norma).reshape(-1, u.shape[1])
    r = model.corr(model._componentwise_distance(differences)).reshape(n, -1)
    rho = solve_triangular(par["C"], r.T, lower=True)
    phi = model._regression_types[model.options["poly"]](u)
    left = solve_triangular(par["G"].T, par["Ft"].T @ rho - phi.T, lower=True)
    return 1.0 - (rho**2).sum(axis=0) + (left**2).sum(axis=0)


def sparse(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of an `SGP`, in the units of its data: it scales neither inputs nor y.

    FITC is the sparse posterior of targets with the noise η² + k(xₙ, xₙ) − qₙₙ, what the inducing
    points do not tell about xₙ.
    """
    _require_trained(model)
    X, y = (np.asarray(part, dtype=np.float64) for part in model.training_points[None][0])
    Z = np.asarray(model.Z, dtype=np.float64)
    variance, nugget = float(model.optimal_sigma2), float(model.options["nugget"])
    noise = float(np.ravel(model.optimal_noise)[0])
    rates = np.sqrt(2.0 * np.ravel(model.optimal_theta).astype(np.float64))
    kernel = variance * product_of_squares(rates)
    K = kernel(Z, Z) + nugget * np.eye(len(Z))
    fitc = model.options["method"] == "FITC"
    if fitc:
        T = solve_triangular(np.linalg.cholesky(K), kernel(Z, X), lower=True)
        levels: Any = noise + np.maximum(kernel.diagonal(X) - (T**2).sum(axis=0), 0.0)
    else:
        levels = max(noise, nugget)
    posterior: Posterior = SparsePosterior.fit(kernel, Z, X, y[:, 0], noise=levels, jitter=nugget)
    woodbury = np.asarray(model.woodbury_data["inv"], dtype=np.float64)
    inverse = np.linalg.inv(K)
    # K⁻¹ − W must be positive: it is the variance that the data leave.
    if np.trace(K @ (inverse - woodbury)) < 0:
        woodbury = 2.0 * inverse - woodbury
        posterior = with_note(posterior, "variances that SMT predicts lack a sign, these do not")

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k = kernel(points, Z)
        variances = kernel.diagonal(points) - ((k @ woodbury) * k).sum(axis=1)
        return np.ravel(model._predict_values(points.copy())), variances

    return Adapted(posterior, predict, X)


def _require_trained(model: Any) -> None:
    if not hasattr(model, "optimal_theta"):
        raise NotFittedError(
            f"model: this {type(model).__name__} is not trained yet; call set_training_values and"
            " train first"
        )


def _exponential(corr: Any, here: Here) -> Kernel:
    """exp(−Σ θᵢ|δᵢ|^p): squar_exp for p = 2, abs_exp for p = 1.

    Of KPLS θ has a component for each of a few directions; θᵢ is their sum, weighted with the
    directions' coefficients to the power p.
    """
    model = here.state
    power = float(getattr(model, "_pow_exp_power", None) or model.options["pow_exp_power"])
    theta = np.ravel(corr.theta).astype(np.float64)
    if hasattr(model, "coeff_pls") and model.name != "KPLSK":
        theta = np.abs(model.coeff_pls) ** power @ theta
    if power == 2.0:
        return product_of_squares(np.sqrt(2.0 * theta))
    if power == 1.0:
        return product_of(Matern12, theta)
    raise here.refusal(
        f"functions of SMT's pow_exp with the power {power:g} have no gradients; use squar_exp,"
        " matern52 or matern32"
    )


def _periodic(corr: Any, here: Here) -> Kernel:
    """exp(−Σ θᵢ sin²(θ'ᵢδᵢ)): ℓᵢ² = 2/θᵢ and the period π/θ'ᵢ."""
    strength, rate = np.split(np.ravel(corr.theta).astype(np.float64), 2)
    return Periodic(np.sqrt(2.0 / strength), np.pi / rate)


def _matern(kind: Callable[[float], Kernel]) -> Rule:
    """Return the rule for a product of Matérn kernels, one for each feature."""
    return lambda corr, here: product_of(kind, np.ravel(corr.theta))


KERNELS = KernelTable(
    "SMT's",
    {
        "PowExp": _exponential,
        "SquarSinExp": _periodic,
        "Matern32": _matern(Matern32),
        "Matern52": _matern(Matern52),
        "Constant": rule(Constant, variance="theta"),
        "_Constant": rule(Constant, variance="param"),
        "Sum": combined(add, "corr1", "corr2"),
        "Product": combined(mul, "corr1", "corr2"),
    },
    argument="corr",
)
