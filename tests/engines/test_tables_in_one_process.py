"""Tables of engines that run in this process: pandas, Polars, Arrow and DuckDB."""

import threading

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("polars")

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import gpattr
from engines.conftest import N, only_missing, same, write_files
from gpattr.engines import FrameFunction
from gpattr.exceptions import InvalidInputError

# From a pandas frame to a table of the kind, and from its result back.
KINDS = {
    "pandas": (lambda frame: frame, lambda result: result),
    "polars": (pl.from_pandas, lambda result: result.to_pandas()),
    "polars lazy": (
        lambda frame: pl.from_pandas(frame).lazy(),
        lambda result: result.collect().to_pandas(),
    ),
    "arrow": (
        lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
        lambda result: result.to_pandas(),
    ),
    "arrow batch": (
        lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
        lambda result: result.to_pandas(),
    ),
    "arrow reader": (
        lambda frame: pa.Table.from_pandas(frame, preserve_index=False).to_reader(50),
        lambda result: result.read_all().to_pandas(),
    ),
    "arrow dataset": (
        lambda frame: ds.dataset(pa.Table.from_pandas(frame, preserve_index=False)),
        lambda result: result.read_all().to_pandas(),
    ),
    "duckdb": (lambda frame: duckdb.from_df(frame), lambda result: result.df()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_for_each_row_in_a_table_of_its_kind(kind, explainer, table, expected):
    to_kind, to_pandas = KINDS[kind]
    given = to_kind(table)
    result = explainer.map_table(given, keep=["id"])
    if kind != "arrow dataset":  # files have no lazy results: a reader has
        assert type(result) is type(given)
    same(to_pandas(result), expected, table)
    features = to_kind(table.drop(columns="id"))
    means = to_pandas(explainer.map_table(features, uncertainty="none"))
    same(means, expected.loc[:, :"attribution:c"])


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_have_the_columns(kind, explainer, table, expected):
    to_kind, to_pandas = KINDS[kind]
    result = to_pandas(explainer.map_table(to_kind(table[:0]), keep=["id"]))
    assert list(result.columns) == ["id", *expected.columns]
    assert len(result) == 0
    assert (result.dtypes[expected.columns] == np.float64).all()


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_stop_or_stay_missing(kind, explainer, with_a_hole, expected):
    to_kind, to_pandas = KINDS[kind]
    error = duckdb.Error if kind == "duckdb" else InvalidInputError
    with pytest.raises(error, match="finite numbers, got nan in row .*, column 'b'"):
        to_pandas(explainer.map_table(to_kind(with_a_hole), keep=["id"]))
    result = to_pandas(explainer.map_table(to_kind(with_a_hole), errors="missing", keep=["id"]))
    only_missing(result, 77, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda table: table, r"table: expected the columns \['a', 'b', 'c'\]; unknown \['id'\]"),
        (lambda table: table[["a", "b"]], r"missing \['c'\]"),
        (lambda table: table[["a", "b"]].assign(c="text"), "numbers in column 'c'"),
        (lambda table: table[["a", "b"]].assign(c=pd.Timestamp(0)), "numbers in column 'c'"),
    ],
)
def test_tables_of_other_columns_or_types_are_refused_at_the_call(
    kind, change, word, explainer, table
):
    with pytest.raises(InvalidInputError, match=word):
        explainer.map_table(KINDS[kind][0](change(table)), errors="missing")


@pytest.mark.parametrize("errors", ["raise", "missing"])
def test_columns_that_hold_no_numbers_are_refused_at_the_call(explainer, table, errors):
    days = pd.Series(pd.date_range("2024-01-01", periods=len(table)), index=table.index)
    for values in ([[1.0]] * len(table), days.dt.date, days.dt.time):
        arrow = pa.Table.from_pandas(table[["a", "b"]].assign(c=values), preserve_index=False)
        for kind in (arrow, pl.from_arrow(arrow), duckdb.from_arrow(arrow)):
            with pytest.raises(InvalidInputError, match="numbers in column 'c', got"):
                explainer.map_table(kind, errors=errors)


