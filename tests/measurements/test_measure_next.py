"""What a measurement would tell is what it tells: variances before it are those of the model fitted
with it, for every posterior and attribution.
"""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import gpattr
from gpattr import Explainer
from gpattr._core.memory import memory_budget
from gpattr.exceptions import InvalidIndexError, InvalidInputError, UnsupportedModelError
from gpattr.kernels import Matern12, SquaredExponential
from gpattr.operators import Gradient, IntegratedGradients, ShapleyInteractions
from gpattr.posteriors import ExactPosterior, LaplacePosterior
from measurements.models import (
    CANDIDATES,
    CONDITIONED,
    KERNEL,
    NOISE,
    ROWS,
    TOLD,
    X,
    Y,
    coregionalised,
    encoded,
    exact,
    frame,
)

BASELINE = np.array([0.1, -0.2, 0.3])
ATTRIBUTIONS = {
    "integrated gradients": (BASELINE, {}),
    "averaged": (gpattr.Baselines(X[:4], [0.1, 0.2, 0.3, 0.4]), {}),
    "shapley": (BASELINE, {"attribution": "shapley"}),
    "marginals": (gpattr.Marginals(X[:5]), {"attribution": "shapley"}),
    "players": (BASELINE, {"attribution": "shapley", "players": {"both": [0, 2]}}),
    "gradient": ("mean", {"attribution": Gradient()}),
    "rule": (BASELINE, {"method": "trapezoid", "n_steps": 7}),
}


def variances(posterior, baseline, rows=ROWS, **options):
    return Explainer(posterior, baseline, **options)(rows, uncertainty="std").var


def refitted(posterior, point, noise):
    return posterior.condition_on(point, 0.3, noise)


