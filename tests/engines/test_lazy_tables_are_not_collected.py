"""Lazy tables given where they would have to be collected: refused in one sentence."""

import pytest

pytest.importorskip("dask.dataframe")
pytest.importorskip("duckdb")
pytest.importorskip("polars")

import dask.array as da
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

import gpattr
from gpattr.exceptions import InvalidInputError

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["a", "b"])
TARGET = FRAME["a"] * 2.0
DASK = dd.from_pandas(FRAME, npartitions=2)
LAZY = {
    "Dask DataFrame": DASK,
    "Dask Array": da.from_array(FRAME.to_numpy(), chunks=(10, 2)),
    "Dask Series": DASK["a"],
    "Polars LazyFrame": pl.from_pandas(FRAME).lazy(),
    "Arrow Dataset": ds.dataset(pa.Table.from_pandas(FRAME)),
    "Arrow RecordBatchReader": pa.Table.from_pandas(FRAME).to_reader(),
    "DuckDB relation": duckdb.from_df(FRAME),
}
NAMED = "is not collected into memory here; explainer.map_table"


@pytest.fixture(scope="module")
def model():
    return gpattr.GPRegressor(n_restarts=0).fit(FRAME, TARGET)


@pytest.fixture(autouse=True)
def never_computed(monkeypatch):
    def compute(*args, **options):
        raise AssertionError("the table was collected")

    for kind in (type(DASK), da.Array, type(DASK["a"])):
        monkeypatch.setattr(kind, "compute", compute)
        monkeypatch.setattr(kind, "__array__", compute)


@pytest.mark.parametrize("kind", LAZY)
def test_explainers_and_estimators_refuse(model, kind):
    table, explainer = LAZY[kind], gpattr.Explainer(model)
    calls = [
        lambda: explainer(table),
        lambda: explainer(FRAME, baselines=table),
        lambda: explainer.batches(table),
        lambda: explainer.importance(table),
        lambda: explainer.joint(table),
        lambda: explainer.dependence("a", background=table),
        lambda: gpattr.Explainer(model, table),
        lambda: gpattr.Baselines(table),
        lambda: model.predict(table),
        lambda: model.posterior_.predict(table),
        lambda: gpattr.explain(model, table),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match=f"an? {kind} {NAMED}"):
            call()


@pytest.mark.parametrize(
    "estimator",
    [
        gpattr.GPRegressor(),
        gpattr.GPClassifier(),
        gpattr.HilbertGPRegressor(),
        gpattr.BayesianLinearRegressor(),
        gpattr.MultiOutputGPRegressor(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_training_refuses(estimator):
    advice = "RandomFeatureGPRegressor.fit and SparseGPRegressor.fit train on Dask"
    with pytest.raises(InvalidInputError, match=f"X: .*got a Dask DataFrame; {advice}"):
        estimator.fit(DASK, TARGET)
    with pytest.raises(InvalidInputError, match=f"[yY]: .*got a Dask Series; {advice}"):
        estimator.fit(FRAME, DASK["a"])
