"""Versions of libraries whose models are read from attributes that are not all public."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpattr._core.optional import installed_version, version_numbers
from gpattr.exceptions import GpattrError, UnsupportedModelError


@contextmanager
def reading(package: str, oldest: str, newest: str) -> Iterator[None]:
    """Raise `UnsupportedModelError` for a version of a package whose models cannot be read.

    ``oldest`` and ``newest`` are the versions, such as "0.15", that adapters were tested with. A
    newer one is tried, as models are compared with their own predictions; what it lacks is said.
    """
    installed = installed_version(package)
    known = f"version {oldest} works" if oldest == newest else f"versions {oldest} to {newest} work"
    works = f"{known}, {installed or 'an unknown one'} is installed"
    if installed and version_numbers(installed) < version_numbers(oldest):
        raise UnsupportedModelError(f"model: this version of {package} is too old; {works}")
    try:
        yield
    except GpattrError:
        raise
    except (AttributeError, ImportError, KeyError) as error:
        if installed and _newer(installed, newest):
            raise UnsupportedModelError(
                f"model: this version of {package} is too new, and its models could not be read"
                f" ({error}); {works}"
            ) from error
        raise


def _newer(installed: str, newest: str) -> bool:
    """Return whether a version is newer than a release, with as many numbers, was tested."""
    known = version_numbers(newest)
    return version_numbers(installed)[: len(known)] > known
