import pandas as pd
import pytest
from typer.testing import CliRunner

import gpattr
from gpattr.cli import app

RUNNER = CliRunner()


@pytest.mark.slow
def test_demo(tmp_path):
    result = RUNNER.invoke(app, ["demo", "--out", str(tmp_path / "new" / "folder")])
    assert result.exit_code == 0
    assert "body mass index" in result.output
    assert "P(sign)" in result.output
    table = pd.read_csv(tmp_path / "new" / "folder" / "attributions.csv")
    assert len(table) == 42 * 10
    assert {"attribution", "std", "lower", "upper", "prob_positive"} <= set(table.columns)
    picture = (tmp_path / "new" / "folder" / "attributions.png").read_bytes()
    assert picture.startswith(b"\x89PNG")


def test_the_demo_tells_one_story(tmp_path, monkeypatch, opened):
    drawn = []
    monkeypatch.setattr(
        "matplotlib.figure.Figure.savefig", lambda figure, *args, **options: drawn.append(figure)
    )
    result = RUNNER.invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0
    lines = [line.split("│") for line in result.output.splitlines() if line.startswith("│")]
    patient, prediction = lines[0][1].strip(), lines[0][2].strip()
    assert f"Picture of Patient {patient}" in result.output
    (figure,) = drawn
    picture = figure.axes[0].get_title(loc="left")
    assert picture.startswith(f"Patient {patient}: predicted disease progression {prediction}")
    assert "sex = code " in str([text.get_text() for text in figure.axes[0].get_yticklabels()])
    page = tmp_path / "report.html"
    assert page.stat().st_size < 1.3e6
    with opened(page) as tab:
        assert (
            tab.title()
            == "Predictions of disease progression, explained · scikit-learn's diabetes data"
        )
        title = tab.inner_text("#row-title")
        assert title.startswith(
            f"Patient {patient}: predicted disease progression {prediction}, at the baseline "
        )
        assert tab.inner_text("#rows tr[aria-selected=true] td:first-child") == f"Patient {patient}"
        labels = tab.locator("#waterfall tbody th").all_inner_texts()
        assert labels[0] == "Predicted disease progression"
        assert labels[-1] == "Baseline: average patient"
        assert {label for label in labels if label.startswith("sex = ")} <= {
            "sex = code 1",
            "sex = code 2",
        }
        assert (
            labels[1].split(" = ")[0] == lines[0][3].strip()
        )  # the strongest reason, there as here
        tab.fill("#filter", patient)
        assert tab.locator("#rows tbody tr").count() == 1


@pytest.mark.slow
def test_quiet_demo(tmp_path):
    result = RUNNER.invoke(app, ["demo", "--out", str(tmp_path), "--quiet"])
    assert result.exit_code == 0
    assert len(result.output.strip().splitlines()) == 3


def test_a_folder_that_cannot_be_written(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    result = RUNNER.invoke(app, ["demo", "--out", str(blocker / "folder")])
    assert result.exit_code == 1
    assert "Not a directory" in result.output
    assert "Traceback" not in result.output


def test_version_and_help():
    assert RUNNER.invoke(app, ["--version"]).output.strip() == f"gpattr {gpattr.__version__}"
    assert "demo" in RUNNER.invoke(app, ["--help"]).output
