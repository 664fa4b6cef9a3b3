"""What looks like something else: classes that begin with a digit, "none" among words, quotation
marks that are not closed.
"""

import numpy as np
import pandas as pd
import pytest

from gpattr.exceptions import InvalidInputError
from gpattr.tables import Columns, read_table
from gpattr.tables.missing import missing
from gpattr.tables.target import Target, known_labels

RNG = np.random.default_rng(0)


def asked(texts, task=None):
    frame = pd.DataFrame(
        {"a": RNG.normal(size=40), "t": np.resize(np.array(texts, dtype=object), 40)}
    )
    columns = Columns.of(frame, "t")
    return Target.of(frame, columns, task), known_labels(frame, columns)


@pytest.mark.parametrize(
    "texts",
    [
        ["2A", "2B", "3A", "3B"],
        ["10 mg", "20 mg", "10 ml", "20 ml"],
        ["5 kg", "5 g", "1 kg"],
        ["1st", "2nd", "3rd"],
        ["1 yes", "1 no", "2 maybe"],
    ],
)
def test_texts_that_begin_with_a_digit_are_classes(texts):
    target, labels = asked(texts)
    assert target.task == "classification"
    assert set(target.labels) == set(texts) == set(labels)


def test_equal_numbers_are_one_class():
    target, labels = asked(["1.5", "1.50", "2.5"])
    assert target.labels == ("1.5", "2.5")
    assert set(labels) == {"1.5", "2.5"}


def test_none_is_a_category_among_words_and_missing_among_numbers():
    assert (
        missing(pd.Series(["brick", "none", "wood", "None", None, ""])).tolist()
        == [False] * 4 + [True] * 2
    )
    assert missing(pd.Series(["1.5", "none", "2", "None"])).tolist() == [False, True, False, True]
    assert missing(pd.Series(["2024-01-01", "none"])).tolist() == [False, True]
    assert missing(pd.Series(["none", "none"])).all()


@pytest.mark.parametrize("end", ["", '3,green"\n'])
def test_a_quotation_mark_that_is_not_closed_is_refused(tmp_path, end):
    path = tmp_path / "t.csv"
    path.write_text("t,c\n" + "1,blue\n" * 5 + '10,"red\n' + "2,blue\n" * 5 + end)
    with pytest.raises(InvalidInputError, match="is a quotation mark not closed"):
        read_table(path)


def test_a_text_of_several_lines_is_one_cell(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('t,c\n1,"one\nand two"\n2,three\n')
    assert read_table(path)["c"].tolist() == ["one\nand two", "three"]


@pytest.mark.parametrize("separator", [",", "\t", "|"])
def test_thousands_that_may_be_decimals_are_refused(tmp_path, separator):
    path = tmp_path / "t.csv"
    quoted = '"1,234"' if separator == "," else "1,234"
    path.write_text(f"t{separator}c\n" + f"1{separator}{quoted}\n2{separator}999\n" * 5)
    with pytest.raises(InvalidInputError, match=r"are ambiguous.*--drop 'c'"):
        read_table(path)


def test_thousands_in_texts_of_a_workbook_are_refused(tmp_path):
    pd.DataFrame({"t": range(6), "c": ["1,234", 999, "12,500"] * 2}).to_excel(
        tmp_path / "t.xlsx", index=False
    )
    with pytest.raises(
        InvalidInputError, match="numbers such as '1,234' in column 'c' are ambiguous"
    ):
        read_table(tmp_path / "t.xlsx")


def test_repeated_names_of_a_frame_are_refused():
    with pytest.raises(
        InvalidInputError, match="expected different column names, got 'a' more than once"
    ):
        Columns.of(pd.DataFrame(np.ones((6, 3)), columns=["a", "a", "t"]), "t")


def test_other_tables_are_read_with_the_separators_of_the_first():
    """1.234 alone is a number of its own; beside 1.234,5 it is a thousand, and so it stays in later
    tables.
    """
    frame = pd.DataFrame(
        {
            "w": ["1.234,5", "2.345,5", "1.234"] * 4,
            "plain": ["1.5", "2.5", "3.5"] * 4,
            "t": np.arange(12.0),
        }
    )
    columns = Columns.of(frame, "t")
    assert columns.features(frame)["w"].tolist()[:3] == [1234.5, 2345.5, 1234.0]
    later = pd.DataFrame({"w": ["1.234", "2.000"], "plain": ["1.234", "2.000"]})
    for known in (columns, Columns.of_content(columns.to_content())):
        assert known.features(later)["w"].tolist() == [1234.0, 2000.0]
        assert known.features(later)["plain"].tolist() == [1.234, 2.0]
    american = Columns.of(pd.DataFrame({"w": ["$1,234.50", "$12"] * 4, "t": np.arange(8.0)}), "t")
    assert american.features(pd.DataFrame({"w": ["$1,234", "$5"]}))["w"].tolist() == [1234.0, 5.0]
