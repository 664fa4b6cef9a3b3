"""Random-feature regression: the exact GP of its own finite kernel, streams, ensembles, and the
road to the exact GP.
"""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpattr import Explainer, GPRegressor, RandomFeatureGPRegressor, explain
from gpattr.bases.spectral import SAMPLINGS, standard_frequencies
from gpattr.estimators import FirstChunkWarning
from gpattr.estimators.evidence import marginal_likelihood
from gpattr.estimators.evidence.random_features import FrequencyEvidence
from gpattr.estimators.sums import BLOCK
from gpattr.estimators.training_rows import RowsInMemory
from gpattr.exceptions import (
    InvalidInputError,
    NotFittedError,
    TooLargeError,
    UnsupportedModelError,
)
from gpattr.kernels import (
    Function,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
)
from gpattr.means import Constant
from gpattr.posteriors import ExactPosterior, MixturePosterior, WeightSpacePosterior

RNG = np.random.default_rng(6)
N = 60
X = RNG.normal(size=(N, 3)) * [1.0, 5.0, 0.2] + [0.0, 30.0, -1.0]
Y = np.sin(2 * X[:, 0]) + 0.2 * X[:, 1] + 0.1 * RNG.normal(size=N)
KERNEL = SquaredExponential([1.0, 6.0, 0.5], 1.5)
FIXED = {"kernel": KERNEL, "noise_variance": 0.02, "optimize": False, "random_state": 0}
KERNELS = [
    KERNEL,
    Matern32([1.0, 6.0, 0.5], 1.5),
    Matern52(2.0, 0.5),
    RationalQuadratic([1.0, 6.0, 0.5], 1.5, alpha=0.7),
]


