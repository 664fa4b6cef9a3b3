"""Functions as bytes: every kind of model arrives as it left, and others are refused by name."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpattr
from gpattr.engines import FrameFunction
from gpattr.engines.tasks import pack, unpack, unpack_once
from gpattr.exceptions import UnsupportedModelError
from gpattr.tables import Columns, TableModel

RNG = np.random.default_rng(4)
FRAME = pd.DataFrame(RNG.normal(size=(30, 2)), columns=["a", "b"])
Y = FRAME["a"] + 0.3 * RNG.normal(size=30)


def exact(**options):
    kernel = gpattr.kernels.Matern52(2.0)
    return gpattr.posteriors.ExactPosterior(kernel, FRAME, Y, noise=0.1, **options)


def of_table():
    table = FRAME.assign(kind=list("uvw") * 10, y=Y).astype(str)
    columns = Columns.of(table, "y")
    X = columns.features(table)
    return TableModel.fit(X, Y, columns).posterior, X


def of_gpytorch():
    gpytorch, torch = pytest.importorskip("gpytorch"), pytest.importorskip("torch")

    class Model(gpytorch.models.ExactGP):
        def __init__(self, X, y, likelihood):
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            mean, covariance = self.mean_module(x), self.covar_module(x)
            return gpytorch.distributions.MultivariateNormal(mean, covariance)

    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = Model(torch.tensor(FRAME.to_numpy()), torch.tensor(Y.to_numpy()), likelihood).double()
    return model.eval()


MODELS = {
    "exact": exact,
    "mean": lambda: exact(mean=gpattr.means.Linear(np.zeros(2), covariance="flat")),
    "mixture": lambda: gpattr.posteriors.MixturePosterior([exact(), exact()], [0.3, 0.7]),
    "sparse": lambda: gpattr.SparseGPRegressor(8, random_state=0).fit(FRAME, Y),
    "waves": lambda: gpattr.RandomFeatureGPRegressor(20, random_state=0).fit(FRAME, Y),
    "hilbert": lambda: gpattr.HilbertGPRegressor(n_basis=12).fit(FRAME, Y),
    "linear": lambda: gpattr.BayesianLinearRegressor().fit(FRAME, Y),
    "classifier": lambda: gpattr.GPClassifier(n_restarts=0).fit(FRAME, Y > 0),
    "several outputs": lambda: gpattr.MultiOutputGPRegressor(n_restarts=0).fit(
        FRAME, np.column_stack([Y, -Y])
    ),
    "scikit-learn": lambda: make_pipeline(
        StandardScaler(), GaussianProcessRegressor(RBF() + WhiteKernel(0.1), optimizer=None)
    ).fit(FRAME, Y),
    "gpytorch": of_gpytorch,
    "table": of_table,
}


@pytest.mark.parametrize("name", MODELS)
def test_models_arrive_as_they_left(name):
    made = MODELS[name]()
    model, rows = made if isinstance(made, tuple) else (made, FRAME)
    explainer = gpattr.Explainer(model)
    function = FrameFunction(explainer)
    before = function(rows)  # what has been used, with all it remembers, travels too
    after = unpack(pack(function))(rows)
    pd.testing.assert_frame_equal(before, after, check_exact=True)


def test_a_worker_unpacks_a_parcel_once():
    parcel, other = (pack(FrameFunction(gpattr.Explainer(exact()), u)) for u in ("std", "none"))
    first = unpack_once(parcel)
    assert unpack_once(pickle.loads(pickle.dumps(parcel))) is first
    assert unpack_once(other).uncertainty == "none"
    assert unpack_once(parcel).uncertainty == "std"


def test_functions_of_a_program_are_refused_by_name():
    mean = gpattr.means.Function(lambda X: X[:, 0], lambda X: np.eye(2)[[0] * len(X)])
    function = FrameFunction(gpattr.Explainer(exact(mean=mean)))
    with pytest.raises(
        UnsupportedModelError, match="cannot travel to workers, because it has .*lam"
    ):
        pack(function)

    class Own(gpattr.kernels.SquaredExponential):
        pass

    posterior = gpattr.posteriors.ExactPosterior(Own(), FRAME, Y, noise=0.1)
    with pytest.raises(UnsupportedModelError, match="<locals>.Own.*define it in a module"):
        pack(FrameFunction(gpattr.Explainer(posterior, method="quadrature")))


def test_what_cannot_be_pickled_is_refused(monkeypatch):
    def refuse(self):
        raise pickle.PicklingError("an open file")

    monkeypatch.setattr(gpattr.kernels.Matern52, "__reduce__", refuse)
    with pytest.raises(UnsupportedModelError, match="cannot be pickled: an open file"):
        pack(FrameFunction(gpattr.Explainer(exact())))
