"""The function as a whole in the page: curves where the numbers say, extrapolation that is marked,
shares of the variance; of numbers, categories and dates, for each class.
"""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer, GPClassifier, sobol_indices
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import SquaredExponential
from gpattr.report import write_report
from gpattr.report.whole_function import MOST_VALUES, curve_content
from gpattr.tables import Columns, TableModel

EVIL = "</script><b>$x$"
WIDE, NARROW = {"width": 1100, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def houses():
    """An explainer of houses, and their features."""
    rng = np.random.default_rng(0)
    n = 90
    day = rng.integers(0, 1400, n)
    frame = pd.DataFrame(
        {
            "area": rng.normal(100, 20, n).round(1),
            "kind": rng.choice(["flat", "house", EVIL], n),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(day, unit="D"),
            EVIL: rng.normal(size=n),
            "rooms": rng.integers(1, 6, n),
            "noise": rng.normal(size=n),
            "more": rng.normal(size=n),
        }
    )
    frame["price"] = (
        frame["area"]
        + 30 * (frame["kind"] == "house")
        + 0.02 * day
        + 9 * np.sin(frame[EVIL])
        + rng.normal(0, 1, n)
    )
    columns = Columns.of(frame, "price")
    X = columns.features(frame)
    model = TableModel.fit(X, columns.targets(frame), columns)
    return Explainer(model.posterior, target_name="price"), X


@pytest.fixture(scope="module")
def curves(houses):
    explainer, X = houses
    grid = {"area": np.linspace(0, 200, 41)}  # beyond the data on both sides
    return {name: explainer.dependence(name, grid.get(name)) for name in X.columns}


@pytest.fixture(scope="module")
def indices(houses):
    return sobol_indices(houses[0].posterior, target_name="price")


@pytest.fixture(scope="module")
def page(houses, curves, indices, tmp_path_factory):
    explainer, X = houses
    path = tmp_path_factory.mktemp("whole") / "report.html"
    write_report(
        path,
        explainer(X),
        explainer=explainer,
        dependence=list(curves.values()),
        indices=indices,
        level=0.9,
    )
    return path


# Where the parts of a figure are, in the units of its axes: ticks are labelled with numbers.
MEASURED = """(name) => {
  const all = (box, look) => [...box.querySelectorAll(look)];
  const figure = all(document, "#curves figure").find((f) => f.dataset.feature === name);
  const amount = (text) => Number(text.replaceAll("−", "-").replaceAll(",", ""));
  const fit = (spans, place) => {
    const known = spans.filter((s) => !s.hidden).map((s) => [place(s), amount(s.textContent)]);
    const [[p, x], [q, y]] = [known[0], known[known.length - 1]];
    return (at) => x + ((at - p) / (q - p)) * (y - x);
  };
  const up = fit(all(figure, ".side span"), (s) => parseFloat(s.style.top));
  const ticks = all(figure, ".ticks span");
  const numbered = ticks.every((s) => !Number.isNaN(amount(s.textContent))) && ticks.length > 1;
  const across = numbered ? fit(ticks, (s) => parseFloat(s.style.left)) : (at) => at;
  const height = (node, name) => up(parseFloat(node.getAttribute(name)));
  const pairs = (d) => d.slice(1).replace("Z", "").split("L").map((p) => p.split(" ").map(Number));
  const of = (look) => all(figure, look).map((path) =>
    pairs(path.getAttribute("d")).map(([x, y]) => [across(x), up(y)]));
  const whiskers = all(figure, ".area svg").map((s) => s.querySelector("line.whisker"));
  return {
    curve: of("path.curve:not(.guess)"), guess: of("path.curve.guess"),
    band: of("path.band:not(.guess)"), guessed: of("path.band.guess"),
    shaded: all(figure, ".beyond").length,
    dots: all(figure, ".area > svg .dot").map((c) => height(c, "cy")),
    whiskers: whiskers.filter(Boolean).map((l) => [height(l, "y1"), height(l, "y2")]),
    ticks: ticks.map((s) => s.textContent),
    side: all(figure, ".side span").map((s) => s.textContent),
    bars: all(figure, ".density rect").map((r) => 100 - parseFloat(r.getAttribute("y"))),
    words: figure.querySelector("p").textContent,
    name: figure.querySelector("figcaption").textContent,
  };
}"""


def expand(tab):
    tab.click("#more-curves button")
    return tab


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_curves_are_drawn_where_the_numbers_say(page, curves, opened, viewport):
    with opened(page, viewport=viewport) as tab:
        expand(tab)
        sides = []
        for name, curve in curves.items():
            found = tab.evaluate(MEASURED, name)
            assert found["name"] == name
            sides.append(found["side"])
            low, high = curve.interval(0.9)
            close = {"rtol": 0, "atol": 0.02 * np.ptp(curve.values) + 0.05}
            if curve.axes[0].kind == "category":
                np.testing.assert_allclose(found["dots"], curve.values, **close)
                np.testing.assert_allclose(found["whiskers"], np.column_stack([low, high]), **close)
                assert found["ticks"] == list(curve.grid)
                continue
            inside = ~curve.outside
            ((*line,),), ((*band,),) = found["curve"], found["band"]
            x, y = np.array(line).T
            np.testing.assert_allclose(y, curve.values[inside], **close)
            edges = np.r_[high[inside], low[inside][::-1]]
            np.testing.assert_allclose(np.array(band)[:, 1], edges, **close)
            if curve.axes[0].kind == "number":
                where = curve.axes[0].values[inside]
                np.testing.assert_allclose(x, where, rtol=0, atol=0.01 * np.ptp(where))
        assert sides.count(sides[0]) == len(sides)  # effects compare
        heights = tab.eval_on_selector_all(
            "#curves path:not(.band.guess)",
            "all => all.flatMap(p => p.getAttribute('d').match(/ -?[\\d.]+/g).map(Number))",
        )
        assert min(heights) >= 0  # nothing is cut off
        assert max(heights) <= 100


def test_extrapolation_is_marked(page, curves, opened):
    curve = curves["area"]
    assert curve.outside[0]
    assert curve.outside[-1]
    with opened(page, viewport=WIDE) as tab:
        expand(tab)
        found = tab.evaluate(MEASURED, "area")
        left, right = found["guess"]
        first, last = np.flatnonzero(~curve.outside)[[0, -1]]
        assert (len(left), len(right)) == (first + 1, len(curve.outside) - last)
        assert len(found["guessed"]) == found["shaded"] == 2
        other = tab.evaluate(MEASURED, "more")
        assert (other["guess"], other["shaded"]) == ([], 0)
        assert "outside the data" in tab.inner_text("#curves-legend")
        # The words are about the data, not about what lies beyond them.
        at = float(re.search(r"highest [\d.]+ \(at ([\d.]+)\)", found["words"])[1])
        assert at <= curve.axes[0].data.max()


def test_dates_have_an_axis_of_dates(page, curves, opened):
    with opened(page, viewport=WIDE) as tab:
        expand(tab)
        found = tab.evaluate(MEASURED, "sold")
        assert found["ticks"] == ["2021", "2022", "2023"]
        assert re.search(r"Lowest [\d.]+ \(at 20\d\d-\d\d-\d\d\)", found["words"])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("2020-01-03", "2023-10-20", ["2021", "2022", "2023"]),
        ("1900-05-01", "2023-10-20", ["1950", "2000"]),
        ("2021-01-20", "2021-09-03", ["2021-03", "2021-05", "2021-07", "2021-09"]),
        ("2021-01-20", "2021-01-25", ["2021-01-21", "2021-01-23", "2021-01-25"]),
        ("2021-01-20T01:00", "2021-01-20T22:00", ["06:00", "12:00", "18:00"]),
    ],
)
def test_round_dates(page, opened, low, high, expected):
    ends = [pd.Timestamp(text).timestamp() / 86400 for text in (low, high)]
    with opened(page) as tab:
        script = "(ends) => { const t = curves.dateTicks(...ends, 4); return t.at.map(t.text); }"
        assert tab.evaluate(script, ends) == expected


