"""The report: what it holds, and what it does in a real browser without the network."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer, GPRegressor, SparseGPRegressor
from gpattr.distributions import Gaussian
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior
from gpattr.report import write_report
from gpattr.report.facts import leave_one_out, model_card
from gpattr.tables.held_out import HeldOut

EVIL = '</script><img src=x onerror="window.hacked=1">'
NAMES = ["alcohol", "acidity", EVIL]


@pytest.fixture(scope="module")
def explainer():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=NAMES)
    y = np.sin(X["alcohol"]) + 0.3 * X["acidity"] + 0.1 * rng.normal(size=60)
    return Explainer(ExactPosterior(SquaredExponential([1.0, 2.0, 5.0]), X, y, noise=0.01))


@pytest.fixture(scope="module")
def rows():
    return pd.DataFrame(
        np.random.default_rng(1).normal(size=(80, 3)), columns=NAMES, index=range(1, 81)
    )


@pytest.fixture(scope="module")
def ex(explainer, rows):
    return explainer(rows)


@pytest.fixture(scope="module")
def page(explainer, ex, rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(
        path,
        ex,
        importance=explainer.importance(rows[:20]),
        explainer=explainer,
        title=f"Wine {EVIL}",
    )
    return path


def facts_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(
        re.search(
            r'<script id="facts" type="application/json">(.*?)</script>', text, re.DOTALL
        ).group(1)
    )


def test_it_holds_what_the_explanation_says(page, ex):
    facts = facts_of(page)
    assert facts["features"] == NAMES
    (output,) = facts["outputs"]
    assert (output["importance"]["rows"], output["importance"]["note"]) == (20, "")
    assert facts["rows"][:2] == ["1", "2"]
    assert facts["baseline"] == "mean of the training inputs"
    assert dict(facts["card"])["training rows"] == "60"
    assert not re.search(r'(src|href)="http', page.read_text(encoding="utf-8").split("<script>")[0])
    assert list(page.parent.iterdir()) == [page]


def test_leave_one_out_is_leaving_one_out(explainer):
    posterior = explainer.posterior
    mean, var = leave_one_out(posterior)
    for i in (0, 17, 59):
        others = np.delete(np.arange(60), i)
        alone = ExactPosterior(
            posterior.kernel, posterior.inputs[others], posterior.y[others], noise=0.01
        )
        expected, std = alone.predict(posterior.inputs[[i]], return_std=True)
        assert mean[i] == pytest.approx(expected[0], abs=1e-8)
        assert var[i] == pytest.approx(std[0] ** 2 + 0.01, rel=1e-6)


def test_cards_of_other_models(rows):
    model = GPRegressor(optimize=False).fit(rows, rows["alcohol"])
    card = dict(model_card(model.posterior_))
    assert card["model"] == "exact Gaussian process (ExactPosterior)"
    assert "R²" in card["leave-one-out"]
    assert "of rows inside 95% intervals" in card["calibration, leave-one-out"]
    sparse = SparseGPRegressor(5, optimize=False).fit(rows, rows["alcohol"]).posterior_
    assert dict(model_card(sparse))["held-out rows"] == "performance not available for this model"
    card = dict(model_card(sparse, HeldOut(1000, 0.875, 0.25, (0.48, 0.79, 0.96))))
    assert card["1,000 held-out rows"] == "R² 0.875, typical error 0.25"
    assert card["calibration, held-out rows"].startswith(
        "48% of rows inside 50% intervals, 79% of rows inside 80% intervals"
    )


def test_what_cannot_be_written(ex, tmp_path):
    with pytest.raises(InvalidInputError, match="expected at least one row"):
        write_report(tmp_path / "report.html", ex[[]])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_row_is_clicked_and_its_reasons_are_shown(page, ex, opened):
    with opened(page, viewport={"width": 1100, "height": 900}) as tab:
        assert (
            tab.locator("#rows tr[aria-selected=true]").count() == 1
        )  # the row that is shown first is in sight
        tab.fill("#filter", "1-25")
        tab.click("#rows tbody tr:nth-child(3)")
        assert tab.inner_text("#row-title").startswith("Row 3: ")
        assert abs(tab.locator("#row-section").bounding_box()["y"]) < 50  # and is scrolled to
        strongest = NAMES[int(np.abs(ex.values[2]).argmax())]
        first = tab.inner_text("#sentences")
        assert first.startswith(f"{strongest} = ")
        verb = "adds" if ex.values[2, NAMES.index(strongest)] > 0 else "subtracts"
        assert first.split(" = ")[1].split(" ", 1)[1].startswith(verb)
        shown = float(tab.inner_text("#sentences span:first-of-type").replace("−", "-"))
        assert shown == pytest.approx(np.abs(ex.values[2]).max(), rel=5e-3)
        lines = tab.locator("#waterfall tbody tr")
        cells = [lines.nth(k).locator("th, td").all_inner_texts() for k in range(5)]
        assert cells[0][0] == "Prediction"
        assert float(cells[0][2].replace("−", "-")) == pytest.approx(ex.predictions[2], abs=1e-3)
        assert cells[4][0] == "Baseline: mean of the training inputs"
        order = np.argsort(-np.abs(ex.values[2]))
        positive = ex.prob_positive()[2]
        for cell, i in zip(cells[1:4], order):
            assert cell[0].startswith(f"{NAMES[i]} = ")
            assert float(cell[2].replace("−", "-")) == pytest.approx(ex.values[2, i], abs=6e-3)
            assert float(cell[3].removeprefix("± ")) == pytest.approx(ex.std[2, i], abs=6e-3)
            sure = max(positive[i], 1 - positive[i])
            assert (
                cell[4] == "> 99.9%"
                if sure > 0.999
                else float(cell[4][:-1]) == pytest.approx(np.floor(1000 * sure) / 10, abs=0.01)
            )
        assert tab.locator("#what-if").is_hidden()  # the same picture is not shown twice
        tab.keyboard.press("ArrowDown")
        tab.focus("#rows tbody tr:nth-child(3)")
        tab.keyboard.press("ArrowDown")
        assert tab.inner_text("#row-title").startswith("Row 4: ")
        assert tab.evaluate("window.hacked") is None
        assert EVIL in tab.inner_text("h1")


@pytest.mark.slow
def test_rows_are_sorted_and_filtered(page, ex, opened):
    with opened(page) as tab:
        tab.click("#rows th:nth-child(2) button")
        assert tab.get_attribute("#rows th:nth-child(2)", "aria-sort") == "descending"
        first = tab.inner_text("#rows tbody tr:first-child td:first-child")
        assert first == str(int(ex.predictions.argmax()) + 1)
        tab.fill("#filter", "alcohol > 0.5")
        expected = int((ex.data[:, 0] > 0.5).sum())
        assert f"of {expected}" in tab.inner_text("#count")
        tab.fill("#filter", "17")
        assert tab.locator("#rows tbody tr").count() == 1
        for text, kept in (
            ("alcohol > 0,5", ex.data[:, 0] > 0.5),
            (f"alcohol >= {float(ex.data[4, 0])}", ex.data[:, 0] >= ex.data[4, 0]),
            ("alcohol > 0.5, acidity < 0", (ex.data[:, 0] > 0.5) & (ex.data[:, 1] < 0)),
            ("prediction > 0", ex.predictions > 0),
            ("3-10, 17", np.isin(ex.row_names, [*range(3, 11), 17])),
        ):
            tab.fill("#filter", text)
            assert f"of {kept.sum()}" in tab.inner_text("#count"), text
        for text in ("alcohol >", "sweetness > 3", "alcohol > x"):
            tab.fill("#filter", text)
            assert tab.inner_text("#count").startswith("invalid filter: try 17 or ")
        tab.fill("#filter", "nothing like it")
        assert tab.inner_text("#count") == "no matching rows"
        tab.fill("#filter", "")
        tab.click("#next")
        assert tab.inner_text("#count").startswith("26–50 of 80")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(page, scheme, opened):
    with opened(page, viewport={"width": 390, "height": 800}, color_scheme=scheme) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") == 390
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(15, 20, 25)")


@pytest.mark.slow
def test_ten_thousand_rows(explainer, tmp_path, opened):
    many = explainer(np.random.default_rng(2).normal(size=(10_000, 3)))
    path = tmp_path / "report.html"
    write_report(path, many)
    assert path.stat().st_size < 2e6
    with opened(path) as tab:
        tab.fill("#filter", "0-24")
        click = "document.querySelector('#rows tbody tr:nth-child(5)').click()"
        took = tab.evaluate(
            f"() => {{ const t = performance.now(); {click}; return performance.now() - t; }}"
        )
        assert took < 200
        assert tab.inner_text("#row-title").startswith("Row 4: ")


@pytest.mark.slow
def test_thirty_features_and_ten_thousand_rows_can_be_sent(tmp_path):
    """Digits make up most of the size: random ones stand for those that would take a minute."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 30))
    explainer = Explainer(
        ExactPosterior(SquaredExponential(np.full(30, 5.0)), X, X[:, 0], noise=0.1)
    )
    rows, values = rng.normal(size=(2, 10_000, 30))
    ex = replace(
        explainer(rows[:1], uncertainty="std"),
        distribution=Gaussian(values, rng.random((10_000, 30))),
        predictions=rng.normal(size=10_000),
        base_values=np.zeros(10_000),
        data=rows,
        baselines=np.tile(explainer.baseline, (10_000, 1)),
        row_names=tuple(range(10_000)),
        **dict.fromkeys(("error", "delta", "cov_error"), np.zeros(10_000)),
    )
    write_report(tmp_path / "report.html", ex, explainer=explainer)
    assert (tmp_path / "report.html").stat().st_size < 15e6


