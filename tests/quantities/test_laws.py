"""Laws of attributed quantities: completeness, dummies, parts, and what files and slices keep."""

import copy
import pickle

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpattr import Baselines, Explainer, Explanation, GPClassifier, GPRegressor, compare
from gpattr import quantities as q
from gpattr.distributions import Point
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import (
    Linear,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    Select,
    SquaredExponential,
)
from gpattr.posteriors import ExactPosterior, MixturePosterior

QUANTITIES = [
    q.StandardDeviation(),
    q.Variance(),
    q.UpperConfidenceBound(2.0),
    q.LowerConfidenceBound(1.0),
    q.ExpectedImprovement(0.5),
    q.LogExpectedImprovement(0.5),
    q.ProbabilityOfImprovement(0.5, maximize=False),
]
KERNELS = [
    SquaredExponential(lengthscale=0.9),
    Matern52(lengthscale=1.4),
    Matern32(lengthscale=2.0) + 0.2 * Linear(),
    RationalQuadratic(lengthscale=1.2, alpha=0.7),
    Select(Matern52(), [0]) * Select(SquaredExponential(lengthscale=2.0), [1]),
]


def model(kernel=KERNELS[0], seed=0, n=20, d=2, noise=0.01):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, d))
    return ExactPosterior(kernel, X, np.sin(X).sum(axis=1), noise=noise)


@settings(max_examples=40, deadline=None)
@given(
    quantity=st.sampled_from(QUANTITIES),
    kernel=st.sampled_from(KERNELS),
    attribution=st.sampled_from(["integrated_gradients", "shapley"]),
    noise=st.sampled_from([1.0, 1e-2, 1e-6]),
    ends=st.lists(st.floats(-3, 3), min_size=4, max_size=4),
)
def test_completeness(quantity, kernel, attribution, noise, ends):
    posterior, (b, x) = model(kernel, noise=noise), np.reshape(ends, (2, 2))
    ex = Explainer(posterior, b, quantity=quantity, attribution=attribution)(x[None])
    size = max(abs(ex.predictions[0]), abs(ex.base_values[0]), *np.abs(ex.values[0]))
    # What rounding makes of log EI beside data of tiny noise is in its value itself.
    assert abs(ex.delta[0]) <= max(1e-10 * size, ex.error[0] * (noise < 1e-3))
    assert abs(ex.delta[0]) <= ex.error[0] <= 1e-6 * size + 1e-300
    mean, std = posterior.predict(np.stack([x, b]), return_std=True)
    np.testing.assert_allclose(
        [ex.predictions[0], ex.base_values[0]], quantity.value(mean, std), rtol=1e-12
    )
    assert isinstance(ex.distribution, Point)


@pytest.mark.parametrize("attribution", ["integrated_gradients", "shapley"])
def test_a_feature_that_nothing_depends_on_gets_nothing(attribution):
    posterior = model(Select(SquaredExponential(), [0, 2]), d=3)
    for quantity in QUANTITIES:
        ex = Explainer(posterior, quantity=quantity, attribution=attribution)(np.eye(3))
        np.testing.assert_allclose(ex.values[:, 1], 0.0, rtol=0.0, atol=1e-14)
        assert (ex.values[:, [0, 2]] != 0).any()


@pytest.mark.parametrize("attribution", ["integrated_gradients", "shapley"])
def test_a_row_at_the_baseline_has_no_attributions(attribution):
    for quantity in QUANTITIES:
        ex = Explainer(model(), [0.3, 0.4], quantity=quantity, attribution=attribution)(
            [[0.3, 0.4], [1.0, 0.4]]
        )
        assert (ex.values[0] == 0).all()
        assert ex.values[1, 1] == 0
        assert ex.values[1, 0] == pytest.approx(ex.predictions[1] - ex.base_values[1], rel=1e-9)


@pytest.mark.parametrize("attribution", ["integrated_gradients", "shapley"])
def test_several_baselines_are_averaged(attribution):
    points, weights, rows = np.array([[0.0, 1.0], [-1.0, 0.5]]), [0.25, 0.75], [[1.0, -1.0]]
    for quantity in QUANTITIES:
        options = {"quantity": quantity, "attribution": attribution}
        both = Explainer(model(), Baselines(points, weights), **options)(rows)
        each = [Explainer(model(), point, **options)(rows) for point in points]
        expected = sum(w * part.values for w, part in zip(weights, each, strict=True))
        np.testing.assert_allclose(both.values, expected, rtol=1e-9, atol=1e-12)
        assert np.abs(both.delta).max() < 1e-9


def test_rows_have_baselines_of_their_own():
    rows, own = np.array([[1.0, -1.0], [0.5, 2.0]]), np.array([[0.0, 1.0], [-1.0, 0.5]])
    together = Explainer(model(), quantity=q.StandardDeviation())(rows, own)
    for i in range(2):
        alone = Explainer(model(), own[i], quantity=q.StandardDeviation())(rows[i : i + 1])
        np.testing.assert_allclose(together.values[i], alone.values[0], rtol=1e-11)