def test_the_data_are_below_the_curve(page, curves, houses, opened):
    with opened(page, viewport=WIDE) as tab:
        expand(tab)
        heights = np.array(tab.evaluate(MEASURED, "kind")["bars"])
        labels = curves["kind"].axes[0].values
        counts = houses[1]["kind"].value_counts()[list(labels)].to_numpy()
        np.testing.assert_allclose(heights, 100 * counts / counts.max(), atol=0.1)
    data = curve_content(curves["area"], 0.9)["data"]
    assert sum(data["counts"]) == len(houses[1])
    assert (data["low"], data["high"]) == (0.0, 200.0)


def test_words_say_how_certain_the_difference_is(page, curves, opened):
    with opened(page, viewport=WIDE) as tab:
        expand(tab)
        strong = tab.evaluate(MEASURED, "area")["words"]
        assert "the model is more than 99.9% certain of this difference" in strong
        note = tab.inner_text("#curves-note")
        assert note.startswith("Predicted price, averaged over 90 rows in which one feature takes")
        assert "same vertical scale" in note
        assert "with 90% probability" in tab.inner_text("#curves-legend")
        curve = curves["kind"]
        low, high = curve.values.argmin(), curve.values.argmax()
        certain = curve.prob_increasing(curve.grid[low], curve.grid[high])
        assert curve_content(curve, 0.9)["extremes"]["certain"] == pytest.approx(certain)
        said = tab.evaluate(MEASURED, "kind")["words"]
        assert f"({curve.grid[low]})" in said
        assert f"({curve.grid[high]})" in said


