"""The texts of categories: kept beside the numbers, and shown wherever a value is."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer, Explanation
from gpattr.exceptions import InvalidInputError
from gpattr.tables import Columns, TableModel


@pytest.fixture(scope="module")
def with_categories():
    """Two rows of numbers and colours, explained."""
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "colour": ["red", "blue"] * 3})
    columns = Columns.of(frame.assign(price=0.0), "price")
    model = TableModel.fit(frame, frame["size"] + (frame["colour"] == "red"), columns)
    return Explainer(model.posterior)(frame[:2])


def test_categories_are_shown_as_texts(with_categories, tmp_path):
    ex = with_categories
    assert ex.labels == {"colour": ("red", "blue")}
    assert np.isnan(ex.data[:, 1]).all()
    assert re.search(r"colour +red ", str(ex[0]))
    assert ex.to_frame()["label"].tolist() == ["", "red", "", "blue"]
    assert ex.to_shap().display_data.tolist() == [[1.0, "red"], [2.0, "blue"]]
    assert ex.to_xarray()["labels"].sel(row=1, feature="colour").item() == "blue"
    ex.save(tmp_path / "ex.json")
    assert Explanation.load(tmp_path / "ex.json") == ex
    ticks = [text.get_text() for text in ex.plot.waterfall(1).get_yticklabels()]
    assert sorted(ticks) == ["colour = blue", "size = 2"]
    assert [text.get_text() for text in ex.plot.scatter("colour").get_xticklabels()] == [
        "blue",
        "red",
    ]


def test_texts_follow_rows_and_features(with_categories):
    ex = with_categories
    assert ex[[1, 0, 1]].labels == {"colour": ("blue", "red", "blue")}
    assert ex[:, "size"].labels == {}
    assert ex.group({"both": ["size", "colour"]}).labels == {}
    assert ex.group({"only": ["size"]}).labels == ex.labels
    for wrong in (
        {"colour": ("red",)},
        {"shape": ("round", "square")},
        {"colour": "ab"},
        {"colour": None},
        None,
        [1],
    ):
        with pytest.raises(InvalidInputError, match="labels: expected"):
            replace(ex, labels=wrong)
