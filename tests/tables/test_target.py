"""Targets of tables: numbers or classes; models of classes, their files, and how well they are
judged.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from gpattr import GPClassifier
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import SquaredExponential
from gpattr.tables import Columns, TableModel, held_out
from gpattr.tables import model as model_file
from gpattr.tables.held_out import HeldOutClasses, folds
from gpattr.tables.target import Target, class_words, known_labels

RNG = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(
    {"a": RNG.normal(size=N), "b": RNG.normal(size=N), "kind": RNG.choice(["x", "y"], N)}
)
SCORE = 2.0 * FRAME["a"] - FRAME["b"] + (FRAME["kind"] == "x") + RNG.normal(0, 0.5, N)
THREE = np.array(["low", "mid", "top"])[np.digitize(SCORE, [-1.0, 1.0])]


def asked(values, task=None):
    frame = FRAME.assign(t=pd.Series(values, dtype=object))
    return Target.of(frame, Columns(("a", "b"), {}, "t"), task)


@pytest.mark.parametrize(
    ("values", "task", "labels"),
    [
        (["u", "v"] * 30, "classification", ("u", "v")),
        ([0, 1] * 30, "classification", ("0", "1")),
        (["0", "1", "1,0"] * 20, "classification", ("0", "1")),
        ([True, False] * 30, "classification", ("False", "True")),
        (["TRUE", "false", ""] * 20, "classification", ("False", "True")),
        (["1,5", "2", "7"] * 20, "regression", ()),
        ([3, 4, 5] * 20, "regression", ()),
        ([0.5, 1.5] * 30, "classification", ("0.5", "1.5")),
        (["a", "1"] * 30, "classification", ("1", "a")),
    ],
)
def test_the_task_is_decided_from_the_target(values, task, labels):
    found = asked(values)
    assert (found.task, found.labels) == (task, labels)


def test_overrides():
    assert asked([0, 1] * 30, "regression") == Target("regression", (), "")
    assert asked([3, 4, 5] * 20, "classification").labels == ("3", "4", "5")
    assert "--task classification" in asked([3, 4, 5] * 20).sentence
    assert not asked(np.linspace(0, 1, N)).sentence
    with pytest.raises(InvalidInputError, match="expected at least 5 rows to learn from, got 2"):
        asked(["u", "v"] + [""] * 58)
    with pytest.raises(InvalidInputError, match="is it an identifier"):
        asked(np.arange(N), "classification")


def test_labels_and_words():
    frame = FRAME.assign(t=["1.0", " 0", "NA"] * 20)
    assert known_labels(frame, Columns(("a", "b"), {}, "t"))[:3].tolist() == ["1", "0", ""]
    assert known_labels(FRAME, Columns(("a", "b"), {}, "t")) is None
    assert [class_words("churn", label) for label in ("yes", "1", "malignant", "B")] == [
        "churn = yes",
        "churn = 1",
        "malignant",
        "churn = B",
    ]


@pytest.mark.parametrize("labels", [THREE, np.where(SCORE > 0, "ill", "well")])
def test_models_of_classes_and_their_files(tmp_path, labels):
    columns = Columns.of(FRAME.assign(t=labels), "t")
    model = TableModel.fit(FRAME, labels, columns, task="classification")
    assert model.task == "classification"
    assert model.classes == tuple(np.unique(labels))
    assert model.class_counts == {
        label: int((labels == label).sum()) for label in np.unique(labels)
    }
    assert model.score(FRAME, labels) == np.mean(model.predict(FRAME) == labels) > 0.8
    assert list(model.posteriors) == ([*model.classes] if len(model.classes) > 2 else ["well"])
    model.save(tmp_path / "model.json")
    again = TableModel.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(FRAME), model.predict(FRAME))
    np.testing.assert_allclose(again.predict_proba(FRAME), model.predict_proba(FRAME), rtol=1e-9)
    assert (again.classes, again.held_out, again.columns) == (
        model.classes,
        model.held_out,
        model.columns,
    )


def test_wrong_labels_are_refused():
    columns = Columns.of(FRAME.assign(t=THREE), "t")
    for wrong in (np.arange(N), THREE[:5], None, [""] * N):
        with pytest.raises(InvalidInputError, match="y: expected 60 labels as text"):
            TableModel.fit(FRAME, wrong, columns, task="classification")
    with pytest.raises(InvalidInputError, match="task: expected one of"):
        TableModel.fit(FRAME, THREE, columns, task="ranking")


def test_held_out_rows_are_classified_without_them():
    X, y = FRAME[["a", "b"]], np.where(SCORE > 0, "ill", "well")
    model = GPClassifier(SquaredExponential([1.0, 2.0], 4.0), optimize=False).fit(X, y)
    found = HeldOutClasses.of_folds(model, X, y, 600)
    codes, order = np.searchsorted(model.classes_, y), np.random.default_rng(0).permutation(N)
    order = order[np.argsort(codes[order], kind="stable")]
    probabilities, (regression, forest) = np.empty((N, 2)), np.empty((2, N), dtype=int)
    for k in range(5):
        part = order[k::5]
        rest = np.setdiff1d(np.arange(N), part)
        probabilities[part] = (
            GPClassifier(model.kernel, optimize=False)
            .fit(X.iloc[rest], y[rest])
            .predict_proba(X.iloc[part])
        )
        scaler = StandardScaler().fit(X.iloc[rest])
        peer = LogisticRegression().fit(scaler.transform(X.iloc[rest]), codes[rest])
        regression[part] = peer.predict(scaler.transform(X.iloc[part]))
        trees = RandomForestClassifier(random_state=0).fit(X.iloc[rest].to_numpy(), codes[rest])
        forest[part] = trees.predict(X.iloc[part].to_numpy())
    assert found.accuracy == np.mean(model.classes_[probabilities.argmax(axis=1)] == y)
    assert found.log_loss == pytest.approx(
        -np.log(probabilities[np.arange(N), codes]).mean(), rel=1e-9
    )
    assert found.most_frequent == max(np.mean(y == "ill"), np.mean(y == "well"))
    assert sum(rows for *_, rows in found.calibration) == found.rows == N
    assert found.peers == (
        ("logistic regression", np.mean(regression == codes)),
        ("a random forest", np.mean(forest == codes)),
    )
    assert found.best_peer == max(found.peers, key=lambda each: each[1])
    assert HeldOutClasses.of_content(found.to_content()) == found
    old = {name: value for name, value in found.to_content().items() if name != "peers"}
    assert HeldOutClasses.of_content(old) == replace(found, peers=())
    assert replace(found, peers=()).best_peer is None


@pytest.mark.slow
def test_hyperparameters_are_learned_without_the_held_out_rows():
    """Those of a fold are where training on the other rows ends, wherever its search starts."""
    X, y = FRAME[["a", "b"]], THREE
    whole, rest = GPClassifier().fit(X, y), np.arange(N) % 5 > 0
    again = whole.relearned(X[rest], y[rest])
    alone = GPClassifier().fit(X[rest], y[rest])
    shifted = GPClassifier().fit(X, y[::-1]).relearned(X[rest], y[rest])
    for one, other, third in zip(again._integrated, alone._integrated, shifted._integrated):
        assert len(one.components) == 1
        found = one.components[0].kernel
        modes = [part.kernel for part in other.components if part.family == type(found).__name__]
        np.testing.assert_allclose(found.lengthscale, modes[0].lengthscale, rtol=0.05)
        np.testing.assert_allclose(found.variance, modes[0].variance, rtol=0.05)
        if isinstance(third.components[0].kernel, type(found)):
            np.testing.assert_allclose(
                found.lengthscale, third.components[0].kernel.lengthscale, rtol=0.05
            )
    np.testing.assert_allclose(
        again.predict_proba(X[~rest]), alone.predict_proba(X[~rest]), atol=0.1
    )
    assert len(whole.posterior_.outputs[THREE[0]].training_inputs) == N  # left as it was
    codes, expected = np.searchsorted(whole.classes_, y), np.empty((N, 3))
    for part in folds(codes):
        rest = np.setdiff1d(np.arange(N), part)
        expected[part] = whole.relearned(X.iloc[rest], y[rest]).predict_proba(X.iloc[part])
    judged = HeldOutClasses.of_folds(whole, X, y, 600)
    assert judged.log_loss == pytest.approx(HeldOutClasses.of(codes, expected).log_loss, rel=1e-9)


def test_labels_without_a_cause_are_not_predicted():
    """A classifier that has seen the rows fits noise, and new ones not at all."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(40, 5)), columns=list("abcde"))
    y = rng.permutation(np.repeat(["no", "yes"], 20))
    judged = TableModel.fit(X, y, Columns(tuple(X), {}, "t"), task="classification").held_out
    assert judged.accuracy < 0.65
    assert judged.log_loss > 0.6


