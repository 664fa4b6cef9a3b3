"""``gpattr info``: versions, and the installed libraries."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gpattr import __version__
from gpattr.adapters.documentation_tables import LIBRARIES, models_of

PARTS = (
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "matplotlib",
    "torch",
    "jax",
    "shap",
    "xarray",
    "pyarrow",
    "anywidget",
)
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def information() -> dict[str, Any]:
    """Return versions, None for libraries that are not installed, and the supported models."""
    models = {
        library: {
            "installed": _version(DISTRIBUTIONS.get(package, package)),
            "models": models_of(package),
        }
        for library, (package, *_) in LIBRARIES.items()
    }
    return {
        "gpattr": __version__,
        "python": platform.python_version(),
        "parts": {p: _version(p) for p in PARTS},
        "models": models,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
