import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

import gpattr
from gpattr import Baselines, Explainer, Explanation
from gpattr.exceptions import FileFormatError

SAVED = Path(__file__).parent / "saved_results"  # by gpattr before all results had one type


@pytest.fixture
def saved(explanation, tmp_path):
    path = tmp_path / "explanation.json"
    explanation.save(path)
    return path


def bits(array):
    return None if array is None else array.tobytes()


@pytest.mark.parametrize("uncertainty", ["cov", "std", "none"])
@pytest.mark.parametrize("baseline", ["mean", Baselines([[0.1, 0.2, 0.3], [0, 0, 0]], [0.9, 0.1])])
def test_round_trip_to_the_last_bit(posterior, rows, tmp_path, uncertainty, baseline):
    ex = Explainer(posterior, baseline)(rows * np.pi, uncertainty=uncertainty)
    ex.save(tmp_path / "e.json")
    back = Explanation.load(tmp_path / "e.json")
    assert back == ex
    for name in ex.__dataclass_fields__:
        one, two = getattr(ex, name), getattr(back, name)
        assert bits(one) == bits(two) if isinstance(one, np.ndarray) else one == two


def test_groups_and_row_names_survive(explanation, tmp_path):
    grouped = explanation[[4, 2]].group({"ab": ["alpha", "beta"]})
    grouped.save(str(tmp_path / "e.json"))
    back = Explanation.load(str(tmp_path / "e.json"))
    assert back == grouped
    assert back.row_names == (4, 2)
    assert np.isnan(back.data[:, 0]).all()


def test_file_is_plain_json_with_named_dimensions(saved):
    document = json.loads(saved.read_text())
    assert document["format"] == "gpattr.Explanation"
    assert document["schema"] == 1
    assert document["content"]["arrays"]["cov"]["dims"] == ["row", "feature", "feature"]
    assert "component_weights" not in document["content"]["arrays"]


def test_truncated_files_are_refused(saved):
    whole = saved.read_text()
    for length in (0, 1, len(whole) // 2, len(whole) - 3):
        saved.write_text(whole[:length])
        with pytest.raises(
            FileFormatError, match=r"explanation.json: expected a complete JSON file"
        ):
            Explanation.load(saved)


def test_altered_files_are_refused(saved):
    document = json.loads(saved.read_text())
    first = document["content"]["arrays"]["values"]["data"]
    first[0] = np.nextafter(first[0], np.inf)
    saved.write_text(json.dumps(document))
    with pytest.raises(FileFormatError, match="altered after it was saved"):
        Explanation.load(saved)


def test_foreign_files_are_refused(saved):
    for text in ("{}", "[1, 2]", "3", '{"format": "shap"}'):
        saved.write_text(text)
        with pytest.raises(FileFormatError, match="expected a file of format 'gpattr.Explanation'"):
            Explanation.load(saved)
    saved.write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    with pytest.raises(FileFormatError, match="cannot be read"):
        Explanation.load(saved)
    with pytest.raises(FileNotFoundError):
        Explanation.load(saved.with_name("none.json"))


def test_newer_schemas_are_refused(saved):
    document = json.loads(saved.read_text()) | {"schema": 2}
    saved.write_text(json.dumps(document))
    with pytest.raises(FileFormatError, match="expected schema 1, got 2"):
        Explanation.load(saved)


@pytest.mark.parametrize(
    "damage", [{"arrays": {}}, {"feature_names": ["a"]}, {"method": None, "arrays": 3}]
)
def test_files_with_a_valid_digest_are_still_checked(saved, damage):
    from gpattr._core import documents

    document = json.loads(saved.read_text())
    document["content"] |= damage
    document["sha256"] = documents._digest(documents._canonical(document["content"]))
    saved.write_text(json.dumps(document))
    with pytest.raises(FileFormatError, match="the content is not that of a gpattr.Explanation"):
        Explanation.load(saved)


def test_nothing_is_half_written(explanation, saved, monkeypatch):
    before = saved.read_text()

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        explanation[:2].save(saved)
    assert saved.read_text() == before
    assert os.listdir(saved.parent) == ["explanation.json"]
    with pytest.raises(FileNotFoundError):
        explanation.save(saved.parent / "missing" / "e.json")


def test_saved_files_have_ordinary_permissions(saved):
    umask = os.umask(0)
    os.umask(umask)
    assert saved.stat().st_mode & 0o777 == 0o666 & ~umask


def test_the_attribution_is_kept_and_older_files_are_of_integrated_gradients(
    posterior, rows, tmp_path
):
    path = tmp_path / "e.json"
    ex = Explainer(posterior, attribution="shapley")(rows)
    ex.save(path)
    assert Explanation.load(path).attribution == ex.attribution == "Shapley values"
    document = json.loads(path.read_text())
    del document["content"]["attribution"]
    text = json.dumps(document["content"], sort_keys=True, separators=(",", ":"))
    document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(document))
    assert Explanation.load(path).attribution == "integrated gradients"


@pytest.mark.parametrize("path", sorted(SAVED.glob("*.json")), ids=lambda path: path.stem)
def test_files_of_earlier_versions_load_and_are_written_alike(path, tmp_path):
    document = json.loads(path.read_text())
    name = document["format"].removeprefix("gpattr.")
    result = getattr(gpattr, name).load(path)
    assert type(result).__name__ == name
    assert result == getattr(gpattr, name).load(path)
    result.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == document
