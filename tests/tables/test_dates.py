"""Dates of tables: how they are written, what they become, and what cannot be read."""

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpattr import Explainer
from gpattr.encoders.dates import DAY_FIRST, MONTH_FIRST, Dates
from gpattr.encoders.encoder import Encoder
from gpattr.exceptions import InvalidInputError
from gpattr.tables import Columns, TableModel

SUNDAY_AT_SIX = [np.sin(12 * np.pi / 7), np.cos(12 * np.pi / 7), 1.0, 0.0]
LONG_AGO, FAR_AHEAD = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)
FORMS = {
    "%Y-%m-%d": None,
    "%Y/%m/%d": None,
    "%d/%m/%Y": DAY_FIRST,
    "%m/%d/%Y": MONTH_FIRST,
    "%d.%m.%Y": DAY_FIRST,
    "%d-%m-%Y": DAY_FIRST,
    "%d %b %Y": None,
    "%d-%b-%Y": None,
    "%B %d, %Y": None,
    "%Y-%m-%d %H:%M": None,
    "%Y-%m-%dT%H:%M:%S": None,
    "%Y-%m-%dT%H:%M:%SZ": None,
    "%Y-%m-%d %H:%M:%S.%f": None,
    "%d/%m/%Y %H:%M": DAY_FIRST,
    "%m/%d/%Y %I:%M %p": MONTH_FIRST,
    "%d.%m.%Y %H:%M:%S": DAY_FIRST,
}


def frame_of(*columns):
    frame = pd.DataFrame(
        dict(zip("abc", columns)), index=range(1, 1 + len(columns[0])), dtype=object
    )
    return frame.assign(y=np.arange(len(frame)).astype(str))


def written(date, form):
    """Return a date as text: strftime writes years before 1000 without their zeros."""
    return date.strftime(form.replace("%Y", f"{date.year:04d}"))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.datetimes(LONG_AGO, FAR_AHEAD), min_size=1, max_size=8),
    st.sampled_from(sorted(FORMS)),
)
def test_every_form_is_read_back(dates, form):
    dates = [*dates, datetime.datetime(2024, 12, 31, 17, 5)]  # tells day and month apart
    frame = frame_of([written(date, form) for date in dates])
    columns = Columns.of(frame, "y", strict=True)
    assert columns.dates["a"].order == FORMS[form]
    unit = (
        "us"
        if "%f" in form
        else "s"
        if "%S" in form
        else "m"
        if "%H" in form or "%I" in form
        else "D"
    )
    read = columns.features(frame)["a"].to_numpy()
    np.testing.assert_array_equal(read, np.array(dates, dtype="M8[us]").astype(f"M8[{unit}]"))
    assert Columns.of_content(columns.to_content()) == columns


@settings(max_examples=25, deadline=None)
@given(st.lists(st.datetimes(datetime.datetime(1, 1, 1), FAR_AHEAD), min_size=1, max_size=8))
def test_encoded_dates_are_decoded(dates):
    dates = np.array(dates, dtype="M8[s]").astype("M8[us]")
    encoding = Dates.of(dates)
    rows = encoding.encode(dates)
    assert rows.shape == (len(dates), len(encoding.parts))
    np.testing.assert_array_equal(encoding.decode(rows), dates)
    assert np.array(encoding.texts(rows), dtype="M8[us]").tolist() == dates.tolist()


def test_which_cycles_are_encoded():
    def cycles(*dates):
        return Dates.of(np.array(dates, dtype="M8[us]")).cycles

    assert cycles("2024-01-01", "2024-01-01") == ()
    assert cycles("2024-01-01", "2024-01-08") == ()  # Mondays
    assert cycles("2024-01-01", "2024-03-02") == ("weekday",)
    assert cycles("2024-01-01", "2024-09-01") == ("season", "weekday")
    assert cycles("2024-01-01T10:00", "2024-01-08T11:00") == ("time of day",)
    assert Dates.of(np.array(["2024-01-01"], dtype="M8[D]")).parts == ("days",)


def test_where_cycles_begin():
    dates = Dates(("season", "weekday", "time of day"), timed=True)
    monday = np.array(["2024-01-01T00:00"], dtype="M8[m]")  # the first day of a year
    np.testing.assert_allclose(
        dates.encode(monday)[0], [19723.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0], atol=1e-15
    )
    np.testing.assert_allclose(
        dates.encode(np.array(["1969-07-20T06:00"], dtype="M8[m]"))[0][3:],
        SUNDAY_AT_SIX,
        atol=1e-15,
    )


