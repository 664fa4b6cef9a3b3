"""The state of a random-feature model, its posterior, and the variation due to chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr._core.validation import Names, column_names
from gpattr.bases import Fourier
from gpattr.estimators.evidence.random_features import amplitudes
from gpattr.estimators.evidence.weights import WeightFit, fit_weights
from gpattr.estimators.sums import RowSums, Sums
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Radial
from gpattr.means import Constant, Zero
from gpattr.posteriors import MixturePosterior, Posterior, WeightSpacePosterior

LARGEST = 1e140  # targets: beyond, their squares overflow


@dataclass(frozen=True)
class Learned:
    """The values learned so far; ``chance`` comes from `chance_of`, nan for several models."""

    posterior: Posterior
    kernel: Radial
    noise: float
    constant: float
    log_marginal_likelihood: float
    chance: float


@dataclass
class Stream:
    """Settings fixed when the first row arrives, and the sums since; later options do not apply.

    ``draws`` are standard frequencies; ``noise`` is given (``known``), learned, or None where it is
    to follow from all rows; ``like`` is an empty array of the library and device of the first rows;
    ``streamed`` is whether rows came in chunks.
    """

    draws: list[np.ndarray]
    kernel: Radial
    noise: float | None
    known: bool
    names: Names | None
    like: Array
    free_mean: bool
    optimize: bool | str
    streamed: bool = False
    median: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.rows = RowSums(self.bases_at, centre_targets=self.free_mean)

    def basis_at(self, origin: Array, member: int = 0) -> Fourier:
        """Return the waves of one model, which start at ``origin``."""
        return Fourier(self.draws[member] / np.asarray(self.kernel.lengthscale), origin)

    def bases_at(self, origin: Array) -> list[Fourier]:
        """Return the waves of every model."""
        return [self.basis_at(origin, member) for member in range(len(self.draws))]

    def add(self, X: Array, y: Array) -> None:
        """Add rows X (r, d) with targets y (r,), or raise without adding any.

        Rows beyond the precision of the waves or of the sums raise.
        """
        check_size(float(abs(y).max()))
        self.basis_at(self.rows.origin(X)).check_rows("X", X)
        self.rows.add(X, y)

    def given(
        self,
        kernel: Radial,
        noise: float,
        bases: Sequence[Fourier],
        sums: list[Sums],
        shift: float,
        inputs_mean: np.ndarray,
    ) -> Learned:
        """Return the posterior given these sums, kernel and noise; targets are less ``shift``."""
        posteriors, constants, evidences, chance = [], [], [], math.nan
        reference_points = {"mean": inputs_mean} | (
            {} if self.median is None else {"median": self.median}
        )
        for basis, part in zip(bases, sums, strict=True):
            variances = amplitudes(kernel, len(self.draws[0]), part.ones)
            fitted = fit_weights(part, variances, noise, free_mean=self.free_mean)
            if len(sums) == 1 and len(self.draws[0]) > 1:
                chance = chance_of(part, fitted, kernel, free_mean=self.free_mean)
            mean = Constant(shift + fitted.constant) if self.free_mean else Zero()
            posteriors.append(
                WeightSpacePosterior(
                    basis,
                    fitted.weights,
                    precision_factor=fitted.precision_factor,
                    mean=mean,
                    feature_names=self.names,
                    reference_points=reference_points,
                )
            )
            constants.append(shift + fitted.constant)
            evidences.append(fitted.log_marginal_likelihood)
        posterior = posteriors[0] if len(posteriors) == 1 else MixturePosterior(posteriors)
        return Learned(posterior, kernel, noise, float(np.mean(constants)), evidences[0], chance)


def check_size(largest: float) -> None:
    """Raise `InvalidInputError` where the square of the largest target would overflow."""
    if not largest < LARGEST:
        raise InvalidInputError(
            f"y: expected targets whose square float64 can hold, got {largest:.0e}; rescale them"
        )


def chance_of(sums: Sums, fit: WeightFit, kernel: Radial, *, free_mean: bool) -> float:
    """Return how much predictions vary between draws of frequencies, in reported std.

    Each half of the frequencies makes a model of its own. They differ by δ(x) = c₁ − c₂ + φ(x)ᵀd
    with d = (w₁, −w₂), and the mean of a model with all frequencies varies by a quarter of δ²
    between draws. With the rows' sums this is, over all rows,

        Σδ² = n(c₁ − c₂)² + 2(c₁ − c₂)1ᵀΦd + dᵀΦᵀΦd,      Σ var = σ²(p − tr B⁻¹)
    """
    xp, whole = namespace(sums.gram), sums.whole_gram()
    M = len(whole) // 2
    h = M // 2
    d, constants = xp.zeros(2 * M), []
    for first, sign in ((0, 1.0), (h, -1.0)):
        here = xp.concatenate(
            [xp.arange(2 * M)[start + first : start + first + h] for start in (0, M)]
        )
        part = replace(
            sums, gram=whole[here][:, here], ones=sums.ones[here], cross=sums.cross[here]
        )
        half = fit_weights(part, amplitudes(kernel, h, part.ones), fit.noise, free_mean=free_mean)
        d[here] = sign * half.weights
        constants.append(half.constant)
    shift = constants[0] - constants[1]
    between = sums.n * shift**2 + 2.0 * shift * float(sums.ones @ d) + float(d @ (whole @ d))
    var = fit.noise * (2 * M - float(fit.inverse().diagonal().sum()))
    return math.sqrt(max(between, 0.0) / 4.0 / var)


def in_order(X: Any, expected: Names | None) -> Any:
    """Return a frame with its columns in the order of the first one."""
    names = column_names(X)
    if expected is None or names is None or names == expected:
        return X
    if set(names) != set(expected) or len(names) != len(expected):
        raise InvalidInputError(
            f"X: expected the columns {list(expected)} of the first chunk, got {list(names)}"
        )
    return X[[X.columns[names.index(name)] for name in expected]]
