"""The numbers that README quotes: every one can be measured, without a look at the clock."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def quoted(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import quoted_numbers

    monkeypatch.setattr(quoted_numbers, "one_thread", lambda: None)  # leave those of the tests
    return quoted_numbers


def test_yardstick_and_contenders_are_timed_in_turn(quoted, monkeypatch):
    called = []
    monkeypatch.setattr(quoted, "processor_seconds_of", lambda call: call() or float(len(called)))
    contenders = [
        quoted.Contender(name, lambda name=name: called.append(name), "") for name in "ab"
    ]
    yardstick = quoted.Yardstick(
        "y", lambda: called.append("y"), "", size="1", contenders=contenders
    )
    first, second = quoted.timed(yardstick, 2)
    assert called == ["y", "a", "b"] * 3  # the first are not timed
    assert (first.name, second.name) == ("a / y", "b / y")
    assert first.ratios == [5 / 4, 8 / 7]
    assert second.ratios == [6 / 4, 9 / 7]


def test_a_part_without_its_library_is_skipped_by_name(quoted, monkeypatch):
    monkeypatch.setattr(quoted, "PARTS", {quoted.explainers: ("numpy", "no_such_library")})
    record = quoted.measure(np.ones((9, 2)), np.ones(9), "simulated", quick=True)
    assert record.numbers == []
    assert record.skipped == {"explainers": "no_such_library not installed"}


@pytest.mark.slow
def test_numbers_of_attributions_are_measured(quoted, monkeypatch):
    """All but those of training and of streams, which take long."""
    parts = {part: needs for part, needs in quoted.PARTS.items()
             if part not in (quoted.training, quoted.weight_space)}  # fmt: skip
    monkeypatch.setattr(quoted, "PARTS", parts)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 11))
    y = np.resize([5.0, 6.0, 7.0], 80)
    monkeypatch.setattr(quoted, "processor_seconds_of", lambda call: 1.0)
    record = quoted.measure(X, y, "simulated", quick=True)
    names = [number.name for number in record.numbers]
    assert record.skipped == {}
    assert max(Counter(names).values()) == 1
    for part in ("predict", "predict(return_std=True)", "SHAP Exact", "SHAP Kernel", "Captum"):
        assert any(part in name for name in names), part
    ours = [number.error for number in record.numbers if number.error is not None]
    assert len(ours) >= 8
    assert max(ours) < 1e-11
    tables = quoted.as_tables(record)
    assert sum(len(rows) for rows in tables.values()) == len(names)
