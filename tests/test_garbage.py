"""Every public argument is given what nobody should give it: the library says so in its own words,
or answers rightly.

The surface is read from the signatures, so a new argument is tried without being entered anywhere.
A new class or function, or an argument without a default, fails `test_good_arguments` until `GOOD`
and `OBJECTS` say how to call it."""

import contextlib
import copy
import dataclasses
import importlib
import inspect
import os
import re
import signal
import tempfile
from collections.abc import Mapping
from functools import cache, partial

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import gpattr
from gpattr import (
    bases,
    closed_forms,
    datasets,
    distributions,
    kernels,
    means,
    operators,
    posteriors,
    quantities,
    tables,
)
from gpattr.adapters import registry
from gpattr.encoders import Encoder
from gpattr.estimators import hyperparameters
from gpattr.exceptions import DatasetError, GpattrError

mpl.use("Agg")
# `special` is left out: its integrals are the inner loop of every formula, for arrays in the range
# that they state.
MODULES = [
    name
    for name in gpattr.__all__
    if inspect.ismodule(getattr(gpattr, name)) and name not in ("exceptions", "special")
]
MODULE_NAMES = ["gpattr", *(f"gpattr.{name}" for name in MODULES), "gpattr.rules"]
GARBAGE = {
    "None": None,
    "NaN": float("nan"),
    "inf": float("inf"),
    "0": 0,
    "-1": -1,
    "10**30": 10**30,
    "text": "text",
    "empty array": np.empty(0),
    "0-d array": np.array(1.0),
    "two numbers": np.array([1.0, 2.0]),
    "set": {1},
    "pandas.NA": pd.NA,
    "object": object(),
}
SECONDS = 10
# What is not known of matrices that another library made.
GIVEN, UNKNOWN = "given matrices", ("predictions", "base_values", "delta")

X = np.array([[0.0, 0.1], [0.4, 1.0], [1.0, -0.3], [1.3, 0.8], [-0.7, 0.5], [-1.0, -0.9]])
Y = np.array([0.3, 1.1, -0.4, 0.9, 0.2, -1.0])
BOTH = np.column_stack([Y, X[:, 0]])
LABELS = np.array([0, 1, 0, 1, 1, 0])
SE = kernels.SquaredExponential([0.9, 1.2])
IG = operators.IntegratedGradients([0.1, 0.2])
COALITIONS = operators.Coalitions(X[:1], X, operators.Players.single(2))
CURVES = operators.Curves(X, (0,), X[:3, :1])
LINEAR = bases.Monomials.up_to(1, 2, constant=True)
FRAME = pd.DataFrame(X, columns=["a", "b"]).assign(kind=["u", "v", "u", "v", "u", "v"], price=Y)
COLUMNS = tables.Columns.of(FRAME, "price")
ENCODER = Encoder(("a", "kind"), {"kind": ("u", "v")})
OPTIONS = {
    "GPRegressor": {"kernel": SE},
    "GPClassifier": {"kernel": SE},
    "SparseGPRegressor": {"n_inducing": 3, "kernel": SE},
    "HilbertGPRegressor": {"n_basis": 14, "boundary": 4.0, "kernel": SE, "optimize": False},
    "RandomFeatureGPRegressor": {"n_frequencies": 4, "kernel": SE},
    "MultiOutputGPRegressor": {"kernel": SE},
    "BayesianLinearRegressor": {},
}
TARGETS = {"GPClassifier": LABELS, "MultiOutputGPRegressor": BOTH}


SCRATCH = tempfile.TemporaryDirectory()


def folder():
    return tempfile.mkdtemp(dir=SCRATCH.name)


class Made:
    """A good value that takes time to make, or changes when it is used: made for each call."""

    def __init__(self, make):
        self.make = make


def untrained(name):
    cls, options = getattr(gpattr, name), OPTIONS[name]
    return cls(
        **options | ({"optimize": False} if "optimize" in inspect.signature(cls).parameters else {})
    )


@cache
def _fitted(name):
    return untrained(name).fit(X, TARGETS.get(name, Y))


def fitted(name="GPRegressor"):
    return copy.deepcopy(_fitted(name))


@cache
def explainer(name="GPRegressor", **options):
    return gpattr.Explainer(fitted(name), [0.1, 0.2], **options)


@cache
def sampled():
    return explainer("GPClassifier", output="probability", n_draws=20)(X[:2])


@cache
def explanation(name="GPRegressor"):
    return explainer(name)(X[:2])


