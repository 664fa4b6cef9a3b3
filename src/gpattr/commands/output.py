"""A folder that is written whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpattr.exceptions import InvalidInputError

OWN = re.compile(
    r"(explanation|model)\.json|(attributions|importance)\.csv|attributions\.parquet|report\.html|"
    r"((importance|beeswarm)(_\w+)?|heatmap|row_.*)\.png"
)


def require_new(path: Path, force: bool) -> None:
    """Refuse to write over something, unless that is wanted."""
    if path.exists() and not force:
        raise InvalidInputError(f"{path}: exists already; choose another name, or write over it with --force")


def require_own(path: Path) -> None:
    """Refuse to replace a folder that holds anything but what an earlier run wrote."""
    if path.exists() and not path.is_dir():
        raise InvalidInputError(f"{path}: expected a folder, got a file")
    others = sorted(inside.name for inside in path.glob("*") if not OWN.fullmatch(inside.name))
    if others:
        raise InvalidInputError(f"{path}: has other files than gpattr's, such as {others[0]}; choose a folder of its own")


def require_not(path: Path, data: Path) -> None:
    """Refuse to write over what is read."""
    if path.resolve() == data.resolve():
        raise InvalidInputError(f"{path}: is the table itself; choose another name")


@contextmanager
def whole_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a folder beside the one that is wanted, which takes its place when everything in it has been written."""
    path = path.resolve()
    require_new(path, force)
    require_own(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    temporary.mkdir()
    try:
        yield temporary
        old = path.with_name(f"{path.name}.{secrets.token_hex(4)}.old")
        if path.exists():
            os.replace(path, old)
        os.replace(temporary, path)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
