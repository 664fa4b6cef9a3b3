"""Tables larger than memory: explained in parts, killed and gone on with, refused by name."""

import errno
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gpattr._core import files
from gpattr.cli import app
from gpattr.commands import explained_parts, manifest, stream_report, streaming
from gpattr.commands.stream_training import Training
from gpattr.estimators import RandomFeatureGPRegressor, gp_regressor
from gpattr.exceptions import InvalidInputError
from gpattr.explainer.explainer import Explainer
from gpattr.tables import TableModel, choice, read_table, stream
from gpattr.tables.stream import Stream

N, PART = 230, 20
DRIVER = """
import sys
from gpattr.commands import stream_report
from gpattr.tables import stream
stream.PART_ROWS = int(sys.argv.pop(1))
stream_report.write_summary = lambda request, manifest, asked, *rest: asked
from gpattr.cli import app
app()
"""


def made(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    frame["kind"] = rng.choice(["x", "y"], n)
    frame["y"] = np.sin(frame["a"]) + (frame["kind"] == "x") + rng.normal(0, 0.1, n)
    frame.insert(0, "name", [f"R{i}, the\n{i}th" for i in range(n)])
    return frame


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("big")
    made(N).to_csv(folder / "data.csv", index=False)
    made(60, 1).to_csv(folder / "train.csv", index=False)
    called("fit", folder / "train.csv", "--target", "y", "--out", folder / "model.json")
    return folder


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(stream, "PART_ROWS", PART)
    monkeypatch.setattr(stream_report, "REPORT_ROWS", 25)


@pytest.fixture
def parts_only(small_parts, monkeypatch):
    """No report, whose pictures take most of the time."""
    monkeypatch.setattr(stream_report, "write_summary", lambda request, of, asked, *rest: asked)


def called(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def explain(data, out, *more, code=0):
    options = ("--model", data / "model.json", "--stream", "--id", "name", "--out", out)
    return called("explain", data / "data.csv", *options, *more, code=code)


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_importance_is_that_of_all_rows(data, small_parts, tmp_path, monkeypatch):
    """To rounding for one model; mixtures are corrected by a sample, see the next test."""
    monkeypatch.setattr(gp_regressor, "MOST_INTEGRATED", 0)
    model, out = tmp_path / "model.json", tmp_path / "out"
    called("fit", data / "train.csv", "--target", "y", "--out", model)
    asked = ("--model", model, "--stream", "--dependence", "none", "--out", out)
    called("explain", data / "data.csv", *asked)
    fitted = TableModel.load(model)
    X = fitted.columns.features(read_table(data / "data.csv"), typical=fitted.typical)
    expected = Explainer(fitted.posterior).importance(X)
    listed = pd.read_csv(out / "importance.csv").set_index("feature")["importance"]
    np.testing.assert_allclose(listed[list(fitted.columns.names)], expected.values, rtol=1e-10)


@pytest.mark.slow
def test_parts_have_what_an_explainer_returns(data, small_parts, tmp_path):
    out = tmp_path / "out"
    said = explain(data, out, "--dependence", "none")
    assert "230 rows explained in 12 parts" in said
    assert "The report and its tables show 25 of 230 rows" in said
    found = pd.read_parquet(out / "parts")
    assert list(found["row"]) == list(range(1, N + 1))
    assert list(found["name"]) == list(made(N)["name"])
    model = TableModel.load(data / "model.json")
    frame = read_table(data / "data.csv")
    X = model.columns.features(frame, typical=model.typical)
    ex = Explainer(model.posterior)(X)
    names = model.columns.names
    for kind, values in (("attribution", ex.values), ("std", ex.std)):
        got = found[[f"{kind}:{name}" for name in names]].to_numpy()
        np.testing.assert_allclose(got, values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found["prediction"], ex.predictions, rtol=1e-10)
    # Importance is that of all rows, not of the sample, whose mixtures correct those of all.
    expected = Explainer(model.posterior).importance(X)
    listed = pd.read_csv(out / "importance.csv").set_index("feature")["importance"]
    np.testing.assert_allclose(listed[list(names)], expected.values, rtol=2e-3)
    sample = pd.read_csv(out / "attributions.csv")
    assert len(sample) < len(X) * len(names)
    off = sample.groupby("feature")["attribution"].apply(lambda a: a.abs().mean())
    assert np.abs(off[list(names)] / expected.values - 1.0).max() > 1e-2
    assert "parts have every row" in (out / "report.html").read_text(encoding="utf-8")
    assert "nothing is left to do" in explain(data, out, "--dependence", "none")
    before = contents(out)
    (out / "report.html").unlink()
    assert "is gone, and is made again" in explain(data, out, "--dependence", "none")
    assert contents(out) == before
    told = json.loads(explain(data, out, "--dependence", "none", "--json"))
    np.testing.assert_allclose(
        [told["mean_absolute_attribution"][name] for name in names],
        np.abs(ex.values).mean(axis=0),
        rtol=1e-10,
    )


@pytest.mark.slow
def test_going_on_gives_the_same_folder(data, small_parts, tmp_path, monkeypatch):
    """Stopped after every step, with the report and all: every file is the same."""
    explain(data, tmp_path / "whole")
    add, stops = manifest.Manifest.add, []

    def stopped(self, content, facts):
        if facts["part"] in (0, 3, 7) and facts["part"] not in stops:
            stops.append(facts["part"])
            (self.folder / "parts" / "part-00099.parquet.1a2b3c4d.tmp").write_text("half")
            raise KeyboardInterrupt
        add(self, content, facts)

    monkeypatch.setattr(manifest.Manifest, "add", stopped)
    for after in (0, 3, 7):
        explain(data, tmp_path / "again", code=130)
        assert stops[-1] == after
    said = explain(data, tmp_path / "again")
    assert "Going on after 7 of 12 parts." in said
    whole, again = contents(tmp_path / "whole"), contents(tmp_path / "again")
    assert whole.keys() == again.keys()
    assert [name for name in whole if whole[name] != again[name]] == []


@pytest.mark.slow
def test_killed_at_random_moments(data, parts_only, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "PART_ROWS", 5)
    explain(data, tmp_path / "whole")
    out, rng, kills = tmp_path / "out", random.Random(1), 0
    command = [sys.executable, "-c", DRIVER, "5", "explain", data / "data.csv", "--stream"]
    command += ["--model", data / "model.json", "--id", "name", "--out", out]
    while True:
        before = len(list(out.glob("parts/*.parquet")))
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        if kills == 2:
            assert process.wait() == 0
            break
        while process.poll() is None and len(list(out.glob("parts/*.parquet"))) <= before:
            time.sleep(0.001)  # libraries are being imported
        time.sleep(rng.uniform(0.0, 0.1))
        assert process.poll() is None, "it was too quick to be killed"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    assert contents(out) == contents(tmp_path / "whole")


def test_damaged_and_missing_parts_are_made_again(data, parts_only, tmp_path):
    out = tmp_path / "out"
    explain(data, out)
    expected = contents(out)
    (out / "parts" / "part-00001.parquet").write_bytes(b"PAR1 half")
    (out / "parts" / "part-00003.parquet").unlink()
    assert "2 parts are damaged or gone" in explain(data, out)
    assert contents(out) == expected
    text = (out / "manifest.json").read_text()
    altered = re.sub(r'"missing": ?0', '"missing":1', text, count=1)
    assert altered != text
    (out / "manifest.json").write_text(altered)
    assert "was altered" in explain(data, out, code=1)


def test_a_full_disk(data, parts_only, tmp_path, monkeypatch):
    out, written = tmp_path / "out", []

    def full(handle):
        if len(written) >= 6:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(handle)

    monkeypatch.setattr(files.os, "fsync", full)
    said = explain(data, out, code=1)
    assert "No space left on device" in said
    assert "part-" not in " ".join(str(path) for path in out.rglob("*.tmp"))
    done = json.loads((out / "manifest.json").read_text())["content"]["parts"]
    for part in done:  # what is listed is whole
        content = (out / "parts" / part["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == part["sha256"]
    monkeypatch.undo()
    monkeypatch.setattr(stream, "PART_ROWS", PART)
    monkeypatch.setattr(stream_report, "write_summary", lambda request, of, asked, *rest: asked)
    assert "Going on after" in explain(data, out)
    explain(data, tmp_path / "whole")
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.slow
def test_what_differs_is_named(data, parts_only, tmp_path):
    out = tmp_path / "out"
    explain(data, out)
    said = explain(data, out, "--baseline", "median", "--errors", "missing", code=1)
    assert "differs in --baseline (mean before, median now); --errors (raise before" in said
    other = tmp_path / "other"
    other.mkdir()
    frame = made(N)
    frame.loc[3, "a"] = 7.0
    frame.to_csv(other / "data.csv", index=False)
    (other / "model.json").write_bytes((data / "model.json").read_bytes())
    assert "differs in the data (data.csv had" in explain(other, out, code=1)
    called("fit", data / "data.csv", "--target", "y", "--out", other / "model.json", "--force")
    assert "--model (another model)" in explain(other, out, code=1)
    before = contents(out)
    assert explain(other, out, "--force")
    assert contents(out)["parts/part-00000.parquet"] != before["parts/part-00000.parquet"]
    (out / "mine.txt").write_text("mine")
    assert "contains files not written by gpattr" in explain(data, out, "--force", code=1)


def test_a_folder_with_a_file_of_other_columns(data, parts_only, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    frame = made(60)
    for i in range(3):
        part = frame.iloc[20 * i : 20 * i + 20]
        (part.drop(columns="b") if i == 1 else part).to_parquet(folder / f"f{i}.parquet")
    options = ("--model", data / "model.json", "--out", tmp_path / "out")
    said = called("explain", folder, *options, code=1)
    assert "is a folder: its files are explained in parts." in said
    assert "f1.parquet: expected the columns ['a', 'b', 'kind']; missing ['b']" in said
    assert not (tmp_path / "out").exists()
    said = called("explain", folder, *options, "--errors", "missing")
    assert "Nothing of " in said
    assert "40 rows explained in 3 parts" in said
    found = pd.read_parquet(tmp_path / "out" / "parts")
    assert list(found["file"].unique()) == ["f0.parquet", "f1.parquet", "f2.parquet"]
    gone = found["prediction"].isna()
    assert list(found["file"][gone].unique()) == ["f1.parquet"]
    assert list(found["row"]) == list(range(1, 21)) * 3


@pytest.mark.slow
def test_rows_that_cannot_be_explained(data, small_parts, tmp_path):
    frame = made(N)
    frame["a"] = frame["a"].astype(object)
    frame.loc[29, "a"] = "many"
    frame.loc[30, "kind"] = "z"
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    options = ("--model", data / "model.json", "--stream", "--dependence", "none", "--out")
    said = called("explain", path, *options, tmp_path / "out", code=1)
    assert "part 1 (rows 21 to 40): expected a number in column 'a', got 'many' in row 30" in said
    said = called("explain", path, *options, tmp_path / "out", "--errors", "missing", "--force")
    assert "2 rows could not be explained, the first because:" in said
    assert "228 rows explained" in said
    found = pd.read_parquet(tmp_path / "out" / "parts").set_index("row")
    assert list(found.index[found["attribution:a"].isna()]) == [30, 31]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kept", "exact", "words"),
    [
        (10**6, 500, "230 rows: an exact Gaussian process"),
        (10**6, 100, "a sparse Gaussian process"),
        (200, 100, "a Gaussian process of random features"),
    ],
)
def test_the_model_is_trained_first(data, parts_only, tmp_path, monkeypatch, kept, exact, words):
    monkeypatch.setattr(choice, "MOST_KEPT", kept)
    monkeypatch.setattr(choice, "EXACT_ROWS", exact)
    path = tmp_path / "model.json"
    said = called("fit", data / "data.csv", "--target", "y", "--stream", "--out", path)
    assert words in said
    model = TableModel.load(path)
    frame = read_table(data / "data.csv")
    X, y = model.columns.features(frame), model.columns.targets(frame)
    assert model.score(X, y) > 0.9
    assert model.columns.left_out == ("name",)
    assert model.typical["kind"] in ("x", "y")
    if exact > N:
        command = ("explain", data / "data.csv", "--target", "y", "--stream", "--out")
        called(*command, tmp_path / "out")
        assert (tmp_path / "out" / "model.json").read_bytes() == path.read_bytes()


def test_random_features_learn_from_every_row(data, small_parts):
    """The sums of the parts are those of the rows at once, given the same kernel."""
    training = Training(Stream.of(data / "data.csv"), "y")
    model = training.train("random-features", None, verbose=False, track=lambda parts, n: parts)
    columns = model.columns
    frame = read_table(data / "data.csv")
    X, y = columns.features(frame), columns.targets(frame)
    sample = TableModel.fit(X, y, columns, estimator="random-features")
    whole = RandomFeatureGPRegressor(
        500, kernel=sample.regressor.kernel_, optimize="amplitude", random_state=0
    ).fit(columns.encoder.encode("X", X), y)
    rows = columns.encoder.encode("X", X)
    np.testing.assert_allclose(
        model.regressor.posterior_.predict(rows), whole.predict(rows), rtol=1e-8, atol=1e-10
    )


def test_classes(data, parts_only, tmp_path):
    frame = made(40)
    frame["species"] = np.where(frame["a"] < -0.5, "low", np.where(frame["a"] < 0.5, "mid", "high"))
    path = tmp_path / "data.csv"
    frame.drop(columns=["y", "name"]).to_csv(path, index=False)
    out = tmp_path / "out"
    called("explain", path, "--target", "species", "--stream", "--out", out)
    found = pd.read_parquet(out / "parts")
    assert {f"{label}:prediction" for label in ("low", "mid", "high")} <= set(found.columns)
    assert found["low:prediction"].between(0, 1).all()


def test_a_cluster_gives_the_same_bytes(data, parts_only, tmp_path):
    distributed = pytest.importorskip("distributed")
    explain(data, tmp_path / "here")
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False}
    with distributed.LocalCluster(**options, dashboard_address=":0") as local:
        explain(data, tmp_path / "there", "--dask", local.scheduler_address)
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_a_cluster_that_is_not_there(data, parts_only, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(explained_parts, "TIMEOUT", "1s")
    said = explain(data, tmp_path / "out", "--dask", "tcp://127.0.0.1:9", code=1)
    assert "--dask: expected the address of a Dask scheduler that can be reached" in said
    assert not (tmp_path / "out").exists()
    assert "cannot be combined with --no-stream" in called(
        "explain", data / "data.csv", "--no-stream", "--dask", "x", "--target", "y", code=1
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rows", "1-3"), "--rows: a table in parts is explained whole"),
        (("--sheet", "x"), "--sheet: only Excel"),
        (("--errors", "skip"), "--errors: expected one of 'raise', 'missing', got 'skip'"),
        (("--baseline", "row:999"), "--baseline: expected rows from 1 to 230, got 999"),
        (("--id", "nothing"), "expected a column 'nothing'"),
        (("--id", "name"), "--id: 'name' was given twice"),
        (("--full",), "--full: the parts of a table have every row in full"),
        (("--drop", "a"), "'a'"),
        (("--task", "classification"), "--task: the given model is for regression"),
    ],
)
def test_options_that_cannot_be(data, parts_only, tmp_path, options, message):
    assert message in explain(data, tmp_path / "out", *options, code=1)
    assert not (tmp_path / "out").exists()


def test_a_row_as_baseline(data, parts_only, tmp_path):
    explain(data, tmp_path / "out", "--baseline", "row:45")
    found = pd.read_parquet(tmp_path / "out" / "parts").set_index("row")
    attributions = found.filter(like="attribution:").to_numpy()
    np.testing.assert_allclose(attributions[44], 0.0, atol=1e-12)
    assert np.abs(attributions[43]).max() > 0.01


def test_when_a_table_is_read_in_parts(data, monkeypatch):
    path = data / "data.csv"
    assert streaming.is_streamed(path, None) == (False, "")
    monkeypatch.setattr(streaming, "available_memory", lambda: 2.0 * 10 * path.stat().st_size)
    chosen, why = streaming.is_streamed(path, None)
    assert chosen
    assert "it is explained in parts (--no-stream reads it at once)" in why
    assert streaming.is_streamed(path, False) == (False, "")
    # What only parts can do asks for them.
    assert streaming.is_streamed(path, None, identifiers=["order"]) == (True, "")
    for options in ({"errors": "missing"}, {"identifiers": ["order"]}, {"dask": "x"}):
        with pytest.raises(InvalidInputError, match="cannot be combined with --no-stream"):
            streaming.is_streamed(path, False, **options)
    with pytest.raises(InvalidInputError, match="--errors"):
        streaming.is_streamed(path, False, errors="foo")
    assert streaming.is_streamed(data, None)[0]
    assert streaming.is_streamed(Path("nothing.csv"), None) == (False, "")


def test_two_runs_at_once(data, parts_only, tmp_path):
    from gpattr.commands.output import locked

    (tmp_path / "out").mkdir()
    with locked(tmp_path / "out"):
        assert "another run is writing to it" in explain(data, tmp_path / "out", code=1)


def test_without_pyarrow(data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert 'pip install "gpattr[parquet]"' in explain(data, tmp_path / "out", code=1)
