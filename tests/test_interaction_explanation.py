"""Interactions as people get them: matrices, probabilities, tables, files, and what is refused."""

import json
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from tests.own_operators.enumerated_interactions import EnumeratedInteractions, weights

import gpattr
from gpattr import Explainer, Explanation, InteractionExplanation, memory_budget
from gpattr.distributions import Mixture
from gpattr.exceptions import (
    FileFormatError,
    InvalidIndexError,
    InvalidInputError,
    MissingUncertaintyError,
    TooLargeError,
    UnsupportedModelError,
)
from gpattr.explainer.interactions import OPERATORS, check_index
from gpattr.explanation.pairs import all_pairs
from gpattr.kernels import SquaredExponential
from gpattr.operators import Gradient
from gpattr.posteriors import ExactPosterior, MixturePosterior

NAMES = ("alcohol", "pH", "sugar", "sulphates")
N, D = 5, len(NAMES)


def symmetric(rng, n=N, d=D):
    half = rng.normal(size=(n, d, d))
    return half + half.transpose(0, 2, 1)


@pytest.fixture(scope="module")
def matrices():
    rng = np.random.default_rng(0)
    return symmetric(rng), np.abs(symmetric(rng))


@pytest.fixture(scope="module")
def ex(matrices):
    values, std = matrices
    return InteractionExplanation.from_matrices(
        values,
        std,
        feature_names=NAMES,
        predictions=values.sum(axis=(1, 2)) + 3.0,
        base_values=np.full(N, 3.0),
        data=np.arange(20.0).reshape(N, D),
        baselines=np.zeros((N, D)),
        row_names=tuple("abcde"),
        quantity="predicted quality",
    )


@pytest.fixture(scope="module")
def training():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, D))
    return X, X[:, 0] * X[:, 1] + np.sin(X[:, 2])


@pytest.fixture(scope="module")
def posterior(training):
    X, y = training
    frame = pd.DataFrame(X, columns=list(NAMES))
    return ExactPosterior(SquaredExponential([1.0, 1.5, 2.0, 3.0], 2.0), frame, y, noise=0.01)


@pytest.fixture
def explainer(posterior, monkeypatch):
    """An explainer whose interactions are computed by enumeration."""
    monkeypatch.setitem(OPERATORS, "shapley", EnumeratedInteractions)
    return Explainer(posterior, np.array([0.2, -0.1, 0.0, 0.3]), attribution="shapley")


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(2).normal(size=(3, D))


def brute_force(posterior, rows, baseline):
    """Return means (n, d, d) and covariances (n, d², d²), from the joint predictions alone."""
    members, half = weights(D)
    M = half.reshape(D * D, -1)
    means, covs = [], []
    for row in rows:
        corners = np.where(members > 0, row, baseline)
        mean, C = posterior.predict(corners, return_cov=True)
        means.append((M @ mean).reshape(D, D))
        covs.append(M @ C @ M.T)
    return np.array(means), np.array(covs)


def test_what_is_given_is_what_is_there(ex, matrices):
    values, std = matrices
    np.testing.assert_array_equal(ex.values, values)
    np.testing.assert_allclose(ex.std, std, rtol=1e-15)
    np.testing.assert_allclose(ex.attributions, values.sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-14)
    assert (len(ex), ex.shape, ex.pairs) == (N, (N, D, D), all_pairs(D))
    assert ex.pairs == tuple(zip(*map(list, np.triu_indices(D)), strict=True))
    assert ex.complete
    assert ex.cov is None
    assert ex.cov_error is None
    assert (ex.feature_names, ex.row_names, ex.labels) == (NAMES, tuple("abcde"), {})
    assert (ex.quantity, ex.index, ex.method) == ("predicted quality", "shapley", "given matrices")
    assert (ex.baseline_name, ex.data.shape, ex.baselines.shape) == ("given point", (N, D), (N, D))
    assert ex.predictions[0] - ex.base_values[0] == pytest.approx(values[0].sum())
    np.testing.assert_array_equal(ex.error, 0.0)


