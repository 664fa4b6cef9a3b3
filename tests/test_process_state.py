"""Explaining and training change nothing that belongs to the whole process, at no moment at which
another thread could look; but for the threads of the BLAS, which are limited and given back.
"""

import gc
import locale
import os
import random
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager
from functools import partial
from itertools import count

import botorch
import gpytorch
import linear_operator
import numpy as np
import pytest
import torch
from botorch.models import ModelListGP, MultiTaskGP, SingleTaskGP
from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import (
    AdditiveStructureKernel,
    LinearKernel,
    MaternKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    UnwhitenedVariationalStrategy,
    VariationalStrategy,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import BayesianRidge
from threadpoolctl import ThreadpoolController

import gpattr
from gpattr import Explainer
from gpattr._core import autodiff

try:
    import jax
except ModuleNotFoundError:
    jax = None

# The libraries warn while models are built: of their own deprecations, and of data that are not
# scaled.
IGNORED = ("botorch.exceptions.warnings.BotorchWarning", "DeprecationWarning")
pytestmark = [pytest.mark.filterwarnings(f"ignore::{warning}") for warning in IGNORED]
THREADS = 64
ROWS = np.random.default_rng(0).uniform(size=(24, 3))
TARGETS = np.sin(3 * ROWS[:, 0]) + ROWS[:, 1] * ROWS[:, 2]
X, Y = torch.tensor(ROWS), torch.tensor(TARGETS)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, kernel, network=None):
        super().__init__(X, Y, GaussianLikelihood())
        self.mean_module, self.covar_module, self.network = ConstantMean(), kernel, network

    def forward(self, x):
        x = x if self.network is None else self.network(x)
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, strategy):
        super().__init__(strategy(self, X[:6].clone(), CholeskyVariationalDistribution(6)))
        self.mean_module, self.covar_module = ConstantMean(), ScaleKernel(RBFKernel())

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def called_once(model):
    model = model.double()
    with torch.no_grad():
        model(X)
    return model


def fully_bayesian():
    model = SaasFullyBayesianSingleTaskGP(X, Y[:, None], outcome_transform=Standardize(1))
    generator = torch.Generator().manual_seed(0)
    sizes = {"lengthscale": (4, 1, 3), "outputscale": (4,), "mean": (4,), "noise": (4, 1)}
    model.load_mcmc_samples(
        {
            name: 0.5 + torch.rand(size, generator=generator, dtype=torch.double)
            for name, size in sizes.items()
        }
    )
    return model