def test_cycles_close():
    """The last day of a year is next to the first one, Sunday next to Monday, midnight next to the
    minute before.
    """
    dates = Dates(("season", "weekday", "time of day"), timed=True)
    rows = dates.encode(
        np.array(["2023-12-31T23:59", "2024-01-01T00:00", "2024-07-04T12:00"], dtype="M8[m]")
    )[:, 1:]
    near, far = np.abs(rows[0] - rows[1]), np.linalg.norm(rows[1] - rows[2])
    assert near[:2].max() < 0.02
    assert np.linalg.norm(near[2:4]) == pytest.approx(2 * np.sin(np.pi / 7))
    assert near[4:].max() < 0.005
    assert far > 2.8


@pytest.mark.parametrize(
    ("first", "second", "order", "said"),
    [
        (["03/04/2024", "01/02/2024"], ["31/12/2023", "01/02/2024"], DAY_FIRST, True),
        (["03/04/2024", "01/02/2024"], ["12/31/2023", "01/02/2024"], MONTH_FIRST, True),
        (["03/04/2024", "01/02/2024"], ["x", "y"], DAY_FIRST, True),
        (
            ["01/01/2024", "02/01/2024"],
            ["x", "y"],
            MONTH_FIRST,
            True,
        ),  # always the first of a month
        (["01/01/2024", "01/02/2024"], ["x", "y"], DAY_FIRST, True),
        (
            ["03.04.2024", "01.02.2024"],
            ["12/31/2023", "01/02/2024"],
            DAY_FIRST,
            False,
        ),  # points have one order
        (["13/04/2024", "01/02/2024"], ["12/31/2023", "01/02/2024"], DAY_FIRST, False),
    ],
)
def test_the_order_of_day_and_month(first, second, order, said):
    frame = frame_of(first, second)
    columns = Columns.of(frame, "y")
    assert columns.dates["a"].order == order
    sentence = (
        f"Dates such as {first[0] if first[0][:2] != first[0][3:5] else first[1]} in a were read"
        f" with the {order}."
    )
    assert (sentence in columns.notes) == said
    if said:
        with pytest.raises(
            InvalidInputError,
            match="'a' has ambiguous dates such as .*; .* --strict",
        ):
            Columns.of(frame, "y", strict=True)
    # A model reads other tables in the order of its own.
    read = columns.features(pd.DataFrame({"a": ["05/06/2024"], "b": second[:1]}))["a"].iloc[0]
    assert read == pd.Timestamp(2024, 6, 5) if order == DAY_FIRST else pd.Timestamp(2024, 5, 6)


@pytest.mark.parametrize(
    ("dates", "words"),
    [
        (
            ["31/12/2024", "12/31/2024", "1/1/2024"],
            "dates in one order in column 'a', got '31/12/2024' in row 1 and '12/31/2024'",
        ),
        (
            ["31/12/2024", "soon", "1/1/2024"],
            "expected a date with the day first in column 'a', got 'soon' in row 2",
        ),
        (
            ["2024-12-31", "2024-02-30", "2023-01-01"],
            "expected a date in column 'a', got '2024-02-30' in row 2",
        ),
        (["2024-12-31", "2023-02-29", "2023-01-01"], "got '2023-02-29' in row 2"),
        (["2024-12-31", "2024-13-01", "2023-01-01"], "got '2024-13-01' in row 2"),
        (["2024-12-31 10:00", "2024-12-30 25:00", "2023-01-01"], "got '2024-12-30 25:00' in row 2"),
        (["2024-12-31", "2024-12-30 13:00 pm", "2023-01-01"], "got '2024-12-30 13:00 pm' in row 2"),
        (["2024-12-31", "1700000000", "2023-01-01"], "got '1700000000' in row 2"),
        (["45/45/2024", "2024-12-30", "2023-01-01"], "got '45/45/2024' in row 1"),
        (["0000-12-31", "2024-12-30", "2023-01-01"], "got '0000-12-31' in row 1"),
    ],
)
def test_dates_that_cannot_be_read(dates, words):
    with pytest.raises(InvalidInputError, match=words):
        Columns.of(frame_of(dates), "y")


