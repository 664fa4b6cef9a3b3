"""Optional packages: missing, too old or broken, each is named with what to do."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpattr
from gpattr._core import optional as module
from gpattr._core.optional import PACKAGES, is_usable, optional, version_numbers
from gpattr._core.progress_line import ProgressLine
from gpattr.adapters import registry
from gpattr.commands.outputs import write_attributions
from gpattr.exceptions import GpattrError, OptionalPackageError, UnsupportedModelError

ROOT = Path(__file__).parents[1]
X = np.random.default_rng(0).normal(size=(6, 2))


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Put a package of this name and this code before the installed one."""

    def put(name: str, code: str) -> None:
        for known in [known for known in sys.modules if known.partition(".")[0] == name]:
            monkeypatch.delitem(sys.modules, known)
        (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.syspath_prepend(str(tmp_path))

    return put


def test_what_is_missing_is_named_with_its_extra(monkeypatch):
    for package, (name, extra) in PACKAGES.items():
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(OptionalPackageError) as caught:
            optional(package, "A picture")
        assert str(caught.value) == (
            f'A picture needs {name}, which is not installed: pip install "gpattr[{extra}]"'
        )
        assert not is_usable(package)
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, GpattrError)


def test_every_extra_that_is_named_installs_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    for name, extra in PACKAGES.values():
        names = [re.match(r"[\w-]+(\[[\w,]+\])?", each)[0] for each in extras[extra]]
        assert any(name in re.split(r"[\[\],]", each) for each in names), (name, extra)


@pytest.mark.parametrize(
    "code",
    [
        "raise ImportError('libcrypto is not there\\nmore')",
        "import a_package_it_needs",
        "raise AttributeError('numpy has no attribute bool8')",
    ],
)
def test_what_is_broken_is_named_with_the_reason(broken, code):
    broken("shap", code)
    with pytest.raises(OptionalPackageError, match="the installed shap") as caught:
        optional("shap", "A picture")
    assert str(caught.value).endswith(
        "; reinstall it: pip install --upgrade --force-reinstall shap"
    )
    assert "Error: " in str(caught.value)
    assert "more" not in str(caught.value)
    assert caught.value.__cause__ is not None


def test_what_is_too_old_is_named_with_the_oldest_that_works(monkeypatch):
    stated = ["numpy>=1.26", "xarray[io]>=2024.10; extra == 'xarray'", "shap>=3; extra == 'other'"]
    monkeypatch.setattr(module, "requires", lambda name: stated)
    module._oldest.cache_clear()
    monkeypatch.setattr(module, "version", lambda name: "2024.9.1")
    with pytest.raises(
        OptionalPackageError,
        match=r"needs xarray 2024\.10 or newer, and 2024\.9\.1 is installed: pip install --upgrade",
    ):
        optional("xarray", "A picture")
    monkeypatch.setattr(module, "version", lambda name: "2024.10.0rc1")
    assert optional("xarray", "A picture").__name__ == "xarray"
    monkeypatch.setattr(module, "version", lambda name: "2")
    assert optional("shap", "A picture").__name__ == "shap"
    module._oldest.cache_clear()


def test_versions_are_numbers():
    assert version_numbers("2024.10.1.post1") == (2024, 10, 1)
    assert version_numbers("0.9") < version_numbers("0.10")
    assert version_numbers("0.50rc1") > version_numbers("0.46")
    assert version_numbers("13.0+local") == (13, 0)
    assert version_numbers("") == ()


def explained():
    posterior = gpattr.posteriors.ExactPosterior(
        gpattr.kernels.SquaredExponential(), X, X[:, 0], noise=0.1
    )
    return gpattr.Explainer(posterior)


def test_broken_packages_leave_the_rest_alone(broken):
    """Every export names its broken package; explanations, frames and tables need none of them."""
    for name in ("shap", "xarray", "interpret", "anywidget"):
        broken(name, "raise ImportError('built for another Python')")
    explainer = explained()
    ex = explainer(X)
    for export in (ex.to_shap, ex.to_xarray, ex.to_interpret, lambda: explainer.widget(X)):
        with pytest.raises(OptionalPackageError, match="built for another Python"):
            export()
    assert len(ex.to_frame()) == X.size
    assert isinstance(explainer.map_table(pd.DataFrame(X, columns=["x0", "x1"])), pd.DataFrame)


