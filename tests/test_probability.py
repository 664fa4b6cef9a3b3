"""Attributions of class probabilities: against differences of predicted probabilities, and draws of
the latent function.
"""

import tracemalloc

import mpmath
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit
from scipy.stats import norm

import gpattr
from gpattr import (
    Baselines,
    Explainer,
    Explanation,
    GPClassifier,
    GPRegressor,
    MultiOutputExplanation,
)
from gpattr.distributions import Draws
from gpattr.exceptions import (
    InvalidInputError,
    MissingUncertaintyError,
    ToleranceError,
    UnsupportedModelError,
)
from gpattr.explainer.probability import panel_rule
from gpattr.kernels import Matern12, Matern32, Matern52, SquaredExponential
from gpattr.means import Constant, Linear
from gpattr.posteriors import ExactPosterior, LaplacePosterior, MixturePosterior
from gpattr.posteriors.jets import increments, jets, slopes
from gpattr.special.logistic import expected_probability, expected_slopes
from gpattr.special.quadrature import gauss_legendre

RNG = np.random.default_rng(8)
Z = RNG.normal(size=(60, 3))
LABELS = (Z[:, 0] + Z[:, 1] ** 2 + 0.3 * RNG.normal(size=60) > 0.7).astype(int)
POSTERIORS = {
    "smooth": LaplacePosterior(SquaredExponential([1.0, 1.5, 3.0], 9.0), Z, LABELS),
    "rough": LaplacePosterior(
        Matern32([2.0, 1.5, 3.0], 4.0), Z, LABELS, mean=Linear([0.1, 0.0, -0.3])
    ),
    "mixture": MixturePosterior(
        [
            LaplacePosterior(SquaredExponential(1.0, 20.0), Z, LABELS),
            LaplacePosterior(Matern52(2.0, 2.0), Z, LABELS, mean=Constant(-0.5)),
        ],
        [0.3, 0.7],
    ),
}
X, b = RNG.normal(size=(5, 3)), np.array([0.3, -0.2, 0.1])
X[0, 0] = b[0]


def predicted(posterior, points):
    parts = (
        (weight, part.predict(points, return_std=True)) for weight, part in posterior.components
    )
    return sum(weight * expected_probability(*both) for weight, both in parts)


@pytest.mark.slow
def test_expected_slopes_to_the_last_digits():
    cases = [
        (m, s)
        for m in (-30.0, -3.0, 0.0, 0.7, 12.0)
        for s in (0.0, 1e-8, 0.3, 0.999, 1.0, 1.001, 4.0, 30.0)
    ]
    first, second = expected_slopes(*np.array(cases).T)
    with mpmath.workdps(30):
        for (m, s), *got in zip(cases, first, second, strict=True):
            sigma = lambda f: 1 / (1 + mpmath.exp(-f))  # noqa: E731
            rates = (
                lambda f: sigma(f) * sigma(-f),
                lambda f: sigma(f) * sigma(-f) * (1 - 2 * sigma(f)),
            )
            for rate, value in zip(rates, got, strict=True):
                middle = -mpmath.mpf(m) / s if s else 0
                points = sorted(
                    {-12, -6, -3, 0, 3, 6, 12}
                    | {
                        min(max(middle + k / (s or 1), -12), 12)
                        for k in (-40, -10, -3, 0, 3, 10, 40)
                    }
                )
                truth = (
                    mpmath.quad(lambda z, r=rate: mpmath.npdf(z) * r(m + s * z), points)
                    if s
                    else rate(mpmath.mpf(m))
                )
                assert value == pytest.approx(float(truth), rel=1e-11, abs=1e-17)


