"""Counterfactuals: nearest points that are known, brute force on grids, laws, and refusals."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit, ndtr, ndtri

import gpattr
from gpattr import Baselines, Explainer, kernels
from gpattr.encoders import Dates, Encoder
from gpattr.exceptions import GpattrError, InvalidInputError, UnsupportedModelError
from gpattr.explainer import few_features
from gpattr.explainer.change_margin import ChangeMargin
from gpattr.explainer.change_space import change_space
from gpattr.explainer.nearest_points import tangent_solution
from gpattr.means import Constant, Linear
from gpattr.posteriors import (
    EncodedPosterior,
    ExactPosterior,
    MultiOutputPosterior,
)

mpl.use("Agg")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * X[:, 3]
POSTERIOR = ExactPosterior(
    kernels.SquaredExponential(lengthscale=[1.5, 2.0, 2.0, 4.0]), X, Y, noise=0.05
)
EXPLAINER = Explainer(POSTERIOR)


def polynomial(d, seed, values):
    """A model that knows a polynomial of degree two but for rounding and a little noise."""
    Z = np.random.default_rng(seed).uniform(-3.0, 3.0, size=(60 + 10 * d, d))
    kernel = kernels.Polynomial(degree=2, offset=1.0, variance=25.0)
    return Explainer(ExactPosterior(kernel, Z, values(Z), noise=1e-7))


@pytest.mark.parametrize("case", range(25))
def test_nearest_point_on_a_plane(case):
    """The distance of a plane w·x = t from x, in units s, is (t − w·x)/‖w∘s‖."""
    rng = np.random.default_rng(case)
    d = int(rng.integers(1, 7))
    w, s, x = rng.normal(size=d), rng.uniform(0.3, 3.0, d), rng.uniform(-2.0, 2.0, d)
    explainer = polynomial(d, case, lambda Z: Z @ w)
    sign = rng.choice([-1.0, 1.0])
    target = float(x @ w + sign * rng.uniform(0.1, 3.0))
    found = explainer.counterfactual(
        x,
        target,
        direction="at_least" if sign > 0 else "at_most",
        bounds=np.tile([-100.0, 100.0], (d, 1)),
        scales=s,
        prefer="nearest",
    )
    exact = abs(target - x @ w) / np.linalg.norm(w * s)
    np.testing.assert_allclose(found.distance, exact, rtol=0.01)
    assert found.found
    fewest = found.alternatives[0]  # the distance along each axis is known too
    np.testing.assert_allclose(
        fewest.distance, (abs(target - x @ w) / np.abs(w * s)).min(), rtol=0.01
    )
    assert fewest.n_changed == 1


@pytest.mark.parametrize("case", range(25))
def test_nearest_point_on_a_sphere(case):
    """Into a bowl ‖x − c‖² ≤ r² it is ‖x − c‖ − r, and out of it r − ‖x − c‖."""
    rng = np.random.default_rng(100 + case)
    d = int(rng.integers(2, 7))
    c, x = rng.uniform(-1.0, 1.0, d), rng.uniform(-2.0, 2.0, d)
    explainer = polynomial(d, case, lambda Z: ((Z - c) ** 2).sum(axis=1))
    here = np.linalg.norm(x - c)
    r = here * rng.choice([rng.uniform(0.3, 0.9), rng.uniform(1.1, 2.0)])
    found = explainer.counterfactual(
        x,
        r**2,
        direction="at_most" if r < here else "at_least",
        bounds=np.tile([-50.0, 50.0], (d, 1)),
        scales=np.ones(d),
        prefer="nearest",
    )
    np.testing.assert_allclose(found.distance, abs(here - r), rtol=0.01)


@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_brute_force_on_a_grid(row, level):
    """In two features no point of a fine grid is nearer, and one feature agrees with a line."""
    Z = X[:25, :2]
    posterior = ExactPosterior(
        kernels.SquaredExponential(lengthscale=[0.8, 1.1]),
        Z,
        np.sin(2 * Z[:, 0]) + Z[:, 1],
        noise=0.05,
    )
    explainer, x, scale = Explainer(posterior), Z[row], Z.std(axis=0)
    low, high = Z.min(axis=0), Z.max(axis=0)
    target = float(posterior.predict(x[None])[0] + 0.6)
    found = explainer.counterfactual(x, target, level=level, prefer="nearest")
    grid = np.stack(
        np.meshgrid(*(np.linspace(a, b, 401) for a, b in zip(low, high, strict=True))), axis=-1
    ).reshape(-1, 2)
    mean, std = posterior.predict(grid, return_std=True)
    reached = mean - ndtri(level) * std >= target
    nearest = np.linalg.norm((grid - x) / scale, axis=1)[reached].min(initial=np.inf)
    assert found.found == np.isfinite(nearest)
    if found.found:
        step = np.linalg.norm((high - low) / 400 / scale)
        assert nearest - step <= found.distance <= nearest + 1e-9


@given(
    row=st.integers(0, 39),
    rise=st.floats(-0.2, 0.8),
    level=st.sampled_from([0.3, 0.6, 0.95]),
    allowed=st.sets(st.integers(0, 3), min_size=1),
    direction=st.sampled_from(["at_least", "at_most"]),
    prefer=st.sampled_from(["fewest", "nearest"]),
    room=st.floats(0.0, 3.0),
)
@settings(max_examples=50, deadline=None)
def test_laws(row, rise, level, allowed, direction, prefer, room):
    """Bounds and fixed features hold to the last bit; probabilities are those of predict."""
    x = X[row]
    bounds = {i: (x[i] - room, x[i] + 0.5 * room) for i in allowed}
    sign = 1.0 if direction == "at_least" else -1.0
    target = float(POSTERIOR.predict(x[None])[0] + sign * rise)
    options = {"direction": direction, "level": level, "prefer": prefer}
    found = EXPLAINER.counterfactual(x, target, features=allowed, bounds=bounds, **options)
    for one in (found, *found.alternatives):
        new = one.counterfactual
        fixed = [i for i in range(4) if i not in allowed]
        assert (new[fixed] == x[fixed]).all()
        for i, (low, high) in bounds.items():
            assert low <= new[i] <= high
        mean, std = (each[0] for each in POSTERIOR.predict(new[None], return_std=True))
        chance = ndtr(sign * (mean - target) / std)
        np.testing.assert_allclose(one.probability, chance, rtol=1e-10, atol=1e-300)
        if one.found:
            assert chance >= level
        changed = [i for i in range(4) if new[i] != x[i]]
        assert set(one.changes) == {f"x{i}" for i in changed}
        units = (new - x) / X.std(axis=0)
        np.testing.assert_allclose(one.distance, np.linalg.norm(units), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            one.explanation.values.sum(), mean - POSTERIOR.predict(x[None])[0], rtol=0, atol=1e-9
        )
        assert (one.explanation.values[0, fixed] == 0).all()
    lengths = [one.distance for one in found.alternatives]
    assert lengths == sorted(lengths, reverse=True)
    assert not found.alternatives or found.alternatives[-1].distance == min(lengths)


@pytest.mark.parametrize("row", range(5))
def test_nearest_changes_are_stationary(row):
    """Without bounds in the way, the nearest change points along the gradient of the margin."""
    x, wide = X[row], np.tile([-30.0, 30.0], (4, 1))
    target = float(POSTERIOR.predict(x[None])[0] + 0.4)
    found = EXPLAINER.counterfactual(x, target, bounds=wide, prefer="nearest", level=0.8)
    assert found.n_changed == 4
    u = (found.counterfactual - x) / X.std(axis=0)
    mean, var, slope, cov = POSTERIOR.slopes(found.counterfactual[None])
    gradient = ((slope - ndtri(0.8) * cov / np.sqrt(var)) * X.std(axis=0))[0]
    cosine = u @ gradient / np.linalg.norm(u) / np.linalg.norm(gradient)
    assert 1.0 - cosine < 1e-7
    np.testing.assert_allclose(mean - ndtri(0.8) * np.sqrt(var), target, rtol=0, atol=1e-7)


def test_margins_have_the_gradient_they_say():
    rows = EXPLAINER.task.reader
    wide = {0: (-9.0, 9.0), 2: (-9.0, 9.0)}
    space = change_space(rows, X[3], ("x0", "x1", "x2", "x3"), [0, 2], wide, None)
    margin = ChangeMargin(POSTERIOR, space, 0.7, 0.9, -1.0)
    u, which = np.array([[0.3, -0.2], [0.0, 0.5]]), np.zeros(2, dtype=int)
    for function in (margin.slopes, margin.scores):
        slope = function(u, which)[1]
        for j in range(2):
            step = 1e-5 * np.eye(2)[j]
            numeric = (function(u + step, which)[0] - function(u - step, which)[0]) / 2e-5
            np.testing.assert_allclose(slope[:, j], numeric, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(margin.values(u, which), margin.slopes(u, which)[0], rtol=1e-9)


def test_tangents_are_solved_exactly():
    """Against SLSQP, on random tangents in random boxes."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(3)
    for _ in range(40):
        p = int(rng.integers(1, 6))
        slope, u = rng.normal(size=(1, p)), rng.normal(size=(1, p))
        low, high = -rng.uniform(0.0, 2.0, (1, p)), rng.uniform(0.0, 2.0, (1, p))
        top = float(np.where(slope > 0, high, low)[0] @ slope[0])
        needed = rng.uniform(-0.5, 1.0) * top
        g = (slope * u).sum(axis=1) - needed
        goal, _ = tangent_solution(g, slope, u, low, high)
        bounds = list(zip(low[0], high[0], strict=True))
        limit = {"type": "ineq", "fun": lambda v, s=slope, n=needed: v @ s[0] - n}
        truth = minimize(
            lambda v: v @ v, np.zeros(p), bounds=bounds, constraints=[limit], method="SLSQP"
        )
        np.testing.assert_allclose(goal[0], truth.x, rtol=0, atol=1e-5)
        assert goal[0] @ slope[0] >= needed - 1e-12


