"""A model, a table that it explains, and the result of explaining it at once."""

import os

import numpy as np
import pandas as pd
import pytest

import gpattr

N = 120

# Ray and Spark start processes of their own and fork, which JAX, imported by other tests, forbids.
ALONE = os.environ.get("GPATTR_TEST_CLUSTERS")
REASON = "Ray and Spark are tested in a process of their own, with GPATTR_TEST_CLUSTERS=1"


@pytest.fixture(scope="session")
def frame():
    rng = np.random.default_rng(3)
    return pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])


@pytest.fixture(scope="session")
def explainer(frame):
    y = frame["a"] ** 2 + np.sin(frame["b"]) + np.random.default_rng(1).normal(size=40)
    return gpattr.Explainer(gpattr.GPRegressor(n_restarts=0).fit(frame, y))


@pytest.fixture(scope="session")
def table():
    """Columns in another order than the model's, and one that is to be kept."""
    rng = np.random.default_rng(5)
    rows = pd.DataFrame(rng.normal(size=(N, 3)), columns=["c", "a", "b"])
    return rows.assign(id=[f"row {i}" for i in range(N)])


@pytest.fixture(scope="session")
def expected(explainer, table):
    """The result, from the explanation itself."""
    ex = explainer(table.drop(columns="id"), uncertainty="std")
    names = ["prediction", "baseline_prediction"]
    names += [f"attribution:{name}" for name in "abc"] + [f"std:{name}" for name in "abc"]
    numbers = np.column_stack([ex.predictions, ex.base_values, ex.values, ex.std])
    return pd.DataFrame(numbers, columns=names)


@pytest.fixture(scope="session")
def with_a_hole(table):
    """The table with a missing value in row 77, column b."""
    hole = table.copy()
    hole.loc[77, "b"] = np.nan
    return hole


@pytest.fixture
def files(tmp_path, table):
    """The table as six Parquet files of different lengths, the third without rows."""
    return write_files(tmp_path / "files", table)


def write_files(folder, table, change=None):
    """Write a table as Parquet files; ``change`` {number: function} changes some of them."""
    folder.mkdir()
    ends = [0, 30, 45, 45, 80, 100, N]
    for i, (start, stop) in enumerate(zip(ends, ends[1:])):
        part = (change or {}).get(i, lambda part: part)(table[start:stop])
        part.to_parquet(folder / f"part-{i}.parquet", index=False)
    return folder


def same(result, expected, keep=None):
    """Assert that a pandas frame has the expected columns, in order, and numbers."""
    names = list(expected.columns) if keep is None else ["id", *expected.columns]
    assert list(result.columns) == names
    if keep is not None:
        assert list(result["id"]) == list(keep["id"])
    numbers = result[expected.columns].to_numpy(dtype=float)
    np.testing.assert_allclose(numbers, expected.to_numpy(), rtol=1e-11, atol=1e-13)


def only_missing(result, row, expected):
    """Assert that one row is missing in all computed columns, and that the others are right."""
    numbers = result[expected.columns].to_numpy(dtype=float)
    assert np.isnan(numbers[row]).all()
    np.testing.assert_allclose(
        np.delete(numbers, row, 0), np.delete(expected.to_numpy(), row, 0), rtol=1e-11, atol=1e-13
    )