@pytest.mark.slow
def test_it_says_of_which_rows_the_importance_is(opened, explainer, ex, rows, tmp_path):
    few = explainer.importance(rows[:20])
    parts = {"few": few, "many": replace(few, n_rows=len(ex), n_joint_rows=20), "none": None}
    parts["sampled"] = replace(
        few, n_rows=100_000, n_joint_rows=20
    )  # the page has some of the rows
    for name, importance in parts.items():
        write_report(tmp_path / f"{name}.html", ex, importance=importance)
    said = {}
    for name in parts:
        with opened(tmp_path / f"{name}.html") as tab:
            said[name] = tab.inner_text("#importance-note") + tab.inner_text("#unsure-note")
    assert (
        "Expected mean absolute attribution over 20 rows, with 95% credible intervals. It includes"
        in said["few"]
    )
    assert (
        "over the rows, with 95% credible intervals (spread from 20 of 80 rows). It includes"
        in said["many"]
    )
    assert (
        "over 100,000 rows, with 95% credible intervals (spread from 20 of 100,000 rows)"
        in said["sampled"]
    )
    assert (
        "Typical attributions do not include their uncertainty, unlike the importance above"
        in said["many"]
    )
    assert (
        "Mean absolute attribution over these rows. Baseline: mean of the training inputs."
        in said["none"]
    )
    assert "Typical attributions" not in said["none"]


