import pandas as pd
from typer.testing import CliRunner

import gpattr
from gpattr.cli import app

RUNNER = CliRunner()


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