def test_x_that_is_there_already():
    found = EXPLAINER.counterfactual(X[0], -5.0)
    assert found.found
    assert found.distance == 0
    assert dict(found.changes) == {}
    assert (found.counterfactual == X[0]).all()
    assert "holds for the row as it is" in repr(found)
    assert "holds for the row as it is" in found._repr_html_()
    assert found.to_frame().empty
    found.plot()


def test_target_that_cannot_be_reached():
    found = EXPLAINER.counterfactual(X[0], 50.0)
    assert not found.found
    assert found.alternatives == ()
    assert repr(found).startswith("No counterfactual found: prediction at least 50 with probab")
    near = EXPLAINER.counterfactual(X[0], 1.7, features=[3])
    assert not near.found
    line = np.tile(X[0], (2001, 1))
    line[:, 3] = np.linspace(X[:, 3].min(), X[:, 3].max(), 2001)
    mean, std = POSTERIOR.predict(line, return_std=True)
    np.testing.assert_allclose(near.probability, ndtr((mean - 1.7) / std).max(), rtol=1e-5)
    assert "highest probability found" in repr(near)
    near.plot()


def test_fewest_and_nearest():
    few, near = (
        EXPLAINER.counterfactual(X[1], 1.4, prefer=prefer) for prefer in ("fewest", "nearest")
    )
    assert few.n_changed < near.n_changed
    assert near.distance < few.distance
    assert [one.n_changed for one in few.alternatives] == sorted(
        one.n_changed for one in few.alternatives
    )
    assert "alternatives: " in repr(few)


