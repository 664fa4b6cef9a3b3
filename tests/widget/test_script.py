"""The widget's script with a model of its own, in a page that is no notebook: what it asks Python,
what it shows, and what it leaves behind.
"""

import base64
import json

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer
from gpattr.encoders import Encoder
from gpattr.estimators import gp_regressor
from gpattr.kernels import Constant, Periodic, Polynomial, Select, SquaredExponential
from gpattr.posteriors import EncodedPosterior, ExactPosterior
from gpattr.tables import Columns, TableModel

pytest.importorskip("anywidget")

# A model as notebooks have one, which records what is sent to Python.
PAGE = """
window.listening = 0;
for (const target of [document, window]) {
  const { addEventListener: add, removeEventListener: remove } = target;
  target.addEventListener = (...given) => { window.listening += 1; add.apply(target, given); };
  target.removeEventListener = (...given) => { listening -= 1; remove.apply(target, given); };
}
class Model {
  constructor(state) { this.state = state; this.sent = []; this.saved = 0; this.calls = []; }
  get(name) { return this.state[name]; }
  set(name, value) {
    const changed = JSON.stringify(value) !== JSON.stringify(this.state[name]);
    this.state[name] = value;
    if (changed) this.tell(`change:${name}`);
  }
  save_changes() { this.saved += 1; }
  send(content) { this.sent.push(content); }
  on(name, call) { this.calls.push([name, call]); }
  off(name, call) { this.calls = this.calls.filter(([n, c]) => n !== name || c !== call); }
  tell(name, ...given) { for (const [n, call] of [...this.calls]) if (n === name) call(...given); }
}
window.show = async (esm, css, state, bytes) => {
  const style = document.createElement("style");
  style.textContent = css;
  document.head.append(style);
  const module = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
  const all = Uint8Array.from(atob("AAAA" + bytes), (c) => c.charCodeAt(0)); // not aligned
  const model = new Model({ ...JSON.parse(state), arrays: new DataView(all.buffer, 3) });
  const el = document.createElement("div");
  document.body.append(el);
  const end = module.default.render({ model, el });
  (window.shown ||= []).push({ model, el, end, module });
};
"""


@pytest.fixture
def page(chromium):
    """A function that shows widgets, and the page they are in."""
    context = chromium.new_context(offline=True, viewport={"width": 1200, "height": 900})
    tab = context.new_page()
    complaints = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.add_script_tag(content=PAGE)

    def show(widget):
        state = {name: getattr(widget, name) for name in ("facts", "row", "values", "answer")}
        tab.evaluate(
            "given => window.show(...given)",
            [
                widget._esm,
                widget._css,
                json.dumps(state),
                base64.b64encode(widget.arrays).decode("ascii"),
            ],
        )

    yield tab, show
    assert complaints == []
    context.close()


def explainer(kernel, n=40, **options):
    X = np.random.default_rng(0).normal(size=(n, 2))
    posterior = ExactPosterior(kernel, pd.DataFrame(X, columns=["u", "v"]), X[:, 0], noise=0.01)
    return Explainer(posterior, **options), X


UNKNOWN = SquaredExponential([1.0, 2.0]) + Select(Periodic(), [0])
MOVE = """([k, name, value]) => {
  const slider = shown[k].el.querySelector(`[aria-label="${name}"]`);
  const place = (option) => option.text === value;
  slider.value = slider.tagName === "SELECT" ? [...slider.options].findIndex(place) : value;
  slider.dispatchEvent(new Event("input"));
}"""
ROOT = "document.querySelectorAll('.gpattr-widget')"