def test_forms_may_be_mixed_as_long_as_they_do_not_contradict():
    frame = frame_of(
        ["2024-12-31", "31/12/2023", "1 Jan 2022", "2021-05", "", "15.1.1899", "2150-01-01 08:30"]
    )
    read = Columns.of(frame, "y").features(frame)["a"]
    expected = [
        "2024-12-31",
        "2023-12-31",
        "2022-01-01",
        "2021-05-01",
        "1899-01-15",
        "2150-01-01 08:30",
    ]
    assert read.drop(5).tolist() == [pd.Timestamp(text) for text in expected]
    assert read[5] == pd.Timestamp("2022-12-31 12:00")  # half way between the two in the middle


def test_years_of_two_digits_and_time_zones_are_said():
    frame = frame_of(
        ["31.12.68", "1.1.69", "1.1.00"],
        ["2024-01-01T10:00+01:00", "2024-01-01T10:00Z", "2024-06-01T10:00+02:00"],
    )
    columns = Columns.of(frame, "y")
    assert columns.features(frame)["a"].dt.year.tolist() == [2068, 1969, 2000]
    assert (columns.features(frame)["b"].dt.hour == 10).all()
    assert columns.notes == (
        "Two-digit years in a were read as 1969 to 2068.",
        "The times in b are in 3 time zones, and were read as local times.",
    )
    with pytest.raises(InvalidInputError, match="'a' has two-digit years, such as '31.12.68'"):
        Columns.of(frame, "y", strict=True)
    with pytest.raises(InvalidInputError, match="'b' has times in 3 time zones"):
        Columns.of(frame, "y", strict=True, drop=["a"])


def test_columns_of_datetimes():
    plain = pd.to_datetime(["2024-01-05 10:30", None, "2024-01-07 10:30", "2024-01-06 10:30"])
    zoned = plain.tz_localize("Europe/Berlin")
    objects = [
        datetime.date(2024, 1, 5),
        None,
        pd.Timestamp(2024, 1, 7),
        datetime.datetime(2024, 1, 6),
    ]
    frame = pd.DataFrame({"plain": plain, "zoned": zoned, "objects": objects, "y": [1, 2, 3, 4]})
    X = Columns.of(frame, "y").features(frame)
    assert (
        X["plain"].tolist()
        == X["zoned"].tolist()
        == [pd.Timestamp(f"2024-01-0{day} 10:30") for day in (5, 6, 7, 6)]
    )
    assert X["objects"].tolist() == [pd.Timestamp(f"2024-01-0{day}") for day in (5, 6, 7, 6)]


def test_rows_may_have_the_same_names():
    frame = frame_of(["2024-12-31", "", "2023-01-01"], ["1 kg", "2 kg", ""]).set_axis([7, 7, 7])
    X = Columns.of(frame, "y").features(frame)
    assert X["a"].dt.year.tolist() == [2024, 2024, 2023]
    assert X["b"].tolist() == [1.0, 2.0, 1.5]
    with pytest.raises(InvalidInputError, match="got '2024-12-32' in row 7"):
        Columns.of(frame.assign(a=["2024-12-31", "2024-12-32", "2023-01-01"]), "y")


def test_numbers_and_texts_are_not_dates():
    frame = frame_of(
        ["1.5", "2.5", "3.5"], ["1.2.3", "1.2.4", "1.2.3"], ["10:30", "11:30", "10:30"]
    )
    columns = Columns.of(frame, "y")
    assert columns.dates == {}
    assert set(columns.categories) == {"b", "c"}


@pytest.fixture(scope="module")
def sales():
    rng = np.random.default_rng(0)
    day = np.datetime64("2020-01-01") + rng.integers(0, 1000, 80).astype("m8[D]")
    frame = pd.DataFrame(
        {"sold": day, "area": rng.normal(100, 20, 80), "kind": rng.choice(["flat", "house"], 80)}
    )
    season = np.sin(2 * np.pi * pd.DatetimeIndex(day).day_of_year.to_numpy() / 365.25)
    return frame.assign(price=frame["area"] + 30 * season + rng.normal(0, 1, 80))


@pytest.fixture(scope="module")
def model(sales):
    columns = Columns.of(sales, "price")
    return TableModel.fit(columns.features(sales), columns.targets(sales), columns)