def test_frames_categories_and_dates():
    rng = np.random.default_rng(2)
    n = 60
    frame = pd.DataFrame(
        {
            "area": rng.uniform(30.0, 150.0, n),
            "kind": rng.choice(["flat", "house", "hut"], n),
            "built": np.datetime64("2010-01-01") + rng.integers(0, 3000, n).astype("m8[D]"),
        }
    )
    extra = frame["kind"].map({"flat": 0.0, "house": 40.0, "hut": -20.0})
    y = (frame["area"] + extra).to_numpy()
    labels = ("flat", "house", "hut", "palace")
    encoder = Encoder(("area", "kind", "built"), {"kind": labels}, dates={"built": Dates()})
    rows = encoder.encode("X", frame)
    scale = np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1.0)
    kernel = kernels.SquaredExponential(lengthscale=3.0 * scale, variance=2000.0)
    inner = ExactPosterior(kernel, rows, y, noise=1.0, mean=Constant(float(y.mean())))
    explainer = Explainer(EncodedPosterior(inner, encoder), "mean", target_name="price")
    x = frame[frame["kind"] == "flat"].iloc[[0]]
    x = x.assign(area=100.0)
    before = float(explainer.posterior.predict(x)[0])
    found = explainer.counterfactual(x, before + 30.0, features=["kind", "area"])
    assert found.found
    kinds = [dict(one.changes) for one in (found, *found.alternatives)]
    assert {"kind": ("flat", "house")} in kinds
    both = explainer.counterfactual(x, before + 30.0, prefer="nearest")
    assert both.distance <= 1.0
    assert list(both.counterfactual.columns) == ["area", "kind", "built"]
    assert both.counterfactual["built"].iloc[0] == x["built"].iloc[0]
    again = explainer.posterior.predict(found.counterfactual)[0]
    np.testing.assert_allclose(again, found.prediction, rtol=1e-12)
    only = explainer.counterfactual(x, before + 20.0, bounds={"kind": ["hut"]})
    assert set(only.changes) == {"area"}
    alone = explainer.counterfactual(x, before + 30.0, features="kind")
    assert dict(alone.changes) == {"kind": ("flat", "house")}
    assert not explainer.counterfactual(x, before + 500.0, features="kind").found
    far = explainer.counterfactual(x, before + 80.0, prefer="nearest")  # both are needed
    assert set(far.changes) == {"area", "kind"}
    json.dumps(far.to_dict())
    assert far.to_frame()["old"].tolist() == [far.changes[name][0] for name in far.to_frame().index]
    with pytest.raises(UnsupportedModelError, match="features: 'built' is a date"):
        explainer.counterfactual(x, 3.0, features=["built"])
    with pytest.raises(InvalidInputError, match="bounds: expected a list of categories of 'kind'"):
        explainer.counterfactual(x, 3.0, bounds={"kind": ["castle"]})


