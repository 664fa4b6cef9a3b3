"""Comparing two runs of the benchmarks: what is flagged, and what is noise."""

import dataclasses
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def changes(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import changes

    return changes


def a_number(name, repeats, size="100 points"):
    from record import Number

    about = {"yields": "", "yardstick_yields": "", "error": None, "yardstick_error": None}
    return Number.of(list(repeats), [1.0] * len(repeats), name=name, size=size, **about)


def a_record(size="100 points", **ratios):
    """A record of numbers by name, each with the ratios of its repeats."""
    from record import Record

    return Record.of([a_number(*item, size) for item in ratios.items()], {}, [0.0, 0.0])


def verdicts(changes, old, new):
    return {change.name: change.verdict for change in changes.changes(old, new)}


STEADY = (2.0, 2.01, 1.99, 2.0, 2.02)


def times(factor, repeats=STEADY):
    return [factor * repeat for repeat in repeats]


def test_slower_and_faster_are_flagged(changes):
    old = a_record(a=STEADY, b=STEADY, c=STEADY)
    new = a_record(a=times(1.3), b=times(1 / 1.3), c=times(1.1))
    assert verdicts(changes, old, new) == {"a": "SLOWER", "b": "faster", "c": "same"}


def test_noise_is_not_flagged(changes):
    noisy = (1.0, 3.0, 2.0, 1.4, 2.8)
    old, new = a_record(a=noisy), a_record(a=times(1.3, noisy))
    assert verdicts(changes, old, new) == {"a": "same"}
    assert verdicts(changes, old, a_record(a=times(20, noisy))) == {"a": "SLOWER"}


def test_more_repeats_make_less_noise(changes):
    few, many = (1.0, 3.0, 2.0, 1.4, 2.8), (1.0, 3.0, 2.0, 1.4, 2.8) * 40
    (change,) = changes.changes(a_record(a=few), a_record(a=few))
    (surer,) = changes.changes(a_record(a=many), a_record(a=many))
    assert math.log(surer.noise) < 0.25 * math.log(change.noise)


def test_runs_of_one_version_are_rarely_flagged(changes):
    rng, found = np.random.default_rng(0), []
    for old, new in np.exp(0.1 * rng.normal(size=(1000, 2, 7))):
        change = changes.Change("a", a_number("a", old), a_number("a", new))
        found.append(change.verdict)
    assert found.count("SLOWER") < 10  # of a thousand
    assert found.count("faster") < 10


def test_new_and_missing_numbers_are_named(changes):
    old, new = a_record(a=STEADY, gone=STEADY), a_record(a=STEADY, added=STEADY)
    found = {"a": "same", "added": "new", "gone": "missing"}
    assert verdicts(changes, old, new) == found
    rows = changes.as_rows(changes.changes(old, new))
    assert [row["verdict"] for row in rows] == list(found.values())
    assert [row["change"] for row in rows] == ["× 1.00", "", ""]


def test_another_size_is_not_compared(changes):
    old, new = a_record(a=STEADY), a_record(size="10 points", a=times(9))
    assert verdicts(changes, old, new) == {"a": "another size"}


def test_other_versions_and_machines_are_named(changes):
    old = a_record(a=STEADY)
    machine = {**old.machine, "processor": "another", "cores": 2, "load_averages": [1.0, 7.5]}
    new = dataclasses.replace(old, versions={**old.versions, "numpy": "9.9"}, machine=machine)
    numpy = old.versions["numpy"]
    assert list(changes.differences(old, old)) == []
    assert list(changes.differences(old, new)) == [
        f"processor: {old.machine['processor']} → another",
        f"numpy: {numpy} → 9.9",
        "new run: load average 7.5 on 2 cores; measure when it is quiet",
    ]


@pytest.mark.parametrize(("ratio", "text"), [(2.44, "2.4"), (0.58, "0.58"), (1 / 283.0, "1/280")])
def test_ratios_are_shown_as_people_say_them(changes, ratio, text):
    (number,) = a_record(a=[ratio]).numbers
    assert changes.shown(number) == text


def run(*arguments):
    return subprocess.run(
        [sys.executable, BENCHMARKS / "run.py", *arguments], capture_output=True, text=True
    )


def test_the_command_compares_two_files(changes, tmp_path):
    """Exit codes: 0 if nothing became slower, 1 if something did, 2 for a broken file."""
    old, new, bad = (tmp_path / name for name in ("old.json", "new.json", "bad.json"))
    a_record(a=STEADY, b=STEADY).write(old)
    a_record(a=times(1.5), b=times(0.5)).write(new)
    bad.write_text("nothing", "utf-8")
    slower, broken = run("--compare", old, new), run("--compare", bad, new)
    assert slower.returncode == 1, slower.stderr
    assert "SLOWER" in slower.stdout
    assert "× 1.50" in slower.stdout
    assert run("--compare", old, old).returncode == 0
    assert broken.returncode == 2
    assert "bad.json: not a JSON file" in broken.stderr
    assert "Traceback" not in broken.stderr
