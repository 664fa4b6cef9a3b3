"""Explainer: a model, a baseline, rows in, an Explanation out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.cards import card
from gpattr._core.memory import blocks, check_memory
from gpattr._core.normal import check_count, random_generator
from gpattr._core.validation import (
    Names,
    check_choice,
    check_text,
    positive_scalar,
)
from gpattr.adapters import as_posterior
from gpattr.closed_forms import METHODS
from gpattr.closed_forms.quadrature.fixed_rules import check_steps
from gpattr.exceptions import InvalidIndexError, InvalidInputError, UnsupportedModelError
from gpattr.explainer.gaussian_part import GaussianPart
from gpattr.explainer.importance import draw_importance
from gpattr.explainer.probability import require_link
from gpattr.explainer.probability_importance import draw_probability_importance
from gpattr.explainer.results import of_function, of_probability, quantity
from gpattr.explainer.rows import RowNames, Rows, row_name, row_names
from gpattr.explanation.contributions import Contributions
from gpattr.explanation.explanation import Explanation, feature_index
from gpattr.explanation.importance import Importance
from gpattr.explanation.multi_output import MultiOutputExplanation
from gpattr.operators import Baselines, IntegratedGradients, Paths
from gpattr.posteriors import TOLERANCE, UNCERTAINTY, MultiOutputPosterior, Posterior

OUTPUTS = ("latent", "probability")


class Explainer:
    """Explains predictions of a Gaussian process by integrated gradients, exactly and with their
    joint uncertainty.

    ``model`` is a fitted estimator such as `GPRegressor`, or any `gpattr.posteriors` object.
    ``baseline`` is where attributions start from: ``"mean"`` or ``"median"`` of the training
    inputs, ``"zeros"``, a point (d,), or `gpattr.Baselines`. ``method`` is ``"auto"`` (closed form
    where there is one, else quadrature that knows its error), ``"exact"`` (closed form or nothing),
    ``"quadrature"`` (for comparison), or a rule with ``n_steps``: ``"right"``, ``"trapezoid"``,
    ``"simpson"``, ``"gauss_legendre"``. Attributions by quadrature that are not sure to
    ``tolerance``, relative to the size of the function, raise `ToleranceError`.

    ``output`` is ``"latent"``, or ``"probability"`` for the class probabilities of a classifier:
    their attributions are not Gaussian, and come as a `SampledExplanation` with ``n_draws`` draws,
    which ``random_state`` fixes.

    ``target_name`` names what is predicted, with its unit: explanations are then of the "predicted
    price (€)", and those of one class of the "probability of malignant" rather than of the label
    the classifier was trained with.

    Frames are aligned by column name with the frame the model was trained on; ``feature_names``
    names the columns of a model that was trained on an array."""

    def __init__(
        self,
        model: Any,
        baseline: Any = "mean",
        *,
        method: str = "auto",
        n_steps: int | None = None,
        tolerance: float = TOLERANCE,
        feature_names: Sequence[str] | None = None,
        output: str = "latent",
        n_draws: int = 1000,
        random_state: Any = 0,
        target_name: str | None = None,
        scale: str | None = None,
    ) -> None:
        if scale is not None:
            check_choice("scale", scale, OUTPUTS)
            warnings.warn("scale= is now called output=", FutureWarning, stacklevel=2)
            output = scale
        self.posterior = as_posterior(model)
        if target_name is not None and not check_text("target_name", target_name).strip():
            raise InvalidInputError(f"target_name: expected a name, got {target_name!r}")
        self.target_name = target_name
        self.output = check_choice("output", output, OUTPUTS)
        check_choice("method", method, METHODS)
        if output == "probability":
            if method != "auto":
                raise InvalidInputError(
                    'method: probabilities are integrated in one way, method="auto", got'
                    f" {method!r}"
                )
            for name, posterior in getattr(self.posterior, "outputs", {"": self.posterior}).items():
                require_link(posterior, name)
        if check_count("n_draws", n_draws) < 2:
            raise InvalidInputError(f"n_draws: expected at least 2, got {n_draws}")
        random_generator(random_state)
        self.n_draws, self.random_state = int(n_draws), random_state
        self.method = check_choice("method", method, METHODS)
        self.n_steps = check_steps(method, n_steps)
        self.tolerance = positive_scalar("tolerance", tolerance)
        self._rows = Rows(self.posterior, feature_names, baseline)
        self.feature_names = self._rows.columns
        self.baseline, self.baseline_name = self._rows.baseline(baseline)

    def __call__(
        self, X: Any, baselines: Any = None, uncertainty: str = "cov"
    ) -> Explanation | Any:
        """Explain the rows of X, (n, d): an `Explanation`, or a `MultiOutputExplanation` of a model
        with several outputs.

        ``baselines`` (n, d) gives each row its own baseline. ``uncertainty`` is ``"cov"`` for the
        covariance between features, ``"std"`` for standard deviations only, ``"none"`` for means
        alone, which take a few times a prediction."""
        check_choice("uncertainty", uncertainty, UNCERTAINTY)
        rows = self._rows.matrix("X", X)
        own = None if baselines is None else self._rows.baselines(baselines, len(rows))
        return self._explain(rows, own, uncertainty, self._rows.names(X), row_names(X, len(rows)))

    def __getitem__(self, output: str) -> Explainer:
        """Return the explainer of one output of a model with several, with the same baseline."""
        if not isinstance(self.posterior, MultiOutputPosterior):
            raise InvalidIndexError(
                f"output: the model has one output, which has no name, got {output!r}"
            )
        single = copy(self)
        single.posterior = self.posterior[output]
        return single

    def batches(
        self, X: Any, baselines: Any = None, uncertainty: str = "cov", *, batch_size: int = 1024
    ) -> Iterator[Explanation | Any]:
        """Explain the rows of X in batches: an iterator of explanations, each of at most
        ``batch_size`` rows.
        """
        check_count("batch_size", batch_size)
        rows = self._rows.matrix("X", X)
        own = None if baselines is None else self._rows.baselines(baselines, len(rows))
        names, labels = self._rows.names(X), row_names(X, len(rows))
        check_choice("uncertainty", uncertainty, UNCERTAINTY)

        def generate() -> Iterator[Any]:
            for start in range(0, len(rows), batch_size):
                part = slice(start, start + batch_size)
                yield self._explain(
                    rows[part], None if own is None else own[part], uncertainty, names, labels[part]
                )

        return generate()

    def along(self, x: Any, *, n_points: int = 101, uncertainty: str = "std") -> Explanation | Any:
        """Explain points on the straight way from the baseline to the row x, both ends included:
        what `plots.path` draws.
        """
        check_count("n_points", n_points, least=2)
        check_memory("n_points: the points", (n_points, self.posterior.n_features), "use fewer")
        if isinstance(self.baseline, Baselines) or self._rows.encoder is not None:
            raise UnsupportedModelError(
                "baseline: a way leads from one point to another, of numbers; there is none here"
            )
        stop, names = self._rows.point("x", x), self._rows.names(x)
        rows = Paths(to_numpy(self.baseline)[None, :], to_numpy(stop)[None, :]).at(
            np.linspace(0.0, 1.0, n_points)
        )[:, 0]
        return self._explain(
            rows,
            None,
            check_choice("uncertainty", uncertainty, UNCERTAINTY),
            names,
            tuple(range(n_points)),
        )

    def across_outputs(self, X: Any, baselines: Any = None) -> Array:
        """Return the covariance of each row's attributions between features and between outputs,
        (n, d, P, d, P).
        """
        if not isinstance(self.posterior, MultiOutputPosterior):
            raise UnsupportedModelError(
                "model: this model has one output, and so no covariance between outputs"
            )
        if self.output == "probability":
            raise UnsupportedModelError(
                "output: across_outputs is known of the latent functions; use an explainer with"
                ' output="latent"'
            )
        rows = self._rows.matrix("X", X)
        return self._rows.gathered(
            to_numpy(self.posterior.across(self._operator(rows, baselines), rows, **self._options))
        )

    def joint(self, X: Any, baselines: Any = None) -> Array:
        """Return the covariance of the attributions between features and between rows, (n, d, n,
        d).
        """
        rows = self._rows.matrix("X", X)
        return self._rows.gathered(
            to_numpy(self._single.joint(self._operator(rows, baselines), rows, **self._options))
        )

    def importance(
        self, X: Any, baselines: Any = None, *, n_samples: int = 2000, random_state: Any = 0
    ) -> Importance:
        """Return the mean absolute attribution of each feature over the rows of X, with its
        uncertainty.

        Rows share one unknown function and so are correlated: the uncertainty comes from draws of
        their joint distribution. Its expectation is that of all rows; `Importance` says what is
        drawn of many rows or features. Memory stays bounded. With ``output="probability"``
        expectations come from the draws of each row, and joint draws are those of as many rows as
        make 4000 values and gradients of the latent function."""
        return self._importance(X, baselines, None, n_samples, random_state)

    def training_contributions(self, x: Any, feature: str | int) -> Contributions:
        """Return the share of each training row in the attribution of ``feature`` at the row x,
        (m,), in the order of training.

        They add up to the attribution, less that of a prior mean; neighbouring rows often have
        large shares of opposite sign."""
        one, features = self._rows.point("x", x), self._rows.features(x)
        index = feature_index(feature, features)
        operator = self._operator(one[None, :], None)
        shares = to_numpy(self._single.contributions(operator, one[None, :], **self._options)[0])
        about: dict[str, Any] = {"feature": features[index], "quantity": self._quantity}
        about |= {"row_name": row_name(x), "baseline_name": self.baseline_name}
        return Contributions.of(self._rows.gathering[:, index] @ shares, **about)

    def __repr__(self) -> str:
        output = (
            "" if self.output == "latent" else f", output={self.output!r}, n_draws={self.n_draws}"
        )
        return (
            f"Explainer({self.posterior!r}, baseline={self.baseline_name!r},"
            f" method={self.method!r}{output})"
        )

    def _repr_html_(self) -> str:
        lines = [
            ("model", repr(self.posterior)),
            ("baseline", self.baseline_name),
            ("method", self.method),
            ("output", self.output),
        ]
        return card("Explainer", lines)

    def _explain(
        self, rows: Array, baselines: Array | None, uncertainty: str, names: Names, labels: RowNames
    ) -> Explanation | Any:
        operator = IntegratedGradients(
            self.baseline if baselines is None else baselines, self._rows.jumps
        )
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
        what = {
            name: quantity(part, self.output, self.target_name, several)
            for name, part in outputs.items()
        }
        each = {
            name: (part, operator, rows, shared | {"quantity": what[name]})
            for name, part in outputs.items()
        }
        # Columns of one feature are added up with what lies between them.
        needed = "cov" if uncertainty == "std" and self._rows.encoder is not None else uncertainty
        options: dict[str, Any] = {"uncertainty": needed, "tolerance": self.tolerance}
        if self.output == "probability":
            options |= {"n_draws": self.n_draws, "random_state": self.random_state}
            parts = {name: of_probability(*args, **options) for name, args in each.items()}
        else:
            result = posterior.apply(operator, rows, **options, **self._options)
            results = result if several else {"": result}
            parts = {name: of_function(*args, results[name]) for name, args in each.items()}
        if self._rows.encoder is not None:
            groups, labels = self._rows.encoder.groups, self._rows.encoder.texts(to_numpy(rows))
            parts = {name: replace(ex.group(groups), labels=labels) for name, ex in parts.items()}
        if needed != uncertainty:
            parts = {
                name: replace(ex, distribution=ex.distribution.without_cov())
                for name, ex in parts.items()
            }
        return MultiOutputExplanation(parts) if several else parts[""]

    def _importance(
        self,
        X: Any,
        baselines: Any,
        known: Explanation | None,
        n_samples: int = 2000,
        random_state: Any = 0,
    ) -> Importance:
        """Return the importance of the rows of X, whose explanation may be ``known`` already."""
        rows = self._rows.matrix("X", X)
        if self.output == "probability":
            importance = self._probability_importance(
                X, rows, baselines, known, n_samples, random_state
            )
        else:
            importance = self._latent_importance(X, rows, baselines, known, n_samples, random_state)
        name = self.baseline_name if baselines is None else "one per row"
        return replace(
            importance,
            quantity=self._quantity if known is None else known.quantity,
            baseline_name=name,
        )

    def _latent_importance(
        self,
        X: Any,
        rows: Array,
        baselines: Any,
        known: Explanation | None,
        n_samples: int,
        random_state: Any,
    ) -> Importance:
        """Return the importance of the function itself."""
        operator = self._operator(rows, baselines)
        shared: dict[str, Any] = {
            "operator": operator,
            "X": rows,
            "columns": self._rows,
            "options": self._options,
        }
        shared |= {"tolerance": self.tolerance, "known": known}
        components = enumerate(self._single.components)
        parts = (
            GaussianPart(k, weight, posterior, **shared) for k, (weight, posterior) in components
        )
        size = {"columns": rows.shape[1], "terms": len(operator.rows(slice(1)).terms(rows[:1]))}
        return draw_importance(
            parts, len(rows), self._rows.features(X), n_samples, random_state, **size
        )

    def _probability_importance(
        self,
        X: Any,
        rows: Array,
        baselines: Any,
        known: Explanation | None,
        n_samples: int,
        random_state: Any,
    ) -> Importance:
        """Return the importance of a probability: expectations from draws of every row, their
        spread from joint draws of some.
        """
        posterior, names = self._one, self._rows.features(X)
        parts: Any = self.batches(X, baselines, "std", batch_size=256) if known is None else [known]
        expected, own = np.zeros(len(names)), np.zeros(len(names))
        for part in parts:
            for some in blocks(len(part), 40.0 * part.draws[:, 0].size):
                draws = part.draws[:, some]
                sizes = np.abs(
                    draws + (part.values[some] - draws.mean(axis=0))
                )  # the means are known better than by draws
                expected += sizes.mean(axis=0).sum(axis=0) / len(rows)
                own += sizes.var(axis=0, ddof=1).sum(axis=0) / len(rows)
        operator, gathering = self._operator(rows, baselines), self._rows.gathering
        shared = (posterior, operator, rows, gathering, names, expected, own)
        return draw_probability_importance(*shared, n_samples, random_state)

    @property
    def _single(self) -> Posterior:
        """The posterior, where there is one output, and its function is what is explained."""
        if self.output == "probability":
            raise UnsupportedModelError(
                "output: joint and training_contributions are available for the latent function; use"
                ' an explainer with output="latent"'
            )
        return self._one

    @property
    def _one(self) -> Posterior:
        """The posterior, where there is one output."""
        if isinstance(self.posterior, MultiOutputPosterior):
            output = self.posterior.output_names[0]
            raise UnsupportedModelError(
                "model: joint, importance and training_contributions are asked of one output,"
                f" chosen by name: explainer[{output!r}]; there are {list(self.posterior.outputs)}"
            )
        return self.posterior

    @property
    def _quantity(self) -> str:
        """What is explained, where there is one output."""
        return quantity(self._one, self.output, self.target_name, several=False)

    @property
    def _options(self) -> dict[str, Any]:
        return {"method": self.method, "n_steps": self.n_steps}

    def _operator(self, rows: Array, baselines: Any) -> IntegratedGradients:
        baseline = (
            self.baseline if baselines is None else self._rows.baselines(baselines, len(rows))
        )
        return IntegratedGradients(baseline, self._rows.jumps)


def explain(
    model: Any,
    X: Any,
    baseline: Any = "mean",
    *,
    method: str = "auto",
    n_steps: int | None = None,
    tolerance: float = TOLERANCE,
    feature_names: Sequence[str] | None = None,
    output: str = "latent",
    n_draws: int = 1000,
    random_state: Any = 0,
    target_name: str | None = None,
    uncertainty: str = "cov",
) -> Explanation | Any:
    """Explain the rows of X in one call: ``Explainer(model, baseline, …)(X, uncertainty=…)``."""
    options: dict[str, Any] = {
        "method": method,
        "n_steps": n_steps,
        "tolerance": tolerance,
        "feature_names": feature_names,
    }
    options |= {
        "output": output,
        "n_draws": n_draws,
        "random_state": random_state,
        "target_name": target_name,
    }
    return Explainer(model, baseline, **options)(X, uncertainty=uncertainty)