@parametrize_with_checks(
    [
        RandomFeatureGPRegressor(10, random_state=0),
        RandomFeatureGPRegressor(20, ensemble=2, random_state=0, kernel=Matern52),
    ]
)
def test_scikit_learn_checks(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip(
            "needs SCIPY_ARRAY_API=1 set before SciPy is imported; tensors have a test of their own"
        )
    check(estimator)


def finite_kernel(basis, variance):
    """(σ²/M) φ(x)·φ(x') as a kernel of one's own, with its derivatives: what the model's prior
    really is.
    """
    V, origin = basis.frequencies, basis.origin
    share = variance / len(V)

    def phases(x, y):
        return ((x - origin) - (y - origin)) @ V.T

    return Function(
        lambda x, y: share * np.cos(phases(x, y)).sum(-1),
        lambda x, y: -share * np.sin(phases(x, y)) @ V,
        lambda x, y: share * np.einsum("...m,mi,mj->...ij", np.cos(phases(x, y)), V, V),
    )


@pytest.mark.parametrize("mean", ["zero", "constant"])
def test_it_is_the_exact_process_of_its_own_kernel(mean):
    model = RandomFeatureGPRegressor(30, mean=mean, **FIXED).fit(X, Y)
    exact = ExactPosterior(
        finite_kernel(model.posterior_.basis, 1.5), X, Y, noise=0.02, mean=model.mean_
    )
    b, rows = X[3], X[:6] + 0.3
    one, two = Explainer(model, b)(rows), Explainer(exact, b)(rows)
    assert np.abs(one.values - two.values).max() <= 1e-9
    assert np.abs(one.cov - two.cov).max() <= 1e-9
    assert np.abs(Explainer(model, b).joint(rows) - Explainer(exact, b).joint(rows)).max() <= 1e-9
    for here, there in zip(
        model.predict(rows, return_std=True), exact.predict(rows, return_std=True)
    ):
        assert np.abs(here - there).max() <= 1e-9
    assert model.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood, rel=1e-9)
    if mean == "constant":
        gls = GPRegressor(exact.kernel, noise_variance=0.02, optimize=False).fit(X, Y)
        assert model.mean_.value == pytest.approx(gls.mean_.value, rel=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("free_mean", [True, False])
def test_evidence_and_its_gradient(kernel, free_mean):
    rows, y, noise = X - X.mean(axis=0), Y - Y.mean(), 0.05
    draws = standard_frequencies(kernel, 3, 12, "plain", np.random.default_rng(0))
    objective = FrequencyEvidence(rows, y, draws, None, free_mean)
    value, gradient = objective(kernel, noise)
    phases = rows @ (draws / kernel.lengthscale).T
    K = kernel.variance / 12 * np.cos(phases[:, None] - phases).sum(-1) + noise * np.eye(N)
    ones = np.linalg.solve(K, np.ones(N))
    best = ones @ y / ones.sum() if free_mean else 0.0
    assert value == pytest.approx(multivariate_normal(np.full(N, best), K).logpdf(y), rel=1e-10)
    h = 1e-5

    def slope(up, down):
        return (objective(*up)[0] - objective(*down)[0]) / (2 * h)

    assert gradient["noise_variance"] == pytest.approx(
        slope((kernel, noise * np.exp(h)), (kernel, noise * np.exp(-h))), rel=1e-6
    )
    changed = [kernel.with_params(variance=kernel.variance * np.exp(s * h)) for s in (1, -1)]
    assert gradient["variance"] == pytest.approx(
        slope((changed[0], noise), (changed[1], noise)), rel=1e-6
    )
    ell = np.atleast_1d(kernel.lengthscale)
    for i in range(len(ell)):
        moved = [ell * np.exp(s * h * (np.arange(len(ell)) == i)) for s in (1, -1)]
        moved = [m if len(ell) > 1 else float(m[0]) for m in moved]
        numeric = slope(*((kernel.with_params(lengthscale=m), noise) for m in moved))
        assert np.atleast_1d(gradient["lengthscale"])[i] == pytest.approx(
            numeric, rel=1e-5, abs=1e-5
        )


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize(
    "kernel", [type(k)() for k in KERNELS], ids=lambda kernel: type(kernel).__name__
)
def test_frequencies_have_the_spectrum_of_the_kernel(kernel, sampling):
    """E cos(v·δ) = k(δ): Bochner's theorem, within 5 standard errors of independent draws."""
    draws = standard_frequencies(kernel, 2, 2**15, sampling, np.random.default_rng(1))
    for step in ([0.1, 0.2], [0.7, -0.3], [1.5, 1.0], [3.0, 0.0]):
        waves = np.cos(draws @ step)
        exact = float(kernel(np.zeros((1, 2)), np.array([step]))[0, 0])
        assert abs(waves.mean() - exact) <= 5 * waves.std() / 2**7.5


def test_orthogonal_frequencies_are_orthogonal():
    draws = standard_frequencies(SquaredExponential(), 4, 8, "orthogonal", np.random.default_rng(0))
    gram = draws[:4] @ draws[:4].T
    assert np.abs(gram - np.diag(np.diagonal(gram))).max() <= 1e-13


def test_training_finds_what_the_exact_process_finds():
    exact = GPRegressor(hyperparameters="optimal").fit(X, Y)
    model = RandomFeatureGPRegressor(200, random_state=0).fit(X, Y)
    assert model.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, abs=3.0)
    assert model.noise_variance_ == pytest.approx(exact.noise_variance_, rel=0.3)
    one, two = explain(model, X[:10]), explain(exact, X[:10])
    assert np.abs(one.values - two.values).max() <= 0.2
    worse = model.kernel_.with_params(variance=2 * model.kernel_.variance)
    other = RandomFeatureGPRegressor(
        200, kernel=worse, noise_variance=model.noise_variance_, optimize=False, random_state=0
    )
    assert other.fit(X, Y).log_marginal_likelihood_ < model.log_marginal_likelihood_


@pytest.mark.slow
def test_the_search_starts_where_an_exact_process_ends():
    """Ten features, a rough kernel: from a guess it would end ten nats below, with standard
    deviations twice as large.
    """
    rows, _, y, _ = train_test_split(
        *load_diabetes(return_X_y=True, scaled=False), random_state=0, test_size=60
    )
    exact = GPRegressor(kernel=Matern52).fit(rows, y)
    for seed in (0, 1):
        taken = RandomFeatureGPRegressor.from_exact(exact, 200, random_state=seed).fit(rows, y)
        model = RandomFeatureGPRegressor(200, kernel=Matern52, random_state=seed).fit(rows, y)
        assert model.log_marginal_likelihood_ > taken.log_marginal_likelihood_ - 3.0
        spread = [m.predict(rows, return_std=True)[1].mean() for m in (model, exact)]
        assert spread[0] == pytest.approx(spread[1], rel=0.3)


