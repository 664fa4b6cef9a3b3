import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import gpattr
from gpattr import Baselines, Explainer, Explanation, explain, memory_budget
from gpattr.exceptions import (
    InvalidInputError,
    NotFittedError,
    TooLargeError,
    UnsupportedModelError,
)
from gpattr.kernels import SquaredExponential
from gpattr.means import Function, Linear
from gpattr.posteriors import (
    ExactPosterior,
    LaplacePosterior,
    MixturePosterior,
    MultiOutputPosterior,
)

OUTPUTS = {"a": np.array([1.0, 0.0]), "b": np.array([1.0, -2.0])}


class Estimator:
    """What an estimator of this library looks like to the explainer."""

    def fit(self, posterior):
        self.posterior_ = posterior
        return self


Estimator.__module__ = "gpattr.estimators"


def test_result_in_the_users_words(explainer, posterior, rows, frame):
    ex = explainer(rows)
    assert (
        ex.values.shape
        == ex.std.shape
        == ex.var.shape
        == ex.data.shape
        == ex.baselines.shape
        == (6, 3)
    )
    assert ex.cov.shape == (6, 3, 3)
    np.testing.assert_array_equal(ex.var, np.einsum("nii->ni", ex.cov))
    np.testing.assert_array_equal(ex.predictions, posterior.predict(rows))
    np.testing.assert_allclose(
        ex.base_values, posterior.predict(frame.to_numpy().mean(axis=0)[None])[0]
    )
    np.testing.assert_allclose(ex.values.sum(axis=1), ex.predictions - ex.base_values, atol=1e-13)
    assert np.abs(ex.delta).max() < 1e-13
    assert np.all((ex.error > 0) & (ex.error < 1e-11))
    assert ex.method == "closed form"
    assert ex.feature_names == ("alpha", "beta", "gamma")
    assert ex.baseline_name == "mean of the training inputs"
    assert explain(posterior, rows) == ex


def test_estimators_hand_out_their_posterior(posterior, rows):
    assert Explainer(Estimator().fit(posterior))(rows) == Explainer(posterior)(rows)
    with pytest.raises(
        NotFittedError, match=r"this Estimator is not fitted yet; call fit\(X, y\) first"
    ):
        Explainer(Estimator())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (3.0, "expected a fitted Gaussian process of gpattr .* got builtins.float"),
        (Estimator, "expected a fitted model, got the class Estimator"),
        (
            type("Foreign", (), {"fit": None})(),
            "got .*Foreign; gpattr.posteriors builds posteriors",
        ),
    ],
)
def test_models_it_does_not_know(model, message):
    with pytest.raises(UnsupportedModelError, match=message):
        Explainer(model)


