"""Counterfactuals in the page: the rows they belong to, their words, and sliders set to them."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer, GPClassifier
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import EncodedPosterior, ExactPosterior, MultiOutputPosterior
from gpattr.report import write_report
from gpattr.tables import Columns, TableModel

EVIL = "</script><b>$x$"
WIDE = {"width": 1100, "height": 900}
RNG = np.random.default_rng(0)
Z = RNG.normal(size=(30, 3))
POSTERIOR = ExactPosterior(
    SquaredExponential([1.5, 2.0, 2.0]), Z, np.sin(Z[:, 0]) + Z[:, 1], noise=0.05
)
EXPLAINER = Explainer(POSTERIOR)
FOUND = EXPLAINER.counterfactual(Z[4], 1.2)

SLIDERS = """() => {
  const all = (look) => [...document.querySelectorAll(`#sliders ${look}`)];
  const named = (box) => [box.ariaLabel.replace(", value", ""), Number(box.value)];
  const chosen = (box) => [box.ariaLabel, box.selectedOptions[0].text];
  return Object.fromEntries([
    ...all("input[type=number]").map(named), ...all("select").map(chosen),
    ...all("input[type=datetime-local]").map((box) => [box.ariaLabel, box.value]),
  ]);
}"""
ANSWER = "document.getElementById('what-if').answer"


@pytest.fixture(scope="module")
def houses():
    """An explainer of houses, and their features; rows 5 and 9 are the same."""
    rng = np.random.default_rng(1)
    n = 80
    frame = pd.DataFrame(
        {
            "area": rng.normal(100, 20, n).round(1),
            "kind": rng.choice(["flat", "house", EVIL], n),
            "sold": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 3000, n) * 1800, unit="s"),
            EVIL: rng.normal(size=n),
            "built": rng.integers(1950, 2020, n),
        }
    )
    frame.loc[7, "sold"] += pd.Timedelta(seconds=5)  # so that all times have seconds
    frame.iloc[9] = frame.iloc[5]
    frame["price"] = (
        3 * frame["area"]
        + 60 * (frame["kind"] == "house")
        + 30 * np.sin(frame[EVIL])
        + rng.normal(0, 5, n)
    )
    columns = Columns.of(frame, "price")
    X = columns.features(frame)
    model = TableModel.fit(X, columns.targets(frame), columns)
    return Explainer(model.posterior, target_name="price"), X


@pytest.fixture(scope="module")
def changes(houses):
    """Counterfactuals of row 5 that are found, not found and not needed, and one of row 2."""
    explainer, X = houses
    price = explainer.posterior.predict(X)
    row = X.iloc[[5]]
    return [
        explainer.counterfactual(row, price[5] + 70.0, prefer="nearest"),
        explainer.counterfactual(row, price[5] + 30.0, features=["kind"], level=0.6),
        explainer.counterfactual(row, 5000.0),
        explainer.counterfactual(row, price[5] - 90.0),
        explainer.counterfactual(X.iloc[2], price[2] - 40.0, direction="at_most"),
    ]


def facts_of(path):
    (found,) = re.findall(r'type="application/json">(.*)</script>', path.read_text("utf-8"))
    return json.loads(found)


def shown(tmp_path, explanation, **options):
    write_report(tmp_path / "report.html", explanation, **options)
    return facts_of(tmp_path / "report.html")


def rows_shown(tmp_path, explanation, **options):
    (output,) = shown(tmp_path, explanation, **options)["outputs"]
    return [one["rows"] for one in output["counterfactuals"]]


@pytest.mark.slow
def test_contents(houses, changes, tmp_path):
    explainer, X = houses
    facts = shown(tmp_path, explainer(X), explainer=explainer, counterfactuals=changes, level=0.8)
    assert facts["selected"] == 5
    known = facts["outputs"][0]["counterfactuals"]
    assert [one["rows"] for one in known] == [[5], [5], [5], [5], [2]]
    for one, given in zip(known, changes, strict=True):
        assert one["direction"] == given.direction.replace("_", " ")
        assert (one["target"], one["level"]) == (given.target, given.level)
        others = [other for other in given.alternatives if other.n_changed != given.n_changed]
        ways = [way for way in (given, *others) if way.changes]
        for option, way in zip(one["options"], ways, strict=True):
            assert option["interval"] == list(way.interval(0.8))
            assert option["prediction"] == way.prediction
            assert {name: (old, new) for name, old, new, _ in option["changes"]} == way.changes
            sizes = [abs(step) for _, _, _, step in option["changes"]]
            assert sizes == sorted(sizes, reverse=True)
            assert np.linalg.norm(sizes) == pytest.approx(way.distance, rel=1e-12)
    assert len(known[0]["options"]) > 1
    (only,) = known[1]["options"]
    assert [change[0] for change in only["changes"]] == ["kind"]
    refusals = [one["refusal"].split(":")[0] for one in known]
    assert refusals == ["", "", "No counterfactual found", "", ""]
    assert known[3]["options"] == []


def test_a_page_without_any_has_none(tmp_path):
    for none in (None, [], ()):
        facts = shown(tmp_path, EXPLAINER(Z), counterfactuals=none)
        assert facts["outputs"][0]["counterfactuals"] == []
        far = np.abs(EXPLAINER(Z).predictions - EXPLAINER(Z).base_values).argmax()
        assert facts["selected"] == far


def test_rows_are_known_by_their_values_and_then_by_their_names(tmp_path):
    rows = Z[[7, 4, 4, 2]]
    # An array has no name: 0, which is not that of a row with these values.
    assert rows_shown(tmp_path, EXPLAINER(rows), counterfactuals=FOUND) == [[1, 2]]
    assert rows_shown(tmp_path, EXPLAINER(rows[1:]), counterfactuals=[FOUND] * 2) == [[0], [0]]
    frame = pd.DataFrame(rows, columns=["x0", "x1", "x2"], index=["a", "b", "c", "d"])
    named = EXPLAINER.counterfactual(frame.loc[["c"]], 1.2)
    assert rows_shown(tmp_path, EXPLAINER(frame), counterfactuals=named) == [[2]]
    assert rows_shown(tmp_path, EXPLAINER(rows), counterfactuals=named) == [[1, 2]]
    facts = shown(tmp_path, EXPLAINER(frame), counterfactuals=named, selected_row=3)
    assert facts["selected"] == 3


@pytest.mark.slow
def test_tensors(tmp_path):
    torch = pytest.importorskip("torch")
    rows = torch.tensor(Z)
    explainer = Explainer(ExactPosterior(POSTERIOR.kernel, rows, torch.sin(rows[:, 0]), noise=0.05))
    change = explainer.counterfactual(rows[4], 0.5, level=0.6)
    ex = explainer(rows)
    assert rows_shown(tmp_path, ex, explainer=explainer, counterfactuals=change) == [[4]]


def coded(**options):
    """A model of a number and two categories whose labels are numbers."""
    rng = np.random.default_rng(4)
    rows = np.column_stack([rng.normal(size=40), rng.integers(0, 3, 40), rng.integers(0, 2, 40)])
    encoder = Encoder(("a", "k", "m"), {"k": (0, 1, 2), "m": (0, 1)}, **options)
    frame = pd.DataFrame({"a": rows[:, 0], "k": rows[:, 1].astype(int), "m": rows[:, 2]})
    inner = ExactPosterior(
        SquaredExponential(3.0, 9.0),
        encoder.encode("X", frame.astype({"m": int})),
        rows[:, 0] + 2.0 * rows[:, 1],
        noise=0.01,
    )
    return EncodedPosterior(inner, encoder), frame.astype({"m": int})


def test_one_feature_and_features_of_several_columns(tmp_path):
    single = Explainer(ExactPosterior(SquaredExponential(1.0), Z[:, :1], Z[:, 0], noise=0.1))
    change, row = single.counterfactual(Z[3, :1], 0.9), single(Z[3:4, :1])
    assert rows_shown(tmp_path, row, explainer=single, counterfactuals=change) == [[0]]
    shapley = Explainer(POSTERIOR, attribution="shapley", players={"pair": [0, 1]})
    change = shapley.counterfactual(Z[4], 1.2)
    assert rows_shown(tmp_path, shapley(Z), explainer=shapley, counterfactuals=change) == [[4]]
    posterior, frame = coded(as_one_feature=True, named=False)
    rows = frame.to_numpy(float)
    named = ["size", "kind", "more"]
    for explainer in (
        Explainer(posterior, rows[0]),
        Explainer(posterior, rows[0], feature_names=named),
    ):
        change = explainer.counterfactual(rows[3], 5.5, prefer="nearest")
        facts = shown(tmp_path, explainer(rows), explainer=explainer, counterfactuals=change)
        (one,) = facts["outputs"][0]["counterfactuals"]
        assert one["rows"] == [3]
        assert [name for name, *_ in one["options"][0]["changes"]] == list(change.to_frame().index)


@pytest.mark.slow
def test_labels_that_are_numbers(opened, tmp_path):
    posterior, frame = coded()
    explainer = Explainer(posterior, frame.iloc[[0]])
    row = frame[frame["k"] == 0].iloc[[0]]
    change = explainer.counterfactual(row, explainer.posterior.predict(row)[0] + 1.0, features="k")
    assert change.changes["k"] == (0, 1)
    path = tmp_path / "report.html"
    write_report(path, explainer(frame), explainer=explainer, counterfactuals=change)
    with opened(path, viewport=WIDE) as tab:
        tab.click("#counterfactuals button")
        assert tab.evaluate(SLIDERS)["k"] == "1"
        assert tab.evaluate(ANSWER)["prediction"] == pytest.approx(change.prediction, rel=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("alcohol", "got a str"),
        (3, "got a int"),
        ({3}, "got a set"),
        ([FOUND, 3], "got a list with a int"),
        ([EXPLAINER], "got a list with a Explainer"),
        ({"price": FOUND}, r"expected those of \[''\] by name, got \['price'\]"),
    ],
)
def test_what_is_no_counterfactual(tmp_path, given, message):
    with pytest.raises(InvalidInputError, match=rf"^counterfactuals: .*{message}"):
        write_report(tmp_path / "report.html", EXPLAINER(Z), counterfactuals=given)
    assert not (tmp_path / "report.html").exists()


def test_counterfactuals_of_something_else(tmp_path):
    def refused(message, explanation, given, explainer=None):
        with pytest.raises(InvalidInputError, match=rf"^counterfactuals: .*{message}"):
            write_report(
                tmp_path / "report.html",
                explanation,
                counterfactuals=given,
                explainer=explainer,
            )

    ex = EXPLAINER(Z)
    refused("row 0, whose values no row", EXPLAINER(Z[:4]), FOUND)
    refused("row 0, whose values no row", ex, EXPLAINER.counterfactual(Z[4] + 1e-3, 1.2))
    names = Explainer(POSTERIOR, feature_names=["a", "b", "c"])
    refused(r"features of the explanation, \['x0', 'x1', 'x2'\]", ex, names.counterfactual(Z[4], 1))
    refused("expected the features", ex.group({"both": [0, 1]}), FOUND)
    named = Explainer(POSTERIOR, target_name="price")
    refused(
        "quantity of the explanation, 'prediction', got 'predicted price'",
        ex,
        named.counterfactual(Z[4], 1.2),
    )
    other = Explainer(ExactPosterior(POSTERIOR.kernel, Z, Z[:, 1], noise=0.05))
    refused("a model with other predictions", ex, other.counterfactual(Z[4], 1.2))
    # A model that has learned more, but nothing about the row.
    far = POSTERIOR.condition_on(Z[4] + [0.0, 20.0, 0.0], 40.0, 0.05)
    later = Explainer(far).counterfactual(Z[4], 8.0, bounds=np.tile([-9.0, 25.0], (3, 1)))
    assert later.found
    write_report(tmp_path / "report.html", ex, counterfactuals=later)
    refused("a model with other predictions", ex, later, EXPLAINER)


@pytest.fixture(scope="module")
def both():
    """Two outputs, and a counterfactual of each."""
    second = ExactPosterior(POSTERIOR.kernel, Z, Z[:, 2] ** 2, noise=0.05)
    explainer = Explainer(MultiOutputPosterior({"one": POSTERIOR, "two": second}))
    return explainer, {
        "one": explainer["one"].counterfactual(Z[4], 1.2),
        "two": [explainer["two"].counterfactual(Z[6], 2.0)],
    }


def test_several_outputs_are_given_by_name(both, tmp_path):
    explainer, given = both
    ex = explainer(Z)
    facts = shown(tmp_path, ex, explainer=explainer, counterfactuals=given)
    rows = [[one["rows"] for one in out["counterfactuals"]] for out in facts["outputs"]]
    assert rows == [[[4]], [[6]]]
    for wrong in (given["one"], {"three": given["one"]}, {"one": given["two"]}):
        with pytest.raises(InvalidInputError, match=r"^counterfactuals: "):
            write_report(tmp_path / "no.html", ex, explainer=explainer, counterfactuals=wrong)


@pytest.mark.slow
def test_buttons_set_the_sliders(houses, changes, opened, tmp_path):
    explainer, X = houses
    path = tmp_path / "report.html"
    write_report(path, explainer(X), explainer=explainer, counterfactuals=changes)
    ways = []
    for given in changes[:3]:
        others = [other for other in given.alternatives if other.n_changed != given.n_changed]
        ways += [given, *others]
    with opened(path, viewport=WIDE) as tab:
        before = tab.evaluate(SLIDERS)
        buttons = tab.locator("#counterfactuals button")
        assert buttons.all_inner_texts() == ["Set the sliders to this"] * len(ways)
        kinds = set()
        for k, way in enumerate(ways):
            buttons.nth(k).click()
            after = tab.evaluate(SLIDERS)
            for name, old in before.items():
                new = way.changes[name][1] if name in way.changes else old
                expected = new if isinstance(new, str) else pytest.approx(new, abs=1e-6)
                assert after[name] == expected
            kinds |= set(way.changes)
            answer = tab.evaluate(ANSWER)
            assert answer["prediction"] == pytest.approx(way.prediction, rel=1e-9)
            assert answer["std"] == pytest.approx(way.stds[1], rel=1e-9)
            assert tab.locator("#what-if tbody tr").count() > 0
        assert {"area", "kind"} <= kinds
        tab.click("#reset")
        assert tab.evaluate(SLIDERS) == before
        assert tab.evaluate(ANSWER)["prediction"] == pytest.approx(
            changes[0].prediction_before, rel=1e-9
        )
        text = tab.inner_text("#counterfactuals").replace("\u00a0", " ")
        target = f"{changes[0].target:.4g}"
        assert f"To bring the predicted price to at least {target} with a probability of" in text
        assert re.search(r"kind \S+ → house\nPredicted price \d+\.\d, 95% interval \d", text)
        assert "; 1 standard unit away." in text
        assert "No counterfactual found: predicted price at least 5000 with probability" in text
        assert re.search("No change is needed for the predicted price to be at least .*%", text)
        tab.fill("#filter", "2")
        tab.click("#rows tbody tr")
        assert " to at most " in tab.inner_text("#counterfactuals")
        assert buttons.count() == 1 + sum(
            one.n_changed != changes[4].n_changed for one in changes[4].alternatives
        )
        buttons.first.click()
        assert tab.evaluate(ANSWER)["prediction"] == pytest.approx(changes[4].prediction, rel=1e-9)
        tab.fill("#filter", "9")
        tab.click("#rows tbody tr")
        assert tab.locator("#counterfactuals").is_hidden()


@pytest.mark.slow
def test_sentences_without_sliders(both, opened, tmp_path):
    path = tmp_path / "report.html"
    write_report(path, EXPLAINER(Z), counterfactuals=FOUND)
    with opened(path, viewport=WIDE) as tab:
        assert "To bring the prediction to at least 1.2 with" in tab.inner_text("#counterfactuals")
        assert tab.locator("#counterfactuals button").count() == 0
    explainer, given = both
    write_report(path, explainer(Z), explainer=explainer, counterfactuals=given)
    with opened(path, viewport=WIDE) as tab:
        assert "at least 1.2" in tab.inner_text("#counterfactuals")
        tab.select_option("#output", label="two")
        assert tab.locator("#counterfactuals").is_hidden()
        tab.fill("#filter", "6")
        tab.click("#rows tbody tr")
        assert "at least 2 with" in tab.inner_text("#counterfactuals")
        assert tab.locator("#counterfactuals button").count() == 0


@pytest.mark.slow
def test_probabilities(opened, tmp_path):
    model = GPClassifier(SquaredExponential([1.5, 2.0, 2.0]), optimize=False).fit(Z, Z[:, 0] > 0)
    explainer = Explainer(model, output="probability", n_draws=50)
    row = int(np.argmin(np.abs(explainer(Z).predictions - 0.3)))
    one = explainer.counterfactual(Z[row], 0.6, level=0.8)
    path = tmp_path / "report.html"
    write_report(path, explainer(Z), explainer=explainer, counterfactuals=one)
    with opened(path, viewport=WIDE) as tab:
        text = tab.inner_text("#counterfactuals")
        assert "to at least 0.6 with a probability of 80%" in text
        assert f"{one.prediction:.2f}, 95% interval {one.interval()[0]:.2f} to" in text


@pytest.mark.slow
def test_many_features_and_small_changes(opened, tmp_path):
    rng = np.random.default_rng(3)
    wide = pd.DataFrame(rng.normal(size=(40, 60)).round(2), columns=[f"f{i}" for i in range(60)])
    explainer = Explainer(
        ExactPosterior(SquaredExponential(np.full(60, 8.0)), wide, wide.sum(axis=1), noise=0.1)
    )
    found = explainer.counterfactual(wide.iloc[[0]], 12.0, level=0.6, prefer="nearest")
    assert found.n_changed > 20
    tiny = explainer.counterfactual(
        wide.iloc[[0]], found.prediction_before + 1e-6, level=0.5, features=["f3"]
    )
    path = tmp_path / "report.html"
    write_report(path, explainer(wide), explainer=explainer, counterfactuals=[found, tiny])
    with opened(path, viewport={"width": 360, "height": 740}) as tab:
        lines = tab.locator(".changes li")
        assert lines.first.inner_text().count("→") == 6
        assert f" and {found.n_changed - 6} smaller changes\n" in lines.first.inner_text()
        old, new = re.search(r"f3 (\S+)\s→\s(\S+)", lines.last.inner_text()).groups()
        assert old != new
        tab.locator(".changes button").first.click()
        assert tab.evaluate(ANSWER)["prediction"] == pytest.approx(found.prediction, rel=1e-9)
        assert tab.evaluate("document.documentElement.scrollWidth") == 360
