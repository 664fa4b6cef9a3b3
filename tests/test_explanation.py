from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from gpattr import Baselines, Explainer, Explanation, memory_budget
from gpattr.distributions import Gaussian
from gpattr.exceptions import InvalidInputError, MissingUncertaintyError


def test_frozen_and_read_only(explanation):
    with pytest.raises(AttributeError):
        explanation.values = 0
    for name in explanation.dimensions():
        with pytest.raises(ValueError, match="read-only"):
            getattr(explanation, name)[0] = 1.0


def test_interval_and_sign(explanation):
    lower, upper = explanation.interval(0.9)
    np.testing.assert_allclose(lower, norm.ppf(0.05, explanation.values, explanation.std))
    np.testing.assert_allclose(upper, norm.ppf(0.95, explanation.values, explanation.std))
    np.testing.assert_allclose(
        explanation.prob_positive(), norm.sf(0, explanation.values, explanation.std)
    )
    for level in (0, 1, -0.5, 1.5, "high", None):
        with pytest.raises(InvalidInputError, match="level: expected a number between 0 and 1"):
            explanation.interval(level)


def test_sure_attributions_have_a_sign_or_none(posterior, rows):
    X = np.array(rows[:1])
    X[0, 1] = 0.0
    ex = Explainer(posterior, "zeros")(X)
    assert ex.prob_positive()[0, 1] == 0.5
    assert ex.prob_greater(1, 1)[0] == 0.5
    values = [[1.0, -1.0, 0.0]]
    sure = replace(ex, distribution=Gaussian(values, np.zeros((1, 3)), np.zeros((1, 3, 3))))
    assert sure.prob_positive().tolist() == [[1.0, 0.0, 0.5]]
    assert sure.prob_greater(0, 2).tolist() == [1.0]
    ranks = sure.rank_probabilities()[0]
    np.testing.assert_allclose(ranks, [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]])
    np.testing.assert_allclose(
        sure.rank_probabilities(absolute=False)[0], [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    )


def fields_of(ex):
    return {name: getattr(ex, name) for name in ex.__dataclass_fields__}


def test_probabilities_against_draws(explanation):
    draws = explanation.sample(200_000, random_state=1)
    assert draws.shape == (200_000, 6, 3)
    np.testing.assert_allclose(draws.mean(axis=0), explanation.values, atol=0.02)
    for n in range(6):
        np.testing.assert_allclose(np.cov(draws[:, n].T), explanation.cov[n], atol=0.02)
    greater = (draws[:, :, 0] > draws[:, :, 2]).mean(axis=0)
    np.testing.assert_allclose(explanation.prob_greater("alpha", "gamma"), greater, atol=0.005)
    for absolute, size in ((True, np.abs(draws)), (False, draws)):
        ranks = explanation.rank_probabilities(n_samples=20_000, absolute=absolute)
        first = (size.argmax(axis=2)[:, :, None] == np.arange(3)).mean(axis=0)
        np.testing.assert_allclose(ranks[:, :, 0], first, atol=0.02)
        np.testing.assert_allclose(ranks.sum(axis=1), 1.0)
        np.testing.assert_allclose(ranks.sum(axis=2), 1.0)


def test_random_numbers_obey_the_state(explanation):
    np.testing.assert_array_equal(
        explanation.sample(3, random_state=5), explanation.sample(3, random_state=5)
    )
    assert not np.array_equal(
        explanation.sample(3, random_state=5), explanation.sample(3, random_state=6)
    )
    generator = np.random.default_rng(5)
    np.testing.assert_array_equal(
        explanation.sample(3, random_state=generator), explanation.sample(3, random_state=5)
    )
    whole = explanation.rank_probabilities()
    np.testing.assert_allclose(explanation[2].rank_probabilities()[0], whole[2])
    with memory_budget(working=1):
        np.testing.assert_allclose(explanation.rank_probabilities(), whole)
    with pytest.raises(InvalidInputError, match="n: expected an integer of 1 or more, got 0"):
        explanation.sample(0)


def test_zero_attributions_stay_zero_in_draws(posterior, rows):
    X = np.array(rows)
    X[:, 1] = 0.0
    assert not Explainer(posterior, "zeros")(X).sample(50, random_state=0)[:, :, 1].any()


def test_group_adds_with_all_cross_terms(explanation):
    grouped = explanation.group({"both": ["alpha", "gamma"]})
    assert grouped.feature_names == ("both", "beta")
    np.testing.assert_allclose(
        grouped.values[:, 0], explanation.values[:, 0] + explanation.values[:, 2]
    )
    C = explanation.cov
    np.testing.assert_allclose(
        grouped.var[:, 0], C[:, 0, 0] + C[:, 2, 2] + 2 * C[:, 0, 2], rtol=1e-12
    )
    np.testing.assert_allclose(grouped.cov[:, 0, 1], C[:, 0, 1] + C[:, 2, 1], rtol=1e-12)
    np.testing.assert_allclose(
        grouped.values.sum(axis=1), explanation.values.sum(axis=1), rtol=1e-12
    )
    assert np.isnan(grouped.data[:, 0]).all()
    assert np.isnan(grouped.baselines[:, 0]).all()
    np.testing.assert_array_equal(grouped.data[:, 1], explanation.data[:, 1])
    everything = explanation.group({"all": [0, 1, 2]})
    np.testing.assert_allclose(
        everything.values[:, 0], explanation.predictions - explanation.base_values, atol=1e-13
    )
    renamed = explanation.group({"a": ["alpha"]})
    assert renamed.feature_names == ("a", "beta", "gamma")
    np.testing.assert_array_equal(renamed.var, explanation.var)


def test_group_without_covariance(explainer, rows):
    assert explainer(rows, uncertainty="none").group({"g": ["alpha", "beta"]}).shape == (6, 2)
    with pytest.raises(
        MissingUncertaintyError, match="covariance between features.*uncertainty='?cov"
    ):
        explainer(rows, uncertainty="std").group({"g": ["alpha", "beta"]})
    assert explainer(rows, uncertainty="std").group({"g": ["alpha"]}).var is not None


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"g": ["alpha", "delta"]}, "feature: expected one of"),
        ({"g": ["alpha"], "h": ["alpha"]}, "'alpha' is in 'g' and in 'h'"),
        ({"g": "alpha"}, "expected a list of at least one feature for 'g', got 'alpha'"),
        ({"g": []}, "at least one feature"),
        ([["alpha"]], "groups: expected a dictionary {name: \\[features\\]}, got a list"),
        (
            {"beta": ["alpha", "gamma"]},
            "'beta' is also the name of a feature that is not in that group",
        ),
    ],
)
def test_bad_groups(explanation, groups, message):
    with pytest.raises(InvalidInputError, match=message):
        explanation.group(groups)


