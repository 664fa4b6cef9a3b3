"""Odd inputs that broke something once."""

import copy
import os
import pickle
import threading

import numpy as np
import pandas as pd
import pytest

from gpattr import Baselines, Explainer, Explanation, closed_forms, memory_budget
from gpattr._core import memory as _memory
from gpattr.exceptions import FileFormatError, InvalidInputError, NoClosedFormError, ToleranceError
from gpattr.kernels import Select, SquaredExponential
from gpattr.means import Function, Linear, Mean
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import ExactPosterior, FunctionSpacePosterior


@pytest.mark.parametrize("distance", [1e3, 1e6, 1e9])
def test_a_distant_row_with_its_own_baseline_does_not_touch_the_others(distance):
    posterior = ExactPosterior(SquaredExponential(1.0), [[0.0], [1.0]], [1.0, -1.0], noise=0.1)
    explainer = Explainer(posterior)
    alone = explainer([[0.3]], baselines=[[-0.7]])
    together = explainer([[0.3], [distance + 1]], baselines=[[-0.7], [distance]])
    assert abs(alone.values[0, 0] - together.values[0, 0]) <= 1e-15
    assert abs(alone.cov[0, 0, 0] - together.cov[0, 0, 0]) <= 1e-15


def test_scattered_baselines_share_origins_only_with_their_neighbours():
    rng = np.random.default_rng(0)
    B = np.concatenate([rng.normal(size=(4, 2)) + centre for centre in (0, 100, 1000)])
    X, Z, w = B + rng.normal(size=B.shape), B[::2] + 0.3, rng.normal(size=6)
    kernel = SquaredExponential([1.0, 2.0])
    together = closed_forms.cross_dot(IntegratedGradients(B), kernel, X, Z, w)
    for n in range(12):
        alone = closed_forms.cross_dot(IntegratedGradients(B[n]), kernel, X[n : n + 1], Z, w)
        np.testing.assert_allclose(together[n], alone[0], atol=1e-14)


STEEP = 1e5


def steep_value(X):
    return np.tanh(STEEP * (X[:, 0] - 0.37))


def steep_slope(X):
    return STEEP / np.cosh(np.clip(STEEP * (X - 0.37), -300, 300)) ** 2


def test_a_step_of_the_prior_mean_is_found():
    """It is far narrower than any panel: two rules agree on nothing, but m(x) − m(b) tells."""
    mean = Function(steep_value, steep_slope)
    posterior = ExactPosterior(SquaredExponential(1.0), [[0.0]], [0.0], noise=0.1, mean=mean)
    ex = Explainer(posterior, [0.0])([[1.0]])
    truth = posterior.predict([[1.0]])[0] - posterior.predict([[0.0]])[0]
    assert abs(ex.values[0, 0] - truth) <= ex.error[0] < 1e-9


def test_a_prior_mean_with_a_gradient_of_something_else_is_refused():
    mean = Function(steep_value, lambda X: 0.0 * X)
    posterior = ExactPosterior(SquaredExponential(1.0), [[0.0]], [0.0], noise=0.1, mean=mean)
    with pytest.raises(
        ToleranceError, match=r"row 0 are accurate only to 4.0e\+00; the tolerance is 1e-06"
    ):
        Explainer(posterior, [0.0])([[1.0]])
    ex = Explainer(posterior, [0.0], tolerance=10.0)([[1.0]])
    truth = posterior.predict([[1.0]])[0] - posterior.predict([[0.0]])[0]
    assert abs(ex.values[0, 0] - truth) <= ex.error[0]


class Wave(Mean):
    def __call__(self, X):
        return np.sin(X[:, 0])

    def gradient(self, X):
        return np.cos(X)


def test_any_mean_but_the_simple_ones_is_integrated_and_says_so():
    posterior = ExactPosterior(SquaredExponential(1.0), [[0.0]], [0.0], noise=0.1, mean=Wave())
    assert Explainer(posterior)([[1.0]]).method == "closed form + quadrature"
    with pytest.raises(
        NoClosedFormError, match='"exact" was asked for, but the prior mean Wave has no closed form'
    ):
        Explainer(posterior, method="exact")([[1.0]])


def test_importance_where_variances_are_rounding():
    X = np.linspace(0, 1, 30)[:, None]
    posterior = ExactPosterior(SquaredExponential(0.5), X, np.sin(6 * X[:, 0]), noise=1e-9)
    got = Explainer(posterior, [0.0]).importance(X)
    assert got.values[0] == pytest.approx(np.abs(np.sin(6 * X)).mean(), abs=1e-3)


@pytest.mark.parametrize("length", [1e6, 2e9, 1e10, 1e30])
def test_endless_paths_through_the_data_stay_finite(length):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 2)), rng.normal(size=6)
    direction = np.array([np.cos(0.3), np.sin(0.3)])
    posterior = ExactPosterior(SquaredExponential(1.0), X, y, noise=0.1)
    ex = Explainer(posterior, X[0] - 0.4 * length * direction)(
        (X[0] + 0.6 * length * direction)[None]
    )
    assert np.isfinite(ex.values).all()
    assert np.isfinite(ex.cov).all()
    assert ex.error[0] > 2e-16 * length**2