@pytest.mark.slow
def test_categories_and_dates(page, monkeypatch):
    monkeypatch.setattr(gp_regressor, "MOST_INTEGRATED", 0)  # one model: the browser computes
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "area": rng.normal(100.0, 30.0, 60),
            "<b>kind</b>": rng.choice(["flat", "house", "tower"], 60),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 60), "D"),
        }
    )
    frame["price"] = frame["area"] + 40.0 * (frame["<b>kind</b>"] == "house")
    columns = Columns.of(frame, "price")
    X = columns.features(frame)
    model = Explainer(TableModel.fit(X, columns.targets(frame), columns).posterior)
    tab, show = page
    widget = model.widget(X[3:20])
    assert widget.facts["model"] is not None
    show(widget)
    assert tab.locator("b").count() == 0  # a name is text
    tab.select_option(".gpattr-widget .controls select", "2")
    for name, value in {"area": 120.0, "<b>kind</b>": "house", "sold": "2021-03-04"}.items():
        tab.evaluate(MOVE, [0, name, value])
    answer = tab.evaluate(f"{ROOT}[0].answer")
    shown = tab.evaluate("shown[0].el.querySelector('input[type=number]').value")
    asked = X[5:6].assign(
        **{"area": float(shown), "<b>kind</b>": "house", "sold": pd.Timestamp("2021-03-04")}
    )
    ex = model(asked)
    np.testing.assert_allclose(answer["values"], ex.values[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(answer["stds"], ex.std[0], rtol=1e-9, atol=1e-7)
    # A busy machine may save the values between two moves as well.
    tab.wait_for_function("(shown[0].model.state.values || {}).sold === '2021-03-04'")
    assert tab.evaluate("shown[0].model.state.values") == {
        "area": float(shown),
        "<b>kind</b>": "house",
        "sold": "2021-03-04",
    }
    tab.click("text=Reset to the row")
    expected = model(X[5:6]).predictions[0]
    assert tab.evaluate(f"{ROOT}[0].answer.prediction") == pytest.approx(expected, rel=1e-9)


def test_a_category_with_a_factor_of_its_own(page):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"size": rng.normal(size=40), "kind": rng.choice(["a", "b", "c"], 40)})
    encoder = Encoder(("size", "kind"), {"kind": ("a", "b", "c")})
    kernel = Select(SquaredExponential(1.5, 2.0), [0]) * Select(
        Polynomial(0.7, degree=1, offset=0.3), [1, 2, 3]
    )
    y = frame["size"] * (frame["kind"] == "b")
    inner = ExactPosterior(kernel + Constant(4.0), encoder.encode("X", frame), y, noise=0.01)
    model = Explainer(EncodedPosterior(inner, encoder))
    tab, show = page
    widget = model.widget(frame[:5])
    assert widget.facts["model"] is not None
    show(widget)
    for label in ("a", "b", "c"):
        tab.evaluate(MOVE, [0, "kind", label])
        answer = tab.evaluate(f"{ROOT}[0].answer")
        asked = frame[:1].assign(kind=label)
        ex, spread = model(asked), model.posterior.predict(asked, return_std=True)[1]
        expected = [ex.predictions[0], *ex.values[0], *ex.std[0], spread[0]]
        found = [answer["prediction"], *answer["values"], *answer["stds"], answer["std"]]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_only_the_newest_row_is_asked_for(page):
    model, X = explainer(UNKNOWN)
    tab, show = page
    widget = model.widget(X[:4])
    assert widget.facts["model"] is None
    show(widget)
    tab.wait_for_function("shown[0].model.sent.length === 1")
    for value in (0.1, 0.2, 0.3):
        tab.evaluate(MOVE, [0, "u", value])
        tab.wait_for_timeout(100)
    assert tab.evaluate("shown[0].model.sent.length") == 1  # the first has no answer yet
    reply = """() => { const { model } = shown[0], { view, id } = model.sent.at(-1);
      const answer = { prediction: id, base: 0, values: [id, 0], std: 1, stds: [1, 0] };
      model.tell("msg:custom", { kind: "answer", view, id, answer }); }"""
    tab.evaluate(reply)
    assert tab.evaluate(f"{ROOT}[0].dataset.state") == "waiting"  # an answer of the past
    assert tab.evaluate("shown[0].model.sent.map(({ values }) => values.u)") == [X[0, 0], 0.3]
    tab.evaluate(reply.replace("kind:", "view: 'another', kind:").replace("view, id,", "id,"))
    assert tab.evaluate(f"{ROOT}[0].dataset.state") == "waiting"  # an answer to another view
    tab.evaluate(reply)
    assert tab.evaluate(f"{ROOT}[0].dataset.prediction") == "2"
    tab.evaluate(MOVE, [0, "u", 0.4])
    tab.wait_for_function("shown[0].model.sent.length === 3")
    tab.evaluate(
        "() => { const { model } = shown[0], { view, id } = model.sent.at(-1);"
        ' model.tell("msg:custom", { kind: "answer", view, id, error: "no such row" }); }'
    )
    assert tab.inner_text(".gpattr-widget .answer") == "no such row"


