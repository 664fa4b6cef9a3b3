"""What the README and the examples show is what comes out."""

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def assert_same_text(printed: str, shown: str) -> None:
    """Words to the letter, numbers to the digits that training reproduces on any machine."""
    assert len(printed.splitlines()) == len(shown.splitlines())
    for mine, theirs in zip(printed.split(), shown.split(), strict=True):
        try:
            assert float(mine) == pytest.approx(float(theirs), rel=0.05, abs=0.01)
        except ValueError:
            assert mine == theirs


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("README.md", 2),
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


@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name
)
def test_examples_run(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
