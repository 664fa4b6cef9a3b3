"""Hilbert-space GP regression: eigenfunctions of the Laplacian on a box around the data."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from gpattr._core import documents
from gpattr._core.array import Array, namespace, to_numpy
from gpattr._core.memory import blocks, check_memory
from gpattr._core.normal import check_count
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import (
    Names,
    check_choice,
    check_flag,
    column_names,
    numbers,
    positive_scalar,
)
from gpattr.bases.spectral import check_spectral
from gpattr.estimators import storage
from gpattr.estimators.evidence.hilbert import HilbertEvidence, prior_variances, radial_terms
from gpattr.estimators.evidence.marginal_likelihood import NOISE
from gpattr.estimators.evidence.squared_exponentials import summands
from gpattr.estimators.evidence.weights import fit_weights
from gpattr.estimators.feature_regressor import FeatureRegressor
from gpattr.estimators.hilbert_design import Design, Plan
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.search_space import NOISE_SHARE, Units, default_kernel, std_of
from gpattr.estimators.sums import Sums, from_content, to_content
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import Kernel, Radial, RationalQuadratic, Select, Sum
from gpattr.means import Constant, Zero
from gpattr.posteriors import WeightSpacePosterior

WIDEST = 3  # features of one term: a tensor basis of more does not scale
ROUNDS = 6  # of training with a basis that suits the length-scales found
TOLERATED = 0.05  # of the prior variance
LARGEST_ALPHA = 200.0  # its Bessel functions overflow beyond


class BasisWarning(UserWarning):
    """The basis is too small for the kernel, or its box too narrow.

    Examples
    --------
    >>> import warnings
    >>> from gpattr.estimators import BasisWarning
    >>> warnings.simplefilter("error", BasisWarning)  # an error rather than a warning
    """


class HilbertGPRegressor(FeatureRegressor):
    """GP regression with eigenfunctions of the Laplacian on a box (Riutort-Mayol et al. 2023).

    f(x) = c + Σⱼ wⱼφⱼ(x), wⱼ ~ N(0, S(ωⱼ)/ΠL), φⱼ products of sines, S the kernel's spectral
    density. Sums over rows are made once for each basis; learning hyperparameters takes no more
    passes over the data.

    Parameters
    ----------
    n_basis : int or one per feature, optional
        The number of functions of each feature; chosen from the length-scales by default.
    boundary : float or one per feature, optional
        How much larger than the range of the data the box is; chosen from the length-scales by
        default. Rows that are predicted or explained must lie in the box.
    domain : (lower, upper), optional
        The range that rows can have, each one number or one per feature, where it is larger than
        the training rows' range: the box is made for it. (In cross-validation, give the range of
        all rows.)
    kernel : Kernel, or a radial kernel class, optional
        `SquaredExponential`, `Matern32`, `Matern52` or `RationalQuadratic` of at most three
        features, or a sum of such kernels, each of some features (`Select`) and scaled if need be.
        A class, and the default `SquaredExponential`, is one kernel of all features where there are
        at most three, and otherwise a sum of one-dimensional ones: an additive model.
    mean : "constant" or "zero"
        The prior mean; the constant is learned.
    noise_variance, optimize, n_restarts, bounds, random_state, verbose
        As in `GPRegressor`.

    Attributes
    ----------
    posterior_ : WeightSpacePosterior
        The posterior, which `Explainer` explains.
    kernel_, noise_variance_, mean_, log_marginal_likelihood_
        The learned values, in data units.
    diagnostics_ : list of dict
        For each term of the kernel: the relative error of its prior variance at the
        worst training row (``prior_error``), the basis used (``n_basis``, ``boundary``) and the
        basis needed for one per cent. A share above five per cent gives a `BasisWarning`.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(200, 1))
    >>> model = gpattr.HilbertGPRegressor().fit(X, np.sin(3.0 * X[:, 0]))
    >>> model.predict([[0.5]]).round(2)
    array([1.])
    """

    def __init__(
        self,
        n_basis: Any = None,
        boundary: Any = None,
        *,
        domain: Any = None,
        kernel: Kernel | type[Radial] | None = None,
        mean: str = "constant",
        noise_variance: float | None = None,
        optimize: bool = True,
        n_restarts: int = 0,
        bounds: dict[str, tuple[Any, Any]] | None = None,
        random_state: RandomLike = None,
        verbose: int = 0,
    ) -> None:
        self.n_basis = n_basis
        self.boundary = boundary
        self.domain = domain
        self.kernel = kernel
        self.mean = mean
        self.noise_variance = noise_variance
        self.optimize = optimize
        self.n_restarts = n_restarts
        self.bounds = bounds
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose a basis and learn the hyperparameters, repeatedly until the basis suits them."""
        with self._unchanged_on_error():
            self._fit(X, y)
        self._warn()
        return self

    def _fit(self, X: Any, y: Any) -> None:
        rows, targets = self._check_data(X, y)
        d = rows.shape[1]
        self._check_options(d)
        free_mean = self.mean == "constant"
        units = Units.of_data(rows, targets)
        kernel = self._first_kernel(units) if self._given_kernel is None else self._given_kernel
        kernel.check_features(d)
        self._check_kernel(kernel, d)
        known = None if self.noise_variance is None else positive_scalar(NOISE, self.noise_variance)
        noise = NOISE_SHARE * units.unit**2 if known is None else known
        plan = Plan.of(rows, self.n_basis, self.boundary, self._checked_domain(d))
        shift = float(targets.mean()) if free_mean else 0.0
        variance, generator = (
            float(std_of(targets[:, None])[0]) ** 2,
            random_generator(self.random_state),
        )
        slack, names, remaining = 1.0, column_names(X), ROUNDS
        while True:
            remaining -= 1
            leaves = radial_terms(kernel)
            designs = plan.designs(leaves, slack)
            p = sum(design.size for design in designs)
            check_memory("n_basis: the sums over rows", (p, p), "use a smaller n_basis", copies=4)
            basis, parts = plan.basis(leaves, designs, names)
            sums = self._sums(basis, rows, targets - shift)
            if not self.optimize:
                break
            objective = HilbertEvidence(sums, parts, known, free_mean)
            learned = [name for name in trainable(kernel) if not name.endswith("alpha")]
            limits = plan.limits(leaves, designs)
            kernel, noise = self._search(
                objective, kernel, known, variance, len(targets), generator, learned, limits
            )
            if remaining == 0 or not plan.is_bound(kernel, limits):
                break
            slack = 1.3
        reference_points = {
            "mean": to_numpy(rows).mean(axis=0),
            "median": np.median(to_numpy(rows), axis=0),
        }
        self._condition(
            kernel, noise, plan, designs, sums, shift, free_mean, names, reference_points
        )
        self.diagnostics_ = plan.diagnose(kernel, designs, rows)

    def _first_kernel(self, units: Units) -> Kernel:
        kind, d = self._kernel_class, len(units.std)
        if d <= WIDEST:
            return default_kernel(units, kind)
        return Sum(
            *(
                Select(kind(lengthscale=units.std[i], variance=units.unit**2 / d), [i])
                for i in range(d)
            )
        )

    def _sums(self, basis: Any, X: Array, y: Array) -> Sums:
        sums = Sums.empty(len(basis), X)
        for rows in blocks(len(X), 16.0 * len(basis), X):
            sums = sums.plus(basis(X[rows]), y[rows], in_place=True)
        return sums

    def _condition(
        self,
        kernel: Kernel,
        noise: float,
        plan: Plan,
        designs: list[Design],
        sums: Sums,
        shift: float,
        free_mean: bool,
        names: Names | None,
        reference_points: dict[str, np.ndarray],
    ) -> None:
        basis, parts = plan.basis(radial_terms(kernel), designs, names)
        variances = namespace(sums.ones).asarray(prior_variances(kernel, parts)[0])
        fit = fit_weights(sums, variances, noise, free_mean=free_mean)
        mean = Constant(shift + fit.constant) if free_mean else Zero()
        self.posterior_ = WeightSpacePosterior(
            basis,
            fit.weights,
            precision_factor=fit.precision_factor,
            mean=mean,
            feature_names=names,
            reference_points=reference_points,
        )
        self.kernel_, self.noise_variance_, self.mean_ = kernel, float(noise), mean
        self.log_marginal_likelihood_ = fit.log_marginal_likelihood
        self._state = (plan, designs, sums, shift, free_mean)

    def _warn(self) -> None:
        """Warn where the prior variance of the basis differs from the kernel's."""
        bad = max(self.diagnostics_, key=lambda entry: entry["prior_error"])
        if bad["prior_error"] > TOLERATED:
            numbers, factors = max(bad["n_basis_needed"]), max(bad["boundary_needed"])
            warnings.warn(
                f"the basis misses {bad['prior_error']:.0%} of the prior variance of features"
                f" {bad['features']} at some training row: it has n_basis={bad['n_basis']} with"
                f" boundary={tuple(round(b, 2) for b in bad['boundary'])}, and n_basis={numbers}"
                f" with boundary={factors:.2f} would suffice for these length-scales",
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
                raise InvalidInputError(
                    f"{name}: expected one number or {d} (one per feature), got the shape"
                    f" {array.shape}"
                )
            if name == "boundary" and not (np.isfinite(array).all() and (array > 1).all()):
                raise InvalidInputError(f"boundary: expected factors larger than 1, got {value!r}")
            if name == "n_basis":
                for number in np.atleast_1d(np.asarray(value)).tolist():
                    check_count("n_basis", number)
        check_choice("mean", self.mean, ("constant", "zero"))
        self._check_search()
        check_flag("optimize", self.optimize)
        if not (self.kernel is None or isinstance(self.kernel, (Kernel, type))):
            raise InvalidInputError(
                "kernel: expected a gpattr kernel, a radial kernel class or None, got"
                f" {self.kernel!r}"
            )
        if isinstance(self.kernel, type):
            check_spectral(self.kernel)

    def _checked_domain(self, d: int) -> np.ndarray | None:
        if self.domain is None:
            return None
        try:
            lower, upper = (
                np.broadcast_to(to_numpy(numbers("domain", end)), (d,)) for end in self.domain
            )
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"domain: expected (lower, upper), each one number or {d}, got {self.domain!r}"
            ) from None
        if not (np.isfinite(lower) & np.isfinite(upper) & (lower <= upper)).all():
            raise InvalidInputError(
                f"domain: expected finite numbers, lower <= upper, got {self.domain!r}"
            )
        return np.stack([lower, upper])

    def _check_kernel(self, kernel: Kernel, d: int) -> None:
        for leaf in summands(kernel):
            check_spectral(leaf.kernel)
            if isinstance(leaf.kernel, RationalQuadratic) and leaf.kernel.alpha > LARGEST_ALPHA:
                raise UnsupportedModelError(
                    "kernel: expected a RationalQuadratic with an alpha of at most"
                    f" {LARGEST_ALPHA:.0f}, got {leaf.kernel.alpha:.3g}; use a"
                    " SquaredExponential"
                )
            columns = range(d) if leaf.columns is None else leaf.columns
            if len(columns) > WIDEST:
                raise UnsupportedModelError(
                    f"kernel: expected terms of at most {WIDEST} features, got one of"
                    f" {len(columns)}, which needs too many functions; use a sum of kernels,"
                    " such as Select(Matern52(), [0]) + Select(Matern52(), [1, 2])"
                )
            if len(set(columns)) != len(columns):
                raise InvalidInputError(
                    f"kernel: expected different features in a term, got {tuple(columns)}"
                )

    def _content(self) -> dict[str, Any]:
        plan, designs, sums, shift, free_mean = self._state
        arrays = {
            "centre": (plan.centre, ("feature",)),
            "extent": (plan.extent, ("feature",)),
            **{
                name: (point, ("feature",))
                for name, point in self.posterior_.reference_points.items()
            },
        }
        return {
            "kernel": storage.encode("kernel", self.kernel_),
            "noise": self.noise_variance_,
            "designs": [
                {"n_basis": list(design.n_basis), "boundary": list(design.boundary)}
                for design in designs
            ],
            "shift": shift,
            "free_mean": free_mean,
            "sums": to_content([sums]),
            "diagnostics": [
                {name: storage.encode(name, value) for name, value in entry.items()}
                for entry in self.diagnostics_
            ],
            "arrays": {
                name: documents.encode(array, dims) for name, (array, dims) in arrays.items()
            },
        }

    def _restore(self, content: Any, names: Names | None) -> None:
        arrays = {name: documents.decode(array) for name, array in content["arrays"].items()}
        designs = [
            Design(tuple(entry["n_basis"]), tuple(entry["boundary"]))
            for entry in content["designs"]
        ]
        sums = from_content(content["sums"])[0]
        self.n_features_in_ = len(arrays["centre"])
        reference_points = {name: arrays[name] for name in ("mean", "median")}
        plan = Plan(arrays["centre"], arrays["extent"], self.n_basis, self.boundary)
        kernel = storage.decode(content["kernel"])
        noise, free_mean = positive_scalar("noise", content["noise"]), bool(content["free_mean"])
        self._condition(
            kernel, noise, plan, designs, sums, content["shift"], free_mean, names, reference_points
        )
        self.diagnostics_ = [
            {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in entry.items()
            }
            for entry in content["diagnostics"]
        ]
