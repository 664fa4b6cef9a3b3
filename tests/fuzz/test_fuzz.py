"""Random models, seed by seed: exact, or refused by the library's own exception, in seconds.

``GPATTR_FUZZ_SEEDS`` says how many of each kind (fifty of everything by default);
``GPATTR_FUZZ_FIRST`` which is the first."""

import os
import signal
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.fuzz import dense, models
from tests.reference.brute_force import brute_force

import gpattr
from gpattr.exceptions import GpattrError
from gpattr.operators import IntegratedGradients

FIRST = int(os.environ.get("GPATTR_FUZZ_FIRST", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("GPATTR_FUZZ_SEEDS", "50")))
LONGEST = 30.0  # seconds of processor time, which a busy machine does not stretch

pytestmark = pytest.mark.slow


@contextmanager
def time_limit():
    def stop(*_):
        raise TimeoutError(f"longer than {LONGEST} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def explained(explainer_of, rows):
    """The explainer and its explanation; None where the library refuses."""
    with time_limit():
        try:
            explainer = explainer_of()
            return explainer, explainer(rows)
        except GpattrError:
            return None


def assert_gaussian(ex, size):
    """Covariances are symmetric, and positive semi-definite to 1e-9 of the size of the function or
    within cov_error.
    """
    np.testing.assert_array_equal(ex.cov, ex.cov.transpose(0, 2, 1))
    lowest = np.linalg.eigvalsh(ex.cov)[:, 0]
    assert (lowest >= -np.maximum(1e-9 * size, ex.shape[1] * ex.cov_error)).all(), (
        lowest,
        size,
        ex.cov_error,
    )
    assert np.isfinite(ex.error).all()
    assert np.isfinite(ex.cov_error).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_own_kernels(seed):
    posterior, rows, baseline, _ = models.exact_model(seed)
    found = explained(lambda: gpattr.Explainer(posterior, baseline), rows)
    if found is None:
        return
    explainer, ex = found
    operator = IntegratedGradients(explainer.baseline)
    size = float(
        max(posterior.kernel.diagonal(rows).max(), posterior.kernel.diagonal(operator.points).max())
    )
    assert_gaussian(ex, size)
    mean, cov = dense.posterior(posterior, operator, rows)
    settled = np.isfinite(mean).all() and np.isfinite(cov).all()
    if settled:  # else the dense rule has not converged, and says nothing
        allowed = ex.error + 1e-12 * np.abs(posterior.alpha).sum() * size
        assert (np.abs(ex.values - mean).max(axis=1) <= allowed).all()
        assert (np.abs(ex.cov - cov).max(axis=(1, 2)) <= ex.cov_error + 3e-12 * size).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_between_rows_and_baselines(seed):
    """The joint distribution of rows is a Gaussian's, and has each row's own covariance in it;
    averages follow from it.
    """
    posterior, rows, _, rng = models.exact_model(seed)
    rows = np.unique(rows, axis=0)[:2]
    background = models.background(rng, rows.shape[1])
    found = explained(lambda: gpattr.Explainer(posterior, background), rows[:1])
    if found is None:
        return
    _, ex = found
    size = float(
        max(
            posterior.kernel.diagonal(rows).max(),
            posterior.kernel.diagonal(background.points).max(),
        )
    )
    assert_gaussian(ex, size)
    with time_limit():
        try:
            same = np.repeat(rows[:1], len(background.points), axis=0)
            joint = gpattr.Explainer(posterior).joint(same, baselines=background.points)
        except GpattrError:
            return
    w, n = background.weights, joint.shape[0] * joint.shape[1]
    scale = max(size, float(np.abs(joint).max()))
    assert np.linalg.eigvalsh(joint.reshape(n, n))[0] >= -max(1e-9 * scale, n * ex.cov_error[0])
    np.testing.assert_allclose(
        ex.cov[0],
        np.einsum("u,v,uivj->ij", w, w, joint),
        rtol=0,
        atol=2 * ex.cov_error[0] + 1e-11 * scale,
    )


@pytest.mark.parametrize("library", ["sklearn_model", "gpytorch_model", "botorch_model"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}"
)
@pytest.mark.filterwarnings("ignore:::botorch", "ignore:::gpytorch", "ignore:::linear_operator")
def test_models_of_other_libraries(library, seed):
    from tests.fuzz import foreign

    rng = np.random.default_rng(seed)
    model, X, joint = getattr(foreign, library)(rng)
    x, b = X[0] + 0.3 * rng.normal(size=X.shape[1]), X.mean(axis=0)
    found = explained(lambda: gpattr.Explainer(model, b), x[None])
    if found is None:
        return
    _, ex = found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, here = joint(np.stack([x, b]))
        size = float(here.max())
        assert_gaussian(ex, size)
        for panels, step in ((8, 2e-3), (32, 3e-4)):  # differences of a Matérn 3/2 converge slowly
            mean, cov = brute_force(joint, x, b, panels=panels, step=step)
            scale = max(np.abs(mean).max(), np.sqrt(max(np.diagonal(cov).max(), size)))
            if (
                np.abs(ex.values[0] - mean).max() < 2e-4 * scale
                and np.abs(ex.cov[0] - cov).max() < 5e-3 * np.abs(cov).max()
            ):
                return
    np.testing.assert_allclose(ex.values[0], mean, rtol=0, atol=2e-4 * scale)
    np.testing.assert_allclose(
        ex.cov[0], cov, rtol=0, atol=5e-3 * max(np.abs(cov).max(), 1e-3 * size)
    )