def test_it_is_immutable(ex):
    with pytest.raises(FrozenInstanceError):
        ex.index = "taylor"
    for array in (ex.values, ex.std, ex.by_pair.values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    assert pickle.loads(pickle.dumps(ex)) == ex


def test_probabilities_and_intervals_are_those_of_each_entry(ex, matrices):
    from scipy.stats import norm

    values, std = matrices
    np.testing.assert_allclose(ex.prob_positive(), norm.cdf(values / std), rtol=1e-12)
    lower, upper = ex.interval(0.9)
    np.testing.assert_allclose(norm.cdf(lower, values, std), 0.05, rtol=1e-9)
    np.testing.assert_allclose(norm.cdf(upper, values, std), 0.95, rtol=1e-9)
    bare = InteractionExplanation.from_matrices(values)
    assert bare.std is None
    with pytest.raises(MissingUncertaintyError):
        bare.prob_positive()


def test_rows_are_selected_and_matrices_stay_whole(ex):
    part = ex[[3, 1]]
    np.testing.assert_array_equal(part.values, ex.values[[3, 1]])
    np.testing.assert_array_equal(part.std, ex.std[[3, 1]])
    assert (part.row_names, part.shape) == (("d", "b"), (2, D, D))
    assert ex[1:3].row_names == ("b", "c")
    assert ex[-1].shape == (1, D, D)
    assert [row.row_names[0] for row in ex] == list("abcde")
    with pytest.raises(InvalidIndexError, match="expected positions, got 'pH'; the pairs are"):
        ex["pH"]
    with pytest.raises(InvalidIndexError, match="rows: expected positions"):
        ex[0, 1]
    with pytest.raises(InvalidIndexError, match="rows: expected positions below 5"):
        ex[7]


def test_strongest_leaves_main_effects_out(ex, matrices):
    values, std = matrices
    i, j = np.triu_indices(D, 1)
    order = np.argsort(-np.abs(values[2, i, j]))[:3]
    frame = ex.strongest(2, 3)
    assert list(frame) == ["feature", "with", "value", "std", "prob_positive"]
    np.testing.assert_array_equal(frame["value"], values[2, i, j][order])
    np.testing.assert_allclose(frame["std"], std[2, i, j][order])
    assert list(frame["feature"]) == [NAMES[k] for k in i[order]]
    assert list(frame["with"]) == [NAMES[k] for k in j[order]]
    many = ex.strongest()
    sizes = np.abs(values[:, i, j]).mean(axis=0)
    np.testing.assert_allclose(many["mean_abs"], np.sort(sizes)[::-1])
    with pytest.raises(InvalidInputError, match="n: expected"):
        ex.strongest(n=0)
    with pytest.raises(InvalidIndexError, match="row: expected"):
        ex.strongest(row=9)


def test_frames_have_one_line_for_each_row_and_pair(ex):
    frame = ex.to_frame()
    expected = ["row", "feature", "with", "value", "std", "lower", "upper", "prob_positive"]
    assert list(frame) == expected
    assert len(frame) == N * D * (D + 1) // 2
    one = frame[(frame["row"] == "c") & (frame["feature"] == "pH") & (frame["with"] == "sugar")]
    assert one["value"].item() == ex.values[2, 1, 2] == ex.values[2, 2, 1]
    assert one["prob_positive"].item() == ex.prob_positive()[2, 1, 2]
    assert list(InteractionExplanation.from_matrices(ex.values).to_frame())[3:] == ["value"]


def test_texts_name_what_is_shown(ex):
    many, one = repr(ex), repr(ex[1])
    assert many.startswith("Interactions in the predicted quality: 5 rows × 4 features\nShapley")
    assert "Shapley interaction values; baseline: given point; given matrices" in many
    assert "row b: predicted quality" in one
    assert "P(> 0)" in one
    assert "pH × sugar" in one
    assert "pH × pH" not in one  # a main effect
    page = InteractionExplanation.from_matrices(
        ex.values, feature_names=("<b>", *NAMES[1:])
    )._repr_html_()
    assert "&lt;b&gt; × " in page
    assert "<b>" not in page
    large = InteractionExplanation.from_matrices(symmetric(np.random.default_rng(0), 1, 6))
    assert repr(large).endswith("… and 5 smaller")


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_rows_and_features(n, d):
    small = InteractionExplanation.from_matrices(np.ones((n, d, d)), np.ones((n, d, d)))
    assert small.values.shape == small.prob_positive().shape == (n, d, d)
    assert repr(small)
    assert small._repr_html_()
    assert len(small.to_frame()) == n * d * (d + 1) // 2
    assert len(small.strongest()) == d - 1


def test_files_restore_everything_to_the_last_bit(ex, tmp_path):
    path = tmp_path / "interactions.json"
    ex.save(path)
    assert InteractionExplanation.load(path) == ex
    document = json.loads(path.read_text())
    assert document["format"] == "gpattr.InteractionExplanation"
    assert document["content"] == ex.to_dict()
    assert document["content"]["arrays"]["values"]["dims"] == ["row", "pair"]
    assert document["content"]["pairs"][1] == [0, 1]
    assert document["content"]["index"] == "shapley"
    with pytest.raises(FileFormatError, match=r"which gpattr\.InteractionExplanation\.load reads"):
        Explanation.load(path)
    path.write_text(path.read_text().replace('"index":"shapley"', '"index":"taylor"'))
    with pytest.raises(FileFormatError, match="altered"):
        InteractionExplanation.load(path)
    path.write_text(path.read_text()[:-200])
    with pytest.raises(FileFormatError, match="complete JSON"):
        InteractionExplanation.load(path)


# shap does not hand `rng` on to its pictures of the columns, and warns of NumPy's own generator if
# anything in the process has seeded it.
@pytest.mark.filterwarnings("ignore:The NumPy global RNG was seeded by:FutureWarning")
def test_shap_reads_the_matrices(ex):
    shap = pytest.importorskip("shap")
    found = ex.to_shap()
    np.testing.assert_array_equal(found.values, ex.values)
    np.testing.assert_array_equal(found.error_std, ex.std)
    assert found[1:3].shape == (2, D, D)
    assert found.feature_names == list(NAMES)
    import matplotlib.pyplot as plt

    shap.summary_plot(found.values, found.data, feature_names=found.feature_names, show=False)
    drawn = [text.get_text() for ax in plt.gcf().axes for text in ax.texts + [ax.title]]
    assert set(NAMES) <= set(drawn)  # a column of the matrix for each feature
    plt.close("all")
    shap.dependence_plot(("pH", "sugar"), found.values, found.data, feature_names=NAMES, show=False)
    points = plt.gcf().axes[0].collections[0].get_offsets()
    # shap draws both halves of an interaction
    np.testing.assert_allclose(np.sort(points[:, 1]), np.sort(2 * ex.values[:, 1, 2]))
    plt.close("all")


def test_chosen_pairs_leave_the_others_unknown(ex):
    values = np.full((2, D, D), np.nan)
    values[:, 0, 2] = values[:, 2, 0] = 1.0
    values[:, 1, 1] = -2.0
    some = InteractionExplanation.from_matrices(
        values, predictions=np.ones(2), base_values=np.zeros(2), feature_names=NAMES
    )
    assert some.pairs == ((0, 2), (1, 1))
    assert not some.complete
    np.testing.assert_array_equal(some.values, values)
    assert np.isnan(some.delta).all()
    assert np.isnan(some.attributions).all()
    assert len(some.to_frame()) == 4
    assert "2 of 10 pairs" in repr(some)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": np.ones((2, 3, 4))}, r"values: expected symmetric matrices .* \(2, 3, 4\)"),
        ({"values": np.ones((3, 3))}, "values: expected symmetric matrices"),
        (
            {"values": np.arange(18.0).reshape(2, 3, 3)},
            "values: expected symmetric matrices, but that of row 0 is not",
        ),
        ({"std": -np.ones((2, 3, 3))}, "std: expected numbers of 0 or more"),
        ({"std": np.ones((1, 3, 3))}, "std: expected numbers of 0 or more in the shape"),
        ({"index": "banzhaf"}, "index: expected"),
        ({"feature_names": ("a", "b")}, "feature_names"),
        ({"predictions": np.ones(3)}, "predictions: expected the shape"),
    ],
)
def test_matrices_that_are_none_are_refused(change, message):
    with pytest.raises(InvalidInputError, match=message):
        InteractionExplanation.from_matrices(**({"values": np.ones((2, 3, 3))} | change))


