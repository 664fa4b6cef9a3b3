"""Training with any kernel: gradients against differences, every kernel learns, own gradients,
fixed hyperparameters, files.
"""

import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from gpattr import Explainer, GPRegressor, estimators
from gpattr._core import documents
from gpattr.estimators import hyperparameters, storage
from gpattr.estimators.evidence.marginal_likelihood import Objective
from gpattr.estimators.hyperparameters import trainable
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import (
    Constant,
    Cosine,
    FullAdditive,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Rescaled,
    Select,
    SquaredExponential,
    Warped,
    White,
    separable,
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(25, 2)), RNG.normal(size=25)
KERNELS = [
    Matern12(1.2),
    Matern32([1.0, 0.5]),
    Matern52(0.7, 2.0),
    RationalQuadratic([1.0, 0.5], alpha=0.7),
    Periodic([1.1, 0.8], [2.0, 3.0]),
    Periodic(1.3, 4.0),
    Cosine([5.0, 4.0]),
    Cosine(4.0),
    Linear([1.0, 2.0]),
    Linear(),
    Polynomial(0.5, degree=3),
    Polynomial([0.5, 1.0], degree=2, offset=0.3),
    2.0 * SquaredExponential(1.5) * (Select(Matern32(), [1]) + 3.0) + White(0.1),
    Matern52() * Linear() * Periodic(1.0, 5.0),
    separable(Matern32, [1.0, 2.0]),
    FullAdditive([SquaredExponential(0.5), Periodic(1.0, 3.0)], [1.0, 0.5]),
    Rescaled(Matern32(), lambda x: torch.exp(-(x**2).sum(1) / 10)),
    Warped(Matern52([1.0, 2.0, 3.0]), torch.nn.Linear(2, 3)),
    Select(White() + Constant(), [0]) + SquaredExponential(),
]
BASIS = np.column_stack([np.ones(25), X])
TRENDS = {
    "none": None,
    "flat": (BASIS, np.zeros((3, 3))),
    "Gaussian": (BASIS, np.diag([0.3, 1.0, 2.0])),
}


@pytest.mark.parametrize("trend", TRENDS)
@pytest.mark.parametrize(
    "kernel", [SquaredExponential([1.0, 0.5]), *KERNELS], ids=lambda k: type(k).__name__
)
def test_gradients(kernel, trend):
    objective = Objective(X, Y, None, trend == "none", TRENDS[trend])
    gradient = objective(kernel, 0.3)[1]
    values = kernel.get_params()
    for name, value in trainable(kernel).items():
        for i in range(len(value)):

            def at(step, name=name, value=value, i=i):
                moved = value * np.exp(step * np.eye(len(value))[i])
                changed = kernel.with_params(
                    **{name: moved if np.ndim(values[name]) else float(moved[0])}
                )
                return objective(changed, 0.3)[0]

            # Richardson's combination of two central differences: an error of the fourth order.
            numeric = (8 * (at(1e-3) - at(-1e-3)) - (at(2e-3) - at(-2e-3))) / 12e-3
            assert abs(np.atleast_1d(gradient[name])[i] - numeric) <= 1e-6 * (1 + abs(numeric)), (
                name,
                i,
            )


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_every_kernel_learns(kernel):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 2))
    y = np.sin(rows[:, 0]) + 0.5 * rows[:, 1] + 0.1 * rng.normal(size=40)
    before = GPRegressor(kernel, optimize=False).fit(rows, y)
    model = GPRegressor(kernel, hyperparameters="optimal").fit(rows, y)
    assert model.log_marginal_likelihood_ > before.log_marginal_likelihood_
    assert set(trainable(model.kernel_)) == set(trainable(kernel))
    if not isinstance(kernel, Matern12):
        ex = Explainer(model)(rows[:2])
        assert np.abs(ex.delta).max() <= 1e-8
        assert ex.cov is not None


def test_tensors_train_as_arrays():
    kernel = Matern52([1.0, 1.0]) * Linear() + RationalQuadratic([1.0, 1.0])
    here, there = (
        GPRegressor(kernel).fit(X, Y),
        GPRegressor(kernel).fit(torch.tensor(X), torch.tensor(Y)),
    )
    assert abs(here.log_marginal_likelihood_ - there.log_marginal_likelihood_) < 1e-6