def test_taken_from_an_exact_process():
    exact = GPRegressor(mean="zero").fit(X, Y)
    model = RandomFeatureGPRegressor.from_exact(exact, 50, random_state=0, ensemble=2)
    assert (model.mean, model.optimize, model.n_frequencies, model.ensemble) == (
        "zero",
        False,
        50,
        2,
    )
    model.fit(X, Y)
    assert model.kernel_ is exact.kernel_
    assert model.noise_variance_ == exact.noise_variance_
    clone(model).fit(X, Y)
    with pytest.raises(InvalidInputError, match="model: expected a fitted GPRegressor"):
        RandomFeatureGPRegressor.from_exact(GPRegressor())
    with pytest.raises(
        UnsupportedModelError,
        match="kernel: expected one with a spectral density .*, got Linear",
    ):
        RandomFeatureGPRegressor.from_exact(GPRegressor(Linear(), optimize=False).fit(X, Y))
    for mean in ("linear", Constant(5.0)):
        with pytest.raises(
            InvalidInputError, match="model: expected one with a constant or a zero mean"
        ):
            RandomFeatureGPRegressor.from_exact(GPRegressor(mean=mean).fit(X, Y))
    with pytest.raises(InvalidInputError, match="one noise variance"):
        RandomFeatureGPRegressor.from_exact(GPRegressor().fit(X, Y, noise=np.full(N, 0.1)))


BIG = RNG.normal(size=(3 * BLOCK + 77, 3)) * [1.0, 5.0, 0.2] + [0.0, 30.0, -1.0]
BIG_Y = np.sin(2 * BIG[:, 0]) + 0.2 * BIG[:, 1] + 0.1 * RNG.normal(size=len(BIG)) + 100


def cut(size):
    return ((BIG[i : i + size], BIG_Y[i : i + size]) for i in range(0, len(BIG), size))


@pytest.mark.parametrize("size", [1, 100, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5, len(BIG)])
def test_a_stream_gives_the_same_model_to_the_last_bit(size):
    options = {"kernel": KERNEL, "random_state": 0, "ensemble": 2}
    whole = RandomFeatureGPRegressor(15, optimize="amplitude", **options).fit(BIG, BIG_Y)
    streamed = RandomFeatureGPRegressor(15, **options).fit_chunks(cut(size))
    one, two = Explainer(whole)(BIG[:4]), Explainer(streamed)(BIG[:4])
    assert np.array_equal(one.values, two.values)
    assert np.array_equal(one.cov, two.cov)
    assert whole.noise_variance_ == streamed.noise_variance_
    assert whole.kernel_.variance == streamed.kernel_.variance
    assert whole.log_marginal_likelihood_ == streamed.log_marginal_likelihood_
    assert streamed.n_rows_ == len(BIG)


def test_amplitude_and_noise_are_learned_from_the_sums():
    """From wrong values, at fixed length-scales: the same as by the exact process of the finite
    kernel, trained.
    """
    model = RandomFeatureGPRegressor(15, kernel=KERNEL, random_state=0).fit_chunks(
        [(X[:20], Y[:20]), (X[20:], Y[20:])]
    )
    basis = model.posterior_.basis
    F = basis(X)

    def evidence(variance, noise):
        K = variance / 15 * F @ F.T + noise * np.eye(N)
        ones = np.linalg.solve(K, np.ones(N))
        return multivariate_normal(np.full(N, ones @ Y / ones.sum()), K).logpdf(Y)

    best = evidence(model.kernel_.variance, model.noise_variance_)
    assert best == pytest.approx(model.log_marginal_likelihood_, rel=1e-9)
    for factor in (0.9, 1.1):
        assert evidence(factor * model.kernel_.variance, model.noise_variance_) < best
        assert evidence(model.kernel_.variance, factor * model.noise_variance_) < best
    known = RandomFeatureGPRegressor(
        15, kernel=KERNEL, noise_variance=0.5, random_state=0
    ).fit_chunks([(X, Y)])
    assert known.noise_variance_ == 0.5


