"""scikit-learn's models as they are: predictions at 1e-8, attributions against its own joint
predictive distribution.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import ARDRegression, BayesianRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from tests.reference.brute_force import assert_same_attributions

import gpattr
from gpattr import Explainer, GPRegressor, MultiOutputGPRegressor
from gpattr.exceptions import InvalidInputError, NotFittedError, UnsupportedModelError

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}"
)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * RNG.normal(size=30) + 5.0
x, b = np.array([0.7, -0.4]), np.array([-0.5, 0.3])
THROUGH_ORIGIN = DotProduct(0.0, "fixed")  # scikit-learn takes the logarithm of what is not fixed
KERNELS = {
    "RBF": ConstantKernel(2.0) * RBF(0.8) + WhiteKernel(0.05),
    "ARD": RBF([0.8, 1.3]) + WhiteKernel(0.05),
    "Matern52": Matern([1.0, 1.4], nu=2.5) + WhiteKernel(0.05),
    "Matern32": Matern(1.2, nu=1.5) + WhiteKernel(0.05),
    "Matern 7/2": Matern([1.2, 0.9], nu=3.5) + WhiteKernel(0.05),
    "Matern 1.8": 0.7 * Matern(1.2, nu=1.8) + WhiteKernel(0.05),
    "Matern inf": Matern(1.2, nu=np.inf) + WhiteKernel(0.05),
    "RationalQuadratic": RationalQuadratic(1.1, 0.7) + WhiteKernel(0.05),
    "DotProduct": DotProduct(0.5) + 0.3 * RBF(1.0) + WhiteKernel(0.1),
    "powers": DotProduct(0.5) ** 2
    + RBF(1.0) ** 1.5 * RationalQuadratic(1.0, 2.0) ** 2
    + WhiteKernel(0.1),
    "DotProduct without offset": THROUGH_ORIGIN + WhiteKernel(0.1),
    "square without offset": THROUGH_ORIGIN**2 + WhiteKernel(0.1),
    "powers without offset": (THROUGH_ORIGIN**2 * DotProduct(0.7)) ** 2
    + DotProduct(1e-200, "fixed") ** 3
    + WhiteKernel(0.1),
    "products without offset": THROUGH_ORIGIN * RBF(1.0)
    + THROUGH_ORIGIN**2 * Matern(1.5, nu=2.5)
    + WhiteKernel(0.1),
    "Matern squared": Matern(1.5, nu=2.5) ** 2 + WhiteKernel(0.1),
    "White in a product": (RBF(1.0) + WhiteKernel(0.2)) * (ConstantKernel(0.7) + RBF(2.0))
    + WhiteKernel(0.01),
    "White in a power": (RBF(1.0) + WhiteKernel(0.2)) ** 2,
    "White with a trend": RBF(1.0) + WhiteKernel(0.1) * DotProduct(1.0),
    "nested": 0.5 * (RBF(0.9) + DotProduct(1.0)) * (Matern(2.0, nu=2.5) + 0.3) + WhiteKernel(0.1),
}


def fitted(kernel, y=Y, X=X, **options):
    return GaussianProcessRegressor(kernel, optimizer=None, **options).fit(X, y)


def joint_of(model):
    """The library's joint distribution of f; White is on the diagonal of its covariance, and what
    one kernel call leaves out.
    """

    def joint(points):
        mean, cov = model.predict(points, return_cov=True)
        white = model.kernel_.diag(points) - np.diagonal(model.kernel_(points, points.copy()))
        return mean, cov - np.diag(white) * model._y_train_std**2

    return joint


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name, normalize):
    model = fitted(KERNELS[name], normalize_y=normalize)
    posterior = gpattr.as_posterior(model)
    points = RNG.normal(size=(20, 2)) * 2
    mean, cov = joint_of(model)(points)
    ours, C = posterior.predict(points, return_cov=True)
    np.testing.assert_allclose(ours, mean, atol=1e-8 * np.abs(mean).max())
    np.testing.assert_allclose(C, cov, atol=1e-8 * np.abs(cov).max())
    ex = Explainer(model, b)(x[None])
    kinks = {
        "Matern32": 1.5,
        "Matern 1.8": 1.5,
        "Matern52": 2.5,
        "Matern 7/2": 2.5,
        "Matern squared": 2.5,
    }
    kinks = (kinks | {"products without offset": 2.5}).get(name)
    assert_same_attributions(ex, joint_of(model), b, kinks=kinks)
    assert ex.predictions[0] == pytest.approx(model.predict(x[None])[0], rel=1e-10)


def test_periodic_in_one_dimension():
    model = fitted(
        ExpSineSquared(1.2, 3.0) + 0.5 * ExpSineSquared(0.8, 2.0) ** 2 + WhiteKernel(0.1),
        X=X[:, :1],
    )
    assert_same_attributions(Explainer(model, b[:1])(x[None, :1]), joint_of(model), b[:1])
    with pytest.raises(
        UnsupportedModelError, match="ExpSineSquared of 2 features .* not positive definite"
    ):
        Explainer(
            GaussianProcessRegressor(ExpSineSquared() + WhiteKernel(10.0), optimizer=None).fit(X, Y)
        )


def test_trained_models_and_noise_of_each_row():
    alpha = RNG.uniform(0.01, 0.2, size=30)
    model = GaussianProcessRegressor(
        ConstantKernel() * RBF([1.0, 1.0]), alpha=alpha, normalize_y=True
    ).fit(X, Y)
    ex = Explainer(model, b)(x[None])
    assert_same_attributions(ex, joint_of(model), b)
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-10)


def test_several_targets():
    rows = np.column_stack([Y, 100.0 * X[:, 0]])
    model = fitted(RBF(1.0) + WhiteKernel(0.1), rows, normalize_y=True)
    ex = Explainer(model, b)(X[:3])
    np.testing.assert_allclose(ex.predictions, model.predict(X[:3]), rtol=1e-9)
    for o in range(2):
        single = Explainer(fitted(RBF(1.0) + WhiteKernel(0.1), rows[:, o], normalize_y=True), b)(
            X[:3]
        )
        np.testing.assert_allclose(ex.values[..., o], single.values, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ex.cov[..., o], single.cov, rtol=1e-9, atol=1e-12)


def test_frames_carry_their_names():
    frame = pd.DataFrame(X, columns=["alpha", "beta"])
    model = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), optimizer=None).fit(frame, Y)
    ex = Explainer(model)(frame[["beta", "alpha"]][:3])
    assert ex.feature_names == ("alpha", "beta")
    np.testing.assert_allclose(ex.predictions, model.predict(frame[:3]), rtol=1e-10)


def test_models_in_float32():
    model = fitted(RBF(1.0) + WhiteKernel(0.1), X=X.astype(np.float32))
    assert_same_attributions(Explainer(model, b)(x[None]), joint_of(model), b)


def test_two_classes():
    labels = np.where(Y > 5.5, "high", "low")
    model = GaussianProcessClassifier(ConstantKernel(4.0) * RBF(1.0)).fit(X, labels)
    ex = Explainer(model, b)(X[:4])
    np.testing.assert_allclose(ex.predictions, model.latent_mean_and_variance(X[:4])[0], rtol=1e-10)
    assert ex.quantity == "log odds of 'low' against 'high'"
    std = gpattr.as_posterior(model).predict(X[:4], return_std=True)[1]
    np.testing.assert_allclose(std**2, model.latent_mean_and_variance(X[:4])[1], rtol=1e-8)
    probability = Explainer(model, b, output="probability", n_draws=50)(X[:4])
    np.testing.assert_allclose(probability.predictions, model.predict_proba(X[:4])[:, 1], atol=2e-3)
    assert (np.abs(probability.delta) <= probability.error).all()


def test_more_classes():
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    model = GaussianProcessClassifier(RBF(1.0)).fit(X, labels)
    ex = Explainer(model, b)(X[:4])
    assert ex.output_names == ("0", "1", "2")
    for k, binary in enumerate(model.base_estimator_.estimators_):
        np.testing.assert_allclose(
            ex.predictions[:, k], binary.latent_mean_and_variance(X[:4])[0], rtol=1e-9
        )
    with pytest.raises(
        UnsupportedModelError, match='multi_class: expected "one_vs_rest", got "one_vs_one"'
    ):
        Explainer(GaussianProcessClassifier(RBF(1.0), multi_class="one_vs_one").fit(X, labels))


@pytest.mark.parametrize(
    "model",
    [
        BayesianRidge(),
        ARDRegression(),
        BayesianRidge(fit_intercept=False),
        ARDRegression(threshold_lambda=10.0),
    ],
)
def test_linear_models(model):
    rows = np.column_stack([X * [1.0, 30.0], RNG.normal(size=30)]) + [5.0, 100.0, 0.0]
    model.fit(rows, Y + rows[:, 0])
    base = np.array([4.0, 90.0, 1.0])
    ex = Explainer(model, base)(rows[:3])
    mean, std = model.predict(rows[:3], return_std=True)
    np.testing.assert_allclose(ex.predictions, mean, rtol=1e-12)
    np.testing.assert_allclose(ex.values, model.coef_ * (rows[:3] - base), rtol=1e-12, atol=1e-15)
    latent = gpattr.as_posterior(model).predict(rows[:3], return_std=True)[1]
    np.testing.assert_allclose(latent**2 + 1.0 / model.alpha_, std**2, rtol=1e-9)
    step = rows[0] - base
    gain = step @ (np.linalg.lstsq(np.diag(step), ex.cov[0], rcond=None)[0] @ np.ones(3))
    assert gain == pytest.approx(ex.cov[0].sum(), rel=1e-9)


SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler((-1, 3)),
    MaxAbsScaler(),
]
SCALERS += [
    RobustScaler(),
    RobustScaler(with_centering=False),
    FunctionTransformer(),
    SimpleImputer(),
    "passthrough",
]


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_pipelines_of_scalers(scaler):
    rows = X * [10.0, 0.01] + [100.0, 3.0]
    model = make_pipeline(scaler, StandardScaler(), fitted(RBF([0.8, 1.2]) + WhiteKernel(0.1))).fit(
        rows, Y
    )
    start, end = b * [10.0, 0.01] + [100.0, 3.0], x * [10.0, 0.01] + [100.0, 3.0]
    ex = Explainer(model, start)(end[None])

    def joint(points):
        return joint_of(model[-1])(model[:-1].transform(points))

    assert_same_attributions(ex, joint, start)
    np.testing.assert_allclose(
        Explainer(model)(end[None]).baselines[0], rows.mean(axis=0), rtol=1e-10
    )


@pytest.mark.parametrize("steps", [["passthrough"], ["passthrough", StandardScaler()]], ids=len)
def test_names_behind_a_step_that_is_passed_through(steps):
    frame = pd.DataFrame(X, columns=["size", "age"])
    model = make_pipeline(*steps, GaussianProcessRegressor(alpha=0.1, optimizer=None)).fit(frame, Y)
    explainer = Explainer(model)
    expected = explainer(frame[:3])
    assert expected.feature_names == explainer(X[:3]).feature_names == ("size", "age")
    np.testing.assert_array_equal(explainer(frame[["age", "size"]][:3]).values, expected.values)


def test_selections_and_columns_that_are_used_twice():
    rows = np.column_stack([X, RNG.normal(size=30)])
    chosen = make_pipeline(SelectKBest(f_regression, k=2), fitted(RBF(1.0) + WhiteKernel(0.1))).fit(
        rows, Y
    )
    ex = Explainer(chosen)(rows[:3])
    unused = np.flatnonzero(~chosen[0].get_support())
    np.testing.assert_array_equal(ex.values[:, unused], 0.0)
    np.testing.assert_array_equal(ex.cov[:, unused], 0.0)
    twice = ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [1, 2])])
    model = make_pipeline(
        twice, GaussianProcessRegressor(RBF(np.ones(4)) + WhiteKernel(0.1), optimizer=None)
    ).fit(rows, Y)
    base, row = rows[0], rows[1]

    def joint(points):
        return joint_of(model[-1])(model[:-1].transform(points))

    assert_same_attributions(Explainer(model, base)(row[None]), joint, base)
    lean = Explainer(model, base)(row[None], uncertainty="std")
    np.testing.assert_allclose(lean.var, Explainer(model, base)(row[None]).var, rtol=1e-12)


FRAME = pd.DataFrame(
    {"size": X[:, 0] * 10, "color": RNG.choice(["red", "green", "blue"], 30), "age": X[:, 1] + 50}
)
TARGET = Y + 2.0 * (FRAME.color == "red") - (FRAME.color == "blue")


@pytest.mark.parametrize("drop", [None, "first"])
def test_categories_come_back_as_one_feature(drop):
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["size", "age"]),
            ("labels", OneHotEncoder(drop=drop), ["color"]),
        ]
    )
    width = 5 if drop is None else 4
    model = make_pipeline(
        columns,
        GaussianProcessRegressor(
            RBF(np.ones(width)) + WhiteKernel(0.1), optimizer=None, normalize_y=True
        ),
    )
    model.fit(FRAME, TARGET)
    explainer = Explainer(model)
    ex = explainer(FRAME[["age", "color", "size"]][:4])
    assert ex.feature_names == ("size", "color", "age")
    np.testing.assert_allclose(ex.predictions, model.predict(FRAME[:4]), rtol=1e-9)
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-9)
    np.testing.assert_array_equal(ex.data[:, [0, 2]], FRAME[["size", "age"]][:4])
    # By hand: the same in the space of the encoded columns, added up.
    encoded = np.asarray(columns.transform(FRAME), dtype=float)
    inner = Explainer(model[-1], encoded.mean(axis=0))(encoded[:4])
    by_hand = inner.group({"color": list(range(2, width))})
    np.testing.assert_allclose(ex.values[:, 1], by_hand.values[:, 2], atol=1e-10)
    np.testing.assert_allclose(ex.cov[:, 1, 1], by_hand.cov[:, 2, 2], atol=1e-10)
    np.testing.assert_allclose(ex.cov[:, 1, 0], by_hand.cov[:, 2, 0], atol=1e-10)
    short = explainer(FRAME[:4], uncertainty="std")
    assert short.cov is None
    np.testing.assert_allclose(short.std, explainer(FRAME[:4]).std, atol=1e-12)
    point = Explainer(model, baseline=FRAME.iloc[0])(FRAME[:2])
    np.testing.assert_array_equal(point.values[0], 0.0)
    same = Explainer(model, baseline=FRAME.iloc[[0]])(FRAME[:2])
    np.testing.assert_array_equal(point.values, same.values)
    own = explainer(FRAME[:2], baselines=FRAME[2:4])
    np.testing.assert_allclose(own.base_values, model.predict(FRAME[2:4]), rtol=1e-9)
    assert explainer.joint(FRAME[:2]).shape == (2, 3, 2, 3)
    np.testing.assert_allclose(
        explainer.joint(FRAME[:2])[0, :, 0], explainer(FRAME[:2]).cov[0], atol=1e-10
    )
    importance = explainer.importance(FRAME[:5], n_samples=100)
    assert importance.feature_names == ("size", "color", "age")
    shares = explainer.training_contributions(FRAME.iloc[[3]], "color")
    assert shares.sum() == pytest.approx(explainer(FRAME.iloc[[3]]).values[0, 1], abs=1e-9)
    with pytest.raises(
        InvalidInputError,
        match=r"X: expected one of \['blue', 'green', 'red'\] in column 'color', got 'pink'",
    ):
        explainer(FRAME[:1].assign(color="pink"))
    with pytest.raises(InvalidInputError, match="X: expected a frame with the columns"):
        explainer(np.ones((2, 3)))
    with pytest.raises(InvalidInputError, match="missing \\['color'\\]"):
        explainer(FRAME[["size", "age"]])
    with pytest.raises(InvalidInputError, match="feature_names"):
        Explainer(model, feature_names=["a", "b", "c"])


def test_targets_in_other_units():
    inner = make_pipeline(StandardScaler(), fitted(RBF(1.0) + WhiteKernel(0.1)))
    model = TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, 1000.0 * Y)
    ex = Explainer(model, b)(X[:3])
    np.testing.assert_allclose(ex.predictions, model.predict(X[:3]), rtol=1e-10)
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-7)
    plain = Explainer(model.regressor_, b)(X[:3])
    np.testing.assert_allclose(ex.cov, plain.cov * model.transformer_.scale_**2, rtol=1e-10)
    logarithmic = TransformedTargetRegressor(inner, func=np.log, inverse_func=np.exp).fit(
        X, np.exp(Y / 5)
    )
    ex = Explainer(logarithmic, b)(X[:3])
    assert "of the transformed target (FunctionTransformer is not known to be affine)" in ex.method
    np.testing.assert_allclose(np.exp(ex.predictions), logarithmic.predict(X[:3]), rtol=1e-10)


def test_several_targets_in_other_units_behind_a_pipeline():
    targets = np.column_stack([1000.0 * Y, X[:, 0] * X[:, 1] - 3.0])
    inner = make_pipeline(StandardScaler(), MinMaxScaler(), fitted(RBF(1.0), alpha=0.1))
    model = TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, targets)
    explainer = Explainer(model, b)
    ex = explainer(x[None])
    np.testing.assert_allclose(ex.predictions, model.predict(x[None]), rtol=1e-9)
    for i, name in enumerate(("y0", "y1")):
        unit = model.transformer_.scale_[i]

        def in_units(points):
            mean, cov = model.regressor_.predict(points, return_cov=True)
            return model.transformer_.mean_[i] + unit * mean[:, i], unit**2 * cov[..., i]

        assert_same_attributions(ex[name], in_units, b)
    across = explainer.across_outputs(x[None])[0]
    np.testing.assert_allclose(across[:, 1, :, 1], ex["y1"].cov[0], rtol=1e-10)
    np.testing.assert_array_equal(across[:, 0, :, 1], 0.0)
    coupled = make_pipeline(
        StandardScaler(), MultiOutputGPRegressor(outputs="coregionalised", optimize=False)
    )
    with pytest.raises(UnsupportedModelError, match="targets of correlated outputs"):
        Explainer(
            TransformedTargetRegressor(coupled, transformer=StandardScaler()).fit(X, targets), b
        )


def test_notes_are_not_written_into_models_of_ours():
    model = TransformedTargetRegressor(
        GPRegressor(optimize=False), func=np.log, inverse_func=np.exp
    ).fit(X, np.exp(Y / 5))
    assert "is not known to be affine" in Explainer(model, b)(X[:2]).method
    assert Explainer(model.regressor_, b)(X[:2]).method == "closed form"
    rows = np.column_stack([Y, X[:, 0]])
    several = TransformedTargetRegressor(
        MultiOutputGPRegressor(optimize=False), func=np.exp, inverse_func=np.log
    ).fit(X, rows)
    ex = Explainer(several, b)(X[:2])
    assert "is not known to be affine" in ex["y1"].method
    assert Explainer(several.regressor_, b)(X[:2])["y1"].method == "closed form"


def test_searches_and_models_of_ours_in_pipelines():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), fitted(RBF(1.0) + WhiteKernel(0.1))),
        {"gaussianprocessregressor__alpha": [1e-3, 1e-1]},
    )
    search.fit(X, Y)
    assert Explainer(search, b)(X[:2]) == Explainer(search.best_estimator_, b)(X[:2])
    ours = make_pipeline(StandardScaler(), GPRegressor()).fit(X, Y)
    np.testing.assert_allclose(
        Explainer(ours, b)(X[:3]).predictions, ours.predict(X[:3]), rtol=1e-12
    )


def test_outputs_that_belong_together_still_do_in_a_pipeline():
    targets = np.column_stack([Y, 3.0 * Y + X[:, 0]])
    rows = X * [10.0, 0.1] + [5.0, 0.0]
    model = make_pipeline(StandardScaler(), MultiOutputGPRegressor(outputs="coregionalised")).fit(
        rows, targets
    )
    inner, scaled = model[-1], model[:-1].transform(rows)
    outside = Explainer(model).across_outputs(rows[:3])
    np.testing.assert_allclose(
        outside,
        Explainer(inner).across_outputs(scaled[:3]),
        rtol=1e-8,
        atol=1e-10 * np.abs(outside).max(),
    )
    assert np.abs(outside[:, :, 0, :, 1]).max() > 0.1 * np.abs(outside[:, :, 0, :, 0]).max()
    ex = Explainer(model)(rows[:3])
    np.testing.assert_allclose(ex.predictions, model.predict(rows[:3]), rtol=1e-10)
    np.testing.assert_allclose(ex["y1"].cov, outside[:, :, 1, :, 1], rtol=1e-9, atol=1e-12)


def test_probabilities_behind_scalers():
    rows = X * [10.0, 0.1] + [5.0, 0.0]
    model = make_pipeline(
        StandardScaler(), GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None)
    ).fit(rows, Y > 5.5)
    scaled = model[:-1].transform(rows)
    options = {"output": "probability", "n_draws": 2000}
    outside, inside = (
        Explainer(model, **options)(rows[:3]),
        Explainer(model[-1], scaled.mean(axis=0), **options)(scaled[:3]),
    )
    np.testing.assert_allclose(outside.values, inside.values, atol=1e-9)
    np.testing.assert_allclose(outside.draws, inside.draws, atol=1e-4)
    assert outside.quantity == "probability of True against False"


def test_the_model_is_not_changed():
    model = make_pipeline(
        StandardScaler(), GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), normalize_y=True)
    ).fit(X, Y)
    before = {
        name: np.array(value)
        for name, value in vars(model[-1]).items()
        if isinstance(value, np.ndarray)
    }
    Explainer(model)(X[:3])
    assert all(np.array_equal(value, vars(model[-1])[name]) for name, value in before.items())


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            GaussianProcessRegressor(PairwiseKernel(metric="laplacian")),
            "PairwiseKernel with metric='laplacian' is not supported; supported are 'linear'",
        ),
        (
            GaussianProcessRegressor(Matern(nu=0.9), alpha=0.1, optimizer=None),
            "a Matern with nu=0.9 have no gradients",
        ),
        (
            GaussianProcessRegressor(Matern(nu=2.5) ** 1.5 + WhiteKernel(0.1), optimizer=None),
            "Matern to the power 1.5 is not supported",
        ),
        (
            make_pipeline(PolynomialFeatures(), GaussianProcessRegressor()),
            "PolynomialFeatures is not supported; supported are",
        ),
        (
            make_pipeline(QuantileTransformer(n_quantiles=10), GaussianProcessRegressor()),
            "QuantileTransformer is not supported",
        ),
        (
            make_pipeline(MinMaxScaler(clip=True), GaussianProcessRegressor()),
            r"MinMaxScaler\(clip=True\) is not affine",
        ),
        (
            make_pipeline(FunctionTransformer(np.exp), GaussianProcessRegressor()),
            "a user-defined function is not supported",
        ),
        (RandomForestRegressor(2), "got sklearn.ensemble._forest.RandomForestRegressor"),
    ],
    ids=str,
)
def test_what_is_not_known_is_refused_by_name(model, words):
    with pytest.raises(UnsupportedModelError, match=words):
        Explainer(model.fit(X, Y))


@pytest.mark.parametrize(
    "model",
    [
        GaussianProcessRegressor(),
        GaussianProcessClassifier(),
        BayesianRidge(),
        make_pipeline(StandardScaler(), GaussianProcessRegressor()),
    ],
    ids=str,
)
def test_models_that_are_not_fitted(model):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        Explainer(model)


def test_a_changed_model_is_caught():
    model = fitted(RBF(1.0) + WhiteKernel(0.1))
    model.kernel_ = RBF(1.1) + WhiteKernel(0.1)
    with pytest.raises(
        UnsupportedModelError,
        match=r"the predictive (mean|variance) of this GaussianProcessRegressor differs from",
    ):
        gpattr.as_posterior(model)
    assert gpattr.as_posterior(model, check=False).kernel.lengthscale == 1.1


def random_kernel(generator, depth=0):
    leaves = [
        lambda: RBF(generator.uniform(0.5, 2.0)),
        lambda: RBF(generator.uniform(0.5, 2.0, size=2)),
        lambda: Matern(generator.uniform(0.5, 2.0), nu=generator.choice([0.5, 1.5, 2.5, 3.5])),
        lambda: RationalQuadratic(generator.uniform(0.5, 2.0), generator.uniform(0.5, 2.0)),
        lambda: DotProduct(generator.uniform(0.1, 1.0)),
        lambda: ConstantKernel(generator.uniform(0.1, 2.0)),
        lambda: WhiteKernel(generator.uniform(0.01, 0.3)),
    ]
    choice = generator.uniform()
    if depth >= 3 or choice < 0.4:
        return leaves[generator.integers(len(leaves))]()
    if choice < 0.65:
        return random_kernel(generator, depth + 1) + random_kernel(generator, depth + 1)
    if choice < 0.9:
        return random_kernel(generator, depth + 1) * random_kernel(generator, depth + 1)
    return random_kernel(generator, depth + 1) ** int(generator.integers(1, 3))


def test_random_kernels_are_exact_or_refused():
    outcomes = {"exact": 0, "refused": 0}
    for seed in range(100):
        model = fitted(random_kernel(np.random.default_rng(seed)) + WhiteKernel(0.5))
        try:
            posterior = gpattr.as_posterior(model)
        except (UnsupportedModelError, InvalidInputError):
            outcomes["refused"] += 1
            continue
        points = RNG.normal(size=(5, 2))
        mean, cov = joint_of(model)(points)
        ours, C = posterior.predict(points, return_cov=True)
        np.testing.assert_allclose(ours, mean, rtol=1e-7, atol=1e-7 * (1 + np.abs(mean).max()))
        np.testing.assert_allclose(C, cov, atol=1e-7 * (1 + np.abs(cov).max()))
        outcomes["exact"] += 1
    assert outcomes["exact"] > 50