def test_values_are_read_by_pointer_and_keyboard(page, curves, opened):
    curve = curves["kind"]
    with opened(page, viewport=WIDE) as tab:
        area = tab.locator("#curves figure[data-feature=kind] .area")
        assert "against kind. Lowest" in area.get_attribute("aria-label")
        area.focus()
        assert tab.locator(".tip").count() == 0 or tab.locator(".tip").is_hidden()
        for k in range(3):
            tab.keyboard.press("ArrowRight")
            said = tab.inner_text(".tip")
            assert said.startswith(f"kind = {curve.grid[k]}: {curve.values[k]:.0f}")
            assert "90% interval" in said
        tab.keyboard.press("Home")
        assert f"kind = {curve.grid[0]}" in tab.inner_text(".tip")
        tab.keyboard.press("Escape")
        assert tab.locator(".tip").is_hidden()
        tab.locator("#curves figure[data-feature=sold] .area").hover()
        assert re.match(r"sold = 202\d-\d\d-\d\d: \d+", tab.inner_text(".tip"))


def test_six_curves_at_first_the_strongest_first(page, houses, opened):
    explainer, X = houses
    strength = np.abs(explainer(X).values).mean(axis=0)
    names = [X.columns[i] for i in np.argsort(-strength)]
    with opened(page, viewport=WIDE) as tab:
        assert tab.locator("#curves figcaption").all_inner_texts() == names[:6]
        assert tab.inner_text("#more-curves") == "Show 1 more feature"
        expand(tab)
        assert tab.locator("#curves figcaption").all_inner_texts() == names
        tab.click("#more-curves button")
        assert tab.locator("#curves figure").count() == 6
        assert tab.locator("b", has_text="$x$").count() == 0  # a name is text


def test_shares_of_the_variance(page, indices, opened):
    order = np.argsort(-indices.total)
    with opened(page, viewport=WIDE) as tab:
        rows = tab.locator("#indices tbody tr")
        found = rows.evaluate_all("r => r.map(x => ({ ...x.dataset }))")
        assert [row["feature"] for row in found] == [indices.feature_names[i] for i in order]
        for kind, expected in (("first", indices.first), ("total", indices.total)):
            shown = [float(row[kind]) for row in found]
            np.testing.assert_allclose(shown, expected[order], atol=1e-6)
        low, high = (end[order] for end in indices.total_interval(0.9))
        tick = "#indices .ticks span"
        unit = tab.eval_on_selector_all(
            tick, "t => t.map(s => [parseFloat(s.textContent) / 100, parseFloat(s.style.left)])"
        )
        (x, p), *_, (y, q) = unit
        place = rows.evaluate_all(
            "r => r.map(x => { const l = [...x.querySelectorAll('line.whisker')].slice(-2);"
            " return l.map(e => parseFloat(e.getAttribute('x1'))); })"
        )
        ends = x + (np.array(place) - p) / (q - p) * (y - x)
        np.testing.assert_allclose(ends, np.column_stack([low, high]), atol=2e-4)
        note, method = tab.inner_text("#indices-note"), tab.inner_text("#indices-method")
        assert "Variation of the predicted price" in note
        assert indices.inputs in note
        assert f"Variance {indices.variance:.1f}" in method
        assert indices.unknown_share < 1e-3
        assert "of which < 0.1% is not yet known" in method
        assert indices.method in method
        assert "numerical error about" in method


def test_colours_follow_the_scheme(page, opened):
    look = """() => ["path.curve", ".density rect", "path.band"].map((name) => {
      const { stroke, fill } = getComputedStyle(document.querySelector(name));
      return stroke + fill;
    })"""
    found = {}
    for scheme in ("light", "dark"):
        with opened(page, color_scheme=scheme) as tab:
            found[scheme] = tab.evaluate(look)
    assert all(light != dark for light, dark in zip(*found.values(), strict=True))


def test_nothing_sticks_out_of_a_narrow_page(page, opened):
    with opened(page, viewport=NARROW) as tab:
        expand(tab)
        assert tab.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
        boxes = tab.eval_on_selector_all(
            "#curves figure", "f => f.map(x => x.getBoundingClientRect().right)"
        )
        assert max(boxes) <= NARROW["width"]


