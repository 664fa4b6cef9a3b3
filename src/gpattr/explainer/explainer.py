"""Explainer: a model, a baseline, rows in, an Explanation out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from gpattr._core.array import Array, FloatArray
from gpattr._core.cards import card
from gpattr._core.deprecation import renamed_argument
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import Names, check_choice, check_count, check_text, read_only
from gpattr.adapters import as_posterior
from gpattr.closed_forms.resolution import check_method
from gpattr.exceptions import InvalidIndexError, InvalidInputError
from gpattr.explainer.attributions import (
    ATTRIBUTIONS,
    FeatureGroups,
    Groups,
    check_attribution,
    check_players,
    reference_name,
)
from gpattr.explainer.rows import Rows, row_names
from gpattr.explainer.task import Task
from gpattr.operators import Baselines, Operator
from gpattr.posteriors import TOLERANCE, Evaluation, MultiOutputPosterior, Posterior

if TYPE_CHECKING:
    from gpattr.explanation.baseline_sensitivity import BaselineSensitivity
    from gpattr.explanation.contributions import Contributions
    from gpattr.explanation.counterfactual import Counterfactual
    from gpattr.explanation.dependence import Dependence
    from gpattr.explanation.importance import Importance
    from gpattr.explanation.interactions import InteractionExplanation
    from gpattr.explanation.next_measurement import NextMeasurement
    from gpattr.quantities import Quantity

OUTPUTS = ("latent", "probability")


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Explainer:
    """Explains predictions of a Gaussian process, exactly and with their joint uncertainty.

    Frames are aligned by column name with the frame the model was trained on. Explainers are
    immutable.

    Parameters
    ----------
    model : estimator, posterior or model of another library
        A fitted estimator such as `GPRegressor`, any `gpattr.posteriors` object, or a model of
        another library.
    baseline : str, array (d,), Baselines or Marginals
        Where attributions start from: ``"mean"`` or ``"median"`` of the training inputs,
        ``"zeros"``, a point, or `gpattr.Baselines`.
    attribution : "integrated_gradients", "shapley" or Operator
        Shapley values also take the baseline `gpattr.Marginals`. An operator
        (`gpattr.operators.Gradient()`, or one of your own) brings its own baseline if it has one.
    method : str
        ``"auto"`` (closed form if there is one, else quadrature with a known error), ``"exact"``
        (refuses quadrature and sampling), ``"quadrature"`` (for comparison), or a rule with
        ``n_steps``: ``"right"``, ``"trapezoid"``, ``"simpson"``, ``"gauss_legendre"``; for Shapley
        values ``"permutations"``, of which ``n_steps`` antithetic pairs are sampled.
    n_steps : int, optional
        The number of steps of a rule, or of pairs of permutations.
    tolerance : float
        If quadrature does not reach it, relative to the size of the function, `ToleranceError` is
        raised.
    covariance_tolerance : float, optional
        1e-8, say, allows errors of that share of a row's largest variance in covariances. Exact
        models with noise then use the leading eigenvectors of their data's covariance, which takes
        a fraction of the time; ``cov_error`` bounds the error rigorously, and rows that it does not
        suffice for are solved. ``method`` of the explanation says what was done.
    feature_names : sequence of str, optional
        The names of the columns of a model that was trained on an array.
    output : "latent" or "probability"
        ``"probability"`` explains the class probabilities of a classifier: their attributions are
        not Gaussian, and are given by draws.
    n_draws : int
        How many draws, with ``output="probability"``.
    random_state : int, Generator or None
        An integer fixes these draws.
    target_name : str, optional
        The predicted quantity, with its unit: explanations are then of the "predicted price (€)",
        and explanations of one class of the "probability of malignant" rather than of the label the
        classifier was trained with.
    baseline_name : str, optional
        The name of the baseline: "average patient".
    players : {name: [features]}, optional
        Groups of features that are one player each; Shapley values have one player per feature
        otherwise.
    quantity : Quantity, optional
        One of `gpattr.quantities`, explained in place of the prediction: its standard deviation, a
        confidence bound, an expected improvement, an acquisition function. Quantities are
        properties of the model, and their attributions numbers without uncertainty.
    hyperparameters : "fitted" or "integrated"
        ``"integrated"`` explains `gpattr.integrate(model)` in place of the model: intervals then
        include that its hyperparameters are not known.
    errors : "raise" or "mark"
        The treatment of rows whose attributions, or whose spread, do not reach the tolerance:
        ``"mark"`` explains all others, and gives these their means without a spread, or NaN.
        `Explanation.marked` says which they are.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ex = explainer([[1.0, 0.0], [1.0, -2.0]])
    >>> ex.values.round(2)
    array([[ 1.,  0.],
           [ 1., -4.]])
    >>> ex.predictions.round(2)
    array([ 1., -3.])
    """

    posterior: Posterior
    baseline: Array | Baselines | None
    baseline_name: str
    attribution: str | Operator
    quantity: Quantity | None
    evaluation: Evaluation
    output: str
    n_draws: int
    random_state: RandomLike
    target_name: str | None
    feature_names: Names | None
    errors: str
    task: Task

    @renamed_argument("scale", "output", since="0.1", removal="0.2")
    def __init__(
        self,
        model: Any,
        baseline: Any = "mean",
        *,
        attribution: str | Operator = "integrated_gradients",
        method: str = "auto",
        n_steps: int | None = None,
        tolerance: float = TOLERANCE,
        covariance_tolerance: float | None = None,
        feature_names: Sequence[str] | None = None,
        output: str = "latent",
        n_draws: int = 1000,
        random_state: RandomLike = 0,
        target_name: str | None = None,
        baseline_name: str | None = None,
        players: Groups | None = None,
        quantity: Quantity | None = None,
        hyperparameters: str = "fitted",
        errors: str = "raise",
    ) -> None:
        check_choice("hyperparameters", hyperparameters, ("fitted", "integrated"))
        if hyperparameters == "integrated":
            from gpattr.integration import integrate  # which needs scikit-learn

            posterior = integrate(model)
        else:
            posterior = as_posterior(model)
        for key, text in (("target_name", target_name), ("baseline_name", baseline_name)):
            if text is not None and not check_text(key, text).strip():
                raise InvalidInputError(f"{key}: expected a name, got {text!r}")
        check_attribution(attribution, baseline)
        check_players(attribution, players)
        evaluation = Evaluation("cov", method, n_steps, tolerance, covariance_tolerance)
        _check_output(posterior, check_choice("output", output, OUTPUTS), method, attribution)
        if quantity is not None:
            from gpattr.explainer.quantity_attributions import check_quantity

            check_quantity(quantity, posterior, attribution, method, output)
        if check_count("n_draws", n_draws) < 2:
            raise InvalidInputError(f"n_draws: expected at least 2, got {n_draws}")
        random_generator(random_state)
        rows = Rows(posterior, feature_names, baseline)
        if isinstance(attribution, str):
            # Coalitions have one category of a feature, as rows do.
            point, name = rows.baseline(baseline, whole=attribution == "shapley")
            # refuses what it cannot start from, and a method that it does not have
            check_method(ATTRIBUTIONS[attribution](point, rows.jumps, None), method, n_steps)
        else:
            point, name = None, reference_name(attribution)
        task = Task(
            posterior=posterior,
            reader=rows,
            groups=None if players is None else FeatureGroups.of(players, rows.features(None)),
            attribution=attribution,
            baseline=_frozen(point),
            baseline_name=baseline_name or name,
            quantity=quantity,
            evaluation=evaluation,
            output=output,
            n_draws=int(n_draws),
            random_state=random_state,
            target_name=target_name,
            errors=check_choice("errors", errors, ("raise", "mark")),
        )
        self._show(task)

    def _show(self, task: Task) -> None:
        """Become the explainer of a task."""
        own = {"task": task, "feature_names": task.reader.columns}
        for name in (each.name for each in fields(self)):
            object.__setattr__(self, name, own[name] if name in own else getattr(task, name))

    @property
    def method(self) -> str:
        """The method of evaluation."""
        return self.evaluation.method

    @property
    def n_steps(self) -> int | None:
        """The number of steps, for methods that have one."""
        return self.evaluation.n_steps

    @property
    def tolerance(self) -> float:
        """The tolerance of quadrature, relative to the size of the function."""
        return self.evaluation.tolerance

    @property
    def covariance_tolerance(self) -> float | None:
        """The error that covariances may have, as a share of the largest variance of a row."""
        return self.evaluation.covariance_tolerance

    def __call__(
        self, X: ArrayLike, baselines: ArrayLike | None = None, uncertainty: str = "cov"
    ) -> Any:
        """Explain the rows of X.

        Parameters
        ----------
        X : array or frame (n, d)
            The rows.
        baselines : array or frame (n, d), optional
            A baseline for each row, in place of the explainer's.
        uncertainty : "cov", "std" or "none"
            ``"cov"`` for the covariance between features, ``"std"`` for standard deviations only,
            ``"none"`` for means alone, which take a few times a prediction.

        Returns
        -------
        Explanation or MultiOutputExplanation
            The latter for a model with several outputs.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> explainer([[1.0, 0.5]], uncertainty="std").values.round(2)
        array([[ 1.  , -0.25]])
        >>> own = explainer([[1.0, 0.5]], baselines=[[1.0, 0.0]])  # where each row starts from
        >>> own.values.round(2)
        array([[ 0.  , -0.25]])
        """
        return self.task.explain_table(X, baselines, uncertainty)

    def __getitem__(self, output: str) -> Explainer:
        """Return the explainer of one output of a model with several, with the same baseline.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.MultiOutputGPRegressor().fit(X, np.column_stack([X[:, 0], X[:, 1] ** 2]))
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> explainer["y1"]([[1.0, 1.0]]).values.round(2)
        array([[0., 1.]])
        """
        if not isinstance(self.posterior, MultiOutputPosterior):
            raise InvalidIndexError(
                f"output: the model has one output, which has no name, got {output!r}"
            )
        single = copy(self)
        single._show(replace(self.task, posterior=self.posterior[output]))
        return single

    def batches(
        self, X: Any, baselines: Any = None, uncertainty: str = "cov", *, batch_size: int = 1024
    ) -> Iterator[Any]:
        """Explain the rows of X in batches: an iterator of explanations of ``batch_size`` rows.

        X is a table, or an iterable of tables, such as the chunks of a file, each of which is read
        when it is needed. Rows are then counted on from one table to the next, unless their index
        names them, and a batch ends where its table does.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> [len(ex) for ex in explainer.batches(X, batch_size=12)]
        [12, 12, 6]
        """
        from gpattr.explainer.batches import batches_of

        return batches_of(self.task, X, baselines, uncertainty, batch_size)

    def map_table(
        self,
        table: Any,
        uncertainty: str = "std",
        *,
        errors: str = "raise",
        keep: Sequence[str] = (),
    ) -> Any:
        """Explain a table of any size: a table of the same kind, one row for each of its rows.

        ``table`` is a pandas or Polars frame, a Polars LazyFrame, an Arrow table, reader or
        dataset, a DuckDB relation, a Dask data frame or array, a Spark data frame or a Ray dataset.
        Lazy tables give lazy results: nothing is computed, nor collected, before the result is.

        The columns are ``prediction``, ``baseline_prediction``, ``attribution:<feature>`` for every
        feature and, with ``uncertainty="std"`` but not ``"none"``, ``std:<feature>``, after the
        table's own index if it has one and the columns to ``keep``, which are not given to the
        model. Several outputs have all of these once each, as ``<output>:prediction``.

        ``errors="raise"`` stops at a part of the table with other columns or types, or at a row
        with missing values or unknown categories; ``errors="missing"`` gives missing results for
        those rows and goes on.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> import pandas as pd
        >>> table = pd.DataFrame({"x0": [1.0, 2.0], "x1": [2.0, 0.0]}, index=["a", "b"])
        >>> explainer.map_table(table, uncertainty="none").round(2)
           prediction  baseline_prediction  attribution:x0  attribution:x1
        a        -3.0                  0.0             1.0            -4.0
        b         2.0                  0.0             2.0             0.0
        """
        from gpattr.engines import map_table

        return map_table(self, table, uncertainty, errors, keep)

    def along(self, x: ArrayLike, *, n_points: int = 101, uncertainty: str = "std") -> Any:
        """Explain points on the straight path from the baseline to x, which `plots.path` draws.

        Both ends are included.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> explainer.along([1.0, 2.0], n_points=3).values.round(2)
        array([[ 0. ,  0. ],
               [ 0.5, -1. ],
               [ 1. , -4. ]])
        """
        from gpattr.explainer.batches import explain_path

        return explain_path(self.task, x, n_points, uncertainty)

    def across_outputs(self, X: ArrayLike, baselines: ArrayLike | None = None) -> FloatArray:
        """Return the covariance of each row between features and outputs, (n, d, P, d, P).

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> Y = np.column_stack([X[:, 0], X[:, 0] + X[:, 1]])
        >>> model = gpattr.MultiOutputGPRegressor(outputs="coregionalised").fit(X, Y)
        >>> gpattr.Explainer(model).across_outputs(X[:3]).shape
        (3, 2, 2, 2, 2)
        """
        from gpattr.explainer.joint import covariance_across_outputs

        return covariance_across_outputs(self.task, X, baselines)

    def joint(self, X: ArrayLike, baselines: ArrayLike | None = None) -> FloatArray:
        """Return the covariance between features and between rows, (n, d, n, d).

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> explainer.joint([[1.0, 0.0], [1.0, -2.0]]).shape
        (2, 2, 2, 2)
        """
        from gpattr.explainer.joint import joint_covariance

        return joint_covariance(self.task, X, baselines)

    def interactions(
        self,
        X: ArrayLike,
        baselines: ArrayLike | None = None,
        *,
        uncertainty: str = "std",
        index: str | None = None,
        pairs: Any = None,
    ) -> InteractionExplanation:
        """Return the interactions between features in the rows of X, as symmetric matrices.

        Parameters
        ----------
        X : array or frame (n, d)
            The rows.
        baselines : array or frame (n, d), optional
            A baseline for each row, in place of the explainer's.
        uncertainty : "std", "cov" or "none"
            ``"cov"`` gives the covariance between the pairs as well.
        index : "shapley", "taylor" or "integrated_hessians", optional
            With ``attribution="shapley"`` it is ``"shapley"``, by default, or ``"taylor"``; with
            integrated gradients ``"integrated_hessians"``.
        pairs : list of pairs, optional
            The pairs of features, by name or position, to compute; by default all of them.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(40, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] * X[:, 1] + X[:, 0] + 2.0 * X[:, 1])
        >>> explainer = gpattr.Explainer(model, baseline="zeros", attribution="shapley")
        >>> explainer.interactions([[1.0, 1.0]]).values[0].round(2)
        array([[1. , 0.5],
               [0.5, 2. ]])
        """
        from gpattr.explainer.interactions import interactions_of

        return interactions_of(self.task, X, baselines, uncertainty, index, pairs)

    def dependence(
        self,
        feature: Any,
        grid: Any = None,
        background: Any = None,
        kind: str = "average",
        centred: bool = False,
        derivative: bool = False,
        uncertainty: str = "cov",
    ) -> Dependence:
        """Return the dependence of the prediction on the values of a feature, or of a pair.

        Parameters
        ----------
        feature : str, int or a pair of them
            The feature, by name or position.
        grid : values, int or a pair of these, optional
            The values of the feature, or their number; by default 50 values across the background
            (20 × 20 for a pair), or all categories.
        background : rows or Baselines, optional
            The values of the other features, over which the prediction is averaged; by default the
            training inputs.
        kind : "average" or "individual"
            With ``"individual"`` every row of the background has a curve of its own.
        centred : bool
            Whether to subtract the curve's average over the background.
        derivative : bool
            Whether to return the average slope.
        uncertainty : "cov", "std" or "none"
            As for `Explainer.__call__`, between the values of the curve.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> curve = explainer.dependence("x0", grid=[0.0, 1.0, 2.0])
        >>> curve.values.round(2) - curve.values.round(2)[0]
        array([0., 1., 2.])
        """
        from gpattr.explainer.dependence import dependence_of

        return dependence_of(
            self.task,
            feature,
            grid,
            background,
            kind=kind,
            centred=centred,
            derivative=derivative,
            uncertainty=uncertainty,
        )

    def importance(
        self,
        X: ArrayLike,
        baselines: ArrayLike | None = None,
        *,
        by: str = "absolute",
        groups: Groups | None = None,
        n_samples: int = 2000,
        random_state: RandomLike = 0,
    ) -> Importance:
        """Return the importance of each feature over the rows of X.

        Rows share one unknown function and so are correlated: the uncertainty comes from draws of
        their joint distribution. Expectations cover all rows; `Importance` says what is drawn of
        many rows or features, and with which error. Memory stays bounded. With
        ``output="probability"`` expectations come from the draws of each row, and joint draws cover
        as many rows as make 4000 values and gradients of the latent function.

        Parameters
        ----------
        X : array or frame (n, d)
            The rows.
        baselines : array or frame (n, d), optional
            A baseline for each row, in place of the explainer's.
        by : "absolute" or "variance"
            The mean absolute attribution, or the variance of the attribution over the rows.
        groups : {name: [features]}, optional
            Adds up the attributions of features; those in no group stay by themselves.
        n_samples : int
            The number of joint draws.
        random_state : int, Generator or None
            An integer fixes these draws.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> explainer.importance(X).values.round(1)
        array([0.8, 0.7])
        """
        from gpattr.explainer.importance import ImportanceRequest, importance_of

        request = ImportanceRequest(n_samples, random_state, by, groups)
        return importance_of(self.task, X, baselines, None, request)

    def measure_next(
        self,
        candidates: ArrayLike,
        X: ArrayLike,
        feature: str | int | None = None,
        noise: ArrayLike | None = None,
        baselines: ArrayLike | None = None,
    ) -> NextMeasurement:
        """Return by how much a measurement at each candidate would make attributions more certain.

        Nothing is measured or drawn: variances after a measurement do not depend on its outcome.

        Parameters
        ----------
        candidates : array or frame (c, d)
            Places where the function could be measured.
        X : array or frame (n, d)
            The rows whose attributions are meant.
        feature : str or int, optional
            The feature whose attributions are meant; by default all.
        noise : float or array (c,), optional
            The variance of a measurement, or one for each candidate; by default the model's own.
        baselines : array or frame (n, d), optional
            A baseline for each row, in place of the explainer's.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> candidates = [[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]]
        >>> explainer.measure_next(candidates, [[2.0, 2.0]], feature="x1").best().positions
        (1,)
        """
        from gpattr.explainer.next_measurement import next_measurement

        return next_measurement(self.task, candidates, X, feature, noise, baselines)

    def counterfactual(
        self,
        x: ArrayLike,
        target: float,
        *,
        direction: str = "at_least",
        level: float = 0.95,
        features: Any = None,
        bounds: Any = None,
        scales: Any = None,
        prefer: str = "fewest",
    ) -> Counterfactual:
        """Return the smallest change of the row x with which the prediction passes ``target``.

        The condition is P(f ≥ target) ≥ ``level`` for the latent function f, without noise. It is a
        search, on grids of several points a length-scale for one or two features that may change,
        and from many starts for more: a nearer change may exist. No training row within the bounds
        that passes is nearer than the nearest by more than 0.1 %, nor is there one if ``found`` is
        False; of exact models with more than about 3400 rows a part of them is tried.

        Parameters
        ----------
        x : array (d,), or a frame or series of one row
            The row.
        target : float
            The value to be passed; with ``output="probability"`` a class probability.
        direction : "at_least" or "at_most"
            With ``"at_most"`` the condition is P(f ≤ target) ≥ level.
        level : float
            The probability with which it passes.
        features : list, optional
            Those that may change, by name or position; all others stay as they are.
        bounds : {feature: (low, high)}, or array (d, 2), optional
            Limits, which must contain x, or a list of labels for categories; by default the range
            of the training inputs, widened to contain x.
        scales : {feature: number}, or array (d,), optional
            The units that changes are measured in; by default the standard deviation of each
            feature over the training inputs. A change of category is one unit; dates stay.
        prefer : "fewest" or "nearest"
            The nearest change of as few features as possible, or the nearest of all.
            `Counterfactual.alternatives` has the nearest for each number of features.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> found = explainer.counterfactual([0.0, 0.0], target=1.0, prefer="fewest")
        >>> found.found, list(found.changes)
        (True, ['x0'])
        """
        from gpattr.explainer.counterfactual import CounterfactualRequest, counterfactual_of

        request = CounterfactualRequest(target, direction, level, features, bounds, scales, prefer)
        return counterfactual_of(self.task, x, request)

    def baseline_sensitivity(
        self, X: ArrayLike, baselines: ArrayLike | None = None
    ) -> BaselineSensitivity:
        """Return how far the attributions of the rows of X move as the baseline moves.

        ``baselines`` are rows (k, d), or `Baselines` with weights, by default up to 100 of the
        training inputs, always the same. Every row is explained from every baseline, by mean
        attributions; memory stays bounded.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> explainer.baseline_sensitivity([[2.0, 0.5]]).same_sign.round(2)
        array([[1.  , 0.47]])
        """
        from gpattr.explainer.baseline_sensitivity import sensitivity_of

        return sensitivity_of(self.task, X, baselines)

    def training_contributions(self, x: ArrayLike, feature: str | int) -> Contributions:
        """Return the share of each training row in the attribution of ``feature`` at x, (m,).

        They are in the order of training and add up to the attribution, less the attribution of a
        prior mean; neighbouring rows often have large shares of opposite sign.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> shares = explainer.training_contributions([1.0, 0.0], "x0")
        >>> shares.shape, round(float(shares.sum()), 2)
        ((30,), 1.0)
        """
        from gpattr.explainer.joint import contributions_to

        return contributions_to(self.task, x, feature)

    def widget(self, X: ArrayLike) -> Any:
        """Return a notebook widget with sliders, which starts from the rows of X.

        It explains the row that the sliders show, in the browser where the page's script knows the
        model, and by this explainer otherwise. It needs the extra ``gpattr[widget]``.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> explainer.widget(X)  # doctest: +SKIP
        <gpattr.widget.notebook.WhatIfWidget object at 0x7f12dd9b0ad0>
        """
        from gpattr.widget import make_widget

        reader = self.task.reader
        rows = reader.matrix("X", X)
        return make_widget(self, reader, rows, reader.names(X), row_names(X, len(rows)))

    def __repr__(self) -> str:
        drawn = f", output={self.output!r}, n_draws={self.n_draws}"
        output = "" if self.output == "latent" else drawn
        output += "" if self.quantity is None else f", quantity={self.quantity!r}"
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
        if self.quantity is not None:
            lines.append(("quantity", repr(self.quantity)))
        return card("Explainer", lines)


def _frozen(baseline: Any) -> Any:
    """Return a baseline that cannot be written to; tensors are copied."""
    if baseline is None or isinstance(baseline, Baselines):
        return baseline
    return read_only(baseline + 0.0)


def _check_output(
    posterior: Posterior, output: str, method: str, attribution: str | Operator
) -> None:
    """Refuse options that class probabilities do not support."""
    if output != "probability":
        return
    if method != "auto":
        raise InvalidInputError(
            f'method: output="probability" supports only method="auto", got {method!r}'
        )
    if attribution != "integrated_gradients":
        raise InvalidInputError(
            'attribution: output="probability" supports only "integrated_gradients", got'
            f" {attribution!r}"
        )
    from gpattr.explainer.probability import require_link

    for name, part in posterior.outputs.items():
        require_link(part, name)
