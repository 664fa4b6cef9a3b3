"""Importance by variance, and of groups: against the joint distribution of all rows by brute force,
and errors from samples of rows against what the samples are off by.
"""

import itertools
import tracemalloc

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.special import expit

from gpattr import Explainer, GPClassifier, MultiOutputGPRegressor, plots
from gpattr.exceptions import InvalidIndexError, InvalidInputError, UnsupportedModelError
from gpattr.explainer import importance as module
from gpattr.explainer.importance_measures import Quadratic, expected_variance, folded_mean
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior, MixturePosterior
from gpattr.report import write_report

GROUPS = {"both": ["alpha", "gamma"]}
SUMS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])  # both, beta


def quadratic_moments(mean, C):
    """Mean and standard deviation of AᵀHA for A ~ N(mean, C), by the matrices themselves."""
    n = len(mean)
    H = (np.eye(n) - 1.0 / n) / n
    expected = mean @ H @ mean + np.trace(H @ C)
    variance = 2.0 * np.trace(H @ C @ H @ C) + 4.0 * mean @ H @ C @ H @ mean
    return expected, np.sqrt(variance)


def moments_of_sums(explainer, rows, sums):
    """The same for each column of ``sums``, which adds attributions up."""
    values, joint = explainer(rows).values @ sums, explainer.joint(rows)
    joint = np.einsum("nimj,ia,ja->anm", joint, sums, sums)
    found = [quadratic_moments(values[:, a], C) for a, C in enumerate(joint)]
    return np.array(found).T


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_variance_is_a_quadratic_form_of_the_joint_distribution(explainer, rows, groups):
    sums = np.eye(3) if groups is None else SUMS
    got = explainer.importance(rows, by="variance", groups=groups)
    expected, std = moments_of_sums(explainer, rows, sums)
    np.testing.assert_allclose(got.values, expected, rtol=1e-10)
    np.testing.assert_allclose(got.std, std, rtol=1e-8)
    np.testing.assert_allclose(got.samples.std(axis=0), std, rtol=0.06)
    assert not got.error.any()
    assert not got.std_error.any()
    mean, joint = explainer(rows).values.ravel(), explainer.joint(rows).reshape(18, 18)
    draws = np.random.default_rng(9).multivariate_normal(mean, joint, size=100_000, method="eigh")
    truth = (draws.reshape(-1, 6, 3) @ sums).var(axis=1)
    np.testing.assert_allclose(got.values, truth.mean(axis=0), rtol=0.02)
    for mine, theirs in zip(got.interval(0.8), np.quantile(truth, [0.1, 0.9], axis=0), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=0.15 * std.max())
    between = np.corrcoef(truth.T)[np.triu_indices(sums.shape[1], 1)]
    mine = np.corrcoef(got.samples.T)[np.triu_indices(sums.shape[1], 1)]
    np.testing.assert_allclose(mine, between, atol=0.08)


def test_mean_absolute_attribution_of_groups(explainer, rows):
    got = explainer.importance(rows, groups=GROUPS, n_samples=10_000)
    ex = explainer(rows).group(GROUPS)
    assert got.feature_names == ex.feature_names == ("both", "beta")
    np.testing.assert_allclose(got.values, folded_mean(ex.values, ex.var).mean(axis=0), rtol=1e-10)
    mean, joint = explainer(rows).values.ravel(), explainer.joint(rows).reshape(18, 18)
    draws = np.random.default_rng(9).multivariate_normal(mean, joint, size=100_000, method="eigh")
    truth = np.abs(draws.reshape(-1, 6, 3) @ SUMS).mean(axis=1)
    np.testing.assert_allclose(got.std, truth.std(axis=0), rtol=0.04)


def test_all_features_together_have_the_variance_of_the_predictions(posterior, explainer, rows):
    """Attributions of a row add up to f(x) − f(b), and f(b) is the same for every row."""
    everything = {"everything": ["alpha", "beta", "gamma"]}
    got = explainer.importance(rows, by="variance", groups=everything)
    mean, cov = posterior.predict(rows, return_cov=True)
    expected, std = quadratic_moments(np.asarray(mean), np.asarray(cov))
    np.testing.assert_allclose(got.values, [expected], rtol=1e-8)
    np.testing.assert_allclose(got.std, [std], rtol=1e-6)


def test_a_mixture_has_the_variance_of_each_part(rows):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(12, 3))
    parts = [
        ExactPosterior(SquaredExponential(scale), Z, np.sin(Z[:, 0]), noise=0.1)
        for scale in (1.0, 3.0)
    ]
    got = Explainer(MixturePosterior(parts, [0.25, 0.75]), np.zeros(3)).importance(
        rows, by="variance", n_samples=8000
    )
    each = np.array(
        [moments_of_sums(Explainer(part, np.zeros(3)), rows, np.eye(3)) for part in parts]
    )
    expected = [0.25, 0.75] @ each[:, 0]
    variance = [0.25, 0.75] @ (each[:, 1] ** 2 + (each[:, 0] - expected) ** 2)
    np.testing.assert_allclose(got.values, expected, rtol=1e-10)
    np.testing.assert_allclose(got.std, np.sqrt(variance), rtol=1e-8)
    np.testing.assert_allclose(got.samples.std(axis=0), got.std, rtol=0.05)