def test_decimals_and_wide_integers_are_numbers(explainer, table, expected):
    arrow = pa.table(table[["a", "b", "c"]].round(2))
    exact = arrow.cast(pa.schema([(name, pa.decimal128(12, 2)) for name in arrow.column_names]))
    wanted = explainer.map_table(arrow.to_pandas(), "none")
    for kind in (exact, pl.from_arrow(exact), duckdb.from_arrow(exact)):
        for errors in ("raise", "missing"):
            result = explainer.map_table(kind, "none", errors=errors)
            result = result.df() if hasattr(result, "df") else result.to_pandas()
            np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-13)
    wide = pl.from_pandas(table[["a", "b", "c"]].round()).cast(pl.Int128)
    result = explainer.map_table(wide, "none").to_pandas()
    whole = explainer.map_table(table[["a", "b", "c"]].round().reset_index(drop=True), "none")
    np.testing.assert_allclose(result, whole, rtol=1e-12, atol=1e-13)


def test_names_of_kept_columns_that_are_ambiguous_are_refused(explainer, table):
    relation = duckdb.from_df(table.rename(columns={"id": "PREDICTION"}))
    with pytest.raises(InvalidInputError, match="the same name as 'prediction'"):
        explainer.map_table(relation, keep=["PREDICTION"])
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    doubled = arrow.append_column("id", arrow["id"])
    with pytest.raises(InvalidInputError, match="several columns 'id'"):
        explainer.map_table(doubled, keep=["id"])


def test_kept_columns_of_another_type_are_missing_in_their_file(explainer, table, tmp_path):
    numbered = table.assign(id=np.arange(len(table)))
    folder = write_files(tmp_path / "files", numbered, {5: lambda part: part.assign(id="text")})
    result = explainer.map_table(ds.dataset(folder), errors="missing", keep=["id"]).read_all()
    assert result["id"].null_count == 20
    assert result["prediction"].null_count == 0


def test_missing_numbers_are_null(explainer, with_a_hole):
    lazy = explainer.map_table(pl.from_pandas(with_a_hole).lazy(), errors="missing", keep=["id"])
    assert lazy.collect()["std:a"].null_count() == 1
    arrow = pa.Table.from_pandas(with_a_hole, preserve_index=False)
    assert explainer.map_table(arrow, errors="missing", keep=["id"])["std:a"].null_count == 1
    relation = explainer.map_table(duckdb.from_df(with_a_hole), errors="missing", keep=["id"])
    assert relation.filter('"std:a" IS NULL').fetchall()[0][0] == "row 77"


def test_whole_numbers_and_kept_types_pass_through_duckdb(explainer):
    relation = duckdb.sql(
        "SELECT i % 11 AS a, i % 7 AS b, 1.5 AS c, CASE WHEN i < 2500 THEN NULL ELSE i END AS id,"
        " DATE '2024-01-01' + i::INTEGER AS day FROM range(5000) t(i)"
    )
    result = explainer.map_table(relation, "none", keep=["id", "day"])
    assert result.types[:2] == [relation.types[3], relation.types[4]]
    rows = result.fetchall()
    assert [row[0] for row in rows] == [None] * 2500 + list(range(2500, 5000))
    assert rows[1][1].isoformat() == "2024-01-02"
    X = pd.DataFrame({"a": np.arange(5000) % 11, "b": np.arange(5000) % 7, "c": 1.5})
    values = [row[2] for row in rows]
    np.testing.assert_allclose(
        values, explainer(X, uncertainty="none").predictions, rtol=1e-11, atol=1e-13
    )
    assert result.limit(3).fetchall() == rows[:3]  # a relation can be asked again


def test_lazy_tables_compute_nothing_before_they_are_asked(
    explainer, files, expected, table, monkeypatch
):
    seen = []
    computed = FrameFunction.computed

    def spied(self, frame):
        seen.append(len(frame))
        return computed(self, frame)

    monkeypatch.setattr(FrameFunction, "computed", spied)
    lazy = pl.scan_parquet(files / "*.parquet")
    results = {
        "polars": explainer.map_table(lazy, keep=["id"]),
        "arrow": explainer.map_table(ds.dataset(files), keep=["id"]),
        "duckdb": explainer.map_table(duckdb.read_parquet(f"{files}/*.parquet"), keep=["id"]),
    }
    assert sum(seen) == 0
    same(results["polars"].collect(engine="streaming").to_pandas(), expected, table)
    same(results["arrow"].read_all().to_pandas(), expected, table)
    same(results["duckdb"].df(), expected, table)
    assert max(seen) < N  # no part is the whole


