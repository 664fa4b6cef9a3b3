"""Integration over hyperparameters: a mixture of posteriors in place of the most likely one.

With few rows the hyperparameters θ (logarithms) are far from known, and intervals that take the
best ones for granted are far too narrow. Here

    p(f | y) = Σ_families p(family | y) ∫ p(f | θ, y) p(θ | y) dθ

is a mixture of few Gaussian processes. For each family of kernels the mode θ̂ of p(y | θ) p(θ) and
the curvature H of its logarithm there give Laplace's evidence, log p(y, θ̂) + ½ k log 2π − ½ log|H|,
by which families are weighted, and points θ̂ + f R z with RRᵀ = H⁻¹, where z are quasi-random normal
numbers in pairs ±z, the same in every run. A point's weight is p(y, θ)/p(y, θ̂) exp(½ zᵀz), at most
5, so that one point cannot decide. Points whose covariance is singular are dropped and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from gpattr._core.array import to_numpy
from gpattr.estimators.evidence.marginal_likelihood import NOISE, OPTIONS, Search, Values
from gpattr.estimators.hyperparameters import trainable
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError
from gpattr.kernels import Kernel, Select
from gpattr.posteriors import MixturePosterior, Posterior

POINTS, FEWEST = 32, 8  # models of a mixture, and of one of very many rows
WIDER = 1.1  # points are spread a little wider than the normal approximation
HEAVIEST = 5.0  # weight of a point over the mode's weight
NEGLIGIBLE = 1e-3  # share of a family, or weight of a point, that is left out
STEP = 1e-3  # of differences of gradients
SINGULAR = (
    "noise: the covariance of the targets is singular at every point tried; increase"
    " noise_variance or its lower bound"
)


@dataclass(frozen=True)
class Peak:
    """A mode θ̂ (k,) of one ``family``, with the ``root`` R of the inverse curvature there.

    ``evidence`` is Laplace's approximation of log p(y | family).
    """

    family: str
    search: Search
    mode: np.ndarray
    root: np.ndarray
    evidence: float

    @classmethod
    def at_best(cls, family: str, search: Search) -> Peak:
        """Return the peak at the best point that a search with a prior has found."""
        prior: Any = search.prior
        mode, value = search.best, search.best_value
        assert mode is not None
        # In units of the prior, in which a direction that the data say nothing about has length 1.
        C = np.linalg.cholesky(prior.covariance)
        lengths, directions = np.linalg.eigh(C.T @ _curvature(search, mode) @ C)
        lengths = np.maximum(lengths, 1.0)  # never wider than the prior
        logs = float(np.log(lengths).sum()) - 2.0 * float(np.log(C.diagonal()).sum())
        evidence = value + 0.5 * len(mode) * math.log(2.0 * math.pi) - 0.5 * logs
        return cls(family, search, mode, C @ (directions / np.sqrt(lengths)), evidence)

    def points(self, n: int) -> list[tuple[float, Kernel, Any]]:
        """Return n points, n odd: log p(θ) + ½ zᵀz, kernel and noise; the first is the mode."""
        prior: Any = self.search.prior
        z = normal_points(n, len(self.mode))
        theta = (self.mode + WIDER * z @ self.root.T).clip(*self.search.limits.T)
        return [
            (prior(at)[0] + 0.5 * float(row @ row), *self.search.unpack(at)[:2])
            for row, at in zip(z, theta, strict=True)
        ]


def peaks_of(
    searches: Mapping[str, tuple[Search, Sequence[Values]]], report: Callable[[str], None]
) -> list[Peak]:
    """Return the peak of each family, from its search and starts.

    A later family starts at the best point of the first too, if it has the same hyperparameters.
    """
    first: np.ndarray | None = None
    for family, (search, starts) in searches.items():
        report(family)
        points = [search.pack(start) for start in starts]
        if first is not None and len(first) == len(search.limits):
            points = [first, *points]
        for point in points:
            search.climb(point, lambda _: None, OPTIONS)
        first = search.best if first is None else first
    found = {
        family: search
        for family, (search, _) in searches.items()
        if math.isfinite(search.best_value)
    }
    if not found:
        raise NotPositiveDefiniteError(SINGULAR)
    return [Peak.at_best(family, search) for family, search in found.items()]


class Component(NamedTuple):
    """One model of a mixture: its ``posterior`` with this ``kernel`` and ``noise``."""

    weight: float
    family: str
    kernel: Kernel
    noise: Any
    posterior: Any


@dataclass(frozen=True)
class Integrated:
    """The ``components`` of a mixture, whose weights sum to 1.

    ``dropped`` is the number of points at which the covariance could not be factorised.
    """

    components: tuple[Component, ...]
    dropped: int = 0

    @classmethod
    def of_one(cls, kernel: Kernel, noise: Any, posterior: Any) -> Integrated:
        """Return a single model."""
        return cls((Component(1.0, type(kernel).__name__, kernel, noise, posterior),))

    def map(self, condition: Callable[[Kernel, Any], Any]) -> Integrated:
        """Return the same models with other posteriors, ``condition(kernel, noise)``."""
        parts = (
            part._replace(posterior=condition(part.kernel, part.noise)) for part in self.components
        )
        return replace(self, components=tuple(parts))

    @property
    def heaviest(self) -> Component:
        """The component with the largest weight."""
        return max(self.components, key=lambda component: component.weight)

    @property
    def posterior(self) -> Posterior:
        """The mixture, or its only component."""
        if len(self.components) == 1:
            return self.components[0].posterior
        weights = [component.weight for component in self.components]
        return MixturePosterior([part.posterior for part in self.components], weights)

    def frame(self, names: Sequence[str | int]) -> Any:
        """Return one row for each component: family, weight and hyperparameters.

        ``names`` are the features' names, for hyperparameters with one value for each.
        """
        import pandas as pd

        frame = pd.DataFrame(
            [
                {"family": part.family, "weight": part.weight, **_columns(part, names)}
                for part in self.components
            ]
        )
        frame.attrs["dropped"] = self.dropped
        return frame


def integrate_over(
    peaks: Sequence[Peak],
    outside: Callable[[Kernel, Any], tuple[Kernel, Any]],
    condition: Callable[[Kernel, Any], Any],
    n_points: int,
) -> Integrated:
    """Return the mixture of about ``n_points`` posteriors ``condition(kernel, noise)``.

    ``outside`` returns a kernel and a noise in the user's units. The posteriors have a
    ``log_marginal_likelihood``.
    """
    evidence = np.array([peak.evidence for peak in peaks])
    shares = np.exp(evidence - evidence.max())
    shares = np.where(shares < NEGLIGIBLE * shares.sum(), 0.0, shares)
    shares = shares / shares.sum()
    components, dropped = [], 0
    for peak, share in zip(peaks, shares.tolist(), strict=True):
        if not share:
            continue
        found, logs = [], []
        for log, *inside in peak.points(1 + 2 * max(0, round(0.5 * (n_points * share - 1.0)))):
            kernel, noise = outside(*inside)
            try:
                posterior = condition(kernel, noise)
            except (NotPositiveDefiniteError, InvalidInputError):
                dropped += 1
                continue
            found.append(Component(0.0, peak.family, kernel, noise, posterior))
            logs.append(log + posterior.log_marginal_likelihood)
        if found:
            weights = np.exp(np.minimum(np.array(logs) - logs[0], math.log(HEAVIEST)))
            weights *= share / weights.sum()
            components += [
                part._replace(weight=w) for part, w in zip(found, weights.tolist(), strict=True)
            ]
    if not components:
        raise NotPositiveDefiniteError(SINGULAR)
    least = NEGLIGIBLE * max(part.weight for part in components)
    kept = [part for part in components if part.weight >= least]
    total = sum(part.weight for part in kept)
    return Integrated(tuple(part._replace(weight=part.weight / total) for part in kept), dropped)


def normal_points(n: int, k: int) -> np.ndarray:
    """Return n standard normal vectors, (n, k), n odd: zero, and pairs ±z of quasi-random ones."""
    from scipy.stats import qmc

    half = n // 2
    options: dict[str, Any] = {"seed": np.random.default_rng(0)}  # `rng` in newer SciPy
    uniform = qmc.Sobol(k, **options).random_base2(max(half - 1, 0).bit_length())[:half]
    z = ndtri(uniform.clip(1e-9, 1.0 - 1e-9))
    return np.concatenate([np.zeros((1, k)), z, -z])


def affordable_points(n: int) -> int:
    """Return the number of models in a mixture for n training rows."""
    return max(FEWEST, min(POINTS, 16_000 // n))


def _curvature(search: Search, mode: np.ndarray) -> np.ndarray:
    """Return −∇² of the objective at the mode, (k, k), from differences of its gradient.

    Where the covariance is singular beside the mode, the prior alone says how sharp it is. At a
    bound, beyond which the objective would still rise by g, it falls off as exp(−g|θ − θ̂|), which
    a normal distribution with the precision 2πg² has the integral of.
    """
    prior: Any = search.prior
    k, (lower, upper) = len(mode), search.limits.T
    slope = search(mode)[1]
    held = ((mode <= lower) & (slope > 0)) | ((mode >= upper) & (slope < 0))
    H = np.linalg.inv(prior.covariance)
    for i in range(k):
        beside = mode.copy()
        beside[i] += STEP if mode[i] + STEP <= upper[i] else -STEP
        search.walls = 0
        row = (search(beside)[1] - slope) / (beside[i] - mode[i])
        if not search.walls and np.isfinite(row).all():
            H[i] = row
    H = 0.5 * (H + H.T)
    H[held], H[:, held] = 0.0, 0.0
    H[held, held] = np.maximum(2.0 * np.pi * slope[held] ** 2, 1.0)
    return H


def _seen_columns(
    kernel: Kernel, names: list[str | int], prefix: str = ""
) -> Iterator[tuple[str, list[str | int]]]:
    """Yield the prefix of each part of a kernel, and the names of the columns that it sees."""
    yield prefix, names
    inside = [names[i] for i in kernel.features] if isinstance(kernel, Select) else names
    for name, part in kernel.parts().items():
        yield from _seen_columns(part, inside, f"{prefix}__{name}".removeprefix("__"))


def _columns(part: Component, names: Sequence[str | int]) -> dict[str, Any]:
    """Return the hyperparameters of a component by column."""
    columns: dict[str, Any] = {}
    seen = dict(_seen_columns(part.kernel, list(names)))
    for name, value in trainable(part.kernel).items():
        own = seen[name.rpartition("__")[0]]
        if np.ndim(part.kernel.get_params()[name]) == 0:
            columns[name] = float(value[0])
        else:
            of = own if len(own) == len(value) else range(len(value))
            columns |= {f"{name}[{one}]": float(v) for one, v in zip(of, value, strict=True)}
    if part.noise is not None and np.ndim(to_numpy(part.noise)) == 0:
        columns[NOISE] = float(part.noise)
    return columns
