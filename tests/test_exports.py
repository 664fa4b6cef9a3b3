"""Exports to libraries that show explanations: SHAP's plots, ArviZ, InterpretML."""

import re
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import gpattr
from gpattr import Explainer, Explanation
from gpattr.exceptions import InvalidInputError
from gpattr.posteriors import MultiOutputPosterior
from gpattr.tables import Columns, TableModel

mpl.use("Agg")
RNG = np.random.default_rng(0)
N = 40
FRAME = pd.DataFrame(
    {
        "temperature": RNG.uniform(0.0, 1.0, N),
        "solvent": RNG.choice(["ethanol", "water", "acetone"], N),
        "hours": RNG.uniform(0.0, 5.0, N),
    }
)
TARGET = FRAME["temperature"] * (1.0 + 2.0 * (FRAME["solvent"] == "water")) + 0.1 * FRAME["hours"]
WATER = pd.DataFrame({"temperature": [0.5], "solvent": ["water"], "hours": [2.0]})


@pytest.fixture(scope="module")
def model():
    return TableModel.fit(FRAME, TARGET, Columns.of(FRAME.assign(y=0.0), "y")).posterior


@pytest.fixture(scope="module")
def ex(model):
    return Explainer(model, WATER)(FRAME)


def test_shap_has_codes_and_labels(ex, model):
    pytest.importorskip("shap")
    exported = ex.to_shap()
    assert np.isfinite(exported.data.astype(float)).all()
    pairs = set(zip(exported.data[:, 1], exported.display_data[:, 1], strict=True))
    assert pairs == {(0.0, "acetone"), (1.0, "ethanol"), (2.0, "water")}
    np.testing.assert_array_equal(exported.data[:, 0], FRAME["temperature"])
    assert exported.display_data[0, 0] == FRAME["temperature"][0]
    both = Explainer(MultiOutputPosterior({"a": model, "b": model}), WATER)(FRAME[:5]).to_shap()
    np.testing.assert_array_equal(both.display_data, exported.display_data[:5])
    pairs = Explainer(model, WATER, attribution="shapley").interactions(FRAME[:5]).to_shap()
    assert np.isfinite(pairs.data.astype(float)).all()


def test_plots_of_shap_show_categories(ex):
    shap = pytest.importorskip("shap")
    exported = ex.to_shap()
    ax = shap.plots.scatter(exported[:, "solvent"], show=False)
    ticks = dict(zip(ax.get_xticks(), [t.get_text() for t in ax.get_xticklabels()], strict=True))
    assert ticks == {0.0: "acetone", 1.0: "ethanol", 2.0: "water"}
    points = np.concatenate([np.asarray(part.get_offsets()) for part in ax.collections])
    assert len(points) >= N
    assert np.isfinite(points.astype(float)).all()
    plt.close("all")
    ax = shap.plots.scatter(exported[:, "temperature"], color=exported[:, "solvent"], show=False)
    texts = {text.get_text() for each in ax.figure.axes for text in each.get_yticklabels()}
    assert {"acetone", "ethanol", "water"} <= texts  # of the bar of colours
    coloured = [part.get_array() for part in ax.collections if part.get_array() is not None]
    assert {0.0, 1.0, 2.0} <= set(np.concatenate(coloured))
    plt.close("all")


def test_categories_of_a_baseline_are_printed(ex, model, tmp_path):
    assert ex.baseline_labels == {"solvent": ("water",) * N}
    row = ex[int((FRAME["solvent"] == "ethanol").argmax())]
    assert re.search(r"solvent +ethanol +water ", str(row))
    assert "baseline: given point (solvent water)" in str(ex)
    frame = ex[:1].to_frame()
    assert frame["baseline_label"].tolist() == ["", "water", ""]
    assert ex.to_xarray()["baseline_labels"].sel(row=0, feature="solvent").item() == "water"
    ex.save(tmp_path / "ex.json")
    assert Explanation.load(tmp_path / "ex.json") == ex
    assert Explanation.concatenate([ex[:2], ex[2:]]) == ex
    assert ex[:, "hours"].baseline_labels == {}
    assert ex.group({"both": ["hours", "solvent"]}).baseline_labels == {}
    page = tmp_path / "page.html"
    gpattr.report.write_report(page, ex)
    assert '"baseline_labels": {"solvent": "water"}' in page.read_text(encoding="utf-8")
    with pytest.raises(InvalidInputError, match="baseline_labels: expected 40 texts"):
        replace(ex, baseline_labels={"solvent": ("water",)})


