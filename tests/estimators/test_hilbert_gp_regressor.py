"""Hilbert-space regression: against the exact GP, its own kernel, and its own diagnostics."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpattr import Baselines, Explainer, GPRegressor, HilbertGPRegressor
from gpattr.bases import Combined, Hilbert
from gpattr.bases.spectral import log_spectral_density
from gpattr.estimators import BasisWarning
from gpattr.estimators.evidence.hilbert import HilbertEvidence
from gpattr.estimators.hilbert_design import cutoff, reach
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.sums import Sums
from gpattr.exceptions import (
    InvalidInputError,
    NotPositiveDefiniteError,
    TooLargeError,
    UnsupportedModelError,
)
from gpattr.kernels import (
    Linear,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    Select,
    SquaredExponential,
)

RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, size=(150, 2)) * [1.0, 10.0] + [0.0, 50.0]
Y = np.sin(4 * X[:, 0]) * np.cos(0.3 * X[:, 1]) + 0.1 * RNG.normal(size=150) + 5.0
WIDE = RNG.uniform(-1, 1, size=(120, 5))
WIDE_Y = np.sin(3 * WIDE[:, 0]) + WIDE[:, 1] * WIDE[:, 2] + 0.1 * RNG.normal(size=120)
KERNELS = [SquaredExponential, Matern32, Matern52, RationalQuadratic]


@parametrize_with_checks([HilbertGPRegressor(), HilbertGPRegressor(6, 2.0, optimize=False)])
def test_scikit_learn_checks(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("needs SCIPY_ARRAY_API=1 set before SciPy is imported")
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", BasisWarning
        )  # six functions are few for what these checks bring
        check(estimator)


def test_attributions_are_those_of_the_exact_process():
    exact = GPRegressor(hyperparameters="optimal").fit(X, Y)
    options = {"kernel": exact.kernel_, "noise_variance": exact.noise_variance_, "optimize": False}
    model = HilbertGPRegressor(**options).fit(X, Y)
    assert len(model.posterior_.basis) < 800
    for baseline in ("mean", X[3], Baselines(X[:4])):
        one, two = (Explainer(m, baseline)(X[:40]) for m in (model, exact))
        assert np.abs(one.values - two.values).max() <= 1e-4
        assert np.abs(one.std - two.std).max() <= 1e-4
        assert np.abs(one.cov - two.cov).max() <= 1e-4
    joint = [Explainer(m).joint(X[:5]) for m in (model, exact)]
    assert np.abs(joint[0] - joint[1]).max() <= 1e-4
    assert model.diagnostics_[0]["prior_error"] < 1e-5
    assert model.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, abs=0.01)


@pytest.mark.slow
def test_training_finds_what_the_exact_process_finds():
    exact, model = GPRegressor(hyperparameters="optimal").fit(X, Y), HilbertGPRegressor().fit(X, Y)
    assert model.kernel_.lengthscale == pytest.approx(exact.kernel_.lengthscale, rel=0.02)
    assert model.noise_variance_ == pytest.approx(exact.noise_variance_, rel=0.01)
    one, two = (Explainer(m)(X[:40]) for m in (model, exact))
    assert np.abs(one.values - two.values).max() <= 0.01
    for kernel in KERNELS[1:]:
        model, exact = (
            HilbertGPRegressor(kernel=kernel).fit(X, Y),
            GPRegressor(kernel=kernel, hyperparameters="optimal").fit(X, Y),
        )
        assert np.abs(model.predict(X) - exact.predict(X)).max() < 0.15
        assert model.diagnostics_[0]["prior_error"] < 0.05


def test_a_function_that_changes_fast_gets_more_functions():
    """The first guess of the length-scale is ten times too long: the basis grows until it can
    follow.
    """
    x = np.linspace(0, 1, 300)[:, None]
    y = np.sin(60 * x[:, 0])
    model = HilbertGPRegressor(noise_variance=1e-4).fit(x, y)
    assert model.score(x, y) > 0.999
    assert model.diagnostics_[0]["prior_error"] < 0.05
    assert model.diagnostics_[0]["n_basis"][0] > 30


@pytest.mark.parametrize(
    "options",
    [
        {"n_basis": 3},
        {"n_basis": 4, "kernel": SquaredExponential([0.1, 1.0]), "optimize": False},
        {"boundary": 1.01, "kernel": SquaredExponential([2.0, 20.0]), "optimize": False},
    ],
)
def test_too_few_functions_are_noticed(options):
    with pytest.warns(
        BasisWarning,
        match=r"the basis misses \d+% of the prior variance .* n_basis=\d+ .* would suffice",
    ):
        model = HilbertGPRegressor(**options).fit(X, Y)
    entry = model.diagnostics_[0]
    assert entry["prior_error"] > 0.05
    assert max(entry["n_basis_needed"]) > 4 or max(entry["boundary_needed"]) > 1.01
    if model.optimize:
        return  # a basis of three functions finds length-scales that no basis could follow
    better = {key: max(entry[f"{key}_needed"]) for key in ("n_basis", "boundary")}
    fixed = {"kernel": model.kernel_, "noise_variance": model.noise_variance_, "optimize": False}
    assert (
        HilbertGPRegressor(**better, **fixed).fit(X, Y).diagnostics_[0]["prior_error"] < 0.05
    )  # and the advice is good


def test_a_fixed_box_that_bends_the_length_scales_is_noticed():
    """Nearly straight in one feature: the walls are too close for its length-scale, wherever the
    search ends.
    """
    rows = RNG.normal(size=(300, 2))
    y = np.sin(2 * rows[:, 0]) + 0.5 * rows[:, 1] ** 2 + 0.1 * RNG.normal(size=300)
    with pytest.warns(BasisWarning, match="boundary"):
        HilbertGPRegressor(boundary=1.5, n_basis=12).fit(rows, y)


def test_the_box_must_contain_what_is_explained():
    frame = pd.DataFrame(X, columns=["dose", "age"])
    model = HilbertGPRegressor(
        boundary=1.5, kernel=SquaredExponential([0.3, 3.0]), optimize=False
    ).fit(frame, Y)
    with pytest.raises(
        InvalidInputError,
        match=(
            r"X: row 1 has 90 in column 'age', outside of the box .*; fit again with boundary=4\.\d"
            r" or larger"
        ),
    ):
        Explainer(model)(np.array([[0.0, 50.0], [0.0, 90.0]]))
    with pytest.raises(
        InvalidInputError, match=r"baseline: row 0 has 9 in column 'dose', outside of the box"
    ):
        Explainer(model, [9.0, 50.0])(X[:2])
    with pytest.raises(
        InvalidInputError, match=r"X: row 0 has 9 in column 'dose', outside of the box"
    ):
        model.predict([[9.0, 50.0]])
    with pytest.raises(
        InvalidInputError, match=r"X: row 0 has 1.7e\+308 in column 'dose', outside of the box"
    ):
        model.predict([[1.7e308, 50.0]])
    wide = HilbertGPRegressor(boundary=4.3).fit(frame, Y)
    assert np.isfinite(Explainer(wide)(np.array([[0.0, 90.0]])).values).all()
    known = HilbertGPRegressor(domain=([-1.0, 10.0], [1.0, 90.0])).fit(frame, Y)
    assert np.isfinite(Explainer(known)(np.array([[0.0, 90.0], [0.0, 10.0]])).values).all()
    additive = HilbertGPRegressor(
        10, 2.0, kernel=Select(SquaredExponential(4.0), [1]), optimize=False
    ).fit(X, Y)
    with pytest.raises(InvalidInputError, match=r"X: row 0 has 90 in column 1, outside of the box"):
        additive.predict([[0.0, 90.0]])
    for domain, words in (
        ((1.0,), "domain: expected"),
        (([2.0, 3.0], [1.0, 4.0]), "lower <= upper"),
        ("ab", "domain: expected"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            HilbertGPRegressor(domain=domain).fit(X, Y)


def test_additive_structure():
    model = HilbertGPRegressor().fit(WIDE, WIDE_Y)
    assert isinstance(model.posterior_.basis, Combined)
    kernel = Select(SquaredExponential(1.0), [0]) + 0.5 * Select(Matern52([1.0, 1.0]), [1, 2])
    pairs = HilbertGPRegressor(kernel=kernel).fit(WIDE, WIDE_Y)
    assert (
        pairs.log_marginal_likelihood_ > model.log_marginal_likelihood_ + 20
    )  # features 1 and 2 act together
    ex = Explainer(pairs)(WIDE[:5])
    assert not ex.values[:, 3:].any()
    assert not ex.cov[:, 3:].any()
    exact = GPRegressor(pairs.kernel_, noise_variance=pairs.noise_variance_, optimize=False).fit(
        WIDE, WIDE_Y
    )
    assert np.abs(ex.values - Explainer(exact)(WIDE[:5]).values).max() <= 0.02


@pytest.mark.parametrize(
    "kernel", [KERNELS[i](lengthscale=[0.4, 5.0], variance=1.3) for i in range(4)] + [Matern52(2.0)]
)
def test_evidence_and_its_gradient(kernel):
    parts = [Hilbert([0.0, 50.0], [2.0, 21.0], (5, 4))]
    y = Y - Y.mean()
    objective = HilbertEvidence(
        Sums.empty(20, X).plus(parts[0](X), y, in_place=True), parts, None, False
    )
    F, S = parts[0](X), np.exp(log_spectral_density(kernel, parts[0].frequencies)[0]) / (2.0 * 21.0)
    value, gradient = objective(kernel, 0.1)
    assert value == pytest.approx(
        multivariate_normal(np.zeros(150), (F * S) @ F.T + 0.1 * np.eye(150)).logpdf(y), rel=1e-9
    )
    h = 1e-5
    for name, start in trainable(kernel).items():
        if name == "alpha":
            continue
        for i in range(len(start)):
            values = []
            for sign in (1, -1):
                moved = start * np.exp(sign * h * (np.arange(len(start)) == i))
                moved = moved if np.ndim(kernel.get_params()[name]) else float(moved[0])
                values.append(objective(kernel.with_params(**{name: moved}), 0.1)[0])
            assert np.atleast_1d(gradient[name])[i] == pytest.approx(
                (values[0] - values[1]) / (2 * h), rel=1e-5, abs=1e-5
            )


@pytest.mark.parametrize(
    "kernel", [k(0.7, 1.9) for k in KERNELS] + [RationalQuadratic(0.7, 1.9, alpha=3.2)]
)
def test_spectral_density_is_that_of_the_kernel(kernel):
    """k(δ) = ∫ S(ω) cos(ωδ) dω / 2π, by quadrature that knows waves."""

    def density(omega):
        return float(np.exp(log_spectral_density(kernel, np.array([[max(omega, 1e-12)]]))[0][0]))

    for step in (0.2, 1.0):
        # From 0 to ½, where the rational quadratic may be singular, and beyond: cos(ω + ½)δ = cos
        # cos − sin sin.
        cosine, sine = (
            quad(lambda w: density(w + 0.5), 0, np.inf, weight=kind, wvar=step)[0]
            for kind in ("cos", "sin")
        )
        value = quad(density, 0, 0.5, weight="cos", wvar=step)[0]
        value += cosine * np.cos(0.5 * step) - sine * np.sin(0.5 * step)
        assert value / np.pi == pytest.approx(
            float(kernel(np.zeros((1, 1)), np.array([[step]]))[0, 0]), abs=2e-5
        )


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_spectral_density_in_two_and_three_dimensions(kernel, d):
    """On a large box with many functions, Σ S(ω)φ(x)φ(x') is the kernel."""
    k = kernel(lengthscale=np.array([1.0, 1.5, 2.0])[:d], variance=1.9)
    if kernel is RationalQuadratic:
        k = k.with_params(alpha=6.0)  # a smaller one would need a still larger box
    box = Hilbert(np.zeros(d), np.full(d, 7.0), (60, 50, 40)[:d])
    points = RNG.uniform(-1, 1, size=(4, d))
    S = np.exp(log_spectral_density(k, box.frequencies)[0]) / 7.0**d
    tolerance = (
        1e-4 if kernel is SquaredExponential else 0.02
    )  # heavy tails need larger boxes and bases
    assert np.abs((box(points) * S) @ box(points).T - k(points, points)).max() <= tolerance


def test_designs_are_those_of_the_literature():
    """Riutort-Mayol et al. (2023): m ≈ 1.75, 2.65, 3.42 × c S/ℓ for SE, Matérn 5/2, Matérn 3/2."""
    for kernel, number in ((SquaredExponential(), 1.75), (Matern52(), 2.65), (Matern32(), 3.42)):
        assert 2 / np.pi * cutoff(kernel, 0.01) == pytest.approx(number, rel=0.1)
    assert reach(SquaredExponential(), np.exp(-2.0)) == pytest.approx(2.0)
    assert cutoff(RationalQuadratic(alpha=1e6), 0.01) == pytest.approx(
        cutoff(SquaredExponential(), 0.01), rel=1e-3
    )


def test_file(tmp_path):
    frame = pd.DataFrame(WIDE, columns=list("abcde"))
    for model in (
        HilbertGPRegressor(),
        HilbertGPRegressor(
            kernel=Select(Matern32(), [1, 0]), mean="zero", n_basis=15, boundary=3.0
        ),
    ):
        model.fit(frame, WIDE_Y)
        model.save(tmp_path / "m.json")
        loaded = HilbertGPRegressor.load(tmp_path / "m.json")
        assert Explainer(model)(frame.head(3)) == Explainer(loaded)(frame.head(3))
        assert loaded.diagnostics_ == model.diagnostics_
        assert loaded.log_marginal_likelihood_ == model.log_marginal_likelihood_


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_basis": 0}, InvalidInputError, "n_basis: expected an integer of 1 or more, got 0"),
        ({"n_basis": 2.5}, InvalidInputError, "n_basis: expected an integer"),
        ({"n_basis": [3, 3, 3]}, InvalidInputError, "n_basis: expected one number or 2"),
        ({"boundary": 1.0}, InvalidInputError, "boundary: expected factors larger than 1, got 1.0"),
        ({"boundary": np.nan}, InvalidInputError, "boundary: expected factors larger than 1"),
        (
            {"kernel": Linear()},
            UnsupportedModelError,
            "kernel: expected one with a spectral density",
        ),
        ({"kernel": Matern12()}, UnsupportedModelError, "kernel: Matern12"),
        (
            {"kernel": SquaredExponential() * Matern52()},
            UnsupportedModelError,
            "kernel: .* got Product",
        ),
        ({"mean": "linear"}, InvalidInputError, "mean: expected"),
        ({"noise_variance": 0}, InvalidInputError, "noise_variance"),
        (
            {"kernel": "rbf"},
            InvalidInputError,
            "kernel: expected a gpattr kernel, a radial kernel class or None, got 'rbf'",
        ),
        (
            {"kernel": Linear},
            UnsupportedModelError,
            "kernel: expected one with a spectral density .*, got Linear",
        ),
        (
            {"kernel": RationalQuadratic(alpha=500.0)},
            UnsupportedModelError,
            "use a SquaredExponential",
        ),
        ({"optimize": "all"}, InvalidInputError, "optimize: expected True or False, got 'all'"),
        ({"bounds": [1, 2]}, InvalidInputError, "bounds: expected a dictionary"),
        (
            {"n_restarts": -1},
            InvalidInputError,
            "n_restarts: expected an integer of 0 to 1000000, got -1",
        ),
        ({"n_basis": 10**6}, TooLargeError, "n_basis: the sums over rows"),
        (
            {"kernel": SquaredExponential([2.0, 20.0]), "optimize": False, "noise_variance": 1e-18},
            NotPositiveDefiniteError,
            "noise_variance: with 1e-18 float64 cannot distinguish the weights",
        ),
    ],
)
def test_bad_options(options, error, words):
    with pytest.raises(error, match=words):
        HilbertGPRegressor(**options).fit(X, Y)