def test_slices_keep_everything_consistent(explanation):
    C = explanation.cov
    for key, rows, columns in [
        (3, [3], [0, 1, 2]),
        (-1, [5], [0, 1, 2]),
        (slice(1, 4), [1, 2, 3], [0, 1, 2]),
        ([4, 0], [4, 0], [0, 1, 2]),
        (explanation.values[:, 0] > 0, np.flatnonzero(explanation.values[:, 0] > 0), [0, 1, 2]),
        ((slice(None), "beta"), range(6), [1]),
        ((slice(None), ["gamma", "alpha"]), range(6), [2, 0]),
        ((2, -1), [2], [2]),
        ((slice(2), [True, False, True]), [0, 1], [0, 2]),
    ]:
        part = explanation[key]
        rows, columns = list(rows), list(columns)
        assert part.shape == (len(rows), len(columns))
        np.testing.assert_array_equal(part.values, explanation.values[np.ix_(rows, columns)])
        np.testing.assert_array_equal(part.cov, C[np.ix_(rows, columns, columns)])
        np.testing.assert_array_equal(part.var, np.einsum("nii->ni", part.cov))
        np.testing.assert_array_equal(part.predictions, explanation.predictions[rows])
        np.testing.assert_array_equal(part.delta, explanation.delta[rows])
        np.testing.assert_array_equal(part.baselines, explanation.baselines[np.ix_(rows, columns)])
        assert part.feature_names == tuple(explanation.feature_names[i] for i in columns)
        assert part.row_names == tuple(rows)


@pytest.mark.parametrize("key", [6, "alpha", (0, "delta"), (0, 3), 1.5, (0, 0, 0), [True]])
def test_bad_slices(explanation, key):
    with pytest.raises(InvalidInputError, match="(rows|features?): expected"):
        explanation[key]


def test_rows_one_by_one(explanation):
    rows = list(explanation)
    assert [row.shape for row in rows] == [(1, 3)] * 6
    assert rows[4] == explanation[4]
    with pytest.raises(IndexError):
        explanation[6]


def test_names_select_features_in_any_container(explanation):
    for names in (
        ["beta", "alpha"],
        ("beta", "alpha"),
        np.array(["beta", "alpha"]),
        pd.Index(["beta", "alpha"]),
    ):
        assert explanation[:, names] == explanation[:, [1, 0]]


def test_a_selection_of_features_says_what_it_leaves_out(explanation):
    left_out = explanation.values[0, 2]
    assert f"features left out of this selection: {left_out:+.3g}" in repr(explanation[0, :2])
    assert "left out" not in repr(explanation[0])


def test_an_empty_selection_prints(explanation):
    assert repr(explanation[:0]).splitlines()[0] == "Explanation: 0 rows × 3 features"
    assert "0 rows" in explanation[:0]._repr_html_()


def test_without_uncertainty_questions_are_refused(explainer, rows):
    none = explainer(rows, uncertainty="none")
    for ask in (none.interval, none.prob_positive, none.sample, none.rank_probabilities):
        with pytest.raises(MissingUncertaintyError, match="explain with uncertainty="):
            ask()
    with pytest.raises(MissingUncertaintyError, match="covariance between features"):
        explainer(rows, uncertainty="std").prob_greater(0, 1)


