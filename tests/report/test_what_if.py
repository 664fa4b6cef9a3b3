"""What if: the script of the page against Python, number by number."""

from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from gpattr import Baselines, Explainer, GPClassifier
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Constant, Matern52, Select, SquaredExponential
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear, Polynomial
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    ExactPosterior,
    MixturePosterior,
    MultiOutputPosterior,
    SparsePosterior,
)
from gpattr.report import write_report
from gpattr.report.what_if import what_if
from gpattr.tables import Columns, TableModel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1.0, 10.0, 0.1] + [0.0, 50.0, 1000.0]
Y = np.sin(X[:, 0]) + 0.05 * X[:, 1] + 5.0 * (X[:, 2] - 1000.0) + 0.1 * RNG.normal(size=40)
ARD = SquaredExponential([1.5, 20.0, 0.3], 2.0)


def exact(kernel=ARD, **options):
    return ExactPosterior(kernel, X, Y, noise=0.01, **options)


def shifted():
    """The same data in other units, one feature feeding two inputs, one feeding none."""
    inputs = (X[:, [0, 1, 1]] - [0.0, 50.0, 40.0]) / [2.0, 10.0, 5.0]
    inner = ExactPosterior(SquaredExponential([1.0, 2.0, 3.0], 2.0), inputs, Y, noise=0.05)
    return AffinePosterior(
        inner, [0.0, 50.0, 40.0], [2.0, 10.0, 5.0], source=(0, 1, 1), n_features=3
    )


MODELS = {
    "exact": exact(),
    "a constant mean": exact(mean=ConstantMean(3.0)),
    "a linear mean": exact(mean=Linear([0.5, -0.1, 2.0], 1.0, origin=X.mean(axis=0))),
    "a sum": exact(
        Select(SquaredExponential(1.0, 0.5), [0])
        + Select(SquaredExponential([15.0, 0.2]), [1, 2])
        + Constant(4.0)
    ),
    "a product": exact(3.0 * Select(SquaredExponential(2.0), [0]) * ARD),
    "tiny noise": ExactPosterior(ARD, X[:20], Y[:20], noise=1e-6),
    "other units": shifted(),
    "another scale of the target": CombinationPosterior(
        [shifted()], [-2.5], mean=ConstantMean(7.0)
    ),
    "another scale, twice": CombinationPosterior(
        [CombinationPosterior([exact()], [2.0], mean=ConstantMean(3.0))],
        [-0.5],
        mean=ConstantMean(1.0),
    ),
    "other units, twice": AffinePosterior(shifted(), [1.0, 2.0, 3.0], [2.0, 0.5, 4.0]),
    "sparse": SparsePosterior.fit(ARD, X[:15], X, Y, noise=0.01),
    "classes": GPClassifier(ARD, optimize=False).fit(X, Y > 2.5).posterior_,
}
ROWS = np.concatenate(
    [
        X.mean(axis=0) + RNG.normal(size=(6, 3)) * [2.0, 20.0, 0.2],
        X.mean(axis=0)
        + [
            [0.0, 0.0, 0.0],
            [1e-9, 0.0, 1e-9],
            [0.0, 1e-3, 0.0],
            [30.0, -900.0, 4.0],
            [0.0, 3e4, 0.0],
        ],
        X[:2],
    ]
)


@pytest.fixture(scope="module")
def script(chromium):
    tab = chromium.new_page()
    tab.add_script_tag(content=(files("gpattr.report") / "what_if.js").read_text(encoding="utf-8"))
    yield lambda facts, rows: tab.evaluate(
        "([facts, rows]) => { const model = whatIf.load(facts); return rows.map((row) =>"
        " whatIf.explain(model, row)); }",
        [facts, rows],
    )
    tab.close()


@pytest.mark.parametrize("name", MODELS)
def test_the_script_says_what_python_says(script, name):
    posterior = MODELS[name]
    explainer = Explainer(posterior)
    ex = explainer(ROWS)
    answers = script(what_if(explainer, ex), ROWS.tolist())
    spread = posterior.predict(ROWS, return_std=True)[1]
    for part, expected in {
        "prediction": ex.predictions,
        "base": ex.base_values,
        "values": ex.values,
    }.items():
        np.testing.assert_allclose(
            [answer[part] for answer in answers], expected, rtol=1e-9, atol=1e-9, err_msg=part
        )
    for part, expected in {"std": spread, "stds": ex.std}.items():
        found = np.array([answer[part] for answer in answers])
        np.testing.assert_allclose(found**2, expected**2, rtol=1e-9, atol=1e-9, err_msg=part)


def test_what_a_page_cannot_do():
    ex = Explainer(MODELS["exact"])(X[:3])
    own = Explainer(MODELS["exact"])
    assert isinstance(what_if(own, ex), dict)
    assert isinstance(what_if(own, ex.group({"both": [0, 1]})), str)
    assert isinstance(what_if(own, own(X[:3], baselines=X[3:6])), str)
    one, other = (Explainer(MODELS["exact"], x) for x in X[:2])
    assert isinstance(what_if(one, one(X[:3])), dict)
    assert what_if(one, other(X[:3])) == "the baselines of the explanation and the explainer differ"
    assert isinstance(what_if(Explainer(MODELS["exact"], Baselines(X[:5])), ex), str)
    assert isinstance(what_if(Explainer(MODELS["classes"], output="probability"), ex), str)
    others = [
        exact(Matern52([1.5, 20.0, 0.3])),
        exact(ARD + Matern52([1.5, 20.0, 0.3])),
        exact(mean=Polynomial([0.1], [[2, 0, 0]])),
        exact(mean=Linear([0.0, 0.0, 0.0], covariance="flat")),
        MixturePosterior([exact(), exact(2.0 * ARD)]),
    ]
    for posterior in others:
        explainer = Explainer(posterior)
        assert isinstance(what_if(explainer, explainer(X[:3])), str)


