"""Classification on the command line: what is decided, written, said and refused."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from gpattr import Explanation, MultiOutputExplanation
from gpattr.cli import app
from gpattr.commands import explainers
from gpattr.commands.explainers import default_rows
from gpattr.commands.output import OWN
from gpattr.commands.outputs import endings
from gpattr.explainer.probability import draw_work
from gpattr.tables import Columns, TableModel


def called(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def patients():
    """Forty patients, of whom the taller and the smokers are ill."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": rng.normal(170, 10, 40).round(1), "smokes": rng.choice(["no", "yes"], 40)}
    )
    ill = (frame["size"] - 170) / 5 + 2.0 * (frame["smokes"] == "yes") + rng.normal(0, 0.7, 40) > 1
    return frame, ill.to_numpy()


def table(folder, frame, target, name="table.csv"):
    frame.assign(state=target).to_csv(folder / name, index=False)
    return folder / name


@pytest.mark.slow
def test_two_classes_of_text(patients, tmp_path):
    frame, ill = patients
    data = table(tmp_path, frame, np.where(ill, "ill", "healthy"))
    said = called("explain", data, "--target", "state", "--out", tmp_path / "out")
    n = int(ill.sum())
    assert (
        f"The target has 2 classes (healthy {40 - n}, ill {n}): a classifier is trained.\n" in said
    )
    assert "Held-out rows: " in said
    assert "% correct (always predicting healthy: " in said
    assert ": probability of ill 0." in said
    assert "; observed: " in said
    ex = Explanation.load(tmp_path / "out" / "explanation.json")
    model = TableModel.load(tmp_path / "out" / "model.json")
    assert ex.quantity == "probability of ill"
    np.testing.assert_allclose(ex.predictions, model.predict_proba(frame)[:, 1], rtol=1e-12)
    np.testing.assert_allclose(ex.values.sum(axis=1), ex.predictions - ex.base_values, atol=1e-8)
    written = pd.read_csv(tmp_path / "out" / "attributions.csv")
    assert (written["lower"] <= written["upper"]).all()
    assert {"importance.png", "beeswarm.png", "heatmap.png", "report.html"} <= {
        p.name for p in (tmp_path / "out").iterdir()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "quantity", "override"),
    [
        ((0, 1), "probability of state = 1", True),
        pytest.param(("0.0", "1.0"), "probability of state = 1", True, marks=pytest.mark.slow),
        pytest.param((False, True), "probability of state = True", False, marks=pytest.mark.slow),
        (("no", "yes"), "probability of state = yes", False),
        ((3, 7), "probability of state = 7", True),
    ],
)
def test_two_values(patients, tmp_path, labels, quantity, override):
    frame, ill = patients
    data = table(tmp_path, frame, np.where(ill, labels[1], labels[0]))
    said = called("explain", data, "--target", "state", "--out", tmp_path / "out", "--rows", "1-3")
    assert ("--task regression treats it as a number" in said) == override
    assert Explanation.load(tmp_path / "out" / "explanation.json").quantity == quantity


@pytest.mark.slow
def test_booleans_of_parquet(patients, tmp_path):
    frame, ill = patients
    frame.assign(state=ill).to_parquet(tmp_path / "table.parquet")
    out = called(
        "explain",
        tmp_path / "table.parquet",
        "--target",
        "state",
        "--out",
        tmp_path / "out",
        "--rows",
        "1-3",
        "--json",
    )
    found = json.loads(out)
    assert (found["task"], found["classes"]) == ("classification", ["False", "True"])
    assert 0.5 < found["accuracy"] <= 1.0


@pytest.mark.slow
def test_several_classes(tmp_path):
    iris = load_iris(as_frame=True)
    frame = iris.data.assign(species=iris.target_names[iris.target])[::5]
    frame.to_csv(tmp_path / "iris.csv", index=False)
    arguments = (
        "explain",
        tmp_path / "iris.csv",
        "--target",
        "species",
        "--out",
        tmp_path / "out",
        "--force",
    )
    found = json.loads(called(*arguments, "--rows", "1-3", "--json"))
    assert found["classes"] == ["setosa", "versicolor", "virginica"] == list(found["importance"])
    assert found["accuracy"] > 0.9
    called(*arguments, "--quiet")  # its own files are known, and written over
    ex = MultiOutputExplanation.load(tmp_path / "out" / "explanation.json")
    model = TableModel.load(tmp_path / "out" / "model.json")
    assert ex["setosa"].quantity == "probability of setosa against the rest"
    np.testing.assert_allclose(
        ex.predictions / ex.predictions.sum(axis=1, keepdims=True),
        model.predict_proba(frame[list(model.columns.names)]),
        rtol=1e-12,
    )
    written, importance = (
        pd.read_csv(tmp_path / "out" / f"{name}.csv") for name in ("attributions", "importance")
    )
    assert written["class"].value_counts().to_dict() == dict.fromkeys(ex.output_names, 30 * 4)
    assert list(importance.columns) == ["class", "feature", "importance", "std", "lower", "upper"]
    assert len(importance) == 12
    for name in ex.output_names:
        assert (tmp_path / "out" / f"importance_{name}.png").exists()
        assert (tmp_path / "out" / f"beeswarm_{name}.png").exists()


