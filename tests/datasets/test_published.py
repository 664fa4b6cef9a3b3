"""The published tables: what they hold, and what becomes of files that are missing, broken or
altered.
"""

import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pooch
import pytest

from gpattr import datasets
from gpattr.datasets import archive, breast_cancer_prognostic, taipei_housing, wine_quality
from gpattr.exceptions import DatasetError, InvalidInputError

LOADERS = {
    "winequality-red.csv": lambda **o: datasets.load_wine_quality("red", **o),
    "winequality-white.csv": lambda **o: datasets.load_wine_quality("white", **o),
    "real_estate_valuation.csv": datasets.load_taipei_housing,
    "wpbc.data": datasets.load_breast_cancer_prognostic,
}
MODULES = {"wine": wine_quality, "real": taipei_housing, "wpbc": breast_cancer_prognostic}


@pytest.fixture(params=LOADERS)
def case(request, data_folder):
    """The content of one file as it is published, and its loader."""
    return request.param, (data_folder / request.param).read_bytes(), LOADERS[request.param]


def packed(name: str, content: bytes) -> bytes:
    """An archive like the official one: the housing data are a spreadsheet there, with the months
    as twelfths of a year.
    """
    stream = io.BytesIO()
    if name.startswith("real"):
        table = pd.read_csv(io.BytesIO(content))
        table["date"] = (table["date"] * 12).round() / 12
        table.columns = ["No", *(f"X{i}" for i in range(1, 7)), "Y house price of unit area"]
        name, sheet = "Real estate valuation data set.xlsx", io.BytesIO()
        table.to_excel(sheet, index=False)
        content = sheet.getvalue()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("Index", "what else is there")
        file.writestr(f"folder/{name}", content)
    return stream.getvalue()


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A web server of our own, an empty cache, and no folder of data: {path: answer}, and the paths
    that were asked for.
    """
    answers: dict[str, bytes | tuple[int, bytes]] = {}
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            answer = answers.get(self.path)
            if answer is None:
                self.send_error(404)
                return
            size, body = answer if isinstance(answer, tuple) else (len(answer), answer)
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    for module in MODULES.values():
        monkeypatch.setattr(
            module, "URL", f"http://127.0.0.1:{http.server_port}/{module.URL.rsplit('/', 1)[1]}"
        )
    monkeypatch.delenv("GPATTR_DATA_DIR", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    yield answers, asked
    http.shutdown()
    thread.join()
    http.server_close()


def path_of(name: str) -> str:
    module = next(module for start, module in MODULES.items() if name.startswith(start))
    return "/" + module.URL.rsplit("/", 1)[1]


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("load", "rows", "d", "target"),
    [
        (lambda: datasets.load_wine_quality(), 1599, 11, "quality"),
        (lambda: datasets.load_wine_quality("white"), 4898, 11, "quality"),
        (datasets.load_taipei_housing, 414, 6, "price per area"),
        (datasets.load_breast_cancer_prognostic, 198, 30, "time"),
    ],
)
def test_the_tables_as_scikit_learn_would_return_them(data_folder, load, rows, d, target):
    data = load()
    assert data.data.shape == (rows, d)
    assert list(data.data.columns) == data.feature_names
    assert data.target.name == data.target_name == target
    assert data.frame.index.is_unique
    assert data.frame[data.feature_names].equals(data.data)
    assert set(data.data.dtypes) == {np.dtype(float)}
    assert not data.data.isna().any().any()
    assert "doi:10.24432/" in data.source
    assert data.licence == "CC BY 4.0"
    assert data.description == data.DESCR
    assert set(data.units) <= set(data.frame.columns)


def test_rows_carry_their_published_names(data_folder):
    houses = datasets.load_taipei_housing().frame
    assert houses.loc[262, "price per area"] == 24.4
    assert houses.index[0] == 1
    patients = datasets.load_breast_cancer_prognostic().frame
    assert (patients["outcome"] == "N").sum() == 151
    columns = ["outcome", "time", "mean radius", "worst fractal dimension", "lymph nodes"]
    assert patients.loc[119513, columns].tolist() == [
        "N", 31.0, 18.02, 0.08113, 5.0,
    ]  # fmt: skip
    assert patients["lymph nodes"].isna().sum() == 4


@pytest.mark.slow
def test_first_use_downloads_and_the_second_does_not(case, server, tmp_path, data_folder):
    name, content, load = case
    answers, asked = server
    answers[path_of(name)] = packed(name, content)
    first = load()
    pd.testing.assert_frame_equal(first.frame, load(data_home=data_folder).frame)
    assert len(asked) == 1
    assert len(files_in(tmp_path)) == 1
    pd.testing.assert_frame_equal(first.frame, load().frame)
    assert len(asked) == 1
    kept = next(path for path in tmp_path.rglob("*") if path.is_file())
    kept.write_bytes(kept.read_bytes()[:-200])  # somebody damages the cache
    pd.testing.assert_frame_equal(first.frame, load().frame)
    assert len(asked) == 2


def altered(name: str, content: bytes) -> bytes:
    """The same file with one digit of one number changed."""
    place = max(i for i, byte in enumerate(content[:-4]) if chr(byte) == "1")
    return content[:place] + b"2" + content[place + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda name, content: b"<html>sorry</html>", "expected a zip file"),
        (
            lambda name, content: packed(name, content)[: len(content) // 9],
            "expected a zip file",
        ),
        (
            lambda name, content: (10**6, packed(name, content)[:2000]),
            "Cannot download http.*data_home",
        ),
        (
            lambda name, content: packed("other.csv", content),
            "expected '.*' in the archive, .* got",
        ),
        (
            lambda name, content: packed(name, altered(name, content)),
            "differ from the published ones",
        ),
        (
            lambda name, content: packed(name, content[: content[:-1].rindex(b"\n") + 1]),
            "expected .* rows and columns, got",
        ),
        (lambda name, content: None, "Cannot download http.*404"),
    ],
    ids=["no zip", "broken zip", "cut off", "another file", "a digit", "a row less", "not found"],
)
def test_a_bad_download_is_refused_and_leaves_nothing(case, server, tmp_path, spoil, message):
    name, content, load = case
    answers, _ = server
    answers[path_of(name)] = spoil(name, content)
    with pytest.raises(DatasetError, match=message):
        load()
    assert files_in(tmp_path) == []


def test_without_a_network_the_error_says_what_to_do(server, monkeypatch):
    monkeypatch.setattr(wine_quality, "URL", "http://127.0.0.1:9/wine.zip")
    with pytest.raises(
        OSError,
        match=(
            "Cannot download .*wine.zip.*data_home= .* or the environment variable GPATTR_DATA_DIR"
        ),
    ):
        datasets.load_wine_quality()


def test_a_cache_that_cannot_be_written_is_no_obstacle(server, data_folder, tmp_path):
    answers, asked = server
    name = "wpbc.data"
    answers[path_of(name)] = packed(name, (data_folder / name).read_bytes())
    (tmp_path / "cache").write_text("a file where the folder should be")
    for _ in range(2):
        assert len(datasets.load_breast_cancer_prognostic().frame) == 198
    assert len(asked) == 2


def test_a_folder_may_hold_the_archive_and_is_never_written_to(
    case, tmp_path, data_folder, monkeypatch
):
    name, content, load = case
    path = tmp_path / path_of(name)[1:]
    path.write_bytes(packed(name, content))
    monkeypatch.setenv("GPATTR_DATA_DIR", str(tmp_path))
    pd.testing.assert_frame_equal(load().frame, load(data_home=data_folder).frame)
    assert files_in(tmp_path) == [path.name]


def test_a_folder_with_an_altered_file_is_refused(case, tmp_path):
    name, content, load = case
    (tmp_path / name).write_bytes(altered(name, content))
    with pytest.raises(DatasetError, match="differ from the published ones"):
        load(data_home=tmp_path)
    (tmp_path / name).write_bytes(b"\x00\xff nonsense")
    with pytest.raises(DatasetError, match="cannot be read|rows and columns"):
        load(data_home=tmp_path)


def damaged(content: bytes, how: str) -> bytes:
    """An archive whose first entry is marked as encrypted, or as packed by an unknown method."""
    archive = bytearray(content)
    for signature, flags, method in ((b"PK\x03\x04", 6, 8), (b"PK\x01\x02", 8, 10)):
        start = archive.rindex(signature)
        if how == "encrypted":
            archive[start + flags] |= 1
        else:
            archive[start + method] = 97
    return bytes(archive)


@pytest.mark.parametrize("how", ["encrypted", "unknown method"])
def test_an_archive_that_cannot_be_unpacked_is_refused(data_folder, tmp_path, how):
    content = packed("wpbc.data", (data_folder / "wpbc.data").read_bytes())
    (tmp_path / path_of("wpbc.data")[1:]).write_bytes(damaged(content, how))
    with pytest.raises(DatasetError, match="expected a zip file, but it cannot be unpacked"):
        datasets.load_breast_cancer_prognostic(data_home=tmp_path)


def test_what_else_an_archive_may_hold(data_folder, tmp_path):
    """Folders and a Mac's notes under the same name are passed over; a file far too large is not
    even unpacked.
    """
    path = tmp_path / path_of("wpbc.data")[1:]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("wpbc.data/", "")
        file.writestr("__MACOSX/wpbc.data", "notes")
        file.writestr("wpbc.data", (data_folder / "wpbc.data").read_bytes())
    assert len(datasets.load_breast_cancer_prognostic(data_home=tmp_path).frame) == 198
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("wpbc.data", bytes(archive.LARGEST + 1))
    with pytest.raises(
        DatasetError, match="expected 'wpbc.data' in the archive, of at most 16 MiB"
    ):
        datasets.load_breast_cancer_prognostic(data_home=tmp_path)


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    (tmp_path / "wpbc.data").write_text("")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(
        DatasetError, match="data_home: cannot read 'wpbc.data' in .*Permission denied"
    ):
        datasets.load_breast_cancer_prognostic(data_home=tmp_path)
    monkeypatch.setenv("GPATTR_DATA_DIR", str(tmp_path))
    with pytest.raises(DatasetError, match="GPATTR_DATA_DIR: cannot read"):
        datasets.load_breast_cancer_prognostic()


def test_a_folder_in_the_home_of_the_user(data_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "wpbc.data").write_bytes((data_folder / "wpbc.data").read_bytes())
    assert len(datasets.load_breast_cancer_prognostic(data_home="~").frame) == 198


@pytest.mark.parametrize("name", LOADERS)
def test_what_a_user_does_to_a_table_stays_with_the_user(data_folder, name):
    first = LOADERS[name]()
    first.units.clear()
    first.feature_names.append("another")
    first.frame.iloc[0] = first.frame.iloc[1]
    again = LOADERS[name]()
    assert again.units
    assert "another" not in again.feature_names
    assert not again.frame.equals(first.frame)


def test_bad_arguments(tmp_path):
    with pytest.raises(
        DatasetError,
        match=r"expected one of \['winequality-red.csv', 'wine\+quality.zip'\] in .*, found none",
    ):
        datasets.load_wine_quality(data_home=tmp_path)
    with pytest.raises(DatasetError, match="is not a folder"):
        datasets.load_wine_quality(data_home=tmp_path / "nowhere")
    with pytest.raises(InvalidInputError, match="data_home: expected the path of a folder, got 3"):
        datasets.load_wine_quality(data_home=3)
    with pytest.raises(
        InvalidInputError, match="colour: expected one of 'red', 'white', got 'rose'"
    ):
        datasets.load_wine_quality("rose")


def test_the_digest_sees_every_value(frame):
    seen = {archive.digest(frame)}
    for i in range(frame.shape[0]):
        for j in range(frame.shape[1]):
            other = frame.copy()
            other.iloc[i, j] *= 1 + 1e-8
            seen.add(archive.digest(other))
    assert len(seen) == frame.size + 1


def test_the_bar_counts_what_came(capsys):
    from gpattr.datasets.archive import Bar

    with Bar("Downloading") as bar:
        bar.total = 100
        bar.update(64)
        bar.update(64)
        bar.reset()
        bar.update(bar.total)
        bar.close()
        assert bar.done == bar.total == 100
    assert capsys.readouterr() == ("", "")
