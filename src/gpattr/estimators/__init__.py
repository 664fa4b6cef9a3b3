"""scikit-learn estimators that fit and provide a posterior."""

from gpattr.estimators.bayesian_linear_regressor import BayesianLinearRegressor
from gpattr.estimators.gp_classifier import GPClassifier
from gpattr.estimators.gp_regressor import GPRegressor
from gpattr.estimators.hilbert_gp_regressor import BasisWarning, HilbertGPRegressor
from gpattr.estimators.hyperparameters import register_gradient
from gpattr.estimators.multi_output_gp_regressor import MultiOutputGPRegressor
from gpattr.estimators.random_feature_gp_regressor import (
    FirstChunkWarning,
    RandomFeatureGPRegressor,
)
from gpattr.estimators.sparse_gp_regressor import SparseGPRegressor

__all__ = [
    "BasisWarning",
    "BayesianLinearRegressor",
    "FirstChunkWarning",
    "GPClassifier",
    "GPRegressor",
    "HilbertGPRegressor",
    "MultiOutputGPRegressor",
    "RandomFeatureGPRegressor",
    "SparseGPRegressor",
    "register_gradient",
]
