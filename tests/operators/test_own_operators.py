"""Operators of one's own, each in one file outside the package, through every kind of posterior.

Truth is the posterior's own joint predictive distribution: an operator is a weighted sum of values
of f, exactly for the mean over points, by differences for the Hessian.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from tests.own_operators.hessian import Hessian
from tests.own_operators.mean_over_points import MeanOverPoints

import gpattr
from gpattr.bases import Fourier, Hilbert
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import Constant, Matern52, Select, SquaredExponential
from gpattr.means import Function, Linear
from gpattr.operators import Gradient, IntegratedGradients, Operator, Points
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    EncodedPosterior,
    ExactPosterior,
    LaplacePosterior,
    MixturePosterior,
    MultiOutputPosterior,
    MultiTaskPosterior,
    SparsePosterior,
    WeightSpacePosterior,
)

RNG = np.random.default_rng(4)
Z = RNG.normal(size=(25, 3))
Y = np.sin(Z[:, 0]) + Z[:, 1] * Z[:, 2]
X = RNG.normal(size=(4, 3))
KERNEL = SquaredExponential([1.5, 2.0, 2.5], 1.3) + 0.5 * Select(SquaredExponential(2.0), [0, 2])
EXACT = ExactPosterior(KERNEL + Constant(0.3), Z, Y, noise=0.05, mean=Linear([0.3, 0.1, -0.2], 1.0))
OTHER = ExactPosterior(SquaredExponential(3.0), Z, Y, noise=0.2)
HALF = RNG.normal(size=(12, 5))
WEIGHTS = WeightSpacePosterior(Fourier(RNG.normal(size=(6, 3))), RNG.normal(size=12), root=HALF)
SCALE = {"shift": [0.5, -1.0, 0.2], "scale": [2.0, 0.5, 3.0]}
B = np.array([[1.0, 0.4, 0.1], [0.4, 0.8, -0.2], [0.1, -0.2, 0.6]])
TARGETS = np.stack([Y, Y**2, Z[:, 0]], axis=1)
SINGLE = {
    "exact": EXACT,
    "sparse": SparsePosterior.fit(KERNEL, Z[:12], Z, Y, noise=0.05),
    "latent of a classifier": LaplacePosterior(KERNEL, Z, (Y > 0) * 1.0),
    "weight space": WEIGHTS,
    "mixture": MixturePosterior([EXACT, OTHER], [0.7, 0.3]),
    "affine": AffinePosterior(EXACT, **SCALE),
    "a column used twice": AffinePosterior(
        EXACT, **SCALE, source=[0, 1, 0], n_features=3, feature_names=("a", "b", "c")
    ),
    "combination": CombinationPosterior([EXACT, OTHER], [2.0, -1.0]),
    "scaled mixture": AffinePosterior(MixturePosterior([EXACT, OTHER], [0.7, 0.3]), **SCALE),
}
SEVERAL = {
    "independent": MultiOutputPosterior({"one": EXACT, "two": OTHER}),
    "coregionalised": MultiOutputPosterior.coregionalised(
        SquaredExponential(2.0), Z, TARGETS, covariance=B, noise=0.1
    ),
    "tasks": MultiTaskPosterior(
        SquaredExponential(2.0), Z, Y, np.arange(25) % 3, covariance=B, noise=0.1
    ),
}


@dataclass
class Case:
    """An operator, the points it takes of each row, their weights (q, points), and the accuracy."""

    operator: Operator
    points: np.ndarray
    weights: np.ndarray
    accuracy: float

    def truth(self, posterior, rows):
        """Mean (n, q) and joint covariance (n, q, n, q) from the posterior's own predictions."""
        n, k = len(rows), len(self.points)
        every = (rows[:, None, :] + self.points).reshape(n * k, -1)
        mean, cov = posterior.predict(every, return_cov=True)
        cov = cov.reshape(n, k, n, k)
        joint = np.einsum("ik,nkml,jl->nimj", self.weights, cov, self.weights)
        return mean.reshape(n, k) @ self.weights.T, joint