def test_numbers_and_pairs_must_fit(ex):
    with pytest.raises(InvalidInputError, match="pairs: expected one for each of 10 numbers"):
        InteractionExplanation(ex.by_pair, ex.pairs[:-1])
    with pytest.raises(InvalidInputError, match="by_pair: expected an Explanation with the axes"):
        InteractionExplanation(ex, ex.pairs)
    with pytest.raises(InvalidIndexError, match="pairs: feature: expected one of"):
        InteractionExplanation(ex.by_pair, (("pH", "salt"), *ex.pairs[1:]))


@pytest.mark.parametrize("uncertainty", ["none", "std", "cov"])
def test_the_explainer_assembles_what_the_operator_finds(explainer, posterior, rows, uncertainty):
    ex = explainer.interactions(pd.DataFrame(rows, columns=list(NAMES)), uncertainty=uncertainty)
    means, covs = brute_force(posterior, rows, explainer.baseline)
    np.testing.assert_allclose(ex.values, means, atol=1e-11)
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-11)
    assert (ex.index, ex.feature_names) == ("shapley", NAMES)
    np.testing.assert_allclose(ex.attributions, explainer(rows).values, atol=1e-11)
    if uncertainty == "none":
        assert ex.std is None
        assert ex.cov is None
        return
    var = np.diagonal(covs, axis1=1, axis2=2).reshape(-1, D, D)
    np.testing.assert_allclose(ex.std**2, var, atol=1e-11)
    if uncertainty == "std":
        assert ex.cov is None
        return
    flat = [i * D + j for i, j in ex.pairs]
    np.testing.assert_allclose(ex.cov, covs[:, flat][:, :, flat], atol=1e-11)