def test_only_whole_categories_are_named(model):
    """The mean of the training inputs has shares of categories, and several rows their own."""
    assert Explainer(model)(FRAME).baseline_labels == {}
    assert Explainer(model, "median")(FRAME[:2]).baseline_labels.keys() == {"solvent"}
    own = Explainer(model)(FRAME[:3], FRAME[3:6])
    assert own.baseline_labels == {"solvent": tuple(FRAME["solvent"][3:6])}
    averaged = Explainer(model, gpattr.Baselines(FRAME[:3]))(FRAME[:2])
    assert averaged.baseline_labels == {}


@pytest.mark.filterwarnings("ignore::FutureWarning")  # ArviZ announces its next version
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_arviz_opens_draws(ex, model):
    az = pytest.importorskip("arviz", reason="ArviZ is not installed")
    some = ex[np.flatnonzero(FRAME["solvent"] != "water")[:2]]  # nothing of them is exactly zero
    data = some.to_xarray(n_samples=1000)
    assert list(data.data_vars) == ["attribution"]
    assert data["attribution"].dims == ("chain", "draw", "row", "feature")
    np.testing.assert_array_equal(data["values"], some.values)
    for opened in (data, az.convert_to_inference_data(data)):
        table = az.summary(opened, round_to="none")
        assert len(table) == 6
        np.testing.assert_allclose(table["sd"], some.std.ravel(), rtol=0.1, atol=1e-12)
        np.testing.assert_allclose(
            table["mean"], some.values.ravel(), atol=5.0 * some.std.max() / 4000**0.5
        )
    again = some.to_xarray(n_samples=1000, random_state=0)
    np.testing.assert_array_equal(again["attribution"], data["attribution"])
    both = Explainer(MultiOutputPosterior({"a": model, "b": model}), WATER)(FRAME[:2])
    data = both.to_xarray(n_samples=30, n_chains=2)
    assert data["attribution"].shape == (2, 30, 2, 3, 2)
    assert list(data.data_vars) == ["attribution"]
    for wrong in (0, -1, "text", 1.5):
        with pytest.raises(InvalidInputError, match="n_samples"):
            ex.to_xarray(n_samples=wrong)
        with pytest.raises(InvalidInputError, match="n_chains"):
            ex.to_xarray(n_samples=2, n_chains=wrong)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_interpret_shows_it(ex, model):
    interpret = pytest.importorskip("interpret", reason="InterpretML is not installed")
    from interpret.provider import VisualizeProvider

    seen = []

    class Collecting(VisualizeProvider):
        def render(self, explanation, key=-1, **kwargs):
            seen.append(explanation.visualize(key))

    before = interpret.get_visualize_provider()
    interpret.set_visualize_provider(Collecting())
    try:
        shown = ex.to_interpret()
        interpret.show(shown, 3)
        interpret.show(ex.to_interpret(name="mine"), None)
    finally:
        interpret.set_visualize_provider(before)
    bars = seen[0].data[0]
    order = np.argsort(-np.abs(ex.values[3]))[::-1]
    np.testing.assert_allclose(bars.x, [*ex.values[3][order], ex.base_values[3]], rtol=1e-12)
    np.testing.assert_allclose(bars.error_x.array, [*ex.std[3][order], 0.0], rtol=1e-12)
    assert any(f"solvent ({FRAME['solvent'][3]})" == name for name in bars.y)
    assert shown.explanation_type == "local"
    assert shown.name == "integrated gradients of the prediction"
    assert len(shown.selector) == N
    np.testing.assert_allclose(sorted(seen[1].data[0].x), np.sort(np.abs(ex.values).mean(axis=0)))
    bare = Explainer(model, WATER)(FRAME[:2], uncertainty="none").to_interpret()
    assert bare.visualize(1).data[0].error_x.array is None
    with pytest.raises(InvalidInputError, match="name"):
        ex.to_interpret(name=3)
