"""Folders that are written whole: what a killed run leaves is cleaned up, what a living one writes
is not.
"""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from gpattr.commands import output
from gpattr.commands.output import recover, require_outside, require_own, whole_folder
from gpattr.exceptions import InvalidInputError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no locks of folders")


RUN = """
import os, sys, time
from pathlib import Path
from gpattr.commands import output

path, where = Path(sys.argv[1]), sys.argv[2]

def there():
    print("there", flush=True)
    time.sleep(60)

def rename(source, target, real=os.rename):
    if where == "renaming" and Path(source).suffix == ".tmp":
        there()
    real(source, target)

output.os.rename = rename
with output.whole_folder(path, force=True) as folder:
    (folder / "report.html").write_text("new")
    (folder / "explanation.json.0a1b2c3d.tmp").write_text("half")
    if where == "writing":
        there()
"""


@contextmanager
def run(path, where):
    """A process that writes to ``path``, and has come so far."""
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(path), where], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "there\n"
            yield process
        finally:
            process.kill()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def killed(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_what_a_killed_run_leaves_is_removed_by_the_next(tmp_path):
    out = tmp_path / "out"
    with run(out, "writing") as process:
        killed(process)
    (left,) = names(tmp_path)
    assert left.endswith(".tmp")
    with whole_folder(out, force=False) as folder:
        (folder / "report.html").write_text("newer")
    assert names(tmp_path) == ["out"]
    assert (out / "report.html").read_text() == "newer"


def test_what_a_living_run_writes_is_left_alone(tmp_path):
    out = tmp_path / "out"
    with run(out, "writing") as process:
        (living,) = names(tmp_path)
        with whole_folder(out, force=False) as folder:
            (folder / "report.html").write_text("newer")
        recover(out)
        assert names(tmp_path) == ["out", living]
        killed(process)
    recover(out)
    assert names(tmp_path) == ["out"]


def test_the_old_result_comes_back_where_a_run_was_killed_while_it_replaced_it(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("old")
    with run(out, "renaming") as process:
        assert not out.exists()
        recover(out)  # the run lives
        assert not out.exists()
        killed(process)
    assert len(names(tmp_path)) == 2
    with pytest.raises(InvalidInputError, match="already exists"), whole_folder(out, force=False):
        pass
    assert names(tmp_path) == ["out"]
    assert (out / "report.html").read_text() == "old"


def test_nothing_else_is_removed(tmp_path):
    out = tmp_path / "out[1]"
    for name in (
        "out[1].1a2b3c4d.tmp",
        "out[1].1a2b3c4d.keep",
        "out[1].x.tmp",
        "out1.1a2b3c4d.tmp",
        "else.1a2b3c4d.tmp",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / "out[1].1a2b3c4d.tmp" / "thesis.txt").write_text("of years")
    (tmp_path / "out[1].11111111.tmp").write_text("a file")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out[1].22222222.tmp").symlink_to(tmp_path / "elsewhere")
    before = names(tmp_path)
    (tmp_path / "out[1].33333333.old").mkdir()
    (tmp_path / "out[1].33333333.old" / "report.html").write_text("old")
    out.mkdir()
    recover(out)
    assert names(tmp_path) == sorted([*before, "out[1]"])


def test_runs_to_the_same_place_at_the_same_time(tmp_path, monkeypatch):
    """Another run may come between the two renames; the last result stays, and none fails."""
    out, real, came = tmp_path / "out", os.rename, []

    def rename(source, target):
        if str(source).endswith(".tmp") and not came:
            came.append(source)
            out.mkdir()
            (out / "report.html").write_text("of the other")
        real(source, target)

    monkeypatch.setattr(output.os, "rename", rename)
    with whole_folder(out, force=True) as folder:
        (folder / "report.html").write_text("ours")
    assert came
    assert (out / "report.html").read_text() == "ours"
    assert names(tmp_path) == ["out"]
    with (
        pytest.raises(InvalidInputError, match="already exists"),
        whole_folder(tmp_path / "other", force=False),
    ):
        (tmp_path / "other").mkdir()
    assert names(tmp_path) == ["other", "out"]


def test_a_failure_brings_the_old_result_back(tmp_path, monkeypatch):
    out, real = tmp_path / "out", os.rename
    out.mkdir()
    (out / "report.html").write_text("old")

    def rename(source, target):
        if str(source).endswith(".tmp"):
            raise PermissionError("no")
        real(source, target)

    monkeypatch.setattr(output.os, "rename", rename)
    with pytest.raises(PermissionError), whole_folder(out, force=True) as folder:
        (folder / "report.html").write_text("new")
    assert (out / "report.html").read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_without_locks_nothing_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(output, "fcntl", None)
    (tmp_path / "out.1a2b3c4d.tmp").mkdir()
    with whole_folder(tmp_path / "out", force=False) as folder:
        (folder / "report.html").write_text("new")
    assert names(tmp_path) == ["out", "out.1a2b3c4d.tmp"]


def test_what_is_read_is_not_replaced(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "model.json").write_text("{}")
    with pytest.raises(InvalidInputError, match=r"contains model\.json, which is an input"):
        require_outside(folder, folder / "model.json")
    require_outside(folder, tmp_path / "table.csv")
    (folder / "row_1.png").mkdir()
    with pytest.raises(
        InvalidInputError, match=r"contains files not written by gpattr, such as row_1\.png"
    ):
        require_own(folder)


def test_a_folder_of_another_version_is_recognised(tmp_path):
    """By its list, whatever its files are called; of a folder without one, by their names."""
    out = tmp_path / "out"
    with whole_folder(out, force=False) as folder:
        (folder / "report.html").write_text("new")
        (folder / "made by a newer version.bin").write_bytes(b"")
    with whole_folder(out, force=True) as folder:
        (folder / "report.html").write_text("newer")
    assert names(out) == [".gpattr", "report.html"]
    (out / "made by a newer version.bin").write_bytes(b"")
    with pytest.raises(InvalidInputError, match="such as made by a newer version"):
        require_own(out)
    (out / "made by a newer version.bin").unlink()
    (out / ".gpattr").unlink()
    require_own(out)
