"""Every regressor in weight space at the edges: on the baseline, beside it, far away, one feature,
float32, shuffled columns.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from gpattr import BayesianLinearRegressor, Explainer, HilbertGPRegressor, RandomFeatureGPRegressor
from gpattr.kernels import SquaredExponential
from gpattr.operators import Gradient

RNG = np.random.default_rng(0)
MODELS = [
    BayesianLinearRegressor(degree=2),
    RandomFeatureGPRegressor(30, random_state=0),
    RandomFeatureGPRegressor(10, ensemble=3, random_state=0),
    HilbertGPRegressor(domain=(-5.0, 5.0), kernel=SquaredExponential(1.0), optimize=False),
]


@pytest.fixture(scope="module", params=[1, 2], ids=["one feature", "two features"])
def data(request):
    X = RNG.normal(size=(80, request.param))
    return X, np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=80)


@pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: f"{type(model).__name__}{getattr(model, 'ensemble', '')}"
)
def test_edges(model, data):
    X, y = data
    model = clone(model).fit(X, y)
    explainer = Explainer(model)
    b = explainer.baseline
    at = explainer(b[None])
    assert not at.values.any()
    assert not at.cov.any()
    beside = explainer(b + 1e-8 * X[:1]).values / 1e-8
    slope = model.posterior_.apply(Gradient(), b[None]).mean * X[:1]
    assert beside == pytest.approx(slope, abs=1e-6 * (1 + np.abs(slope).max()))
    assert explainer(X[:1]).values == pytest.approx(
        explainer(X[:5]).values[:1], rel=1e-12, abs=1e-14
    )
    assert explainer(X[:4].astype(np.float32)).values == pytest.approx(
        explainer(X[:4]).values, abs=1e-5
    )
    assert (
        clone(model).fit(X.astype(np.float32), y.astype(np.float32)).posterior_.like.dtype
        == np.float64
    )
    frame = pd.DataFrame(X, columns=["a", "b"][: X.shape[1]])
    named = Explainer(clone(model).fit(frame, y))
    assert np.array_equal(
        named(frame[list(frame)[::-1]].head(3)).values, named(frame.head(3)).values
    )
    if not isinstance(model, HilbertGPRegressor):  # whose box ends before
        far = explainer(b[None] + 1000.0)
        assert np.isfinite(far.cov).all()
        assert np.abs(far.delta).max() <= 1e-9 * (1 + np.abs(far.predictions).max())