def test_integrated_gradients_are_divided_by_integrated_hessians(posterior, rows):
    explainer = Explainer(posterior)
    ex, whole = explainer.interactions(rows, uncertainty="cov"), explainer(rows)
    assert (ex.index, ex.index_name) == ("integrated_hessians", "integrated Hessians")
    np.testing.assert_allclose(ex.attributions, whole.values, atol=1e-11)
    # variances of the sums of rows too: G adds up the pairs of each feature
    G = np.array([[float(f in pair) for f in range(D)] for pair in ex.pairs])
    np.testing.assert_allclose(ex.distribution.linear(G).cov, whole.cov, atol=1e-11)


def test_chosen_pairs_and_baselines_of_each_row(explainer, posterior, rows):
    own = np.random.default_rng(3).normal(size=rows.shape)
    pairs = [("sugar", "alcohol"), (1, "sulphates"), ("pH", "pH")]
    ex = explainer.interactions(rows, own, pairs=pairs, uncertainty="cov")
    assert ex.pairs == ((0, 2), (1, 3), (1, 1))
    assert ex.baseline_name == "one per row"
    for n in range(len(rows)):
        means, covs = brute_force(posterior, rows[n : n + 1], own[n])
        for k, pair in enumerate(ex.pairs):
            assert ex.values[n][pair] == pytest.approx(means[0][pair], abs=1e-11)
            assert ex.cov[n, k, k] == pytest.approx(covs[0].diagonal()[pair[0] * D + pair[1]])
    assert np.isnan(ex.values[:, 0, 1]).all()
    assert np.isnan(ex.delta).all()


