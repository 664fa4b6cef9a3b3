"""The widget's side in Python: its contents, what it refuses, and what it answers."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer, GPClassifier, Marginals, MultiOutputGPRegressor
from gpattr.encoders import Encoder
from gpattr.encoders.dates import Dates
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import Periodic, SquaredExponential
from gpattr.operators import Gradient
from gpattr.posteriors import EncodedPosterior, ExactPosterior
from gpattr.quantities import UpperConfidenceBound

pytest.importorskip("anywidget")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
KERNEL = SquaredExponential([1.0, 1.5, 2.0])
POSTERIOR = ExactPosterior(KERNEL, X, Y, noise=0.01)


def asked(widget, **values):
    """What the widget sends to a view that asks for these values."""
    sent = []
    widget.send = sent.append
    widget._asked(widget, {"kind": "ask", "view": "a", "id": 7, "values": values}, None)
    (reply,) = sent
    assert (reply["kind"], reply["view"], reply["id"]) == ("answer", "a", 7)
    return reply


def check(explainer, table, answer):
    ex = explainer(table)
    for part, expected in {
        "prediction": ex.predictions[0],
        "base": ex.base_values[0],
        "values": ex.values[0],
        "stds": ex.std[0],
        "positive": ex.prob_positive()[0],
        "low": ex.interval()[0][0],
        "high": ex.interval()[1][0],
    }.items():
        np.testing.assert_allclose(answer[part], expected, rtol=1e-12, atol=1e-12, err_msg=part)


def test_arrays_are_bytes():
    widget = Explainer(POSTERIOR).widget(X[:4])
    numbers = np.frombuffer(widget.arrays, "<f8")
    places = widget.facts["arrays"]
    for name, expected in {"data": X[:4], "inputs": X, "noise": np.full(30, 0.01)}.items():
        start, count = places[name]
        np.testing.assert_array_equal(numbers[start : start + count], expected.ravel())
    assert "factor" not in places
    assert not isinstance(widget.facts["model"].get("inputs"), str)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"attribution": "shapley"},
        {"attribution": "shapley", "players": {"both": [0, 2]}},
        {"attribution": "shapley", "baseline": Marginals(X)},
    ],
    ids=["integrated gradients", "shapley", "players", "marginals"],
)
def test_answers_are_those_of_the_explainer(options):
    explainer = Explainer(POSTERIOR, **options)
    widget = explainer.widget(X[:3])
    assert (widget.facts["model"] is None) == bool(options)
    answer = asked(widget, x0=0.3, x2=-1.0)["answer"]
    row = [[0.3, X[0, 1], -1.0]]
    check(explainer, row, answer)
    spread = POSTERIOR.predict(row, return_std=True)[1][0]
    assert answer["std"] == pytest.approx(spread, rel=1e-12)


def test_quantities_are_known_without_uncertainty():
    explainer = Explainer(POSTERIOR, quantity=UpperConfidenceBound(2.0))
    widget = explainer.widget(X[:3])
    assert widget.facts["model"] is None
    answer = asked(widget, x0=0.3, x2=-1.0)["answer"]
    ex = explainer([[0.3, X[0, 1], -1.0]])
    assert answer["prediction"] == pytest.approx(ex.predictions[0], rel=1e-12)
    np.testing.assert_allclose(answer["values"], ex.values[0], rtol=1e-12)
    assert all(answer[name] is None for name in ("std", "stds", "low", "high", "positive"))


def test_probabilities_have_draws():
    model = GPClassifier(KERNEL, optimize=False).fit(X, Y > 0)
    explainer = Explainer(model, output="probability", n_draws=50)
    widget = explainer.widget(X[:2])
    answer = asked(widget, x1=0.5)["answer"]
    check(explainer, [[X[0, 0], 0.5, X[0, 2]]], answer)
    assert answer["std"] is None


def encoded(as_one_feature=False):
    frame = pd.DataFrame({"area": X[:, 0], "kind": np.where(X[:, 1] > 0, 1, 2)})
    dates = {}
    if not as_one_feature:
        frame["sold"] = pd.Timestamp("2021-01-01") + pd.to_timedelta(np.arange(30) * 30, unit="D")
        dates = {"sold": Dates(("season",))}
    encoder = Encoder(tuple(frame), {"kind": (1, 2)}, as_one_feature=as_one_feature, dates=dates)
    inner = ExactPosterior(
        SquaredExponential() + Periodic(period=9.0), encoder.encode("X", frame), Y, noise=0.1
    )
    return Explainer(EncodedPosterior(inner, encoder)), frame


def test_categories_and_dates():
    explainer, frame = encoded()
    widget = explainer.widget(frame[4:9])
    assert widget.values == {"area": X[4, 0], "kind": str(frame["kind"][4]), "sold": "2021-05-01"}
    answer = asked(widget, kind="2", sold="2022-02-03")["answer"]
    row = frame[4:5].assign(kind=2, sold=pd.Timestamp("2022-02-03"))
    check(explainer, row, answer)
    widget.values = {"kind": 1, "sold": "2022-02-03"}
    assert widget.values["kind"] == "1"
    pd.testing.assert_frame_equal(
        widget.table.reset_index(drop=True),
        frame[4:5].assign(kind=1, sold=pd.Timestamp("2022-02-03")).reset_index(drop=True),
        check_dtype=False,
    )
    for values, message in {
        "kind": ("tower", r"values: expected one of \['1', '2'\] for 'kind', got 'tower'"),
        "sold": ("soon", "values: expected a date for 'sold', such as 2024-12-31, got 'soon'"),
        "area": (np.inf, "values: 'area': expected one finite number, got inf"),
        "price": (1.0, r"values: expected values by column, of \['area', 'kind', 'sold'\]"),
    }.items():
        with pytest.raises(InvalidInputError, match=message[1]):
            widget.values = {values: message[0]}
    assert widget.values["kind"] == "1"
    assert "tower" in asked(widget, kind="tower")["error"]


def test_categories_that_are_one_feature():
    explainer, frame = encoded(as_one_feature=True)
    widget = explainer.widget(frame[:3])
    assert [column["name"] for column in widget.facts["columns"]] == ["area", "kind"]
    check(explainer, frame[:1].assign(kind=2), asked(widget, kind="2")["answer"])


def test_rows_are_chosen_by_position():
    widget = Explainer(POSTERIOR).widget(
        pd.DataFrame(X[:4], index=list("abcd"), columns=list("uvw"))
    )
    assert widget.facts["rows"] == list("abcd")
    widget.row = 2
    assert widget.values == dict(zip("uvw", X[2].tolist(), strict=True))
    for row in (-1, 4):
        with pytest.raises(InvalidInputError, match="row: expected an integer of 0 to 3"):
            widget.row = row


@pytest.mark.parametrize("shape", [(1, 1), (50, 60), (20_000, 2)])
def test_sizes(shape):
    rows = RNG.normal(size=shape)
    posterior = ExactPosterior(SquaredExponential(3.0), rows[:100], rows[:100, 0], noise=0.1)
    explainer = Explainer(posterior, "zeros")
    widget = explainer.widget(rows)
    check(explainer, rows[:1], asked(widget)["answer"])
    assert len(widget.arrays) < 8 * (rows.size + 100 * (rows.shape[1] + 2)) + 8


def test_in_threads():
    explainer = Explainer(POSTERIOR, attribution="shapley")
    with ThreadPoolExecutor(4) as pool:
        widgets = list(pool.map(lambda k: explainer.widget(X[k : k + 1]), range(4)))
        answers = list(pool.map(lambda widget: asked(widget)["answer"], widgets))
    for k, answer in enumerate(answers):
        check(explainer, X[k : k + 1], answer)


def test_what_is_refused():
    explainer = Explainer(POSTERIOR)
    for bad in (None, "text", X[:, :2], np.full((1, 3), np.nan), 3.0):
        with pytest.raises(InvalidInputError, match="^X: "):
            explainer.widget(bad)
    of_frames, frame = encoded()
    for own, rows in ((explainer, X), (of_frames, frame)):
        with pytest.raises(InvalidInputError, match="X: expected at least one row"):
            own.widget(rows[:0])
    several = Explainer(MultiOutputGPRegressor(KERNEL, optimize=False).fit(X, X[:, :2]))
    with pytest.raises(UnsupportedModelError, match=r"select one by its name, explainer\['y0'\]"):
        several.widget(X)
    several["y1"].widget(X)
    with pytest.raises(UnsupportedModelError, match="attribution: a widget shows attributions"):
        Explainer(POSTERIOR, attribution=Gradient()).widget(X)


def test_messages_that_are_no_questions():
    widget = Explainer(POSTERIOR).widget(X[:1])
    sent = []
    widget.send = sent.append
    for content in (None, "text", {}, {"kind": "other"}):
        widget._asked(widget, content, None)
    assert sent == []
    assert "expected values by column" in asked(widget, nothing=1)["error"]


def test_without_anywidget(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ImportError, match=r'not installed: pip install "gpattr\[widget\]"'):
        Explainer(POSTERIOR).widget(X[:1])


@pytest.mark.slow
def test_a_model_of_tensors():
    torch = pytest.importorskip("torch")
    posterior = ExactPosterior(KERNEL, torch.tensor(X), torch.tensor(Y), noise=0.01)
    explainer = Explainer(posterior, attribution="shapley")
    widget = explainer.widget(torch.tensor(X[:2]))
    check(Explainer(POSTERIOR, attribution="shapley"), X[:1], asked(widget)["answer"])
