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
    ("page", "script", "count"),
    [("intervals.md", "interval_coverage.py", 6), ("real_tables.md", "real_tables.py", 3)],
)
def test_tables_of_benchmarks_are_generated(page, script, count):
    spec = spec_from_file_location(f"docs_{script[:-3]}", DOCS / "_ext" / script)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert len(module.GENERATED) == count
    for name, make in module.GENERATED.items():
        assert generated(f"understand/{page}", f"{script}, {name}") == make()


def test_pictures_are_there():
    for page in DOCS.rglob("*.md"):
        for path in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / path).is_file(), f"{page.name}: {path}"


def test_links_between_pages_lead_somewhere():
    for page in DOCS.rglob("*.md"):
        for path in re.findall(r"\]\(([^)#:]+\.md)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / path).is_file(), f"{page.name}: {path}"