def test_baselines(posterior, rows, frame):
    Z = posterior.inputs
    for baseline, expected in [
        ("mean", Z.mean(axis=0)),
        ("median", np.median(Z, axis=0)),
        ("zeros", np.zeros(3)),
        (Z[2], Z[2]),
    ]:
        np.testing.assert_array_equal(
            Explainer(posterior, baseline)(rows).baselines, np.tile(expected, (6, 1))
        )
    one_row = Explainer(posterior, frame.iloc[[2]])
    np.testing.assert_array_equal(one_row.baseline, Z[2])
    weighted = Explainer(posterior, Baselines(Z[:4], [0.1, 0.2, 0.3, 0.4]))(rows)
    np.testing.assert_array_equal(weighted.baselines, Z[:4])
    np.testing.assert_array_equal(weighted.baseline_weights, [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(
        weighted.base_values, posterior.predict(Z[:4]) @ [0.1, 0.2, 0.3, 0.4]
    )
    assert weighted.baseline_name == "average over 4 points"
    assert weighted[2:4, ["gamma"]].baselines.shape == (4, 1)


def test_equal_weighted_points_are_one_point(posterior, rows, frame):
    b = frame.to_numpy()[0]
    one, several = Explainer(posterior, b)(rows), Explainer(posterior, Baselines([b, b, b]))(rows)
    np.testing.assert_allclose(several.values, one.values, atol=1e-14)
    np.testing.assert_allclose(several.cov, one.cov, atol=1e-14)


def test_one_baseline_per_row(posterior, rows):
    B = rows[::-1] / 2
    ex = Explainer(posterior)(rows, baselines=B)
    np.testing.assert_array_equal(ex.baselines, B)
    np.testing.assert_array_equal(ex.base_values, posterior.predict(B))
    assert ex.baseline_name == "one per row"
    for n in range(6):
        alone = Explainer(posterior, B[n])(rows[n : n + 1])
        np.testing.assert_allclose(ex.values[n], alone.values[0], atol=1e-13)
        np.testing.assert_allclose(ex.cov[n], alone.cov[0], atol=1e-13)


def test_frames_are_aligned_by_name_everywhere(posterior, rows):
    names = ["alpha", "beta", "gamma"]
    shuffled = ["gamma", "alpha", "beta"]
    X = pd.DataFrame(rows, columns=names)
    b = pd.Series([0.1, 0.2, 0.3], index=names)
    plain = Explainer(posterior, [0.1, 0.2, 0.3])(rows)
    for baseline in (b, b[shuffled], b[shuffled].to_frame().T):
        ex = Explainer(posterior, baseline)(X[shuffled])
        np.testing.assert_array_equal(ex.values, plain.values)
        np.testing.assert_array_equal(ex.cov, plain.cov)
        assert ex.feature_names == plain.feature_names
    np.testing.assert_array_equal(
        Explainer(posterior)(X[shuffled], baselines=(X / 2)[["beta", "gamma", "alpha"]]).values,
        Explainer(posterior)(rows, baselines=rows / 2).values,
    )
    np.testing.assert_array_equal(
        Explainer(posterior, Baselines(X[shuffled]))(X).values,
        Explainer(posterior, Baselines(rows))(rows).values,
    )
    np.testing.assert_array_equal(
        Explainer(posterior).training_contributions(X[shuffled].iloc[0], "beta"),
        Explainer(posterior).training_contributions(rows[0], 1),
    )


def test_names_of_a_model_trained_on_an_array(posterior, rows):
    bare = ExactPosterior(posterior.kernel, posterior.inputs, posterior.y, noise=posterior.noise)
    assert Explainer(bare)(rows).feature_names == ("x0", "x1", "x2")
    assert Explainer(bare)(pd.DataFrame(rows, columns=list("pqr"))).feature_names == ("p", "q", "r")
    assert Explainer(bare)(pd.DataFrame(rows)).feature_names == ("0", "1", "2")
    named = Explainer(bare, feature_names=["p", "q", "r"])
    reversed_columns = pd.DataFrame(rows[:, ::-1], columns=list("rqp"))
    np.testing.assert_array_equal(named(reversed_columns).values, Explainer(bare)(rows).values)
    by_baseline = Explainer(bare, pd.Series([1.0, 2.0, 3.0], index=list("pqr")))
    in_order = pd.DataFrame(rows, columns=list("pqr"))
    assert (
        by_baseline(in_order).values.tolist()
        == Explainer(bare, [1.0, 2.0, 3.0])(rows).values.tolist()
    )
    with pytest.raises(
        InvalidInputError, match="X: has its columns in another order than the baseline"
    ):
        by_baseline(reversed_columns)  # which of the two has the order of the model, nobody knows


def test_labels_that_are_not_text_are_aligned_too(posterior, rows):
    train = pd.DataFrame(posterior.inputs)  # columns 0, 1, 2
    by_number = Explainer(
        ExactPosterior(posterior.kernel, train, posterior.y, noise=posterior.noise)
    )
    np.testing.assert_array_equal(
        by_number(pd.DataFrame(rows)[[2, 0, 1]]).values, by_number(rows).values
    )
    tuples = pd.MultiIndex.from_product([["a"], ["alpha", "beta", "gamma"]])
    for columns in ([0, 1, 2], [0, "beta", "gamma"], tuples):
        with pytest.raises(InvalidInputError, match="X: expected the columns .* missing"):
            Explainer(posterior)(pd.DataFrame(rows, columns=columns))


def test_a_row_of_a_frame_needs_both_brackets(explainer, frame):
    with pytest.raises(
        InvalidInputError, match=r"X: expected rows .* X.iloc\[\[i\]\], with double brackets"
    ):
        explainer(frame.iloc[0])
    assert len(explainer(frame.iloc[[0]])) == 1


def test_row_names_come_from_the_frame(explainer, rows):
    X = pd.DataFrame(
        rows, columns=["alpha", "beta", "gamma"], index=pd.date_range("2024-01-01", periods=6)
    )
    assert explainer(X).row_names[0] == "2024-01-01 00:00:00"
    assert explainer(X.set_axis(np.arange(10, 16))).row_names == (10, 11, 12, 13, 14, 15)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool])
