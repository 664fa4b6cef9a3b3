"""Tables in parts: the same rows as in one piece, wherever the parts end."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpattr.exceptions import InvalidInputError
from gpattr.tables import Columns, read_table, stream, table_files
from gpattr.tables.columns import typical_values
from gpattr.tables.part_features import PartReader, decimal_commas
from gpattr.tables.stream import Stream

CELLS = st.sampled_from(
    ["1", "2.5", "word", "", " s ", "é", 'a"b', "x\ny", "x\r\ny", ",", ";", '"', "0", "−3", "\t"]
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(stream, "PART_ROWS", 4)


def in_parts(path, numbers=()):
    table = Stream.of(path, fewest=1)
    parts = list(table.read(table.parts, table.columns, numbers))
    assert [part.rows for part in table.parts] == [len(part) for part in parts]
    return pd.concat(parts)


def same_as_at_once(path):
    whole, parts = (outcome(read, path) for read in (read_whole, in_parts))
    if isinstance(whole, str):
        assert parts == whole
    else:
        pd.testing.assert_frame_equal(whole, parts, check_index_type=False, check_flags=False)


def read_whole(path):
    return read_table(path, fewest=1)


def outcome(read, path):
    """What is read, or why it is not."""
    try:
        return read(path)
    except InvalidInputError as error:
        return str(error)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=15),
    separator=st.sampled_from(",;|\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig"]),
    closed=st.booleans(),
)
def test_quotes_newlines_and_blank_rows(tmp_path_factory, rows, separator, end, encoding, closed):
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator=end).writerows(
        [["first", "b", "c"], ["1", "2", "3"], *rows, ["4", "5", "6"]]
    )
    content = text.getvalue() if closed else text.getvalue().removesuffix(end)
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    path.write_bytes(content.encode(encoding))
    if "are ambiguous" not in outcome(read_whole, path):  # which is for who decides on columns
        same_as_at_once(path)


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n1,5" pipe\n2,6" pipe\n3,7\n"4","8"\n5,9" pipe\n6,7\n',  # marks that are not quotes
        'a,b\n1, "x"\n2,y\n3,z\n4,w\n5,v\n',
        "a,b\r1,2\r3,4\r5,6\r7,8\r9,10\r",
        "a,b\n1,2\n\n , \n3,4\n,\n5,6\n7,8",
        "a,b,c\n1,2,3\n\xa0\n4,5,6\n\u2028,\xa0\n7,8,9\n",  # blank in Unicode
        ",b\n1,2\n3,4\n",
        "a,b\n1,2\n3\n4,5\n",
        'a,b\n1,2\n"3,4\n5,6\n7,8\n',
        "a,a\n1,2\n",
        "1,2\n3,4\n",
        "a,b\n1,\0\n2,3\n",
        "a\n" + "".join(f"{i}\n" for i in range(20)),
        "a,b\n1," + "long " * 50 + "\n2,3\n",
    ],
)
def test_unusual_files(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    if "\0" in text:
        with pytest.raises(InvalidInputError, match="expected text, got a binary file"):
            Stream.of(path)
        return
    same_as_at_once(path)


def test_windows_encoding_of_a_late_row(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,b\n" + b"1,x\n" * 400_000 + "2,é\n".encode("cp1252"))
    stream.PART_ROWS = 2**16  # restored by the fixture
    table = Stream.of(path)
    assert "Windows-1252" in table.notes[0]
    (last,) = table.read(table.parts[-1:], ["b"])
    assert last["b"].iloc[-1] == "é"


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.decimals(-(10**9), 10**9)))
def test_numbers_are_the_same_to_the_last_bit(tmp_path_factory, number):
    import pyarrow as pa

    from gpattr.tables.numbers import read_numbers
    from gpattr.tables.table_files import _numbers

    text = str(number)
    quick = _numbers(pa.chunked_array([[text]]))
    if quick is not None:
        slow = read_numbers(pd.Series([text], dtype=object)).values.to_numpy()
        assert quick[0] == slow[0]
    assert quick is not None or "E" in text or "N" in text or "s" in text


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_windows_encoding_of_the_last_letter(tmp_path, end):
    """UTF-8 would go on behind it."""
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,b\n1,tea\n2,caf\xe9" + end)
    same_as_at_once(path)


def test_parquet_in_parts_and_from_the_middle(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=23), "n": pd.array([*range(22), None], "Int64")})
    frame["kind"], frame["day"] = "x", pd.Timestamp("2024-01-01")
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=10)
    whole = read_table(tmp_path / "t.parquet")
    table = Stream.of(tmp_path / "t.parquet")
    assert [part.rows for part in table.parts] == [4, 4, 4, 4, 4, 3]
    each = ([part] for part in table.parts[::-1])
    for some in (table.parts, *each, table.parts[1::2]):  # in order, and not
        for part, got in zip(some, table.read(some, table.columns), strict=True):
            expected = whole.loc[part.first : part.last]
            np.testing.assert_array_equal(got["a"], expected["a"])
            np.testing.assert_array_equal(
                got["n"].astype(float), expected["n"].to_numpy(dtype=float, na_value=np.nan)
            )
            assert list(got["day"]) == list(expected["day"])


def test_the_sample_is_of_all_parts_and_always_the_same(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i}\n" for i in range(100)))
    table = Stream.of(path)
    sample = table.sample(50)
    assert sample["a"].astype(int).min() == 0
    assert sample["a"].astype(int).max() > 95
    assert 50 <= len(sample) <= 2 * 50
    pd.testing.assert_frame_equal(sample, Stream.of(path).sample(50))
    assert len(table.sample(10_000)) == 100


def test_a_file_that_changes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 20)
    table = Stream.of(path)
    path.write_text("a,b\n" + "1,2\n" * 10 + "3,4\n" * 10)
    with pytest.raises(InvalidInputError, match="changed while it was read"):
        list(table.read(table.parts[-1:], ["a"]))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "expected Parquet or CSV files in the folder"),
        ({"a.csv": "a,b\n1,2\n", "b.parquet": ""}, "got both"),
        ({"year=2024/a.csv": "a,b\n1,2\n"}, "named by a value"),
        ({"a.csv": "a,b\n"}, "got no rows"),
    ],
)
def test_folders_that_are_no_tables(tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        Stream.of(tmp_path)


def test_files_without_rows_and_texts_about_the_tables_are_passed_over(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n")
    (tmp_path / "b.csv").write_text("a,b\n1,2\n")
    (tmp_path / "readme.txt").write_text("These are measurements, of two kinds\n")
    table = Stream.of(tmp_path)
    assert table.names == ("a.csv", "b.csv")
    assert [(part.file, part.rows) for part in table.parts] == [(1, 1)]
    assert table.sample(10)["b"].tolist() == ["2"]


def reader_of(tmp_path, training, text, **options):
    path = tmp_path / "t.csv"
    path.write_text(text)
    columns = Columns.of(training, "y")
    table = Stream.of(path)
    sample = table.sample(10_000)
    typical = typical_values(columns, columns.features(training))
    decimal = decimal_commas(table, sample)
    return PartReader(table, columns, typical, decimal=decimal, **options)


TRAINING = pd.DataFrame(
    {"a": ["1", "2", "3"] * 4, "kind": ["1st", "2nd", "none"] * 4, "y": [str(i) for i in range(12)]}
)


def test_no_part_decides_anew(tmp_path):
    """Texts that alone would be thousands, or missing, are what the model knows, or refused."""
    text = "a,kind\n" + "1,1st\n" * 4 + '"1,234,567",1st\n' * 4
    reader = reader_of(tmp_path, TRAINING, text)
    assert list(reader.read(0).X["a"]) == [1.0] * 4
    with pytest.raises(
        InvalidInputError, match=r"part 1 .*without thousands.*'1,234,567' in row 5"
    ):
        reader.read(1)
    # "none" among words is a category, in a part where all others are missing too.
    words = pd.DataFrame({"a": ["1"] * 12, "kind": ["brick", "wood", "none"] * 4, "y": range(12)})
    words["a"] = [str(i % 5) for i in range(12)]
    reader = reader_of(tmp_path, words, "a,kind\n" + "1,none\n" * 4 + "1,brick\n" * 4)
    assert list(reader.read(0).X["kind"]) == ["none"] * 4


def test_ambiguous_commas(tmp_path):
    with pytest.raises(InvalidInputError, match="are ambiguous"):
        reader_of(tmp_path, TRAINING, 'a,kind\n"1,234",1st\n' * 1 + '"2,345",1st\n')
    decimal = 'a,kind\n"1,5",1st\n' + '"1,234",1st\n' * 8
    reader = reader_of(tmp_path, TRAINING, decimal)
    assert list(reader.read(2).X["a"]) == [1.234]


def test_rows_that_contradict_the_columns(tmp_path):
    text = "a,kind\n" + "1,1st\n" * 5 + "x,1st\n2,9th\n,1st\n3,2nd\n" + "4,1st\n" * 3
    with pytest.raises(InvalidInputError, match=r"part 1 \(rows 5 to 8\).* 'a', got 'x' in row 6"):
        reader_of(tmp_path, TRAINING, text).read(1)
    rows = reader_of(tmp_path, TRAINING, text, errors="missing").read(1)
    assert list(rows.usable) == [True, False, False, True]
    assert list(rows.X["a"]) == [1.0, 2.0]
    assert "got 'x' in row 6" in rows.problem
    blank = reader_of(tmp_path, TRAINING, "a,kind\n,1st\n2,\n", strict=True)
    with pytest.raises(InvalidInputError, match="missing in column 'a', the first in row 1"):
        blank.read(0)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_parts_wherever_the_bytes_are_cut(tmp_path, monkeypatch, encoding):
    """Blocks of a file end in cells, in line ends and between quotation marks."""
    path = tmp_path / "t.csv"
    cells = ["1", '"x, y"', '"of two\r\nlines"', '"""5"""', "é"]
    rows = [f"{i},{cells[i % 5]},{cells[i // 5 % 5]}\r\n" for i in range(300)]
    rows.insert(100, ' ,"" ,\r\n')
    path.write_bytes(b"a,b,c\r\n" + "".join(rows).encode(encoding))
    for size in (97, 128, 129, 130, 131, 1001):
        monkeypatch.setattr(table_files, "BLOCK", size)
        same_as_at_once(path)


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_a_last_part_that_is_a_line_end(tmp_path, monkeypatch, end):
    path = tmp_path / "t.csv"
    path.write_bytes(end.join(["a;b", *['"a;b";1'] * 40, ""]).encode())
    for size in range(24, 50):
        monkeypatch.setattr(table_files, "BLOCK", size)
        same_as_at_once(path)


def test_a_mark_that_is_not_closed_in_a_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "BLOCK", 2**10)
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 300 + '3,"4\n' + "5,6\n" * 60_000)
    with pytest.raises(InvalidInputError, match="a cell in line 302 contains other rows; is a"):
        Stream.of(path)


def test_wide_tables_have_fewer_rows_in_a_part(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "PART_CELLS", 6)
    (tmp_path / "t.csv").write_text("a,b,c\n" + "1,2,3\n" * 5)
    assert [part.rows for part in Stream.of(tmp_path / "t.csv").parts] == [2, 2, 1]
