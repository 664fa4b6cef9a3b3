"""Explanations of any axes: one number a row, features, pairs of features, points of a grid."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from gpattr import Explanation, plots
from gpattr._core import documents
from gpattr.distributions import Distribution, Draws, Gaussian, Mixture, Point
from gpattr.exceptions import FileFormatError, InvalidInputError, UnsupportedModelError
from gpattr.explanation import MultiOutputExplanation, storage

RNG = np.random.default_rng(8)
N, FEATURES = 4, ("alpha", "beta", "gamma")
AXES = {(): 1, ("feature",): 3, ("feature", "feature"): 9, ("grid",): 5, ("grid", "feature"): 6}
LABELS = {("grid", "feature"): {"grid": ("low", "high")}}
KINDS = ("gaussian", "mixture", "draws", "point")


def distribution(kind, q):
    mean, root = RNG.normal(size=(N, q)), RNG.normal(size=(2, N, q, q))
    covs = root @ root.transpose(0, 1, 3, 2)
    draws = mean + RNG.normal(size=(30, N, q))
    apart = draws - draws.mean(axis=0)
    return {
        "gaussian": lambda: Gaussian(mean, cov=covs[0]),
        "mixture": lambda: Mixture([0.25, 0.75], np.stack([mean, mean + 1.0]), covs=covs),
        "draws": lambda: Draws(draws, cov=np.einsum("sni,snj->nij", apart, apart) / 29),
        "point": lambda: Point(mean),
    }[kind]()


def made(kind, axes, **changes):
    nothing = np.full(N, np.nan)
    known = {
        "distribution": distribution(kind, AXES[axes]),
        "predictions": RNG.normal(size=N),
        "base_values": nothing,
        "data": RNG.normal(size=(N, 3)),
        "baselines": np.full((N, 3), np.nan),
        "feature_names": FEATURES,
        "error": np.full(N, 1e-9),
        "delta": nothing,
        "cov_error": np.full(N, 1e-8),
        "draw_error": np.full(N, 1e-3) if kind == "draws" else None,
        "axes": axes,
        "coordinates": LABELS.get(axes, {}),
    }
    return Explanation(**known | changes)


ALL = {(kind, axes): made(kind, axes) for kind in KINDS for axes in AXES}
everything = pytest.mark.parametrize(
    "ex", ALL.values(), ids=[f"{kind}-{'x'.join(axes)}" for kind, axes in ALL]
)


@everything
def test_arrays_have_the_shape_of_the_axes(ex):
    sizes = ex.shape[1:]
    flat = ex.distribution
    assert ex.shape == (
        N,
        *(3 if a == "feature" else {5: 5}.get(AXES[ex.axes], 2) for a in ex.axes),
    )
    np.testing.assert_array_equal(ex.values, flat.mean.reshape(N, *sizes))
    np.testing.assert_array_equal(ex.cov, flat.cov.reshape(N, *sizes, *sizes))
    assert ex.var.shape == ex.std.shape == ex.prob_positive().shape == ex.shape
    assert [end.shape for end in ex.interval()] == [ex.shape] * 2
    assert ex.sample(6, random_state=0).shape == (6, *ex.shape)
    for name, dims in ex.dimensions().items():
        array = getattr(ex, name)
        assert array.ndim == len(dims)
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    if len(ex.axes) == 1:
        assert ex.values is flat.mean
        assert ex.cov is flat.cov


@everything
def test_components_and_draws_are_those_of_the_distribution(ex):
    mixed, drawn = isinstance(ex.distribution, Mixture), isinstance(ex.distribution, Draws)
    for name in ("component_weights", "component_values", "component_var", "component_cov"):
        assert (getattr(ex, name) is not None) == mixed
    assert (ex.draws is not None) == drawn
    if mixed:
        assert ex.component_values.shape == (2, *ex.shape)
        assert ex.share_between().shape == ex.mixture().density(0.0).shape == ex.shape
    if drawn:
        assert ex.draws.shape == (30, *ex.shape)
        assert ex.standard_error().shape == ex.interval_error()[1].shape == ex.shape
    else:
        with pytest.raises(UnsupportedModelError, match="known by draws"):
            ex.standard_error()


@everything
def test_groups_add_up_along_every_feature_axis(ex):
    grouped = ex.group({"both": ["alpha", "gamma"]})
    G = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    values, count = ex.values, ex.axes.count("feature")
    for k, axis in enumerate(ex.axes):
        if axis == "feature":
            values = np.moveaxis(np.moveaxis(values, k + 1, -1) @ G, -1, k + 1)
    np.testing.assert_allclose(grouped.values, values, rtol=1e-13, atol=1e-14)
    assert grouped.feature_names == ("both", "beta")
    assert grouped.coordinates == ex.coordinates
    np.testing.assert_array_equal(grouped.error, ex.error * 2**count)
    np.testing.assert_array_equal(grouped.cov_error, ex.cov_error * 4**count)
    total = ex.cov.sum(axis=tuple(range(1, ex.cov.ndim)))
    np.testing.assert_allclose(grouped.cov.sum(axis=tuple(range(1, grouped.cov.ndim))), total)
    assert np.isnan(grouped.data[:, 0]).all()
    everything = ex.group({"all": FEATURES})
    np.testing.assert_allclose(everything.values.sum(), ex.values.sum())


@everything
def test_selections_keep_their_place(ex):
    part = ex[[2, 0], ["gamma", "alpha"]]
    values, cov = ex.values[[2, 0]], ex.cov[[2, 0]]
    for k, axis in enumerate(ex.axes):
        if axis == "feature":
            values = values.take([2, 0], axis=k + 1)
            cov = cov.take([2, 0], axis=k + 1).take([2, 0], axis=k + 1 + len(ex.axes))
    np.testing.assert_array_equal(part.values, values)
    np.testing.assert_array_equal(part.cov, cov)
    assert part.feature_names == ("gamma", "alpha")
    assert part.row_names == (2, 0)
    one = ex[1, "beta"].group({"b": ["beta"]})
    np.testing.assert_allclose(one.values, ex.group({"b": ["beta"]})[1, "b"].values)


@everything
def test_slices_join_to_the_whole(ex):
    assert Explanation.concatenate([ex[:1], ex[1:1], ex[1:]]) == ex
    assert Explanation.concatenate(ex) == ex
    assert ex[:3] != ex


@everything
def test_files_restore_everything(ex, tmp_path):
    for one in (ex, ex[:0], ex[0, "beta"], ex.group({"both": ["alpha", "gamma"]})):
        one.save(tmp_path / "e.json")
        back = Explanation.load(tmp_path / "e.json")
        assert back == one
        assert type(back.distribution) is type(one.distribution)
        for name in one.dimensions():
            assert getattr(back, name).tobytes() == getattr(one, name).tobytes()


@everything
def test_frames_have_a_column_for_each_axis(ex):
    frame = ex.to_frame(0.9)
    columns = {
        (): [],
        ("feature",): ["feature", "data", "baseline"],
        ("feature", "feature"): ["feature", "feature_2"],
        ("grid",): ["grid"],
        ("grid", "feature"): ["grid", "feature"],
    }[ex.axes]
    numbers = ["attribution", "std", "lower", "upper", "prob_positive"]
    numbers += ["standard_error"] if isinstance(ex.distribution, Draws) else []
    assert list(frame.columns) == ["row", *columns, *numbers]
    assert len(frame) == ex.values.size
    np.testing.assert_array_equal(frame["attribution"], ex.values.ravel())
    np.testing.assert_array_equal(frame["upper"], ex.interval(0.9)[1].ravel())
    for axis, labels in zip(
        [c for c in columns if c not in ("data", "baseline")], ex.axis_labels()
    ):
        assert set(frame[axis]) == set(labels)
    if ex.axes == ("grid", "feature"):
        line = frame[(frame.row == 2) & (frame.grid == "high") & (frame.feature == "beta")]
        assert line.attribution.item() == ex.values[2, 1, 1]


@everything
def test_xarray_names_dimensions_by_axes(ex):
    data = ex.to_xarray()
    twice = {
        (): (),
        ("feature",): ("feature", "feature_2"),
        ("feature", "feature"): ("feature", "feature_2", "feature_3", "feature_4"),
        ("grid",): ("grid", "grid_2"),
        ("grid", "feature"): ("grid", "feature", "grid_2", "feature_2"),
    }[ex.axes]
    assert data["values"].dims == ("row", *twice[: len(ex.axes)])
    if not isinstance(ex.distribution, Point):
        assert data["cov"].dims == ("row", *twice)
    np.testing.assert_array_equal(data["values"], ex.values)
    if ex.axes == ("grid", "feature"):
        found = data["values"].sel(row=2, grid="high", feature="beta")
        assert found.item() == ex.values[2, 1, 1]


@everything
def test_texts(ex):
    sizes = {
        (): "4 rows",
        ("feature",): "4 rows × 3 features",
        ("feature", "feature"): "4 rows × 3 features × 3 features",
        ("grid",): "4 rows × 5 grid",
        ("grid", "feature"): "4 rows × 2 grid × 3 features",
    }[ex.axes]
    lines = repr(ex).splitlines()
    assert lines[0] == f"Explanation: {sizes}"
    assert "baseline" not in repr(ex)
    assert "baseline" not in repr(ex[0])
    known = isinstance(ex.distribution, Point)
    assert ("known without uncertainty" in repr(ex)) == known
    assert ("P(> 0)" in repr(ex[0])) != known
    assert "nan" not in repr(ex[0]).lower()
    assert len(repr(ex[:0]).splitlines()) == 3 + min(AXES[ex.axes], 10)
    assert "<table>" in ex[0]._repr_html_()
    if ex.axes == ("feature", "feature"):
        assert any(line.startswith("  alpha × gamma ") for line in lines)


@everything
def test_questions_of_features_are_refused_by_name(ex):
    questions = {
        "prob_greater": lambda: ex.prob_greater(0, 1),
        "rank_probabilities": lambda: ex.rank_probabilities(10),
        "to_shap": ex.to_shap,
    }
    for name, question in questions.items():
        if ex.axes == ("feature",):
            question()
            continue
        expected = rf"^{name}: expected an explanation with the axes \('feature',\), got "
        with pytest.raises(InvalidInputError, match=expected + re.escape(str(ex.axes))):
            question()
    if ex.axes != ("feature",):
        for picture in ("bar", "beeswarm", "density", "heatmap", "waterfall"):
            with pytest.raises(InvalidInputError, match=r"^explanation: expected .* axes \('feat"):
                getattr(ex.plot, picture)()
        with pytest.raises(InvalidInputError, match=r"^explanation: expected .* axes \('feat"):
            plots.scatter(ex, "alpha")


@everything
def test_several_outputs(ex, tmp_path):
    other = made(next(kind for (kind, axes), one in ALL.items() if one is ex), ex.axes)
    other = replace(other, data=ex.data)
    both = MultiOutputExplanation({"one": ex, "two": other})
    assert both.shape == (*ex.shape, 2)
    assert both.axes == ex.axes
    np.testing.assert_array_equal(both.values[..., 1], other.values)
    np.testing.assert_array_equal(both.cov[..., 0], ex.cov)
    np.testing.assert_array_equal(both.interval()[0][..., 1], other.interval()[0])
    assert both[:2, "beta"]["two"] == other[:2, "beta"]
    assert both.group({"g": [0, 1]})["one"] == ex.group({"g": [0, 1]})
    assert list(both.to_frame().columns[:2]) == ["output", "row"]
    assert both.to_xarray()["values"].dims[-1] == "output"
    both.save(tmp_path / "e.json")
    assert Explanation.load(tmp_path / "e.json") == both
    for axes in AXES:
        if axes != ex.axes:
            with pytest.raises(
                InvalidInputError, match="explanations of the same rows, got another"
            ):
                MultiOutputExplanation(
                    {"one": ex, "two": replace(ALL["point", axes], data=ex.data)}
                )


def test_no_rows_and_no_features():
    for ex in ALL.values():
        none = ex[:0]
        assert none.shape == (0, *ex.shape[1:])
        assert none.sample(2).shape == (2, *none.shape)
        assert len(none.to_frame()) == 0
        assert none.to_xarray()["values"].shape == none.shape
        assert none.group({"g": [0, 1]}).values.shape[0] == 0
        bare = ex[:, []]
        assert bare.values.size == (ex.values.size if "feature" not in ex.axes else 0)
        assert "Explanation" in repr(bare)


def test_missing_data_are_kept():
    data = np.full((N, 3), np.nan)
    ex = made("gaussian", ("feature",), data=data)
    assert ex == ex[:]
    assert np.isnan(ex.to_frame()["data"]).all()
    ex.plot.bar(0)
    ex.plot.beeswarm()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"axes": ("grid", "feature")},
            r"axes: expected grid \(1\) × feature \(3\) in each row, got"
            " a distribution of 5 numbers",
        ),
        ({"axes": ("feature",)}, r"axes: expected feature \(3\) in each row, got a distr.* of 5"),
        ({"axes": ()}, "axes: expected one number in each row, got a distribution of 5 numbers"),
        (
            {"axes": ("a", "b")},
            r"coordinates: expected labels of all of the axes \['a', 'b'\] but one",
        ),
        ({"axes": ("grid", "grid")}, "coordinates: expected labels of all of the axes"),
        ({"coordinates": {"grid": [1, 2]}}, r"axes: expected grid \(2\) in each row"),
        ({"coordinates": {"grids": [1, 2]}}, r"coordinates: expected {axis: labels} for the axes"),
        ({"coordinates": {"grid": "abcde"}}, "coordinates: expected a list of texts or numbers"),
        ({"coordinates": {"grid": [None] * 5}}, "coordinates: expected a list of texts or numbers"),
        ({"coordinates": None}, "coordinates: expected"),
        ({"axes": "grid"}, "axes: expected a tuple of names, such as .*, got 'grid'"),
        ({"axes": ("row",)}, "axes: expected names that are not those of other arrays.*'row'"),
        ({"axes": (1,)}, "axes: expected a tuple of names"),
        ({"distribution": np.zeros((N, 5))}, "distribution: expected one of .*, got a ndarray"),
        ({"data": np.zeros(3)}, r"data: expected an array \(rows, features\), got the shape"),
        ({"data": np.zeros((3, 3))}, r"data: expected the shape \(4, 3\), got \(3, 3\)"),
        ({"draw_error": np.zeros(2)}, r"draw_error: expected the shape \(4,\)"),
        ({"baseline_weights": np.ones(2)}, "baseline_weights: expected one for each of baselines"),
    ],
)
def test_axes_that_do_not_match_are_refused_in_one_sentence(changes, message):
    with pytest.raises(InvalidInputError, match=message) as caught:
        replace(made("gaussian", ("grid",), coordinates={}), **{"coordinates": {}} | changes)
    assert "\n" not in str(caught.value)
    assert str(caught.value).count(". ") == 0


def test_labels_of_a_grid():
    for labels in ([0.0, 0.5, 1.0, 1.5, 2.0], np.linspace(0, 2, 5), tuple("abcde"), range(5)):
        ex = made("point", ("grid",), coordinates={"grid": labels})
        assert ex.coordinates == {"grid": tuple(labels)}
        assert all(type(label) in (int, float, str) for label in ex.coordinates["grid"])
        assert Explanation.concatenate([ex, ex]).coordinates == ex.coordinates
    other = made("point", ("grid",))
    with pytest.raises(InvalidInputError, match="the coordinates of part 1 is another"):
        Explanation.concatenate([ex[:1], replace(other, coordinates={"grid": tuple("vwxyz")})])


def test_different_distributions_are_not_joined():
    for one, two in (("gaussian", "point"), ("gaussian", "draws"), ("mixture", "draws")):
        with pytest.raises(
            InvalidInputError, match="parts: expected explanations by one explainer"
        ):
            Explanation.concatenate([ALL[one, ("grid",)], ALL[two, ("grid",)]])
    few = ALL["draws", ("grid",)]
    fewer = replace(few, distribution=Draws(few.draws[:5], cov=few.cov))
    with pytest.raises(InvalidInputError, match=r"by one explainer: .* but their draws differ"):
        Explanation.concatenate([few, fewer])


def rewritten(path, change):
    """Change the content of a file, with its digest."""
    document = json.loads(path.read_text())
    change(document["content"])
    document["sha256"] = documents._digest(documents._canonical(document["content"]))
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("kind", ["gaussian", "mixture", "draws"])
def test_files_from_before_axes_load(kind, tmp_path):
    ex, path = ALL[kind, ("feature",)], tmp_path / "e.json"
    ex.save(path)

    def before(content):
        for key in ("axes", "coordinates", "distribution"):
            del content[key]

    rewritten(path, before)
    assert Explanation.load(path) == ex


def test_distributions_of_the_future_are_refused(tmp_path):
    path = tmp_path / "e.json"
    ALL["gaussian", ("grid",)].save(path)
    content = json.loads(path.read_text())["content"]
    assert content["distribution"] == "Gaussian"
    assert content["axes"] == ["grid"]
    assert content["coordinates"] == {"grid": [0, 1, 2, 3, 4]}
    assert content["arrays"]["cov"]["dims"] == ["row", "grid", "grid"]
    rewritten(path, lambda content: content.update(distribution="StudentT"))
    with pytest.raises(FileFormatError, match="got 'StudentT'; a newer gpattr may read it"):
        Explanation.load(path)


def test_every_kind_can_be_stored():
    assert set(storage.KINDS.values()) == set(Distribution.__subclasses__())
