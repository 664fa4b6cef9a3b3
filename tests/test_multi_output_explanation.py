"""Explanations of several outputs: outputs last, each by its name."""

import numpy as np
import pytest

from gpattr import Baselines, Explainer, Explanation, GPRegressor
from gpattr.exceptions import (
    FileFormatError,
    InvalidIndexError,
    InvalidInputError,
    MissingUncertaintyError,
)
from gpattr.explanation.multi_output import MultiOutputExplanation
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior, MixturePosterior, MultiOutputPosterior

RNG = np.random.default_rng(5)
Z, Y, X = RNG.normal(size=(20, 3)), RNG.normal(size=(20, 2)), RNG.normal(size=(4, 3))
KERNEL = SquaredExponential([1.0, 2.0, 0.7])
POSTERIOR = MultiOutputPosterior.coregionalised(
    KERNEL,
    Z,
    Y,
    covariance=[[1.0, 0.5], [0.5, 2.0]],
    noise=[0.1, 0.2],
    output_names=["price", "<weight>"],
)
EXPLAINER = Explainer(POSTERIOR, feature_names=["a", "b", "c"])
EX = EXPLAINER(X)


def test_arrays_have_outputs_last():
    assert EX.shape == (4, 3, 2)
    assert len(EX) == 4
    for o, name in enumerate(EX.output_names):
        one = EX[name]
        assert isinstance(one, Explanation)
        for array in (
            "values",
            "var",
            "std",
            "cov",
            "predictions",
            "base_values",
            "error",
            "delta",
        ):
            np.testing.assert_array_equal(getattr(EX, array)[..., o], getattr(one, array))
        for question in ("interval", "prob_positive", "rank_probabilities"):
            np.testing.assert_array_equal(
                np.array(getattr(EX, question)())[..., o], getattr(one, question)()
            )
        np.testing.assert_array_equal(EX.prob_greater("a", "c")[:, o], one.prob_greater("a", "c"))
    assert not EX.values.flags.writeable


def test_selections_and_groups_go_to_every_output():
    part = EX[[2, 0], ["c", "a"]]
    np.testing.assert_array_equal(part.values, EX.values[[2, 0]][:, [2, 0]])
    assert part["price"] == EX["price"][[2, 0], ["c", "a"]]
    assert [row.row_names for row in EX] == [(0,), (1,), (2,), (3,)]
    grouped = EX.group({"ab": ["a", "b"]})
    assert grouped.feature_names == ("ab", "c")
    np.testing.assert_allclose(grouped.values[:, 0], EX.values[:, :2].sum(axis=1), rtol=1e-13)
    with pytest.raises(
        InvalidIndexError, match=r"output: expected one of \['price', '<weight>'\], got 'prize'"
    ):
        EX["prize"]
    with pytest.raises(
        InvalidIndexError, match=r"an output comes first, by itself: ex\['price'\]\[rows\]"
    ):
        EX["price", 0]


def test_frame():
    frame = EX.to_frame()
    assert list(frame.columns[:3]) == ["output", "row", "feature"]
    assert len(frame) == 24
    chosen = frame[(frame.output == "<weight>") & (frame.row == 2) & (frame.feature == "b")]
    assert chosen.attribution.item() == EX["<weight>"].values[2, 1]


def test_shap_and_xarray():
    shap = EX.to_shap()
    np.testing.assert_array_equal(shap.values, EX.values)
    np.testing.assert_array_equal(shap.error_std, EX.std)
    assert list(shap.output_names) == ["price", "<weight>"]
    np.testing.assert_array_equal(shap[:, :, 1].values, EX["<weight>"].values)
    data = EX.to_xarray()
    assert data.cov.dims == ("row", "feature", "feature_2", "output")
    assert data.data.dims == ("row", "feature")
    np.testing.assert_array_equal(data["values"].sel(output="price"), EX["price"].values)
    assert EXPLAINER(X, uncertainty="none").to_shap().lower_bounds is None


@pytest.mark.parametrize("uncertainty", ["cov", "std", "none"])
@pytest.mark.parametrize("baseline", ["mean", Baselines(Z[:3])])
def test_files(tmp_path, uncertainty, baseline):
    ex = Explainer(POSTERIOR, baseline)(X, uncertainty=uncertainty)
    ex.save(tmp_path / "e.json")
    back = MultiOutputExplanation.load(tmp_path / "e.json")
    assert back == ex
    assert back != EX[:2]
    assert back.output_names == ("price", "<weight>")
    assert Explanation.load(tmp_path / "e.json") == ex
    with pytest.raises(
        FileFormatError,
        match=r"expected a file of format .*; this is a gpattr.MultiOutputExplanation",
    ):
        GPRegressor.load(tmp_path / "e.json")
    if uncertainty == "none":
        assert ex.var is ex.std is ex.cov is None
        with pytest.raises(MissingUncertaintyError):
            ex.interval()


def test_mixtures_in_outputs():
    exact = ExactPosterior(KERNEL, Z, Y[:, 0], noise=0.1)
    mixture = MixturePosterior([exact, ExactPosterior(3.0 * KERNEL, Z, Y[:, 0], noise=0.3)])
    ex = Explainer(MultiOutputPosterior({"one": exact, "two": mixture}))(X)
    np.testing.assert_array_equal(ex.share_between()[..., 0], 0.0)
    assert (ex.share_between()[..., 1] > 0).any()
    np.testing.assert_array_equal(ex.interval()[0][..., 1], ex["two"].interval()[0])
    data = ex.to_xarray()
    np.testing.assert_array_equal(data["values"].sel(output="two"), ex["two"].values)
    np.testing.assert_array_equal(
        data["component_values"].sel(output="two"), ex["two"].component_values
    )
    assert np.isnan(data["component_values"].sel(output="one")).all()


def test_html_is_escaped():
    assert "<weight>" not in EX._repr_html_()
    assert "&lt;weight&gt;" in EX._repr_html_()


def test_what_does_not_belong_together_is_refused():
    for outputs in ({}, [EX["price"]]):
        with pytest.raises(InvalidInputError, match="outputs: expected explanations by name"):
            MultiOutputExplanation(outputs)
    with pytest.raises(InvalidInputError, match="got a int for 'b'"):
        MultiOutputExplanation({"a": EX["price"], "b": 3})
    for other in (
        EX["price"][:3],
        EXPLAINER["price"](X, uncertainty="std"),
        Explainer(POSTERIOR, "zeros")["price"](X),
    ):
        with pytest.raises(
            InvalidInputError,
            match="outputs: expected explanations of the same rows, got another in 'b'",
        ):
            MultiOutputExplanation({"a": EX["price"], "b": other})
