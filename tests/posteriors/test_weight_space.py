"""Gaussian weights over a basis: what goes in, what is refused, what is bounded."""

import numpy as np
import pytest
import torch

from gpattr import Baselines, Explainer, memory_budget
from gpattr.bases import Fourier, Hilbert, Monomials
from gpattr.exceptions import InvalidInputError, NoClosedFormError, TooLargeError
from gpattr.means import Function
from gpattr.operators import Gradient, IntegratedGradients
from gpattr.posteriors import WeightSpacePosterior

RNG = np.random.default_rng(10)
BASIS = Fourier(RNG.normal(size=(6, 3)), [0.1, 0.2, 0.3])
W, HALF = RNG.normal(size=12), RNG.normal(size=(12, 12))
POSTERIOR = WeightSpacePosterior(BASIS, W, HALF @ HALF.T)
X, B = RNG.normal(size=(7, 3)), RNG.normal(size=3)


def test_three_ways_to_say_the_same():
    S = HALF @ HALF.T
    ways = [
        POSTERIOR,
        WeightSpacePosterior(BASIS, W, root=HALF),
        WeightSpacePosterior(BASIS, W, precision_factor=np.linalg.cholesky(np.linalg.inv(S))),
    ]
    for posterior in ways:
        assert posterior.covariance == pytest.approx(S, abs=1e-8 * S.max())
        F = BASIS(X)
        mean, cov = posterior.predict(X, return_cov=True)
        assert mean == pytest.approx(F @ W)
        assert cov == pytest.approx(F @ S @ F.T, abs=1e-8 * S.max())
        result = posterior.apply(IntegratedGradients(B), X)
        assert result.cov == pytest.approx(
            ways[0].apply(IntegratedGradients(B), X).cov, abs=1e-8 * S.max()
        )


def test_the_papers_rules_and_quadrature():
    exact = POSTERIOR.apply(IntegratedGradients(B), X)
    converged = POSTERIOR.apply(IntegratedGradients(B), X, method="quadrature")
    assert converged.method == "quadrature"
    assert np.abs(converged.mean - exact.mean).max() <= 1e-12
    assert np.abs(converged.cov - exact.cov).max() <= 1e-11 * exact.cov.max()
    previous = np.inf
    for steps in (2, 8, 32, 128):
        rule = POSTERIOR.apply(IntegratedGradients(B), X, method="trapezoid", n_steps=steps)
        off = np.abs(rule.mean - exact.mean).max(axis=1)
        assert np.all(off <= rule.error)
        assert off.max() < previous
        previous = off.max() / 8
    assert rule.method == "trapezoid rule, 128 steps"
    ex = Explainer(POSTERIOR, B, method="simpson", n_steps=4)(X)
    assert ex.method == "simpson rule, 4 steps"


def test_exact_refuses_a_mean_without_closed_form():
    mean = Function(lambda x: np.sin(x).sum(1), np.cos)
    posterior = WeightSpacePosterior(BASIS, W, HALF @ HALF.T, mean=mean)
    assert posterior.apply(IntegratedGradients(B), X).method == "closed form + quadrature"
    with pytest.raises(NoClosedFormError, match="prior mean Function"):
        posterior.apply(IntegratedGradients(B), X, method="exact")


def test_memory_is_bounded_and_results_do_not_depend_on_it():
    ops = [
        IntegratedGradients(B),
        IntegratedGradients(RNG.normal(size=(7, 3))),
        IntegratedGradients(Baselines(X[:3])),
        Gradient(),
    ]
    for op in ops:
        for uncertainty in ("cov", "std", "none"):
            whole = POSTERIOR.apply(op, X, uncertainty=uncertainty)
            with memory_budget(working=1.0):
                parts = POSTERIOR.apply(op, X, uncertainty=uncertainty)
            assert parts.mean == pytest.approx(whole.mean, rel=1e-13)
            if whole.var is not None:
                assert parts.var == pytest.approx(whole.var, rel=1e-12)
        with memory_budget(working=1.0):
            joint = POSTERIOR.joint(op, X)
        assert joint == pytest.approx(POSTERIOR.joint(op, X), abs=1e-12)
    with memory_budget(result=100.0):
        for ask in (
            lambda: POSTERIOR.apply(ops[0], X),
            lambda: POSTERIOR.joint(ops[0], X),
            lambda: POSTERIOR.predict(X, return_cov=True),
        ):
            with pytest.raises(TooLargeError):
                ask()


