"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from os import PathLike


def write_whole(content: bytes, path: str | PathLike[str]) -> None:
    """Write a file under a temporary name, then rename it, so that readers never see half of it."""
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
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