@cache
def bounded():
    return explainer(quantity=quantities.UpperConfidenceBound(2.0))(X[:2])


@cache
def interactions():
    return explainer().interactions(X[:2])


@cache
def dependence():
    return explainer().dependence(0, grid=4)


@cache
def next_measurement():
    return explainer().measure_next(X[:3] + 0.2, X[:2], 0)


def counterfactual():
    return explainer().counterfactual(X[0], 0.6, level=0.6)


@cache
def comparison():
    return gpattr.compare(explainer(), gpattr.Explainer(explainer().posterior, [0.3, 0.1]), X[:1])


@cache
def sensitivity():
    return explainer().baseline_sensitivity(X[:1])


@cache
def table_model(task="regression"):
    y = Y if task == "regression" else np.where(np.arange(len(Y)) % 2, "well", "ill")
    return tables.TableModel.fit(COLUMNS.features(FRAME), y, COLUMNS, task=task)


@cache
def saved(make):
    path = os.path.join(folder(), "saved.json")
    make().save(path)
    return path


@cache
def several():
    return explainer("MultiOutputGPRegressor")(X[:2])


def linear():
    return fitted("BayesianLinearRegressor")


@cache
def foreign():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    return GaussianProcessRegressor(RBF(), alpha=0.1, optimizer=None).fit(X, Y)


@cache
def table_file():
    path = os.path.join(folder(), "table.csv")
    FRAME.to_csv(path, index=False)
    return path


def row_sum(X):
    return X.sum(axis=1)


def row_sum_gradient(X):
    return np.ones_like(X)


def one(X, *others):
    return np.ones(len(X))


def encoded():
    """A posterior of a number and two categories."""
    rows = ENCODER.encode("X", FRAME[["a", "kind"]])
    kernel = kernels.SquaredExponential()
    return posteriors.EncodedPosterior(
        posteriors.ExactPosterior(kernel, rows, Y, noise=0.1), ENCODER
    )


@cache
def sobol_indices():
    return gpattr.sobol_indices(fitted("GPRegressor"), pairs=True, n_draws=100)


# The classes that say what a quantity is of a mean and a standard deviation.
MOMENTS = (
    "StandardDeviation",
    "Variance",
    "_ConfidenceBound",
    "ExpectedImprovement",
    "LogExpectedImprovement",
    "ProbabilityOfImprovement",
)


