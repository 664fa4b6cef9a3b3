import numpy as np
import pytest

from gpattr import Explainer
from gpattr.exceptions import InvalidInputError
from gpattr.explainer.importance_measures import folded_mean


def test_importance_against_draws_of_the_joint(explainer, rows):
    got = explainer.importance(rows, n_samples=20_000)
    mean, joint = explainer(rows).values.ravel(), explainer.joint(rows).reshape(18, 18)
    draws = np.random.default_rng(9).multivariate_normal(mean, joint, size=200_000, method="eigh")
    truth = np.abs(draws).reshape(-1, 6, 3).mean(axis=1)
    np.testing.assert_allclose(got.values, truth.mean(axis=0), atol=0.005)
    np.testing.assert_allclose(got.std, truth.std(axis=0), rtol=0.03)
    for mine, theirs in zip(got.interval(0.8), np.quantile(truth, [0.1, 0.9], axis=0), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=0.01)


def test_rows_are_not_independent(explainer, rows):
    """Fifty copies of a row say no more than the row: the uncertainty must not shrink."""
    one, many = (
        explainer.importance(rows[:1]),
        explainer.importance(np.repeat(rows[:1], 50, axis=0)),
    )
    np.testing.assert_allclose(many.values, one.values, rtol=1e-10)
    np.testing.assert_allclose(many.std, one.std, rtol=0.1)


def test_folded_mean():
    mean, std = (
        np.array([0.0, 1.0, -2.0, 3.0, -3.0, 0.0]),
        np.array([1.0, 2.0, 0.5, 0.0, 1e-200, 0.0]),
    )
    draws = np.abs(mean + std * np.random.default_rng(0).standard_normal((400_000, 6))).mean(axis=0)
    np.testing.assert_allclose(folded_mean(mean, std**2), draws, atol=0.01)
    np.testing.assert_array_equal(folded_mean(mean, std**2)[3:], [3.0, 3.0, 0.0])


def test_at_the_baseline_nothing_matters(posterior):
    got = Explainer(posterior, "zeros").importance(np.zeros((2, 3)))
    assert not got.values.any()
    assert not got.samples.any()


def test_shown(explainer, rows):
    got = explainer.importance(rows)
    assert got.feature_names == ("alpha", "beta", "gamma")
    frame = got.to_frame()
    assert frame["importance"].is_monotonic_decreasing
    assert list(frame.columns) == ["importance", "std", "lower", "upper"]
    assert (
        repr(got).splitlines()[0]
        == "Importance: expected mean |attribution| over 6 rows ± one standard deviation"
    )
    one = explainer.importance(rows[:1])
    assert (
        repr(one).splitlines()[0]
        == "Importance: expected mean |attribution| over 1 row ± one standard deviation"
    )
    np.testing.assert_array_equal(explainer.importance(rows).samples, got.samples)
    own = explainer.importance(rows, rows / 2, random_state=1)
    assert not np.array_equal(own.values, got.values)


def test_bad_input(explainer, rows):
    for n_samples in (0, 2.5, "many", True):
        with pytest.raises(InvalidInputError, match="n_samples: expected an integer of 1 or more"):
            explainer.importance(rows, n_samples=n_samples)
    with pytest.raises(
        InvalidInputError,
        match="random_state: expected None, an integer of 0 or more, a .*RandomState.*, got 'a'",
    ):
        explainer.importance(rows, random_state="a")


def test_rows_too_far_for_their_covariance_are_refused(posterior):
    far = np.array([[1.0, 1.0, 1.0], [1e8, 0.0, 0.0]])
    assert np.isfinite(Explainer(posterior)(far).cov).all()  # each by itself is known
    with pytest.raises(
        InvalidInputError,
        match="the covariance between rows is known where at most one of two paths",
    ):
        Explainer(posterior).importance(far)