def test_categories_that_jump_and_players():
    rng = np.random.default_rng(4)
    rows = np.column_stack([rng.normal(size=40), rng.integers(0, 3, 40), rng.integers(0, 2, 40)])
    values = rows[:, 0] + 2.0 * rows[:, 1]
    labels = {"k": (0.0, 1.0, 2.0), "m": (0.0, 1.0)}
    encoder = Encoder(("a", "k", "m"), labels, as_one_feature=True, named=False)
    inner = ExactPosterior(
        kernels.SquaredExponential(lengthscale=3.0, variance=9.0),
        encoder.encode("X", rows),
        values,
        noise=0.01,
    )
    x = np.array([0.0, 0.0, 1.0])
    found = Explainer(EncodedPosterior(inner, encoder), x).counterfactual(x, 1.5, prefer="nearest")
    assert dict(found.changes) == {"k": (0.0, 1.0)}
    assert found.distance == 1.0
    assert found.counterfactual.tolist() == [0.0, 1.0, 1.0]
    assert "attribution" not in found.to_frame()  # both columns of categories are one feature
    players = Explainer(POSTERIOR, attribution="shapley", players={"pair": [0, 1]})
    change = players.counterfactual(X[1], 1.4, features=[0, 1, 2])
    assert change.explanation.feature_names == ("pair", "x2", "x3")
    assert set(change.changes) <= {"x0", "x1", "x2"}


def test_classifiers_take_log_odds_or_probabilities():
    rows = RNG.normal(size=(60, 2))
    model = gpattr.GPClassifier(kernel=kernels.SquaredExponential(variance=4.0), optimize=False)
    model.fit(rows, (rows[:, 0] + 0.3 * rows[:, 1] > 0).astype(int))
    x = rows[np.argmin(rows[:, 0])]
    latent = Explainer(model).counterfactual(x, float(logit(0.6)), level=0.8)
    chance = Explainer(model, output="probability", n_draws=50).counterfactual(x, 0.6, level=0.8)
    assert latent.found
    np.testing.assert_allclose(chance.counterfactual, latent.counterfactual, rtol=1e-12)
    proba = model.predict_proba(chance.counterfactual[None])[0, 1]
    np.testing.assert_allclose(chance.prediction, proba, rtol=1e-9)
    low, high = chance.interval(0.6)
    assert 0.6 - 1e-6 <= low < chance.prediction < high < 1.0
    with pytest.raises(InvalidInputError, match="target: expected a probability between 0 and 1"):
        Explainer(model, output="probability").counterfactual(x, 1.5)


