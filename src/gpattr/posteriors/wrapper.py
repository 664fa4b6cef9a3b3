"""Wrappers: posteriors of another posterior's function, as a function of other inputs."""

from __future__ import annotations

from abc import abstractmethod

from gpattr._core.array import Array
from gpattr.exceptions import InvalidInputError
from gpattr.posteriors.base import Posterior, check_single


class WrapperPosterior(Posterior):
    """f(x) = g(u(x)) for the ``posterior`` of g, a function of numeric columns."""

    posterior: Posterior

    @property
    def like(self) -> Array:
        return self.posterior.like

    @property
    def inner(self) -> tuple[Posterior, ...]:
        return (self.posterior,)

    @property
    def link(self) -> str | None:
        return self.posterior.link

    @property
    def components(self) -> tuple[tuple[float, Posterior], ...]:
        parts = self.posterior.components
        if len(parts) == 1:
            return ((1.0, self),)
        return tuple((weight, self.around(part)) for weight, part in parts)

    @property
    def noise_variance(self) -> float | None:
        return self.posterior.noise_variance

    @abstractmethod
    def around(self, posterior: Posterior) -> WrapperPosterior:
        """Return the same wrapper around another posterior."""


def check_wrapped(posterior: Posterior) -> None:
    """Raise `InvalidInputError` unless this is a posterior of one output and numeric columns."""
    check_single("posterior", posterior)
    if posterior.encoder is not None:
        raise InvalidInputError(
            "posterior: expected a gpattr posterior of numeric columns, got a"
            f" {type(posterior).__name__}"
        )