def models():
    """Fitted models of other libraries, by name.

    There is no pipeline: it is compared through its own transformers, in which scikit-learn itself
    changes warning filters."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)
    ).double()
    tasks = torch.cat([X, torch.arange(24)[:, None] % 2], 1)
    return {
        "exact": Exact(ScaleKernel(RBFKernel(ard_num_dims=3))).double(),
        "exact in float32": Exact(ScaleKernel(RBFKernel())).float(),
        "product": (
            Exact(RBFKernel(active_dims=[0]) * LinearKernel() + MaternKernel(nu=2.5)).double()
        ),
        "additive": Exact(AdditiveStructureKernel(RBFKernel(), num_dims=3)).double(),
        "deep": (Exact(ScaleKernel(RBFKernel()), network).double(), {"feature_extractor": network}),
        "variational": called_once(Sparse(VariationalStrategy)),
        "unwhitened": called_once(Sparse(UnwhitenedVariationalStrategy)),
        "BoTorch": SingleTaskGP(X, Y[:, None], input_transform=Normalize(3)),
        "several outcomes": SingleTaskGP(X, torch.stack([Y, Y**2], 1)),
        "tasks": MultiTaskGP(tasks, Y[:, None], task_feature=-1),
        "list": ModelListGP(SingleTaskGP(X, Y[:, None]), SingleTaskGP(X, Y[:, None] ** 2)),
        "fully Bayesian": fully_bayesian(),
        "scikit-learn": (
            GaussianProcessRegressor(RBF(0.5), optimizer=None).fit(ROWS, TARGETS)
        ),  # noise-free: variances round to < 0
        "classifier": GaussianProcessClassifier(optimizer=None).fit(ROWS, TARGETS > 0.7),
        "linear": BayesianRidge().fit(ROWS, TARGETS),
    }


ESTIMATORS = {
    "GPRegressor": lambda: gpattr.GPRegressor().fit(ROWS, TARGETS),
    "SparseGPRegressor": (
        lambda: gpattr.SparseGPRegressor(n_inducing=8, random_state=0).fit(ROWS, TARGETS)
    ),
    "RandomFeatureGPRegressor": (
        lambda: gpattr.RandomFeatureGPRegressor(10, random_state=0).fit(ROWS, TARGETS)
    ),
    "GPClassifier": lambda: gpattr.GPClassifier().fit(ROWS, TARGETS > 0.7),
}


def explained(model):
    """All numbers of an explanation of three rows, as bytes."""
    ex = Explainer(model, ROWS[0])(ROWS[1:4])
    parts = list(ex.outputs.values()) if hasattr(ex, "outputs") else [ex]
    return b"".join(
        np.ascontiguousarray(array).tobytes()
        for part in parts
        for array in (part.values, part.cov, part.predictions)
    )


def shapley_values(background, model):
    """All numbers of Shapley values and of their interactions, as bytes."""
    explainer = Explainer(model, background(ROWS[:3]), attribution="shapley")
    ex, pairs = explainer(ROWS[1:4]), explainer.interactions(ROWS[1:4], uncertainty="cov")
    return b"".join(
        np.ascontiguousarray(array).tobytes()
        for array in (ex.values, ex.cov, ex.error, ex.predictions, pairs.values, pairs.cov)
    )


# Products, mixtures, enumeration and bases; marginals need a product.
SHAPLEY = {
    **dict.fromkeys(("exact", "BoTorch", "scikit-learn", "linear"), gpattr.Marginals),
    **dict.fromkeys(("product", "additive", "deep", "variational"), gpattr.Baselines),
}


@pytest.fixture(scope="module")
def cases():
    """What is done in threads: {name: a function without arguments that returns bytes}."""

    def of_model(entry, explained=explained):
        model, options = entry if isinstance(entry, tuple) else (entry, {})
        return lambda: explained(gpattr.as_posterior(model, **options))

    with warnings.catch_warnings():  # fixtures are made outside of the test's own filters
        warnings.simplefilter("ignore")
        known = models()
        made = {name: of_model(entry) for name, entry in known.items()}
        for name, background in SHAPLEY.items():
            made[f"Shapley: {name}"] = of_model(known[name], partial(shapley_values, background))
    return made | {name: lambda fit=fit: explained(fit()) for name, fit in ESTIMATORS.items()}


def settings():
    """The state of every setting of GPyTorch, linear_operator and BoTorch."""
    classes = {
        value
        for module in (
            gpytorch.settings,
            gpytorch.beta_features,
            linear_operator.settings,
            botorch.settings,
        )
        for value in vars(module).values()
        if isinstance(value, type)
    }
    return {
        (kind.__module__, kind.__qualname__, name): value
        for kind in classes
        for name, value in vars(kind).items()
        if not name.startswith("__")
        and not callable(value)
        and not isinstance(value, (classmethod, staticmethod, property))
    }


LIBRARIES = ThreadpoolController().lib_controllers  # those of NumPy, SciPy and PyTorch
OBSERVED = {
    "PyTorch's default dtype": torch.get_default_dtype,
    "PyTorch's threads": lambda: (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
    ),
    "settings of GPyTorch": settings,
    "warning filters": lambda: (
        id(warnings.filters),
        list(warnings.filters),
        warnings.showwarning,
        warnings._showwarnmsg_impl,
    ),
    "NumPy's error state": np.geterr,
    "JAX's precision": lambda: jax and jax.config.jax_enable_x64,
    "random numbers of NumPy": lambda: str(np.random.get_state(legacy=False)),  # noqa: NPY002
    "random numbers of PyTorch": lambda: torch.random.get_rng_state().numpy().tobytes(),
    "random numbers of Python": random.getstate,
    "environment": lambda: (dict(os.environ), os.getcwd()),
    "locale": lambda: locale.setlocale(locale.LC_ALL),
    "interpreter": lambda: (sys.getswitchinterval(), sys.getrecursionlimit(), gc.isenabled()),
}


def blas_threads():
    return [library.num_threads for library in LIBRARIES]


def difference(before, after):
    if isinstance(before, dict) and isinstance(after, dict):
        return {
            key: (before.get(key), after.get(key))
            for key in before | after
            if before.get(key) != after.get(key)
        }
    return before, after


@contextmanager
def watched():
    """Look at the state of the process all the time, in a thread of its own; fail if it ever
    differs from what it was.
    """
    start, changes, stop, looks = (
        {name: look_at() for name, look_at in OBSERVED.items()},
        {},
        threading.Event(),
        count(),
    )
    threads = blas_threads()

    def compare():
        for name, look_at in OBSERVED.items():
            now = look_at()
            if now != start[name]:
                changes.setdefault(name, difference(start[name], now))

    def look():
        while not stop.is_set():
            compare()
            next(looks)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
    compare()
    assert changes == {}
    assert blas_threads() == threads
    assert next(looks) > 50


@pytest.fixture
def quick_turns():
    """Let threads take turns often, so that the watcher sees what lasts for a moment only."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def in_threads(functions):
    """Call all functions at once, each in a thread of its own; return what they return, or raise
    what they raise.
    """
    together, results = threading.Barrier(len(functions)), [None] * len(functions)

    def work(place):
        together.wait()
        try:
            results[place] = functions[place]()
        except BaseException as error:
            results[place] = error

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@pytest.mark.slow
def test_nothing_changes_while_threads_explain_and_train(cases, quick_turns):
    alone = {
        name: case() for name, case in cases.items()
    }  # which also imports what is imported on first use
    names = [
        name for _, name in zip(range(THREADS), (name for _ in range(THREADS) for name in cases))
    ]
    with watched():
        together = in_threads([cases[name] for name in names])
    for name, result in zip(names, together):
        got, wanted = np.frombuffer(result), np.frombuffer(alone[name])
        atol = (1e-6 if name in ESTIMATORS else 1e-12) * np.abs(wanted).max()  # training amplifies
        message = f"{name}: another result than when nothing else runs"
        np.testing.assert_allclose(got, wanted, rtol=0, atol=atol, err_msg=message)