def test_other_number_types_are_computed_in_float64(posterior, rows, dtype):
    X = (rows * 2).astype(dtype)
    assert Explainer(posterior)(X) == Explainer(posterior)(X.astype(np.float64))
    assert Explainer(posterior)(X).values.dtype == np.float64
    low = ExactPosterior(
        posterior.kernel,
        posterior.inputs.astype(np.float32),
        posterior.y.astype(np.float32),
        noise=np.float32(0.25),
    )
    assert low.factor.dtype == np.float64


def test_uncertainty_on_request(explainer, rows):
    full, std, none = (explainer(rows, uncertainty=u) for u in ("cov", "std", "none"))
    np.testing.assert_allclose(std.std, full.std, rtol=1e-12)
    np.testing.assert_allclose(none.values, full.values, atol=1e-13)
    assert std.cov is None
    assert none.var is none.std is none.cov is None
    with pytest.raises(
        InvalidInputError, match="uncertainty: expected one of 'cov', 'std', 'none', got 'all'"
    ):
        explainer(rows, uncertainty="all")


def test_quadrature_on_request(posterior, rows):
    exact, numeric = (
        Explainer(posterior, method="exact")(rows),
        Explainer(posterior, method="quadrature")(rows),
    )
    assert numeric.method == "quadrature"
    assert np.all(np.abs(exact.values - numeric.values).max(axis=1) <= numeric.error)
    np.testing.assert_allclose(numeric.cov, exact.cov, atol=1e-13)


def test_prior_means_take_part(posterior, rows):
    mean = Linear([1.0, -2.0, 0.5], 4.0)
    as_function = Function(mean, mean.gradient)
    one, two = (
        Explainer(
            ExactPosterior(posterior.kernel, posterior.inputs, posterior.y, noise=0.1, mean=m)
        )(rows)
        for m in (mean, as_function)
    )
    np.testing.assert_allclose(one.values, two.values, atol=1e-13)
    assert np.abs(one.delta).max() < 1e-12
    assert two.method == "closed form + quadrature"
    assert np.all(two.error >= one.error)


def test_batches(explainer, rows, frame):
    parts = list(explainer.batches(rows, batch_size=4))
    assert [len(part) for part in parts] == [4, 2]
    np.testing.assert_allclose(
        np.concatenate([part.values for part in parts]), explainer(rows).values, atol=1e-14
    )
    assert Explanation.concatenate(parts) == explainer(rows)
    with_own = list(explainer.batches(frame, frame / 2, "none", batch_size=5))
    np.testing.assert_allclose(
        np.concatenate([part.values for part in with_own]),
        explainer(frame, frame / 2).values,
        atol=1e-14,
    )
    assert with_own[1].row_names == (5, 6, 7, 8, 9)
    assert [part.row_names for part in explainer.batches(rows, batch_size=np.int64(4))] == [
        (0, 1, 2, 3),
        (4, 5),
    ]
    assert len(next(explainer.batches(rows.tolist(), batch_size=2))) == 2
    # Mistakes show at the call, not at the first batch.
    for bad in (0, 2.5, "many"):
        with pytest.raises(InvalidInputError, match="batch_size: expected an integer"):
            explainer.batches(rows, batch_size=bad)
    with pytest.raises(InvalidInputError, match="X: expected 3 columns, got 2"):
        explainer.batches(rows[:, :2])
    with pytest.raises(
        InvalidInputError, match=r"baselines: expected one row per row of X \(6\), got 2"
    ):
        explainer.batches(rows, rows[:2])


