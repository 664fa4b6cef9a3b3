"""Evaluation: how an operator is to be evaluated, checked once."""

from __future__ import annotations

from dataclasses import dataclass

from gpattr._core.validation import check_choice, positive_scalar
from gpattr.closed_forms import METHODS
from gpattr.closed_forms.quadrature.fixed_rules import check_steps

UNCERTAINTY = ("cov", "std", "none")
TOLERANCE = 1e-6  # of the size of the function, for attributions by quadrature


@dataclass(frozen=True)
class Evaluation:
    """What is asked for, and by which method.

    ``uncertainty`` is ``"cov"`` (covariance between outputs), ``"std"`` (variances only) or
    ``"none"`` (means, at a few times the cost of a prediction). ``method`` and ``n_steps`` are
    those of `closed_forms.formulas_for`. Where quadrature does not reach ``tolerance``, relative to
    the size of the function, `ToleranceError` is raised.

    With ``covariance_tolerance`` covariances may have errors of that share of the largest variance
    of a row, where that is faster (`spectrum`).

    Examples
    --------
    >>> from gpattr.posteriors import Evaluation
    >>> Evaluation("std", method="trapezoid", n_steps=16).n_steps
    16
    """

    uncertainty: str = "cov"
    method: str = "auto"
    n_steps: int | None = None
    tolerance: float = TOLERANCE
    covariance_tolerance: float | None = None

    def __post_init__(self) -> None:
        check_choice("uncertainty", self.uncertainty, UNCERTAINTY)
        check_choice("method", self.method, METHODS)
        object.__setattr__(self, "n_steps", check_steps(self.method, self.n_steps))
        object.__setattr__(self, "tolerance", positive_scalar("tolerance", self.tolerance))
        if self.covariance_tolerance is not None:
            allowed = positive_scalar("covariance_tolerance", self.covariance_tolerance)
            object.__setattr__(self, "covariance_tolerance", allowed)

    @property
    def exact(self) -> bool:
        """Whether closed forms are used where there are any."""
        return self.method in ("auto", "exact")