def differences(step=0.02):
    """Stencils of fourth order for ∂ᵢ∂ⱼ: points (k, 3) and weights (9, k)."""
    nodes = np.array([-2, -1, 0, 1, 2])
    first = np.array([1, -8, 0, 8, -1]) / 12
    second = np.array([-1, 16, -30, 16, -1]) / 12
    points, weights = {}, np.zeros((9, 200))
    for i in range(3):
        for j in range(3):
            pairs = (
                [(a, 0, second[p]) for p, a in enumerate(nodes)]
                if i == j
                else [
                    (a, b, first[p] * first[r])
                    for p, a in enumerate(nodes)
                    for r, b in enumerate(nodes)
                ]
            )
            for a, b, w in pairs:
                point = np.zeros(3, dtype=int)
                point[i] += a
                point[j] += b
                place = points.setdefault(tuple(point), len(points))
                weights[3 * i + j, place] += w / step**2
    return step * np.array(list(points)), weights[:, : len(points)]


OFFSETS = RNG.normal(size=(5, 3))
CASES = {
    "mean over points": Case(MeanOverPoints(OFFSETS), OFFSETS, np.full((1, 5), 0.2), 1e-12),
    "Hessian": Case(Hessian(), *differences(), 2e-5),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", SINGLE)
def test_against_the_posteriors_own_predictions(kind, name):
    posterior, case = SINGLE[kind], CASES[name]
    mean, joint = case.truth(posterior, X)
    size, scale = np.abs(mean).max() + 1e-12, np.einsum("nini->ni", joint).max()
    result = posterior.apply(case.operator, X)
    np.testing.assert_allclose(result.mean, mean, atol=case.accuracy * size)
    assert result.cov.shape == (len(X), mean.shape[1], mean.shape[1])
    # Differences of predictions lose digits that the formula keeps.
    lost = 1e-7 if name == "Hessian" else 0.0
    own = np.einsum("ninj->nij", joint)
    np.testing.assert_allclose(result.cov, own, atol=20 * case.accuracy * scale + lost)
    np.testing.assert_allclose(
        posterior.joint(case.operator, X), joint, atol=20 * case.accuracy * scale + lost
    )
    for uncertainty in ("std", "none"):
        other = posterior.apply(case.operator, X, uncertainty=uncertainty)
        np.testing.assert_allclose(other.mean, result.mean, atol=1e-11 * size)
        if uncertainty == "std":
            np.testing.assert_allclose(
                other.var, np.diagonal(result.cov, axis1=1, axis2=2), atol=1e-11 * scale
            )
    if kind in ("exact", "affine", "mixture", "combination"):
        shares = posterior.contributions(case.operator, X)
        assert shares.shape == (len(X), mean.shape[1], len(Z))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", SEVERAL)
def test_several_outputs(kind, name):
    posterior, operator = SEVERAL[kind], CASES[name].operator
    results, across = posterior.apply(operator, X), posterior.across(operator, X)
    for o, (output, result) in enumerate(results.items()):
        alone = posterior[output].apply(operator, X)
        np.testing.assert_allclose(result.mean, alone.mean, atol=1e-11)
        np.testing.assert_allclose(across[:, :, o, :, o], alone.cov, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["exact", "mixture", "coregionalised"])
def test_explanations_frames_and_files(kind, name, tmp_path):
    posterior, operator = (SINGLE | SEVERAL)[kind], CASES[name].operator
    shape = {"mean over points": (), "Hessian": (3, 3)}[name]
    several = kind in SEVERAL
    ex = gpattr.Explainer(posterior, attribution=operator)(X)
    one = ex["y0"] if several else ex
    assert one.values.shape == (len(X), *shape)
    assert one.cov.shape == (len(X), *shape, *shape)
    assert one.axes == operator.axes
    assert one.baseline_name == "none"
    assert np.isnan(one.base_values).all()
    assert one.sample(3, random_state=0).shape == (3, len(X), *shape)
    frame = ex.to_frame()
    assert len(frame) == len(X) * int(np.prod(shape)) * (len(posterior) if several else 1)
    ex.save(tmp_path / "ex.json")
    assert gpattr.Explanation.load(tmp_path / "ex.json") == ex
    np.testing.assert_array_equal(one[1:3].values, one.values[1:3])
    if name == "Hessian":
        np.testing.assert_allclose(one.values, np.swapaxes(one.values, 1, 2), atol=1e-12)
        assert one[0, ["x0", "x2"]].values.shape == (1, 2, 2)


FRAME = pd.DataFrame({"a": Z[:, 0], "kind": np.array(["u", "v"])[np.arange(25) % 2], "b": Z[:, 1]})
ENCODER = Encoder(("a", "kind", "b"), {"kind": ("u", "v")})
ENCODED = EncodedPosterior(
    ExactPosterior(SquaredExponential(2.0), ENCODER.encode("X", FRAME), Y, noise=0.1), ENCODER
)


def test_encoded_columns():
    """A scalar operator goes through; values of columns that do not add up are refused by name."""
    operator = MeanOverPoints([[0.3, 0.0, 0.0, 0.1], [-0.2, 0.0, 0.0, 0.0]])
    ex = gpattr.Explainer(ENCODED, attribution=operator)(FRAME[:4])
    rows = ENCODER.encode("X", FRAME[:4])
    truth = np.mean([ENCODED.predict(rows + offset) for offset in operator.offsets], axis=0)
    np.testing.assert_allclose(ex.values, truth, atol=1e-12)
    assert ex.labels["kind"] == ("u", "v", "u", "v")
    for refused in (Hessian(), Gradient()):
        with pytest.raises(UnsupportedModelError, match=f"{type(refused).__name__}: its values of"):
            gpattr.Explainer(ENCODED, attribution=refused)(FRAME[:4])


@pytest.mark.parametrize(
    ("posterior", "words"),
    [
        (ExactPosterior(Matern52(), Z, Y, noise=0.1), r"Hessian of Matern52: there is no formula"),
        (
            ExactPosterior(
                SquaredExponential(),
                Z,
                Y,
                noise=0.1,
                mean=Function(lambda X: X[:, 0], lambda X: np.eye(1, 3) + 0.0 * X),
            ),
            r"Hessian of Function: .*register_mean adds one",
        ),
        (
            WeightSpacePosterior(Hilbert([0.0] * 3, [9.0] * 3, (1, 1, 1)), [1.0], [[1.0]]),
            r"Hessian of Hilbert: .*register_basis adds one",
        ),
    ],
)
def test_what_has_no_entry_is_refused_by_name(posterior, words):
    with pytest.raises(UnsupportedModelError, match=words):
        posterior.apply(Hessian(), X)


class Bare(Operator):
    """The gradient, without a word on units."""

    vanishes_on_constants = True

    def terms(self, X):
        return [(1.0, Points(X))]


class Wrong(Bare):
    """It promises one number a row, and its formula returns one a feature."""

    axes = ()


class Grid(Bare):
    """It has an axis whose size nobody knows."""

    axes = ("grid",)


def derivative(kernel, points, Z):
    left = gpattr.closed_forms.differentiate(kernel, points.X[:, None, :], Z).left
    return np.swapaxes(left, 1, 2)


def mixed(kernel, points, other):
    return gpattr.closed_forms.differentiate(kernel, points.X, other.X, True).mixed


def test_bad_operators_are_named():
    for kind in (Bare, Wrong, Grid):
        gpattr.closed_forms.register(kind, gpattr.kernels.Kernel, cross=derivative, between=mixed)
    np.testing.assert_allclose(
        OTHER.apply(Bare(), X).mean, OTHER.apply(Gradient(), X).mean, atol=1e-14
    )
    with pytest.raises(UnsupportedModelError, match="Bare: it does not define `in_units`"):
        AffinePosterior(OTHER, **SCALE).apply(Bare(), X)
    with pytest.raises(InvalidInputError, match=r"Wrong: .* for the axes \(\), got \(4, 3"):
        OTHER.apply(Wrong(), X)
    with pytest.raises(UnsupportedModelError, match="Grid: expected `sizes` .* axis 'grid'"):
        OTHER.apply(Grid(), X)
    for options, words in [
        (
            {"method": "right", "n_steps": 5},
            'method: Gradient supports "auto", "exact", got "right"',
        ),
        ({"method": "quadrature"}, 'got "quadrature"'),
    ]:
        with pytest.raises(InvalidInputError, match=words):
            OTHER.apply(Gradient(), X, **options)


class Ablation(Operator):
    """𝒜ᵢf(x) = f(x with xᵢ = 0): it is not 0 where f does not depend on xᵢ."""

    def terms(self, X):
        return [(-1.0, Points(X))]


def ablated(points):
    """The points with each feature at 0 in turn, (n, d, d)."""
    return points.X[:, None, :] * (1.0 - np.eye(points.X.shape[1]))


def ablated_cross(kernel, points, Z):
    rows = ablated(points)
    return kernel(rows.reshape(-1, rows.shape[2]), Z).reshape(*rows.shape[:2], -1)


def ablated_between(kernel, points, other):
    one, two = ablated(points)[:, :, None, :], ablated(other)[:, None, :, :]
    return gpattr.closed_forms.differentiate(kernel, one, two).value


def test_negative_weights_and_features_that_a_kernel_does_not_see():
    gpattr.closed_forms.register(
        Ablation, gpattr.kernels.Kernel, cross=ablated_cross, between=ablated_between
    )
    kernel = SquaredExponential(1.5) + 2.0 * Select(SquaredExponential(1.0), [1])
    posterior = ExactPosterior(kernel, Z, Y, noise=0.1)
    result = posterior.apply(Ablation(), X)
    rows = ablated(Points(X)).reshape(-1, 3)
    mean, cov = posterior.predict(rows, return_cov=True)
    np.testing.assert_allclose(result.mean, -mean.reshape(4, 3), atol=1e-12)
    own = np.einsum("ninj->nij", cov.reshape(4, 3, 4, 3))
    np.testing.assert_allclose(result.cov, own, atol=1e-12)
    assert (result.error > 0).all()
    assert (result.cov_error > 0).all()
    assert (posterior.apply(Ablation(), X, uncertainty="none").error > 0).all()


def test_arrays_that_a_formula_keeps_are_not_written_to():
    class Kept(Bare):
        pass

    kept = {}

    def cross(kernel, points, Z):
        return kept.setdefault(len(points.X), derivative(kernel, points, Z).copy(order="C"))

    gpattr.closed_forms.register(Kept, gpattr.kernels.Kernel, cross=cross, between=mixed)
    first, second = (OTHER.apply(Kept(), X) for _ in range(2))
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.cov, second.cov)