def test_tensors_stay_tensors():
    there = WeightSpacePosterior(BASIS, torch.tensor(W), torch.tensor(HALF @ HALF.T))
    for op in (IntegratedGradients(B), IntegratedGradients(Baselines(X[:3])), Gradient()):
        one, two = POSTERIOR.apply(op, X), there.apply(op, torch.tensor(X))
        for name in ("mean", "var", "cov", "error"):
            assert isinstance(getattr(two, name), torch.Tensor)
            assert np.abs(getattr(one, name) - getattr(two, name).numpy()).max() <= 1e-12 * max(
                1.0, one.cov.max()
            )
        assert np.abs(POSTERIOR.joint(op, X) - there.joint(op, X).numpy()).max() <= 1e-11
    for basis in (
        Monomials.up_to(2, 3, constant=True),
        Hilbert(np.zeros(3), np.full(3, 5.0), (2, 3, 2)),
    ):
        p = len(basis)
        here, there = (
            WeightSpacePosterior(basis, make(np.ones(p)), make(np.eye(p)))
            for make in (np.array, torch.tensor)
        )
        one, two = (posterior.apply(IntegratedGradients(B), X) for posterior in (here, there))
        assert np.abs(one.cov - two.cov.numpy()).max() <= 1e-12


def test_covariances_of_any_scale():
    for scale in (1e-200, 1e-20, 1e20, 1e150):
        result = WeightSpacePosterior(BASIS, W, scale * HALF @ HALF.T).apply(
            IntegratedGradients(B), X
        )
        assert result.cov / scale == pytest.approx(
            POSTERIOR.apply(IntegratedGradients(B), X).cov, rel=1e-9, abs=1e-12
        )
    singular = WeightSpacePosterior(BASIS, W, np.zeros((12, 12))).apply(IntegratedGradients(B), X)
    assert not singular.cov.any()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"basis": 3}, "basis: expected a gpattr basis, got int"),
        ({"weights": W[:5]}, "weights: expected 12 weights"),
        ({"weights": np.full(12, np.nan)}, "weights: expected finite"),
        (
            {"covariance": None},
            "covariance: expected exactly one of covariance, root and precision_factor",
        ),
        ({"root": HALF}, "covariance: expected exactly one of"),
        (
            {"covariance": np.eye(3)},
            r"covariance: expected an array of shape \(12, 12\), got \(3, 3\)",
        ),
        ({"covariance": HALF}, "covariance: expected a symmetric"),
        ({"covariance": -np.eye(12)}, "covariance: expected a symmetric positive semi-definite"),
        (
            {"covariance": np.ones((12, 12)) - 1.5 * np.eye(12)},
            "covariance: expected a symmetric positive semi-definite",
        ),
        (
            {"covariance": 1.5 * np.eye(12) - 0.5 * np.ones((12, 12))},
            "covariance: .* got correlations with the eigenvalue",
        ),
        ({"covariance": np.full((12, 12), np.inf)}, "covariance: expected finite numbers"),
        (
            {"covariance": None, "root": HALF[:5]},
            r"root: expected an array of shape \(12, r\), got \(5, 12\)",
        ),
        (
            {"covariance": None, "precision_factor": -np.eye(12)},
            "precision_factor: expected a lower triangular matrix",
        ),
        (
            {"covariance": None, "precision_factor": np.eye(12) + 0.1},
            "precision_factor: expected a lower triangular matrix",
        ),
        ({"reference_points": [B]}, "reference_points: expected a dictionary"),
        ({"mean": 3.0}, "mean: expected a gpattr mean or None, got float"),
        ({"feature_names": ("a",)}, "feature_names: expected 3"),
        ({"reference_points": {"mean": [1.0]}}, r"reference_points\['mean'\]: expected 3"),
    ],
)
def test_bad_input(options, words):
    given = {"basis": BASIS, "weights": W, "covariance": HALF @ HALF.T} | options
    with pytest.raises(InvalidInputError, match=words):
        WeightSpacePosterior(**given)


def test_bad_rows_and_baselines():
    with pytest.raises(
        InvalidInputError,
        match='baseline: "mean" needs the training inputs, which this model does not store',
    ):
        Explainer(POSTERIOR)
    assert Explainer(POSTERIOR, "zeros")(X).baseline_name == "zeros"
    known = WeightSpacePosterior(
        BASIS, W, HALF @ HALF.T, reference_points={"mean": B}, feature_names=("a", "b", "c")
    )
    assert Explainer(known)(X).baselines[0] == pytest.approx(B)
    with pytest.raises(InvalidInputError, match="X: row 0 lies so far out"):
        POSTERIOR.predict(np.full((1, 3), 1e300))
    with pytest.raises(InvalidInputError, match="uncertainty: expected"):
        POSTERIOR.apply(IntegratedGradients(B), X, uncertainty="all")
    with pytest.raises(InvalidInputError, match="method: expected"):
        POSTERIOR.apply(IntegratedGradients(B), X, method="magic")
    assert repr(POSTERIOR) == "WeightSpacePosterior(12 functions of 3 features, basis=Fourier)"
