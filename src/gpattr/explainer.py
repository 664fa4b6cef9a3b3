"""Explainer: a model, a baseline, rows in, an Explanation out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from gpattr._array import Array, to_numpy
from gpattr._normal import check_count
from gpattr._results import of_function, of_probability
from gpattr._validation import (
    Names,
    as_matrix,
    as_vector,
    check_choice,
    check_names,
    column_names,
    is_frame,
    is_series,
    numbers,
    positions_of,
    positive_scalar,
)
from gpattr.adapters import as_posterior
from gpattr.closed_forms import METHODS
from gpattr.closed_forms.fixed_rules import check_steps
from gpattr.exceptions import InvalidIndexError, InvalidInputError, UnsupportedModelError
from gpattr.explanation import Explanation, feature_index
from gpattr.importance import Importance, draw_importance
from gpattr.multi_output_explanation import MultiOutputExplanation
from gpattr.operators import Baselines, IntegratedGradients
from gpattr.posteriors import TOLERANCE, UNCERTAINTY, MultiOutputPosterior, Posterior
from gpattr.probability import require_link

NAMED_BASELINES = {"mean": "mean of the training inputs", "median": "median of the training inputs", "zeros": "zeros"}
SCALES = ("latent", "probability")
RowNames = tuple[str | int, ...]
EXPECTED_BASELINE = "'mean', 'median', 'zeros', a point, or gpattr.Baselines"


class Explainer:
    """Explains predictions of a Gaussian process by integrated gradients, exactly and with their joint uncertainty.

    ``model`` is a fitted estimator such as `GPRegressor`, or any `gpattr.posteriors` object. ``baseline`` is where attributions
    start from: ``"mean"`` or ``"median"`` of the training inputs, ``"zeros"``, a point (d,), or `gpattr.Baselines`. ``method``
    is ``"auto"`` (closed form where there is one, else quadrature that knows its error), ``"exact"`` (closed form or nothing),
    ``"quadrature"`` (for comparison), or a rule with ``n_steps``: ``"right"``, ``"trapezoid"``, ``"simpson"``,
    ``"gauss_legendre"``. Attributions by quadrature that are not sure to ``tolerance``, relative to the size of the function,
    raise `ToleranceError`.

    ``scale`` is ``"latent"``, or ``"probability"`` for the class probabilities of a classifier: their attributions are not
    Gaussian, and come as a `SampledExplanation` with ``n_draws`` draws, which ``random_state`` fixes.

    Frames are aligned by column name with the frame the model was trained on; ``feature_names`` names the columns of a model that
    was trained on an array.
    """

    def __init__(
        self,
        model: Any,
        baseline: Any = "mean",
        *,
        method: str = "auto",
        n_steps: int | None = None,
        tolerance: float = TOLERANCE,
        feature_names: Sequence[str] | None = None,
        scale: str = "latent",
        n_draws: int = 1000,
        random_state: Any = 0,
    ) -> None:
        self.posterior = as_posterior(model)
        first = next(iter(getattr(self.posterior, "outputs", {"": self.posterior}).values()))
        self.encoder: Any = getattr(first, "encoder", None)
        self.scale = check_choice("scale", scale, SCALES)
        if scale == "probability":
            if method != "auto":
                raise InvalidInputError(f'method: probabilities are integrated in one way, method="auto", got {method!r}')
            for name, posterior in getattr(self.posterior, "outputs", {"": self.posterior}).items():
                require_link(posterior, name)
        if check_count("n_draws", n_draws) < 2:
            raise InvalidInputError(f"n_draws: expected at least 2, got {n_draws}")
        self.n_draws, self.random_state = int(n_draws), random_state
        self.method = check_choice("method", method, METHODS)
        self.n_steps = check_steps(method, n_steps)
        self.tolerance = positive_scalar("tolerance", tolerance)
        names = self.posterior.feature_names
        if feature_names is not None and self.encoder is not None:
            raise InvalidInputError(
                f"feature_names: the model was trained on the columns {list(self.encoder.names)}; leave them out"
            )
        if feature_names is not None:
            given = check_names("feature_names", feature_names, self.posterior.n_features)
            if names is not None and given != names:
                raise InvalidInputError(
                    f"feature_names: the model was trained on the columns {list(names)}, got {list(given)}; "
                    "leave feature_names out"
                )
            names = given
        if names is None:
            names = baseline.feature_names if isinstance(baseline, Baselines) else column_names(baseline)
        self.feature_names: Names | None = names
        self.baseline, self.baseline_name = self._resolve(baseline)

    def __call__(self, X: Any, baselines: Any = None, uncertainty: str = "cov") -> Explanation | Any:
        """Explain the rows of X, (n, d): an `Explanation`, or a `MultiOutputExplanation` of a model with several outputs.

        ``baselines`` (n, d) gives each row its own baseline. ``uncertainty`` is ``"cov"`` for the covariance between features,
        ``"std"`` for standard deviations only, ``"none"`` for means alone, which take a few times a prediction.
        """
        rows = self._matrix("X", X)
        own = None if baselines is None else self._own_baselines(baselines, len(rows))
        return self._explain(rows, own, uncertainty, self._names(X, rows.shape[1]), _row_names(X, len(rows)))

    def __getitem__(self, output: str) -> Explainer:
        """Return the explainer of one output of a model with several, with the same baseline."""
        if not isinstance(self.posterior, MultiOutputPosterior):
            raise InvalidIndexError(f"output: the model has one output, which has no name, got {output!r}")
        single = copy(self)
        single.posterior = self.posterior[output]
        return single

    def batches(
        self, X: Any, baselines: Any = None, uncertainty: str = "cov", *, batch_size: int = 1024
    ) -> Iterator[Explanation | Any]:
        """Explain the rows of X in batches: an iterator of explanations, each of at most ``batch_size`` rows."""
        if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise InvalidInputError(f"batch_size: expected an integer of 1 or more, got {batch_size!r}")
        rows = self._matrix("X", X)
        own = None if baselines is None else self._own_baselines(baselines, len(rows))
        names, labels = self._names(X, rows.shape[1]), _row_names(X, len(rows))
        check_choice("uncertainty", uncertainty, UNCERTAINTY)

        def generate() -> Iterator[Any]:
            for start in range(0, len(rows), batch_size):
                part = slice(start, start + batch_size)
                yield self._explain(rows[part], None if own is None else own[part], uncertainty, names, labels[part])

        return generate()

    def across_outputs(self, X: Any, baselines: Any = None) -> Array:
        """Return the covariance of each row's attributions between features and between outputs, (n, d, P, d, P)."""
        if not isinstance(self.posterior, MultiOutputPosterior):
            raise UnsupportedModelError("model: this model has one output, and so no covariance between outputs")
        if self.scale == "probability":
            raise UnsupportedModelError(
                'scale: across_outputs is known of the latent functions; use an explainer with scale="latent"'
            )
        rows = self._matrix("X", X)
        return to_numpy(self.posterior.across(self._operator(rows, baselines), rows, **self._options))

    def joint(self, X: Any, baselines: Any = None) -> Array:
        """Return the covariance of the attributions between features and between rows, (n, d, n, d)."""
        rows = self._matrix("X", X)
        return self._gathered(to_numpy(self._single.joint(self._operator(rows, baselines), rows, **self._options)))

    def importance(self, X: Any, baselines: Any = None, *, n_samples: int = 2000, random_state: Any = 0) -> Importance:
        """Return the mean absolute attribution of each feature over the rows of X, with its uncertainty.

        Rows share one unknown function and so are correlated: the uncertainty comes from draws of their joint distribution.
        """
        rows = self._matrix("X", X)
        operator = self._operator(rows, baselines)

        def parts() -> Iterator[tuple[float, Array, Array]]:
            for weight, posterior in self._single.components:
                result = posterior.apply(operator, rows, uncertainty="none", tolerance=self.tolerance, **self._options)
                joint = self._gathered(to_numpy(posterior.joint(operator, rows, **self._options)))
                yield weight, to_numpy(result.mean) @ self._features, joint

        return draw_importance(parts(), self._shown(X, rows.shape[1]), n_samples, random_state)

    def training_contributions(self, x: Any, feature: str | int) -> Array:
        """Return the share of each training row in the attribution of ``feature`` at the row x, (m,), in the order of training.

        They add up to the attribution, less that of a prior mean; neighbouring rows often have large shares of opposite sign.
        """
        one = self._point("x", x)
        index = feature_index(feature, self._shown(x, len(one)))
        operator = self._operator(one[None, :], None)
        return self._features[:, index] @ to_numpy(self._single.contributions(operator, one[None, :], **self._options)[0])

    def __repr__(self) -> str:
        scale = "" if self.scale == "latent" else f", scale={self.scale!r}, n_draws={self.n_draws}"
        return f"Explainer({self.posterior!r}, baseline={self.baseline_name!r}, method={self.method!r}{scale})"

    def _explain(
        self, rows: Array, baselines: Array | None, uncertainty: str, names: Names, labels: RowNames
    ) -> Explanation | Any:
        operator = IntegratedGradients(self.baseline if baselines is None else baselines)
        averaged, points = operator.weights is not None, to_numpy(operator.points)
        shared = {
            "data": to_numpy(rows),
            "baselines": points if averaged else np.broadcast_to(points, rows.shape),
            "baseline_weights": operator.weights,
            "baseline_name": self.baseline_name if baselines is None else "one per row",
            "feature_names": names,
            "row_names": labels,
        }
        posterior: Any = self.posterior
        several = isinstance(posterior, MultiOutputPosterior)
        outputs = posterior.outputs if several else {"": posterior}
        options: dict[str, Any] = {"uncertainty": uncertainty, "tolerance": self.tolerance}
        if self.scale == "probability":
            options |= {"n_draws": self.n_draws, "random_state": self.random_state}
            parts = {name: of_probability(part, operator, rows, shared, **options) for name, part in outputs.items()}
        else:
            result = posterior.apply(operator, rows, **options, **self._options)
            results = result if several else {"": result}
            parts = {name: of_function(part, operator, rows, results[name], shared) for name, part in outputs.items()}
        if self.encoder is not None:
            parts = {name: ex.group(self.encoder.groups) for name, ex in parts.items()}
        return MultiOutputExplanation(parts) if several else parts[""]

    @property
    def _single(self) -> Posterior:
        """The posterior, where there is one output, and its function is what is explained."""
        if self.scale == "probability":
            raise UnsupportedModelError(
                "scale: joint, importance and training_contributions are known of the latent function; use an explainer with "
                'scale="latent"'
            )
        if isinstance(self.posterior, MultiOutputPosterior):
            output = self.posterior.output_names[0]
            raise UnsupportedModelError(
                "model: joint, importance and training_contributions are asked of one output, chosen by name: "
                f"explainer[{output!r}]; there are {list(self.posterior.outputs)}"
            )
        return self.posterior

    @property
    def _options(self) -> dict[str, Any]:
        return {"method": self.method, "n_steps": self.n_steps}

    def _operator(self, rows: Array, baselines: Any) -> IntegratedGradients:
        return IntegratedGradients(self.baseline if baselines is None else self._own_baselines(baselines, len(rows)))

    def _own_baselines(self, baselines: Any, n: int) -> Array:
        if isinstance(baselines, (str, Baselines)):
            raise InvalidInputError(
                f"baselines: expected one baseline per row of X, got {baselines!r}; "
                "a baseline shared by all rows goes to Explainer(...), and uncertainty= is an argument of its own"
            )
        own = self._matrix("baselines", baselines)
        if len(own) != n:
            raise InvalidInputError(f"baselines: expected one row per row of X ({n}), got {len(own)}")
        return own

    def _resolve(self, baseline: Any) -> tuple[Array | Baselines, str]:
        if isinstance(baseline, str):
            check_choice("baseline", baseline, tuple(NAMED_BASELINES))
            points = {"zeros": np.zeros(self.posterior.n_features), **self.posterior.landmarks}
            if baseline not in points:
                raise InvalidInputError(
                    f'baseline: "{baseline}" needs the training inputs, which this model does not store; give a baseline of '
                    f"{self.posterior.n_features} numbers"
                )
            return points[baseline], NAMED_BASELINES[baseline]
        if isinstance(baseline, Baselines):
            if baseline.points.shape[1] != self.posterior.n_features:
                raise InvalidInputError(
                    f"baseline: expected points with {self.posterior.n_features} features, got {baseline.points.shape[1]}"
                )
            return self._aligned(baseline), f"average over {len(baseline.points)} points"
        return self._point("baseline", baseline), "given point"

    def _aligned(self, baselines: Baselines) -> Baselines:
        names = baselines.feature_names
        if names is None or self.feature_names is None or names == self.feature_names:
            return baselines
        return Baselines(baselines.points[:, positions_of("baseline", names, self.feature_names)], baselines.weights)

    def _point(self, name: str, x: Any) -> Array:
        if self.encoder is not None and is_series(x):
            x = x.to_frame().T
        if self.encoder is not None or is_frame(x) or (x is not None and numbers(name, x).ndim == 2):
            if (is_frame(x) or self.encoder is None) and len(x) != 1:
                advice = "gpattr.Baselines(points) averages over a set, explainer(X, baselines=B) gives each row its own"
                raise InvalidInputError(f"{name}: expected one row, got {len(x)}" + (f"; {advice}" if name == "baseline" else ""))
            return self._matrix(name, x)[0]
        if x is None or numbers(name, x).ndim == 0:
            raise InvalidInputError(f"{name}: expected {EXPECTED_BASELINE if name == 'baseline' else 'one row'}, got {x!r}")
        return as_vector(
            name,
            x,
            length=self.posterior.n_features,
            names=self.feature_names,
            unit="numbers (one per feature)",
        )

    def _matrix(self, name: str, X: Any) -> Array:
        if self.encoder is not None:
            return self.encoder.encode(name, X)
        return as_matrix(name, X, names=self.feature_names, n_features=self.posterior.n_features)

    @property
    def _features(self) -> Array:
        """The matrix that adds what is known of columns up to features: one column each, unless there are categories."""
        return np.eye(self.posterior.n_features) if self.encoder is None else self.encoder.gathering

    def _gathered(self, joint: Array) -> Array:
        return joint if self.encoder is None else np.einsum("njmk,ji,kl->niml", joint, self._features, self._features)

    def _shown(self, X: Any, d: int) -> Names:
        """The names of the features that the user knows."""
        return self._names(X, d) if self.encoder is None else self.encoder.names

    def _names(self, X: Any, d: int) -> Names:
        return self.feature_names or (None if is_series(X) else column_names(X)) or tuple(f"x{i}" for i in range(d))


def explain(
    model: Any,
    X: Any,
    baseline: Any = "mean",
    *,
    method: str = "auto",
    n_steps: int | None = None,
    tolerance: float = TOLERANCE,
    feature_names: Sequence[str] | None = None,
    scale: str = "latent",
    n_draws: int = 1000,
    random_state: Any = 0,
    uncertainty: str = "cov",
) -> Explanation | Any:
    """Explain the rows of X in one call: ``Explainer(model, baseline, …)(X, uncertainty=…)``."""
    options: dict[str, Any] = {"method": method, "n_steps": n_steps, "tolerance": tolerance, "feature_names": feature_names}
    options |= {"scale": scale, "n_draws": n_draws, "random_state": random_state}
    return Explainer(model, baseline, **options)(X, uncertainty=uncertainty)


def _row_names(X: Any, n: int) -> RowNames:
    labels = list(X.index) if is_frame(X) and hasattr(X, "index") else range(n)
    whole = (int, np.integer)
    return tuple(int(label) if isinstance(label, whole) and not isinstance(label, bool) else str(label) for label in labels)