def test_wide_kernels_are_refused():
    with pytest.raises(
        UnsupportedModelError, match=r"kernel: expected terms of at most 3 features, got one of 5"
    ):
        HilbertGPRegressor(kernel=SquaredExponential()).fit(WIDE, WIDE_Y)


@pytest.mark.parametrize("scale", [1e-150, 1e-60, 1e60, 1e100])
def test_units_change_nothing(scale):
    kernel = SquaredExponential([0.4, 4.0])
    one = Explainer(
        HilbertGPRegressor(8, 2.0, kernel=kernel, optimize=False, noise_variance=0.01).fit(X, Y)
    )(X[:3])
    other = SquaredExponential(scale * np.array([0.4, 4.0]))
    two = Explainer(
        HilbertGPRegressor(8, 2.0, kernel=other, optimize=False, noise_variance=0.01).fit(
            X * scale, Y
        )
    )(X[:3] * scale)
    assert np.abs(one.values - two.values).max() <= 1e-9
    assert np.abs(one.cov - two.cov).max() <= 1e-9


def test_heavy_tails():
    with pytest.warns(BasisWarning):
        model = HilbertGPRegressor(
            kernel=RationalQuadratic([0.4, 4.0], alpha=0.2), optimize=False
        ).fit(X, Y)
    assert np.isfinite(Explainer(model)(X[:3]).cov).all()