def test_a_date_is_explained_as_one_feature(sales, model, tmp_path):
    X = model.columns.features(sales)
    ex = Explainer(model.posterior)(X[:5])
    assert ex.feature_names == ("sold", "area", "kind")
    assert ex.labels["sold"] == tuple(sales["sold"][:5].astype(str))
    np.testing.assert_allclose(ex.values.sum(axis=1), ex.predictions - ex.base_values, atol=1e-8)
    np.testing.assert_allclose(ex.predictions, model.predict(X[:5]), rtol=1e-10)
    assert np.abs(ex.values[:, 0]).mean() > 5  # the season was found
    model.save(tmp_path / "model.json")
    again = TableModel.load(tmp_path / "model.json")
    assert again.columns == model.columns
    np.testing.assert_allclose(
        Explainer(again.posterior)(X[:5]).values, ex.values, rtol=1e-9, atol=1e-9
    )
    one = pd.DataFrame({"sold": ["2021-03-04"], "area": [100.0], "kind": ["flat"]})
    texts = Explainer(model.posterior)(one)
    np.testing.assert_array_equal(
        texts.values, Explainer(model.posterior)(model.columns.features(one)).values
    )


def test_baselines_of_dates(sales, model):
    X = model.columns.features(sales)
    encoder = model.columns.encoder
    median = Explainer(model.posterior, "median")
    day = np.median(X["sold"].to_numpy().astype("M8[D]").astype(int))
    np.testing.assert_array_equal(
        encoder.decode(np.asarray(median.baseline)[None])["sold"], np.datetime64(int(day), "D")
    )
    whole = model.columns.dates["sold"].encode(np.array([int(day)], dtype="M8[D]"))[
        0
    ]  # not the medians of sines and cosines
    np.testing.assert_allclose(
        np.asarray(median.baseline)[encoder.places("sold")], whole, rtol=1e-12
    )
    assert model.typical["sold"] == pd.Timestamp(np.datetime64(int(day), "D"))
    row = Explainer(model.posterior, X.iloc[[3]])
    np.testing.assert_array_equal(row(X.iloc[[3]]).values, 0.0)
    np.testing.assert_array_equal(
        Explainer(model.posterior, X.iloc[3])(X[:4]).values, row(X[:4]).values
    )
    mean = np.asarray(Explainer(model.posterior).baseline)
    np.testing.assert_allclose(mean, encoder.encode("X", X).mean(axis=0), rtol=1e-12)


def test_missing_dates_of_other_tables_are_those_typical_of_the_model(sales, model):
    other = pd.DataFrame({"sold": ["", "2021-01-01"], "area": [1, 2], "kind": ["flat", ""]})
    filled = model.columns.features(other, typical=model.typical)
    assert filled["sold"].tolist() == [model.typical["sold"], pd.Timestamp(2021, 1, 1)]
    nothing = other.assign(sold="")
    assert (
        model.columns.features(nothing, typical=model.typical)["sold"] == model.typical["sold"]
    ).all()
    with pytest.raises(
        InvalidInputError, match="the column 'sold' is empty, and there is no value to fill it with"
    ):
        model.columns.features(nothing)


@pytest.mark.parametrize("bad", [["soon"], [3.5], [None], [pd.NaT]])
def test_rows_without_dates_are_refused(model, bad):
    with pytest.raises(InvalidInputError, match="X: expected dates in column 'sold'"):
        Explainer(model.posterior)(pd.DataFrame({"sold": bad, "area": [1.0], "kind": ["flat"]}))


def test_one_column_of_dates_is_enough():
    rng = np.random.default_rng(0)
    days = pd.date_range("2023-01-01", periods=60)
    frame = pd.DataFrame(
        {
            "day": days.strftime("%m/%d/%Y"),
            "sales": (days.day_of_week >= 5) * 10.0 + rng.normal(0, 0.5, 60),
        }
    )
    columns = Columns.of(frame, "sales")
    model = TableModel.fit(columns.features(frame), columns.targets(frame), columns)
    assert columns.dates == {"day": Dates(("weekday",), False, MONTH_FIRST)}
    assert model.score(columns.features(frame), columns.targets(frame)) > 0.9
    next_week = columns.features(
        pd.DataFrame({"day": ["03/04/2023", "03/06/2023"]})
    )  # a Saturday, a Monday
    assert np.diff(model.predict(next_week))[0] < -7


def test_encoders_can_be_renamed_and_refuse_nonsense():
    encoder = Encoder(("a", "b"), {}, dates={"b": Dates(("weekday",))})
    assert encoder.renamed(("x", "y")).encoded_names == (
        "x",
        "y: days",
        "y: weekday (sin)",
        "y: weekday (cos)",
    )
    with pytest.raises(
        InvalidInputError, match="cycles: expected some of season, weekday, time of day"
    ):
        Dates(("moon",))
    with pytest.raises(
        InvalidInputError, match="order: expected 'day first', 'month first' or None"
    ):
        Dates((), order="year first")
