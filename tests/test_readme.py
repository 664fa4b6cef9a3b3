"""What the README and the examples show is what comes out."""

import contextlib
import io
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
"""


def assert_same_text(printed: str, shown: str) -> None:
    """Words to the letter, numbers to the digits that training reproduces on any machine."""
    assert len(printed.splitlines()) == len(shown.splitlines())
    for mine, theirs in zip(printed.split(), shown.split(), strict=True):
        try:
            mine, theirs = mine.removesuffix("%"), theirs.removesuffix("%")
            assert float(mine) == pytest.approx(float(theirs), rel=0.05, abs=0.01)
        except ValueError:
            assert mine == theirs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("README.md", 1),
        ("docs/index.md", 1),
        ("docs/tour.md", 2),
        ("docs/trust.md", 1),
        ("docs/coming_from/botorch.md", 3),
        ("docs/coming_from/captum.md", 2),
        ("docs/coming_from/permutation_importance.md", 3),
        ("docs/coming_from/shap.md", 2),
        ("docs/get_started.md", 2),
        ("docs/how_to/choose_a_baseline.md", 1),
        ("docs/how_to/shapley_values.md", 2),
        ("docs/how_to/what_each_feature_does.md", 2),
        ("docs/understand/shapley_or_integrated_gradients.md", 2),
    ],
)
def test_printed_output_is_the_shown_one(page, texts, tmp_path, monkeypatch):
    """Every text block shows what the code block before it prints."""
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    namespace, shown = {}, 0
    for (language, code), (following, expected) in zip(blocks, blocks[1:]):
        if language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)
            if following == "text":
                assert_same_text(printed.getvalue(), expected)
                shown += 1
    assert shown == texts


@pytest.mark.slow
def test_readme_runs_with_what_its_install_line_brings(tmp_path):
    """Its blocks run where nothing of the extras can be imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = re.compile(r"[\w.-]+")
    core = {name.match(line)[0] for line in project["dependencies"]}
    others = {
        name.match(line)[0].replace("-", "_").lower()
        for extra, lines in project["optional-dependencies"].items()
        if not extra.startswith(("test", "docs", "bench"))  # they repeat what the core brings along
        for line in lines
    } - core.union(["gpattr"])
    assert {"torch", "shap"} <= others
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    code = "".join(code for language, code in blocks if language == "python")
    subprocess.run(
        [sys.executable, "-c", WITHOUT.format(names=sorted(others)) + code],
        cwd=tmp_path,
        check=True,
    )


def test_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 120
    assert max(map(len, lines)) <= 100


def test_links_of_the_readme_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)|^\[\d\]: (\S+)|src=\"([^\"]+)\"", text, re.MULTILINE)
    assert len(links) > 20
    for link in map("".join, links):
        assert (ROOT / link).is_file(), link


def test_install_lines_name_no_unpublished_package():
    """Until gpattr is published, it is installed from its folder."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    wrong = [
        f"{page.relative_to(ROOT)}: {line}"
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.search(r"pip install\b[^`&]*gpattr\b", line)
    ]
    assert not wrong


@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name
)
def test_examples_run(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