def test_other_explainers():
    """Every attribution explains the change, gradients by integrated gradients."""
    plain = EXPLAINER.counterfactual(X[1], 1.4)
    for explainer in (
        Explainer(POSTERIOR, Baselines(X[:3]), attribution="shapley"),
        Explainer(POSTERIOR, gpattr.Marginals(X[:3]), attribution="shapley"),
        Explainer(POSTERIOR, attribution=gpattr.operators.Gradient()),
    ):
        found = explainer.counterfactual(X[1], 1.4)
        np.testing.assert_array_equal(found.counterfactual, plain.counterfactual)
        np.testing.assert_allclose(
            found.explanation.values.sum(),
            found.prediction - found.prediction_before,
            rtol=1e-9,
        )
    assert plain.explanation.baseline_name == "the row before the change"


def test_tensors():
    torch = pytest.importorskip("torch")
    tensors = ExactPosterior(POSTERIOR.kernel, torch.as_tensor(X), torch.as_tensor(Y), noise=0.05)
    found = Explainer(tensors).counterfactual(torch.as_tensor(X[1]), 1.4)
    expected = EXPLAINER.counterfactual(X[1], 1.4)
    np.testing.assert_allclose(found.distance, expected.distance, rtol=1e-6)
    assert isinstance(found.counterfactual, np.ndarray)


def test_names_units_and_sides():
    names = ["a", "b", "c", "d"]
    explainer = Explainer(POSTERIOR, feature_names=names)
    found = explainer.counterfactual(pd.Series(X[1], index=names), 1.4, features="b")
    assert set(found.changes) == {"b"}
    assert list(found.x.columns) == names
    outside = X[1] + np.array([9.0, 0.0, 0.0, 0.0])  # far beyond the data
    kept = EXPLAINER.counterfactual(outside, 0.5)
    assert X[:, 0].min() <= kept.counterfactual[0] <= outside[0]
    with pytest.raises(InvalidInputError, match=r"bounds: 'x0' is .* lies outside \(-1, 1\)"):
        EXPLAINER.counterfactual(outside, 0.5, bounds={0: (-1, 1)})


def test_small_and_wide():
    one = ExactPosterior(kernels.SquaredExponential(), X[:5, :1], Y[:5], noise=0.1)
    assert Explainer(one).counterfactual(X[0, :1], -9.0).found
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(80, 60))
    wide = ExactPosterior(
        kernels.SquaredExponential(lengthscale=20.0, variance=50.0),
        Z,
        Z[:, 7] - Z[:, 50],
        noise=0.01,
    )
    found = Explainer(wide).counterfactual(Z[0], float(Z[0, 7] - Z[0, 50] + 1.0))
    assert found.found
    assert set(found.changes) <= {"x7", "x50"}


def test_results_are_frozen_and_the_same_in_threads():
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: EXPLAINER.counterfactual(X[1], 1.4), range(4)))
    first = results[0]
    assert all((one.counterfactual == first.counterfactual).all() for one in results)
    for array in (first.counterfactual, first.x, first.means, first.predictions):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(TypeError):
        first.changes["x0"] = (0, 1)  # pyright: ignore[reportIndexIssue]
    copied = pickle.loads(pickle.dumps(first))
    assert copied.to_dict() == first.to_dict()
    assert repr(copied) == repr(first)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": np.nan}, "target: expected one finite number"),
        ({"target": "high"}, "target: expected one finite number"),
        ({"level": 0.0}, "level: expected a number between 0 and 1"),
        ({"level": 1.0}, "level: expected a number between 0 and 1"),
        ({"direction": "up"}, "direction: expected one of"),
        ({"prefer": "best"}, "prefer: expected one of"),
        ({"features": []}, "features: expected a list of at least one"),
        ({"features": ["height"]}, "features: expected one of"),
        ({"features": [9]}, "features: "),
        ({"bounds": {0: (2.0, -2.0)}}, "bounds: expected two finite numbers"),
        ({"bounds": {0: (-np.inf, np.inf)}}, "bounds: expected two finite numbers"),
        ({"bounds": {0: ()}}, "bounds: "),
        ({"bounds": np.zeros((3, 2))}, r"bounds: .* \(4, 2\)"),
        ({"bounds": {"height": (0, 1)}}, "bounds: expected one of"),
        ({"bounds": {1: (-9, 9)}, "features": [0]}, "bounds: 'x1' is not among the features"),
        ({"scales": {0: 0.0}}, "scales: expected a number larger than 0"),
        ({"scales": {0: 1e-300}}, "scales: expected a unit of 'x0' that its bounds"),
        ({"scales": {0: 1e300}}, "scales: expected a unit of 'x0' that its bounds"),
        ({"scales": np.ones(3)}, "scales: expected"),
        ({"x": X[:2]}, "x: expected one row, got 2"),
        ({"x": np.full(4, np.nan)}, "x: expected finite numbers"),
    ],
)
def test_refusals(options, words):
    arguments = {"x": X[0], "target": 1.0} | options
    with pytest.raises(GpattrError, match=words):
        EXPLAINER.counterfactual(**arguments)


