"""Training of exact models: the evidence, its hyperparameters, their bounds, starts and units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr.estimators.evidence.marginal_likelihood import (
    OPTIONS,
    Search,
    Values,
    maximise,
    without_warning,
)
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.integration import (
    SINGULAR,
    Component,
    Integrated,
    integrate_over,
    peaks_of,
)
from gpattr.estimators.priors import VARIANCE_SPREAD, Prior, Term, prior_terms, redundant
from gpattr.estimators.search_space import Units, scaled, std_of
from gpattr.exceptions import NotPositiveDefiniteError
from gpattr.kernels import Constant, Kernel, Matern32, Matern52, Radial, SquaredExponential, Sum
from gpattr.means import Constant as ConstantMean
from gpattr.means import Mean, Polynomial
from gpattr.posteriors import ExactPosterior

FAMILIES: dict[str, type[Radial]] = {
    kind.__name__: kind for kind in (SquaredExponential, Matern52, Matern32)
}
# Functions of a Matérn 3/2 process have no second derivatives, and so no integrated Hessians;
# without them intervals hold as often, within half a per cent.
DEFAULT_FAMILIES = {name: FAMILIES[name] for name in ("SquaredExponential", "Matern52")}
# The most rows at which further starts, and starts of their own for later families, are worth it.
FEW_ROWS = 300
NEAR = 1e-4  # relative gain of a step that ends a search for a model that is only judged


@dataclass(frozen=True)
class Training:
    """The problem of learning from data, in the ``units`` of training.

    ``objective(kernel, noise)`` is the evidence of rows ``objective.X`` with its gradient; training
    starts from ``kernel`` and ``noise`` (None where there is none to learn, or it is ``known``, in
    the user's units), and from each of ``starts``, within ``bounds``; ``variance`` is the targets'
    variance, and ``spread`` how far the logarithm of a kernel's may be from it.
    """

    units: Units
    objective: Any
    kernel: Kernel
    noise: float | None
    known: Any
    bounds: dict[str, np.ndarray]
    starts: list[Values]
    variance: float
    spread: float = VARIANCE_SPREAD

    def outside(self, kernel: Kernel, noise: Any) -> tuple[Kernel, Any]:
        """Return kernel and noise in the user's units."""
        level = self.known if noise is None else noise * self.units.unit**2
        return scaled(kernel, self.units, inwards=False), level

    def integrated(
        self,
        families: Mapping[str, type[Radial] | None],
        condition: Callable[[Kernel, Any], Any],
        n_points: int,
        *,
        priors: Mapping[str, Term] | None = None,
        report: Callable[[str], None] = lambda family: None,
    ) -> Integrated:
        """Return the mixture of the posteriors ``condition(kernel, noise)``, in the user's units.

        A family is a class of kernels in place of ``kernel``'s class, or None for ``kernel`` as it
        is. ``priors`` replace the default ones.
        """
        few = len(self.objective.X) <= FEW_ROWS
        searches: dict[str, tuple[Search, list[Values]]] = {}
        for family, kind in families.items():
            search = self._search(kind, priors or {})
            prior: Any = search.prior
            middle = _values(search, prior.mean)
            starts = [{name: start[name] for name in search.names} for start in self.starts]
            searches[family] = search, ([] if searches else starts) + ([middle] if few else [])
        peaks = peaks_of(searches, report)
        return integrate_over(peaks, self.outside, condition, n_points)

    def near(self, kernel: Kernel, *, prior: bool) -> tuple[Kernel, Any]:
        """Return the most likely kernel and noise, searched from this kernel, in its family.

        Kernels are in the user's units; a search with a ``prior`` has the default one. It ends
        where a step gains less than 1e-4, relatively: predictions are judged by it, nothing more.
        """
        inside = scaled(kernel, self.units, inwards=True)
        values = trainable(inside)
        own = replace(self, kernel=inside, starts=[{name: values[name] for name in self.bounds}])
        if not prior:
            with without_warning():
                found = maximise(
                    self.objective, inside, self.noise, self.bounds, own.starts, ftol=NEAR
                )
            return self.outside(*found)
        search = own._search(None, {})
        search.climb(search.pack(own.starts[0]), lambda _: None, OPTIONS | {"ftol": NEAR})
        if search.best is None:
            raise NotPositiveDefiniteError(SINGULAR)
        return self.outside(*search.unpack(search.best))

    def _search(self, kind: type[Radial] | None, priors: Mapping[str, Term]) -> Search:
        kernel = self.kernel if kind is None else in_family(self.kernel, kind)
        superfluous = redundant(kernel, self.bounds)
        names = [name for name in self.bounds if name not in superfluous]
        terms = prior_terms(kernel, self.objective.X, self.variance, self.spread) | dict(priors)
        start = {name: self.starts[0][name] for name in names}
        prior = Prior({name: terms[name] for name in names})
        return Search(self.objective, kernel, self.noise, start, self.bounds, prior=prior)


def has_family(kernel: Kernel) -> bool:
    """Return whether a kernel has one of the families inside."""
    return any(type(leaf) in FAMILIES.values() for leaf in kernel.leaves())


def in_family(kernel: Kernel, kind: type[Radial]) -> Kernel:
    """Return the kernel with all inner kernels of any family replaced by this ``kind``."""
    if type(kernel) in FAMILIES.values() and isinstance(kernel, Radial):
        return kind(lengthscale=kernel.lengthscale, variance=kernel.variance)
    return kernel.map_parts(lambda part: in_family(part, kind))


def _values(search: Search, theta: np.ndarray) -> Values:
    """Return hyperparameters by name, of their logarithms."""
    return dict(zip(search.names, np.split(np.exp(theta), search.ends), strict=True))


def uncertain_constant(y: Array, d: int) -> Polynomial:
    """Return a constant prior mean for targets y: around theirs, as uncertain as they vary."""
    targets = to_numpy(y)
    spread = float(std_of(targets[:, None])[0]) or 1.0
    return Polynomial([float(targets.mean())], np.zeros((1, d)), covariance=[[spread**2]])


def conditioned(kernel: Kernel, X: Any, y: Any, noise: Any, mean: Mean) -> ExactPosterior:
    """Return the posterior; an uncertain constant mean becomes a constant kernel.

    The prior is the same, and explanations are quicker: constants have no attributions.
    """
    if isinstance(mean, Polynomial) and mean.covariance is not None and not mean.powers.any():
        kernel = kernel + Constant(float(np.asarray(mean.covariance)[0, 0]))
        mean = ConstantMean(float(mean.beta[0]))
    return ExactPosterior(kernel, X, y, noise=noise, mean=mean)


def learned_mean(component: Component) -> Mean:
    """Return the prior mean with the learned value of a constant that `conditioned` made a kernel.

    E[c | y] = c₀ + v 1ᵀα for c ~ N(c₀, v).
    """
    posterior, kernel = component.posterior, component.posterior.kernel
    constant = kernel.kernels[-1] if isinstance(kernel, Sum) else None
    if not isinstance(constant, Constant) or not isinstance(posterior.mean, ConstantMean):
        return posterior.mean
    return ConstantMean(posterior.mean.value + constant.variance * float(posterior.alpha.sum()))