def test_partial_fit_goes_on():
    model = RandomFeatureGPRegressor(15, random_state=0)
    for start in range(0, N, 20):
        model.partial_fit(X[start : start + 20], Y[start : start + 20])
    assert model.n_rows_ == N
    learned_on_first = RandomFeatureGPRegressor(15, random_state=0).fit(X[:20], Y[:20])
    assert np.array_equal(model.kernel_.lengthscale, learned_on_first.kernel_.lengthscale)
    assert model.score(X, Y) > 0.5
    assert Explainer(model).baseline == pytest.approx(X.mean(axis=0))
    with pytest.raises(InvalidInputError, match='baseline: "median" needs the training inputs'):
        Explainer(model, "median")
    assert Explainer(model.fit(X, Y), "median").baseline == pytest.approx(np.median(X, axis=0))
    before = model.predict(X[:2])
    model.partial_fit(X[:5] + 0.1, Y[:5] + 3.0)
    assert not np.array_equal(model.predict(X[:2]), before)


def test_asking_in_between_changes_nothing_and_arrays_may_be_reused():
    asked, silent = (RandomFeatureGPRegressor(15, kernel=KERNEL, random_state=0) for _ in "ab")
    for start, stop in ((0, 700), (700, 1500), (1500, len(BIG))):
        rows, y = BIG[start:stop].copy(), BIG_Y[start:stop].copy()
        asked.partial_fit(rows, y)
        assert np.array_equal(asked.predict(X[:3]), asked.predict(X[:3]))
        silent.partial_fit(rows, y)
        rows[:] = y[:] = np.nan  # a buffer for the next chunk
    assert np.array_equal(asked.predict(X), silent.predict(X))
    assert np.isfinite(asked.predict(X)).all()


def test_arrays_and_tensors_in_one_stream():
    mixed = RandomFeatureGPRegressor(15, **FIXED).fit_chunks(
        [(X[:30], Y[:30]), (torch.tensor(X[30:]), torch.tensor(Y[30:]))]
    )
    assert np.array_equal(
        mixed.predict(X), RandomFeatureGPRegressor(15, **FIXED).fit(X, Y).predict(X)
    )


def test_a_file_of_a_stream(tmp_path):
    model = RandomFeatureGPRegressor(15, kernel=KERNEL, random_state=0).fit_chunks(cut(1000))
    model.save(tmp_path / "m.json")
    loaded = RandomFeatureGPRegressor.load(tmp_path / "m.json")
    assert loaded.noise_variance_ == model.noise_variance_
    assert loaded.kernel_.variance == model.kernel_.variance
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.n_rows_ == len(BIG)


def test_streams_of_frames_are_aligned_by_name():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = RandomFeatureGPRegressor(15, kernel=KERNEL, random_state=0)
    model.fit_chunks([(frame[:30], Y[:30]), (frame[30:][["c", "a", "b"]], Y[30:])])
    plain = RandomFeatureGPRegressor(15, kernel=KERNEL, random_state=0).fit_chunks([(X, Y)])
    assert np.array_equal(model.predict(frame), plain.predict(X))
    model.partial_fit(X, Y)  # an array goes by position
    with pytest.raises(
        InvalidInputError,
        match=r"chunks: chunk 1: X: expected the columns \['a', 'b', 'c'\] of the first chunk",
    ):
        model.fit_chunks([(frame, Y), (frame.rename(columns={"a": "z"}), Y)])
    with pytest.raises(InvalidInputError, match=r"chunks: chunk 1: X: expected the columns"):
        model.fit_chunks([(frame, Y), (frame[["a", "b"]], Y)])


