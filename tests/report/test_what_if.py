"""What if: the script of the page against Python, number by number."""

from copy import copy
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from gpattr import Baselines, Explainer, GPClassifier
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import (
    Constant,
    Matern,
    Matern32,
    Matern52,
    Periodic,
    Product,
    RationalQuadratic,
    Select,
    SquaredExponential,
    separable,
)
from gpattr.kernels import Linear as LinearKernel
from gpattr.kernels import Polynomial as PolynomialKernel
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear, Polynomial
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    EncodedPosterior,
    ExactPosterior,
    MixturePosterior,
    MultiOutputPosterior,
    SparsePosterior,
)
from gpattr.report import write_report
from gpattr.report.document import MODEL_SCRIPTS, parts_of
from gpattr.report.what_if import what_if
from gpattr.tables import Columns, TableModel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1.0, 10.0, 0.1] + [0.0, 50.0, 1000.0]
Y = np.sin(X[:, 0]) + 0.05 * X[:, 1] + 5.0 * (X[:, 2] - 1000.0) + 0.1 * RNG.normal(size=40)
SCALES = [1.5, 20.0, 0.3]
ARD = SquaredExponential(SCALES, 2.0)


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
    "Matérn 3/2": exact(Matern32(SCALES, 2.0)),
    "Matérn 5/2": exact(Matern52(SCALES, 2.0)),
    "Matérn 5/2 by its order": exact(Matern(SCALES, 2.0, nu=2.5)),
    "rational quadratic": exact(RationalQuadratic(SCALES, 2.0, alpha=0.7)),
    "heavy tails": exact(RationalQuadratic(SCALES, 2.0, alpha=0.05)),
    "nearly Gaussian": exact(RationalQuadratic(SCALES, 2.0, alpha=300.0)),
    "Gaussian to the last digit": exact(RationalQuadratic(SCALES, 2.0, alpha=1e17)),
    "a sum of kinds": exact(
        Matern32(SCALES) + 0.5 * RationalQuadratic(SCALES, alpha=2.0) + ARD + Constant(2.0)
    ),
    "a scale of classes": GPClassifier(Matern52(SCALES), optimize=False).fit(X, Y > 2.5).posterior_,
    "Matérn 3/2 in other units": CombinationPosterior(
        [AffinePosterior(exact(Matern32(SCALES)), [0.1, 3.0, 0.0], [1.1, 2.0, 1.0])], [3.0]
    ),
}
# Python refuses those that reach over thousands of length-scales.
PRODUCTS = {
    "different inputs": 1.7 * Select(Matern32(1.5), [0]) * Select(Matern52([15.0, 0.3]), [1, 2]),
    "three kinds": Matern52(SCALES)
    * RationalQuadratic(SCALES, alpha=0.5)
    * SquaredExponential([5.0, 50.0, 1.0]),
    "one for each input": separable(Matern52, SCALES),
    "short": Matern32([0.05, 0.5, 0.01]) * ARD,
    "sums": (Select(SquaredExponential(1.0), [0]) + Select(Matern32(10.0), [1]))
    * (Constant(0.5) + Select(RationalQuadratic(0.2), [2])),
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
        X[:2],  # paths that end in a kink of the kernel, pass through it, or pass by
        1.7 * X[:2] - 0.7 * X.mean(axis=0),
        X[2:4] + 1e-4,
        X[4:6] + 1e-7,
        X.mean(axis=0) + [[4.0, 0.0, 0.0], [4.0, 20.0, 0.0]],
    ]
)
NEAR = [i for i in range(len(ROWS)) if i not in (9, 10)]


@pytest.fixture(scope="module")
def script(chromium):
    tab = chromium.new_page()
    tab.add_script_tag(content=parts_of("js", ("numbers", *MODEL_SCRIPTS)))
    yield lambda facts, rows: tab.evaluate(
        "([facts, rows]) => { const model = whatIf.load(facts); return rows.map((row) =>"
        " whatIf.explain(model, row)); }",
        [facts, rows],
    )
    tab.close()


def check_script(script, posterior, rows, baseline="mean"):
    explainer = Explainer(posterior, baseline)
    ex = explainer(rows)
    columns = posterior.encoder.encode("X", rows) if posterior.encoder else rows
    answers = script(what_if(explainer, ex), columns.tolist())
    spread = posterior.predict(rows, return_std=True)[1]
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


@pytest.mark.parametrize("name", MODELS)
def test_the_script_says_what_python_says(script, name):
    check_script(script, MODELS[name], ROWS)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_kernels(script, name):
    check_script(script, exact(PRODUCTS[name]), ROWS[NEAR])