@pytest.mark.parametrize("name", ["smooth", "rough"])
def test_values_and_gradients_together(name):
    """Against differences of the posterior's own joint predictive distribution."""
    posterior, step = POSTERIORS[name], 1e-4
    points = X[:2] + 0.5
    moves = np.concatenate([np.zeros((1, 3)), step * np.eye(3), -step * np.eye(3)])
    mean, cov = posterior.predict((points[:, None] + moves).reshape(-1, 3), return_cov=True)
    D = np.zeros((4, 7))
    D[0, 0] = 1.0
    D[[1, 2, 3], [1, 2, 3]], D[[1, 2, 3], [4, 5, 6]] = 0.5 / step, -0.5 / step
    both = np.kron(np.eye(2), D)
    got, C = jets(posterior, points[None])
    np.testing.assert_allclose(got[0].ravel(), both @ mean, atol=1e-6)
    np.testing.assert_allclose(
        C[0], both @ cov @ both.T, atol=2e-4 if name == "smooth" else 2e-3
    )  # a rough kernel has kinks
    value, var, gradient, shared = slopes(posterior, points)
    np.testing.assert_allclose(np.column_stack([value, gradient]), got[0], rtol=1e-11, atol=1e-12)
    for n in range(2):
        block = C[0].reshape(2, 4, 2, 4)[n, :, n]
        np.testing.assert_allclose([var[n], *shared[n]], block[0], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["smooth", "rough"])
def test_increments_add_up_to_the_joint_attributions(name):
    """Against closed forms: the sums over panels are integrated gradients, jointly with f(b)."""
    posterior, starts = POSTERIORS[name], np.stack([b, b + 0.4])
    stop = np.stack([X[1], X[1]])
    G = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    K = 64
    mean, cov = increments(posterior, starts[None], stop[None], G, *panel_rule(K))
    add = np.zeros((2 * (1 + 2 * K), 6))
    for j in range(2):
        first = j * (1 + 2 * K)
        add[first, 3 * j] = 1.0
        for i in range(2):
            add[first + 1 + i : first + 1 + 2 * K : 2, 3 * j + 1 + i] = 1.0
    explainers = [Explainer(posterior, start)(X[1:2]) for start in starts]
    at_start, C = posterior.predict(starts, return_cov=True)
    # Gradients of Matérn 3/2 are rough: their integrals over a panel are known to its width.
    tolerance = 1e-9 if name == "smooth" else 0.01
    total, both = mean.ravel() @ add, add.T @ cov[0] @ add
    for j, ex in enumerate(explainers):
        some = slice(3 * j + 1, 3 * j + 3)
        np.testing.assert_allclose(total[3 * j], at_start[j], atol=1e-10)
        np.testing.assert_allclose(total[some], ex.values[0] @ G, atol=tolerance)
        np.testing.assert_allclose(both[some, some], G.T @ ex.cov[0] @ G, atol=tolerance)
    np.testing.assert_allclose(both[::3, ::3], C, atol=1e-10)
    # What all features add leads from f(b) to f(x), the same on both paths.
    ends = np.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]) @ both
    reached = ends @ np.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]).T
    std = posterior.predict(X[1:2], return_std=True)[1][0]
    np.testing.assert_allclose(reached, std**2, atol=10 * tolerance)


def test_panels_are_narrow_enough_for_rough_functions():
    """Of a tenth of the size σ is a line: the spread is that of the latent attributions."""
    posterior = LaplacePosterior(Matern32([2.0, 1.5, 3.0], 0.01), Z, LABELS)
    latent = Explainer(posterior, b)(X[1:])
    ex = Explainer(posterior, b, output="probability", n_draws=20000)(X[1:])
    np.testing.assert_allclose(ex.std, 0.25 * latent.std, rtol=0.035)


@pytest.mark.parametrize("name", POSTERIORS)
def test_each_draw_is_complete(name):
    """Draws of one path and of two halves of it, with the same numbers, end at the same places:
    the sums over panels are differences of probabilities, within [−1, 1].
    """
    ex = Explainer(POSTERIORS[name], b, output="probability", n_draws=500)(3.0 * X)
    total = ex.draws.sum(axis=2)
    assert np.abs(total).max() <= 1.0 + 1e-8
    gain = ex.predictions - ex.base_values
    assert (np.abs(total.mean(axis=0) - gain) < 5 * total.std(axis=0) / 500**0.5 + 1e-8).all()


