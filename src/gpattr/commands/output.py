"""An output folder that is written completely or not at all.

It is written under a temporary name beside its own, ``out.1a2b3c4d.tmp``, and then renamed; the
folder it replaces is called ``out.5e6f7a8b.old`` in between. A run holds a lock on both as long as
it lives. The remains of a killed run have no lock: the next run to the same folder removes them, or
restores the old result if nothing else is left. Without locks (on Windows, or if the file system
does not support them) nothing is removed.
"""

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
except ImportError:  # not available on Windows
    fcntl = None

LIST = ".gpattr"  # of the files that were written, by which any version knows them
ALL = "*"  # in a list: every file
# Names of files in folders of versions without such a list, which do not change any more.
OWN = re.compile(
    r"\.gpattr|(explanation|model|manifest)\.json|(attributions|importance|dependence|sobol)\.csv|"
    r"attributions\.(csv\.gz|parquet)|report\.html|"
    r"((importance|beeswarm|dependence|sobol)(_\w+)?|heatmap|row_.*)\.png"
)
UNFINISHED = r"(\.[0-9a-f]{8}\.tmp)?"  # ending of a file that was being written
PARTS, PART = "parts", r"part-\d{5,}\.parquet"  # of a table that is explained in parts
RETRIES = 100  # of a rename, if another run to the same folder came first


def require_new(path: Path, force: bool) -> None:
    """Refuse to overwrite something, unless ``force`` is set."""
    if path.exists() and not force:
        raise InvalidInputError(
            f"{path}: already exists; choose another name, or overwrite it with --force"
        )


def require_own(path: Path) -> None:
    """Refuse to replace a folder with files that no earlier run wrote."""
    if path.exists() and not path.is_dir():
        raise InvalidInputError(f"{path}: expected a folder, got a file")
    listed = _listed(path)
    others = sorted(inside.name for inside in path.glob("*") if not _is_own(inside, listed))
    if others:
        raise InvalidInputError(
            f"{path}: contains files not written by gpattr, such as {others[0]}; choose another"
            " folder"
        )


def require_not(path: Path, data: Path) -> None:
    """Refuse to overwrite the input."""
    if path.resolve() == data.resolve():
        raise InvalidInputError(f"{path}: would overwrite the input; choose another name")


def require_outside(path: Path, used: Path) -> None:
    """Refuse to replace a folder that contains an input."""
    if path.resolve() in used.resolve().parents:
        raise InvalidInputError(
            f"{path}: contains {used.name}, which is an input; choose another folder with --out"
        )


def recover(path: Path) -> None:
    """Remove the remains of killed runs beside ``path``; restore a result that one replaced."""
    path = path.resolve()
    for left in sorted(path.parent.glob(f"{_literal(path.name)}.????????.*")):
        kind = re.fullmatch(re.escape(path.name) + r"\.[0-9a-f]{8}\.(tmp|old)", left.name)
        if kind is None or left.is_symlink() or not left.is_dir():
            continue
        with ExitStack() as stack, contextlib.suppress(OSError):
            if not stack.enter_context(locked(left)) or not _only_own(left):
                continue
            if kind[1] == "old" and not path.exists():
                os.rename(left, path)
            else:
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def whole_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary folder, which becomes ``path`` once everything in it has been written."""
    path = path.resolve()
    recover(path)
    require_new(path, force)
    require_own(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        temporary = _new_folder(path, stack)
        try:
            (temporary / LIST).write_text(ALL)  # of a run that is killed, everything
            yield temporary
            list_files(temporary)
            require_new(path, force)  # another run may have written it in the meantime
            _replace(path, temporary)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _replace(path: Path, temporary: Path) -> None:
    """Rename ``temporary`` to ``path`` and remove the old folder, whatever other runs do."""
    for _ in range(RETRIES):
        old = _beside(path, "old")
        with ExitStack() as stack:
            try:
                with contextlib.suppress(FileNotFoundError):
                    stack.enter_context(locked(path))
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
    raise InvalidInputError(f"{path}: other runs are writing to it; choose another name")


def _new_folder(path: Path, stack: ExitStack) -> Path:
    """Return a new folder, locked until the stack is closed."""
    while True:
        temporary = _beside(path, "tmp")
        temporary.mkdir()
        with contextlib.suppress(FileNotFoundError):  # removed by another run before it is locked
            stack.enter_context(locked(temporary, wait=True))
            if temporary.exists():
                return temporary


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.{ending}")


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[bool]:
    """Lock a folder if no other run holds it; yield whether. Locks end with the process."""
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


def list_files(folder: Path) -> None:
    """Write the list of the files in a folder, which has only files of gpattr."""
    names = sorted(inside.name for inside in folder.iterdir() if inside.is_file())
    (folder / LIST).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def _listed(folder: Path) -> frozenset[str]:
    """Return the names in the list of a folder; none for earlier versions."""
    try:
        return frozenset((folder / LIST).read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError):
        return frozenset()


def _is_own(path: Path, listed: frozenset[str], ending: str = "") -> bool:
    """Return whether gpattr has written a file, perhaps with another ``ending``, or its parts."""
    if listed & {path.name, ALL} or re.fullmatch(f"({OWN.pattern}){ending}", path.name):
        return path.is_file()
    return _is_parts(path)


def _only_own(folder: Path) -> bool:
    listed = _listed(folder)
    return all(_is_own(inside, listed, UNFINISHED) for inside in folder.iterdir())


def _is_parts(folder: Path) -> bool:
    """Return whether it is a folder of the parts of a table, and of nothing else."""
    return (
        folder.name == PARTS
        and folder.is_dir()
        and not folder.is_symlink()
        and all(
            re.fullmatch(PART + UNFINISHED, inside.name) and inside.is_file()
            for inside in folder.iterdir()
        )
    )


def _literal(name: str) -> str:
    """Return a `Path.glob` pattern that matches exactly this name."""
    return re.sub(r"([*?\[])", r"[\1]", name)