@pytest.mark.parametrize("feature", [True, 1.0, [0, 1], None])
def test_a_feature_is_a_name_or_a_position(explanation, feature):
    with pytest.raises(InvalidInputError, match="feature: expected a name or a position"):
        explanation.prob_greater(feature, 0)


def test_equality(explanation, explainer, rows):
    assert explanation == explainer(rows)
    assert explanation != explainer(rows, uncertainty="std")
    assert explanation != "explanation"
    with pytest.raises(TypeError, match="unhashable"):
        hash(explanation)


def test_shapes_are_checked(explanation):
    with pytest.raises(
        InvalidInputError, match=r"predictions: expected the shape \(6,\), got \(5,\)"
    ):
        Explanation(**{**fields_of(explanation), "predictions": np.zeros(5)})
    with pytest.raises(InvalidInputError, match="row_names: expected 6, got 1"):
        Explanation(**{**fields_of(explanation), "row_names": ("a",)})


def test_text(explanation, posterior, rows):
    text = repr(explanation)
    assert text.splitlines()[0] == "Explanation: 6 rows × 3 features"
    assert "baseline: mean of the training inputs; closed form, error at most" in text
    one = repr(explanation[0])
    assert "row 0: prediction" in one
    assert "P(> 0)" in one
    assert len(one.splitlines()) == 7
    largest = explanation.feature_names[np.abs(explanation.values[0]).argmax()]
    assert one.splitlines()[4].split()[0] == largest
    assert "P(> 0)" not in repr(Explainer(posterior)(rows[:1], uncertainty="none"))
    assert "–" in repr(explanation[0].group({"g": ["alpha", "beta"]}))


def test_html_escapes_names(posterior, rows):
    from gpattr.posteriors import ExactPosterior

    bare = ExactPosterior(posterior.kernel, posterior.inputs, posterior.y, noise=0.1)
    ex = Explainer(bare, feature_names=["<script>alert(1)</script>", "a & b", "c"])(rows)
    for page in (ex._repr_html_(), ex[0]._repr_html_()):
        assert "<script>" not in page
        assert "&lt;script&gt;" in page
        assert "a &amp; b" in page


def test_many_features_are_cut_short():
    rng = np.random.default_rng(0)
    from gpattr.kernels import SquaredExponential
    from gpattr.posteriors import ExactPosterior

    posterior = ExactPosterior(
        SquaredExponential(lengthscale=5.0), rng.normal(size=(9, 14)), rng.normal(size=9), noise=0.1
    )
    ex = Explainer(posterior)(rng.normal(size=(2, 14)))
    assert "… and 4 smaller" in repr(ex)
    assert "… and 4 smaller" in ex._repr_html_()
    assert len(repr(ex).splitlines()) == 14


def test_to_frame(explanation, explainer, rows):
    frame = explanation.to_frame(level=0.9)
    assert list(frame.columns) == [
        "row",
        "feature",
        "data",
        "baseline",
        "attribution",
        "std",
        "lower",
        "upper",
        "prob_positive",
    ]
    assert len(frame) == 18
    wide = frame.pivot(index="row", columns="feature", values="attribution")[
        list(explanation.feature_names)
    ]
    np.testing.assert_array_equal(wide.to_numpy(), explanation.values)
    np.testing.assert_array_equal(frame["upper"], explanation.interval(0.9)[1].ravel())
    assert "std" not in explainer(rows, uncertainty="none").to_frame()
    averaged = Explainer(explainer.posterior, Baselines(rows))(rows)
    assert "baseline" not in averaged.to_frame()


def test_to_shap(explanation, explainer, rows):
    exported = explanation.to_shap()
    np.testing.assert_array_equal(exported.values, explanation.values)
    np.testing.assert_array_equal(exported.base_values, explanation.base_values)
    np.testing.assert_array_equal(exported.data, explanation.data)
    assert list(exported.feature_names) == list(explanation.feature_names)
    np.testing.assert_array_equal(exported.error_std, explanation.std)
    np.testing.assert_array_equal(exported.lower_bounds, explanation.interval()[0])
    np.testing.assert_array_equal(exported[2].upper_bounds, explanation.interval()[1][2])
    assert explainer(rows, uncertainty="none").to_shap().error_std is None


def test_to_xarray(explanation):
    data = explanation.to_xarray()
    assert data["cov"].dims == ("row", "feature", "feature_2")
    assert data["values"].sel(row=2, feature="beta") == explanation.values[2, 1]
    assert data["cov"].sel(row=0, feature="beta", feature_2="gamma") == explanation.cov[0, 1, 2]
    assert data.attrs == {
        "method": "closed form",
        "baseline": "mean of the training inputs",
        "attribution": "integrated gradients",
    }


def test_missing_optional_packages_are_named(explanation, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(
        ImportError, match=r'to_shap\(\) needs shap, which .* pip install "gpattr\[shap\]"'
    ):
        explanation.to_shap()