def test_moments_from_samples_of_a_finite_population_have_no_bias():
    """The mean of the estimates of all samples is the moment of all rows."""
    rng = np.random.default_rng(0)
    n, s = 7, 5
    root, mean = rng.normal(size=(n, 9)), rng.normal(size=n)
    C = root @ root.T + 3.0
    samples = [np.array(rows) for rows in itertools.combinations(range(n), s)]
    found = [Quadratic.of(mean[rows, None], C[np.ix_(rows, rows)][None], n) for rows in samples]
    expected, std = quadratic_moments(mean, C)
    whole = Quadratic.of(mean[:, None], C[None], n)
    np.testing.assert_allclose(whole.variance, [std**2], rtol=1e-12)
    np.testing.assert_allclose(np.mean([each.variance for each in found]), std**2, rtol=1e-12)
    between = np.mean([each.between for each in found])
    np.testing.assert_allclose(between, (C.sum() - C.trace()) / (n * (n - 1)), rtol=1e-12)
    np.testing.assert_allclose(expected_variance(mean[:, None], C[None]), [expected], rtol=1e-12)


D, N = 3, 500
RNG = np.random.default_rng(4)
TRAIN = RNG.normal(size=(40, D))
MANY = 0.7 * RNG.normal(size=(N, D))
TARGETS = np.sin(TRAIN[:, 0]) + TRAIN[:, 1] * TRAIN[:, 2]
LARGE = Explainer(
    ExactPosterior(SquaredExponential([1.0, 2.0, 3.0]), TRAIN, TARGETS, noise=0.05), np.zeros(D)
)


@pytest.fixture(scope="module")
def of_all_rows():
    """Expectation and standard deviation of both measures over all rows, from their covariance."""
    C = np.einsum("nimi->inm", LARGE.joint(MANY))
    mean = LARGE(MANY, uncertainty="none").values
    generator, sizes = np.random.default_rng(5), np.empty((4000, D))
    for i in range(D):
        root = np.linalg.cholesky(C[i] + 1e-9 * C[i].diagonal().max() * np.eye(N))
        sizes[:, i] = np.abs(mean[:, i] + generator.normal(size=(4000, N)) @ root.T).mean(axis=1)
    variances = np.array([quadratic_moments(mean[:, i], C[i]) for i in range(D)]).T
    folded = folded_mean(mean, np.einsum("dnn->nd", C)).mean(axis=0)
    return {"absolute": (folded, sizes.std(axis=0)), "variance": variances}


@pytest.mark.parametrize("by", ["absolute", "variance"])
def test_stated_errors_are_those_that_samples_of_rows_have(by, of_all_rows, monkeypatch):
    for name, value in {"TOGETHER": 60, "GUIDE": 60, "ROWS": 120}.items():
        monkeypatch.setattr(module, name, value)
    found = [LARGE.importance(MANY, by=by, n_samples=600, random_state=k) for k in range(24)]
    values, std = of_all_rows[by]
    assert {got.n_joint_rows for got in found} == {120}
    off = np.array([(got.std - std) / got.std_error for got in found])
    assert 0.4 < np.sqrt((off**2).mean()) < 1.5
    assert (np.abs(off) < 2.5).mean() > 0.9
    assert np.mean([got.std_error / got.std for got in found]) < 0.2
    np.testing.assert_allclose(np.mean([got.std for got in found], axis=0), std, rtol=0.1)
    if by == "absolute":
        np.testing.assert_allclose(found[0].values, values, rtol=1e-9)
        assert not found[0].error.any()
    else:
        off = np.array([(got.values - values) / got.error for got in found])
        assert 0.4 < np.sqrt((off**2).mean()) < 1.6
        assert (found[0].error < 0.2 * found[0].std).all()


def test_the_error_of_draws_alone(explainer, rows):
    found = [explainer.importance(rows, n_samples=200, random_state=k) for k in range(40)]
    spread = np.std([got.std for got in found], axis=0)
    np.testing.assert_allclose(np.mean([got.std_error for got in found], axis=0), spread, rtol=0.4)
    one = explainer.importance(rows, n_samples=1)
    assert np.isnan(one.std).all()
    assert np.isfinite(explainer.importance(rows, n_samples=1, by="variance").std).all()


def test_what_is_shown(explainer, rows):
    got = explainer.importance(rows, by="variance", groups=GROUPS)
    assert (got.by, got.groups) == ("variance", {"both": ("alpha", "gamma")})
    lines = repr(got).splitlines()
    assert lines[0] == (
        "Importance: expected variance of the attribution over 6 rows ± one standard deviation"
    )
    assert lines[-1] == "  (both = alpha + gamma)"
    assert set(got.to_frame().index) == {"both", "beta"}
    assert explainer.importance(rows).groups is None


