"""Dask frames and arrays: lazy, by partition, and on a cluster that loses a worker."""

import os
import signal
import time

import pytest

pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed.protocol.pickle import dumps

import gpattr
from engines.conftest import N, only_missing, same, write_files
from gpattr._core import workers
from gpattr._core.memory import budget_in_force
from gpattr.engines import FrameFunction
from gpattr.engines.tasks import pack
from gpattr.exceptions import InvalidInputError, UnsupportedModelError


@pytest.fixture(autouse=True)
def one_after_the_other():
    with dask.config.set(scheduler="synchronous"):
        yield


def in_parts(folder):
    return dd.read_parquet(folder)


def test_frames_give_frames_with_their_index(explainer, table, expected):
    parts = dd.from_pandas(table, npartitions=4)
    result = explainer.map_table(parts, keep=["id"])
    assert type(result) is type(parts)
    assert result.divisions == parts.divisions
    found = result.compute()
    same(found, expected, table)
    assert found.index.equals(table.index)
    pd.testing.assert_frame_equal(found[:0], result._meta)


def test_empty_partitions_are_fine(explainer, files, table, expected):
    assert any(len(part) == 0 for part in in_parts(files).partitions)
    same(explainer.map_table(in_parts(files), keep=["id"]).compute(), expected, table)


def test_the_model_is_one_task_that_others_depend_on(explainer, table):
    graph = dict(explainer.map_table(dd.from_pandas(table, npartitions=8), keep=["id"]).dask)
    model = pack(FrameFunction(explainer, keep=["id"])).content
    sizes = sorted(len(dumps(work)) for key, work in graph.items() if "frompandas" not in str(key))
    assert len(sizes) >= 9
    assert sizes[-1] >= len(model)
    assert sizes[-2] < len(model) / 4


@pytest.mark.parametrize("chunks", [(50, 3), (40, 2), (N, 1)])
def test_arrays_give_frames_that_count_their_rows(chunks, explainer, table, expected):
    array = da.from_array(table[["a", "b", "c"]].to_numpy(), chunks=chunks)
    result = explainer.map_table(array).compute()
    same(result, expected)
    assert list(result.index) == list(range(N))


def test_arrays_with_chunks_of_unknown_sizes(explainer, table, expected):
    array = da.from_array(table[["a", "b", "c"]].to_numpy(), chunks=(50, 3))
    some = array[array[:, 0] > 0]
    assert np.isnan(some.shape[0])
    same(explainer.map_table(some).compute(), expected[(table["a"] > 0).to_numpy()])


def test_arrays_of_other_shapes_are_refused(explainer):
    for shape in [(4, 2), (4,), (4, 3, 1)]:
        with pytest.raises(InvalidInputError, match="table: expected rows with 3 columns"):
            explainer.map_table(da.zeros(shape))


def test_arrays_with_missing_values_name_the_chunk(explainer, table, expected):
    rows = table[["a", "b", "c"]].to_numpy(copy=True)
    rows[77, 1] = np.inf
    array = da.from_array(rows, chunks=(50, 3))
    with pytest.raises(InvalidInputError, match="partition 1: X: .* inf in row 27, column 'b'"):
        explainer.map_table(array).compute()
    only_missing(explainer.map_table(array, errors="missing").compute(), 77, expected)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda part: part.drop(columns="c"), r"missing \['c'\]"),
        (lambda part: part.assign(c="text"), "column 'c'"),
        (lambda part: part.assign(c=np.nan), "nan in row 0, column 'c'"),
        (lambda part: part.assign(more=1.0), r"unknown \['more'\]"),
    ],
)
def test_a_partition_unlike_the_others_is_named(change, word, explainer, table, expected):
    pieces = [table[:30], table[30:80], table[80:]]

    def load(i):
        return change(pieces[1]) if i == 1 else pieces[i]

    parts = dd.from_map(load, range(3), meta=table[:0], enforce_metadata=False)
    with pytest.raises(InvalidInputError, match=f"partition 1: X: .*{word}"):
        explainer.map_table(parts, keep=["id"]).compute()
    result = explainer.map_table(parts, errors="missing", keep=["id"]).compute()
    assert list(result["id"]) == list(table["id"])
    only_missing(result, np.arange(30, 80), expected)


def test_tables_of_other_columns_are_refused_at_the_call(explainer, table):
    with pytest.raises(InvalidInputError, match=r"unknown \['id'\]"):
        explainer.map_table(dd.from_pandas(table, npartitions=2))
    with pytest.raises(InvalidInputError, match="numbers in column 'c'"):
        explainer.map_table(dd.from_pandas(table.assign(c="text"), npartitions=2), keep=["id"])


def test_models_that_cannot_travel_are_named(frame, table):
    mean = gpattr.means.Function(lambda X: X[:, 0], lambda X: np.eye(3)[[0] * len(X)])
    kernel = gpattr.kernels.SquaredExponential()
    posterior = gpattr.posteriors.ExactPosterior(kernel, frame, frame["a"], noise=0.1, mean=mean)
    explainer = gpattr.Explainer(posterior)
    with pytest.raises(
        UnsupportedModelError, match="cannot travel to workers, because it has .*lam"
    ):
        explainer.map_table(dd.from_pandas(table, npartitions=2), keep=["id"])
    assert len(explainer.map_table(table, keep=["id"])) == N  # in this process it need not


def test_tasks_use_one_thread_and_the_budget_of_the_call(explainer, table, monkeypatch):
    seen = []
    batches = gpattr.Explainer.batches

    def spied(self, *args, **options):
        seen.append((workers.pool().helpers, budget_in_force()["working"]))
        return batches(self, *args, **options)

    monkeypatch.setattr(gpattr.Explainer, "batches", spied)
    monkeypatch.setattr(workers, "_pool", workers.Pool(1))  # whatever the machine has
    assert workers.pool().helpers == 1
    with gpattr.memory_budget(working=12345.0):
        result = explainer.map_table(dd.from_pandas(table, npartitions=2), keep=["id"])
    result.compute(scheduler="threads")
    assert seen == [(0, 12345.0)] * 2


def slow_part(path):
    """Read a file, leave a note of it, and take a while, so that a worker dies in between."""
    (path.parent.parent / f"{path.stem}-{os.getpid()}").touch()
    time.sleep(0.3)
    return pd.read_parquet(path)


def test_a_worker_that_is_killed_loses_nothing(tmp_path, explainer, table, expected):
    from distributed import Client, LocalCluster

    folder = write_files(tmp_path / "files", table)
    paths = sorted(folder.iterdir())
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 10}),
        LocalCluster(**options) as cluster,
        Client(cluster) as client,
    ):
        before = set(client.run(os.getpid).values())
        parts = dd.from_map(slow_part, paths, meta=table[:0])
        future = client.compute(explainer.map_table(parts, keep=["id"]))
        while not list(tmp_path.glob("part-*")):
            time.sleep(0.01)
        victim = int(next(tmp_path.glob("part-*")).name.split("-")[2])
        os.kill(victim, signal.SIGKILL)
        found = future.result(timeout=60)
        assert set(client.run(os.getpid).values()) != before
    same(found, expected, table)