@pytest.mark.parametrize("scale", [1e-170, 1e-12, 1e12, 1e170])
def test_extreme_units(scale):
    X = np.array([[0.0], [1.0], [2.0]])
    usual, extreme = (
        Explainer(ExactPosterior(SquaredExponential(s), X * s, [0.0, 1.0, 0.0], noise=0.1), [0.0])(
            X[1:2] * s
        )
        for s in (1.0, scale)
    )
    np.testing.assert_allclose(extreme.values, usual.values, rtol=1e-12)
    np.testing.assert_allclose(extreme.cov, usual.cov, rtol=1e-12)


def test_what_float64_cannot_hold_is_refused(posterior):
    with pytest.raises(
        InvalidInputError,
        match=r"X: expected rows within 1e\+140 length-scales of the data, got row 1",
    ):
        posterior.predict(np.array([[0.0] * 3, [1e200] * 3]))
    X = np.eye(2)
    with pytest.raises(InvalidInputError, match="variance: .* too large for float64"):
        ExactPosterior(SquaredExponential(variance=1.7e308), X, [0, 1], noise=1.7e308)
    with pytest.raises(
        InvalidInputError, match="y: the targets are too large, or variance and noise too small"
    ):
        ExactPosterior(SquaredExponential(variance=1e-310), X, [0, 1e10], noise=0)


def test_group_adds_up_errors(explanation):
    np.testing.assert_array_equal(
        explanation.group({"g": ["alpha", "beta"]}).error, 2 * explanation.error
    )
    assert explanation[:, []].group({}).shape == (6, 0)


def test_a_budget_is_set_whole_or_not_at_all():
    with (
        pytest.raises(InvalidInputError, match="result: expected"),
        memory_budget(working=1, result=-1),
    ):
        pass
    assert all(budget.get() is None for budget in _memory._BUDGETS.values())


def test_draws_are_counted_too(explanation):
    from gpattr.exceptions import TooLargeError

    with (
        memory_budget(result=1000),
        pytest.raises(TooLargeError, match=r"the draws \(10000 × 18\)"),
    ):
        explanation.sample(10_000)


def arrays_of(value):
    return [array for array in vars(value).values() if isinstance(array, np.ndarray)]


@pytest.mark.parametrize(
    "make_copy", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_copies_stay_frozen(explanation, posterior, make_copy):
    for value in (
        explanation,
        posterior,
        posterior.kernel,
        Linear([1.0, 2.0]),
        Baselines(np.eye(2)),
    ):
        again = make_copy(value)
        assert arrays_of(again)
        assert not any(array.flags.writeable for array in arrays_of(again))
    assert make_copy(explanation) == explanation
    assert make_copy(posterior.kernel) == posterior.kernel


def test_posteriors_take_no_new_values(posterior):
    for name in ("y", "noise", "alpha", "something"):
        with pytest.raises(AttributeError):
            setattr(posterior, name, 3)


def test_the_general_state_is_checked_and_does_not_alias():
    Z, L = np.eye(2), np.eye(2)
    state = FunctionSpacePosterior(SquaredExponential(), Z, np.ones(2), L)
    Z[0, 0] = 7.0
    assert state.inputs[0, 0] == 1.0
    assert state.factor.flags.f_contiguous
    with pytest.raises(
        InvalidInputError, match=r"factor: expected the shape \(2, 2\), got \(3, 3\)"
    ):
        FunctionSpacePosterior(SquaredExponential(), np.eye(2), np.ones(2), np.eye(3))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            np.ma.masked_array(np.zeros((1, 3)), mask=[[0, 1, 0]]),
            "X: expected plain numbers, got a masked array",
        ),
        (np.array([["1", "2", "3"]], dtype=object), "X: expected numbers, got a ndarray"),
        ([[10**400, 0, 0]], "X: expected numbers"),
        (
            pd.DataFrame({"alpha": pd.Categorical([1]), "beta": [1], "gamma": [1]}),
            "column 'alpha' of type category",
        ),
    ],
)
def test_things_that_only_look_like_numbers(explainer, X, message):
    with pytest.raises(InvalidInputError, match=message):
        explainer(X)


def test_masks_are_not_positions():
    with pytest.raises(InvalidInputError, match="features: expected column positions"):
        Select(SquaredExponential(), [True, False])


@pytest.mark.parametrize("key", [None, True, (slice(None), None), np.array([[0, 1]])])
def test_odd_keys(explanation, key):
    with pytest.raises(IndexError, match="(rows|features): expected positions"):
        explanation[key]


def test_kernels_can_be_summed():
    a, b = SquaredExponential(), SquaredExponential(variance=2.0)
    assert sum([a, b]) == a + b


def test_a_level_next_to_one(posterior):
    lower, upper = Explainer(posterior, "zeros")(np.zeros((1, 3))).interval(1 - 1e-16)
    assert not lower.any()
    assert not upper.any()


def test_endlessly_nested_and_nearly_right_files(explanation, tmp_path):
    path = tmp_path / "e.json"
    path.write_bytes(b"[" * 200_000)
    with pytest.raises(FileFormatError, match="cannot be read"):
        Explanation.load(path)
    explanation.save(path)
    path.write_text(path.read_text().replace('"schema": 1', '"schema": true'))
    with pytest.raises(FileFormatError, match="expected schema 1, got True"):
        Explanation.load(path)


def test_saving_leaves_the_umask_alone(explanation, tmp_path):
    before = os.umask(0o027)
    try:
        threads = [
            threading.Thread(target=explanation.save, args=(tmp_path / f"{i}.json",))
            for i in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}
    finally:
        assert os.umask(before) == 0o027