ODD = ["constructor", "__proto__", "toString", "10", "2", "$a$, b > c", "0 ≤ " + "x" * 150]


@pytest.mark.slow
def test_names_that_mean_something_to_a_browser(opened, tmp_path):
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(25, len(ODD))), columns=ODD)
    explainer = Explainer(
        ExactPosterior(
            SquaredExponential(np.full(len(ODD), 2.0)), X, X["10"] + X["toString"], noise=0.1
        )
    )
    write_report(tmp_path / "report.html", explainer(X), explainer=explainer)
    with opened(tmp_path / "report.html", viewport={"width": 1100, "height": 900}) as tab:
        assert "undefined" not in tab.inner_text("body")
        shown = tab.locator("#importance tbody th").all_inner_texts()
        assert sorted(shown) == sorted([*ODD[:-1], "0 ≤ " + "x" * 32 + "…" + "x" * 10])
        assert tab.locator("#scatter-feature option").count() == len(ODD)
        tab.fill("#filter", "$a$, b > c > 0")
        assert f"of {int((X['$a$, b > c'] > 0).sum())}" in tab.inner_text("#count")
        assert tab.locator("#importance td.picture").first.bounding_box()["width"] > 300


MOVE = """(year) => {
  const slider = document.querySelector('[aria-label=year]');
  slider.value = year;
  slider.dispatchEvent(new Event('input'));
}"""


