"""Budgets: how much there is to read, to run and to load.

A change that needs more raises a number here, where everybody sees it; one that needs less lowers
it.
"""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import gpattr
from gpattr import Explainer, GPRegressor
from gpattr.posteriors import Posterior

SOURCE = Path(gpattr.__file__).parent
LINES = {
    "_core": 2550,
    "adapters": 9250,
    "bases": 650,
    "closed_forms": 10950,
    "commands": 2900,
    "datasets": 700,
    "distributions": 1050,
    "encoders": 500,
    "engines": 900,
    "estimators": 8150,
    "explainer": 6350,
    "explanation": 4300,
    "kernels": 2200,
    "modules": 2350,
    "operators": 1750,
    "paper": 1650,
    "plots": 3750,
    "posteriors": 6700,
    "quantities": 500,
    "report": 1350,
    "sobol": 3300,
    "special": 1700,
    "tables": 3200,
    "widget": 400,
}
FILES = 427
CALLS, FILES_OF_A_ROW = 435, 30  # of gpattr, for one row of a regressor
MODULES = 176  # of gpattr, loaded by `from gpattr import Explainer`
NAMES_USED_TWICE = 13
MEMBERS = 41  # of the protocol of a posterior


def test_lines():
    found = Counter()
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).parts[0]
        found["modules" if path.parent == SOURCE else package] += len(
            path.read_text("utf-8").splitlines()
        )
    assert found.keys() == LINES.keys()
    assert {name: n for name, n in found.items() if n > LINES[name]} == {}


def test_files():
    assert len(list(SOURCE.rglob("*.py"))) <= FILES


def test_one_row():
    """Calls of gpattr's functions, and files they are in, once everything has been loaded."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    model = GPRegressor(hyperparameters="optimal").fit(X, X[:, 0] + np.sin(X[:, 1]))
    explainer, calls = Explainer(model), Counter()
    explainer(X[:1])

    def count(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            calls[frame.f_code.co_filename] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        explainer(X[:1])
    finally:
        sys.setprofile(before)
    assert calls.total() <= CALLS
    assert len(calls) <= FILES_OF_A_ROW


def test_modules_of_an_import():
    code = (
        "import sys; from gpattr import Explainer;"
        " print(sum(name.partition('.')[0] == 'gpattr' for name in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stdout) <= MODULES


def test_names_of_classes():
    """A name that two classes have means two things."""
    names = Counter(
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert len([name for name, n in names.items() if n > 1]) <= NAMES_USED_TWICE


def test_members_of_a_posterior():
    members = [name for name in vars(Posterior) if not name.startswith("_")]
    assert len(members) <= MEMBERS
