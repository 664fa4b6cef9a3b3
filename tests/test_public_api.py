"""The public names: what is exported, what is documented and what has an example agree."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import gpattr

SOURCE = Path(gpattr.__file__)
REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
MODULES = {
    name: import_module(name) for name in ("gpattr", *(f"gpattr.{m}" for m in gpattr._MODULES))
}


def public_names() -> dict[str, object]:
    """{full name: object} of all public names, except modules."""
    return {
        f"{module}.{name}": getattr(contents, name)
        for module, contents in MODULES.items()
        for name in contents.__all__
        if not isinstance(getattr(contents, name), ModuleType)
    }


def own_members(value: object) -> dict[str, object]:
    """The public methods and properties of a class that gpattr defines, inherited ones too."""
    if not inspect.isclass(value):
        return {}
    ours = [base for base in value.__mro__ if base.__module__.partition(".")[0] == "gpattr"]
    members = {name: getattr(value, name) for base in ours for name in vars(base)}
    return {
        name: member
        for name, member in members.items()
        if name[0] != "_" and (callable(member) or isinstance(member, property))
    }


def documented() -> list[str]:
    """The full names that the pages of the reference list."""
    found = []
    for page in sorted(REFERENCE.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for table in re.findall(r"\.\. autosummary::\n(.*?)```", text, re.S):
            found += re.findall(r"^   ~(\S+)$", table, re.M)
        found += re.findall(r"\.\. py:data:: (\S+)", text)
    return found


# Not exported, as only methods make them, but documented and with examples like all others.
RETURNED = ("gpattr.explanation.Contributions", "gpattr.explanation.MeasurementBatch")


def returned() -> dict[str, object]:
    """{full name: class} of results that are not exported."""
    parts = {name: name.rpartition(".") for name in RETURNED}
    return {name: getattr(import_module(path), own) for name, (path, _, own) in parts.items()}


NAMES = public_names() | returned()
ENTRIES = documented()
PREFERRED: dict[int, str] = {}  # gpattr.GPRegressor rather than gpattr.estimators.GPRegressor
for full, value in NAMES.items():
    PREFERRED.setdefault(id(value), full)
DISTINCT = {name: NAMES[name] for name in PREFERRED.values() if callable(NAMES[name])}
CONSTANTS = {name for name, value in NAMES.items() if not callable(value)}


def type_checked_imports() -> dict[str, str]:
    """{name: where from} of what `gpattr/__init__.py` imports for type checkers."""
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_top_level_names_are_listed_alike_in_all_four_places():
    lazy = {**dict.fromkeys(gpattr._MODULES, "gpattr"), **gpattr._NAMES}
    assert type_checked_imports() == lazy
    assert gpattr.__all__ == sorted(lazy)
    assert dir(gpattr) == sorted([*lazy, "__version__"])


@pytest.mark.parametrize("module", MODULES)
def test_exports_are_there_and_listed_once(module):
    names = MODULES[module].__all__
    assert len(set(names)) == len(names)
    for name in names:
        assert hasattr(MODULES[module], name), f"{module}.{name}"


def test_every_public_name_has_one_entry_in_the_reference():
    assert sorted(set(ENTRIES)) == sorted(ENTRIES), "listed twice"
    assert sorted({*DISTINCT, *CONSTANTS}) == sorted(ENTRIES)


def test_public_names_are_documented():
    wrong = []
    for name, value in DISTINCT.items():
        first = (value.__doc__ or "").strip().partition("\n\n")[0]
        members = own_members(value).items()
        wrong += [f"{name}.{key}" for key, member in members if not inspect.getdoc(member)]
        if not first.endswith((".", ":")):
            wrong.append(f"{name}: expected a sentence, got {first!r}")
    assert not wrong


def test_public_names_have_an_example():
    assert [name for name, value in DISTINCT.items() if ">>> " not in (value.__doc__ or "")] == []


@pytest.mark.parametrize("name", ["gpattr.Explainer", "gpattr.Explanation"])
def test_methods_that_everybody_calls_have_an_example(name):
    methods = {key: value for key, value in own_members(NAMES[name]).items() if callable(value)}
    without = [key for key, value in methods.items() if ">>> " not in (value.__doc__ or "")]
    assert not without


def test_every_kernel_has_a_formula_and_is_drawn(monkeypatch):
    monkeypatch.syspath_prepend(str(REFERENCE.parent / "_ext"))
    import kernel_pages

    kernels = {
        name for name in gpattr.kernels.__all__ if inspect.isclass(NAMES[f"gpattr.kernels.{name}"])
    }
    assert {*kernel_pages.ENTRIES, *kernel_pages.FORMULAS} == kernels - {"Kernel", "Kink"}
    for name, entry in kernel_pages.ENTRIES.items():
        assert type(entry.kernel()).__name__ == name
        assert kernel_pages.picture(entry).axes[1].lines
