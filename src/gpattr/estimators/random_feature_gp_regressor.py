"""Random-feature GP regression: random frequencies, trained in memory or from a stream."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from gpattr._core import documents
from gpattr._core.array import Array, to_numpy
from gpattr._core.lazy_tables import is_dask
from gpattr._core.memory import check_memory
from gpattr._core.normal import check_count
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import Names, beside, check_choice, column_names, positive_scalar
from gpattr.bases.spectral import SAMPLINGS, check_spectral, standard_frequencies
from gpattr.estimators import storage
from gpattr.estimators.evidence.block import BlockEvidence
from gpattr.estimators.evidence.marginal_likelihood import NOISE, without_warning
from gpattr.estimators.evidence.random_features import AmplitudeEvidence
from gpattr.estimators.feature_regressor import FeatureRegressor
from gpattr.estimators.gp_regressor import GPRegressor
from gpattr.estimators.inducing import default_number
from gpattr.estimators.progress import stream_progress
from gpattr.estimators.random_feature_stream import Learned, Stream, in_order
from gpattr.estimators.search_space import NOISE_SHARE, default_kernel
from gpattr.estimators.sums import from_content, to_content
from gpattr.estimators.training_rows import RowsInMemory, TrainingRows
from gpattr.exceptions import (
    GpattrError,
    InvalidInputError,
    NotFittedError,
    NotPositiveDefiniteError,
)
from gpattr.kernels import Radial, SquaredExponential
from gpattr.means import Constant, Zero
from gpattr.posteriors import Posterior

AMPLITUDE = "amplitude"
MEANS = ("constant", "zero")
STREAMED = 500  # frequencies by default if the number of rows is unknown
SUBSAMPLE = 300  # rows for the start of the search
# Of a standard deviation; beyond, the coverage of 95 % intervals was about 0.1 less than with
# the exact process.
CHANCE = 0.5
ROUGHLY = 1e-5  # of log p(y), which differs by more from one draw of frequencies to the next


class FirstChunkWarning(UserWarning):
    """Length-scales are learned from a first chunk of very few rows.

    Examples
    --------
    >>> import warnings
    >>> from gpattr.estimators import FirstChunkWarning
    >>> warnings.simplefilter("ignore", FirstChunkWarning)
    """


class RandomFeatureGPRegressor(FeatureRegressor):
    """GP regression with M random frequencies v: f(x) = c + Σₘ aₘ sin(vₘ·x) + bₘ cos(vₘ·x).

    Weights are N(0, σ²/M). Training takes O(nM²) time and O(M²) memory, from arrays (`fit`) or from
    a stream of chunks (`partial_fit`, `fit_chunks`).

    Parameters
    ----------
    n_frequencies : int, optional
        The number M of frequencies; attributions come closer to the exact model's as 1/√M. By
        default 10√n for n rows, at least 200 and at most 1000, and 500 for streams; hyperparameters
        are then not learned with these frequencies but by exact processes of up to 8 blocks of 1000
        rows, drawn at random, and variance and noise again with the frequencies.
    kernel : Radial kernel, or its class, optional
        `SquaredExponential` (default), `Matern32`, `Matern52` or `RationalQuadratic`, whose
        spectral density the frequencies are drawn from. A class is trained with one length-scale
        per feature; a kernel is where training starts, in the units of the data, or is used as it
        is.
    mean : "constant" or "zero"
        The prior mean; the constant is learned.
    noise_variance : float, optional
        The noise variance if it is known; learned by default.
    optimize : bool or "amplitude"
        True learns length-scales, variance and noise, moving the frequencies with the
        length-scales; ``"amplitude"`` keeps the kernel's length-scales; False learns nothing. Rows
        of a stream never move length-scales: they are the given kernel's, or learned from the first
        chunk; variance and noise are learned again from all rows.
    ensemble : int
        The number of models, with frequencies of their own and equal weights. More than one give a
        `MixturePosterior`: the model with its frequencies integrated out. Hyperparameters are
        learned with the first one's frequencies.
    sampling : "orthogonal", "plain" or "quasi-random"
        How frequencies are drawn: at right angles in blocks, independently, or as Sobol points.
    n_restarts, bounds, random_state, verbose
        As in `GPRegressor`; ``random_state`` draws the frequencies too.

    Attributes
    ----------
    posterior_ : WeightSpacePosterior or MixturePosterior
        The posterior, which `Explainer` explains.
    kernel_, noise_variance_, mean_, log_marginal_likelihood_, n_rows_, n_frequencies_
        The learned values, in data units; ``n_rows_`` is the number of rows used. The likelihood is
        the first model's.
    advice_ : str
        Advice where the frequencies are too few for the intervals to have their nominal coverage;
        empty otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(200, 2))
    >>> y = np.sin(3.0 * X[:, 0])
    >>> model = gpattr.RandomFeatureGPRegressor(100, random_state=0).fit(X, y)
    >>> model.predict([[0.5, 0.0]]).round(1)
    array([1.])
    """

    def __init__(
        self,
        n_frequencies: int | None = None,
        *,
        kernel: Radial | type[Radial] | None = None,
        mean: str = "constant",
        noise_variance: float | None = None,
        optimize: bool | str = True,
        ensemble: int = 1,
        sampling: str = "orthogonal",
        n_restarts: int = 0,
        bounds: dict[str, tuple[Any, Any]] | None = None,
        random_state: RandomLike = None,
        verbose: int = 0,
    ) -> None:
        self.n_frequencies = n_frequencies
        self.kernel = kernel
        self.mean = mean
        self.noise_variance = noise_variance
        self.optimize = optimize
        self.ensemble = ensemble
        self.sampling = sampling
        self.n_restarts = n_restarts
        self.bounds = bounds
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_exact(
        cls, model: GPRegressor, n_frequencies: int | None = None, **options: Any
    ) -> Self:
        """Return an unfitted model with the kernel and noise of a fitted exact one, both fixed."""
        if not isinstance(model, GPRegressor) or not hasattr(model, "kernel_"):
            raise InvalidInputError(f"model: expected a fitted GPRegressor, got {model!r}")
        check_spectral(model.kernel_)
        if np.ndim(model.noise_variance_):
            raise InvalidInputError("model: expected one noise variance, got one per row")
        if not isinstance(model.mean, str) or model.mean not in MEANS:
            raise InvalidInputError(
                f"model: expected one with a constant or a zero mean, got mean={model.mean!r}"
            )
        given = {
            "kernel": model.kernel_,
            "noise_variance": model.noise_variance_,
            "optimize": False,
            "mean": model.mean,
        }
        return cls(n_frequencies, **(given | options))

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from all rows at once, and forget the rows of earlier calls.

        X and y may be Dask collections: their rows stay where they are.
        """
        self._check_options()
        with self._unchanged_on_error():
            if is_dask(X) or is_dask(y):
                from gpattr.estimators.distributed.random_features import stream_on_dask

                stream = stream_on_dask(self, X, y)
            else:
                rows, targets = self._check_data(X, y)
                stream = self._begin(
                    RowsInMemory(rows, targets),
                    column_names(X),
                    default_number(len(rows)),
                    learn=self.optimize is True,
                )
                stream.add(rows, targets)
                stream.median = np.median(to_numpy(rows), axis=0)
            self._cache, self._stream = self._learn_all(stream), stream
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add rows to the rows already learned from.

        The first chunk fixes the length-scales: the given kernel's, or learned from this chunk.
        """
        self._stream, self._cache = self._with_chunk(getattr(self, "_stream", None), X, y), None
        return self

    def fit_chunks(self, chunks: Iterable[tuple[Any, Any]]) -> Self:
        """Learn from a stream of chunks (X, y), of any sizes, forgetting earlier calls.

        The result does not depend on how the rows are cut into chunks, given the kernel. Chunks
        without rows are passed over. An error names the chunk it is in, counted from 0; what was
        learned from the chunks before stays.
        """
        if not isinstance(chunks, Iterable) or getattr(chunks, "ndim", 1) == 0:
            raise InvalidInputError(f"chunks: expected an iterable of pairs (X, y), got {chunks!r}")
        stream, before = (
            None,
            {name: value for name, value in vars(self).items() if name in ("_stream", "_cache")},
        )
        self._check_options()
        with stream_progress(self.verbose) as report:
            for number, chunk in enumerate(chunks):
                try:
                    X, y = chunk
                except (TypeError, ValueError):
                    what = type(chunk).__name__
                    raise InvalidInputError(
                        f"chunks: expected pairs (X, y), got a {what} as chunk {number}"
                    ) from None
                if hasattr(X, "__len__") and len(X) == 0:
                    continue
                try:
                    stream = self._with_chunk(stream, X, y)
                except (TypeError, ValueError) as error:
                    raise InvalidInputError(f"chunks: chunk {number}: {error}") from error
                self._stream, self._cache = stream, None
                report(number + 1, stream.rows.n)
        if stream is None:
            raise InvalidInputError(
                "chunks: expected at least one chunk of rows, got an empty stream"
            )
        try:
            self._cache = self._learn_all(stream)
        except GpattrError:  # nothing can be learned from these rows: the last model stays
            del self._stream, self._cache
            vars(self).update(before)
            raise
        return self

    def _with_chunk(self, stream: Stream | None, X: Any, y: Any) -> Stream:
        """Return the stream, begun if there is none, with these rows added, or raise unchanged."""
        with self._unchanged_on_error():
            self._check_options()
            if stream is None:
                rows, targets = self._check_data(X, y)
                learn = self.optimize is True and self._given_kernel is None
                if learn and len(rows) <= 2 * rows.shape[1]:
                    warnings.warn(
                        f"the length-scales of {rows.shape[1]} features are learned from the first"
                        f" chunk, which has only {len(rows)} rows; give a kernel, or a larger first"
                        " chunk",
                        FirstChunkWarning,
                        stacklevel=3,
                    )
                stream = self._begin(
                    RowsInMemory(rows, targets), column_names(X), STREAMED, learn=learn
                )
            else:
                rows, targets = self._check_data(
                    in_order(X, stream.names), y, width=stream.draws[0].shape[1]
                )
                rows, targets = beside("X", rows, stream.like), beside("y", targets, stream.like)
            stream.add(rows, targets)
        stream.streamed, stream.median = True, None
        return stream

    @property
    def posterior_(self) -> Posterior:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The posterior given the rows so far, computed on first use."""
        return self._learned.posterior

    @property
    def kernel_(self) -> Radial:
        """The kernel with its learned hyperparameters."""
        return self._learned.kernel

    @property
    def noise_variance_(self) -> float:
        """The noise variance, known or learned."""
        return self._learned.noise

    @property
    def mean_(self) -> Zero | Constant:
        """The prior mean, with its constant learned."""
        learned = self._learned
        return Constant(learned.constant) if self._stream.free_mean else Zero()

    @property
    def log_marginal_likelihood_(self) -> float:
        """log p(y) of the first model."""
        return self._learned.log_marginal_likelihood

    @property
    def n_frequencies_(self) -> int:
        """The number of frequencies, given or chosen."""
        self._require_fitted()
        return len(self._stream.draws[0])

    @property
    def advice_(self) -> str:
        """Advice where the frequencies are too few for the intervals, else ""."""
        chance, M = self._learned.chance, self.n_frequencies_
        if not chance > CHANCE:
            return ""
        return (
            f"With {M} other random frequencies, predictions would change by {chance:.1f} of the"
            " standard deviation that is reported: intervals are too narrow. More of them"
            f" (n_frequencies={2 * M}), several models (ensemble=8) or inducing inputs"
            " (SparseGPRegressor) would help."
        )

    @property
    def n_rows_(self) -> int:
        """The number of rows learned from."""
        self._require_fitted()
        return self._stream.rows.n

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def __copy__(self) -> Self:
        return deepcopy(self)  # sums are added to in place, and belong to one model

    def _require_fitted(self) -> None:
        if not hasattr(self, "_stream"):
            raise NotFittedError(
                "This RandomFeatureGPRegressor is not fitted yet; call fit(X, y) first"
            )

    @property
    def _learned(self) -> Learned:
        self._require_fitted()
        if self._cache is None:
            self._cache = self._learn_all(self._stream)
        return self._cache

    def _begin(
        self, rows: TrainingRows, names: Names | None, default: int, *, learn: bool
    ) -> Stream:
        """Fix the length-scales and the frequencies, ``default`` of them unless given."""
        d, generator = rows.d, random_generator(self.random_state)
        by_blocks = learn and self.n_frequencies is None
        p = 2 * int(default if self.n_frequencies is None else self.n_frequencies)
        remedy = "use a smaller n_frequencies or ensemble"
        check_memory(
            "n_frequencies: the sums over rows", (int(self.ensemble), p, p), remedy, copies=3
        )
        units, given = rows.units(), self._given_kernel
        kernel = default_kernel(units, self._kernel_class) if given is None else given
        kernel.check_features(d)
        assert isinstance(kernel, Radial)
        known = None if self.noise_variance is None else positive_scalar(NOISE, self.noise_variance)
        if learn and given is None and not by_blocks:
            kernel = self._exact_start(rows, kernel)
        draws = [
            standard_frequencies(kernel, d, p // 2, self.sampling, generator)
            for _ in range(int(self.ensemble))
        ]
        noise = known
        if learn:
            kernel, noise = self._train(
                rows, kernel, known, None if by_blocks else draws[0], generator
            )
        # Noise learned again with the frequencies includes what these cannot represent.
        later = AMPLITUDE if by_blocks else self.optimize
        like = rows.take(slice(0))[0]
        return Stream(
            draws, kernel, noise, known is not None, names, like, self.mean == "constant", later
        )

    def _exact_start(self, rows: TrainingRows, kernel: Radial) -> Radial:
        """Return the kernel that an exact GP learns from a few rows.

        It is a better starting point than a guess, and cheap to compute.
        """
        every = max(1, rows.n // SUBSAMPLE)
        X, y = rows.take(slice(0, every * SUBSAMPLE, every))
        model = GPRegressor(
            type(kernel),
            mean=self.mean,
            noise_variance=self.noise_variance,
            hyperparameters="optimal",
        )
        try:
            with without_warning():
                learned = model.fit(X, y).kernel_
        except (InvalidInputError, NotPositiveDefiniteError):
            return kernel  # errors in the data are reported later
        assert isinstance(learned, Radial)
        return learned

    def _train(
        self,
        rows: TrainingRows,
        kernel: Radial,
        known: float | None,
        draws: np.ndarray | None,
        generator: Any,
    ) -> Any:
        """Return kernel and noise of the largest evidence.

        It is that with these frequencies, or of blocks of rows where there are none.
        """
        free_mean = self.mean == "constant"
        # The constant that is learned is relative to it.
        level = rows.target_mean() if free_mean else 0.0
        middle = rows.mean()

        def centred(which: Any) -> tuple[Array, Array]:
            X, y = rows.take(which)
            return X - middle, y - level

        if draws is None:
            objective = BlockEvidence.drawn(centred, rows.n, known, free_mean, generator)
        else:
            objective = rows.evidence((middle, level), draws, known, free_mean)
        variance = rows.target_std() ** 2
        return self._search(
            objective,
            kernel,
            known,
            variance,
            rows.n,
            generator,
            ("lengthscale", "variance"),
            ftol=ROUGHLY,
        )

    def _learn_all(self, stream: Stream, *, relearn: bool = True) -> Learned:
        """Return the posterior given all rows so far, with variance and noise learned again."""
        bases, sums, shift, inputs_mean = stream.rows.total()
        kernel, noise, free_mean, M = (
            stream.kernel,
            stream.noise,
            stream.free_mean,
            len(stream.draws[0]),
        )
        first = sums[0]
        variance = max(first.square / first.n - (first.target / first.n) ** 2, 0.0)
        if relearn and (stream.optimize == AMPLITUDE or (stream.optimize and stream.streamed)):
            known = noise if stream.known else None
            objective = AmplitudeEvidence(first, M, known, free_mean)
            kernel, noise = self._search(
                objective, kernel, known, variance, first.n, 0, ("variance",)
            )
        if noise is None:
            noise = NOISE_SHARE * (variance or 1.0)
        return stream.given(kernel, float(noise), bases, sums, shift, inputs_mean)

    def _content(self) -> dict[str, Any]:
        learned, stream = self._learned, self._stream
        bases, sums, shift, inputs_mean = stream.rows.total()
        arrays = {
            "draws": (np.stack(stream.draws), ("component", "frequency", "feature")),
            "origin": (np.asarray(bases[0].origin), ("feature",)),
            "inputs_mean": (inputs_mean, ("feature",)),
        }
        if stream.median is not None:
            arrays["median"] = (stream.median, ("feature",))
        return {
            "kernel": storage.encode("kernel", learned.kernel),
            "noise": learned.noise,
            "known": stream.known,
            "free_mean": stream.free_mean,
            "optimize": stream.optimize,
            "streamed": stream.streamed,
            "shift": shift,
            "sums": to_content(sums),
            "arrays": {
                name: documents.encode(array, dims) for name, (array, dims) in arrays.items()
            },
        }

    def _restore(self, content: Any, names: Names | None) -> None:
        arrays = {name: documents.decode(array) for name, array in content["arrays"].items()}
        draws, kernel = list(arrays["draws"]), storage.decode(content["kernel"])
        self.n_features_in_ = draws[0].shape[1]
        noise = positive_scalar("noise", content["noise"])
        flags = bool(content["known"]), names, np.empty(0), bool(content["free_mean"])
        stream = Stream(
            draws, kernel, noise, *flags, content["optimize"], bool(content["streamed"])
        )
        stream.rows.restore(
            arrays["origin"], content["shift"], from_content(content["sums"]), arrays["inputs_mean"]
        )
        stream.median = arrays.get("median")
        self._stream, self._cache = stream, self._learn_all(stream, relearn=False)

    def _check_options(self) -> None:
        if self.n_frequencies is not None:
            check_count("n_frequencies", self.n_frequencies)
        check_count("ensemble", self.ensemble)
        check_spectral(SquaredExponential if self.kernel is None else self.kernel)
        check_choice("sampling", self.sampling, SAMPLINGS)
        check_choice("mean", self.mean, MEANS)
        if self.noise_variance is not None:
            positive_scalar(NOISE, self.noise_variance)
        self._check_search()
        if not isinstance(self.optimize, (bool, np.bool_, str)) or self.optimize not in (
            True,
            False,
            AMPLITUDE,
        ):
            raise InvalidInputError(
                f"optimize: expected True, False or 'amplitude', got {self.optimize!r}"
            )