def test_paths_of_a_hundred_length_scales():
    """Means against 4000 steps of the model's own mean probability, draws against the spread of
    differences of probabilities at both ends.
    """
    line = np.linspace(0.0, 50.0, 60)[:, None] + np.array([0.0, 0.5])
    labels = np.sin(0.7 * line[:, 0]) > 0
    posterior = LaplacePosterior(SquaredExponential([1.0, 1.0], 9.0), line, labels)
    start, x = np.array([-5.0, -10.0]), np.array([[60.0, 65.0]])
    ex = Explainer(posterior, start, output="probability", n_draws=2000)(x)
    assert posterior.path_lengths(start[None], x)[0] > 98
    edges = start + np.linspace(0.0, 1.0, 4001)[:, None] * (x[0] - start)
    middle, step = 0.5 * (edges[1:] + edges[:-1]), 1e-4
    brute = []
    for i in range(2):
        move = step * np.eye(2)[i]
        slope = (predicted(posterior, middle + move) - predicted(posterior, middle - move)) / (
            2 * step
        )
        brute.append((x[0] - start)[i] * slope.mean())
    np.testing.assert_allclose(ex.values[0], brute, atol=1e-6)
    assert np.abs(ex.delta).max() < 1e-8
    both, C = posterior.predict(np.stack([start, x[0]]), return_cov=True)
    drawn = np.random.default_rng(0).multivariate_normal(both, C, 20000)
    gain = expit(drawn[:, 1]) - expit(drawn[:, 0])
    total = ex.draws[:, 0].sum(axis=1)
    assert total.std() == pytest.approx(gain.std(), rel=0.05)
    np.testing.assert_allclose(
        np.quantile(total, [0.1, 0.5, 0.9]), np.quantile(gain, [0.1, 0.5, 0.9]), atol=0.05
    )
    assert (ex.draw_error < 0.03 * ex.std.max(axis=1)).all()


@pytest.mark.parametrize("name", POSTERIORS)
def test_means_are_integrated_gradients_of_the_predicted_probability(name):
    posterior = POSTERIORS[name]
    ex = Explainer(posterior, b, output="probability")(X, uncertainty="none")
    t, w = gauss_legendre(16, 8)
    points, step = (b + t[:, None, None] * (X - b)).reshape(-1, 3), 1e-5
    for i in range(3):
        move = step * np.eye(3)[i]
        slope = (predicted(posterior, points + move) - predicted(posterior, points - move)) / (
            2 * step
        )
        np.testing.assert_allclose(
            ex.values[:, i], (X - b)[:, i] * (w @ slope.reshape(len(t), -1)), atol=2e-9
        )
    np.testing.assert_array_equal(ex.predictions, predicted(posterior, X))
    assert (np.abs(ex.values.sum(axis=1) - (ex.predictions - ex.base_values)) <= ex.error).all()
    assert (ex.error < 1e-6).all()
    assert ex.method == "quadrature through the logistic link"
    np.testing.assert_array_equal(ex.values[0, 0], 0.0)