class Along(Operator):
    """The gradient along a vector: a sum of outputs behind scaled inputs."""

    axes = ()

    def __init__(self, vector):
        self.vector = np.asarray(vector)

    def terms(self, X):
        raise NotImplementedError

    def in_units(self, units):
        return Gradient()

    def pull_back(self, units, like):
        return units.jacobian(like) @ self.vector[:, None]


def test_sums_of_outputs_behind_scaled_inputs():
    posterior, vector = AffinePosterior(OTHER, **SCALE), np.array([1.0, -2.0, 0.5])
    gradient = posterior.apply(Gradient(), X)
    var = np.einsum("i,nij,j->n", vector, gradient.cov, vector)
    for uncertainty in ("cov", "std"):
        result = posterior.apply(Along(vector), X, uncertainty=uncertainty)
        np.testing.assert_allclose(result.mean[:, 0], gradient.mean @ vector, atol=1e-13)
        np.testing.assert_allclose(result.var[:, 0], var, atol=1e-13)
    wrong = Along(vector)
    wrong.pull_back = lambda units, like: np.ones((3, 2))
    with pytest.raises(InvalidInputError, match=r"Along: expected an array of shape \(3, 1\)"):
        posterior.apply(wrong, X)


class Grids(MeanOverPoints):
    """Values on a grid of offsets and at two times: two axes of one's own."""

    axes = ("grid", "time")

    @property
    def coordinates(self):
        return {"grid": ("low", "high")}

    def sizes(self, d):
        return 2, 3

    def terms(self, X):
        return [(1.0, Points(X))]


