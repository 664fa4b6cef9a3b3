"""What an installed gpattr must do, without the tools of the tests: ``python tests/smoke.py``.

With ``core`` the command line is left out, which needs the extra cli.
"""

import csv
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor

import gpattr

ROOT = Path(__file__).resolve().parents[1]


def first_example() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    exec(code[1], {})


def scikit_learn() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = GaussianProcessRegressor(alpha=1e-3).fit(X, np.sin(X[:, 0]))
    ex = gpattr.Explainer(model, baseline="zeros")(X[:5])
    np.testing.assert_allclose(ex.values.sum(axis=1), ex.predictions - ex.base_values, atol=1e-8)


def command_line() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open(folder / "houses.csv", "w", newline="", encoding="utf-8") as file:
            rows = ((area, area % 7, 3 * area + area % 7) for area in range(40, 80))
            csv.writer(file).writerows([("area", "age", "price"), *rows])
        command("demo", "--quiet", "--out", str(folder / "demo"))
        command("explain", str(folder / "houses.csv"), "--target=price", f"--out={folder / 'out'}")
        for made in ("demo/report.html", "demo/attributions.png", "out/report.html"):
            assert (folder / made).stat().st_size > 10_000, made


def command(*words: str) -> None:
    script = Path(sysconfig.get_path("scripts")) / "gpattr"
    subprocess.run([str(script), *words], check=True)


if __name__ == "__main__":
    assert ROOT / "src" not in Path(gpattr.__file__).parents, "not the installed gpattr"
    first_example()
    scikit_learn()
    if sys.argv[1:] != ["core"]:
        command_line()