def test_parts_by_different_explainers_are_not_joined(explainer, rows):
    ex = explainer(rows)
    assert Explanation.concatenate([ex]) == ex
    assert Explanation.concatenate(iter([ex[2:], ex[:2]])).row_names == (2, 3, 4, 5, 0, 1)
    for parts, words in (
        ([], "at least one explanation, got none"),
        (
            [ex, explainer(rows, uncertainty="std")],
            r"the set of arrays \(values, var, predictions.* of part 1 is another",
        ),
        (None, "expected explanations of one output each, got a NoneType"),
        ([ex, 1], "got a int as part 1"),
        ([ex, ex[:, :1]], "the feature_names of part 1 is another"),
        (
            [ex, Explainer(explainer.posterior, "median")(rows)],
            "the baseline_name of part 1 is another",
        ),
    ):
        with pytest.raises(InvalidInputError, match=words):
            Explanation.concatenate(parts)
    kernel = SquaredExponential([1.0, 1.0, 1.0])
    labels = (rows[:, 0] > 0) * 1.0
    for posterior in (
        LaplacePosterior(kernel, rows, labels),
        MixturePosterior(
            [ExactPosterior(kernel, rows, labels, noise=noise) for noise in (0.1, 0.5)]
        ),
    ):
        scale = "probability" if isinstance(posterior, LaplacePosterior) else "latent"
        whole = Explainer(posterior, "zeros", output=scale, n_draws=20)(rows)
        assert Explanation.concatenate([whole[:2], whole[2:]]) == whole
    two, three = (
        Explainer(explainer.posterior, Baselines(rows[:2], [w, 1.0 - w]))(rows) for w in (0.5, 0.25)
    )
    with pytest.raises(InvalidInputError, match="their baseline_weights differ"):
        Explanation.concatenate([two, three])


def test_joint(explainer, rows):
    joint = explainer.joint(rows)
    assert joint.shape == (6, 3, 6, 3)
    np.testing.assert_allclose(np.einsum("ninj->nij", joint), explainer(rows).cov, atol=1e-13)
    own = explainer.joint(rows, baselines=rows / 3)
    np.testing.assert_allclose(
        np.einsum("ninj->nij", own), explainer(rows, rows / 3).cov, atol=1e-13
    )


def test_training_contributions_add_up(posterior, rows):
    explainer = Explainer(posterior)
    ex = explainer(rows)
    for feature in ("alpha", 1, -1):
        shares = explainer.training_contributions(rows[0], feature)
        assert shares.shape == (12,)
        assert shares.sum() == pytest.approx(ex[:, feature].values[0, 0], abs=1e-13)
        assert isinstance(shares.sum(), float)
        assert (
            type(2 * shares) is np.ndarray
        )  # what is computed from them is no longer about the attribution
    assert (shares.feature, shares.quantity, shares.row_name) == ("gamma", "prediction", None)
    assert shares.baseline_name == ex.baseline_name
    np.testing.assert_array_equal(
        explainer.training_contributions(rows[:1], 0), explainer.training_contributions(rows[0], 0)
    )
    with pytest.raises(InvalidInputError, match="x: expected one row, got 6"):
        explainer.training_contributions(rows, 0)
    with pytest.raises(
        InvalidInputError,
        match=r"feature: expected one of \['alpha', 'beta', 'gamma'\], got 'delta'",
    ):
        explainer.training_contributions(rows[0], "delta")
    with pytest.raises(InvalidInputError, match="feature: expected positions below 3"):
        explainer.training_contributions(rows[0], 3)


def test_repr(explainer):
    assert repr(explainer).startswith("Explainer(ExactPosterior(12 rows × 3 features")