def test_files_of_a_dataset_are_named(tmp_path, explainer, table, expected):
    changes = {
        "column 'c' of type": {4: lambda part: part.assign(c="text")},
        "got nan in row 0, column 'c'": {4: lambda part: part.drop(columns="c")},
    }
    for number, (word, change) in enumerate(changes.items()):
        folder = write_files(tmp_path / str(number), table, change)
        with pytest.raises(InvalidInputError, match=f"part-4.parquet': X: .*{word}"):
            explainer.map_table(ds.dataset(folder), keep=["id"]).read_all()
        reader = explainer.map_table(ds.dataset(folder), errors="missing", keep=["id"])
        result = reader.read_all().to_pandas()
        assert list(result["id"]) == list(table["id"])
        only_missing(result, np.arange(80, 100), expected)


def test_filtered_datasets_stay_filtered(explainer, files, expected, table):
    chosen = ds.dataset(files).filter(ds.field("a") > 0)
    result = explainer.map_table(chosen, keep=["id"]).read_all().to_pandas()
    rows = (table["a"] > 0).to_numpy()
    same(result, expected[rows], table[rows])


def test_a_table_is_indexed_as_it_was(explainer, table):
    odd = table.set_index("id")
    assert list(explainer.map_table(odd).index) == list(table["id"])
    twice = odd.set_axis(["same"] * N)
    assert list(explainer.map_table(twice).index) == ["same"] * N


def test_unnamed_models_take_the_names_of_the_table(frame, table):
    X = frame.to_numpy()
    explainer = gpattr.Explainer(gpattr.GPRegressor(n_restarts=0).fit(X, X[:, 0] - X[:, 1]))
    result = explainer.map_table(table, keep=["id"])
    assert list(result.columns[3:6]) == ["attribution:c", "attribution:a", "attribution:b"]
    with pytest.raises(InvalidInputError, match="table: columns: expected 3 names, got 4"):
        explainer.map_table(table)


def test_threads_give_the_same(explainer, table, expected):
    results = [None] * 4

    def work(i):
        results[i] = explainer.map_table(pl.from_pandas(table).lazy(), keep=["id"]).collect()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        same(result.to_pandas(), expected, table)


def test_wide_and_tiny_tables():
    rng = np.random.default_rng(2)
    for d in (1, 60):
        X = pd.DataFrame(rng.normal(size=(20, d)), columns=[f"f{i}" for i in range(d)])
        kernel = gpattr.kernels.SquaredExponential(d**0.5)
        posterior = gpattr.posteriors.ExactPosterior(kernel, X, X["f0"], noise=0.1)
        explainer = gpattr.Explainer(posterior)
        result = explainer.map_table(pl.from_pandas(X[:1]).lazy()).collect()
        assert result.shape == (1, 2 + 2 * d)
        ex = explainer(X[:1], uncertainty="std")
        np.testing.assert_allclose(
            result.to_numpy()[0, 2:], [*ex.values[0], *ex.std[0]], rtol=1e-11, atol=1e-13
        )


@pytest.mark.parametrize("thing", [[[1.0]], np.zeros((2, 3)), {"a": [1.0]}, 3, None, "file.csv"])
def test_unknown_tables_are_named(explainer, thing):
    name = f"{type(thing).__module__}.{type(thing).__qualname__}"
    with pytest.raises(InvalidInputError, match=f"Dask DataFrame, .*got a {name}"):
        explainer.map_table(thing)


def test_enumerations_of_duckdb_are_texts():
    """`map` would hand on their codes, and a model of categories "0", "1", … take these for its."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"w": rng.normal(size=60), "kind": rng.choice(["2", "0", "1"], 60)})
    columns = make_column_transformer(
        ("passthrough", ["w"]), (OneHotEncoder(sparse_output=False), ["kind"])
    )
    regressor = gpattr.GPRegressor(optimize=False, noise_variance=0.1)
    model = make_pipeline(columns, regressor).fit(table, table["w"] + 3.0 * (table["kind"] == "2"))
    explainer = gpattr.Explainer(model)
    with duckdb.connect() as connection:
        connection.register("given", table)
        relation = connection.sql("SELECT w, kind::ENUM('2', '0', '1') AS kind FROM given")
        found = explainer.map_table(relation, "none").df()
    expected = explainer.map_table(table, "none")
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=0, atol=1e-12)


def test_a_text_among_numbers_is_missing_alone(explainer, table):
    mixed = table.astype({table.columns[0]: object})
    mixed.iloc[5, 0] = "n/a"
    found = explainer.map_table(mixed, "none", errors="missing", keep=["id"])
    assert np.flatnonzero(found["prediction"].isna()).tolist() == [5]