def test_options_changed_later_do_not_leak(tmp_path):
    model = HilbertGPRegressor().fit(X, Y + 100)
    before = model.predict(X)
    model.set_params(mean="zero").save(tmp_path / "m.json")
    assert np.array_equal(HilbertGPRegressor.load(tmp_path / "m.json").predict(X), before)
    with pytest.raises(InvalidInputError):
        model.fit(WIDE[:1], WIDE_Y[:1])
    assert model.n_features_in_ == 2
    assert np.array_equal(model.predict(X), before)


def test_awkward_data():
    rows = np.column_stack([X[:, 0], np.full(150, 3.0)])
    model = HilbertGPRegressor().fit(rows, Y)
    ex = Explainer(model)(rows[:3])
    assert np.isfinite(ex.values).all()
    assert not ex.values[:, 1].any()
    assert HilbertGPRegressor().fit(X * 1e-9, Y * 1e9).score(X * 1e-9, Y * 1e9) > 0.9
    assert HilbertGPRegressor().fit(X + 1e6, Y).score(X + 1e6, Y) > 0.9
    with pytest.raises(InvalidInputError, match="n_samples=1"):
        HilbertGPRegressor().fit(X[:1], Y[:1])
    with pytest.raises(InvalidInputError, match="y: expected targets that differ"):
        HilbertGPRegressor().fit(X, np.ones(150))


def test_progress(capsys):
    HilbertGPRegressor(verbose=1).fit(X, Y)
    assert "log marginal likelihood" in capsys.readouterr().err
