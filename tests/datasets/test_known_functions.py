"""Functions with known attributions: against the definition in 50 digits, and laws."""

import mpmath
import numpy as np
import pandas as pd
import pytest

from gpattr import datasets
from gpattr.exceptions import InvalidInputError, TooLargeError

W = [2.0, -1.5, 0.25]
CASES = {
    "linear": (datasets.linear_function(W), lambda x: mpmath.fsum(w * c for w, c in zip(W, x)), 3),
    "product": (datasets.product_function(4), lambda x: mpmath.fprod(x), 4),
    "sines": (
        datasets.sine_product(1.5),
        lambda x: mpmath.sin(x[0]) * mpmath.sin(mpmath.mpf("1.5") * x[1]),
        2,
    ),
    "sines, text": (datasets.sine_product(), lambda x: mpmath.sin(x[0]) * mpmath.sin(2 * x[1]), 2),
}


@pytest.mark.parametrize("name", CASES)
def test_against_the_definition(name):
    known, f, d = CASES[name]
    X, b = (
        np.random.default_rng(3).uniform(0, 10, (4, d)),
        np.random.default_rng(4).uniform(0, 3, d),
    )
    values, attributions = known(X), known.attributions(X, b)
    for row, x in enumerate(X):
        with mpmath.workdps(50):
            p = [mpmath.mpf(u) - mpmath.mpf(v) for u, v in zip(x, b)]

            def along(t):
                return [mpmath.mpf(v) + t * c for v, c in zip(b, p)]

            def slope(t, i):
                z = along(t)
                return mpmath.diff(lambda u: f([*z[:i], u, *z[i + 1 :]]), z[i])

            truth = [p[i] * mpmath.quad(lambda t, i=i: slope(t, i), [0, 1]) for i in range(d)]
            scale = float(max(abs(v) for v in truth))
            assert values[row] == pytest.approx(
                float(f([mpmath.mpf(c) for c in x])), rel=1e-14, abs=1e-14
            )
        np.testing.assert_allclose(
            attributions[row], [float(v) for v in truth], rtol=0, atol=1e-13 * scale
        )


@pytest.mark.parametrize("name", CASES)
def test_completeness_and_one_baseline_per_row(name):
    known, _, d = CASES[name]
    X, B = np.random.default_rng(5).uniform(0, 10, (2, 6, d))
    attributions = known.attributions(X, B)
    np.testing.assert_allclose(
        attributions.sum(axis=1), known(X) - known(B), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        known.attributions(X[2:3], B[2]), attributions[2:3], rtol=1e-13, atol=1e-13
    )


def test_sines_near_the_baseline():
    """The function itself keeps its digits near 0, where the cosines of its expansion differ by
    rounding only.
    """
    for e in (1e-3, 1e-8, 1e-100):
        X = np.array([[e, e]])
        value = datasets.sine_product()(X)[0]
        assert value == pytest.approx(np.sin(e) * np.sin(2 * e), rel=1e-14, abs=0)
        assert datasets.sine_product().attributions(X, [0.0, 0.0]).sum() == pytest.approx(
            value, rel=1e-13, abs=0
        )


def test_labels_are_aligned():
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [5.0, 3.0]})
    known = datasets.linear_function([1.0, 10.0])
    expected = known.attributions(X.to_numpy(), [0.5, 2.0])
    np.testing.assert_array_equal(known.attributions(X, pd.Series({"b": 2.0, "a": 0.5})), expected)
    np.testing.assert_array_equal(
        known.attributions(X, pd.DataFrame({"b": [2.0] * 2, "a": [0.5] * 2})), expected
    )
    with pytest.raises(InvalidInputError, match="baseline: .*labelled"):
        known.attributions(X.to_numpy(), pd.Series({"b": 2.0, "a": 0.5}))
    with pytest.raises(InvalidInputError, match="baseline"):
        known.attributions(X, pd.Series({"b": 2.0, "c": 0.5}))


def test_the_shares_of_an_interaction_are_equal():
    X = np.array([[2.0, 3.0, 5.0]])
    np.testing.assert_allclose(
        datasets.product_function(3).attributions(X, np.zeros(3)), [[10.0, 10.0, 10.0]], rtol=1e-14
    )


def test_simulated_data():
    X, y = datasets.make_heteroscedastic(20_000, frequency=1.5, random_state=0)
    assert X.shape == (20_000, 2)
    assert 0 <= X.min() < 0.01
    assert 9.99 < X.max() <= 10
    residual = y - np.sin(X[:, 0]) * np.sin(1.5 * X[:, 1])
    assert residual.std() == pytest.approx(0.5, rel=0.02)
    assert residual.mean() == pytest.approx(0.0, abs=0.015)
    again, _ = datasets.make_heteroscedastic(20_000, random_state=0)
    np.testing.assert_array_equal(again, X)
    X, y = datasets.make_heteroscedastic(50, noise=0.0, random_state=1)
    np.testing.assert_allclose(y, np.sin(X[:, 0]) * np.sin(2 * X[:, 1]), atol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: datasets.make_heteroscedastic(0),
            "n_samples: expected an integer of 1 or more, got 0",
        ),
        (
            lambda: datasets.make_heteroscedastic(frequency="2"),
            "frequency: expected one finite number, got '2'",
        ),
        (
            lambda: datasets.make_heteroscedastic(frequency=np.nan),
            "frequency: expected one finite number, got nan",
        ),
        (
            lambda: datasets.make_heteroscedastic(noise=-1),
            "noise: expected a standard deviation, 0 or larger, got -1",
        ),
        (
            lambda: datasets.sine_product().sample(5, low=2, high=2),
            "high: expected a number larger than low = 2, got 2",
        ),
        (lambda: datasets.sine_product()(np.ones((2, 3))), "X: expected 2 columns, got 3"),
        (lambda: datasets.linear_function([[1.0]]), "weights: expected one dimension"),
        (
            lambda: datasets.product_function(0),
            "n_features: expected an integer of 1 or more, got 0",
        ),
        (lambda: datasets.sine_product().attributions(np.ones((2, 2)), [1.0]), "baseline"),
        (lambda: datasets.sine_product().attributions(np.ones((2, 2)), [1.0, "a"]), "baseline"),
        (lambda: datasets.make_heteroscedastic(random_state="x"), "random_state"),
        (lambda: datasets.sine_product(10**400), "frequency: expected one finite number"),
        (lambda: datasets.sine_product(True), "frequency: expected one finite number, got True"),
        (lambda: datasets.sine_product(1e300)([[1.0, 2.0]]), "X: "),
        (lambda: datasets.sine_product(1e300).attributions([[0.0, 0.0]], [1.0, 2.0]), "baseline: "),
        (
            lambda: datasets.sine_product().sample(3, low=-1.7e308, high=1.7e308),
            "high: expected a finite distance",
        ),
        (lambda: datasets.linear_function([]), "weights: expected at least one"),
        (
            lambda: datasets.KnownFunction("abc", [1.0, 2.0, 3.0]),
            "basis: expected a gpattr basis, got str",
        ),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_too_many_samples_are_refused():
    with pytest.raises(TooLargeError, match="the inputs"):
        datasets.make_heteroscedastic(10**15)
