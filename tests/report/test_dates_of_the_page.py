"""Dates in the page: its script encodes them as the library does, and asks the model about other
days.
"""

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer
from gpattr.encoders.dates import Dates
from gpattr.report import write_report
from gpattr.report.document import MODEL_SCRIPTS, parts_of
from gpattr.tables import Columns, TableModel

DATES = np.array(
    [
        "2024-02-29T08:30:10",
        "1969-12-31T23:59",
        "0099-03-01",
        "1900-01-01",
        "2100-12-31T12:00",
        "2023-07-02",
    ],
    dtype="M8[us]",
)


def test_the_script_encodes_dates_as_the_library_does(chromium):
    tab = chromium.new_page()
    tab.add_script_tag(content=parts_of("js", MODEL_SCRIPTS))
    encoding = Dates(("season", "weekday", "time of day"), timed=True)
    texts = [text.replace(" ", "T") for text in encoding.texts(encoding.encode(DATES))]
    found = tab.evaluate(
        "([texts, cycles]) => texts.map((text) => whatIf.date(text, cycles))",
        [texts, list(encoding.cycles)],
    )
    tab.close()
    np.testing.assert_allclose(found, encoding.encode(DATES), rtol=1e-12, atol=1e-9)


SET = """([label, value]) => {
  const control = document.querySelector(`#sliders [aria-label="${label}"]`);
  control.value = value;
  control.dispatchEvent(new Event("input"));
  const text = document.getElementById("what-if-answer").textContent;
  return [document.getElementById("what-if").answer, text];
}"""


@pytest.mark.slow
@pytest.mark.parametrize("timed", [False, True])
def test_the_page_asks_the_model_about_other_days(opened, tmp_path, timed):
    rng = np.random.default_rng(0)
    days = rng.choice(900, 60, replace=False) + (rng.integers(0, 24, 60) / 24 if timed else 0)
    sold = (pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")).round("s")
    frame = pd.DataFrame({"sold": sold, "area": rng.normal(100, 20, 60)})
    frame["price"] = frame["area"] + 20 * np.sin(2 * np.pi * days / 365.25) + rng.normal(0, 1, 60)
    columns = Columns.of(frame, "price")
    X = columns.features(frame)
    explainer = Explainer(TableModel.fit(X, columns.targets(frame), columns).posterior)
    ex = explainer(X)
    write_report(tmp_path / "report.html", ex, explainer=explainer)
    with opened(tmp_path / "report.html", viewport={"width": 1100, "height": 900}) as tab:
        shown = tab.input_value("[aria-label='sold']")
        row = [text.replace(" ", "T") for text in ex.labels["sold"]].index(shown)
        for text in (
            ("2021-05-03", "2020-11-29")
            if not timed
            else ("2021-05-03T17:45", "2020-11-29T03:10:20")
        ):
            asked = X.iloc[[row]].assign(sold=pd.Timestamp(text))
            expected = explainer(asked)
            answer, words = tab.evaluate(SET, ["sold", text])
            assert answer["prediction"] == pytest.approx(expected.predictions[0], rel=1e-9)
            np.testing.assert_allclose(answer["values"], expected.values[0], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(answer["stds"], expected.std[0], rtol=1e-7, atol=1e-9)
            assert "Outside" not in words
        assert (
            "Outside the range of the data: sold"
            in tab.evaluate(SET, ["sold", "2035-01-01T00:00" if timed else "2035-01-01"])[1]
        )