def test_mixtures(script):
    models = [exact(ARD + Constant(4.0)), exact(Matern52(SCALES, 2.0)), exact(2.0 * ARD)]
    mixture = MixturePosterior(models, [0.5, 0.3, 0.2])
    check_script(script, mixture, ROWS)
    check_script(script, AffinePosterior(mixture, [0.0, 1.0, 0.0], [2.0, 1.0, 1.0]), ROWS[NEAR])
    explainer = Explainer(mixture)
    ex = explainer(ROWS[:6])
    answers = script(what_if(explainer, ex), ROWS[:6].tolist())
    for part, expected in zip(
        ("low", "high", "positive"), (*ex.interval(0.95), ex.prob_positive())
    ):
        found = [answer[part] for answer in answers]
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9, err_msg=part)


LABELS = {"kind": ("a", "b", "c"), "wall": ("brick", "wood")}
PEOPLE = pd.DataFrame(
    {
        "size": RNG.normal(100.0, 30.0, 40),
        "age": RNG.uniform(0.0, 90.0, 40),
        **{name: RNG.choice(labels, 40) for name, labels in LABELS.items()},
    }
)
PRICES = PEOPLE["size"] / 30.0 * (1.0 + (PEOPLE["kind"] == "b")) + (PEOPLE["wall"] == "wood")


def category(rho, places):
    return Select(PolynomialKernel(1.0 - rho, degree=1, offset=rho), places)


def of_table(names, *kernels):
    """The model, or mixture, of some columns, whose kernels know them encoded."""
    encoder = Encoder(names, {name: LABELS[name] for name in names if name in LABELS})
    rows = encoder.encode("X", PEOPLE[list(names)])
    models = [ExactPosterior(kernel, rows, PRICES, noise=0.01) for kernel in kernels]
    weights = np.arange(1.0, 1.0 + len(models))
    whole = models[0] if len(models) == 1 else MixturePosterior(models, weights / weights.sum())
    return EncodedPosterior(whole, encoder)


NUMBERS, ALL = Select(SquaredExponential([30.0, 20.0], 2.0), [0, 1]), ("size", "age", *LABELS)
ROUGH = Product(Select(Matern52([9.0, 50.0], 2.0), [0, 1]), category(0.6, [2, 3, 4]))
TABLES = {
    "one category": of_table(
        ("size", "kind"),
        Product(Select(SquaredExponential(30.0, 2.0), [0]), category(0.3, [1, 2, 3])) + Constant(4),
    ),
    "two categories": of_table(
        ALL, Product(NUMBERS, category(0.3, [2, 3, 4]), category(0.7, [5, 6])) + Constant(4.0)
    ),
    "Matérn 5/2": of_table(ALL, Product(ROUGH, category(0.1, [5, 6])) + Constant(4.0)),
    "only categories": of_table(
        tuple(LABELS), 2.0 * Product(category(0.3, [0, 1, 2]), category(0.7, [3, 4])) + Constant(4)
    ),
    "a mixture": of_table(
        ALL,
        Product(NUMBERS, category(0.3, [2, 3, 4]), category(0.7, [5, 6])) + Constant(4.0),
        Product(ROUGH, category(0.1, [5, 6])) + Constant(2.0),
    ),
    "sums and leaves of several kinds": of_table(
        ALL,
        Product(NUMBERS, Select(Matern32(20.0), [0]), Constant(0.3) + Select(LinearKernel(), [5]))
        + Select(RationalQuadratic(9.0), [1]) * category(0.5, [2, 3, 4])
        + category(0.2, [5, 6]),
    ),
    "ten factors": of_table(
        ALL, Product(NUMBERS, *(category(0.3, list(two)) for two in combinations(range(2, 7), 2)))
    ),
    "forty factors": of_table(
        ("size", "kind"),
        2.0 * Select(PolynomialKernel(0.95, degree=40, offset=0.05), [1, 2, 3])
        + Select(Matern52(30.0), [0]),
    ),
    "a polynomial of a number": of_table(
        ALL, NUMBERS * Select(PolynomialKernel([1e-4, 1.0], degree=3), [0, 4]) + Constant(4.0)
    ),
}


@pytest.mark.parametrize("baseline", ["mean", "median"])  # a mixture of labels, and one label
@pytest.mark.parametrize("name", TABLES)
def test_categories_with_factors_of_their_own(script, name, baseline):
    far = PEOPLE[:3].assign(size=[400.0, 0.0, -100.0], age=[40.0, 200.0, -90.0])
    rows = pd.concat([PEOPLE[:8], far])[list(TABLES[name].encoder.names)]
    check_script(script, TABLES[name], rows, baseline)