def test_widgets_beside_each_other_and_what_they_leave(page):
    tab, show = page
    model, X = explainer(SquaredExponential([1.0, 2.0]))
    before = tab.evaluate("listening")
    for rows in (X[:3], X[3:5]):
        show(model.widget(rows))
    tab.evaluate(MOVE, [0, "u", 0.5])
    found = tab.evaluate(f"[...{ROOT}].map((root) => root.answer.prediction)")
    asked = np.array([[0.5, X[0, 1]], X[3]])
    np.testing.assert_allclose(found, model(asked).predictions, rtol=1e-9, atol=1e-12)
    tab.locator(".gpattr-widget").nth(1).locator("tr[data-feature=u]").hover()
    assert tab.locator(".tip").inner_text().startswith("u = ")
    assert tab.evaluate("listening") > before
    tab.evaluate("() => { for (const { end } of shown) end(); }")
    assert tab.evaluate("listening") == before
    left = tab.evaluate("shown.map(({ model, el }) => model.calls.length + el.children.length)")
    assert left == [0, 0]


def test_two_views_of_one_widget(page):
    tab, show = page
    model, X = explainer(SquaredExponential([1.0, 2.0]))
    show(model.widget(X[:3]))
    tab.evaluate(
        "() => { const { model, module } = shown[0], el = document.createElement('div');"
        " document.body.append(el); shown.push({ model, el, end: module.default.render({ model, el"
        " }) }); }"
    )
    tab.evaluate(MOVE, [1, "u", 0.5])
    expected = model(np.array([[0.5, X[0, 1]]])).predictions[0]
    tab.wait_for_function("shown[0].el.querySelector('input[type=number]').value === '0.5'")
    found = tab.evaluate(f"[...{ROOT}].map((root) => root.answer.prediction)")
    np.testing.assert_allclose(found, [expected] * 2, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_standard_deviations_of_many_rows_come_later(page):
    tab, show = page
    model, X = explainer(SquaredExponential([1.0, 2.0]), n=900)
    show(model.widget(X[:2]))
    tab.wait_for_function(f"{ROOT}[0].dataset.std !== ''")
    answer = tab.evaluate(f"{ROOT}[0].answer")
    np.testing.assert_allclose(answer["stds"], model(X[:1]).std[0], rtol=1e-7, atol=1e-12)


def test_the_theme_of_the_notebook(page):
    tab, show = page
    model, X = explainer(SquaredExponential([1.0, 2.0]))
    show(model.widget(X[:1]))
    scheme = f"{ROOT}[0].dataset.scheme"
    tab.wait_for_function(f"{scheme} === 'light'")
    for color, expected in {
        "rgb(17, 17, 17)": "dark",
        "oklch(0.98 0 0)": "light",
        "color(srgb 0.1 0.1 0.1)": "dark",
    }.items():
        tab.evaluate("color => { document.body.style.background = color; }", color)
        tab.wait_for_function(f"{scheme} === '{expected}'")
    ink = tab.evaluate(f"getComputedStyle({ROOT}[0]).color")
    assert min(map(int, ink.removeprefix("rgb(").removesuffix(")").split(","))) > 200
