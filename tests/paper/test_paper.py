"""The paper, reproduced: every experiment in its reduced form, its numbers checked; and that the
checks can fail.
"""

import json
import math
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gpattr import Explainer, paper
from gpattr.cli import app
from gpattr.exceptions import DatasetError, InvalidInputError
from gpattr.kernels import SquaredExponential
from gpattr.paper import EXPERIMENTS, Check, axioms, checks, figure_3, figure_4, figure_5, models
from gpattr.paper.checks import compare, expectations
from gpattr.paper.experiment import Outcome, Setting
from gpattr.paper.models import normalised, train, wines

WITHOUT_DATA = ("axioms", "1")
RUNNER = CliRunner()


def stem(name: str) -> str:
    return EXPERIMENTS[name].rsplit(".", 1)[1]


def seen(data, model, wine: int) -> bool:
    """Whether the model was trained with this wine."""
    return bool((model.posterior_.training_inputs == data.X.loc[wine].to_numpy()).all(axis=1).any())


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("paper")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        name if name in WITHOUT_DATA else pytest.param(name, marks=pytest.mark.slow)
        for name in EXPERIMENTS
    ],
)
def test_every_number_is_as_expected(name, out, request):
    if name not in WITHOUT_DATA:
        request.getfixturevalue("data_folder")
    said = []
    (report,) = paper.reproduce([name], out, reduced=True, progress=said.append)
    assert [check.name for check in report.checks if not check.passed] == []
    assert report.passed
    assert said
    assert report.picture == out / f"{stem(name)}.png"
    assert report.picture.read_bytes().startswith(b"\x89PNG")
    written = json.loads((out / f"{stem(name)}.json").read_text(encoding="utf-8"))
    assert written["numbers"] == {check.name: check.value for check in report.checks}
    assert written["reduced"] is True
    assert not list(out.glob("*.tmp"))


@pytest.fixture
def untrained(monkeypatch):
    """Hyperparameters of the wines that are near the learned ones, for what holds with any."""
    scales = [4.0, 3.0, 6.0, 5.0, 6.0, 6.0, 4.0, 6.0, 5.0, 3.0, 3.0]
    monkeypatch.setitem(models.LEARNED, 0, (SquaredExponential(scales, 20.0), 0.35))


def test_the_wines_of_figure_5_by_quadrature_and_by_brute_force(data_folder, untrained):
    """The exact attributions of alcohol against quadrature, and against finite differences of the
    model's own predictions.
    """
    data = wines(Setting(reduced=True))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    t, weights = (nodes + 1) / 2, weights / 2
    for wine in figure_5.QUALITY_8:
        model = data.without(wine)
        assert not seen(data, model, wine)
        ex = figure_5.alcohol(data, model, wine)
        numeric = Explainer(model, "zeros", method="quadrature")(data.X.loc[[wine]])[:, ["alcohol"]]
        np.testing.assert_allclose(ex.values, numeric.values, rtol=1e-9)
        np.testing.assert_allclose(ex.std, numeric.std, rtol=1e-8)
        x, step = data.X.loc[wine].to_numpy(), 1e-4 * np.eye(11)[10]
        path = t[:, None] * x
        slope = (model.predict(path + step) - model.predict(path - step)) / 2e-4
        assert x[10] * (weights @ slope) == pytest.approx(float(ex.values[0, 0]), rel=1e-6)


def test_house_262_by_brute_force(data_folder):
    """Attributions of the model that normalised inputs trained, from the raw inputs, by finite
    differences of predictions.
    """
    houses = figure_3.load_taipei_housing(data_home=data_folder)
    X, y, rest = houses.data, houses.target, figure_3.held_in(houses.data.index, 1)
    assert 262 not in rest
    assert len(set(rest)) == 364
    model = train(normalised(X).loc[rest], y[rest], restarts=0)
    ex = figure_3.explain(figure_3.in_raw_units(model, X).fit(X.loc[rest], y[rest]), X)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    z = normalised(X).loc[262].to_numpy()
    path = (nodes[:, None] + 1) / 2 * z
    for i in range(6):
        step = 1e-4 * np.eye(6)[i]
        slope = (model.predict(path + step) - model.predict(path - step)) / 2e-4
        assert z[i] * (weights @ slope) / 2 == pytest.approx(ex.values[0, i], rel=1e-5, abs=1e-6)


def test_the_baseline_of_figure_4_is_the_mean_of_the_wines_of_quality_5(
    data_folder, wine, untrained
):
    data = wines(Setting(reduced=True))
    X = wine.drop(columns="quality")
    expected = (X[wine["quality"] == 5].mean() - X.mean()) / X.std()
    np.testing.assert_allclose(data.average, expected, rtol=1e-12)
    assert data.x.index[0] == 1120
    assert wine.loc[1120, ["quality", "alcohol"]].tolist() == [8, 13.1]
    assert not seen(data, data.model, 1120)
    assert seen(data, data.model, 267)
    assert data.model.predict(np.full((1, 11), 100.0)) == pytest.approx(
        0.0, abs=1e-6
    )  # far away the prior mean, which is zero


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_module_reads_in_one_sitting(name):
    source = Path(import_module(EXPERIMENTS[name]).__file__).read_text(encoding="utf-8")
    assert len(source.splitlines()) < 140  # of 100 columns


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_expectations_are_complete(name):
    for number, entry in expectations(stem(name)).items():
        low, high = entry["between"]
        assert low is not None or high is not None, number
        assert low is None or low <= entry["ours"], number
        assert high is None or entry["ours"] <= high, number
        assert entry["source"], number


