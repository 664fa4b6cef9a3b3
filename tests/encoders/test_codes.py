"""Categories that are rows of numbers: descriptors, integers, one-hot columns without one."""

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer
from gpattr.encoders import Encoder
from gpattr.encoders.dates import Dates
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Matern52
from gpattr.posteriors import EncodedPosterior, ExactPosterior

LABELS = ("water", "ethanol", "toluene")
DESCRIPTORS = ((1.0, 80.0), (0.65, 24.0), (0.1, 2.4))
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "heat": RNG.uniform(20.0, 90.0, 30),
        "solvent": RNG.choice(LABELS, 30),
        "age": RNG.normal(size=30),
    }
)
VALUES = 0.1 * FRAME["heat"] + FRAME["solvent"].map(dict(zip(LABELS, (3.0, 1.0, 0.0), strict=True)))
ENCODER = Encoder(tuple(FRAME), {"solvent": LABELS}, codes={"solvent": DESCRIPTORS})


def posterior(encoder):
    rows = encoder.encode("X", FRAME)
    inner = ExactPosterior(Matern52(3.0 * rows.std(axis=0), 9.0), rows, VALUES, noise=0.01)
    return EncodedPosterior(inner, encoder)


def test_columns():
    assert ENCODER.encoded_names == ("heat", "solvent[0]", "solvent[1]", "age")
    assert ENCODER.features == ("heat", "solvent", "age")
    assert ENCODER.groups == {"solvent": ["solvent[0]", "solvent[1]"]}
    rows = ENCODER.encode("X", FRAME)
    wanted = np.array([DESCRIPTORS[LABELS.index(label)] for label in FRAME["solvent"]])
    np.testing.assert_array_equal(rows[:, 1:3], wanted)
    pd.testing.assert_frame_equal(ENCODER.decode(rows), FRAME)
    assert ENCODER.texts(rows)["solvent"] == tuple(FRAME["solvent"])
    renamed = ENCODER.renamed(("h", "s", "a"))
    assert renamed.codes == {"s": DESCRIPTORS}
    np.testing.assert_array_equal(
        renamed.encode("X", FRAME.set_axis(["h", "s", "a"], axis=1)), rows
    )


def test_one_hot_columns_as_codes_change_nothing():
    hot = Encoder(tuple(FRAME), {"solvent": LABELS})
    coded = Encoder(tuple(FRAME), {"solvent": LABELS}, codes={"solvent": np.eye(3)})
    for baseline, attribution in [("mean", "integrated_gradients"), ("median", "shapley")]:
        one, other = (
            Explainer(posterior(encoder), baseline, attribution=attribution)(FRAME[:5])
            for encoder in (hot, coded)
        )
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.std, other.std)
        assert one.labels == other.labels


def test_columns_are_added_up_along_a_straight_path():
    whole = posterior(ENCODER)
    rows = ENCODER.encode("X", FRAME)
    baseline = FRAME.iloc[[7]]
    found = Explainer(whole, baseline)(FRAME[:6])
    direct = Explainer(whole.in_columns, rows[7])(rows[:6])
    add = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1.0]])
    np.testing.assert_allclose(found.values, direct.values @ add, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.cov, add.T @ direct.cov @ add, rtol=1e-10, atol=1e-14)
    assert found.labels["solvent"] == tuple(FRAME["solvent"][:6])
    same = FRAME["solvent"][:6] == baseline["solvent"].iloc[0]
    assert (found.values[same, 1] == 0).all()


def test_curves_and_counterfactuals_keep_to_the_labels():
    explainer = Explainer(posterior(ENCODER))
    curve = explainer.dependence("solvent", background=FRAME)
    assert list(curve.grid) == list(LABELS)
    wanted = [explainer.posterior.predict(FRAME.assign(solvent=label)).mean() for label in LABELS]
    np.testing.assert_allclose(curve.values, wanted, rtol=1e-12)
    x = FRAME[FRAME["solvent"] == "toluene"].iloc[[0]]
    change = explainer.counterfactual(
        x, float(explainer.posterior.predict(x)[0]) + 2.0, features="solvent"
    )
    assert dict(change.changes) == {"solvent": ("toluene", "water")}


def test_named_points_have_the_nearest_label():
    explainer = Explainer(posterior(ENCODER), "median")
    assert explainer.baseline_name == "median of the training inputs, with the nearest categories"
    mean = ENCODER.encode("X", FRAME)[:, 1:3].mean(axis=0)
    nearest = min(DESCRIPTORS, key=lambda code: np.square(mean - code).sum())
    np.testing.assert_array_equal(explainer.baseline[1:3], nearest)


@pytest.mark.parametrize(
    "codes",
    [
        {"heat": [[1.0]]},
        {"solvent": [[1.0], [2.0]]},
        {"solvent": [[1.0], [2.0], [1.0]]},
        {"solvent": [1.0, 2.0, 3.0]},
        {"solvent": [[1.0], [np.nan], [3.0]]},
        {"solvent": "abc"},
    ],
)
def test_bad_codes(codes):
    with pytest.raises(InvalidInputError, match=r"codes\["):
        Encoder(tuple(FRAME), {"solvent": LABELS}, codes=codes)
    with pytest.raises(InvalidInputError, match="expected one of .* in column 'solvent'"):
        ENCODER.encode("X", FRAME.assign(solvent="acetone"))


def test_polars_frames():
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    frame = FRAME.assign(day=pd.date_range("2024-03-01", periods=len(FRAME)))
    encoder = Encoder(
        tuple(frame), {"solvent": LABELS}, dates={"day": Dates.of(frame["day"].to_numpy())}
    )
    table = polars.DataFrame({name: frame[name].to_numpy() for name in reversed(frame.columns)})
    expected = encoder.encode("X", frame)
    np.testing.assert_array_equal(encoder.encode("X", table), expected)
    enum = table.with_columns(polars.col("solvent").cast(polars.Enum(LABELS)))
    np.testing.assert_array_equal(encoder.encode("X", enum), expected)
    for name in ("heat", "solvent"):
        gap = table.with_columns(polars.lit(None, table.schema[name]).alias(name))
        with pytest.raises(InvalidInputError, match=name):
            encoder.encode("X", gap)
