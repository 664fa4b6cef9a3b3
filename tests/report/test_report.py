"""The report: what it holds, and what it does in a real browser without the network."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer, GPRegressor
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior
from gpattr.report import write_report
from gpattr.report.facts import leave_one_out, model_card

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
    return pd.DataFrame(np.random.default_rng(1).normal(size=(80, 3)), columns=NAMES, index=range(1, 81))


@pytest.fixture(scope="module")
def ex(explainer, rows):
    return explainer(rows)


@pytest.fixture(scope="module")
def page(explainer, ex, rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, ex, importance=explainer.importance(rows[:20]), explainer=explainer, title=f"Wine {EVIL}")
    return path


def facts_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script id="facts" type="application/json">(.*?)</script>', text, re.DOTALL).group(1))


def test_it_holds_what_the_explanation_says(page, ex):
    facts = facts_of(page)
    assert facts["features"] == NAMES
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
        alone = ExactPosterior(posterior.kernel, posterior.inputs[others], posterior.y[others], noise=0.01)
        expected, std = alone.predict(posterior.inputs[[i]], return_std=True)
        assert mean[i] == pytest.approx(expected[0], abs=1e-8)
        assert var[i] == pytest.approx(std[0] ** 2 + 0.01, rel=1e-6)


def test_cards_of_other_models(rows):
    model = GPRegressor(optimize=False).fit(rows, rows["alcohol"])
    card = dict(model_card(model.posterior_))
    assert card["model"] == "ExactPosterior"
    assert "R²" in card["leave-one-out"]
    assert "of rows in 95% intervals" in card["calibration, leaving one out"]


def test_what_cannot_be_written(ex, tmp_path):
    with pytest.raises(InvalidInputError, match="expected at least one row"):
        write_report(tmp_path / "report.html", ex[[]])
    assert list(tmp_path.iterdir()) == []


def test_a_row_is_clicked_and_its_reasons_are_shown(page, ex, opened):
    with opened(page, viewport={"width": 1100, "height": 900}) as tab:
        tab.click("#rows tbody tr:nth-child(3)")
        assert tab.inner_text("#row-title").startswith("Row 3: ")
        strongest = NAMES[int(np.abs(ex.values[2]).argmax())]
        first = tab.inner_text("#sentences li:first-child")
        assert first.startswith(f"{strongest} = ")
        assert ("adds" if ex.values[2, NAMES.index(strongest)] > 0 else "takes away") in first
        shown = float(tab.inner_text("#sentences li:first-child span").replace("−", "-"))
        assert shown == pytest.approx(np.abs(ex.values[2]).max(), rel=5e-3)
        ends = tab.evaluate("document.getElementById('waterfall').data[1].x")
        assert ends[-1] == pytest.approx(ex.predictions[2], rel=1e-5)
        tab.keyboard.press("ArrowDown")
        tab.focus("#rows tbody tr:nth-child(3)")
        tab.keyboard.press("ArrowDown")
        assert tab.inner_text("#row-title").startswith("Row 4: ")
        assert tab.evaluate("window.hacked") is None
        assert EVIL in tab.inner_text("h1")


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
        tab.fill("#filter", "nothing like it")
        assert tab.inner_text("#count") == "no row matches"
        tab.fill("#filter", "")
        tab.click("#next")
        assert tab.inner_text("#count").startswith("26–50 of 80")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(page, scheme, opened):
    with opened(page, viewport={"width": 390, "height": 800}, color_scheme=scheme) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") == 390
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(15, 20, 25)")


def test_ten_thousand_rows(explainer, tmp_path, opened):
    many = explainer(np.random.default_rng(2).normal(size=(10_000, 3)))
    path = tmp_path / "report.html"
    write_report(path, many)
    assert path.stat().st_size < 15e6
    with opened(path) as tab:
        click = "document.querySelector('#rows tbody tr:nth-child(5)').click()"
        took = tab.evaluate(f"() => {{ const t = performance.now(); {click}; return performance.now() - t; }}")
        assert took < 200
        assert tab.inner_text("#row-title").startswith("Row 4: ")
