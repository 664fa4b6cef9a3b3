"""Sparse Gaussian-process regression with inducing inputs, by the collapsed bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from gpattr._core import documents
from gpattr._core.array import Array, namespace, solve_lower_rows, to_numpy
from gpattr._core.lazy_tables import is_dask
from gpattr._core.normal import check_count
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import (
    Names,
    as_matrix,
    check_choice,
    check_flag,
    is_frame,
    positive_scalar,
)
from gpattr.closed_forms.derivatives import require_derivatives
from gpattr.estimators import storage
from gpattr.estimators.base import KernelRegressor
from gpattr.estimators.evidence.block import BlockEvidence
from gpattr.estimators.evidence.marginal_likelihood import NOISE, maximise
from gpattr.estimators.gp_regressor import check_prior, known_noise
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.inducing import CLUSTERED, FEWEST, default_number, greedy, k_means, placed
from gpattr.estimators.one_hot import label_columns
from gpattr.estimators.progress import training_progress
from gpattr.estimators.search_space import (
    NOISE_SHARE,
    Units,
    bounds_for,
    default_kernel,
    scaled,
    starts_from,
)
from gpattr.estimators.training_rows import RowsInMemory, TrainingRows, drawn
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel, Radial
from gpattr.means import Constant, Expansion, Mean, Zero
from gpattr.posteriors import SparsePosterior

JITTER = 1e-8  # of the targets' variance
# Share of the posterior variance; models trained by the bound that missed 0.37 to 0.92 lost 0.02 to
# 0.21 of the coverage of 95 % intervals.
MISSED = 0.3
SAMPLED = 1000  # rows from which it is estimated
# Of it, by default: means are then wrong by a few hundredths of their standard deviation.
TOLERATED = 0.05
FTOL = 1e-7  # relative gain of a step below which the search ends
STARTS = ("k-means", "greedy")


class _Data(NamedTuple):
    """Training data; ``inputs`` are relative to ``middle`` and in ``units``, ``own`` the data's.

    ``level`` (n,) is the noise where it is known, ``variance`` the targets' variance in ``units``.
    """

    rows: TrainingRows
    level: np.ndarray | None
    variance: float
    middle: np.ndarray
    units: Units
    own: Units
    generator: np.random.Generator

    @property
    def jitter(self) -> float:
        return JITTER * self.variance

    def inputs(self, which: Any) -> np.ndarray:
        """Return the inputs of the rows of these numbers."""
        return (self.rows.take(which)[0] - self.middle) / self.units.std

    def some(self) -> Any:
        """Return the numbers of at most `CLUSTERED` rows, drawn at random where there are more."""
        n = self.rows.n
        return slice(None) if n <= CLUSTERED else drawn(n, CLUSTERED, self.generator)

    def blocks(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets of the rows of these numbers, in units."""
        X, y = self.rows.take(which)
        return (X - self.middle) / self.units.std, y / self.units.unit


