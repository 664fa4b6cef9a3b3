"""The files of benchmark numbers: what they hold, and what is wrong with a broken one."""

import json
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NUMBER = {
    "name": "means / a prediction",
    "size": "100 points",
    "yields": "attributions",
    "yardstick_yields": "predictions",
    "error": None,
    "yardstick_error": 1e-9,
}


@pytest.fixture
def record(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import record

    return record


@pytest.fixture
def written(record, tmp_path):
    """A file as a run writes it."""
    number = record.Number.of([2.0, 4.0, 6.0], [1.0, 1.0, 2.0], **NUMBER)
    path = tmp_path / "run.json"
    record.Record.of([number], {"explainers": "shap not installed"}, [0.5, 1.25]).write(path)
    return path


def test_the_ratio_is_the_median_of_pairs(record):
    number = record.Number.of([2.0, 4.0, 6.0], [1.0, 1.0, 2.0], **NUMBER)
    assert number.ratios == [2.0, 4.0, 3.0]
    assert (number.ratio, number.median, number.yardstick_median) == (3.0, 4.0, 1.0)
    np.testing.assert_allclose(number.spread, 1.4826 * np.log(4 / 3))


def test_the_spread_of_many_repeats_is_their_standard_deviation(record):
    logs = np.random.default_rng(0).normal(scale=0.1, size=4001)
    number = record.Number.of(np.exp(logs).tolist(), [1.0] * len(logs), **NUMBER)
    assert number.spread == pytest.approx(0.1, rel=0.05)


def test_a_file_says_where_and_when_and_what(record, written):
    content = json.loads(written.read_text("utf-8"))
    assert set(content) == {
        "format", "date", "commit", "uncommitted_changes", "machine", "versions", "numbers",
        "skipped",
    }  # fmt: skip
    assert set(content["machine"]) == {"processor", "cores", "threads", "system", "load_averages"}
    assert {"python", "gpattr", "numpy"} <= set(content["versions"])
    assert content["date"].endswith("+00:00")
    (number,) = content["numbers"]
    assert set(number) == {*NUMBER, "ratio", "median", "yardstick_median", "spread", "ratios"}


def test_a_file_is_read_as_it_was_written(record, written, tmp_path):
    again = tmp_path / "again.json"
    record.Record.read(written).write(again)
    assert again.read_bytes() == written.read_bytes()


def broken(text, **changes):
    content = json.loads(text)
    content["numbers"][0].update(changes)
    return json.dumps(content)


@pytest.mark.parametrize(
    ("breaking", "message"),
    [
        (lambda text: text[: len(text) // 2], "not a JSON file"),
        (lambda text: "[]", "not a record of format 1"),
        (lambda text: text.replace('"format": 1', '"format": 7'), "not a record of format 1"),
        (lambda text: text.replace('"commit"', '"comment"'), "record without commit"),
        (lambda text: text.replace('"ratio"', '"ration"'), "number without ratio"),
        (lambda text: broken(text, ratio=-1.0), "'means / a prediction': times and ratios must be"),
        (lambda text: broken(text, ratio="3"), "times, ratios and spread must be numbers"),
        (lambda text: broken(text, ratios=[]), "times and ratios must be positive"),
        (lambda text: broken(text, spread=float("nan")), "the spread must be"),
        (lambda text: broken(text, spread=1e300), "the spread must be from 0 to 100"),
        (lambda text: broken(text, name=["a"]), "the name of a number must be a text"),
        (lambda text: json.dumps(json.loads(text) | {"machine": "fast"}), "machine and versions"),
        (lambda text: json.dumps(json.loads(text) | {"versions": []}), "machine and versions"),
        (lambda text: json.dumps(json.loads(text) | {"numbers": []}), "no numbers"),
        (lambda text: text.replace('"cores"', '"kernels"'), "machine and versions"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(record, written, breaking, message):
    written.write_text(breaking(written.read_text("utf-8")), "utf-8")
    with pytest.raises(record.RecordError, match="run.json: ") as caught:
        record.Record.read(written)
    assert message in str(caught.value)


def test_a_file_that_is_not_there(record, tmp_path):
    with pytest.raises(record.RecordError, match="No such file"):
        record.Record.read(tmp_path / "none.json")
