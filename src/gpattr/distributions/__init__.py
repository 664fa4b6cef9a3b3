"""Joint distributions of attributions: Gaussian, mixture of Gaussians, draws, or a point."""

from gpattr.distributions.base import Distribution
from gpattr.distributions.draws import Draws
from gpattr.distributions.gaussian import Gaussian
from gpattr.distributions.marginals import Marginals
from gpattr.distributions.mixture import Mixture
from gpattr.distributions.point import Point

__all__ = ["Distribution", "Draws", "Gaussian", "Marginals", "Mixture", "Point"]