@pytest.mark.parametrize("model", CONDITIONED)
@pytest.mark.parametrize("attribution", ["integrated gradients", "shapley"])
def test_variances_fall_by_what_was_said(model, attribution):
    baseline, options = ATTRIBUTIONS[attribution]
    posterior, noise = CONDITIONED[model](), np.linspace(0.01, 0.5, len(CANDIDATES))
    found = Explainer(posterior, baseline, **options).measure_next(CANDIDATES, ROWS, noise=noise)
    before = variances(posterior, baseline, **options)
    np.testing.assert_allclose(found.variance, before, rtol=1e-12)
    for i, point in enumerate(CANDIDATES):
        after = variances(refitted(posterior, point, noise[i]), baseline, **options)
        scale = before.max()
        np.testing.assert_allclose(
            found.reduction_by_feature[i], before - after, rtol=0, atol=1e-10 * scale
        )
        np.testing.assert_allclose(found.std_after[i] ** 2, after, rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize("attribution", ATTRIBUTIONS)
def test_every_attribution(attribution):
    baseline, options = ATTRIBUTIONS[attribution]
    rows = np.vstack([X, CANDIDATES[2]])
    before = variances(exact(), baseline, **options)
    after = variances(exact(rows=rows, y=np.append(Y, 7.0)), baseline, **options)
    found = Explainer(exact(), baseline, **options).measure_next(CANDIDATES, ROWS)
    np.testing.assert_allclose(
        found.reduction_by_feature[2], before - after, rtol=0, atol=1e-10 * before.max()
    )


@pytest.mark.parametrize("model", TOLD)
def test_covariances_are_those_of_the_joint_distribution(model):
    """f(x*) − f(b) is the sum of the attributions of x*: their joint covariance is known."""
    posterior = TOLD[model]()
    operator = IntegratedGradients(BASELINE)
    bound = posterior.bind(operator, gpattr.posteriors.Evaluation("std"))
    points = np.vstack([CANDIDATES, BASELINE])
    found = bound.covariance_with_values(ROWS, points)
    joint = bound.joint(np.vstack([ROWS, CANDIDATES]))[:4, :, 4:].sum(axis=3)
    scale = np.abs(joint).max()
    np.testing.assert_allclose(
        found[:, :, :-1] - found[:, :, -1:], joint, rtol=0, atol=1e-12 * scale
    )
    G = np.array([[1.0, 0.5], [2.0, 0.0], [0.0, -1.0]])
    gathered = bound.covariance_with_values(ROWS, points, G)
    np.testing.assert_allclose(
        gathered, np.einsum("nqc,qk->nkc", found, G), rtol=0, atol=1e-12 * np.abs(found).max()
    )
    _, cov = posterior.predict(np.vstack([ROWS, CANDIDATES]), return_cov=True)
    values = posterior.values_covariance(ROWS, CANDIDATES)
    np.testing.assert_allclose(values, cov[:4, 4:], rtol=0, atol=1e-12 * np.abs(cov).max())
    np.testing.assert_allclose(posterior.values_variance(CANDIDATES), cov.diagonal()[4:], rtol=1e-9)


def test_categories():
    posterior, noise = encoded(), 0.2
    explainer = Explainer(posterior, frame(X[:1]))
    found = explainer.measure_next(frame(CANDIDATES), frame(ROWS), "kind", noise)
    after = Explainer(posterior.condition_on(frame(CANDIDATES[:1]), 1.0, noise), frame(X[:1]))
    fall = explainer(frame(ROWS)).var[:, 1] - after(frame(ROWS)).var[:, 1]
    np.testing.assert_allclose(found.variance_reduction[0], fall, rtol=0, atol=1e-12)
    assert found.feature == "kind"


def test_one_feature_is_its_part_of_all():
    explainer = Explainer(exact(), BASELINE, feature_names=["a", "b", "c"])
    everything = explainer.measure_next(CANDIDATES, ROWS)
    for feature in (1, "b", -2):
        one = explainer.measure_next(CANDIDATES, ROWS, feature)
        assert one.feature == "b"
        pairs = [
            (one.variance_reduction, everything.reduction_by_feature[:, :, 1]),
            (one.std_after, everything.std_after[:, :, 1]),
            (one.sign_certainty, everything.sign_certainty[:, 1]),
            (one.expected_sign_certainty, everything.expected_sign_certainty[:, :, 1]),
            (one.prob_settled(0.9), everything.prob_settled(0.9)[:, :, 1]),
            (one.values, everything.values[:, 1]),
        ]
        for part, whole in pairs:
            assert part.shape == whole.shape
            np.testing.assert_allclose(part, whole, rtol=1e-9, atol=1e-13)
    summed = everything.reduction_by_feature.sum(axis=2)
    np.testing.assert_array_equal(everything.variance_reduction, summed)
    np.testing.assert_allclose(everything.total_reduction, summed.sum(axis=1), rtol=1e-14)


def test_a_baseline_for_each_row():
    explainer, own = Explainer(exact(), BASELINE), X[:4]
    found = explainer.measure_next(CANDIDATES, ROWS, baselines=own)
    for i in range(4):
        alone = Explainer(exact(), own[i]).measure_next(CANDIDATES, ROWS[[i]])
        np.testing.assert_allclose(
            found.variance_reduction[:, [i]], alone.variance_reduction, rtol=1e-10
        )
    assert found.baseline_name == "one per row"


@pytest.mark.parametrize("feature", [None, 0])
@pytest.mark.parametrize("model", ["exact", "flat mean", "scaled", "sparse", "weights"])
def test_a_batch_is_conditioning_step_by_step(model, feature):
    posterior, noise, q = CONDITIONED[model](), np.linspace(0.01, 0.5, len(CANDIDATES)), 5
    batch = Explainer(posterior, BASELINE).measure_next(CANDIDATES, ROWS, feature, noise).best(q)
    chosen, scale = [], None
    for step in range(q):
        found = Explainer(posterior, BASELINE).measure_next(CANDIDATES, ROWS, feature, noise)
        scale = found.variance.sum() if scale is None else scale
        gain = found.total_reduction
        gain[chosen] = -1.0
        chosen.append(int(gain.argmax()))
        np.testing.assert_allclose(
            batch.variance_reduction[step], gain[chosen[-1]], rtol=0, atol=1e-10 * scale
        )
        posterior = posterior.condition_on(CANDIDATES[chosen[-1]], 1.0, noise[chosen[-1]])
    assert batch.positions == tuple(chosen)
    left = variances(posterior, BASELINE)
    left = left if feature is None else left[:, feature]
    np.testing.assert_allclose(batch.std_after**2, left, rtol=0, atol=1e-10 * scale)


def test_batches_of_more_candidates_than_are_taken_together(monkeypatch):
    told = Explainer(CONDITIONED["scaled"](), BASELINE).measure_next(CANDIDATES, ROWS)
    together = told.best(6)
    monkeypatch.setattr("gpattr.explanation.next_measurement.TOGETHER", 2)
    one_by_one = told.best(6)
    assert one_by_one.positions == together.positions
    np.testing.assert_allclose(
        one_by_one.variance_reduction, together.variance_reduction, rtol=1e-10
    )


def test_the_best_one_is_the_largest_reduction():
    table = pd.DataFrame(CANDIDATES, columns=list("abc"), index=[f"plot {i}" for i in range(6)])
    posterior = ExactPosterior(KERNEL, pd.DataFrame(X, columns=list("abc")), Y, noise=NOISE)
    found = Explainer(posterior, BASELINE).measure_next(table[["c", "a", "b"]], ROWS, "b")
    best = found.best()
    assert best.names == (found.to_frame().index[0],) == (f"plot {best.positions[0]}",)
    np.testing.assert_allclose(best.variance_reduction[0], found.total_reduction.max(), rtol=1e-14)
    assert sorted(found.best(6).positions) == list(range(6))
    assert (np.diff(found.to_frame()["variance_reduction"]) <= 0).all()
    same = Explainer(exact(), BASELINE).measure_next(CANDIDATES, ROWS, 1)
    np.testing.assert_allclose(found.variance_reduction, same.variance_reduction, rtol=1e-12)


def test_what_is_known_tells_nothing():
    """Without noise the function is known where it was measured: no variance, no NaN."""
    posterior = exact(noise=1e-12)
    found = Explainer(posterior, BASELINE).measure_next(X[:3], ROWS, noise=0.0)
    assert (found.variance_reduction <= 1e-9 * found.variance.max()).all()
    sure = posterior.condition_on(CANDIDATES[0], 1.0, 0.0)
    found = Explainer(sure, BASELINE).measure_next(CANDIDATES[:2], ROWS, noise=0.0)
    assert found.value_variance[0] == 0.0
    assert (found.variance_reduction[0] == 0.0).all()
    assert found.variance_reduction[1].min() > 0.0
    np.testing.assert_allclose(
        found.expected_sign_certainty[0], found.sign_certainty, rtol=1e-12, atol=0
    )
    assert found.best(2).variance_reduction[1] == 0.0
    for array in (found.prob_settled(), found.std_after, found.to_frame().to_numpy()):
        assert np.isfinite(array).all()
    weights = CONDITIONED["weights"]().condition_on(CANDIDATES[0], 1.0, 0.0)
    found = Explainer(weights, BASELINE).measure_next(CANDIDATES[:1], ROWS, noise=0.0)
    assert (found.variance_reduction == 0.0).all()


def test_the_same_place_twice_without_noise():
    twice = CANDIDATES[[0, 1, 0, 1]]
    for model in ("exact", "sparse", "weights"):
        explainer = Explainer(CONDITIONED[model](), BASELINE)
        batch = explainer.measure_next(twice, ROWS, noise=0.0).best(4)
        assert {batch.positions[0] % 2, batch.positions[1] % 2} == {0, 1}
        assert (batch.variance_reduction[:2] > 0).all()
        np.testing.assert_array_equal(batch.variance_reduction[2:], 0.0)


def test_an_attribution_that_is_zero():
    found = Explainer(exact(), BASELINE).measure_next(CANDIDATES, BASELINE[None, :], 0)
    for array, expected in (
        (found.variance_reduction, 0.0),
        (found.sign_certainty, 0.5),
        (found.expected_sign_certainty, 0.5),
        (found.prob_settled(), 0.0),
        (found.to_frame()["share"], 0.0),
    ):
        np.testing.assert_array_equal(array, expected)


def test_pipelines_of_scikit_learn():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    table = pd.DataFrame(10.0 + 3.0 * X, columns=list("abc"))
    kernel = RBF([0.8, 1.1, 1.5]) + WhiteKernel(0.05)
    regressor = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True)
    model = make_pipeline(StandardScaler(), regressor).fit(table, 5.0 + 2.0 * Y)
    new, at = (pd.DataFrame(10.0 + 3.0 * rows, columns=list("abc")) for rows in (CANDIDATES, ROWS))
    found = Explainer(model, table.mean()).measure_next(new, at, "b")
    assert found.noise == pytest.approx(0.05 * np.var(2.0 * Y), rel=1e-6)
    # The same regressor of all rows, in the units that were learned before.
    inside = np.vstack([model[0].transform(table), model[0].transform(new[2:3])])
    scaled = np.append((Y - Y.mean()) / Y.std(), 0.0)
    again = GaussianProcessRegressor(kernel, optimizer=None).fit(inside, scaled)
    after = Explainer(again, model[0].transform(table.mean().to_frame().T)[0])
    left = np.var(2.0 * Y) * after(model[0].transform(at)).var[:, 1]
    np.testing.assert_allclose(found.std_after[2] ** 2, left, rtol=1e-9)