# Good values of arguments that have no default, by name; by "Class.method.name" or "function.name"
# where it means something else.
GOOD = {
    "X": X,
    "x": X[0],
    "y": Y,
    "Z": X[:3],
    "d": 2,
    "t": np.array([0.0, 0.5]),
    "r2": np.ones((2, 2)),
    "w": np.ones(3),
    "step": X[:2],
    "kernel": SE,
    "kernels": SE,
    "mean": means.Zero(),
    "noise": 0.1,
    "op": IG,
    "operator": IG,
    "basis": LINEAR,
    "posterior": Made(lambda: fitted().posterior_),
    "posteriors": Made(lambda: [fitted().posterior_]),
    "layers": Made(lambda: [[fitted().posterior_] * 2, fitted().posterior_]),
    "latents": Made(lambda: [fitted().posterior_]),
    "mixing": np.ones((2, 1)),
    "model": Made(fitted),
    "explanation": Made(explanation),
    "feature": 0,
    "i": 0,
    "j": "x1",
    "key": 0,
    "output": "y0",
    "rows": slice(0, 1),
    "entries": slice(0, 1),
    "G": np.eye(2),
    "level": 0.9,
    **{f"{kind}.prob_greater.j": 1 for kind in ("Draws", "Gaussian", "Mixture", "Point")},
    "Gaussian.mean": X,
    "Point.mean": X,
    "Draws.draws": np.stack([X, X + 1.0]),
    "Mixture.means": X[None],
    "Mixture.weights": np.ones(1),
    "Distribution.need.name": "mean",
    "Distribution.concatenate.parts": [distributions.Point(X)],
    "Explanation.require_features.name": "picture",
    "groups": {"both": [0, 1]},
    "baseline": [0.1, 0.2],
    "points": X[:2],
    "weights": np.ones(3),
    "covariance": np.eye(2),
    "z": (np.ones((2, 2)), np.ones((2, 2))),
    "name": "X",
    "frame": FRAME,
    "target": "price",
    "columns": COLUMNS,
    "inside": (0,),
    "outside": (1,),
    "Kernel.factors.groups": ((0,), (1,)),
    "path": Made(lambda: os.path.join(folder(), "file.json")),
    "n_samples": 5,
    "features": (0,),
    "coefficients": np.array([1.0, 2.0]),
    "powers": np.array([[0, 1], [1, 0]]),
    "beta": np.array([1.0, 2.0]),
    "degree": 2,
    "factor": np.eye(6),
    "alpha": Y,
    "q_mean": np.ones(3),
    "inducing": X[:3],
    "outputs": Made(lambda: {"p": fitted().posterior_, "q": fitted().posterior_}),
    "tasks": LABELS,
    "constant": True,
    "parts": Made(lambda: [explanation(), explanation()]),
    "Y": BOTH,
    "second": True,
    "differentiate.x": X[:2],
    "differentiate.y": X[:2],
    "Function.values.x": X[:2],
    "Function.values.y": X[:2],
    "Cosine.phase.difference": X[:2],
    "Select.kernel": kernels.SquaredExponential(),
    "covariance.row": 0,
    "parts.explanation": Made(lambda: bounded()),
    "parts.row": 0,
    "density.row": 0,
    "ranks.row": 0,
    "waterfall.row": 0,
    "kernels.Function.value": lambda x, y: (x * y).sum(axis=-1),
    "kernels.Function.gradient": lambda x, y: y + 0.0 * x,
    "kernels.Function.mixed": lambda x, y: np.broadcast_to(
        np.eye(2), (*np.broadcast_shapes(x.shape, y.shape), 2)
    ),
    "Rescaled.factor": row_sum,
    "Warped.map": lambda X: X,
    "Warped.jacobian": lambda X: np.broadcast_to(np.eye(2), (*X.shape, 2)),
    "Rescaled.gradient": row_sum_gradient,
    "separable.kernel": kernels.SquaredExponential,
    "separable.lengthscale": [1.0, 2.0],
    "FullAdditive.bases": [kernels.SquaredExponential(), kernels.SquaredExponential()],
    "FullAdditive.order_variances": [1.0, 0.5],
    "means.Constant.value": 1.0,
    "means.Function.function": row_sum,
    "means.Function.derivative": row_sum_gradient,
    "Linear.with_beta.beta": np.array([1.0, 2.0, 3.0]),
    "Combined.parts": (LINEAR,),
    "Combined.columns": ((0, 1),),
    "Combined.width": 2,
    "Fourier.frequencies": X[:2],
    "Hilbert.centre": [0.0, 0.0],
    "Hilbert.half_width": [3.0, 3.0],
    "Hilbert.n_basis": (3, 3),
    "Monomials.local_gradient.u": X,
    "Paths.start": X[:1],
    "Paths.stop": X,
    "Paths.along.t": np.zeros((6, 1)),
    "Paths.stack.batches": Made(lambda: [operators.Paths(X[:1], X)]),
    "Coalitions.start": X[:1],
    "Coalitions.stop": X,
    "Curves.columns": (0,),
    "Curves.nodes": X[:3, :1],
    "Curves.stack.batches": Made(lambda: [CURVES]),
    "Curves.points.at": X,
    "Curves.combined.values": X[:3],
    "PartialDependence.features": (0,),
    "PartialDependence.grid": X[:3, :1],
    "PartialDependence.background": X,
    "Explainer.dependence.feature": 0,
    "Explainer.map_table.table": FRAME[["a", "b"]],
    "MultiOutputExplanation.concatenate.parts": Made(lambda: [several()]),
    "candidates": X[:3] + 0.2,
    "plots.measure_next.measurement": Made(lambda: next_measurement()),
    "Posterior.condition_on.y": 0.3,
    "Posterior.condition_on.x": X[0] + 0.3,
    "Posterior.condition_on.noise": 0.1,
    "EncodedPosterior.condition_on.x": FRAME[["a", "kind"]][:1],
    "Dependence.load.path": Made(lambda: saved(dependence)),
    "Explainer.counterfactual.target": 0.6,
    "compare.ex_a": Made(explanation),
    "compare.ex_b": Made(explanation),
    "plots.counterfactual.counterfactual": Made(counterfactual),
    "plots.comparison.comparison": Made(comparison),
    "baseline_sensitivity.sensitivity": Made(sensitivity),
    "players": operators.Players.single(2),
    "Coalitions.stack.batches": Made(lambda: [COALITIONS]),
    "members": np.array([[0.0, 1.0], [1.0, 1.0]]),
    "Marginals.rows": X,
    "Players.owner": (0, 1),
    "Players.count": 2,
    "Players.select.columns": (0,),
    "pairs": [(0, 0), (0, 1), (1, 1)],
    "order": 2,
    "by_pair": Made(lambda: interactions().by_pair),
    "index": "integrated_hessians",
    "SobolIndices.effects": Made(lambda: sobol_indices().effects),
    "SobolIndices.feature_names": ("x0", "x1"),
    "SobolIndices.load.path": Made(lambda: saved(sobol_indices)),
    "Uniform.low": 0.0,
    "Uniform.high": 1.0,
    "Normal.mean": 0.0,
    "Normal.std": 1.0,
    "sobol_bar.indices": Made(lambda: sobol_indices()),
    "plots.dependence.dependence": Made(dependence),
    "plots.dependence_grid.dependences": Made(lambda: [dependence()]),
    "InteractionExplanation.load.path": Made(lambda: saved(interactions)),
    "InteractionExplanation.from_matrices.values": Made(lambda: np.array(interactions().values)),
    "interaction_matrix.explanation": Made(interactions),
    "interaction_network.explanation": Made(interactions),
    "Points.stack.batches": Made(lambda: [operators.Points(X)]),
    "AffinePosterior.shift": [0.0, 0.0],
    "AffinePosterior.scale": [1.0, 2.0],
    "CombinationPosterior.coefficients": [1.0],
    "FunctionSpacePosterior.inputs": X,
    "LaplacePosterior.y": LABELS,
    "ExpectationPropagationPosterior.y": LABELS,
    "LaplacePosterior.from_state.y": LABELS,
    "LaplacePosterior.from_state.column_scale": np.ones(6),
    "ExactPosterior.from_state.factor": np.eye(6),
    "SparsePosterior.q_cov": np.eye(3),
    "WeightSpacePosterior.covariance": np.eye(3),
    "MultiTaskPosterior.noise": 0.1,
    "MultiOutputExplanation.outputs": Made(lambda: {"p": explanation(), "q": explanation()}),
    "GPClassifier.fit.y": LABELS,
    "RandomFeatureGPRegressor.fit_chunks.chunks": Made(lambda: [(X, Y), (X, Y)]),
    "GPRegressor.fit.noise": None,
    "SparseGPRegressor.fit.noise": None,
    "MultiOutputGPRegressor.fit.noise": None,
    "MultiOutputGPRegressor.fit.Y": BOTH,
    "MultiOutputGPRegressor.score.y": BOTH,
    "Explanation.load.path": Made(lambda: saved(explanation)),
    "MultiOutputExplanation.load.path": Made(lambda: saved(several)),
    "PosteriorEstimator.load.path": Made(lambda: saved(linear)),
    "TableModel.load.path": Made(lambda: saved(table_model)),
    "TableModel.fit.X": COLUMNS.features(FRAME),
    "TableModel.predict.X": COLUMNS.features(FRAME),
    "TableModel.score.X": COLUMNS.features(FRAME),
    "TableModel.predict_proba.X": COLUMNS.features(FRAME),
    "TableModel.regressor": Made(lambda: table_model().regressor),
    "Columns.names": ("a", "b"),
    "Columns.categories": {},
    "Columns.of_content.content": COLUMNS.to_content(),
    "KnownFunction.sample.n_samples": 3,
    "data_home": Made(folder),
    "make_heteroscedastic.n_samples": 4,
    "training.contributions": Made(lambda: explainer().training_contributions(X[0], 0)),
    "read_table.path": Made(table_file),
    "register.operator": operators.Gradient,
    "register.kernel": kernels.Constant,
    "register.cross": one,
    "register.prior_cov": one,
    "register_basis.operator": operators.Gradient,
    "register_basis.basis": bases.Monomials,
    "register_basis.images": one,
    "register_mean.operator": operators.Gradient,
    "register_mean.mean": means.Zero,
    "register_mean.apply": one,
    "evaluation": Made(posteriors.Evaluation),
    "units": operators.AffineMap(np.zeros(2), np.ones(2), (0, 1), 2),
    "like": X,
    "U": X,
    "encoding": np.eye(2),
    "matrix": np.eye(2),
    "over_axes.operator": operators.Gradient(),
    "AffineMap.shift": np.zeros(2),
    "AffineMap.scale": np.ones(2),
    "AffineMap.source": (0, 1),
    "AffineMap.n_features": 2,
    "EncodedPosterior.encoder": ENCODER,
    "EncodedPosterior.posterior": Made(lambda: encoded().posterior),
    "EncodedPosterior.rows.X": FRAME[["a", "kind"]],
    "EncodedPosterior.bind.operator": operators.IntegratedGradients(np.zeros(3)),
    "register.between": one,
    "register_derivatives.kernel": kernels.Constant,
    "register_derivatives.function": one,
    "map_parts.function": lambda part: part,
    "Kernel.map_parts.function": lambda part: part,
    "register_gradient.kernel": kernels.Constant,
    "register_gradient.gradient": one,
    "register_mean_gradient.basis": bases.Monomials,
    "register_mean_gradient.mean_gradient": one,
    "formulas_for.operator": operators.Gradient(),
    "register_adapter.name": "garbage.Model",
    "register_adapter.adapter": one,
    "Adapted.predict": lambda X: (np.zeros(len(X)), np.ones(len(X))),
    "reproduce.experiments": (),
    "check_posterior.X": X,
    "importance.values": np.ones(2),
    "Importance.values": np.ones(2),
    "Importance.samples": np.ones((4, 2)),
    "Importance.feature_names": ("a", "b"),
    "FunctionSpacePosterior.mean": means.Zero(),
    "write_report.counterfactuals": Made(counterfactual),
    "write_report.path": Made(lambda: os.path.join(folder(), "report.html")),
    "check_adapter.model": Made(foreign),
    "check_adapter.X": X,
    "Acquisition.function": lambda rows: rows.sum(dim=1),
    "best": 0.5,
    "kappa": 2.0,
    "what": "prediction",
    **{f"{kind}.value.mean": Y[:1] for kind in MOMENTS},
    **{f"{kind}.value.std": np.ones(1) for kind in MOMENTS},
    **{f"{kind}.slopes.mean": Y[:1] for kind in MOMENTS},
    **{f"{kind}.slopes.std": np.ones(1) for kind in MOMENTS},
    "_Improvement.gain.mean": Y[:1],
}
# How an object is made whose class is not called with the arguments above.
OBJECTS = {
    "BaselineSensitivity": sensitivity,
    "Comparison": comparison,
    "Counterfactual": counterfactual,
    "Dependence": dependence,
    "NextMeasurement": next_measurement,
    "SobolIndices": sobol_indices,
    "SobolPairs": lambda: sobol_indices().pairs,
    "InteractionExplanation": interactions,
    **{f"estimators.{name}": partial(fitted, name) for name in OPTIONS},
    "Explainer": explainer,
    "Explainer.__getitem__": partial(explainer, "MultiOutputGPRegressor"),
    "Explainer.across_outputs": partial(explainer, "MultiOutputGPRegressor"),
    "Matern12.slope": kernels.Matern32,
    "Matern12.curvature": kernels.Matern32,
    "Radial.profiles": kernels.Matern32,
    "Expansion.precision": lambda: means.Linear([1.0, 2.0], covariance="flat"),
    "Explanation": explanation,
    "Explanation.interval_error": sampled,
    "Gaussian": lambda: explanation().distribution,
    "Distribution.interval_error": lambda: sampled().distribution,
    "Draws": lambda: sampled().distribution,
    "Mixture": lambda: distributions.Mixture(
        [0.5, 0.5], np.stack([X, X + 1.0]), covs=np.ones((2, 6, 2, 2))
    ),
    "distributions.Marginals": lambda: explanation().mixture(),
    "MultiOutputExplanation": lambda: several(),
    "Importance": lambda: explainer().importance(X[:2], n_samples=10),
    "TableModel": table_model,
    "TableModel.predict_proba": partial(table_model, "classification"),
    "Columns": lambda: COLUMNS,
    "MultiOutputPosterior": lambda: fitted("MultiOutputGPRegressor").posterior_,
    "KnownFunction": lambda: datasets.linear_function([1.0, 2.0]),
    "Operator.gather": lambda: IG,
    "Posterior.contributions": lambda: fitted().posterior_,
    "Posterior.rounding_of_variance": lambda: fitted().posterior_,
    "Posterior.across": lambda: fitted("MultiOutputGPRegressor").posterior_,
    "EncodedPosterior": encoded,
    "_ConfidenceBound": lambda: quantities.UpperConfidenceBound(2.0),
    "_Improvement": lambda: quantities.ExpectedImprovement(0.5),
    "Components": lambda: (
        posteriors.MixturePosterior([fitted().posterior_] * 2).apply(IG, X).components
    ),
}
# What is made by the library, and holds what it is given.
CONTAINERS = {
    "Attributions",
    "BaselineSensitivity",
    "Bounded",
    "Check",
    "Comparison",
    "Components",
    "Counterfactual",
    "Dependence",
    "Importance",
    "NextMeasurement",
    "SobolPairs",
    "Jet",
    "Kink",
    "distributions.Marginals",
    "Report",
    "Formulas",
    "BasisFormulas",
    "MeanFormulas",
    "Reference",
    "WrappedOutputs",
}
# What the library asks of its own parts, with rows and matrices that have been checked.
PROTOCOL = {
    "described",
    "moments",
    "marginals_at",
    "slopes",
    "jets",
    "increments",
    "path_lengths",
    "check_range",
    "solve",
    "explained",
    "explained_between",
    "whitened",
    "values_variance",
    "values_covariance",
    "conditioned",
    "relearned",
    "half",
    "weigh",
    "weights_like",
    "across_at",
    "around",
    "bind_to",
    "with_outputs",
    "size",
    "sizes",
    "Attributions.linear",
    "nodes",
    "quantiles",
    "mapped",
    "each",
}
# Options that only some keywords say: the keyword with which garbage is tried.
KEYWORDS = {
    "Kernel.with_params.params": "variance",
    "KernelOptions.set_params.params": "kernel__variance",
    "separable.params": "variance",
    "RandomFeatureGPRegressor.from_exact.options": "mean",
    "MultiOutputPosterior.apply.options": "method",
    "InteractionExplanation.from_matrices.about": "predictions",
    "BaselineSensitivity.plot.options": "max_display",
    "Comparison.plot.options": "level",
    "Counterfactual.plot.options": "max_display",
    "Dependence.plot.options": "level",
    "NextMeasurement.plot.options": "level",
    "TableModel.predict.options": "return_std",
    **{
        f"{verb}.options": "method"
        for verb in ("cross", "bounded_cross", "contract", "prior_cov", "bounded_prior_cov")
    },
    "between.options": "method",
    "apply_to_basis.options": "method",
    "cross_dot.options": "method",
    "error.options": "method",
    "as_posterior.options": "other",
    "check_adapter.options": "other",
}
# Other words in which messages speak of an argument.
SPOKEN = {
    "__getitem__.key": "rows|features|output",
    "of.target": "target|column",
    "prob_greater.i": "feature|i",
    "prob_greater.j": "feature|j",
    # what does not fit that many
    "check_features.d": "d|bases|lengthscale|coefficients|powers|features",
}