GOOD = np.zeros((2, 3))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[0.0, np.nan, 0.0]]), "X: expected finite numbers, got nan in row 0, column 1"),
        (
            pd.DataFrame([[0, np.inf, 0]], columns=["alpha", "beta", "gamma"]),
            "got inf in row 0, column 'beta'",
        ),
        (np.zeros((2, 4)), "X: expected 3 columns, got 4"),
        (
            np.zeros(3),
            (
                r"X: expected rows \(n, d\), got one dimension of length 3; a single row x goes in"
                r" as x.reshape\(1, -1\)"
            ),
        ),
        (np.zeros((0, 3)), r"X: expected at least one row and one column, got shape \(0, 3\)"),
        (np.zeros((2, 3, 1)), r"X: expected rows \(n, d\), got an array of shape \(2, 3, 1\)"),
        (np.array([["a", "b", "c"]]), "X: expected real numbers, got a ndarray of type <U1"),
        ([["a", None, 3]], "X: expected numbers, got a list"),
        ([[1, 2], [3]], "X: expected numbers, got a list"),
        (None, "X: expected numbers, got a NoneType"),
        (GOOD.astype(complex), "X: expected real numbers"),
        (
            pd.DataFrame(GOOD, columns=["alpha", "beta", "delta"]),
            r"missing \['gamma'\] and unknown \['delta'\]",
        ),
        (
            pd.DataFrame(np.zeros((2, 4)), columns=["alpha", "beta", "gamma", "y"]),
            r"unknown \['y'\]",
        ),
        (pd.DataFrame(np.zeros((2, 2)), columns=["alpha", "beta"]), r"missing \['gamma'\]"),
        (
            pd.DataFrame(GOOD, columns=["alpha", "beta", "beta"]),
            "expected different column names, got 'beta' more than once",
        ),
        (
            pd.DataFrame({"alpha": [1.0], "beta": ["red"], "gamma": [2.0]}),
            "X: expected numeric columns, got column 'beta' of type .*; encode it as numbers first",
        ),
        (
            pd.DataFrame({"alpha": [1.0], "beta": pd.to_datetime(["2024-01-01"]), "gamma": [2.0]}),
            "expected numeric columns, got column 'beta' of type datetime64",
        ),
        (
            pd.DataFrame({"alpha": [1.0], "beta": pd.Categorical(["a"]), "gamma": [2.0]}),
            "column 'beta' of type category",
        ),
        (
            pd.DataFrame({"alpha": [1.0], "beta": pd.array([None], dtype="Int64"), "gamma": [2.0]}),
            "got nan in row 0, column 'beta'",
        ),
    ],
)
def test_bad_rows(explainer, X, message):
    for call in (explainer, explainer.joint, explainer.importance, explainer.batches):
        with pytest.raises(InvalidInputError, match=message):
            call(X)


def test_nullable_numbers_are_numbers(explainer, rows):
    X = pd.DataFrame(np.round(rows), columns=["alpha", "beta", "gamma"])
    np.testing.assert_array_equal(explainer(X.astype("Int64")).values, explainer(X).values)


@pytest.mark.parametrize(
    ("baseline", "message"),
    [
        ("average", "baseline: expected one of 'mean', 'median', 'zeros', 'best', 'centre', got"),
        ([1.0, 2.0], r"baseline: expected 3 numbers \(one per feature\), got 2"),
        ([1.0, np.nan, 2.0], "baseline: expected finite numbers, got nan at position 1"),
        (
            np.zeros((2, 3)),
            r"baseline: expected one row, got 2; gpattr.Baselines\(points\) averages",
        ),
        (
            pd.Series([1.0, 2.0, 3.0], index=["alpha", "beta", "delta"]),
            r"missing \['gamma'\] and unknown \['delta'\]",
        ),
        (pd.Series([1.0, 2.0], index=["alpha", "beta"]), r"missing \['gamma'\]"),
        (
            pd.Series([1.0] * 4, index=["alpha", "beta", "gamma", "beta"]),
            r"more than once \['beta'\]",
        ),
        (Baselines(np.zeros((2, 2))), "baseline: expected points with 3 features, got 2"),
        (Baselines(pd.DataFrame(GOOD, columns=["alpha", "beta", "delta"])), r"missing \['gamma'\]"),
        (
            None,
            "baseline: expected 'mean', 'median', 'zeros', a point, gpattr.Baselines or"
            " gpattr.Marginals, got None",
        ),
        (0, "baseline: expected 'mean', .* got 0"),
    ],
)
def test_bad_baselines(posterior, baseline, message):
    with pytest.raises(InvalidInputError, match=message):
        Explainer(posterior, baseline)