def test_a_broken_pyarrow_leaves_the_csv_file(broken, tmp_path):
    frame = pd.DataFrame({"row": [0, 1], "attribution": [0.5, -0.5]})
    broken("pyarrow", "raise ImportError('built for another Python')")
    write_attributions(tmp_path, frame)
    assert (tmp_path / "attributions.csv").is_file()
    assert not (tmp_path / "attributions.parquet").exists()


def test_polars_without_pyarrow(monkeypatch):
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    table = polars.DataFrame({"x0": X[:, 0], "x1": X[:, 1]})
    explainer = explained()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        OptionalPackageError, match=r'map_table of a Polars DataFrame needs pyarrow.*"gpattr\['
    ):
        explainer.map_table(table)


class Lacking:
    """A model of a library whose adapter imports a name that this version lacks."""


def test_a_library_that_lacks_what_its_adapter_imports(monkeypatch):
    def adapter(model, data=None):
        from math import a_name_of_another_version  # noqa: F401

    monkeypatch.setitem(registry.REGISTERED, f"{__name__.partition('.')[0]}.Lacking", adapter)
    with pytest.raises(
        UnsupportedModelError, match=r"lacks what gpattr reads of a Lacking \(.*another_version"
    ) as caught:
        gpattr.Explainer(Lacking())
    assert "pip install --upgrade gpattr" in str(caught.value)


def test_an_adapter_of_another_package_that_cannot_be_loaded(monkeypatch):
    point = EntryPoint("theirs", "a_package_that_is_gone:announce", registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    monkeypatch.setattr(registry, "_LOADED", set())
    with (
        pytest.warns(RuntimeWarning, match=r"\(theirs\) cannot be used: ModuleNotFoundError"),
        pytest.raises(UnsupportedModelError, match="expected a fitted Gaussian process"),
    ):
        gpattr.Explainer(Lacking())


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_the_command_without_its_packages(package):
    code = f"import sys; sys.modules['{package}'] = None; from gpattr.__main__ import main; main()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr == (
        f'The command line needs {package}, which is not installed: pip install "gpattr[cli]"\n'
    )


def test_the_command_with_them():
    run = subprocess.run(
        [sys.executable, "-m", "gpattr", "--version"], capture_output=True, text=True
    )
    assert run.stdout == f"gpattr {gpattr.__version__}\n", run.stderr


def test_import_needs_no_optional_package():
    """Nor do training, explaining and drawing."""
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {sorted(PACKAGES)}:\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "import numpy as np, gpattr\n"
        "X = np.random.default_rng(0).normal(size=(9, 2))\n"
        "model = gpattr.GPRegressor(verbose=1).fit(X, X[:, 0])\n"
        "ex = gpattr.Explainer(model)(X)\n"
        "ex.to_frame(), gpattr.datasets.sine_product(), gpattr.plots.bar(ex)\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )
    assert run.returncode == 0, run.stderr
    assert "training: hyperparameters of" in run.stderr


class Screen(list):
    """An error stream that is a terminal."""

    def isatty(self):
        return True

    def write(self, text):
        self.append(text)

    def flush(self):
        pass


def test_a_progress_line_is_drawn_over_itself(monkeypatch):
    screen, now = Screen(), iter([0.0, 5.0, 5.0, 5.01, 70.0, 70.0, 71.0])
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("gpattr._core.progress_line.monotonic", lambda: next(now))
    with ProgressLine("training") as line:
        line.update("a long beginning")
        line.update("too soon to be drawn")
        line.update("short")
    assert screen == [
        "\ra long beginning (0:00:05)",
        "\rshort (0:01:10)".ljust(27),
        "\rshort (0:01:11)",
        "\n",
    ]


def test_a_progress_line_without_a_terminal(monkeypatch, capsys):
    with ProgressLine("training") as line:
        line.update("done")
    assert capsys.readouterr().err == "done (0:00:00)\n"
    monkeypatch.setattr(sys, "stderr", None)
    with ProgressLine("training") as line:
        line.update("done")