def test_models_that_are_refused_by_name():
    several = MultiOutputPosterior({"p": POSTERIOR, "q": POSTERIOR})
    with pytest.raises(UnsupportedModelError, match="single output"):
        Explainer(several).counterfactual(X[0], 1.0)
    assert Explainer(several)["p"].counterfactual(X[0], -5.0).found


def test_no_training_inputs_need_bounds_and_scales():
    from gpattr.posteriors import FunctionSpacePosterior

    bare = FunctionSpacePosterior(
        POSTERIOR.kernel, POSTERIOR.inputs, POSTERIOR.alpha, POSTERIOR.factor
    )
    explainer = Explainer(bare, np.zeros(4))
    with pytest.raises(InvalidInputError, match="bounds: this model does not store"):
        explainer.counterfactual(X[0], 1.0)
    with pytest.raises(InvalidInputError, match="scales: this model does not store"):
        explainer.counterfactual(X[0], 1.0, bounds=np.tile([-4.0, 4.0], (4, 1)))
    found = explainer.counterfactual(
        X[1], 1.4, bounds=np.c_[X.min(axis=0), X.max(axis=0)], scales=X.std(axis=0)
    )
    np.testing.assert_allclose(
        found.distance, EXPLAINER.counterfactual(X[1], 1.4).distance, rtol=1e-6
    )


def test_uncertain_trends_keep_their_word():
    """A trend's variance counts: the answer holds by predict."""
    trend = ExactPosterior(
        kernels.SquaredExponential(), X, Y, noise=0.1, mean=Linear(np.zeros(4), covariance="flat")
    )
    found = Explainer(trend).counterfactual(X[1], 0.9)
    assert found.found
    mean, std = (each[0] for each in trend.predict(found.counterfactual[None], return_std=True))
    np.testing.assert_allclose(found.probability, ndtr((mean - 0.9) / std), rtol=1e-10)


def reached_rows(posterior, rows, x, target, level, scale):
    """Return the distance of the nearest of these rows that passes by predict, or infinity."""
    mean, std = posterior.predict(rows, return_std=True)
    passes = ndtr((mean - target) / std) >= level + 1e-6
    return np.linalg.norm((rows - x) / scale, axis=1)[passes].min(initial=np.inf)


def small_model(seed, n, d, lengthscale, half=3.0):
    rng = np.random.default_rng(seed)
    Z, y = rng.uniform(-half, half, (n, d)).round(1), rng.normal(size=n).round(1)
    kernel = kernels.SquaredExponential(lengthscale=np.full(d, lengthscale))
    target, level = rng.uniform(-0.5, 1.5), rng.choice([0.5, 0.7, 0.9])
    x = rng.uniform(-half, half, d).round(1)
    return ExactPosterior(kernel, Z, y, noise=0.01), x, float(target), float(level)


def check_against(posterior, x, target, level, points):
    """No point within the bounds that passes is nearer, and "none" means that there is none."""
    Z = np.asarray(posterior.training_inputs)
    found = Explainer(posterior).counterfactual(x, target, level=level, prefer="nearest")
    nearest = reached_rows(posterior, np.concatenate([points, Z]), x, target, level, Z.std(axis=0))
    assert found.found == (found.probability >= level)
    assert found.found or nearest == np.inf
    assert not found.found or found.distance <= 1.001 * nearest
    return found


