"""Facts that stand in several files of packaging agree, and ``import gpattr`` is quick."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import gpattr

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
PYTHONS = [
    each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each
]  # declared
OTHER_NAMES = {"matplotlib": "matplotlib-base"}  # in conda


def read(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def test_the_version_is_the_same_everywhere():
    assert f"\nversion: {gpattr.__version__}\n" in read("CITATION.cff")
    assert f'version: "{gpattr.__version__}"' in read("recipe/recipe.yaml")


def test_pythons_are_the_same_everywhere():
    assert sorted(PYTHONS, key=lambda each: int(each.partition(".")[2])) == PYTHONS
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert oldest == PYTHONS[0]
    assert f'python_min: "{oldest}"' in read("recipe/recipe.yaml")
    tested = re.search(r"python: \[(.*)\]", read(".github/workflows/tests.yml"))[1]
    tested = re.findall(r'"([\d.]+)"', tested)
    assert len(tested) >= 3
    assert {PYTHONS[0], PYTHONS[-1]} <= set(tested) <= set(PYTHONS)
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}" in read("docs/support_policy.md")


def test_core_dependencies_are_the_same_everywhere():
    policy, recipe = read("docs/support_policy.md"), read("recipe/recipe.yaml")
    for requirement in PROJECT["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups()  # and no upper one
        assert f"\n    - {OTHER_NAMES.get(name, name)} >={bound}\n" in recipe
        assert f"\n| {name} | {bound} |" in policy
    for requirement in EXTRAS["cli"]:
        assert f"\n    - {requirement.replace('>=', ' >=')}\n" in recipe


def installed_by(extra: str) -> set[str]:
    """The extras and packages that an extra installs."""
    names = set()
    for requirement in EXTRAS[extra]:
        name, _, inner = re.match(r"([\w-]+)(\[([\w,-]+)\])?", requirement).groups()
        if name != "gpattr":
            names.add(name)
            continue
        for each in inner.split(","):
            names |= {f"[{each}]"} | installed_by(each)
    return names


def test_the_extra_for_tests_has_everything():
    left_out = {"bench", "docs", "gpflow", "gpy", "test-all", "test-clients", "test-gpflow"}
    for extra in EXTRAS.keys() - left_out:
        everything = {each for each in installed_by(extra) if each[0] != "["}
        assert everything <= installed_by("test-all"), extra


def test_tools_are_the_same_in_extras_and_groups():
    groups = PYPROJECT["dependency-groups"]
    assert set(groups["test"]) <= set(EXTRAS["test"])
    for tool in groups["lint"]:
        assert tool in EXTRAS["test-all"] or tool.startswith("pre-commit")


def test_bounds_from_above_have_a_reason():
    text = read("pyproject.toml").partition("[project.optional-dependencies]")[2]
    for line in text.partition("\n[dependency-groups]")[0].splitlines():
        if re.search(r'"[\w-]+(\[[\w,]+\])?[^"]*<', line):
            assert "  # " in line, line


def test_sessions_that_are_named_exist():
    sessions = set(re.findall(r"@nox\.session.*\ndef (\w+)\(", read("noxfile.py")))
    for page in ("CONTRIBUTING.md", "docs/support_policy.md", "docs/governance.md"):
        assert set(re.findall(r"nox -s ([\w.-]+)", read(page))) <= sessions, page
    named = re.findall(r"nox -s (\w+)", read(".github/workflows/tests.yml"))
    listed = re.search(r"session: \[(.*)\]", read(".github/workflows/tests.yml"))[1].split(", ")
    assert {*named, *listed} <= sessions
    assert set(re.findall(r"^\| `(\w+)` \|", read("CONTRIBUTING.md"), re.MULTILINE)) == sessions


def test_import_is_quick():
    """Less than 0.1 s of computing; the best of five, since other processes disturb."""
    code = (
        "import time; start = time.process_time(); import gpattr;"
        " print(time.process_time() - start)"
    )
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    assert min(times) < 0.1
