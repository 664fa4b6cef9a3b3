"""Hilbert-space Gaussian-process regression: eigenfunctions of the Laplacian on a box around the data."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np

from gpattr import _documents
from gpattr._array import Array, namespace, to_numpy
from gpattr._memory import blocks
from gpattr._normal import check_count, random_generator
from gpattr._validation import Names, check_choice, column_names, numbers, positive_scalar
from gpattr.bases.spectral import check_spectral
from gpattr.estimators import storage
from gpattr.estimators.feature_regressor import FeatureRegressor
from gpattr.estimators.hilbert_design import (
    AFFORDABLE,
    ENOUGH,
    LONGEST,
    MOST,
    SHARES,
    Design,
    basis_of,
    columns_of,
    design_for,
    supported,
    within,
)
from gpattr.estimators.hilbert_evidence import HilbertEvidence, prior_variances
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.marginal_likelihood import NOISE
from gpattr.estimators.search_space import NOISE_SHARE, Units, default_kernel, spread_of
from gpattr.estimators.squared_exponentials import Leaf, summands
from gpattr.estimators.sums import Sums, from_content, to_content
from gpattr.estimators.weight_evidence import fit_weights
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import Kernel, Radial, Select, SquaredExponential, Sum
from gpattr.means import Constant, Zero
from gpattr.posteriors import WeightSpacePosterior

WIDEST = 3  # features of one term: a tensor basis of more does not scale
ROUNDS = 6  # of training with a basis that suits the length-scales found
TOLERATED = 0.05  # of the prior variance


class BasisWarning(UserWarning):
    """The basis is too small for the kernel, or its box too narrow."""


class HilbertGPRegressor(FeatureRegressor):
    """Gaussian-process regression with eigenfunctions of the Laplacian on a box (Riutort-Mayol et al. 2023).

    f(x) = c + Σⱼ wⱼφⱼ(x), wⱼ ~ N(0, S(ωⱼ)), φⱼ products of sines, S the spectral density of the kernel. Sums over rows are made
    once for each basis; learning hyperparameters takes no more passes over the data.

    Parameters
    ----------
    n_basis : int or one per feature, optional
        The number of functions of each feature; chosen from the length-scales by default.
    boundary : float or one per feature, optional
        How much larger than the range of the data the box is; chosen from the length-scales by default. Rows that are explained
        must lie in the box.
    kernel : Kernel, or a radial kernel class, optional
        `SquaredExponential`, `Matern32`, `Matern52` or `RationalQuadratic` of at most three features, or a sum of such kernels,
        each of some features (`Select`) and scaled if need be. A class, and the default `SquaredExponential`, is one kernel of
        all features where there are at most three, and otherwise a sum of one-dimensional ones: an additive model.
    mean : "constant" or "zero"
        The prior mean; the constant is learned.
    noise_variance, optimize, n_restarts, bounds, random_state, verbose
        As in `GPRegressor`.

    Attributes
    ----------
    posterior_ : WeightSpacePosterior
        What `Explainer` explains.
    kernel_, noise_variance_, mean_, log_marginal_likelihood_
        What was learned, in the units of the data.
    diagnostics_ : list of dict
        For each term of the kernel: the share of its prior variance that the basis gets wrong at the worst training row
        (``prior_error``), what was used (``n_basis``, ``boundary``) and what would be needed for one per cent. A share above five
        per cent gives a `BasisWarning`.
    """

    def __init__(
        self,
        n_basis: Any = None,
        boundary: Any = None,
        *,
        kernel: Kernel | type[Radial] | None = None,
        mean: str = "constant",
        noise_variance: float | None = None,
        optimize: bool = True,
        n_restarts: int = 0,
        bounds: dict[str, tuple[Any, Any]] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_basis = n_basis
        self.boundary = boundary
        self.kernel = kernel
        self.mean = mean
        self.noise_variance = noise_variance
        self.optimize = optimize
        self.n_restarts = n_restarts
        self.bounds = bounds
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Choose a basis, learn the hyperparameters, and choose again until the basis suits them."""
        rows, targets = self._check_data(X, y)
        d = rows.shape[1]
        self._check_options(d)
        units = Units.of_data(rows, targets)
        kernel = self._first_kernel(units) if self._given_kernel is None else self._given_kernel
        kernel.check_features(d)
        self._check_kernel(kernel, d)
        known = None if self.noise_variance is None else positive_scalar(NOISE, self.noise_variance)
        noise = NOISE_SHARE * units.unit**2 if known is None else known
        low, high = to_numpy(rows).min(axis=0), to_numpy(rows).max(axis=0)
        extent = 0.5 * (high - low)
        frame = (low + extent, np.where(extent > 0, extent, 1.0))
        shift = float(targets.mean()) if self.mean == "constant" else 0.0
        variance, generator = float(spread_of(targets[:, None])[0]) ** 2, random_generator(self.random_state)
        slack, names = 1.0, column_names(X)
        remaining = ROUNDS
        while True:
            remaining -= 1
            leaves = summands(kernel)
            designs = self._designs(leaves, frame[1], slack)
            basis, parts = basis_of(leaves, designs, *frame, names)
            sums = self._sums(basis, rows, targets - shift)
            if not self.optimize:
                break
            objective = HilbertEvidence(sums, parts, known, self.mean == "constant")
            learned = [name for name in trainable(kernel) if not name.endswith("alpha")]
            limits = self._limits(leaves, designs, frame[1])
            kernel, noise = self._search(objective, kernel, known, variance, len(targets), generator, learned, limits)
            if remaining == 0 or not self._is_bound(kernel, limits, frame[1]):
                break
            slack = 1.3
        landmarks = {"mean": to_numpy(rows).mean(axis=0), "median": np.median(to_numpy(rows), axis=0)}
        self._condition(kernel, noise, designs, frame, sums, shift, names, landmarks)
        self._diagnose(rows)
        return self

    def _first_kernel(self, units: Units) -> Kernel:
        kind, d = self.kernel or SquaredExponential, len(units.spread)
        if d <= WIDEST:
            return default_kernel(units, kind)
        return Sum(
            *(Select(kind(lengthscale=units.spread[i], variance=units.unit**2 / d), [i]) for i in range(d))  # pyright: ignore
        )

    def _designs(self, leaves: list[Leaf], extent: np.ndarray, slack: float) -> list[Design]:
        """Return the finest designs that are affordable, with what the user fixed."""
        for share in (*SHARES, ENOUGH):
            designs = self._at_share(leaves, extent, share, slack)
            if sum(design.size for design in designs) <= AFFORDABLE:
                break
        return designs if self.n_basis is not None else within(designs, MOST)  # pyright: ignore[reportPossiblyUnboundVariable]

    def _at_share(self, leaves: list[Leaf], extent: np.ndarray, share: float, slack: float) -> list[Design]:
        designs = []
        for leaf in leaves:
            columns = list(columns_of(leaf, len(extent)))
            boundary, number = (
                None if given is None else np.broadcast_to(given, extent.shape)[columns]
                for given in (self.boundary, self.n_basis)
            )
            designs.append(design_for(leaf, extent[columns], share, slack=slack, boundary=boundary, n_basis=number))
        return designs

    def _limits(self, leaves: list[Leaf], designs: list[Design], extent: np.ndarray) -> dict[str, np.ndarray]:
        """Return between which length-scales to search: those that the basis represents, where it was chosen for them."""
        limits = {}
        for leaf, design in zip(leaves, designs, strict=True):
            here = extent[list(columns_of(leaf, len(extent)))]
            shortest, longest = supported(leaf, design, here)
            ends = np.stack([np.minimum(shortest, longest), np.maximum(shortest, longest)])
            if np.ndim(leaf.kernel.lengthscale) == 0:  # pyright: ignore[reportAttributeAccessIssue]
                ends = np.array([[ends[0].max()], [max(ends[1].min(), ends[0].max())]])
            limits[f"{leaf.prefix}lengthscale"] = ends
        return limits

    def _is_bound(self, kernel: Kernel, limits: dict[str, np.ndarray], extent: np.ndarray) -> bool:
        """Tell whether a length-scale ended where the basis does, and another basis would let it go on."""
        values = trainable(kernel)
        for leaf in summands(kernel):
            name = f"{leaf.prefix}lengthscale"
            low, high = limits[name]
            stuck = (values[name] < 1.01 * low) & (self.n_basis is None)
            largest = 0.99 * LONGEST * extent[list(columns_of(leaf, len(extent)))]
            stuck = stuck | ((values[name] > 0.99 * high) & (high < largest) & (self.boundary is None))
            if stuck.any():
                return True
        return False

    def _sums(self, basis: Any, X: Array, y: Array) -> Sums:
        sums = Sums.empty(len(basis), X)
        for rows in blocks(len(X), 16.0 * len(basis), X):
            sums = sums.plus(basis(X[rows]), y[rows], in_place=True)
        return sums

    def _condition(
        self,
        kernel: Kernel,
        noise: float,
        designs: list[Design],
        frame: tuple[np.ndarray, np.ndarray],
        sums: Sums,
        shift: float,
        names: Names | None,
        landmarks: dict[str, np.ndarray],
    ) -> None:
        leaves = summands(kernel)
        basis, parts = basis_of(leaves, designs, *frame, names)
        variances = namespace(sums.ones).asarray(prior_variances(kernel, parts)[0])
        free_mean = self.mean == "constant"
        fit = fit_weights(sums, variances, noise, free_mean=free_mean)
        mean = Constant(shift + fit.constant) if free_mean else Zero()
        self.posterior_ = WeightSpacePosterior(
            basis,
            fit.weights,
            precision_factor=fit.precision_factor,
            mean=mean,
            feature_names=names,
            landmarks=landmarks,
        )
        self.kernel_, self.noise_variance_, self.mean_ = kernel, float(noise), mean
        self.log_marginal_likelihood_ = fit.log_marginal_likelihood
        self._state = (designs, frame, sums, shift)

    def _diagnose(self, X: Array) -> None:
        """Compare the prior variance of the basis with that of the kernel at the rows, and warn where they differ."""
        designs, frame, *_ = self._state
        leaves = summands(self.kernel_)
        _, parts = basis_of(leaves, designs, *frame, None)
        variances, _ = prior_variances(self.kernel_, parts)
        self.diagnostics_ = []
        at = 0
        for leaf, design, part in zip(leaves, designs, parts, strict=True):
            columns = list(columns_of(leaf, X.shape[1]))
            share = namespace(X).asarray(variances[at : at + len(part)]) / (leaf.factor * leaf.kernel.variance)  # pyright: ignore
            at += len(part)
            worst = 0.0
            for rows in blocks(len(X), 32.0 * len(part), X):
                worst = max(worst, float(abs(part(X[rows][:, columns]) ** 2 @ share - 1.0).max()))
            wide = np.maximum(design.boundary, design_for(leaf, frame[1][columns], ENOUGH).boundary)
            need = design_for(leaf, frame[1][columns], ENOUGH, boundary=wide)
            self.diagnostics_.append(
                {
                    "features": tuple(columns),
                    "prior_error": worst,
                    "n_basis": design.n_basis,
                    "boundary": design.boundary,
                    "n_basis_needed": need.n_basis,
                    "boundary_needed": need.boundary,
                }
            )
        bad = max(self.diagnostics_, key=lambda entry: entry["prior_error"])
        if bad["prior_error"] > TOLERATED:
            numbers, factors = max(bad["n_basis_needed"]), max(bad["boundary_needed"])
            warnings.warn(
                f"the basis misses {bad['prior_error']:.0%} of the prior variance of features {bad['features']} at some training "
                f"row: it has n_basis={bad['n_basis']} with boundary={tuple(round(b, 2) for b in bad['boundary'])}, and "
                f"n_basis={numbers} with boundary={factors:.2f} would do for these length-scales",
                BasisWarning,
                stacklevel=3,
            )

    def _check_options(self, d: int) -> None:
        for name in ("n_basis", "boundary"):
            value = getattr(self, name)
            if value is None:
                continue
            array = to_numpy(numbers(name, value))
            if array.ndim > 1 or (array.ndim == 1 and len(array) != d):
                raise InvalidInputError(f"{name}: expected one number or {d} (one per feature), got the shape {array.shape}")
            if name == "boundary" and not (np.isfinite(array).all() and (array > 1).all()):
                raise InvalidInputError(f"boundary: expected factors larger than 1, got {value!r}")
            if name == "n_basis":
                for number in np.atleast_1d(np.asarray(value)).tolist():
                    check_count("n_basis", number)
        check_choice("mean", self.mean, ("constant", "zero"))

    def _check_kernel(self, kernel: Kernel, d: int) -> None:
        for leaf in summands(kernel):
            check_spectral(leaf.kernel)
            columns = columns_of(leaf, d)
            if len(columns) > WIDEST:
                raise UnsupportedModelError(
                    f"kernel: expected terms of at most {WIDEST} features, got one of {len(columns)}, whose functions "
                    "would be too many; use a sum of kernels, such as Select(Matern52(), [0]) + Select(Matern52(), [1, 2])"
                )
            if len(set(columns)) != len(columns):
                raise InvalidInputError(f"kernel: expected different features in a term, got {columns}")

    def _content(self) -> dict[str, Any]:
        designs, (centre, extent), sums, shift = self._state
        arrays = {
            "centre": (centre, ("feature",)),
            "extent": (extent, ("feature",)),
            **{name: (point, ("feature",)) for name, point in self.posterior_.landmarks.items()},
        }
        return {
            "kernel": storage.encode("kernel", self.kernel_),
            "noise": self.noise_variance_,
            "designs": [{"n_basis": list(design.n_basis), "boundary": list(design.boundary)} for design in designs],
            "shift": shift,
            "sums": to_content([sums]),
            "diagnostics": [{name: storage.encode(name, value) for name, value in entry.items()} for entry in self.diagnostics_],
            "arrays": {name: _documents.encode(array, dims) for name, (array, dims) in arrays.items()},
        }

    def _restore(self, content: Any, names: Names | None) -> None:
        arrays = {name: _documents.decode(array) for name, array in content["arrays"].items()}
        designs = [Design(tuple(entry["n_basis"]), tuple(entry["boundary"])) for entry in content["designs"]]
        sums = from_content(content["sums"])[0]
        self.n_features_in_ = len(arrays["centre"])
        landmarks = {name: arrays[name] for name in ("mean", "median")}
        frame = (arrays["centre"], arrays["extent"])
        kernel = storage.decode(content["kernel"])
        self._condition(kernel, content["noise"], designs, frame, sums, content["shift"], names, landmarks)
        self.diagnostics_ = [
            {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
            for entry in content["diagnostics"]
        ]
