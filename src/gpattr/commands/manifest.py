"""The manifest of a table that is explained in parts: its origin, and the finished parts.

It is rewritten, whole, after every part, so that a run that is killed goes on from there. A part
that it lists has been on the disk before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpattr import __version__
from gpattr._core import documents
from gpattr._core.files import write_whole
from gpattr.commands.output import PARTS
from gpattr.exceptions import InvalidInputError

NAME = "manifest.json"
FORMAT = "gpattr.explained_parts"


@dataclass
class Manifest:
    """Contents of ``folder``: a table explained in ``parts``, with ``options``, by a ``model``.

    ``stamps`` identify the files of the table. ``model`` is the digest of its file, "" as long as
    it is not trained. ``done`` are facts on the finished parts by their numbers, and ``finished``
    whether everything is there.
    """

    folder: Path
    stamps: Mapping[str, Any]
    parts: int
    options: Mapping[str, Any]
    model: str = ""
    done: dict[int, dict[str, Any]] = field(default_factory=dict)
    finished: bool = False

    @classmethod
    def load(cls, folder: Path) -> Manifest | None:
        """Return the manifest of a folder; None if there is none."""
        if not (folder / NAME).exists():
            return None

        def build(content: Any) -> Manifest:
            known, options, model = (content[name] for name in ("input", "options", "model"))
            done = {int(facts["part"]): facts for facts in content["parts"]}
            found = cls(folder, known["stamps"], known["parts"], options, model, done)
            found.finished = content["finished"]
            return found

        return documents.read(FORMAT, folder / NAME, build)

    def save(self) -> None:
        """Write it to its folder."""
        content = {
            "gpattr": __version__,
            "input": {"stamps": dict(self.stamps), "parts": self.parts},
            "model": self.model,
            "options": dict(self.options),
            "finished": self.finished,
            "parts": [self.done[number] for number in sorted(self.done)],
        }
        documents.write(FORMAT, content, self.folder / NAME, durable=True)

    def add(self, content: bytes, facts: dict[str, Any]) -> None:
        """Write a part, and then the manifest that lists it."""
        number = facts["part"]
        write_whole(content, self.part(number), durable=True)
        self.done[number] = facts | {"file": self.part(number).name}
        self.save()

    def part(self, number: int) -> Path:
        """Return the file of a part."""
        return self.folder / PARTS / f"part-{number:05d}.parquet"

    def forget_damaged(self) -> list[int]:
        """Forget parts whose files have changed since they were written; return their numbers."""
        damaged = []
        for number, facts in sorted(self.done.items()):
            try:
                content = self.part(number).read_bytes()
            except OSError:
                content = b""
            if hashlib.sha256(content).hexdigest() != facts["sha256"]:
                damaged.append(number)
                del self.done[number]
        return damaged

    def missing(self) -> list[int]:
        """Return the numbers of the parts that are not done."""
        return [number for number in range(self.parts) if number not in self.done]

    def differences(
        self, stamps: Mapping[str, Any], options: Mapping[str, Any], model: str
    ) -> list[str]:
        """Return the changes in words; ``model`` is "" for one that is trained here."""
        found = _of_files(self.stamps, stamps)
        if model and model != self.model:
            found.append("--model (another model)")
        for name in dict.fromkeys((*self.options, *options)):
            before, now = self.options.get(name), options.get(name)
            if before != now:
                found.append(f"{name} ({_shown(before)} before, {_shown(now)} now)")
        return found


def refuse_other(path: Path, differences: list[str]) -> None:
    """Refuse to go on with parts that were made of something else."""
    if differences:
        raise InvalidInputError(
            f"{path}: contains parts of another run, which differs in {'; '.join(differences)};"
            " choose another folder with --out, or start again with --force"
        )


def _of_files(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return how the files of the table differ, in words."""
    for name, (size, changed, ends) in now.items():
        if name not in before:
            return [f"the data ({name} was not there)"]
        old = before[name]
        if old[0] != size:
            return [f"the data ({name} had {old[0]:,} bytes and has {size:,} now)"]
        if old[2] != ends:
            return [f"the data (other content of {name})"]
        if old[1] != changed:
            return [f"the data ({name} was written again)"]
    gone = [name for name in before if name not in now]
    return [f"the data ({gone[0]} is gone)"] if gone else []


def _shown(value: Any) -> str:
    if value is None or value == []:
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
