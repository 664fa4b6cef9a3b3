"""Sources of published tables: a given folder, the cache, or the official archive, all verified.

The official archive is a zip file whose checksum may change if it is repacked, so the table itself
is verified: its shape and a digest of its values to ten significant digits, which is the same for a
spreadsheet and its CSV export.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

import numpy as np
import pandas as pd

from gpattr._core.files import write_whole
from gpattr._core.optional import optional
from gpattr._core.progress_line import ProgressLine
from gpattr.exceptions import DatasetError, InvalidInputError, OptionalPackageError

if TYPE_CHECKING:
    from sklearn.utils import Bunch

FOLDER_VARIABLE = "GPATTR_DATA_DIR"
BY_HAND = (
    "or save it to a folder and set data_home= (--data-home) to that folder, or the environment"
    f" variable {FOLDER_VARIABLE}"
)
LICENCE = "CC BY 4.0"
LARGEST = 1 << 24  # bytes; the largest table has about 250 000


@dataclass(frozen=True)
class Source:
    """One table: its archive, the names of its file, how to read it, and its shape and digest."""

    url: str
    names: tuple[str, ...]
    read: Callable[[str, bytes], pd.DataFrame]
    shape: tuple[int, int]
    digest: str

    def load(self, data_home: str | PathLike[str] | None = None) -> pd.DataFrame:
        """Return the verified table from ``data_home``, ``GPATTR_DATA_DIR``, cache or archive."""
        if data_home is not None and not isinstance(data_home, (str, PathLike)):
            raise InvalidInputError(f"data_home: expected the path of a folder, got {data_home!r}")
        argument, folder = (
            ("data_home", data_home)
            if data_home
            else (FOLDER_VARIABLE, os.environ.get(FOLDER_VARIABLE))
        )
        if not folder:
            return self._from_cache()
        try:
            return self._from_folder(argument, Path(os.fsdecode(folder)).expanduser())
        except OSError as error:
            if isinstance(error, DatasetError):
                raise
            raise DatasetError(
                f"{argument}: cannot read {self.names[0]!r} in {os.fsdecode(folder)!r}: {error}"
            ) from None

    def _from_folder(self, argument: str, folder: Path) -> pd.DataFrame:
        """Read the file from a folder, unpacked or in its archive; nothing is written there."""
        if not folder.is_dir():
            raise DatasetError(
                f"{argument}: expected a folder with {self.names[0]!r}, but {str(folder)!r} is not"
                " a folder"
            )
        packed = self.url.rsplit("/", 1)[1]
        for name in (*self.names, packed, unquote_plus(packed)):
            path = folder / name
            if path.is_file():
                if path.suffix != ".zip":
                    return self._verified(str(path), name, path.read_bytes())
                return self._verified(str(path), *self._unpacked(path))
        raise DatasetError(
            f"{argument}: expected one of {[*self.names, packed]} in {str(folder)!r}, found"
            f" none; it is published at {self.url}"
        )

    def _from_cache(self) -> pd.DataFrame:
        """Read the file from the user's cache; download it first if it is missing or incomplete."""
        pooch = optional("pooch", "Downloading data sets")
        cache = Path(pooch.os_cache("gpattr"))
        kept = cache / self.names[0]
        with suppress(OSError, DatasetError):  # missing or incomplete: downloaded below
            return self._verified(str(kept), kept.name, kept.read_bytes())
        with tempfile.TemporaryDirectory() as folder:
            packed = Path(folder) / "archive.zip"
            _download(self.url, packed)
            name, content = self._unpacked(packed, self.url)
        table = self._verified(self.url, name, content)
        _keep(content, kept)
        return table

    def _unpacked(self, path: Path, origin: str | None = None) -> tuple[str, bytes]:
        """Return the name and the content of this table's file in an archive."""
        try:
            with zipfile.ZipFile(path) as archive:
                inside = [
                    member
                    for member in archive.infolist()
                    if not member.is_dir() and "__MACOSX" not in member.filename
                ]
                for member in inside:
                    name = Path(member.filename).name
                    if name in self.names and member.file_size <= LARGEST:
                        return name, archive.read(member)
        except Exception as error:  # zipfile raises many kinds
            raise DatasetError(
                f"{origin or path}: expected a zip file, but it cannot be unpacked: {error}"
            ) from None
        found = [member.filename for member in inside[:10]]
        raise DatasetError(
            f"{origin or path}: expected {self.names[0]!r} in the archive, of at most"
            f" {LARGEST >> 20} MiB, got {found}"
        )

    def _verified(self, origin: str, name: str, content: bytes) -> pd.DataFrame:
        """Return the table if its values are the published ones."""
        try:
            table = self.read(name, content)
        except OptionalPackageError:
            raise
        except Exception as error:  # parsers raise many kinds
            raise DatasetError(
                f"{origin}: expected the published table, but it cannot be read: {error}"
            ) from None
        if table.shape != self.shape:
            raise DatasetError(
                f"{origin}: expected {self.shape} rows and columns, got {table.shape}; the file was"
                " altered"
            )
        if digest(table) != self.digest:
            raise DatasetError(
                f"{origin}: the values differ from the published ones; the file was altered"
            )
        return table


