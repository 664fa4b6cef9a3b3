"""Packages that not everybody has: imported where they are used, with one sentence if they fail."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from gpattr.exceptions import OptionalPackageError

# The package that is imported -> (its name for pip, the extra of gpattr that installs it).
PACKAGES = {
    "anywidget": ("anywidget", "widget"),
    "dask": ("dask", "dask"),
    "distributed": ("distributed", "dask"),
    "duckdb": ("duckdb", "duckdb"),
    "interpret": ("interpret-core", "interpret"),
    "openpyxl": ("openpyxl", "excel"),
    "polars": ("polars", "polars"),
    "pooch": ("pooch", "datasets"),
    "pyarrow": ("pyarrow", "parquet"),
    "pyspark": ("pyspark", "spark"),
    "ray": ("ray", "ray"),
    "requests": ("requests", "datasets"),
    "rich": ("rich", "cli"),
    "shap": ("shap", "shap"),
    "torch": ("torch", "torch"),
    "typer": ("typer", "cli"),
    "xarray": ("xarray", "xarray"),
}


def optional(module: str, what: str) -> Any:
    """Import an optional module, one of `PACKAGES` or inside one.

    ``what`` needs it is the subject of the sentence if it is missing, too old, or broken.
    """
    package = module.partition(".")[0]
    name, extra = PACKAGES[package]
    try:
        found = import_module(module)
    except Exception as error:  # whatever a broken package raises while it is imported
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            raise OptionalPackageError(
                f'{what} needs {name}, which is not installed: pip install "gpattr[{extra}]"'
            ) from None
        named = f"{name} {installed_version(name)}".rstrip()
        reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        raise OptionalPackageError(
            f"{what} needs {name}, and the installed {named} cannot be imported ({reason});"
            f" reinstall it: pip install --upgrade --force-reinstall {name}"
        ) from error
    installed, oldest = installed_version(name), _oldest(name, extra)
    if installed and version_numbers(installed) < version_numbers(oldest):
        raise OptionalPackageError(
            f"{what} needs {name} {oldest} or newer, and {installed} is installed:"
            f' pip install --upgrade "gpattr[{extra}]"'
        )
    return found


def is_usable(module: str) -> bool:
    """Return whether an optional module can be imported."""
    try:
        optional(module, module)
    except OptionalPackageError:
        return False
    return True


def installed_version(name: str) -> str:
    """Return the installed version of a package, by its name for pip; "" if it is not known."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a release, such as (2, 1, 0) for 2.1.0rc1."""
    release = re.match(r"[\d.]*\d", text)
    return tuple(int(part) for part in release[0].split(".")) if release else ()


@cache
def _oldest(name: str, extra: str) -> str:
    """Return the oldest version that an extra of gpattr allows; "" if it names none."""
    try:
        stated = requires("gpattr") or []
    except PackageNotFoundError:  # run from its source, without an installation
        stated = []
    pattern = rf"""{re.escape(name)}(?:\[.*\])?.*>=([\d.]+).*extra == ['"]{extra}['"]"""
    bounds = (re.match(pattern, line) for line in stated)
    return next((bound[1] for bound in bounds if bound), "")