@pytest.mark.parametrize(
    ("baselines", "message"),
    [
        (np.zeros((5, 3)), r"baselines: expected one row per row of X \(6\), got 5"),
        (np.zeros((6, 2)), "baselines: expected 3 columns, got 2"),
        (np.zeros(3), "baselines: expected rows"),
        ("mean", "baselines: expected one baseline per row of X, got 'mean'"),
        (Baselines(GOOD), "a baseline shared by all rows goes to Explainer"),
    ],
)
def test_bad_baselines_per_row(explainer, rows, baselines, message):
    with pytest.raises(InvalidInputError, match=message):
        explainer(rows, baselines=baselines)


def test_bad_options(posterior):
    with pytest.raises(
        InvalidInputError,
        match="method: expected one of 'auto', 'exact', 'quadrature', .*, got 'fast'",
    ):
        Explainer(posterior, method="fast")
    with pytest.raises(
        InvalidInputError, match=r"feature_names: the model was trained on the columns \['alpha'"
    ):
        Explainer(posterior, feature_names=["a", "b", "c"])
    bare = ExactPosterior(SquaredExponential(), GOOD + [[0], [1]], [0, 1], noise=0.1)
    for names, message in [
        (["a", "b"], "expected 3 names, got 2"),
        (["a", "b", "b"], "expected different names, got 'b' more than once"),
        ("abc", "expected a sequence of strings"),
        ([1, 2, 3], "expected a sequence of strings"),
    ]:
        with pytest.raises(InvalidInputError, match=f"feature_names: {message}"):
            Explainer(bare, feature_names=names)


def test_a_covariance_that_would_not_fit_is_refused(explainer, rows):
    many = np.tile(rows, (200, 1))
    with memory_budget(result=50_000):
        with pytest.raises(
            TooLargeError,
            match=(
                r"\(1200 × 3 × 3\) would take 84.4 KiB, more than the 48.8 KiB allowed: use"
                r' uncertainty="std"'
            ),
        ):
            explainer(many)
        assert len(explainer(many, uncertainty="std")) == 1200
        assert sum(len(part) for part in explainer.batches(many, batch_size=500)) == 1200
        with pytest.raises(TooLargeError, match="joint covariance"):
            explainer.importance(many)
    # By default the limit is half of the machine's memory.
    with pytest.raises(TooLargeError, match="TiB, more than the .* GiB allowed"):
        explainer.joint(np.zeros((10**6, 3)))


def test_the_package_lists_its_names():
    assert set(gpattr.__all__) <= set(dir(gpattr))
    for name in gpattr.__all__:
        assert getattr(gpattr, name) is not None
    with pytest.raises(AttributeError, match="module 'gpattr' has no attribute 'Explaner'"):
        gpattr.Explaner  # noqa: B018


def test_notebooks_show_cards(posterior, explainer):
    page = explainer._repr_html_()
    assert "mean of the training inputs" in page
    assert "SquaredExponential" in posterior._repr_html_()
    evil = ExactPosterior(
        posterior.kernel,
        pd.DataFrame(posterior.inputs, columns=["<b>", "b", "c"]),
        posterior.y,
        noise=0.1,
    )
    assert "&lt;b&gt;" in evil._repr_html_()
    assert "<b>" not in evil._repr_html_()
    both = MultiOutputPosterior({"height": posterior, "weight": posterior})
    assert "MultiOutputPosterior: 2 outputs" in both._repr_html_()
    assert "height" in both._repr_html_()