def test_what_is_wrong_with_a_stream():
    model = RandomFeatureGPRegressor(15, kernel=KERNEL, random_state=0)
    with pytest.raises(
        InvalidInputError, match="chunks: expected at least one chunk of rows, got an empty stream"
    ):
        model.fit_chunks([])
    assert not hasattr(model, "posterior_")
    bad = X[20:40].copy()
    bad[3, 1] = np.nan
    with pytest.raises(InvalidInputError, match="chunks: chunk 1: .*NaN"):
        model.fit_chunks([(X[:20], Y[:20]), (bad, Y[20:40]), (X[40:], Y[40:])])
    # Rows given before stay usable, as if the stream had ended there.
    good = RandomFeatureGPRegressor(15, kernel=KERNEL, random_state=0).fit_chunks(
        [(X[:20], Y[:20])]
    )
    assert np.array_equal(model.predict(X), good.predict(X))
    assert model.n_rows_ == 20
    model.partial_fit(X[20:], Y[20:])
    assert model.n_rows_ == N
    with pytest.raises(
        InvalidInputError, match="chunks: chunk 1: X has 2 features, but .* is expecting 3"
    ):
        model.fit_chunks([(X[:20], Y[:20]), (X[20:, :2], Y[20:])])
    with pytest.raises(
        InvalidInputError, match="chunks: chunk 1: .*inconsistent numbers of samples"
    ):
        model.fit_chunks([(X[:20], Y[:20]), (X[20:], Y[:3])])
    with pytest.raises(
        InvalidInputError, match=r"chunks: expected pairs \(X, y\), got a ndarray as chunk 0"
    ):
        model.fit_chunks([X])


def test_what_fails_leaves_the_last_model_as_it_was():
    model = RandomFeatureGPRegressor(15, kernel=KERNEL, optimize="amplitude", random_state=0).fit(
        X, Y
    )
    before = model.predict(X)
    far = np.full((2, 3), 1e300)
    for attempt in (
        lambda: model.fit(X[:1], Y[:1]),
        lambda: model.fit(np.ones((5, 4)), np.ones(5)),
        lambda: model.fit_chunks([]),
        lambda: model.fit_chunks([(X, Y[:3])]),
        lambda: model.fit_chunks([(X, np.ones(N))]),
        lambda: model.partial_fit(X, pd.DataFrame({"y": pd.date_range("2026", periods=N)})),
        lambda: model.partial_fit(far, Y[:2]),
        lambda: model.partial_fit(X[:2], [1e200, 1.0]),
        lambda: model.partial_fit(X[:, :2], Y),
    ):
        with pytest.raises(InvalidInputError):
            attempt()
        assert np.array_equal(model.predict(X), before)
        assert model.n_rows_ == N
        assert model.n_features_in_ == 3
    with pytest.raises(InvalidInputError, match="chunks: chunk 1: X: row 0 lies so far out"):
        model.fit_chunks([(X, Y), (far, Y[:2])])
    with pytest.raises(InvalidInputError, match="X: row 1 lies so far out"):
        model.fit(np.vstack([X[:1], [[1e25, 0, 0]], X]), np.ones(N + 2) * np.arange(N + 2))
    for chunks in (5, None):
        with pytest.raises(InvalidInputError, match="chunks: expected an iterable of pairs"):
            model.fit_chunks(chunks)


def test_options_changed_later_do_not_leak(tmp_path):
    model = RandomFeatureGPRegressor(15, kernel=KERNEL, random_state=0).partial_fit(X, Y + 100)
    same = RandomFeatureGPRegressor(15, kernel=KERNEL, random_state=0).fit_chunks(
        [(X, Y + 100), (X, Y + 100)]
    )
    model.set_params(mean="zero", n_frequencies=30, optimize=False, noise_variance=0.5).partial_fit(
        X, Y + 100
    )
    assert np.array_equal(model.predict(X), same.predict(X))
    model.save(tmp_path / "m.json")
    loaded = RandomFeatureGPRegressor.load(tmp_path / "m.json")
    assert np.array_equal(loaded.predict(X), same.predict(X))
    for m in (loaded, same):
        m.partial_fit(X, Y)
    assert loaded.noise_variance_ == pytest.approx(same.noise_variance_, rel=1e-3)
    with pytest.raises(InvalidInputError, match="noise_variance: expected"):
        model.set_params(noise_variance=-1).partial_fit(X, Y)