def test_signs_of_a_mixture_are_those_of_the_mixture(explainer, posterior, rows, training):
    X, y = training
    frame = pd.DataFrame(X, columns=list(NAMES))
    other = ExactPosterior(SquaredExponential(0.7, 1.0), frame, -y, noise=0.1)
    both = MixturePosterior([posterior, other], [0.7, 0.3])
    ex = Explainer(both, explainer.baseline, attribution="shapley").interactions(rows)
    parts = [
        Explainer(part, explainer.baseline, attribution="shapley").interactions(rows)
        for part in (posterior, other)
    ]
    assert isinstance(ex.distribution, Mixture)
    expected = 0.7 * parts[0].prob_positive() + 0.3 * parts[1].prob_positive()
    np.testing.assert_allclose(ex.prob_positive(), expected, rtol=1e-12)
    np.testing.assert_allclose(ex.values, 0.7 * parts[0].values + 0.3 * parts[1].values)


def test_combinations_that_are_not_defined_are_refused(explainer, posterior, rows):
    with pytest.raises(InvalidInputError, match='"taylor" divides attributions by attribution="sh'):
        Explainer(posterior).interactions(rows, index="taylor")
    with pytest.raises(InvalidInputError, match='"integrated_hessians" divides .*="integrated_g'):
        explainer.interactions(rows, index="integrated_hessians")
    with pytest.raises(InvalidInputError, match="index: expected"):
        explainer.interactions(rows, index="banzhaf")
    assert check_index(None, "shapley") == "shapley"
    assert check_index("taylor", "shapley") == "taylor"
    with pytest.raises(UnsupportedModelError, match="an operator of its own, Gradient"):
        Explainer(posterior, attribution=Gradient()).interactions(rows)
    with pytest.raises(InvalidInputError, match="uncertainty: expected"):
        explainer.interactions(rows, uncertainty="all")


def test_several_outputs_and_probabilities_are_refused(training, monkeypatch):
    monkeypatch.setitem(OPERATORS, "shapley", EnumeratedInteractions)
    X, y = training
    kernel = SquaredExponential(1.0)
    both = gpattr.MultiOutputGPRegressor(kernel, optimize=False).fit(X, {"one": y, "two": -y})
    with pytest.raises(UnsupportedModelError, match=r"interactions,.* explainer\['one'\]"):
        Explainer(both, attribution="shapley").interactions(X[:2])
    one = Explainer(both, attribution="shapley")["two"]
    assert one.interactions(X[:2]).shape == (2, D, D)
    classifier = gpattr.GPClassifier(kernel, optimize=False).fit(X, y > 0)
    with pytest.raises(
        UnsupportedModelError, match='interactions are available only with output="l'
    ):
        Explainer(classifier, output="probability").interactions(X[:2])


@pytest.mark.parametrize(
    ("pairs", "error", "message"),
    [
        ([("pH", "salt")], InvalidIndexError, "pairs: feature: expected one of .* got 'salt'"),
        ([(0, 9)], InvalidIndexError, "pairs: feature: expected positions below 4"),
        ([("pH", "sugar"), ("sugar", "pH")], InvalidInputError, "each pair once, got 'pH'"),
        (["pH"], InvalidInputError, "two features, by name or position, in each pair, got 'pH'"),
        ([], InvalidInputError, "pairs: expected a list of at least one pair"),
        ("pH", InvalidInputError, "pairs: expected a list"),
        ([(0, 1, 2)], InvalidInputError, "two features"),
    ],
)
def test_bad_pairs_are_refused(explainer, rows, pairs, error, message):
    with pytest.raises(error, match=message):
        explainer.interactions(rows, pairs=pairs)


def test_covariances_that_do_not_fit_are_refused_with_their_size(explainer, rows):
    with memory_budget(result=1000.0):
        with pytest.raises(TooLargeError, match=r"covariance between pairs \(3 × 10 × 10\)"):
            explainer.interactions(rows, uncertainty="cov")
        ex = explainer.interactions(rows, uncertainty="cov", pairs=[(0, 1), (2, 3)])
    assert ex.cov.shape == (3, 2, 2)
