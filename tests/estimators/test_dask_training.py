"""Training on Dask collections: as in memory, whatever the partitions and the scheduler."""

import os
import re
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from gpattr import Explainer, GPRegressor, RandomFeatureGPRegressor, SparseGPRegressor, means
from gpattr._core import workers
from gpattr._core.array import product
from gpattr._core.lazy_tables import is_dask
from gpattr.estimators import sums
from gpattr.estimators.sums import Tree, joined
from gpattr.estimators.training_rows import Moments
from gpattr.exceptions import ClusterError, InvalidInputError
from gpattr.kernels import Linear, SquaredExponential

dask = pytest.importorskip("dask")
da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

from gpattr.estimators.distributed import cluster as work  # noqa: E402
from gpattr.estimators.distributed import rows as dask_rows  # noqa: E402

RNG = np.random.default_rng(0)
N, NAMES = 9500, ["a", "b", "c"]
X = RNG.normal(size=(N, 3)) * [1.0, 10.0, 0.1] + [0.0, 50.0, 0.0]
X[:, 2] = np.round(X[:, 2], 1)
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1] + 0.1 * RNG.normal(size=N)
FRAME = pd.DataFrame(X, columns=NAMES).assign(y=Y)
KERNEL = SquaredExponential([1.0, 10.0, 0.1], 1.0)
GIVEN = {"kernel": KERNEL, "noise_variance": 0.01, "optimize": False, "random_state": 0}


