"""The evidence of several targets against one matrix of all of them, and its derivatives against
differences.
"""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from gpattr.estimators.evidence.coregionalised import CoregionalisedEvidence
from gpattr.estimators.evidence.marginal_likelihood import FREE, NOISE
from gpattr.estimators.hyperparameters import trainable
from gpattr.kernels import Linear, Matern32, SquaredExponential

RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=(12, 3)) + [0.0, 1.0, -2.0]
KERNELS = {
    "squared exponential": SquaredExponential([0.8, 1.5]),
    "tree": Matern32(1.2, 0.7) * (SquaredExponential(2.0) + 0.3) + Linear([0.2, 0.1]),
}
D = np.array([0.2, 0.05, 1.0])
R = np.array([[1.0, 0, 0], [-0.5, 0.8, 0], [0.3, 0.2, 0.6]])


def evidence_of(free_mean=False, independent=False, noise=None):
    return CoregionalisedEvidence(X, Y, noise, independent, free_mean)


def entries_of(evidence, root=R):
    return root[evidence.places]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("independent", [False, True])
def test_value_is_that_of_one_matrix(name, independent):
    evidence = evidence_of(independent=independent)
    root = np.diag(np.diag(R)) if independent else R
    C = np.kron(root @ root.T, KERNELS[name](X, X)) + np.kron(np.diag(D), np.eye(12))
    expected = multivariate_normal(cov=C).logpdf(Y.T.ravel())
    assert evidence(KERNELS[name], D, entries_of(evidence))[0] == pytest.approx(expected, rel=1e-12)
    known = evidence_of(independent=independent, noise=D)
    assert known(KERNELS[name], None, entries_of(known))[0] == pytest.approx(expected, rel=1e-12)


def test_constants_are_the_most_likely():
    """Generalised least squares with one constant for each output."""
    kernel = KERNELS["tree"]
    C = np.kron(R @ R.T, kernel(X, X)) + np.kron(np.diag(D), np.eye(12))
    ones = np.kron(np.eye(3), np.ones((12, 1)))
    expected = np.linalg.solve(
        ones.T @ np.linalg.solve(C, ones), ones.T @ np.linalg.solve(C, Y.T.ravel())
    )
    evidence = evidence_of(free_mean=True)
    np.testing.assert_allclose(
        evidence.constants(kernel, D, entries_of(evidence)), expected, rtol=1e-10
    )
    best = multivariate_normal(mean=ones @ expected, cov=C).logpdf(Y.T.ravel())
    assert evidence(kernel, D, entries_of(evidence))[0] == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    "options", [{}, {"free_mean": True}, {"independent": True}, {"free_mean": True, "noise": D}]
)
def test_derivatives_are_differences(name, options):
    evidence, kernel, step = evidence_of(**options), KERNELS[name], 1e-5
    entries, noise = entries_of(evidence), None if "noise" in options else D
    _, gradient = evidence(kernel, noise, entries)

    def difference(change):
        return (change(step) - change(-step)) / (2 * step)

    for hyperparameter, value in trainable(kernel).items():
        scalar = np.ndim(kernel.get_params()[hyperparameter]) == 0
        for i in range(len(value)):

            def change(t, name=hyperparameter, value=value, i=i, scalar=scalar):
                moved = value * np.exp(t * (np.arange(len(value)) == i))
                return evidence(
                    kernel.with_params(**{name: float(moved[0]) if scalar else moved}),
                    noise,
                    entries,
                )[0]

            assert np.atleast_1d(gradient[hyperparameter])[i] == pytest.approx(
                difference(change), rel=1e-7, abs=1e-7
            )
    for i in range(len(entries)):
        slope = difference(
            lambda t, i=i: evidence(kernel, noise, entries + t * (np.arange(len(entries)) == i))[0]
        )
        assert gradient[FREE][i] == pytest.approx(slope, rel=1e-7, abs=1e-7)
    if noise is not None:
        for i in range(3):
            slope = difference(
                lambda t, i=i: evidence(kernel, D * np.exp(t * (np.arange(3) == i)), entries)[0]
            )
            assert gradient[NOISE][i] == pytest.approx(slope, rel=1e-7, abs=1e-7)
