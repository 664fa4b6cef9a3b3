"""Few rows and many: which estimator, what is written of them, and what is said."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gpattr import Explainer, Explanation
from gpattr.cli import app
from gpattr.commands import outputs
from gpattr.commands.notes import of_training_rows
from gpattr.explainer import importance
from gpattr.tables import TableModel, choice

N = 700


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 3)).round(3), columns=["a", "b", "c"])
    frame["kind"] = rng.choice(["x", "y"], N)
    frame["price"] = (
        np.sin(frame["a"]) + 0.5 * frame["b"] + (frame["kind"] == "x") + rng.normal(0, 0.2, N)
    ).round(3)
    path = tmp_path_factory.mktemp("many") / "table.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def small_limits(monkeypatch):
    """What is many is less here."""
    for name, value in {
        "WHOLE": 1000,
        "SHOWN_ROWS": 100,
        "FEWEST_SHOWN": 60,
        "EXTREME_ROWS": 10,
    }.items():
        monkeypatch.setattr(outputs, name, value)
    monkeypatch.setattr(choice, "EXACT_ROWS", 300)
    for name, value in {"TOGETHER": 60, "ROWS": 60, "FEWEST": 10}.items():
        monkeypatch.setattr(importance, name, value)


def called(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.mark.slow
def test_many_rows(table, small_limits, tmp_path):
    out = tmp_path / "out"
    said = called("explain", table, "--target", "price", "--out", out)
    assert (
        f"{N} rows: a sparse Gaussian process with up to 264 inducing inputs; --estimator exact"
        " would take" in said
    )
    assert f"Held-out rows ({N}): R² 0.9" in said
    assert " of targets inside their 95% intervals." in said
    page = (out / "report.html").read_text(encoding="utf-8")
    for sentence in (
        (
            "The report and explanation.json have 100 of 700 rows: the 10 with the highest and the"
            " 10 with the lowest predictions, and a random sample of the others."
        ),
        (
            "attributions.csv.gz has every row, to 6 digits and without intervals; --full"
            " writes everything."
        ),
    ):
        assert sentence in page
        assert sentence in said
    assert not (out / "attributions.csv").exists()
    assert not (out / "attributions.parquet").exists()

    fitted = TableModel.load(out / "model.json")
    X = fitted.columns.features(pd.read_csv(table).set_axis(range(1, N + 1)))
    whole = Explainer(fitted.posterior)(X)
    kept = Explanation.load(out / "explanation.json")
    assert len(kept) == 100
    places = np.array(kept.row_names) - 1
    np.testing.assert_allclose(kept.values, whole.values[places], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(kept.cov, whole.cov[places], rtol=1e-5, atol=1e-9)
    ends = np.argsort(whole.predictions)
    assert set(ends[:10]) | set(ends[-10:]) <= set(places)

    with gzip.open(out / "attributions.csv.gz", "rt") as file:
        written = pd.read_csv(file)
    assert list(written) == ["row", "feature", "data", "label", "attribution", "std"]
    assert len(written) == 4 * N
    np.testing.assert_allclose(written["attribution"], whole.values.ravel(), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(written["std"], whole.std.ravel(), rtol=1e-5, atol=1e-6)
    digits = (
        written["attribution"].astype(str).str.replace(r"e.*|[-.]", "", regex=True).str.lstrip("0")
    )
    assert digits.str.len().max() <= 6

    # The importance is that of all rows: what is expected of |attribution|, whose intervals hold
    # the mean over all of them.
    table_of = pd.read_csv(out / "importance.csv", index_col="feature")
    draws = np.random.default_rng(1).normal(size=(400, *whole.shape)) * whole.std + whole.values
    expected = pd.Series(np.abs(draws).mean(axis=(0, 1)), index=list(whole.feature_names))
    np.testing.assert_allclose(table_of["importance"][expected.index], expected, rtol=0.01)
    plain = pd.Series(np.abs(whole.values).mean(axis=0), index=list(whole.feature_names))
    for name in ("a", "b", "kind"):  # c has no effect: its importance is uncertainty alone
        assert table_of["lower"][name] <= plain[name] <= table_of["upper"][name]

    said = json.loads(
        called("explain", table, "--target", "price", "--out", out, "--force", "--full", "--json")
    )
    assert len(pd.read_csv(out / "attributions.csv")) == 4 * N
    assert len(Explanation.load(out / "explanation.json")) == N
    assert not (out / "attributions.csv.gz").exists()
    assert not any("random sample" in note for note in said["notes"])


@pytest.mark.parametrize(
    ("n", "d", "shown"), [(90, 11, 90), (400, 4, 100), (400, 12, 83), (400, 40, 60), (50, 40, 50)]
)
def test_fewer_rows_are_shown_of_many_features(small_limits, n, d, shown):
    class Sized:
        values, predictions, shape = np.zeros((n, d)), np.arange(n), (n, d)
        __len__ = lambda self: n  # noqa: E731

    chosen = outputs.shown_rows(Sized(), full=False)
    assert len(np.unique(chosen)) == shown
    assert {0, 9, n - 10, n - 1} <= set(chosen)
    np.testing.assert_array_equal(outputs.shown_rows(Sized(), full=True), np.arange(n))


def test_exact_models_of_too_many_rows_are_refused(table, monkeypatch, tmp_path):
    monkeypatch.setattr("gpattr.tables.model.MOST_ROWS", 500)
    said = called(
        "fit",
        table,
        "--target",
        "price",
        "--estimator",
        "exact",
        "--out",
        tmp_path / "model.json",
        code=1,
    )
    assert "700 are too many for an exact model (at most 500); use --estimator auto" in said
    assert "quicker" not in said


@pytest.mark.slow
def test_few_rows_are_warned_of(tmp_path):
    few = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, 5.5], "price": [1.0, 2.1, 2.9, 4.2, 5.0]})
    few.to_csv(tmp_path / "few.csv", index=False)
    said = called("explain", tmp_path / "few.csv", "--target", "price", "--out", tmp_path / "out")
    assert "Only 5 rows: too few to tell effects from chance" in said
    assert "Held-out" not in said  # of so few nothing can be learned without some
    assert "Only 5 rows" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_warnings_of_training_rows():
    rng = np.random.default_rng(0)
    X, wide = pd.DataFrame(rng.normal(size=(20, 3))), pd.DataFrame(rng.normal(size=(30, 40)))
    assert of_training_rows(X, rng.normal(size=20)) == []
    assert of_training_rows(wide, rng.normal(size=30))[0].startswith(
        "Only 30 rows for 40 features: "
    )
    thrice, y = pd.concat([X] * 3, ignore_index=True), np.tile(rng.normal(size=20), 3)
    assert of_training_rows(thrice, y)[0].startswith("40 of 60 rows repeat others, with their ")
    assert of_training_rows(thrice, rng.normal(size=60)) == []  # measured three times


def test_rounding_keeps_six_digits():
    values = np.array([0.0, 1.23456789, -123456.789, 1e-300, 1.23456789e-5, 5e-324, -1e300])
    rounded = outputs.rounded(values)
    np.testing.assert_allclose(rounded, values, rtol=5e-6)
    np.testing.assert_array_equal(rounded[:3], [0.0, 1.23457, -123457.0])
