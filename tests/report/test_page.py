"""What a new user sees: numbers as people write them, names that fit, points that can be asked."""

import re
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from gpattr import Explainer
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior
from gpattr.report import write_report
from gpattr.tables import Columns, TableModel


@pytest.fixture(scope="module")
def script(chromium):
    tab = chromium.new_page()
    tab.add_script_tag(content=(files("gpattr.report") / "numbers.js").read_text(encoding="utf-8"))
    yield tab.evaluate
    tab.close()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("readable(690412.3)", "690,400"),
        ("readable(-690412.3)", "−690,400"),
        ("readable(2024)", "2024"),
        ("readable(10000)", "10,000"),
        ("readable(0.01234567)", "0.01235"),
        ("readable(-0)", "0"),
        ("readable(1.234e-7)", "1.23e−7"),
        ("readable(-4.2e15)", "−4.20e15"),
        ("readable(NaN)", "–"),
        ("readable(-Infinity)", "−∞"),
        ("readable(12, 4, { sign: true })", "+12"),
        ("readable(0, 4, { sign: true })", "0"),
        ("readable(-0, 4, { sign: true })", "0"),
        ("fixed(-0.001, 2, { sign: true })", "0.00"),
    ],
)
def test_single_numbers(script, call, expected):
    assert script(f"numbers.{call}") == expected


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("column", [435746.2, -1112.4, 0.3, 0.0], ["435,746", "−1,112", "0", "0"]),
        ("column", [1.16, -0.521, 0.001], ["1.16", "−0.52", "0.00"]),
        ("column", [1e-9, -2.5e-9], ["1.00e−9", "−2.50e−9"]),
        ("measured", [1986.0, 2003.0], ["1986", "2003"]),
        ("measured", [46110.41, 9.5], ["46,110", "9.5"]),
        ("measured", [34.6, 20.0], ["34.6", "20.0"]),
        ("measured", [1.7e9 + 0.25, 1.7e9 + 900.0], ["1,700,000,000", "1,700,000,900"]),
        ("measured", [5.0, float("nan")], ["5", "–"]),
    ],
)
def test_numbers_of_a_column(script, kind, values, expected):
    array = "[" + ", ".join("NaN" if np.isnan(value) else repr(value) for value in values) + "]"
    assert script(f"{array}.map(numbers.{kind}({array}))") == expected


def test_ticks_are_round_and_probabilities_are_never_certain(script):
    assert script(
        "(() => { const { at, text } = numbers.ticks(131000, 702000, 4); return at.map(text); })()"
    ) == [
        "200,000",
        "400,000",
        "600,000",
    ]
    assert script(
        "(() => { const { at, text } = numbers.ticks(1951, 2019, 4); return at.map(text); })()"
    ) == [
        "1960",
        "1980",
        "2000",
    ]
    shown = script("[0.97, 0.9949, 0.99999, 0.0004, 0.5].map(numbers.probability)")
    assert shown == ["0.97", "0.995", "> 0.999", "< 0.001", "0.50"]
    assert script("[0.97, 0.57, 0.9949, 0.94999, 0.99999].map(numbers.percent)") == [
        "97%",
        "57%",
        "99.4%",
        "94.9%",
        "> 99.9%",
    ]


def test_the_normal_distribution(script):
    z = np.linspace(-8.0, 8.0, 201)
    np.testing.assert_allclose(script(f"{z.tolist()}.map(numbers.normal)"), ndtr(z), rtol=1e-9)
    assert script("[-Infinity, 0, Infinity, 40].map(numbers.normal)") == [0, 0.5, 1, 1]


@pytest.fixture(scope="module")
def houses():
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "living area of the whole building (m²)": rng.normal(100, 30, n).round(),
            "kind": rng.choice(["flat", "house", "tower"], n),
            "built": rng.integers(1950, 2020, n).astype(float),
            "yearly_tax_of_the_municipality_without_rebates": rng.normal(45000, 9000, n).round(2),
        }
    )
    area, tax = frame.columns[0], frame.columns[3]
    frame["price (€)"] = (
        6000 * frame[area]
        + 40000 * (frame["kind"] == "house")
        + 2 * frame[tax]
        + rng.normal(0, 9000, n)
    )
    return frame


@pytest.fixture(scope="module")
def page(houses, tmp_path_factory):
    columns = Columns.of(houses, "price (€)")
    X, y = columns.features(houses), columns.targets(houses)
    explainer = Explainer(TableModel.fit(X, y, columns).posterior)
    ex = replace(explainer(X), quantity="predicted price (€)")
    path = tmp_path_factory.mktemp("houses") / "report.html"
    write_report(
        path,
        ex,
        importance=explainer.importance(X),
        explainer=explainer,
        measured=y,
        data_name="houses.csv",
    )
    return path


def test_a_small_table_makes_a_small_page(page):
    assert page.stat().st_size < 2.2e5
    assert "plotly" not in page.read_text(encoding="utf-8").lower()