@pytest.mark.parametrize("seeds", range(0, 60, 20))
def test_one_feature_by_brute_force(seeds):
    """Many length-scales, and islands around single measurements."""
    for seed in range(seeds, seeds + 20):
        rng = np.random.default_rng(seed)
        Z = rng.uniform(0, 10, (20, 1)).round(1)
        kernel = kernels.SquaredExponential(0.3, 1.0)
        posterior = ExactPosterior(kernel, Z, np.sin(3 * Z[:, 0]).round(2), noise=1e-3)
        x = rng.uniform(0, 10, 1).round(1)
        line = np.linspace(min(Z.min(), x[0]), max(Z.max(), x[0]), 5001)[:, None]
        check_against(posterior, x, 0.5, 0.9, line)


@pytest.mark.parametrize(("n", "lengthscale"), [(5, 1.0), (15, 0.7)])
def test_two_features_by_brute_force(n, lengthscale):
    for seed in range(30):
        posterior, x, target, level = small_model(seed, n, 2, lengthscale)
        Z = posterior.training_inputs
        low, high = np.minimum(Z.min(axis=0), x), np.maximum(Z.max(axis=0), x)
        axes = (np.linspace(a, b, 121) for a, b in zip(low, high, strict=True))
        grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        check_against(posterior, x, target, level, grid)


@pytest.mark.parametrize(("d", "n"), [(3, 8), (5, 12)])
def test_no_training_row_that_passes_is_nearer(d, n):
    """And no point of a random sample, which is no law but what the search should find."""
    for seed in range(12):
        posterior, x, target, level = small_model(seed, n, d, 1.0, half=2.0)
        Z = posterior.training_inputs
        low, high = np.minimum(Z.min(axis=0), x), np.maximum(Z.max(axis=0), x)
        sample = np.random.default_rng(seed).uniform(low, high, (4000, d))
        check_against(posterior, x, target, level, sample)


def test_rows_are_projected_on_the_features_that_may_change():
    for seed in range(10):
        posterior, x, target, level = small_model(seed, 12, 4, 1.0, half=2.0)
        Z = posterior.training_inputs
        found = Explainer(posterior).counterfactual(
            x, target, level=level, features=[1, 2, 3], prefer="nearest"
        )
        rows = np.column_stack([np.full(len(Z), x[0]), Z[:, 1:]])
        nearest = reached_rows(posterior, rows, x, target, level, Z.std(axis=0))
        assert found.found or nearest == np.inf
        assert not found.found or found.distance <= 1.001 * nearest


@pytest.mark.parametrize(
    ("Z", "y", "x", "target"),
    [
        (  # what is nearest about reaches the target, and cannot be brought to reach it
            [[-0.3, -0.7], [-1.7, 0.9], [-1.1, 3.0], [2.6, 0.4], [-2.4, 0.8]],
            [0.4, 0.2, -0.2, -0.7, -0.3],
            [-2.2, 1.6],
            0.1,
        ),
        (  # one training row passes, in a region that a coarse grid misses
            [[2.7, 0.1], [2.9, -2.5], [0.6, -0.7], [1.8, -2.0], [2.2, 0.3]],
            [0.2, 1.6, 0.3, 0.5, -1.5],
            [-0.8, 2.8],
            1.3,
        ),
    ],
)
def test_regions_that_are_easily_missed(Z, y, x, target):
    kernel = kernels.SquaredExponential(np.ones(2), 1.0)
    posterior = ExactPosterior(kernel, np.array(Z), np.array(y), noise=0.01)
    found = check_against(posterior, np.array(x), target, 0.9, np.array(Z))
    assert found.found
    few = Explainer(posterior).counterfactual(np.array(x), target, level=0.9)
    assert few.found
    assert few.probability >= 0.9


@pytest.mark.parametrize("level", [0.3, 0.9])
def test_one_row_of_many_in_a_category_of_its_own(level):
    """A single measurement passes, which no scan would find, with another category."""
    rng = np.random.default_rng(7)
    n, one = 1200, 1100
    rows = np.column_stack([rng.uniform(-3, 3, (n, 2)), rng.integers(0, 4, n)])
    encoder = Encoder(
        ("a", "b", "k"), {"k": (0.0, 1.0, 2.0, 3.0)}, as_one_feature=True, named=False
    )
    kernel = kernels.SquaredExponential(lengthscale=[0.02, 0.02, 1.0, 1.0, 1.0, 1.0])
    values = np.where(np.arange(n) == one, 9.0, 0.0)
    inner = ExactPosterior(kernel, encoder.encode("X", rows), values, noise=0.01)
    posterior = EncodedPosterior(inner, encoder)
    x = rows[np.flatnonzero(rows[:, 2] != rows[one, 2])[0]]
    found = Explainer(posterior, x).counterfactual(x, 8.0, level=level, prefer="nearest")
    assert found.found
    assert found.counterfactual[2] == rows[one, 2]
    away = np.linalg.norm((rows[one] - x)[:2] / rows[:, :2].std(axis=0))
    assert found.distance <= np.hypot(away, 1.0)
    assert not Explainer(posterior, x).counterfactual(x, 8.0, level=level, features="k").found