@pytest.fixture(autouse=True, scope="module")
def small_segments():
    """Several levels of the tree with few rows; only the client cuts rows into segments."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (sums, dask_rows):
            patch.setattr(module, "SEGMENT", 1024)
        yield


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(__import__, "gpattr.estimators.distributed.sparse")
        yield client


@pytest.fixture
def threads():
    with dask.config.set(scheduler="threads"):
        yield


def frame(npartitions=4, n=N):
    return dd.from_pandas(FRAME[:n], npartitions=npartitions, sort=False)


def assert_same(model, other):
    rows = FRAME[NAMES][:20] if hasattr(other, "feature_names_in_") else X[:20]
    for one, two in zip(
        model.predict(rows, return_std=True), other.predict(rows, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-10)
    ours, theirs = model.posterior_.reference_points, other.posterior_.reference_points
    assert set(ours) == set(theirs) == {"mean", "median"}
    np.testing.assert_allclose(ours["mean"], theirs["mean"], rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(ours["median"], theirs["median"])
    assert model.n_features_in_ == other.n_features_in_ == 3


RANDOM = {
    "given": RandomFeatureGPRegressor(6, **GIVEN),
    "amplitude": RandomFeatureGPRegressor(
        6, kernel=KERNEL, optimize="amplitude", ensemble=2, random_state=0
    ),
    "frequencies": RandomFeatureGPRegressor(4, random_state=0, mean="zero"),
    "length-scales of a kernel": RandomFeatureGPRegressor(
        3, kernel=KERNEL, random_state=0, noise_variance=0.05
    ),
}
SPARSE = {
    "bound": SparseGPRegressor(2, random_state=0),
    "greedy, fixed": SparseGPRegressor(
        4, KERNEL, inducing="greedy", move=False, random_state=0, noise_variance=0.01
    ),
    "places given, own mean": SparseGPRegressor(
        inducing=X[:3], optimize=False, mean=means.Linear([0.0, 0.1, 0.0])
    ),
    "not stationary": SparseGPRegressor(
        3, Linear() + SquaredExponential(), optimize=False, mean="zero", random_state=0
    ),
}


@pytest.mark.parametrize("model", [*RANDOM.values(), *SPARSE.values()], ids=[*RANDOM, *SPARSE])
def test_the_model_is_that_of_the_rows_in_memory(model, threads):
    n = 2500
    serial = clone(model).fit(FRAME[NAMES][:n], FRAME["y"][:n])
    data = frame(n=n)
    model.fit(data[NAMES], data["y"])
    assert_same(model, serial)
    assert list(model.feature_names_in_) == list(serial.feature_names_in_) == NAMES
    assert model.posterior_.feature_names == tuple(NAMES)
    assert model.noise_variance_ == pytest.approx(serial.noise_variance_, rel=1e-12)
    if isinstance(model, SparseGPRegressor):
        assert model.bound_ == pytest.approx(serial.bound_, rel=1e-10)
        assert model.missed_share_ == pytest.approx(serial.missed_share_, abs=1e-8)
        np.testing.assert_allclose(model.inducing_, serial.inducing_, rtol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomFeatureGPRegressor(random_state=0),
        lambda: SparseGPRegressor(random_state=0),
    ],
    ids=["random features", "sparse"],
)
def test_the_defaults_learn_from_blocks_of_the_same_rows(make, monkeypatch, threads):
    monkeypatch.setattr("gpattr.estimators.evidence.block.BLOCK_ROWS", 60)
    monkeypatch.setattr("gpattr.estimators.sparse_gp_regressor.FEWEST", 10)
    monkeypatch.setattr("gpattr.estimators.inducing.MOST", 20)
    monkeypatch.setattr("gpattr.estimators.sparse_gp_regressor.CLUSTERED", 500)
    serial = make().fit(X, Y)
    model = make().fit(da.from_array(X, chunks=(2500, 2)), da.from_array(Y, chunks=4000))
    assert_same(model, serial)
    np.testing.assert_array_equal(model.kernel_.lengthscale, serial.kernel_.lengthscale)


cuts = st.lists(st.integers(0, N), max_size=7).map(lambda ends: np.diff([0, *sorted(ends), N]))
SERIAL = {}


@settings(max_examples=15, deadline=None)
@given(rows=cuts, targets=cuts)
def test_any_partitions_give_the_same_result(rows, targets):
    if "model" not in SERIAL:
        model = RandomFeatureGPRegressor(5, **GIVEN)
        SERIAL["model"] = model.fit_chunks(
            (X[i : i + 777], Y[i : i + 777]) for i in range(0, N, 777)
        )
    chunks = tuple(map(int, rows))
    with dask.config.set(scheduler="synchronous"):
        model = RandomFeatureGPRegressor(5, **GIVEN).fit(
            da.from_array(X, chunks=(chunks, 3)),
            da.from_array(Y, chunks=(tuple(map(int, targets)),)),
        )
    assert model.n_rows_ == N
    np.testing.assert_allclose(
        model.posterior_.weights, SERIAL["model"].posterior_.weights, rtol=1e-10, atol=1e-10
    )
    assert model.log_marginal_likelihood_ == SERIAL["model"].log_marginal_likelihood_  # every bit


@given(st.integers(1, 700))
def test_the_tree_of_a_cluster_is_that_of_a_stream(n):
    parts = [f"{i}" for i in range(n)]
    with dask.config.set(scheduler="synchronous"):
        assert (
            joined("({} {})".format, parts) == dask.compute(work.joined("({} {})".format, parts))[0]
        )
    stream = Tree("({} {})".format)
    for part in parts[:-1]:
        stream.add(part)
    assert stream.total(parts[-1]) == joined("({} {})".format, parts)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.floats(1e-150, 1e150))
def test_moments_join(lengths, size):
    rows = size * (np.random.default_rng(1).normal(size=(sum(lengths), 2)) + [0.0, 1e3])
    parts = np.split(rows, np.cumsum(lengths)[:-1])
    moments = joined(Moments.joined, map(Moments.of, parts))
    np.testing.assert_allclose(moments.mean, rows.mean(axis=0), rtol=1e-12, atol=1e-14 * size)
    np.testing.assert_allclose(moments.std, (rows / size).std(axis=0) * size, rtol=1e-9)
    assert Moments.of(np.full((5, 1), 0.1)).joined(Moments.of(np.full((3, 1), 0.1))).std == [0.0]


@pytest.mark.parametrize("n", [1, 2, 5000, 5001])
def test_medians_are_exact(n, threads):
    rows = np.column_stack(
        [
            RNG.normal(size=n),
            RNG.integers(-2, 3, size=n) * 1.0,
            np.exp(50.0 * RNG.normal(size=n)) * RNG.choice([-1.0, 1.0], size=n),
            np.full(n, -0.0),
            1e9 + 1e-6 * RNG.normal(size=n),  # almost all bits are shared
        ]
    )
    data = dask_rows.DaskRows.of(da.from_array(rows, chunks=(777, 5)), da.zeros(n, chunks=900))
    np.testing.assert_array_equal(data.median, np.median(rows, axis=0))


def test_medians_of_many_different_values_need_more_passes(monkeypatch, threads):
    monkeypatch.setattr("gpattr.estimators.distributed.medians.GATHERED", 3)
    data = dask_rows.DaskRows.of(da.from_array(X, chunks=(1000, 3)), da.from_array(Y, chunks=1000))
    np.testing.assert_array_equal(data.median, np.median(X, axis=0))


def test_rows_are_taken_by_their_numbers(threads):
    data = dask_rows.DaskRows.of(da.from_array(X, chunks=(1500, 3)), da.from_array(Y, chunks=700))
    index = RNG.permutation(N)[:100]
    for which in (index, slice(5, 9000, 17), slice(0), np.array([N - 1, 0, N - 1])):
        rows, targets = data.take(which)
        np.testing.assert_array_equal(rows, X[which])
        np.testing.assert_array_equal(targets, Y[which])


QUICK = SparseGPRegressor(
    4, KERNEL, move=False, bounds={"lengthscale": "fixed", "variance": "fixed"}, random_state=0
)


@pytest.mark.parametrize("model", [RANDOM["given"], QUICK], ids=["random features", "sparse"])
def test_a_cluster_of_processes_learns_the_same(model, client, capsys):
    serial = clone(model).fit(FRAME[NAMES], FRAME["y"])
    data = frame(5)
    assert work.client() is client
    model.set_params(verbose=1).fit(data[NAMES], data[["y"]])
    assert_same(model, serial)
    shown = capsys.readouterr().err
    assert re.search(r"checking rows: (\d+) of \1 ", shown)
    assert Explainer(model)(FRAME[NAMES][:2]).feature_names == tuple(NAMES)


def rows_of(number, delay=0.0):
    time.sleep(delay)
    return FRAME[number * 950 : (number + 1) * 950]


def test_a_worker_that_dies_changes_nothing(client):
    serial = RandomFeatureGPRegressor(6, **GIVEN).fit(FRAME[NAMES], FRAME["y"])
    data = dd.from_map(rows_of, range(10), delay=0.1, meta=FRAME[:0])
    victim = next(iter(client.run(os.getpid).values()))
    killing = threading.Timer(0.4, os.kill, (victim, signal.SIGKILL))
    killing.start()
    model = RandomFeatureGPRegressor(6, **GIVEN).fit(data[NAMES], data["y"])
    killing.join()
    assert_same(model, serial)
    client.wait_for_workers(2, timeout=60)
    assert victim not in client.run(os.getpid).values()


def test_a_cluster_that_goes_away_is_an_error():
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    cluster = distributed.LocalCluster(**options, dashboard_address=":0", silence_logs=60)
    with distributed.Client(cluster):
        data = dd.from_map(rows_of, range(10), delay=0.2, meta=FRAME[:0])
        model = RandomFeatureGPRegressor(6, **GIVEN)
        threading.Timer(0.5, cluster.close).start()
        with pytest.raises(ClusterError, match="lost"):
            model.fit(data[NAMES], data["y"])
        assert not hasattr(model, "n_features_in_")


class Heavy:
    """A value that counts how often it is unpacked in this process."""

    unpacked = 0

    def __reduce__(self):
        return _unpack, ()


def _unpack():
    Heavy.unpacked += 1
    return Heavy()


def _look(value, part):
    return part + 0 * (value is None)


def test_parameters_travel_once_to_each_worker(client):
    counts = client.run(_unpacked_so_far)
    work.computed(work.joined(_plus, work.each(_look, Heavy(), [*range(40)])))
    after = client.run(_unpacked_so_far)
    assert all(after[worker] - counts[worker] <= 2 for worker in after)
    assert sum(after.values()) > sum(counts.values())


def _unpacked_so_far():
    return Heavy.unpacked


def _plus(one, other):
    return one + other


def test_tasks_use_one_thread(monkeypatch):
    """A large product inside of `one_thread` stays in its thread."""
    monkeypatch.setattr(workers, "_pool", workers.Pool(1))
    seen, A = set(), RNG.normal(size=(600, 600))
    share = workers.Pool.share

    def watched(self, job, pieces):
        share(self, lambda piece: (seen.add(threading.get_ident()), job(piece)), pieces)

    monkeypatch.setattr(workers.Pool, "share", watched)
    free = product(A, A)
    seen.clear()
    with workers.one_thread():
        np.testing.assert_allclose(product(A, A), free, rtol=0, atol=1e-11)
    assert seen <= {threading.get_ident()}


def broken(frames):
    return dd.from_map(lambda part: part, frames, meta=FRAME[:0], enforce_metadata=False)


WRONG = {
    "missing value": (FRAME.assign(b=np.nan), "X: partition 1: .*nan in row 0, column 'b'"),
    "infinite": (FRAME.assign(c=np.inf), "X: partition 1: .*inf in row 0, column 'c'"),
    "text": (FRAME.assign(a="high"), "X: partition 1: .*column 'a' of type"),
    "missing target": (FRAME.assign(y=np.nan), "y: partition 1: .*nan in row 0, column 'y'"),
    "text target": (FRAME.assign(y="high"), "y: partition 1: .*column 'y' of type"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_by_partition_and_column(name, threads):
    bad, message = WRONG[name]
    data = broken([FRAME[:100], bad[:10], bad[:5]])
    for model in (RandomFeatureGPRegressor(5, **GIVEN), SparseGPRegressor(5)):
        with pytest.raises(InvalidInputError, match=message):
            model.fit(data[NAMES], data["y"])
        assert not hasattr(model, "n_features_in_")


def test_other_columns_in_a_partition_are_named(threads):
    inputs = [FRAME[NAMES][:50], FRAME[NAMES][:50].rename(columns={"b": "beta"})]
    data = dd.from_map(lambda part: part, inputs, meta=FRAME[NAMES][:0], enforce_metadata=False)
    y = da.from_array(Y[:100], chunks=30)
    with pytest.raises(InvalidInputError, match=r"X: partition 1: .*missing \['b'\] and unknown"):
        RandomFeatureGPRegressor(5, **GIVEN).fit(data, y)


def test_columns_in_another_order_are_put_in_order(threads):
    inputs = [FRAME[NAMES][:50], FRAME[NAMES[::-1]][50:100]]
    data = dd.from_map(lambda part: part, inputs, meta=FRAME[NAMES][:0], enforce_metadata=False)
    model = RandomFeatureGPRegressor(5, **GIVEN).fit(data, da.from_array(Y[:100], chunks=30))
    assert_same(model, RandomFeatureGPRegressor(5, **GIVEN).fit(FRAME[NAMES][:100], Y[:100]))


def test_empty_partitions_and_unknown_lengths_are_fine(threads):
    data = frame(6)
    some = data[data["a"] > 1.0]  # lengths unknown
    none = data[data["a"] > 1e9]
    both = dd.concat([none, some, none], ignore_unknown_divisions=True)
    rows, targets = both[NAMES].to_dask_array(), both["y"].to_dask_array()
    assert np.isnan(rows.shape[0])
    chosen = FRAME[FRAME["a"] > 1.0]
    model = RandomFeatureGPRegressor(5, **GIVEN).fit(rows, targets)
    serial = RandomFeatureGPRegressor(5, **GIVEN).fit(chosen[NAMES].to_numpy(), chosen["y"])
    assert_same(model, serial)
    with pytest.raises(InvalidInputError, match="at least one row, got empty partitions only"):
        model.fit(none[NAMES], none["y"])
    assert_same(model, serial)  # as it was


ROWS, TARGETS = da.from_array(X[:60], chunks=(20, 3)), da.from_array(Y[:60], chunks=30)
REFUSED = {
    "y in memory": (ROWS, Y[:60], "y: expected a Dask collection, because X is one"),
    "X in memory": (X[:60], TARGETS, "X: expected a Dask collection, because y is one"),
    "lengths": (ROWS, TARGETS[:50], r"y: expected 60 targets \(one per row of X\), got 50"),
    "one dimension": (
        TARGETS,
        TARGETS,
        r"X: expected .*\(n, d\), got a Dask Array of shape",
    ),
    "a series": (frame()["a"], TARGETS, "X: expected a Dask data frame .* got a Dask Series"),
    "several outputs": (ROWS, ROWS, r"y: expected targets \(n,\), got 3 columns"),
    "several columns": (ROWS, frame()[NAMES], r"y: expected targets \(n,\), got 3 columns"),
    "scalar": (ROWS, TARGETS.sum(), "y: expected a Dask series"),
    "delayed": (dask.delayed(X), TARGETS, "X: expected a Dask data frame .* got a Dask Delayed"),
    "no columns": (ROWS[:, :0], TARGETS, "X: expected at least one column"),
    "no columns in a frame": (frame()[[]], TARGETS, "X: expected at least one column"),
    "unknown columns": (ROWS[:, ROWS.sum(axis=0) > -1e9], TARGETS, "X: .*compute_chunk_sizes"),
    "masked": (da.ma.masked_less(ROWS, 0.0), TARGETS, "X: partition 0: .*masked array"),
    "far out": (1e18 * ROWS, TARGETS, r"X: row \d+ lies so far out .*counted from row 0"),
    "large": (ROWS, 1e145 * TARGETS, "y: expected targets whose square"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_trained_on_is_refused(name, threads):
    rows, targets, message = REFUSED[name]
    with pytest.raises(InvalidInputError, match=message):
        RandomFeatureGPRegressor(5, **GIVEN).fit(rows, targets)


def test_options_and_other_estimators_have_their_words(threads):
    with pytest.raises(InvalidInputError, match="noise: expected None with Dask"):
        SparseGPRegressor(5).fit(ROWS, TARGETS, noise=TARGETS)
    with pytest.raises(InvalidInputError, match="n_inducing: expected at most one per row, 60"):
        SparseGPRegressor(61).fit(ROWS, TARGETS)
    with pytest.raises(InvalidInputError, match="targets that differ"):
        SparseGPRegressor(5).fit(ROWS, 0.0 * TARGETS)
    for call in (GPRegressor().fit, RandomFeatureGPRegressor(5).partial_fit):
        with pytest.raises(InvalidInputError, match="X: expected rows in memory, got a Dask Array"):
            call(ROWS, TARGETS)
    one = RandomFeatureGPRegressor(5, **GIVEN).fit(ROWS[:1], TARGETS[:1])
    assert one.n_rows_ == 1


def test_a_model_goes_on_from_dask(tmp_path, threads):
    model = RandomFeatureGPRegressor(5, **GIVEN).fit(ROWS, TARGETS)
    model.save(tmp_path / "model.json")
    again = RandomFeatureGPRegressor.load(tmp_path / "model.json")
    for part in (model, again):
        part.partial_fit(X[60:200], Y[60:200])
        whole = RandomFeatureGPRegressor(5, **GIVEN).fit(X[:200], Y[:200])
        np.testing.assert_allclose(part.predict(X[:9]), whole.predict(X[:9]), rtol=1e-9, atol=1e-9)


def test_collections_are_recognised_by_their_type():
    assert all(map(is_dask, (ROWS, frame(), frame()["a"], TARGETS.sum())))
    assert not any(map(is_dask, (X, FRAME, FRAME["a"], None, "dask", type(ROWS))))