class SparseGPRegressor(KernelRegressor):
    """GP regression with inducing inputs, for 10³ to 10⁵ rows and more (Titsias 2009).

    Time grows as n m² and memory as m² for n rows and m inducing inputs. By default hyperparameters
    come from exact processes of up to 8 blocks of 1000 rows, drawn at random, and inducing inputs
    are then placed by the learned length-scales: as many as leave at most 5 % of the variance to
    what they miss, in one pass over all rows. Where the number of inducing inputs or their places
    are given, they and the hyperparameters maximise a lower bound of the log marginal likelihood
    together.

    Parameters
    ----------
    n_inducing : int, optional
        How many inducing inputs; by default as many as are needed: 200 (or one per row), more by 40
        % until they miss at most 5 % of the variance, and at most 10√n for n rows or 1000.
    kernel : Kernel, or a radial kernel class, optional
        As for `GPRegressor`; sums of scaled and selected squared exponentials, `Matern32`,
        `Matern52` and constants train fastest.
    inducing : "k-means", "greedy" or array (m, d)
        Where inducing inputs start, or by default stay: at centres of clusters, at the rows hardest
        to predict from each other, both among at most 10 000 rows drawn at random, or at points
        given in the units of the data.
    move : bool
        Whether training moves inducing inputs whose number or places are given; not with
        ``categories``.
    mean : "constant", "zero" or Mean
        The prior mean; ``"constant"`` is learned.
    noise_variance, optimize, n_restarts, bounds, categories, random_state, verbose
        As for `GPRegressor`; restarts share their inducing inputs, which also depend on
        ``random_state``.

    Attributes
    ----------
    posterior_ : SparsePosterior
        The posterior, which `Explainer` explains.
    kernel_, noise_variance_, mean_, inducing_ : the learned values, in data units.
    bound_ : float
        The lower bound of the log marginal likelihood.
    missed_share_ : float
        The share of the posterior variance at training rows that is due to too few inducing inputs:
        0 for an exact process.
    advice_ : str
        Advice where that share is large and hyperparameters were learned with inducing inputs;
        empty otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(200, 1))
    >>> model = gpattr.SparseGPRegressor(20, random_state=0).fit(X, np.sin(3.0 * X[:, 0]))
    >>> model.predict([[0.5]]).round(2)
    array([1.])
    """

    def __init__(
        self,
        n_inducing: int | None = None,
        kernel: Kernel | type[Radial] | None = None,
        *,
        inducing: Any = "k-means",
        move: bool = True,
        mean: str | Mean = "constant",
        noise_variance: float | None = None,
        optimize: bool = True,
        n_restarts: int = 0,
        bounds: dict[str, tuple[Any, Any]] | None = None,
        categories: Sequence[Any] | None = None,
        random_state: RandomLike = None,
        verbose: int = 0,
    ) -> None:
        self.n_inducing = n_inducing
        self.kernel = kernel
        self.inducing = inducing
        self.move = move
        self.mean = mean
        self.noise_variance = noise_variance
        self.optimize = optimize
        self.n_restarts = n_restarts
        self.bounds = bounds
        self.categories = categories
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, noise: Any = None) -> Self:
        """Learn from the data; ``noise`` is the known noise variance of each row.

        X and y may be Dask collections: their rows stay where they are.
        """
        check_prior(self, ("constant", "zero"))
        check_flag("move", self.move)
        if isinstance(self.mean, Expansion) and self.mean.covariance is not None:
            raise InvalidInputError(
                "mean: expected one with known coefficients; GPRegressor takes uncertain ones"
            )
        with self._unchanged_on_error():
            return self._fit(X, y, noise)

    def _fit(self, X: Any, y: Any, noise: Any) -> Self:
        if is_dask(X) or is_dask(y):
            from gpattr.estimators.distributed.sparse import fit_on_dask

            if self.categories is not None:
                raise InvalidInputError("categories: expected None for Dask collections")
            return fit_on_dask(self, X, y, noise)
        rows, y = self._check_data(X, y)
        prior_mean, level = self._prior(rows, noise)
        inputs, targets = to_numpy(rows), to_numpy(y)
        data = RowsInMemory(inputs, targets - to_numpy(prior_mean(rows)))
        kernel, Z, level, centre, jitter = self._learn(data, level)
        mean = Constant(centre) if self.mean == "constant" else prior_mean
        points = _labelled(Z, X) if is_frame(X) else namespace(rows).asarray(Z)
        posterior = SparsePosterior.fit(
            kernel, points, X if is_frame(X) else rows, y, noise=level, mean=mean, jitter=jitter
        )
        return self._become(posterior, level, jitter, missed_share(posterior, rows))

    def _prior(self, rows: Array, noise: Any) -> tuple[Mean, np.ndarray | None]:
        """Return the mean and the noise that are known before training on these rows."""
        given, known = self._given_kernel, known_noise(self, noise, rows)
        if known is not None and not (known > 0).all():
            name = "noise_variance" if noise is None else "noise"
            raise InvalidInputError(
                f"{name}: expected variances larger than 0; without noise use GPRegressor"
            )
        prior_mean = self.mean if isinstance(self.mean, Mean) else Zero()
        for part in (given, prior_mean):
            if part is not None:
                part.check_features(rows.shape[1])
        return prior_mean, None if known is None else to_numpy(known)

    def _learn(
        self, rows: TrainingRows, known: np.ndarray | None
    ) -> tuple[Kernel, np.ndarray, Any, float, float]:
        """Return kernel, inducing inputs, noise, constant mean and jitter, in the user's units."""
        given = self._given_kernel
        own = rows.units()
        if self.categories is not None:
            labels = label_columns(self, rows.take(slice(None))[0])
            own = Units.of_std(own.std, own.unit, labels)
        units = own if given is None else Units(np.ones(()), 1.0)
        kernel = scaled(
            default_kernel(units, self._kernel_class) if given is None else given,
            units,
            inwards=True,
        )
        centred = kernel.stationary or units.labels
        middle = units.middle(rows.mean()) if centred else np.zeros(rows.d)
        variance = rows.target_std(units.unit) ** 2 or 1.0
        generator = random_generator(self.random_state)
        level = None if known is None else np.broadcast_to(known / units.unit**2, (rows.n,))
        noise = NOISE_SHARE * variance if known is None else None
        data = _Data(rows, level, variance, middle, units, own, generator)
        blocks = self.n_inducing is None and isinstance(self.inducing, str)
        learn = self._learn_by_blocks if blocks else self._learn_by_bound
        kernel, Z, noise, centre = learn(kernel, noise, data)
        return (
            scaled(kernel, units, inwards=False),
            Z * units.std + middle,
            known if noise is None else noise * units.unit**2,
            centre * units.unit,
            JITTER * variance * units.unit**2,
        )

    def _learn_by_blocks(
        self, kernel: Kernel, noise: float | None, data: _Data
    ) -> tuple[Kernel, np.ndarray, float | None, float]:
        """Return kernel, inducing inputs, noise and constant by the evidence of blocks of rows."""
        check_choice("inducing", self.inducing, STARTS)
        evidence = BlockEvidence.drawn(
            data.blocks, data.rows.n, data.level, self.mean == "constant", data.generator
        )
        if self.optimize:
            kernel, noise, _ = self._train(evidence, kernel, noise, None, data)
        level = data.level if noise is None else noise
        centre = evidence.constant(kernel, noise)
        return kernel, self._enough(kernel, level, data), noise, centre

    def _learn_by_bound(
        self, kernel: Kernel, noise: float | None, data: _Data
    ) -> tuple[Kernel, np.ndarray, float | None, float]:
        """Return kernel, inducing inputs, noise and constant by the collapsed bound."""
        Z = self._inducing_start(kernel, data)
        scale = data.middle, data.units.std, data.units.unit
        objective = data.rows.bound(scale, data.level, self.mean == "constant", data.jitter)
        if self.optimize:
            kernel, noise, Z = self._train(objective, kernel, noise, Z, data)
        return kernel, Z, noise, objective.at(kernel, noise, Z.ravel()).centre

    def _enough(self, kernel: Kernel, noise: Any, data: _Data) -> np.ndarray:
        """Return inducing inputs that miss at most `TOLERATED` of the variance, or the maximum.

        The share refers to a posterior given some rows, each weighted by the number of rows it
        represents.
        """
        generator, std = data.generator, data.own.std / data.units.std
        n, most = data.rows.n, min(data.rows.n, default_number(data.rows.n))
        some = data.some()
        X = data.inputs(some)
        level = np.broadcast_to(noise, (n,))[some] * (len(X) / n)
        m = FEWEST
        while m < most:
            Z = placed(self.inducing, kernel, data.inputs(data.some()), m, std, generator)
            posterior = SparsePosterior.fit(
                kernel, Z, X, np.zeros(len(X)), noise=level, jitter=data.jitter
            )
            if missed_share(posterior, X) <= TOLERATED:
                return Z
            m = int(1.4 * m)
        return placed(self.inducing, kernel, data.inputs(data.some()), most, std, generator)

    def _train(
        self,
        objective: Any,
        kernel: Kernel,
        noise: float | None,
        Z: Any,
        data: _Data,
    ) -> tuple[Kernel, float | None, Any]:
        """Return kernel, noise and inducing inputs (if ``Z`` has any) of the largest objective."""
        n, units = data.rows.n, data.units
        if n < 2:
            raise InvalidInputError(
                "X: expected at least 2 rows to learn hyperparameters, got n_samples=1; use"
                " optimize=False"
            )
        if not data.rows.targets_differ():
            raise InvalidInputError(
                "y: expected targets that differ, got one value everywhere; use optimize=False"
            )
        require_derivatives(kernel)
        start = trainable(kernel) | ({} if noise is None else {NOISE: np.array([noise])})
        bounds = bounds_for(
            start, units, self.bounds, data.variance, own_start=self._given_kernel is None
        )
        chosen = {name: start[name] for name in bounds}
        starts = starts_from(chosen, self.n_restarts, data.generator)
        if Z is None:
            offset = -sum(len(block.y) for block in objective.blocks) * float(np.log(units.unit))
            with training_progress(
                self.verbose, len(starts), offset, "log evidence of blocks"
            ) as report:
                return (
                    *maximise(objective, kernel, noise, bounds, starts, report=report, ftol=FTOL),
                    None,
                )
        moves = self.move and not units.labels  # of which nothing says where they should go
        free = Z.ravel() if moves else None
        fixed = Z.ravel()
        search = objective if moves else (lambda prior, level: objective(prior, level, fixed))
        offset = -n * float(np.log(units.unit))
        with training_progress(self.verbose, len(starts), offset, "bound") as report:
            kernel, noise, *moved = maximise(
                search, kernel, noise, bounds, starts, report=report, ftol=FTOL, free=free
            )
        return kernel, noise, moved[0].reshape(Z.shape) if moved else Z

    def _inducing_start(self, kernel: Kernel, data: _Data) -> np.ndarray:
        """Return the inducing inputs where training starts, (m, d), in training units."""
        n, units, own = data.rows.n, data.units, data.own
        if not isinstance(self.inducing, str):
            Z = to_numpy(as_matrix("inducing", self.inducing, n_features=data.rows.d))
            if self.n_inducing is not None and self.n_inducing != len(Z):
                raise InvalidInputError(
                    f"n_inducing: expected None or {len(Z)}, the rows of inducing, got"
                    f" {self.n_inducing}"
                )
            return (Z - data.middle) / units.std
        check_choice("inducing", self.inducing, STARTS)
        m = check_count("n_inducing", self.n_inducing)
        if m > n:
            raise InvalidInputError(f"n_inducing: expected at most one per row, {n}, got {m}")
        some = data.some()
        if self.inducing == "greedy":
            return greedy(kernel, data.inputs(some), m)
        even = (data.rows.take(some)[0] - data.middle) / own.std
        return k_means(even, m, data.generator) * own.std / units.std

    @property
    def advice_(self) -> str:
        """Advice where the inducing inputs used for training were too few, else empty."""
        check_is_fitted(self)
        learned = self.optimize and not (self.n_inducing is None and isinstance(self.inducing, str))
        if not (learned and self.missed_share_ > MISSED):
            return ""
        m = len(self.inducing_)
        return (
            f"{self.missed_share_:.0%} of the variance that is reported is there because {m}"
            " inducing inputs miss it, and length-scales learned with so few are too long:"
            f" intervals are too narrow. More of them (n_inducing={2 * m}), or n_inducing=None,"
            " which learns without them, would help."
        )

    def _become(self, posterior: SparsePosterior, noise: Any, jitter: float, missed: float) -> Self:
        self.missed_share_ = missed
        self.posterior_, self.kernel_, self.mean_ = posterior, posterior.kernel, posterior.mean
        self.noise_variance_ = float(noise) if np.ndim(noise) == 0 else to_numpy(noise)
        self.inducing_, self.bound_, self._jitter = (
            to_numpy(posterior.inputs),
            posterior.bound,
            jitter,
        )
        return self

    def _content(self) -> dict[str, Any]:
        q = self.posterior_
        root = to_numpy(q.root)
        # As it is where it was fitted.
        upper = root.shape[0] == root.shape[1] and not np.tril(root, -1).any()
        arrays = {
            "inducing": (self.inducing_, ("inducing", "feature")),
            "mean": (to_numpy(q.whitened_mean), ("inducing",)),
            "root": (
                (root[np.triu_indices(len(root))], ("entry",))
                if upper
                else (root, ("inducing", "direction"))
            ),
            "noise": (np.atleast_1d(self.noise_variance_), ("row",)),
            **{
                f"landmark {name}": (to_numpy(point), ("feature",))
                for name, point in q.reference_points.items()
            },
        }
        return {
            "kernel": storage.encode("kernel", self.kernel_),
            "prior_mean": storage.encode("mean", self.mean_),
            "jitter": self._jitter,
            "bound": self.bound_,
            "missed_share": self.missed_share_,
            "arrays": {
                name: documents.encode(array, dims, compact=True)
                for name, (array, dims) in arrays.items()
            },
        }

    def _restore(self, content: Any, names: Names | None) -> None:
        arrays = {name: documents.decode(array) for name, array in content["arrays"].items()}
        Z, root = arrays["inducing"], arrays["root"]
        self.n_features_in_ = Z.shape[1]
        if root.ndim == 1:  # the upper triangle
            root = np.zeros((len(Z), len(Z)))
            root[np.triu_indices(len(Z))] = arrays["root"]
        posterior = SparsePosterior(
            storage.decode(content["kernel"]),
            Z if names is None else named(Z, names),
            arrays["mean"],
            q_root=root,
            whitened=True,
            mean=storage.decode(content["prior_mean"]),
            jitter=content["jitter"],
            reference_points={
                name.removeprefix("landmark "): x
                for name, x in arrays.items()
                if name.startswith("landmark ")
            },
            bound=content["bound"],
        )
        noise = arrays["noise"]
        level = noise if len(noise) > 1 else positive_scalar("noise", float(noise[0]))
        # Files of earlier versions have none.
        self._become(posterior, level, content["jitter"], content.get("missed_share", 0.0))


def missed_share(posterior: SparsePosterior, X: Array) -> float:
    """Return the share of posterior variance that inducing inputs miss, over `SAMPLED` rows.

    At x it is (k(x, x) − q(x, x)) / (k(x, x) − q(x, x) + ‖RᵀT(x)‖²) with q(x, x) = ‖T(x)‖²,
    T(x) = L⁻¹k(Z, x).
    """
    some = X[:: max(1, len(X) // SAMPLED)][:SAMPLED]
    T = solve_lower_rows(posterior.factor, posterior.kernel(some, posterior.inputs))  # (r, m)
    left = max(float((posterior.kernel.diagonal(some) - (T**2).sum(axis=1)).sum()), 0.0)
    known = float(((T @ posterior.root) ** 2).sum())
    return left / (left + known) if left > 0 else 0.0


def _labelled(Z: np.ndarray, X: Any) -> Any:
    return named(Z, tuple(map(str, X.columns)))


def named(Z: np.ndarray, names: Names) -> Any:
    """Return inducing inputs as a frame with these columns."""
    import pandas as pd

    return pd.DataFrame(Z, columns=list(names))