def test_folds_keep_every_class():
    X = FRAME[["a", "b"]]
    rare = np.where(np.arange(N) < 2, "rare", THREE)
    codes = np.unique(rare, return_inverse=True)[1]
    parts = folds(codes)
    assert sorted(np.concatenate(parts)) == list(range(N))
    assert all(len(set(np.delete(codes, part))) == 4 for part in parts)
    model = GPClassifier(SquaredExponential(1.0, 4.0), optimize=False).fit(X, rare)
    assert HeldOutClasses.of_folds(model, X, rare, 600).rows == N
    single = np.where(np.arange(N) < 1, "rare", THREE)
    model = GPClassifier(SquaredExponential(1.0, 4.0), optimize=False).fit(X, single)
    assert HeldOutClasses.of_folds(model, X, single, 600) is None
    assert HeldOutClasses.of_folds(model, X[:9], single[:9], 600) is None


def test_of_many_rows_one_fifth_is_held_out(monkeypatch):
    monkeypatch.setattr(held_out, "MOST", 50)
    X, y = FRAME[["a", "b"]], np.where(SCORE > 0, "ill", "well")
    model = GPClassifier(SquaredExponential(1.0, 4.0), optimize=False).fit(X, y)
    assert HeldOutClasses.of_folds(model, X, y, 30).rows == N / 5