def test_a_copy_is_a_model_of_its_own():
    model = RandomFeatureGPRegressor(15, **FIXED).partial_fit(X, Y)
    other = copy.copy(model)
    other.partial_fit(X, Y + 5)
    assert (model.n_rows_, other.n_rows_) == (N, 2 * N)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_chunks_without_rows_are_passed_over():
    chunks = [(X[:0], Y[:0]), (X[:30], Y[:30]), (X[:0], Y[:0]), (X[30:], Y[30:])]
    model = RandomFeatureGPRegressor(15, **FIXED).fit_chunks(chunks)
    assert np.array_equal(
        model.predict(X), RandomFeatureGPRegressor(15, **FIXED).fit(X, Y).predict(X)
    )


def test_noise_that_is_neither_known_nor_learned_is_that_of_all_rows():
    options = {"kernel": KERNEL, "optimize": False, "random_state": 0}
    models = [
        RandomFeatureGPRegressor(15, **options).fit_chunks(cut(size))
        for size in (50, 1000, len(BIG))
    ]
    assert len({model.noise_variance_ for model in models}) == 1
    assert models[0].noise_variance_ == pytest.approx(0.2 * BIG_Y.var(), rel=1e-9)


def test_a_small_first_chunk_is_noticed():
    with pytest.warns(
        FirstChunkWarning,
        match="length-scales of 3 features are learned from the first chunk, .* only 5 rows",
    ):
        RandomFeatureGPRegressor(5, random_state=0).partial_fit(X[:5], Y[:5])


def test_too_large_models_are_refused():
    for options in ({"n_frequencies": 10**6}, {"n_frequencies": 500, "ensemble": 10**5}):
        with pytest.raises(
            TooLargeError,
            match="n_frequencies: the sums over rows .*: use a smaller n_frequencies or ensemble",
        ):
            RandomFeatureGPRegressor(**options).fit(X, Y)


def test_ensemble_is_the_mixture_of_its_models():
    model = RandomFeatureGPRegressor(10, ensemble=4, **FIXED).fit(X, Y)
    assert isinstance(model.posterior_, MixturePosterior)
    parts = model.posterior_.posteriors
    assert len(parts) == 4
    assert len({part.basis.frequencies.tobytes() for part in parts}) == 4
    first = RandomFeatureGPRegressor(10, **FIXED).fit(X, Y)
    assert np.array_equal(parts[0].basis.frequencies, first.posterior_.basis.frequencies)
    mean, std = model.predict(X, return_std=True)
    means, stds = (
        np.stack(list(part)) for part in zip(*(part.predict(X, return_std=True) for part in parts))
    )
    assert mean == pytest.approx(means.mean(axis=0))
    assert std**2 == pytest.approx((stds**2).mean(axis=0) + means.var(axis=0))
    draws = model.sample_y(X[:2], 20000, random_state=0)
    assert draws.mean(axis=1) == pytest.approx(mean[:2], abs=0.02)
    assert draws.std(axis=1) == pytest.approx(std[:2], rel=0.05)