@dataclasses.dataclass(frozen=True)
class Subject:
    """A public function, class or method, with the module and the class it was found in."""

    module_name: str
    owner: type | None
    function: object

    @property
    def name(self):
        """As in its definition: ``Class.method``, with inherited methods under the class that has
        them.
        """
        return self.function.__qualname__

    @property
    def parameters(self):
        found = list(inspect.signature(self.function).parameters.values())
        return found[1:] if self.bound else found

    @property
    def bound(self):
        """Whether it is a method of an object, and not of a class."""
        static = self.owner is not None and inspect.getattr_static(
            self.owner, self.function.__name__
        )
        return inspect.isfunction(static)

    def good(self, name, default=inspect.Parameter.empty):
        own = self.name if self.owner is None else f"{self.owner.__name__}.{self.function.__name__}"
        if inspect.isclass(self.function):
            own = self.function.__name__
        for key in (
            f"{self.module_name.removeprefix('gpattr.')}.{own}.{name}",
            f"{own}.{name}",
            f"{self.name}.{name}",
        ):
            if key in GOOD:
                return _made(GOOD[key])
        if default is not inspect.Parameter.empty:
            return default
        return _made(GOOD[name])

    def arguments(self):
        if self.name in ("Explanation", "KnownFunction"):
            given = OBJECTS[self.name]()
            return {
                field.name: getattr(given, field.name)
                for field in dataclasses.fields(given)
                if field.init
            }
        if inspect.isclass(self.function) and self.name in OPTIONS:
            return dict(OPTIONS[self.name])
        named = [p for p in self.parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        return {p.name: self.good(p.name, p.default) for p in named}

    def swept(self):
        """The names of the arguments to try; keywords stand for ``**options``."""
        for p in self.parameters:
            if p.kind is p.VAR_KEYWORD:
                yield KEYWORDS[f"{self.name}.{p.name}"]
            else:
                yield p.name

    def call(self, changes):
        """Call with good arguments but for the changes, and use what comes."""
        arguments, positional = self.arguments() | changes, []
        for p in self.parameters:
            if p.kind is p.VAR_POSITIONAL:
                positional = [
                    arguments.pop(p.name) if p.name in arguments else self.good(p.name)
                ] * 2
            elif p.kind is p.POSITIONAL_ONLY:
                positional.append(arguments.pop(p.name))
        function = self.function
        if self.bound:
            instance = (
                OBJECTS[self.name]()
                if self.name in OBJECTS
                else instance_of(self.module_name, self.owner)
            )
            function = getattr(instance, function.__name__)
        result = function(*positional, **arguments)
        if isinstance(result, contextlib.AbstractContextManager):
            with result:
                return None
        if inspect.isgenerator(result):
            return list(result)
        if isinstance(result, BaseEstimator) and not hasattr(result, "posterior_"):
            return result.fit(X, TARGETS.get(self.name, Y)).predict(X)
        return result


def _made(value):
    return value.make() if isinstance(value, Made) else value


def instance_of(module_name, cls):
    for key in (
        f"{module_name}.{cls.__name__}",
        f"{module_name.removeprefix('gpattr.')}.{cls.__name__}",
        cls.__name__,
    ):
        if key in OBJECTS:
            return OBJECTS[key]()
    if cls.__name__ in OPTIONS:
        return fitted(cls.__name__)
    return Subject(module_name, None, cls).call({})


def surface():
    """Yield every public callable once."""
    seen = set()
    for module_name in MODULE_NAMES:
        module = importlib.import_module(module_name)
        own = [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", "") == module_name and name[0] != "_"
        ]
        for name in getattr(module, "__all__", own):
            value = getattr(module, name)
            if inspect.isclass(value):
                concrete = not (
                    issubclass(value, Exception) or inspect.isabstract(value) or value is means.Mean
                )
                found = [(value, method) for method in methods_of(value)] if concrete else []
                names = {value.__name__, f"{module_name.removeprefix('gpattr.')}.{value.__name__}"}
                if concrete and not names & CONTAINERS:
                    found.append((None, value))
            elif callable(value):
                found = [(None, value)]
            else:
                found = []
            for owner, function in found:
                key, subject = (
                    (function.__module__, function.__qualname__),
                    Subject(module_name, owner, function),
                )
                if key not in seen and subject.parameters:
                    seen.add(key)
                    yield subject


def methods_of(cls):
    for name in dir(cls):
        if not name.startswith("_") or name in ("__call__", "__getitem__"):
            method = getattr(cls, name)
            static = inspect.getattr_static(cls, name)
            own = inspect.isfunction(method) or isinstance(static, classmethod)
            inside = name in PROTOCOL or f"{cls.__name__}.{name}" in PROTOCOL
            if own and not inside and method.__module__.startswith("gpattr"):
                yield method


def nan_in(result, depth=0):
    """Tell whether a result has a number in it that is none."""
    if isinstance(result, gpattr.Explanation):  # whose data are NaN where there is no number
        result = [
            getattr(result, name)
            for name in result.dimensions()
            if name not in ("data", "baselines", *(UNKNOWN if result.method == GIVEN else ()))
        ]
    if isinstance(result, float):
        return result != result
    if isinstance(result, np.ndarray):
        return result.dtype.kind == "f" and bool(np.isnan(result).any())
    if isinstance(result, pd.DataFrame):
        return bool(result.select_dtypes("number").isna().any().any())
    if depth > 4:
        return False
    if isinstance(result, Mapping):
        return any(nan_in(value, depth + 1) for value in result.values())
    if isinstance(result, (list, tuple)):
        return any(nan_in(value, depth + 1) for value in result)
    if type(result).__module__.startswith("gpattr"):
        return nan_in(vars(result), depth + 1) if hasattr(result, "__dict__") else False
    return False


# What makes, and what is, an explainer.
EXPLAINING = ("gpattr:Explainer", "gpattr:explain")


def too_long(*_):
    raise TimeoutError


def outcome(subject, name, value, options=None):
    """Return what is wrong with the outcome of this value; None if nothing is."""
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    try:
        result = subject.call({**(options or {}), name: value})
    except GpattrError as error:
        spoken = SPOKEN.get(f"{subject.function.__name__}.{name}", name.removeprefix("kernel__"))
        named = re.search(rf"\b({spoken})\b", str(error)) or (
            name == "path" and str(error).startswith(f"{value}: ")
        )
        return None if named else f"does not name the argument: {error}"
    except OSError as error:  # a file that is not there is no garbage
        return None if isinstance(value, str) else f"{type(error).__name__}: {error}"
    except BaseException as error:
        where = error.__traceback__
        while where.tb_next is not None and "/gpattr/" in where.tb_next.tb_frame.f_code.co_filename:
            where = where.tb_next
        at = f"{os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno}"
        return f"{type(error).__name__}: {str(error)[:100]} ({at})"
    finally:
        signal.alarm(0)
        plt.close("all")
    kept = getattr(result, "__dict__", {}).values() if inspect.isclass(subject.function) else ()
    if type(value) in (set, object, type(pd.NA)) and any(part is value for part in kept):
        return "kept as it is"
    return "NaN in the result" if nan_in(result) else None


@pytest.fixture(autouse=True)
def _untouched(monkeypatch, tmp_path):
    """Leave no entry in the tables that others look things up in, and no file."""
    tables = (
        registry.REGISTERED,
        hyperparameters.GRADIENTS,
        closed_forms.KERNELS,
        closed_forms.BASES,
        closed_forms.MEANS,
        closed_forms.DERIVATIVES,
        closed_forms.MEAN_GRADIENTS,
    )
    before = [dict(table) for table in tables]
    monkeypatch.chdir(tmp_path)
    yield
    for table, entries in zip(tables, before):
        table.clear()
        table.update(entries)


SUBJECTS = {
    f"{subject.module_name.removeprefix('gpattr.')}:{subject.name}": subject
    for subject in surface()
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_good_arguments(name):
    subject = SUBJECTS[name]
    list(subject.swept())
    try:
        missing = nan_in(subject.call({}))
        # Published tables have missing values, and a feature has no pair with itself.
        expected = subject.module_name == "gpattr.datasets" or name == "sobol:SobolPairs.interval"
        assert not missing or expected
    except DatasetError:  # the published data are no part of the project
        assert name.startswith("datasets:load_")
    finally:
        plt.close("all")


def check(name, options=None):
    """Try everything on every argument, next to these options."""
    subject, wrong = SUBJECTS[name], []
    defaults = {p.name: p.default for p in subject.parameters}
    for argument in subject.swept():
        for kind, value in GARBAGE.items():
            if value is None and defaults.get(argument) is None and argument in defaults:
                continue  # what it is without being given
            found = outcome(subject, argument, value, options)
            if found is not None:
                wrong.append(f"{argument} = {kind}: {found}")
    assert not wrong, "\n".join([f"{name}:", *wrong])


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_garbage(name):
    check(name)


@pytest.mark.parametrize("name", [name for name in SUBJECTS if name.startswith(EXPLAINING)])
def test_garbage_for_shapley_values(name, monkeypatch):
    monkeypatch.setitem(OBJECTS, "Explainer", partial(explainer, attribution="shapley"))
    for key in ("Explainer.__getitem__", "Explainer.across_outputs"):
        several = partial(explainer, "MultiOutputGPRegressor", attribution="shapley")
        monkeypatch.setitem(OBJECTS, key, several)
    chosen = name in ("gpattr:Explainer", "gpattr:explain")
    check(name, {"attribution": "shapley"} if chosen else None)
    if chosen:
        check(name, {"attribution": "shapley", "method": "permutations", "n_steps": 4})


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "GPClassifier"])
@pytest.mark.parametrize("size", [1e150, 1e200, 1e300, 1e-200])
def test_targets_beyond_squares(name, size):
    with pytest.raises(
        GpattrError, match=r"\b[yY]: expected targets whose square float64 can hold"
    ):
        getattr(gpattr, name)(**OPTIONS[name]).fit(X, size * TARGETS.get(name, Y))


@pytest.mark.parametrize("method", closed_forms.FIXED_RULES)
def test_no_rule_takes_steps_without_end(method):
    for n_steps in (10**30, 10**6 + 1, 0, True, 2.0, np.array([1, 2])):
        with pytest.raises(
            GpattrError,
            match=rf'n_steps: expected an integer of 1 to 1000000 for method="{method}"',
        ):
            gpattr.Explainer(fitted(), [0.1, 0.2], method=method, n_steps=n_steps)


def test_what_scikit_learn_refuses_is_refused_by_the_library():
    for name in OPTIONS:
        model = untrained(name)
        with pytest.raises(GpattrError, match=r"(?s)^X: .*Reshape your data"):
            model.fit(X[0], Y)
        with pytest.raises(GpattrError, match=r"^X: .*\bdict\b") as caught:
            model.fit([[{}, 1.0]] * 6, Y)
        assert isinstance(caught.value, TypeError)
        with pytest.raises(GpattrError, match="^[yY]: .*inconsistent numbers of samples"):
            model.fit(X, TARGETS.get(name, Y)[:3])