def test_many_rows_train_on_a_sample(monkeypatch):
    monkeypatch.setattr(model_file, "MOST_CLASSIFIED", 40)
    monkeypatch.setattr(model_file, "FEWEST_UNSEEN", 10)
    columns = Columns.of(FRAME.assign(t=THREE), "t")
    model = TableModel.fit(FRAME, THREE, columns, task="classification")
    trained = sum(model.class_counts.values())
    assert 36 <= trained <= 42
    assert min(model.class_counts.values()) >= 2
    assert model.held_out.rows == N - trained
    # Few rows left over would be a poor judge: folds of the others are.
    monkeypatch.setattr(model_file, "FEWEST_UNSEEN", N)
    model = TableModel.fit(FRAME, THREE, columns, task="classification")
    assert model.held_out.rows == sum(model.class_counts.values()) == trained


def test_classifiers_of_huge_numbers():
    X = 1e39 * FRAME[["a", "b"]]  # beyond single precision, which forests compute in
    y = np.where(SCORE > 0, "ill", "well")
    model = TableModel.fit(X, y, Columns(("a", "b"), {}, "t"), task="classification")
    assert model.held_out.best_peer[1] > 0.7


def test_peers_of_labels_that_only_unseen_rows_have():
    y = np.where(SCORE > 0, "ill", "well")
    frame = FRAME[["a"]].assign(town=["far", "near"] * (N // 2 - 1) + ["one", "two"], t=y)
    columns = Columns.of(frame, "t")
    model = TableModel.fit(columns.features(frame), y, columns, task="classification")
    assert len(model.held_out.peers) == 2


def test_targets_of_several_currencies():
    amounts = [f"${3 * i}" if i % 2 else f"€{i}" for i in range(40)]
    frame = pd.DataFrame({"a": np.arange(40.0), "t": amounts})
    with pytest.raises(InvalidInputError, match="same sign or unit in every row of column 't'"):
        Target.of(frame, Columns.of(frame, "t"))


@pytest.mark.slow
def test_hyperparameters_of_fewer_rows(monkeypatch):
    monkeypatch.setattr(model_file, "MOST_LEARNED", 30)
    columns = Columns.of(FRAME.assign(t=THREE), "t")
    model = TableModel.fit(FRAME, THREE, columns, task="classification")
    few = model_file.stratified(THREE, 30)
    monkeypatch.setattr(model_file, "MOST_LEARNED", 600)
    small = TableModel.fit(FRAME.iloc[few], THREE[few], columns, task="classification")
    assert sum(model.class_counts.values()) == model.held_out.rows == N
    for one, other in zip(model.regressor.kernel_, small.regressor.kernel_, strict=True):
        assert one == other


def test_calibration_of_known_probabilities():
    generator = np.random.default_rng(1)
    p = generator.uniform(size=20000)
    codes = (generator.uniform(size=20000) < p).astype(int)
    found = HeldOutClasses.of(codes, np.column_stack([1 - p, p]))
    assert len(found.calibration) == 5
    for probability, share, rows in found.calibration:
        assert abs(probability - share) < 4 * np.sqrt(0.25 / rows)