@pytest.mark.parametrize("name", ["smooth", pytest.param("rough", marks=pytest.mark.slow)])
def test_brute_force_over_draws_of_the_latent_function(name):
    """Functions drawn on a fine grid around the path; each is differentiated by differences, sent
    through σ and integrated.
    """
    posterior, x, count, step = POSTERIORS[name], X[2], 4000, 2e-3
    t, w = gauss_legendre(24)
    moves = np.concatenate([step * np.eye(3), -step * np.eye(3)])
    path = b + t[:, None] * (x - b)
    points = np.concatenate([(path[:, None] + moves).reshape(-1, 3), path, b[None], x[None]])
    mean, cov = posterior.predict(points, return_cov=True)
    values, vectors = np.linalg.eigh(cov)
    normal = np.random.default_rng(0).standard_normal((len(mean), count))
    f = mean[:, None] + vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * normal)
    around, middle = f[: 24 * 6].reshape(24, 2, 3, count), f[24 * 6 : 24 * 7]
    rate = expit(middle) * expit(-middle)
    brute = np.einsum("t,ts,tis,i->si", w, rate, (around[:, 0] - around[:, 1]) / (2 * step), x - b)
    gain = expit(f[-1]) - expit(f[-2])
    ex = Explainer(posterior, b, output="probability", n_draws=4000, random_state=1)(x[None])
    assert gain.mean() == pytest.approx(
        ex.predictions[0] - ex.base_values[0], abs=5 * gain.std() / count**0.5
    )
    error = brute.std(axis=0) / count**0.5
    np.testing.assert_allclose(brute.mean(axis=0), ex.values[0], rtol=0, atol=5 * error.max())
    np.testing.assert_allclose(brute.std(axis=0), ex.std[0], rtol=0.1)
    np.testing.assert_allclose(np.corrcoef(brute.T), np.corrcoef(ex.draws[:, 0].T), atol=0.08)
    for level in (0.5, 0.9):
        tails = 0.5 * (1 - level), 0.5 * (1 + level)
        ends, ends_error = ex.interval(level), ex.interval_error(level)
        for tail, end, its_error in zip(tails, ends, ends_error, strict=True):
            np.testing.assert_allclose(
                end[0], np.quantile(brute, tail, axis=0), atol=5 * np.sqrt(2) * its_error.max()
            )
    assert np.abs(ex.draws.mean(axis=0) - ex.values).max() < 5 * ex.standard_error().max()


@pytest.mark.parametrize(
    "name", ["smooth", pytest.param("rough", marks=pytest.mark.slow), "mixture"]
)
def test_draws_are_complete_and_their_mean_is_the_integral(name):
    ex = Explainer(POSTERIORS[name], b, output="probability", n_draws=1000)(X)
    assert isinstance(ex.distribution, Draws)
    assert ex.draws.shape == (1000, 5, 3)
    moving = ex.std > 0
    assert (
        np.abs(ex.draws.mean(axis=0) - ex.values)[moving] / ex.standard_error()[moving] < 5
    ).all()
    assert (ex.draw_error <= 0.03 * ex.std.max(axis=1)).all()
    assert (np.abs(ex.draws.sum(axis=2)) <= 1 + 1e-12).all()
    np.testing.assert_array_equal(ex.draws[:, 0, 0], 0.0)
    assert ex.prob_positive()[0, 0] == 0.5