def test_each_class_has_its_own(tmp_path, opened):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(45, 2)), columns=["length", "width"])
    species = ["one", EVIL, "three"]
    y = np.array(species)[np.clip(np.round(X["length"] + 1).astype(int), 0, 2)]
    model = GPClassifier(SquaredExponential([1.0, 3.0], 4.0), optimize=False).fit(X, y)
    ex = Explainer(model, output="probability", n_draws=50)(X)
    latent = Explainer(model)
    curves = {name: [latent[name].dependence("length")] for name in ex.output_names}
    indices = {name: sobol_indices(model, output=name, n_draws=200) for name in species[:2]}
    write_report(tmp_path / "report.html", ex, dependence=curves, indices=indices)
    with opened(tmp_path / "report.html", viewport=WIDE) as tab:
        for name in species:
            tab.select_option("#output", label=name)
            (curve,) = curves[name]
            note = tab.inner_text("#curves-note")
            assert note.startswith(f"L{curve.quantity[1:]}, averaged over 45 rows")
            assert curve.quantity == f"log odds of {name!r} against the rest"
            assert "Log odds of 0 are a probability of 50%" in note
            assert "Curves of 1 of 2 features." in note
            ((*line,),) = tab.evaluate(MEASURED, "length")["curve"]
            np.testing.assert_allclose(np.array(line)[:, 1], curve.values, atol=0.05)
            assert tab.locator("#indices-section").is_visible() == (name in indices)
            if name in indices:
                shown = tab.eval_on_selector_all(
                    "#indices tbody tr", "r => r.map(x => +x.dataset.total)"
                )
                np.testing.assert_allclose(shown, -np.sort(-indices[name].total), atol=1e-6)
                unknown = f"of which {indices[name].unknown_share:.0%} is not yet known"
                assert unknown in tab.inner_text("#indices-method")
    with pytest.raises(
        InvalidInputError, match="dependence: .* by name, got a list without a name"
    ):
        write_report(tmp_path / "x.html", ex, dependence=curves["one"])
    with pytest.raises(InvalidInputError, match=r"indices: expected those of .* by name, got"):
        write_report(tmp_path / "x.html", ex, indices={"four": indices["one"]})


def test_means_alone_and_a_single_value(houses, tmp_path, opened):
    explainer, X = houses
    means = explainer.dependence("area", uncertainty="none")
    single = explainer.dependence("more", [0.5])
    write_report(tmp_path / "report.html", explainer(X[:5]), dependence=[means, single])
    with opened(tmp_path / "report.html", viewport=WIDE) as tab:
        found = tab.evaluate(MEASURED, "area")
        assert len(found["curve"]) == 1
        assert found["band"] == []
        assert "certain" not in found["words"]
        assert len(tab.evaluate(MEASURED, "more")["dots"]) == 1


def test_no_sections_without_them(houses, tmp_path, opened):
    explainer, X = houses
    write_report(tmp_path / "report.html", explainer(X[:5]), dependence=[])
    with opened(tmp_path / "report.html") as tab:
        assert tab.locator("#curves-section").is_hidden()
        assert tab.locator("#indices-section").is_hidden()


@pytest.mark.slow
def test_long_grids_are_thinned(houses):
    explainer, _ = houses
    long = explainer.dependence("area", np.linspace(50, 150, 3001), uncertainty="std")
    content = curve_content(long, 0.95)
    assert len(json.dumps(content)) < 40 * MOST_VALUES


@pytest.mark.slow
def test_what_is_refused(houses, curves, indices, tmp_path):
    explainer, X = houses
    ex = explainer(X[:5])
    other = replace(curves["area"], quantity="something else")
    for options, message in [
        ({"dependence": 3}, "dependence: expected a gpattr Dependence, a list of them, or None"),
        ({"dependence": "area"}, "dependence: expected a gpattr Dependence, .* got a str"),
        ({"dependence": [curves["area"], 1]}, "dependence: .* got a list with a int"),
        ({"dependence": [curves["area"]] * 2}, "dependence: expected one curve a feature"),
        ({"dependence": [curves["kind"], other]}, "dependence: expected curves of one quantity"),
        (
            {"dependence": explainer.dependence(("area", "more"), 3)},
            "dependence: expected average curves of one feature, got a surface of two",
        ),
        (
            {"dependence": explainer.dependence("area", kind="individual", background=X[:3])},
            "dependence: expected average curves of one feature, got individual curves",
        ),
        (
            {"dependence": explainer.dependence("area", derivative=True)},
            "dependence: expected average curves of one feature, got slopes",
        ),
        ({"dependence": {"x": curves["area"]}}, r"dependence: expected those of \[''\] by name"),
        ({"indices": 3}, "indices: expected gpattr SobolIndices, or None, got a int"),
        ({"indices": [indices]}, "indices: expected gpattr SobolIndices, or None, got a list"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            write_report(tmp_path / "report.html", ex, **options)
    grouped = ex.group({"size": ["area", "rooms"]})
    with pytest.raises(InvalidInputError, match="dependence: expected features of the explanation"):
        write_report(tmp_path / "report.html", grouped, dependence=curves["area"])
    assert list(tmp_path.iterdir()) == []