def as_bunch(
    frame: pd.DataFrame,
    features: list[str],
    target: str,
    *,
    units: dict[str, str],
    about: str,
    source: str,
) -> Bunch:
    """Return frame, data and target with names, units, description, source and licence."""
    from sklearn.utils import Bunch

    words: dict[str, Any] = {
        "units": dict(units),
        "description": about,
        "DESCR": about,
        "source": source,
        "licence": LICENCE,
    }
    names = list(features)
    return Bunch(
        frame=frame,
        data=frame[names],
        target=frame[target],
        feature_names=names,
        target_name=target,
        **words,
    )


def digest(table: pd.DataFrame) -> str:
    """Return the SHA-256 of a table's values, with numbers to ten significant digits."""
    rows = table.to_numpy(object)
    lines = (
        ",".join(f"{v:.10g}" if isinstance(v, (int, float, np.number)) else str(v) for v in row)
        for row in rows
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class Bar:
    """Progress of a download, for pooch, on the error stream if that is a terminal.

    It is for use in a ``with`` block. ``total`` is the number of bytes that are expected, None
    while it is unknown; ``done`` is how many came.
    """

    def __init__(self, title: str) -> None:
        self.total: float | None = None
        self.done = 0.0
        self._title = title
        self._line = ProgressLine(title, terminal_only=True)

    def update(self, size: float) -> None:
        """Add this many bytes."""
        self.done += size
        of = f" of {self.total / 1e6:.1f}" if self.total else ""
        self._line.update(f"{self._title}: {self.done / 1e6:.1f}{of} MB")

    def reset(self) -> None:
        """Count from zero again; pooch then adds the true total."""
        self.done = 0.0

    def close(self) -> None:
        """Do nothing: the ``with`` block ends the line, even if a download fails."""

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: Any) -> None:
        self._line.__exit__()


def _download(url: str, path: Path) -> None:
    """Download a URL to a new file, with a progress bar on a terminal."""
    pooch = optional("pooch", "Downloading data sets")
    requests = optional("requests", "Downloading data sets")
    with Bar(f"Downloading {unquote_plus(url.rsplit('/', 1)[1])}") as bar:
        try:
            shown: Any = bar  # pooch takes a bar of one's own, which its types do not say
            pooch.HTTPDownloader(progressbar=shown, timeout=60)(url, path, None)
        except (requests.RequestException, ValueError) as error:  # ValueError: an invalid answer
            reason = (
                "no connection"
                if isinstance(error, requests.ConnectionError)
                else str(error).rstrip(".")
            )
            raise DatasetError(
                f"Cannot download {url}: {reason}. Try again later, {BY_HAND}."
            ) from None


def _keep(content: bytes, path: Path) -> None:
    """Save a file to the cache, if that can be written to."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(content, path)