@pytest.mark.slow
def test_rows_start_where_they_are(opened, tmp_path):
    """Numbers that are large against their spread keep their digits; a box that is empty keeps its
    value.
    """
    rng = np.random.default_rng(5)
    X = pd.DataFrame(
        {
            "time": 1.7e9 + rng.uniform(0, 1000, 30),
            "year": rng.integers(1990, 2020, 30).astype(float),
        }
    )
    explainer = Explainer(
        ExactPosterior(SquaredExponential([30.0, 3.0]), X, np.sin(X["time"] / 30), noise=0.1)
    )
    write_report(tmp_path / "report.html", explainer(X), explainer=explainer)
    with opened(tmp_path / "report.html", viewport={"width": 1100, "height": 900}) as tab:
        for row in range(1, 26):
            tab.evaluate(f"document.querySelector('#rows tbody tr:nth-child({row})').click()")
            answer = tab.inner_text("#what-if-answer")
            assert ", as for row " in answer
            assert "Outside" not in answer
        before = tab.evaluate("document.getElementById('what-if').answer.prediction")
        tab.fill("[aria-label='time, value']", "")
        tab.evaluate(MOVE, float(tab.input_value("[aria-label='year, value']")))
        assert tab.evaluate(
            "document.getElementById('what-if').answer.prediction"
        ) == pytest.approx(before, rel=1e-9)
        tab.locator("[aria-label='time, value']").blur()
        assert float(tab.input_value("[aria-label='time, value']")) > 1.7e9
        tab.evaluate(MOVE, 2001.4)
        assert tab.input_value("[aria-label='year, value']") == "2001"  # whole numbers stay whole


@pytest.mark.slow
def test_what_is_said_of_rows(explainer, rows, opened, tmp_path):
    path, point = tmp_path / "report.html", rows.iloc[3]
    ex = Explainer(explainer.posterior, point)(rows)
    measured = np.where(np.arange(80) < 40, 1.25, np.nan)
    write_report(
        path, ex, measured=measured, notes=["3 missing values in <i>pH</i> were filled with 7."]
    )
    with opened(path, color_scheme="dark", viewport={"width": 1100, "height": 900}) as tab:
        assert tab.inner_text("#notes li") == "3 missing values in <i>pH</i> were filled with 7."
        assert tab.inner_text("#what-if-note").startswith("Not available: sliders need the model")
        tab.fill("#filter", "4")
        tab.click("#rows tbody tr")
        assert tab.inner_text("#row-title").endswith("; observed: 1.25")
        assert tab.inner_text("#sentences") == ""  # the baseline itself has no reasons
        assert tab.locator("#waterfall tbody td:last-child").all_inner_texts() == [
            "",
            "–",
            "–",
            "–",
            "",
        ]
        doubtful = (
            (ex.values != 0) & (np.maximum(ex.prob_positive(), 1 - ex.prob_positive()) < 0.95)
        ).mean(axis=0)
        cells = dict(cell.split("\t")[:2] for cell in tab.inner_text("#unsure tbody").splitlines())
        assert cells == {
            name: f"{math.floor(100 * share + 0.5)}%" for name, share in zip(NAMES, doubtful)
        }
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 20, 25)"
        tab.emulate_media(media="print", color_scheme="dark")
        assert (
            tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        )
        assert (
            tab.evaluate("getComputedStyle(document.querySelector('#importance th')).color")
            == "rgb(87, 96, 106)"
        )
    with pytest.raises(InvalidInputError, match="measured: expected 80 numbers"):
        write_report(path, ex, measured=[1.0])