def test_the_name_of_the_target_is_the_quantity(tmp_path):
    X = np.random.default_rng(3).normal(size=(12, 2))
    model = gpattr.GPRegressor(
        SquaredExponential([1.0, 2.0]), noise_variance=0.1, optimize=False
    ).fit(X, X[:, 0])
    explainer = Explainer(model, target_name="cost of living (€)")
    ex = explainer(X)
    assert ex.quantity == "predicted cost of living (€)"
    assert Explanation.concatenate(explainer.batches(X, batch_size=5)).quantity == ex.quantity
    assert (
        ex[3].quantity
        == ex[:, ["x0"]].quantity
        == ex.group({"both": ["x0", "x1"]}).quantity
        == ex.quantity
    )
    assert repr(ex[3]).splitlines()[2].startswith("row 3: predicted cost of living (€) ")
    ex.save(tmp_path / "ex.json")
    assert Explanation.load(tmp_path / "ex.json").quantity == ex.quantity
    assert gpattr.explain(model, X, target_name="y").quantity == "predicted y"
    assert Explainer(model)(X).quantity == "prediction"
    for wrong in (3, "", " \t"):
        with pytest.raises(InvalidInputError, match="target_name: expected"):
            Explainer(model, target_name=wrong)


def test_the_name_of_the_target_of_classifiers():
    X = np.random.default_rng(4).normal(size=(24, 2))
    binary = gpattr.GPClassifier(SquaredExponential(2.0, 4.0), optimize=False).fit(X, X[:, 0] > 0)
    for scale, words in (("latent", "log odds"), ("probability", "probability")):
        ex = Explainer(binary, output=scale, n_draws=2, target_name="rain")(X[:2])
        assert ex.quantity == f"{words} of rain"
    several = gpattr.GPClassifier(SquaredExponential(2.0, 4.0), optimize=False).fit(
        X, np.arange(24) % 3
    )
    ex = Explainer(several, target_name="kind")(X[:2])
    assert ex["1"].quantity == "log odds of 1 against the rest"


@pytest.mark.parametrize("baseline", ["mean", "several"])
@pytest.mark.parametrize("attribution", ["integrated_gradients", "shapley"])
def test_what_is_kept_from_one_call_to_the_next(posterior, rows, baseline, attribution):
    chosen = Baselines(rows[:3]) if baseline == "several" else baseline
    explainer = Explainer(posterior, chosen, attribution=attribution)
    first, other = explainer(rows[:2]), explainer(rows[2:], uncertainty="std")
    own = explainer(rows, baselines=rows[::-1])
    assert own == Explainer(posterior, chosen, attribution=attribution)(rows, baselines=rows[::-1])
    for again in (explainer, copy.deepcopy(explainer), pickle.loads(pickle.dumps(explainer))):
        assert again(rows[:2]) == first
        assert again(rows[2:], uncertainty="std") == other


def test_what_is_kept_belongs_to_one_output():
    X = np.random.default_rng(5).normal(size=(20, 2))
    kernel = SquaredExponential(2.0)
    parts = {name: ExactPosterior(kernel, X, X @ w, noise=0.01) for name, w in OUTPUTS.items()}
    explainer = Explainer(MultiOutputPosterior(parts))
    both = explainer(X[:3])
    for name, part in parts.items():
        assert explainer[name](X[:3]) == both[name]
        np.testing.assert_allclose(
            explainer[name](X[:3]).base_values, part.predict(X.mean(axis=0)[None])[0], rtol=1e-12
        )
    assert explainer(X[3:5]) == Explainer(MultiOutputPosterior(parts))(X[3:5])


def test_formulas_and_the_value_at_the_baseline_are_found_once(posterior, rows, monkeypatch):
    explainer, asked = Explainer(posterior, "zeros"), []
    moments, bind = ExactPosterior.moments, ExactPosterior.bind

    def counted_moments(self, X, **options):
        asked.append(len(X))
        return moments(self, X, **options)

    def counted_bind(self, *arguments):
        asked.append("bound")
        return bind(self, *arguments)

    monkeypatch.setattr(ExactPosterior, "moments", counted_moments)
    monkeypatch.setattr(ExactPosterior, "bind", counted_bind)
    explainer(rows)
    assert asked == ["bound", 6, 1]
    explainer(rows)
    assert asked == ["bound", 6, 1, 6]
