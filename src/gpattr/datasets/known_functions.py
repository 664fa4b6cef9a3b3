"""Functions with known integrated gradients: references for the attributions of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.arguments import a_function
from gpattr._core.array import Array, to_numpy
from gpattr._core.memory import check_memory
from gpattr._core.normal import check_count
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import (
    as_matrix,
    as_vector,
    column_names,
    finite_scalar,
    is_frame,
    read_only,
    unlabelled,
)
from gpattr.bases import Basis, Fourier, Monomials
from gpattr.closed_forms import apply_to_basis
from gpattr.exceptions import InvalidInputError
from gpattr.operators import IntegratedGradients

FASTEST = 1e14  # phases of faster waves on [0, 10] have no correct digit in float64


@dataclass(frozen=True, eq=False)
class KnownFunction:
    """f(x) = Σⱼ wⱼ φⱼ(x) over a basis: its attributions are Σⱼ wⱼ 𝒜ᵢφⱼ(x), exactly, by linearity.

    ``formula`` computes f at rows, (n, d) to (n,), if summing over the basis loses accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.datasets import sine_product
    >>> f = sine_product()
    >>> f(np.array([[0.0, 1.0]])).round(6)
    array([0.])
    >>> f.attributions(np.array([[1.0, 1.0]]), np.zeros(2)).shape
    (1, 2)
    """

    basis: Basis
    weights: Array
    formula: Callable[[Array], Array] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.basis, Basis):
            raise InvalidInputError(
                f"basis: expected a gpattr basis, got {type(self.basis).__name__}"
            )
        weights = as_vector(
            "weights", self.weights, length=len(self.basis), unit="numbers (one per basis function)"
        )
        object.__setattr__(self, "weights", read_only(to_numpy(weights)))
        if self.formula is not None:
            a_function("formula", self.formula)

    def __call__(self, X: Any) -> Array:
        """Return f at the rows of X, (n,)."""
        X = self._rows(X)
        return self.basis(X) @ self.weights if self.formula is None else self.formula(X)

    def attributions(self, X: Any, baseline: Any) -> Array:
        """Return the exact attributions (n, d) at rows X, from baselines (d,) or (n, d)."""
        names = column_names(X) if is_frame(X) else None
        X = self._rows(X)
        if is_frame(baseline) or np.ndim(baseline) == 2:
            b = as_matrix("baseline", baseline, names=names, n_features=self.basis.n_features)
        else:
            b = as_vector(
                "baseline",
                baseline if names else unlabelled("baseline", baseline),
                length=X.shape[1],
                names=names,
            )
        self.basis.check_rows("baseline", np.atleast_2d(b))
        return apply_to_basis(IntegratedGradients(b), self.basis, X) @ self.weights

    def sample(
        self,
        n_samples: int,
        *,
        low: float = 0.0,
        high: float = 1.0,
        noise: float = 0.0,
        random_state: RandomLike = None,
    ) -> tuple[Array, Array]:
        """Return uniform inputs between low and high, (n, d), and f plus normal noise, (n,)."""
        if not finite_scalar("low", low) < finite_scalar("high", high):
            raise InvalidInputError(f"high: expected a number larger than low = {low}, got {high}")
        if finite_scalar("noise", noise) < 0:
            raise InvalidInputError(
                f"noise: expected a standard deviation, 0 or larger, got {noise}"
            )
        if not np.isfinite(float(high) - float(low)):
            raise InvalidInputError(
                f"high: expected a finite distance from low = {low}, got {high}"
            )
        random, shape = (
            random_generator(random_state),
            (check_count("n_samples", n_samples), self.basis.n_features),
        )
        check_memory("n_samples: the inputs", shape, "use fewer samples")
        X = random.uniform(low, high, shape)
        return X, self(X) + noise * random.standard_normal(len(X))

    def _rows(self, X: Any) -> Array:
        X = to_numpy(as_matrix("X", X, n_features=self.basis.n_features))
        self.basis.check_rows("X", X)
        return X


def linear_function(weights: Any) -> KnownFunction:
    """Return f(x) = Σᵢ wᵢ xᵢ; attribution i is wᵢ (xᵢ − bᵢ).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.datasets import linear_function
    >>> linear_function([1.0, 2.0])(np.array([[1.0, 1.0]]))
    array([3.])
    """
    weights = to_numpy(as_vector("weights", weights))
    if not len(weights):
        raise InvalidInputError("weights: expected at least one, got none")
    return KnownFunction(Monomials(np.eye(len(weights))), weights)


def product_function(n_features: int = 2) -> KnownFunction:
    """Return f(x) = Π xᵢ, a pure interaction; from the baseline 0 all attributions are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.datasets import product_function
    >>> f = product_function(3)
    >>> f.attributions(np.array([[1.0, 2.0, 3.0]]), np.zeros(3)).round(6)
    array([[2., 2., 2.]])
    """
    check_memory("n_features: the powers", (1, check_count("n_features", n_features)), "use fewer")
    return KnownFunction(Monomials(np.ones((1, n_features))), np.ones(1))


def sine_product(frequency: float = 2.0) -> KnownFunction:
    """Return f(x) = sin(x₁) sin(ω x₂), the function of the paper's simulated data.

    As a sum of waves it is ½ cos(x₁ − ωx₂) − ½ cos(x₁ + ωx₂).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.datasets import sine_product
    >>> sine_product(frequency=1.0)(np.array([[np.pi / 2, np.pi / 2]])).round(6)
    array([1.])
    """
    frequency = finite_scalar("frequency", frequency)
    return KnownFunction(
        Fourier(np.array([[1.0, -frequency], [1.0, frequency]])),
        np.array([0.0, 0.0, 0.5, -0.5]),
        # Near 0 the cosines differ by rounding only.
        formula=lambda X: np.sin(X[:, 0]) * np.sin(frequency * X[:, 1]),
    )


def make_heteroscedastic(
    n_samples: int = 500,
    *,
    frequency: float = 2.0,
    noise: float = 0.5,
    random_state: RandomLike = None,
) -> tuple[Array, Array]:
    """Return the paper's simulated data: X uniform on [0, 10]², y = sin(x₁) sin(ω x₂) + noise.

    ``frequency`` ω is 2 in the paper's text; its published Figure 1 uses 1.5. ``noise`` is
    a standard deviation. ``sine_product(frequency)`` has the attributions of the function without
    noise.

    Examples
    --------
    >>> from gpattr.datasets import make_heteroscedastic
    >>> X, y = make_heteroscedastic(100, random_state=0)
    >>> X.shape, y.shape
    ((100, 2), (100,))
    """
    if abs(finite_scalar("frequency", frequency)) > FASTEST:
        raise InvalidInputError(
            f"frequency: expected a number of at most {FASTEST:.0e} in size, got {frequency}"
        )
    return sine_product(frequency).sample(
        n_samples, high=10.0, noise=noise, random_state=random_state
    )