@pytest.mark.parametrize("attribution", ["integrated_gradients", "shapley"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_parts_of_a_confidence_bound(attribution, sign):
    """Exploiting is the attribution of the mean, exploring that of the standard deviation."""
    bound = q.UpperConfidenceBound(1.5) if sign > 0 else q.LowerConfidenceBound(1.5)
    rows = np.array([[1.0, -1.0], [0.5, 2.0]])
    options = {"attribution": attribution}
    ex = Explainer(model(), quantity=bound, **options)(rows)
    mean = Explainer(model(), **options)(rows, uncertainty="none")
    std = Explainer(model(), quantity=q.StandardDeviation(), **options)(rows)
    exploit, explore = ex.parts["exploit"], ex.parts["explore"]
    np.testing.assert_allclose(exploit.values, mean.values, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(exploit.predictions, mean.predictions, rtol=1e-12)
    np.testing.assert_allclose(explore.values, sign * 1.5 * std.values, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(exploit.values + explore.values, ex.values, rtol=1e-12, atol=1e-15)
    for part in (exploit, explore):
        np.testing.assert_allclose(part.delta, 0.0, rtol=0.0, atol=1e-10)
        assert isinstance(part.distribution, Point)


def test_parts_of_an_improvement_add_up():
    rows = np.array([[1.0, -1.0], [0.5, 2.0]])
    for quantity in QUANTITIES[4:]:
        ex = Explainer(model(), quantity=quantity)(rows)
        total = sum(part.values for part in ex.parts.values())
        np.testing.assert_allclose(total, ex.values, rtol=1e-10, atol=1e-14)
        assert all(np.abs(part.values).max() > 0 for part in ex.parts.values())
        assert not Explainer(model(), quantity=quantity, attribution="shapley")(rows).parts
    for quantity in QUANTITIES[:2]:
        assert not Explainer(model(), quantity=quantity)(rows).parts


def test_parts_stay_with_rows_features_groups_and_files(tmp_path):
    rows = np.random.default_rng(0).normal(size=(5, 3))
    explainer = Explainer(model(d=3), quantity=q.UpperConfidenceBound(2.0))
    ex = explainer(rows)
    np.testing.assert_array_equal(ex[1:3].parts["explore"].values, ex.parts["explore"].values[1:3])
    np.testing.assert_array_equal(
        ex[:, ["x2"]].parts["exploit"].values, ex.parts["exploit"].values[:, [2]]
    )
    grouped = ex.group({"both": ["x0", "x1"]})
    np.testing.assert_allclose(
        grouped.parts["explore"].values[:, 0],
        ex.parts["explore"].values[:, :2].sum(axis=1),
        rtol=1e-14,
    )
    joined = Explanation.concatenate(explainer.batches(rows, batch_size=2))
    np.testing.assert_array_equal(joined.parts["exploit"].values, ex.parts["exploit"].values)
    ex.save(tmp_path / "bound.json")
    assert Explanation.load(tmp_path / "bound.json") == ex
    assert "without uncertainty" in repr(ex)
    assert "upper confidence bound (κ = 2)" in repr(ex)


def test_rough_kernels_have_shapley_values_only():
    rough = model(Matern12(lengthscale=2.0))
    with pytest.raises(UnsupportedModelError, match="Matern12 has no gradients"):
        Explainer(rough, quantity=q.StandardDeviation())
    ex = Explainer(rough, quantity=q.StandardDeviation(), attribution="shapley")([[1.0, 2.0]])
    np.testing.assert_allclose(ex.delta, 0.0, rtol=0.0, atol=1e-14)


def test_shapley_values_against_their_definition():
    from itertools import permutations

    posterior, x, b = model(d=3), np.array([1.0, -1.0, 2.0]), np.array([0.2, 0.1, -0.5])
    for quantity in QUANTITIES:

        def value(S):
            point = np.where(np.isin(np.arange(3), S), x, b)
            return quantity.value(*posterior.predict(point[None], return_std=True))[0]

        expected = np.zeros(3)
        for order in permutations(range(3)):
            for k, i in enumerate(order):
                expected[i] += (value(order[: k + 1]) - value(order[:k])) / 6
        ex = Explainer(posterior, b, quantity=quantity, attribution="shapley")(x[None])
        np.testing.assert_allclose(ex.values[0], expected, rtol=1e-9, atol=1e-13)


def test_players_of_shapley_values():
    posterior, x = model(d=4), np.array([[1.0, -1.0, 2.0, 0.5]])
    options = {"quantity": q.StandardDeviation(), "attribution": "shapley"}
    ex = Explainer(posterior, players={"pair": ["x0", "x3"]}, **options)(x)
    assert ex.feature_names == ("pair", "x1", "x2")
    np.testing.assert_allclose(ex.delta, 0.0, rtol=0.0, atol=1e-14)


def test_mixtures_and_classifiers():
    mixture = MixturePosterior([model(), model(KERNELS[1])])
    for attribution in ("integrated_gradients", "shapley"):
        for quantity in QUANTITIES:
            ex = Explainer(mixture, quantity=quantity, attribution=attribution)([[1.0, 2.0]])
            assert abs(ex.delta[0]) < 1e-10 * max(1.0, abs(ex.predictions[0]))
    X = np.random.default_rng(0).normal(size=(30, 2))
    classifier = GPClassifier().fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    ex = Explainer(classifier, quantity=q.StandardDeviation())(X[:2])
    assert "standard deviation of the log odds of 'yes' against 'no'" in repr(ex)


def test_wide_and_long():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 60)), rng.normal(size=40)
    wide = ExactPosterior(SquaredExponential(8.0), X, y, noise=0.1)
    ex = Explainer(wide, quantity=q.ExpectedImprovement(1.0))(rng.normal(size=(3, 60)))
    assert np.abs(ex.delta).max() <= 1e-10 * np.abs(ex.predictions).max()
    long = model(n=15)
    rows = rng.uniform(-2, 2, size=(5_000, 2))
    ex = Explainer(long, quantity=q.StandardDeviation())(rows)
    assert np.abs(ex.delta).max() < 1e-10
    some = Explainer(long, quantity=q.StandardDeviation())(rows[777:779])
    np.testing.assert_allclose(ex.values[777:779], some.values, rtol=1e-10, atol=1e-13)


def test_comparisons_are_known_without_uncertainty():
    rows = np.array([[1.0, -1.0], [0.5, 2.0]])
    one, two = (
        Explainer(model(), b, quantity=q.StandardDeviation()) for b in ([0.0, 0.0], [1.0, 1.0])
    )
    for found in (compare(one, two, rows), compare(one(rows), two(rows))):
        np.testing.assert_array_equal(found.values, two(rows).values - one(rows).values)
        assert (found.std == 0).all()
        assert found.dependence == "known"
        changed = found.prob_sign_changed()
        np.testing.assert_array_equal(changed, (one(rows).values * two(rows).values < 0) * 1.0)


def test_parts_are_there_where_nothing_changes_and_cannot_be_written_to():
    """A batch that has only the baseline is joined with the others."""
    rows = np.array([[0.3, 0.4], [1.0, -1.0]])
    explainer = Explainer(model(), rows[0], quantity=q.UpperConfidenceBound(0.0))
    joined = Explanation.concatenate(explainer.batches(rows, batch_size=1))
    assert set(joined.parts) == {"exploit", "explore"}
    for ex in (joined, pickle.loads(pickle.dumps(joined)), copy.deepcopy(joined)):
        assert ex == joined
        with pytest.raises(TypeError, match="cannot be written to"):
            ex.parts["exploit"] = joined  # pyright: ignore[reportIndexIssue]


def test_smooth_data_without_noise_and_a_default_model():
    """Variances there are small differences of large numbers: the error says so."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    fitted = GPRegressor().fit(X, np.sin(X[:, 0]) + X[:, 1])
    rows = rng.normal(size=(5, 2))
    for quantity in (q.UpperConfidenceBound(2.0), q.StandardDeviation(), q.Variance()):
        for attribution in ("integrated_gradients", "shapley"):
            ex = Explainer(fitted, quantity=quantity, attribution=attribution)(rows)
            size = np.abs(ex.values).max()
            assert (np.abs(ex.delta) <= ex.error).all()
            assert (ex.error <= 0.01 * size).all()
    mean = Explainer(fitted)(rows, uncertainty="none")
    bound = Explainer(fitted, quantity=q.UpperConfidenceBound(2.0))(rows)
    np.testing.assert_allclose(bound.parts["exploit"].values, mean.values, rtol=1e-7, atol=1e-8)


def test_the_error_of_shapley_values_counts_the_rounding_of_variances():
    """σ at the four corners in 50 digits, for a variance of 1e-9 of the prior's."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    kernel = SquaredExponential(np.array([3.0, 20.0]), 300.0)
    posterior = ExactPosterior(kernel, X, np.sin(X[:, 0]) + X[:, 1], noise=1e-6)
    x = np.array([0.5, 0.7])
    ex = Explainer(posterior, np.zeros(2), quantity=q.StandardDeviation(), attribution="shapley")(
        x[None]
    )
    with mp.workdps(50):
        scale = [mp.mpf(3), mp.mpf(20)]

        def k(a, b):
            pairs = zip(a, b, scale, strict=True)
            return 300 * mp.exp(-sum(((mp.mpf(u) - mp.mpf(v)) / s) ** 2 for u, v, s in pairs) / 2)

        Z = X.tolist()
        A = mp.matrix([[k(a, b) for b in Z] for a in Z]) + mp.mpf(1e-6) * mp.eye(20)

        def std(point):
            kz = mp.matrix([k(point, z) for z in Z])
            return mp.sqrt(300 - (kz.T * mp.lu_solve(A, kz))[0])

        both, none, first, second = std([0.5, 0.7]), std([0, 0]), std([0.5, 0]), std([0, 0.7])
        expected = [(first - none + both - second) / 2, (second - none + both - first) / 2]
    off = np.abs(ex.values[0] - np.array(expected, dtype=float)).max()
    assert 1e-13 < off <= ex.error[0] < 1e-7
