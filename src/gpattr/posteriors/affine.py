"""A posterior behind scalers and selections: f(x) = g(u) with uⱼ = (x_source(j) − shiftⱼ)/scaleⱼ.

A straight path in x is one in u, and integrated gradients do not depend on units: 𝒜ᵢf is the sum of
𝒜ⱼg over the inputs j of g that feature i feeds; a feature that feeds none has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpattr._core.arguments import positions
from gpattr._core.array import Array, namespace
from gpattr._core.validation import Names, as_matrix, as_vector, check_count, check_names, read_only
from gpattr.exceptions import InvalidInputError
from gpattr.operators import Baselines, Gradient, IntegratedGradients, Operator
from gpattr.posteriors.base import TOLERANCE, Attributions, Components, Posterior, gathering


@dataclass(frozen=True, eq=False, init=False, repr=False)
class AffinePosterior(Posterior):
    """f(x) = g((x[source] − ``shift``)/``scale``) for the ``posterior`` of g; shift and scale are
    in the units of x.

    ``source`` (D,) are the positions of the features of x, of which there are ``n_features``, that
    the inputs of g come from: all in their order by default. ``encoder`` makes such rows of a frame
    with categories (`gpattr.adapters`)."""

    posterior: Posterior
    shift: Array
    scale: Array
    source: tuple[int, ...]
    width: int
    feature_names: Names | None
    encoder: Any

    def __init__(
        self,
        posterior: Posterior,
        shift: Any,
        scale: Any,
        *,
        source: Sequence[int] | None = None,
        n_features: int | None = None,
        feature_names: Names | None = None,
        encoder: Any = None,
    ) -> None:
        if not isinstance(posterior, Posterior):
            raise InvalidInputError(
                f"posterior: expected a gpattr posterior, got a {type(posterior).__name__}"
            )
        D = posterior.n_features
        d = D if n_features is None else check_count("n_features", n_features)
        if source is not None:
            positions("source", source)
        source = tuple(range(D)) if source is None else tuple(int(j) for j in source)
        if len(source) != D or not all(0 <= j < d for j in source):
            raise InvalidInputError(
                f"source: expected {D} positions below {d} (n_features), got {list(source)}"
            )
        if encoder is not None and not hasattr(encoder, "encode"):
            raise InvalidInputError(
                "encoder: expected what makes rows of a frame, or None, got a"
                f" {type(encoder).__name__}"
            )
        values = {
            "posterior": posterior,
            "shift": read_only(
                as_vector("shift", shift, length=D, unit="numbers (one per input of the posterior)")
            ),
            "scale": read_only(
                as_vector("scale", scale, length=D, unit="numbers (one per input of the posterior)")
            ),
            "source": source,
            "width": d,
            "feature_names": (
                None if feature_names is None else check_names("feature_names", feature_names, d)
            ),
            "encoder": encoder,
        }
        if (values["scale"] == 0).any():
            raise InvalidInputError("scale: expected numbers other than 0")
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def like(self) -> Array:
        return self.posterior.like

    @property
    def n_features(self) -> int:
        return self.width

    @property
    def reference_points(
        self,
    ) -> Mapping[str, Array]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Those of the inner posterior, in the units of x; a feature that it does not see is at 0."""
        return {
            name: self._outside(point[None, :])[0]
            for name, point in self.posterior.reference_points.items()
        }

    @property
    def training_inputs(self) -> Array | None:
        inner = self.posterior.training_inputs
        return None if inner is None else self._outside(inner)

    @property
    def link(self) -> str | None:
        return self.posterior.link

    @property
    def label(self) -> str:
        """Of what f is the log odds, where it is one."""
        return getattr(self.posterior, "label", "")

    @property
    def components(self) -> tuple[tuple[float, Posterior], ...]:
        parts = self.posterior.components
        if len(parts) == 1:
            return ((1.0, self),)
        options: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("source", "n_features", "feature_names", "encoder")
        }
        return tuple(
            (weight, AffinePosterior(part, self.shift, self.scale, **options))
            for weight, part in parts
        )

    def predict(self, X: Any, *, return_std: bool = False, return_cov: bool = False) -> Any:
        return self.posterior.predict(self.inside(X), return_std=return_std, return_cov=return_cov)

    def apply(
        self,
        operator: Operator,
        X: Any,
        *,
        uncertainty: str = "cov",
        method: str = "auto",
        n_steps: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> Attributions:
        once = len(set(self.source)) == len(
            self.source
        )  # else variances alone would lack what lies between inputs
        needed = "cov" if uncertainty == "std" and not once else uncertainty
        options: dict[str, Any] = {
            "uncertainty": needed,
            "method": method,
            "n_steps": n_steps,
            "tolerance": tolerance,
        }
        result = self.posterior.apply(self.moved(operator), self.inside(X), **options)
        G = self.gather(operator, result.mean)
        changes: dict[str, Any] = {
            name: _gathered(getattr(result, name), G, name) for name in ("mean", "var", "cov")
        }
        if (parts := result.components) is not None:
            gathered = {
                name: _gathered(getattr(parts, name), G, name) for name in ("mean", "var", "cov")
            }
            changes["components"] = Components(
                parts.weights, **_with_variances(gathered, uncertainty)
            )
        widest = float(abs(G).sum(axis=0).max())
        cov_error = None if result.cov_error is None else result.cov_error * widest**2
        return replace(
            result,
            error=result.error * widest,
            cov_error=cov_error,
            **_with_variances(changes, uncertainty),
        )

    def joint(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        result = self.posterior.joint(
            self.moved(operator), self.inside(X), method=method, n_steps=n_steps
        )
        G = self.gather(operator, result)
        n, d = len(result), self.n_features
        # By matrix products: an einsum of three factors would multiply all three for every pair of
        # columns.
        half = (result @ G).reshape(n, len(G), n * d)
        return (namespace(G).swapaxes(G, 0, 1) @ half).reshape(n, d, n, d)

    def rows_covariance(
        self,
        operator: Operator,
        X: Any,
        gather: Any = None,
        *,
        method: str = "auto",
        n_steps: int | None = None,
    ) -> Array:
        """Return the covariance between rows of each feature, or of each column of ``gather``;
        inputs of g are added up.
        """
        X = as_matrix("X", X, names=self.feature_names, n_features=self.n_features, like=self.like)
        outer, inner = gathering(gather, X), self.gather(operator, X)
        inner = inner if outer is None else inner @ outer
        return self.posterior.rows_covariance(
            self.moved(operator), self.inside(X), inner, method=method, n_steps=n_steps
        )

    def contributions(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        result = self.posterior.contributions(
            self.moved(operator), self.inside(X), method=method, n_steps=n_steps
        )
        return namespace(result).swapaxes(self.gather(operator, result), 0, 1) @ result

    def inside(self, X: Any) -> Array:
        """Return rows in the units of the inner posterior."""
        X = as_matrix("X", X, names=self.feature_names, n_features=self.n_features, like=self.like)
        shift, scale = self._units(X)
        return (X[:, list(self.source)] - shift) / scale

    def gathering(self, like: Array) -> Array:
        """Return the rates ∂uⱼ/∂xᵢ, (D, d)."""
        xp = namespace(like)
        rates = xp.zeros((len(self.source), self.n_features))
        rates[xp.arange(len(self.source)), list(self.source)] = 1.0 / self._units(like)[1]
        return rates

    def gather(self, operator: Operator, like: Array) -> Array:
        """Return the matrix (D, d) by which values of g become those of f: gradients go with the
        units, attributions do not.
        """
        rates = self.gathering(like)
        return (
            rates if isinstance(operator, Gradient) else namespace(like).asarray((rates != 0) * 1.0)
        )

    def _outside(self, U: Array) -> Array:
        xp, (shift, scale) = namespace(U), self._units(U)
        X = xp.zeros((len(U), self.n_features))
        X[:, list(self.source)] = shift + scale * U
        return X

    def moved(self, operator: Operator) -> Operator:
        """Return the operator in the units of the inner posterior."""
        if isinstance(operator, Gradient):
            return operator
        if not isinstance(operator, IntegratedGradients):
            raise InvalidInputError(
                f"operator: expected IntegratedGradients or Gradient, got {type(operator).__name__}"
            )
        shift, scale = self._units(operator.points)
        points = (operator.points[:, list(self.source)] - shift) / scale
        jumps = [j for j, feature in enumerate(self.source) if feature in operator.jumps]
        if operator.weights is not None:
            return IntegratedGradients(Baselines(points, operator.weights), jumps)
        return IntegratedGradients(points if operator.per_row else points[0], jumps)

    def _units(self, like: Array) -> tuple[Array, Array]:
        xp = namespace(like)
        return xp.asarray(self.shift), xp.asarray(self.scale)

    def __repr__(self) -> str:
        return f"AffinePosterior({self.posterior!r})"


def _with_variances(parts: dict[str, Any], uncertainty: str) -> dict[str, Any]:
    """Return mean, var and cov in which variances are those of the covariances, where there are
    any; cov only if asked for.
    """
    cov = parts["cov"]
    if cov is None:
        return parts
    return parts | {
        "var": namespace(cov).diagonal(cov, axis1=-2, axis2=-1),
        "cov": cov if uncertainty == "cov" else None,
    }


def _gathered(array: Array | None, G: Array, name: str) -> Array | None:
    """Return (..., d) values, (..., d) variances of features that are fed once, or (..., d, d)
    covariances.
    """
    if array is None:
        return None
    if name == "cov":
        return namespace(G).swapaxes(G, 0, 1) @ array @ G
    return array @ (G if name == "mean" else G**2)
