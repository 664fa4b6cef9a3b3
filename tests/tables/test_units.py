"""Numbers with currency and percent signs, units, thousands and odd spaces."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpattr.exceptions import InvalidInputError
from gpattr.tables import Columns, read_table


def frame_of(values):
    values = list(values)
    y = [str(i) for i in range(len(values))]
    return pd.DataFrame({"a": values, "y": y}, index=range(1, len(y) + 1), dtype=object)


@pytest.mark.parametrize(
    ("values", "expected", "unit"),
    [
        (["€ 1.234,50", "€ 12,00", "€ -3,10"], [1234.5, 12.0, -3.1], "€"),
        (["1.234,50 €", "12,00€"], [1234.5, 12.0], "€"),
        (
            ["$1,234.50", "$12.00", "-$5", "($5)", "$-5.25", "+$7"],
            [1234.5, 12.0, -5.0, -5.0, -5.25, 7.0],
            "$",
        ),
        (["($1,234.50)", "$2"], [-1234.5, 2.0], "$"),
        (["12 %", "3,5 %", "−6 %", "0.25%"], [12.0, 3.5, -6.0, 0.25], "%"),
        (["1 234,5 kr", "12 kr"], [1234.5, 12.0], "kr"),
        (["1\u202f234,5 €", "12\u00a0€", "1\u2009000 €"], [1234.5, 12.0, 1000.0], "€"),
        (["1'234.50 CHF", "CHF 12"], [1234.5, 12.0], "CHF"),
        (["3.5 kg", "12kg", ".5 kg", "1e3 kg"], [3.5, 12.0, 0.5, 1000.0], "kg"),
        (["12 km/h", "13.5 km/h"], [12.0, 13.5], "km/h"),
        (["21 °C", "-3 °C"], [21.0, -3.0], "°C"),
        (["120 sq ft", "90 sq ft"], [120.0, 90.0], "sq ft"),
        (["80.5 m²", "7 m²"], [80.5, 7.0], "m²"),
        (["US$ 1,200,000", "US$ 850,000"], [1200000.0, 850000.0], "US$"),
        (["₹12,34,567", "₹5,00,000"], [1234567.0, 500000.0], "₹"),
        (["R$ 1.234,50", "R$ 2,00"], [1234.5, 2.0], "R$"),
        (["1 234 567", "12"], [1234567.0, 12.0], ""),
        (["(5)", "6"], [-5.0, 6.0], ""),
    ],
)
def test_signs_and_units(values, expected, unit):
    frame = frame_of(values)
    columns = Columns.of(frame, "y", strict=True)
    assert columns.units == ({"a": unit} if unit else {})
    assert columns.features(frame)["a"].tolist() == expected
    assert Columns.of_content(columns.to_content()) == columns


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.decimals(-(10**9), 10**9, allow_nan=False, places=2), min_size=3, max_size=20),
    st.sampled_from(["{} €", "€{}", "{}%", "{} kg", "$ {}", "{}"]),
)
def test_what_is_written_is_read(amounts, pattern):
    english = [pattern.format(f"{amount:,.2f}") for amount in amounts]
    german = [text.replace(",", "_").replace(".", ",").replace("_", ".") for text in english]
    for texts in (english, german):
        frame = frame_of(
            [*texts, pattern.format("1,234,567.00" if texts is english else "1.234.567,00")]
        )
        features = Columns.of(frame, "y").features(frame)
        np.testing.assert_array_equal(features["a"], [*map(float, amounts), 1234567.0])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            ["€ 5", "$ 6", "€ 7"],
            (
                "the same sign or unit in every row of column 'a', got '€ 5' in row 1 and '\\$ 6'"
                " in row 2"
            ),
        ),
        (
            ["5 %", "6", "7 %"],
            "the same sign or unit in every row of column 'a', got '5 %' in row 1 and '6' in row 2",
        ),
        (["3 kg", "4 kg", "5"], "got '3 kg' in row 1 and '5' in row 3"),
        (
            ["1", "2", "3", "4", "5", "v", "w", "x", "y"],
            "expected a number in column 'a', got 'v' in row 6",
        ),
        (["€ 1.234", "€ 2.500"], "numbers such as '€ 1.234' in column 'a' are ambiguous"),
        (["1,5", "1,234.5", "2"], "expected a number in column 'a', got '1,5' in row 1"),
        (["1 23 456", "2", "3"], "expected a number in column 'a', got '1 23 456' in row 1"),
        (["--5", "2", "3"], "expected a number in column 'a', got '--5' in row 1"),
        (["(5", "2", "3"], "expected a number in column 'a', got '\\(5' in row 1"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_row(values, words):
    with pytest.raises(InvalidInputError, match=words):
        Columns.of(frame_of(values), "y")


def test_the_comma_of_a_dollar_amount_is_decided_and_said():
    frame = frame_of(["$85,000", "$120,500", "$900"])
    columns = Columns.of(frame, "y")
    assert columns.features(frame)["a"].tolist() == [85000.0, 120500.0, 900.0]
    assert columns.notes == ("The comma in $85,000 (a) was read as a thousands separator.",)
    with pytest.raises(
        InvalidInputError,
        match="ambiguous amounts such as \\$85,000; .* without --strict",
    ):
        Columns.of(frame, "y", strict=True)


@pytest.mark.parametrize("text", ["1,234", "1,234 %"])
def test_commas_that_can_be_read_in_two_ways(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(f'a,b\n"{text}",1\n"{text}",2\n', encoding="utf-8")
    with pytest.raises(
        InvalidInputError, match=f"numbers such as '{text}' in column 'a' are ambiguous"
    ):
        read_table(path)


@pytest.mark.parametrize(
    ("text", "other", "mark"),
    [
        ("€1,234", "7", "comma"),  # a currency or a unit
        ("1,234 sq ft", "7", "comma"),
        ("1,234", "0.5", "comma"),  # the decimal point of another column
        ("€ 1.234", "0,5", "point"),
        ("1.234", "0,5", "point"),
    ],
)
def test_thousands_are_decided_by_column_and_file(tmp_path, text, other, mark):
    path = tmp_path / "table.csv"
    rows = "".join(f"{text};{other};{i}\n" for i in range(6))
    content = f"a;b;y\n{rows}"
    if mark == "comma":
        content = f"a\tb\ty\n{rows}".replace(";", "\t")
    path.write_text(content, encoding="utf-8")
    frame = read_table(path)
    columns = Columns.of(frame, "y")
    assert columns.features(frame)["a"].unique() == [1234.0]
    assert f"The {mark} in {text} (a) was read as a thousands separator." in columns.notes
    again = Columns.of_content(columns.to_content())
    assert again.features(frame)["a"].unique() == [1234.0]


def test_a_comma_before_three_digits_is_a_decimal_point_where_it_is_one_elsewhere(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a;b;y\n" + "€ 1,234;0,5;1\n€ 2,345;0,7;2\n" * 3, encoding="utf-8")
    frame = read_table(path)
    assert set(Columns.of(frame, "y").features(frame)["a"]) == {1.234, 2.345}


@pytest.mark.parametrize("word", ["rotary", "M10", "1. < HS Grad"])
def test_words_among_few_numbers_make_categories(word):
    frame = frame_of([*["4", "6", "8"] * 6, word, word])
    columns = Columns.of(frame, "y")
    assert columns.categories["a"] == tuple(sorted(["4", "6", "8", word]))
    assert columns.features(frame)["a"].iloc[-1] == word


@pytest.mark.parametrize("words", [["*"], ["off", "off"], ["low", "high", "off"]])
def test_words_among_many_numbers_are_missing_values(words):
    numbers = [str(1.5 * i) for i in range(1, 21)]
    frame = frame_of([*numbers, *words])
    columns = Columns.of(frame, "y")
    rows = "1 row" if len(words) == 1 else f"{len(words)} rows"
    shown = ", ".join(map(repr, dict.fromkeys(words)))
    assert columns.notes == (f"{shown} in a ({rows}): taken as missing values.",)
    expected = [*map(float, numbers), *[15.75] * len(words)]
    for each in (columns, Columns.of_content(columns.to_content())):
        assert each.features(frame)["a"].tolist() == expected
    with pytest.raises(InvalidInputError, match="among its numbers; leave such cells empty"):
        Columns.of(frame, "y", strict=True)
    with pytest.raises(InvalidInputError, match="expected a number in column 'a', got 'new'"):
        columns.features(frame_of(["1", "new"]))


def test_a_word_among_labels_that_begin_with_a_digit_is_missing():
    frame = frame_of(["1st", "2nd", "3rd"] * 8 + ["*"])
    columns = Columns.of(frame, "y")
    assert columns.categories["a"] == ("1st", "2nd", "3rd")
    for each in (columns, Columns.of_content(columns.to_content())):
        assert each.features(frame)["a"].iloc[-1] == "1st"
    with pytest.raises(InvalidInputError, match="expected one of .* got 'new' in row 2"):
        columns.features(frame_of(["*", "new"]))


def test_codes_among_many_numbers_are_labels():
    numbers = [str(i) for i in range(1, 21) for _ in range(6)]
    codes = ["M10", "M12A", "C170", "A", "M5"] * 6
    columns = Columns.of(frame := frame_of(numbers + codes), "y")
    assert {"1", "20", "M10", "A"} <= set(columns.categories["a"])
    assert columns.features(frame)["a"].tolist() == numbers + codes
    with pytest.raises(InvalidInputError, match="expected a number in column 'a', got '1.2.3'"):
        Columns.of(frame_of([*numbers, "1.2.3", *codes]), "y")


def test_numbers_with_zeros_before_them_are_labels_beside_one_with_a_letter():
    texts = ["001", "002", "136", "136A"] * 6
    columns = Columns.of(frame := frame_of(texts), "y")
    assert columns.categories["a"] == ("001", "002", "136", "136A")
    assert columns.features(frame)["a"].tolist() == texts


def test_other_tables_have_the_same_unit_or_none():
    columns = Columns.of(frame_of(["5 €", "6 €", "7 €"]), "y")
    assert columns.features(pd.DataFrame({"a": ["8", "9,50 €"]}))["a"].tolist() == [8.0, 9.5]
    with pytest.raises(
        InvalidInputError, match="expected numbers in € in column 'a', got '9 \\$' in row 1"
    ):
        columns.features(pd.DataFrame({"a": ["8", "9 $"]}))
    columns = Columns.of(frame_of(["5", "6", "7"]), "y")
    with pytest.raises(
        InvalidInputError, match="expected numbers without a unit in column 'a', got '9 €' in row 1"
    ):
        columns.features(pd.DataFrame({"a": ["8", "9 €"]}))


def test_the_target_may_have_a_unit():
    frame = frame_of(["1", "2", "4", "3", "5"])
    frame["y"] = ["€ 1.000,50", "€ 2", "€ 3", "€ 4", "€ 5"]
    columns = Columns.of(frame, "y")
    assert columns.units == {"y": "€"}
    assert columns.targets(frame).tolist() == [1000.5, 2.0, 3.0, 4.0, 5.0]


def test_texts_with_digits_are_not_numbers():
    frame = frame_of(["1st", "2nd", "3rd", "1st", "2nd", "A1"])
    frame["b"] = ["12A", "3B", "4C", "12A", "3B", "4C"]
    frame["c"] = ["ID 1", "ID 2", "ID 1", "ID 2", "ID 1", "ID 2"]
    assert set(Columns.of(frame.iloc[:5], "y").categories) == {"a", "b", "c"}


def test_booleans():
    frame = pd.DataFrame(
        {
            "a": [True, False, True],
            "b": ["True", "False", "True"],
            "c": ["yes", "no", "yes"],
            "y": [1, 2, 3],
        }
    )
    columns = Columns.of(frame, "y", strict=True)
    assert columns.categories == {"b": ("False", "True"), "c": ("no", "yes")}
    assert columns.features(frame)["a"].tolist() == [1.0, 0.0, 1.0]
    durations = frame.assign(a=pd.to_timedelta([1, 2, 36], unit="h"))
    assert Columns.of(durations, "y").features(durations)["a"].tolist() == [1 / 24, 2 / 24, 1.5]
