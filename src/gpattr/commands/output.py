"""A folder that is written whole or not at all.

It is written under another name beside its own, ``out.1a2b3c4d.tmp``, and then renamed; what it
replaces is called ``out.5e6f7a8b.old`` for the moment between. A run holds a lock on both as long
as it lives. What a killed run leaves has none: the next run to the same place removes it, or puts
the old result back if that was all there is. Without locks (on Windows, or where the file system
has none) nothing is removed."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from gpattr.exceptions import InvalidInputError

try:
    import fcntl
except ImportError:  # there is none on Windows
    fcntl = None

OWN = re.compile(
    r"(explanation|model)\.json|(attributions|importance)\.csv|attributions\.(csv\.gz|parquet)|report\.html|"
    r"((importance|beeswarm)(_\w+)?|heatmap|row_.*)\.png"
)
UNFINISHED = r"(\.[0-9a-f]{8}\.tmp)?"  # of a file that was being written
RETRIES = 100  # of a rename that another run to the same place came before


def require_new(path: Path, force: bool) -> None:
    """Refuse to write over something, unless that is wanted."""
    if path.exists() and not force:
        raise InvalidInputError(
            f"{path}: exists already; choose another name, or write over it with --force"
        )


def require_own(path: Path) -> None:
    """Refuse to replace a folder that holds anything but what an earlier run wrote."""
    if path.exists() and not path.is_dir():
        raise InvalidInputError(f"{path}: expected a folder, got a file")
    others = sorted(
        inside.name
        for inside in path.glob("*")
        if not OWN.fullmatch(inside.name) or not inside.is_file()
    )
    if others:
        raise InvalidInputError(
            f"{path}: has other files than gpattr's, such as {others[0]}; choose a folder of"
            " its own"
        )


def require_not(path: Path, data: Path) -> None:
    """Refuse to write over what is read."""
    if path.resolve() == data.resolve():
        raise InvalidInputError(f"{path}: is what is read; choose another name")


def require_outside(path: Path, used: Path) -> None:
    """Refuse to replace a folder that holds what is read."""
    if path.resolve() in used.resolve().parents:
        raise InvalidInputError(
            f"{path}: holds {used.name}, which is used; choose another folder with --out"
        )


def recover(path: Path) -> None:
    """Remove what killed runs left beside ``path``; where one was killed while it replaced the old
    result, put that back.
    """
    path = path.resolve()
    for left in sorted(path.parent.glob(f"{_literal(path.name)}.????????.*")):
        kind = re.fullmatch(re.escape(path.name) + r"\.[0-9a-f]{8}\.(tmp|old)", left.name)
        if kind is None or left.is_symlink() or not left.is_dir():
            continue
        with ExitStack() as stack, contextlib.suppress(OSError):
            if not stack.enter_context(_locked(left)) or not _only_own(left):
                continue
            if kind[1] == "old" and not path.exists():
                os.rename(left, path)
            else:
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def whole_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a folder beside the one that is wanted, which takes its place when everything in it has
    been written.
    """
    path = path.resolve()
    recover(path)
    require_new(path, force)
    require_own(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        temporary = _new_folder(path, stack)
        try:
            yield temporary
            require_new(path, force)  # another run may have written it meanwhile
            _replace(path, temporary)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _replace(path: Path, temporary: Path) -> None:
    """Rename ``temporary`` to ``path``, and remove what was there; a run to the same place at the
    same time may come between.
    """
    for _ in range(RETRIES):
        old = _beside(path, "old")
        with ExitStack() as stack:
            try:
                with contextlib.suppress(FileNotFoundError):
                    stack.enter_context(_locked(path))
                    os.rename(path, old)
                os.rename(temporary, path)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    continue
                raise
            finally:
                if old.exists() and not path.exists():
                    os.rename(old, path)
                shutil.rmtree(old, ignore_errors=True)
        return
    raise InvalidInputError(f"{path}: is being written by other runs; choose another name")


def _new_folder(path: Path, stack: ExitStack) -> Path:
    """Return a new folder that is locked until the stack is left."""
    while True:
        temporary = _beside(path, "tmp")
        temporary.mkdir()
        with contextlib.suppress(
            FileNotFoundError
        ):  # another run may take it for a dead one's before it is locked
            stack.enter_context(_locked(temporary, wait=True))
            if temporary.exists():
                return temporary


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.{ending}")


@contextmanager
def _locked(folder: Path, *, wait: bool = False) -> Iterator[bool]:
    """Lock a folder that no living run holds, and yield whether that could be done; the end of a
    process ends its locks.
    """
    if fcntl is None:
        yield False
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            locked = True
        except OSError:
            locked = False
        yield locked
    finally:
        os.close(handle)


def _only_own(folder: Path) -> bool:
    return all(
        re.fullmatch(f"({OWN.pattern}){UNFINISHED}", inside.name) for inside in folder.iterdir()
    )


def _literal(name: str) -> str:
    """Return a pattern of `Path.glob` that means this name."""
    return re.sub(r"([*?\[])", r"[\1]", name)