def test_small_and_wide():
    one = ExactPosterior(SquaredExponential(), X[:5, :1], Y[:5], noise=0.1)
    found = Explainer(one, [0.0]).measure_next([[0.3]], [[1.0]])
    assert found.variance_reduction.shape == (1, 1)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 60))
    wide = ExactPosterior(SquaredExponential(8.0), rows, rows[:, 0], noise=0.1)
    found = Explainer(wide).measure_next(rng.normal(size=(3, 60)), rows[:2], noise=[0.1, 0.2, 0.3])
    after = variances(wide.condition_on(found.points[1], 0.0, 0.2), rows.mean(axis=0), rows[:2])
    fall = found.variances - after
    np.testing.assert_allclose(
        found.reduction_by_feature[1], fall, rtol=0, atol=1e-10 * found.variances.max()
    )


def test_many_candidates_in_little_memory():
    """Blocks do not change the answer."""
    rng = np.random.default_rng(0)
    candidates = rng.normal(size=(20_000, 3))
    explainer = Explainer(exact(), BASELINE)
    found = explainer.measure_next(candidates, ROWS, 0)
    some = explainer.measure_next(candidates[-5:], ROWS, 0)
    np.testing.assert_allclose(
        found.variance_reduction[-5:], some.variance_reduction, rtol=1e-10, atol=1e-15
    )
    with memory_budget(working=1e4):
        blocked = explainer.measure_next(candidates[:50], ROWS)
    whole = explainer.measure_next(candidates[:50], ROWS)
    np.testing.assert_allclose(
        blocked.variance_reduction, whole.variance_reduction, rtol=1e-9, atol=1e-15
    )


