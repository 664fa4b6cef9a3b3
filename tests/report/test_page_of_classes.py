"""The page of several classes: a choice among them, probabilities as such, how well rows held out
are classified.
"""

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer, GPClassifier
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import SquaredExponential
from gpattr.report import write_report
from gpattr.report.facts import model_card
from gpattr.tables.held_out import HeldOutClasses

SPECIES = ["setosa", "versi </script> color", "virginica"]
BINS = ((0.55, 0.5, 40), (0.7, 0.7, 0), (0.984, 0.99, 1460))
HELD_OUT = HeldOutClasses(
    rows=1500, accuracy=0.961, most_frequent=0.34, log_loss=0.1234, calibration=BINS
)


@pytest.fixture(scope="module")
def flowers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(45, 3)), columns=["length", "width", "height"])
    y = np.array(SPECIES)[np.clip(np.round(X["length"] + 1).astype(int), 0, 2)]
    return X, y


@pytest.fixture(scope="module")
def explainer(flowers):
    kernel = SquaredExponential([1.0, 3.0, 3.0], 4.0)
    return Explainer(
        GPClassifier(kernel, optimize=False).fit(*flowers), output="probability", n_draws=50
    )


@pytest.fixture(scope="module")
def page(flowers, explainer, tmp_path_factory):
    X, y = flowers
    path = tmp_path_factory.mktemp("classes") / "report.html"
    y = np.where(np.arange(len(y)) == 3, "", y)
    write_report(
        path,
        explainer(X),
        explainer=explainer,
        measured=y,
        held_out=HELD_OUT,
        data_name="flowers.csv",
        selected_row=2,
    )
    return path


@pytest.mark.slow
def test_the_class_is_chosen_for_the_whole_page(page, flowers, explainer, opened):
    ex = explainer(flowers[0])
    with opened(page, viewport={"width": 1100, "height": 900}) as tab:
        assert tab.locator("#output option").all_inner_texts() == SPECIES
        for name in [*SPECIES, SPECIES[0]]:
            tab.select_option("#output", label=name)
            one = ex[name]
            assert (
                tab.inner_text("#row-title")
                == f"Row 2: {one.quantity} {probability(one.predictions[2])}, at the baseline"
                f" {probability(one.base_values[2])}; observed: {flowers[1][2]}"
            )
            order = np.argsort(-np.abs(one.values).mean(axis=0))
            assert tab.locator("#importance tbody th").all_inner_texts() == [
                one.feature_names[i] for i in order
            ]
            assert f"mean |attribution| to the {one.quantity}" in tab.inner_text("#importance")
            heads = [head.split("\xa0")[0] for head in tab.locator("#rows th").all_inner_texts()]
            assert heads == [
                "row",
                "observed",
                one.quantity,
                "change",
                *(one.feature_names[i] for i in order),
            ]
            cells = tab.locator("#rows tbody tr").nth(3).locator("td").all_inner_texts()
            assert cells[1] == "–"  # not available
            assert cells[2] == probability(one.predictions[3])
            assert [float(cell.replace("−", "-")) for cell in cells[4:]] == pytest.approx(
                one.values[3, order], abs=6e-4
            )
            ticks = [
                float(tick)
                for tick in tab.locator("#waterfall .ticks span:not([hidden])").all_inner_texts()
            ]
            assert min(ticks) <= 0.0
            assert max(ticks) >= 0.8  # probabilities are shown between 0 and 1
            others = tab.inner_text("#row-note")
            assert all(
                (ex[other].quantity.split(" of ")[1] in others) == (other != name)
                for other in SPECIES
            )
        assert "Not available: sliders need a single latent output" in tab.inner_text(
            "#what-if-note"
        )
        assert tab.locator("#sliders").is_hidden()
        tab.fill("#filter", "observed = setosa")
        assert f"of {(np.delete(flowers[1], 3) == 'setosa').sum()} " in tab.inner_text("#count")


def probability(p):
    return (
        "> 0.999"
        if p > 0.999
        else "< 0.001"
        if p < 0.001
        else f"{p:.3f}"
        if p > 0.99 or p < 0.01
        else f"{p:.2f}"
    )


@pytest.mark.slow
def test_rows_held_out_are_classified(page, opened):
    with opened(page) as tab:
        card = tab.inner_text("#card")
        assert "1,500 held-out rows\n96.1% of the classes are correct, log loss 0.123" in card
        assert "always predicting the most frequent class: 34.0%" in card
        assert f"classes\n{', '.join(SPECIES)}" in card
        lines = [
            line.locator("th, td").all_inner_texts()
            for line in tab.locator("#calibration tbody tr").all()
        ]
        assert lines == [["0.55", "", "50%", "40"], ["0.98", "", "99%", "1460"]]
        assert "flowers.csv" in tab.inner_text("h1")
        assert tab.title() == "Predictions, explained · flowers.csv"


def test_a_poor_classifier_is_called_one(explainer):
    poor = HeldOutClasses(rows=100, accuracy=0.5, most_frequent=0.6, log_loss=1.0, calibration=())
    assert dict(model_card(explainer.posterior, poor))["for comparison"].endswith(
        "60.0%; the model is no better than that"
    )


def test_the_kernel_of_one_class_is_not_that_of_all(explainer):
    for posterior in (explainer.posterior, explainer["setosa"].posterior):
        card = dict(model_card(posterior, HELD_OUT, SPECIES))
        assert card["classes"] == ", ".join(SPECIES)
        assert "kernel" not in card
    assert "kernel" in dict(model_card(explainer["setosa"].posterior, HELD_OUT))


def test_what_is_refused(flowers, explainer, page, tmp_path):
    X, y = flowers
    ex = explainer(X)
    path = tmp_path / "report.html"
    for options, message in (
        (
            {"explanation": {"a": ex["setosa"], "b": ex["setosa"][:3]}},
            "explanation: expected explanations of the same rows",
        ),
        ({"explanation": {}}, "explanation: expected explanations by name"),
        (
            {"explanation": [ex]},
            "explanation: expected a gpattr Explanation, or several by name, got a list",
        ),
        ({"measured": y[:4]}, "measured: expected 45 labels, one per row"),
        ({"measured": [*y[:44], 3]}, "measured: expected 45 labels"),
        (
            {"selected_row": 45},
            "selected_row: expected the position of one of 45 rows, or None, got 45",
        ),
        ({"selected_row": True}, "selected_row: expected the position"),
        ({"data_name": 3}, "data_name: expected text"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            write_report(path, **{"explanation": ex, **options})
    latent = Explainer(explainer.posterior)
    importance = {name: latent[name].importance(X) for name in SPECIES}
    with pytest.raises(InvalidInputError, match="importance: expected those of"):
        write_report(path, latent(X), importance=importance["setosa"])
    with pytest.raises(InvalidInputError, match="importance: expected those of"):
        write_report(path, latent(X), importance={"rose": importance["setosa"]})
    assert not path.exists()
    write_report(path, dict(latent(X).outputs), importance=importance)
    assert path.exists()
