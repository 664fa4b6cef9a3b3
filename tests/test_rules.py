"""The paper's quadrature rules: what they are, what they cost, and how fast they converge."""

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer, closed_forms, compare_rules
from gpattr.closed_forms.quadrature.fixed_rules import nodes_and_weights
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.means import Function
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(2)
Z, Y = RNG.normal(size=(10, 2)), RNG.normal(size=10)
X, B = np.array([[1.5, -0.5], [0.2, 2.0]]), np.array([-0.5, 0.25])


def test_rules_by_hand():
    np.testing.assert_allclose(nodes_and_weights("right", 4), [[0.25, 0.5, 0.75, 1.0], [0.25] * 4])
    np.testing.assert_allclose(nodes_and_weights("trapezoid", 2), [[0, 0.5, 1], [0.25, 0.5, 0.25]])
    np.testing.assert_allclose(
        nodes_and_weights("simpson", 1), [[0, 0.5, 1], [1 / 6, 4 / 6, 1 / 6]]
    )
    np.testing.assert_allclose(
        nodes_and_weights("simpson", 2), [[0, 0.25, 0.5, 0.75, 1], np.array([1, 4, 2, 4, 1]) / 12]
    )
    for rule in closed_forms.FIXED_RULES:
        assert abs(nodes_and_weights(rule, 7)[1].sum() - 1.0) < 1e-14


@pytest.mark.parametrize("rule", closed_forms.FIXED_RULES)
@pytest.mark.parametrize(
    "kernel", [SquaredExponential([0.8, 1.2]), 0.5 * Matern52(0.9) + SquaredExponential()], ids=repr
)
def test_mean_and_covariance_are_the_rule_on_both_sides(rule, kernel):
    """Against sums of predictions of the gradient: its joint covariance over all nodes, weighted
    twice.
    """
    from gpattr.operators import Gradient

    posterior = ExactPosterior(kernel, Z, Y, noise=0.1)
    ex = Explainer(posterior, B, method=rule, n_steps=3)(X)
    assert ex.method == f"{rule} rule, 3 steps"
    t, w = nodes_and_weights(rule, 3)
    for row, x in enumerate(X):
        points = B + t[:, None] * (x - B)
        slopes = posterior.apply(Gradient(), points).mean
        np.testing.assert_allclose(ex.values[row], (x - B) * (w @ slopes), rtol=1e-12, atol=1e-14)
        joint = posterior.joint(Gradient(), points)  # (T, d, T, d)
        expected = np.einsum("s,t,sitj->ij", w, w, joint) * np.outer(x - B, x - B)
        np.testing.assert_allclose(ex.cov[row], expected, rtol=1e-10, atol=1e-13)
    exact = Explainer(posterior, B)(X)
    assert np.all(np.abs(ex.values - exact.values).max(axis=1) <= ex.error)
    assert np.all(ex.error <= 1.01 * np.abs(ex.values - exact.values).max(axis=1) + 1e-9)


def test_orders_of_convergence():
    table = compare_rules(
        ExactPosterior(SquaredExponential(), Z, Y, noise=0.1), X[0], B, n_steps=[8, 16]
    )
    for rule, order in (("right", 1), ("trapezoid", 2), ("simpson", 4)):
        coarse, fine = table[table.rule == rule].mean_error
        assert 0.75 * 2**order < coarse / fine < 1.35 * 2**order
    evaluations = dict(
        zip(zip(table.rule, table.n_steps, strict=True), table.evaluations, strict=True)
    )
    assert evaluations["right", 8] == 8
    assert evaluations["trapezoid", 8] == 9
    assert evaluations["simpson", 8] == 17
    assert evaluations["gauss_legendre", 8] == 8
    last = table[table.n_steps == 16].set_index("rule")
    assert last.mean_error["gauss_legendre"] < 1e-13
    assert last.std_error["gauss_legendre"] < 1e-12
    assert (last.mse <= last.mean_error**2).all()


def test_bad_input():
    posterior = ExactPosterior(SquaredExponential(), Z, Y, noise=0.1)
    for options, message in [
        (
            {"method": "right"},
            'n_steps: expected an integer of 1 to 1000000 for method="right", got None',
        ),
        ({"method": "simpson", "n_steps": 0}, "n_steps: expected an integer of 1 to 1000000"),
        ({"method": "simpson", "n_steps": True}, "n_steps: expected an integer of 1 to 1000000"),
        (
            {"n_steps": 5},
            (
                "n_steps: only the rules right, trapezoid, simpson, gauss_legendre and permutations"
                " take a number of steps, got 5"
            ),
        ),
        ({"tolerance": 0.0}, "tolerance: expected finite numbers larger than 0"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            Explainer(posterior, B, **options)
    assert len(compare_rules(posterior, X[0], B, rules="right", n_steps=5)) == 1
    with pytest.raises(InvalidInputError, match="rules: expected one of 'right'"):
        compare_rules(posterior, X[0], B, rules=["left"])
    with pytest.raises(InvalidInputError, match="x: expected one row, got 2"):
        compare_rules(posterior, X, B)


def test_series_are_aligned_by_name():
    frame = pd.DataFrame(Z, columns=["a", "b"])
    posterior = ExactPosterior(SquaredExponential(), frame, Y, noise=0.1)
    one = compare_rules(posterior, frame.iloc[3], n_steps=iter([4]))
    two = compare_rules(posterior, frame.iloc[3][["b", "a"]], n_steps=4)
    pd.testing.assert_frame_equal(one, two)
    assert len(one) == 4
    for options, message in [
        ({"n_steps": 4.0}, "n_steps: expected at least one, got 4.0"),
        ({"rules": []}, "rules: expected at least one"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            compare_rules(posterior, Z[0], **options)


def test_a_prior_mean_is_integrated_exactly():
    mean = Function(
        lambda x: np.sin(x[:, 0]), lambda x: np.column_stack([np.cos(x[:, 0]), 0 * x[:, 1]])
    )
    posterior = ExactPosterior(
        SquaredExponential(), Z, np.sin(Z[:, 0]), noise=0.1, mean=mean
    )  # nothing is left to the kernel
    ex = Explainer(posterior, B, method="right", n_steps=2)(X)
    assert ex.method == "quadrature + right rule, 2 steps"
    np.testing.assert_allclose(ex.values[:, 0], np.sin(X[:, 0]) - np.sin(B[0]), atol=1e-12)


def test_joint_by_a_rule():
    posterior = ExactPosterior(SquaredExponential(), Z, Y, noise=0.1)
    by_rule = Explainer(posterior, B, method="gauss_legendre", n_steps=20).joint(X)
    np.testing.assert_allclose(by_rule, Explainer(posterior, B).joint(X), atol=1e-12)
    op = IntegratedGradients(B)
    assert posterior.contributions(op, X, method="right", n_steps=2).shape == (2, 2, 10)