SETTERS = [
    (linear_operator.settings._feature_flag, "_set_state"),
    (linear_operator.settings._value_context, "_set_value"),
    (linear_operator.settings._dtype_value_context, "_set_value"),
    (torch, "set_default_dtype"),
    (torch, "manual_seed"),
    (warnings, "catch_warnings"),
    (warnings, "simplefilter"),
    (warnings, "filterwarnings"),
    (np.random, "seed"),
    (locale, "setlocale"),
]


@pytest.mark.slow
def test_nothing_is_even_changed_and_put_back(cases, monkeypatch):
    """Nothing changes for a time that is too short to be seen."""
    for case in cases.values():
        case()
    called = {}
    with monkeypatch.context() as patched:
        for owner, name in SETTERS:
            original = getattr(owner, name)

            def note(*args, what=(original, f"{owner.__name__}.{name}"), **options):
                calls.append(what[1])
                return what[0](*args, **options)

            patched.setattr(owner, name, note)
        for name, case in cases.items():
            calls = []
            case()
            called |= {name: calls} if calls else {}
    assert called == {}


def test_a_network_is_not_moved_away_from_other_threads():
    network = torch.nn.Linear(3, 2).double()
    kernel = gpattr.kernels.Warped(gpattr.kernels.SquaredExponential(), network)
    before = kernel(ROWS, ROWS)
    elsewhere = autodiff._call("map", kernel.map, [X.to("meta")])
    assert elsewhere.device.type == "meta"
    assert {str(parameter.device) for parameter in kernel.map.parameters()} == {"cpu"}
    np.testing.assert_array_equal(kernel(ROWS, ROWS), before)


@pytest.mark.slow
def test_modules_are_imported_by_many_threads_at_once():
    code = (
        "import threading, numpy as np, gpattr\nX = np.random.default_rng(0).normal(size=(12, 2));"
        " together = threading.Barrier(12); done = []\ndef explain(i):\n    together.wait()\n   "
        " kind = (gpattr.GPRegressor, gpattr.SparseGPRegressor, gpattr.GPClassifier)[i % 3] if i %"
        " 4 else None\n    from sklearn.gaussian_process import GaussianProcessRegressor\n    model"
        " = GaussianProcessRegressor(alpha=0.1, optimizer=None) if kind is None else"
        " kind(optimize=False)\n    done.append(repr(gpattr.Explainer(model.fit(X, X[:, 0] >"
        " 0))(X[:2])))\nthreads = [threading.Thread(target=explain, args=(i,)) for i in"
        " range(12)]\n[thread.start() for thread in threads]; [thread.join() for thread in"
        " threads]; print(len(done))"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "12", run.stderr
