"""The function from frame to frame: its columns, its schema, and rows that cannot be explained."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import gpattr
from gpattr._core.memory import budget_in_force
from gpattr.engines import FrameFunction
from gpattr.exceptions import InvalidInputError, ToleranceError
from gpattr.tables import Columns, TableModel


@pytest.fixture(scope="module")
def table(frame):
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        rng.normal(size=(11, 3)), columns=["c", "a", "b"], index=[f"row {i}" for i in range(11)]
    )


def test_columns_are_those_of_the_explanation(explainer, table):
    result, ex = FrameFunction(explainer)(table), explainer(table, uncertainty="std")
    features = ["a", "b", "c"]
    assert list(result.columns) == [
        "prediction",
        "baseline_prediction",
        *[f"attribution:{name}" for name in features],
        *[f"std:{name}" for name in features],
    ]
    expected = np.column_stack([ex.predictions, ex.base_values, ex.values, ex.std])
    np.testing.assert_allclose(result.to_numpy(), expected, rtol=1e-12, atol=1e-13)
    assert list(result.index) == list(table.index)
    assert (result.dtypes == np.float64).all()


def test_means_alone_have_no_deviations(explainer, table):
    function = FrameFunction(explainer, "none")
    assert not [name for name in function(table).columns if name.startswith("std:")]
    assert list(function(table).columns) == list(function.empty().columns)


def test_the_schema_is_the_result_of_no_rows(explainer, table):
    function = FrameFunction(explainer)
    assert function(table[:0]).dtypes.equals(function.empty().dtypes)
    assert function(table).dtypes.equals(function.empty().dtypes)
    assert function(table[:0]).index.dtype == table.index.dtype


def test_the_budget_travels_and_changes_nothing(explainer, table, monkeypatch):
    whole = FrameFunction(explainer)(table)
    with gpattr.memory_budget(working=2000.0):
        function = FrameFunction(explainer)
    seen = []
    batches = gpattr.Explainer.batches

    def spied(self, *args, batch_size):
        seen.append((batch_size, budget_in_force()["working"]))
        return batches(self, *args, batch_size=batch_size)

    monkeypatch.setattr(gpattr.Explainer, "batches", spied)
    parts = pickle.loads(pickle.dumps(function))(table)
    assert seen == [(2, 2000.0)]
    np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-13)


def test_kept_columns_stand_first(explainer, table):
    wide = table.assign(id=range(11))
    result = FrameFunction(explainer, keep=["id"])(wide)
    assert list(result.columns[:2]) == ["id", "prediction"]
    pd.testing.assert_frame_equal(result.iloc[:, 1:], FrameFunction(explainer)(table))
    with pytest.raises(InvalidInputError, match="'nowhere'"):
        FrameFunction(explainer, keep=["nowhere"])(wide)
    with pytest.raises(InvalidInputError, match="'prediction' is the name"):
        FrameFunction(explainer, keep=["prediction"])


def test_several_outputs_have_their_names_before_their_columns(frame, table):
    Y = pd.DataFrame({"price": frame["a"] * 2.0, "size": frame["b"] - frame["c"]})
    model = gpattr.MultiOutputGPRegressor(n_restarts=0).fit(frame, Y)
    explainer = gpattr.Explainer(model)
    result = FrameFunction(explainer)(table)
    assert list(result.columns[:3]) == [
        "price:prediction",
        "price:baseline_prediction",
        "price:attribution:a",
    ]
    for name in ("price", "size"):
        single = FrameFunction(explainer[name])(table)
        own = result[[column for column in result.columns if column.startswith(f"{name}:")]]
        np.testing.assert_allclose(own.to_numpy(), single.to_numpy(), rtol=1e-12, atol=1e-13)


def test_probabilities_are_the_same_however_rows_are_cut(frame, table):
    model = gpattr.GPClassifier(n_restarts=0).fit(frame, np.where(frame["a"] > 0, "u", "v"))
    function = FrameFunction(gpattr.Explainer(model, output="probability", n_draws=50))
    whole = function(table)
    assert ((whole["prediction"] > 0) & (whole["prediction"] < 1)).all()
    parts = pd.concat([function(table[:4]), function(table[4:])])
    np.testing.assert_allclose(parts, whole, rtol=1e-9, atol=1e-12)


def test_quantities_are_certain(frame, explainer, table):
    quantity = gpattr.quantities.StandardDeviation()
    other = gpattr.Explainer(explainer.posterior, quantity=quantity)
    result = FrameFunction(other)(table)
    np.testing.assert_allclose(result["prediction"], other(table).predictions, rtol=1e-12)
    assert (result.filter(like="std:") == 0.0).all(axis=None)


def test_models_without_names_take_those_of_the_table(frame, table):
    X = frame.to_numpy()
    explainer = gpattr.Explainer(gpattr.GPRegressor(n_restarts=0).fit(X, X[:, 0]))
    assert FrameFunction(explainer).features == ("x0", "x1", "x2")
    function = FrameFunction(explainer, columns=("a", "b", "c"))
    assert function.features == ("a", "b", "c")
    expected = FrameFunction(explainer)(table[["a", "b", "c"]])
    np.testing.assert_array_equal(function(table).to_numpy(), expected.to_numpy())
    with pytest.raises(InvalidInputError, match="missing \\['c'\\] and unknown \\['d'\\]"):
        function(table.rename(columns={"c": "d"}))


def broken(table):
    """Frames of which some or all rows cannot be explained, and which rows can."""
    hole = table.copy()
    hole.loc["row 2", "b"], hole.loc["row 7", "a"] = np.nan, np.inf
    some = np.ones(len(table), dtype=bool)
    some[[2, 7]] = False
    none = np.zeros(len(table), dtype=bool)
    return {
        "'b'": (hole, some),
        "missing \\['c'\\]": (table.rename(columns={"c": "d"}), none),
        "'c' of type": (table.assign(c="text"), none),
        "unknown \\['more'\\]": (table.assign(more=1.0), none),
    }


@pytest.mark.parametrize(
    "word", ["'b'", "missing \\['c'\\]", "'c' of type", "unknown \\['more'\\]"]
)
def test_bad_frames_raise_or_have_missing_rows(explainer, table, word):
    bad, usable = broken(table)[word]
    with pytest.raises(InvalidInputError, match=word):
        FrameFunction(explainer)(bad)
    result = FrameFunction(explainer, errors="missing")(bad)
    assert result.shape == (11, 8)
    np.testing.assert_array_equal(result.notna().to_numpy(), np.tile(usable[:, None], 8))
    good = FrameFunction(explainer)(table)
    np.testing.assert_allclose(result[usable], good[usable], rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_unknown_categories_and_dates_are_missing_rows():
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 60), "D")
    table = pd.DataFrame({"x": rng.normal(size=60), "kind": list("uvw") * 20, "day": days})
    table["y"] = table["x"] + rng.normal(size=60)
    columns = Columns.of(table.astype(str), "y")
    X = columns.features(table.astype(str))
    model = TableModel.fit(X, table["y"], columns)
    function = FrameFunction(gpattr.Explainer(model.posterior), errors="missing")
    good = function(X)
    assert good.notna().all(axis=None)
    bad = X.copy()
    bad.loc[3, "kind"], bad.loc[5, "day"], bad.loc[8, "x"] = "z", pd.NaT, np.nan
    result = function(bad)
    assert list(result.index[result.isna().all(axis=1)]) == [3, 5, 8]
    rest = result.index.difference([3, 5, 8])
    np.testing.assert_allclose(result.loc[rest], good.loc[rest], rtol=1e-11, atol=1e-12)
    texts = X.assign(day=X["day"].dt.strftime("%Y-%m-%d"))
    texts.loc[5, "day"] = "soon"
    result = function(texts)
    assert list(result.index[result.isna().all(axis=1)]) == [5]
    with pytest.raises(InvalidInputError, match="dates in column 'day', .* got 'soon'"):
        replace(function, errors="raise")(texts)


def test_numbers_where_categories_are_texts_are_refused_at_the_call():
    X = pd.DataFrame({"x": np.arange(20.0), "kind": ["True", "False"] * 10})
    columns = Columns.of(X.assign(y=np.arange(20.0)).astype(str), "y")
    model = TableModel.fit(columns.features(X.astype(str)), X["x"], columns)
    explainer = gpattr.Explainer(model.posterior)
    assert len(explainer.map_table(X)) == 20
    with pytest.raises(InvalidInputError, match="one of .* in column 'kind', got bool"):
        explainer.map_table(X.assign(kind=X["kind"] == "True"), errors="missing")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"uncertainty": "cov"}, "explainer.batches"),
        ({"uncertainty": "all"}, "uncertainty"),
        ({"errors": "ignore"}, "errors"),
        ({"keep": "id"}, "keep"),
        ({"keep": 3}, "keep"),
        ({"keep": [1]}, "keep"),
        ({"columns": ("a",)}, "columns"),
    ],
)
def test_options_are_checked(explainer, options, word):
    with pytest.raises(InvalidInputError, match=word):
        FrameFunction(explainer, **options)


def test_only_frames_and_explainers_are_taken(explainer, table):
    with pytest.raises(InvalidInputError, match="expected a pandas DataFrame, got a ndarray"):
        FrameFunction(explainer)(table.to_numpy())
    with pytest.raises(InvalidInputError, match="expected a gpattr.Explainer, got a GPRegressor"):
        FrameFunction(gpattr.GPRegressor())


def test_rows_that_quadrature_fails_for_are_missing(table):
    # Path lengths of a quantity are bounded: one row is far too far away.
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    kernel = gpattr.kernels.SquaredExponential()
    posterior = gpattr.posteriors.ExactPosterior(kernel, X, X["a"], noise=0.1)
    explainer = gpattr.Explainer(posterior, quantity=gpattr.quantities.StandardDeviation())
    far = table.copy()
    far.loc["row 4", "a"] = 1e7
    with pytest.raises(ToleranceError):
        FrameFunction(explainer)(far)
    result = FrameFunction(explainer, errors="missing")(far)
    assert list(result.index[result.isna().all(axis=1)]) == ["row 4"]
    good = FrameFunction(explainer)(table).drop(index="row 4")
    np.testing.assert_allclose(result.drop(index="row 4"), good, rtol=1e-8, atol=1e-10)


def test_faults_of_the_baseline_are_not_those_of_rows(table):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    kernel = gpattr.kernels.SquaredExponential()
    posterior = gpattr.posteriors.ExactPosterior(kernel, X, X["a"], noise=1e-6)
    quantity = gpattr.quantities.LogExpectedImprovement(1e200)
    explainer = gpattr.Explainer(posterior, quantity=quantity)
    with pytest.raises(InvalidInputError, match="baseline: .* choose another baseline"):
        FrameFunction(explainer, errors="missing")(table)