def test_small_latent_functions_are_scaled_by_a_quarter():
    """Where f is nearly 0, σ is a line of slope ¼, and everything is Gaussian."""
    posterior = LaplacePosterior(SquaredExponential([1.0, 1.5, 3.0], 1e-6), Z, LABELS)
    latent, ex = (
        Explainer(posterior, b)(X),
        Explainer(posterior, b, output="probability", n_draws=20000)(X),
    )
    np.testing.assert_allclose(ex.values, 0.25 * latent.values, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(ex.std, 0.25 * latent.std, rtol=0.03)
    np.testing.assert_allclose(ex.cov, latent.cov / 16, atol=0.05 * latent.cov.max() / 16)
    lower, upper = ex.interval(0.9)
    expected = 0.25 * latent.interval(0.9)[1]
    np.testing.assert_allclose(upper, expected, atol=0.06 * latent.std.max())
    assert (lower <= ex.values).all()
    np.testing.assert_allclose(ex.prob_positive(), latent.prob_positive(), atol=0.02)
    np.testing.assert_allclose(ex.prob_greater(1, 2), latent.prob_greater(1, 2), atol=0.02)
    np.testing.assert_allclose(ex.rank_probabilities(), latent.rank_probabilities(), atol=0.03)
    for end in ex.interval_error(0.9):  # √(q(1 − q)/S) / density, of a normal
        expected = np.sqrt(0.05 * 0.95 / 20000) / norm.pdf(norm.ppf(0.05)) * ex.std[1:]
        np.testing.assert_allclose(end[1:], expected, rtol=0.4)


def test_baselines_of_every_kind():
    posterior = POSTERIORS["smooth"]
    points, weights = RNG.normal(size=(3, 3)), np.array([0.5, 0.3, 0.2])
    averaged = Explainer(posterior, Baselines(points, weights), output="probability", n_draws=2000)(
        X
    )
    single = [
        Explainer(posterior, point, output="probability")(X, uncertainty="none") for point in points
    ]
    np.testing.assert_allclose(
        averaged.values, np.tensordot(weights, [ex.values for ex in single], axes=1), atol=1e-8
    )
    assert (np.abs(averaged.delta) <= averaged.error).all()
    z = (averaged.draws.mean(axis=0) - averaged.values) / averaged.standard_error()
    assert np.abs(z).max() < 5
    assert (averaged.draw_error < 0.01).all()
    own = RNG.normal(size=X.shape)
    explainer = Explainer(posterior, output="probability")
    forth, back = explainer(X, own), explainer(own, X)
    np.testing.assert_allclose(forth.values, -back.values, atol=1e-8)
    np.testing.assert_allclose(forth.std, back.std, rtol=0.15, atol=1e-3)
    here = Explainer(posterior, X[1], output="probability")(X[1:2])
    np.testing.assert_array_equal(here.values, 0.0)
    np.testing.assert_array_equal(here.draws, 0.0)


def test_rows_do_not_depend_on_others_and_seeds_repeat():
    explainer = Explainer(
        POSTERIORS["mixture"], b, output="probability", n_draws=50, random_state=4
    )
    ex = explainer(X)
    np.testing.assert_allclose(explainer(X[3:4]).draws, ex.draws[:, 3:4], atol=1e-8)
    assert explainer(X) == ex
    parts = list(explainer.batches(X, batch_size=2))
    np.testing.assert_allclose(
        np.concatenate([part.draws for part in parts], axis=1), ex.draws, atol=1e-8
    )
    other = Explainer(POSTERIORS["mixture"], b, output="probability", n_draws=50, random_state=5)(X)
    assert not np.array_equal(other.draws, ex.draws)
    with gpattr.memory_budget(working=1e5):
        np.testing.assert_allclose(explainer(X).draws, ex.draws, atol=1e-8)


def test_classifiers_in_their_own_words(tmp_path):
    frame = pd.DataFrame(Z, columns=["age", "dose", "rate"])
    model = GPClassifier().fit(frame, np.array(["well", "ill"])[LABELS])
    ex = Explainer(model, output="probability")(frame[["rate", "age", "dose"]][:4])
    np.testing.assert_allclose(ex.predictions, model.predict_proba(frame[:4])[:, 1], rtol=1e-14)
    assert ex.feature_names == ("age", "dose", "rate")
    assert repr(ex).startswith(
        "Explanation of the probability of 'well' against 'ill': 4 rows × 3 features"
    )
    assert ex.quantity == "probability of 'well' against 'ill'"
    assert repr(ex[0]).splitlines()[2].startswith("row 0: probability 0.")
    assert Explainer(model)(frame[:4]).quantity == "log odds of 'well' against 'ill'"
    assert "spread from 1000 draws, good to" in repr(ex)
    assert "1000 draws" in ex._repr_html_()
    table = ex.to_frame()
    np.testing.assert_array_equal(table.standard_error, ex.standard_error().ravel())
    np.testing.assert_array_equal(table.lower, ex.interval()[0].ravel())
    grouped = ex.group({"both": ["age", "rate"]})
    np.testing.assert_allclose(grouped.values[:, 0], ex.values[:, [0, 2]].sum(axis=1))
    np.testing.assert_allclose(grouped.draws[:, :, 0], ex.draws[:, :, [0, 2]].sum(axis=2))
    part = ex[[2, 0], ["rate", "age"]]
    np.testing.assert_array_equal(part.draws, ex.draws[:, [2, 0]][:, :, [2, 0]])
    np.testing.assert_array_equal(part.draw_error, ex.draw_error[[2, 0]])
    ex.save(tmp_path / "e.json")
    assert Explanation.load(tmp_path / "e.json") == ex
    assert ex != Explainer(model)(frame[:4])
    np.testing.assert_array_equal(ex.to_shap().error_std, ex.std)
    assert ex.to_xarray().draws.dims == ("draw", "row", "feature")
    assert ex.sample(7, random_state=0).shape == (7, 4, 3)
    lean = Explainer(model, output="probability")(frame[:4], uncertainty="std")
    assert lean.cov is None
    np.testing.assert_array_equal(lean.draws, ex.draws)
    np.testing.assert_allclose(lean.var, ex.var, rtol=1e-12)
    with pytest.raises(MissingUncertaintyError):
        lean.group({"both": ["age", "rate"]})
    with pytest.raises(UnsupportedModelError, match="known by draws"):
        ex.share_between()
    again = gpattr.explain(model, frame[:4], output="probability", random_state=0)
    assert again == ex


def test_several_classes(tmp_path):
    labels = np.digitize(Z[:, 0], [-0.5, 0.5])
    model = GPClassifier(SquaredExponential([1.0, 3.0, 3.0], 9.0), optimize=False).fit(Z, labels)
    explainer = Explainer(model, output="probability", n_draws=100)
    ex = explainer(X)
    assert ex.output_names == ("0", "1", "2")
    against = ex.predictions  # each class against all others
    np.testing.assert_allclose(
        against / against.sum(axis=1, keepdims=True), model.predict_proba(X), rtol=1e-13
    )
    assert (np.abs(ex.delta) <= ex.error).all()
    assert ex["1"] == explainer["1"](X)
    assert ex["1"].quantity == "probability of 1 against the rest"
    ex.save(tmp_path / "e.json")
    assert MultiOutputExplanation.load(tmp_path / "e.json") == ex


def test_tensors():
    posterior = LaplacePosterior(
        SquaredExponential([1.0, 1.5, 3.0], 9.0), torch.tensor(Z), torch.tensor(LABELS)
    )
    one = Explainer(posterior, b, output="probability", n_draws=20)(torch.tensor(X))
    two = Explainer(POSTERIORS["smooth"], b, output="probability", n_draws=20)(X)
    np.testing.assert_allclose(one.values, two.values, atol=1e-9)
    np.testing.assert_allclose(one.draws, two.draws, atol=1e-4)


@pytest.mark.slow
def test_sure_and_steep_classifiers():
    """A latent function that crosses ±40 within a fraction of the path; one that knows nothing;
    fifty features.
    """
    line = np.linspace(-1, 1, 41)[:, None]
    steep = LaplacePosterior(SquaredExponential(0.5, 1e4), line, line[:, 0] > 0)
    explainer = Explainer(steep, [-3.0], output="probability", n_draws=50)
    ex = explainer([[3.0], [0.01], [1.0]], uncertainty="none")
    assert (np.abs(ex.values[:, 0] - (ex.predictions - ex.base_values)) <= ex.error).all()
    assert (ex.error < 1e-6).all()
    far = Explainer(POSTERIORS["smooth"], np.full(3, 1e4), output="probability", n_draws=50)(
        np.full((1, 3), 1e4 + 1.0)
    )
    np.testing.assert_allclose(far.values, 0.0, atol=1e-12)
    assert (far.std > 0.01).all()
    wide = RNG.normal(size=(40, 50))
    posterior = LaplacePosterior(SquaredExponential(5.0, 4.0), wide, wide[:, 0] > 0)
    ex = Explainer(posterior, np.zeros(50), output="probability", n_draws=20)(wide[:1])
    assert (np.abs(ex.delta) <= ex.error).all()


@pytest.mark.slow
def test_paths_that_pass_the_data_far_away():
    """Both ends know nothing, and so do nearly all points between them; what happens at the data
    must not be missed.
    """
    ends = np.array([-100.0, -99.7, -100.1]), np.array([300.0, 300.2, 301.0])
    posterior = POSTERIORS["smooth"]
    explainer = Explainer(posterior, ends[0], output="probability")
    ex = explainer(ends[1][None], uncertainty="none")
    near = (0.25 + np.array([-1.0, 1.0]) * 0.05)[:, None] * (ends[1] - ends[0]) + ends[
        0
    ]  # the part where there are data
    part = Explainer(posterior, near[0], output="probability")(near[1:], uncertainty="none")
    np.testing.assert_allclose(ex.values, part.values, atol=1e-8)
    assert np.abs(ex.values).max() > 0.01
    with pytest.raises(ToleranceError, match="draws of the probability of row 0"):
        Explainer(posterior, Baselines(ends[0] + np.eye(3)), output="probability")(ends[1][None])
    with pytest.raises(ToleranceError, match=r"Its path is 1.*e\+06 length-scales long"):
        explainer(np.full((1, 3), 1e6), uncertainty="none")


@pytest.mark.slow
def test_rows_that_cannot_be_explained_are_marked(tmp_path):
    posterior = POSTERIORS["smooth"]
    near = X[1:4]
    rows = np.stack([near[0], np.full(3, 200.0), near[1], np.full(3, 1e6), near[2]])
    options = {"output": "probability", "n_draws": 50}
    start = Baselines(b + np.eye(3))
    with pytest.raises(ToleranceError):
        Explainer(posterior, start, **options)(rows)
    ex = Explainer(posterior, start, errors="mark", **options)(rows)
    np.testing.assert_array_equal(ex.marked, [False, True, False, True, False])
    np.testing.assert_allclose(
        ex[[0, 2, 4]].draws, Explainer(posterior, start, **options)(near).draws, atol=1e-8
    )
    means = Explainer(posterior, start, **options)(rows[[1]], uncertainty="none")
    np.testing.assert_array_equal(ex.values[1], means.values[0])
    assert np.isnan(ex.std[[1, 3]]).all()
    assert np.isnan(ex.values[3]).all()
    assert np.isinf(ex.error[3])
    np.testing.assert_array_equal(ex.data, rows)
    ex.save(tmp_path / "e.json")
    assert Explanation.load(tmp_path / "e.json") == ex
    assert "5 rows" in repr(ex)
    assert ex.to_frame()["std"].isna().sum() == 6
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    for size in (1, 2):  # also where nothing at all in a batch can be explained
        explainer = Explainer(posterior, start, errors="mark", **options)
        whole = Explanation.concatenate(explainer.batches(table, batch_size=size))
        np.testing.assert_array_equal(whole.marked, ex.marked)
        np.testing.assert_array_equal(np.isnan(whole.std), np.isnan(ex.std))
        np.testing.assert_allclose(whole.values, ex.values, atol=1e-12)
    with pytest.raises(InvalidInputError, match="errors: expected"):
        Explainer(posterior, start, errors="ignore")


@pytest.mark.slow
def test_memory_of_long_paths_is_bounded():
    """A sentinel in one cell, far away, takes neither gigabytes nor minutes."""
    tracemalloc.start()
    try:
        Explainer(POSTERIORS["smooth"], b, errors="mark", output="probability")(
            np.full((1, 3), -400.0), uncertainty="none"
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3e8


def test_rows_at_and_near_the_baseline_are_quick_and_exact():
    posterior = POSTERIORS["smooth"]
    latent = Explainer(posterior, b)(b + 1e-6 * (X[1:2] - b))
    ex = Explainer(posterior, b, output="probability", n_draws=4000)(b + 1e-6 * (X[1:2] - b))
    rate = (
        0.5 * ex.std / latent.std
    )  # E[σ'²]^½ at b, the same for all features but for Monte-Carlo error
    np.testing.assert_allclose(rate, rate.mean(), rtol=0.1)
    assert (ex.draw_error < 1e-15).all()


def test_components_with_few_draws():
    """A component of a mixture that gets one draw, or none, has no standard deviation itself."""
    parts = [part for _, part in POSTERIORS["mixture"].components]
    mixture = MixturePosterior(parts, [0.98, 0.02])
    ex = Explainer(mixture, b, output="probability", n_draws=50, random_state=0)(X)
    assert (ex.draw_error < 0.01).all()
    assert Explainer(mixture, b, output="probability", n_draws=2)(X).draws.shape == (2, 5, 3)


def test_many_draws_in_chunks():
    explainer = Explainer(
        POSTERIORS["smooth"], b, output="probability", n_draws=2500, random_state=3
    )
    ex = explainer(X[1:2])
    assert (np.abs(ex.draws.mean(axis=0) - ex.values) < 5 * ex.standard_error()).all()
    assert len(np.unique(ex.draws[:, 0, 0])) == 2500


def test_bad_input_is_named():
    posterior = POSTERIORS["smooth"]
    for options, words in (
        ({"output": "odds"}, "output: expected one of 'latent', 'probability', got 'odds'"),
        ({"output": "probability", "n_draws": 0}, "n_draws: expected an integer of 1 or more"),
        ({"output": "probability", "n_draws": 1}, "n_draws: expected at least 2, got 1"),
        ({"output": "probability", "n_draws": 2.5}, "n_draws: expected an integer"),
        (
            {"output": "probability", "method": "exact"},
            'method: output="probability" supports only method="auto", got',
        ),
    ):
        with pytest.raises(InvalidInputError, match=words):
            Explainer(posterior, b, **options)
    with pytest.raises(UnsupportedModelError, match="Matern12 has no gradients"):
        Explainer(LaplacePosterior(Matern12(), Z, LABELS), b, output="probability")
    for model in (
        GPRegressor().fit(Z, LABELS + Z[:, 0]),
        ExactPosterior(SquaredExponential(), Z, LABELS, noise=0.1),
    ):
        with pytest.raises(UnsupportedModelError, match='output: "probability" needs a classifier'):
            Explainer(model, b, output="probability")
    with pytest.raises(
        InvalidInputError, match="posteriors: expected the same link, got logistic and None"
    ):
        MixturePosterior([posterior, ExactPosterior(SquaredExponential(), Z, LABELS, noise=0.1)])
    explainer = Explainer(posterior, b, output="probability")
    for question in (explainer.joint, lambda X: explainer.training_contributions(X[0], 0)):
        with pytest.raises(UnsupportedModelError, match='output="latent"'):
            question(X)
    with pytest.raises(InvalidInputError, match="uncertainty: expected one of"):
        explainer(X, uncertainty="all")
    with pytest.raises(InvalidInputError, match="random_state"):
        Explainer(posterior, b, output="probability", random_state="seed")(X)
    with pytest.raises(
        ToleranceError,
        match=r"tolerance: attributions of the probability of row \d are accurate only to",
    ):
        Explainer(POSTERIORS["rough"], b, output="probability", tolerance=1e-18)(X)
    with pytest.raises(InvalidInputError, match="draws: expected at least 2"):
        Draws(np.zeros((1, 5, 3)))