@pytest.mark.slow
def test_prices_and_years_are_written_as_such(page, opened):
    with opened(page, viewport={"width": 1280, "height": 900}) as tab:
        text = tab.inner_text("body")
        assert not re.search(r"\d[eE][+−-]?\d", text.split("Model and method")[0])
        title = tab.inner_text("#row-title")
        pattern = (
            r"Row \d+: predicted price \(€\) \d?,?\d{3},\d{3}, at the baseline \d{3},\d{3};"
            r" observed: \d?,?\d{3},\d{3}"
        )
        assert re.match(pattern, title), title
        assert re.search(r"built = (19|20)\d\d\s", tab.inner_text("#waterfall"))
        for picture in ("#importance", "#waterfall", "#scatter"):
            assert "predicted price (€)" in tab.inner_text(picture)
        for part in ("#importance-note", "#waterfall", "#rows-note", "#scatter-note"):
            assert "mean of the training inputs" in tab.inner_text(part)


# Boxes of the texts of pictures that are shown, and the pairs of them that overlap.
OVERLAPS = """() => {
  const range = document.createRange(), boxes = [];
  const texts = ".bars th, .bars td:not(.picture):not(.axis), .ticks span, .axis-name, .side span";
  for (const node of document.querySelectorAll(texts)) {
    if (!node.textContent || !node.offsetParent) continue;
    range.selectNodeContents(node);
    for (const box of range.getClientRects())
      if (box.width > 0) boxes.push({ text: node.textContent, node, box });
  }
  const found = [];
  for (const one of boxes) {
    if (one.box.left < 0 || one.box.right > document.documentElement.clientWidth + 0.5)
      found.push(`outside: ${one.text}`);
    for (const two of boxes) {
      if (one.node === two.node) continue;
      const wide = Math.min(one.box.right, two.box.right) - Math.max(one.box.left, two.box.left);
      const high = Math.min(one.box.bottom, two.box.bottom) - Math.max(one.box.top, two.box.top);
      if (wide > 1 && high > 3) found.push(`${one.text} | ${two.text}`);
    }
  }
  return [boxes.length, found];
}"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_labels_do_not_overlap(page, opened, width):
    with opened(page, viewport={"width": width, "height": 800}) as tab:
        for feature in range(4):
            tab.select_option("#scatter-feature", index=feature)
            count, overlaps = tab.evaluate(OVERLAPS)
            assert count > 40
            assert overlaps == []
        assert tab.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.slow
def test_points_are_asked_and_clicked(page, opened):
    with opened(page, viewport={"width": 1100, "height": 1200}) as tab:
        first = tab.locator("#scatter circle").nth(7)
        first.scroll_into_view_if_needed()
        box = first.bounding_box()
        tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        tip = tab.inner_text(".tip")
        assert tip.startswith("Row ")
        assert " certain" in tip
        tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert tab.inner_text("#row-title").startswith(tip.split(":")[0] + ":")
        tab.select_option("#scatter-feature", label="kind")  # categories have words
        assert {
            name.split(" ")[0] for name in tab.locator("#scatter tbody th").all_inner_texts()
        } == {"flat", "house", "tower"}
        assert tab.locator("#scatter circle").count() == 60
        tab.select_option("#scatter-color", label="kind")
        assert {"flat", "house", "tower"} <= set(
            tab.locator("#scatter-legend span").all_inner_texts()
        )
        line = tab.locator("#waterfall tbody tr").nth(1)
        line.hover()
        assert "95% interval " in tab.inner_text(".tip")


def test_unsure_points_are_hollow(opened, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["strong", "weak"])
    explainer = Explainer(
        ExactPosterior(
            SquaredExponential([2.0, 2.0]), X[:8], np.sin(3 * X["strong"][:8]), noise=0.1
        )
    )
    ex = explainer(X)
    write_report(tmp_path / "report.html", ex)
    unsure = np.maximum(ex.prob_positive(), 1 - ex.prob_positive()) < 0.95
    assert 0 < unsure[:, 0].sum() < 40
    with opened(tmp_path / "report.html") as tab:
        for i, name in enumerate(ex.feature_names):
            tab.select_option("#scatter-feature", label=name)
            assert tab.locator("#scatter circle.hollow").count() == unsure[:, i].sum()
        assert "hollow: sign less than 95% certain" in tab.inner_text("#scatter-legend")


@pytest.mark.slow
def test_more_features_than_fit_are_shown_when_asked(opened, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 20)), columns=[f"feature {i}" for i in range(20)])
    explainer = Explainer(
        ExactPosterior(SquaredExponential(np.full(20, 5.0)), X, X["feature 0"], noise=0.1)
    )
    ex = explainer(X)
    write_report(tmp_path / "report.html", ex, explainer=explainer, selected_row=4)
    with opened(tmp_path / "report.html") as tab:
        assert tab.inner_text("#row-title").startswith("Row 4: ")
        assert tab.locator("#importance tbody tr").count() == 12
        assert "8 other features" in tab.inner_text("#waterfall")
        assert tab.locator("#sliders > div:visible").count() == 12
        for part, lines in (("importance", 20), ("waterfall", 22)):
            tab.click(f"#{part} button")
            assert tab.locator(f"#{part} tbody tr").count() == lines
        tab.click("#more-sliders button")
        assert tab.locator("#sliders > div:visible").count() == 20
        shown = tab.evaluate(
            "[...document.querySelectorAll('#waterfall tr[data-value]')].map((row) =>"
            " Number(row.dataset.value))"
        )
        assert sum(shown) == pytest.approx(ex.predictions[4] - ex.base_values[4], rel=1e-4)
        tab.click("#waterfall button")
        assert tab.locator("#waterfall tbody tr").count() == 15