def test_units_of_any_size():
    for unit in (1e-12, 1e12):
        found = EXPLAINER.counterfactual(X[1], 1.4, scales=np.full(4, unit), prefer="nearest")
        assert found.found


@pytest.mark.parametrize(
    ("seed", "d", "n_changed", "distance"),
    [
        (6, 5, 5, 3.2),  # a training row pulled towards x leads to it
        (0, 4, 3, 1.802),  # the features that change most when all may
        (2, 5, 4, 3.324),  # four features, from the second best three, and a finer patch of a plane
    ],
)
def test_fewest_features_that_are_hard_to_find(seed, d, n_changed, distance):
    """Answers that were found once, and are lost if one part of the search is left out."""
    posterior, x, target, level = small_model(seed, 12, d, 1.0, half=2.0)
    found = Explainer(posterior).counterfactual(x, target, level=level)
    assert found.found
    assert found.n_changed <= n_changed
    assert found.distance <= distance


def test_two_features_in_wide_bounds():
    """Points of a plane are far apart there, and lead to the nearest once they are pulled to x."""
    posterior, x, target, level = small_model(46, 15, 3, 1.0)
    bounds = np.column_stack([x - 20.0, x + 20.0])
    found = Explainer(posterior).counterfactual(x, target, level=level, bounds=bounds)
    assert found.n_changed == 2
    assert found.distance <= 3.46


def test_regions_that_only_a_spread_over_all_features_finds():
    Z = [
        [0.2, 0.0, 1.2, 1.4],
        [0.0, -0.3, 0.5, -1.1],
        [0.3, -1.0, 0.5, -0.3],
        [0.5, -0.5, -0.1, 1.3],
        [0.3, -0.1, 0.0, 0.1],
        [-2.0, 0.4, 0.4, 1.0],
        [1.1, -1.9, 0.9, 0.3],
        [-0.5, 0.6, 1.3, 0.7],
        [0.5, 0.6, -0.4, 1.0],
        [0.9, -0.7, -0.8, -0.1],
        [-1.6, 1.6, -0.2, -1.0],
        [-0.6, -0.7, 0.2, -0.3],
        [-0.7, 1.4, -1.4, 1.2],
        [1.8, 1.8, -1.7, -1.3],
        [-0.1, 0.6, -1.0, 0.9],
    ]
    y = [0.0, -0.7, 0.6, 1.8, -0.2, -0.6, 0.9, 0.7, -0.9, -1.9, 0.2, -1.6, -1.0, -0.7, 1.1]
    kernel = kernels.Matern52(lengthscale=[1.6, 0.8, 1.9, 1.8])
    posterior = ExactPosterior(kernel, np.array(Z), np.array(y), noise=1e-3)
    found = Explainer(posterior).counterfactual(Z[10], 0.2, scales=[1.4, 2.1, 2.8, 2.0])
    assert found.distance <= 0.948


def test_few_of_many_near_misses_are_refined(monkeypatch):
    """Far from the data the mean is 0 everywhere, a little less than the target."""
    rng = np.random.default_rng(1)
    Z = rng.uniform(-3.0, 3.0, (15, 3))
    posterior = ExactPosterior(
        kernels.SquaredExponential(np.ones(3)), Z, 0.1 * rng.normal(size=15) - 1.0, noise=0.01
    )
    refined = []
    monkeypatch.setattr(few_features, "refine", lambda *_: refined.append(1) or _[1])
    wide = np.column_stack([Z[0] - 30.0, Z[0] + 30.0])
    assert not Explainer(posterior).counterfactual(Z[0], 0.015, level=0.5, bounds=wide).found
    assert len(refined) <= 36  # twelve of two features, of three, and of any