def test_probabilities():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 2))
    model = GPClassifier(SquaredExponential([1.5, 2.5], 6.0), optimize=False).fit(Z, Z[:, 0] > 0)
    explainer = Explainer(model, [0.2, -0.1], output="probability", n_draws=3000)
    X = rng.normal(size=(8, 2))
    got = explainer.importance(X, by="variance", n_samples=3000)
    together = explainer.importance(X, by="variance", groups={"all": [0, 1]}, n_samples=3000)
    # All features together: the variance of the probabilities themselves, by draws of f.
    mean, cov = model.posterior_.predict(X, return_cov=True)
    f = rng.multivariate_normal(np.asarray(mean), np.asarray(cov), size=20_000, method="eigh")
    truth = expit(f).var(axis=1)
    assert together.feature_names == ("all",)
    np.testing.assert_allclose(together.values, truth.mean(), rtol=0.05)
    np.testing.assert_allclose(together.std, truth.std(), rtol=0.1)
    assert got.values.shape == (2,)
    assert (np.abs(got.samples.mean(axis=0) - got.values) < 1e-3).all()
    few = explainer.importance(X, groups={"all": [0, 1]}, n_samples=500)
    assert few.measure == "mean |attribution|"


def test_several_outputs_are_asked_one_by_one(rows):
    Y = np.stack([rows[:, 0], rows[:, 1] ** 2], axis=1)
    explainer = Explainer(MultiOutputGPRegressor().fit(rows, Y))
    with pytest.raises(UnsupportedModelError, match="single output"):
        explainer.importance(rows, by="variance")
    first = next(iter(explainer.posterior.outputs))
    assert explainer[first].importance(rows, by="variance", groups={"a": [0, 1]}).values.shape == (
        2,
    )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"by": "size"},
            InvalidInputError,
            "by: expected one of 'absolute', 'variance', got 'size'",
        ),
        ({"by": 2}, InvalidInputError, "by: expected one of"),
        ({"groups": {"a": [0, 1], "b": [1]}}, InvalidInputError, "groups: 'beta' is in 'a' and"),
        ({"groups": {"a": ["delta"]}}, InvalidIndexError, "groups: in 'a', feature: expected"),
        ({"groups": {"a": []}}, InvalidInputError, "groups: expected a list of at least one"),
        ({"groups": [["alpha"]]}, InvalidInputError, "groups: expected a dictionary"),
        ({"groups": {"beta": ["alpha"]}}, InvalidInputError, "groups: 'beta' is also the name"),
    ],
)
def test_bad_input(explainer, rows, options, error, message):
    with pytest.raises(error, match=message):
        explainer.importance(rows, **options)


def test_bad_rows_and_players(posterior, explainer, rows):
    with pytest.raises(InvalidInputError, match='at least 2 rows with by="variance"'):
        explainer.importance(rows[:1], by="variance")
    players = Explainer(posterior, attribution="shapley", players={"pair": [0, 1]})
    with pytest.raises(InvalidInputError, match="groups: this explainer has players"):
        players.importance(rows, groups={"a": [0]})
    assert players.importance(rows, by="variance").feature_names[0] == "pair"


@pytest.mark.slow
def test_hundred_thousand_rows_in_bounded_memory():
    """Two copies of one column of the rows are 1.6 MB; a covariance between all would be 80 GB."""
    X = np.tile(MANY, (200, 1))
    tracemalloc.start()
    try:
        got = LARGE.importance(X, by="variance", groups={"pair": [1, 2]}, n_samples=500)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (got.n_rows, got.n_joint_rows) == (100_000, 1000)
    assert peak < 400e6
    # Copies of rows have the variance over rows that the rows have.
    few = LARGE.importance(MANY, by="variance", groups={"pair": [1, 2]}, n_samples=500)
    np.testing.assert_allclose(got.values, few.values, atol=4 * got.error.max())
    assert (np.abs(got.std - few.std) < 4 * got.std_error).all()


def test_pictures_and_reports_name_the_measure_and_the_groups(explainer, rows, tmp_path):
    got = explainer.importance(rows, by="variance", groups=GROUPS)
    ax = plots.bar(got, ax=Figure(layout="constrained").subplots())
    assert ax.get_xlabel() == (
        "expected variance of the attribution to the prediction, with 95% intervals"
        "\n(both = alpha + gamma)"
    )
    ex = explainer(rows)
    write_report(tmp_path / "report.html", ex.group(GROUPS), importance=got)
    text = (tmp_path / "report.html").read_text("utf-8")
    assert '"measure":"variance of the attribution"' in text.replace('": "', '":"')
    assert "both = alpha + gamma" in text
    with pytest.raises(InvalidInputError, match="importance: expected the same features"):
        write_report(tmp_path / "other.html", ex, importance=got)