def test_tensors_and_threads():
    torch = pytest.importorskip("torch")
    tensor = lambda a: torch.as_tensor(a, dtype=torch.float64)  # noqa: E731
    host = Explainer(exact(), BASELINE).measure_next(CANDIDATES, ROWS)
    there = ExactPosterior(KERNEL, tensor(X), tensor(Y), noise=NOISE)
    found = Explainer(there, BASELINE).measure_next(tensor(CANDIDATES), tensor(ROWS))
    np.testing.assert_allclose(found.variance_reduction, host.variance_reduction, rtol=1e-9)
    assert found.best(3).positions == host.best(3).positions
    explainer = Explainer(exact(), BASELINE)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: explainer.measure_next(CANDIDATES, ROWS), range(8)))
    for answer in answers:
        np.testing.assert_array_equal(answer.variance_reduction, host.variance_reduction)


def test_results_cannot_be_written_to():
    found = Explainer(exact(), BASELINE).measure_next(CANDIDATES, ROWS)
    for result in (found, copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        for name in ("covariance", "means", "variances", "noise", "reduction_by_feature"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(result, name)[:] = 0.0
        np.testing.assert_array_equal(result.total_reduction, found.total_reduction)
    with pytest.raises(ValueError, match="read-only"):
        found.best(2).std_after[:] = 0.0
    assert pickle.loads(pickle.dumps(found)).best(2).positions == found.best(2).positions


def test_text():
    found = Explainer(exact(), BASELINE, target_name="yield").measure_next(CANDIDATES, ROWS, 0)
    lines = repr(found).split("\n")
    assert lines[0] == (
        "Next measurement of the predicted yield: 6 candidates for the attributions of x0 at 4 rows"
    )
    assert lines[1] == "baseline: given point; noise variance 0.05"
    assert lines[3].split()[:3] == ["candidate", "reduction", "share"]
    assert [int(line.split()[0]) for line in lines[4:]] == list(found.to_frame().index)
    assert "<table>" in found._repr_html_()
    one = Explainer(exact(), BASELINE).measure_next(CANDIDATES, ROWS[:1], 0)
    assert "for the attribution of x0 at row 0" in repr(one)
    many = Explainer(exact(), BASELINE).measure_next(np.tile(CANDIDATES, (4, 1)), ROWS)
    assert repr(many).endswith("… and 14 smaller")


def test_models_that_cannot_tell_are_refused_by_name():
    classes = LaplacePosterior(KERNEL, X, (Y > 0).astype(float))
    pair = ShapleyInteractions(BASELINE)
    refused = {
        r"^model: .* labels of a classifier": Explainer(classes, BASELINE),
        r"^output: measure_next is available only": Explainer(
            classes, BASELINE, output="probability"
        ),
        r"^model: .*measure_next.* select one": Explainer(coregionalised(), BASELINE),
        r"^attribution: measure_next is defined for one number per feature": Explainer(
            exact(), attribution=pair
        ),
        r"Matern12": Explainer(exact(Matern12()), attribution=Gradient()),
    }
    for message, explainer in refused.items():
        with pytest.raises(UnsupportedModelError, match=message):
            explainer.measure_next(CANDIDATES, ROWS, noise=0.1)
    one = Explainer(coregionalised(), BASELINE)["y0"]
    with pytest.raises(InvalidInputError, match=r"^noise: CombinationPosterior does not have one"):
        one.measure_next(CANDIDATES, ROWS)
    assert one.measure_next(CANDIDATES, ROWS, noise=0.1).total_reduction.min() > 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"candidates": CANDIDATES[:0]}, InvalidInputError, "candidates: expected at least one"),
        ({"candidates": CANDIDATES[:, :2]}, InvalidInputError, "candidates: expected 3 columns"),
        ({"candidates": CANDIDATES[0]}, InvalidInputError, "candidates: expected rows"),
        ({"candidates": CANDIDATES * np.nan}, InvalidInputError, "candidates: expected finite"),
        ({"candidates": CANDIDATES * 1e200}, InvalidInputError, "candidates: expected rows within"),
        ({"candidates": "text"}, InvalidInputError, "candidates: "),
        ({"X": ROWS[:0]}, InvalidInputError, "X: expected at least one"),
        ({"feature": "price"}, InvalidIndexError, "feature: expected one of"),
        ({"feature": 3}, InvalidIndexError, "feature: "),
        ({"feature": 1.0}, InvalidIndexError, "feature: "),
        ({"noise": -1.0}, InvalidInputError, "noise: expected variances"),
        ({"noise": [0.1, 0.2]}, InvalidInputError, "noise: expected one variance or one per row"),
        ({"noise": np.nan}, InvalidInputError, "noise: expected finite"),
    ],
)
def test_bad_input(change, error, message):
    arguments = {"candidates": CANDIDATES, "X": ROWS} | change
    with pytest.raises(error, match=f"^{message}"):
        Explainer(exact(), BASELINE).measure_next(**arguments)


def test_bad_questions():
    found = Explainer(exact(), BASELINE).measure_next(CANDIDATES, ROWS)
    for q in (0, 7, -1, 2.0, True):
        with pytest.raises(InvalidInputError, match="^q: expected an integer of 1 to 6"):
            found.best(q)
    with pytest.raises(InvalidInputError, match="^level: "):
        found.prob_settled(1.0)