def test_checks_can_fail():
    numbers = {name: entry["ours"] for name, entry in expectations("figure_3").items()}
    assert all(check.passed for check in compare("figure_3", numbers))
    for value in (-6.1, -3.4, math.nan, math.inf):
        failed = [
            check.name
            for check in compare("figure_3", numbers | {"distance to MRT, mean": value})
            if not check.passed
        ]
        assert failed == ["distance to MRT, mean"]
    with pytest.raises(RuntimeError, match="differ in .*'latitude, sd'"):
        compare(
            "figure_3", {name: value for name, value in numbers.items() if name != "latitude, sd"}
        )
    with pytest.raises(RuntimeError, match="differ in .*'new'"):
        compare("figure_3", numbers | {"new": 1.0})


def test_what_is_accepted_in_words():
    def accepted(low: float, high: float) -> str:
        return Check("", 0.0, low, high, 0.0, "", "").accepted

    assert accepted(0.0, 0.0) == "exactly 0"
    assert accepted(-math.inf, 2.5) == "at most 2.5"
    assert accepted(1e-3, math.inf) == "at least 0.001"
    assert accepted(-6, -3.5) == "-6 to -3.5"


def test_nothing_is_written_unless_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (report,) = paper.reproduce("axioms")
    assert report.picture is None
    assert list(tmp_path.iterdir()) == []
    for wrong, shown in (
        (["1", "9"], "'9'"),
        (5, "5"),
        (None, "None"),
        ([["1"]], r"\['1'\]"),
        (b"1", "b'1'"),
    ):
        with pytest.raises(
            InvalidInputError, match=f"experiments: expected names among .*, got {shown}"
        ):
            paper.reproduce(wrong)
    with pytest.raises(
        InvalidInputError, match="out: expected the path of a folder, or None, got 3"
    ):
        paper.reproduce(["axioms"], 3)


def test_a_rule_that_never_comes_near_is_no_crash():
    far = np.array([np.full(50, 5.0), np.ones(50)])
    assert figure_4.measure(far, (0.0, 1.0))["partitions needed for 0.1 sd"] == math.inf


def test_numbers_that_are_not_finite_are_written_as_null(tmp_path, monkeypatch):
    outcome = axioms.run(Setting())
    monkeypatch.setattr(
        axioms,
        "run",
        lambda _: Outcome(outcome.figure, outcome.numbers | {"4 linearity": math.nan}),
    )
    (report,) = paper.reproduce(["axioms"], tmp_path)
    assert not report.passed
    assert (
        json.loads((tmp_path / "axioms.json").read_text(encoding="utf-8"))["numbers"]["4 linearity"]
        is None
    )


def test_wines_are_read_anew(data_folder, monkeypatch, untrained):
    """What is kept between figures is what was learned, not the data."""
    first = wines(Setting(reduced=True))
    first.X.iloc[0, 0] = 1e6
    assert wines(Setting(reduced=True)).X.iloc[0, 0] != 1e6
    monkeypatch.setenv("GPATTR_DATA_DIR", "nowhere")
    with pytest.raises(
        DatasetError, match="GPATTR_DATA_DIR: expected a folder with 'winequality-red.csv'"
    ):
        wines(Setting(reduced=True))


@pytest.mark.slow
def test_the_command_where_text_is_not_utf_8(tmp_path):
    """A terminal without Greek letters gets question marks, and paths with brackets are paths."""
    out = tmp_path / "o[red]x[/b]"
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "from gpattr.cli import app; app()",
            "paper",
            "--figure",
            "1",
            "--reduced",
            "--out",
            str(out),
        ],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "COLUMNS": "400"},
        capture_output=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert b"14 of 14 numbers are as expected" in result.stdout
    assert str(out / "figure_1.png").encode() in result.stdout
    assert b"Figure 1: training on 500 samples" in result.stdout  # progress as lines


@pytest.mark.slow
def test_the_command(tmp_path):
    result = RUNNER.invoke(
        app,
        [
            "paper",
            "--figure",
            "axioms",
            "--figure",
            "1",
            "--out",
            str(tmp_path / "new"),
            "--reduced",
        ],
    )
    assert result.exit_code == 0, result.output
    assert "25 of 25 numbers are as expected" in result.output
    assert "FAIL" not in result.output
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "axioms.json",
        "axioms.png",
        "figure_1.json",
        "figure_1.png",
    ]


def test_the_command_fails_where_a_number_does(tmp_path, monkeypatch):
    expected = expectations("axioms") | {
        "4 linearity": {"ours": 1.0, "between": [0.5, 2.0], "source": "made up"}
    }
    monkeypatch.setattr(checks, "expectations", lambda _: expected)
    result = RUNNER.invoke(
        app,
        ["paper", "--figure", "axioms", "--out", str(tmp_path), "--quiet"],
        env={"COLUMNS": "200"},
    )
    assert result.exit_code == 1
    assert "10 of 11 numbers are as expected" in result.output
    assert "4 linearity" in result.output
    assert "0.5 to 2" in result.output
    assert "6 symmetry" not in result.output


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--figure", "8"], 2, "expected one of linear, axioms, 1, 2, 3, 4, 5, 6, 7, got '8'"),
        (
            ["--figure", "2", "--data-home", "nowhere"],
            1,
            "expected a folder with 'wpbc.data', but 'nowhere' is not a folder",
        ),
    ],
)
def test_what_the_command_says_of_bad_options(options, code, message, tmp_path):
    result = RUNNER.invoke(app, ["paper", *options, "--out", str(tmp_path)], env={"COLUMNS": "200"})
    assert result.exit_code == code
    assert message in " ".join(result.output.replace("│", " ").split())
    assert "Traceback" not in result.output


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    result = RUNNER.invoke(
        app, ["paper", "--figure", "axioms", "--out", str(tmp_path / "file" / "folder")]
    )
    assert result.exit_code == 1
    assert "Not a directory" in result.output
    assert "Traceback" not in result.output