def grid_cross(kernel, points, Z):
    return np.repeat(kernel(points.X, Z)[:, None, :], 6, axis=1)


def grid_between(kernel, points, other):
    value = gpattr.closed_forms.differentiate(kernel, points.X, other.X).value
    return np.broadcast_to(value[:, None, None], (len(value), 6, 6))


def test_two_axes_of_ones_own(tmp_path):
    gpattr.closed_forms.register(
        Grids, gpattr.kernels.Kernel, cross=grid_cross, between=grid_between
    )
    ex = gpattr.Explainer(OTHER, attribution=Grids([[0.0] * 3]))(X)
    assert ex.values.shape == (4, 2, 3)
    assert ex.cov.shape == (4, 2, 3, 2, 3)
    assert list(ex.to_frame()["grid"][:6]) == ["low"] * 3 + ["high"] * 3
    ex.save(tmp_path / "ex.json")
    assert gpattr.Explanation.load(tmp_path / "ex.json") == ex


def test_explainers_and_outputs_cannot_be_changed():
    explainer = gpattr.Explainer(EXACT)
    with pytest.raises(ValueError, match="read-only"):
        explainer.baseline[0] = 9.0
    with pytest.raises(AttributeError):
        explainer.baseline = Z[0]
    with pytest.raises(TypeError):
        SEVERAL["independent"].outputs["three"] = EXACT
    with pytest.raises(InvalidInputError, match="scale: it is the old name of output"):
        gpattr.Explainer(EXACT, scale="latent", output="probability")


