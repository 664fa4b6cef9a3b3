"""Trends whose coefficients a kriging model has estimated, with a flat prior on them."""

from __future__ import annotations

import numpy as np

from gpattr.bases import Monomials
from gpattr.means import Linear, Mean, Polynomial


def flat_polynomial(degree: int, d: int) -> Mean:
    """Return all monomials of d features up to a degree, with a flat prior on their coefficients.

    Predictions and attributions then contain the uncertainty of the estimated coefficients:
    universal kriging; ordinary kriging for the degree 0.
    """
    if degree == 1:
        return Linear(np.zeros(d), covariance="flat")
    return flat_monomials(Monomials.up_to(degree, d, constant=True).powers)


def flat_monomials(powers: np.ndarray) -> Mean:
    """Return monomials with the ``powers`` (p, d), and a flat prior on their coefficients."""
    return Polynomial(np.zeros(len(powers)), powers, covariance="flat")
