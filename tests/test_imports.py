"""The import graph: quick and lazy from outside, downward only inside."""

import ast
import subprocess
import sys
from pathlib import Path

import gpattr

SOURCE = Path(gpattr.__file__).parent

# From the ground up: a module may import from its own level and from those below it.
LEVELS = [
    {"exceptions"},
    {"_core"},
    {"special", "distributions", "encoders"},
    {"bases", "kernels", "operators", "means", "quantities"},
    {"closed_forms"},
    {"posteriors", "datasets"},
    {"explanation"},
    {"estimators", "adapters"},
    {"integration"},
    {"tables"},
    {"testing"},
    {"explainer"},
    {"engines"},
    {"sobol"},
    {"plots"},
    {"rules", "report"},
    {"demo", "paper", "commands", "widget"},
    {"cli"},
    {"__main__"},
    {"__init__"},
]
# ex.plot, explainer.widget and explainer.map_table, on first use
LAZY = {
    ("explanation", "plots"),
    ("sobol", "plots"),
    ("explainer", "widget"),
    ("explainer", "engines"),
}
# What is built on the library, and is never imported by it: only `explainer.widget` asks for the
# widget, when it is called.
APPLICATIONS = {"__main__", "cli", "commands", "demo", "paper", "report", "tables", "widget"}
LEVEL = {package: i for i, level in enumerate(LEVELS) for package in level}
HEAVY = ("sklearn", "pandas", "torch", "jax", "shap", "matplotlib", "dask", "xarray", "scipy")


def test_import_is_lazy():
    code = f"import sys, gpattr; print([name for name in {HEAVY} if name in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_explaining_arrays_needs_no_frames():
    code = (
        "import sys, numpy as np, gpattr\nX = np.arange(6.0).reshape(3, 2)\np ="
        " gpattr.posteriors.ExactPosterior(gpattr.kernels.SquaredExponential(), X, X[:, 0],"
        " noise=0.1)\nrepr(gpattr.Explainer(p)(X))\nprint([name for name in ('sklearn', 'pandas',"
        " 'torch', 'jax', 'shap', 'matplotlib') if name in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def imported_packages(path: Path) -> set[str]:
    """The packages of gpattr that a file imports when it runs, type checking aside."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            node.body = []
    packages = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == "gpattr"
        ):
            parts = node.module.split(".")
            packages |= (
                {parts[1]}
                if len(parts) > 1
                else {alias.name for alias in node.names if alias.name != "__version__"}
            )
    return packages


def test_imports_point_downward():
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        assert package in LEVEL, f"{package} has no level yet"
        for imported in imported_packages(path):
            if LEVEL[imported] > LEVEL[package] and (package, imported) not in LAZY:
                wrong.append(f"{path.relative_to(SOURCE)} imports {imported}, which lies above it")
            late = (package, imported) == ("explainer", "widget")
            if imported in APPLICATIONS and package not in APPLICATIONS and not late:
                wrong.append(f"{path.relative_to(SOURCE)} imports the application {imported}")
    assert wrong == []


def test_the_library_runs_without_its_applications():
    """Also what it imports late: only `explainer.widget` needs one of them."""
    code = f"""
import sys
for name in {sorted(APPLICATIONS - {"widget"})}:
    sys.modules["gpattr." + name] = None
import numpy as np, gpattr
X = np.arange(12.0).reshape(6, 2)
model = gpattr.GPRegressor(n_restarts=0).fit(X, X[:, 0])
explainer = gpattr.Explainer(model)
explainer(X), explainer.importance(X), explainer.dependence("x0"), gpattr.sobol_indices(model)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
