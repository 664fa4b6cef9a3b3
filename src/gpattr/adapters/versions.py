"""Versions of libraries whose models are read from attributes that are not all public."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from gpattr.exceptions import GpattrError, UnsupportedModelError


@contextmanager
def reading(package: str, oldest: str, newest: str) -> Iterator[None]:
    """Raise `UnsupportedModelError` for a version of a package whose models cannot be read.

    ``oldest`` and ``newest`` are the versions, such as "0.15", that adapters were tested with. A
    newer one is tried, as models are compared with their own predictions; what it lacks is said.
    """
    try:
        installed = version(package)
    except PackageNotFoundError:
        installed = ""
    known = f"version {oldest} works" if oldest == newest else f"versions {oldest} to {newest} work"
    works = f"{known}, {installed or 'an unknown one'} is installed"
    if installed and _parts(installed) < _parts(oldest):
        raise UnsupportedModelError(f"model: this version of {package} is too old; {works}")
    try:
        yield
    except GpattrError:
        raise
    except (AttributeError, ImportError, KeyError) as error:
        if installed and _parts(installed)[: len(_parts(newest))] > _parts(newest):
            raise UnsupportedModelError(
                f"model: this version of {package} is too new, and its models could not be read"
                f" ({error}); {works}"
            ) from error
        raise


def _parts(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version."""
    numbers = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)