def test_large_mixtures_are_not_sent(monkeypatch):
    monkeypatch.setattr("gpattr.report.what_if.MOST_OF_ALL", 100.0)
    explainer = Explainer(MixturePosterior([exact(), exact(2.0 * ARD)]))
    reason = what_if(explainer, explainer(X[:3]))
    assert reason == (
        "a mixture of 2 models with 40 training rows would take too much memory in a page;"
        " explainer.widget asks Python"
    )


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
        exact(Matern(SCALES, nu=3.5)),
        exact(ARD + Select(Periodic(period=2.0), [0])),
        exact(mean=Polynomial([0.1], [[2, 0, 0]])),
        exact(mean=Linear([0.0, 0.0, 0.0], covariance="flat")),
        MixturePosterior([exact(), exact(Matern(SCALES, nu=3.5))]),
    ]
    for posterior in others:
        explainer = Explainer(posterior)
        assert isinstance(what_if(explainer, explainer(X[:3])), str)
    explainer = Explainer(others[0])
    assert what_if(explainer, explainer(X[:3])) == (
        "sliders support sums and products of squared exponential, Matérn 3/2, Matérn 5/2,"
        " rational quadratic and polynomial kernels, with constant or linear means"
    )


@pytest.mark.slow
def test_factors_are_sent_only_where_the_page_cannot_compute_them():
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(2001, 2))
    kernel = SquaredExponential([0.05, 0.05])

    def sent(posterior):
        explainer = Explainer(posterior, "zeros")
        return what_if(explainer, explainer(Z[:2], uncertainty="std"))

    assert (
        sent(ExactPosterior(kernel, Z, Z[:, 0], noise=0.1))
        == "the model has more than 2000 training rows, so the page would be too large"
    )
    large = sent(ExactPosterior(kernel, Z[:2000], Z[:2000, 0], noise=0.1))
    assert large["factor"] is None
    assert large["noise"] is not None
    sparse = sent(SparsePosterior.fit(kernel, Z[:20], Z[:100], Z[:100, 0], noise=0.1))
    assert sparse["factor"] is not None
    assert sparse["noise"] is None
    too_large = sent(SparsePosterior.fit(kernel, Z[:801], Z[:900], Z[:900, 0], noise=0.1))
    assert too_large["factor"] is too_large["noise"] is None
    # A state whose factor is not that of its kernel and noise is sent as it is.
    changed = copy(exact())
    object.__setattr__(changed, "factor", 1.01 * changed.factor)
    explainer = Explainer(changed)
    assert what_if(explainer, explainer(X[:3]))["noise"] is None


@pytest.mark.slow
def test_two_thousand_rows_with_standard_deviations(opened, tmp_path):
    rng = np.random.default_rng(4)
    Z = pd.DataFrame(rng.normal(size=(2000, 10)), columns=[f"f{i}" for i in range(10)])
    y = np.sin(Z["f0"]) + Z["f1"] * Z["f2"] + 0.1 * rng.normal(size=2000)
    kernel = SquaredExponential([3.0] * 10) + Select(Matern52([2.0, 2.0]), [1, 2])
    explainer = Explainer(ExactPosterior(kernel, Z, y, noise=0.01))
    path = tmp_path / "report.html"
    write_report(path, explainer(Z[:40]), explainer=explainer, selected_row=3)
    assert path.stat().st_size < 1_000_000
    with opened(path, viewport={"width": 1100, "height": 900}) as tab:
        answer = tab.evaluate(SET, {"f1": 0.5})[1]  # answered before the factor is there
        expected = explainer(Z[3:4].assign(f1=0.5), uncertainty="none").predictions[0]
        assert answer["prediction"] == pytest.approx(expected, rel=1e-9)
        tab.wait_for_function("document.getElementById('what-if').answer.stds !== null")
        assert tab.inner_text("#what-if-note").endswith("with their uncertainty.")
        answer = tab.evaluate(SET, {"f1": -0.75, "f4": 1.0})[1]
        asked = Z[3:4].assign(f1=-0.75, f4=1.0)
        ex = explainer(asked)
        np.testing.assert_allclose(answer["values"], ex.values[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(answer["stds"], ex.std[0], rtol=1e-9, atol=1e-9)
        spread = explainer.posterior.predict(asked, return_std=True)[1]
        assert answer["std"] == pytest.approx(spread[0], rel=1e-9)


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


@pytest.mark.slow
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
