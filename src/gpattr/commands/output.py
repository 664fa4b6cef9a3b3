"""A folder that is written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpattr.exceptions import InvalidInputError


def require_new(path: Path, force: bool) -> None:
    """Refuse to write over something, unless that is wanted."""
    if path.exists() and not force:
        raise InvalidInputError(f"{path}: exists already; choose another name, or write over it with --force")


@contextmanager
def whole_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a folder beside the one that is wanted, which takes its place when everything in it has been written."""
    require_new(path, force)
    if path.exists() and not path.is_dir():
        raise InvalidInputError(f"{path}: expected a folder, got a file")
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