def test_files(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for options in (
        {},
        {"ensemble": 3, "kernel": Matern52, "mean": "zero"},
        {"kernel": KERNEL, "sampling": "quasi-random"},
    ):
        model = RandomFeatureGPRegressor(12, random_state=0, **options).fit(frame, Y)
        model.save(tmp_path / "m.json")
        loaded = RandomFeatureGPRegressor.load(tmp_path / "m.json")
        assert Explainer(model, "median")(frame.head(3)) == Explainer(loaded, "median")(
            frame.head(3)
        )
        assert loaded.noise_variance_ == model.noise_variance_
        for m in (model, loaded):
            m.partial_fit(frame[:30] + 0.1, Y[:30])
        assert loaded.n_rows_ == 90
        assert loaded.predict(frame) == pytest.approx(model.predict(frame), rel=1e-6)


def test_tensors():
    here, there = (
        RandomFeatureGPRegressor(15, kernel=Matern32, random_state=0).fit(*data)
        for data in ((X, Y), map(torch.tensor, (X, Y)))
    )
    assert isinstance(there.posterior_.weights, torch.Tensor)
    assert isinstance(there.predict(X), torch.Tensor)
    assert there.log_marginal_likelihood_ == pytest.approx(here.log_marginal_likelihood_, rel=1e-6)
    there = RandomFeatureGPRegressor(15, **FIXED).fit_chunks(
        zip(torch.tensor(X).split(20), torch.tensor(Y).split(20))
    )
    here = RandomFeatureGPRegressor(15, **FIXED).fit(X, Y)
    one, two = Explainer(here)(X[:4]), Explainer(there)(X[:4])
    assert np.abs(one.values - two.values).max() <= 1e-10
    assert np.abs(one.cov - two.cov).max() <= 1e-10


@pytest.mark.parametrize(
    ("rows", "y"),
    [
        (np.column_stack([X[:, 0], np.full(N, 3.0)]), Y),
        (X[:, [0, 0]], Y),
        (np.repeat(X, 2, axis=0), np.repeat(Y, 2)),
        (X[:, :1], Y),
        (X * 1e-9, Y * 1e9),
        (X + 1e9, Y + 1e9),
        (RNG.normal(size=(30, 50)), Y[:30]),
    ],
    ids=[
        "constant",
        "repeated column",
        "repeated rows",
        "one feature",
        "tiny",
        "far",
        "fifty features",
    ],
)
def test_awkward_data(rows, y):
    model = RandomFeatureGPRegressor(20, random_state=0).fit(rows, y)
    ex = Explainer(model)(rows[:5])
    assert np.isfinite(ex.values).all()
    assert np.isfinite(ex.cov).all()
    assert np.abs(ex.delta).max() <= 1e-9 * (1 + np.abs(ex.predictions).max())


def test_tiny_noise():
    model = RandomFeatureGPRegressor(
        20, kernel=KERNEL, noise_variance=1e-12, optimize=False, random_state=0
    ).fit(X, Y)
    ex = Explainer(model)(X[:5])
    assert np.isfinite(ex.cov).all()
    assert np.abs(ex.delta).max() <= 1e-7


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"n_frequencies": 0},
            InvalidInputError,
            "n_frequencies: expected an integer of 1 or more, got 0",
        ),
        (
            {"n_frequencies": -3},
            InvalidInputError,
            "n_frequencies: expected an integer of 1 or more, got -3",
        ),
        ({"n_frequencies": 2.5}, InvalidInputError, "n_frequencies"),
        ({"n_frequencies": True}, InvalidInputError, "n_frequencies"),
        ({"ensemble": 0}, InvalidInputError, "ensemble: expected an integer of 1 or more, got 0"),
        (
            {"kernel": Linear()},
            UnsupportedModelError,
            "kernel: expected one with a spectral density",
        ),
        ({"kernel": KERNEL + KERNEL}, UnsupportedModelError, "kernel: .* got Sum"),
        ({"kernel": Matern12}, UnsupportedModelError, "kernel: Matern12 has no gradients"),
        (
            {"kernel": SquaredExponential([1.0, 2.0])},
            InvalidInputError,
            "lengthscale: expected one number or 3",
        ),
        ({"sampling": "lattice"}, InvalidInputError, "sampling: expected"),
        ({"mean": "linear"}, InvalidInputError, "mean: expected"),
        (
            {"optimize": "all"},
            InvalidInputError,
            "optimize: expected True, False or 'amplitude', got 'all'",
        ),
        ({"noise_variance": -1.0}, InvalidInputError, "noise_variance: expected"),
        ({"random_state": "x"}, InvalidInputError, "random_state: expected"),
        ({"bounds": "fixed"}, InvalidInputError, "bounds: expected a dictionary"),
        ({"n_restarts": 1.5}, InvalidInputError, "n_restarts: expected an integer"),
        (
            {"bounds": {"nonsense": (1, 2)}},
            InvalidInputError,
            "bounds: expected hyperparameters among",
        ),
    ],
)
def test_bad_options(options, error, words):
    with pytest.raises(error, match=words):
        RandomFeatureGPRegressor(**{"n_frequencies": 10, **options}).fit(X, Y)