def test_fixed_hyperparameters_stay():
    kernel = Periodic(1.0, 3.0) + Matern52([1.0, 1.0])
    model = GPRegressor(
        kernel,
        bounds={"0__period": "fixed", "noise_variance": (0.01, 1.0)},
        hyperparameters="optimal",
    ).fit(X, Y)
    assert model.kernel_.kernels[0].period == 3.0
    assert model.kernel_.kernels[0].lengthscale != 1.0
    names = trainable(SquaredExponential())
    still = GPRegressor(
        SquaredExponential(),
        noise_variance=0.1,
        bounds=dict.fromkeys(names, "fixed"),
        hyperparameters="optimal",
    ).fit(X, Y)
    assert still.kernel_ == SquaredExponential()
    quiet = GPRegressor(
        SquaredExponential([1.0, 1.0]),
        bounds={"noise_variance": "fixed"},
        hyperparameters="optimal",
    ).fit(X, Y)
    np.testing.assert_allclose(quiet.noise_variance_, 0.2 * Y.var())
    all_fixed = dict.fromkeys([*names, "noise_variance"], "fixed")
    np.testing.assert_allclose(
        GPRegressor(SquaredExponential(), bounds=all_fixed, hyperparameters="optimal")
        .fit(X, Y)
        .noise_variance_,
        0.2 * Y.var(),
    )
    partly = FullAdditive([Matern52(), Matern52()], [0.0, 1.0])
    with pytest.raises(
        InvalidInputError,
        match="order_variances can be trained from values larger than 0 only, got 0.0",
    ):
        GPRegressor(partly, hyperparameters="optimal").fit(X, Y)
    kept = GPRegressor(partly, bounds={"order_variances": "fixed"}, hyperparameters="optimal").fit(
        X, Y
    )
    np.testing.assert_array_equal(kept.kernel_.order_variances, [0.0, 1.0])


def test_nonstationary_kernels_see_the_origin():
    """Rows are centred in training only where the kernel cannot tell."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 2)) + 5.0
    y = rows @ [1.0, -2.0] + 0.1 * rng.normal(size=30)
    kernel = Linear([1.0, 1.0]) + 0.1 * SquaredExponential([2.0, 2.0])
    model = GPRegressor(kernel, mean="zero", hyperparameters="optimal").fit(rows, y)
    value, gradient = Objective(rows, y)(model.kernel_, model.noise_variance_)
    np.testing.assert_allclose(model.log_marginal_likelihood_, value, rtol=1e-9)
    assert (
        max(np.abs(slope).max() for slope in gradient.values()) < 0.01
    )  # an optimum for the rows as they are


@dataclass(frozen=True, eq=False)
class Flat(Kernel):
    level: float = 1.0
    trainable = ("level",)

    def __call__(self, X, Z):
        return self.level * np.ones((len(X), len(Z)))

    def diagonal(self, X):
        return np.full(len(X), self.level)

    def n_lengthscales(self, step):
        return np.zeros(step.shape[:-1])

    def check_features(self, d):
        pass


def test_own_gradients():
    estimators.register_gradient(Flat, lambda kernel, X, G: {"level": kernel.level * G.sum()})
    try:
        own = GPRegressor(
            Flat() + SquaredExponential([1.0, 1.0]), mean="zero", hyperparameters="optimal"
        ).fit(X, Y + 3)
        known = GPRegressor(
            Constant() + SquaredExponential([1.0, 1.0]), mean="zero", hyperparameters="optimal"
        ).fit(X, Y + 3)
        np.testing.assert_allclose(
            own.kernel_.kernels[0].level, known.kernel_.kernels[0].variance, rtol=1e-2
        )
    finally:
        hyperparameters.GRADIENTS.pop(Flat)


@pytest.mark.parametrize(
    "kernel",
    [
        0.5 * Matern52([1.0, 2.0]) * (Linear() + Periodic(1.0, [2.0, 3.0])) + White(0.1),
        FullAdditive([SquaredExponential(), RationalQuadratic(alpha=2.0)], [1.0, 0.5])
        + Select(Matern32() * Cosine(4.0), [1]),
        Polynomial([1.0, 2.0], degree=2) + Matern12(),
    ],
)
def test_files(kernel, tmp_path):
    model = GPRegressor(kernel, optimize=False).fit(X, Y)
    model.save(tmp_path / "model.json")
    again = GPRegressor.load(tmp_path / "model.json")
    assert again.kernel_ == kernel
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    old = str(tmp_path / "old.json")
    content = json.loads(json.dumps(storage.content_of(model)).replace('"module":', '"room":'))
    assert "room" in content["options"]["kernel"]
    assert "module" not in json.dumps(content)
    documents.write("gpattr.GPRegressor", content, old)  # as earlier versions wrote it
    assert GPRegressor.load(old).kernel_ == kernel
    warped = GPRegressor(Warped(Matern52(), torch.nn.Linear(2, 2)), optimize=False).fit(X, Y)
    with pytest.raises(
        InvalidInputError, match="kernel: user-defined Warped objects cannot be saved"
    ):
        warped.save(tmp_path / "warped.json")


@pytest.mark.parametrize(
    "kind", [SquaredExponential, Matern12, Matern32, Matern52, RationalQuadratic]
)
def test_a_class_starts_where_the_data_are(kind, tmp_path):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(60, 2)) * [1e3, 1e-3] + [5e3, 0.0]
    y = 1e4 * np.sin(rows[:, 0] / 1e3) + 1e6 * rows[:, 1] + 1e5
    model = GPRegressor(kind).fit(rows, y)
    assert isinstance(model.kernel_, kind)
    assert model.score(rows, y) > 0.95
    assert model.relevance_.shape == (2,)
    model.save(tmp_path / "model.json")
    assert GPRegressor.load(tmp_path / "model.json").kernel is kind
    for wrong in (Linear, Kernel, int):
        with pytest.raises(
            InvalidInputError, match=f"kernel: expected .* got the class {wrong.__name__}"
        ):
            GPRegressor(wrong).fit(rows, y)
