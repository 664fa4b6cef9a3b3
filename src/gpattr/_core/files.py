"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from os import PathLike


def write_whole(content: bytes, path: str | PathLike[str], *, durable: bool = False) -> None:
    """Write a file under a temporary name, then rename it, so that readers never see half of it.

    A ``durable`` one is on the disk when this returns, and before it has its name: not even after
    the machine has failed is there half of it.
    """
    target = os.path.abspath(os.fspath(path))
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(
            f"{os.fspath(path)}: the folder {os.path.dirname(target)} does not exist"
        )
    temporary = f"{target}.{secrets.token_hex(4)}.tmp"
    # The umask applies, as to any file.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if durable:
        sync_folder(os.path.dirname(target))


def sync_folder(folder: str | PathLike[str]) -> None:
    """Write the names in a folder to the disk, where the system lets us."""
    with contextlib.suppress(OSError):  # folders cannot be opened on Windows
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