def test_unfitted():
    for ask in (
        lambda m: m.posterior_,
        lambda m: m.kernel_,
        lambda m: m.n_rows_,
        lambda m: Explainer(m),
    ):
        with pytest.raises(NotFittedError, match="not fitted"):
            ask(RandomFeatureGPRegressor())
    with pytest.raises(InvalidInputError, match="n_samples=1"):
        RandomFeatureGPRegressor(5).fit(X[:1], Y[:1])
    assert RandomFeatureGPRegressor(5, optimize=False).fit(X[:1], Y[:1]).predict(
        X[:1]
    ) == pytest.approx(Y[:1])


def test_progress_and_bounds(capsys):
    options = {
        "random_state": 0,
        "verbose": 1,
        "bounds": {"noise_variance": (0.3, 0.4), "lengthscale": "fixed"},
    }
    model = RandomFeatureGPRegressor(10, kernel=KERNEL, **options).fit(X, Y)
    assert np.array_equal(model.kernel_.lengthscale, KERNEL.lengthscale)
    assert 0.3 <= model.noise_variance_ <= 0.4
    assert "log marginal likelihood" in capsys.readouterr().err
    model.fit_chunks([(X, Y)])
    assert "60 rows" in capsys.readouterr().err
    assert 0.3 <= model.noise_variance_ <= 0.4


def test_training_contributions_need_the_rows():
    with pytest.raises(UnsupportedModelError, match="posteriors that keep their rows"):
        Explainer(RandomFeatureGPRegressor(5, **FIXED).fit(X, Y)).training_contributions(X[0], 0)
    assert isinstance(
        RandomFeatureGPRegressor(5, **FIXED).fit(X, Y).posterior_, WeightSpacePosterior
    )


def test_a_rough_start_that_does_not_converge_says_nothing(monkeypatch):
    """The search that follows says whether it converged."""
    rows = np.random.default_rng(0).normal(size=(30, 2))
    y = np.sin(3 * rows[:, 0])
    monkeypatch.setitem(marginal_likelihood.OPTIONS, "maxiter", 1)
    RandomFeatureGPRegressor()._exact_start(
        RowsInMemory(rows, y), SquaredExponential()
    )  # warnings are errors here
    with pytest.warns(marginal_likelihood.ConvergenceWarning):
        GPRegressor(hyperparameters="optimal").fit(rows, y)


@pytest.mark.parametrize("mean", ["constant", "zero"])
def test_how_much_predictions_depend_on_the_draw_of_frequencies(mean, tmp_path):
    """Half of the waves make a model each; their difference is that of exact GPs with these waves
    as features.
    """
    model = RandomFeatureGPRegressor(
        12, kernel=KERNEL, noise_variance=0.05, optimize=False, mean=mean, random_state=0
    ).fit(X, Y)
    waves, one = model.posterior_.basis(X), np.ones(N)

    def prediction(features):
        A = np.linalg.inv(features @ features.T * KERNEL.variance / 6 + 0.05 * np.eye(N))
        c = (one @ A @ Y) / (one @ A @ one) if mean == "constant" else 0.0
        return c + features @ features.T @ A @ (Y - c) * KERNEL.variance / 6

    first, second = (
        prediction(np.column_stack([waves[:, i : i + 6], waves[:, i + 12 : i + 18]]))
        for i in (0, 6)
    )
    var = model.predict(X, return_std=True)[1] ** 2
    expected = np.sqrt(((first - second) ** 2).sum() / 4 / var.sum())
    assert model._learned.chance == pytest.approx(expected, rel=1e-6)
    assert f"change by {expected:.1f} of the standard deviation" in model.advice_
    assert "(n_frequencies=24)" in model.advice_
    model.save(tmp_path / "m.json")
    assert RandomFeatureGPRegressor.load(tmp_path / "m.json").advice_ == model.advice_


def test_models_without_advice():
    smooth = {**FIXED, "kernel": SquaredExponential(100.0, 1.0)}
    assert RandomFeatureGPRegressor(400, **smooth).fit(X, Y).advice_ == ""
    assert (
        RandomFeatureGPRegressor(5, ensemble=3, **FIXED).fit(X, Y).advice_ == ""
    )  # the spread between them is reported
    assert RandomFeatureGPRegressor(1, **FIXED).fit(X, Y).advice_ == ""
