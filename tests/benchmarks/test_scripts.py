"""Every benchmark is whole: it parses, and finds what it imports from its neighbours."""

import ast
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(path.relative_to(BENCHMARKS) for path in BENCHMARKS.rglob("*.py"))


def parsed(path):
    return ast.parse((BENCHMARKS / path).read_text("utf-8"))


def file_of(module, package):
    """The file of a module among the benchmarks, from an absolute or a relative import."""
    path = package / f"{module.replace('.', '/')}.py"
    return path if (BENCHMARKS / path).is_file() else None


def defined(tree):
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name for alias in node.names)
            case ast.Assign() | ast.AnnAssign():
                names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
                yield from (name.id for name in names if isinstance(name.ctx, ast.Store))


def test_all_scripts_are_seen():
    assert {Path("run.py"), Path("compare.py"), Path("attribution_tools/problem.py")} < {*SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_script_finds_what_it_imports_from_others(script):
    for node in ast.walk(parsed(script)):
        if isinstance(node, ast.ImportFrom):
            file = file_of(node.module or "", script.parent if node.level else Path())
            assert file or not node.level, f"{script}: no module {node.module}"
            names = {alias.name for alias in node.names} if file else set()
            missing = names - set(defined(parsed(file))) if file else set()
            assert not missing, f"{script}: {file} has no {missing}"


@pytest.fixture
def run(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import run

    return run


def test_the_parts_of_every_section_are_there(run):
    assert len(run.SECTIONS) > 15
    for section, paths in run.SECTIONS.items():
        assert paths, section
        for path in paths:
            module, name = path.split(".")
            functions = [node for node in parsed(f"{module}.py").body
                         if isinstance(node, ast.FunctionDef) and node.name == name]  # fmt: skip
            assert len(functions) == 1, f"{section}: no {path}"
            assert [each.arg for each in functions[0].args.args] == ["X", "y", "quick"], path


def test_the_help_names_every_section(run):
    listed = run.__doc__.partition("Parts are ")[2].partition(". ")[0].replace(" and ", ", ")
    assert [name.strip() for name in listed.replace("\n", " ").split(",")] == list(run.SECTIONS)


def test_the_picture_shows_every_tool_of_the_tables(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS.parent / "docs" / "_ext"))
    import compare_speed_error as drawn

    ours, theirs = drawn.integrated_gradients(), drawn.shapley_values()
    page = (drawn.DOCS / "compare_shapley_results.md").read_text("utf-8")
    assert len(theirs) == len(drawn.read_table(page, "10 features, one baseline"))
    assert {point.package for point in ours} == {"gpattr", "Captum"}
    assert {point.package for point in theirs} == {"gpattr", "shap", "shapiq", "GP-SHAP"}
    figure = drawn.picture()
    labels = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert {point.short_name for point in [*ours, *theirs]} <= labels
    with pytest.raises(ValueError, match="no table below 'Nothing'"):
        drawn.read_table(page, "Nothing")
