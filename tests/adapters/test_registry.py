"""Adapters of one's own, and what is found for which model."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint

import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from tests.adapters.test_gpytorch import Exact, shaken

import gpattr
from gpattr import Explainer
from gpattr.adapters import Adapted, registry
from gpattr.adapters.verification import verify
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior
from gpattr.testing import check_adapter

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 2)), RNG.normal(size=20)


class Foreign:
    """A model of a library nobody knows."""

    def __init__(self, scale=1.0):
        self.scale = scale


class Derived(Foreign):
    """One that is derived from it."""


def adapter(model, data=None):
    posterior = ExactPosterior(SquaredExponential(), X, Y, noise=0.1)
    mean, var = posterior.predict, lambda rows: posterior.predict(rows, return_std=True)[1] ** 2
    return Adapted(posterior, lambda rows: (model.scale * mean(rows), var(rows)), X)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(registry, "REGISTERED", {})
    gpattr.register_adapter(f"{__name__.split('.')[0]}.Foreign", adapter)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("kind", [Foreign, Derived])
def test_adapters_of_ones_own(kind):
    assert Explainer(kind())(X[:3]) == Explainer(
        ExactPosterior(SquaredExponential(), X, Y, noise=0.1)
    )(X[:3])
    check_adapter(kind(), X[:8])
    with pytest.raises(
        UnsupportedModelError, match=rf"the predictive mean of this {kind.__name__} differs"
    ):
        Explainer(kind(1.0001))
    with pytest.raises(UnsupportedModelError, match="the predictive mean"):
        check_adapter(kind(1.0001), X[:8])
    assert gpattr.as_posterior(kind(2.0), check=False) is not None


@pytest.mark.parametrize(
    ("noise", "scale", "accepted"),
    [(1.0, 1.001, False), (1e-4, 1.001, True), (1e-4, 1.05, False)],
)
def test_predictions_may_differ_by_rounding(noise, scale, accepted):
    """A model with little noise has lost four digits of single precision; none has lost all."""
    posterior = ExactPosterior(SquaredExponential(), X, Y, noise=noise)

    def predict(rows):
        mean, std = posterior.predict(rows, return_std=True)
        return scale * mean, std**2

    adapted = Adapted(posterior, predict, X, accuracy=float(np.finfo(np.float32).eps))
    if accepted:
        verify(adapted, "Foreign")
    else:
        with pytest.raises(UnsupportedModelError, match="the predictive mean of this Foreign"):
            verify(adapted, "Foreign")


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (
            "Expected all tensors to be on the same device, but found two",
            UnsupportedModelError,
            "cpu",
        ),
        ("CUDA error", RuntimeError, "CUDA error"),
    ],
)
def test_models_on_several_devices(monkeypatch, raised, kind, message):
    def fails(model, data=None):
        raise RuntimeError(raised)

    monkeypatch.setattr(registry, "REGISTERED", {})
    gpattr.register_adapter(f"{__name__.split('.')[0]}.Foreign", fails)
    with pytest.raises(kind, match=message):
        Explainer(Foreign())


def test_entry_points(monkeypatch):
    monkeypatch.setattr(registry, "REGISTERED", {})
    monkeypatch.setattr(registry, "_LOADED", set())
    point = EntryPoint("foreign", f"{__name__}:announce", registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    assert Explainer(Foreign())(X[:3]).shape == (3, 2)


def test_threads_wait_for_what_is_announced(monkeypatch):
    """A package whose entry point is still loading is waited for."""
    monkeypatch.setattr(registry, "REGISTERED", {})
    monkeypatch.setattr(registry, "_LOADED", set())
    point = EntryPoint("foreign", f"{__name__}:announce_slowly", registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(registry.find_adapter, [Foreign()] * 4))
    assert found == [adapter] * 4


def announce_slowly():
    time.sleep(0.2)
    announce()


def announce():
    gpattr.register_adapter(f"{__name__.split('.')[0]}.Foreign", adapter)


def test_what_is_not_known_says_what_is():
    with pytest.raises(
        UnsupportedModelError, match=r"Foreign; gpattr.posteriors builds .* gpattr.register_adapter"
    ):
        Explainer(Foreign())
    with pytest.raises(
        UnsupportedModelError, match="expected a fitted model, got the class Foreign"
    ):
        Explainer(Foreign)
    with pytest.raises(InvalidInputError, match='name: expected "package.Class", got 3'):
        gpattr.register_adapter(3, adapter)
    with pytest.raises(InvalidInputError, match="adapter: expected a function, got a int"):
        gpattr.register_adapter("package.Class", 3)


def test_models_of_known_libraries_conform():
    check_adapter(
        GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), optimizer=None, normalize_y=True).fit(
            X, Y
        ),
        X[:8],
    )
    check_adapter(
        shaken(Exact(ScaleKernel(RBFKernel()), inputs=torch.tensor(X), targets=torch.tensor(Y))),
        X[:8],
    )


@pytest.mark.slow
def test_nothing_is_imported_that_is_not_needed():
    code = (
        "import sys, numpy as np, gpattr\nfrom sklearn.gaussian_process import"
        " GaussianProcessRegressor\nX = np.arange(10.0).reshape(5,"
        " 2)\ngpattr.as_posterior(GaussianProcessRegressor(alpha=0.1, optimizer=None).fit(X, X[:,"
        " 0]))\nprint([name for name in ('torch', 'jax', 'gpytorch', 'botorch', 'tensorflow') if"
        " name in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
