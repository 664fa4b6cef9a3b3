"""Numbers as people write them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpattr._core.readable_numbers import readable, readable_all, readable_ticks


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (690412.3, "690,400"),
        (690400, "690,400"),
        (123456, "123,456"),  # a whole number may be a count
        (2024, "2024"),  # or a year
        (1234.56, "1235"),
        (9999.9, "10,000"),
        (12.0, "12"),
        (0.5, "0.5"),
        (0.012345, "0.01235"),
        (0.0001, "0.0001"),
        (1.2e-7, "1.2e-07"),
        (123456789.4, "123,500,000"),
        (3.14159e15, "3.142e+15"),
        (-3.5, "-3.5"),
        (-0.0, "0"),
        (0, "0"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
        (np.float32(0.1), "0.1"),
        (np.int64(100_000), "100,000"),
        (True, "1"),
    ],
)
def test_one_number(value, text):
    assert readable(value) == text


def test_digits_and_signs():
    assert readable(690412.3, 2) == "690,000"
    assert readable(3.14159, 1) == "3"
    assert readable(-3.5, minus=True) == "−3.5"
    assert readable(-1.2e-7, minus=True) == "−1.2e-07"
    assert readable(3.5, sign="+") == "+3.5"
    assert readable(0.0, sign="+") == "0"
    assert readable(-math.inf, minus=True) == "−∞"


def test_numbers_that_stand_together_are_rounded_at_the_same_place():
    assert readable_all([690412.3, 1520.4, -3.2]) == ["690,400", "1,500", "0"]
    assert readable_all([12.5, 0.031, -0.001], sign="+") == ["+12.50", "+0.03", "0.00"]
    assert readable_all([12.5, -8.0], 3, sign="+", minus=True) == ["+12.5", "−8.0"]
    assert readable_all([12345, 7]) == ["12,345", "7"]
    assert readable_all([0.2, 12.0], largest=154.0) == ["0.2", "12.0"]
    assert readable_all([2e-9, 1e-10]) == ["2.000e-09", "1.000e-10"]
    assert readable_all([]) == []
    assert readable_all([0.0, 0.0]) == ["0", "0"]
    assert readable_all([math.nan, 1.25]) == ["–", "1.250"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([-50_000, 0, 50_000], ["−50,000", "0", "50,000"]),
        ([2020, 2022, 2024], ["2020", "2022", "2024"]),
        ([0, 2.5, 5.0], ["0.0", "2.5", "5.0"]),
        ([0.1 + 0.2, 0.4, 0.5], ["0.3", "0.4", "0.5"]),
        ([1e6, 1e6 + 0.1], ["1,000,000.0", "1,000,000.1"]),
        ([0, 2e-6, 4e-6], ["0", "2e-06", "4e-06"]),
        ([0, 5e12], ["0", "5e+12"]),
        ([3.25], ["3.25"]),
        ([0.0], ["0"]),
        ([], []),
    ],
)
def test_ticks_tell_each_other_apart(values, texts):
    assert readable_ticks(values) == texts


# Rounded to one digit, 1.5e308 would be infinite.
@given(st.floats(-1e308, 1e308), st.integers(1, 8))
def test_what_is_written_is_the_number_rounded(value, digits):
    text = readable(value, digits)
    assert math.isclose(
        float(text.replace(",", "")), value, rel_tol=0.5000001 * 10.0 ** (1 - digits), abs_tol=0.0
    )
    assert ("e" in text) == (value != 0 and not 1e-4 <= abs(value) < 1e12)
    assert not text.startswith("-0") or "." in text


def test_certainty_is_rounded_down():
    from gpattr.plots.words import percent

    assert [percent(p) for p in (0.97, 0.57, 0.9949, 0.94999, 0.99999)] == [
        "97%",
        "57%",
        "99.4%",
        "94.9%",
        "> 99.9%",
    ]