@pytest.mark.slow
def test_whole_numbers_are_a_quantity_unless_told_otherwise(patients, tmp_path):
    frame, _ = patients
    marks = np.clip(((frame["size"] - 150) / 12).round(), 0, 3).astype(int)
    data = table(tmp_path, frame, marks)
    arguments = (
        "explain",
        data,
        "--target",
        "state",
        "--rows",
        "1-2",
        "--force",
        "--out",
        tmp_path / "out",
    )
    assert (
        f"The target has {marks.nunique()} distinct integers, taken as a quantity; --task"
        " classification treats" in called(*arguments)
    )
    assert Explanation.load(tmp_path / "out" / "explanation.json").quantity == "predicted state"
    if marks.value_counts().min() > 1:
        found = json.loads(called(*arguments, "--task", "classification", "--json"))
        assert found["classes"] == sorted(map(str, marks.unique()))


@pytest.mark.slow
def test_two_numbers_as_a_quantity(patients, tmp_path):
    frame, ill = patients
    data = table(tmp_path, frame, ill.astype(int))
    arguments = (
        "explain",
        data,
        "--target",
        "state",
        "--rows",
        "1-2",
        "--task",
        "regression",
        "--json",
        "--out",
        tmp_path / "out",
    )
    assert json.loads(called(*arguments))["task"] == "regression"
    assert Explanation.load(tmp_path / "out" / "explanation.json").quantity == "predicted state"


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        (
            ["ill"] * 40,
            (),
            "expected at least two classes in the target 'state', got 'ill' in every row",
        ),
        (
            ["ill"] * 20 + ["well"] * 19 + ["dead"],
            (),
            "the class 'dead' of the target 'state' has a single row",
        ),
        (
            [f"p{k}" for k in range(40)],
            (),
            "all 40 values of the target 'state' are distinct; is it an identifier?",
        ),
        ([f"p{k // 1.8:.0f}" for k in range(40)], (), "has 22 classes; at most 20 are supported"),
        (
            ["ill", "well"] * 20,
            ("--task", "regression"),
            "--task regression: expected numbers in the target 'state', got 'ill'",
        ),
        (["True", "False"] * 20, ("--task", "regression"), "--task regression: expected numbers"),
        (["ill", "well"] * 20, ("--task", "ranking"), "task: expected one of"),
        (
            ["ill", "well"] * 20,
            ("--estimator", "sparse"),
            "estimator: expected 'exact' for a classifier",
        ),
        ([*range(38), "?", "ill"], (), "expected a number in column 'state', got 'ill' in row 40"),
    ],
)
def test_refused_targets_leave_the_old_output(patients, tmp_path, target, options, words):
    data = table(tmp_path, patients[0], target)
    old = tmp_path / "out"
    old.mkdir()
    (old / "report.html").write_text("old")
    said = called(
        "explain", data, "--target", "state", *options, "--out", old, "--force", "--quiet", code=1
    )
    assert words in said
    assert len(said.strip().splitlines()) == 1
    assert (old / "report.html").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
def test_a_model_of_a_file(patients, tmp_path):
    frame, ill = patients
    data = table(tmp_path, frame, np.where(ill, "ill", "healthy"))
    said = called("fit", data, "--target", "state", "--out", tmp_path / "model.json")
    assert "accuracy on these rows" in said
    frame.head(3).to_csv(tmp_path / "new.csv", index=False)
    out = called(
        "explain",
        tmp_path / "new.csv",
        "--model",
        tmp_path / "model.json",
        "--out",
        tmp_path / "out",
    )
    assert ": probability of ill 0." in out
    assert "it was" not in out
    wrong = called(
        "explain",
        data,
        "--model",
        tmp_path / "model.json",
        "--task",
        "regression",
        "--out",
        tmp_path / "x",
        code=1,
    )
    assert "--task: the given model is for classification" in wrong


@pytest.mark.slow
def test_missing_targets_are_left_out(patients, tmp_path):
    frame, ill = patients
    data = table(tmp_path, frame, np.where(ill, "ill", "healthy"))
    content = data.read_text().splitlines()
    content[1] = content[1].rsplit(",", 1)[0] + ",?"
    data.write_text("\n".join(content) + "\n")
    found = json.loads(
        called("explain", data, "--target", "state", "--out", tmp_path / "out", "--json")
    )
    assert found["rows"] == 39


def test_rows_that_take_long_to_explain_are_fewer(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = np.where(X["a"] > 0, "up", "down")
    model = TableModel.fit(X, y, Columns(tuple(X), {}, "t"), task="classification")
    asked = explainers.explainers(model, "mean", "mean", 60)
    assert len(default_rows(model, asked, X, y)) == 60
    monkeypatch.setattr(explainers, "FEWEST_ROWS", 10)
    monkeypatch.setattr(explainers, "MOST_WORK", 30.5 * draw_work(asked[""].task, X).mean())
    chosen = default_rows(model, asked, X, y)
    assert abs(len(chosen) - 30) <= 1
    assert 0 < (y[chosen] == "up").sum() < len(chosen)
    monkeypatch.setattr(explainers, "MOST_WORK", 1)
    assert abs(len(default_rows(model, asked, X, y)) - 10) <= 1
    # Rows far from the baseline take longer than those near to it, and log odds take little.
    far, near = (draw_work(asked[""].task, scale * X) for scale in (50.0, 1.0))
    assert (far > 4.0 * near).all()
    latent = explainers.explainers(model, "mean", "mean", 60, "shapley")
    assert len(default_rows(model, latent, X, y)) == 60


def test_names_of_files():
    names = endings(["a b", "a/b", "ä", "..", "A_B", "x" * 80])
    assert len(set(map(str.lower, names.values()))) == 6
    assert names["ä"] == "_ä"
    for name in names.values():
        assert OWN.fullmatch(f"beeswarm{name}.png")
        assert "/" not in name


def test_pictures_of_classes_have_names_of_their_own():
    names = endings(["!a_3", "a", "a!", "A"])
    assert len({name.lower() for name in names.values()}) == 4