def test_large_models_send_less(tmp_path):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(2001, 2))
    held = {}
    for m in (800, 801, 2000, 2001):
        explainer = Explainer(
            ExactPosterior(SquaredExponential([1.0, 1.0]), Z[:m], Z[:m, 0], noise=0.1)
        )
        held[m] = what_if(explainer, explainer(Z[:2], uncertainty="std"))
    assert (
        held[2001] == "the model has more than 2000 training rows, so the page would be too large"
    )
    assert [held[m]["factor"] is not None for m in (800, 801, 2000)] == [True, False, False]


def test_an_explainer_of_several_outputs_is_asked_for_one(tmp_path):
    explainer = Explainer(MultiOutputPosterior({"one": exact(), "two": exact()}))
    ex = explainer(X[:3])["one"]
    with pytest.raises(
        InvalidInputError, match=r"explainer: expected that of one output, explainer\[name\]"
    ):
        write_report(tmp_path / "report.html", ex, explainer=explainer)
    write_report(tmp_path / "report.html", ex, explainer=explainer["one"])


@pytest.fixture(scope="module")
def houses():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "area": rng.normal(100.0, 30.0, 80),
            "<b>kind</b>": rng.choice(["flat", "house", "tower"], 80),
            "age": rng.uniform(0.0, 90.0, 80),
            "always": 1.0,
        }
    )
    frame["price"] = (
        3.0 * frame["area"]
        + 40.0 * (frame["<b>kind</b>"] == "house")
        - frame["age"]
        + rng.normal(0, 5, 80)
    )
    return frame


SET = """(settings) => {
  for (const [name, value] of Object.entries(settings)) {
    const control = document.querySelector(`#sliders [aria-label="${name}"]`);
    const place = (option) => option.text === value;
    control.value =
      control.tagName === "SELECT" ? [...control.options].findIndex(place) : value;
    control.dispatchEvent(new Event("input"));
  }
  const boxes = [...document.querySelectorAll("#sliders input[type=number]")];
  const named = (box) => [box.ariaLabel.replace(", value", ""), Number(box.value)];
  const shown = Object.fromEntries(boxes.map(named));
  return [shown, document.getElementById("what-if").answer];
}"""


def test_fifty_settings_of_the_sliders(houses, opened, tmp_path):
    columns = Columns.of(houses, "price")
    rows = columns.features(houses)
    explainer = Explainer(TableModel.fit(rows, columns.targets(houses), columns).posterior)
    path = tmp_path / "report.html"
    write_report(path, explainer(rows), explainer=explainer)
    rng = np.random.default_rng(3)
    with opened(path, viewport={"width": 1100, "height": 900}) as tab:
        settings, answers = [], []
        for _ in range(50):
            wanted = {
                "area": rng.uniform(40, 180),
                "age": rng.uniform(0, 90),
                "<b>kind</b>": str(rng.choice(["flat", "house", "tower"])),
            }
            shown, answer = tab.evaluate(SET, wanted)
            assert shown["area"] == pytest.approx(
                np.clip(wanted["area"], rows["area"].min(), rows["area"].max()), abs=0.051
            )
            settings.append(shown | {"<b>kind</b>": wanted["<b>kind</b>"]})
            answers.append(answer)
        asked = pd.DataFrame(settings)[list(rows.columns)]
        ex = explainer(asked)
        size = np.abs(ex.predictions).max()
        for part, expected in {
            "prediction": ex.predictions,
            "values": ex.values,
            "stds": ex.std,
        }.items():
            np.testing.assert_allclose(
                [answer[part] for answer in answers],
                expected,
                rtol=1e-9,
                atol=1e-9 * size,
                err_msg=part,
            )
        expected = [answers[-1]["prediction"], answers[-1]["std"]]
        text = tab.inner_text("#what-if-answer strong").removeprefix("Prediction ").split(" ± ")
        assert [float(number) for number in text] == pytest.approx(expected, rel=0.05)
        ends = tab.evaluate(
            "[...document.querySelectorAll('#what-if tr[data-end]')].map((row) =>"
            " Number(row.dataset.end))"
        )
        assert ends[0] == pytest.approx(ex.predictions[-1], rel=1e-9)
        assert "Outside" not in tab.inner_text("#what-if-answer")
        assert f"mean of the training inputs: area {rows['area'].mean():.1f}" in tab.inner_text(
            "#card"
        )
        tab.fill("[aria-label='area, value']", "123.4")
        typed = explainer(asked[-1:].assign(area=123.4))
        assert tab.evaluate(
            "document.getElementById('what-if').answer.prediction"
        ) == pytest.approx(typed.predictions[0], rel=1e-9)
        tab.fill("[aria-label='area, value']", "1e4")
        assert "Outside the range of the data: area" in tab.inner_text("#what-if-answer")
        tab.fill("[aria-label='area, value']", "")  # being typed: the last answer stays
        tab.fill("#filter", "0-24")
        tab.click("#rows tbody tr:nth-child(3)")
        assert float(tab.input_value("[aria-label='area, value']")) == pytest.approx(
            rows["area"].iloc[2], rel=1e-6
        )
        title = tab.inner_text("#row-title")
        assert f", as for row {title.split()[1].rstrip(':')}." in tab.inner_text("#what-if-answer")
        assert tab.inner_text("#what-if-answer").startswith(
            f"{title.split(': ')[1].split(',')[0].capitalize()} "
        )
