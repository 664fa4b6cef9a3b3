"""The tables in the documentation are those the code gives, and its pictures are there."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from gpattr.adapters.documentation_tables import LIBRARIES, OPTIMISERS, library_table
from gpattr.adapters.registry import BUILT_IN
from gpattr.closed_forms.documentation_tables import support_table
from gpattr.paper.checks import expected_table
from gpattr.paper.reproduce import EXPERIMENTS

DOCS = Path(__file__).parents[1] / "docs"


def generated(page: str, by: str) -> str:
    """What a page shows between the mark of this generator and the next end."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text.count(f"{by} -->\n") == 1
    return text.partition(f"{by} -->\n")[2].partition("\n<!-- end -->")[0]


def test_table_of_kernels_is_generated():
    assert generated("kernels.md", "support_table()") == support_table()


def test_table_of_libraries_is_generated():
    assert generated("libraries.md", "library_table()") == library_table()
    known = {package for package, *_ in LIBRARIES.values()}
    known |= {package for packages, _ in OPTIMISERS.values() for package in packages}
    assert known == {name.partition(".")[0] for name in BUILT_IN}


@pytest.mark.parametrize("module", EXPERIMENTS.values())
def test_tables_of_the_paper_are_generated(module):
    stem = module.rsplit(".", 1)[1]
    assert generated("paper.md", f"expected_table({stem!r})") == expected_table(stem)


@pytest.mark.slow
def test_the_picture_of_the_architecture_is_drawn_from_the_imports(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    import architecture

    assert architecture.picture() == architecture.PICTURE.read_text(encoding="utf-8"), (
        "run docs/_ext/architecture.py"
    )


@pytest.mark.parametrize(
    "name", ["coverage_table", "failures_table", "other_failures", "others_table", "real_tables"]
)
def test_tables_of_coverage_are_generated(name):
    spec = spec_from_file_location("coverage_of_intervals", DOCS / "_ext" / "interval_coverage.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert generated("understand/intervals.md", f"coverage.py, {name}") == module.GENERATED[name]()


def test_pictures_are_there():
    for page in DOCS.rglob("*.md"):
        for path in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / path).is_file(), f"{page.name}: {path}"


def test_links_between_pages_lead_somewhere():
    for page in DOCS.rglob("*.md"):
        for path in re.findall(r"\]\(([^)#:]+\.md)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / path).is_file(), f"{page.name}: {path}"