def test_rows_of_an_operator_go_with_its_batches():
    """An operator with a baseline for each row is cut as the rows are."""
    rows, own = RNG.normal(size=(2, 10, 3))
    explainer = gpattr.Explainer(EXACT, attribution=IntegratedGradients(own))
    whole = explainer(rows)
    parts = gpattr.Explanation.concatenate(explainer.batches(rows, batch_size=4))
    np.testing.assert_allclose(parts.values, whole.values, atol=1e-14)
    np.testing.assert_array_equal(parts.baselines, own)
    with pytest.raises(InvalidInputError, match="expected one row per row of X"):
        explainer(rows[:5])
    with pytest.raises(InvalidInputError, match="baseline: expected 3 columns, got 2"):
        gpattr.Explainer(EXACT, attribution=IntegratedGradients(np.zeros(2)))(rows)


class Loose(Bare):
    """Its terms are not a list."""

    def terms(self, X):
        return Points(X)


def test_shapes_and_terms_that_do_not_fit_are_named():
    gpattr.closed_forms.register(
        Loose, gpattr.kernels.Kernel, cross=lambda k, p, Z: k(p.X, Z), between=mixed
    )
    with pytest.raises(InvalidInputError, match=r"Loose: expected a list of \(weight, sites\)"):
        OTHER.apply(Loose(), X)
    gpattr.closed_forms.register(
        Bare, gpattr.kernels.Kernel, cross=lambda k, p, Z: k(p.X, Z), between=mixed
    )
    with pytest.raises(InvalidInputError, match=r"cross: expected an array \(n, q, m\) from"):
        OTHER.apply(Bare(), X)
    with pytest.raises(UnsupportedModelError, match="training_contributions are defined for"):
        gpattr.Explainer(EXACT, attribution=Hessian()).training_contributions(X[0], "x1")


def test_bad_attributions_are_named():
    for wrong in ("shap", 3, None, IntegratedGradients):
        with pytest.raises(InvalidInputError, match='attribution: expected "integrated_gradients"'):
            gpattr.Explainer(EXACT, attribution=wrong)
    with pytest.raises(InvalidInputError, match="baseline: Hessian has its own baseline"):
        gpattr.Explainer(EXACT, "zeros", attribution=Hessian())
    with pytest.raises(InvalidInputError, match="baselines: Hessian has its own"):
        gpattr.Explainer(EXACT, attribution=Hessian())(X, X)
    with pytest.raises(UnsupportedModelError, match="importance is defined for one"):
        gpattr.Explainer(EXACT, attribution=Hessian()).importance(X)
    classifier = SINGLE["latent of a classifier"]
    with pytest.raises(InvalidInputError, match='output="probability" supports only'):
        gpattr.Explainer(classifier, attribution=Gradient(), output="probability")


def test_an_operator_with_a_baseline_is_complete():
    """Integrated gradients given as an operator are those of the same baseline."""
    ex = gpattr.Explainer(EXACT, attribution=IntegratedGradients(Z[0]))(X)
    same = gpattr.Explainer(EXACT, Z[0])(X)
    np.testing.assert_array_equal(ex.values, same.values)
    np.testing.assert_array_equal(ex.base_values, same.base_values)
    assert ex.baseline_name == "given point"
